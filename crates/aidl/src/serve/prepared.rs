//! `IPreparedModel`.

use super::burst::Burst;
use super::execution::Reusable;
use super::model::{Mode, Prepared};
use super::{guarded, version_methods};
use crate::convert::request_alone;
use crate::interface::nn;
use crate::status::Answer;
use crate::version::Version;
use nn::ExecutionConfig::ExecutionConfig;
use nn::ExecutionResult::ExecutionResult;
use nn::FencedExecutionResult::FencedExecutionResult;
use nn::IBurst::{BnBurst, IBurst};
use nn::IExecution::{BnExecution, IExecution};
use nn::IPreparedModel::IPreparedModel;
use nn::Request::Request as WireRequest;
use nnhal_hal::Error;
use nnhal_hal::client::Holding;
use rsbinder::{BinderResult, Interface, ParcelFileDescriptor, Strong};
use std::sync::Arc;

/// A prepared model behind `IPreparedModel`.
pub(super) struct PreparedModel(pub(super) Arc<Prepared>);

impl PreparedModel {
    fn run_once(
        &self,
        request: &WireRequest,
        mode: nnhal_hal::Result<Mode>,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        let arguments = mode.and_then(|mode| Ok((request_alone(request)?, mode)));
        let (request, mode) = arguments.map_err(|error| Answer::Launch.refuse(&error))?;
        self.0.run(&request, &mode, deadline)
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
        self.0.launch(&request, wait_for, &mode, deadline, duration)
    }
}

impl Interface for PreparedModel {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IPreparedModel for PreparedModel {
    version_methods!(0.origin());

    fn executeSynchronously(
        &self,
        request: &WireRequest,
        measure: bool,
        deadline: i64,
        loop_timeout: i64,
    ) -> BinderResult<ExecutionResult> {
        self.run_once(request, Mode::of(measure, loop_timeout), deadline)
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
        self.launch_once(request, wait_for, mode, deadline, duration)
    }

    fn configureExecutionBurst(&self) -> BinderResult<Strong<dyn IBurst>> {
        let held = self.0.guest().client().hold(Holding::Bursts, 1).map_err(Error::from);
        let held = held.map_err(|error| Answer::Launch.refuse(&error))?;
        Ok(BnBurst::new_binder(Burst::new(Arc::clone(&self.0), held)))
    }

    fn createReusableExecution(
        &self,
        request: &WireRequest,
        config: &ExecutionConfig,
    ) -> BinderResult<Strong<dyn IExecution>> {
        self.0.origin().expect(Version::V4)?;
        let made = guarded(|| {
            let client = self.0.guest().client();
            let held = client.hold(Holding::ReusableExecutions, 1)?;
            let (request, mode) = (request_alone(request)?, Mode::configured(config)?);
            self.0.expect_own_tokens(&request)?;
            self.0.model().check_kept_request(&request)?;
            request.kept_by(client)?;
            Ok(Reusable::new(Arc::clone(&self.0), request, mode, held))
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
        self.0.origin().expect(Version::V4)?;
        self.run_once(request, Mode::configured(config), deadline)
    }

    fn executeFencedWithConfig(
        &self,
        request: &WireRequest,
        wait_for: &[ParcelFileDescriptor],
        config: &ExecutionConfig,
        deadline: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        self.0.origin().expect(Version::V4)?;
        self.launch_once(request, wait_for, Mode::configured(config), deadline, duration)
    }
}
