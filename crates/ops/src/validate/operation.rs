//! What must hold of each operation: arguments by its definition, and the shapes that follow
//! (contract: MODEL-17, MODEL-25, MODEL-26, MODEL-28, MODEL-29, EXT-3).

use super::Rules;
use super::control_flow::{self, Subgraphs};
use super::defect::Defect;
use super::extension::Prefixes;
use super::mistake::OperationMistake;
use super::valid_model::Knowledge;
use crate::call::Call;
use crate::error::Fault;
use crate::operations::{self, AnyOperation};
use crate::shape::MAX_RANK;
use crate::shape::Shape;
use crate::signature::Signature;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    ExtraParams, HalVersion, Operand, OperandType, Operation, OperationType, Subgraph,
};

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
        let (since, left_out) =
            check_since(subgraphs.rules(), signature, &call, version).map_err(at)?;
        oldest = oldest.max(since);
        control_flow::check(subgraphs, name, step)
            .map_err(|error| at(OperationMistake::ControlFlow(error)))?;
        if let Some(mistake) = left_out {
            defects.push(at(mistake));
            continue;
        }
        let shapes = inferred_shapes(&call).map_err(OperationMistake::Definition);
        let shapes = shapes.and_then(|shapes| expect_finite_scales(graph, step).map(|()| shapes));
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

/// The oldest version whose definition the arguments keep, if it is not newer than `version`; and that
/// an argument is left out which is needed, if the model is not refused for that.
fn check_since(
    rules: Rules,
    signature: &Signature,
    call: &Call<'_>,
    version: HalVersion,
) -> Result<(HalVersion, Option<OperationMistake>), OperationMistake> {
    let (by_types, left_out) = match signature.since(call).map_err(OperationMistake::Signature) {
        Ok(since) => (since, None),
        Err(mistake) if rules.refuse(&mistake) => return Err(mistake),
        Err(mistake) => {
            let since = signature.since_by_types(call).map_err(OperationMistake::Signature)?;
            (since, Some(mistake))
        }
    };
    if by_types > version {
        let reason = "this list of argument types";
        return Err(OperationMistake::Newer { since: by_types, reason, version });
    }
    let needs = operations::since(call);
    if needs.version > version {
        let (since, reason) = (needs.version, needs.reason);
        return Err(OperationMistake::Newer { since, reason, version });
    }
    Ok((by_types.max(needs.version), left_out))
}

/// Everything else that the definition says of the arguments, as far as they are known; and the
/// shapes of the outputs, none if too little is known.
fn inferred_shapes(call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
    Fault::pass_over_unknown(operations::validate(call))?;
    let shapes = AnyOperation::decode(call).and_then(|operation| operation.output_shapes(call));
    Ok(Fault::pass_over_unknown(shapes)?.unwrap_or_default())
}

/// Android's validators let infinite scales pass. Kernels rely on those that they get being finite.
fn expect_finite_scales(graph: &Subgraph, step: &Operation) -> Result<(), OperationMistake> {
    let is_infinite = |index: &u32| {
        let Operand { scale, extra_params, .. } = &graph.operands[*index as usize];
        let by_channel = match extra_params {
            ExtraParams::ChannelQuant(quant) => &quant.scales[..],
            _ => &[],
        };
        by_channel.iter().chain([scale]).any(|scale| scale.is_infinite())
    };
    for (list, indexes) in [("input", &step.inputs), ("output", &step.outputs)] {
        if let Some(argument) = indexes.iter().position(is_infinite) {
            return Err(OperationMistake::InfiniteScale { list, argument });
        }
    }
    Ok(())
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
