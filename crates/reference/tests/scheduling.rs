//! Priorities, and deadlines inside long operations (contract: section 16, CONC-4).

mod support;

use nnhal_hal::{
    Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Model, OperandSpec, OperationType,
    PrepareOptions, PreparedModel, Priority, Request, SubgraphBuilder,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::request;

/// This many TANHs in a row on this many floats.
fn chain(operations: usize, length: u32) -> Model {
    let mut graph = SubgraphBuilder::new();
    let vector = || OperandSpec::tensor_float32([1, length]);
    let mut x = graph.input("x", vector());
    for _ in 0..operations {
        x = graph.operation(OperationType::Tanh, [x], vector());
    }
    graph.output(x);
    graph.into_model().unwrap()
}

fn prepare(device: &dyn Device, model: &Model, priority: Priority) -> Arc<dyn PreparedModel> {
    let options = PrepareOptions { priority, ..PrepareOptions::default() };
    device.prepare_model(model, HalVersion::V1_3, options).unwrap()
}

fn median_latency(prepared: &dyn PreparedModel, request: &Request) -> Duration {
    let mut latencies: Vec<Duration> = (0..21)
        .map(|_| {
            let begin = Instant::now();
            prepared.execute(request, &ExecutionOptions::default()).unwrap();
            begin.elapsed()
        })
        .collect();
    latencies.sort();
    latencies[latencies.len() / 2]
}

#[test]
fn qos_1_a_high_priority_hardly_notices_that_low_ones_saturate_the_machine() {
    let device = nnhal_reference::device();
    let urgent = prepare(&*device, &chain(10, 4_000), Priority::High);
    let urgent_request = request(&[(&[], &vec![0; 16_000])], &[16_000]);
    let alone = median_latency(&*urgent, &urgent_request);

    let patient = prepare(&*device, &chain(400, 4_000), Priority::Low);
    let patient_request = || request(&[(&[], &vec![0; 16_000])], &[16_000]);
    let (over, finished) = (AtomicBool::new(false), AtomicU32::new(0));
    let (low_alone, crowded) = std::thread::scope(|scope| {
        let begin = Instant::now();
        patient.execute(&patient_request(), &ExecutionOptions::default()).unwrap();
        let low_alone = begin.elapsed();
        for _ in 0..8 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    patient.execute(&patient_request(), &ExecutionOptions::default()).unwrap();
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(low_alone);
        let crowded = median_latency(&*urgent, &urgent_request);
        over.store(true, Ordering::Relaxed);
        (low_alone, crowded)
    });
    // In the order of arrival it would wait for several of the long executions, each 40 times as
    // long as its own. It waits for one of their operations instead, which are as its own. Half of
    // a long one is room enough for a noisy machine.
    assert!(crowded < low_alone / 2, "{alone:?} alone, {crowded:?} beside others of {low_alone:?}");
    assert!(finished.load(Ordering::Relaxed) > 0, "QOS-10: the others come to their end");
}

#[test]
fn qos_3_a_deadline_ends_a_long_operation_from_inside() {
    let image = || OperandSpec::tensor_float32([1, 128, 128, 128]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", image());
    let filter = graph.input("filter", OperandSpec::tensor_float32([128, 15, 15, 128]));
    let bias = graph.input("bias", OperandSpec::tensor_float32([128]));
    let same = graph.scalar_i32(1);
    let one = graph.scalar_i32(1);
    let none = graph.scalar_i32(0);
    let y =
        graph.operation(OperationType::Conv2d, [x, filter, bias, same, one, one, none], image());
    graph.output(y);
    let device = nnhal_reference::device();
    let prepared = prepare(&*device, &graph.into_model().unwrap(), Priority::Medium);
    let (image_size, filter_size) = (128 * 128 * 128 * 4, 128 * 15 * 15 * 128 * 4);
    let request = request(
        &[(&[], &vec![0; image_size]), (&[], &vec![0; filter_size]), (&[], &[0; 512])],
        &[image_size],
    );
    let begin = Instant::now();
    let deadline = Some(Deadline::after(Duration::from_millis(200)));
    let options = ExecutionOptions { deadline, ..ExecutionOptions::default() };
    let failed = prepared.execute(&request, &options).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::MissedDeadlineTransient);
    // To its end it would take a minute: 60 thousand million products.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
