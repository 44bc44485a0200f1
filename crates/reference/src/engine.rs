//! [`ReferenceEngine`]

use crate::DEVICE_NAME;
use nnhal_driver::memory::default_model_limit;
use nnhal_driver::{Budget, CompileOptions, Engine, EngineError, OperationPlace};
use nnhal_hal::{Capabilities, DeviceType, Extension, PerformanceInfo, Support};
use nnhal_interpreter::InterpretedProgram;
use nnhal_ops::{ValidModel, extension};

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
    type Program = InterpretedProgram;

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
        nnhal_interpreter::supports(model, place)
    }

    fn compile(
        &self,
        model: &ValidModel,
        _options: &CompileOptions,
        budget: &Budget,
    ) -> Result<InterpretedProgram, EngineError> {
        InterpretedProgram::new(model, &budget.memory().model(self.memory_limit), budget)
    }
}
