//! [`Tensor`]: a value with its type and shape. [`TensorView`]: one that somebody else owns.

use crate::data_type::{DataType, Element};
use crate::error::{Error, Result};
use half::{bf16, f16};
use std::borrow::Cow;

/// What the stored integers of a tensor stand for: `scale * (stored - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantization {
    /// The step; above 0.
    pub scale: f32,
    /// The stored value that stands for 0.
    pub zero_point: i32,
}

/// A value: elements of one type, row by row (the last axis varies fastest).
///
/// ```
/// let tensor = nnhal::Tensor::new([2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
/// assert_eq!(tensor.shape(), [2, 2]);
/// assert_eq!(tensor.as_slice::<f32>()?[3], 4.0);
/// # Ok::<(), nnhal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Tensor {
    data_type: DataType,
    shape: Vec<usize>,
    quantization: Option<Quantization>,
    /// Whole words, so that elements of every type are aligned.
    words: Vec<u64>,
    /// Bytes of `words` that are elements.
    length: usize,
}

/// Elements of one type that are somebody else's, packed and row by row.
#[derive(Debug, Clone)]
pub struct TensorView<'a> {
    pub(crate) data_type: DataType,
    /// `None`: the shape that is expected where it goes.
    pub(crate) shape: Option<Cow<'a, [usize]>>,
    pub(crate) bytes: Cow<'a, [u8]>,
}

/// The numbers that a table shows of a tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The least element.
    pub min: f64,
    /// The greatest element.
    pub max: f64,
    /// The arithmetic mean of all elements.
    pub mean: f64,
}

impl Tensor {
    /// A tensor of these elements.
    ///
    /// # Errors
    /// [`Error::Elements`]: the shape needs another number of them.
    pub fn new<T: Element>(shape: impl Into<Vec<usize>>, elements: &[T]) -> Result<Self> {
        Self::from_bytes(T::DATA_TYPE, shape, T::bytes(elements))
    }

    /// A tensor of elements as this machine stores them.
    ///
    /// # Errors
    /// [`Error::Elements`]: the shape needs another number of bytes.
    pub fn from_bytes(
        data_type: DataType,
        shape: impl Into<Vec<usize>>,
        bytes: &[u8],
    ) -> Result<Self> {
        let shape = shape.into();
        check_length(data_type, &shape, bytes.len())?;
        let mut tensor = Self::empty(data_type);
        tensor.resize(data_type, &shape, None)?;
        tensor.as_bytes_mut().copy_from_slice(bytes);
        Ok(tensor)
    }

    /// All 0.
    ///
    /// # Errors
    /// [`Error::TooLarge`]: there is not as much memory.
    pub fn zeros(data_type: DataType, shape: impl Into<Vec<usize>>) -> Result<Self> {
        let mut tensor = Self::empty(data_type);
        tensor.resize(data_type, &shape.into(), None)?;
        Ok(tensor)
    }

    /// Real numbers as elements of a type: floats rounded, quantized types rounded to the nearest
    /// step and clamped, other integers rounded and clamped, `bool` whether it is not 0.
    ///
    /// # Errors
    /// [`Error::Elements`]: the shape needs another number of them.
    pub fn from_reals(
        data_type: DataType,
        shape: impl Into<Vec<usize>>,
        quantization: Option<Quantization>,
        reals: &[f32],
    ) -> Result<Self> {
        let mut bytes = Vec::new();
        encode_reals(reals, data_type, quantization, &mut bytes)?;
        Ok(Self::from_bytes(data_type, shape, &bytes)?.with_quantization(quantization))
    }

    /// Without elements and without memory, to be overwritten.
    pub(crate) fn empty(data_type: DataType) -> Self {
        let (shape, words) = (vec![0], Vec::new());
        Self { data_type, shape, quantization: None, words, length: 0 }
    }

    /// Gives it another type and shape, in the memory that it has if that is enough. What elements
    /// it has then is not said.
    pub(crate) fn resize(
        &mut self,
        data_type: DataType,
        shape: &[usize],
        quantization: Option<Quantization>,
    ) -> Result<()> {
        let too_large = || Error::TooLarge { data_type, shape: shape.to_vec() };
        let length = data_type.byte_length(shape).ok_or_else(too_large)?;
        let words = length.div_ceil(size_of::<u64>());
        if words > self.words.len() {
            let more = words - self.words.len();
            self.words.try_reserve_exact(more).map_err(|_| too_large())?;
        }
        self.words.resize(words, 0);
        self.shape.clear();
        self.shape.extend_from_slice(shape);
        (self.data_type, self.quantization, self.length) = (data_type, quantization, length);
        Ok(())
    }

