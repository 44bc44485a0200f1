//! The transforms of Winograd's convolutions by 3x3 filters: into the domain where convolution is
//! multiplication, and back. Offsets are multiplied without a check of overflow, for they are those of
//! memory that is promised to be there.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // Rows and columns, of more than one array.

use crate::gemm::float::{Epilogue, Target};
use crate::vector::pointers::{load, store};
use crate::vector::{Kernel, Simd};

/// Winograd's convolution in one dimension, of `OUTPUT` values that see `INPUT`, by a filter of three. In two
/// dimensions it is applied to columns, then to rows.
pub(super) trait Transforms<const INPUT: usize, const OUTPUT: usize>: Copy {
    /// `G`: the filter's polynomial at each point, divided by the product of the point's distances to the others.
    fn filter() -> [[f64; 3]; INPUT];

    /// `B' x`, of one row or column of an input tile.
    fn into<S: Simd>(simd: S, x: [S::F; INPUT]) -> [S::F; INPUT];

    /// `A' x`, of one row or column of products.
    fn back<S: Simd>(simd: S, x: [S::F; INPUT]) -> [S::F; OUTPUT];
}

/// F(4, 3): polynomials are evaluated at 0, ±[`P`], ±[`Q`] and infinity.
#[derive(Clone, Copy)]
pub(super) struct Four;

/// F(2, 3): polynomials are evaluated at 0, ±1 and infinity.
#[derive(Clone, Copy)]
pub(super) struct Two;

/// Whole numbers (1 and 2) have the error four times as large: what the transforms multiply with spreads
/// further, and more is cancelled. Powers of both up to the fifth are exact in float32.
const P: f32 = 5.0 / 8.0;
const Q: f32 = 3.0 / 2.0;

impl Transforms<6, 4> for Four {
    fn filter() -> [[f64; 3]; 6] {
        let (p, q) = (f64::from(P), f64::from(Q));
        let at = |point: f64, distances: f64| [1.0, point, point * point].map(|it| it / distances);
        let (at_p, at_q) = (2.0 * p * p * (p * p - q * q), 2.0 * q * q * (q * q - p * p));
        [
            at(0.0, p * p * q * q),
            at(p, at_p),
            at(-p, at_p),
            at(q, at_q),
            at(-q, at_q),
            [0.0, 0.0, 1.0],
        ]
    }

    #[inline(always)]
    fn into<S: Simd>(simd: S, x: [S::F; 6]) -> [S::F; 6] {
        let [p, minus_p, q, minus_q] = [P, -P, Q, -Q].map(|it| simd.splat(it));
        let (minus_pp, minus_qq) = (simd.splat(-P * P), simd.splat(-Q * Q));
        let (product, minus_sum) = (simd.splat(P * P * Q * Q), simd.splat(-P * P - Q * Q));
        // The even and the odd terms at ±P, and at ±Q.
        let a = simd.fma(minus_qq, x[2], x[4]);
        let b = simd.fma(minus_qq, x[1], x[3]);
        let c = simd.fma(minus_pp, x[2], x[4]);
        let d = simd.fma(minus_pp, x[1], x[3]);
        [
            simd.fma(product, x[0], simd.fma(minus_sum, x[2], x[4])),
            simd.fma(p, b, a),
            simd.fma(minus_p, b, a),
            simd.fma(q, d, c),
            simd.fma(minus_q, d, c),
            simd.fma(product, x[1], simd.fma(minus_sum, x[3], x[5])),
        ]
    }

    #[inline(always)]
    fn back<S: Simd>(simd: S, x: [S::F; 6]) -> [S::F; 4] {
        let (p, q) = (simd.splat(P), simd.splat(Q));
        let (pp, qq) = (simd.splat(P * P), simd.splat(Q * Q));
        let (ppp, qqq) = (simd.splat(P * P * P), simd.splat(Q * Q * Q));
        let (a, b) = (simd.add(x[1], x[2]), simd.sub(x[1], x[2]));
        let (c, d) = (simd.add(x[3], x[4]), simd.sub(x[3], x[4]));
        [
            simd.add(simd.add(x[0], a), c),
            simd.fma(q, d, simd.mul(p, b)),
            simd.fma(qq, c, simd.mul(pp, a)),
            simd.fma(qqq, d, simd.fma(ppp, b, x[5])),
        ]
    }
}

impl Transforms<4, 2> for Two {
    fn filter() -> [[f64; 3]; 4] {
        [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]]
    }

    #[inline(always)]
    fn into<S: Simd>(simd: S, x: [S::F; 4]) -> [S::F; 4] {
        [simd.sub(x[0], x[2]), simd.add(x[1], x[2]), simd.sub(x[2], x[1]), simd.sub(x[3], x[1])]
    }

    #[inline(always)]
    fn back<S: Simd>(simd: S, x: [S::F; 4]) -> [S::F; 2] {
        let (sum, difference) = (simd.add(x[1], x[2]), simd.sub(x[1], x[2]));
        [simd.add(x[0], sum), simd.add(difference, x[3])]
    }
}

