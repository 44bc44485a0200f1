//! Arguments that are in files: how long a file system takes is nothing that others wait for.

mod engine;

use engine::{Scripted, relu, vector};
use nnhal_driver::EngineError;
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    DataLocation, Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Memory, OperandSpec,
    OperationType, PrepareOptions, PreparedModel, Priority, Request, RequestArgument,
    RequestMemoryPool, SubgraphBuilder,
};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn memory(file: &File) -> Memory {
    memory_of(file, 16)
}

fn memory_of(file: &File, length: usize) -> Memory {
    let fd = file.try_clone().unwrap().into();
    Memory::from_file(fd, Protection::READ_WRITE, 0, length as u64).unwrap()
}

fn argument(pool_index: u32) -> RequestArgument {
    let location = DataLocation { pool_index, offset: 4, length: 8 };
    RequestArgument { location, ..RequestArgument::default() }
}

#[test]
fn files_are_read_before_the_slot_is_taken_and_written_after_it() {
    let input = tempfile::tempfile().unwrap();
    let output = tempfile::tempfile().unwrap();
    input.write_all_at(&[1; 16], 0).unwrap();
    output.write_all_at(&[9; 16], 0).unwrap();
    let files = Arc::new(Mutex::new((input.try_clone().unwrap(), output.try_clone().unwrap())));
    let engine = Scripted::running(move |bindings, _| {
        // Here the slot is held.
        let (input, output) = &*files.lock().unwrap();
        input.write_all_at(&[2; 16], 0).unwrap();
        let region = bindings.inputs()[0].value().expect("an input");
        assert!(region.view().is_mapped(), "the engine would wait for a file");
        let bytes = region.read_to_vec()?;
        assert_eq!(bytes, [1; 8]);
        bindings.outputs()[0].deliver(&[2], &[3; 8])?;
        let mut found = [0; 16];
        output.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(found, [9; 16], "written while the slot is held");
        Ok::<(), EngineError>(())
    });
    let spec = OperandSpec::tensor_float32([2]);
    let model = relu(spec.clone(), spec);
    let prepared =
        engine.device().prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap();
    let request = Request {
        inputs: vec![argument(0)],
        outputs: vec![argument(1)],
        pools: [&input, &output].map(|file| RequestMemoryPool::Memory(memory(file))).to_vec(),
    };
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let mut found = [0; 16];
    output.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, [9, 9, 9, 9, 3, 3, 3, 3, 3, 3, 3, 3, 9, 9, 9, 9]);
}

/// Bytes of an input that takes some tenths of a second to read.
const LONG: usize = 1 << 29;

/// A model of an operation that makes one float of the first bytes of a file, and its request.
fn reading(
    device: &dyn Device,
    priority: Priority,
    file: &File,
    length: usize,
) -> (Arc<dyn PreparedModel>, Request) {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", vector(u32::try_from(length / 4).unwrap()));
    let axes = graph.constant(OperandSpec::tensor_int32([1]), &[0]);
    let keeps_axes = graph.scalar_i32(1);
    let mean = graph.operation(OperationType::Mean, [x, axes, keeps_axes], vector(1));
    graph.output(mean);
    let model = graph.into_model().unwrap();
    let options = PrepareOptions { priority, ..PrepareOptions::default() };
    let prepared = device.prepare_model(&model, HalVersion::V1_3, options).unwrap();
    let argument = |pool_index, length: usize| {
        let length = length.try_into().unwrap();
        let location = DataLocation { pool_index, offset: 0, length };
        RequestArgument { location, ..RequestArgument::default() }
    };
    let pools = [memory_of(file, length), Memory::allocate(4).unwrap()];
    let request = Request {
        inputs: vec![argument(0, length)],
        outputs: vec![argument(1, 4)],
        pools: pools.map(RequestMemoryPool::Memory).to_vec(),
    };
    (prepared, request)
}

#[test]
fn high_priority_keeps_its_deadline_while_another_model_reads_a_slow_file() {
    let file = tempfile::tempfile().unwrap();
    // Holes, each byte of which is read.
    file.set_len(LONG as u64).unwrap();
    let device = Scripted::running(|bindings, _| Ok(bindings.outputs()[0].deliver(&[1], &[0; 4])?))
        .at_once(1)
        .device();
    let (long, request_of_long) = reading(&device, Priority::Low, &file, LONG);
    let (short, request_of_short) = reading(&device, Priority::High, &file, 8);
    let read = || {
        let started = Instant::now();
        long.execute(&request_of_long, &ExecutionOptions::default()).unwrap();
        started.elapsed()
    };
    let limit = read().min(read()) / 4;
    // Other programs may keep a thread from its processor once, but not each time.
    let is_kept = (0..5).any(|_| {
        let is_read = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                read();
                is_read.store(true, Ordering::Release);
            });
            let (mut executed, mut missed) = (0, 0);
            while !is_read.load(Ordering::Acquire) {
                let deadline = Some(Deadline::after(limit));
                let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
                match short.execute(&request_of_short, &options) {
                    Ok(_) => executed += 1,
                    Err(failed) => {
                        let status = failed.error.status();
                        assert_eq!(status, ErrorStatus::MissedDeadlineTransient);
                        missed += 1;
                    }
                }
                std::thread::sleep(limit / 16);
            }
            executed > 8 && missed == 0
        })
    });
    assert!(is_kept, "a deadline of {limit:?} was missed");
}

#[test]
fn a_file_is_read_until_the_deadline() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(LONG as u64).unwrap();
    let device = Scripted::running(|_, _| unreachable!("it is too late")).device();
    let (long, request) = reading(&device, Priority::Medium, &file, LONG);
    let limit = Duration::from_millis(5);
    let took = (0..5).map(|_| {
        let started = Instant::now();
        let deadline = Some(Deadline::after(limit));
        let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
        let failed = long.execute(&request, &options).unwrap_err();
        assert_eq!(failed.error.status(), ErrorStatus::MissedDeadlineTransient);
        started.elapsed()
    });
    let took = took.min().expect("five times");
    assert!(took < limit + Duration::from_millis(50), "{took:?}");
}
