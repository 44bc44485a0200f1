//! Programs that are saved, and restored.

mod support;

use bytes::Bytes;
use nnhal_cpu::{CpuEngine, CpuProgram, Passes, Settings};
use nnhal_driver::{Budget, CompileOptions, Engine, Program};
use nnhal_hal::{
    ExecutionPreference, HalVersion, Model, OperandSpec, OperationType, Priority, SubgraphBuilder,
};
use std::num::NonZeroUsize;
use support::{Numbers, network};

const OPTIONS: CompileOptions = CompileOptions {
    preference: ExecutionPreference::FastSingleAnswer,
    priority: Priority::Medium,
    hints: nnhal_hal::Hints::NONE,
};

fn engine(threads: usize) -> CpuEngine {
    let threads = NonZeroUsize::new(threads).unwrap();
    CpuEngine::new(Settings::default().with_threads(threads))
}

fn compile(kind: Numbers, is_open: bool) -> CpuProgram {
    let model = nnhal_ops::validate(&network(kind, is_open, 1).model, HalVersion::LATEST).unwrap();
    engine(2).compile(&model, &OPTIONS, &Budget::unlimited()).unwrap()
}

fn restore(threads: usize, saved: impl Into<Bytes>) -> Result<CpuProgram, String> {
    let restored = engine(threads).restore(saved.into(), &OPTIONS, &Budget::unlimited());
    restored.map_err(|error| nnhal_hal::Error::from(error).to_string())
}

/// Kernels, and how many bytes they read and write.
fn steps(program: &CpuProgram) -> Vec<(String, u64)> {
    program.plan().into_iter().map(|step| (step.kernel, step.bytes)).collect()
}

#[test]
fn what_is_restored_has_the_same_plan_and_is_saved_as_the_same_bytes() {
    for kind in [Numbers::Float32, Numbers::Float16, Numbers::Signed] {
        let program = compile(kind, false);
        let saved = program.save().expect("all shapes are known");
        let restored = restore(2, saved.clone()).unwrap();
        assert_eq!(steps(&program), steps(&restored));
        assert!(restored.save() == Some(saved));
    }
}

/// Two convolutions of constants. Together they are too much work to be folded; a restored program
/// has the result of the first already.
fn more_than_is_folded() -> Model {
    let floats = |dimensions: &[u32]| OperandSpec::tensor_float32(dimensions);
    let mut main = SubgraphBuilder::new();
    let mut y = main.input("x", floats(&[1, 16, 16, 32]));
    let image = main.constant(floats(&[1, 16, 16, 32]), &[0.5; 16 * 16 * 32]);
    for weight in [0.25, 0.125] {
        let filter = main.constant(floats(&[32, 1, 1, 32]), &[weight; 32 * 32]);
        let bias = main.constant(floats(&[32]), &[1.0; 32]);
        let [same, one, none] = [1, 1, 0].map(|number| main.scalar_i32(number));
        let inputs = [image, filter, bias, same, one, one, none];
        let folded = main.operation(OperationType::Conv2d, inputs, floats(&[1, 16, 16, 32]));
        y = main.operation(OperationType::Add, [y, folded, none], floats(&[1, 16, 16, 32]));
    }
    main.output(y);
    main.into_model().unwrap()
}

#[test]
fn what_was_not_folded_is_not_folded_when_it_is_restored() {
    let model = nnhal_ops::validate(&more_than_is_folded(), HalVersion::LATEST).unwrap();
    let program = engine(2).compile(&model, &OPTIONS, &Budget::unlimited()).unwrap();
    let found = steps(&program);
    // The first sum, and the second convolution with the second sum.
    assert_eq!(found.len(), 2, "one convolution is folded: {found:?}");
    let restored = restore(2, program.save().expect("all shapes are known")).unwrap();
    assert_eq!(found, steps(&restored));
}

