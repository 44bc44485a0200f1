//! Models.

use super::hints::{prefixes_from_wire, prefixes_to_wire};
use super::{
    ConversionError, Result, all_signed, all_unsigned, memory_from_wire, memory_to_wire, short,
    signed, unsigned,
};
use crate::interface::nn;
use nn::DataLocation::DataLocation as WireLocation;
use nn::Model::Model as Wire;
use nn::Operand::Operand as WireOperand;
use nn::OperandExtraParams::OperandExtraParams as WireExtra;
use nn::OperandLifeTime::OperandLifeTime as WireLifeTime;
use nn::OperandType::OperandType as WireOperandType;
use nn::Operation::Operation as WireOperation;
use nn::OperationType::OperationType as WireOperationType;
use nn::Subgraph::Subgraph as WireSubgraph;
use nn::SymmPerChannelQuantParams::SymmPerChannelQuantParams;
use nnhal_hal::{
    ChannelQuant, DataLocation, ExtraParams, Memory, Model, Operand, OperandLifeTime, OperandType,
    Operation, OperationType, Subgraph,
};

pub(super) fn location_from_wire(location: &WireLocation) -> Result<DataLocation> {
    short("padding", location.padding)?;
    Ok(DataLocation {
        pool_index: unsigned("the index of a pool", location.poolIndex)?,
        offset: short("an offset", location.offset)?,
        length: short("a length", location.length)?,
    })
}

/// Where only arguments of requests may have padding (`DataLocation.aidl`).
pub(super) fn unpadded_from_wire(location: &WireLocation) -> Result<DataLocation> {
    match location.padding {
        0 => location_from_wire(location),
        padding => Err(ConversionError::Unpadded(padding)),
    }
}

pub(super) fn location_to_wire(location: &DataLocation) -> Result<WireLocation> {
    Ok(WireLocation {
        poolIndex: signed("the index of a pool", location.pool_index)?,
        offset: location.offset.into(),
        length: location.length.into(),
        padding: 0,
    })
}

pub(super) fn operand_type_from_wire(found: WireOperandType) -> Result<OperandType> {
    let operand_type = OperandType::from_code(unsigned("an operand type", found.get())?)?;
    match operand_type {
        OperandType::Oem | OperandType::TensorOemByte => no(operand_type),
        known => Ok(known),
    }
}

pub(super) fn operand_type_to_wire(operand_type: OperandType) -> Result<WireOperandType> {
    match operand_type {
        OperandType::Oem | OperandType::TensorOemByte => no(operand_type),
        known => Ok(WireOperandType(signed("an operand type", known.code())?)),
    }
}

fn no<T>(what: impl std::fmt::Display) -> Result<T> {
    Err(ConversionError::Inexpressible(what.to_string()))
}

fn extra_from_wire(extra: Option<&WireExtra>) -> Result<ExtraParams> {
    Ok(match extra {
        None => ExtraParams::None,
        Some(WireExtra::ChannelQuant(SymmPerChannelQuantParams { scales, channelDim })) => {
            ExtraParams::ChannelQuant(ChannelQuant {
                scales: scales[..].into(),
                channel_dim: unsigned("the axis of channels", *channelDim)?,
            })
        }
        Some(WireExtra::Extension(bytes)) => ExtraParams::Extension(bytes[..].into()),
    })
}

fn extra_to_wire(extra: &ExtraParams) -> Result<Option<WireExtra>> {
    Ok(match extra {
        ExtraParams::None => None,
        ExtraParams::ChannelQuant(ChannelQuant { scales, channel_dim }) => {
            Some(WireExtra::ChannelQuant(SymmPerChannelQuantParams {
                scales: scales.to_vec(),
                channelDim: signed("the axis of channels", *channel_dim)?,
            }))
        }
        ExtraParams::Extension(bytes) => Some(WireExtra::Extension(bytes.to_vec())),
    })
}

