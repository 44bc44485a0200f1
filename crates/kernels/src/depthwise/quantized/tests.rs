use super::*;
use crate::convolution::float::tests::output_of;
use crate::preparation::prepared_twice;
use crate::quantization::Activations;
use crate::{Image, InstructionSet, Multiplier, Requantization};
use proptest::prelude::*;

/// The output of a random depthwise convolution.
fn output(
    shape: &Shape,
    [inputs, weight_type]: [Signedness; 2],
    weight_zero_point: i32,
    requantization: &Requantization,
    (gaps, has_channels_without_weights): ([usize; 2], bool),
    set: InstructionSet,
    threads: usize,
) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
    let strides = [shape.input_channels + gaps[0], shape.output_channels + gaps[1]];
    let mut weights = bytes(shape.filter_values());
    let input = bytes(shape.input_pixels() * strides[0]);
    let mut bias: Vec<i32> = (0..shape.output_channels).map(|_| random.i32(-9000..9000)).collect();
    if has_channels_without_weights {
        for channel in (0..shape.output_channels).step_by(3) {
            bias[channel] = [1 << 30, -1 << 30, i32::MAX][channel % 9 / 3];
            let taps = weights.chunks_exact_mut(shape.output_channels);
            taps.for_each(|tap| tap[channel] = weight_type.byte(weight_zero_point));
        }
    }
    let layer = Layer {
        weights: Weights {
            values: &weights,
            signedness: weight_type,
            zero_point: weight_zero_point,
        },
        bias: &bias,
        activations: Activations { signedness: inputs, zero_point: inputs.range().0 + 99 },
        requantization: requantization.clone(),
    };
    let depthwise = prepared_twice(set, threads, |preparation| {
        Depthwise::prepare(shape, layer.clone(), preparation)
    });
    let image = Image { values: &input, pixel_stride: strides[0] };
    output_of(&depthwise, threads, image, None, 0xAA, [shape.output_pixels(), strides[1]])
}

prop_compose! {
    fn axis()(
        input in 1_usize..14, filter in prop_oneof![3 => Just(3_usize), 1 => 1_usize..6],
        stride in 1_usize..3, dilation in prop_oneof![3 => Just(1_usize), 1 => 2_usize..4],
        padding in 0_usize..4, output in 1_usize..14,
    ) -> [usize; 6] {
        [input, filter, stride, dilation, padding, output]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 300 }))]
    #[test]
    fn all_instruction_sets_agree(
        down in axis(), right in axis(), batch in 1_usize..3, gaps in [0_usize..3, 0..3],
        channels in prop_oneof![1_usize..40, 1_usize..200], each in prop_oneof![3 => Just(1_usize), 1 => 2_usize..9],
        is_signed: [bool; 2], zero: u8, exponents in prop_oneof![9 => Just((-9, -6)), 1 => Just((-9, 1))],
        ends: [u8; 2], is_relu: bool, square in prop_oneof![Just(None), Just(Some(3)), Just(Some(5))],
    ) {
        let signedness =
            is_signed.map(|it| if it { Signedness::Signed } else { Signedness::Unsigned });
        let weight_zero_point = if zero < 100 && is_signed[1] { 0 } else { signedness[1].value(zero) };
        let shape = Shape {
            batch,
            input: [down[0], right[0]],
            input_channels: channels,
            output: [down[5], right[5]],
            output_channels: channels * each,
            filter: square.map_or([down[1], right[1]], |length| [length; 2]),
            stride: [down[2], right[2]],
            dilation: [down[3], right[3]],
            padding_before: [down[4], right[4]],
            groups: channels,
        };
        let mut random = fastrand::Rng::with_seed(u64::from(zero));
        let ends = ends.map(|end| signedness[0].value(end));
        let (min, max) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let requantization = Requantization {
            multipliers: (0..channels * each)
                .map(|_| Multiplier {
                    mantissa: random.i32(1 << 30..),
                    exponent: random.i32(exponents.0..=exponents.1),
                })
                .collect(),
            zero_point: if is_relu { min } else { signedness[0].value(77) },
            min,
            max,
        };
        let run = |set, threads| {
            let gaps = (gaps, zero % 4 == 0);
            output(&shape, signedness, weight_zero_point, &requantization, gaps, set, threads)
        };
        let expected = run(InstructionSet::Portable, 1);
        for set in InstructionSet::available().skip(1) {
            for threads in [1, 2] {
                prop_assert!(run(set, threads) == expected, "{} differs: {:?}", set, shape);
            }
        }
    }
}

#[test]
fn weights_of_a_channel_are_not_contiguous() {
    // Two channels, two taps: 1*3 + 5*7 = 38 and 2*4 + 6*8 = 56.
    let shape = Shape { output: [1, 1], groups: 2, ..Shape::same([1, 2], [2, 2], [1, 2], 1) };
    let unsigned = Signedness::Unsigned;
    let layer = Layer {
        weights: Weights { values: &[3, 4, 7, 8], signedness: unsigned, zero_point: 0 },
        bias: &[0, 0],
        activations: Activations { signedness: unsigned, zero_point: 0 },
        requantization: Requantization::by(1.0, 0, Signedness::Unsigned),
    };
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1);
        let depthwise = Depthwise::prepare(&shape, layer.clone(), &mut preparation).unwrap();
        drop(preparation);
        let input = Image::contiguous(&[1, 2, 5, 6], 2);
        let output = output_of(&depthwise, 1, input, None, 0, [1, 2]);
        assert_eq!(output, [38, 56], "{set}");
    }
}
