//! `android.hardware.neuralnetworks@1.3`: control flow, quality of service, buffers that the driver
//! manages, fenced execution.

mod interfaces;
mod types;

pub use interfaces::{
    IBuffer, IDevice, IExecutionCallback, IFencedExecutionCallback, IPreparedModel,
    IPreparedModelCallback,
};
pub use types::{
    BufferDesc, BufferRole, Capabilities, MemoryPool, Model, OptionalTimePoint,
    OptionalTimeoutDuration, Priority, Request, Subgraph,
};

pub use crate::v1_0::{
    DataLocation, ErrorStatus, OperandLifeTime, OperandType, Operation, OperationType,
    PerformanceInfo, RequestArgument,
};
pub use crate::v1_1::ExecutionPreference;
pub use crate::v1_2::{
    CacheToken, ExtensionNameAndPrefix, ExtraParams, MeasureTiming, Operand, OperandPerformance,
    OutputShape, Timing,
};
