//! Cargo for programs that are linked statically against musl, with what the machine has for that.
//!
//! Where rustup's standard library for the target is installed, that is all: musl comes with it. Otherwise the standard library
//! is compiled from its sources, and musl comes from Zig, which carries its sources too, or from the linker that one has set.

use std::env;
use std::env::consts::ARCH;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The targets that there are.
pub(crate) const TARGETS: [&str; 2] = ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"];

/// Why nothing can be built for a target.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MuslError {
    #[error("this is none of the targets that there are: {}", TARGETS.join(", "))]
    Target,
    #[error(
        "the standard library is not installed (rustup target add {target}), \
         and {sources} is not there, from which it could be built (rustup component add rust-src)"
    )]
    StandardLibrary { target: String, sources: PathBuf },
    #[error(
        "the standard library can be built from its sources, but nothing links with musl: there is no Zig \
         (pip install ziglang), and {variable} is not set"
    )]
    Linker { variable: String },
    #[error("{program} cannot be run: {error}")]
    Run { program: String, error: io::Error },
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
}

/// What programs for a target are built with.
pub(crate) struct Toolchain {
    target: String,
    parts: Parts,
}

#[derive(Debug, PartialEq)]
enum Parts {
    /// With the standard library and the musl that rustup has installed.
    Installed,
    /// With a standard library that is compiled too, linked by what is set.
    Sources,
    /// The same, linked by Zig: the words of a command that behaves as a C compiler.
    SourcesAndZig(Vec<String>),
}

impl Toolchain {
    /// What there is for this target.
    pub(crate) fn find(target: &str) -> Result<Self, MuslError> {
        if !TARGETS.contains(&target) {
            return Err(MuslError::Target);
        }
        let target = target.to_owned();
        let printed = |what: &[&str]| {
            let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            let printed = output(Command::new(&rustc).arg("--print").args(what));
            let printed =
                printed.map_err(|error| MuslError::Run { program: lossy(&rustc), error })?;
            Ok::<_, MuslError>(PathBuf::from(printed))
        };
        let installed = printed(&["target-libdir", "--target", &target])?;
        if has_standard_library(&installed) {
            return Ok(Self { target, parts: Parts::Installed });
        }
        let sources = printed(&["sysroot"])?.join("lib/rustlib/src/rust/library");
        if !sources.join("Cargo.lock").is_file() {
            return Err(MuslError::StandardLibrary { target, sources });
        }
        let variable = cargo_variable(&target, "LINKER");
        if env::var_os(&variable).is_some() {
            return Ok(Self { target, parts: Parts::Sources });
        }
        let zig = zig().ok_or(MuslError::Linker { variable })?;
        Ok(Self { target, parts: Parts::SourcesAndZig(zig) })
    }

    /// `cargo COMMAND --target TARGET`, with what that needs.
    pub(crate) fn cargo(&self, workspace: &Path, command: &OsStr) -> Result<Command, MuslError> {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut cargo = Command::new(program);
        cargo.current_dir(workspace).arg(command).args(["--target", &self.target]);
        let linker = cargo_variable(&self.target, "LINKER");
        match &self.parts {
            Parts::Installed => {
                if !self.target.starts_with(ARCH) && env::var_os(&linker).is_none() {
                    // Rust's own linker, and musl's files that come with its standard library: no cross compiler is needed.
                    cargo.env(linker, "rust-lld");
                }
                return Ok(cargo);
            }
            Parts::Sources => {}
            Parts::SourcesAndZig(zig) => {
                let wrapper = self.wrapper(workspace, zig)?;
                cargo.env(linker, &wrapper);
                let compiler = format!("CC_{}", self.target.replace('-', "_"));
                if env::var_os(&compiler).is_none() {
                    cargo.env(compiler, &wrapper);
                }
            }
        }
        // Compiling the standard library is an unstable feature, whatever compiler it is.
        cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_unwind");
        // The files of musl that rustup's standard library has are not there; the linker knows its own.
        let flags = "-C link-self-contained=no -C target-feature=+crt-static -C linker-flavor=gcc";
        let variable = cargo_variable(&self.target, "RUSTFLAGS");
        let set = env::var("RUSTFLAGS").or_else(|_| env::var(&variable)).unwrap_or_default();
        cargo.env_remove("RUSTFLAGS").env(variable, format!("{flags} {set}").trim());
        Ok(cargo)
    }

