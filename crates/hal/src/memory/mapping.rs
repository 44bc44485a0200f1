//! [`Mapping`]: pages of a descriptor, copied in and out.
//!
//! This is the only place of the crate that is unsafe. Another process may change the pages at any
//! time, so no reference to them is ever made. They are copied as if by one relaxed atomic access
//! for each byte, which no other access can turn into undefined behaviour: a racing copy sees old
//! or new bytes.

#![allow(unsafe_code)]

use super::error::MemoryError;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
#[cfg(any(miri, not(target_arch = "x86_64")))]
use std::sync::atomic::{AtomicU8, Ordering};

/// A mapped range of a descriptor.
#[derive(Debug)]
pub(super) struct Mapping {
    /// Where the pages begin.
    pages: NonNull<u8>,
    /// Bytes of whole pages.
    mapped: usize,
    /// Where the range begins within the pages.
    skipped: usize,
    /// Bytes of the range; `skipped + length <= mapped`.
    length: usize,
}

// SAFETY: the pages belong to this value until it is dropped, and are only accessed through
// `read` and `write`, which may race with each other (see there).
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes from `offset` on, which need be no multiple of the page size (MEM-3).
    /// The caller has seen to it that the descriptor holds them and cannot shrink.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        readable: bool,
        writable: bool,
    ) -> Result<Self, MemoryError> {
        let page = rustix::param::page_size() as u64;
        let begin = offset - offset % page;
        let skipped = usize::try_from(offset - begin).unwrap_or(0);
        let mapped = skipped.checked_add(length).ok_or(MemoryError::Range {
            offset,
            length: length as u64,
            size: u64::MAX,
        })?;
        let mut protection = ProtFlags::empty();
        protection.set(ProtFlags::READ, readable);
        protection.set(ProtFlags::WRITE, writable);
        // SAFETY: no address is asked for, so the kernel picks pages that nothing else uses.
        let pages =
            unsafe { mmap(std::ptr::null_mut(), mapped, protection, MapFlags::SHARED, fd, begin) }
                .map_err(MemoryError::system("mmap"))?;
        let pages = NonNull::new(pages.cast()).ok_or(MemoryError::Access)?;
        Ok(Self { pages, mapped, skipped, length })
    }

    /// Where `length` bytes at `offset` begin.
    ///
    /// # Panics
    /// If they do not lie within the range: the view checks first.
    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        // SAFETY: `skipped + offset` is within the pages, as just checked.
        unsafe { self.pages.as_ptr().add(self.skipped + offset) }
    }

    /// Copies out. The mapping must be readable.
    pub(super) fn read(&self, offset: usize, destination: &mut [u8]) {
        let source = self.at(offset, destination.len());
        // SAFETY: `at` checked the source, which stays mapped while `self` lives and whose file
        // cannot shrink; the destination is a slice of the same length, and no safe code can hold a
        // slice of these pages, so they do not overlap.
        unsafe { copy_bytes(source, destination.as_mut_ptr(), destination.len()) }
    }

    /// Copies in. The mapping must be writable.
    pub(super) fn write(&self, offset: usize, source: &[u8]) {
        let destination = self.at(offset, source.len());
        // SAFETY: as in `read`, with the roles exchanged.
        unsafe { copy_bytes(source.as_ptr(), destination, source.len()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own, and nothing refers to them any more.
        let unmapped = unsafe { munmap(self.pages.as_ptr().cast(), self.mapped) };
        debug_assert!(unmapped.is_ok());
    }
}

/// Copies bytes that others may access at the same time, as if by one relaxed atomic load and store
/// for each byte.
///
/// # Safety
/// `source` must be valid for reads and `destination` for writes of `length` bytes, and they must
/// not overlap. Whatever else in this process accesses the shared one does so by this function.
unsafe fn copy_bytes(source: *const u8, destination: *mut u8, length: usize) {
    // A machine instruction that moves bytes does what a loop of relaxed atomic accesses does; the
    // compiler cannot see into it, so it assumes nothing of the bytes.
    #[cfg(all(not(miri), target_arch = "x86_64"))]
    // SAFETY: `rep movsb` reads and writes `length` bytes at the pointers, which the caller vouches
    // for; the direction flag is clear on entry to an asm block.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rsi") source => _,
            inout("rdi") destination => _,
            options(nostack, preserves_flags),
        );
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    for index in 0..length {
        // SAFETY: both are within the ranges that the caller vouches for; a byte is always aligned.
        unsafe {
            let from = AtomicU8::from_ptr(source.cast_mut().add(index));
            let to = AtomicU8::from_ptr(destination.add(index));
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs under Miri, which checks the accesses.
    #[test]
    fn bytes_are_copied_in_any_alignment() {
        let source: Vec<u8> = (0..64).collect();
        for (from, length) in [(0, 64), (1, 0), (3, 17), (7, 57)] {
            let mut destination = vec![0xFF_u8; 80];
            // SAFETY: both ranges lie within their vectors.
            unsafe {
                copy_bytes(source.as_ptr().add(from), destination.as_mut_ptr().add(5), length);
            }
            assert_eq!(destination[5..5 + length], source[from..from + length]);
            assert!(destination[5 + length..].iter().all(|byte| *byte == 0xFF));
        }
    }
}
