//! [`Served`]: a version of a model, its queue, and the workers that run it.

mod program;
mod queue;
mod spare_thread;
mod statistics;
mod worker;

pub(crate) use queue::{Computed, Job};
pub use statistics::{BatchCounts, Counts, Durations, Latencies};

use crate::charge::Charge;
use crate::config::{ModelConfig, TensorConfig};
use crate::data_type;
use crate::error::{Error, Result};
use crate::metrics::ModelMetrics;
use crate::parameters::shortened;
use crate::request::{InferRequest, InputTensor};
use nnhal::{DataType, Model, Profile, TensorInfo};
use program::{Programs, Runners};
use queue::{Batching, Dropped, Queue};
use spare_thread::SpareThread;
use statistics::Statistics;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Names that a message lists.
const MOST_LISTED: usize = 10;

/// Runs up to this long need no thread of their own: to wake one, and be woken by it, takes some of 100 µs. Meanwhile other
/// connections may have to wait.
const LONGEST_ON_CALLER: Duration = Duration::from_millis(2);

/// The same where another thread of the runtime reads the other connections meanwhile. That a client has gone is not noticed until
/// the run is over, so it is not much longer.
const LONGEST_ON_SPARE_CALLER: Duration = Duration::from_millis(10);

/// An input or output as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMeta {
    /// The signature's name, if it gives one.
    pub name: String,
    /// The element type.
    pub data_type: DataType,
    /// The length of each axis; `None`: any. With the batch, if the model is batched.
    pub shape: Vec<Option<usize>>,
    /// The order of an input's axes, as the configuration names it; empty: it does not.
    pub format: String,
    /// The configuration's file with the names of an output's classes; empty: there is none.
    pub label_file: String,
    /// Names of an output's classes; empty if there are none.
    pub labels: Vec<String>,
}

/// Names of classes, by the file that has them.
pub(crate) type Labels = BTreeMap<String, Vec<String>>;

/// A model that is about to be served.
pub(crate) struct Loaded {
    pub(crate) model: Model,
    pub(crate) labels: Labels,
    /// Counts its file, if a client has uploaded it.
    pub(crate) upload: Charge,
}

/// A version of a model that is served.
#[derive(Debug)]
pub struct Served {
    /// The model's name.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// How it is served.
    pub config: ModelConfig,
    /// Inputs, in the model's order.
    pub inputs: Vec<TensorMeta>,
    /// Outputs, in the model's order.
    pub outputs: Vec<TensorMeta>,
    /// When it was ready.
    pub since: SystemTime,
    /// Bytes of packed weights and of memory for runs, as far as the device says it.
    pub memory: u64,
    readable_input: Option<usize>,
    programs: Programs,
    /// Memory for runs that is not in use.
    runners: Mutex<Vec<Runners>>,
    queue: Arc<Queue>,
    /// Whether runs take about the same time, whatever is in the tensors.
    is_steady: bool,
    statistics: Statistics,
    metrics: ModelMetrics,
    /// Counts its file, if a client has uploaded it.
    _upload: Charge,
    /// Set when a run found that the device is gone. What was prepared is gone with it.
    is_device_gone: AtomicBool,
}

/// Waits, when dropped, until the workers of a model have ended.
#[derive(Debug)]
pub(crate) struct Workers {
    served: Arc<Served>,
    threads: Vec<JoinHandle<()>>,
}

