//! [`Argument`]: a value that a method takes or returns.

use super::handles::{read_handle, write_handle};
use super::{Embedded, Source};
use nnhal_hidl::{Handle, HidlMemory, MQDescriptor, v1_0, v1_1, v1_2, v1_3};
use nnhal_hwbinder::{ParcelError, Reader, Writer};

/// A value that a method takes or returns. Numbers are in the data; what has a structure is a buffer.
pub trait Argument: Sized {
    /// Writes it behind what was written.
    fn write(&self, writer: &mut Writer);

    /// Reads it.
    ///
    /// # Errors
    /// If there is another thing.
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError>;
}

impl Argument for i32 {
    fn write(&self, writer: &mut Writer) {
        writer.i32(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError> {
        reader.i32()
    }
}

impl Argument for u32 {
    fn write(&self, writer: &mut Writer) {
        writer.u32(*self);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError> {
        reader.u32()
    }
}

impl Argument for Handle {
    fn write(&self, writer: &mut Writer) {
        write_handle(writer, self, None);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError> {
        read_handle(reader, None)
    }
}

/// Writes a value as a buffer of its own.
fn write_buffer<T: Embedded>(value: &T, writer: &mut Writer) {
    let mut bytes = vec![0; T::SIZE];
    value.put(&mut bytes);
    let buffer = writer.buffer(bytes, None);
    value.put_children(writer, buffer.start());
}

fn read_buffer<T: Embedded>(reader: &mut Reader<'_>) -> Result<T, ParcelError> {
    let buffer = reader.buffer(T::SIZE as u64, None)?;
    T::get(reader, Source::of(buffer))
}

macro_rules! buffers {
    ($($name:ty),* $(,)?) => {$(
        impl Argument for $name {
            fn write(&self, writer: &mut Writer) {
                write_buffer(self, writer);
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError> {
                read_buffer(reader)
            }
        }
    )*};
}

buffers!(
    String,
    HidlMemory,
    MQDescriptor,
    v1_0::Capabilities,
    v1_0::Model,
    v1_0::Request,
    v1_1::Capabilities,
    v1_1::Model,
    v1_2::CacheToken,
    v1_2::Capabilities,
    v1_2::Model,
    v1_2::Timing,
    v1_3::BufferDesc,
    v1_3::Capabilities,
    v1_3::Model,
    v1_3::OptionalTimePoint,
    v1_3::OptionalTimeoutDuration,
    v1_3::Request,
);

impl<T: Embedded> Argument for Vec<T> {
    fn write(&self, writer: &mut Writer) {
        write_buffer(self, writer);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError> {
        read_buffer(reader)
    }
}

macro_rules! tuples {
    ($($($name:ident $index:tt),+;)*) => {$(
        /// One behind the other.
        impl<$($name: Argument),+> Argument for ($($name,)+) {
            fn write(&self, writer: &mut Writer) {
                $(self.$index.write(writer);)+
            }

            fn read(reader: &mut Reader<'_>) -> Result<Self, ParcelError> {
                Ok(($($name::read(reader)?,)+))
            }
        }
    )*};
}

tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
    A 0, B 1, C 2, D 3, E 4;
}

/// An array that is lent.
pub(crate) fn write_slice<T: Embedded>(values: &[T], writer: &mut Writer) {
    if let Some(elements) = writer.array(values.len(), super::bytes_of(values)) {
        for (index, value) in values.iter().enumerate() {
            value.put_children(writer, elements.start().at(index.saturating_mul(T::SIZE)));
        }
    }
}
