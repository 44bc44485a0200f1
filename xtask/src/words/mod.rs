//! Finds words that were replaced by the field's terms: in comments, identifiers and strings of
//! Rust, Python and C files, in documentation, and in descriptions of crates.

mod table;

use crate::files::{self, FileError};
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use table::{Entry, TABLE};

/// Files of other people's making, and the table itself.
const EXEMPT: &[&str] = &["xtask/src/words", "crates/tflite/src/schema"];

/// A place where a retired word stands.
#[derive(Debug, PartialEq)]
pub(crate) struct Finding {
    path: PathBuf,
    line: usize,
    found: String,
    entry: &'static Entry,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, found, entry } = self;
        write!(formatter, "{}:{line}: {found:?}, write {}", path.display(), entry.instead)
    }
}

/// All findings below a folder, by file and line.
pub(crate) fn find(root: &Path) -> Result<Vec<Finding>, FileError> {
    let entries = compiled();
    let mut findings = Vec::new();
    for path in files::with_extensions(root, &["rs", "md", "toml", "py", "pyi", "h", "c"])? {
        let relative = path.strip_prefix(root).unwrap_or(&path);
        if !EXEMPT.iter().any(|exempt| relative.starts_with(exempt)) {
            findings.extend(in_text(&entries, relative, &files::read(&path)?));
        }
    }
    Ok(findings)
}

/// How often each word was found, most often first.
pub(crate) fn count(findings: &[Finding]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry(finding.entry.name).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let lines = counts.iter().map(|(name, count)| format!("{count:6} {name}\n"));
    lines.chain([format!("{:6} in all\n", findings.len())]).collect()
}

/// The table's entries with their patterns: what is refused, and what is refused all the same
/// although the first pattern matches.
fn compiled() -> Vec<(Regex, Option<Regex>, &'static Entry)> {
    let regex = |pattern: &str| Regex::new(pattern).expect("a valid pattern in the table");
    let compile = |entry: &'static Entry| {
        let unless = (!entry.unless.is_empty()).then(|| regex(entry.unless));
        (regex(&format!(r"\b(?:{})\b", entry.pattern)), unless, entry)
    };
    TABLE.iter().map(compile).collect()
}

fn in_text(
    entries: &[(Regex, Option<Regex>, &'static Entry)],
    path: &Path,
    text: &str,
) -> Vec<Finding> {
    let words = Words::of(text);
    let mut findings = Vec::new();
    for (pattern, unless, entry) in entries {
        let applies = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
        if !(entry.only_in.is_empty() || applies(entry.only_in)) {
            continue;
        }
        if entry.except.iter().any(|(place, _)| path.starts_with(place)) {
            continue;
        }
        for found in pattern.find_iter(&words.text) {
            let context = words.around(found.start(), found.end());
            if unless.as_ref().is_some_and(|unless| unless.is_match(context)) {
                continue;
            }
            findings.push(Finding {
                path: path.to_owned(),
                line: words.line(found.start()),
                found: found.as_str().to_owned(),
                entry,
            });
        }
    }
    findings.sort_by_key(|finding| finding.line);
    findings
}

/// The words of a text in lower case with single spaces between, identifiers taken to pieces,
/// comment marks left out, lines joined.
struct Words {
    text: String,
    /// Where each line starts in it.
    starts: Vec<usize>,
}

impl Words {
    fn of(text: &str) -> Self {
        let mut words = Self { text: String::with_capacity(text.len()), starts: Vec::new() };
        for line in text.lines() {
            words.starts.push(words.text.len());
            let line = line.trim_start();
            let line = ["//!", "///", "//", "#"]
                .iter()
                .find_map(|mark| line.strip_prefix(mark))
                .unwrap_or(line);
            let mut before = ' ';
            for char in line.chars() {
                let starts_word =
                    char.is_uppercase() && (before.is_lowercase() || before.is_numeric());
                if starts_word || ((char.is_whitespace() || char == '_') && before != ' ') {
                    words.text.push(' ');
                    before = ' ';
                }
                if !(char.is_whitespace() || char == '_') {
                    words.text.extend(char.to_lowercase());
                    before = char;
                }
            }
            if before != ' ' {
                words.text.push(' ');
            }
        }
        words
    }

    /// The number of the line, from 1, that a place is in.
    fn line(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place)
    }

    /// A place with a few words before and after it.
    fn around(&self, start: usize, end: usize) -> &str {
        let before = self.text[..start].char_indices().rev().take(30).last();
        let after = self.text[end..].char_indices().take(31).last();
        &self.text
            [before.map_or(start, |(index, _)| index)..after.map_or(end, |(index, _)| end + index)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        let findings = in_text(&compiled(), Path::new(path), text);
        findings.into_iter().map(|finding| (finding.line, finding.found)).collect()
    }

    #[test]
    fn words_are_found_in_comments_identifiers_and_strings() {
        let text =
            "/// So\n/// many rows.\nfn draw(dice: &mut TheDice) {\n    say(\"a twin\");\n}\n";
        let expected = [(1, "so many"), (3, "dice"), (3, "dice"), (4, "twin")];
        let expected = expected.map(|(line, word)| (line, word.to_owned()));
        assert_eq!(found("crates/cpu/src/lib.rs", text), expected);
    }

    #[test]
    fn ordinary_uses_are_left_alone() {
        let text = "Both ends of a queue. As many rows as columns. Sizes around the tile. `ends_with`. \
                    One way to do it. Apart from that, it is on the border. Dense layers. A finished task. \
                    It tells what it watches.";
        assert_eq!(found("crates/ops/src/lib.rs", text), []);
    }

    #[test]
    fn an_entry_can_be_limited_to_folders() {
        assert_eq!(found("crates/kernels/src/a.rs", "a dense tensor").len(), 1);
        assert_eq!(found("crates/tflite/src/a.rs", "a dense tensor").len(), 0);
    }

    #[test]
    fn every_exception_has_a_reason_and_every_entry_a_replacement() {
        for entry in TABLE {
            assert!(!entry.instead.is_empty(), "{}", entry.name);
            assert!(entry.except.iter().all(|(_, reason)| !reason.is_empty()), "{}", entry.name);
        }
    }
}
