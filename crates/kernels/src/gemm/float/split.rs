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

use super::turn_avx512::turn;
use super::{Arguments, Epilogue, Layer, MOST_SEGMENTS, Rows, RowsPlan, Target};
use crate::amx::{self, ROW_BYTES, TILE_ROWS, TileRegisters};
use crate::disjoint::DisjointOutput;
use crate::packing::{PackedValues, product};
use crate::parts::{for_each_task, shared_tasks};
use crate::team::{Pace, Stop, part};
use crate::vector::pointers::{load_some, store, store_some};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Image, InstructionSet, LINE_BYTES, Preparation, Team, TooLarge};
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Parts of a number.
const PARTS: usize = 3;

/// Rows and columns that are computed together: two tiles of each.
const PAIR: usize = 2 * TILE_ROWS;

/// Depth of a product of tiles.
const STEP: usize = ROW_BYTES / size_of::<u16>();

/// Values of a tile of parts.
const TILE: usize = TILE_ROWS * STEP;

/// Values of the parts of a pair of tiles, of one step.
const OF_STEP: usize = PARTS * 2 * TILE;

/// A longer depth is multiplied in pieces, whose sums are added in the output: then rows and columns stay in the caches, and
/// rounding errors do not grow with the depth.
const PIECE: usize = 512;

/// Bytes of the parts of rows that all columns are multiplied with.
const ROWS_BYTES: usize = 384 << 10;

/// Parts of weights of at most this size stay in the second cache: then they are read again for few rows, whose outputs are
/// written side by side.
const FEW_BYTES: usize = 768 << 10;

/// Cache lines of the next block's weights that are asked for in each step, in which there are twice as many.
const LINES_AHEAD: usize = OF_STEP * size_of::<u16>() / LINE_BYTES / PAIRS_AHEAD;

/// Pairs of tiles of rows that ask for the next block's weights.
const PAIRS_AHEAD: usize = 2;

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

/// The parts of a number, the greatest first; of one that is not finite only the first.
fn split(value: f32) -> [u16; PARTS] {
    let upper = |value: f32| (value.to_bits() >> 16) as u16;
    if value.is_nan() {
        return [upper(f32::NAN), 0, 0];
    }
    if value.is_infinite() {
        return [upper(value), 0, 0];
    }
    let mut rest = value;
    [(); PARTS].map(|()| {
        let part = upper(rest);
        rest -= joined([part, 0, 0]);
        part
    })
}

/// The number of which these are the parts.
fn joined(parts: [u16; PARTS]) -> f32 {
    let [first, second, third] = parts.map(|part| f32::from_bits(u32::from(part) << 16));
    first + (second + third)
}

/// Where a weight's part is among those of a step: `tdpbf16ps` takes two values of the depth of each column.
fn place(part: usize, k: usize, column: usize) -> usize {
    let tile = part * 2 + column / TILE_ROWS;
    tile * TILE + k / 2 * STEP + column % TILE_ROWS * 2 + k % 2
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

/// A product that is being computed.
struct Work<'a> {
    product: &'a SplitProduct,
    rows: &'a dyn Rows,
    residual: Option<Image<'a, f32>>,
    /// From a row of the output to the next one.
    stride: usize,
    output: &'a DisjointOutput<'a, f32>,
}

