//! The service's end of a burst, as a client by hand sees it.

mod support;

use nnhal_burst::datum::{FmqRequestDatum, RequestDatum, ResultDatum};
use nnhal_burst::packet::ResultPacket;
use nnhal_burst::queue::{MessageQueue, QueueError};
use nnhal_burst::server::UnthreadedServer;
use nnhal_burst::{BurstContext, BurstServer};
use nnhal_hal::{
    Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions, OutputShape, PreparedModel,
    Request, Timing,
};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use support::{Callback, Mock, RawClient, SOON, double, memory, output, packet, until};

/// How many times it was executed, and a model that counts it.
fn counting() -> (Arc<AtomicUsize>, Arc<dyn PreparedModel>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let prepared = Mock::running(move |request, options| {
        counter.fetch_add(1, Ordering::SeqCst);
        double(request, options)
    });
    (count, prepared)
}

fn failed(status: ErrorStatus) -> ResultPacket {
    ResultPacket { status, output_shapes: vec![], timing: Timing::NONE }
}

#[test]
fn burst_1_queues_that_one_cannot_wait_for_or_answer_in_are_refused() {
    let start = |requests, results| {
        let callback = Arc::<Callback>::default();
        BurstServer::new(Mock::doubling(), callback, requests, results).unwrap_err()
    };
    fn without_flag<D: nnhal_burst::queue::Datum>() -> MessageQueue<D> {
        let mut descriptor = MessageQueue::<D>::create(8).unwrap().descriptor().unwrap();
        descriptor.grantors.truncate(3);
        MessageQueue::open(descriptor).unwrap()
    }
    for error in [
        start(without_flag(), MessageQueue::create(8).unwrap()),
        start(MessageQueue::create(8).unwrap(), without_flag()),
        start(MessageQueue::create(8).unwrap(), MessageQueue::create(1).unwrap()),
    ] {
        assert_eq!(error.status(), ErrorStatus::InvalidArgument);
        assert!(error.reason::<QueueError>().is_some());
    }
}

#[test]
fn burst_3_and_4_a_request_is_executed_and_answered() {
    let mut client = RawClient::new(Mock::doubling());
    let memory = memory(21);
    client.callback.put(5, &memory);
    let result = client.exchange(&packet(&[5], false));
    let output_shapes = vec![OutputShape { dimensions: vec![8], is_sufficient: true }];
    assert_eq!(result, ResultPacket { output_shapes, ..failed(ErrorStatus::None) });
    assert_eq!(output(&memory), [42; 8]);
}

/// Every position, every tag: an error, nothing is executed, and the burst works on.
#[test]
fn burst_5_every_position_and_every_wrong_tag() {
    let (count, prepared) = counting();
    let mut client = RawClient::new(prepared);
    let good = packet(&[1], true);
    let tags = [
        RequestDatum::PacketInformation { packet_size: 5, inputs: 1, outputs: 1, pools: 1 },
        RequestDatum::Input(Default::default()),
        RequestDatum::InputDimension(0),
        RequestDatum::Output(Default::default()),
        RequestDatum::OutputDimension(0),
        RequestDatum::Pool(1),
        RequestDatum::MeasureTiming(0),
    ];
    for position in 0..good.len() {
        let wrong = |datum: FmqRequestDatum| {
            let mut data = good.clone();
            data[position] = datum;
            data
        };
        let mut bad: Vec<Vec<FmqRequestDatum>> = tags
            .into_iter()
            .map(FmqRequestDatum::from)
            .filter(|datum| datum.tag() != good[position].tag())
            .map(wrong)
            .collect();
        bad.push(wrong(FmqRequestDatum::from_bytes([0xFF; 24])));
        let mut missing = good.clone();
        missing.remove(position);
        bad.push(missing);
        let mut added = good.clone();
        added.insert(position, good[position]);
        bad.push(added);
        for data in bad {
            assert_eq!(client.exchange(&data), failed(ErrorStatus::GeneralFailure), "{data:?}");
        }
        assert_eq!(count.swap(0, Ordering::SeqCst), 0);
        client.check_usable();
        count.store(0, Ordering::SeqCst);
    }
}

