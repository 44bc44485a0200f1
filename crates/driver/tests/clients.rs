//! Clients: what they hold is counted, limited, and released when they leave (contract: CONC-5,
//! QOS-1, SEC-4).

mod engine;

use engine::{Scripted, bare_status, execute, relu, request_with_room, vector};
use nnhal_driver::{AllocationError, DriverDevice, RequestError};
use nnhal_hal::client::Holding;
use nnhal_hal::fence::FenceState;
use nnhal_hal::{
    Buffer, BufferDescription, BufferRole, Client, ClientLimits, Device, ErrorStatus,
    ExecutionOptions, HalVersion, Memory, PrepareOptions, PreparedModel, Priority,
    RequestMemoryPool, SyncFence,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Outputs are the inputs.
fn copying() -> Scripted {
    Scripted::running(|bindings, _| {
        let bytes = bindings.inputs()[0].value().expect("a value").read_to_vec()?;
        Ok(bindings.outputs()[0].deliver(&[2], &bytes)?)
    })
}

fn client(limits: ClientLimits) -> Client {
    Client::new("test", limits)
}

fn prepare(device: &DriverDevice<Scripted>, client: &Client) -> Arc<dyn PreparedModel> {
    let options = PrepareOptions { client: client.clone(), ..PrepareOptions::default() };
    device.prepare_model(&relu(vector(2), vector(2)), HalVersion::V1_3, options).unwrap()
}

fn description(prepared: &Arc<dyn PreparedModel>) -> BufferDescription {
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    BufferDescription {
        prepared_models: vec![Arc::clone(prepared)],
        input_roles: vec![role],
        output_roles: vec![role],
        ..BufferDescription::default()
    }
}

fn expect_exhausted<T>(result: nnhal_hal::Result<T>) {
    let error = result.err().expect("a refusal");
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient, "{error}");
    assert!(error.to_string().contains("client"), "{error}");
}

/// Until it is so; a test that hangs is noticed.
fn wait_until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60), "never");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn conc_5_what_a_client_holds_is_counted_and_limited_for_it_alone() {
    let device = copying().device();
    let limits = ClientLimits {
        executions: 1,
        fenced_executions: 1,
        bursts: 1,
        buffers: 1,
        memory: 12,
        ..ClientLimits::default()
    };
    let (one, other) = (client(limits), client(limits));
    let (model, others) = (prepare(&device, &one), prepare(&device, &other));
    assert!(model.client().is_same(&one));

    let (signal, fence) = SyncFence::pair().unwrap();
    let options = ExecutionOptions::default();
    let launch = |model: &Arc<dyn PreparedModel>| {
        let wait_for = std::slice::from_ref(&fence);
        model.execute_fenced(&request_with_room(8), wait_for, &options, None)
    };
    let launched = launch(&model).unwrap();
    expect_exhausted(launch(&model));
    let of_other = launch(&others).unwrap();
    signal.signal();
    for execution in [launched, of_other] {
        let fence = execution.sync_fence.unwrap();
        let state = fence.wait(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(state, FenceState::Signalled);
    }
    assert_eq!(one.held(Holding::FencedExecutions), 0);

    let burst = model.configure_burst().unwrap();
    expect_exhausted(model.configure_burst());
    let _of_other = others.configure_burst().unwrap();
    assert_eq!(one.held(Holding::Bursts), 1);
    drop(burst);
    wait_until(|| one.held(Holding::Bursts) == 0);

    let buffer = device.allocate(&description(&model)).unwrap();
    assert_eq!((one.held(Holding::Buffers), one.held(Holding::Memory)), (1, 8));
    expect_exhausted(device.allocate(&description(&model)));
    let _of_other = device.allocate(&description(&others)).unwrap();
    drop(buffer);
    assert_eq!((one.held(Holding::Buffers), one.held(Holding::Memory)), (0, 0));
}

#[test]
fn conc_5_the_memory_of_buffers_is_the_clients_and_limited() {
    let device = copying().device();
    let limits = ClientLimits { memory: 12, ..ClientLimits::default() };
    let client = client(limits);
    let options = PrepareOptions { client: client.clone(), ..PrepareOptions::default() };
    let open = device.prepare_model(&relu(vector(0), vector(0)), HalVersion::V1_3, options);
    let buffer = device.allocate(&description(&open.unwrap())).unwrap();
    assert_eq!(client.held(Holding::Memory), 0);
    buffer.copy_from(&Memory::allocate(12).unwrap(), &[3]).unwrap();
    assert_eq!(client.held(Holding::Memory), 12);
    let refused = buffer.copy_from(&Memory::allocate(16).unwrap(), &[4]).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedPersistent, "{refused}");
}

