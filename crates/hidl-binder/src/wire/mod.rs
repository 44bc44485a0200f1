//! How values of the interfaces travel: [`Embedded`], for a value within a buffer, and [`Argument`], for one that a method
//! takes or returns.
//!
//! Each type is described once, for writing and reading both: `structures` has a table of offsets for each structure,
//! `unions` the tags of each safe union. The offsets are those that Android's `hidl-gen` asserts.

mod argument;
mod basic;
mod handles;
mod structures;
mod unions;

pub use argument::Argument;
pub(crate) use argument::write_slice;

use nnhal_hwbinder::parcel::{Place, ReadBuffer};
use nnhal_hwbinder::{ParcelError, Reader, Writer};

/// Where a value is in a buffer that was received.
#[derive(Debug, Clone, Copy)]
pub struct Source<'p> {
    /// The bytes of the value, and maybe more.
    bytes: &'p [u8],
    /// Where they are.
    place: Place,
}

impl<'p> Source<'p> {
    /// The beginning of a buffer.
    pub fn of(buffer: ReadBuffer<'p>) -> Self {
        Self { bytes: buffer.bytes, place: buffer.id.start() }
    }

    /// A place farther on: nothing, if the buffer ends before.
    fn at(self, offset: usize) -> Self {
        Self { bytes: self.bytes.get(offset..).unwrap_or_default(), place: self.place.at(offset) }
    }

    /// The first bytes of it. A buffer has been compared with the size of its type, so that there are enough.
    fn first<const N: usize>(self) -> [u8; N] {
        self.bytes.first_chunk().copied().unwrap_or([0; N])
    }
}

/// A value that is part of a buffer: a number of bytes, in which pointers are left to the kernel, and children, the buffers that
/// it points to.
pub trait Embedded: Sized {
    /// Bytes.
    const SIZE: usize;

    /// Writes the bytes of the value itself; they are 0 before.
    fn put(&self, bytes: &mut [u8]);

    /// Writes what it points to.
    fn put_children(&self, writer: &mut Writer, place: Place) {
        let _ = (writer, place);
    }

    /// Reads it, and what it points to.
    ///
    /// # Errors
    /// If what it points to is not what it says.
    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError>;
}

/// The bytes of values in a row.
fn bytes_of<T: Embedded>(values: &[T]) -> Vec<u8> {
    let mut bytes = vec![0; values.len().saturating_mul(T::SIZE)];
    for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(T::SIZE)) {
        value.put(bytes);
    }
    bytes
}
