//! The definition in plain loops: the counterpart of all others, and what runs where they do not.
#![allow(unsafe_code)]

use super::{Layer, Method, Pass};
use crate::convolution::Shape;
use crate::packing::PackedValues;
use crate::quantization::Activations;
use crate::team::{Pace, part};
use crate::{Image, InstructionSet, Line, Preparation, Requantization, TooLarge};

/// Tasks of a convolution, at most.
const MOST_TASKS: usize = 256;

/// Weights less their zero point, and all the rest.
#[derive(Debug)]
pub(super) struct Portable {
    weights: PackedValues<i16>,
    bias: Vec<i32>,
    activations: Activations,
    requantization: Requantization,
    /// Each some rows of output pixels.
    tasks: usize,
}

impl Portable {
    pub(super) fn new(
        shape: &Shape,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Layer { weights, bias, activations, requantization } = layer;
        #[allow(clippy::cast_possible_truncation)] // Differences of 8-bit numbers.
        let weights = preparation.pack(shape.filter_values(), |centred: &mut [i16], pace| {
            for k in pace.blocks(centred.len(), 1).flatten() {
                centred[k] = weights.centred(k) as i16;
            }
        })?;
        let bias = preparation.copied(bias, "a bias")?;
        let is_empty = shape.output_pixels() == 0 || shape.output_channels == 0;
        let rows = if is_empty { 0 } else { shape.batch * shape.output[0] };
        Ok(Self { weights, bias, activations, requantization, tasks: rows.min(MOST_TASKS) })
    }
}

/// A convolution by its definition.
pub(crate) struct Definition<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) activations: Activations,
    /// Less their zero point: `[output_channels, filter[0], filter[1], input_channels / groups]`.
    pub(crate) weights: &'a [i16],
    pub(crate) bias: &'a [i32],
    pub(crate) requantization: &'a Requantization,
}

impl Definition<'_> {
    /// Computes all channels of an output pixel.
    #[inline(always)]
    pub(crate) fn pixel(
        &self,
        input: Image<'_, u8>,
        [batch, y, x]: [usize; 3],
        outputs: &mut [u8],
        pace: &mut Pace<'_>,
    ) {
        let Self { shape, activations, weights, bias, requantization } = self;
        let depth = shape.group_input_channels();
        let signedness = activations.signedness;
        let (rows, columns) = (shape.seen_taps(0, y), shape.seen_taps(1, x));
        let [top, left] = [(0, y), (1, x)].map(|(axis, at)| at * shape.stride[axis]);
        for (channel, output) in outputs.iter_mut().enumerate() {
            if pace.is_over(1) {
                return;
            }
            let group = channel / shape.group_output_channels();
            let mut sum = bias[channel];
            for i in rows.clone() {
                let in_y = top + i * shape.dilation[0] - shape.padding_before[0];
                for j in columns.clone() {
                    if pace.is_over(1) {
                        return;
                    }
                    let in_x = left + j * shape.dilation[1] - shape.padding_before[1];
                    let pixel = shape.input_pixel([batch, in_y, in_x]);
                    let inputs = &input.values[pixel * input.pixel_stride + group * depth..];
                    let tap = (channel * shape.filter[0] + i) * shape.filter[1] + j;
                    let weights = &weights[tap * depth..][..depth];
                    for block in pace.blocks(depth, 1) {
                        let products = inputs[block.clone()].iter().zip(&weights[block]);
                        sum = products.fold(sum, |sum, (&input, &weight)| {
                            let input = signedness.centred(activations.zero_point, input);
                            sum.wrapping_add(i32::from(input) * i32::from(weight))
                        });
                    }
                }
            }
            *output = signedness.byte(requantization.apply(sum, channel));
        }
    }
}

impl Method for Portable {
    fn name(&self) -> &'static str {
        InstructionSet::Portable.name()
    }

    fn tasks(&self) -> usize {
        self.tasks
    }

    fn task_lines(&self) -> usize {
        0
    }

    unsafe fn task(&self, pass: &Pass<'_>, task: usize, _: &mut [Line]) {
        let Pass { shape, input, output, stop } = *pass;
        let Self { activations, bias, requantization, .. } = self;
        let (activations, weights) = (*activations, self.weights.values());
        let definition = Definition { shape, activations, weights, bias, requantization };
        let mut pace = Pace::new(stop);
        let [height, width] = shape.output;
        for row in part(shape.batch * height, self.tasks, task) {
            for x in 0..width {
                // Once it is too late, other pixels take their time too.
                if pace.is_over(1) {
                    return;
                }
                let start = output.places.start(row * width + x);
                // SAFETY: the pixels of different rows are different, and each row is of one task.
                let outputs = unsafe { output.values.slice(start, shape.output_channels) };
                definition.pixel(input, [row / height, row % height, x], outputs, &mut pace);
            }
        }
    }
}
