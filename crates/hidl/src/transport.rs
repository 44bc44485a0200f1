//! [`Return`]: what every call of an interface returns.

/// The results of a call, or that it did not get through. Within one process every call gets
/// through; a transport's may not.
pub type Return<T> = Result<T, TransportError>;

/// Why a call did not get through to the other side, or its answer back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The other side is gone (contract: IPC-5).
    #[error("the other side of the interface is gone")]
    DeadObject,
    /// The call could not be sent, or the answer not be read.
    #[error("the call did not get through: {0}")]
    Failed(String),
}

impl From<TransportError> for nnhal_hal::Error {
    /// `DEVICE_UNAVAILABLE` if the other side is gone, else `GENERAL_FAILURE`; the reason tells.
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::DeadObject => Self::gone(error),
            TransportError::Failed(_) => Self::failure(error),
        }
    }
}
