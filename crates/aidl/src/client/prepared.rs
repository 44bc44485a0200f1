//! [`PreparedModel`]: a service's prepared model as a [`nnhal_hal::PreparedModel`].

use super::burst::Burst;
use super::fenced::{launched, timing};
use super::link::Link;
use super::reusable::{Key, Plan, Reusables};
use crate::convert::clock;
use crate::convert::{request_to_wire, shapes_from_wire, to_parcel};
use crate::interface::nn;
use crate::version::Version;
use nn::ExecutionConfig::ExecutionConfig;
use nn::ExecutionResult::ExecutionResult;
use nn::IExecution::IExecution;
use nn::IPreparedModel::IPreparedModel;
use nnhal_hal::{
    Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions, FencedExecution, HalVersion,
    Model, Request, SyncFence, Timing,
};
use nnhal_hidl::checks::Outputs;
use rsbinder::Strong;
use std::sync::Arc;
use std::time::Duration;

/// A service's prepared model. Clones are the same.
#[derive(Clone)]
pub(super) struct PreparedModel(Arc<Inner>);

struct Inner {
    link: Arc<Link>,
    interface: Strong<dyn IPreparedModel>,
    outputs: Outputs,
    reusables: Reusables,
    version: HalVersion,
}

/// What the client knows of a prepared model itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    /// The model; not of one from a cache.
    pub(super) model: Option<&'a Model>,
    /// The version that it was prepared for.
    pub(super) version: HalVersion,
}

/// How to execute, without the deadline.
pub(super) fn config(measure: bool, loop_timeout: Option<Duration>) -> ExecutionConfig {
    ExecutionConfig {
        measureTiming: measure,
        loopTimeoutDurationNs: clock::duration_on_wire(loop_timeout),
        executionHints: Vec::new(),
        extensionNameToPrefix: Vec::new(),
    }
}

impl PreparedModel {
    pub(super) fn new(
        link: Arc<Link>,
        interface: Strong<dyn IPreparedModel>,
        known: Known<'_>,
    ) -> Self {
        let (outputs, reusables) = (Outputs::of(known.model), Reusables::default());
        Self(Arc::new(Inner { link, interface, outputs, reusables, version: known.version }))
    }

    /// A request for the wire, if a call can carry it with this number of descriptors besides.
    pub(super) fn to_wire(
        &self,
        request: &Request,
        besides: usize,
    ) -> nnhal_hal::Result<nn::Request::Request> {
        self.0.link.expect_descriptors(request.pools.len().saturating_add(besides))?;
        Ok(request_to_wire(request)?)
    }

    /// Outputs of models older than 1.2 have to be known, which the service does not know of this one
    /// (contract: REQ-8).
    pub(super) fn expect_known_outputs(&self, request: &Request) -> nnhal_hal::Result<()> {
        if self.0.version >= HalVersion::V1_2 {
            return Ok(());
        }
        let operands = self.0.outputs.model().map_or(&[][..], |model| &model.main.operands[..]);
        for (index, (operand, argument)) in operands.iter().zip(&request.outputs).enumerate() {
            let known = match &argument.dimensions[..] {
                [] => operand.has_known_dimensions(),
                dimensions => !dimensions.contains(&0),
            };
            if !known && !argument.has_no_value {
                return Err(Error::invalid(format!(
                    "the dimensions of output {index} are not known, which {} demands",
                    self.0.version
                )));
            }
        }
        Ok(())
    }

    pub(super) fn link(&self) -> &Arc<Link> {
        &self.0.link
    }

    /// The service's object, if it is one of this connection (contract: ALLOC-2).
    pub(super) fn interface_at(&self, link: &Arc<Link>) -> Option<Strong<dyn IPreparedModel>> {
        Arc::ptr_eq(&self.0.link, link).then(|| self.0.interface.clone())
    }

