//! `nnhal devices`

use super::{print, print_json};
use crate::error::Result;
use nnhal::devices;
use nnhal_hal::{Device, OperationType};
use serde::Serialize;

/// The arguments of `nnhal devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  nnhal devices --json")]
pub struct Arguments {
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Description {
    name: String,
    default: bool,
    version: &'static str,
    version_string: String,
    device_type: &'static str,
    status: &'static str,
    /// Those that its version of the interface defines.
    operations: usize,
    /// The names of those that it has.
    extensions: Vec<String>,
}

/// Lists the devices.
pub fn run(arguments: &Arguments) -> Result<()> {
    let all = devices::all(None)?;
    let descriptions = all.iter().map(|device| describe(device.name(), &**device));
    #[cfg(feature = "service")]
    let descriptions = descriptions.chain(remote());
    let descriptions: Vec<_> = descriptions.collect();
    if arguments.json {
        return print_json(&serde_json::json!({ "devices": descriptions }));
    }
    let mut text = String::new();
    for description in descriptions {
        let default = if description.default { " (default)" } else { "" };
        text += &format!(
            "{}{default}\n  type {}, status {}, HAL {}, which defines {} operations\n  {}\n{}",
            description.name,
            description.device_type,
            description.status,
            description.version,
            description.operations,
            description.version_string,
            match &description.extensions[..] {
                [] => String::new(),
                [one] => format!("  extension {one}\n"),
                several => format!("  extensions {}\n", several.join(", ")),
            },
        );
    }
    print(&text)
}

/// The devices of other processes that can be listed. One that cannot be reached is none to choose.
#[cfg(feature = "service")]
fn remote() -> Vec<Description> {
    let open = |name: std::result::Result<String, nnhal_remote::RemoteError>| {
        let described = name.and_then(|name| Ok(describe(&name, &*nnhal_remote::open(&name)?)));
        described.inspect_err(|error| tracing::warn!(%error, "a device was left out")).ok()
    };
    nnhal_remote::listed().into_iter().filter_map(open).collect()
}

/// A device by the name that `--device` takes.
fn describe(name: &str, device: &dyn Device) -> Description {
    let version = device.version();
    Description {
        name: name.to_owned(),
        default: name == devices::DEFAULT,
        version: version.name(),
        version_string: device.version_string(),
        device_type: device.device_type().name(),
        status: device.status().name(),
        operations: OperationType::FUNDAMENTAL
            .iter()
            .filter(|operation| operation.since() <= version)
            .filter(|operation| nnhal_ops::Signature::of(**operation).is_some())
            .count(),
        extensions: device.supported_extensions().into_iter().map(|it| it.name).collect(),
    }
}
