//! Places for the `TfLiteTensor`s that C reads itself.
//!
//! They are in memory that is never given back, so that a pointer to a tensor that is gone leads to a
//! structure without elements, and the library can tell all addresses that were ever its own: a tensor of
//! its own that exists is found by its address, one that is gone is refused, and any other address is a
//! structure of the program's. Places are used again, the longest free first.

#![allow(unsafe_code, reason = "structures that C reads and writes itself")]

use crate::abi::{TfLiteAffineQuantization, TfLiteTensor};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::{PoisonError, RwLock};

/// Places that are made at once.
const AT_ONCE: usize = 256;

/// A tensor as C sees it.
#[derive(Debug)]
struct Shared(UnsafeCell<TfLiteTensor>);

// SAFETY: accessed by copies through the pointer only. C promises that it uses an interpreter and its
// tensors from one thread at a time; what it does otherwise is a race between plain numbers, none of which
// is followed beside those that C could have written anyway.
unsafe impl Sync for Shared {}

// SAFETY: its pointers lead to arrays of the same tensor, which only C follows.
unsafe impl Send for TfLiteAffineQuantization {}
// SAFETY: as above.
unsafe impl Sync for TfLiteAffineQuantization {}

struct Slots {
    chunks: Vec<&'static [Shared]>,
    free: VecDeque<&'static Shared>,
}

static SLOTS: RwLock<Option<Slots>> = RwLock::new(None);

/// A place, as long as its tensor exists.
#[derive(Debug)]
pub(crate) struct Slot(&'static Shared);

impl Slot {
    /// A place with nothing in it.
    pub(crate) fn new() -> Self {
        let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
        let slots =
            slots.get_or_insert_with(|| Slots { chunks: Vec::new(), free: VecDeque::new() });
        if slots.free.is_empty() {
            let made = (0..AT_ONCE).map(|_| Shared(UnsafeCell::new(TfLiteTensor::EMPTY)));
            let chunk: &'static [Shared] = Box::leak(made.collect::<Vec<_>>().into_boxed_slice());
            slots.chunks.push(chunk);
            slots.free.extend(chunk);
        }
        // There is one: a chunk has just been added if there was none.
        Self(slots.free.pop_front().unwrap_or_else(|| unreachable!("a chunk is not empty")))
    }

    /// What C holds.
    pub(crate) fn pointer(&self) -> *mut TfLiteTensor {
        self.0.0.get()
    }

    /// What is in it, C's changes included.
    pub(crate) fn get(&self) -> TfLiteTensor {
        // SAFETY: the place exists for ever, and any bits that C may write are copied as numbers: both
        // `bool`s are written by us only, or are 0 or 1 as C's own `bool`s are.
        unsafe { self.pointer().read() }
    }

    /// Says what is in it.
    pub(crate) fn set(&self, tensor: TfLiteTensor) {
        // SAFETY: the place exists for ever; C does not read it meanwhile, see `Shared`.
        unsafe { self.pointer().write(tensor) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.set(TfLiteTensor::EMPTY);
        let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = slots.as_mut() {
            slots.free.push_back(self.0);
        }
    }
}

/// Whether a place is at this address, used or free.
pub(crate) fn is_place(pointer: *const TfLiteTensor) -> bool {
    let slots = SLOTS.read().unwrap_or_else(PoisonError::into_inner);
    let is_in = |chunk: &&[Shared]| chunk.as_ptr_range().contains(&pointer.cast::<Shared>());
    slots.as_ref().is_some_and(|slots| slots.chunks.iter().any(is_in))
}
