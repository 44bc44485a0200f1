//! `--trace FILE`: the Trace Event Format, as viewers read it.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

fn trace(arguments: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.args(arguments).arg(asset("digits_float32.tflite")).arg("--trace").arg(&file);
    command.assert().success();
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// Complete events: thread, beginning and end in microseconds, name.
fn spans(trace: &Value) -> Vec<(u64, f64, f64, String)> {
    let events = trace["traceEvents"].as_array().unwrap();
    let complete = events.iter().filter(|event| event["ph"] == "X");
    let span = |event: &Value| {
        let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let name = event["name"].as_str().unwrap().to_owned();
        (event["tid"].as_u64().unwrap(), start, start + length, name)
    };
    complete.map(span).collect()
}

#[test]
fn spans_of_a_thread_are_within_each_other_or_disjoint() {
    for arguments in [
        &["run"][..],
        &["run", "--device", "nnhal-reference"],
        &["bench", "--runs", "100", "--threads", "2"],
    ] {
        let mut threads: BTreeMap<u64, Vec<(f64, f64, String)>> = BTreeMap::new();
        for (thread, start, end, name) in spans(&trace(arguments)) {
            threads.entry(thread).or_default().push((start, end, name));
        }
        for spans in threads.values() {
            let mut open: Vec<f64> = Vec::new();
            for (start, end, name) in spans {
                open.retain(|outer| *outer > *start + 1e-6);
                let fits = open.iter().all(|outer| *end <= outer + 1e-6);
                assert!(fits, "{name} from {start} to {end} ends after {open:?}");
                open.push(*end);
            }
        }
    }
}

#[test]
fn every_phase_has_its_spans_in_its_place() {
    let trace = trace(&["run", "--threads", "1"]);
    let spans = spans(&trace);
    let named = |wanted: &str| {
        let all = spans.iter().filter(|(.., name)| name.contains(wanted));
        all.cloned().collect::<Vec<_>>()
    };
    let execute = named("execute").remove(0);
    for phase in ["import", "validate", "prepare", "pass convolutions", "lower"] {
        let found = named(phase);
        assert!(!found.is_empty(), "{phase}");
        assert!(found.iter().all(|it| it.2 <= execute.1), "{phase} is before the execution");
    }
    // Steps by their kernels, tasks within them.
    let steps: Vec<_> = named("conv2d").into_iter().filter(|it| it.1 >= execute.1).collect();
    assert!(steps.len() >= 6, "{steps:?}");
    assert!(steps.iter().all(|it| it.2 <= execute.2), "steps are within the execution");
    let tasks = named("task");
    assert!(!tasks.is_empty());
    let is_in_step = |task: &(u64, f64, f64, String)| {
        spans.iter().any(|it| it.3.contains("f32") && it.1 <= task.1 && task.2 <= it.2)
    };
    assert!(tasks.iter().any(is_in_step));
}

/// The names of the threads of a trace; each that did something has one.
fn names_of_threads(trace: &Value) -> BTreeSet<String> {
    let events = trace["traceEvents"].as_array().unwrap();
    let names: BTreeMap<u64, &str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|it| (it["tid"].as_u64().unwrap(), it["args"]["name"].as_str().unwrap()))
        .collect();
    let used: BTreeSet<u64> = spans(trace).iter().map(|span| span.0).collect();
    assert!(used.iter().all(|thread| names.contains_key(thread)), "{names:?}");
    names.into_values().map(str::to_owned).collect()
}

#[test]
fn threads_have_names_and_share_tasks() {
    // All runs together take a few milliseconds, for which the second thread may wait on a busy machine.
    let is_shared = (0..20).any(|_| {
        let all = names_of_threads(&trace(&["bench", "--runs", "300", "--threads", "2"]));
        assert!(all.contains("main") && all.contains("nnhal-prepare"), "{all:?}");
        all.iter().any(|name| name.starts_with("nnhal-team"))
    });
    assert!(is_shared, "no task was run by a thread of the team in 20 times 300 runs");
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_beside_the_answer() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.args(["run", "--json", "--trace", "/dev/full"]).arg(asset("digits_float32.tflite"));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert!(answer["outputs"].is_array());
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/full"));
}
