//! [`Argument`]: what is known of an input or output, and its elements.

use super::bounds::Bounds;
use crate::error::{Fault, OperationError, Subject};
use crate::shape::Shape;
use half::f16;
use nnhal_hal::{ChannelQuant, ExtraParams, OperandType, OperationType};

/// What is known of an argument's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// The argument is left out (lifetime `NO_VALUE`, or an argument of the request without one).
    Omitted,
    /// Nothing is known of it, not even whether there will be one: a request may leave out an
    /// argument of the model.
    NotKnown,
    /// There is one, or will be when the operation runs, but its bytes are not known yet.
    Given,
    /// The bytes, little endian and packed.
    Known(&'a [u8]),
}

/// An actual argument of a [`Call`](super::Call): an input, or an output to be.
#[derive(Debug, Clone)]
pub struct Argument<'a> {
    /// The element type.
    pub operand_type: OperandType,
    /// The dimensions, as far as they are known. A scalar's rank is 0.
    pub shape: Shape,
    /// See [`nnhal_hal::Operand::scale`].
    pub scale: f32,
    /// See [`nnhal_hal::Operand::zero_point`].
    pub zero_point: i32,
    /// See [`ExtraParams`].
    pub extra_params: &'a ExtraParams,
    /// The value; outputs have none.
    pub value: Value<'a>,
    pub(super) operation: OperationType,
    pub(super) subject: Subject,
    pub(super) bounds: Bounds<'a>,
}

impl<'a> Argument<'a> {
    /// Whether it is left out.
    pub fn is_omitted(&self) -> bool {
        self.value == Value::Omitted
    }

    /// A property of this argument is not what the definition asks for.
    pub fn wrong(
        &self,
        what: &'static str,
        found: impl ToString,
        expected: impl ToString,
    ) -> Fault {
        OperationError {
            operation: self.operation,
            subject: self.subject.clone(),
            what,
            found: found.to_string(),
            expected: expected.to_string(),
        }
        .into()
    }

    /// A property of this argument is not known yet.
    pub fn not_known(&self, what: &'static str) -> Fault {
        Fault::NotKnown { operation: self.operation, subject: self.subject.clone(), what }
    }

