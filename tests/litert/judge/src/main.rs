//! Runs the corpus of `tests/litert` on a device and compares with LiteRT's outputs.
//!
//! What becomes of a case: it agrees; its outputs differ; its model is refused by the importer with
//! a reason; the device does not support it; it fails. A fault is what a list does not expect ([`expected`]).
#![allow(clippy::print_stdout, clippy::print_stderr)] // What it is for.

mod array;
mod case;
mod expected;
mod table;

use case::{Outcome, judge};
use clap::Parser;
use expected::Expected;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
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
    /// Only each N-th case
    #[arg(long, default_value = "1", value_name = "N")]
    every: NonZeroUsize,
    /// What is expected not to agree, with the reasons
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../expected.txt"), value_name = "FILE")]
    expected: PathBuf,
    /// Also list what is expected, and what is refused or not supported, with the reasons
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
    let expected = match Expected::read(&arguments.expected) {
        Ok(expected) => expected,
        Err(error) => {
            eprintln!("{}: {error}", arguments.expected.display());
            return ExitCode::from(3);
        }
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
    let folders: Vec<PathBuf> = folders.into_iter().step_by(arguments.every.get()).collect();
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
    // A corpus that was made as a whole has each case that is expected.
    let is_whole = arguments.filter.is_empty()
        && arguments.every == NonZeroUsize::MIN
        && arguments.folder.join("index.json").is_file();
    report(&results, &expected, is_whole, arguments.refusals)
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

fn report(
    results: &BTreeMap<String, Outcome>,
    expected: &Expected,
    is_whole: bool,
    shows_all: bool,
) -> ExitCode {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut faults = 0;
    for (name, outcome) in results {
        let kind = outcome.kind();
        *counts.entry(kind).or_default() += 1;
        let found = expected.judge(name, outcome);
        if let Err(what) = &found {
            faults += 1;
            println!("{name}: {what}");
        } else if let Ok(Some(reason)) = found
            && shows_all
        {
            println!("{name}: {kind}, as expected: {reason}\n    {}", outcome.text());
        }
    }
    if is_whole {
        for name in expected.names().filter(|name| !results.contains_key(*name)) {
            faults += 1;
            println!("{name}: it is expected not to agree, and there is no such case");
        }
    }
    for (kind, count) in &counts {
        println!("{count:6} {kind}");
    }
    println!("{faults:6} not as expected");
    if faults == 0 && !results.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
