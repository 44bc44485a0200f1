//! [`Registry`]: what C holds by a number, so that one which is gone, or never was, is found out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Things by number.
#[derive(Debug)]
pub struct Registry<T>(Mutex<BTreeMap<usize, Arc<T>>>);

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Registry<T> {
    /// Without any.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts it in.
    pub fn insert(&self, number: usize, value: Arc<T>) {
        self.lock().insert(number, value);
    }

    /// The one with this number.
    pub fn get(&self, number: usize) -> Option<Arc<T>> {
        self.lock().get(&number).cloned()
    }

    /// Takes it out; whoever uses it at the moment keeps it until then.
    pub fn remove(&self, number: usize) -> Option<Arc<T>> {
        self.lock().remove(&number)
    }
}
