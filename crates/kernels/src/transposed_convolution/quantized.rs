//! [`TransposedConvolution`] of images of quantized values.
#![allow(unsafe_code)]

use super::shape::{Shape, tasks_by_place};
use crate::convolution::quantized::{Convolution, Layer, Target};
use crate::disjoint::DisjointOutput;
use crate::image::{Placement, Places};
use crate::image_kernel::{ImageKernel, Images};
use crate::quantization::{Signedness, Weights};
use crate::sharing::for_each_task;
use crate::{LINE_BYTES, Line, Preparation, Team, TooLarge};

/// A transposed convolution with constant weights, prepared for an instruction set.
#[derive(Debug)]
pub struct TransposedConvolution {
    shape: Shape,
    signedness: Signedness,
    output_pixel_stride: usize,
    phases: Vec<(Convolution, Placement)>,
    /// Each a task of a phase.
    tasks: Vec<(usize, usize)>,
}

impl TransposedConvolution {
    /// Packs the weights `[output_channels, filter[0], filter[1], input_channels]` and cuts the work.
    /// The output's pixels have a stride of this many values.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not [valid](Shape::is_valid); if there are not as many weights and biases as it
    /// says; if output pixels are closer than their channels; if a number is out of its type's range; if
    /// this processor does not have the instruction set.
    pub fn prepare(
        shape: &Shape,
        output_pixel_stride: usize,
        layer: &Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let Layer { weights, bias, activations, ref requantization } = *layer;
        let zero = weights.signedness.byte(weights.zero_point);
        let prepared = shape.checked_phases(output_pixel_stride).into_iter().map(|phase| {
            let values = match preparation.is_restoring() {
                true => Vec::new(),
                false => phase.filter(shape, weights.values, zero, &mut preparation.pace())?,
            };
            let bias = preparation.repeated(bias, phase.joined(), "biases")?;
            let layer = Layer {
                weights: Weights { values: &values, ..weights },
                bias: &bias,
                activations,
                requantization: requantization.repeated(phase.joined(), preparation)?,
            };
            let convolution = Convolution::prepare(&phase.shape, layer, preparation)?;
            Ok((convolution, phase.placement))
        });
        let phases = prepared.collect::<Result<Vec<_>, TooLarge>>()?;
        let tasks = tasks_by_place(phases.iter().map(|(convolution, _)| convolution.tasks()));
        let signedness = activations.signedness;
        let prepared = Self { shape: *shape, signedness, output_pixel_stride, phases, tasks };
        preparation.check_scratch::<Line>(&[prepared.tasks.len(), prepared.task_lines()])?;
        Ok(prepared)
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        self.phases.first().map_or("portable", |(convolution, _)| convolution.kernel())
    }

    fn task_lines(&self) -> usize {
        self.phases.iter().map(|(convolution, _)| convolution.task_lines()).max().unwrap_or(0)
    }
}

/// Input: the image.
impl ImageKernel for TransposedConvolution {
    type Element = u8;

    fn name(&self) -> String {
        let (operation, elements) = (self.shape.name(), self.signedness.name());
        format!("{operation} gemm by phases {elements} {}", self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let Images { input, output, .. } = images;
        assert_eq!(output.pixel_stride, self.output_pixel_stride, "distance of output pixels");
        let values = DisjointOutput::new(output.values);
        let target =
            |placement: &Placement| Target { values: &values, places: Places::Lines(*placement) };
        for (convolution, placement) in &self.phases {
            convolution.check(&input, &target(placement));
        }
        let scratch = (scratch, self.task_lines());
        for_each_task(team, self.tasks.len(), scratch, |task, scratch, stop| {
            let (phase, task) = self.tasks[task];
            let (convolution, placement) = &self.phases[phase];
            // SAFETY: the images were checked, each task is there once, and each phase has output
            // pixels of its own, which do not overlap, as `checked_phases` has seen for the distance
            // that was compared above.
            unsafe { convolution.task(input, &target(placement), task, scratch, stop) };
        });
    }

    fn scratch_bytes(&self) -> usize {
        self.tasks.len() * self.task_lines() * LINE_BYTES
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convolution::{self, float::tests::output_of};
    use crate::preparation::prepared_twice;
    use crate::quantization::Activations;
    use crate::transposed_convolution::tests::{any_shape, tap};
    use crate::{Image, InstructionSet, Multiplier, Requantization};
    use proptest::prelude::*;

    #[test]
    fn images_of_many_rows_are_few_tasks() {
        let rows = 1 << 20;
        let shape = Shape(convolution::Shape {
            output: [4 * rows, 1],
            stride: [4, 1],
            ..convolution::Shape::same([rows, 1], [1, 1], [1, 1], 1)
        });
        let layer = Layer {
            weights: Weights { values: &[3], signedness: Signedness::Signed, zero_point: 0 },
            bias: &[7],
            activations: Activations { signedness: Signedness::Signed, zero_point: 0 },
            requantization: Requantization::by(0.5, 0, Signedness::Signed),
        };
        for set in InstructionSet::available() {
            let mut preparation = Preparation::new(set, 2);
            let prepared = TransposedConvolution::prepare(&shape, 1, &layer, &mut preparation);
            // Three of four phases have no taps.
            let tasks = prepared.unwrap().tasks.len();
            assert!(tasks <= 1 << 10, "{set}: {tasks} tasks");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 300 }))]

