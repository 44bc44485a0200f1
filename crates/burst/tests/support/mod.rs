//! What the tests share: a prepared model that does what a test wants, a client made by hand.
#![allow(dead_code)] // Each test file uses its part.

use nnhal_burst::datum::{FmqRequestDatum, FmqResultDatum};
use nnhal_burst::packet::{RequestPacket, ResultPacket};
use nnhal_burst::queue::{MessageQueue, Reader, Writer};
use nnhal_burst::{BurstCallback, BurstServer};
use nnhal_hal::{
    DataLocation, Error, Execution, ExecutionError, ExecutionOptions, Memory, OutputShape,
    PreparedModel, Request, RequestArgument, RequestMemoryPool, Timing,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Long enough for anything that is to happen.
pub const SOON: Option<Duration> = Some(Duration::from_secs(20));

type Run = dyn Fn(&Request, &ExecutionOptions) -> Result<Execution, ExecutionError> + Send + Sync;

/// A prepared model that runs a function.
pub struct Mock(Box<Run>);

impl Mock {
    pub fn running(
        run: impl Fn(&Request, &ExecutionOptions) -> Result<Execution, ExecutionError>
        + Send
        + Sync
        + 'static,
    ) -> Arc<dyn PreparedModel> {
        Arc::new(Self(Box::new(run)))
    }

    /// One input and one output of bytes, as many as the request says: each byte doubled.
    pub fn doubling() -> Arc<dyn PreparedModel> {
        Self::running(double)
    }
}

impl PreparedModel for Mock {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        (self.0)(request, options)
    }
}

pub fn double(request: &Request, options: &ExecutionOptions) -> Result<Execution, ExecutionError> {
    let ([input], [output]) = (&*request.inputs, &*request.outputs) else {
        return Err(Error::invalid("expected one input and one output").into());
    };
    let view =
        |argument: &RequestArgument| match request.pools.get(argument.location.pool_index as usize)
        {
            Some(RequestMemoryPool::Memory(memory)) => memory.view().map_err(Error::from),
            _ => Err(Error::invalid("no such pool")),
        };
    let DataLocation { offset, length, .. } = input.location;
    let mut bytes = view(input)?.read_to_vec(offset.into(), length.into()).map_err(Error::from)?;
    for byte in &mut bytes {
        *byte = byte.wrapping_mul(2);
    }
    let is_sufficient = output.location.length >= length;
    let output_shapes = vec![OutputShape { dimensions: vec![length], is_sufficient }];
    if !is_sufficient {
        let error = Error::new(nnhal_hal::ErrorStatus::OutputInsufficientSize, "too short");
        return Err(ExecutionError { error, output_shapes });
    }
    view(output)?.write(output.location.offset.into(), &bytes).map_err(Error::from)?;
    let time = options.measure.then_some(Duration::from_micros(1));
    Ok(Execution { output_shapes, timing: Timing { time_on_device: time, time_in_driver: time } })
}

/// Eight bytes in, eight out, in one pool.
pub fn request(memory: &Memory) -> Request {
    let at = |offset| RequestArgument::at(DataLocation { pool_index: 0, offset, length: 8 });
    Request {
        inputs: vec![at(0)],
        outputs: vec![at(8)],
        pools: vec![RequestMemoryPool::Memory(memory.clone())],
    }
}

/// Memory for [`request`], with this input.
pub fn memory(input: u8) -> Memory {
    let mut bytes = [0; 16];
    bytes[..8].fill(input);
    Memory::from_bytes(&bytes).unwrap()
}

pub fn output(memory: &Memory) -> Vec<u8> {
    memory.view().unwrap().read_to_vec(8, 8).unwrap()
}

/// Answers from a table, and writes down what it was asked for.
#[derive(Default)]
pub struct Callback {
    pub memories: Mutex<Vec<(i32, Memory)>>,
    pub asked: Mutex<Vec<Vec<i32>>>,
}

impl Callback {
    pub fn put(&self, slot: i32, memory: &Memory) {
        let mut memories = self.memories.lock().unwrap();
        memories.retain(|(known, _)| *known != slot);
        memories.push((slot, memory.clone()));
    }

    pub fn asked(&self) -> Vec<Vec<i32>> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl BurstCallback for Callback {
    fn get_memories(&self, slots: &[i32]) -> nnhal_hal::Result<Vec<Memory>> {
        self.asked.lock().unwrap().push(slots.to_vec());
        let memories = self.memories.lock().unwrap();
        let memory = |slot: &i32| {
            let found = memories.iter().find(|(known, _)| known == slot);
            found.map(|(_, memory)| memory.clone()).ok_or_else(|| Error::invalid("no such slot"))
        };
        slots.iter().map(memory).collect()
    }
}

/// A client that sends whatever it likes.
pub struct RawClient {
    pub server: BurstServer,
    pub callback: Arc<Callback>,
    pub requests: Writer<FmqRequestDatum>,
    pub results: Reader<FmqResultDatum>,
}

impl RawClient {
    pub fn new(prepared: Arc<dyn PreparedModel>) -> Self {
        Self::with_results(prepared, 1024)
    }

    /// With another length of the result queue. Slot 1 stands for some memory.
    pub fn with_results(prepared: Arc<dyn PreparedModel>, capacity: usize) -> Self {
        let requests = MessageQueue::create(1024).unwrap();
        let results = MessageQueue::create(capacity).unwrap();
        // As another process would: by what is sent to it.
        let theirs = (
            MessageQueue::open(requests.descriptor().unwrap()).unwrap(),
            MessageQueue::open(results.descriptor().unwrap()).unwrap(),
        );
        let callback = Arc::new(Callback::default());
        callback.put(1, &memory(7));
        let server =
            BurstServer::new(prepared, Arc::clone(&callback) as _, theirs.0, theirs.1).unwrap();
        let (requests, results) = (requests.into_writer(), results.into_reader());
        Self { server, callback, requests, results }
    }

    /// Sends data and takes the answer as it is.
    pub fn exchange_raw(&mut self, packet: &[FmqRequestDatum]) -> Vec<FmqResultDatum> {
        self.requests.write(packet, SOON).unwrap();
        let mut result = Vec::new();
        self.results.read(&mut result, SOON).unwrap();
        result
    }

    pub fn exchange(&mut self, packet: &[FmqRequestDatum]) -> ResultPacket {
        ResultPacket::decode(&self.exchange_raw(packet)).unwrap()
    }

    /// Doubles the input behind slot 1, to see that the burst works.
    pub fn check_usable(&mut self) {
        let result = self.exchange(&packet(&[1], false));
        assert_eq!(result.status, nnhal_hal::ErrorStatus::None);
        assert_eq!(result.output_shapes.len(), 1);
    }
}

/// A packet for [`request`] with these slots.
pub fn packet(slots: &[i32], measure: bool) -> Vec<FmqRequestDatum> {
    let request = request(&memory(0));
    let mut data = Vec::new();
    RequestPacket::encode(&request.inputs, &request.outputs, slots, measure, &mut data).unwrap();
    data
}

/// Waits until something is true that is to become true soon.
pub fn until(mut is_true: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_true() {
        assert!(begin.elapsed() < SOON.unwrap(), "it did not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}
