//! [`PreparedModel`]: a prepared model behind `IPreparedModel` of every version.

use super::callbacks::{ExecutionCallback, Running};
use super::fenced::{Info, fences, handle_of};
use super::outcome::{Measurement, Outcome};
use super::status::{Answer, NONE};
use super::{Origin, burst, guarded};
use crate::cast::Cast;
use crate::checks::Outputs;
use crate::convert::{Convert, expect_expressible};
use crate::fmq::MQDescriptor;
use crate::handle::Handle;
use crate::tasks::Kind;
use crate::transport::Return;
use crate::v1_2::{OutputShape, Timing};
use crate::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use crate::{v1_0, v1_2, v1_3};
use nnhal_hal::background::NotRun;
use nnhal_hal::client::{Held, Holding};
use nnhal_hal::{
    Client, Error, Execution, ExecutionError, ExecutionOptions, HalVersion, MeasureTiming,
    PreparedModel as _, Priority, Request,
};
use std::sync::Arc;
use std::time::Instant;

/// A prepared model of a [`Device`](super::Device), behind `IPreparedModel` of every version.
pub struct PreparedModel {
    origin: Arc<Origin>,
    model: Arc<dyn nnhal_hal::PreparedModel>,
    /// The same, whose answers are checked.
    checked: Arc<Checked>,
    priority: Priority,
}

/// A prepared model whose answers are checked before they are anybody's.
struct Checked {
    model: Arc<dyn nnhal_hal::PreparedModel>,
    outputs: Outputs,
    /// Bursts and executions have the model as well. Whose it is the service says, not the device, which may know of no clients.
    held: Held,
}

impl nnhal_hal::PreparedModel for Checked {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        self.outputs.check("execute", request, self.model.execute(request, options))
    }

    fn client(&self) -> Client {
        self.held.client().clone()
    }
}

impl PreparedModel {
    pub(super) fn new(
        origin: Arc<Origin>,
        model: Arc<dyn nnhal_hal::PreparedModel>,
        outputs: Outputs,
        priority: Priority,
        held: Held,
    ) -> Arc<Self> {
        let checked = Arc::new(Checked { model: Arc::clone(&model), outputs, held });
        Arc::new(Self { origin, model, checked, priority })
    }

    /// The prepared model behind the interface.
    pub fn inner(&self) -> &Arc<dyn nnhal_hal::PreparedModel> {
        &self.model
    }

    pub(super) fn is_of(&self, origin: &Arc<Origin>) -> bool {
        Arc::ptr_eq(&self.origin, origin)
    }

    /// Arguments whose tokens are of buffers of this device.
    fn with_own_tokens<T>(&self, (request, rest): (Request, T)) -> nnhal_hal::Result<(Request, T)> {
        self.origin.tokens.expect_own(&request)?;
        Ok((request, rest))
    }

    /// Launches an execution (contract: EXEC-1 to EXEC-5). Arguments are asked for before anything
    /// else is done.
    fn launch(
        &self,
        arguments: impl FnOnce() -> nnhal_hal::Result<(Request, ExecutionOptions)>,
        callback: Option<ExecutionCallback>,
    ) -> i32 {
        let since = Instant::now();
        let Some(callback) = callback else {
            return Answer::Plain.refuse(&Error::invalid("the callback is null"));
        };
        let running = Running::new(callback);
        let checked = guarded(|| {
            let (request, options) = self.with_own_tokens(arguments()?)?;
            let launched = self.model.launch(&request)?;
            // It may wait for long.
            request.kept_by(&self.origin.client)?;
            Ok((request, launched, options))
        });
        let (request, launched, options) = match checked {
            Ok(checked) => checked,
            Err(error) => return running.refuse(&error),
        };
        let (model, deadline) = (Arc::clone(&self.checked), options.deadline);
        let task = move |not_run: Option<NotRun>| {
            let measurement = Measurement { wanted: options.measure, since };
            let result = guarded(|| match (not_run, &launched) {
                (Some(why), _) => Err(Error::from(why).into()),
                (None, Some(launched)) => {
                    model.outputs.check("execute", &request, launched.execute(&options))
                }
                (None, None) => model.execute(&request, &options),
            });
            if result.is_err() {
                // Also if the request has turned wrong since it was launched (contract: BUF-1).
                let discard = || {
                    match &launched {
                        Some(launched) => launched.discard_outputs(),
                        None => model.model.discard_outputs(&request),
                    }
                    Ok::<_, Error>(())
                };
                let _ = guarded(discard);
            }
            // What the request holds is the client's again before it is notified (contract: EXEC-9).
            drop((request, launched));
            let outcome = Outcome::of(running.version(), result, measurement);
            running.deliver(outcome);
        };
        self.origin.spawn(Kind::Executing, self.priority, deadline, task)
    }

    /// Runs an execution (contract: SYNC-1, SYNC-2).
    fn run(
        &self,
        version: HalVersion,
        arguments: impl FnOnce() -> nnhal_hal::Result<(Request, ExecutionOptions)>,
    ) -> (i32, Vec<OutputShape>, Timing) {
        let since = Instant::now();
        let outcome = match guarded(|| self.with_own_tokens(arguments()?)) {
            Ok((request, options)) => {
                let result = guarded(|| {
                    let _call = self.origin.client.hold(Holding::Calls, 1).map_err(Error::from)?;
                    self.checked.execute(&request, &options)
                });
                let measurement = Measurement { wanted: options.measure, since };
                Outcome::of(version, result, measurement)
            }
            Err(error) => Outcome::failed(version, &error),
        };
        (outcome.status, outcome.output_shapes, outcome.timing)
    }
}

