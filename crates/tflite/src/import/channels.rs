//! Integers with a scale for each channel where the HAL has no such type: tensors that are computed, that have zero
//! points, or no sign.

use super::operand::element_count;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{BuiltinOperator as B, TensorType};
use nnhal_hal::{OperandId, OperandSpec, OperandType, OperationType as O};

impl GraphImporter<'_, '_> {
    /// Whether a tensor is computed, or given, with a scale for each channel. The HAL has those for weights that are
    /// constant or given, so its operand holds the integers as they are stored: with scale 1 and zero point 0.
    pub(super) fn is_stored_by_channel(&self, index: usize) -> bool {
        let tensor = self.tensor(index);
        let Some(quantization) = &tensor.quantization else { return false };
        let is_one_of = |types: &[TensorType]| types.iter().any(|it| *it as i8 == tensor.type_code);
        let has_a_type = self.is_input[index]
            && is_one_of(&[TensorType::Int8])
            && quantization.zero_points.iter().all(|zero_point| *zero_point == 0);
        let is_quantized = is_one_of(&[TensorType::Int8, TensorType::Uint8, TensorType::Int16]);
        is_quantized && quantization.scales.len() > 1 && !self.is_constant(index) && !has_a_type
    }

    /// Whether an operator that moves elements has a constant with a scale for each channel, and its result is none of the
    /// graph's. The HAL has such constants as weights alone, and moves none.
    pub(super) fn is_constant_by_channel(&self, input: usize, output: usize) -> bool {
        let (from, to) = (self.tensor(input), self.tensor(output));
        let scales = from.quantization.as_ref().map_or(0, |it| it.scales.len());
        scales > 1
            && self.is_constant(input)
            && from.sparsity.is_none()
            && from.type_code == to.type_code
            && !self.is_output[output]
    }

    /// Refuses an operator that would take integers stored by channel for others: LiteRT has their scales in these
    /// operators alone.
    pub(super) fn check_channels(&self, builtin: B, operator: &Operator<'_>) -> Imported {
        let is_moved = matches!(builtin, B::Reshape | B::ExpandDims | B::Squeeze | B::Transpose);
        let has_weights = matches!(
            builtin,
            B::Conv2d | B::DepthwiseConv2d | B::FullyConnected | B::TransposeConv
        );
        let inputs = operator.inputs.iter().enumerate().filter_map(|(at, it)| Some((at, (*it)?)));
        let is_taken = |at| is_moved || builtin == B::Dequantize || has_weights && at == 1;
        let wrong_input = inputs.filter(|(at, _)| !is_taken(*at)).map(|(_, tensor)| tensor);
        let is_given = is_moved || builtin == B::Quantize;
        let wrong_output = operator.outputs.iter().copied().filter(|_| !is_given);
        let wrong = wrong_input.chain(wrong_output).find(|it| self.is_stored_by_channel(*it));
        wrong.map_or(Ok(()), |tensor| {
            let name = self.tensor(tensor).shown_name();
            Err(Reason::new(format!(
                "{name} is computed with a scale for each channel, which this operator does not know"
            )))
        })
    }

    /// Scales and zero points by channel as constants that broadcast to their tensor; no zero points if all are 0.
    fn channels(&mut self, index: usize) -> Imported<(OperandId, Option<OperandId>)> {
        let tensor = self.tensor(index);
        let name = tensor.shown_name();
        let Some(quantization) = &tensor.quantization else {
            return Err(Reason::new(format!("{name} has no scales")));
        };
        let axis = usize::try_from(quantization.dimension).unwrap_or(usize::MAX);
        let (lengths, count) = (self.lengths(index), quantization.scales.len());
        if lengths.get(axis).map(|length| *length as usize) != Some(count) {
            return Err(Reason::new(format!("{name} has not as many scales as channels")));
        }
        let mut dimensions = vec![1; lengths.len() - axis];
        dimensions[0] = lengths[axis];
        self.file.allow(count.saturating_mul(2 * size_of::<f32>()))?;
        let spec = OperandSpec::tensor_float32(dimensions);
        let scales = self.builder.constant(spec.clone(), &quantization.scales);
        if quantization.zero_points.iter().all(|zero_point| *zero_point == 0) {
            return Ok((scales, None));
        }
        #[allow(clippy::cast_precision_loss)] // Those of 16 bits and less are exact.
        let zero_point = |at| match quantization.zero_points[..] {
            [one] => one as f32,
            ref all => all.get(at).copied().unwrap_or(0) as f32,
        };
        let zero_points: Vec<f32> = (0..count).map(zero_point).collect();
        Ok((scales, Some(self.builder.constant(spec, &zero_points))))
    }

