//! Parcels: what travels in a transaction.
//!
//! A parcel is a stream of data in steps of 4 bytes, in which *objects* are embedded: buffers, arrays of
//! descriptors, binder objects. The list of offsets says where. A buffer is a piece of the sender's memory that the
//! kernel copies into the receiver's mapping; it may hang at a pointer in an earlier buffer, its parent.
//!
//! [`Writer`] makes one, [`Parcel::check`] judges one that was received, and [`Reader`] reads it. None of them knows the
//! kernel, nor what a binder object is: it is of a type `B`, which [`object`](crate::object) chooses.

mod check;
mod reader;
mod record;
#[cfg(test)]
mod tests;
mod writer;

pub use check::{Memory, Parcel, Resolve};
pub use reader::{NativeHandle, ReadBuffer, Reader};
pub use writer::{BufferId, Place, Writer, array_structure, string_structure};

pub(crate) use record::Record;
pub(crate) use writer::{Number, Outgoing};
