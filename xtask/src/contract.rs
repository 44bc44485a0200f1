//! Which requirement of the contract is named by which test.

use crate::files::{self, FileError};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Requirements on a transport over kernel binder, which does not exist yet.
const OF_BINDER: &[&str] = &["IPC-1", "IPC-2", "IPC-7", "IPC-8"];

/// A requirement by area and number, so that FENCE-2 comes before FENCE-10.
type Id = (String, u32);

#[derive(Debug, thiserror::Error)]
pub(crate) enum CoverageError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{path} has no requirements")]
    NoRequirements { path: PathBuf },
    #[error("{path}:{line}: {fault}")]
    Contract { path: PathBuf, line: usize, fault: ContractFault },
}

/// What is wrong with a line of the contract.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ContractFault {
    #[error(
        "a list item begins with {found:?}; an id is an area in capitals and a number, as CF-2"
    )]
    Malformed { found: String },
    #[error("{id} is already defined in line {first}")]
    Repeated { id: String, first: usize },
    #[error("{id} is not a requirement of this page")]
    Unknown { id: String },
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
        let ids = requirements(&files::read(contract)?).map_err(|(line, fault)| {
            CoverageError::Contract { path: contract.to_owned(), line, fault }
        })?;
        for id in ids {
            coverage.tests.insert(id, BTreeSet::new());
        }
        if coverage.tests.is_empty() {
            return Err(CoverageError::NoRequirements { path: contract.to_owned() });
        }
        let areas: BTreeSet<String> = coverage.tests.keys().map(|(area, _)| area.clone()).collect();
        for folder in folders {
            for path in files::with_extensions(folder, &["rs"])? {
                coverage.add(&path, &files::read(&path)?, &areas);
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

    /// Requirements without a test, except those of a part that does not exist yet.
    pub(crate) fn missing(&self) -> impl Iterator<Item = String> {
        self.without_test().filter(|id| !OF_BINDER.contains(&id.as_str()))
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
            "{} requirements, {named} named by tests, {waiting} wait for a transport over binder, {} missing",
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

/// The requirements that a contract defines: list items that begin with a bold id. Each is defined
/// once, and every id that the text mentions is one of them. A fault comes with its line.
fn requirements(contract: &str) -> Result<Vec<Id>, (usize, ContractFault)> {
    let item = Regex::new(r"^\s*- \*\*([^*]*)\*\*").expect("a valid pattern");
    let id = Regex::new(r"^([A-Z]+(?:-[A-Z]+)*)-([1-9]\d*)$").expect("a valid pattern");
    let mut found: BTreeMap<Id, usize> = BTreeMap::new();
    for (line, text) in (1..).zip(contract.lines()) {
        let Some(item) = item.captures(text) else { continue };
        let malformed = || ContractFault::Malformed { found: item[1].to_owned() };
        let id = id.captures(&item[1]).ok_or_else(|| (line, malformed()))?;
        let number = id[2].parse().map_err(|_| (line, malformed()))?;
        if let Some(first) = found.insert((id[1].to_owned(), number), line) {
            return Err((line, ContractFault::Repeated { id: item[1].to_owned(), first }));
        }
    }
    let areas: BTreeSet<String> = found.keys().map(|(area, _)| area.clone()).collect();
    for (line, text) in (1..).zip(contract.lines()) {
        let mentioned = ids_in(text, &areas);
        if let Some((area, number)) = mentioned.into_iter().find(|id| !found.contains_key(id)) {
            return Err((line, ContractFault::Unknown { id: format!("{area}-{number}") }));
        }
    }
    Ok(found.into_keys().collect())
}

/// The ids in a text, `AREA-1` or, for all of them, `AREA-1 to 3`. Other standards have numbers too
/// (IEEE-754): only the given areas count.
fn ids_in(text: &str, areas: &BTreeSet<String>) -> BTreeSet<Id> {
    let id = Regex::new(r"\b([A-Z]+(?:-[A-Z]+)*)-(\d+)(?: to (?:[A-Z]+(?:-[A-Z]+)*-)?(\d+))?\b")
        .expect("a valid pattern");
    let mut ids = BTreeSet::new();
    for found in id.captures_iter(text) {
        let Ok(first) = found[2].parse::<u32>() else { continue };
        let last = found.get(3).and_then(|last| last.as_str().parse().ok()).unwrap_or(first);
        if areas.contains(&found[1]) {
            ids.extend((first..=last).map(|number| (found[1].to_owned(), number)));
        }
    }
    ids
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

/// The checks of `nnhal conformance --contract`, which a test runs against the reference device:
/// `ids: &["FENCE-1", ...], name: "..."`.
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
        let mut ids = ids_in(&self.comment, areas);
        ids.extend(in_name(&self.name, areas));
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
        let contract = "text FENCE-2\n- **FENCE-2** one\n- **DEV-CAP-11** (1.2) two\n**QOS-1** no";
        let expected = [("DEV-CAP".to_owned(), 11), ("FENCE".to_owned(), 2)];
        assert_eq!(requirements(contract), Ok(expected.into()));
    }

    #[test]
    fn a_contract_with_a_wrong_id_is_refused() {
        let fault = |contract| requirements(contract).expect_err("a wrong id");
        let malformed = |found: &str| ContractFault::Malformed { found: found.to_owned() };
        assert_eq!(fault("- **FENCE-2** a\n- **Fence-3** b"), (2, malformed("Fence-3")));
        assert_eq!(fault("- **FENCE-02** a"), (1, malformed("FENCE-02")));
        assert_eq!(fault("- **FENCE-2b** a"), (1, malformed("FENCE-2b")));
        let repeated = ContractFault::Repeated { id: "CB-1".to_owned(), first: 1 };
        assert_eq!(fault("- **CB-1** a\n\n- **CB-1** b"), (3, repeated));
        let unknown = ContractFault::Unknown { id: "CB-3".to_owned() };
        assert_eq!(fault("- **CB-1** a\n- **CB-2** b\nas CB-1 to 3 say"), (3, unknown));
    }

    #[test]
    fn the_contract_of_this_repository_is_well_formed() {
        let found = requirements(include_str!("../../docs/contract.md")).expect("well formed");
        assert_eq!(found.len(), 247, "update this number when the contract gains a requirement");
    }
}
