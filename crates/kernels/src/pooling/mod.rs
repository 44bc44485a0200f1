//! AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D, and means over whole images, which are the average with
//! a window as large as the image.
//!
//! Padding is not seen: it adds nothing, and a mean does not count it.

mod float;
mod quantized;
#[cfg(test)]
mod tests;

use crate::image::values_needed;
use crate::team::Team;
pub use float::FloatPooling;
pub use quantized::QuantizedPooling;
use std::ops::Range;

/// What a window becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The mean; of stored values the nearest integer, halves away from zero.
    Average,
    /// The greatest; NaN counts only where there is nothing else.
    Max,
    /// The square root of the mean of the squares; not for stored values.
    L2,
}

/// The sizes of a pooling; pairs are height, width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// How many images.
    pub batch: usize,
    /// Of the input.
    pub input: [usize; 2],
    /// Of the output.
    pub output: [usize; 2],
    /// Of input and output.
    pub channels: usize,
    /// Size of the window.
    pub filter: [usize; 2],
    /// From one window to the next, in input pixels.
    pub stride: [usize; 2],
    /// Rows above and columns left of the input.
    pub padding_before: [usize; 2],
}

/// Elements that are looked at for one task to be worth a second thread's while.
const WORK_OF_TASK: usize = 64 * 1024;

impl Shape {
    /// The mean over height and width of `[batch, height, width, channels]`.
    pub fn global(batch: usize, input: [usize; 2], channels: usize) -> Self {
        let (output, stride, padding_before) = ([1, 1], [1, 1], [0, 0]);
        Self { batch, input, output, channels, filter: input, stride, padding_before }
    }

    /// The input's rows or columns that a window sees.
    fn seen(&self, axis: usize, index: usize) -> Range<usize> {
        let first = index.saturating_mul(self.stride[axis]);
        let end = first.saturating_add(self.filter[axis]);
        let inside = |at: usize| at.saturating_sub(self.padding_before[axis]).min(self.input[axis]);
        inside(first)..inside(end)
    }

    fn input_pixels(&self) -> usize {
        self.batch * self.input[0] * self.input[1]
    }

    fn output_pixels(&self) -> usize {
        self.batch * self.output[0] * self.output[1]
    }

    /// Runs `work` for all output pixels, given by their number, the input pixels of their rows, and
    /// a range of channels.
    fn for_each_window(
        &self,
        team: &mut Team,
        (input, input_stride): (usize, usize),
        (output, output_stride): (usize, usize),
        work: impl Fn(usize, Window, Range<usize>) + Sync,
    ) {
        let needed = values_needed(self.input_pixels(), self.channels, input_stride);
        assert!(input >= needed, "an input smaller than prepared for");
        let needed = values_needed(self.output_pixels(), self.channels, output_stride);
        assert!(output >= needed, "an output smaller than prepared for");
        let pixels = self.output_pixels();
        if pixels == 0 || self.channels == 0 {
            return;
        }
        let taps = self.filter[0].min(self.input[0]) * self.filter[1].min(self.input[1]);
        let total = taps.saturating_mul(pixels).saturating_mul(self.channels);
        let threads = team.threads();
        let tasks = if threads == 1 { 1 } else { (total / WORK_OF_TASK).clamp(1, 2 * threads) };
        // Few pixels with many channels: the channels are shared, whole cache lines of bytes.
        let parts = if pixels >= tasks { 1 } else { tasks.div_ceil(pixels) };
        let part = self.channels.div_ceil(parts).next_multiple_of(64);
        let parts = self.channels.div_ceil(part);
        let items = pixels * parts;
        let tasks = tasks.min(items);
        team.run(tasks, &|task| {
            for item in items * task / tasks..items * (task + 1) / tasks {
                let (pixel, first) = (item / parts, item % parts * part);
                let (row, x) = (pixel / self.output[1], pixel % self.output[1]);
                let (image, y) = (row / self.output[0], row % self.output[0]);
                let window = Window {
                    first_row: image * self.input[0],
                    rows: self.seen(0, y),
                    columns: self.seen(1, x),
                    width: self.input[1],
                };
                work(pixel, window, first..self.channels.min(first + part));
            }
        });
    }
}

/// The input pixels that are seen for one output pixel.
#[derive(Debug, Clone)]
struct Window {
    /// Rows of the images before.
    first_row: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    width: usize,
}

impl Window {
    /// How many there are.
    fn count(&self) -> usize {
        self.rows.len() * self.columns.len()
    }

    /// For each row, its pixels.
    #[inline(always)]
    fn pixels(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.rows.clone().map(|y| {
            let row = (self.first_row + y) * self.width;
            row + self.columns.start..row + self.columns.end
        })
    }
}
