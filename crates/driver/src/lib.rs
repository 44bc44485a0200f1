//! The contract of the Neural Networks HAL, over any [`Engine`].
//!
//! Whoever implements [`Engine`] and [`Program`] gets a complete driver: [`DriverDevice`] is a
//! [`nnhal_hal::Device`] that validates models, checks requests, keeps deadlines, reports output shapes
//! and survives an engine that panics.
//!
//! ```text
//! Model    --nnhal_ops::validate-->  ValidModel  --Engine::compile-->  Program
//! Request  --Interface::bind-> Bindings    --Program::run-->     outputs, delivered
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`engine`] | what an engine does: [`Engine`], [`Program`] |
//! | [`budget`] | what work may take: [`Budget`] |
//! | [`schedule`] | who may compute now: [`Scheduler`] |
//! | [`interface`] | what requests must fit, and the one place that checks them: [`Interface::bind`] |
//! | [`bindings`] | the checked arguments: [`BoundInput`], [`BoundOutput`] |
//! | [`buffers`] | buffers that the driver manages, their roles and states |
//! | [`cache`] | compilations that outlive the process: [`ModelCache`](cache::ModelCache) |
//! | [`constants`] | a model's constants, read once: [`Constants`] |
//! | [`extension_types`] | what the engine's extensions say of operand types: [`ExtensionTypes`] |
//! | [`support`] | which operations an engine can run, control flow included |
//! | [`device`], [`prepared`] | the [`nnhal_hal::Device`] and [`nnhal_hal::PreparedModel`] |
//! | [`planned_step`] | a program's plan, for people: [`PlannedStep`] |
//! | [`memory`] | how much memory a model and the process may take: [`Ledger`] |
//! | [`observer`] | receives every operation's results: [`Observer`] |
//! | [`error`] | what can go wrong inside: [`EngineError`] |

pub mod bindings;
pub mod budget;
pub mod buffers;
mod build_name;
pub mod cache;
mod clients;
pub mod constants;
pub mod device;
pub mod engine;
pub mod error;
pub mod extension_types;
mod fenced;
mod files;
pub mod interface;
pub mod memory;
pub mod observer;
mod owner;
pub mod planned_step;
pub mod prepared;
mod preparing;
pub mod schedule;
pub mod support;
mod sync;

pub use bindings::{Bindings, BoundInput, BoundOutput, DeliveryError, Room};
pub use budget::{Budget, Interruption, LoopClock};
pub use buffers::{AllocationError, RoleName};
pub use clients::TooManyClients;
pub use constants::Constants;
pub use device::{DriverDevice, ReturnedFences};
pub use engine::{CompileOptions, Engine, Program, RunContext};
pub use error::{EngineError, MemoryUse, OperationPlace};
pub use extension_types::{ExtensionObstacle, ExtensionTypes};
pub use interface::{Interface, RequestError, Subject, UsedFor};
pub use memory::{Charge, Ledger, MemoryHolder};
pub use observer::{ObservedOutput, Observer, Round};
pub use planned_step::PlannedStep;
pub use prepared::Prepared;
pub use schedule::Scheduler;
pub use support::UnsupportedOperations;
