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

/// The operands of a step: slices of one arena, of which those to be written overlap nothing.
#[derive(Default)]
pub(crate) struct Parts<'run> {
    pub(crate) inputs: Inputs<'run>,
    /// The outputs, in their order, then the scratch memory.
    pub(crate) written: [&'run mut [u8]; MOST_WRITTEN],
}

impl<'run> StepMemory<'run> {
    /// The operands, which are made where the caller has them: moving them would take as long.
    ///
    /// # Panics
    /// If outputs overlap each other, or there are more than fit: a defect of the planner.
    pub(crate) fn split(self, parts: &mut Parts<'run>) {
        let Self { arena, constants, step } = self;
        parts.inputs.sources = &step.order.read;
        parts.inputs.constants = constants;
        let (mut rest, mut at) = (arena, 0);
        for (gap, index) in step.order.written.iter().enumerate() {
            let Range { start, end } = *step.outputs.get(*index).unwrap_or(&step.scratch);
            let (before, tail) = std::mem::take(&mut rest).split_at_mut(start - at);
            let (own, tail) = tail.split_at_mut(end - start);
            parts.inputs.gaps[gap] = before;
            parts.written[*index] = own;
            (rest, at) = (tail, end);
        }
        parts.inputs.gaps[step.order.written.len()] = rest;
    }
}

/// How the operands of a step are in the arena: what is written, and the gaps before, between and behind.
#[derive(Debug)]
pub(super) struct Order {
    /// The outputs, and behind them the scratch memory, in the order in which they are there.
    written: Vec<usize>,
    /// By input.
    read: Vec<Source>,
}

/// Where a step finds an input.
#[derive(Debug)]
pub(super) enum Source {
    /// It is left out.
    Nowhere,
    /// Bytes of the constant with this index.
    Constant(usize, usize),
    /// These bytes of the gap with this number.
    Gap(usize, Range<usize>),
    /// It overlaps what is written: the kernel changes it in place and does not ask for it, or it is a defect of the planner.
    Written,
}

impl Order {
    pub(super) fn new(
        inputs: &[Location],
        outputs: &[Range<usize>],
        scratch: &Range<usize>,
    ) -> Self {
        let range = |index: &usize| outputs.get(*index).unwrap_or(scratch);
        let mut written: Vec<usize> = (0..=outputs.len()).collect();
        written.sort_by_key(|index| (range(index).start, range(index).end));
        let begins = std::iter::once(0).chain(written.iter().map(|index| range(index).end));
        let ends = written.iter().map(|index| range(index).start).chain([usize::MAX]);
        let gaps: Vec<(usize, usize)> = begins.zip(ends).collect();
        let read = |input: &Location| match input {
            Location::Nowhere => Source::Nowhere,
            Location::Constant(constant, length) => Source::Constant(*constant, *length),
            Location::Arena(input) => {
                let is_in =
                    |(begin, end): &(usize, usize)| *begin <= input.start && input.end <= *end;
                gaps.iter().position(is_in).map_or(Source::Written, |gap| {
                    let begin = gaps[gap].0;
                    Source::Gap(gap, input.start - begin..input.end - begin)
                })
            }
        };
        let read = inputs.iter().map(read).collect();
        Self { written, read }
    }
}

/// The inputs of a step.
#[derive(Default)]
pub(crate) struct Inputs<'run> {
    /// What is not written.
    gaps: [&'run [u8]; MOST_WRITTEN + 1],
    sources: &'run [Source],
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
        match self.sources.get(index)? {
            Source::Nowhere => None,
            Source::Constant(constant, length) => {
                Some(&self.constants[*constant].elements::<u8>()[..*length])
            }
            Source::Gap(gap, bytes) => Some(&self.gaps[*gap][bytes.clone()]),
            Source::Written => panic!("inputs are disjoint from outputs"),
        }
    }

    /// The bytes of an input that is not left out.
    pub(crate) fn bytes(&self, index: usize) -> &'run [u8] {
        self.optional(index).unwrap_or_default()
    }
}
