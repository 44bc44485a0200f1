//! Broadcasting: how the operands of an operation by element are walked, block by block.

#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::sharing::{ELEMENTS_OF_TASK, short_tasks};
use crate::team::Team;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements of a block: of three operands of 4 bytes each, all fit into the first cache together.
pub(crate) const BLOCK: usize = 2048;

/// Operands of one operation at most.
pub(crate) const MOST_OPERANDS: usize = 6;

/// What becomes of a block: from what the operands contribute to the elements to write. Not a type parameter: the walk is
/// compiled once for each type of elements.
pub(crate) type Work<'a, T, U> = dyn Fn(&[Operand<'_, T>], &mut [U]) + Sync + 'a;

/// The same, of a first operand of another type and the others.
pub(crate) type WorkOfTwoTypes<'a, C, T> =
    dyn Fn(Operand<'_, C>, &[Operand<'_, T>], &mut [T]) + Sync + 'a;

/// How the elements of operands that broadcast to a common shape are walked.
///
/// Axes along which all operands go on in the same way are one axis. A block is some *steps* along
/// one axis, each of them `unit` elements long: single elements of a long last axis, or whole rows
/// of a short one.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// Lengths of the axes before that of the steps.
    outer: Vec<usize>,
    steps: usize,
    unit: usize,
    steps_per_block: usize,
    /// All there are.
    blocks: usize,
    /// Of the result.
    elements: usize,
    operands: Vec<Strides>,
}

/// By how many elements an operand goes on.
#[derive(Debug, Clone)]
struct Strides {
    /// Elements that the operand has.
    elements: usize,
    outer: Vec<usize>,
    step: usize,
    within_unit: usize,
}

/// What an operand contributes to a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operand<'a, T> {
    /// An element each.
    Elements(&'a [T]),
    /// The same for all.
    Same(T),
}

impl<T: Copy> Operand<'_, T> {
    /// The contribution to one element of the block.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> T {
        match self {
            Self::Elements(elements) => elements[index],
            Self::Same(element) => *element,
        }
    }
}

impl Walk {
    /// The walk over operands of these shapes, which are aligned at their last axes.
    ///
    /// # Panics
    /// If the shapes do not broadcast to a common one, or there are too many.
    pub(crate) fn new(shapes: &[&[usize]]) -> Self {
        assert!(shapes.len() <= MOST_OPERANDS, "{} operands are too many", shapes.len());
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
        // From the last axis to the first: the common length and each operand's stride.
        let mut axes: Vec<(usize, Vec<usize>)> = Vec::with_capacity(rank);
        let mut sizes = vec![1_usize; shapes.len()];
        for from_end in 0..rank {
            let length_of = |shape: &&[usize]| match shape.len().checked_sub(from_end + 1) {
                Some(axis) => shape[axis],
                None => 1,
            };
            let common = shapes.iter().map(length_of).find(|length| *length != 1).unwrap_or(1);
            let mut strides = Vec::with_capacity(shapes.len());
            for (shape, size) in shapes.iter().zip(&mut sizes) {
                let length = length_of(shape);
                assert!(length == 1 || length == common, "shapes {shapes:?} do not broadcast");
                strides.push(if length == 1 { 0 } else { *size });
                // Lengths before one of 0 may be any.
                *size = size.saturating_mul(length);
            }
            let goes_on = axes.last().is_some_and(|(length, before): &(usize, Vec<usize>)| {
                strides
                    .iter()
                    .zip(before)
                    .all(|(stride, before)| *stride == before.saturating_mul(*length))
            });
            match axes.last_mut() {
                _ if common == 1 => {}
                Some((length, _)) if goes_on && common != 0 => {
                    *length = length.saturating_mul(common)
                }
                _ => axes.push((common, strides)),
            }
        }
        let none = || (1, vec![0; shapes.len()]);
        let last = if axes.is_empty() { none() } else { axes.remove(0) };
        // Short rows: several of them are a block.
        let (steps, within) = if last.0 <= BLOCK / 2 && !axes.is_empty() {
            (axes.remove(0), last)
        } else {
            (last, none())
        };
        axes.reverse();
        let operands = (0..shapes.len())
            .map(|operand| Strides {
                elements: sizes[operand],
                outer: axes.iter().map(|(_, strides)| strides[operand]).collect(),
                step: steps.1[operand],
                within_unit: within.1[operand],
            })
            .collect();
        let outer: Vec<usize> = axes.into_iter().map(|(length, _)| length).collect();
        let lengths: Vec<usize> = outer.iter().copied().chain([steps.0, within.0]).collect();
        let elements = if lengths.contains(&0) {
            0
        } else {
            let product = lengths.into_iter().try_fold(1, usize::checked_mul);
            product.expect("a result larger than memory")
        };
        let steps_per_block = (BLOCK / within.0.max(1)).max(1);
        let blocks = if elements == 0 {
            0
        } else {
            outer.iter().product::<usize>() * steps.0.div_ceil(steps_per_block)
        };
        let (steps, unit) = (steps.0, within.0);
        Self { outer, steps, unit, steps_per_block, blocks, elements, operands }
    }

