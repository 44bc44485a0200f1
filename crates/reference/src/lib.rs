//! The interpreting engine: runs a model one operation after the other, each by the reference kernel of
//! its definition, on one thread. It defines correct results and is not fast.
//!
//! [`device`] is the device `nnhal-reference`, [`ReferenceEngine`] its engine. What runs its models is
//! [`nnhal_interpreter::InterpretedProgram`].
//!
//! ```
//! use nnhal_hal::{ExecutionOptions, HalVersion, OperandSpec, OperationType, PrepareOptions};
//! use nnhal_hal::{RequestBuilder, SubgraphBuilder};
//!
//! let mut graph = SubgraphBuilder::new();
//! let x = graph.input("x", OperandSpec::tensor_float32([2]));
//! let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([2]));
//! graph.output(y);
//! let model = graph.into_model()?;
//!
//! let device = nnhal_reference::device();
//! let prepared = device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default())?;
//! let mut request = RequestBuilder::new();
//! request.input(&[(-1.5_f32).to_le_bytes(), 2.5_f32.to_le_bytes()].concat()).output(8);
//! let request = request.build()?;
//! let execution = prepared.execute(&request, &ExecutionOptions::default())?;
//! assert_eq!(execution.dimensions(0), Some(&[2][..]));
//! assert_eq!(RequestBuilder::read_output(&request, 0)?[4..], 2.5_f32.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod engine;

pub use engine::ReferenceEngine;
pub use nnhal_interpreter::InterpretedProgram;

use nnhal_driver::DriverDevice;
use std::sync::Arc;

/// The service instance name.
pub const DEVICE_NAME: &str = "nnhal-reference";

/// The reference device, with [`nnhal_driver::memory::default_model_limit`].
pub fn device() -> Arc<dyn nnhal_hal::Device> {
    Arc::new(DriverDevice::new(ReferenceEngine::new()))
}