/// A layer of one row, whose weights the model has as floats of 16 bits, and casts or not.
fn layer_of_float16(is_cast: bool) -> Model {
    let floats = if is_cast {
        |dimensions: &[u32]| OperandSpec::tensor_float32(dimensions)
    } else {
        |dimensions: &[u32]| OperandSpec::tensor_float16(dimensions)
    };
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", floats(&[1, 40]));
    let one = 0x3C00_u16.to_le_bytes();
    let bytes = one.repeat(70 * 40);
    let mut filter = main.constant_bytes(OperandSpec::tensor_float16([70, 40]), &bytes);
    let mut bias = main.constant_bytes(OperandSpec::tensor_float16([70]), &one.repeat(70));
    if is_cast {
        filter = main.operation(OperationType::Cast, [filter], floats(&[70, 40]));
        bias = main.operation(OperationType::Cast, [bias], floats(&[70]));
    }
    let none = main.scalar_i32(0);
    let y =
        main.operation(OperationType::FullyConnected, [x, filter, bias, none], floats(&[1, 70]));
    main.output(y);
    main.into_model().unwrap()
}

#[test]
fn weights_of_float16_are_kept_as_those() {
    for is_cast in [true, false] {
        let model = nnhal_ops::validate(&layer_of_float16(is_cast), HalVersion::LATEST).unwrap();
        let program = engine(2).compile(&model, &OPTIONS, &Budget::unlimited()).unwrap();
        assert!(steps(&program)[0].0.contains("f16 weights"), "{:?}", steps(&program));
        let restored = restore(2, program.save().expect("all shapes are known")).unwrap();
        assert_eq!(steps(&program), steps(&restored));
    }
}

/// An input that nothing reads may be left out, which takes no second form of the program, so that it is saved.
#[test]
fn a_program_with_an_input_that_nothing_reads_is_saved() {
    let spec = || OperandSpec::tensor_float32([2]);
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", spec());
    main.input("unread", spec());
    let none = main.scalar_i32(0);
    let sum = main.operation(OperationType::Add, [x, x, none], spec());
    main.output(sum);
    let model = nnhal_ops::validate(&main.into_model().unwrap(), HalVersion::LATEST).unwrap();
    let program = engine(2).compile(&model, &OPTIONS, &Budget::unlimited()).unwrap();
    let saved = program.save().expect("all shapes are known");
    let restored = restore(2, saved.clone()).unwrap();
    assert_eq!(steps(&program), steps(&restored));
    assert!(restored.save() == Some(saved));
}

#[test]
fn a_program_whose_shapes_the_request_decides_is_not_saved() {
    assert!(compile(Numbers::Float32, true).save().is_none());
}

#[test]
fn a_program_is_for_as_many_threads_as_it_was_saved_for() {
    let saved = compile(Numbers::Float32, false).save().unwrap();
    let error = restore(1, saved).unwrap_err();
    assert!(error.contains("2 threads, with Winograd, passes off: none, not a program"), "{error}");
}

#[test]
fn half_of_a_program_is_an_error() {
    let saved = compile(Numbers::Signed, false).save().unwrap();
    for length in (0..saved.len()).step_by(97) {
        let error = restore(2, saved[..length].to_vec()).unwrap_err();
        assert!(!error.is_empty());
    }
}

#[test]
fn a_program_that_was_prepared_with_other_passes_is_refused() {
    let passes = Passes::ALL.without("chains").unwrap();
    let program = compile(Numbers::Float32, false);
    let saved = Bytes::from(program.save().expect("all shapes are known"));
    let threads = NonZeroUsize::new(2).unwrap();
    let other = CpuEngine::new(Settings { passes, ..Settings::default() }.with_threads(threads));
    let refused = other.restore(saved, &OPTIONS, &Budget::unlimited());
    let error = refused.map(|_| ()).map_err(|error| nnhal_hal::Error::from(error).to_string());
    let error = error.unwrap_err();
    assert!(error.contains("passes off: none, not"), "{error}");
    assert!(error.ends_with("passes off: chains"), "{error}");
}
