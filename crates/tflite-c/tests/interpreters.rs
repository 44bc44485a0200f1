//! The C functions as a C program calls them: what tensors say, how they are run, what is refused.

mod c;

use c::{Reported, copied, digits, fields, ready, run, text};
use std::ptr::{null, null_mut};
use tensorflowlite_c::abi::{TfLiteStatus, TfLiteTensor, allocation};
use tensorflowlite_c::access::*;
use tensorflowlite_c::interpreter::*;
use tensorflowlite_c::model::*;
use tensorflowlite_c::options::*;
use tensorflowlite_c::own_structures::*;
use tensorflowlite_c::signature::*;
use tensorflowlite_c::version::*;

fn picture() -> Vec<u8> {
    (0..64_u8).map(|at| at.wrapping_mul(3)).collect()
}

#[test]
fn tensors_say_what_the_file_says() {
    let model = digits("digits_int8.tflite");
    let interpreter = ready(model);
    let input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    let seen = fields(input);
    assert_eq!(c::array(seen.dims), [1, 8, 8, 1]);
    assert!(c::array(seen.dims_signature).is_empty(), "the file leaves none open");
    assert_eq!((seen.r#type, seen.bytes, seen.allocation_type), (9, 64, allocation::ARENA));
    assert_eq!(seen.data.addr() % 64, 0);
    assert_eq!(seen.data, TfLiteTensorData(input));
    assert_eq!(text(seen.name), text(TfLiteTensorName(input)));
    let (scales, zero_points, _) = c::quantization(input);
    assert_eq!((scales, zero_points), (vec![seen.params.scale], vec![seen.params.zero_point]));
    assert!(seen.params.scale > 0.0);
    assert_eq!(TfLiteTensorQuantizationParams(input), seen.params);
    let name = |code| text(TfLiteTypeGetName(code));
    assert_eq!(
        [name(9), name(19), name(20), name(-1)],
        ["INT8", "BFLOAT16", "Unknown type", "Unknown type"]
    );
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

#[test]
fn elements_are_where_the_tensor_says() {
    let model = digits("digits_int8.tflite");
    let interpreter = ready(model);
    let expected = run(interpreter, &picture());
    let (input, output) = (
        TfLiteInterpreterGetInputTensor(interpreter, 0),
        TfLiteInterpreterGetOutputTensor(interpreter, 0),
    );
    let places = (fields(input).data, fields(output).data);
    c::write(input, &[0; 64]);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    assert_ne!(c::read(output), expected);
    c::write(input, &picture());
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    assert_eq!(c::read(output), expected);
    assert_eq!((fields(input).data, fields(output).data), places, "memory stays");
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

#[test]
fn elements_begin_at_multiples_of_64() {
    let model = digits("digits_int8.tflite");
    let all: Vec<_> = (0..30).map(|_| ready(model)).collect();
    for interpreter in &all {
        let output = TfLiteInterpreterGetOutputTensor(*interpreter, 0);
        let input = TfLiteInterpreterGetInputTensor(*interpreter, 0);
        for tensor in [input.cast_const(), output] {
            assert_eq!(fields(tensor).data.addr() % 64, 0);
        }
    }
    all.into_iter().for_each(|interpreter| TfLiteInterpreterDelete(interpreter));
    TfLiteModelDelete(model);
}

#[test]
fn the_results_are_those_of_the_rust_library() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
    let session = nnhal::Model::load(path).unwrap().session(nnhal::SessionOptions::new()).unwrap();
    let signed: Vec<i8> = picture().into_iter().map(u8::cast_signed).collect();
    let expected = session.run([&signed]).unwrap()[0].as_bytes().to_vec();
    let model = digits("digits_int8.tflite");
    let interpreter = ready(model);
    TfLiteModelDelete(model);
    assert_eq!(run(interpreter, &picture()), expected, "the model is not needed any more");
    TfLiteInterpreterDelete(interpreter);
}

#[test]
fn bytes_of_a_file_are_copied() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/digits/digits_int8.tflite");
    let mut bytes = std::fs::read(path).unwrap();
    let model = TfLiteModelCreate(bytes.as_ptr().cast(), bytes.len());
    bytes.fill(0);
    let interpreter = ready(model);
    let other = ready(digits("digits_int8.tflite"));
    assert_eq!(run(interpreter, &picture()), run(other, &picture()));
    assert!(TfLiteModelCreate(bytes.as_ptr().cast(), bytes.len()).is_null(), "zeros");
}

#[test]
fn failures_are_reported_to_the_reporter_of_the_options() {
    let reported = Box::new(Reported::default());
    let model = digits("digits_int8.tflite");
    let options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetErrorReporter(options, Some(c::tell), reported.pointer());
    let copy = TfLiteInterpreterOptionsCopy(options);
    TfLiteInterpreterOptionsDelete(options);
    let interpreter = TfLiteInterpreterCreate(model, copy);
    TfLiteInterpreterOptionsDelete(copy);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Error);
    assert_eq!(
        reported.last(),
        "TfLiteInterpreterInvoke: AllocateTensors comes first, also after inputs were given other shapes"
    );
    let dims = [1, 7, 7, 1];
    let status = TfLiteInterpreterResizeInputTensor(interpreter, 0, dims.as_ptr(), 4);
    assert_eq!(status, TfLiteStatus::Ok, "what does not fit is found out later");
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Error);
    assert!(reported.last().contains("operator"), "{}", reported.last());
    assert_eq!(reported.count(), 2);
    assert!(TfLiteInterpreterGetInputTensor(interpreter, 7).is_null());
    assert!(
        reported.last().contains("there is no input 7, the model has 1"),
        "{}",
        reported.last()
    );
    TfLiteInterpreterDelete(interpreter);
    TfLiteModelDelete(model);
}

