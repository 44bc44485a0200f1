//! [`UnpackedConvolution`] of images of quantized values.
#![allow(unsafe_code)]

use crate::convolution::Shape;
use crate::convolution::quantized::Target;
use crate::convolution::quantized::definition::Definition;
use crate::disjoint::DisjointOutput;
use crate::image::Places;
use crate::image_kernel::{ImageKernel, Images};
use crate::quantization::Activations;
use crate::requantize::Requantization;
use crate::sharing::{TASKS_BY_THREAD, even_tasks, for_each_slice};
use crate::team::part;
use crate::vector::Isa;
use crate::{LINE_BYTES, Line, Preparation, Team, TooLarge};

/// A convolution whose weights and biases are known only when it is run: the weights less their zero
/// point are written to scratch memory first, as numbers of 16 bits.
#[derive(Debug)]
pub struct UnpackedConvolution {
    shape: Shape,
    isa: Isa,
    is_depthwise: bool,
    weights: Activations,
    activations: Activations,
    requantization: Requantization,
    tasks: usize,
}

/// Operations that are worth a task of their own.
const OPERATIONS_PER_TASK: u64 = 200_000;

impl UnpackedConvolution {
    /// Cuts the work. `weights` are what the filter will be; `is_depthwise` is its layout.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid, or not depthwise where it is said to be; if a number is out of its
    /// type's range.
    pub fn prepare(
        shape: &Shape,
        is_depthwise: bool,
        weights: Activations,
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        weights.check();
        activations.check();
        requantization.check(shape.output_channels, activations.signedness);
        assert!(
            !is_depthwise || shape.groups == shape.input_channels.max(1),
            "groups of a depthwise convolution"
        );
        let worth = usize::try_from(shape.operations() / OPERATIONS_PER_TASK);
        let tasks = even_tasks(worth.unwrap_or(usize::MAX), preparation.threads(), TASKS_BY_THREAD);
        preparation.check_scratch::<i16>(&[shape.filter_values()])?;
        Ok(Self {
            shape: *shape,
            isa: Isa::of(preparation.set()),
            is_depthwise,
            weights,
            activations,
            requantization,
            tasks: tasks.clamp(1, (shape.batch * shape.output[0]).max(1)),
        })
    }
}

/// Inputs: the image, the filter, `[output_channels, filter height, filter width, input channels of a group]` or depthwise `[1, filter
/// height, filter width, output_channels]`, and the bias, of 32 bits.
impl ImageKernel for UnpackedConvolution {
    type Element = u8;

    fn name(&self) -> String {
        let operation = self.shape.name(self.is_depthwise);
        format!("{operation} direct with packing {}", self.activations.signedness.name())
    }

    fn run(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let Images { input, output, others, .. } = images;
        let (filter, bias): (&[u8], &[i32]) = (others.of(1), others.of(2));
        let Self { ref shape, isa, is_depthwise, activations, ref requantization, .. } = *self;
        input.check("input", shape.input_pixels(), shape.input_channels);
        assert_eq!(filter.len(), shape.filter_values(), "weights");
        assert_eq!(bias.len(), shape.output_channels, "biases");
        let channels = shape.output_channels;
        let needed = output.check("output", shape.output_pixels(), channels);
        if needed == 0 {
            return;
        }
        let weights = &mut bytemuck::cast_slice_mut::<_, i16>(scratch)[..filter.len()];
        let taps = shape.taps();
        for_each_slice(team, weights, 16 << 10, |start, to| {
            for (at, to) in (start..).zip(to) {
                // Those of a depthwise filter are by tap.
                let from = if is_depthwise { at % taps * channels + at / taps } else { at };
                let Activations { signedness, zero_point } = self.weights;
                *to = signedness.centred(zero_point, filter[from]);
            }
        });
        let definition = Definition { shape, activations, weights, bias, requantization };
        let values = DisjointOutput::new(output.values);
        let output = Target { values: &values, places: Places::Even(output.pixel_stride) };
        team.run_long(self.tasks, &|task, stop| {
            let lines = part(shape.batch * shape.output[0], self.tasks, task);
            // SAFETY: the lines of different tasks are different.
            unsafe { definition.lines(isa, (input, &output), lines, stop) };
        });
    }

    fn scratch_bytes(&self) -> usize {
        (self.shape.filter_values() * size_of::<i16>()).next_multiple_of(LINE_BYTES)
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::float::tests::{any_shape, depthwise, turned};
    use crate::convolution::quantized::{Convolution, Layer};
    use crate::quantization::{Signedness, Weights};
    use crate::{Image, ImageMut, Inputs, InstructionSet, Lines, Multiplier};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 150 }))]

        #[test]
        fn weights_may_come_with_the_image(
            shape in any_shape(), multiplier in 0_usize..3, gaps in [0_usize..2, 0_usize..2],
            threads in 1_usize..4, is_signed: [bool; 2], zero_points: [u8; 3], seed: u64,
        ) {
            // With a multiplier it is depthwise.
            let shape = depthwise(shape, multiplier);
            let signed = is_signed.map(|it| if it { Signedness::Signed } else { Signedness::Unsigned });
            let [activations, of_weights] = [0, 1].map(|index: usize| Activations {
                signedness: signed[index],
                zero_point: signed[index].value(zero_points[index]),
            });
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
            let strides = [shape.input_channels + gaps[0], shape.output_channels + gaps[1]];
            let values = bytes(shape.input_pixels() * strides[0]);
            let by_channel = bytes(shape.filter_values());
            let weights = match multiplier {
                0 => by_channel.clone(),
                _ => turned(&by_channel, [shape.output_channels, shape.taps()]),
            };
            let bias: Vec<i32> = (0..shape.output_channels).map(|_| random.i32(-999..999)).collect();
            let requantization = Requantization {
                multipliers: vec![Multiplier { mantissa: random.i32(1 << 30..), exponent: -8 }],
                ..Requantization::by(1.0, signed[0].value(zero_points[2]), signed[0])
            };
            let input = Image { values: &values, pixel_stride: strides[0] };
            let blank = || vec![77; shape.output_pixels() * strides[1]];
            let mut expected = blank();
            let mut preparation = Preparation::new(InstructionSet::Portable, 1);
            let layer = Layer {
                weights: Weights {
                    values: &by_channel,
                    signedness: of_weights.signedness,
                    zero_point: of_weights.zero_point,
                },
                bias: &bias,
                activations,
                requantization: requantization.clone(),
            };
            let packed = Convolution::prepare(&shape, layer, &mut preparation).unwrap();
            drop(preparation);
            let output = ImageMut { values: &mut expected, pixel_stride: strides[1] };
            packed.run(&mut Team::alone(), Images::new(input, output), &mut []);
            for set in InstructionSet::available() {
                let kernel = UnpackedConvolution::prepare(
                    &shape, multiplier > 0, of_weights, activations, requantization.clone(),
                    &mut Preparation::new(set, threads),
                ).unwrap();
                let mut found = blank();
                let mut scratch = Lines::with_bytes(kernel.scratch_bytes());
                let output = ImageMut { values: &mut found, pixel_stride: strides[1] };
                let mut team = Team::new(threads);
                let others: &[&[u8]] = &[&[], &weights, bytemuck::cast_slice(&bias)];
                let images =
                    Images { others: Inputs::new(&others), ..Images::new(input, output) };
                kernel.run(&mut team, images, scratch.lines_mut());
                prop_assert_eq!(&found, &expected, "{}", set);
            }
        }
    }
}
