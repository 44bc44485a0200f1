//! [`Service`]: what the server does, whichever endpoint a request came through.

use crate::blocking::blocking;
use crate::charge::{Charge, Receiving, SharedCharge, take};
use crate::classes::classify;
use crate::error::{Error, Result};
use crate::input_memory::{InputMemory, MemoryPool};
use crate::metrics::Metrics;
use crate::model::{Computed, Job, Served, TensorMeta};
use crate::parameters::{check_count, check_name};
use crate::repository::Repository;
use crate::request::{
    InferRequest, InferResponse, MOST_TENSORS, OutputData, OutputTensor, WantedOutput,
};
use crate::shared_memory::SharedMemory;
use bytes::Bytes;
use nnhal::hal::Cancellation;
use nnhal::{DataType, Profile};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// What the server calls itself.
pub(crate) const NAME: &str = "nnhal";

/// A request is tried again so often when its model has just been replaced.
const MOST_ATTEMPTS: usize = 8;

/// Bytes of an input for which a copy less is worth memory of its own.
const LARGE: usize = 64 << 10;

/// Bytes of tensors of which texts are made on a thread of their own, so that others are answered meanwhile.
pub(crate) const MUCH: usize = 32 << 10;

/// After a deadline, for a worker to say itself what has become of a request.
const GRACE: Duration = Duration::from_millis(20);

/// What the server does, whichever endpoint a request came through.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) repository: Arc<Repository>,
    pub(crate) shared_memory: SharedMemory,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether clients may load and unload models.
    pub(crate) may_control: bool,
    pub(crate) receiving: Arc<Receiving>,
    input_memory: Arc<MemoryPool>,
    /// Models are profiled one at a time: each takes a thread that others need.
    profiling: Arc<Semaphore>,
    is_ending: AtomicBool,
    in_progress: AtomicUsize,
    /// What a request may take if neither it nor its model says it.
    most_time: Duration,
}

/// Gives a run up when no one waits for it any more.
struct CancelWhenDropped(Cancellation);

