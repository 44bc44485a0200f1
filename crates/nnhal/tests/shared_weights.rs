//! Weights that sessions have in common: of one process, and of several.

use nnhal::hal::memory::WeightPool;
use nnhal::hal::{OperandSpec, OperationType, SubgraphBuilder};
use nnhal::{Model, Session, SessionOptions, Tensor};
use std::collections::BTreeSet;
use std::fs::{File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const INPUTS: u32 = 256;
const OUTPUTS: u32 = 1024;
/// Of the matrix.
const BYTES: u64 = 4 * INPUTS as u64 * OUTPUTS as u64;

/// A matrix product of this many rows.
fn product(rows: u32) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([rows, INPUTS]));
    let values: Vec<f32> = (0..INPUTS * OUTPUTS).map(|it| (it % 1013) as f32 / 1013.0).collect();
    let weights = graph.constant(OperandSpec::tensor_float32([OUTPUTS, INPUTS]), &values);
    let zeros = vec![0.0_f32; OUTPUTS as usize];
    let bias = graph.constant(OperandSpec::tensor_float32([OUTPUTS]), &zeros);
    let none = graph.scalar_i32(0);
    let spec = OperandSpec::tensor_float32([rows, OUTPUTS]);
    let y = graph.operation(OperationType::FullyConnected, [x, weights, bias, none], spec);
    graph.output(y);
    Model::from_hal(graph.into_model().unwrap()).unwrap()
}

fn values(rows: u32) -> Tensor {
    let reals: Vec<f32> = (0..rows * INPUTS).map(|it| (it % 7) as f32 - 3.0).collect();
    Tensor::from_reals(nnhal::DataType::Float32, [rows as usize, INPUTS as usize], None, &reals)
        .unwrap()
}

#[test]
fn sessions_for_several_numbers_of_rows_have_their_weights_once() {
    let pool = WeightPool::new();
    let options = SessionOptions::new().threads(1);
    let mut sessions = Vec::new();
    for rows in [4, 8, 16, 32] {
        let shared = product(rows).session(options.clone().weights_in(&pool)).unwrap();
        let alone = product(rows).session(options.clone()).unwrap();
        let input = [values(rows)];
        assert_eq!(
            shared.run(&input).unwrap()[0].as_bytes(),
            alone.run(&input).unwrap()[0].as_bytes(),
            "{rows} rows"
        );
        sessions.push(shared);
    }
    let found = pool.bytes();
    assert!(found >= BYTES, "{found}");
    assert!(found < 2 * BYTES, "{found} bytes for {} sessions", sessions.len());
    assert!(pool.saved_bytes() >= 2 * BYTES, "{}", pool.saved_bytes());
    drop(sessions);
    assert_eq!(pool.bytes(), 0);
}

fn digits() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits/digits_float32.tflite")
}

/// The files of a folder that this process has mapped: their numbers.
#[cfg(target_os = "linux")]
fn mapped(folder: &Path) -> BTreeSet<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = maps.lines().filter(|line| line.contains(folder.to_str().unwrap()));
    own.map(|line| line.split_whitespace().nth(4).unwrap().to_owned()).collect()
}

/// The one prepared model in a folder.
fn kept(folder: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(folder).unwrap().flatten().map(|it| it.path());
    files.find(|it| it.extension().is_some_and(|it| it == "nnhal")).unwrap()
}

/// What a process of its own does, with the folder of prepared models: tells which files of it it has mapped.
#[test]
#[cfg(target_os = "linux")]
fn other_process() {
    let Some(folder) = std::env::var_os("NNHAL_TEST_FOLDER").map(PathBuf::from) else { return };
    let session = Model::load(&*digits()).unwrap();
    let options = SessionOptions::new().threads(1).cache_dir(&folder).share_weights(true);
    let session = session.session(options).unwrap();
    let mapped: Vec<String> = mapped(&folder).into_iter().collect();
    println!("from cache {} mapped {}", session.is_from_cache(), mapped.join(","));
}

