//! Recurrent networks: LSTM, RNN, SVDF and their sequences; LSH_PROJECTION, HASHTABLE_LOOKUP.
//!
//! Weights beside float activations become float32. States are variable tensors in the file: their
//! new value becomes an output of the model (see [`crate::State`]).

use super::quantized_lstm::is_quantized_lstm;
use super::tensor::Element;
use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::{
    ActivationFunctionType, BuiltinOperator as B, BuiltinOptionsRef, LshProjectionType,
    LstmKernelType,
};
use nnhal_hal::{OperandId, OperandSpec, OperationType as O};

/// The settings that all LSTM operators share.
struct LstmSettings {
    activation: ActivationFunctionType,
    cell_clip: f32,
    projection_clip: f32,
}

/// The weights of an RNN cell, in float32.
#[derive(Clone, Copy)]
struct Cell {
    weights: OperandId,
    recurrent: OperandId,
    bias: OperandId,
}

impl GraphImporter<'_, '_> {
    pub(super) fn recurrent(&mut self, builtin: B, operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Lstm => self.lstm(operator),
            B::UnidirectionalSequenceLstm => self.unidirectional_sequence_lstm(operator),
            B::BidirectionalSequenceLstm => self.bidirectional_sequence_lstm(operator),
            B::Rnn => self.rnn(operator),
            B::UnidirectionalSequenceRnn => self.unidirectional_sequence_rnn(operator),
            B::BidirectionalSequenceRnn => self.bidirectional_sequence_rnn(operator),
            B::Svdf => self.svdf(operator),
            B::LshProjection => self.lsh_projection(operator),
            B::HashtableLookup => self.hashtable_lookup(operator),
            _ => return None,
        })
    }

    /// An optional input as float32.
    fn optional_float(
        &mut self,
        operator: &Operator<'_>,
        at: usize,
        rank: usize,
    ) -> Imported<OperandId> {
        match operator.inputs.get(at).copied().flatten() {
            Some(tensor) => self.as_float32(tensor),
            None => Ok(self.builder.omitted(OperandSpec::tensor_float32(vec![0; rank]))),
        }
    }

    fn required_float(&mut self, operator: &Operator<'_>, at: usize) -> Imported<OperandId> {
        let tensor = self.input_tensor(operator, at)?;
        self.as_float32(tensor)
    }

    /// An input of a recurrent layer, which must be float32 itself.
    fn float_input(&mut self, operator: &Operator<'_>) -> Imported<OperandId> {
        let tensor = self.input_tensor(operator, 0)?;
        match self.element(tensor)? {
            Element::Float32 => self.operand(tensor),
            other => Err(Reason::new(format!("the HAL has no {other:?} form of it"))),
        }
    }

    /// Says what a state is after the operator. What is no variable tensor keeps its value.
    pub(super) fn set_state(&mut self, operator: &Operator<'_>, at: usize, new: OperandId) {
        let Some(tensor) = operator.inputs.get(at).copied().flatten() else { return };
        if self.tensor(tensor).is_variable
            && let Some(state) = self.state_of[tensor]
        {
            self.states[state].1 = Some(new);
            self.operands[tensor] = Some(new);
        }
    }

    /// Whether any of these inputs is a state that must be given out.
    fn has_states(&self, operator: &Operator<'_>, at: &[usize]) -> bool {
        at.iter().any(|at| {
            let tensor = operator.inputs.get(*at).copied().flatten();
            tensor.is_some_and(|tensor| self.state_of[tensor].is_some())
        })
    }

    /// What a state will look like: as its tensor does.
    pub(super) fn spec_of_state(
        &self,
        operator: &Operator<'_>,
        at: usize,
    ) -> Imported<OperandSpec> {
        let tensor = self.input_tensor(operator, at)?;
        self.spec(tensor)
    }

    /// Inputs 0 to 19 of an LSTM: the same in both worlds.
    fn lstm_inputs(&mut self, operator: &Operator<'_>) -> Imported<Vec<OperandId>> {
        let mut inputs = vec![self.float_input(operator)?];
        for at in 1..=17 {
            let rank = if (9..=15).contains(&at) || at == 17 { 1 } else { 2 };
            let is_optional = matches!(at, 1 | 5 | 9..=12 | 16 | 17);
            inputs.push(if is_optional {
                self.optional_float(operator, at, rank)?
            } else {
                self.required_float(operator, at)?
            });
        }
        inputs.push(self.required_float(operator, 18)?);
        inputs.push(self.required_float(operator, 19)?);
        Ok(inputs)
    }

    fn push_settings(&mut self, inputs: &mut Vec<OperandId>, settings: &LstmSettings) -> Imported {
        let code = match settings.activation {
            ActivationFunctionType::ReluN1To1 | ActivationFunctionType::SignBit => {
                return Err(Reason::new("the HAL's LSTM has no such activation"));
            }
            known => known as i32,
        };
        inputs.push(self.builder.scalar_i32(code));
        inputs.push(self.builder.scalar_f32(settings.cell_clip));
        inputs.push(self.builder.scalar_f32(settings.projection_clip));
        Ok(())
    }

    /// The four weights of layer normalization, from input `first` on.
    fn push_layer_norm(
        &mut self,
        inputs: &mut Vec<OperandId>,
        operator: &Operator<'_>,
        first: usize,
    ) -> Imported {
        for at in first..first + 4 {
            inputs.push(self.optional_float(operator, at, 1)?);
        }
        Ok(())
    }

    fn lstm(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, LstmOptions);
        let settings = LstmSettings {
            activation: options.fused_activation_function()?,
            cell_clip: options.cell_clip()?,
            projection_clip: options.proj_clip()?,
        };
        if options.kernel_type()? == LstmKernelType::Basic {
            return self.basic_lstm(operator);
        }
        if is_quantized_lstm(self, operator)? {
            let clips = [settings.cell_clip, settings.projection_clip];
            return self.quantized_lstm(operator, None, clips);
        }
        let mut inputs = self.lstm_inputs(operator)?;
        self.push_settings(&mut inputs, &settings)?;
        self.push_layer_norm(&mut inputs, operator, 20)?;
        let output = self.output_tensor(operator, 0)?;
        let (hidden, cell) = (self.spec_of_state(operator, 18)?, self.spec_of_state(operator, 19)?);
        let gates = if operator.inputs.get(1).copied().flatten().is_some() { 4 } else { 3 };
        let [batch, units] = *cell.dimensions else {
            return Err(Reason::new("its cell state is no matrix"));
        };
        let width = units.checked_mul(gates);
        let width = width.ok_or_else(|| Reason::new("its cell state is too large"))?;
        let scratch = OperandSpec::tensor_float32([batch, width]);
        let specs = [scratch, hidden, cell, self.spec(output)?];
        let [_, hidden, cell, result] = self.builder.operation_with_outputs(O::Lstm, inputs, specs);
        self.set_state(operator, 18, hidden);
        self.set_state(operator, 19, cell);
        self.set(output, result);
        Ok(())
    }

    fn unidirectional_sequence_lstm(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, UnidirectionalSequenceLstmOptions);
        if options.diagonal_recurrent_tensors()? {
            return Err(Reason::new("the HAL has no diagonal recurrent weights"));
        }
        let settings = LstmSettings {
            activation: options.fused_activation_function()?,
            cell_clip: options.cell_clip()?,
            projection_clip: options.proj_clip()?,
        };
        if is_quantized_lstm(self, operator)? {
            let clips = [settings.cell_clip, settings.projection_clip];
            return self.quantized_lstm(operator, Some(options.time_major()?), clips);
        }
        let mut inputs = self.lstm_inputs(operator)?;
        self.push_settings(&mut inputs, &settings)?;
        inputs.push(self.builder.scalar_bool(options.time_major()?));
        self.push_layer_norm(&mut inputs, operator, 20)?;
        self.emit_sequence(operator, O::UnidirectionalSequenceLstm, &inputs, 1, &[18, 19])
    }

    fn bidirectional_sequence_lstm(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BidirectionalSequenceLstmOptions);
        let settings = LstmSettings {
            activation: options.fused_activation_function()?,
            cell_clip: options.cell_clip()?,
            projection_clip: options.proj_clip()?,
        };
        let mut inputs = vec![self.float_input(operator)?];
        // Forwards 1 to 17, backwards 18 to 34, each as in LSTM.
        for at in 1..=34 {
            let of_one = (at - 1) % 17 + 1;
            let rank = if (9..=15).contains(&of_one) || of_one == 17 { 1 } else { 2 };
            inputs.push(if matches!(of_one, 1 | 5 | 9..=12 | 16 | 17) {
                self.optional_float(operator, at, rank)?
            } else {
                self.required_float(operator, at)?
            });
        }
        for at in 35..=38 {
            inputs.push(self.required_float(operator, at)?);
        }
        inputs.push(self.optional_float(operator, 39, 3)?);
        for at in 40..=47 {
            inputs.push(self.optional_float(operator, at, 2)?);
        }
        self.push_settings(&mut inputs, &settings)?;
        let merged = options.merge_outputs()?;
        inputs.push(self.builder.scalar_bool(merged));
        inputs.push(self.builder.scalar_bool(options.time_major()?));
        // The format has no layer normalization here.
        for _ in 0..8 {
            inputs.push(self.builder.omitted(OperandSpec::tensor_float32([0])));
        }
        let results = if merged { 1 } else { 2 };
        let operation = O::BidirectionalSequenceLstm;
        self.emit_sequence(operator, operation, &inputs, results, &[35, 36, 37, 38])
    }

    /// An operation over a sequence, which gives its last states as well if the file keeps them.
    fn emit_sequence(
        &mut self,
        operator: &Operator<'_>,
        operation: O,
        inputs: &[OperandId],
        results: usize,
        states: &[usize],
    ) -> Imported {
        let mut specs = Vec::new();
        for at in 0..results {
            let output = self.output_tensor(operator, at)?;
            specs.push(self.spec(output)?);
        }
        let gives_states = self.has_states(operator, states);
        if gives_states {
            for at in states {
                specs.push(self.spec_of_state(operator, *at)?);
            }
        }
        let outputs: Vec<OperandId> =
            specs.into_iter().map(|spec| self.builder.temporary(spec)).collect();
        self.builder.operation_into(operation, inputs, &outputs);
        for (at, output) in outputs.iter().take(results).enumerate() {
            let tensor = self.output_tensor(operator, at)?;
            self.set(tensor, *output);
        }
        for (at, output) in states.iter().zip(outputs.iter().skip(results)) {
            self.set_state(operator, *at, *output);
        }
        Ok(())
    }

    fn cell(&mut self, operator: &Operator<'_>, first: usize) -> Imported<Cell> {
        let weights = self.input_tensor(operator, first)?;
        Ok(Cell {
            weights: self.as_float32(weights)?,
            recurrent: self.required_float(operator, first + 1)?,
            bias: self.required_float(operator, first + 2)?,
        })
    }

    /// The activation of a cell without gates.
    fn cell_activation(&mut self, function: ActivationFunctionType) -> Imported<OperandId> {
        match function {
            ActivationFunctionType::SignBit => {
                Err(Reason::new("the HAL has no activation SIGN_BIT"))
            }
            known => Ok(self.builder.scalar_i32(known as i32)),
        }
    }

    fn rnn(&mut self, operator: &Operator<'_>) -> Imported {
        let function = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::RnnOptions(options)) => options.fused_activation_function()?,
            _ => ActivationFunctionType::None,
        };
        let input = self.float_input(operator)?;
        let cell = self.cell(operator, 1)?;
        let state = self.required_float(operator, 4)?;
        let output = self.output_tensor(operator, 0)?;
        let activation = self.cell_activation(function)?;
        let inputs = [input, cell.weights, cell.recurrent, cell.bias, state, activation];
        let specs = [self.spec_of_state(operator, 4)?, self.spec(output)?];
        let [state, result] = self.builder.operation_with_outputs(O::Rnn, inputs, specs);
        self.set_state(operator, 4, state);
        self.set(output, result);
        Ok(())
    }

    fn unidirectional_sequence_rnn(&mut self, operator: &Operator<'_>) -> Imported {
        let (time_major, function) = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::SequenceRnnOptions(options)) => {
                (options.time_major()?, options.fused_activation_function()?)
            }
            _ => return Err(Reason::new("it has no options")),
        };
        let input = self.float_input(operator)?;
        let cell = self.cell(operator, 1)?;
        let state = self.required_float(operator, 4)?;
        let activation = self.cell_activation(function)?;
        let major = self.builder.scalar_i32(i32::from(time_major));
        let inputs = [input, cell.weights, cell.recurrent, cell.bias, state, activation, major];
        self.emit_sequence(operator, O::UnidirectionalSequenceRnn, &inputs, 1, &[4])
    }

    fn bidirectional_sequence_rnn(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, BidirectionalSequenceRnnOptions);
        let (time_major, merged) = (options.time_major()?, options.merge_outputs()?);
        let function = options.fused_activation_function()?;
        let input = self.float_input(operator)?;
        let cells = [self.cell(operator, 1)?, self.cell(operator, 5)?];
        let states = [self.required_float(operator, 4)?, self.required_float(operator, 8)?];
        let activation = self.cell_activation(function)?;
        let [forwards, backwards] = cells;
        let inputs = [
            input,
            forwards.weights,
            forwards.recurrent,
            forwards.bias,
            states[0],
            backwards.weights,
            backwards.recurrent,
            backwards.bias,
            states[1],
            self.optional_float(operator, 9, 3)?,
            self.optional_float(operator, 10, 2)?,
            self.optional_float(operator, 11, 2)?,
            activation,
            self.builder.scalar_bool(time_major),
            self.builder.scalar_bool(merged),
        ];
        let results = if merged { 1 } else { 2 };
        self.emit_sequence(operator, O::BidirectionalSequenceRnn, &inputs, results, &[4, 8])
    }

    fn svdf(&mut self, operator: &Operator<'_>) -> Imported {
        let options = options!(operator, SvdfOptions);
        let function = options.fused_activation_function()?;
        let (input, output) = (self.input_tensor(operator, 0)?, self.output_tensor(operator, 0)?);
        let (time, state) = (self.input_tensor(operator, 2)?, self.input_tensor(operator, 4)?);
        // Integers are computed as floats, but for the state, which is kept in its 16 bits.
        let is_integer = self.element(input)? == Element::Int8;
        let bias = match operator.inputs.get(3).copied().flatten() {
            Some(bias) if is_integer => {
                let units = self.shape(output)?.last().copied().unwrap_or(0);
                self.wide_bias(state, time, bias, units)?
            }
            _ => self.optional_float(operator, 3, 1)?,
        };
        // A layer of integers has the activation that its output's range makes.
        let function = if is_integer { ActivationFunctionType::None } else { function };
        let activation = self.cell_activation(function)?;
        let inputs = [
            if is_integer { self.as_float32(input)? } else { self.float_input(operator)? },
            self.required_float(operator, 1)?,
            self.required_float(operator, 2)?,
            bias,
            self.required_float(operator, 4)?,
            self.builder.scalar_i32(options.rank()?),
            activation,
        ];
        let of_state = self.spec_of_state(operator, 4)?;
        let float = |spec: OperandSpec| match is_integer {
            true => OperandSpec::tensor_float32(spec.dimensions),
            false => spec,
        };
        let specs = [float(of_state.clone()), float(self.spec(output)?)];
        let [mut state, result] = self.builder.operation_with_outputs(O::Svdf, inputs, specs);
        if is_integer {
            state = self.builder.operation(O::Quantize, [state], of_state);
        }
        self.set_state(operator, 4, state);
        self.emit_float32(result, output)
    }

    fn lsh_projection(&mut self, operator: &Operator<'_>) -> Imported {
        let kind = match operator.table.builtin_options()? {
            Some(BuiltinOptionsRef::LshProjectionOptions(options)) => options.type_()?,
            _ => LshProjectionType::Unknown,
        };
        // The format's sparse form adds an offset for each hash function, as the HAL's newer does.
        let code = match kind {
            LshProjectionType::Sparse => 3,
            LshProjectionType::Dense => 2,
            LshProjectionType::Unknown => return Err(Reason::new("it has no kind")),
        };
        let inputs = [
            self.input(operator, 0)?,
            self.input(operator, 1)?,
            self.optional_float(operator, 2, 1)?,
            self.builder.scalar_i32(code),
        ];
        self.emit_for(operator, O::LshProjection, &inputs)
    }

    fn hashtable_lookup(&mut self, operator: &Operator<'_>) -> Imported {
        let inputs = [self.input(operator, 0)?, self.input(operator, 1)?, self.input(operator, 2)?];
        let (values, hits) = (self.output_tensor(operator, 0)?, self.output_tensor(operator, 1)?);
        let specs = [self.spec(values)?, self.spec(hits)?];
        let results = self.builder.operation_with_outputs(O::HashtableLookup, inputs, specs);
        self.set(values, results[0]);
        self.set(hits, results[1]);
        Ok(())
    }
}
