//! What clients that do many things at once, or have bad manners, may not do to the service
//! (contract: section 17).

mod support;

use nnhal_hal::memory::Protection;
use nnhal_hal::{
    HalVersion, Memory, OperandSpec, OperationType, PrepareOptions, RequestArgument,
    RequestMemoryPool, SubgraphBuilder,
};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::rounds::{execute, one_round, sum_device, sum_request};
use support::{f32s, vector};

/// Pools that another thread changes all the time give wrong values at worst.
#[test]
fn sec_1_pools_that_change_during_an_execution_do_no_harm() {
    let device = nnhal_reference::device();
    // Values that decide shapes: what is sliced, and where.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([64]));
    let begin = graph.input("begin", OperandSpec::tensor_int32([1]));
    let size = graph.input("size", OperandSpec::tensor_int32([1]));
    let y = graph.operation(OperationType::Slice, [x, begin, size], vector(0));
    graph.output(y);
    let model = graph.into_model().unwrap();
    let prepared =
        device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap();
    let mut request = sum_request();
    let memory = Memory::from_bytes(&[0; 1024]).unwrap();
    request.pools = vec![RequestMemoryPool::Memory(memory.clone())];
    let at = |offset, length| {
        RequestArgument::at(nnhal_hal::DataLocation { pool_index: 0, offset, length })
    };
    request.inputs = vec![at(0, 256), at(256, 4), at(260, 4)];
    request.outputs = vec![at(512, 256)];
    let over = AtomicBool::new(false);
    let (mut good, mut bad) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let view = memory.view().unwrap();
            let wild = [0, 1, 64, -1, i32::MIN, i32::MAX, 63, 32];
            let mut turn = 0;
            while !over.load(Ordering::Relaxed) {
                view.write(256, &i32::to_le_bytes(wild[turn % 8])).unwrap();
                view.write(260, &i32::to_le_bytes(wild[(turn / 8) % 8])).unwrap();
                turn += 1;
            }
        });
        let end = Instant::now() + Duration::from_secs(1);
        while Instant::now() < end {
            match execute(&*prepared, &request) {
                Ok(execution) => {
                    assert!(execution.dimensions(0).unwrap()[0] <= 64);
                    good += 1;
                }
                Err(_) => bad += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(good > 0 && bad > 0, "{good} good, {bad} bad: the other thread was not heard");
}

/// A file that is cut short after its size was checked must not kill the process.
#[test]
fn mem_5_a_pool_that_shrinks_between_executions_is_an_error() {
    let (device, model) = sum_device();
    let prepared =
        device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(8192).unwrap();
    let fd = OwnedFd::from(file.try_clone().unwrap());
    let memory = Memory::from_file(fd, Protection::READ_WRITE, 0, 8192).unwrap();
    let mut request = sum_request();
    request.pools = vec![RequestMemoryPool::Memory(memory)];
    for (argument, offset) in request.inputs.iter_mut().zip([0, 4096]) {
        argument.location = nnhal_hal::DataLocation { pool_index: 0, offset, length: 16 };
    }
    request.outputs[0].location =
        nnhal_hal::DataLocation { pool_index: 0, offset: 8000, length: 16 };
    execute(&*prepared, &request).unwrap();
    for length in [8001, 4100, 100, 0] {
        file.set_len(length).unwrap();
        let failed = execute(&*prepared, &request).unwrap_err();
        assert!(failed.output_shapes.is_empty(), "{length}");
    }
    file.set_len(8192).unwrap();
    execute(&*prepared, &request).unwrap();
}

/// Ways in and out at once, on one device. Under a thread sanitizer see `.ci/thread_sanitizer`;
/// `NNHAL_STRESS_SECONDS` makes it longer.
#[test]
fn conc_1_and_2_all_paths_at_once_on_many_threads() {
    let (device, model) = sum_device();
    let shared = device.prepare_model(&model, HalVersion::V1_3, PrepareOptions::default()).unwrap();
    let seconds = std::env::var("NNHAL_STRESS_SECONDS").ok().and_then(|it| it.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(1));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while Instant::now() < end {
                    one_round(&*device, &model);
                }
            });
        }
        for _ in 0..4 {
            scope.spawn(|| {
                while Instant::now() < end {
                    let request = sum_request();
                    execute(&*shared, &request).unwrap();
                    let output = nnhal_hal::RequestBuilder::read_output(&request, 0).unwrap();
                    assert_eq!(output, f32s(&[3.0; 4]), "CONC-2: no other execution's result");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while Instant::now() < end {
                    let burst = shared.configure_burst().unwrap();
                    let request = sum_request();
                    for _ in 0..10 {
                        burst.execute(&request, false).unwrap();
                        let output = nnhal_hal::RequestBuilder::read_output(&request, 0).unwrap();
                        assert_eq!(output, f32s(&[3.0; 4]));
                    }
                }
            });
        }
    });
}
