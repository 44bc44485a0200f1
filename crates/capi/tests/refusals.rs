//! When a wrong model is refused: what types, counts and ranks forbid at once, what values, lengths
//! and scales forbid when it is computed.

mod c;

use c::*;
use std::ptr::{null, null_mut};

const TENSOR_QUANT8_ASYMM: i32 = 5;
const TENSOR_QUANT16_SYMM: i32 = 7;
const TENSOR_BOOL8: i32 = 9;
const TENSOR_QUANT16_ASYMM: i32 = 12;
const TENSOR_QUANT8_ASYMM_SIGNED: i32 = 14;

const DEPTHWISE_CONV_2D: i32 = 4;
const DEQUANTIZE: i32 = 6;
const FULLY_CONNECTED: i32 = 9;
const L2_NORMALIZATION: i32 = 11;
const LOCAL_RESPONSE_NORMALIZATION: i32 = 13;
const LOGISTIC: i32 = 14;
const MAX_POOL_2D: i32 = 17;
const SOFTMAX: i32 = 25;
const TANH: i32 = 28;
const PAD: i32 = 32;
const STRIDED_SLICE: i32 = 35;
const TRANSPOSE: i32 = 37;
const CAST: i32 = 45;
const AXIS_ALIGNED_BBOX_TRANSFORM: i32 = 41;
const LESS: i32 = 58;
const QUANTIZE: i32 = 72;
const QUANTIZED_16BIT_LSTM: i32 = 73;
const SLICE: i32 = 86;
const IF: i32 = 96;
const WHILE: i32 = 97;
const PACK: i32 = 103;
const MIRROR_PAD: i32 = 104;
const REVERSE: i32 = 105;

/// An operand of a model.
#[derive(Clone)]
struct Operand {
    code: i32,
    dimensions: Vec<u32>,
    scale: f32,
    zero_point: i32,
    value: Value,
}

#[derive(Clone)]
enum Value {
    /// Operations write it, or the client gives it.
    None,
    Bytes(Vec<u8>),
    Model(Handle),
    /// `setOperandValue` without a value.
    LeftOut,
}

fn of(code: i32, dimensions: &[u32]) -> Operand {
    Operand { code, dimensions: dimensions.to_vec(), scale: 0.0, zero_point: 0, value: Value::None }
}

fn float(dimensions: &[u32]) -> Operand {
    of(TENSOR_FLOAT32, dimensions)
}

fn int(value: i32) -> Operand {
    Operand { value: Value::Bytes(value.to_le_bytes().to_vec()), ..of(INT32, &[]) }
}

fn real(value: f32) -> Operand {
    Operand { value: Value::Bytes(value.to_le_bytes().to_vec()), ..of(FLOAT32, &[]) }
}

fn ints(dimensions: &[u32], values: &[i32]) -> Operand {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Operand { value: Value::Bytes(bytes), ..of(TENSOR_INT32, dimensions) }
}

fn quant(code: i32, dimensions: &[u32], scale: f32, zero_point: i32) -> Operand {
    Operand { scale, zero_point, ..of(code, dimensions) }
}

fn sub(model: Handle) -> Operand {
    Operand { value: Value::Model(model), ..of(MODEL, &[]) }
}

fn size(operand: &Operand) -> usize {
    let element = match operand.code {
        TENSOR_QUANT8_ASYMM
        | TENSOR_QUANT8_ASYMM_SIGNED
        | TENSOR_BOOL8
        | TENSOR_QUANT8_SYMM_PER_CHANNEL => 1,
        TENSOR_QUANT16_ASYMM | TENSOR_QUANT16_SYMM => 2,
        _ => 4,
    };
    operand.dimensions.iter().map(|length| *length as usize).product::<usize>() * element
}

impl Operand {
    /// With zeros as its value.
    fn zeros(self) -> Self {
        Self { value: Value::Bytes(vec![0; size(&self)]), ..self }
    }

    fn kind(&self) -> OperandType {
        let mut kind = tensor(self.code, &self.dimensions);
        (kind.scale, kind.zero_point) = (self.scale, self.zero_point);
        kind
    }
}

