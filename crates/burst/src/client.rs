//! [`BurstClient`]: the client's end of a burst.

mod slots;

use crate::datum::{FmqRequestDatum, FmqResultDatum};
use crate::packet::{PacketError, RequestPacket, ResultPacket};
use crate::queue::{Interrupt, MessageQueue, QueueError, Reader, Writer};
use crate::{BurstCallback, BurstContext};
use nnhal_hal::{Burst, Error, ErrorStatus, Execution, ExecutionError, Memory, Request};
use slots::Slots;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

/// How often a client that waits for a result asks whether the service is still there.
const BETWEEN_SIGNS_OF_LIFE: Duration = Duration::from_millis(500);

/// Why a burst did not execute a request. Except for [`ClientError::Died`] the service has not seen
/// the request, or not sent a result; the same request may succeed by another path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// A request is running (contract: BURST-15).
    #[error("the burst is executing another request")]
    Busy,
    /// A pool is a buffer of the driver, which bursts do not know (contract: BURST-14).
    #[error("pool {pool} is a token, which bursts do not carry")]
    Token {
        /// Index among the request's pools.
        pool: usize,
    },
    /// The request does not fit into the queue (contract: BURST-15).
    #[error("the request takes {length} data, but the burst's queue holds {capacity}")]
    TooLong {
        /// Data of the request.
        length: usize,
        /// Data that the queue holds.
        capacity: usize,
    },
    /// The service is gone (contract: IPC-5). No request will succeed on this burst.
    #[error("the service has ended the burst")]
    Died,
    /// A queue does not work.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// What the service sent is no result.
    #[error("the service sent no result: {0}")]
    Result(#[from] PacketError),
    /// The service sent shapes for another number of outputs.
    #[error("the service sent {found} output shapes for {expected} outputs")]
    Shapes {
        /// How many it sent.
        found: usize,
        /// How many outputs the request has.
        expected: usize,
    },
    /// What the service said of an execution that failed.
    #[error("the service says so")]
    Said,
}

impl ClientError {
    /// The status that goes with it.
    pub fn status(&self) -> ErrorStatus {
        match self {
            Self::Token { .. } => ErrorStatus::InvalidArgument,
            Self::Died => ErrorStatus::DeviceUnavailable,
            _ => ErrorStatus::GeneralFailure,
        }
    }

    /// Whether the service was not asked at all, so that the caller can use another path without
    /// executing anything twice.
    pub fn is_refused_here(&self) -> bool {
        matches!(self, Self::Busy | Self::Token { .. } | Self::TooLong { .. })
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Died => Self::gone(error),
            error => Self::new(error.status(), error),
        }
    }
}

/// A burst that waits for its service: queues and callback are there, to be sent to it.
///
/// ```
/// # struct Service;
/// # impl nnhal_burst::BurstContext for Service { fn free_memory(&self, _slot: i32) {} }
/// # fn configure(
/// #     _callback: std::sync::Arc<dyn nnhal_burst::BurstCallback>,
/// #     _requests: nnhal_burst::MqDescriptor,
/// #     _results: nnhal_burst::MqDescriptor,
/// # ) -> nnhal_hal::Result<Service> { Ok(Service) }
/// # fn main() -> nnhal_hal::Result<()> {
/// use nnhal_burst::Connection;
///
/// let connection = Connection::new(nnhal_burst::QUEUE_CAPACITY)?;
/// let (requests, results) =
///     (connection.requests().descriptor()?, connection.results().descriptor()?);
/// let context = configure(connection.callback(), requests, results)?;
/// let death = connection.death(); // for whoever is notified when the service dies
/// let client = connection.connect(context);
/// # drop(client); death.announce(); Ok(()) }
/// ```
#[derive(Debug)]
pub struct Connection {
    slots: Arc<Slots>,
    requests: MessageQueue<FmqRequestDatum>,
    results: MessageQueue<FmqResultDatum>,
    writer: Writer<FmqRequestDatum>,
    reader: Reader<FmqResultDatum>,
}

impl Connection {
    /// Makes two queues for `capacity` data each.
    ///
    /// # Errors
    /// [`QueueError`], if they cannot be had.
    pub fn new(capacity: usize) -> Result<Self, QueueError> {
        let requests = MessageQueue::create(capacity)?;
        let results = MessageQueue::create(capacity)?;
        let (writer, reader) = (requests.clone().into_writer(), results.clone().into_reader());
        Ok(Self { slots: Arc::default(), requests, results, writer, reader })
    }

    /// The queue that carries requests; its reader is the service's.
    pub fn requests(&self) -> &MessageQueue<FmqRequestDatum> {
        &self.requests
    }

    /// The queue that carries results; its writer is the service's.
    pub fn results(&self) -> &MessageQueue<FmqResultDatum> {
        &self.results
    }

    /// What the service asks for memory.
    pub fn callback(&self) -> Arc<dyn BurstCallback> {
        Arc::clone(&self.slots) as _
    }