impl Work<'_> {
    fn task(&self, task: usize, scratch: &mut [u8], stop: &Stop) {
        let SplitProduct { rows, chunk, row_parts, block_parts, columns, .. } = self.product;
        let pairs = part(rows.count.div_ceil(PAIR), *row_parts, task / block_parts);
        let blocks = part(columns.div_ceil(PAIR), *block_parts, task % block_parts);
        let all = pairs.start * PAIR..rows.count.min(pairs.end * PAIR);
        let (parts, looked_up) = scratch.split_at_mut(self.product.chunk_bytes());
        let parts: &mut [u16] = bytemuck::cast_slice_mut(parts);
        let looked_up = &mut bytemuck::cast_slice_mut(looked_up)[..rows.scratch_values];
        let tiles = TileRegisters::set_up();
        let mut pace = Pace::new(stop);
        for first in all.clone().step_by(*chunk) {
            let chunk = first..all.end.min(first + chunk);
            let mut is_special = *self.product.weights.values().last().expect("one more") != 0;
            for piece in self.product.pieces() {
                let work = chunk.len() * piece.len();
                if pace.is_over(work.saturating_mul(LOOKED_UP)) {
                    return;
                }
                is_special |= self.split(chunk.clone(), piece.clone(), parts, looked_up);
                for block in blocks.clone() {
                    if pace.is_over(work * PAIR) {
                        return;
                    }
                    let next = (block + 1 < blocks.end).then_some(block + 1);
                    self.multiply(&tiles, chunk.clone(), piece.clone(), (block, next), parts);
                }
            }
            if is_special {
                let blocks = blocks.start * PAIR..(*columns).min(blocks.end * PAIR);
                for row in chunk {
                    self.one_by_one(row, blocks.clone(), looked_up, &mut pace);
                }
            }
        }
    }

    /// Splits a piece of some rows. Returns whether any number is not finite.
    fn split(
        &self,
        rows: Range<usize>,
        piece: Range<usize>,
        parts: &mut [u16],
        scratch: &mut [f32],
    ) -> bool {
        let (segments, segment_depth) = (self.rows.segments(), self.rows.segment_depth());
        let steps = piece.len().div_ceil(STEP);
        let pairs = rows.len().div_ceil(PAIR);
        let parts = &mut parts[..pairs * steps * OF_STEP];
        let mut table = [MaybeUninit::<*const f32>::uninit(); LOOKED_UP * MOST_SEGMENTS];
        let mut is_special = false;
        for first in rows.clone().step_by(LOOKED_UP) {
            let some = first..rows.end.min(first + LOOKED_UP);
            let addresses = super::located(self.rows, &some, scratch, &mut table);
            for row in some.clone() {
                let of_rows = row - rows.start;
                let begin = of_rows / PAIR * steps * OF_STEP + of_rows % PAIR * STEP;
                let mut k = piece.start;
                while k < piece.end {
                    let (segment, of_segment) = (k / segment_depth, k % segment_depth);
                    let count = (segment_depth - of_segment).min(piece.end - k);
                    debug_assert!(segment < segments);
                    let address = addresses[segment * some.len() + row - first];
                    // SAFETY: `Rows` promises the values of a segment at each address. The caller of this function has AVX-512,
                    // as who has AMX's tiles. What is written is compared with the length there.
                    is_special |= unsafe {
                        let from = std::slice::from_raw_parts(address.add(of_segment), count);
                        split_values(from, &mut parts[begin..], k - piece.start)
                    };
                    k += count;
                }
                // What is behind the last values is multiplied by zeros, and must be a number.
                let length = piece.len();
                for k in length..length.next_multiple_of(STEP) {
                    for part in 0..PARTS {
                        parts[begin + k / STEP * OF_STEP + part * 2 * TILE + k % STEP] = 0;
                    }
                }
            }
        }
        is_special
    }

    /// Multiplies a piece of some rows, which was split, by that of a block of columns, and asks for that of the next
    /// block, if there is one.
    fn multiply(
        &self,
        tiles: &TileRegisters,
        rows: Range<usize>,
        piece: Range<usize>,
        (block, next): (usize, Option<usize>),
        parts: &[u16],
    ) {
        let SplitProduct { depth, columns, weights, bias, epilogue, isa, .. } = self.product;
        let steps = piece.len().div_ceil(STEP);
        let all_steps = depth.div_ceil(STEP);
        let weights_of = |block: usize| {
            let begin = (block * all_steps + piece.start / STEP) * OF_STEP;
            &weights.values()[begin..][..steps * OF_STEP]
        };
        let weights = weights_of(block);
        let next = next.map_or(weights, weights_of).as_ptr();
        let first_column = block * PAIR;
        let width = PAIR.min(columns - first_column);
        let is_last = piece.end == *depth;
        let mut sums = Sums([0.0; PAIR * PAIR]);
        for (index, first) in rows.clone().step_by(PAIR).enumerate() {
            let count = PAIR.min(rows.end - first);
            let parts = &parts[index * steps * OF_STEP..][..steps * OF_STEP];
            // What has been asked for before, or is not wanted, is what will be read anyway.
            let ahead = match index < PAIRS_AHEAD {
                true => next.cast::<u8>().wrapping_add(index * steps * LINES_AHEAD * LINE_BYTES),
                false => weights.as_ptr().cast(),
            };
            let place = (parts.as_ptr(), weights.as_ptr(), ahead);
            // SAFETY: there are the parts of two tiles of rows and of two of columns for each step, and room for the sums of
            // four tiles. The tiles are set up.
            unsafe {
                if count > TILE_ROWS {
                    multiply_tiles::<2>(tiles, place, steps, &mut sums);
                } else {
                    multiply_tiles::<1>(tiles, place, steps, &mut sums);
                }
            }
            let mut target = self.target(first, first_column..first_column + width);
            if piece.start > 0 {
                target.residual = Some(target.output.cast_const());
                target.residual_stride = target.output_stride;
            }
            isa.run(Store {
                sums: &sums,
                rows: count,
                bias: (piece.start == 0).then(|| &bias[first_column..][..PAIR]),
                target,
                epilogue: if is_last { epilogue } else { &Epilogue::NONE },
            });
        }
    }

    /// Computes some columns of a row by the definition, if it or the weights have numbers that are not finite.
    fn one_by_one(
        &self,
        row: usize,
        columns: Range<usize>,
        scratch: &mut [f32],
        pace: &mut Pace<'_>,
    ) {
        let SplitProduct { weights, bias, epilogue, isa, .. } = self.product;
        let segment_depth = self.rows.segment_depth();
        let mut table = [MaybeUninit::<*const f32>::uninit(); MOST_SEGMENTS];
        let addresses = super::located(self.rows, &(row..row + 1), scratch, &mut table);
        let values = |k: usize| {
            // SAFETY: `Rows` promises the values of a segment at each address.
            unsafe { *addresses[k / segment_depth].add(k % segment_depth) }
        };
        let depth = self.product.depth;
        let mut is_special = *weights.values().last().expect("one more") != 0;
        for mut block in pace.blocks(depth, 1) {
            is_special |= block.any(|k| !values(k).is_finite());
        }
        if !is_special {
            return;
        }
        for column in columns {
            let mut sum = bias[column];
            // Plain code takes some times as long as vectors.
            for block in pace.blocks(depth, 16) {
                for k in block {
                    sum += values(k) * self.product.weight(k, column);
                }
            }
            if pace.is_over(0) {
                return;
            }
            let mut sums = Sums([0.0; PAIR * PAIR]);
            sums.0[0] = sum;
            let target = self.target(row, column..column + 1);
            isa.run(Store { sums: &sums, rows: 1, bias: None, target, epilogue });
        }
    }

    /// Where some columns of rows from one on go.
    fn target(&self, row: usize, columns: Range<usize>) -> Target {
        let output = self.output.pointer(row * self.stride + columns.start);
        Target::new((output, self.stride), self.residual, row, columns)
    }
}

