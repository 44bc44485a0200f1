use super::*;
use crate::convolution::float::tests::{far_shape, output_of};
use crate::preparation::prepared_twice;
use crate::quantization::{Activations, Weights};
use crate::{InstructionSet, Multiplier, Requantization};
use proptest::prelude::*;

/// A convolution with everything that it takes.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) shape: Shape,
    pub(super) activations: Activations,
    pub(super) weights: Vec<u8>,
    pub(super) weight_signedness: Signedness,
    pub(super) weight_zero_point: i32,
    pub(super) bias: Vec<i32>,
    pub(super) requantization: Requantization,
    pub(super) input: Vec<u8>,
    pub(super) gaps: [usize; 2],
}

impl Case {
    /// The output for an instruction set, with what is between pixels.
    pub(super) fn output(&self, set: InstructionSet, threads: usize) -> Vec<u8> {
        self.output_of(set, threads, |preparation| self.prepared(preparation))
    }

    pub(super) fn prepared(&self, preparation: &mut Preparation) -> Result<Convolution, TooLarge> {
        Convolution::prepare(&self.shape, self.layer(), preparation)
    }

    pub(super) fn layer(&self) -> Layer<'_> {
        Layer {
            weights: self.weights(),
            bias: &self.bias,
            activations: self.activations,
            requantization: self.requantization.clone(),
        }
    }

    fn weights(&self) -> Weights<'_> {
        Weights {
            values: &self.weights,
            signedness: self.weight_signedness,
            zero_point: self.weight_zero_point,
        }
    }

    /// As [`Self::output`], of what is prepared so.
    pub(super) fn output_of(
        &self,
        set: InstructionSet,
        threads: usize,
        prepare: impl Fn(&mut Preparation) -> Result<Convolution, TooLarge>,
    ) -> Vec<u8> {
        let convolution = prepared_twice(set, threads, prepare);
        let shape = &self.shape;
        let [input_stride, output_stride] =
            [shape.input_channels + self.gaps[0], shape.output_channels + self.gaps[1]];
        // Memory of its own, so that tools see what is read behind the end.
        let input = self.input[..shape.input_pixels() * input_stride].to_vec();
        let image = Image { values: &input, pixel_stride: input_stride };
        let sizes = [shape.output_pixels(), output_stride];
        output_of(&convolution, threads, image, None, 0xAA, sizes)
    }

    pub(super) fn check(&self) {
        let expected = self.output(InstructionSet::Portable, 1);
        for set in InstructionSet::available().skip(1) {
            for threads in [1, 2] {
                assert!(self.output(set, threads) == expected, "{set} differs: {self:?}");
            }
        }
    }
}

prop_compose! {
    /// An axis: input, filter, stride, dilation, padding, output.
    fn axis()(
        input in 1_usize..12, filter in 1_usize..5, stride in 1_usize..4,
        dilation in prop_oneof![3 => Just(1_usize), 1 => 2_usize..4], padding in 0_usize..5,
        output in 1_usize..14, is_same in prop::bool::weighted(0.4),
    ) -> [usize; 6] {
        if is_same {
            [input, filter, stride, 1, (filter - 1) / 2, input.div_ceil(stride)]
        } else {
            [input, filter, stride, dilation, padding, output]
        }
    }
}

fn signedness() -> impl Strategy<Value = Signedness> {
    prop_oneof![Just(Signedness::Unsigned), Just(Signedness::Signed)]
}

fn multiplier(exponents: std::ops::RangeInclusive<i32>) -> impl Strategy<Value = Multiplier> {
    (1 << 30..=i32::MAX, exponents)
        .prop_map(|(mantissa, exponent)| Multiplier { mantissa, exponent })
}

fn case() -> impl Strategy<Value = Case> {
    let channels = prop_oneof![
        3 => (1_usize..40, 1_usize..40, Just(1_usize)),
        2 => (1_usize..5, 40_usize..150, Just(1)),
        1 => (1_usize..10, 1_usize..10, 2_usize..4),
    ];
    let shape = (axis(), axis(), channels, 1_usize..3).prop_map(
        |(down, right, (depth, channels, groups), batch)| Shape {
            batch,
            input: [down[0], right[0]],
            input_channels: depth * groups,
            output: [down[5], right[5]],
            output_channels: channels * groups,
            filter: [down[1], right[1]],
            stride: [down[2], right[2]],
            dilation: [down[3], right[3]],
            padding_before: [down[4], right[4]],
            groups,
        },
    );
    case_of(prop_oneof![5 => shape, 1 => far_shape()])
}

