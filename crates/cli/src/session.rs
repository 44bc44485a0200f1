//! [`Session`]: a `.tflite` file prepared on a device, run with tensors.

use crate::devices;
use crate::error::{CliError, Result};
use crate::tensor::Tensor;
use hal::{
    Device, ErrorStatus, ExecutionOptions, HalVersion, Operand, OutputShape, PrepareOptions,
    PreparedModel, Request, RequestBuilder, Timing,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tflite::Import;

/// Bytes first given to an output whose size is not known; the device says what it needs.
const FIRST_GUESS: usize = 4096;

/// A model prepared on a device.
pub struct Session {
    /// The device's name.
    pub device: String,
    /// How long preparing took.
    pub preparing: Duration,
    prepared: Arc<dyn PreparedModel>,
    inputs: Vec<Operand>,
    outputs: Vec<Operand>,
}

/// What an execution gave.
pub struct Results {
    /// By output.
    pub outputs: Vec<Tensor>,
    /// As the device measured it.
    pub timing: Timing,
}

/// Reads a `.tflite` file.
///
/// # Errors
/// The file cannot be read or imported.
pub fn import(path: &Path) -> Result<Import> {
    tflite::import_file(path).map_err(|source| CliError::Import { path: path.to_owned(), source })
}

impl Session {
    /// Prepares a model on the device of this name.
    ///
    /// # Errors
    /// There is no such device, or it refuses the model.
    pub fn new(import: &Import, device: &str, threads: usize) -> Result<Self> {
        Self::on(import, &*devices::open(device, threads)?)
    }

    /// Prepares a model on a device.
    ///
    /// # Errors
    /// It refuses the model.
    pub fn on(import: &Import, device: &dyn Device) -> Result<Self> {
        let begun = Instant::now();
        let prepared = device
            .prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default())
            .map_err(|error| explain(device, import, error))?;
        let main = &import.model.main;
        let operands = |indexes: &[u32]| {
            indexes.iter().map(|index| main.operands[*index as usize].clone()).collect()
        };
        Ok(Self {
            device: device.name().to_owned(),
            preparing: begun.elapsed(),
            prepared,
            inputs: operands(&main.inputs),
            outputs: operands(&main.outputs),
        })
    }

    /// A request with room for every output whose size is known, and a guess for the others.
    ///
    /// # Errors
    /// Memory cannot be had.
    pub fn request(&self, inputs: &[Tensor]) -> Result<Request> {
        let sizes: Vec<usize> =
            self.outputs.iter().map(|output| known_size(output).unwrap_or(FIRST_GUESS)).collect();
        self.request_with_room(inputs, &sizes)
    }

    fn request_with_room(&self, inputs: &[Tensor], sizes: &[usize]) -> Result<Request> {
        let mut request = RequestBuilder::new();
        for (tensor, operand) in inputs.iter().zip(&self.inputs) {
            if operand.has_known_dimensions() {
                request.input(&tensor.bytes);
            } else {
                request.input_shaped(&tensor.bytes, &tensor.dimensions);
            }
        }
        for size in sizes {
            request.output(*size);
        }
        request.build().map_err(CliError::device(&self.device))
    }

    /// Runs a request that has been made by [`Session::request`].
    ///
    /// # Errors
    /// What the device says.
    pub fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<hal::Execution, hal::ExecutionError> {
        self.prepared.execute(request, options)
    }

    /// The steps of the device's plan.
    ///
    /// # Errors
    /// The device is not one of ours and does not tell.
    pub fn plan(&self) -> Result<Vec<driver::PlannedStep>> {
        let prepared = driver::Prepared::of(&*self.prepared)
            .ok_or_else(|| CliError::Input(format!("{} does not tell its plans", self.device)))?;
        Ok(prepared.plan())
    }

    /// Runs the model once, with someone who watches every operation's results.
    ///
    /// # Errors
    /// What the device says; or it is not one of ours and cannot be watched.
    pub fn run_observed(&self, inputs: &[Tensor], observer: &dyn driver::Observer) -> Result<()> {
        let prepared = driver::Prepared::of(&*self.prepared).ok_or_else(|| {
            CliError::Input(format!("{} does not let its operations be watched", self.device))
        })?;
        let options = ExecutionOptions::default();
        match prepared.execute_observed(&self.request(inputs)?, &options, observer) {
            Err(failed) if failed.error.status() != ErrorStatus::OutputInsufficientSize => {
                Err(CliError::device(&self.device)(failed.error))
            }
            _ => Ok(()),
        }
    }

    /// Runs the model. Where an output's size was not known, it is run again with enough room.
    ///
    /// # Errors
    /// What the device says.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Results> {
        let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
        let mut request = self.request(inputs)?;
        let execution = match self.execute(&request, &options) {
            Err(failed) if failed.error.status() == ErrorStatus::OutputInsufficientSize => {
                let sizes: Vec<usize> = failed
                    .output_shapes
                    .iter()
                    .zip(&self.outputs)
                    .map(|(shape, output)| byte_size(output, &shape.dimensions))
                    .collect();
                request = self.request_with_room(inputs, &sizes)?;
                self.execute(&request, &options)
            }
            answer => answer,
        };
        let execution = execution.map_err(|failed| CliError::device(&self.device)(failed.error))?;
        let outputs = self
            .outputs
            .iter()
            .zip(&execution.output_shapes)
            .enumerate()
            .map(|(index, (operand, shape))| self.read(&request, index, operand, shape))
            .collect::<Result<_>>()?;
        Ok(Results { outputs, timing: execution.timing })
    }

    fn read(
        &self,
        request: &Request,
        index: usize,
        operand: &Operand,
        shape: &OutputShape,
    ) -> Result<Tensor> {
        let mut bytes =
            RequestBuilder::read_output(request, index).map_err(CliError::device(&self.device))?;
        bytes.truncate(byte_size(operand, &shape.dimensions));
        Ok(Tensor {
            operand_type: operand.operand_type,
            dimensions: shape.dimensions.clone(),
            scale: operand.scale,
            zero_point: operand.zero_point,
            bytes,
        })
    }
}

/// Bytes of a value with these dimensions.
fn byte_size(operand: &Operand, dimensions: &[u32]) -> usize {
    let element = operand.operand_type.element_size().unwrap_or(1) as usize;
    dimensions.iter().fold(element, |size, length| size.saturating_mul(*length as usize))
}

fn known_size(operand: &Operand) -> Option<usize> {
    operand.has_known_dimensions().then(|| byte_size(operand, &operand.dimensions))
}

/// A refusal, with the operations that the device does not support, if that is the reason.
fn explain(device: &dyn Device, import: &Import, error: hal::Error) -> CliError {
    let support = device.supported_operations(&import.model, HalVersion::LATEST);
    let unsupported: Vec<String> = support
        .unwrap_or_default()
        .iter()
        .enumerate()
        .filter_map(|(index, support)| match support {
            hal::Support::Yes => None,
            hal::Support::No(reason) => {
                let operation = import.model.main.operations[index].operation_type;
                Some(format!("\n  operation {index} ({operation}): {reason}"))
            }
        })
        .collect();
    if unsupported.is_empty() {
        CliError::device(device.name())(error)
    } else {
        CliError::Device {
            device: device.name().to_owned(),
            error: hal::Error::new(
                error.status(),
                format!("the model has operations it cannot run:{}", unsupported.concat()),
            ),
        }
    }
}
