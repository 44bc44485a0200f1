//! [`Loan`]: bytes of this process that belong to somebody else, lent as [`Memory`] for a while.
//!
//! A memory that is lent may be kept by a prepared model for as long as it likes; what ends with the loan is the access to
//! the bytes, for every clone and view of it.

#![allow(unsafe_code)]

use super::descriptor::Descriptors;
use super::error::MemoryError;
use super::lent::Lent;
use super::view::{Backing, MemoryView};
use super::{Inner, Memory, MemoryKind, Protection};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
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
        // SAFETY: the caller vouches for the bytes until the loan is dropped, which ends `lent`.
        let lent = Arc::new(unsafe { Lent::new(first, length, false) });
        Ok((Self(Arc::clone(&lent)), of_this_process(lent, length, protection)?))
    }

    /// As [`Loan::new`], of bytes that no one else accesses, to be read and written: who is given the memory may
    /// [borrow](MemoryView::borrow_mut) them instead of copying.
    ///
    /// # Errors
    /// As [`Loan::new`].
    ///
    /// # Safety
    /// Until the loan is dropped the bytes must be initialized and valid for reads and writes by any thread, and nothing may access
    /// them but through the memory that is returned.
    pub unsafe fn exclusive(
        first: NonNull<u8>,
        length: usize,
    ) -> Result<(Self, Memory), MemoryError> {
        // SAFETY: the caller vouches for the bytes until the loan is dropped, which ends `lent`.
        let lent = Arc::new(unsafe { Lent::new(first, length, true) });
        Ok((Self(Arc::clone(&lent)), of_this_process(lent, length, Protection::READ_WRITE)?))
    }
}

/// Memory that cannot be sent to another process.
pub(super) fn of_this_process(
    lent: Arc<Lent>,
    length: usize,
    protection: Protection,
) -> Result<Memory, MemoryError> {
    let kind = MemoryKind::Ashmem;
    if length == 0 {
        return Err(MemoryError::Empty { kind });
    }
    let size = length as u64;
    Ok(Memory(Arc::new(Inner {
        kind,
        fds: empty_file()?,
        integers: Vec::new(),
        offset: 0,
        size,
        protection,
        view: OnceLock::from(MemoryView::over(Backing::Lent(lent), size, protection)),
        held: OnceLock::new(),
        is_allocated: false,
    })))
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What stands for the descriptor of lent memory: a file that holds nothing and never will.
fn empty_file() -> Result<Arc<Descriptors>, MemoryError> {
    static EMPTY: OnceLock<Arc<Descriptors>> = OnceLock::new();
    if let Some(empty) = EMPTY.get() {
        return Ok(Arc::clone(empty));
    }
    let fd = memfd_create("nnhal-lent", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(MemoryError::system("memfd_create"))?;
    fcntl_add_seals(&fd, SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)
        .map_err(MemoryError::system("fcntl"))?;
    Ok(Arc::clone(EMPTY.get_or_init(|| Descriptors::new(vec![fd]))))
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
    fn only_what_no_one_else_accesses_is_borrowed() {
        let owned = Owned::new(&[1, 2, 3, 4]);
        let (_loan, memory) = owned.lend(Protection::READ_WRITE);
        assert!(memory.view().unwrap().borrow_mut(0, 4).is_none());
        let shared = Memory::allocate(4).unwrap();
        assert!(shared.view().unwrap().borrow_mut(0, 4).is_none());

        let other = Owned::new(&[1, 2, 3, 4]);
        let first = NonNull::new(other.0.cast()).unwrap();
        // SAFETY: nothing else accesses the box until it is dropped, behind the loan.
        let (loan, exclusive) = unsafe { Loan::exclusive(first, 4) }.unwrap();
        for memory in [exclusive, Memory::private(4).unwrap()] {
            let view = memory.view().unwrap();
            view.write(0, &[1, 2, 3, 4]).unwrap();
            let mut borrowed = view.borrow_mut(1, 2).unwrap();
            assert_eq!(*borrowed, [2, 3]);
            borrowed[0] = 7;
            assert!(view.borrow_mut(2, 1).is_none(), "it is borrowed");
            assert!(view.read_to_vec(0, 2).is_err() && view.write(2, &[0]).is_err());
            assert_eq!(view.read_to_vec(0, 1).unwrap(), [1], "beside what is borrowed");
            assert_eq!(*view.borrow_mut(3, 1).unwrap(), [4]);
            assert!(view.borrow_mut(0, 5).is_none() && view.borrow_mut(4, 1).is_none());
            assert!(view.borrow_mut(u64::MAX, 2).is_none());
            drop(borrowed);
            assert_eq!(view.read_to_vec(0, 4).unwrap(), [1, 7, 3, 4]);
        }
        drop(loan);
    }

    #[test]
    fn a_loan_ends_when_nothing_is_borrowed_any_more() {
        let owned = Owned::new(&[1, 2, 3, 4]);
        let first = NonNull::new(owned.0.cast()).unwrap();
        // SAFETY: nothing else accesses the box until it is dropped, behind the loan.
        let (loan, memory) = unsafe { Loan::exclusive(first, 4) }.unwrap();
        let view = memory.view().unwrap();
        let mut borrowed = view.borrow_mut(0, 2).unwrap();
        let (sender, ended) = std::sync::mpsc::channel();
        let end = std::thread::spawn(move || {
            drop(loan);
            sender.send(()).unwrap();
        });
        // Others are refused once it is to end, and do not wait for each other.
        while view.read_to_vec(2, 1).is_ok() {
            std::thread::yield_now();
        }
        assert!(view.borrow_mut(2, 2).is_none());
        borrowed.copy_from_slice(&[8, 9]);
        assert!(ended.try_recv().is_err(), "it is still borrowed");
        drop(borrowed);
        ended.recv().unwrap();
        end.join().unwrap();
        // SAFETY: nothing else accesses the bytes now.
        assert_eq!(unsafe { &*owned.0 }, [8, 9, 3, 4]);
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
