//! Functions that few programs call: arrays, operators, objects that keep a pointer, what is reported about tensors, and what
//! this library has no use for.

mod c;

use c::{Reported, array, copied, digits, ready, run, text};
use std::ffi::c_void;
use std::ptr::{null, null_mut, without_provenance_mut};
use tensorflowlite_c::abi::{TfLiteStatus, TfLiteTensor, allocation};
use tensorflowlite_c::access::*;
use tensorflowlite_c::asynchronous::*;
use tensorflowlite_c::delegate::*;
use tensorflowlite_c::interpreter::*;
use tensorflowlite_c::model::*;
use tensorflowlite_c::operator::*;
use tensorflowlite_c::options::*;
use tensorflowlite_c::own_structures::*;
use tensorflowlite_c::signature::*;
use tensorflowlite_c::version::*;

/// A pointer that nothing may follow.
fn token(number: usize) -> *mut c_void {
    without_provenance_mut(number)
}

#[test]
fn arrays_are_copied_and_compared() {
    let one = TfLiteIntArrayCreate(3);
    c::write_ints(one, &[4, 5, 6]);
    let two = TfLiteIntArrayCopy(one);
    assert_eq!((array(two), TfLiteIntArrayEqual(one, two)), (vec![4, 5, 6], 1));
    c::write_ints(two, &[4, 5, 7]);
    assert_eq!(TfLiteIntArrayEqual(one, two), 0);
    assert_eq!((TfLiteIntArrayEqual(one, null()), TfLiteIntArrayEqual(null(), null())), (0, 1));
    assert!(TfLiteIntArrayCopy(null()).is_null());
    let floats = TfLiteFloatArrayCreate(2);
    c::write_ints(floats.cast(), &[7, 8]);
    let more = TfLiteFloatArrayCopy(floats);
    assert_eq!(array(more.cast()), [7, 8]);
    assert_eq!((TfLiteFloatArrayGetSizeInBytes(2), TfLiteFloatArrayGetSizeInBytes(-1)), (12, 0));
    for pointer in [one, two, null_mut()] {
        TfLiteIntArrayFree(pointer);
    }
    for pointer in [floats, more, null_mut()] {
        TfLiteFloatArrayFree(pointer);
    }
}

#[test]
fn tensors_of_the_program_are_resized_and_take_copies() {
    let interpreter = ready(digits("digits_int8.tflite"));
    let input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    let picture: Vec<u8> = (0..64).collect();
    assert_eq!(
        TfLiteTensorCopyFromBuffer(input, picture.as_ptr().cast(), picture.len()),
        TfLiteStatus::Ok
    );
    let mut own = TfLiteTensor { allocation_type: allocation::DYNAMIC, ..TfLiteTensor::EMPTY };
    assert_eq!(TfLiteTensorCopy(input, &raw mut own), TfLiteStatus::Error, "0 bytes");
    assert_eq!(TfLiteTensorResizeMaybeCopy(64, &raw mut own, false), TfLiteStatus::Ok);
    assert_eq!(TfLiteTensorCopy(input, &raw mut own), TfLiteStatus::Ok);
    assert_eq!((copied(&raw const own), TfLiteTensorNumDims(&raw const own)), (picture.clone(), 4));
    assert_eq!(TfLiteTensorResizeMaybeCopy(100, &raw mut own, true), TfLiteStatus::Ok);
    assert_eq!(copied(&raw const own)[..64], picture);
    assert_eq!(TfLiteTensorCopy(&raw const own, input), TfLiteStatus::Error, "not the program's");
    TfLiteTensorDataFree(&raw mut own);
    assert!(own.data.is_null());
    TfLiteTensorFree(&raw mut own);
    TfLiteQuantizationFree(&raw mut own.quantization);
    TfLiteQuantizationFree(null_mut());
    TfLiteSparsityFree(null_mut());
    assert_eq!(copied(input), picture, "the interpreter's is as it was");
    TfLiteInterpreterDelete(interpreter);
    assert_eq!(TfLiteTensorCopy(input, &raw mut own), TfLiteStatus::Error, "it is gone");
}

