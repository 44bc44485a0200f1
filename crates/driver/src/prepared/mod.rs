//! [`Prepared`]: a [`nnhal_hal::PreparedModel`] over any program.

pub(crate) mod fenced;

use crate::bindings::Bindings;
use crate::budget::Budget;
use crate::buffers::tokens::KeptBuffers;
use crate::clients::{Admission, Clients};
use crate::engine::{Program, RunContext};
use crate::error::EngineError;
use crate::guarded::guarded;
use crate::interface::{Interface, UsedFor};
use crate::interruption::Interruption;
use crate::memory::Ledger;
use crate::observer::Observer;
use crate::owner::Owner;
use crate::planned_step::PlannedStep;
use crate::schedule::Scheduler;
use fenced::Pending;
use nnhal_hal::client::{AtLeaving, Holding};
use nnhal_hal::{
    Burst, Client, Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions,
    FencedExecution, LaunchedRequest, OutputShape, PreparedModel, Priority, Request, SyncFence,
    Timing,
};
use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A prepared model of a [`DriverDevice`](crate::DriverDevice), whichever its engine. Clones are
/// the same prepared model.
#[derive(Clone)]
pub struct Prepared(Arc<Inner>);

struct Inner {
    interface: Interface,
    /// `None` when its client has left.
    loaded: Mutex<Option<Loaded>>,
    priority: Priority,
    client: Client,
    owner: Owner,
    memory: Ledger,
    shared: Arc<Shared>,
    /// Lets go of the program.
    at_leaving: OnceLock<AtLeaving>,
}

/// What a prepared model has until its client leaves.
struct Loaded {
    program: Arc<dyn Program>,
    /// Counts it among the client's.
    _admission: Admission,
}

/// What the prepared models of a device have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Of the device, among all there have been.
    pub(crate) number: u64,
    /// Who has prepared models.
    pub(crate) clients: Arc<Clients>,
    /// Who may execute.
    pub(crate) executions: Scheduler,
    /// Who may prepare.
    pub(crate) preparations: Scheduler,
    /// Executions that wait for fences.
    pub(crate) pending: Pending,
    /// Whether a fenced execution is waited for in the call, which then returns no fence.
    pub(crate) ends_before_it_returns: AtomicBool,
}

impl Prepared {
    pub(crate) fn new(
        interface: Interface,
        program: Arc<dyn Program>,
        priority: Priority,
        client: Client,
        admission: Admission,
        shared: Arc<Shared>,
    ) -> Self {
        let owner = Owner::new(shared.number, &client);
        let prepared = Arc::new(Inner {
            interface: interface.with_owner(owner.clone()),
            loaded: Mutex::new(Some(Loaded { program, _admission: admission })),
            priority,
            memory: Ledger::of_client(&client),
            client,
            owner,
            shared,
            at_leaving: OnceLock::new(),
        });
        let weak = Arc::downgrade(&prepared);
        let at_leaving = prepared.client.at_leaving(move || {
            let prepared = weak.upgrade();
            let loaded = prepared.and_then(|prepared| prepared.lock().take());
            // Outside of the lock: it may take its time.
            drop(loaded);
        });
        // No one has set it before.
        let _ = prepared.at_leaving.set(at_leaving);
        Self(prepared)
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
        self.0.program().map_or_else(Vec::new, |program| program.plan())
    }

    /// Rank among the client's prepared models.
    pub(crate) fn priority(&self) -> Priority {
        self.0.priority
    }

    /// What it has in common with the others of its device.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    /// Who may name its buffers.
    pub(crate) fn owner(&self) -> &Owner {
        &self.0.owner
    }

    /// What an execution may take.
    pub(crate) fn budget(&self, options: &ExecutionOptions) -> Budget {
        self.budget_at(options, self.0.priority)
    }

    fn budget_at(&self, options: &ExecutionOptions, priority: Priority) -> Budget {
        Budget::for_execution_of(self.0.client.clone(), options, priority)
    }

    /// As [`PreparedModel::execute`], with a priority of this execution alone.
    ///
    /// # Errors
    /// As [`PreparedModel::execute`].
    pub fn execute_at(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        priority: Priority,
    ) -> Result<Execution, ExecutionError> {
        let none = KeptBuffers::default();
        guarded(|| self.run(request, &none, options, self.budget_at(options, priority), None))
    }

    /// As [`PreparedModel::execute`], with an observer.
    ///
    /// # Errors
    /// As [`PreparedModel::execute`].
    pub fn execute_observed(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        observer: &dyn Observer,
    ) -> Result<Execution, ExecutionError> {
        let none = KeptBuffers::default();
        guarded(|| self.run(request, &none, options, self.budget(options), Some(observer)))
    }

