//! Functions before maxima.

mod support;

use nnhal_cpu::{Settings, dump_passes};
use nnhal_hal::{
    Device, HalVersion, Model, OperandSpec, OperandType, OperationType as Op, RequestBuilder,
    SubgraphBuilder,
};
use support::{execute, prepare};

const IMAGES: [u32; 4] = [2, 6, 6, 3];

/// A tensor of 8-bit numbers, signed or not, whose zero point is in the middle.
fn stored(is_signed: bool, dimensions: &[u32], scale: f32) -> OperandSpec {
    let (kind, zero_point) = match is_signed {
        true => (OperandType::TensorQuant8AsymmSigned, 0),
        false => (OperandType::TensorQuant8Asymm, 128),
    };
    OperandSpec::new(kind, dimensions).quantized(scale, zero_point)
}

/// PRELU with one slope, from signed numbers or not; MAX_POOL_2D of 2x2 with an activation; REDUCE_MAX of each
/// image; TANH.
fn model(is_signed: bool, slope: f32, activation: i32) -> Model {
    let of = |dimensions: &[u32], scale| stored(is_signed, dimensions, scale);
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", of(&IMAGES, 0.02));
    // The nearest stored number: 100 steps are 1.
    #[allow(clippy::cast_possible_truncation)]
    let steps = (slope * 100.0) as i8;
    let byte = if is_signed { steps.cast_unsigned() } else { steps.cast_unsigned() ^ 0x80 };
    let slope = graph.constant_bytes(of(&[1, 1, 1], 0.01), &[byte]);
    let bent = graph.operation(Op::Prelu, [image, slope], of(&IMAGES, 0.04));
    let mut inputs = vec![bent];
    // VALID, strides and sizes of 2.
    inputs.extend([2, 2, 2, 2, 2, activation].map(|number| graph.scalar_i32(number)));
    let pooled = graph.operation(Op::MaxPool2d, inputs, of(&[2, 3, 3, 3], 0.04));
    let axes = graph.constant(OperandSpec::tensor_int32([2]), &[1, 2]);
    let keep = graph.scalar_bool(false);
    let greatest = graph.operation(Op::ReduceMax, [pooled, axes, keep], of(&[2, 3], 0.04));
    let last = graph.operation(Op::Tanh, [greatest], of(&[2, 3], 1.0 / 128.0));
    graph.output(last);
    graph.into_model().unwrap()
}

/// The nodes when all passes have run, by what they do.
fn nodes(model: &Model) -> Vec<String> {
    let model = nnhal_ops::validate(model, HalVersion::LATEST).unwrap();
    let dumps = dump_passes(&model, &Settings::default()).unwrap();
    let last = &dumps.last().unwrap().text;
    let lines = last.lines().filter_map(|line| line.split_once(" = "));
    lines.map(|(_, work)| work.split(['(', ' ']).next().unwrap_or_default().to_owned()).collect()
}

fn outputs(device: &dyn Device, model: &Model) -> Vec<u8> {
    // Also an image all of whose numbers are below the middle.
    let most = |at: u32| if at < 108 { 256 } else { 100 };
    let bytes: Vec<u8> = (0..216).map(|at| (at * 151 % most(at)).to_le_bytes()[0]).collect();
    let mut request = RequestBuilder::new();
    request.input(&bytes).output(6);
    let request = request.build().unwrap();
    execute(&*prepare(device, model), &request);
    RequestBuilder::read_output(&request, 0).unwrap()
}

fn is_as_the_reference(model: &Model) {
    let fast = outputs(&*nnhal_cpu::device(Settings::default()), model);
    assert_eq!(fast, outputs(&*nnhal_reference::device(), model));
    assert_ne!(fast[..3], fast[3..]);
}

#[test]
fn a_function_that_never_falls_is_read_behind_all_maxima() {
    for is_signed in [false, true] {
        let model = model(is_signed, 0.25, 0);
        assert_eq!(nodes(&model), ["MAX_POOL_2D", "REDUCE_MAX", "table"], "{is_signed}");
        is_as_the_reference(&model);
    }
}

#[test]
fn a_function_that_falls_stays_where_it_is() {
    for is_signed in [false, true] {
        let model = model(is_signed, -0.5, 0);
        assert_eq!(nodes(&model), ["table", "MAX_POOL_2D", "REDUCE_MAX", "table"], "{is_signed}");
        is_as_the_reference(&model);
    }
}

#[test]
fn a_maximum_with_an_activation_stays_behind_the_function() {
    // RELU clamps the function's results, whose quantization is not that of its arguments.
    let model = model(true, 0.25, 1);
    assert_eq!(nodes(&model), ["table", "MAX_POOL_2D", "REDUCE_MAX", "table"]);
    is_as_the_reference(&model);
}

