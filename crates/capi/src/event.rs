//! Events: what tells that something has ended.

use crate::border::export;
use crate::handle;
use crate::last_error;
use crate::outcome::{bad_data, null};
use crate::pointer::{Out, duplicate};
use nnhal_runtime::Event;
use std::os::fd::IntoRawFd;
use std::sync::Arc;

nnhal_c_boundary::opaque! {
    /// An event.
    ANeuralNetworksEvent: Event, 6;
}

export! {
    /// Waits for the end, and answers how it went.
    fn ANeuralNetworksEvent_wait(event: *mut ANeuralNetworksEvent) {
        handle::get(event, "event")?.wait()
    }

    /// Waits for the end, and frees the event.
    fn ANeuralNetworksEvent_free(event: *mut ANeuralNetworksEvent) -> (), (); {
        match handle::take(event, "event") {
            // How it went, whoever frees the event without having waited does not want to know.
            Ok(event) => drop(event.map(|event| event.wait())),
            Err(error) => last_error::keep("ANeuralNetworksEvent_free", &error),
        }
    }

    /// An event that happens when a sync fence signals.
    fn ANeuralNetworksEvent_createFromSyncFenceFd(
        fence: i32,
        event: Out<*mut ANeuralNetworksEvent>,
    ) {
        event.write(std::ptr::null_mut());
        event.check("event")?;
        if fence <= 0 {
            return Err(bad_data(format!("sync_fence_fd is {fence}, which is no fence")));
        }
        let made = Event::from_sync_fence_fd(duplicate(fence, "sync_fence_fd")?)?;
        event.write(handle::give(Arc::new(made))?);
        Ok(())
    }

    /// A descriptor that tells when the event has happened.
    fn ANeuralNetworksEvent_getSyncFenceFd(
        event: *const ANeuralNetworksEvent,
        fence: Out<i32>,
    ) {
        fence.write(-1);
        fence.check("sync_fence_fd")?;
        if event.is_null() {
            return Err(null("event"));
        }
        let descriptor = handle::get(event, "event")?.sync_fence_fd()?;
        fence.write(descriptor.into_raw_fd());
        Ok(())
    }
}
