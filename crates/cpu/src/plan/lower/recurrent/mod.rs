//! Recurrent layers with constant weights.

mod integer;
mod lstm;
mod rnn;
mod svdf;

use crate::graph::{Argument, Graph, Node, Origin, Scratch, Weights};
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Activation, Auxiliary, Sequences};
use nnhal_ops::AnyOperation;
use nnhal_ops::rules::cell_activation;
use std::borrow::Cow;

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
        AnyOperation::Lstm(it) => lstm::single_step(builder, node, it, preparation),
        AnyOperation::UnidirectionalSequenceLstm(it) => {
            lstm::sequence(builder, node, it, preparation)
        }
        AnyOperation::BidirectionalSequenceLstm(it) => {
            lstm::both_directions(builder, node, it, preparation)
        }
        AnyOperation::Rnn(it) => rnn::single_step(builder, node, it, preparation),
        AnyOperation::UnidirectionalSequenceRnn(it) => {
            rnn::sequence(builder, node, it, preparation)
        }
        AnyOperation::BidirectionalSequenceRnn(it) => {
            rnn::both_directions(builder, node, it, preparation)
        }
        AnyOperation::Svdf(it) => svdf::lower(builder, node, it, preparation),
        AnyOperation::QuantizedLstm(it) => integer::step_8(builder, node, it, preparation),
        AnyOperation::Quantized16bitLstm(_) => integer::step_16(builder, node, preparation),
        _ => return None,
    })
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
