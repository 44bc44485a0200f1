//! [`StepMemory`]: a step's operands as slices of the arena and of constants.

use super::{Location, Step};
use nnhal_kernels::{InputBytes, Lines, MOST_WRITTEN};
use std::ops::Range;

/// The memory of a plan while a step runs.
pub(crate) struct StepMemory<'run> {
    pub(crate) arena: &'run mut [u8],
    pub(crate) constants: &'run [Lines],
    pub(crate) step: &'run Step,
}

impl<'run> StepMemory<'run> {
    /// Inputs to read, and what is to be written: the outputs, in their order, then the scratch memory.
    ///
    /// # Panics
    /// If outputs overlap each other, or there are more than fit: a defect of the planner.
    pub(crate) fn split(self) -> (Inputs<'run>, [&'run mut [u8]; MOST_WRITTEN]) {
        let Self { arena, constants, step } = self;
        let mut readable = [(0, &[][..]); MOST_WRITTEN + 1];
        let mut written: [&mut [u8]; MOST_WRITTEN] = Default::default();
        let (mut rest, mut at) = (arena, 0);
        for (gap, index) in step.written_order.iter().enumerate() {
            let Range { start, end } = step.outputs.get(*index).unwrap_or(&step.scratch).clone();
            let (before, tail) = std::mem::take(&mut rest).split_at_mut(start - at);
            let (own, tail) = tail.split_at_mut(end - start);
            readable[gap] = (at, before);
            written[*index] = own;
            (rest, at) = (tail, end);
        }
        readable[step.written_order.len()] = (at, rest);
        (Inputs { readable, inputs: &step.inputs, constants }, written)
    }
}

/// The order in which a step's outputs, and behind them its scratch memory, are in the arena.
pub(super) fn written_order(outputs: &[Range<usize>], scratch: &Range<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..=outputs.len()).collect();
    order.sort_by_key(|index| {
        let range = outputs.get(*index).unwrap_or(scratch);
        (range.start, range.end)
    });
    order
}

/// The inputs of a step: slices of one arena, of which those to be written overlap nothing.
pub(crate) struct Inputs<'run> {
    /// What is between the written ranges, with where it begins.
    readable: [(usize, &'run [u8]); MOST_WRITTEN + 1],
    inputs: &'run [Location],
    constants: &'run [Lines],
}

impl InputBytes for Inputs<'_> {
    fn bytes(&self, index: usize) -> Option<&[u8]> {
        self.optional(index)
    }
}

impl<'run> Inputs<'run> {
    /// The bytes of an input; `None` if it is left out.
    ///
    /// # Panics
    /// If it overlaps what is written: a defect of the planner.
    pub(crate) fn optional(&self, index: usize) -> Option<&'run [u8]> {
        match self.inputs.get(index)? {
            Location::Nowhere => None,
            Location::Constant(constant, length) => {
                Some(&self.constants[*constant].elements::<u8>()[..*length])
            }
            Location::Arena(range) => {
                let inside = |(start, bytes): &&(usize, &[u8])| {
                    *start <= range.start && range.end <= start + bytes.len()
                };
                let (start, bytes) =
                    self.readable.iter().find(inside).expect("inputs are disjoint from outputs");
                Some(&bytes[range.start - start..range.end - start])
            }
        }
    }

    /// The bytes of an input that is not left out.
    pub(crate) fn bytes(&self, index: usize) -> &'run [u8] {
        self.optional(index).unwrap_or_default()
    }
}
