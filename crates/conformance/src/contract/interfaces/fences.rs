//! Handles that are no fences, and what an execution behind fences answers (contract: section 12).

use super::super::models::{addition, sum_request};
use super::super::requests::MISTAKES;
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::Driver;
use super::driver_model::{DriverModel, ExecuteWishes, returned};
use super::executing::prepared_loop;
use super::{INVALID, MISSED, NONE, demand_status, words};
use nnhal_hal::{MeasureTiming, Request};
use nnhal_hidl::Handle;
use nnhal_hidl::v1_2::Timing;
use nnhal_hidl::v1_3::{IFencedExecutionCallback, OptionalTimePoint, OptionalTimeoutDuration};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["FENCE-1", "FENCE-3"],
        name: "a handle that is no fence is refused, with nothing",
        run: Run::Driver(no_fences),
    },
    Check {
        ids: &["FENCE-4", "FENCE-10"],
        name: "a good request has a callback, which tells the same again and again",
        run: Run::Driver(good),
    },
    Check {
        ids: &["REQ-1", "REQ-2", "REQ-3", "REQ-4", "REQ-6", "REQ-9", "FENCE-1", "GEN-3"],
        name: "a request with one thing wrong is refused behind fences, with nothing",
        run: Run::Driver(wrong),
    },
    Check {
        ids: &["FENCE-10", "TIME-1", "GEN-3"],
        name: "an execution that failed has no times",
        run: Run::Driver(failed),
    },
    Check {
        ids: &["GEN-7", "FENCE-1"],
        name: "numbers that are no codes are refused, with nothing",
        run: Run::Driver(no_codes),
    },
];

fn not_offered() -> Verdict {
    Verdict::NotOffered("executions behind fences, which are of 1.3".into())
}

type Answer = (i32, Handle, Option<Arc<dyn IFencedExecutionCallback>>);

/// Launches the sum behind fences; `None` if the driver has no such method.
fn launch(
    driver: &Driver,
    wait_for: &[Handle],
    wishes: ExecuteWishes,
) -> Result<Option<Answer>, Violation> {
    if driver.v1_3.is_none() {
        return Ok(None);
    }
    let model = driver.prepared(&addition([2, 2]))?;
    let never = OptionalTimeoutDuration::None;
    launch_request(&model, &sum_request()?, wait_for, wishes, never).map(Some)
}

fn launch_request(
    model: &DriverModel,
    request: &Request,
    wait_for: &[Handle],
    wishes: ExecuteWishes,
    duration: OptionalTimeoutDuration,
) -> Result<Answer, Violation> {
    let Some(model) = &model.v1_3 else {
        return Err(Violation("CB-4: what 1.3 prepares is not one of 1.3".into()));
    };
    let ExecuteWishes { measure, deadline, loop_timeout } = wishes;
    let request = words(request)?;
    returned(
        "executeFenced",
        model.execute_fenced(&request, wait_for, measure, deadline, loop_timeout, duration),
    )
}

/// Waits for the fence of an execution, if it has one.
fn wait(fence: &Handle) -> Result<(), Violation> {
    if let [fd] = fence.fds() {
        let fd = fd.try_clone().map_err(|error| Violation(format!("the fence: {error}")))?;
        nnhal_hal::SyncFence::from_fd(fd)?.wait(Some(std::time::Duration::from_secs(20)))?;
    } else {
        demand!(fence.is_null(), "the fence has {} descriptors", fence.fds().len());
    }
    Ok(())
}

/// Demands `INVALID_ARGUMENT` with neither a fence nor a callback.
fn demand_nothing(what: &str, (status, fence, callback): &Answer) -> Result<(), Violation> {
    demand_status(what, *status, INVALID)?;
    demand!(fence.is_null(), "{what}: there is a fence");
    demand!(callback.is_none(), "{what}: there is a callback");
    Ok(())
}

fn file() -> Result<OwnedFd, Violation> {
    let file = File::open("/dev/null").map(OwnedFd::from);
    file.map_err(|error| Violation(format!("the check's own file: {error}")))
}

