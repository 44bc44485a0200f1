//! Leaving out what a model says without need, so that an older interface can express it.
//!
//! Newer versions append optional arguments to operations. A client that always gives them asks
//! for a newer device than it needs; Android's runtime drops those that hold their default before
//! it asks devices, and so does whoever calls [`without_defaults`].

use crate::signature::Signature;
use nnhal_hal::{Model, OperandLifeTime, OperandType, OperationType, Subgraph};

/// The model without trailing arguments that are constant and hold their default, and without the
/// operands that nothing refers to any more. The meaning is the same.
///
/// The model may be invalid: what is out of range is left as it is.
#[must_use]
pub fn without_defaults(model: &Model) -> Model {
    let mut simpler = model.clone();
    let values = model.operand_values.clone();
    let referenced = &mut simpler.referenced;
    for subgraph in std::iter::once(&mut simpler.main).chain(referenced) {
        if drop_arguments(subgraph, &values) {
            drop_unused_constants(subgraph);
        }
    }
    simpler
}

/// Says whether any argument was dropped.
fn drop_arguments(subgraph: &mut Subgraph, values: &[u8]) -> bool {
    let mut dropped = false;
    let operands = &mut subgraph.operands;
    for operation in &mut subgraph.operations {
        // What the prefix of an extension stands for is not looked at here.
        if matches!(operation.operation_type, OperationType::Extension(_)) {
            continue;
        }
        let Some(signature) = Signature::of(operation.operation_type) else { continue };
        let types: Option<Vec<OperandType>> = operation
            .inputs
            .iter()
            .map(|index| operands.get(*index as usize).map(|operand| operand.operand_type))
            .collect();
        let Some(types) = types else { continue };
        let removable = signature.removable_inputs(&types, |position, default| {
            let operand = &operands[operation.inputs[position] as usize];
            let from = operand.location.offset as usize;
            let to = usize::try_from(operand.location.end()).unwrap_or(usize::MAX);
            operand.lifetime == OperandLifeTime::ConstantCopy
                && match (operand.operand_type, values.get(from..to)) {
                    (OperandType::Bool, Some([byte])) => i32::from(*byte != 0) == default,
                    (OperandType::Int32, Some(bytes)) => *bytes == default.to_le_bytes(),
                    _ => false,
                }
        });
        for index in operation.inputs.drain(operation.inputs.len() - removable..) {
            let operand = &mut operands[index as usize];
            operand.number_of_consumers = operand.number_of_consumers.saturating_sub(1);
            dropped = true;
        }
    }
    dropped
}

/// Takes out constants that nothing reads, and renumbers the rest.
fn drop_unused_constants(subgraph: &mut Subgraph) {
    let mut read = vec![false; subgraph.operands.len()];
    let mut mark = |index: &u32| {
        if let Some(is_read) = read.get_mut(*index as usize) {
            *is_read = true;
        }
    };
    subgraph.operations.iter().flat_map(|operation| &operation.inputs).for_each(&mut mark);
    subgraph.outputs.iter().for_each(&mut mark);
    let mut renumbered = vec![u32::MAX; subgraph.operands.len()];
    let mut kept = Vec::with_capacity(subgraph.operands.len());
    for (index, operand) in subgraph.operands.drain(..).enumerate() {
        if read[index] || !operand.lifetime.is_constant() {
            renumbered[index] = u32::try_from(kept.len()).unwrap_or(u32::MAX);
            kept.push(operand);
        }
    }
    subgraph.operands = kept;
    let renumber = |index: &mut u32| {
        if let Some(now) = renumbered.get(*index as usize) {
            *index = *now;
        }
    };
    for operation in &mut subgraph.operations {
        operation.inputs.iter_mut().chain(&mut operation.outputs).for_each(renumber);
    }
    subgraph.inputs.iter_mut().chain(&mut subgraph.outputs).for_each(renumber);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{HalVersion, OperandId, OperandSpec, OperationType, SubgraphBuilder};

    /// A convolution with these trailing arguments: layout, and maybe dilations.
    fn convolution(is_nchw: bool, dilations: &[i32]) -> Model {
        let mut graph = SubgraphBuilder::new();
        let input = graph.input("input", OperandSpec::tensor_float32([1, 1, 3, 1]));
        let filter = graph.constant(OperandSpec::tensor_float32([1, 1, 1, 1]), &[1.0_f32]);
        let bias = graph.constant(OperandSpec::tensor_float32([1]), &[0.0_f32]);
        let mut inputs: Vec<OperandId> = vec![input, filter, bias];
        inputs.extend([2, 1, 1, 0].map(|value| graph.scalar_i32(value)));
        inputs.push(graph.scalar_bool(is_nchw));
        inputs.extend(dilations.iter().map(|value| graph.scalar_i32(*value)));
        let output = graph.operation(
            OperationType::Conv2d,
            &inputs,
            OperandSpec::tensor_float32([1, 1, 3, 1]),
        );
        graph.output(output);
        graph.into_model().unwrap()
    }

    #[test]
    fn defaults_at_the_end_are_dropped_with_their_constants() {
        for dilations in [&[][..], &[1, 1]] {
            let model = convolution(false, dilations);
            assert_eq!(model.oldest_expressible(), HalVersion::V1_2);
            let simpler = without_defaults(&model);
            assert_eq!(simpler.oldest_expressible(), HalVersion::V1_0);
            assert_eq!(simpler.main.operations[0].inputs.len(), 7);
            assert_eq!(simpler.main.operands.len(), 8);
            assert!(crate::validate(&simpler, HalVersion::V1_0).is_ok());
        }
    }

    #[test]
    fn what_is_no_default_stays_with_all_before_it() {
        for (is_nchw, dilations, inputs) in
            [(true, &[][..], 8), (true, &[1, 1], 8), (false, &[1, 2], 10), (false, &[2, 1], 10)]
        {
            let simpler = without_defaults(&convolution(is_nchw, dilations));
            assert_eq!(simpler.main.operations[0].inputs.len(), inputs, "{is_nchw} {dilations:?}");
            assert!(crate::validate(&simpler, HalVersion::V1_2).is_ok());
        }
    }

    #[test]
    fn a_model_that_is_out_of_range_is_left_alone() {
        let mut model = convolution(false, &[]);
        model.main.operations[0].inputs[2] = 1000;
        assert_eq!(without_defaults(&model).main, model.main);
    }
}