    /// A program that is Zig's C compiler for the target: a linker is named by one word.
    fn wrapper(&self, workspace: &Path, zig: &[String]) -> Result<PathBuf, MuslError> {
        let target = target_folder(workspace);
        let processor = self.target.split('-').next().unwrap_or(&self.target);
        let path = target.join(format!("zig-cc-{processor}"));
        let failed = |error| MuslError::File { path: path.clone(), error };
        fs::create_dir_all(&target).map_err(failed)?;
        // Build scripts name the target in Rust's words, which Zig does not know.
        let text = format!(
            "#!/bin/sh\n\
             for word do\n    shift\n    case $word in --target=*) ;; *) set -- \"$@\" \"$word\" ;; esac\ndone\n\
             exec {} cc -target {processor}-linux-musl \"$@\"\n",
            zig.join(" ")
        );
        // The time of a linker that has not changed stays, and with it what cargo has built.
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            return Ok(path);
        }
        fs::write(&path, text).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(path)
    }
}

/// Where cargo puts what it builds.
pub(crate) fn target_folder(workspace: &Path) -> PathBuf {
    let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    workspace.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The folder of a target exists also where only something else for it was installed.
fn has_standard_library(folder: &Path) -> bool {
    let Ok(files) = fs::read_dir(folder) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("libstd-"))
}

/// A Zig that runs: the program, or the package of Python.
fn zig() -> Option<Vec<String>> {
    let candidates: [&[&str]; 2] = [&["zig"], &["python3", "-m", "ziglang"]];
    let runs = |words: &&[&str]| {
        output(Command::new(words[0]).args(&words[1..]).arg("version").stderr(Stdio::null()))
            .is_ok_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    };
    let found = candidates.into_iter().find(runs)?;
    Some(found.iter().map(|&word| word.to_owned()).collect())
}

/// What a command prints, without its last line end; an error also where it ends with one.
fn output(command: &mut Command) -> io::Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{}: {}", output.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// The variable by which cargo knows this of a target.
fn cargo_variable(target: &str, of: &str) -> String {
    format!("CARGO_TARGET_{}_{of}", target.replace('-', "_").to_uppercase())
}

fn lossy(text: &OsString) -> String {
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_targets_that_there_are() {
        let error = Toolchain::find("riscv64gc-unknown-linux-musl").err().expect("refused");
        assert!(matches!(error, MuslError::Target), "{error}");
    }

    #[test]
    fn a_folder_without_a_standard_library_is_not_one() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!has_standard_library(&folder.path().join("none")));
        assert!(!has_standard_library(folder.path()));
        fs::write(folder.path().join("libstd-0123456789abcdef.rlib"), "").expect("a file");
        assert!(has_standard_library(folder.path()));
    }

    #[test]
    fn zig_is_a_linker_of_one_word_that_is_written_once() {
        let workspace = tempfile::tempdir().expect("a folder");
        let zig = vec!["python3".to_owned(), "-m".to_owned(), "ziglang".to_owned()];
        let toolchain =
            Toolchain { target: TARGETS[1].to_owned(), parts: Parts::SourcesAndZig(zig.clone()) };
        let path = toolchain.wrapper(workspace.path(), &zig).expect("written");
        let text = fs::read_to_string(&path).expect("a script");
        assert!(text.contains("python3 -m ziglang cc -target aarch64-linux-musl"), "{text}");
        let words = ["--target=x86_64-unknown-linux-musl", "-c", "a file"];
        fs::write(workspace.path().join("ziglang.py"), "import sys; print(sys.argv[1:])\n")
            .expect("a file");
        let zig_said = Command::new(&path).args(words).env("PYTHONPATH", workspace.path()).output();
        let zig_said = zig_said.expect("Python").stdout;
        assert_eq!(
            String::from_utf8_lossy(&zig_said).trim(),
            "['cc', '-target', 'aarch64-linux-musl', '-c', 'a file']"
        );
        let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        let before = modified(&path);
        assert_eq!(toolchain.wrapper(workspace.path(), &zig).expect("found"), path);
        assert_eq!(modified(&path), before);
    }

    #[test]
    fn cargo_gets_what_a_standard_library_from_sources_needs() {
        let workspace = tempfile::tempdir().expect("a folder");
        let toolchain = Toolchain {
            target: TARGETS[1].to_owned(),
            parts: Parts::SourcesAndZig(vec!["zig".to_owned()]),
        };
        let cargo = toolchain.cargo(workspace.path(), OsStr::new("build")).expect("a command");
        let arguments: Vec<_> = cargo.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(arguments, ["build", "--target", TARGETS[1], "-Zbuild-std=std,panic_unwind"]);
        let set = |name: &str| {
            let found = cargo.get_envs().find(|(key, _)| key.to_str() == Some(name));
            found.and_then(|(_, value)| value).map(|value| value.to_string_lossy().into_owned())
        };
        let linker = set("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER").expect("a linker");
        assert!(linker.ends_with("zig-cc-aarch64"), "{linker}");
        assert_eq!(set("CC_aarch64_unknown_linux_musl"), Some(linker));
        let flags = set("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS").expect("flags");
        assert!(flags.contains("+crt-static"), "{flags}");
    }
}
