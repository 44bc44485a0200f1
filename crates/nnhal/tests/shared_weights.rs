//! Weights that sessions have in common: of one process, and of several.

use nnhal::hal::memory::WeightPool;
use nnhal::hal::{OperandSpec, OperationType, SubgraphBuilder};
use nnhal::{Model, SessionOptions, Tensor};
use std::collections::BTreeSet;
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

/// Of the memory files with weights that this process has mapped: their numbers.
#[cfg(target_os = "linux")]
fn mapped() -> BTreeSet<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let sealed = maps.lines().filter(|line| line.contains("memfd:nnhal-sealed"));
    sealed.map(|line| line.split_whitespace().nth(4).unwrap().to_owned()).collect()
}

/// What a process of its own does, with the folder of prepared models: tells which memory it has mapped.
#[test]
#[cfg(target_os = "linux")]
fn other_process() {
    let Some(folder) = std::env::var_os("NNHAL_TEST_FOLDER") else { return };
    let session = Model::load(&*digits()).unwrap();
    let options = SessionOptions::new().threads(1).cache_dir(folder).share_weights(true);
    let session = session.session(options).unwrap();
    let mapped: Vec<String> = mapped().into_iter().collect();
    println!("from cache {} mapped {}", session.is_from_cache(), mapped.join(","));
}

#[test]
#[cfg(target_os = "linux")]
fn processes_have_the_same_pages_and_results() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load(&*digits()).unwrap();
    let input = [vec![0.25_f32; 64]];
    let options = SessionOptions::new().threads(1);
    let expected = model.session(options.clone()).unwrap().run(&input).unwrap()[0].clone();
    let options = options.cache_dir(folder.path()).share_weights(true);
    let first = model.session(options.clone()).unwrap();
    assert!(!first.is_from_cache());
    let memory = mapped();
    assert_eq!(memory.len(), 1);
    let second = model.session(options.clone()).unwrap();
    assert!(second.is_from_cache());
    assert_eq!(mapped(), memory, "the same memory");
    for session in [&first, &second] {
        assert_eq!(session.run(&input).unwrap()[0].as_bytes(), expected.as_bytes());
    }
    let ask = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "other_process", "--nocapture"]);
        let output = command.env("NNHAL_TEST_FOLDER", folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said = ask();
    let number = memory.first().unwrap();
    assert!(said.contains(&format!("from cache true mapped {number}\n")), "{said}: not {number}");
    // The one that made it may go.
    drop(first);
    assert!(ask().contains(&format!("mapped {number}\n")));
    drop(second);
    assert!(mapped().is_empty());
    assert!(ask().contains("from cache true"), "made anew of the file");
    let files = || std::fs::read_dir(folder.path()).unwrap().flatten().map(|it| it.path());
    let names = files().find(|it| it.extension().is_some_and(|it| it == "shared")).unwrap();
    assert_eq!(std::fs::read_dir(names).unwrap().count(), 0, "nothing is left");
    // A prepared model that was spoilt is prepared anew.
    let kept = files().find(|it| it.extension().is_some_and(|it| it == "nnhal")).unwrap();
    let mut bytes = std::fs::read(&kept).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    std::fs::write(&kept, bytes).unwrap();
    let again = model.session(options).unwrap();
    assert!(!again.is_from_cache());
    assert_eq!(again.run(&input).unwrap()[0].as_bytes(), expected.as_bytes());
    assert_eq!(mapped().len(), 1);
}
