//! A thousand clients, each a process of its own, at a service that is one too: what it holds before, meanwhile and after.

mod common;

use common::{Process, execute, prepare, request, say, server, sum, task, within};
use nnhal_service::Settings;
use std::path::Path;
use std::time::Duration;

const CLIENTS: usize = 1000;
/// How many processes are started at a time.
const AT_ONCE: usize = 20;

/// The service, where this is one.
#[test]
fn service() {
    let Some((_, path)) = task() else { return };
    let _server = server(&path, Settings::default());
    say("ready");
    std::thread::park();
}

/// A client, where this is one: it has executed, and keeps what it has.
#[test]
fn client() {
    let Some((_, path)) = task() else { return };
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let prepared = prepare(&*device).unwrap();
    let request = request();
    for _ in 0..3 {
        assert_eq!(execute(&*prepared, &request).unwrap(), sum());
    }
    say("ready");
    std::thread::park();
}

/// What a process has: descriptors, threads, and memory of its own in KiB.
#[derive(Debug, Clone, Copy)]
struct Used {
    descriptors: usize,
    threads: usize,
    memory: u64,
}

impl Used {
    fn by(process: u32) -> Self {
        let folder = format!("/proc/{process}");
        let count = |what: &str| std::fs::read_dir(format!("{folder}/{what}")).unwrap().count();
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        let memory = memory.trim().trim_end_matches(" kB").parse().unwrap();
        Self { descriptors: count("fd"), threads: count("task"), memory }
    }
}

fn status(path: &Path) -> serde_json::Value {
    let lines = nnhal_aidl::socket::Lines::connect(path).unwrap();
    let service = lines.service().unwrap().unwrap();
    serde_json::from_str(&service.getStatus().unwrap()).unwrap()
}

#[test]
fn a_thousand_processes_are_served_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let service = Process::start("service", &format!("x {}", path.display()));
    let task = format!("x {}", path.display());
    // Once, so that what stays for ever is there.
    drop(Process::start("client", &task));
    let alone = || status(&path)["clients"].as_array().unwrap().len() == 1;
    assert!(within(Duration::from_secs(10), alone));
    let before = Used::by(service.id());

    let mut clients = Vec::new();
    while clients.len() < CLIENTS {
        let mut more: Vec<_> = (0..AT_ONCE).map(|_| Process::spawn("client", &task)).collect();
        more.iter_mut().for_each(|client| client.wait_for("ready"));
        clients.extend(more);
    }
    let found = status(&path);
    assert_eq!(found["clients"].as_array().unwrap().len(), CLIENTS + 1);
    assert_eq!(found["all"]["prepared_models"], CLIENTS);
    assert_eq!(found["all"]["failed"], 0);
    let meanwhile = Used::by(service.id());

    drop(clients);
    assert!(within(Duration::from_secs(60), alone), "{}", status(&path)["all"]);
    let back = || {
        let after = Used::by(service.id());
        after.descriptors <= before.descriptors && after.threads <= before.threads
    };
    let is_back = within(Duration::from_secs(30), back);
    let after = Used::by(service.id());
    // For people: cargo test -- --nocapture
    say(&format!("before {before:?}\nwith {CLIENTS} clients {meanwhile:?}\nafter {after:?}"));
    assert!(is_back, "before {before:?}, after {after:?}");
    // The allocator keeps some of it.
    assert!(after.memory < before.memory + 64 * 1024, "before {before:?}, after {after:?}");
    // The next ones are served as the first.
    drop(Process::start("client", &task));
}
