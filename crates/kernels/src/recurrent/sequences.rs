//! What recurrent layers read and write: the steps of all sequences of a batch.
#![allow(unsafe_code)]

use crate::disjoint::DisjointOutput;
use crate::team::{Stop, Team, part};
use std::ops::Range;

/// How the steps of all sequences are in a tensor, whose rows are steps, and in which order they are
/// taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences {
    /// How many sequences.
    pub batch: usize,
    /// How many steps of each.
    pub time: usize,
    /// Whether inputs and outputs are `[time, batch, ...]` and not `[batch, time, ...]`.
    pub is_time_major: bool,
    /// Whether the last step comes first.
    pub is_backward: bool,
}

impl Sequences {
    /// One step of each sequence.
    pub fn single_step(batch: usize) -> Self {
        Self { batch, time: 1, is_time_major: true, is_backward: false }
    }

    /// Steps of all sequences.
    ///
    /// # Panics
    /// If they are more than memory can hold.
    pub fn rows(&self) -> usize {
        self.batch.checked_mul(self.time).expect("sequences beyond memory")
    }

    /// The row of a sequence's step, steps counted in the order in which they are taken.
    #[inline(always)]
    pub(super) fn row(&self, sequence: usize, step: usize) -> usize {
        let step = if self.is_backward { self.time - 1 - step } else { step };
        if self.is_time_major { step * self.batch + sequence } else { sequence * self.time + step }
    }
}

/// The inputs of all steps.
#[derive(Debug, Clone, Copy)]
pub struct Steps<'a> {
    /// `[rows, input]`
    pub input: &'a [f32],
    /// `[rows, auxiliary]`; empty where there is no auxiliary input with weights.
    pub auxiliary: &'a [f32],
}

impl<'a> Steps<'a> {
    /// Without an auxiliary input.
    pub fn of(input: &'a [f32]) -> Self {
        Self { input, auxiliary: &[] }
    }
}

/// Where a layer writes its steps: a part of each row of a tensor.
pub struct Rows<'a> {
    elements: &'a DisjointOutput<'a, f32>,
    /// From one row to the next.
    stride: usize,
    offset: usize,
    width: usize,
}

impl<'a> Rows<'a> {
    /// Those that are `width` elements, `offset` behind the beginning of each row of `stride`.
    ///
    /// # Safety
    /// As long as it exists, no one else reads or writes these elements of any row.
    ///
    /// # Panics
    /// If rows are shorter.
    pub(super) unsafe fn new(
        elements: &'a DisjointOutput<'a, f32>,
        stride: usize,
        [offset, width]: [usize; 2],
    ) -> Self {
        let is_inside = offset.checked_add(width).is_some_and(|end| end <= stride);
        assert!(is_inside, "{width} elements from {offset} on in rows of {stride}");
        Self { elements, stride, offset, width }
    }

    /// # Panics
    /// If the step has another size, or it is outside of the tensor.
    pub(super) fn write(&mut self, row: usize, step: &[f32]) {
        assert_eq!(step.len(), self.width, "a step of another size");
        let start = row * self.stride + self.offset;
        // SAFETY: no one else has this part of a row, as `new` was promised, and `self` is borrowed.
        unsafe { self.elements.slice(start, step.len()) }.copy_from_slice(step);
    }
}

/// Who does the tasks of a layer's steps.
pub enum Workers<'a> {
    /// The calling thread, in a task.
    Caller(&'a Stop),
    Team(&'a mut Team),
}

/// A thread that helps with less of a step's multiplications is notified of it when they could have been
/// done.
const LEAST_PRODUCTS: usize = 40_000;

impl Workers<'_> {
    /// Does the panels `0..panels` in parts: one for each thread, if there is so much to do. Which
    /// thread takes which part hardly ever changes from step to step, and so the weights of a thread
    /// stay in its cache.
    pub(super) fn share(
        &mut self,
        panels: usize,
        products: usize,
        work: &(dyn Fn(Range<usize>, &Stop) + Sync),
    ) {
        match self {
            Self::Team(team) => {
                let parts = (products / LEAST_PRODUCTS).min(panels).min(team.threads()).max(1);
                team.run_long(parts, &|index, stop| work(part(panels, parts, index), stop));
            }
            Self::Caller(stop) if stop.is_due() => {}
            Self::Caller(stop) => work(0..panels, stop),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_step_leaves_the_rest_of_its_row_alone() {
        let mut elements = [0.0; 8];
        let output = DisjointOutput::new(&mut elements);
        // SAFETY: no one else has the elements.
        let mut rows = unsafe { Rows::new(&output, 4, [1, 2]) };
        rows.write(1, &[5.0, 6.0]);
        catch_unwind(AssertUnwindSafe(|| rows.write(0, &[7.0; 3]))).unwrap_err();
        // SAFETY: as above.
        let beyond = || unsafe { Rows::new(&output, 4, [3, 2]) };
        assert!(catch_unwind(AssertUnwindSafe(|| _ = beyond())).is_err());
        assert_eq!(elements, [0., 0., 0., 0., 0., 5., 6., 0.]);
    }
}
