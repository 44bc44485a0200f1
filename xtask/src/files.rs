//! The repository's own files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("{folder}: {error}")]
    Folder { folder: PathBuf, error: walkdir::Error },
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    fs::read_to_string(path).map_err(|error| FileError::File { path: path.to_owned(), error })
}

/// Writes a file, and the folders above it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), FileError> {
    let failed = |error| FileError::File { path: path.to_owned(), error };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(failed)?;
    fs::write(path, text).map_err(failed)
}

/// The files below a folder that have one of these extensions, in order; not those of hidden
/// folders, of builds, and of Python environments.
pub(crate) fn with_extensions(
    folder: &Path,
    extensions: &[&str],
) -> Result<Vec<PathBuf>, FileError> {
    let is_ours = |entry: &DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let is_other = matches!(&*name, "target" | "data" | "corpus" | "venv" | "node_modules")
            // Copies, which the wheel is made of.
            || entry.path().ends_with("python/nnhal/include");
        entry.depth() == 0 || !(entry.file_type().is_dir() && (is_other || name.starts_with('.')))
    };
    let mut found = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(is_ours) {
        let entry =
            entry.map_err(|error| FileError::Folder { folder: folder.to_owned(), error })?;
        let extension = entry.path().extension().and_then(|extension| extension.to_str());
        if entry.file_type().is_file() && extension.is_some_and(|it| extensions.contains(&it)) {
            found.push(entry.into_path());
        }
    }
    Ok(found)
}
