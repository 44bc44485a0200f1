//! What is in the packets of a burst, datum by datum (contract: section 11).

use super::super::models::{addition, bytes, endless, memory, memory_bytes, sum};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::bursts::{Burst, INPUTS, OUTPUTS, TIMEOUT, client, not_offered, own, packet};
use super::driver::Driver;
use super::{INVALID, MISSED, NONE, demand_status};
use nnhal_burst::datum::{DATUM_BYTES, FmqRequestDatum, FmqResultDatum, RequestDatum};
use nnhal_burst::packet::ResultPacket;
use nnhal_hal::{ErrorStatus, HalVersion, Timing};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["BURST-5", "BURST-6"],
        name: "each datum of another kind in each place has an error, and the burst goes on",
        run: Run::Driver(every_kind_everywhere),
    },
    Check {
        ids: &["BURST-5", "BURST-6"],
        name: "each number of a packet that is wrong has an error, and the burst goes on",
        run: Run::Driver(every_number),
    },
    Check {
        ids: &["BURST-5"],
        name: "each datum that is missing or too many has an error, and the burst goes on",
        run: Run::Driver(every_length),
    },
    Check {
        ids: &["BURST-11"],
        name: "each argument that is wrong in a good packet is INVALID_ARGUMENT",
        run: Run::Driver(wrong_arguments),
    },
    Check {
        ids: &["BURST-7"],
        name: "each slot that stands for nothing has an error, and the burst goes on",
        run: Run::Driver(wrong_slots),
    },
    Check {
        ids: &["BURST-3", "IPC-3"],
        name: "a packet is read byte by byte as it is laid out",
        run: Run::Driver(requests_by_bytes),
    },
    Check {
        ids: &["BURST-4", "BURST-13", "IPC-4"],
        name: "a result is laid out byte by byte as it must be, with zeros between",
        run: Run::Driver(results_by_bytes),
    },
    Check { ids: &["BURST-2"], name: "a result comes in one piece", run: Run::Driver(one_piece) },
    Check {
        ids: &["BURST-10"],
        name: "a slot that was freed may come back with other memory, and any may be freed",
        run: Run::Driver(other_memory),
    },
    Check {
        ids: &["BURST-16"],
        name: "bursts of one model are independent, and keep it",
        run: Run::Driver(several),
    },
    Check {
        ids: &["BURST-14", "GEN-2"],
        name: "a loop without end is ended by the default limit",
        run: Run::Driver(endless_loop),
    },
];

fn begin(driver: &Driver) -> Result<Option<Burst>, Violation> {
    Burst::begin(driver, nnhal_burst::QUEUE_CAPACITY)
}

/// Sends a packet: an error must come, with neither shapes nor times, and nothing else but the
/// result of the next one (contract: BURST-5).
fn demand_error(
    burst: &mut Burst,
    what: &str,
    packet: &[FmqRequestDatum],
) -> Result<ErrorStatus, Violation> {
    let ResultPacket { status, output_shapes, timing } =
        burst.exchange(packet).map_err(|Violation(why)| Violation(format!("{what}: {why}")))?;
    demand!(status != ErrorStatus::None, "{what} is executed");
    demand!(output_shapes.is_empty(), "{what}: {output_shapes:?} with {status}");
    demand!(timing == Timing::NONE, "{what}: {timing:?} with {status}");
    burst.expect_sum().map_err(|Violation(why)| Violation(format!("after {what}: {why}")))?;
    Ok(status)
}

/// An empty datum of a kind, known or not.
fn of_kind(tag: u8) -> FmqRequestDatum {
    let mut bytes = [0; DATUM_BYTES];
    bytes[0] = tag;
    FmqRequestDatum::from_bytes(bytes)
}

/// The kinds of data, and numbers that are none.
const TAGS: [u8; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 0x80, 0xFF];

/// The packet of the sum with dimensions, so that it has every kind of datum.
fn full_packet(burst: &Burst) -> Result<Vec<FmqRequestDatum>, Violation> {
    let mut request = burst.request.clone();
    for argument in request.inputs.iter_mut().chain(&mut request.outputs) {
        argument.dimensions = vec![2, 2];
    }
    packet(&request.inputs, &request.outputs)
}

