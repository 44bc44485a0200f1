//! [`BurstServer`]: the service's end of a burst.

use crate::datum::{FmqRequestDatum, FmqResultDatum};
use crate::packet::{RequestPacket, ResultPacket};
use crate::parking::{Park, Parking};
use crate::queue::any::Armed;
use crate::queue::{Interrupt, MessageQueue, QueueError, Reader, Writer};
use crate::{BurstCallback, BurstContext};
use nnhal_hal::client::{AtLeaving, Held, Holding};
use nnhal_hal::{
    Cancellation, Error, ErrorStatus, ExecutionOptions, Memory, PreparedModel, Request,
    RequestMemoryPool, Timing,
};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most slots whose memory is kept, of one burst. A client that uses more, or may hold no more descriptors
/// ([`Holding::Descriptors`]), is asked for the others with each request anew: each takes a descriptor and a mapping of the
/// service.
pub const MAXIMUM_KEPT_SLOTS: usize = 1024;

/// For how long dropping waits for a thread that only has to notice it.
const TIME_TO_NOTICE: Duration = Duration::from_millis(50);

/// How long a burst without packets keeps its thread.
const TIME_UNTIL_PARKED: Duration = Duration::from_millis(500);

/// Bursts of this process that have nothing to do.
static PARKING: Parking<Box<Burst>> = Parking::new();

/// Executes what comes through a request queue and answers through a result queue, in the background.
///
/// To each packet exactly one is the answer, whatever is in it (contract: BURST-5, BURST-11). The
/// deadline is none, the loop timeout the default one, the priority that of the prepared model
/// (BURST-14). Memory is asked for once and kept by its slot (BURST-7, BURST-9).
///
/// A burst that is used has a thread, which sleeps in the futex of its queue. After half a second without
/// a packet the thread ends, and one thread waits for all such bursts, until the next packet; on systems
/// without `futex_waitv` (before Linux 5.16) each keeps its thread. The number of bursts that a client may
/// have is limited.
///
/// Dropping it, or its client's leaving, ends the burst: an execution that is running is given up, and no
/// one waits for the client (BURST-16). The thread keeps alive what it needs until it has ended.
pub struct BurstServer {
    slots: Arc<Slots>,
    life: Arc<Life>,
    stop: Arc<Stop>,
    _at_leaving: AtLeaving,
}

impl BurstServer {
    /// Begins a burst on a prepared model.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a queue has no event flag, or no room for even the shortest result
    /// (contract: BURST-1); `RESOURCE_EXHAUSTED_TRANSIENT` if there can be no thread, or the prepared
    /// model's client has as many bursts as it may have.
    pub fn new(
        prepared: Arc<dyn PreparedModel>,
        callback: Arc<dyn BurstCallback>,
        requests: MessageQueue<FmqRequestDatum>,
        results: MessageQueue<FmqResultDatum>,
    ) -> nnhal_hal::Result<Self> {
        Self::with_end(prepared, callback, requests, results, || {})
    }

    /// As [`BurstServer::new`], and calls `at_the_end` when no more results will come, for whatever
    /// reason.
    ///
    /// # Errors
    /// As [`BurstServer::new`].
    pub fn with_end(
        prepared: Arc<dyn PreparedModel>,
        callback: Arc<dyn BurstCallback>,
        requests: MessageQueue<FmqRequestDatum>,
        results: MessageQueue<FmqResultDatum>,
        at_the_end: impl FnOnce() + Send + 'static,
    ) -> nnhal_hal::Result<Self> {
        let (worker, stop) = Worker::new(prepared, callback, requests, results)?;
        let client = worker.prepared.client();
        let (slots, life) = (Arc::clone(&worker.slots), Arc::<Life>::default());
        let death = Death { life: Arc::clone(&life), at_the_end: Some(Box::new(at_the_end)) };
        if let Err((_, error)) = Box::new(Burst { worker, death }).start() {
            return Err(Error::new(ErrorStatus::ResourceExhaustedTransient, error));
        }
        let leaving = Arc::clone(&stop);
        let _at_leaving = client.at_leaving(move || leaving.throw());
        Ok(Self { slots, life, stop, _at_leaving })
    }
}

