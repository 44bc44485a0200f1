//! The client's end of a burst, and both ends together.

mod support;

use nnhal_burst::client::KEPT_SLOTS;
use nnhal_burst::datum::{FmqRequestDatum, FmqResultDatum, ResultDatum};
use nnhal_burst::packet::{PacketError, RequestPacket, ResultPacket};
use nnhal_burst::queue::{Reader, Writer};
use nnhal_burst::{BurstCallback, BurstClient, BurstContext, ClientError, Connection};
use nnhal_hal::{
    Burst, ErrorStatus, ExecutionError, ExecutionOptions, Memory, OutputShape, Request,
    RequestMemoryPool, Timing,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use support::{Mock, SOON, double, memory, output, request, until};

/// Writes down what is freed.
#[derive(Clone, Default)]
struct Context {
    freed: Arc<Mutex<Vec<i32>>>,
    dead: Arc<AtomicBool>,
}

impl BurstContext for Context {
    fn free_memory(&self, slot: i32) {
        self.freed.lock().unwrap().push(slot);
    }

    fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::SeqCst)
    }
}

/// A service made by hand.
struct Service {
    context: Context,
    callback: Arc<dyn BurstCallback>,
    requests: Reader<FmqRequestDatum>,
    results: Writer<FmqResultDatum>,
}

fn service() -> (BurstClient, Service) {
    let connection = Connection::new(64).unwrap();
    let context = Context::default();
    let service = Service {
        context: context.clone(),
        callback: connection.callback(),
        requests: connection.requests().clone().into_reader(),
        results: connection.results().clone().into_writer(),
    };
    (connection.connect(context), service)
}

impl Service {
    fn receive(&mut self) -> RequestPacket {
        let mut data = Vec::new();
        self.requests.read(&mut data, SOON).unwrap();
        RequestPacket::decode(&data).unwrap()
    }

    fn answer(&mut self, data: &[FmqResultDatum]) {
        self.results.write(data, SOON).unwrap();
    }

    /// Answers as many requests as there are results; the slots of each request.
    fn serve(
        mut self,
        results: Vec<Vec<FmqResultDatum>>,
    ) -> std::thread::JoinHandle<Vec<Vec<i32>>> {
        std::thread::spawn(move || {
            let serve = |result: &Vec<_>| {
                let slots = self.receive().slots;
                self.answer(result);
                slots
            };
            results.iter().map(serve).collect()
        })
    }
}

fn data(result: &ResultPacket) -> Vec<FmqResultDatum> {
    let mut data = Vec::new();
    result.encode(&mut data).unwrap();
    data
}

fn good() -> Vec<FmqResultDatum> {
    let output_shapes = vec![];
    data(&ResultPacket { status: ErrorStatus::None, output_shapes, timing: Timing::NONE })
}

fn reason(error: &ExecutionError) -> ClientError {
    error.error.reason::<ClientError>().expect("a client's error").clone()
}

fn requests_in(memories: &[Memory]) -> Request {
    let mut request = request(&memories[0]);
    request.pools = memories.iter().cloned().map(RequestMemoryPool::Memory).collect();
    request
}

#[test]
fn burst_9_a_memory_has_one_slot() {
    let (client, service) = service();
    let server = service.serve(vec![good(); 4]);
    let (first, second) = (memory(1), memory(2));
    let execute = |memories: &[Memory]| {
        client.execute(&requests_in(memories), false).unwrap();
    };
    execute(std::slice::from_ref(&first));
    execute(std::slice::from_ref(&first));
    execute(&[second.clone(), first.clone(), second.clone()]);
    // Another memory, even if of the same descriptor.
    let fd = std::os::fd::AsFd::as_fd(&first).try_clone_to_owned().unwrap();
    execute(&[Memory::from_ashmem(fd, 16).unwrap()]);
    assert_eq!(server.join().unwrap(), [vec![0], vec![0], vec![1, 0, 1], vec![2]]);
}

#[test]
fn burst_8_the_client_gives_the_memory_of_its_slots_and_of_no_others() {
    let (client, service) = service();
    let callback = Arc::clone(&service.callback);
    let server = service.serve(vec![good()]);
    let memories = [memory(1), memory(2)];
    client.execute(&requests_in(&memories), false).unwrap();
    server.join().unwrap();
    let given = callback.get_memories(&[1, 0, 1]).unwrap();
    for (given, expected) in given.iter().zip([1, 0, 1]) {
        assert!(given.is_same(&memories[expected]));
    }
    for slots in [&[2][..], &[-1], &[0, i32::MAX], &[i32::MIN]] {
        let error = callback.get_memories(slots).unwrap_err();
        assert_eq!(error.status(), ErrorStatus::InvalidArgument);
    }
    client.free_memory(&memories[0]);
    assert!(callback.get_memories(&[0]).is_err());
}

