//! Files that lie: always an error or a model, never a panic, a hang or a huge allocation.

use super::draft::{Draft, identified};
use super::mapping::{
    conditional, dynamic_range_layer, int8_convolution, sequence_lstm, sequence_rnn, sparse_layer,
};
use crate::schema::{
    ActivationFunctionType, Buffer, BuiltinOperator as B, BuiltinOptions, IfOptions, Model,
    StridedSliceOptions, SubGraph, TensorType as T, WhileOptions,
};
use crate::{ImportError, import_bytes};
use hal::HalVersion;
use planus::{Builder, WriteAsOffset};
use proptest::prelude::*;

/// Small files that between them take most ways through the import.
fn files() -> Vec<Vec<u8>> {
    [
        int8_convolution(),
        dynamic_range_layer(),
        sparse_layer(),
        conditional(),
        sequence_rnn(ActivationFunctionType::Tanh),
        sequence_lstm(),
    ]
    .iter()
    .map(Draft::bytes)
    .collect()
}

/// Imports; what comes out must be something that the validator can look at.
fn survive(bytes: &[u8]) {
    if let Ok(import) = import_bytes(bytes) {
        let _ = ops::validate(&import.model, HalVersion::LATEST);
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
        which in 0..6_usize,
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
    assert!(text.contains("lie outside of the file"), "{text}");
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
    let model = Model::create(&mut builder, 3, (), Some(vec![graph; 20_000]), (), (), (), (), ());
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

    let mut draft = sequence_rnn(ActivationFunctionType::Tanh);
    draft.tensor_mut(0).shape = Some(vec![1, 1 << 30, 2]);
    let text = import_bytes(&draft.bytes()).unwrap_err().to_string();
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
