//! The devices that the library offers: the one place where they are listed.

use hal::Device;
use runtime::Devices;
use std::sync::{Arc, LazyLock};

/// Names, separated by commas, of the devices to offer, in this order; all of them where the
/// variable is not set or names none.
pub const VARIABLE: &str = "NNHAL_DEVICES";

/// Every device there is, the fast one first. The last one can do everything: it takes over where
/// another one fails.
fn all() -> Vec<Arc<dyn Device>> {
    vec![cpu::device(cpu::Settings::default()), reference::device()]
}

/// The devices of this process, made when they are first asked for.
pub(crate) fn devices() -> &'static Devices {
    static DEVICES: LazyLock<Devices> = LazyLock::new(|| {
        let wanted = std::env::var(VARIABLE).unwrap_or_default();
        Devices::new(chosen(all(), &wanted))
    });
    &DEVICES
}

fn chosen(all: Vec<Arc<dyn Device>>, wanted: &str) -> Vec<Arc<dyn Device>> {
    let named = |name: &str| all.iter().find(|device| device.name() == name.trim()).cloned();
    let chosen: Vec<_> = wanted.split(',').filter_map(named).collect();
    if chosen.is_empty() { all } else { chosen }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_chosen_by_name() {
        let names = |wanted: &str| -> Vec<String> {
            chosen(all(), wanted).iter().map(|device| device.name().to_owned()).collect()
        };
        let every = names("");
        assert_eq!(every, ["nnhal-cpu", "nnhal-reference"]);
        assert_eq!(names("no-such"), every);
        assert_eq!(names("no-such, nnhal-reference"), ["nnhal-reference"]);
        assert_eq!(names("nnhal-reference,nnhal-cpu"), ["nnhal-reference", "nnhal-cpu"]);
    }
}
