//! Numbers, truth values, strings and arrays within buffers.

use super::{Embedded, Source, bytes_of};
use nnhal_hwbinder::parcel::{Place, array_structure, string_structure};
use nnhal_hwbinder::{ParcelError, Reader, Writer};
use std::sync::Arc;

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Embedded for $number {
            const SIZE: usize = size_of::<Self>();

            fn put(&self, bytes: &mut [u8]) {
                bytes[..Self::SIZE].copy_from_slice(&self.to_le_bytes());
            }

            fn get(_: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
                Ok(Self::from_le_bytes(source.first()))
            }
        }
    )*};
}

numbers!(u8, u16, u32, i32, u64, f32);

impl Embedded for bool {
    const SIZE: usize = 1;

    fn put(&self, bytes: &mut [u8]) {
        bytes[0] = (*self).into();
    }

    /// Any byte but 0 is true.
    fn get(_: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        Ok(source.first::<1>() != [0])
    }
}

impl Embedded for String {
    const SIZE: usize = 16;

    fn put(&self, bytes: &mut [u8]) {
        bytes[..16].copy_from_slice(&string_structure(self));
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        writer.string_bytes(self, place);
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        reader.string_bytes(source.bytes, source.place)
    }
}

/// The number of elements, as the structure of an array says.
fn count(source: Source<'_>) -> u32 {
    u32::from_le_bytes(source.at(8).first())
}

impl<T: Embedded> Embedded for Vec<T> {
    const SIZE: usize = 16;

    fn put(&self, bytes: &mut [u8]) {
        bytes[..16].copy_from_slice(&array_structure(self.len()));
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        if self.is_empty() {
            writer.no_buffer(place);
            return;
        }
        let elements = writer.buffer(bytes_of(self), Some(place));
        for (index, value) in self.iter().enumerate() {
            value.put_children(writer, elements.start().at(index.saturating_mul(T::SIZE)));
        }
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        let count = count(source);
        let Some(elements) = reader.elements(count, T::SIZE, source.place)? else {
            return Ok(Self::new());
        };
        let elements = Source::of(elements);
        // As many as there are bytes for.
        (0..count as usize).map(|index| T::get(reader, elements.at(index * T::SIZE))).collect()
    }
}

/// An array of bytes.
impl Embedded for Arc<[u8]> {
    const SIZE: usize = 16;

    fn put(&self, bytes: &mut [u8]) {
        bytes[..16].copy_from_slice(&array_structure(self.len()));
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        if self.is_empty() {
            writer.no_buffer(place);
        } else {
            writer.buffer(self.to_vec(), Some(place));
        }
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        let bytes = reader.elements(count(source), 1, source.place)?;
        Ok(bytes.map_or(&[][..], |bytes| bytes.bytes).into())
    }
}