pub(super) fn case_of(shape: impl Strategy<Value = Shape>) -> impl Strategy<Value = Case> {
    let exponents = prop_oneof![
        6 => multiplier(-12..=-3), 1 => multiplier(-40..=0), 1 => multiplier(-3..=33),
    ];
    let many = (
        any::<bool>(),
        prop::collection::vec(exponents, 500),
        0..=255_i32,
        0..=255_i32,
        0..=255_i32,
    );
    let types = (signedness(), signedness(), any::<[u8; 3]>(), any::<bool>());
    (shape, types, many, any::<u64>(), [0_usize..3, 0..3]).prop_map(
        |(shape, types, (is_each, multipliers, a, b, c), seed, gaps)| {
            let (of_inputs, of_weights, [input_zero, weight_zero, output_zero], is_symmetric) =
                types;
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes =
                |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
            let weights = bytes(shape.filter_values());
            let input = bytes(shape.input_pixels() * (shape.input_channels + gaps[0]));
            let is_symmetric = is_symmetric && of_weights == Signedness::Signed;
            let count = if is_each { shape.output_channels } else { 1 };
            let (low, high) = (a.min(b), a.max(b));
            let offset = of_inputs.range().0;
            // Half of them clamp like a ReLU.
            let zero_point = if c % 2 == 0 { low } else { output_zero.into() } + offset;
            let greatest = 1 << random.i32(1..31);
            let mut case = Case {
                activations: Activations {
                    signedness: of_inputs,
                    zero_point: of_inputs.value(input_zero),
                },
                weight_signedness: of_weights,
                weight_zero_point: if is_symmetric { 0 } else { of_weights.value(weight_zero) },
                bias: (0..shape.output_channels)
                    .map(|_| random.i32(-greatest..greatest) >> random.u8(0..20))
                    .collect(),
                requantization: Requantization {
                    multipliers: multipliers[..count].to_vec(),
                    zero_point,
                    min: low + offset,
                    max: high + offset,
                },
                shape,
                weights,
                input,
                gaps,
            };
            if random.u8(..) < 64 {
                case.remove_weights_of_channels(&mut random);
            }
            case
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 400 }))]
    #[test]
    fn all_instruction_sets_agree(case in case()) {
        case.check();
    }
}

impl Case {
    /// Makes all weights of some channels 0, as those of pretrained networks are, with the biases and scales that quantizers give
    /// them.
    fn remove_weights_of_channels(&mut self, random: &mut fastrand::Rng) {
        let zero = self.weight_signedness.byte(self.weight_zero_point);
        let of_channel = self.weights.len() / self.shape.output_channels;
        for channel in 0..self.shape.output_channels {
            if random.bool() {
                continue;
            }
            self.weights[channel * of_channel..][..of_channel].fill(zero);
            self.bias[channel] =
                [1 << 30, -1 << 30, i32::MIN, 5, random.i32(..)][random.usize(..5)];
            if let Some(multiplier) = self.requantization.multipliers.get_mut(channel) {
                multiplier.exponent = random.i32(-40..=10);
            }
        }
    }

    /// With weights most of which are small, as real ones are, which AVX2 multiplies as bytes; some are as large as can be.
    fn with_mostly_small_weights(mut self, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let (min, max) = self.weight_signedness.range();
        let greatest = random.i32(3..45);
        for weight in &mut self.weights {
            let centred = match random.u8(..) {
                0..4 => *[min, max, -127, 127].get(usize::from(random.u8(..4))).unwrap_or(&0),
                4..8 => random.i32(min..=max),
                _ => random.i32(-greatest..=greatest),
            };
            let stored = (self.weight_zero_point + centred).clamp(min, max);
            *weight = self.weight_signedness.byte(stored);
        }
        self
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 400 }))]
    #[test]
    fn all_instruction_sets_agree_with_weights_that_are_mostly_small(case in case(), seed: u64) {
        case.with_mostly_small_weights(seed).check();
    }
}

