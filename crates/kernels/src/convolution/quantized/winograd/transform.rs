//! The transforms of Winograd's convolution F(4x4, 3x3) in whole numbers: into the domain
//! where convolution is multiplication, and back.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Rows and columns, of more than one array.

use crate::requantize::LANES;
use crate::vector::{Kernel, Simd, WORDS};

/// Rows and columns of an output tile, and of an input tile: those that an output tile sees.
pub(super) const OUTPUT: usize = 4;
pub(super) const INPUT: usize = OUTPUT + 2;
/// Values of an input tile.
pub(super) const POINTS: usize = INPUT * INPUT;

// The filter's transform and the input's are those of polynomials that are evaluated at the points 0, ±1, ±2 and infinity, each
// multiplied by what makes it whole numbers. What was multiplied too much is a factor of an output row: a power of two, and
// 3 where points have that in their distances. Sums wrap modulo 2^32, where the inverse of 9 takes the 3 of rows
// and columns away exactly; powers of two are shifted out, which is exact if the sum did not need their bits.

/// What each point has of the filter's three rows.
pub(super) const FILTER: [[i16; 3]; INPUT] =
    [[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]];
/// Inputs of an input tile have factors in each point of two dimensions. The greatest sum of the positive
/// factors of a point, and of the magnitudes of the negative ones.
pub(super) const INPUT_FACTORS: [i32; 2] = [68, 50];
/// By which power of two an output row, or column, is too large.
pub(super) const EXCESS: [u32; OUTPUT] = [3, 2, 1, 1];
/// What takes other factors away, modulo 2^32.
pub(super) const INVERSE: i32 = 954_437_177;

/// A row or column of an input tile.
#[inline(always)]
pub(super) fn to_points<S: Simd>(simd: S, x: [S::W; INPUT]) -> [S::W; INPUT] {
    let four = |a| simd.wshift_left(a, 2);
    // Of even and odd terms at ±1, and at ±2.
    let a = simd.wsub(x[4], four(x[2]));
    let b = simd.wsub(x[3], four(x[1]));
    let c = simd.wsub(x[4], x[2]);
    let d = simd.wsub(x[3], x[1]);
    let d = simd.wadd(d, d);
    [
        simd.wadd(simd.wsub(a, x[2]), four(x[0])),
        simd.wadd(a, b),
        simd.wsub(a, b),
        simd.wadd(c, d),
        simd.wsub(c, d),
        simd.wsub(simd.wsub(x[5], four(x[3])), b),
    ]
}

/// A row or column of products.
#[inline(always)]
pub(super) fn from_points<S: Simd>(simd: S, x: [S::I; INPUT]) -> [S::I; OUTPUT] {
    let twice = |a| simd.iadd(a, a);
    let (a, b) = (simd.iadd(x[1], x[2]), simd.isub(x[1], x[2]));
    let (c, d) = (simd.iadd(x[3], x[4]), simd.isub(x[3], x[4]));
    // 6 x0 - 4 a + c, and 6 x5 - b + 2 d.
    let first = simd.isub(simd.iadd(twice(x[0]), x[0]), twice(a));
    let last = simd.iadd(simd.iadd(twice(x[5]), x[5]), d);
    [simd.iadd(twice(first), c), simd.isub(d, twice(b)), simd.isub(c, a), simd.isub(twice(last), b)]
}

/// The transformed filters of a pair of channels each, by point; `taps` are the filters' nine values.
pub(super) fn filters<const N: usize>(taps: &[[i16; N]; 9], points: &mut [[i16; N]]) {
    let weighted = |values: [&[i16; N]; 3], factors: [i16; 3]| -> [i16; N] {
        std::array::from_fn(|k| {
            (values[0][k].wrapping_mul(factors[0]))
                .wrapping_add(values[1][k].wrapping_mul(factors[1]))
                .wrapping_add(values[2][k].wrapping_mul(factors[2]))
        })
    };
    for (row, points) in points.chunks_exact_mut(INPUT).enumerate() {
        let columns: [[i16; N]; 3] =
            std::array::from_fn(|j| weighted([&taps[j], &taps[3 + j], &taps[6 + j]], FILTER[row]));
        for (column, point) in points.iter_mut().enumerate() {
            let [a, b, c] = &columns;
            *point = weighted([a, b, c], FILTER[column]);
        }
    }
}

/// A transform of a tile whose addresses have been promised.
pub(super) struct Promised<K>(K);

