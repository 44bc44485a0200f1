//! For the build scripts of C libraries: the soname, and, where the linker allows it, the versions of
//! symbols.
//!
//! For a `cdylib` rustc hands the linker a version script without a name, to keep everything local
//! that is not exported. GNU's linker refuses a second one with names beside it, rustc's own (lld)
//! takes both. So it is tried: where it works, the functions are exported by the library's map
//! (`cfg(versioned)`), elsewhere by rustc, without versions, which serves everyone who loads the
//! library with `dlopen`.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All of a build script: the library is called `soname`, and `map`, a file beside the manifest, has the
/// names and their versions.
pub fn configure(soname: &str, map: &str) {
    let mut lines = vec![
        "rerun-if-changed=build.rs".to_owned(),
        format!("rerun-if-changed={map}"),
        "rustc-check-cfg=cfg(versioned)".to_owned(),
        format!("rustc-cdylib-link-arg=-Wl,-soname,{soname}"),
        // Threads of the library, which wait for work or for fences, may be running its code.
        "rustc-cdylib-link-arg=-Wl,-z,nodelete".to_owned(),
    ];
    let map = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join(map);
    match links_with_versions() {
        Ok(()) => lines.extend([
            "rustc-cfg=versioned".to_owned(),
            format!("rustc-cdylib-link-arg=-Wl,--version-script={}", map.display()),
            // The same list serves libraries with a part of the functions, as while testing.
            "rustc-cdylib-link-arg=-Wl,--undefined-version".to_owned(),
        ]),
        Err(reason) => lines.push(format!("warning={soname} without symbol versions: {reason}")),
    }
    let text: String = lines.iter().map(|line| format!("cargo::{line}\n")).collect();
    let _ = std::io::stdout().write_all(text.as_bytes());
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
