//! [`Arrays`]: vectors as arrays of 4 numbers, which compilers turn into whatever vectors the
//! target always has.

use super::registers::{copies, first, first_mut};
use super::{ROUNDER, Simd, WORDS};

const LANES: usize = 4;
type Floats = [f32; LANES];
type Integers = [i32; LANES];
type Words = [i16; WORDS];

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

/// Methods that do the same in each lane, or each word.
macro_rules! methods {
    ($each:ident: $(fn $name:ident(
        $($argument:ident: $type:ty),* $(; $count:ident: u32)?
    ) -> $result:ty = $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $type),* $(, $count: u32)?) -> $result {
            $each!(lane => {
                $(let $argument = $argument[lane];)*
                $value
            })
        }
    )*};
}

/// Whether to multiply and add with one rounding is an instruction, not a function call.
const IS_FUSED: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[inline(always)]
fn fma(a: f32, b: f32, c: f32) -> f32 {
    if IS_FUSED { a.mul_add(b, c) } else { a * b + c }
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
    type W = Words;
    const LANES: usize = LANES;
    const REGISTERS: usize = 8;
    const FUSED: bool = IS_FUSED;

    methods! { lanes:
        fn add(a: Floats, b: Floats) -> Floats = a + b;
        fn sub(a: Floats, b: Floats) -> Floats = a - b;
        fn mul(a: Floats, b: Floats) -> Floats = a * b;
        fn div(a: Floats, b: Floats) -> Floats = a / b;
        fn min(a: Floats, b: Floats) -> Floats = if a < b { a } else { b };
        fn max(a: Floats, b: Floats) -> Floats = if a > b { a } else { b };
        fn fma(a: Floats, b: Floats, c: Floats) -> Floats = fma(a, b, c);
        fn sqrt(a: Floats) -> Floats = a.sqrt();
        fn floor(a: Floats) -> Floats = a.floor();
        fn round(a: Floats) -> Floats = round(a);
        fn abs(a: Floats) -> Floats = a.abs();
        fn lt(a: Floats, b: Floats) -> [bool; LANES] = a < b;
        fn eq(a: Floats, b: Floats) -> [bool; LANES] = a == b;
        fn select(condition: [bool; LANES], yes: Floats, no: Floats) -> Floats =
            if condition { yes } else { no };
        fn bits(a: Floats) -> Integers = a.to_bits().cast_signed();
        fn of_bits(a: Integers) -> Floats = f32::from_bits(a.cast_unsigned());
        fn to_i32(a: Floats) -> Integers = round(a) as i32;
        fn to_f32(a: Integers) -> Floats = a as f32;
        fn iadd(a: Integers, b: Integers) -> Integers = a.wrapping_add(b);
        fn isub(a: Integers, b: Integers) -> Integers = a.wrapping_sub(b);
        fn imul(a: Integers, b: Integers) -> Integers = a.wrapping_mul(b);
        fn iand(a: Integers, b: Integers) -> Integers = a & b;
        fn ior(a: Integers, b: Integers) -> Integers = a | b;
        fn ixor(a: Integers, b: Integers) -> Integers = a ^ b;
        fn imin(a: Integers, b: Integers) -> Integers = a.min(b);
        fn imax(a: Integers, b: Integers) -> Integers = a.max(b);
        fn shift_left(a: Integers; count: u32) -> Integers = a.wrapping_shl(count);
        fn shift_right(a: Integers; count: u32) -> Integers = a.wrapping_shr(count);
        fn doubling_high(a: Integers, b: Integers) -> Integers =
            ((i64::from(a) * i64::from(b) + (1 << 30)) >> 31) as i32;
    }

    methods! { words:
        fn wload_u8(from: &[u8; WORDS]) -> Words = from.into();
        fn wload_i8(from: &[i8; WORDS]) -> Words = from.into();
        fn wadd(a: Words, b: Words) -> Words = a.wrapping_add(b);
        fn wsub(a: Words, b: Words) -> Words = a.wrapping_sub(b);
        fn wshift_left(a: Words; count: u32) -> Words = a.wrapping_shl(count);
    }

    copies!();

    #[inline(always)]
    fn splat(self, value: f32) -> Floats {
        [value; LANES]
    }
    #[inline(always)]
    fn isplat(self, value: i32) -> Integers {
        [value; LANES]
    }
    #[inline(always)]
    fn wsplat(self, value: i16) -> Words {
        [value; WORDS]
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
    fn load_partial(self, from: &[f32], fill: f32) -> Floats {
        lanes!(lane => from.get(lane).copied().unwrap_or(fill))
    }
    #[inline(always)]
    fn store_partial(self, value: Floats, to: &mut [f32]) {
        for (to, value) in to.iter_mut().zip(value) {
            *to = value;
        }
    }
    #[inline(always)]
    fn load_f16(self, from: &[u16]) -> Floats {
        let from: &[u16; LANES] = first(from);
        lanes!(lane => half::f16::from_bits(from[lane]).to_f32())
    }
    #[inline(always)]
    fn store_f16(self, value: Floats, to: &mut [u16]) {
        *first_mut(to) = lanes!(lane => half::f16::from_f32(value[lane]).to_bits());
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
        *first_mut(to) = lanes!(lane => value[lane] as u8);
    }
    #[inline(always)]
    fn store_i8(self, value: Integers, to: &mut [i8]) {
        *first_mut(to) = lanes!(lane => value[lane] as i8);
    }
}
