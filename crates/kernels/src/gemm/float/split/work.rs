//! What a task of a [`SplitProduct`] computes.
#![allow(unsafe_code)]

use super::super::{Epilogue, MOST_SEGMENTS, Rows, Target, located};
use super::parts::{OF_STEP, PAIR, PARTS, STEP, TILE, split_values};
use super::tiles::{LINES_AHEAD, PAIRS_AHEAD, Sums, multiply_tiles};
use super::{LOOKED_UP, SplitProduct};
use crate::amx::{TILE_ROWS, TileRegisters};
use crate::disjoint::DisjointOutput;
use crate::team::{Pace, Stop, part};
use crate::vector::pointers::{load_some, store, store_some};
use crate::vector::{Kernel, Simd};
use crate::{Image, LINE_BYTES};
use std::mem::MaybeUninit;
use std::ops::Range;

/// A product that is being computed.
pub(super) struct Work<'a> {
    pub(super) product: &'a SplitProduct,
    pub(super) rows: &'a dyn Rows,
    pub(super) residual: Option<Image<'a, f32>>,
    /// From a row of the output to the next one.
    pub(super) stride: usize,
    pub(super) output: &'a DisjointOutput<'a, f32>,
}

impl Work<'_> {
    pub(super) fn task(&self, task: usize, scratch: &mut [u8], stop: &Stop) {
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
            let addresses = located(self.rows, &some, scratch, &mut table);
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
        let addresses = located(self.rows, &(row..row + 1), scratch, &mut table);
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
