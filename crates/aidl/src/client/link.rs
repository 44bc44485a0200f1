//! [`Link`]: a connection to a service, for as long as the service exists.

use super::buffers::Buffers;
use super::descriptors::{self, MOST_OVER_SOCKET};
use crate::interface::nn::IDevice::IDevice;
use crate::lines::Lines;
use crate::status::{error_of, gone, is_gone};
use crate::version::Version;
use nnhal_hal::{Error, Result};
use rsbinder::{BinderResult, Strong};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes connections to a service.
pub trait Connect: Send + Sync {
    /// A connection to the service as it is now.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where it cannot be reached.
    fn connect(&self) -> Result<Link>;
}

impl<F: Fn() -> Result<Link> + Send + Sync> Connect for F {
    fn connect(&self) -> Result<Link> {
        self()
    }
}

/// Always the same `IDevice`, of this process or of one that is not looked for again.
pub fn fixed(device: Strong<dyn IDevice>) -> impl Connect {
    move || Link::new(device.clone(), None)
}

/// A connection to a service.
pub struct Link {
    device: Strong<dyn IDevice>,
    version: Version,
    /// Where calls go over sockets.
    lines: Option<Arc<Lines>>,
    buffers: Buffers,
    gone: AtomicBool,
}

impl Link {
    /// A connection to this `IDevice`, whose version is asked for.
    ///
    /// # Errors
    /// `DEVICE_UNAVAILABLE` where it does not answer; `GENERAL_FAILURE` where it is of no version.
    pub fn new(device: Strong<dyn IDevice>, lines: Option<Arc<Lines>>) -> Result<Self> {
        let method = "getInterfaceVersion";
        let number = device.getInterfaceVersion().map_err(|status| error_of(method, &status))?;
        let version = Version::from_number(number)
            .ok_or_else(|| Error::failure(format!("{number} is no version of the interface")))?;
        Ok(Self {
            device,
            version,
            lines,
            buffers: Buffers::default(),
            gone: AtomicBool::new(false),
        })
    }

    pub(super) fn device(&self) -> &Strong<dyn IDevice> {
        &self.device
    }

    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Refuses a call with more descriptors than the transport passes.
    pub(super) fn expect_descriptors(&self, found: usize) -> Result<()> {
        let most = if self.lines.is_some() { MOST_OVER_SOCKET } else { usize::MAX };
        descriptors::expect(found, most)
    }

    pub(super) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Whether the service was found to be gone.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire) || self.lines.as_ref().is_some_and(|it| it.is_ended())
    }

    /// Calls the service.
    pub(super) fn call<T>(
        &self,
        method: &'static str,
        call: impl FnOnce() -> BinderResult<T>,
    ) -> Result<T> {
        if self.is_gone() {
            return Err(gone(method, rsbinder::StatusCode::DeadObject));
        }
        let _line = self.lines.as_ref().map(|lines| lines.enter());
        call().map_err(|status| {
            let error = error_of(method, &status);
            if is_gone(&error) {
                self.gone.store(true, Ordering::Release);
            }
            error
        })
    }
}
