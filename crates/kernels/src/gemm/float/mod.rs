//! Matrix products of float32: what convolutions, fully connected layers and products of two
//! activations come down to.
//!
//! `output[M][N] = epilogue(left[M][K] * right[K][N] + bias[N])`. The right side is packed into
//! [`Panels`], a few vectors wide. The left side is read in place: a row of it may be in several
//! *segments* at different places ([`Rows`]), which is how a convolution is a matrix product without
//! anything being copied. The output is computed in tiles of some rows by one panel, whose sums stay
//! in registers over the whole depth K.
#![allow(unsafe_code)]

mod epilogue;
pub(crate) mod few_columns;
mod layer;
pub(crate) mod matrix;
mod microkernel;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod pack;
mod packed;
mod panels;
#[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
mod split;
mod tile;
mod tile_rows;
#[cfg(target_arch = "x86_64")]
mod turn_avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod turn_avx512;

pub use epilogue::Epilogue;
pub(crate) use few_columns::FewColumns;
pub use layer::Layer;
pub(crate) use microkernel::{Blocking, largest_tile, run_tile};
pub(crate) use packed::PackedProduct;
pub(crate) use panels::{Panels, Run, Unpacked};
#[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
pub(crate) use split::SplitProduct;
pub(crate) use tile::{SECOND_CACHE, Target, Tile, ahead, finish, prefetch};
pub(crate) use tile_rows::{Below, TileRows};

use crate::caches;
use crate::disjoint::DisjointOutput;
use crate::image::{Places, values_needed};
use crate::preparation::product;
use crate::sharing::{affordable_tasks, for_each_task, shared_tasks};
use crate::team::{Pace, Stop, WORK_BETWEEN, part};
use crate::vector::Isa;
use crate::{Image, ImageMut, InstructionSet, Line, Team};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The left side of a product: where its rows are.
///
/// # Safety
/// At each address that [`Self::locate`] writes, and each multiple of [`Self::group_distance`] behind it, one for each group, there
/// are `segment_depth` values, which stay there unchanged as long as the trait object and the scratch memory live. If there is a
/// [`Self::row_distance`], that is where all rows are.
pub(crate) unsafe trait Rows: Sync {
    /// In how many segments a row is stored, at most [`MOST_SEGMENTS`].
    fn segments(&self) -> usize;

    /// How many values of a group a segment has. Segments times this is the depth.
    fn segment_depth(&self) -> usize;

    /// Of how many groups there are values at each address.
    fn groups(&self) -> usize;

    /// How many values behind those of a group the next one's are.
    fn group_distance(&self) -> usize {
        self.segment_depth()
    }

    /// How many values behind each row the next one is, if that is so for all of them and they have one segment.
    fn row_distance(&self) -> Option<usize> {
        None
    }

    /// How many values of scratch memory [`Self::locate`] needs for this many rows.
    fn scratch_values(&self, rows: usize) -> usize {
        let _ = rows;
        0
    }

    /// Writes where the segments of some rows are: those of all rows in the first segment, then those
    /// in the second. At each there are the values of all groups.
    fn locate(&self, rows: Range<usize>, scratch: &mut [f32], to: &mut [*const f32]);
}

/// See [`Rows::segments`].
pub(crate) const MOST_SEGMENTS: usize = 64;

/// What is known of [`Rows`] before there are values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsPlan {
    /// How many rows.
    pub(crate) count: usize,
    /// Rows of a line, whose outputs are at equal distances. The count is a multiple of it.
    pub(crate) line: usize,
    /// Different values of the left side, in bytes.
    pub(crate) bytes: usize,
    /// From a row to the next one of its line, if they are at equal distances; otherwise 0.
    pub(crate) row_bytes: usize,
    /// Scratch values for a tile of the most rows.
    pub(crate) scratch_values: usize,
}

impl RowsPlan {
    /// Values of scratch memory that a task needs: whole cache lines.
    fn task_scratch_values(&self) -> usize {
        self.scratch_values.next_multiple_of(16)
    }

    /// # Panics
    /// If rows are not as deep, or need more scratch memory than was planned to locate this many of them.
    fn check(&self, rows: &dyn Rows, depth: usize, located: usize) {
        assert!(rows.segments() <= MOST_SEGMENTS, "too many segments");
        assert_eq!(rows.segments() * rows.segment_depth(), depth, "another depth");
        assert!(
            rows.scratch_values(located) <= self.scratch_values,
            "more scratch memory than was planned"
        );
    }
}

