//! The paths by which 1.3 executes a request, with one answer for each.

use super::super::{Violation, demand};
use super::driver_model::{DriverModel, ExecuteWishes};
use super::{NONE, is_one_of, name_of, words};
use nnhal_hal::{ErrorStatus, HalVersion, Request, SyncFence};
use nnhal_hidl::v1_3::OptionalTimeoutDuration;
use std::time::Duration;

/// For how long a fence is waited for.
const TIMEOUT: Option<Duration> = Some(Duration::from_secs(20));

/// What became of a request, by each path of 1.3 that a device's buffers serve (contract: DBUF-9).
pub(super) fn by_every_path(
    model: &DriverModel,
    request: &Request,
    wishes: ExecuteWishes,
) -> Result<[(&'static str, i32); 3], Violation> {
    let (launched, ended) = model.execute(HalVersion::V1_3, request, wishes)?;
    // What is wrong with buffers may be reported by the launch or by the task (contract: EXEC-4).
    let agree = launched == ErrorStatus::None.code() || launched == ended.status;
    let (returned, notified) = (name_of(launched), name_of(ended.status));
    demand!(agree, "asynchronously {returned} is returned and {notified} reported");
    let (synchronous, _, _) = model.run(HalVersion::V1_3, request, wishes)?;
    let fenced = behind_no_fence(model, request, wishes)?;
    Ok([
        ("asynchronously", ended.status),
        ("synchronously", synchronous),
        ("behind fences", fenced),
    ])
}

/// Demands one of some statuses by every path.
pub(super) fn demand_by_every_path(
    what: &str,
    model: &DriverModel,
    request: &Request,
    allowed: &[ErrorStatus],
) -> Result<(), Violation> {
    for (path, status) in by_every_path(model, request, ExecuteWishes::default())? {
        super::demand_status(&format!("{what}, {path}"), status, allowed)?;
    }
    Ok(())
}

/// The status of `executeFenced`, or what its callback says at the end.
pub(super) fn behind_no_fence(
    model: &DriverModel,
    request: &Request,
    wishes: ExecuteWishes,
) -> Result<i32, Violation> {
    let ExecuteWishes { measure, deadline, loop_timeout } = wishes;
    let never = OptionalTimeoutDuration::None;
    let request = words(request)?;
    let answer =
        model.v1_3()?.execute_fenced(&request, &[], measure, deadline, loop_timeout, never);
    let (status, fence, callback) =
        answer.map_err(|error| Violation(format!("executeFenced: {error}")))?;
    if !is_one_of(status, NONE) {
        return Ok(status);
    }
    if let [fd] = fence.fds() {
        let fd = fd.try_clone().map_err(|error| Violation(format!("the fence: {error}")))?;
        SyncFence::from_fd(fd)?.wait(TIMEOUT)?;
    }
    let callback = callback.ok_or_else(|| Violation("FENCE-4: there is no callback".into()))?;
    let info = callback.get_execution_info();
    info.map(|(status, _, _)| status)
        .map_err(|error| Violation(format!("getExecutionInfo: {error}")))
}