#[test]
fn burst_10_a_slot_is_freed_before_it_is_used_again() {
    let (client, service) = service();
    let context = service.context.clone();
    let server = service.serve(vec![good(); 2]);
    let [first, second] = [memory(1), memory(2)];
    client.execute(&request(&first), false).unwrap();
    client.free_memory(&first);
    client.free_memory(&first);
    client.free_memory(&second);
    assert_eq!(*context.freed.lock().unwrap(), [0]);
    client.execute(&request(&second), false).unwrap();
    assert_eq!(server.join().unwrap(), [[0], [0]]);
}

#[test]
fn burst_10_memory_in_use_is_freed_when_the_execution_is_over() {
    let (client, mut service) = service();
    let memory = memory(1);
    std::thread::scope(|scope| {
        let execution = scope.spawn(|| client.execute(&request(&memory), false));
        service.receive();
        client.free_memory(&memory);
        assert!(service.callback.get_memories(&[0]).is_ok(), "the service may still ask");
        assert!(service.context.freed.lock().unwrap().is_empty());
        service.answer(&good());
        execution.join().unwrap().unwrap();
    });
    assert_eq!(*service.context.freed.lock().unwrap(), [0]);
    assert!(service.callback.get_memories(&[0]).is_err());
}

/// New memory for each request uses up neither slots nor the service's descriptors.
#[test]
fn slots_that_were_not_used_for_long_are_freed() {
    let (client, service) = service();
    let context = service.context.clone();
    let rounds = KEPT_SLOTS + 20;
    let server = service.serve(vec![good(); 2 * rounds]);
    let constant = memory(0);
    for _ in 0..rounds {
        client.execute(&requests_in(&[memory(1), constant.clone()]), false).unwrap();
        client.execute(&request(&constant), false).unwrap();
    }
    let slots = server.join().unwrap();
    let highest = slots.iter().flatten().max().unwrap();
    assert!(usize::try_from(*highest).unwrap() <= KEPT_SLOTS + 1);
    assert!(slots.iter().skip(1).step_by(2).all(|slots| *slots == [1]), "the constant stays");
    let freed = context.freed.lock().unwrap();
    assert_eq!(freed.len(), rounds + 1 - KEPT_SLOTS);
    assert!(!freed.contains(&1));
}

#[test]
fn burst_14_tokens_are_refused() {
    let (client, _service) = service();
    let mut request = request(&memory(1));
    request.pools.push(RequestMemoryPool::Token(1));
    let error = client.execute(&request, false).unwrap_err();
    assert_eq!(reason(&error), ClientError::Token { pool: 1 });
    assert_eq!(error.error.status(), ErrorStatus::InvalidArgument);
    assert!(reason(&error).is_refused_here());
}

#[test]
fn burst_15_a_second_request_is_refused_meanwhile() {
    let (client, mut service) = service();
    let memory = memory(1);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| client.execute(&request(&memory), false));
        service.receive();
        let error = client.execute(&request(&memory), false).unwrap_err();
        assert_eq!(reason(&error), ClientError::Busy);
        assert_eq!(error.error.status(), ErrorStatus::GeneralFailure);
        service.answer(&good());
        first.join().unwrap().unwrap();
    });
    service.serve(vec![good()]);
    client.execute(&request(&memory), false).unwrap();
}

#[test]
fn burst_15_a_request_that_is_too_long_is_refused() {
    let (client, service) = service();
    let server = service.serve(vec![good()]);
    let memory = memory(1);
    let mut long = request(&memory);
    // Five data without dimensions, in a queue for 64.
    long.inputs[0].dimensions = vec![1; 60];
    let error = client.execute(&long, false).unwrap_err();
    assert_eq!(reason(&error), ClientError::TooLong { length: 65, capacity: 64 });
    assert!(reason(&error).is_refused_here());
    long.inputs[0].dimensions.pop();
    client.execute(&long, false).unwrap();
    server.join().unwrap();
}

