//! Which requirement of the contract is named by which test.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Requirements that a room to come must keep: a transport over kernel binder.
const OF_ROOMS_TO_COME: &[&str] = &["IPC-1", "IPC-2", "IPC-6", "IPC-7", "IPC-8"];

/// A requirement by area and number, so that FENCE-2 comes before FENCE-10.
type Id = (String, u32);

#[derive(Debug, thiserror::Error)]
pub(crate) enum CoverageError {
    #[error("{path}: {error}")]
    File { path: PathBuf, error: io::Error },
    #[error("{path} has no requirements")]
    NoRequirements { path: PathBuf },
    #[error("{folder}: {error}")]
    Folder { folder: PathBuf, error: walkdir::Error },
}

/// Every requirement with the tests that name it, as `file::test`.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    tests: BTreeMap<Id, BTreeSet<String>>,
    /// Requirements that tests name and the contract does not have.
    unknown: BTreeMap<Id, BTreeSet<String>>,
}

impl Coverage {
    pub(crate) fn read(contract: &Path, folders: &[PathBuf]) -> Result<Self, CoverageError> {
        let mut coverage = Self::default();
        for id in requirements(&read(contract)?) {
            coverage.tests.insert(id, BTreeSet::new());
        }
        if coverage.tests.is_empty() {
            return Err(CoverageError::NoRequirements { path: contract.to_owned() });
        }
        let areas: BTreeSet<String> = coverage.tests.keys().map(|(area, _)| area.clone()).collect();
        for folder in folders {
            for entry in WalkDir::new(folder).sort_by_file_name() {
                let folder = folder.clone();
                let entry = entry.map_err(|error| CoverageError::Folder { folder, error })?;
                let path = entry.path();
                if path.extension().is_some_and(|extension| extension == "rs") {
                    coverage.add(path, &read(path)?, &areas);
                }
            }
        }
        Ok(coverage)
    }

    fn add(&mut self, path: &Path, source: &str, areas: &BTreeSet<String>) {
        for test in tests(source).into_iter().chain(checks(source)) {
            for id in test.names(areas) {
                let name = format!("{}::{}", path.display(), test.name);
                match self.tests.get_mut(&id) {
                    Some(tests) => tests.insert(name),
                    None => self.unknown.entry(id).or_default().insert(name),
                };
            }
        }
    }

    /// Requirements without a test, but for those of rooms to come.
    pub(crate) fn missing(&self) -> impl Iterator<Item = String> {
        self.without_test().filter(|id| !OF_ROOMS_TO_COME.contains(&id.as_str()))
    }

    fn without_test(&self) -> impl Iterator<Item = String> {
        let without = self.tests.iter().filter(|(_, tests)| tests.is_empty());
        without.map(|((area, number), _)| format!("{area}-{number}"))
    }

    pub(crate) fn report(&self, all: bool) -> String {
        let mut text = String::new();
        let mut line = |line: String| text.extend([line.as_str(), "\n"]);
        for ((area, number), tests) in self.tests.iter().filter(|_| all) {
            line(format!("{area}-{number}"));
            for test in tests {
                line(format!("    {test}"));
            }
        }
        for ((area, number), tests) in &self.unknown {
            for test in tests {
                line(format!("no such requirement: {area}-{number}, named by {test}"));
            }
        }
        for id in self.missing() {
            line(format!("no test: {id}"));
        }
        let waiting = self.without_test().count() - self.missing().count();
        let named = self.tests.len() - self.without_test().count();
        line(format!(
            "{} requirements, {named} named by tests, {waiting} wait for rooms to come, {} missing",
            self.tests.len(),
            self.missing().count()
        ));
        text
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let tests: serde_json::Map<_, _> = self
            .tests
            .iter()
            .map(|((area, number), tests)| {
                (format!("{area}-{number}"), tests.iter().cloned().collect())
            })
            .collect();
        serde_json::json!({ "tests": tests, "missing": self.missing().collect::<Vec<_>>() })
    }
}

fn read(path: &Path) -> Result<String, CoverageError> {
    fs::read_to_string(path).map_err(|error| CoverageError::File { path: path.to_owned(), error })
}

/// The requirements that a contract defines: list items that begin with a bold id.
fn requirements(contract: &str) -> Vec<Id> {
    let item = Regex::new(r"(?m)^- \*\*([A-Z]+(?:-[A-Z]+)*)-(\d+)\*\*").expect("a valid pattern");
    item.captures_iter(contract)
        .filter_map(|found| Some((found[1].to_owned(), found[2].parse().ok()?)))
        .collect()
}

/// A test, and the comment above it.
#[derive(Debug, PartialEq)]
struct Test {
    name: String,
    comment: String,
}

/// All tests of a source file: functions marked `#[test]`, also those within `proptest!`.
fn tests(source: &str) -> Vec<Test> {
    let function =
        Regex::new(r"^\s*(?:pub(?:\([a-z]+\))? )?fn ([a-z0-9_]+)").expect("a valid pattern");
    let mut found = Vec::new();
    let (mut comment, mut is_test) = (String::new(), false);
    for line in source.lines() {
        let line = line.trim();
        if line.starts_with("//") {
            comment.push_str(line);
            comment.push('\n');
        } else if line == "#[test]" {
            is_test = true;
        } else if line.starts_with("#[") {
            continue;
        } else {
            if let (true, Some(function)) = (is_test, function.captures(line)) {
                let comment = std::mem::take(&mut comment);
                found.push(Test { name: function[1].to_owned(), comment });
            }
            is_test = false;
            comment.clear();
        }
    }
    found
}

