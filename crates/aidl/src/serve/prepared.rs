//! `IPreparedModel`.

use super::burst::Burst;
use super::execution::Reusable;
use super::fenced::{self, Info};
use super::guest::Held;
use super::{Guest, Object, Origin, guarded, version_methods};
use crate::convert::clock;
use crate::convert::{request_alone, shapes_to_wire, timing_to_wire};
use crate::interface::nn;
use crate::status::Answer;
use crate::version::Version;
use nn::ExecutionConfig::ExecutionConfig;
use nn::ExecutionResult::ExecutionResult;
use nn::FencedExecutionResult::FencedExecutionResult;
use nn::IBurst::{BnBurst, IBurst};
use nn::IExecution::{BnExecution, IExecution};
use nn::IFencedExecutionCallback::BnFencedExecutionCallback;
use nn::IPreparedModel::IPreparedModel;
use nn::Request::Request as WireRequest;
use nnhal_hal::client::Holding;
use nnhal_hal::{
    Error, ErrorStatus, ExecutionError, ExecutionOptions, Request, RequestMemoryPool, Timing,
};
use nnhal_hidl::checks::Outputs;
use rsbinder::{BinderResult, Interface, ParcelFileDescriptor, Strong};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A prepared model, shared by everything that executes it.
pub(super) struct Prepared {
    origin: Arc<Origin>,
    guest: Arc<Guest>,
    model: Arc<dyn nnhal_hal::PreparedModel>,
    outputs: Outputs,
    _held: Held,
}

/// How to execute, without the deadline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mode {
    pub(super) measure: bool,
    pub(super) loop_timeout: Option<Duration>,
}

impl Mode {
    pub(super) fn of(measure: bool, loop_timeout: i64) -> nnhal_hal::Result<Self> {
        Ok(Self { measure, loop_timeout: clock::duration(loop_timeout)? })
    }

    pub(super) fn configured(config: &ExecutionConfig) -> nnhal_hal::Result<Self> {
        Self::of(config.measureTiming, config.loopTimeoutDurationNs)
    }

    fn options(self, deadline: i64) -> nnhal_hal::Result<ExecutionOptions> {
        Ok(ExecutionOptions {
            measure: self.measure,
            deadline: clock::deadline(deadline)?,
            loop_timeout: self.loop_timeout,
            cancellation: None,
        })
    }
}

impl Prepared {
    pub(super) fn new(
        origin: Arc<Origin>,
        guest: Arc<Guest>,
        model: Arc<dyn nnhal_hal::PreparedModel>,
        outputs: Outputs,
        held: Held,
    ) -> Arc<Self> {
        Arc::new(Self { origin, guest, model, outputs, _held: held })
    }

    pub(super) fn model(&self) -> &Arc<dyn nnhal_hal::PreparedModel> {
        &self.model
    }

    pub(super) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    pub(super) fn guest(&self) -> &Arc<Guest> {
        &self.guest
    }

    /// Refuses tokens of buffers that others were given (contract: SEC-4).
    fn expect_own_tokens(&self, request: &Request) -> nnhal_hal::Result<()> {
        let has_token = |pool: &RequestMemoryPool| matches!(pool, RequestMemoryPool::Token(_));
        match request.pools.iter().any(has_token) {
            true => self.guest.tokens(self.origin.id()).expect_own(request),
            false => Ok(()),
        }
    }

    /// Executes and answers on the wire.
    pub(super) fn run(
        &self,
        request: &Request,
        mode: Mode,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        let since = Instant::now();
        let result = guarded(|| {
            self.expect_own_tokens(request)?;
            let result = self.model.execute(request, &mode.options(deadline)?);
            self.outputs.check("execute", request, result)
        });
        self.guest.executed(since.elapsed(), result.is_ok());
        let answer = match result {
            Ok(execution) => {
                let timing = timing(execution.timing, mode.measure, since);
                shapes_to_wire(&execution.output_shapes).map(|shapes| ExecutionResult {
                    outputSufficientSize: true,
                    outputShapes: shapes,
                    timing: timing_to_wire(timing),
                })
            }
            Err(ExecutionError { error, output_shapes })
                if error.status() == ErrorStatus::OutputInsufficientSize
                    && !output_shapes.is_empty() =>
            {
                shapes_to_wire(&output_shapes).map(|shapes| ExecutionResult {
                    outputSufficientSize: false,
                    outputShapes: shapes,
                    timing: timing_to_wire(Timing::NONE),
                })
            }
            Err(failed) => return Err(Answer::Launch.refuse(&failed.error)),
        };
        answer.map_err(|error| Answer::Launch.refuse(&error.into()))
    }

