//! [`Call`]: an operation with its actual arguments, as far as they are known.
//!
//! The same type serves a model that is being validated, where shapes and values may be missing,
//! and an operation that is about to run, where everything is there.

use crate::error::{Fault, OperationError, Subject};
use crate::extension::{ExtensionOperation, element_size};
use crate::shape::Shape;
use crate::signature::Signature;
use half::f16;
use nnhal_hal::{ChannelQuant, ExtraParams, HalVersion, OperandType, OperationType};
use std::cell::Cell;
use std::fmt;

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

/// An actual argument of a [`Call`]: an input, or an output to be.
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
    operation: OperationType,
    subject: Subject,
    bounds: Bounds<'a>,
}

/// An operation with its arguments.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    operation: OperationType,
    inputs: Vec<Argument<'a>>,
    outputs: Vec<Argument<'a>>,
    bounds: Bounds<'a>,
    /// Work since the interrupt was asked last.
    work: Cell<usize>,
}

/// Within what an operation has to compute.
#[derive(Debug, Clone, Copy, Default)]
struct Bounds<'a> {
    interrupt: Option<Interrupt<'a>>,
    allowance: Option<Allowance<'a>>,
}

/// Steps that a kernel takes between two questions whether it is to stop. A step is an element that
/// is read or written, or a product: some nanoseconds, so that this is about a millisecond at most.
const WORK_BETWEEN_CHECKS: usize = 1 << 16;

/// Elements that are gone through in one go. Small enough for steps that take long, as exponentials
/// do.
const PIECE: usize = 1 << 13;

/// Says whether an operation running is to stop, for instance at a deadline.
#[derive(Clone, Copy)]
pub struct Interrupt<'a>(pub &'a dyn Fn() -> bool);

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Interrupt")
    }
}

/// Asked before an operation takes memory: says whether it may take this many bytes more. What it has
/// taken counts until it ends, its results included.
#[derive(Clone, Copy)]
pub struct Allowance<'a>(pub &'a dyn Fn(u64) -> bool);

impl fmt::Debug for Allowance<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Allowance")
    }
}

impl Bounds<'_> {
    fn check(self, operation: OperationType) -> Result<(), Fault> {
        match self.interrupt {
            Some(Interrupt(stop)) if stop() => Err(Fault::Interrupted { operation }),
            _ => Ok(()),
        }
    }

    /// Room for elements, which counts as taken.
    fn room<T>(self, operation: OperationType, count: usize) -> Result<Vec<T>, Fault> {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let out_of_memory = || Fault::OutOfMemory { operation, bytes };
        if let Some(Allowance(take)) = self.allowance
            && !take(bytes)
        {
            return Err(out_of_memory());
        }
        let mut elements = Vec::new();
        elements.try_reserve_exact(count).map_err(|_| out_of_memory())?;
        Ok(elements)
    }

    /// The first `count` of these elements.
    fn collect<T>(
        self,
        operation: OperationType,
        count: usize,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Vec<T>, Fault> {
        let mut collected = self.room(operation, count)?;
        let mut elements = elements.into_iter().take(count);
        loop {
            let before = collected.len();
            collected.extend(elements.by_ref().take(PIECE));
            if collected.len() < before + PIECE {
                return Ok(collected);
            }
            self.check(operation)?;
        }
    }
}

