//! Executions behind fences.

use super::guarded;
use super::outcome::consistent;
use super::status::{Answer, NONE};
use crate::convert::ConversionError;
use crate::handle::Handle;
use crate::transport::Return;
use crate::v1_2::Timing;
use crate::v1_3::IFencedExecutionCallback;
use nnhal_hal::client::Held;
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::fence::FenceState;
use nnhal_hal::{Error, SyncFence};
use std::os::fd::AsFd;

/// What is wrong with an entry of `waitFor`.
#[derive(Debug, thiserror::Error)]
enum FenceError {
    #[error("fence {0} is null")]
    Null(usize),
    #[error("fence {index} holds {found} descriptors, expected 1")]
    Descriptors { index: usize, found: usize },
    #[error("fence {0} has failed already")]
    Failed(usize),
}

/// The fences to wait for, with descriptors of their own (contract: FENCE-3, FENCE-5).
pub(super) fn fences(handles: &[Handle]) -> nnhal_hal::Result<Vec<SyncFence>> {
    let handles = handles.iter().enumerate();
    handles
        .map(|(index, handle)| {
            let fd = match handle.fds() {
                _ if handle.is_null() => return Err(Error::invalid(FenceError::Null(index))),
                [fd] => fd,
                fds => {
                    let found = fds.len();
                    return Err(Error::invalid(FenceError::Descriptors { index, found }));
                }
            };
            let fd = fd.try_clone().map_err(|error| ConversionError::duplicate(&error))?;
            let fence = SyncFence::from_fd(fd)?;
            match fence.state()? {
                FenceState::Failed => Err(Error::invalid(FenceError::Failed(index))),
                FenceState::Signalled | FenceState::Unsignalled => Ok(fence),
            }
        })
        .collect()
}

/// The handle of a fence; null if there is none (contract: FENCE-4).
pub(super) fn handle_of(fence: Option<&SyncFence>) -> nnhal_hal::Result<Handle> {
    let Some(fence) = fence else { return Ok(Handle::NULL) };
    let fd = fence.as_fd().try_clone_to_owned();
    Ok(Handle::of_fd(fd.map_err(|error| ConversionError::duplicate(&error))?))
}

/// What becomes of a fenced execution.
pub(super) struct Info {
    pub(super) info: Box<dyn FencedExecutionInfo>,
    /// Counts it for as long as the client has it.
    pub(super) _held: Held,
}

impl IFencedExecutionCallback for Info {
    fn get_execution_info(&self) -> Return<(i32, Timing, Timing)> {
        Ok(match guarded(|| self.info.get()) {
            Ok((launched, fenced)) => (NONE, consistent(launched), consistent(fenced)),
            Err(error) => (Answer::FencedInfo.refuse(&error), Timing::NONE, Timing::NONE),
        })
    }
}
