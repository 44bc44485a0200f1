//! A [`nnhal_hal::Device`] behind the interface: [`device`] makes an `IDevice` of it.
//!
//! - **Preparing takes place in the call over sockets, and after it over kernel binder**
//!   ([`Guests::notified_later`]). In the first case `prepareModel` returns when the callback has been notified,
//!   with the same outcome and, where it failed, the reason as text, for which the callback has no
//!   place. A client that calls over a socket is then notified within its own call, and needs no
//!   threads that listen.
//! - **Answers are checked.** A device is not believed what contradicts the model, the request or
//!   itself; the client gets `GENERAL_FAILURE` instead.
//! - **A guest pays.** Everything that a client makes counts as its own and is limited ([`nnhal_hal::Client`]); what
//!   it leaves behind is released when its objects are, and [`nnhal_hal::Client::leave`] ends its work at
//!   once.
//! - **Hints reach the device** (version 4), which ignores those that it does not know, as the files ask. A token that is given twice
//!   is refused.
//!
//! An error is a service-specific code with the reason as text, at most 2000 bytes of it.

mod buffer;
mod burst;
mod device;
mod execution;
mod fenced;
mod guest;
mod model;
mod prepared;
mod timing;

pub use guest::{DURATIONS, Executions, Guest, Guests};

use crate::interface::nn::IDevice::{BnDevice, IDevice};
use crate::interface::nn::IPreparedModel::IPreparedModel;
use crate::version::Version;
use model::Prepared;
use nnhal_hal::{Error, HalVersion};
use rsbinder::{Interface, SIBinder, Strong};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Offers a device in a version of the interface to whom `guests` lets in.
pub fn device(
    device: Arc<dyn nnhal_hal::Device>,
    version: Version,
    guests: Guests,
) -> Strong<dyn IDevice> {
    let origin = Origin { device, version, guests, given: Mutex::default() };
    BnDevice::new_binder(device::Device(Arc::new(origin)))
}

/// What a served device and everything it hands out have in common.
struct Origin {
    device: Arc<dyn nnhal_hal::Device>,
    version: Version,
    guests: Guests,
    /// Prepared models that clients have, to know them again in `allocate`.
    given: Mutex<Vec<(SIBinderWeak, Weak<Prepared>)>>,
}

type SIBinderWeak = rsbinder::WIBinder;

impl Origin {
    fn hal(&self) -> HalVersion {
        self.version.hal()
    }

    /// Distinguishes the devices of a guest.
    fn id(self: &Arc<Self>) -> usize {
        Arc::as_ptr(self).addr()
    }

    /// Remembers a prepared model as what its client has.
    fn give(&self, binder: &SIBinder, prepared: &Arc<Prepared>) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given.retain(|(_, prepared)| prepared.strong_count() > 0);
        given.push((SIBinder::downgrade(binder), Arc::downgrade(prepared)));
    }

    /// The prepared model that a client has as this object.
    fn known(&self, model: &Strong<dyn IPreparedModel>) -> Option<Arc<Prepared>> {
        let binder = model.as_binder();
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        given
            .iter()
            .find(|(known, _)| *known == binder)
            .and_then(|(_, prepared)| prepared.upgrade())
    }

    /// Refuses a method that the version does not have, as one that never knew it would.
    fn expect(&self, version: Version) -> rsbinder::BinderResult<()> {
        match self.version >= version {
            true => Ok(()),
            false => Err(rsbinder::StatusCode::UnknownTransaction.into()),
        }
    }
}

/// `getInterfaceVersion` and `getInterfaceHash` of the version that is offered.
macro_rules! version_methods {
    ($($origin:tt)+) => {
        fn getInterfaceVersion(&self) -> rsbinder::BinderResult<i32> {
            Ok(self.$($origin)+.version.number())
        }

        fn getInterfaceHash(&self) -> rsbinder::BinderResult<String> {
            Ok(self.$($origin)+.version.hash().to_owned())
        }
    };
}
use version_methods;

/// Asks a device something and turns a panic into an error (contract: GEN-8).
fn guarded<T, E: From<Error>>(ask: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(ask))
        .unwrap_or_else(|_| Err(Error::failure("the device has panicked").into()))
}
