//! Fenced executions in numbers: what they take of the process, and how many may be. Each test looks
//! at the whole process, so they run one after the other.

mod engine;

use engine::{Scripted, relu, vector};
use nnhal_hal::fence::{FenceSignal, FenceState};
use nnhal_hal::{
    Cancellation, Client, ClientLimits, Deadline, Device, ErrorStatus, ExecutionOptions,
    FencedExecution, HalVersion, PrepareOptions, PreparedModel, Priority, Request, RequestBuilder,
    SyncFence,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn request() -> Request {
    let mut request = RequestBuilder::new();
    request.input(&[0; 8]).output(8);
    request.build().unwrap()
}

fn status(execution: &FencedExecution) -> ErrorStatus {
    execution.info.get().map_or_else(|error| error.status(), |_| ErrorStatus::None)
}

fn end(execution: &FencedExecution) -> FenceState {
    let fence = execution.sync_fence.as_ref().expect("a fence");
    fence.wait(Some(Duration::from_secs(60))).unwrap()
}

/// Threads that wait for fences or run fenced executions.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("nnhal-fence")).count()
}

fn wait_for_no_threads() {
    let begun = Instant::now();
    while threads() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(30), "threads stay");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// As many descriptors as may be had.
fn raise_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = [Some(1 << 20), limit.maximum].into_iter().find(|most| {
        setrlimit(Resource::Nofile, Rlimit { current: *most, maximum: limit.maximum.max(*most) })
            .is_ok()
    });
    usize::try_from(wanted.flatten().or(limit.current).unwrap_or(1024)).unwrap()
}

/// What a program does until it is let go.
struct Gate {
    open: AtomicBool,
    running: AtomicUsize,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self { open: AtomicBool::new(false), running: AtomicUsize::new(0) })
    }

    fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    fn engine(self: &Arc<Self>) -> Scripted {
        let gate = Arc::clone(self);
        Scripted::running(move |bindings, context| {
            gate.running.fetch_add(1, Ordering::SeqCst);
            while !gate.open.load(Ordering::SeqCst) {
                context.budget.check()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
        })
    }

    fn wait_until_running(&self, count: usize) {
        let begun = Instant::now();
        while self.running.load(Ordering::SeqCst) < count {
            assert!(begun.elapsed() < Duration::from_secs(30));
            std::thread::yield_now();
        }
    }
}

fn echo() -> Scripted {
    Scripted::running(|bindings, _| Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?))
}

fn prepare(device: &dyn Device, priority: Priority) -> Arc<dyn PreparedModel> {
    let options = PrepareOptions { priority, ..PrepareOptions::default() };
    device.prepare_model(&relu(vector(2), vector(2)), HalVersion::V1_3, options).unwrap()
}

fn launch(prepared: &dyn PreparedModel, wait_for: &[SyncFence]) -> FencedExecution {
    let options = ExecutionOptions::default();
    prepared.execute_fenced(&request(), wait_for, &options, None).unwrap()
}

#[test]
fn sec_3_pending_executions_take_one_thread_for_all_of_them() {
    let _alone = alone();
    wait_for_no_threads();
    let descriptors_before = descriptors();
    let room = raise_descriptors().saturating_sub(descriptors_before + 100);
    // Each has the two ends of the fence that it gives.
    let count = (room / 2).min(100_000);
    println!("{count} executions, as descriptors allow");
    let prepared = echo().prepared(vector(2), vector(2));
    let request = request();
    let (signal, fence) = SyncFence::pair().unwrap();
    let late = Some(Deadline::after(Duration::from_secs(3600)));
    let begun = Instant::now();
    let executions: Vec<_> = (0..count)
        .map(|index| {
            let deadline = if index % 3 == 0 { late } else { None };
            let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
            let wait_for = std::slice::from_ref(&fence);
            prepared.execute_fenced(&request, wait_for, &options, None).unwrap()
        })
        .collect();
    assert_eq!(threads(), 1, "the one that waits");
    assert!(descriptors() <= descriptors_before + 2 * count + 10);
    signal.signal();
    for execution in &executions {
        assert_eq!((end(execution), status(execution)), (FenceState::Signalled, ErrorStatus::None));
    }
    println!("{:?} from the first launch to the last end", begun.elapsed());
    let processors = std::thread::available_parallelism().unwrap().get();
    assert!(threads() <= 1 + processors);
    drop((executions, fence));
    wait_for_no_threads();
    // The request's, and those of the device, which it keeps for the next time.
    assert!(descriptors() <= descriptors_before + 10);
}