#[test]
fn burst_5_wrong_counts_and_sizes() {
    let mut client = RawClient::new(Mock::doubling());
    let good = packet(&[1], false);
    for [packet_size, inputs, outputs, pools] in [
        [0, 1, 1, 1],
        [6, 1, 1, 1],
        [u32::MAX, 1, 1, 1],
        [5, 0, 1, 1],
        [5, 2, 1, 1],
        [5, 1, 0, 1],
        [5, 1, u32::MAX, 1],
        [5, 1, 1, 0],
        [5, 1, 1, u32::MAX],
        [5, u32::MAX, u32::MAX, u32::MAX],
    ] {
        let mut bad = good.clone();
        bad[0] = RequestDatum::PacketInformation { packet_size, inputs, outputs, pools }.into();
        assert_eq!(client.exchange(&bad), failed(ErrorStatus::GeneralFailure));
    }
    client.check_usable();
}

/// Packets wait until one asks for their answers; a counter that cannot be true ends the burst as with a thread.
#[test]
fn without_a_thread_packets_are_answered_when_one_says_so() {
    let callback = Arc::<Callback>::default();
    callback.put(5, &memory(21));
    let (requests, results) =
        (MessageQueue::create(64).unwrap(), MessageQueue::create(64).unwrap());
    let file: std::fs::File = requests.descriptor().unwrap().files.remove(0).into();
    let theirs = (
        MessageQueue::open(requests.descriptor().unwrap()).unwrap(),
        MessageQueue::open(results.descriptor().unwrap()).unwrap(),
    );
    let mut server =
        UnthreadedServer::new(Mock::doubling(), callback.clone(), theirs.0, theirs.1).unwrap();
    let (mut requests, mut results) = (requests.into_writer(), results.into_reader());
    let mut result = Vec::new();
    assert!(server.answer());
    for _ in 0..2 {
        requests.write(&packet(&[5], false), None).unwrap();
        assert!(!results.try_read(&mut result).unwrap());
        assert!(server.answer() && server.is_alive());
        assert!(results.try_read(&mut result).unwrap());
        assert_eq!(ResultPacket::decode(&result).unwrap().status, ErrorStatus::None);
    }
    // Kept, until it is freed.
    assert_eq!(callback.asked(), [[5]]);
    server.free_memory(5);
    requests.write(&packet(&[5], false), None).unwrap();
    assert!(server.answer());
    assert_eq!(callback.asked(), [[5]]);
    assert!(results.try_read(&mut result).unwrap());
    file.write_all_at(&25_u64.to_ne_bytes(), 8).unwrap();
    assert!(!server.answer() && !server.is_alive());
    assert!(results.try_read(&mut result).unwrap());
    assert_eq!(ResultPacket::decode(&result), Ok(failed(ErrorStatus::GeneralFailure)));
}

/// What another process may do to the counters at any time.
#[test]
fn gen_8_counters_that_cannot_be_true_get_a_failure() {
    for (value, goes_on) in
        [(24 * 4096, true), (u64::MAX - 15, true), (25, false), (1 << 63, false)]
    {
        let mut client = RawClient::new(Mock::doubling());
        let hostile = MessageQueue::<FmqRequestDatum>::create(8).unwrap();
        let file: std::fs::File = hostile.descriptor().unwrap().files.remove(0).into();
        let results = MessageQueue::create(8).unwrap();
        let theirs = MessageQueue::open(results.descriptor().unwrap()).unwrap();
        client.server =
            BurstServer::new(Mock::doubling(), client.callback.clone(), hostile, theirs).unwrap();
        file.write_all_at(&value.to_ne_bytes(), 8).unwrap();
        // Wakes the server: a bit that is not set, as libfmq does.
        file.write_all_at(&2_u32.to_ne_bytes(), 16 + 8 * 24).unwrap();
        let mut result = Vec::new();
        results.into_reader().read(&mut result, SOON).unwrap();
        assert_eq!(ResultPacket::decode(&result), Ok(failed(ErrorStatus::GeneralFailure)));
        if goes_on {
            assert!(client.server.is_alive(), "{value}");
        } else {
            until(|| !client.server.is_alive());
        }
    }
}