fn measure(code: v1_2::MeasureTiming) -> nnhal_hal::Result<bool> {
    let measure = MeasureTiming::from_code(code).map_err(Error::invalid)?;
    Ok(measure == MeasureTiming::Yes)
}

/// The arguments of execute, execute_1_2 and executeSynchronously.
fn arguments(
    version: HalVersion,
    request: &v1_0::Request,
    measure_code: v1_2::MeasureTiming,
) -> nnhal_hal::Result<(Request, ExecutionOptions)> {
    let request = request.to_canonical()?;
    expect_expressible(&request, version)?;
    let measure = measure(measure_code)?;
    Ok((request, ExecutionOptions { measure, ..ExecutionOptions::default() }))
}

/// The arguments of execute_1_3, executeSynchronously_1_3 and executeFenced.
fn arguments_1_3(
    request: &v1_3::Request,
    measure_code: v1_2::MeasureTiming,
    deadline: OptionalTimePoint,
    loop_timeout: OptionalTimeoutDuration,
) -> nnhal_hal::Result<(Request, ExecutionOptions)> {
    let request = request.to_canonical()?;
    let options = ExecutionOptions {
        measure: measure(measure_code)?,
        deadline: deadline.to_canonical()?,
        loop_timeout: loop_timeout.to_canonical()?,
        ..ExecutionOptions::default()
    };
    Ok((request, options))
}

impl v1_0::IPreparedModel for PreparedModel {
    fn execute(
        &self,
        request: &v1_0::Request,
        callback: Option<Arc<dyn v1_0::IExecutionCallback>>,
    ) -> Return<i32> {
        let no_measuring = MeasureTiming::No.code();
        Ok(self.launch(
            || arguments(HalVersion::V1_0, request, no_measuring),
            callback.map(ExecutionCallback::V1_0),
        ))
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        if self.origin.has(HalVersion::V1_2) {
            cast.provide::<dyn v1_2::IPreparedModel>(self.clone());
        }
        if self.origin.has(HalVersion::V1_3) {
            cast.provide::<dyn v1_3::IPreparedModel>(self);
        }
    }
}

impl v1_2::IPreparedModel for PreparedModel {
    fn execute_1_2(
        &self,
        request: &v1_0::Request,
        measure: v1_2::MeasureTiming,
        callback: Option<Arc<dyn v1_2::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(self.launch(
            || arguments(HalVersion::V1_2, request, measure),
            callback.map(ExecutionCallback::V1_2),
        ))
    }

    fn execute_synchronously(
        &self,
        request: &v1_0::Request,
        measure: v1_2::MeasureTiming,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        let version = HalVersion::V1_2;
        Ok(self.run(version, || arguments(version, request, measure)))
    }

    fn configure_execution_burst(
        &self,
        callback: Option<Arc<dyn v1_2::IBurstCallback>>,
        request_channel: &MQDescriptor,
        result_channel: &MQDescriptor,
    ) -> Return<(i32, Option<Arc<dyn v1_2::IBurstContext>>)> {
        Ok(burst::configure(
            Arc::clone(&self.checked) as _,
            callback,
            request_channel,
            result_channel,
        ))
    }
}

impl v1_3::IPreparedModel for PreparedModel {
    fn execute_1_3(
        &self,
        request: &v1_3::Request,
        measure: v1_2::MeasureTiming,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
        callback: Option<Arc<dyn v1_3::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(self.launch(
            || arguments_1_3(request, measure, deadline, loop_timeout_duration),
            callback.map(ExecutionCallback::V1_3),
        ))
    }

    fn execute_synchronously_1_3(
        &self,
        request: &v1_3::Request,
        measure: v1_2::MeasureTiming,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok(self.run(HalVersion::V1_3, || {
            arguments_1_3(request, measure, deadline, loop_timeout_duration)
        }))
    }

    fn execute_fenced(
        &self,
        request: &v1_3::Request,
        wait_for: &[Handle],
        measure: v1_2::MeasureTiming,
        deadline: OptionalTimePoint,
        loop_timeout_duration: OptionalTimeoutDuration,
        duration: OptionalTimeoutDuration,
    ) -> Return<(i32, Handle, Option<Arc<dyn v1_3::IFencedExecutionCallback>>)> {
        let launched = guarded(|| {
            let arguments = arguments_1_3(request, measure, deadline, loop_timeout_duration)?;
            let (request, options) = self.with_own_tokens(arguments)?;
            let duration = duration.to_canonical()?;
            let fences = fences(wait_for)?;
            let held = self.origin.client.hold(Holding::FencedOutcomes, 1)?;
            let fenced = self.model.execute_fenced(&request, &fences, &options, duration)?;
            let info = Info { info: fenced.info, _held: held };
            Ok((handle_of(fenced.sync_fence.as_ref())?, info))
        });
        Ok(match launched {
            Ok((fence, info)) => (NONE, fence, Some(Arc::new(info))),
            Err(error) => (Answer::Launch(HalVersion::V1_3).refuse(&error), Handle::NULL, None),
        })
    }
}