    fn run(
        &self,
        request: &Request,
        kept: &KeptBuffers,
        options: &ExecutionOptions,
        budget: Budget,
        observer: Option<&dyn Observer>,
    ) -> Result<Execution, ExecutionError> {
        // Looking at the clock takes as long as ten operations on memory: tiny networks would notice.
        let called = options.measure.then(Instant::now);
        // Arguments before deadlines (contract: GEN-4).
        let bindings = self.0.interface.bind_kept(request, UsedFor::Execution, kept);
        let bindings = bindings.map_err(Error::from)?;
        let (output_shapes, on_device) = self.compute(bindings, budget, options, observer)?;
        let in_driver = called.map(|called| called.elapsed());
        let timing = Timing { time_on_device: on_device, time_in_driver: in_driver };
        Ok(Execution { output_shapes, timing })
    }

    /// Runs the program when it gets a slot, and settles what has become of buffers. The time is the
    /// program's, if the options want it.
    pub(crate) fn compute(
        &self,
        bindings: Bindings,
        budget: Budget,
        options: &ExecutionOptions,
        observer: Option<&dyn Observer>,
    ) -> Result<(Vec<OutputShape>, Option<Duration>), ExecutionError> {
        // From here on every failure is the execution's, also one that never gets a slot.
        let mut execution = Outputs { bindings, hold_values: false };
        let _held = self.0.client.hold(Holding::Executions, 1).map_err(Error::from)?;
        execution.bindings.keep_files_out(&self.0.memory, &budget)?;
        let budget = budget.take_slot(&self.0.shared.executions).map_err(EngineError::from)?;
        let bindings = &execution.bindings;
        // The client may have left since the request was looked at. It has, for whoever asks, a moment
        // before the program is let go of.
        let program = self.0.program().filter(|_| !self.0.client.has_left());
        let program = program.ok_or(Interruption::Cancelled).map_err(EngineError::from)?;
        let launched = options.measure.then(Instant::now);
        let span = tracing::debug_span!("execute").entered();
        program.run(bindings, &RunContext { budget: &budget, observer, hints: &options.hints })?;
        drop(span);
        let on_device = launched.map(|launched| launched.elapsed());
        // Others may compute while outputs are written into files.
        drop(budget);
        let output_shapes = conclude(&mut execution.bindings)?;
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
            self.bindings.initialize_buffers();
        } else {
            self.bindings.uninitialize_buffers();
        }
    }
}

/// The shapes of what was delivered, if every buffer was long enough (contract: SHAPE-4).
pub(crate) fn conclude(bindings: &mut Bindings) -> Result<Vec<OutputShape>, ExecutionError> {
    let output_shapes = bindings.take_output_shapes().map_err(EngineError::from)?;
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
        let none = KeptBuffers::default();
        guarded(|| self.run(request, &none, options, self.budget(options), None))
    }

    fn client(&self) -> Client {
        self.0.client.clone()
    }

    fn discard_outputs(&self, request: &Request) {
        self.0.interface.discard_outputs(request, &KeptBuffers::default());
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

    fn check_kept_request(&self, request: &Request) -> nnhal_hal::Result<()> {
        guarded(|| {
            self.0.interface.bind(request, UsedFor::KeptRequest)?;
            Ok(())
        })
    }

    fn launch(&self, request: &Request) -> nnhal_hal::Result<Option<Box<dyn LaunchedRequest>>> {
        guarded(|| {
            let kept = self.0.interface.keep_buffers(request);
            self.0.interface.bind_kept(request, UsedFor::Execution, &kept)?;
            let launched = Launched { prepared: self.clone(), request: request.clone(), kept };
            Ok(Some(Box::new(launched) as Box<dyn LaunchedRequest>))
        })
    }
}

/// A request that was accepted, with its buffers.
struct Launched {
    prepared: Prepared,
    request: Request,
    kept: KeptBuffers,
}

impl LaunchedRequest for Launched {
    fn execute(&self, options: &ExecutionOptions) -> Result<Execution, ExecutionError> {
        let Self { prepared, request, kept } = self;
        guarded(|| prepared.run(request, kept, options, prepared.budget(options), None))
    }

    fn discard_outputs(&self) {
        self.prepared.interface().discard_outputs(&self.request, &self.kept);
    }
}

impl Inner {
    /// Nothing is left half done under the lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, Option<Loaded>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn program(&self) -> Option<Arc<dyn Program>> {
        self.lock().as_ref().map(|loaded| Arc::clone(&loaded.program))
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prepared")
            .field("interface", &self.0.interface)
            .field("priority", &self.0.priority)
            .field("client", &self.0.client)
            .finish_non_exhaustive()
    }
}
