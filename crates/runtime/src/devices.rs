//! [`Devices`]: the devices that an embedder offers to models.

use crate::background::{Background, LIMITS, background};
use crate::error::{Error, Result};
use crate::extension::Extensions;
use nnhal_hal::background::Limits;
use nnhal_hal::{CacheFilesNeeded, Capabilities, DeviceStatus, DeviceType, Extension, HalVersion};
use std::fmt;
use std::sync::Arc;

/// The newest feature level of the Neural Networks API that the runtime offers, as
/// `ANeuralNetworks_getRuntimeFeatureLevel` says it: level 8, which is level 7 with attributes of
/// extensions.
pub const RUNTIME_FEATURE_LEVEL: i64 = 1_000_008;

/// The feature level that stands for a version of the interface.
pub const fn feature_level(version: HalVersion) -> i64 {
    match version {
        HalVersion::V1_0 => 27,
        HalVersion::V1_1 => 28,
        HalVersion::V1_2 => 29,
        HalVersion::V1_3 => 30,
        HalVersion::FeatureLevel6 => 1_000_006,
        HalVersion::FeatureLevel7 => 1_000_007,
    }
}

/// The devices that models may run on. Clones are the same list.
///
/// The last one is the fallback: where another device fails, and the client has not chosen its
/// devices itself, work goes there. It should be able to do every operation of the interface.
#[derive(Clone)]
pub struct Devices(Arc<Inner>);

struct Inner {
    devices: Vec<Device>,
    extensions: Extensions,
    background: Background,
}

/// A device of the list. Clones are the same device.
#[derive(Clone)]
pub struct Device(Arc<Known>);

/// A device with what it says of itself, asked once.
struct Known {
    device: Arc<dyn nnhal_hal::Device>,
    index: usize,
    version_string: String,
    capabilities: Capabilities,
    extensions: Vec<Extension>,
}

impl Devices {
    /// A list of devices. Each is asked what it can do; the last one is the fallback.
    ///
    /// Of each priority, 64 asynchronous executions go on at once, and 100,000 may wait.
    pub fn new(devices: impl IntoIterator<Item = Arc<dyn nnhal_hal::Device>>) -> Self {
        Self::with_limits(devices, LIMITS)
    }

    /// The same with other limits of asynchronous executions, for each priority. Those that a device
    /// itself runs, behind dependencies, are within the device's limits instead.
    pub fn with_limits(
        devices: impl IntoIterator<Item = Arc<dyn nnhal_hal::Device>>,
        limits: Limits,
    ) -> Self {
        let devices: Vec<_> = devices.into_iter().collect();
        let extensions = Extensions::of(&devices);
        let known = |(index, device): (usize, Arc<dyn nnhal_hal::Device>)| {
            Device(Arc::new(Known {
                index,
                version_string: device.version_string(),
                capabilities: device.capabilities(),
                extensions: device.supported_extensions(),
                device,
            }))
        };
        let devices = devices.into_iter().enumerate().map(known).collect();
        let background = background(limits);
        Self(Arc::new(Inner { devices, extensions, background }))
    }

    /// The devices, in the order that they were given in.
    pub fn list(&self) -> &[Device] {
        &self.0.devices
    }

    /// The device with this name.
    pub fn named(&self, name: &str) -> Option<&Device> {
        self.list().iter().find(|device| device.name() == name)
    }

    /// The device that takes over where others fail: the last one.
    pub fn fallback(&self) -> Option<&Device> {
        self.list().last()
    }

    /// The number that stands for an operand type of an extension, the same for all models over
    /// these devices.
    ///
    /// # Errors
    /// `BAD_DATA` when too many extensions are in use.
    pub fn extension_operand_type(&self, extension: &str, number: u16) -> Result<i32> {
        self.0.extensions.code(extension, number)
    }

    /// The number that stands for an operation of an extension.
    ///
    /// # Errors
    /// As [`Devices::extension_operand_type`].
    pub fn extension_operation_type(&self, extension: &str, number: u16) -> Result<i32> {
        self.0.extensions.code(extension, number)
    }

    /// Where asynchronous executions run.
    pub(crate) fn background(&self) -> &Background {
        &self.0.background
    }

    pub(crate) fn extensions(&self) -> &Extensions {
        &self.0.extensions
    }

    /// Whether both are clones of one list.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether the device is of this list.
    pub(crate) fn includes(&self, device: &Device) -> bool {
        self.list().get(device.0.index).is_some_and(|known| known.is_same(device))
    }
}

impl Device {
    /// The name.
    pub fn name(&self) -> &str {
        self.0.device.name()
    }

    /// Names this build of its driver.
    pub fn version_string(&self) -> &str {
        &self.0.version_string
    }

    /// The kind of processor.
    pub fn device_type(&self) -> DeviceType {
        self.0.device.device_type()
    }

    /// The newest interface that it offers.
    pub fn version(&self) -> HalVersion {
        self.0.device.version()
    }

    /// The feature level of its interface, or that of the runtime if that is lower.
    pub fn feature_level(&self) -> i64 {
        feature_level(self.version()).min(RUNTIME_FEATURE_LEVEL)
    }

    /// Position in the list.
    pub fn index(&self) -> usize {
        self.0.index
    }

    /// How fast and how frugal it is.
    pub fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    /// The extensions that it offers.
    pub fn extensions(&self) -> &[Extension] {
        &self.0.extensions
    }

    /// Whether it offers an extension.
    pub fn supports_extension(&self, name: &str) -> bool {
        self.extensions().iter().any(|extension| extension.name == name)
    }

    /// How many files it wants for a cached compilation.
    pub fn cache_files_needed(&self) -> CacheFilesNeeded {
        self.0.device.cache_files_needed()
    }

    /// Waits until the device can be used. Devices of this process always can, unless they say that
    /// they are offline.
    ///
    /// # Errors
    /// `UNAVAILABLE_DEVICE`; `DEAD_OBJECT` if its process has ended.
    pub fn wait(&self) -> Result<()> {
        match self.0.device.status() {
            DeviceStatus::Offline => {
                self.0.device.expect_reachable()?;
                let reason = format!("{} is offline", self.name());
                Err(Error::new(crate::ResultCode::UnavailableDevice, reason))
            }
            _ => Ok(()),
        }
    }

    /// The device itself.
    pub fn hal(&self) -> &Arc<dyn nnhal_hal::Device> {
        &self.0.device
    }

    /// Whether both are the same device of one list.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Device({})", self.name())
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Devices").field(&self.0.devices).finish()
    }
}
