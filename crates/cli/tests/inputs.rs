//! What the program is given, and what it answers where that makes no sense.

use assert_cmd::Command;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

fn asset(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name)
}

/// `nnhal run` of the digits' network, whose input is a picture of 8 by 8.
fn run(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.arg("run").arg(asset("digits_float32.tflite")).args(arguments);
    command
}

/// Exit code, standard output, standard error.
fn outcome(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn refusal(command: &mut Command, code: i32) -> String {
    let (found, stdout, stderr) = outcome(command);
    assert_eq!(found, code, "{stdout}{stderr}");
    stderr
}

fn best(command: &mut Command) -> u64 {
    let (code, stdout, stderr) = outcome(command.args(["--top", "1", "--json"]));
    assert_eq!(code, 0, "{stderr}");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    json["outputs"][0]["top"][0]["index"].as_u64().unwrap()
}

#[test]
fn numbers_that_make_no_sense_are_wrong_usage() {
    assert!(refusal(&mut run(&["--top", "0"]), 2).contains("--top"));
    assert!(refusal(&mut run(&["--std", "0"]), 2).contains("must not be 0"));
    assert!(refusal(&mut run(&["--std", "inf"]), 2).contains("finite"));
    assert!(refusal(&mut run(&["--mean", "nan"]), 2).contains("finite"));
    assert!(refusal(&mut run(&["--threads", "0"]), 2).contains("--threads"));
}

#[test]
fn options_that_have_no_effect_are_wrong_usage() {
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        refusal(command.args(arguments).arg(asset("digits_float32.tflite")), 2)
    };
    for command in ["run", "bench"] {
        let why = refused(&[command, "--threads", "2", "--device", "nnhal-reference"]);
        assert!(
            why.contains("--threads 2 has no effect: nnhal-reference always uses one"),
            "{why}"
        );
        let why = refused(&[command, "--threads", "1", "--device", "unix:/nowhere"]);
        assert!(why.contains("unix:/nowhere is of another process, which says itself"), "{why}");
    }
    let both = "nnhal-reference,nnhal-reference";
    assert!(refused(&["compare", "--threads", "2", "--devices", both]).contains("no effect"));
    let why = refused(&["inspect", "--plan", "--threads", "2", "--device", "nnhal-reference"]);
    assert!(why.contains("always uses one"), "{why}");
    assert!(refused(&["inspect", "--threads", "2"]).contains("without --plan"));
    for option in ["--alternatives", "--dump-passes=/nowhere"] {
        let why = refused(&["inspect", option, "--device", "nnhal-reference"]);
        assert!(why.contains("--device nnhal-reference has no effect"), "{why}");
        assert!(why.contains("what only nnhal-cpu has"), "{why}");
    }
    // What it does anyway may be said.
    let (code, stdout, stderr) =
        outcome(&mut run(&["--threads", "1", "--device", "nnhal-reference"]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.args(["bench", "--device", "nnhal-reference", "--runs", "1", "--warmup", "0"]);
    let (_, stdout, _) = outcome(command.arg(asset("digits_float32.tflite")));
    assert!(stdout.contains("nnhal-reference, 1 thread, 1 runs"), "{stdout}");
}

#[test]
fn a_shape_that_is_given_twice_is_refused() {
    let shape = "1,8,8,1";
    for first in [shape, "serving_default_image:0=1,8,8,1"] {
        let why = refusal(&mut run(&["--shape", first, "--shape", shape]), 3);
        assert!(why.contains("the shape of input"), "{why}");
        assert!(why.contains("is given twice"), "{why}");
    }
}

#[test]
fn arguments_that_are_no_text_are_errors_that_say_so() {
    use std::os::unix::ffi::OsStrExt;
    let other = std::ffi::OsStr::from_bytes(b"caf\xe9");
    for option in ["--device", "--shape", "--input", "--signature", "--threads"] {
        let why = refusal(run(&[option]).arg(other), 2);
        assert!(why.contains("UTF-8"), "{option}: {why}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    let why = refusal(command.arg("run").arg(other), 3);
    assert!(why.contains("No such file"), "{why}");
    // Names of files may be.
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join(other);
    std::fs::copy(asset("digits_float32.tflite"), &model).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command
        .arg("run")
        .arg(&model)
        .arg("--output-dir")
        .arg(folder.path().join(other).with_extension("d"));
    let (code, _, stderr) = outcome(&mut command);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn more_threads_than_processors_can_run_are_not_made() {
    let (code, _, stderr) = outcome(&mut run(&["--threads", "60000"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("instead of 60000"), "{stderr}");
}

#[test]
fn a_prepared_model_is_kept_for_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let command = || {
        let mut command = run(&["--json", "--cache-dir"]);
        command.arg(&kept);
        command
    };
    let mut results = Vec::new();
    for is_from_cache in [false, true, true] {
        let (code, stdout, stderr) = outcome(&mut command());
        assert_eq!(code, 0, "{stderr}");
        let json: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(json["is_from_cache"], is_from_cache);
        results.push(json["outputs"].clone());
    }
    assert!(results[0] == results[1] && results[0] == results[2]);
    let (_, text, _) = outcome(run(&["--cache-dir"]).arg(&kept));
    assert!(text.contains("loaded, prepared before, in"), "{text}");
    // Without a place for the key that prepared models are signed with, none are kept, which is said.
    let mut homeless = command();
    homeless.env_remove("HOME").env_remove("XDG_STATE_HOME");
    let (code, stdout, stderr) = outcome(&mut homeless);
    assert_eq!(code, 0, "{stderr}");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["is_from_cache"], false);
    assert!(json["note"].as_str().unwrap().contains("cannot keep"), "{}", json["note"]);
    // A folder that cannot be one is an error that names it.
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let stderr = refusal(run(&["--cache-dir"]).arg(&file), 3);
    assert!(stderr.contains(file.to_str().unwrap()), "{stderr}");
}

#[test]
fn labels_that_no_output_has_are_said_so() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "cat\ndog\n").unwrap();
    let (code, stdout, _) = outcome(run(&["--labels"]).arg(file.path()));
    assert_eq!(code, 0);
    assert!(
        stdout.contains("the labels are 2, and no output has that number of elements"),
        "{stdout}"
    );
}

#[test]
fn pictures_and_models_come_through_pipes() {
    let picture = std::fs::read(asset("digit_7.png")).unwrap();
    assert_eq!(best(run(&["--input", "-"]).write_stdin(picture)), 7);
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.args(["run", "-", "--input"]).arg(asset("digit_7.png"));
    let model = std::fs::read(asset("digits_float32.tflite")).unwrap();
    assert_eq!(best(command.write_stdin(model.clone())), 7);
    // By another name, and by that of a pipe.
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("model");
    for (name, is_fifo) in [(Path::new("/dev/stdin"), false), (&*fifo, true)] {
        if is_fifo {
            let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
            assert!(made.success());
            let (path, model) = (fifo.clone(), model.clone());
            std::thread::spawn(move || std::fs::write(path, model).unwrap());
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        command.arg("run").arg(name).arg("--input").arg(asset("digit_7.png"));
        assert_eq!(best(command.write_stdin(model.clone())), 7, "{}", name.display());
    }
    // One thing only.
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.args(["run", "-", "--input", "/dev/stdin"]);
    let why = refusal(command.write_stdin(model), 3);
    assert!(why.contains("can be one thing only, and - and /dev/stdin are given"), "{why}");
}

#[test]
fn what_is_no_model_is_not_read_to_the_end() {
    for arguments in [&["run", "/dev/stdin"][..], &["inspect", "-"]] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nnhal"));
        let endless = std::fs::File::open("/dev/zero").unwrap();
        let output = command.args(arguments).stdin(endless).output().unwrap();
        let why = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{why}");
        assert!(why.contains("not \"TFL3\""), "{why}");
    }
}

/// A `.npy` file.
fn npy(descr: &str, fortran: bool, shape: &str, bytes: &[u8]) -> tempfile::TempPath {
    let fortran = if fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    let file = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
    let all = [&b"\x93NUMPY\x01\x00"[..], &length, header.as_bytes(), bytes].concat();
    std::fs::write(file.path(), all).unwrap();
    file.into_temp_path()
}

#[test]
fn arrays_of_other_types_orders_and_ranks_are_converted() {
    let picture = image_of_seven();
    let integers: Vec<u8> =
        picture.iter().flat_map(|it| i64::from(*it / 255).to_le_bytes()).collect();
    let reals: Vec<u8> =
        picture.iter().flat_map(|it| (f64::from(*it) / 255.0).to_be_bytes()).collect();
    let columns: Vec<u8> = (0..64)
        .map(|at| picture[at % 8 * 8 + at / 8])
        .flat_map(|it| (f32::from(it) / 255.0).to_le_bytes())
        .collect();
    let file = npy("<i8", false, "(1, 8, 8, 1)", &integers);
    let (code, _, stderr) = outcome(run(&["--input"]).arg(&file));
    assert_eq!(code, 0, "{stderr}");
    let path = npy(">f8", false, "(8, 8, 1)", &reals);
    assert_eq!(best(run(&["--input"]).arg(&path)), 7);
    let path = npy("<f4", true, "(8, 8, 1)", &columns);
    assert_eq!(best(run(&["--input"]).arg(&path)), 7);
}

#[test]
fn arrays_that_are_no_numbers_or_do_not_fit_are_refused_with_the_reason() {
    let complex = npy("<c8", false, "(1, 8, 8, 1)", &[0; 512]);
    let refused = refusal(run(&["--input"]).arg(&complex), 3);
    assert!(refused.contains("elements are complex64, expected float32"), "{refused}");
    let flat = npy("<f4", false, "(64,)", &[0; 256]);
    let text = refusal(run(&["--input"]).arg(&flat), 3);
    assert!(text.contains("shape is [64], expected [1, 8, 8, 1]"), "{text}");
}

/// The pixels of a seven: 8 by 8, grey.
fn image_of_seven() -> Vec<u8> {
    image::open(asset("digit_7.png")).unwrap().to_luma8().into_raw()
}

#[test]
fn errors_are_one_object_too() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    let (code, stdout, stderr) = outcome(command.args(["run", "nosuch.tflite", "--json"]));
    assert_eq!(code, 3);
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["exit_code"], 3);
    assert!(stderr.contains(json["error"].as_str().unwrap()), "{stderr}");
}

#[test]
fn wrong_usage_is_one_object_too() {
    for (wrong, what) in [
        (&["bench", "model.tflite", "--json", "--nosuch"][..], "--nosuch"),
        (&["run", "--json"], "MODEL"),
        (&["run", "model.tflite", "--threads", "many", "--json"], "many"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        let (code, stdout, stderr) = outcome(command.args(wrong));
        assert_eq!(code, 2, "{wrong:?}");
        let json: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(json["exit_code"], 2, "{wrong:?}");
        let error = json["error"].as_str().unwrap();
        assert!(error.contains(what) && stderr.contains(error), "{error}\n{stderr}");
    }
    // What is wrong for people only is on standard error only, and help is no error.
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    let (code, stdout, _) = outcome(command.args(["run", "model.tflite", "--nosuch"]));
    assert_eq!((code, stdout.as_str()), (2, ""));
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    let (code, stdout, _) = outcome(command.args(["run", "--json", "--help"]));
    assert!(code == 0 && stdout.contains("Usage"), "{stdout}");
}

#[test]
fn every_file_is_described() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.arg("inspect").arg(asset("digits_int8.tflite"));
    let (code, stdout, _) = outcome(&mut command);
    assert_eq!(code, 0);
    assert!(stdout.contains("signature serving_default, subgraph 0: image -> "), "{stdout}");
    assert!(stdout.contains("stride_w: "), "{stdout}");
    let json: Value = serde_json::from_str(&outcome(command.arg("--json")).1).unwrap();
    assert_eq!(json["file"]["signatures"][0]["name"], "serving_default");
    assert_eq!(json["refused"], Value::Null);
    assert!(json["file"]["operator_counts"][0]["count"].as_u64().unwrap() > 0);
}

/// A JPEG that a camera would write: on its side, with an orientation that says so.
#[test]
fn pictures_are_turned_as_they_say_and_cut_off_ones_are_refused() {
    let seven = image::open(asset("digit_7.png")).unwrap().resize_exact(
        64,
        64,
        image::imageops::FilterType::Nearest,
    );
    let file = |image: &image::DynamicImage, orientation: Option<u8>| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.to_rgb8().write_to(&mut bytes, image::ImageFormat::Jpeg).unwrap();
        let mut bytes = bytes.into_inner();
        if let Some(orientation) = orientation {
            // APP1: a TIFF header, and a directory of one entry: tag 0x112, a short.
            let tiff = [
                &b"Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..],
                &[orientation, 0, 0, 0, 0, 0, 0],
            ]
            .concat();
            let length = u16::try_from(tiff.len() + 2).unwrap().to_be_bytes();
            bytes.splice(2..2, [&[0xFF, 0xE1], &length[..], &tiff].concat());
        }
        let path = tempfile::Builder::new().suffix(".jpg").tempfile().unwrap().into_temp_path();
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let path = file(&seven, None);
    assert_eq!(best(run(&["--input"]).arg(&path)), 7);
    // Orientation 6: it is shown after a quarter turn clockwise.
    let turned = seven.rotate270();
    let path = file(&turned, Some(6));
    assert_eq!(best(run(&["--input"]).arg(&path)), 7);
    let path = file(&turned, None);
    assert_ne!(best(run(&["--input"]).arg(&path)), 7);
    let whole = file(&seven, None);
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&whole, &bytes[..bytes.len() * 3 / 4]).unwrap();
    let text = refusal(run(&["--input"]).arg(&whole), 3);
    assert!(text.contains("breaks off"), "{text}");
    for (format, ending) in [
        (image::ImageFormat::Bmp, ".bmp"),
        (image::ImageFormat::Tiff, ".tiff"),
        (image::ImageFormat::WebP, ".webp"),
    ] {
        let path = tempfile::Builder::new().suffix(ending).tempfile().unwrap().into_temp_path();
        seven.to_rgb8().save_with_format(&path, format).unwrap();
        assert_eq!(best(run(&["--input"]).arg(&path)), 7, "{ending}");
    }
}

