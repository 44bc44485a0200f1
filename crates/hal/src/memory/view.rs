//! [`MemoryView`]: the only access to the bytes of a [`Memory`](super::Memory).

use super::error::MemoryError;
use super::mapping::Mapping;
use rustix::fs::{SealFlags, fcntl_get_seals, fdatasync};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Reads and writes copies of memory that others may change at the same time. Offsets and lengths
/// are in bytes.
///
/// How it is done depends on what the descriptor is:
///
/// - memory that cannot shrink (a sealed memfd; device memory such as ashmem) is mapped;
/// - any other file is read and written by position, because touching a mapped page that the file
///   no longer has kills the process (contract: MEM-5). A file that is cut short gives an error.
#[derive(Debug, Clone)]
pub struct MemoryView(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backing: Backing,
    size: u64,
    readable: bool,
    writable: bool,
}

#[derive(Debug)]
enum Backing {
    Mapped(Mapping),
    Positioned { fd: OwnedFd, offset: u64 },
}

/// Which part of a descriptor a view shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
    /// Whether the descriptor is a file that has positions, or else device memory.
    pub(super) is_file: bool,
}

impl MemoryView {
    pub(super) fn new(fd: &OwnedFd, extent: Extent) -> Result<Self, MemoryError> {
        let Extent { offset, size, readable, writable, is_file } = extent;
        let cannot_shrink =
            !is_file || fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let length = usize::try_from(size).ok().filter(|_| cannot_shrink);
        let backing = match length {
            Some(length) => {
                Backing::Mapped(Mapping::new(fd.as_fd(), offset, length, readable, writable)?)
            }
            None => {
                let fd = fd.try_clone().map_err(|error| MemoryError::System {
                    call: "dup",
                    why: error.to_string(),
                    exhausted: true,
                })?;
                Backing::Positioned { fd, offset }
            }
        };
        Ok(Self(Arc::new(Inner { backing, size, readable, writable })))
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.0.writable
    }

    /// Whether it is mapped, rather than read and written by position.
    pub fn is_mapped(&self) -> bool {
        matches!(self.0.backing, Backing::Mapped(_))
    }

    /// Refuses a range that lies outside.
    ///
    /// # Errors
    /// [`MemoryError::Range`]
    pub fn check_range(&self, offset: u64, length: u64) -> Result<(), MemoryError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.0.size => Ok(()),
            _ => Err(MemoryError::Range { offset, length, size: self.0.size }),
        }
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// The range lies outside, the memory may not be read, or the file was cut short.
    pub fn read(&self, offset: u64, destination: &mut [u8]) -> Result<(), MemoryError> {
        self.check_range(offset, destination.len() as u64)?;
        if !self.0.readable {
            return Err(MemoryError::Forbidden("read"));
        }
        match &self.0.backing {
            Backing::Mapped(mapping) => {
                mapping.read(to_usize(offset), destination);
                Ok(())
            }
            Backing::Positioned { fd, offset: base } => {
                let mut done = 0;
                while done < destination.len() {
                    match pread(fd, &mut destination[done..], base + offset + done as u64) {
                        Ok(0) => return Err(MemoryError::CutShort),
                        Ok(count) => done += count,
                        Err(Errno::INTR) => {}
                        Err(error) => return Err(MemoryError::system("pread")(error)),
                    }
                }
                Ok(())
            }
        }
    }

    /// Copies bytes out into a new vector; nothing is allocated for a range that lies outside.
    ///
    /// # Errors
    /// As [`MemoryView::read`].
    pub fn read_to_vec(&self, offset: u64, length: u64) -> Result<Vec<u8>, MemoryError> {
        self.check_range(offset, length)?;
        let mut bytes = vec![0; to_usize(length)];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// The range lies outside, the memory may not be written, or the system refuses.
    pub fn write(&self, offset: u64, source: &[u8]) -> Result<(), MemoryError> {
        self.check_range(offset, source.len() as u64)?;
        if !self.0.writable {
            return Err(MemoryError::Forbidden("written"));
        }
        match &self.0.backing {
            Backing::Mapped(mapping) => {
                mapping.write(to_usize(offset), source);
                Ok(())
            }
            Backing::Positioned { fd, offset: base } => {
                let mut done = 0;
                while done < source.len() {
                    match pwrite(fd, &source[done..], base + offset + done as u64) {
                        Ok(0) => return Err(MemoryError::CutShort),
                        Ok(count) => done += count,
                        Err(Errno::INTR) => {}
                        Err(error) => return Err(MemoryError::system("pwrite")(error)),
                    }
                }
                Ok(())
            }
        }
    }

    /// Brings what was written to the file (contract: MEM-4). Nothing to do for mapped memory,
    /// which has no file behind it.
    ///
    /// # Errors
    /// The system refuses.
    pub fn flush(&self) -> Result<(), MemoryError> {
        match &self.0.backing {
            Backing::Positioned { fd, .. } if self.0.writable => {
                fdatasync(fd).map_err(MemoryError::system("fdatasync"))
            }
            _ => Ok(()),
        }
    }
}

/// Offsets and lengths within a view that fits the address space, as `check_range` established for
/// mapped memory, and as vectors need.
fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
