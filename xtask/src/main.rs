//! The project's commands: `cargo xtask help` lists them.
// A command for developers may panic where its output is closed.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod build;
mod contract;
mod dist;
mod files;
mod install;
mod links;
mod modules;
mod musl;
mod new_operation;
mod schema;
mod unsafe_list;
mod words;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The project's commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    /// The repository, if not the one that this program was built from.
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Lists the requirements of the contract that no test names; fails if there are any.
    ///
    /// A test names a requirement in its name (`fence_14_...`, `dbuf_4_and_5_...`,
    /// `model_1_to_3_...`) or in the comment above it (`contract: PREP-1, CB-5`).
    Contract {
        /// The contract.
        #[arg(long, default_value = "docs/contract.md")]
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
    /// Finds words that were replaced by the field's terms; fails if there are any.
    Words {
        /// Print how often each word was found instead of where.
        #[arg(long)]
        count: bool,
    },
    /// Compares the files that allow `unsafe` with docs/unsafe.txt; fails if they differ.
    Unsafe,
    /// Writes the readers and writers of the `.tflite` format after a change of its schema.
    Schema,
    /// Finds relative links in documentation that lead nowhere; fails if there are any.
    Links,
    /// Finds modules of a crate that import each other in cycles, and what they import; fails if there are any.
    Modules,
    /// Writes the files and entries of a new operation, with failing tests to fill in.
    NewOp {
        /// The name as in the interface, such as HARD_SWISH.
        name: String,
        /// The version that brought it: 1.0 to 1.3, fl6, fl7.
        #[arg(long, default_value = "fl7")]
        version: String,
        /// Its number in the interface, if crate `hal` does not know the operation.
        #[arg(long)]
        code: Option<u32>,
    },
    /// Builds the program `nnhal` for Android and its containers: static, for x86-64 and 64-bit ARM, with the files that
    /// Android wants beside it.
    ///
    /// Uses Rust's standard library for musl where it is installed (`rustup target add x86_64-unknown-linux-musl
    /// aarch64-unknown-linux-musl`). Otherwise it is built from its sources (`rustup component add rust-src`), and Zig links
    /// (`pip install ziglang`), or what `CARGO_TARGET_..._LINKER` names: a C compiler that knows musl and has LLVM's
    /// libunwind. RUSTC names another compiler, whose standard library and sources count then.
    Dist {
        /// The folder that is written to, with a folder for each processor.
        #[arg(long, value_name = "DIR", default_value = "dist")]
        out: PathBuf,
        /// Only for these targets.
        #[arg(long = "target", value_name = "TRIPLE", default_values = musl::TARGETS)]
        targets: Vec<String>,
    },
    /// Builds the C libraries and the delegate, and installs them with headers and files for pkg-config.
    Install {
        /// The folder whose `lib` and `include` are written to.
        #[arg(long, value_name = "DIR", default_value = "/usr/local")]
        prefix: PathBuf,
        /// For packages: a folder to write to as if it were `/`.
        #[arg(long, value_name = "DIR")]
        staging: Option<PathBuf>,
        /// Build for another processor or system: its standard library is installed (`rustup target add TRIPLE`), and
        /// `CARGO_TARGET_..._LINKER` names a linker for it.
        #[arg(long, value_name = "TRIPLE")]
        target: Option<String>,
        /// Instead of the libraries the program `nnhal`, and the units for systemd that offer its devices on a socket.
        #[arg(long)]
        service: bool,
    },
}

fn main() -> ExitCode {
    let Arguments { root, command } = Arguments::parse();
    let root = root.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    match run(&root, command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command; answers whether it found nothing to complain about.
fn run(root: &Path, command: Command) -> Result<bool, Box<dyn Error>> {
    match command {
        Command::Contract { contract, folders, all, json } => {
            let folders: Vec<_> = folders.iter().map(|folder| root.join(folder)).collect();
            let coverage = contract::Coverage::read(&root.join(contract), &folders)?;
            if json {
                println!("{}", coverage.to_json());
            } else {
                print!("{}", coverage.report(all));
            }
            Ok(coverage.missing().next().is_none())
        }
        Command::Words { count } => {
            let findings = words::find(root)?;
            if count {
                print!("{}", words::count(&findings));
            } else {
                print_lines(&findings);
            }
            Ok(findings.is_empty())
        }
        Command::Unsafe => Ok(print_lines(unsafe_list::check(root)?)),
        Command::Links => Ok(print_lines(links::check(root)?)),
        Command::Modules => Ok(print_lines(modules::check(root)?)),
        Command::Schema => {
            let (path, code) = schema::generate(root)?;
            std::fs::write(&path, code)?;
            println!("{}", path.display());
            Ok(true)
        }
        Command::NewOp { name, version, code } => {
            let operation = new_operation::NewOperation::new(&name, &version, code)?;
            print_lines(operation.write(root)?.iter().map(|path| path.display()));
            println!("{}", operation.next_steps());
            Ok(true)
        }
        Command::Dist { out, targets } => {
            let mut all = true;
            for target in targets {
                match dist::build(root, &out, &target) {
                    Ok(written) => all &= !print_lines(written.iter().map(|path| path.display())),
                    Err(error) => {
                        eprintln!("error: {target}: {error}");
                        all = false;
                    }
                }
            }
            Ok(all)
        }
        Command::Install { prefix, staging, target, service } => {
            let install = if service { install::install_service } else { install::install };
            let written = install(root, &prefix, staging.as_deref(), target.as_deref())?;
            print_lines(written.iter().map(|path| path.display()));
            Ok(true)
        }
    }
}

/// Prints a line each; answers whether there were none.
fn print_lines(lines: impl IntoIterator<Item = impl std::fmt::Display>) -> bool {
    let mut is_empty = true;
    for line in lines {
        println!("{line}");
        is_empty = false;
    }
    is_empty
}