/// A layer of floats with 8-bit weights, which `dynamic_range_layer` of the tests in crates/python writes.
#[test]
fn weights_of_8_bits_beside_floats_are_dequantized_if_asked_for() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dynamic_range.tflite");
    let plan = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        let (code, stdout, stderr) =
            outcome(command.arg("inspect").arg(&model).arg("--profile").args(arguments));
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    assert!(plan(&[]).contains("dynamic fully connected"), "{}", plan(&[]));
    let exact = plan(&["--dequantized-weights"]);
    assert!(exact.contains("fully connected") && !exact.contains("dynamic fully"), "{exact}");
}

/// Steps may take other times for other values and shapes.
#[test]
fn a_profile_is_of_the_values_that_are_given() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dynamic_range.tflite");
    let rows = npy("<f4", false, "(2, 3)", &[1.0_f32.to_le_bytes(); 6].concat());
    let inspect = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        command.arg("inspect").arg(&model).args(arguments).arg("--input").arg(&rows);
        outcome(&mut command)
    };
    for how in ["--plan", "--profile", "--alternatives"] {
        // The file says one row, which `--shape` contradicts.
        let (code, _, stderr) = inspect(&[how]);
        assert!(code == 3 && stderr.contains("[2, 3]"), "{code}: {stderr}");
        let (code, stdout, stderr) = inspect(&[how, "--shape", "2,3"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.contains(" 2x"), "{stdout}");
        assert_eq!(stdout.contains("a run as a whole takes"), how == "--profile", "{stdout}");
    }
    let (code, _, stderr) = inspect(&["--shape", "2,3"]);
    assert!(code == 2 && stderr.contains("no effect"), "{code}: {stderr}");
}

