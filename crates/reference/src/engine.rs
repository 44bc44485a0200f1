//! [`ReferenceEngine`]

use crate::DEVICE_NAME;
use crate::program::ReferenceProgram;
use nnhal_driver::memory::default_model_limit;
use nnhal_driver::{Budget, CompileOptions, Engine, EngineError, OperationPlace};
use nnhal_hal::{Capabilities, DeviceType, Extension, OperationType, PerformanceInfo, Support};
use nnhal_ops::{Signature, ValidModel, extension};

/// The engine behind `nnhal-reference`.
#[derive(Debug, Clone)]
pub struct ReferenceEngine {
    memory_limit: u64,
}

impl Default for ReferenceEngine {
    fn default() -> Self {
        Self::new()
    }
}

impl ReferenceEngine {
    /// An engine with [`default_model_limit`].
    pub fn new() -> Self {
        Self::with_memory_limit(default_model_limit())
    }

    /// An engine whose models may each take this many bytes: constants, and the values of their
    /// executions that are alive at once. Beyond that they end with `RESOURCE_EXHAUSTED_PERSISTENT`.
    pub fn with_memory_limit(memory_limit: u64) -> Self {
        Self { memory_limit }
    }
}

impl Engine for ReferenceEngine {
    type Program = ReferenceProgram;

    fn name(&self) -> &str {
        DEVICE_NAME
    }

    fn version_string(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    /// Measured against LiteRT on one thread: the digits network takes 60 times as long in floats and
    /// 97 times in 8 bits, face detection (float16 weights) 93 times. A processor that works as
    /// much longer draws as much more.
    fn capabilities(&self) -> Capabilities {
        let cost = |times| PerformanceInfo { exec_time: times, power_usage: times };
        let mut capabilities = Capabilities::uniform(cost(80.0));
        for row in &mut capabilities.operand_performance {
            if row.operand_type.quantized_range().is_some() {
                row.info = cost(100.0);
            }
        }
        // Choosing a subgraph costs nothing beside running it.
        capabilities.if_performance = PerformanceInfo::AS_CPU;
        capabilities.while_performance = PerformanceInfo::AS_CPU;
        capabilities
    }

    fn extensions(&self) -> Vec<Extension> {
        vec![extension::offered()]
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        let defined = match place.operation_type {
            OperationType::If | OperationType::While => {
                if let Err(error) = model.expect_bounded_pass() {
                    return Support::No(error.to_string());
                }
                true
            }
            OperationType::OemOperation => {
                return Support::No("only its vendor knows what it does".to_owned());
            }
            other => Signature::of(other).is_some(),
        };
        if !defined {
            let name = extension::operation_name(place.operation_type);
            return Support::No(format!("{name} is not implemented"));
        }
        let subgraph = model.subgraph(place.subgraph);
        let operation = &subgraph.operations[place.index];
        for operand in operation.inputs.iter().chain(&operation.outputs) {
            let operand_type = subgraph.operands[*operand as usize].operand_type;
            if operand_type.is_oem() || extension::element_size(operand_type).is_none() {
                return Support::No(format!("operand {operand} is of type {operand_type}"));
            }
        }
        Support::Yes
    }

    fn compile(
        &self,
        model: &ValidModel,
        _options: &CompileOptions,
        budget: &Budget,
    ) -> Result<ReferenceProgram, EngineError> {
        ReferenceProgram::new(model, &budget.memory().model(self.memory_limit), budget)
    }
}