    /// The same elements, which stand for other real numbers.
    #[must_use]
    pub fn with_quantization(mut self, quantization: Option<Quantization>) -> Self {
        self.quantization = quantization;
        self
    }

    /// The element type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The length of each axis; none for a scalar.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What stored integers stand for; `None` where the elements are the numbers themselves.
    pub fn quantization(&self) -> Option<Quantization> {
        self.quantization
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as this machine stores them.
    pub fn as_bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    /// The elements as this machine stores them, to be changed.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }

    /// The elements.
    ///
    /// # Errors
    /// [`Error::Type`]: they are of another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        self.expect(T::DATA_TYPE)?;
        // Of the right type, size and alignment: only a `bool` that is neither 0 nor 1 is left.
        T::elements(self.as_bytes())
            .ok_or(Error::Type { found: self.data_type, expected: T::DATA_TYPE })
    }

    /// The elements, to be changed.
    ///
    /// # Errors
    /// [`Error::Type`]: they are of another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T]> {
        self.expect(T::DATA_TYPE)?;
        let found = self.data_type;
        T::elements_mut(self.as_bytes_mut()).ok_or(Error::Type { found, expected: T::DATA_TYPE })
    }

    /// The elements, which must be of this type, as a vector.
    ///
    /// # Errors
    /// [`Error::Type`]: they are of another type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.as_slice().map(<[T]>::to_vec)
    }

    fn expect(&self, expected: DataType) -> Result<()> {
        let found = self.data_type;
        if found == expected { Ok(()) } else { Err(Error::Type { found, expected }) }
    }

    /// The stored numbers; of `bool` 0 and 1, of a complex number its real and its imaginary part.
    pub fn stored(&self) -> Vec<f64> {
        stored(self.data_type, self.as_bytes())
    }

    /// The real numbers that the elements stand for, as [`Tensor::stored`] counts them.
    pub fn reals(&self) -> Vec<f64> {
        let mut reals = self.stored();
        if let Some(Quantization { scale, zero_point }) = self.quantization {
            let (scale, zero_point) = (f64::from(scale), f64::from(zero_point));
            reals.iter_mut().for_each(|real| *real = (*real - zero_point) * scale);
        }
        reals
    }

    /// The real numbers as `f32`: what quantized results are mostly wanted as.
    #[allow(clippy::cast_possible_truncation)] // Rounding is what is meant.
    pub fn to_f32(&self) -> Vec<f32> {
        match self.as_slice::<f32>() {
            Ok(floats) => floats.to_vec(),
            Err(_) => self.reals().into_iter().map(|real| real as f32).collect(),
        }
    }

    /// What the elements are as numbers of one kind: of complex numbers the magnitudes.
    fn ranked(&self) -> Vec<f64> {
        let reals = self.reals();
        match self.data_type {
            DataType::Complex64 => {
                reals.as_chunks().0.iter().map(|[real, imaginary]| real.hypot(*imaginary)).collect()
            }
            _ => reals,
        }
    }

    /// `None` for a tensor without elements. Of complex numbers it is about their magnitudes.
    #[allow(clippy::cast_precision_loss)] // Fewer elements than 2^53.
    pub fn summary(&self) -> Option<Summary> {
        let reals = self.ranked();
        let fold = |pick: fn(f64, f64) -> f64| reals.iter().copied().reduce(pick);
        let mean = reals.iter().sum::<f64>() / reals.len() as f64;
        Some(Summary { min: fold(f64::min)?, max: fold(f64::max)?, mean })
    }

    /// The indexes and values of the greatest elements, the greatest first; of equal ones the one
    /// with the lower index. The greatest complex numbers are those of the greatest magnitude.
    pub fn top(&self, count: usize) -> Vec<(usize, f64)> {
        let mut all: Vec<(usize, f64)> = self.ranked().into_iter().enumerate().collect();
        all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        all.truncate(count);
        all
    }

    /// The tensor as an input, without copying.
    pub fn view(&self) -> TensorView<'_> {
        TensorView {
            data_type: self.data_type,
            shape: Some(Cow::Borrowed(&self.shape)),
            bytes: Cow::Borrowed(self.as_bytes()),
        }
    }
}

/// Equal in type, shape, quantization and stored elements.
impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        self.data_type == other.data_type
            && self.shape == other.shape
            && self.quantization == other.quantization
            && self.as_bytes() == other.as_bytes()
    }
}

impl<'a> TensorView<'a> {
    /// Elements of this shape, as this machine stores them.
    ///
    /// # Errors
    /// [`Error::Elements`]: the shape needs another number of bytes.
    pub fn new(data_type: DataType, shape: &'a [usize], bytes: &'a [u8]) -> Result<Self> {
        check_length(data_type, shape, bytes.len())?;
        Ok(Self { data_type, shape: Some(Cow::Borrowed(shape)), bytes: Cow::Borrowed(bytes) })
    }