/// A model with these operands, to which operations can be added.
fn with_operands(operands: &[Operand]) -> Handle {
    let model = made(|model| ANeuralNetworksModel_create(model));
    for (index, operand) in operands.iter().enumerate() {
        let (kind, index) = (operand.kind(), i32::try_from(index).unwrap());
        works(ANeuralNetworksModel_addOperand(model, &raw const kind));
        match &operand.value {
            Value::None => {}
            Value::Bytes(bytes) => works(ANeuralNetworksModel_setOperandValue(
                model,
                index,
                bytes.as_ptr().cast(),
                bytes.len(),
            )),
            Value::Model(value) => {
                works(ANeuralNetworksModel_setOperandValueFromModel(model, index, *value));
            }
            Value::LeftOut => works(ANeuralNetworksModel_setOperandValue(model, index, null(), 0)),
        }
    }
    model
}

fn add(model: Handle, code: i32, inputs: &[u32], outputs: &[u32]) -> i32 {
    let count = |list: &[u32]| u32::try_from(list.len()).unwrap();
    let (input, output) = (inputs.as_ptr(), outputs.as_ptr());
    ANeuralNetworksModel_addOperation(model, code, count(inputs), input, count(outputs), output)
}

/// A finished model of one operation: the last `outputs` of its operands are what it writes, and
/// those before without a value what the client gives.
fn one(code: i32, operands: &[Operand], outputs: usize) -> Handle {
    let model = with_operands(operands);
    let split = operands.len() - outputs;
    let all: Vec<u32> = (0..u32::try_from(operands.len()).unwrap()).collect();
    works(add(model, code, &all[..split], &all[split..]));
    let given = |index: &&u32| matches!(operands[**index as usize].value, Value::None);
    let inputs: Vec<u32> = all[..split].iter().filter(given).copied().collect();
    let identify = ANeuralNetworksModel_identifyInputsAndOutputs;
    let count = |list: &[u32]| u32::try_from(list.len()).unwrap();
    let results = &all[split..];
    works(identify(model, count(&inputs), inputs.as_ptr(), count(results), results.as_ptr()));
    works(ANeuralNetworksModel_finish(model));
    model
}

/// Which operations of a model the first device can do.
fn supported(model: Handle, operations: usize) -> Vec<bool> {
    let mut answer = vec![true; operations];
    let ask = ANeuralNetworksModel_getSupportedOperationsForDevices;
    works(ask(model, [device()].as_ptr(), 1, answer.as_mut_ptr()));
    answer
}

/// Compiles a model of one operation and computes it from zeros. `given` are types that inputs are
/// given with.
fn compute(compilation: Handle, operands: &[Operand], outputs: usize, given: &[&[u32]]) -> i32 {
    works(ANeuralNetworksCompilation_finish(compilation));
    let execution = execution(compilation);
    let (arguments, results) = operands.split_at(operands.len() - outputs);
    // Read when it is computed.
    let mut values = Vec::new();
    for operand in arguments.iter().filter(|it| matches!(it.value, Value::None)) {
        let mut operand = operand.clone();
        let mut kind = None;
        if let Some(dimensions) = given.get(values.len()) {
            operand.dimensions = dimensions.to_vec();
            kind = Some(operand.kind());
        }
        let kind = kind.as_ref().map_or(null(), |kind| &raw const *kind);
        let bytes = vec![0_u8; size(&operand)];
        let (set, index) = (ANeuralNetworksExecution_setInput, values.len());
        let index = i32::try_from(index).unwrap();
        works(set(execution, index, kind, bytes.as_ptr().cast(), bytes.len()));
        values.push(bytes);
    }
    let mut buffers: Vec<Vec<u8>> = results.iter().map(|it| vec![0; size(it).max(64)]).collect();
    for (index, (buffer, operand)) in buffers.iter_mut().zip(results).enumerate() {
        let length = if size(operand) > 0 { size(operand) } else { buffer.len() };
        let index = i32::try_from(index).unwrap();
        let set = ANeuralNetworksExecution_setOutput;
        works(set(execution, index, null(), buffer.as_mut_ptr().cast(), length));
    }
    let code = ANeuralNetworksExecution_compute(execution);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    code
}

