//! StableHLO's operators: what LiteRT, which is the judge otherwise, cannot say.

use super::draft::Draft;
use super::mapping::{import, reasons};
use super::split::{bytes_of, floats_of, run};
use crate::schema::{
    BuiltinOperator, BuiltinOptions2, StablehloCaseOptions, StablehloGatherOptions,
    StablehloPadOptions, StablehloScatterOptions, TensorType,
};
use nnhal_hal::{ExecutionOptions, HalVersion, PrepareOptions, RequestBuilder};

/// A model of one operator of floats, `input` first, then these indexes.
fn draft(
    builtin: BuiltinOperator,
    [input, others @ ..]: [&[i32]; 3],
    indexes: (&[i32], &[i32]),
    options: BuiltinOptions2,
) -> Draft {
    let [updates, output] = others;
    let mut draft = Draft::new();
    let input = draft.tensor(TensorType::Float32, input);
    let indexes = draft.integers(indexes.0, indexes.1);
    let mut inputs = vec![input, indexes];
    let mut given = vec![input];
    if builtin == BuiltinOperator::StablehloScatter {
        let updates = draft.tensor(TensorType::Float32, updates);
        inputs.push(updates);
        given.push(updates);
    }
    let output = draft.tensor(TensorType::Float32, output);
    draft.operator(builtin, &inputs, &[output], None);
    let operator = draft.graph(0).operators.as_mut().and_then(|all| all.last_mut()).unwrap();
    operator.builtin_options_2 = Some(options);
    draft.ends(0, &given, &[output]);
    // The function of a scattering: none, so that updates replace.
    let update = draft.tensor_in(1, TensorType::Float32, &[]);
    draft.ends(1, &[update], &[update]);
    draft
}

fn gather(indexes: (&[i32], &[i32]), output: &[i32], options: StablehloGatherOptions) -> Draft {
    let options = BuiltinOptions2::StablehloGatherOptions(Box::new(options));
    draft(BuiltinOperator::StablehloGather, [&[3, 2], &[], output], indexes, options)
}

fn rows() -> StablehloGatherOptions {
    StablehloGatherOptions {
        offset_dims: Some(vec![0]),
        collapsed_slice_dims: Some(vec![0]),
        start_index_map: Some(vec![0]),
        index_vector_dim: 1,
        slice_sizes: Some(vec![1, 2]),
        ..StablehloGatherOptions::default()
    }
}

#[test]
fn indexes_that_are_no_vectors_are_indexes_of_one_axis() {
    let draft = gather((&[4], &[2, 0, 1, 9]), &[2, 4], rows());
    let import = import(&draft);
    let device = nnhal_reference::device();
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    let input: Vec<u8> = (0_u8..6).flat_map(|it| f32::from(it).to_le_bytes()).collect();
    request.input(&input);
    request.output(32);
    let request = request.build().unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let output = RequestBuilder::read_output(&request, 0).unwrap();
    let (floats, _) = output.as_chunks();
    let floats: Vec<f32> = floats.iter().map(|it| f32::from_le_bytes(*it)).collect();
    assert_eq!(floats, [4.0, 0.0, 2.0, 4.0, 5.0, 1.0, 3.0, 5.0]);
}

#[test]
fn attributes_that_make_no_sense_are_named() {
    let reason = |options| reasons(&gather((&[4], &[2, 0, 1, 9]), &[2, 4], options)).remove(0);
    let long = StablehloGatherOptions { slice_sizes: Some(vec![1, 2, 1]), ..rows() };
    assert_eq!(reason(long), "it has 3 sizes of slices for 2 axes");
    let wide = StablehloGatherOptions { slice_sizes: Some(vec![2, 2]), ..rows() };
    assert_eq!(reason(wide), "it leaves out axis 0, which has length 2");
    for none in [0, -1, i64::MAX] {
        let sizes = StablehloGatherOptions { slice_sizes: Some(vec![1, none]), ..rows() };
        let expected = format!("a slice is {none} long, expected 1 or more");
        assert_eq!(reason(sizes), expected);
        let map = StablehloGatherOptions { index_vector_dim: none, ..rows() };
        assert!(reason(map).contains(if none == 0 {
            "4 indexes in a row"
        } else {
            "not along an axis"
        }));
    }
    let twice = StablehloGatherOptions { start_index_map: Some(vec![1, 1]), ..rows() };
    assert_eq!(reason(twice), "an attribute lists axis 1, expected each of 2 at most once");
    let offsets = StablehloGatherOptions { offset_dims: Some(vec![0, 1]), ..rows() };
    assert_eq!(reason(offsets), "it has 2 offset axes, expected 1");
    let far = StablehloGatherOptions { offset_dims: Some(vec![2]), ..rows() };
    assert_eq!(reason(far), "an attribute lists axis 2, expected each of 2 at most once");
    // Longer than its axis: the HAL's rule says so.
    let beyond = StablehloGatherOptions { slice_sizes: Some(vec![1, 3]), ..rows() };
    assert!(reason(beyond).contains("at most 2"));

    let scatter = |updates: &[i32], options: StablehloScatterOptions| {
        let options = BuiltinOptions2::StablehloScatterOptions(Box::new(options));
        let shapes: [&[i32]; 3] = [&[3, 2], updates, &[3, 2]];
        reasons(&draft(BuiltinOperator::StablehloScatter, shapes, (&[1, 1], &[0]), options))
            .remove(0)
    };
    let rows = StablehloScatterOptions {
        update_window_dims: Some(vec![1]),
        inserted_window_dims: Some(vec![0]),
        scatter_dims_to_operand_dims: Some(vec![0]),
        index_vector_dim: 1,
        update_computation_subgraph_index: 1,
        ..StablehloScatterOptions::default()
    };
    assert_eq!(scatter(&[4, 2], rows.clone()), "its updates [4, 2] are not for [1] rows");
    let none = StablehloScatterOptions { inserted_window_dims: None, ..rows.clone() };
    let expected = "its windows have 1 axes and 0 that are inserted, expected 2 in all";
    assert_eq!(scatter(&[1, 2], none), expected);
    let missing = StablehloScatterOptions { update_computation_subgraph_index: 7, ..rows };
    assert_eq!(scatter(&[1, 2], missing), "there is no subgraph 7");
}

