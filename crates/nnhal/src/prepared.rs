//! [`Prepared`]: a model on a device, which any number of runs share.

use crate::cache::{self, Kept};
use crate::devices;
use crate::error::{Error, FailedOperation, Result, UnsupportedOperation, place_of};
use crate::model::Model;
use crate::options::{DeviceChoice, SessionOptions};
use nnhal_driver::OperationPlace;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{Deadline, Device, HalVersion, Operand, PrepareOptions, PreparedModel};
use nnhal_ops::extension::NAME;
use nnhal_tflite::{OperatorOrigin, is_dynamic_range};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) struct Prepared {
    pub(crate) model: Model,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) program: Arc<dyn PreparedModel>,
    pub(crate) options: SessionOptions,
    /// By input of the model as devices take it: those of variables last.
    pub(crate) inputs: Vec<Operand>,
    /// By output, variables last.
    pub(crate) outputs: Vec<Operand>,
    /// How long preparing took.
    pub(crate) preparing: Duration,
    /// What the folder of prepared models has of it.
    pub(crate) kept: Kept,
}

impl Prepared {
    pub(crate) fn new(model: &Model, options: &SessionOptions) -> Result<Self> {
        let device = match &options.device {
            DeviceChoice::Name(name) => devices::open(name, options.threads)?,
            DeviceChoice::Own(device) => Arc::clone(device),
        };
        match Self::on(&device, model, options) {
            Err(error) if model.has_dynamic_range() && lacks_dynamic_range(&*device, &error) => {
                Self::on(&device, &model.with_dequantized_weights()?, options)
            }
            outcome => outcome,
        }
    }

    fn on(device: &Arc<dyn Device>, model: &Model, options: &SessionOptions) -> Result<Self> {
        let begun = Instant::now();
        let deadline = options.prepare_timeout.map(Deadline::after);
        let prepare = |files: PrepareOptions| {
            let (preference, priority) = (options.preference, options.priority);
            let weights = options.weights.clone();
            let all = PrepareOptions { preference, priority, deadline, weights, ..files };
            device
                .prepare_model(model.hal(), HalVersion::LATEST, all)
                .map_err(|error| explain(model, &**device, error))
        };
        let (program, kept) = match &options.cache {
            Some(folder) => cache::open(folder, model, &**device, options, deadline, prepare)?,
            None => (prepare(PrepareOptions::default())?, Kept::Not),
        };
        let main = &model.hal().main;
        let operands = |indexes: &[u32]| -> Vec<Operand> {
            indexes.iter().map(|index| main.operands[*index as usize].clone()).collect()
        };
        Ok(Self {
            inputs: operands(&main.inputs),
            outputs: operands(&main.outputs),
            model: model.clone(),
            program,
            device: Arc::clone(device),
            options: options.clone(),
            preparing: begun.elapsed(),
            kept,
        })
    }

    /// The program's own view of itself, if the device is a driver of this process.
    pub(crate) fn driver(&self) -> Result<&nnhal_driver::Prepared> {
        nnhal_driver::Prepared::of(&*self.program)
            .ok_or_else(|| Error::Opaque { device: self.device.name().to_owned() })
    }

    /// An error of the device.
    pub(crate) fn error(&self, source: nnhal_hal::Error) -> Error {
        device_error(&self.model, &*self.device, source)
    }
}

/// Whether a device refused a model for its layers of dynamic-range quantization.
fn lacks_dynamic_range(device: &dyn Device, error: &Error) -> bool {
    match error {
        Error::Unsupported { operations, .. } => {
            operations.iter().any(|it| is_dynamic_range(it.place.operation_type))
        }
        // One that knows no extension at all may refuse the model as a whole.
        Error::Device { .. } => !device.supported_extensions().iter().any(|it| it.name == NAME),
        _ => false,
    }
}

/// The operator of the file that an operation comes from.
pub(crate) fn origin(model: &Model, place: OperationPlace) -> Option<OperatorOrigin> {
    match place.subgraph {
        SubgraphName::Main => model.operator_origins().get(place.index).cloned(),
        SubgraphName::Referenced(_) => None,
    }
}

fn device_error(model: &Model, device: &dyn Device, source: nnhal_hal::Error) -> Error {
    let operation = place_of(&source)
        .map(|place| Box::new(FailedOperation { place, origin: origin(model, place) }));
    Error::Device { device: device.name().to_owned(), operation, source }
}

/// A refusal, with the operations that the device does not support, if that is the reason.
fn explain(model: &Model, device: &dyn Device, source: nnhal_hal::Error) -> Error {
    let support = device.supported_operations(model.hal(), HalVersion::LATEST);
    let operations: Vec<UnsupportedOperation> = support
        .unwrap_or_default()
        .into_iter()
        .zip(&model.hal().main.operations)
        .enumerate()
        .filter_map(|(index, (support, operation))| match support {
            nnhal_hal::Support::Yes => None,
            nnhal_hal::Support::No(reason) => {
                let operation_type = operation.operation_type;
                let place = OperationPlace { subgraph: SubgraphName::Main, index, operation_type };
                Some(UnsupportedOperation { place, origin: origin(model, place), reason })
            }
        })
        .collect();
    if operations.is_empty() {
        return device_error(model, device, source);
    }
    Error::Unsupported { device: device.name().to_owned(), operations, source }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Prepared")
            .field("device", &self.device.name())
            .field("options", &self.options)
            .field("preparing", &self.preparing)
            .finish_non_exhaustive()
    }
}
