//! `IBurst`: executions whose memory is known by tokens.

use super::model::{Mode, Prepared};
use super::version_methods;
use crate::convert::{memory_from_wire, request_from_wire};
use crate::interface::nn;
use crate::status::Answer;
use crate::version::Version;
use nn::ExecutionConfig::ExecutionConfig;
use nn::ExecutionResult::ExecutionResult;
use nn::IBurst::IBurst;
use nn::Request::Request as WireRequest;
use nnhal_hal::client::Held;
use nnhal_hal::{Error, Memory, Request};
use rsbinder::{BinderResult, Interface};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The token of memory that is not to be kept.
const NOT_KEPT: i64 = -1;

/// A burst. It may execute several requests at once.
pub(super) struct Burst {
    prepared: Arc<Prepared>,
    /// Memory that is kept from call to call, by its token.
    kept: Mutex<HashMap<i64, Memory>>,
    _held: Held,
}

impl Burst {
    pub(super) fn new(prepared: Arc<Prepared>, held: Held) -> Self {
        Self { prepared, kept: Mutex::default(), _held: held }
    }

    /// Nothing is left half done under the lock.
    fn kept(&self) -> MutexGuard<'_, HashMap<i64, Memory>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request, with memory that is known by its token.
    fn request(&self, request: &WireRequest, tokens: &[i64]) -> nnhal_hal::Result<Request> {
        if tokens.len() != request.pools.len() {
            let (found, expected) = (tokens.len(), request.pools.len());
            return Err(Error::invalid(format!("{found} tokens of memory for {expected} pools")));
        }
        if let Some(token) = tokens.iter().find(|token| **token < NOT_KEPT) {
            return Err(Error::invalid(format!("the token of memory {token} is negative")));
        }
        Ok(request_from_wire(request, |pool, memory| {
            let token = tokens[pool];
            if token == NOT_KEPT {
                return memory_from_wire(memory);
            }
            if let Some(kept) = self.kept().get(&token) {
                return Ok(kept.clone());
            }
            let memory = memory_from_wire(memory)?;
            // Who may keep no more is served without keeping.
            if memory.kept_by(self.prepared.guest().client()).is_ok() {
                self.kept().insert(token, memory.clone());
            }
            Ok(memory)
        })?)
    }

    fn run(
        &self,
        request: &WireRequest,
        tokens: &[i64],
        mode: nnhal_hal::Result<Mode>,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        let arguments = mode.and_then(|mode| Ok((self.request(request, tokens)?, mode)));
        let (request, mode) = arguments.map_err(|error| Answer::Launch.refuse(&error))?;
        self.prepared.run(&request, &mode, deadline)
    }
}

impl Interface for Burst {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IBurst for Burst {
    version_methods!(prepared.origin());

    fn executeSynchronously(
        &self,
        request: &WireRequest,
        tokens: &[i64],
        measure: bool,
        deadline: i64,
        loop_timeout: i64,
    ) -> BinderResult<ExecutionResult> {
        self.run(request, tokens, Mode::of(measure, loop_timeout), deadline)
    }

    fn releaseMemoryResource(&self, token: i64) -> BinderResult<()> {
        if token < 0 {
            let error = Error::invalid(format!("the token of memory {token} is negative"));
            return Err(Answer::Plain.refuse(&error));
        }
        let kept = self.kept().remove(&token);
        drop(kept);
        Ok(())
    }

    fn executeSynchronouslyWithConfig(
        &self,
        request: &WireRequest,
        tokens: &[i64],
        config: &ExecutionConfig,
        deadline: i64,
    ) -> BinderResult<ExecutionResult> {
        self.prepared.origin().expect(Version::V4)?;
        self.run(request, tokens, Mode::configured(config), deadline)
    }
}