/// What a product is computed of beside its right side, and where: the output's pixels are its rows.
pub(crate) struct Arguments<'a> {
    pub(crate) rows: &'a dyn Rows,
    /// What is added, if anything.
    pub(crate) residual: Option<Image<'a, f32>>,
    pub(crate) output: ImageMut<'a, f32>,
    pub(crate) scratch: &'a mut [Line],
}

impl Arguments<'_> {
    /// How many values of the output there must be.
    ///
    /// # Panics
    /// If the output or the residual is too small.
    fn check(&self, rows: usize, columns: usize) -> usize {
        if let Some(residual) = self.residual {
            residual.check("residual operand", rows, columns);
        }
        self.output.check("output", rows, columns)
    }
}

/// A matrix product with its right side packed and its work cut into tasks.
#[derive(Debug)]
pub(crate) struct Gemm {
    isa: Isa,
    rows: RowsPlan,
    panels: Panels,
    epilogue: Epilogue,
    /// Over how many tiles the rows are spread, those of each line evenly.
    tiles: usize,
    tiles_by_line: usize,
    /// The tasks: parts of the tiles times parts of the panels.
    tile_parts: usize,
    panel_parts: usize,
    /// Tiles that are computed with one panel before the next one's turn; 1 if all panels of a task
    /// stay in the cache, or come as fast as they are needed.
    tiles_by_panel: usize,
}

/// A task should take a few microseconds at least; a thread does 60 to 120 multiplications in a
/// nanosecond.
const LEAST_PRODUCTS: usize = 500_000;

/// If the right side has more than this many times the left side's bytes, the threads share its columns, and not the rows.
const MOST_OF_LEFT: usize = 4;

/// Tiles with fewer rows than this load weights more often than they are worth.
const LEAST_ROWS: usize = 8;

/// Over how many tiles of at most this many rows to spread all: over the same number for each thread, if they
/// stay high enough.
fn even_tiles(rows: usize, most: usize, threads: usize) -> usize {
    let least = rows.div_ceil(most).max(1);
    let even = least.next_multiple_of(threads.max(1));
    if rows / even >= LEAST_ROWS.min(most - most / 4) { even } else { least }
}

/// How large panels may be to be read anew for each tile of rows. A tile of AVX2 needs eleven bytes of them in a cycle, and takes 30 to 60
/// nanoseconds less where it is followed by one beside it. Other tiles have not been measured.
fn streamed_bytes(set: InstructionSet) -> usize {
    match set {
        InstructionSet::Avx2 => caches::streamed_bytes() / 2,
        _ => 0,
    }
}

impl Gemm {
    /// Cuts a product into tasks for this number of threads. Its [scratch memory](Self::checked_scratch_bytes) is to be
    /// checked.
    pub(crate) fn new(
        set: InstructionSet,
        threads: usize,
        rows: RowsPlan,
        panels: Panels,
        epilogue: Epilogue,
    ) -> Self {
        let lanes = Blocking::of(set).lanes;
        assert_eq!(panels.blocking().lanes, lanes, "panels for vectors of other lanes");
        let lines = rows.count.checked_div(rows.line).unwrap_or(0);
        let panel_bytes = panels.count_values() * size_of::<f32>();
        let most_rows = caches::first().rows(rows.row_bytes, panels.blocking().rows);
        // By rows, each thread reads what it has written itself in the step before, and all weights;
        // by columns it reads its own weights, and all rows.
        let is_by_rows = panel_bytes <= rows.bytes.saturating_mul(MOST_OF_LEFT);
        let tiles_by_line = if lines == 1 && is_by_rows {
            even_tiles(rows.line, most_rows, threads)
        } else {
            rows.line.div_ceil(most_rows).max(1)
        };
        let tiles = (lines * tiles_by_line).max(1);
        let products = rows.count.saturating_mul(panels.depth()).saturating_mul(panels.columns());
        let parts = shared_tasks(products, LEAST_PRODUCTS, threads);
        let of_part = rows.scratch_values.saturating_mul(size_of::<f32>());
        let parts = affordable_tasks(parts, of_part, panel_bytes);
        // The rest of the second cache is for what is read once.
        let most = caches::second_bytes() / 4 * 3;
        let is_near = panel_bytes <= most || panel_bytes <= streamed_bytes(set);
        let is_even = tiles.is_multiple_of(threads.max(1)) || tiles >= 4 * threads;
        let (tile_parts, panel_parts) = if is_even && is_by_rows {
            // Panels that are not near are read again for each part of the rows. Then these are as large as they can
            // be while they stay there themselves, and each thread has the same number of them.
            let of_rows = rows.bytes.div_ceil(most.max(1)).max(1).next_multiple_of(threads.max(1));
            let tile_parts = if is_near { parts } else { parts.min(of_rows) };
            let tile_parts = tile_parts.min(tiles);
            (tile_parts, (parts / tile_parts).clamp(1, panels.count().max(1)))
        } else {
            let panel_parts = parts.min(panels.count().max(1));
            ((parts / panel_parts).clamp(1, tiles), panel_parts)
        };
        let tiles_by_panel = if is_near {
            1
        } else {
            (most.saturating_mul(tiles) / rows.bytes.max(1)).clamp(1, tiles)
        };
        let isa = Isa::of(set);
        Self {
            isa,
            rows,
            panels,
            epilogue,
            tiles,
            tiles_by_line,
            tile_parts,
            panel_parts,
            tiles_by_panel,
        }
    }

