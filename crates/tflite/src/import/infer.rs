//! Whether the HAL has the operations that an operator became, and what shapes their results have.

use super::Imported;
use crate::error::Reason;
use nnhal_hal::{Operand, OperandLifeTime, OperationType, SubgraphBuilder};
use nnhal_ops::operations::AnyOperation;
use nnhal_ops::{ArgumentSource, Call, Fault, Shape, Signature, Value};

/// Checks types, ranks and quantization of all operations from `first` on, and gives their results the
/// shapes that follow from those of their arguments. Values are left to the validator; operations
/// that this build does not define pass.
pub(super) fn operations(builder: &mut SubgraphBuilder, first: usize) -> Imported {
    for index in first..builder.operation_count() {
        for (operand, shape) in results(builder, index)? {
            let declared =
                Shape::of_model(&builder.subgraph_so_far().operands[operand as usize].dimensions);
            // What a file says of a result holds for its example only, and may be wrong.
            let shape = shape.merge(&declared).unwrap_or(shape);
            builder.resolve(operand, shape.to_model());
        }
    }
    Ok(())
}

/// By result of an operation: its operand, and its shape as far as it follows.
fn results(builder: &SubgraphBuilder, index: usize) -> Imported<Vec<(u32, Shape)>> {
    let subgraph = builder.subgraph_so_far();
    let operation = &subgraph.operations[index];
    let Some(signature) = Signature::of(operation.operation_type) else { return Ok(Vec::new()) };
    let operand = |index: &u32| subgraph.operands.get(*index as usize).map(|it| (*index, it));
    let call = |knows_values: bool| {
        let argument = |(index, operand)| {
            let value = builder.constant_value(index).filter(|_| knows_values);
            argument(operand, value)
        };
        Call::new(
            operation.operation_type,
            operation.inputs.iter().filter_map(operand).map(argument),
            operation.outputs.iter().filter_map(operand).map(argument),
        )
    };
    let no_such_form = |fault: Fault| Reason::new(format!("the HAL has no such form: {fault}"));
    let without_values = call(false);
    signature
        .since(&without_values)
        .and_then(|_| nnhal_ops::operations::validate(&without_values))
        .map_err(no_such_form)?;
    if matches!(operation.operation_type, OperationType::If | OperationType::While) {
        return Ok(Vec::new());
    }
    let call = call(true);
    let shapes = AnyOperation::decode(&call).and_then(|decoded| decoded.output_shapes(&call));
    match shapes {
        Ok(shapes) => Ok(operation.outputs.iter().copied().zip(shapes).collect()),
        Err(Fault::Invalid(error)) => Err(no_such_form(Fault::Invalid(error))),
        Err(_) => Ok(Vec::new()),
    }
}

fn argument<'a>(operand: &'a Operand, value: Option<&'a [u8]>) -> ArgumentSource<'a> {
    let is_omitted = operand.lifetime == OperandLifeTime::NoValue;
    ArgumentSource {
        operand,
        shape: Shape::of_model(&operand.dimensions),
        value: match value {
            _ if is_omitted => Value::Omitted,
            Some(bytes) => Value::Known(bytes),
            None => Value::NotKnown,
        },
    }
}
