//! `android.hardware.neuralnetworks@1.0`

mod interfaces;
mod types;

pub use interfaces::{IDevice, IExecutionCallback, IPreparedModel, IPreparedModelCallback};
pub use types::{
    Capabilities, DataLocation, DeviceStatus, ErrorStatus, Model, Operand, OperandLifeTime,
    OperandType, Operation, OperationType, PerformanceInfo, Request, RequestArgument,
};