impl Drop for CancelWhenDropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Counts a request that is in progress.
struct InProgress<'s>(&'s AtomicUsize);

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Service {
    pub(crate) fn new(
        repository: Arc<Repository>,
        shared_memory: SharedMemory,
        metrics: Arc<Metrics>,
        may_control: bool,
        receiving: Arc<Receiving>,
        most_time: Duration,
    ) -> Self {
        Self {
            repository,
            shared_memory,
            metrics,
            may_control,
            receiving,
            input_memory: Arc::default(),
            profiling: Arc::new(Semaphore::new(1)),
            is_ending: AtomicBool::new(false),
            in_progress: AtomicUsize::new(0),
            most_time,
        }
    }

    /// For what a request or an answer takes.
    pub(crate) fn charge(&self) -> Charge {
        Charge::new(Arc::clone(&self.receiving))
    }

    /// Whether all models are as they should be, and more requests are taken.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_ending.load(Ordering::Relaxed) && self.repository.is_ready()
    }

    /// Takes no more requests to run models.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.repository.end();
    }

    /// Extensions of the protocol that are offered.
    pub(crate) fn extensions(&self) -> Vec<&'static str> {
        let mut all = vec![
            "classification",
            "model_repository",
            "model_repository(unload_dependents)",
            "schedule_policy",
            "model_configuration",
            "binary_tensor_data",
            "parameters",
            "statistics",
        ];
        if self.shared_memory.is_offered() {
            all.push("system_shared_memory");
        }
        all
    }

    /// # Errors
    /// [`Error::Forbidden`]
    pub(crate) fn check_control(&self) -> Result<()> {
        let why =
            "clients may not load and unload models: the server was started with --no-control";
        if self.may_control { Ok(()) } else { Err(Error::Forbidden(why)) }
    }

    /// Memory for the input of a request that has this number of bytes of it, if the model's runs can read it there.
    pub(crate) fn memory_for(
        &self,
        model: &str,
        version: Option<u64>,
        length: usize,
    ) -> Option<InputMemory> {
        if length < LARGE {
            return None;
        }
        let served = self.repository.get(model, version).ok()?;
        served.readable_input().filter(|readable| *readable == length)?;
        self.input_memory.take(length)
    }

    /// Where a run of a model spends its time.
    ///
    /// # Errors
    /// There is no such model, its device does not show it, or another is being profiled.
    pub(crate) async fn profile(&self, model: &str) -> Result<Profile> {
        let served = self.repository.get(model, None)?;
        let place = Arc::clone(&self.profiling).try_acquire_owned();
        let place =
            place.map_err(|_| Error::Busy("a model is being profiled: one is at a time"))?;
        // It is not given up with its client, and keeps its place until it ends.
        blocking(move || {
            let _place = place;
            served.profile()
        })
        .await
    }

    /// Runs a model. What the answer takes is taken of `charge`.
    ///
    /// # Errors
    /// The request does not fit the model, the model cannot take more requests, the time is over, the run
    /// failed, or there is no memory for its answer.
    pub(crate) async fn infer(
        &self,
        mut request: InferRequest,
        arrived: Instant,
        charge: &SharedCharge,
    ) -> Result<InferResponse> {
        self.in_progress.fetch_add(1, Ordering::AcqRel);
        let _in_progress = InProgress(&self.in_progress);
        check_name("an identifier", &request.id)?;
        check_count("inputs", request.inputs.len(), MOST_TENSORS)?;
        check_count("outputs", request.outputs.len(), MOST_TENSORS)?;
        for _ in 0..MOST_ATTEMPTS {
            if self.is_ending.load(Ordering::Relaxed) {
                return Err(Error::Unavailable("the server ends".into()));
            }
            let served = self.repository.get(&request.model, request.version)?;
            let (id, wanted) = (request.id.clone(), request.outputs.clone());
            match self.run(&served, request, arrived).await {
                Ok(computed) => return answer(served, id, wanted, computed, charge).await,
                Err(Refused::For(error)) => return Err(error),
                Err(Refused::Replaced(same)) => request = *same,
            }
        }
        let name = crate::parameters::shortened(&request.model);
        Err(Error::Unavailable(format!("model {name:?} is being replaced again and again")))
    }

    async fn run(
        &self,
        served: &Arc<Served>,
        request: InferRequest,
        arrived: Instant,
    ) -> std::result::Result<Computed, Refused> {
        let (inputs, rows) = served.check(&request).inspect_err(|_| {
            served.failed(arrived.elapsed());
        })?;
        let config = &served.config;
        let of_model = Some(config.default_timeout_microseconds).filter(|it| *it > 0);
        let of_request = request.timeout.filter(|_| config.allow_timeout_override);
        let all = [of_model.map(Duration::from_micros), of_request, request.client_deadline];
        let timeout = all.into_iter().flatten().fold(self.most_time, Duration::min);
        let deadline = arrived.checked_add(timeout);
        let cancellation = Cancellation::new();
        let _cancels = CancelWhenDropped(cancellation.clone());
        let (sender, receiver) = oneshot::channel();
        let priority = config.priority(request.priority);
        let (answer, span) = (sender, tracing::Span::current());
        let job =
            Job { request, inputs, rows, priority, arrived, deadline, cancellation, answer, span };
        if let Err(refused) = served.submit(job) {
            let (job, why) = *refused;
            return Err(match why {
                Some(error) => Refused::For(error),
                None => Refused::Replaced(Box::new(job.request)),
            });
        }
        // A worker answers each job that it has taken; one that does not has panicked. All may be busy when
        // the time is over: then the job is dropped when one looks at it.
        let lost = |_| Error::Internal("the worker is gone".into());
        let answer = match deadline {
            Some(deadline) => {
                let late = |_| Error::Timeout("before it was answered");
                tokio::time::timeout_at((deadline + GRACE).into(), receiver).await.map_err(late)?
            }
            None => receiver.await,
        };
        Ok(answer.map_err(lost)??)
    }

    /// Waits until no requests to run models are in progress, but no longer than until then.
    pub(crate) async fn drained(&self, deadline: Instant) {
        while self.in_progress.load(Ordering::Acquire) > 0 && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Why a model has not run a request.
enum Refused {
    /// An error.
    For(Error),
    /// Another one has taken its place in the meantime: the request is as it was.
    Replaced(Box<InferRequest>),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::For(error)
    }
}

