//! The program as a person uses it: what it prints, and its exit codes.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

fn nnhal() -> Command {
    Command::new(env!("CARGO_BIN_EXE_nnhal"))
}

/// Exit code, standard output, standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json_of(command: &mut Command) -> Value {
    let (code, stdout, stderr) = outcome(command);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn a_digit_is_read() {
    for model in ["digits_float32.tflite", "digits_int8.tflite"] {
        let mut command = nnhal();
        command.arg("run").arg(asset(model)).arg("--input").arg(asset("digit_7.png"));
        command.arg("--labels").arg(asset("labels.txt")).args(["--top", "3"]);
        let (code, stdout, stderr) = outcome(&mut command);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains("(pixel - 0) / 255"), "{stdout}");
        let classes: Vec<&str> = stdout.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(classes.len(), 3);
        assert!(classes[0].ends_with('7'), "{stdout}");

        let json = json_of(command.arg("--json"));
        assert_eq!(json["outputs"][0]["top"][0]["label"], "7");
        assert_eq!(json["outputs"][0]["shape"], serde_json::json!([1, 10]));
    }
}

/// A model with a file of labels behind it, as programs append it.
fn with_labels(model: &Path, labels: &str) -> Vec<u8> {
    let mut file = std::fs::read(model).unwrap();
    let header = u32::try_from(file.len()).unwrap().to_le_bytes();
    let length = u32::try_from(labels.len()).unwrap().to_le_bytes();
    file.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
    file.extend([length, length].concat());
    file.extend(b"\x0A\0\0\0labels.txt");
    file.extend(labels.as_bytes());
    let directory = u32::try_from(file.len()).unwrap();
    file.extend(b"PK\x01\x02\x14\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
    file.extend([length, length].concat());
    file.extend(b"\x0A\0\0\0\0\0\0\0\0\0\0\0\0\0");
    file.extend(header);
    file.extend(b"labels.txt");
    let length = u32::try_from(file.len()).unwrap() - directory;
    file.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0");
    file.extend([length.to_le_bytes(), directory.to_le_bytes()].concat());
    file.extend([0, 0]);
    file
}

#[test]
fn labels_inside_of_the_file_are_used_without_being_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let names = "null\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
    let model = folder.path().join("model.tflite");
    std::fs::write(&model, with_labels(&asset("digits_float32.tflite"), names)).unwrap();
    let mut command = nnhal();
    command.arg("run").arg(&model).arg("--input").arg(asset("digit_7.png"));
    let (code, stdout, stderr) = outcome(&mut command);
    assert_eq!(code, 0, "{stderr}");
    let classes: Vec<&str> = stdout.lines().filter(|line| line.starts_with("  ")).collect();
    assert_eq!(classes.len(), 5, "{stdout}");
    assert!(classes[0].ends_with("seven"), "{stdout}");
    assert_eq!(json_of(command.arg("--json"))["outputs"][0]["top"][0]["label"], "seven");
    // Names of something else are not.
    std::fs::write(&model, with_labels(&asset("digits_float32.tflite"), "cat\ndog\n")).unwrap();
    let mut command = nnhal();
    command.arg("run").arg(&model).arg("--input").arg(asset("digit_7.png")).arg("--json");
    assert_eq!(json_of(&mut command)["outputs"][0]["top"], serde_json::json!([]));
}

#[test]
fn outputs_are_written_and_can_be_read_back_as_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nnhal();
    command.arg("run").arg(asset("digits_float32.tflite")).args(["--fill", "random"]);
    command.arg("--output-dir").arg(folder.path()).arg("--json");
    let file = json_of(&mut command)["outputs"][0]["file"].as_str().unwrap().to_owned();
    let bytes = std::fs::read(&file).unwrap();
    assert_eq!(&bytes[1..6], b"NUMPY");
    assert_eq!(bytes.len() % 64, 40, "ten floats behind a padded header");

    // Ten probabilities are no image of 8 by 8.
    let mut command = nnhal();
    command.arg("run").arg(asset("digits_float32.tflite")).arg("--input").arg(&file);
    let (code, _, stderr) = outcome(&mut command);
    assert_eq!(code, 3);
    assert!(stderr.contains("expected [1, 8, 8, 1]"), "{stderr}");
}

