//! `nnhal conformance`, with a folder of two vectors: one that is right and one that is not.

use assert_cmd::Command;
use quick_junit::{Report, TestCaseStatus};
use serde_json::{Value, json};
use std::path::Path;

/// `RELU([-1.5, 2.5])`.
const INPUT: &str = "AADAvwAAIEA=";
/// `[0, 2.5]`, which is right.
const RIGHT: &str = "AAAAAAAAIEA=";
/// `[0, 3]`, which is not.
const WRONG: &str = "AAAAAAAAQEA=";

fn operand(name: &str, lifetime: &str, data: &str) -> Value {
    json!({
        "name": name,
        "type": "TENSOR_FLOAT32",
        "dimensions": [2],
        "scale": 0.0,
        "zero_point": 0,
        "lifetime": lifetime,
        "channel_quant": null,
        "ignored": false,
        "data": data,
    })
}

fn vector(name: &str, min_hal: Option<&str>, suites: &[&str], expected: &str) -> Value {
    let operands =
        [operand("x", "SUBGRAPH_INPUT", INPUT), operand("y", "SUBGRAPH_OUTPUT", expected)];
    json!({
        "name": name,
        "spec": "V1_0/relu",
        "min_hal": min_hal,
        "hal_floor": "1.0",
        "ops": ["RELU"],
        "variations": [],
        "suites": suites,
        "is_relaxed": false,
        "expect_failure": false,
        "multinomial_tolerance": null,
        "tolerances": [{ "atol": 1e-5, "rtol": 0.0 }],
        "main": {
            "operands": operands,
            "operations": [{ "type": "RELU", "inputs": [0], "outputs": [1] }],
            "inputs": [0],
            "outputs": [1],
        },
        "referenced": [],
    })
}

/// A folder as its README describes.
fn write_vectors(folder: &Path) {
    let right = vector(
        "relu_right",
        Some("1.0"),
        &["generated", "dynamic_output_shape", "compliance"],
        RIGHT,
    );
    let wrong = vector("relu_wrong", None, &["generated"], WRONG);
    let lines = format!("{right}\n{wrong}\n");
    let level = ruzstd::encoding::CompressionLevel::Uncompressed;
    let compressed = ruzstd::encoding::compress_to_vec(lines.as_bytes(), level);
    std::fs::create_dir_all(folder.join("V1_0")).unwrap();
    std::fs::write(folder.join("V1_0/relu.jsonl.zst"), compressed).unwrap();
    let manifest = json!({
        "format": 1,
        "files": [{ "path": "V1_0/relu.jsonl.zst", "cases": 2, "ops": ["RELU"] }],
        "total_files": 1,
        "total_cases": 2,
        "op_cases": { "RELU": 2 },
    });
    std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
}

fn conformance() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.arg("conformance");
    command
}

/// Exit code, standard output, standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const DIFFERENCE: &str = "first execution: output 0 (y): element 1 is 2.5, expected 3 \
                          (1 of 2 elements differ)";

/// The numbers in the row of a table.
fn row(stdout: &str, name: &str) -> Vec<usize> {
    let mut lines = stdout.lines().map(|line| line.split_whitespace());
    let row = lines.find(|line| line.clone().next() == Some(name));
    let row = row.unwrap_or_else(|| panic!("no {name} in {stdout}"));
    row.filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_failure_names_output_element_found_and_expected() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let (code, stdout, stderr) = outcome(conformance().arg(folder.path()));
    assert_eq!(code, 1, "{stderr}");
    let failed: Vec<&str> = stdout.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert_eq!(failed, [format!("FAILED relu_wrong (generated, V1_0/relu): {DIFFERENCE}")]);
    assert_eq!(row(&stdout, "generated"), [1, 1]);
    assert_eq!(row(&stdout, "dynamic_output_shape"), [1, 0]);
    assert_eq!(row(&stdout, "short_output"), [1, 0]);
    assert_eq!(row(&stdout, "compliance"), [1, 0]);
    // Both models can be broken by what types, arguments and lists say.
    for rule in ["MODEL-1", "MODEL-8", "MODEL-19", "MODEL-25"] {
        assert_eq!(row(&stdout, rule), [2, 0]);
    }
    let [passed, failed] = row(&stdout, "all")[..] else { panic!("{stdout}") };
    assert_eq!(row(&stdout, "RELU"), [passed, failed]);
    assert_eq!(failed, 1);
    assert!(stderr.contains("1 vectors failed"), "{stderr}");
}

