//! `nnhal service hidl`

use super::{instance, offered};
use crate::error::{CliError, Result};
use nnhal::devices;
use nnhal_hidl_binder::Service;
use nnhal_hwbinder::{DEVICE, Process};
use nnhal_service::Settings;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The arguments of `nnhal service hidl`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal service hidl
  nnhal service hidl --instance acme-accelerator --devices nnhal-cpu
  nnhal run MODEL --input INPUT --device hidl:nnhal-cpu

Waits for hwservicemanager where it is not there yet, and registers again when it comes back. Serves until it is
killed. docs/android.md says which files Android wants besides.")]
pub struct Arguments {
    /// The name to register a single device under, in place of its own
    #[arg(long, value_name = "VENDOR-DEVICE", value_parser = instance)]
    instance: Option<String>,
    /// The devices to offer, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = devices::DEFAULT)]
    devices: Vec<String>,
    /// The most threads that share the work of an execution
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// A file of limits
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// The binder device; a container's may be /dev/anbox-hwbinder
    #[arg(long, value_name = "PATH", default_value = DEVICE)]
    binder: PathBuf,
    /// The most threads that serve calls; each synchronous execution takes one
    #[arg(long, value_name = "N", default_value = "16")]
    calls: NonZeroUsize,
}

/// Serves.
pub fn run(arguments: &Arguments) -> Result<()> {
    let wrong = |error: &dyn std::fmt::Display| CliError::Input(error.to_string());
    if arguments.instance.is_some() && arguments.devices.len() != 1 {
        return Err(CliError::Input("--instance is the name of one device".to_owned()));
    }
    let settings = match &arguments.settings {
        Some(path) => Settings::read(path).map_err(|error| wrong(&error))?,
        None => Settings::default(),
    }
    .beside_threads(arguments.calls.get());
    nnhal_service::more_descriptors();
    let options =
        nnhal_hwbinder::driver::Options { threads: arguments.calls.get(), ..Default::default() };
    let process = Process::open(&arguments.binder, options).map_err(|error| wrong(&error))?;
    let mut service = Service::new(&process, settings.all);
    let mut names = Vec::new();
    for device in offered(&arguments.devices, arguments.threads)? {
        let name = arguments.instance.clone().unwrap_or_else(|| device.name().to_owned());
        names.push(name.clone());
        service.add(name, device, settings.client, Default::default());
    }
    let report = |line: &str| {
        let _ = writeln!(std::io::stderr(), "nnhal service hidl: {line}");
    };
    report("waiting for hwservicemanager");
    let names = names.join(", ");
    match service.run(|| report(&format!("registered {names}"))) {
        Ok(never) => match never {},
        Err(error) => Err(wrong(&error)),
    }
}