#[test]
fn what_was_deleted_is_refused() {
    let model = digits("digits_int8.tflite");
    let interpreter = ready(model);
    let input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    TfLiteInterpreterDelete(interpreter);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Error);
    assert!(TfLiteInterpreterGetInputTensor(interpreter, 0).is_null());
    let bytes = picture();
    let status = TfLiteTensorCopyFromBuffer(input, bytes.as_ptr().cast(), 64);
    assert_eq!(status, TfLiteStatus::Error);
    assert!(TfLiteTensorData(input).is_null());
    assert_eq!(TfLiteTensorRealloc(640, input), TfLiteStatus::Error, "none of the program's");
    assert!(fields(input).data.is_null() && fields(input).dims.is_null(), "nothing to follow");
    TfLiteModelDelete(model);
    assert!(TfLiteInterpreterCreate(model, null()).is_null());
    assert_eq!(TfLiteInterpreterInvoke(model.cast()), TfLiteStatus::Error, "another kind");
    assert_eq!(TfLiteInterpreterInvoke(null_mut()), TfLiteStatus::Error);
}

#[test]
fn a_signature_of_the_primary_subgraph_has_its_tensors() {
    let model = digits("digits_int8.tflite");
    let interpreter = ready(model);
    let runner = TfLiteInterpreterGetSignatureRunner(interpreter, null());
    assert_eq!(TfLiteSignatureRunnerGetInputCount(runner), 1);
    let name = TfLiteSignatureRunnerGetInputName(runner, 0);
    assert!(TfLiteSignatureRunnerGetInputName(runner, 1).is_null());
    let input = TfLiteSignatureRunnerGetInputTensor(runner, name);
    assert_eq!(input, TfLiteInterpreterGetInputTensor(interpreter, 0), "the same subgraph");
    let expected = run(interpreter, &picture());
    c::write(input, &[0; 64]);
    assert_eq!(TfLiteSignatureRunnerInvoke(runner), TfLiteStatus::Ok);
    let given = TfLiteSignatureRunnerGetOutputName(runner, 0);
    let output = TfLiteSignatureRunnerGetOutputTensor(runner, given);
    assert_ne!(copied(output), expected);
    let dims = [2, 8, 8, 1];
    let status = TfLiteSignatureRunnerResizeInputTensor(runner, name, dims.as_ptr(), 4);
    assert_eq!(status, TfLiteStatus::Error, "the file leaves no length open");
    TfLiteInterpreterDelete(interpreter);
    assert_eq!(TfLiteSignatureRunnerInvoke(runner), TfLiteStatus::Error);
    TfLiteSignatureRunnerDelete(runner);
    TfLiteModelDelete(model);
}

#[test]
fn structures_of_the_program_are_its_own() {
    let mut tensor = TfLiteTensor::EMPTY;
    let dims = TfLiteIntArrayCreate(2);
    let wanted = [2, 3];
    // As C fills an array.
    c::write_ints(dims, &wanted);
    assert_eq!(TfLiteIntArrayEqualsArray(dims, 2, wanted.as_ptr()), 1);
    let params = Default::default();
    let name = c"mine".as_ptr();
    TfLiteTensorReset(
        1,
        name,
        dims,
        params,
        null_mut(),
        0,
        allocation::DYNAMIC,
        null(),
        false,
        &raw mut tensor,
    );
    assert_eq!(TfLiteTensorRealloc(24, &raw mut tensor), TfLiteStatus::Ok);
    assert_eq!(
        (TfLiteTensorNumDims(&raw const tensor), TfLiteTensorDim(&raw const tensor, 1)),
        (2, 3)
    );
    let values = [7_u8; 24];
    let status = TfLiteTensorCopyFromBuffer(&raw mut tensor, values.as_ptr().cast(), 24);
    assert_eq!((status, copied(&raw const tensor)), (TfLiteStatus::Ok, values.to_vec()));
    assert_eq!(text(TfLiteTensorName(&raw const tensor)), "mine");
    TfLiteTensorFree(&raw mut tensor);
    assert!(tensor.data.is_null() && tensor.dims.is_null());
    assert_eq!(TfLiteIntArrayGetSizeInBytes(3), 16);
    assert!(TfLiteIntArrayCreate(-1).is_null());
    // A tensor of an interpreter is not to be freed by the program.
    let interpreter = ready(digits("digits_int8.tflite"));
    let input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    TfLiteTensorFree(input);
    assert_eq!(TfLiteTensorByteSize(input), 64);
    assert_eq!(TfLiteTensorRealloc(640, input), TfLiteStatus::Error);
    run(interpreter, &picture());
}
