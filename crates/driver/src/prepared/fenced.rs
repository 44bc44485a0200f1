//! Executions behind sync fences (contract: section 12).
//!
//! A launched execution waits for its fences together with all others ([`Background`]), then takes a
//! slot, computes, and signals. It keeps what it needs: the prepared model, the request's memory, the
//! fences' descriptors.

use super::Prepared;
use crate::bindings::Bindings;
use crate::buffers::tokens::KeptBuffers;
use crate::error::EngineError;
use crate::guarded::guarded;
use crate::interface::UsedFor;
use crate::interruption::Interruption;
use nnhal_hal::background::{Background, Job, Limits, NotRun};
use nnhal_hal::client::{Held, Holding};
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::fence::{FenceSignal, FenceWaitError};
use nnhal_hal::{
    Cancellation, Deadline, Error, ErrorStatus, ExecutionOptions, FencedExecution,
    PreparedModel as _, Priority, Request, Result, SyncFence, Timing,
};
use rustix::fs::FileType;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_millis(500);

/// The launched executions of one device that have not ended.
pub(crate) type Pending = Background<Task>;

/// None yet. Each client has, for each priority, `executions_at_once` threads that run them. How many may wait is limited for each client (`Holding::FencedExecutions`).
pub(crate) fn pending(executions_at_once: usize) -> Pending {
    let limits = Limits { threads: executions_at_once, waiting: usize::MAX, idle: IDLE };
    Background::new("nnhal-fenced", limits)
}

/// Launches an execution.
pub(crate) fn launch(
    prepared: &Prepared,
    request: &Request,
    wait_for: &[SyncFence],
    options: &ExecutionOptions,
    timeout_after_fences: Option<Duration>,
) -> Result<FencedExecution> {
    let called = Instant::now();
    let unsignalled = unsignalled(wait_for)?;
    let waits = !unsignalled.is_empty();
    let used_for = if waits { UsedFor::WaitingExecution } else { UsedFor::FencedExecution };
    let kept = prepared.interface().keep_buffers(request);
    let launched = prepared.interface().bind_kept(request, used_for, &kept)?;
    // Arguments before deadlines (contract: GEN-4, FENCE-9).
    let budget = prepared.budget(options);
    if let Err(interruption) = budget.check_before_start() {
        // The request was right, so this is an execution that failed (contract: BUF-1).
        launched.uninitialize_buffers();
        return Err(EngineError::from(interruption).into());
    }

    let client = prepared.client();
    let held = client.hold(Holding::FencedExecutions, 1)?;
    // Of fences that never signal it never ends.
    request.kept_by(&client)?;
    let fences = u64::try_from(unsignalled.len()).unwrap_or(u64::MAX);
    let fences = client.hold(Holding::Descriptors, fences)?;
    let (signal, fence) = SyncFence::pair()?;
    let info = Arc::new(Info::default());
    let task = Task {
        prepared: prepared.clone(),
        request: request.clone(),
        kept,
        launched,
        options: options.clone(),
        timeout_after_fences,
        called,
        outcome: Arc::clone(&info),
        signal,
        held: [held, fences],
    };
    prepared.shared().pending.start(task, unsignalled)?;
    if prepared.shared().ends_before_it_returns.load(Ordering::Relaxed) {
        fence.wait(None)?;
        let info = InfoOf(info);
        info.get()?;
        return Ok(FencedExecution { sync_fence: None, info: Box::new(info) });
    }
    Ok(FencedExecution { sync_fence: Some(fence), info: Box::new(InfoOf(info)) })
}

/// Those of the fences that go on, with their indexes; one that has failed is the client's fault
/// (FENCE-3).
fn unsignalled(fences: &[SyncFence]) -> Result<Vec<(usize, SyncFence)>> {
    let unsignalled = SyncFence::unsignalled(fences).map_err(|error| match error {
        FenceWaitError::Failed { index, .. } => {
            Error::invalid(format!("fence {index} has failed already"))
        }
        error => error.into(),
    })?;
    for (index, fence) in &unsignalled {
        if is_file(fence)? {
            return Err(Error::invalid(format!("fence {index} is a file, which is no fence")));
        }
    }
    Ok(unsignalled)
}

/// Whether it is an ordinary file or folder. Those are always ready, unless their file system is a
/// program (FUSE), which may take as long as it likes to answer whoever polls.
fn is_file(fence: &SyncFence) -> Result<bool> {
    let mode = rustix::fs::fstat(fence).map_err(Error::failure)?.st_mode;
    Ok(matches!(FileType::from_raw_mode(mode), FileType::RegularFile | FileType::Directory))
}

/// What became of an execution, once it has ended.
#[derive(Debug, Default)]
struct Info(OnceLock<Result<(Timing, Timing)>>);