    /// As [`Self::scratch_bytes`], if it can be addressed.
    pub(crate) fn checked_scratch_bytes(&self) -> Option<usize> {
        let by_task = self.rows.scratch_values.checked_next_multiple_of(16)?;
        product(&[self.tile_parts, self.panel_parts, by_task, size_of::<f32>()])
    }

    /// How many tasks there are.
    pub(crate) fn tasks(&self) -> usize {
        self.tile_parts * self.panel_parts
    }

    /// Values of scratch memory that a task needs.
    pub(crate) fn task_scratch_values(&self) -> usize {
        self.rows.task_scratch_values()
    }

    /// Bytes of scratch memory that [`Self::run`] needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.tasks() * self.task_scratch_values() * size_of::<f32>()
    }

    /// Computes the product.
    ///
    /// # Panics
    /// If the output, the residual or the scratch memory is too small.
    pub(crate) fn run(&self, team: &mut Team, arguments: Arguments<'_>) {
        self.run_with(team, self.panels.all_values(), arguments);
    }

    /// The same, of [panels](Panels) that were filled at run time.
    ///
    /// # Panics
    /// As of [`Self::run`], and if there are fewer values of panels.
    pub(crate) fn run_with(&self, team: &mut Team, panels: &[f32], arguments: Arguments<'_>) {
        let Arguments { rows, residual, output, scratch } = arguments;
        let places = Places::Even(output.pixel_stride);
        let output = DisjointOutput::new(output.values);
        // SAFETY: there is no other product.
        let product = unsafe { self.product(rows, panels, residual, &output, places) };
        let Some(product) = product else { return };
        let by_task = self.task_scratch_values();
        let scratch = (bytemuck::cast_slice_mut(scratch), by_task);
        for_each_task(team, self.tasks(), scratch, |task, scratch, stop| {
            // SAFETY: each task is run once.
            unsafe { product.task(task, scratch, stop) };
        });
    }

    /// As [`Self::run`], by the calling thread, inside a task.
    ///
    /// # Panics
    /// As of [`Self::run`].
    pub(crate) fn run_in_task(
        &self,
        stop: &Stop,
        rows: &dyn Rows,
        residual: Option<Image<'_, f32>>,
        output: ImageMut<'_, f32>,
    ) {
        assert_eq!(self.rows.scratch_values, 0, "rows that need scratch memory");
        let places = Places::Even(output.pixel_stride);
        let output = DisjointOutput::new(output.values);
        // SAFETY: there is no other product.
        let product =
            unsafe { self.product(rows, self.panels.all_values(), residual, &output, places) };
        let Some(product) = product else { return };
        for task in 0..self.tasks() {
            // SAFETY: each task is run once.
            unsafe { product.task(task, &mut [], stop) };
        }
    }

    /// The right side.
    pub(crate) fn panels(&self) -> &Panels {
        &self.panels
    }

    /// The product of these rows with these [panels](Panels), to be computed task by task; none if
    /// there is nothing to compute.
    ///
    /// # Panics
    /// If the output or the residual is too small.
    ///
    /// # Safety
    /// Of the output, no one else touches the columns of the rows, wherever they are placed, until
    /// all tasks have run.
    pub(crate) unsafe fn product<'a>(
        &'a self,
        rows: &'a dyn Rows,
        panels: &'a [f32],
        residual: Option<Image<'a, f32>>,
        output: &'a DisjointOutput<'a, f32>,
        places: Places,
    ) -> Option<Product<'a>> {
        let columns = self.panels.columns();
        let needed = match places {
            Places::Even(stride) => values_needed(self.rows.count, columns, stride),
            Places::Lines(placement) => {
                assert_eq!(self.rows.line, placement.size[1], "rows of a line");
                let image = placement.size[0] * placement.size[1];
                let images = self.rows.count.checked_div(image).unwrap_or(0);
                assert_eq!(self.rows.count, images * image, "rows of no image");
                placement.values_needed(images, columns)
            }
        };
        assert!(output.len() >= needed, "the output is too small");
        if let Some(residual) = residual {
            residual.check("residual operand", self.rows.count, columns);
        }
        self.rows.check(rows, self.panels.depth(), self.panels.blocking().rows);
        assert!(self.panels.groups() <= rows.groups(), "more groups than the rows have");
        (needed > 0).then_some(Product { gemm: self, rows, panels, residual, places, output })
    }
}

