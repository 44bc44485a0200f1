//! Fast message queues in shared memory, as HIDL has them: [`MessageQueue`] with a [`Reader`] at
//! one end and a [`Writer`] at the other, in one process or in two.
//!
//! A queue is a ring of data of one size and two counters, of the bytes read and written ever; who
//! wants to wait does so by the event flag. Its layout is that of a synchronized queue of libfmq,
//! so that either end can be libfmq's.
//!
//! Who opens a queue trusts no one. The places of its parts are checked, memory that could shrink is
//! refused, and whatever is found in counters, ring and event flag is looked at as a copy
//! (contract: GEN-8, SEC-1). What the other side can do is to make its own queue useless.
//!
//! ```
//! use nnhal_burst::queue::MessageQueue;
//! use nnhal_burst::datum::{FmqResultDatum, ResultDatum};
//!
//! # fn main() -> Result<(), nnhal_burst::queue::QueueError> {
//! let here = MessageQueue::<FmqResultDatum>::create(8)?;
//! let there = MessageQueue::<FmqResultDatum>::open(here.descriptor()?)?;
//! let (mut writer, mut reader) = (here.into_writer(), there.into_reader());
//! let packet = [ResultDatum::OutputDimension(7).into(); 3];
//! writer.write(&packet, None)?;
//! let mut received = Vec::new();
//! reader.read(&mut received, None)?;
//! assert_eq!(received, packet);
//! # Ok(())
//! # }
//! ```

pub(crate) mod any;
mod descriptor;
mod endpoints;
mod error;
mod event_flag;
#[cfg_attr(loom, path = "shared_modelled.rs")]
mod shared;
mod spin;
mod sync;

#[cfg(all(test, loom))]
mod all_orders;

pub use descriptor::{Grantor, MAXIMUM_CAPACITY, MqDescriptor};
pub use endpoints::{Reader, Writer};
pub use error::QueueError;
pub use event_flag::Interrupt;

use descriptor::Layout;
use nnhal_hal::Memory;
use shared::Shared;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// What queues are made of: words of 8 bytes, any value of which can arrive from the other side.
pub trait Datum: Copy + Default {
    /// How many words; one at least, and few.
    const WORDS: usize;

    /// As many words as [`Datum::WORDS`] says.
    fn words(&self) -> &[u64];

    /// The same, to be filled.
    fn words_mut(&mut self) -> &mut [u64];
}

/// A queue of which neither end has been taken yet.
#[derive(Debug)]
pub struct MessageQueue<D> {
    shared: Arc<Shared>,
    files: Arc<[OwnedFd]>,
    layout: Layout,
    datum: PhantomData<fn(D) -> D>,
}

/// The same queue in the same memory, for whoever takes the other end.
impl<D> Clone for MessageQueue<D> {
    fn clone(&self) -> Self {
        let (shared, files) = (Arc::clone(&self.shared), Arc::clone(&self.files));
        Self { shared, files, layout: self.layout, datum: PhantomData }
    }
}

impl<D: Datum> MessageQueue<D> {
    /// A new queue for `capacity` data, with an event flag, in memory that can neither shrink nor
    /// grow.
    ///
    /// # Errors
    /// [`QueueError::Capacity`] if that is none or more than [`MAXIMUM_CAPACITY`];
    /// [`QueueError::Memory`] or [`QueueError::System`] if the system has no more.
    pub fn create(capacity: usize) -> Result<Self, QueueError> {
        let (quantum, most) = (D::WORDS * 8, MAXIMUM_CAPACITY);
        let bytes = (capacity as u64).saturating_mul(quantum as u64);
        if capacity == 0 || capacity > most {
            return Err(QueueError::Capacity { bytes, quantum, most });
        }
        let layout = Layout::of_new(bytes);
        let end = layout.parts().map(|(_, part)| part.range().end).max().unwrap_or(0);
        let memory = Memory::allocate(end.next_multiple_of(rustix::param::page_size() as u64))?;
        let file = memory.as_fd().try_clone_to_owned().map_err(cannot_duplicate)?;
        Self::in_files(vec![file], layout)
    }

    /// Opens a queue that somebody else made, who may be hostile. The descriptors are closed where
    /// it is refused.
    ///
    /// # Errors
    /// Whatever is wrong with it: no other variant than [`QueueError::TooLong`],
    /// [`QueueError::Counters`] and those of waiting is impossible.
    pub fn open(descriptor: MqDescriptor) -> Result<Self, QueueError> {
        let MqDescriptor { files, grantors, quantum, flags } = descriptor;
        if flags != MqDescriptor::SYNCHRONIZED {
            return Err(QueueError::Flavor { found: flags });
        }
        let expected = D::WORDS * 8;
        if usize::try_from(quantum) != Ok(expected) {
            return Err(QueueError::Quantum { found: quantum, expected });
        }
        let layout = Layout::check(&grantors, files.len(), expected)?;
        Self::in_files(files, layout)
    }

    fn in_files(files: Vec<OwnedFd>, layout: Layout) -> Result<Self, QueueError> {
        let shared = Arc::new(Shared::new(&files, &layout)?);
        Ok(Self { shared, files: files.into(), layout, datum: PhantomData })
    }

    /// What the other side needs to open the queue.
    ///
    /// # Errors
    /// [`QueueError::System`] if there are no descriptors left.
    pub fn descriptor(&self) -> Result<MqDescriptor, QueueError> {
        let files = self.files.iter().map(OwnedFd::try_clone).collect::<Result<_, _>>();
        Ok(MqDescriptor {
            files: files.map_err(cannot_duplicate)?,
            grantors: self.layout.grantors(),
            quantum: u32::try_from(D::WORDS * 8).unwrap_or(u32::MAX),
            flags: MqDescriptor::SYNCHRONIZED,
        })
    }

    /// The most data that it can hold.
    pub fn capacity(&self) -> usize {
        self.shared.ring().len() / D::WORDS
    }

    /// Whether its ends can wait (contract: BURST-1).
    pub fn has_event_flag(&self) -> bool {
        self.shared.event_flag().is_some()
    }

    /// Takes the end that reads. Its descriptors are closed: what is mapped stays.
    pub fn into_reader(self) -> Reader<D> {
        Reader::new(self)
    }

    /// Takes the end that writes.
    pub fn into_writer(self) -> Writer<D> {
        Writer::new(self)
    }

    fn into_shared(self) -> Arc<Shared> {
        self.shared
    }
}

fn cannot_duplicate(error: std::io::Error) -> QueueError {
    QueueError::System { call: "dup", why: error.to_string() }
}
