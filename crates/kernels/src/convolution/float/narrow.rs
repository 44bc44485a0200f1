//! [`Narrow`]: convolutions of images with few channels, as the first ones of networks are.
//!
//! What an output pixel sees in one row of the image is side by side, and the next pixel sees the
//! same some values on. So a tile of pixels needs no table of addresses: its rows are those of the
//! image with padding at both ends, copied while they are in use, and its columns are at a distance.
#![allow(unsafe_code)]

use super::Pass;
use crate::convolution::Shape;
use crate::convolution::row::copy_row;
use crate::gemm::float::{Blocking, Epilogue, Layer, Panels, Run, Target, finish, largest_tile};
use crate::preparation::product;
use crate::sharing::{for_each_task, shared_tasks};
use crate::team::{Pace, part};
use crate::unrolled::unrolled;
use crate::vector::pointers::load;
use crate::vector::{Isa, Kernel, Simd};
use crate::{Images, InstructionSet, Line, Preparation, Team, TooLarge};
use std::ops::Range;

/// A convolution of an image with few channels, cut into tasks.
#[derive(Debug)]
pub(super) struct Narrow {
    shape: Shape,
    isa: Isa,
    panels: Panels,
    /// All of them: a tile takes less time than finding one.
    runs: Vec<Run>,
    epilogue: Epilogue,
    /// Pixels of a tile; the last one of a line overlaps the one before it.
    pixels: usize,
    /// Values of a padded row of the image, to the end of a cache line.
    row_values: usize,
    /// In how many tasks the output's lines are cut.
    parts: usize,
}

/// Images of more channels are left to other methods; where outputs are a single vector, such of more.
const FEW_CHANNELS: usize = 8;
const FEW_CHANNELS_TO_FEW: usize = 32;

/// Filters of more rows are left to other methods, so that the addresses of rows fit on the stack.
const MOST_ROWS: usize = 16;

/// A task should take a few microseconds at least; a thread does 60 to 120 multiplications in a
/// nanosecond.
const LEAST_PRODUCTS: usize = 500_000;

impl Narrow {
    /// Whether it can be done so. `contiguous` says whether pixels are side by side without gaps.
    pub(super) fn suits(shape: &Shape, set: InstructionSet, contiguous: bool) -> bool {
        let is_vector = shape.output_channels <= Isa::of(set).lanes();
        let most = if is_vector { FEW_CHANNELS_TO_FEW } else { FEW_CHANNELS };
        shape.groups == 1
            && contiguous
            && (1..=most).contains(&shape.input_channels)
            && (1..=MOST_ROWS).contains(&shape.filter[0])
            && shape.filter[1] > 0
            && shape.dilation == [1, 1]
            && shape.output_pixels() > 0
            && Self::row_values(shape).is_some_and(|values| {
                // Of each image the first rows, and then for each line those that are new.
                let new = shape.stride[0].min(shape.filter[0]);
                let rows = shape.output[0].checked_mul(new);
                let rows = rows.and_then(|rows| rows.checked_add(shape.filter[0]));
                let copied = rows.and_then(|rows| product(&[shape.batch, rows, values]));
                copied.is_some_and(|copied| shape.is_copy_small(copied))
            })
    }

    /// Values of a padded row of the image, to the end of a cache line.
    fn row_values(shape: &Shape) -> Option<usize> {
        let columns = shape.reach(1, shape.output[1]);
        columns.checked_mul(shape.input_channels)?.checked_next_multiple_of(16)
    }

    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If it does not [suit](Self::suits) an image without gaps.
    pub(super) fn new(
        shape: &Shape,
        Layer { filter, bias, epilogue }: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        assert!(
            Self::suits(shape, preparation.set(), true),
            "not a shape of few channels: {shape:?}"
        );
        let (blocking, columns) = (Blocking::of(preparation.set()), [1, shape.output_channels]);
        let (depth, bias) = (shape.taps() * shape.input_channels, |n: usize| bias[n]);
        let panels = Panels::pack_columns(preparation, blocking, depth, columns, bias, filter)?;
        let threads = preparation.threads();
        let registers = Isa::of(preparation.set()).registers();
        let vectors = shape.output_channels.div_ceil(blocking.lanes).min(blocking.vectors);
        let pixels = pixels_of_tile(shape.output[1], most_pixels(registers, vectors));
        let products = shape.output_pixels().saturating_mul(shape.filter_values());
        let parts = shared_tasks(products, LEAST_PRODUCTS, threads);
        let row_values = Self::row_values(shape).ok_or(TooLarge::beyond_addresses("rows"))?;
        let parts = parts.min(shape.batch * shape.output[0]);
        preparation.check_scratch::<f32>(&[parts, shape.filter[0], row_values])?;
        let all = || panels.runs(0..panels.count(), usize::MAX);
        let mut runs = preparation.room(all().count(), "panels")?;
        runs.extend(all());
        let isa = Isa::of(preparation.set());
        Ok(Self { shape: *shape, isa, panels, runs, epilogue, pixels, row_values, parts })
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        self.parts * self.shape.filter[0] * self.row_values * size_of::<f32>()
    }

