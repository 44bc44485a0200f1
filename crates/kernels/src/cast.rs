//! [`Cast`]: the same numbers in another type. Floats of 16 bits are floats of 32 bits that have been rounded
//! to those.

use crate::InstructionSet;
use crate::elementwise::{map, round_to_f16};
use crate::movement::copy;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;

/// What becomes what. Floats lose what stands behind the point and saturate, and NaN becomes 0; integers
/// are rounded to floats, and clamped to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// All stay what they are.
    Copy,
    /// Floats of 32 bits to those of 16 bits.
    F32ToF16,
    /// Floats to integers of 32 bits.
    F32ToI32,
    /// Floats to bytes.
    F32ToU8,
    /// Integers of 32 bits to floats.
    I32ToF32,
    /// Integers of 32 bits to floats of 16 bits.
    I32ToF16,
    /// Integers of 32 bits to bytes.
    I32ToU8,
    /// Bytes to floats.
    U8ToF32,
    /// Bytes to integers of 32 bits.
    U8ToI32,
}

/// Prepared CAST of any number of elements.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    set: InstructionSet,
    conversion: Conversion,
}

impl Cast {
    /// With these instructions.
    pub fn prepare(set: InstructionSet, conversion: Conversion) -> Self {
        Self { set, conversion }
    }
}

impl PreparedKernel for Cast {
    fn name(&self) -> String {
        let conversion = match self.conversion {
            Conversion::Copy => "by copy",
            Conversion::F32ToF16 => "f32 to f16",
            Conversion::F32ToI32 => "f32 to i32",
            Conversion::F32ToU8 => "f32 to u8",
            Conversion::I32ToF32 => "i32 to f32",
            Conversion::I32ToF16 => "i32 to f16",
            Conversion::I32ToU8 => "i32 to u8",
            Conversion::U8ToF32 => "u8 to f32",
            Conversion::U8ToI32 => "u8 to i32",
        };
        format!("cast {conversion}")
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let set = self.set;
        /// The elements of the input as those of the output.
        macro_rules! mapped {
            ($From:ty, $To:ty, $function:expr) => {
                map::<$From, $To>(
                    set,
                    team,
                    inputs.of(0),
                    bytemuck::cast_slice_mut(output),
                    $function,
                )
            };
        }
        match self.conversion {
            Conversion::Copy => copy::<u8>(team, inputs.of(0), output),
            Conversion::F32ToF16 => {
                round_to_f16::<f32>(set, team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            Conversion::I32ToF16 => {
                round_to_f16::<i32>(set, team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            Conversion::F32ToI32 => mapped!(f32, i32, |it| it as i32),
            Conversion::F32ToU8 => mapped!(f32, u8, f32_to_u8),
            Conversion::I32ToF32 => mapped!(i32, f32, |it| it as f32),
            Conversion::I32ToU8 => mapped!(i32, u8, |it| it.clamp(0, 255) as u8),
            Conversion::U8ToF32 => mapped!(u8, f32, f32::from),
            Conversion::U8ToI32 => mapped!(u8, i32, i32::from),
        }
        Ok(())
    }
}

/// The same as `as u8`, in instructions that all sets have for vectors: beside 2^23 there is no room for a fraction, and
/// the lowest bits are an integer, which has been rounded.
#[allow(clippy::cast_possible_truncation)] // Only the lowest bits are wanted.
#[allow(clippy::manual_clamp, reason = "which keeps NaN")]
#[inline(always)]
fn f32_to_u8(number: f32) -> u8 {
    const WHOLE: f32 = 8_388_608.0;
    // In this order NaN becomes 0.
    let number = number.max(0.0).min(255.0);
    let rounded = number + WHOLE;
    let is_up = rounded - WHOLE > number;
    (rounded.to_bits() as u8).wrapping_sub(u8::from(is_up))
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
mod tests {
    use super::*;
    use crate::prepared::tests::outputs;
    use bytemuck::Pod;
    use half::f16;

    /// Checks a conversion of all instruction sets, with vectors and what is behind them.
    fn check<T: Pod, U: Pod + PartialEq + std::fmt::Debug>(
        conversion: Conversion,
        numbers: &[T],
        expected: impl Fn(T) -> U,
    ) {
        let numbers: Vec<T> = numbers.iter().copied().cycle().take(100).collect();
        let expected: Vec<U> = numbers.iter().map(|it| expected(*it)).collect();
        for set in InstructionSet::available() {
            let kernel = Cast::prepare(set, conversion);
            let input = bytemuck::cast_slice(&numbers);
            let [found] = outputs(&kernel, &[input], [100 * size_of::<U>()]);
            let found: Vec<U> = bytemuck::pod_collect_to_vec(&found);
            assert_eq!(found, expected, "{set} {conversion:?}");
        }
    }

    #[test]
    fn floats_are_cut_off_and_saturate() {
        let floats = [
            0.0,
            -0.0,
            0.9,
            -0.9,
            1.5,
            -1.5,
            254.9,
            255.0,
            256.0,
            -1.0,
            1e9,
            -1e9,
            2_147_483_500.0,
            3e9,
            -3e9,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MIN_POSITIVE,
        ];
        check(Conversion::F32ToI32, &floats, |it| it as i32);
        check(Conversion::F32ToU8, &floats, |it| it as u8);
        let numbers = floats.map(|it| if it.is_nan() { 0.1 } else { it });
        check(Conversion::F32ToF16, &numbers, |it| f16::from_f32(it).to_f32());
    }

    #[test]
    fn every_float_near_a_byte_is_cut_off() {
        for byte in -2_i16..=258 {
            let whole = f32::from(byte);
            for number in [whole.next_down(), whole, whole.next_up(), whole + 0.5, whole - 0.5] {
                assert_eq!(f32_to_u8(number), number as u8, "{number}");
            }
        }
    }

    #[test]
    fn integers_are_rounded_and_clamped() {
        let integers =
            [0, 1, -1, 255, 256, 2049, 16_777_217, 33_554_435, i32::MAX, i32::MIN, 65_519, 65_520];
        check(Conversion::I32ToF32, &integers, |it| it as f32);
        check(Conversion::I32ToF16, &integers, |it| f16::from_f32(it as f32).to_f32());
        check(Conversion::I32ToU8, &integers, |it| it.clamp(0, 255) as u8);
        let bytes: Vec<u8> = (0..=255).collect();
        check(Conversion::U8ToF32, &bytes, f32::from);
        check(Conversion::U8ToI32, &bytes, i32::from);
        check(Conversion::Copy, &bytes, |it| it);
    }
}
