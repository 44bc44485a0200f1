//! Executions: what each misuse answers, and who owns what for how long.

mod c;

use c::*;
use std::ptr::{null, null_mut};

struct Setup {
    model: Handle,
    compilation: Handle,
}

impl Setup {
    fn new() -> Self {
        Self::with(&[2])
    }

    /// The dimensions of x and y; those of c are [2].
    fn with(dimensions: &[u32]) -> Self {
        let model = unfinished_model(dimensions);
        works(ANeuralNetworksModel_finish(model));
        Self { model, compilation: compilation(model) }
    }

    fn execution(&self) -> Handle {
        execution(self.compilation)
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        ANeuralNetworksCompilation_free(self.compilation);
        ANeuralNetworksModel_free(self.model);
    }
}

#[test]
fn arguments_are_checked_when_they_are_set() {
    let setup = Setup::new();
    let execution = setup.execution();
    let (x, mut y) = ([0.0; 4], [0.0; 4]);
    let input = |index, kind: *const OperandType, length| {
        ANeuralNetworksExecution_setInput(execution, index, kind, bytes_of(&x), length)
    };
    let y = room_of(&mut y);
    let output = |index, kind: *const OperandType, length| {
        ANeuralNetworksExecution_setOutput(execution, index, kind, y, length)
    };
    let other_dimension = tensor(TENSOR_FLOAT32, &[3]);
    let other_rank = tensor(TENSOR_FLOAT32, &[1, 2]);
    let no_type = tensor(77, &[2]);
    for (what, index, kind, length) in [
        ("no such argument", 1, null(), 8),
        ("a negative index", -1, null(), 8),
        ("too short", 0, null(), 7),
        ("too long without padding", 0, null(), 9),
        ("nothing", 0, null(), 0),
        ("longer than 32 bits count", 0, null(), 1 << 32),
        ("another dimension", 0, &raw const other_dimension, 12),
        ("another rank", 0, &raw const other_rank, 8),
        ("a type that is none", 0, &raw const no_type, 8),
    ] {
        assert_eq!(input(index, kind, length), BAD_DATA, "input: {what}");
        assert_eq!(output(index, kind, length), BAD_DATA, "output: {what}");
    }
    let set_input = ANeuralNetworksExecution_setInput;
    let set_output = ANeuralNetworksExecution_setOutput;
    assert_eq!(set_input(execution, 0, null(), null(), 8), UNEXPECTED_NULL);
    assert_eq!(set_output(execution, 0, null(), null_mut(), 8), UNEXPECTED_NULL);
    let from_memory = ANeuralNetworksExecution_setInputFromMemory;
    assert_eq!(from_memory(execution, 0, null(), null_mut(), 0, 8), UNEXPECTED_NULL);
    let to_memory = ANeuralNetworksExecution_setOutputFromMemory;
    assert_eq!(to_memory(execution, 0, null(), null_mut(), 0, 8), UNEXPECTED_NULL);
    // None of them counts.
    let same = tensor(TENSOR_FLOAT32, &[2]);
    works(input(0, &raw const same, 8));
    works(output(0, null(), 8));
    assert_eq!(input(0, null(), 8), BAD_STATE, "set twice");
    assert_eq!(output(0, null(), 8), BAD_STATE, "set twice");
    works(ANeuralNetworksExecution_compute(execution));
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn an_execution_without_all_arguments_does_not_start() {
    let setup = Setup::new();
    let x = [1.0, 2.0];
    let mut event = null_mut();
    for start in 0..3 {
        let execution = setup.execution();
        works(ANeuralNetworksExecution_setInput(execution, 0, null(), bytes_of(&x), 8));
        let code = match start {
            0 => ANeuralNetworksExecution_compute(execution),
            1 => ANeuralNetworksExecution_startCompute(execution, &raw mut event),
            _ => ANeuralNetworksExecution_startComputeWithDependencies(
                execution,
                null(),
                0,
                0,
                &raw mut event,
            ),
        };
        assert_eq!(code, BAD_DATA, "way {start}");
        assert!(event.is_null());
        ANeuralNetworksExecution_free(execution);
    }
}

#[test]
fn an_execution_that_has_ended_does_not_change_and_does_not_start_again() {
    let setup = Setup::new();
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(setup.compilation, &x, &mut y);
    works(ANeuralNetworksExecution_compute(execution));
    let mut event = null_mut();
    let calls = [
        ANeuralNetworksExecution_compute(execution),
        ANeuralNetworksExecution_startCompute(execution, &raw mut event),
        ANeuralNetworksExecution_setInput(execution, 0, null(), bytes_of(&x), 8),
        ANeuralNetworksExecution_setInput(execution, 9, null(), bytes_of(&x), 8),
        ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 8),
        ANeuralNetworksExecution_setReusable(execution, true),
        ANeuralNetworksExecution_setMeasureTiming(execution, true),
        ANeuralNetworksExecution_setTimeout(execution, 1),
        ANeuralNetworksExecution_setLoopTimeout(execution, 1),
        ANeuralNetworksExecution_enableInputAndOutputPadding(execution, true),
    ];
    for (index, code) in calls.into_iter().enumerate() {
        assert_eq!(code, BAD_STATE, "call {index}");
    }
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn results_are_there_when_it_has_ended_and_not_before() {
    let setup = Setup::new();
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(setup.compilation, &x, &mut y);
    let (mut rank, mut dimensions, mut duration) = (0, [0], 0);
    let get_rank = ANeuralNetworksExecution_getOutputOperandRank;
    let get_dimensions = ANeuralNetworksExecution_getOutputOperandDimensions;
    let get_duration = ANeuralNetworksExecution_getDuration;
    assert_eq!(get_rank(execution, 0, &raw mut rank), BAD_STATE);
    assert_eq!(get_dimensions(execution, 0, dimensions.as_mut_ptr()), BAD_STATE);
    assert_eq!(get_duration(execution, 0, &raw mut duration), BAD_STATE);
    assert_eq!(duration, u64::MAX);
    works(ANeuralNetworksExecution_compute(execution));
    works(get_rank(execution, 0, &raw mut rank));
    works(get_dimensions(execution, 0, dimensions.as_mut_ptr()));
    assert_eq!((rank, dimensions), (1, [2]));
    assert_eq!(get_rank(execution, 1, &raw mut rank), BAD_DATA);
    assert_eq!(get_dimensions(execution, -1, dimensions.as_mut_ptr()), BAD_DATA);
    assert_eq!(get_rank(execution, 0, null_mut()), UNEXPECTED_NULL);
    assert_eq!(get_dimensions(execution, 0, null_mut()), UNEXPECTED_NULL);
    assert_eq!(get_duration(execution, 0, null_mut()), UNEXPECTED_NULL);
    assert_eq!(get_duration(execution, 0, &raw mut duration), BAD_STATE, "it did not measure");
    for code in [-1, 4] {
        assert_eq!(get_duration(execution, code, &raw mut duration), BAD_DATA, "{code}");
    }
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn times_are_measured_on_one_chosen_device() {
    let setup = Setup::new();
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(setup.compilation, &x, &mut y);
    works(ANeuralNetworksExecution_setMeasureTiming(execution, true));
    works(ANeuralNetworksExecution_compute(execution));
    for code in 0..4 {
        let mut duration = 0;
        works(ANeuralNetworksExecution_getDuration(execution, code, &raw mut duration));
        assert!(duration > 0, "code {code}");
    }
    ANeuralNetworksExecution_free(execution);

    let for_all = made(|it| ANeuralNetworksCompilation_create(setup.model, it));
    works(ANeuralNetworksCompilation_finish(for_all));
    let execution = c::execution(for_all);
    assert_eq!(ANeuralNetworksExecution_setMeasureTiming(execution, true), BAD_DATA);
    assert_eq!(ANeuralNetworksExecution_setTimeout(execution, 1), BAD_DATA);
    ANeuralNetworksExecution_free(execution);
    ANeuralNetworksCompilation_free(for_all);
}

#[test]
fn an_output_that_is_too_short_says_what_it_needs() {
    let setup = Setup::with(&[0]);
    let execution = setup.execution();
    let (x, mut y) = ([1.0, 2.0], [0.0; 1]);
    let kind = tensor(TENSOR_FLOAT32, &[2]);
    let kind = &raw const kind;
    works(ANeuralNetworksExecution_setInput(execution, 0, kind, bytes_of(&x), 8));
    works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 4));
    assert_eq!(ANeuralNetworksExecution_compute(execution), OUTPUT_INSUFFICIENT_SIZE);
    let (mut rank, mut dimensions) = (0, [0]);
    let code = ANeuralNetworksExecution_getOutputOperandRank(execution, 0, &raw mut rank);
    assert_eq!((code, rank), (OUTPUT_INSUFFICIENT_SIZE, 1));
    let get_dimensions = ANeuralNetworksExecution_getOutputOperandDimensions;
    let code = get_dimensions(execution, 0, dimensions.as_mut_ptr());
    assert_eq!((code, dimensions), (OUTPUT_INSUFFICIENT_SIZE, [2]));
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn inputs_of_unknown_dimensions_need_a_type() {
    let setup = Setup::with(&[0]);
    let execution = setup.execution();
    let x = [1.0, 2.0];
    let unknown = tensor(TENSOR_FLOAT32, &[0]);
    let set = ANeuralNetworksExecution_setInput;
    assert_eq!(set(execution, 0, null(), bytes_of(&x), 8), BAD_DATA);
    assert_eq!(set(execution, 0, &raw const unknown, bytes_of(&x), 8), BAD_DATA);
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn padding_must_be_enabled_before_the_first_argument() {
    let setup = Setup::new();
    let execution = setup.execution();
    let (x, mut y) = ([1.0, 2.0, 77.0], [0.0, 0.0, 55.0]);
    works(ANeuralNetworksExecution_enableInputAndOutputPadding(execution, true));
    works(ANeuralNetworksExecution_setInput(execution, 0, null(), bytes_of(&x), 12));
    let enable = ANeuralNetworksExecution_enableInputAndOutputPadding;
    assert_eq!(enable(execution, false), BAD_STATE);
    works(ANeuralNetworksExecution_setOutput(execution, 0, null(), room_of(&mut y), 12));
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(y, [11.0, 22.0, 55.0], "what is behind the value is left alone");
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn an_argument_that_does_not_fit_leaves_its_place_free() {
    let setup = Setup::new();
    let (x, mut y) = ([1.0, 2.0, 77.0], [0.0; 3]);
    let (enable, set) =
        (ANeuralNetworksExecution_enableInputAndOutputPadding, ANeuralNetworksExecution_setInput);
    let execution = setup.execution();
    // No such input, and dimensions that are not the model's, decide nothing.
    assert_eq!(set(execution, 1, null(), bytes_of(&x), 8), BAD_DATA);
    let other = tensor(TENSOR_FLOAT32, &[3]);
    assert_eq!(set(execution, 0, &raw const other, bytes_of(&x), 12), BAD_DATA);
    works(enable(execution, false));
    for length in [0, 4, 12] {
        assert_eq!(set(execution, 0, null(), bytes_of(&x), length), BAD_DATA, "{length}");
        assert_eq!(enable(execution, true), BAD_STATE, "{length}");
    }
    works(set(execution, 0, null(), bytes_of(&x), 8));
    for length in [0, 4, 8, 12] {
        assert_eq!(set(execution, 0, null(), bytes_of(&x), length), BAD_STATE, "{length}");
    }
    let set = ANeuralNetworksExecution_setOutput;
    assert_eq!(set(execution, 0, null(), room_of(&mut y), 12), BAD_DATA);
    works(set(execution, 0, null(), room_of(&mut y), 8));
    assert_eq!(set(execution, 0, null(), room_of(&mut y), 12), BAD_STATE);
    works(ANeuralNetworksExecution_compute(execution));
    assert_eq!(y, [11.0, 22.0, 0.0]);
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn a_reusable_execution_reads_its_inputs_each_time() {
    let setup = Setup::new();
    let (mut x, mut y) = (Box::new([1.0, 2.0]), Box::new([0.0; 2]));
    let execution = ready_execution(setup.compilation, &x, &mut y);
    works(ANeuralNetworksExecution_setReusable(execution, true));
    for round in 0_u8..5 {
        x[0] = f32::from(round);
        works(ANeuralNetworksExecution_compute(execution));
        assert_eq!(y[0], f32::from(round) + 10.0);
    }
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn bursts_belong_to_their_compilation() {
    let (setup, other) = (Setup::new(), Setup::new());
    let burst = made(|burst| ANeuralNetworksBurst_create(other.compilation, burst));
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(setup.compilation, &x, &mut y);
    let compute = ANeuralNetworksExecution_burstCompute;
    assert_eq!(compute(execution, null_mut()), UNEXPECTED_NULL);
    assert_eq!(compute(execution, burst), BAD_DATA);
    ANeuralNetworksBurst_free(burst);
    let burst = made(|burst| ANeuralNetworksBurst_create(setup.compilation, burst));
    works(compute(execution, burst));
    assert_eq!(y, [11.0, 22.0]);
    ANeuralNetworksBurst_free(burst);
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn events_tell_when_executions_have_ended() {
    let setup = Setup::new();
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(setup.compilation, &x, &mut y);
    assert_eq!(ANeuralNetworksExecution_startCompute(execution, null_mut()), UNEXPECTED_NULL);
    let event = made(|event| ANeuralNetworksExecution_startCompute(execution, event));
    let mut descriptor = 0;
    let get = ANeuralNetworksEvent_getSyncFenceFd;
    assert_eq!(get(event, &raw mut descriptor), BAD_DATA, "no fence behind it");
    assert_eq!(descriptor, -1);
    works(ANeuralNetworksEvent_wait(event));
    works(ANeuralNetworksEvent_wait(event));
    assert_eq!(y, [11.0, 22.0]);
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
}

#[test]
fn dependencies_are_checked() {
    let setup = Setup::new();
    let (x, mut y) = ([1.0, 2.0], [0.0; 2]);
    let execution = ready_execution(setup.compilation, &x, &mut y);
    let start = ANeuralNetworksExecution_startComputeWithDependencies;
    let mut event = null_mut();
    let place = &raw mut event;
    assert_eq!(start(execution, null(), 0, 0, null_mut()), UNEXPECTED_NULL);
    assert_eq!(start(execution, null(), 1, 0, place), UNEXPECTED_NULL);
    assert_eq!(start(execution, [null_mut()].as_ptr(), 1, 0, place), UNEXPECTED_NULL);
    assert_eq!(start(execution, [execution].as_ptr(), 1, 0, place), BAD_DATA, "no event");
    works(start(execution, null(), 0, 0, place));
    works(ANeuralNetworksEvent_wait(event));
    ANeuralNetworksEvent_free(event);
    ANeuralNetworksExecution_free(execution);
}

/// contract: CAPI-2: outputs by pointer are copied out before whoever waits may go on.
#[test]
fn capi_2_behind_a_fence_outputs_are_there_when_it_signals() {
    let setup = Setup::new();
    for round in 0_u8..50 {
        let (x, mut y) = (Box::new([f32::from(round), 1.0]), Box::new([0.0; 2]));
        let execution = ready_execution(setup.compilation, &x, &mut y);
        let start = ANeuralNetworksExecution_startComputeWithDependencies;
        let event = made(|event| start(execution, null(), 0, 0, event));
        let mut descriptor = -1;
        let code = ANeuralNetworksEvent_getSyncFenceFd(event, &raw mut descriptor);
        if code == NO_ERROR {
            // Another event on the same fence, which knows nothing of the execution.
            let make = ANeuralNetworksEvent_createFromSyncFenceFd;
            let fence = made(|event| make(descriptor, event));
            works(ANeuralNetworksEvent_wait(fence));
            ANeuralNetworksEvent_free(fence);
            close(descriptor);
        } else {
            assert_eq!((code, descriptor), (BAD_DATA, -1), "it has ended already");
        }
        assert_eq!(*y, [x[0] + 10.0, 21.0], "round {round}");
        works(ANeuralNetworksEvent_wait(event));
        ANeuralNetworksEvent_free(event);
        ANeuralNetworksExecution_free(execution);
    }
}

fn close(descriptor: i32) {
    use std::os::fd::{FromRawFd, OwnedFd};
    #[allow(unsafe_code, reason = "the library made it ours")]
    // SAFETY: the library answered the descriptor for us to close.
    drop(unsafe { OwnedFd::from_raw_fd(descriptor) });
}

#[test]
fn fences_that_are_none_are_refused() {
    let mut event = null_mut();
    let make = ANeuralNetworksEvent_createFromSyncFenceFd;
    assert_eq!(make(3, null_mut()), UNEXPECTED_NULL);
    for descriptor in [-1, 0, i32::MIN, 1_000_000] {
        assert_eq!(make(descriptor, &raw mut event), BAD_DATA, "{descriptor}");
        assert!(event.is_null());
    }
}

#[test]
fn freeing_the_event_waits_for_the_execution() {
    let setup = Setup::new();
    for _ in 0..50 {
        let (x, mut y) = (Box::new([1.0, 2.0]), Box::new([0.0; 2]));
        let execution = ready_execution(setup.compilation, &x, &mut y);
        let event = made(|event| ANeuralNetworksExecution_startCompute(execution, event));
        ANeuralNetworksEvent_free(event);
        assert_eq!(*y, [11.0, 22.0]);
        ANeuralNetworksExecution_free(execution);
    }
}