fn every_kind_everywhere(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let good = full_packet(&burst)?;
    for place in 0..good.len() {
        for tag in TAGS.into_iter().filter(|tag| *tag != good[place].tag()) {
            let mut packet = good.clone();
            packet[place] = of_kind(tag);
            demand_error(&mut burst, &format!("kind {tag} in place {place}"), &packet)?;
        }
    }
    Ok(Verdict::Kept)
}

fn every_number(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let good = full_packet(&burst)?;
    let numbers = |good: u32| [0, 1, good.wrapping_sub(1), good + 1, 1 << 16, 1 << 31, u32::MAX];
    let mut packets = Vec::new();
    for (place, datum) in good.iter().enumerate() {
        // Where the counts are, behind the beginning of the union, and the truth value.
        let (counts, truth): (&[usize], &[usize]) = match datum.tag() {
            0 => (&[0, 4, 8, 12], &[]),
            1 | 3 => (&[16], &[0]),
            _ => (&[], &[]),
        };
        let mut put = |what: String, offset: usize, value: &[u8]| {
            let mut bytes = datum.to_bytes();
            bytes[4 + offset..][..value.len()].copy_from_slice(value);
            let mut packet = good.clone();
            packet[place] = FmqRequestDatum::from_bytes(bytes);
            if packet != good {
                packets.push((format!("{what} in place {place}, field {offset}"), packet));
            }
        };
        for offset in counts {
            let bytes = datum.to_bytes();
            let found = std::array::from_fn(|index| bytes[4 + offset + index]);
            for number in numbers(u32::from_ne_bytes(found)) {
                put(format!("number {number}"), *offset, &number.to_ne_bytes());
            }
        }
        for offset in truth {
            for number in [2, 0xFF] {
                put(format!("truth {number}"), *offset, &[number]);
            }
        }
        if datum.tag() == 6 {
            for code in [2_i32, -1, i32::MIN, i32::MAX] {
                put(format!("measure {code}"), 0, &code.to_ne_bytes());
            }
        }
    }
    for (what, packet) in packets {
        demand_error(&mut burst, &what, &packet)?;
    }
    Ok(Verdict::Kept)
}

fn every_length(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let good = full_packet(&burst)?;
    for place in 0..good.len() {
        let mut less = good.clone();
        less.remove(place);
        demand_error(&mut burst, &format!("without datum {place}"), &less)?;
        let mut twice = good.clone();
        twice.insert(place, good[place]);
        demand_error(&mut burst, &format!("with datum {place} twice"), &twice)?;
        let end = &good[good.len() - place..];
        if !end.is_empty() {
            demand_error(&mut burst, &format!("the last {place} data"), end)?;
        }
        for tag in TAGS {
            let mut more = good.clone();
            more.insert(place, of_kind(tag));
            demand_error(&mut burst, &format!("kind {tag} before datum {place}"), &more)?;
        }
    }
    let most = vec![of_kind(2); nnhal_burst::QUEUE_CAPACITY];
    demand_error(&mut burst, "a queue full of dimensions", &most)?;
    let most = vec![good[0]; nnhal_burst::QUEUE_CAPACITY];
    demand_error(&mut burst, "a queue full of first data", &most)?;
    Ok(Verdict::Kept)
}

