//! Many models and executions, one after the other, leave nothing behind (contract: section 17). Alone in its
//! process, because it counts what the process holds.

mod support;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use support::rounds::{one_round, sum_device};

/// The number of rounds that the contract asks for.
const ROUNDS: usize = 10_000;

/// What the process holds: descriptors, threads, KiB of resident memory.
fn holds() -> (usize, usize, usize) {
    let count = |folder| fs::read_dir(folder).unwrap().count();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident = resident.trim().trim_end_matches(" kB").parse().unwrap();
    (count("/proc/self/fd"), count("/proc/self/task"), resident)
}

/// contract: SEC-6, CONC-3
#[test]
fn ten_thousand_rounds_leave_nothing_behind() {
    let (device, model) = sum_device();
    // Caches of the allocator and of the system's threads fill up first.
    for _ in 0..ROUNDS / 10 {
        one_round(&*device, &model);
    }
    // Threads that run fenced executions end when they have been idle for half a second.
    thread::sleep(Duration::from_secs(2));
    let (descriptors, threads, resident) = holds();
    for _ in 0..ROUNDS {
        one_round(&*device, &model);
    }
    // The thread of the last fenced execution may not be quite gone when its fence signals.
    let end = Instant::now() + Duration::from_secs(10);
    while (holds().0, holds().1) != (descriptors, threads) && Instant::now() < end {
        thread::sleep(Duration::from_millis(10));
    }
    let after = holds();
    assert_eq!((after.0, after.1), (descriptors, threads), "descriptors and threads");
    // A leak of a hundred bytes a round would be a mebibyte.
    assert!(after.2 < resident + 1024, "{resident} KiB before, {} KiB after", after.2);
}
