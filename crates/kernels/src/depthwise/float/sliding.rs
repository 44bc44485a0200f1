//! [`Sliding`]: depthwise convolutions with the usual square filters, some rows at a time.
#![allow(unsafe_code)]

use super::pixels_microkernel;
use super::sliding_microkernel::{Strip, most_rows, run_strip};
use crate::caches;
use crate::convolution::Shape;
use crate::convolution::float::Pass;
use crate::gemm::float::{Blocking, Epilogue, Panels, Target};
use crate::sharing::shared_tasks;
use crate::team::{Pace, part};
use crate::vector::Isa;
use crate::{Images, InstructionSet, Preparation, Team, TooLarge};
use std::ops::Range;

/// A depthwise convolution cut into strips of rows.
#[derive(Debug)]
pub(crate) struct Sliding {
    shape: Shape,
    isa: Isa,
    panels: Panels,
    epilogue: Epilogue,
    /// The strips of one image.
    strips: Vec<Rows>,
    /// What of the columns is a strip's.
    columns: Vec<Columns>,
    /// Of the input.
    pixel_stride: usize,
    /// Whether strips are single rows, and are computed pixel by pixel with all of their channels.
    is_by_pixels: bool,
    /// The tasks: parts of all strips times parts of the panels.
    strip_parts: usize,
    panel_parts: usize,
}

/// Rows of the output, at distances of `dilation`, that see the same rows of the input.
#[derive(Debug)]
struct Rows {
    first: usize,
    count: usize,
    /// The row of the input that the first one sees by its first tap; it may be padding.
    input: isize,
    /// By row from there on, each `dilation` behind the one before it: whether it is not padding.
    seen: u32,
}

/// Columns of the output, at distances of `dilation`, that see the same columns of the input.
#[derive(Debug)]
struct Columns {
    first: usize,
    count: usize,
    /// The first column of the input that taps can see, and how many there are from there on.
    input: usize,
    seen: usize,
    /// How many columns of padding are before them.
    padding: usize,
}

/// A task should take a few microseconds at least; a thread does some 60 multiplications in a
/// nanosecond here.
const LEAST_PRODUCTS: usize = 200_000;

/// Strips of fewer rows read their input more often than it is worth.
const LEAST_ROWS: usize = 2;

/// Half of the bytes after which a set of the first cache comes again.
const SET_DISTANCE: usize = 2048;

/// Columns and panels of a strip that are computed without a question whether to go on.
const MOST_COLUMNS: usize = 1 << 13;
const MOST_PANELS: usize = 32;

/// Whether pixel by pixel is sooner than a vector of channels at a time, for which cache lines of two vectors are read twice, where the
/// columns that strips of this many rows see do not stay in the first cache until then (Zen 3, 56 sizes: of what is decided, 0.36 to
/// 1.05 of the time).
fn is_sooner_by_pixels(shape: &Shape, pixel_stride: usize, rows: usize) -> bool {
    let pixel_bytes = pixel_stride * size_of::<f32>();
    let seen = (rows - 1) * shape.stride[0] + shape.filter[0];
    let lines = seen.saturating_mul(shape.input[1]);
    // What processors fetch by themselves is less where strides are long.
    let lines = if pixel_bytes >= 1024 { lines } else { lines / 2 };
    match shape.stride[0] {
        1 => pixel_bytes.is_multiple_of(512) && lines > caches::first().lines(pixel_bytes),
        _ => pixel_bytes >= 64,
    }
}

impl Sliding {
    /// Whether there are kernels for such filters.
    pub(crate) fn suits(shape: &Shape) -> bool {
        let [filter, stride] = [shape.filter[0], shape.stride[0]];
        shape.filter == [filter; 2]
            && shape.stride == [stride; 2]
            && shape.input_channels == shape.output_channels
            && matches!(filter, 3 | 5)
            && (stride == 1 || (stride == 2 && shape.dilation == [1, 1]))
    }

    /// How filters are packed for it.
    pub(crate) fn blocking(set: InstructionSet) -> Blocking {
        Blocking { vectors: 1, ..Blocking::of(set) }
    }

