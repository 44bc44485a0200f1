//! Recurrent layers with constant weights.

mod integer;
mod lstm;
mod rnn;
mod svdf;

use crate::graph::{Argument, Graph, Node, Origin, Scratch, Weights};
use crate::plan::arena::Inputs;
use crate::plan::{Builder, Draft};
use crate::why::Why;
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Outputs, Sequences, Steps};
use nnhal_ops::AnyOperation;
use nnhal_ops::rules::bidirectional::Linking;
use std::borrow::Cow;

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
    fn linking(self, auxiliary_input: usize, auxiliary_weights: Option<usize>) -> Linking {
        let weights = auxiliary_weights.and_then(|position| self.given(position));
        match (self.given(auxiliary_input), weights) {
            (None, _) => Linking::None,
            (Some(_), None) => Linking::Parallel,
            (Some(_), Some(_)) => Linking::Cross,
        }
    }
}

/// How the steps of two directions go in and out.
#[derive(Debug, Clone, Copy)]
struct Both {
    linking: Linking,
    is_merged: bool,
}

impl Both {
    /// What the two read; the step's inputs begin with the input and the auxiliary input.
    fn steps<'run>(self, inputs: &Inputs<'run>) -> [Steps<'run>; 2] {
        let input = inputs.floats(0);
        let auxiliary = || inputs.floats(1);
        match self.linking {
            Linking::None => [Steps::of(input); 2],
            Linking::Parallel => [Steps::of(input), Steps::of(auxiliary())],
            Linking::Cross => [Steps { input, auxiliary: auxiliary() }; 2],
        }
    }

    /// Where the two write.
    fn outputs<'run>(self, written: &mut impl Iterator<Item = &'run mut [f32]>) -> Outputs<'run> {
        let mut next = || written.next().unwrap_or_default();
        if self.is_merged { Outputs::Merged(next()) } else { Outputs::Separate([next(), next()]) }
    }
}

/// What a step writes: its outputs and then its scratch memory.
fn written_floats<'run>(
    written: impl Iterator<Item = &'run mut [u8]>,
) -> impl Iterator<Item = &'run mut [f32]> {
    written.map(bytemuck::cast_slice_mut)
}

/// States that begin as the step's inputs from `first` on: those outputs, or parts of the scratch
/// memory where there are none. Also what is left of the scratch memory.
fn states<'run, const N: usize>(
    inputs: &Inputs<'_>,
    first: usize,
    mut outputs: [Option<&'run mut [f32]>; N],
    mut scratch: &'run mut [f32],
) -> ([&'run mut [f32]; N], &'run mut [f32]) {
    let states = std::array::from_fn(|index| {
        let before = inputs.floats(first + index);
        let state = outputs[index].take().unwrap_or_else(|| {
            let (state, rest) = std::mem::take(&mut scratch).split_at_mut(before.len());
            scratch = rest;
            state
        });
        state.copy_from_slice(before);
        state
    });
    (states, scratch)
}
