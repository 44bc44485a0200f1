//! NEON's dot products of signed bytes, and products of small matrices of them. (The intrinsics are not stable.)
#![allow(unsafe_code)]

use std::arch::aarch64::*;
use std::arch::asm;

/// The result of an instruction that adds products of two registers to sums.
macro_rules! products {
    ($instruction:literal, $sums:ident, $a:ident, $b:ident $(, lane = $lane:ident)?) => {{
        let mut result = $sums;
        // SAFETY: the instruction works on registers alone.
        unsafe {
            asm!(
                $instruction,
                sums = inlateout(vreg) result,
                a = in(vreg) $a,
                b = in(vreg) $b,
                $(lane = const $lane,)?
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        result
    }};
}

/// Adds to each lane the dot product of four bytes of `a` with four of `b`.
#[inline]
#[target_feature(enable = "dotprod")]
pub(crate) fn sdot(sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    products!("sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b", sums, a, b)
}

/// Adds to each lane the dot product of four bytes of `a` with those of one lane of `b`.
#[inline]
#[target_feature(enable = "dotprod")]
pub(crate) fn sdot_lane<const LANE: i32>(sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    products!("sdot {sums:v}.4s, {a:v}.16b, {b:v}.4b[{lane}]", sums, a, b, lane = LANE)
}

/// Adds to each lane the dot product of eight bytes: the lower and the upper half of `a` with those of `b`, the lower of `a` with both of `b`
/// first.
#[inline]
#[target_feature(enable = "i8mm")]
pub(crate) fn smmla(sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    products!("smmla {sums:v}.4s, {a:v}.16b, {b:v}.16b", sums, a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstructionSet;

    fn numbers() -> [[i8; 16]; 2] {
        let number = |at: usize| i8::try_from(at).unwrap();
        [
            std::array::from_fn(|at| i8::MIN + 3 * number(at)),
            std::array::from_fn(|at| i8::MAX - 7 * number(at)),
        ]
    }

    #[test]
    fn four_products_are_added_to_each_lane() {
        if !InstructionSet::NeonDotprod.is_available() {
            return;
        }
        let [a, b] = numbers();
        let dot = |lane: usize, of: usize| -> i32 {
            (0..4).map(|k| i32::from(a[4 * lane + k]) * i32::from(b[4 * of + k])).sum()
        };
        let mut found = [[0_i32; 4]; 2];
        // SAFETY: the processor has the instructions; the arrays are as long as registers.
        unsafe {
            let (a, b) = (vld1q_s8(a.as_ptr()), vld1q_s8(b.as_ptr()));
            vst1q_s32(found[0].as_mut_ptr(), sdot(vdupq_n_s32(5), a, b));
            vst1q_s32(found[1].as_mut_ptr(), sdot_lane::<2>(vdupq_n_s32(-5), a, b));
        }
        assert_eq!(found[0], std::array::from_fn(|lane| 5 + dot(lane, lane)));
        assert_eq!(found[1], std::array::from_fn(|lane| dot(lane, 2) - 5));
    }

    #[test]
    fn eight_products_of_two_rows_and_two_columns_are_added() {
        if !InstructionSet::NeonI8mm.is_available() {
            return;
        }
        let [a, b] = numbers();
        let dot = |row: usize, column: usize| -> i32 {
            (0..8).map(|k| i32::from(a[8 * row + k]) * i32::from(b[8 * column + k])).sum()
        };
        let mut found = [0_i32; 4];
        // SAFETY: the processor has the instructions; the arrays are as long as registers.
        unsafe {
            let (a, b) = (vld1q_s8(a.as_ptr()), vld1q_s8(b.as_ptr()));
            vst1q_s32(found.as_mut_ptr(), smmla(vdupq_n_s32(5), a, b));
        }
        assert_eq!(found, std::array::from_fn(|lane| 5 + dot(lane / 2, lane % 2)));
    }
}
