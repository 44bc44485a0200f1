//! Executions behind sync fences (contract: section 12).

mod engine;

use engine::{Scripted, execute, vector};
use nnhal_driver::{EngineError, Interruption};
use nnhal_hal::fence::{FenceSignal, FenceState};
use nnhal_hal::{
    BufferDescription, BufferRole, Cancellation, DataLocation, Deadline, Device, ErrorStatus,
    ExecutionOptions, FencedExecution, HalVersion, PrepareOptions, PreparedModel, Request,
    RequestBuilder, RequestMemoryPool, SyncFence,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Outputs are the inputs.
fn copying() -> Scripted {
    Scripted::running(|bindings, _| {
        let bytes = bindings.inputs()[0].value().expect("a value").read_to_vec()?;
        Ok(bindings.outputs()[0].deliver(&[2], &bytes)?)
    })
}

fn prepared() -> Arc<dyn PreparedModel> {
    copying().prepared(vector(2), vector(2))
}

fn request(bytes: [u8; 8]) -> Request {
    let mut request = RequestBuilder::new();
    request.input(&bytes).output(8);
    request.build().unwrap()
}

fn launch(
    prepared: &dyn PreparedModel,
    request: &Request,
    wait_for: &[SyncFence],
) -> FencedExecution {
    prepared.execute_fenced(request, wait_for, &ExecutionOptions::default(), None).unwrap()
}

fn refusal(prepared: &dyn PreparedModel, request: &Request, wait_for: &[SyncFence]) -> ErrorStatus {
    let options = ExecutionOptions::default();
    prepared.execute_fenced(request, wait_for, &options, None).unwrap_err().status()
}

/// Waits for the end, at most so long that a test that hangs is noticed.
fn end(execution: &FencedExecution) -> FenceState {
    let fence = execution.sync_fence.as_ref().expect("a fence");
    fence.wait(Some(Duration::from_secs(60))).unwrap()
}

fn status(execution: &FencedExecution) -> ErrorStatus {
    execution.info.get().map_or_else(|error| error.status(), |_| ErrorStatus::None)
}

fn pending() -> (FenceSignal, SyncFence) {
    SyncFence::pair().unwrap()
}

#[test]
fn fence_4_an_execution_signals_when_its_outputs_are_there() {
    let (prepared, request) = (prepared(), request([7; 8]));
    let execution = launch(&*prepared, &request, &[]);
    assert_eq!(end(&execution), FenceState::Signalled);
    assert_eq!(status(&execution), ErrorStatus::None);
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), [7; 8]);
}

#[test]
fn fence_5_nothing_is_computed_before_every_fence_has_signalled() {
    let runs = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&runs);
    let prepared = Scripted::running(move |bindings, _| {
        seen.fetch_add(1, Ordering::SeqCst);
        Ok(bindings.outputs()[0].deliver(&[2], &[1; 8])?)
    })
    .prepared(vector(2), vector(2));
    let mut fences: Vec<_> = (0..40).map(|_| pending()).collect();
    let wait_for: Vec<SyncFence> = fences.iter().map(|(_, fence)| fence.clone()).collect();
    let begin = Instant::now();
    let execution = launch(&*prepared, &request([0; 8]), &wait_for);
    assert!(begin.elapsed() < Duration::from_secs(5), "the launch does not wait (FENCE-4)");
    drop(wait_for);
    let (last, _) = fences.pop().unwrap();
    for (signal, _) in fences {
        signal.signal();
    }
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(status(&execution), ErrorStatus::GeneralFailure, "FENCE-10: not before the end");
    last.signal();
    assert_eq!(end(&execution), FenceState::Signalled);
    assert_eq!((runs.load(Ordering::SeqCst), status(&execution)), (1, ErrorStatus::None));
}

