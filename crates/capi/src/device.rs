//! Devices.

use crate::border::export;
use crate::devices::{Offered, REFERENCE_NAME, Reference, offered};
use crate::handle;
use crate::model::{ANeuralNetworksModel, finished};
use crate::outcome::{Outcome, bad_data, null};
use crate::pointer::{In, Out};
use nnhal_runtime::{Device, RUNTIME_FEATURE_LEVEL};
use std::ffi::{CString, c_char};
use std::sync::{Arc, OnceLock};

nnhal_c_boundary::opaque! {
    /// A device; never freed.
    ANeuralNetworksDevice: ListedDevice, 1;
}

/// A device as C sees it: with strings that end in a zero and live as long as the library.
#[derive(Debug)]
pub struct ListedDevice {
    pub(crate) device: Device,
    feature_level: i64,
    name: CString,
    version: CString,
    pub(crate) extensions: Vec<CString>,
}

impl ListedDevice {
    fn new(device: &Device, name: &str, is_own: bool) -> Self {
        // Programs take it for granted that Android's CPU device has the level of the runtime.
        let feature_level = if is_own || name == REFERENCE_NAME {
            RUNTIME_FEATURE_LEVEL
        } else {
            device.feature_level()
        };
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        Self {
            name: text(name),
            version: text(device.version_string()),
            extensions: device.extensions().iter().map(|extension| text(&extension.name)).collect(),
            feature_level,
            device: device.clone(),
        }
    }
}

/// Handles of all devices, the same each time that they are asked for, as addresses.
fn handles() -> Outcome<&'static [usize]> {
    static HANDLES: OnceLock<Vec<usize>> = OnceLock::new();
    let Offered { devices, is_own, reference } = offered()?;
    let mut entries: Vec<_> = devices.list().iter().map(|it| (it, it.name())).collect();
    if let Some(Reference { device, is_renamed }) = *reference {
        if is_renamed {
            entries[device].1 = REFERENCE_NAME;
        } else {
            entries.push((&devices.list()[device], REFERENCE_NAME));
        }
    }
    let handle = |(device, name): (&Device, &str)| {
        let listed = ListedDevice::new(device, name, is_own[device.index()]);
        handle::give::<ANeuralNetworksDevice>(Arc::new(listed))
    };
    Ok(HANDLES.get_or_init(|| {
        entries.into_iter().filter_map(|it| handle(it).ok().map(<*mut _>::addr)).collect()
    }))
}

/// The devices of a list that C passes: at least one, none twice. One that is there under both of
/// its names is there once.
pub(crate) fn list(devices: In<*const ANeuralNetworksDevice>, count: u32) -> Outcome<Vec<Device>> {
    listed(&entries(devices, count)?)
}

/// What is in such a list, not looked at.
fn entries(
    handles: In<*const ANeuralNetworksDevice>,
    count: u32,
) -> Outcome<Vec<*const ANeuralNetworksDevice>> {
    if handles.is_null() {
        return Err(null("devices"));
    }
    if count == 0 {
        return Err(bad_data("the list of devices is empty"));
    }
    handles.copy(count as usize, "devices")
}

fn listed(handles: &[*const ANeuralNetworksDevice]) -> Outcome<Vec<Device>> {
    let mut found: Vec<Device> = Vec::with_capacity(handles.len());
    for (index, device) in handles.iter().enumerate() {
        let listed = handle::get(*device, &format!("devices[{index}]"))?;
        if let Some(distance) = handles[index + 1..].iter().position(|other| other == device) {
            let second = index + 1 + distance;
            return Err(bad_data(format!("devices {index} and {second} are the same")));
        }
        if !found.iter().any(|it| it.is_same(&listed.device)) {
            found.push(listed.device.clone());
        }
    }
    Ok(found)
}

export! {
    /// Feature level of the library.
    fn ANeuralNetworks_getRuntimeFeatureLevel() -> i64, RUNTIME_FEATURE_LEVEL; {
        RUNTIME_FEATURE_LEVEL
    }

    /// Number of devices.
    fn ANeuralNetworks_getDeviceCount(count: Out<u32>) {
        count.check("numDevices")?;
        count.write(u32::try_from(handles()?.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// The device at an index.
    fn ANeuralNetworks_getDevice(index: u32, device: Out<*mut ANeuralNetworksDevice>) {
        device.check("device")?;
        let handles = handles()?;
        let found = handles.get(index as usize).ok_or_else(|| {
            bad_data(format!("there is no device {index}, only {}", handles.len()))
        })?;
        device.write(std::ptr::without_provenance_mut(*found));
        Ok(())
    }

    /// Its name.
    fn ANeuralNetworksDevice_getName(
        device: *const ANeuralNetworksDevice,
        name: Out<*const c_char>,
    ) {
        let device = handle::get(device, "device")?;
        name.check("name")?;
        name.write(device.name.as_ptr());
        Ok(())
    }

    /// The kind of processor.
    fn ANeuralNetworksDevice_getType(device: *const ANeuralNetworksDevice, kind: Out<i32>) {
        let device = handle::get(device, "device")?;
        kind.check("type")?;
        kind.write(device.device.device_type().code());
        Ok(())
    }

    /// Names the build of its driver.
    fn ANeuralNetworksDevice_getVersion(
        device: *const ANeuralNetworksDevice,
        version: Out<*const c_char>,
    ) {
        let device = handle::get(device, "device")?;
        version.check("version")?;
        version.write(device.version.as_ptr());
        Ok(())
    }

    /// Its feature level, or that of the library if that is lower or the device is the library's own.
    fn ANeuralNetworksDevice_getFeatureLevel(
        device: *const ANeuralNetworksDevice,
        level: Out<i64>,
    ) {
        let device = handle::get(device, "device")?;
        level.check("featureLevel")?;
        level.write(device.feature_level);
        Ok(())
    }

    /// Waits until it can be used.
    fn ANeuralNetworksDevice_wait(device: *const ANeuralNetworksDevice) {
        handle::get(device, "device")?.device.wait()
    }

    /// For each operation of a model, as they were added, whether one of the devices can run it.
    fn ANeuralNetworksModel_getSupportedOperationsForDevices(
        model: *const ANeuralNetworksModel,
        devices: In<*const ANeuralNetworksDevice>,
        count: u32,
        supported: Out<u8>,
    ) {
        let model = handle::get(model, "model")?;
        supported.check("supportedOps")?;
        let handles = entries(devices, count)?;
        let model = finished(&model)?;
        let answer = model.supported_operations(&listed(&handles)?)?;
        supported.write_all(&answer.into_iter().map(u8::from).collect::<Vec<_>>());
        Ok(())
    }
}
