//! [`RemoteError`]

/// Why a device of another process cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// A name that is of no kind.
    #[error("{found:?} is no device of another process; expected one of {}", crate::forms())]
    Form {
        /// The name.
        found: String,
    },
    /// Devices of this kind cannot be listed.
    #[error("there is no list of devices of the kind {scheme}:, each has to be named")]
    NoList {
        /// The kind.
        scheme: &'static str,
    },
    /// The device cannot be reached, or does not say of itself what it must.
    #[error("{name}: {source}")]
    Device {
        /// The name that was opened.
        name: String,
        /// Why.
        source: nnhal_hal::Error,
    },
}
