//! Safe unions: a tag, and the value that it stands for. Of a tag that no one knows nothing is read.

use super::{Embedded, Source};
use nnhal_hidl::HidlMemory;
use nnhal_hidl::v1_2::{ExtraParams, SymmPerChannelQuantParams};
use nnhal_hidl::v1_3::{MemoryPool, OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hwbinder::parcel::Place;
use nnhal_hwbinder::{ParcelError, Reader, Writer};
use std::sync::Arc;

/// Where the value is in all of them.
const VALUE: usize = 8;

fn tag(source: Source<'_>) -> u8 {
    source.first::<1>()[0]
}

fn put<T: Embedded>(tag: u8, value: &T, bytes: &mut [u8]) {
    bytes[0] = tag;
    value.put(&mut bytes[VALUE..]);
}

fn get<T: Embedded>(reader: &mut Reader<'_>, source: Source<'_>) -> Result<T, ParcelError> {
    T::get(reader, source.at(VALUE))
}

impl Embedded for ExtraParams {
    const SIZE: usize = 32;

    fn put(&self, bytes: &mut [u8]) {
        match self {
            Self::None => bytes[0] = 0,
            Self::ChannelQuant(params) => put(1, params, bytes),
            Self::Extension(params) => put(2, params, bytes),
            Self::Unknown { tag } => bytes[0] = *tag,
        }
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        match self {
            Self::ChannelQuant(params) => params.put_children(writer, place.at(VALUE)),
            Self::Extension(params) => params.put_children(writer, place.at(VALUE)),
            Self::None | Self::Unknown { .. } => {}
        }
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        Ok(match tag(source) {
            0 => Self::None,
            1 => Self::ChannelQuant(get::<SymmPerChannelQuantParams>(reader, source)?),
            2 => Self::Extension(get::<Arc<[u8]>>(reader, source)?),
            tag => Self::Unknown { tag },
        })
    }
}

impl Embedded for MemoryPool {
    const SIZE: usize = 48;

    fn put(&self, bytes: &mut [u8]) {
        match self {
            Self::HidlMemory(memory) => put(0, memory, bytes),
            Self::Token(token) => put(1, token, bytes),
            Self::Unknown { tag } => bytes[0] = *tag,
        }
    }

    fn put_children(&self, writer: &mut Writer, place: Place) {
        if let Self::HidlMemory(memory) = self {
            memory.put_children(writer, place.at(VALUE));
        }
    }

    fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
        Ok(match tag(source) {
            0 => Self::HidlMemory(get::<HidlMemory>(reader, source)?),
            1 => Self::Token(get::<u32>(reader, source)?),
            tag => Self::Unknown { tag },
        })
    }
}

/// None, or a number of nanoseconds.
macro_rules! optional {
    ($name:ty, $some:ident) => {
        impl Embedded for $name {
            const SIZE: usize = 16;

            fn put(&self, bytes: &mut [u8]) {
                match self {
                    Self::None => bytes[0] = 0,
                    Self::$some(nanoseconds) => put(1, nanoseconds, bytes),
                    Self::Unknown { tag } => bytes[0] = *tag,
                }
            }

            fn get(reader: &mut Reader<'_>, source: Source<'_>) -> Result<Self, ParcelError> {
                Ok(match tag(source) {
                    0 => Self::None,
                    1 => Self::$some(get::<u64>(reader, source)?),
                    tag => Self::Unknown { tag },
                })
            }
        }
    };
}

optional!(OptionalTimePoint, NanosecondsSinceEpoch);
optional!(OptionalTimeoutDuration, Nanoseconds);
