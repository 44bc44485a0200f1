//! The definition in plain loops: the counterpart of all others, and what runs where they do not.
#![allow(unsafe_code)]

use super::{Layer, Method, Pass, Target};
use crate::convolution::Shape;
use crate::packing::PackedValues;
use crate::quantization::Activations;
use crate::team::{Pace, Stop, part};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Image, InstructionSet, Line, Preparation, Requantization, TooLarge};
use std::ops::Range;

/// Tasks of a convolution, at most.
const MOST_TASKS: usize = 256;

/// Weights less their zero point, and all the rest.
#[derive(Debug)]
pub(super) struct Portable {
    isa: Isa,
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
        let isa = Isa::of(preparation.set());
        Ok(Self { isa, weights, bias, activations, requantization, tasks: rows.min(MOST_TASKS) })
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
    /// Computes all channels of some lines of the output.
    ///
    /// # Safety
    /// No one else accesses those of their pixels.
    pub(crate) unsafe fn lines(
        &self,
        isa: Isa,
        (input, output): (Image<'_, u8>, &Target<'_>),
        lines: Range<usize>,
        stop: &Stop,
    ) {
        let mut pace = Pace::new(stop);
        let [height, width] = self.shape.output;
        for line in lines {
            for x in 0..width {
                // Once it is too late, other pixels take their time too.
                if pace.is_over(1) {
                    return;
                }
                let start = output.places.start(line * width + x);
                // SAFETY: the caller's promise.
                let to = unsafe { output.values.slice(start, self.shape.output_channels) };
                let at = [line / height, line % height, x];
                isa.run(Pixel { definition: self, input, at, to, pace: &mut pace });
            }
        }
    }
}

/// An output pixel, of which compilers make what each instruction set has.
struct Pixel<'a, 'p> {
    definition: &'a Definition<'a>,
    input: Image<'a, u8>,
    at: [usize; 3],
    to: &'a mut [u8],
    pace: &'a mut Pace<'p>,
}

impl Kernel for Pixel<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { definition, input, at: [batch, y, x], to: outputs, pace } = self;
        let Definition { shape, activations, weights, bias, requantization } = definition;
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
        let lines = part(shape.batch * shape.output[0], self.tasks, task);
        // SAFETY: the pixels of different lines are different, and each line is of one task.
        unsafe { definition.lines(self.isa, (input, output), lines, stop) };
    }
}
