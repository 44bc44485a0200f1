//! What all kernels have in common: tiles of rows and vectors of 16 channels, whatever the instructions
//! that multiply.
//!
//! The sums of a tile stay in registers. Each step of four inputs loads the weights of each vector once
//! for all rows, and the inputs of each row once for all vectors, so that with enough of both products
//! are the limit and not loads.
#![allow(unsafe_code)]
// Helpers are inlined into the functions whose registers they work on.
#![allow(clippy::inline_always)]
#![allow(clippy::needless_range_loop)] // Plain counters are what gets unrolled into registers.

use super::block::Block;
use super::problem::{Inputs, Problem};
use super::{Ahead, ChannelLanes, DEPTH, Tile};
use crate::gemm::float::{SECOND_CACHE, prefetch};
use crate::requantize::LANES;
use bytemuck::Pod;

/// Where the outputs of rows go, of a block of `W` vectors, and how sums become outputs.
#[derive(Clone, Copy)]
pub(super) struct Target<'a, const W: usize> {
    pub problem: &'a Problem,
    pub block: &'a Block,
    pub lanes: &'a [ChannelLanes; W],
    /// Where the first row's outputs begin.
    pub output: *mut u8,
    /// From one row's outputs to the next, in bytes.
    pub step: usize,
}

impl<const W: usize> Target<'_, W> {
    /// Where a row's outputs begin.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> *mut u8 {
        self.output.wrapping_add(self.step.wrapping_mul(row))
    }

    /// Requantizes one by one and stores: for each row the sums of all lanes of `W` vectors.
    ///
    /// # Safety
    /// As of [`Sums::finish`].
    #[cold]
    pub(super) unsafe fn store_scalar(self, sums: &[[i32; LANES]]) {
        for (row, sums) in sums.chunks_exact(W).enumerate() {
            for index in 0..self.block.channels {
                let (vector, lane) = self.block.place(index);
                let byte = self.problem.output(self.block, index, sums[vector][lane]);
                // SAFETY: a channel of the row, which may be written.
                unsafe { self.row(row).add(index).write(byte) };
            }
        }
    }
}

/// 16 sums in registers, in memory as [`LANES`] numbers.
///
/// # Safety
/// Whoever calls any of this is compiled for the instructions that it is made of, which the processor
/// has; for that all is `#[inline(always)]`.
pub(super) trait Sums: Pod {
    /// Whether they can be requantized in floats.
    const HAS_FLOATS: bool = false;

    /// Loads sums, or what they begin with.
    #[inline(always)]
    fn load(from: &[i32; LANES]) -> Self {
        bytemuck::cast(*from)
    }

    /// Adds the same number to all.
    unsafe fn add(self, term: i32) -> Self;

    /// Requantizes and stores.
    ///
    /// # Safety
    /// The block has `W` vectors and at least a channel. Its channels of `R` rows may be written; of
    /// [`Form::Sums`](super::Form::Sums) the sums of all lanes.
    unsafe fn finish<const R: usize, const W: usize>(target: Target<'_, W>, sums: [[Self; W]; R]);
}

/// Adds to each row's sums what that row's get in addition, if they get anything.
///
/// # Safety
/// As of [`Sums`].
#[inline(always)]
pub(super) unsafe fn add_terms<S: Sums, const R: usize, const W: usize>(
    sums: &mut [[S; W]; R],
    terms: Option<&[i32]>,
) {
    let Some(terms) = terms else { return };
    for (row, &term) in sums.iter_mut().zip(terms) {
        for sums in row {
            // SAFETY: the caller's promise.
            *sums = unsafe { sums.add(term) };
        }
    }
}

/// How the four weights of a step and a channel are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// As four bytes.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    Bytes,
    /// As four bytes in runs of few steps; in others each two steps together, a channel's eight bytes one behind the other: see
    /// [`pair_steps`].
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    BytesOfTwoSteps,
    /// By twos: those of all channels of a vector, then the other twos.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]
    BytesByTwo,
    /// As 16-bit numbers, by twos: those of all channels of all vectors, then the other twos.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Words,
}

/// Steps of a run from which on two of them are packed together, see [`pair_steps`].
pub(super) const LEAST_STEPS_TO_PAIR: usize = 8;