    /// Cuts the work for this number of threads.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    pub(crate) fn new(
        shape: &Shape,
        pixel_stride: usize,
        panels: Panels,
        epilogue: Epilogue,
        threads: usize,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let set = preparation.set();
        panels.check(Self::blocking(set), shape.taps(), [1, shape.output_channels]);
        let [filter, stride] = [shape.filter[0], shape.stride[0]];
        let most = most_rows(Isa::of(set).registers(), filter, stride);
        // Pixels at such a distance share a few sets of the first cache, which more rows would fill
        // over and over.
        let collide = (pixel_stride * size_of::<f32>()).is_multiple_of(SET_DISTANCE);
        let most = if collide { most.min(3) } else { most };
        let is_by_pixels = pixels_microkernel::suits(Isa::of(set), filter)
            && is_sooner_by_pixels(shape, pixel_stride, most);
        let most = if is_by_pixels { 1 } else { most };
        let products = shape.output_pixels().saturating_mul(shape.taps() * shape.output_channels);
        let parts = shared_tasks(products, LEAST_PRODUCTS, threads);
        let [row_dilation, column_dilation] = shape.dilation;
        let phases = shape.dilation.map(|dilation| dilation.max(1));
        let phases = [phases[0].min(shape.output[0]), phases[1].min(shape.output[1])];
        // The same number for each thread, if they stay high enough.
        let multiple = if parts > 1 && !shape.batch.is_multiple_of(threads) { threads } else { 1 };
        let strips_of = |rows: usize| {
            let even = rows.div_ceil(most).next_multiple_of(multiple);
            if even * LEAST_ROWS <= rows { even } else { rows.div_ceil(most) }
        };
        let of_phase = strips_of(shape.output[0].div_ceil(phases[0].max(1)));
        let mut strips = preparation.room(phases[0] * of_phase, "strips of rows")?;
        for phase in 0..phases[0] {
            let rows = (shape.output[0] - phase).div_ceil(row_dilation);
            let parts = strips_of(rows);
            for rows in (0..parts).map(|index| part(rows, parts, index)) {
                let first = phase + rows.start * row_dilation;
                let input = (first * stride).cast_signed() - shape.padding_before[0].cast_signed();
                let is_seen = |row: &usize| {
                    let row = input + (row * row_dilation).cast_signed();
                    (0..shape.input[0].cast_signed()).contains(&row)
                };
                let all = (rows.len() - 1) * stride + filter;
                let seen = (0..all).filter(is_seen).map(|row| 1 << row).sum();
                strips.push(Rows { first, count: rows.len(), input, seen });
            }
        }
        // Those of a thread are a part of the image, which it has written itself in the step before.
        strips.sort_unstable_by_key(|rows: &Rows| rows.first);
        // Long ones in parts, mostly one.
        let column_parts = shape.output[1].div_ceil(MOST_COLUMNS.saturating_mul(phases[1].max(1)));
        let count =
            phases[1].checked_mul(column_parts).ok_or(TooLarge::beyond_addresses("columns"))?;
        let mut columns = preparation.room(count, "strips of columns")?;
        columns.extend((0..count).map(|index| {
            let (phase, part) = (index % phases[1], index / phases[1]);
            let all = (shape.output[1] - phase).div_ceil(column_dilation);
            let done = all.min(part * MOST_COLUMNS);
            let first = phase + done * column_dilation;
            let padding = shape.padding_before[1];
            // The first tap of the first column sees the column `first * stride - padding`.
            let before = padding.saturating_sub(first * stride).div_ceil(column_dilation);
            let input = first * stride + before * column_dilation - padding;
            Columns {
                first,
                count: (all - done).min(MOST_COLUMNS),
                input,
                seen: shape.input[1].saturating_sub(input).div_ceil(column_dilation),
                padding: before,
            }
        }));
        columns.retain(|columns: &Columns| columns.count > 0);
        let all = shape.batch * strips.len();
        // By strips, if they can be shared evenly: each thread then reads what it has written itself.
        let is_even = all.is_multiple_of(threads.max(1)) || all >= 4 * threads;
        let (strip_parts, panel_parts) = if is_even || panels.count() < parts {
            (parts.min(all).max(1), 1)
        } else {
            (1, parts.min(threads))
        };
        let isa = Isa::of(set);
        Ok(Self {
            shape: *shape,
            isa,
            panels,
            epilogue,
            strips,
            columns,
            pixel_stride,
            is_by_pixels,
            strip_parts,
            panel_parts,
        })
    }

    /// By task, how many rows of the output it computes, from which one on.
    #[cfg(test)]
    pub(super) fn row_parts(&self) -> Vec<Range<usize>> {
        assert_eq!(self.panel_parts, 1, "cut by channels");
        let strips = |task| &self.strips[part(self.strips.len(), self.strip_parts, task)];
        let rows = |strips: &[Rows]| {
            let first = strips.first().map_or(0, |rows| rows.first);
            first..first + strips.iter().map(|rows| rows.count).sum::<usize>()
        };
        (0..self.strip_parts).map(|task| rows(strips(task))).collect()
    }

    /// # Panics
    /// If an image is smaller than the shape says, or the stride of the input's pixels is another than was prepared for.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, f32>) {
        if let Some(pass) = Pass::new(&self.shape, self.pixel_stride, images) {
            let tasks = self.strip_parts * self.panel_parts;
            team.run_long(tasks, &|task, stop| self.task(&pass, task, &mut Pace::new(stop)));
        }
    }

    /// As [`Self::run`], by the calling thread, inside a task.
    ///
    /// # Panics
    /// As of [`Self::run`].
    pub(crate) fn run_in_task(&self, pace: &mut Pace<'_>, images: Images<'_, f32>) {
        if let Some(pass) = Pass::new(&self.shape, self.pixel_stride, images) {
            for task in 0..self.strip_parts * self.panel_parts {
                self.task(&pass, task, pace);
            }
        }
    }

    fn task(&self, pass: &Pass<'_>, task: usize, pace: &mut Pace<'_>) {
        let Self { panels: all, strips, strip_parts, panel_parts, .. } = self;
        let panels = part(all.count(), *panel_parts, task % panel_parts);
        for strip in part(self.shape.batch * strips.len(), *strip_parts, task / panel_parts) {
            for columns in &self.columns {
                // Mostly all of them.
                for first in panels.clone().step_by(MOST_PANELS) {
                    let panels = first..panels.end.min(first + MOST_PANELS);
                    let products = panels.len() * all.blocking().columns() * self.shape.taps();
                    if pace.is_over(columns.count.saturating_mul(products)) {
                        return;
                    }
                    let rows = &strips[strip % strips.len()];
                    self.strip(pass, strip / strips.len(), rows, columns, panels);
                }
            }
        }
    }

    fn strip(
        &self,
        pass: &Pass<'_>,
        image: usize,
        rows: &Rows,
        columns: &Columns,
        panels: Range<usize>,
    ) {
        if panels.is_empty() {
            return;
        }
        let Self { shape, isa, panels: all, epilogue, .. } = self;
        let [row_dilation, column_dilation] = shape.dilation;
        let (first, last) = (all.panel(panels.start), all.panel(panels.end - 1));
        let channel = first.columns.start;
        let [height, width] = shape.input;
        let stride = pass.input.pixel_stride;
        // Without padding rows this is the address of a pixel; with them nothing is read there.
        let row = (image * height).cast_signed() + rows.input;
        let input = pass
            .input
            .values
            .as_ptr()
            .wrapping_offset(row.wrapping_mul(width.wrapping_mul(stride).cast_signed()))
            .wrapping_add(columns.input.wrapping_mul(stride).wrapping_add(channel));
        let pixel = (image * shape.output[0] + rows.first) * shape.output[1] + columns.first;
        // Used from a row of the output to another: with a dilation beyond it there is only one, and
        // the product may be more than can be addressed.
        let row_step =
            |stride: usize| row_dilation.wrapping_mul(shape.output[1]).wrapping_mul(stride);
        let target = pass.target(pixel, channel..last.columns.end);
        let Target { output, output_stride, residual, residual_stride, columns: channels } = target;
        let strip = Strip {
            input,
            row_step: row_dilation.wrapping_mul(width.wrapping_mul(stride)),
            column_step: column_dilation.wrapping_mul(stride),
            rows_seen: rows.seen,
            columns: columns.seen,
            padding: columns.padding,
            output,
            output_row_step: row_step(output_stride),
            output_column_step: column_dilation.wrapping_mul(output_stride),
            residual,
            residual_row_step: row_step(residual_stride),
            residual_column_step: column_dilation.wrapping_mul(residual_stride),
            width: columns.count,
            channels,
            panels: all.values_from_to(all.all_values(), &first, &last).as_ptr(),
            epilogue,
        };
        // SAFETY: a row that is seen is one of the image, and so are the columns from `input` on, as
        // `new` has found for this shape; `Pass::new` has compared the sizes of input, output and residual
        // with the shape, and phases and parts of rows, columns and panels do not overlap. Panels of a
        // vector are contiguous, and `values_from_to` has checked that all of them exist.
        unsafe {
            match self.is_by_pixels {
                true => pixels_microkernel::run_row(*isa, shape.stride[0], &strip),
                false => run_strip(*isa, [shape.filter[0], shape.stride[0], rows.count], &strip),
            }
        }
    }
}
