//! Running recurrent layers: [`run`] one of them, [`run_both`] two over the same sequences.
#![allow(unsafe_code)]

use super::sequences::{Rows, Sequences, Steps, Workers};
use crate::disjoint::DisjointOutput;
use crate::team::Team;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// States that a layer has at most.
pub const MOST_STATES: usize = 2;

/// What a layer keeps from step to step: as many as it has, then nothing.
pub type States<'a> = [&'a mut [f32]; MOST_STATES];

/// A recurrent layer of one direction: [`Lstm`](super::Lstm) and [`Rnn`](super::Rnn).
pub trait Layer: fmt::Debug + Send + Sync {
    /// What it is called in profiles.
    const NAME: &'static str;

    /// How many states there are.
    const STATES: usize;

    /// Whether the operation of a single step has an output besides, before all others, that does not matter.
    const HAS_SCRATCH_OUTPUT: bool;

    /// Multiplications and additions of all steps.
    fn operations(&self) -> u64;

    /// The steps.
    fn sequences(&self) -> Sequences;

    /// Elements of a step of the output.
    fn output_size(&self) -> usize;

    /// How many numbers the inputs contribute, with what computing them wants besides.
    fn contributions(&self) -> usize;

    /// How many floats of scratch steps want besides.
    fn step_scratch(&self) -> usize;

    /// Multiplications of a step that the step before is needed for.
    fn step_products(&self) -> usize;

    /// Computes what inputs contribute.
    fn contribute(&self, team: &mut Team, steps: Steps<'_>, to: &mut [f32]);

    /// Takes all steps. The states are those before the first one, and become those after the last.
    fn take_steps(
        &self,
        workers: Workers<'_>,
        contributions: &[f32],
        states: States<'_>,
        output: Rows<'_>,
        scratch: &mut [f32],
    );
}

/// Where two layers write their steps.
#[derive(Debug)]
pub enum Outputs<'a> {
    /// Each to its own tensor.
    Separate([&'a mut [f32]; 2]),
    /// Beside each other in each row of one tensor.
    Merged(&'a mut [f32]),
}

/// How many floats of scratch [`run`] wants.
pub fn scratch_elements(layer: &impl Layer) -> usize {
    layer.contributions().saturating_add(layer.step_scratch())
}

/// Runs a layer.
///
/// # Panics
/// If a slice has not the size that was prepared for, or there is too little scratch.
pub fn run<L: Layer>(
    layer: &L,
    team: &mut Team,
    steps: Steps<'_>,
    states: States<'_>,
    output: &mut [f32],
    scratch: &mut [f32],
) {
    let width = layer.output_size();
    check_output(output, layer.sequences(), width);
    let output = DisjointOutput::new(output);
    // SAFETY: no one else has the output.
    let rows = unsafe { Rows::new(&output, width, [0, width]) };
    let (contributions, scratch) = scratch.split_at_mut(layer.contributions());
    layer.contribute(team, steps, contributions);
    layer.take_steps(Workers::Team(team), contributions, states, rows, scratch);
}

/// With more threads than these, or much to multiply in each step, threads are better used by one
/// layer after the other.
const MOST_THREADS_SEPARATE: usize = 3;

/// See above.
const MOST_PRODUCTS_SEPARATE: usize = 1 << 19;

/// Runs two layers, at the same time if that is sooner.
///
/// # Panics
/// As [`run`].
pub fn run_both<L: Layer>(
    layers: [&L; 2],
    team: &mut Team,
    steps: [Steps<'_>; 2],
    states: [States<'_>; 2],
    outputs: Outputs<'_>,
    scratch: &mut [f32],
) {
    let [first, second] = layers.map(L::sequences);
    assert_eq!([first.batch, first.time], [second.batch, second.time], "other sequences");
    let sizes = layers.map(L::output_size);
    let (first, second, strides, offset) = match outputs {
        Outputs::Separate([first, second]) => {
            check_output(first, layers[0].sequences(), sizes[0]);
            check_output(second, layers[1].sequences(), sizes[1]);
            (DisjointOutput::new(first), Some(DisjointOutput::new(second)), sizes, 0)
        }
        Outputs::Merged(output) => {
            let width = sizes[0] + sizes[1];
            check_output(output, layers[0].sequences(), width);
            (DisjointOutput::new(output), None, [width; 2], sizes[0])
        }
    };
    // SAFETY: no one else has the outputs, and the two write different ones or different parts of
    // each row.
    let rows = unsafe {
        let behind = second.as_ref().unwrap_or(&first);
        [
            Rows::new(&first, strides[0], [0, sizes[0]]),
            Rows::new(behind, strides[1], [offset, sizes[1]]),
        ]
    };
    let (scratch, scratch_behind) = scratch.split_at_mut(scratch_elements(layers[0]));
    let mut jobs =
        [scratch, scratch_behind].into_iter().zip(layers).zip(steps).zip(states).zip(rows);
    let mut job = || {
        let ((((scratch, layer), steps), states), rows) = jobs.next()?;
        let (contributions, scratch) = scratch.split_at_mut(layer.contributions());
        layer.contribute(team, steps, contributions);
        Some((layer, &*contributions, states, rows, scratch))
    };
    let jobs = [job(), job()];
    let products = layers.map(L::step_products).into_iter().max().unwrap_or(0);
    let are_separate =
        team.threads() <= MOST_THREADS_SEPARATE && products <= MOST_PRODUCTS_SEPARATE;
    if team.threads() > 1 && are_separate {
        let jobs = jobs.map(Mutex::new);
        team.run_long(jobs.len(), &|index, stop| {
            let job = jobs[index].lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some((layer, contributions, states, rows, scratch)) = job else { return };
            layer.take_steps(Workers::Caller(stop), contributions, states, rows, scratch);
        });
        return;
    }
    for (layer, contributions, states, rows, scratch) in jobs.into_iter().flatten() {
        layer.take_steps(Workers::Team(team), contributions, states, rows, scratch);
    }
}

fn check_output(output: &[f32], sequences: Sequences, width: usize) {
    assert_eq!(Some(output.len()), sequences.rows().checked_mul(width), "outputs of another size");
}
