//! Recurrent networks of floats with constant weights.

use crate::graph::{Node, Origin, Value};
use crate::plan::arena::Operands;
use crate::plan::{Builder, Draft, Kernel, Operand, Run};
use driver::EngineError;
use kernels::Preparation;
use kernels::recurrent::{Activation, Gate, Lstm, Settings, Shape, Weights};
use ops::operations::UnidirectionalSequenceLstm;
use ops::operations::unidirectional_sequence_lstm::ARGUMENTS;
use ops::rules::lstm_arguments::{self, GATES};
use ops::rules::lstm_cell;

#[derive(Debug)]
struct LstmKernel {
    lstm: Lstm,
    /// Elements of the output state and of the cell state.
    states: [usize; 2],
    gives_states: bool,
}

/// The weights of a gate.
struct Owned {
    input: Vec<f32>,
    recurrent: Vec<f32>,
    peephole: Option<Vec<f32>>,
    layer_norm: Option<Vec<f32>>,
    bias: Vec<f32>,
}

impl Owned {
    fn borrowed(&self) -> Gate<'_> {
        Gate {
            input: &self.input,
            recurrent: &self.recurrent,
            peephole: self.peephole.as_deref(),
            layer_norm: self.layer_norm.as_deref(),
            bias: &self.bias,
        }
    }
}

pub(super) fn lstm(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &UnidirectionalSequenceLstm,
    preparation: &mut Preparation,
) -> Option<Draft> {
    let values = &builder.graph.values;
    let value = |position: usize| node.inputs.get(position).map(|id| &values[*id]);
    // Outside: not a constant, and so nothing that can be packed. Inside: left out.
    let of =
        |position: usize, floats: &dyn Fn(&Value<'_>) -> Option<Vec<f32>>| match value(position)
            .filter(|value| !matches!(value.origin, Origin::Omitted))
        {
            None => Some(None),
            Some(value) => floats(value).map(Some),
        };
    let weights = |position: usize| {
        of(position, &|value| Some(value.weight_floats(preparation, &builder.scratch)?.to_vec()))
    };
    let vector =
        |position: usize| of(position, &|value| Some(value.constant_floats()?.into_owned()));
    let gate = |gate: lstm_arguments::Gate| -> Option<Option<Owned>> {
        let Some(input) = weights(ARGUMENTS.input_weights(gate))? else { return Some(None) };
        Some(Some(Owned {
            input,
            recurrent: weights(ARGUMENTS.recurrent_weights(gate))??,
            peephole: ARGUMENTS.peephole(gate).map_or(Some(None), vector)?,
            layer_norm: vector(ARGUMENTS.layer_norm(gate))?,
            bias: vector(ARGUMENTS.bias(gate))??,
        }))
    };
    let [input, forget, cell, output] = GATES.map(gate);
    let (input, forget, cell, output) = (input?, forget??, cell??, output??);
    let projection = weights(ARGUMENTS.projection())?;
    let projection_bias = vector(ARGUMENTS.projection_bias())?;
    let all = Weights {
        input: input.as_ref().map(Owned::borrowed),
        forget: forget.borrowed(),
        cell: cell.borrowed(),
        output: output.borrowed(),
        projection: projection.as_deref().map(|weights| (weights, projection_bias.as_deref())),
    };
    let length = |position: usize, axis: usize| -> Option<usize> {
        value(position)?.dimensions.get(axis).map(|length| *length as usize)
    };
    let (time, batch) = if operation.is_time_major { (0, 1) } else { (1, 0) };
    let shape = Shape {
        batch: length(0, batch)?,
        time: length(0, time)?,
        input: length(0, 2)?,
        units: length(ARGUMENTS.cell_state(), 1)?,
        output: length(ARGUMENTS.output_state(), 1)?,
    };
    // Of no sequences or units there is nothing to pack.
    if shape.batch == 0 || shape.time == 0 || shape.units == 0 || shape.output == 0 {
        return None;
    }
    let settings = Settings {
        activation: match operation.settings.activation {
            lstm_cell::Activation::None => Activation::None,
            lstm_cell::Activation::Relu => Activation::Relu,
            lstm_cell::Activation::Relu6 => Activation::Relu6,
            lstm_cell::Activation::Tanh => Activation::Tanh,
            lstm_cell::Activation::Sigmoid => Activation::Sigmoid,
        },
        cell_clip: operation.settings.cell_clip,
        projection_clip: operation.settings.projection_clip,
        is_time_major: operation.is_time_major,
    };
    let lstm = Lstm::prepare(shape, &all, settings, preparation);
    let states = [shape.batch * shape.output, shape.batch * shape.units];
    let gives_states = node.outputs.len() == 3;
    let inputs = [0, ARGUMENTS.output_state(), ARGUMENTS.cell_state()];
    Some(Draft {
        place: node.place,
        kernel: Box::new(LstmKernel { lstm, states, gives_states }),
        inputs: inputs.map(|position| Operand::Value(node.inputs[position])).to_vec(),
        outputs: node.outputs.clone(),
    })
}

impl Kernel for LstmKernel {
    fn run(&self, operands: Operands<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        /// Runs all steps in states that begin as the inputs are.
        macro_rules! steps {
            ($inputs:ident, $output:ident, $output_state:expr, $cell_state:expr, $scratch:expr) => {{
                let (output_state, cell_state) = ($output_state, $cell_state);
                output_state.copy_from_slice($inputs.floats(1));
                cell_state.copy_from_slice($inputs.floats(2));
                let output = bytemuck::cast_slice_mut($output);
                let input = $inputs.floats(0);
                self.lstm.run(run.team, input, output_state, cell_state, output, $scratch);
            }};
        }
        if self.gives_states {
            let (inputs, [output, output_state, cell_state], scratch) = operands.split();
            let output_state = bytemuck::cast_slice_mut(output_state);
            let cell_state = bytemuck::cast_slice_mut(cell_state);
            steps!(inputs, output, output_state, cell_state, bytemuck::cast_slice_mut(scratch));
        } else {
            let (inputs, [output], scratch) = operands.split();
            let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
            let (output_state, rest) = scratch.split_at_mut(self.states[0]);
            let (cell_state, scratch) = rest.split_at_mut(self.states[1]);
            steps!(inputs, output, output_state, cell_state, scratch);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "lstm".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        let states: usize = self.states.iter().sum();
        (self.lstm.scratch_elements() + states) * size_of::<f32>()
    }
}
