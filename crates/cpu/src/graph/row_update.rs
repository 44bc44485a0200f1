//! [`RowUpdates`]: rows of tensors that are replaced, as converters write it for want of an operation.
//!
//! `TensorList` of TensorFlow, into which a loop puts the result of each round, becomes a tensor; putting row `i` there becomes
//! the CONCATENATION of SLICEs of what is before and behind it:
//!
//! ```text
//! CONCATENATION(SLICE(x, [0, 0, ..], [i, -1, ..]), row, SLICE(x, [i + 1, 0, ..], [-1, -1, ..]), axis 0)
//! ```
//!
//! How long the pieces are, the value of `i` decides; what they become has the shape of `x` whatever that is.

use super::{Source, is, is_copy};
use nnhal_hal::{Operation, OperationType, Subgraph};
use std::collections::HashMap;

/// What operations of a subgraph are to the updates there, by their index.
#[derive(Debug, Default)]
pub(super) struct RowUpdates(HashMap<usize, Role>);

/// What an operation is to an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// It makes the result.
    Result(RowUpdate),
    /// What it computes is read by the update alone.
    Piece,
}

/// A tensor, the row of it that is replaced, and what replaces it, by operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowUpdate {
    pub(super) tensor: u32,
    pub(super) row: u32,
    /// One integer.
    pub(super) index: u32,
    /// How many axes the tensor has to have.
    pub(super) axes: usize,
}

impl RowUpdates {
    pub(super) fn of(source: &Source) -> Self {
        let operations = &source.subgraph.operations;
        if !operations.iter().any(|it| is(it, OperationType::Slice)) {
            return Self::default();
        }
        let search = Search::of(source);
        let mut roles = HashMap::new();
        for (index, operation) in operations.iter().enumerate() {
            let Some((update, pieces)) = search.update(operation) else { continue };
            roles.insert(index, Role::Result(update));
            roles.extend(pieces.into_iter().map(|piece| (piece, Role::Piece)));
        }
        Self(roles)
    }

    pub(super) fn role(&self, operation: usize) -> Option<Role> {
        self.0.get(&operation).copied()
    }
}

/// What changes nothing but lengths.
const KEEP_ELEMENTS: [OperationType; 3] =
    [OperationType::Reshape, OperationType::ExpandDims, OperationType::Squeeze];

struct Search<'source> {
    source: &'source Source,
    /// By operand: the operation whose result it is, and how often it is read or given out.
    producers: Vec<Option<usize>>,
    reads: Vec<usize>,
}

impl<'source> Search<'source> {
    fn of(source: &'source Source) -> Self {
        let Subgraph { operands, operations, outputs, .. } = &source.subgraph;
        let (mut producers, mut reads) = (vec![None; operands.len()], vec![0; operands.len()]);
        for (index, operation) in operations.iter().enumerate() {
            for output in &operation.outputs {
                producers[*output as usize] = Some(index);
            }
            for input in &operation.inputs {
                reads[*input as usize] += 1;
            }
        }
        for output in outputs {
            reads[*output as usize] += 1;
        }
        Self { source, producers, reads }
    }

    /// The update that a CONCATENATION makes, and the operations before it that no one else needs.
    fn update(&self, operation: &Operation) -> Option<(RowUpdate, Vec<usize>)> {
        if !is(operation, OperationType::Concatenation) {
            return None;
        }
        let [before, row, behind, axis] = *operation.inputs.as_slice() else { return None };
        if self.integers(axis)? != [0] {
            return None;
        }
        let (mut pieces, mut tensors, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let mut axes = Vec::with_capacity(4);
        // What is constant of the other argument, and what follows the row's index in the one that is not.
        for (piece, constant, fixed, follows) in [(before, 1, 0, -1), (behind, 2, -1, 0)] {
            let (index, slice) = self.only(piece, OperationType::Slice)?;
            pieces.push(index);
            let [tensor, begins, sizes] = *slice.inputs.as_slice() else { return None };
            let arguments = [begins, sizes];
            let (constant, open) = (arguments[constant - 1], arguments[2 - constant]);
            let constant = self.integers(constant)?;
            if constant.iter().any(|it| *it != fixed) {
                return None;
            }
            let (place, length) = self.first_of(open, follows, &mut pieces)?;
            axes.extend([constant.len(), length]);
            tensors.push(tensor);
            places.push(place);
        }
        let [index, next] = *places.as_slice() else { return None };
        let is_one_tensor = tensors[0] == tensors[1] && axes.iter().all(|it| *it == axes[0]);
        if !is_one_tensor || !self.is_next(next, index) {
            return None;
        }
        Some((RowUpdate { tensor: tensors[0], row, index, axes: axes[0] }, pieces))
    }

    /// The first integer of a vector whose others are all this number, and how many there are.
    fn first_of(&self, vector: u32, others: i32, pieces: &mut Vec<usize>) -> Option<(u32, usize)> {
        // A tensor of one axis has no others.
        let Some((index, joined)) = self.only(vector, OperationType::Concatenation) else {
            return Some((self.shown(vector), 1));
        };
        let [first, rest, axis] = *joined.inputs.as_slice() else { return None };
        let rest = self.integers(rest)?;
        let is_so = self.integers(axis)? == [0] && rest.iter().all(|it| *it == others);
        pieces.push(index);
        is_so.then(|| (self.shown(first), 1 + rest.len()))
    }

    /// Whether one integer is another one and 1.
    fn is_next(&self, next: u32, index: u32) -> bool {
        let Some(add) = self.producers[next as usize] else { return false };
        let add = &self.source.subgraph.operations[add];
        let [a, b, ..] = *add.inputs.as_slice() else { return false };
        let is_one = |operand| self.integers(operand).as_deref() == Some(&[1]);
        let is_index = |operand| self.shown(operand) == index;
        is(add, OperationType::Add) && (is_one(a) && is_index(b) || is_one(b) && is_index(a))
    }

    /// What an operand is another shape of.
    fn shown(&self, mut operand: u32) -> u32 {
        while let Some(producer) = self.producers[operand as usize] {
            let producer = &self.source.subgraph.operations[producer];
            let keeps_elements = is_copy(&self.source.subgraph, producer)
                || KEEP_ELEMENTS.into_iter().any(|it| is(producer, it));
            match producer.inputs.first() {
                Some(input) if keeps_elements => operand = *input,
                _ => break,
            }
        }
        operand
    }

    /// The operation of this type whose result an operand is, if that is read once.
    fn only(&self, operand: u32, of: OperationType) -> Option<(usize, &Operation)> {
        let index = self.producers[operand as usize]?;
        let operation = &self.source.subgraph.operations[index];
        let is_it = is(operation, of) && self.reads[operand as usize] == 1;
        is_it.then_some((index, operation))
    }

    /// A constant of few integers of 32 bits.
    fn integers(&self, operand: u32) -> Option<Vec<i32>> {
        let (constant, _) = self.source.constant(operand)?;
        let (integers, rest) = constant.parameter()?.as_chunks();
        let integers = integers.iter().copied().map(i32::from_le_bytes).collect();
        rest.is_empty().then_some(integers)
    }
}
