//! What holds for all functions: handles that are dead or none, null pointers, threads.

mod c;

use c::*;
use std::ptr::{null, null_mut, without_provenance_mut};

/// Each function with this object as its first argument and nothing wrong otherwise, as far as it
/// gets; what it answers.
type Call = (&'static str, fn(Handle) -> i32);

const MODEL_CALLS: &[Call] = &[
    ("finish", |it| ANeuralNetworksModel_finish(it)),
    ("addOperand", |it| ANeuralNetworksModel_addOperand(it, &raw const *Box::new(scalar(INT32)))),
    ("setOperandValue", |it| ANeuralNetworksModel_setOperandValue(it, 0, null(), 0)),
    ("addOperation", |it| {
        ANeuralNetworksModel_addOperation(it, RELU, 1, [0].as_ptr(), 1, [1].as_ptr())
    }),
    ("identifyInputsAndOutputs", |it| {
        ANeuralNetworksModel_identifyInputsAndOutputs(it, 1, [0].as_ptr(), 1, [1].as_ptr())
    }),
    ("relax", |it| ANeuralNetworksModel_relaxComputationFloat32toFloat16(it, true)),
    ("setOperandValueFromModel", |it| ANeuralNetworksModel_setOperandValueFromModel(it, 0, it)),
    ("setOperandExtensionData", |it| {
        ANeuralNetworksModel_setOperandExtensionData(it, 0, null(), 0)
    }),
    ("Compilation_create", |it| ANeuralNetworksCompilation_create(it, &raw mut *slot())),
    ("Compilation_createForDevices", |it| {
        ANeuralNetworksCompilation_createForDevices(it, [device()].as_ptr(), 1, &raw mut *slot())
    }),
];

const COMPILATION_CALLS: &[Call] = &[
    ("finish", |it| ANeuralNetworksCompilation_finish(it)),
    ("setPreference", |it| ANeuralNetworksCompilation_setPreference(it, 1)),
    ("setPriority", |it| ANeuralNetworksCompilation_setPriority(it, 100)),
    ("setTimeout", |it| ANeuralNetworksCompilation_setTimeout(it, 0)),
    ("setCaching", |it| {
        ANeuralNetworksCompilation_setCaching(it, c"/tmp".as_ptr(), [0; 32].as_ptr())
    }),
    ("alignment", |it| {
        ANeuralNetworksCompilation_getPreferredMemoryAlignmentForInput(it, 0, &raw mut *number())
    }),
    ("padding", |it| {
        ANeuralNetworksCompilation_getPreferredMemoryPaddingForOutput(it, 0, &raw mut *number())
    }),
    ("Execution_create", |it| ANeuralNetworksExecution_create(it, &raw mut *slot())),
    ("Burst_create", |it| ANeuralNetworksBurst_create(it, &raw mut *slot())),
];

const EXECUTION_CALLS: &[Call] = &[
    ("setInput", |it| ANeuralNetworksExecution_setInput(it, 0, null(), null(), 0)),
    ("setOutput", |it| ANeuralNetworksExecution_setOutput(it, 0, null(), null_mut(), 0)),
    ("setReusable", |it| ANeuralNetworksExecution_setReusable(it, true)),
    ("setMeasureTiming", |it| ANeuralNetworksExecution_setMeasureTiming(it, true)),
    ("setTimeout", |it| ANeuralNetworksExecution_setTimeout(it, 1)),
    ("setLoopTimeout", |it| ANeuralNetworksExecution_setLoopTimeout(it, 1)),
    ("padding", |it| ANeuralNetworksExecution_enableInputAndOutputPadding(it, true)),
    ("compute", |it| ANeuralNetworksExecution_compute(it)),
    ("startCompute", |it| ANeuralNetworksExecution_startCompute(it, &raw mut *slot())),
    ("fenced", |it| {
        ANeuralNetworksExecution_startComputeWithDependencies(it, null(), 0, 0, &raw mut *slot())
    }),
    ("rank", |it| ANeuralNetworksExecution_getOutputOperandRank(it, 0, &raw mut *number())),
    ("dimensions", |it| {
        ANeuralNetworksExecution_getOutputOperandDimensions(it, 0, &raw mut *number())
    }),
    ("duration", |it| ANeuralNetworksExecution_getDuration(it, 0, &raw mut *Box::new(0))),
];

const MEMORY_CALLS: &[Call] = &[("copy from", |it| ANeuralNetworksMemory_copy(it, it))];

const DESCRIPTION_CALLS: &[Call] = &[
    ("setDimensions", |it| ANeuralNetworksMemoryDesc_setDimensions(it, 1, [1].as_ptr())),
    ("finish", |it| ANeuralNetworksMemoryDesc_finish(it)),
    ("createFromDesc", |it| ANeuralNetworksMemory_createFromDesc(it, &raw mut *slot())),
];

const EVENT_CALLS: &[Call] = &[
    ("wait", |it| ANeuralNetworksEvent_wait(it)),
    ("getSyncFenceFd", |it| ANeuralNetworksEvent_getSyncFenceFd(it, &raw mut *Box::new(0))),
];

fn slot() -> Box<Handle> {
    Box::new(null_mut())
}

fn number() -> Box<u32> {
    Box::new(0)
}

fn all_calls() -> impl Iterator<Item = &'static Call> {
    let lists = [
        MODEL_CALLS,
        COMPILATION_CALLS,
        EXECUTION_CALLS,
        MEMORY_CALLS,
        DESCRIPTION_CALLS,
        EVENT_CALLS,
    ];
    lists.into_iter().flatten()
}

