//! Prepared models in a folder: a file for each model, device and version of it.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::SessionOptions;
use nnhal_hal::{CacheToken, Deadline, Device, PrepareOptions, PreparedModel};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What names a prepared model in the folder, and the file it is in. `None` where there can be none:
/// the device does not keep prepared models in one file, or the model is not out of a file.
pub(crate) fn entry(
    folder: &Path,
    model: &Model,
    device: &dyn Device,
    options: &SessionOptions,
) -> Result<Option<(CacheToken, PathBuf)>> {
    let files = device.cache_files_needed();
    if (files.model, files.data) != (1, 0) {
        return Ok(None);
    }
    let hash = match model.hash() {
        Err(Error::NotAFile) => return Ok(None),
        hash => hash?,
    };
    // What a prepared model is made for is part of it: it is loaded with none of these.
    let made_for = format!("{:?}", (options.threads, options.priority, options.preference));
    let (name, version) = (device.name(), device.version_string());
    let mut hasher = blake3::Hasher::new();
    for part in [&hash[..], name.as_bytes(), version.as_bytes(), made_for.as_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let token = hasher.finalize();
    let path = folder.join(format!("{}.nnhal", token.to_hex()));
    Ok(Some((token.into(), path)))
}

/// The prepared model, if the folder has it and the device takes it.
pub(crate) fn load(
    folder: &Path,
    model: &Model,
    device: &dyn Device,
    options: &SessionOptions,
    deadline: Option<Deadline>,
) -> Result<Option<Arc<dyn PreparedModel>>> {
    let Some((token, path)) = entry(folder, model, device, options)? else { return Ok(None) };
    // The device also writes to it when it finds it spoilt, so it is opened for both.
    let Ok(file) = File::options().read(true).write(true).open(path) else { return Ok(None) };
    let model_cache = vec![file.into()];
    let loaded = device.prepare_model_from_cache(PrepareOptions {
        deadline,
        model_cache,
        token,
        weights: options.weights.clone(),
        ..PrepareOptions::default()
    });
    Ok(loaded.ok())
}

/// Prepares a model, and keeps it. The file appears under its name when it is whole, so that others
/// who look at the same time never see a part. A folder that cannot be written is an error.
pub(crate) fn prepare(
    folder: &Path,
    model: &Model,
    device: &dyn Device,
    options: &SessionOptions,
    prepare: impl FnOnce(PrepareOptions) -> Result<Arc<dyn PreparedModel>>,
) -> Result<Arc<dyn PreparedModel>> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let Some((token, path)) = entry(folder, model, device, options)? else {
        return prepare(PrepareOptions::default());
    };
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let partial = path.with_extension(format!("{}-{number}.partial", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&partial);
    let file: OwnedFd = file.map_err(Error::file(&partial))?.into();
    let files = PrepareOptions { model_cache: vec![file], token, ..PrepareOptions::default() };
    let prepared = prepare(files);
    let outcome = match &prepared {
        Ok(_) => std::fs::rename(&partial, &path),
        Err(_) => std::fs::remove_file(&partial),
    };
    let prepared = prepared?;
    outcome.map_err(Error::file(&path))?;
    Ok(prepared)
}