    /// # Panics
    /// If the input, the residual operand, the output or the scratch memory is too small, or there are gaps between the
    /// input's pixels.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let shape = &self.shape;
        let channels = shape.input_channels;
        let Some(pass) = Pass::new(shape, channels, images) else { return };
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        assert!(size_of_val(scratch) >= self.scratch_bytes(), "too little scratch");
        let columns = shape.reach(1, shape.output[1]);
        assert!(columns * channels <= self.row_values, "{columns} columns of a row");
        let by_task = shape.filter[0] * self.row_values;
        for_each_task(team, self.parts, (scratch, by_task), |task, scratch, stop| {
            let lines = part(shape.batch * shape.output[0], self.parts, task);
            self.lines(&pass, lines, scratch, Pace::new(stop));
        });
    }

    fn lines(&self, pass: &Pass<'_>, lines: Range<usize>, scratch: &mut [f32], mut pace: Pace<'_>) {
        let Self { ref shape, row_values, .. } = *self;
        let height = shape.filter[0];
        // The rows that a line sees, from above, begin anywhere in here: each place is here twice.
        assert_eq!(scratch.len(), height * row_values, "values of scratch memory");
        let start = scratch.as_mut_ptr();
        let mut places = [start; 2 * MOST_ROWS];
        for (index, place) in places[..2 * height].iter_mut().enumerate() {
            *place = start.wrapping_add(index % height * row_values);
        }
        let mut first = 0;
        let mut image_before = None;
        for line in lines {
            let (image, y) = (line / shape.output[0], line % shape.output[0]);
            let new = match image_before.replace(image) {
                Some(before) if before == image => shape.stride[0].min(height),
                _ => height,
            };
            // Rows that the line before has seen too are there already.
            first += new;
            if first >= height {
                first -= height;
            }
            let rows = &places[first..first + height];
            let row = y * shape.stride[0] + height - new;
            for (index, place) in rows[height - new..].iter().enumerate() {
                // SAFETY: the scratch memory has `row_values` values for each place, and no other slice of them is in use.
                let to = unsafe { std::slice::from_raw_parts_mut(*place, row_values) };
                copy_row(shape, pass.input, 0.0, [image, row + index], to, &mut pace);
            }
            self.line(pass, line, rows, &mut pace);
        }
    }

    /// A line of the output, all channels.
    fn line(&self, pass: &Pass<'_>, line: usize, rows: &[*mut f32], pace: &mut Pace<'_>) {
        let Self { shape, isa, panels, runs, epilogue, pixels, .. } = self;
        let width = shape.output[1];
        let step = shape.stride[1] * shape.input_channels;
        let tiles = width.div_ceil(*pixels);
        let products = pixels * shape.filter_values();
        for first in (0..tiles).step_by(MOST_TILES) {
            let count = MOST_TILES.min(tiles - first);
            if pace.is_over(count * products) {
                return;
            }
            for run in runs {
                let panel = &run.first;
                let strip = Strip {
                    tiles: first..first + count,
                    width,
                    rows,
                    step,
                    span: shape.filter[1] * shape.input_channels,
                    panel: panels.values_of_run(panels.all_values(), run).as_ptr(),
                    panels: run.count,
                    target: pass.target(line * width, panel.columns.clone()),
                    epilogue,
                };
                // SAFETY: a row has the values of all columns that pixels of a line see, which `run` has
                // compared with `row_values`. A line has no fewer pixels than a tile, as `new` has seen. The panels have as many rows
                // as the filter has values for a channel, and are for the vectors of `isa`; of more than one, all are
                // whole. Output and residual were seen by `run` to have all pixels and
                // channels, and each line is one task's only.
                unsafe { run_strip(*isa, *pixels, panel.vectors, &strip) };
            }
        }
    }
}

/// Tiles that are computed without a question whether to go on.
const MOST_TILES: usize = 16;

/// Tiles of a line, and the channels of some panels.
struct Strip<'a> {
    /// Each of the same number of pixels side by side; the last one of a line overlaps the one before it.
    tiles: Range<usize>,
    /// Pixels of the line.
    width: usize,
    /// The rows of the image that are seen.
    rows: &'a [*mut f32],
    /// From one pixel to what the next one sees.
    step: usize,
    /// How many values of each row a pixel sees.
    span: usize,
    panel: *const f32,
    /// How many panels there are; of more than one each has all columns.
    panels: usize,
    target: Target,
    epilogue: &'a Epilogue,
}

/// How many values of a row are read together, and of what is left of it.
const FOUR: usize = 4;
const TWO: usize = 2;

macro_rules! for_pixels {
    ($body:block) => {
        unrolled! { PIXEL < PIXELS, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 => $body }
    };
}

macro_rules! for_vectors {
    ($body:block) => {
        unrolled! { VECTOR < VECTORS, 0 1 => $body }
    };
}

struct Microkernel<'a, const PIXELS: usize, const VECTORS: usize>(&'a Strip<'a>);