/// Demands that a model of one operation is built and compiled, for one device and for all, that no
/// device is said to do it, and that computing it fails with a sentence that says why.
#[track_caller]
fn fails_when_computed(code: i32, operands: &[Operand], outputs: usize, expected: &str) {
    let model = one(code, operands, outputs);
    assert_eq!(supported(model, 1), [false], "{expected}");
    let all = made(|it| ANeuralNetworksCompilation_create(model, it));
    for compilation in [unfinished_compilation(model), all] {
        assert_eq!(compute(compilation, operands, outputs, &[]), OP_FAILED, "{expected}");
        assert!(last_error().contains(expected), "{}", last_error());
    }
    ANeuralNetworksModel_free(model);
}

#[test]
fn values_that_a_definition_forbids_fail_when_computed() {
    let x = || float(&[2]);
    fails_when_computed(ADD, &[x(), x(), int(999), x()], 1, "999");
    let image = || float(&[1, 2, 2, 1]);
    let pool = [image(), int(1), int(-1), int(1), int(1), int(1), int(0), image()];
    fails_when_computed(MAX_POOL_2D, &pool, 1, "is -1, expected");
}

#[test]
fn operations_without_an_argument_that_they_need_fail_when_computed() {
    let x = || float(&[2]);
    let nothing = || Operand { value: Value::LeftOut, ..float(&[2]) };
    fails_when_computed(ADD, &[nothing(), x(), int(0), x()], 1, "input 0 (input0) is left out");
    let no_activation = Operand { value: Value::LeftOut, ..of(INT32, &[]) };
    fails_when_computed(ADD, &[x(), x(), no_activation, x()], 1, "is left out");
    // Types are checked as ever.
    let number = Operand { value: Value::LeftOut, ..of(TENSOR_INT32, &[2]) };
    refused(ADD, &[number, x(), int(0), x()], 1, "type of input");
}

#[test]
fn lengths_that_a_definition_forbids_fail_when_computed() {
    let image = || float(&[1, 2, 2, 1]);
    let (filter, bias) = (float(&[2, 1, 1, 1]).zeros(), float(&[1]).zeros());
    let convolution = [image(), filter, bias, int(1), int(1), int(1), int(1), int(0), image()];
    fails_when_computed(DEPTHWISE_CONV_2D, &convolution, 1, "filter");
    fails_when_computed(RELU, &[float(&[2]), float(&[3])], 1, "shape [3], expected [2]");
    let sum = [float(&[2]), float(&[3]), int(0), float(&[3])];
    fails_when_computed(ADD, &sum, 1, "operation 0 of the main subgraph: ADD");
}

#[test]
fn lengths_that_contradict_when_they_are_given_fail_when_computed() {
    let operands = [float(&[0]), float(&[0]), int(0), float(&[0])];
    let model = one(ADD, &operands, 1);
    assert_eq!(supported(model, 1), [true]);
    let open = unfinished_compilation(model);
    assert_eq!(compute(open, &operands, 1, &[&[2], &[3]]), OP_FAILED);
    // What contradicts the model itself is wrong as such.
    let fixed = one(ADD, &[float(&[2]), float(&[2]), int(0), float(&[2])], 1);
    let compilation = compilation(fixed);
    let execution = execution(compilation);
    let three = float(&[3]);
    let kind = three.kind();
    let (set, values) = (ANeuralNetworksExecution_setInput, [0.0_f32; 3]);
    assert_eq!(set(execution, 0, &raw const kind, bytes_of(&values), 12), BAD_DATA);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(fixed);
    ANeuralNetworksModel_free(model);
}

/// An IF or WHILE does what its subgraphs do, and fails with them.
#[test]
fn a_condition_that_declares_another_shape_than_it_has_fails_when_computed() {
    let condition = [float(&[2]), float(&[2]).zeros(), of(TENSOR_BOOL8, &[1])];
    let condition = one(LESS, &condition, 1);
    let body = one(RELU, &[float(&[2]), float(&[2])], 1);
    let operands = [sub(condition), sub(body), float(&[2]), float(&[2])];
    fails_when_computed(WHILE, &operands, 1, "shape [1], expected [2]");
    ANeuralNetworksModel_free(body);
    ANeuralNetworksModel_free(condition);
}

