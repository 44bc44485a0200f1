//! [`FewColumns`]: products with so few columns that a vector of them would be mostly empty. Lanes are values of the depth
//! instead, and their sums are added up at the end.
#![allow(unsafe_code)]

use super::{Arguments, Epilogue, Layer, MOST_SEGMENTS, Rows, RowsPlan, located};
use crate::disjoint::DisjointOutput;
use crate::preparation::{PackedValues, product};
use crate::sharing::{even_tasks, for_each_task};
use crate::team::{Pace, part};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Image, InstructionSet, Preparation, Team, TooLarge};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The sizes of the right side, and how the left side's rows are cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Columns of the right side, 1 to [`MOST_COLUMNS`].
    pub(crate) columns: usize,
    /// See [`Rows::segments`].
    pub(crate) segments: usize,
    /// See [`Rows::segment_depth`].
    pub(crate) segment_depth: usize,
}

/// A matrix product of few columns with its right side packed and its rows cut into tasks.
#[derive(Debug)]
pub(crate) struct FewColumns {
    isa: Isa,
    rows: RowsPlan,
    sizes: Sizes,
    /// The biases, and for each column the weights of all segments, each filled up to whole vectors.
    packed: PackedValues<f32>,
    epilogue: Epilogue,
    /// The tasks.
    parts: usize,
}

/// With more columns a vector of them is full enough.
const MOST_COLUMNS: usize = 4;

/// Rows that are located at once, so that it costs little for each of them.
const MOST_ROWS: usize = 64;

/// Addresses that are located at once.
const MOST_ADDRESSES: usize = MOST_ROWS * 8;

/// Values of the rows that are located at once, if those are more than a tile's.
const MOST_VALUES: usize = 8 << 10;

/// Vectors that could be multiplied while the lanes of one are added up.
const ADDING_UP: usize = 8;

/// Deeper products are computed in parts, which [`Gemm`](super::Gemm) does.
const MOST_DEPTH: usize = 1 << 15;

/// A task should take a few microseconds at least.
const LEAST_PRODUCTS: usize = 250_000;

impl Sizes {
    fn depth(&self) -> usize {
        self.segments.saturating_mul(self.segment_depth)
    }

    /// How many rows are located at once: a multiple of a tile's.
    pub(crate) fn block(&self) -> usize {
        let rows = (MOST_ADDRESSES / self.segments).min(MOST_VALUES / self.depth().max(1));
        (rows / 8 * 8).clamp(8, MOST_ROWS)
    }
}

impl FewColumns {
    /// Whether a product of these sizes takes less time than by lanes of columns.
    pub(crate) fn suits(set: InstructionSet, sizes: Sizes) -> bool {
        let Sizes { columns, segments, segment_depth } = sizes;
        let depth = sizes.depth();
        let vectors = segments.saturating_mul(segment_depth.div_ceil(Isa::of(set).lanes()));
        (1..=MOST_COLUMNS).contains(&columns)
            && (1..=MOST_SEGMENTS).contains(&segments)
            && depth <= MOST_DEPTH
            && columns * (vectors + ADDING_UP) < depth
    }

    /// Packs columns, each the weights of all segments one after the other, and a bias for each.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the sizes do not [suit](Self::suits), or there are fewer biases, or weights, where there are any.
    pub(crate) fn new(
        rows: RowsPlan,
        sizes: Sizes,
        Layer { filter, bias, epilogue }: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        assert!(Self::suits(preparation.set(), sizes), "not few columns: {sizes:?}");
        let isa = Isa::of(preparation.set());
        let Sizes { columns, segments, segment_depth } = sizes;
        let padded = segment_depth.next_multiple_of(isa.lanes());
        let count = columns * (1 + segments * padded);
        let packed = preparation.pack(count, |values: &mut [f32], _| {
            let (biases, columns) = values.split_at_mut(columns);
            biases.copy_from_slice(bias);
            let segments = columns.chunks_exact_mut(padded);
            for (to, from) in segments.zip(filter.chunks_exact(segment_depth)) {
                to[..segment_depth].copy_from_slice(from);
            }
        })?;
        let products = rows.count.saturating_mul(columns * segments * segment_depth);
        let threads = preparation.threads();
        let parts = match products / LEAST_PRODUCTS {
            0 => 1,
            worth => even_tasks(worth.max(threads), threads, 4).clamp(1, rows.count.max(1)),
        };
        let made = Self { isa, rows, sizes, packed, epilogue, parts };
        let scratch = product(&[parts, made.rows.task_scratch_values(), size_of::<f32>()]);
        preparation.check_scratch::<u8>(&[scratch.unwrap_or(usize::MAX)])?;
        Ok(made)
    }

