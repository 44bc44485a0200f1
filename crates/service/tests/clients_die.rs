//! A client is killed at each stage: nothing of it is left behind.

mod common;

use common::{
    Process, descriptors, endless_model, execute, prepare, request, say, slow_server, task,
    threads, within,
};
use nnhal_hal::client::Holding;
use nnhal_hal::{
    BufferDescription, BufferRole, ExecutionOptions, HalVersion, PrepareOptions, RequestBuilder,
};
use nnhal_service::Settings;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Threads and descriptors are those of this process: tests that make servers take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The process that executes what never ends, where this is one: in a call, in a reusable execution, or behind a fence.
#[test]
fn endless() {
    let Some((how, path)) = task() else { return };
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&endless_model(), HalVersion::V1_3, options).unwrap();
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let request = request.build().unwrap();
    let loop_timeout = Some(Duration::from_secs(3600));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    if how == "fenced" {
        let _fenced = prepared.execute_fenced(&request, &[], &options, None).unwrap();
        say("ready");
        std::thread::park();
    }
    if how == "reusable" {
        prepared.check_request(&request).unwrap();
    }
    say("ready");
    prepared.execute(&request, &options).unwrap();
}

#[test]
fn what_executes_ends_with_its_client() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = common::server(&path, Settings::default());
    let running = || server.status().all.running;
    for how in ["once", "reusable", "fenced"] {
        let mut process = Process::start("endless", &format!("{how} {}", path.display()));
        assert!(within(Duration::from_secs(10), || running() > 0), "{how}");
        // It does not end by itself.
        assert!(!within(Duration::from_millis(500), || running() == 0), "{how}");
        process.kill();
        assert!(within(Duration::from_secs(2), || running() == 0), "{how}: it goes on");
        assert!(within(Duration::from_secs(2), || server.clients().list().is_empty()), "{how}");
        let left = server.status().all;
        assert_eq!((left.prepared_models, left.memory), (0, 0), "{how}");
    }
}

/// The process that is a client, where this is one. It stops at the stage that it was given.
#[test]
fn process() {
    let Some((stage, path)) = task() else { return };
    let reached = |name: &str| {
        if stage == name {
            say("ready");
            std::thread::park();
        }
    };
    let device = nnhal_aidl::socket::open(&path, None).unwrap();
    reached("connected");
    if stage == "preparing" {
        say("ready");
    }
    let prepared = prepare(&*device).unwrap();
    reached("prepared");
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let description = BufferDescription {
        prepared_models: vec![Arc::clone(&prepared)],
        input_roles: vec![role],
        ..BufferDescription::default()
    };
    let _buffer = device.allocate(&description).unwrap();
    reached("allocated");
    let burst = prepared.configure_burst().unwrap();
    burst.execute(&request(), false).unwrap();
    reached("burst");
    let request = request();
    prepared.check_request(&request).unwrap();
    reached("reusable");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| execute(&*prepared, &request));
        }
        std::thread::sleep(Duration::from_millis(100));
        reached("executing");
    });
}

#[test]
fn nothing_is_left_behind() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let server = slow_server(&path, 300, 300);
    let stages =
        ["connected", "preparing", "prepared", "allocated", "burst", "reusable", "executing"];
    // Once, so that what stays for ever is there.
    drop(Process::start("process", &format!("executing {}", path.display())));
    let empty = || {
        let all = server.clients().group();
        server.clients().list().is_empty() && Holding::ALL.iter().all(|what| all.held(*what) == 0)
    };
    assert!(within(Duration::from_secs(3), empty));
    std::thread::sleep(Duration::from_millis(200));
    let before = (descriptors(), threads());
    for stage in stages {
        let mut process = Process::start("process", &format!("{stage} {}", path.display()));
        let guest = Arc::clone(&server.clients().list()[0].guest);
        if !matches!(stage, "connected" | "preparing") {
            assert!(guest.client().held(Holding::PreparedModels) == 1, "{stage}");
        }
        process.kill();
        drop(process);
        // What it had begun may still compute for as long as it takes, here 300 ms.
        assert!(within(Duration::from_secs(3), empty), "{stage}: {:?}", server.status().all);
        assert!(guest.client().has_left(), "{stage}");
        let held = |what: &Holding| guest.client().held(*what);
        assert!(
            within(Duration::from_secs(3), || Holding::ALL.iter().all(|what| held(what) == 0)),
            "{stage}"
        );
        let back = || descriptors() <= before.0 && threads() <= before.1;
        assert!(
            within(Duration::from_secs(3), back),
            "{stage}: {:?} descriptors and threads, there were {before:?}",
            (descriptors(), threads())
        );
    }
}
