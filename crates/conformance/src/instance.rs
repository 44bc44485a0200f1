//! [`Instance`]: a vector as a model and a request.

use crate::vectors::{Case, Operand, Subgraph};
use nnhal_hal::{
    DataLocation, Device, ExtraParams, HalVersion, Memory, Model, OperandLifeTime, OperandType,
    PrepareOptions, PreparedModel, Request, RequestBuilder,
};
use std::sync::Arc;

/// A vector as a model and the arguments to run it with.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The vector's model, with its constants.
    pub model: Model,
    inputs: Vec<Option<Vec<u8>>>,
    /// Bytes expected of each output.
    pub expected: Vec<Vec<u8>>,
    /// Dimensions expected of each output.
    pub dimensions: Vec<Vec<u32>>,
}

/// A vector that contradicts its own format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    /// An index is outside its list.
    #[error("operand index {0} is out of range")]
    Index(u32),
    /// A value that the format demands is missing.
    #[error("operand {0} has no data")]
    NoData(String),
    /// Memory cannot be had.
    #[error("{0}")]
    Memory(String),
}

impl Instance {
    /// The vector as it stands.
    ///
    /// # Errors
    /// See [`InstanceError`].
    pub fn new(case: &Case) -> Result<Self, InstanceError> {
        let mut values = Vec::new();
        let mut pool = Vec::new();
        let main = subgraph(&case.main, &mut values, &mut pool)?;
        let referenced = case
            .referenced
            .iter()
            .map(|graph| subgraph(graph, &mut values, &mut pool))
            .collect::<Result<_, _>>()?;
        let pools = if pool.is_empty() {
            Vec::new()
        } else {
            let memory = Memory::from_bytes(&pool);
            vec![memory.map_err(|error| InstanceError::Memory(error.to_string()))?]
        };
        let data = |index: &u32| {
            let operand = operand(&case.main, *index)?;
            let bytes =
                operand.data.clone().ok_or_else(|| InstanceError::NoData(operand.name.clone()))?;
            Ok((operand, bytes))
        };
        let inputs = case.main.inputs.iter().map(data).collect::<Result<Vec<_>, _>>()?;
        let outputs = case.main.outputs.iter().map(data).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            model: Model {
                main,
                referenced,
                operand_values: values.into(),
                pools,
                relax_computation_float32_to_float16: case.is_relaxed,
                extension_name_to_prefix: Vec::new(),
            },
            inputs: inputs
                .into_iter()
                .map(|(_, bytes)| Some(bytes).filter(|bytes| !bytes.is_empty()))
                .collect(),
            dimensions: outputs.iter().map(|(operand, _)| operand.dimensions.clone()).collect(),
            expected: outputs.into_iter().map(|(_, bytes)| bytes).collect(),
        })
    }

    /// The same for a device of this version: an older one gets the model without arguments that
    /// say nothing, which Android's runtime leaves out before it asks devices. What a vector claims
    /// of its oldest version is claimed of what remains.
    #[must_use]
    pub fn for_version(mut self, version: HalVersion) -> Self {
        if version < HalVersion::LATEST {
            self.model = nnhal_ops::simplify::without_defaults(&self.model);
        }
        self
    }

    /// The oldest version that has everything in the model, as the `ops` crate knows it: of an
    /// invalid model the oldest that has words for it.
    pub fn oldest_version(&self) -> HalVersion {
        let model = nnhal_ops::simplify::without_defaults(&self.model);
        nnhal_ops::validate::oldest_version(&model).unwrap_or_else(|_| model.oldest_expressible())
    }

    /// The same with every dimension of the main outputs unknown, the rank known.
    #[must_use]
    pub fn with_unknown_output_shapes(mut self) -> Self {
        for index in self.model.main.outputs.clone() {
            if let Some(operand) = self.model.main.operands.get_mut(index as usize) {
                operand.dimensions.fill(0);
            }
        }
        self
    }

    /// The values of the inputs; none of those that are left out.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = Option<&Vec<u8>>> {
        self.inputs.iter().map(Option::as_ref)
    }

    /// Has a device prepare the model, as the latest version of the interface asks for it.
    pub(crate) fn prepare(&self, device: &dyn Device) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        device.prepare_model(&self.model, HalVersion::LATEST, PrepareOptions::default())
    }

    /// The arguments, with each output's buffer of the expected size, less `missing` bytes for the
    /// output at that index.
    ///
    /// # Errors
    /// Memory cannot be had.
    pub fn request(&self, shortened: Option<usize>) -> nnhal_hal::Result<Request> {
        let mut builder = RequestBuilder::new();
        for input in &self.inputs {
            match input {
                Some(bytes) => builder.input(bytes),
                None => builder.omitted_input(),
            };
        }
        for (index, expected) in self.expected.iter().enumerate() {
            let missing = usize::from(shortened == Some(index));
            builder.output(expected.len().saturating_sub(missing));
        }
        builder.build()
    }
}

