//! [`StepMemory`]: a step's operands as slices of the arena, of outputs beside it and of constants.

use super::{Location, Step};
use nnhal_hal::memory::BorrowedBytes;
use nnhal_kernels::{InputBytes, Lines, MOST_WRITTEN};
use std::ops::Range;

/// The memory of a plan while a step runs.
pub(crate) struct StepMemory<'run> {
    pub(crate) arena: &'run mut [u8],
    /// Of the outputs that are not in the arena, in the order of their ranges.
    pub(crate) beside: &'run mut [OutputMemory],
    pub(crate) constants: &'run [Lines],
    pub(crate) step: &'run Step,
}

/// The memory of an output that is not in the arena.
#[derive(Debug)]
pub(crate) enum OutputMemory {
    /// Where the caller wants it.
    Borrowed(BorrowedBytes),
    /// From where it is copied there.
    Own(Lines),
}

impl OutputMemory {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Own(lines) => lines.elements(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Own(lines) => lines.elements_mut(),
        }
    }
}

/// The operands of a step: slices of its memory, of which those to be written overlap nothing.
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
        let Self { arena, beside, constants, step } = self;
        let order = &step.order;
        parts.inputs.sources = &order.read;
        parts.inputs.constants = constants;
        parts.split_around(arena, (0, 0), step, 0..order.in_arena);
        let Some((index, start)) = order.beside else {
            parts.inputs.beside[0] = beside;
            return;
        };
        let (before, rest) = beside.split_at_mut(index);
        let [own, behind @ ..] = rest else { return };
        parts.inputs.beside = [before, behind];
        // The gap behind what is written in the arena comes before those beside it.
        let begin = (start, order.in_arena + 1);
        parts.split_around(own.bytes_mut(), begin, step, order.in_arena..order.written.len());
    }
}

impl<'run> Parts<'run> {
    /// Takes what is written out of memory that begins at `at`; the rest are gaps, from this number on.
    fn split_around(
        &mut self,
        mut rest: &'run mut [u8],
        (mut at, mut gap): (usize, usize),
        step: &Step,
        written: Range<usize>,
    ) {
        for index in &step.order.written[written] {
            let Range { start, end } = *step.outputs.get(*index).unwrap_or(&step.scratch);
            let (before, tail) = std::mem::take(&mut rest).split_at_mut(start - at);
            let (own, tail) = tail.split_at_mut(end - start);
            self.inputs.gaps[gap] = before;
            self.written[*index] = own;
            (rest, at, gap) = (tail, end, gap + 1);
        }
        self.inputs.gaps[gap] = rest;
    }
}

/// How the operands of a step are in memory: what is written, and the gaps before, between and behind.
#[derive(Debug)]
pub(super) struct Order {
    /// The outputs, and behind them the scratch memory, in the order in which they are there.
    written: Vec<usize>,
    /// How many of them are in the arena.
    in_arena: usize,
    /// The memory beside the arena that the others are in, and where that begins.
    beside: Option<(usize, usize)>,
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
    /// These bytes of an output that is not in the arena: the one of this number before, or behind, the one that is written.
    Beside([usize; 2], Range<usize>),
    /// It overlaps what is written: the kernel changes it in place and does not ask for it, or it is a defect of the planner.
    Written,
}

/// Which of the ranges beside the arena has these bytes.
fn find_beside(beside: &[Range<usize>], bytes: &Range<usize>) -> Option<usize> {
    let index = beside.partition_point(|it| it.start <= bytes.start).checked_sub(1)?;
    (bytes.end <= beside[index].end).then_some(index)
}

impl Order {
    /// `beside` are the ranges of outputs that are not in the arena, all behind it; of these a step writes into one at most.
    pub(super) fn new(
        inputs: &[Location],
        outputs: &[Range<usize>],
        scratch: &Range<usize>,
        beside: &[Range<usize>],
    ) -> Self {
        let range = |index: &usize| outputs.get(*index).unwrap_or(scratch);
        let mut written: Vec<usize> = (0..=outputs.len()).collect();
        written.sort_by_key(|index| (range(index).start, range(index).end));
        let place = |index: &usize| find_beside(beside, range(index));
        let in_arena = written.partition_point(|index| place(index).is_none());
        let own = written.last().and_then(place);
        // Where gaps begin and end: of the arena, then of the memory beside it.
        let mut gaps = Vec::with_capacity(written.len() + 2);
        let end_of_arena = beside.first().map_or(usize::MAX, |it| it.start);
        let whole = own.map_or(0..0, |own| beside[own].clone());
        for (all, written) in
            [(0..end_of_arena, &written[..in_arena]), (whole, &written[in_arena..])]
        {
            let begins = std::iter::once(all.start).chain(written.iter().map(|it| range(it).end));
            let ends = written.iter().map(|it| range(it).start).chain([all.end]);
            gaps.extend(begins.zip(ends));
        }
        let read = |input: &Location| match input {
            Location::Nowhere => Source::Nowhere,
            Location::Constant(constant, length) => Source::Constant(*constant, *length),
            Location::Arena(input) => {
                if let Some(index) = find_beside(beside, input)
                    && own != Some(index)
                {
                    let start = beside[index].start;
                    let at = match own {
                        Some(own) if index > own => [1, index - own - 1],
                        _ => [0, index],
                    };
                    return Source::Beside(at, input.start - start..input.end - start);
                }
                let is_in =
                    |(begin, end): &(usize, usize)| *begin <= input.start && input.end <= *end;
                gaps.iter().position(is_in).map_or(Source::Written, |gap| {
                    let begin = gaps[gap].0;
                    Source::Gap(gap, input.start - begin..input.end - begin)
                })
            }
        };
        let read = inputs.iter().map(read).collect();
        let beside = own.map(|own| (own, beside[own].start));
        Self { written, in_arena, beside, read }
    }
}

/// The inputs of a step.
#[derive(Default)]
pub(crate) struct Inputs<'run> {
    /// What is not written, of the arena and of the memory beside it that is.
    gaps: [&'run [u8]; MOST_WRITTEN + 2],
    /// The memory before and behind that.
    beside: [&'run [OutputMemory]; 2],
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
            Source::Beside([side, index], bytes) => {
                Some(&self.beside[*side][*index].bytes()[bytes.clone()])
            }
            Source::Written => panic!("inputs are disjoint from outputs"),
        }
    }

    /// The bytes of an input that is not left out.
    pub(crate) fn bytes(&self, index: usize) -> &'run [u8] {
        self.optional(index).unwrap_or_default()
    }
}
