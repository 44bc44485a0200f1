//! Requests and results as packets: rows of data whose first says how many there are.
//!
//! A packet that arrives is believed in nothing. Every datum must be there, of the kind that its
//! place asks for, and none more; counts are compared with what was received before anything is
//! allocated by them (contract: BURST-5, BURST-6).

mod request;
mod result;

pub use request::RequestPacket;
pub use result::ResultPacket;

use crate::datum::DatumError;
use nnhal_hal::ErrorStatus;

/// Why data are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The first datum says another number of data than there are.
    #[error("the packet says that it has {claimed} data, but {received} were received")]
    Size {
        /// What it says.
        claimed: u32,
        /// The number of data that were read from the queue.
        received: usize,
    },
    /// The counts in the packet ask for more data than there are, or for fewer.
    #[error("the packet's counts ask for {needed} data at least, but it has {received}")]
    Counts {
        /// What they ask for, as far as is known.
        needed: u64,
        /// The number of data that were read from the queue.
        received: usize,
    },
    /// A datum is none.
    #[error("datum {position}: {error}")]
    Datum {
        /// Which datum.
        position: usize,
        /// Why.
        error: DatumError,
    },
    /// A datum is of another kind than its place asks for.
    #[error("datum {position} has tag {found}, expected {expected}")]
    Kind {
        /// Which datum.
        position: usize,
        /// Its tag.
        found: u8,
        /// What its place asks for.
        expected: &'static str,
    },
    /// The packet ends too early.
    #[error("the packet ends at datum {position}, expected {expected}")]
    Ended {
        /// Which datum is missing.
        position: usize,
        /// What it should be.
        expected: &'static str,
    },
    /// There are data behind the last.
    #[error("the packet has {received} data, but ends at {position}")]
    Left {
        /// Where it should end.
        position: usize,
        /// The number of data that were read from the queue.
        received: usize,
    },
    /// Whether to measure is neither yes nor no.
    #[error("{found} is no code of MeasureTiming")]
    MeasureTiming {
        /// The code.
        found: i32,
    },
    /// The status does not exist in 1.2.
    #[error("{found} is no code of ErrorStatus in 1.2")]
    Status {
        /// The code.
        found: i32,
    },
    /// The status and the shapes contradict each other (contract: SHAPE-1, CB-7).
    #[error("{status} comes with {shapes} output shapes")]
    Shapes {
        /// As the packet has it.
        status: ErrorStatus,
        /// The number of shapes in the packet.
        shapes: usize,
    },
    /// More than a packet's numbers of 32 bits can count.
    #[error("{found} data, inputs, outputs or dimensions are more than 32 bits can count")]
    TooMany {
        /// The number of them.
        found: usize,
    },
}

impl PacketError {
    /// The status that answers such a request: an enumeration's unknown code is a wrong argument
    /// in a packet that is well formed (contract: GEN-7), everything else is none at all.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::MeasureTiming { .. } => ErrorStatus::InvalidArgument,
            _ => ErrorStatus::GeneralFailure,
        }
    }
}

impl From<PacketError> for nnhal_hal::Error {
    fn from(error: PacketError) -> Self {
        Self::new(error.status(), error)
    }
}

/// A kind of datum: what it means when it is looked at.
trait Decode: Copy {
    type Meaning;

    fn decode_datum(self) -> Result<Self::Meaning, DatumError>;
    fn tag_of(self) -> u8;
}

impl Decode for crate::datum::FmqRequestDatum {
    type Meaning = crate::datum::RequestDatum;

    fn decode_datum(self) -> Result<Self::Meaning, DatumError> {
        self.decode()
    }

    fn tag_of(self) -> u8 {
        self.tag()
    }
}

impl Decode for crate::datum::FmqResultDatum {
    type Meaning = crate::datum::ResultDatum;

    fn decode_datum(self) -> Result<Self::Meaning, DatumError> {
        self.decode()
    }

    fn tag_of(self) -> u8 {
        self.tag()
    }
}

/// Takes the data of a packet one after the other.
struct Cursor<'a, D> {
    data: &'a [D],
    position: usize,
}

impl<'a, D: Decode> Cursor<'a, D> {
    fn new(data: &'a [D]) -> Self {
        Self { data, position: 0 }
    }

    /// The next datum, if `take` takes what it means; `expected` says what that is.
    fn next<T>(
        &mut self,
        expected: &'static str,
        take: impl FnOnce(D::Meaning) -> Option<T>,
    ) -> Result<T, PacketError> {
        let position = self.position;
        let datum = self.data.get(position).ok_or(PacketError::Ended { position, expected })?;
        let meaning =
            datum.decode_datum().map_err(|error| PacketError::Datum { position, error })?;
        self.position += 1;
        take(meaning).ok_or(PacketError::Kind { position, found: datum.tag_of(), expected })
    }

    /// The next `count` data, all of one kind; allocates for no more than are left.
    fn next_values<T>(
        &mut self,
        count: u32,
        expected: &'static str,
        take: impl Fn(D::Meaning) -> Option<T>,
    ) -> Result<Vec<T>, PacketError> {
        let received = self.data.len();
        let needed = self.position as u64 + u64::from(count);
        if needed > received as u64 {
            return Err(PacketError::Counts { needed, received });
        }
        (0..count).map(|_| self.next(expected, &take)).collect()
    }

    /// Refuses a packet whose size is not what its first datum claims, or that is too short for
    /// the counts there, all added.
    fn check_size(&self, claimed: u32, needed: u64) -> Result<(), PacketError> {
        let received = self.data.len();
        if usize::try_from(claimed) != Ok(received) {
            return Err(PacketError::Size { claimed, received });
        }
        if needed > received as u64 {
            return Err(PacketError::Counts { needed, received });
        }
        Ok(())
    }

    /// Refuses data behind the last.
    fn end(&self) -> Result<(), PacketError> {
        if self.position == self.data.len() {
            return Ok(());
        }
        Err(PacketError::Left { position: self.position, received: self.data.len() })
    }
}

/// A length as a packet's number.
fn count(length: usize) -> Result<u32, PacketError> {
    u32::try_from(length).map_err(|_| PacketError::TooMany { found: length })
}
