//! [`MemoryView`]: the only access to the bytes of a [`Memory`](super::Memory).

use super::Protection;
use super::descriptor::Descriptors;
use super::descriptor::Nature;
use super::error::MemoryError;
use super::lent::{BorrowedBytes, Lent};
use super::mapping::Mapping;
use rustix::fs::{fdatasync, fstat};
use rustix::io::{Errno, pread, pwrite};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Bytes that go through a buffer on the stack at a time.
const PORTION: usize = 8192;

/// Reads and writes copies of memory that others may change at the same time. Offsets and lengths
/// are in bytes. Cloning shares it; any thread may use it at any time.
///
/// It gives no slice of memory that others have too: what another process can change while we look would
/// be undefined behaviour behind a `&[u8]`. A copy that is made while others write has old or new
/// bytes in any mixture (contract: SEC-1, CONC-2).
///
/// How it is done depends on what the descriptor is:
///
/// - memory that cannot shrink (a memfd sealed so; device memory such as ashmem) is mapped, but a
///   memfd of a stranger is read by position: reading a hole through a mapping would fill it, and with
///   memory that counts as this process's. [`Memory::allocate`](super::Memory::allocate)'s own counts as this
///   process's anyway, and reading it through the mapping takes a third of the time;
/// - any other file is read and written by position, because touching a mapped page that the file
///   no longer has kills the process by a signal (contract: MEM-5). With a file that is cut short,
///   accesses to the missing part fail with [`MemoryError::CutShort`].
///
/// Every range is checked: one that is outside gives [`MemoryError::Range`], and nothing is read,
/// written or allocated.
#[derive(Debug, Clone)]
pub struct MemoryView(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backing: Backing,
    size: u64,
    protection: Protection,
}

#[derive(Debug)]
pub(super) enum Backing {
    Mapped(Mapping),
    /// Bytes of this process: its own, or until whoever lent them takes them back.
    Lent(Arc<Lent>),
    /// As [`Backing::Positioned`] to read, mapped to write.
    MappedFile {
        mapping: Mapping,
        fds: Arc<Descriptors>,
        base: u64,
    },
    /// The first descriptor, from a byte on.
    Positioned {
        fds: Arc<Descriptors>,
        base: u64,
    },
}

impl MemoryView {
    /// A view of `size` bytes from `offset` on of the first descriptor, which were just found to be
    /// there.
    pub(super) fn new(
        fds: Arc<Descriptors>,
        nature: Nature,
        offset: u64,
        size: u64,
        protection: Protection,
    ) -> Result<Self, MemoryError> {
        let map = || {
            let length =
                usize::try_from(size).map_err(|_| MemoryError::system("mmap")(Errno::OVERFLOW))?;
            let Protection { read, write } = protection;
            Mapping::new(fds[0].as_fd(), offset, length, read, write)
        };
        let backing = match nature {
            Nature::Device => Backing::Mapped(map()?),
            Nature::Allocated => match map() {
                Ok(mapping) => Backing::Mapped(mapping),
                Err(_) => Backing::Positioned { fds, base: offset },
            },
            // Position serves as well where the system will not map: a descriptor that is open for
            // writing only, no room in the address space.
            Nature::FixedFile => match map() {
                Ok(mapping) => Backing::MappedFile { mapping, fds, base: offset },
                Err(_) => Backing::Positioned { fds, base: offset },
            },
            Nature::File => Backing::Positioned { fds, base: offset },
        };
        Ok(Self(Arc::new(Inner { backing, size, protection })))
    }

    pub(super) fn over(backing: Backing, size: u64, protection: Protection) -> Self {
        Self(Arc::new(Inner { backing, size, protection }))
    }

