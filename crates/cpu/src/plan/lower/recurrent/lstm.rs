//! LSTMs of floats.

use super::Arguments;
use crate::graph::{Node, Weights as Constants};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{
    BothDirections, Form, Gate, Lstm, OneDirection, Sequences, Settings, Shape, Weights,
};
use nnhal_ops::operations::bidirectional_sequence_lstm::{AUXILIARY_INPUT, BACKWARD, FORWARD};
use nnhal_ops::operations::{self, BidirectionalSequenceLstm, UnidirectionalSequenceLstm};
use nnhal_ops::operations::{lstm, unidirectional_sequence_lstm};
use nnhal_ops::rules::lstm_arguments::{self, GATES, LstmArguments};
use nnhal_ops::rules::lstm_cell;
use std::borrow::Cow;

pub(super) fn single_step(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &operations::Lstm,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let cell = Cell { at: lstm::ARGUMENTS, sequences: arguments.single_step()? };
    let lstm = cell.prepare(arguments, &operation.settings, preparation)?;
    Ok(cell.draft(arguments, lstm, Form::SingleStep))
}

pub(super) fn sequence(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &UnidirectionalSequenceLstm,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let sequences = arguments.sequences(operation.is_time_major)?;
    let cell = Cell { at: unidirectional_sequence_lstm::ARGUMENTS, sequences };
    let lstm = cell.prepare(arguments, &operation.settings, preparation)?;
    Ok(cell.draft(arguments, lstm, Form::Sequence { gives_states: node.outputs.len() > 1 }))
}

pub(super) fn both_directions(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &BidirectionalSequenceLstm,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let weights = FORWARD.auxiliary_weights(lstm_arguments::Gate::Forget);
    let auxiliary = arguments.auxiliary(AUXILIARY_INPUT, weights);
    let sequences = arguments.sequences(operation.is_time_major)?;
    let backward = Sequences { is_backward: true, ..sequences };
    let cells = [Cell { at: FORWARD, sequences }, Cell { at: BACKWARD, sequences: backward }];
    let [first, second] =
        cells.map(|cell| cell.prepare(arguments, &operation.settings, preparation));
    let states = cells.map(|cell| cell.states());
    let positions = [0, AUXILIARY_INPUT].into_iter().chain(states.into_iter().flatten());
    let kernel = BothDirections {
        layers: [first?, second?],
        auxiliary,
        is_merged: operation.is_merged,
        states: arguments.elements(states.as_flattened()),
        gives_states: node.outputs.len() > 2,
    };
    Ok(Draft::new(node, kernel, positions.map(|position| node.inputs[position])))
}

/// A cell of a layer.
#[derive(Clone, Copy)]
struct Cell {
    at: LstmArguments,
    sequences: Sequences,
}

/// The weights of a gate.
struct Owned<'a> {
    input: Constants<'a, f32>,
    auxiliary: Option<Constants<'a, f32>>,
    recurrent: Constants<'a, f32>,
    peephole: Option<Cow<'a, [f32]>>,
    layer_norm: Option<Cow<'a, [f32]>>,
    bias: Cow<'a, [f32]>,
}

impl Owned<'_> {
    fn borrowed(&self) -> Gate<'_> {
        Gate {
            input: &self.input,
            auxiliary: self.auxiliary.as_deref(),
            recurrent: &self.recurrent,
            peephole: self.peephole.as_deref(),
            layer_norm: self.layer_norm.as_deref(),
            bias: &self.bias,
        }
    }
}

impl Cell {
    /// Where the states before the first step stand.
    fn states(self) -> [usize; 2] {
        [self.at.output_state(), self.at.cell_state()]
    }

    fn prepare(
        self,
        arguments: Arguments<'_>,
        settings: &lstm_cell::Settings,
        preparation: &mut Preparation,
    ) -> Result<Lstm, Why> {
        let at = self.at;
        let weights = |position: usize| arguments.weights(position, preparation);
        let gate = |gate: lstm_arguments::Gate| -> Result<Option<Owned<'_>>, Why> {
            let Some(input) = weights(at.input_weights(gate))? else { return Ok(None) };
            let (recurrent, bias) = (at.recurrent_weights(gate), at.bias(gate));
            Ok(Some(Owned {
                input,
                auxiliary: at.auxiliary_weights(gate).map_or(Ok(None), weights)?,
                recurrent: arguments.wanted(recurrent, weights(recurrent)?)?,
                peephole: at.peephole(gate).map_or(Ok(None), |it| arguments.vector(it))?,
                layer_norm: arguments.vector(at.layer_norm(gate))?,
                bias: arguments.wanted(bias, arguments.vector(bias)?)?,
            }))
        };
        let wanted =
            |name: lstm_arguments::Gate| arguments.wanted(at.input_weights(name), gate(name)?);
        let [of_input, of_forget, of_cell, of_output] = GATES;
        let input = gate(of_input)?;
        let (forget, cell, output) = (wanted(of_forget)?, wanted(of_cell)?, wanted(of_output)?);
        let projection = weights(at.projection())?;
        let projection_bias = arguments.vector(at.projection_bias())?;
        let all = Weights {
            input: input.as_ref().map(Owned::borrowed),
            forget: forget.borrowed(),
            cell: cell.borrowed(),
            output: output.borrowed(),
            projection: projection.as_deref().map(|it| (it, projection_bias.as_deref())),
        };
        let of_auxiliary = at.auxiliary_weights(lstm_arguments::Gate::Forget);
        let shape = Shape {
            sequences: self.sequences,
            input: arguments.length(at.input_weights(lstm_arguments::Gate::Forget), 1)?,
            auxiliary: of_auxiliary.map_or(0, |it| arguments.length(it, 1).unwrap_or(0)),
            units: arguments.length(at.cell_state(), 1)?,
            output: arguments.length(at.output_state(), 1)?,
        };
        let settings = Settings {
            activation: super::activation(settings.activation),
            cell_clip: settings.cell_clip,
            projection_clip: settings.projection_clip,
        };
        Ok(Lstm::prepare(shape, &all, settings, preparation)?)
    }

    /// The step of one direction.
    fn draft(self, arguments: Arguments<'_>, lstm: Lstm, form: Form) -> Draft {
        let node = arguments.node;
        let [output, cell] = self.states();
        let kernel = OneDirection { layer: lstm, states: arguments.elements(&self.states()), form };
        Draft::new(node, kernel, [0, output, cell].map(|it| node.inputs[it]))
    }
}
