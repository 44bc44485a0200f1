//! `nnhal conformance`

use crate::error::{CliError, Result};
use nnhal::devices;
use nnhal_conformance::command;
use nnhal_hal::Device;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// The arguments of `nnhal conformance`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal conformance ../shared/conformance --device nnhal-reference --filter conv2d
  nnhal conformance ../shared/conformance --paths all
  nnhal conformance ../shared/conformance --through 1.1 --suite generated
  nnhal conformance --contract --device nnhal-reference
  nnhal conformance --contract --list
  nnhal conformance ../shared/conformance --device ./libneuralnetworks.so:nnhal-cpu
  nnhal conformance --contract --device unix:/run/nnhal/nnhal.sock

Vectors with operations that the device does not support are declined: counted by themselves, and not wrong. A
driver of your own is judged by a program of your own, whose main is
nnhal_conformance::cli(my_device) and which takes the same arguments.")]
pub struct Arguments {
    /// Device to judge: one of nnhal devices, or a shared object with the entry point of NNAPI support
    /// libraries (a path with a / in it), which is loaded, with :NAME behind for another device than its
    /// first; or a device of another process, as unix:PATH, hidl:NAME or aidl:NAME
    #[arg(long, default_value = devices::DEFAULT, value_name = "NAME|FILE[:NAME]|KIND:NAME")]
    device: String,
    #[command(flatten)]
    pub judging: command::Arguments,
}

/// Runs vectors, or checks of the contract.
pub fn run(arguments: &Arguments) -> Result<()> {
    let remote = devices::is_remote(&arguments.device);
    if arguments.device.contains('/') && !remote && arguments.judging.needs_device() {
        let device = shared_object(&arguments.device)?;
        return Ok(command::run_c_library(&arguments.judging, &device)?);
    }
    let device: Option<Arc<dyn Device>> = match arguments.judging.needs_device() {
        true => Some(devices::open(&arguments.device, NonZeroUsize::new(1))?),
        false => None,
    };
    #[cfg(feature = "service")]
    if let (Some(device), Some(name)) = (&device, arguments.device.strip_prefix("hidl:")) {
        return Ok(command::run_driver(&arguments.judging, device, &hidl_driver(name)?)?);
    }
    Ok(command::run(&arguments.judging, device.as_ref())?)
}

/// The driver itself behind a device of hwbinder's.
#[cfg(feature = "service")]
fn hidl_driver(name: &str) -> Result<Arc<nnhal_hidl_binder::client::Driver>> {
    let wrong = |error: &dyn std::fmt::Display| CliError::Input(format!("hidl:{name}: {error}"));
    let chosen = nnhal_settings::HWBINDER.read().map_err(|error| wrong(&error))?;
    let path = chosen.map_or_else(|| nnhal_hwbinder::DEVICE.into(), std::path::PathBuf::from);
    let process = nnhal_hwbinder::Process::open(&path, Default::default());
    let process = process.map_err(|error| wrong(&error))?;
    nnhal_hidl_binder::client::driver(&process, name).map_err(|error| wrong(&error))
}

/// A device of a shared object.
fn shared_object(named: &str) -> Result<Arc<dyn Device>> {
    let (path, name) = match named.rsplit_once(':') {
        Some((path, name)) if !Path::new(named).exists() => (path, Some(name)),
        _ => (named, None),
    };
    let opened = nnhal_conformance::shared_object::open(path.as_ref(), name);
    opened.map_err(|why| CliError::Input(format!("{path}: {why}")))
}