#[test]
fn operators_are_noted_but_an_interpreter_that_needs_one_is_not_made() {
    let operator = TfLiteOperatorCreate(32, c"Mine".as_ptr(), 2, token(48));
    assert_eq!(
        (TfLiteOperatorGetBuiltInCode(operator), TfLiteOperatorGetVersion(operator)),
        (32, 2)
    );
    assert_eq!(text(TfLiteOperatorGetCustomName(operator)), "Mine");
    assert_eq!(TfLiteOperatorGetUserData(operator).addr(), 48);
    TfLiteOperatorSetInit(operator, None);
    TfLiteOperatorSetFree(operator, None);
    TfLiteOperatorSetPrepare(operator, None);
    TfLiteOperatorSetInvoke(operator, None);
    TfLiteOperatorSetAsyncKernel(operator, None);
    TfLiteOperatorSetInplaceOperator(operator, 1);
    for set in [
        TfLiteOperatorSetInitWithData,
        TfLiteOperatorSetFreeWithData,
        TfLiteOperatorSetPrepareWithData,
        TfLiteOperatorSetInvokeWithData,
        TfLiteOperatorSetAsyncKernelWithData,
    ] {
        assert_eq!(set(operator, None), TfLiteStatus::Ok);
        assert_ne!(set(null_mut(), None), TfLiteStatus::Ok);
    }
    let options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsAddOperator(options, operator);
    TfLiteInterpreterOptionsAddBuiltinOp(options, 0, null(), 1, 9);
    TfLiteInterpreterOptionsAddCustomOp(options, c"Other".as_ptr(), null(), 1, 1);
    TfLiteInterpreterOptionsSetUseNNAPI(options, true);
    for set in [
        TfLiteInterpreterOptionsSetOpResolver,
        TfLiteInterpreterOptionsSetOpResolverV1,
        TfLiteInterpreterOptionsSetOpResolverV2,
        TfLiteInterpreterOptionsSetOpResolverV3,
        TfLiteInterpreterOptionsSetOpResolverExternal,
    ] {
        set(options, None, None, null_mut());
    }
    TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
        options,
        None,
        None,
        None,
        None,
        null_mut(),
    );
    TfLiteInterpreterOptionsSetTelemetryProfiler(options, null_mut());
    TfLiteOperatorDelete(operator);
    assert_eq!(TfLiteOperatorGetVersion(operator), 0, "it is gone");
    assert!(TfLiteOperatorGetCustomName(operator).is_null());
    TfLiteInterpreterOptionsAddOperator(options, operator);
    // The model needs none of them.
    let interpreter = TfLiteInterpreterCreateWithSelectedOps(digits("digits_int8.tflite"), options);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    assert_eq!(run(interpreter, &[0; 64]).len(), 10);
    let plain = TfLiteOperatorCreateWithData(3, null(), 1, null_mut());
    assert!(TfLiteOperatorGetCustomName(plain).is_null());
    TfLiteOperatorDelete(plain);
}

#[test]
fn objects_keep_a_pointer_until_they_are_deleted() {
    let (buffer, fence) = (TfLiteBackendBufferCreate(), TfLiteSynchronizationCreate());
    assert!(TfLiteBackendBufferGetPtr(buffer).is_null());
    assert!(TfLiteSynchronizationGetPtr(fence).is_null());
    TfLiteBackendBufferSetPtr(buffer, token(16));
    TfLiteSynchronizationSetPtr(fence, token(32));
    assert_eq!(TfLiteBackendBufferGetPtr(buffer).addr(), 16);
    assert_eq!(TfLiteSynchronizationGetPtr(fence).addr(), 32);
    TfLiteBackendBufferDelete(buffer);
    TfLiteSynchronizationDelete(fence);
    TfLiteBackendBufferSetPtr(buffer, token(16));
    assert!(TfLiteBackendBufferGetPtr(buffer).is_null());
    assert!(TfLiteSynchronizationGetPtr(fence).is_null());
    TfLiteSynchronizationDelete(fence);
}

