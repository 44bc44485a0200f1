//! [`State`]: what an execution is set to, what it is doing, and what came of it.

use super::arguments::Arguments;
use super::observer::Observed;
use super::{DurationCode, OutputDimensions};
use crate::error::{Error, Result, ResultCode};
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::{Hints, OutputShape, Timing};
use std::sync::Arc;
use std::time::Duration;

/// What an execution is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Arguments can be set.
    Preparation,
    /// It goes on.
    Computation,
    /// It has ended, and how.
    Completed(Completion),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completion {
    NoError,
    OutputInsufficientSize,
    OtherError,
}

pub(super) struct State {
    pub(super) phase: Phase,
    /// Shared with an execution that goes on; changed only before the first.
    pub(super) arguments: Arc<Arguments>,
    pub(super) measure: bool,
    pub(super) reusable: bool,
    pub(super) timeout: Option<Duration>,
    pub(super) loop_timeout: Option<Duration>,
    /// As the arguments.
    pub(super) attributes: Arc<Hints>,
    /// While it goes on.
    pub(super) observed: Option<Observed>,
    /// Of the last execution that got so far.
    output_shapes: Vec<OutputShape>,
    timing: Times,
}

/// From launch to end, and from the last dependency to end.
pub(super) enum Times {
    Known(Timing, Timing),
    /// The device knows.
    Asked(Box<dyn FencedExecutionInfo>),
}

/// What came of an execution that got as far as computing.
pub(super) struct Outcome {
    /// One per output.
    pub(super) output_shapes: Vec<OutputShape>,
    pub(super) times: Times,
}

/// Why an execution failed. Only `OUTPUT_INSUFFICIENT_SIZE` comes with shapes.
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) output_shapes: Vec<OutputShape>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, output_shapes: Vec::new() }
    }
}

impl State {
    pub(super) fn new(arguments: Arguments) -> Self {
        Self {
            phase: Phase::Preparation,
            arguments: Arc::new(arguments),
            measure: false,
            reusable: false,
            timeout: None,
            loop_timeout: None,
            attributes: Arc::default(),
            observed: None,
            output_shapes: Vec::new(),
            timing: Times::Known(Timing::NONE, Timing::NONE),
        }
    }

    /// The arguments, to be changed.
    pub(super) fn arguments_mut(&mut self) -> &mut Arguments {
        Arc::make_mut(&mut self.arguments)
    }

    /// Begins to compute.
    pub(super) fn start(&mut self) -> Result<()> {
        match self.phase {
            Phase::Computation => return Err(Error::bad_state("the execution goes on")),
            Phase::Completed(_) if !self.reusable => {
                return Err(Error::bad_state("the execution has ended, and is not reusable"));
            }
            Phase::Preparation | Phase::Completed(_) => {}
        }
        self.phase = Phase::Computation;
        Ok(())
    }

    /// Ends computing, and settles what memory made from descriptions holds now.
    pub(super) fn finish(&mut self, outcome: Result<Outcome, Failure>) -> Result<()> {
        let result = self.settle(outcome);
        self.phase = Phase::Completed(match &result {
            Ok(()) => Completion::NoError,
            Err(error) if error.code() == ResultCode::OutputInsufficientSize => {
                Completion::OutputInsufficientSize
            }
            Err(_) => Completion::OtherError,
        });
        result
    }

    fn settle(&mut self, outcome: Result<Outcome, Failure>) -> Result<()> {
        match outcome {
            Ok(outcome) => {
                self.arguments.settle_memories(Some(&outcome.output_shapes))?;
                self.output_shapes = outcome.output_shapes;
                self.timing = outcome.times;
                Ok(())
            }
            Err(Failure { error, output_shapes }) => {
                self.arguments.settle_memories(None)?;
                self.output_shapes = output_shapes;
                Err(error)
            }
        }
    }

    pub(super) fn duration(&self, code: DurationCode) -> Result<Option<Duration>> {
        match self.phase {
            Phase::Completed(Completion::NoError) => {}
            Phase::Completed(_) => return Err(Error::bad_state("the execution has failed")),
            _ => return Err(Error::bad_state("the execution has not ended")),
        }
        if !self.measure {
            return Err(Error::bad_state("the execution was not asked to measure"));
        }
        let (launched, fenced) = match &self.timing {
            Times::Known(launched, fenced) => (*launched, *fenced),
            Times::Asked(info) => info.get().map_err(|error| {
                Error::bad_state(format!("the device does not tell the times: {error}"))
            })?,
        };
        Ok(match code {
            DurationCode::OnHardware => launched.time_on_device,
            DurationCode::InDriver => launched.time_in_driver,
            DurationCode::FencedOnHardware => fenced.time_on_device,
            DurationCode::FencedInDriver => fenced.time_in_driver,
        })
    }

    pub(super) fn output_dimensions(&self, index: u32) -> Result<OutputDimensions> {
        match self.phase {
            Phase::Completed(Completion::NoError | Completion::OutputInsufficientSize) => {}
            Phase::Completed(Completion::OtherError) => {
                return Err(Error::bad_state("the execution has failed"));
            }
            _ => return Err(Error::bad_state("the execution has not ended")),
        }
        let count = self.output_shapes.len();
        let shape = self.output_shapes.get(index as usize);
        let shape = shape.ok_or_else(|| Error::bad_data(format!("output {index} of {count}")))?;
        Ok(OutputDimensions {
            dimensions: shape.dimensions.clone(),
            is_sufficient: shape.is_sufficient,
        })
    }
}