/// Where the segments of some rows are, in the order of [`Rows::locate`].
fn located<'t>(
    of: &dyn Rows,
    rows: &Range<usize>,
    scratch: &mut [f32],
    table: &'t mut [MaybeUninit<*const f32>],
) -> &'t [*const f32] {
    let table = &mut table[..rows.len() * of.segments()];
    table.fill(MaybeUninit::new(std::ptr::null()));
    // SAFETY: all of it was filled, and an address in `MaybeUninit` is laid out as one without.
    let table = unsafe { &mut *(std::ptr::from_mut(table) as *mut [*const f32]) };
    of.locate(rows.clone(), scratch, table);
    table
}

/// A product that is being computed.
pub(crate) struct Product<'a> {
    gemm: &'a Gemm,
    rows: &'a dyn Rows,
    panels: &'a [f32],
    residual: Option<Image<'a, f32>>,
    places: Places,
    output: &'a DisjointOutput<'a, f32>,
}

impl Product<'_> {
    /// Computes a task's part.
    ///
    /// # Panics
    /// If the scratch memory is less than [`Gemm::task_scratch_values`].
    ///
    /// # Safety
    /// It is run once.
    pub(crate) unsafe fn task(&self, task: usize, scratch: &mut [f32], stop: &Stop) {
        let Gemm { tiles, tile_parts, panel_parts, panels, .. } = self.gemm;
        let (tile_part, panel_part) = (task / panel_parts, task % panel_parts);
        self.part(
            part(*tiles, *tile_parts, tile_part),
            part(panels.count(), *panel_parts, panel_part),
            scratch,
            stop,
        );
    }

    /// Some tiles of rows with some panels.
    fn part(&self, tiles: Range<usize>, panels: Range<usize>, scratch: &mut [f32], stop: &Stop) {
        let mut pace = Pace::new(stop);
        let blocking = self.gemm.panels.blocking();
        let products = blocking.rows * blocking.columns() * (self.gemm.panels.depth() + 1);
        let mut table = [MaybeUninit::<*const f32>::uninit(); Blocking::MOST_ROWS * MOST_SEGMENTS];
        let step = self.gemm.tiles_by_panel;
        let Gemm { rows: RowsPlan { line, .. }, tiles_by_line, .. } = *self.gemm;
        let row_distance = self.rows.row_distance();
        // How many tiles are computed at once.
        let together = |panels: usize| match row_distance {
            Some(_) => WORK_BETWEEN / products.saturating_mul(panels.max(1)),
            None => 1,
        };
        if step == 1 {
            let runs = self.gemm.panels.runs(panels.clone(), WORK_BETWEEN / products);
            // Mostly one or two, which are found once and not for each of many small tiles.
            let mut rest = runs.clone();
            let first: [Option<Run>; 2] = std::array::from_fn(|_| rest.next());
            // Rows that come from memory for a single panel come sooner if each tile is asked for by itself (Zen 3, 0.91 to 0.97).
            let has_several = first[0].as_ref().is_some_and(|run| run.count > 1);
            let most = if has_several { together(panels.len()) } else { 1 };
            let mut all = TileRows::new(line, tiles_by_line, tiles);
            while let Some(below) = all.next(most) {
                let segments = located(self.rows, &below.rows, scratch, &mut table);
                let mut compute = |run: &Run| {
                    let work = products.saturating_mul(run.count).saturating_mul(below.tiles);
                    let is_over = pace.is_over(work);
                    if !is_over {
                        self.tiles(&below, segments, run, [0; 2], stop);
                    }
                    is_over
                };
                if first.iter().flatten().any(&mut compute) || rest.clone().any(|run| compute(&run))
                {
                    return;
                }
            }
            return;
        }
        let mut next = tiles.start;
        while next < tiles.end {
            let block = next..tiles.end.min(next + step);
            let rows_of_block = TileRows::new(line, tiles_by_line, block.clone());
            for run in self.gemm.panels.runs(panels.clone(), 1) {
                let values = self.gemm.panels.values_of_run(self.panels, &run).len();
                let width = self.gemm.panels.width(&run.first);
                let (mut all, mut index) = (rows_of_block.clone(), 0);
                loop {
                    // Those that ask for the next panel's lines are computed one by one.
                    let ahead = ahead(index, block.len(), values, width);
                    let most = if ahead == [0; 2] { together(1) } else { 1 };
                    let Some(below) = all.next(most) else { break };
                    if pace.is_over(products.saturating_mul(below.tiles)) {
                        return;
                    }
                    let segments = located(self.rows, &below.rows, scratch, &mut table);
                    self.tiles(&below, segments, &run, ahead, stop);
                    index += below.tiles;
                }
            }
            next = block.end;
        }
    }

    fn tiles(
        &self,
        below: &Below,
        segments: &[*const f32],
        run: &Run,
        ahead: [usize; 2],
        stop: &Stop,
    ) {
        let Gemm { isa, panels, epilogue, .. } = self.gemm;
        let (panel, Below { rows, tiles }) = (&run.first, below);
        let first = self.places.start(rows.start) + panel.columns.start;
        let tile = Tile {
            segments,
            offset: panel.group * self.rows.group_distance(),
            tiles: *tiles,
            tile_distance: self.rows.row_distance().map_or(0, |distance| rows.len() * distance),
            segment_depth: self.rows.segment_depth(),
            panel: panels.values_of_run(self.panels, run).as_ptr(),
            panels: run.count,
            ahead,
            target: Target::new(
                (self.output.pointer(first), self.places.stride()),
                self.residual,
                rows.start,
                panel.columns.clone(),
            ),
            epilogue,
        };
        // SAFETY: `Rows` promises the values of the segments, of all of its groups, and `Gemm::product`
        // has seen that there are no fewer groups than the panels have and that the depth is that of the
        // panels. There are several tiles only of rows at equal distances, which `Rows` promises too. `values_of_run` gives all
        // values of the panels, or panics, and of more than one all are whole;
        // `Gemm::new` has seen that their vectors are those of `isa`. `Gemm::product` has also seen that output and residual have all of
        // the rows and columns; those of tiles below each other are of one line. Tiles are different for each task and
        // within it, so no one else touches these.
        unsafe { run_tile(*isa, rows.len(), panel.vectors, &tile, Some(stop)) };
    }
}