    /// Bytes of scratch memory that [`Self::run`] needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.parts * self.rows.task_scratch_values() * size_of::<f32>()
    }

    /// Computes the product.
    ///
    /// # Panics
    /// If the rows are others than planned, or the output, the residual or the scratch memory is too small.
    pub(crate) fn run(&self, team: &mut Team, arguments: Arguments<'_>) {
        let Sizes { columns, segments, segment_depth } = self.sizes;
        arguments.check(self.rows.count, columns);
        let Arguments { rows, residual, output, scratch } = arguments;
        assert_eq!(
            [rows.segments(), rows.segment_depth()],
            [segments, segment_depth],
            "other rows"
        );
        let planned = self.rows.scratch_values;
        let most = self.sizes.block();
        assert!(rows.scratch_values(most) <= planned, "more scratch memory");
        let (stride, values) = (output.pixel_stride, DisjointOutput::new(output.values));
        let by_task = self.rows.task_scratch_values();
        let scratch = (bytemuck::cast_slice_mut(scratch), by_task);
        for_each_task(team, self.parts, scratch, |task, scratch, stop| {
            let mut pace = Pace::new(stop);
            let of_task = part(self.rows.count, self.parts, task);
            let mut sums = [0.0; MOST_ROWS * MOST_COLUMNS];
            for first in of_task.clone().step_by(most) {
                let block = first..of_task.end.min(first + most);
                if pace.is_over(block.len() * columns * self.sizes.depth()) {
                    return;
                }
                self.block(rows, block.clone(), residual, scratch, &mut sums);
                let first = first * stride;
                if stride == columns {
                    // SAFETY: rows are one task's only.
                    let to = unsafe { values.slice(first, block.len() * columns) };
                    to.copy_from_slice(&sums[..block.len() * columns]);
                } else {
                    for (row, sums) in sums.chunks_exact(columns).take(block.len()).enumerate() {
                        // SAFETY: as above.
                        let to = unsafe { values.slice(first + row * stride, columns) };
                        to.copy_from_slice(sums);
                    }
                }
            }
        });
    }

    /// The results of a block, row by row.
    fn block(
        &self,
        rows: &dyn Rows,
        block: Range<usize>,
        residual: Option<Image<'_, f32>>,
        scratch: &mut [f32],
        to: &mut [f32],
    ) {
        let Sizes { columns, segment_depth, .. } = self.sizes;
        let mut table = [MaybeUninit::<*const f32>::uninit(); MOST_ADDRESSES];
        let table = located(rows, &block, scratch, &mut table);
        let (biases, weights) = self.packed.values().split_at(columns);
        let residual = residual.map(|residual| Image {
            values: &residual.values[block.start * residual.pixel_stride..],
            ..residual
        });
        let epilogue = &self.epilogue;
        let rows = block.len();
        let block = Block { table, rows, segment_depth, biases, weights, residual, epilogue };
        match columns {
            1 => self.isa.run(OfColumns::<1, 8>(block, to)),
            2 => self.isa.run(OfColumns::<2, 4>(block, to)),
            3 => self.isa.run(OfColumns::<3, 2>(block, to)),
            _ => self.isa.run(OfColumns::<MOST_COLUMNS, 2>(block, to)),
        }
    }
}

/// Rows that are next to each other.
struct Block<'a> {
    /// For each segment, where the rows of it are: at each address `segment_depth` values, as [`Rows`] promises.
    table: &'a [*const f32],
    rows: usize,
    segment_depth: usize,
    biases: &'a [f32],
    /// See [`FewColumns::packed`].
    weights: &'a [f32],
    /// What is added, from the first row on.
    residual: Option<Image<'a, f32>>,
    epilogue: &'a Epilogue,
}

