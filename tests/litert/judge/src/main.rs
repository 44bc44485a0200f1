//! Runs the corpus of `tests/litert` on a device and compares with LiteRT's outputs.
//!
//! What becomes of a case: it agrees; its outputs differ; its model is refused by the importer with
//! a reason; the device does not support it; it fails. Only differences and failures are faults.
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

mod array;
mod case;
mod table;

use case::{Outcome, judge};
use clap::Parser;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::Table;

/// Runs the corpus of tests/litert and compares with LiteRT's outputs.
#[derive(Debug, Parser)]
#[command(after_help = "\
Example, after `python tests/litert/make_models.py`:
  cargo run --release -p litert-judge -- tests/litert/data --filter conv")]
struct Arguments {
    /// Folder that make_models.py wrote
    folder: PathBuf,
    /// Only cases whose name contains this
    #[arg(long, default_value = "", value_name = "TEXT")]
    filter: String,
    /// Which device computes
    #[arg(long, value_enum, default_value = "reference")]
    device: Which,
    /// Also list what is refused or not supported, with the reasons
    #[arg(long)]
    refusals: bool,
    /// Write the table of operators, with what each becomes, to this file
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

/// One of our devices.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Which {
    Reference,
    Cpu,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let device = match arguments.device {
        Which::Reference => nnhal_reference::device(),
        Which::Cpu => nnhal_cpu::device(nnhal_cpu::Settings::default()),
    };
    let mut folders: Vec<PathBuf> = match std::fs::read_dir(&arguments.folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) => {
            eprintln!("{}: {error}", arguments.folder.display());
            return ExitCode::from(3);
        }
    };
    let name = |folder: &PathBuf| {
        folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    folders.retain(|it| it.join("meta.json").is_file() && name(it).contains(&arguments.filter));
    folders.sort();
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, Into::into) {
            scope.spawn(|| {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = judge(&*device, folder);
                    results
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner)
                        .insert(name(folder), outcome);
                }
            });
        }
    });
    let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(file) = &arguments.table
        && let Err(error) = write_table(file, &arguments.folder, &results)
    {
        eprintln!("{error}");
        return ExitCode::from(3);
    }
    report(&results, arguments.refusals)
}

fn write_table(
    file: &Path,
    folder: &Path,
    results: &BTreeMap<String, Outcome>,
) -> Result<(), String> {
    let mut table = Table::default();
    for (name, outcome) in results {
        table.add(&folder.join(name), outcome)?;
    }
    std::fs::write(file, table.page()).map_err(|error| format!("{}: {error}", file.display()))
}

fn report(results: &BTreeMap<String, Outcome>, refusals: bool) -> ExitCode {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, outcome) in results {
        let (kind, text) = match outcome {
            Outcome::Agrees => ("agrees", None),
            Outcome::Differs(text) => ("differs", Some(text)),
            Outcome::Fails(text) => ("fails", Some(text)),
            Outcome::Refused(text) => ("refused by the importer", Some(text).filter(|_| refusals)),
            Outcome::Unsupported(text) => {
                ("not supported by the device", Some(text).filter(|_| refusals))
            }
        };
        *counts.entry(kind).or_default() += 1;
        if let Some(text) = text {
            println!("{kind:8} {name}: {text}");
        }
    }
    for (kind, count) in &counts {
        println!("{count:6} {kind}");
    }
    let faults = counts.get("differs").unwrap_or(&0) + counts.get("fails").unwrap_or(&0);
    if faults == 0 && !results.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
