//! Builds with cargo, and finds what was built.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error("cargo cannot be run: {0}")]
    Cargo(io::Error),
    #[error("cargo build ended with {0}")]
    Build(ExitStatus),
    #[error("cargo built no {0}")]
    Missing(&'static str),
}

/// `cargo build` in this workspace, for `target` or else for this machine.
pub(crate) fn cargo(workspace: &Path, target: Option<&str>) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(workspace).arg("build");
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    cargo
}

/// What cargo says that it has built.
pub(crate) struct Built(String);

/// Runs `cargo build`, or `cargo rustc`, for a release; `last` is what comes behind all other arguments.
pub(crate) fn run(cargo: &mut Command, last: &[&str]) -> Result<Built, BuildError> {
    let output = cargo
        .args(["--release", "--locked", "--message-format=json-render-diagnostics"])
        .args(last)
        .stderr(Stdio::inherit())
        .output()
        .map_err(BuildError::Cargo)?;
    if !output.status.success() {
        return Err(BuildError::Build(output.status));
    }
    Ok(Built(String::from_utf8_lossy(&output.stdout).into_owned()))
}

impl Built {
    /// Where the library or program of this name is.
    pub(crate) fn file(&self, name: &'static str) -> Result<PathBuf, BuildError> {
        let messages =
            self.0.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let files = messages.flat_map(|message| match message.get("filenames") {
            Some(serde_json::Value::Array(files)) => files.clone(),
            _ => Vec::new(),
        });
        let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
        let found = paths.rfind(|path| path.file_name().is_some_and(|found| found == name));
        found.ok_or(BuildError::Missing(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_what_cargo_says() {
        let messages = "{\"reason\":\"compiler-artifact\",\"filenames\":[\"/a/libother.rlib\"]}\n\
                        no json\n\
                        {\"filenames\":[\"/b/libneuralnetworks.rlib\",\"/b/libneuralnetworks.so\"]}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        let built = Built(messages.to_owned());
        let found = built.file("libneuralnetworks.so").expect("it was built");
        assert_eq!(found, Path::new("/b/libneuralnetworks.so"));
        assert!(matches!(built.file("libabsent.so"), Err(BuildError::Missing("libabsent.so"))));
    }
}
