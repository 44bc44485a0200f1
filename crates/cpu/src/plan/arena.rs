//! [`Operands`]: a step's operands as slices of the arena and of constants.

use super::{Location, Step};
use nnhal_kernels::{InputBytes, Lines, MOST_WRITTEN};
use std::ops::Range;

/// The operands of a step: slices of one arena, of which those to be written overlap nothing.
pub(crate) struct Operands<'run> {
    /// What is between the written ranges, with where it begins.
    readable: [(usize, &'run [u8]); MOST_WRITTEN + 1],
    /// The outputs, in their order, then the scratch memory.
    written: [&'run mut [u8]; MOST_WRITTEN],
    inputs: &'run [Location],
    constants: &'run [Lines],
}

impl<'run> Operands<'run> {
    /// The operands of `step` in `arena`.
    ///
    /// # Panics
    /// If outputs overlap each other, or there are more than fit: a defect of the planner.
    pub(crate) fn new(arena: &'run mut [u8], constants: &'run [Lines], step: &'run Step) -> Self {
        let count = step.outputs.len() + 1;
        assert!(count <= MOST_WRITTEN, "{} outputs", step.outputs.len());
        let mut order = [0; MOST_WRITTEN];
        for (index, place) in order.iter_mut().enumerate() {
            *place = index;
        }
        let range = |index: usize| step.outputs.get(index).unwrap_or(&step.scratch);
        let order = &mut order[..count];
        order.sort_unstable_by_key(|index| (range(*index).start, range(*index).end));
        let mut readable = [(0, &[][..]); MOST_WRITTEN + 1];
        let mut written: [&mut [u8]; MOST_WRITTEN] = std::array::from_fn(|_| Default::default());
        let (mut rest, mut at) = (arena, 0);
        for (gap, index) in order.iter().enumerate() {
            let Range { start, end } = range(*index).clone();
            let (before, tail) = std::mem::take(&mut rest).split_at_mut(start - at);
            let (own, tail) = tail.split_at_mut(end - start);
            readable[gap] = (at, before);
            written[*index] = own;
            (rest, at) = (tail, end);
        }
        readable[count] = (at, rest);
        Self { readable, written, inputs: &step.inputs, constants }
    }

    /// Inputs to read, and what is to be written, for a kernel.
    pub(crate) fn parts(self) -> (Inputs<'run>, [&'run mut [u8]; MOST_WRITTEN]) {
        let Self { readable, written, inputs, constants } = self;
        (Inputs { readable, inputs, constants }, written)
    }

    /// Inputs to read, and the outputs to write, however many there are.
    pub(crate) fn split_all(self) -> (Inputs<'run>, impl Iterator<Item = &'run mut [u8]>) {
        let Self { readable, written, inputs, constants } = self;
        (Inputs { readable, inputs, constants }, written.into_iter())
    }
}

/// The inputs of a step.
pub(crate) struct Inputs<'run> {
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