/// Many tables, with a maximum behind each.
#[test]
fn functions_between_maxima_become_one_behind_all() {
    const TIMES: u32 = 300;
    let of = |height: u32| stored(true, &[1, height, 1, 1], 1.0 / 128.0);
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("image", of(TIMES + 6));
    for height in (6..TIMES + 6).rev() {
        x = graph.operation(Op::Tanh, [x], of(height + 1));
        let mut inputs = vec![x];
        // VALID, strides of 1, windows of two rows.
        inputs.extend([2, 1, 1, 1, 2, 0].map(|number| graph.scalar_i32(number)));
        x = graph.operation(Op::MaxPool2d, inputs, of(height));
    }
    graph.output(x);
    let model = graph.into_model().unwrap();
    let found = nodes(&model);
    assert_eq!(found.len(), TIMES as usize + 1);
    assert_eq!(found.iter().filter(|name| *name == "table").count(), 1);
    assert_eq!(found.last().unwrap(), "table");
    let output = |device: &dyn Device| {
        let bytes: Vec<u8> = (0..TIMES + 6).map(|at| (at * 151 % 256).to_le_bytes()[0]).collect();
        let mut request = RequestBuilder::new();
        request.input(&bytes).output(6);
        let request = request.build().unwrap();
        execute(&*prepare(device, &model), &request);
        RequestBuilder::read_output(&request, 0).unwrap()
    };
    let fast = output(&*nnhal_cpu::device(Settings::default()));
    assert_eq!(fast, output(&*nnhal_reference::device()));
}

/// Some functions of an image, 8 bits that are dequantized or floats, and MAX_POOL_2D of 2x2.
fn floats(functions: &[Op], is_stored: bool) -> Model {
    let of = |dimensions: &[u32]| OperandSpec::tensor_float32(dimensions);
    let mut graph = SubgraphBuilder::new();
    let image = if is_stored { stored(true, &IMAGES, 0.02) } else { of(&IMAGES) };
    let mut x = graph.input("image", image);
    for function in functions {
        x = graph.operation(*function, [x], of(&IMAGES));
    }
    let mut inputs = vec![x];
    inputs.extend([2, 2, 2, 2, 2, 0].map(|number| graph.scalar_i32(number)));
    let pooled = graph.operation(Op::MaxPool2d, inputs, of(&[2, 3, 3, 3]));
    graph.output(pooled);
    graph.into_model().unwrap()
}

#[test]
fn functions_of_floats_are_computed_behind_maxima_unless_they_fall_or_cost_little() {
    const CHAIN: &str = "chain";
    let cases: [(&[Op], bool, &[&str]); 6] = [
        (&[Op::Tanh], false, &["MAX_POOL_2D", CHAIN]),
        (&[Op::Dequantize], true, &["MAX_POOL_2D", "DEQUANTIZE"]),
        (&[Op::Dequantize, Op::Relu], true, &["MAX_POOL_2D", "DEQUANTIZE", CHAIN]),
        (&[Op::Sin], false, &[CHAIN, "MAX_POOL_2D"]),
        // It falls below -1.5; what follows is a step of it.
        (&[Op::HardSwish, Op::Relu], false, &[CHAIN, "MAX_POOL_2D"]),
        (&[Op::Logistic, Op::Exp], false, &["MAX_POOL_2D", CHAIN]),
    ];
    for (functions, is_stored, expected) in cases {
        let model = floats(functions, is_stored);
        assert_eq!(nodes(&model), expected, "{functions:?}");
        let bytes: Vec<u8> = (0..216_u32)
            .flat_map(|at| {
                let number = i16::from((at * 151 % 256).to_le_bytes()[0]) - 128;
                match is_stored {
                    true => number.to_le_bytes()[..1].to_vec(),
                    false => (f32::from(number) / 32.0).to_le_bytes().to_vec(),
                }
            })
            .collect();
        let mut request = RequestBuilder::new();
        request.input(&bytes).output(54 * 4);
        let request = request.build().unwrap();
        let outputs = |device: &dyn Device| {
            execute(&*prepare(device, &model), &request);
            let bytes = RequestBuilder::read_output(&request, 0).unwrap();
            let floats = bytes.as_chunks::<4>().0.iter().map(|it| f32::from_le_bytes(*it));
            floats.collect::<Vec<_>>()
        };
        let fast = outputs(&*nnhal_cpu::device(Settings::default()));
        let reference = outputs(&*nnhal_reference::device());
        for (fast, reference) in fast.iter().zip(&reference) {
            let most = 1e-6 * reference.abs().max(1.0);
            assert!((fast - reference).abs() <= most, "{functions:?}: {fast}, {reference}");
        }
        assert_ne!(fast[..27], fast[27..]);
    }
}
