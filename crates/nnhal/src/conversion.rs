//! A tensor of any number type as one for an input.

use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::info::TensorInfo;
use crate::tensor::Tensor;
use std::borrow::Cow;

impl Tensor {
    /// The tensor as an input takes it: integers and truth values of other types, if they fit. Axes of
    /// length 1 in front may be missing, or too many. Real numbers stay as they are:
    /// [`Session::run`](crate::Session::run) rounds or quantizes them.
    ///
    /// # Errors
    /// [`Error::Type`]: the input takes no such numbers; [`Error::OutOfRange`]: an element does not fit.
    pub fn into_input(self, info: &TensorInfo) -> Result<Self> {
        let tensor = self.with_axes_of(info)?;
        let (found, expected) = (tensor.data_type(), info.data_type);
        if found == expected || found.is_float() {
            return Ok(tensor);
        }
        let integers = tensor.integers().ok_or(Error::Type { found, expected })?;
        let shape = tensor.shape().to_vec();
        if expected.is_float() || expected == DataType::Complex64 {
            #[allow(clippy::cast_precision_loss)] // Rounding is what is meant.
            let reals: Vec<f64> = integers.iter().map(|it| *it as f64).collect();
            return Self::new(shape, &reals);
        }
        macro_rules! narrowed {
            ($Type:ty) => {{
                let narrow = |it: &i128| {
                    <$Type>::try_from(*it).map_err(|_| Error::OutOfRange { found: *it, expected })
                };
                let narrow = integers.iter().map(narrow).collect::<Result<Vec<$Type>>>()?;
                Self::new(shape, &narrow)
            }};
        }
        match expected {
            DataType::Int8 => narrowed!(i8),
            DataType::Int16 => narrowed!(i16),
            DataType::Int32 => narrowed!(i32),
            DataType::Int64 => narrowed!(i64),
            DataType::Uint8 => narrowed!(u8),
            DataType::Uint16 => narrowed!(u16),
            DataType::Uint32 => narrowed!(u32),
            DataType::Uint64 => narrowed!(u64),
            DataType::Bool => {
                let is_truth = |it: &i128| match it {
                    0 | 1 => Ok(*it == 1),
                    _ => Err(Error::OutOfRange { found: *it, expected }),
                };
                Self::new(shape, &integers.iter().map(is_truth).collect::<Result<Vec<bool>>>()?)
            }
            _ => Err(Error::Type { found, expected }),
        }
    }

    /// With axes of length 1 in front added or removed, until there are as many as an input has.
    fn with_axes_of(self, info: &TensorInfo) -> Result<Self> {
        let rank = info.shape.len();
        let mut shape = self.shape().to_vec();
        if info.is_rank_open || shape.len() == rank {
            return Ok(self);
        }
        while shape.len() > rank && shape.first() == Some(&1) {
            shape.remove(0);
        }
        while shape.len() < rank {
            shape.insert(0, 1);
        }
        let fits = info.shape.iter().zip(&shape).all(|(open, it)| open.is_none_or(|o| o == *it));
        if shape.len() != rank || !fits {
            return Ok(self);
        }
        let (data_type, quantization) = (self.data_type(), self.quantization());
        Ok(Self::from_bytes(data_type, shape, self.as_bytes())?.with_quantization(quantization))
    }

    /// The elements of a type of integers or truth values, as they are stored.
    pub fn integers(&self) -> Option<Vec<i128>> {
        macro_rules! wide {
            ($Type:ty) => {
                Some(self.as_slice::<$Type>().ok()?.iter().map(|it| i128::from(*it)).collect())
            };
        }
        match self.data_type() {
            DataType::Int8 => wide!(i8),
            DataType::Int16 => wide!(i16),
            DataType::Int32 => wide!(i32),
            DataType::Int64 => wide!(i64),
            DataType::Uint8 => wide!(u8),
            DataType::Uint16 => wide!(u16),
            DataType::Uint32 => wide!(u32),
            DataType::Uint64 => wide!(u64),
            DataType::Bool => Some(self.as_bytes().iter().map(|it| i128::from(*it != 0)).collect()),
            _ => None,
        }
    }
}

/// Devices take integers of 64 bits as ones of 32.
pub(crate) fn as_devices_take(tensor: &Tensor) -> Cow<'_, [u8]> {
    if tensor.data_type() != DataType::Int64 {
        return Cow::Borrowed(tensor.as_bytes());
    }
    let (wide, _) = tensor.as_bytes().as_chunks();
    let narrow = wide.iter().map(|bytes| {
        let wide = i64::from_ne_bytes(*bytes);
        i32::try_from(wide).unwrap_or(if wide < 0 { i32::MIN } else { i32::MAX })
    });
    Cow::Owned(narrow.flat_map(i32::to_ne_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    /// An input of the digits: `[1, 8, 8, 1]`, with another type.
    fn input(data_type: DataType) -> TensorInfo {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_float32.tflite");
        TensorInfo { data_type, ..Model::load(file).unwrap().inputs()[0].clone() }
    }

    #[test]
    fn integers_become_what_the_input_takes_if_they_fit() {
        let wide = Tensor::new([1, 8, 8, 1], &[7_i64; 64]).unwrap();
        let narrow = wide.clone().into_input(&input(DataType::Uint8)).unwrap();
        assert_eq!(narrow.as_slice::<u8>().unwrap(), [7; 64]);
        let reals = wide.clone().into_input(&input(DataType::Float32)).unwrap();
        assert_eq!(reals.reals(), [7.0; 64]);
        assert!(wide.into_input(&input(DataType::Bool)).is_err());
        let large = Tensor::new([1, 8, 8, 1], &[300_i32; 64]).unwrap();
        let refused = large.into_input(&input(DataType::Uint8)).unwrap_err().to_string();
        assert!(refused.contains("300"), "{refused}");
    }

    #[test]
    fn axes_of_length_one_in_front_may_be_missing() {
        let image = Tensor::new([8, 8, 1], &[0.5_f32; 64]).unwrap();
        let image = image.into_input(&input(DataType::Float32)).unwrap();
        assert_eq!(image.shape(), [1, 8, 8, 1]);
        let other = Tensor::new([64], &[0.5_f32; 64]).unwrap();
        assert_eq!(other.into_input(&input(DataType::Float32)).unwrap().shape(), [64]);
    }
}
