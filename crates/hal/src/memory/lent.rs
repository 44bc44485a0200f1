//! [`Lent`]: bytes of this process that belong to somebody else until their loan ends, or to this memory alone.

#![allow(unsafe_code)]

use super::error::MemoryError;
use super::mapping::copy;
use super::zeros::Zeros;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// This number of bytes is copied before others who wait for the lock would sleep: noting who copies them would take longer.
const FEW_BYTES: usize = 4096;

/// The bytes, as long as they are lent.
#[derive(Debug)]
pub(super) struct Lent {
    first: NonNull<u8>,
    length: usize,
    /// Whether no one else accesses them, so that they can be borrowed.
    is_exclusive: bool,
    accesses: Mutex<Accesses>,
    /// One of them is over.
    is_over: Condvar,
    /// Of memory that no one lends: `first` is the first byte.
    _own: Option<Zeros>,
}

/// Who accesses the bytes now.
#[derive(Debug, Default)]
struct Accesses {
    has_ended: bool,
    running: Vec<Access>,
    last: u64,
}

#[derive(Debug)]
struct Access {
    number: u64,
    range: Range<usize>,
    is_borrow: bool,
}

// SAFETY: whoever lent the bytes vouched that any thread may access them until the loan ends; they
// are accessed through `copy`, and by the one who has borrowed them.
unsafe impl Send for Lent {}
// SAFETY: as above; copies may race with each other, see `mapping`, and with nothing that is borrowed, see `begin`.
unsafe impl Sync for Lent {}

impl Lent {
    /// `length` bytes from `first` on.
    ///
    /// # Safety
    /// Until [`Lent::end`] they must be valid for reads, and for writes where a view allows them, by any thread, and no
    /// Rust reference to them may exist while they are accessed. If they are exclusive, they must be valid for writes, and no one
    /// else may access them in any way.
    pub(super) unsafe fn new(first: NonNull<u8>, length: usize, is_exclusive: bool) -> Self {
        let accesses = Mutex::default();
        Self { first, length, is_exclusive, accesses, is_over: Condvar::new(), _own: None }
    }

    /// The first bytes of memory that is there for nothing else.
    pub(super) fn own(mut zeros: Zeros, length: usize) -> Self {
        assert!(length <= zeros.len(), "more than there is");
        let first = NonNull::new(zeros.as_mut_ptr()).unwrap_or(NonNull::dangling());
        // SAFETY: the pages stay where they are until `zeros` is dropped, which no one else has or will have.
        let lent = unsafe { Self::new(first, length, true) };
        Self { _own: Some(zeros), ..lent }
    }

    fn accesses(&self) -> MutexGuard<'_, Accesses> {
        self.accesses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the loan, once accesses that are running are done. Those that come afterwards are refused at once.
    pub(super) fn end(&self) {
        let mut accesses = self.accesses();
        accesses.has_ended = true;
        while !accesses.running.is_empty() {
            accesses = self.is_over.wait(accesses).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Copies out.
    pub(super) fn read(&self, offset: usize, destination: &mut [u8]) -> Result<(), MemoryError> {
        if destination.len() <= FEW_BYTES {
            let accesses = self.accesses();
            self.check(&accesses, offset, destination.len(), false)?;
            // SAFETY: as below; with the lock held no loan ends and nothing is borrowed.
            unsafe { copy::out_of(self.at(offset), destination) };
            return Ok(());
        }
        let access = self.begin(offset, destination.len(), false)?;
        // SAFETY: `begin` checked the range, whose owner vouches for it until the access is over, and that no one
        // has a reference to it: `destination` is elsewhere.
        unsafe { copy::out_of(access.first(), destination) };
        Ok(())
    }

    /// Copies in. The loan must allow it, which the view has checked.
    pub(super) fn write(&self, offset: usize, source: &[u8]) -> Result<(), MemoryError> {
        if source.len() <= FEW_BYTES {
            let accesses = self.accesses();
            self.check(&accesses, offset, source.len(), false)?;
            // SAFETY: as below; with the lock held no loan ends and nothing is borrowed.
            unsafe { copy::into(source, self.at(offset)) };
            return Ok(());
        }
        let access = self.begin(offset, source.len(), false)?;
        // SAFETY: as in `read`; the view has checked that writing is allowed.
        unsafe { copy::into(source, access.first()) };
        Ok(())
    }

    /// The bytes themselves; `None` if they are not exclusive, or some of them are being accessed.
    pub(super) fn borrow(self: &Arc<Self>, offset: usize, length: usize) -> Option<BorrowedBytes> {
        if !self.is_exclusive {
            return None;
        }
        let access = self.begin(offset, length, true).ok()?;
        let number = access.number;
        std::mem::forget(access);
        Some(BorrowedBytes { lent: Arc::clone(self), number, offset, length })
    }

    /// Begins to access `length` bytes at `offset`.
    fn begin(
        &self,
        offset: usize,
        length: usize,
        is_borrow: bool,
    ) -> Result<Running<'_>, MemoryError> {
        let mut accesses = self.accesses();
        let range = self.check(&accesses, offset, length, is_borrow)?;
        accesses.last += 1;
        let number = accesses.last;
        accesses.running.push(Access { number, range, is_borrow });
        Ok(Running { lent: self, number, offset })
    }

    /// Whether `length` bytes at `offset` can be accessed now, as long as the lock is held.
    fn check(
        &self,
        accesses: &Accesses,
        offset: usize,
        length: usize,
        is_borrow: bool,
    ) -> Result<Range<usize>, MemoryError> {
        if accesses.has_ended {
            return Err(MemoryError::Forbidden("accessed: whoever lent it has taken it back"));
        }
        let end = offset.checked_add(length).filter(|end| *end <= self.length);
        let Some(end) = end else {
            let (offset, length) = (offset as u64, length as u64);
            return Err(MemoryError::Range { offset, length, size: self.length as u64 });
        };
        let collides = |other: &Access| {
            let overlaps = other.range.start < end && offset < other.range.end;
            overlaps && (is_borrow || other.is_borrow)
        };
        if accesses.running.iter().any(collides) {
            return Err(MemoryError::Forbidden("accessed while somebody has borrowed it"));
        }
        Ok(offset..end)
    }

    fn finish(&self, number: u64) {
        let mut accesses = self.accesses();
        if let Some(at) = accesses.running.iter().position(|access| access.number == number) {
            accesses.running.swap_remove(at);
        }
        if accesses.has_ended {
            self.is_over.notify_all();
        }
    }

    /// Where the byte at `offset` is, which is within them.
    fn at(&self, offset: usize) -> *mut u8 {
        // SAFETY: the callers have been given an access to it by `begin`, or hold the lock, and `check` has found it to be
        // within.
        unsafe { self.first.as_ptr().add(offset) }
    }
}

/// A copy that is being made.
struct Running<'lent> {
    lent: &'lent Lent,
    number: u64,
    offset: usize,
}

