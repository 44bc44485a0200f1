//! [`supports`]

use nnhal_driver::OperationPlace;
use nnhal_hal::{OperationType, Support};
use nnhal_ops::{Signature, ValidModel, extension};

/// Whether an operation of a model can be interpreted, or why not: neither the interface nor our extension
/// defines it or the type of one of its operands, or control flow is too long (see
/// [`ValidModel::expect_bounded_pass`]).
pub fn supports(model: &ValidModel, place: OperationPlace) -> Support {
    let defined = match place.operation_type {
        OperationType::If | OperationType::While => {
            if let Err(error) = model.expect_bounded_pass() {
                return Support::No(error.to_string());
            }
            true
        }
        OperationType::OemOperation => {
            return Support::No("only its vendor knows what it does".to_owned());
        }
        other => Signature::of(other).is_some(),
    };
    if !defined {
        let name = extension::operation_name(place.operation_type);
        return Support::No(format!("{name} is not implemented"));
    }
    let subgraph = model.subgraph(place.subgraph);
    let operation = &subgraph.operations[place.index];
    for operand in operation.inputs.iter().chain(&operation.outputs) {
        let operand_type = subgraph.operands[*operand as usize].operand_type;
        if operand_type.is_oem() || extension::element_size(operand_type).is_none() {
            return Support::No(format!("operand {operand} is of type {operand_type}"));
        }
    }
    Support::Yes
}