#[test]
fn sec_3_many_fences_are_waited_for_by_one_thread() {
    let _alone = alone();
    let room = raise_descriptors().saturating_sub(descriptors() + 100);
    wait_for_no_threads();
    // Both ends of both fences.
    let count = (room / 4).min(20_000);
    let (request, options) = (request(), ExecutionOptions::default());
    let prepared = echo().prepared(vector(2), vector(2));
    let (signals, executions): (Vec<FenceSignal>, Vec<_>) = (0..count)
        .map(|_| {
            let (signal, fence) = SyncFence::pair().unwrap();
            (signal, prepared.execute_fenced(&request, &[fence], &options, None).unwrap())
        })
        .unzip();
    assert_eq!(threads(), 1);
    for (index, signal) in signals.into_iter().enumerate() {
        match index % 3 {
            0 => signal.fail(nnhal_hal::Error::failure("no")),
            _ => signal.signal(),
        }
    }
    for (index, execution) in executions.iter().enumerate() {
        let expected = if index % 3 == 0 { FenceState::Failed } else { FenceState::Signalled };
        assert_eq!(end(execution), expected, "{index}");
    }
}

#[test]
fn a_chain_longer_than_there_are_threads_ends() {
    let _alone = alone();
    let device = echo().device();
    let prepared = [Priority::Low, Priority::High].map(|priority| prepare(&device, priority));
    let (signal, mut last) = SyncFence::pair().unwrap();
    let executions: Vec<_> = (0..500)
        .map(|index| {
            let execution = launch(&*prepared[index % 2], &[last.clone()]);
            last = execution.sync_fence.clone().unwrap();
            execution
        })
        .collect();
    signal.signal();
    assert!(executions.iter().all(|execution| end(execution) == FenceState::Signalled));
}

