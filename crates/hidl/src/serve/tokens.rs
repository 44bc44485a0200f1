//! [`Tokens`]: which buffers a served device has given.

use nnhal_hal::{Error, Request, RequestMemoryPool, Result};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The tokens of a served device's buffers. A token is of use only with the `IDevice` that gave it,
/// while the device behind it may be served more than once, even to one client.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<BTreeSet<u32>>);

/// A token that is of use until this is dropped.
#[derive(Debug)]
pub struct Given {
    token: u32,
    tokens: Arc<Tokens>,
}

impl Tokens {
    /// A buffer with this token is given, until what is returned is dropped.
    pub fn give(self: &Arc<Self>, token: u32) -> Given {
        self.lock().insert(token);
        Given { token, tokens: Arc::clone(self) }
    }

    /// Refuses tokens that others gave, also in a pool that no argument uses (contract: SEC-4).
    pub fn expect_own(&self, request: &Request) -> Result<()> {
        for (index, pool) in request.pools.iter().enumerate() {
            if let RequestMemoryPool::Token(token) = pool
                && !self.lock().contains(token)
            {
                return Err(Error::invalid(format!(
                    "pool {index} is token {token}, which this device has given to no buffer"
                )));
            }
        }
        Ok(())
    }

    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        self.tokens.lock().remove(&self.token);
    }
}