impl<K> Promised<K> {
    /// # Safety
    /// There is at the addresses what [`Forward`] wants, or [`Backward`].
    pub(super) unsafe fn new(transform: K) -> Self {
        Self(transform)
    }
}

/// Transforms an input tile of 8-bit numbers. There are as many addresses as the tile has values. At each there are `channels`
/// bytes, a multiple of [`WORDS`]; and at `to + point * stride` for each point `channels` numbers, which no one else reads or
/// writes.
pub(super) struct Forward<'a> {
    /// By row and column.
    pub(super) pixels: &'a [*const u8],
    pub(super) channels: usize,
    pub(super) is_signed: bool,
    /// Of the first point.
    pub(super) to: *mut i16,
    /// From one point to the next, in numbers.
    pub(super) stride: usize,
}

impl Kernel for Promised<Forward<'_>> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(forward) = self;
        if forward.is_signed {
            // SAFETY: `Promised::new` was promised the addresses.
            unsafe { forward_tile::<S, true>(simd, &forward) }
        } else {
            // SAFETY: `Promised::new` was promised the addresses.
            unsafe { forward_tile::<S, false>(simd, &forward) }
        }
    }
}

/// # Safety
/// As of [`Promised::new`].
#[inline(always)]
unsafe fn forward_tile<S: Simd, const SIGNED: bool>(simd: S, forward: &Forward<'_>) {
    const { assert!(255 * INPUT_FACTORS[0] <= i16::MAX as i32, "numbers of 16 bits") };
    let mut channel = 0;
    while channel < forward.channels {
        let mut columns = [[simd.wsplat(0); INPUT]; INPUT];
        for x in 0..INPUT {
            let mut values = [simd.wsplat(0); INPUT];
            for y in 0..INPUT {
                // SAFETY: the caller's promise.
                values[y] = unsafe {
                    let from = forward.pixels.get_unchecked(y * INPUT + x).add(channel);
                    if SIGNED { simd.wload_i8(&*from.cast()) } else { simd.wload_u8(&*from.cast()) }
                };
            }
            columns[x] = to_points(simd, values);
        }
        for y in 0..INPUT {
            let mut values = [simd.wsplat(0); INPUT];
            for x in 0..INPUT {
                values[x] = columns[x][y];
            }
            let values = to_points(simd, values);
            for x in 0..INPUT {
                let point = forward.stride.wrapping_mul(y * INPUT + x);
                // SAFETY: the caller's promise.
                unsafe {
                    simd.wstore(values[x], &mut *forward.to.add(channel).add(point).cast());
                }
            }
        }
        channel += WORDS;
    }
}

/// Outputs of a tile in [`LANES`] channels, before they are requantized.
pub(super) type OutputTile = [[[i32; LANES]; OUTPUT]; OUTPUT];

/// Transforms the products of a tile back, for [`LANES`] channels: at `from + point * stride` for each point there is a number
/// for each of them.
pub(super) struct Backward<'a> {
    /// Of the first point.
    pub(super) from: *const i32,
    /// From one point to the next, in numbers.
    pub(super) stride: usize,
    /// What is added to the sums.
    pub(super) bias: &'a [i32; LANES],
    /// By row and column.
    pub(super) to: &'a mut OutputTile,
}

impl Kernel for Promised<Backward<'_>> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(backward) = self;
        let inverse = simd.isplat(INVERSE);
        let mut lane = 0;
        while lane < LANES {
            let mut columns = [[simd.isplat(0); OUTPUT]; INPUT];
            for x in 0..INPUT {
                let mut values = [simd.isplat(0); INPUT];
                for y in 0..INPUT {
                    let point = backward.stride.wrapping_mul(y * INPUT + x);
                    // SAFETY: `Promised::new` was promised them.
                    let from = unsafe {
                        std::slice::from_raw_parts(backward.from.add(point).add(lane), S::LANES)
                    };
                    values[y] = simd.iload(from);
                }
                columns[x] = from_points(simd, values);
            }
            let bias = simd.iload(&backward.bias[lane..]);
            for y in 0..OUTPUT {
                let mut values = [simd.isplat(0); INPUT];
                for x in 0..INPUT {
                    values[x] = columns[x][y];
                }
                let values = from_points(simd, values);
                for x in 0..OUTPUT {
                    let value = simd.imul(values[x], inverse);
                    let value = simd.shift_right(value, EXCESS[y] + EXCESS[x]);
                    simd.istore(simd.iadd(value, bias), &mut backward.to[y][x][lane..]);
                }
            }
            lane += S::LANES;
        }
    }
}
