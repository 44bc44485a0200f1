//! [`Owner`]: whose a prepared model or buffer is.

use nnhal_hal::Client;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many devices there have been.
static DEVICES: AtomicU64 = AtomicU64::new(1);

/// A device, as one client sees it (`IDevice`). What one of them handed out is nothing to another
/// (contract: SEC-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The device's number, which is never used again.
    device: u64,
    /// The client's.
    client: u64,
}

impl Owner {
    /// A number for a device.
    pub(crate) fn number_device() -> u64 {
        DEVICES.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn new(device: u64, client: &Client) -> Self {
        Self { device, client: client.id() }
    }

    /// No one's device, for interfaces without one.
    pub(crate) fn none() -> Self {
        Self::new(0, &Client::in_process())
    }
}
