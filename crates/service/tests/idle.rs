//! A service, and a client of it, that have nothing to do use no processor: none of their threads wakes to look.

mod common;

use common::{Process, execute, prepare, request, say, server, sum, task};
use nnhal_service::Settings;
use std::time::{Duration, Instant};

/// The service, where this is one.
#[test]
fn service() {
    let Some((_, path)) = task() else { return };
    let _server = server(&path, Settings::default());
    say("ready");
    std::thread::park();
}

/// A client, where this is one: it has executed, also by a burst, and keeps what it has.
#[test]
fn client() {
    let Some((_, path)) = task() else { return };
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let prepared = prepare(&*device).unwrap();
    let burst = prepared.configure_burst().unwrap();
    let request = request();
    assert_eq!(execute(&*prepared, &request).unwrap(), sum());
    burst.execute(&request, false).map_err(|failed| failed.error).unwrap();
    say("ready");
    std::thread::park();
}

/// How often threads of a process have begun to wait.
fn waits(process: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_thread = |task: std::io::Result<std::fs::DirEntry>| {
        // It may have ended meanwhile.
        let status = std::fs::read_to_string(task.ok()?.path().join("status")).ok()?;
        let waits = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"))?;
        waits.trim().parse::<u64>().ok()
    };
    tasks.filter_map(of_thread).sum()
}

/// Asserts that the processes wake at most twice in 2 seconds, once they have come to rest.
fn assert_idle(processes: &[u32], when: &str) {
    const TIME: Duration = Duration::from_secs(2);
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let before: u64 = processes.iter().map(|&process| waits(process)).sum();
        std::thread::sleep(TIME);
        let after: u64 = processes.iter().map(|&process| waits(process)).sum();
        // Threads that end take their waits with them.
        if (before..=before + 2).contains(&after) {
            return;
        }
        assert!(Instant::now() < until, "{when}: {before} waits, {after} after {TIME:?}");
    }
}

#[test]
fn without_work_no_thread_wakes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let task = format!("x {}", path.display());
    let service = Process::start("service", &task);
    assert_idle(&[service.id()], "before the first client");
    let client = Process::start("client", &task);
    assert_idle(&[service.id(), client.id()], "with a client");
    drop(client);
    assert_idle(&[service.id()], "after the client");
}