impl BurstContext for BurstServer {
    fn free_memory(&self, slot: i32) {
        self.slots.free(slot);
    }

    fn is_alive(&self) -> bool {
        !self.life.lock().ended
    }
}

impl Drop for BurstServer {
    fn drop(&mut self) {
        self.stop.throw();
        self.life.wait_unless_busy();
    }
}

impl fmt::Debug for BurstServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept = self.slots.lock().memories.len();
        let life = *self.life.lock();
        formatter
            .debug_struct("BurstServer")
            .field("kept_slots", &kept)
            .field("life", &life)
            .finish_non_exhaustive()
    }
}

/// As [`BurstServer`], without a thread: packets are answered when one says so. For tests and fuzz targets, where each
/// packet would otherwise wait until another thread has the processor.
pub struct UnthreadedServer {
    worker: Worker,
    life: Life,
    has_ended: bool,
}

impl UnthreadedServer {
    /// Begins a burst on a prepared model.
    ///
    /// # Errors
    /// As [`BurstServer::new`].
    pub fn new(
        prepared: Arc<dyn PreparedModel>,
        callback: Arc<dyn BurstCallback>,
        requests: MessageQueue<FmqRequestDatum>,
        results: MessageQueue<FmqResultDatum>,
    ) -> nnhal_hal::Result<Self> {
        let (worker, _) = Worker::new(prepared, callback, requests, results)?;
        Ok(Self { worker, life: Life::default(), has_ended: false })
    }

    /// Answers the packets that are there; blocks where results have no room. Whether the burst goes on: without, nothing is
    /// answered any more.
    pub fn answer(&mut self) -> bool {
        self.has_ended = self.has_ended
            || matches!(self.worker.work(&self.life, Some(Duration::ZERO)), Outcome::Ended);
        !self.has_ended
    }
}

impl BurstContext for UnthreadedServer {
    fn free_memory(&self, slot: i32) {
        self.worker.slots.free(slot);
    }

    fn is_alive(&self) -> bool {
        !self.has_ended
    }
}

impl fmt::Debug for UnthreadedServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("UnthreadedServer");
        shown.field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

/// What ends a burst.
struct Stop {
    waiting: [Interrupt; 2],
    cancellation: Cancellation,
}

impl Stop {
    fn throw(&self) {
        self.cancellation.cancel();
        self.waiting.iter().for_each(Interrupt::throw);
    }
}

/// What the thread is doing.
#[derive(Default)]
struct Life {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// It executes, or asks the client for memory, or tells it the result.
    busy: bool,
    ended: bool,
}

impl Life {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_busy(&self, busy: bool) {
        self.lock().busy = busy;
    }

    /// Waits for the end of a thread that has only to notice it. One that is busy with a model or
    /// with the client may take its time.
    fn wait_unless_busy(&self) {
        let going_on = |state: &mut State| !state.ended && !state.busy;
        let ended = self.changed.wait_timeout_while(self.lock(), TIME_TO_NOTICE, going_on);
        drop(ended);
    }
}

/// Says that the burst has ended when it is dropped: at the end of its work, or when that never began.
struct Death {
    life: Arc<Life>,
    at_the_end: Option<Box<dyn FnOnce() + Send>>,
}

impl Drop for Death {
    fn drop(&mut self) {
        self.life.lock().ended = true;
        self.life.changed.notify_all();
        if let Some(at_the_end) = self.at_the_end.take() {
            at_the_end();
        }
    }
}

/// A burst, wherever it is: on a thread of its own, or parked.
struct Burst {
    /// Dropped before its death is reported.
    worker: Worker,
    death: Death,
}

impl Burst {
    /// Works on a thread of its own.
    fn start(self: Box<Self>) -> Result<(), (Box<Self>, io::Error)> {
        // A thread that does not start drops what it was to do.
        let handed_over = Arc::new(Mutex::new(Some(self)));
        let taken = Arc::clone(&handed_over);
        let take = |place: &Mutex<Option<Box<Self>>>| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take()
        };
        let work = move || {
            if let Some(burst) = take(&taken) {
                burst.run();
            }
        };
        let spawned = std::thread::Builder::new().name("nnhal-burst".to_owned()).spawn(work);
        match spawned.map_err(|error| take(&handed_over).map(|burst| (burst, error))) {
            Err(Some(failed)) => Err(failed),
            _ => Ok(()),
        }
    }

    /// Answers packets as long as they come, and then is parked.
    fn run(mut self: Box<Self>) {
        let mut idle = PARKING.is_usable().then_some(TIME_UNTIL_PARKED);
        loop {
            match self.worker.work(&self.death.life, idle) {
                Outcome::Ended => return,
                Outcome::Idle => {}
            }
            match PARKING.park(self) {
                Ok(()) => return,
                Err(burst) => self = burst,
            }
            idle = None;
        }
    }
}

