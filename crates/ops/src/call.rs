//! [`Call`]: an operation with its actual arguments, as far as they are known.
//!
//! The same type serves a model that is being validated, where shapes and values may be missing,
//! and an operation that is about to run, where everything is there.

use crate::error::{Fault, OperationError, Subject};
use crate::shape::Shape;
use crate::signature::Signature;
use hal::{ChannelQuant, ExtraParams, HalVersion, OperandType, OperationType};
use half::f16;
use std::fmt;

/// What is known of an argument's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// The argument is left out (lifetime `NO_VALUE`, or an argument of the request without one).
    Omitted,
    /// There will be one, but it is not known yet.
    NotKnown,
    /// The bytes, little endian and packed.
    Known(&'a [u8]),
}

/// An actual argument of a [`Call`]: an input, or an output to be.
#[derive(Debug, Clone)]
pub struct Argument<'a> {
    /// The element type.
    pub operand_type: OperandType,
    /// The dimensions, as far as they are known. A scalar's rank is 0.
    pub shape: Shape,
    /// See [`hal::Operand::scale`].
    pub scale: f32,
    /// See [`hal::Operand::zero_point`].
    pub zero_point: i32,
    /// See [`ExtraParams`].
    pub extra_params: &'a ExtraParams,
    /// The value; outputs have none.
    pub value: Value<'a>,
    operation: OperationType,
    subject: Subject,
}

/// An operation with its arguments.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    operation: OperationType,
    inputs: Vec<Argument<'a>>,
    outputs: Vec<Argument<'a>>,
    interrupt: Option<Interrupt<'a>>,
}

/// Says whether an operation under way is to stop, for instance at a deadline.
#[derive(Clone, Copy)]
pub struct Interrupt<'a>(pub &'a dyn Fn() -> bool);

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interrupt")
    }
}

/// What goes into a [`Call`]: an operand, its shape, and its value.
#[derive(Debug, Clone)]
pub struct ArgumentSource<'a> {
    /// Type and quantisation.
    pub operand: &'a hal::Operand,
    /// The dimensions known by now; see [`Argument::shape`].
    pub shape: Shape,
    /// See [`Argument::value`].
    pub value: Value<'a>,
}

/// What an operation computed for one of its outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exact dimensions; 0 really means none.
    pub dimensions: Vec<u32>,
    /// The elements, little endian and packed.
    pub bytes: Vec<u8>,
}

