//! [`Neon`]: vectors of 8 numbers, each in two registers.
#![allow(unsafe_code)]

use super::registers::{copies, first, first_mut, registers};
use super::{Kernel, Simd, WORDS};
use std::arch::aarch64::*;

const LANES: usize = 8;
type Floats = float32x4x2_t;
type Integers = int32x4x2_t;
type Mask = uint32x4x2_t;
type Words = int16x8x2_t;

/// Every 64-bit ARM processor has NEON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Neon(());

impl Neon {
    pub(super) fn new() -> Self {
        Self(())
    }

    /// Runs a kernel. NEON is always enabled, so it need not be compiled separately.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
}

/// Methods that are the same on both registers.
macro_rules! halves {
    ($($wrap:ident fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = |$($part:ident),*| $value:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, $($argument: $type),*) -> $result {
            // SAFETY: every processor of the target has NEON; these only work on registers.
            unsafe {
                let low = { $(let $part = $argument.0;)* $value };
                let high = { $(let $part = $argument.1;)* $value };
                $wrap(low, high)
            }
        }
    )*};
}

impl Simd for Neon {
    type F = Floats;
    type I = Integers;
    type M = Mask;
    type W = Words;
    const LANES: usize = LANES;
    const REGISTERS: usize = 16; // Of two registers each.
    const FUSED: bool = true;

    halves! {
        float32x4x2_t fn add(a: Floats, b: Floats) -> Floats = |a, b| vaddq_f32(a, b);
        float32x4x2_t fn sub(a: Floats, b: Floats) -> Floats = |a, b| vsubq_f32(a, b);
        float32x4x2_t fn mul(a: Floats, b: Floats) -> Floats = |a, b| vmulq_f32(a, b);
        float32x4x2_t fn div(a: Floats, b: Floats) -> Floats = |a, b| vdivq_f32(a, b);
        float32x4x2_t fn min(a: Floats, b: Floats) -> Floats = |a, b| vbslq_f32(vcltq_f32(a, b), a, b);
        float32x4x2_t fn max(a: Floats, b: Floats) -> Floats = |a, b| vbslq_f32(vcgtq_f32(a, b), a, b);
        float32x4x2_t fn fma(a: Floats, b: Floats, c: Floats) -> Floats = |a, b, c| vfmaq_f32(c, a, b);
        float32x4x2_t fn sqrt(a: Floats) -> Floats = |a| vsqrtq_f32(a);
        float32x4x2_t fn floor(a: Floats) -> Floats = |a| vrndmq_f32(a);
        float32x4x2_t fn round(a: Floats) -> Floats = |a| vrndnq_f32(a);
        float32x4x2_t fn abs(a: Floats) -> Floats = |a| vabsq_f32(a);
        uint32x4x2_t fn lt(a: Floats, b: Floats) -> Mask = |a, b| vcltq_f32(a, b);
        uint32x4x2_t fn eq(a: Floats, b: Floats) -> Mask = |a, b| vceqq_f32(a, b);
        float32x4x2_t fn select(condition: Mask, yes: Floats, no: Floats) -> Floats =
            |condition, yes, no| vbslq_f32(condition, yes, no);
        int32x4x2_t fn bits(a: Floats) -> Integers = |a| vreinterpretq_s32_f32(a);
        float32x4x2_t fn of_bits(a: Integers) -> Floats = |a| vreinterpretq_f32_s32(a);
        int32x4x2_t fn to_i32(a: Floats) -> Integers = |a| vcvtnq_s32_f32(a);
        float32x4x2_t fn to_f32(a: Integers) -> Floats = |a| vcvtq_f32_s32(a);
        int32x4x2_t fn iadd(a: Integers, b: Integers) -> Integers = |a, b| vaddq_s32(a, b);
        int32x4x2_t fn isub(a: Integers, b: Integers) -> Integers = |a, b| vsubq_s32(a, b);
        int32x4x2_t fn imul(a: Integers, b: Integers) -> Integers = |a, b| vmulq_s32(a, b);
        int32x4x2_t fn iand(a: Integers, b: Integers) -> Integers = |a, b| vandq_s32(a, b);
        int32x4x2_t fn ior(a: Integers, b: Integers) -> Integers = |a, b| vorrq_s32(a, b);
        int32x4x2_t fn ixor(a: Integers, b: Integers) -> Integers = |a, b| veorq_s32(a, b);
        int32x4x2_t fn imin(a: Integers, b: Integers) -> Integers = |a, b| vminq_s32(a, b);
        int32x4x2_t fn imax(a: Integers, b: Integers) -> Integers = |a, b| vmaxq_s32(a, b);
        int16x8x2_t fn wadd(a: Words, b: Words) -> Words = |a, b| vaddq_s16(a, b);
        int16x8x2_t fn wsub(a: Words, b: Words) -> Words = |a, b| vsubq_s16(a, b);
        int32x4x2_t fn doubling_high(a: Integers, b: Integers) -> Integers = |a, b| {
            // Bits 31 to 62 of the rounded products.
            let low = vmull_s32(vget_low_s32(a), vget_low_s32(b));
            let high = vmull_high_s32(a, b);
            vcombine_s32(vrshrn_n_s64::<31>(low), vrshrn_n_s64::<31>(high))
        };
    }

