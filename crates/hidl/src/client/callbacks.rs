//! The callbacks that drivers get. Their drivers' answers are only put down here and judged by
//! whoever waits for them.

use super::interface::PreparedInterface;
use super::wait::{Answer, Wait, channel};
use crate::transport::Return;
use crate::v1_2::{OutputShape, Timing};
use crate::{v1_0, v1_2, v1_3};
use std::sync::Arc;

/// A status, and a prepared model that should go with it.
pub(super) type PreparedAnswer = (i32, Option<PreparedInterface>);

/// A status, and what should go with it.
#[derive(Debug)]
pub(super) struct ExecutionAnswer {
    pub(super) status: i32,
    pub(super) output_shapes: Vec<OutputShape>,
    pub(super) timing: Timing,
}

/// Takes a prepared model by whichever method.
pub(super) struct PreparedModelCallback(Answer<PreparedAnswer>);

impl PreparedModelCallback {
    pub(super) fn new() -> (Arc<Self>, Wait<PreparedAnswer>) {
        let (answer, wait) = channel();
        (Arc::new(Self(answer)), wait)
    }
}

impl v1_0::IPreparedModelCallback for PreparedModelCallback {
    fn notify(&self, status: i32, model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        self.0.give((status, model.map(PreparedInterface::V1_0)));
        Ok(())
    }
}

impl v1_2::IPreparedModelCallback for PreparedModelCallback {
    fn notify_1_2(&self, status: i32, model: Option<Arc<dyn v1_2::IPreparedModel>>) -> Return<()> {
        self.0.give((status, model.map(PreparedInterface::V1_2)));
        Ok(())
    }
}

impl v1_3::IPreparedModelCallback for PreparedModelCallback {
    fn notify_1_3(&self, status: i32, model: Option<Arc<dyn v1_3::IPreparedModel>>) -> Return<()> {
        self.0.give((status, model.map(PreparedInterface::V1_3)));
        Ok(())
    }
}

/// Takes the end of an execution by whichever method.
pub(super) struct ExecutionCallback(Answer<ExecutionAnswer>);

impl ExecutionCallback {
    pub(super) fn new() -> (Arc<Self>, Wait<ExecutionAnswer>) {
        let (answer, wait) = channel();
        (Arc::new(Self(answer)), wait)
    }

    fn give(&self, status: i32, output_shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.0.give(ExecutionAnswer { status, output_shapes: output_shapes.to_vec(), timing });
        Ok(())
    }
}

impl v1_0::IExecutionCallback for ExecutionCallback {
    fn notify(&self, status: i32) -> Return<()> {
        self.give(status, &[], Timing::NONE)
    }
}

impl v1_2::IExecutionCallback for ExecutionCallback {
    fn notify_1_2(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.give(status, shapes, timing)
    }
}

impl v1_3::IExecutionCallback for ExecutionCallback {
    fn notify_1_3(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        self.give(status, shapes, timing)
    }
}
