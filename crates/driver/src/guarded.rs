//! [`guarded`]: where panics stop.

use crate::error::EngineError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Does some work and turns a panic into an error, whether the engine's or ours (contract: GEN-8).
/// Nothing that the driver keeps is changed inside, so nothing can be left half done.
pub(crate) fn guarded<T, E: From<EngineError>>(
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(EngineError::panicked(&*payload).into()))
}