fn no_fences(driver: &Driver) -> Result<Verdict, Violation> {
    let wrong = [
        ("null", Handle::NULL),
        ("a handle without descriptor", Handle::new(vec![], vec![])),
        ("a handle of two descriptors", Handle::new(vec![file()?, file()?], vec![])),
    ];
    for (what, handle) in wrong {
        let answer = launch(driver, &[handle], ExecuteWishes::default())?;
        let Some(answer) = answer else { return Ok(not_offered()) };
        demand_nothing(what, &answer)?;
    }
    Ok(Verdict::Kept)
}

fn good(driver: &Driver) -> Result<Verdict, Violation> {
    let answer = launch(driver, &[], ExecuteWishes::default())?;
    let Some((status, fence, callback)) = answer else { return Ok(not_offered()) };
    demand_status("executeFenced", status, NONE)?;
    let Some(callback) = callback else {
        return Err(Violation("there is no callback with NONE".into()));
    };
    wait(&fence)?;
    let ask = || {
        let answer = callback.get_execution_info();
        answer.map_err(|error| Violation(format!("getExecutionInfo: {error}")))
    };
    let first = ask()?;
    demand_status("getExecutionInfo after the fence", first.0, NONE)?;
    let again = ask()?;
    demand!(again == first, "{first:?} at first, then {again:?}");
    Ok(Verdict::Kept)
}

fn no_codes(driver: &Driver) -> Result<Verdict, Violation> {
    let wishes = ExecuteWishes { measure: 2, ..ExecuteWishes::default() };
    let Some(answer) = launch(driver, &[], wishes)? else { return Ok(not_offered()) };
    demand_nothing("measure 2", &answer)?;
    let wishes = ExecuteWishes::default();
    let (never, tag_9) =
        (OptionalTimeoutDuration::None, OptionalTimeoutDuration::Unknown { tag: 9 });
    let deadline = OptionalTimePoint::Unknown { tag: 9 };
    let model = driver.prepared(&addition([2, 2]))?;
    for (what, wishes, duration) in [
        ("a deadline of tag 9", ExecuteWishes { deadline, ..wishes }, never),
        ("a loop timeout of tag 9", ExecuteWishes { loop_timeout: tag_9, ..wishes }, never),
        ("a duration of tag 9", wishes, tag_9),
    ] {
        let answer = launch_request(&model, &sum_request()?, &[], wishes, duration)?;
        demand_nothing(what, &answer)?;
    }
    Ok(Verdict::Kept)
}

fn wrong(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.v1_3.is_none() {
        return Ok(not_offered());
    }
    let model = driver.prepared(&addition([2, 2]))?;
    let late = OptionalTimePoint::NanosecondsSinceEpoch(1);
    for (what, spoil) in MISTAKES {
        let mut request = sum_request()?;
        spoil(&mut request);
        // What is late besides is wrong first (contract: GEN-4).
        for deadline in [OptionalTimePoint::None, late] {
            let wishes = ExecuteWishes { deadline, ..ExecuteWishes::default() };
            let never = OptionalTimeoutDuration::None;
            let answer = launch_request(&model, &request, &[], wishes, never)?;
            demand_nothing(what, &answer)?;
        }
    }
    Ok(Verdict::Kept)
}

/// A loop without end, of which times were wanted.
fn failed(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, request)) = prepared_loop(driver)? else {
        return Ok(Verdict::NotOffered("WHILE".into()));
    };
    let wishes = ExecuteWishes {
        measure: MeasureTiming::Yes.code(),
        loop_timeout: OptionalTimeoutDuration::Nanoseconds(1_000_000),
        ..ExecuteWishes::default()
    };
    let never = OptionalTimeoutDuration::None;
    let (status, fence, callback) = launch_request(&model, &request, &[], wishes, never)?;
    let Some(callback) = callback else {
        demand!(fence.is_null(), "there is a fence and no callback");
        return demand_status("executeFenced", status, MISSED).map(|()| Verdict::Kept);
    };
    demand_status("executeFenced", status, NONE)?;
    wait(&fence)?;
    let (status, launched, fenced) = returned("getExecutionInfo", callback.get_execution_info())?;
    demand_status("getExecutionInfo of a loop without end", status, MISSED)?;
    let none = launched == Timing::NONE && fenced == Timing::NONE;
    demand!(none, "the times of what failed are {launched:?} and {fenced:?}");
    Ok(Verdict::Kept)
}