/// A transform of a tile whose addresses have been promised.
pub(super) struct Promised<K, T, const INPUT: usize, const OUTPUT: usize>(K, T);

impl<K, T: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>
    Promised<K, T, INPUT, OUTPUT>
{
    /// # Safety
    /// There is at the addresses what [`Forward`] wants, or [`Backward`]; channels are a multiple of the lanes of the
    /// instructions that it is run with.
    pub(super) unsafe fn new(transform: K, transforms: T) -> Self {
        Self(transform, transforms)
    }
}

/// Transforms an input tile. At each of the pixels' addresses there are `channels` values, and at `to + point * stride` for each
/// point, which no one else reads or writes.
pub(super) struct Forward<'a, const INPUT: usize> {
    /// By row and column.
    pub(super) pixels: &'a [[*const f32; INPUT]; INPUT],
    pub(super) channels: usize,
    pub(super) to: *mut f32,
    pub(super) stride: usize,
}

impl<A: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize> Kernel
    for Promised<Forward<'_, INPUT>, A, INPUT, OUTPUT>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(forward, _) = self;
        let mut channel = 0;
        while channel < forward.channels {
            let mut columns = [[simd.splat(0.0); INPUT]; INPUT];
            for x in 0..INPUT {
                let mut values = [simd.splat(0.0); INPUT];
                for y in 0..INPUT {
                    // SAFETY: `Promised::new` was promised them.
                    values[y] = unsafe { load(simd, forward.pixels[y][x].add(channel)) };
                }
                columns[x] = A::into(simd, values);
            }
            for y in 0..INPUT {
                let mut values = [simd.splat(0.0); INPUT];
                for x in 0..INPUT {
                    values[x] = columns[x][y];
                }
                let values = A::into(simd, values);
                for x in 0..INPUT {
                    // SAFETY: `Promised::new` was promised it.
                    unsafe {
                        let point = forward.stride.wrapping_mul(y * INPUT + x);
                        let to = forward.to.add(channel).add(point);
                        store(simd, values[x], to);
                    }
                }
            }
            channel += S::LANES;
        }
    }
}

/// Transforms the products of a tile back, and finishes them. At `from + point * stride` for each point there are values for all
/// channels of the target; also for each pixel of the output's first `rows` and `columns`, at most those of a tile, which no one
/// else reads or writes, and of the residual, if there is one.
pub(super) struct Backward<'a> {
    pub(super) from: *const f32,
    pub(super) stride: usize,
    pub(super) bias: &'a [f32],
    pub(super) epilogue: &'a Epilogue,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Of the output's rows, in pixels.
    pub(super) width: usize,
    /// Of the first pixel, all channels.
    pub(super) target: Target,
}

impl<A: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize> Kernel
    for Promised<Backward<'_>, A, INPUT, OUTPUT>
{
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(backward, _) = self;
        let Target { output, output_stride, residual, residual_stride, columns } = backward.target;
        let mut channel = 0;
        while channel < columns {
            let mut columns = [[simd.splat(0.0); OUTPUT]; INPUT];
            for x in 0..INPUT {
                let mut values = [simd.splat(0.0); INPUT];
                for y in 0..INPUT {
                    // SAFETY: `Promised::new` was promised them.
                    values[y] = unsafe {
                        let point = backward.stride.wrapping_mul(y * INPUT + x);
                        load(simd, backward.from.add(channel).add(point))
                    };
                }
                columns[x] = A::back(simd, values);
            }
            let bias = simd.load(&backward.bias[channel..]);
            for y in 0..OUTPUT.min(backward.rows) {
                let mut values = [simd.splat(0.0); INPUT];
                for x in 0..INPUT {
                    values[x] = columns[x][y];
                }
                let values = A::back(simd, values);
                for x in 0..OUTPUT.min(backward.columns) {
                    let mut value = simd.add(values[x], bias);
                    let pixel = backward.width.wrapping_mul(y).wrapping_add(x);
                    if let Some(residual) = residual {
                        // SAFETY: `Promised::new` was promised it.
                        let residual = unsafe {
                            let at = residual.add(residual_stride.wrapping_mul(pixel));
                            load(simd, at.add(channel))
                        };
                        value = simd.add(value, residual);
                    }
                    // SAFETY: `Promised::new` was promised it.
                    unsafe {
                        let to = output.add(output_stride.wrapping_mul(pixel)).add(channel);
                        store(simd, backward.epilogue.apply(simd, value), to);
                    }
                }
            }
            channel += S::LANES;
        }
    }
}
