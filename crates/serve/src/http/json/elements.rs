//! Elements of tensors as JSON: [`read_elements`], [`write_elements`].

use crate::data_type::shown;
use bytes::Bytes;
use nnhal::DataType;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use std::fmt;

/// Bytes that the elements of a text may take, of which `length` are wanted: no more than it can hold. An element and a comma are
/// two bytes of it, and make eight at most.
pub(super) fn most_bytes(text: &str, length: usize) -> usize {
    length.min(text.len().saturating_mul(4).saturating_add(8))
}

/// Elements of JSON as bytes: nested as the shape is, or flat. `length` is how many bytes they make.
pub(super) fn read_elements(
    text: &str,
    data_type: DataType,
    length: usize,
) -> Result<Bytes, serde_json::Error> {
    let mut bytes = Vec::with_capacity(most_bytes(text, length));
    let mut from = serde_json::Deserializer::from_str(text);
    Elements { bytes: &mut bytes, data_type, length }.deserialize(&mut from)?;
    if bytes.len() != length {
        let size = data_type.size().unwrap_or(1);
        let (found, expected) = (bytes.len() / size, length / size);
        return Err(serde_json::Error::custom(format!("{found} elements, expected {expected}")));
    }
    Ok(bytes.into())
}

/// Appends elements to bytes.
struct Elements<'b> {
    bytes: &'b mut Vec<u8>,
    data_type: DataType,
    length: usize,
}