    /// The bytes of the value.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn bytes(&self) -> Result<&'a [u8], Fault> {
        match self.value {
            Value::Known(bytes) => Ok(bytes),
            Value::NotKnown | Value::Given => Err(self.not_known("value")),
            Value::Omitted => Err(self.wrong("value", "left out", "a value")),
        }
    }

    fn scalar<const N: usize>(&self) -> Result<[u8; N], Fault> {
        let bytes = self.bytes()?;
        bytes.try_into().map_err(|_| self.wrong("length in bytes", bytes.len(), N))
    }

    /// The value of an `INT32`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn i32(&self) -> Result<i32, Fault> {
        self.scalar().map(i32::from_le_bytes)
    }

    /// The value of an `INT32` that must not be negative.
    ///
    /// # Errors
    /// As [`Argument::i32`], or it is negative.
    pub fn non_negative(&self) -> Result<u32, Fault> {
        let value = self.i32()?;
        u32::try_from(value).map_err(|_| self.wrong("value", value, "0 or more"))
    }

    /// The value of an `INT32` that must be above 0.
    ///
    /// # Errors
    /// As [`Argument::i32`], or it is not.
    pub fn positive(&self) -> Result<u32, Fault> {
        match self.non_negative()? {
            0 => Err(self.wrong("value", 0, "above 0")),
            value => Ok(value),
        }
    }

    /// The value of a `BOOL`: anything but 0 is true.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn bool(&self) -> Result<bool, Fault> {
        self.scalar::<1>().map(|[byte]| byte != 0)
    }

    /// The value of a `FLOAT32` or `FLOAT16`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn f32(&self) -> Result<f32, Fault> {
        match self.operand_type {
            OperandType::Float16 => self.scalar().map(|bytes| f16::from_le_bytes(bytes).to_f32()),
            _ => self.scalar().map(f32::from_le_bytes),
        }
    }

    /// The elements of a `TENSOR_INT32`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out; [`Fault::OutOfMemory`],
    /// [`Fault::Interrupted`].
    pub fn i32s(&self) -> Result<Vec<i32>, Fault> {
        self.elements(i32::from_le_bytes)
    }

    /// The elements of a `TENSOR_INT32` with a number for each axis of another tensor.
    ///
    /// # Errors
    /// As [`Argument::i32s`]; there are more than a tensor may have axes.
    pub(crate) fn i32_per_axis(&self) -> Result<Vec<i32>, Fault> {
        if self.shape.element_count().is_some_and(|count| count > crate::shape::MAX_RANK as u64) {
            let most = format!("a number for each of at most {} axes", crate::shape::MAX_RANK);
            return Err(self.wrong("shape", &self.shape, most));
        }
        self.i32s()
    }

    /// The shape that the elements of a `TENSOR_INT32` are.
    ///
    /// # Errors
    /// As [`Argument::i32s`]; there are more lengths than a tensor may have axes, or a negative one.
    pub(crate) fn shape_given(&self) -> Result<Vec<u32>, Fault> {
        let length = |length: i32| {
            u32::try_from(length).map_err(|_| self.wrong("value", length, "0 or more"))
        };
        self.i32_per_axis()?.into_iter().map(length).collect()
    }

    /// The elements of a float tensor (`TENSOR_FLOAT32`, `TENSOR_FLOAT16`) as `f32`.
    ///
    /// # Errors
    /// As [`Argument::i32s`].
    pub fn f32s(&self) -> Result<Vec<f32>, Fault> {
        match self.operand_type {
            OperandType::TensorFloat16 => self.elements(|it| f16::from_le_bytes(it).to_f32()),
            _ => self.elements(f32::from_le_bytes),
        }
    }

    /// The stored integers of a quantized, integer or boolean tensor, or of an `INT32`.
    ///
    /// # Errors
    /// As [`Argument::i32s`].
    pub fn integers(&self) -> Result<Vec<i32>, Fault> {
        self.integers_as(|stored| stored)
    }

    /// The stored integers, each made something else.
    pub(crate) fn integers_as<T>(&self, of: impl Fn(i32) -> T) -> Result<Vec<T>, Fault> {
        match self.operand_type {
            OperandType::TensorQuant8AsymmSigned
            | OperandType::TensorQuant8Symm
            | OperandType::TensorQuant8SymmPerChannel => {
                self.elements(|it| of(i8::from_le_bytes(it).into()))
            }
            OperandType::TensorQuant16Symm => self.elements(|it| of(i16::from_le_bytes(it).into())),
            OperandType::TensorQuant16Asymm => {
                self.elements(|it| of(u16::from_le_bytes(it).into()))
            }
            OperandType::TensorInt32 | OperandType::Int32 => {
                self.elements(|it| of(i32::from_le_bytes(it)))
            }
            _ => self.elements(|it| of(u8::from_le_bytes(it).into())),
        }
    }

    /// The elements as truth values: anything but 0 is true.
    ///
    /// # Errors
    /// As [`Argument::i32s`].
    pub fn bools(&self) -> Result<Vec<bool>, Fault> {
        self.elements(|[byte]| byte != 0)
    }

    /// The elements, each made of its bytes.
    pub(crate) fn elements<const N: usize, T>(
        &self,
        of: impl Fn([u8; N]) -> T,
    ) -> Result<Vec<T>, Fault> {
        let (elements, _) = self.bytes()?.as_chunks();
        let elements = elements.iter();
        self.bounds.collect(self.operation, elements.len(), elements.map(|it| of(*it)))
    }

    /// All dimensions.
    ///
    /// # Errors
    /// [`Fault::NotKnown`] if any is not known yet.
    pub fn dimensions(&self) -> Result<Vec<u32>, Fault> {
        self.shape.to_known().ok_or_else(|| self.not_known("dimensions"))
    }

    /// All dimensions, for indexing.
    ///
    /// # Errors
    /// [`Fault::NotKnown`] if any is not known yet.
    pub fn lengths(&self) -> Result<Vec<usize>, Fault> {
        Ok(self.dimensions()?.into_iter().map(|length| length as usize).collect())
    }

    /// All dimensions of a tensor of rank `N`, for indexing.
    ///
    /// # Errors
    /// [`Fault::NotKnown`] if any is not known yet, or the rank is another.
    pub fn lengths_of<const N: usize>(&self) -> Result<[usize; N], Fault> {
        let lengths = self.lengths()?;
        let rank = lengths.len();
        lengths.try_into().map_err(|_| self.wrong("rank", rank, N))
    }

    /// The lengths along each axis, of a tensor that must have rank `N`, as far as they are known;
    /// all unknown if not even the rank is.
    ///
    /// # Errors
    /// The rank is known and is another.
    pub fn known_lengths_of<const N: usize>(&self) -> Result<[Option<u32>; N], Fault> {
        self.expect_rank(N)?;
        let lengths = self.shape.lengths().unwrap_or(&[None; N]);
        lengths.try_into().map_err(|_| self.wrong("rank", lengths.len(), N))
    }

    /// The scales by channel of a `TENSOR_QUANT8_SYMM_PER_CHANNEL`.
    pub fn channel_quant(&self) -> Option<&'a ChannelQuant> {
        match self.extra_params {
            ExtraParams::ChannelQuant(quant) => Some(quant),
            _ => None,
        }
    }

    /// Whether the elements are `TENSOR_FLOAT32` or `TENSOR_FLOAT16`.
    pub fn is_float(&self) -> bool {
        matches!(self.operand_type, OperandType::TensorFloat32 | OperandType::TensorFloat16)
    }

    /// Whether the elements are quantized integers.
    pub fn is_quantized(&self) -> bool {
        self.operand_type.quantized_range().is_some()
    }

    /// The real numbers that the elements stand for: floats as they are, quantized ones as
    /// `scale * (stored - zero_point)`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn reals(&self) -> Result<Vec<f32>, Fault> {
        self.reals_as(|real| real)
    }

    /// The real numbers, each made something else.
    pub(crate) fn reals_as<T>(&self, of: impl Fn(f32) -> T) -> Result<Vec<T>, Fault> {
        match self.operand_type {
            OperandType::TensorFloat32 => return self.elements(|it| of(f32::from_le_bytes(it))),
            OperandType::TensorFloat16 => {
                return self.elements(|it| of(f16::from_le_bytes(it).to_f32()));
            }
            _ => {}
        }
        // Differences of stored values fit 24 bits, so the conversion is exact.
        #[allow(clippy::cast_precision_loss)]
        let real = |stored: i32| (stored - self.zero_point) as f32 * self.scale;
        self.integers_as(|stored| of(real(stored)))
    }
}
