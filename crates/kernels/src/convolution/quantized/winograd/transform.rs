//! The transforms of Winograd's convolutions F(2x2, 3x3) and F(4x4, 3x3) in whole numbers: into the domain
//! where convolution is multiplication, and back.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Rows and columns, of more than one array.

use crate::requantize::LANES;
use crate::vector::{Kernel, Simd, WORDS};

/// Rows and columns of an input tile, at most.
const MOST_INPUT: usize = 6;
/// Rows and columns of an output tile, at most.
pub(super) const MOST_OUTPUT: usize = 4;
/// Values of an input tile, at most.
pub(super) const MOST_POINTS: usize = MOST_INPUT * MOST_INPUT;

/// The transforms of a size of tiles.
///
/// The filter's and the input's are those of polynomials that are evaluated at some points, each multiplied by
/// what makes it whole numbers. What was multiplied too much is a factor of an output row: a power of two, and
/// 3 where points have that in their distances. Sums wrap modulo 2^32, where the inverse of 9 takes the 3 of rows
/// and columns away exactly; powers of two are shifted out, which is exact if the sum did not need their bits.
pub(super) trait Transforms: Copy {
    /// Rows and columns of an output tile.
    const OUTPUT: usize;
    /// Rows and columns of an input tile: those that an output tile sees.
    const INPUT: usize = Self::OUTPUT + 2;
    /// What each point has of the filter's three rows.
    const FILTER: [[i16; 3]; MOST_INPUT];
    /// Inputs of an input tile have factors in each point of two dimensions. The greatest sum of the positive
    /// factors of a point, and of the magnitudes of the negative ones.
    const INPUT_FACTORS: [i32; 2];
    /// By which power of two an output row, or column, is too large.
    const EXCESS: [u32; MOST_OUTPUT];
    /// What takes other factors away, modulo 2^32.
    const INVERSE: i32;

    /// A row or column of an input tile.
    fn forward<S: Simd>(simd: S, x: [S::W; MOST_INPUT]) -> [S::W; MOST_INPUT];

    /// A row or column of products.
    fn backward<S: Simd>(simd: S, x: [S::I; MOST_INPUT]) -> [S::I; MOST_OUTPUT];
}

/// F(2x2, 3x3): the points 0, ±1 and infinity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Two;

/// F(4x4, 3x3): the points 0, ±1, ±2 and infinity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Four;

impl Transforms for Two {
    const OUTPUT: usize = 2;
    const FILTER: [[i16; 3]; MOST_INPUT] =
        [[1, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 1], [0; 3], [0; 3]];
    const INPUT_FACTORS: [i32; 2] = [4, 2];
    const EXCESS: [u32; MOST_OUTPUT] = [1, 1, 0, 0];
    const INVERSE: i32 = 1;

    #[inline(always)]
    fn forward<S: Simd>(simd: S, x: [S::W; MOST_INPUT]) -> [S::W; MOST_INPUT] {
        [
            simd.wsub(x[0], x[2]),
            simd.wadd(x[1], x[2]),
            simd.wsub(x[2], x[1]),
            simd.wsub(x[1], x[3]),
            x[4],
            x[5],
        ]
    }

    #[inline(always)]
    fn backward<S: Simd>(simd: S, x: [S::I; MOST_INPUT]) -> [S::I; MOST_OUTPUT] {
        let twice = |a| simd.iadd(a, a);
        let (sum, difference) = (simd.iadd(x[1], x[2]), simd.isub(x[1], x[2]));
        [simd.iadd(twice(x[0]), sum), simd.isub(difference, twice(x[3])), x[0], x[0]]
    }
}

impl Transforms for Four {
    const OUTPUT: usize = 4;
    const FILTER: [[i16; 3]; MOST_INPUT] =
        [[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]];
    const INPUT_FACTORS: [i32; 2] = [68, 50];
    const EXCESS: [u32; MOST_OUTPUT] = [3, 2, 1, 1];
    const INVERSE: i32 = 954_437_177;

