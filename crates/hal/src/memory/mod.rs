//! [`Memory`]: pools of a model or request, which other processes may change while we use them.
//!
//! Shared memory never becomes a slice. A [`MemoryView`] copies bytes in and out, so that a byte
//! that is checked is the byte that is used (contract: SEC-1); only memory that no one else can access can be borrowed. See there how memory that shrinks is
//! survived.
//!
//! | kind | from | handle | meaning |
//! |---|---|---|---|
//! | `ashmem` | 1.0 | 1 descriptor | the first `size` bytes, read and written |
//! | `mmap_fd` | 1.0 | 1 descriptor, 3 integers | protection, offset (low and high 32 bits) |
//! | `hardware_buffer_blob` | 1.2 | an `AHardwareBuffer` | bytes; mapped where the handle has one descriptor |
//! | `hardware_buffer` | 1.2 | an `AHardwareBuffer` | not accessible to a general driver |
//!
//! Descriptors become the memory's own, are marked close-on-exec, and are closed with its last
//! clone, or at once where a constructor refuses them (contract: SEC-6).
//!
//! What is not here: only Android's allocator can lock a hardware buffer. A BLOB whose handle has one
//! descriptor is taken for what its allocator makes of bytes, a dma-buf or a file that holds them from
//! the beginning; any other can be named and passed on, but not read or written. A dma-buf is accessed
//! without the calls that bracket CPU use, which buffers of some devices need.
//!
//! Source: contract, section 15.
//!
//! ```
//! # fn main() -> Result<(), nnhal_hal::memory::MemoryError> {
//! let memory = nnhal_hal::Memory::from_bytes(&[1, 2, 3, 4])?;
//! let view = memory.view()?;
//! view.write(1, &[9])?;
//! assert_eq!(view.read_to_vec(0, 3)?, [1, 9, 3]);
//! assert!(view.read_to_vec(3, 2).is_err(), "only 4 bytes");
//! # Ok(())
//! # }
//! ```

mod descriptor;
mod error;
mod lent;
mod loan;
mod machine;
mod mapping;
mod own_file;
mod view;
mod weight_pool;
mod zeros;

pub use error::MemoryError;
pub use lent::BorrowedBytes;
pub use loan::Loan;
pub use machine::machine_memory;
pub use own_file::{OwnFile, map_own_file};
pub use view::MemoryView;
pub use weight_pool::{KeptWeights, WeightPool};
pub use zeros::{Zeros, zeros, zeros_in_huge_pages};

use crate::client::{Client, ClientError, Held, Holding};
use crate::codes::HalVersion;
use descriptor::{Descriptors, Nature};
use lent::Lent;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, fstatfs, ftruncate, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// What `statfs` calls the file system that memfds are in.
const TMPFS: u32 = 0x0102_1994;

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

    /// The oldest version of the interface that has this kind (contract: MEM-1).
    pub const fn since(self) -> HalVersion {
        match self {
            Self::Ashmem | Self::MmapFd => HalVersion::V1_0,
            Self::HardwareBufferBlob | Self::HardwareBuffer => HalVersion::V1_2,
        }
    }
}

impl MemoryKind {
    /// What its handle must hold, in words.
    const fn handle(self) -> &'static str {
        match self {
            Self::Ashmem => "1 descriptor and no integers",
            Self::MmapFd => "1 descriptor and 3 integers",
            Self::HardwareBufferBlob | Self::HardwareBuffer => "at least 1 descriptor",
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

impl fmt::Display for Protection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.read, self.write) {
            (false, false) => "neither reading nor writing",
            (true, false) => "reading",
            (false, true) => "writing",
            (true, true) => "reading and writing",
        })
    }
}

/// A piece of memory that is shared with others: a pool of a model or request. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    kind: MemoryKind,
    /// One at least; shared with the view.
    fds: Arc<Descriptors>,
    integers: Vec<i32>,
    offset: u64,
    size: u64,
    protection: Protection,
    /// Only a view, no error: the next attempt may succeed.
    view: OnceLock<MemoryView>,
    /// What it counts as, see [`Memory::held_by`].
    held: OnceLock<Held>,
    /// Whether this process made it, so that its size and its pages are as they were asked for.
    is_allocated: bool,
}