#[test]
fn burst_7_missing_slots_are_asked_for_at_once_and_each_once() {
    let mut client = RawClient::new(Mock::doubling());
    let memory = memory(3);
    for slot in [4, 9, -2] {
        client.callback.put(slot, &memory);
    }
    assert_eq!(client.exchange(&packet(&[9, 4, 9], false)).status, ErrorStatus::None);
    assert_eq!(client.callback.asked(), [[4, 9]]);
    assert_eq!(client.exchange(&packet(&[4, -2, 9, 4], false)).status, ErrorStatus::None);
    assert_eq!(client.callback.asked(), [[-2]]);
}

#[test]
fn burst_7_a_slot_that_stands_for_nothing_is_an_invalid_argument() {
    let (count, prepared) = counting();
    let mut client = RawClient::new(prepared);
    let result = client.exchange(&packet(&[i32::MAX], false));
    assert_eq!(result, failed(ErrorStatus::InvalidArgument));
    assert_eq!(count.load(Ordering::SeqCst), 0);
    client.check_usable();
}

#[test]
fn burst_7_answers_that_are_errors_or_have_another_length_are_failures() {
    struct Answers(Mutex<Vec<nnhal_hal::Result<Vec<nnhal_hal::Memory>>>>);
    impl nnhal_burst::BurstCallback for Answers {
        fn get_memories(&self, _slots: &[i32]) -> nnhal_hal::Result<Vec<nnhal_hal::Memory>> {
            self.0.lock().unwrap().pop().unwrap_or_else(|| panic!("asked too often"))
        }
    }
    let answers = Mutex::new(vec![
        Ok(vec![memory(1)]),
        Err(Error::new(ErrorStatus::DeviceUnavailable, "gone")),
        Err(Error::new(ErrorStatus::MissedDeadlineTransient, "late")),
        Ok(vec![]),
        Ok(vec![memory(1), memory(2)]),
    ]);
    let mut client = RawClient::new(Mock::doubling());
    let (requests, results) = (MessageQueue::create(8).unwrap(), MessageQueue::create(8).unwrap());
    let ours = (requests.clone().into_writer(), results.clone().into_reader());
    let callback = Arc::new(Answers(answers));
    client.server = BurstServer::new(Mock::doubling(), callback, requests, results).unwrap();
    (client.requests, client.results) = ours;
    for _ in 0..4 {
        let result = client.exchange(&packet(&[1], false));
        assert_eq!(result, failed(ErrorStatus::GeneralFailure));
    }
    client.check_usable();
    // A callback that panics harms no one.
    assert_eq!(client.exchange(&packet(&[2], false)), failed(ErrorStatus::GeneralFailure));
    client.check_usable();
}

#[test]
fn burst_9_memory_is_kept_until_its_slot_is_freed() {
    let mut client = RawClient::new(Mock::doubling());
    for _ in 0..3 {
        client.check_usable();
    }
    assert_eq!(client.callback.asked(), [[1]]);
    client.server.free_memory(1);
    client.check_usable();
    assert_eq!(client.callback.asked(), [[1]]);
}

/// CONC-5: beyond its client's descriptors a slot works, but is asked for each time.
#[test]
fn burst_9_no_more_slots_are_kept_than_the_client_may_hold_descriptors() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    struct Of(Client);
    impl PreparedModel for Of {
        fn execute(
            &self,
            request: &Request,
            options: &ExecutionOptions,
        ) -> Result<Execution, ExecutionError> {
            double(request, options)
        }
        fn client(&self) -> Client {
            self.0.clone()
        }
    }
    let client = Client::new("test", ClientLimits { descriptors: 2, ..ClientLimits::default() });
    let mut raw = RawClient::new(Arc::new(Of(client.clone())));
    raw.callback.put(2, &memory(2));
    raw.callback.put(3, &memory(3));
    // Of what is sent to a service it has descriptors of its own.
    for _ in 0..2 {
        for slot in [1, 2, 3] {
            assert_eq!(raw.exchange(&packet(&[slot], false)).status, ErrorStatus::None);
        }
    }
    assert_eq!(raw.callback.asked(), [vec![1], vec![2], vec![3], vec![3]]);
    assert_eq!(client.held(Holding::Descriptors), 2);
    raw.server.free_memory(1);
    // The client of this test has the memory, too: until both are gone the descriptor is open.
    raw.callback.memories.lock().unwrap().retain(|(slot, _)| *slot != 1);
    assert_eq!(client.held(Holding::Descriptors), 1);
    for _ in 0..2 {
        assert_eq!(raw.exchange(&packet(&[3], false)).status, ErrorStatus::None);
    }
    assert_eq!(raw.callback.asked(), [vec![3]]);
    assert_eq!(client.held(Holding::Descriptors), 2);
}

