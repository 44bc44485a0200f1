//! `IExecution`: a request whose memory was sent once.

use super::model::{Mode, Prepared};
use super::version_methods;
use crate::interface::nn;
use nn::ExecutionResult::ExecutionResult;
use nn::FencedExecutionResult::FencedExecutionResult;
use nn::IExecution::IExecution;
use nnhal_hal::Request;
use nnhal_hal::client::Held;
use rsbinder::{BinderResult, Interface, ParcelFileDescriptor};
use std::sync::Arc;

/// A request that can be executed again and again.
pub(super) struct Reusable {
    prepared: Arc<Prepared>,
    request: Request,
    mode: Mode,
    _held: Held,
}

impl Reusable {
    pub(super) fn new(prepared: Arc<Prepared>, request: Request, mode: Mode, held: Held) -> Self {
        Self { prepared, request, mode, _held: held }
    }
}

impl Interface for Reusable {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IExecution for Reusable {
    version_methods!(prepared.origin());

    fn executeSynchronously(&self, deadline: i64) -> BinderResult<ExecutionResult> {
        self.prepared.run(&self.request, &self.mode, deadline)
    }

    fn executeFenced(
        &self,
        wait_for: &[ParcelFileDescriptor],
        deadline: i64,
        duration: i64,
    ) -> BinderResult<FencedExecutionResult> {
        self.prepared.launch(&self.request, wait_for, &self.mode, deadline, duration)
    }
}
