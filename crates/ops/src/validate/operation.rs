//! What must hold of each operation: arguments by its definition, and the shapes that follow
//! (contract: MODEL-17, MODEL-25, MODEL-26, MODEL-28, MODEL-29, EXT-3).
//!
//! Some mistakes make a model invalid, others only mean that no engine can run the operation: see
//! [`Rules::refuse`].

use super::Rules;
use super::control_flow::{self, ControlFlowError, Subgraphs};
use super::defect::Defect;
use super::extension::Prefixes;
use super::operand::MAX_RANK;
use super::valid_model::Knowledge;
use crate::call::Call;
use crate::error::{Concern, Fault, OperationError};
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
    /// Ranks, quantization, values or lengths of the arguments (contract: MODEL-29).
    #[error(transparent)]
    Definition(Fault),
    /// An output is declared otherwise than the operation makes it (contract: MODEL-29).
    #[error("output {output} has shape {found}, expected {expected}")]
    OutputShape {
        /// Index among the operation's outputs.
        output: usize,
        /// As declared.
        found: Shape,
        /// As the arguments make it.
        expected: Shape,
    },
    /// An output of more than 2^32 - 1 bytes, or of too many axes (contract: MODEL-17, SEC-3).
    #[error("output {output} has shape {found}, expected at most 2^32 - 1 bytes and 32 axes")]
    OutputTooLarge {
        /// Index among the operation's outputs.
        output: usize,
        /// Its shape.
        found: Shape,
    },
    /// An extension's operation whose prefix stands for nothing (contract: EXT-3).
    #[error("prefix {prefix:#06x} stands for no extension")]
    UnmappedPrefix {
        /// The upper 16 bits of the operation's code.
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
            mistake if Rules::Interface.refuse(mistake) => ErrorStatus::InvalidArgument,
            // The model is valid, but cannot be run (PREP-5).
            _ => ErrorStatus::GeneralFailure,
        }
    }
}

/// The operations whose scales and zero points also Android's runtime looks at when they are added.
const QUANTIZATION_AT_ONCE: [OperationType; 4] =
    [OperationType::MirrorPad, OperationType::Mul, OperationType::Pack, OperationType::Reverse];

/// The operations of whose arguments it looks at lengths as well.
const LENGTHS_AT_ONCE: [OperationType; 4] = [
    OperationType::Cast,
    OperationType::FullyConnected,
    OperationType::MirrorPad,
    OperationType::Reverse,
];

/// Whether an application's model is refused as soon as an operation's arguments break its definition
/// like this, before it is known whether the rest is right: see
/// [`check_for_application`](super::check_for_application).
pub fn refused_at_once(error: &OperationError) -> bool {
    match error.concern() {
        Concern::Rank => true,
        Concern::Quantization => QUANTIZATION_AT_ONCE.contains(&error.operation),
        Concern::Lengths => LENGTHS_AT_ONCE.contains(&error.operation),
        Concern::Values => false,
    }
}

impl Rules {
    /// Whether a model with this mistake is refused. If not, the operation cannot be run, and the
    /// model is valid (contract: MODEL-29).
    ///
    /// An application's model is not refused for most scales and sizes either: Android's runtime
    /// finds out about them when it computes, and devices are never shown such an operation.
    fn refuse(self, mistake: &OperationMistake) -> bool {
        match mistake {
            OperationMistake::Definition(Fault::Invalid(error)) => match self {
                Self::Interface => {
                    matches!(error.concern(), Concern::Rank | Concern::Quantization)
                }
                Self::Application => refused_at_once(error),
            },
            OperationMistake::OutputShape { .. } => false,
            OperationMistake::OutputTooLarge { .. } => self == Self::Interface,
            _ => true,
        }
    }
}

/// Checks one operation after the other, and adds to the shapes what each says of its outputs; of
/// an operation with a defect nothing follows. Returns the oldest version that all of them keep to;
/// none is newer than `version`.
pub(super) fn check_all(
    subgraphs: &Subgraphs<'_>,
    prefixes: &Prefixes,
    name: SubgraphName,
    knowledge: &mut Knowledge,
    version: HalVersion,
    defects: &mut Vec<Defect>,
) -> Result<HalVersion, Defect> {
    let graph = subgraphs.graph(name);
    let mut oldest = HalVersion::V1_0;
    for (index, step) in graph.operations.iter().enumerate() {
        let at = |mistake| Defect::new(name, index, step.operation_type, mistake);
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
        let shapes = inferred_shapes(&call).map_err(OperationMistake::Definition);
        let merged = shapes.and_then(|shapes| {
            let outputs = step.outputs.iter().zip(shapes).enumerate();
            outputs
                .map(|(output, (operand, shape))| {
                    let operand_type = graph.operands[*operand as usize].operand_type;
                    let known = &knowledge.shapes[*operand as usize];
                    Ok((*operand, merged(output, operand_type, known, shape)?))
                })
                .collect::<Result<Vec<_>, OperationMistake>>()
        });
        match merged {
            Ok(shapes) => {
                for (operand, shape) in shapes {
                    knowledge.shapes[operand as usize] = shape;
                }
            }
            Err(mistake) if subgraphs.rules().refuse(&mistake) => return Err(at(mistake)),
            Err(mistake) => defects.push(at(mistake)),
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
    let element = crate::extension::element_size(operand_type).unwrap_or(1);
    let bytes = lengths.iter().copied().try_fold(element, u32::checked_mul);
    bytes.is_some() || lengths.contains(&0)
}

#[cfg(test)]
mod tests;
