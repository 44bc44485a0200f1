//! What all kernels that multiply four taps at a time have in common.
//!
//! The bytes of four taps are interleaved, so that each channel has its four one behind the other, as
//! dot products want them: for `LANES` channels that takes 8 shuffles, and as many dot products as sums
//! take vectors, which are four. Several pixels are computed together, so that constants are loaded
//! once for them and, with filters of 3x3 and 5x5, so that they share interleaved columns.
#![allow(unsafe_code)]
// Helpers are inlined into the functions that have the instructions enabled.
#![allow(clippy::inline_always)]

use super::packing::{Layout, Order};
use super::problem::{Problem, Run};
use crate::quantization::Signedness;
use crate::requantize::ChannelLanes;

/// A block's channels fill the lanes.
pub(super) const FULL: u8 = 0;
/// A block has fewer.
pub(super) const PARTIAL: u8 = 1;
/// Two pixels of a block share the lanes.
pub(super) const PAIR: u8 = 2;
/// Two pixels of a block share the lanes and fill them.
pub(super) const FULL_PAIR: u8 = 3;

/// The orders, and of columns the stride; each has kernels of its own, which are small enough for
/// compilers. Those of one pixel are for runs that have fewer than are computed together.
const ROWS: u8 = 0;
const COLUMNS_3_1: u8 = 1;
const COLUMNS_3_2: u8 = 2;
const COLUMNS_5_1: u8 = 3;
const COLUMNS_5_2: u8 = 4;
const ONE_ROWS: u8 = 5;
const ONE_COLUMNS_3: u8 = 6;
const ONE_COLUMNS_5: u8 = 7;

/// Vectors of `LANES` bytes, and of a quarter of that many sums.
///
/// # Safety
/// Whoever calls any of this is compiled for the instructions that it is made of, which the processor
/// has; for that all is `#[inline(always)]`.
pub(super) trait Vectors {
    /// A byte for each channel.
    type Bytes: Copy;
    /// Sums of a quarter of the channels, in the order that interleaving gives.
    type Sums: Copy;

    /// Channels of a vector.
    const LANES: usize;
    /// Whether loads of fewer channels cost no more than those of all, so that there are kernels of
    /// their own for neither `FULL` nor `FULL_PAIR`.
    const HAS_MASKS: bool;
    /// What inputs are when they are multiplied.
    const INPUT_SIGN: Signedness;
    /// Whether sums can be requantized in floats.
    const HAS_FLOATS: bool = false;

    /// Loads the block's channels of the pixel of a table's entry, or of two into the halves, as
    /// numbers of [`INPUT_SIGN`](Self::INPUT_SIGN).
    ///
    /// # Safety
    /// As of [`compute`], for the entry.
    unsafe fn load<const SHARE: u8>(problem: &Problem, run: &Run<'_>, entry: usize) -> Self::Bytes;

    /// Bytes of four taps, for each lane one behind the other.
    unsafe fn interleave(taps: [Self::Bytes; 4]) -> [Self::Bytes; 4];

    /// What the sums of a quarter begin with.
    ///
    /// # Safety
    /// There are as many lanes as the vectors of a block have.
    unsafe fn first(lanes: &[ChannelLanes], quarter: usize) -> Self::Sums;

    /// Requantizes and stores the first `P` pixels of a run.
    ///
    /// # Safety
    /// As of [`compute`], and the run has this many pixels.
    unsafe fn store<const P: usize, const SHARE: u8>(
        problem: &Problem,
        run: &Run<'_>,
        sums: [[Self::Sums; 4]; P],
    );
}

/// How four taps are multiplied.
///
/// # Safety
/// As of [`Vectors`], but for [`kernel`](Self::kernel), which is compiled for the instructions itself.
pub(super) trait Arithmetic {
    type Vectors: Vectors;
    /// Four inputs of each channel of a quarter.
    type Inputs: Copy;

