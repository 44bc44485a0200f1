//! Builds the static program for Android, and puts the files of `android/` beside it.

use std::env::consts::ARCH;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is built.
pub const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// Files for Android, by their place in `android/`.
const FILES: [&str; 4] = [
    "nnhal.rc",
    "nnhal-vintf.xml",
    "sepolicy/file_contexts",
    "sepolicy/hal_neuralnetworks_nnhal.te",
];

/// What was built.
pub struct Built {
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// Targets whose standard library is not installed.
    pub missing: Vec<String>,
}

/// Builds for these targets.
pub fn build(root: &Path, out: &Path, targets: &[String]) -> io::Result<Built> {
    let mut built = Built { written: Vec::new(), missing: Vec::new() };
    for target in targets {
        if !has_standard_library(target)? {
            built.missing.push(target.clone());
            continue;
        }
        let program = program(root, target)?;
        let folder = out.join(target.split('-').next().unwrap_or(target));
        built.written.push(copy(&program, &folder.join("nnhal"))?);
        for file in FILES {
            built.written.push(copy(&root.join("android").join(file), &folder.join(file))?);
        }
    }
    Ok(built)
}

fn has_standard_library(target: &str) -> io::Result<bool> {
    let printed =
        Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(Path::new(String::from_utf8_lossy(&printed.stdout).trim()).is_dir())
}

/// Builds the program and returns where it is.
fn program(root: &Path, target: &str) -> io::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--release", "--locked", "-p", "nnhal-cli"]);
    // No server of models: a driver speaks no HTTP, and what encrypts for the server is written in C.
    cargo.args(["--no-default-features", "--features", "conformance,service", "--target", target]);
    if !target.starts_with(ARCH) {
        // Rust's own linker and musl's files that come with its standard library: no cross compiler is needed.
        let variable = target.replace('-', "_").to_uppercase();
        cargo.env(format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld");
    }
    let status = cargo.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("cargo build for {target}: {status}")));
    }
    let target_folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target_folder = target_folder.unwrap_or_else(|| root.join("target"));
    Ok(root.join(target_folder).join(target).join("release/nnhal"))
}

fn copy(from: &Path, to: &Path) -> io::Result<PathBuf> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    let failed =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", from.display()));
    fs::copy(from, to).map_err(failed)?;
    Ok(to.to_owned())
}
