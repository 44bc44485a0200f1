//! Pools.

// The files say that applications should use another type, which the interface does not.
#![allow(deprecated)]

use super::{ConversionError, Result, duplicate, duplicates, to_parcel};
use crate::interface::common::{
    Ashmem::Ashmem, MappableFile::MappableFile, NativeHandle::NativeHandle,
};
use crate::interface::graphics::common::BufferUsage::BufferUsage;
use crate::interface::graphics::common::HardwareBuffer::HardwareBuffer;
use crate::interface::graphics::common::HardwareBufferDescription::HardwareBufferDescription;
use crate::interface::graphics::common::PixelFormat::PixelFormat;
use crate::interface::nn::Memory::Memory as Wire;
use nnhal_hal::Memory;
use nnhal_hal::memory::{MemoryError, MemoryKind, Protection};
use rsbinder::ParcelFileDescriptor;

/// A size from the wire.
fn size(what: &'static str, found: i64) -> Result<u64> {
    u64::try_from(found).map_err(|_| ConversionError::Negative { what, found })
}

fn descriptor<'a>(
    what: &'static str,
    fd: Option<&'a ParcelFileDescriptor>,
) -> Result<&'a ParcelFileDescriptor> {
    fd.ok_or(ConversionError::NoDescriptor(what))
}

/// A pool from the wire, with descriptors of its own.
///
/// # Errors
/// A descriptor that is missing, holds less than is said, or is no memory; sizes that are negative.
pub fn memory_from_wire(memory: &Wire) -> Result<Memory> {
    Ok(match memory {
        Wire::Ashmem(Ashmem { fd, size: length }) => {
            let fd = duplicate(descriptor("ashmem", fd.as_ref())?)?;
            Memory::from_ashmem(fd, size("the size of ashmem", *length)?)?
        }
        Wire::MappableFile(MappableFile { length, prot, fd, offset }) => {
            let protection = Protection::from_bits(*prot)?;
            let length = size("the length of a file", *length)?;
            let offset = size("an offset in a file", *offset)?;
            let fd = duplicate(descriptor("a mappable file", fd.as_ref())?)?;
            Memory::from_file(fd, protection, offset, length)?
        }
        Wire::HardwareBuffer(HardwareBuffer { description, handle }) => {
            let blob = description.r#format == PixelFormat::BLOB;
            let kind = match blob {
                true => MemoryKind::HardwareBufferBlob,
                false => MemoryKind::HardwareBuffer,
            };
            // Of BLOB the width is the number of bytes. Others are not read here.
            let bytes = size("the width of a hardware buffer", description.r#width.into())?;
            let fds = duplicates(&handle.r#fds)?;
            Memory::from_parts(kind.name(), fds, &handle.r#ints, bytes)?
        }
    })
}

/// A pool for the wire, with descriptors of its own.
///
/// # Errors
/// Hardware buffers of other formats than BLOB, whose description [`Memory`] does not keep; sizes
/// beyond what the wire can count.
pub fn memory_to_wire(memory: &Memory) -> Result<Wire> {
    let too_large = || ConversionError::TooLarge { what: "the size of a pool", found: i64::MAX };
    let length = i64::try_from(memory.size()).map_err(|_| too_large())?;
    let (fds, integers) = memory.parts();
    let first = || fds.first().ok_or(ConversionError::NoDescriptor("memory"));
    match memory.kind() {
        MemoryKind::Ashmem => {
            Ok(Wire::Ashmem(Ashmem { fd: Some(to_parcel(first()?)?), size: length }))
        }
        MemoryKind::MmapFd => Ok(Wire::MappableFile(MappableFile {
            length,
            prot: memory.protection().bits(),
            fd: Some(to_parcel(first()?)?),
            offset: offset_of(integers)?,
        })),
        MemoryKind::HardwareBufferBlob => Ok(Wire::HardwareBuffer(HardwareBuffer {
            description: HardwareBufferDescription {
                r#width: i32::try_from(memory.size()).map_err(|_| too_large())?,
                r#height: 1,
                r#layers: 1,
                r#format: PixelFormat::BLOB,
                r#usage: BufferUsage(
                    BufferUsage::CPU_READ_OFTEN.get() | BufferUsage::CPU_WRITE_OFTEN.get(),
                ),
                r#stride: i32::try_from(memory.size()).map_err(|_| too_large())?,
            },
            handle: NativeHandle {
                r#fds: fds.iter().map(to_parcel).collect::<Result<_>>()?,
                r#ints: integers.to_vec(),
            },
        })),
        MemoryKind::HardwareBuffer => Err(ConversionError::Inexpressible(
            "way to pass on a hardware buffer whose description is not known".to_owned(),
        )),
    }
}

/// The offset of a part of a file, which its integers carry behind the protection.
fn offset_of(integers: &[i32]) -> Result<i64> {
    let [_, low, high] = *integers else {
        return Err(ConversionError::Memory(MemoryError::Handle {
            kind: MemoryKind::MmapFd,
            descriptors: 1,
            integers: integers.len(),
            expected: "1 descriptor and 3 integers",
        }));
    };
    let offset = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
    let what = "an offset in a file";
    i64::try_from(offset).map_err(|_| ConversionError::TooLarge { what, found: i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mem_1_pools_keep_kind_size_and_bytes() {
        let memory = Memory::from_bytes(&[1, 2, 3]).unwrap();
        let back = memory_from_wire(&memory_to_wire(&memory).unwrap()).unwrap();
        assert_eq!((back.kind(), back.size()), (MemoryKind::Ashmem, 3));
        assert_eq!(back.view().unwrap().read_to_vec(0, 3).unwrap(), [1, 2, 3]);

        let (fds, _) = memory.parts();
        let fd = fds[0].try_clone().unwrap();
        let part = Memory::from_file(fd, Protection::READ, 1, 2).unwrap();
        let back = memory_from_wire(&memory_to_wire(&part).unwrap()).unwrap();
        assert_eq!((back.kind(), back.protection()), (MemoryKind::MmapFd, Protection::READ));
        assert_eq!(back.view().unwrap().read_to_vec(0, 2).unwrap(), [2, 3]);

        let fd = fds[0].try_clone().unwrap();
        let name = MemoryKind::HardwareBufferBlob.name();
        let blob = Memory::from_parts(name, vec![fd], &[7], 3).unwrap();
        let back = memory_from_wire(&memory_to_wire(&blob).unwrap()).unwrap();
        assert_eq!((back.kind(), back.size()), (MemoryKind::HardwareBufferBlob, 3));
        assert_eq!(back.parts().1, [7]);
    }

    #[test]
    fn mem_2_and_5_wrong_pools_are_refused() {
        let fd = || Some(to_parcel(&Memory::from_bytes(&[1]).unwrap().parts().0[0]).unwrap());
        let file = |length, prot, offset| {
            memory_from_wire(&Wire::MappableFile(MappableFile { length, prot, fd: fd(), offset }))
        };
        assert!(file(1, 3, 0).is_ok());
        for refused in [file(-1, 3, 0), file(1, 8, 0), file(1, 3, -1), file(1, 3, i64::MAX)] {
            refused.unwrap_err();
        }
        for (fd, size) in [(None, 1), (fd(), -1), (fd(), 0), (fd(), 2)] {
            memory_from_wire(&Wire::Ashmem(Ashmem { fd, size })).unwrap_err();
        }
        memory_from_wire(&Wire::HardwareBuffer(HardwareBuffer::default())).unwrap_err();
    }
}