#[test]
fn burst_10_a_freed_slot_may_stand_for_other_memory() {
    let mut client = RawClient::new(Mock::doubling());
    let (first, second) = (memory(1), memory(2));
    client.callback.put(3, &first);
    client.exchange(&packet(&[3], false));
    for unknown in [-1, 17, i32::MAX] {
        client.server.free_memory(unknown);
    }
    client.server.free_memory(3);
    client.server.free_memory(3);
    client.callback.put(3, &second);
    client.exchange(&packet(&[3], false));
    assert_eq!((output(&first), output(&second)), (vec![2; 8], vec![4; 8]));
}

/// Whoever frees a slot while its memory is being fetched, or used.
#[test]
fn burst_10_a_slot_that_is_freed_during_an_execution() {
    let (begun, wait_for_begin) = mpsc::channel();
    let (go_on, wait_to_go_on) = mpsc::channel();
    let wait_to_go_on = Mutex::new(wait_to_go_on);
    let mut client = RawClient::new(Mock::running(move |request, options| {
        begun.send(()).unwrap();
        wait_to_go_on.lock().unwrap().recv().unwrap();
        double(request, options)
    }));
    let (first, second) = (memory(1), memory(2));
    client.callback.put(3, &first);
    client.requests.write(&packet(&[3], false), SOON).unwrap();
    wait_for_begin.recv().unwrap();
    client.server.free_memory(3);
    client.callback.put(3, &second);
    go_on.send(()).unwrap();
    let mut result = Vec::new();
    client.results.read(&mut result, SOON).unwrap();
    assert_eq!(output(&first), [2; 8], "it was not pulled from under the execution");
    go_on.send(()).unwrap();
    client.exchange(&packet(&[3], false));
    assert_eq!(output(&second), [4; 8]);
}

#[test]
fn burst_10_an_answer_that_was_overtaken_by_freeing_is_not_kept() {
    struct Slow {
        table: Callback,
        asked: Mutex<mpsc::Sender<()>>,
        go_on: Mutex<mpsc::Receiver<()>>,
    }
    impl nnhal_burst::BurstCallback for Slow {
        fn get_memories(&self, slots: &[i32]) -> nnhal_hal::Result<Vec<nnhal_hal::Memory>> {
            let memories = self.table.get_memories(slots);
            self.asked.lock().unwrap().send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
            memories
        }
    }
    let (asked, wait_for_asking) = mpsc::channel();
    let (go_on, wait_to_go_on) = mpsc::channel();
    let callback = Arc::new(Slow {
        table: Callback::default(),
        asked: Mutex::new(asked),
        go_on: Mutex::new(wait_to_go_on),
    });
    let (first, second) = (memory(1), memory(2));
    callback.table.put(3, &first);
    let mut client = RawClient::new(Mock::doubling());
    let (requests, results) = (MessageQueue::create(8).unwrap(), MessageQueue::create(8).unwrap());
    let ours = (requests.clone().into_writer(), results.clone().into_reader());
    client.server =
        BurstServer::new(Mock::doubling(), callback.clone(), requests, results).unwrap();
    (client.requests, client.results) = ours;

    client.requests.write(&packet(&[3], false), SOON).unwrap();
    wait_for_asking.recv().unwrap();
    client.server.free_memory(3);
    callback.table.put(3, &second);
    go_on.send(()).unwrap();
    client.results.read(&mut Vec::new(), SOON).unwrap();
    go_on.send(()).unwrap();
    client.exchange(&packet(&[3], false));
    assert_eq!(output(&second), [4; 8]);
}

