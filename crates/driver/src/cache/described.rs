//! [`DescribedSubgraph`]: subgraphs in a form that can be written.
//!
//! The types here are those of [`nnhal_hal::model`] with numbers for what has codes. They are written in
//! the order of their fields: changing any of them counts [`FORMAT`](super::FORMAT) up.

use super::error::CacheError;
use nnhal_hal::{
    ChannelQuant, DataLocation, ExtraParams, Operand, OperandLifeTime, OperandType, Operation,
    OperationType, Subgraph,
};
use serde::{Deserialize, Serialize};

/// A subgraph that can be written, for engines that save one with their programs. The places of
/// its constants are written; their bytes are not.
#[derive(Debug, Serialize, Deserialize)]
pub struct DescribedSubgraph {
    pub(super) operands: Vec<DescribedOperand>,
    operations: Vec<DescribedOperation>,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct DescribedOperation {
    operation_type: u32,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct DescribedOperand {
    operand_type: u32,
    dimensions: Vec<u32>,
    number_of_consumers: u32,
    scale: f32,
    zero_point: i32,
    pub(super) lifetime: i32,
    /// Pool, offset, length.
    pub(super) location: (u32, u32, u32),
    extra_params: DescribedExtraParams,
}

#[derive(Debug, Serialize, Deserialize)]
enum DescribedExtraParams {
    None,
    ChannelQuant { scales: Vec<f32>, channel_dim: u32 },
    Extension(Vec<u8>),
}

pub(super) fn all<T, U>(
    items: Vec<T>,
    convert: impl FnMut(T) -> Result<U, CacheError>,
) -> Result<Vec<U>, CacheError> {
    items.into_iter().map(convert).collect()
}

impl DescribedSubgraph {
    /// Of a subgraph.
    pub fn of(graph: &Subgraph) -> Self {
        Self {
            operands: graph.operands.iter().map(DescribedOperand::of).collect(),
            operations: graph
                .operations
                .iter()
                .map(|operation| DescribedOperation {
                    operation_type: operation.operation_type.code(),
                    inputs: operation.inputs.clone(),
                    outputs: operation.outputs.clone(),
                })
                .collect(),
            inputs: graph.inputs.clone(),
            outputs: graph.outputs.clone(),
        }
    }

    /// The subgraph.
    ///
    /// # Errors
    /// A code that stands for nothing.
    pub fn into_subgraph(self) -> Result<Subgraph, CacheError> {
        let operation = |DescribedOperation { operation_type, inputs, outputs }| {
            let operation_type = OperationType::from_code(operation_type)?;
            Ok(Operation { operation_type, inputs, outputs })
        };
        Ok(Subgraph {
            operands: all(self.operands, DescribedOperand::into_operand)?,
            operations: all(self.operations, operation)?,
            inputs: self.inputs,
            outputs: self.outputs,
        })
    }
}

impl DescribedOperand {
    pub(super) fn of(operand: &Operand) -> Self {
        let DataLocation { pool_index, offset, length } = operand.location;
        Self {
            operand_type: operand.operand_type.code(),
            dimensions: operand.dimensions.clone(),
            number_of_consumers: operand.number_of_consumers,
            scale: operand.scale,
            zero_point: operand.zero_point,
            lifetime: operand.lifetime.code(),
            location: (pool_index, offset, length),
            extra_params: match &operand.extra_params {
                ExtraParams::None => DescribedExtraParams::None,
                ExtraParams::ChannelQuant(ChannelQuant { scales, channel_dim }) => {
                    DescribedExtraParams::ChannelQuant {
                        scales: scales.to_vec(),
                        channel_dim: *channel_dim,
                    }
                }
                ExtraParams::Extension(bytes) => DescribedExtraParams::Extension(bytes.to_vec()),
            },
        }
    }

    pub(super) fn into_operand(self) -> Result<Operand, CacheError> {
        let (pool_index, offset, length) = self.location;
        Ok(Operand {
            operand_type: OperandType::from_code(self.operand_type)?,
            dimensions: self.dimensions,
            number_of_consumers: self.number_of_consumers,
            scale: self.scale,
            zero_point: self.zero_point,
            lifetime: OperandLifeTime::from_code(self.lifetime)?,
            location: DataLocation { pool_index, offset, length },
            extra_params: match self.extra_params {
                DescribedExtraParams::None => ExtraParams::None,
                DescribedExtraParams::ChannelQuant { scales, channel_dim } => {
                    ExtraParams::ChannelQuant(ChannelQuant { scales: scales.into(), channel_dim })
                }
                DescribedExtraParams::Extension(bytes) => ExtraParams::Extension(bytes.into()),
            },
        })
    }
}
