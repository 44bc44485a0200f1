//! [`PreparedModel`]: a service's prepared model as a [`nnhal_hal::PreparedModel`].

use super::buffer::discard;
use super::buffers::Shared;
use super::burst::Burst;
use super::checks::Checks;
use super::fenced::launched;
use super::link::Link;
use super::reusable::{Key, Plan, Reusables};
use crate::convert::clock;
use crate::convert::{prefixes_to_wire, to_parcel, tokens_to_wire};
use crate::interface::nn;
use crate::version::Version;
use nn::ExecutionConfig::ExecutionConfig;
use nn::ExecutionResult::ExecutionResult;
use nn::IExecution::IExecution;
use nn::IPreparedModel::IPreparedModel;
use nnhal_hal::{
    Error, Execution, ExecutionError, ExecutionOptions, FencedExecution, HalVersion,
    LaunchedRequest, Model, Request, RequestMemoryPool, SyncFence,
};
use rsbinder::Strong;
use std::sync::Arc;
use std::time::Duration;

/// A service's prepared model.
#[derive(Clone)]
pub(super) struct PreparedModel {
    checks: Checks,
    interface: Strong<dyn IPreparedModel>,
    reusables: Arc<Reusables>,
}

/// A request that was launched, with the buffers that it names: the service learns of it when it is executed, and has let go of
/// those by then that nothing of this process holds.
struct Launched {
    model: PreparedModel,
    request: Request,
    buffers: Vec<Arc<Shared>>,
}

impl LaunchedRequest for Launched {
    fn execute(&self, options: &ExecutionOptions) -> Result<Execution, ExecutionError> {
        nnhal_hal::PreparedModel::execute(&self.model, &self.request, options)
    }

    fn discard_outputs(&self) {
        let pools = &self.request.pools;
        let written = self.request.outputs.iter().filter(|output| !output.has_no_value);
        for output in written {
            let Some(RequestMemoryPool::Token(token)) =
                pools.get(output.location.pool_index as usize)
            else {
                continue;
            };
            for buffer in self.buffers.iter().filter(|buffer| buffer.token == *token) {
                discard(self.model.checks.link(), buffer);
            }
        }
    }
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
fn config(options: &ExecutionOptions) -> ExecutionConfig {
    ExecutionConfig {
        measureTiming: options.measure,
        loopTimeoutDurationNs: clock::duration_on_wire(options.loop_timeout),
        executionHints: tokens_to_wire(&options.hints),
        extensionNameToPrefix: prefixes_to_wire(&options.hints.extension_name_to_prefix),
    }
}

impl PreparedModel {
    pub(super) fn new(
        link: Arc<Link>,
        interface: Strong<dyn IPreparedModel>,
        known: Known<'_>,
    ) -> Self {
        let checks = Checks::new(link, known.model, known.version);
        Self { checks, interface, reusables: Arc::default() }
    }

    /// The service's object, if it is one of this connection (contract: ALLOC-2).
    pub(super) fn interface_at(&self, link: &Arc<Link>) -> Option<Strong<dyn IPreparedModel>> {
        Arc::ptr_eq(self.checks.link(), link).then(|| self.interface.clone())
    }

    /// Executes what has a reusable execution by now, and what has none by a request alone.
    fn run(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> nnhal_hal::Result<(&'static str, ExecutionResult)> {
        let deadline = clock::deadline_on_wire(options.deadline);
        let Self { checks, interface, reusables } = self;
        let link = checks.link();
        let method = "executeSynchronously";
        if link.version() < Version::V4 {
            let wire = checks.to_wire(request, 0)?;
            let loop_timeout = clock::duration_on_wire(options.loop_timeout);
            let call =
                || interface.executeSynchronously(&wire, options.measure, deadline, loop_timeout);
            return Ok((method, link.call(method, call)?));
        }
        let (key, execution) = match reusables.plan(request, options) {
            Plan::Use(key, execution) => (key, execution),
            plan => {
                let wire = checks.to_wire(request, 0)?;
                let config = config(options);
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
                (Key::of(request, options), execution)
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
        self.checks.expect_known_outputs(request)?;
        let (method, result) = self.run(request, options)?;
        self.checks.judge(method, request, options.measure, result)
    }

    /// Makes a reusable execution, which the service checks, and which the execution then uses. A service
    /// older than version 4 cannot be asked.
    fn check_request(&self, request: &Request) -> nnhal_hal::Result<()> {
        self.checks.expect_known_outputs(request)?;
        let Self { checks, interface, reusables } = self;
        let link = checks.link();
        if link.version() < Version::V4 {
            return Ok(());
        }
        let wire = checks.to_wire(request, 0)?;
        let make =
            || interface.createReusableExecution(&wire, &config(&ExecutionOptions::default()));
        let execution = link.call("createReusableExecution", make)?;
        reusables.keep(Key::of(request, &ExecutionOptions::default()), execution);
        Ok(())
    }

    fn launch(&self, request: &Request) -> nnhal_hal::Result<Option<Box<dyn LaunchedRequest>>> {
        let buffers = self.checks.link().buffers().named(request);
        nnhal_hal::PreparedModel::check_request(self, request)?;
        if buffers.is_empty() {
            return Ok(None);
        }
        let launched = Launched { model: self.clone(), request: request.clone(), buffers };
        Ok(Some(Box::new(launched)))
    }

    fn configure_burst(&self) -> nnhal_hal::Result<Box<dyn nnhal_hal::Burst>> {
        let Self { checks, interface, .. } = self;
        let configure = || interface.configureExecutionBurst();
        let burst = checks.link().call("configureExecutionBurst", configure)?;
        Ok(Box::new(Burst::new(checks.clone(), interface.clone(), burst)))
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> nnhal_hal::Result<FencedExecution> {
        let Self { checks, interface, .. } = self;
        let link = checks.link();
        let wire = checks.to_wire(request, wait_for.len())?;
        let fences: Vec<_> = wait_for.iter().map(to_parcel).collect::<Result<_, _>>()?;
        let deadline = clock::deadline_on_wire(options.deadline);
        let duration = clock::duration_on_wire(timeout_after_fences);
        let config = config(options);
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
