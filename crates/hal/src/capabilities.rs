//! [`Capabilities`]: how fast and how frugal a device is, relative to the CPU.

use crate::codes::HalVersion;
use crate::operand_type::OperandType;

/// Cost relative to the same work on the CPU: lower is better, 1.0 is the CPU's (DEV-CAP-1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerformanceInfo {
    /// Execution time as a multiple of the CPU's; above 0.
    pub exec_time: f32,
    /// Power drawn as a multiple of the CPU's; above 0.
    pub power_usage: f32,
}

impl PerformanceInfo {
    /// What counts for an operand type that is not listed.
    pub const UNLISTED: Self = Self { exec_time: f32::MAX, power_usage: f32::MAX };
    /// As the CPU.
    pub const AS_CPU: Self = Self { exec_time: 1.0, power_usage: 1.0 };

    /// Whether both numbers are above 0 and not NaN.
    pub fn is_valid(self) -> bool {
        self.exec_time > 0.0 && self.power_usage > 0.0
    }
}

/// What operations cost whose first operand is of this type (contract: DEV-CAP-8).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OperandPerformance {
    /// The type; not `SUBGRAPH` and not an extension's.
    pub operand_type: OperandType,
    /// The cost.
    pub info: PerformanceInfo,
}

/// What a device says of its own cost (1.3's `Capabilities`; older shapes derive from it).
#[derive(Debug, Clone, PartialEq)]
pub struct Capabilities {
    /// Scalars of float32 computed with the range and precision of float16.
    pub relaxed_float32_to_float16_scalar: PerformanceInfo,
    /// Tensors of float32 computed with the range and precision of float16.
    pub relaxed_float32_to_float16_tensor: PerformanceInfo,
    /// Sorted by type, no type twice (DEV-CAP-4).
    pub operand_performance: Vec<OperandPerformance>,
    /// What an IF costs besides its branches.
    pub if_performance: PerformanceInfo,
    /// What a WHILE costs besides its condition and body.
    pub while_performance: PerformanceInfo,
}

impl Capabilities {
    /// The same cost for everything.
    pub fn uniform(info: PerformanceInfo) -> Self {
        let operand_performance = OperandType::FUNDAMENTAL
            .iter()
            .filter(|operand_type| **operand_type != OperandType::Subgraph)
            .map(|operand_type| OperandPerformance { operand_type: *operand_type, info })
            .collect();
        Self {
            relaxed_float32_to_float16_scalar: info,
            relaxed_float32_to_float16_tensor: info,
            operand_performance,
            if_performance: info,
            while_performance: info,
        }
    }

    /// The cost listed for a type, or [`PerformanceInfo::UNLISTED`].
    pub fn of(&self, operand_type: OperandType) -> PerformanceInfo {
        self.operand_performance
            .iter()
            .find(|row| row.operand_type == operand_type)
            .map_or(PerformanceInfo::UNLISTED, |row| row.info)
    }

    /// The same capabilities as an interface of `version` may state them: types that it does not
    /// know are dropped (contract: DEV-CAP-5).
    #[must_use]
    pub fn in_version(mut self, version: HalVersion) -> Self {
        self.operand_performance.retain(|row| row.operand_type.since() <= version);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dev_cap_4_to_6_listed_types_are_sorted_and_known() {
        let capabilities = Capabilities::uniform(PerformanceInfo::AS_CPU);
        assert!(capabilities.operand_performance.is_sorted_by_key(|row| row.operand_type.code()));
        assert_eq!(capabilities.of(OperandType::Subgraph), PerformanceInfo::UNLISTED);
        let older = capabilities.in_version(HalVersion::V1_2);
        assert_eq!(older.of(OperandType::TensorQuant8AsymmSigned), PerformanceInfo::UNLISTED);
        assert_eq!(older.of(OperandType::TensorFloat32), PerformanceInfo::AS_CPU);
    }
}