/// The results of a block, row by row: of a constant number of columns, in tiles of a constant number of rows.
struct OfColumns<'a, const COLUMNS: usize, const ROWS: usize>(Block<'a>, &'a mut [f32]);

impl<const COLUMNS: usize, const ROWS: usize> Kernel for OfColumns<'_, COLUMNS, ROWS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(block, to) = self;
        let rows = block.rows;
        let to = &mut to[..rows * COLUMNS];
        let mut tiles = to.chunks_exact_mut(COLUMNS * ROWS);
        let mut row = 0;
        for tile in tiles.by_ref() {
            tile.copy_from_slice(sums::<S, COLUMNS, ROWS>(simd, &block, row).as_flattened());
            row += ROWS;
        }
        for (row, to) in (row..).zip(tiles.into_remainder().chunks_exact_mut(COLUMNS)) {
            to.copy_from_slice(&sums::<S, COLUMNS, 1>(simd, &block, row)[0]);
        }
        if let Some(residual) = block.residual {
            for (row, to) in to.chunks_exact_mut(COLUMNS).enumerate() {
                let values = &residual.values[row * residual.pixel_stride..];
                to.iter_mut().zip(values).for_each(|(to, value)| *to += value);
            }
        }
        for to in to.chunks_mut(S::LANES) {
            let value = block.epilogue.apply(simd, simd.load_partial(to, 0.0));
            simd.store_partial(value, to);
        }
    }
}

/// The sums of some rows, with the biases.
#[allow(clippy::needless_range_loop)] // See `crate::unrolled`.
#[inline(always)]
fn sums<S: Simd, const COLUMNS: usize, const ROWS: usize>(
    simd: S,
    block: &Block<'_>,
    first: usize,
) -> [[f32; COLUMNS]; ROWS] {
    let Block { table, rows, segment_depth, weights, .. } = *block;
    let mut sums = [[simd.splat(0.0); COLUMNS]; ROWS];
    let whole = segment_depth / S::LANES * S::LANES;
    let padded = segment_depth.next_multiple_of(S::LANES);
    let by_column = weights.len() / COLUMNS;
    for (index, segment) in table.chunks_exact(rows).enumerate() {
        let segment = &segment[first..first + ROWS];
        let mut of_segment: [&[f32]; COLUMNS] = [&[]; COLUMNS];
        for column in 0..COLUMNS {
            of_segment[column] = &weights[column * by_column + index * padded..][..padded];
        }
        let mut rows: [&[f32]; ROWS] = [&[]; ROWS];
        for row in 0..ROWS {
            // SAFETY: at each address there are this many values, which do not change meanwhile.
            rows[row] = unsafe { std::slice::from_raw_parts(segment[row], segment_depth) };
        }
        let mut at = 0;
        while at < whole {
            add::<S, COLUMNS, ROWS, true>(simd, &of_segment, &rows, at, &mut sums);
            at += S::LANES;
        }
        if at < segment_depth {
            add::<S, COLUMNS, ROWS, false>(simd, &of_segment, &rows, at, &mut sums);
        }
    }
    let mut outputs = [[0.0; COLUMNS]; ROWS];
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            outputs[row][column] = simd.sum(sums[row][column]) + block.biases[column];
        }
    }
    outputs
}

/// Adds the products of a vector of each row, the last one of which may not be `FULL`.
#[allow(clippy::needless_range_loop)] // See `crate::unrolled`.
#[inline(always)]
fn add<S: Simd, const COLUMNS: usize, const ROWS: usize, const FULL: bool>(
    simd: S,
    columns: &[&[f32]; COLUMNS],
    rows: &[&[f32]; ROWS],
    at: usize,
    sums: &mut [[S::F; COLUMNS]; ROWS],
) {
    let mut weights = [simd.splat(0.0); COLUMNS];
    for column in 0..COLUMNS {
        weights[column] = simd.load(&columns[column][at..]);
    }
    for row in 0..ROWS {
        let values = &rows[row][at..];
        let value = if FULL { simd.load(values) } else { simd.load_partial(values, 0.0) };
        for column in 0..COLUMNS {
            sums[row][column] = simd.fma(value, weights[column], sums[row][column]);
        }
    }
}