/// Of a run of one vector, each two steps together: each channel's four bytes of the one step beside those of the other. Of runs of few steps,
/// and of the last of an odd number, they stay where they are.
pub(super) fn pair_steps(run: &mut [u8]) {
    const STEP: usize = DEPTH * LANES;
    if run.len() < LEAST_STEPS_TO_PAIR * STEP {
        return;
    }
    let (pairs, _) = run.as_chunks_mut::<{ 2 * STEP }>();
    for pair in pairs {
        let before = *pair;
        let (first, second) = before.split_at(STEP);
        let channels = pair.chunks_exact_mut(2 * DEPTH);
        for ((to, first), second) in
            channels.zip(first.chunks_exact(DEPTH)).zip(second.chunks_exact(DEPTH))
        {
            to[..DEPTH].copy_from_slice(first);
            to[DEPTH..].copy_from_slice(second);
        }
    }
}

/// How four bytes of inputs and the weights of 16 channels are multiplied.
///
/// # Safety
/// As of [`Sums`], but for [`kernel`](Self::kernel), which is compiled for the instructions itself.
pub(super) trait Arithmetic: Copy + Default {
    type Sums: Sums;
    /// Four bytes of a row, for all lanes.
    type Inputs: Copy;
    /// The same number of weights of each of 16 channels, as they are packed. They begin on a line, or on half of one if they
    /// have no more bytes.
    type Weights: Pod;

    /// Rows of a tile, at most, by the number of its block's vectors; 0 if there are no such blocks.
    const ROWS: [usize; 5];

    /// Bytes of an input in a row; 2 if [`Matrix::copy_rows`] widens rows, all runs of which are then one.
    /// [`step`](Self::step) takes four bytes of a row.
    const INPUT_BYTES: usize = 1;

    /// How the weights of a step are packed.
    const PACKING: Packing;

    /// Whether it makes signed inputs unsigned in each step, if nothing did it before.
    const FLIPS_INPUTS: bool = false;

    /// Whether it makes inputs signed (or else unsigned).
    const HAS_SIGNED_INPUTS: bool = false;

    /// Adds bytes, each with the bits of a mask inverted; the processor has the instructions.
    const SUM: unsafe fn(&[u8], u8) -> i32 = sum;

    /// Whether lines are fetched into the second cache in each step.
    const FETCHES: bool = false;

    /// Repeats four bytes in all lanes: of signed numbers, or of unsigned ones.
    unsafe fn inputs<const SIGNED: bool>(self, four: u32) -> Self::Inputs;

    /// Adds their products to each sum.
    unsafe fn multiply(
        self,
        sums: Self::Sums,
        inputs: Self::Inputs,
        weights: Self::Weights,
    ) -> Self::Sums;

    /// Adds the products of this many steps of a run.
    ///
    /// # Safety
    /// Four bytes can be read at each step of each row; there are weights for all steps and `W`
    /// vectors, on a line.
    #[inline(always)]
    unsafe fn run<const R: usize, const W: usize, const SIGNED: bool>(
        self,
        rows: &[*const u8; R],
        steps: usize,
        streams: &mut Streams,
        sums: &mut [[Self::Sums; W]; R],
    ) {
        for step in 0..steps {
            // SAFETY: the caller's promises.
            unsafe { self.step::<R, W, SIGNED>(rows, step, streams, sums) };
        }
    }

    /// Adds the products of one step.
    ///
    /// # Safety
    /// As of [`run`](Self::run), for the step.
    #[inline(always)]
    unsafe fn step<const R: usize, const W: usize, const SIGNED: bool>(
        self,
        rows: &[*const u8; R],
        step: usize,
        streams: &mut Streams,
        sums: &mut [[Self::Sums; W]; R],
    ) {
        let from: *const Self::Weights = streams.weights.cast();
        // SAFETY: the caller's promises.
        unsafe {
            let mut weights = [from.read(); W];
            for v in 1..W {
                weights[v] = from.add(v).read();
            }
            for r in 0..R {
                // Below the bytes of a run, which are in memory: a check would be for nothing.
                let four = rows[r].add(DEPTH.wrapping_mul(step)).cast::<u32>().read_unaligned();
                let inputs = self.inputs::<SIGNED>(four);
                for v in 0..W {
                    sums[r][v] = self.multiply(sums[r][v], inputs, weights[v]);
                }
            }
        }
        if const { Self::FETCHES } {
            prefetch::<SECOND_CACHE>(streams.ahead.cast());
        }
        streams.weights = from.wrapping_add(W).cast();
        streams.ahead = streams.ahead.wrapping_add(streams.step_bytes);
    }