    /// How weights are packed.
    const LAYOUT: Layout;
    /// Pixels that are computed together.
    const PIXELS: usize;
    /// Bytes of the weights of a quarter in a step.
    const WEIGHT_BYTES: usize;
    /// Whether weights may be sums of two bytes.
    const HAS_PARTS: bool;

    /// From interleaved bytes.
    unsafe fn inputs(bytes: Bytes<Self>) -> Self::Inputs;

    /// Adds four products to each sum of a quarter.
    ///
    /// # Safety
    /// There are this many weights.
    unsafe fn multiply(sums: Sums<Self>, inputs: Self::Inputs, weights: *const u8) -> Sums<Self>;

    /// [`pixels`], compiled for the instructions.
    ///
    /// # Safety
    /// As of [`pixels`]; the processor has the instructions.
    unsafe fn kernel<const ORDER: u8, const SHARE: u8, const TWO: bool>(
        problem: &Problem,
        run: &Run<'_>,
    );
}

/// [`Arithmetic::kernel`], compiled for instructions that `#[target_feature]` names, which computes this many pixels together.
macro_rules! kernel {
    ($features:literal, $pixels:literal) => {
        const PIXELS: usize = $pixels;

        #[target_feature(enable = $features)]
        unsafe fn kernel<const ORDER: u8, const SHARE: u8, const TWO: bool>(
            problem: &Problem,
            run: &Run<'_>,
        ) {
            let vectors =
                <<Self as Arithmetic>::Vectors as Vectors>::LANES / crate::requantize::LANES;
            assert_eq!(run.lanes.len(), vectors, "constants of a block");
            // SAFETY: the caller's promises.
            unsafe { pixels::<Self, $pixels, ORDER, SHARE, TWO>(problem, run) }
        }
    };
}
pub(super) use kernel;

type Bytes<A> = <<A as Arithmetic>::Vectors as Vectors>::Bytes;
type Sums<A> = <<A as Arithmetic>::Vectors as Vectors>::Sums;

/// Computes the pixels of a run.
///
/// # Safety
/// The processor has the instructions. The table has the addresses of all taps of all pixels, those of
/// the partners among them, and behind each the block's channels can be read, of which there is at
/// least one. The block's channels of all pixels' outputs can be written, and no one else accesses them.
/// The weights are those of all steps of the block as they are packed for the kernel, the order and
/// the filter, and begin on a line; so do those of each step.
pub(super) unsafe fn compute<A: Arithmetic>(problem: &Problem, run: &Run<'_>) {
    let is_enough = run.count >= A::PIXELS;
    let kernel = match (problem.order, problem.stride, is_enough) {
        (Order::Rows, _, true) => of_order::<A, ROWS>(run),
        (Order::Rows, _, false) => of_order::<A, ONE_ROWS>(run),
        (Order::Columns3, 1, true) => of_order::<A, COLUMNS_3_1>(run),
        (Order::Columns3, _, true) => of_order::<A, COLUMNS_3_2>(run),
        (Order::Columns3, _, false) => of_order::<A, ONE_COLUMNS_3>(run),
        (Order::Columns5, 1, true) => of_order::<A, COLUMNS_5_1>(run),
        (Order::Columns5, _, true) => of_order::<A, COLUMNS_5_2>(run),
        (Order::Columns5, _, false) => of_order::<A, ONE_COLUMNS_5>(run),
        (Order::Pairs3, ..) => unreachable!("has kernels of its own"),
    };
    // SAFETY: the caller's promises.
    unsafe { kernel(problem, run) }
}

/// As [`pixels`].
type Kernel = unsafe fn(&Problem, &Run<'_>);

fn of_order<A: Arithmetic, const ORDER: u8>(run: &Run<'_>) -> Kernel {
    let is_full = run.block.channels * run.block.pixels == A::Vectors::LANES;
    match (run.block.pixels, is_full) {
        (1, true) if const { !A::Vectors::HAS_MASKS } => of_share::<A, ORDER, FULL>(run),
        (1, _) => of_share::<A, ORDER, PARTIAL>(run),
        (2, true) if const { !A::Vectors::HAS_MASKS && A::Vectors::LANES > 16 } => {
            of_share::<A, ORDER, FULL_PAIR>(run)
        }
        (2, _) if const { A::Vectors::LANES > 16 } => of_share::<A, ORDER, PAIR>(run),
        (pixels, _) => unreachable!("no kernel for {pixels} pixels"),
    }
}

fn of_share<A: Arithmetic, const ORDER: u8, const SHARE: u8>(run: &Run<'_>) -> Kernel {
    match run.block.has_two_parts {
        true if const { A::HAS_PARTS } => A::kernel::<ORDER, SHARE, true>,
        true => unreachable!("weights of two parts"),
        false => A::kernel::<ORDER, SHARE, false>,
    }
}

/// The pixels of a run, by `P` or one by one; `ORDER` and `SHARE` say how taps are multiplied and lanes are used;
/// with `TWO` the weights are sums of two bytes.
///
/// # Safety
/// As of [`compute`], where the block is as the parameters say.
#[inline(always)]
pub(super) unsafe fn pixels<
    A: Arithmetic,
    const P: usize,
    const ORDER: u8,
    const SHARE: u8,
    const TWO: bool,
>(
    problem: &Problem,
    run: &Run<'_>,
) {
    let together = if const { ORDER < ONE_ROWS } { P } else { 1 };
    let mut first = 0;
    while first + together <= run.count {
        let group = run.after(first, problem.stride);
        // SAFETY: the caller's promises; the pixels are within the run.
        unsafe {
            match ORDER {
                ROWS => rows::<A, P, SHARE, TWO>(problem, &group),
                COLUMNS_3_1 => columns::<A, P, 1, 3, SHARE, TWO>(problem, &group),
                COLUMNS_3_2 => columns::<A, P, 2, 3, SHARE, TWO>(problem, &group),
                COLUMNS_5_1 => columns::<A, P, 1, 5, SHARE, TWO>(problem, &group),
                COLUMNS_5_2 => columns::<A, P, 2, 5, SHARE, TWO>(problem, &group),
                ONE_ROWS => rows::<A, 1, SHARE, TWO>(problem, &group),
                ONE_COLUMNS_3 => columns::<A, 1, 1, 3, SHARE, TWO>(problem, &group),
                _ => columns::<A, 1, 1, 5, SHARE, TWO>(problem, &group),
            }
        }
        first += together;
        if first < run.count && first + together > run.count {
            // The last ones together with some that are computed again.
            first = run.count - together;
        }
    }
}

/// Adds products with the weights of a step, of which there are this many in each part.
///
/// # Safety
/// The block has the step.
#[inline(always)]
unsafe fn multiply<A: Arithmetic, const TWO: bool>(
    run: &Run<'_>,
    (step, steps): (usize, usize),
    inputs: [A::Inputs; 4],
    sums: &mut [Sums<A>; 4],
) {
    for quarter in 0..4 {
        let bytes = A::WEIGHT_BYTES;
        // SAFETY: each step has four vectors.
        unsafe {
            let weights =
                run.weights.add(step.wrapping_mul(4).wrapping_add(quarter).wrapping_mul(bytes));
            sums[quarter] = A::multiply(sums[quarter], inputs[quarter], weights);
            if const { TWO } {
                let weights = weights.add(steps * 4 * bytes);
                sums[quarter] = A::multiply(sums[quarter], inputs[quarter], weights);
            }
        }
    }
}

/// What sums of a block begin with.
///
/// # Safety
/// As of [`Vectors::first`].
#[inline(always)]
unsafe fn first_sums<A: Arithmetic, const P: usize>(run: &Run<'_>) -> [[Sums<A>; 4]; P] {
    // SAFETY: the caller's promise.
    unsafe {
        let sums = [
            A::Vectors::first(run.lanes, 0),
            A::Vectors::first(run.lanes, 1),
            A::Vectors::first(run.lanes, 2),
            A::Vectors::first(run.lanes, 3),
        ];
        [sums; P]
    }
}

/// The interleaved bytes of four entries.
///
/// # Safety
/// As of [`pixels`], for the entries.
#[inline(always)]
unsafe fn interleaved<A: Arithmetic, const SHARE: u8>(
    problem: &Problem,
    run: &Run<'_>,
    [a, b, c, d]: [usize; 4],
) -> [A::Inputs; 4] {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d] = A::Vectors::interleave([
            A::Vectors::load::<SHARE>(problem, run, a),
            A::Vectors::load::<SHARE>(problem, run, b),
            A::Vectors::load::<SHARE>(problem, run, c),
            A::Vectors::load::<SHARE>(problem, run, d),
        ]);
        [A::inputs(a), A::inputs(b), A::inputs(c), A::inputs(d)]
    }
}

