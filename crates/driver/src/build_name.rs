//! Which build this is (contract: DEV-INFO-1).
//!
//! An engine and the driver over it are linked into one file, an executable or a library. Its bytes
//! are what differs between builds, so their hash names the build, and no one has to remember to
//! change a version.

use crate::known_files;
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Names the build that this code runs in: 16 hexadecimal digits; `unknown` where the system does not
/// say which file that is, or the file is gone. The file is read once, by the first process that runs it.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let named = own_file().and_then(|path| hash(&path));
        named.unwrap_or_else(|error| {
            tracing::warn!(%error, "the build of the driver is not known");
            "unknown".to_owned()
        })
    })
}

/// The file that this code was loaded from.
fn own_file() -> io::Result<PathBuf> {
    let code: fn() -> io::Result<PathBuf> = own_file;
    let address = code as usize as u64;
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let file = maps.lines().find_map(|line| mapped_file(line, address));
    file.ok_or_else(|| io::Error::other("no file is mapped where the code is"))
}

/// The file of a line of `/proc/self/maps`, if the address is in it: `begin-end rwxp offset device
/// inode path`.
fn mapped_file(line: &str, address: u64) -> Option<PathBuf> {
    let (range, rest) = line.split_once(' ')?;
    let (begin, end) = range.split_once('-')?;
    let [begin, end] = [begin, end].map(|hex| u64::from_str_radix(hex, 16).ok());
    let path = rest.find('/').map(|at| PathBuf::from(&rest[at..]))?;
    (begin? <= address && address < end?).then_some(path)
}

fn hash(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let hash = known_files::hash_of("all bytes", &file, 0, length, || -> io::Result<_> {
        let (mut file, mut hasher) = (&file, Hasher::new());
        let mut portion = vec![0; 1 << 16];
        loop {
            match file.read(&mut portion)? {
                0 => return Ok(hasher.finalize().into()),
                length => hasher.update(&portion[..length]),
            };
        }
    })?;
    Ok(Hash::from_bytes(hash).to_hex()[..16].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dev_info_1_the_build_is_named_by_the_file_it_is_in() {
        let executable = Path::new("/proc/self/exe");
        assert_eq!(own_file().unwrap(), executable.read_link().unwrap());
        assert_eq!(build(), hash(executable).unwrap());
        // Any other build is another file.
        let other = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(executable, other.path()).unwrap();
        assert_eq!(hash(other.path()).unwrap(), build());
        let length = other.as_file().metadata().unwrap().len();
        other.as_file().set_len(length + 1).unwrap();
        assert_ne!(hash(other.path()).unwrap(), build());
    }

    #[test]
    fn a_file_is_found_by_the_addresses_that_it_is_mapped_at() {
        let line = "7f00-7fff r-xp 00001000 fd:01 42     /opt/a folder/libdriver.so";
        let path = PathBuf::from("/opt/a folder/libdriver.so");
        assert_eq!(mapped_file(line, 0x7f00), Some(path.clone()));
        assert_eq!(mapped_file(line, 0x7ffe), Some(path));
        assert_eq!(mapped_file(line, 0x7fff), None);
        assert_eq!(mapped_file("7f00-7fff rw-p 00000000 00:00 0", 0x7f00), None);
        assert_eq!(mapped_file("", 0), None);
    }
}