#[test]
fn only_the_branch_that_is_taken_can_fail() {
    let bad = one(RELU, &[float(&[2]), float(&[3])], 1);
    let good = one(RELU, &[float(&[2]), float(&[0])], 1);
    for (condition, expected) in [(0, NO_ERROR), (1, OP_FAILED)] {
        let truth = Operand { value: Value::Bytes(vec![condition]), ..of(TENSOR_BOOL8, &[1]) };
        let operands = [truth, sub(bad), sub(good), float(&[2]), float(&[0])];
        let model = one(IF, &operands, 1);
        assert_eq!(supported(model, 1), [false]);
        let compilation = unfinished_compilation(model);
        assert_eq!(compute(compilation, &operands, 1, &[]), expected, "{}", last_error());
        ANeuralNetworksModel_free(model);
    }
    ANeuralNetworksModel_free(good);
    ANeuralNetworksModel_free(bad);
}

#[test]
fn the_other_operations_of_a_model_are_supported() {
    let operands = [float(&[2]), float(&[2]), float(&[3]), float(&[2])];
    let model = with_operands(&operands);
    for (input, output) in [(0, 1), (1, 2), (1, 3)] {
        works(add(model, RELU, &[input], &[output]));
    }
    let identify = ANeuralNetworksModel_identifyInputsAndOutputs;
    works(identify(model, 1, [0].as_ptr(), 2, [2, 3].as_ptr()));
    works(ANeuralNetworksModel_finish(model));
    assert_eq!(supported(model, 3), [true, false, true]);
    ANeuralNetworksModel_free(model);
}

/// That a scale is above 0 is all that Android's runtime asks when operands are added and models finished.
#[test]
fn infinite_scales_fail_when_computed() {
    let infinite = |code| quant(code, &[2], f32::INFINITY, 0);
    for code in [TENSOR_QUANT8_ASYMM, TENSOR_QUANT8_ASYMM_SIGNED] {
        fails_when_computed(DEQUANTIZE, &[infinite(code), float(&[2])], 1, "input 0 is infinite");
        fails_when_computed(QUANTIZE, &[float(&[2]), infinite(code)], 1, "output 0 is infinite");
    }
    let number = || infinite(TENSOR_INT32);
    fails_when_computed(ADD, &[number(), number(), int(0), number()], 1, "operation 0");

    // By channel, and with what is no scale at all.
    let model = made(|model| ANeuralNetworksModel_create(model));
    for (code, scale, expected) in [
        (TENSOR_QUANT8_ASYMM, f32::NAN, BAD_DATA),
        (TENSOR_QUANT8_ASYMM, f32::NEG_INFINITY, BAD_DATA),
        (TENSOR_FLOAT32, f32::INFINITY, BAD_DATA),
        (TENSOR_QUANT8_SYMM_PER_CHANNEL, f32::INFINITY, BAD_DATA),
        (TENSOR_QUANT8_SYMM_PER_CHANNEL, 0.0, NO_ERROR),
    ] {
        let kind = quant(code, &[2], scale, 0);
        let kind = kind.kind();
        assert_eq!(ANeuralNetworksModel_addOperand(model, &raw const kind), expected, "{scale}");
    }
    let kind = tensor(TENSOR_FLOAT32, &[2]);
    works(ANeuralNetworksModel_addOperand(model, &raw const kind));
    let channels = |scales: &[f32; 2]| {
        let quant = ChannelQuant { dimension: 0, count: 2, scales: scales.as_ptr() };
        ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 0, &raw const quant)
    };
    assert_eq!(channels(&[1.0, f32::NAN]), BAD_DATA);
    works(channels(&[1.0, f32::INFINITY]));
    works(add(model, DEQUANTIZE, &[0], &[1]));
    let identify = ANeuralNetworksModel_identifyInputsAndOutputs;
    works(identify(model, 1, [0].as_ptr(), 1, [1].as_ptr()));
    works(ANeuralNetworksModel_finish(model));
    assert_eq!(supported(model, 1), [false]);
    ANeuralNetworksModel_free(model);
}

