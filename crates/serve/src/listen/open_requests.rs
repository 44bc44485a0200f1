//! [`OpenRequests`]: how many requests of a connection are not answered yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many requests of a connection are not answered yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRequests(Arc<AtomicUsize>);

impl OpenRequests {
    /// One more, until what is given is dropped.
    pub(crate) fn open(&self) -> OpenRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        OpenRequest(self.clone())
    }

    /// Whether all are answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) struct OpenRequest(OpenRequests);

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
