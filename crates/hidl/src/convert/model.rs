//! Models and their parts.

use super::memory::pools_to_canonical;
use super::{ConversionError, Convert, all_from_canonical, all_to_canonical, codes};
use crate::{v1_0, v1_1, v1_2, v1_3};
use nnhal_hal::{HalVersion, Model, Obstacle, OperandLifeTime, Subgraph};

impl Convert for v1_0::DataLocation {
    type Canonical = nnhal_hal::DataLocation;

    fn to_canonical(&self) -> Result<nnhal_hal::DataLocation, ConversionError> {
        let Self { pool_index, offset, length } = *self;
        Ok(nnhal_hal::DataLocation { pool_index, offset, length })
    }

    fn from_canonical(location: &nnhal_hal::DataLocation) -> Result<Self, ConversionError> {
        let nnhal_hal::DataLocation { pool_index, offset, length } = *location;
        Ok(Self { pool_index, offset, length })
    }
}

impl Convert for v1_2::ExtraParams {
    type Canonical = nnhal_hal::ExtraParams;

    fn to_canonical(&self) -> Result<nnhal_hal::ExtraParams, ConversionError> {
        Ok(match self {
            Self::None => nnhal_hal::ExtraParams::None,
            Self::ChannelQuant(quant) => {
                nnhal_hal::ExtraParams::ChannelQuant(nnhal_hal::ChannelQuant {
                    scales: quant.scales.as_slice().into(),
                    channel_dim: quant.channel_dim,
                })
            }
            Self::Extension(bytes) => nnhal_hal::ExtraParams::Extension(bytes.clone()),
            Self::Unknown { tag } => {
                return Err(ConversionError::UnknownTag { union: "ExtraParams", found: *tag });
            }
        })
    }

    fn from_canonical(extra_params: &nnhal_hal::ExtraParams) -> Result<Self, ConversionError> {
        Ok(match extra_params {
            nnhal_hal::ExtraParams::None => Self::None,
            nnhal_hal::ExtraParams::ChannelQuant(quant) => {
                Self::ChannelQuant(v1_2::SymmPerChannelQuantParams {
                    scales: quant.scales.to_vec(),
                    channel_dim: quant.channel_dim,
                })
            }
            nnhal_hal::ExtraParams::Extension(bytes) => Self::Extension(bytes.clone()),
        })
    }
}

/// An operand of 1.0 and 1.1. Whether the version has its type is asked for whole models.
impl Convert for v1_0::Operand {
    type Canonical = nnhal_hal::Operand;

    fn to_canonical(&self) -> Result<nnhal_hal::Operand, ConversionError> {
        Ok(nnhal_hal::Operand {
            operand_type: codes::operand_type(self.operand_type)?,
            dimensions: self.dimensions.clone(),
            number_of_consumers: self.number_of_consumers,
            scale: self.scale,
            zero_point: self.zero_point,
            lifetime: OperandLifeTime::from_code(self.lifetime)?,
            location: self.location.to_canonical()?,
            extra_params: nnhal_hal::ExtraParams::None,
        })
    }

    /// Leaves extra parameters out; a model that has some was refused before.
    fn from_canonical(operand: &nnhal_hal::Operand) -> Result<Self, ConversionError> {
        Ok(Self {
            operand_type: codes::of_operand_type(operand.operand_type),
            dimensions: operand.dimensions.clone(),
            number_of_consumers: operand.number_of_consumers,
            scale: operand.scale,
            zero_point: operand.zero_point,
            lifetime: operand.lifetime.code(),
            location: Convert::from_canonical(&operand.location)?,
        })
    }
}

/// An operand of 1.2 and 1.3. Whether the version has its type is asked for whole models.
impl Convert for v1_2::Operand {
    type Canonical = nnhal_hal::Operand;

    fn to_canonical(&self) -> Result<nnhal_hal::Operand, ConversionError> {
        Ok(nnhal_hal::Operand {
            operand_type: codes::operand_type(self.operand_type)?,
            dimensions: self.dimensions.clone(),
            number_of_consumers: self.number_of_consumers,
            scale: self.scale,
            zero_point: self.zero_point,
            lifetime: OperandLifeTime::from_code(self.lifetime)?,
            location: self.location.to_canonical()?,
            extra_params: self.extra_params.to_canonical()?,
        })
    }

