//! POW with constant exponents.

mod support;

use nnhal_cpu::{Settings, dump_passes};
use nnhal_hal::{
    Device, HalVersion, Model, OperandSpec, OperationType, RequestBuilder, SubgraphBuilder,
};
use support::{execute, prepare};

const BASES: [f32; 12] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    2.75,
    -1e-30,
    1e30,
    -1e25,
    f32::MIN_POSITIVE,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

fn model(exponents: &[f32]) -> Model {
    let length = u32::try_from(exponents.len()).unwrap();
    let mut graph = SubgraphBuilder::new();
    let base = graph.input("base", OperandSpec::tensor_float32([12, 1]));
    let exponent = graph.constant(OperandSpec::tensor_float32([length]), exponents);
    let power = OperandSpec::tensor_float32([12, length]);
    let power = graph.operation(OperationType::Pow, [base, exponent], power);
    graph.output(power);
    graph.into_model().unwrap()
}

fn powers(device: &dyn Device, model: &Model, count: usize) -> Vec<f32> {
    let mut request = RequestBuilder::new();
    request.input(bytemuck::cast_slice(&BASES)).output(4 * 12 * count);
    let request = request.build().unwrap();
    execute(&*prepare(device, model), &request);
    bytemuck::pod_collect_to_vec(&RequestBuilder::read_output(&request, 0).unwrap())
}

#[test]
fn powers_with_constant_exponents_are_those_of_the_reference() {
    for exponents in [&[2.0][..], &[3.0], &[0.5], &[-2.0], &[2.0, 3.0]] {
        let model = model(exponents);
        let fast = powers(&*nnhal_cpu::device(Settings::default()), &model, exponents.len());
        let expected = powers(&*nnhal_reference::device(), &model, exponents.len());
        for (at, (fast, expected)) in fast.iter().zip(&expected).enumerate() {
            let base = BASES[at / exponents.len()];
            let is_near = (fast - expected).abs() <= expected.abs() * 2.0 * f32::EPSILON;
            let is_same = fast == expected || is_near || fast.is_nan() && expected.is_nan();
            assert!(is_same, "{base} to {exponents:?}: {fast}, {expected}");
        }
    }
}

#[test]
fn squares_and_cubes_are_products() {
    let last = |exponents: &[f32]| {
        let model = nnhal_ops::validate(&model(exponents), HalVersion::LATEST).unwrap();
        dump_passes(&model, &Settings::default()).unwrap().pop().unwrap().text.to_lowercase()
    };
    assert!(last(&[2.0]).contains("square"), "{}", last(&[2.0]));
    assert!(last(&[3.0]).contains("cube"), "{}", last(&[3.0]));
    for exponents in [&[2.5][..], &[2.0, 3.0], &[2.0, 2.0]] {
        assert!(last(exponents).contains("pow"), "{}", last(exponents));
    }
}
