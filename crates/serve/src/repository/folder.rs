//! What is on disk: a folder for each model, in it one for each version, and a configuration.

use crate::config::ModelConfig;
use crate::error::{Error, Result};
use crate::model::Labels;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Models, and versions of each, that are looked at.
const MOST_FOLDERS: usize = 10_000;
/// What the file of a model is called where nothing else is said.
const USUAL_NAME: &str = "model.tflite";
/// Bytes of a configuration or of names of classes.
const MOST_TEXT: u64 = 16 << 20;

/// A file as it was: when it is another one, its content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// What says of a model how it is served, and of each version what it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Stamps {
    pub(crate) config: Vec<Option<Stamp>>,
    /// Files with names of classes.
    pub(crate) labels: Vec<(String, Option<Stamp>)>,
    /// All files of a version's folder, with their names.
    pub(crate) versions: BTreeMap<u64, Vec<(PathBuf, Option<Stamp>)>>,
}

impl Stamps {
    /// The files with names of classes.
    pub(crate) fn label_files(&self) -> Vec<String> {
        self.labels.iter().map(|(name, _)| name.clone()).collect()
    }
}

/// The names of models in a repository.
///
/// # Errors
/// [`Error::Unavailable`]: the folder cannot be read.
pub(crate) fn models(root: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = folders(root)
        .map_err(|error| Error::Unavailable(format!("{}: {error}", root.display())))?
        .into_iter()
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    Ok(names)
}

fn folders(of: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(of)?.take(MOST_FOLDERS) {
        let entry = entry?;
        // Links to folders are followed: Kubernetes mounts have them.
        if std::fs::metadata(entry.path()).is_ok_and(|it| it.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    Ok(names)
}

/// Whether a model may have this name: it is one of a folder that is not hidden.
pub(crate) fn is_name(model: &str) -> bool {
    (1..=255).contains(&model.len()) && !model.starts_with('.') && !model.contains(['/', '\0'])
}

/// A model's folder.
#[derive(Debug, Clone)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The folder of a model; `None`: there is none, or the name is no name of one.
    pub(crate) fn new(root: &Path, model: &str) -> Option<Self> {
        if !is_name(model) {
            return None;
        }
        let path = root.join(model);
        path.is_dir().then_some(Self(path))
    }

    /// Numbers of the versions, from 1 on, ascending. Other names are passed over, and so are those that begin with a zero.
    pub(crate) fn versions(&self) -> Vec<u64> {
        let names = folders(&self.0).unwrap_or_default();
        let is_number = |number: &u64, name: &str| *number > 0 && number.to_string() == *name;
        let number = |name: &String| name.parse().ok().filter(|it| is_number(it, name));
        let mut versions: Vec<u64> = names.iter().filter_map(number).collect();
        versions.sort_unstable();
        versions
    }

    /// How files with names of classes are now.
    pub(crate) fn label_stamps(&self, names: Vec<String>) -> Vec<(String, Option<Stamp>)> {
        let stamp = |name: String| {
            let stamp = Stamp::of(&self.0.join(&name));
            (name, stamp)
        };
        names.into_iter().map(stamp).collect()
    }

    /// How all its files are now; `labels` are those with names of classes.
    pub(crate) fn stamps(&self, labels: &[String]) -> Stamps {
        let config = ["config.toml", "config.pbtxt"].map(|name| Stamp::of(&self.0.join(name)));
        let files = |version: u64| {
            let folder = self.0.join(version.to_string());
            let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_FOLDERS);
            let mut files: Vec<_> =
                entries.flatten().map(|entry| (entry.path(), Stamp::of(&entry.path()))).collect();
            files.sort_by(|one, other| one.0.cmp(&other.0));
            files
        };
        let versions = self.versions().into_iter().map(|version| (version, files(version)));
        let labels = self.label_stamps(labels.to_vec());
        Stamps { config: config.into(), labels, versions: versions.collect() }
    }

    /// How the model is served.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there are two configurations, or it is none.
    pub(crate) fn config(&self) -> Result<ModelConfig> {
        let texts = ["config.toml", "config.pbtxt"].map(|name| text(&self.0.join(name)));
        let named = |name: &str, error: &Error| Error::invalid(format!("{name}: {error}"));
        let config = match texts {
            [Ok(None), Ok(None)] => ModelConfig::default(),
            [Ok(Some(_)), Ok(Some(_))] => {
                return Err(Error::invalid(
                    "there are config.toml and config.pbtxt: one is enough",
                ));
            }
            [Ok(Some(toml)), _] => {
                ModelConfig::from_toml(&toml).map_err(|error| named("config.toml", &error))?
            }
            [_, Ok(Some(pbtxt))] => {
                ModelConfig::from_pbtxt(&pbtxt).map_err(|error| named("config.pbtxt", &error))?
            }
            [Err(error), _] | [_, Err(error)] => return Err(error),
        };
        Ok(config)
    }

    /// The model's file of a version: the one that the configuration names, or the only one of its kind.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there is none, or there are several.
    pub(crate) fn file(&self, version: u64, config: &ModelConfig) -> Result<PathBuf> {
        let folder = self.0.join(version.to_string());
        let filename = Some(config.filename.as_str()).filter(|name| !name.is_empty());
        let named = folder.join(filename.unwrap_or(USUAL_NAME));
        if named.is_file() {
            return Ok(named);
        }
        if let Some(name) = filename {
            return Err(Error::invalid(format!("the folder of version {version} has no {name}")));
        }
        let entries = std::fs::read_dir(&folder).into_iter().flatten().take(MOST_FOLDERS);
        let is_model = |path: &PathBuf| path.extension().is_some_and(|it| it == "tflite");
        let mut files = entries.flatten().map(|entry| entry.path()).filter(is_model);
        match (files.next(), files.next()) {
            (Some(file), None) => Ok(file),
            (None, _) => {
                Err(Error::invalid(format!("the folder of version {version} has no {USUAL_NAME}")))
            }
            (Some(_), Some(_)) => Err(Error::invalid(format!(
                "the folder of version {version} has several models and no {USUAL_NAME}"
            ))),
        }
    }

    /// Names of classes by file, of those that the configuration names.
    ///
    /// # Errors
    /// [`Error::Invalid`]: there is no such file.
    pub(crate) fn labels(&self, config: &ModelConfig) -> Result<Labels> {
        let mut all = Labels::new();
        for name in config.label_files() {
            let found = text(&self.0.join(&name))?;
            let found = found.ok_or_else(|| Error::invalid(format!("there is no {name}")))?;
            all.insert(name, found.lines().map(|line| line.trim().to_owned()).collect());
        }
        Ok(all)
    }
}

