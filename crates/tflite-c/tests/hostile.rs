//! Files that are no models, and runs that are cancelled: every call answers.

mod c;

use c::Reported;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use tensorflowlite_c::abi::TfLiteStatus;
use tensorflowlite_c::access::*;
use tensorflowlite_c::interpreter::*;
use tensorflowlite_c::model::*;
use tensorflowlite_c::options::*;
use tensorflowlite_c::signature::*;

const FILES: [&str; 5] = [
    "../../assets/digits/digits_int8.tflite",
    "../nnhal/tests/data/variables_of_signatures.tflite",
    "tests/data/dynamic_broadcast.float32.tflite",
    "tests/data/svdf_rank1.tflite",
    "tests/data/unique.float32.tflite",
];

fn bytes(file: &str) -> Vec<u8> {
    std::fs::read(format!("{}/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Calls whatever there is to call. How often the model ran.
fn try_all(model: *mut TfLiteModel, reported: &Reported) -> usize {
    let options = TfLiteInterpreterOptionsCreate();
    TfLiteInterpreterOptionsSetErrorReporter(options, Some(c::tell), reported.pointer());
    TfLiteInterpreterOptionsSetNumThreads(options, 1);
    let interpreter = TfLiteInterpreterCreate(model, options);
    TfLiteInterpreterOptionsDelete(options);
    if interpreter.is_null() {
        return 0;
    }
    let mut runs = 0;
    if TfLiteInterpreterAllocateTensors(interpreter) == TfLiteStatus::Ok {
        runs += usize::from(TfLiteInterpreterInvoke(interpreter) == TfLiteStatus::Ok);
    }
    for index in 0..TfLiteInterpreterGetOutputTensorCount(interpreter) {
        let output = TfLiteInterpreterGetOutputTensor(interpreter, index);
        let size = TfLiteTensorByteSize(output);
        if size < 1 << 20 && !TfLiteTensorData(output).is_null() {
            assert_eq!(c::copied(output).len(), size);
        }
    }
    for index in 0..20 {
        let tensor = TfLiteInterpreterGetTensor(interpreter, index);
        if !tensor.is_null() {
            assert!(TfLiteTensorNumDims(tensor) >= 0);
            c::text(TfLiteTensorName(tensor));
        }
        TfLiteInterpreterGetVariableTensor(interpreter, index);
    }
    for index in 0..TfLiteInterpreterGetSignatureCount(interpreter).min(4) {
        let key = TfLiteInterpreterGetSignatureKey(interpreter, index);
        let runner = TfLiteInterpreterGetSignatureRunner(interpreter, key);
        if !runner.is_null() && TfLiteSignatureRunnerAllocateTensors(runner) == TfLiteStatus::Ok {
            runs += usize::from(TfLiteSignatureRunnerInvoke(runner) == TfLiteStatus::Ok);
        }
        TfLiteSignatureRunnerDelete(runner);
    }
    TfLiteInterpreterResetVariableTensors(interpreter);
    TfLiteInterpreterDelete(interpreter);
    runs
}

/// The next of a row of numbers that look random.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn mutated_files_are_models_or_are_refused() {
    let reported = Reported::default();
    let (mut state, mut models, mut runs, mut refused) = (1, 0, 0, 0);
    for file in FILES {
        let original = bytes(file);
        for _ in 0..300 {
            let mut mutant = original.clone();
            for _ in 0..1 + next(&mut state) % 3 {
                let at = next(&mut state) % mutant.len();
                mutant[at] = match next(&mut state) % 4 {
                    0 => 0xFF,
                    1 => 0,
                    2 => mutant[at].wrapping_add(1),
                    _ => u8::try_from(next(&mut state) % 256).unwrap(),
                };
            }
            if next(&mut state).is_multiple_of(10) {
                mutant.truncate(next(&mut state) % mutant.len());
            }
            let model = TfLiteModelCreateWithErrorReporter(
                mutant.as_ptr().cast(),
                mutant.len(),
                Some(c::tell),
                reported.pointer(),
            );
            if model.is_null() {
                refused += 1;
                continue;
            }
            models += 1;
            runs += try_all(model, &reported);
            TfLiteModelDelete(model);
        }
    }
    assert!(refused > 100 && models > 100 && runs > 100, "{refused} {models} {runs}");
    assert!(reported.count() > refused, "each refusal has a sentence");
}

fn cancellable(is_cancellable: bool) -> *mut TfLiteInterpreter {
    let file = bytes("tests/data/dynamic_broadcast.float32.tflite");
    let model = TfLiteModelCreate(file.as_ptr().cast(), file.len());
    let options = TfLiteInterpreterOptionsCreate();
    assert_eq!(
        TfLiteInterpreterOptionsEnableCancellation(options, is_cancellable),
        TfLiteStatus::Ok
    );
    let interpreter = TfLiteInterpreterCreate(model, options);
    TfLiteInterpreterOptionsDelete(options);
    TfLiteModelDelete(model);
    interpreter
}

#[test]
fn a_run_is_cancelled_from_another_thread() {
    let interpreter = cancellable(true);
    assert_eq!(TfLiteInterpreterCancel(interpreter), TfLiteStatus::Ok, "there is no run");
    let dims = [1_000_000, 4];
    for input in 0..2 {
        TfLiteInterpreterResizeInputTensor(interpreter, input, dims.as_ptr(), 2);
    }
    assert_eq!(TfLiteInterpreterAllocateTensors(interpreter), TfLiteStatus::Ok);
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok);
    let is_over = AtomicBool::new(false);
    let address = interpreter.expose_provenance();
    let statuses = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                TfLiteInterpreterCancel(std::ptr::with_exposed_provenance(address));
            }
        });
        let statuses: Vec<_> = (0..20).map(|_| TfLiteInterpreterInvoke(interpreter)).collect();
        is_over.store(true, Ordering::Relaxed);
        statuses
    });
    assert!(statuses.contains(&TfLiteStatus::Cancelled), "{statuses:?}");
    assert_eq!(TfLiteInterpreterInvoke(interpreter), TfLiteStatus::Ok, "only that run");
    TfLiteInterpreterDelete(interpreter);

    let other = cancellable(false);
    assert_eq!(TfLiteInterpreterCancel(other), TfLiteStatus::Error, "not enabled");
    assert_eq!(TfLiteInterpreterCancel(null_mut()), TfLiteStatus::Error);
    TfLiteInterpreterDelete(other);
}
