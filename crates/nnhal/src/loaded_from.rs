//! [`LoadedFrom`]: a prepared model in a file of its own, to measure how long loading takes.

use crate::error::{Error, Result};
use crate::prepared::Prepared;
use nnhal_hal::{CacheToken, CacheTrust, HalVersion, PrepareOptions, PreparedModel};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

/// A prepared model that is kept in a file without a name, to be loaded again and again.
pub(crate) struct LoadedFrom<'a> {
    prepared: &'a Prepared,
    file: File,
}

/// Names the prepared model in a file that holds no other.
const ONLY: CacheToken = [1; 32];

impl<'a> LoadedFrom<'a> {
    /// Prepares a session's model once more, to be kept.
    pub(crate) fn a_temporary_file(prepared: &'a Prepared) -> Result<Self> {
        let files = prepared.device.cache_files_needed();
        if (files.model, files.data) != (1, 0) {
            let why = "it does not keep prepared models in a file";
            return Err(prepared.error(nnhal_hal::Error::failure(why)));
        }
        let folder = std::env::temp_dir();
        let path = folder.join(format!("nnhal-{}.partial", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&path);
        let file = file.map_err(Error::file(&path))?;
        std::fs::remove_file(&path).map_err(Error::file(&path))?;
        let copy: OwnedFd = file.try_clone().map_err(Error::file(&path))?.into();
        let options =
            PrepareOptions { model_cache: vec![copy], token: ONLY, ..PrepareOptions::default() };
        let device = &prepared.device;
        let kept = device.prepare_model(prepared.model.hal(), HalVersion::LATEST, options);
        kept.map_err(|error| prepared.error(error))?;
        Ok(Self { prepared, file })
    }

    /// Loads it, as sessions load a prepared model that was not changed since it was written.
    pub(crate) fn load(&self) -> Result<Arc<dyn PreparedModel>> {
        let path = Path::new("a temporary file");
        let file: OwnedFd = self.file.try_clone().map_err(Error::file(path))?.into();
        let device = &self.prepared.device;
        let options = PrepareOptions {
            model_cache: vec![file],
            token: ONLY,
            // It has no name, so no one else writes it.
            cache_trust: CacheTrust::WhileLoading,
            ..PrepareOptions::default()
        };
        device.prepare_model_from_cache(options).map_err(|error| self.prepared.error(error))
    }
}
