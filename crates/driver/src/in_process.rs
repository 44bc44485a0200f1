//! [`execute_in_process`]: a program without a device.

use crate::budget::Budget;
use crate::engine::{Program, RunContext};
use crate::error::EngineError;
use crate::guarded::guarded;
use crate::interface::{Interface, UsedFor};
use crate::prepared::conclude;
use nnhal_hal::{Error, Execution, ExecutionError, ExecutionOptions, Request, Timing};

/// Runs a program in the calling thread. A length of 0 that the request gives in an input's dimensions is that of an axis without
/// elements. Buffers of devices cannot be named.
///
/// # Errors
/// As [`nnhal_hal::PreparedModel::execute`].
pub fn execute_in_process(
    program: &dyn Program,
    interface: &Interface,
    request: &Request,
    options: &ExecutionOptions,
    budget: &Budget,
) -> Result<Execution, ExecutionError> {
    guarded(|| {
        let mut bindings = interface.bind(request, UsedFor::InProcess).map_err(Error::from)?;
        budget.check_before_start().map_err(EngineError::from)?;
        program.run(&bindings, &RunContext { budget, observer: None, hints: &options.hints })?;
        Ok(Execution { output_shapes: conclude(&mut bindings)?, timing: Timing::NONE })
    })
}