        #[test]
        fn each_input_pixel_is_spread_by_the_weights(
            shape in any_shape(), gaps in [0_usize..2, 0_usize..2], threads in 1_usize..4,
            is_signed: [bool; 2], zero_points: [u8; 3], is_per_channel: bool, seed: u64,
            exponent in -12..-5,
        ) {
            prop_assume!(shape.is_valid());
            let (inputs, outputs) = (shape.input_channels, shape.output_channels);
            let strides = [inputs + gaps[0], outputs + gaps[1]];
            let signedness = is_signed.map(|it| if it { Signedness::Signed } else { Signedness::Unsigned });
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.u8(..)).collect() };
            let input = bytes(shape.input_pixels() * strides[0]);
            let values = bytes(shape.filter_values());
            let bias: Vec<i32> = (0..outputs).map(|_| random.i32(-5000..5000)).collect();
            let multipliers = if is_per_channel { outputs.max(1) } else { 1 };
            let requantization = Requantization {
                multipliers: (0..multipliers)
                    .map(|_| Multiplier { mantissa: random.i32(1 << 30..), exponent })
                    .collect(),
                zero_point: signedness[0].value(zero_points[2]),
                min: signedness[0].range().0,
                max: signedness[0].range().1 - 3,
            };
            let layer = Layer {
                weights: Weights {
                    values: &values,
                    signedness: signedness[1],
                    zero_point: signedness[1].value(zero_points[1]),
                },
                bias: &bias,
                activations: Activations {
                    signedness: signedness[0],
                    zero_point: signedness[0].value(zero_points[0]),
                },
                requantization,
            };
            let Layer { weights, activations, .. } = layer;

            let mut sums = bias.repeat(shape.output_pixels());
            for pixel in 0..shape.input_pixels() {
                let values = &input[pixel * strides[0]..][..inputs];
                for (at, from) in (0..shape.filter_values()).step_by(inputs.max(1)).enumerate() {
                    let Some(output) = tap(&shape, pixel, at) else { continue };
                    let products = values.iter().zip(from..).map(|(value, weight)| {
                        let value = activations.signedness.value(*value) - activations.zero_point;
                        value * weights.centred(weight)
                    });
                    sums[output] += products.sum::<i32>();
                }
            }
            for set in InstructionSet::available() {
                let kernel = prepared_twice(set, threads, |preparation| {
                    TransposedConvolution::prepare(&shape, strides[1], &layer, preparation)
                });
                let image = Image { values: &input, pixel_stride: strides[0] };
                let sizes = [shape.output_pixels(), strides[1]];
                let output = output_of(&kernel, threads, image, None, 77, sizes);
                for (index, &found) in output.iter().enumerate() {
                    let (pixel, channel) = (index / strides[1], index % strides[1]);
                    let expected = match channel < outputs {
                        true => {
                            let sum = sums[pixel * outputs + channel];
                            activations.signedness.byte(layer.requantization.apply(sum, channel))
                        }
                        // Between pixels nothing is written.
                        false => 77,
                    };
                    prop_assert_eq!(found, expected, "{}: pixel {}, channel {}", set, pixel, channel);
                }
            }
        }
    }
}