impl<'a> Call<'a> {
    /// An operation with these arguments. Names of arguments, for messages, are taken from its
    /// signature.
    pub fn new(
        operation: OperationType,
        inputs: impl IntoIterator<Item = ArgumentSource<'a>>,
        outputs: impl IntoIterator<Item = ArgumentSource<'a>>,
    ) -> Self {
        let argument = |source: ArgumentSource<'a>, subject| Argument {
            operand_type: source.operand.operand_type,
            shape: if source.operand.operand_type.is_scalar() {
                Shape::known([])
            } else {
                source.shape
            },
            scale: source.operand.scale,
            zero_point: source.operand.zero_point,
            extra_params: &source.operand.extra_params,
            value: source.value,
            operation,
            subject,
        };
        let mut call = Self {
            operation,
            inputs: inputs
                .into_iter()
                .enumerate()
                .map(|(index, source)| argument(source, Subject::Input(index, "")))
                .collect(),
            outputs: outputs
                .into_iter()
                .enumerate()
                .map(|(index, source)| argument(source, Subject::Output(index, "")))
                .collect(),
            interrupt: None,
        };
        if let Some(signature) = Signature::of(operation) {
            signature.name_arguments(&mut call);
        }
        call
    }

    /// The same call, that may be told to stop while it computes.
    #[must_use]
    pub fn with_interrupt(self, interrupt: Interrupt<'a>) -> Self {
        Self { interrupt: Some(interrupt), ..self }
    }

    /// For kernels that do much more work than they have elements: asked in their outer loops.
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn check_interrupt(&self) -> Result<(), Fault> {
        match self.interrupt {
            Some(Interrupt(stop)) if stop() => {
                Err(Fault::Interrupted { operation: self.operation })
            }
            _ => Ok(()),
        }
    }

    /// What is called.
    pub fn operation(&self) -> OperationType {
        self.operation
    }

    /// All inputs by position.
    pub fn inputs(&self) -> &[Argument<'a>] {
        &self.inputs
    }

    /// All outputs by position.
    pub fn outputs(&self) -> &[Argument<'a>] {
        &self.outputs
    }

    /// An input that the signature requires.
    ///
    /// # Panics
    /// If there is no such input: the signature is checked before anything else is asked.
    pub fn input(&self, index: usize) -> &Argument<'a> {
        &self.inputs[index]
    }

    /// An output that the signature requires.
    ///
    /// # Panics
    /// As [`Call::input`].
    pub fn output(&self, index: usize) -> &Argument<'a> {
        &self.outputs[index]
    }

    /// An input that may be missing at the end of the list, or left out.
    pub fn optional(&self, index: usize) -> Option<&Argument<'a>> {
        self.inputs.get(index).filter(|argument| !argument.is_omitted())
    }

    /// A trailing truth value, false where it is missing.
    ///
    /// # Errors
    /// [`Fault::NotKnown`]
    pub fn optional_bool(&self, index: usize) -> Result<bool, Fault> {
        self.optional(index).map_or(Ok(false), Argument::bool)
    }

    /// A trailing integer, with what it is where it is missing.
    ///
    /// # Errors
    /// [`Fault::NotKnown`]
    pub fn optional_i32(&self, index: usize, otherwise: i32) -> Result<i32, Fault> {
        self.optional(index).map_or(Ok(otherwise), Argument::i32)
    }

    /// The operation as a whole does not keep to its definition.
    pub fn wrong(
        &self,
        what: &'static str,
        found: impl ToString,
        expected: impl ToString,
    ) -> Fault {
        OperationError {
            operation: self.operation,
            subject: Subject::Operation,
            what,
            found: found.to_string(),
            expected: expected.to_string(),
        }
        .into()
    }

    /// Something about the operation is not known yet.
    pub fn not_known(&self, what: &'static str) -> Fault {
        Fault::NotKnown { operation: self.operation, subject: Subject::Operation, what }
    }

    /// Names an argument, for messages.
    pub(crate) fn name_input(&mut self, index: usize, name: &'static str) {
        if let Some(argument) = self.inputs.get_mut(index) {
            argument.subject = Subject::Input(index, name);
        }
    }

    /// Names an argument, for messages.
    pub(crate) fn name_output(&mut self, index: usize, name: &'static str) {
        if let Some(argument) = self.outputs.get_mut(index) {
            argument.subject = Subject::Output(index, name);
        }
    }
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
            Value::NotKnown => Err(self.not_known("value")),
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
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn i32s(&self) -> Result<Vec<i32>, Fault> {
        let (elements, _) = self.bytes()?.as_chunks();
        Ok(elements.iter().map(|element| i32::from_le_bytes(*element)).collect())
    }

    /// The elements of a float tensor (`TENSOR_FLOAT32`, `TENSOR_FLOAT16`) as `f32`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn f32s(&self) -> Result<Vec<f32>, Fault> {
        let bytes = self.bytes()?;
        Ok(match self.operand_type {
            OperandType::TensorFloat16 => {
                let (elements, _) = bytes.as_chunks();
                elements.iter().map(|element| f16::from_le_bytes(*element).to_f32()).collect()
            }
            _ => {
                let (elements, _) = bytes.as_chunks();
                elements.iter().map(|element| f32::from_le_bytes(*element)).collect()
            }
        })
    }

    /// The stored integers of a quantised, integer or boolean tensor, or of an `INT32`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn integers(&self) -> Result<Vec<i32>, Fault> {
        let bytes = self.bytes()?;
        Ok(match self.operand_type {
            OperandType::TensorQuant8AsymmSigned
            | OperandType::TensorQuant8Symm
            | OperandType::TensorQuant8SymmPerChannel => {
                bytes.iter().map(|byte| i32::from(byte.cast_signed())).collect()
            }
            OperandType::TensorQuant16Symm => {
                let (elements, _) = bytes.as_chunks();
                elements.iter().map(|element| i32::from(i16::from_le_bytes(*element))).collect()
            }
            OperandType::TensorQuant16Asymm => {
                let (elements, _) = bytes.as_chunks();
                elements.iter().map(|element| i32::from(u16::from_le_bytes(*element))).collect()
            }
            OperandType::TensorInt32 | OperandType::Int32 => return self.i32s(),
            _ => bytes.iter().map(|byte| i32::from(*byte)).collect(),
        })
    }

    /// The elements as truth values: anything but 0 is true.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn bools(&self) -> Result<Vec<bool>, Fault> {
        Ok(self.bytes()?.iter().map(|byte| *byte != 0).collect())
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

    /// Demands a rank. An unknown one passes.
    ///
    /// # Errors
    /// The rank is another.
    pub fn expect_rank(&self, expected: usize) -> Result<(), Fault> {
        self.expect_rank_in(expected..=expected)
    }

    /// Demands a rank within a range. An unknown one passes.
    ///
    /// # Errors
    /// The rank is outside.
    pub fn expect_rank_in(&self, expected: std::ops::RangeInclusive<usize>) -> Result<(), Fault> {
        match self.shape.rank() {
            Some(rank) if !expected.contains(&rank) => {
                let wanted = if expected.start() == expected.end() {
                    expected.start().to_string()
                } else if *expected.end() == usize::MAX {
                    format!("{} or more", expected.start())
                } else {
                    format!("{} to {}", expected.start(), expected.end())
                };
                Err(self.wrong("rank", rank, wanted))
            }
            _ => Ok(()),
        }
    }

    /// Demands a length along one axis. An unknown one passes, on either side.
    ///
    /// # Errors
    /// Both are known and differ.
    pub fn expect_length(&self, axis: usize, expected: Option<u32>) -> Result<(), Fault> {
        match (self.shape.length(axis), expected) {
            (Some(found), Some(expected)) if found != expected => Err(self.wrong(
                "shape",
                &self.shape,
                format!("length {expected} along axis {axis}"),
            )),
            _ => Ok(()),
        }
    }

    /// Demands the same scale and zero point as another argument has.
    ///
    /// # Errors
    /// They differ.
    pub fn expect_quantized_as(&self, other: &Argument<'_>) -> Result<(), Fault> {
        // Compared as stored: two operands either carry the same number or they do not.
        #[allow(clippy::float_cmp)]
        if self.scale != other.scale {
            return Err(self.wrong(
                "scale",
                self.scale,
                format!("{} as {}", other.scale, other.subject),
            ));
        }
        if self.zero_point != other.zero_point {
            return Err(self.wrong(
                "zero point",
                self.zero_point,
                format!("{} as {}", other.zero_point, other.subject),
            ));
        }
        Ok(())
    }

    /// Demands a scale and zero point that the definition fixes.
    ///
    /// # Errors
    /// They are others.
    pub fn expect_quantization(&self, scale: f32, zero_point: i32) -> Result<(), Fault> {
        #[allow(clippy::float_cmp)]
        if self.scale != scale {
            return Err(self.wrong("scale", self.scale, scale));
        }
        if self.zero_point != zero_point {
            return Err(self.wrong("zero point", self.zero_point, zero_point));
        }
        Ok(())
    }

    /// An axis: negative ones count from the end.
    ///
    /// # Errors
    /// The rank of `tensor` is not known yet, or there is no such axis.
    pub fn axis_of(&self, axis: i32, tensor: &Argument<'_>) -> Result<usize, Fault> {
        let rank = tensor.shape.rank().ok_or_else(|| tensor.not_known("rank"))?;
        let signed_rank = i64::try_from(rank).unwrap_or(i64::MAX);
        let from_front = if axis < 0 { i64::from(axis) + signed_rank } else { i64::from(axis) };
        usize::try_from(from_front)
            .ok()
            .filter(|axis| *axis < rank)
            .ok_or_else(|| self.wrong("value", axis, format!("an axis of a tensor of rank {rank}")))
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

    /// Whether the elements are quantised integers.
    pub fn is_quantized(&self) -> bool {
        self.operand_type.quantized_range().is_some()
    }

    /// The real numbers that the elements stand for: floats as they are, quantised ones as
    /// `scale * (stored - zero_point)`.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the argument is left out.
    pub fn reals(&self) -> Result<Vec<f32>, Fault> {
        if self.is_float() {
            return self.f32s();
        }
        // Differences of stored values fit 24 bits, so the conversion is exact.
        #[allow(clippy::cast_precision_loss)]
        let real = |stored: i32| (stored - self.zero_point) as f32 * self.scale;
        Ok(self.integers()?.into_iter().map(real).collect())
    }

    /// Room for the elements of this output.
    ///
    /// # Errors
    /// There are more than 2^32 - 1 bytes of them, or memory cannot be had.
    pub fn allocate<T>(&self, dimensions: &[u32]) -> Result<Vec<T>, Fault> {
        let element = self.operand_type.element_size().unwrap_or(1);
        let bytes = dimensions
            .iter()
            .try_fold(u64::from(element), |bytes, length| bytes.checked_mul(u64::from(*length)))
            .filter(|bytes| u32::try_from(*bytes).is_ok())
            .ok_or_else(|| {
                self.wrong(
                    "shape",
                    Shape::known(dimensions.iter().copied()),
                    "at most 2^32 - 1 bytes",
                )
            })?;
        let count = bytes / u64::from(element.max(1));
        let out_of_memory = || Fault::OutOfMemory { operation: self.operation, bytes };
        let mut elements = Vec::new();
        elements
            .try_reserve_exact(usize::try_from(count).map_err(|_| out_of_memory())?)
            .map_err(|_| out_of_memory())?;
        Ok(elements)
    }

    /// This output with float elements, rounded to its type.
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    pub fn with_f32s(&self, dimensions: Vec<u32>, elements: &[f32]) -> Output {
        let bytes = match self.operand_type {
            OperandType::TensorFloat16 => {
                elements.iter().flat_map(|element| f16::from_f32(*element).to_le_bytes()).collect()
            }
            _ => elements.iter().flat_map(|element| element.to_le_bytes()).collect(),
        };
        self.with_bytes(dimensions, bytes)
    }

    /// This output with stored integers, saturated to the range of its type.
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    // Saturation makes the narrowing exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn with_integers(&self, dimensions: Vec<u32>, elements: &[i32]) -> Output {
        let (least, greatest) = self.operand_type.quantized_range().unwrap_or((i32::MIN, i32::MAX));
        let stored = elements.iter().map(|element| (*element).clamp(least, greatest));
        let bytes = match self.operand_type.element_size() {
            Some(1) => stored.map(|element| element as u8).collect(),
            Some(2) => stored.flat_map(|element| (element as u16).to_le_bytes()).collect(),
            _ => stored.flat_map(i32::to_le_bytes).collect(),
        };
        self.with_bytes(dimensions, bytes)
    }

    /// This output with truth values.
    ///
    /// # Panics
    /// If there are not as many elements as the dimensions say: a kernel is wrong.
    pub fn with_bools(&self, dimensions: Vec<u32>, elements: &[bool]) -> Output {
        self.with_bytes(dimensions, elements.iter().map(|element| u8::from(*element)).collect())
    }

    /// This output with bytes as they are.
    ///
    /// # Panics
    /// If there are not as many bytes as the dimensions say: a kernel is wrong. Of an extension's
    /// type nobody here knows.
    pub fn with_bytes(&self, dimensions: Vec<u32>, bytes: Vec<u8>) -> Output {
        let elements: u64 = dimensions.iter().map(|length| u64::from(*length)).product();
        if let Some(element) = self.operand_type.element_size() {
            let expected = elements * u64::from(element);
            assert_eq!(bytes.len() as u64, expected, "{} {}", self.operation, self.subject);
        }
        Output { dimensions, bytes }
    }
}

/// What an operation needs beyond what its argument types say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// The oldest version that allows it.
    pub version: HalVersion,
    /// What needs that version.
    pub reason: &'static str,
}

impl Since {
    /// Nothing newer than what the argument types ask for.
    pub const ALWAYS: Self = Self { version: HalVersion::V1_0, reason: "" };

    /// The later of two needs.
    #[must_use]
    pub fn and(self, version: HalVersion, reason: &'static str, needed: bool) -> Self {
        if needed && version > self.version { Self { version, reason } } else { self }
    }
}
