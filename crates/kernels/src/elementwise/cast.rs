//! [`Cast`]: the same numbers as another type.

use super::convert::round_to_f16;
use super::map::map;
use crate::InstructionSet;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue, for_integers};
use crate::sharing::copy;
use crate::team::Team;
use bytemuck::Pod;

/// Prepared CAST of any number of elements. Floats lose what stands behind the point and become the nearest
/// integer that the type holds, and NaN 0; integers are rounded to floats, and of integers that a type does not hold
/// there remain the lowest bits. Everything but 0 is true; true is 1.
#[derive(Debug, Clone, Copy)]
pub struct Cast {
    /// With which instructions it is computed.
    pub set: InstructionSet,
    /// What there is.
    pub from: ElementType,
    /// What is wanted.
    pub to: ElementType,
    /// Whether integers become the nearest that the type holds instead.
    pub saturates: bool,
    /// Whether floats of 32 bits are rounded to those that 16 bits hold.
    pub is_narrow: bool,
}

impl Cast {
    /// Integers or floats.
    fn numbers<T: Number>(&self, team: &mut Team, input: &[T], output: &mut [u8]) {
        let set = self.set;
        /// The elements as those of the output.
        macro_rules! mapped {
            ($To:ty, $function:expr) => {
                map::<T, $To>(set, team, input, bytemuck::cast_slice_mut(output), $function)
            };
        }
        if self.saturates || !self.from.is_integer() {
            return for_integers!(
                self.to,
                To => mapped!(To, <T as As<To>>::nearest),
                ElementType::F32 => mapped!(f32, As::nearest),
                ElementType::F64 => mapped!(f64, As::nearest),
                ElementType::Bool => mapped!(u8, |it| u8::from(it != T::zeroed())),
            );
        }
        match self.to {
            // The lowest bits are the same, whatever they stand for.
            ElementType::I8 | ElementType::U8 => mapped!(u8, As::lowest),
            ElementType::I16 | ElementType::U16 => mapped!(u16, As::lowest),
            ElementType::I32 | ElementType::U32 => mapped!(u32, As::lowest),
            ElementType::I64 | ElementType::U64 => mapped!(u64, As::lowest),
            ElementType::F32 => mapped!(f32, As::nearest),
            ElementType::F64 => mapped!(f64, As::nearest),
            ElementType::Bool => mapped!(u8, |it| u8::from(it != T::zeroed())),
        }
    }
}

impl PreparedKernel for Cast {
    fn name(&self) -> String {
        let to = if self.is_narrow { "f16" } else { self.to.name() };
        format!("cast {} to {to}", self.from.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        if self.from == self.to {
            copy::<u8>(team, inputs.of(0), output);
        } else {
            for_integers!(
                self.from,
                T => self.numbers::<T>(team, inputs.of(0), output),
                ElementType::F32 => self.numbers::<f32>(team, inputs.of(0), output),
                ElementType::F64 => self.numbers::<f64>(team, inputs.of(0), output),
                ElementType::Bool => self.numbers::<Truth>(team, inputs.of(0), output),
            );
        }
        if self.is_narrow {
            round_to_f16(self.set, team, bytemuck::cast_slice_mut(output));
        }
        Ok(())
    }
}

/// A byte that is true if it is not 0.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Truth(u8);

/// A number as one of another type.
trait As<T> {
    /// The nearest that the type holds, behind the point cut off; NaN is 0.
    fn nearest(self) -> T;
    /// The same where the type holds it, of integers otherwise the lowest bits.
    fn lowest(self) -> T;
}

/// What is cast to all types.
trait Number:
    Pod
    + PartialEq
    + Send
    + Sync
    + As<i8>
    + As<i16>
    + As<i32>
    + As<i64>
    + As<u8>
    + As<u16>
    + As<u32>
    + As<u64>
    + As<f32>
    + As<f64>
{
}

/// Types that are cast to all others, by a macro for what is nearest and one for the lowest bits.
macro_rules! casts {
    ($nearest:ident, $lowest:ident: $($From:ty),+) => {
        $(
            casts!($From, $nearest, $lowest: i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);
            impl Number for $From {}
        )+
    };
    ($From:ty, $nearest:ident, $lowest:ident: $($To:ident),+) => {
        $(
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_possible_wrap,
                clippy::cast_precision_loss,
                clippy::cast_sign_loss,
                clippy::cast_lossless,
                clippy::unnecessary_cast
            )] // As they are defined.
            impl As<$To> for $From {
                #[inline(always)]
                fn nearest(self) -> $To {
                    $nearest!(self, $To)
                }
                #[inline(always)]
                fn lowest(self) -> $To {
                    $lowest!(self, $To)
                }
            }
        )+
    };
}