impl<const PIXELS: usize, const VECTORS: usize> Kernel for Microkernel<'_, PIXELS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Nothing asks for larger tiles, and what is never run need not be compiled.
        if const {
            PIXELS > most_pixels(S::REGISTERS, VECTORS) || VECTORS > largest_tile(S::REGISTERS)[1]
        } {
            unreachable!("no such tile");
        }
        let strip = self.0;
        // A copy, which no store to the output can be thought to change.
        let epilogue = *strip.epilogue;
        // Three pixels from one address, by the way that processors compute addresses.
        let (once, twice, group) = (strip.step, 2 * strip.step, 3 * strip.step);
        for index in strip.tiles.clone() {
            let x = (index * PIXELS).min(strip.width - PIXELS);
            let mut target = strip.target.at_row(x);
            let mut panel = strip.panel;
            for _ in 0..strip.panels {
                // SAFETY: as `run_strip` was promised.
                unsafe {
                    let mut sums = [[simd.splat(0.0); VECTORS]; PIXELS];
                    for_vectors!({
                        let bias = load(simd, panel.add(VECTOR * S::LANES));
                        for_pixels!({ sums[PIXEL][VECTOR] = bias });
                    });
                    panel = panel.add(VECTORS * S::LANES);
                    // What one value of each pixel adds.
                    macro_rules! step {
                        ($values:expr, $weights:expr) => {
                            let (values, from) = ($values, $weights);
                            let mut weights = [simd.splat(0.0); VECTORS];
                            for_vectors!({
                                weights[VECTOR] = load(simd, from.add(VECTOR * S::LANES))
                            });
                            for_pixels!({
                                let of_group = values.add(group.wrapping_mul(PIXEL / 3));
                                let value = simd.splat(*match PIXEL % 3 {
                                    0 => of_group,
                                    1 => of_group.add(once),
                                    _ => of_group.add(twice),
                                });
                                for_vectors!({
                                    sums[PIXEL][VECTOR] =
                                        simd.fma(value, weights[VECTOR], sums[PIXEL][VECTOR]);
                                });
                            });
                        };
                    }
                    for row in strip.rows {
                        let mut at = row.cast_const().add(x * strip.step);
                        // Four at a time: rows of filters are short, and a loop of few rounds costs as much as they do.
                        let mut left = strip.span;
                        while left >= 4 {
                            unrolled! { ROUND < FOUR, 0 1 2 3 => {
                                step!(at.add(ROUND), panel.add(ROUND * VECTORS * S::LANES));
                            } }
                            at = at.add(4);
                            panel = panel.add(4 * VECTORS * S::LANES);
                            left -= 4;
                        }
                        if left & 2 != 0 {
                            unrolled! { ROUND < TWO, 0 1 => {
                                step!(at.add(ROUND), panel.add(ROUND * VECTORS * S::LANES));
                            } }
                            at = at.add(2);
                            panel = panel.add(2 * VECTORS * S::LANES);
                        }
                        if left & 1 != 0 {
                            step!(at, panel);
                            panel = panel.add(VECTORS * S::LANES);
                        }
                    }
                    finish(simd, &target, &epilogue, sums);
                }
                // The next panel is right behind this one.
                target = target.at_column(VECTORS * S::LANES);
            }
        }
    }
}

/// Pixels of a tile whose sums, of this number of vectors, fit in these registers.
const fn most_pixels(registers: usize, vectors: usize) -> usize {
    match (registers, vectors) {
        (32.., _) => 14,
        (16.., 1) => 12,
        (16.., _) => 6,
        _ => 5,
    }
}

/// How long a tile takes besides what its pixels take, in pixels.
const OF_TILE: usize = 3;

/// Pixels of the tiles that lines of this width take the least time with.
fn pixels_of_tile(width: usize, most: usize) -> usize {
    let sizes = [14, 12, 7, 6, 5, 3, 1].into_iter().filter(|it| *it <= most.min(width));
    sizes.min_by_key(|it| width.div_ceil(*it) * (it + OF_TILE)).unwrap_or(1)
}

/// Computes some tiles of a line.
///
/// # Safety
/// The line has `pixels` pixels at least, and each row `(width - 1) * step + span` values; a panel is `vectors` vectors
/// wide, with the biases and a row for each of the rows' span; `columns` is more than those of all
/// vectors but the last and at most those of all, which it is if there is more than one panel; output and residual have
/// the columns of all panels for each pixel of the line, and no one else touches those of the output.
unsafe fn run_strip(isa: Isa, pixels: usize, vectors: usize, strip: &Strip<'_>) {
    macro_rules! choose {
        ($(($pixels:literal, $vectors:literal))*) => {
            match (pixels, vectors) {
                $(($pixels, $vectors) => isa.run(Microkernel::<$pixels, $vectors>(strip)),)*
                _ => unreachable!("no tile of {pixels} pixels and {vectors} vectors"),
            }
        };
    }
    choose! {
        (1, 1) (3, 1) (5, 1) (6, 1) (7, 1) (12, 1) (14, 1)
        (1, 2) (3, 2) (5, 2) (6, 2) (7, 2) (12, 2) (14, 2)
    }
}
