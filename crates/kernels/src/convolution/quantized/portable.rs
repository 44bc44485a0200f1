//! The definition in plain loops: the counterpart of all others, and what runs where they do not.
#![allow(unsafe_code)]

use super::Target;
use super::tasks::part;
use crate::convolution::Shape;
use crate::packing::PackedValues;
use crate::quantization::{Activations, Weights};
use crate::requantize::Requantization;
use crate::team::{Pace, Stop};
use crate::{Image, Preparation, TooLarge};

/// Tasks of a convolution, at most.
const MOST_TASKS: usize = 256;

/// Weights less their zero point, and all the rest.
#[derive(Debug)]
pub(super) struct Portable {
    weights: PackedValues<i16>,
    bias: Vec<i32>,
    activations: Activations,
    requantization: Requantization,
}

impl Portable {
    pub(super) fn new(
        shape: &Shape,
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        #[allow(clippy::cast_possible_truncation)] // Differences of 8-bit numbers.
        let weights = preparation.pack(shape.filter_values(), |centred: &mut [i16], pace| {
            for k in pace.blocks(centred.len(), 1).flatten() {
                centred[k] = weights.centred(k) as i16;
            }
        })?;
        let bias = preparation.copied(bias, "a bias")?;
        Ok(Self { weights, bias, activations, requantization })
    }

    /// A task is some rows of output pixels.
    pub(super) fn tasks(shape: &Shape) -> usize {
        if shape.output_pixels() == 0 || shape.output_channels == 0 {
            return 0;
        }
        (shape.batch * shape.output[0]).min(MOST_TASKS)
    }

    /// Computes the rows of a task.
    ///
    /// # Safety
    /// No one else touches the rows.
    pub(super) unsafe fn task(
        &self,
        shape: &Shape,
        input: Image<'_, u8>,
        output: &Target<'_>,
        task: usize,
        stop: &Stop,
    ) {
        let mut pace = Pace::new(stop);
        let [height, width] = shape.output;
        let (first, end) = part(shape.batch * height, Self::tasks(shape), task);
        for row in first..end {
            for x in 0..width {
                // Once it is too late, other pixels take their time too.
                if pace.is_over(1) {
                    return;
                }
                let start = output.start(row * width + x);
                // SAFETY: the pixels of different rows are different, and each row is of one task.
                let outputs = unsafe { output.values.slice(start, shape.output_channels) };
                self.pixel(shape, input, [row / height, row % height, x], outputs, &mut pace);
            }
        }
    }

    fn pixel(
        &self,
        shape: &Shape,
        input: Image<'_, u8>,
        [batch, y, x]: [usize; 3],
        outputs: &mut [u8],
        pace: &mut Pace<'_>,
    ) {
        let depth = shape.group_input_channels();
        let (rows, columns) = (shape.seen_taps(0, y), shape.seen_taps(1, x));
        let [top, left] = [(0, y), (1, x)].map(|(axis, at)| at * shape.stride[axis]);
        let signedness = self.activations.signedness;
        for (channel, output) in outputs.iter_mut().enumerate() {
            if pace.is_over(1) {
                return;
            }
            let group = channel / shape.group_output_channels();
            let mut sum = self.bias[channel];
            for i in rows.clone() {
                let in_y = top + i * shape.dilation[0] - shape.padding_before[0];
                for j in columns.clone() {
                    if pace.is_over(1) {
                        return;
                    }
                    let in_x = left + j * shape.dilation[1] - shape.padding_before[1];
                    let pixel = (batch * shape.input[0] + in_y) * shape.input[1] + in_x;
                    let inputs = &input.values[pixel * input.pixel_stride + group * depth..];
                    let tap = (channel * shape.filter[0] + i) * shape.filter[1] + j;
                    let weights = &self.weights.values()[tap * depth..][..depth];
                    for block in pace.blocks(depth, 1) {
                        for (&input, &weight) in inputs[block.clone()].iter().zip(&weights[block]) {
                            let input = signedness.value(input) - self.activations.zero_point;
                            sum = sum.wrapping_add(input * i32::from(weight));
                        }
                    }
                }
            }
            *output = signedness.byte(self.requantization.apply(sum, channel));
        }
    }
}