#[test]
fn gen_8_results_that_are_none_are_errors_and_the_burst_works_on() {
    let first = |packet_size, status, outputs| {
        FmqResultDatum::from(ResultDatum::PacketInformation { packet_size, status, outputs })
    };
    let times = *good().last().unwrap();
    let shapes = |count| {
        let shape = OutputShape { dimensions: vec![8], is_sufficient: true };
        let output_shapes = vec![shape; count];
        data(&ResultPacket { status: ErrorStatus::None, output_shapes, timing: Timing::NONE })
    };
    let bad = vec![
        vec![first(1, 0, 0)],
        vec![first(2, 0, 0), first(2, 0, 0)],
        vec![first(2, 0, u32::MAX), times],
        vec![FmqResultDatum::from_bytes([0xFF; 24])],
        vec![first(2, 5, 0), times],
        vec![first(2, 3, 0), times],
        shapes(2),
    ];
    let (client, service) = service();
    let server = service.serve(bad.iter().cloned().chain([shapes(1)]).collect());
    for bad in bad {
        let error = client.execute(&request(&memory(1)), false).unwrap_err();
        assert_eq!(error.error.status(), ErrorStatus::GeneralFailure, "{bad:?}");
        assert!(error.output_shapes.is_empty());
        let expected =
            matches!(reason(&error), ClientError::Result(_) | ClientError::Shapes { .. });
        assert!(expected, "{error}");
    }
    let execution = client.execute(&request(&memory(1)), false).unwrap();
    assert_eq!(execution.dimensions(0), Some(&[8][..]));
    server.join().unwrap();
}

#[test]
fn gen_2_a_status_of_1_3_is_a_failure() {
    let (client, service) = service();
    let first = ResultDatum::PacketInformation { packet_size: 2, status: 6, outputs: 0 };
    service.serve(vec![vec![first.into(), *good().last().unwrap()]]);
    let error = client.execute(&request(&memory(1)), false).unwrap_err();
    assert_eq!(reason(&error), ClientError::Result(PacketError::Status { found: 6 }));
    assert_eq!(error.error.status(), ErrorStatus::GeneralFailure);
}

#[test]
fn results_that_were_not_asked_for_are_no_answers() {
    let (client, mut service) = service();
    service.answer(&data(&ResultPacket::failed(ErrorStatus::InvalidArgument)));
    service.serve(vec![good()]);
    client.execute(&request(&memory(1)), false).unwrap();
}

#[test]
fn ipc_5_a_client_is_released_when_it_is_notified_of_the_services_death() {
    let connection = Connection::new(64).unwrap();
    let death = connection.death();
    let client = connection.connect(Context::default());
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.execute(&request(&memory(1)), false));
        std::thread::sleep(Duration::from_millis(20));
        let begin = Instant::now();
        death.announce();
        let error = waiting.join().unwrap().unwrap_err();
        assert_eq!(reason(&error), ClientError::Died);
        assert_eq!(error.error.status(), ErrorStatus::DeviceUnavailable);
        assert!(begin.elapsed() < Duration::from_millis(400));
    });
    let error = client.execute(&request(&memory(1)), false).unwrap_err();
    assert_eq!(reason(&error), ClientError::Died);
}

#[test]
fn ipc_5_a_client_asks_for_signs_of_life() {
    let (client, service) = service();
    service.context.dead.store(true, Ordering::SeqCst);
    let error = client.execute(&request(&memory(1)), false).unwrap_err();
    assert_eq!(reason(&error), ClientError::Died);
}

/// The service's thread ends because of a queue that somebody has broken.
#[test]
fn ipc_5_a_client_is_released_when_the_service_ends_by_itself() {
    use std::os::unix::fs::FileExt;
    let connection = Connection::new(64).unwrap();
    let file: std::fs::File = connection.requests().descriptor().unwrap().files.remove(0).into();
    let (requests, results) = (connection.requests().clone(), connection.results().clone());
    let death = connection.death();
    let (begun, wait_for_begin) = mpsc::channel();
    let (go_on, wait_to_go_on) = mpsc::channel::<()>();
    let wait_to_go_on = Mutex::new(wait_to_go_on);
    let prepared = Mock::running(move |request, options| {
        begun.send(()).unwrap();
        let _ = wait_to_go_on.lock().unwrap().recv();
        double(request, options)
    });
    let callback = connection.callback();
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    let at_the_end = move || {
        death.announce();
        end.store(true, Ordering::SeqCst);
    };
    let server =
        nnhal_burst::BurstServer::with_end(prepared, callback, requests, results, at_the_end)
            .unwrap();
    let client = connection.connect(server);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.execute(&request(&memory(1)), false));
        wait_for_begin.recv().unwrap();
        file.write_all_at(&1_u64.to_ne_bytes(), 8).unwrap();
        drop(go_on);
        // Its result may come alone, or with the failure for the counter behind it. The next
        // request finds no one.
        let _ = waiting.join().unwrap();
        until(|| ended.load(Ordering::SeqCst));
        let begin = Instant::now();
        let error = client.execute(&request(&memory(1)), false).unwrap_err();
        assert_eq!(reason(&error), ClientError::Died);
        assert!(begin.elapsed() < Duration::from_millis(400));
    });
}