impl Park for Box<Burst> {
    fn is_over(&self) -> bool {
        self.worker.reader.interrupt().is_thrown()
    }

    fn arm(&self) -> Option<u32> {
        self.worker.reader.arm()
    }

    fn armed(&self, value: u32) -> Option<Armed<'_>> {
        self.worker.reader.armed(value)
    }

    fn resume(self) -> Result<(), Self> {
        self.start().map_err(|(burst, _)| burst)
    }
}

/// Why work has stopped.
enum Outcome {
    /// There will be no more results.
    Ended,
    /// No packet has come.
    Idle,
}

/// What answers packets.
struct Worker {
    prepared: Arc<dyn PreparedModel>,
    callback: Arc<dyn BurstCallback>,
    slots: Arc<Slots>,
    reader: Reader<FmqRequestDatum>,
    writer: Writer<FmqResultDatum>,
    request: Vec<FmqRequestDatum>,
    result: Vec<FmqResultDatum>,
    cancellation: Cancellation,
    _held: Held,
}

impl Worker {
    /// On queues that have what a burst needs, with what stops it.
    fn new(
        prepared: Arc<dyn PreparedModel>,
        callback: Arc<dyn BurstCallback>,
        requests: MessageQueue<FmqRequestDatum>,
        results: MessageQueue<FmqResultDatum>,
    ) -> nnhal_hal::Result<(Self, Arc<Stop>)> {
        if !requests.has_event_flag() || !results.has_event_flag() {
            return Err(QueueError::NoEventFlag.into());
        }
        let (length, capacity) = (ResultPacket::LENGTH_WITHOUT_SHAPES, results.capacity());
        if capacity < length {
            return Err(Error::invalid(QueueError::TooLong { length, capacity }));
        }
        let held = prepared.client().hold(Holding::Bursts, 1)?;
        let (reader, writer) = (requests.into_reader(), results.into_writer());
        let stop = Arc::new(Stop {
            waiting: [reader.interrupt(), writer.interrupt()],
            cancellation: Cancellation::new(),
        });
        let worker = Self {
            prepared,
            callback,
            slots: Arc::default(),
            reader,
            writer,
            request: Vec::new(),
            result: Vec::new(),
            cancellation: stop.cancellation.clone(),
            _held: held,
        };
        Ok((worker, stop))
    }

    /// Answers packets until it is stopped, the queues are useless, or none has come for this long.
    fn work(&mut self, life: &Life, idle: Option<Duration>) -> Outcome {
        loop {
            let received = self.reader.read(&mut self.request, idle);
            if matches!(received, Err(QueueError::TimedOut)) {
                return Outcome::Idle;
            }
            let dequeued = Instant::now();
            life.set_busy(true);
            let (result, goes_on) = match received {
                Ok(()) => (self.answer(dequeued), true),
                // The client is notified once, and can go on if its counter allows it.
                Err(QueueError::Counters { passed_over, .. }) => {
                    (ResultPacket::failed(ErrorStatus::GeneralFailure), passed_over)
                }
                Err(_) => return Outcome::Ended,
            };
            if self.send(&result).is_err() || !goes_on {
                return Outcome::Ended;
            }
            life.set_busy(false);
        }
    }

    /// The answer to the packet in `request`. Nothing that happens on the way ends the burst.
    fn answer(&self, dequeued: Instant) -> ResultPacket {
        let answer = catch_unwind(AssertUnwindSafe(|| self.execute(dequeued)));
        answer.unwrap_or_else(|_| ResultPacket::failed(ErrorStatus::GeneralFailure))
    }

