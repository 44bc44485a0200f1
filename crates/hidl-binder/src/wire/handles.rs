//! Handles, memory and message queues.

use super::{Embedded, Source};
use nnhal_hidl::fmq::GrantorDescriptor;
use nnhal_hidl::{Handle, HidlMemory, MQDescriptor};
use nnhal_hwbinder::parcel::{NativeHandle, Place};
use nnhal_hwbinder::{ParcelError, Reader, Writer};
use std::os::fd::AsFd;

pub(super) fn write_handle(writer: &mut Writer, handle: &Handle, place: Option<Place>) {
    if handle.is_null() {
        writer.native_handle(None, place, ());
        return;
    }
    let fds: Vec<_> = handle.fds().iter().map(AsFd::as_fd).collect();
    writer.native_handle(Some((&fds, handle.integers())), place, handle.clone());
}

pub(super) fn read_handle(
    reader: &mut Reader<'_>,
    place: Option<Place>,
) -> Result<Handle, ParcelError> {
    Ok(match reader.native_handle(place)? {
        Some(NativeHandle { fds, integers }) => Handle::new(fds, integers),
        None => Handle::NULL,
    })
}

impl Embedded for Handle {
    const SIZE: usize = 16;

    /// Whether the structure owns what it points to: it does unless it is null.
    fn put(&self, bytes: &mut [u8]) {
        bytes[8] = (!self.is_null()).into();
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        write_handle(writer, self, Some(place));
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        read_handle(reader, Some(source.place))
    }
}

impl Embedded for HidlMemory {
    const SIZE: usize = 40;

    fn put(&self, bytes: &mut [u8]) {
        self.handle.put(bytes);
        self.size.put(&mut bytes[16..]);
        self.name.put(&mut bytes[24..]);
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        self.handle.put_children(writer, place);
        self.name.put_children(writer, place.at(24));
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        Ok(Self {
            handle: Embedded::get(reader, source)?,
            size: Embedded::get(reader, source.at(16))?,
            name: Embedded::get(reader, source.at(24))?,
        })
    }
}

/// The handle is a pointer here, without a byte that says who owns it.
impl Embedded for MQDescriptor {
    const SIZE: usize = 32;

    fn put(&self, bytes: &mut [u8]) {
        self.grantors.put(bytes);
        self.quantum.put(&mut bytes[24..]);
        self.flags.put(&mut bytes[28..]);
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        self.grantors.put_children(writer, place);
        write_handle(writer, &self.handle, Some(place.at(16)));
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        Ok(Self {
            grantors: Embedded::get(reader, source)?,
            handle: read_handle(reader, Some(source.place.at(16)))?,
            quantum: Embedded::get(reader, source.at(24))?,
            flags: Embedded::get(reader, source.at(28))?,
        })
    }
}

super::structures::structure!(GrantorDescriptor, 24, {
    flags: 0,
    fd_index: 4,
    offset: 8,
    extent: 16,
});
