//! Recurrent layers with constant weights.

mod integer;
mod lstm;
mod rnn;
mod svdf;

use crate::graph::{Node, Origin, Scratch, Value, Weights};
use crate::plan::arena::Inputs;
use crate::plan::{Builder, Draft};
use nnhal_kernels::Preparation;
use nnhal_kernels::recurrent::{Outputs, Sequences, Steps};
use nnhal_ops::AnyOperation;
use nnhal_ops::rules::bidirectional::Linking;
use std::borrow::Cow;

/// The step of a recurrent layer; `None` for what there is no kernel for.
pub(super) fn lower(
    builder: &Builder<'_, '_>,
    node: &Node,
    operation: &AnyOperation,
    preparation: &mut Preparation,
) -> Option<Draft> {
    match operation {
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
        _ => None,
    }
}

/// The arguments of a recurrent layer.
#[derive(Clone, Copy)]
struct Arguments<'a> {
    values: &'a [Value<'a>],
    node: &'a Node,
    scratch: &'a Scratch,
}

impl<'a> Arguments<'a> {
    fn of(builder: &'a Builder<'_, '_>, node: &'a Node) -> Self {
        Self { values: &builder.graph.values, node, scratch: &builder.scratch }
    }

    fn value(self, position: usize) -> Option<&'a Value<'a>> {
        self.node.inputs.get(position).map(|id| &self.values[*id])
    }

    /// An argument that is not left out.
    fn given(self, position: usize) -> Option<&'a Value<'a>> {
        self.value(position).filter(|value| !matches!(value.origin, Origin::Omitted))
    }

    /// Floats to be packed. Outside: not a constant, and so nothing that can be packed. Inside: left
    /// out.
    fn weights(
        self,
        position: usize,
        preparation: &Preparation,
    ) -> Option<Option<Weights<'a, f32>>> {
        match self.given(position) {
            None => Some(None),
            Some(value) => value.weight_floats(preparation, self.scratch).map(Some),
        }
    }

    /// Floats that are kept as they are; outside and inside as of [`Self::weights`].
    fn vector(self, position: usize) -> Option<Option<Cow<'a, [f32]>>> {
        match self.given(position) {
            None => Some(None),
            Some(value) => value.constant_floats().map(Some),
        }
    }

    fn length(self, position: usize, axis: usize) -> Option<usize> {
        self.value(position)?.dimensions.get(axis).map(|length| *length as usize)
    }

    /// Elements of several arguments together.
    fn elements(self, positions: &[usize]) -> usize {
        positions.iter().filter_map(|it| self.value(*it)).map(Value::elements).sum()
    }

    /// The sequences of the first input; `None` if there are no steps, for which there is nothing to
    /// pack.
    fn sequences(self, is_time_major: bool) -> Option<Sequences> {
        let (time, batch) = if is_time_major { (0, 1) } else { (1, 0) };
        let (time, batch) = (self.length(0, time)?, self.length(0, batch)?);
        let sequences = Sequences { batch, time, is_time_major, is_backward: false };
        (batch > 0 && time > 0).then_some(sequences)
    }

    /// One step of each sequence.
    fn single_step(self) -> Option<Sequences> {
        let batch = self.length(0, 0)?;
        (batch > 0).then(|| Sequences::single_step(batch))
    }

    /// What two cells do with an auxiliary input, if they have weights for it or not.
    fn linking(self, auxiliary_input: usize, auxiliary_weights: usize) -> Linking {
        match (self.given(auxiliary_input), self.given(auxiliary_weights)) {
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