    fn from_canonical(operand: &nnhal_hal::Operand) -> Result<Self, ConversionError> {
        Ok(Self {
            operand_type: codes::of_operand_type(operand.operand_type),
            dimensions: operand.dimensions.clone(),
            number_of_consumers: operand.number_of_consumers,
            scale: operand.scale,
            zero_point: operand.zero_point,
            lifetime: operand.lifetime.code(),
            location: Convert::from_canonical(&operand.location)?,
            extra_params: Convert::from_canonical(&operand.extra_params)?,
        })
    }
}

/// An operation of any version. Whether the version has its type is asked for whole models.
impl Convert for v1_0::Operation {
    type Canonical = nnhal_hal::Operation;

    fn to_canonical(&self) -> Result<nnhal_hal::Operation, ConversionError> {
        Ok(nnhal_hal::Operation {
            operation_type: codes::operation_type(self.operation_type)?,
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
        })
    }

    fn from_canonical(operation: &nnhal_hal::Operation) -> Result<Self, ConversionError> {
        Ok(Self {
            operation_type: codes::of_operation_type(operation.operation_type),
            inputs: operation.inputs.clone(),
            outputs: operation.outputs.clone(),
        })
    }
}

impl Convert for v1_2::ExtensionNameAndPrefix {
    type Canonical = nnhal_hal::ExtensionNameAndPrefix;

    fn to_canonical(&self) -> Result<nnhal_hal::ExtensionNameAndPrefix, ConversionError> {
        Ok(nnhal_hal::ExtensionNameAndPrefix { name: self.name.clone(), prefix: self.prefix })
    }

    fn from_canonical(row: &nnhal_hal::ExtensionNameAndPrefix) -> Result<Self, ConversionError> {
        Ok(Self { name: row.name.clone(), prefix: row.prefix })
    }
}

impl Convert for v1_3::Subgraph {
    type Canonical = Subgraph;

    fn to_canonical(&self) -> Result<Subgraph, ConversionError> {
        graph(&self.operands, &self.operations, &self.input_indexes, &self.output_indexes)
    }

    fn from_canonical(subgraph: &Subgraph) -> Result<Self, ConversionError> {
        Ok(Self {
            operands: all_from_canonical(&subgraph.operands)?,
            operations: all_from_canonical(&subgraph.operations)?,
            input_indexes: subgraph.inputs.clone(),
            output_indexes: subgraph.outputs.clone(),
        })
    }
}

/// The parts of a graph put together.
fn graph<O: Convert<Canonical = nnhal_hal::Operand>>(
    operands: &[O],
    operations: &[v1_0::Operation],
    inputs: &[u32],
    outputs: &[u32],
) -> Result<Subgraph, ConversionError> {
    Ok(Subgraph {
        operands: all_to_canonical(operands)?,
        operations: all_to_canonical(operations)?,
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
    })
}

/// Refuses a model with anything that the version does not have.
fn expect_expressible(model: &Model, version: HalVersion) -> Result<(), ConversionError> {
    ConversionError::expect_none(version, model.obstacles_in(version))
}

/// As [`expect_expressible`], for a model that came through the version. A tensor of no dimensions
/// has words in every version, and is for the validator to judge (contract: MODEL-6).
fn expect_known(model: &Model, version: HalVersion) -> Result<(), ConversionError> {
    let mut obstacles = model.obstacles_in(version);
    obstacles.retain(|obstacle| !matches!(obstacle, Obstacle::UnknownRank { .. }));
    ConversionError::expect_none(version, obstacles)
}

impl Convert for v1_0::Model {
    type Canonical = Model;

    fn to_canonical(&self) -> Result<Model, ConversionError> {
        let model = Model {
            main: graph(
                &self.operands,
                &self.operations,
                &self.input_indexes,
                &self.output_indexes,
            )?,
            operand_values: self.operand_values.clone(),
            pools: pools_to_canonical(&self.pools)?,
            ..Model::default()
        };
        expect_known(&model, HalVersion::V1_0)?;
        Ok(model)
    }