impl Served {
    /// Prepares a model and starts its workers.
    ///
    /// # Errors
    /// It does not fit its configuration, the device refuses it, or it cannot be served by requests that
    /// know nothing of each other.
    pub(crate) fn start(
        name: &str,
        version: u64,
        loaded: Loaded,
        config: ModelConfig,
        metrics: ModelMetrics,
        cache: Option<&Path>,
    ) -> Result<(Arc<Self>, Workers)> {
        let Loaded { model, labels, upload } = loaded;
        if model.is_stateful() {
            let why = "the model keeps variables from one run to the next: requests in sequences, which \
                       that needs, are not offered";
            return Err(Error::invalid(why));
        }
        let model = with_dims(&model, &config)?;
        let batches = batch_sizes(&config);
        let programs = Programs::new(&model, &config, &batches, cache)?;
        let is_batched = !batches.is_empty();
        if let Some(why) = programs.row_by_row() {
            tracing::warn!(model = name, version, why, "rows of a batch are run one by one");
        }
        let inputs = tensors("input", model.inputs(), &config.inputs, is_batched, &model)?;
        let mut outputs = tensors("output", model.outputs(), &config.outputs, is_batched, &model)?;
        for (at, output) in outputs.iter_mut().enumerate() {
            if at == 0 && output.label_file.is_empty() {
                output.label_file.clone_from(&config.labels);
            }
            output.labels = match labels.get(&output.label_file) {
                Some(labels) => labels.clone(),
                None => labels_in_file(&model, at, &output.shape),
            };
        }
        let batching = config.dynamic_batching.as_ref().map(|batching| {
            let sizes = batching.preferred_batch_sizes.iter();
            let mut preferred: Vec<usize> = sizes.map(|size| *size as usize).collect();
            preferred.sort_unstable();
            let delay = Duration::from_micros(batching.max_queue_delay_microseconds);
            Batching { most: config.max_batch_size as usize, preferred, delay }
        });
        let queue = Arc::new(Queue::new(name, config.max_queue_size, config.instances, batching));
        let memory = programs.memory(config.instances);
        metrics.memory.set(i64::try_from(memory).unwrap_or(i64::MAX));
        let served = Arc::new(Self {
            name: name.to_owned(),
            version,
            inputs,
            outputs,
            since: SystemTime::now(),
            memory,
            readable_input: programs.readable_input(),
            is_steady: programs.is_steady(),
            programs,
            runners: Mutex::default(),
            queue,
            statistics: Statistics::default(),
            metrics,
            _upload: upload,
            is_device_gone: AtomicBool::new(false),
            config,
        });
        let mut workers = Workers { served: Arc::clone(&served), threads: Vec::new() };
        for number in 0..served.config.instances {
            let served = Arc::clone(&served);
            let thread = std::thread::Builder::new()
                .name(format!("{}-{number}", shortened(name)))
                .spawn(move || worker::work(&served))
                .map_err(|error| Error::Internal(format!("no thread: {error}")))?;
            workers.threads.push(thread);
        }
        Ok((served, workers))
    }

    /// Whether requests are put together, or may have several rows.
    pub fn is_batched(&self) -> bool {
        self.config.max_batch_size > 0
    }

    /// Whether a run found that the device, which is of another process, is gone.
    pub(crate) fn is_device_gone(&self) -> bool {
        self.is_device_gone.load(Ordering::Relaxed)
    }

    /// Bytes of the only input, if a run can read them where they came.
    pub(crate) fn readable_input(&self) -> Option<usize> {
        self.readable_input
    }

