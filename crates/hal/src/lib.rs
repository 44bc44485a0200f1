//! Types and traits of Android's Neural Networks HAL, for drivers and those who use them.
//!
//! One canonical set of types serves every version: the newest version of the interface
//! (`android.hardware.neuralnetworks@1.3`, and the operations that feature levels 6 and 7 added)
//! is a superset of the older ones. A [`Model`] is written once; [`Model::oldest_expressible`] and
//! [`Model::obstacles_in`] say which [`HalVersion`]s can express it.
//!
//! | module | contents |
//! |---|---|
//! | [`codes`] | the enumerations with few values and their numeric codes, [`HalVersion`] |
//! | [`operand_type`], [`operation_type`] | [`OperandType`], [`OperationType`]: codes, names, and the version that brought each |
//! | [`model`], [`builder`] | [`Model`], and [`SubgraphBuilder`] and [`ModelBuilder`], which make one |
//! | [`compliance`] | [`Obstacle`]: what an older interface cannot express |
//! | [`request`], [`output_shape`] | [`Request`]: the arguments of one execution; [`OutputShape`]: what it answers about an output |
//! | [`memory`] | [`Memory`]: shared memory that other processes may write while it is read |
//! | [`time`], [`fence`], [`cancellation`] | [`Deadline`] and [`Timing`] in nanoseconds, [`SyncFence`], [`Cancellation`] |
//! | [`background`] | jobs that wait for fences, and the threads that they share |
//! | [`client`] | [`Client`]: who uses a device, what they hold and its limits |
//! | [`departure`] | [`departure::Watch`]: notices when a process has ended or a connection was closed |
//! | [`device`] | the traits [`Device`], [`PreparedModel`], [`Buffer`], [`Burst`] |
//! | [`capabilities`], [`extension`] | the performance and the extensions that a device states |
//! | [`error`] | [`Error`]: an [`ErrorStatus`] for the interface, with a reason as a sentence |
//!
//! Numbers, names and rules are those of the interface files (`hardware/interfaces/neuralnetworks`
//! in the Android Open Source Project).
//!
//! ```
//! use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};
//!
//! let mut graph = SubgraphBuilder::new();
//! let a = graph.input("a", OperandSpec::tensor_float32([2, 2]));
//! let b = graph.input("b", OperandSpec::tensor_float32([2, 2]));
//! let none = graph.scalar_i32(nnhal_hal::FusedActivation::None.code());
//! let sum = graph.operation(
//!     OperationType::Add,
//!     [a, b, none],
//!     OperandSpec::tensor_float32([2, 2]),
//! );
//! graph.output(sum);
//! let model = graph.into_model().expect("a complete model");
//! assert_eq!(model.main.inputs.len(), 2);
//! assert_eq!(model.oldest_expressible(), nnhal_hal::HalVersion::V1_0);
//! ```

pub mod background;
pub mod builder;
pub mod cancellation;
pub mod capabilities;
pub mod client;
pub mod codes;
pub mod compliance;
pub mod departure;
pub mod device;
pub mod error;
pub mod extension;
pub mod fence;
pub mod memory;
pub mod model;
pub mod operand_type;
pub mod operation_type;
pub mod output_shape;
pub mod request;
pub mod time;

pub use builder::{
    BuildError, Mistake, ModelBuilder, OperandId, OperandSpec, SubgraphBuilder, SubgraphId,
};
pub use cancellation::Cancellation;
pub use capabilities::{Capabilities, OperandPerformance, PerformanceInfo};
pub use client::{Client, ClientGroup, ClientLimits};
pub use codes::{
    DeviceStatus, DeviceType, ErrorStatus, ExecutionPreference, FusedActivation, HalVersion,
    MeasureTiming, OperandLifeTime, Priority, UnknownCode,
};
pub use compliance::Obstacle;
pub use device::{
    Buffer, BufferDescription, BufferRole, Burst, CacheFilesNeeded, CacheToken, CacheTrust, Device,
    Execution, ExecutionOptions, FencedExecution, LaunchedRequest, PrepareOptions, PreparedModel,
    Support,
};
pub use error::{Error, ExecutionError, Result};
pub use extension::{
    Extension, ExtensionNameAndPrefix, ExtensionOperandType, ExtensionType, Hints, TokenValuePair,
};
pub use fence::{FenceSignal, FenceState, FenceWaitError, SyncFence};
pub use memory::Memory;
pub use model::{
    ChannelQuant, DataLocation, ExtraParams, Model, Operand, Operation, QuantizedAs, Subgraph,
};
pub use operand_type::OperandType;
pub use operation_type::OperationType;
pub use output_shape::OutputShape;
pub use request::{Request, RequestArgument, RequestBuilder, RequestMemoryPool};
pub use time::{Deadline, Timing};

/// Bytes in a compilation cache token (`BYTE_SIZE_OF_CACHE_TOKEN`).
pub const BYTE_SIZE_OF_CACHE_TOKEN: usize = 32;
/// Most cache files of one kind that a device may ask for (`MAX_NUMBER_OF_CACHE_FILES`).
pub const MAX_NUMBER_OF_CACHE_FILES: u32 = 32;