    /// [`tiles`], compiled for the instructions.
    ///
    /// # Safety
    /// As of [`tiles`]; the processor has the instructions.
    unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(work: Work<'_>);

    /// Requantizes rows of sums that are in memory, of one vector of channels, compiled for the instructions.
    ///
    /// # Safety
    /// As of [`Sums::finish`]; the processor has the instructions.
    #[cfg(target_arch = "x86_64")]
    unsafe fn requantize_rows<const R: usize>(target: Target<'_, 1>, sums: &[[i32; LANES]; R]);
}

/// The methods of [`Arithmetic`] that are compiled for instructions which `#[target_feature]` names, or for those that each
/// processor has.
macro_rules! kernel {
    ($($features:literal)?) => {
        $(#[target_feature(enable = $features)])?
        unsafe fn kernel<const R: usize, const W: usize, const SIGNED: bool>(work: Work<'_>) {
            // SAFETY: the caller's promises; without a name every processor of the target has the instructions.
            unsafe { tiles::<Self, R, W, SIGNED>(work) }
        }

        #[cfg(target_arch = "x86_64")]
        $(#[target_feature(enable = $features)])?
        unsafe fn requantize_rows<const R: usize>(target: Target<'_, 1>, sums: &[[i32; LANES]; R]) {
            let mut vectors = [[Self::Sums::load(&sums[0])]; R];
            for r in 1..R {
                vectors[r] = [Self::Sums::load(&sums[r])];
            }
            // SAFETY: the caller's promises.
            unsafe { Self::Sums::finish::<R, 1>(target, vectors) }
        }
    };
}
pub(super) use kernel;

/// What [`Arithmetic`] of rows that are widened to 16-bit numbers has in common: a step takes two of them.
#[cfg(target_arch = "x86_64")]
macro_rules! widened {
    ($register:ident, $repeat:ident) => {
        type Inputs = $register;

        const INPUT_BYTES: usize = 2;

        const FETCHES: bool = true;

        #[inline(always)]
        unsafe fn inputs<const SIGNED: bool>(self, two: u32) -> $register {
            // SAFETY: the trait's promise.
            unsafe { $repeat(two.cast_signed()) }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use widened;

/// Requantizes sums of one vector of channels, a row each: from 1 to 4 of them.
///
/// # Safety
/// As of [`Arithmetic::requantize_rows`].
#[cfg(target_arch = "x86_64")]
pub(super) unsafe fn requantize<A: Arithmetic>(target: Target<'_, 1>, sums: &[[i32; LANES]]) {
    /// With a constant number of rows.
    ///
    /// # Safety
    /// As of [`requantize`].
    unsafe fn rows<A: Arithmetic, const R: usize>(target: Target<'_, 1>, sums: &[[i32; LANES]]) {
        let sums = sums.try_into().expect("this many rows");
        // SAFETY: the caller's promise.
        unsafe { A::requantize_rows::<R>(target, sums) };
    }
    // SAFETY: the caller's promise.
    unsafe {
        match sums.len() {
            1 => rows::<A, 1>(target, sums),
            2 => rows::<A, 2>(target, sums),
            3 => rows::<A, 3>(target, sums),
            4 => rows::<A, 4>(target, sums),
            rows => unreachable!("{rows} rows"),
        }
    }
}

/// What is read on in each step.
pub(super) struct Streams {
    /// The next step's weights.
    pub weights: *const u8,
    /// The next line to fetch.
    pub ahead: *const u8,
    /// See [`Ahead`].
    pub step_bytes: usize,
}

/// Tiles to be computed, each behind the one before it.
pub(super) struct Work<'a> {
    pub problem: &'a Problem,
    pub block: &'a Block,
    /// The first one.
    pub tile: &'a Tile<'a>,
    /// How many there are.
    pub tiles: usize,
    pub ahead: &'a mut Ahead,
}

/// Computes tiles, as [`compute`].
pub(super) type Compute = unsafe fn(Work<'_>);

/// Computes tiles.
///
/// # Safety
/// As of [`Matrix::compute_rows`]; the processor has the instructions, and their tiles have this many
/// rows and vectors.
pub(super) unsafe fn compute<A: Arithmetic>(work: Work<'_>) {
    let are_signed = work.problem.common.is_signed && work.problem.inputs == Inputs::Stored;
    let (vectors, rows) = (work.block.vectors, work.tile.rows);
    let kernel = match are_signed {
        // Widened inputs are as if they had been unsigned.
        true if const { A::INPUT_BYTES == 1 } => of_width::<A, true>(vectors, rows),
        _ => of_width::<A, false>(vectors, rows),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(work) }
}

/// The kernel for this many vectors and rows. What an instruction set has no tiles for is not compiled.
fn of_width<A: Arithmetic, const SIGNED: bool>(vectors: usize, rows: usize) -> Compute {
    match vectors {
        1 => with_rows::<A, 1, SIGNED>(rows),
        2 if const { A::ROWS[2] > 0 } => with_rows::<A, 2, SIGNED>(rows),
        4 if const { A::ROWS[4] > 0 } => with_rows::<A, 4, SIGNED>(rows),
        _ => unreachable!("no kernel for {vectors} vectors"),
    }
}

fn with_rows<A: Arithmetic, const W: usize, const SIGNED: bool>(rows: usize) -> Compute {
    match rows {
        1 => A::kernel::<1, W, SIGNED>,
        2 => A::kernel::<2, W, SIGNED>,
        3 => A::kernel::<3, W, SIGNED>,
        4 => A::kernel::<4, W, SIGNED>,
        5 if const { A::ROWS[W] >= 5 } => A::kernel::<5, W, SIGNED>,
        6 if const { A::ROWS[W] >= 6 } => A::kernel::<6, W, SIGNED>,
        7 if const { A::ROWS[W] >= 7 } => A::kernel::<7, W, SIGNED>,
        8 if const { A::ROWS[W] >= 8 } => A::kernel::<8, W, SIGNED>,
        _ => unreachable!("no kernel for {rows} rows and {W} vectors"),
    }
}

/// Tiles of `R` rows and `W` vectors of channels.
///
/// # Safety
/// As of [`compute`], where the tile has `R` rows and the block `W` vectors.
#[inline(always)]
pub(super) unsafe fn tiles<A: Arithmetic, const R: usize, const W: usize, const SIGNED: bool>(
    Work { problem, block, tile, tiles, ahead }: Work<'_>,
) {
    let lanes: &[_; W] = tile.lanes.try_into().expect("one for each vector");
    let (mut runs, mut steps) = (problem.common.runs, problem.common.run_bytes.div_ceil(DEPTH));
    if A::INPUT_BYTES > 1 || problem.inputs == Inputs::Copied {
        // Fewer than the bytes of the packed weights.
        (runs, steps) = (1, runs.wrapping_mul(steps).wrapping_mul(A::INPUT_BYTES));
    }
    // SAFETY: the table has an address for each run of each row, `R` rows for each tile; the weights are
    // those of all steps of all runs and `W` vectors, which is as many as the block has. The rest is the
    // caller's promise.
    unsafe {
        let arithmetic = A::default();
        for index in 0..tiles {
            let mut sums = [[A::Sums::load(&lanes[0].bias); W]; R];
            for v in 1..W {
                let first = A::Sums::load(&lanes[v].bias);
                for row in &mut sums {
                    row[v] = first;
                }
            }
            add_terms(&mut sums, tile.row_terms.map(|terms| &terms[index * R..][..R]));
            let mut streams =
                Streams { weights: tile.weights, ahead: ahead.next, step_bytes: ahead.step_bytes };
            for run in 0..runs {
                let mut rows = [std::ptr::null(); R];
                // Within the table, so that nothing wraps.
                let first = run.wrapping_mul(tile.table_step).wrapping_add(index.wrapping_mul(R));
                for (r, row) in rows.iter_mut().enumerate() {
                    *row = *tile.table.add(first.wrapping_add(r));
                }
                arithmetic.run::<R, W, SIGNED>(&rows, steps, &mut streams, &mut sums);
            }
            ahead.next = streams.ahead;
            let step = tile.output_step;
            let output = tile.output.wrapping_add(index.wrapping_mul(R).wrapping_mul(step));
            A::Sums::finish::<R, W>(Target { problem, block, lanes, output, step }, sums);
        }
    }
}

/// The sum of bytes, each with the bits of `flip` inverted.
///
/// # Safety
/// None of its own.
unsafe fn sum(bytes: &[u8], flip: u8) -> i32 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(i32::from(byte ^ flip)))
}
