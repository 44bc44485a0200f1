//! Nothing piles up, however often models are prepared and run by the interfaces. Alone in its
//! process, so that no one else opens files meanwhile.

mod common;

use common::add_constant;
use nnhal_hal::{
    BufferDescription, BufferRole, Device, ExecutionOptions, HalVersion, PrepareOptions, SyncFence,
};
use nnhal_hidl::client::{Options, through};
use std::time::{Duration, Instant};

fn entries(folder: &str) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Once by every path that a version has.
fn cycle(device: &dyn Device) {
    let sample = add_constant();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&sample.model, HalVersion::LATEST, options).unwrap();
    let request = sample.request();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    sample.assert_result(&request);
    let mut wrong = sample.request();
    wrong.inputs.clear();
    prepared.execute(&wrong, &ExecutionOptions::default()).unwrap_err();
    if device.version() >= HalVersion::V1_2 {
        prepared.configure_burst().unwrap().execute(&request, false).unwrap();
    }
    if device.version() >= HalVersion::V1_3 {
        let (signal, fence) = SyncFence::pair().unwrap();
        let options = ExecutionOptions::default();
        let launched = prepared.execute_fenced(&request, &[fence], &options, None).unwrap();
        signal.signal();
        if let Some(fence) = &launched.sync_fence {
            fence.wait(Some(common::LONG)).unwrap();
        }
        let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
        let description = BufferDescription {
            prepared_models: vec![prepared],
            output_roles: vec![role],
            ..BufferDescription::default()
        };
        device.allocate(&description).unwrap();
    }
}

#[test]
fn sec_6_descriptors_and_threads_do_not_grow() {
    let mut devices = Vec::new();
    for version in [HalVersion::V1_0, HalVersion::V1_2, HalVersion::V1_3] {
        for asynchronous in [false, true] {
            let options = Options { asynchronous, ..Options::default() };
            devices.push(through(nnhal_reference::device(), version, options).unwrap());
        }
    }
    devices.iter().for_each(|device| cycle(&**device));
    let descriptors = entries("/proc/self/fd");
    for _ in 0..50 {
        devices.iter().for_each(|device| cycle(&**device));
    }
    // Threads of bursts and tasks let go a moment after their clients have all they want.
    let begin = Instant::now();
    while entries("/proc/self/fd") > descriptors {
        assert!(begin.elapsed() < common::LONG, "{} descriptors", entries("/proc/self/fd"));
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(devices);
    while entries("/proc/self/task") > 8 {
        assert!(begin.elapsed() < common::LONG, "{} threads", entries("/proc/self/task"));
        std::thread::sleep(Duration::from_millis(5));
    }
}
