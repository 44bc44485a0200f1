//! Chores of the house.
//!
//! `cargo run -p xtask -- contract` lists the requirements of the contract that no test names;
//! `cargo run -p xtask -- install --prefix DIR` installs the NNAPI library for C programs.

mod contract;
mod install;

use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Chores of the house.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Lists the requirements of the contract that no test names; fails if there are any.
    ///
    /// A test names a requirement in its name (`fence_14_...`, `dbuf_4_and_5_...`,
    /// `model_1_to_3_...`) or in the comment above it (`contract: PREP-1, CB-5`).
    Contract {
        /// The contract.
        #[arg(long, default_value = "../shared/contract.md")]
        contract: PathBuf,
        /// Where the tests are.
        #[arg(default_values = ["crates", "examples"])]
        folders: Vec<PathBuf>,
        /// Print every requirement with its tests.
        #[arg(long)]
        all: bool,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Builds libneuralnetworks.so and installs it with its headers and a file for pkg-config.
    Install {
        /// The folder whose `lib` and `include` are written to.
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
        /// For packages: a folder to write to as if it were `/`.
        #[arg(long, value_name = "DIR")]
        staging: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    match Arguments::parse().chore {
        Chore::Contract { contract, folders, all, json } => list(&contract, &folders, all, json),
        Chore::Install { prefix, staging } => install(&prefix, staging.as_deref()),
    }
}

fn install(prefix: &Path, staging: Option<&Path>) -> ExitCode {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match install::install(&workspace, prefix, staging) {
        Ok(written) => {
            for path in written {
                println!("{}", path.display());
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list(contract: &Path, folders: &[PathBuf], all: bool, json: bool) -> ExitCode {
    let coverage = match contract::Coverage::read(contract, folders) {
        Ok(coverage) => coverage,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    if json {
        println!("{}", coverage.to_json());
    } else {
        print!("{}", coverage.report(all));
    }
    if coverage.missing().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
