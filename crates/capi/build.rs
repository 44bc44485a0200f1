//! Gives the library its soname and, where the linker allows it, the versions of its symbols.
//!
//! For a `cdylib` rustc hands the linker a version script without a name, to keep everything local
//! that is not exported. GNU's linker refuses a second one with names beside it, rustc's own (lld)
//! takes both. So it is tried: where it works, the functions are exported by `neuralnetworks.map`
//! (`cfg(versioned)`), elsewhere by rustc, without versions, which serves everyone who loads the
//! library with `dlopen`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=neuralnetworks.map");
    println!("cargo::rustc-check-cfg=cfg(versioned)");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libneuralnetworks.so");
    // Threads of the library, which wait for work or for fences, may be running its code.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let map = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("neuralnetworks.map");
    match links_with_versions() {
        Ok(()) => {
            println!("cargo::rustc-cfg=versioned");
            println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={}", map.display());
            // The same list serves libraries with a part of the functions, as while testing.
            println!("cargo::rustc-cdylib-link-arg=-Wl,--undefined-version");
        }
        Err(reason) => {
            println!("cargo::warning=libneuralnetworks.so without symbol versions: {reason}");
        }
    }
}

/// Links a library of one function the way that the whole one will be linked.
fn links_with_versions() -> Result<(), String> {
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    if !["x86_64", "aarch64", "riscv64"].contains(&&*architecture) {
        return Err(format!("how to jump on {architecture} is not written down"));
    }
    let folder = PathBuf::from(variable("OUT_DIR"));
    let source = folder.join("probe.rs");
    let map = folder.join("probe.map");
    write(&source, "#[unsafe(no_mangle)] pub extern \"C\" fn probe() {}\n")?;
    write(&map, "PROBE { global: probed; };\n")?;
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let outcome = Command::new(variable("RUSTC"))
        .args(flags.split('\x1f').filter(|flag| !flag.is_empty()))
        .args(env::var("RUSTC_LINKER").ok().map(|linker| format!("-Clinker={linker}")))
        .args(["--crate-name=probe", "--crate-type=cdylib", "--edition=2024", "--target"])
        .arg(variable("TARGET"))
        .arg(format!("-Clink-arg=-Wl,--version-script={}", map.display()))
        .arg("-Clink-arg=-Wl,--undefined-version")
        .arg("-o")
        .arg(folder.join("libprobe.so"))
        .arg(&source)
        .output()
        .map_err(|error| format!("rustc does not start: {error}"))?;
    if outcome.status.success() {
        Ok(())
    } else {
        Err("the linker does not take a version script beside that of rustc".to_owned())
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
