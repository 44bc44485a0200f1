//! What must hold of each operation: arguments by its definition, and the shapes that follow
//! (contract: MODEL-17, MODEL-25, MODEL-26, MODEL-28, MODEL-29, EXT-3).

use super::control_flow::{self, ControlFlowError, Subgraphs};
use super::extension::Prefixes;
use super::operand::MAX_RANK;
use super::valid_model::Knowledge;
use crate::call::Call;
use crate::error::{Fault, OperationError};
use crate::operations::{self, AnyOperation};
use crate::shape::Shape;
use crate::signature::Signature;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{ErrorStatus, HalVersion, OperandType, OperationType};

/// What is wrong with an operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OperationMistake {
    /// It takes such arguments only in a later version (contract: MODEL-25).
    #[error("{reason} came with {since}, but the model is checked for {version}")]
    Newer {
        /// The oldest version that allows it.
        since: HalVersion,
        /// What needs that version.
        reason: &'static str,
        /// The version that the model is checked for.
        version: HalVersion,
    },
    /// Number, types or presence of the arguments (contract: MODEL-25, MODEL-26).
    #[error(transparent)]
    Signature(Fault),
    /// Values, ranks, quantisation or shapes of the arguments (contract: MODEL-29).
    #[error(transparent)]
    Definition(Fault),
    /// An output is declared otherwise than the operation makes it (contract: MODEL-29).
    #[error("output {output} has shape {found}, expected {expected}")]
    OutputShape {
        /// Which output.
        output: usize,
        /// As declared.
        found: Shape,
        /// As the arguments make it.
        expected: Shape,
    },
    /// An output of more than 2^32 - 1 bytes, or of too many axes (contract: MODEL-17, SEC-3).
    #[error("output {output} has shape {found}, expected at most 2^32 - 1 bytes and 32 axes")]
    OutputTooLarge {
        /// Which output.
        output: usize,
        /// Its shape.
        found: Shape,
    },
    /// An extension's operation whose prefix stands for nothing (contract: EXT-3).
    #[error("prefix {prefix:#06x} stands for no extension")]
    UnmappedPrefix {
        /// The prefix.
        prefix: u16,
    },
    /// Operands and subgraphs of an IF or WHILE do not go together.
    #[error(transparent)]
    ControlFlow(ControlFlowError),
}

impl OperationMistake {
    pub(super) fn rule(&self, operation_type: OperationType) -> &'static str {
        match self {
            Self::Signature(Fault::Invalid(OperationError { what: "value", .. })) => "MODEL-26",
            Self::Newer { .. } | Self::Signature(_) => match operation_type {
                OperationType::If => "CF-1",
                OperationType::While => "CF-2",
                _ => "MODEL-25",
            },
            Self::Definition(_) | Self::OutputShape { .. } => "MODEL-29",
            Self::OutputTooLarge { .. } => "MODEL-17",
            Self::UnmappedPrefix { .. } => "EXT-3",
            Self::ControlFlow(error) => match error {
                ControlFlowError::Condition { .. } | ControlFlowError::Count { .. } => {
                    if operation_type == OperationType::If {
                        "CF-1"
                    } else {
                        "CF-2"
                    }
                }
                ControlFlowError::Incompatible { .. } => "CF-3",
                ControlFlowError::UnknownSize { .. } => "CF-4",
            },
        }
    }

    /// The status that goes with it.
    pub(super) fn status(&self) -> ErrorStatus {
        match self {
            Self::Signature(fault @ Fault::OutOfMemory { .. })
            | Self::Definition(fault @ Fault::OutOfMemory { .. }) => fault.execution_status(),
            _ => ErrorStatus::InvalidArgument,
        }
    }
}

/// Checks one operation after the other, and adds to the shapes what each says of its outputs.
/// Returns the oldest version that all of them keep to; none is newer than `version`.
pub(super) fn check_all(
    subgraphs: &Subgraphs<'_>,
    prefixes: &Prefixes,
    name: SubgraphName,
    knowledge: &mut Knowledge,
    version: HalVersion,
) -> Result<HalVersion, (usize, OperationMistake)> {
    let graph = subgraphs.graph(name);
    let mut oldest = HalVersion::V1_0;
    for (index, step) in graph.operations.iter().enumerate() {
        let at = |mistake| (index, mistake);
        if let OperationType::Extension(extension) = step.operation_type
            && let Some(prefix) = prefixes.unmapped(extension)
        {
            return Err(at(OperationMistake::UnmappedPrefix { prefix }));
        }
        // Without a definition there is nothing more to check: the vendor's operations, and those
        // that this build does not define (DEV-SUP-5).
        let Some(signature) = Signature::of(step.operation_type) else { continue };
        let call = knowledge.call(graph, index);
        oldest = oldest.max(check_since(signature, &call, version).map_err(at)?);
        control_flow::check(subgraphs, name, step)
            .map_err(|error| at(OperationMistake::ControlFlow(error)))?;
        let shapes =
            inferred_shapes(&call).map_err(|fault| at(OperationMistake::Definition(fault)))?;
        for (output, (operand, shape)) in step.outputs.iter().zip(shapes).enumerate() {
            let known = &mut knowledge.shapes[*operand as usize];
            let operand_type = graph.operands[*operand as usize].operand_type;
            *known = merged(output, operand_type, known, shape).map_err(at)?;
        }
    }
    Ok(oldest)
}

/// The oldest version whose definition the arguments keep, if it is not newer than `version`.
fn check_since(
    signature: &Signature,
    call: &Call<'_>,
    version: HalVersion,
) -> Result<HalVersion, OperationMistake> {
    let by_types = signature.since(call).map_err(OperationMistake::Signature)?;
    if by_types > version {
        let reason = "this list of argument types";
        return Err(OperationMistake::Newer { since: by_types, reason, version });
    }
    let needs = operations::since(call);
    if needs.version > version {
        let (since, reason) = (needs.version, needs.reason);
        return Err(OperationMistake::Newer { since, reason, version });
    }
    Ok(by_types.max(needs.version))
}

/// Everything else that the definition says of the arguments, as far as they are known; and the
/// shapes of the outputs, none if too little is known.
fn inferred_shapes(call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
    Fault::pass_over_unknown(operations::validate(call))?;
    let shapes = AnyOperation::decode(call).and_then(|operation| operation.output_shapes(call));
    Ok(Fault::pass_over_unknown(shapes)?.unwrap_or_default())
}

/// What is declared and what follows, together.
fn merged(
    output: usize,
    operand_type: OperandType,
    declared: &Shape,
    inferred: Shape,
) -> Result<Shape, OperationMistake> {
    let Some(shape) = declared.merge(&inferred) else {
        let found = declared.clone();
        return Err(OperationMistake::OutputShape { output, found, expected: inferred });
    };
    let has_axes = shape.rank().is_none_or(|rank| rank <= MAX_RANK);
    if has_axes && fits_32_bits(operand_type, &shape) {
        return Ok(shape);
    }
    Err(OperationMistake::OutputTooLarge { output, found: shape })
}

/// Whether a value takes 2^32 - 1 bytes at most, as far as its shape is known. A length that is
/// not known could be 0, which makes even the greatest others harmless.
fn fits_32_bits(operand_type: OperandType, shape: &Shape) -> bool {
    let Some(lengths) = shape.to_known() else { return true };
    let element = operand_type.element_size().unwrap_or(1);
    let bytes = lengths.iter().copied().try_fold(element, u32::checked_mul);
    bytes.is_some() || lengths.contains(&0)
}

#[cfg(test)]
mod tests;
