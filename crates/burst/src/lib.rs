//! Bursts: many executions of one prepared model in close succession, over fast message queues in
//! shared memory (`IBurstContext`, `IBurstCallback`; contract, section 11).
//!
//! | module | contents |
//! |---|---|
//! | [`queue`] | synchronized fast message queues, laid out and used as libfmq's |
//! | [`datum`] | the 24 bytes that are in them |
//! | [`packet`] | requests and results as rows of such data |
//! | [`server`] | [`BurstServer`], the service's end: a thread that executes what comes |
//! | [`client`] | [`BurstClient`], the other end, which is a [`nnhal_hal::Burst`] |
//! | [`pair`] | [`open`]: both ends in one process |
//!
//! The two ends meet in two queues and two small traits, [`BurstContext`] and [`BurstCallback`],
//! which are the interface's own; over which transport these reach the other side is not looked at.
//!
//! ```no_run
//! # fn run(prepared: std::sync::Arc<dyn nnhal_hal::PreparedModel>, request: nnhal_hal::Request)
//! # -> Result<(), nnhal_hal::ExecutionError> {
//! use nnhal_hal::Burst;
//!
//! let burst = nnhal_burst::open(prepared)?;
//! let execution = burst.execute(&request, false)?;
//! # Ok(()) }
//! ```

pub mod client;
pub mod datum;
pub mod packet;
pub mod pair;
mod parking;
pub mod queue;
pub mod server;

pub use client::{BurstClient, ClientError, Connection};
pub use datum::{FmqRequestDatum, FmqResultDatum};
pub use pair::open;
pub use queue::{MessageQueue, MqDescriptor};
pub use server::BurstServer;

use nnhal_hal::Memory;

/// Data in each queue of Android's own client, and of [`open`].
pub const QUEUE_CAPACITY: usize = 1024;

/// What the service asks the client for during a burst (`IBurstCallback`).
pub trait BurstCallback: Send + Sync {
    /// The memory behind slots, one for each, in order (contract: BURST-8).
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is nothing behind one of them; `GENERAL_FAILURE`.
    fn get_memories(&self, slots: &[i32]) -> nnhal_hal::Result<Vec<Memory>>;
}

/// What the client asks of the service during a burst (`IBurstContext`). The burst ends when it is
/// dropped.
pub trait BurstContext: Send + Sync {
    /// Lets go of the memory behind a slot, which may then stand for another one (contract:
    /// BURST-10). Of a slot that the service does not know there is nothing to let go.
    fn free_memory(&self, slot: i32);

    /// Whether the service is still there. It is asked from time to time while a client waits for
    /// a result (contract: IPC-5); who is notified of the service's death at once calls
    /// [`queue::Interrupt::throw`] besides.
    fn is_alive(&self) -> bool {
        true
    }
}
