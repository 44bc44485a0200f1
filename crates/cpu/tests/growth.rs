//! Preparing takes a time and memory that grow with a model as the model does.

#[path = "support/long.rs"]
mod long;

use long::{KINDS, Kind};
use nnhal_cpu::Settings;
use nnhal_hal::{Device, ExecutionOptions, HalVersion, PrepareOptions};
use rustix::time::{ClockId, clock_gettime};

/// Processor time of this thread, in seconds: others may keep the machine busy.
fn now() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Seconds of preparing a model of this many operations and executing it once.
fn seconds(device: &dyn Device, kind: &Kind, number: usize) -> f64 {
    let model = (kind.model)(number);
    let request = long::request(&model);
    let started = now();
    let prepared = device
        .prepare_model(&model, HalVersion::LATEST, PrepareOptions::default())
        .unwrap_or_else(|error| panic!("{} of {number}: {error}", kind.name));
    let executed = prepared.execute(&request, &ExecutionOptions::default());
    executed.unwrap_or_else(|failed| panic!("{} of {number}: {}", kind.name, failed.error));
    now() - started
}

#[test]
fn ten_times_as_many_operations_take_about_ten_times_as_long() {
    const FEW: usize = 1_500;
    for device in [nnhal_cpu::device(Settings::default()), nnhal_reference::device()] {
        for kind in KINDS {
            // What is quadratic takes a hundred times as long. Caches make for some; and what lasts
            // no longer than this is of no use to anybody who would keep us busy.
            let is_linear = || {
                let few = seconds(&*device, kind, FEW);
                let many = seconds(&*device, kind, 10 * FEW);
                (many < 40.0 * few || many < 0.3, few, many)
            };
            let attempts: Vec<_> = (0..3).map(|_| is_linear()).take_while(|it| !it.0).collect();
            assert!(attempts.len() < 3, "{} on {}: {attempts:?}", kind.name, device.name());
        }
    }
}
