//! Executions behind fences.

use super::timing::consistent;
use super::{Origin, guarded, version_methods};
use crate::convert::{duplicate, timing_to_wire};
use crate::interface::nn;
use nn::ErrorStatus::ErrorStatus as WireStatus;
use nn::IFencedExecutionCallback::IFencedExecutionCallback;
use nn::Timing::Timing as WireTiming;
use nnhal_hal::client::Held;
use nnhal_hal::device::FencedExecutionInfo;
use nnhal_hal::fence::FenceState;
use nnhal_hal::{Error, ErrorStatus, SyncFence, Timing};
use rsbinder::{BinderResult, Interface, ParcelFileDescriptor};
use std::sync::Arc;

/// The fences to wait for, with descriptors of their own (contract: FENCE-3, FENCE-5).
pub(super) fn fences(descriptors: &[ParcelFileDescriptor]) -> nnhal_hal::Result<Vec<SyncFence>> {
    let descriptors = descriptors.iter().enumerate();
    descriptors
        .map(|(index, descriptor)| {
            let fence = SyncFence::from_fd(duplicate(descriptor)?)?;
            match fence.state()? {
                FenceState::Failed => {
                    Err(Error::invalid(format!("fence {index} has failed already")))
                }
                FenceState::Signalled | FenceState::Unsignalled => Ok(fence),
            }
        })
        .collect()
}

/// What becomes of a fenced execution.
pub(super) struct Info {
    pub(super) info: Box<dyn FencedExecutionInfo>,
    pub(super) origin: Arc<Origin>,
    /// Counts it for as long as the client has it.
    pub(super) _held: Held,
}

impl Interface for Info {}

#[allow(non_snake_case)] // The methods' names are the files'.
impl IFencedExecutionCallback for Info {
    version_methods!(origin);

    fn getExecutionInfo(
        &self,
        launched: &mut WireTiming,
        fenced: &mut WireTiming,
    ) -> BinderResult<WireStatus> {
        let (status, both) = match guarded(|| self.info.get()) {
            Ok(both) => (ErrorStatus::None, both),
            Err(error) => {
                tracing::debug!(%error, "a fenced execution has failed");
                // Statuses that it may not say (contract: FENCE-11).
                let status = match error.status() {
                    ErrorStatus::InvalidArgument | ErrorStatus::OutputInsufficientSize => {
                        ErrorStatus::GeneralFailure
                    }
                    status => status,
                };
                (status, (Timing::NONE, Timing::NONE))
            }
        };
        *launched = timing_to_wire(consistent(both.0));
        *fenced = timing_to_wire(consistent(both.1));
        Ok(WireStatus(status.code()))
    }
}
