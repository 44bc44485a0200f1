//! The devices that the library offers: the one place where they are listed.

use crate::outcome::{Outcome, bad_data};
use nnhal_hal::Device;
use nnhal_runtime::Devices;
use nnhal_settings::{DEVICES, SettingError};
use std::sync::{Arc, LazyLock};

/// Every device there is, the fast one first. The last one can do everything: it takes over where
/// another one fails.
fn all() -> Result<Vec<Arc<dyn Device>>, SettingError> {
    Ok(vec![nnhal_cpu::device(nnhal_cpu::Settings::from_environment()?), nnhal_reference::device()])
}

/// The devices of this process, made when they are first asked for.
///
/// # Errors
/// An environment variable makes no sense; it is also said on standard error, once, since many
/// programs do not look at what the library's functions return.
pub(crate) fn devices() -> Outcome<&'static Devices> {
    static ALL: LazyLock<Result<Devices, String>> = LazyLock::new(|| {
        let offered = crate::log::begin()
            .and_then(|()| nnhal_settings::ABORT_ON_MISUSE.is_on())
            .and_then(|_| all())
            .and_then(offered);
        offered.map(Devices::new).map_err(|error| {
            crate::log::say(&error.to_string());
            error.to_string()
        })
    });
    ALL.as_ref().map_err(bad_data)
}

/// Those that the environment names, in its order; all where it names none.
fn offered(all: Vec<Arc<dyn Device>>) -> Result<Vec<Arc<dyn Device>>, SettingError> {
    let named = DEVICES.parse(|names| chosen(&all, names))?;
    Ok(named.unwrap_or(all))
}

fn chosen(all: &[Arc<dyn Device>], names: &str) -> Result<Vec<Arc<dyn Device>>, Option<String>> {
    let named = |name: &str| {
        let found = all.iter().find(|device| device.name() == name.trim()).cloned();
        found.ok_or_else(|| Some(format!("there is no device {:?}", name.trim())))
    };
    names.split(',').map(named).collect()
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
}
