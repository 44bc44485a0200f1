//! Reusable executions of a prepared model, made for requests that come again.

use crate::interface::nn::IExecution::IExecution;
use nnhal_hal::{ExecutionOptions, Hints, Request, RequestMemoryPool};
use rsbinder::Strong;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most that are kept.
const KEPT: usize = 4;

/// A request, and how it is executed.
#[derive(Clone)]
pub(super) struct Key {
    request: Request,
    measure: bool,
    loop_timeout: Option<Duration>,
    hints: Hints,
}

impl Key {
    pub(super) fn of(request: &Request, options: &ExecutionOptions) -> Self {
        let ExecutionOptions { measure, loop_timeout, .. } = *options;
        Self { request: request.clone(), measure, loop_timeout, hints: options.hints.clone() }
    }

    /// Whether it is the same request with the same memory, executed in the same way.
    fn is(&self, request: &Request, options: &ExecutionOptions) -> bool {
        let same = |pools: (&RequestMemoryPool, &RequestMemoryPool)| match pools {
            (RequestMemoryPool::Memory(one), RequestMemoryPool::Memory(other)) => {
                one.is_same(other)
            }
            (RequestMemoryPool::Token(one), RequestMemoryPool::Token(other)) => one == other,
            _ => false,
        };
        self.measure == options.measure
            && self.loop_timeout == options.loop_timeout
            && self.hints == options.hints
            && self.request.pools.len() == request.pools.len()
            && self.request.pools.iter().zip(&request.pools).all(same)
            && self.request.inputs == request.inputs
            && self.request.outputs == request.outputs
    }
}

/// What is to be done with a request.
pub(super) enum Plan {
    /// There is an execution for it, which no one else uses meanwhile.
    Use(Key, Strong<dyn IExecution>),
    /// It comes again, so it is worth one.
    Make,
    /// It is new.
    Once,
}

/// The executions that are kept, the last used last, and the last request that has none.
#[derive(Default)]
pub(super) struct Reusables(Mutex<State>);

#[derive(Default)]
struct State {
    last: Option<Key>,
    kept: Vec<(Key, Strong<dyn IExecution>)>,
}

impl Reusables {
    pub(super) fn plan(&self, request: &Request, options: &ExecutionOptions) -> Plan {
        let mut state = self.lock();
        let found = state.kept.iter().position(|(key, _)| key.is(request, options));
        if let Some(found) = found {
            let (key, execution) = state.kept.remove(found);
            return Plan::Use(key, execution);
        }
        if state.last.as_ref().is_some_and(|last| last.is(request, options)) {
            return Plan::Make;
        }
        // What is replaced is dropped after the lock: memory may be unmapped with it.
        let last = state.last.replace(Key::of(request, options));
        drop(state);
        drop(last);
        Plan::Once
    }

    /// Keeps an execution that has ended for the next time.
    pub(super) fn keep(&self, key: Key, execution: Strong<dyn IExecution>) {
        let mut state = self.lock();
        state.kept.push((key, execution));
        let oldest = (state.kept.len() > KEPT).then(|| state.kept.remove(0));
        drop(state);
        // Tells the service, which is not to be done under the lock.
        drop(oldest);
    }

    /// Nothing is left half done under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
