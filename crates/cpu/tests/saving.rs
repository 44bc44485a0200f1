//! Programs that are saved, and restored.

mod support;

use bytes::Bytes;
use cpu::{CpuEngine, CpuProgram, Settings};
use driver::{Budget, CompileOptions, Engine, Program};
use hal::{ExecutionPreference, HalVersion, Priority};
use std::num::NonZeroUsize;
use support::{Numbers, network};

const OPTIONS: CompileOptions = CompileOptions {
    preference: ExecutionPreference::FastSingleAnswer,
    priority: Priority::Medium,
};

fn engine(threads: usize) -> CpuEngine {
    let threads = NonZeroUsize::new(threads).unwrap();
    CpuEngine::new(Settings::default().with_threads(threads))
}

fn compile(kind: Numbers, is_open: bool) -> CpuProgram {
    let model = ops::validate(&network(kind, is_open, 1).model, HalVersion::LATEST).unwrap();
    engine(2).compile(&model, &OPTIONS, &Budget::unlimited()).unwrap()
}

fn restore(threads: usize, saved: impl Into<Bytes>) -> Result<CpuProgram, String> {
    let restored = engine(threads).restore(saved.into(), &OPTIONS, &Budget::unlimited());
    restored.map_err(|error| hal::Error::from(error).to_string())
}

#[test]
fn what_is_restored_has_the_same_plan_and_is_saved_as_the_same_bytes() {
    for kind in [Numbers::Float32, Numbers::Float16, Numbers::Signed] {
        let program = compile(kind, false);
        let saved = program.save().expect("all shapes are known");
        let restored = restore(2, saved.clone()).unwrap();
        let steps = |program: &CpuProgram| {
            let steps = program.plan();
            steps.into_iter().map(|step| (step.kernel, step.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(steps(&program), steps(&restored));
        assert!(restored.save() == Some(saved));
    }
}

#[test]
fn a_program_whose_shapes_the_request_decides_is_not_saved() {
    assert!(compile(Numbers::Float32, true).save().is_none());
}

#[test]
fn a_program_is_for_as_many_threads_as_it_was_saved_for() {
    let saved = compile(Numbers::Float32, false).save().unwrap();
    let error = restore(1, saved).unwrap_err();
    assert!(error.contains("2 threads, with Winograd, not a program"), "{error}");
}

#[test]
fn half_of_a_program_is_an_error() {
    let saved = compile(Numbers::Signed, false).save().unwrap();
    for length in (0..saved.len()).step_by(97) {
        let error = restore(2, saved[..length].to_vec()).unwrap_err();
        assert!(!error.is_empty());
    }
}
