//! Bursts, packet by packet (contract: section 11).

use super::super::models::{addition, memory, memory_bytes, sum, sum_request};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::Driver;
use super::driver_model::DriverModel;
use super::{NONE, demand_status, words};
use nnhal_burst::datum::{FmqRequestDatum, FmqResultDatum, RequestDatum};
use nnhal_burst::packet::{RequestPacket, ResultPacket};
use nnhal_burst::queue::{MessageQueue, Reader, Writer};
use nnhal_hal::{ErrorStatus, HalVersion, Memory, Request, RequestMemoryPool};
use nnhal_hidl::v1_2::{IBurstCallback, IBurstContext};
use nnhal_hidl::{HidlMemory, MQDescriptor, Return};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["BURST-1"],
        name: "without callback or usable queues there is no burst",
        run: Run::Driver(unusable),
    },
    Check {
        ids: &["BURST-7", "BURST-9"],
        name: "memory is asked for once, all of it together, and kept",
        run: Run::Driver(asked_once),
    },
    Check {
        ids: &["BURST-10"],
        name: "freed memory is asked for again, and nothing else",
        run: Run::Driver(freed),
    },
    Check {
        ids: &["BURST-7", "GEN-3"],
        name: "a client that does not give its memory gets an error, and the burst goes on",
        run: Run::Driver(no_memory),
    },
    Check {
        ids: &["BURST-5", "BURST-6"],
        name: "a malformed packet has one result, and the burst goes on",
        run: Run::Driver(malformed),
    },
    Check {
        ids: &["BURST-11"],
        name: "a wrong request in a good packet is INVALID_ARGUMENT",
        run: Run::Driver(wrong_request),
    },
    Check {
        ids: &["BURST-12"],
        name: "a result that is too long for its queue becomes an error",
        run: Run::Driver(short_queue),
    },
];

/// For how long a result is waited for.
pub(super) const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));
/// For how long one that ought not to come is waited for.
const SUSPICION: Option<Duration> = Some(Duration::from_millis(50));

pub(super) const INPUTS: i32 = 5;
pub(super) const OUTPUTS: i32 = 7;

/// How a client answers who asks for its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    AsItShould,
    Refuses,
    GivesOneLess,
}

/// The client's memory, behind its slots.
pub(super) struct Client {
    inputs: Mutex<Memory>,
    pub(super) outputs: Memory,
    state: Mutex<(Manner, Vec<Vec<i32>>)>,
}

impl Client {
    fn lock(&self) -> MutexGuard<'_, (Manner, Vec<Vec<i32>>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_inputs(&self) -> MutexGuard<'_, Memory> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the inputs are in this memory.
    pub(super) fn give_inputs(&self, memory: Memory) {
        *self.lock_inputs() = memory;
    }

    fn answer_so(&self, manner: Manner) {
        self.lock().0 = manner;
    }

    /// The slots that were asked for since the last time, call by call.
    pub(super) fn asked(&self) -> Vec<Vec<i32>> {
        std::mem::take(&mut self.lock().1)
    }
}

impl IBurstCallback for Client {
    fn get_memories(&self, slots: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
        let mut state = self.lock();
        let mut sorted = slots.to_vec();
        sorted.sort_unstable();
        state.1.push(sorted);
        let refused = |status: ErrorStatus| Ok((status.code(), Vec::new()));
        if state.0 == Manner::Refuses {
            return refused(ErrorStatus::GeneralFailure);
        }
        let mut memories = Vec::new();
        for slot in slots {
            let memory = match *slot {
                INPUTS => self.lock_inputs().clone(),
                OUTPUTS => self.outputs.clone(),
                _ => return refused(ErrorStatus::InvalidArgument),
            };
            let Ok(memory) = words(&memory) else { return refused(ErrorStatus::GeneralFailure) };
            memories.push(memory);
        }
        if state.0 == Manner::GivesOneLess {
            memories.pop();
        }
        Ok((ErrorStatus::None.code(), memories))
    }
}

