//! Whether the HAL has the operations that an operator became.

use super::Imported;
use crate::error::Reason;
use nnhal_hal::{Operand, OperandLifeTime, Subgraph};
use nnhal_ops::{ArgumentSource, Call, Shape, Signature, Value};

/// Checks types, ranks and quantization of all operations from `first` on. Values are left to the
/// validator; operations that this build does not define pass.
pub(super) fn operations(subgraph: &Subgraph, first: usize) -> Imported {
    for operation in subgraph.operations.get(first..).unwrap_or_default() {
        let Some(signature) = Signature::of(operation.operation_type) else { continue };
        let operands = |indexes: &[u32]| -> Vec<&Operand> {
            indexes.iter().filter_map(|index| subgraph.operands.get(*index as usize)).collect()
        };
        let (inputs, outputs) = (operands(&operation.inputs), operands(&operation.outputs));
        let source = |operand| argument(operand);
        let call = Call::new(
            operation.operation_type,
            inputs.into_iter().map(source),
            outputs.into_iter().map(source),
        );
        let answer = signature.since(&call).and_then(|_| nnhal_ops::operations::validate(&call));
        answer.map_err(|fault| Reason::new(format!("the HAL has no such form: {fault}")))?;
    }
    Ok(())
}

fn argument(operand: &Operand) -> ArgumentSource<'_> {
    let is_omitted = operand.lifetime == OperandLifeTime::NoValue;
    ArgumentSource {
        operand,
        shape: Shape::of_model(&operand.dimensions),
        value: if is_omitted { Value::Omitted } else { Value::NotKnown },
    }
}