/// The case with each `TENSOR_QUANT8_ASYMM` turned into `TENSOR_QUANT8_ASYMM_SIGNED`: zero point
/// and every value less 128.
pub fn with_signed_quantization(case: &Case) -> Case {
    let mut case = case.clone();
    for operand in &mut case.main.operands {
        if operand.operand_type == OperandType::TensorQuant8Asymm {
            operand.operand_type = OperandType::TensorQuant8AsymmSigned;
            operand.zero_point -= 128;
            for byte in operand.data.iter_mut().flatten() {
                *byte ^= 0x80;
            }
        }
    }
    case
}

fn operand(graph: &Subgraph, index: u32) -> Result<&Operand, InstanceError> {
    graph.operands.get(index as usize).ok_or(InstanceError::Index(index))
}

/// Appends a value at the next multiple of 4.
fn place(bytes: &[u8], block: &mut Vec<u8>) -> DataLocation {
    block.resize(block.len().next_multiple_of(4), 0);
    let offset = u32::try_from(block.len()).unwrap_or(u32::MAX);
    block.extend_from_slice(bytes);
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    DataLocation { pool_index: 0, offset, length }
}

fn subgraph(
    graph: &Subgraph,
    values: &mut Vec<u8>,
    pool: &mut Vec<u8>,
) -> Result<nnhal_hal::Subgraph, InstanceError> {
    let mut operands = Vec::with_capacity(graph.operands.len());
    for operand in &graph.operands {
        let data = || operand.data.as_deref().ok_or(InstanceError::NoData(operand.name.clone()));
        let location = match operand.lifetime {
            OperandLifeTime::ConstantCopy => place(data()?, values),
            OperandLifeTime::ConstantReference => place(data()?, pool),
            OperandLifeTime::Subgraph => {
                let index =
                    data()?.try_into().map_err(|_| InstanceError::NoData(operand.name.clone()))?;
                DataLocation { offset: u32::from_le_bytes(index), ..DataLocation::default() }
            }
            _ => DataLocation::default(),
        };
        let extra_params = match &operand.channel_quant {
            Some(quant) => ExtraParams::ChannelQuant(nnhal_hal::ChannelQuant {
                scales: quant.scales.as_slice().into(),
                channel_dim: quant.channel_dim,
            }),
            None => ExtraParams::None,
        };
        operands.push(nnhal_hal::Operand {
            operand_type: operand.operand_type,
            dimensions: operand.dimensions.clone(),
            number_of_consumers: 0,
            scale: operand.scale,
            zero_point: operand.zero_point,
            lifetime: operand.lifetime,
            location,
            extra_params,
        });
    }
    for index in graph.operations.iter().flat_map(|operation| &operation.inputs) {
        let operand = operands.get_mut(*index as usize).ok_or(InstanceError::Index(*index))?;
        operand.number_of_consumers += 1;
    }
    let operations = graph.operations.iter().map(|operation| nnhal_hal::Operation {
        operation_type: operation.operation_type,
        inputs: operation.inputs.clone(),
        outputs: operation.outputs.clone(),
    });
    Ok(nnhal_hal::Subgraph {
        operations: operations.collect(),
        operands,
        inputs: graph.inputs.clone(),
        outputs: graph.outputs.clone(),
    })
}
