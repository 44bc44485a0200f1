//! [`DriverDevice`]: a [`nnhal_hal::Device`] over any engine.

use crate::allocation::allocate;
use crate::budget::Budget;
use crate::build_name::build;
use crate::cache::{CacheFiles, CacheKey, Content, Identity, ModelCache, Stored};
use crate::clients::{Admission, Clients};
use crate::engine::{CompileOptions, Engine, Program as _};
use crate::error::EngineError;
use crate::extension_types::ExtensionTypes;
use crate::files::with_copied_pools;
use crate::guarded::guarded;
use crate::interface::Interface;
use crate::interruption::Interruption;
use crate::memory::Ledger;
use crate::owner::Owner;
use crate::prepared::fenced;
use crate::prepared::{Prepared, Shared};
use crate::preparing;
use crate::schedule::Scheduler;
use crate::support::{expect_supported, expect_whole, supported_of_checked};
use nnhal_hal::{
    Buffer, BufferDescription, CacheFilesNeeded, Capabilities, Client, Device, DeviceType, Error,
    Extension, HalVersion, Model, PrepareOptions, PreparedModel, Priority, Result, Support,
};
use nnhal_ops::ValidModel;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// What a device returns as the fence of a fenced execution (contract: FENCE-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReturnedFences {
    /// A fence, before the execution has ended. It is a sync file of the kernel where that makes any
    /// ([`SyncFence::is_sync_file`](nnhal_hal::SyncFence::is_sync_file)). Elsewhere it is a socket that
    /// polls alike: `SYNC_IOC_MERGE` and `SYNC_IOC_FILE_INFO` do not work on it, nor do requests of
    /// drivers that take a sync file, as those of displays and GPUs do.
    #[default]
    AtOnce,
    /// None: the call returns when the execution has ended, as the interface allows. For clients that
    /// give fences to the kernel. The call takes as long as the fences that it waits for.
    NoneAfterTheEnd,
}

/// A driver: the contract, over an engine.
#[derive(Debug)]
pub struct DriverDevice<E> {
    engine: E,
    /// Also tells its prepared models from those of others.
    shared: Arc<Shared>,
    /// Made when it is first asked for, because it leaves a key in the state directory.
    cache: OnceLock<Option<ModelCache>>,
}

impl<E: Engine> DriverDevice<E> {
    /// A driver over this engine. It caches compilations under a key of the state directory, see
    /// [`CacheKey::of_device`].
    pub fn new(engine: E) -> Self {
        let at_once = engine.executions_at_once();
        let shared = Arc::new(Shared {
            number: Owner::number_device(),
            clients: Arc::new(Clients::default()),
            executions: Scheduler::new(at_once),
            preparations: Scheduler::new(preparing::slots(at_once)),
            pending: fenced::pending(at_once),
            ends_before_it_returns: AtomicBool::new(false),
        });
        Self { engine, shared, cache: OnceLock::new() }
    }

    /// The same with other fences of fenced executions.
    #[must_use]
    pub fn with_fences(self, fences: ReturnedFences) -> Self {
        let waits = fences == ReturnedFences::NoneAfterTheEnd;
        self.shared.ends_before_it_returns.store(waits, Ordering::Relaxed);
        self
    }

    /// Limits the number of clients at a time, otherwise 1024: those that have prepared models of it
    /// and have not left. More are refused when they prepare one, with `RESOURCE_EXHAUSTED_TRANSIENT`
    /// and the reason [`TooManyClients`](crate::TooManyClients). The process itself does not count.
    #[must_use]
    pub fn with_maximum_clients(self, maximum: usize) -> Self {
        self.shared.clients.set_limit(maximum);
        self
    }

    /// The same with another key for its cache.
    #[must_use]
    pub fn with_cache_key(self, key: &CacheKey) -> Self {
        let identity = Identity::here(self.engine.name(), &version_string(&self.engine));
        Self { cache: Some(ModelCache::new(key, identity)).into(), ..self }
    }

    /// The same without a cache.
    #[must_use]
    pub fn without_cache(self) -> Self {
        Self { cache: None.into(), ..self }
    }

    fn cache(&self) -> Option<&ModelCache> {
        let of_device = || ModelCache::of_device(self.engine.name(), &version_string(&self.engine));
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
        client: Client,
        admission: Admission,
    ) -> Arc<dyn PreparedModel> {
        let shared = Arc::clone(&self.shared);
        Arc::new(Prepared::new(interface, Arc::new(program), priority, client, admission, shared))
    }