#[test]
fn upper_halves_of_floats_are_given_and_shown_as_numbers() {
    // tanh(-x) of bfloat16.
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upper_halves.tflite");
    let folder = tempfile::tempdir().unwrap();
    let mut command = nnhal();
    command.arg("run").arg(&model).args(["--fill", "random", "--seed", "3", "--json"]);
    let json = json_of(command.arg("--output-dir").arg(folder.path()));
    assert_eq!(json["outputs"][0]["type"], "bfloat16");
    let bytes = std::fs::read(json["outputs"][0]["file"].as_str().unwrap()).unwrap();
    let (floats, _) = bytes[bytes.len() - 16..].as_chunks::<4>();
    for float in floats.iter().map(|it| f32::from_le_bytes(*it)) {
        assert_eq!(float.to_bits() & 0xFFFF, 0, "{float} is no upper half");
        assert!((-0.77..=0.0).contains(&float), "{float}");
    }
    assert_eq!(outcome(nnhal().arg("compare").arg(&model).args(["--fill", "random"])).0, 0);
}

#[test]
fn the_same_seed_gives_the_same_outputs() {
    let run = |seed: &str| {
        let mut command = nnhal();
        command.arg("run").arg(asset("digits_int8.tflite"));
        json_of(command.args(["--fill", "random", "--seed", seed, "--json"]))["outputs"].clone()
    };
    assert_eq!(run("1"), run("1"));
    assert_ne!(run("1"), run("2"));
}

#[test]
fn a_model_is_described() {
    let mut command = nnhal();
    command.arg("inspect").arg(asset("digits_int8.tflite"));
    let (code, stdout, _) = outcome(&mut command);
    assert_eq!(code, 0);
    assert!(stdout.contains("needs HAL 1.3"), "{stdout}");
    assert!(stdout.contains("DEPTHWISE_CONV_2D"), "{stdout}");
    let json = json_of(command.arg("--json"));
    let operations = json["operations"].as_array().unwrap();
    assert_eq!(json["devices"][0]["supported"], operations.len());
    assert!(json["constant_bytes"].as_u64().unwrap() > 1000);
}

#[test]
fn a_benchmark_ends_in_one_object() {
    let mut command = nnhal();
    command.arg("bench").arg(asset("digits_float32.tflite"));
    let json = json_of(command.args(["--threads", "1", "--runs", "5", "--warmup", "1", "--json"]));
    for name in ["median_us", "min_us", "p90_us", "prepare_us", "peak_rss_kb"] {
        assert!(json[name].as_f64().unwrap() > 0.0, "{name}: {json}");
    }
    assert!(json["min_us"].as_f64() <= json["median_us"].as_f64());
}

#[test]
fn a_benchmark_goes_on_for_a_time() {
    let mut command = nnhal();
    command.arg("bench").arg(asset("digits_float32.tflite")).args(["--threads", "1", "--json"]);
    let json = json_of(command.args(["--time", "0.2"]));
    assert!(json["elapsed_us"].as_f64() >= Some(200_000.0), "{json}");
    assert!(json["elapsed_us"].as_f64() < Some(5_000_000.0), "{json}");
    assert!(json["runs"].as_u64() > Some(100), "{json}");
    let (runs, elapsed) = (json["runs"].as_f64().unwrap(), json["elapsed_us"].as_f64().unwrap());
    let throughput = json["runs_per_second"].as_f64().unwrap();
    assert!((throughput * elapsed / 1e6 / runs - 1.0).abs() < 1e-3, "{json}");
    for (less, more) in [("min_us", "median_us"), ("p90_us", "p95_us"), ("p99_us", "max_us")] {
        assert!(json[less].as_f64() <= json[more].as_f64(), "{json}");
    }
}

