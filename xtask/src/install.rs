//! Builds `libneuralnetworks.so` and puts it where C programs find it, with headers and a file for
//! pkg-config; and `libnnhal_delegate.so` beside it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// Headers, by their place in `include/`, which is their place in the installed folder too.
const HEADERS: &[&str] = &[
    "nnhal.h",
    "android/NeuralNetworks.h",
    "android/NeuralNetworksExtensions.h",
    "android/NeuralNetworksSupportLibraryImpl.h",
    "android/NeuralNetworksTypes.h",
];

/// Packages, and the libraries that they build.
const LIBRARIES: [(&str, &str); 2] =
    [("nnhal-capi", "libneuralnetworks.so"), ("nnhal-litert-delegate", "libnnhal_delegate.so")];

#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("cargo cannot be run: {0}")]
    Cargo(io::Error),
    #[error("cargo build ended with {0}")]
    Build(ExitStatus),
    #[error("cargo built no {0}")]
    NoLibrary(&'static str),
}

/// Installs under `prefix`, or, for packages, under `staging` as if that were `/`. Returns what was
/// written.
pub(crate) fn install(
    workspace: &Path,
    prefix: &Path,
    staging: Option<&Path>,
) -> Result<Vec<PathBuf>, InstallError> {
    let libraries = build(workspace)?;
    let root = match staging {
        Some(staging) => staging.join(prefix.strip_prefix("/").unwrap_or(prefix)),
        None => prefix.to_owned(),
    };
    let mut written = Vec::new();
    for (library, (_, name)) in libraries.iter().zip(LIBRARIES) {
        let installed = root.join("lib").join(name);
        copy(library, &installed, &mut written)?;
        // What debuggers need takes most of the file; without the program `strip` it stays.
        let strip = &mut Command::new("strip");
        let _ = strip.arg("--strip-debug").arg(&installed).stderr(Stdio::null()).status();
    }
    for header in HEADERS {
        let from = workspace.join("include").join(header);
        copy(&from, &root.join("include/nnhal").join(header), &mut written)?;
    }
    let path = root.join("lib/pkgconfig/neuralnetworks.pc");
    create_folder(&path)?;
    fs::write(&path, pkg_config())
        .map_err(|error| InstallError::File { path: path.clone(), error })?;
    written.push(path);
    Ok(written)
}

/// Where things are is said from the file itself, so that the whole can be moved.
fn pkg_config() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: neuralnetworks\n\
         Description: Android's Neural Networks API on Linux\n\
         Version: {}\n\
         Libs: -L${{libdir}} -lneuralnetworks\n\
         Cflags: -I${{includedir}}/nnhal\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Builds the libraries and returns where they are.
fn build(workspace: &Path) -> Result<Vec<PathBuf>, InstallError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--release", "--locked"])
        .args(LIBRARIES.iter().flat_map(|(package, _)| ["--package", package]))
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .map_err(InstallError::Cargo)?;
    if !output.status.success() {
        return Err(InstallError::Build(output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let built = |(_, name)| built_library(&messages, name).ok_or(InstallError::NoLibrary(name));
    LIBRARIES.into_iter().map(built).collect()
}

/// A library among the files that cargo says to have built.
fn built_library(messages: &str, library: &str) -> Option<PathBuf> {
    let messages =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages.flat_map(|message| match message.get("filenames") {
        Some(serde_json::Value::Array(files)) => files.clone(),
        _ => Vec::new(),
    });
    let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths.rfind(|path| path.file_name().is_some_and(|name| name == library))
}

fn copy(from: &Path, to: &Path, written: &mut Vec<PathBuf>) -> Result<(), InstallError> {
    create_folder(to)?;
    fs::copy(from, to).map_err(|error| InstallError::File { path: from.to_owned(), error })?;
    written.push(to.to_owned());
    Ok(())
}

fn create_folder(of: &Path) -> Result<(), InstallError> {
    let folder = of.parent().unwrap_or(of);
    fs::create_dir_all(folder)
        .map_err(|error| InstallError::File { path: folder.to_owned(), error })
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
        let library = "libneuralnetworks.so";
        assert_eq!(
            built_library(messages, library),
            Some(PathBuf::from("/b/libneuralnetworks.so"))
        );
        assert_eq!(built_library(messages, "libnnhal_delegate.so"), None);
        assert_eq!(built_library("{}", library), None);
    }

    #[test]
    fn all_headers_are_installed() {
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
        let mut found: Vec<String> = walkdir::WalkDir::new(&include)
            .into_iter()
            .map(|entry| entry.expect("a folder of the repository"))
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| entry.path().strip_prefix(&include).expect("below").display().to_string())
            .collect();
        found.sort();
        let mut headers: Vec<_> = HEADERS.iter().map(|&header| header.to_owned()).collect();
        headers.sort();
        assert_eq!(found, headers);
    }
}
