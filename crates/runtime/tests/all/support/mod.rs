//! What the tests share.

pub mod scripted;
pub mod through;

use nnhal_hal::OperationType;
use nnhal_runtime::{ModelBuilder, OperandDescription, Result};

/// Adds an operation of the interface.
pub fn operation(
    builder: &mut ModelBuilder,
    operation: OperationType,
    inputs: &[u32],
    outputs: &[u32],
) -> Result<()> {
    builder.add_operation(operation.code().cast_signed(), inputs, outputs)
}

/// Adds a tensor of float32 numbers.
pub fn tensor(builder: &mut ModelBuilder, dimensions: &[u32]) -> u32 {
    builder.add_operand(&OperandDescription::tensor_float32(dimensions)).unwrap()
}

/// Adds a constant int32 scalar.
pub fn int32(builder: &mut ModelBuilder, value: i32) -> u32 {
    let scalar = OperandDescription::scalar(nnhal_hal::OperandType::Int32);
    let operand = builder.add_operand(&scalar).unwrap();
    builder.set_operand_value(operand, &value.to_le_bytes()).unwrap();
    operand
}

/// Float32 numbers as bytes.
pub fn bytes(values: &[f32]) -> std::sync::Arc<Vec<u8>> {
    std::sync::Arc::new(values.iter().flat_map(|value| value.to_le_bytes()).collect())
}
