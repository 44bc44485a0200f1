//! Quantized LSTM: int8 with int16 states as QUANTIZED_LSTM, the basic kernel in uint8 as
//! QUANTIZED_16BIT_LSTM, and the basic kernel in float32 as LSTM.

use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use nnhal_hal::{OperandId, OperandSpec, OperandType, OperationType as O};

/// What an unrolled step costs of the import's allowance: operations and operands.
const BYTES_OF_A_STEP: usize = 4096;

/// The scale of what goes into a gate, where the file does not give one.
const SCALE_OF_GATES: f32 = 1.0 / 4096.0;

/// Whether an LSTM is quantized.
pub(super) fn is_quantized_lstm(
    importer: &GraphImporter<'_, '_>,
    operator: &Operator<'_>,
) -> Imported<bool> {
    let input = importer.input_tensor(operator, 0)?;
    Ok(importer.element(input)? == Element::Int8)
}

impl GraphImporter<'_, '_> {
    /// An int8 LSTM; over a sequence it is unrolled, as the HAL has the single step only.
    pub(super) fn quantized_lstm(
        &mut self,
        operator: &Operator<'_>,
        time_major: Option<bool>,
        clips: [f32; 2],
    ) -> Imported {
        let [gates @ .., hidden_scale, hidden_zero_point] = self.intermediates(operator)?;
        let input = self.input_tensor(operator, 0)?;
        let input_scale = self.spec(input)?.scale;
        let mut weights = Vec::new();
        for at in 1..=8 {
            weights.push(self.symmetric_weights(operator, at)?);
        }
        for at in 9..=11 {
            weights.push(self.optional(operator, at, OperandType::TensorQuant16Symm, 1)?);
        }
        for at in 12..=15 {
            // The bias of a gate is added to what its input weights give.
            let gate = operator.inputs.get(at - 11).copied().flatten();
            let gate = gate.map(|gate| self.spec(gate)).transpose()?;
            let scale = gate.map_or(0.0, |gate| input_scale * gate.scale);
            weights.push(self.quantized_bias(operator, at, scale)?);
        }
        weights.push(self.symmetric_weights(operator, 16)?);
        let projection = operator.inputs.get(16).copied().flatten();
        let projection = projection.map(|tensor| self.spec(tensor)).transpose()?;
        let scale = projection.map_or(0.0, |projection| hidden_scale * projection.scale);
        weights.push(self.quantized_bias(operator, 17, scale)?);
        let mut tail = Vec::new();
        for at in 20..=23 {
            tail.push(self.optional(operator, at, OperandType::TensorQuant16Symm, 1)?);
        }
        for number in clips.into_iter().chain(gates) {
            tail.push(self.builder.scalar_f32(number));
        }
        #[allow(clippy::cast_possible_truncation)] // It was made of an i32 of few bits.
        let zero_point = hidden_zero_point as i32;
        tail.push(self.builder.scalar_i32(zero_point));
        tail.push(self.builder.scalar_f32(hidden_scale));

        let steps = match time_major {
            Some(time_major) => self.steps(operator, time_major)?,
            None => vec![self.operand(input)?],
        };
        let output = self.output_tensor(operator, 0)?;
        let (of_hidden, of_cell) =
            (self.spec_of_state(operator, 18)?, self.spec_of_state(operator, 19)?);
        let of_output =
            OperandSpec { dimensions: of_hidden.dimensions.clone(), ..self.spec(output)? };
        let (mut hidden, mut cell) = (self.input(operator, 18)?, self.input(operator, 19)?);
        let mut results = Vec::with_capacity(steps.len());
        for step in steps {
            self.file.allow(BYTES_OF_A_STEP)?;
            let mut inputs = vec![step];
            inputs.extend(&weights);
            inputs.extend([hidden, cell]);
            inputs.extend(&tail);
            let specs = [of_hidden.clone(), of_cell.clone(), of_output.clone()];
            let result;
            [hidden, cell, result] =
                self.builder.operation_with_outputs(O::QuantizedLstm, inputs, specs);
            results.push(result);
        }
        match time_major {
            Some(time_major) => {
                let spec = self.spec(output)?;
                let joined = self.join_steps(&results, time_major, spec)?;
                self.set(output, joined);
            }
            None => self.set(output, results[0]),
        }
        self.set_state(operator, 18, hidden);
        self.set_state(operator, 19, cell);
        Ok(())
    }

