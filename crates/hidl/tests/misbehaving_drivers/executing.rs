//! Executions.

use super::*;

#[test]
fn cb_4_a_model_by_an_older_method_serves_as_what_it_is() {
    // It comes by 1.0's method and does not say that it is newer.
    let driver = Driver::preparing(|callback| {
        callback.notify(NONE, Some(Arc::new(Model::new()))).map(|()| NONE)
    });
    let prepared = prepare(&*driver.device()).unwrap();
    let failed = prepared.execute(&add_constant().request(), &ExecutionOptions::default());
    let found = failed.unwrap_err().error;
    let expected = Misbehaviour::Status { method: "execute", code: STRANGE };
    assert_eq!(misbehaviour(&found), &expected);
}

fn executed(model: Model, measure: bool) -> Result<nnhal_hal::Execution, ExecutionError> {
    let options = ExecutionOptions { measure, ..ExecutionOptions::default() };
    model.prepared().execute(&add_constant().request(), &options)
}

const EXECUTE: &str = "executeSynchronously_1_3";
const NOT_TIMED: (u64, u64) = (u64::MAX, u64::MAX);

#[test]
fn cb_7_shapes_that_do_not_go_with_the_status_are_noticed() {
    let shapes = |status, what| Misbehaviour::Shapes { method: EXECUTE, status, what };
    let none = ErrorStatus::None;
    let small = ErrorStatus::OutputInsufficientSize;
    let fine: (&[u32], bool) = (&[1, 2], true);
    let short: (&[u32], bool) = (&[1, 2], false);
    let cases = [
        (Model::answering(NONE, &[short], NOT_TIMED), shapes(none, "one had too short a buffer")),
        (Model::answering(SMALL, &[], NOT_TIMED), shapes(small, "there are none")),
        (Model::answering(SMALL, &[fine], NOT_TIMED), shapes(small, "all had buffers long enough")),
        (
            Model::answering(NONE, &[fine, fine], NOT_TIMED),
            Misbehaviour::Count { method: EXECUTE, what: "output shapes", found: 2, expected: 1 },
        ),
        (
            Model::answering(STRANGE, &[], NOT_TIMED),
            Misbehaviour::Status { method: EXECUTE, code: STRANGE },
        ),
    ];
    for (model, expected) in cases {
        let failed = executed(model, false).unwrap_err();
        assert_eq!(misbehaviour(&failed.error), &expected);
        assert!(failed.output_shapes.is_empty());
    }
    // Shapes that come with an error are let go (contract: SHAPE-1).
    let failed = executed(Model::answering(FAILURE, &[fine], NOT_TIMED), false).unwrap_err();
    assert!(failed.output_shapes.is_empty());
    // With the right form it is an answer.
    let failed = executed(Model::answering(SMALL, &[short], NOT_TIMED), false).unwrap_err();
    assert_eq!((failed.error.status(), failed.output_shapes.len()), (small, 1));
}

#[test]
fn shape_2_shapes_may_be_left_out_where_all_are_known() {
    let execution = executed(Model::new(), false).unwrap();
    assert_eq!(execution.dimensions(0), Some(&[1, 2][..]));
    // And not where one is unknown.
    let sample = common::unknown_output();
    let device = Driver::new().device();
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(&sample.model, HalVersion::V1_3, options).unwrap();
    let failed = prepared.execute(&sample.request(), &ExecutionOptions::default()).unwrap_err();
    let expected = Misbehaviour::UnknownShape { method: EXECUTE, output: 0 };
    assert_eq!(misbehaviour(&failed.error), &expected);
}

