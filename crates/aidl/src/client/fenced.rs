//! What becomes of fenced executions.

use super::link::Link;
use crate::convert::{duplicate, timing_from_wire};
use crate::interface::nn;
use crate::status::RemoteFailure;
use nn::FencedExecutionResult::FencedExecutionResult;
use nn::IFencedExecutionCallback::IFencedExecutionCallback;
use nn::Timing::Timing as WireTiming;
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::{Error, ErrorStatus, FencedExecution, Result, SyncFence, Timing};
use rsbinder::Strong;
use std::fmt;
use std::sync::Arc;

/// A fenced execution that a service has launched.
pub(super) fn launched(
    link: &Arc<Link>,
    method: &'static str,
    result: FencedExecutionResult,
) -> Result<FencedExecution> {
    let callback = result.callback;
    let callback = callback.ok_or_else(|| RemoteFailure::misbehaved(method, "no callback"))?;
    let sync_fence = result.syncFence.as_ref().map(|fence| {
        // A descriptor that is no fence is the service's fault, not an argument's.
        SyncFence::from_fd(duplicate(fence)?).map_err(Error::failure)
    });
    let info = Info { link: Arc::clone(link), callback };
    Ok(FencedExecution { sync_fence: sync_fence.transpose()?, info: Box::new(info) })
}

struct Info {
    link: Arc<Link>,
    callback: Strong<dyn IFencedExecutionCallback>,
}

impl FencedExecutionInfo for Info {
    fn get(&self) -> Result<(Timing, Timing)> {
        let method = "getExecutionInfo";
        let (mut launched, mut fenced) = (WireTiming::default(), WireTiming::default());
        let ask = || self.callback.getExecutionInfo(&mut launched, &mut fenced);
        let code = self.link.call(method, ask)?.get();
        match ErrorStatus::from_code(code).map_err(Error::failure)? {
            ErrorStatus::None => Ok((timing(&launched)?, timing(&fenced)?)),
            status => {
                let reason = "the callback gives no reason".to_owned();
                Err(Error::new(status, RemoteFailure::Answered { method, reason }))
            }
        }
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Info").finish_non_exhaustive()
    }
}

/// Times; none if the device's exceeds the driver's (contract: TIME-2).
pub(super) fn timing(timing: &WireTiming) -> Result<Timing> {
    let timing = timing_from_wire(timing).map_err(Error::failure)?;
    Ok(match (timing.time_on_device, timing.time_in_driver) {
        (Some(device), Some(driver)) if device > driver => Timing::NONE,
        _ => timing,
    })
}
