//! Executions behind fences.

use super::answer::{ask, expect_none};
use crate::convert::{ConversionError, Convert};
use crate::handle::Handle;
use crate::misbehaviour::Misbehaviour;
use crate::v1_2;
use crate::v1_3::IFencedExecutionCallback;
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::{SyncFence, Timing};
use std::fmt;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Handles of fences, with descriptors of their own.
pub(super) fn handles(fences: &[SyncFence]) -> nnhal_hal::Result<Vec<Handle>> {
    fences
        .iter()
        .map(|fence| {
            let fd = fence.as_fd().try_clone_to_owned();
            Ok(Handle::of_fd(fd.map_err(|error| ConversionError::duplicate(&error))?))
        })
        .collect()
}

/// The fence that a driver answered with; `None` for null (contract: FENCE-4).
pub(super) fn fence_of(
    method: &'static str,
    handle: &Handle,
) -> nnhal_hal::Result<Option<SyncFence>> {
    if handle.is_null() {
        return Ok(None);
    }
    let [fd] = handle.fds() else {
        let descriptors = handle.fds().len();
        return Err(Misbehaviour::Fence { method, descriptors }.into());
    };
    let fd = fd.try_clone().map_err(|error| ConversionError::duplicate(&error))?;
    // A descriptor that is no fence is the driver's fault, not an argument's.
    Ok(Some(SyncFence::from_fd(fd).map_err(nnhal_hal::Error::failure)?))
}

/// What becomes of a fenced execution.
pub(super) struct Info(pub(super) Arc<dyn IFencedExecutionCallback>);

impl FencedExecutionInfo for Info {
    fn get(&self) -> nnhal_hal::Result<(Timing, Timing)> {
        let method = "getExecutionInfo";
        let (status, launched, fenced) = ask(method, || self.0.get_execution_info())?;
        expect_none(method, status)?;
        Ok((timing(launched)?, timing(fenced)?))
    }
}

impl fmt::Debug for Info {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Info").finish_non_exhaustive()
    }
}

/// Times; none if the device's exceeds the driver's (contract: TIME-2).
pub(super) fn timing(timing: v1_2::Timing) -> nnhal_hal::Result<Timing> {
    let both = timing.time_on_device != u64::MAX && timing.time_in_driver != u64::MAX;
    if both && timing.time_on_device > timing.time_in_driver {
        tracing::debug!(?timing, "the driver's times contradict each other");
        return Ok(Timing::NONE);
    }
    Ok(timing.to_canonical()?)
}
