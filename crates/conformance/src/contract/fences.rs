//! Executions behind fences (contract: section 12).

use super::models::{adder, addition, endless, is_newest, is_supported, prepare, sum, sum_request};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{
    GeneralFailure, InvalidArgument, MissedDeadlinePersistent, MissedDeadlineTransient,
};
use nnhal_hal::fence::FenceState;
use nnhal_hal::{
    Deadline, Device, ExecutionOptions, FencedExecution, PreparedModel, Request, RequestBuilder,
    SyncFence, Timing,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["FENCE-1", "FENCE-4", "FENCE-6"],
        name: "the fence signals when the outputs are there",
        run: Run::Device(signals),
    },
    Check {
        ids: &["FENCE-5", "FENCE-10"],
        name: "nothing is computed, nor reported, before the fences have signalled",
        run: Run::Device(waits),
    },
    Check {
        ids: &["FENCE-2", "FENCE-3"],
        name: "unknown outputs, short buffers and failed fences are refused",
        run: Run::Device(refusals),
    },
    Check {
        ids: &["FENCE-7", "FENCE-11"],
        name: "a fence that fails later fails the execution",
        run: Run::Device(failing_fence),
    },
    Check {
        ids: &["FENCE-9", "FENCE-13"],
        name: "a deadline ends the waiting",
        run: Run::Device(deadline),
    },
    Check {
        ids: &["FENCE-7", "FENCE-13"],
        name: "the time after the fences ends an execution, and begins with the last of them",
        run: Run::Device(duration),
    },
    Check {
        ids: &["FENCE-12", "TIME-1"],
        name: "two times are reported when asked for, from the call and from the last fence",
        run: Run::Device(times),
    },
    Check {
        ids: &["FENCE-14"],
        name: "executions are chained by their fences",
        run: Run::Device(chains),
    },
];

const MISSED: &[nnhal_hal::ErrorStatus] = &[MissedDeadlinePersistent, MissedDeadlineTransient];

/// How long a check waits for a fence.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(30));

fn launch(
    prepared: &dyn PreparedModel,
    request: &Request,
    wait_for: &[SyncFence],
) -> nnhal_hal::Result<FencedExecution> {
    prepared.execute_fenced(request, wait_for, &ExecutionOptions::default(), None)
}

fn end(execution: &FencedExecution) -> Result<FenceState, Violation> {
    let Some(fence) = &execution.sync_fence else { return Ok(FenceState::Signalled) };
    let state = fence.wait(TIMEOUT)?;
    demand!(state != FenceState::Unsignalled, "the fence does not signal");
    Ok(state)
}

fn expect_success(execution: &FencedExecution) -> Result<(), Violation> {
    let state = end(execution)?;
    let info = execution.info.get();
    demand!(state == FenceState::Signalled && info.is_ok(), "the fence {state:?}, {info:?}");
    Ok(())
}

fn not_offered() -> Verdict {
    Verdict::NotOffered("fences, which are of 1.3".into())
}

fn signals(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let request = sum_request()?;
    let execution = launch(&*adder(&**device)?, &request, &[])?;
    expect_success(&execution)?;
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(Verdict::Kept)
}

fn waits(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let request = sum_request()?;
    let (signal, fence) = SyncFence::pair()?;
    let prepared = adder(&**device)?;
    let execution = launch(&*prepared, &request, &[fence])?;
    // On a busy machine, what does not wait for the fence is still computed before what is launched later. A
    // device that takes executions in order does not get to that one, so it is not waited for long.
    let later = launch(&*prepared, &sum_request()?, &[])?;
    if let Some(fence) = &later.sync_fence {
        fence.wait(Some(Duration::from_secs(1)))?;
    }
    std::thread::sleep(Duration::from_millis(20));
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found.iter().all(|byte| *byte == 0), "it was computed before the fence signalled");
    demand!(execution.sync_fence.is_some(), "it is said to have ended, but cannot have begun");
    demand_refusal("getExecutionInfo before the end", execution.info.get(), &[GeneralFailure])?;
    signal.signal();
    expect_success(&execution)?;
    expect_success(&later)?;
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(Verdict::Kept)
}

fn refusals(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let open = prepare(&**device, &addition([0, 2]))?;
    let mut request = sum_request()?;
    for input in &mut request.inputs {
        input.dimensions = vec![2, 2];
    }
    demand_refusal("an unknown output", launch(&*open, &request, &[]), &[InvalidArgument])?;
    let prepared = adder(&**device)?;
    request.outputs[0].location.length = 15;
    demand_refusal("too short a buffer", launch(&*prepared, &request, &[]), &[InvalidArgument])?;
    let (signal, fence) = SyncFence::pair()?;
    signal.fail(nnhal_hal::Error::failure("by the check"));
    let launched = launch(&*prepared, &sum_request()?, &[fence]);
    demand_refusal("a fence that has failed", launched, &[InvalidArgument])?;
    Ok(Verdict::Kept)
}