    fn execute(&self, dequeued: Instant) -> ResultPacket {
        let packet = match RequestPacket::decode(&self.request) {
            Ok(packet) => packet,
            Err(error) => return ResultPacket::failed(error.status()),
        };
        let pools = match self.slots.memories(&packet.slots, &*self.prepared, &*self.callback) {
            Ok(memories) => memories.into_iter().map(RequestMemoryPool::Memory).collect(),
            Err(status) => return ResultPacket::failed(status),
        };
        let RequestPacket { inputs, outputs, measure, .. } = packet;
        let request = Request { inputs, outputs, pools };
        let options = ExecutionOptions {
            measure,
            cancellation: Some(self.cancellation.clone()),
            ..ExecutionOptions::default()
        };
        match self.prepared.execute(&request, &options) {
            Ok(execution) => {
                let mut timing = Timing::NONE;
                if measure {
                    // From dequeuing to enqueuing (contract: TIME-3).
                    timing = execution.timing;
                    timing.time_in_driver = Some(dequeued.elapsed());
                }
                let output_shapes = execution.output_shapes;
                ResultPacket { status: ErrorStatus::None, output_shapes, timing }
            }
            Err(failed) => {
                let mut result = ResultPacket::failed(failed.error.status());
                if result.status == ErrorStatus::OutputInsufficientSize {
                    result.output_shapes = failed.output_shapes;
                }
                result
            }
        }
    }

    /// Sends a result, or, if it is too long for the queue, a failure (contract: BURST-12).
    fn send(&mut self, result: &ResultPacket) -> Result<(), QueueError> {
        let fits = result.length() <= self.writer.capacity();
        if !fits || result.encode(&mut self.result).is_err() {
            let failed = ResultPacket::failed(ErrorStatus::GeneralFailure);
            // Two data can be counted.
            let _ = failed.encode(&mut self.result);
        }
        self.writer.write(&self.result, None)
    }
}

/// The memory behind slots, as far as it was asked for and is kept.
#[derive(Default)]
struct Slots(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    memories: HashMap<i32, Memory>,
    /// How often a slot was freed.
    frees: u64,
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of a slot. Executions that use its memory have clones of it (contract: BURST-10).
    fn free(&self, slot: i32) {
        let mut kept = self.lock();
        kept.frees += 1;
        let memory = kept.memories.remove(&slot);
        drop(kept);
        // Maybe the last clone: unmapping needs no lock.
        drop(memory);
    }

    /// The memory behind each slot; the client is asked for all that are missing, once for each.
    fn memories(
        &self,
        slots: &[i32],
        prepared: &dyn PreparedModel,
        callback: &dyn BurstCallback,
    ) -> Result<Vec<Memory>, ErrorStatus> {
        let kept = self.lock();
        let found: Option<Vec<_>> =
            slots.iter().map(|slot| kept.memories.get(slot).cloned()).collect();
        if let Some(found) = found {
            return Ok(found);
        }
        let mut known: HashMap<i32, Memory> = HashMap::new();
        let mut missing = Vec::new();
        for slot in slots {
            match kept.memories.get(slot) {
                Some(memory) => drop(known.insert(*slot, memory.clone())),
                None => missing.push(*slot),
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let frees = kept.frees;
        // The client's answer may take its time, and it may free slots meanwhile.
        drop(kept);
        let fetched = callback.get_memories(&missing).map_err(|error| match error.status() {
            ErrorStatus::InvalidArgument => ErrorStatus::InvalidArgument,
            _ => ErrorStatus::GeneralFailure,
        })?;
        if fetched.len() != missing.len() {
            return Err(ErrorStatus::GeneralFailure);
        }
        let client = prepared.client();
        let mut kept = self.lock();
        for (slot, memory) in missing.into_iter().zip(fetched) {
            // Was it freed since it was asked for? Then it may stand for something else by now.
            let may_be_kept = kept.frees == frees && kept.memories.len() < MAXIMUM_KEPT_SLOTS;
            if may_be_kept && memory.kept_by(&client).is_ok() {
                kept.memories.insert(slot, memory.clone());
            }
            known.insert(slot, memory);
        }
        drop(kept);
        let found: Option<Vec<_>> = slots.iter().map(|slot| known.get(slot).cloned()).collect();
        found.ok_or(ErrorStatus::GeneralFailure)
    }
}
