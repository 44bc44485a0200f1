//! The caller's memory: every place where the library follows a pointer that C passed.
//!
//! C promises what the header says of each argument: what is not null is there, for as many
//! elements as the count beside it says, for as long as the header says, and no one else touches it
//! meanwhile. No more is relied upon: not alignment, not that a `bool` is 0 or 1.

#![allow(unsafe_code, reason = "pointers from C are followed here, and only here")]

use crate::outcome::{Outcome, bad_data, null, out_of_memory};
use nnhal_runtime::{ReadBytes, WriteBytes};
use std::ffi::{CStr, c_char, c_void};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Marks what any bytes are a value of, so that it can be read from C.
///
/// # Safety
/// Every pattern of bits is a value of the type, which has no padding that is looked at.
pub unsafe trait Plain: Copy + 'static {}

// SAFETY: integers and floats of any bits are values.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for f32 {}
// SAFETY: a pointer may hold any address; following it is what this module guards.
unsafe impl<T: 'static> Plain for *const T {}

/// A place that the library reads.
#[derive(Debug)]
#[repr(transparent)]
pub struct In<T>(*const T);

/// A place that the library writes.
#[derive(Debug)]
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> In<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// A pointer within a structure that C passed.
impl<T> From<*const T> for In<T> {
    fn from(pointer: *const T) -> Self {
        Self(pointer)
    }
}

impl<T: Plain> In<T> {
    /// The one value there.
    pub(crate) fn read(self, argument: &str) -> Outcome<T> {
        if self.0.is_null() {
            return Err(null(argument));
        }
        // SAFETY: not null, so C promises a value there; any bits are one.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The value there, if the place is not null.
    pub(crate) fn read_if_any(self) -> Option<T> {
        if self.0.is_null() { None } else { self.read("").ok() }
    }

    /// A copy of the `count` values there; null is refused unless there are none.
    pub(crate) fn copy(self, count: usize, argument: &str) -> Outcome<Vec<T>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.0.is_null() {
            return Err(null(argument));
        }
        let mut values: Vec<T> = Vec::new();
        values.try_reserve_exact(count).map_err(|_| {
            out_of_memory(format!("no memory for the {count} values of {argument}"))
        })?;
        let bytes = count * size_of::<T>();
        // SAFETY: C promises `count` values; the reservation has room for them and did not
        // overflow; the two do not overlap, as the room is new. Any bits are values.
        unsafe {
            let room = values.as_mut_ptr().cast::<u8>();
            std::ptr::copy_nonoverlapping(self.0.cast::<u8>(), room, bytes);
            values.set_len(count);
        }
        Ok(values)
    }
}

impl In<c_char> {
    /// The bytes there up to the first zero.
    pub(crate) fn zero_terminated(self, argument: &str) -> Outcome<Vec<u8>> {
        if self.0.is_null() {
            return Err(null(argument));
        }
        // SAFETY: not null, so C promises a string that ends.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_bytes().to_vec())
    }

    /// The words there.
    pub(crate) fn text(self, argument: &str) -> Outcome<String> {
        let bytes = self.zero_terminated(argument)?;
        String::from_utf8(bytes).map_err(|_| bad_data(format!("{argument} is not UTF-8")))
    }
}

/// A descriptor of our own for what C's descriptor stands for.
pub(crate) fn duplicate(descriptor: i32, argument: &str) -> Outcome<OwnedFd> {
    if descriptor < 0 {
        return Err(bad_data(format!("{argument} is {descriptor}, which is no descriptor")));
    }
    // SAFETY: not -1. It is only borrowed for the system call, which says whether it is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed
        .try_clone_to_owned()
        .map_err(|error| bad_data(format!("{argument} {descriptor}: {error}")))
}

impl In<c_void> {
    /// The same place, as bytes.
    pub(crate) fn bytes(self) -> In<u8> {
        In(self.0.cast())
    }
}

impl<T> Out<T> {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl<T: Copy> Out<T> {
    /// Refuses null.
    pub(crate) fn check(self, argument: &str) -> Outcome {
        if self.0.is_null() { Err(null(argument)) } else { Ok(()) }
    }

    /// Writes the value; nothing where the place is null.
    pub(crate) fn write(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so C promises room for a value.
            unsafe { self.0.write_unaligned(value) }
        }
    }

    /// Writes the values one after the other; nothing where the place is null.
    pub(crate) fn write_all(self, values: &[T]) {
        if !self.0.is_null() {
            // SAFETY: not null, so C promises room for as many as the header says, which is what
            // callers here write; the caller's room is not our slice.
            unsafe {
                let room = self.0.cast::<u8>();
                std::ptr::copy_nonoverlapping(values.as_ptr().cast(), room, size_of_val(values));
            }
        }
    }
}

/// Bytes of the caller that stay with it, to be read later: a large constant until its model is
/// finished, an input until its computation has ended.
#[derive(Debug)]
pub(crate) struct Lent {
    start: *const u8,
    size: usize,
}

// SAFETY: C promises that the bytes stay, unchanged, whichever thread reads them.
unsafe impl Send for Lent {}
// SAFETY: as above; they are only read.
unsafe impl Sync for Lent {}

impl Lent {
    /// `size` bytes that C lends.
    pub(crate) fn new(start: In<c_void>, size: usize, argument: &str) -> Outcome<Self> {
        if start.is_null() {
            return Err(null(argument));
        }
        Ok(Self { start: start.bytes().0, size })
    }
}

impl ReadBytes for Lent {
    fn size(&self) -> usize {
        self.size
    }

    fn lend(&self, read: &mut dyn FnMut(&[u8])) {
        // SAFETY: not null, and C promises `size` bytes there that no one changes until the model
        // is finished or the computation has ended; no one asks after that.
        read(unsafe { std::slice::from_raw_parts(self.start, self.size) });
    }
}

/// Room of the caller that stays with it, to be written later: an output until its computation has
/// ended.
#[derive(Debug)]
pub(crate) struct Room {
    start: *mut u8,
    size: usize,
}

// SAFETY: C promises that the room stays, and that no one else uses it, whichever thread writes.
unsafe impl Send for Room {}
// SAFETY: as above; the runtime lends a room to one writer at a time.
unsafe impl Sync for Room {}

impl Room {
    /// Room for `size` bytes that C lends.
    pub(crate) fn new(start: Out<c_void>, size: usize, argument: &str) -> Outcome<Self> {
        if start.0.is_null() {
            return Err(null(argument));
        }
        Ok(Self { start: start.0.cast(), size })
    }
}

impl WriteBytes for Room {
    fn size(&self) -> usize {
        self.size
    }

    fn lend(&self, write: &mut dyn FnMut(&mut [u8])) {
        // SAFETY: not null, and C promises room for `size` bytes that no one else uses until the
        // computation has ended. Its bytes may never have been written, which the runtime does not
        // look at before it writes them. It lends one room at a time.
        write(unsafe { std::slice::from_raw_parts_mut(self.start, self.size) });
    }
}

/// What C wants back in its callbacks. The library never follows it.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub struct Context(*const c_void);

// SAFETY: it is only handed back; what it leads to is between C and its callbacks, which C says may
// be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }
}
