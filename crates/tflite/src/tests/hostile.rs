//! Files that are: always an error or a model, never a panic, a hang or a huge allocation.

use super::draft::{Draft, identified};
use super::mapping::{
    conditional, dynamic_range_layer, int8_convolution, integer_sequence_lstm, sequence_lstm,
    sequence_rnn, sparse_layer,
};
use super::variables::variable_in_a_branch;
use super::wide;
use crate::schema::{
    ActivationFunctionType, Buffer, BuiltinOperator as B, BuiltinOptions, DimensionMetadata,
    IfOptions, Int32Vector, Model, OperatorCode, SparseIndexVector, SparsityParameters,
    StridedSliceOptions, SubGraph, TensorType as T, Uint8Vector, WhileOptions,
};
use crate::{ImportError, import_bytes};
use nnhal_hal::HalVersion;
use planus::{Builder, WriteAsOffset};
use proptest::prelude::*;
use rustix::fs::{FileType, Mode};
use std::time::{Duration, Instant};

/// Small files that between them take most ways through the import.
fn files() -> Vec<Vec<u8>> {
    [
        int8_convolution(),
        dynamic_range_layer(),
        sparse_layer(),
        conditional(),
        sequence_rnn(ActivationFunctionType::Tanh),
        integer_sequence_lstm(2),
        sequence_lstm(),
        variable_in_a_branch(),
        wide::convolution(T::Int64, &[1; 16], 2),
    ]
    .iter()
    .map(Draft::bytes)
    .collect()
}

/// Imports; what comes out must be something that the validator can look at.
fn survive(bytes: &[u8]) {
    if let Ok(import) = import_bytes(bytes) {
        let _ = nnhal_ops::validate(&import.model, HalVersion::LATEST);
    }
}

