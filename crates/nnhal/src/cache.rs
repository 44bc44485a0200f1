//! Prepared models in a folder: a file for each model, device and version of it.
//!
//! A file appears under its name when it is whole, and is replaced and never written again. So sessions may use the pages of
//! one that they know where they are, and those of several processes share them.

use crate::error::{Error, Result};
use crate::model::Model;
use crate::options::SessionOptions;
use nnhal_driver::known_files::KnownFile;
use nnhal_hal::{CacheToken, CacheTrust, Deadline, Device, PrepareOptions, PreparedModel};
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is known of a prepared model: its token.
const TOKEN: &str = "token";
/// How long to wait for another process that prepares the same model.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Bytes of a file that is copied into memory at the most.
const MOST_COPIED: u64 = 4 << 30;
/// How often to look whether it is ready.
const LOOK: Duration = Duration::from_millis(2);

type Program = Arc<dyn PreparedModel>;

/// What the folder has of a prepared model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It was there before.
    Before,
    /// It is there from now on.
    Now,
    /// It is not there.
    Not,
}

/// The prepared model of the folder, or else one that is prepared now, and kept there if it can be.
///
/// # Errors
/// Preparing the model, and a folder that cannot be written.
pub(crate) fn open(
    folder: &Path,
    model: &Model,
    device: &dyn Device,
    options: &SessionOptions,
    deadline: Option<Deadline>,
    prepare: impl FnOnce(PrepareOptions) -> Result<Program>,
) -> Result<(Program, Kept)> {
    let Some(entry) = Entry::new(folder, model, device, options, deadline)? else {
        tracing::warn!(device = device.name(), "prepared models cannot be kept");
        return Ok((prepare(PrepareOptions::default())?, Kept::Not));
    };
    if let Some(kept) = entry.load() {
        return Ok((kept, Kept::Before));
    }
    std::fs::create_dir_all(folder).map_err(Error::file(folder))?;
    if !entry.shares_weights {
        return entry.prepare(prepare);
    }
    // One of those that begin at the same time prepares it, and the others take that.
    let _turn = wait_for_turn(&entry.path.with_extension("lock"), deadline);
    if let Some(kept) = entry.load() {
        return Ok((kept, Kept::Before));
    }
    let (own, kept) = entry.prepare(prepare)?;
    Ok((entry.load().unwrap_or(own), kept))
}

/// A prepared model in the folder, or a place for it.
struct Entry<'a> {
    device: &'a dyn Device,
    options: &'a SessionOptions,
    deadline: Option<Deadline>,
    shares_weights: bool,
    token: CacheToken,
    path: PathBuf,
}

impl<'a> Entry<'a> {
    /// `None` where there can be none: the device does not keep prepared models in one file, or the model is not out of a file.
    fn new(
        folder: &Path,
        model: &Model,
        device: &'a dyn Device,
        options: &'a SessionOptions,
        deadline: Option<Deadline>,
    ) -> Result<Option<Self>> {
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
        let shares_weights = options.shares_weights && options.weights.is_none();
        Ok(Some(Self { device, options, deadline, shares_weights, token: token.into(), path }))
    }

    /// The prepared model, if the folder has it and the device takes it.
    fn load(&self) -> Option<Program> {
        // Devices want files that are open for both, though they only read it.
        let file = match File::options().read(true).write(true).open(&self.path) {
            Err(error) if is_read_only(&error) => copy(&self.path).ok()?,
            file => file.ok()?,
        };
        let known = KnownFile::settled(TOKEN, &file, 0, 0);
        let is_unchanged = || known.is_some() && KnownFile::of(TOKEN, &file, 0, 0) == known;
        let shared = || self.load_from(&file, CacheTrust::WhileInUse);
        if known.and_then(|known| known.hash()) == Some(self.token) {
            let loaded = match self.shares_weights {
                true => shared(),
                false => self.load_from(&file, CacheTrust::WhileLoading),
            };
            // What is not used where it is was copied meanwhile.
            if let Some(loaded) = loaded.filter(|_| is_unchanged()) {
                return Some(loaded);
            }
        }
        let loaded = self.load_from(&file, CacheTrust::None)?;
        let is_known = is_unchanged() && known.is_some_and(|known| known.remember(&self.token));
        let shared = (is_known && self.shares_weights).then(shared).flatten();
        shared.filter(|_| is_unchanged()).or(Some(loaded))
    }

