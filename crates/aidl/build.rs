//! Compiles the interface definitions of `aidl/`.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The version of the interface, frozen.
const VERSION: i32 = 4;
/// The folder of each package's frozen version.
const IMPORTS: [&str; 2] = ["aidl/common-2", "aidl/graphics-common-5"];
const INTERFACE: &str = "aidl/neuralnetworks-4";
const PACKAGE: &str = "android/hardware/neuralnetworks";

/// The callback is notified with null where preparing failed, as the files' comments say and their
/// signature does not: a generated type without `@nullable` could not carry it. The form on the wire is
/// the same.
const NOTIFY: [&str; 2] = [
    "in android.hardware.neuralnetworks.IPreparedModel preparedModel",
    "in @nullable android.hardware.neuralnetworks.IPreparedModel preparedModel",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=aidl");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let copied = out.join("interface");
    copy(&Path::new(INTERFACE).join(PACKAGE), &copied.join(PACKAGE))?;
    let hash = fs::read_to_string(Path::new(INTERFACE).join(".hash"))?;

    let mut builder = rsbinder_aidl::Builder::new().output("interface.rs").set_async_support(false);
    for import in IMPORTS {
        builder = builder.include_dir(import).source(import);
    }
    let mut files: Vec<PathBuf> = fs::read_dir(copied.join(PACKAGE))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    files.sort();
    for file in files {
        builder = builder.source(&file).version(VERSION).hash(hash.trim());
    }
    builder
        .source("aidl/nnhal")
        .include_dir(&copied)
        .generate()
        .map_err(|error| format!("{error:?}"))?;
    Ok(())
}

/// Copies the files, with the one change.
fn copy(from: &Path, to: &Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let mut text = fs::read_to_string(entry.path())?;
        if entry.file_name() == "IPreparedModelCallback.aidl" {
            let changed = text.replace(NOTIFY[0], NOTIFY[1]);
            if changed == text {
                return Err("IPreparedModelCallback.notify is not as expected".into());
            }
            text = changed;
        }
        fs::write(to.join(entry.file_name()), text)?;
    }
    Ok(())
}
