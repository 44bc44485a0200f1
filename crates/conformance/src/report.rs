//! [`Report`]: what became of the vectors.

use crate::mutation::RULES;
use crate::suites::Suite;
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
    /// The suite.
    pub suite: Suite,
    /// In the mutation suite: the contract's rule that was broken.
    pub rule: Option<&'static str>,
    /// Nothing if it passed, else what went wrong.
    pub failure: Option<String>,
}

/// How many passed and failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        match outcome.failure {
            None => self.passed += 1,
            Some(_) => self.failed += 1,
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
        self.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.failure.as_deref()?)))
    }
}

/// Failures, then tables by operation, by rule and by suite.
impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (outcome, failure) in self.failures() {
            let Outcome { case, spec, suite, .. } = outcome;
            match outcome.rule {
                None => writeln!(formatter, "FAILED {case} ({suite}, {spec}): {failure}")?,
                Some(rule) => {
                    writeln!(formatter, "FAILED {case} ({suite} {rule}, {spec}): {failure}")?;
                }
            }
        }
        let row = |formatter: &mut fmt::Formatter<'_>, name: &str, tally: Tally| {
            writeln!(formatter, "{name:32} {:7} passed {:7} failed", tally.passed, tally.failed)
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
        row(formatter, "all", self.total())
    }
}
