//! The ways to start an execution.

use super::bind::Bound;
use super::device_step::{argument, locate};
use super::job::{BehindDependencies, EndedBy, Job, LateOutcome, Started};
use super::observer::{Observed, Start};
use super::ran::{Ran, RunOptions};
use super::run::run;
use super::state::{Failure, Outcome, Times};
use super::{Arguments, Execution};
use crate::background::Task;
use crate::burst::Burst;
use crate::error::{Error, Result, ResultCode};
use crate::event::{Completion, Event};
use crate::operand::is_fully_specified;
use crate::partition::value::{Target, Value};
use nnhal_hal::{
    Deadline, ExecutionOptions, FencedExecution, Hints, OutputShape, Request, RequestArgument,
    SyncFence,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Execution {
    /// Runs it, and returns when it has ended.
    ///
    /// # Errors
    /// `BAD_DATA` if an argument is not given; `OUTPUT_INSUFFICIENT_SIZE`, and then
    /// [`Execution::output_dimensions`] tells how much room it takes; `MISSED_DEADLINE_*`; what the
    /// devices answer; `BAD_STATE`.
    pub fn compute(&self) -> Result<()> {
        let started = self.start(Start::Synchronous)?;
        let outcome = self.compute_now(&started, &[]);
        self.finish(outcome)
    }

    /// The same over the channels of a burst.
    ///
    /// # Errors
    /// As [`Execution::compute`]; `BAD_DATA` if the burst is for another compilation; `BAD_STATE` if
    /// another execution uses it.
    pub fn burst_compute(&self, burst: &Burst) -> Result<()> {
        if burst.compilation().number() != self.compilation().number() {
            return Err(Error::bad_data("the burst is for another compilation"));
        }
        let held = burst.take()?;
        let started = self.start(Start::Burst)?;
        let outcome = self.compute_now(&started, held.channels());
        self.finish(outcome)
    }

    /// Runs it in the background, and returns an event that ends with it.
    ///
    /// # Errors
    /// `BAD_DATA` if an argument is not given; `BAD_STATE`; `RESOURCE_EXHAUSTED_TRANSIENT` without
    /// threads, or if too many executions wait. What goes wrong later the event says.
    pub fn start_compute(&self) -> Result<Event> {
        let started = self.start(Start::Asynchronous)?;
        let completion = Arc::new(Completion::default());
        let event = Event::of_execution(Arc::clone(&completion));
        let ended_by = EndedBy::ItsThread(completion);
        let job = Job { execution: self.clone(), started, ended_by };
        self.start_in_background(job, Vec::new())?;
        Ok(event)
    }

    /// Runs it once all dependencies have ended, and returns an event with a sync fence. A dependency that fails fails it too; one
    /// without a fence is waited for here. (Android's runtime ignores what became of that one, against its header.) The execution
    /// has ended when somebody has waited for that event, not before.
    /// `timeout_after_dependencies` is how long it may take from then on, in nanoseconds; 0: as long
    /// as it takes.
    ///
    /// # Errors
    /// `BAD_DATA` if an argument is not given, or the dimensions of an output are not known, or for
    /// a timeout unless the compilation is for one chosen device; the error of a dependency that has
    /// failed already;
    /// `BAD_STATE`; `RESOURCE_EXHAUSTED_TRANSIENT` without threads or descriptors, or if too many
    /// executions wait. What goes wrong later the event says.
    pub fn start_compute_with_dependencies(
        &self,
        dependencies: &[Event],
        timeout_after_dependencies: u64,
    ) -> Result<Event> {
        let called = Instant::now();
        let mut fences = Vec::with_capacity(dependencies.len());
        for dependency in dependencies {
            match dependency.sync_fence() {
                Some(fence) => fences.push(fence.clone()),
                None => {
                    if let Err(error) = dependency.wait() {
                        // It ends as it does for a fence that has failed already.
                        self.start(Start::Fenced)?;
                        return self.give_up(error);
                    }
                }
            }
        }
        let started = self.start(Start::Fenced)?;
        let checked = if timeout_after_dependencies > 0 {
            self.expect_one_device("a timeout after dependencies")
        } else {
            Ok(())
        };
        let checked =
            checked.and_then(|()| started.arguments.expect_known_outputs(self.compilation()));
        if let Err(error) = checked {
            return self.give_up(error);
        }
        let timeout = (timeout_after_dependencies > 0)
            .then(|| Duration::from_nanos(timeout_after_dependencies));
        let fenced = Fenced { started, fences, timeout, called };
        if let Some(request) = self.request_behind_fences(&fenced) {
            match self.launch_on_device(&fenced, &request) {
                Ok(event) => return Ok(event),
                // Whoever cannot wait for fences may still compute, once they have signalled.
                Err(error) if self.compilation().partitioning().allows_fallback() => {
                    tracing::debug!(%error, "the device does not wait for fences");
                }
                Err(error) if error.code() == ResultCode::OpFailed => {
                    tracing::debug!(%error, "the device does not wait for fences");
                }
                // A dependency that has failed is the same error on every device.
                Err(error) if SyncFence::unsignalled(&fenced.fences).is_err() => {
                    tracing::debug!(%error, "the device does not wait for a fence that has failed");
                }
                Err(error) => return self.give_up(error),
            }
        }
        self.launch_in_background(fenced)
    }

    /// Begins, and checks what can be checked by now.
    fn start(&self, start: Start) -> Result<Started> {
        let observed = Observed::begin(self.observer(), start);
        let mut state = self.lock();
        state.start()?;
        state.observed = observed;
        let mut checked = state.arguments.expect_all();
        // What waits for others cannot be looked at yet.
        if start != Start::Fenced {
            checked = checked.and_then(|()| state.arguments.expect_values());
        }
        if let Err(error) = checked {
            drop(state);
            return self.give_up(error);
        }
        Ok(Started {
            arguments: Arc::clone(&state.arguments),
            measure: state.measure,
            deadline: state.timeout.map(Deadline::after),
            loop_timeout: state.loop_timeout,
            attributes: Arc::clone(&state.attributes),
        })
    }

    /// Ends an execution that did not come to computing.
    fn give_up<T>(&self, error: Error) -> Result<T> {
        self.finish(Err(error.clone().into()))?;
        Err(error)
    }

    fn start_in_background(&self, job: Job, fences: Vec<(usize, SyncFence)>) -> Result<()> {
        let background = self.compilation().model().devices().background();
        background.start(Task::new(job), fences).or_else(|refused| self.give_up(refused.into()))
    }

    /// Computes on this thread. A device that panics has failed.
    pub(super) fn compute_now(
        &self,
        started: &Started,
        channels: &[Option<Box<dyn nnhal_hal::Burst>>],
    ) -> Result<Outcome, Failure> {
        let compute = || self.compute_guarded(started, channels);
        catch_unwind(AssertUnwindSafe(compute))
            .unwrap_or_else(|_| Err(Error::failed("a device panicked").into()))
    }

    fn compute_guarded(
        &self,
        started: &Started,
        channels: &[Option<Box<dyn nnhal_hal::Burst>>],
    ) -> Result<Outcome, Failure> {
        let compilation = self.compilation();
        let options = RunOptions {
            measure: started.measure,
            deadline: started.deadline,
            loop_timeout: started.loop_timeout,
            hints: &started.attributes,
            channels,
        };
        let bound = Bound::new(compilation, &started.arguments)?;
        let ran = run(compilation.plan(), &bound.inputs, &bound.targets, &options)?;
        let timing = ran.timing;
        if ran.outputs.iter().all(|output| output.shape.is_sufficient) {
            bound.deliver(&ran)?;
            let output_shapes = ran.shapes();
            return Ok(Outcome { output_shapes, times: Times::Known(timing, timing) });
        }
        Err(too_short(&ran))
    }

    /// The request for a device that waits for fences itself: if it does all of the model, and no
    /// argument is bytes of the caller, which are to be copied before and after. Not where there are loops: the fence of a device
    /// signals also when one has taken too long (contract: FENCE-15), and what depends on the execution is to fail then
    /// (`NeuralNetworks.h`).
    fn request_behind_fences(&self, fenced: &Fenced) -> Option<Request> {
        let plan = self.compilation().plan();
        plan.single()?;
        let arguments = &fenced.started.arguments;
        if arguments.any_bytes() || plan.has_loops() {
            return None;
        }
        let bound = Bound::new(self.compilation(), arguments).ok()?;
        let mut request = Request::default();
        for (value, slot) in bound.inputs.iter().zip(&plan.slots) {
            request.inputs.push(match value {
                Value::At { place, dimensions } => {
                    let location = locate(&mut request.pools, place);
                    argument(location, &slot.dimensions, dimensions)
                }
                Value::Omitted => RequestArgument::omitted(),
            });
        }
        for (target, slot) in bound.targets.iter().zip(&plan.slots[bound.inputs.len()..]) {
            request.outputs.push(match target {
                Target::At { place, dimensions } => {
                    let location = locate(&mut request.pools, place);
                    argument(location, &slot.dimensions, dimensions)
                }
                _ => RequestArgument::omitted(),
            });
        }
        Some(request)
    }

    fn launch_on_device(&self, fenced: &Fenced, request: &Request) -> Result<Event> {
        let Some(step) = self.compilation().plan().single() else {
            return Err(Error::failed("several devices compute"));
        };
        let Started { measure, deadline, loop_timeout, ref attributes, .. } = fenced.started;
        let hints = Hints::clone(attributes);
        let options =
            ExecutionOptions { measure, deadline, loop_timeout, cancellation: None, hints };
        let launched =
            step.prepared.execute_fenced(request, &fenced.fences, &options, fenced.timeout)?;
        let FencedExecution { sync_fence, info } = launched;
        let fence = match sync_fence {
            Some(fence) => fence,
            None => {
                let (signal, fence) = SyncFence::pair()?;
                signal.signal();
                fence
            }
        };
        let execution = self.clone();
        let output_shapes = fenced.started.arguments.known_output_shapes();
        let settle = move |signalled: Result<()>| {
            // The device may say more than its fence, which signals even when a loop took too long.
            let reported = info.get().err().map(Error::from);
            let outcome = match reported.or(signalled.err()) {
                None => Ok(Outcome { output_shapes, times: Times::Asked(info) }),
                Some(error) => Err(error.into()),
            };
            execution.finish(outcome)
        };
        Ok(Event::of_fence(fence, Some(Box::new(settle))))
    }

    /// Has it computed in the background, once its fences have signalled.
    fn launch_in_background(&self, fenced: Fenced) -> Result<Event> {
        let Fenced { started, fences, timeout, called } = fenced;
        let (signal, fence) = match SyncFence::pair() {
            Ok(pair) => pair,
            Err(error) => return self.give_up(error.into()),
        };
        let outcome = Arc::new(LateOutcome::default());
        let behind = BehindDependencies { timeout, called, outcome: Arc::clone(&outcome), signal };
        let ended_by = EndedBy::ItsEvent(behind);
        let job = Job { execution: self.clone(), started, ended_by };
        match SyncFence::unsignalled(&fences) {
            Ok(unsignalled) => self.start_in_background(job, unsignalled)?,
            // One has failed already.
            Err(error) => return self.give_up(nnhal_hal::Error::from(error).into()),
        }
        let execution = self.clone();
        let settle = move |signalled| execution.finish(outcome.take(signalled));
        Ok(Event::of_fence(fence, Some(Box::new(settle))))
    }
}

/// An execution behind fences.
struct Fenced {
    started: Started,
    fences: Vec<SyncFence>,
    /// From when the last fence has signalled.
    timeout: Option<Duration>,
    called: Instant,
}

impl Arguments {
    fn any_bytes(&self) -> bool {
        use super::arguments::Argument;
        self.inputs.iter().any(|it| matches!(it, Argument::Bytes { .. }))
            || self.outputs.iter().any(|it| matches!(it, Argument::Bytes { .. }))
    }

    /// The shapes of outputs that were all known beforehand.
    fn known_output_shapes(&self) -> Vec<OutputShape> {
        use super::arguments::Argument;
        let dimensions = |argument: &Argument<_>| match argument {
            Argument::Bytes { dimensions, .. } | Argument::Memory { dimensions, .. } => {
                dimensions.clone()
            }
            Argument::Unset | Argument::Omitted => Vec::new(),
        };
        let shape =
            |argument| OutputShape { dimensions: dimensions(argument), is_sufficient: true };
        self.outputs.iter().map(shape).collect()
    }
}

fn too_short(ran: &Ran) -> Failure {
    let mut short = Vec::new();
    for (index, output) in ran.outputs.iter().enumerate() {
        if !output.shape.is_sufficient {
            let dimensions = &output.shape.dimensions;
            let known = if is_fully_specified(dimensions) { "" } else { " as far as known" };
            short.push(format!("output {index} of dimensions {dimensions:?}{known}"));
        }
    }
    let reason = format!("too little room for {}", short.join(", "));
    let error = Error::new(ResultCode::OutputInsufficientSize, reason);
    Failure { error, output_shapes: ran.shapes() }
}