fn wrong_arguments(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    for index in 0..3 {
        type Spoil = fn(&mut nnhal_hal::RequestArgument);
        let ways: [(&str, Spoil); 8] = [
            ("pool 2 of 2", |it| it.location.pool_index = 2),
            ("pool 4294967295", |it| it.location.pool_index = u32::MAX),
            ("an offset behind the end", |it| it.location.offset = 1 << 20),
            ("an offset at the end of 32 bits", |it| it.location.offset = u32::MAX),
            ("a length of 0", |it| it.location.length = 0),
            ("a length of 4294967295", |it| it.location.length = u32::MAX),
            ("another rank", |it| it.dimensions = vec![4]),
            ("another length of a dimension", |it| it.dimensions = vec![2, 3]),
        ];
        for (what, spoil) in ways {
            let mut request = burst.request.clone();
            let mut arguments = request.inputs.iter_mut().chain(&mut request.outputs);
            arguments.nth(index).into_iter().for_each(spoil);
            let packet = packet(&request.inputs, &request.outputs)?;
            let what = format!("argument {index}: {what}");
            let status = demand_error(&mut burst, &what, &packet)?;
            demand_status(&what, status.code(), INVALID)?;
        }
    }
    for (what, inputs, outputs) in
        [("no inputs", 0, 1), ("an input less", 1, 1), ("no outputs", 2, 0), ("nothing", 0, 0)]
    {
        let request = &burst.request;
        let packet = packet(&request.inputs[..inputs], &request.outputs[..outputs])?;
        let status = demand_error(&mut burst, what, &packet)?;
        demand_status(what, status.code(), INVALID)?;
    }
    Ok(Verdict::Kept)
}

fn wrong_slots(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let good = burst.packet()?;
    for place in (0..good.len()).filter(|place| good[*place].tag() == 5) {
        for slot in [0, -1, INPUTS + 1, i32::MAX, i32::MIN] {
            let mut packet = good.clone();
            packet[place] = RequestDatum::Pool(slot).into();
            demand_error(&mut burst, &format!("slot {slot} in place {place}"), &packet)?;
        }
    }
    Ok(Verdict::Kept)
}

/// A datum as the contract lays it out: the kind, and numbers of 32 bits from byte 4 on.
fn laid_out(tag: u8, numbers: &[u32]) -> FmqRequestDatum {
    let mut bytes = [0; DATUM_BYTES];
    bytes[0] = tag;
    for (index, number) in numbers.iter().enumerate() {
        bytes[4 + 4 * index..][..4].copy_from_slice(&number.to_ne_bytes());
    }
    FmqRequestDatum::from_bytes(bytes)
}

fn requests_by_bytes(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let place = |argument: &nnhal_hal::RequestArgument, rank| {
        let at = argument.location;
        [0, at.pool_index, at.offset, at.length, rank]
    };
    let [first, second] = [0, 1].map(|index| place(&burst.request.inputs[index], 2));
    let output = place(&burst.request.outputs[0], 2);
    for measure in [0, 1] {
        let dimensions = |tag| [laid_out(tag, &[2]), laid_out(tag, &[2])];
        let mut packet = vec![laid_out(0, &[13, 2, 1, 2])];
        for (tag, argument) in [(1, first), (1, second), (3, output)] {
            packet.push(laid_out(tag, &argument));
            packet.extend(dimensions(tag + 1));
        }
        packet.push(laid_out(5, &[INPUTS.cast_unsigned()]));
        packet.push(laid_out(5, &[OUTPUTS.cast_unsigned()]));
        packet.push(laid_out(6, &[measure]));
        let packet_size = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        packet[0] = laid_out(0, &[packet_size, 2, 1, 2]);
        let zeros = memory_bytes(&burst.client.outputs)?.len();
        let view = burst.client.outputs.view().map_err(own)?;
        view.fill_zero(0, zeros as u64).map_err(own)?;
        let result = burst.exchange(&packet)?;
        demand_status("a packet laid out by hand", result.status.code(), NONE)?;
        let found = memory_bytes(&burst.client.outputs)?;
        demand!(found[..16] == sum()[..], "the sum is {found:?}");
        let timing = result.timing;
        demand!(measure == 1 || timing == Timing::NONE, "{timing:?} was not asked for");
        let (on_device, in_driver) = timing.to_microseconds();
        let known = on_device != u64::MAX && in_driver != u64::MAX;
        demand!(!known || on_device <= in_driver, "the times are {timing:?}");
    }
    Ok(Verdict::Kept)
}

