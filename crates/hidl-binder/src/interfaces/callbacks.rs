//! What the two ends of a callback notice: that the other process has ended.

use crate::session::Session;
use nnhal_hal::ErrorStatus;
use nnhal_hwbinder::{DeathLink, Error, Remote};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a client is notified of whose service has ended.
pub(super) const GONE: i32 = ErrorStatus::DeviceUnavailable as i32;

/// Whether a service that let go of a callback without a notification has ended, which the client then learns
/// (contract: IPC-5).
pub(super) fn has_ended(notified: &AtomicBool, service: &Remote) -> bool {
    !notified.load(Ordering::Acquire) && service.ping() == Err(Error::Dead)
}

/// A client that ends while work of it is waiting or running.
pub(super) fn watch(remote: &Arc<Remote>, session: &Arc<Session>) -> DeathLink {
    let session = Arc::downgrade(session);
    remote.link_to_death(move || {
        if let Some(session) = session.upgrade() {
            session.leave();
        }
    })
}