    /// The element type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The shape, if it is not simply the one that is expected where it goes.
    pub fn shape(&self) -> Option<&[usize]> {
        self.shape.as_deref()
    }
}

impl<'a> From<&'a Tensor> for TensorView<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        tensor.view()
    }
}

/// Elements that take the shape of the input they go to.
impl<'a, T: Element> From<&'a [T]> for TensorView<'a> {
    fn from(elements: &'a [T]) -> Self {
        let bytes = Cow::Borrowed(T::bytes(elements));
        Self { data_type: T::DATA_TYPE, shape: None, bytes }
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for TensorView<'a> {
    fn from(elements: &'a [T; N]) -> Self {
        elements.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for TensorView<'a> {
    fn from(elements: &'a Vec<T>) -> Self {
        elements.as_slice().into()
    }
}

fn check_length(data_type: DataType, shape: &[usize], found: usize) -> Result<()> {
    let expected = data_type.byte_length(shape);
    if expected == Some(found) {
        return Ok(());
    }
    Err(Error::Elements { data_type, shape: shape.to_vec(), found })
}

/// The stored numbers of packed elements.
pub(crate) fn stored(data_type: DataType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|chunk| read(*chunk)).collect()
    }
    #[allow(clippy::cast_precision_loss)] // Beyond 2^53 to the nearest: for showing and comparing.
    match data_type {
        DataType::Float32 | DataType::Complex64 => each(bytes, |it| f32::from_ne_bytes(it).into()),
        DataType::Float16 => each(bytes, |it| f16::from_ne_bytes(it).into()),
        DataType::Bfloat16 => each(bytes, |it| bf16::from_ne_bytes(it).into()),
        DataType::Float64 => each(bytes, f64::from_ne_bytes),
        DataType::Int8 => each(bytes, |it| i8::from_ne_bytes(it).into()),
        DataType::Int16 => each(bytes, |it| i16::from_ne_bytes(it).into()),
        DataType::Int32 => each(bytes, |it| i32::from_ne_bytes(it).into()),
        DataType::Int64 => each(bytes, |it| i64::from_ne_bytes(it) as f64),
        DataType::Uint16 => each(bytes, |it| u16::from_ne_bytes(it).into()),
        DataType::Uint32 => each(bytes, |it| u32::from_ne_bytes(it).into()),
        DataType::Uint64 => each(bytes, |it| u64::from_ne_bytes(it) as f64),
        DataType::Bool => each(bytes, |[byte]| f64::from(u8::from(byte != 0))),
        DataType::Uint8 | DataType::Int4 | DataType::Other(_) => each(bytes, |[byte]| byte.into()),
    }
}

