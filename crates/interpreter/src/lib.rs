//! Runs a model operation by operation, each by the reference kernel of its definition, on one thread.
//!
//! [`InterpretedProgram`] is the program of the engine `nnhal-reference`, which defines correct results.
//! Other engines give it what they cannot compile as a whole, and an [`Accelerator`] that computes the
//! sequences of operations for which they have something faster.
//!
//! What is not known before is found when an operation runs: shapes (even ranks), arguments that a
//! request leaves out, the branch of an IF, the iterations of a WHILE. Nested subgraphs take heap, not
//! stack.
//!
//! ```
//! use nnhal_driver::{Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace};
//! use nnhal_hal::{Capabilities, Device, DeviceType, PerformanceInfo, Support};
//! use nnhal_interpreter::InterpretedProgram;
//! use nnhal_ops::ValidModel;
//!
//! /// A driver that interprets all models that may take 64 MiB.
//! #[derive(Debug)]
//! struct Plain;
//!
//! impl Engine for Plain {
//!     type Program = InterpretedProgram;
//!
//!     fn name(&self) -> &str {
//!         "example-plain"
//!     }
//!
//!     fn version_string(&self) -> String {
//!         "1".to_owned()
//!     }
//!
//!     fn device_type(&self) -> DeviceType {
//!         DeviceType::Cpu
//!     }
//!
//!     fn capabilities(&self) -> Capabilities {
//!         Capabilities::uniform(PerformanceInfo { exec_time: 80.0, power_usage: 80.0 })
//!     }
//!
//!     fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
//!         nnhal_interpreter::supports(model, place)
//!     }
//!
//!     fn compile(
//!         &self,
//!         model: &ValidModel,
//!         _: &CompileOptions,
//!         budget: &Budget,
//!     ) -> Result<InterpretedProgram, EngineError> {
//!         InterpretedProgram::new(model, &budget.memory().model(64 << 20), budget)
//!     }
//! }
//!
//! assert_eq!(DriverDevice::new(Plain).name(), "example-plain");
//! ```

mod accelerator;
mod execution;
mod layout;
mod operation;
mod program;
mod support;
mod value;

pub use accelerator::{Accelerator, Computed, ComputedOutput, Remaining};
pub use operation::call_within;
pub use program::{InterpretedProgram, execute_once};
pub use support::supports;