#[test]
fn burst_17_results_are_those_of_a_direct_execution() {
    let prepared = Mock::doubling();
    let burst = nnhal_burst::open(Arc::clone(&prepared)).unwrap();
    for (input, room) in [(3, 8), (200, 8), (3, 4)] {
        let (direct, through_burst) = (memory(input), memory(input));
        let run = |memory: &Memory, burst: Option<&BurstClient>| {
            let mut request = request(memory);
            request.outputs[0].location.length = room;
            match burst {
                Some(burst) => burst.execute(&request, false),
                None => prepared.execute(&request, &ExecutionOptions::default()),
            }
        };
        match (run(&direct, None), run(&through_burst, Some(&burst))) {
            (Ok(expected), Ok(found)) => assert_eq!(found, expected),
            (Err(expected), Err(found)) => {
                assert_eq!(found.error.status(), expected.error.status());
                assert_eq!(found.output_shapes, expected.output_shapes);
            }
            (expected, found) => panic!("{expected:?}, {found:?}"),
        }
        assert_eq!(output(&through_burst), output(&direct));
    }
    let timing = burst.execute(&request(&memory(1)), true).unwrap().timing;
    assert!(timing.time_on_device.unwrap() <= timing.time_in_driver.unwrap());
}

/// Two bursts and direct calls on one prepared model, memory that comes and goes.
#[test]
fn burst_16_bursts_and_other_executions_do_not_disturb_each_other() {
    let prepared = Mock::doubling();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let burst = nnhal_burst::open(Arc::clone(&prepared)).unwrap();
            scope.spawn(move || {
                let mut kept = memory(0);
                for round in 0..500_u32 {
                    let input = u8::try_from(round % 256).unwrap();
                    if round % 3 == 0 {
                        burst.free_memory(&kept);
                        kept = memory(0);
                    }
                    kept.view().unwrap().write(0, &[input; 8]).unwrap();
                    burst.execute(&request(&kept), round % 2 == 0).unwrap();
                    assert_eq!(output(&kept), [input.wrapping_mul(2); 8]);
                }
            });
        }
        for _ in 0..500 {
            let direct = memory(100);
            prepared.execute(&request(&direct), &ExecutionOptions::default()).unwrap();
            assert_eq!(output(&direct), [200; 8]);
        }
    });
}

/// A burst that many threads share executes one request at a time and mixes up none.
#[test]
fn conc_1_a_shared_burst_executes_or_refuses() {
    let burst = nnhal_burst::open(Mock::doubling()).unwrap();
    std::thread::scope(|scope| {
        for thread in 1..4_u8 {
            let burst = &burst;
            scope.spawn(move || {
                let memory = memory(thread);
                let mut executed = 0;
                while executed < 100 {
                    match burst.execute(&request(&memory), false) {
                        Ok(_) => {
                            executed += 1;
                            assert_eq!(output(&memory), [2 * thread; 8]);
                        }
                        Err(error) => assert_eq!(reason(&error), ClientError::Busy),
                    }
                }
            });
        }
    });
}

/// Threads and descriptors go with the burst.
#[test]
fn burst_16_nothing_is_left_of_a_burst() {
    let count = |of: &str| std::fs::read_dir(format!("/proc/self/{of}")).unwrap().count();
    let prepared = Mock::doubling();
    let open_and_close = || {
        let burst = nnhal_burst::open(Arc::clone(&prepared)).unwrap();
        burst.execute(&request(&memory(1)), false).unwrap();
    };
    open_and_close();
    let before = count("fd");
    for _ in 0..300 {
        open_and_close();
    }
    // Other tests of this process come and go meanwhile.
    assert!(count("fd") < before + 200, "{} descriptors, {before} before", count("fd"));
    assert!(count("task") < 200);
    // The threads have let go of the model.
    until(|| Arc::strong_count(&prepared) == 1);
}
