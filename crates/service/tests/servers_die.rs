//! A service is killed at each stage of each call: the call ends in an error within a second, and works
//! again after a restart.

mod common;

use common::{
    Process, endless_model, execute, model, prepare, request, say, slow_server, sum, task,
};
use nnhal_hal::{
    BufferDescription, BufferRole, Device, ErrorStatus, ExecutionOptions, HalVersion,
    PrepareOptions, PreparedModel, RequestBuilder,
};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

/// How long after the service's death a call may go on.
const SOON: Duration = Duration::from_secs(1);

/// The process that serves, where this is one.
#[test]
fn process() {
    let Some((what, path)) = task() else { return };
    let (preparing, executing) = match &*what {
        "slowly-preparing" => (60_000, 0),
        "slowly-executing" => (0, 60_000),
        _ => (0, 0),
    };
    let _server = slow_server(&path, preparing, executing);
    say("ready");
    std::thread::park();
}

fn service(kind: &str, path: &Path) -> Process {
    Process::start("process", &format!("{kind} {}", path.display()))
}

fn connect(path: &Path) -> Arc<dyn Device> {
    nnhal_aidl::socket::open(path, None).expect("the service")
}

/// Begins a call on a thread of its own, kills the service meanwhile, and says how the call ended.
fn killed_during(
    service: &mut Process,
    call: impl FnOnce() -> nnhal_hal::Result<()> + Send,
) -> nnhal_hal::Error {
    let begun = Barrier::new(2);
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| {
            begun.wait();
            (call(), Instant::now())
        });
        begun.wait();
        std::thread::sleep(Duration::from_millis(150));
        let killed = Instant::now();
        service.kill();
        let (outcome, ended) = calling.join().expect("the call");
        assert!(ended > killed, "it ended before the service was killed: {outcome:?}");
        assert!(ended.duration_since(killed) < SOON, "{:?}", ended.duration_since(killed));
        outcome.expect_err("the service is dead")
    })
}

#[test]
fn a_call_that_goes_on_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let dead = |error: nnhal_hal::Error| {
        assert_eq!(error.status(), ErrorStatus::DeviceUnavailable, "{error}");
    };

    let mut process = service("slowly-preparing", &path);
    let device = connect(&path);
    dead(killed_during(&mut process, || {
        device.supported_operations(&model(), HalVersion::V1_3).map(|_| ())
    }));
    let mut process = service("slowly-preparing", &path);
    dead(killed_during(&mut process, || prepare(&*device).map(|_| ())));

    let mut process = service("slowly-executing", &path);
    let prepared = prepare(&*device).expect("the service has returned");
    dead(killed_during(&mut process, || execute(&*prepared, &request()).map(|_| ())));

    let mut process = service("slowly-executing", &path);
    let prepared = prepare(&*device).unwrap();
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let description = BufferDescription {
        prepared_models: vec![prepared],
        input_roles: vec![role],
        ..BufferDescription::default()
    };
    dead(killed_during(&mut process, || device.allocate(&description).map(|_| ())));
}

#[test]
fn an_execution_that_goes_on_ends_at_once_by_whatever_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let request = request.build().unwrap();
    let loop_timeout = Some(Duration::from_secs(3600));
    let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
    let endless = |device: &dyn Device| {
        device.prepare_model(&endless_model(), HalVersion::V1_3, PrepareOptions::default()).unwrap()
    };
    let failed = |outcome: Result<nnhal_hal::Execution, nnhal_hal::ExecutionError>| {
        outcome.map(|_| ()).map_err(|failed| failed.error)
    };
    let dead = |path: &str, error: nnhal_hal::Error| {
        assert_eq!(error.status(), ErrorStatus::DeviceUnavailable, "{path}: {error}");
    };

    let mut process = service("quick", &path);
    let device = connect(&path);
    let prepared = endless(&*device);
    prepared.check_request(&request).unwrap();
    let error = killed_during(&mut process, || failed(prepared.execute(&request, &options)));
    dead("a reusable execution", error);

    let mut process = service("quick", &path);
    let prepared = endless(&*device);
    let burst = prepared.configure_burst().unwrap();
    let error = killed_during(&mut process, || failed(burst.execute(&request, false)));
    dead("a burst", error);

    let mut process = service("quick", &path);
    let prepared = endless(&*device);
    let fenced = prepared.execute_fenced(&request, &[], &options, None).unwrap();
    let error = killed_during(&mut process, || {
        let fence = fenced.sync_fence.as_ref().expect("it goes on");
        fence.wait(Some(Duration::from_secs(60)))?;
        fenced.info.get().map(|_| ())
    });
    dead("behind a fence", error);

    // It waits for a fence that no one signals.
    let mut process = service("quick", &path);
    let prepared = prepare(&*device).unwrap();
    let (signal, wait_for) = nnhal_hal::SyncFence::pair().unwrap();
    let fenced = prepared
        .execute_fenced(&common::request(), &[wait_for], &ExecutionOptions::default(), None)
        .unwrap();
    let error = killed_during(&mut process, || {
        let fence = fenced.sync_fence.as_ref().expect("it waits");
        fence.wait(Some(Duration::from_secs(60)))?;
        fenced.info.get().map(|_| ())
    });
    dead("waiting for a fence", error);
    drop(signal);

    let _process = service("quick", &path);
    let again = prepare(&*device).unwrap();
    assert_eq!(execute(&*again, &common::request()).unwrap(), sum());
}

#[test]
fn what_is_of_a_dead_service_fails_and_the_device_finds_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let mut process = service("quick", &path);
    let device = connect(&path);
    let prepared = prepare(&*device).unwrap();
    let burst = prepared.configure_burst().unwrap();
    let request = request();
    // Once, again, and as a reusable execution.
    for _ in 0..3 {
        assert_eq!(execute(&*prepared, &request).unwrap(), sum());
    }
    burst.execute(&request, false).unwrap();
    process.kill();

    let began = Instant::now();
    let gone = |error: nnhal_hal::Error| {
        assert!(error.is_gone() && error.status() == ErrorStatus::DeviceUnavailable, "{error}");
    };
    gone(execute(&*prepared, &request).unwrap_err());
    gone(burst.execute(&request, false).unwrap_err().error);
    gone(prepared.configure_burst().err().unwrap());
    gone(prepare(&*device).err().unwrap());
    gone(device.supported_operations(&model(), HalVersion::V1_3).unwrap_err());
    assert_eq!(device.status(), nnhal_hal::DeviceStatus::Offline);
    assert!(device.expect_reachable().unwrap_err().is_gone());
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());

    let _process = service("quick", &path);
    // What was prepared is lost with the service that had it.
    gone(execute(&*prepared, &request).unwrap_err());
    let again: Arc<dyn PreparedModel> = prepare(&*device).unwrap();
    assert_eq!(execute(&*again, &request).unwrap(), sum());
    assert_eq!(device.status(), nnhal_hal::DeviceStatus::Available);
}