    /// What preparing may take.
    fn budget(options: &PrepareOptions, priority: Priority) -> Budget {
        let budget = Budget::new(options.deadline, priority).with_client(options.client.clone());
        let budget = budget.with_weights(options.weights.clone());
        match &options.cancellation {
            Some(cancellation) => budget.with_cancellation(cancellation.clone()),
            None => budget,
        }
        .preparing()
    }

    /// Prepares on a thread for that, when this preparation gets a slot, and while the client stays.
    fn prepare<T: Send>(
        &self,
        budget: Budget,
        work: impl FnOnce(&Budget) -> Result<T> + Send,
    ) -> Result<T> {
        let span = tracing::debug_span!("prepare", device = self.name());
        let budget = budget.take_slot(&self.shared.preparations).map_err(EngineError::from)?;
        preparing::on_own_thread(|| {
            let _entered = span.enter();
            let done = work(&budget)?;
            // Who has left gets nothing, also if the engine did not notice.
            if budget.client().has_left() {
                return Err(EngineError::from(Interruption::Cancelled).into());
            }
            Ok(done)
        })
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

    /// The engine's, and the build that both are in.
    fn version_string(&self) -> String {
        version_string(&self.engine)
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

    /// Compiles on a thread of a lower priority, and waits for it (contract: CONC-4). A valid model with
    /// operations that the engine does not support is a `GENERAL_FAILURE` (contract: PREP-5) whose
    /// reason is [`UnsupportedOperations`](crate::UnsupportedOperations).
    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>> {
        guarded(|| {
            // Arguments before deadlines (contract: GEN-4).
            // The charge counts copies of constants for as long as there are any.
            let memory = Ledger::of_client(&options.client);
            let copied = with_copied_pools(model, &memory);
            if copied.is_err() {
                // What is wrong with the model itself comes first.
                nnhal_ops::validate::check(model, version)?;
            }
            let (model, _charge) = copied?;
            let model = nnhal_ops::validate::check(&model, version)?;
            let budget = Self::budget(&options, options.priority);
            budget.check_before_start().map_err(EngineError::from)?;
            let model = expect_whole(model).map_err(Error::failure)?;
            expect_supported(&self.engine, &model).map_err(Error::failure)?;
            let admission = self.shared.clients.admit(&options.client)?;
            let compile = CompileOptions {
                preference: options.preference,
                priority: options.priority,
                hints: options.hints.clone(),
            };
            let program = self.prepare(budget, |budget| {
                let program = self.engine.compile(&model, &compile, budget)?;
                self.save(files_of(&options), &model, &compile, &program);
                Ok(program)
            })?;
            let extension_types = ExtensionTypes::of(model.model(), &self.engine.extensions());
            let interface = Interface::of(&model).with_extension_types(extension_types);
            let PrepareOptions { priority, client, .. } = options;
            Ok(self.prepared(interface, program, priority, client, admission))
        })
    }

    fn check_cache(&self, options: &PrepareOptions) -> Result<()> {
        guarded(|| {
            let cache = self.cache().ok_or_else(no_cache)?;
            Ok(cache.check(files_of(options))?)
        })
    }

    fn prepare_model_from_cache(&self, options: PrepareOptions) -> Result<Arc<dyn PreparedModel>> {
        guarded(|| {
            let cache = self.cache().ok_or_else(no_cache)?;
            // What is in the files is an argument: looked at before deadlines (contract: GEN-4).
            let Stored { interface, options: compile, content } = cache.load_trusted(
                files_of(&options),
                options.cache_trust,
                &self.engine.extensions(),
            )?;
            let admission = self.shared.clients.admit(&options.client)?;
            let program =
                self.prepare(Self::budget(&options, compile.priority), |budget| match content {
                    Content::Program(saved) => Ok(self.engine.restore(saved, &compile, budget)?),
                    Content::Model(model) => {
                        expect_supported(&self.engine, &model).map_err(Error::failure)?;
                        Ok(self.engine.compile(&model, &compile, budget)?)
                    }
                })?;
            Ok(self.prepared(interface, program, compile.priority, options.client, admission))
        })
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.cache().map_or_else(CacheFilesNeeded::default, |_| ModelCache::FILES_NEEDED)
    }

    fn allocate(&self, description: &BufferDescription) -> Result<Arc<dyn Buffer>> {
        guarded(|| allocate(description, |prepared| Arc::ptr_eq(prepared.shared(), &self.shared)))
    }
}

fn version_string<E: Engine>(engine: &E) -> String {
    format!("{} build {}", engine.version_string(), build()).trim_start().to_owned()
}

fn files_of(options: &PrepareOptions) -> CacheFiles<'_> {
    let PrepareOptions { model_cache, data_cache, token, .. } = options;
    CacheFiles { model: model_cache, data: data_cache, token }
}

fn no_cache() -> Error {
    Error::failure("there is no cache")
}
