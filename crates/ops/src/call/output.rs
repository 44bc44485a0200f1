//! [`Output`]: what an operation computes, made from elements.

use super::Argument;
use crate::error::Fault;
use crate::extension::element_size;
use crate::shape::Shape;
use half::f16;
use nnhal_hal::OperandType;

/// What an operation computed for one of its outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exact dimensions; 0 really means none.
    pub dimensions: Vec<u32>,
    /// The elements, little endian and packed.
    pub bytes: Vec<u8>,
}

impl Argument<'_> {
    /// Room for the elements of this output.
    ///
    /// # Errors
    /// There are more than 2^32 - 1 bytes of them, or memory cannot be had.
    pub fn allocate<T>(&self, dimensions: &[u32]) -> Result<Vec<T>, Fault> {
        self.bounds.room(self.operation, self.count(dimensions)?)
    }

    /// Room for elements that a kernel makes of this argument.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`]
    pub(crate) fn room<T>(&self, count: usize) -> Result<Vec<T>, Fault> {
        self.bounds.room(self.operation, count)
    }

    /// As [`Call::check_interrupt`].
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub(crate) fn check_interrupt(&self) -> Result<(), Fault> {
        self.bounds.check(self.operation)
    }

    /// Number of elements of this output.
    fn count(&self, dimensions: &[u32]) -> Result<usize, Fault> {
        if dimensions.contains(&0) {
            return Ok(0);
        }
        let element = element_size(self.operand_type).unwrap_or(1);
        let bytes = dimensions.iter().try_fold(element, |bytes, length| bytes.checked_mul(*length));
        let count = bytes.and_then(|bytes| usize::try_from(bytes / element.max(1)).ok());
        count.ok_or_else(|| {
            let found = Shape::known(dimensions.iter().copied());
            self.wrong("shape", found, "at most 2^32 - 1 bytes")
        })
    }

    /// The elements of this output, as many as the dimensions say at most.
    ///
    /// # Errors
    /// As [`Argument::allocate`]; [`Fault::Interrupted`].
    pub fn collect<T>(
        &self,
        dimensions: &[u32],
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Vec<T>, Fault> {
        self.bounds.collect(self.operation, self.count(dimensions)?, elements)
    }

    /// This output with float elements, rounded to its type.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`], [`Fault::Interrupted`]
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    pub fn with_f32s(&self, dimensions: Vec<u32>, elements: &[f32]) -> Result<Output, Fault> {
        let elements = elements.iter();
        let bytes = match self.operand_type {
            OperandType::TensorFloat16 => {
                self.flattened(elements.map(|element| f16::from_f32(*element).to_le_bytes()))?
            }
            _ => self.flattened(elements.map(|element| element.to_le_bytes()))?,
        };
        Ok(self.with_bytes(dimensions, bytes))
    }

    /// This output with stored integers, saturated to the range of its type.
    ///
    /// # Errors
    /// As [`Argument::with_f32s`].
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    // Saturation makes the narrowing exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn with_integers(&self, dimensions: Vec<u32>, elements: &[i32]) -> Result<Output, Fault> {
        let (least, greatest) = self.operand_type.quantized_range().unwrap_or((i32::MIN, i32::MAX));
        let stored = elements.iter().map(|element| (*element).clamp(least, greatest));
        let bytes = match self.operand_type.element_size() {
            Some(1) => self.flattened(stored.map(|element| [element as u8]))?,
            Some(2) => self.flattened(stored.map(|element| (element as u16).to_le_bytes()))?,
            _ => self.flattened(stored.map(i32::to_le_bytes))?,
        };
        Ok(self.with_bytes(dimensions, bytes))
    }

    /// This output with truth values.
    ///
    /// # Errors
    /// As [`Argument::with_f32s`].
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    pub fn with_bools(&self, dimensions: Vec<u32>, elements: &[bool]) -> Result<Output, Fault> {
        let bytes = self.flattened(elements.iter().map(|element| [u8::from(*element)]))?;
        Ok(self.with_bytes(dimensions, bytes))
    }

    pub(crate) fn flattened<const N: usize>(
        &self,
        elements: impl ExactSizeIterator<Item = [u8; N]>,
    ) -> Result<Vec<u8>, Fault> {
        let bytes = self.bounds.collect(self.operation, elements.len(), elements)?;
        Ok(bytes.into_flattened())
    }

    /// This output with bytes as they are.
    ///
    /// # Panics
    /// If there are not as many bytes as the dimensions say: a kernel is wrong. Of an extension's
    /// type no one here knows.
    pub fn with_bytes(&self, dimensions: Vec<u32>, bytes: Vec<u8>) -> Output {
        if let Some(element) = element_size(self.operand_type) {
            let expected = self.count(&dimensions).map(|count| count * element as usize);
            assert_eq!(Ok(bytes.len()), expected, "{} {}", self.operation, self.subject);
        }
        Output { dimensions, bytes }
    }
}
