//! The innermost part of the depthwise convolutions that [`super::sliding`] does: the filter slides
//! along some output rows at once, with the weights of a vector of channels and the sums of the
//! columns that it sees in registers. Each input value is loaded once for all rows and taps.
//! Offsets are multiplied without a check of overflow, for they are those of memory that is promised to
//! be there.
#![allow(unsafe_code)]

use crate::gemm::float::Epilogue;
use crate::unrolled::unrolled;
use crate::vector::pointers::{load, load_some, store_some};
use crate::vector::{Isa, Kernel, Simd};

/// Some output rows of an image, all columns of them and all channels of some panels.
///
/// The columns of the input are those that the filter's taps can see from these columns of the
/// output; with a dilation they, and the rows, are not side by side.
pub(super) struct Strip<'a> {
    /// Where the first output row's first tap would see the first of the columns.
    pub(super) input: *const f32,
    /// From one of the input's rows to the next one that taps see, in values.
    pub(super) row_step: usize,
    /// The same of columns.
    pub(super) column_step: usize,
    /// By row, from the one of `input` on: whether it is in the image and not padding.
    pub(super) rows_seen: u32,
    /// Columns of the input.
    pub(super) columns: usize,
    /// Columns of padding before them.
    pub(super) padding: usize,
    /// The first of the output's values.
    pub(super) output: *mut f32,
    /// From one row of the output to the next.
    pub(super) output_row_step: usize,
    /// From one column of the output to the next.
    pub(super) output_column_step: usize,
    /// What is added, if anything.
    pub(super) residual: Option<*const f32>,
    pub(super) residual_row_step: usize,
    pub(super) residual_column_step: usize,
    /// Columns of the output.
    pub(super) width: usize,
    /// How many channels; in the last vector there may be fewer than lanes.
    pub(super) channels: usize,
    /// A panel for each vector: the biases, and the weights of each tap.
    pub(super) panels: *const f32,
    pub(super) epilogue: &'a Epilogue,
}

/// The most rows of a strip.
pub(super) const MOST_ROWS: usize = 7;
/// The most columns of the output whose sums are being computed.
const MOST_COLUMNS: usize = 5;
/// The widest filter.
const MOST_TAPS: usize = 5;
/// The most rows of the input that a strip sees.
const MOST_SEEN: usize = (MOST_ROWS - 1) * 2 + MOST_TAPS;

/// This many rows that all sums fit in the registers, those of each column that sees the same column
/// of the input, beside the weights or the values of an input column.
pub(super) const fn most_rows(registers: usize, filter: usize, stride: usize) -> usize {
    let columns = filter.div_ceil(stride);
    let (registers, sums) = match registers {
        32.. => (29, 18),
        16.. => (16, 10),
        _ => (8, 6),
    };
    let rows = if filter == 3 {
        sums / columns
    } else {
        (registers + stride - filter) / (columns + stride)
    };
    match rows {
        0 => 1,
        MOST_ROWS.. => MOST_ROWS,
        _ => rows,
    }
}

/// Whether the weights of a vector of channels stay in registers while the filter slides. Otherwise the values of a column of the
/// input do, while the weights are read. Of nine weights, that is so if they fit beside the sums, a value and the bias, and
/// if the values would not fit beside the sums and a weight either.
const fn keeps_weights(registers: usize, filter: usize, stride: usize, rows: usize) -> bool {
    let sums = rows * filter.div_ceil(stride);
    let values = (rows - 1) * stride + filter;
    filter == 3 && (sums + 9 + 2 <= registers || sums + values + 1 > registers)
}

struct Microkernel<'a, const FILTER: usize, const STRIDE: usize, const ROWS: usize>(&'a Strip<'a>);

impl<const FILTER: usize, const STRIDE: usize, const ROWS: usize> Kernel
    for Microkernel<'_, FILTER, STRIDE, ROWS>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        // Nothing asks for higher strips, and what is never run need not be compiled.
        if const { ROWS > most_rows(S::REGISTERS, FILTER, STRIDE) } {
            unreachable!("no such strip");
        }
        let strip = self.0;
        let mut first = 0;
        // SAFETY: as `run_strip` was promised, for these channels.
        unsafe {
            while first + S::LANES <= strip.channels {
                slide::<S, true, FILTER, STRIDE, ROWS>(simd, strip, first, S::LANES);
                first += S::LANES;
            }
            if first < strip.channels {
                slide::<S, false, FILTER, STRIDE, ROWS>(simd, strip, first, strip.channels - first);
            }
        }
    }
}

/// The sums of a vector of channels: by column from the one that is completed next, and row.
type Sums<F> = [[F; MOST_ROWS]; MOST_COLUMNS];

/// Computes the `wanted` channels from `channel` on, which are a vector if `FULL`.
///
/// # Safety
/// As [`run_strip`].
#[inline(always)]
unsafe fn slide<
    S: Simd,
    const FULL: bool,
    const FILTER: usize,
    const STRIDE: usize,
    const ROWS: usize,
