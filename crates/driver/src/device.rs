//! [`DriverDevice`]: a [`nnhal_hal::Device`] over any engine.

use crate::budget::Budget;
use crate::buffers::allocation::allocate;
use crate::cache::{CacheFiles, CacheKey, Content, Identity, ModelCache, Stored};
use crate::engine::{CompileOptions, Engine, Program as _};
use crate::error::EngineError;
use crate::extension_types::ExtensionTypes;
use crate::fenced::pending::{MOST_PENDING, Pending};
use crate::files::with_copied_pools;
use crate::interface::Interface;
use crate::memory::Ledger;
use crate::prepared::Prepared;
use crate::schedule::Scheduler;
use crate::support::{expect_supported, expect_whole, supported_of_checked};
use nnhal_hal::{
    Buffer, BufferDescription, CacheFilesNeeded, CacheToken, Capabilities, Deadline, Device,
    DeviceType, Error, Extension, HalVersion, Model, PrepareOptions, PreparedModel, Priority,
    Result, Support,
};
use nnhal_ops::ValidModel;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// A driver: the contract, over an engine.
#[derive(Debug)]
pub struct DriverDevice<E> {
    engine: E,
    /// One for all that the device computes; also tells its prepared models from those of others.
    scheduler: Scheduler,
    pending: Pending,
    /// Made when it is first asked for, because it leaves a key in the state directory.
    cache: OnceLock<Option<ModelCache>>,
}

impl<E: Engine> DriverDevice<E> {
    /// A driver over this engine. It caches compilations under a key of the state directory, see
    /// [`CacheKey::of_device`].
    pub fn new(engine: E) -> Self {
        let scheduler = Scheduler::new(engine.executions_at_once());
        let pending = Pending::new(engine.executions_at_once(), MOST_PENDING);
        Self { engine, scheduler, pending, cache: OnceLock::new() }
    }

    /// The same with another limit to the fenced executions that have not ended; by default 100,000.
    /// One more is refused with `RESOURCE_EXHAUSTED_TRANSIENT`.
    #[must_use]
    pub fn with_pending_executions(self, most: usize) -> Self {
        let pending = Pending::new(self.engine.executions_at_once(), most);
        Self { pending, ..self }
    }

    /// The same with another key for its cache.
    #[must_use]
    pub fn with_cache_key(self, key: &CacheKey) -> Self {
        let identity = Identity::here(self.engine.name(), &self.engine.version_string());
        Self { cache: Some(ModelCache::new(key, identity)).into(), ..self }
    }

    /// The same without a cache.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self { cache: None.into(), ..self }
    }

    fn cache(&self) -> Option<&ModelCache> {
        let of_device = || ModelCache::of_device(self.engine.name(), &self.engine.version_string());
        self.cache.get_or_init(of_device).as_ref()
    }

    /// Saves a compilation where the client wants it. That it could not be saved is nothing to the
    /// client (contract: PREP-7, PREP-8).
    fn save(
        &self,
        files: CacheFiles<'_>,
        model: &ValidModel,
        how: &CompileOptions,
        program: &E::Program,
    ) {
        if files.model.is_empty() && files.data.is_empty() {
            return;
        }
        let Some(cache) = self.cache() else { return };
        let saved = guarded(|| {
            let program = program.save();
            cache.save(files, model, how, program.as_deref()).map_err(Error::from)
        });
        if let Err(error) = saved {
            tracing::warn!(device = self.name(), %error, "a compilation was not saved");
        }
    }

    /// A prepared model of this device.
    fn prepared(
        &self,
        interface: Interface,
        program: E::Program,
        priority: Priority,
    ) -> Arc<dyn PreparedModel> {
        let scheduler = self.scheduler.clone();
        let pending = self.pending.clone();
        Arc::new(Prepared::new(interface, Box::new(program), priority, scheduler, pending))
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
        guarded(|| {
            let model = nnhal_ops::validate::check(model, version)?;
            Ok(supported_of_checked(&self.engine, model))
        })
    }

    /// Compiles on the caller's thread. A valid model with operations that the engine does not
    /// support is a `GENERAL_FAILURE` (contract: PREP-5) whose reason is
    /// [`UnsupportedOperations`](crate::UnsupportedOperations).
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>> {
        guarded(|| {
            // Arguments before deadlines (contract: GEN-4).
            // The charge counts copies of constants for as long as there are any.
            let (model, _charge) = with_copied_pools(model, Ledger::process())?;
            let model = nnhal_ops::validate::check(&model, version)?;
            let mut budget = Budget::new(options.deadline, options.priority);
            if let Some(cancellation) = &options.cancellation {
                budget = budget.with_cancellation(cancellation.clone());
            }
            budget.check_before_start().map_err(EngineError::from)?;
            let model = expect_whole(model).map_err(Error::failure)?;
            expect_supported(&self.engine, &model).map_err(Error::failure)?;
            let budget = budget.take_turn(&self.scheduler).map_err(EngineError::from)?;
            let compile =
                CompileOptions { preference: options.preference, priority: options.priority };
            let program = self.engine.compile(&model, &compile, &budget)?;
            drop(budget);
            let PrepareOptions { model_cache, data_cache, token, .. } = &options;
            let files = CacheFiles { model: model_cache, data: data_cache, token };
            self.save(files, &model, &compile, &program);
            let extension_types = ExtensionTypes::of(model.model(), &self.engine.extensions());
            let interface = Interface::of(&model).with_extension_types(extension_types);
            Ok(self.prepared(interface, program, options.priority))
        })
    }

    fn prepare_model_from_cache(
        &self,
        deadline: Option<Deadline>,
        model_cache: Vec<OwnedFd>,
        data_cache: Vec<OwnedFd>,
        token: &CacheToken,
    ) -> Result<Arc<dyn PreparedModel>> {
        guarded(|| {
            let cache = self.cache().ok_or_else(|| Error::failure("there is no cache"))?;
            let files = CacheFiles { model: &model_cache, data: &data_cache, token };
            // What lies in the files is an argument: looked at before deadlines (contract: GEN-4).
            let Stored { interface, options, content } =
                cache.load(files, &self.engine.extensions())?;
            let budget = Budget::new(deadline, options.priority);
            let budget = budget.take_turn(&self.scheduler).map_err(EngineError::from)?;
            let program = match content {
                Content::Program(saved) => self.engine.restore(saved, &options, &budget)?,
                Content::Model(model) => {
                    expect_supported(&self.engine, &model).map_err(Error::failure)?;
                    self.engine.compile(&model, &options, &budget)?
                }
            };
            Ok(self.prepared(interface, program, options.priority))
        })
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.cache().map_or_else(CacheFilesNeeded::default, |_| ModelCache::FILES_NEEDED)
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
