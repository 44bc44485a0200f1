//! What a device says of itself, and what executions answer.

use super::clock::NONE;
use super::model::{operand_type_from_wire, operand_type_to_wire};
use super::{ConversionError, Result, all_signed, all_unsigned, signed, unsigned};
use crate::interface::nn;
use nn::Capabilities::Capabilities as WireCapabilities;
use nn::Extension::Extension as WireExtension;
use nn::ExtensionOperandTypeInformation::ExtensionOperandTypeInformation as WireExtensionType;
use nn::OperandPerformance::OperandPerformance as WirePerformance;
use nn::OutputShape::OutputShape as WireShape;
use nn::PerformanceInfo::PerformanceInfo as WireInfo;
use nn::Timing::Timing as WireTiming;
use nnhal_hal::{
    Capabilities, Extension, ExtensionOperandType, OperandPerformance, OperandType, OutputShape,
    PerformanceInfo, Timing,
};
use std::time::Duration;

fn info_from_wire(info: &WireInfo) -> PerformanceInfo {
    PerformanceInfo { exec_time: info.execTime, power_usage: info.powerUsage }
}

fn info_to_wire(info: PerformanceInfo) -> WireInfo {
    WireInfo { execTime: info.exec_time, powerUsage: info.power_usage }
}

/// Capabilities from the wire.
///
/// # Errors
/// A number that is no operand type.
pub fn capabilities_from_wire(capabilities: &WireCapabilities) -> Result<Capabilities> {
    let row = |row: &WirePerformance| {
        let operand_type = operand_type_from_wire(row.r#type)?;
        Ok(OperandPerformance { operand_type, info: info_from_wire(&row.info) })
    };
    Ok(Capabilities {
        relaxed_float32_to_float16_scalar: info_from_wire(
            &capabilities.relaxedFloat32toFloat16PerformanceScalar,
        ),
        relaxed_float32_to_float16_tensor: info_from_wire(
            &capabilities.relaxedFloat32toFloat16PerformanceTensor,
        ),
        operand_performance: capabilities
            .operandPerformance
            .iter()
            .map(row)
            .collect::<Result<_>>()?,
        if_performance: info_from_wire(&capabilities.ifPerformance),
        while_performance: info_from_wire(&capabilities.whilePerformance),
    })
}

/// Capabilities for the wire: of the types that it has.
///
/// # Errors
/// None that a device's capabilities could lead to.
pub fn capabilities_to_wire(capabilities: &Capabilities) -> Result<WireCapabilities> {
    let known = |row: &&OperandPerformance| {
        !matches!(row.operand_type, OperandType::Oem | OperandType::TensorOemByte)
    };
    let row = |row: &OperandPerformance| {
        let r#type = operand_type_to_wire(row.operand_type)?;
        Ok(WirePerformance { r#type, info: info_to_wire(row.info) })
    };
    Ok(WireCapabilities {
        relaxedFloat32toFloat16PerformanceScalar: info_to_wire(
            capabilities.relaxed_float32_to_float16_scalar,
        ),
        relaxedFloat32toFloat16PerformanceTensor: info_to_wire(
            capabilities.relaxed_float32_to_float16_tensor,
        ),
        operandPerformance: capabilities
            .operand_performance
            .iter()
            .filter(known)
            .map(row)
            .collect::<Result<_>>()?,
        ifPerformance: info_to_wire(capabilities.if_performance),
        whilePerformance: info_to_wire(capabilities.while_performance),
    })
}

/// Extensions from the wire.
///
/// # Errors
/// Negative sizes.
pub fn extensions_from_wire(extensions: &[WireExtension]) -> Result<Vec<Extension>> {
    let operand_type = |found: &WireExtensionType| {
        Ok(ExtensionOperandType {
            number: found.r#type,
            is_tensor: found.isTensor,
            byte_size: unsigned("the size of an extension's type", found.byteSize)?,
        })
    };
    let extension = |extension: &WireExtension| {
        Ok(Extension {
            name: extension.name.clone(),
            operand_types: extension
                .operandTypes
                .iter()
                .map(operand_type)
                .collect::<Result<_>>()?,
        })
    };
    extensions.iter().map(extension).collect()
}

/// Extensions for the wire.
///
/// # Errors
/// Sizes above 31 bits.
pub fn extensions_to_wire(extensions: &[Extension]) -> Result<Vec<WireExtension>> {
    let operand_type = |stated: &ExtensionOperandType| {
        Ok(WireExtensionType {
            r#type: stated.number,
            isTensor: stated.is_tensor,
            byteSize: signed("the size of an extension's type", stated.byte_size)?,
        })
    };
    let extension = |extension: &Extension| {
        Ok(WireExtension {
            name: extension.name.clone(),
            operandTypes: extension
                .operand_types
                .iter()
                .map(operand_type)
                .collect::<Result<_>>()?,
        })
    };
    extensions.iter().map(extension).collect()
}

/// Shapes from the wire.
///
/// # Errors
/// Negative dimensions.
pub fn shapes_from_wire(shapes: &[WireShape]) -> Result<Vec<OutputShape>> {
    let shape = |shape: &WireShape| {
        let dimensions = all_unsigned("a dimension", &shape.dimensions)?;
        Ok(OutputShape { dimensions, is_sufficient: shape.isSufficient })
    };
    shapes.iter().map(shape).collect()
}

/// Shapes for the wire.
///
/// # Errors
/// Dimensions above 31 bits.
pub fn shapes_to_wire(shapes: &[OutputShape]) -> Result<Vec<WireShape>> {
    let shape = |shape: &OutputShape| {
        let dimensions = all_signed("a dimension", &shape.dimensions)?;
        Ok(WireShape { dimensions, isSufficient: shape.is_sufficient })
    };
    shapes.iter().map(shape).collect()
}

/// Times from the wire.
///
/// # Errors
/// Negative times other than -1, which stands for none.
pub fn timing_from_wire(timing: &WireTiming) -> Result<Timing> {
    let time = |found: i64| match found {
        NONE => Ok(None),
        found => u64::try_from(found)
            .map(|nanoseconds| Some(Duration::from_nanos(nanoseconds)))
            .map_err(|_| ConversionError::Negative { what: "a time", found }),
    };
    Ok(Timing {
        time_on_device: time(timing.timeOnDeviceNs)?,
        time_in_driver: time(timing.timeInDriverNs)?,
    })
}

/// Times for the wire.
pub fn timing_to_wire(timing: Timing) -> WireTiming {
    WireTiming {
        timeOnDeviceNs: super::clock::duration_on_wire(timing.time_on_device),
        timeInDriverNs: super::clock::duration_on_wire(timing.time_in_driver),
    }
}
