//! [`CacheFiles`]: the descriptors that a client gives.

use super::ModelCache;
use super::error::{CacheError, FileKind};
use nnhal_hal::CacheToken;
use nnhal_hal::memory::Protection;
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::File;
use std::os::fd::OwnedFd;

/// The files and the token of a call. Where the descriptors stand in their files does not matter,
/// and is left as it is (contract: CACHE-2).
#[derive(Debug, Clone, Copy)]
pub struct CacheFiles<'a> {
    /// The model cache.
    pub model: &'a [OwnedFd],
    /// The data cache.
    pub data: &'a [OwnedFd],
    /// What the client knows the compilation by.
    pub token: &'a CacheToken,
}

impl CacheFiles<'_> {
    /// The one file, as a duplicate that is close-on-exec (contract: SEC-6), if there are as many
    /// files as [`ModelCache::FILES_NEEDED`] and each is open for reading and writing (contract:
    /// CACHE-4, CACHE-7, CACHE-8, CACHE-14).
    pub(super) fn only_model_file(&self) -> Result<File, CacheError> {
        let needed = ModelCache::FILES_NEEDED;
        expect_count(FileKind::Data, self.data.len(), needed.data)?;
        expect_count(FileKind::Model, self.model.len(), needed.model)?;
        self.model.iter().try_for_each(check_access)?;
        let file = File::from(self.model[0].try_clone().map_err(CacheError::system("dup"))?);
        let metadata = file.metadata().map_err(CacheError::system("fstat"))?;
        if metadata.is_file() { Ok(file) } else { Err(CacheError::NotAFile) }
    }
}

fn expect_count(kind: FileKind, found: usize, expected: u32) -> Result<(), CacheError> {
    if u32::try_from(found) == Ok(expected) {
        return Ok(());
    }
    Err(CacheError::Count { kind, found, expected })
}

fn check_access(fd: &OwnedFd) -> Result<(), CacheError> {
    let flags = fcntl_getfl(fd).map_err(|error| CacheError::system("fcntl")(error.into()))?;
    let mode = flags & OFlags::RWMODE;
    let usable = !flags.contains(OFlags::PATH);
    let found = Protection {
        read: usable && mode != OFlags::WRONLY,
        write: usable && mode != OFlags::RDONLY,
    };
    if found == Protection::READ_WRITE { Ok(()) } else { Err(CacheError::Access { found }) }
}
