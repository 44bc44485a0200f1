//! AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D, and means over whole images, which are the average with
//! a window as large as the image.
//!
//! Padding is not seen: it adds nothing, and a mean does not count it.

mod few_channels;
mod float;
mod quantized;
mod small_windows;
#[cfg(test)]
mod tests;

use crate::disjoint::DisjointOutput;
use crate::image::{Image, ImageMut};
use crate::preparation::product;
use crate::sharing::even_tasks;
use crate::team::{Pace, Stop, Team, part};
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

    /// The same of images of one column as of images of one row, whose windows are computed together; unless threads would share
    /// the rows.
    fn along_rows(&self, threads: usize) -> Self {
        let is_column = self.input[1] == 1 && self.output[1] == 1 && !self.seen(1, 0).is_empty();
        if !is_column || threads > 1 && self.work() >= WORK_OF_TASK {
            return *self;
        }
        let row = |[height, _]: [usize; 2], first| [first, height];
        Self {
            input: row(self.input, 1),
            output: row(self.output, 1),
            filter: row(self.filter, 1),
            stride: row(self.stride, 1),
            padding_before: row(self.padding_before, 0),
            ..*self
        }
    }

    /// The input's rows or columns that a window sees.
    fn seen(&self, axis: usize, index: usize) -> Range<usize> {
        let first = index.saturating_mul(self.stride[axis]);
        let end = first.saturating_add(self.filter[axis]);
        let inside = |at: usize| at.saturating_sub(self.padding_before[axis]).min(self.input[axis]);
        inside(first)..inside(end)
    }

    /// The output's columns whose windows see all of their columns.
    fn whole(&self) -> Range<usize> {
        let [stride, padding] = [self.stride[1], self.padding_before[1]];
        let first = padding.div_ceil(stride).min(self.output[1]);
        let end = match self.input[1].saturating_add(padding).checked_sub(self.filter[1]) {
            Some(last) => (last / stride + 1).min(self.output[1]),
            None => 0,
        };
        first..end
    }

    /// How many pixels a window sees at most.
    fn taps(&self) -> usize {
        self.filter[0].min(self.input[0]) * self.filter[1].min(self.input[1])
    }

    /// Elements that all windows see, at most.
    fn work(&self) -> usize {
        self.taps().saturating_mul(self.output_pixels()).saturating_mul(self.channels)
    }

    /// # Panics
    /// If they are beyond what can be addressed.
    fn input_pixels(&self) -> usize {
        product(&[self.batch, self.input[0], self.input[1]]).expect("images beyond memory")
    }

    /// # Panics
    /// As of [`Self::input_pixels`].
    fn output_pixels(&self) -> usize {
        product(&[self.batch, self.output[0], self.output[1]]).expect("images beyond memory")
    }

    /// Runs `work` for all rows of output pixels, some channels at a time.
    ///
    /// # Panics
    /// If an image is too small.
    fn for_each_row<T: Copy + Send + Sync>(
        &self,
        team: &mut Team,
        input: Image<'_, T>,
        output: ImageMut<'_, T>,
        work: impl Fn(Pixels<'_, T>) + Sync,
    ) {
        input.check("input", self.input_pixels(), self.channels);
        if output.check("output", self.output_pixels(), self.channels) == 0 {
            return;
        }
        let (output, stride) = (DisjointOutput::new(output.values), output.pixel_stride);
        let taps = self.taps();
        let tasks = even_tasks(self.work() / WORK_OF_TASK, team.threads(), 2);
        let rows = self.batch * self.output[0];
        // Few rows: the channels are shared, whole cache lines of bytes.
        let parts = if rows >= tasks { 1 } else { tasks.div_ceil(rows) };
        let of_part = self.channels.div_ceil(parts).next_multiple_of(64);
        let parts = self.channels.div_ceil(of_part);
        let items = rows * parts;
        let tasks = tasks.min(items);
        let of_row = taps.saturating_mul(self.output[1]);
        team.run_long(tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for item in part(items, tasks, task) {
                if pace.is_over(of_row.saturating_mul(of_part)) {
                    return;
                }
                let (row, first) = (item / parts, item % parts * of_part);
                let (image, y) = (row / self.output[0], row % self.output[0]);
                let seen = self.seen(0, y);
                let first_row = image * self.input[0];
                work(Pixels {
                    shape: self,
                    input,
                    rows: first_row + seen.start..first_row + seen.end,
                    channels: first..self.channels.min(first + of_part),
                    output: &output,
                    first: row * self.output[1],
                    stride,
                    stop,
                });
            }
        });
    }
}

/// A row of output pixels, some channels of them.
struct Pixels<'a, T> {
    shape: &'a Shape,
    input: Image<'a, T>,
    /// Rows of the input that are seen, counted over all images.
    rows: Range<usize>,
    channels: Range<usize>,
    /// Of which these pixels' channels are no one else's.
    output: &'a DisjointOutput<'a, T>,
    /// Number of the first pixel.
    first: usize,
    /// From a pixel to the next one in the output.
    stride: usize,
    stop: &'a Stop,
}

impl<T> Pixels<'_, T> {
    /// The windows of the output pixels from left to right, those side by side together that see the same number of columns.
    #[inline(always)]
    fn runs(&self) -> impl Iterator<Item = Run> {
        let shape = self.shape;
        let width = shape.output[1];
        let window = |x: usize| {
            let columns = shape.seen(1, x);
            let first = self.rows.start * shape.input[1] + columns.start;
            Window { first, rows: self.rows.len(), columns: columns.len(), width: shape.input[1] }
        };
        let whole = shape.whole();
        let mut next = 0;
        std::iter::from_fn(move || {
            let x = next;
            next = if whole.contains(&x) { whole.end } else { x + 1 };
            (x < width).then(|| Run {
                window: window(x),
                count: next - x,
                start: (self.first + x) * self.stride + self.channels.start,
            })
        })
    }
}

/// Windows side by side of one size.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The first one; the next one sees pixels one stride on.
    window: Window,
    count: usize,
    /// Where in the output the channels of the first one begin.
    start: usize,
}

impl Run {
    /// # Panics
    /// If the values end before the last of the windows does.
    fn check<T>(&self, pixels: &Pixels<'_, T>) {
        let Pixels { shape, input, channels, .. } = pixels;
        let Self { window, count, .. } = *self;
        if window.count() > 0 && count > 0 {
            let first = window.first + (count - 1) * shape.stride[1];
            let last = first + (window.rows - 1) * window.width + window.columns - 1;
            let needed = last * input.pixel_stride + channels.end;
            assert!(needed <= input.values.len(), "an image smaller than was checked");
        }
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