    #[inline(always)]
    fn forward<S: Simd>(simd: S, x: [S::W; MOST_INPUT]) -> [S::W; MOST_INPUT] {
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

    #[inline(always)]
    fn backward<S: Simd>(simd: S, x: [S::I; MOST_INPUT]) -> [S::I; MOST_OUTPUT] {
        let twice = |a| simd.iadd(a, a);
        let (a, b) = (simd.iadd(x[1], x[2]), simd.isub(x[1], x[2]));
        let (c, d) = (simd.iadd(x[3], x[4]), simd.isub(x[3], x[4]));
        // 6 x0 - 4 a + c, and 6 x5 - b + 2 d.
        let first = simd.isub(simd.iadd(twice(x[0]), x[0]), twice(a));
        let last = simd.iadd(simd.iadd(twice(x[5]), x[5]), d);
        [
            simd.iadd(twice(first), c),
            simd.isub(d, twice(b)),
            simd.isub(c, a),
            simd.isub(twice(last), b),
        ]
    }
}

/// The transformed filters of a pair of channels each, by point; `taps` are the filters' nine values.
pub(super) fn filters<T: Transforms, const N: usize>(
    _: T,
    taps: &[[i16; N]; 9],
    points: &mut [[i16; N]],
) {
    let weighted = |values: [&[i16; N]; 3], factors: [i16; 3]| -> [i16; N] {
        std::array::from_fn(|k| {
            (values[0][k].wrapping_mul(factors[0]))
                .wrapping_add(values[1][k].wrapping_mul(factors[1]))
                .wrapping_add(values[2][k].wrapping_mul(factors[2]))
        })
    };
    for (row, points) in points.chunks_exact_mut(T::INPUT).enumerate() {
        let columns: [[i16; N]; 3] = std::array::from_fn(|j| {
            weighted([&taps[j], &taps[3 + j], &taps[6 + j]], T::FILTER[row])
        });
        for (column, point) in points.iter_mut().enumerate() {
            let [a, b, c] = &columns;
            *point = weighted([a, b, c], T::FILTER[column]);
        }
    }
}

/// A transform of a tile whose addresses have been promised.
pub(super) struct Promised<K, T>(K, T);

impl<K, T: Transforms> Promised<K, T> {
    /// # Safety
    /// There is at the addresses what [`Forward`] wants, or [`Backward`].
    pub(super) unsafe fn new(transform: K, transforms: T) -> Self {
        Self(transform, transforms)
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

impl<T: Transforms> Kernel for Promised<Forward<'_>, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(forward, _) = self;
        if forward.is_signed {
            // SAFETY: `Promised::new` was promised the addresses.
            unsafe { forward_tile::<S, T, true>(simd, &forward) }
        } else {
            // SAFETY: `Promised::new` was promised the addresses.
            unsafe { forward_tile::<S, T, false>(simd, &forward) }
        }
    }
}

/// # Safety
/// As of [`Promised::new`].
#[inline(always)]
unsafe fn forward_tile<S: Simd, T: Transforms, const SIGNED: bool>(simd: S, forward: &Forward<'_>) {
    const { assert!(255 * T::INPUT_FACTORS[0] <= i16::MAX as i32, "numbers of 16 bits") };
    let mut channel = 0;
    while channel < forward.channels {
        let mut columns = [[simd.wsplat(0); MOST_INPUT]; MOST_INPUT];
        for x in 0..T::INPUT {
            let mut values = [simd.wsplat(0); MOST_INPUT];
            for y in 0..T::INPUT {
                // SAFETY: the caller's promise.
                values[y] = unsafe {
                    let from = forward.pixels.get_unchecked(y * T::INPUT + x).add(channel);
                    if SIGNED { simd.wload_i8(&*from.cast()) } else { simd.wload_u8(&*from.cast()) }
                };
            }
            columns[x] = T::forward(simd, values);
        }
        for y in 0..T::INPUT {
            let mut values = [simd.wsplat(0); MOST_INPUT];
            for x in 0..T::INPUT {
                values[x] = columns[x][y];
            }
            let values = T::forward(simd, values);
            for x in 0..T::INPUT {
                let point = forward.stride.wrapping_mul(y * T::INPUT + x);
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
pub(super) type OutputTile = [[[i32; LANES]; MOST_OUTPUT]; MOST_OUTPUT];

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

impl<T: Transforms> Kernel for Promised<Backward<'_>, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(backward, _) = self;
        let inverse = simd.isplat(T::INVERSE);
        let mut lane = 0;
        while lane < LANES {
            let mut columns = [[simd.isplat(0); MOST_OUTPUT]; MOST_INPUT];
            for x in 0..T::INPUT {
                let mut values = [simd.isplat(0); MOST_INPUT];
                for y in 0..T::INPUT {
                    let point = backward.stride.wrapping_mul(y * T::INPUT + x);
                    // SAFETY: `Promised::new` was promised them.
                    let from = unsafe {
                        std::slice::from_raw_parts(backward.from.add(point).add(lane), S::LANES)
                    };
                    values[y] = simd.iload(from);
                }
                columns[x] = T::backward(simd, values);
            }
            let bias = simd.iload(&backward.bias[lane..]);
            for y in 0..T::OUTPUT {
                let mut values = [simd.isplat(0); MOST_INPUT];
                for x in 0..T::INPUT {
                    values[x] = columns[x][y];
                }
                let values = T::backward(simd, values);
                for x in 0..T::OUTPUT {
                    let mut value = values[x];
                    if T::INVERSE != 1 {
                        value = simd.imul(value, inverse);
                    }
                    let value = simd.shift_right(value, T::EXCESS[y] + T::EXCESS[x]);
                    simd.istore(simd.iadd(value, bias), &mut backward.to[y][x][lane..]);
                }
            }
            lane += S::LANES;
        }
    }
}