/// The checks of a room of `nnhal conformance --contract`, which a test runs against the reference
/// device: `ids: &["FENCE-1", ...], name: "..."`.
fn checks(source: &str) -> Vec<Test> {
    let check = Regex::new(r#"ids: &\[([^\]]*)\],\s*name: "([^"]*)""#).expect("a valid pattern");
    check
        .captures_iter(source)
        .map(|found| Test { name: format!("check {:?}", &found[2]), comment: found[1].to_owned() })
        .collect()
}

impl Test {
    /// The requirements it names.
    fn names(&self, areas: &BTreeSet<String>) -> BTreeSet<Id> {
        let mut ids = BTreeSet::new();
        ids.extend(in_name(&self.name, areas));
        let id =
            Regex::new(r"\b([A-Z]+(?:-[A-Z]+)*)-(\d+)(?: to (?:[A-Z]+(?:-[A-Z]+)*-)?(\d+))?\b")
                .expect("a valid pattern");
        for found in id.captures_iter(&self.comment) {
            let Ok(first) = found[2].parse::<u32>() else { continue };
            let last = found.get(3).and_then(|last| last.as_str().parse().ok()).unwrap_or(first);
            // Other standards have numbers too (IEEE-754): only areas of the contract count.
            if areas.contains(&found[1]) {
                ids.extend((first..=last).map(|number| (found[1].to_owned(), number)));
            }
        }
        ids
    }
}

/// The requirements that the beginning of a test's name says: `area_1`, `area_1_and_2`,
/// `area_1_to_3`, `area_1_and_other_2`.
fn in_name(name: &str, areas: &BTreeSet<String>) -> Vec<Id> {
    let mut ids: Vec<Id> = Vec::new();
    let mut words = name.split('_').peekable();
    let mut joined = None;
    loop {
        let mut area = String::new();
        while let Some(word) = words.next_if(|word| word.parse::<u32>().is_err()) {
            if !area.is_empty() {
                area.push('-');
            }
            area.push_str(&word.to_uppercase());
            if area.len() > 20 {
                return ids;
            }
        }
        if area.is_empty() {
            let Some((last, _)) = ids.last() else { return ids };
            area.clone_from(last);
        }
        let Some(number) = words.next().and_then(|word| word.parse::<u32>().ok()) else {
            return ids;
        };
        if !areas.contains(&area) {
            return ids;
        }
        match (joined, ids.last().cloned()) {
            (Some("to"), Some((from, first))) if from == area => {
                ids.extend((first + 1..=number).map(|number| (area.clone(), number)));
            }
            _ => ids.push((area, number)),
        }
        joined = words.next_if(|word| matches!(*word, "and" | "to"));
        if joined.is_none() {
            return ids;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn areas() -> BTreeSet<String> {
        ["FENCE", "DEV-CAP", "QOS", "CB"].map(str::to_owned).into()
    }

    fn named(name: &str) -> Vec<String> {
        in_name(name, &areas()).iter().map(|(area, number)| format!("{area}-{number}")).collect()
    }

    #[test]
    fn names_say_requirements() {
        assert_eq!(named("fence_14_a_chain"), ["FENCE-14"]);
        assert_eq!(named("dev_cap_1_all_above_0"), ["DEV-CAP-1"]);
        assert_eq!(named("qos_7_and_8_limits"), ["QOS-7", "QOS-8"]);
        assert_eq!(named("dev_cap_1_to_3"), ["DEV-CAP-1", "DEV-CAP-2", "DEV-CAP-3"]);
        assert_eq!(named("fence_7_and_cb_1_once"), ["FENCE-7", "CB-1"]);
        assert!(named("nothing_of_7_the_kind").is_empty());
        assert!(named("fence_to_fence").is_empty());
    }

    #[test]
    fn comments_above_tests_say_requirements() {
        let source = "/// contract: CB-1 to CB-3, FENCE-2; IEEE-754\n#[test]\nfn once() {}\n\
                      // FENCE-9\nfn no_test() {}\n#[test]\n#[ignore]\nfn other() {}\n";
        let found = tests(source);
        assert_eq!(found.len(), 2);
        let ids = found[0].names(&areas());
        let expected = [("CB", 1), ("CB", 2), ("CB", 3), ("FENCE", 2)];
        assert_eq!(ids, expected.map(|(area, number)| (area.to_owned(), number)).into());
        assert!(found[1].names(&areas()).is_empty());
    }

    #[test]
    fn checks_say_requirements() {
        let source = "Check { ids: &[\"CB-1\", \"QOS-2\"], name: \"once\", run: once },";
        let found = checks(source);
        let expected = [("CB", 1), ("QOS", 2)];
        assert_eq!(
            found[0].names(&areas()),
            expected.map(|(area, number)| (area.to_owned(), number)).into()
        );
    }

    #[test]
    fn requirements_are_the_bold_items() {
        let contract = "text FENCE-1\n- **FENCE-2** one\n- **DEV-CAP-11** (1.2) two\n**QOS-1** no";
        assert_eq!(requirements(contract), [("FENCE".to_owned(), 2), ("DEV-CAP".to_owned(), 11)]);
    }
}
