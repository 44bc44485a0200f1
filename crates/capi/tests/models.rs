//! Models: what each misuse answers, and what becomes of values.

mod c;

use c::*;
use std::ptr::{null, null_mut};

fn empty() -> Handle {
    made(|model| ANeuralNetworksModel_create(model))
}

fn add(model: Handle, kind: OperandType) -> i32 {
    ANeuralNetworksModel_addOperand(model, &raw const kind)
}

#[test]
fn null_pointers_are_unexpected() {
    let model = empty();
    works(add(model, scalar(INT32)));
    assert_eq!(ANeuralNetworksModel_create(null_mut()), UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworksModel_addOperand(model, null()), UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworksModel_setOperandValue(model, 0, null(), 4), UNEXPECTED_NULL);
    let value = ANeuralNetworksModel_setOperandValueFromMemory(model, 0, null_mut(), 0, 4);
    assert_eq!(value, UNEXPECTED_NULL);
    let value = ANeuralNetworksModel_setOperandValueFromModel(model, 0, null_mut());
    assert_eq!(value, UNEXPECTED_NULL);
    let quant = ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 0, null());
    assert_eq!(quant, UNEXPECTED_NULL);
    assert_eq!(ANeuralNetworksModel_setOperandExtensionData(model, 0, null(), 4), UNEXPECTED_NULL);
    let list = [0_u32];
    let none = null();
    let add_operation =
        |inputs, outputs| ANeuralNetworksModel_addOperation(model, RELU, 1, inputs, 1, outputs);
    assert_eq!(add_operation(none, list.as_ptr()), UNEXPECTED_NULL);
    assert_eq!(add_operation(list.as_ptr(), none), UNEXPECTED_NULL);
    let identify = |inputs, outputs| {
        ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, inputs, 1, outputs)
    };
    assert_eq!(identify(none, list.as_ptr()), UNEXPECTED_NULL);
    assert_eq!(identify(list.as_ptr(), none), UNEXPECTED_NULL);
    ANeuralNetworksModel_free(model);
}

#[test]
fn operand_types_are_checked_when_they_are_added() {
    let model = empty();
    let wrong = [
        ("an unknown type", scalar(16)),
        ("a negative type", scalar(-1)),
        ("dimensions without a count", OperandType { count: 0, ..tensor(TENSOR_FLOAT32, &[2]) }),
        ("a count without dimensions", OperandType { count: 2, ..scalar(TENSOR_FLOAT32) }),
        ("a scalar with dimensions", tensor(INT32, &[1])),
        ("a float tensor with a scale", OperandType { scale: 1.0, ..tensor(TENSOR_FLOAT32, &[1]) }),
        (
            "a float tensor with a zero point",
            OperandType { zero_point: 1, ..tensor(TENSOR_FLOAT32, &[1]) },
        ),
        ("a quantized tensor without a scale", tensor(5, &[1])),
        ("a zero point above 255", OperandType { scale: 1.0, zero_point: 256, ..tensor(5, &[1]) }),
        ("more bytes than 32 bits count", tensor(TENSOR_FLOAT32, &[1 << 16, 1 << 16])),
    ];
    for (what, kind) in wrong {
        assert_eq!(add(model, kind), BAD_DATA, "{what}");
    }
    // None of them counts: the next operand is number 0.
    works(add(model, scalar(INT32)));
    works(ANeuralNetworksModel_setOperandValue(model, 0, [7_i32].as_ptr().cast(), 4));
    ANeuralNetworksModel_free(model);
}