fn operand_from_wire(operand: &WireOperand) -> Result<Operand> {
    Ok(Operand {
        operand_type: operand_type_from_wire(operand.r#type)?,
        dimensions: all_unsigned("a dimension", &operand.dimensions)?,
        number_of_consumers: 0,
        scale: operand.scale,
        zero_point: operand.zeroPoint,
        lifetime: OperandLifeTime::from_code(operand.lifetime.get())?,
        location: unpadded_from_wire(&operand.location)?,
        extra_params: extra_from_wire(operand.extraParams.as_ref())?,
    })
}

fn operand_to_wire(operand: &Operand) -> Result<WireOperand> {
    Ok(WireOperand {
        r#type: operand_type_to_wire(operand.operand_type)?,
        dimensions: all_signed("a dimension", &operand.dimensions)?,
        scale: operand.scale,
        zeroPoint: operand.zero_point,
        lifetime: WireLifeTime(operand.lifetime.code()),
        location: location_to_wire(&operand.location)?,
        extraParams: extra_to_wire(&operand.extra_params)?,
    })
}

fn operation_from_wire(operation: &WireOperation) -> Result<Operation> {
    let code = unsigned("an operation", operation.r#type.get())?;
    let operation_type = OperationType::from_code(code)?;
    if operation_type.is_oem() {
        return no(operation_type);
    }
    Ok(Operation {
        operation_type,
        inputs: all_unsigned("the index of an operand", &operation.inputs)?,
        outputs: all_unsigned("the index of an operand", &operation.outputs)?,
    })
}

fn operation_to_wire(operation: &Operation) -> Result<WireOperation> {
    if operation.operation_type.is_oem() {
        return no(operation.operation_type);
    }
    Ok(WireOperation {
        r#type: WireOperationType(signed("an operation", operation.operation_type.code())?),
        inputs: all_signed("the index of an operand", &operation.inputs)?,
        outputs: all_signed("the index of an operand", &operation.outputs)?,
    })
}

/// How often each operand is an input of an operation. An index that leads nowhere is validation's to
/// refuse.
fn consumers(operands: usize, operations: &[Operation]) -> Vec<u32> {
    let mut counted = vec![0_u32; operands];
    for input in operations.iter().flat_map(|operation| &operation.inputs) {
        if let Some(count) = counted.get_mut(*input as usize) {
            *count = count.saturating_add(1);
        }
    }
    counted
}

fn subgraph_from_wire(subgraph: &WireSubgraph) -> Result<Subgraph> {
    let mut operands: Vec<Operand> =
        subgraph.operands.iter().map(operand_from_wire).collect::<Result<_>>()?;
    let operations: Vec<Operation> =
        subgraph.operations.iter().map(operation_from_wire).collect::<Result<_>>()?;
    let counted = consumers(operands.len(), &operations);
    for (operand, counted) in operands.iter_mut().zip(counted) {
        operand.number_of_consumers = counted;
    }
    Ok(Subgraph {
        operands,
        operations,
        inputs: all_unsigned("the index of an input", &subgraph.inputIndexes)?,
        outputs: all_unsigned("the index of an output", &subgraph.outputIndexes)?,
    })
}

fn subgraph_to_wire(subgraph: &Subgraph) -> Result<WireSubgraph> {
    let counted = consumers(subgraph.operands.len(), &subgraph.operations);
    let mut said = subgraph.operands.iter().zip(counted).enumerate();
    let wrong = said.find(|(_, (operand, counted))| operand.number_of_consumers != *counted);
    if let Some((operand, (Operand { number_of_consumers, .. }, counted))) = wrong {
        return Err(ConversionError::Consumers { operand, found: *number_of_consumers, counted });
    }
    Ok(WireSubgraph {
        operands: subgraph.operands.iter().map(operand_to_wire).collect::<Result<_>>()?,
        operations: subgraph.operations.iter().map(operation_to_wire).collect::<Result<_>>()?,
        inputIndexes: all_signed("the index of an input", &subgraph.inputs)?,
        outputIndexes: all_signed("the index of an output", &subgraph.outputs)?,
    })
}

/// A model from the wire, with descriptors of its own.
///
/// # Errors
/// Numbers that are no code or negative, and pools that cannot be used.
pub fn model_from_wire(model: &Wire) -> Result<Model> {
    let pools = model.pools.iter().enumerate();
    let pools: Vec<Memory> = pools
        .map(|(pool, memory)| {
            memory_from_wire(memory)
                .map_err(|error| ConversionError::Pool { pool, error: Box::new(error) })
        })
        .collect::<Result<_>>()?;
    Ok(Model {
        main: subgraph_from_wire(&model.main)?,
        referenced: model.referenced.iter().map(subgraph_from_wire).collect::<Result<_>>()?,
        operand_values: model.operandValues[..].into(),
        pools,
        relax_computation_float32_to_float16: model.relaxComputationFloat32toFloat16,
        extension_name_to_prefix: prefixes_from_wire(&model.extensionNameToPrefix),
    })
}

/// A model for the wire, with descriptors of its own.
///
/// # Errors
/// A wrong number of uses of an operand; what the interface cannot express: OEM types and operations, numbers above 31 bits, hardware buffers
/// of unknown formats.
pub fn model_to_wire(model: &Model) -> Result<Wire> {
    Ok(Wire {
        main: subgraph_to_wire(&model.main)?,
        referenced: model.referenced.iter().map(subgraph_to_wire).collect::<Result<_>>()?,
        operandValues: model.operand_values.to_vec(),
        pools: model.pools.iter().map(memory_to_wire).collect::<Result<_>>()?,
        relaxComputationFloat32toFloat16: model.relax_computation_float32_to_float16,
        extensionNameToPrefix: prefixes_to_wire(&model.extension_name_to_prefix),
    })
}
