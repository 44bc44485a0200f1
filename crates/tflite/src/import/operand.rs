//! Tensors as operands: types, shapes, constants; and the small steps that all families share.

use super::array::Array;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::{Buffer, Operator, Tensor};
use crate::file::{known_lengths, type_name};
use crate::schema::{ActivationFunctionType, Padding};
use half::{bf16, f16};
use nnhal_hal::{
    FusedActivation, OperandId, OperandSpec, OperandType, OperationType, OperationType as O,
};
use nnhal_ops::extension::{
    ExtensionOperation, TENSOR_COMPLEX64, TENSOR_FLOAT64, TENSOR_INT64, TENSOR_UINT16,
    TENSOR_UINT32, TENSOR_UINT64, element_size,
};
use std::borrow::Cow;
use std::ops::Range;

/// Constants of at least this many bytes stay in the file.
const LARGE: usize = 128;

/// What follows an operation: an activation that the HAL can fuse, or one that it cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    Fused(FusedActivation),
    Tanh,
}

impl Activation {
    pub(super) fn of(function: ActivationFunctionType) -> Imported<Self> {
        Ok(Self::Fused(match function {
            ActivationFunctionType::None => FusedActivation::None,
            ActivationFunctionType::Relu => FusedActivation::Relu,
            ActivationFunctionType::ReluN1To1 => FusedActivation::Relu1,
            ActivationFunctionType::Relu6 => FusedActivation::Relu6,
            ActivationFunctionType::Tanh => return Ok(Self::Tanh),
            ActivationFunctionType::SignBit => {
                return Err(Reason::new("the HAL has no activation SIGN_BIT"));
            }
        }))
    }

    pub(super) fn fused(self) -> FusedActivation {
        match self {
            Self::Fused(fused) => fused,
            Self::Tanh => FusedActivation::None,
        }
    }
}

/// The HAL's number for a padding scheme.
pub(super) fn padding_scheme(padding: Padding) -> i32 {
    match padding {
        Padding::Same => 1,
        Padding::Valid => 2,
    }
}

/// Elements of a shape: beside a length of 0 the others can be any.
pub(super) fn element_count(lengths: &[u32]) -> usize {
    lengths.iter().fold(1, |count, length| count.saturating_mul(*length as usize))
}

/// Elements of a constant as an operand stores them.
fn unpacked(element: Element, bytes: &[u8], count: usize) -> Vec<u8> {
    // The low bits of a byte come first; a shift up and down extends the sign.
    let signed = |bits: u8, width: u32| (bits.cast_signed() >> (8 - width)).cast_unsigned();
    match element {
        Element::Int4 => {
            let halves = bytes.iter().flat_map(|byte| [byte << 4, *byte]);
            halves.map(|half| signed(half, 4)).take(count).collect()
        }
        Element::Int2 => {
            let quarters = bytes.iter().flat_map(|byte| [byte << 6, byte << 4, byte << 2, *byte]);
            quarters.map(|quarter| signed(quarter, 2)).take(count).collect()
        }
        Element::Uint4 => {
            bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).take(count).collect()
        }
        Element::Bfloat16 => {
            let (halves, _) = bytes.as_chunks();
            halves.iter().flat_map(|it| bf16::from_le_bytes(*it).to_f32().to_le_bytes()).collect()
        }
        _ => bytes.to_vec(),
    }
}

