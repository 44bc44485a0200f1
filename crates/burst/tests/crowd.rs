//! Bursts in numbers. A process of its own, because the limit is the process's.

mod support;

use nnhal_hal::{Burst, ClientLimits, ErrorStatus};
use std::time::{Duration, Instant};
use support::{Mock, double, memory, output, request};

/// How many threads of this name there are.
fn threads_named(name: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|found| found.trim_end() == name).count()
}

/// Threads that bursts have for themselves.
fn threads() -> usize {
    threads_named("nnhal-burst")
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the system can wait for several futexes at once, by its release.
fn has_futex_waitv() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers =
        release.split(|it: char| !it.is_ascii_digit()).map_while(|it| it.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5_u32, 16_u32)
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
    assert!(bursts.len() > 100 && threads() <= bursts.len());
    let use_all = |bursts: &[nnhal_burst::BurstClient]| {
        for burst in bursts {
            let memory = memory(21);
            burst.execute(&request(&memory), false).unwrap();
            assert_eq!(output(&memory), [42; 8]);
        }
    };
    if has_futex_waitv() {
        // Without packets they share a few threads, and a packet is answered all the same: twice, so
        // that a burst is parked again that has worked in between.
        let places = |count: usize| count.div_ceil(127);
        for _ in 0..2 {
            wait_until("bursts keep their threads", || threads() == 0);
            assert!(threads_named("nnhal-parked") <= places(bursts.len()) + 1);
            use_all(&bursts);
            assert!(threads() > 0);
        }
        wait_until("bursts keep their threads", || threads() == 0);
    }
    drop(bursts.split_off(1));
    wait_until("threads stay", || threads() <= 1 && threads_named("nnhal-parked") <= 1);
    // There is a place again, and the one that was there works on.
    bursts.push(open().unwrap());
    use_all(&bursts);
    drop(bursts);
    wait_until("threads stay", || threads() == 0 && threads_named("nnhal-parked") == 0);
}
