//! The compiling engine: makes a plan of a model, with constants folded, operations fused, weights
//! packed, memory laid out and work cut for threads, and runs that plan with fast kernels.
//!
//! | module | what it holds |
//! |---|---|
//! | `graph` | a subgraph with all shapes known and constants at hand, to be rewritten |
//! | `passes` | rewriting: fusing, merging, removing |
//! | `plan` | steps with their kernels, memory, execution |
//! | `why` | why a step runs the reference kernel |
//!
//! What has no fast kernel runs by the reference kernel of its operation, as a step of the same
//! plan. A WHILE whose variables keep their lengths runs by plans of its condition and its body, an IF whose
//! branches give results of the same lengths by plans of those. What cannot be planned, because data decide about
//! shapes, runs on `nnhal_interpreter`, with plans for what is between.
//!
//! ```
//! use nnhal_cpu::{InstructionSet, Settings};
//! use nnhal_hal::Device;
//!
//! let settings = Settings { instruction_set: InstructionSet::Portable, ..Settings::default() };
//! let device = nnhal_cpu::device(settings);
//! assert_eq!(device.name(), "nnhal-cpu");
//! assert!(device.version_string().contains("portable"));
//! ```

mod dump;
mod engine;
mod graph;
mod kept;
mod lock;
mod passes;
mod plan;
mod program;
mod saved;
mod settings;
mod static_subgraphs;
mod teams;
mod why;

pub use dump::{GraphDump, dump_passes};
pub use engine::CpuEngine;
pub use nnhal_kernels::InstructionSet;
pub use nnhal_kernels::TASK_SPANS;
pub use nnhal_kernels::peak;
pub use passes::{NoSuchPass, Passes, passes_table};
pub use program::CpuProgram;
pub use settings::Settings;

use nnhal_driver::DriverDevice;
use std::sync::Arc;

/// The service instance name.
pub const DEVICE_NAME: &str = "nnhal-cpu";

/// The device, with the given settings.
pub fn device(settings: Settings) -> Arc<dyn nnhal_hal::Device> {
    Arc::new(DriverDevice::new(CpuEngine::new(settings)))
}