macro_rules! plain {
    ($it:expr, $To:ident) => {
        $it as $To
    };
}

/// An integer as the nearest one of a type, or as a float.
macro_rules! clamped {
    ($it:expr, $To:ident) => {{
        let (least, greatest) = ($To::MIN as i128, $To::MAX as i128);
        let low = Self::MIN as i128;
        let high = Self::MAX as i128;
        // In the type that there is, whose numbers are compared by single instructions.
        let least = if least < low { Self::MIN } else { least as Self };
        let greatest = if greatest > high { Self::MAX } else { greatest as Self };
        $it.clamp(least, greatest) as $To
    }};
}

macro_rules! byte {
    ($it:expr, u8) => {
        f32_to_u8($it)
    };
    ($it:expr, $To:ident) => {
        $it as $To
    };
}

macro_rules! truth {
    ($it:expr, $To:ident) => {
        u8::from($it.0 != 0) as $To
    };
}

casts!(clamped, plain: i8, i16, i32, i64, u8, u16, u32, u64);
casts!(byte, byte: f32);
casts!(plain, plain: f64);
casts!(truth, truth: Truth);

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
    use half::f16;

    const ALL: [ElementType; 11] = [
        ElementType::F32,
        ElementType::F64,
        ElementType::I8,
        ElementType::I16,
        ElementType::I32,
        ElementType::I64,
        ElementType::U8,
        ElementType::U16,
        ElementType::U32,
        ElementType::U64,
        ElementType::Bool,
    ];

    /// A number before or after a cast; floats of 64 bits hold those of 32.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Value {
        Integer(i128),
        Real(f64),
    }

    fn bytes_of(values: &[Value], elements: ElementType) -> Vec<u8> {
        let bytes = values.iter().flat_map(|value| match (*value, elements) {
            (Value::Real(it), ElementType::F32) => (it as f32).to_le_bytes().to_vec(),
            (Value::Real(it), _) => it.to_le_bytes().to_vec(),
            (Value::Integer(it), _) => it.to_le_bytes()[..elements.size()].to_vec(),
        });
        bytes.collect()
    }

    /// The least and the greatest integer of a type.
    fn range(elements: ElementType) -> (i128, i128) {
        let bits = 8 * elements.size();
        match elements {
            ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64 => {
                (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
            }
            ElementType::Bool => (0, 1),
            _ => (0, (1 << bits) - 1),
        }
    }

    fn values_of(elements: ElementType) -> Vec<Value> {
        if matches!(elements, ElementType::F32 | ElementType::F64) {
            let mut reals =
                vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e-40, 1e30, -1e30];
            for whole in [
                0,
                1,
                100,
                127,
                128,
                254,
                255,
                256,
                32_767,
                65_535,
                2_147_483_647,
                4_294_967_295_i64,
            ] {
                let whole = whole as f64;
                reals.extend([whole, whole + 0.5, whole - 0.1, -whole, -whole - 0.9, 3e9 * whole]);
            }
            let held =
                |it: f64| if elements == ElementType::F32 { f64::from(it as f32) } else { it };
            return reals.into_iter().map(|it| Value::Real(held(it))).collect();
        }
        let (least, greatest) = range(elements);
        let near = [
            0,
            1,
            2,
            127,
            128,
            255,
            256,
            2049,
            32_768,
            65_535,
            16_777_217,
            33_554_435,
            1 << 31,
            1 << 53,
        ];
        let all = near.into_iter().flat_map(|it| [it, -it, least + it, greatest - it]);
        all.filter(|it| (least..=greatest).contains(it)).map(Value::Integer).collect()
    }

    /// What a cast is defined to be, computed with 128 bits.
    fn expected(value: Value, to: ElementType, saturates: bool) -> Value {
        let (least, greatest) = range(to);
        match (value, to) {
            (Value::Integer(it), ElementType::Bool) => Value::Integer(i128::from(it != 0)),
            (Value::Real(it), ElementType::Bool) => Value::Integer(i128::from(it != 0.0)),
            (Value::Integer(it), ElementType::F32) => Value::Real(f64::from(it as f32)),
            (Value::Integer(it), ElementType::F64) => Value::Real(it as f64),
            (Value::Real(it), ElementType::F32 | ElementType::F64) => Value::Real(it),
            (Value::Integer(it), _) if saturates => Value::Integer(it.clamp(least, greatest)),
            (Value::Integer(it), _) => Value::Integer(it),
            (Value::Real(it), _) => Value::Integer((it as i128).clamp(least, greatest)),
        }
    }

    #[test]
    fn all_types_are_cast_to_all_types() {
        for (from, to) in ALL.into_iter().flat_map(|from| ALL.map(|to| (from, to))) {
            let values: Vec<Value> = values_of(from).into_iter().cycle().take(150).collect();
            let input = bytes_of(&values, from);
            for saturates in [false, true] {
                let cast = |it: &Value| if from == to { *it } else { expected(*it, to, saturates) };
                let expected = bytes_of(&values.iter().map(cast).collect::<Vec<_>>(), to);
                for set in InstructionSet::available() {
                    let kernel = Cast { set, from, to, saturates, is_narrow: false };
                    let [found] = outputs(&kernel, &[&input], [150 * to.size()]);
                    let of = |bytes: &[u8]| -> Vec<Vec<u8>> {
                        let each = bytes.chunks(to.size()).zip(&values);
                        // Which bits a NaN has is not said.
                        let is_nan = |it: &Value| matches!(it, Value::Real(it) if it.is_nan());
                        let is_real = matches!(to, ElementType::F32 | ElementType::F64);
                        each.filter(|(_, it)| !(is_real && is_nan(it)))
                            .map(|(it, _)| it.to_vec())
                            .collect()
                    };
                    assert_eq!(of(&found), of(&expected), "{set} {from:?} {to:?} {saturates}");
                }
            }
        }
    }

    #[test]
    fn whatever_is_not_0_is_true() {
        for set in InstructionSet::available() {
            let cast = |from, to| Cast { set, from, to, saturates: false, is_narrow: false };
            let kernel = cast(ElementType::Bool, ElementType::I8);
            assert_eq!(outputs(&kernel, &[&[0, 1, 2, 255]], [4]), [[0, 1, 1, 1]]);
        }
    }

    #[test]
    fn floats_of_16_bits_are_rounded() {
        let integers: Vec<i32> = [0, 1, -1, 2049, 2051, 65_519, 65_520, i32::MIN].repeat(10);
        let floats: Vec<f32> = integers.iter().map(|it| *it as f32 * 1.000_3).collect();
        for set in InstructionSet::available() {
            for (from, input, numbers) in [
                (
                    ElementType::I32,
                    bytemuck::cast_slice(&integers),
                    integers.iter().map(|it| *it as f32).collect(),
                ),
                (ElementType::F32, bytemuck::cast_slice(&floats), floats.clone()),
            ] {
                let kernel =
                    Cast { set, from, to: ElementType::F32, saturates: false, is_narrow: true };
                let [found] = outputs(&kernel, &[input], [4 * integers.len()]);
                let expected: Vec<f32> =
                    numbers.iter().map(|it: &f32| f16::from_f32(*it).to_f32()).collect();
                assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&found), expected, "{set}");
            }
        }
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
}