    /// Gives a tensor that is stored by channel the value of floats.
    pub(super) fn store_by_channel(&mut self, float: OperandId, output: usize) -> Imported {
        let (scales, zero_points) = self.channels(output)?;
        let spec = self.spec(output)?;
        let floats = OperandSpec::tensor_float32(spec.dimensions.clone());
        let none = self.builder.scalar_i32(0);
        let mut steps = self.builder.operation(O::Div, [float, scales, none], floats.clone());
        if let Some(zero_points) = zero_points {
            // Rounded before the zero point is added: of halves the one away from 0 is meant, not from the zero point.
            let wide = OperandSpec::new(OperandType::TensorQuant16Symm, spec.dimensions.clone());
            let whole = self.builder.operation(O::Quantize, [steps], wide.quantized(1.0, 0));
            let whole = self.builder.operation(O::Dequantize, [whole], floats.clone());
            steps = self.builder.operation(O::Add, [whole, zero_points, none], floats);
        }
        let stored = self.builder.operation(O::Quantize, [steps], spec);
        self.set(output, stored);
        Ok(())
    }

    /// The real numbers of a tensor that is stored by channel.
    pub(super) fn of_stored_channels(&mut self, index: usize) -> Imported<OperandId> {
        let stored = self.operand(index)?;
        let (scales, zero_points) = self.channels(index)?;
        let floats = OperandSpec::tensor_float32(self.builder.spec(stored).dimensions);
        let none = self.builder.scalar_i32(0);
        let mut steps = self.builder.operation(O::Dequantize, [stored], floats.clone());
        if let Some(zero_points) = zero_points {
            steps = self.builder.operation(O::Sub, [steps, zero_points, none], floats.clone());
        }
        Ok(self.builder.operation(O::Mul, [steps, scales, none], floats))
    }

    /// Whether the integers of a tensor have a scale for each channel and the HAL has no such type: they are computed,
    /// have zero points, or no sign.
    pub(super) fn has_other_channels(&self, index: usize) -> Imported<bool> {
        if self.is_stored_by_channel(index) {
            return Ok(true);
        }
        let element = self.element(index)?;
        let quantization = self.tensor(index).quantization.as_ref();
        let is_by_channel = element.is_quantized() && element != Element::Int16;
        Ok(is_by_channel
            && self.is_constant(index)
            && quantization.is_some_and(|it| {
                let has_zero_points = it.zero_points.iter().any(|zero_point| *zero_point != 0);
                it.scales.len() > 1 && (has_zero_points || !element.becomes_int8())
            }))
    }

    /// The real numbers of such a constant.
    pub(super) fn of_other_channels(&mut self, index: usize) -> Imported<OperandId> {
        let wrong =
            |what: &str| Reason::new(format!("{}: {what}", self.tensor(index).shown_name()));
        let Some(quantization) = &self.tensor(index).quantization else {
            return Err(wrong("it has no scales"));
        };
        let dimensions = self.dimensions(index, false);
        let axis = usize::try_from(quantization.dimension).unwrap_or(usize::MAX);
        let count = quantization.scales.len();
        if dimensions.get(axis).map(|length| *length as usize) != Some(count) {
            return Err(wrong("it has not as many scales as channels"));
        }
        let bytes = self.constant_bytes(index)?;
        self.file.allow(bytes.len().saturating_mul(size_of::<f32>()))?;
        let inner = element_count(&dimensions[axis + 1..]);
        let is_signed = self.element(index)?.becomes_int8();
        let real = |(at, byte): (usize, &u8)| {
            let channel = at / inner.max(1) % count;
            let stored = if is_signed { i64::from(byte.cast_signed()) } else { i64::from(*byte) };
            let zero_point = quantization.zero_points.get(channel).copied().unwrap_or(0);
            #[allow(clippy::cast_precision_loss)] // Zero points are those of 8 bits, or wrong.
            let distance = stored.saturating_sub(zero_point) as f32;
            quantization.scales[channel] * distance
        };
        let reals: Vec<f32> = bytes.iter().enumerate().map(real).collect();
        Ok(self.builder.constant(OperandSpec::tensor_float32(dimensions), &reals))
    }
}