fn failing_fence(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let (signal, fence) = SyncFence::pair()?;
    let execution = launch(&*adder(&**device)?, &sum_request()?, &[fence])?;
    signal.fail(nnhal_hal::Error::failure("by the check"));
    let state = end(&execution)?;
    demand!(state == FenceState::Failed, "the fence is {state:?}");
    demand_refusal("getExecutionInfo", execution.info.get(), &[GeneralFailure])?;
    Ok(Verdict::Kept)
}

fn deadline(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let (_kept, fence) = SyncFence::pair()?;
    let soon = Some(Deadline::after(Duration::from_millis(20)));
    let options = ExecutionOptions { deadline: soon, ..ExecutionOptions::default() };
    let request = sum_request()?;
    let launched = adder(&**device)?.execute_fenced(&request, &[fence], &options, None);
    match launched {
        Err(late) => demand_refusal::<()>("a deadline", Err(late), MISSED)?,
        Ok(execution) => {
            let state = end(&execution)?;
            demand!(state == FenceState::Failed, "the fence is {state:?}");
            demand_refusal("getExecutionInfo", execution.info.get(), MISSED)?;
        }
    }
    Ok(Verdict::Kept)
}

/// A loop without end, which nothing else ends for 10 seconds.
fn duration(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let (signal, fence) = SyncFence::pair()?;
    let second = Some(Duration::from_secs(1));
    let options = ExecutionOptions::default();
    let request = sum_request()?;
    let execution = adder(&**device)?.execute_fenced(&request, &[fence], &options, second)?;
    std::thread::sleep(Duration::from_millis(1200));
    signal.signal();
    expect_success(&execution)?;
    if !is_supported(&**device, &endless())? {
        return Ok(Verdict::NotOffered("WHILE".into()));
    }
    let prepared = prepare(&**device, &endless())?;
    let mut request = RequestBuilder::new();
    let request = request.input(&[0; 4]).output(4).build()?;
    let loop_timeout = Some(Duration::from_secs(10));
    let options = ExecutionOptions { loop_timeout, ..options };
    let begin = Instant::now();
    let short = Some(Duration::from_millis(20));
    match prepared.execute_fenced(&request, &[], &options, short) {
        Err(late) => demand_refusal::<()>("a duration", Err(late), MISSED)?,
        Ok(execution) => {
            let state = end(&execution)?;
            demand!(state == FenceState::Failed, "after its duration the fence is {state:?}");
            demand_refusal("getExecutionInfo", execution.info.get(), MISSED)?;
        }
    }
    demand!(begin.elapsed() < Duration::from_secs(5), "it took {:?}", begin.elapsed());
    Ok(Verdict::Kept)
}

fn times(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let options = ExecutionOptions { measure: true, ..ExecutionOptions::default() };
    let request = sum_request()?;
    let (signal, fence) = SyncFence::pair()?;
    let prepared = adder(&**device)?;
    let execution = prepared.execute_fenced(&request, &[fence], &options, None)?;
    let waited = Duration::from_millis(100);
    std::thread::sleep(waited);
    signal.signal();
    expect_success(&execution)?;
    let (launched, fenced) = execution.info.get()?;
    for timing in [launched, fenced] {
        let (on_device, in_driver) = timing.to_microseconds();
        demand!(on_device <= in_driver, "{timing:?}");
    }
    if let (Some(launched), Some(fenced)) = (launched.time_in_driver, fenced.time_in_driver) {
        let right = launched >= waited && launched >= fenced;
        demand!(right, "launched {launched:?} and {fenced:?} after the fence, which took 100 ms");
    }
    demand!(execution.info.get()? == (launched, fenced), "asked again, other times are reported");
    let unasked = launch(&*prepared, &sum_request()?, &[])?;
    expect_success(&unasked)?;
    let times = unasked.info.get()?;
    demand!(times == (Timing::NONE, Timing::NONE), "{times:?} were not asked for");
    Ok(Verdict::Kept)
}

fn chains(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if !is_newest(&**device) {
        return Ok(not_offered());
    }
    let prepared = adder(&**device)?;
    // The sum is the second execution's first input.
    let first = sum_request()?;
    let mut second = first.clone();
    second.inputs[0].location = first.outputs[0].location;
    second.outputs[0].location = first.inputs[0].location;
    let (signal, start) = SyncFence::pair()?;
    let one = launch(&*prepared, &first, &[start])?;
    let after: Vec<SyncFence> = one.sync_fence.clone().into_iter().collect();
    let two = launch(&*prepared, &second, &after)?;
    signal.signal();
    expect_success(&two)?;
    let found = RequestBuilder::read_output(&second, 0)?;
    let expected = super::models::bytes(&[21.0, 22.0, 23.0, 24.0]);
    demand!(found == expected, "the sum of the sum is {found:?}");
    Ok(Verdict::Kept)
}
