//! Whatever another process puts into a burst's queues (contract: BURST-5, BURST-6, GEN-8): each
//! packet has one answer, the one that its decoding says; counters and descriptors that cannot be
//! true are errors, and nothing outside of a queue's parts is written.

#![no_main]

use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use nnhal_burst::datum::{DATUM_BYTES, FmqRequestDatum, FmqResultDatum};
use nnhal_burst::packet::{PacketError, RequestPacket, ResultPacket};
use nnhal_burst::queue::{Grantor, MessageQueue, MqDescriptor, QueueError, Reader, Writer};
use nnhal_burst::server::UnthreadedServer;
use nnhal_burst::{BurstCallback, BurstContext, BurstServer};
use nnhal_hal::{
    Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions, Memory, OutputShape,
    PreparedModel, Request, Timing,
};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

const CAPACITY: usize = 64;
const IN_TIME: Option<Duration> = Some(Duration::from_secs(30));

/// Has as many outputs as the request, of as many dimensions as their arguments.
struct Shapes;

impl PreparedModel for Shapes {
    fn execute(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> Result<Execution, ExecutionError> {
        if request.inputs.len() > 3 {
            return Err(Error::new(ErrorStatus::MissedDeadlineTransient, "many inputs").into());
        }
        let shape = |argument: &nnhal_hal::RequestArgument| OutputShape {
            dimensions: argument.dimensions.clone(),
            is_sufficient: !argument.has_no_value,
        };
        let output_shapes: Vec<_> = request.outputs.iter().map(shape).collect();
        if !output_shapes.iter().all(|shape| shape.is_sufficient) {
            let error = Error::new(ErrorStatus::OutputInsufficientSize, "as the request says");
            return Err(ExecutionError { error, output_shapes });
        }
        let time_on_device = options.measure.then_some(Duration::ZERO);
        let timing = Timing { time_on_device, time_in_driver: time_on_device };
        Ok(Execution { output_shapes, timing })
    }
}

/// Knows slots 0 to 3, and answers wrongly for 4.
struct Callback(Memory);

impl BurstCallback for Callback {
    fn get_memories(&self, slots: &[i32]) -> nnhal_hal::Result<Vec<Memory>> {
        assert!(!slots.is_empty());
        if slots.iter().any(|slot| !(0..=4).contains(slot)) {
            return Err(Error::invalid("no such slot"));
        }
        let extra = slots.iter().filter(|slot| **slot == 4).count();
        Ok(vec![self.0.clone(); slots.len() + extra])
    }
}

struct Service<S> {
    server: S,
    requests: Writer<FmqRequestDatum>,
    results: Reader<FmqResultDatum>,
}

/// Answers on the thread that asks: where other processes are busy, waking another thread takes longer than all else.
static SERVICE: LazyLock<Mutex<Service<UnthreadedServer>>> =
    LazyLock::new(|| service(UnthreadedServer::new));

/// Answers as a real one does. One packet of 256 goes there.
static THREADED: LazyLock<Mutex<Service<BurstServer>>> =
    LazyLock::new(|| service(BurstServer::new));

type Requests = MessageQueue<FmqRequestDatum>;
type Results = MessageQueue<FmqResultDatum>;
type Start<S> =
    fn(Arc<dyn PreparedModel>, Arc<dyn BurstCallback>, Requests, Results) -> nnhal_hal::Result<S>;

fn service<S>(start: Start<S>) -> Mutex<Service<S>> {
    let requests = MessageQueue::create(CAPACITY).expect("a queue");
    // Shorter than some results.
    let results = MessageQueue::create(16).expect("a queue");
    let theirs = (
        MessageQueue::open(requests.descriptor().expect("descriptors")).expect("a queue"),
        MessageQueue::open(results.descriptor().expect("descriptors")).expect("a queue"),
    );
    let callback = Arc::new(Callback(Memory::allocate(64).expect("memory")));
    let server = start(Arc::new(Shapes), callback, theirs.0, theirs.1).expect("a burst");
    let (requests, results) = (requests.into_writer(), results.into_reader());
    Mutex::new(Service { server, requests, results })
}

fuzz_target!(|data: &[u8]| {
    let mut source = Unstructured::new(data);
    let _ = match source.int_in_range(0..=3) {
        Ok(0 | 1) => packets(&mut source),
        Ok(2) => counters(&mut source),
        Ok(_) => descriptors(&mut source),
        Err(error) => Err(error),
    };
});

/// A datum whose tag and numbers often mean something.
fn datum(source: &mut Unstructured<'_>) -> Result<[u8; DATUM_BYTES]> {
    if source.ratio(1, 8)? {
        return source.arbitrary();
    }
    let mut datum = [0; DATUM_BYTES];
    datum[0] = source.int_in_range(0..=7)?;
    for number in datum[4..].chunks_exact_mut(4) {
        let value = match source.int_in_range(0_u8..=15)? {
            15 => source.arbitrary()?,
            small => u32::from(small % 6),
        };
        number.copy_from_slice(&value.to_ne_bytes());
    }
    Ok(datum)
}

fn packets(source: &mut Unstructured<'_>) -> Result<()> {
    // Half of the packets are good but for a few data.
    let mut data = if source.arbitrary()? { good(source)? } else { Vec::new() };
    let changes = source.int_in_range(0..=8)?;
    for _ in 0..changes {
        let new = FmqRequestDatum::from_bytes(datum(source)?);
        let at = source.int_in_range(0..=data.len())?;
        match source.int_in_range(0_u8..=2)? {
            0 if at < data.len() => data[at] = new,
            1 if at < data.len() => drop(data.remove(at)),
            _ => data.insert(at, new),
        }
    }
    let results: Vec<_> =
        data.iter().map(|datum| FmqResultDatum::from_bytes(datum.to_bytes())).collect();
    if let Ok(packet) = ResultPacket::decode(&results) {
        let mut again = Vec::new();
        packet.encode(&mut again).expect("as few data");
        assert_eq!(ResultPacket::decode(&again), Ok(packet));
    }
    let decoded = RequestPacket::decode(&data);
    if let Ok(packet) = &decoded {
        let (mut again, RequestPacket { inputs, outputs, slots, measure }) = (Vec::new(), packet);
        RequestPacket::encode(inputs, outputs, slots, *measure, &mut again).expect("as few data");
        assert_eq!(RequestPacket::decode(&again).as_ref(), Ok(packet));
        assert_eq!(again.len(), data.len());
    }
    if !data.is_empty() && data.len() <= CAPACITY {
        let free = i32::from(source.arbitrary::<u8>()? % 8);
        // What has run out of bytes says yes.
        if source.ratio(255, 256)? {
            let mut service = SERVICE.lock().expect("no panic before");
            answer(&mut service, UnthreadedServer::answer, &data, &decoded, free);
        } else {
            let mut service = THREADED.lock().expect("no panic before");
            answer(&mut service, |_| true, &data, &decoded, free);
        }
    }
    Ok(())
}

fn good(source: &mut Unstructured<'_>) -> Result<Vec<FmqRequestDatum>> {
    let argument = |source: &mut Unstructured<'_>| {
        let rank = source.int_in_range(0..=4)?;
        Ok(nnhal_hal::RequestArgument {
            has_no_value: source.ratio(1, 4)?,
            location: nnhal_hal::DataLocation {
                pool_index: source.int_in_range(0..=3)?,
                offset: source.arbitrary()?,
                length: source.arbitrary()?,
            },
            dimensions: vec![source.arbitrary()?; rank],
        })
    };
    let arguments = |source: &mut Unstructured<'_>| {
        let count = source.int_in_range(0..=4)?;
        (0..count).map(|_| argument(source)).collect::<Result<Vec<_>>>()
    };
    let (inputs, outputs) = (arguments(source)?, arguments(source)?);
    let slots: Vec<i32> = {
        let count = source.int_in_range(0..=4)?;
        (0..count).map(|_| source.int_in_range(-1..=5)).collect::<Result<_>>()?
    };
    let mut data = Vec::new();
    RequestPacket::encode(&inputs, &outputs, &slots, source.arbitrary()?, &mut data)
        .expect("few data");
    Ok(data)
}

