//! Models of `tests/litert`: lengths that the file leaves open, results whose shapes only a run gives, variables,
//! signatures.

mod c;

use c::{copied, fields, ready, text};
use std::ffi::CString;
use std::ptr::null;
use tensorflowlite_c::abi::{TfLiteStatus, TfLiteTensor, allocation};
use tensorflowlite_c::access::*;
use tensorflowlite_c::interpreter::*;
use tensorflowlite_c::model::*;
use tensorflowlite_c::signature::*;

fn file(name: &str) -> *mut TfLiteModel {
    let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    let model = TfLiteModelCreateFromFile(CString::new(path).unwrap().as_ptr());
    assert!(!model.is_null());
    model
}

fn give(tensor: *mut TfLiteTensor, values: &[f32]) {
    let bytes = size_of_val(values);
    let status = TfLiteTensorCopyFromBuffer(tensor, values.as_ptr().cast(), bytes);
    assert_eq!(status, TfLiteStatus::Ok);
}

fn take(tensor: *const TfLiteTensor) -> Vec<f32> {
    copied(tensor).as_chunks().0.iter().map(|it| f32::from_ne_bytes(*it)).collect()
}

fn input(interpreter: *const TfLiteInterpreter, index: i32) -> *mut TfLiteTensor {
    TfLiteInterpreterGetInputTensor(interpreter, index)
}

fn output(interpreter: *const TfLiteInterpreter, index: i32) -> *const TfLiteTensor {
    TfLiteInterpreterGetOutputTensor(interpreter, index)
}

#[test]
fn inputs_take_the_shapes_that_the_file_leaves_open() {
    let model = file("tests/data/dynamic_broadcast.float32.tflite");
    let interpreter = ready(model);
    let (taken, given) = (input(interpreter, 0), output(interpreter, 0));
    let signature = c::array(fields(taken).dims_signature);
    assert!(signature.contains(&-1), "{signature:?}");
    let example = c::array(fields(taken).dims);
    let wanted: Vec<i32> = signature.iter().map(|it| if *it == -1 { 3 } else { *it }).collect();
    assert_ne!(example, wanted);
    let resize = |dims: &[i32]| {
        let count = i32::try_from(dims.len()).unwrap();
        let inputs = 0..TfLiteInterpreterGetInputTensorCount(interpreter);
        for at in inputs
            .filter(|at| c::array(fields(input(interpreter, *at)).dims_signature) == signature)
        {
            let status = TfLiteInterpreterResizeInputTensor(interpreter, at, dims.as_ptr(), count);
            assert_eq!(status, TfLiteStatus::Ok);
        }
    };
    resize(&wanted);
    assert!(TfLiteTensorData(taken).is_null());
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Error);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    let place = TfLiteTensorData(taken);
    assert!(!place.is_null() && !TfLiteTensorData(given).is_null());
    let before = c::array(fields(given).dims);
    assert!(before.contains(&3), "known before the run: {before:?}");
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    assert_eq!(c::array(fields(given).dims), before);
    resize(&wanted);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok, "nothing changed");
    resize(&example);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

