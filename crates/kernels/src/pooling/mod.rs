//! AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D, and means over whole images, which are the average with
//! a window as large as the image.
//!
//! Padding is not seen: it adds nothing, and a mean does not count it.

mod float;
mod quantized;
mod small_windows;
#[cfg(test)]
mod tests;

use crate::image::values_needed;
use crate::parts::even_tasks;
use crate::team::{Pace, Stop, Team};
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

/// Elements that are looked at by one task from which on a second thread is worth waking.
const WORK_OF_TASK: usize = 64 * 1024;

/// # Panics
/// If it overflows.
fn product(lengths: [usize; 3]) -> usize {
    let product = lengths.into_iter().try_fold(1, usize::checked_mul);
    product.expect("images beyond memory")
}

impl Shape {
    /// What a pooling of such images is called.
    fn name(&self, reduction: Reduction, elements: &str) -> String {
        let operation = match reduction {
            Reduction::Average => "average pool",
            Reduction::Max => "max pool",
            Reduction::L2 => "l2 pool",
        };
        let [height, width] = self.filter;
        format!("{operation} {height}x{width} {elements}")
    }

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
        product([self.batch, self.input[0], self.input[1]])
    }

    fn output_pixels(&self) -> usize {
        product([self.batch, self.output[0], self.output[1]])
    }

    /// Runs `work` for all rows of output pixels, given by the number of their first pixel, what they
    /// see, and a range of channels.
    fn for_each_row(
        &self,
        team: &mut Team,
        (input, input_stride): (usize, usize),
        (output, output_stride): (usize, usize),
        work: impl Fn(usize, Row<'_>, Range<usize>) + Sync,
    ) {
        let needed = values_needed(self.input_pixels(), self.channels, input_stride);
        assert!(input >= needed, "an input smaller than prepared for");
        let needed = values_needed(self.output_pixels(), self.channels, output_stride);
        assert!(output >= needed, "an output smaller than prepared for");
        if self.output_pixels() == 0 || self.channels == 0 {
            return;
        }
        let taps = self.filter[0].min(self.input[0]) * self.filter[1].min(self.input[1]);
        let total = taps.saturating_mul(self.output_pixels()).saturating_mul(self.channels);
        let tasks = even_tasks(total / WORK_OF_TASK, team.threads(), 2);
        let rows = self.batch * self.output[0];
        // Few rows: the channels are shared, whole cache lines of bytes.
        let parts = if rows >= tasks { 1 } else { tasks.div_ceil(rows) };
        let part = self.channels.div_ceil(parts).next_multiple_of(64);
        let parts = self.channels.div_ceil(part);
        let items = rows * parts;
        let tasks = tasks.min(items);
        let of_row = taps.saturating_mul(self.output[1]);
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for item in items * task / tasks..items * (task + 1) / tasks {
                if pace.is_over(of_row.saturating_mul(part)) {
                    return;
                }
                let (row, first) = (item / parts, item % parts * part);
                let (image, y) = (row / self.output[0], row % self.output[0]);
                let seen = self.seen(0, y);
                let first_row = image * self.input[0];
                let rows = first_row + seen.start..first_row + seen.end;
                let row_of_windows = Row { shape: self, rows, stop };
                work(row * self.output[1], row_of_windows, first..self.channels.min(first + part));
            }
        });
    }
}

/// Channels that count for how long a window takes.
const MOST_CHANNELS: usize = 1 << 20;

/// What the output pixels of a row see.
#[derive(Clone)]
struct Row<'a> {
    shape: &'a Shape,
    /// Rows of the input, counted over all images.
    rows: Range<usize>,
    stop: &'a Stop,
}

impl Row<'_> {
    /// The windows of the output pixels from left to right, as long as they are wanted.
    #[inline(always)]
    fn windows(&self) -> impl Iterator<Item = Window> + '_ {
        let mut pace = Pace::new(self.stop);
        let windows = (0..self.shape.output[1]).map(|x| {
            let columns = self.shape.seen(1, x);
            let first = self.rows.start * self.shape.input[1] + columns.start;
            let (rows, width) = (self.rows.len(), self.shape.input[1]);
            Window { first, rows, columns: columns.len(), width }
        });
        let by_element = self.shape.channels.min(MOST_CHANNELS);
        windows.take_while(move |it| !pace.is_over(it.count().saturating_mul(by_element)))
    }
}

/// Pixels from which on it is asked inside of a window whether to go on.
const MANY_PIXELS: usize = 1024;

/// The input pixels that are seen for one output pixel.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Number of the first pixel.
    first: usize,
    rows: usize,
    columns: usize,
    /// Pixels from one row to the next.
    width: usize,
}

impl Window {
    /// How many pixels there are.
    #[inline(always)]
    fn count(&self) -> usize {
        self.rows * self.columns
    }

    /// Whether it is asked inside of it whether to go on.
    #[inline(always)]
    fn is_large(&self) -> bool {
        self.count() >= MANY_PIXELS
    }

    /// For each row, its pixels.
    #[inline(always)]
    fn pixels(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.rows).map(move |row| {
            let first = self.first + row * self.width;
            first..first + self.columns
        })
    }
}