#[derive(Debug)]
struct InfoOf(Arc<Info>);

impl FencedExecutionInfo for InfoOf {
    fn get(&self) -> Result<(Timing, Timing)> {
        let unfinished = || Err(Error::failure("the execution goes on"));
        self.0.0.get().cloned().unwrap_or_else(unfinished)
    }
}

/// An execution running.
#[derive(Debug)]
pub(crate) struct Task {
    prepared: Prepared,
    request: Request,
    /// The buffers that it names: their client may let go of them (contract: CONC-3).
    kept: KeptBuffers,
    /// The arguments as they were at launch.
    launched: Bindings,
    options: ExecutionOptions,
    timeout_after_fences: Option<Duration>,
    called: Instant,
    outcome: Arc<Info>,
    signal: FenceSignal,
    /// Itself, and the fences that it waits for.
    held: [Held; 2],
}

/// Executions with the same claim to be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class {
    /// The client's id.
    client: u64,
    priority: Priority,
}

impl Job for Task {
    /// Separate, so that many tasks of low priority or of another client, each waiting for a slot, do
    /// not keep one of high priority from asking for its own (contract: QOS-1).
    type Class = Class;

    fn class(&self) -> Class {
        Class { client: self.prepared.client().id(), priority: self.prepared.priority() }
    }

    /// Its own switch, and its client's leaving.
    fn switches(&self) -> Vec<Cancellation> {
        let leaving = self.prepared.client().leaving().cloned();
        self.options.cancellation.iter().cloned().chain(leaving).collect()
    }

    fn deadline(&self) -> Option<Deadline> {
        self.options.deadline
    }

    /// When its result is no longer wanted, given when the last fence signalled.
    fn deadline_after(&self, signalled: Instant) -> Option<Deadline> {
        let after_fences = self
            .timeout_after_fences
            .map(|duration| Deadline::after(duration.saturating_sub(signalled.elapsed())));
        self.options.deadline.into_iter().chain(after_fences).min()
    }

    fn run(self, signalled: Instant) {
        let result = guarded(|| self.compute(signalled));
        self.conclude(result);
    }

    fn end(self, why: NotRun) {
        self.conclude(Err(match why {
            NotRun::Cancelled => EngineError::from(Interruption::Cancelled).into(),
            NotRun::DeadlinePassed => EngineError::from(Interruption::DeadlinePassed).into(),
            why => why.into(),
        }));
    }
}

impl Task {
    /// Says what became of it.
    fn conclude(self, result: Result<(Timing, Timing)>) {
        let result = result.map_err(as_info);
        if result.is_err() {
            // Also where it never came to computing (contract: BUF-1).
            self.launched.uninitialize_buffers();
        }
        // A loop that takes too long ends like any other execution (contract: FENCE-15).
        let failure = match &result {
            Err(error) if !is_loop_timeout(error) => Some(error.clone()),
            _ => None,
        };
        let Self { outcome, signal, held, prepared, request, kept, launched, options, .. } = self;
        // Memory and fences are let go of before anybody is notified.
        drop((prepared, request, kept, launched, options, held));
        // No one else sets it.
        let _ = outcome.0.set(result);
        match failure {
            None => signal.signal(),
            Some(error) => signal.fail(error),
        }
    }

    fn compute(&self, last_signalled: Instant) -> Result<(Timing, Timing)> {
        // What was refused when it was launched cannot come here, but memory may have been cut
        // short since, and buffers may hold something else (contract: EXEC-4).
        let interface = self.prepared.interface();
        let bindings = interface.bind_kept(&self.request, UsedFor::FencedExecution, &self.kept)?;
        let budget = self.prepared.budget(&self.options);
        let budget = budget.until(self.deadline_after(last_signalled));
        let computed = self.prepared.compute(bindings, budget, &self.options, None);
        let (_, on_device) = computed.map_err(|failed| failed.error)?;
        if !self.options.measure {
            return Ok((Timing::NONE, Timing::NONE));
        }
        let timing =
            |in_driver| Timing { time_on_device: on_device, time_in_driver: Some(in_driver) };
        Ok((timing(self.called.elapsed()), timing(last_signalled.elapsed())))
    }
}

/// A request that has turned out wrong only now is a failure of the execution: the status list of
/// `getExecutionInfo` has no `INVALID_ARGUMENT` (contract: FENCE-11).
fn as_info(error: Error) -> Error {
    match error.status() {
        ErrorStatus::InvalidArgument | ErrorStatus::OutputInsufficientSize => Error::failure(error),
        _ => error,
    }
}

fn is_loop_timeout(error: &Error) -> bool {
    let reason = error.reason::<EngineError>();
    matches!(reason, Some(EngineError::Interrupted(Interruption::LoopTimeout { .. })))
}
