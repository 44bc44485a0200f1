//! What an application needs above devices: models built operand by operand, compilations for one
//! device or several, and executions, with the objects, states and result codes of the Neural Networks
//! API. The crate `capi` is this in C; Rust programs that load `.tflite` files use the crate `nnhal`.
//!
//! | module | contents |
//! |---|---|
//! | `devices` | [`Devices`], the list that an embedder gives; extensions and their numbers |
//! | `model` | [`ModelBuilder`] and [`Model`] |
//! | `compilation` | [`CompilationBuilder`] and [`Compilation`]; caching |
//! | `partition` | which device runs which operation, and the steps of an execution |
//! | `execution` | [`Execution`]: arguments, ways to start, results |
//! | `memory` | [`Memory`] and [`MemoryDescription`] |
//! | `event`, `burst` | [`Event`], [`Burst`] |
//! | `error` | [`Error`] with a [`ResultCode`] and a sentence |
//!
//! A pointer of the C API is here a [`ReadBytes`] or [`WriteBytes`], which the C library implements for
//! pointers. Lengths are in bytes, durations in nanoseconds.
//!
//! ```
//! use nnhal_hal::{OperandType, OperationType};
//! use nnhal_runtime::{CompilationBuilder, Devices, Execution, ModelBuilder};
//! use nnhal_runtime::{OperandDescription, OutputBuffer};
//! use std::sync::Arc;
//!
//! // Build: z = x + y.
//! let devices = Devices::new([nnhal_reference::device()]);
//! let mut builder = ModelBuilder::new(&devices);
//! let pair = OperandDescription::tensor_float32([2]);
//! let [x, y, z] = [(); 3].map(|()| builder.add_operand(&pair));
//! let [x, y, z] = [x?, y?, z?];
//! let activation = builder.add_operand(&OperandDescription::scalar(OperandType::Int32))?;
//! builder.set_operand_value(activation, &0_i32.to_le_bytes())?;
//! builder.add_operation(OperationType::Add.code().cast_signed(), &[x, y, activation], &[z])?;
//! builder.identify_inputs_and_outputs(&[x, y], &[z])?;
//! let model = builder.finish()?;
//!
//! // Compile for whichever device is best.
//! let compilation = CompilationBuilder::new(&model).finish()?;
//!
//! // Compute.
//! let execution = Execution::new(&compilation);
//! let bytes = |values: [f32; 2]| Arc::new(values.map(f32::to_le_bytes).concat());
//! execution.set_input(0, None, Some(bytes([1.0, 2.0])))?;
//! execution.set_input(1, None, Some(bytes([0.5, 0.25])))?;
//! let sum = OutputBuffer::new(8);
//! execution.set_output(0, None, Some(Arc::new(sum.clone())))?;
//! execution.compute()?;
//! assert_eq!(sum.to_f32(), [1.5, 2.25]);
//! assert_eq!(execution.output_dimensions(0)?.dimensions, [2]);
//! # Ok::<(), nnhal_runtime::Error>(())
//! ```

mod background;
mod burst;
mod bytes;
mod compilation;
mod description;
mod devices;
mod error;
mod event;
mod execution;
mod extension;
mod memory;
mod model;
mod operand;
mod partition;

pub use burst::Burst;
pub use bytes::{OutputBuffer, ReadBytes, WriteBytes};
pub use compilation::{Compilation, CompilationBuilder};
pub use description::MemoryDescription;
pub use devices::{Device, Devices, RUNTIME_FEATURE_LEVEL, feature_level};
pub use error::{Error, Result, ResultCode};
pub use event::Event;
pub use execution::{DurationCode, Execution, Observer, OutputDimensions, Start};
pub use memory::Memory;
pub use model::{Model, ModelBuilder};
pub use operand::OperandDescription;
pub use partition::Partitioning;
pub use partition::cache::CacheFiles;