#[test]
fn values_must_fit_their_operand() {
    let model = empty();
    works(add(model, tensor(TENSOR_FLOAT32, &[2])));
    works(add(model, tensor(TENSOR_FLOAT32, &[2, 0])));
    works(add(model, scalar(TENSOR_FLOAT32)));
    let floats = [0.0_f32; 64];
    let set = |index, length| {
        ANeuralNetworksModel_setOperandValue(model, index, floats.as_ptr().cast(), length)
    };
    for length in [0, 1, 7, 9, 256, 1 << 33] {
        assert_eq!(set(0, length), BAD_DATA, "{length} bytes for 8");
    }
    works(set(0, 8));
    assert_eq!(set(1, 8), BAD_DATA, "an unknown dimension");
    assert_eq!(set(2, 8), BAD_DATA, "an unknown rank");
    for index in [3, -1, i32::MAX, i32::MIN] {
        assert_eq!(set(index, 8), BAD_DATA, "operand {index} of 3");
        let omitted = ANeuralNetworksModel_setOperandValue(model, index, null(), 0);
        assert_eq!(omitted, BAD_DATA, "operand {index} of 3");
    }
    works(ANeuralNetworksModel_setOperandValue(model, 0, null(), 0));
    ANeuralNetworksModel_free(model);
}

#[test]
fn channel_scales_must_fit_their_operand() {
    let model = empty();
    works(add(model, tensor(TENSOR_QUANT8_SYMM_PER_CHANNEL, &[2, 3])));
    works(add(model, tensor(TENSOR_FLOAT32, &[2, 3])));
    let set = |operand, dimension, scales: &[f32], count| {
        let scales = if scales.is_empty() { null() } else { scales.as_ptr() };
        let quant = ChannelQuant { dimension, count, scales };
        ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, operand, &raw const quant)
    };
    assert_eq!(set(0, 0, &[1.0, 1.0], 2), NO_ERROR);
    assert_eq!(set(0, 1, &[1.0, 1.0, 1.0], 3), NO_ERROR);
    assert_eq!(set(0, 1, &[1.0, 1.0], 2), BAD_DATA, "too few");
    assert_eq!(set(0, 2, &[1.0, 1.0], 2), BAD_DATA, "no such dimension");
    assert_eq!(set(0, 0, &[1.0, 0.0], 2), BAD_DATA, "a scale of 0");
    assert_eq!(set(0, 0, &[], 2), BAD_DATA, "scales are null");
    assert_eq!(set(0, 0, &[1.0], 0), BAD_DATA, "the count is 0");
    assert_eq!(set(1, 0, &[1.0, 1.0], 2), BAD_DATA, "another type");
    assert_eq!(set(2, 0, &[1.0, 1.0], 2), BAD_DATA, "no such operand");
    ANeuralNetworksModel_free(model);
}

#[test]
fn operations_are_checked_when_they_are_added() {
    let model = unfinished_model(&[2]);
    let operation = |code, inputs: &[u32], outputs: &[u32]| {
        let count = |list: &[u32]| u32::try_from(list.len()).unwrap();
        let (input, output) = (inputs.as_ptr(), outputs.as_ptr());
        ANeuralNetworksModel_addOperation(model, code, count(inputs), input, count(outputs), output)
    };
    assert_eq!(operation(106, &[0], &[3]), BAD_DATA, "an unknown operation");
    assert_eq!(operation(-1, &[0], &[3]), BAD_DATA, "a negative operation");
    assert_eq!(operation(RELU, &[4], &[3]), BAD_DATA, "no such input");
    assert_eq!(operation(RELU, &[0], &[9]), BAD_DATA, "no such output");
    assert_eq!(operation(RELU, &[], &[3]), BAD_DATA, "no inputs");
    assert_eq!(operation(RELU, &[0], &[]), BAD_DATA, "no outputs");
    assert_eq!(operation(RELU, &[0, 1], &[3]), BAD_DATA, "too many inputs");
    assert_eq!(operation(ADD, &[0, 1], &[3]), BAD_DATA, "too few inputs");
    assert_eq!(operation(ADD, &[0, 2, 2], &[3]), BAD_DATA, "wrong types");
    works(ANeuralNetworksModel_finish(model));
    ANeuralNetworksModel_free(model);
}

