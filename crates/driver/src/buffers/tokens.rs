//! Which token stands for which buffer, over all devices of the process (contract: ALLOC-8). To all
//! but its owner it stands for nothing (SEC-4).

use super::ManagedBuffer;
use crate::owner::Owner;
use nnhal_hal::{Request, RequestMemoryPool};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

static TOKENS: Mutex<Tokens> = Mutex::new(Tokens { buffers: BTreeMap::new(), last: 0 });

struct Tokens {
    buffers: BTreeMap<u32, Arc<ManagedBuffer>>,
    last: u32,
}

fn tokens() -> MutexGuard<'static, Tokens> {
    TOKENS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a buffer under a token of its own; `None` if all 2^32 - 1 are taken.
pub(crate) fn register(make: impl FnOnce(u32) -> ManagedBuffer) -> Option<Arc<ManagedBuffer>> {
    let mut tokens = tokens();
    // A token is used again only when all others have been: whoever holds on to one of a
    // buffer that is reported as gone for a long time.
    let after = tokens.last.wrapping_add(1)..=u32::MAX;
    let token = after.chain(1..=u32::MAX).find(|token| !tokens.buffers.contains_key(token))?;
    let buffer = Arc::new(make(token));
    tokens.last = token;
    tokens.buffers.insert(token, Arc::clone(&buffer));
    Some(buffer)
}

/// The buffer that a token of this owner stands for.
pub(crate) fn find(token: u32, owner: &Owner) -> Option<Arc<ManagedBuffer>> {
    tokens().buffers.get(&token).filter(|buffer| buffer.owner == *owner).cloned()
}

/// The buffers that the tokens of a request stood for when it was launched. Its execution uses them, whoever lets go of them
/// meanwhile (contract: ALLOC-8, CONC-3).
#[derive(Debug, Default)]
pub(crate) struct KeptBuffers(Vec<Arc<ManagedBuffer>>);

impl KeptBuffers {
    /// Those of this owner that a request names.
    pub(crate) fn of(request: &Request, owner: &Owner) -> Self {
        let found = request.pools.iter().filter_map(|pool| match pool {
            RequestMemoryPool::Token(token) => find(*token, owner),
            RequestMemoryPool::Memory(_) => None,
        });
        Self(found.collect())
    }

    /// What a token stands for: one of these, or what it stands for now.
    pub(crate) fn find(&self, token: u32, owner: &Owner) -> Option<Arc<ManagedBuffer>> {
        let kept = self.0.iter().find(|buffer| buffer.token == token);
        kept.cloned().or_else(|| find(token, owner))
    }
}

/// The buffer's client has let go of it; executions that use it keep it.
pub(crate) fn forget(token: u32) {
    let forgotten = tokens().buffers.remove(&token);
    // Its memory goes back to the system outside of the lock.
    drop(forgotten);
}
