//! [`Memory`]: pools of a model or request, which other processes may change while we use them.
//!
//! Shared memory never becomes a slice. A [`MemoryView`] copies bytes in and out, so that a byte
//! that is checked is the byte that is used. See there how memory that shrinks is survived.
//!
//! | kind | from | handle | meaning |
//! |---|---|---|---|
//! | `ashmem` | 1.0 | 1 descriptor | the first `size` bytes, read and written |
//! | `mmap_fd` | 1.0 | 1 descriptor, 3 integers | protection, offset (low and high 32 bits) |
//! | `hardware_buffer_blob` | 1.2 | an `AHardwareBuffer` | bytes; Android only |
//! | `hardware_buffer` | 1.2 | an `AHardwareBuffer` | not accessible to a general driver |
//!
//! Source: contract, section 15.

mod error;
mod mapping;
mod view;

pub use error::MemoryError;
pub use view::MemoryView;

use crate::codes::HalVersion;
use rustix::fs::{
    FileType, MemfdFlags, OFlags, SealFlags, SeekFrom, fcntl_add_seals, fcntl_get_seals,
    fcntl_getfl, fstat, ftruncate, memfd_create, seek,
};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use view::Extent;

/// A kind of memory, by the name that it has in `hidl_memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// `ashmem`: a descriptor that is memory; here memfds as well.
    Ashmem,
    /// `mmap_fd`: a part of a file.
    MmapFd,
    /// `hardware_buffer_blob`: an `AHardwareBuffer` of format BLOB.
    HardwareBufferBlob,
    /// `hardware_buffer`: an `AHardwareBuffer` of another format.
    HardwareBuffer,
}

