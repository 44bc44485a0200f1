//! Compares the files that allow `unsafe` with the list of those that may.

use crate::files::{self, FileError};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where the list is: a path a line, below a comment that gives the reason.
const LIST: &str = "docs/unsafe.txt";

/// What is wrong with the list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(crate) enum Difference {
    #[error("{0} allows `unsafe` and is not in {LIST}")]
    NotListed(String),
    #[error("{0} is in {LIST} and does not allow `unsafe`, or does not exist")]
    NotNeeded(String),
    #[error("{0} is twice in {LIST}")]
    Twice(String),
    #[error("{0} is in {LIST} without a reason in a comment above it")]
    NoReason(String),
}

/// The differences between the list and the code below a folder.
pub(crate) fn check(root: &Path) -> Result<BTreeSet<Difference>, FileError> {
    let mut sources = BTreeMap::new();
    for path in files::with_extensions(root, &["rs"])? {
        let text = files::read(&path)?;
        let relative = path.strip_prefix(root).unwrap_or(&path);
        sources.insert(relative.to_string_lossy().into_owned(), text);
    }
    Ok(compare(&files::read(&root.join(LIST))?, &sources))
}

fn compare(list: &str, sources: &BTreeMap<String, String>) -> BTreeSet<Difference> {
    let allows =
        Regex::new(r"\b(?:allow|expect)\s*\([^)]*\bunsafe_code\b").expect("a valid pattern");
    let mut differences = BTreeSet::new();
    let mut listed = BTreeSet::new();
    let mut has_reason = false;
    for line in list.lines().map(str::trim) {
        if line.is_empty() {
            has_reason = false;
        } else if line.starts_with('#') {
            has_reason = true;
        } else {
            if !has_reason {
                differences.insert(Difference::NoReason(line.to_owned()));
            }
            if !listed.insert(line) {
                differences.insert(Difference::Twice(line.to_owned()));
            }
        }
    }
    for (path, text) in sources {
        // This file's tests contain the attribute as text.
        let is_this = path == "xtask/src/unsafe_list.rs";
        if allows.is_match(text) && !is_this && !listed.remove(path.as_str()) {
            differences.insert(Difference::NotListed(path.clone()));
        }
    }
    differences.extend(listed.into_iter().map(|path| Difference::NotNeeded(path.to_owned())));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_and_code_agree_in_both_directions() {
        let sources = [
            ("a.rs", "#![allow(unsafe_code)]"),
            ("b.rs", "#[allow(\n    dead_code,\n    unsafe_code,\n)]\nmod c;"),
            ("d.rs", "#[cfg_attr(x, allow(unsafe_code, reason = \"y\"))]"),
            ("e.rs", "// unsafe_code is denied\nfn f() {}"),
        ];
        let sources = sources.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        assert_eq!(compare("# Because.\na.rs\nb.rs\nd.rs\n", &sources), BTreeSet::new());
        let expected = [
            Difference::NotListed("d.rs".to_owned()),
            Difference::NotNeeded("e.rs".to_owned()),
            Difference::Twice("a.rs".to_owned()),
            Difference::NoReason("b.rs".to_owned()),
        ];
        assert_eq!(compare("# Because.\na.rs\na.rs\ne.rs\n\nb.rs\n", &sources), expected.into());
    }
}