/// A burst, from the client's side.
pub(super) struct Burst {
    pub(super) client: Arc<Client>,
    pub(super) request: Request,
    pub(super) writer: Writer<FmqRequestDatum>,
    pub(super) reader: Reader<FmqResultDatum>,
    pub(super) context: Arc<dyn IBurstContext>,
    _model: DriverModel,
}

/// The client's own trouble.
pub(super) fn own(error: impl std::fmt::Display) -> Violation {
    Violation(format!("the check's own burst: {error}"))
}

type Queues = (MessageQueue<FmqRequestDatum>, MessageQueue<FmqResultDatum>);

fn queues(results: usize) -> Result<Queues, Violation> {
    Ok((
        MessageQueue::create(nnhal_burst::QUEUE_CAPACITY).map_err(own)?,
        MessageQueue::create(results).map_err(own)?,
    ))
}

fn descriptor<D: nnhal_burst::queue::Datum>(
    queue: &MessageQueue<D>,
) -> Result<MQDescriptor, Violation> {
    Ok(MQDescriptor::from(queue.descriptor().map_err(own)?))
}

/// A client with a request for the sum: inputs behind one slot, the output behind another.
pub(super) fn client() -> Result<(Arc<Client>, Request), Violation> {
    let mut request = sum_request()?;
    let Some(RequestMemoryPool::Memory(inputs)) = request.pools.first().cloned() else {
        return Err(own("there is no memory"));
    };
    let outputs = memory(&[0; 16])?;
    request.outputs[0].location = nnhal_hal::DataLocation { pool_index: 1, offset: 0, length: 16 };
    request.pools.push(RequestMemoryPool::Memory(outputs.clone()));
    let state = Mutex::new((Manner::AsItShould, Vec::new()));
    let inputs = Mutex::new(inputs);
    Ok((Arc::new(Client { inputs, outputs, state }), request))
}

impl Burst {
    /// A burst on the sum, with a queue for `results` data of results; `None` if the driver has none.
    pub(super) fn begin(driver: &Driver, results: usize) -> Result<Option<Self>, Violation> {
        if driver.newest() < HalVersion::V1_2 {
            return Ok(None);
        }
        let model = driver.prepared(&addition([2, 2]))?;
        let (client, request) = client()?;
        Self::on(model, client, request, results).map(Some)
    }

    /// A burst of a client on a prepared model.
    pub(super) fn on(
        model: DriverModel,
        client: Arc<Client>,
        request: Request,
        results: usize,
    ) -> Result<Self, Violation> {
        let (requests, results) = queues(results)?;
        let callback = Some(Arc::clone(&client) as _);
        let (status, context) =
            configure(&model, callback, &descriptor(&requests)?, &descriptor(&results)?)?;
        demand_status("configureExecutionBurst", status, NONE)?;
        let context = context.ok_or_else(|| Violation("there is no context with NONE".into()))?;
        let (writer, reader) = (requests.into_writer(), results.into_reader());
        Ok(Self { client, request, writer, reader, context, _model: model })
    }

    /// The packet of the request for the sum.
    pub(super) fn packet(&self) -> Result<Vec<FmqRequestDatum>, Violation> {
        let Request { inputs, outputs, .. } = &self.request;
        packet(inputs, outputs)
    }

    /// Sends a packet and waits for its result, which must be the only one.
    pub(super) fn exchange(
        &mut self,
        packet: &[FmqRequestDatum],
    ) -> Result<ResultPacket, Violation> {
        self.writer.write(packet, TIMEOUT).map_err(own)?;
        let mut data = Vec::new();
        let received = self.reader.read(&mut data, TIMEOUT);
        received.map_err(|error| Violation(format!("there is no result: {error}")))?;
        let result = ResultPacket::decode(&data);
        result.map_err(|error| Violation(format!("what was sent is no result: {error}")))
    }