impl Running<'_> {
    fn first(&self) -> *mut u8 {
        self.lent.at(self.offset)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.lent.finish(self.number);
    }
}

/// Bytes of memory that this process alone has, see [`MemoryView::borrow_mut`](super::MemoryView::borrow_mut). As long as this
/// exists, every other access to them is refused, and the loan does not end.
#[derive(Debug)]
pub struct BorrowedBytes {
    lent: Arc<Lent>,
    number: u64,
    offset: usize,
    length: usize,
}

impl Deref for BorrowedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `begin` has checked the range. The bytes are exclusive, and until this is dropped no other access to
        // them begins and the loan does not end; they are initialized, as whoever lent them vouched that they can be read.
        unsafe { std::slice::from_raw_parts(self.lent.at(self.offset), self.length) }
    }
}

impl DerefMut for BorrowedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and this is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.lent.at(self.offset), self.length) }
    }
}

impl Drop for BorrowedBytes {
    fn drop(&mut self) {
        self.lent.finish(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a box, lent as exclusive, until this is dropped.
    struct Owned(Arc<Lent>, *mut [u8]);

    impl Owned {
        fn new(bytes: &[u8]) -> Self {
            let own = Box::into_raw(Box::<[u8]>::from(bytes));
            let first = NonNull::new(own.cast()).unwrap();
            // SAFETY: the box exists until the loan has ended, and only that accesses it.
            Self(Arc::new(unsafe { Lent::new(first, bytes.len(), true) }), own)
        }
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.end();
            // SAFETY: it came from `Box::into_raw`, and no one accesses it any more.
            drop(unsafe { Box::from_raw(self.1) });
        }
    }

    #[test]
    fn parts_are_borrowed_while_others_are_copied() {
        let owned = Owned::new(&[0; 64]);
        let lent = &owned.0;
        std::thread::scope(|scope| {
            for part in 0..4 {
                scope.spawn(move || {
                    let mut borrowed = lent.borrow(16 * part, 8).unwrap();
                    borrowed.fill(u8::try_from(part).unwrap() + 1);
                    lent.write(16 * part + 8, &[9; 8]).unwrap();
                    assert!(lent.read(16 * part, &mut [0]).is_err(), "it is borrowed");
                });
            }
        });
        let mut all = [0; 64];
        lent.read(0, &mut all).unwrap();
        for (part, bytes) in all.chunks(16).enumerate() {
            assert_eq!(bytes[..8], [u8::try_from(part).unwrap() + 1; 8]);
            assert_eq!(bytes[8..], [9; 8]);
        }
    }

    /// Miri says so if a copy and a borrow were of the same bytes at a time.
    #[test]
    fn the_same_bytes_are_not_copied_and_borrowed_at_a_time() {
        let owned = Owned::new(&[1; 8]);
        let lent = &owned.0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20 {
                    // It may be refused, and never waits.
                    let _ = lent.write(2, &[2, 2]);
                    std::thread::yield_now();
                }
            });
            for _ in 0..20 {
                if let Some(mut borrowed) = lent.borrow(0, 8) {
                    borrowed.swap(0, 7);
                    assert!(borrowed.iter().all(|byte| [1, 2].contains(byte)));
                }
                std::thread::yield_now();
            }
        });
    }

    #[test]
    fn what_is_borrowed_is_there_until_it_is_given_back() {
        let owned = Owned::new(&[1, 2, 3]);
        let borrowed = owned.0.borrow(1, 2).unwrap();
        std::thread::scope(|scope| {
            let end = scope.spawn(|| owned.0.end());
            while owned.0.read(0, &mut [0]).is_ok() {
                std::thread::yield_now();
            }
            assert!(!end.is_finished());
            assert_eq!(*borrowed, [2, 3]);
            drop(borrowed);
        });
        assert!(owned.0.borrow(0, 1).is_none() && owned.0.write(0, &[1]).is_err());
    }
}