/// Of a pair of tiles of rows and one of columns, row by row.
#[repr(C, align(64))]
struct Sums([f32; PAIR * PAIR]);

/// Adds to sums what they begin with, and stores what comes out.
struct Store<'a> {
    sums: &'a Sums,
    rows: usize,
    /// Of [`PAIR`] columns.
    bias: Option<&'a [f32]>,
    target: Target,
    epilogue: &'a Epilogue,
}

impl Kernel for Store<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { sums, rows, bias, target, epilogue } = self;
        let epilogue = *epilogue;
        for column in (0..target.columns).step_by(S::LANES) {
            let wanted = S::LANES.min(target.columns - column);
            let bias = bias.map_or(simd.splat(0.0), |bias| simd.load(&bias[column..][..S::LANES]));
            for row in 0..rows {
                let mut sum = simd.add(bias, simd.load(&sums.0[row * PAIR + column..][..S::LANES]));
                // SAFETY: `SplitProduct::run` has seen that the residual and the output have all columns of all rows, and what is
                // stored is this task's alone.
                unsafe {
                    if let Some(residual) = target.residual {
                        let from = residual.add(row * target.residual_stride + column);
                        sum = simd.add(sum, load_some::<S, false>(simd, from, wanted));
                    }
                    let to = target.output.add(row * target.output_stride + column);
                    let value = epilogue.apply(simd, sum);
                    if wanted == S::LANES {
                        store(simd, value, to);
                    } else {
                        store_some::<S, false>(simd, value, to, wanted);
                    }
                }
            }
        }
    }
}