    /// Number of bytes.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.0.protection.write
    }

    /// Whether it is bytes of this process, its own or lent by somebody: no file is behind it.
    pub fn is_lent(&self) -> bool {
        matches!(self.0.backing, Backing::Lent(_))
    }

    /// Whether it is mapped, rather than read and written by position.
    pub fn is_mapped(&self) -> bool {
        !matches!(self.0.backing, Backing::Positioned { .. })
    }

    /// Refuses a range that is outside.
    ///
    /// # Errors
    /// [`MemoryError::Range`]
    pub fn check_range(&self, offset: u64, length: u64) -> Result<(), MemoryError> {
        match offset.checked_add(length) {
            Some(end) if end <= self.0.size => Ok(()),
            _ => Err(MemoryError::Range { offset, length, size: self.0.size }),
        }
    }

    fn check_readable(&self, offset: u64, length: u64) -> Result<(), MemoryError> {
        self.check_range(offset, length)?;
        if self.0.protection.read { Ok(()) } else { Err(MemoryError::Forbidden("read")) }
    }

    fn check_writable(&self, offset: u64, length: u64) -> Result<(), MemoryError> {
        self.check_range(offset, length)?;
        if self.0.protection.write { Ok(()) } else { Err(MemoryError::Forbidden("written")) }
    }

    /// Copies bytes out. After an error, any part of `destination` may have been filled.
    ///
    /// # Errors
    /// [`MemoryError::Range`]; [`MemoryError::Forbidden`] if the memory may not be read;
    /// [`MemoryError::CutShort`]; [`MemoryError::System`].
    pub fn read(&self, offset: u64, destination: &mut [u8]) -> Result<(), MemoryError> {
        self.check_readable(offset, destination.len() as u64)?;
        match &self.0.backing {
            Backing::Mapped(mapping) => {
                mapping.read(to_usize(offset), destination);
                Ok(())
            }
            Backing::Lent(lent) => lent.read(to_usize(offset), destination),
            Backing::MappedFile { fds, base, .. } | Backing::Positioned { fds, base } => {
                read_at(&fds[0], base.saturating_add(offset), destination)
            }
        }
    }

    /// Copies bytes out into a new vector; nothing is allocated for a range that is outside.
    ///
    /// # Errors
    /// As [`MemoryView::read`], and [`MemoryError::NoRoom`].
    pub fn read_to_vec(&self, offset: u64, length: u64) -> Result<Vec<u8>, MemoryError> {
        self.check_readable(offset, length)?;
        let (mut bytes, count) = (Vec::new(), to_usize(length));
        // A file with holes can be as long as it likes: `vec!` would abort the process.
        bytes.try_reserve_exact(count).map_err(|_| MemoryError::NoRoom { length })?;
        bytes.resize(count, 0);
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes in. After an error, any part of the range may have been written.
    ///
    /// A file that was cut short is an error and is not made longer, except that it may grow again
    /// within the range if it is cut at the very moment of writing.
    ///
    /// # Errors
    /// [`MemoryError::Range`]; [`MemoryError::Forbidden`] if the memory may not be written;
    /// [`MemoryError::CutShort`]; [`MemoryError::System`].
    pub fn write(&self, offset: u64, source: &[u8]) -> Result<(), MemoryError> {
        self.check_writable(offset, source.len() as u64)?;
        match &self.0.backing {
            Backing::Mapped(mapping) | Backing::MappedFile { mapping, .. } => {
                mapping.write(to_usize(offset), source);
                Ok(())
            }
            Backing::Lent(lent) => lent.write(to_usize(offset), source),
            Backing::Positioned { fds, base } => {
                write_at(&fds[0], base.saturating_add(offset), source)
            }
        }
    }

    /// The bytes themselves, if this process alone can access them ([`Memory::private`](super::Memory::private),
    /// [`Loan::exclusive`](super::Loan::exclusive)) and no one does at the moment. `None` for all other memory, whose bytes can
    /// only be copied, and for a range that is outside.
    pub fn borrow_mut(&self, offset: u64, length: u64) -> Option<BorrowedBytes> {
        self.check_range(offset, length).ok()?;
        match &self.0.backing {
            Backing::Lent(lent) => lent.borrow(to_usize(offset), to_usize(length)),
            _ => None,
        }
    }

    /// Whether both are views of one memory. Two memories made of one descriptor are not.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Makes bytes 0.
    ///
    /// # Errors
    /// As [`MemoryView::write`].
    pub fn fill_zero(&self, offset: u64, length: u64) -> Result<(), MemoryError> {
        self.check_writable(offset, length)?;
        let zeros = [0; PORTION];
        portions(length).try_for_each(|(done, count)| self.write(offset + done, &zeros[..count]))
    }

    /// Copies `length` bytes from `source_offset` of another view to `offset` of this one, through
    /// a small buffer. Where both are parts of the same memory that overlap, the values of the
    /// overlap are not specified.
    ///
    /// # Errors
    /// Those of [`MemoryView::read`] for the source and of [`MemoryView::write`] for this view;
    /// both ranges are checked before anything is copied.
    pub fn copy_from(
        &self,
        offset: u64,
        source: &Self,
        source_offset: u64,
        length: u64,
    ) -> Result<(), MemoryError> {
        source.check_readable(source_offset, length)?;
        self.check_writable(offset, length)?;
        let mut buffer = [0; PORTION];
        portions(length).try_for_each(|(done, count)| {
            source.read(source_offset + done, &mut buffer[..count])?;
            self.write(offset + done, &buffer[..count])
        })
    }

    /// Brings what was written to the file (contract: MEM-4). Nothing to do for mapped memory,
    /// which has no file behind it, nor for memory that may not be written.
    ///
    /// # Errors
    /// [`MemoryError::System`]
    pub fn flush(&self) -> Result<(), MemoryError> {
        match &self.0.backing {
            Backing::Positioned { fds, .. } if self.0.protection.write => {
                fdatasync(&fds[0]).map_err(MemoryError::system("fdatasync"))
            }
            _ => Ok(()),
        }
    }
}

/// Fills `destination` with what is at `position`, in as many steps as the system wants.
fn read_at(fd: &OwnedFd, position: u64, destination: &mut [u8]) -> Result<(), MemoryError> {
    let expected = position.saturating_add(destination.len() as u64);
    let mut done = 0;
    while done < destination.len() {
        let found = position.saturating_add(done as u64);
        match pread(fd, &mut destination[done..], found) {
            Ok(0) => return Err(MemoryError::CutShort { expected, found }),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(MemoryError::system("pread")(error)),
        }
    }
    Ok(())
}

/// The reverse. Asks first whether the file still reaches so far: writing would make it longer.
fn write_at(fd: &OwnedFd, position: u64, source: &[u8]) -> Result<(), MemoryError> {
    let expected = position.saturating_add(source.len() as u64);
    let stat = fstat(fd).map_err(MemoryError::system("fstat"))?;
    let found = u64::try_from(stat.st_size).unwrap_or(0);
    if found < expected {
        return Err(MemoryError::CutShort { expected, found });
    }
    let mut done = 0;
    while done < source.len() {
        let found = position.saturating_add(done as u64);
        match pwrite(fd, &source[done..], found) {
            Ok(0) => return Err(MemoryError::CutShort { expected, found }),
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(MemoryError::system("pwrite")(error)),
        }
    }
    Ok(())
}

/// Cuts `length` bytes into pieces that fit the buffer: where each begins, how long it is.
fn portions(length: u64) -> impl Iterator<Item = (u64, usize)> {
    let portion = PORTION as u64;
    (0..length.div_ceil(portion)).map(move |index| {
        let done = index * portion;
        (done, to_usize((length - done).min(portion)))
    })
}

/// For numbers of which it is known that they fit: offsets within a mapping, lengths of a buffer.
/// A vector of any other length finds no room.
fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