/// Whoever believed them would read behind the end of a buffer.
#[test]
fn shape_3_and_5_shapes_that_cannot_be_are_noticed() {
    let shapes = |what| Misbehaviour::Shapes { method: EXECUTE, status: ErrorStatus::None, what };
    let (rank, other) =
        ("one has another rank than was known", "one has other dimensions than were known");
    for (dimensions, what) in [
        (&[2][..], rank),
        (&[], rank),
        (&[1, 2, 1], rank),
        (&[2, 1], other),
        (&[1, u32::MAX], other),
        (&[1, 0], other),
    ] {
        let model = Model::answering(NONE, &[(dimensions, true)], NOT_TIMED);
        assert_eq!(misbehaviour(&executed(model, false).unwrap_err().error), &shapes(what));
    }
    // Of an output that is not known, the buffer is the limit: 12 bytes.
    let sample = common::unknown_output();
    let executed = |dimensions: &[u32]| {
        let model = Model::answering(NONE, &[(dimensions, true)], NOT_TIMED);
        let driver = Driver::preparing(move |callback| {
            callback.notify_1_3(NONE, Some(Arc::new(model.clone()))).map(|()| NONE)
        });
        let (device, options) = (driver.device(), PrepareOptions::default());
        let prepared = device.prepare_model(&sample.model, HalVersion::V1_3, options).unwrap();
        prepared.execute(&sample.request(), &ExecutionOptions::default())
    };
    for dimensions in [&[4][..], &[2, 2], &[u32::MAX; 9]] {
        let failed = executed(dimensions).unwrap_err();
        assert_eq!(misbehaviour(&failed.error), &shapes("one is longer than its buffer"));
    }
    for dimensions in [&[3][..], &[3, 1], &[0], &[u32::MAX, u32::MAX, u32::MAX, 0]] {
        assert_eq!(executed(dimensions).unwrap().dimensions(0), Some(dimensions));
    }
}

#[test]
fn time_1_and_2_times_that_were_not_asked_for_or_contradict_are_let_go() {
    let timing =
        |times, measure| executed(Model::answering(NONE, &[], times), measure).unwrap().timing;
    assert_eq!(timing((1, 2), false), nnhal_hal::Timing::NONE);
    assert_eq!(timing((3, 2), true), nnhal_hal::Timing::NONE);
    assert_eq!(timing((1, 2), true), nnhal_hal::Timing::from_microseconds(1, 2));
    assert_eq!(timing((1, u64::MAX), true), nnhal_hal::Timing::from_microseconds(1, u64::MAX));
}

#[test]
fn executions_whose_callback_is_lost_end() {
    let request: Request = add_constant().request();
    let execute = |model: Model| {
        let options = ExecutionOptions::default();
        model.prepared_asynchronous().execute(&request, &options).unwrap_err().error
    };
    let method = "execute_1_3";
    let lost = execute(Model::executing(|_| Ok(NONE)));
    assert_eq!(misbehaviour(&lost), &Misbehaviour::NeverNotified { method });
    let panicked = execute(Model::executing(|_| panic!("on purpose")));
    assert_eq!(misbehaviour(&panicked), &Misbehaviour::Panicked { method });
    // 1.0's method carries no shapes, without which no one can use what it says.
    let small = execute(Model::executing(|callback| callback.notify(SMALL).map(|()| NONE)));
    let status = ErrorStatus::OutputInsufficientSize;
    let expected = Misbehaviour::Shapes { method, status, what: "there are none" };
    assert_eq!(misbehaviour(&small), &expected);
}

#[test]
fn fence_4_fences_and_callbacks_that_are_none_are_noticed() {
    let launch = |fenced: fn() -> (i32, Handle, bool)| {
        let model = Model { fenced: Arc::new(fenced), ..Model::new() };
        let request = add_constant().request();
        model.prepared().execute_fenced(&request, &[], &ExecutionOptions::default(), None)
    };
    let method = "executeFenced";
    let refused = launch(|| (NONE, Handle::NULL, false)).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Nothing { method, what: "callback" });
    let refused = launch(|| (NONE, Handle::new(vec![], vec![]), true)).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Fence { method, descriptors: 0 });
    let refused = launch(|| (STRANGE, Handle::NULL, true)).unwrap_err();
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Status { method, code: STRANGE });
    // Over already; the times of the one contradict each other (contract: TIME-2).
    let launched = launch(|| (NONE, Handle::NULL, true)).unwrap();
    assert!(launched.sync_fence.is_none());
    let (whole, fenced) = launched.info.get().unwrap();
    assert_eq!(
        (whole, fenced),
        (nnhal_hal::Timing::NONE, nnhal_hal::Timing::from_microseconds(1, 2))
    );
}

#[test]
fn ipc_5_bursts_that_are_none_or_that_no_one_serves_end() {
    let refused = Model::new().prepared().configure_burst().err().unwrap();
    let method = "configureExecutionBurst";
    assert_eq!(misbehaviour(&refused), &Misbehaviour::Nothing { method, what: "burst context" });

    let model = Model { burst: true, ..Model::new() };
    let burst = model.prepared().configure_burst().unwrap();
    let request = add_constant().request();
    let failed = burst.execute(&request, false).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::DeviceUnavailable);
    let Some(nnhal_hal::RequestMemoryPool::Memory(memory)) = request.pools.first() else {
        panic!()
    };
    burst.free_memory(memory);
}
