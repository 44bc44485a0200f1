//! What a descriptor from a stranger really is: what it allows, how much it holds, whether it can
//! be mapped without danger.

use super::error::MemoryError;
use super::{MemoryKind, Protection};
use crate::client::{Client, ClientError, Held, Holding};
use rustix::fs::{
    FileType, OFlags, SealFlags, SeekFrom, fcntl_get_seals, fcntl_getfl, fstat, fstatfs, seek,
};
use rustix::io::{FdFlags, fcntl_setfd};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};

/// File systems by the numbers of `statfs` (`linux/magic.h`).
const TMPFS_MAGIC: u64 = 0x0102_1994;
const DMA_BUF_MAGIC: u64 = 0x444d_4142;

/// The descriptors of a handle, which memory and its view share.
#[derive(Debug)]
pub(super) struct Descriptors {
    fds: Vec<OwnedFd>,
    /// What they count as, see [`Memory::kept_by`](super::Memory::kept_by).
    held: OnceLock<Held>,
}

impl Descriptors {
    pub(super) fn new(fds: Vec<OwnedFd>) -> Arc<Self> {
        Arc::new(Self { fds, held: OnceLock::new() })
    }

    /// Counts them as the client's until they are closed.
    pub(super) fn kept_by(&self, client: &Client) -> Result<(), ClientError> {
        if self.held.get().is_none() {
            let count = u64::try_from(self.fds.len()).unwrap_or(u64::MAX);
            let _ = self.held.set(client.hold(Holding::Descriptors, count)?);
        }
        Ok(())
    }
}

impl Deref for Descriptors {
    type Target = [OwnedFd];

    fn deref(&self) -> &[OwnedFd] {
        &self.fds
    }
}

/// What is behind a descriptor, as far as it decides how the bytes are to be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nature {
    /// By mapping and in no other way: device memory.
    Device,
    /// By mapping, or by position where the system will not map: a memfd that this process made and sealed.
    Allocated,
    /// By position, or by mapping because the file can no longer shrink.
    FixedFile,
    /// By position only: a file that others can cut short.
    File,
}

/// What a descriptor was opened for, less what a seal forbids. From here on it is closed when the
/// process becomes another program (contract: SEC-6).
pub(super) fn allowed(fd: &OwnedFd) -> Result<Protection, MemoryError> {
    fcntl_setfd(fd, FdFlags::CLOEXEC).map_err(MemoryError::system("fcntl"))?;
    let flags = fcntl_getfl(fd).map_err(MemoryError::system("fcntl"))?;
    if flags.contains(OFlags::PATH) {
        return Ok(Protection { read: false, write: false });
    }
    let mode = flags & OFlags::RWMODE;
    // What is written by position to a descriptor that appends lands at the end all the same.
    let unwritable = flags.contains(OFlags::APPEND)
        || seals(fd).intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE);
    Ok(Protection { read: mode != OFlags::WRONLY, write: mode != OFlags::RDONLY && !unwritable })
}

/// Refuses a size that is 0 (MEM-2) or more than the descriptor holds (MEM-5).
///
/// The answer stays true as long as the descriptor is open, except that a [`Nature::File`] may shrink.
pub(super) fn check_size(
    fd: &OwnedFd,
    kind: MemoryKind,
    offset: u64,
    size: u64,
) -> Result<Nature, MemoryError> {
    if size == 0 {
        return Err(MemoryError::Empty { kind });
    }
    // Before the size is read: whoever shrinks the file and then seals it would deceive us else.
    let sealed = seals(fd).contains(SealFlags::SHRINK);
    let stat = fstat(fd).map_err(MemoryError::system("fstat"))?;
    let file_system = fstatfs(fd).map_err(MemoryError::system("fstatfs"))?;
    let file_system = u64::try_from(file_system.f_type).unwrap_or(0);
    let (nature, held) = match FileType::from_raw_mode(stat.st_mode) {
        // Huge pages can be sealed too, but touching one fails by a signal when none is left.
        FileType::RegularFile if file_system != DMA_BUF_MAGIC => {
            let fixed = sealed && file_system == TMPFS_MAGIC;
            let nature = if fixed { Nature::FixedFile } else { Nature::File };
            (nature, u64::try_from(stat.st_size).unwrap_or(0))
        }
        // Ashmem is a character device; a dma-buf has had no type and that of a file. Both tell
        // their size, which is fixed, as the position of their end. Other devices tell none.
        FileType::RegularFile | FileType::CharacterDevice | FileType::Unknown => {
            let held = seek(fd, SeekFrom::End(0)).map_err(|_| MemoryError::NotMemory)?;
            (Nature::Device, held)
        }
        _ => return Err(MemoryError::NotMemory),
    };
    match offset.checked_add(size) {
        Some(declared) if declared <= held => Ok(nature),
        declared => Err(MemoryError::Size { declared: declared.unwrap_or(u64::MAX), held }),
    }
}

/// Seals of a file that can have some; none of any other.
fn seals(fd: &OwnedFd) -> SealFlags {
    fcntl_get_seals(fd).unwrap_or(SealFlags::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    /// A multiple of the size of huge pages, where they have the usual size or less.
    const SIZE: u64 = 1 << 25;

    fn sealed(flags: MemfdFlags, seals: SealFlags) -> Option<OwnedFd> {
        let flags = flags | MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = memfd_create("test", flags).ok()?;
        ftruncate(&fd, SIZE).ok()?;
        fcntl_add_seals(&fd, seals).ok()?;
        Some(fd)
    }

    fn nature(fd: &OwnedFd) -> Nature {
        check_size(fd, MemoryKind::Ashmem, 0, SIZE).unwrap()
    }

    #[test]
    fn mem_5_only_a_seal_against_shrinking_fixes_a_file() {
        let of = |seals| nature(&sealed(MemfdFlags::empty(), seals).unwrap());
        assert_eq!(of(SealFlags::SHRINK), Nature::FixedFile);
        assert_eq!(of(SealFlags::GROW | SealFlags::FUTURE_WRITE), Nature::File);
        let file = tempfile::tempfile().unwrap();
        file.set_len(SIZE).unwrap();
        assert_eq!(nature(&file.into()), Nature::File);
    }

    #[test]
    fn mem_5_huge_pages_are_not_fixed_by_a_seal() {
        match sealed(MemfdFlags::HUGETLB, SealFlags::SHRINK) {
            Some(fd) => assert_eq!(nature(&fd), Nature::File),
            None => eprintln!("skipped: no huge pages in this kernel, or of another size"),
        }
    }
}