/// Its model says one row.
#[test]
fn a_file_is_compared_with_the_shape_that_is_asked_for() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dynamic_range.tflite");
    let rows = npy("<f4", false, "(2, 3)", &[1.0_f32.to_le_bytes(); 6].concat());
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        command.arg("run").arg(&model).args(arguments).arg("--input").arg(&rows);
        command
    };
    let (code, stdout, stderr) = outcome(&mut command(&["--shape", "2,3"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("2x2"), "{stdout}");
    let refused = refusal(&mut command(&["--shape", "3,3"]), 3);
    assert!(refused.contains("shape is [2, 3], expected [3, 3]"), "{refused}");
    let refused = refusal(&mut command(&[]), 3);
    assert!(refused.contains("shape is [2, 3], expected [1, 3]"), "{refused}");
}

/// Sums of four neighbours, which the shape of the file's example does not have; `sums_of_four` of the tests in
/// crates/python writes it.
#[test]
fn a_model_that_its_examples_shape_does_not_fit_runs_at_others() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sums_of_four.tflite");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        command.arg(arguments[0]).arg(&model).args(&arguments[1..]);
        command
    };
    // A graph can be made of it with an open length, which no device takes where the example's is meant.
    let refused = refusal(&mut command(&["run"]), 4);
    assert!(refused.contains("CONV_2D") && refused.contains("4 wide"), "{refused}");
    assert!(
        refused.ends_with("others than those of the file's example may do: --shape\n"),
        "{refused}"
    );
    for first in ["run", "compare"] {
        let (code, stdout, stderr) = outcome(&mut command(&[first, "--shape", "1,1,6,1"]));
        assert_eq!(code, 0, "{stdout}{stderr}");
        assert!(stdout.contains("1x1x3x1"), "{stdout}");
    }
    let mut file = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 5, 1), }";
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    file.write_all(&[b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat()).unwrap();
    file.write_all(&[1.0_f32, 2.0, 3.0, 4.0, 5.0].map(f32::to_le_bytes).concat()).unwrap();
    let input = file.path().to_str().unwrap();
    let (code, stdout, stderr) = outcome(&mut command(&["run", "--input", input]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("min 10.000000, max 14.000000"), "{stdout}");
}

/// The same with an operator behind it that wants every length known, so that the import itself does not take the example, and
/// chooses another one.
#[test]
fn a_model_that_cannot_be_imported_for_its_examples_shape_has_another_and_is_run_at_others() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/unpacked_sums_of_four.tflite");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
        command.arg(arguments[0]).arg(&model).args(&arguments[1..]);
        command
    };
    let (code, stdout, stderr) = outcome(&mut command(&["run"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("input  x (float32 1x1x8x1)"), "{stdout}");
    assert!(stdout.contains("output z (float32 1x5x1)"), "{stdout}");
    let (code, stdout, stderr) = outcome(&mut command(&["run", "--shape", "1,1,6,1"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("output z (float32 1x3x1)"), "{stdout}");
    let (code, stdout, _) = outcome(&mut command(&["inspect"]));
    assert_eq!(code, 0);
    assert!(stdout.contains("1x1x5x1"), "{stdout}");
    let (code, stdout, stderr) = outcome(&mut command(&["inspect", "--shape", "1,1,6,1"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("1x1x3x1"), "{stdout}");
    let (code, stdout, stderr) =
        outcome(&mut command(&["inspect", "--plan", "--shape", "1,1,6,1"]));
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("conv2d"), "{stdout}");
    // The third one is of another length than the filter has.
    assert!(refusal(&mut command(&["run", "--shape", "1,1,3,1"]), 3).contains("4 wide"));
}

#[test]
fn files_without_a_name_for_what_they_are_are_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let picture = of("picture", &std::fs::read(asset("digit_7.png")).unwrap());
    assert_eq!(best(run(&["--input"]).arg(&picture)), 7);
    let array = npy("<f4", false, "(1, 8, 8, 1)", &[0; 4 * 64]);
    let array = of("array", &std::fs::read(&array).unwrap());
    assert_eq!(outcome(run(&["--input"]).arg(&array)).0, 0);
    // As many bytes as the input has are the input, whatever they begin with.
    let raw = of("raw", &[b"BM", &[0; 4 * 64 - 2][..]].concat());
    assert_eq!(outcome(run(&["--input"]).arg(&raw)).0, 0);
    let archive = refusal(run(&["--input"]).arg(of("many.npz", b"PK\x03\x04 and so on")), 3);
    assert!(archive.contains("can be given one by one"), "{archive}");
    let other = refusal(run(&["--input"]).arg(of("picture.gif", b"GIF89a and so on, more")), 3);
    assert!(other.contains("PNG, JPEG, BMP, WebP and TIFF"), "{other}");
    let text = refusal(run(&["--input"]).arg(of("text", b"neither")), 3);
    assert!(text.contains("7 bytes do not make a tensor"), "{text}");
}

#[test]
fn standard_input_is_one_thing_only() {
    let model = std::fs::read(asset("digits_float32.tflite")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
    command.args(["run", "-", "--input", "-"]).write_stdin(model);
    let refused = refusal(&mut command, 3);
    assert!(refused.contains("- is given twice"), "{refused}");
}

#[test]
fn what_was_converted_is_said_so() {
    let integers = npy("<i4", false, "(1, 8, 8, 1)", &[0; 4 * 64]);
    let (code, stdout, _) = outcome(run(&["--input"]).arg(&*integers));
    assert_eq!(code, 0);
    assert!(stdout.contains("(float32 1x8x8x1)"), "{stdout}");
    assert!(stdout.contains("converted from int32"), "{stdout}");
}

#[test]
fn two_devices_are_two_names() {
    for first in ["compare", "inspect"] {
        for names in ["nnhal-cpu", "nnhal-cpu,", "a,b,c"] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_nnhal"));
            command.arg(first).arg(asset("digits_float32.tflite")).args(["--devices", names]);
            if first == "inspect" {
                command.args(["--html", "page.html"]);
            }
            assert!(refusal(&mut command, 2).contains("two names"));
        }
    }
}
