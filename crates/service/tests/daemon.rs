//! The daemon as whoever runs a system uses it: settings that are read again, metrics by HTTP, its end.

mod common;

use common::{Process, endless_model, execute, prepare, request, say, sum, task, within};
use nnhal_hal::{
    BufferDescription, BufferRole, Device, ErrorStatus, ExecutionOptions, HalVersion,
    PrepareOptions, RequestBuilder,
};
use nnhal_service::daemon::{Options, run};
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The daemon, where this process is one.
#[test]
fn daemon() {
    let Some((_, folder)) = task() else { return };
    let options = Options {
        socket: folder.join("s"),
        mode: 0o600,
        settings: Some(folder.join("settings")),
        metrics: Some(([127, 0, 0, 1], 0).into()),
    };
    run(vec![nnhal_reference::device()], &options, say).unwrap();
    say("an orderly end");
}

/// A daemon in a folder with a socket `s` and a file `settings`.
struct Daemon {
    process: Process,
    folder: tempfile::TempDir,
    metrics: String,
}

impl Daemon {
    fn start(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("settings"), settings).unwrap();
        let mut process = Process::spawn("daemon", &format!("x {}", folder.path().display()));
        let line = said(&mut process, "metrics on http://");
        let address = line.split("http://").nth(1).unwrap();
        let metrics = address.trim().trim_end_matches("/metrics").to_owned();
        Self { process, folder, metrics }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = i32::try_from(self.process.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Other settings, and what the daemon says of them.
    fn reload(&mut self, settings: &str) -> String {
        std::fs::write(self.folder.path().join("settings"), settings).unwrap();
        self.signal(rustix::process::Signal::HUP);
        said(&mut self.process, "settings")
    }

    /// The answer's head and body.
    fn ask(&self, question: &str) -> (String, String) {
        let mut asking = TcpStream::connect(&self.metrics).unwrap();
        asking.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        asking.write_all(question.as_bytes()).unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    fn metric(&self, name: &str) -> f64 {
        let (_, body) = self.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        body.lines().find_map(value).unwrap_or_else(|| panic!("no {name} in {body}"))
    }
}

/// The next line with this in it.
fn said(process: &mut Process, word: &str) -> String {
    let mut line = String::new();
    while process.lines.read_line(&mut line).unwrap() > 0 {
        if line.contains(word) {
            return line;
        }
        line.clear();
    }
    panic!("the daemon ended before it said {word}");
}

fn open(socket: &Path) -> Arc<dyn Device> {
    nnhal_aidl::socket::open(socket, None).unwrap()
}

#[test]
fn settings_that_are_read_again_are_for_who_comes_then_and_wrong_ones_change_nothing() {
    let mut daemon = Daemon::start("[client]\nprepared-models = 1\n");
    let device = open(&daemon.socket());
    let _one = prepare(&*device).unwrap();
    let error = prepare(&*device).err().unwrap();
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient, "{error}");

    let line = daemon.reload("[client]\nprepared-modles = 2\n");
    assert!(line.contains("stay as they were"), "{line}");
    daemon.process.wait_for("prepared-modles");
    prepare(&*device).err().unwrap();

    let line = daemon.reload("[client]\nprepared-models = 2\n");
    assert!(line.contains("read again"), "{line}");
    // A client is a process: who is connected keeps its limits until it has gone.
    prepare(&*device).err().unwrap();
    drop(_one);
    drop(device);
    assert!(within(Duration::from_secs(10), || daemon.metric("nnhal_clients") == 0.0));
    let device = open(&daemon.socket());
    let _two = (prepare(&*device).unwrap(), prepare(&*device).unwrap());
    prepare(&*device).err().unwrap();

    let line = daemon.reload("users = [4294967294]\n");
    assert!(line.contains("read again"), "{line}");
    drop((_two, device));
    assert!(within(Duration::from_secs(10), || daemon.metric("nnhal_clients") == 0.0));
    let refused = nnhal_aidl::socket::open(&daemon.socket(), None).err().unwrap();
    assert_eq!(refused.status(), ErrorStatus::DeviceUnavailable, "{refused}");
    assert!(daemon.metric("nnhal_refused_connections_total") >= 1.0);
}

#[test]
fn metrics_count_what_is_held_and_what_was_executed() {
    let daemon = Daemon::start("");
    let device = open(&daemon.socket());
    let prepared = prepare(&*device).unwrap();
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let description = BufferDescription {
        prepared_models: vec![Arc::clone(&prepared)],
        input_roles: vec![role],
        ..BufferDescription::default()
    };
    let buffer = device.allocate(&description).unwrap();
    for _ in 0..5 {
        assert_eq!(execute(&*prepared, &request()).unwrap(), sum());
    }
    let mut short = RequestBuilder::new();
    short.input(&[0; 8]).input(&[0; 8]).output(4);
    execute(&*prepared, &short.build().unwrap()).unwrap_err();

    let (head, body) = daemon.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    // Every line is a sample of a metric whose type was said before.
    let mut kinds = std::collections::HashMap::new();
    for line in body.lines() {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert!(kinds.insert(name, kind).is_none(), "{name} twice");
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let name = name.split('{').next().unwrap();
            let of_histogram = ["_bucket", "_sum", "_count"].iter();
            let base = of_histogram.filter_map(|end| name.strip_suffix(end)).next();
            let known = kinds.contains_key(name)
                || base.is_some_and(|base| kinds.get(base) == Some(&"histogram"));
            assert!(known, "{line}");
        }
    }
    assert_eq!(daemon.metric("nnhal_clients"), 1.0);
    assert_eq!(daemon.metric("nnhal_prepared_models"), 1.0);
    assert_eq!(daemon.metric("nnhal_buffers"), 1.0);
    assert!(daemon.metric("nnhal_memory_bytes") > 0.0);
    assert_eq!(daemon.metric("nnhal_execution_seconds_count"), 6.0);
    assert_eq!(daemon.metric("nnhal_execution_seconds_bucket{le=\"+Inf\"}"), 6.0);
    assert_eq!(daemon.metric("nnhal_failed_executions_total"), 1.0);
    drop((buffer, description, prepared, device));
    assert!(within(Duration::from_secs(10), || daemon.metric("nnhal_clients") == 0.0));
    assert_eq!(daemon.metric("nnhal_prepared_models"), 0.0);
    assert_eq!(daemon.metric("nnhal_memory_bytes"), 0.0);
    assert_eq!(daemon.metric("nnhal_execution_seconds_count"), 6.0);
}