/// Whether an instruction set multiplies bytes where it could multiply 16-bit numbers.
#[cfg(target_arch = "x86_64")]
fn multiplies_bytes(case: &Case, set: InstructionSet) -> bool {
    let convolution = case.prepared(&mut Preparation::new(set, 1));
    matches!(convolution.unwrap().kernel, Kernel::Packed(packed) if packed.multiplies_bytes())
}

#[cfg(target_arch = "x86_64")]
#[test]
fn products_of_bytes_agree() {
    let sets = || InstructionSet::available().filter(|set| *set == InstructionSet::Avx2);
    assert!(sets().count() == 1, "this processor has no AVX2");
    for (index, sizes) in [
        [1, 1, 14, 64, 96],
        [1, 1, 7, 512, 70],
        [1, 2, 15, 20, 33],
        [3, 2, 37, 3, 32],
        [3, 2, 21, 24, 48],
        [5, 1, 9, 24, 17],
        [7, 2, 40, 3, 64],
        [1, 1, 4, 2000, 5],
        [1, 1, 11, 1003, 40],
        [1, 1, 12, 18, 50],
        [13, 1, 16, 4, 9],
    ]
    .into_iter()
    .enumerate()
    {
        for (signedness, weight_zero_point) in
            [(Signedness::Signed, 0), (Signedness::Unsigned, 121), (Signedness::Unsigned, 0)]
        {
            let case = typical(same(sizes), signedness, weight_zero_point);
            let case = case.with_mostly_small_weights(index as u64);
            for set in sets() {
                assert!(multiplies_bytes(&case, set), "{sizes:?} {signedness:?}");
            }
            case.check();
        }
    }
}

/// The kernel, if it is not Winograd's.
#[cfg(target_arch = "x86_64")]
fn kernel(case: &Case, set: InstructionSet) -> Kernel {
    case.prepared(&mut Preparation::new(set, 1).without_winograd()).unwrap().kernel
}

/// Whether signed inputs are made unsigned before a kernel sees them.
#[cfg(target_arch = "x86_64")]
fn makes_inputs_unsigned(case: &Case, set: InstructionSet) -> bool {
    matches!(kernel(case, set), Kernel::Packed(packed) if packed.makes_inputs_unsigned())
}

/// Whether a kernel of tiles reads windows where they are, and copies of rows of the image.
#[cfg(target_arch = "x86_64")]
fn is_in_place(case: &Case, set: InstructionSet) -> Option<bool> {
    let Kernel::InPlace(in_place) = kernel(case, set) else { return None };
    Some(in_place.task_lines() > 0)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn signed_inputs_that_were_made_unsigned_agree() {
    let with_vnni =
        [InstructionSet::AvxVnni, InstructionSet::Avx512Vnni, InstructionSet::Avx512Amx];
    let sets: Vec<_> = with_vnni.into_iter().filter(|set| set.is_available()).collect();
    // Rows that are copied as they are and with padding, then copies of rows of the image.
    for sizes in [
        [1, 1, 7, 512, 70],
        [3, 1, 9, 64, 130],
        [1, 1, 5, 64, 272],
        [3, 2, 21, 3, 32],
        [1, 1, 11, 1003, 40],
        [3, 1, 27, 16, 40],
        [3, 2, 49, 32, 64],
        [7, 2, 61, 3, 64],
    ] {
        for (weight_signedness, weight_zero_point) in
            [(Signedness::Signed, 0), (Signedness::Unsigned, 121)]
        {
            let mut case = typical(same(sizes), Signedness::Signed, weight_zero_point);
            case.weight_signedness = weight_signedness;
            for set in &sets {
                // AMX multiplies signed bytes too, where they are.
                let is_seen = makes_inputs_unsigned(&case, *set)
                    || weight_zero_point == 0 && is_in_place(&case, *set).is_some();
                assert!(is_seen, "{sizes:?} {set}");
            }
            case.check();
        }
    }
    for set in sets {
        let few = typical(same([1, 1, 9, 16, 96]), Signedness::Signed, 0);
        assert!(!makes_inputs_unsigned(&few, set), "{set}");
        let unsigned = typical(same([1, 1, 7, 512, 70]), Signedness::Unsigned, 0);
        assert!(!makes_inputs_unsigned(&unsigned, set), "{set}");
    }
}

/// Images whose windows kernels of tiles can read where they are: inside of the image, or with padding.
fn windows_in_place() -> impl Strategy<Value = Shape> {
    let axis = (1_usize..5, 1_usize..3, 1_usize..3, 1_usize..40);
    let channels = (1_usize..4, 1_usize..100, 1_usize..3);
    type Sizes = ([(usize, usize, usize, usize); 2], (usize, usize, usize));
    let shape = |([down, right], (depth, channels, batch)): Sizes, depths: usize, padded: bool| {
        let input = |(filter, stride, dilation, output)| {
            (output - 1) * stride + (filter - 1) * dilation + 1 - usize::from(padded && filter > 1)
        };
        Shape {
            batch,
            input: [input(down), input(right)],
            input_channels: depth * depths,
            output: [down.3, right.3],
            output_channels: channels,
            filter: [down.0, right.0],
            stride: [down.1, right.1],
            dilation: [down.2, right.2],
            padding_before: [usize::from(padded && down.0 > 1), usize::from(padded && right.0 > 1)],
            groups: 1,
        }
    };
    let sizes = ([axis.clone(), axis], channels);
    prop_oneof![
        sizes.clone().prop_map(move |sizes| shape(sizes, 64, false)),
        sizes.prop_map(move |sizes| shape(sizes, 40, true)),
    ]
    .prop_filter("no image", |shape| shape.input.iter().all(|size| *size > 0))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 300 }))]
    #[test]
    fn windows_that_are_read_in_place_agree(
        shape in windows_in_place(), signedness in signedness(), gaps in [0_usize..3, 0..3],
        is_relu in any::<bool>(),
    ) {
        let mut case = typical(shape, signedness, 0);
        case.weight_signedness = Signedness::Signed;
        case.gaps = gaps;
        case.input = (0..shape.input_pixels() * (shape.input_channels + gaps[0]))
            .map(|index| u8::try_from(index * 7 % 251).expect("a remainder"))
            .collect();
        if is_relu {
            case.requantization.zero_point = case.requantization.min;
        }
        case.check();
    }
}