#[test]
fn shapes_that_only_a_run_gives_are_known_after_it() {
    let model = file("tests/data/unique.float32.tflite");
    let interpreter = ready(model);
    let given = output(interpreter, 0);
    assert_eq!(fields(given).allocation_type, allocation::DYNAMIC);
    assert!(TfLiteTensorData(given).is_null());
    let mut bytes = [0; 4];
    let status = TfLiteTensorCopyToBuffer(given, bytes.as_mut_ptr().cast(), 4);
    assert_eq!(status, TfLiteStatus::Error, "before the run there is nothing");
    for (values, expected) in [
        ([1.0, 2.0, 2.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], vec![1.0, 2.0, 3.0]),
        ([7.0; 12], vec![7.0]),
    ] {
        give(input(interpreter, 0), &values);
        assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
        assert_eq!(c::array(fields(given).dims), [i32::try_from(expected.len()).unwrap()]);
        assert_eq!(take(given), expected);
    }
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

#[test]
fn variable_tensors_stay_are_shown_and_are_reset() {
    let model = file("tests/data/svdf_rank1.tflite");
    let interpreter = ready(model);
    let run = |value: f32| {
        give(input(interpreter, 0), &[value; 10]);
        assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
        take(output(interpreter, 0))
    };
    let (first, second) = (run(1.0), run(1.0));
    assert_ne!(first, second, "the model has a state");
    assert_eq!(TfLiteInterpreterResetVariableTensors(interpreter), TfLiteStatus::Ok);
    assert_eq!(run(1.0), first);

    assert_eq!(TfLiteInterpreterGetVariableTensorCount(interpreter), 1);
    let variable = TfLiteInterpreterGetVariableTensor(interpreter, 0);
    assert!(fields(variable).is_variable);
    let state = take(variable);
    assert!(state.iter().any(|it| *it != 0.0), "as the run left it: {state:?}");
    assert_eq!(run(1.0), second);
    assert_ne!(take(variable), state, "brought up to date");
    // What the program writes counts.
    give(variable, &state);
    assert_eq!(run(1.0), second);
    assert_eq!(TfLiteInterpreterResetVariableTensors(interpreter), TfLiteStatus::Ok);
    assert!(take(variable).iter().all(|it| *it == 0.0));
    assert!(TfLiteInterpreterGetVariableTensor(interpreter, 1).is_null());
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

/// Runs a signature of a file with one input and one output.
fn call(interpreter: *const TfLiteInterpreter, key: &str, value: f32) -> Vec<f32> {
    let key = CString::new(key).unwrap();
    let runner = TfLiteInterpreterGetSignatureRunner(interpreter, key.as_ptr());
    assert!(!runner.is_null());
    assert_eq!(TfLiteSignatureRunnerAllocateTensors(runner), TfLiteStatus::Ok);
    let taken = TfLiteSignatureRunnerGetInputName(runner, 0);
    give(TfLiteSignatureRunnerGetInputTensor(runner, taken), &[value; 6]);
    assert_eq!(TfLiteSignatureRunnerInvoke(runner), TfLiteStatus::Ok);
    let given = TfLiteSignatureRunnerGetOutputName(runner, 0);
    let result = take(TfLiteSignatureRunnerGetOutputTensor(runner, given));
    TfLiteSignatureRunnerDelete(runner);
    result
}

#[test]
fn a_signature_gives_results_that_are_none_of_the_graph() {
    let model = file("../nnhal/tests/data/sum_and_relu.tflite");
    let interpreter = TfLiteInterpreterCreate(model, null());
    assert_eq!(TfLiteInterpreterGetOutputTensorCount(interpreter), 1);
    let key = CString::new("serve").unwrap();
    let runner = TfLiteInterpreterGetSignatureRunner(interpreter, key.as_ptr());
    assert_eq!(TfLiteSignatureRunnerAllocateTensors(runner), TfLiteStatus::Ok);
    let names = ["x", "w", "y", "r"].map(|name| CString::new(name).unwrap());
    let inputs = [[1.0, 2.0, 3.0, 4.0], [-2.0; 4]];
    for (name, values) in names.iter().zip(inputs) {
        give(TfLiteSignatureRunnerGetInputTensor(runner, name.as_ptr()), &values);
    }
    for _ in 0..2 {
        assert_eq!(TfLiteSignatureRunnerInvoke(runner), TfLiteStatus::Ok);
        let result =
            |at: usize| take(TfLiteSignatureRunnerGetOutputTensor(runner, names[at].as_ptr()));
        assert_eq!(result(2), [-1.0, 0.0, 1.0, 2.0]);
        assert_eq!(result(3), [0.0, 0.0, 1.0, 2.0]);
        assert_eq!(TfLiteSignatureRunnerAllocateTensors(runner), TfLiteStatus::Ok);
    }
    TfLiteSignatureRunnerDelete(runner);
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

/// `add` adds to a variable, `get` adds to what it reads of it.
#[test]
fn signatures_share_resource_variables_within_an_interpreter() {
    let model = file("../nnhal/tests/data/variables_of_signatures.tflite");
    let one = TfLiteInterpreterCreate(model, null());
    let other = TfLiteInterpreterCreate(model, null());
    let keys = (0..TfLiteInterpreterGetSignatureCount(one))
        .map(|index| text(TfLiteInterpreterGetSignatureKey(one, index)));
    assert_eq!(keys.collect::<Vec<_>>(), ["add", "get"]);
    assert!(TfLiteInterpreterGetSignatureKey(one, 2).is_null());
    let plus = |values: &[f32], more: f32| values.iter().map(|it| it + more).collect::<Vec<_>>();
    let first = call(one, "get", 0.0);
    assert!(first.iter().any(|it| *it != 0.0), "initialized by CALL_ONCE: {first:?}");
    let after = call(one, "add", 2.0);
    assert_eq!(after, plus(&first, 2.0));
    assert_eq!(call(one, "get", 0.0), after);
    assert_eq!(call(other, "get", 0.0), first, "another interpreter has its own");
    // Resource variables stay, as in TensorFlow Lite.
    assert_eq!(TfLiteInterpreterResetVariableTensors(one), TfLiteStatus::Ok);
    assert_eq!(call(one, "get", 0.0), after);
    for interpreter in [one, other] {
        TfLiteInterpreterDelete(interpreter);
    }
    TfLiteModelDelete(model);
}

#[test]
fn a_signature_sees_what_the_interpreter_has_assigned_before() {
    let model = file("../nnhal/tests/data/variables_of_signatures.tflite");
    let (interpreter, other) = (ready(model), ready(model));
    let first = call(other, "get", 0.0);
    for _ in 0..2 {
        give(input(interpreter, 0), &[2.0; 6]);
        assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    }
    // The first subgraph is that of `add`.
    let after: Vec<f32> = first.iter().map(|it| it + 2.0 + 2.0).collect();
    assert_eq!(take(output(interpreter, 0)), after);
    assert_eq!(call(interpreter, "get", 0.0), after);
    assert_eq!(call(interpreter, "add", 1.0), call(interpreter, "get", 0.0));
    for interpreter in [interpreter, other] {
        TfLiteInterpreterDelete(interpreter);
    }
    TfLiteModelDelete(model);
}