    /// How many operands there are.
    pub(crate) fn operands(&self) -> usize {
        self.operands.len()
    }

    /// How many elements the result has.
    #[cfg(test)]
    pub(crate) fn elements(&self) -> usize {
        self.elements
    }

    /// Writes the output: `work` is called for every block, with what the operands contribute and
    /// the elements to write; on several threads, if there is enough to do. There are `N` operands at most: the
    /// stack holds a block of each.
    ///
    /// # Panics
    /// If the output or an operand has not the number of elements that was prepared for.
    pub(crate) fn run<const N: usize, T: Copy + Sync, U: Send>(
        &self,
        team: &mut Team,
        operands: &[&[T]],
        output: &mut [U],
        work: &Work<'_, T, U>,
    ) {
        assert_eq!(operands.len(), self.operands.len(), "operands of another operation");
        check_sizes(operands, &self.operands);
        assert_eq!(output.len(), self.elements, "an output of another size");
        let output = DisjointOutput::new(output);
        self.share(team, |blocks| {
            let mut gathered = Gathered::<T, N>::new(self, &self.operands);
            for block in blocks {
                let block = self.block(block);
                let contributions = gathered.contributions(operands, &block);
                // SAFETY: every block has its own elements, and every task its own blocks.
                let output = unsafe { output.slice(block.start, block.length) };
                work(&contributions[..operands.len()], output);
            }
        });
    }

    /// As [`Self::run`], where the first operand is of another type than the others.
    ///
    /// # Panics
    /// As [`Self::run`].
    pub(crate) fn run_chosen<const N: usize, C: Copy + Sync, T: Copy + Send + Sync>(
        &self,
        team: &mut Team,
        first: &[C],
        operands: &[&[T]; N],
        output: &mut [T],
        work: &WorkOfTwoTypes<'_, C, T>,
    ) {
        let (of_first, others) = self.operands.split_at(1);
        assert_eq!(operands.len(), others.len(), "operands of another operation");
        assert_eq!(first.len(), of_first[0].elements, "an operand of another size");
        check_sizes(operands, others);
        assert_eq!(output.len(), self.elements, "an output of another size");
        let output = DisjointOutput::new(output);
        self.share(team, |blocks| {
            let mut of_condition = Gathered::<C, 1>::new(self, of_first);
            let mut of_others = Gathered::<T, N>::new(self, others);
            for block in blocks {
                let block = self.block(block);
                let [condition] = of_condition.contributions(&[first], &block);
                let contributions = of_others.contributions(operands, &block);
                // SAFETY: every block has its own elements, and every task its own blocks.
                let output = unsafe { output.slice(block.start, block.length) };
                work(condition, &contributions, output);
            }
        });
    }

