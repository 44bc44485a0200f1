//! The nouns and verbs of Android's Neural Networks HAL.
//!
//! One canonical set of types serves every version: the newest version of the interface
//! (`android.hardware.neuralnetworks@1.3`, and the operations that feature levels 6 and 7 added)
//! is a superset of the older ones, so a [`Model`] is written once and [`HalVersion`] says which
//! of the interfaces can carry it ([`Model::stands_in_the_way_of`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`codes`] | the small enumerations with their numeric codes, [`HalVersion`] |
//! | [`operand_type`], [`operation_type`] | the two big enumerations |
//! | [`model`], [`builder`] | a model, and the pleasant way to write one |
//! | [`compliance`] | what stands in the way of an older interface |
//! | [`request`] | the arguments of one execution |
//! | [`memory`] | shared memory that others may write while we read |
//! | [`time`], [`fence`], [`cancellation`] | deadlines, timings, sync fences, giving up |
//! | [`background`] | jobs that wait for fences, and the threads that they share |
//! | [`client`] | who uses a device, and how much of it they hold |
//! | [`device`] | the traits [`Device`], [`PreparedModel`], [`Buffer`], [`Burst`] |
//! | [`capabilities`], [`extension`] | what a device says of itself |
//! | [`error`] | a status for the wire and a reason for the person |
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
//! let model = graph.into_model().expect("a model that is whole");
//! assert_eq!(model.main.inputs.len(), 2);
//! ```

pub mod background;
pub mod builder;
pub mod cancellation;
pub mod capabilities;
pub mod client;
pub mod codes;
pub mod compliance;
pub mod device;
pub mod error;
pub mod extension;
pub mod fence;
pub mod memory;
pub mod model;
pub mod operand_type;
pub mod operation_type;
pub mod request;
pub mod time;

pub use builder::{BuildError, Mistake, ModelBuilder, OperandId, OperandSpec, SubgraphBuilder};
pub use cancellation::Cancellation;
pub use capabilities::{Capabilities, OperandPerformance, PerformanceInfo};
pub use client::{Client, ClientLimits};
pub use codes::{
    DeviceStatus, DeviceType, ErrorStatus, ExecutionPreference, FusedActivation, HalVersion,
    MeasureTiming, OperandLifeTime, Priority, UnknownCode,
};
pub use compliance::Obstacle;
pub use device::{
    Buffer, BufferDescription, BufferRole, Burst, CacheFilesNeeded, CacheToken, Device, Execution,
    ExecutionOptions, FencedExecution, PrepareOptions, PreparedModel, Support,
};
pub use error::{Error, ExecutionError, Result};
pub use extension::{Extension, ExtensionNameAndPrefix, ExtensionOperandType, ExtensionType};
pub use fence::{FenceSignal, FenceState, FenceWaitError, SyncFence};
pub use memory::Memory;
pub use model::{
    ChannelQuant, DataLocation, ExtraParams, Model, Operand, Operation, QuantizedAs, Subgraph,
};
pub use operand_type::OperandType;
pub use operation_type::OperationType;
pub use request::{OutputShape, Request, RequestArgument, RequestBuilder, RequestMemoryPool};
pub use time::{Deadline, Timing};

/// Bytes in a compilation cache token (`BYTE_SIZE_OF_CACHE_TOKEN`).
pub const BYTE_SIZE_OF_CACHE_TOKEN: usize = 32;
/// Most cache files of one kind that a device may ask for (`MAX_NUMBER_OF_CACHE_FILES`).
pub const MAX_NUMBER_OF_CACHE_FILES: u32 = 32;