    /// Why rows of a batch are run one by one, if they are.
    pub fn row_by_row(&self) -> Option<&str> {
        self.programs.row_by_row()
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        self.statistics.counts()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Where a run of one row spends its time. It takes a run's place on the device.
    ///
    /// # Errors
    /// The device does not show it; the file leaves shapes open.
    pub fn profile(&self) -> Result<Profile> {
        let session = self.programs.session();
        let inputs = nnhal::Fill::Random { seed: 1 }.inputs(session.model(), &[])?;
        Ok(session.profile(&inputs, 1, 5)?)
    }

    /// Looks whether a request fits: by input of the model which of the request's it is, and its rows.
    ///
    /// # Errors
    /// [`Error::Invalid`]
    pub(crate) fn check(&self, request: &InferRequest) -> Result<(Vec<usize>, usize)> {
        let refuse = |why: String| Error::invalid(format!("model {:?}: {why}", self.name));
        let (found, expected) = (request.inputs.len(), self.inputs.len());
        if found != expected {
            let (given, own) = (listed(names(&request.inputs)), listed(own_names(&self.inputs)));
            let why = format!("{found} inputs are given ({given}), expected {expected}: {own}");
            return Err(refuse(why));
        }
        let mut positions = Vec::with_capacity(expected);
        let mut rows = None;
        for (index, meta) in self.inputs.iter().enumerate() {
            let own = &self.programs.session().model().inputs()[index];
            let name = &meta.name;
            let at =
                request.inputs.iter().position(|it| it.name == *name || own.is_named(&it.name));
            let Some(at) = at else {
                let given = listed(names(&request.inputs));
                return Err(refuse(format!("input {name:?} is not given; given are: {given}")));
            };
            let input = &request.inputs[at];
            if input.data_type != meta.data_type {
                let [found, expected] = [input.data_type, meta.data_type].map(data_type::shown);
                return Err(refuse(format!("input {name:?} is {found}, expected {expected}")));
            }
            let is_known =
                |(known, found): (&Option<usize>, &usize)| known.is_none_or(|it| it == *found);
            let fits = input.shape.len() == meta.shape.len()
                && meta.shape.iter().zip(&input.shape).all(is_known);
            if !fits || input.shape.contains(&0) {
                let expected = wire_shape(&meta.shape);
                let why =
                    format!("input {name:?} has shape {:?}, expected {expected:?}", input.shape);
                return Err(refuse(why));
            }
            if self.is_batched() {
                let found = input.shape[0];
                let most = self.config.max_batch_size as usize;
                if found > most {
                    return Err(refuse(format!("a batch of {found} rows, at most {most}")));
                }
                if *rows.get_or_insert(found) != found {
                    return Err(refuse("inputs have different numbers of rows".into()));
                }
            }
            positions.push(at);
        }
        // By position: an output may have two names.
        let mut wanted = vec![false; self.outputs.len()];
        for output in &request.outputs {
            let position = self.output_named(&output.name)?;
            if wanted.get_mut(position).is_none_or(|it| std::mem::replace(it, true)) {
                let name = shortened(&output.name);
                return Err(refuse(format!("output {name:?} is wanted twice, expected once")));
            }
        }
        Ok((positions, rows.unwrap_or(1)))
    }

    /// The position of an output.
    ///
    /// # Errors
    /// [`Error::Invalid`]
    pub(crate) fn output_named(&self, name: &str) -> Result<usize> {
        let model = self.programs.session().model();
        let found = self.outputs.iter().position(|output| output.name == name);
        found.or_else(|| model.outputs().iter().position(|info| info.is_named(name))).ok_or_else(
            || {
                let (name, own) = (shortened(name), listed(own_names(&self.outputs)));
                let why = format!("there is no output {name:?}; there are: {own}");
                Error::invalid(format!("model {:?}: {why}", self.name))
            },
        )
    }

    fn runners(&self) -> MutexGuard<'_, Vec<Runners>> {
        self.runners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job on this thread if that is short enough and nothing else waits; otherwise puts it into the queue.
    ///
    /// # Errors
    /// As [`Queue::push`].
    pub(crate) fn submit(
        self: &Arc<Self>,
        job: Job,
    ) -> std::result::Result<(), Box<(Job, Option<Error>)>> {
        if self.is_steady {
            let spare = SpareThread::take();
            let most = if spare.is_some() { LONGEST_ON_SPARE_CALLER } else { LONGEST_ON_CALLER };
            if let Some(permit) = self.queue.begin(most) {
                worker::run_here(self, permit, job);
                return Ok(());
            }
        }
        let outcome = self.queue.push(job);
        self.metrics.waiting.set(i64::try_from(self.queue.waiting()).unwrap_or(i64::MAX));
        match outcome {
            Ok(dropped) => {
                self.give_up(dropped);
                Ok(())
            }
            Err(refused) => {
                if refused.1.is_some() {
                    self.failed(refused.0.arrived.elapsed());
                }
                Err(refused)
            }
        }
    }

    /// Answers jobs that need not be computed any more.
    fn give_up(&self, dropped: Dropped) {
        for (job, error) in dropped {
            self.failed(job.arrived.elapsed());
            job.finish(Err(error));
        }
    }

    /// Takes no more jobs; those that wait are still computed.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    /// A request failed after this time.
    pub(crate) fn failed(&self, since_arrival: Duration) {
        self.statistics.failed(since_arrival);
        self.metrics.failed.inc();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.served.close();
        for thread in self.threads.drain(..) {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}

fn names(inputs: &[InputTensor]) -> impl Iterator<Item = &str> {
    inputs.iter().map(|it| it.name.as_str())
}

fn own_names(tensors: &[TensorMeta]) -> impl Iterator<Item = &str> {
    tensors.iter().map(|it| it.name.as_str())
}

/// The first names of a list, for a message.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut shown: Vec<String> =
        names.take(MOST_LISTED + 1).map(|name| format!("{:?}", shortened(name))).collect();
    if shown.len() > MOST_LISTED {
        shown[MOST_LISTED] = "...".to_owned();
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// A shape as the protocol writes it: -1 where any length is right.
pub(crate) fn wire_shape(shape: &[Option<usize>]) -> Vec<i64> {
    let length = |it: &Option<usize>| it.map_or(-1, |it| i64::try_from(it).unwrap_or(i64::MAX));
    shape.iter().map(length).collect()
}

/// Numbers of rows that a model is prepared for: powers of two and those that are preferred.
fn batch_sizes(config: &ModelConfig) -> Vec<usize> {
    let most = config.max_batch_size as usize;
    let mut sizes: Vec<usize> = std::iter::successors(Some(1_usize), |size| size.checked_mul(2))
        .take_while(|size| *size <= most)
        .collect();
    if most > 0 {
        sizes.push(most);
    }
    let preferred = config.dynamic_batching.iter().flat_map(|it| &it.preferred_batch_sizes);
    sizes.extend(preferred.map(|size| *size as usize));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The model with the lengths that the configuration gives where the file leaves them open.
fn with_dims(model: &Model, config: &ModelConfig) -> Result<Model> {
    let is_batched = config.max_batch_size > 0;
    let mut shapes = Vec::new();
    for info in model.inputs() {
        let said = config.inputs.iter().find(|it| info.is_named(&it.name) && !it.dims.is_empty());
        if let Some(TensorConfig { name, dims, .. }) = said {
            let own = &info.shape[usize::from(is_batched).min(info.shape.len())..];
            if !info.is_rank_open && own.len() != dims.len() {
                let own = wire_shape(own);
                let why = format!("the configuration says {dims:?}, the file {own:?}");
                return Err(Error::invalid(format!("input {name:?}: {why}")));
            }
        }
        let dims = said.map(|it| {
            let lengths = it.dims.iter().map(|length| usize::try_from(*length).ok());
            let batch = is_batched.then_some(Some(1));
            batch.into_iter().chain(lengths).collect::<Option<Vec<usize>>>()
        });
        shapes.push(dims.flatten().filter(|shape| Some(shape) != info.known_shape().as_ref()));
    }
    match shapes.iter().any(Option::is_some) {
        true => Ok(model.with_input_shapes(&shapes, !is_batched)?),
        false => Ok(model.clone()),
    }
}

/// Names of an output's classes that the model's file carries; none if it has none for this number of them.
fn labels_in_file(model: &Model, output: usize, shape: &[Option<usize>]) -> Vec<String> {
    let classes = shape.last().copied().flatten();
    let found = classes.and_then(|classes| model.labels(output, classes).ok().flatten());
    found.unwrap_or_default()
}

/// Inputs or outputs as clients see them, if they are as the configuration says.
fn tensors(
    what: &str,
    infos: &[TensorInfo],
    config: &[TensorConfig],
    is_batched: bool,
    model: &Model,
) -> Result<Vec<TensorMeta>> {
    for tensor in config {
        if !infos.iter().any(|info| info.is_named(&tensor.name)) {
            let names: Vec<_> = infos.iter().map(TensorInfo::shown_name).collect();
            let (name, names) = (&tensor.name, names.join(", "));
            return Err(Error::invalid(format!("there is no {what} {name:?}; there are: {names}")));
        }
    }
    let meta = |info: &TensorInfo| -> Result<TensorMeta> {
        let name = info.signature_name.clone().unwrap_or_else(|| info.name.clone());
        let refuse = |why: String| Error::invalid(format!("{what} {name:?}: {why}"));
        let data_type = info.data_type;
        if data_type::name(data_type).is_none() {
            return Err(refuse(format!("the protocol has no type for {data_type}")));
        }
        let mut shape = match info.is_rank_open {
            true => return Err(refuse("the number of its axes is open".into())),
            // What the import has chosen from the example may be another length.
            false if model.has_example_shapes() && !is_batched => {
                info.shape_signature.clone().unwrap_or_else(|| info.shape.clone())
            }
            false => info.shape.clone(),
        };
        if is_batched {
            match shape.first_mut() {
                Some(Some(rows)) if *rows != 1 => {
                    return Err(refuse(format!("the file has {rows} rows of it, not 1")));
                }
                Some(length) => *length = None,
                None => return Err(refuse("it has no axes, and can have no rows".into())),
            }
        }
        let said = config.iter().find(|it| info.is_named(&it.name));
        let (mut format, mut label_file) = (String::new(), String::new());
        if let Some(TensorConfig { datatype, dims, .. }) = said {
            if !datatype.is_empty() && data_type::from_name(datatype) != Some(data_type) {
                let why = format!("the configuration says {datatype}, the file {data_type}");
                return Err(refuse(why));
            }
            let own = wire_shape(&shape[usize::from(is_batched)..]);
            let agrees = |(said, own): (&i64, &i64)| said == own || *said == -1 || *own == -1;
            let fits = own.len() == dims.len() && dims.iter().zip(&own).all(agrees);
            if !dims.is_empty() && !fits {
                let why = format!("the configuration says {dims:?}, the file {own:?}");
                return Err(refuse(why));
            }
        }
        if let Some(said) = said {
            format.clone_from(&said.format);
            label_file.clone_from(&said.labels);
        }
        let labels = Vec::new();
        Ok(TensorMeta { name, data_type, shape, format, label_file, labels })
    };
    infos.iter().map(meta).collect()
}
