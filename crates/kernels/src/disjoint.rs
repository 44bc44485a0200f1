//! [`DisjointOutput`]: one output that several tasks write, each its own elements.
#![allow(unsafe_code)]

use std::marker::PhantomData;

/// A slice that several threads write at the same time, none of them what another one writes.
pub(crate) struct DisjointOutput<'a, T> {
    start: *mut T,
    length: usize,
    borrowed: PhantomData<&'a mut [T]>,
}

// SAFETY: what it hands out are exclusive references to elements of a type that may be sent; that
// they do not overlap is what callers of `slice` promise.
unsafe impl<T: Send> Sync for DisjointOutput<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for DisjointOutput<'_, T> {}

impl<'a, T> DisjointOutput<'a, T> {
    /// To be written by several tasks.
    pub(crate) fn new(output: &'a mut [T]) -> Self {
        Self { start: output.as_mut_ptr(), length: output.len(), borrowed: PhantomData }
    }

    /// `length` elements from `offset` on.
    ///
    /// # Panics
    /// If there are fewer.
    ///
    /// # Safety
    /// No one else holds a slice that overlaps this one, or writes there through [`Self::pointer`].
    #[allow(clippy::mut_from_ref)] // What the caller promises.
    pub(crate) unsafe fn slice(&self, offset: usize, length: usize) -> &mut [T] {
        assert!(offset <= self.length && length <= self.length - offset, "outside of the output");
        // SAFETY: inside of the slice that is borrowed for 'a, as was checked, and not aliased, as
        // the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(offset), length) }
    }

    /// The address of the element at `offset`, which may be one past the last, for vector stores.
    /// What is stored there obeys the same rules as [`Self::slice`].
    ///
    /// # Panics
    /// If it is outside.
    pub(crate) fn pointer(&self, offset: usize) -> *mut T {
        assert!(offset <= self.length, "outside of the output");
        self.start.wrapping_add(offset)
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.length
    }
}