/// Appends real numbers as elements of a type, see [`Tensor::from_reals`].
///
/// # Errors
/// [`Error::Type`]: there are no tensors of that type.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Casts of floats saturate.
pub(crate) fn encode_reals(
    reals: &[f32],
    data_type: DataType,
    quantization: Option<Quantization>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    fn put<const N: usize>(reals: &[f32], bytes: &mut Vec<u8>, encode: impl Fn(f32) -> [u8; N]) {
        bytes.extend(reals.iter().flat_map(|real| encode(*real)));
    }
    let length = reals.len().saturating_mul(data_type.size().unwrap_or(1));
    let too_large = |_| Error::TooLarge { data_type, shape: vec![reals.len()] };
    bytes.try_reserve_exact(length).map_err(too_large)?;
    if let (Some(Quantization { scale, zero_point }), Some((least, greatest))) =
        (quantization, data_type.integer_range())
        && data_type.size() <= Some(2)
    {
        let range = (least as i32, greatest as i32);
        let quantize =
            |real: f32| nnhal_ops::rules::requantize::quantize(real, scale, zero_point, range);
        match data_type.size() {
            Some(1) => put(reals, bytes, |real| [quantize(real) as u8]),
            _ => put(reals, bytes, |real| (quantize(real) as u16).to_ne_bytes()),
        }
        return Ok(());
    }
    match data_type {
        DataType::Float32 => bytes.extend_from_slice(bytemuck::cast_slice(reals)),
        DataType::Float16 => put(reals, bytes, |real| f16::from_f32(real).to_ne_bytes()),
        DataType::Bfloat16 => put(reals, bytes, |real| bf16::from_f32(real).to_ne_bytes()),
        DataType::Float64 => put(reals, bytes, |real| f64::from(real).to_ne_bytes()),
        DataType::Int8 => put(reals, bytes, |real| (real.round_ties_even() as i8).to_ne_bytes()),
        DataType::Int16 => put(reals, bytes, |real| (real.round_ties_even() as i16).to_ne_bytes()),
        DataType::Int32 => put(reals, bytes, |real| (real.round_ties_even() as i32).to_ne_bytes()),
        DataType::Int64 => put(reals, bytes, |real| (real.round_ties_even() as i64).to_ne_bytes()),
        DataType::Uint8 => put(reals, bytes, |real| [real.round_ties_even() as u8]),
        DataType::Uint16 => put(reals, bytes, |real| (real.round_ties_even() as u16).to_ne_bytes()),
        DataType::Uint32 => put(reals, bytes, |real| (real.round_ties_even() as u32).to_ne_bytes()),
        DataType::Uint64 => put(reals, bytes, |real| (real.round_ties_even() as u64).to_ne_bytes()),
        DataType::Bool => put(reals, bytes, |real| [u8::from(real != 0.0)]),
        // A real number is a complex one.
        DataType::Complex64 => put(reals, bytes, |real| {
            bytemuck::cast::<_, [u8; 8]>([real.to_ne_bytes(), 0.0_f32.to_ne_bytes()])
        }),
        DataType::Int4 | DataType::Other(_) => {
            return Err(Error::Type { found: DataType::Float32, expected: data_type });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex32;

    #[test]
    fn quantized_tensors_are_shown_as_real_numbers() {
        let quantization = Some(Quantization { scale: 0.5, zero_point: -10 });
        let tensor =
            Tensor::from_reals(DataType::Int8, [3], quantization, &[0.0, 1.0, -100.0]).unwrap();
        assert_eq!(tensor.as_slice::<i8>().unwrap(), [-10, -8, -128]);
        assert_eq!(tensor.reals(), [0.0, 1.0, -59.0]);
        assert_eq!(tensor.to_f32(), [0.0, 1.0, -59.0]);
        assert!((tensor.summary().unwrap().max - 1.0).abs() < 1e-9);
    }

    #[test]
    fn integers_that_stand_for_themselves_are_rounded_and_clamped() {
        let tensor = Tensor::from_reals(DataType::Uint8, [4], None, &[-1.0, 2.5, 254.6, 1e9]);
        assert_eq!(tensor.unwrap().as_slice::<u8>().unwrap(), [0, 2, 255, 255]);
    }

    #[test]
    fn complex_numbers_are_compared_by_magnitude_and_made_of_real_ones() {
        let tensor = Tensor::new([2], &[Complex32::new(3.0, -4.0), Complex32::new(1.0, 0.0)]);
        let tensor = tensor.unwrap();
        assert_eq!(tensor.stored(), [3.0, -4.0, 1.0, 0.0]);
        assert_eq!(tensor.top(1), [(0, 5.0)]);
        assert_eq!(tensor.summary().unwrap(), Summary { min: 1.0, max: 5.0, mean: 3.0 });
        let real = Tensor::from_reals(DataType::Complex64, [1], None, &[2.0]).unwrap();
        assert_eq!(real.as_slice::<Complex32>().unwrap(), [Complex32::new(2.0, 0.0)]);
    }

    #[test]
    fn an_empty_tensor_has_no_summary() {
        let tensor = Tensor::new::<f32>([0, 3], &[]).unwrap();
        assert!(tensor.is_empty());
        assert_eq!(tensor.summary(), None);
    }

    #[test]
    fn elements_of_another_type_are_refused() {
        let tensor = Tensor::new([2], &[1_i32, 2]).unwrap();
        let refused = tensor.as_slice::<f32>().unwrap_err();
        assert_eq!(refused.to_string(), "elements are int32, expected float32");
    }

    #[test]
    fn a_shape_of_other_elements_is_refused() {
        let refused = Tensor::new([2, 2], &[1.0_f32; 3]).unwrap_err().to_string();
        assert_eq!(refused, "12 bytes do not make a tensor of float32 and shape [2, 2]");
        assert!(Tensor::zeros(DataType::Float64, [usize::MAX, 2]).is_err());
        assert!(Tensor::zeros(DataType::Uint8, [usize::MAX / 4]).is_err());
    }

    #[test]
    fn a_byte_that_is_no_truth_value_is_refused_as_one() {
        let tensor = Tensor::from_bytes(DataType::Bool, [2], &[1, 7]).unwrap();
        assert!(tensor.as_slice::<bool>().is_err());
        assert_eq!(tensor.stored(), [1.0, 1.0]);
    }

    #[test]
    fn of_equal_elements_the_first_is_best() {
        let tensor = Tensor::new([4], &[1.0_f32, 3.0, 3.0, 2.0]).unwrap();
        assert_eq!(tensor.top(3), [(1, 3.0), (2, 3.0), (3, 2.0)]);
    }
}
