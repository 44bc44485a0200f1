//! [`Scripted`]: the reference device with limits, and faults on demand.

use nnhal_hal::{
    Buffer, BufferDescription, Burst, CacheFilesNeeded, Capabilities, Device, DeviceType, Error,
    Execution, ExecutionError, ExecutionOptions, FencedExecution, HalVersion, Hints, Model,
    OperationType, PerformanceInfo, PrepareOptions, PreparedModel, Request, Result, Support,
    SyncFence,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Whether a device can do the operation at this place.
type CanDo = dyn Fn(usize, OperationType) -> bool + Send + Sync;

/// A device that computes as the reference device does.
pub struct Scripted {
    name: &'static str,
    inner: Arc<dyn Device>,
    can_do: Box<CanDo>,
    cost: f32,
    power: f32,
    version: HalVersion,
    faults: Arc<Faults>,
}

/// What goes wrong, and how often it was tried. 0: nothing goes wrong.
#[derive(Debug, Default)]
pub struct Faults {
    /// How many preparations fail.
    pub failing_preparations: AtomicUsize,
    /// How many executions fail.
    pub failing_executions: AtomicUsize,
    /// Preparations so far.
    pub preparations: AtomicUsize,
    /// Loads from the cache that went well.
    pub loads: AtomicUsize,
    /// Executions so far, bursts included.
    pub executions: AtomicUsize,
    /// Executions by bursts so far.
    pub bursts: AtomicUsize,
    /// Buffers so far.
    pub allocations: AtomicUsize,
    /// Executions behind fences so far.
    pub fenced: AtomicUsize,
    /// What extensions said of each preparation and execution so far.
    pub hints: Mutex<Vec<Hints>>,
    /// Whether executions panic.
    pub panics: std::sync::atomic::AtomicBool,
}

impl Faults {
    fn strikes(counter: &AtomicUsize) -> bool {
        counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_ok()
    }
}

pub fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

impl Scripted {
    /// A device that promises to be 40 times as fast as the reference device.
    pub fn new(
        name: &'static str,
        can_do: impl Fn(usize, OperationType) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            inner: nnhal_reference::device(),
            can_do: Box::new(can_do),
            cost: 2.0,
            power: 2.0,
            version: HalVersion::LATEST,
            faults: Arc::default(),
        }
    }

    #[must_use]
    pub fn with_cost(self, cost: f32) -> Self {
        Self { cost, ..self }
    }

    /// With another cost where power counts.
    #[must_use]
    pub fn with_power(self, power: f32) -> Self {
        Self { power, ..self }
    }

    #[must_use]
    pub fn with_version(self, version: HalVersion) -> Self {
        Self { version, ..self }
    }

    #[must_use]
    pub fn over(self, inner: Arc<dyn Device>) -> Self {
        Self { inner, ..self }
    }

    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.faults)
    }

    fn prepared(&self, inner: Arc<dyn PreparedModel>) -> Arc<dyn PreparedModel> {
        Arc::new(Prepared { inner, faults: self.faults() })
    }
}

impl Device for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn version(&self) -> HalVersion {
        self.version
    }

    fn version_string(&self) -> String {
        "1".to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Accelerator
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo { exec_time: self.cost, power_usage: self.power })
    }

    fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.inner.cache_files_needed()
    }

    fn supported_operations(&self, model: &Model, version: HalVersion) -> Result<Vec<Support>> {
        assert!(version <= self.version, "asked for {version}");
        let answer = self.inner.supported_operations(model, version)?;
        let able = |(index, support): (usize, Support)| {
            let operation_type = model.main.operations[index].operation_type;
            if (self.can_do)(index, operation_type) {
                support
            } else {
                Support::No("by script".to_owned())
            }
        };
        Ok(answer.into_iter().enumerate().map(able).collect())
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        options: PrepareOptions,
    ) -> Result<Arc<dyn PreparedModel>> {
        assert!(version <= self.version, "asked for {version}");
        self.faults.preparations.fetch_add(1, Ordering::Relaxed);
        self.faults.hints.lock().unwrap().push(options.hints.clone());
        if Faults::strikes(&self.faults.failing_preparations) {
            return Err(Error::failure("preparing fails by script"));
        }
        Ok(self.prepared(self.inner.prepare_model(model, version, options)?))
    }

    fn check_cache(&self, options: &PrepareOptions) -> Result<()> {
        self.inner.check_cache(options)
    }

    fn prepare_model_from_cache(&self, options: PrepareOptions) -> Result<Arc<dyn PreparedModel>> {
        let loaded = self.inner.prepare_model_from_cache(options)?;
        self.faults.loads.fetch_add(1, Ordering::Relaxed);
        Ok(self.prepared(loaded))
    }

    fn allocate(&self, description: &BufferDescription) -> Result<Arc<dyn Buffer>> {
        let mut description = description.clone();
        for prepared in &mut description.prepared_models {
            let any: &dyn std::any::Any = &**prepared;
            let ours: &Prepared = any.downcast_ref().expect("a model that this device prepared");
            *prepared = Arc::clone(&ours.inner);
        }
        self.faults.allocations.fetch_add(1, Ordering::Relaxed);
        self.inner.allocate(&description)
    }
}

struct Prepared {
    inner: Arc<dyn PreparedModel>,
    faults: Arc<Faults>,
}

impl Prepared {
    fn strike(&self) -> Result<()> {
        self.faults.executions.fetch_add(1, Ordering::Relaxed);
        assert!(!self.faults.panics.load(Ordering::Relaxed), "by script");
        if Faults::strikes(&self.faults.failing_executions) {
            return Err(Error::failure("executing fails by script"));
        }
        Ok(())
    }
}

impl PreparedModel for Prepared {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        self.faults.hints.lock().unwrap().push(options.hints.clone());
        self.strike()?;
        self.inner.execute(request, options)
    }

    fn execute_fenced(
        &self,
        request: &Request,
        wait_for: &[SyncFence],
        options: &ExecutionOptions,
        timeout_after_fences: Option<Duration>,
    ) -> Result<FencedExecution> {
        self.faults.fenced.fetch_add(1, Ordering::Relaxed);
        self.faults.hints.lock().unwrap().push(options.hints.clone());
        self.strike()?;
        self.inner.execute_fenced(request, wait_for, options, timeout_after_fences)
    }

    fn configure_burst(&self) -> Result<Box<dyn Burst>> {
        let inner = self.inner.configure_burst()?;
        Ok(Box::new(ScriptedBurst { inner, faults: Arc::clone(&self.faults) }))
    }
}

struct ScriptedBurst {
    inner: Box<dyn Burst>,
    faults: Arc<Faults>,
}

impl Burst for ScriptedBurst {
    fn execute(&self, request: &Request, measure: bool) -> Result<Execution, ExecutionError> {
        self.faults.executions.fetch_add(1, Ordering::Relaxed);
        self.faults.bursts.fetch_add(1, Ordering::Relaxed);
        self.inner.execute(request, measure)
    }

    fn free_memory(&self, memory: &nnhal_hal::Memory) {
        self.inner.free_memory(memory);
    }
}