/// Which windows are read where: in the image, in copies of its rows, or in copies of their own.
#[cfg(target_arch = "x86_64")]
#[test]
fn windows_are_read_in_place_where_that_is_faster() {
    let set = InstructionSet::Avx512Amx;
    if !set.is_available() {
        eprintln!("not tried: this machine has no {set}");
        return;
    }
    let inside = |shape: Shape| {
        let seen = |axis: usize| (shape.output[axis] - 1) * shape.stride[axis] + shape.filter[axis];
        Shape { input: [seen(0), seen(1)], padding_before: [0, 0], ..shape }
    };
    let dilated = |shape: Shape| Shape { dilation: [2, 2], padding_before: [2, 2], ..shape };
    for (shape, expected) in [
        // ResNet-50's: inside of the image, at a distance, with padding.
        (same([1, 1, 56, 64, 256]), Some(false)),
        (same([1, 2, 56, 256, 512]), Some(false)),
        (same([3, 1, 56, 64, 64]), Some(true)),
        (same([3, 1, 7, 512, 512]), Some(true)),
        (same([3, 2, 28, 256, 256]), Some(true)),
        // Every second pixel of lines of seven: more than half of all rows would be for nothing.
        (same([3, 2, 14, 512, 512]), None),
        // Inception's, of depths that are not whole tiles.
        (inside(same([3, 1, 29, 128, 384])), Some(false)),
        (inside(same([3, 2, 35, 128, 384])), None),
        (same([5, 1, 35, 48, 64]), Some(true)),
        (same([3, 1, 35, 96, 96]), Some(true)),
        // Gaps between the pixels of a window.
        (dilated(same([3, 1, 33, 64, 64])), Some(true)),
        // Rows of a window as runs; too shallow; too few pixels.
        (same([7, 2, 224, 3, 64]), Some(true)),
        (same([1, 1, 56, 24, 144]), None),
        (same([1, 1, 3, 64, 64]), None),
    ] {
        let mut case = typical(shape, Signedness::Signed, 0);
        assert_eq!(is_in_place(&case, set), expected, "{shape:?}");
        case.check();
        case.activations.signedness = Signedness::Unsigned;
        case.activations.zero_point = 120;
        let requantization = &mut case.requantization;
        (requantization.min, requantization.max, requantization.zero_point) = (0, 250, 100);
        assert_eq!(is_in_place(&case, set), expected, "{shape:?}");
        case.check();
        // Sums of inputs are needed, which only copies give.
        case.weight_zero_point = 5;
        assert_eq!(is_in_place(&case, set), None, "{shape:?}");
    }
}