#[test]
fn runs_are_shared_by_parallel_requests() {
    let mut command = nnhal();
    command.arg("bench").arg(asset("digits_float32.tflite")).args(["--threads", "1", "--json"]);
    let json = json_of(command.args(["--parallel", "3", "--runs", "301", "--warmup", "2"]));
    assert_eq!(json["runs"], 301);
    assert_eq!(json["parallel"], 3);
}

#[test]
fn a_benchmark_is_written_as_comma_separated_values() {
    let mut command = nnhal();
    command.arg("bench").arg(asset("digits_int8.tflite")).args(["--runs", "2", "--summary"]);
    let (code, stdout, stderr) = outcome(command.arg("--csv"));
    assert_eq!(code, 0, "{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let (names, values) = (fields(lines[0]), fields(lines[1]));
    assert_eq!(names.len(), values.len());
    assert!(values[0].ends_with("digits_int8.tflite"));
    let runs = names.iter().position(|name| name == "runs").unwrap();
    assert_eq!(values[runs], "2");
    assert_eq!((lines[2], lines[3]), ("", "by,name,steps,us,share"));
    let convolutions = lines.iter().find(|line| line.starts_with("operation,CONV_2D,")).unwrap();
    assert!(convolutions.starts_with("operation,CONV_2D,4,"), "{convolutions}");
    let shares = lines[4..].iter().filter(|line| line.starts_with("kernel,"));
    let shares: f64 = shares.map(|line| fields(line)[4].parse::<f64>().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{shares}");
    assert_eq!(outcome(command.arg("--json")).0, 2, "one or the other");
}

#[test]
fn loading_from_a_cache_file_is_measured_if_wanted() {
    let state = tempfile::tempdir().unwrap();
    let mut command = nnhal();
    command.env("XDG_STATE_HOME", state.path());
    command.args(["bench", "--runs", "1", "--json", "--cached"]).arg(asset("digits_int8.tflite"));
    assert!(json_of(&mut command)["load_us"].as_f64().unwrap() > 0.0);
}

#[test]
fn every_step_is_notified_with_the_kernels_that_it_could_have() {
    let mut command = nnhal();
    command.args(["inspect", "--alternatives", "--json"]).arg(asset("digits_float32.tflite"));
    command.env("NNHAL_INSTRUCTION_SET", "portable");
    let rows = json_of(&mut command);
    let steps = rows["steps"].as_array().unwrap();
    let is_convolution = |step: &&Value| step["type"] == "CONV_2D";
    let convolution = steps.iter().find(is_convolution).unwrap();
    let kernel = convolution["chosen"]["kernel"].as_str().unwrap();
    assert!(kernel.contains("portable"), "{kernel}");
    assert!(convolution["chosen"]["microseconds"].as_f64().unwrap() > 0.0);
    assert_eq!(convolution["others"].as_array().map(Vec::len), Some(0), "nothing is slower");
}

#[test]
fn a_device_agrees_with_itself() {
    let mut command = nnhal();
    command.arg("compare").arg(asset("digits_int8.tflite")).args(["--fill", "random"]);
    command.args(["--devices", "nnhal-reference,nnhal-reference"]);
    let json = json_of(command.arg("--json"));
    assert_eq!(json["agree"], true);
    assert!(json["compared"].as_u64().unwrap() >= 10);
}

#[test]
fn a_difference_is_said_of_outputs_first_and_then_of_the_step() {
    let mut command = nnhal();
    command.arg("compare").arg(asset("digits_float32.tflite")).args(["--fill", "random"]);
    let (code, stdout, _) = outcome(command.args(["--devices", "nnhal-reference,nnhal-cpu"]));
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("10 operations deep"), "{stdout}");
    assert!(stdout.contains("without Winograd's transforms they agree"), "{stdout}");
    assert!(stdout.contains("nearer to a run in double precision is nnhal-reference"), "{stdout}");
    let (code, stdout, _) = outcome(command.env("NNHAL_WINOGRAD", "off"));
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("Winograd's transforms: none are used"), "{stdout}");
    let (code, stdout, _) = outcome(command.env_remove("NNHAL_WINOGRAD").args(["--atol", "0"]));
    assert_eq!(code, 1);
    let lines: Vec<&str> = stdout.lines().collect();
    assert!(lines[0].contains("differ in 1 of 1 outputs"), "{stdout}");
    assert!(lines[1].contains("allowed 0, as was said"), "{stdout}");
    assert!(lines[2].starts_with("responsible is operation 0 (CONV_2D)"), "{stdout}");
    let (code, stdout, _) = outcome(command.arg("--json"));
    assert_eq!(code, 1);
    let json: Value = serde_json::from_str(&stdout).expect("one object");
    assert_eq!(json["agree"], false);
    assert_eq!(json["responsible"]["device"], "nnhal-cpu");
    assert_eq!(json["responsible"]["step"]["operation"], 0);
    assert_eq!(json["nearer"]["device"], "nnhal-reference");
}