#[test]
fn json_has_all_that_the_text_has() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let mut command = conformance();
    command.arg(folder.path()).args(["--json", "--suite", "generated,mutation"]);
    let (code, stdout, _) = outcome(&mut command);
    assert_eq!(code, 1);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["suites"]["generated"], tally(1, 1, 0));
    assert_eq!(report["suites"].as_object().unwrap().len(), 2);
    assert_eq!(report["rules"]["MODEL-25"], tally(2, 0, 0));
    assert_eq!(report["operations"]["RELU"], report["total"]);
    let by_rule: u64 = report["rules"]
        .as_object()
        .unwrap()
        .values()
        .map(|it| it["passed"].as_u64().unwrap())
        .sum();
    assert_eq!(report["suites"]["mutation"]["passed"], by_rule);
    assert_eq!(report["total"], tally(by_rule + 1, 1, 0));
    let failure = json!({
        "case": "relu_wrong",
        "spec": "V1_0/relu",
        "suite": "generated",
        "path": "synchronous",
        "rule": null,
        "failure": DIFFERENCE,
    });
    assert_eq!(report["failures"], json!([failure]));
    assert_eq!(report["skipped"], json!([]));
}

/// Numbers as they are in JSON.
fn tally(passed: u64, failed: u64, skipped: u64) -> Value {
    json!({
        "passed": passed, "failed": failed, "skipped": skipped,
        "for_c_library": 0, "not_offered": 0, "declined": 0,
    })
}

#[test]
fn through_an_older_version_what_it_lacks_is_skipped_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    for version in ["1.0", "1.1"] {
        let file = folder.path().join("report.xml");
        let mut command = conformance();
        command.arg(folder.path()).args(["--through", version, "--json", "--junit"]).arg(&file);
        let (code, stdout, stderr) = outcome(&mut command);
        assert_eq!(code, 1, "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        // Both vectors run; that one is wrong is seen through the interfaces too.
        assert_eq!(report["suites"]["generated"], tally(1, 1, 0));
        assert_eq!(report["failures"][0]["failure"], json!(DIFFERENCE));
        assert_eq!(report["suites"]["compliance"], tally(1, 0, 0));
        assert_eq!(report["rules"]["MODEL-25"], tally(2, 0, 0));
        // No one can say the shape of an output that is not known before 1.2.
        let skipped = |suite: &str| json!({ "case": "relu_right", "spec": "V1_0/relu", "suite": suite, "needs": "1.2" });
        let all = json!([skipped("dynamic_output_shape"), skipped("short_output")]);
        assert_eq!(report["skipped"], all);
        assert_eq!(report["total"]["skipped"], json!(2));
        let xml = std::fs::read_to_string(&file).unwrap();
        let xml = Report::deserialize_from_str(&xml).unwrap();
        let suite = xml.test_suites.iter().find(|suite| suite.name.as_str() == "short_output");
        let TestCaseStatus::Skipped { message, .. } = &suite.unwrap().test_cases[0].status else {
            panic!("{suite:?}")
        };
        assert_eq!(message.as_deref(), Some("needs 1.2"));
    }
}

#[test]
fn the_text_counts_what_was_skipped_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let mut command = conformance();
    command.arg(folder.path()).args(["--through", "1.0", "--filter", "relu_right"]);
    let (code, stdout, stderr) = outcome(&mut command);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(row(&stdout, "short_output"), [0, 0, 1]);
    assert_eq!(row(&stdout, "generated"), [1, 0]);
    assert_eq!(row(&stdout, "all")[2], 2);
    let reason = "2 skipped: they need 1.2, the device is older";
    assert!(stdout.lines().any(|line| line == reason), "{stdout}");

    let (code, _, stderr) = outcome(command.args(["--suite", "short_output"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("all that was selected was skipped: 1 vectors"), "{stderr}");
}

#[test]
fn through_a_newer_version_nothing_is_skipped_by_either_kind_of_method() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    for version in ["1.2", "1.3"] {
        for more in [&[][..], &["--asynchronous"]] {
            let mut command = conformance();
            command.arg(folder.path()).args(["--through", version, "--filter", "relu_right"]);
            let (code, stdout, stderr) = outcome(command.args(more));
            assert_eq!(code, 0, "{stderr}");
            for suite in ["generated", "dynamic_output_shape", "short_output", "compliance"] {
                assert_eq!(row(&stdout, suite), [1, 0]);
            }
        }
    }
}

