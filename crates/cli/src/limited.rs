//! Files, pipes and devices, read up to a limit: what a name leads to may have no end.

use crate::error::{CliError, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Whether a name means standard input.
pub fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// All bytes, `most` of them or fewer.
///
/// # Errors
/// It cannot be read, has more bytes, or there is no memory for them.
pub fn read(path: &Path, most: usize) -> Result<Vec<u8>> {
    if is_standard_input(path) {
        return read_from(std::io::stdin().lock(), "standard input".as_ref(), most);
    }
    let file = File::open(path).map_err(CliError::file(path))?;
    // A pipe or device has no length.
    if file.metadata().map_err(CliError::file(path))?.len() > most as u64 {
        return Err(too_long(path, most));
    }
    read_from(file, path, most)
}

fn read_from(from: impl Read, path: &Path, most: usize) -> Result<Vec<u8>> {
    let limit = (most as u64).saturating_add(1);
    let mut bytes = Vec::new();
    from.take(limit).read_to_end(&mut bytes).map_err(CliError::file(path))?;
    if bytes.len() > most { Err(too_long(path, most)) } else { Ok(bytes) }
}

fn too_long(path: &Path, most: usize) -> CliError {
    CliError::Input(format!("{}: more than {most} bytes, which is the limit", path.display()))
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
