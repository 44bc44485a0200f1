//! Attentions whose heads of keys and values are shared by several of queries, as language models have them: keys that are
//! scaled, moved and repeated are read where they are, and the results are the reference device's.

use nnhal_cpu::Settings;
use nnhal_driver::Prepared;
use nnhal_hal::{
    Device, HalVersion, Model, OperandId, OperandSpec, OperationType as O, PrepareOptions,
    RequestBuilder, SubgraphBuilder,
};

/// Heads of queries, those of keys and values, and the numbers that each has.
const HEADS: u32 = 6;
const SHARED: u32 = 2;
const DEPTH: u32 = 8;

fn float(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn moved(
    graph: &mut SubgraphBuilder,
    value: OperandId,
    permutation: [i32; 4],
    to: &[u32],
) -> OperandId {
    let permutation = graph.constant(OperandSpec::tensor_int32([4]), &permutation);
    graph.operation(O::Transpose, [value, permutation], float(to))
}

fn reshaped(graph: &mut SubgraphBuilder, value: OperandId, to: &[u32]) -> OperandId {
    let lengths: Vec<i32> = to.iter().map(|length| i32::try_from(*length).unwrap()).collect();
    let shape = OperandSpec::tensor_int32([u32::try_from(to.len()).unwrap()]);
    let lengths = graph.constant(shape, &lengths);
    graph.operation(O::Reshape, [value, lengths], float(to))
}

fn scaled(graph: &mut SubgraphBuilder, value: OperandId, by: f32, dimensions: &[u32]) -> OperandId {
    let (factor, none) = (graph.constant(float(&[1]), &[by]), graph.scalar_i32(0));
    graph.operation(O::Mul, [value, factor, none], float(dimensions))
}

/// `[1, keys, shared heads, depth]` for all heads of queries, each shared one as often as it is wanted.
fn repeated(graph: &mut SubgraphBuilder, cache: OperandId, keys: u32) -> OperandId {
    let heads = moved(graph, cache, [0, 2, 1, 3], &[1, SHARED, keys, DEPTH]);
    let heads = reshaped(graph, heads, &[SHARED, 1, keys * DEPTH]);
    let times = i32::try_from(HEADS / SHARED).unwrap();
    let times = graph.constant(OperandSpec::tensor_int32([3]), &[1, times, 1]);
    let heads =
        graph.operation(O::Tile, [heads, times], float(&[SHARED, HEADS / SHARED, keys * DEPTH]));
    reshaped(graph, heads, &[1, HEADS, keys, DEPTH])
}

/// What becomes of the scores before SOFTMAX.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scores {
    Masked,
    /// They are multiplied with a number, get other axes, and are masked.
    ScaledAndMasked,
    /// As before, but for the mask.
    Scaled,
}

/// The attention of this many queries to this many keys. Inputs: queries, keys and values, and a mask.
fn attention(queries: u32, keys_in_all: u32, what: Scores) -> Model {
    let mut graph = SubgraphBuilder::new();
    let into = &mut graph;
    let query = into.input("queries", float(&[1, queries, HEADS, DEPTH]));
    let [keys, values] =
        ["keys", "values"].map(|name| into.input(name, float(&[1, keys_in_all, SHARED, DEPTH])));
    let mask = into.input("mask", float(&[1, 1, queries, keys_in_all]));
    let of_queries = [1, HEADS, queries, DEPTH];
    let query = moved(into, query, [0, 2, 1, 3], &of_queries);
    let query = scaled(into, query, 0.6, &of_queries);
    let query = reshaped(into, query, &[HEADS, queries, DEPTH]);
    let keys = repeated(into, keys, keys_in_all);
    let keys = scaled(into, keys, 0.6, &[1, HEADS, keys_in_all, DEPTH]);
    let keys = reshaped(into, keys, &[HEADS, keys_in_all, DEPTH]);
    let [no, yes] = [false, true].map(|it| into.scalar_bool(it));
    let scores = into.operation(
        O::BatchMatmul,
        [query, keys, no, yes],
        float(&[HEADS, queries, keys_in_all]),
    );
    let none = into.scalar_i32(0);
    let of_scores = [1, HEADS, queries, keys_in_all];
    let mut scores = scores;
    if what != Scores::Masked {
        scores = scaled(into, scores, 0.3, &[HEADS, queries, keys_in_all]);
        scores = reshaped(into, scores, &of_scores);
    }
    if what != Scores::Scaled {
        scores = into.operation(O::Add, [scores, mask, none], float(&of_scores));
    }
    let beta = into.scalar_f32(1.0);
    let shares = into.operation(O::Softmax, [scores, beta], float(&of_scores));
    let values = repeated(into, values, keys_in_all);
    let result = into.operation(O::BatchMatmul, [shares, values, no, no], float(&of_queries));
    let result = moved(into, result, [0, 2, 1, 3], &[1, queries, HEADS, DEPTH]);
    into.output(result);
    graph.into_model().unwrap()
}