#[test]
fn conc_5_an_execution_that_waits_can_be_cancelled() {
    let (_signal, fence) = pending();
    let cancellation = Cancellation::new();
    let options = ExecutionOptions {
        cancellation: Some(cancellation.clone()),
        ..ExecutionOptions::default()
    };
    let execution = prepared().execute_fenced(&request([0; 8]), &[fence], &options, None).unwrap();
    drop(options);
    assert_eq!(execution.sync_fence.as_ref().unwrap().state().unwrap(), FenceState::Unsignalled);
    cancellation.cancel();
    assert_eq!(end(&execution), FenceState::Failed);
    assert_eq!(status(&execution), ErrorStatus::GeneralFailure);
}

#[test]
fn fence_2_outputs_must_be_known_and_fit() {
    let open = copying().prepared(vector(2), vector(0));
    assert_eq!(refusal(&*open, &request([0; 8]), &[]), ErrorStatus::InvalidArgument);
    let mut short = RequestBuilder::new();
    short.input(&[0; 8]).output(4);
    let short = short.build().unwrap();
    assert_eq!(refusal(&*prepared(), &short, &[]), ErrorStatus::InvalidArgument);
}

#[test]
fn fence_3_a_fence_that_has_failed_is_refused() {
    let (signal, fence) = pending();
    signal.fail(nnhal_hal::Error::failure("before the launch"));
    let (_kept, waiting) = pending();
    assert_eq!(
        refusal(&*prepared(), &request([0; 8]), &[waiting, fence]),
        ErrorStatus::InvalidArgument
    );
}

#[test]
fn fence_7_a_fence_that_fails_later_fails_the_execution_at_once() {
    let (signal, fence) = pending();
    let (_kept, other) = pending();
    let execution = launch(&*prepared(), &request([0; 8]), &[other, fence]);
    signal.fail(nnhal_hal::Error::failure("after the launch"));
    assert_eq!(end(&execution), FenceState::Failed);
    assert_eq!(status(&execution), ErrorStatus::GeneralFailure);
    let reason = execution.info.get().unwrap_err().to_string();
    assert!(
        reason.contains("fence 1 has failed") && reason.contains("after the launch"),
        "{reason}"
    );
}

