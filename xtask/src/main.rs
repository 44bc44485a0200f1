//! Chores of the house.
//!
//! `cargo run -p xtask -- contract` lists the requirements of the contract that no test names.

mod contract;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
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
}

fn main() -> ExitCode {
    let Arguments { chore: Chore::Contract { contract, folders, all, json } } = Arguments::parse();
    let coverage = match contract::Coverage::read(&contract, &folders) {
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
