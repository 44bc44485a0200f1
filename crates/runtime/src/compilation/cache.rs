//! Where compilations are kept from one process to the next.

use crate::devices::Device;
use crate::partition::PlanOptions;
use hal::{CacheFilesNeeded, CacheToken, Deadline, PrepareOptions, PreparedModel};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Open files for a cached compilation, as many of each kind as the device wants.
#[derive(Debug, Default)]
pub struct CacheFiles {
    /// For the model cache.
    pub model: Vec<OwnedFd>,
    /// For the data cache.
    pub data: Vec<OwnedFd>,
}

/// Where compilations are kept, and what names this one.
#[derive(Debug)]
pub(crate) struct Caching {
    place: Place,
    token: CacheToken,
}

#[derive(Debug)]
enum Place {
    Directory(PathBuf),
    Files(CacheFiles),
}

impl Caching {
    pub(super) fn directory(directory: &Path, token: CacheToken) -> Self {
        Self { place: Place::Directory(directory.to_owned()), token }
    }

    pub(super) fn files(files: CacheFiles, token: CacheToken) -> Self {
        Self { place: Place::Files(files), token }
    }
}

/// Names what one step's device keeps, and where.
#[derive(Debug)]
pub(crate) struct StepKey {
    place: StepPlace,
    token: CacheToken,
}

#[derive(Debug)]
enum StepPlace {
    /// Files with this beginning of their paths.
    Paths(PathBuf),
    Files(CacheFiles),
}

impl Caching {
    /// The key of a step. Each device, part of the model, preference and priority has its own, so
    /// that what was prepared otherwise is never found.
    pub(crate) fn step_key(
        caching: Option<&Self>,
        device: &Device,
        options: &PlanOptions,
        number: usize,
        operations: &[usize],
    ) -> Option<StepKey> {
        let caching = caching?;
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(&caching.token);
        add(device.name().as_bytes());
        add(device.version_string().as_bytes());
        add(&options.preference.code().to_le_bytes());
        add(&options.priority.code().to_le_bytes());
        add(&(number as u64).to_le_bytes());
        for operation in operations {
            add(&(*operation as u64).to_le_bytes());
        }
        let token: CacheToken = *hasher.finalize().as_bytes();
        let place = match &caching.place {
            Place::Directory(directory) => {
                // As Android's library names them (CAPI-3): low half of each byte first, from A on.
                let letters = token.iter().flat_map(|byte| [byte & 0xF, byte >> 4]);
                let name: String = letters.map(|half| char::from(b'A' + half)).collect();
                StepPlace::Paths(directory.join(name))
            }
            // Files are for one part only.
            Place::Files(files) if number == 0 => StepPlace::Files(CacheFiles {
                model: duplicates(&files.model)?,
                data: duplicates(&files.data)?,
            }),
            Place::Files(_) => return None,
        };
        Some(StepKey { place, token })
    }
}

fn duplicates(files: &[OwnedFd]) -> Option<Vec<OwnedFd>> {
    files.iter().map(|file| file.try_clone().ok()).collect()
}

/// Whether files are made where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    ToLoad,
    ToSave,
}

impl StepKey {
    /// What was saved before; `None` if there is nothing, or the device does not take it.
    pub(crate) fn load(
        &self,
        device: &Device,
        deadline: Option<Deadline>,
    ) -> Option<Arc<dyn PreparedModel>> {
        let CacheFiles { model, data } = self.files(device, Open::ToLoad)?;
        let loaded = device.hal().prepare_model_from_cache(deadline, model, data, &self.token);
        loaded.inspect_err(|error| tracing::debug!(%error, "nothing in the cache")).ok()
    }

    /// Says where to save what is prepared. That it cannot be saved is nothing to the client.
    pub(crate) fn save_to(&self, device: &Device, options: &mut PrepareOptions) {
        if let Some(files) = self.files(device, Open::ToSave) {
            options.model_cache = files.model;
            options.data_cache = files.data;
            options.token = self.token;
        }
    }

    /// As many files as the device wants; `None` if it does not cache, or they cannot be had.
    fn files(&self, device: &Device, open: Open) -> Option<CacheFiles> {
        let CacheFilesNeeded { model, data } = device.cache_files_needed();
        if (model, data) == (0, 0) {
            return None;
        }
        match &self.place {
            StepPlace::Paths(path) => {
                let files = |kind: char, count: u32| -> Option<Vec<OwnedFd>> {
                    (0..count).map(|number| self::open(path, kind, number, open)).collect()
                };
                Some(CacheFiles { model: files('1', model)?, data: files('2', data)? })
            }
            StepPlace::Files(files) => {
                let is_enough =
                    files.model.len() == model as usize && files.data.len() == data as usize;
                if !is_enough {
                    return None;
                }
                Some(CacheFiles {
                    model: duplicates(&files.model)?,
                    data: duplicates(&files.data)?,
                })
            }
        }
    }
}

/// A file of the cache: the model's are 1, the data's 2, and each has a number.
fn open(path: &Path, kind: char, number: u32, how: Open) -> Option<OwnedFd> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("{kind}{number}"));
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    if how == Open::ToSave {
        options.create(true).truncate(true);
    }
    let opened = options.open(name);
    opened.inspect_err(|error| tracing::debug!(%error, "a file of the cache")).ok().map(Into::into)
}
