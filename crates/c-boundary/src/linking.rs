//! For the build scripts of C libraries: the soname, and, where the linker allows it, the versions of
//! symbols.
//!
//! For a `cdylib` rustc hands the linker a version script without a name, to keep everything local
//! that is not exported. GNU's linker refuses a second one with names beside it, LLVM's (lld), which is
//! rustc's own for some targets, takes both. So it is tried, with the linker that there is and then with
//! lld, if the compiler or the toolchain has one: where it works, the functions are exported by the
//! library's map (`cfg(versioned)`), elsewhere by rustc, without versions, which serves everyone who
//! loads the library with `dlopen`.

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
    match linker_of_versions() {
        Ok(arguments) => {
            let arguments = arguments.into_iter().chain([
                format!("-Wl,--version-script={}", map.display()),
                // The same list serves libraries with a part of the functions, as while testing.
                "-Wl,--undefined-version".to_owned(),
            ]);
            lines.push("rustc-cfg=versioned".to_owned());
            lines.extend(arguments.map(|argument| format!("rustc-cdylib-link-arg={argument}")));
        }
        Err(reason) => lines.push(format!("warning={soname} without symbol versions: {reason}")),
    }
    let text: String = lines.iter().map(|line| format!("cargo::{line}\n")).collect();
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Which arguments choose a linker that takes versions: none, if the one that rustc uses does.
fn linker_of_versions() -> Result<Vec<String>, String> {
    let architecture = variable("CARGO_CFG_TARGET_ARCH");
    if !["x86_64", "aarch64", "riscv64"].contains(&&*architecture) {
        return Err(format!("how to jump on {architecture} is not written down"));
    }
    let folder = PathBuf::from(variable("OUT_DIR"));
    write(&folder.join("probe.rs"), "#[unsafe(no_mangle)] pub extern \"C\" fn probe() {}\n")?;
    write(&folder.join("probe.map"), "PROBE { global: probed; };\n")?;
    if links_with_versions(&folder, &[])? {
        return Ok(Vec::new());
    }
    let lld = vec!["-fuse-ld=lld".to_owned(), format!("-B{}", folder_of_lld()?.display())];
    if links_with_versions(&folder, &lld)? {
        return Ok(lld);
    }
    Err("the linker does not take a version script beside that of rustc, and there is no lld"
        .to_owned())
}

/// Where rustup's toolchains have lld under the name by which compilers look for it; others have none there.
fn folder_of_lld() -> Result<PathBuf, String> {
    let printed = Command::new(variable("RUSTC")).args(["--print", "sysroot"]).output();
    let printed = printed.map_err(|error| format!("rustc does not start: {error}"))?;
    let sysroot = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim());
    Ok(sysroot.join("lib/rustlib").join(variable("HOST")).join("bin/gcc-ld"))
}

/// Whether a library of one function can be linked the way that the whole one will be.
fn links_with_versions(folder: &Path, arguments: &[String]) -> Result<bool, String> {
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let outcome = Command::new(variable("RUSTC"))
        .args(flags.split('\x1f').filter(|flag| !flag.is_empty()))
        .args(env::var("RUSTC_LINKER").ok().map(|linker| format!("-Clinker={linker}")))
        .args(["--crate-name=probe", "--crate-type=cdylib", "--edition=2024", "--target"])
        .arg(variable("TARGET"))
        .args(arguments.iter().map(|argument| format!("-Clink-arg={argument}")))
        .arg(format!("-Clink-arg=-Wl,--version-script={}", folder.join("probe.map").display()))
        .arg("-Clink-arg=-Wl,--undefined-version")
        .arg("-o")
        .arg(folder.join("libprobe.so"))
        .arg(folder.join("probe.rs"))
        .output()
        .map_err(|error| format!("rustc does not start: {error}"))?;
    Ok(outcome.status.success())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}
