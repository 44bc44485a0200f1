//! A service's burst as a [`nnhal_hal::Burst`].

use super::checks::Checks;
use crate::convert::clock::NONE;
use crate::interface::nn::IBurst::IBurst;
use crate::interface::nn::IPreparedModel::IPreparedModel;
use nnhal_hal::{Execution, ExecutionError, Memory, Request, RequestMemoryPool};
use rsbinder::Strong;
use std::sync::{Mutex, PoisonError};

/// The most memories that a burst gives tokens to.
const MOST_TOKENS: usize = 1024;
/// The token of memory that is not to be kept.
const NOT_KEPT: i64 = -1;

/// A burst with a service, which keeps memory by tokens.
pub(super) struct Burst {
    checks: Checks,
    /// The service need not keep a model for a burst.
    _model: Strong<dyn IPreparedModel>,
    burst: Strong<dyn IBurst>,
    tokens: Mutex<Tokens>,
}

#[derive(Default)]
struct Tokens {
    given: Vec<(Memory, i64)>,
    next: i64,
}

impl Tokens {
    fn of(&mut self, memory: &Memory) -> i64 {
        if let Some((_, token)) = self.given.iter().find(|(known, _)| known.is_same(memory)) {
            return *token;
        }
        if self.given.len() >= MOST_TOKENS {
            return NOT_KEPT;
        }
        let token = self.next;
        self.next = self.next.saturating_add(1);
        self.given.push((memory.clone(), token));
        token
    }
}

impl Burst {
    pub(super) fn new(
        checks: Checks,
        model: Strong<dyn IPreparedModel>,
        burst: Strong<dyn IBurst>,
    ) -> Self {
        Self { checks, _model: model, burst, tokens: Mutex::default() }
    }

    fn tokens_of(&self, request: &Request) -> Vec<i64> {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let token = |pool: &RequestMemoryPool| match pool {
            RequestMemoryPool::Memory(memory) => tokens.of(memory),
            RequestMemoryPool::Token(_) => NOT_KEPT,
        };
        request.pools.iter().map(token).collect()
    }
}

impl nnhal_hal::Burst for Burst {
    fn execute(&self, request: &Request, measure: bool) -> Result<Execution, ExecutionError> {
        let method = "IBurst.executeSynchronously";
        self.checks.expect_known_outputs(request)?;
        let wire = self.checks.to_wire(request, 0)?;
        let tokens = self.tokens_of(request);
        let result = self.checks.link().call(method, || {
            self.burst.executeSynchronously(&wire, &tokens, measure, NONE, NONE)
        })?;
        self.checks.judge(method, request, measure, result)
    }

    fn free_memory(&self, memory: &Memory) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let found = tokens.given.iter().position(|(known, _)| known.is_same(memory));
        let Some(found) = found else { return };
        let (_, token) = tokens.given.swap_remove(found);
        drop(tokens);
        let method = "releaseMemoryResource";
        let released = self.checks.link().call(method, || self.burst.releaseMemoryResource(token));
        if let Err(error) = released {
            tracing::debug!(%error, token, "memory could not be released");
        }
    }
}
