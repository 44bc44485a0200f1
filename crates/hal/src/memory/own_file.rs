//! [`OwnFile`]: the pages of a file that only this user can write, used where they are.

#![allow(unsafe_code)]

use memmap2::{Advice, Mmap, MmapOptions};
use rustix::process::geteuid;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The bits that let anyone but the owner write. Where there are access lists, the group's bit says whether one of them does.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The bytes of a file that only this user can write. They begin on a page, and are those of all processes that
/// map the file.
///
/// Nothing keeps the user's own programs from writing them. The bytes are those of the file at all times, and the process is
/// killed (`SIGBUS`) when it reads a part that was cut off: this is for files that are replaced, and never written again
/// under the name that they are found by.
#[derive(Debug)]
pub struct OwnFile(Mmap);

impl AsRef<[u8]> for OwnFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps all of a file. `None`: it is not a file, it is empty, it is another user's, others may write it, or it cannot be mapped.
pub fn map_own_file(file: &File) -> Option<OwnFile> {
    let metadata = file.metadata().ok()?;
    let is_own = metadata.uid() == geteuid().as_raw();
    if !metadata.is_file() || !is_own || metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return None;
    }
    let length = usize::try_from(metadata.len()).ok().filter(|length| *length > 0)?;
    let mut options = MmapOptions::new();
    // SAFETY: the bytes must not change, nor be cut off, while there are references to them. Another user can do neither: the file was
    // found to be this user's, and writable by no one else. Callers map files only that this user's programs
    // replace instead of writing them, as the type's description asks of them.
    let pages = unsafe { options.len(length).map(file) }.ok()?;
    // Reading from a disk begins at once; what is in memory is not touched.
    let _ = pages.advise(Advice::WillNeed);
    Some(OwnFile(pages))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn an_own_file_is_mapped_where_it_is() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..100_000_u32).map(|it| it.to_le_bytes()[0]).collect();
        file.write_all(&bytes).unwrap();
        let (first, second) = (map_own_file(&file).unwrap(), map_own_file(&file).unwrap());
        drop(file);
        assert_eq!(first.as_ref(), bytes);
        assert_eq!(second.as_ref(), bytes);
        assert_eq!(first.as_ref().as_ptr().align_offset(4096), 0);
    }

    #[test]
    fn what_others_could_write_is_not_mapped() {
        let mut file = tempfile::tempfile().unwrap();
        assert!(map_own_file(&file).is_none(), "empty");
        file.write_all(&[1; 5000]).unwrap();
        for (mode, is_mapped) in [(0o600, true), (0o644, true), (0o660, false), (0o602, false)] {
            file.set_permissions(PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(map_own_file(&file).is_some(), is_mapped, "{mode:o}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert!(map_own_file(&File::open(folder.path()).unwrap()).is_none());
        assert!(map_own_file(&File::open("/dev/null").unwrap()).is_none());
        // Of the kernel's, and so of another user's for all but root, whose it is.
        let others = File::open("/proc/version").unwrap();
        assert!(map_own_file(&others).is_none(), "it has no bytes that can be mapped");
    }
}
