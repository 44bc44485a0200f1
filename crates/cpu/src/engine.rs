//! [`CpuEngine`]

use crate::DEVICE_NAME;
use crate::program::CpuProgram;
use crate::settings::Settings;
use crate::teams::Teams;
use bytes::Bytes;
use nnhal_driver::{Budget, CompileOptions, Engine, EngineError, OperationPlace};
use nnhal_hal::{Capabilities, DeviceType, Extension, PerformanceInfo, Support};
use nnhal_ops::{ValidModel, extension};
use std::sync::{Arc, OnceLock};

/// How many processors the process had when the first engine asked: each time, files of control groups are read, and sessions
/// come and go with their device.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The engine behind `nnhal-cpu`.
#[derive(Debug)]
pub struct CpuEngine {
    settings: Settings,
    teams: Arc<Teams>,
}

impl CpuEngine {
    /// An engine with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings, teams: Arc::new(Teams::new(settings.threads.get())) }
    }
}

impl Engine for CpuEngine {
    type Program = CpuProgram;

    fn name(&self) -> &str {
        DEVICE_NAME
    }

    fn version_string(&self) -> String {
        format!("{} ({})", env!("CARGO_PKG_VERSION"), self.settings.instruction_set)
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    /// It is the processor that the numbers are relative to.
    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn executions_at_once(&self) -> usize {
        processors().div_ceil(self.settings.threads.get())
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
        _: &CompileOptions,
        budget: &Budget,
    ) -> Result<CpuProgram, EngineError> {
        CpuProgram::new(model, self.settings, &self.teams, budget)
    }

    fn restore(
        &self,
        saved: Bytes,
        _: &CompileOptions,
        budget: &Budget,
    ) -> Result<CpuProgram, EngineError> {
        CpuProgram::restored(&saved, self.settings, &self.teams, budget)
    }
}