#[test]
fn who_asks_for_metrics_and_says_nothing_or_too_much_keeps_no_one_waiting() {
    let daemon = Daemon::start("");
    let _silent = TcpStream::connect(&daemon.metrics).unwrap();
    let began = Instant::now();
    assert_eq!(daemon.metric("nnhal_clients"), 0.0);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // A question without an end is cut off.
    let mut endless = TcpStream::connect(&daemon.metrics).unwrap();
    endless.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    let began = Instant::now();
    while endless.write_all(&[b'x'; 4096]).is_ok() {
        assert!(began.elapsed() < Duration::from_secs(10), "it is read for ever");
    }
    assert_eq!(daemon.metric("nnhal_clients"), 0.0);
    assert_eq!(execute(&*prepare(&*open(&daemon.socket())).unwrap(), &request()).unwrap(), sum());
}

#[test]
fn an_end_that_is_asked_for_waits_for_executions_and_then_ends_them() {
    let mut daemon = Daemon::start("");
    let device = open(&daemon.socket());
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&endless_model(), HalVersion::V1_3, options).unwrap();
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    let request = request.build().unwrap();
    std::thread::scope(|scope| {
        let executing = scope.spawn(|| {
            // It would end much later than the daemon.
            let loop_timeout = Some(Duration::from_secs(3600));
            let options = ExecutionOptions { loop_timeout, ..ExecutionOptions::default() };
            (prepared.execute(&request, &options), Instant::now())
        });
        let running = || daemon.metric("nnhal_running_executions") == 1.0;
        assert!(within(Duration::from_secs(10), running));
        let asked = Instant::now();
        daemon.signal(rustix::process::Signal::TERM);
        // Who comes now is not let in.
        std::thread::sleep(Duration::from_millis(500));
        assert!(nnhal_aidl::socket::open(&daemon.socket(), None).is_err());
        let (outcome, ended) = executing.join().unwrap();
        outcome.unwrap_err();
        let waited = ended.duration_since(asked);
        assert!((8..60).contains(&waited.as_secs()), "{waited:?}");
    });
    daemon.process.wait_for("an orderly end");
    assert!(!daemon.socket().exists());
}