/// What goes into a [`Call`]: an operand, its shape, and its value.
#[derive(Debug, Clone)]
pub struct ArgumentSource<'a> {
    /// Type and quantization.
    pub operand: &'a nnhal_hal::Operand,
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
            bounds: Bounds::default(),
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
            bounds: Bounds::default(),
            work: Cell::new(0),
        };
        if let Some(signature) = Signature::of(operation) {
            signature.name_arguments(&mut call);
        }
        call
    }

    /// The same call, that may be interrupted while it computes.
    #[must_use]
    pub fn with_interrupt(self, interrupt: Interrupt<'a>) -> Self {
        let bounds = Bounds { interrupt: Some(interrupt), ..self.bounds };
        self.within(bounds)
    }

    /// The same call, that has to ask for the memory that it takes while it computes.
    #[must_use]
    pub fn with_allowance(self, allowance: Allowance<'a>) -> Self {
        let bounds = Bounds { allowance: Some(allowance), ..self.bounds };
        self.within(bounds)
    }

    fn within(mut self, bounds: Bounds<'a>) -> Self {
        self.bounds = bounds;
        for argument in self.inputs.iter_mut().chain(&mut self.outputs) {
            argument.bounds = bounds;
        }
        self
    }

    /// Asked by kernels wherever much can come to pass without: between rows, windows, candidates.
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn check_interrupt(&self) -> Result<(), Fault> {
        self.bounds.check(self.operation)
    }

    /// Called by kernels before they take this many steps. A step is an element that is read or written,
    /// or a product. Now and then it asks whether to stop. Loops of more steps than fit a few
    /// milliseconds are counted piece by piece: [`Call::each`].
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn work(&self, steps: usize) -> Result<(), Fault> {
        let work = self.work.get().saturating_add(steps);
        if work < WORK_BETWEEN_CHECKS {
            self.work.set(work);
            return Ok(());
        }
        self.work.set(0);
        self.check_interrupt()
    }

    /// Visits all items, however many there are, and counts them as work.
    ///
    /// # Errors
    /// [`Fault::Interrupted`]
    pub fn each<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        mut visit: impl FnMut(T),
    ) -> Result<(), Fault> {
        let mut items = items.into_iter();
        loop {
            let mut count = 0;
            for item in items.by_ref().take(PIECE) {
                visit(item);
                count += 1;
            }
            self.work(count)?;
            if count < PIECE {
                return Ok(());
            }
        }
    }

    /// Room for elements that a kernel needs for itself.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`]
    pub fn room<T>(&self, count: usize) -> Result<Vec<T>, Fault> {
        self.bounds.room(self.operation, count)
    }

    /// Appends an item to a list whose length is not known beforehand.
    ///
    /// # Errors
    /// As [`Call::room`].
    pub fn push<T>(&self, list: &mut Vec<T>, item: T) -> Result<(), Fault> {
        if list.len() == list.capacity() {
            let more = list.len().max(64);
            let grown = self.room(list.len() + more)?;
            let before = std::mem::replace(list, grown);
            list.extend(before);
        }
        list.push(item);
        Ok(())
    }

    /// Counts elements that a kernel takes and frees again as it goes, this many at once at most.
    ///
    /// # Errors
    /// As [`Call::room`].
    pub fn reserve<T>(&self, count: usize) -> Result<(), Fault> {
        self.room::<T>(count).map(drop)
    }

    /// The first `count` of these elements, for a kernel's own use.
    ///
    /// # Errors
    /// [`Fault::OutOfMemory`], [`Fault::Interrupted`]
    pub fn collect<T>(
        &self,
        count: usize,
        elements: impl IntoIterator<Item = T>,
    ) -> Result<Vec<T>, Fault> {
        self.bounds.collect(self.operation, count, elements)
    }

    /// What is called.
    pub fn operation(&self) -> OperationType {
        self.operation
    }

    /// The operation whose rules hold: of an operation of the extension that takes those of one of the
    /// interface over for more types, that one; of all others, itself.
    pub fn definition(&self) -> OperationType {
        let extended = ExtensionOperation::of(self.operation);
        extended.and_then(ExtensionOperation::like).unwrap_or(self.operation)
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
        if self.shape.element_count().is_some_and(|count| count > crate::validate::MAX_RANK as u64)
        {
            let most = format!("a number for each of at most {} axes", crate::validate::MAX_RANK);
            return Err(self.wrong("shape", &self.shape, most));
        }
        self.i32s()
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

    /// The greatest rank: the interface's limit for its operations, and for those of the extension the one
    /// that all models have.
    pub(crate) fn most_axes(&self, of_the_interface: usize) -> usize {
        match self.operation {
            OperationType::Extension(_) => crate::validate::MAX_RANK,
            _ => of_the_interface,
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