/// Splits values of a row, of which the first is at depth `k`, and enters their parts. Returns whether any is not
/// finite.
///
/// # Safety
/// The processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn split_values(from: &[f32], parts: &mut [u16], k: usize) -> bool {
    const LANES: usize = 16;
    let upper = _mm512_set1_epi32(0xFFFF_0000_u32.cast_signed());
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let infinity = _mm512_set1_epi32(f32::INFINITY.to_bits().cast_signed());
    let last = (k + from.len() - 1) / STEP * OF_STEP + (PARTS - 1) * 2 * TILE + STEP;
    assert!(last <= parts.len(), "{last} of {} values of parts", parts.len());
    let mut special = 0;
    let (mut at, mut k) = (0, k);
    while at < from.len() {
        // Up to the end of the step.
        let count = LANES.min(from.len() - at).min(STEP - k % STEP);
        let mask = u16::MAX >> (LANES - count);
        // SAFETY: this many values are read, and written at a depth below that of the last one, whose place is there.
        unsafe {
            let value = _mm512_maskz_loadu_ps(mask, from.as_ptr().add(at));
            let bits = _mm512_castps_si512(value);
            special |= _mm512_cmpge_epi32_mask(_mm512_and_si512(bits, magnitude), infinity);
            let to = parts.as_mut_ptr().add(k / STEP * OF_STEP + k % STEP);
            let mut rest = value;
            for part in 0..PARTS {
                let bits = _mm512_castps_si512(rest);
                let words = _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(bits));
                let to = to.add(part * 2 * TILE);
                if count == LANES {
                    _mm256_storeu_si256(to.cast(), words);
                } else {
                    _mm256_mask_storeu_epi16(to.cast(), mask, words);
                }
                rest = _mm512_sub_ps(rest, _mm512_castsi512_ps(_mm512_and_si512(bits, upper)));
            }
        }
        at += count;
        k += count;
    }
    special != 0
}

/// The parts of a pair of tiles, of one step.
#[repr(C, align(64))]
struct Parts([u16; OF_STEP]);

/// Splits the values that the columns of a block have in a step, and enters their parts where [`place`] has them, through
/// `scratch`. Returns whether any is not finite, and then has not entered what [`split`] gives.
///
/// # Safety
/// The processor has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn split_columns<'a>(
    columns: impl Iterator<Item = &'a [f32]>,
    Parts(scratch): &mut Parts,
    to: &mut [u16],
) -> bool {
    scratch.fill(0);
    let mut is_special = false;
    for (column, values) in columns.enumerate() {
        // SAFETY: the caller's promise.
        is_special |= unsafe { split_values(values, &mut scratch[column * STEP..], 0) };
    }
    // Two parts that are multiplied together are moved as one.
    const PAIRS: usize = STEP / 2;
    let (from, _): (&[[f32; PAIRS]], _) = bytemuck::cast_slice(&*scratch).as_chunks();
    let to: &mut [f32] = bytemuck::cast_slice_mut(to);
    for (from, to) in from.chunks_exact(TILE_ROWS).zip(to.chunks_exact_mut(TILE_ROWS * PAIRS)) {
        turn(&std::array::from_fn(|row| from[row].as_slice()), 0, TILE_ROWS, to);
    }
    is_special
}

