//! How often images in NCHW are transposed.

use nnhal_cpu::{CpuEngine, Settings};
use nnhal_driver::{Budget, CompileOptions, Engine, Program};
use nnhal_hal::{
    ExecutionPreference, HalVersion, OperandId, OperandSpec, OperationType as Op, Priority,
    SubgraphBuilder,
};

fn float(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

/// CONV_2D of 3x3, which pads, of an NCHW image.
fn convolution(graph: &mut SubgraphBuilder, image: OperandId, [from, to]: [u32; 2]) -> OperandId {
    let weights = vec![0.5_f32; (to * 9 * from) as usize];
    let filter = graph.constant(float(&[to, 3, 3, from]), &weights);
    let bias = graph.constant(float(&[to]), &vec![1.0_f32; to as usize]);
    let mut inputs = vec![image, filter, bias];
    inputs.extend([1, 1, 1, 0].map(|number| graph.scalar_i32(number)));
    inputs.push(graph.scalar_bool(true));
    graph.operation(Op::Conv2d, inputs, float(&[1, to, 8, 8]))
}

/// How many steps of the plan are transpositions, and whether any other runs a reference kernel.
fn copies(graph: SubgraphBuilder) -> (usize, bool) {
    let model = nnhal_ops::validate(&graph.into_model().unwrap(), HalVersion::LATEST).unwrap();
    let options = CompileOptions {
        preference: ExecutionPreference::FastSingleAnswer,
        priority: Priority::Medium,
    };
    let engine = CpuEngine::new(Settings::default());
    let steps = engine.compile(&model, &options, &Budget::unlimited()).unwrap().plan();
    let count = |kernel| steps.iter().filter(|step| step.kernel == kernel).count();
    (count("copy"), count("reference") > 0)
}

#[test]
fn a_chain_is_transposed_at_its_ends() {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let first = convolution(&mut graph, image, [3, 4]);
    let bent = graph.operation(Op::Tanh, [first], float(&[1, 4, 8, 8]));
    let offsets = graph.constant(float(&[4, 1, 1]), &[1.0_f32, 2.0, 3.0, 4.0]);
    let none = graph.scalar_i32(0);
    let moved = graph.operation(Op::Add, [bent, offsets, none], float(&[1, 4, 8, 8]));
    let second = convolution(&mut graph, moved, [4, 4]);
    let sum = graph.operation(Op::Add, [second, first, none], float(&[1, 4, 8, 8]));
    graph.output(sum);
    assert_eq!(copies(graph), (2, false));
}

#[test]
fn what_has_no_height_and_width_left_is_not_transposed_back() {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let first = convolution(&mut graph, image, [3, 4]);
    let axes = graph.constant(OperandSpec::tensor_int32([2]), &[2, 3]);
    let keeps = graph.scalar_i32(0);
    let mean = graph.operation(Op::Mean, [first, axes, keeps], float(&[1, 4]));
    graph.output(mean);
    assert_eq!(copies(graph), (1, false));
}

#[test]
fn one_pixel_is_laid_out_as_in_nhwc() {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let mut inputs = vec![image];
    // All of the image, without padding.
    inputs.extend([2, 1, 1, 8, 8, 0].map(|number| graph.scalar_i32(number)));
    inputs.push(graph.scalar_bool(true));
    let pooled = graph.operation(Op::AveragePool2d, inputs, float(&[1, 3, 1, 1]));
    graph.output(pooled);
    assert_eq!(copies(graph), (1, false));
}

#[test]
fn a_result_that_is_read_in_both_orders_is_transposed_once() {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let first = convolution(&mut graph, image, [3, 4]);
    let second = convolution(&mut graph, first, [4, 4]);
    graph.output(first);
    graph.output(second);
    assert_eq!(copies(graph), (3, false));
}

/// `image > than`, which has the shape of the image.
fn greater(graph: &mut SubgraphBuilder, image: OperandId, than: OperandId) -> OperandId {
    let truth = OperandSpec::tensor_bool8([1, 4, 8, 8]);
    graph.operation(Op::Greater, [image, than], truth)
}

#[test]
fn a_comparison_and_a_choice_are_made_without_further_copies() {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let first = convolution(&mut graph, image, [3, 4]);
    let limits = graph.constant(float(&[4, 1, 1]), &[0.5_f32, 1.0, 1.5, 2.0]);
    let is_greater = greater(&mut graph, first, limits);
    let not = OperandSpec::tensor_bool8([1, 4, 8, 8]);
    let is_less = graph.operation(Op::LogicalNot, [is_greater], not);
    let bent = graph.operation(Op::Tanh, [first], float(&[1, 4, 8, 8]));
    let chosen = graph.operation(Op::Select, [is_less, bent, first], float(&[1, 4, 8, 8]));
    let second = convolution(&mut graph, chosen, [4, 4]);
    graph.output(second);
    assert_eq!(copies(graph), (2, false));
}

#[test]
fn truth_values_are_transposed_back_once() {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let first = convolution(&mut graph, image, [3, 4]);
    let second = convolution(&mut graph, first, [4, 4]);
    let is_greater = greater(&mut graph, first, second);
    graph.output(is_greater);
    assert_eq!(copies(graph), (2, false));
}
