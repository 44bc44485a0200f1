//! Memory for the elements of tensors, and the caller's memory.

#![allow(unsafe_code, reason = "memory that C shares, and pointers from C, are accessed here")]

use crate::border::{Failure, Outcome};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;

/// Elements begin at multiples of this, as TensorFlow Lite's do.
pub(crate) const ALIGNMENT: usize = 64;

/// Memory that C may read and write too.
#[derive(Debug)]
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: plain memory that belongs to no thread; what C does with it meanwhile is as the header says.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// All 0.
    pub(crate) fn new(bytes: usize) -> Outcome<Self> {
        let none = || Failure::new(format!("there is no memory for a tensor of {bytes} bytes"));
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(none)?;
        Ok(Self { start, layout })
    }

    pub(crate) fn pointer(&self) -> *mut c_void {
        self.start.as_ptr().cast()
    }

    /// Bytes that fit.
    pub(crate) fn capacity(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no one follows it any more: tensors that lead here
        // are cleared before their memory goes.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// Elements that C and the library share, as a slice for the time of the call.
pub(crate) fn read<T>(start: *const c_void, bytes: usize, with: impl FnOnce(&[u8]) -> T) -> T {
    if bytes == 0 || start.is_null() {
        return with(&[]);
    }
    // SAFETY: a tensor's memory, or that which C has put into its place, which has that number of bytes; C
    // does not write it during calls with the interpreter or the tensor, as the header demands.
    with(unsafe { std::slice::from_raw_parts(start.cast(), bytes) })
}

/// The same, to be written.
pub(crate) fn write<T>(start: *mut c_void, bytes: usize, with: impl FnOnce(&mut [u8]) -> T) -> T {
    if bytes == 0 || start.is_null() {
        return with(&mut []);
    }
    // SAFETY: as in `read`; all bytes are initialized, as they begin as 0.
    with(unsafe { std::slice::from_raw_parts_mut(start.cast(), bytes) })
}

/// Copies between memory of C and a tensor's; they may overlap.
pub(crate) fn copy(from: *const c_void, to: *mut c_void, bytes: usize) {
    if bytes > 0 {
        // SAFETY: callers have looked that neither is null, one is a tensor's memory with that number of bytes,
        // and C promises the same of the other.
        unsafe { std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), bytes) }
    }
}

/// The value at a place of C; `None` where that is null.
pub(crate) fn get<T: Copy>(place: *const T) -> Option<T> {
    // SAFETY: not null, so C promises a value there.
    (!place.is_null()).then(|| unsafe { place.read_unaligned() })
}

/// Writes a value to a place of C; nothing where that is null.
pub(crate) fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: not null, so C promises room for a value.
        unsafe { place.write_unaligned(value) }
    }
}

/// Text of C, which is refused if it is null.
pub(crate) fn text(start: *const c_char, argument: &str) -> Outcome<CString> {
    if start.is_null() {
        return Err(Failure::new(format!("{argument} is NULL")));
    }
    // SAFETY: not null, so C promises text that ends with a zero.
    Ok(unsafe { CStr::from_ptr(start) }.to_owned())
}

/// Numbers of C.
pub(crate) fn numbers(start: *const i32, count: i32, argument: &str) -> Outcome<Vec<i32>> {
    let length = usize::try_from(count)
        .map_err(|_| Failure::new(format!("{argument} has {count} elements")))?;
    if length == 0 {
        return Ok(Vec::new());
    }
    if start.is_null() {
        return Err(Failure::new(format!("{argument} is NULL")));
    }
    let mut numbers = Vec::new();
    numbers
        .try_reserve_exact(length)
        .map_err(|_| Failure::new(format!("there is no memory for {length} elements")))?;
    // SAFETY: not null, so C promises that number of them there.
    numbers.extend((0..length).map(|at| unsafe { start.add(at).read_unaligned() }));
    Ok(numbers)
}

/// Bytes of C, copied.
pub(crate) fn bytes(start: *const c_void, length: usize, argument: &str) -> Outcome<Vec<u8>> {
    if start.is_null() {
        return Err(Failure::new(format!("{argument} is NULL")));
    }
    let mut bytes: Vec<u8> = Vec::new();
    bytes
        .try_reserve_exact(length)
        .map_err(|_| Failure::new(format!("there is no memory for {length} bytes")))?;
    // SAFETY: not null, so C promises `length` bytes there; the reservation has room for them.
    unsafe {
        std::ptr::copy_nonoverlapping(start.cast(), bytes.as_mut_ptr(), length);
        bytes.set_len(length);
    }
    Ok(bytes)
}