#[test]
fn fence_7_a_deadline_ends_the_waiting() {
    let (_kept, fence) = pending();
    let soon = Deadline::after(Duration::from_millis(10));
    let options = ExecutionOptions { deadline: Some(soon), ..ExecutionOptions::default() };
    let execution = prepared().execute_fenced(&request([0; 8]), &[fence], &options, None).unwrap();
    assert_eq!(end(&execution), FenceState::Failed);
    assert_eq!(status(&execution), ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn fence_9_a_passed_deadline_is_said_at_once_but_after_wrong_arguments() {
    let passed = Some(Deadline::from_nanoseconds_since_epoch(0));
    let options = ExecutionOptions { deadline: passed, ..ExecutionOptions::default() };
    let launched = |request: &Request| prepared().execute_fenced(request, &[], &options, None);
    let late = launched(&request([0; 8])).unwrap_err();
    assert_eq!(late.status(), ErrorStatus::MissedDeadlinePersistent);
    let wrong = launched(&Request::default()).unwrap_err();
    assert_eq!(wrong.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn fence_13_the_duration_begins_with_the_last_fence() {
    let slow = || {
        Scripted::running(|bindings, context| {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(60) {
                context.budget.check()?;
            }
            Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
        })
        .prepared(vector(2), vector(2))
    };
    let options = ExecutionOptions::default();
    // The wait takes longer than the duration, which does not count it.
    let (signal, fence) = pending();
    let enough = Some(Duration::from_secs(20));
    let execution = slow().execute_fenced(&request([0; 8]), &[fence], &options, enough).unwrap();
    signal.signal();
    assert_eq!((end(&execution), status(&execution)), (FenceState::Signalled, ErrorStatus::None));

    let short = Some(Duration::from_millis(5));
    let execution = slow().execute_fenced(&request([0; 8]), &[], &options, short).unwrap();
    assert_eq!(end(&execution), FenceState::Failed);
    let missed = [ErrorStatus::MissedDeadlineTransient, ErrorStatus::MissedDeadlinePersistent];
    assert!(missed.contains(&status(&execution)));
}

#[test]
fn fence_10_and_12_timings_are_two_and_stay_the_same() {
    let (signal, fence) = pending();
    let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
    let execution = prepared().execute_fenced(&request([0; 8]), &[fence], &options, None).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    signal.signal();
    assert_eq!(end(&execution), FenceState::Signalled);
    let (launched, fenced) = execution.info.get().unwrap();
    assert_eq!(execution.info.get().unwrap(), (launched, fenced));
    let (launched_in_driver, fenced_in_driver) =
        (launched.time_in_driver.unwrap(), fenced.time_in_driver.unwrap());
    assert!(launched_in_driver >= fenced_in_driver + Duration::from_millis(15));
    for timing in [launched, fenced] {
        assert!(timing.time_on_device.unwrap() <= timing.time_in_driver.unwrap());
    }
    let unmeasured = launch(&*prepared(), &request([0; 8]), &[]);
    assert_eq!(end(&unmeasured), FenceState::Signalled);
    assert_eq!(unmeasured.info.get().unwrap(), (nnhal_hal::Timing::NONE, nnhal_hal::Timing::NONE));
}

#[test]
fn fence_14_executions_are_chained_by_their_fences_alone() {
    let prepared = prepared();
    let (signal, start) = pending();
    // One pool; every execution reads what the one before has written.
    let memory = nnhal_hal::Memory::from_bytes(&[0; 256]).unwrap();
    let mut wait_for = start;
    let mut last = None;
    for step in 0..30_u32 {
        let at = |place| DataLocation { pool_index: 0, offset: 8 * place, length: 8 };
        let request = Request {
            inputs: vec![nnhal_hal::RequestArgument::at(at(step))],
            outputs: vec![nnhal_hal::RequestArgument::at(at(step + 1))],
            pools: vec![RequestMemoryPool::Memory(memory.clone())],
        };
        let execution = launch(&*prepared, &request, &[wait_for]);
        wait_for = execution.sync_fence.clone().unwrap();
        last = Some(execution);
    }
    memory.view().unwrap().write(0, &[9; 8]).unwrap();
    signal.signal();
    assert_eq!(end(&last.unwrap()), FenceState::Signalled);
    assert_eq!(memory.view().unwrap().read_to_vec(240, 8).unwrap(), [9; 8]);
}

#[test]
fn fence_14_a_chain_through_a_buffer_of_the_driver() {
    let device = copying().device();
    let model = engine::relu(vector(2), vector(2));
    let prepared =
        device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap();
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let buffer = device
        .allocate(&BufferDescription {
            prepared_models: vec![Arc::clone(&prepared)],
            input_roles: vec![role],
            output_roles: vec![role],
            ..BufferDescription::default()
        })
        .unwrap();
    let in_buffer = |mut request: Request, output: bool| {
        request.pools.push(RequestMemoryPool::Token(buffer.token()));
        let arguments = if output { &mut request.outputs } else { &mut request.inputs };
        arguments[0].location = DataLocation { pool_index: 1, offset: 0, length: 0 };
        request
    };
    let (signal, start) = pending();
    let writing = in_buffer(request([6; 8]), true);
    let reading = in_buffer(request([0; 8]), false);
    // Uninitialized still, but there is something to wait for.
    let first = launch(&*prepared, &writing, &[start]);
    let second = launch(&*prepared, &reading, &[first.sync_fence.clone().unwrap()]);
    signal.signal();
    assert_eq!((end(&second), status(&second)), (FenceState::Signalled, ErrorStatus::None));
    assert_eq!(RequestBuilder::read_output(&reading, 0).unwrap(), [6; 8]);

    // An execution that fails while it waits takes what its buffer held (BUF-1).
    let (signal, start) = pending();
    let third = launch(&*prepared, &writing, &[start]);
    signal.fail(nnhal_hal::Error::failure("no input"));
    assert_eq!(end(&third), FenceState::Failed);
    assert_eq!(
        execute(&*prepared, &reading).unwrap_err().error.status(),
        ErrorStatus::GeneralFailure
    );
    assert_eq!(refusal(&*prepared, &reading, &[]), ErrorStatus::GeneralFailure, "DBUF-3");
}

#[test]
fn fence_15_a_loop_that_takes_too_long_signals_normally() {
    let prepared = Scripted::running(|_, _| {
        Err(EngineError::from(Interruption::LoopTimeout { limit: Duration::from_millis(1) }))
    })
    .prepared(vector(2), vector(2));
    let execution = launch(&*prepared, &request([0; 8]), &[]);
    assert_eq!(end(&execution), FenceState::Signalled);
    assert_eq!(status(&execution), ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn fence_7_and_11_an_engine_that_panics_fails_the_fence() {
    let prepared = Scripted::running(|_, _| panic!("by intent")).prepared(vector(2), vector(2));
    let execution = launch(&*prepared, &request([0; 8]), &[]);
    assert_eq!(end(&execution), FenceState::Failed);
    assert_eq!(status(&execution), ErrorStatus::GeneralFailure);
}

#[test]
fn conc_3_an_execution_keeps_what_it_needs() {
    let (signal, fence) = pending();
    let request = request([4; 8]);
    let kept = request.clone();
    let execution = launch(&*prepared(), &request, &[fence]);
    drop(request);
    signal.signal();
    assert_eq!(end(&execution), FenceState::Signalled);
    assert_eq!(RequestBuilder::read_output(&kept, 0).unwrap(), [4; 8]);
}

#[test]
fn fence_4_a_device_may_return_no_fence_when_the_execution_has_ended() {
    use nnhal_driver::ReturnedFences;
    let device = copying().device().with_fences(ReturnedFences::NoneAfterTheEnd);
    let model = engine::relu(vector(2), vector(2));
    let prepared = device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default());
    let (prepared, request) = (prepared.unwrap(), request([7; 8]));
    let (signal, fence) = pending();
    std::thread::scope(|scope| {
        let launched = scope.spawn(|| launch(&*prepared, &request, &[fence]));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!launched.is_finished(), "it has ended before its fence has signalled");
        signal.signal();
        let execution = launched.join().unwrap();
        assert!(execution.sync_fence.is_none());
        assert_eq!(status(&execution), ErrorStatus::None);
    });
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), [7; 8]);
    // What goes wrong on the way is the call's own status.
    let (_signal, fence) = pending();
    let deadline = Some(Deadline::after(Duration::from_millis(10)));
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    let missed = prepared.execute_fenced(&request, &[fence], &options, None).unwrap_err();
    assert_eq!(missed.status(), ErrorStatus::MissedDeadlineTransient);
}

/// SEC-3: what waits for fences that never signal keeps its descriptors as long.
#[test]
fn conc_5_descriptors_of_what_waits_are_the_clients_and_limited() {
    use nnhal_hal::client::{Client, ClientLimits, Holding};
    let client = Client::new("test", ClientLimits { descriptors: 4, ..ClientLimits::default() });
    let options = PrepareOptions { client: client.clone(), ..PrepareOptions::default() };
    let model = engine::relu(vector(2), vector(2));
    let prepared = copying().device().prepare_model(&model, HalVersion::V1_3, options).unwrap();
    // Memory of the request, and each fence that has not signalled.
    let (signal, fence) = pending();
    let other = SyncFence::from_fd(std::os::fd::AsFd::as_fd(&fence).try_clone_to_owned().unwrap());
    let both = [fence, other.unwrap()];
    let first = launch(&*prepared, &request([1; 8]), &both);
    assert_eq!(client.held(Holding::Descriptors), 3);
    assert_eq!(
        refusal(&*prepared, &request([2; 8]), &both),
        ErrorStatus::ResourceExhaustedTransient
    );
    assert_eq!(client.held(Holding::Descriptors), 3, "what was refused is not kept");
    assert_eq!(client.held(Holding::FencedExecutions), 1);
    signal.signal();
    assert_eq!((end(&first), client.held(Holding::Descriptors)), (FenceState::Signalled, 0));
    assert_eq!(end(&launch(&*prepared, &request([2; 8]), &both)), FenceState::Signalled);
}