/// As JAX writes `x.at[i].set(y)`.
#[test]
fn a_scalar_replaces_one_element() {
    let options = BuiltinOptions2::StablehloScatterOptions(Box::new(StablehloScatterOptions {
        inserted_window_dims: Some(vec![0]),
        scatter_dims_to_operand_dims: Some(vec![0]),
        index_vector_dim: 0,
        update_computation_subgraph_index: 1,
        ..StablehloScatterOptions::default()
    }));
    let shapes: [&[i32]; 3] = [&[4], &[], &[4]];
    let draft = draft(BuiltinOperator::StablehloScatter, shapes, (&[1], &[2]), options);
    let (input, update) = (bytes_of(&[1.0, 2.0, 3.0, 4.0]), bytes_of(&[9.0]));
    let found = run(&import(&draft), &[&input, &update], 16);
    assert_eq!(floats_of(&found), [1.0, 2.0, 9.0, 4.0]);
}

#[test]
fn branches_that_are_not_there_are_named() {
    let reason = |branches: Vec<i32>| {
        let mut draft = Draft::new();
        let index = draft.tensor(TensorType::Int32, &[1]);
        let output = draft.tensor(TensorType::Float32, &[1]);
        draft.operator(BuiltinOperator::StablehloCase, &[index], &[output], None);
        let operator = draft.graph(0).operators.as_mut().and_then(|all| all.last_mut()).unwrap();
        let branch_subgraph_indices = Some(branches);
        operator.builtin_options_2 =
            Some(BuiltinOptions2::StablehloCaseOptions(Box::new(StablehloCaseOptions {
                branch_subgraph_indices,
            })));
        draft.ends(0, &[index], &[output]);
        reasons(&draft).remove(0)
    };
    assert_eq!(reason(vec![]), "it has no branches");
    assert_eq!(reason(vec![1, 2, 3]), "there is no subgraph 1");
    assert_eq!(reason(vec![-1, 0, 0]), "there is no subgraph -1");
    assert_eq!(reason(vec![0, 0, 0]), "subgraphs are nested too deep");
}

/// STABLEHLO_PAD of `[1, 2, 3]` with -1 around and between.
fn pad(low: i64, high: i64, between: i64, length: i32) -> Draft {
    let mut draft = Draft::new();
    let input = draft.floats(&[3], &[1.0, 2.0, 3.0]);
    let value = draft.tensor(TensorType::Float32, &[]);
    let output = draft.tensor(TensorType::Float32, &[length]);
    draft.operator(BuiltinOperator::StablehloPad, &[input, value], &[output], None);
    let operator = draft.graph(0).operators.as_mut().and_then(|all| all.last_mut()).unwrap();
    operator.builtin_options_2 =
        Some(BuiltinOptions2::StablehloPadOptions(Box::new(StablehloPadOptions {
            edge_padding_low: Some(vec![low]),
            edge_padding_high: Some(vec![high]),
            interior_padding: Some(vec![between]),
        })));
    draft.ends(0, &[value], &[output]);
    draft
}

#[test]
fn edges_take_elements_away_where_they_are_negative() {
    let found = |low, high, between, expected: &[f32]| {
        let length = i32::try_from(expected.len()).unwrap();
        let import = import(&pad(low, high, between, length));
        let bytes = run(&import, &[&(-1.0_f32).to_le_bytes()], 4 * expected.len());
        assert_eq!(floats_of(&bytes), expected, "{low} {high} {between}");
    };
    found(-1, 1, 0, &[2.0, 3.0, -1.0]);
    found(1, -2, 0, &[-1.0, 1.0]);
    // Elements between come first, and can be taken away too.
    found(-1, -1, 1, &[-1.0, 2.0, -1.0]);
    found(-3, 0, 2, &[2.0, -1.0, -1.0, 3.0]);
    // More than there is, beside what is added.
    found(-5, 4, 0, &[-1.0, -1.0]);
    found(3, -4, 0, &[-1.0, -1.0]);
    found(i64::MIN, i64::MAX, 0, &[-1.0, -1.0]);
}

#[test]
fn sec_edges_beyond_all_lengths_are_refused() {
    let reason = |low, high, between| reasons(&pad(low, high, between, 1)).remove(0);
    assert_eq!(reason(-3, 0, 0), "an axis of its result has length 0");
    let least = i64::MIN;
    assert_eq!(reason(least, least, 0), format!("an axis of its result has length {least}"));
    assert_eq!(reason(0, 0, -1), "-1 elements between neighbours");
    for (low, high, between) in [(i64::MAX, i64::MAX, 0), (0, 0, i64::MAX)] {
        let reason = reason(low, high, between);
        assert!(reason.contains("length") || reason.contains("too large"), "{reason}");
    }
}
