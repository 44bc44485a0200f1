//! [`RunOptions`] and [`Ran`]: how a plan or a step is run, and what that has come to.

use crate::partition::value::Value;
use nnhal_hal::{Deadline, Hints, OutputShape, Timing};
use std::time::Duration;

/// How to run a plan.
#[derive(Clone, Copy)]
pub(super) struct RunOptions<'a> {
    pub(super) measure: bool,
    pub(super) deadline: Option<Deadline>,
    pub(super) loop_timeout: Option<Duration>,
    pub(super) hints: &'a Hints,
    /// Channels for executions in close succession, by step.
    pub(super) channels: &'a [Option<Box<dyn nnhal_hal::Burst>>],
}

/// An output after a run.
#[derive(Clone)]
pub(super) struct Produced {
    /// Its place; left out if no one wanted it.
    pub(super) value: Value,
    /// Its exact dimensions, as far as the device reports them.
    pub(super) shape: OutputShape,
}

/// What a run has come to.
pub(super) struct Ran {
    /// By position.
    pub(super) outputs: Vec<Produced>,
    pub(super) timing: Timing,
}

impl Ran {
    pub(super) fn shapes(&self) -> Vec<OutputShape> {
        self.outputs.iter().map(|output| output.shape.clone()).collect()
    }
}