#[test]
fn what_is_no_version_of_the_interfaces_is_an_error() {
    for version in ["fl6", "1.4", ""] {
        let (code, _, stderr) = outcome(conformance().args(["--through", version]));
        assert_eq!(code, 2);
        assert!(stderr.contains("1.0, 1.1, 1.2 and 1.3"), "{stderr}");
    }
    let (code, _, stderr) = outcome(conformance().args(["--asynchronous"]));
    assert_eq!(code, 2);
    assert!(stderr.contains("--through"), "{stderr}");
}

#[test]
fn junit_has_a_suite_for_each_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let file = folder.path().join("report.xml");
    let mut command = conformance();
    command.arg(folder.path()).args(["--suite", "generated,mutation", "--junit"]).arg(&file);
    assert_eq!(outcome(&mut command).0, 1);
    let report = Report::deserialize_from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let [generated, mutation] = &report.test_suites[..] else { panic!("{report:?}") };
    assert_eq!((generated.name.as_str(), mutation.name.as_str()), ("generated", "mutation"));
    assert_eq!((generated.tests, generated.failures), (2, 1));
    assert_eq!(mutation.failures, 0);
    let names: Vec<&str> = mutation.test_cases.iter().map(|case| case.name.as_str()).collect();
    assert!(names.contains(&"relu_right/MODEL-25"), "{names:?}");
    let [right, wrong] = &generated.test_cases[..] else { panic!("{generated:?}") };
    assert!(matches!(right.status, TestCaseStatus::Success { .. }));
    assert_eq!(
        (wrong.name.as_str(), wrong.classname.as_deref()),
        ("relu_wrong", Some("V1_0/relu"))
    );
    match &wrong.status {
        TestCaseStatus::NonSuccess { message, .. } => {
            assert_eq!(message.as_deref(), Some(DIFFERENCE));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_folder_the_usual_one_is_taken() {
    let parent = tempfile::tempdir().unwrap();
    let inside = parent.path().join("project");
    std::fs::create_dir(&inside).unwrap();
    let mut command = conformance();
    let command = command.current_dir(&inside).args(["--filter", "relu_right"]);
    let (code, _, stderr) = outcome(command);
    assert_eq!(code, 3);
    assert!(stderr.contains("no vectors in ../shared/conformance"), "{stderr}");
    assert!(stderr.contains("nnhal conformance DIR"), "{stderr}");

    write_vectors(&parent.path().join("shared/conformance"));
    let (code, stdout, stderr) = outcome(command);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(row(&stdout, "generated"), [1, 0]);
}

#[test]
fn what_selects_nothing_or_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let (code, _, stderr) =
        outcome(conformance().arg(folder.path()).args(["--filter", "no such name"]));
    assert_eq!(code, 1);
    assert!(stderr.contains("no vector was selected"), "{stderr}");
    let (code, _, stderr) = outcome(conformance().arg(folder.path()).args(["--suite", "other"]));
    assert_eq!(code, 3);
    assert!(stderr.contains("there is no suite \"other\""), "{stderr}");
    let (code, _, stderr) = outcome(conformance().arg(folder.path().join("elsewhere")));
    assert_eq!(code, 3);
    assert!(stderr.contains("manifest.json"), "{stderr}");
}

#[test]
fn paths_are_chosen_counted_and_named_in_failures() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let mut command = conformance();
    command.arg(folder.path()).args(["--json", "--suite", "generated", "--paths", "all"]);
    let (code, stdout, stderr) = outcome(&mut command);
    assert_eq!(code, 1, "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    // Of the two vectors one is wrong; neither has the label of fences or buffers.
    for path in ["synchronous", "asynchronous", "burst", "cached"] {
        assert_eq!(report["paths"][path], tally(1, 1, 0), "{path}");
    }
    assert_eq!(report["paths"].as_object().unwrap().len(), 4);
    assert_eq!(report["suites_and_paths"]["generated"], report["paths"]);
    let mut command = conformance();
    command.arg(folder.path()).args(["--suite", "generated", "--paths", "burst"]);
    let (_, stdout, _) = outcome(&mut command);
    let failed: Vec<&str> = stdout.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert_eq!(failed.len(), 1, "{stdout}");
    assert!(failed[0].contains("(generated burst, V1_0/relu)"), "{stdout}");
    let mut command = conformance();
    command.arg(folder.path()).args(["--paths", "sideways"]);
    let (code, _, stderr) = outcome(&mut command);
    assert_ne!(code, 0);
    assert!(stderr.contains("there is no path"), "{stderr}");
}

/// Every suite that executes is run by every path, and the rows of a table say so.
#[test]
fn each_suite_is_counted_by_path() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let mut command = conformance();
    command.arg(folder.path()).args(["--paths", "synchronous,cached", "--filter", "relu_right"]);
    command.args(["--suite", "generated,dynamic_output_shape,short_output,compliance"]);
    let (code, stdout, stderr) = outcome(&mut command);
    assert_eq!(code, 0, "{stderr}");
    let counted = |suite: &str, path: &str| {
        let wanted = format!("{suite} {path} ");
        let row = stdout.lines().find(|line| line.starts_with(&wanted));
        row.map(|row| row.split_whitespace().nth(2).unwrap().to_owned())
    };
    for suite in ["generated", "dynamic_output_shape", "short_output"] {
        for path in ["synchronous", "cached"] {
            assert_eq!(counted(suite, path).as_deref(), Some("1"), "{suite} {path}: {stdout}");
        }
    }
    assert_eq!(counted("compliance", "synchronous").as_deref(), Some("1"), "{stdout}");
    assert_eq!(counted("compliance", "cached"), None, "{stdout}");
    // Where no one looks at it, nothing moves.
    assert!(stderr.is_empty(), "{stderr}");
}