/// Sends a packet; the data of its result as they are.
fn result_data(
    burst: &mut Burst,
    packet: &[FmqRequestDatum],
) -> Result<Vec<[u8; DATUM_BYTES]>, Violation> {
    burst.writer.write(packet, TIMEOUT).map_err(own)?;
    let mut data: Vec<FmqResultDatum> = Vec::new();
    let received = burst.reader.read(&mut data, TIMEOUT);
    received.map_err(|error| Violation(format!("there is no result: {error}")))?;
    Ok(data.iter().map(|datum| datum.to_bytes()).collect())
}

/// The 32 bits of a result's datum at an offset of its union.
fn number(datum: &[u8; DATUM_BYTES], offset: usize) -> u32 {
    u32::from_ne_bytes(std::array::from_fn(|index| datum[8 + offset + index]))
}

/// Demands that all bytes are 0 but those of some fields of the union, each from one byte to before
/// another.
fn demand_zeros(
    what: &str,
    datum: &[u8; DATUM_BYTES],
    fields: &[(usize, usize)],
) -> Result<(), Violation> {
    for (place, byte) in datum.iter().enumerate().skip(1) {
        let is_field = fields.iter().any(|(from, to)| (8 + from..8 + to).contains(&place));
        demand!(is_field || *byte == 0, "byte {place} of {what} is {byte}: {datum:?}");
    }
    Ok(())
}

fn results_by_bytes(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let good = full_packet(&burst)?;
    let mut malformed = good.clone();
    malformed.pop();
    // An output that is too short has its shape reported.
    let mut short = burst.request.clone();
    short.outputs[0].location.length = 4;
    let short = packet(&short.inputs, &short.outputs)?;
    for (what, packet, statuses) in [
        ("a good result", &good, &[0][..]),
        ("an error", &malformed, &[1, 2, 4]),
        ("too short an output", &short, &[3]),
    ] {
        let data = result_data(&mut burst, packet)?;
        demand!(data.len() >= 2, "{what}: {} data", data.len());
        let first = &data[0];
        let shapes = number(first, 8) as usize;
        demand!(first[0] == 0, "{what} begins with kind {}", first[0]);
        demand!(number(first, 0) as usize == data.len(), "{what}: {first:?} of {}", data.len());
        let status = number(first, 4);
        demand!(statuses.contains(&status), "{what} has the status {status}");
        demand_zeros("packetInformation", first, &[(0, 12)])?;
        let mut rest = data[1..].iter();
        demand!(shapes <= 1 && (status != 3 || shapes == 1), "{what}: {shapes} shapes of 1 output");
        for _ in 0..shapes {
            let Some(shape) = rest.next() else { break };
            demand!(shape[0] == 1, "{what}: kind {} for a shape", shape[0]);
            demand!(shape[8] == u8::from(status == 0), "{what}: isSufficient is {}", shape[8]);
            demand_zeros("operandInformation", shape, &[(0, 1), (4, 8)])?;
            demand!(number(shape, 4) == 2, "{what}: rank {}", number(shape, 4));
            for _ in 0..2 {
                let Some(dimension) = rest.next() else { break };
                let right = dimension[0] == 2 && number(dimension, 0) == 2;
                demand!(right, "{what}: {dimension:?} for a dimension of 2");
                demand_zeros("operandDimensionValue", dimension, &[(0, 4)])?;
            }
        }
        let timing = rest.next().filter(|_| rest.len() == 0);
        let Some(timing) = timing else {
            return Err(Violation(format!("{what}: the times are not at the end: {data:?}")));
        };
        demand!(timing[0] == 3, "{what} ends with kind {}", timing[0]);
        demand!(timing[8..24] == [0xFF; 16], "{what}: the times are {timing:?}");
        demand_zeros("executionTiming", timing, &[(0, 16)])?;
    }
    Ok(Verdict::Kept)
}