    /// Calls `work` with the numbers of some blocks each, on several threads if there is enough to do.
    fn share(&self, team: &mut Team, work: impl Fn(Range<usize>) + Sync) {
        let worth = (self.elements / ELEMENTS_OF_TASK).min(self.blocks);
        let tasks = if worth == 0 { 1 } else { short_tasks(worth, team.threads(), 2) };
        if tasks == 1 {
            // Without divisions, which take a part of the time of few elements.
            return team.run(1, &|_| work(0..self.blocks));
        }
        team.run(tasks, &|task| {
            work(self.blocks * task / tasks..self.blocks * (task + 1) / tasks);
        });
    }

    /// The block of that number.
    fn block(&self, number: usize) -> Block {
        if self.blocks == 1 {
            return Block { row: 0, first: 0, steps: self.steps, start: 0, length: self.elements };
        }
        let blocks_per_row = self.steps.div_ceil(self.steps_per_block).max(1);
        let row = number / blocks_per_row;
        let first = number % blocks_per_row * self.steps_per_block;
        let steps = self.steps_per_block.min(self.steps - first);
        let start = (row * self.steps + first) * self.unit;
        Block { row, first, steps, start, length: steps * self.unit }
    }
}

/// Some steps of a row.
struct Block {
    row: usize,
    /// Of its steps in the row.
    first: usize,
    steps: usize,
    /// Its first element of the output, and how many there are.
    start: usize,
    length: usize,
}

fn check_sizes<T>(operands: &[&[T]], of_walk: &[Strides]) {
    for (operand, strides) in operands.iter().zip(of_walk) {
        assert_eq!(operand.len(), strides.elements, "an operand of another size");
    }
}

/// Elements of some of a walk's operands, brought together where they do not stand so.
struct Gathered<'w, T, const N: usize> {
    walk: &'w Walk,
    operands: &'w [Strides],
    slots: [MaybeUninit<[T; BLOCK]>; N],
    /// The offset and number of steps of what is there.
    places: [Option<(usize, usize)>; N],
}

impl<'w, T: Copy, const N: usize> Gathered<'w, T, N> {
    fn new(walk: &'w Walk, operands: &'w [Strides]) -> Self {
        let slots = [const { MaybeUninit::uninit() }; N];
        Self { walk, operands, slots, places: [None; N] }
    }

    /// What operands contribute to a block.
    fn contributions<'a>(&'a mut self, operands: &[&'a [T]], block: &Block) -> [Operand<'a, T>; N] {
        let walk = self.walk;
        let mut contributions = [const { Operand::Elements(&[] as &[T]) }; N];
        let places = contributions.iter_mut().zip(self.slots.iter_mut().zip(&mut self.places));
        for ((operand, strides), (contribution, (room, place))) in
            operands.iter().zip(self.operands).zip(places)
        {
            let outer = walk.outer.iter().copied().zip(strides.outer.iter().copied());
            let offset = offset_along(outer, block.row) + block.first * strides.step;
            let is_contiguous =
                strides.step == walk.unit && (strides.within_unit == 1 || walk.unit == 1);
            *contribution = if is_contiguous {
                Operand::Elements(&operand[offset..offset + block.length])
            } else if strides.step == 0 && strides.within_unit == 0 {
                Operand::Same(operand[offset])
            } else {
                let is_there = *place == Some((offset, block.steps));
                *place = Some((offset, block.steps));
                let steps = (block.steps, strides.step);
                let unit = (walk.unit, strides.within_unit);
                // SAFETY: with the same offset and number of steps, the same elements were
                // written by the block before.
                Operand::Elements(unsafe {
                    gather(room, &operand[offset..], steps, unit, is_there)
                })
            };
        }
        contributions
    }
}

/// Where the element of that number is, counted along axes of these lengths and strides.
#[inline(always)]
pub(crate) fn offset_along(
    axes: impl DoubleEndedIterator<Item = (usize, usize)>,
    mut number: usize,
) -> usize {
    let mut offset = 0;
    for (length, stride) in axes.rev() {
        offset += number % length * stride;
        number /= length;
    }
    offset
}