    /// Launches behind fences and answers on the wire.
    pub(super) fn launch(
        &self,
        request: &Request,
        wait_for: &[ParcelFileDescriptor],
        mode: Mode,
        deadline: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        let launched = guarded(|| {
            self.expect_own_tokens(request)?;
            let fences = fenced::fences(wait_for)?;
            let (options, duration) = (mode.options(deadline)?, clock::duration(duration)?);
            let fenced = self.model.execute_fenced(request, &fences, &options, duration)?;
            let fence = fenced.sync_fence.as_ref().map(crate::convert::to_parcel).transpose()?;
            let callback = BnFencedExecutionCallback::new_binder(Info {
                info: fenced.info,
                origin: Arc::clone(&self.origin),
            });
            Ok(FencedExecutionResult { callback: Some(callback), syncFence: fence })
        });
        launched.map_err(|error: Error| Answer::Launch.refuse(&error))
    }

    fn run_once(
        &self,
        request: &WireRequest,
        mode: nnhal_hal::Result<Mode>,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        let arguments = mode.and_then(|mode| Ok((request_alone(request)?, mode)));
        let (request, mode) = arguments.map_err(|error| Answer::Launch.refuse(&error))?;
        self.run(&request, mode, deadline)
    }

    fn launch_once(
        &self,
        request: &WireRequest,
        wait_for: &[ParcelFileDescriptor],
        mode: nnhal_hal::Result<Mode>,
        deadline: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        let arguments = mode.and_then(|mode| Ok((request_alone(request)?, mode)));
        let (request, mode) = arguments.map_err(|error| Answer::Launch.refuse(&error))?;
        self.launch(&request, wait_for, mode, deadline, duration)
    }
}

/// Times as the client sees them: the driver's ends now (contract: TIME-3). None unless asked for
/// (TIME-1), nor if they contradict each other (TIME-2).
fn timing(timing: Timing, wanted: bool, since: Instant) -> Timing {
    if !wanted {
        return Timing::NONE;
    }
    let time_in_driver = timing.time_in_driver.map(|_| since.elapsed());
    consistent(Timing { time_in_driver, ..timing })
}

/// Times; none if the device's exceeds the driver's (contract: TIME-2).
pub(super) fn consistent(timing: Timing) -> Timing {
    match (timing.time_on_device, timing.time_in_driver) {
        (Some(device), Some(driver)) if device > driver => Timing::NONE,
        _ => timing,
    }
}

/// A prepared model behind `IPreparedModel`.
pub(super) struct PreparedModel(pub(super) Arc<Prepared>);

impl Interface for PreparedModel {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IPreparedModel for PreparedModel {
    version_methods!(0.origin);

    fn executeSynchronously(
        &self,
        request: &WireRequest,
        measure: bool,
        deadline: i64,
        loop_timeout: i64,
    ) -> BinderResult<ExecutionResult> {
        self.0.run_once(request, Mode::of(measure, loop_timeout), deadline)
    }

    fn executeFenced(
        &self,
        request: &WireRequest,
        wait_for: &[ParcelFileDescriptor],
        measure: bool,
        deadline: i64,
        loop_timeout: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        let mode = Mode::of(measure, loop_timeout);
        self.0.launch_once(request, wait_for, mode, deadline, duration)
    }

    fn configureExecutionBurst(&self) -> BinderResult<Strong<dyn IBurst>> {
        let held = self.0.guest.client().hold(Holding::Bursts, 1).map_err(Error::from);
        let held = held.map_err(|error| Answer::Launch.refuse(&error))?;
        Ok(BnBurst::new_binder(Burst::new(Arc::clone(&self.0), held)))
    }

    fn createReusableExecution(
        &self,
        request: &WireRequest,
        config: &ExecutionConfig,
    ) -> BinderResult<Strong<dyn IExecution>> {
        self.0.origin.expect(Version::V4)?;
        let made = guarded(|| {
            let held = self.0.guest.hold(Object::Executions, 1)?;
            let pools = u64::try_from(request.pools.len()).unwrap_or(u64::MAX);
            let descriptors = self.0.guest.hold(Object::Descriptors, pools)?;
            let (request, mode) = (request_alone(request)?, Mode::configured(config)?);
            self.0.expect_own_tokens(&request)?;
            self.0.model.check_request(&request)?;
            Ok(Reusable::new(Arc::clone(&self.0), request, mode, [held, descriptors]))
        });
        let made = made.map_err(|error: Error| Answer::Launch.refuse(&error))?;
        Ok(BnExecution::new_binder(made))
    }

    fn executeSynchronouslyWithConfig(
        &self,
        request: &WireRequest,
        config: &ExecutionConfig,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        self.0.origin.expect(Version::V4)?;
        self.0.run_once(request, Mode::configured(config), deadline)
    }

    fn executeFencedWithConfig(
        &self,
        request: &WireRequest,
        wait_for: &[ParcelFileDescriptor],
        config: &ExecutionConfig,
        deadline: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        self.0.origin.expect(Version::V4)?;
        self.0.launch_once(request, wait_for, Mode::configured(config), deadline, duration)
    }
}