impl Elements<'_> {
    fn push<E: serde::de::Error>(&mut self, element: &[u8]) -> Result<(), E> {
        if self.bytes.len() >= self.length {
            let most = self.length / self.data_type.size().unwrap_or(1);
            return Err(E::custom(format!("more elements than the {most} of its shape")));
        }
        self.bytes.extend_from_slice(element);
        Ok(())
    }

    fn wrong<E: serde::de::Error>(&self, found: impl fmt::Display) -> E {
        let at = self.bytes.len() / self.data_type.size().unwrap_or(1);
        E::custom(format!("element {at}: {found} is no value of {}", shown(self.data_type)))
    }

    fn integer<E: serde::de::Error>(&mut self, value: i128) -> Result<(), E> {
        macro_rules! push {
            ($Type:ty) => {
                match <$Type>::try_from(value) {
                    Ok(value) => self.push(&value.to_le_bytes()),
                    Err(_) => Err(self.wrong(value)),
                }
            };
        }
        match self.data_type {
            DataType::Int8 => push!(i8),
            DataType::Int16 => push!(i16),
            DataType::Int32 => push!(i32),
            DataType::Int64 => push!(i64),
            DataType::Uint8 => push!(u8),
            DataType::Uint16 => push!(u16),
            DataType::Uint32 => push!(u32),
            DataType::Uint64 => push!(u64),
            DataType::Bool if value == 0 || value == 1 => self.push(&[u8::from(value == 1)]),
            #[allow(clippy::cast_precision_loss)] // Rounding is what is meant.
            DataType::Float16 | DataType::Bfloat16 | DataType::Float32 | DataType::Float64 => {
                self.real(value as f64)
            }
            _ => Err(self.wrong(value)),
        }
    }

    #[allow(clippy::cast_possible_truncation)] // Rounding, or what has no fraction.
    fn real<E: serde::de::Error>(&mut self, value: f64) -> Result<(), E> {
        // JSON has no infinity, so one is what a number became that is too large for the type.
        macro_rules! push {
            ($rounded:expr) => {
                match $rounded {
                    rounded if rounded.is_finite() => self.push(&rounded.to_le_bytes()),
                    _ => Err(self.wrong(format_args!("{value:e}"))),
                }
            };
        }
        match self.data_type {
            DataType::Float32 => push!(value as f32),
            DataType::Float64 => self.push(&value.to_le_bytes()),
            DataType::Float16 => push!(nnhal::f16::from_f64(value)),
            DataType::Bfloat16 => push!(nnhal::bf16::from_f64(value)),
            _ if value.fract() == 0.0 && value.abs() < 2_f64.powi(63) => {
                self.integer(value as i128)
            }
            _ => Err(self.wrong(value)),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        // An array at first; what is in it may be arrays again. The reader ends beyond 128 of them.
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "elements of {}", shown(self.data_type))
    }

    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<(), E> {
        match self.data_type {
            DataType::Bool => self.push(&[u8::from(value)]),
            _ => Err(self.wrong(value)),
        }
    }

    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<(), E> {
        self.integer(value.into())
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<(), E> {
        self.integer(value.into())
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<(), E> {
        self.real(value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        let Self { bytes, data_type, length } = self;
        while all.next_element_seed(Elements { bytes: &mut *bytes, data_type, length })?.is_some() {
        }
        Ok(())
    }
}

/// Bytes that elements may take as an array of JSON.
pub(super) fn most_text(data_type: DataType, bytes: usize) -> usize {
    // The longest number of the type, and a comma.
    let longest = match data_type {
        DataType::Bool => "false,",
        DataType::Int8 => "-128,",
        DataType::Uint8 => "255,",
        DataType::Int16 => "-32768,",
        DataType::Uint16 => "65535,",
        DataType::Int32 => "-2147483648,",
        DataType::Uint32 => "4294967295,",
        DataType::Int64 => "-9223372036854775808,",
        DataType::Uint64 => "18446744073709551615,",
        DataType::Float64 => "-0.000001234567890123456789,",
        _ => "-0.00000123456789,",
    };
    let count = bytes / data_type.size().unwrap_or(1).max(1);
    count.saturating_mul(longest.len()).saturating_add(2)
}

/// Appends elements as an array of JSON, flat. JSON has no number for what is not finite: that is `null`.
pub(super) fn write_elements(data_type: DataType, bytes: &[u8], text: &mut Vec<u8>) {
    fn list<const N: usize, T: Serialize>(
        bytes: &[u8],
        text: &mut Vec<u8>,
        value: impl Fn([u8; N]) -> T,
    ) {
        text.push(b'[');
        for (at, element) in bytes.as_chunks::<N>().0.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            // As short as it can be to be read as the same number. Neither a number nor memory fails.
            let _ = serde_json::to_writer(&mut *text, &value(*element));
        }
        text.push(b']');
    }
    match data_type {
        DataType::Bool => list(bytes, text, |[byte]| byte != 0),
        DataType::Int8 => list(bytes, text, i8::from_le_bytes),
        DataType::Int16 => list(bytes, text, i16::from_le_bytes),
        DataType::Int32 => list(bytes, text, i32::from_le_bytes),
        DataType::Int64 => list(bytes, text, i64::from_le_bytes),
        DataType::Uint8 => list(bytes, text, u8::from_le_bytes),
        DataType::Uint16 => list(bytes, text, u16::from_le_bytes),
        DataType::Uint32 => list(bytes, text, u32::from_le_bytes),
        DataType::Uint64 => list(bytes, text, u64::from_le_bytes),
        DataType::Float16 => list(bytes, text, |it| nnhal::f16::from_le_bytes(it).to_f32()),
        DataType::Bfloat16 => list(bytes, text, |it| nnhal::bf16::from_le_bytes(it).to_f32()),
        DataType::Float32 => list(bytes, text, f32::from_le_bytes),
        DataType::Float64 => list(bytes, text, f64::from_le_bytes),
        _ => text.extend_from_slice(b"[]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_nearest_ones() {
        let read = |text: &str| read_elements(text, DataType::Float64, 8).map(|it| it.to_vec());
        for value in [0.992_497_527_986_157_9_f64, 9_007_199_254_740_993.0, 5e-324, f64::MAX] {
            for text in [format!("[{value}]"), format!("[{value:e}]")] {
                assert_eq!(read(&text).unwrap(), value.to_le_bytes(), "{text}");
            }
        }
        assert_eq!(read("[9007199254740993.0]").unwrap(), 9_007_199_254_740_992_f64.to_le_bytes());
    }

    #[test]
    fn numbers_that_are_too_large_are_refused() {
        for (data_type, size, least) in [
            (DataType::Float16, 2, "65520"),
            (DataType::Bfloat16, 2, "3.4e38"),
            (DataType::Float32, 4, "3.5e38"),
            (DataType::Float64, 8, "1e999"),
        ] {
            assert!(read_elements(&format!("[-{least}]"), data_type, size).is_err(), "{least}");
            assert!(read_elements("[6e4]", data_type, size).is_ok(), "{data_type:?}");
        }
    }

    fn written(data_type: DataType, bytes: &[u8]) -> String {
        let mut text = Vec::new();
        write_elements(data_type, bytes, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn numbers_are_written_so_that_they_are_read_the_same() {
        let floats = [0.1_f32, -1e-30, f32::MAX, f32::NAN, 3.0];
        let bytes: Vec<u8> = floats.iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(written(DataType::Float32, &bytes), "[0.1,-1e-30,3.4028235e+38,null,3.0]");
        assert_eq!(written(DataType::Bool, &[1, 0]), "[true,false]");
        assert_eq!(written(DataType::Int16, &[255, 255]), "[-1]");
    }

    #[test]
    fn sec_texts_are_not_longer_than_was_said() {
        // All kinds of exponents, and as many digits as there are.
        for seed in 0..200_000_u64 {
            let bits = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bytes = bits.to_le_bytes();
            for data_type in [
                DataType::Bool,
                DataType::Int8,
                DataType::Uint16,
                DataType::Int32,
                DataType::Int64,
                DataType::Uint64,
                DataType::Float16,
                DataType::Bfloat16,
                DataType::Float32,
                DataType::Float64,
            ] {
                let length = written(data_type, &bytes).len();
                assert!(length <= most_text(data_type, 8), "{data_type:?} {bits:x}: {length}");
            }
        }
    }
}