/// The elements of a block, brought together: a number of steps and of elements within each, and
/// by how many elements the operand goes on from one to the next.
///
/// # Safety
/// If they are said to be there, a call with the same steps and unit wrote them into this room.
unsafe fn gather<'r, T: Copy>(
    room: &'r mut MaybeUninit<[T; BLOCK]>,
    operand: &[T],
    (steps, step): (usize, usize),
    (unit, within): (usize, usize),
    is_there: bool,
) -> &'r [T] {
    let length = steps * unit;
    assert!(length <= BLOCK);
    let first: *mut T = room.as_mut_ptr().cast();
    if !is_there {
        for index in 0..steps {
            let from = &operand[index * step..];
            // SAFETY: within the room, as `length` is, and so below.
            let to = unsafe { first.add(index * unit) };
            match within {
                0 => {
                    let element = from[0];
                    // SAFETY: as above.
                    (0..unit).for_each(|position| unsafe { to.add(position).write(element) });
                }
                1 => {
                    for (position, element) in from[..unit].iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { to.add(position).write(*element) };
                    }
                }
                _ => {
                    for position in 0..unit {
                        // SAFETY: as above.
                        unsafe { to.add(position).write(from[position * within]) };
                    }
                }
            }
        }
    }
    // SAFETY: the loops wrote them, now or, as the caller promises, earlier.
    unsafe { std::slice::from_raw_parts(first, length) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every operand's element for each element of the result, by its definition.
    fn expected(shapes: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let padded: Vec<Vec<usize>> = shapes
            .iter()
            .map(|shape| [vec![1; rank - shape.len()], shape.clone()].concat())
            .collect();
        let lengths: Vec<usize> = (0..rank)
            .map(|axis| padded.iter().map(|shape| shape[axis]).find(|it| *it != 1).unwrap_or(1))
            .collect();
        (0..lengths.iter().product::<usize>())
            .map(|element| {
                let of_operand = |shape: &Vec<usize>| {
                    let (mut left, mut stride, mut at) = (element, 1, 0);
                    for axis in (0..rank).rev() {
                        at += left % lengths[axis] % shape[axis] * stride;
                        left /= lengths[axis];
                        stride *= shape[axis];
                    }
                    at
                };
                padded.iter().map(of_operand).collect()
            })
            .collect()
    }

    fn check(shapes: &[Vec<usize>], threads: usize) {
        let borrowed: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let walk = Walk::new(&borrowed);
        let operands: Vec<Vec<usize>> =
            shapes.iter().map(|shape| (0..shape.iter().product()).collect()).collect();
        let operands: Vec<&[usize]> = operands.iter().map(Vec::as_slice).collect();
        let mut output = vec![Vec::new(); walk.elements()];
        walk.run::<MOST_OPERANDS, _, _>(
            &mut Team::new(threads),
            &operands,
            &mut output,
            &|operands, output| {
                for (index, element) in output.iter_mut().enumerate() {
                    *element = operands.iter().map(|operand| operand.at(index)).collect();
                }
            },
        );
        assert_eq!(output, expected(shapes), "{shapes:?}");
    }

    #[test]
    fn shapes_of_models() {
        for threads in [1, 2] {
            check(&[vec![1, 7, 7, 2000], vec![1, 1, 1, 2000]], threads);
            check(&[vec![1, 28, 28, 72], vec![1, 1, 1, 72], vec![]], threads);
            check(&[vec![70, 300], vec![70, 1]], threads);
            check(&[vec![30_000], vec![30_000], vec![1]], threads);
            check(&[vec![0, 3], vec![1, 3]], threads);
            check(&[vec![], vec![]], threads);
            check(&[vec![2, 1, 5000], vec![3, 1]], threads);
        }
    }

    proptest! {
        #[test]
        fn all_shapes(
            lengths in prop::collection::vec(prop_oneof![0..5_usize, 20..40_usize], 0..4),
            masks in prop::collection::vec((any::<u8>(), 0..4_usize), 1..4),
        ) {
            let shapes: Vec<Vec<usize>> = masks.into_iter().map(|(mask, dropped)| {
                let some = lengths.iter().enumerate().skip(dropped);
                some.map(|(axis, length)| if mask >> axis & 1 == 1 { 1 } else { *length }).collect()
            }).collect();
            check(&shapes, 1);
        }
    }
}
