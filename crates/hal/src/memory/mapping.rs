//! [`Mapping`]: pages of a descriptor, copied in and out.
//!
//! Beside `lent`, `loan` and `fence::sync_file` this is the only place of the crate that is unsafe. Another process, or
//! another thread of this one, may change the pages at any time, so no reference to them is ever
//! made. Each byte of them is accessed as if by one relaxed atomic load or store: a copy that races
//! with another sees old or new bytes, in any mixture, and nothing worse.
//!
//! Why bytes and not words: accesses that race are undefined behaviour if they are atomic but of
//! different sizes (see the memory model in `std::sync::atomic`). Two copies whose edges fall
//! differently would be just that if the middle went by words. The words are left to machine
//! instructions, which the compiler takes for the loop over bytes that they amount to.

#![allow(unsafe_code)]

use super::error::MemoryError;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

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

// SAFETY: the pages belong to this value until it is dropped, on whichever thread that is, and are
// only accessed through `read` and `write`.
unsafe impl Send for Mapping {}
// SAFETY: `read` and `write` are the only accesses, and may race with each other (see the top).
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes from `offset` on, which need be no multiple of the page size (MEM-3).
    /// The caller has seen to it that the descriptor holds them and cannot shrink: touching a page
    /// that it no longer has would kill the process.
    pub(super) fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        readable: bool,
        writable: bool,
    ) -> Result<Self, MemoryError> {
        let page = rustix::param::page_size() as u64;
        let begin = offset - offset % page;
        let too_long = || MemoryError::system("mmap")(Errno::OVERFLOW);
        let skipped = usize::try_from(offset - begin).map_err(|_| too_long())?;
        let mapped = skipped.checked_add(length).ok_or_else(too_long)?;
        let mut protection = ProtFlags::empty();
        protection.set(ProtFlags::READ, readable);
        protection.set(ProtFlags::WRITE, writable);
        // SAFETY: no address is asked for, so the kernel picks pages that nothing else uses.
        let pages =
            unsafe { mmap(std::ptr::null_mut(), mapped, protection, MapFlags::SHARED, fd, begin) }
                .map_err(MemoryError::system("mmap"))?;
        let pages = NonNull::new(pages.cast()).ok_or_else(too_long)?;
        Ok(Self { pages, mapped, skipped, length })
    }

    /// Where `length` bytes at `offset` begin.
    ///
    /// # Panics
    /// If they do not be within the range: the view checks first.
    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.length));
        // SAFETY: `skipped + offset` is within the pages, as just checked.
        unsafe { self.pages.as_ptr().add(self.skipped + offset) }
    }

    /// Copies out. The mapping must be readable.
    pub(super) fn read(&self, offset: usize, destination: &mut [u8]) {
        let shared = self.at(offset, destination.len());
        // SAFETY: `at` checked the range, which stays mapped as long as `self` exists and whose pages
        // stay there because the descriptor cannot shrink. `destination` is elsewhere: no safe code
        // can hold a slice of these pages.
        unsafe { copy::out_of(shared, destination) }
    }

    /// Copies in. The mapping must be writable.
    pub(super) fn write(&self, offset: usize, source: &[u8]) {
        let shared = self.at(offset, source.len());
        // SAFETY: as in `read`.
        unsafe { copy::into(source, shared) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own, and nothing refers to them any more.
        let unmapped = unsafe { munmap(self.pages.as_ptr().cast(), self.mapped) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use by_instruction as copy;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) use by_loop as copy;

/// The copies as machine instructions. The compiler does not see into them, so it can assume of
/// them only what a loop of relaxed atomic accesses to bytes would do.
#[cfg(all(not(miri), any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(in crate::memory) mod by_instruction {
    /// # Safety
    /// `shared` must be valid for reads of as many bytes as `destination` has, and not overlap it.
    /// Others may access it meanwhile, this process only by the functions of one of these modules.
    pub(in crate::memory) unsafe fn out_of(shared: *const u8, destination: &mut [u8]) {
        // SAFETY: the caller vouches for `shared`, and a slice is valid for its length.
        unsafe { move_bytes(shared, destination.as_mut_ptr(), destination.len()) }
    }

    /// # Safety
    /// As [`out_of`], with `shared` valid for writes.
    pub(in crate::memory) unsafe fn into(source: &[u8], shared: *mut u8) {
        // SAFETY: the caller vouches for `shared`, and a slice is valid for its length.
        unsafe { move_bytes(source.as_ptr(), shared, source.len()) }
    }

    /// # Safety
    /// `source` must be valid for reads and `destination` for writes of `length` bytes.
    #[cfg(target_arch = "x86_64")]
    unsafe fn move_bytes(source: *const u8, destination: *mut u8, length: usize) {
        // SAFETY: `rep movsb` reads and writes `length` bytes at the pointers, for which the caller
        // vouches; the direction flag is clear on entry to an asm block.
        unsafe {
            std::arch::asm!(
                "rep movsb",
                inout("rcx") length => _,
                inout("rsi") source => _,
                inout("rdi") destination => _,
                options(nostack, preserves_flags),
            );
        }
    }

    /// # Safety
    /// `source` must be valid for reads and `destination` for writes of `length` bytes.
    #[cfg(target_arch = "aarch64")]
    unsafe fn move_bytes(source: *const u8, destination: *mut u8, length: usize) {
        // SAFETY: 32 bytes are moved only while at least 32 are left, then one after the
        // other: `length` bytes at the pointers, for which the caller vouches.
        unsafe {
            std::arch::asm!(
                "subs {left}, {left}, #32",
                "b.lo 3f",
                "2:",
                "ldp {low:q}, {high:q}, [{source}], #32",
                "stp {low:q}, {high:q}, [{destination}], #32",
                "subs {left}, {left}, #32",
                "b.hs 2b",
                "3:",
                "adds {left}, {left}, #32",
                "b.eq 5f",
                "4:",
                "ldrb {byte:w}, [{source}], #1",
                "strb {byte:w}, [{destination}], #1",
                "subs {left}, {left}, #1",
                "b.ne 4b",
                "5:",
                source = inout(reg) source => _,
                destination = inout(reg) destination => _,
                left = inout(reg) length => _,
                byte = out(reg) _,
                low = out(vreg) _,
                high = out(vreg) _,
                options(nostack),
            );
        }
    }
}

/// The same copies for every other machine, and for Miri, which checks them.
#[cfg(any(test, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(in crate::memory) mod by_loop {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// # Safety
    /// As `by_instruction::out_of`. `shared` may point to pages that are mapped for reading only:
    /// relaxed loads of a byte are allowed there.
    pub(in crate::memory) unsafe fn out_of(shared: *const u8, destination: &mut [u8]) {
        for (index, byte) in destination.iter_mut().enumerate() {
            // SAFETY: within the range for which the caller vouches; a byte is always aligned.
            let shared = unsafe { AtomicU8::from_ptr(shared.cast_mut().add(index)) };
            *byte = shared.load(Ordering::Relaxed);
        }
    }

    /// # Safety
    /// As `by_instruction::into`.
    pub(in crate::memory) unsafe fn into(source: &[u8], shared: *mut u8) {
        for (index, byte) in source.iter().enumerate() {
            // The source is ours alone and maybe constant: only the shared side is atomic.
            // SAFETY: as in `out_of`.
            let shared = unsafe { AtomicU8::from_ptr(shared.add(index)) };
            shared.store(*byte, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    type OutOf = unsafe fn(*const u8, &mut [u8]);
    type Into = unsafe fn(&[u8], *mut u8);

    /// Every way of copying that runs here, so that the loop is tested where it is not chosen.
    const WAYS: [(&str, OutOf, Into); 2] =
        [("chosen", copy::out_of, copy::into), ("loop", by_loop::out_of, by_loop::into)];

    /// Memory that threads race on, on the heap so that Miri can watch.
    struct Shared(Box<[UnsafeCell<u8>]>);

    // SAFETY: the bytes are only accessed by `copy` and `by_loop`.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn new(bytes: &[u8]) -> Self {
            Self(bytes.iter().copied().map(UnsafeCell::new).collect())
        }

        fn at(&self, offset: usize) -> *mut u8 {
            UnsafeCell::raw_get(self.0[offset..].as_ptr())
        }
    }

    #[test]
    fn every_alignment_and_length_is_copied_and_nothing_beside_it() {
        let lengths = if cfg!(miri) { vec![0, 1, 31, 33] } else { (0..=100).collect() };
        let original: Vec<u8> = (0..128).collect();
        for (way, out_of, into) in WAYS {
            for offset in [0, 1, 7, 8, 19] {
                for &length in &lengths {
                    let (range, name) = (offset..offset + length, (way, offset, length));
                    let shared = Shared::new(&original);
                    let mut copied = vec![0xFF; length + 2];
                    // SAFETY: the range is within `shared`, which nothing else accesses.
                    unsafe { out_of(shared.at(offset), &mut copied[1..=length]) };
                    assert_eq!(copied[1..=length], original[range.clone()], "{name:?}");
                    assert_eq!((copied[0], copied[length + 1]), (0xFF, 0xFF), "{name:?}");

                    let mut expected = original.clone();
                    expected[range].fill(0xEE);
                    let source = vec![0xEE; length];
                    // SAFETY: as above.
                    unsafe { into(&source, shared.at(offset)) };
                    let found: Vec<u8> = shared.0.into_iter().map(UnsafeCell::into_inner).collect();
                    assert_eq!(found, expected, "{name:?}");
                }
            }
        }
    }

    /// Miri says so if any of these accesses were a data race, or atomic but of different sizes.
    #[test]
    fn sec_1_copies_that_race_see_one_byte_or_the_other() {
        let rounds = if cfg!(miri) { 4 } else { 2000 };
        for (_, out_of, into) in WAYS {
            let shared = Shared::new(&[0x11; 48]);
            std::thread::scope(|scope| {
                for (value, offset) in [(0x11, 0), (0x22, 3)] {
                    let shared = &shared;
                    scope.spawn(move || {
                        for _ in 0..rounds {
                            // SAFETY: within `shared`; others access it by the same functions.
                            unsafe { into(&[value; 45], shared.at(offset)) };
                        }
                    });
                }
                for _ in 0..rounds {
                    let mut copied = [0; 40];
                    // SAFETY: as above.
                    unsafe { out_of(shared.at(5), &mut copied) };
                    assert!(copied.iter().all(|byte| [0x11, 0x22].contains(byte)));
                }
            });
        }
    }
}
