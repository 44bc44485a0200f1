//! [`PreparedModel`]: a driver's prepared model as a [`nnhal_hal::PreparedModel`].

use super::answer::{answered, ask, expect_none, expect_some};
use super::callbacks::{ExecutionAnswer, ExecutionCallback};
use super::fenced::{self, Info};
use super::interface::PreparedInterface;
use super::{Options, burst, judging};
use crate::checks::Outputs;
use crate::convert::{ConversionError, Convert};
use crate::{v1_0, v1_2, v1_3};
use nnhal_hal::{
    ErrorStatus, Execution, ExecutionError, ExecutionOptions, FencedExecution, HalVersion,
    MeasureTiming, Model, Request, SyncFence,
};
use std::sync::Arc;
use std::time::Duration;

/// A prepared model of a [`Device`](super::Device).
#[derive(Clone)]
pub struct PreparedModel {
    interface: PreparedInterface,
    /// The device's version.
    version: HalVersion,
    outputs: Outputs,
    options: Options,
    device: Arc<()>,
}

impl PreparedModel {
    pub(super) fn new(
        interface: PreparedInterface,
        version: HalVersion,
        model: Option<&Model>,
        options: Options,
        device: Arc<()>,
    ) -> Self {
        Self { interface, version, outputs: Outputs::of(model), options, device }
    }

    pub(super) fn is_of(&self, device: &Arc<()>) -> bool {
        Arc::ptr_eq(&self.device, device)
    }

    pub(super) fn v1_3(&self) -> Option<&Arc<dyn v1_3::IPreparedModel>> {
        match &self.interface {
            PreparedInterface::V1_3(model) => Some(model),
            PreparedInterface::V1_0(_) | PreparedInterface::V1_2(_) => None,
        }
    }

    /// The version in which requests are put to the driver.
    fn spoken(&self) -> HalVersion {
        match &self.interface {
            PreparedInterface::V1_0(_) => self.version.min(HalVersion::V1_1),
            PreparedInterface::V1_2(_) => HalVersion::V1_2,
            PreparedInterface::V1_3(_) => HalVersion::V1_3,
        }
    }

    fn expect_expressible(&self, request: &Request) -> Result<(), ConversionError> {
        judging::expect_expressible(request, self.spoken(), &self.outputs)
    }

    /// Puts a request to the driver and waits for its answer.
    fn run(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> nnhal_hal::Result<(&'static str, ExecutionAnswer)> {
        self.expect_expressible(request)?;
        let measure = measure_code(options.measure);
        let wait_for =
            |method, launch: &dyn Fn(Arc<ExecutionCallback>) -> nnhal_hal::Result<i32>| {
                let (callback, wait) = ExecutionCallback::new();
                expect_none(method, launch(callback)?)?;
                let timeout = self.options.timeout;
                Ok((method, wait.wait(method, timeout, options.cancellation.as_ref())?))
            };
        match &self.interface {
            PreparedInterface::V1_0(model) => {
                let (method, request) = ("execute", v1_0::Request::from_canonical(request)?);
                wait_for(method, &|callback| {
                    ask(method, || model.execute(&request, Some(callback)))
                })
            }
            PreparedInterface::V1_2(model) => {
                let request = v1_0::Request::from_canonical(request)?;
                if self.options.asynchronous {
                    let method = "execute_1_2";
                    return wait_for(method, &|callback| {
                        ask(method, || model.execute_1_2(&request, measure, Some(callback)))
                    });
                }
                let method = "executeSynchronously";
                let (status, output_shapes, timing) =
                    ask(method, || model.execute_synchronously(&request, measure))?;
                Ok((method, ExecutionAnswer { status, output_shapes, timing }))
            }
            PreparedInterface::V1_3(model) => {
                let request = v1_3::Request::from_canonical(request)?;
                let deadline = Convert::from_canonical(&options.deadline)?;
                let timeout = Convert::from_canonical(&options.loop_timeout)?;
                if self.options.asynchronous {
                    let method = "execute_1_3";
                    return wait_for(method, &|callback| {
                        ask(method, || {
                            model.execute_1_3(&request, measure, deadline, timeout, Some(callback))
                        })
                    });
                }
                let method = "executeSynchronously_1_3";
                let (status, output_shapes, timing) = ask(method, || {
                    model.execute_synchronously_1_3(&request, measure, deadline, timeout)
                })?;
                Ok((method, ExecutionAnswer { status, output_shapes, timing }))
            }
        }
    }
}

fn measure_code(measure: bool) -> i32 {
    (if measure { MeasureTiming::Yes } else { MeasureTiming::No }).code()
}

impl nnhal_hal::PreparedModel for PreparedModel {
    /// Before 1.3 there are no words for deadline and loop timeout: they are ignored.
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        let (method, answer) = self.run(request, options)?;
        let is_short = answer.status == ErrorStatus::OutputInsufficientSize.code();
        if let (PreparedInterface::V1_0(_), true) = (&self.interface, is_short) {
            // It does not say which output is short (contract: EXEC-10), and maybe no shape is known.
            let error = answered(method, ErrorStatus::OutputInsufficientSize);
            let output_shapes = self.outputs.short_of_known(request);
            return Err(ExecutionError { error, output_shapes });
        }
        judging::judge(method, answer, request, options.measure, &self.outputs)
    }

    /// Only whether the driver can be asked: what it will say of the request is not known before.
    fn check_request(&self, request: &Request) -> nnhal_hal::Result<()> {
        Ok(self.expect_expressible(request)?)
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn nnhal_hal::Burst>> {
        let driver: Arc<dyn v1_2::IPreparedModel> = match &self.interface {
            PreparedInterface::V1_0(_) => {
                return Err(nnhal_hal::Error::failure("drivers have bursts from 1.2 on"));
            }
            PreparedInterface::V1_2(model) => Arc::clone(model),
            PreparedInterface::V1_3(model) => Arc::clone(model) as _,
        };
        Ok(Box::new(burst::configure(driver, self.outputs.clone())?))
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let Some(model) = self.v1_3() else {
            return Err(nnhal_hal::Error::failure(
                "drivers run requests behind fences from 1.3 on",
            ));
        };
        self.expect_expressible(request)?;
        let method = "executeFenced";
        let request = v1_3::Request::from_canonical(request)?;
        let wait_for = fenced::handles(wait_for)?;
        let deadline = Convert::from_canonical(&options.deadline)?;
        let loop_timeout = Convert::from_canonical(&options.loop_timeout)?;
        let duration = Convert::from_canonical(&timeout_after_fences)?;
        let measure = measure_code(options.measure);
        let (status, fence, callback) = ask(method, || {
            model.execute_fenced(&request, &wait_for, measure, deadline, loop_timeout, duration)
        })?;
        expect_none(method, status)?;
        let callback = expect_some(method, "callback", callback)?;
        let sync_fence = fenced::fence_of(method, &fence)?;
        Ok(FencedExecution { sync_fence, info: Box::new(Info(callback)) })
    }
}