    /// What a service answered to an execution, if it can be believed.
    pub(super) fn judge(
        &self,
        method: &'static str,
        request: &Request,
        measure: bool,
        result: ExecutionResult,
    ) -> Result<Execution, ExecutionError> {
        let output_shapes = shapes_from_wire(&result.outputShapes).map_err(Error::failure)?;
        let answer = match result.outputSufficientSize {
            true => {
                let timing = if measure { timing(&result.timing)? } else { Timing::NONE };
                Ok(Execution { output_shapes, timing })
            }
            false => {
                let status = ErrorStatus::OutputInsufficientSize;
                let error = Error::new(status, format!("{method}: a buffer is too short"));
                Err(ExecutionError { error, output_shapes })
            }
        };
        self.0.outputs.check(method, request, answer)
    }

    /// Executes what has a reusable execution by now, and what has none by a request alone.
    fn run(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> nnhal_hal::Result<(&'static str, ExecutionResult)> {
        let ExecutionOptions { measure, loop_timeout, .. } = *options;
        let deadline = clock::deadline_on_wire(options.deadline);
        let Inner { link, interface, reusables, .. } = &*self.0;
        let method = "executeSynchronously";
        if link.version() < Version::V4 {
            let wire = self.to_wire(request, 0)?;
            let loop_timeout = clock::duration_on_wire(loop_timeout);
            let call = || interface.executeSynchronously(&wire, measure, deadline, loop_timeout);
            return Ok((method, link.call(method, call)?));
        }
        let (key, execution) = match reusables.plan(request, measure, loop_timeout) {
            Plan::Use(key, execution) => (key, execution),
            plan => {
                let wire = self.to_wire(request, 0)?;
                let config = config(measure, loop_timeout);
                let make = || interface.createReusableExecution(&wire, &config);
                let made = match plan {
                    // A service that has no more of them still executes.
                    Plan::Make => link.call("createReusableExecution", make).ok(),
                    _ => None,
                };
                let Some(execution) = made else {
                    let method = "executeSynchronouslyWithConfig";
                    let call =
                        || interface.executeSynchronouslyWithConfig(&wire, &config, deadline);
                    return Ok((method, link.call(method, call)?));
                };
                (Key { request: request.clone(), measure, loop_timeout }, execution)
            }
        };
        let result = link.call(method, || execution.executeSynchronously(deadline));
        reusables.keep(key, execution);
        Ok((method, result?))
    }
}

impl nnhal_hal::PreparedModel for PreparedModel {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        if options.cancellation.as_ref().is_some_and(nnhal_hal::Cancellation::is_cancelled) {
            return Err(Error::failure("the execution was cancelled").into());
        }
        self.expect_known_outputs(request)?;
        let (method, result) = self.run(request, options)?;
        self.judge(method, request, options.measure, result)
    }

    /// Makes a reusable execution, which the service checks, and which the execution then uses. A service
    /// older than version 4 cannot be asked.
    fn check_request(&self, request: &Request) -> nnhal_hal::Result<()> {
        self.expect_known_outputs(request)?;
        let Inner { link, interface, reusables, .. } = &*self.0;
        if link.version() < Version::V4 {
            return Ok(());
        }
        let wire = self.to_wire(request, 0)?;
        let make = || interface.createReusableExecution(&wire, &config(false, None));
        let execution = link.call("createReusableExecution", make)?;
        let key = Key { request: request.clone(), measure: false, loop_timeout: None };
        reusables.keep(key, execution);
        Ok(())
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn nnhal_hal::Burst>> {
        let burst = self
            .0
            .link
            .call("configureExecutionBurst", || self.0.interface.configureExecutionBurst())?;
        Ok(Box::new(Burst::new(self.clone(), burst)))
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let Inner { link, interface, .. } = &*self.0;
        let wire = self.to_wire(request, wait_for.len())?;
        let fences: Vec<_> = wait_for.iter().map(to_parcel).collect::<Result<_, _>>()?;
        let deadline = clock::deadline_on_wire(options.deadline);
        let duration = clock::duration_on_wire(timeout_after_fences);
        let config = config(options.measure, options.loop_timeout);
        let method = "executeFenced";
        let result = link.call(method, || match link.version() >= Version::V4 {
            true => interface.executeFencedWithConfig(&wire, &fences, &config, deadline, duration),
            false => interface.executeFenced(
                &wire,
                &fences,
                config.measureTiming,
                deadline,
                config.loopTimeoutDurationNs,
                duration,
            ),
        })?;
        launched(link, method, result)
    }
}
