//! Handles of cache files, on their way to the device.

use crate::handle::Handle;
use nnhal_hal::{CacheFilesNeeded, Error};
use rustix::fs::{OFlags, fcntl_getfl};
use std::os::fd::OwnedFd;

/// Descriptors of the model cache and of the data cache, in the client's order (contract: CACHE-2).
#[derive(Debug, Default)]
pub struct CacheFiles {
    /// Those of the model cache.
    pub model: Vec<OwnedFd>,
    /// Those of the data cache.
    pub data: Vec<OwnedFd>,
}

/// What is wrong with the handles of a cache.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CacheError {
    /// Contract: CACHE-6.
    #[error("the device does not cache compilations")]
    NotSupported,
    /// Contract: CACHE-7.
    #[error("{found} handles of {kind} cache files, expected {expected}")]
    Count {
        /// `model` or `data`.
        kind: &'static str,
        /// How many there are.
        found: usize,
        /// How many the device needs.
        expected: u32,
    },
    /// Contract: CACHE-2, CACHE-7.
    #[error("handle {index} of the {kind} cache holds {found} descriptors, expected 1")]
    Handle {
        /// `model` or `data`.
        kind: &'static str,
        /// Its place among them.
        index: usize,
        /// Its descriptors.
        found: usize,
    },
    /// Contract: CACHE-8.
    #[error("descriptor {index} of the {kind} cache is not open for reading and writing")]
    Access {
        /// `model` or `data`.
        kind: &'static str,
        /// Its place among them.
        index: usize,
    },
    /// The system has no more descriptors.
    #[error("descriptor {index} of the {kind} cache cannot be duplicated: {why}")]
    Duplicate {
        /// `model` or `data`.
        kind: &'static str,
        /// Its place among them.
        index: usize,
        /// The system's words.
        why: String,
    },
}

impl From<CacheError> for Error {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::Count { .. } | CacheError::Handle { .. } => Self::invalid(error),
            _ => Self::failure(error),
        }
    }
}

impl CacheFiles {
    /// Where to save: nowhere unless all is as it must be, which is never an error (contract:
    /// PREP-7, PREP-8, CACHE-4). Whether the descriptors can be written is for the device to see.
    pub fn to_save(needed: CacheFilesNeeded, model: &[Handle], data: &[Handle]) -> Self {
        let files = counted("model", needed.model, model).and_then(|model| {
            let data = counted("data", needed.data, data)?;
            Ok(Self { model, data })
        });
        files.unwrap_or_else(|error| {
            if !model.is_empty() || !data.is_empty() {
                tracing::debug!(%error, "the compilation is not cached");
            }
            Self::default()
        })
    }

    /// What to load.
    pub fn to_load(
        needed: CacheFilesNeeded,
        model: &[Handle],
        data: &[Handle],
    ) -> Result<Self, CacheError> {
        if needed == CacheFilesNeeded::default() {
            return Err(CacheError::NotSupported);
        }
        let files = Self {
            model: counted("model", needed.model, model)?,
            data: counted("data", needed.data, data)?,
        };
        for (kind, files) in [("model", &files.model), ("data", &files.data)] {
            for (index, file) in files.iter().enumerate() {
                let mode = fcntl_getfl(file).map(|flags| flags & OFlags::RWMODE);
                if mode != Ok(OFlags::RDWR) {
                    return Err(CacheError::Access { kind, index });
                }
            }
        }
        Ok(files)
    }
}

/// As many handles as needed, each of one descriptor, duplicated (contract: PREP-11).
fn counted(
    kind: &'static str,
    expected: u32,
    handles: &[Handle],
) -> Result<Vec<OwnedFd>, CacheError> {
    if u32::try_from(handles.len()) != Ok(expected) {
        return Err(CacheError::Count { kind, found: handles.len(), expected });
    }
    let handles = handles.iter().enumerate();
    handles
        .map(|(index, handle)| match handle.fds() {
            [file] => file.try_clone().map_err(|error| CacheError::Duplicate {
                kind,
                index,
                why: error.to_string(),
            }),
            fds => Err(CacheError::Handle { kind, index, found: fds.len() }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::ErrorStatus;
    use std::fs::File;

    const NEEDED: CacheFilesNeeded = CacheFilesNeeded { model: 1, data: 2 };

    fn file() -> OwnedFd {
        tempfile::tempfile().unwrap().into()
    }

    fn handles(count: usize) -> Vec<Handle> {
        (0..count).map(|_| Handle::of_fd(file())).collect()
    }

    #[test]
    fn cache_4_and_prep_7_what_is_wrong_is_not_saved_and_no_error() {
        let saved = |model: &[Handle], data: &[Handle]| {
            let files = CacheFiles::to_save(NEEDED, model, data);
            (files.model.len(), files.data.len())
        };
        assert_eq!(saved(&handles(1), &handles(2)), (1, 2));
        assert_eq!(saved(&[], &[]), (0, 0));
        assert_eq!(saved(&handles(2), &handles(2)), (0, 0));
        assert_eq!(saved(&handles(1), &handles(1)), (0, 0));
        assert_eq!(saved(&[Handle::NULL], &handles(2)), (0, 0));
        assert_eq!(saved(&[Handle::new(vec![file(), file()], vec![])], &handles(2)), (0, 0));
    }

    #[test]
    fn cache_6_and_7_what_is_wrong_is_not_loaded() {
        let refused = |needed, model: &[Handle], data: &[Handle]| {
            Error::from(CacheFiles::to_load(needed, model, data).unwrap_err()).status()
        };
        let none = CacheFilesNeeded::default();
        assert_eq!(refused(none, &[], &[]), ErrorStatus::GeneralFailure);
        assert_eq!(refused(none, &handles(1), &[]), ErrorStatus::GeneralFailure);
        let invalid = ErrorStatus::InvalidArgument;
        assert_eq!(refused(NEEDED, &handles(2), &handles(2)), invalid);
        assert_eq!(refused(NEEDED, &handles(1), &handles(3)), invalid);
        assert_eq!(refused(NEEDED, &[Handle::NULL], &handles(2)), invalid);
        let two = Handle::new(vec![file(), file()], vec![]);
        assert_eq!(refused(NEEDED, &[two], &handles(2)), invalid);
        assert!(CacheFiles::to_load(NEEDED, &handles(1), &handles(2)).is_ok());
    }

    #[test]
    fn cache_8_a_descriptor_for_one_direction_only_is_a_failure() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let reading = File::open(named.path()).unwrap();
        let writing = File::options().write(true).open(named.path()).unwrap();
        for file in [reading, writing] {
            let model = [Handle::of_fd(file.into())];
            let refused = CacheFiles::to_load(NEEDED, &model, &handles(2)).unwrap_err();
            assert_eq!(refused, CacheError::Access { kind: "model", index: 0 });
            assert_eq!(Error::from(refused).status(), ErrorStatus::GeneralFailure);
        }
    }
}
