//! [`Prepared`]: a prepared model, and how everything that executes it does so.

use super::fenced::{self, Info};
use super::timing::timing;
use super::{Guest, Origin, guarded};
use crate::convert::clock;
use crate::convert::{hints_from_wire, shapes_to_wire, timing_to_wire};
use crate::interface::nn;
use crate::status::Answer;
use nn::ExecutionConfig::ExecutionConfig;
use nn::ExecutionResult::ExecutionResult;
use nn::FencedExecutionResult::FencedExecutionResult;
use nn::IFencedExecutionCallback::BnFencedExecutionCallback;
use nnhal_hal::client::{Held, Holding};
use nnhal_hal::{
    Error, ErrorStatus, ExecutionError, ExecutionOptions, Hints, Request, RequestMemoryPool, Timing,
};
use nnhal_hidl::checks::Outputs;
use rsbinder::{BinderResult, ParcelFileDescriptor};
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
#[derive(Debug, Clone)]
pub(super) struct Mode {
    pub(super) measure: bool,
    pub(super) loop_timeout: Option<Duration>,
    pub(super) hints: Hints,
}

impl Mode {
    pub(super) fn of(measure: bool, loop_timeout: i64) -> nnhal_hal::Result<Self> {
        Ok(Self { measure, loop_timeout: clock::duration(loop_timeout)?, hints: Hints::NONE })
    }

    pub(super) fn configured(config: &ExecutionConfig) -> nnhal_hal::Result<Self> {
        let mode = Self::of(config.measureTiming, config.loopTimeoutDurationNs)?;
        let hints = hints_from_wire(&config.executionHints, &config.extensionNameToPrefix)?;
        Ok(Self { hints, ..mode })
    }

    fn options(&self, deadline: i64) -> nnhal_hal::Result<ExecutionOptions> {
        Ok(ExecutionOptions {
            measure: self.measure,
            deadline: clock::deadline(deadline)?,
            loop_timeout: self.loop_timeout,
            cancellation: None,
            hints: self.hints.clone(),
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
    pub(super) fn expect_own_tokens(&self, request: &Request) -> nnhal_hal::Result<()> {
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
        mode: &Mode,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        let since = Instant::now();
        let result = guarded(|| {
            self.expect_own_tokens(request)?;
            let _call = self.guest.client().hold(Holding::Calls, 1).map_err(Error::from)?;
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
        mode: &Mode,
        deadline: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        let launched = guarded(|| {
            self.expect_own_tokens(request)?;
            let fences = fenced::fences(wait_for)?;
            let (options, duration) = (mode.options(deadline)?, clock::duration(duration)?);
            let held = self.guest.client().hold(Holding::FencedOutcomes, 1)?;
            let fenced = self.model.execute_fenced(request, &fences, &options, duration)?;
            let fence = fenced.sync_fence.as_ref().map(crate::convert::to_parcel).transpose()?;
            let callback = BnFencedExecutionCallback::new_binder(Info {
                info: fenced.info,
                origin: Arc::clone(&self.origin),
                _held: held,
            });
            Ok(FencedExecutionResult { callback: Some(callback), syncFence: fence })
        });
        launched.map_err(|error: Error| Answer::Launch.refuse(&error))
    }
}
