//! [`Report`]: what became of the vectors.

use crate::mutation::RULES;
use crate::paths::Path;
use crate::suite::Suite;
use nnhal_hal::HalVersion;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What became of one vector in one suite.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The vector's name.
    pub case: Arc<str>,
    /// The file it is in.
    pub spec: Arc<str>,
    /// The operation under test; of several the first.
    pub operation: Arc<str>,
    /// The suite in which it was run.
    pub suite: Suite,
    /// In the mutation suite: the contract's rule that was broken.
    pub rule: Option<&'static str>,
    /// How it was executed.
    pub path: Path,
    /// What became of it.
    pub judgement: Judgement,
}

/// Whether a vector passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It did.
    Passed,
    /// It did not; what went wrong.
    Failed(String),
    /// The device was not asked, because its version of the interfaces is older than this, the
    /// oldest that has what the vector needs in this suite.
    Skipped(HalVersion),
    /// The device refused it as it may or must: such a model is for the C library, which runs the
    /// control flow itself (contract: CF-4).
    ForCLibrary,
    /// The device does not offer what the path is about, as it may; with what that is.
    NotOffered(String),
    /// The device says that it does not support operations of the vector, as it may; with its reason.
    Declined(String),
}

/// How many passed, failed and were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Vectors that passed.
    pub passed: usize,
    /// Vectors that failed.
    pub failed: usize,
    /// Vectors that were not run, for what the device does not offer.
    pub skipped: usize,
    /// For the C library, and rightly refused.
    pub for_c_library: usize,
    /// Not offered by the device.
    pub not_offered: usize,
    /// With operations that the device does not support.
    pub declined: usize,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        match outcome.judgement {
            Judgement::Passed => self.passed += 1,
            Judgement::Failed(_) => self.failed += 1,
            Judgement::Skipped(_) => self.skipped += 1,
            Judgement::ForCLibrary => self.for_c_library += 1,
            Judgement::NotOffered(_) => self.not_offered += 1,
            Judgement::Declined(_) => self.declined += 1,
        }
    }
}

/// What became of all vectors.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// In the order of the files.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// All together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.outcomes.iter().for_each(|outcome| total.count(outcome));
        total
    }

    /// By operation under test. A vector of several operations counts for the first.
    pub fn by_operation(&self) -> BTreeMap<&str, Tally> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for outcome in &self.outcomes {
            tallies.entry(&*outcome.operation).or_default().count(outcome);
        }
        tallies
    }

    /// By suite.
    pub fn by_suite(&self) -> BTreeMap<Suite, Tally> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for outcome in &self.outcomes {
            tallies.entry(outcome.suite).or_default().count(outcome);
        }
        tallies
    }

    /// By path.
    pub fn by_path(&self) -> BTreeMap<Path, Tally> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for outcome in &self.outcomes {
            tallies.entry(outcome.path).or_default().count(outcome);
        }
        tallies
    }

    /// By suite, and in each by path.
    pub fn by_suite_and_path(&self) -> BTreeMap<(Suite, Path), Tally> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for outcome in &self.outcomes {
            tallies.entry((outcome.suite, outcome.path)).or_default().count(outcome);
        }
        tallies
    }

    /// By rule, in the mutation suite; in the contract's order.
    pub fn by_rule(&self) -> Vec<(&'static str, Tally)> {
        let mut tallies = BTreeMap::<_, Tally>::new();
        for outcome in &self.outcomes {
            if let Some(rule) = outcome.rule {
                tallies.entry(rule).or_default().count(outcome);
            }
        }
        RULES.iter().filter_map(|rule| Some((*rule, *tallies.get(rule)?))).collect()
    }

    /// Those that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&Outcome, &str)> {
        self.outcomes.iter().filter_map(|outcome| match &outcome.judgement {
            Judgement::Failed(what) => Some((outcome, &**what)),
            _ => None,
        })
    }

    /// Those that were skipped, each with the version that it needs.
    pub fn skipped(&self) -> impl Iterator<Item = (&Outcome, HalVersion)> {
        self.outcomes.iter().filter_map(|outcome| match outcome.judgement {
            Judgement::Skipped(needed) => Some((outcome, needed)),
            _ => None,
        })
    }

    /// How many were skipped by the version that they need.
    pub fn skipped_by_version(&self) -> BTreeMap<HalVersion, usize> {
        let mut counts = BTreeMap::new();
        for (_, needed) in self.skipped() {
            *counts.entry(needed).or_default() += 1;
        }
        counts
    }
}

/// Failures, then tables by operation, by rule and by suite, by path if there are several, then why
/// any were skipped. That there were skipped ones is said only if there were.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (outcome, failure) in self.failures() {
            let Outcome { case, spec, suite, .. } = outcome;
            match outcome.rule {
                None if outcome.path != Path::Synchronous => {
                    let path = outcome.path;
                    writeln!(formatter, "FAILED {case} ({suite} {path}, {spec}): {failure}")?;
                }
                None => writeln!(formatter, "FAILED {case} ({suite}, {spec}): {failure}")?,
                Some(rule) => {
                    writeln!(formatter, "FAILED {case} ({suite} {rule}, {spec}): {failure}")?;
                }
            }
        }
        let row = |formatter: &mut fmt::Formatter<'_>, name: &str, tally: Tally| {
            let Tally { passed, failed, skipped, for_c_library, not_offered, declined } = tally;
            write!(formatter, "{name:35} {passed:7} passed {failed:7} failed")?;
            if skipped > 0 {
                write!(formatter, " {skipped:7} skipped")?;
            }
            if for_c_library > 0 {
                write!(formatter, " {for_c_library:7} for the C library")?;
            }
            if not_offered > 0 {
                write!(formatter, " {not_offered:7} not offered")?;
            }
            if declined > 0 {
                write!(formatter, " {declined:7} declined")?;
            }
            writeln!(formatter)
        };
        for (operation, tally) in self.by_operation() {
            row(formatter, operation, tally)?;
        }
        for (rule, tally) in self.by_rule() {
            row(formatter, rule, tally)?;
        }
        for (suite, tally) in self.by_suite() {
            row(formatter, suite.name(), tally)?;
        }
        let paths = self.by_path();
        if paths.keys().any(|path| *path != Path::Synchronous) {
            for ((suite, path), tally) in self.by_suite_and_path() {
                row(formatter, &format!("{suite} {path}"), tally)?;
            }
            for (path, tally) in paths {
                row(formatter, path.name(), tally)?;
            }
        }
        row(formatter, "all", self.total())?;
        for (needed, count) in self.skipped_by_version() {
            writeln!(formatter, "{count} skipped: they need {needed}, the device is older")?;
        }
        Ok(())
    }
}