/// A text; `None` if there is no such file.
fn text(path: &Path) -> Result<Option<String>> {
    let failed = |why: &dyn std::fmt::Display| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Error::invalid(format!("{name}: {why}"))
    };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let mut text = String::new();
    let read = file.take(MOST_TEXT + 1).read_to_string(&mut text);
    match read.map_err(|error| failed(&error))? as u64 {
        length if length > MOST_TEXT => Err(failed(&"it is too long")),
        _ => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_no_models() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("m/1")).unwrap();
        assert!(Folder::new(root.path(), "m").is_some());
        for name in ["", ".", "..", "../m", "m/1", "m\0", ".hidden", "none"] {
            assert!(Folder::new(root.path(), name).is_none(), "{name:?}");
        }
    }

    #[test]
    fn versions_are_whole_numbers() {
        let root = tempfile::tempdir().unwrap();
        for name in ["10", "9", "01", "x", "1.5", "-1", "0"] {
            std::fs::create_dir_all(root.path().join("m").join(name)).unwrap();
        }
        assert_eq!(Folder::new(root.path(), "m").unwrap().versions(), [9, 10]);
    }

    #[test]
    fn a_file_that_is_written_anew_has_another_stamp() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("m/1/model.tflite");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "one").unwrap();
        let folder = Folder::new(root.path(), "m").unwrap();
        let before = folder.stamps(&[]);
        assert_eq!(folder.stamps(&[]), before);
        let other = root.path().join("other");
        std::fs::write(&other, "two").unwrap();
        std::fs::rename(other, file).unwrap();
        assert_ne!(folder.stamps(&[]), before);
    }
}