#[test]
fn inputs_and_outputs_must_be_operands_without_values() {
    let model = empty();
    for _ in 0..3 {
        works(add(model, tensor(TENSOR_FLOAT32, &[2])));
    }
    works(ANeuralNetworksModel_setOperandValue(model, 2, bytes_of(&[1.0, 2.0]), 8));
    let identify = |inputs: &[u32], outputs: &[u32]| {
        let count = |list: &[u32]| u32::try_from(list.len()).unwrap();
        let (input, output) = (inputs.as_ptr(), outputs.as_ptr());
        let (inputs, outputs) = (count(inputs), count(outputs));
        ANeuralNetworksModel_identifyInputsAndOutputs(model, inputs, input, outputs, output)
    };
    assert_eq!(identify(&[3], &[1]), BAD_DATA, "no such operand");
    assert_eq!(identify(&[0], &[u32::MAX]), BAD_DATA, "no such operand");
    assert_eq!(identify(&[], &[1]), BAD_DATA, "no inputs");
    assert_eq!(identify(&[0], &[]), BAD_DATA, "no outputs");
    assert_eq!(identify(&[2], &[1]), BAD_DATA, "a constant");
    ANeuralNetworksModel_free(model);
}

#[test]
fn a_model_without_inputs_and_outputs_cannot_be_finished() {
    let model = empty();
    works(add(model, tensor(TENSOR_FLOAT32, &[2])));
    works(add(model, tensor(TENSOR_FLOAT32, &[2])));
    works(ANeuralNetworksModel_addOperation(model, RELU, 1, [0].as_ptr(), 1, [1].as_ptr()));
    assert_eq!(ANeuralNetworksModel_finish(model), BAD_DATA);
    let mut compilation = null_mut();
    assert_eq!(ANeuralNetworksCompilation_create(model, &raw mut compilation), BAD_STATE);
    assert_eq!(ANeuralNetworksModel_finish(model), BAD_STATE);
    ANeuralNetworksModel_free(model);
}

#[test]
fn operations_that_wait_for_each_other_cannot_be_finished() {
    let model = empty();
    for _ in 0..4 {
        works(add(model, tensor(TENSOR_FLOAT32, &[2])));
    }
    works(add(model, scalar(INT32)));
    works(ANeuralNetworksModel_setOperandValue(model, 4, [0_i32].as_ptr().cast(), 4));
    for (inputs, output) in [([0, 2, 4], 1), ([0, 1, 4], 2), ([0, 1, 4], 3)] {
        let (inputs, output) = (inputs.as_ptr(), [output]);
        works(ANeuralNetworksModel_addOperation(model, ADD, 3, inputs, 1, output.as_ptr()));
    }
    works(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, [0].as_ptr(), 1, [3].as_ptr()));
    assert_eq!(ANeuralNetworksModel_finish(model), BAD_DATA);
    ANeuralNetworksModel_free(model);
}

#[test]
fn a_finished_model_does_not_change() {
    let model = model();
    let kind = scalar(INT32);
    let quant = ChannelQuant { dimension: 0, count: 1, scales: [1.0].as_ptr() };
    let other = c::model();
    let calls = [
        ANeuralNetworksModel_finish(model),
        ANeuralNetworksModel_addOperand(model, &raw const kind),
        ANeuralNetworksModel_setOperandValue(model, 0, bytes_of(&[0.0; 2]), 8),
        ANeuralNetworksModel_setOperandValue(model, 0, null(), 0),
        ANeuralNetworksModel_setOperandValue(model, 99, null(), 0),
        ANeuralNetworksModel_setOperandValueFromModel(model, 0, other),
        ANeuralNetworksModel_setOperandValueFromModel(model, 0, model),
        ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, 0, &raw const quant),
        ANeuralNetworksModel_setOperandExtensionData(model, 0, null(), 0),
        ANeuralNetworksModel_addOperation(model, RELU, 1, [0].as_ptr(), 1, [3].as_ptr()),
        ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, [0].as_ptr(), 1, [3].as_ptr()),
        ANeuralNetworksModel_relaxComputationFloat32toFloat16(model, true),
    ];
    for (index, code) in calls.into_iter().enumerate() {
        assert_eq!(code, BAD_STATE, "call {index}");
    }
    ANeuralNetworksModel_free(other);
    ANeuralNetworksModel_free(model);
}