impl Memory {
    /// New memory of `size` bytes, all 0 (contract: SEC-2). It can neither shrink nor grow, not
    /// even by those it is shared with; kind `ashmem`. The system finds the pages when they are
    /// first touched.
    ///
    /// # Errors
    /// [`MemoryError::Empty`], or [`MemoryError::System`] if the system has no more.
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
        Ok(Self(Arc::new(Inner {
            kind,
            fds: Descriptors::new(vec![fd]),
            integers: Vec::new(),
            offset: 0,
            size,
            protection: Protection::READ_WRITE,
            view: OnceLock::new(),
            held: OnceLock::new(),
            is_allocated: true,
        })))
    }

    /// New memory of `size` bytes, all 0, that no other process can have: its descriptor is that of an empty file, which
    /// whoever receives it refuses. Its bytes can be [borrowed](MemoryView::borrow_mut). In huge pages where the system has them.
    ///
    /// # Errors
    /// [`MemoryError::Empty`], [`MemoryError::NoRoom`], [`MemoryError::System`].
    pub fn private(size: u64) -> Result<Self, MemoryError> {
        let length = usize::try_from(size).map_err(|_| MemoryError::NoRoom { length: size })?;
        let own = Lent::own(zeros_in_huge_pages(size.max(1))?, length);
        loan::of_this_process(Arc::new(own), length, Protection::READ_WRITE)
    }

    /// New memory that holds these bytes; kind `ashmem`.
    ///
    /// # Errors
    /// As [`Memory::allocate`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MemoryError> {
        let memory = Self::allocate(bytes.len() as u64)?;
        memory.view()?.write(0, bytes)?;
        Ok(memory)
    }

    /// Memory of kind `ashmem` out of a descriptor that came from elsewhere: its first `size`
    /// bytes, to be read and written as far as the descriptor allows it.
    ///
    /// # Errors
    /// [`MemoryError::Empty`]; [`MemoryError::Size`] if the descriptor holds less (contract:
    /// MEM-5); [`MemoryError::NotMemory`]; [`MemoryError::Access`] if it cannot even be read.
    pub fn from_ashmem(fd: OwnedFd, size: u64) -> Result<Self, MemoryError> {
        let kind = MemoryKind::Ashmem;
        let allowed = descriptor::allowed(&fd)?;
        if !allowed.read {
            return Err(MemoryError::Access { asked: Protection::READ, allowed });
        }
        descriptor::check_size(&fd, kind, 0, size)?;
        Ok(Self::new(kind, vec![fd], vec![], 0, size, allowed))
    }

    /// `size` bytes of a file from byte `offset` on, which need be no multiple of the page size
    /// (contract: MEM-3); kind `mmap_fd`.
    ///
    /// # Errors
    /// [`MemoryError::Empty`]; [`MemoryError::Size`] if the file ends before (contract: MEM-5);
    /// [`MemoryError::NotMemory`]; [`MemoryError::Access`] if the descriptor does not allow what
    /// `protection` asks for: it is open for reading only, say, or open for appending.
    pub fn from_file(
        fd: OwnedFd,
        protection: Protection,
        offset: u64,
        size: u64,
    ) -> Result<Self, MemoryError> {
        let memory = Self::from_file_to_grow(fd, protection, offset, size)?;
        descriptor::check_size(&memory.0.fds[0], MemoryKind::MmapFd, offset, size)?;
        Ok(memory)
    }

    /// As [`Memory::from_file`], of a file that may still end before: [`Memory::view`] says so, as long as it does. For
    /// files of this process.
    ///
    /// # Errors
    /// As [`Memory::from_file`]; [`MemoryError::Size`] only if offset and size are more than any file has.
    pub fn from_file_to_grow(
        fd: OwnedFd,
        protection: Protection,
        offset: u64,
        size: u64,
    ) -> Result<Self, MemoryError> {
        let kind = MemoryKind::MmapFd;
        let allowed = descriptor::allowed(&fd)?;
        if (protection.read && !allowed.read) || (protection.write && !allowed.write) {
            return Err(MemoryError::Access { asked: protection, allowed });
        }
        match descriptor::check_size(&fd, kind, offset, size) {
            Err(MemoryError::Size { declared, .. }) if i64::try_from(declared).is_ok() => {}
            checked => drop(checked?),
        }
        let [low, high] = halves(offset);
        let integers = vec![protection.bits(), low, high];
        Ok(Self::new(kind, vec![fd], integers, offset, size, protection))
    }

    /// Memory out of the pieces of a `hidl_memory`: name, descriptors and integers of the handle,
    /// size in bytes. A hardware buffer is kept as it is, with the size that the caller states:
    /// whether it has that many bytes is checked when they are used ([`Memory::view`]). A null handle
    /// has no descriptors. Whether the version of the interface knows the kind is for
    /// the caller to ask ([`MemoryKind::since`]).
    ///
    /// # Errors
    /// [`MemoryError::UnknownKind`] (contract: MEM-1), [`MemoryError::Handle`] and
    /// [`MemoryError::Protection`] (MEM-2), and those of [`Memory::from_ashmem`] and
    /// [`Memory::from_file`]. All descriptors are closed.
    pub fn from_parts(
        name: &str,
        mut fds: Vec<OwnedFd>,
        integers: &[i32],
        size: u64,
    ) -> Result<Self, MemoryError> {
        let kind = MemoryKind::from_name(name)
            .ok_or_else(|| MemoryError::UnknownKind { found: name.to_owned() })?;
        match (kind, fds.len(), integers) {
            (MemoryKind::Ashmem, 1, []) => Self::from_ashmem(fds.swap_remove(0), size),
            (MemoryKind::MmapFd, 1, &[protection, low, high]) => {
                let offset = u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32;
                let protection = Protection::from_bits(protection)?;
                Self::from_file(fds.swap_remove(0), protection, offset, size)
            }
            // A handle of a hardware buffer has whatever its allocator put into it, but something.
            (MemoryKind::HardwareBufferBlob | MemoryKind::HardwareBuffer, 1.., _) => {
                for fd in &fds {
                    fcntl_setfd(fd, FdFlags::CLOEXEC).map_err(MemoryError::system("fcntl"))?;
                }
                let protection = match (kind, &fds[..]) {
                    (MemoryKind::HardwareBufferBlob, [fd]) => descriptor::allowed(fd)?,
                    _ => Protection::READ_WRITE,
                };
                Ok(Self::new(kind, fds, integers.to_vec(), 0, size, protection))
            }
            _ => Err(MemoryError::Handle {
                kind,
                descriptors: fds.len(),
                integers: integers.len(),
                expected: kind.handle(),
            }),
        }
    }

    fn new(
        kind: MemoryKind,
        fds: Vec<OwnedFd>,
        integers: Vec<i32>,
        offset: u64,
        size: u64,
        protection: Protection,
    ) -> Self {
        Self(Arc::new(Inner {
            kind,
            fds: Descriptors::new(fds),
            integers,
            offset,
            size,
            protection,
            view: OnceLock::new(),
            held: OnceLock::new(),
            is_allocated: false,
        }))
    }

    /// As [`Memory::allocate`], counted as the client's for as long as any clone is there.
    ///
    /// # Errors
    /// As [`Memory::allocate`]; [`MemoryError::Limit`] if the client may not hold as much.
    pub fn allocate_for(client: &Client, size: u64) -> Result<Self, MemoryError> {
        // Counted before anything is taken.
        let held = client.hold(Holding::Memory, size)?;
        let memory = Self::allocate(size)?;
        // It is new, so it counts as nothing yet.
        let _ = memory.0.held.set(held);
        Ok(memory)
    }

    /// Counts `bytes` against the client's limit as long as any clone exists. What counts
    /// already stays as it is.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] if the client may not hold as much.
    pub fn held_by(&self, client: &Client, bytes: u64) -> Result<(), MemoryError> {
        let _ = self.0.held.set(client.hold(Holding::Memory, bytes)?);
        Ok(())
    }

    /// Counts its descriptors against the client's limit until they are closed, with the last clone or view that has them.
    /// What counts already stays as it is; bytes of this process have no descriptor that would count.
    ///
    /// # Errors
    /// [`ClientError`]; then nothing is counted.
    pub fn kept_by(&self, client: &Client) -> Result<(), ClientError> {
        match self.0.view.get().is_some_and(MemoryView::is_lent) {
            true => Ok(()),
            false => self.0.fds.kept_by(client),
        }
    }

    /// Bytes for which the system finds pages only when they are first read: those of holes in files
    /// that are memory themselves, as memfds are. What is read of files on disks can be forgotten
    /// again, so they have none.
    pub fn bytes_in_holes(&self) -> u64 {
        let fd = &self.0.fds[0];
        let is_memory = fstatfs(fd).is_ok_and(|it| {
            let [a, b, c, d, ..] = it.f_type.to_le_bytes();
            u32::from_le_bytes([a, b, c, d]) == TMPFS
        });
        let (true, Ok(stat)) = (is_memory, fstat(fd)) else { return 0 };
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        length.saturating_sub(allocated).min(self.size())
    }

    /// The kind.
    pub fn kind(&self) -> MemoryKind {
        self.0.kind
    }

    /// The kind's name in `hidl_memory`.
    pub fn name(&self) -> &'static str {
        self.0.kind.name()
    }

    /// Number of bytes; may exceed what 32-bit locations can address (contract: MEM-6).
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// What it may be used for.
    pub fn protection(&self) -> Protection {
        self.0.protection
    }

    /// Whether it may be written.
    pub fn is_writable(&self) -> bool {
        self.0.protection.write
    }

    /// Descriptors and integers of the handle, to be sent elsewhere with [`Memory::name`] and
    /// [`Memory::size`]; [`Memory::from_parts`] is the way back.
    pub fn parts(&self) -> (&[OwnedFd], &[i32]) {
        (&self.0.fds, &self.0.integers)
    }

    /// The file that it is a part of, and where in it the part begins; `None` for other kinds of memory.
    pub fn file_part(&self) -> Option<(BorrowedFd<'_>, u64)> {
        match (self.0.kind, &self.0.fds[..]) {
            (MemoryKind::MmapFd, [file]) => Some((file.as_fd(), self.0.offset)),
            _ => None,
        }
    }

    /// Whether both are clones of one memory. Two memories made of one descriptor are not.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Access to the bytes. Made once and shared by all clones; an attempt that fails leaves
    /// nothing behind.
    ///
    /// # Errors
    /// [`MemoryError::NotMappable`] for hardware buffers, but for those of bytes with one descriptor;
    /// [`MemoryError::Size`] if the file has been cut short since, or a hardware buffer has fewer
    /// bytes than it is said to have; [`MemoryError::NotMemory`] if it is no memory at all;
    /// [`MemoryError::System`] if the system refuses.
    pub fn view(&self) -> Result<MemoryView, MemoryError> {
        if let Some(view) = self.0.view.get() {
            return Ok(view.clone());
        }
        let view = self.make_view()?;
        Ok(self.0.view.get_or_init(|| view).clone())
    }

    fn make_view(&self) -> Result<MemoryView, MemoryError> {
        let Inner { kind, ref fds, offset, size, protection, .. } = *self.0;
        let why = match kind {
            MemoryKind::HardwareBuffer => "its format is not bytes",
            MemoryKind::HardwareBufferBlob if fds.len() > 1 => {
                "its handle has several descriptors, which only Android's allocator can interpret"
            }
            MemoryKind::HardwareBufferBlob | MemoryKind::Ashmem | MemoryKind::MmapFd => {
                let nature = match self.0.is_allocated {
                    true => Nature::Allocated,
                    // Once more: a file that was open to all may have been cut short, then sealed.
                    false => descriptor::check_size(&fds[0], kind, offset, size)?,
                };
                return MemoryView::new(Arc::clone(fds), nature, offset, size, protection);
            }
        };
        Err(MemoryError::NotMappable { kind, why })
    }
}

/// The first descriptor of the handle.
impl AsFd for Memory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fds[0].as_fd()
    }
}

/// The low and high 32 bits, as a handle's integers carry them.
#[allow(clippy::cast_possible_truncation)] // Cutting is what is meant.
fn halves(number: u64) -> [i32; 2] {
    [(number as u32).cast_signed(), ((number >> 32) as u32).cast_signed()]
}