    /// Demands that the sum is computed.
    pub(super) fn expect_sum(&mut self) -> Result<(), Violation> {
        let packet = self.packet()?;
        let result = self.exchange(&packet)?;
        demand_status("an execution", result.status.code(), NONE)?;
        let found = memory_bytes(&self.client.outputs)?;
        demand!(found[..16] == sum()[..], "the sum is {found:?}");
        Ok(())
    }

    /// Demands a failure with neither shapes nor times, and that the burst goes on.
    fn expect_failure(
        &mut self,
        what: &str,
        packet: &[FmqRequestDatum],
    ) -> Result<ErrorStatus, Violation> {
        let ResultPacket { status, output_shapes, timing } = self.exchange(packet)?;
        demand!(status != ErrorStatus::None, "{what} is executed");
        demand!(output_shapes.is_empty(), "{what}: {output_shapes:?} with {status}");
        demand!(timing == nnhal_hal::Timing::NONE, "{what}: {timing:?} with {status}");
        let another = self.reader.read(&mut Vec::new(), SUSPICION).is_ok();
        demand!(!another, "{what} has two results");
        Ok(status)
    }
}

pub(super) fn packet(
    inputs: &[nnhal_hal::RequestArgument],
    outputs: &[nnhal_hal::RequestArgument],
) -> Result<Vec<FmqRequestDatum>, Violation> {
    let mut data = Vec::new();
    RequestPacket::encode(inputs, outputs, &[INPUTS, OUTPUTS], false, &mut data).map_err(own)?;
    Ok(data)
}

type Configured = (i32, Option<Arc<dyn IBurstContext>>);

fn configure(
    model: &DriverModel,
    callback: Option<Arc<dyn IBurstCallback>>,
    requests: &MQDescriptor,
    results: &MQDescriptor,
) -> Result<Configured, Violation> {
    let Some(model) = &model.v1_2 else {
        return Err(Violation("CB-4: what 1.2 prepares is not one of 1.2".into()));
    };
    let answer = model.configure_execution_burst(callback, requests, results);
    answer.map_err(|error| Violation(format!("configureExecutionBurst: {error}")))
}

pub(super) fn not_offered() -> Verdict {
    Verdict::NotOffered("bursts, which are of 1.2".into())
}

fn unusable(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(not_offered());
    }
    let model = driver.prepared(&addition([2, 2]))?;
    let (requests, results) = queues(nnhal_burst::QUEUE_CAPACITY)?;
    let without_flag = |mut queue: MQDescriptor| {
        queue.grantors.truncate(3);
        queue
    };
    let nothing = MQDescriptor::default;
    for (what, has_callback, requests, results) in [
        ("no callback", false, descriptor(&requests)?, descriptor(&results)?),
        ("no queue for requests", true, nothing(), descriptor(&results)?),
        ("no queue for results", true, descriptor(&requests)?, nothing()),
        ("no event flag", true, without_flag(descriptor(&requests)?), descriptor(&results)?),
    ] {
        let callback = if has_callback { Some(client()?.0 as _) } else { None };
        let (status, context) = configure(&model, callback, &requests, &results)?;
        let allowed = [ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure];
        demand_status(what, status, &allowed)?;
        demand!(context.is_none(), "{what}: there is a context all the same");
    }
    Ok(Verdict::Kept)
}

fn asked_once(driver: &Driver) -> Result<Verdict, Violation> {
    let burst = Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)?;
    let Some(mut burst) = burst else { return Ok(not_offered()) };
    burst.expect_sum()?;
    let asked = burst.client.asked();
    demand!(asked == [[INPUTS, OUTPUTS]], "the driver asks for {asked:?}, call by call");
    burst.expect_sum()?;
    let asked = burst.client.asked();
    demand!(asked.is_empty(), "the driver asks again for {asked:?}");
    Ok(Verdict::Kept)
}

