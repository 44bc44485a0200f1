//! Files, pipes and devices, read up to a limit: what a name leads to may have no end.

use crate::error::{CliError, Result};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The names that mean standard input.
pub const STANDARD_INPUT: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Whether a name means standard input.
pub fn is_standard_input(path: &Path) -> bool {
    STANDARD_INPUT.iter().any(|name| path == Path::new(name))
}

/// Whether a name means what can be read once only, but has an end: standard input or a pipe.
pub fn is_pipe(path: &Path) -> bool {
    is_standard_input(path)
        || std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// All bytes, `most` of them or fewer.
///
/// # Errors
/// It cannot be read, has more bytes, or there is no memory for them.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>> {
    if length(path)?.is_some_and(|length| length > most as u64) {
        return Err(too_long(path, most));
    }
    read_behind(Vec::new(), open(path)?, path, most)
}

/// A file, or standard input.
///
/// # Errors
/// It cannot be opened.
pub fn open(path: &Path) -> Result<Box<dyn Read>> {
    if is_standard_input(path) {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(File::open(path).map_err(CliError::file(path))?))
}

/// How many bytes a file has; `None` of a pipe or device, which can be read once only.
///
/// # Errors
/// It is not there.
pub fn length(path: &Path) -> Result<Option<u64>> {
    if is_standard_input(path) {
        return Ok(None);
    }
    let metadata = std::fs::metadata(path).map_err(CliError::file(path))?;
    Ok(metadata.is_file().then_some(metadata.len()))
}

/// The next bytes, `most` of them or fewer.
///
/// # Errors
/// They cannot be read, or there is no memory for them.
pub fn read_from(from: impl Read, path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most).read_to_end(&mut bytes).map_err(CliError::file(shown(path)))?;
    Ok(bytes)
}

/// All bytes, the first of which have been read; `most` of them or fewer.
///
/// # Errors
/// As [`read`].
pub fn read_behind(first: Vec<u8>, from: impl Read, path: &Path, most: usize) -> Result<Vec<u8>> {
    let mut bytes = first;
    let left = (most as u64).saturating_add(1).saturating_sub(bytes.len() as u64);
    from.take(left).read_to_end(&mut bytes).map_err(CliError::file(shown(path)))?;
    if bytes.len() > most { Err(too_long(path, most)) } else { Ok(bytes) }
}

fn shown(path: &Path) -> &Path {
    if is_standard_input(path) { Path::new("standard input") } else { path }
}

fn too_long(path: &Path, most: usize) -> CliError {
    let path = shown(path).display();
    CliError::Input(format!("{path}: more than {most} bytes, which is the limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_end_is_refused() {
        let refused = read("/dev/zero".as_ref(), 1000).unwrap_err().to_string();
        assert_eq!(refused, "/dev/zero: more than 1000 bytes, which is the limit");
    }

    #[test]
    fn a_file_may_have_as_many_bytes_as_the_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [7; 1000]).unwrap();
        assert_eq!(read(file.path(), 1000).unwrap(), [7; 1000]);
        assert!(read(file.path(), 999).is_err());
    }
}
