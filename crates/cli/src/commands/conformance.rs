//! `nnhal conformance`

use crate::error::Result;
use nnhal::devices;
use nnhal_conformance::command;
use nnhal_hal::Device;
use std::num::NonZeroUsize;
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

Vectors with operations that the device does not support are declined: counted apart, and not wrong. A
driver of your own is judged by a program of your own, whose main is
nnhal_conformance::cli(my_device) and which takes the same arguments.")]
pub struct Arguments {
    /// Device to judge
    #[arg(long, default_value = devices::DEFAULT, value_name = "NAME")]
    device: String,
    #[command(flatten)]
    pub judging: command::Arguments,
}

/// Runs vectors, or checks of the contract.
pub fn run(arguments: &Arguments) -> Result<()> {
    let device: Option<Arc<dyn Device>> = match arguments.judging.needs_device() {
        true => Some(devices::open(&arguments.device, NonZeroUsize::new(1))?),
        false => None,
    };
    Ok(command::run(&arguments.judging, device.as_ref())?)
}
