//! [`Lent`]: bytes of this process that belong to somebody else, until their loan ends.

#![allow(unsafe_code)]

use super::error::MemoryError;
use super::mapping::copy;
use std::ptr::NonNull;
use std::sync::{PoisonError, RwLock};

/// The bytes, as long as they are lent.
#[derive(Debug)]
pub(super) struct Lent {
    /// `None` once the loan has ended.
    bytes: RwLock<Option<Bytes>>,
}

#[derive(Debug, Clone, Copy)]
struct Bytes {
    first: NonNull<u8>,
    length: usize,
}

// SAFETY: whoever lent the bytes vouched that any thread may access them until the loan ends, and
// they are accessed through `copy` only.
unsafe impl Send for Bytes {}
// SAFETY: as above; copies may race with each other, see `mapping`.
unsafe impl Sync for Bytes {}

impl Lent {
    /// `length` bytes from `first` on.
    ///
    /// # Safety
    /// Until [`Lent::end`] they must be valid for reads, and for writes where a view allows them, by any thread, and no
    /// Rust reference to them may exist while they are accessed.
    pub(super) const unsafe fn new(first: NonNull<u8>, length: usize) -> Self {
        Self { bytes: RwLock::new(Some(Bytes { first, length })) }
    }

    /// Ends the loan, once accesses that are running are done.
    pub(super) fn end(&self) {
        *self.bytes.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Copies out.
    pub(super) fn read(&self, offset: usize, destination: &mut [u8]) -> Result<(), MemoryError> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let first = Self::at(*bytes, offset, destination.len())?;
        // SAFETY: `at` checked the range, whose owner vouches for it as long as `bytes` is locked,
        // and that no one has a reference to it: `destination` is elsewhere.
        unsafe { copy::out_of(first, destination) };
        Ok(())
    }

    /// Copies in. The loan must allow it, which the view has checked.
    pub(super) fn write(&self, offset: usize, source: &[u8]) -> Result<(), MemoryError> {
        let bytes = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let first = Self::at(*bytes, offset, source.len())?;
        // SAFETY: as in `read`; the view has checked that writing is allowed.
        unsafe { copy::into(source, first) };
        Ok(())
    }

    /// Where `length` bytes at `offset` begin.
    fn at(bytes: Option<Bytes>, offset: usize, length: usize) -> Result<*mut u8, MemoryError> {
        let Some(bytes) = bytes else {
            return Err(MemoryError::Forbidden("accessed: whoever lent it has taken it back"));
        };
        let end = offset.checked_add(length).filter(|end| *end <= bytes.length);
        if end.is_none() {
            let (offset, length) = (offset as u64, length as u64);
            return Err(MemoryError::Range { offset, length, size: bytes.length as u64 });
        }
        // SAFETY: `offset` is within the bytes that were lent, as just checked.
        Ok(unsafe { bytes.first.as_ptr().add(offset) })
    }
}