#[test]
fn devices_are_listed() {
    let json = json_of(nnhal().args(["devices", "--json"]));
    for (index, name) in ["nnhal-cpu", "nnhal-reference"].into_iter().enumerate() {
        assert_eq!(json["devices"][index]["name"], name);
        assert!(json["devices"][index]["operations"].as_u64().unwrap() >= 100);
        assert_eq!(json["devices"][index]["extensions"][0], "org.nnhal.tflite");
    }
    let (_, text, _) = outcome(nnhal().arg("devices"));
    assert_eq!(text.matches("  extension org.nnhal.tflite\n").count(), 2, "{text}");
}

#[test]
fn the_version_is_that_of_the_program_by_its_name() {
    let expected = format!("nnhal {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(outcome(nnhal().arg("--version")), (0, expected, String::new()));
    let (_, of_command, _) = outcome(nnhal().args(["run", "--version"]));
    assert!(of_command.starts_with("nnhal-run ") || of_command.starts_with("nnhal run "));
}

#[test]
fn a_plan_is_notified_step_by_step_with_times_if_wanted() {
    let mut command = nnhal();
    command.args(["inspect", "--plan", "--json"]).arg(asset("digits_int8.tflite"));
    let plan = json_of(&mut command);
    let steps = plan["steps"].as_array().unwrap();
    let is_convolution = |step: &Value| step["type"] == "CONV_2D";
    assert!(steps.iter().any(|step| is_convolution(step) && step["arithmetic"].as_u64() > Some(0)));
    assert!(steps.iter().all(|step| step["microseconds"].is_null()));
    assert!(steps.iter().all(|step| step["estimated_microseconds"].as_f64().unwrap() > 0.0));
    assert!(plan["run_microseconds"].is_null());
    let profile = json_of(command.arg("--profile"));
    assert!(profile["run_microseconds"].as_f64() > Some(0.0));
    let profile = profile["steps"].as_array().unwrap();
    assert_eq!(profile.len(), steps.len());
    assert!(profile.iter().all(|step| step["microseconds"].as_f64().unwrap() >= 0.0));
    // The interpreter has no plan, but takes its time.
    command.args(["--device", "nnhal-reference"]);
    let interpreted = json_of(&mut command);
    let interpreted = interpreted["steps"].as_array().unwrap();
    assert_eq!(interpreted.len(), 12);
    assert!(interpreted.iter().all(|step| step["microseconds"].as_f64() > Some(0.0)));
}

#[test]
fn a_plan_of_open_lengths_is_that_of_the_example_and_says_so() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nnhal/tests/data/add.tflite");
    let plan = |arguments: &[&str]| {
        let mut command = nnhal();
        command.args(["inspect", "--plan"]).arg(&model).args(arguments);
        command
    };
    let (code, stdout, stderr) = outcome(&mut plan(&[]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("is taken to have shape [1, 4], as the file leaves"), "{stdout}");
    assert!(stdout.contains("\n1 steps"), "{stdout}");
    let shown = json_of(&mut plan(&["--json"]));
    assert_eq!(shown["assumed_shapes"].as_object().unwrap().len(), 2, "{shown}");
    assert_eq!(shown["steps"][0]["dimensions"], serde_json::json!([1, 4]));
    let names: Vec<String> = shown["assumed_shapes"].as_object().unwrap().keys().cloned().collect();
    let shapes = names.iter().flat_map(|name| ["--shape".into(), format!("{name}=3,4")]);
    let shapes: Vec<String> = shapes.collect();
    let shapes: Vec<&str> = shapes.iter().map(|it| &**it).chain(["--json"]).collect();
    let shown = json_of(&mut plan(&shapes));
    assert!(shown["assumed_shapes"].as_object().unwrap().is_empty(), "{shown}");
    assert_eq!(shown["steps"][0]["dimensions"], serde_json::json!([3, 4]));
}

#[test]
fn graphs_are_written_before_and_after_every_pass_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nnhal();
    command.args(["inspect", "--json", "--dump-passes"]).arg(folder.path());
    let files = json_of(command.arg(asset("digits_float32.tflite")));
    let files = files["files"].as_array().unwrap();
    assert_eq!(files.len(), 2 * 25, "the model and 24 passes");
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let model = read("00-model.txt");
    assert!(model.contains("= CONV_2D(input %"), "{model}");
    let convolutions = read("07-convolutions.txt");
    assert!(convolutions.contains("= convolution 3x3"), "{convolutions}");
    assert!(!convolutions.contains("= CONV_2D("), "{convolutions}");
    let dot = read("21-tables.dot");
    assert!(dot.starts_with("digraph {\n") && dot.ends_with("}\n"), "{dot}");
    assert!(dot.contains(" -> o0"), "{dot}");
}