#[test]
fn a_null_object_is_refused_by_every_function() {
    for (name, call) in all_calls() {
        assert_eq!(call(null_mut()), UNEXPECTED_NULL, "{name}");
    }
}

#[test]
fn an_invented_object_is_refused_by_every_function() {
    for (name, call) in all_calls() {
        // No kind of object has 0 or 15 as its number, which is in the last four bits.
        for address in [16, 4096, 0x7fff_dead_bee0, usize::MAX] {
            let code = call(without_provenance_mut(address));
            assert_eq!(code, BAD_DATA, "{name} with {address:#x}: {}", last_error());
        }
    }
}

#[test]
fn an_object_of_another_kind_is_refused() {
    let model = model();
    for (name, call) in COMPILATION_CALLS.iter().chain(EXECUTION_CALLS).chain(EVENT_CALLS) {
        assert_eq!(call(model), BAD_DATA, "{name}");
    }
    let other_kinds = [
        ANeuralNetworksCompilation_free,
        ANeuralNetworksExecution_free,
        ANeuralNetworksMemory_free,
        ANeuralNetworksMemoryDesc_free,
        ANeuralNetworksBurst_free,
        ANeuralNetworksEvent_free,
    ];
    for free in other_kinds {
        free(model);
    }
    let compilation = made(|it| ANeuralNetworksCompilation_create(model, it));
    ANeuralNetworksCompilation_free(compilation);
    ANeuralNetworksModel_free(model);
}