/// Whether all rows, depths and channels are whole tiles of AMX, or some more or less.
#[cfg(target_arch = "x86_64")]
#[test]
fn tiles_of_any_size_agree() {
    let set = InstructionSet::Avx512Amx;
    if !set.is_available() {
        eprintln!("not tried: this machine has no {set}");
        return;
    }
    let typical_of = |[rows, depth, channels]: [usize; 3], signedness, weight_zero_point| {
        let shape =
            Shape { input: [rows, 1], output: [rows, 1], ..same([1, 1, 1, depth, channels]) };
        typical(shape, signedness, weight_zero_point)
    };
    for (index, rows) in [15, 16, 17, 31, 32, 33, 47, 48, 50, 63, 97, 130].into_iter().enumerate() {
        for (second, depth) in [1, 4, 60, 63, 64, 65, 128, 300].into_iter().enumerate() {
            for (third, channels) in [1, 16, 17, 32, 33, 64, 65, 100].into_iter().enumerate() {
                let sizes = [rows, depth, channels];
                let of = [
                    (Signedness::Signed, 0),
                    (Signedness::Unsigned, 121),
                    (Signedness::Unsigned, 0),
                ];
                let (signedness, weight_zero_point) = of[(index + second + third) % 3];
                let case = typical_of(sizes, signedness, weight_zero_point);
                let expected = case.output(InstructionSet::Portable, 1);
                for threads in [1, 2] {
                    assert!(case.output(set, threads) == expected, "{sizes:?} {signedness:?}");
                }
            }
        }
    }
    // What has too few rows for a tile does not wait for tiles.
    let kernel = |rows| {
        let case = typical_of([rows, 64, 64], Signedness::Signed, 0);
        case.prepared(&mut Preparation::new(set, 1)).unwrap().kernel()
    };
    assert_eq!([kernel(4), kernel(64)], ["avx512-vnni", "avx512-amx"]);
}

/// Sums of 16 bits as great and as small as they can be, and all of them.
#[cfg(target_arch = "x86_64")]
#[test]
fn products_of_bytes_agree_at_the_limits_of_16_bits() {
    for (signedness, inputs) in
        [(Signedness::Unsigned, [0xFF, 0xFF, 0]), (Signedness::Signed, [0x7F, 0x7F, 0x80])]
    {
        for (magnitude, depth) in [31, 63, 42, 25].into_iter().zip([64, 36, 130, 500]) {
            let mut case = typical(same([1, 1, 6, depth, 40]), signedness, 0);
            case.weight_signedness = Signedness::Signed;
            let mut random = fastrand::Rng::with_seed(depth as u64);
            for signs in [[1, 1], [-1, -1], [1, -1]] {
                case.weights
                    .fill_with(|| Signedness::Signed.byte(magnitude * signs[random.usize(..2)]));
                case.input.fill_with(|| inputs[random.usize(..3)]);
                for multiplier in &mut case.requantization.multipliers {
                    *multiplier = Multiplier::from_real(0.5_f64.powi(random.i32(8..16)));
                }
                assert!(multiplies_bytes(&case, InstructionSet::Avx2));
                case.check();
                case.input.fill(inputs[0]);
                case.check();
            }
        }
    }
}

/// `[filter, stride, input, depth, channels]`, padded as SAME.
pub(super) fn same([filter, stride, input, depth, channels]: [usize; 5]) -> Shape {
    Shape::same([input; 2], [depth, channels], [filter; 2], stride)
}

/// Random numbers with multipliers that use all of the output's range.
pub(super) fn typical(shape: Shape, signedness: Signedness, weight_zero_point: i32) -> Case {
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
    let (weights, input) =
        (bytes(shape.filter_values()), bytes(shape.input_pixels() * shape.input_channels));
    let taps = shape.taps() * shape.group_input_channels();
    let (min, max) = signedness.range();
    let multipliers = (0..shape.output_channels)
        .map(|_| Multiplier::from_real((0.5 + random.f64()) / 90.0 / (taps as f64).sqrt()))
        .collect();
    Case {
        activations: Activations { signedness, zero_point: min + 120 },
        weight_signedness: signedness,
        weight_zero_point,
        bias: (0..shape.output_channels).map(|_| random.i32(-3000..3000)).collect(),
        requantization: Requantization { multipliers, zero_point: min + 100, min, max: max - 3 },
        shape,
        weights,
        input,
        gaps: [0, 0],
    }
}