#[test]
fn passes_that_are_switched_off_leave_reference_kernels_and_say_so() {
    let mut command = nnhal();
    command.args(["inspect", "--plan"]).arg(asset("digits_float32.tflite"));
    let (code, stdout, _) = outcome(command.env("NNHAL_PASSES_OFF", "convolutions"));
    assert_eq!(code, 0);
    assert!(
        stdout.contains("     on the reference kernel: pass convolutions is switched off\n"),
        "{stdout}"
    );
    let plan = json_of(command.arg("--json"));
    let steps = plan["steps"].as_array().unwrap();
    let is_slow = |step: &&Value| step["kernel"] == "reference";
    assert!(steps.iter().filter(is_slow).count() > 0, "{plan}");
    for step in steps {
        assert_eq!(step["kernel"] == "reference", step["why_reference"].is_string(), "{step}");
    }
    let mut command = nnhal();
    command.args(["inspect", "--plan"]).arg(asset("digits_float32.tflite"));
    let (code, _, stderr) = outcome(command.env("NNHAL_PASSES_OFF", "convolution"));
    assert_eq!(code, 3);
    assert!(stderr.contains("there is no pass \"convolution\""), "{stderr}");
}

#[test]
fn both_devices_read_the_same_digit() {
    for devices in ["nnhal-reference,nnhal-cpu", "nnhal-cpu,nnhal-reference"] {
        let mut command = nnhal();
        command.arg("compare").arg(asset("digits_int8.tflite")).args(["--fill", "random"]);
        let json = json_of(command.args(["--json", "--devices", devices]));
        assert_eq!(json["agree"], true);
        assert!(json["compared"].as_u64().unwrap() >= 4);
    }
}

#[test]
fn wrong_usage_is_distinguished_from_bad_files() {
    assert_eq!(outcome(nnhal().arg("no-such-command")).0, 2);
    assert_eq!(outcome(nnhal().args(["run", "/no/such/file.tflite"])).0, 3);
    for arguments in [
        &["run", "--device", "unknown"][..],
        &["inspect", "--device", "unknown"],
        &["compare", "--devices", "unknown,nnhal-cpu"],
    ] {
        let (code, _, stderr) =
            outcome(nnhal().args(arguments).arg(asset("digits_float32.tflite")));
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(
            stderr.contains("no device \"unknown\"; there are: nnhal-cpu, nnhal-reference"),
            "{stderr}"
        );
    }
    let mut command = nnhal();
    command.arg("run").arg(asset("digits_float32.tflite")).args(["--input", "unknown=x.npy"]);
    let (code, _, stderr) = outcome(&mut command);
    assert_eq!(code, 3);
    assert!(stderr.contains("serving_default_image"), "{stderr}");
}