    /// The steps of a sequence, each a matrix.
    fn steps(&mut self, operator: &Operator<'_>, time_major: bool) -> Imported<Vec<OperandId>> {
        let tensor = self.input_tensor(operator, 0)?;
        let sequence = self.operand(tensor)?;
        let [first, second, width] = *self.shape(tensor)? else {
            return Err(Reason::new("its input has not the rank of a sequence"));
        };
        let (batch, count) = if time_major { (second, first) } else { (first, second) };
        self.file.allow((count as usize).saturating_mul(BYTES_OF_A_STEP))?;
        let signed = |length: u32| i32::try_from(length).unwrap_or(i32::MAX);
        let spec = self.builder.spec(sequence);
        let of_step = |dimensions: Vec<u32>| OperandSpec { dimensions, ..spec.clone() };
        let (cut, sizes) = if time_major {
            (vec![1, batch, width], [1, signed(batch), signed(width)])
        } else {
            (vec![batch, 1, width], [signed(batch), 1, signed(width)])
        };
        let sizes = self.integer_vector(&sizes);
        let mut steps = Vec::new();
        for step in 0..count {
            let at = signed(step);
            let begins = self.integer_vector(&if time_major { [at, 0, 0] } else { [0, at, 0] });
            let inputs = [sequence, begins, sizes];
            let piece = self.builder.operation(O::Slice, inputs, of_step(cut.clone()));
            steps.push(self.reshape(piece, of_step(vec![batch, width]))?);
        }
        Ok(steps)
    }

