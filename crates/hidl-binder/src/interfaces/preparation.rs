//! `IPreparedModelCallback`.

use super::callbacks::{GONE, has_ended, watch};
use super::prepared_model::{Model, PreparedModelStub, read_model};
use super::{arrived, call_one_way, read_object, take};
use crate::names::{PREPARED, PREPARED_1_0, PREPARED_1_2, PREPARED_1_3, chain_of};
use crate::session::Session;
use nnhal_hal::HalVersion;
use nnhal_hidl::transport::Return;
use nnhal_hidl::{v1_0, v1_2, v1_3};
use nnhal_hwbinder::{
    Binder, CallError, Caller, DeathLink, Interface, Object, ParcelError, Reader, Remote, Writer,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who is notified of a preparation, by the method that was asked for it.
pub(super) enum Prepared {
    V1_0(Arc<dyn v1_0::IPreparedModelCallback>),
    V1_2(Arc<dyn v1_2::IPreparedModelCallback>),
    V1_3(Arc<dyn v1_3::IPreparedModelCallback>),
}

/// A client's callback behind `IPreparedModelCallback`.
pub(super) struct PreparedModelCallbackStub {
    callback: Prepared,
    notified: AtomicBool,
    service: Arc<Remote>,
}

impl PreparedModelCallbackStub {
    pub(super) fn new(callback: Prepared, service: Arc<Remote>) -> Self {
        Self { callback, notified: AtomicBool::new(false), service }
    }

    fn v1_0(&self) -> &dyn v1_0::IPreparedModelCallback {
        match &self.callback {
            Prepared::V1_0(callback) => &**callback,
            Prepared::V1_2(callback) => &**callback,
            Prepared::V1_3(callback) => &**callback,
        }
    }

    fn notified(&self, notify: impl FnOnce() -> Return<()>) -> Result<Writer, CallError> {
        self.notified.store(true, Ordering::Release);
        arrived(notify())?;
        Ok(Writer::reply())
    }
}

impl Object for PreparedModelCallbackStub {
    fn chain(&self) -> &'static [Interface] {
        chain_of(
            PREPARED,
            match &self.callback {
                Prepared::V1_0(_) => HalVersion::V1_0,
                Prepared::V1_2(_) => HalVersion::V1_2,
                Prepared::V1_3(_) => HalVersion::V1_3,
            },
        )
    }

    fn is_one_way(&self, _: u32) -> bool {
        true
    }

    fn call(&self, code: u32, arguments: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
        match (code, &self.callback) {
            (1, _) => {
                take!(arguments, PREPARED_1_0, status: i32);
                let model = read_model(arguments)?.map(|model| model as _);
                self.notified(|| self.v1_0().notify(status, model))
            }
            (2, Prepared::V1_2(_) | Prepared::V1_3(_)) => {
                take!(arguments, PREPARED_1_2, status: i32);
                let model = read_model(arguments)?.map(|model| model as _);
                self.notified(|| match &self.callback {
                    Prepared::V1_0(_) => Ok(()),
                    Prepared::V1_2(callback) => callback.notify_1_2(status, model),
                    Prepared::V1_3(callback) => callback.notify_1_2(status, model),
                })
            }
            (3, Prepared::V1_3(callback)) => {
                take!(arguments, PREPARED_1_3, status: i32);
                let model = read_model(arguments)?.map(|model| model as _);
                self.notified(|| callback.notify_1_3(status, model))
            }
            _ => Err(CallError::UNKNOWN),
        }
    }
}

impl Drop for PreparedModelCallbackStub {
    fn drop(&mut self) {
        if has_ended(&self.notified, &self.service) {
            let notified = self.v1_0().notify(GONE, None);
            tracing::debug!(?notified, "the service ended while it prepared a model");
        }
    }
}

/// The callback of a client in another process. As long as it is to be notified, it is linked to the death of its client.
pub(super) struct PreparedModelCallbackProxy {
    remote: Arc<Remote>,
    session: Arc<Session>,
    _link: DeathLink,
}

impl PreparedModelCallbackProxy {
    fn new(remote: Arc<Remote>, session: Arc<Session>) -> Self {
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

/// The callback of a preparation, of another process: one that uses its own service does so without a transport.
pub(super) fn read_prepared_callback(
    reader: &mut Reader<'_>,
    session: &Arc<Session>,
) -> Result<Option<Arc<PreparedModelCallbackProxy>>, ParcelError> {
    let proxy = |remote| Arc::new(PreparedModelCallbackProxy::new(remote, Arc::clone(session)));
    read_object(reader, proxy, |_| None)
}