    registers! {
        fn splat(self, value: f32) -> Floats = float32x4x2_t(vdupq_n_f32(value), vdupq_n_f32(value));
        fn isplat(self, value: i32) -> Integers = int32x4x2_t(vdupq_n_s32(value), vdupq_n_s32(value));
        fn wsplat(self, value: i16) -> Words = int16x8x2_t(vdupq_n_s16(value), vdupq_n_s16(value));
        fn wload_u8(self, from: &[u8; WORDS]) -> Words = {
            let bytes: uint8x16_t = bytemuck::cast(*from);
            let (low, high) = (vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes));
            int16x8x2_t(vreinterpretq_s16_u16(low), vreinterpretq_s16_u16(high))
        };
        fn wload_i8(self, from: &[i8; WORDS]) -> Words = {
            let bytes: int8x16_t = bytemuck::cast(*from);
            int16x8x2_t(vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes))
        };
        fn wshift_left(self, a: Words, count: u32) -> Words = {
            #[allow(clippy::cast_possible_truncation)] // Up to 15.
            let count = vdupq_n_s16(count as i16);
            int16x8x2_t(vshlq_s16(a.0, count), vshlq_s16(a.1, count))
        };
        fn sum(self, a: Floats) -> f32 = vaddvq_f32(vaddq_f32(a.0, a.1));
        fn greatest(self, a: Floats) -> f32 = vmaxvq_f32(vmaxq_f32(a.0, a.1));
        // Conversions of floats of 16 bits are a part of what every processor has.
        fn load_f16(self, from: &[u16]) -> Floats = {
            let halves: uint16x8_t = bytemuck::cast(*first::<_, LANES>(from));
            let halves = vreinterpretq_f16_u16(halves);
            float32x4x2_t(vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves))
        };
        fn store_f16(self, value: Floats, to: &mut [u16]) = {
            let halves = vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(value.0), value.1));
            *first_mut::<_, LANES>(to) = bytemuck::cast(halves);
        };
        fn shift_left(self, a: Integers, count: u32) -> Integers = {
            let count = vdupq_n_s32(count.cast_signed());
            int32x4x2_t(vshlq_s32(a.0, count), vshlq_s32(a.1, count))
        };
        fn shift_right(self, a: Integers, count: u32) -> Integers = {
            // A negative count shifts right.
            let count = vdupq_n_s32(-count.cast_signed());
            int32x4x2_t(vshlq_s32(a.0, count), vshlq_s32(a.1, count))
        };
        fn load_u8(self, from: &[u8]) -> Integers = {
            let bytes: uint8x8_t = bytemuck::cast(*first::<_, LANES>(from));
            let words = vreinterpretq_s16_u16(vmovl_u8(bytes));
            int32x4x2_t(vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words))
        };
        fn load_i8(self, from: &[i8]) -> Integers = {
            let bytes: int8x8_t = bytemuck::cast(*first::<_, LANES>(from));
            let words = vmovl_s8(bytes);
            int32x4x2_t(vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words))
        };
        fn store_u8(self, value: Integers, to: &mut [u8]) =
            *first_mut::<_, LANES>(to) = bytemuck::cast(narrow(value));
        fn store_i8(self, value: Integers, to: &mut [i8]) =
            *first_mut::<_, LANES>(to) = bytemuck::cast(narrow(value));
    }

    copies!();

    #[inline(always)]
    fn load_partial(self, from: &[f32], fill: f32) -> Floats {
        let fill = self.splat(fill).0;
        let (low, high) = from.split_at(from.len().min(4));
        float32x4x2_t(load_up_to_4(low, fill), load_up_to_4(high, fill))
    }
    #[inline(always)]
    fn store_partial(self, value: Floats, to: &mut [f32]) {
        let (low, high) = to.split_at_mut(to.len().min(4));
        store_up_to_4(value.0, low);
        store_up_to_4(value.1, high);
    }
}

/// The lowest bytes.
#[inline(always)]
fn narrow(value: Integers) -> int8x8_t {
    // SAFETY: every processor of the target has NEON.
    unsafe { vmovn_s16(vcombine_s16(vmovn_s32(value.0), vmovn_s32(value.1))) }
}

/// The first 4 values, lane by lane if there are fewer, over those of `fill`. (Copying through memory
/// would be a call, for which all registers would have to be saved.)
#[inline(always)]
fn load_up_to_4(from: &[f32], fill: float32x4_t) -> float32x4_t {
    // SAFETY: every processor of the target has NEON; as many elements are there as are loaded.
    unsafe {
        match from {
            [] => fill,
            [a] => vsetq_lane_f32::<0>(*a, fill),
            [a, b] => vsetq_lane_f32::<1>(*b, vsetq_lane_f32::<0>(*a, fill)),
            [a, b, c] => {
                let two = vsetq_lane_f32::<1>(*b, vsetq_lane_f32::<0>(*a, fill));
                vsetq_lane_f32::<2>(*c, two)
            }
            [_, _, _, _, ..] => bytemuck::cast(*first::<_, 4>(from)),
        }
    }
}

/// Stores as many values as there is room for, at most 4.
#[inline(always)]
fn store_up_to_4(value: float32x4_t, to: &mut [f32]) {
    // SAFETY: every processor of the target has NEON; there is room for as many elements as are stored.
    unsafe {
        match to {
            [] => {}
            [a] => *a = vgetq_lane_f32::<0>(value),
            [a, b] => [*a, *b] = [vgetq_lane_f32::<0>(value), vgetq_lane_f32::<1>(value)],
            [a, b, c] => {
                [*a, *b] = [vgetq_lane_f32::<0>(value), vgetq_lane_f32::<1>(value)];
                *c = vgetq_lane_f32::<2>(value);
            }
            [_, _, _, _, ..] => *first_mut::<_, 4>(to) = bytemuck::cast(value),
        }
    }
}
