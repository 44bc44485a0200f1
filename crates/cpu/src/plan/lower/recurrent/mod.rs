//! Recurrent layers with constant weights.

mod integer;
mod lstm;
mod rnn;
mod svdf;

use crate::graph::{Argument, Graph, Node, Origin, Scratch, Weights};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{
    Activation, Auxiliary, BothDirections, Form, Layer, OneDirection, Sequences,
};
use nnhal_ops::AnyOperation;
use nnhal_ops::operations::{self, unidirectional_sequence_lstm, unidirectional_sequence_rnn};
use nnhal_ops::rules::cell_activation;
use nnhal_ops::rules::lstm_arguments::LstmArguments;
use nnhal_ops::rules::rnn_cell::RnnArguments;
use std::borrow::Cow;
use std::iter;

/// For the kernels.
fn activation(activation: cell_activation::Activation) -> Activation {
    match activation {
        cell_activation::Activation::None => Activation::None,
        cell_activation::Activation::Relu => Activation::Relu,
        cell_activation::Activation::Relu1 => Activation::Relu1,
        cell_activation::Activation::Relu6 => Activation::Relu6,
        cell_activation::Activation::Tanh => Activation::Tanh,
        cell_activation::Activation::Sigmoid => Activation::Sigmoid,
    }
}

/// The step of a recurrent layer; `None` for other operations.
pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &AnyOperation,
    preparation: &mut Preparation,
) -> Option<Result<Draft, Why>> {
    Some(match operation {
        AnyOperation::Lstm(it) => {
            let cell = (operations::lstm::ARGUMENTS, it.settings);
            one_direction(builder, node, cell, None, preparation)
        }
        AnyOperation::UnidirectionalSequenceLstm(it) => {
            let cell = (unidirectional_sequence_lstm::ARGUMENTS, it.settings);
            one_direction(builder, node, cell, Some(it.is_time_major), preparation)
        }
        AnyOperation::BidirectionalSequenceLstm(it) => {
            let form = [it.is_time_major, it.is_merged];
            both_directions::<LstmArguments>(builder, node, it.settings, form, preparation)
        }
        AnyOperation::Rnn(it) => {
            let cell = (operations::rnn::ARGUMENTS, it.activation);
            one_direction(builder, node, cell, None, preparation)
        }
        AnyOperation::UnidirectionalSequenceRnn(it) => {
            let cell = (unidirectional_sequence_rnn::ARGUMENTS, it.activation);
            one_direction(builder, node, cell, Some(it.is_time_major), preparation)
        }
        AnyOperation::BidirectionalSequenceRnn(it) => {
            let form = [it.is_time_major, it.is_merged];
            both_directions::<RnnArguments>(builder, node, it.activation, form, preparation)
        }
        AnyOperation::Svdf(it) => svdf::lower(builder, node, it, preparation),
        AnyOperation::QuantizedLstm(it) => integer::step_8(builder, node, it, preparation),
        AnyOperation::Quantized16bitLstm(_) => integer::step_16(builder, node, preparation),
        _ => return None,
    })
}

/// The positions of a cell's arguments.
trait Cell: Copy {
    /// What it does besides its weights.
    type Settings: Copy;
    type Layer: Layer + 'static;

    /// Of a layer of both directions.
    const DIRECTIONS: [Self; 2];
    const AUXILIARY_INPUT: usize;

    /// That of weights for the auxiliary input, which may be left out.
    fn auxiliary(self) -> Option<usize>;

    /// The states before the first step.
    fn states(self) -> Vec<usize>;

    fn prepare(
        self,
        arguments: Arguments<'_>,
        sequences: Sequences,
        settings: Self::Settings,
        preparation: &mut Preparation,
    ) -> Result<Self::Layer, Why>;
}

/// The step of a layer of sequences that are time-major or not; of single steps, if that is not said.
fn one_direction<C: Cell>(
    builder: &Builder<'_, '_>,
    node: &Node,
    (cell, settings): (C, C::Settings),
    is_time_major: Option<bool>,
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let (sequences, form) = match is_time_major {
        None => (arguments.single_step()?, Form::SingleStep),
        Some(is_time_major) => {
            let form = Form::Sequence { gives_states: node.outputs.len() > 1 };
            (arguments.sequences(is_time_major)?, form)
        }
    };
    let layer = cell.prepare(arguments, sequences, settings, preparation)?;
    let states = cell.states();
    let kernel = OneDirection { layer, states: arguments.elements(&states), form };
    Ok(Draft::new(node, kernel, iter::once(0).chain(states).map(|it| node.inputs[it])))
}