fn one_piece(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    let packet = full_packet(&burst)?;
    for _ in 0..300 {
        burst.writer.write(&packet, TIMEOUT).map_err(own)?;
        // Looked for without a pause: a first piece is seen before a second one comes.
        let (begin, mut data) = (Instant::now(), Vec::new());
        while !burst.reader.try_read(&mut data).map_err(own)? {
            let late = begin.elapsed() > Duration::from_secs(20);
            demand!(!late, "there is no result");
            std::hint::spin_loop();
        }
        let result = ResultPacket::decode(&data);
        demand!(result.is_ok(), "a piece of a result: {data:?}");
    }
    Ok(Verdict::Kept)
}

fn other_memory(driver: &Driver) -> Result<Verdict, Violation> {
    let Some(mut burst) = begin(driver)? else { return Ok(not_offered()) };
    for slot in [INPUTS, OUTPUTS, 0, -1, i32::MAX, i32::MIN] {
        free(&burst, slot)?;
    }
    burst.expect_sum()?;
    drop(burst.client.asked());
    free(&burst, INPUTS)?;
    let other = memory(&[bytes(&[5.0; 4]), bytes(&[6.0; 4])].concat())?;
    let mut request = burst.request.clone();
    for (argument, offset) in request.inputs.iter_mut().zip([0, 16]) {
        argument.location.offset = offset;
    }
    burst.client.give_inputs(other);
    let result = burst.exchange(&packet(&request.inputs, &request.outputs)?)?;
    demand_status("a slot with other memory", result.status.code(), NONE)?;
    let asked = burst.client.asked();
    demand!(asked == [[INPUTS]], "slot {INPUTS} was freed, the driver asks for {asked:?}");
    let found = memory_bytes(&burst.client.outputs)?;
    demand!(found[..16] == bytes(&[11.0; 4])[..], "5 + 6 is {found:?}");
    Ok(Verdict::Kept)
}

fn free(burst: &Burst, slot: i32) -> Result<(), Violation> {
    let freed = burst.context.free_memory(slot);
    freed.map_err(|error| Violation(format!("freeMemory of slot {slot}: {error}")))
}

fn several(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(not_offered());
    }
    let model = Arc::new(driver.prepared(&addition([2, 2]))?);
    let mut bursts = Vec::new();
    for _ in 0..3 {
        let (client, request) = client()?;
        let again = model.again();
        bursts.push(Burst::on(again, client, request, nnhal_burst::QUEUE_CAPACITY)?);
    }
    drop(model);
    for _ in 0..5 {
        bursts.iter_mut().try_for_each(Burst::expect_sum)?;
    }
    // One that is let go of while its driver waits for it takes no other with it.
    while let Some(burst) = bursts.pop() {
        let begin = Instant::now();
        drop(burst);
        let took = begin.elapsed();
        demand!(took < Duration::from_secs(5), "letting go of a burst takes {took:?}");
        bursts.iter_mut().try_for_each(Burst::expect_sum)?;
    }
    Ok(Verdict::Kept)
}

fn endless_loop(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_3 {
        return Ok(Verdict::NotOffered("WHILE, which is of 1.3".into()));
    }
    let (_, answers) = driver.supported_operations(HalVersion::V1_3, &endless())?;
    if !answers.iter().all(|supported| *supported) {
        return Ok(Verdict::NotOffered("WHILE".into()));
    }
    let model = driver.prepared(&endless())?;
    let (client, mut request) = client()?;
    request.inputs.pop();
    for argument in request.inputs.iter_mut().chain(&mut request.outputs) {
        argument.location.length = 4;
    }
    let mut burst = Burst::on(model, client, request, nnhal_burst::QUEUE_CAPACITY)?;
    let (begin, packet) = (Instant::now(), burst.packet()?);
    let result = burst.exchange(&packet)?;
    let took = begin.elapsed();
    demand!(!MISSED.contains(&result.status), "1.2 has no status {}", result.status);
    demand_status("a loop without end", result.status.code(), &[ErrorStatus::GeneralFailure])?;
    // The default limit is 2 s. Who waits for longer has another one.
    let right = Duration::from_millis(1900)..Duration::from_secs(10);
    demand!(right.contains(&took), "a loop without end ends after {took:?}");
    demand!(result.timing == Timing::NONE, "{:?} with an error", result.timing);
    Ok(Verdict::Kept)
}