/// Rows at the same distance from each other, in one segment each.
pub(crate) struct PlainRows<'a> {
    values: &'a [f32],
    count: usize,
    groups: usize,
    depth: usize,
    stride: usize,
}

impl<'a> PlainRows<'a> {
    /// `count` rows of `groups` times `depth` values.
    ///
    /// # Panics
    /// If there are fewer values.
    pub(crate) fn new(
        values: &'a [f32],
        [count, groups, depth]: [usize; 3],
        stride: usize,
    ) -> Self {
        let row = groups.checked_mul(depth).expect("a row larger than memory");
        let needed = values_needed(count, row, stride);
        assert!(values.len() >= needed, "the input is too small");
        Self { values, count, groups, depth, stride }
    }
}

// SAFETY: `new` has seen that there are the values of all groups of all rows, and `locate` that the
// rows are some of these.
unsafe impl Rows for PlainRows<'_> {
    fn segments(&self) -> usize {
        1
    }

    fn segment_depth(&self) -> usize {
        self.depth
    }

    fn groups(&self) -> usize {
        self.groups
    }

    fn row_distance(&self) -> Option<usize> {
        Some(self.stride)
    }

    fn locate(&self, rows: Range<usize>, _: &mut [f32], to: &mut [*const f32]) {
        assert!(rows.end <= self.count, "rows that are not there");
        let first = self.values.as_ptr().wrapping_add(rows.start * self.stride);
        // Rows that are there, so that nothing wraps; with a check they would not be located side by side.
        for (index, to) in to.iter_mut().enumerate() {
            *to = first.wrapping_add(index.wrapping_mul(self.stride));
        }
    }
}

#[cfg(test)]
mod tests;