#[test]
fn a_freed_object_is_refused_by_every_function() {
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let model = model();
    let compilation = compilation(model);
    let execution = ready_execution(compilation, &x, &mut y);
    let event = made(|event| ANeuralNetworksExecution_startCompute(execution, event));
    works(ANeuralNetworksEvent_wait(event));
    let description = made(|it| ANeuralNetworksMemoryDesc_create(it));
    works(ANeuralNetworksMemoryDesc_addInputRole(description, compilation, 0, 1.0));
    works(ANeuralNetworksMemoryDesc_finish(description));
    let memory = made(|it| ANeuralNetworksMemory_createFromDesc(description, it));
    let burst = made(|it| ANeuralNetworksBurst_create(compilation, it));

    type Freed = (Handle, extern "C" fn(Handle), &'static [Call]);
    let all: [Freed; 7] = [
        (model, ANeuralNetworksModel_free, MODEL_CALLS),
        (compilation, ANeuralNetworksCompilation_free, COMPILATION_CALLS),
        (event, ANeuralNetworksEvent_free, EVENT_CALLS),
        (execution, ANeuralNetworksExecution_free, EXECUTION_CALLS),
        (description, ANeuralNetworksMemoryDesc_free, DESCRIPTION_CALLS),
        (memory, ANeuralNetworksMemory_free, MEMORY_CALLS),
        (burst, ANeuralNetworksBurst_free, &[]),
    ];
    for (object, free, calls) in all {
        for round in 0..2 {
            free(object);
            for (name, call) in calls {
                let code = call(object);
                assert_eq!(code, BAD_STATE, "{name}, round {round}: {}", last_error());
            }
        }
    }
    assert!(last_error().contains("that was freed"), "{}", last_error());
}

#[test]
fn what_was_made_from_a_freed_object_stays_valid() {
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let model = model();
    let compilation = compilation(model);
    ANeuralNetworksModel_free(model);
    let execution = ready_execution(compilation, &x, &mut y);
    ANeuralNetworksCompilation_free(compilation);
    works(ANeuralNetworksExecution_compute(execution));
    ANeuralNetworksExecution_free(execution);
    assert_eq!(y, [11.0, 22.0]);
}

#[test]
fn null_is_nothing_to_free() {
    ANeuralNetworksModel_free(null_mut());
    ANeuralNetworksCompilation_free(null_mut());
    ANeuralNetworksExecution_free(null_mut());
    ANeuralNetworksBurst_free(null_mut());
    ANeuralNetworksEvent_free(null_mut());
    ANeuralNetworksMemory_free(null_mut());
    ANeuralNetworksMemoryDesc_free(null_mut());
}

#[test]
fn a_failing_creation_leaves_null_behind() {
    let mut place: Handle = without_provenance_mut(77);
    assert_eq!(ANeuralNetworksCompilation_create(null_mut(), &raw mut place), UNEXPECTED_NULL);
    assert!(place.is_null());
    let model = unfinished_model(&[2]);
    place = without_provenance_mut(77);
    assert_eq!(ANeuralNetworksCompilation_create(model, &raw mut place), BAD_STATE);
    assert!(place.is_null());
    let mut descriptor = 7;
    assert_eq!(
        ANeuralNetworksEvent_getSyncFenceFd(null_mut(), &raw mut descriptor),
        UNEXPECTED_NULL
    );
    assert_eq!(descriptor, -1);
    ANeuralNetworksModel_free(model);
}

#[test]
fn each_thread_has_its_own_last_error() {
    assert_eq!(ANeuralNetworksModel_finish(null_mut()), UNEXPECTED_NULL);
    let expected = "ANeuralNetworksModel_finish: UNEXPECTED_NULL: model is null";
    assert_eq!(last_error(), expected);
    std::thread::spawn(|| assert_eq!(last_error(), "")).join().unwrap();
    assert_eq!(last_error(), expected);
}

#[test]
fn result_codes_have_names() {
    assert_eq!(text(nnhal_resultName(0)), "NO_ERROR");
    assert_eq!(text(nnhal_resultName(14)), "DEAD_OBJECT");
    for unknown in [15, -1, i32::MAX, i32::MIN] {
        assert_eq!(text(nnhal_resultName(unknown)), "UNKNOWN");
    }
}

#[test]
fn one_compilation_serves_many_threads() {
    let model = model();
    let compilation = compilation(model).expose_provenance();
    std::thread::scope(|scope| {
        for thread in 0_u8..4 {
            scope.spawn(move || {
                let compilation = without_provenance_mut(compilation);
                for round in 0_u8..50 {
                    let (x, mut y) = ([f32::from(thread), f32::from(round)], [0.0; 2]);
                    let execution = ready_execution(compilation, &x, &mut y);
                    works(ANeuralNetworksExecution_compute(execution));
                    ANeuralNetworksExecution_free(execution);
                    assert_eq!(y, [x[0] + 10.0, x[1] + 20.0]);
                }
            });
        }
    });
    ANeuralNetworksCompilation_free(without_provenance_mut(compilation));
    ANeuralNetworksModel_free(model);
}

#[test]
fn an_object_may_be_freed_while_others_try_to_use_it() {
    for _ in 0..50 {
        let model = model();
        let compilation = compilation(model).expose_provenance();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                ANeuralNetworksCompilation_free(without_provenance_mut(compilation))
            });
            scope.spawn(move || {
                let mut execution = null_mut();
                let compilation = without_provenance_mut(compilation);
                let code = ANeuralNetworksExecution_create(compilation, &raw mut execution);
                assert!(code == NO_ERROR || code == BAD_STATE, "{code}");
                assert_eq!(code == NO_ERROR, !execution.is_null());
                ANeuralNetworksExecution_free(execution);
            });
        });
        ANeuralNetworksModel_free(model);
    }
}

/// In a process of its own, which ends.
#[test]
fn a_debugger_can_be_shown_who_uses_a_freed_object() {
    const TEST: &str = "a_debugger_can_be_shown_who_uses_a_freed_object";
    if std::env::var_os("NNHAL_ABORT_ON_MISUSE").is_some() {
        let model = model();
        ANeuralNetworksModel_free(model);
        assert_eq!(ANeuralNetworksModel_finish(null_mut()), UNEXPECTED_NULL, "null is no misuse");
        ANeuralNetworksModel_finish(model);
        unreachable!("it went on");
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", TEST, "--nocapture"]).env("NNHAL_ABORT_ON_MISUSE", "1");
    let outcome = child.output().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(outcome.status.signal(), Some(6), "{outcome:?}");
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert!(
        said.contains("nnhal: BAD_STATE: model is an ANeuralNetworksModel that was freed"),
        "{said}"
    );
}
