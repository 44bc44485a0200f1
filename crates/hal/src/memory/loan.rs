//! [`Loan`]: bytes of this process that belong to somebody else, lent as [`Memory`] for a while.
//!
//! A memory that is lent may be kept by a prepared model for as long as it likes; what ends with the loan is the access to
//! the bytes, for every clone and view of it.

#![allow(unsafe_code)]

use super::error::MemoryError;
use super::lent::Lent;
use super::view::{Backing, MemoryView};
use super::{Inner, Memory, MemoryKind, Protection};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};

/// Bytes that somebody lends, until this is dropped: afterwards every access to them is an error.
/// Dropping waits for accesses that are running.
#[derive(Debug)]
#[must_use = "the loan ends when this is dropped"]
pub struct Loan(Arc<Lent>);

impl Loan {
    /// Lends `length` bytes from `first` on, to be read, and written if `protection` says so.
    ///
    /// The memory cannot be sent to another process: its descriptor is that of an empty file, which
    /// whoever receives it refuses.
    ///
    /// # Errors
    /// [`MemoryError::Empty`]; [`MemoryError::System`].
    ///
    /// # Safety
    /// Until the loan is dropped the bytes must be valid for reads, and for writes if `protection` allows
    /// them, by any thread, and no Rust reference to them may exist while they are accessed.
    pub unsafe fn new(
        first: NonNull<u8>,
        length: usize,
        protection: Protection,
    ) -> Result<(Self, Memory), MemoryError> {
        let kind = MemoryKind::Ashmem;
        if length == 0 {
            return Err(MemoryError::Empty { kind });
        }
        // SAFETY: the caller vouches for the bytes until the loan is dropped, which ends `lent`.
        let lent = Arc::new(unsafe { Lent::new(first, length) });
        let size = length as u64;
        let view = MemoryView::over(Backing::Lent(Arc::clone(&lent)), size, protection);
        let memory = Memory(Arc::new(Inner {
            kind,
            fds: empty_file()?,
            integers: Vec::new(),
            offset: 0,
            size,
            protection,
            view: OnceLock::from(view),
            held: OnceLock::new(),
            is_allocated: false,
        }));
        Ok((Self(lent), memory))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What stands for the descriptor of lent memory: a file that holds nothing and never will.
fn empty_file() -> Result<Arc<[OwnedFd]>, MemoryError> {
    static EMPTY: OnceLock<Arc<[OwnedFd]>> = OnceLock::new();
    if let Some(empty) = EMPTY.get() {
        return Ok(Arc::clone(empty));
    }
    let fd = memfd_create("nnhal-lent", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(MemoryError::system("memfd_create"))?;
    fcntl_add_seals(&fd, SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)
        .map_err(MemoryError::system("fcntl"))?;
    Ok(Arc::clone(EMPTY.get_or_init(|| Arc::new([fd]))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// Bytes that only raw pointers refer to.
    struct Owned(*mut [u8]);

    impl Owned {
        fn new(bytes: &[u8]) -> Self {
            Self(Box::into_raw(bytes.into()))
        }

        fn lend(&self, protection: Protection) -> (Loan, Memory) {
            let first = NonNull::new(self.0.cast()).unwrap();
            // SAFETY: the box exists until `self` is dropped, behind every loan of these tests.
            unsafe { Loan::new(first, self.0.len(), protection) }.unwrap()
        }
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            // SAFETY: it came from `Box::into_raw`, and is given back once.
            drop(unsafe { Box::from_raw(self.0) });
        }
    }

    #[test]
    fn lent_bytes_are_read_and_written_where_they_are() {
        let owned = Owned::new(&[1, 2, 3, 4]);
        let (_loan, memory) = owned.lend(Protection::READ_WRITE);
        let view = memory.view().unwrap();
        assert_eq!(view.read_to_vec(1, 3).unwrap(), [2, 3, 4]);
        view.write(2, &[9]).unwrap();
        // SAFETY: nothing else accesses the byte now.
        assert_eq!(unsafe { *owned.0.cast::<u8>().add(2) }, 9);
        assert!(view.read_to_vec(2, 3).is_err(), "only 4 bytes");
    }

    #[test]
    fn after_the_loan_every_clone_is_empty_handed() {
        let owned = Owned::new(&[1, 2, 3, 4]);
        let (loan, memory) = owned.lend(Protection::READ_WRITE);
        let (clone, view) = (memory.clone(), memory.view().unwrap());
        drop(loan);
        assert!(view.read_to_vec(0, 1).is_err());
        assert!(view.write(0, &[1]).is_err());
        assert!(clone.view().unwrap().read_to_vec(0, 1).is_err());
    }

    #[test]
    fn what_is_lent_for_reading_is_not_written() {
        let owned = Owned::new(&[1]);
        let (_loan, memory) = owned.lend(Protection::READ);
        assert!(memory.view().unwrap().write(0, &[2]).is_err());
        assert!(!memory.is_writable());
    }

    #[test]
    fn another_process_gets_nothing_of_it() {
        let owned = Owned::new(&[1, 2, 3, 4]);
        let (_loan, memory) = owned.lend(Protection::READ);
        let sent = memory.as_fd().try_clone_to_owned().unwrap();
        assert!(Memory::from_ashmem(sent, memory.size()).is_err());
    }
}