#[test]
#[cfg(target_os = "linux")]
fn processes_have_the_same_pages_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let mapped = || mapped(folder.path());
    let model = Model::load(&*digits()).unwrap();
    let input = [vec![0.25_f32; 64]];
    let options = SessionOptions::new().threads(1);
    let expected = model.session(options.clone()).unwrap().run(&input).unwrap()[0].clone();
    let expect = |session: &Session| {
        assert_eq!(session.run(&input).unwrap()[0].as_bytes(), expected.as_bytes());
    };
    let options = options.cache_dir(folder.path()).share_weights(true);
    let first = model.session(options.clone()).unwrap();
    assert!(!first.is_from_cache());
    let file = mapped();
    assert_eq!(file.len(), 1);
    let second = model.session(options.clone()).unwrap();
    assert!(second.is_from_cache());
    assert_eq!(mapped(), file, "the same file");
    expect(&first);
    expect(&second);
    let ask = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "other_process", "--nocapture"]);
        let output = command.env("NNHAL_TEST_FOLDER", folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said = ask();
    let number = file.first().unwrap();
    assert!(said.contains(&format!("from cache true mapped {number}\n")), "{said}: not {number}");
    // The one that made it may go, and then all.
    drop(first);
    expect(&second);
    drop(second);
    assert!(mapped().is_empty());
    assert!(ask().contains(&format!("from cache true mapped {number}\n")));
    // One that is replaced meanwhile keeps its file.
    let third = model.session(options.clone()).unwrap();
    std::fs::remove_file(kept(folder.path())).unwrap();
    let fourth = model.session(options).unwrap();
    assert!(third.is_from_cache() && !fourth.is_from_cache());
    assert_eq!(mapped().len(), 2);
    expect(&third);
    expect(&fourth);
}

#[test]
#[cfg(target_os = "linux")]
fn files_that_others_may_write_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(&*digits()).unwrap();
    let options = SessionOptions::new().threads(1).cache_dir(folder.path()).share_weights(true);
    drop(model.session(options.clone()).unwrap());
    let file = kept(folder.path());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, Permissions::from_mode(0o620)).unwrap();
    for _ in 0..3 {
        let session = model.session(options.clone()).unwrap();
        assert!(session.is_from_cache());
        assert_eq!(mapped(folder.path()).len(), 0);
        session.run([&vec![0.25_f32; 64]]).unwrap();
    }
}

/// Whatever is done to a file between two sessions, however soon, and whatever its times and length say.
#[test]
fn a_prepared_model_that_was_spoilt_is_prepared_anew() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(&*digits()).unwrap();
    let input = [vec![0.25_f32; 64]];
    let options = || SessionOptions::new().threads(1).cache_dir(folder.path());
    let expected = model.session(options()).unwrap().run(&input).unwrap()[0].clone();
    let whole = std::fs::read(kept(folder.path())).unwrap();
    for (round, shares) in [false, true, false, true].into_iter().enumerate() {
        // The one that was written just now is known, and one that was read once.
        for is_from_cache in [true, true] {
            let session = model.session(options().share_weights(shares)).unwrap();
            assert_eq!(session.is_from_cache(), is_from_cache);
        }
        let file = kept(folder.path());
        let modified = file.metadata().unwrap().modified().unwrap();
        let mut bytes = whole.clone();
        let at = bytes.len() / 8 * (2 * round + 1);
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let times = FileTimes::new().set_modified(modified);
        File::options().write(true).open(&file).unwrap().set_times(times).unwrap();
        let session = model.session(options().share_weights(shares)).unwrap();
        assert!(!session.is_from_cache(), "byte {at} of {}", whole.len());
        assert_eq!(session.run(&input).unwrap()[0].as_bytes(), expected.as_bytes());
    }
}

/// A model's file that is changed in place between two sessions is another model, however soon it is changed.
#[test]
fn a_model_that_was_changed_is_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.tflite");
    let mut bytes = std::fs::read(digits()).unwrap();
    // Behind the model, so that it stays one; and so long that its hash is remembered.
    bytes.resize(bytes.len() + (1 << 19), 0);
    std::fs::write(&path, &bytes).unwrap();
    let is_from_cache = || {
        let options = SessionOptions::new().threads(1).cache_dir(folder.path().join("kept"));
        Model::load(&*path).unwrap().session(options).unwrap().is_from_cache()
    };
    assert_eq!([is_from_cache(), is_from_cache(), is_from_cache()], [false, true, true]);
    for at in [bytes.len() - 1, bytes.len() - (1 << 18)] {
        bytes[at] ^= 1;
        let modified = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let times = FileTimes::new().set_modified(modified);
        File::options().write(true).open(&path).unwrap().set_times(times).unwrap();
        assert_eq!([is_from_cache(), is_from_cache()], [false, true]);
    }
}