impl<'f> GraphImporter<'f, '_> {
    pub(super) fn tensor(&self, index: usize) -> &'f Tensor<'f> {
        &self.graph.tensors[index]
    }

    pub(super) fn element(&self, index: usize) -> Imported<Element> {
        if let Some(list) = self.lists[index] {
            return Ok(list.element);
        }
        let tensor = self.tensor(index);
        if let Some(way) = &tensor.other_quantization {
            return Err(Reason::new(format!(
                "{} is quantized by {way}, expected scales and zero points of the tensor itself",
                tensor.shown_name()
            )));
        }
        Element::of(tensor).ok_or_else(|| {
            Reason::new(format!("the HAL has no type {}", type_name(tensor.type_code)))
        })
    }

    /// The tensor index of an input that must be there.
    pub(super) fn input_tensor(&self, operator: &Operator<'_>, at: usize) -> Imported<usize> {
        operator.inputs.get(at).copied().flatten().ok_or_else(|| {
            Reason::new(format!("input {at} is missing; there are {}", operator.inputs.len()))
        })
    }

    /// The tensor index of an output that must be there.
    pub(super) fn output_tensor(&self, operator: &Operator<'_>, at: usize) -> Imported<usize> {
        operator.outputs.get(at).copied().ok_or_else(|| {
            Reason::new(format!("output {at} is missing; there are {}", operator.outputs.len()))
        })
    }

    /// The operand of an input that must be there.
    pub(super) fn input(&mut self, operator: &Operator<'_>, at: usize) -> Imported<OperandId> {
        let tensor = self.input_tensor(operator, at)?;
        self.operand(tensor)
    }

    /// The dimensions of a tensor as the HAL writes them: 0 is unknown, rank 0 is `[1]`.
    pub(super) fn dimensions(&self, index: usize, is_computed: bool) -> Vec<u32> {
        let tensor = self.tensor(index);
        if let Some(shape) = &self.shapes[index] {
            return if shape.is_empty() { vec![1] } else { shape.clone() };
        }
        if is_computed && self.file.has_other_ranks || self.lists[index].is_some() {
            return Vec::new();
        }
        let lengths = known_lengths(tensor);
        if lengths.is_empty() {
            return if is_computed && !tensor.has_shape { Vec::new() } else { vec![1] };
        }
        let says_no_lengths = tensor.signature.is_none() || self.file.is_contradicted;
        let is_example_only = is_computed && self.is_dynamic && says_no_lengths;
        lengths
            .into_iter()
            .map(|length| if is_example_only { 0 } else { length.unwrap_or(0) })
            .collect()
    }

    /// The dimensions of a tensor, if all are known.
    pub(super) fn shape(&self, index: usize) -> Imported<Vec<u32>> {
        let is_computed = !self.is_input[index] && !self.is_constant(index);
        let dimensions = self.dimensions(index, is_computed);
        if dimensions.contains(&0) || dimensions.is_empty() {
            return Err(Reason::new(format!(
                "the shape of {} must be known here",
                self.tensor(index).shown_name()
            )));
        }
        Ok(dimensions)
    }

    /// The number of axes of a tensor; 0 for a scalar.
    pub(super) fn rank(&self, index: usize) -> usize {
        self.lengths(index).len()
    }

    /// The lengths of a tensor, as far as they are known those that it has when the model runs; else
    /// those of the file's example.
    pub(super) fn lengths(&self, index: usize) -> &[u32] {
        self.shapes[index].as_deref().unwrap_or(&self.tensor(index).shape)
    }

    pub(super) fn spec(&self, index: usize) -> Imported<OperandSpec> {
        self.spec_with(index, self.dimensions(index, true))
    }

    pub(super) fn spec_of_input(&self, index: usize) -> Imported<OperandSpec> {
        self.spec_with(index, self.dimensions(index, false))
    }

    /// The tensor's type and quantization with these dimensions.
    pub(super) fn spec_with(&self, index: usize, dimensions: Vec<u32>) -> Imported<OperandSpec> {
        let operand_type = match self.element(index)? {
            Element::Float32 => OperandType::TensorFloat32,
            Element::Float16 => OperandType::TensorFloat16,
            Element::Int32 => OperandType::TensorInt32,
            Element::Int64 => TENSOR_INT64,
            Element::Uint32 => TENSOR_UINT32,
            Element::Uint16 => TENSOR_UINT16,
            Element::Uint64 => TENSOR_UINT64,
            Element::Float64 => TENSOR_FLOAT64,
            Element::Complex64 => TENSOR_COMPLEX64,
            Element::Bool => OperandType::TensorBool8,
            Element::Uint8 => OperandType::TensorQuant8Asymm,
            Element::Bfloat16 => OperandType::TensorFloat32,
            element if element.is_unpacked() && self.is_of_callers(index) => {
                let name = type_name(self.tensor(index).type_code);
                return Err(Reason::new(format!("{name} is no type of inputs and outputs")));
            }
            Element::Uint4 => OperandType::TensorQuant8Asymm,
            Element::Int8 | Element::Int4 | Element::Int2 => OperandType::TensorQuant8AsymmSigned,
            Element::Int16 => OperandType::TensorQuant16Symm,
        };
        let spec = OperandSpec::new(operand_type, dimensions);
        if operand_type.quantized_range().is_none() {
            return Ok(spec);
        }
        let tensor = self.tensor(index);
        let Some(quantization) = &tensor.quantization else {
            // Plain bytes: the HAL's types always have a scale.
            return Ok(spec.quantized(1.0, 0));
        };
        // Channels without weights may have scale 0, which the HAL does not know. With the least scale there is, products are as
        // good as 0.
        let least = |scale: &f32| if *scale == 0.0 { f32::MIN_POSITIVE } else { *scale };
        let scales: Vec<f32> = quantization.scales.iter().map(least).collect();
        let zero_point = |at: usize| quantization.zero_points.get(at).copied().unwrap_or(0);
        if let [scale] = *scales {
            let zero_point = i32::try_from(zero_point(0))
                .map_err(|_| Reason::new(format!("the zero point is {}", zero_point(0))))?;
            return Ok(spec.quantized(scale, zero_point));
        }
        if self.is_stored_by_channel(index) {
            return Ok(spec.quantized(1.0, 0));
        }
        if operand_type != OperandType::TensorQuant8AsymmSigned
            || quantization.zero_points.iter().any(|zero_point| *zero_point != 0)
        {
            return Err(Reason::new(
                "the HAL has scales by channel only for int8 with zero points 0",
            ));
        }
        Ok(OperandSpec::tensor_quant8_symm_per_channel(
            spec.dimensions,
            &scales,
            quantization.dimension,
        ))
    }

    /// Whether a tensor is an input or an output of its graph.
    fn is_of_callers(&self, index: usize) -> bool {
        self.is_input[index] && !self.is_constant(index) || self.is_output[index]
    }

    /// Whether the file holds the tensor's value.
    pub(super) fn is_constant(&self, index: usize) -> bool {
        let buffer = self.buffers[index];
        let is_empty = self.file.buffers.get(buffer).is_none_or(Range::is_empty);
        buffer != 0 && !is_empty && !self.tensor(index).is_variable
    }

    /// The operand that holds a tensor; a constant is made one on first use.
    pub(super) fn operand(&mut self, index: usize) -> Imported<OperandId> {
        if let Some(operand) = self.operands[index] {
            if !self.is_flat[index] {
                return Ok(operand);
            }
            let spec = self.spec(index)?;
            let operand = self.reshape(operand, spec)?;
            self.operands[index] = Some(operand);
            self.is_flat[index] = false;
            return Ok(operand);
        }
        let operand = match &self.folded[index] {
            Some(array) => self.folded_constant(index, &array.clone())?,
            None if self.is_constant_without_elements(index) => {
                let shape = self.tensor(index).shape.clone();
                let spec = self.spec_with(index, shape.clone())?;
                self.without_elements(spec, &shape)?
            }
            None => self.constant(index)?,
        };
        let name = self.tensor(index).short_name();
        self.builder.name(operand, name);
        self.operands[index] = Some(operand);
        Ok(operand)
    }

    /// An operand with the elements of a tensor, whatever its shape is.
    pub(super) fn flat_operand(&mut self, index: usize) -> Imported<OperandId> {
        match self.operands[index] {
            Some(operand) => Ok(operand),
            None => self.operand(index),
        }
    }

    fn constant(&mut self, index: usize) -> Imported<OperandId> {
        let spec = self.spec_with(index, self.dimensions(index, false))?;
        self.constant_with(index, spec)
    }

    /// The constant of a tensor as an operand of this type and shape, whose element must have the
    /// same size.
    pub(super) fn constant_with(&mut self, index: usize, spec: OperandSpec) -> Imported<OperandId> {
        let (element, buffer) = self.constant_place(index)?;
        let is_stored_so = self.tensor(index).sparsity.is_none() && !element.is_unpacked();
        match (self.file.place(&buffer), u32::try_from(buffer.len())) {
            (Some((pool, offset)), Ok(length)) if is_stored_so && buffer.len() >= LARGE => {
                Ok(self.builder.constant_in_pool(spec, self.pools[pool], offset, length))
            }
            _ => {
                let bytes = self.constant_bytes(index)?;
                Ok(self.builder.constant_bytes(spec, &bytes))
            }
        }
    }

    /// The element type of a constant tensor, and where its bytes are: as many as its shape needs,
    /// unless it is sparse.
    fn constant_place(&self, index: usize) -> Imported<(Element, Buffer)> {
        let element = self.element(index)?;
        Ok((element, self.place_of(index, element)?))
    }

    fn place_of(&self, index: usize, element: Element) -> Imported<Buffer> {
        let tensor = self.tensor(index);
        if !self.is_constant(index) {
            let name = tensor.shown_name();
            return Err(Reason::new(match &tensor.elsewhere {
                Some(why) => format!("the value of {name} is not there: {why}"),
                None => format!("{name} is read before it is written"),
            }));
        }
        let buffer = self.file.buffers[self.buffers[index]].clone();
        let size = tensor.shape.iter().try_fold(element.bytes(), |size, length| {
            size.checked_mul(usize::try_from(*length).ok()?)
        });
        let size = size.map(|it| it.div_ceil(element.per_byte()));
        if tensor.sparsity.is_none() && size != Some(buffer.len()) {
            return Err(Reason::new(format!(
                "{} has {} bytes, which its shape {:?} does not need",
                tensor.shown_name(),
                buffer.len(),
                tensor.shape
            )));
        }
        Ok(buffer)
    }

    /// The bytes of a constant tensor as the HAL stores them.
    pub(super) fn constant_bytes(&self, index: usize) -> Imported<Cow<'f, [u8]>> {
        self.bytes_of(index, self.element(index)?)
    }

    /// The same, of a tensor that has elements of this type in the file.
    pub(super) fn bytes_of(&self, index: usize, element: Element) -> Imported<Cow<'f, [u8]>> {
        let buffer = self.place_of(index, element)?;
        let tensor = self.tensor(index);
        if let Some(sparsity) = &tensor.sparsity {
            return self.densified(index, sparsity).map(Cow::Owned);
        }
        let bytes = self.file.bytes(&buffer)?;
        match element {
            element if element.is_unpacked() => {
                let count = element_count(&tensor.shape);
                self.file.allow(count.saturating_mul(if element.becomes_float32() {
                    4
                } else {
                    1
                }))?;
                Ok(Cow::Owned(unpacked(element, &bytes, count)))
            }
            _ => Ok(bytes),
        }
    }

    /// A constant that was computed at import.
    fn folded_constant(&mut self, index: usize, array: &Array) -> Imported<OperandId> {
        let values = array.integers().unwrap_or_default();
        let spec = self.spec(index)?;
        if values.is_empty() {
            return self.without_elements(spec, &array.shape);
        }
        let bytes = self.stored_as(index, spec.operand_type, values)?;
        Ok(self.builder.constant_bytes(spec, &bytes))
    }

    /// A tensor without elements, which as a constant the HAL could not say: a length of 0 is one that is not known. So it
    /// is computed.
    pub(super) fn without_elements(
        &mut self,
        spec: OperandSpec,
        shape: &[u32],
    ) -> Imported<OperandId> {
        let lengths = shape.iter().map(|length| i32::try_from(*length));
        let lengths = lengths.collect::<Result<Vec<i32>, _>>();
        let lengths = lengths.map_err(|_| Reason::new("a length exceeds 31 bits"))?;
        let lengths = self.integer_vector(&lengths);
        let value = OperandSpec { dimensions: vec![1], ..spec.clone() };
        let Some(size) = element_size(spec.operand_type) else {
            let what = format!("there are no tensors of {} without elements", spec.operand_type);
            return Err(Reason::new(what));
        };
        let value = self.builder.constant_bytes(value, &vec![0; size as usize]);
        let spec = OperandSpec { dimensions: shape.to_vec(), ..spec };
        Ok(self.builder.extended(ExtensionOperation::Fill, [lengths, value], spec))
    }

    /// Integers or truth values of a tensor as an operand of this type stores them.
    pub(super) fn stored_as(
        &self,
        index: usize,
        operand_type: OperandType,
        values: &[i64],
    ) -> Imported<Vec<u8>> {
        self.file.allow(values.len().saturating_mul(8))?;
        Ok(match operand_type {
            TENSOR_INT64 => values.iter().flat_map(|it| it.to_le_bytes()).collect(),
            OperandType::TensorBool8 => values.iter().map(|it| u8::from(*it != 0)).collect(),
            _ => self.narrow(index, values)?.iter().flat_map(|it| it.to_le_bytes()).collect(),
        })
    }

    /// 64-bit integers of a tensor as integers of 32 bits.
    fn narrow(&self, index: usize, values: &[i64]) -> Imported<Vec<i32>> {
        let narrow = |value: &i64| {
            i32::try_from(*value).map_err(|_| {
                let name = self.tensor(index).shown_name();
                Reason::new(format!("{name} holds {value}, beyond 32 bits"))
            })
        };
        values.iter().map(narrow).collect()
    }

    /// The bytes of a constant tensor that is not sparse, as the file has them.
    pub(super) fn stored_bytes(&self, index: usize) -> Imported<Cow<'f, [u8]>> {
        let (_, buffer) = self.constant_place(index)?;
        self.file.bytes(&buffer)
    }

    /// The integers of a constant tensor; `None` if it is computed.
    pub(super) fn integers(&self, index: usize) -> Imported<Option<Vec<i32>>> {
        if let Some(array) = &self.folded[index] {
            let values = array.integers().unwrap_or_default();
            self.file.allow(values.len().saturating_mul(4))?;
            return self.narrow(index, values).map(Some);
        }
        if !self.is_constant(index) {
            return Ok(None);
        }
        let element = self.element(index)?;
        let bytes = match element {
            Element::Int32 | Element::Int64 => self.constant_bytes(index)?,
            _ => {
                let name = self.tensor(index).shown_name();
                return Err(Reason::new(format!("{name} must hold integers")));
            }
        };
        // Operators may share a constant.
        self.file.allow(bytes.len())?;
        if element == Element::Int64 {
            let wide: Vec<i64> =
                bytes.as_chunks().0.iter().map(|chunk| i64::from_le_bytes(*chunk)).collect();
            return self.narrow(index, &wide).map(Some);
        }
        Ok(Some(bytes.as_chunks().0.iter().map(|chunk| i32::from_le_bytes(*chunk)).collect()))
    }

    /// The integers of an input that must be constant.
    pub(super) fn constant_integers(
        &self,
        operator: &Operator<'_>,
        at: usize,
    ) -> Imported<Vec<i32>> {
        let index = self.input_tensor(operator, at)?;
        self.integers(index)?
            .ok_or_else(|| Reason::new(format!("input {at} must be constant for the HAL")))
    }

    /// The single integer of an input that must be constant.
    pub(super) fn constant_integer(&self, operator: &Operator<'_>, at: usize) -> Imported<i32> {
        match *self.constant_integers(operator, at)? {
            [one] => Ok(one),
            ref all => Err(Reason::new(format!("input {at} has {} elements, not one", all.len()))),
        }
    }

    /// The floats of a constant float tensor.
    pub(super) fn constant_floats(&self, index: usize) -> Imported<Vec<f32>> {
        let bytes = self.constant_bytes(index)?;
        self.file.allow(bytes.len())?;
        match self.element(index)? {
            element if element.becomes_float32() => {
                Ok(bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect())
            }
            Element::Float16 => {
                Ok(bytes.as_chunks().0.iter().map(|it| f16::from_le_bytes(*it).to_f32()).collect())
            }
            _ => Err(Reason::new(format!("{} must hold floats", self.tensor(index).shown_name()))),
        }
    }

    /// A constant vector of integers.
    pub(super) fn integer_vector(&mut self, integers: &[i32]) -> OperandId {
        let length = u32::try_from(integers.len()).unwrap_or(u32::MAX);
        self.builder.constant(OperandSpec::tensor_int32([length]), integers)
    }

    /// Says that an operand holds a tensor.
    pub(super) fn set(&mut self, index: usize, operand: OperandId) {
        let name = self.tensor(index).short_name();
        self.builder.name(operand, name);
        self.operands[index] = Some(operand);
    }

    /// An operation whose result is a tensor of the file.
    pub(super) fn emit(
        &mut self,
        operation: OperationType,
        inputs: &[OperandId],
        output: usize,
    ) -> Imported {
        let spec = self.spec(output)?;
        let mut operand = match inputs {
            [input] => self.of_any_rank(operation, *input, spec)?,
            _ => self.builder.operation(operation, inputs, spec),
        };
        let rounds = [O::Cast, O::Tanh, O::Logistic, ExtensionOperation::Atan2.operation_type()];
        if self.element(output)? == Element::Bfloat16 && rounds.contains(&operation) {
            operand = self.rounded_to_bfloat16(operand);
        }
        self.set(output, operand);
        Ok(())
    }

    /// An operation whose result is the operator's only output.
    pub(super) fn emit_for(
        &mut self,
        operator: &Operator<'_>,
        operation: OperationType,
        inputs: &[OperandId],
    ) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        self.emit(operation, inputs, output)
    }

    /// An operation of our extension whose result is the operator's only output.
    pub(super) fn emit_extended(
        &mut self,
        operator: &Operator<'_>,
        operation: ExtensionOperation,
        inputs: &[OperandId],
    ) -> Imported {
        self.emit_for(operator, operation.operation_type(), inputs)
    }

    /// An operation that takes its activation among its inputs, and the activation behind it where
    /// the HAL cannot fuse it.
    pub(super) fn emit_activated(
        &mut self,
        operator: &Operator<'_>,
        operation: OperationType,
        inputs: &[OperandId],
        activation: Activation,
    ) -> Imported {
        let output = self.output_tensor(operator, 0)?;
        if activation == Activation::Tanh {
            if !self.element(output)?.is_float() {
                return Err(Reason::new("the range before a fused TANH is not known"));
            }
            let spec = self.spec(output)?;
            let before = self.builder.operation(operation, inputs, spec);
            return self.emit(OperationType::Tanh, &[before], output);
        }
        let spec = self.spec(output)?;
        let computed = self.computed_as(inputs[0], &spec);
        if computed != spec {
            let result = self.builder.operation(operation, inputs, computed);
            return self.emit_float32(result, output);
        }
        self.emit(operation, inputs, output)
    }

    /// What an operation computes that has this first input: floats for floats, also where they are quantized
    /// afterwards.
    pub(super) fn computed_as(&self, input: OperandId, wanted: &OperandSpec) -> OperandSpec {
        let of_input = self.builder.spec(input).operand_type;
        if of_input == OperandType::TensorFloat32 && wanted.operand_type.quantized_range().is_some()
        {
            return OperandSpec::tensor_float32(wanted.dimensions.clone());
        }
        wanted.clone()
    }

    pub(super) fn activation_operand(&mut self, activation: Activation) -> OperandId {
        self.builder.scalar_i32(activation.fused().code())
    }

    /// A float32 constant that broadcasts, in the float type of a tensor.
    pub(super) fn float_like(&mut self, tensor: usize, value: f32) -> Imported<OperandId> {
        match self.element(tensor)? {
            Element::Float32 => {
                Ok(self.builder.constant(OperandSpec::tensor_float32([1]), &[value]))
            }
            Element::Float16 => {
                Ok(self.builder.constant(OperandSpec::tensor_float16([1]), &[f16::from_f32(value)]))
            }
            _ => Err(Reason::new("only floats have a counterpart")),
        }
    }

    /// The tensor as float32: dequantized if need be.
    pub(super) fn as_float32(&mut self, index: usize) -> Imported<OperandId> {
        if self.is_stored_by_channel(index) {
            return self.of_stored_channels(index);
        }
        if self.has_other_channels(index)? {
            return self.of_other_channels(index);
        }
        let operand = self.operand(index)?;
        let spec = self.builder.spec(operand);
        let operation = match spec.operand_type {
            OperandType::TensorFloat32 => return Ok(operand),
            OperandType::TensorFloat16 => OperationType::Cast,
            _ => OperationType::Dequantize,
        };
        let float = OperandSpec::tensor_float32(spec.dimensions);
        Ok(self.builder.operation(operation, [operand], float))
    }

    /// Gives a tensor the value of a float32 operand: quantized if need be.
    pub(super) fn emit_float32(&mut self, float: OperandId, output: usize) -> Imported {
        let spec = self.spec(output)?;
        let operation = match spec.operand_type {
            OperandType::TensorFloat32 => {
                self.set(output, float);
                return Ok(());
            }
            OperandType::TensorFloat16 => OperationType::Cast,
            OperandType::TensorQuant8Asymm
            | OperandType::TensorQuant8AsymmSigned
            | OperandType::TensorQuant16Symm => OperationType::Quantize,
            other => return Err(Reason::new(format!("the HAL does not quantize to {other}"))),
        };
        let operand = self.builder.operation(operation, [float], spec);
        self.set(output, operand);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_beside_a_0_can_have_any_product() {
        assert_eq!(element_count(&[2, 3]), 6);
        assert_eq!(element_count(&[u32::MAX, u32::MAX, u32::MAX, 0]), 0);
        assert_eq!(element_count(&[u32::MAX; 3]), usize::MAX);
    }
}
