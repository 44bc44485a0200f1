//! Deadlines, loop timeouts, timing (contract: section 16, TIME, GEN-4).

mod engine;

use engine::{Scripted, bare_status, relu, request_with_room, vector};
use nnhal_driver::{Budget, EngineError, Interruption};
use nnhal_hal::{
    Cancellation, Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, OperandSpec,
    PrepareOptions, Priority, Request, Timing,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

const PASSED: Deadline = Deadline::from_nanoseconds_since_epoch(0);

fn within(deadline: Deadline) -> ExecutionOptions {
    ExecutionOptions { deadline: Some(deadline), ..ExecutionOptions::default() }
}

fn delivering() -> Scripted {
    Scripted::running(|bindings, _| Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?))
}

#[test]
fn qos_5_a_deadline_passed_before_the_start_is_persistent_and_nothing_runs() {
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let prepared = Scripted::running(move |_, _| {
        seen.store(true, Ordering::Relaxed);
        Ok(())
    })
    .prepared(vector(2), vector(2));
    let result = prepared.execute(&request_with_room(8), &within(PASSED));
    assert_eq!(bare_status(result), ErrorStatus::MissedDeadlinePersistent);
    assert!(!ran.load(Ordering::Relaxed));
}

#[test]
fn qos_5_a_deadline_missed_midway_is_transient() {
    let prepared = Scripted::running(|_, context| {
        loop {
            context.budget.check()?;
        }
    })
    .prepared(vector(2), vector(2));
    let soon = Deadline::after(Duration::from_millis(20));
    let result = prepared.execute(&request_with_room(8), &within(soon));
    assert_eq!(bare_status(result), ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn qos_4_a_far_deadline_is_none() {
    let far = Deadline::from_nanoseconds_since_epoch(u64::MAX);
    let prepared = delivering().prepared(vector(2), vector(2));
    assert!(prepared.execute(&request_with_room(8), &within(far)).is_ok());
}

#[test]
fn qos_10_a_missed_deadline_harms_no_later_execution() {
    let prepared = delivering().prepared(vector(2), vector(2));
    prepared.execute(&request_with_room(8), &within(PASSED)).unwrap_err();
    assert!(prepared.execute(&request_with_room(8), &ExecutionOptions::default()).is_ok());
}

#[test]
fn gen_4_wrong_arguments_come_before_a_passed_deadline() {
    let prepared = delivering().prepared(vector(2), vector(2));
    let result = prepared.execute(&Request::default(), &within(PASSED));
    assert_eq!(bare_status(result), ErrorStatus::InvalidArgument);

    let late = || PrepareOptions { deadline: Some(PASSED), ..PrepareOptions::default() };
    let device = delivering().device();
    let newer = relu(
        OperandSpec::tensor_quant8_asymm_signed([1], 1.0, 0),
        OperandSpec::tensor_quant8_asymm_signed([1], 1.0, 0),
    );
    let prepared = device.prepare_model(&newer, HalVersion::V1_2, late());
    assert_eq!(prepared.err().unwrap().status(), ErrorStatus::InvalidArgument);
    let prepared = device.prepare_model(&relu(vector(2), vector(2)), HalVersion::V1_3, late());
    assert_eq!(prepared.err().unwrap().status(), ErrorStatus::MissedDeadlinePersistent);
}

#[test]
fn qos_5_preparing_is_given_up_midway() {
    let device = delivering()
        .compiling(|_, _, budget| {
            loop {
                budget.check()?;
            }
        })
        .device();
    let deadline = Some(Deadline::after(Duration::from_millis(20)));
    let options = PrepareOptions { deadline, ..PrepareOptions::default() };
    let prepared = device.prepare_model(&relu(vector(2), vector(2)), HalVersion::V1_3, options);
    assert_eq!(prepared.err().unwrap().status(), ErrorStatus::MissedDeadlineTransient);
}

#[test]
fn qos_1_the_priority_reaches_engine_and_execution() {
    let prepared = Scripted::running(|bindings, context| {
        assert_eq!(context.budget.priority(), Priority::High);
        Ok(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
    })
    .compiling(|_, options, budget| {
        assert_eq!((options.priority, budget.priority()), (Priority::High, Priority::High));
        Ok(())
    })
    .device()
    .prepare_model(
        &relu(vector(2), vector(2)),
        HalVersion::V1_3,
        PrepareOptions { priority: Priority::High, ..PrepareOptions::default() },
    )
    .unwrap();
    prepared.execute(&request_with_room(8), &ExecutionOptions::default()).unwrap();
}

#[test]
fn qos_7_a_loop_has_2_seconds_and_no_more_than_asked_for() {
    assert_eq!(Budget::unlimited().loop_timeout(), Duration::from_secs(2));
    let budget = Budget::unlimited().with_loop_timeout(Duration::from_millis(1));
    let clock = budget.loop_clock();
    sleep(Duration::from_millis(2));
    let interruption = clock.check().unwrap_err();
    assert_eq!(interruption, Interruption::LoopTimeout { limit: Duration::from_millis(1) });
    assert_eq!(interruption.status(), ErrorStatus::MissedDeadlineTransient);
    // Another loop has its own clock (QOS-8).
    assert_eq!(Budget::unlimited().loop_clock().check(), Ok(()));
}

#[test]
fn qos_8_a_loop_timeout_is_clamped() {
    let options =
        ExecutionOptions { loop_timeout: Some(Duration::MAX), ..ExecutionOptions::default() };
    let budget = Budget::for_execution(&options, Priority::Low);
    assert_eq!(budget.loop_timeout(), Duration::from_secs(15));
}

#[test]
fn cancelled_work_ends() {
    let cancellation = Cancellation::new();
    let budget = Budget::unlimited().with_cancellation(cancellation.clone());
    assert_eq!(budget.check(), Ok(()));
    cancellation.cancel();
    assert_eq!(budget.check(), Err(Interruption::Cancelled));
    assert_eq!(budget.check_before_start(), Err(Interruption::Cancelled));
}

#[test]
fn time_1_nothing_is_measured_unless_asked_for() {
    let prepared = delivering().prepared(vector(2), vector(2));
    let execution = prepared.execute(&request_with_room(8), &ExecutionOptions::default()).unwrap();
    assert_eq!(execution.timing, Timing::NONE);
}

#[test]
fn time_2_the_device_takes_no_longer_than_the_driver() {
    let prepared = Scripted::running(|bindings, _| {
        sleep(Duration::from_millis(2));
        Ok::<_, EngineError>(bindings.outputs()[0].deliver(&[2], &[0; 8])?)
    })
    .prepared(vector(2), vector(2));
    let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
    let timing = prepared.execute(&request_with_room(8), &options).unwrap().timing;
    let (on_device, in_driver) = timing.to_microseconds();
    assert!(2000 <= on_device && on_device <= in_driver && in_driver < u64::MAX, "{timing:?}");
}
