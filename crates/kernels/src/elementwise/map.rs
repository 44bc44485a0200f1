//! [`Map`]: functions of one element of any type. Floats of 16 bits are floats of 32 bits that have been rounded
//! to those.

use super::round_to_f16;
use crate::InstructionSet;
use crate::parts::{ELEMENTS_OF_MAP, copy, for_each_slice};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd};

/// A function of one element. Most are CAST, the same number in another type: floats lose what stands behind
/// the point and saturate, and NaN becomes 0; integers are rounded to floats, and clamped to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// CAST; all stay what they are.
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
    /// The magnitude of an integer of 32 bits, which wraps.
    Abs,
    /// An integer of 32 bits with the other sign, which wraps.
    Neg,
    /// LOGICAL_NOT of a byte, which is true if it is not 0; 1 or 0.
    Not,
}

/// A prepared function of any number of elements.
#[derive(Debug, Clone, Copy)]
pub struct Map {
    /// With which instructions it is computed.
    pub set: InstructionSet,
    /// The function.
    pub function: Function,
}

impl PreparedKernel for Map {
    fn name(&self) -> String {
        let name = match self.function {
            Function::Copy => "cast by copy",
            Function::F32ToF16 => "cast f32 to f16",
            Function::F32ToI32 => "cast f32 to i32",
            Function::F32ToU8 => "cast f32 to u8",
            Function::I32ToF32 => "cast i32 to f32",
            Function::I32ToF16 => "cast i32 to f16",
            Function::I32ToU8 => "cast i32 to u8",
            Function::U8ToF32 => "cast u8 to f32",
            Function::U8ToI32 => "cast u8 to i32",
            Function::Abs => "elementwise abs i32",
            Function::Neg => "elementwise neg i32",
            Function::Not => "logical not bool",
        };
        name.to_owned()
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
        match self.function {
            Function::Copy => copy::<u8>(team, inputs.of(0), output),
            Function::F32ToF16 => {
                round_to_f16::<f32>(set, team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            Function::I32ToF16 => {
                round_to_f16::<i32>(set, team, inputs.of(0), bytemuck::cast_slice_mut(output));
            }
            Function::F32ToI32 => mapped!(f32, i32, |it| it as i32),
            Function::F32ToU8 => mapped!(f32, u8, f32_to_u8),
            Function::I32ToF32 => mapped!(i32, f32, |it| it as f32),
            Function::I32ToU8 => mapped!(i32, u8, |it| it.clamp(0, 255) as u8),
            Function::U8ToF32 => mapped!(u8, f32, f32::from),
            Function::U8ToI32 => mapped!(u8, i32, i32::from),
            Function::Abs => mapped!(i32, i32, i32::wrapping_abs),
            Function::Neg => mapped!(i32, i32, i32::wrapping_neg),
            Function::Not => mapped!(u8, u8, |it| u8::from(it == 0)),
        }
        Ok(())
    }
}

/// `output = function(input)` for every element. Functions marked `#[inline(always)]`, or so simple that
/// they are inlined anyway, become vector instructions of the instruction set.
///
/// # Panics
/// If there are not as many outputs as inputs.
fn map<T: Copy + Sync, U: Send>(
    set: InstructionSet,
    team: &mut Team,
    input: &[T],
    output: &mut [U],
    function: impl Fn(T) -> U + Sync,
) {
    assert_eq!(input.len(), output.len(), "an output of another size");
    let isa = Isa::of(set);
    for_each_slice(team, output, ELEMENTS_OF_MAP, |start, output| {
        let input = &input[start..start + output.len()];
        isa.run(Block { input, output, function: &function });
    });
}

struct Block<'a, T, U, F> {
    input: &'a [T],
    output: &'a mut [U],
    function: &'a F,
}

impl<T: Copy, U, F: Fn(T) -> U> Kernel for Block<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (output, input) in self.output.iter_mut().zip(self.input) {
            *output = (self.function)(*input);
        }
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
        function: Function,
        numbers: &[T],
        expected: impl Fn(T) -> U,
    ) {
        let numbers: Vec<T> = numbers.iter().copied().cycle().take(100).collect();
        let expected: Vec<U> = numbers.iter().map(|it| expected(*it)).collect();
        for set in InstructionSet::available() {
            let kernel = Map { set, function };
            let input = bytemuck::cast_slice(&numbers);
            let [found] = outputs(&kernel, &[input], [100 * size_of::<U>()]);
            let found: Vec<U> = bytemuck::pod_collect_to_vec(&found);
            assert_eq!(found, expected, "{set} {function:?}");
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
        check(Function::F32ToI32, &floats, |it| it as i32);
        check(Function::F32ToU8, &floats, |it| it as u8);
        let numbers = floats.map(|it| if it.is_nan() { 0.1 } else { it });
        check(Function::F32ToF16, &numbers, |it| f16::from_f32(it).to_f32());
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
        check(Function::I32ToF32, &integers, |it| it as f32);
        check(Function::I32ToF16, &integers, |it| f16::from_f32(it as f32).to_f32());
        check(Function::I32ToU8, &integers, |it| it.clamp(0, 255) as u8);
        let bytes: Vec<u8> = (0..=255).collect();
        check(Function::U8ToF32, &bytes, f32::from);
        check(Function::U8ToI32, &bytes, i32::from);
        check(Function::Copy, &bytes, |it| it);
    }
    #[test]
    fn signs_wrap() {
        let numbers =
            [0, 1, -1, 2, -2, 3, -7, 1000, i32::MAX, i32::MAX - 1, i32::MIN, i32::MIN + 1];
        check(Function::Abs, &numbers, i32::wrapping_abs);
        check(Function::Neg, &numbers, i32::wrapping_neg);
    }
}
