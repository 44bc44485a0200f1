//! [`Repository`]: the models that are served, and how they come and go.
//!
//! A model that is loaded again is prepared beside the one that serves, takes its place at once, and the old
//! one ends when it has answered what it had. One that cannot be prepared leaves the old one as it is, and the
//! index says why.

mod folder;

use crate::blocking::blocking;
use crate::charge::{Charge, Receiving};
use crate::config::{ModelConfig, Versions};
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::model::{Labels, Loaded, Served, Workers};
use folder::{Folder, Stamps};
use nnhal::Model;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Models that there may be; requests to load can bring new ones, of which nothing is left when they do not serve.
const MOST_MODELS: usize = 10_000;

/// What a request to load brings with it, instead of what is on disk.
#[derive(Debug, Default)]
pub struct Overrides {
    /// Triton's configuration, as JSON.
    pub config: Option<String>,
    /// Files of versions.
    pub files: BTreeMap<u64, Vec<u8>>,
}

impl Overrides {
    /// Adds a file: `VERSION/NAME`.
    ///
    /// # Errors
    /// [`Error::Invalid`]: it is called otherwise, or a version has two.
    pub(crate) fn file(&mut self, path: &str, bytes: Vec<u8>) -> Result<()> {
        let shown = crate::parameters::shortened(path);
        let version = path
            .split_once('/')
            .filter(|(_, name)| folder::is_name(name))
            .and_then(|(version, _)| crate::request::version(version).ok().flatten());
        let version =
            version.ok_or_else(|| Error::invalid(format!("file {shown:?} is no VERSION/NAME")))?;
        match self.files.insert(version, bytes) {
            None => Ok(()),
            Some(_) => Err(Error::invalid(format!("version {version} has two files"))),
        }
    }
}

/// What the index says of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The model.
    pub name: String,
    /// Its version; empty for a model of which none is known.
    pub version: String,
    /// `READY`, `UNAVAILABLE`, or empty for one that was never loaded.
    pub state: &'static str,
    /// Why it is in this state; also of one that serves while a newer one could not be loaded.
    pub reason: String,
}

#[derive(Debug, Default)]
struct Entry {
    versions: BTreeMap<u64, Version>,
    /// What is wrong with the model as a whole.
    reason: String,
    /// Unloaded by a request: it stays so until it is asked for, or changes.
    is_unloaded: bool,
    /// Loaded with what a request brought, not from disk alone.
    is_overridden: bool,
    /// What was on disk when it was loaded.
    stamps: Stamps,
}

#[derive(Debug, Default)]
struct Version {
    serving: Option<(Arc<Served>, Workers)>,
    reason: String,
    /// It could not be prepared because its device was not there.
    waits_for_device: bool,
}

/// The models that are served.
#[derive(Debug)]
pub(crate) struct Repository {
    root: PathBuf,
    cache: Option<PathBuf>,
    metrics: Arc<Metrics>,
    /// Bytes of files that clients have uploaded, of models that are loaded.
    uploaded: Arc<Receiving>,
    entries: RwLock<BTreeMap<String, Entry>>,
    /// Held while something is loaded or unloaded. Requests wait for it without a thread.
    changing: Arc<tokio::sync::Mutex<()>>,
    is_ended: std::sync::atomic::AtomicBool,
}