#[test]
fn a_damaged_model_is_an_error_and_no_crash() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(asset("digits_float32.tflite")).unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("short", &whole[..100]),
        ("half", &whole[..whole.len() / 2]),
        ("text", b"this is not a model at all, whatever its name says"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (code, stdout, stderr) = outcome(nnhal().arg("run").arg(&path));
        assert_eq!((code, stdout.as_str()), (3, ""), "{name}: {stderr}");
        assert!(stderr.starts_with("nnhal: "), "{name}: {stderr}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_nnhal"))
        .args(["inspect"])
        .arg(asset("digits_float32.tflite"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn help_has_an_example() {
    for command in ["run", "inspect", "devices", "bench", "compare", "conformance"] {
        let (code, stdout, _) = outcome(nnhal().args([command, "--help"]));
        assert_eq!(code, 0);
        assert!(stdout.contains("Example"), "{command}");
    }
}

#[test]
fn an_output_that_is_full_or_closed_is_no_panic() {
    use std::process::Stdio;
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let closed = || std::io::pipe().unwrap().1;
    let program = || std::process::Command::new(env!("CARGO_BIN_EXE_nnhal"));
    let model = asset("digits_float32.tflite");
    // What it has to say cannot be said: that is an error, which cannot be said either.
    let mut command = program();
    command.arg("inspect").arg(&model).env("NNHAL_LOG", "trace").stdout(full()).stderr(full());
    assert_eq!(command.status().unwrap().code(), Some(3));
    // A reader that has gone away has seen enough.
    let mut command = program();
    command.arg("inspect").arg(&model).env("NNHAL_LOG", "trace");
    let status = command.stdout(closed()).stderr(closed()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    for arguments in [&["inspect", "/nowhere"][..], &["--no-such-thing"], &["--help"]] {
        let mut command = program();
        command.args(arguments).stdout(Stdio::null()).stderr(full());
        let code = command.status().unwrap().code();
        assert!(matches!(code, Some(0 | 2 | 3)), "{arguments:?}: {code:?}");
    }
}

#[test]
fn spans_say_how_long_each_part_took() {
    let spans = |level: &str| {
        let mut command = nnhal();
        command.arg("run").arg(asset("digits_float32.tflite")).env("NNHAL_LOG", level);
        let (code, _, stderr) = outcome(&mut command);
        assert_eq!(code, 0, "{stderr}");
        let of_span = |name: &str| {
            let is_of = |line: &&str| {
                line.contains(&format!("{name}{{")) || line.contains(&format!("{name}: nnhal"))
            };
            stderr.lines().filter(is_of).filter(|line| line.contains("time.busy=")).count()
        };
        ["import", "validate", "prepare", "pass", "lower", "step", "execute"].map(of_span)
    };
    let [import, validate, prepare, pass, lower, step, execute] = spans("trace");
    assert!(import >= 1 && validate >= 1 && prepare >= 1 && execute >= 1 && lower >= 1);
    assert!(pass >= 15, "{pass} passes");
    assert!(step >= 4, "{step} steps lowered");
    assert_eq!(spans("debug")[5], 0, "steps are for trace");
    assert_eq!(spans("warn"), [0; 7]);
}

#[test]
fn inputs_without_end_are_refused() {
    for (file, limit) in
        [("/dev/zero", "more than 256 bytes"), ("/dev/null", "0 bytes do not make a tensor")]
    {
        let mut command = nnhal();
        command.arg("run").arg(asset("digits_float32.tflite")).args(["--input", file]);
        let (code, _, stderr) = outcome(&mut command);
        assert_eq!(code, 3);
        assert!(stderr.contains(limit), "{stderr}");
    }
    let mut command = nnhal();
    command.arg("run").arg(asset("digits_float32.tflite")).args(["--labels", "/dev/zero"]);
    let (code, _, stderr) = outcome(&mut command);
    assert_eq!(code, 3);
    assert!(stderr.contains("which is the limit"), "{stderr}");
}
