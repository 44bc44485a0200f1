//! A complete driver for the Neural Networks HAL, over any [`Engine`].
//!
//! For developers of drivers: implement [`Engine`], which compiles a model, and [`Program`], which runs
//! it, and [`DriverDevice`] is a [`nnhal_hal::Device`] that validates models, checks requests, keeps
//! deadlines, reports output shapes, limits memory and survives an engine that panics.
//!
//! ```text
//! Model    --nnhal_ops::validate-->  ValidModel  --Engine::compile-->  Program
//! Request  --Interface::bind-> Bindings    --Program::run-->     outputs, delivered
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | what an engine implements: [`Engine`], [`Program`] |
//! | [`budget`] | deadline, loop timeout and cancellation of an execution: [`Budget`] |
//! | [`schedule`] | who gets a slot to compute: [`Scheduler`] |
//! | [`interface`] | what requests must fit, and the one place that checks them: [`Interface::bind`] |
//! | [`bindings`] | the checked arguments: [`BoundInput`], [`BoundOutput`] |
//! | [`buffers`], `allocation` | buffers that the driver manages, their roles and states; the checks of a wish for one |
//! | [`cache`] | prepared models in cache files: [`ModelCache`](cache::ModelCache) |
//! | [`constants`] | a model's constants, read once: [`Constants`] |
//! | [`extension_types`] | the operand types of the engine's extensions: [`ExtensionTypes`] |
//! | [`side_by_side`] | megabytes that several threads read |
//! | [`support`] | which operations an engine can run, control flow included |
//! | [`device`], [`prepared`] | the [`nnhal_hal::Device`] and [`nnhal_hal::PreparedModel`] |
//! | [`planned_step`] | a program's plan, for profiles: [`PlannedStep`] |
//! | [`memory`] | limits of memory for a model and for the process, in bytes: [`Ledger`] |
//! | [`observer`] | receives every operation's results: [`Observer`] |
//! | [`error`] | what can go wrong inside: [`EngineError`] |
//!
//! The documentation of [`engine`] has a whole engine of 60 lines. Here is the device of one that exists:
//!
//! ```
//! use nnhal_driver::DriverDevice;
//! use nnhal_hal::{Device, HalVersion, OperandSpec, OperationType, PrepareOptions, SubgraphBuilder};
//! use nnhal_reference::ReferenceEngine;
//!
//! let device = DriverDevice::new(ReferenceEngine::new()).with_maximum_clients(16);
//!
//! let mut graph = SubgraphBuilder::new();
//! let x = graph.input("x", OperandSpec::tensor_float32([2]));
//! let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([2]));
//! graph.output(y);
//! let model = graph.into_model()?;
//! assert!(device.supported_operations(&model, HalVersion::LATEST)?[0].is_yes());
//! device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default())?;
//!
//! // Invalid models never reach the engine.
//! let mut wrong = model.clone();
//! wrong.main.inputs = vec![7];
//! let refused = device.prepare_model(&wrong, HalVersion::LATEST, PrepareOptions::default());
//! assert_eq!(refused.err().unwrap().status(), nnhal_hal::ErrorStatus::InvalidArgument);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocation;
pub mod bindings;
pub mod budget;
pub mod buffers;
mod build_name;
pub mod cache;
mod clients;
pub mod constants;
mod delivery_error;
pub mod device;
pub mod engine;
pub mod error;
pub mod extension_types;
mod files;
mod guarded;
pub mod in_process;
pub mod interface;
mod interruption;
pub mod known_files;
pub mod memory;
pub mod observer;
mod owner;
pub mod planned_step;
pub mod prepared;
mod preparing;
pub mod schedule;
pub mod side_by_side;
pub mod stamp;
pub mod support;
mod sync;

pub use allocation::{AllocationError, RoleName};
pub use bindings::{Bindings, BoundInput, BoundOutput, Destination};
pub use budget::{Budget, LoopClock};
pub use clients::TooManyClients;
pub use constants::Constants;
pub use delivery_error::DeliveryError;
pub use device::{DriverDevice, ReturnedFences};
pub use engine::{CompileOptions, Engine, Program, RunContext};
pub use error::{EngineError, MemoryHolder, MemoryUse, OperationPlace};
pub use extension_types::{ExtensionObstacle, ExtensionTypes};
pub use in_process::execute_in_process;
pub use interface::{Interface, RequestError, Subject, UsedFor};
pub use interruption::Interruption;
pub use memory::{Charge, Ledger};
pub use observer::{InRounds, ObservedOutput, Observer, Round};
pub use planned_step::{PlannedStep, PlannedValue};
pub use prepared::Prepared;
pub use schedule::Scheduler;
pub use support::UnsupportedOperations;