fn both_directions<C: Cell>(
    builder: &Builder<'_, '_>,
    node: &Node,
    settings: C::Settings,
    [is_time_major, is_merged]: [bool; 2],
    preparation: &mut Preparation,
) -> Result<Draft, Why> {
    let arguments = Arguments::of(builder, node);
    let [forward, backward] = C::DIRECTIONS;
    let auxiliary = arguments.auxiliary(C::AUXILIARY_INPUT, forward.auxiliary());
    let sequences = arguments.sequences(is_time_major)?;
    let first = forward.prepare(arguments, sequences, settings, preparation);
    let sequences = Sequences { is_backward: true, ..sequences };
    let second = backward.prepare(arguments, sequences, settings, preparation);
    let states = [forward.states(), backward.states()].concat();
    let kernel = BothDirections {
        layers: [first?, second?],
        auxiliary,
        is_merged,
        states: arguments.elements(&states),
        // Beside one output, or one of each direction.
        gives_states: node.outputs.len() > 2,
    };
    let inputs = [0, C::AUXILIARY_INPUT].into_iter().chain(states);
    Ok(Draft::new(node, kernel, inputs.map(|it| node.inputs[it])))
}

/// The arguments of a recurrent layer.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    graph: &'a Graph<'a>,
    node: &'a Node,
    scratch: &'a Scratch,
}

impl<'a> Arguments<'a> {
    fn of(builder: &'a Builder<'_, '_>, node: &'a Node) -> Self {
        Self { graph: builder.graph, node, scratch: &builder.scratch }
    }

    /// An argument that is there, if left out perhaps.
    fn get(self, position: usize) -> Option<Argument<'a>> {
        (position < self.node.inputs.len()).then(|| self.graph.input(self.node, position))
    }

    /// An argument that every such layer has.
    fn value(self, position: usize) -> Result<Argument<'a>, Why> {
        self.get(position).ok_or_else(|| self.omitted(position))
    }

    /// An argument that is not left out.
    fn given(self, position: usize) -> Option<Argument<'a>> {
        self.get(position).filter(|value| !matches!(value.origin, Origin::Omitted))
    }

    /// The reason that an argument is left out which kernels want.
    fn omitted(self, position: usize) -> Why {
        let found = format!("left out at input {position}");
        Why::Form { what: "an argument", found, expected: "given" }
    }

    /// What kernels want of an argument that is not left out.
    fn wanted<T>(self, position: usize, found: Option<T>) -> Result<T, Why> {
        found.ok_or_else(|| self.omitted(position))
    }

    /// Floats to be packed; none of what is left out.
    fn weights(
        self,
        position: usize,
        preparation: &Preparation,
    ) -> Result<Option<Weights<'a, f32>>, Why> {
        let of = |value: Argument<'a>| value.weight_floats(preparation, self.scratch);
        self.given(position).map(of).transpose()
    }

    /// Floats that are kept as they are; none of what is left out.
    fn vector(self, position: usize) -> Result<Option<Cow<'a, [f32]>>, Why> {
        self.given(position).map(Argument::floats).transpose()
    }

    fn length(self, position: usize, axis: usize) -> Result<usize, Why> {
        let value = self.value(position)?;
        let length = value.dimensions.get(axis).map(|length| *length as usize);
        length.ok_or_else(|| value.of_other_rank("one axis more"))
    }

    /// A length that is not 0: of nothing, there is nothing to pack.
    fn length_above_0(self, position: usize, axis: usize) -> Result<usize, Why> {
        let length = self.length(position, axis)?;
        if length == 0 { Err(self.value(position)?.empty()) } else { Ok(length) }
    }

    /// Elements of several arguments together.
    fn elements(self, positions: &[usize]) -> usize {
        positions.iter().filter_map(|it| self.get(*it)).map(|it| it.elements()).sum()
    }

    /// The sequences of the first input, which have steps.
    fn sequences(self, is_time_major: bool) -> Result<Sequences, Why> {
        let (time, batch) = if is_time_major { (0, 1) } else { (1, 0) };
        let (time, batch) = (self.length_above_0(0, time)?, self.length_above_0(0, batch)?);
        Ok(Sequences { batch, time, is_time_major, is_backward: false })
    }

    /// One step of each sequence.
    fn single_step(self) -> Result<Sequences, Why> {
        Ok(Sequences::single_step(self.length_above_0(0, 0)?))
    }

    /// What two cells do with an auxiliary input, if they have weights for it or not.
    fn auxiliary(self, auxiliary_input: usize, auxiliary_weights: Option<usize>) -> Auxiliary {
        let weights = auxiliary_weights.and_then(|position| self.given(position));
        match (self.given(auxiliary_input), weights) {
            (None, _) => Auxiliary::None,
            (Some(_), None) => Auxiliary::Parallel,
            (Some(_), Some(_)) => Auxiliary::Cross,
        }
    }
}
