//! What the kernel knows of references to objects of other processes.

use rsbinder::{DeathRecipient, SIBinder, WIBinder};
use std::sync::Arc;

/// Has the kernel count this process's reference to an object that came in a call, before another thread may give it up.
///
/// A thread that serves calls tells the kernel of references when its call has ended (`rsbinder` collects commands). Another
/// thread to which it has given the object says at once that it is no longer wanted; were the object's only reference still
/// the call's own, that one would be taken back, and the kernel would refuse both the later count and the end of the call
/// ("transaction release ... bad handle" in its log). Asking for a death notice sends what was collected.
pub(crate) fn count(object: &SIBinder) {
    struct Ignored;
    impl DeathRecipient for Ignored {
        fn binder_died(&self, _who: &WIBinder) {}
    }
    // Objects behind sockets have no part in this.
    if object.as_proxy().is_none() {
        return;
    }
    let ignored = Arc::new(Ignored);
    match object.link_to_death_arc(&ignored).and_then(|()| object.unlink_to_death_arc(&ignored)) {
        Ok(()) => {}
        Err(error) => tracing::debug!(%error, "an object that has died meanwhile"),
    }
}