/// The first `P` pixels of a run, four taps at a time.
///
/// # Safety
/// As of [`pixels`].
#[inline(always)]
unsafe fn rows<A: Arithmetic, const P: usize, const SHARE: u8, const TWO: bool>(
    problem: &Problem,
    run: &Run<'_>,
) {
    let [height, width] = problem.filter;
    let taps = height * width;
    let steps = taps.div_ceil(4);
    // SAFETY: entries of taps of pixels, the block's steps, and the caller's promises.
    unsafe {
        let mut sums = first_sums::<A, P>(run);
        let (mut i, mut j) = (0, 0);
        for step in 0..steps {
            // Taps that are not there are multiplied by zero, so any will do.
            let mut entries = [0; 4];
            for entry in &mut entries {
                *entry = run.columns.wrapping_mul(i).wrapping_add(problem.dilation.wrapping_mul(j));
                if j + 1 < width {
                    j += 1;
                } else if i + 1 < height {
                    (i, j) = (i + 1, 0);
                }
            }
            /// Written out, for a loop would keep the sums in memory.
            macro_rules! pixels {
                ($($p:literal)+) => {$(
                    if const { $p < P } {
                        let [a, b, c, d] = entries;
                        let first = problem.stride.wrapping_mul($p);
                        let entries = [
                            a.wrapping_add(first),
                            b.wrapping_add(first),
                            c.wrapping_add(first),
                            d.wrapping_add(first),
                        ];
                        let inputs = interleaved::<A, SHARE>(problem, run, entries);
                        multiply::<A, TWO>(run, (step, steps), inputs, &mut sums[$p]);
                    }
                )+};
            }
            pixels!(0 1 2 3);
        }
        A::Vectors::store::<P, SHARE>(problem, run, sums);
    }
}