/// The outputs that were wanted, as they were wanted.
async fn answer(
    served: Arc<Served>,
    id: String,
    mut wanted: Vec<WantedOutput>,
    computed: Computed,
    charge: &SharedCharge,
) -> Result<InferResponse> {
    if wanted.is_empty() {
        let output =
            |meta: &TensorMeta| WantedOutput { name: meta.name.clone(), ..WantedOutput::default() };
        wanted = served.outputs.iter().map(output).collect();
    }
    let is_long = computed.outputs.iter().any(|(_, data)| match data {
        OutputData::Tensor(_, bytes) => bytes.len() >= MUCH,
        _ => false,
    });
    if is_long && wanted.iter().any(|output| output.classes.is_some()) {
        let charge = Arc::clone(charge);
        return blocking(move || answered(&served, id, &wanted, &computed, &charge)).await;
    }
    answered(&served, id, &wanted, &computed, charge)
}

fn answered(
    served: &Served,
    id: String,
    wanted: &[WantedOutput],
    computed: &Computed,
    charge: &SharedCharge,
) -> Result<InferResponse> {
    let mut outputs = Vec::with_capacity(wanted.len());
    for output in wanted {
        let position = served.output_named(&output.name)?;
        let missing = || Error::Internal(format!("output {:?} was not computed", output.name));
        let (shape, data) = computed.outputs.get(position).ok_or_else(missing)?;
        let OutputData::Tensor(data_type, bytes) = data else { return Err(missing()) };
        let tensor = Computation { data_type: *data_type, shape, bytes };
        outputs.push(one_output(served, output, position, &tensor, charge)?);
    }
    let (model, version) = (served.name.clone(), served.version);
    Ok(InferResponse { model, version, id, outputs })
}

/// An output as a run gave it.
struct Computation<'c> {
    data_type: DataType,
    shape: &'c [usize],
    bytes: &'c Bytes,
}

fn one_output(
    served: &Served,
    wanted: &WantedOutput,
    position: usize,
    computed: &Computation<'_>,
    charge: &SharedCharge,
) -> Result<OutputTensor> {
    let name = wanted.name.clone();
    let Computation { data_type, shape, bytes } = *computed;
    let (shape, datatype, data) = match wanted.classes {
        Some(classes) => {
            let rows = served.is_batched().then(|| shape.first().copied().unwrap_or(1));
            let labels = served.outputs.get(position).map_or(&[][..], |it| &it.labels);
            let texts = classify(data_type, bytes, rows.unwrap_or(1), classes, labels, charge)?;
            let count = texts.len().checked_div(rows.unwrap_or(1)).unwrap_or(0);
            let shape = rows.into_iter().chain([count]).collect();
            (shape, crate::data_type::TEXT, OutputData::Texts(texts))
        }
        None => {
            let no_name = || Error::Internal(format!("the protocol has no type for {data_type}"));
            let datatype = crate::data_type::name(data_type).ok_or_else(no_name)?;
            if wanted.shared.is_none() {
                take(charge, bytes.len())?;
            }
            (shape.to_vec(), datatype, OutputData::Tensor(data_type, bytes.clone()))
        }
    };
    let Some(place) = &wanted.shared else {
        return Ok(OutputTensor { name, datatype, shape, data });
    };
    let bytes = data.to_bytes();
    place.write(&bytes)?;
    let data = OutputData::Shared { place: place.clone(), length: bytes.len() };
    Ok(OutputTensor { name, datatype, shape, data })
}

impl OutputData {
    /// The elements as the protocol has them in bytes.
    pub(crate) fn to_bytes(&self) -> Bytes {
        match self {
            Self::Tensor(_, bytes) => bytes.clone(),
            Self::Shared { .. } => Bytes::new(),
            Self::Texts(texts) => {
                let mut bytes = Vec::new();
                for text in texts {
                    let length = u32::try_from(text.len()).unwrap_or(0);
                    bytes.extend(length.to_le_bytes());
                    bytes.extend(&text.as_bytes()[..length as usize]);
                }
                bytes.into()
            }
        }
    }
}