#[test]
fn shapes_of_models_agree() {
    for (sizes, signedness, weight_zero_point) in [
        ([3, 2, 37, 3, 32], Signedness::Unsigned, 131),
        ([1, 1, 14, 64, 96], Signedness::Signed, 0),
        ([1, 2, 14, 20, 130], Signedness::Signed, 0),
        ([3, 1, 14, 32, 64], Signedness::Signed, 0),
        ([7, 2, 40, 3, 64], Signedness::Signed, 0),
        ([5, 1, 9, 24, 48], Signedness::Unsigned, 77),
        ([13, 1, 16, 4, 9], Signedness::Signed, 0),
        ([1, 1, 1, 1003, 1001], Signedness::Signed, 0),
    ] {
        let case = typical(same(sizes), signedness, weight_zero_point);
        let outputs = case.output(InstructionSet::Portable, 1);
        let distinct = outputs.iter().collect::<std::collections::HashSet<_>>().len();
        assert!(distinct > 50.min(outputs.len() / 2), "the test shows little: {distinct}");
        case.check();
    }
}

#[test]
fn every_instruction_set_has_its_kernel() {
    for set in InstructionSet::available() {
        let case = typical(same([1, 1, 4, 40, 4]), Signedness::Signed, 0);
        assert_eq!(case.prepared(&mut Preparation::new(set, 1)).unwrap().kernel(), set.name());
    }
}

/// The copy of a row and of a window have a product that is 2^64 and a little.
#[test]
fn dilations_whose_product_wraps_see_padding() {
    for groups in [1, 5] {
        for [high, wide] in [[1_761_366_559, 2_094_594_559], [2_094_594_559, 1_761_366_559]] {
            let shape = Shape {
                groups,
                dilation: [high, wide],
                padding_before: [high / 2, wide / 2],
                ..same([2, 1, 1, 5, 10])
            };
            let case = typical(shape, Signedness::Unsigned, 100);
            let expected: Vec<u8> = (0..10)
                .map(|channel| {
                    let sum = case.bias[channel];
                    Signedness::Unsigned.byte(case.requantization.apply(sum, channel))
                })
                .collect();
            assert_eq!(case.output(InstructionSet::Portable, 1), expected);
            case.check();
        }
    }
}

#[test]
fn rows_that_would_be_long_copies_are_read_in_place() {
    let reaching = |dilation: usize| Shape {
        dilation: [dilation; 2],
        padding_before: [dilation / 2; 2],
        ..same([2, 1, 3, 5, 10])
    };
    let far = Shape { stride: [1 << 20; 2], padding_before: [1 << 20; 2], ..same([3, 1, 5, 3, 8]) };
    for shape in [reaching(1000), reaching(30_000), reaching(1 << 24), far] {
        let case = typical(shape, Signedness::Signed, 3);
        for set in InstructionSet::available() {
            let convolution = case.prepared(&mut Preparation::new(set, 2).with_limit(1 << 20));
            assert!(convolution.unwrap().scratch_bytes() <= 1 << 20);
        }
        case.check();
    }
}

#[test]
fn weights_beyond_the_limit_are_refused() {
    let case = typical(same([3, 1, 3, 64, 64]), Signedness::Signed, 0);
    for set in InstructionSet::available() {
        let mut preparation = Preparation::new(set, 1).with_limit(3 * 3 * 64 * 64 / 2);
        let refusal = case.prepared(&mut preparation);
        assert_eq!(refusal.unwrap_err().what, "packed weights");
    }
}

#[test]
fn more_rows_than_tasks_agree() {
    let shape = Shape { batch: 2, input: [203, 2], output: [203, 2], ..same([3, 1, 3, 4, 5]) };
    let case = typical(shape, Signedness::Signed, 3);
    let portable = InstructionSet::Portable;
    let tasks = case.prepared(&mut Preparation::new(portable, 3)).unwrap().tasks();
    assert!(shape.batch * shape.output[0] > tasks);
    assert!(case.output(portable, 3) == case.output(portable, 1));
    case.check();
}

