//! [`Locals`]: objects of this process by the numbers that the kernel knows them by.

use crate::object::Object;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of the context manager's object.
pub(super) const CONTEXT_MANAGER: u64 = 0;

/// Objects of this process that others refer to, or may soon.
#[derive(Default)]
pub(super) struct Locals(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    entries: HashMap<u64, Entry>,
    /// By the address of the object: one object has one number.
    numbers: HashMap<usize, u64>,
}

struct Entry {
    object: Arc<dyn Object>,
    /// References of the kernel, and parcels on their way that hold the object: they bridge the time until the kernel
    /// has said that it refers to it.
    references: u64,
}

fn address(object: &Arc<dyn Object>) -> usize {
    Arc::as_ptr(object).addr()
}

impl Locals {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of an object, with a reference that [`Locals::release`] gives back.
    pub(super) fn acquire(&self, object: &Arc<dyn Object>) -> u64 {
        let mut state = self.lock();
        let known = state.numbers.get(&address(object)).copied();
        let id = known.unwrap_or_else(|| {
            // Never 0, and never used again.
            state.last += 1;
            let id = state.last;
            state.numbers.insert(address(object), id);
            state.entries.insert(id, Entry { object: Arc::clone(object), references: 0 });
            id
        });
        if let Some(entry) = state.entries.get_mut(&id) {
            entry.references += 1;
        }
        id
    }

    /// The object of the context manager, for ever.
    pub(super) fn set_context_manager(&self, object: Arc<dyn Object>) {
        self.lock().entries.insert(CONTEXT_MANAGER, Entry { object, references: 1 });
    }

    /// The kernel has a reference more.
    pub(super) fn acquire_number(&self, id: u64) {
        if let Some(entry) = self.lock().entries.get_mut(&id) {
            entry.references += 1;
        }
    }

    /// A reference less; without any, the object is let go.
    pub(super) fn release(&self, id: u64) {
        let mut state = self.lock();
        let Some(entry) = state.entries.get_mut(&id) else { return };
        entry.references = entry.references.saturating_sub(1);
        if entry.references > 0 {
            return;
        }
        let gone = state.entries.remove(&id);
        if let Some(gone) = &gone {
            state.numbers.remove(&address(&gone.object));
        }
        drop(state);
        // Outside of the lock: it may hold anything.
        drop(gone);
    }

    pub(super) fn get(&self, id: u64) -> Option<Arc<dyn Object>> {
        self.lock().entries.get(&id).map(|entry| Arc::clone(&entry.object))
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{CallError, Caller, Interface, Reader, Writer};

    struct Nothing;

    impl Object for Nothing {
        fn chain(&self) -> &'static [Interface] {
            &[]
        }

        fn call(&self, _: u32, _: &mut Reader<'_>, _: Caller) -> Result<Writer, CallError> {
            Err(CallError::UNKNOWN)
        }
    }

    #[test]
    fn an_object_has_one_number_as_long_as_someone_refers_to_it() {
        let locals = Locals::default();
        let object: Arc<dyn Object> = Arc::new(Nothing);
        let id = locals.acquire(&object);
        assert_eq!(locals.acquire(&object), id);
        locals.acquire_number(id);
        locals.release(id);
        locals.release(id);
        assert!(locals.get(id).is_some());
        locals.release(id);
        assert!(locals.get(id).is_none());
        assert_eq!((locals.len(), Arc::strong_count(&object)), (0, 1));
        assert_ne!(locals.acquire(&object), id);
    }
}
