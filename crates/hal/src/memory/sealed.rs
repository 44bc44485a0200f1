//! [`Sealed`]: memory that no one can write any more, which processes share.

#![allow(unsafe_code)]

use super::error::MemoryError;
use memmap2::{Mmap, MmapOptions};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::fs::{fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

/// What keeps bytes as they are, and all of them there.
const LASTING: SealFlags = SealFlags::WRITE.union(SealFlags::SHRINK).union(SealFlags::GROW);

/// The bytes of a memfd that the system lets no one write, shorten or make longer. They begin on a page.
#[derive(Debug)]
pub struct Sealed(Mmap);

impl AsRef<[u8]> for Sealed {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps all of a memfd, if it is sealed against writing, shrinking and growing, and has all of its pages:
/// to look at one that it does not have would make it. `None`: it is another file, or cannot be mapped.
pub fn map_sealed(file: &File) -> Option<Sealed> {
    let seals = fcntl_get_seals(file).ok()?;
    if !seals.contains(LASTING) {
        return None;
    }
    let metadata = file.metadata().ok()?;
    let is_whole = metadata.blocks().checked_mul(512)? >= metadata.len();
    if metadata.len() == 0 || !is_whole {
        return None;
    }
    let mut options = MmapOptions::new();
    options.len(usize::try_from(metadata.len()).ok()?);
    // Private, because some systems refuse a shared mapping of what is sealed, though it is for reading only. As
    // long as nothing is written, and nothing can be, the pages are the file's.
    //
    // SAFETY: the bytes must not change while there are references to them. The seals were found to be there
    // before the pages are mapped, cannot be taken away, and keep every process from writing the file, by
    // call or mapping, and from shortening it.
    let pages = unsafe { options.map_copy_read_only(file) };
    pages.ok().map(Sealed)
}

/// A memfd with what `read` gives, `length` bytes, sealed so that [`map_sealed`] takes it.
///
/// # Errors
/// [`MemoryError::System`]: the system has no more memory, or reading failed.
pub fn seal(length: u64, mut from: impl std::io::Read) -> Result<File, MemoryError> {
    let failed = |call: &'static str| {
        move |error: std::io::Error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            MemoryError::system(call)(errno)
        }
    };
    let fd = memfd_create("nnhal-sealed", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(MemoryError::system("memfd_create"))?;
    let mut file = File::from(fd);
    let mut limited = std::io::Read::take(&mut from, length);
    let copied = std::io::copy(&mut limited, &mut file).map_err(failed("write"))?;
    if copied != length {
        return Err(MemoryError::system("read")(Errno::IO));
    }
    file.flush().map_err(failed("write"))?;
    fcntl_add_seals(&file, LASTING | SealFlags::SEAL).map_err(MemoryError::system("fcntl"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::ftruncate;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_sealed_can_be_read_and_not_changed() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|it| it.to_le_bytes()[0]).collect();
        let file = seal(100_000, &bytes[..]).unwrap();
        let sealed = map_sealed(&file).unwrap();
        assert_eq!(sealed.as_ref(), bytes);
        assert_eq!(sealed.as_ref().as_ptr().align_offset(64), 0);
        assert!(file.write_all_at(&[9], 0).is_err());
        assert!(ftruncate(&file, 10).is_err());
        assert!(MmapOptions::new().len(100_000).map_raw(&file).is_err(), "not to be written");
        drop(file);
        assert_eq!(sealed.as_ref(), bytes);
    }

    #[test]
    fn what_others_could_change_is_not_mapped() {
        let with = |seals: SealFlags| {
            let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
            let file = File::from(memfd_create("nnhal", flags).unwrap());
            file.write_all_at(&[1; 5000], 0).unwrap();
            fcntl_add_seals(&file, seals).unwrap();
            map_sealed(&file).is_some()
        };
        assert!(with(LASTING));
        for missing in [SealFlags::WRITE, SealFlags::SHRINK, SealFlags::GROW] {
            assert!(!with(LASTING.difference(missing)), "{missing:?}");
        }
        assert!(!with(SealFlags::FUTURE_WRITE | SealFlags::SHRINK | SealFlags::GROW));
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&[1; 5000], 0).unwrap();
        assert!(map_sealed(&file).is_none());
    }

    #[test]
    fn holes_are_not_filled_by_looking() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("nnhal", flags).unwrap());
        ftruncate(&file, 1 << 30).unwrap();
        fcntl_add_seals(&file, LASTING).unwrap();
        assert!(map_sealed(&file).is_none());
    }

    #[test]
    fn fewer_bytes_than_were_said_are_an_error() {
        assert!(seal(10, &[1_u8; 9][..]).is_err());
        assert_eq!(map_sealed(&seal(5, &[7_u8; 9][..]).unwrap()).unwrap().as_ref(), [7; 5]);
    }
}
