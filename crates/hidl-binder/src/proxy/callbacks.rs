//! The callbacks of clients in other processes. As long as one is to be notified, it is linked to the death of its client.

use super::call_one_way;
use crate::names::{
    EXECUTED_1_0, EXECUTED_1_2, EXECUTED_1_3, PREPARED_1_0, PREPARED_1_2, PREPARED_1_3,
};
use crate::session::Session;
use crate::stub::{Model, PreparedModelStub};
use crate::wire::{Argument, write_slice};
use nnhal_hidl::transport::Return;
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::{v1_0, v1_2, v1_3};
use nnhal_hwbinder::{Binder, DeathLink, Interface, Remote, Writer};
use std::sync::Arc;

/// A client that ends while work of it is waiting or running.
fn watch(remote: &Arc<Remote>, session: &Arc<Session>) -> DeathLink {
    let session = Arc::downgrade(session);
    remote.link_to_death(move || {
        if let Some(session) = session.upgrade() {
            session.leave();
        }
    })
}

/// Who is notified of a preparation.
pub(crate) struct PreparedModelCallbackProxy {
    remote: Arc<Remote>,
    session: Arc<Session>,
    _link: DeathLink,
}

impl PreparedModelCallbackProxy {
    pub(crate) fn new(remote: Arc<Remote>, session: Arc<Session>) -> Self {
        let _link = watch(&remote, &session);
        Self { remote, session, _link }
    }

    fn notify(
        &self,
        interface: &Interface,
        code: u32,
        status: i32,
        model: Option<Arc<dyn v1_0::IPreparedModel>>,
    ) -> Return<()> {
        let stub = |model| {
            let session = Arc::clone(&self.session);
            Binder::local(PreparedModelStub { model: Model::newest(model), session })
        };
        let model = model.map(stub);
        call_one_way(&self.remote, interface, code, |request| {
            request.i32(status);
            request.binder(model);
        })
    }
}

impl v1_0::IPreparedModelCallback for PreparedModelCallbackProxy {
    fn notify(&self, status: i32, model: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        Self::notify(self, &PREPARED_1_0, 1, status, model)
    }
}

impl v1_2::IPreparedModelCallback for PreparedModelCallbackProxy {
    fn notify_1_2(&self, status: i32, model: Option<Arc<dyn v1_2::IPreparedModel>>) -> Return<()> {
        Self::notify(self, &PREPARED_1_2, 2, status, model.map(|model| model as _))
    }
}

impl v1_3::IPreparedModelCallback for PreparedModelCallbackProxy {
    fn notify_1_3(&self, status: i32, model: Option<Arc<dyn v1_3::IPreparedModel>>) -> Return<()> {
        Self::notify(self, &PREPARED_1_3, 3, status, model.map(|model| model as _))
    }
}

/// Who is notified of an execution.
pub(crate) struct ExecutionCallbackProxy {
    remote: Arc<Remote>,
    /// Kept for as long as the client is to be notified.
    _session: Arc<Session>,
    _link: DeathLink,
}

impl ExecutionCallbackProxy {
    pub(crate) fn new(remote: Arc<Remote>, session: Arc<Session>) -> Self {
        let _link = watch(&remote, &session);
        Self { remote, _session: session, _link }
    }
}

fn write_outcome(request: &mut Writer, status: i32, shapes: &[OutputShape], timing: Timing) {
    request.i32(status);
    write_slice(shapes, request);
    timing.write(request);
}

impl v1_0::IExecutionCallback for ExecutionCallbackProxy {
    fn notify(&self, status: i32) -> Return<()> {
        call_one_way(&self.remote, &EXECUTED_1_0, 1, |request| request.i32(status))
    }
}

impl v1_2::IExecutionCallback for ExecutionCallbackProxy {
    fn notify_1_2(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        call_one_way(&self.remote, &EXECUTED_1_2, 2, |request| {
            write_outcome(request, status, shapes, timing);
        })
    }
}

impl v1_3::IExecutionCallback for ExecutionCallbackProxy {
    fn notify_1_3(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        call_one_way(&self.remote, &EXECUTED_1_3, 3, |request| {
            write_outcome(request, status, shapes, timing);
        })
    }
}