#[test]
fn both_forms_of_functions_say_the_same_of_a_tensor() {
    let interpreter = ready(digits("digits_int8.tflite"));
    let input = TfLiteInterpreterGetInputTensor(interpreter, 0);
    assert_eq!(TfLiteOpaqueTensorType(input), TfLiteTensorType(input));
    assert_eq!(TfLiteOpaqueTensorNumDims(input), 4);
    assert_eq!((TfLiteOpaqueTensorDim(input, 1), TfLiteOpaqueTensorDim(input, 4)), (8, 0));
    assert_eq!(TfLiteOpaqueTensorByteSize(input), 64);
    assert_eq!(TfLiteOpaqueTensorData(input), TfLiteTensorData(input));
    assert_eq!(text(TfLiteOpaqueTensorName(input)), text(TfLiteTensorName(input)));
    let (one, other) =
        (TfLiteOpaqueTensorGetQuantizationParams(input), TfLiteTensorQuantizationParams(input));
    assert_eq!((one.scale.to_bits(), one.zero_point), (other.scale.to_bits(), other.zero_point));
    assert_eq!(TfLiteOpaqueTensorGetQuantization(input).r#type, 1);
    assert_eq!(TfLiteOpaqueTensorIsVariable(input), 0);
    let values = [3_u8; 64];
    let mut back = [0_u8; 64];
    assert_eq!(
        TfLiteOpaqueTensorCopyFromBuffer(input, values.as_ptr().cast(), 64),
        TfLiteStatus::Ok
    );
    assert_eq!(
        TfLiteOpaqueTensorCopyToBuffer(input, back.as_mut_ptr().cast(), 64),
        TfLiteStatus::Ok
    );
    assert_eq!(back, values);
    assert_eq!(
        TfLiteOpaqueTensorCopyToBuffer(input, back.as_mut_ptr().cast(), 63),
        TfLiteStatus::Error
    );
    let facts = [
        TfLiteTensorGetAllocationStrategy(input) - TfLiteOpaqueTensorGetAllocationStrategy(input),
        TfLiteTensorGetBufferAddressStability(input)
            - TfLiteOpaqueTensorGetBufferAddressStability(input),
        TfLiteTensorGetDataStability(input) - TfLiteOpaqueTensorGetDataStability(input),
        TfLiteTensorGetDataKnownStep(input) - TfLiteOpaqueTensorGetDataKnownStep(input),
        TfLiteTensorGetShapeKnownStep(input) - TfLiteOpaqueTensorGetShapeKnownStep(input),
    ];
    assert_eq!(facts, [0; 5]);
    // An input's shape is known when it is prepared, its values when it runs.
    assert_eq!((TfLiteTensorGetShapeKnownStep(input), TfLiteTensorGetDataKnownStep(input)), (2, 3));
    assert_eq!(array(TfLiteTensorGetDimsSignature(input))[1..], [8, 8, 1]);
    let (mut axes, mut length) = (9, 9);
    assert_eq!(TfLiteOpaqueTensorGetNumDimsSignature(input, &raw mut axes), TfLiteStatus::Ok);
    if axes > 0 {
        assert_eq!(TfLiteOpaqueTensorGetDimSignature(input, 1, &raw mut length), TfLiteStatus::Ok);
        assert_eq!(length, 8);
    }
    assert_eq!(TfLiteOpaqueTensorGetDimSignature(input, 9, &raw mut length), TfLiteStatus::Error);
    // What only an operator of the program could do, and texts.
    let before = TfLiteOpaqueTensorGetAllocationType(input);
    TfLiteOpaqueTensorSetAllocationTypeToDynamic(input);
    TfLiteOpaqueTensorSetNonCpuAllocation(input);
    assert_eq!(TfLiteOpaqueTensorGetAllocationType(input), before);
    assert_eq!(TfLiteOpaqueTensorGetStringCount(input), -1);
    let (mut start, mut size) = (null(), 0);
    let text = c"text".as_ptr();
    assert_eq!(
        TfLiteOpaqueTensorGetString(input, 0, &raw mut start, &raw mut size),
        TfLiteStatus::Error
    );
    assert_eq!(TfLiteOpaqueTensorWriteString(input, text, 4), TfLiteStatus::Error);
    assert_eq!(
        TfLiteOpaqueTensorWriteStrings(input, &raw const text, 1, null()),
        TfLiteStatus::Error
    );
    TfLiteInterpreterDelete(interpreter);
    assert_eq!((TfLiteOpaqueTensorNumDims(input), TfLiteOpaqueTensorByteSize(input)), (-1, 0));
}

#[test]
fn indexes_lead_to_the_same_tensors() {
    let interpreter = ready(digits("digits_float32.tflite"));
    let (input, output) = (
        TfLiteInterpreterGetInputTensorIndex(interpreter, 0),
        TfLiteInterpreterGetOutputTensorIndex(interpreter, 0),
    );

    let first = c::first;
    assert_eq!(first(TfLiteInterpreterInputTensorIndices(interpreter)), input);
    assert_eq!(first(TfLiteInterpreterOutputTensorIndices(interpreter)), output);
    assert_eq!(
        TfLiteInterpreterGetTensor(interpreter, input),
        TfLiteInterpreterGetInputTensor(interpreter, 0)
    );
    assert_eq!(TfLiteInterpreterGetOutputTensorIndex(interpreter, 1), -1);
    let readable = |index| TfLiteInterpreterEnsureTensorDataIsReadable(interpreter, index);
    assert_eq!((readable(output), readable(-1)), (TfLiteStatus::Ok, TfLiteStatus::Error));
    // There are no buffers of delegates.
    TfLiteSetAllowBufferHandleOutput(interpreter, true);
    let tensor = TfLiteInterpreterGetTensor(interpreter, output);
    let (mut handle, mut delegate) = (0, null_mut());
    assert_eq!(
        TfLiteInterpreterSetBufferHandle(interpreter, tensor, 1, null_mut()),
        TfLiteStatus::Error
    );
    assert_eq!(
        TfLiteInterpreterGetBufferHandle(interpreter, output, &raw mut handle, &raw mut delegate),
        TfLiteStatus::Error
    );
    TfLiteInterpreterDelete(interpreter);
    assert_eq!(readable(output), TfLiteStatus::Error);
}

#[test]
fn delegates_of_the_stock_library_change_nothing_and_a_programs_own_is_refused() {
    let reported = Reported::default();
    let defaults = TfLiteXNNPackDelegateOptionsDefault();
    let xnnpack = TfLiteXNNPackDelegateCreateWithThreadpool(&raw const defaults, null_mut());
    assert_eq!(TfLiteXNNPackDelegateGetFlags(xnnpack), 0);
    assert!(TfLiteXNNPackDelegateGetThreadPool(xnnpack).is_null());
    let nnapi_options = TfLiteNnapiDelegateOptionsDefault();
    let nnapi = TfLiteNnapiDelegateCreate(&raw const nnapi_options);
    let options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetErrorReporter(options, Some(c::tell), reported.pointer());
    for delegate in [xnnpack, nnapi] {
        TfLiteInterpreterOptionsAddDelegate(options, delegate);
    }
    let model = digits("digits_int8.tflite");
    let interpreter = TfLiteInterpreterCreate(model, options);
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    assert_eq!(run(interpreter, &[0; 64]).len(), 10);
    let mut own = TfLiteDelegateCreate();
    TfLiteInterpreterOptionsAddDelegate(options, &raw mut own);
    assert!(TfLiteInterpreterCreate(model, options).is_null());
    assert!(reported.last().contains("delegate"), "{}", reported.last());
    TfLiteInterpreterDelete(interpreter);
    TfLiteXNNPackDelegateDelete(xnnpack);
    TfLiteXNNPackDelegateDelete(xnnpack);
    TfLiteNnapiDelegateDelete(nnapi);
    // The newer form would have to be called.
    assert!(TfLiteOpaqueDelegateCreate(null()).is_null());
    assert!(TfLiteOpaqueDelegateGetData(null()).is_null());
    TfLiteOpaqueDelegateDelete(null_mut());
}

#[test]
fn caches_of_weights_are_there_by_name() {
    let cache = TfLiteXNNPackDelegateWeightsCacheCreate();
    let sized = TfLiteXNNPackDelegateWeightsCacheCreateWithSize(1 << 40);
    for cache in [cache, sized] {
        TfLiteXNNPackDelegateWeightsCacheFinalizeHard(cache);
        TfLiteXNNPackDelegateWeightsCacheFinalizeSoft(cache);
        TfLiteXNNPackDelegateWeightsCacheDelete(cache);
        TfLiteXNNPackDelegateWeightsCacheDelete(cache);
    }
}

#[test]
fn a_signature_has_outputs_and_is_cancelled_like_its_interpreter() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../nnhal/tests/data/variables_of_signatures.tflite");
    let path = std::ffi::CString::new(path).unwrap();
    let model = TfLiteModelCreateFromFile(path.as_ptr());
    for is_cancellable in [true, false] {
        let options = TfLiteInterpreterOptionsCreate();
        TfLiteInterpreterOptionsEnableCancellation(options, is_cancellable);
        let interpreter = TfLiteInterpreterCreate(model, options);
        let key = TfLiteInterpreterGetSignatureKey(interpreter, 0);
        let runner = TfLiteInterpreterGetSignatureRunner(interpreter, key);
        assert!(TfLiteSignatureRunnerGetOutputCount(runner) > 0);
        let expected = if is_cancellable { TfLiteStatus::Ok } else { TfLiteStatus::Error };
        assert_eq!(TfLiteSignatureRunnerCancel(runner), expected);
        TfLiteSignatureRunnerDelete(runner);
        assert_eq!(TfLiteSignatureRunnerGetOutputCount(runner), 0, "it is gone");
        TfLiteInterpreterDelete(interpreter);
        TfLiteInterpreterOptionsDelete(options);
    }
}

#[test]
fn versions_are_those_of_tensorflow() {
    let version = text(TfLiteVersion());
    assert_eq!(version.split('.').count(), 3, "{version}");
    assert_eq!(text(TfLiteExtensionApisVersion()), version);
}