#[test]
fn an_unfinished_model_is_no_value() {
    let (model, value) = (empty(), unfinished_model(&[2]));
    works(add(model, scalar(MODEL)));
    assert_eq!(ANeuralNetworksModel_setOperandValueFromModel(model, 0, value), BAD_STATE);
    assert_eq!(ANeuralNetworksModel_setOperandValueFromModel(model, 0, model), BAD_STATE);
    works(ANeuralNetworksModel_finish(value));
    assert_eq!(ANeuralNetworksModel_setOperandValueFromModel(model, 1, value), BAD_DATA);
    works(ANeuralNetworksModel_setOperandValueFromModel(model, 0, value));
    ANeuralNetworksModel_free(value);
    ANeuralNetworksModel_free(model);
}

/// y = x + c with c of 64 numbers, which is more than is copied at once.
fn with_large_constant(constant: &[f32; 64]) -> Handle {
    let model = empty();
    for kind in [
        tensor(TENSOR_FLOAT32, &[64]),
        tensor(TENSOR_FLOAT32, &[64]),
        scalar(INT32),
        tensor(TENSOR_FLOAT32, &[64]),
    ] {
        works(add(model, kind));
    }
    works(ANeuralNetworksModel_setOperandValue(model, 1, bytes_of(constant), 256));
    works(ANeuralNetworksModel_setOperandValue(model, 2, [0_i32].as_ptr().cast(), 4));
    works(ANeuralNetworksModel_addOperation(model, ADD, 3, [0, 1, 2].as_ptr(), 1, [3].as_ptr()));
    works(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, [0].as_ptr(), 1, [3].as_ptr()));
    model
}

/// contract: CAPI-2: what is given by pointer is copied into shared memory.
#[test]
fn capi_2_values_are_the_librarys_own_once_the_model_is_finished() {
    let mut constant = Box::new([1.0; 64]);
    let model = with_large_constant(&constant);
    works(ANeuralNetworksModel_finish(model));
    constant.fill(9.0);
    drop(constant);
    let compilation = compilation(model);
    let execution = execution(compilation);
    let (x, mut y) = ([0.5; 64], [0.0; 64]);
    works(ANeuralNetworksExecution_setInput(execution, 0, null(), bytes_of(&x), 256));
    works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 256));
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(y, [1.5; 64]);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn a_small_value_is_copied_at_once() {
    let model = unfinished_model(&[2]);
    let mut constant = Box::new([5.0, 6.0]);
    works(ANeuralNetworksModel_setOperandValue(model, 1, bytes_of(&*constant), 8));
    constant.fill(0.0);
    works(ANeuralNetworksModel_finish(model));
    let compilation = compilation(model);
    let (x, mut y) = ([1.0, 1.0], [0.0; 2]);
    let execution = ready_execution(compilation, &x, &mut y);
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(y, [6.0, 7.0]);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn extensions_that_no_device_has_can_be_named_but_not_used() {
    let model = empty();
    let (mut operand, mut operation) = (0, 0);
    let name = name("com.example.none");
    let ask_operand = ANeuralNetworksModel_getExtensionOperandType;
    works(ask_operand(model, name.as_ptr(), 1, &raw mut operand));
    assert!(operand > 0xffff, "{operand:#x}");
    let ask_operation = ANeuralNetworksModel_getExtensionOperationType;
    works(ask_operation(model, name.as_ptr(), 2, &raw mut operation));
    assert_eq!(operand - 1, operation - 2, "one prefix for both");
    assert_eq!(add(model, tensor(operand, &[1])), BAD_DATA);
    assert_eq!(ask_operand(model, null(), 1, &raw mut operand), UNEXPECTED_NULL);
    assert_eq!(ask_operand(model, name.as_ptr(), 1, null_mut()), UNEXPECTED_NULL);
    let mut is = true;
    works(ANeuralNetworksDevice_getExtensionSupport(device(), name.as_ptr(), &raw mut is));
    assert!(!is);
    for _ in 0..2 {
        works(add(model, tensor(TENSOR_FLOAT32, &[2])));
    }
    works(ANeuralNetworksModel_addOperation(model, operation, 1, [0].as_ptr(), 1, [1].as_ptr()));
    works(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, [0].as_ptr(), 1, [1].as_ptr()));
    assert_eq!(ANeuralNetworksModel_finish(model), BAD_DATA);
    assert!(last_error().contains("no device offers extension com.example.none"));
    ANeuralNetworksModel_free(model);
}