/// Multiplies the inputs of a column with the weights of each pixel that sees it and adds the products
/// to its sums. `$step` gives the step of the pixel whose first column is the given one, if it has one.
/// Written out, for a loop would keep the sums in memory; what is not there is not compiled.
macro_rules! for_columns {
    ($sums:ident, $run:expr, $steps:ident, $inputs:ident, $step:expr, [$($column:literal)+]) => {$(
        if const {
            $step($column, 0).is_some()
                || $step($column, 1).is_some()
                || $step($column, 2).is_some()
                || $step($column, 3).is_some()
        } {
            let inputs = $inputs!($column);
            for_columns!(@ $sums, $run, $steps, inputs, $step, $column, [0 1 2 3]);
        }
    )+};
    (@ $sums:ident, $run:expr, $steps:ident, $inputs:ident, $step:expr, $column:literal, [$($p:literal)+]) => {$(
        if const { $step($column, $p).is_some() } {
            let step = $step($column, $p).unwrap_or_default();
            multiply::<A, TWO>($run, (step, $steps), $inputs, &mut $sums[$p]);
        }
    )+};
}

/// The first `P` pixels of a run of a filter of 3x3 or 5x5, `WIDTH` taps in a row. The three taps of a column at a time, or the
/// upper four: columns are interleaved once for all pixels that see them, which are `S` columns from each other. Then, of 5x5,
/// four taps of the last row, of which one pixel takes its first four and the one before it its last.
///
/// # Safety
/// As of [`pixels`].
#[inline(always)]
unsafe fn columns<
    A: Arithmetic,
    const P: usize,
    const S: usize,
    const WIDTH: usize,
    const SHARE: u8,
    const TWO: bool,
