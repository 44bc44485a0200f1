//! Functions of 8-bit numbers: how many steps they are, and that results are the reference's.

mod support;

use nnhal_cpu::Settings;
use nnhal_hal::{
    Device, Model, OperandId, OperandSpec, OperandType, OperationType as Op, RequestBuilder,
    SubgraphBuilder,
};
use support::{execute, kernels, prepare};

const TABLE: &str = "elementwise lookup table 8-bit";

fn stored(scale: f32, zero_point: i32) -> OperandSpec {
    OperandSpec::new(OperandType::TensorQuant8AsymmSigned, [1, 4, 8, 8])
        .quantized(scale, zero_point)
}

/// What `make` builds of an image with all numbers there are.
fn model(make: impl Fn(&mut SubgraphBuilder, OperandId) -> Vec<OperandId>) -> Model {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", stored(0.05, -3));
    for output in make(&mut graph, image) {
        graph.output(output);
    }
    graph.into_model().unwrap()
}

fn logistic(graph: &mut SubgraphBuilder, x: OperandId) -> OperandId {
    graph.operation(Op::Logistic, [x], stored(1.0 / 256.0, -128))
}

fn binary(graph: &mut SubgraphBuilder, operation: Op, operands: [OperandId; 2]) -> OperandId {
    let none = graph.scalar_i32(0);
    let [a, b] = operands;
    graph.operation(operation, [a, b, none], stored(0.04, 5))
}

/// Runs a model on both devices, whose results are to be the same.
fn is_as_the_reference(model: &Model, count: usize) {
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    let outputs = |device: &dyn Device| -> Vec<Vec<u8>> {
        let mut request = RequestBuilder::new();
        request.input(&bytes);
        for _ in 0..count {
            request.output(bytes.len());
        }
        let request = request.build().unwrap();
        execute(&*prepare(device, model), &request);
        (0..count).map(|at| RequestBuilder::read_output(&request, at).unwrap()).collect()
    };
    let expected = outputs(&*nnhal_reference::device());
    assert_eq!(outputs(&*nnhal_cpu::device(Settings::default())), expected);
}

#[test]
fn a_product_with_a_function_of_itself_is_one_table() {
    for turned in [false, true] {
        let model = model(|graph, x| {
            let gate = logistic(graph, x);
            let operands = if turned { [gate, x] } else { [x, gate] };
            vec![binary(graph, Op::Mul, operands)]
        });
        assert_eq!(kernels(&model), [TABLE]);
        is_as_the_reference(&model, 1);
    }
}

#[test]
fn so_are_squares_and_two_functions_of_one_value() {
    for operation in [Op::Mul, Op::Add, Op::Sub] {
        let square = model(|graph, x| vec![binary(graph, operation, [x, x])]);
        assert_eq!(kernels(&square), [TABLE], "{operation:?}");
        is_as_the_reference(&square, 1);
        let two = model(|graph, x| {
            let gate = logistic(graph, x);
            let bent = graph.operation(Op::Tanh, [x], stored(1.0 / 128.0, 0));
            let first = binary(graph, operation, [gate, bent]);
            vec![binary(graph, operation, [first, gate])]
        });
        assert_eq!(kernels(&two), [TABLE], "{operation:?}");
        is_as_the_reference(&two, 1);
    }
}

#[test]
fn a_function_that_is_read_elsewhere_stays() {
    let model = model(|graph, x| {
        let gate = logistic(graph, x);
        vec![gate, binary(graph, Op::Mul, [x, gate])]
    });
    assert_eq!(kernels(&model), [TABLE, TABLE]);
    is_as_the_reference(&model, 2);
}

#[test]
fn functions_of_two_values_are_no_table() {
    let model = model(|graph, x| {
        let order = graph.constant(OperandSpec::tensor_int32([4]), &[0, 2, 1, 3]);
        let turned = OperandSpec::new(OperandType::TensorQuant8AsymmSigned, [1, 8, 4, 8]);
        let turned = graph.operation(Op::Transpose, [x, order], turned.quantized(0.05, -3));
        let lengths = graph.constant(OperandSpec::tensor_int32([4]), &[1, 4, 8, 8]);
        let back = graph.operation(Op::Reshape, [turned, lengths], stored(0.05, -3));
        let gate = logistic(graph, back);
        vec![binary(graph, Op::Mul, [x, gate])]
    });
    let kernels = kernels(&model);
    assert_eq!(kernels.iter().filter(|it| *it == TABLE).count(), 1, "{kernels:?}");
    is_as_the_reference(&model, 1);
}