#[test]
fn scales_that_a_definition_forbids_fail_when_computed() {
    let q8 = |dimensions: &[u32], scale| quant(TENSOR_QUANT8_ASYMM, dimensions, scale, 128);
    let bias = Operand { scale: 0.5, ..ints(&[1], &[0]) };
    let connected = [q8(&[1, 2], 0.5), q8(&[1, 2], 0.5).zeros(), bias, int(0), q8(&[1, 1], 0.5)];
    fails_when_computed(FULLY_CONNECTED, &connected, 1, "scale of input 2 (bias)");
    for code in [TANH, LOGISTIC, L2_NORMALIZATION] {
        let operands = [q8(&[1, 2], 0.5), q8(&[1, 2], 0.5)];
        fails_when_computed(code, &operands, 1, "scale of output 0");
    }
    let softmax = [q8(&[1, 2], 0.5), real(1.0), q8(&[1, 2], 0.5)];
    fails_when_computed(SOFTMAX, &softmax, 1, "scale of output 0");
    let boxes = |count: u32, scale| quant(TENSOR_QUANT16_ASYMM, &[1, count], scale, 0);
    let transform =
        [boxes(4, 0.25), q8(&[1, 4], 0.05), ints(&[1], &[0]), boxes(2, 0.125), boxes(4, 0.125)];
    fails_when_computed(AXIS_ALIGNED_BBOX_TRANSFORM, &transform, 1, "scale of input 0");
    let mut cell = vec![q8(&[1, 2], 1.0 / 128.0)];
    cell.extend((0..4).map(|_| q8(&[4, 2], 0.01).zeros()));
    cell.extend((0..4).map(|_| q8(&[4, 4], 0.01).zeros()));
    cell.extend((0..4).map(|_| Operand { scale: 0.01 / 128.0, ..ints(&[4], &[0; 4]) }));
    let state = |scale| quant(TENSOR_QUANT16_SYMM, &[1, 4], scale, 0);
    cell.extend([state(1.0), q8(&[1, 4], 1.0 / 128.0)]);
    cell.extend([state(1.0), q8(&[1, 4], 1.0 / 128.0)]);
    fails_when_computed(QUANTIZED_16BIT_LSTM, &cell, 2, "scale of input 13");
}

#[test]
fn parameters_of_the_wrong_length_fail_when_computed() {
    let x = || float(&[2, 2]);
    let pad = [x(), ints(&[3, 2], &[0; 6]), float(&[0, 0])];
    fails_when_computed(PAD, &pad, 1, "shape of input 1");
    let transpose = [x(), ints(&[3], &[0, 1, 2]), float(&[0, 0])];
    fails_when_computed(TRANSPOSE, &transpose, 1, "shape of input 1");
    let numbers = |count: u32| ints(&[count], &vec![1; count as usize]);
    let slice = [x(), numbers(3), numbers(2), float(&[0, 0])];
    fails_when_computed(SLICE, &slice, 1, "shape of input 1");
    let strided = [x(), numbers(2), numbers(3), numbers(2), int(0), int(0), int(0), float(&[0, 0])];
    fails_when_computed(STRIDED_SLICE, &strided, 1, "shape of input 2");
}

/// Demands that an operation is refused when it is added.
#[track_caller]
fn refused(code: i32, operands: &[Operand], outputs: usize, expected: &str) {
    let model = with_operands(operands);
    let all: Vec<u32> = (0..u32::try_from(operands.len()).unwrap()).collect();
    let (inputs, outputs) = all.split_at(operands.len() - outputs);
    assert_eq!(add(model, code, inputs, outputs), BAD_DATA, "{expected}");
    assert!(last_error().contains(expected), "{}", last_error());
    ANeuralNetworksModel_free(model);
}

