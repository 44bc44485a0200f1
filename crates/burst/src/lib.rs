//! Bursts: many executions of one prepared model in close succession, over fast message queues in
//! shared memory (`IBurstContext`, `IBurstCallback`; contract, section 11).
//!
//! For drivers and services that offer bursts, and for clients that use them. A queue of [`open`] holds
//! [`QUEUE_CAPACITY`] data of 24 bytes; no queue holds more than [`queue::MAXIMUM_CAPACITY`].
//!
//! | module | contents |
//! |---|---|
//! | [`queue`] | [`MessageQueue`]: synchronized fast message queues, with the layout and the protocol of libfmq's |
//! | [`datum`] | [`FmqRequestDatum`], [`FmqResultDatum`]: the elements of the queues |
//! | [`packet`] | requests and results as sequences of such elements |
//! | [`server`] | [`BurstServer`], for the service: executes the packets that arrive |
//! | [`client`] | [`BurstClient`], for the client: a [`nnhal_hal::Burst`] |
//! | [`pair`] | [`open`]: service and client in one process |
//!
//! Service and client share two queues and two small traits, [`BurstContext`] and [`BurstCallback`],
//! which are those of the interface. The transport over which these are called is not part of this crate.
//!
//! ```
//! use nnhal_hal::{
//!     Burst, Execution, ExecutionError, ExecutionOptions, OutputShape, PreparedModel, Request,
//!     RequestBuilder, Timing,
//! };
//! use std::sync::Arc;
//!
//! /// A prepared model that leaves its outputs as they are. Drivers have better ones.
//! struct Nothing;
//!
//! impl PreparedModel for Nothing {
//!     fn execute(
//!         &self,
//!         _: &Request,
//!         _: &ExecutionOptions,
//!     ) -> std::result::Result<Execution, ExecutionError> {
//!         let shape = OutputShape { dimensions: vec![2], is_sufficient: true };
//!         Ok(Execution { output_shapes: vec![shape], timing: Timing::NONE })
//!     }
//! }
//!
//! let burst = nnhal_burst::open(Arc::new(Nothing))?;
//! let mut request = RequestBuilder::new();
//! request.input(&[0; 8]).output(8);
//! let request = request.build()?;
//! for _ in 0..3 {
//!     let execution = burst.execute(&request, false)?;
//!     assert_eq!(execution.dimensions(0), Some(&[2][..]));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
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