    fn load_from(&self, file: &File, cache_trust: CacheTrust) -> Option<Program> {
        let model_cache = vec![file.try_clone().ok()?.into()];
        let loaded = self.device.prepare_model_from_cache(PrepareOptions {
            deadline: self.deadline,
            model_cache,
            token: self.token,
            weights: self.options.weights.clone(),
            cache_trust,
            ..PrepareOptions::default()
        });
        loaded.ok()
    }

    /// Prepares the model, and keeps it. The file appears under its name when it is whole, so that others
    /// who look at the same time never see a part. A folder that cannot be written is an error.
    fn prepare(
        &self,
        prepare: impl FnOnce(PrepareOptions) -> Result<Program>,
    ) -> Result<(Program, Kept)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let partial = self.path.with_extension(format!("{}-{number}.partial", std::process::id()));
        let file = create(&partial).map_err(Error::file(&partial))?;
        let copy = file.try_clone().map_err(Error::file(&partial))?;
        let model_cache = vec![copy.into()];
        let prepared =
            prepare(PrepareOptions { model_cache, token: self.token, ..PrepareOptions::default() });
        // A device that could not save it, on a full disk for one, is none that fails.
        let is_saved = file.metadata().is_ok_and(|it| it.len() > 0);
        let outcome = match &prepared {
            Ok(_) if is_saved => std::fs::rename(&partial, &self.path),
            _ => std::fs::remove_file(&partial),
        };
        let prepared = prepared?;
        outcome.map_err(Error::file(&self.path))?;
        if !is_saved {
            let path = self.path.display();
            tracing::warn!(%path, "the prepared model could not be kept");
            return Ok((prepared, Kept::Not));
        }
        if let Some(known) = KnownFile::settled(TOKEN, &file, 0, 0) {
            known.remember(&self.token);
        }
        Ok((prepared, Kept::Now))
    }
}

/// Whether a file cannot be opened for writing, and perhaps for reading.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// A file in memory with the same bytes.
fn copy(path: &Path) -> io::Result<File> {
    let metadata = std::fs::metadata(path)?;
    // A pipe would be waited for.
    if !metadata.is_file() || metadata.len() > MOST_COPIED {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut copy: File =
        rustix::fs::memfd_create("nnhal-prepared", rustix::fs::MemfdFlags::CLOEXEC)?.into();
    io::copy(&mut File::open(path)?.take(MOST_COPIED), &mut copy)?;
    Ok(copy)
}

/// A new file that no one else can write, in the place of one that was left there.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            options.open(path)
        }
        file => file,
    }
}

/// Only one process at a time prepares a model. One that cannot wait, or waits too long, prepares it too;
/// one whose deadline passes learns so from its device.
fn wait_for_turn(path: &Path, deadline: Option<Deadline>) -> Option<File> {
    let file = File::options().write(true).create(true).truncate(false).open(path).ok()?;
    let begun = Instant::now();
    let may_wait = || begun.elapsed() < LONGEST_WAIT && !deadline.is_some_and(Deadline::has_passed);
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if may_wait() => std::thread::sleep(LOOK),
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_waits_for_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = wait_for_turn(&path, None).unwrap();
        let begun = Instant::now();
        let second = std::thread::spawn({
            let path = path.clone();
            move || (wait_for_turn(&path, None).is_some(), Instant::now())
        });
        std::thread::sleep(Duration::from_millis(60));
        drop(first);
        let (got, when) = second.join().unwrap();
        assert!(got && when - begun >= Duration::from_millis(50));
    }

    #[test]
    fn no_one_waits_beyond_a_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _first = wait_for_turn(&path, None).unwrap();
        let begun = Instant::now();
        let deadline = Deadline::after(Duration::from_millis(30));
        assert!(wait_for_turn(&path, Some(deadline)).is_none());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }

    #[test]
    fn what_cannot_be_written_is_read_by_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kept.nnhal");
        std::fs::write(&path, "prepared").unwrap();
        let mut copied = copy(&path).unwrap();
        io::Seek::rewind(&mut copied).unwrap();
        assert_eq!(io::read_to_string(&mut copied).unwrap(), "prepared");
        assert!(copy(folder.path()).is_err(), "no file");
        for kind in [io::ErrorKind::ReadOnlyFilesystem, io::ErrorKind::PermissionDenied] {
            assert!(is_read_only(&kind.into()));
        }
        assert!(!is_read_only(&io::ErrorKind::NotFound.into()));
    }

    #[test]
    fn a_file_that_was_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("1-0.partial");
        std::fs::write(&path, "left").unwrap();
        let left = File::open(&path).unwrap();
        assert_eq!(create(&path).unwrap().metadata().unwrap().len(), 0);
        assert_eq!(left.metadata().unwrap().len(), 4);
    }
}
