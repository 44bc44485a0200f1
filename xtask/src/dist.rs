//! Builds the static program for Android, and puts the files of `android/` beside it.

use crate::build::{self, BuildError};
use crate::musl::{MuslError, Toolchain};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files for Android, by their place in `android/`.
const FILES: [&str; 7] = [
    "nnhal.rc",
    "nnhal-vintf.xml",
    "nnhal-aidl.rc",
    "nnhal-aidl-vintf.xml",
    "sepolicy/file_contexts",
    "sepolicy/service_contexts",
    "sepolicy/hal_neuralnetworks_nnhal.te",
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum DistError {
    #[error(transparent)]
    Toolchain(#[from] MuslError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
}

/// Builds for a target into a folder of its processor's name, and returns what was written.
pub(crate) fn build(root: &Path, out: &Path, target: &str) -> Result<Vec<PathBuf>, DistError> {
    let mut cargo = Toolchain::find(target)?.cargo(root, OsStr::new("rustc"))?;
    // No server of models: a driver speaks no HTTP, and what encrypts for the server is written in C.
    cargo.args(["-p", "nnhal-cli", "--no-default-features", "--features", "conformance,service"]);
    // What debuggers need is most of the file. The names that a panic's trace prints stay, but not where Zig links.
    let linked = ["--", "-Cstrip=debuginfo"];
    let program = build::run(&mut cargo, &linked)?.file("nnhal")?;

    let folder = out.join(target.split('-').next().unwrap_or(target));
    let mut written = vec![copy(&program, &folder.join("nnhal"))?];
    for file in FILES {
        written.push(copy(&root.join("android").join(file), &folder.join(file))?);
    }
    Ok(written)
}

fn copy(from: &Path, to: &Path) -> Result<PathBuf, DistError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |error| DistError::File { path, error }
    };
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed(folder))?;
    }
    fs::copy(from, to).map_err(failed(from))?;
    Ok(to.to_owned())
}
