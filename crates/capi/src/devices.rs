//! The devices that the library offers: the one place where they are listed.

use crate::outcome::{Outcome, bad_data};
use nnhal_hal::Device;
use nnhal_runtime::Devices;
use nnhal_settings::{DEVICES, NNAPI_REFERENCE, SUPPORT_LIBRARY_LEVEL, SettingError};
use std::sync::{Arc, LazyLock};

/// What is offered.
pub(crate) struct Offered {
    pub(crate) devices: Devices,
    /// By position among the devices, whether it is of this library and does all that the runtime offers.
    /// Others do what their interface has.
    pub(crate) is_own: Vec<bool>,
    pub(crate) reference: Option<Reference>,
}

/// The device that answers to the name of Android's CPU device, [`REFERENCE_NAME`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Its place among the devices.
    pub(crate) device: usize,
    /// Whether it has no other name. Otherwise it is listed once more.
    pub(crate) is_renamed: bool,
}

/// The name by which programs choose Android's CPU device, or leave it out.
pub(crate) const REFERENCE_NAME: &str = "nnapi-reference";

/// Every device there is, the fast one first. The last one can do everything: it takes over where
/// another one fails.
fn all() -> Result<Vec<Arc<dyn Device>>, SettingError> {
    Ok(vec![nnhal_cpu::device(nnhal_cpu::Settings::from_environment()?), nnhal_reference::device()])
}

/// What this process is offered, made when it is first asked for.
///
/// # Errors
/// An environment variable makes no sense; it is also said on standard error, once, since many
/// programs do not look at what the library's functions return.
pub(crate) fn offered() -> Outcome<&'static Offered> {
    static OFFERED: LazyLock<Result<Offered, String>> = LazyLock::new(|| {
        let offered = nnhal_c_boundary::log::begin()
            .and_then(|()| nnhal_settings::ABORT_ON_MISUSE.is_on())
            .and_then(|_| support_library_level())
            .and_then(|_| all())
            .and_then(|own| Ok((named(&own)?, own)))
            .and_then(|(devices, own)| {
                let is_own =
                    |device: &Arc<dyn Device>| own.iter().any(|it| Arc::ptr_eq(it, device));
                let is_own = devices.iter().map(is_own).collect();
                let reference = reference(&devices)?;
                Ok(Offered { devices: Devices::new(devices), is_own, reference })
            });
        offered.map_err(|error| {
            nnhal_c_boundary::log::say(&error.to_string());
            error.to_string()
        })
    });
    OFFERED.as_ref().map_err(bad_data)
}

/// The feature level that the library has as a support library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum SupportLibraryLevel {
    Seven = 1_000_007,
    Eight = 1_000_008,
}

/// Seven, unless the environment says 8. LiteRT's loader of support libraries takes those of levels 5 to 7, and Android's any from
/// 5 on; what level 8 adds are two functions, the last ones of the structure.
///
/// # Errors
/// The environment says something else.
pub(crate) fn support_library_level() -> Result<SupportLibraryLevel, SettingError> {
    let level = SUPPORT_LIBRARY_LEVEL.parse(|text| match text {
        "7" => Ok(SupportLibraryLevel::Seven),
        "8" => Ok(SupportLibraryLevel::Eight),
        _ => Err(None),
    })?;
    Ok(level.unwrap_or(SupportLibraryLevel::Seven))
}

/// The devices of this process.
///
/// # Errors
/// As [`offered`].
pub(crate) fn devices() -> Outcome<&'static Devices> {
    Ok(&offered()?.devices)
}

/// Those that the environment names, in its order; all where it names none.
fn named(all: &[Arc<dyn Device>]) -> Result<Vec<Arc<dyn Device>>, SettingError> {
    let named = DEVICES.parse(|names| chosen(all, names))?;
    Ok(named.unwrap_or_else(|| all.to_vec()))
}

fn chosen(all: &[Arc<dyn Device>], names: &str) -> Result<Vec<Arc<dyn Device>>, Option<String>> {
    let mut chosen = Vec::new();
    for name in names.split(',').map(str::trim) {
        #[cfg(feature = "remote")]
        if nnhal_remote::is_remote(name) {
            chosen.extend(remote(name).map_err(|why| Some(why.to_string()))?);
            continue;
        }
        chosen.push(Arc::clone(&all[place(all, name)?]));
    }
    match chosen.is_empty() {
        // A pattern need not stand for any device, but a list without one would have no fallback.
        true => Err(Some("no such device was found".to_owned())),
        false => Ok(chosen),
    }
}

/// The devices of other processes that a name or a pattern stands for.
#[cfg(feature = "remote")]
fn remote(pattern: &str) -> Result<Vec<Arc<dyn Device>>, nnhal_remote::RemoteError> {
    nnhal_remote::find(pattern)?.iter().map(|name| nnhal_remote::open(name)).collect()
}

/// Where a device is.
fn place(devices: &[Arc<dyn Device>], name: &str) -> Result<usize, Option<String>> {
    let found = devices.iter().position(|device| device.name() == name.trim());
    found.ok_or_else(|| Some(format!("there is no device {:?}", name.trim())))
}

/// Which device is called [`REFERENCE_NAME`]: the first, unless the environment says otherwise.
fn reference(devices: &[Arc<dyn Device>]) -> Result<Option<Reference>, SettingError> {
    let first = Some(Reference { device: 0, is_renamed: false });
    Ok(NNAPI_REFERENCE.parse(|text| chosen_reference(devices, text))?.unwrap_or(first))
}

fn chosen_reference(
    devices: &[Arc<dyn Device>],
    text: &str,
) -> Result<Option<Reference>, Option<String>> {
    let (name, is_renamed) = match text.split_once(',') {
        Some((name, word)) if word.trim() == "renamed" => (name, true),
        Some((_, word)) => return Err(Some(format!("{:?} is not `renamed`", word.trim()))),
        None => (text, false),
    };
    if name.trim() == "off" && !is_renamed {
        return Ok(None);
    }
    Ok(Some(Reference { device: place(devices, name)?, is_renamed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_chosen_by_name() {
        let all = all().unwrap();
        let names = |wanted: &str| -> Result<Vec<String>, Option<String>> {
            let chosen = chosen(&all, wanted)?;
            Ok(chosen.iter().map(|device| device.name().to_owned()).collect())
        };
        assert_eq!(names("nnhal-reference"), Ok(vec!["nnhal-reference".to_owned()]));
        let both = names("nnhal-reference, nnhal-cpu").unwrap();
        assert_eq!(both, ["nnhal-reference", "nnhal-cpu"]);
        let refused = names("no-such, nnhal-reference").unwrap_err();
        assert_eq!(refused.as_deref(), Some("there is no device \"no-such\""));
    }

    #[test]
    fn androids_name_is_given_to_one_device() {
        let all = all().unwrap();
        let chosen = |text| chosen_reference(&all, text);
        let listed = |device, is_renamed| Ok(Some(Reference { device, is_renamed }));
        assert_eq!(chosen("off"), Ok(None));
        assert_eq!(chosen("nnhal-cpu"), listed(0, false));
        assert_eq!(chosen(" nnhal-reference "), listed(1, false));
        assert_eq!(chosen("nnhal-reference, renamed"), listed(1, true));
        for (text, why) in [
            ("nope", "there is no device \"nope\""),
            ("nnhal-cpu,again", "\"again\" is not `renamed`"),
            ("off,renamed", "there is no device \"off\""),
        ] {
            assert_eq!(chosen(text).unwrap_err().as_deref(), Some(why));
        }
    }
}
