//! Elements of tensors as JSON: [`read_elements`], [`write_elements`].

use crate::data_type::shown;
use bytes::Bytes;
use nnhal::DataType;
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use std::fmt;

/// Elements of JSON as bytes: nested as the shape is, or flat. `length` is how many bytes they make.
pub(super) fn read_elements(
    text: &str,
    data_type: DataType,
    length: usize,
) -> Result<Bytes, serde_json::Error> {
    // No more than the text can hold: an element and a comma are two bytes of it, and make eight at most.
    let room = length.min(text.len().saturating_mul(4).saturating_add(8));
    let mut bytes = Vec::with_capacity(room);
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

/// Elements as an array of JSON, flat. JSON has no number for what is not finite: that is `null`.
pub(super) fn write_elements(data_type: DataType, bytes: &[u8]) -> String {
    fn list<const N: usize>(bytes: &[u8], show: impl Fn([u8; N], &mut String)) -> String {
        let mut text = String::with_capacity(bytes.len() / N * 8 + 2);
        text.push('[');
        for (at, element) in bytes.as_chunks::<N>().0.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            show(*element, &mut text);
        }
        text.push(']');
        text
    }
    /// As short as it can be to be read as the same number.
    fn number<T: Serialize>(value: T, text: &mut String) {
        text.push_str(&serde_json::to_string(&value).unwrap_or_else(|_| "null".into()));
    }
    match data_type {
        DataType::Bool => list(bytes, |[byte], text| number(byte != 0, text)),
        DataType::Int8 => list(bytes, |it, text| number(i8::from_le_bytes(it), text)),
        DataType::Int16 => list(bytes, |it, text| number(i16::from_le_bytes(it), text)),
        DataType::Int32 => list(bytes, |it, text| number(i32::from_le_bytes(it), text)),
        DataType::Int64 => list(bytes, |it, text| number(i64::from_le_bytes(it), text)),
        DataType::Uint8 => list(bytes, |it, text| number(u8::from_le_bytes(it), text)),
        DataType::Uint16 => list(bytes, |it, text| number(u16::from_le_bytes(it), text)),
        DataType::Uint32 => list(bytes, |it, text| number(u32::from_le_bytes(it), text)),
        DataType::Uint64 => list(bytes, |it, text| number(u64::from_le_bytes(it), text)),
        DataType::Float16 => {
            list(bytes, |it, text| number(nnhal::f16::from_le_bytes(it).to_f32(), text))
        }
        DataType::Bfloat16 => {
            list(bytes, |it, text| number(nnhal::bf16::from_le_bytes(it).to_f32(), text))
        }
        DataType::Float32 => list(bytes, |it, text| number(f32::from_le_bytes(it), text)),
        DataType::Float64 => list(bytes, |it, text| number(f64::from_le_bytes(it), text)),
        _ => "[]".to_owned(),
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

    #[test]
    fn numbers_are_written_so_that_they_are_read_the_same() {
        let floats = [0.1_f32, -1e-30, f32::MAX, f32::NAN, 3.0];
        let bytes: Vec<u8> = floats.iter().flat_map(|it| it.to_le_bytes()).collect();
        assert_eq!(
            write_elements(DataType::Float32, &bytes),
            "[0.1,-1e-30,3.4028235e+38,null,3.0]"
        );
        assert_eq!(write_elements(DataType::Bool, &[1, 0]), "[true,false]");
        assert_eq!(write_elements(DataType::Int16, &[255, 255]), "[-1]");
    }
}
