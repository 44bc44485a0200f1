//! `nnhal`: runs, inspects, measures and compares `.tflite` models on Neural Networks HAL devices.
//!
//! Exit codes: 0 done; 1 the answer is no (outputs differ, vectors failed); 2 wrong usage; 3 a
//! file or model is not what it should be; 4 the device refused or failed.

mod commands;
mod devices;
mod error;
mod inputs;
mod npy;
mod picture;
mod session;
mod tensor;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Runs, inspects, measures and compares .tflite models on Neural Networks HAL devices.
#[derive(Debug, Parser)]
#[command(
    version,
    propagate_version = true,
    after_help = "\
Example:
  nnhal run assets/digits/digits_float32.tflite --input assets/digits/digit_7.png \\
      --labels assets/digits/labels.txt

Exit codes:
  0 done; 1 outputs differ or vectors failed; 2 wrong usage; 3 bad file or model; 4 device failed

Environment:
  NNHAL_LOG=debug shows what goes on inside (levels: error, warn, info, debug, trace)"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a model once and show its outputs
    Run(commands::run::Arguments),
    /// Show inputs, outputs, operations, constants, and which devices support them
    Inspect(commands::inspect::Arguments),
    /// List the devices
    Devices(commands::devices::Arguments),
    /// Measure how long preparing and running a model takes
    Bench(commands::bench::Arguments),
    /// Find the first operation whose outputs differ between two devices
    Compare(commands::compare::Arguments),
    /// Run test vectors against a device
    Conformance(commands::conformance::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_env("NNHAL_LOG"))
        .with_writer(std::io::stderr)
        .init();
    let outcome = match &arguments.command {
        Command::Run(arguments) => commands::run::run(arguments),
        Command::Inspect(arguments) => commands::inspect::run(arguments),
        Command::Devices(arguments) => commands::devices::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Compare(arguments) => commands::compare::run(arguments),
        Command::Conformance(arguments) => commands::conformance::run(arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nnhal: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