#[test]
fn requirements_are_listed_with_their_checks_or_a_reason() {
    let (code, stdout, _) = outcome(conformance().args(["--contract", "--list"]));
    assert_eq!(code, 0);
    assert!(
        stdout.contains("\nALLOC-4\n    roles of operands that differ are refused\n"),
        "{stdout}"
    );
    assert!(
        stdout.contains("\nnot checked: PREP-4: A task that cannot be started needs"),
        "{stdout}"
    );
    let (_, stdout, _) = outcome(conformance().args(["--contract", "--list", "--json"]));
    let list: Value = serde_json::from_str(&stdout).unwrap();
    let [checked, reasons] =
        ["checked", "not_checked"].map(|key| list[key].as_object().unwrap().len());
    assert_eq!(checked + reasons, 247);
    let (_, stdout, _) = outcome(conformance().args(["--contract", "--list", "--filter", "CAPI"]));
    assert!(stdout.ends_with("\n0 requirements checked on any device, 3 not\n"), "{stdout}");
}

#[test]
fn a_shared_object_that_is_no_driver_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    let run = |device: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        command.args(["conformance", "--json", "--device", device]).args(more);
        let output = command.output().unwrap();
        let answer: Value = serde_json::from_slice(&output.stdout).expect("one object");
        (output.status.code(), answer["error"].as_str().unwrap_or_default().to_owned())
    };
    let vectors = folder.path().to_str().unwrap();
    let (code, why) = run("/no/such/driver.so", &[vectors]);
    assert_eq!(code, Some(3));
    assert!(why.starts_with("/no/such/driver.so: "), "{why}");
    let manifest = folder.path().join("manifest.json");
    let (code, why) = run(manifest.to_str().unwrap(), &[vectors]);
    assert_eq!(code, Some(3), "{why}");
    // A library of this process that every Linux has.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps.lines().filter_map(|line| line.split_whitespace().last());
    let mut library = library.filter(|path| path.contains("libc.so") || path.contains("libgcc_s"));
    let Some(library) = library.next() else { return };
    let (code, why) = run(library, &[vectors]);
    assert_eq!(code, Some(3));
    assert!(why.contains("has no ANeuralNetworks_getSLDriverImpl"), "{why}");
}