#[test]
fn conc_5_executions_that_wait_or_run_are_counted_and_limited() {
    let over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&over);
    let device = Scripted::running(move |bindings, _| {
        while !seen.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
    })
    .at_once(1)
    .device();
    let client = client(ClientLimits { executions: 2, ..ClientLimits::default() });
    let model = prepare(&device, &client);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| execute(&*model, &request_with_room(8)).unwrap());
        }
        wait_until(|| client.held(Holding::Executions) == 2);
        let refused = execute(&*model, &request_with_room(8));
        over.store(true, Ordering::Release);
        assert_eq!(bare_status(refused), ErrorStatus::ResourceExhaustedTransient);
    });
    assert_eq!(client.held(Holding::Executions), 0);
}

/// One of each is running or waits when the client leaves.
#[test]
fn conc_5_all_that_a_client_holds_is_released_when_it_leaves() {
    let running = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&running);
    let program: Arc<()> = Arc::new(());
    let alive: Weak<()> = Arc::downgrade(&program);
    let device = Scripted::running(move |_, context| {
        let _part_of_the_program = &program;
        counter.fetch_add(1, Ordering::SeqCst);
        loop {
            context.budget.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
    })
    .at_once(1)
    .device();
    let leaving = client(ClientLimits::default());
    let model = prepare(&device, &leaving);
    let buffer: Arc<dyn Buffer> = device.allocate(&description(&model)).unwrap();
    buffer.copy_from(&Memory::allocate(8).unwrap(), &[]).unwrap();
    let burst = model.configure_burst().unwrap();
    let (_signal, fence) = SyncFence::pair().unwrap();
    let options = ExecutionOptions::default();
    let request = request_with_room(8);
    let waiting = model.execute_fenced(&request, &[fence], &options, None).unwrap();
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| execute(&*model, &request));
        wait_until(|| running.load(Ordering::SeqCst) == 1);
        let queued = scope.spawn(|| execute(&*model, &request));
        let in_burst = scope.spawn(|| burst.execute(&request, false));
        wait_until(|| leaving.held(Holding::Executions) == 3);
        leaving.leave();
        assert_eq!(bare_status(runs.join().unwrap()), ErrorStatus::GeneralFailure);
        assert_eq!(bare_status(queued.join().unwrap()), ErrorStatus::GeneralFailure);
        assert!(in_burst.join().unwrap().is_err());
    });
    let ended = waiting.sync_fence.unwrap().wait(Some(Duration::from_secs(60))).unwrap();
    assert_eq!(ended, FenceState::Failed);
    assert_eq!(running.load(Ordering::SeqCst), 1, "nothing began after it");
    let left = [Holding::Executions, Holding::FencedExecutions, Holding::Bursts, Holding::Memory];
    wait_until(|| left.iter().all(|what| leaving.held(*what) == 0));

    // What is still in its hands is of no use.
    assert_eq!(bare_status(execute(&*model, &request)), ErrorStatus::GeneralFailure);
    assert!(model.configure_burst().is_err());
    assert!(buffer.copy_to(&Memory::allocate(8).unwrap()).is_err());
    assert!(buffer.copy_from(&Memory::allocate(8).unwrap(), &[]).is_err());
    assert!(device.allocate(&description(&model)).is_err());
    let options = PrepareOptions { client: leaving.clone(), ..PrepareOptions::default() };
    let again = device.prepare_model(&relu(vector(2), vector(2)), HalVersion::V1_3, options);
    assert_eq!(again.err().unwrap().status(), ErrorStatus::GeneralFailure);
    // The engine of these tests keeps programs itself; the model that the client still has does not.
    drop(device);
    wait_until(|| alive.strong_count() == 0);
    drop(model);
}

#[test]
fn conc_5_preparing_ends_when_its_client_leaves() {
    let entered = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&entered);
    let device = copying()
        .compiling(move |_, _, budget| {
            seen.store(true, Ordering::SeqCst);
            loop {
                budget.check()?;
                std::thread::sleep(Duration::from_millis(1));
            }
        })
        .at_once(1)
        .device();
    let leaving = client(ClientLimits::default());
    let model = relu(vector(2), vector(2));
    let prepare = || {
        let options = PrepareOptions { client: leaving.clone(), ..PrepareOptions::default() };
        device.prepare_model(&model, HalVersion::V1_3, options).err().unwrap().status()
    };
    std::thread::scope(|scope| {
        let both = [scope.spawn(prepare), scope.spawn(prepare)];
        wait_until(|| entered.load(Ordering::SeqCst));
        leaving.leave();
        for one in both {
            assert_eq!(one.join().unwrap(), ErrorStatus::GeneralFailure);
        }
    });
}

