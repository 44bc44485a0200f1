//! [`SplitProduct`]: a product of float32 by tiles of bfloat16, of which three together are a float32.
//!
//! The upper 8 bits of a number's fraction are a bfloat16, so are the next 8 and the last 8: each number is exactly the sum of
//! three. Of the nine products of two such sums the three smallest are below 2^-24 of the whole, less than a product
//! of float32 is rounded by; the other six are added in float32 by AMX's tiles, the smallest ones first. That is
//! described by G. Henry, P. Tang and A. Heinecke in "Leveraging the bfloat16 Artificial Intelligence Datatype For
//! Higher-Precision Computations" (2019), and takes less than half of the time of products of vectors.
//!
//! An infinity or NaN is no such sum: rows that have one are computed one value after the other. Parts below 2^-126
//! count as zero.
#![allow(unsafe_code)]

mod parts;
#[cfg(test)]
mod tests;
mod tiles;
mod work;

use super::{Arguments, Epilogue, Layer, RowsPlan};
use crate::amx::{self, TILE_ROWS};
use crate::disjoint::DisjointOutput;
use crate::preparation::{PackedValues, product};
use crate::sharing::{for_each_task, shared_tasks};
use crate::vector::Isa;
use crate::{InstructionSet, LINE_BYTES, Preparation, Team, TooLarge};
use parts::{OF_STEP, PAIR, PARTS, Parts, STEP, joined, place, split, split_columns};
use std::ops::Range;
use work::Work;

/// A longer depth is multiplied in pieces, whose sums are added in the output: then rows and columns stay in the caches, and
/// rounding errors do not grow with the depth.
const PIECE: usize = 512;

/// Bytes of the parts of rows that all columns are multiplied with.
const ROWS_BYTES: usize = 384 << 10;

/// Parts of weights of at most this size stay in the second cache: then they are read again for few rows, whose outputs are
/// written side by side.
const FEW_BYTES: usize = 768 << 10;

/// A task should take some microseconds at least.
const LEAST_PRODUCTS: usize = 1_000_000;

/// Less is left to vectors: setting up tiles, and splitting rows for several threads, takes as long as is gained.
const LEAST_OF_ALL: f64 = 8e6;

/// Fewer rows are left to vectors too. They may be a batch, and models for batches of other sizes have packed weights in common
/// with it; and of the weights there is much to read for them.
const LEAST_ROWS: usize = 64;

/// Rows whose addresses are looked up together.
const LOOKED_UP: usize = 8;

/// A product with its right side split and packed and its work cut into tasks.
#[derive(Debug)]
pub(crate) struct SplitProduct {
    rows: RowsPlan,
    depth: usize,
    columns: usize,
    /// By block of [`PAIR`] columns and step of the depth: parts, the first ones first, of two tiles each, as
    /// `tdpbf16ps` takes them. At the end whether any weight is not finite.
    weights: PackedValues<u16>,
    /// Of all columns of all blocks.
    bias: Vec<f32>,
    epilogue: Epilogue,
    isa: Isa,
    /// Rows that are split together.
    chunk: usize,
    row_parts: usize,
    block_parts: usize,
}

/// Whether tasks are parts of the rows, each of which reads all weights, or of the columns, each of which splits all rows.
fn is_cut_by_rows(rows: usize, columns: usize, threads: usize) -> bool {
    let pairs = rows.div_ceil(PAIR);
    let is_even = pairs.is_multiple_of(threads) || pairs >= 4 * threads;
    is_even && columns <= rows.saturating_mul(2)
}

impl SplitProduct {
    /// Whether it takes less time than vectors do, and there are such instructions.
    pub(crate) fn suits(
        set: InstructionSet,
        threads: usize,
        [rows, depth, columns]: [usize; 3],
    ) -> bool {
        let is_there = set == InstructionSet::Avx512Amx && amx::multiplies_bfloat16();
        if !is_there || rows < LEAST_ROWS {
            return false;
        }
        let up = |number: usize, to: usize| number.div_ceil(to) as f64 * to as f64;
        let (products, inputs, outputs) = {
            let [rows, depth, columns] = [rows, depth, columns].map(|it| it as f64);
            (rows * depth * columns, rows * depth, rows * columns)
        };
        let times_split = if is_cut_by_rows(rows, columns, threads) { 1 } else { threads };
        // In cycles, as measured on a Xeon of 2024: multiplications, splitting, and what is done with sums.
        let multiplied = up(rows, TILE_ROWS) * up(depth, STEP) * up(columns, PAIR) / 48.0;
        let split = inputs * times_split as f64;
        let tiles = multiplied + split + 0.5 * outputs * depth.div_ceil(PIECE) as f64;
        let vectors = products / 26.0;
        products >= LEAST_OF_ALL && tiles < 0.85 * vectors
    }