#[test]
fn ranks_are_refused_when_they_are_added() {
    refused(PACK, &[int(0), float(&[2]), float(&[2])], 1, "rank of output 0");
    let of_two_ranks = [int(0), float(&[2, 3]), float(&[2]), float(&[2, 2, 3])];
    refused(PACK, &of_two_ranks, 1, "rank of input 2");
    refused(REVERSE, &[float(&[2]), ints(&[1], &[0]), float(&[2, 1])], 1, "rank of output 0");
    let five = |code| of(code, &[1, 1, 1, 1, 2]);
    let scales_to_come = [five(TENSOR_QUANT8_SYMM_PER_CHANNEL), five(TENSOR_FLOAT32)];
    refused(DEQUANTIZE, &scales_to_come, 1, "rank of input 0");
}

/// Of these four operations Android's runtime looks at lengths when they are added.
#[test]
fn lengths_of_some_operations_are_refused_when_they_are_added() {
    let x = || float(&[2, 2]);
    refused(CAST, &[x(), float(&[2, 3])], 1, "shape of output 0");
    let two_axes = [x(), ints(&[2], &[0, 1]), float(&[2, 2])];
    refused(REVERSE, &two_axes, 1, "shape of input 1");
    let paddings = |dimensions: [u32; 2]| {
        let count = dimensions.iter().product::<u32>() as usize;
        [x(), ints(&dimensions, &vec![0; count]), int(0), float(&[0, 0])]
    };
    refused(MIRROR_PAD, &paddings([3, 2]), 1, "shape of input 1");
    refused(MIRROR_PAD, &paddings([2, 3]), 1, "shape of input 1");
    let connected = |input: [u32; 2], bias: u32| {
        let (weights, bias) = (float(&[3, 2]).zeros(), float(&[bias]).zeros());
        [float(&input), weights, bias, int(0), float(&[0, 3])]
    };
    refused(FULLY_CONNECTED, &connected([1, 3], 3), 1, "shape of input 0");
    refused(FULLY_CONNECTED, &connected([1, 2], 4), 1, "input 2 (bias)");
    // What is not known yet may still fit.
    for (code, operands) in [
        (CAST, vec![x(), float(&[0, 0])]),
        (CAST, vec![float(&[0, 2]), x()]),
        (FULLY_CONNECTED, connected([0, 3], 3).to_vec()),
    ] {
        let model = with_operands(&operands);
        let all: Vec<u32> = (0..u32::try_from(operands.len()).unwrap()).collect();
        let (inputs, outputs) = all.split_at(operands.len() - 1);
        works(add(model, code, inputs, outputs));
        ANeuralNetworksModel_free(model);
    }
}

#[test]
fn control_flow_that_contradicts_its_models_is_refused_when_it_is_added() {
    let model = one(RELU, &[float(&[2]), float(&[2])], 1);
    let truth = || of(TENSOR_BOOL8, &[1]);
    let condition = one(LESS, &[float(&[1]), float(&[1]).zeros(), truth()], 1);
    let later = || of(MODEL, &[]);
    let x = || float(&[2]);
    let number = || of(TENSOR_INT32, &[2]);
    for (operands, outputs, expected) in [
        (vec![truth(), sub(model), sub(model), x(), x(), x()], 1, "has 1 inputs"),
        (vec![truth(), sub(model), sub(model), x(), x(), x()], 2, "has 1 outputs"),
        (vec![truth(), sub(model), sub(model), number(), x()], 1, "type of input 0"),
        (vec![truth(), sub(model), sub(model), float(&[3]), x()], 1, "shape of input 0"),
        (vec![of(TENSOR_BOOL8, &[2]), sub(model), sub(model), x(), x()], 1, "TENSOR_BOOL8 [1]"),
        (vec![truth(), later(), sub(model), x(), x()], 1, "no model is set as the then subgraph"),
        (vec![truth(), sub(model), later(), x(), x()], 1, "no model is set as the else subgraph"),
    ] {
        refused(IF, &operands, outputs, expected);
    }
    for (operands, outputs, expected) in [
        (vec![sub(condition), sub(model), x(), x(), x()], 1, "has 1 inputs"),
        (vec![sub(model), sub(model), x(), x()], 1, "TENSOR_BOOL8 [1]"),
        (vec![later(), sub(model), x(), x()], 1, "no model is set as the condition subgraph"),
        (vec![sub(condition), later(), x(), x()], 1, "no model is set as the body subgraph"),
    ] {
        refused(WHILE, &operands, outputs, expected);
    }
    // An attempt to set one that fails sets none.
    let whole = with_operands(&[truth(), later(), sub(model), x(), x()]);
    let unfinished = unfinished_model(&[2]);
    let set = ANeuralNetworksModel_setOperandValueFromModel;
    assert_eq!(set(whole, 1, unfinished), BAD_STATE);
    assert_eq!(add(whole, IF, &[0, 1, 2, 3], &[4]), BAD_DATA);
    works(set(whole, 1, model));
    works(add(whole, IF, &[0, 1, 2, 3], &[4]));
    ANeuralNetworksModel_free(unfinished);
    ANeuralNetworksModel_free(whole);
    ANeuralNetworksModel_free(condition);
    ANeuralNetworksModel_free(model);
}

