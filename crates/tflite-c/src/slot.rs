//! Places for the `TfLiteTensor`s that C reads itself.
//!
//! They are in memory that is never given back, so that a pointer to a tensor that is gone leads to a
//! structure without elements, and the library can tell all addresses that were ever its own: a tensor of
//! its own that exists is found by its address, one that is gone is refused, and any other address is a
//! structure of the program's. Places are used again, the longest free first.

#![allow(unsafe_code, reason = "structures that C reads and writes itself")]

use crate::abi::{TfLiteAffineQuantization, TfLiteTensor};
use crate::tensor::Tensor;
use std::cell::UnsafeCell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, RwLock, Weak};

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
    live: HashMap<usize, Weak<Tensor>>,
}

static SLOTS: RwLock<Option<Slots>> = RwLock::new(None);

/// A place, as long as its tensor exists.
#[derive(Debug)]
pub(crate) struct Slot(&'static Shared);

/// What an address is.
pub(crate) enum Found {
    /// A tensor of the library.
    Own(Arc<Tensor>),
    /// Was one.
    Gone,
    /// Never was one.
    Foreign,
}

impl Slot {
    /// A place with nothing in it.
    pub(crate) fn new() -> Self {
        let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
        let slots = slots.get_or_insert_with(|| Slots {
            chunks: Vec::new(),
            free: VecDeque::new(),
            live: HashMap::new(),
        });
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

    /// Lets the tensor be found by its address.
    pub(crate) fn register(&self, tensor: &Arc<Tensor>) {
        let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = slots.as_mut() {
            slots.live.insert(self.pointer().addr(), Arc::downgrade(tensor));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.set(TfLiteTensor::EMPTY);
        let mut slots = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(slots) = slots.as_mut() {
            slots.live.remove(&self.pointer().addr());
            slots.free.push_back(self.0);
        }
    }
}

/// What the address is that C has passed.
pub(crate) fn find(pointer: *const TfLiteTensor) -> Found {
    let slots = SLOTS.read().unwrap_or_else(PoisonError::into_inner);
    let Some(slots) = slots.as_ref() else { return Found::Foreign };
    if let Some(tensor) = slots.live.get(&pointer.addr()).and_then(Weak::upgrade) {
        return Found::Own(tensor);
    }
    let is_in = |chunk: &&[Shared]| chunk.as_ptr_range().contains(&pointer.cast::<Shared>());
    if slots.chunks.iter().any(is_in) { Found::Gone } else { Found::Foreign }
}
