//! Events: what tells that something has ended.

use crate::border::export;
use crate::handle;
use crate::last_error;
use crate::outcome::{Outcome, bad_data, lock, null};
use crate::pointer::{Out, duplicate};
use nnhal_runtime::Event;
use std::os::fd::IntoRawFd;
use std::sync::{Arc, Mutex};

nnhal_c_boundary::opaque! {
    /// An event.
    ANeuralNetworksEvent: Held, 6;
}

/// An event as C holds it.
pub struct Held {
    event: Event,
    /// What is to be done when somebody has waited for the first time.
    then: Mutex<Option<Then>>,
}

type Then = Box<dyn FnOnce(&Outcome) + Send>;

impl From<Event> for Held {
    fn from(event: Event) -> Self {
        Self { event, then: Mutex::new(None) }
    }
}

impl Held {
    /// The same with something to do when somebody has waited for the first time.
    pub(crate) fn and_then(self, then: impl FnOnce(&Outcome) + Send + 'static) -> Self {
        Self { then: Mutex::new(Some(Box::new(then))), ..self }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    fn wait(&self) -> Outcome {
        let result = self.event.wait();
        let then = lock(&self.then)?.take();
        if let Some(then) = then {
            then(&result);
        }
        result
    }
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
        event.write(handle::give(Arc::new(Held::from(made)))?);
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
        let descriptor = handle::get(event, "event")?.event.sync_fence_fd()?;
        fence.write(descriptor.into_raw_fd());
        Ok(())
    }
}
