//! `nnhal devices`

use super::{print, print_json};
use crate::error::Result;
use nnhal::devices;
use nnhal_hal::{Device, HalVersion, OperationType};
use nnhal_ops::extension::{self, ExtensionOperation};
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
    /// Those of the interface.
    operations: usize,
    /// Those of our extension, if the device has it.
    extension_operations: usize,
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
            "{}{default}\n  type {}, status {}, HAL {}\n  {}\n  {} operations defined{}\n",
            description.name,
            description.device_type,
            description.status,
            description.version,
            description.version_string,
            description.operations,
            match description.extension_operations {
                0 => String::new(),
                count => format!(", and {count} of the extension {}", extension::NAME),
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
    Description {
        name: name.to_owned(),
        default: name == devices::DEFAULT,
        version: device.version().name(),
        version_string: device.version_string(),
        device_type: device.device_type().name(),
        status: device.status().name(),
        operations: OperationType::FUNDAMENTAL
            .iter()
            .filter(|operation| operation.since() <= HalVersion::LATEST)
            .filter(|operation| nnhal_ops::Signature::of(**operation).is_some())
            .count(),
        extension_operations: match device
            .supported_extensions()
            .iter()
            .any(|it| it.name == extension::NAME)
        {
            true => ExtensionOperation::ALL.len(),
            false => 0,
        },
    }
}
