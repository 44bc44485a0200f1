//! [`Arrays`]: vectors as arrays of 4 numbers, which compilers turn into whatever vectors the
//! target always has.

use super::{ROUNDER, Simd, WORDS, first};

const LANES: usize = 4;
type Floats = [f32; LANES];
type Integers = [i32; LANES];

/// Arrays of 4 numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrays;

/// An array of what an expression is for each lane. Written out: closures and loops are many times as much for the compiler, in
/// every kernel.
macro_rules! lanes {
    ($lane:ident => $value:expr) => {
        lanes!($lane => $value, 0 1 2 3)
    };
    ($lane:ident => $value:expr, $($number:literal)+) => {
        [$({
            let $lane = $number;
            $value
        }),+]
    };
}

/// The same of the numbers of 16 bits.
macro_rules! words {
    ($lane:ident => $value:expr) => {
        lanes!($lane => $value, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
}

/// Multiplies and adds with one rounding where that is an instruction, not a function call.
#[inline(always)]
fn fma(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        a.mul_add(b, c)
    } else {
        a * b + c
    }
}

#[inline(always)]
fn round(x: f32) -> f32 {
    let rounded = ((x.abs() + ROUNDER) - ROUNDER).copysign(x);
    // Greater ones are integers already; NaN stays what it is.
    if x.abs() < ROUNDER { rounded } else { x }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
impl Simd for Arrays {
    type F = Floats;
    type I = Integers;
    type M = [bool; LANES];
    type W = [i16; WORDS];
    const LANES: usize = LANES;
    const REGISTERS: usize = 8;

    #[inline(always)]
    fn splat(self, value: f32) -> Floats {
        [value; LANES]
    }
    #[inline(always)]
    fn load(self, from: &[f32]) -> Floats {
        *first(from)
    }
    #[inline(always)]
    fn load_partial(self, from: &[f32], fill: f32) -> Floats {
        lanes!(lane => from.get(lane).copied().unwrap_or(fill))
    }
    #[inline(always)]
    fn store(self, value: Floats, to: &mut [f32]) {
        to[..LANES].copy_from_slice(&value);
    }
    #[inline(always)]
    fn store_partial(self, value: Floats, to: &mut [f32]) {
        for (to, value) in to.iter_mut().zip(value) {
            *to = value;
        }
    }
    #[inline(always)]
    fn add(self, a: Floats, b: Floats) -> Floats {
        lanes!(lane => a[lane] + b[lane])
    }
    #[inline(always)]
    fn sub(self, a: Floats, b: Floats) -> Floats {
        lanes!(lane => a[lane] - b[lane])
    }
    #[inline(always)]
    fn mul(self, a: Floats, b: Floats) -> Floats {
        lanes!(lane => a[lane] * b[lane])
    }
    #[inline(always)]
    fn div(self, a: Floats, b: Floats) -> Floats {
        lanes!(lane => a[lane] / b[lane])
    }
    #[inline(always)]
    fn min(self, a: Floats, b: Floats) -> Floats {
        lanes!(lane => if a[lane] < b[lane] { a[lane] } else { b[lane] })
    }
    #[inline(always)]
    fn max(self, a: Floats, b: Floats) -> Floats {
        lanes!(lane => if a[lane] > b[lane] { a[lane] } else { b[lane] })
    }
    #[inline(always)]
    fn fma(self, a: Floats, b: Floats, c: Floats) -> Floats {
        lanes!(lane => fma(a[lane], b[lane], c[lane]))
    }
    #[inline(always)]
    fn sqrt(self, a: Floats) -> Floats {
        lanes!(lane => a[lane].sqrt())
    }
    #[inline(always)]
    fn floor(self, a: Floats) -> Floats {
        lanes!(lane => a[lane].floor())
    }
    #[inline(always)]
    fn round(self, a: Floats) -> Floats {
        lanes!(lane => round(a[lane]))
    }
    #[inline(always)]
    fn abs(self, a: Floats) -> Floats {
        lanes!(lane => a[lane].abs())
    }
    #[inline(always)]
    fn lt(self, a: Floats, b: Floats) -> [bool; LANES] {
        lanes!(lane => a[lane] < b[lane])
    }
    #[inline(always)]
    fn eq(self, a: Floats, b: Floats) -> [bool; LANES] {
        lanes!(lane => a[lane] == b[lane])
    }
    #[inline(always)]
    fn select(self, condition: [bool; LANES], yes: Floats, no: Floats) -> Floats {
        lanes!(lane => if condition[lane] { yes[lane] } else { no[lane] })
    }
    #[inline(always)]
    fn bits(self, a: Floats) -> Integers {
        lanes!(lane => a[lane].to_bits().cast_signed())
    }
    #[inline(always)]
    fn of_bits(self, a: Integers) -> Floats {
        lanes!(lane => f32::from_bits(a[lane].cast_unsigned()))
    }
    #[inline(always)]
    fn to_i32(self, a: Floats) -> Integers {
        lanes!(lane => round(a[lane]) as i32)
    }
    #[inline(always)]
    fn to_f32(self, a: Integers) -> Floats {
        lanes!(lane => a[lane] as f32)
    }
    #[inline(always)]
    fn sum(self, a: Floats) -> f32 {
        (a[0] + a[2]) + (a[1] + a[3])
    }
    #[inline(always)]
    fn greatest(self, a: Floats) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16]) -> Floats {
        let from: &[u16; LANES] = first(from);
        lanes!(lane => half::f16::from_bits(from[lane]).to_f32())
    }
    #[inline(always)]
    fn store_f16(self, value: Floats, to: &mut [u16]) {
        for (to, value) in to[..LANES].iter_mut().zip(value) {
            *to = half::f16::from_f32(value).to_bits();
        }
    }

    #[inline(always)]
    fn isplat(self, value: i32) -> Integers {
        [value; LANES]
    }
    #[inline(always)]
    fn iload(self, from: &[i32]) -> Integers {
        *first(from)
    }
    #[inline(always)]
    fn istore(self, value: Integers, to: &mut [i32]) {
        to[..LANES].copy_from_slice(&value);
    }
    #[inline(always)]
    fn iadd(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    fn isub(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane].wrapping_sub(b[lane]))
    }
    #[inline(always)]
    fn imul(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane].wrapping_mul(b[lane]))
    }
    #[inline(always)]
    fn iand(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane] & b[lane])
    }
    #[inline(always)]
    fn ior(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane] | b[lane])
    }
    #[inline(always)]
    fn ixor(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane] ^ b[lane])
    }
    #[inline(always)]
    fn imin(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane].min(b[lane]))
    }
    #[inline(always)]
    fn imax(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => a[lane].max(b[lane]))
    }
    #[inline(always)]
    fn shift_left(self, a: Integers, count: u32) -> Integers {
        lanes!(lane => a[lane].wrapping_shl(count))
    }
    #[inline(always)]
    fn shift_right(self, a: Integers, count: u32) -> Integers {
        lanes!(lane => a[lane].wrapping_shr(count))
    }
    #[inline(always)]
    fn doubling_high(self, a: Integers, b: Integers) -> Integers {
        lanes!(lane => ((i64::from(a[lane]) * i64::from(b[lane]) + (1 << 30)) >> 31) as i32)
    }
    #[inline(always)]
    fn load_u8(self, from: &[u8]) -> Integers {
        let from: &[u8; LANES] = first(from);
        lanes!(lane => from[lane].into())
    }
    #[inline(always)]
    fn load_i8(self, from: &[i8]) -> Integers {
        let from: &[i8; LANES] = first(from);
        lanes!(lane => from[lane].into())
    }
    #[inline(always)]
    fn store_u8(self, value: Integers, to: &mut [u8]) {
        for (to, value) in to[..LANES].iter_mut().zip(value) {
            *to = value as u8;
        }
    }
    #[inline(always)]
    fn store_i8(self, value: Integers, to: &mut [i8]) {
        for (to, value) in to[..LANES].iter_mut().zip(value) {
            *to = value as i8;
        }
    }
    #[inline(always)]
    fn wsplat(self, value: i16) -> [i16; WORDS] {
        [value; WORDS]
    }
    #[inline(always)]
    fn wload_u8(self, from: &[u8; WORDS]) -> [i16; WORDS] {
        words!(lane => from[lane].into())
    }
    #[inline(always)]
    fn wload_i8(self, from: &[i8; WORDS]) -> [i16; WORDS] {
        words!(lane => from[lane].into())
    }
    #[inline(always)]
    fn wstore(self, value: [i16; WORDS], to: &mut [i16; WORDS]) {
        *to = value;
    }
    #[inline(always)]
    fn wadd(self, a: [i16; WORDS], b: [i16; WORDS]) -> [i16; WORDS] {
        words!(lane => a[lane].wrapping_add(b[lane]))
    }
    #[inline(always)]
    fn wsub(self, a: [i16; WORDS], b: [i16; WORDS]) -> [i16; WORDS] {
        words!(lane => a[lane].wrapping_sub(b[lane]))
    }
    #[inline(always)]
    fn wshift_left(self, a: [i16; WORDS], count: u32) -> [i16; WORDS] {
        words!(lane => a[lane].wrapping_shl(count))
    }
}
