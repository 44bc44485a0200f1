//! Gives this build a number, so that programs that another build saved are not restored: their
//! packed weights are as its kernels read them. (Where this crate is built from its package, the kernels
//! are not beside it; the driver, which names the whole file by its contents, distinguishes builds then.)

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

fn main() {
    let mut hasher = DefaultHasher::new();
    for folder in ["src", "../kernels/src"] {
        println!("cargo::rerun-if-changed={folder}");
        hash(Path::new(folder), &mut hasher);
    }
    println!("cargo::rustc-env=NNHAL_CPU_BUILD={:016x}", hasher.finish());
}

/// The names and contents of all files of a folder.
fn hash(path: &Path, hasher: &mut DefaultHasher) {
    let Ok(entries) = fs::read_dir(path) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash(&path, hasher);
        } else {
            (path.file_name(), fs::read(&path).ok()).hash(hasher);
        }
    }
}
