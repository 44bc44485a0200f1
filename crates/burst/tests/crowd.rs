//! Bursts in numbers. A process of its own, because the limit is the process's.

mod support;

use nnhal_hal::{Burst, ClientLimits, ErrorStatus};
use std::time::{Duration, Instant};
use support::{Mock, double, memory, output, request};

fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("nnhal-burst")).count()
}

#[test]
fn sec_3_more_bursts_than_the_limit_are_refused_and_threads_end_with_their_bursts() {
    let prepared = Mock::running(double);
    let open = || nnhal_burst::pair::open_with_capacity(prepared.clone(), 64);
    let mut bursts = Vec::new();
    let refused = loop {
        match open() {
            Ok(burst) => bursts.push(burst),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedTransient);
    // Where a process may have few descriptors, those end first.
    if bursts.len() as u64 == ClientLimits::default().bursts {
        assert!(refused.to_string().contains("has 1024 bursts"), "{refused}");
    }
    assert!(bursts.len() > 100 && threads() == bursts.len());
    drop(bursts.split_off(1));
    let begun = Instant::now();
    while threads() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(20), "threads stay");
        std::thread::sleep(Duration::from_millis(10));
    }
    // There is a place again, and the one that was there works on.
    bursts.push(open().unwrap());
    for burst in &bursts {
        let memory = memory(21);
        burst.execute(&request(&memory), false).unwrap();
        assert_eq!(output(&memory), [42; 8]);
    }
}
