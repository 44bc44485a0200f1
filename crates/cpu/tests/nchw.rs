//! How often images in NCHW are transposed.

mod support;

use nnhal_cpu::Settings;
use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, OperandId, OperandSpec, OperationType as Op,
    PrepareOptions, RequestBuilder, SubgraphBuilder,
};
use std::sync::Arc;
use support::steps;

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
    let steps = steps(&graph.into_model().unwrap());
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

/// Operations along an axis, between two convolutions.
fn along_axes() -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float(&[1, 3, 8, 8]));
    let mut x = convolution(&mut graph, image, [3, 4]);
    let spec = || float(&[1, 4, 8, 8]);
    let [one, two] = [1, 2].map(|number| graph.scalar_i32(number));
    x = graph.operation(Op::L2Normalization, [x, one], spec());
    x = graph.operation(Op::ChannelShuffle, [x, two, one], spec());
    let columns = graph.constant(OperandSpec::tensor_int32([1]), &[3]);
    x = graph.operation(Op::Reverse, [x, columns], spec());
    let [bias, alpha, beta] = [1.0, 0.5, 0.75].map(|number| graph.scalar_f32(number));
    let inputs = [x, one, bias, alpha, beta, one];
    x = graph.operation(Op::LocalResponseNormalization, inputs, spec());
    x = convolution(&mut graph, x, [4, 4]);
    graph.output(x);
    graph
}

#[test]
fn operations_along_an_axis_are_computed_along_where_it_is_in_nhwc() {
    assert_eq!(copies(along_axes()), (4, false), "two of them reorder elements themselves");
    let model = along_axes().into_model().unwrap();
    let numbers: Vec<f32> = (0..3 * 64_u8).map(|it| f32::from(it % 23) - 9.0).collect();
    let output = |device: Arc<dyn Device>| -> Vec<f32> {
        let options = PrepareOptions::default();
        let prepared = device.prepare_model(&model, HalVersion::LATEST, options).unwrap();
        let mut request = RequestBuilder::new();
        request.input(&numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>());
        request.output(4 * 64 * 4);
        let request = request.build().unwrap();
        prepared.execute(&request, &ExecutionOptions::default()).map_err(|it| it.error).unwrap();
        let bytes = RequestBuilder::read_output(&request, 0).unwrap();
        bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
    };
    let expected = output(nnhal_reference::device());
    let found = output(nnhal_cpu::device(Settings::default()));
    assert_ne!(expected[0], expected[1]);
    for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
        assert!((expected - found).abs() < 1e-4, "element {at} is {found}, not {expected}");
    }
}
