//! Handles that are no fences, and what an execution behind fences answers (contract: section 12).

use super::super::models::{addition, sum_request};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::Driver;
use super::driver_model::ExecuteWishes;
use super::{INVALID, NONE, demand_status, words};
use nnhal_hidl::Handle;
use nnhal_hidl::v1_3::{IFencedExecutionCallback, OptionalTimeoutDuration};
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
    let Some(model) = &model.v1_3 else {
        return Err(Violation("CB-4: what 1.3 prepares is not one of 1.3".into()));
    };
    let ExecuteWishes { measure, deadline, loop_timeout } = wishes;
    let never = OptionalTimeoutDuration::None;
    let request = words(&sum_request()?)?;
    let answer = model.execute_fenced(&request, wait_for, measure, deadline, loop_timeout, never);
    answer.map(Some).map_err(|error| Violation(format!("executeFenced: {error}")))
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
    if let [fd] = fence.fds() {
        let fd = fd.try_clone().map_err(|error| Violation(format!("the fence: {error}")))?;
        nnhal_hal::SyncFence::from_fd(fd)?.wait(Some(std::time::Duration::from_secs(20)))?;
    } else {
        demand!(fence.is_null(), "the fence has {} descriptors", fence.fds().len());
    }
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
    Ok(Verdict::Kept)
}
