//! [`DriverDevice`]: a [`hal::Device`] over any engine.

use crate::budget::Budget;
use crate::buffers::allocation::allocate;
use crate::engine::{CompileOptions, Engine};
use crate::error::EngineError;
use crate::extension_types::ExtensionTypes;
use crate::interface::Interface;
use crate::prepared::Prepared;
use crate::schedule::Scheduler;
use crate::support::{expect_supported, supported_operations};
use hal::{
    Buffer, BufferDescription, Capabilities, Device, DeviceType, Error, Extension, HalVersion,
    Model, PrepareOptions, PreparedModel, Result, Support,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A driver: the contract, over an engine.
#[derive(Debug)]
pub struct DriverDevice<E> {
    engine: E,
    /// One for all that the device computes; also tells its prepared models from those of others.
    scheduler: Scheduler,
}

impl<E: Engine> DriverDevice<E> {
    /// A driver over this engine.
    pub fn new(engine: E) -> Self {
        let scheduler = Scheduler::new(engine.executions_at_once());
        Self { engine, scheduler }
    }

    /// The engine.
    pub fn engine(&self) -> &E {
        &self.engine
    }
}

impl<E: Engine> Device for DriverDevice<E> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn version_string(&self) -> String {
        self.engine.version_string()
    }

    fn device_type(&self) -> DeviceType {
        self.engine.device_type()
    }

    fn capabilities(&self) -> Capabilities {
        self.engine.capabilities()
    }

    fn supported_extensions(&self) -> Vec<Extension> {
        self.engine.extensions()
    }

    fn supported_operations(&self, model: &Model, version: HalVersion) -> Result<Vec<Support>> {
        guarded(|| Ok(supported_operations(&self.engine, &ops::validate(model, version)?)))
    }

    /// Compiles on the caller's thread. A valid model with operations that the engine does not
    /// support is a `GENERAL_FAILURE` (contract: PREP-5) whose reason is
    /// [`UnsupportedOperations`](crate::UnsupportedOperations). Cache files are left alone: not
    /// saving is always allowed (contract: PREP-8).
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>> {
        guarded(|| {
            // Arguments before deadlines (contract: GEN-4).
            let model = ops::validate(model, version)?;
            let mut budget = Budget::new(options.deadline, options.priority);
            if let Some(cancellation) = options.cancellation {
                budget = budget.with_cancellation(cancellation);
            }
            budget.check_before_start().map_err(EngineError::from)?;
            expect_supported(&self.engine, &model).map_err(Error::failure)?;
            let budget = budget.take_turn(&self.scheduler).map_err(EngineError::from)?;
            let compile =
                CompileOptions { preference: options.preference, priority: options.priority };
            let program = self.engine.compile(&model, &compile, &budget)?;
            let extension_types = ExtensionTypes::of(model.model(), &self.engine.extensions());
            let prepared: Arc<dyn PreparedModel> = Arc::new(Prepared::new(
                Interface::of(&model).with_extension_types(extension_types),
                Box::new(program),
                options.priority,
                self.scheduler.clone(),
            ));
            Ok(prepared)
        })
    }

    fn allocate(&self, description: &BufferDescription) -> Result<Arc<dyn Buffer>> {
        guarded(|| allocate(description, |prepared| prepared.scheduler().is_same(&self.scheduler)))
    }
}

/// Does some work and turns a panic into an error, whether the engine's or ours (contract: GEN-8).
/// Nothing that the driver keeps is changed inside, so nothing can be left half done.
pub(crate) fn guarded<T, E: From<EngineError>>(
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|payload| Err(EngineError::panicked(&*payload).into()))
}
