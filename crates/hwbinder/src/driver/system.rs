//! [`Device`]: the binder device, opened and mapped.
//!
//! Where this crate is `unsafe`, beside two calls of this module in `process`: two kinds of system calls that `rustix`
//! cannot know, and slices of the mapping.

#![allow(unsafe_code)]

use crate::error::Error;
use rustix::fs::{Mode, OFlags};
use rustix::ioctl::{Setter, Updater, ioctl};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr::null_mut;

/// The protocol of kernels with 64-bit binder.
const PROTOCOL: i32 = 8;

/// `_IOWR('b', 1, struct binder_write_read)`
const WRITE_READ: u32 = 0xc030_6201;
/// `_IOW('b', 5, __u32)`
const SET_MAX_THREADS: u32 = 0x4004_6205;
/// `_IOW('b', 7, __s32)`
const SET_CONTEXT_MANAGER: u32 = 0x4004_6207;
/// `_IOW('b', 8, __s32)`
const THREAD_EXIT: u32 = 0x4004_6208;
/// `_IOWR('b', 9, struct binder_version)`
const VERSION: u32 = 0xc004_6209;

/// `struct binder_write_read`
#[repr(C)]
struct WriteRead {
    write_size: u64,
    write_consumed: u64,
    write_buffer: u64,
    read_size: u64,
    read_consumed: u64,
    read_buffer: u64,
}

/// A binder device and the mapping into which the kernel copies what arrives.
pub(super) struct Device {
    file: OwnedFd,
    mapping: *mut c_void,
    size: usize,
}

// SAFETY: the mapping is only read, by slices that `Device::slice` makes; the kernel takes calls from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    pub(super) fn open(path: &Path, size: usize) -> Result<Self, Error> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(path, flags, Mode::empty())
            .map_err(|error| Error::system("open", format!("{}: {error}", path.display())))?;
        let mut found = 0i32;
        // SAFETY: the request writes one `i32`.
        unsafe { ioctl(&file, Updater::<VERSION, i32>::new(&mut found)) }
            .map_err(|error| Error::system("BINDER_VERSION", error))?;
        if found != PROTOCOL {
            return Err(Error::Version { found, expected: PROTOCOL });
        }
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, wherever the kernel puts it.
        let mapping = unsafe { mmap(null_mut(), size, ProtFlags::READ, flags, &file, 0) };
        let mapping = mapping.map_err(|error| Error::system("mmap", error))?;
        Ok(Self { file, mapping, size })
    }

    /// How many threads the kernel may ask for.
    pub(super) fn set_max_threads(&self, threads: u32) -> Result<(), Error> {
        // SAFETY: the request reads one `u32`.
        unsafe { ioctl(&self.file, Setter::<SET_MAX_THREADS, u32>::new(threads)) }
            .map_err(|error| Error::system("BINDER_SET_MAX_THREADS", error))
    }

    /// Becomes the context manager. Its object has the number 0.
    pub(super) fn become_context_manager(&self) -> Result<(), Error> {
        // SAFETY: the request reads nothing that it is not given; kernels ignore the integer.
        unsafe { ioctl(&self.file, Setter::<SET_CONTEXT_MANAGER, i32>::new(0)) }
            .map_err(|error| Error::system("BINDER_SET_CONTEXT_MGR", error))
    }

    /// Tells the kernel that the calling thread ends.
    pub(super) fn exit_thread(&self) {
        // SAFETY: the request reads nothing that it is not given.
        let done = unsafe { ioctl(&self.file, Setter::<THREAD_EXIT, i32>::new(0)) };
        tracing::trace!(?done, "a thread has left binder");
    }

    /// Gives the kernel commands, then takes what it returns; waits for that if `returned` has room. Returns
    /// the bytes of `returned` that are filled.
    ///
    /// Commands name memory of this process, which only `Outgoing` parcels do: they live until this has returned.
    pub(super) fn exchange(&self, commands: &[u8], returned: &mut [u8]) -> io::Result<usize> {
        let mut exchange = WriteRead {
            write_size: commands.len() as u64,
            write_consumed: 0,
            write_buffer: commands.as_ptr().addr() as u64,
            read_size: returned.len() as u64,
            read_consumed: 0,
            read_buffer: returned.as_mut_ptr().expose_provenance() as u64,
        };
        loop {
            // SAFETY: the request updates one `WriteRead`, whose buffers are `commands`, which is read, and
            // `returned`, which is written, for as many bytes as they have; both outlive the call. What commands
            // point to is read if it can be read, and is never written.
            let done =
                unsafe { ioctl(&self.file, Updater::<WRITE_READ, WriteRead>::new(&mut exchange)) };
            match done {
                Ok(()) => {
                    return Ok(usize::try_from(exchange.read_consumed)
                        .unwrap_or(0)
                        .min(returned.len()));
                }
                // Commands that were taken are not given again: the kernel has moved `write_consumed`.
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Bytes of the mapping.
    ///
    /// # Safety
    /// They must belong to a buffer that the kernel has returned and that is not given back while the slice is
    /// used: the kernel writes to no such bytes, and to all others at any time.
    pub(super) unsafe fn slice<'a>(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        let offset = usize::try_from(address).ok()?.checked_sub(self.mapping.addr())?;
        let length = usize::try_from(length).ok()?;
        if offset.checked_add(length)? > self.size {
            return None;
        }
        let start = self.mapping.cast_const().cast::<u8>();
        // SAFETY: the range is in the mapping, as was just checked, which exists as long as `self` (see
        // `Drop`); no one writes to it, as the caller promises.
        Some(unsafe { std::slice::from_raw_parts(start.add(offset), length) })
    }

    /// A duplicate of a descriptor that arrived in a parcel.
    ///
    /// # Safety
    /// The number must come from an array of descriptors of a buffer that has not been given back: until then the
    /// kernel keeps it open.
    pub(super) unsafe fn duplicate(number: i32) -> io::Result<OwnedFd> {
        if number < 0 {
            return Err(rustix::io::Errno::BADF.into());
        }
        // SAFETY: it is open, as the caller promises.
        unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: slices are made by `Process`, for calls that keep it alive, and are not used after them.
        let unmapped = unsafe { munmap(self.mapping, self.size) };
        tracing::trace!(?unmapped, "a binder device was closed");
    }
}
