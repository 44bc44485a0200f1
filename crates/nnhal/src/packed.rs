//! Constants of which several elements share a byte.

use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::tensor::Tensor;
use nnhal_tflite::graph::Stored;

/// How elements are stored of which several share a byte. The first is in the low bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packing {
    /// Bits of an element: 2 or 4.
    width: u32,
    is_signed: bool,
}

/// Codes of the file format, without a [`DataType`] of their own.
const INT2: i8 = 19;
const UINT4: i8 = 20;

impl Packing {
    /// That of a type, if its elements share bytes.
    pub(crate) fn of(data_type: DataType) -> Option<Self> {
        match data_type {
            DataType::Int4 => Some(Self { width: 4, is_signed: true }),
            DataType::Other(INT2) => Some(Self { width: 2, is_signed: true }),
            DataType::Other(UINT4) => Some(Self { width: 4, is_signed: false }),
            _ => None,
        }
    }

    fn unpack(self, bytes: &[u8], elements: &mut [u8]) {
        let per_byte = (8 / self.width) as usize;
        for (byte, elements) in bytes.iter().zip(elements.chunks_mut(per_byte)) {
            for (at, element) in (0..).zip(elements) {
                // Up and down again: what is shifted in is the sign, or 0.
                let up = byte << (8 - self.width * (at + 1));
                *element = match self.is_signed {
                    true => (up.cast_signed() >> (8 - self.width)).cast_unsigned(),
                    false => up >> (8 - self.width),
                };
            }
        }
    }

    /// The value of a constant, in 8 bits for each element.
    ///
    /// # Errors
    /// [`Error::NotFound`]: it is none; [`Error::Elements`]: it has another number of bytes than its shape needs;
    /// [`Error::Memory`].
    pub(crate) fn constant(self, file: &Stored, info: &TensorInfo) -> Result<Tensor> {
        let stored = info.stored.as_ref().ok_or_else(|| Error::no_constant(info.index))?;
        let data_type = if self.is_signed { DataType::Int8 } else { DataType::Uint8 };
        let shape = info.example_shape.clone();
        let count = data_type.byte_length(&shape);
        if count.map(|count| count.div_ceil((8 / self.width) as usize)) != Some(stored.len()) {
            let data_type = info.data_type;
            return Err(Error::Elements { data_type, shape, found: stored.len() });
        }
        let bytes = file.read(stored)?;
        let mut tensor = Tensor::zeros(data_type, shape)?;
        self.unpack(&bytes, tensor.as_bytes_mut());
        Ok(tensor.with_quantization(info.quantization()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_element_is_in_the_low_bits() {
        for (data_type, bytes, expected) in [
            (DataType::Int4, &[0x8F, 0x07][..], &[-1, -8, 7][..]),
            (DataType::Other(UINT4), &[0x8F, 0x07], &[15, 8, 7]),
            (DataType::Other(INT2), &[0b10_01_11_00, 0b01], &[0, -1, 1, -2, 1]),
        ] {
            let mut elements = vec![0; expected.len()];
            Packing::of(data_type).unwrap().unpack(bytes, &mut elements);
            let found: Vec<i8> = elements.iter().map(|it| it.cast_signed()).collect();
            assert_eq!(found, expected, "{data_type}");
        }
        assert_eq!(Packing::of(DataType::Int8), None);
    }
}
