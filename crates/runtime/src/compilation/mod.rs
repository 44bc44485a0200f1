//! [`CompilationBuilder`] and [`Compilation`]: a model made ready to run on devices.

mod arenas;
mod build;

pub use build::CompilationBuilder;

use crate::devices::Device;
use crate::error::Result;
use crate::memory::{Direction, Role};
use crate::model::Model;
use crate::partition::Partitioning;
use crate::partition::plan::{Plan, StepRole};
use arenas::Arenas;
use nnhal_hal::Priority;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many compilations there have been.
static COMPILATIONS: AtomicU64 = AtomicU64::new(1);

/// A model that is ready to run. Clones are the same compilation.
#[derive(Clone)]
pub struct Compilation(Arc<Inner>);

struct Inner {
    number: u64,
    model: Model,
    /// The devices that the client chose, or all.
    devices: Vec<Device>,
    /// How many names the client chose the devices by; `None` if it chose none.
    names: Option<usize>,
    partitioning: Partitioning,
    priority: Priority,
    plan: Plan,
    arenas: Arenas,
}

impl Compilation {
    fn new(
        model: Model,
        devices: Vec<Device>,
        names: Option<usize>,
        partitioning: Partitioning,
        priority: Priority,
        plan: Plan,
    ) -> Self {
        let number = COMPILATIONS.fetch_add(1, Ordering::Relaxed);
        let arenas = Arenas::new();
        Self(Arc::new(Inner {
            number,
            model,
            devices,
            names,
            partitioning,
            priority,
            plan,
            arenas,
        }))
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.0.model
    }

    /// The devices that the client chose, or all.
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// Whether the client chose the devices.
    pub fn devices_were_chosen(&self) -> bool {
        self.0.names.is_some()
    }

    /// Whether the client chose one device, by one name, which is what measuring and timeouts demand.
    pub fn is_for_one_device(&self) -> bool {
        self.0.names == Some(1)
    }

    /// The steps that an execution takes, in order: which operations of the model, by position when
    /// they were added, run on which device. `None`: the runtime runs an IF or WHILE itself, and
    /// its models by steps of their own.
    pub fn steps(&self) -> Vec<(Option<&Device>, Vec<usize>)> {
        self.0.plan.describe()
    }

    /// Whether values pass between steps whose size is not known before an execution.
    pub fn has_dynamic_temporaries(&self) -> bool {
        self.0.plan.has_dynamic_temporaries()
    }

    /// The multiple of bytes at which memory for an input is best placed.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such input.
    pub fn preferred_memory_alignment_for_input(&self, index: u32) -> Result<u32> {
        self.model().input(index).map(|_| MEMORY_ALIGNMENT)
    }

    /// The multiple of bytes to which memory for an input is best padded.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such input.
    pub fn preferred_memory_padding_for_input(&self, index: u32) -> Result<u32> {
        self.model().input(index).map(|_| MEMORY_PADDING)
    }

    /// The multiple of bytes at which memory for an output is best placed.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such output.
    pub fn preferred_memory_alignment_for_output(&self, index: u32) -> Result<u32> {
        self.model().output(index).map(|_| MEMORY_ALIGNMENT)
    }

    /// The multiple of bytes to which memory for an output is best padded.
    ///
    /// # Errors
    /// `BAD_DATA` if there is no such output.
    pub fn preferred_memory_padding_for_output(&self, index: u32) -> Result<u32> {
        self.model().output(index).map(|_| MEMORY_PADDING)
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn role(&self, direction: Direction, index: u32) -> Role {
        Role { compilation: self.0.number, direction, index }
    }

    pub(crate) fn partitioning(&self) -> Partitioning {
        self.0.partitioning
    }

    pub(crate) fn priority(&self) -> Priority {
        self.0.priority
    }

    pub(crate) fn arenas(&self) -> &Arenas {
        &self.0.arenas
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.0.plan
    }

    /// All uses of an argument.
    pub(crate) fn step_roles(&self, direction: Direction, index: u32) -> Vec<StepRole> {
        self.0.plan.step_roles(direction, index)
    }
}

/// What the interfaces of devices ask of memory at least, and what wide loads like.
const MEMORY_ALIGNMENT: u32 = 64;
/// Devices read and write whole values, and nothing behind them.
const MEMORY_PADDING: u32 = 1;

impl fmt::Debug for Compilation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Compilation")
            .field("model", &self.0.model)
            .field("devices", &self.0.devices)
            .field("partitioning", &self.0.partitioning)
            .field("steps", &self.steps())
            .finish()
    }
}