>(
    problem: &Problem,
    run: &Run<'_>,
) {
    // SAFETY: entries of taps of pixels, one of three steps or seven, and the caller's promises.
    unsafe {
        macro_rules! column {
            ($column:literal) => {{
                // The fourth weight of three taps is zero.
                let rows = if const { WIDTH == 3 } { [0, 1, 2, 2] } else { [0, 1, 2, 3] };
                let entries = column(run, $column, rows);
                interleaved::<A, SHARE>(problem, run, entries)
            }};
        }
        macro_rules! last_row {
            ($column:literal) => {{
                // Columns behind the last one are not there; their weights are zero.
                let last = (P - 1) * S + 4;
                let row = run.columns.wrapping_mul(4);
                let entries = [
                    row.wrapping_add(last.min($column)),
                    row.wrapping_add(last.min($column + 1)),
                    row.wrapping_add(last.min($column + 2)),
                    row.wrapping_add(last.min($column + 3)),
                ];
                interleaved::<A, SHARE>(problem, run, entries)
            }};
        }
        let mut sums = first_sums::<A, P>(run);
        let steps = if const { WIDTH == 3 } { 3 } else { 7 };
        for_columns!(sums, run, steps, column, step_of_column::<P, S, WIDTH>, [0 1 2 3 4 5 6 7 8 9 10]);
        for_columns!(sums, run, steps, last_row, step_of_last_row::<P, S, WIDTH>, [0 1 2 3 4 5 6 7 8 9 10]);
        if const { P == 1 && WIDTH == 5 } {
            // The place of the weight among those of the last tap does not matter.
            let inputs = interleaved::<A, SHARE>(problem, run, column(run, 4, [4; 4]));
            multiply::<A, TWO>(run, (6, steps), inputs, &mut sums[0]);
        }
        A::Vectors::store::<P, SHARE>(problem, run, sums);
    }
}

/// The entries of four rows in a column. (Nothing here is a closure: see [`crate::unrolled`].)
#[inline(always)]
fn column(run: &Run<'_>, column: usize, [a, b, c, d]: [usize; 4]) -> [usize; 4] {
    // Within the table.
    [
        column.wrapping_add(run.columns.wrapping_mul(a)),
        column.wrapping_add(run.columns.wrapping_mul(b)),
        column.wrapping_add(run.columns.wrapping_mul(c)),
        column.wrapping_add(run.columns.wrapping_mul(d)),
    ]
}

/// The step of a pixel that a column is, if the pixel sees it: a column of the filter.
#[inline(always)]
const fn step_of_column<const P: usize, const S: usize, const WIDTH: usize>(
    column: usize,
    pixel: usize,
) -> Option<usize> {
    if pixel < P && column >= pixel * S && column < pixel * S + WIDTH {
        Some(column - pixel * S)
    } else {
        None
    }
}

/// The step of a pixel that four taps of the last row from a column on are, if they are its first four
/// or its last one is among them. Of a single pixel the last one is not; of three taps there is no such row.
#[inline(always)]
const fn step_of_last_row<const P: usize, const S: usize, const WIDTH: usize>(
    column: usize,
    pixel: usize,
) -> Option<usize> {
    // As `Order::Columns5` places the last weight.
    let last = pixel * S + if S == 1 { 1 } else { 4 };
    if pixel >= P || WIDTH == 3 {
        None
    } else if column == pixel * S {
        Some(5)
    } else if column == last && P > 1 {
        Some(6)
    } else {
        None
    }
}