impl Repository {
    /// Uploaded files may have `most_uploaded` bytes together.
    pub(crate) fn new(
        root: &Path,
        cache: Option<&Path>,
        metrics: Arc<Metrics>,
        most_uploaded: usize,
    ) -> Self {
        Self {
            root: root.to_owned(),
            cache: cache.map(Path::to_owned),
            metrics,
            uploaded: Receiving::new(most_uploaded),
            entries: RwLock::default(),
            changing: Arc::default(),
            is_ended: false.into(),
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Entry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Entry>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A model that serves: this version, or the greatest.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Unavailable`]
    pub(crate) fn get(&self, name: &str, version: Option<u64>) -> Result<Arc<Served>> {
        let entries = self.read();
        let shown = || crate::parameters::shortened(name).to_owned();
        let not_found = || Error::NotFound { what: "model", name: shown() };
        let entry = entries.get(name).ok_or_else(not_found)?;
        let serving = |version: &Version| version.serving.as_ref().map(|it| Arc::clone(&it.0));
        let found = match version {
            Some(version) => {
                let of_model = || Error::NoVersion { version, model: shown() };
                serving(entry.versions.get(&version).ok_or_else(of_model)?)
            }
            None => entry.versions.values().rev().find_map(serving),
        };
        found.ok_or_else(|| Error::Unavailable(format!("model {:?} is not loaded", shown())))
    }

    /// All versions of a model that serve, or of all models.
    pub(crate) fn all(&self, name: Option<&str>) -> Vec<Arc<Served>> {
        let entries = self.read();
        let wanted = entries.iter().filter(|(known, _)| name.is_none_or(|name| name == *known));
        wanted
            .flat_map(|(_, entry)| entry.versions.values())
            .filter_map(|version| version.serving.as_ref().map(|it| Arc::clone(&it.0)))
            .collect()
    }

    /// Whether all models are as they should be.
    pub(crate) fn is_ready(&self) -> bool {
        let is_ended = self.is_ended.load(std::sync::atomic::Ordering::Relaxed);
        !is_ended && self.read().values().all(|entry| entry.is_unloaded || entry.is_serving())
    }

    /// What there is, loaded or not.
    pub(crate) fn index(&self, is_ready_only: bool) -> Vec<IndexEntry> {
        let mut index = Vec::new();
        let on_disk = folder::models(&self.root).unwrap_or_default();
        let entries = self.read();
        for (name, entry) in entries.iter() {
            for (number, version) in &entry.versions {
                let state = if version.serving.is_some() { "READY" } else { "UNAVAILABLE" };
                let (version, reason) = (number.to_string(), version.reason.clone());
                index.push(IndexEntry { name: name.clone(), version, state, reason });
            }
            if entry.versions.is_empty() {
                let (version, reason) = (String::new(), entry.reason.clone());
                let state = "UNAVAILABLE";
                index.push(IndexEntry { name: name.clone(), version, state, reason });
            }
        }
        for name in on_disk.into_iter().filter(|name| !entries.contains_key(name)) {
            let (version, reason) = (String::new(), String::new());
            index.push(IndexEntry { name, version, state: "", reason });
        }
        index.retain(|entry| !is_ready_only || entry.state == "READY");
        index
    }

    /// Loads all that is on disk, or what changed there.
    pub(crate) fn load_all(&self) {
        for name in folder::models(&self.root).unwrap_or_default() {
            if let Err(error) = self.load_from_disk(&name) {
                tracing::error!(model = name, %error, "a model cannot be loaded");
            }
        }
    }

    /// Loads a model, or loads it again if it is not what it was. Waits on a thread that serves no one else meanwhile.
    fn load_from_disk(&self, name: &str) -> Result<()> {
        let _changing = self.changing.blocking_lock();
        self.load_alone(name, &Overrides::default())
    }

    /// The same for a request.
    ///
    /// # Errors
    /// There is none, or a version cannot be served; then the old one still is.
    pub(crate) async fn load(self: &Arc<Self>, name: String, overrides: Overrides) -> Result<()> {
        self.change(move |repository| repository.load_alone(&name, &overrides)).await
    }

    /// Changes something on a thread of its own when no one else does.
    async fn change(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let changing = Arc::clone(&self.changing).lock_owned().await;
        let repository = Arc::clone(self);
        // It goes on when its client does not wait for it.
        blocking(move || {
            let _changing = changing;
            work(&repository)
        })
        .await
    }

    fn load_alone(&self, name: &str, overrides: &Overrides) -> Result<()> {
        if self.is_ended.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Error::Unavailable("the server ends".into()));
        }
        let folder = Folder::new(&self.root, name);
        let is_known = folder.is_some() || !overrides.files.is_empty();
        if !is_known || !folder::is_name(name) {
            let name = crate::parameters::shortened(name).to_owned();
            return Err(Error::NotFound { what: "model in the repository", name });
        }
        let count = self.read().len();
        if count >= MOST_MODELS && !self.read().contains_key(name) {
            return Err(Error::Unavailable(format!("there are {count} models already")));
        }
        let mut stamps = folder.as_ref().map(|it| it.stamps(&[])).unwrap_or_default();
        let config = config_of(name, folder.as_ref(), overrides);
        if let (Some(folder), Ok(config)) = (&folder, &config) {
            stamps.labels = folder.label_stamps(config.label_files());
        }
        let outcome = config.and_then(|config| {
            self.load_versions(name, &config, folder.as_ref(), overrides, &stamps)
        });
        let mut entries = self.write();
        let entry = entries.entry(name.to_owned()).or_default();
        entry.stamps = stamps;
        entry.is_unloaded = false;
        entry.is_overridden = overrides.config.is_some() || !overrides.files.is_empty();
        entry.reason = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
        // Of what is not on disk nothing is kept that does not serve: who asked has the answer, and names would collect.
        if folder.is_none() && !entry.is_serving() {
            entries.remove(name);
        }
        outcome
    }

    fn load_versions(
        &self,
        name: &str,
        config: &ModelConfig,
        folder: Option<&Folder>,
        overrides: &Overrides,
        stamps: &Stamps,
    ) -> Result<()> {
        let mut numbers: Vec<u64> = match (overrides.files.is_empty(), folder) {
            (true, Some(folder)) => folder.versions(),
            _ => overrides.files.keys().copied().collect(),
        };
        match &config.versions {
            Versions::All => {}
            Versions::Latest(count) => {
                let first = numbers.len().saturating_sub(*count as usize);
                numbers.drain(..first);
            }
            Versions::Specific(wanted) => numbers.retain(|number| wanted.contains(number)),
        }
        if numbers.is_empty() {
            return Err(Error::invalid("there is no version to serve"));
        }
        let mut first_error = None;
        for number in &numbers {
            if overrides.config.is_none()
                && overrides.files.is_empty()
                && self.is_unchanged(name, *number, stamps)
            {
                continue;
            }
            let started = self.start(name, *number, config, folder, overrides);
            let mut entries = self.write();
            let entry = entries.entry(name.to_owned()).or_default();
            let version = entry.versions.entry(*number).or_default();
            match started {
                Ok(serving) => {
                    tracing::info!(model = name, version = number, "loaded");
                    version.reason.clear();
                    version.waits_for_device = false;
                    retire(version.serving.replace(serving));
                }
                Err(error) => {
                    version.waits_for_device = matches!(error, Error::Unavailable(_));
                    let reason = error.to_string();
                    // Of a device that is waited for, it is said once.
                    if version.reason != reason || !version.waits_for_device {
                        tracing::error!(model = name, version = number, %error, "a version cannot be loaded");
                    }
                    version.reason = reason;
                    if version.serving.is_none() {
                        self.metrics.forget(name, *number);
                    }
                    first_error.get_or_insert(error);
                }
            }
        }
        // Those that are not to be served go when others have taken their place, and what is said of those that do not serve
        // and that this request did not name goes at once.
        let has_failed = first_error.is_some();
        self.keep(name, |number, version| {
            numbers.contains(&number) || has_failed && version.serving.is_some()
        });
        first_error.map_or(Ok(()), Err)
    }

    fn is_unchanged(&self, name: &str, version: u64, stamps: &Stamps) -> bool {
        let entries = self.read();
        let Some(entry) = entries.get(name) else { return false };
        // One that is served although a newer one could not be loaded is not what is on disk.
        let serves = entry.versions.get(&version).is_some_and(|it| {
            let is_served = it.serving.as_ref().is_some_and(|(served, _)| !served.is_device_gone());
            is_served && it.reason.is_empty()
        });
        serves
            && !entry.is_unloaded
            && !entry.is_overridden
            && entry.stamps.config == stamps.config
            && entry.stamps.labels == stamps.labels
            && entry.stamps.versions.get(&version) == stamps.versions.get(&version)
    }

    fn keep(&self, name: &str, keeps: impl Fn(u64, &Version) -> bool) {
        let mut entries = self.write();
        let Some(entry) = entries.get_mut(name) else { return };
        let gone = entry.versions.extract_if(.., |number, version| !keeps(*number, version));
        for (number, version) in gone {
            if version.serving.is_some() {
                tracing::info!(model = name, version = number, "unloaded");
            }
            retire(version.serving);
            self.metrics.forget(name, number);
        }
    }

    fn start(
        &self,
        name: &str,
        number: u64,
        config: &ModelConfig,
        folder: Option<&Folder>,
        overrides: &Overrides,
    ) -> Result<(Arc<Served>, Workers)> {
        let signature = config.signature.as_str();
        let load = |source: nnhal::Source<'_>| match signature {
            "" => Model::load(source),
            name => Model::load_signature(source, name),
        };
        let mut upload = Charge::new(Arc::clone(&self.uploaded));
        let (model, labels) = match (overrides.files.get(&number), folder) {
            (Some(bytes), _) => {
                // In memory for as long as the model is.
                let limit = self.uploaded.limit();
                let taken = upload.take(bytes.len());
                taken.map_err(|_| Error::NoMemoryForUploads { limit })?;
                (load(bytes.into())?, Labels::new())
            }
            (None, Some(folder)) => {
                let file = folder.file(number, config)?;
                (load(file.into())?, folder.labels(config)?)
            }
            (None, None) => return Err(Error::invalid("there is no file")),
        };
        let metrics = self.metrics.of_model(name, number);
        let (cache, loaded) = (self.cache.as_deref(), Loaded { model, labels, upload });
        Served::start(name, number, loaded, config.clone(), metrics, cache)
    }

    /// Unloads a model; what it has is still answered.
    ///
    /// # Errors
    /// [`Error::NotFound`]
    pub(crate) async fn unload(self: &Arc<Self>, name: String) -> Result<()> {
        self.change(move |repository| repository.unload_alone(&name)).await
    }

    fn unload_alone(&self, name: &str) -> Result<()> {
        let mut entries = self.write();
        let shown = crate::parameters::shortened(name).to_owned();
        let entry = entries.get_mut(name).ok_or(Error::NotFound { what: "model", name: shown })?;
        entry.unload("unloaded", name, &self.metrics);
        entry.is_unloaded = true;
        if Folder::new(&self.root, name).is_none() {
            entries.remove(name);
        }
        Ok(())
    }

    /// Looks every `interval` for what changed on disk, and loads it when it has stayed the same for as
    /// long; and for models whose device is gone or was not there yet, which are prepared again. Ends with the
    /// repository.
    pub(crate) fn watch(self: &Arc<Self>, interval: Duration) -> std::io::Result<()> {
        let weak = Arc::downgrade(self);
        let watch = move || {
            let mut seen: BTreeMap<String, Stamps> = BTreeMap::new();
            loop {
                std::thread::sleep(interval);
                let Some(repository) = weak.upgrade() else { return };
                if repository.is_ended.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                repository.look(&mut seen);
            }
        };
        std::thread::Builder::new().name("repository".into()).spawn(watch).map(drop)
    }

    fn look(&self, seen: &mut BTreeMap<String, Stamps>) {
        let Ok(names) = folder::models(&self.root) else { return };
        seen.retain(|name, _| names.contains(name));
        for name in &names {
            let Some(folder) = Folder::new(&self.root, name) else { continue };
            // Those that the configuration named when it was read: where it is another one now, it has another stamp.
            let labels = self.read().get(name).map(|entry| entry.stamps.label_files());
            let now = folder.stamps(&labels.unwrap_or_default());
            let is_stable = seen.get(name) == Some(&now);
            let is_new = self.read().get(name).is_none_or(|entry| entry.stamps != now);
            let waits = self.read().get(name).is_some_and(Entry::waits_for_device);
            if is_stable && (is_new || waits) {
                // What is wrong is in the index and in the log.
                let _ = self.load_from_disk(name);
            }
            seen.insert(name.clone(), now);
        }
        let _changing = self.changing.blocking_lock();
        let mut entries = self.write();
        let gone: Vec<String> = entries
            .iter()
            .filter(|(name, entry)| !names.contains(name) && entry.stamps != Stamps::default())
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            if let Some(mut entry) = entries.remove(&name) {
                entry.unload("the folder is gone", &name, &self.metrics);
            }
        }
    }

    /// Takes no more requests. What waits is answered by those who wait for it.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Entry {
    /// Whether preparing it again makes sense though nothing changed on disk. What a request brought is not on disk.
    fn waits_for_device(&self) -> bool {
        let waits = |version: &Version| {
            let is_gone =
                version.serving.as_ref().is_some_and(|(served, _)| served.is_device_gone());
            is_gone || version.waits_for_device
        };
        !self.is_unloaded && !self.is_overridden && self.versions.values().any(waits)
    }

    fn is_serving(&self) -> bool {
        self.versions.values().any(|version| version.serving.is_some())
    }

    fn unload(&mut self, why: &str, name: &str, metrics: &Metrics) {
        for (number, version) in &mut self.versions {
            if let Some(serving) = version.serving.take() {
                tracing::info!(model = name, version = number, why, "unloaded");
                retire(Some(serving));
            }
            why.clone_into(&mut version.reason);
            metrics.forget(name, *number);
        }
    }
}

/// How a model is served.
fn config_of(name: &str, folder: Option<&Folder>, overrides: &Overrides) -> Result<ModelConfig> {
    let config = match (&overrides.config, folder) {
        (Some(json), _) => ModelConfig::from_json(json)?,
        (None, Some(folder)) => folder.config()?,
        (None, None) => return Err(Error::invalid("files without a configuration")),
    };
    if !config.name.is_empty() && config.name != name {
        let found = &config.name;
        return Err(Error::invalid(format!("the configuration is of {found:?}, not {name:?}")));
    }
    Ok(config)
}

/// Lets a model end that has been taken out: a thread waits for its workers, so that no one else does.
fn retire(serving: Option<(Arc<Served>, Workers)>) {
    let Some((served, workers)) = serving else { return };
    served.close();
    let ending = std::thread::Builder::new().name("retiring".into()).spawn(move || drop(workers));
    if let Err(error) = ending {
        // The closure was dropped with it, and has waited.
        tracing::warn!(%error, "no thread to wait for a model's end");
    }
}