fn freed(driver: &Driver) -> Result<Verdict, Violation> {
    let burst = Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)?;
    let Some(mut burst) = burst else { return Ok(not_offered()) };
    burst.expect_sum()?;
    drop(burst.client.asked());
    for slot in [INPUTS, INPUTS, 99, -1, i32::MIN] {
        burst
            .context
            .free_memory(slot)
            .map_err(|error| Violation(format!("freeMemory of slot {slot}: {error}")))?;
    }
    burst.expect_sum()?;
    let asked = burst.client.asked();
    demand!(asked == [[INPUTS]], "slot {INPUTS} was freed, the driver asks for {asked:?}");
    Ok(Verdict::Kept)
}

fn no_memory(driver: &Driver) -> Result<Verdict, Violation> {
    for manner in [Manner::Refuses, Manner::GivesOneLess] {
        let burst = Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)?;
        let Some(mut burst) = burst else { return Ok(not_offered()) };
        burst.client.answer_so(manner);
        let packet = burst.packet()?;
        burst.expect_failure(&format!("{manner:?}"), &packet)?;
        burst.client.answer_so(Manner::AsItShould);
        burst.expect_sum()?;
    }
    let burst = Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)?;
    let Some(mut burst) = burst else { return Ok(not_offered()) };
    let mut packet = burst.packet()?;
    for datum in &mut packet {
        if *datum == FmqRequestDatum::from(RequestDatum::Pool(OUTPUTS)) {
            *datum = RequestDatum::Pool(i32::MAX).into();
        }
    }
    burst.expect_failure("a slot that stands for nothing", &packet)?;
    burst.expect_sum()?;
    Ok(Verdict::Kept)
}

fn malformed(driver: &Driver) -> Result<Verdict, Violation> {
    let burst = Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)?;
    let Some(mut burst) = burst else { return Ok(not_offered()) };
    let good = burst.packet()?;
    let first = |inputs, outputs| {
        let size = u32::try_from(good.len()).unwrap_or(u32::MAX);
        let (packet_size, pools) = (size, 2);
        let first = RequestDatum::PacketInformation { packet_size, inputs, outputs, pools };
        let mut packet = good.clone();
        packet[0] = first.into();
        packet
    };
    let mut packets = vec![
        ("a datum less".to_owned(), good[..good.len() - 1].to_vec()),
        ("a datum more".to_owned(), [&good[..], &good[good.len() - 1..]].concat()),
        ("nothing but a datum".to_owned(), good[..1].to_vec()),
        ("an input more than there is".to_owned(), first(3, 1)),
        ("4294967295 outputs".to_owned(), first(2, u32::MAX)),
    ];
    for place in 0..good.len() {
        let mut packet = good.clone();
        packet[place] = RequestDatum::InputDimension(1).into();
        packets.push((format!("a dimension in place {place}"), packet));
    }
    for (what, packet) in packets {
        burst.expect_failure(&what, &packet)?;
    }
    burst.expect_sum()?;
    Ok(Verdict::Kept)
}

fn wrong_request(driver: &Driver) -> Result<Verdict, Violation> {
    let burst = Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)?;
    let Some(mut burst) = burst else { return Ok(not_offered()) };
    let packet = packet(&burst.request.inputs[..1], &burst.request.outputs)?;
    let status = burst.expect_failure("an input less", &packet)?;
    demand!(status == ErrorStatus::InvalidArgument, "an input less: {status}");
    burst.expect_sum()?;
    Ok(Verdict::Kept)
}

fn short_queue(driver: &Driver) -> Result<Verdict, Violation> {
    // Status and times, and not all of the shape.
    let Some(mut burst) = Burst::begin(driver, 4)? else { return Ok(not_offered()) };
    let packet = burst.packet()?;
    for _ in 0..2 {
        let ResultPacket { status, output_shapes, .. } = burst.exchange(&packet)?;
        // A driver that leaves out what everybody knows has room enough (contract: SHAPE-2).
        let allowed = [ErrorStatus::GeneralFailure, ErrorStatus::None];
        demand_status("a result too long", status.code(), &allowed)?;
        demand!(output_shapes.is_empty(), "{output_shapes:?} in a queue of 4");
    }
    Ok(Verdict::Kept)
}