#[test]
fn burst_11_a_request_that_does_not_fit_the_model_is_invalid() {
    let mut client = RawClient::new(Mock::doubling());
    let argument = nnhal_hal::RequestArgument::default;
    for (inputs, outputs) in [(0, 0), (1, 0), (0, 1), (2, 1), (1, 2)] {
        let (inputs, outputs) = (vec![argument(); inputs], vec![argument(); outputs]);
        let mut data = Vec::new();
        nnhal_burst::packet::RequestPacket::encode(&inputs, &outputs, &[1], true, &mut data)
            .unwrap();
        assert_eq!(client.exchange(&data), failed(ErrorStatus::InvalidArgument));
    }
    // A pool that is not there, bytes that are not there.
    for slots in [&[][..], &[2]] {
        let result = client.exchange(&packet(slots, false));
        assert_eq!(result, failed(ErrorStatus::InvalidArgument));
    }
    client.check_usable();
}

/// A model whose output has as many dimensions as it is given.
fn of_rank(rank: usize) -> Arc<dyn PreparedModel> {
    Mock::running(move |_, _| {
        let shape = OutputShape { dimensions: vec![1; rank], is_sufficient: true };
        Ok(Execution { output_shapes: vec![shape], timing: Timing::NONE })
    })
}

#[test]
fn burst_12_a_result_that_is_too_long_for_its_queue_is_a_failure() {
    // The packet, the output and the times are three data.
    let result = RawClient::with_results(of_rank(5), 8).exchange(&packet(&[1], true));
    assert_eq!(result.status, ErrorStatus::None);
    let mut client = RawClient::with_results(of_rank(6), 8);
    let data = client.exchange_raw(&packet(&[1], true));
    assert_eq!(data.len(), 2);
    assert_eq!(ResultPacket::decode(&data), Ok(failed(ErrorStatus::GeneralFailure)));
}

#[test]
fn burst_13_no_byte_of_a_result_is_left_over_from_something_else() {
    let mut client = RawClient::new(of_rank(2));
    for _ in 0..3 {
        let data = client.exchange_raw(&packet(&[1], false));
        for datum in &data {
            let again = nnhal_burst::FmqResultDatum::from(datum.decode().unwrap());
            assert_eq!(datum.to_bytes(), again.to_bytes());
        }
        assert_eq!(data[1].to_bytes()[9..12], [0; 3]);
    }
}

#[test]
fn burst_14_and_gen_2_options_and_statuses_are_those_of_1_2() {
    let statuses = Mutex::new(ErrorStatus::ALL[1..].to_vec());
    let mut client = RawClient::new(Mock::running(move |request, options| {
        assert_eq!((options.deadline, options.loop_timeout), (None, None));
        assert!(
            request
                .pools
                .iter()
                .all(|pool| matches!(pool, nnhal_hal::RequestMemoryPool::Memory(_)))
        );
        let status = statuses.lock().unwrap().remove(0);
        let output_shapes = vec![OutputShape { dimensions: vec![4], is_sufficient: false }];
        Err(ExecutionError { error: Error::new(status, "as the test wants"), output_shapes })
    }));
    for status in &ErrorStatus::ALL[1..] {
        let result = client.exchange(&packet(&[1], true));
        if *status == ErrorStatus::OutputInsufficientSize {
            assert_eq!((result.status, result.output_shapes.len()), (*status, 1));
        } else {
            let known = if status.code() > 4 { ErrorStatus::GeneralFailure } else { *status };
            assert_eq!(result, failed(known));
        }
    }
}

#[test]
fn gen_7_an_unknown_code_of_measure_timing_is_invalid() {
    let mut client = RawClient::new(Mock::doubling());
    let mut data = packet(&[1], false);
    *data.last_mut().unwrap() = RequestDatum::MeasureTiming(2).into();
    assert_eq!(client.exchange(&data), failed(ErrorStatus::InvalidArgument));
}

