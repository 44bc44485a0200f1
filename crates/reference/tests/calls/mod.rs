//! Calls of every operation, drawn by chance, and models of them.
//!
//! [`samples`] draws calls in real numbers; a [`sample::Sample`] writes itself down in the
//! types of any row of the operation's signature; [`model`] makes a model of such a call and runs it
//! on a device. Test crates that use it, also those of other engines, include this folder at their
//! root as `calls`.
#![allow(dead_code)] // Every test crate uses a part.

pub mod model;
pub mod perturbed;
pub mod random;
pub mod sample;
pub mod samples;

use nnhal_hal::OperationType;
use nnhal_ops::extension::{ExtensionOperation, operation_name};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use random::Random;
use sample::Sample;
use std::sync::Mutex;

/// This many cases, unless the environment says how many. A smaller seed makes no smaller case, so
/// nothing is shrunk.
pub fn config(usual: u32) -> Config {
    of_cases(wanted_cases().unwrap_or(usual))
}

fn wanted_cases() -> Option<u32> {
    std::env::var("NNHAL_TEST_CASES").ok().and_then(|it| it.parse().ok())
}

fn of_cases(cases: u32) -> Config {
    Config { max_shrink_iters: 0, failure_persistence: None, ..Config::with_cases(cases) }
}

/// All operations, of the interface and of our extension.
pub fn all_operations() -> impl Iterator<Item = OperationType> {
    let extended = ExtensionOperation::ALL.iter().map(|it| it.operation_type());
    OperationType::FUNDAMENTAL.iter().copied().chain(extended)
}

/// A law takes every row of a signature for each sample. Our extension's operations have up to 169, which
/// share their kernels: of those there are fewer samples.
fn cases_of(operation: OperationType, cases: u32) -> u32 {
    const MOST_ROWS: usize = 4;
    match ExtensionOperation::of(operation) {
        Some(extended) => {
            let rows = extended.signature().rows.len().max(MOST_ROWS);
            (cases.saturating_mul(4) / u32::try_from(rows).unwrap_or(u32::MAX)).max(1)
        }
        None => cases,
    }
}

/// Holds a law against `cases` samples of each operation. All operations that break it are named,
/// each with one sample.
pub fn each_sample(
    cases: u32,
    operations: impl Iterator<Item = OperationType> + Send,
    law: impl Fn(&Sample, &mut Random) -> Result<(), String> + Sync,
) {
    each_sample_on(1, cases, operations, law);
}

/// The same on several threads, which pays where a law mostly waits.
pub fn each_sample_on(
    threads: usize,
    cases: u32,
    operations: impl Iterator<Item = OperationType> + Send,
    law: impl Fn(&Sample, &mut Random) -> Result<(), String> + Sync,
) {
    let only = std::env::var("NNHAL_TEST_OPERATION").ok();
    let is_wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let (operations, failures) = (Mutex::new(operations), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = operations.lock().unwrap().next();
            let Some(operation) = next else { return };
            let name = operation_name(operation);
            if !is_wanted(&name) {
                continue;
            }
            let cases = cases_of(operation, wanted_cases().unwrap_or(cases));
            let outcome = TestRunner::new(of_cases(cases)).run(&any::<u64>(), |seed| {
                let mut random = Random::new(seed);
                let sample = samples::draw(operation, &mut random).expect("a sample");
                law(&sample, &mut random)
                    .map_err(|error| TestCaseError::fail(format!("{error}\nof {sample:?}")))
            });
            if let Err(failure) = outcome {
                failures.lock().unwrap().push(format!("{name}: {failure}"));
            }
        }
    };
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} operations\n{}", failures.len(), failures.join("\n\n"));
}
