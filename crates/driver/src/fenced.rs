//! Executions behind sync fences (contract: section 12).
//!
//! A launched execution has a thread of its own, which waits for the fences, takes its turn,
//! computes, and signals. It keeps what it needs: the prepared model, the request's memory, the
//! fences' descriptors.

use crate::bindings::Bindings;
use crate::budget::{Budget, Interruption};
use crate::device::guarded;
use crate::error::EngineError;
use crate::interface::UsedFor;
use crate::prepared::Prepared;
use hal::device::FencedExecutionInfo;
use hal::fence::{FenceSignal, FenceState};
use hal::{
    Cancellation, Deadline, Error, ErrorStatus, ExecutionOptions, FencedExecution, Request, Result,
    SyncFence, Timing,
};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Launches an execution.
pub(crate) fn launch(
    prepared: &Prepared,
    request: &Request,
    wait_for: &[SyncFence],
    options: &ExecutionOptions,
    timeout_after_fences: Option<Duration>,
) -> Result<FencedExecution> {
    let called = Instant::now();
    let waits = any_unsignalled(wait_for)?;
    let used_for = if waits { UsedFor::WaitingExecution } else { UsedFor::FencedExecution };
    let launched = prepared.interface().bind(request, used_for)?;
    // Arguments before deadlines (contract: GEN-4, FENCE-9).
    let budget = Budget::for_execution(options, prepared.priority());
    budget.check_before_start().map_err(EngineError::from)?;

    let (signal, fence) = SyncFence::pair()?;
    let info = Arc::new(Info::default());
    let task = Task {
        prepared: prepared.clone(),
        request: request.clone(),
        launched,
        wait_for: wait_for.to_vec(),
        options: options.clone(),
        timeout_after_fences,
        called,
        outcome: Arc::clone(&info),
    };
    thread::Builder::new()
        .name("nnhal-fenced".to_owned())
        .spawn(move || task.run(signal))
        .map_err(|error| Error::new(ErrorStatus::ResourceExhaustedTransient, error))?;
    Ok(FencedExecution { sync_fence: Some(fence), info: Box::new(InfoOf(info)) })
}

/// Whether any of the fences goes on; one that has failed is the client's fault (FENCE-3).
fn any_unsignalled(fences: &[SyncFence]) -> Result<bool> {
    let mut waits = false;
    for (index, fence) in fences.iter().enumerate() {
        match fence.state()? {
            FenceState::Signalled => {}
            FenceState::Unsignalled => waits = true,
            FenceState::Failed => {
                return Err(Error::invalid(format!("fence {index} has failed already")));
            }
        }
    }
    Ok(waits)
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

/// An execution under way.
struct Task {
    prepared: Prepared,
    request: Request,
    /// The arguments as they were at launch.
    launched: Bindings,
    wait_for: Vec<SyncFence>,
    options: ExecutionOptions,
    timeout_after_fences: Option<Duration>,
    called: Instant,
    outcome: Arc<Info>,
}

impl Task {
    fn run(self, signal: FenceSignal) {
        let result = guarded(|| self.compute()).map_err(as_info);
        if result.is_err() {
            // Also where it never came to computing (contract: BUF-1).
            self.launched.uninitialise_buffers();
        }
        // A loop that takes too long ends like any other execution (contract: FENCE-15).
        let failure = match &result {
            Err(error) if !is_loop_timeout(error) => Some(error.clone()),
            _ => None,
        };
        let outcome = Arc::clone(&self.outcome);
        // Memory and fences are let go of before anybody is told.
        drop(self);
        // Nobody else sets it.
        let _ = outcome.0.set(result);
        match failure {
            None => signal.signal(),
            Some(error) => signal.fail(error),
        }
    }

    fn compute(&self) -> Result<(Timing, Timing)> {
        let stop = self.options.cancellation.as_ref().map(Cancellation::fence).transpose()?;
        let last_signalled =
            SyncFence::wait_all(&self.wait_for, self.options.deadline, stop.as_ref())?;
        let after_fences = self
            .timeout_after_fences
            .map(|duration| Deadline::after(duration.saturating_sub(last_signalled.elapsed())));
        // What was refused when it was launched cannot come here, but memory may have been cut
        // short since, and buffers may have changed hands (contract: EXEC-4).
        let bindings = self.prepared.interface().bind(&self.request, UsedFor::FencedExecution)?;
        let budget = Budget::for_execution(&self.options, self.prepared.priority());
        let budget = budget.until(after_fences).take_turn(self.prepared.scheduler());
        let budget = budget.map_err(EngineError::from)?;
        let computed = self.prepared.compute(&bindings, &budget, None);
        let (_, on_device) = computed.map_err(|failed| failed.error)?;
        if !self.options.measure {
            return Ok((Timing::NONE, Timing::NONE));
        }
        let timing =
            |in_driver| Timing { time_on_device: Some(on_device), time_in_driver: Some(in_driver) };
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