/// What a device gives, and its steps. The first query attends to this many keys and each next one to one more, or all to all.
fn run(
    device: &dyn Device,
    model: &Model,
    [queries, keys]: [u32; 2],
    attended: Option<u32>,
) -> (Vec<f32>, Vec<String>) {
    let prepared =
        device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    let sizes =
        [queries * HEADS * DEPTH, keys * SHARED * DEPTH, keys * SHARED * DEPTH, queries * keys];
    for (input, size) in (1_u32..).zip(sizes) {
        // Numbers from -1 to 1, others for each input.
        let number = |index: u32| {
            let (query, key) = (index / keys, index % keys);
            if input == 4 && attended.is_some_and(|attended| key >= attended + query) {
                return f32::NEG_INFINITY;
            }
            f32::from(u8::try_from((index * 37 + input * 11) % 101).unwrap()) / 50.0 - 1.0
        };
        request.input(&(0..size).flat_map(|index| number(index).to_le_bytes()).collect::<Vec<_>>());
    }
    request.output(4 * (queries * HEADS * DEPTH) as usize);
    let request = request.build().unwrap();
    prepared.execute(&request, &Default::default()).unwrap();
    let bytes = RequestBuilder::read_output(&request, 0).unwrap();
    let floats = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
    let plan = Prepared::of(&*prepared).unwrap().plan();
    (floats, plan.into_iter().map(|step| step.kernel).collect())
}

/// The steps of nnhal-cpu, which gives what the reference device gives.
fn compare(sizes: [u32; 2], attended: Option<u32>) -> Vec<String> {
    compare_with(sizes, attended, Scores::Masked)
}

fn compare_with([queries, keys]: [u32; 2], attended: Option<u32>, what: Scores) -> Vec<String> {
    let model = attention(queries, keys, what);
    let (found, steps) =
        run(&*nnhal_cpu::device(Settings::default()), &model, [queries, keys], attended);
    let (expected, _) = run(&*nnhal_reference::device(), &model, [queries, keys], attended);
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-5, "{found}, expected {expected}");
    }
    steps
}

#[test]
fn shared_heads_are_neither_copied_nor_scaled() {
    for queries in [1, 3] {
        let steps = compare([queries, 11], None);
        // The queries alone are multiplied, and moved where there are several.
        let steps: Vec<&str> = steps.iter().map(|it| it.split(" f32").next().unwrap()).collect();
        let products = ["batch matmul gemm", "softmax", "batch matmul gemm"];
        assert_eq!(steps[steps.len() - 3..], products, "{steps:?}");
        let before = &steps[..steps.len() - 3];
        assert!(before.iter().all(|it| ["elementwise", "copy"].contains(it)), "{steps:?}");
        assert!(before.len() <= 3, "{steps:?}");
    }
}

#[test]
fn many_scores_are_used_where_they_are_computed() {
    for attended in [None, Some(1), Some(300)] {
        let steps = compare([70, 701], attended);
        let last = steps.last().unwrap();
        assert!(last.starts_with("attention gemm f32"), "{steps:?}");
        assert!(!steps.iter().any(|it| it.starts_with("softmax")), "{steps:?}");
    }
}

#[test]
fn a_factor_of_the_scores_is_a_part_of_the_attention_behind_other_axes_too() {
    // The queries are scaled and moved, whatever becomes of the scores.
    let elementwise =
        |steps: &[String]| steps.iter().filter(|step| step.starts_with("elementwise")).count();
    let [many, few] = [[70, 701], [3, 11]].map(|sizes| elementwise(&compare(sizes, None)));
    for what in [Scores::ScaledAndMasked, Scores::Scaled] {
        let steps = compare_with([70, 701], Some(300), what);
        assert!(steps.last().unwrap().starts_with("attention gemm f32"), "{what:?}: {steps:?}");
        assert_eq!(elementwise(&steps), many, "{what:?}: {steps:?}");
        let steps = compare_with([3, 11], None, what);
        assert!(steps.iter().any(|step| step.starts_with("softmax")), "{what:?}: {steps:?}");
        assert_eq!(elementwise(&steps), few, "{what:?}: {steps:?}");
    }
}

#[test]
fn few_queries_with_many_keys_are_one_step() {
    for (queries, attended) in [(1, None), (1, Some(1)), (1, Some(200)), (5, Some(150))] {
        let steps = compare([queries, 701], attended);
        let last = steps.last().unwrap();
        assert!(last.starts_with("attention"), "{steps:?}");
        assert!(!steps.iter().any(|it| it.starts_with("softmax")), "{steps:?}");
    }
    // Fewer keys are looked at in less than it takes to find out which are masked.
    let steps = compare([1, 201], Some(100));
    assert!(steps.iter().any(|it| it.starts_with("softmax")), "{steps:?}");
}
