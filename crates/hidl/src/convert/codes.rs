//! Numbers and the values behind them, for the two enumerations that HIDL signs and `hal` does not.

use nnhal_hal::{OperandType, OperationType, UnknownCode};

pub(super) fn operand_type(code: i32) -> Result<OperandType, UnknownCode> {
    OperandType::from_code(code.cast_unsigned())
}

pub(super) fn operation_type(code: i32) -> Result<OperationType, UnknownCode> {
    OperationType::from_code(code.cast_unsigned())
}

pub(super) fn of_operand_type(operand_type: OperandType) -> i32 {
    operand_type.code().cast_signed()
}

pub(super) fn of_operation_type(operation_type: OperationType) -> i32 {
    operation_type.code().cast_signed()
}