/// The service's answer is the one that the packet deserves.
fn answer<S: BurstContext>(
    service: &mut Service<S>,
    goes_on: impl Fn(&mut S) -> bool,
    data: &[FmqRequestDatum],
    decoded: &Result<RequestPacket, PacketError>,
    free: i32,
) {
    let Service { server, requests, results } = service;
    server.free_memory(free);
    requests.write(data, IN_TIME).expect("room for a packet");
    assert!(goes_on(server));
    let mut received = Vec::new();
    results.read(&mut received, IN_TIME).expect("an answer");
    let status = match ResultPacket::decode(&received) {
        Ok(result) => result.status,
        Err(error) => panic!("{error}"),
    };
    match decoded {
        Err(error) => assert_eq!(status, error.status()),
        Ok(packet) if packet.slots.iter().any(|slot| !(0..=4).contains(slot)) => {
            assert_eq!(status, ErrorStatus::InvalidArgument);
        }
        Ok(packet) if packet.slots.contains(&4) => assert_eq!(status, ErrorStatus::GeneralFailure),
        // 1.2 has no deadlines, and statuses for them neither.
        Ok(packet) if packet.inputs.len() > 3 => assert_eq!(status, ErrorStatus::GeneralFailure),
        Ok(packet) => {
            let length: usize =
                packet.outputs.iter().map(|output| 1 + output.dimensions.len()).sum();
            let is_short = packet.outputs.iter().any(|output| output.has_no_value);
            let expected = match (2 + length <= 16, is_short) {
                (false, _) => ErrorStatus::GeneralFailure,
                (true, true) => ErrorStatus::OutputInsufficientSize,
                (true, false) => ErrorStatus::None,
            };
            assert_eq!(status, expected);
        }
    }
}

