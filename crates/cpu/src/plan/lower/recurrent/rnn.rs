//! Basic recurrent layers of floats.

use super::Arguments;
use crate::graph::Node;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{
    BothDirections, Form, OneDirection, Rnn, RnnShape, RnnWeights, Sequences,
};
use nnhal_ops::operations::bidirectional_sequence_rnn::{AUXILIARY_INPUT, BACKWARD, FORWARD};
use nnhal_ops::operations::{self, BidirectionalSequenceRnn, UnidirectionalSequenceRnn};
use nnhal_ops::operations::{rnn, unidirectional_sequence_rnn};
use nnhal_ops::rules::cell_activation::Activation;
use nnhal_ops::rules::rnn_cell::RnnArguments;

pub(super) fn single_step(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &operations::Rnn,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let cell = Cell { at: rnn::ARGUMENTS, sequences: arguments.single_step()? };
    let rnn = cell.prepare(arguments, operation.activation, preparation)?;
    Ok(cell.draft(arguments, rnn, Form::SingleStep))
}

pub(super) fn sequence(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &UnidirectionalSequenceRnn,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let sequences = arguments.sequences(operation.is_time_major)?;
    let cell = Cell { at: unidirectional_sequence_rnn::ARGUMENTS, sequences };
    let rnn = cell.prepare(arguments, operation.activation, preparation)?;
    Ok(cell.draft(arguments, rnn, Form::Sequence { gives_states: node.outputs.len() > 1 }))
}

pub(super) fn both_directions(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &BidirectionalSequenceRnn,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let auxiliary = arguments.auxiliary(AUXILIARY_INPUT, FORWARD.auxiliary);
    let sequences = arguments.sequences(operation.is_time_major)?;
    let backward = Sequences { is_backward: true, ..sequences };
    let cells = [Cell { at: FORWARD, sequences }, Cell { at: BACKWARD, sequences: backward }];
    let [first, second] =
        cells.map(|cell| cell.prepare(arguments, operation.activation, preparation));
    let positions = [0, AUXILIARY_INPUT, FORWARD.state(), BACKWARD.state()];
    let steps = if operation.is_merged { 1 } else { 2 };
    let kernel = BothDirections {
        layers: [first?, second?],
        auxiliary,
        is_merged: operation.is_merged,
        states: arguments.elements(&positions[2..]),
        gives_states: node.outputs.len() > steps,
    };
    Ok(Draft::new(node, kernel, positions.map(|position| node.inputs[position])))
}

/// A cell of a layer.
#[derive(Clone, Copy)]
struct Cell {
    at: RnnArguments,
    sequences: Sequences,
}

impl Cell {
    fn prepare(
        self,
        arguments: Arguments<'_>,
        activation: Activation,
        preparation: &mut Preparation,
    ) -> Result<Rnn, Why> {
        let at = self.at;
        let weights = |position: usize| arguments.weights(position, preparation);
        let wanted = |position: usize| arguments.wanted(position, weights(position)?);
        let (input, recurrent) = (wanted(at.weights)?, wanted(at.weights + 1)?);
        let auxiliary = at.auxiliary.map_or(Ok(None), weights)?;
        let bias = arguments.wanted(at.weights + 2, arguments.vector(at.weights + 2)?)?;
        let all = RnnWeights {
            input: &input,
            auxiliary: auxiliary.as_deref(),
            recurrent: &recurrent,
            bias: &bias,
        };
        let shape = RnnShape {
            sequences: self.sequences,
            input: arguments.length(at.weights, 1)?,
            auxiliary: at.auxiliary.map_or(0, |it| arguments.length(it, 1).unwrap_or(0)),
            units: arguments.length(at.weights, 0)?,
        };
        Ok(Rnn::prepare(shape, &all, super::activation(activation), preparation)?)
    }

    /// The step of one direction.
    fn draft(self, arguments: Arguments<'_>, rnn: Rnn, form: Form) -> Draft {
        let node = arguments.node;
        let state = self.at.state();
        let kernel = OneDirection { layer: rnn, states: arguments.elements(&[state]), form };
        Draft::new(node, kernel, [0, state].map(|it| node.inputs[it]))
    }
}
