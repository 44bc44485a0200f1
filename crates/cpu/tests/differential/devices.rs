//! The devices that are compared.

use crate::calls::model::{Tensor, execute};
use nnhal_cpu::{CpuEngine, CpuProgram, Passes, Settings};
use nnhal_driver::{
    Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace, Program,
};
use nnhal_hal::memory::MemoryError;
use nnhal_hal::{
    Capabilities, DataLocation, Device, DeviceType, Memory, Model, Request, RequestMemoryPool,
    Support,
};
use nnhal_kernels::InstructionSet;
use nnhal_ops::ValidModel;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};

/// The fast engine with certain settings.
pub struct Candidate {
    /// Its settings, for people.
    pub name: String,
    /// It.
    pub device: Arc<dyn Device>,
    /// Whether requests are in memory of this process alone.
    is_private: bool,
}

impl Candidate {
    fn new(name: impl Into<String>, device: Arc<dyn Device>) -> Self {
        Self { name: name.into(), device, is_private: false }
    }

    /// What a model gives.
    pub fn execute(&self, model: &Model, request: &Request) -> Result<Vec<Tensor>, String> {
        if !self.is_private {
            return execute(&*self.device, model, request);
        }
        let request = privately(request).map_err(|error| error.to_string())?;
        execute(&*self.device, model, &request)
    }
}

/// The same request, with outputs and inputs in memory of this process alone, each by itself.
fn privately(request: &Request) -> Result<Request, MemoryError> {
    let mut copy = request.clone();
    for argument in copy.inputs.iter_mut().chain(&mut copy.outputs).filter(|it| !it.has_no_value) {
        let DataLocation { pool_index, offset, length } = argument.location;
        let Some(RequestMemoryPool::Memory(shared)) = request.pools.get(pool_index as usize) else {
            continue;
        };
        let memory = Memory::private(u64::from(length).max(1))?;
        let bytes = shared.view()?.read_to_vec(offset.into(), length.into())?;
        memory.view()?.write(0, &bytes)?;
        let pool_index = u32::try_from(copy.pools.len()).expect("few arguments");
        argument.location = DataLocation { pool_index, offset: 0, length };
        copy.pools.push(RequestMemoryPool::Memory(memory));
    }
    Ok(copy)
}

/// The fast engine with every instruction set that there is here, on one thread and on two, with outputs in memory that
/// others may have and in memory that they may not, and with programs that were saved and restored.
pub fn candidates() -> &'static [Candidate] {
    static CANDIDATES: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
        let sets = InstructionSet::available();
        sets.flat_map(|instruction_set| {
            [1, 2].map(|threads| {
                let threads = NonZeroUsize::new(threads).expect("a number above 0");
                let settings =
                    Settings { instruction_set, ..Settings::default() }.with_threads(threads);
                let name = format!("{instruction_set}, {threads} threads");
                Candidate::new(name, nnhal_cpu::device(settings))
            })
        })
        .chain([false, true].map(|is_private| {
            let settings = Settings { least_in_place: 1, ..Settings::default() };
            let device = nnhal_cpu::device(settings);
            Candidate { is_private, ..Candidate::new("outputs beside the arena", device) }
        }))
        .chain([Candidate::new(
            "restored",
            Arc::new(DriverDevice::new(Restoring(CpuEngine::new(Settings::default())))),
        )])
        .collect()
    });
    &CANDIDATES
}

/// The fast engine without each pass, with each pass alone, and without any, on one thread.
pub fn with_passes_off() -> &'static [Candidate] {
    static CANDIDATES: LazyLock<Vec<Candidate>> = LazyLock::new(|| {
        let candidate = |name: String, passes: Passes| {
            let settings = Settings { passes, ..Settings::default() };
            let settings = settings.with_threads(NonZeroUsize::MIN);
            Candidate::new(name, nnhal_cpu::device(settings))
        };
        let known = "a name of the table";
        let without = |name: &str| {
            candidate(format!("without {name}"), Passes::ALL.without(name).expect(known))
        };
        let alone =
            |name: &str| candidate(format!("{name} alone"), Passes::NONE.with(name).expect(known));
        Passes::names()
            .flat_map(|name| [without(name), alone(name)])
            .chain([candidate("without passes".to_owned(), Passes::NONE)])
            .collect()
    });
    &CANDIDATES
}

/// The fast engine, every program of which that can be saved is.
struct Restoring(CpuEngine);

impl Engine for Restoring {
    type Program = CpuProgram;

    fn name(&self) -> &str {
        "nnhal-restoring"
    }

    fn version_string(&self) -> String {
        self.0.version_string()
    }

    fn device_type(&self) -> DeviceType {
        self.0.device_type()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn extensions(&self) -> Vec<nnhal_hal::Extension> {
        self.0.extensions()
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        self.0.supports(model, place)
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<CpuProgram, EngineError> {
        let program = self.0.compile(model, options, budget)?;
        match program.save() {
            Some(saved) => self.0.restore(saved.into(), options, budget),
            None => Ok(program),
        }
    }
}

/// What they are compared with.
pub fn reference() -> &'static dyn Device {
    static REFERENCE: LazyLock<Arc<dyn Device>> = LazyLock::new(nnhal_reference::device);
    &**REFERENCE
}
