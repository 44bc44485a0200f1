//! [`QueueError`]

use nnhal_hal::ErrorStatus;
use nnhal_hal::memory::MemoryError;

/// Why a queue cannot be opened or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The descriptor is not that of a synchronized queue.
    #[error("the queue's flags are {found}, expected 1 (synchronized)")]
    Flavor {
        /// The flags.
        found: u32,
    },
    /// The data have another size.
    #[error("the queue's data have {found} bytes, expected {expected}")]
    Quantum {
        /// Bytes of a datum by the descriptor.
        found: u32,
        /// Bytes of a datum.
        expected: usize,
    },
    /// Too few or too many grantors.
    #[error("the queue has {found} grantors, expected 3 or 4")]
    Grantors {
        /// The number in the descriptor.
        found: usize,
    },
    /// A grantor refers to a descriptor that is not there.
    #[error("the {part} is in descriptor {index} of {count}")]
    File {
        /// Which part of the queue.
        part: &'static str,
        /// The index that the grantor names.
        index: u32,
        /// How many descriptors there are.
        count: usize,
    },
    /// A part does not begin at a multiple of 8 bytes.
    #[error("the {part} begins at byte {offset}, which is no multiple of 8")]
    Alignment {
        /// Which part of the queue.
        part: &'static str,
        /// Where it begins.
        offset: u32,
    },
    /// A part has the wrong size.
    #[error("the {part} has {found} bytes, expected {expected}")]
    Extent {
        /// Which part of the queue.
        part: &'static str,
        /// Its bytes.
        found: u64,
        /// Bytes that it must have.
        expected: u64,
    },
    /// The ring holds no data, too many, or a broken number of them.
    #[error(
        "the ring has {bytes} bytes, expected a multiple of {quantum} for at least one datum and \
         {most} at most"
    )]
    Capacity {
        /// Bytes of the ring.
        bytes: u64,
        /// Bytes of a datum.
        quantum: usize,
        /// The most data there may be.
        most: usize,
    },
    /// Two parts share bytes.
    #[error("the {first} and the {second} overlap")]
    Overlap {
        /// One part.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// The memory behind the queue is not what is needed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The memory could be cut short by others, and the process killed by touching it.
    #[error("the queue's memory can shrink")]
    CanShrink,
    /// The memory cannot be written.
    #[error("the queue's memory may not be written")]
    ReadOnly,
    /// No one can wait for this queue.
    #[error("the queue has no event flag")]
    NoEventFlag,
    /// A packet does not fit even when the queue is empty.
    #[error("a packet of {length} data does not fit into a queue for {capacity}")]
    TooLong {
        /// Data in the packet.
        length: usize,
        /// Data that the queue can hold.
        capacity: usize,
    },
    /// The counters cannot be true: somebody wrote to them who should not.
    #[error("counters are broken: read {read}, written {written}, in a ring of {bytes} bytes")]
    Counters {
        /// Bytes read.
        read: u64,
        /// Bytes written.
        written: u64,
        /// Bytes of the ring.
        bytes: u64,
        /// Whether what was in the ring is lost, but the queue can be used on.
        passed_over: bool,
    },
    /// Nothing came, or nothing was taken, in time.
    #[error("nothing happened in time")]
    TimedOut,
    /// Whoever waited was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The system refused.
    #[error("{call}: {why}")]
    System {
        /// Name of the system call.
        call: &'static str,
        /// The system's words.
        why: String,
    },
}

impl QueueError {
    #[cfg_attr(loom, allow(dead_code))] // Loom's pieces make no calls of the system.
    pub(super) fn system(call: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |error| Self::System { call, why: error.to_string() }
    }

    /// The status that goes with it: the other side's fault, or a failure.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Flavor { .. }
            | Self::Quantum { .. }
            | Self::Grantors { .. }
            | Self::File { .. }
            | Self::Alignment { .. }
            | Self::Extent { .. }
            | Self::Capacity { .. }
            | Self::Overlap { .. }
            | Self::CanShrink
            | Self::ReadOnly
            | Self::NoEventFlag => ErrorStatus::InvalidArgument,
            Self::Memory(error) => error.status(),
            Self::TooLong { .. }
            | Self::Counters { .. }
            | Self::TimedOut
            | Self::Interrupted
            | Self::System { .. } => ErrorStatus::GeneralFailure,
        }
    }
}

impl From<QueueError> for nnhal_hal::Error {
    fn from(error: QueueError) -> Self {
        Self::new(error.status(), error)
    }
}
