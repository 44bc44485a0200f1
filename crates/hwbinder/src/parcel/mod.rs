//! Parcels: what travels in a transaction.
//!
//! A parcel is a stream of data in steps of 4 bytes, in which *objects* are embedded: buffers, arrays of
//! descriptors, binder objects. The list of offsets says where. A buffer is a piece of the sender's memory that the
//! kernel copies into the receiver's mapping; it may hang at a pointer in an earlier buffer, its parent.
//!
//! [`Writer`] makes one, [`Parcel::check`] judges one that was received, and [`Reader`] reads it. Neither knows
//! the kernel: [`simulate`] does to a parcel what the kernel does, for tests.

mod check;
mod reader;
mod record;
pub mod simulate;
#[cfg(test)]
mod tests;
mod writer;

pub use check::{Memory, Parcel, Resolve};
pub use reader::{NativeHandle, ReadBuffer, Reader};
pub use writer::{BufferId, Place, Writer, array_structure, string_structure};

pub(crate) use writer::{Number, Outgoing};