>(
    simd: S,
    strip: &Strip<'_>,
    channel: usize,
    wanted: usize,
) {
    // A copy, which no store to the output can be thought to change.
    let epilogue = *strip.epilogue;
    // Columns of the output that see the same column of the input.
    let ahead = FILTER.div_ceil(STRIDE);
    // SAFETY: as the caller promises; columns are read that are in the image, and each that is
    // written is one of the strip's.
    unsafe {
        let panel = strip.panels.add(channel * (1 + FILTER * FILTER));
        let bias = load(simd, panel);
        let panel = panel.add(S::LANES);
        // If they stay in registers.
        let mut weights = [bias; 9];
        if const { keeps_weights(S::REGISTERS, FILTER, STRIDE, ROWS) } {
            unrolled! { TAP < 9, 0 1 2 3 4 5 6 7 8 => {
                weights[TAP] = load(simd, panel.add(TAP * S::LANES));
            }}
        }
        let mut sums: Sums<S::F> = [[bias; MOST_ROWS]; MOST_COLUMNS];
        let input = strip.input.wrapping_add(channel);
        let mut output = strip.output.wrapping_add(channel);
        let mut residual = strip.residual.map(|residual| residual.wrapping_add(channel));
        // The column that the last tap of the output column `1 - ahead` sees. In columns before the
        // first one, sums that no one wants are made while those that are wanted begin.
        let mut column =
            FILTER.cast_signed() - (STRIDE * ahead).cast_signed() - strip.padding.cast_signed();
        for step in 1 - ahead.cast_signed()..strip.width.cast_signed() {
            unrolled! { NEW < STRIDE, 0 1 => {
                let seen = column.wrapping_add_unsigned(NEW).cast_unsigned();
                if seen < strip.columns {
                    let at = input.wrapping_add(seen.wrapping_mul(strip.column_step));
                    if const { keeps_weights(S::REGISTERS, FILTER, STRIDE, ROWS) } {
                        add_column::<S, FULL, FILTER, STRIDE, ROWS, NEW>(
                            simd, strip, at, wanted, &weights, &mut sums,
                        );
                    } else {
                        add_column_by_weights::<S, FULL, FILTER, STRIDE, ROWS, NEW>(
                            simd, strip, at, wanted, panel, &mut sums,
                        );
                    }
                }
            }}
            column += STRIDE.cast_signed();
            if step >= 0 {
                unrolled! { ROW < ROWS, 0 1 2 3 4 5 6 => {
                    let mut value = sums[0][ROW];
                    if let Some(residual) = residual {
                        let from = residual.wrapping_add(strip.residual_row_step.wrapping_mul(ROW));
                        value = simd.add(value, load_some::<S, FULL>(simd, from, wanted));
                    }
                    value = epilogue.apply(simd, value);
                    let to = output.wrapping_add(strip.output_row_step.wrapping_mul(ROW));
                    store_some::<S, FULL>(simd, value, to, wanted);
                }}
                output = output.wrapping_add(strip.output_column_step);
                residual =
                    residual.map(|residual| residual.wrapping_add(strip.residual_column_step));
            }
            unrolled! { ROW < ROWS, 0 1 2 3 4 5 6 => {
                unrolled! { COLUMN < MOST_COLUMNS - 1, 0 1 2 3 => {
                    if const { COLUMN + 1 < FILTER.div_ceil(STRIDE) } {
                        sums[COLUMN][ROW] = sums[COLUMN + 1][ROW];
                    }
                }}
                sums[ahead - 1][ROW] = bias;
            }}
        }
    }
}

/// How many columns of sums see the `new`th column of the input that a step adds.
const fn columns_of(filter: usize, stride: usize, new: usize) -> usize {
    (filter - stride + new) / stride + 1
}

/// By which tap a column of sums sees it; 0 if it does not.
const fn tap_of(filter: usize, stride: usize, new: usize, column: usize) -> usize {
    (filter - stride + new).saturating_sub(column * stride)
}

/// Adds the products of one column of the input: the `NEW`th one of a step.
///
/// # Safety
/// As [`run_strip`]; `at` is the address of the column in the strip's first row.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn add_column<
    S: Simd,
    const FULL: bool,
    const FILTER: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const NEW: usize,
>(
    simd: S,
    strip: &Strip<'_>,
    mut at: *const f32,
    wanted: usize,
    weights: &[S::F; 9],
    sums: &mut Sums<S::F>,
) {
    unrolled! { SEEN < (ROWS - 1) * STRIDE + FILTER, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 => {
        if strip.rows_seen & (1 << SEEN) != 0 {
            // SAFETY: the row is in the image.
            unsafe {
                let value = load_some::<S, FULL>(simd, at, wanted);
                unrolled! { I < FILTER, 0 1 2 3 4 => {
                    if const { sees(SEEN, I, STRIDE, ROWS) } {
                        let row = SEEN.wrapping_sub(I) / STRIDE;
                        add_value::<S, FILTER, STRIDE, NEW, I>(simd, value, weights, row, sums);
                    }
                }}
            }
        }
        at = at.wrapping_add(strip.row_step);
    }}
}

