//! [`Prepared`]: a [`nnhal_hal::PreparedModel`] over any program.

use crate::bindings::Bindings;
use crate::budget::Budget;
use crate::device::guarded;
use crate::engine::{Program, RunContext};
use crate::error::EngineError;
use crate::fenced;
use crate::fenced::pending::Pending;
use crate::interface::{Interface, UsedFor};
use crate::memory::Ledger;
use crate::observer::Observer;
use crate::planned_step::PlannedStep;
use crate::schedule::Scheduler;
use nnhal_hal::{
    Burst, Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions, FencedExecution,
    OutputShape, PreparedModel, Priority, Request, SyncFence, Timing,
};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A prepared model of a [`DriverDevice`](crate::DriverDevice), whichever its engine. Clones are
/// the same prepared model.
#[derive(Clone)]
pub struct Prepared(Arc<Inner>);

struct Inner {
    interface: Interface,
    program: Box<dyn Program>,
    priority: Priority,
    scheduler: Scheduler,
    pending: Pending,
}

impl Prepared {
    pub(crate) fn new(
        interface: Interface,
        program: Box<dyn Program>,
        priority: Priority,
        scheduler: Scheduler,
        pending: Pending,
    ) -> Self {
        Self(Arc::new(Inner { interface, program, priority, scheduler, pending }))
    }

    /// The prepared model behind the trait, if it is a driver's.
    pub fn of(prepared: &dyn PreparedModel) -> Option<&Self> {
        let any: &dyn Any = prepared;
        any.downcast_ref()
    }

    /// What requests must fit.
    pub fn interface(&self) -> &Interface {
        &self.0.interface
    }

    /// The program's plan; empty if it has none.
    pub fn plan(&self) -> Vec<PlannedStep> {
        self.0.program.plan()
    }

    /// Rank among the client's prepared models.
    pub(crate) fn priority(&self) -> Priority {
        self.0.priority
    }

    /// Who gives this model's executions their turns: its device's.
    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.0.scheduler
    }

    /// The executions of its device that wait for fences.
    pub(crate) fn pending(&self) -> &Pending {
        &self.0.pending
    }

    /// As [`PreparedModel::execute`], with someone who watches.
    ///
    /// # Errors
    /// As [`PreparedModel::execute`].
    pub fn execute_observed(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        observer: &dyn Observer,
    ) -> Result<Execution, ExecutionError> {
        guarded(|| self.run(request, options, Some(observer)))
    }

    fn run(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        observer: Option<&dyn Observer>,
    ) -> Result<Execution, ExecutionError> {
        let called = Instant::now();
        // Arguments before deadlines (contract: GEN-4).
        let bindings = self.0.interface.bind(request, UsedFor::Execution).map_err(Error::from)?;
        let budget = Budget::for_execution(options, self.0.priority);
        let (output_shapes, on_device) = self.compute(bindings, budget, observer)?;
        let timing = if options.measure {
            let in_driver = called.elapsed();
            Timing { time_on_device: Some(on_device), time_in_driver: Some(in_driver) }
        } else {
            Timing::NONE
        };
        Ok(Execution { output_shapes, timing })
    }

    /// Runs the program when it is its turn, and settles what has become of buffers. The time is the
    /// program's.
    pub(crate) fn compute(
        &self,
        bindings: Bindings,
        budget: Budget,
        observer: Option<&dyn Observer>,
    ) -> Result<(Vec<OutputShape>, Duration), ExecutionError> {
        // From here on every failure is the execution's, also one that never comes to its turn.
        let mut execution = Outputs { bindings, hold_values: false };
        execution.bindings.keep_files_out(Ledger::process())?;
        let budget = budget.take_turn(&self.0.scheduler).map_err(EngineError::from)?;
        let bindings = &execution.bindings;
        let launched = Instant::now();
        self.0.program.run(bindings, &RunContext { budget: &budget, observer })?;
        let on_device = launched.elapsed();
        // Others may compute while outputs are written into files.
        drop(budget);
        let output_shapes = conclude(bindings)?;
        execution.hold_values = true;
        Ok((output_shapes, on_device))
    }
}

/// Settles, when dropped, whether the buffers that an execution writes hold values, also when the
/// engine panics (contract: BUF-1).
struct Outputs {
    bindings: Bindings,
    hold_values: bool,
}

impl Drop for Outputs {
    fn drop(&mut self) {
        if self.hold_values {
            self.bindings.initialise_buffers();
        } else {
            self.bindings.uninitialise_buffers();
        }
    }
}

/// The shapes of what was delivered, if every buffer was long enough (contract: SHAPE-4).
fn conclude(bindings: &Bindings) -> Result<Vec<OutputShape>, ExecutionError> {
    let output_shapes = bindings.output_shapes().map_err(EngineError::from)?;
    bindings.write_files().map_err(EngineError::from)?;
    bindings.flush().map_err(EngineError::from)?;
    if output_shapes.iter().all(|shape| shape.is_sufficient) {
        return Ok(output_shapes);
    }
    let error = Error::new(ErrorStatus::OutputInsufficientSize, TooShort(output_shapes.clone()));
    Err(ExecutionError { error, output_shapes })
}

/// Outputs did not fit into their buffers.
#[derive(Debug, Clone)]
struct TooShort(Vec<OutputShape>);

impl fmt::Display for TooShort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("too short a buffer for")?;
        let short = self.0.iter().enumerate().filter(|(_, shape)| !shape.is_sufficient);
        for (nth, (output, shape)) in short.enumerate() {
            let separator = if nth == 0 { "" } else { "," };
            write!(formatter, "{separator} output {output} of shape {:?}", shape.dimensions)?;
        }
        Ok(())
    }
}

impl std::error::Error for TooShort {}

impl PreparedModel for Prepared {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        guarded(|| self.run(request, options, None))
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        guarded(|| fenced::launch(self, request, wait_for, options, timeout_after_fences))
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn Burst>> {
        Ok(Box::new(nnhal_burst::open(Arc::new(self.clone()))?))
    }

    fn check_request(&self, request: &Request) -> nnhal_hal::Result<()> {
        guarded(|| {
            self.0.interface.bind(request, UsedFor::Execution)?;
            Ok(())
        })
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prepared")
            .field("interface", &self.0.interface)
            .field("priority", &self.0.priority)
            .finish_non_exhaustive()
    }
}