/// A counter as it should be, or nearly, or not.
fn counter(source: &mut Unstructured<'_>) -> Result<u64> {
    let small = u64::from(source.arbitrary::<u8>()?);
    Ok(match source.int_in_range(0_u8..=4)? {
        0 => small * 24,
        1 => small,
        2 => small.wrapping_mul(24).wrapping_neg(),
        3 => (1 << 63) + small,
        _ => source.arbitrary()?,
    })
}

/// A queue whose counters, ring and event flag anybody writes at any time.
fn counters(source: &mut Unstructured<'_>) -> Result<()> {
    let queue = MessageQueue::<FmqRequestDatum>::create(8).expect("a queue");
    let file: File = queue.descriptor().expect("descriptors").files.remove(0).into();
    let (begin_read, begin_written) = (counter(source)?, counter(source)?);
    let put = |offset, bytes: &[u8]| file.write_all_at(bytes, offset).expect("memory");
    put(0, &begin_read.to_ne_bytes());
    put(8, &begin_written.to_ne_bytes());
    let (mut writer, mut reader) = (queue.clone().into_writer(), queue.into_reader());
    let mut packet = Vec::new();
    for _ in 0..source.int_in_range(0..=24)? {
        let outcome = match source.int_in_range(0_u8..=6)? {
            0 => {
                put(0, &counter(source)?.to_ne_bytes());
                continue;
            }
            1 => {
                put(8, &counter(source)?.to_ne_bytes());
                continue;
            }
            2 => {
                put(16 + 8 * 24, &source.arbitrary::<u32>()?.to_ne_bytes());
                continue;
            }
            3 => reader.try_read(&mut packet).map(|_| ()),
            4 => reader.read(&mut packet, Some(Duration::ZERO)),
            5 => writer.try_write(&vec![FmqRequestDatum::default(); 3]).map(|_| ()),
            _ => {
                let length = source.int_in_range(0..=9)?;
                let data = vec![FmqRequestDatum::default(); length];
                writer.write(&data, Some(Duration::ZERO))
            }
        };
        assert!(packet.len() <= 8);
        if let Err(error) = outcome {
            assert!(matches!(
                error,
                QueueError::Counters { .. } | QueueError::TimedOut | QueueError::TooLong { .. }
            ));
        }
    }
    Ok(())
}

const FILE_BYTES: u64 = 8192;

/// A descriptor of any shape is refused, or a queue that touches its parts only.
fn descriptors(source: &mut Unstructured<'_>) -> Result<()> {
    let memory = Memory::allocate(FILE_BYTES).expect("memory");
    let files = source.int_in_range(0..=2)?;
    let near = |source: &mut Unstructured<'_>, numbers: &[u32]| {
        if source.ratio(1, 16)? { source.arbitrary() } else { source.choose(numbers).copied() }
    };
    let mut grantors = Vec::new();
    for index in 0..source.int_in_range(0_usize..=5)? {
        let usual: u64 = [8, 8, 24 * 8, 4][index % 4];
        grantors.push(Grantor {
            flags: source.arbitrary()?,
            file: near(source, &[0, 0, 1, 2])?,
            offset: near(source, &[0, 4, 8, 16, 24, 208, 4088, 4096, 8000, 8184, 8188, 8192])?,
            extent: match source.int_in_range(0_u8..=7)? {
                0 => source.arbitrary()?,
                1 => 24 * u64::from(source.arbitrary::<u16>()?),
                _ => usual,
            },
        });
    }
    let descriptor = MqDescriptor {
        files: (0..files)
            .map(|_| memory.as_fd().try_clone_to_owned().expect("a descriptor"))
            .collect(),
        grantors: grantors.clone(),
        quantum: near(source, &[24, 24, 24, 24, 8, 0])?,
        flags: near(source, &[1, 1, 1, 1, 2, 0])?,
    };
    let Ok(queue) = MessageQueue::<FmqRequestDatum>::open(descriptor) else { return Ok(()) };
    let capacity = queue.capacity();
    assert!(capacity > 0 && capacity * 24 <= FILE_BYTES as usize);
    let (mut writer, mut reader) = (queue.clone().into_writer(), queue.into_reader());
    let data = vec![FmqRequestDatum::from_bytes([0xEE; DATUM_BYTES]); capacity];
    let mut packet = Vec::new();
    for _ in 0..3 {
        // Two descriptors are the same file: parts may overlap after all, and counters break.
        let _ = writer.try_write(&data);
        let _ = reader.try_read(&mut packet);
    }
    let bytes = memory.view().and_then(|view| view.read_to_vec(0, FILE_BYTES)).expect("memory");
    let is_part = |at: u64| {
        let within = |part: &Grantor| {
            (u64::from(part.offset)..u64::from(part.offset) + part.extent).contains(&at)
        };
        grantors.iter().any(within)
    };
    for (at, byte) in bytes.iter().enumerate() {
        assert!(*byte == 0 || is_part(at as u64), "byte {at} is {byte}");
    }
    Ok(())
}