    /// The opposite of [`Self::steps`].
    fn join_steps(
        &mut self,
        steps: &[OperandId],
        time_major: bool,
        spec: OperandSpec,
    ) -> Imported<OperandId> {
        let mut inputs = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            let of_step = self.builder.spec(*step);
            let [batch, width] = *of_step.dimensions else {
                return Err(Reason::new("its steps are no matrices"));
            };
            let dimensions = if time_major { vec![1, batch, width] } else { vec![batch, 1, width] };
            inputs.push(self.reshape(*step, OperandSpec { dimensions, ..of_step })?);
        }
        inputs.push(self.builder.scalar_i32(i32::from(!time_major)));
        Ok(self.builder.operation(O::Concatenation, inputs, spec))
    }

    /// The scales of what goes into the four gates, and scale and zero point of the hidden state.
    fn intermediates(&self, operator: &Operator<'_>) -> Imported<[f32; 6]> {
        let listed = operator.table.intermediates()?;
        let count = listed.map_or(0, |listed| listed.len());
        if count != 5 {
            return Err(Reason::new(format!("it has {count} intermediate tensors, not 5")));
        }
        let mut numbers = [SCALE_OF_GATES; 6];
        for (at, index) in listed.into_iter().flatten().enumerate() {
            let index = usize::try_from(index).ok();
            let tensor = index.and_then(|index| self.graph.tensors.get(index));
            let tensor = tensor.ok_or_else(|| Reason::new("an intermediate tensor is missing"))?;
            let quantization = tensor.quantization.as_ref();
            let scale = quantization.and_then(|quantization| quantization.scales.first());
            if let Some(scale) = scale.filter(|scale| **scale > 0.0) {
                numbers[at] = *scale;
            }
            if at == 4 {
                let points = quantization.map(|quantization| &*quantization.zero_points);
                let point = points.and_then(|points| points.first()).copied().unwrap_or(0);
                let point = i16::try_from(point)
                    .map_err(|_| Reason::new("the zero point of its hidden state is too large"))?;
                numbers[5] = f32::from(point);
            }
        }
        Ok(numbers)
    }

    /// An input of this type, or its absence.
    fn optional(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
        operand_type: OperandType,
        rank: usize,
    ) -> Imported<OperandId> {
        let Some(tensor) = operator.inputs.get(at).copied().flatten() else {
            return Ok(self.omitted_quantized(operand_type, rank));
        };
        let operand = self.operand(tensor)?;
        let found = self.builder.spec(operand).operand_type;
        if found == operand_type {
            Ok(operand)
        } else {
            Err(Reason::new(format!("input {at} is {found}, and the HAL wants {operand_type}")))
        }
    }

    fn omitted_quantized(&mut self, operand_type: OperandType, rank: usize) -> OperandId {
        let scale = if operand_type == OperandType::TensorInt32 { 0.0 } else { 1.0 };
        let spec = OperandSpec::new(operand_type, vec![0; rank]).quantized(scale, 0);
        self.builder.omitted(spec)
    }

    fn symmetric_weights(&mut self, operator: &Operator<'_>, at: usize) -> Imported<OperandId> {
        let Some(tensor) = operator.inputs.get(at).copied().flatten() else {
            return Ok(self.omitted_quantized(OperandType::TensorQuant8Symm, 2));
        };
        let spec = self.spec(tensor)?;
        if spec.operand_type != OperandType::TensorQuant8AsymmSigned || spec.zero_point != 0 {
            return Err(Reason::new(format!("the weights of input {at} are not symmetric int8")));
        }
        self.constant_with(
            tensor,
            OperandSpec { operand_type: OperandType::TensorQuant8Symm, ..spec },
        )
    }

    fn quantized_bias(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
        scale: f32,
    ) -> Imported<OperandId> {
        let Some(tensor) = operator.inputs.get(at).copied().flatten() else {
            return Ok(self.omitted_quantized(OperandType::TensorInt32, 1));
        };
        if self.element(tensor)? != Element::Int32 {
            return Err(Reason::new(format!("the bias of input {at} is not int32")));
        }
        let spec = self.spec(tensor)?;
        self.constant_with(tensor, spec.quantized(scale, 0))
    }

    /// The basic kernel: one matrix holds the weights of all gates (input, cell, forget, output, a
    /// block of rows each) for the input and the state (a block of columns each).
    pub(super) fn basic_lstm(&mut self, operator: &Operator<'_>) -> Imported {
        let at = |at| self.input_tensor(operator, at);
        let (input, hidden, weights, bias, state) = (at(0)?, at(1)?, at(2)?, at(3)?, at(4)?);
        let [rows, columns] = *self.shape(weights)? else {
            return Err(Reason::new("its weights are not a matrix"));
        };
        let Some(&[_, width]) = self.shape(input)?.as_chunks::<2>().0.first() else {
            return Err(Reason::new("its input is not a matrix"));
        };
        let units = rows / 4;
        if units * 4 != rows || columns.checked_sub(units) != Some(width) {
            return Err(Reason::new("its weights do not fit its input and state"));
        }
        let is_quantized = match self.element(input)? {
            Element::Float32 => false,
            Element::Uint8 => true,
            other => return Err(Reason::new(format!("the HAL has no {other:?} form of it"))),
        };
        let mut spec = self.spec(weights)?;
        let element = self.element(weights)?.bytes();
        let bytes = self.constant_bytes(weights)?;
        self.file.allow(bytes.len())?;
        let mut parts = Vec::new();
        // The matrix meets the input, then the output before. So do the HAL's two matrices of QUANTIZED_16BIT_LSTM, but
        // with the recurrent weights on the left: see its documentation.
        let columns_of_input = if is_quantized { (units, width) } else { (0, width) };
        let columns_of_state = if is_quantized { (0, units) } else { (width, units) };
        for (skip, length) in [columns_of_input, columns_of_state] {
            for gate in GATES {
                let (skip, length) = (skip as usize * element, length as usize * element);
                let of_gate = bytes
                    .chunks_exact(columns as usize * element)
                    .skip(gate * units as usize)
                    .take(units as usize);
                let part: Vec<u8> =
                    of_gate.flat_map(|row| &row[skip..skip + length]).copied().collect();
                spec.dimensions = vec![units, u32::try_from(length / element).unwrap_or(0)];
                parts.push(self.builder.constant_bytes(spec.clone(), &part));
            }
        }
        let biases = self.biases_of_gates(bias, units, is_quantized, input, spec.scale)?;
        let output = self.output_tensor(operator, 0)?;
        let new_state = self.output_tensor(operator, 1)?;
        let (of_output, of_state) = (self.spec(output)?, self.spec(new_state)?);
        let (hidden, state) = (self.operand(hidden)?, self.operand(state)?);
        let mut inputs = vec![self.operand(input)?];
        inputs.extend(&parts);
        let (state, result) = if is_quantized {
            inputs.extend(&biases);
            inputs.extend([state, hidden]);
            let specs = [of_state, of_output];
            let [state, result] =
                self.builder.operation_with_outputs(O::Quantized16bitLstm, inputs, specs);
            (state, result)
        } else {
            let omitted = |this: &mut Self, rank: usize| {
                this.builder.omitted(OperandSpec::tensor_float32(vec![0; rank]))
            };
            for _ in 0..3 {
                inputs.push(omitted(self, 1));
            }
            inputs.extend(&biases);
            inputs.extend([omitted(self, 2), omitted(self, 1), hidden, state]);
            // The basic kernel's activation is always TANH.
            inputs.push(self.builder.scalar_i32(4));
            inputs.extend([0.0, 0.0].map(|clip| self.builder.scalar_f32(clip)));
            let batch = of_state.dimensions.first().copied().unwrap_or(0);
            let scratch = OperandSpec::tensor_float32([batch, rows]);
            let specs = [scratch, of_output.clone(), of_state, of_output];
            let [_, _, state, result] = self.builder.operation_with_outputs(O::Lstm, inputs, specs);
            (state, result)
        };
        self.set(output, result);
        self.set(new_state, state);
        Ok(())
    }

    fn biases_of_gates(
        &mut self,
        bias: usize,
        units: u32,
        is_quantized: bool,
        input: usize,
        scale_of_weights: f32,
    ) -> Imported<Vec<OperandId>> {
        let bytes = self.constant_bytes(bias)?;
        if bytes.len() != units as usize * 16 {
            return Err(Reason::new("its bias does not fit its weights"));
        }
        let spec = if is_quantized {
            let scale = self.spec(input)?.scale * scale_of_weights;
            OperandSpec::tensor_int32([units]).quantized(scale, 0)
        } else {
            OperandSpec::tensor_float32([units])
        };
        let found = self.spec(bias)?.operand_type;
        if found != spec.operand_type {
            return Err(Reason::new(format!("its bias is {found}")));
        }
        let parts = GATES.map(|gate| {
            let length = units as usize * 4;
            self.builder.constant_bytes(spec.clone(), &bytes[gate * length..(gate + 1) * length])
        });
        Ok(parts.to_vec())
    }
}

/// The blocks of the basic kernel in the order of the HAL: input, forget, cell, output.
const GATES: [usize; 4] = [0, 2, 1, 3];