/// Multiplies the parts of one or two tiles of rows by those of two tiles of columns, of this number of steps, at least one,
/// and stores the sums. Meanwhile asks for [`LINES_AHEAD`] lines of a third place in each step.
///
/// # Safety
/// There are the parts of a pair of tiles of both for each step.
unsafe fn multiply_tiles<const TILES: usize>(
    _: &TileRegisters,
    (rows, columns, ahead): (*const u16, *const u16, *const u8),
    steps: usize,
    sums: &mut Sums,
) {
    debug_assert!(steps > 0);
    // SAFETY: the caller's promises; the tiles are set up, as there are registers of them.
    unsafe {
        asm!(
            ".macro if_two_tiles instruction:vararg",
            ".if {TILES} > 1",
            "\\instruction",
            ".endif",
            ".endm",
            ".macro load_rows part",
            "tileloadd tmm4, [{rows} + {line} + 2048 * \\part]",
            "if_two_tiles tileloadd tmm5, [{rows} + {line} + 2048 * \\part + 1024]",
            ".endm",
            ".macro load_columns part",
            "tileloadd tmm6, [{columns} + {line} + 2048 * \\part]",
            "tileloadd tmm7, [{columns} + {line} + 2048 * \\part + 1024]",
            ".endm",
            ".macro multiply_parts",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "if_two_tiles tdpbf16ps tmm2, tmm5, tmm6",
            "if_two_tiles tdpbf16ps tmm3, tmm5, tmm7",
            ".rept 8",
            "prefetcht1 [{ahead}]",
            "add {ahead}, 64",
            ".endr",
            ".endm",
            "tilezero tmm0",
            "tilezero tmm1",
            "if_two_tiles tilezero tmm2",
            "if_two_tiles tilezero tmm3",
            "2:",
            "load_rows 0",
            "load_columns 2",
            "multiply_parts",
            "load_columns 1",
            "multiply_parts",
            "load_rows 1",
            "multiply_parts",
            "load_columns 0",
            "multiply_parts",
            "load_rows 2",
            "multiply_parts",
            "load_rows 0",
            "multiply_parts",
            "add {rows}, 6144",
            "add {columns}, 6144",
            "dec {steps}",
            "jnz 2b",
            "add {line}, {line}",
            "tilestored [{sums} + {line}], tmm0",
            "tilestored [{sums} + {line} + 64], tmm1",
            "if_two_tiles tilestored [{sums} + {line} + 2048], tmm2",
            "if_two_tiles tilestored [{sums} + {line} + 2112], tmm3",
            ".purgem if_two_tiles",
            ".purgem load_rows",
            ".purgem load_columns",
            ".purgem multiply_parts",
            TILES = const TILES,
            rows = inout(reg) rows => _,
            columns = inout(reg) columns => _,
            ahead = inout(reg) ahead => _,
            steps = inout(reg) steps => _,
            line = inout(reg) ROW_BYTES => _,
            sums = in(reg) &raw mut *sums,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::float::PlainRows;
    use crate::{ImageMut, Lines, Team};
    use proptest::prelude::*;

    /// Numbers of both signs, of very different sizes, that are the same each time.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let fraction = f32::from_bits(1.0_f32.to_bits() | state >> 9) - 1.5;
                fraction * 2.0_f32.powi((state >> 3 & 7).cast_signed() - 4)
            })
            .collect()
    }

    struct Case<'a> {
        /// Rows, depth and columns.
        sizes: [usize; 3],
        input: &'a [f32],
        weights: &'a [f32],
        bias: &'a [f32],
        residual: Option<&'a [f32]>,
        epilogue: Epilogue,
        threads: usize,
    }

    impl<'a> Case<'a> {
        /// On one thread, without a residual operand and epilogue.
        fn new(sizes: [usize; 3], [input, weights, bias]: [&'a [f32]; 3]) -> Self {
            let (residual, epilogue, threads) = (None, Epilogue::NONE, 1);
            Self { sizes, input, weights, bias, residual, epilogue, threads }
        }

        /// The product, in an output that has a gap of one between its rows; none if it cannot be tried here.
        fn compute(&self) -> Option<Vec<f32>> {
            if !amx::multiplies_bfloat16() {
                eprintln!("not tried: there is no use of AMX for bfloat16 here");
                return None;
            }
            let [rows, depth, columns] = self.sizes;
            let mut preparation = Preparation::new(InstructionSet::Avx512Amx, self.threads);
            let plan = RowsPlan {
                count: rows,
                line: rows,
                bytes: 4 * rows * depth,
                row_bytes: 0,
                scratch_values: 0,
            };
            let Self { bias, weights: filter, epilogue, .. } = *self;
            let layer = Layer { filter, bias, epilogue };
            let product = SplitProduct::new(plan, depth, layer, &mut preparation).unwrap();
            drop(preparation);
            let stride = columns + 1;
            let mut output = vec![7.5; rows * stride];
            let mut scratch = Lines::with_bytes(product.scratch_bytes());
            let given = PlainRows::new(self.input, [rows, 1, depth], depth);
            let arguments = Arguments {
                rows: &given,
                residual: self.residual.map(|values| Image { values, pixel_stride: columns }),
                output: ImageMut { values: &mut output, pixel_stride: stride },
                scratch: scratch.lines_mut(),
            };
            product.run(&mut Team::new(self.threads), arguments);
            assert!(output.chunks(stride).all(|row| row[columns] == 7.5), "the gap was written");
            Some(output.chunks(stride).flat_map(|row| row[..columns].to_vec()).collect())
        }

        /// Each sum, in double precision, and the sum of the magnitudes that it has.
        fn expected(&self, row: usize, column: usize) -> (f64, f64) {
            let [_, depth, columns] = self.sizes;
            let inputs = &self.input[row * depth..][..depth];
            let weights = &self.weights[column * depth..][..depth];
            let residual = self.residual.map_or(0.0, |it| f64::from(it[row * columns + column]));
            let first = [f64::from(self.bias[column]), residual];
            let products = inputs.iter().zip(weights).map(|(x, w)| f64::from(*x) * f64::from(*w));
            let all = first.into_iter().chain(products);
            all.fold((0.0, 0.0), |(sum, magnitudes), it| (sum + it, magnitudes + it.abs()))
        }
    }

    #[test]
    fn numbers_are_the_sums_of_their_parts() {
        for value in numbers(10_000, 3).into_iter().chain([0.0, -0.0, f32::MAX, f32::MIN_POSITIVE])
        {
            assert_eq!(joined(split(value)).to_bits(), value.to_bits(), "{value}");
        }
        for value in [f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(joined(split(value)), value);
        }
        // Also one whose upper half alone would be an infinity.
        assert!(joined(split(f32::from_bits(0x7F80_0001))).is_nan());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn products_are_those_of_float32(
            (rows, depth, columns) in (1_usize..150, 1_usize..1300, 1_usize..90),
            has_residual in any::<bool>(),
            is_clamped in any::<bool>(),
            threads in 1_usize..3,
        ) {
            let input = numbers(rows * depth, 1);
            let weights = numbers(columns * depth, 2);
            let bias = numbers(columns, 3);
            let residual = numbers(rows * columns, 4);
            let case = Case {
                residual: has_residual.then_some(&residual[..]),
                epilogue: if is_clamped { Epilogue::RELU6 } else { Epilogue::NONE },
                threads,
                ..Case::new([rows, depth, columns], [&input, &weights, &bias])
            };
            let Some(found) = case.compute() else { return Ok(()) };
            for (index, found) in found.into_iter().enumerate() {
                let (sum, magnitudes) = case.expected(index / columns, index % columns);
                let sum = if is_clamped { sum.clamp(0.0, 6.0) } else { sum };
                // What rounding the products alone may give, and each sum of some hundred to half a unit.
                let most = magnitudes * f64::from(f32::EPSILON) * (depth as f64).sqrt().max(4.0);
                let difference = (f64::from(found) - sum).abs();
                prop_assert!(difference <= most, "{index}: {found}, not {sum}; {difference} > {most}");
            }
        }
    }

    #[test]
    fn a_long_sum_is_as_near_as_one_of_float32() {
        let sizes = [40, 4608, 64];
        let [rows, depth, columns] = sizes;
        let (input, weights) = (numbers(rows * depth, 5), numbers(columns * depth, 6));
        let bias = vec![0.0; columns];
        let case = Case::new(sizes, [&input, &weights, &bias]);
        let Some(found) = case.compute() else { return };
        let mut squares = [0.0; 2];
        for (index, found) in found.into_iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let (sum, _) = case.expected(row, column);
            let inputs = &input[row * depth..][..depth];
            let products = inputs.iter().zip(&weights[column * depth..]);
            let in_order = products.fold(0.0_f32, |sum, (x, w)| x.mul_add(*w, sum));
            for (squares, value) in squares.iter_mut().zip([found, in_order]) {
                *squares += (f64::from(value) - sum).powi(2);
            }
        }
        let [found, in_order] = squares.map(f64::sqrt);
        assert!(found <= in_order, "an error of {found}, and {in_order} of float32");
    }

    #[test]
    fn infinities_and_nans_come_out_as_of_float32() {
        let sizes = [70, 600, 40];
        let [rows, depth, columns] = sizes;
        let (mut input, mut weights) = (numbers(rows * depth, 7), numbers(columns * depth, 8));
        let bias = numbers(columns, 9);
        input[33 * depth + 590] = f32::INFINITY;
        input[34 * depth] = f32::NAN;
        for has_special_weight in [false, true] {
            if has_special_weight {
                weights[20 * depth + 5] = f32::NEG_INFINITY;
            }
            let case = Case::new(sizes, [&input, &weights, &bias]);
            let Some(found) = case.compute() else { return };
            for (index, found) in found.into_iter().enumerate() {
                let (sum, magnitudes) = case.expected(index / columns, index % columns);
                if sum.is_finite() {
                    let most = magnitudes * 1e-5;
                    assert!((f64::from(found) - sum).abs() <= most, "{index}: {found}, not {sum}");
                } else {
                    assert_eq!(found.is_nan(), sum.is_nan(), "{index}: {found}, not {sum}");
                    assert!(sum.is_nan() || f64::from(found) == sum, "{index}: {found}, not {sum}");
                }
            }
        }
    }
}