#[test]
fn time_3_the_time_in_the_driver_is_from_dequeuing_to_enqueuing() {
    let on_device = Duration::from_micros(300);
    let mut client = RawClient::new(Mock::running(move |request, options| {
        std::thread::sleep(Duration::from_millis(2));
        let mut execution = double(request, options)?;
        execution.timing = Timing { time_on_device: Some(on_device), time_in_driver: None };
        Ok(execution)
    }));
    let timing = client.exchange(&packet(&[1], true)).timing;
    assert_eq!(timing.time_on_device, Some(on_device));
    assert!(timing.time_in_driver.unwrap() >= Duration::from_millis(2));
}

#[test]
fn time_1_nothing_is_measured_unless_asked_for() {
    let mut client = RawClient::new(Mock::doubling());
    let data = client.exchange_raw(&packet(&[1], false));
    let none = ResultDatum::Timing { time_on_device: u64::MAX, time_in_driver: u64::MAX };
    assert_eq!(data.last().unwrap().decode(), Ok(none));
    let failed = client.exchange_raw(&packet(&[], true));
    assert_eq!(failed.last().unwrap().decode(), Ok(none));
}

#[test]
fn gen_8_a_model_that_panics_fails_and_the_burst_works_on() {
    let panics = AtomicBool::new(true);
    let mut client = RawClient::new(Mock::running(move |request, options| {
        assert!(!panics.swap(false, Ordering::SeqCst), "as the test wants");
        double(request, options)
    }));
    assert_eq!(client.exchange(&packet(&[1], false)), failed(ErrorStatus::GeneralFailure));
    client.check_usable();
}

/// Says when it is dropped.
struct Kept(Arc<AtomicBool>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn dropped_with_the_model() -> (Arc<AtomicBool>, Kept) {
    let dropped = Arc::new(AtomicBool::new(false));
    (Arc::clone(&dropped), Kept(dropped))
}

#[test]
fn burst_16_dropping_the_context_stops_a_thread_that_waits() {
    let (dropped, kept) = dropped_with_the_model();
    let client = RawClient::new(Mock::running(move |request, options| {
        let _kept = &kept;
        double(request, options)
    }));
    std::thread::sleep(Duration::from_millis(10));
    assert!(!dropped.load(Ordering::SeqCst), "a burst keeps its prepared model alive");
    let begin = Instant::now();
    drop(client.server);
    assert!(dropped.load(Ordering::SeqCst));
    assert!(begin.elapsed() < Duration::from_millis(400));
}

/// The client reads nothing: the result queue is full, and the service waits for room.
#[test]
fn burst_16_dropping_the_context_does_not_wait_for_the_client() {
    let (dropped, kept) = dropped_with_the_model();
    let (count, counting) = counting();
    let prepared = Mock::running(move |request, options| {
        let _kept = &kept;
        counting.execute(request, options)
    });
    let mut client = RawClient::with_results(prepared, 4);
    // Each result takes four data.
    for round in 0..2 {
        client.requests.write(&packet(&[1], false), SOON).unwrap();
        until(|| count.load(Ordering::SeqCst) > round);
    }
    let begin = Instant::now();
    drop(client.server);
    assert!(begin.elapsed() < Duration::from_millis(400));
    until(|| dropped.load(Ordering::SeqCst));
}

#[test]
fn burst_16_dropping_the_context_gives_an_execution_up() {
    let (begun, wait_for_begin) = mpsc::channel();
    let (dropped, kept) = dropped_with_the_model();
    let mut client = RawClient::new(Mock::running(move |_, options| {
        let _kept = &kept;
        begun.send(()).unwrap();
        let cancellation = options.cancellation.clone().unwrap();
        until(|| cancellation.is_cancelled());
        Err(Error::failure("given up").into())
    }));
    client.requests.write(&packet(&[1], false), SOON).unwrap();
    wait_for_begin.recv().unwrap();
    drop(client.server);
    until(|| dropped.load(Ordering::SeqCst));
}
