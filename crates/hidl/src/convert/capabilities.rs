//! What devices say of their cost. Each version has words of its own.
//!
//! Going to an older version costs the numbers that it has no words for (contract: DEV-CAP-7).
//! Coming from an older one fills the gaps as Android's runtime does:
//!
//! - 1.0 and 1.1 price two kinds of data. The float price goes to `FLOAT32` and `TENSOR_FLOAT32`,
//!   the quantized one to every other type of those versions. What is not said of relaxed float is
//!   the float price.
//! - before 1.3, IF and WHILE are [`PerformanceInfo::UNLISTED`].

use super::{ConversionError, Convert, all_to_canonical, codes};
use crate::{v1_0, v1_1, v1_2, v1_3};
use nnhal_hal::{Capabilities, HalVersion, OperandPerformance, OperandType, PerformanceInfo};

impl Convert for v1_0::PerformanceInfo {
    type Canonical = PerformanceInfo;

    fn to_canonical(&self) -> Result<PerformanceInfo, ConversionError> {
        let Self { exec_time, power_usage } = *self;
        Ok(PerformanceInfo { exec_time, power_usage })
    }

    fn from_canonical(info: &PerformanceInfo) -> Result<Self, ConversionError> {
        Ok(info_of(*info))
    }
}

fn info_of(info: PerformanceInfo) -> v1_0::PerformanceInfo {
    let PerformanceInfo { exec_time, power_usage } = info;
    v1_0::PerformanceInfo { exec_time, power_usage }
}

impl Convert for v1_2::OperandPerformance {
    type Canonical = OperandPerformance;

    fn to_canonical(&self) -> Result<OperandPerformance, ConversionError> {
        Ok(OperandPerformance {
            operand_type: codes::operand_type(self.operand_type)?,
            info: self.info.to_canonical()?,
        })
    }

    fn from_canonical(row: &OperandPerformance) -> Result<Self, ConversionError> {
        let operand_type = codes::of_operand_type(row.operand_type);
        Ok(Self { operand_type, info: info_of(row.info) })
    }
}

/// The rows that a version may state: its own types, but neither `SUBGRAPH` nor extensions'
/// (DEV-CAP-5, DEV-CAP-6), sorted, none twice (DEV-CAP-4).
fn rows(
    capabilities: &Capabilities,
    version: HalVersion,
) -> Result<Vec<v1_2::OperandPerformance>, ConversionError> {
    let mut rows: Vec<_> = capabilities
        .operand_performance
        .iter()
        .filter(|row| row.operand_type.since() <= version)
        .filter(|row| row.operand_type != OperandType::Subgraph)
        .filter(|row| !matches!(row.operand_type, OperandType::Extension(_)))
        .map(v1_2::OperandPerformance::from_canonical)
        .collect::<Result<_, _>>()?;
    rows.sort_by_key(|row| row.operand_type);
    rows.dedup_by_key(|row| row.operand_type);
    Ok(rows)
}

/// The prices of the two kinds of data by operand type.
fn rows_by_kind(float32: PerformanceInfo, quantized8: PerformanceInfo) -> Vec<OperandPerformance> {
    let old = OperandType::FUNDAMENTAL.iter().filter(|row| row.since() == HalVersion::V1_0);
    old.map(|operand_type| OperandPerformance {
        operand_type: *operand_type,
        info: match operand_type {
            OperandType::Float32 | OperandType::TensorFloat32 => float32,
            _ => quantized8,
        },
    })
    .collect()
}

impl Convert for v1_0::Capabilities {
    type Canonical = Capabilities;

    fn to_canonical(&self) -> Result<Capabilities, ConversionError> {
        v1_1::Capabilities {
            float32_performance: self.float32_performance,
            quantized8_performance: self.quantized8_performance,
            relaxed_float32to_float16_performance: self.float32_performance,
        }
        .to_canonical()
    }

    fn from_canonical(capabilities: &Capabilities) -> Result<Self, ConversionError> {
        Ok(Self {
            float32_performance: info_of(capabilities.of(OperandType::TensorFloat32)),
            quantized8_performance: info_of(capabilities.of(OperandType::TensorQuant8Asymm)),
        })
    }
}

impl Convert for v1_1::Capabilities {
    type Canonical = Capabilities;

    fn to_canonical(&self) -> Result<Capabilities, ConversionError> {
        let relaxed = self.relaxed_float32to_float16_performance.to_canonical()?;
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: relaxed,
            relaxed_float32_to_float16_tensor: relaxed,
            operand_performance: rows_by_kind(
                self.float32_performance.to_canonical()?,
                self.quantized8_performance.to_canonical()?,
            ),
            if_performance: PerformanceInfo::UNLISTED,
            while_performance: PerformanceInfo::UNLISTED,
        })
    }

    fn from_canonical(capabilities: &Capabilities) -> Result<Self, ConversionError> {
        let older = v1_0::Capabilities::from_canonical(capabilities)?;
        let relaxed = info_of(capabilities.relaxed_float32_to_float16_tensor);
        Ok(Self {
            float32_performance: older.float32_performance,
            quantized8_performance: older.quantized8_performance,
            relaxed_float32to_float16_performance: relaxed,
        })
    }
}

impl Convert for v1_2::Capabilities {
    type Canonical = Capabilities;

    fn to_canonical(&self) -> Result<Capabilities, ConversionError> {
        let scalar = self.relaxed_float32to_float16_performance_scalar;
        let tensor = self.relaxed_float32to_float16_performance_tensor;
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: scalar.to_canonical()?,
            relaxed_float32_to_float16_tensor: tensor.to_canonical()?,
            operand_performance: all_to_canonical(&self.operand_performance)?,
            if_performance: PerformanceInfo::UNLISTED,
            while_performance: PerformanceInfo::UNLISTED,
        })
    }

    fn from_canonical(capabilities: &Capabilities) -> Result<Self, ConversionError> {
        let scalar = info_of(capabilities.relaxed_float32_to_float16_scalar);
        let tensor = info_of(capabilities.relaxed_float32_to_float16_tensor);
        Ok(Self {
            relaxed_float32to_float16_performance_scalar: scalar,
            relaxed_float32to_float16_performance_tensor: tensor,
            operand_performance: rows(capabilities, HalVersion::V1_2)?,
        })
    }
}

impl Convert for v1_3::Capabilities {
    type Canonical = Capabilities;

    fn to_canonical(&self) -> Result<Capabilities, ConversionError> {
        let scalar = self.relaxed_float32to_float16_performance_scalar;
        let tensor = self.relaxed_float32to_float16_performance_tensor;
        Ok(Capabilities {
            relaxed_float32_to_float16_scalar: scalar.to_canonical()?,
            relaxed_float32_to_float16_tensor: tensor.to_canonical()?,
            operand_performance: all_to_canonical(&self.operand_performance)?,
            if_performance: self.if_performance.to_canonical()?,
            while_performance: self.while_performance.to_canonical()?,
        })
    }

    fn from_canonical(capabilities: &Capabilities) -> Result<Self, ConversionError> {
        let scalar = info_of(capabilities.relaxed_float32_to_float16_scalar);
        let tensor = info_of(capabilities.relaxed_float32_to_float16_tensor);
        Ok(Self {
            relaxed_float32to_float16_performance_scalar: scalar,
            relaxed_float32to_float16_performance_tensor: tensor,
            operand_performance: rows(capabilities, HalVersion::V1_3)?,
            if_performance: info_of(capabilities.if_performance),
            while_performance: info_of(capabilities.while_performance),
        })
    }
}