    /// Packs columns `[columns, depth]`, each in one piece, and a bias for each.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If there is no such [product](Self::suits).
    pub(crate) fn new(
        rows: RowsPlan,
        depth: usize,
        Layer { filter: weights, bias, epilogue }: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        assert!(amx::multiplies_bfloat16(), "no tiles of bfloat16");
        let columns = bias.len();
        let too_large = || TooLarge::beyond_addresses("packed weights");
        let (blocks, steps) = (columns.div_ceil(PAIR), depth.div_ceil(STEP));
        let count = product(&[blocks, steps, OF_STEP]).and_then(|count| count.checked_add(1));
        let packed = preparation.pack(count.ok_or_else(too_large)?, |out: &mut [u16], pace| {
            let (is_special, out) = out.split_last_mut().expect("one more");
            let mut by_columns = Parts([0; OF_STEP]);
            for (index, to) in out.chunks_exact_mut(OF_STEP).enumerate() {
                if pace.is_over(PAIR * STEP) {
                    return;
                }
                let (block, step) = (index / steps, index % steps);
                let depths = step * STEP..depth.min((step + 1) * STEP);
                let block = block * PAIR..columns.min((block + 1) * PAIR);
                let values = |column: usize| &weights[column * depth..][depths.clone()];
                // SAFETY: who has tiles of bfloat16 has AVX-512.
                if unsafe { split_columns(block.clone().map(values), &mut by_columns, to) } {
                    *is_special = 1;
                    for (column, values) in block.map(values).enumerate() {
                        for (k, &value) in values.iter().enumerate() {
                            for (part, value) in split(value).into_iter().enumerate() {
                                to[place(part, k, column)] = value;
                            }
                        }
                    }
                }
            }
        })?;
        let mut padded = preparation.filled(0.0, blocks * PAIR, "a bias")?;
        padded[..columns].copy_from_slice(bias);
        let threads = preparation.threads();
        let row_bytes = PARTS * size_of::<u16>() * depth.min(PIECE).next_multiple_of(STEP);
        let are_few = (blocks * PAIR).saturating_mul(row_bytes) <= FEW_BYTES;
        let chunk = if are_few { 2 * PAIR } else { ROWS_BYTES / row_bytes / PAIR * PAIR };
        let chunk = chunk.max(PAIR).min(rows.count.next_multiple_of(PAIR));
        let products = rows.count.saturating_mul(depth).saturating_mul(columns);
        let tasks = shared_tasks(products, LEAST_PRODUCTS, threads);
        let pairs = rows.count.div_ceil(PAIR).max(1);
        let (row_parts, block_parts) = if is_cut_by_rows(rows.count, columns, threads) {
            (tasks.min(pairs), 1)
        } else {
            let block_parts = tasks.min(threads).min(blocks.max(1));
            ((threads / block_parts).clamp(1, pairs), block_parts)
        };
        let product = Self {
            rows,
            depth,
            columns,
            weights: packed,
            bias: padded,
            epilogue,
            isa: Isa::of(preparation.set()),
            chunk,
            row_parts,
            block_parts,
        };
        let bytes = product.tasks().checked_mul(product.task_bytes());
        preparation.check_scratch::<u8>(&[bytes.unwrap_or(usize::MAX)])?;
        Ok(product)
    }

    fn tasks(&self) -> usize {
        self.row_parts * self.block_parts
    }

    /// Of the depth, by its pieces.
    fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        (0..self.depth).step_by(PIECE).map(|first| first..self.depth.min(first + PIECE))
    }

    /// Bytes of the parts of a chunk of rows.
    fn chunk_bytes(&self) -> usize {
        let steps = self.depth.min(PIECE).div_ceil(STEP);
        self.chunk / PAIR * steps * OF_STEP * size_of::<u16>()
    }

    fn task_bytes(&self) -> usize {
        let looked_up = self.rows.scratch_values.saturating_mul(size_of::<f32>());
        self.chunk_bytes().saturating_add(looked_up).next_multiple_of(LINE_BYTES)
    }

    /// Bytes of scratch memory that [`Self::run`] needs.
    pub(crate) fn scratch_bytes(&self) -> usize {
        self.tasks() * self.task_bytes()
    }

    /// Computes the product.
    ///
    /// # Panics
    /// If the rows are others than planned, or the output, the residual or the scratch memory is too small.
    pub(crate) fn run(&self, team: &mut Team, arguments: Arguments<'_>) {
        let needed = arguments.check(self.rows.count, self.columns);
        let Arguments { rows, residual, output, scratch } = arguments;
        self.rows.check(rows, self.depth, LOOKED_UP);
        if needed == 0 {
            return;
        }
        let (stride, output) = (output.pixel_stride, DisjointOutput::new(output.values));
        let work = Work { product: self, rows, residual, stride, output: &output };
        let scratch = (bytemuck::cast_slice_mut(scratch), self.task_bytes());
        for_each_task(team, self.tasks(), scratch, |task, scratch, stop| {
            work.task(task, scratch, stop);
        });
    }

    /// A weight.
    fn weight(&self, k: usize, column: usize) -> f32 {
        let steps = self.depth.div_ceil(STEP);
        let (block, column) = (column / PAIR, column % PAIR);
        let of_step = &self.weights.values()[(block * steps + k / STEP) * OF_STEP..][..OF_STEP];
        joined([0, 1, 2].map(|part| of_step[place(part, k % STEP, column)]))
    }
}