/// Adds the products of one value with the weights of the filter's row `I`.
#[inline(always)]
fn add_value<
    S: Simd,
    const FILTER: usize,
    const STRIDE: usize,
    const NEW: usize,
    const I: usize,
>(
    simd: S,
    value: S::F,
    weights: &[S::F; 9],
    row: usize,
    sums: &mut Sums<S::F>,
) {
    unrolled! { COLUMN < columns_of(FILTER, STRIDE, NEW), 0 1 2 3 4 => {
        let tap = I * FILTER + tap_of(FILTER, STRIDE, NEW, COLUMN);
        sums[COLUMN][row] = simd.fma(value, weights[tap], sums[COLUMN][row]);
    }}
}

/// As [`add_column`], with the values in registers: each weight is loaded once
/// for all rows, and rows that are not seen count as zero.
///
/// # Safety
/// As [`add_column`]; the panel has the weights of all taps.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn add_column_by_weights<
    S: Simd,
    const FULL: bool,
    const FILTER: usize,
    const STRIDE: usize,
    const ROWS: usize,
    const NEW: usize,
>(
    simd: S,
    strip: &Strip<'_>,
    mut at: *const f32,
    wanted: usize,
    panel: *const f32,
    sums: &mut Sums<S::F>,
) {
    let mut values = [simd.splat(0.0); MOST_SEEN];
    unrolled! { SEEN < (ROWS - 1) * STRIDE + FILTER, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 => {
        if strip.rows_seen & (1 << SEEN) != 0 {
            // SAFETY: the row is in the image.
            values[SEEN] = unsafe { load_some::<S, FULL>(simd, at, wanted) };
        }
        at = at.wrapping_add(strip.row_step);
    }}
    unrolled! { I < FILTER, 0 1 2 3 4 => {
        unrolled! { COLUMN < columns_of(FILTER, STRIDE, NEW), 0 1 2 3 4 => {
            let tap = I * FILTER + tap_of(FILTER, STRIDE, NEW, COLUMN);
            // SAFETY: as the caller promises.
            let weight = unsafe { load(simd, panel.add(tap * S::LANES)) };
            add_weight::<S, STRIDE, ROWS, I>(simd, weight, &values, &mut sums[COLUMN]);
        }}
    }}
}

/// Adds the products of a weight of the filter's row `I` with what the rows of the strip see by it.
#[inline(always)]
fn add_weight<S: Simd, const STRIDE: usize, const ROWS: usize, const I: usize>(
    simd: S,
    weight: S::F,
    values: &[S::F; MOST_SEEN],
    sums: &mut [S::F; MOST_ROWS],
) {
    unrolled! { ROW < ROWS, 0 1 2 3 4 5 6 => {
        sums[ROW] = simd.fma(values[ROW * STRIDE + I], weight, sums[ROW]);
    }}
}

/// Whether a row of the strip sees the row `seen` of the input by its tap `tap`.
const fn sees(seen: usize, tap: usize, stride: usize, rows: usize) -> bool {
    seen >= tap && (seen - tap).is_multiple_of(stride) && (seen - tap) / stride < rows
}

/// Computes a strip of `rows` with a square filter.
///
/// # Safety
/// In each row that is seen each column has `channels` values of the input; the panels, one vector
/// wide each and side by side, are those of these channels; and output and residual have `channels`
/// values for each row and column, which in the output no one else touches.
pub(super) unsafe fn run_strip(isa: Isa, [filter, stride, rows]: [usize; 3], strip: &Strip<'_>) {
    macro_rules! choose {
        ($(($filter:literal, $stride:literal, $rows:literal))*) => {
            match [filter, stride, rows] {
                $([$filter, $stride, $rows] => {
                    isa.run(Microkernel::<$filter, $stride, $rows>(strip))
                })*
                _ => unreachable!("no strip of {rows} rows, filter {filter}, stride {stride}"),
            }
        };
    }
    choose! {
        (3, 1, 1) (3, 1, 2) (3, 1, 3) (3, 1, 4) (3, 1, 5) (3, 1, 6) (3, 1, 7)
        (3, 2, 1) (3, 2, 2) (3, 2, 3) (3, 2, 4) (3, 2, 5) (3, 2, 6) (3, 2, 7)
        (5, 1, 1) (5, 1, 2) (5, 1, 3) (5, 1, 4)
        (5, 2, 1) (5, 2, 2) (5, 2, 3) (5, 2, 4) (5, 2, 5)
    }
}
