//! Where compilations are kept from one process to the next.

use super::PlanOptions;
use crate::devices::Device;
use nnhal_hal::{
    CacheFilesNeeded, CacheToken, Deadline, ExtensionType, Hints, PrepareOptions, PreparedModel,
    TokenValuePair,
};
use rustix::fs::OFlags;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
    pub(crate) fn directory(directory: &Path, token: CacheToken) -> Self {
        Self { place: Place::Directory(directory.to_owned()), token }
    }

    pub(crate) fn files(files: CacheFiles, token: CacheToken) -> Self {
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
    /// The key of a step. Each device, part of the model, preference, priority and set of extensions' attributes has its own,
    /// so that what was prepared otherwise is never found.
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
        for (extension, number, value) in sorted(&options.hints) {
            add(extension.as_bytes());
            add(&number.to_le_bytes());
            add(value);
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

/// What extensions say, in an order that does not depend on the one in which it was said.
fn sorted(hints: &Hints) -> Vec<(&str, u16, &[u8])> {
    let mut values = Vec::with_capacity(hints.values.len());
    for TokenValuePair { token, value } in &hints.values {
        let Some(of) = ExtensionType::from_code(token.cast_unsigned()) else { continue };
        let mut names = hints.extension_name_to_prefix.iter();
        let name = names.find(|row| row.prefix == of.prefix()).map_or("", |row| &*row.name);
        values.push((name, of.number(), &**value));
    }
    values.sort_unstable();
    values
}

fn duplicates(files: &[OwnedFd]) -> Option<Vec<OwnedFd>> {
    files.iter().map(|file| file.try_clone().ok()).collect()
}

impl StepKey {
    /// What was saved before; `None` if there is nothing, or the device does not take it.
    pub(crate) fn load(
        &self,
        device: &Device,
        deadline: Option<Deadline>,
    ) -> Option<Arc<dyn PreparedModel>> {
        let CacheFiles { model: model_cache, data: data_cache } =
            self.files(device, |name| open(&name))?;
        let options = PrepareOptions {
            deadline,
            model_cache,
            data_cache,
            token: self.token,
            ..PrepareOptions::default()
        };
        let loaded = device.hal().prepare_model_from_cache(options);
        loaded.inspect_err(|error| tracing::debug!(%error, "nothing in the cache")).ok()
    }

    /// Says where to save what is prepared. That it cannot be saved is nothing to the client. What
    /// is given back is to be kept until it is prepared, see [`Drafts::publish`].
    pub(crate) fn save_to(&self, device: &Device, options: &mut PrepareOptions) -> Drafts {
        let mut drafts = Drafts::default();
        if let StepPlace::Paths(path) = &self.place
            && let Some(folder) = path.parent()
        {
            remove_old_drafts(folder);
        }
        if let Some(files) = self.files(device, |name| drafts.create(name)) {
            options.model_cache = files.model;
            options.data_cache = files.data;
            options.token = self.token;
        }
        drafts
    }

    /// As many files as the device wants; `None` if it does not cache, or they cannot be had.
    fn files(
        &self,
        device: &Device,
        mut open: impl FnMut(PathBuf) -> Option<OwnedFd>,
    ) -> Option<CacheFiles> {
        let CacheFilesNeeded { model, data } = device.cache_files_needed();
        if (model, data) == (0, 0) {
            return None;
        }
        match &self.place {
            StepPlace::Paths(path) => {
                let mut files = |kind: char, count: u32| -> Option<Vec<OwnedFd>> {
                    (0..count).map(|number| open(named(path, kind, number))).collect()
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
fn named(path: &Path, kind: char, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("{kind}{number}"));
    name.into()
}

/// A file that was saved before. Somebody else may have put something in its place: a link is not
/// followed, a pipe not waited for.
fn open(name: &Path) -> Option<OwnedFd> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).custom_flags(flags.bits().cast_signed());
    let opened = options.open(name);
    let file = opened.inspect_err(|error| tracing::debug!(%error, "a file of the cache")).ok()?;
    file.metadata().ok()?.is_file().then(|| file.into())
}

/// Files that are being written. Each has a name of its own until it is whole, so that no one loads
/// half of it, and nothing that has its final name now is opened, followed or cut short. What is not
/// published is removed.
#[derive(Debug, Default)]
pub(crate) struct Drafts(Vec<Draft>);

#[derive(Debug)]
struct Draft {
    path: PathBuf,
    name: PathBuf,
}

impl Drafts {
    /// A new file that only its owner may read.
    fn create(&mut self, name: PathBuf) -> Option<OwnedFd> {
        let mut path = name.clone().into_os_string();
        path.push(format!(".{:016x}", RandomState::new().build_hasher().finish()));
        let path = PathBuf::from(path);
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let opened = options.open(&path);
        let file =
            opened.inspect_err(|error| tracing::debug!(%error, "a file of the cache")).ok()?;
        self.0.push(Draft { path, name });
        Some(file.into())
    }

    /// Gives each file its name, if the device has written something.
    pub(crate) fn publish(self) {
        for Draft { path, name } in &self.0 {
            let is_written = path.metadata().is_ok_and(|file| file.len() > 0);
            if is_written && let Err(error) = std::fs::rename(path, name) {
                tracing::debug!(%error, "a file of the cache");
            }
        }
    }
}

/// How long no one has written to a draft of which nothing will come: whoever wrote it has ended.
const OLD: Duration = Duration::from_secs(3600);

/// Removes drafts that are left because a process ended while it compiled.
fn remove_old_drafts(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_old = || {
            let file = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
            file.modified().ok()?.elapsed().ok().filter(|age| *age > OLD)
        };
        if entry.file_name().to_str().is_some_and(is_draft) && is_old().is_some() {
            let removed = std::fs::remove_file(entry.path());
            let _ = removed.inspect_err(|error| tracing::debug!(%error, "an old draft"));
        }
    }
}

/// Whether a file's name is one that [`Drafts::create`] gives.
fn is_draft(name: &str) -> bool {
    let Some((of, number)) = name.split_once('.') else { return false };
    let Some((token, rest)) = of.split_at_checked(2 * size_of::<CacheToken>()) else {
        return false;
    };
    token.bytes().all(|byte| (b'A'..=b'P').contains(&byte))
        && rest.len() >= 2
        && rest.bytes().all(|byte| byte.is_ascii_digit())
        && number.len() == 16
        && number.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Drop for Drafts {
    fn drop(&mut self) {
        for draft in &self.0 {
            // What was published has another name.
            let _ = std::fs::remove_file(&draft.path);
        }
    }
}