#[test]
fn a_local_response_normalization_with_a_bias_of_0_is_computed() {
    let operands = [float(&[1, 1, 1, 2]), int(0), real(0.0), real(1.0), real(0.5)];
    let operands: Vec<Operand> = operands.into_iter().chain([float(&[1, 1, 1, 2])]).collect();
    let model = one(LOCAL_RESPONSE_NORMALIZATION, &operands, 1);
    assert_eq!(supported(model, 1), [true]);
    let mut count = 0;
    works(ANeuralNetworks_getDeviceCount(&raw mut count));
    for index in 0..count {
        let device = made(|device| ANeuralNetworks_getDevice(index, device));
        let create = ANeuralNetworksCompilation_createForDevices;
        let compilation = made(|it| create(model, [device].as_ptr(), 1, it));
        works(ANeuralNetworksCompilation_finish(compilation));
        let execution = execution(compilation);
        let (x, mut y) = ([3.0_f32, -4.0], [0.0_f32; 2]);
        works(ANeuralNetworksExecution_setInput(execution, 0, null(), bytes_of(&x), 8));
        works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 8));
        works(ANeuralNetworksExecution_compute(execution));
        // Each divided by the root of its own square.
        assert_eq!(y, [1.0, -1.0]);
        ANeuralNetworksExecution_free(execution);
        ANeuralNetworksCompilation_free(compilation);
    }
    let mut nothing = null_mut();
    assert_eq!(ANeuralNetworksCompilation_create(null_mut(), &raw mut nothing), 3);
    ANeuralNetworksModel_free(model);
}

#[test]
fn computing_fails_in_every_way_to_start_it() {
    let x = || float(&[2]);
    let operands = [x(), x(), int(999), x()];
    let model = one(ADD, &operands, 1);
    let compilation = compilation(model);
    let burst = made(|burst| ANeuralNetworksBurst_create(compilation, burst));
    for way in 0..4 {
        let execution = execution(compilation);
        let (a, mut y) = ([0.0_f32; 2], [0.0_f32; 2]);
        for index in 0..2 {
            works(ANeuralNetworksExecution_setInput(execution, index, null(), bytes_of(&a), 8));
        }
        works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 8));
        let wait = |event: Handle| {
            let code = ANeuralNetworksEvent_wait(event);
            ANeuralNetworksEvent_free(event);
            code
        };
        let code = match way {
            0 => ANeuralNetworksExecution_compute(execution),
            1 => ANeuralNetworksExecution_burstCompute(execution, burst),
            2 => wait(made(|event| ANeuralNetworksExecution_startCompute(execution, event))),
            _ => wait(made(|event| {
                let start = ANeuralNetworksExecution_startComputeWithDependencies;
                start(execution, null(), 0, 0, event)
            })),
        };
        assert_eq!(code, OP_FAILED, "way {way}");
        ANeuralNetworksExecution_free(execution);
    }
    ANeuralNetworksBurst_free(burst);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}
