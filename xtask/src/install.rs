//! Builds the C libraries and puts them where C programs find them, with headers and files for pkg-config.

use crate::build::{self, BuildError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Headers, by their place in `include/`, which is their place in the installed folder too.
const HEADERS: &[&str] = &[
    "nnhal.h",
    "android/NeuralNetworks.h",
    "android/NeuralNetworksExtensions.h",
    "android/NeuralNetworksSupportLibraryImpl.h",
    "android/NeuralNetworksTypes.h",
    "tensorflow/compiler/mlir/lite/core/c/tflite_types.h",
    "tensorflow/lite/builtin_ops.h",
    "tensorflow/lite/c/c_api.h",
    "tensorflow/lite/c/c_api_experimental.h",
    "tensorflow/lite/c/c_api_opaque.h",
    "tensorflow/lite/c/c_api_types.h",
    "tensorflow/lite/c/common.h",
    "tensorflow/lite/core/async/c/types.h",
    "tensorflow/lite/core/c/c_api.h",
    "tensorflow/lite/core/c/c_api_experimental.h",
    "tensorflow/lite/core/c/c_api_opaque.h",
    "tensorflow/lite/core/c/c_api_types.h",
    "tensorflow/lite/core/c/common.h",
    "tensorflow/lite/core/c/operator.h",
    "tensorflow/lite/delegates/xnnpack/xnnpack_delegate.h",
];

/// A C library.
struct Library {
    package: &'static str,
    /// Where it is installed: a folder of the prefix.
    folder: &'static str,
    file: &'static str,
    /// `None` for one that programs load, and are not linked with.
    linked: Option<Linked>,
}

/// What programs say to be linked with a library.
struct Linked {
    /// What pkg-config calls it, and the linker.
    name: &'static str,
    description: &'static str,
}

const LIBRARIES: &[Library] = &[
    Library {
        package: "nnhal-capi",
        folder: "lib",
        file: "libneuralnetworks.so",
        linked: Some(Linked {
            name: "neuralnetworks",
            description: "Android's Neural Networks API on Linux",
        }),
    },
    Library {
        package: "nnhal-tflite-c",
        folder: "lib",
        file: "libtensorflowlite_c.so",
        linked: Some(Linked {
            name: "tensorflowlite_c",
            description: "The C API of TensorFlow Lite on nnhal's devices",
        }),
    },
    Library {
        package: "nnhal-litert-delegate",
        folder: "lib",
        file: "libnnhal_delegate.so",
        linked: None,
    },
    // LiteRT takes whatever libraries of these beginnings a folder has.
    Library {
        package: "nnhal-litert-compiler",
        folder: "lib/nnhal/litert",
        file: "libLiteRtCompilerPlugin_nnhal.so",
        linked: None,
    },
    Library {
        package: "nnhal-litert-dispatch",
        folder: "lib/nnhal/litert",
        file: "libLiteRtDispatch_nnhal.so",
        linked: None,
    },
];

#[derive(Debug, thiserror::Error)]
pub(crate) enum InstallError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Installs under `prefix`, or, for packages, under `staging` as if that were `/`. Returns what was
/// written.
pub(crate) fn install(
    workspace: &Path,
    prefix: &Path,
    staging: Option<&Path>,
    target: Option<&str>,
) -> Result<Vec<PathBuf>, InstallError> {
    let built = libraries(workspace, target)?;
    let root = match staging {
        Some(staging) => staging.join(prefix.strip_prefix("/").unwrap_or(prefix)),
        None => prefix.to_owned(),
    };
    let mut written = Vec::new();
    for (library, path) in LIBRARIES.iter().zip(&built) {
        let installed = root.join(library.folder).join(library.file);
        copy(path, &installed, &mut written)?;
        // What debuggers need takes most of the file; without the program `strip` it stays.
        let strip = Command::new("strip")
            .arg("--strip-debug")
            .arg(&installed)
            .stderr(Stdio::null())
            .status();
        drop(strip);
        let Some(linked) = &library.linked else { continue };
        let path = root.join(format!("lib/pkgconfig/{}.pc", linked.name));
        create_folder(&path)?;
        fs::write(&path, pkg_config(linked))
            .map_err(|error| InstallError::File { path: path.clone(), error })?;
        written.push(path);
    }
    for header in HEADERS {
        let from = workspace.join("include").join(header);
        copy(&from, &root.join("include/nnhal").join(header), &mut written)?;
    }
    Ok(written)
}

/// Where things are is said from the file itself, so that the whole can be moved.
fn pkg_config(linked: &Linked) -> String {
    let Linked { name, description } = linked;
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         libdir=${{prefix}}/lib\n\
         includedir=${{prefix}}/include\n\
         \n\
         Name: {name}\n\
         Description: {description}\n\
         Version: {}\n\
         Libs: -L${{libdir}} -l{name}\n\
         Cflags: -I${{includedir}}/nnhal\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// Builds the libraries and returns where they are, in the same order.
fn libraries(workspace: &Path, target: Option<&str>) -> Result<Vec<PathBuf>, BuildError> {
    let mut cargo = build::cargo(workspace, target);
    cargo.args(LIBRARIES.iter().flat_map(|library| ["--package", library.package]));
    let built = build::run(&mut cargo, &[])?;
    LIBRARIES.iter().map(|library| built.file(library.file)).collect()
}

/// Where the files of the service are, and where they are installed.
const UNITS: &str = "crates/service/systemd";

/// Builds the program and installs it with the files for systemd: units, the group that may connect, and settings, which
/// are left alone where there are some. With the prefix `/usr` settings are in `/etc`, otherwise in the prefix's `etc`.
pub(crate) fn install_service(
    workspace: &Path,
    prefix: &Path,
    staging: Option<&Path>,
    target: Option<&str>,
) -> Result<Vec<PathBuf>, InstallError> {
    let mut cargo = build::cargo(workspace, target);
    cargo.args(["--package", "nnhal-cli", "--bin", "nnhal"]);
    let program = build::run(&mut cargo, &[])?.file("nnhal")?;
    let staged = |path: &Path| match staging {
        Some(staging) => staging.join(path.strip_prefix("/").unwrap_or(path)),
        None => path.to_owned(),
    };
    let etc = if prefix == Path::new("/usr") { PathBuf::from("/etc") } else { prefix.join("etc") };
    let (bin, settings) = (prefix.join("bin/nnhal"), etc.join("nnhal/service.toml"));
    let mut written = Vec::new();
    copy(&program, &staged(&bin), &mut written)?;
    let units = workspace.join(UNITS);
    let mut write = |to: PathBuf, text: String| {
        create_folder(&to)?;
        fs::write(&to, text).map_err(|error| InstallError::File { path: to.clone(), error })?;
        written.push(to);
        Ok::<_, InstallError>(())
    };
    let read = |path: &Path| {
        let failed = |error| InstallError::File { path: path.to_owned(), error };
        fs::read_to_string(path).map_err(failed)
    };
    let unit = service_unit(&read(&units.join("nnhald.service"))?, &bin, &settings);
    let system = staged(&prefix.join("lib/systemd/system"));
    write(system.join("nnhald.service"), unit)?;
    write(system.join("nnhald.socket"), read(&units.join("nnhald.socket"))?)?;
    let group = "# May connect to the service.\ng nnhal -\n".to_owned();
    write(staged(&prefix.join("lib/sysusers.d/nnhald.conf")), group)?;
    if !staged(&settings).exists() {
        write(staged(&settings), read(&units.join("service.toml"))?)?;
    }
    Ok(written)
}

/// The unit for a program and settings that are in these places.
fn service_unit(unit: &str, program: &Path, settings: &Path) -> String {
    unit.replace("/usr/bin/nnhal", &program.display().to_string())
        .replace("/etc/nnhal/service.toml", &settings.display().to_string())
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
    fn the_unit_starts_what_was_installed() {
        let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(UNITS);
        let unit = fs::read_to_string(units.join("nnhald.service")).expect("the unit");
        let unit = service_unit(&unit, Path::new("/opt/x/bin/nnhal"), Path::new("/opt/x/e.toml"));
        let expected = "\nExecStart=/opt/x/bin/nnhal service --settings /opt/x/e.toml\n";
        assert!(unit.contains(expected), "{unit}");
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
