//! `nnhal`: runs, inspects, measures and compares `.tflite` models on Neural Networks HAL devices.
//!
//! Exit codes: 0 done; 1 the answer is no (outputs differ, vectors failed); 2 wrong usage; 3 a
//! file or model is not what it should be; 4 the device refused or failed.

mod commands;
mod error;
mod inputs;
mod limited;
mod session;

use clap::{Parser, Subcommand};
use error::{CliError, Result};
use nnhal::trace::{TASK_SPANS, Trace};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Runs, inspects, measures and compares .tflite models on Neural Networks HAL devices.
#[derive(Debug, Parser)]
#[command(
    name = "nnhal",
    version,
    propagate_version = true,
    after_help = "\
Example:
  nnhal run assets/digits/digits_float32.tflite --input assets/digits/digit_7.png \\
      --labels assets/digits/labels.txt

Exit codes:
  0 done; 1 outputs differ or vectors failed; 2 wrong usage; 3 bad file or model; 4 device failed

Environment:
  NNHAL_LOG=debug shows what goes on inside (levels: error, warn, info, debug, trace);
  docs/settings.md has all variables"
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
    /// Say whether two devices compute the same, and which step is responsible if not
    Compare(commands::compare::Arguments),
    /// Run test vectors against a device
    #[cfg(feature = "conformance")]
    Conformance(commands::conformance::Arguments),
    /// Offer devices to other processes, or ask such a service what it is doing
    #[cfg(feature = "service")]
    Service(commands::service::Arguments),
    /// Serve models over HTTP and gRPC by the Open Inference Protocol (KServe v2)
    #[cfg(feature = "serve")]
    Serve(commands::serve::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return not_parsed(&error),
    };
    let trace = arguments.command.trace().map(|path| (Trace::new(), path));
    let outcome = match arguments.command.has_own_log() {
        true => run(&arguments.command),
        false => log(trace.as_ref().map(|(trace, _)| trace)).and_then(|()| run(&arguments.command)),
    };
    // Also of a run that failed.
    let saved = trace.as_ref().map_or(Ok(()), |(trace, path)| trace.save(path));
    match outcome {
        Ok(()) => match saved.map_err(CliError::from) {
            Ok(()) => ExitCode::SUCCESS,
            // The answer has been printed, as one object if that was asked for.
            Err(error) => {
                show_error(&error);
                ExitCode::from(error.exit_code())
            }
        },
        Err(error) => {
            show_error(&error);
            // A negative answer has been printed as one object already.
            if arguments.command.is_json() && !error.is_negative() {
                print_error(&error.to_string(), error.exit_code());
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Says to people what went wrong.
fn show_error(error: &CliError) {
    let text = error.to_string();
    let _ = writeln!(std::io::stderr(), "nnhal: {}", commands::visible(&text));
}

/// The exit code of arguments that make no sense.
const WRONG_USAGE: u8 = 2;

/// Shows help where it was asked for, and otherwise what is wrong with the arguments: also as an object, if among them is
/// that one is wanted.
fn not_parsed(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if !error.use_stderr() {
        return ExitCode::SUCCESS;
    }
    if std::env::args_os().any(|argument| argument == "--json") {
        let text = error.render().to_string();
        let what = text.split("\n\n").next().unwrap_or_default();
        print_error(what.strip_prefix("error: ").unwrap_or(what), WRONG_USAGE);
    }
    ExitCode::from(WRONG_USAGE)
}

fn print_error(what: &str, exit_code: u8) {
    let _ = commands::print_json(&serde_json::json!({ "error": what, "exit_code": exit_code }));
}

impl Command {
    /// Where what happens is to be written.
    fn trace(&self) -> Option<&Path> {
        match self {
            Self::Run(arguments) => arguments.trace.trace.as_deref(),
            Self::Bench(arguments) => arguments.trace.trace.as_deref(),
            _ => None,
        }
    }

    /// Whether the command says itself where its log goes.
    fn has_own_log(&self) -> bool {
        #[cfg(feature = "serve")]
        if matches!(self, Self::Serve(_)) {
            return true;
        }
        false
    }

    /// Whether the answer is to be one JSON object.
    fn is_json(&self) -> bool {
        match self {
            Self::Run(arguments) => arguments.json,
            Self::Inspect(arguments) => arguments.json,
            Self::Devices(arguments) => arguments.json,
            Self::Bench(arguments) => arguments.json,
            Self::Compare(arguments) => arguments.json,
            #[cfg(feature = "conformance")]
            Self::Conformance(arguments) => arguments.judging.json,
            #[cfg(feature = "service")]
            Self::Service(arguments) => arguments.is_json(),
            #[cfg(feature = "serve")]
            Self::Serve(_) => false,
        }
    }
}

/// Writes what `NNHAL_LOG` asks for to standard error: errors, unless it says otherwise.
/// A trace is given all spans.
fn log(trace: Option<&Trace>) -> Result<()> {
    let wanted = nnhal_settings::log().map_err(nnhal::Error::from)?;
    let filter: Targets = wanted
        .as_deref()
        .unwrap_or("error")
        .parse()
        .map_err(|error| CliError::Input(format!("{}: {error}", nnhal_settings::LOG.name)))?;
    // Its complaints would panic where standard error is full or closed.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .with_span_events(FmtSpan::CLOSE);
    // A line for each task would be many for each step: whoever wants them names them.
    let filter = match wanted.as_deref().is_some_and(|wanted| wanted.contains(TASK_SPANS)) {
        true => filter,
        false => filter.with_target(TASK_SPANS, LevelFilter::OFF),
    };
    let lines = lines.with_filter(filter);
    tracing_subscriber::registry().with(lines).with(trace.map(Trace::layer)).init();
    Ok(())
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Run(arguments) => commands::run::run(arguments),
        Command::Inspect(arguments) => commands::inspect::run(arguments),
        Command::Devices(arguments) => commands::devices::run(arguments),
        Command::Bench(arguments) => commands::bench::run(arguments),
        Command::Compare(arguments) => commands::compare::run(arguments),
        #[cfg(feature = "conformance")]
        Command::Conformance(arguments) => commands::conformance::run(arguments),
        #[cfg(feature = "service")]
        Command::Service(arguments) => commands::service::run(arguments),
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => commands::serve::run(arguments),
    }
}
