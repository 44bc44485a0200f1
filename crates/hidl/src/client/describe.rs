//! [`Description`]: what a driver says of itself, asked once and checked.

use super::answer::{ask, expect_none};
use super::interface::{At, Interface};
use crate::checks;
use crate::convert::Convert;
use crate::v1_2;
use nnhal_hal::{CacheFilesNeeded, Capabilities, DeviceType, Error, Extension, HalVersion};

/// What drivers older than 1.2 say of their build: nothing.
const NO_VERSION_STRING: &str = "UNKNOWN";

/// What a driver says of itself.
#[derive(Debug, Clone)]
pub(super) struct Description {
    pub(super) version_string: String,
    pub(super) device_type: DeviceType,
    pub(super) capabilities: Capabilities,
    pub(super) extensions: Vec<Extension>,
    pub(super) cache_files_needed: CacheFilesNeeded,
}

impl Description {
    pub(super) fn ask(interface: &Interface) -> nnhal_hal::Result<Self> {
        let capabilities = checks::capabilities(capabilities(interface)?, interface.version())?;
        let device: &dyn v1_2::IDevice = match interface {
            Interface::V1_0(_) | Interface::V1_1(_) => {
                return Ok(Self {
                    version_string: NO_VERSION_STRING.to_owned(),
                    device_type: DeviceType::Other,
                    capabilities,
                    extensions: Vec::new(),
                    cache_files_needed: CacheFilesNeeded::default(),
                });
            }
            Interface::V1_2(device) => &**device,
            Interface::V1_3(device) => &**device,
        };
        let version_string = say("getVersionString", || device.get_version_string())?;
        let version_string = checks::version_string(version_string)?;
        let code = say("getType", || device.get_type())?;
        let device_type = DeviceType::from_code(code).map_err(Error::failure)?;
        let extensions = say("getSupportedExtensions", || device.get_supported_extensions())?;
        let extensions: Vec<Extension> =
            extensions.iter().map(Convert::to_canonical).collect::<Result<_, _>>()?;
        let extensions = checks::extensions(extensions)?;
        let method = "getNumberOfCacheFilesNeeded";
        let (status, model, data) = ask(method, || device.get_number_of_cache_files_needed())?;
        expect_none(method, status)?;
        let cache_files_needed = checks::cache_files_needed(CacheFilesNeeded { model, data })?;
        Ok(Self { version_string, device_type, capabilities, extensions, cache_files_needed })
    }
}

/// The answer to a question without arguments.
fn say<T>(
    method: &'static str,
    call: impl FnOnce() -> crate::transport::Return<(i32, T)>,
) -> nnhal_hal::Result<T> {
    let (status, answer) = ask(method, call)?;
    expect_none(method, status)?;
    Ok(answer)
}

fn capabilities(interface: &Interface) -> nnhal_hal::Result<Capabilities> {
    let stated = match interface.at_most(HalVersion::LATEST) {
        At::V1_0(device) => say("getCapabilities", || device.get_capabilities())?.to_canonical(),
        At::V1_1(device) => {
            say("getCapabilities_1_1", || device.get_capabilities_1_1())?.to_canonical()
        }
        At::V1_2(device) => {
            say("getCapabilities_1_2", || device.get_capabilities_1_2())?.to_canonical()
        }
        At::V1_3(device) => {
            say("getCapabilities_1_3", || device.get_capabilities_1_3())?.to_canonical()
        }
    };
    // A number that is no type is the driver's fault, not an argument's.
    stated.map_err(Error::failure)
}

/// For each operation of a model whether the driver supports it.
pub(super) fn supported(
    method: &'static str,
    operations: usize,
    answer: (i32, Vec<bool>),
) -> nnhal_hal::Result<Vec<nnhal_hal::Support>> {
    let (status, supported) = answer;
    expect_none(method, status)?;
    let supported = checks::supported(method, operations, supported)?;
    let support = |yes| match yes {
        true => nnhal_hal::Support::Yes,
        false => nnhal_hal::Support::No("the driver does not support it".to_owned()),
    };
    Ok(supported.into_iter().map(support).collect())
}