    /// What releases a client that waits for a service which is gone.
    pub fn death(&self) -> ServiceDeath {
        ServiceDeath([self.writer.interrupt(), self.reader.interrupt()])
    }

    /// The burst, once the service has answered.
    pub fn connect(self, context: impl BurstContext + 'static) -> BurstClient {
        let Self { slots, writer, reader, .. } = self;
        let (request, result) = (Vec::new(), Vec::new());
        let channel = Mutex::new(Channel { writer, reader, request, result });
        BurstClient { context: Box::new(context), slots, channel }
    }
}

/// Releases a client that waits for a service which is gone (contract: IPC-5). Clones do the same.
#[derive(Debug, Clone)]
pub struct ServiceDeath([Interrupt; 2]);

impl ServiceDeath {
    /// Whoever waits, or comes later, gets [`ClientError::Died`].
    pub fn announce(&self) {
        self.0.iter().for_each(Interrupt::throw);
    }
}

/// The client's end of a burst.
///
/// One request at a time (contract: BURST-15): a second that comes meanwhile is refused, as are
/// requests with tokens and those too long for the queue; [`ClientError`] says so, for a caller who
/// has another path. The memory of a request gets a number, its slot, under which the service keeps
/// it; so it should be the same [`Memory`] again and again. The slots used last are kept
/// ([`KEPT_SLOTS`]), others are freed.
///
/// Dropping it ends the burst.
pub struct BurstClient {
    context: Box<dyn BurstContext>,
    slots: Arc<Slots>,
    channel: Mutex<Channel>,
}

pub use slots::KEPT_SLOTS;

/// The client's ends of the queues, and what goes through them.
struct Channel {
    writer: Writer<FmqRequestDatum>,
    reader: Reader<FmqResultDatum>,
    request: Vec<FmqRequestDatum>,
    result: Vec<FmqResultDatum>,
}

impl Burst for BurstClient {
    fn execute(&self, request: &Request, measure: bool) -> Result<Execution, ExecutionError> {
        let mut channel = match self.channel.try_lock() {
            Ok(channel) => channel,
            // Whoever panicked has left nothing behind that is not cleared by the next request.
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return Err(Error::from(ClientError::Busy).into()),
        };
        let result = self.exchange(&mut channel, request, measure);
        for slot in self.slots.done() {
            self.context.free_memory(slot);
            self.slots.reuse(slot);
        }
        interpret(result.map_err(Error::from)?, request)
    }

    fn free_memory(&self, memory: &Memory) {
        // One that is in use is freed when the execution is over.
        if let Some(slot) = self.slots.remove(memory) {
            self.context.free_memory(slot);
            self.slots.reuse(slot);
        }
    }
}

impl BurstClient {
    /// Sends a request and waits for what comes back.
    fn exchange(
        &self,
        channel: &mut Channel,
        request: &Request,
        measure: bool,
    ) -> Result<ResultPacket, ClientError> {
        let Request { inputs, outputs, pools } = request;
        let length = RequestPacket::length(inputs, outputs, pools.len());
        let capacity = channel.writer.capacity();
        if length > capacity {
            return Err(ClientError::TooLong { length, capacity });
        }
        let slots = self.slots.assign(pools)?;
        RequestPacket::encode(inputs, outputs, &slots, measure, &mut channel.request)?;
        // Nothing was asked for, so whatever is there is no answer. Counters that are broken show
        // when the answer is awaited.
        let _ = channel.reader.try_read(&mut channel.result);
        self.while_alive(|timeout| channel.writer.write(&channel.request, timeout))?;
        self.while_alive(|timeout| channel.reader.read(&mut channel.result, timeout))?;
        Ok(ResultPacket::decode(&channel.result)?)
    }

    /// Repeats what waits until it succeeds, or the service is gone.
    fn while_alive(
        &self,
        mut wait: impl FnMut(Option<Duration>) -> Result<(), QueueError>,
    ) -> Result<(), ClientError> {
        loop {
            match wait(Some(BETWEEN_SIGNS_OF_LIFE)) {
                Ok(()) => return Ok(()),
                Err(QueueError::TimedOut) if self.context.is_alive() => {}
                Err(QueueError::TimedOut | QueueError::Interrupted) => {
                    return Err(ClientError::Died);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What a result means for the request that it answers.
fn interpret(result: ResultPacket, request: &Request) -> Result<Execution, ExecutionError> {
    let ResultPacket { status, output_shapes, timing } = result;
    let (found, expected) = (output_shapes.len(), request.outputs.len());
    if found != 0 && found != expected {
        return Err(Error::from(ClientError::Shapes { found, expected }).into());
    }
    match status {
        ErrorStatus::None => Ok(Execution { output_shapes, timing }),
        status => {
            Err(ExecutionError { error: Error::new(status, ClientError::Said), output_shapes })
        }
    }
}

impl fmt::Debug for BurstClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BurstClient").field("slots", &self.slots).finish_non_exhaustive()
    }
}
