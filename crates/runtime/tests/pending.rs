//! Asynchronous executions in numbers: what they take of the process, and how many may be. Some tests
//! look at the whole process, so all run one after the other.

use nnhal_hal::background::Limits;
use nnhal_hal::fence::FenceSignal;
use nnhal_hal::{FenceState, OperationType, SyncFence};
use nnhal_runtime::{
    Compilation, CompilationBuilder, Devices, Event, Execution, ModelBuilder, OperandDescription,
    OutputBuffer, ReadBytes, Result, ResultCode,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const LOW: i32 = 90;
const MEDIUM: i32 = 100;
const HIGH: i32 = 110;

const LONG: Duration = Duration::from_secs(60);

fn devices(limits: Limits) -> Devices {
    Devices::with_limits([nnhal_reference::device()], limits)
}

fn limits(threads: usize, waiting: usize) -> Limits {
    Limits { threads, waiting, idle: Duration::from_millis(50) }
}

/// y = relu(x) of two numbers.
fn compile(devices: &Devices, priority: i32) -> Compilation {
    let mut builder = ModelBuilder::new(devices);
    let pair = OperandDescription::tensor_float32([2]);
    let [x, y] = [(); 2].map(|()| builder.add_operand(&pair).unwrap());
    let relu = OperationType::Relu.code().cast_signed();
    builder.add_operation(relu, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let model = builder.finish().unwrap();
    let mut builder = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
    builder.set_priority(priority).unwrap();
    builder.finish().unwrap()
}

fn numbers() -> Arc<Vec<u8>> {
    Arc::new([-1.0, 2.0].map(f32::to_le_bytes).concat())
}

fn execution(compilation: &Compilation, input: Arc<dyn ReadBytes>) -> (Execution, OutputBuffer) {
    let execution = Execution::new(compilation);
    execution.set_input(0, None, Some(input)).unwrap();
    let output = OutputBuffer::new(8);
    execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
    (execution, output)
}

/// The same in memory, so that the device itself waits for fences.
fn execution_in_memory(compilation: &Compilation) -> (Execution, nnhal_hal::Memory) {
    let execution = Execution::new(compilation);
    let memory = nnhal_hal::Memory::from_bytes(&[numbers().as_slice(), &[7; 8]].concat()).unwrap();
    let shared = nnhal_runtime::Memory::from_shared(memory.clone());
    execution.set_input_from_memory(0, None, &shared, 0, 8).unwrap();
    execution.set_output_from_memory(0, None, &shared, 8, 8).unwrap();
    (execution, memory)
}

/// Something to wait for.
fn dependency() -> (FenceSignal, Event) {
    let (signal, fence) = SyncFence::pair().unwrap();
    let fd = fence.as_fd().try_clone_to_owned().unwrap();
    (signal, Event::from_sync_fence_fd(fd).unwrap())
}

fn code<T: std::fmt::Debug>(result: Result<T>) -> ResultCode {
    result.unwrap_err().code()
}

/// Threads of the library, and those without a name, which have the test's; not the harness's, which begins and ends
/// threads of other tests meanwhile.
fn threads() -> usize {
    let own = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("nnhal-") || *name == own).count()
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

/// An input that keeps whoever reads it, until it is let go.
struct Held {
    read: Sender<()>,
    go: Mutex<Receiver<()>>,
}

impl ReadBytes for Held {
    fn size(&self) -> usize {
        8
    }

    fn lend(&self, read: &mut dyn FnMut(&[u8])) {
        let _ = self.read.send(());
        let _ = self.go.lock().unwrap().recv_timeout(LONG);
        read(&numbers());
    }
}

/// An execution that keeps its thread, has begun, and what lets it go.
fn blocking(compilation: &Compilation) -> (Event, Sender<()>) {
    let ((read, has_read), (go, gone)) = (channel(), channel());
    let input = Arc::new(Held { read, go: Mutex::new(gone) });
    let event = execution(compilation, input).0.start_compute().unwrap();
    has_read.recv_timeout(LONG).unwrap();
    (event, go)
}

#[test]
fn sec_3_pending_executions_hold_no_threads_and_all_end() {
    let _alone = alone();
    let room = raise_descriptors().saturating_sub(500);
    // Each has the producing end of its fence, and every tenth event keeps the other one.
    let count = (room / 11 * 10).min(100_000);
    println!("{count} executions, as descriptors allow");
    let devices = devices(limits(64, count));
    let compilation = compile(&devices, MEDIUM);
    let (signal, dependency) = dependency();
    let before = threads();
    let mut kept = Vec::new();
    let mut outputs = Vec::new();
    let input = numbers();
    let begun = Instant::now();
    for index in 0..count {
        // The execution is let go of while it waits.
        let (execution, output) = execution(&compilation, input.clone());
        let wait_for = std::slice::from_ref(&dependency);
        let event = execution.start_compute_with_dependencies(wait_for, 0).unwrap();
        outputs.push(output);
        if index % 10 == 0 {
            kept.push(event);
        }
    }
    println!("launched in {:?}", begun.elapsed());
    let waiting = threads().saturating_sub(before);
    assert!(waiting <= 2, "{waiting} threads");
    let begun = Instant::now();
    signal.signal();
    for event in kept {
        event.wait().unwrap();
    }
    while outputs.iter().any(|output| output.to_f32() != [0.0, 2.0]) {
        assert!(begun.elapsed() < LONG, "some do not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("ended in {:?}", begun.elapsed());
    let working = threads().saturating_sub(before);
    assert!(working <= 65, "{working} threads");
}

#[test]
fn executions_without_dependencies_share_threads_too() {
    let _alone = alone();
    let devices = devices(limits(2, 2000));
    let compilation = compile(&devices, MEDIUM);
    let before = threads();
    let (first, go) = blocking(&compilation);
    let (second, go_on) = blocking(&compilation);
    let all: Vec<_> =
        (0..2000).map(|_| execution(&compilation, numbers()).0.start_compute().unwrap()).collect();
    assert!(threads() <= before + 2, "{}", threads());
    for go in [go, go_on] {
        go.send(()).unwrap();
    }
    for event in all.into_iter().chain([first, second]) {
        event.wait().unwrap();
    }
}

#[test]
fn a_chain_longer_than_there_are_threads_ends() {
    let _alone = alone();
    let devices = devices(limits(2, 1000));
    let compilation = compile(&devices, MEDIUM);
    let (signal, mut last) = dependency();
    let mut all = Vec::new();
    for index in 0..300 {
        // Some are run by the device, which has threads of its own.
        let in_memory = index % 3 == 0;
        let execution = if in_memory {
            execution_in_memory(&compilation).0
        } else {
            execution(&compilation, numbers()).0
        };
        last = execution.start_compute_with_dependencies(&[last], 0).unwrap();
        all.push((execution, last.clone()));
    }
    std::thread::sleep(Duration::from_millis(20));
    assert!(all.iter().all(|(execution, _)| execution.is_computing()));
    signal.signal();
    last.wait().unwrap();
    for (_, event) in &all {
        event.wait().unwrap();
        let fence = SyncFence::from_fd(event.sync_fence_fd().unwrap()).unwrap();
        assert_eq!(fence.state().unwrap(), FenceState::Signalled);
    }
}

#[test]
fn a_chain_ends_with_the_failure_of_its_first() {
    let _alone = alone();
    let devices = devices(limits(1, 1000));
    let compilation = compile(&devices, MEDIUM);
    let (signal, mut last) = dependency();
    for _ in 0..50 {
        let (execution, _) = execution(&compilation, numbers());
        last = execution.start_compute_with_dependencies(&[last], 0).unwrap();
    }
    drop(signal);
    assert_eq!(code(last.wait()), ResultCode::OpFailed);
    // One that has failed already fails the next at once.
    let (execution, _) = execution(&compilation, numbers());
    let refused = execution.start_compute_with_dependencies(&[last], 0);
    assert_eq!(code(refused), ResultCode::OpFailed);
    assert!(!execution.is_computing());
}

#[test]
fn more_than_the_limit_are_refused_and_given_up() {
    let _alone = alone();
    let devices = devices(limits(1, 2));
    let compilation = compile(&devices, MEDIUM);
    let (signal, dependency) = dependency();
    let launch = |execution: &Execution| {
        execution.start_compute_with_dependencies(std::slice::from_ref(&dependency), 0)
    };
    let all: Vec<_> =
        (0..2).map(|_| launch(&execution(&compilation, numbers()).0).unwrap()).collect();
    for behind in [true, false] {
        let (execution, output) = execution(&compilation, numbers());
        let refused = if behind { launch(&execution) } else { execution.start_compute() };
        assert_eq!(code(refused), ResultCode::ResourceExhaustedTransient);
        // It has ended, and failed.
        assert!(!execution.is_computing());
        assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState);
        assert_eq!(code(execution.compute()), ResultCode::BadState);
        assert_eq!(output.to_f32(), [0.0, 0.0]);
    }
    // Executions of another priority are counted separately.
    let high = compile(&devices, HIGH);
    execution(&high, numbers()).0.start_compute().unwrap().wait().unwrap();
    signal.signal();
    all.iter().for_each(|event| event.wait().unwrap());
    execution(&compilation, numbers()).0.start_compute().unwrap().wait().unwrap();
}

#[test]
fn qos_1_a_crowd_of_low_priority_does_not_keep_a_high_one_waiting() {
    let _alone = alone();
    let devices = devices(limits(1, 100));
    let low = compile(&devices, LOW);
    let (first, go) = blocking(&low);
    let crowd: Vec<_> =
        (0..20).map(|_| execution(&low, numbers()).0.start_compute().unwrap()).collect();
    let (high, output) = execution(&compile(&devices, HIGH), numbers());
    high.start_compute().unwrap().wait().unwrap();
    assert_eq!(output.to_f32(), [0.0, 2.0]);
    let (high, _) = execution(&compile(&devices, HIGH), numbers());
    high.start_compute_with_dependencies(&[], 0).unwrap().wait().unwrap();
    go.send(()).unwrap();
    crowd.into_iter().chain([first]).for_each(|event| event.wait().unwrap());
}

#[test]
fn qos_5_what_waits_for_fences_or_a_thread_ends_in_time() {
    let _alone = alone();
    let devices = devices(limits(1, 100));
    let compilation = compile(&devices, MEDIUM);
    let (first, go) = blocking(&compilation);
    let (_signal, unsignalled) = dependency();
    let fifty = Duration::from_millis(50);
    let timed = |after: bool| {
        let (execution, _) = execution(&compilation, numbers());
        if !after {
            execution.set_timeout(50_000_000).unwrap();
        }
        execution
    };
    let begun = Instant::now();
    let all = [
        timed(false).start_compute(),
        timed(false).start_compute_with_dependencies(&[], 0),
        timed(false).start_compute_with_dependencies(&[unsignalled], 0),
        timed(true).start_compute_with_dependencies(&[], 50_000_000),
    ];
    for event in all {
        assert_eq!(code(event.unwrap().wait()), ResultCode::MissedDeadlineTransient);
    }
    assert!(begun.elapsed() >= fifty && begun.elapsed() < LONG);
    go.send(()).unwrap();
    first.wait().unwrap();
}