/// Also where no argument is in the buffer, which has no role to be asked for then.
#[test]
fn sec_4_a_token_is_nothing_to_another_client_or_device() {
    let (device, elsewhere) = (copying().device(), copying().device());
    let (one, other) = (client(ClientLimits::default()), client(ClientLimits::default()));
    let model = prepare(&device, &one);
    let buffer = device.allocate(&description(&model)).unwrap();
    let mut request = request_with_room(8);
    request.pools.push(RequestMemoryPool::Token(buffer.token()));
    execute(&*model, &request).unwrap();
    // Another model of the same client and device may name it.
    execute(&*prepare(&device, &one), &request).unwrap();
    for stranger in [prepare(&device, &other), prepare(&elsewhere, &one)] {
        let error = execute(&*stranger, &request).unwrap_err().error;
        assert_eq!(error.status(), ErrorStatus::InvalidArgument);
        assert!(matches!(error.reason(), Some(RequestError::UnknownToken { .. })), "{error}");
    }
    let mut mixed = description(&model);
    mixed.prepared_models.push(prepare(&device, &other));
    let refused = device.allocate(&mixed).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    assert!(matches!(refused.reason(), Some(AllocationError::OtherClient { model: 1 })));
}

/// One client keeps the device busy with many executions of the highest priority, fenced ones as well;
/// another's of medium priority get every other slot.
#[test]
fn qos_1_high_priority_of_one_client_does_not_starve_medium_of_another() {
    let device = Scripted::running(|bindings, _| {
        std::thread::sleep(Duration::from_millis(2));
        Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
    })
    .at_once(1)
    .device();
    let (greedy, modest) = (client(ClientLimits::default()), client(ClientLimits::default()));
    let of = |client: &Client, priority| {
        let options =
            PrepareOptions { client: client.clone(), priority, ..PrepareOptions::default() };
        device.prepare_model(&relu(vector(2), vector(2)), HalVersion::V1_3, options).unwrap()
    };
    let (high, medium) = (of(&greedy, Priority::High), of(&modest, Priority::Medium));
    let over = AtomicBool::new(false);
    let options = ExecutionOptions::default();
    let fenced: Vec<_> = (0..600)
        .map(|_| high.execute_fenced(&request_with_room(8), &[], &options, None).unwrap())
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    execute(&*high, &request_with_room(8)).unwrap();
                }
            });
        }
        let begin = Instant::now();
        for _ in 0..10 {
            execute(&*medium, &request_with_room(8)).unwrap();
            let behind_fences =
                medium.execute_fenced(&request_with_room(8), &[], &options, None).unwrap();
            let fence = behind_fences.sync_fence.unwrap();
            assert_eq!(fence.wait(Some(Duration::from_secs(60))).unwrap(), FenceState::Signalled);
        }
        let took = begin.elapsed();
        over.store(true, Ordering::Relaxed);
        // 20 of them, each behind one of the other client's, are 80 ms; all others would be 1.2 s.
        assert!(took < Duration::from_millis(600), "{took:?}");
        assert!(greedy.held(Holding::FencedExecutions) > 300, "the others are still waiting");
    });
    greedy.leave();
    for execution in fenced {
        let fence = execution.sync_fence.unwrap();
        assert_ne!(fence.wait(Some(Duration::from_secs(60))).unwrap(), FenceState::Unsignalled);
    }
}

#[test]
fn sec_3_more_clients_than_the_limit_are_refused_until_some_have_gone() {
    let device = copying().device().with_maximum_clients(2);
    let [one, two, three] = [(); 3].map(|()| client(ClientLimits::default()));
    let refused = |client: &Client| {
        let options = PrepareOptions { client: client.clone(), ..PrepareOptions::default() };
        let model = relu(vector(2), vector(2));
        let error = device.prepare_model(&model, HalVersion::V1_3, options).err().unwrap();
        assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
        let expected = "the device has 2 clients, which leaves no room for client test";
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(error.reason::<nnhal_driver::TooManyClients>().is_some());
    };
    let (first, second) = (prepare(&device, &one), prepare(&device, &two));
    refused(&three);
    // Those that are there may have more, and the process is no stranger.
    let more = prepare(&device, &one);
    drop((prepare(&device, &Client::in_process()), first));
    refused(&three);
    drop(more);
    let third = prepare(&device, &three);
    refused(&one);
    // Who leaves is gone, whatever is still held of it.
    two.leave();
    let again = prepare(&device, &one);
    refused(&client(ClientLimits::default()));
    drop((second, third, again));
}

#[test]
fn a_preparation_that_fails_does_not_count_its_client() {
    let device = copying().device().with_maximum_clients(1);
    let options = PrepareOptions {
        client: client(ClientLimits::default()),
        deadline: Some(nnhal_hal::Deadline::from_nanoseconds_since_epoch(0)),
        ..PrepareOptions::default()
    };
    let model = relu(vector(2), vector(2));
    device.prepare_model(&model, HalVersion::V1_3, options).err().unwrap();
    prepare(&device, &client(ClientLimits::default()));
    prepare(&device, &client(ClientLimits::default()));
}
