//! Layer normalization as Keras writes it, with and without a scale and an offset: one step, with the reference's results.

mod support;

use nnhal_cpu::Settings;
use nnhal_hal::{Device, Model, OperandSpec, OperationType as Op, RequestBuilder, SubgraphBuilder};
use support::{execute, kernels, prepare};

const ROWS: u16 = 12;
const COLUMNS: u16 = 40;

fn model(has_scale: bool, has_offset: bool, is_mean_read: bool) -> Model {
    let (rows, depth) = (u32::from(ROWS), u32::from(COLUMNS));
    let of_all = || OperandSpec::tensor_float32([1, rows, depth]);
    let of_rows = || OperandSpec::tensor_float32([1, rows, 1]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", of_all());
    let axes = graph.constant(OperandSpec::tensor_int32([1]), &[2]);
    let [keeps, none] = [1, 0].map(|number| graph.scalar_i32(number));
    let mean = graph.operation(Op::Mean, [x, axes, keeps], of_rows());
    let negated = graph.operation(Op::Neg, [mean], of_rows());
    let centred = graph.operation(Op::Sub, [x, mean, none], of_all());
    let square = graph.operation(Op::Mul, [centred, centred, none], of_all());
    let variance = graph.operation(Op::Mean, [square, axes, keeps], of_rows());
    let epsilon = graph.constant(OperandSpec::tensor_float32([1]), &[0.001_f32]);
    let sum = graph.operation(Op::Add, [variance, epsilon, none], of_rows());
    let mut factor = graph.operation(Op::Rsqrt, [sum], of_rows());
    let mut spec = of_rows();
    let columns = |factor: f32| (0..COLUMNS).map(move |at| factor * f32::from(at) + 0.5);
    if has_scale {
        let scale: Vec<f32> = columns(0.1).collect();
        let scale = graph.constant(OperandSpec::tensor_float32([1, 1, depth]), &scale);
        factor = graph.operation(Op::Mul, [factor, scale, none], of_all());
        spec = of_all();
    }
    let mut rest = graph.operation(Op::Mul, [negated, factor, none], spec);
    if has_offset {
        let offset: Vec<f32> = columns(-0.3).collect();
        let offset = graph.constant(OperandSpec::tensor_float32([depth]), &offset);
        rest = graph.operation(Op::Add, [rest, offset, none], of_all());
    }
    let product = graph.operation(Op::Mul, [x, factor, none], of_all());
    let result = graph.operation(Op::Add, [product, rest, none], of_all());
    graph.output(result);
    if is_mean_read {
        graph.output(mean);
    }
    graph.into_model().unwrap()
}

fn results(device: &dyn Device, model: &Model) -> Vec<f32> {
    let numbers = (0..ROWS * COLUMNS).map(|at| f32::from(at * 37 % 101) / 10.0 - 3.0);
    let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
    let mut request = RequestBuilder::new();
    request.input(&bytes).output(bytes.len());
    let request = request.build().unwrap();
    execute(&*prepare(device, model), &request);
    let bytes = RequestBuilder::read_output(&request, 0).unwrap();
    bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
}

#[test]
fn it_is_one_step() {
    for (has_scale, has_offset) in [(true, true), (true, false), (false, true), (false, false)] {
        let model = model(has_scale, has_offset, false);
        assert_eq!(kernels(&model), ["layer normalization f32"], "{has_scale} {has_offset}");
        let expected = results(&*nnhal_reference::device(), &model);
        let found = results(&*nnhal_cpu::device(Settings::default()), &model);
        assert_ne!(expected[0], expected[1]);
        for (at, (expected, found)) in expected.iter().zip(&found).enumerate() {
            let is_near = (expected - found).abs() < 1e-4;
            assert!(is_near, "{has_scale} {has_offset}: element {at} is {found}, not {expected}");
        }
    }
}

#[test]
fn means_that_are_read_elsewhere_are_computed() {
    let names = kernels(&model(true, true, true));
    assert!(names.iter().any(|name| name.starts_with("reduce mean")), "{names:?}");
}
