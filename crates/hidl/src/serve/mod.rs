//! A [`nnhal_hal::Device`] behind the interfaces: [`Device`] implements `IDevice` of every version, and
//! what it hands out implements every version likewise.
//!
//! Here is what the interface files ask for beyond [`nnhal_hal::Device`]: work in the background, one
//! notification in every outcome, statuses that the method may return, results that are empty
//! unless all is well, times and shapes where they belong. What a model or request may hold is the
//! device's to judge.
//!
//! - **Exactly once is a type.** A callback is consumed when it is delivered, and one that is
//!   dropped undelivered, for whatever reason, delivers `GENERAL_FAILURE` (contract: CB-1).
//! - **Launch and task.** A model or request is checked before an asynchronous method returns, so
//!   that what is wrong with it is returned as well as notified (contract: PREP-1, EXEC-1); what
//!   goes wrong later is notified only. A missed deadline always counts as later (PREP-6, EXEC-5).
//! - **Answers are checked.** A device is not believed what contradicts the model, the request, its
//!   version or itself; the client gets `GENERAL_FAILURE` instead (`checks`).
//! - **One-way calls.** A client that panics in its callback, or cannot be reached, is ignored
//!   (contract: CB-2). One that blocks in it blocks one background thread.
//!
//! Statuses have no words. The reason behind each that is not `NONE` is logged with [`tracing`], at
//! level `debug`.

mod buffer;
mod burst;
mod cache;
mod callbacks;
mod device;
mod fenced;
mod outcome;
mod preparation;
mod prepared;
mod status;
mod tokens;

pub use cache::{CacheError, CacheFiles};
pub use device::Device;
pub use prepared::PreparedModel;
pub use tokens::{Given, Tokens};

use crate::tasks::{Kind, Tasks};
use nnhal_hal::background::NotRun;
use nnhal_hal::client::Holding;
use nnhal_hal::{Client, Deadline, Error, HalVersion, Priority};
use status::{Answer, NONE};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What a served device and everything it hands out have in common. Two are the same device
/// exactly if this is the same object.
struct Origin {
    device: Arc<dyn nnhal_hal::Device>,
    /// Whose all of it is.
    client: Client,
    tasks: Tasks,
    /// Of the buffers that it has given.
    tokens: Arc<Tokens>,
}

impl Origin {
    /// Whether the device offers this version of the interface.
    fn has(&self, version: HalVersion) -> bool {
        guarded(|| Ok::<_, Error>(self.device.version())).is_ok_and(|offered| offered >= version)
    }

    /// Refuses a method of a version that the device does not offer, also where no one asked.
    fn expect_version(&self, version: HalVersion) -> nnhal_hal::Result<()> {
        let offered = self.device.version();
        if offered >= version {
            return Ok(());
        }
        Err(Error::failure(format!("the method is of {version}, the device of {offered}")))
    }

    /// Does something in the background, and answers a launch. A task that cannot be started is
    /// dropped, and its callback with it, so that the client is notified as well (contract: PREP-4). One that still waits for a
    /// thread at the deadline is given the reason to notify the client of.
    fn spawn(
        &self,
        kind: Kind,
        priority: Priority,
        deadline: Option<Deadline>,
        task: impl FnOnce(Option<NotRun>) + Send + 'static,
    ) -> i32 {
        let held = match self.client.hold(Holding::Tasks, 1) {
            Ok(held) => held,
            Err(refused) => {
                drop(task);
                return Answer::Plain.refuse(&Error::failure(refused));
            }
        };
        let counted = move |not_run: Option<NotRun>| {
            let _held = held;
            task(not_run);
        };
        match self.tasks.spawn_until(kind, priority, deadline, counted) {
            Ok(()) => NONE,
            Err(refused) => Answer::Plain.refuse(&Error::failure(refused)),
        }
    }
}

/// Asks a device something and turns a panic into an error (contract: GEN-8).
fn guarded<T, E: From<Error>>(ask: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(ask))
        .unwrap_or_else(|_| Err(Error::failure("the device has panicked").into()))
}