impl MemoryKind {
    /// The name in `hidl_memory`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ashmem => "ashmem",
            Self::MmapFd => "mmap_fd",
            Self::HardwareBufferBlob => "hardware_buffer_blob",
            Self::HardwareBuffer => "hardware_buffer",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ashmem, Self::MmapFd, Self::HardwareBufferBlob, Self::HardwareBuffer]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// The oldest version of the interface that has this kind.
    pub const fn since(self) -> HalVersion {
        match self {
            Self::Ashmem | Self::MmapFd => HalVersion::V1_0,
            Self::HardwareBufferBlob | Self::HardwareBuffer => HalVersion::V1_2,
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What an `mmap_fd` may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protection {
    /// `PROT_READ`
    pub read: bool,
    /// `PROT_WRITE`
    pub write: bool,
}

impl Protection {
    /// Reading only.
    pub const READ: Self = Self { read: true, write: false };
    /// Reading and writing.
    pub const READ_WRITE: Self = Self { read: true, write: true };

    /// The bits of `mmap`.
    pub const fn bits(self) -> i32 {
        self.read as i32 | (self.write as i32) << 1
    }

    /// # Errors
    /// Any bit but those of reading and writing is set (contract: MEM-2).
    pub const fn from_bits(bits: i32) -> Result<Self, MemoryError> {
        if bits & !3 != 0 {
            return Err(MemoryError::Protection { found: bits });
        }
        Ok(Self { read: bits & 1 != 0, write: bits & 2 != 0 })
    }
}

/// A piece of memory that is shared with others. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: MemoryKind,
    fds: Vec<OwnedFd>,
    integers: Vec<i32>,
    offset: u64,
    size: u64,
    protection: Protection,
    is_file: bool,
    view: OnceLock<Result<MemoryView, MemoryError>>,
}

impl Memory {
    /// New memory of `size` bytes, all 0. It can neither shrink nor grow; kind `ashmem`.
    ///
    /// # Errors
    /// `size` is 0, or the system has no more.
    pub fn allocate(size: u64) -> Result<Self, MemoryError> {
        let kind = MemoryKind::Ashmem;
        if size == 0 {
            return Err(MemoryError::Empty { kind });
        }
        let fd = memfd_create("nnhal", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(MemoryError::system("memfd_create"))?;
        ftruncate(&fd, size).map_err(MemoryError::system("ftruncate"))?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(MemoryError::system("fcntl"))?;
        Ok(Self::new(kind, vec![fd], vec![], 0, size, Protection::READ_WRITE, true))
    }

    /// New memory that holds these bytes; kind `ashmem`.
    ///
    /// # Errors
    /// There are no bytes, or the system has no more memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MemoryError> {
        let memory = Self::allocate(bytes.len() as u64)?;
        memory.view()?.write(0, bytes)?;
        Ok(memory)
    }

    /// Memory of kind `ashmem` out of a descriptor that came from elsewhere.
    ///
    /// # Errors
    /// `size` is 0 or exceeds what the descriptor holds.
    pub fn from_ashmem(fd: OwnedFd, size: u64) -> Result<Self, MemoryError> {
        let kind = MemoryKind::Ashmem;
        let allowed = allowed_access(&fd)?;
        let is_file = check_size(&fd, kind, 0, size)?;
        Ok(Self::new(kind, vec![fd], vec![], 0, size, allowed, is_file))
    }

    /// A part of a file; kind `mmap_fd`. `offset` need be no multiple of the page size.
    ///
    /// # Errors
    /// `size` is 0, the part lies outside the file, or the descriptor does not allow the access.
    pub fn from_file(
        fd: OwnedFd,
        protection: Protection,
        offset: u64,
        size: u64,
    ) -> Result<Self, MemoryError> {
        let kind = MemoryKind::MmapFd;
        let allowed = allowed_access(&fd)?;
        if (protection.read && !allowed.read) || (protection.write && !allowed.write) {
            return Err(MemoryError::Access);
        }
        let is_file = check_size(&fd, kind, offset, size)?;
        let [low, high] = halves(offset);
        let integers = vec![protection.bits(), low, high];
        Ok(Self::new(kind, vec![fd], integers, offset, size, protection, is_file))
    }

    /// Memory out of the pieces of a `hidl_memory`: name, descriptors and integers of the handle,
    /// size. Hardware buffers are kept as they are; the descriptors are closed with the memory.
    ///
    /// # Errors
    /// The pieces break one of MEM-1, MEM-2, MEM-5.
    pub fn from_parts(
        name: &str,
        mut fds: Vec<OwnedFd>,
        integers: &[i32],
        size: u64,
    ) -> Result<Self, MemoryError> {
        let kind = MemoryKind::from_name(name)
            .ok_or_else(|| MemoryError::UnknownKind { found: name.to_owned() })?;
        let handle = MemoryError::Handle { kind, descriptors: fds.len(), integers: integers.len() };
        match (kind, fds.len(), integers) {
            (MemoryKind::Ashmem, 1, []) => Self::from_ashmem(fds.swap_remove(0), size),
            (MemoryKind::MmapFd, 1, &[protection, low, high]) => {
                let offset = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
                let protection = Protection::from_bits(protection)?;
                Self::from_file(fds.swap_remove(0), protection, offset, size)
            }
            // A handle of a hardware buffer has whatever its allocator put into it, but something.
            (MemoryKind::HardwareBufferBlob | MemoryKind::HardwareBuffer, 1.., _) => {
                Ok(Self::new(kind, fds, integers.to_vec(), 0, size, Protection::READ_WRITE, false))
            }
            _ => Err(handle),
        }
    }

    fn new(
        kind: MemoryKind,
        fds: Vec<OwnedFd>,
        integers: Vec<i32>,
        offset: u64,
        size: u64,
        protection: Protection,
        is_file: bool,
    ) -> Self {
        let view = OnceLock::new();
        Self(Arc::new(Inner { kind, fds, integers, offset, size, protection, is_file, view }))
    }

    /// The kind.
    pub fn kind(&self) -> MemoryKind {
        self.0.kind
    }

    /// Number of bytes; may exceed what 32-bit locations can address (contract: MEM-6).
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// What it may be used for.
    pub fn protection(&self) -> Protection {
        self.0.protection
    }

    /// Descriptors and integers of the handle, to be sent elsewhere.
    pub fn parts(&self) -> (&[OwnedFd], &[i32]) {
        (&self.0.fds, &self.0.integers)
    }

    /// Whether both are clones of one memory. Two memories made of one descriptor are not.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Access to the bytes; made once.
    ///
    /// # Errors
    /// The kind is not accessible here, or the system refuses.
    pub fn view(&self) -> Result<MemoryView, MemoryError> {
        self.0.view.get_or_init(|| self.make_view()).clone()
    }

    fn make_view(&self) -> Result<MemoryView, MemoryError> {
        let Inner { kind, offset, size, protection, is_file, .. } = *self.0;
        let why = match kind {
            MemoryKind::HardwareBufferBlob => "hardware buffers are Android's",
            MemoryKind::HardwareBuffer => "its format is not bytes",
            MemoryKind::Ashmem | MemoryKind::MmapFd => {
                let (readable, writable) = (protection.read, protection.write);
                let extent = Extent { offset, size, readable, writable, is_file };
                return MemoryView::new(&self.0.fds[0], extent);
            }
        };
        Err(MemoryError::NotMappable { kind, why })
    }
}

/// The low and high 32 bits, as a handle's integers carry them.
#[allow(clippy::cast_possible_truncation)] // Cutting is what is meant.
fn halves(number: u64) -> [i32; 2] {
    [(number as u32).cast_signed(), ((number >> 32) as u32).cast_signed()]
}

/// What a descriptor was opened for, less what a seal forbids.
fn allowed_access(fd: &OwnedFd) -> Result<Protection, MemoryError> {
    let flags = fcntl_getfl(fd).map_err(MemoryError::system("fcntl"))?;
    let sealed = fcntl_get_seals(fd)
        .is_ok_and(|seals| seals.intersects(SealFlags::WRITE | SealFlags::FUTURE_WRITE));
    let mode = flags & OFlags::RWMODE;
    Ok(Protection { read: mode != OFlags::WRONLY, write: mode != OFlags::RDONLY && !sealed })
}

/// Refuses sizes beyond what the descriptor holds (MEM-5). Says whether it is a file.
fn check_size(fd: &OwnedFd, kind: MemoryKind, offset: u64, size: u64) -> Result<bool, MemoryError> {
    if size == 0 {
        return Err(MemoryError::Empty { kind });
    }
    let stat = fstat(fd).map_err(MemoryError::system("fstat"))?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let held = if is_file {
        u64::try_from(stat.st_size).unwrap_or(0)
    } else {
        // Device memory (ashmem, dma-buf) tells its size as the position of its end.
        seek(fd, SeekFrom::End(0)).map_err(MemoryError::system("lseek"))?
    };
    match offset.checked_add(size) {
        Some(declared) if declared <= held => Ok(is_file),
        declared => Err(MemoryError::Size { declared: declared.unwrap_or(u64::MAX), held }),
    }
}