fn malformed(draft: &Draft) -> String {
    match import_bytes(&draft.bytes()) {
        Err(error @ ImportError::Malformed { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sec_every_truncation_is_survived() {
    for file in files() {
        for length in 0..file.len() {
            survive(&file[..length]);
        }
    }
}

#[test]
fn sec_every_word_can_be_any_extreme() {
    for file in files() {
        for at in 0..file.len() - 4 {
            for word in [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 0xFFFF_FFFF_u32] {
                // Offsets and lengths are aligned; the others take every third place.
                if at % 4 == 0 || at % 3 == 0 && word == 0xFFFF_FFFF {
                    let mut bytes = file.clone();
                    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
                    survive(&bytes);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn sec_flipped_bytes_are_survived(
        which in 0..8_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut file = files().swap_remove(which);
        for (at, byte) in flips {
            let at = at.index(file.len());
            file[at] = byte;
        }
        survive(&file);
    }

    #[test]
    fn sec_noise_behind_the_identifier_is_survived(
        noise in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let mut file = vec![16, 0, 0, 0];
        file.extend_from_slice(b"TFL3");
        file.extend(noise);
        survive(&file);
    }
}

#[test]
fn sec_indexes_out_of_range_are_named() {
    let break_it = |change: &dyn Fn(&mut Draft)| {
        let mut draft = int8_convolution();
        change(&mut draft);
        malformed(&draft)
    };
    let operator = |draft: &mut Draft, change: &dyn Fn(&mut crate::schema::Operator)| {
        change(&mut draft.graph(0).operators.as_mut().unwrap()[0]);
    };
    let text = break_it(&|draft| operator(draft, &|it| it.inputs = Some(vec![0, 99, 2])));
    assert_eq!(text, "subgraph 0, operator 0, inputs: there is no tensor 99, only 4");
    let text = break_it(&|draft| operator(draft, &|it| it.inputs = Some(vec![-2])));
    assert_eq!(text, "subgraph 0, operator 0, inputs: there is no tensor -2, only 4");
    let text = break_it(&|draft| operator(draft, &|it| it.outputs = Some(vec![-1])));
    assert_eq!(text, "subgraph 0, operator 0, outputs: an index is -1");
    let text = break_it(&|draft| operator(draft, &|it| it.opcode_index = 7));
    assert_eq!(text, "subgraph 0, operator 0: there is no operator code 7");
    let text = break_it(&|draft| draft.tensor_mut(1).buffer = 50);
    assert_eq!(text, "subgraph 0, tensor 1: there is no buffer 50, only 3");
    let text = break_it(&|draft| draft.graph(0).outputs = Some(vec![i32::MAX]));
    assert_eq!(text, "subgraph 0, outputs: there is no tensor 2147483647, only 4");
    let text = break_it(&|draft| draft.tensor_mut(0).shape = Some(vec![1, -5, 5, 4]));
    assert_eq!(text, "subgraph 0, tensor 0: a length is negative");
    let text = break_it(&|draft| {
        draft.model.signature_defs.as_mut().unwrap()[0].subgraph_index = 9;
    });
    assert_eq!(text, "signature 0: there is no subgraph 9");
    let text = break_it(&|draft| {
        let buffer = Buffer { data: None, offset: 1 << 40, size: u64::MAX };
        draft.model.buffers.as_mut().unwrap()[1] = buffer;
    });
    assert!(text.contains("are outside of the file"), "{text}");
}

fn if_of(graph: usize, branches: [i32; 2], draft: &mut Draft) {
    let condition = draft.tensor_in(graph, T::Bool, &[1]);
    let x = draft.tensor_in(graph, T::Float32, &[2]);
    let y = draft.tensor_in(graph, T::Float32, &[2]);
    let [then_subgraph_index, else_subgraph_index] = branches;
    let options = IfOptions { then_subgraph_index, else_subgraph_index };
    let options = Some(BuiltinOptions::IfOptions(Box::new(options)));
    draft.operator_in(graph, B::If, &[condition, x], &[y], options);
    draft.ends(graph, &[condition, x], &[y]);
}

#[test]
fn sec_subgraphs_that_go_round_are_refused() {
    for branches in [[0, 0], [1, 1], [7, 1], [-1, 0]] {
        let mut draft = Draft::new();
        if_of(0, branches, &mut draft);
        if_of(1, [0, 1], &mut draft);
        assert!(import_bytes(&draft.bytes()).is_err(), "{branches:?}");
    }
    let mut draft = Draft::new();
    let x = draft.tensor(T::Bool, &[1]);
    let y = draft.tensor(T::Bool, &[1]);
    let options = WhileOptions { cond_subgraph_index: 0, body_subgraph_index: 0 };
    let options = Some(BuiltinOptions::WhileOptions(Box::new(options)));
    draft.operator(B::While, &[x], &[y], options);
    draft.ends(0, &[x], &[y]);
    assert!(import_bytes(&draft.bytes()).is_err());
}

#[test]
fn sec_deep_nesting_takes_no_stack() {
    let mut draft = Draft::new();
    for graph in 0..2000 {
        let next = i32::try_from(graph + 1).unwrap();
        if_of(graph, [next, next], &mut draft);
    }
    draft.graph(2000);
    assert!(import_bytes(&draft.bytes()).is_err());
}

#[test]
fn sec_tables_that_share_bytes_do_not_multiply() {
    // One subgraph with many tensors, referred to very often.
    let mut draft = Draft::new();
    for _ in 0..2000 {
        draft.tensor(T::Float32, &[1]);
    }
    let mut builder = Builder::new();
    let graph: SubGraph = draft.model.subgraphs.unwrap().remove(0);
    let graph = WriteAsOffset::<SubGraph>::prepare(&graph, &mut builder);
    let model =
        Model::create(&mut builder, 3, (), Some(vec![graph; 20_000]), (), (), (), (), (), (), ());
    let bytes = identified(builder.finish(model, None));
    assert!(import_bytes(&bytes).is_err());
}

#[test]
fn sec_little_files_do_not_become_huge_models() {
    // A convolution without bias and with a filter that is computed: 2^30 channels.
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1, 1, 1, 1]);
    let filter = draft.tensor(T::Float32, &[1 << 30, 1, 1, 1]);
    let y = draft.tensor(T::Float32, &[1, 1, 1, 1 << 30]);
    let options = BuiltinOptions::Conv2DOptions(Box::default());
    draft.operator(B::Conv2d, &[x, filter, -1], &[y], Some(options));
    draft.ends(0, &[x, filter], &[y]);
    let text = import_bytes(&draft.bytes()).unwrap_err().to_string();
    assert!(text.contains("out of all proportion"), "{text}");

    let mut draft = sparse_layer();
    draft.tensor_mut(1).shape = Some(vec![1 << 15, 1 << 15]);
    assert!(import_bytes(&draft.bytes()).is_err());

    let text = import_bytes(&integer_sequence_lstm(1 << 30).bytes()).unwrap_err().to_string();
    assert!(text.contains("out of all proportion"), "{text}");
}

#[test]
fn sec_a_scalar_can_be_sliced_as_a_whole() {
    // An ellipsis, which stands for no axis of the format's scalar, and for one of the HAL's.
    for (ellipsis_mask, is_valid) in [(1, true), (0, false)] {
        let mut draft = Draft::new();
        let (x, y) = (draft.tensor(T::Float32, &[]), draft.tensor(T::Float32, &[]));
        let entries = [0, 0, 1].map(|entry| draft.integers(&[1], &[entry]));
        let options = StridedSliceOptions { ellipsis_mask, ..StridedSliceOptions::default() };
        let options = Some(BuiltinOptions::StridedSliceOptions(Box::new(options)));
        draft.operator(B::StridedSlice, &[x, entries[0], entries[1], entries[2]], &[y], options);
        draft.ends(0, &[x], &[y]);
        assert_eq!(import_bytes(&draft.bytes()).is_ok(), is_valid);
    }
}

#[test]
fn sec_operators_in_another_order_are_refused() {
    let mut draft = Draft::new();
    let (x, y, z) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[2]), {
        draft.tensor(T::Float32, &[2])
    });
    draft.operator(B::Relu, &[y], &[z], None);
    draft.operator(B::Relu, &[x], &[y], None);
    draft.ends(0, &[x], &[z]);
    assert!(import_bytes(&draft.bytes()).is_err());
}

fn dense_level(dense_size: i32) -> DimensionMetadata {
    DimensionMetadata { dense_size, ..DimensionMetadata::default() }
}

/// The reason why a sparse layer with these changes is refused.
fn refused_sparse(
    shape: &[i32],
    values: &[f32],
    change: impl FnOnce(&mut SparsityParameters),
) -> String {
    let mut draft = sparse_layer();
    draft.tensor_mut(1).shape = Some(shape.to_vec());
    let bytes = values.iter().copied().flat_map(f32::to_le_bytes).collect();
    draft.model.buffers.as_mut().unwrap()[1].data = Some(bytes);
    change(draft.tensor_mut(1).sparsity.as_mut().unwrap());
    // An operator that takes a constant of any shape.
    let code = &mut draft.model.operator_codes.as_mut().unwrap()[0];
    (code.deprecated_builtin_code, code.builtin_code) = (0, B::Add as i32);
    draft.graph(0).operators.as_mut().unwrap()[0].inputs = Some(vec![0, 1]);
    let begun = Instant::now();
    let text = import_bytes(&draft.bytes()).unwrap_err().to_string();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}: {text}", begun.elapsed());
    text
}

#[test]
fn sec_a_sparse_tensor_without_elements_is_not_filled_for_ever() {
    let text = refused_sparse(&[i32::MAX, i32::MAX, 0], &[1.0], |sparsity| {
        sparsity.traversal_order = Some(vec![0, 1, 2]);
        sparsity.dim_metadata = Some([i32::MAX, i32::MAX, 0].map(dense_level).to_vec());
    });
    assert!(text.contains("more values than places"), "{text}");
    // Here no stride overflows.
    let text = refused_sparse(&[1 << 30, 1 << 30, 0], &[1.0], |sparsity| {
        sparsity.traversal_order = Some(vec![2, 1, 0]);
        sparsity.dim_metadata = Some([0, 1 << 30, 1 << 30].map(dense_level).to_vec());
    });
    assert!(text.contains("more values than places"), "{text}");
    let text = refused_sparse(&[0, 1 << 30, 1 << 30], &[1.0], |sparsity| {
        sparsity.traversal_order = Some(vec![1, 2, 0]);
        sparsity.dim_metadata = Some([1 << 30, 1 << 30, 0].map(dense_level).to_vec());
    });
    assert!(text.contains("more values than places"), "{text}");
}

#[test]
fn sec_the_levels_of_a_sparse_tensor_are_as_long_as_its_axes() {
    // Levels that are gone through without a place for a value: 2^60 steps if they were followed.
    let text = refused_sparse(&[2, 3, 1], &[], |sparsity| {
        sparsity.traversal_order = Some(vec![0, 1, 2]);
        sparsity.dim_metadata = Some([1 << 30, 1 << 30, 0].map(dense_level).to_vec());
    });
    assert!(!text.contains("places"), "{text}");
    let text = refused_sparse(&[2, 3, 1], &[1.0], |sparsity| {
        sparsity.traversal_order = Some(vec![0, 1, 2]);
        sparsity.dim_metadata = Some([2, 3, 0].map(dense_level).to_vec());
    });
    assert!(text.contains("dense level of length 0, expected 1"), "{text}");
    // The same coordinate again and again.
    let text = refused_sparse(&[2, 3], &[7.0, 9.0], |sparsity| {
        let coordinates = Uint8Vector { values: Some(vec![1, 1]) };
        let segments = Int32Vector { values: Some(vec![0, 2, 2]) };
        let level = &mut sparsity.dim_metadata.as_mut().unwrap()[1];
        level.array_segments = Some(SparseIndexVector::Int32Vector(Box::new(segments)));
        level.array_indices = Some(SparseIndexVector::Uint8Vector(Box::new(coordinates)));
    });
    assert!(text.contains("coordinates out of order"), "{text}");
}

#[test]
fn sec_long_names_are_not_repeated() {
    // 10,000 operators without a counterpart, all of one custom code and with the same tensor.
    let name = "n".repeat(150_000);
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1]);
    draft.tensor_mut(x).name = Some(name.clone());
    for _ in 0..10_000 {
        draft.operator(B::Custom, &[x; 40], &[], None);
    }
    draft.model.operator_codes.as_mut().unwrap().truncate(1);
    draft.model.operator_codes.as_mut().unwrap()[0].custom_code = Some(name.clone());
    for operator in draft.graph(0).operators.as_mut().unwrap() {
        operator.opcode_index = 0;
    }
    draft.ends(0, &[x], &[x]);
    let error = import_bytes(&draft.bytes()).unwrap_err();
    let ImportError::Unsupported { operators, others } = &error else { panic!("{error}") };
    assert_eq!((operators.len(), *others), (1000, 9000));
    let text = error.to_string();
    assert!(text.len() < 5_000_000, "{}", text.len());
    assert!(text.starts_with("10000 operators") && text.ends_with("and 9000 more"));
    assert!(text.contains("(150000 bytes)") && text.contains("24 more"));

    // The names that a caller may ask for are whole, but many outputs cannot share one.
    let mut draft = int8_convolution();
    draft.tensor_mut(0).name = Some(name.clone());
    assert_eq!(import_bytes(&draft.bytes()).unwrap().inputs[0].name, name);
    let outputs = vec![draft.graph(0).outputs.as_ref().unwrap()[0]; 20_000];
    draft.tensor_mut(outputs[0]).name = Some(name);
    draft.graph(0).outputs = Some(outputs);
    let text = import_bytes(&draft.bytes()).unwrap_err().to_string();
    assert!(text.contains("out of all proportion"), "{text}");
}

#[test]
fn sec_operator_codes_that_share_a_name_do_not_multiply_it() {
    let mut builder = Builder::new();
    let name = builder.create_string("n".repeat(150_000));
    let code = OperatorCode::create(&mut builder, 32, Some(name), 1, 32);
    let graph = WriteAsOffset::<SubGraph>::prepare(&SubGraph::default(), &mut builder);
    let codes = Some(vec![code; 40_000]);
    let model =
        Model::create(&mut builder, 3, codes, Some(vec![graph]), (), (), (), (), (), (), ());
    let text = import_bytes(&identified(builder.finish(model, None))).unwrap_err().to_string();
    assert!(text.contains("more than the file can hold"), "{text}");
}

#[test]
fn sec_shapes_with_thousands_of_axes_are_refused() {
    let mut draft = int8_convolution();
    draft.tensor_mut(0).shape = Some(vec![1; 70_000]);
    assert!(malformed(&draft).contains("70000 axes, expected 64 at most"));
}

#[test]
fn sec_a_constant_that_many_operators_read_is_not_read_without_end() {
    let mut draft = Draft::new();
    let mut x = draft.tensor(T::Float32, &[1]);
    let first = x;
    let axes = draft.integers(&[1 << 20], &vec![0; 1 << 20]);
    for _ in 0..5000 {
        let y = draft.tensor(T::Float32, &[1]);
        draft.operator(B::Sum, &[x, axes], &[y], None);
        x = y;
    }
    draft.ends(0, &[first], &[x]);
    let begun = Instant::now();
    let _ = import_bytes(&draft.bytes());
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

/// Bytes that the process keeps in memory, and the most it ever did.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn sec_holes_of_a_file_are_not_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let size = 8 << 30;
    let before = resident();
    file.as_file().set_len(size).unwrap();
    // No model at all.
    let begun = Instant::now();
    let text = crate::import_file(file.path()).unwrap_err().to_string();
    assert!(text.contains("it begins with zeros"), "{text}");
    // A model that ends early.
    std::fs::write(file.path(), int8_convolution().bytes()).unwrap();
    file.as_file().set_len(size).unwrap();
    let import = crate::import_file(file.path());
    assert!(import.is_ok(), "{import:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(resident() < before + (1 << 30), "{} and {before}", resident());
}

#[test]
fn sec_what_is_no_file_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .unwrap();
    for path in [&*pipe, folder.path(), "/dev/zero".as_ref(), "/dev/full".as_ref()] {
        let text = crate::import_file(path).unwrap_err().to_string();
        assert!(text.contains("expected a file"), "{}: {text}", path.display());
    }
}

/// A file that becomes 200 MB of constants: of a sparse tensor with one value.
fn file_that_grows() -> Vec<u8> {
    let mut draft = sparse_layer();
    draft.model.description = Some("d".repeat(4 << 20));
    draft.tensor_mut(1).shape = Some(vec![50_000_000]);
    let values = 7.0_f32.to_le_bytes().to_vec();
    draft.model.buffers.as_mut().unwrap()[1].data = Some(values);
    let sparsity = draft.tensor_mut(1).sparsity.as_mut().unwrap();
    sparsity.traversal_order = Some(vec![0]);
    let levels = sparsity.dim_metadata.as_mut().unwrap();
    levels.remove(0);
    let segments = Int32Vector { values: Some(vec![0, 1]) };
    levels[0].array_segments = Some(SparseIndexVector::Int32Vector(Box::new(segments)));
    let coordinates = Uint8Vector { values: Some(vec![3]) };
    levels[0].array_indices = Some(SparseIndexVector::Uint8Vector(Box::new(coordinates)));
    let code = &mut draft.model.operator_codes.as_mut().unwrap()[0];
    (code.deprecated_builtin_code, code.builtin_code) = (0, B::Add as i32);
    draft.tensor_mut(0).shape = Some(vec![1]);
    draft.tensor_mut(2).shape = Some(vec![50_000_000]);
    draft.graph(0).operators.as_mut().unwrap()[0].inputs = Some(vec![0, 1]);
    draft.bytes()
}

/// In a process of its own, whose address space grows by these megabytes at most.
#[test]
fn sec_a_model_that_finds_no_memory_is_an_error() {
    const VARIABLE: &str = "NNHAL_TEST_MEGABYTES";
    let Ok(megabytes) = std::env::var(VARIABLE) else {
        for megabytes in [64, 128, 256, 512, 768, 2048] {
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", "tests::hostile::sec_a_model_that_finds_no_memory_is_an_error"]);
            let output = again.env(VARIABLE, megabytes.to_string()).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{megabytes} MB: {:?} {text}", output.status);
        }
        return;
    };
    let file = file_that_grows();
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split_whitespace().next().unwrap().parse().unwrap();
    let megabytes: u64 = megabytes.parse().unwrap();
    let most = pages * 4096 + (megabytes << 20);
    let limit = rustix::process::Rlimit { current: Some(most), maximum: Some(most) };
    rustix::process::setrlimit(rustix::process::Resource::As, limit).unwrap();
    match import_bytes(&file) {
        Ok(_) => assert!(megabytes > 256),
        Err(error) => assert!(megabytes < 2048, "{error}"),
    }
}