/// Resident memory, in KiB.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "a measurement: -- --ignored --nocapture"]
fn measure_pending_executions() {
    let _alone = alone();
    let room = raise_descriptors().saturating_sub(descriptors() + 100);
    // Without the fences that they give, each has the producing end of it.
    let count = room.min(100_000);
    let (request, options) = (request(), ExecutionOptions::default());
    let prepared = echo().prepared(vector(2), vector(2));
    let (signal, fence) = SyncFence::pair().unwrap();
    let (before, begun) = (resident(), Instant::now());
    let mut last = None;
    let infos: Vec<_> = (0..count)
        .map(|_| {
            let wait_for = std::slice::from_ref(&fence);
            let execution = prepared.execute_fenced(&request, wait_for, &options, None).unwrap();
            last = execution.sync_fence;
            execution.info
        })
        .collect();
    let launched = begun.elapsed();
    println!(
        "{count} pending: {launched:?} to launch, {} KiB, {} threads",
        resident() - before,
        threads()
    );
    let begun = Instant::now();
    signal.signal();
    while infos.iter().any(|info| info.get().is_err()) {
        assert!(begun.elapsed() < Duration::from_secs(600));
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{:?} to drain, {} threads at the end", begun.elapsed(), threads());
}

#[test]
fn sec_3_more_than_the_limit_are_refused_until_some_have_ended() {
    let _alone = alone();
    let device = echo().device();
    let limits = ClientLimits { fenced_executions: 3, ..ClientLimits::default() };
    let client = Client::new("test", limits);
    let options = PrepareOptions { client, ..PrepareOptions::default() };
    let model = relu(vector(2), vector(2));
    let prepared = device.prepare_model(&model, HalVersion::V1_3, options).unwrap();
    let (signal, fence) = SyncFence::pair().unwrap();
    let all: Vec<_> = (0..3).map(|_| launch(&*prepared, std::slice::from_ref(&fence))).collect();
    let options = ExecutionOptions::default();
    for wait_for in [vec![fence], vec![]] {
        let refused = prepared.execute_fenced(&request(), &wait_for, &options, None).unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
        assert!(refused.to_string().contains("client test has 3 fenced executions"), "{refused}");
    }
    signal.signal();
    assert!(all.iter().all(|execution| end(execution) == FenceState::Signalled));
    // A place is free before the fence says so.
    let again: Vec<_> = (0..3).map(|_| launch(&*prepared, &[])).collect();
    assert!(again.iter().all(|execution| end(execution) == FenceState::Signalled));
}

#[test]
fn qos_1_a_crowd_of_low_priority_does_not_keep_a_high_one_waiting() {
    let _alone = alone();
    let gate = Gate::new();
    let device = gate.engine().device();
    let low = prepare(&device, Priority::Low);
    let crowd: Vec<_> = (0..50).map(|_| launch(&*low, &[])).collect();
    gate.wait_until_running(1);
    let high = prepare(&device, Priority::High);
    let before = gate.running.load(Ordering::SeqCst);
    let execution = launch(&*high, &[]);
    // It begins, although every other one goes on.
    gate.wait_until_running(before + 1);
    assert!(
        crowd
            .iter()
            .all(|it| it.sync_fence.as_ref().unwrap().state().unwrap() == FenceState::Unsignalled)
    );
    gate.open();
    assert_eq!(end(&execution), FenceState::Signalled);
    assert!(crowd.iter().all(|execution| end(execution) == FenceState::Signalled));
}

#[test]
fn qos_5_and_conc_5_what_waits_for_a_thread_ends_in_time_and_can_be_cancelled() {
    let _alone = alone();
    let gate = Gate::new();
    let device = gate.engine().device();
    let prepared = prepare(&device, Priority::Medium);
    let crowd: Vec<_> = (0..20).map(|_| launch(&*prepared, &[])).collect();
    gate.wait_until_running(1);
    let (signal, fence) = SyncFence::pair().unwrap();
    let deadline = Some(Deadline::after(Duration::from_millis(100)));
    let late = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    let cancellation = Cancellation::new();
    let cancelled = ExecutionOptions {
        cancellation: Some(cancellation.clone()),
        ..ExecutionOptions::default()
    };
    let none = ExecutionOptions::default();
    let soon = Some(Duration::from_millis(100));
    let launch = |options: &ExecutionOptions, wait_for: &[SyncFence], after| {
        prepared.execute_fenced(&request(), wait_for, options, after).unwrap()
    };
    let begun = Instant::now();
    let timed = [
        launch(&late, &[], None),
        launch(&none, &[], soon),
        launch(&late, std::slice::from_ref(&fence), None),
        launch(&none, std::slice::from_ref(&fence), soon),
    ];
    let stopped = [launch(&cancelled, &[], None), launch(&cancelled, &[fence], None)];
    signal.signal();
    for execution in &timed {
        assert_eq!(end(execution), FenceState::Failed);
        assert_eq!(status(execution), ErrorStatus::MissedDeadlineTransient);
    }
    assert!(begun.elapsed() >= Duration::from_millis(100));
    cancellation.cancel();
    for execution in &stopped {
        assert_eq!(end(execution), FenceState::Failed);
        assert_eq!(status(execution), ErrorStatus::GeneralFailure);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(
        crowd
            .iter()
            .all(|it| it.sync_fence.as_ref().unwrap().state().unwrap() == FenceState::Unsignalled)
    );
    gate.open();
    assert!(crowd.iter().all(|execution| end(execution) == FenceState::Signalled));
}
