//! What every way to execute asks of a request and of the driver's answer.

use super::answer::{answered, status};
use super::callbacks::ExecutionAnswer;
use super::fenced;
use crate::checks::Outputs;
use crate::convert::{ConversionError, Convert};
use nnhal_hal::{
    ErrorStatus, Execution, ExecutionError, HalVersion, Model, OutputShape, Request, Timing,
};

/// Refuses a request that a version of the interface cannot carry.
pub(super) fn expect_expressible(
    request: &Request,
    version: HalVersion,
    outputs: &Outputs,
) -> Result<(), ConversionError> {
    let nothing = Model::default();
    let obstacles = request.obstacles_in(version, outputs.model().unwrap_or(&nothing));
    if obstacles.is_empty() {
        return Ok(());
    }
    Err(ConversionError::Inexpressible { version, obstacles })
}

/// What the driver's answer to a request amounts to.
pub(super) fn judge(
    method: &'static str,
    answer: ExecutionAnswer,
    request: &Request,
    measured: bool,
    outputs: &Outputs,
) -> Result<Execution, ExecutionError> {
    let status = status(method, answer.status)?;
    if !matches!(status, ErrorStatus::None | ErrorStatus::OutputInsufficientSize) {
        // Shapes that come with it mean nothing (contract: GEN-3, CB-7).
        return Err(answered(method, status).into());
    }
    let output_shapes: Vec<OutputShape> = answer
        .output_shapes
        .iter()
        .map(Convert::to_canonical)
        .collect::<Result<_, _>>()
        .map_err(nnhal_hal::Error::from)?;
    let answer = if status == ErrorStatus::None {
        let timing = if measured { fenced::timing(answer.timing)? } else { Timing::NONE };
        Ok(Execution { output_shapes, timing })
    } else {
        Err(ExecutionError { error: answered(method, status), output_shapes })
    };
    outputs.check(method, request, answer)
}
