//! Devices of other processes, by name.
//!
//! A name is a scheme, a colon and what the scheme makes of the rest. [`KINDS`] has all schemes that this
//! build knows:
//!
//! | name | device |
//! |---|---|
//! | `unix:PATH`, `unix:PATH#DEVICE` | the device that a service offers on a Unix socket: its first, or the one named |
//! | `aidl:NAME` | `android.hardware.neuralnetworks.IDevice/NAME` of kernel binder's service manager |
//! | `hidl:NAME` | `android.hardware.neuralnetworks@1.0::IDevice/NAME`, of 1.0 to 1.3, of hwbinder's service manager |
//!
//! A device is reached when it is opened, and again when it is used after its service has died and
//! returned. What was prepared before is lost then and answers `DEVICE_UNAVAILABLE`.
//!
//! ```
//! // A program's option `--device` takes names of both kinds.
//! let name = "unix:/nonexistent/nnhal.sock";
//! assert!(nnhal_remote::is_remote(name) && !nnhal_remote::is_remote("nnhal-cpu"));
//! let refused = nnhal_remote::open(name).err().expect("no one listens there");
//! assert!(refused.to_string().starts_with("unix:/nonexistent/nnhal.sock: "));
//! ```

#[cfg(feature = "aidl")]
mod aidl;
mod error;
#[cfg(feature = "hidl")]
mod hidl;

pub use error::RemoteError;

use nnhal_hal::Device;
use std::sync::Arc;

/// A way to reach devices of other processes.
#[derive(Debug)]
pub struct Kind {
    /// What names begin with, without the colon.
    pub scheme: &'static str,
    /// How a name is written, for people.
    pub form: &'static str,
    /// Opens the device that the part of the name after the colon stands for.
    open: fn(&str) -> nnhal_hal::Result<Arc<dyn Device>>,
    /// What there is, as parts of names after the colon; `None` where no one keeps a list.
    list: Option<fn() -> nnhal_hal::Result<Vec<String>>>,
}

/// All there are in this build.
pub const KINDS: &[Kind] = &[
    #[cfg(feature = "aidl")]
    aidl::UNIX,
    #[cfg(feature = "aidl")]
    aidl::KERNEL,
    #[cfg(feature = "hidl")]
    hidl::HIDL,
];

/// The kind and the rest of a name; `None` if it is no name of a remote device.
fn split(name: &str) -> Option<(&'static Kind, &str)> {
    let (scheme, rest) = name.split_once(':')?;
    Some((KINDS.iter().find(|kind| kind.scheme == scheme)?, rest))
}

/// Whether a name is of the form of those that [`open`] takes.
pub fn is_remote(name: &str) -> bool {
    split(name).is_some()
}

/// The forms of names that there are, for messages: `unix:PATH, aidl:NAME`.
pub fn forms() -> String {
    KINDS.iter().map(|kind| kind.form).collect::<Vec<_>>().join(", ")
}

/// The names of all devices of kinds that keep a list, or why a list cannot be had.
pub fn listed() -> Vec<Result<String, RemoteError>> {
    let of_kind = |kind: &Kind| match find(&format!("{}:*", kind.scheme)) {
        Ok(names) => names.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    };
    KINDS.iter().filter(|kind| kind.list.is_some()).flat_map(of_kind).collect()
}

/// Opens a device by its name.
///
/// # Errors
/// [`RemoteError::Form`] if the name is none; [`RemoteError::Device`] if the device cannot be reached, or
/// what it says of itself is nothing to work with.
pub fn open(name: &str) -> Result<Arc<dyn Device>, RemoteError> {
    let Some((kind, rest)) = split(name).filter(|(_, rest)| !rest.is_empty()) else {
        return Err(RemoteError::Form { found: name.to_owned() });
    };
    (kind.open)(rest).map_err(|source| RemoteError::Device { name: name.to_owned(), source })
}

/// The names that a pattern stands for: all of a kind for `KIND:*`, otherwise the pattern itself.
///
/// # Errors
/// [`RemoteError::Form`] as [`open`]; [`RemoteError::NoList`] for `*` of a kind that no one keeps a list
/// of; [`RemoteError::Device`] if the list cannot be had.
pub fn find(pattern: &str) -> Result<Vec<String>, RemoteError> {
    let Some((kind, rest)) = split(pattern) else {
        return Err(RemoteError::Form { found: pattern.to_owned() });
    };
    if rest != "*" {
        return Ok(vec![pattern.to_owned()]);
    }
    let list = kind.list.ok_or(RemoteError::NoList { scheme: kind.scheme })?;
    let device = |source| RemoteError::Device { name: pattern.to_owned(), source };
    let names = list().map_err(device)?;
    Ok(names.iter().map(|name| format!("{}:{name}", kind.scheme)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_scheme_and_a_rest() {
        for name in ["nnhal-cpu", "", ":", "unix", "nope:x", "/run/unix:x"] {
            assert!(!is_remote(name), "{name}");
            assert!(matches!(open(name), Err(RemoteError::Form { .. })), "{name}");
        }
        #[cfg(feature = "aidl")]
        {
            assert!(matches!(open("unix:"), Err(RemoteError::Form { .. })));
            assert_eq!(find("unix:/x").unwrap(), ["unix:/x"]);
            assert!(matches!(find("unix:*"), Err(RemoteError::NoList { scheme: "unix" })));
        }
    }
}
