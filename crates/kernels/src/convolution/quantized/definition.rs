//! The definition in plain loops: the counterpart of all others, and what runs where they do not.
#![allow(unsafe_code)]

use super::sums::Block;
use super::{Layer, Method, Output, Pass, Target, Wanted};
use crate::convolution::Shape;
use crate::preparation::PackedValues;
use crate::quantization::{Activations, Signedness};
use crate::requantize::LANES;
use crate::team::{Pace, Stop, part};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Image, InstructionSet, Line, Preparation, Requantization, TooLarge};
use std::ops::Range;

/// Tasks of a convolution, at most.
const MOST_TASKS: usize = 256;
/// Channels whose sums are given together, whole vectors.
const CHANNELS: usize = 4 * LANES;

/// Weights less their zero point, and all the rest.
#[derive(Debug)]
pub(super) struct Portable {
    isa: Isa,
    weights: PackedValues<i16>,
    results: Results,
    /// Each some rows of output pixels.
    tasks: usize,
}

#[derive(Debug)]
enum Results {
    Outputs { bias: Vec<i32>, activations: Activations, requantization: Requantization },
    Sums,
}

impl Portable {
    pub(super) fn new(
        shape: &Shape,
        wanted: Wanted<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let weights = wanted.weights();
        #[allow(clippy::cast_possible_truncation)] // Differences of 8-bit numbers.
        let weights = preparation.pack(shape.filter_values(), |centred: &mut [i16], pace| {
            for k in pace.blocks(centred.len(), 1).flatten() {
                centred[k] = weights.centred(k) as i16;
            }
        })?;
        let results = match wanted {
            Wanted::Outputs(&Layer { bias, activations, ref requantization, .. }) => {
                let requantization = requantization.repeated(1, preparation)?;
                let bias = preparation.copied(bias, "a bias")?;
                Results::Outputs { bias, activations, requantization }
            }
            Wanted::Sums(_) => Results::Sums,
        };
        let is_empty = shape.output_pixels() == 0 || shape.output_channels == 0;
        let rows = if is_empty { 0 } else { shape.batch * shape.output[0] };
        let isa = Isa::of(preparation.set());
        Ok(Self { isa, weights, results, tasks: rows.min(MOST_TASKS) })
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
        let Self { shape, activations, weights, bias, requantization } = *self;
        for_each_pixel(shape, lines, stop, |pixel, at, pace| {
            let start = output.places.start(pixel);
            // SAFETY: the caller's promise.
            let to = unsafe { output.values.slice(start, shape.output_channels) };
            let store = |channel: usize, sum: i32| {
                let sum = sum.wrapping_add(bias[channel]);
                to[channel] = activations.signedness.byte(requantization.apply(sum, channel));
            };
            let channels = 0..shape.output_channels;
            isa.run(Pixel { shape, activations, weights, input, at, channels, store, pace });
        });
    }
}

/// Calls a function with each output pixel of some lines, counted through all images, and where it is: image, row and column.
fn for_each_pixel(
    shape: &Shape,
    lines: Range<usize>,
    stop: &Stop,
    mut each: impl FnMut(usize, [usize; 3], &mut Pace<'_>),
) {
    let mut pace = Pace::new(stop);
    let [height, width] = shape.output;
    for line in lines {
        for x in 0..width {
            // Once it is too late, other pixels take their time too.
            if pace.is_over(1) {
                return;
            }
            each(line * width + x, [line / height, line % height, x], &mut pace);
        }
    }
}

/// The sums of some channels of an output pixel, of which compilers make what each instruction set has.
struct Pixel<'a, 'p, F> {
    shape: &'a Shape,
    activations: Activations,
    weights: &'a [i16],
    input: Image<'a, u8>,
    at: [usize; 3],
    channels: Range<usize>,
    store: F,
    pace: &'a mut Pace<'p>,
}

impl<F: FnMut(usize, i32)> Kernel for Pixel<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { shape, activations, weights, input, at: [batch, y, x], .. } = self;
        let Self { channels, mut store, pace, .. } = self;
        let depth = shape.group_input_channels();
        let Activations { signedness, zero_point } = activations;
        let (rows, columns) = (shape.seen_taps(0, y), shape.seen_taps(1, x));
        let [top, left] = [(0, y), (1, x)].map(|(axis, at)| at * shape.stride[axis]);
        for channel in channels {
            if pace.is_over(1) {
                return;
            }
            let group = channel / shape.group_output_channels();
            let mut sum = 0_i32;
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
                            let input = signedness.centred(zero_point, input);
                            sum.wrapping_add(i32::from(input) * i32::from(weight))
                        });
                    }
                }
            }
            store(channel, sum);
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
        let Pass { shape, input, stop, .. } = *pass;
        let (isa, weights) = (self.isa, self.weights.values());
        let lines = part(shape.batch * shape.output[0], self.tasks, task);
        match (&self.results, pass.output) {
            (Results::Outputs { bias, activations, requantization }, Output::Bytes(target)) => {
                let activations = *activations;
                let definition = Definition { shape, activations, weights, bias, requantization };
                // SAFETY: the pixels of different lines are different, and each line is of one task.
                unsafe { definition.lines(isa, (input, target), lines, stop) };
            }
            (Results::Sums, Output::Sums(output)) => {
                for_each_pixel(shape, lines, stop, |pixel, at, pace| {
                    let zero_point = output.zero_point(at[0]).into();
                    let activations = Activations { signedness: Signedness::Unsigned, zero_point };
                    for first in (0..shape.output_channels).step_by(CHANNELS) {
                        let channels = first..shape.output_channels.min(first + CHANNELS);
                        let mut sums = [0; CHANNELS];
                        let store = |channel: usize, sum: i32| sums[channel - first] = sum;
                        let of_pixel = channels.clone();
                        isa.run(Pixel {
                            shape,
                            activations,
                            weights,
                            input,
                            at,
                            channels: of_pixel,
                            store,
                            pace,
                        });
                        let block = Block {
                            pixels: pixel..pixel + 1,
                            channels,
                            sums: &sums,
                            step: CHANNELS,
                            offset: None,
                        };
                        // SAFETY: the pixels of different lines are different, and each line is of one task.
                        unsafe { output.store(block) };
                    }
                });
            }
            _ => unreachable!("a convolution that was prepared for other results"),
        }
    }
}
