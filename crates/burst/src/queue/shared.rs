//! [`Shared`]: a queue's counters, ring and event flag in memory that others write as well.
//!
//! This is the only place of the crate that is unsafe. All that it gives out are references to
//! atomics; every access to the memory goes through one of them, always with the same size and at
//! the same alignment, so that whatever another process or thread does there, we see some number
//! and nothing worse. A stranger can make us map the same bytes twice, as parts of two queues or of
//! one in two descriptors: then the other mapping, at other addresses, is to this one as another
//! process is.

#![allow(unsafe_code)]

use super::descriptor::{Layout, Part};
use super::error::QueueError;
use super::sync::{AtomicU64, EventWord, RingWord};
use nnhal_hal::Memory;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fmt;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// The memory of a queue.
pub(super) struct Shared {
    /// Points into `mappings`, as do the others; aligned to 8.
    read_counter: NonNull<AtomicU64>,
    write_counter: NonNull<AtomicU64>,
    /// The first of `ring_words`.
    ring: NonNull<RingWord>,
    ring_words: usize,
    event_flag: Option<NonNull<EventWord>>,
    /// Kept only so that the pages stay.
    _mappings: Vec<Mapping>,
}

// SAFETY: the pages belong to this value until it is dropped, on whichever thread that is, and all
// access to them is by atomics.
unsafe impl Send for Shared {}
// SAFETY: all access to the pages is by atomics, which any number of threads may use at once.
unsafe impl Sync for Shared {}

impl Shared {
    /// Maps the parts of a queue. Afterwards the files are not needed for it any more.
    ///
    /// # Errors
    /// Memory that is shorter than the parts say ([`QueueError::Memory`]), that may not be written
    /// or can shrink, or that the system does not map.
    pub(super) fn new(files: &[OwnedFd], layout: &Layout) -> Result<Self, QueueError> {
        let mut mappings = Vec::new();
        // Where each file's mapping is; a file without parts has none.
        let mut of_file = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let parts = layout.parts().filter(|(_, part)| part.file == index);
            let needed = parts
                .map(|(_, part)| part.range())
                .reduce(|all, range| all.start.min(range.start)..all.end.max(range.end));
            of_file.push(mappings.len());
            if let Some(needed) = needed {
                check_nature(file, needed.end)?;
                mappings.push(Mapping::new(file.as_fd(), needed)?);
            }
        }
        let at = |part: Part| mappings[of_file[part.file]].at(part);
        Ok(Self {
            read_counter: at(layout.read_counter).cast(),
            write_counter: at(layout.write_counter).cast(),
            ring: at(layout.ring).cast(),
            // `Mapping::new` found that it fits.
            ring_words: usize::try_from(layout.ring.bytes / 8).unwrap_or(0),
            event_flag: layout.event_flag.map(|part| at(part).cast()),
            _mappings: mappings,
        })
    }

    /// How many bytes have been read, ever.
    pub(super) fn read_counter(&self) -> &AtomicU64 {
        // SAFETY: points to 8 mapped bytes at a multiple of 8, which at this address are accessed by
        // this atomic only and which stay mapped while `self` is borrowed.
        unsafe { self.read_counter.as_ref() }
    }

    /// How many bytes have been written, ever.
    pub(super) fn write_counter(&self) -> &AtomicU64 {
        // SAFETY: as in `read_counter`.
        unsafe { self.write_counter.as_ref() }
    }

    /// The event flag, if the queue has one.
    pub(super) fn event_flag(&self) -> Option<&EventWord> {
        // SAFETY: as in `read_counter`, with 4 bytes.
        self.event_flag.map(|flag| unsafe { flag.as_ref() })
    }

    /// The ring, by words of 8 bytes.
    pub(super) fn ring(&self) -> &[RingWord] {
        // SAFETY: `ring_words` times 8 mapped bytes at a multiple of 8, apart from the other parts,
        // accessed by these atomics only and mapped while `self` is borrowed. A slice of atomics
        // does not promise that no one else writes.
        unsafe { NonNull::slice_from_raw_parts(self.ring, self.ring_words).as_ref() }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("read", self.read_counter())
            .field("written", self.write_counter())
            .field("event_flag", &self.event_flag())
            .finish_non_exhaustive()
    }
}

/// Refuses memory that holds less than `size` bytes, that may not be written, or that could be cut
/// short later: touching a page that is gone would kill the process by a signal (contract: MEM-5).
///
/// [`nnhal_hal::memory`] knows which memory that is; it maps nothing else.
fn check_nature(file: &OwnedFd, size: u64) -> Result<(), QueueError> {
    let file = file
        .try_clone()
        .map_err(|error| QueueError::System { call: "dup", why: error.to_string() })?;
    let memory = Memory::from_ashmem(file, size)?;
    if !memory.is_writable() {
        return Err(QueueError::ReadOnly);
    }
    if !memory.view()?.is_mapped() {
        return Err(QueueError::CanShrink);
    }
    Ok(())
}

/// Whole pages of a file.
struct Mapping {
    pages: NonNull<u8>,
    /// Bytes of the pages.
    length: usize,
    /// Which byte of the file the pages begin with.
    begin: u64,
}

impl Mapping {
    /// Maps a range of a file that holds it and cannot shrink.
    fn new(file: BorrowedFd<'_>, range: Range<u64>) -> Result<Self, QueueError> {
        let page = rustix::param::page_size() as u64;
        let begin = range.start - range.start % page;
        let too_long = || QueueError::system("mmap")(Errno::OVERFLOW);
        let length = usize::try_from(range.end - begin).map_err(|_| too_long())?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so the kernel picks pages that nothing else uses.
        let pages = unsafe {
            mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file, begin)
        }
        .map_err(QueueError::system("mmap"))?;
        let pages = NonNull::new(pages.cast()).ok_or_else(too_long)?;
        Ok(Self { pages, length, begin })
    }

    /// Where a part begins.
    ///
    /// # Panics
    /// If it is not within the range that was mapped, or not at a multiple of 8.
    fn at(&self, part: Part) -> NonNull<u8> {
        let end = usize::try_from(part.range().end - self.begin);
        assert!(part.offset >= self.begin && end.is_ok_and(|end| end <= self.length));
        assert!(part.offset.is_multiple_of(8));
        let within = usize::try_from(part.offset - self.begin).unwrap_or(0);
        // SAFETY: within the pages, as just checked.
        unsafe { self.pages.add(within) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the pages are this value's own, and nothing refers to them any more.
        let unmapped = unsafe { munmap(self.pages.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok());
    }
}
