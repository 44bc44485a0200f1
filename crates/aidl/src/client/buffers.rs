//! [`Buffers`]: what a connection has allocated, for requests that name it.

use crate::interface::nn::IBuffer::IBuffer;
use nnhal_hal::{Request, RequestMemoryPool};
use rsbinder::Strong;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A buffer of the service and its token, which go when the client has let go of the buffer and no launched request names it.
pub(super) struct Shared {
    pub(super) interface: Strong<dyn IBuffer>,
    pub(super) token: u32,
}

/// The buffers of a connection, by their tokens.
#[derive(Default)]
pub(super) struct Buffers(Mutex<BTreeMap<u32, Weak<Shared>>>);

impl Buffers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Weak<Shared>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in one that was allocated.
    pub(super) fn insert(&self, buffer: Shared) -> Arc<Shared> {
        let (token, buffer) = (buffer.token, Arc::new(buffer));
        let mut all = self.lock();
        all.retain(|_, buffer| buffer.strong_count() > 0);
        all.insert(token, Arc::downgrade(&buffer));
        buffer
    }

    /// Those that a request names.
    pub(super) fn named(&self, request: &Request) -> Vec<Arc<Shared>> {
        let all = self.lock();
        let tokens = request.pools.iter().filter_map(|pool| match pool {
            RequestMemoryPool::Token(token) => all.get(token)?.upgrade(),
            RequestMemoryPool::Memory(_) => None,
        });
        tokens.collect()
    }
}
