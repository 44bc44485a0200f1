//! Checks that relative links in documentation lead to files.

use crate::files::{self, FileError};
use regex::Regex;
use std::fmt;
use std::path::{Path, PathBuf};

/// A link that leads nowhere.
#[derive(Debug, PartialEq)]
pub(crate) struct Broken {
    path: PathBuf,
    line: usize,
    target: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: there is no {}", self.path.display(), self.line, self.target)
    }
}

/// The links below a folder whose targets do not exist.
pub(crate) fn check(root: &Path) -> Result<Vec<Broken>, FileError> {
    let mut broken = Vec::new();
    for path in files::with_extensions(root, &["md"])? {
        let folder = path.parent().unwrap_or(root);
        for (line, target) in links(&files::read(&path)?) {
            if !folder.join(&target).exists() {
                let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
                broken.push(Broken { path, line, target });
            }
        }
    }
    Ok(broken)
}

/// The relative targets of a page's links, without anchors, with the lines they are in.
fn links(text: &str) -> Vec<(usize, String)> {
    let link = Regex::new(r"\]\(([^)\s#]+)[^)]*\)").expect("a valid pattern");
    let in_line = |(line, text)| {
        let targets = link.captures_iter(text).map(|found| found[1].to_owned());
        targets.filter(|it| !it.contains("://")).map(|it| (line, it)).collect::<Vec<_>>()
    };
    (1..).zip(text.lines()).flat_map(in_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_are_found() {
        let text = "[a](b.md#part), [c](https://d.example/e)\n[f](../g/)[h](#here)";
        assert_eq!(links(text), [(1, "b.md".to_owned()), (2, "../g/".to_owned())]);
    }

    #[test]
    fn a_link_to_nothing_is_reported() {
        let folder = std::env::temp_dir().join(format!("xtask-links-{}", std::process::id()));
        files::write(&folder.join("docs/a.md"), "[b](b.md)\n[c](c.md) [up](../d.md)").unwrap();
        files::write(&folder.join("docs/b.md"), "").unwrap();
        let broken = check(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let expected =
            |target: &str| Broken { path: "docs/a.md".into(), line: 2, target: target.to_owned() };
        assert_eq!(broken, [expected("c.md"), expected("../d.md")]);
    }
}