    fn from_canonical(model: &Model) -> Result<Self, ConversionError> {
        expect_expressible(model, HalVersion::V1_0)?;
        Ok(Self {
            operands: all_from_canonical(&model.main.operands)?,
            operations: all_from_canonical(&model.main.operations)?,
            input_indexes: model.main.inputs.clone(),
            output_indexes: model.main.outputs.clone(),
            operand_values: model.operand_values.clone(),
            pools: all_from_canonical(&model.pools)?,
        })
    }
}

impl Convert for v1_1::Model {
    type Canonical = Model;

    fn to_canonical(&self) -> Result<Model, ConversionError> {
        let model = Model {
            main: graph(
                &self.operands,
                &self.operations,
                &self.input_indexes,
                &self.output_indexes,
            )?,
            operand_values: self.operand_values.clone(),
            pools: pools_to_canonical(&self.pools)?,
            relax_computation_float32_to_float16: self.relax_computation_float32to_float16,
            ..Model::default()
        };
        expect_known(&model, HalVersion::V1_1)?;
        Ok(model)
    }

    fn from_canonical(model: &Model) -> Result<Self, ConversionError> {
        expect_expressible(model, HalVersion::V1_1)?;
        Ok(Self {
            operands: all_from_canonical(&model.main.operands)?,
            operations: all_from_canonical(&model.main.operations)?,
            input_indexes: model.main.inputs.clone(),
            output_indexes: model.main.outputs.clone(),
            operand_values: model.operand_values.clone(),
            pools: all_from_canonical(&model.pools)?,
            relax_computation_float32to_float16: model.relax_computation_float32_to_float16,
        })
    }
}

impl Convert for v1_2::Model {
    type Canonical = Model;

    fn to_canonical(&self) -> Result<Model, ConversionError> {
        let model = Model {
            main: graph(
                &self.operands,
                &self.operations,
                &self.input_indexes,
                &self.output_indexes,
            )?,
            referenced: Vec::new(),
            operand_values: self.operand_values.clone(),
            pools: pools_to_canonical(&self.pools)?,
            relax_computation_float32_to_float16: self.relax_computation_float32to_float16,
            extension_name_to_prefix: all_to_canonical(&self.extension_name_to_prefix)?,
        };
        expect_known(&model, HalVersion::V1_2)?;
        Ok(model)
    }

    fn from_canonical(model: &Model) -> Result<Self, ConversionError> {
        expect_expressible(model, HalVersion::V1_2)?;
        Ok(Self {
            operands: all_from_canonical(&model.main.operands)?,
            operations: all_from_canonical(&model.main.operations)?,
            input_indexes: model.main.inputs.clone(),
            output_indexes: model.main.outputs.clone(),
            operand_values: model.operand_values.clone(),
            pools: all_from_canonical(&model.pools)?,
            relax_computation_float32to_float16: model.relax_computation_float32_to_float16,
            extension_name_to_prefix: all_from_canonical(&model.extension_name_to_prefix)?,
        })
    }
}

impl Convert for v1_3::Model {
    type Canonical = Model;

    fn to_canonical(&self) -> Result<Model, ConversionError> {
        let model = Model {
            main: self.main.to_canonical()?,
            referenced: all_to_canonical(&self.referenced)?,
            operand_values: self.operand_values.clone(),
            pools: pools_to_canonical(&self.pools)?,
            relax_computation_float32_to_float16: self.relax_computation_float32to_float16,
            extension_name_to_prefix: all_to_canonical(&self.extension_name_to_prefix)?,
        };
        expect_known(&model, HalVersion::V1_3)?;
        Ok(model)
    }

    fn from_canonical(model: &Model) -> Result<Self, ConversionError> {
        expect_expressible(model, HalVersion::V1_3)?;
        Ok(Self {
            main: Convert::from_canonical(&model.main)?,
            referenced: all_from_canonical(&model.referenced)?,
            operand_values: model.operand_values.clone(),
            pools: all_from_canonical(&model.pools)?,
            relax_computation_float32to_float16: model.relax_computation_float32_to_float16,
            extension_name_to_prefix: all_from_canonical(&model.extension_name_to_prefix)?,
        })
    }
}