/// Products whose sums are as great as they can be, so that too narrow ones would be seen.
#[test]
fn extreme_numbers_agree() {
    for (signedness, weight) in [Signedness::Unsigned, Signedness::Signed]
        .into_iter()
        .flat_map(|signedness| [0x80, 0x81, 0x7F, 0, 0xFF].map(|weight| (signedness, weight)))
    {
        for input in [0_u8, 0x7F, 0x80, 0xFF] {
            let mut case = typical(same([1, 1, 5, 16, 20]), signedness, 0);
            case.weights.fill(weight);
            case.input.fill(input);
            for (index, multiplier) in case.requantization.multipliers.iter_mut().enumerate() {
                *multiplier =
                    Multiplier::from_real(0.5_f64.powi(9 + i32::try_from(index % 5).unwrap()));
            }
            case.check();
        }
    }
}

/// Depths around what is multiplied in a step, rows around what is a tile, zero points at both ends.
#[test]
fn extreme_numbers_agree_at_all_depths() {
    let depths = if cfg!(miri) { 4..6 } else { 1..36_usize };
    for (depth, signedness) in depths
        .flat_map(|depth| [Signedness::Unsigned, Signedness::Signed].map(|kind| (depth, kind)))
    {
        for (pixels, filter, [weight, other], zero_ends) in [
            (1, 1, [0x80, 0x80], [0, 0]),
            (5, 1, [0x80, 0x7F], [1, 0]),
            (6, 1, [0x7F, 0x7F], [0, 1]),
            (7, 3, [0x80, 0x7F], [1, 1]),
            (13, 2, [0x81, 0x7F], [1, 0]),
        ] {
            let shape = Shape {
                input: [1, pixels],
                output: [1, pixels],
                ..same([filter, 1, pixels, depth, 19])
            };
            let mut case = typical(shape, signedness, 0);
            let mut random = fastrand::Rng::with_seed(depth as u64);
            case.weights.fill_with(|| if random.bool() { weight } else { other });
            case.input.fill_with(|| [0, 0x7F, 0x80, 0xFF][random.usize(..4)]);
            let range = [signedness.range().0, signedness.range().1];
            case.activations.zero_point = range[zero_ends[0]];
            let of_weights = case.weight_signedness.range();
            case.weight_zero_point = [of_weights.0, of_weights.1][zero_ends[1]];
            case.check();
            case.weight_zero_point = 0;
            case.check();
        }
    }
}

/// Rows that are so long that few are widened together.
#[test]
fn very_long_rows_agree() {
    let depth = if cfg!(miri) { 50 } else { 70_001 };
    for (pixels, weight) in [(1, 0x80), (7, 0x7F), (8, 0x81)] {
        let shape =
            Shape { input: [1, pixels], output: [1, pixels], ..same([1, 1, pixels, depth, 5]) };
        let mut case = typical(shape, Signedness::Signed, 0);
        case.check();
        case.weights.fill(weight);
        case.input.fill(0x80);
        case.check();
    }
}

#[test]
fn nothing_happens_without_pixels_or_channels() {
    for (batch, output, depth, channels) in
        [(0, 4, 3, 5), (1, 0, 3, 5), (1, 4, 3, 0), (1, 4, 0, 5), (2, 3, 0, 0)]
    {
        let shape = Shape {
            batch,
            output: [output; 2],
            input_channels: depth,
            output_channels: channels,
            ..same([3, 1, 4, 1, 1])
        };
        typical(shape, Signedness::Signed, 0).check();
    }
}

#[test]
fn values_by_hand() {
    // (5-3)*(2) + (9-3)*(-1) + 100 = 98; halved 49; plus 10.
    let layer = Layer {
        weights: Weights { values: &[2, 255], signedness: Signedness::Signed, zero_point: 0 },
        bias: &[100],
        activations: Activations { signedness: Signedness::Unsigned, zero_point: 3 },
        requantization: Requantization::by(0.499_999_9, 10, Signedness::Unsigned),
    };
    for set in InstructionSet::available() {
        let shape = Shape::matrix_product([1, 2, 1]);
        let mut preparation = Preparation::new(set, 1);
        let product = Convolution::prepare(&shape, layer.clone(), &mut preparation).unwrap();
        drop(preparation);
        let output = output_of(&product, 1, Image::contiguous(&[5, 9], 2), None, 0, [1, 1]);
        assert_eq!(output, [59], "{set}");
    }
}
