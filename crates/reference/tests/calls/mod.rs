//! Calls of every operation, drawn by chance, and models of them.
//!
//! [`specimens`] draws calls in real numbers; a [`specimen::Specimen`] writes itself down in the
//! types of any row of the operation's signature; [`model`] makes a model of such a call and runs it
//! on a device. Test crates that use it, also those of other engines, include this folder at their
//! root as `calls`.
#![allow(dead_code)] // Every test crate uses a part.

pub mod dice;
pub mod model;
pub mod perturbed;
pub mod specimen;
pub mod specimens;

use dice::Dice;
use nnhal_hal::OperationType;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use specimen::Specimen;

/// So many cases, unless the environment says how many. A smaller seed makes no smaller case, so
/// nothing is shrunk.
pub fn config(cases: u32) -> Config {
    let wanted = std::env::var("NNHAL_TEST_CASES").ok().and_then(|it| it.parse().ok());
    let cases = wanted.unwrap_or(cases);
    Config { max_shrink_iters: 0, failure_persistence: None, ..Config::with_cases(cases) }
}

/// Holds a law against `cases` specimens of each operation. All operations that break it are named,
/// each with one specimen.
pub fn each_specimen(
    cases: u32,
    operations: impl Iterator<Item = OperationType>,
    law: impl Fn(&Specimen, &mut Dice) -> Result<(), String>,
) {
    let only = std::env::var("NNHAL_TEST_OPERATION").ok();
    let mut failures = Vec::new();
    for operation in operations {
        if only.as_ref().is_some_and(|only| *only != operation.to_string()) {
            continue;
        }
        let outcome = TestRunner::new(config(cases)).run(&any::<u64>(), |seed| {
            let mut dice = Dice::new(seed);
            let specimen = specimens::draw(operation, &mut dice).expect("a specimen");
            law(&specimen, &mut dice)
                .map_err(|error| TestCaseError::fail(format!("{error}\nof {specimen:?}")))
        });
        if let Err(failure) = outcome {
            failures.push(format!("{operation}: {failure}"));
        }
    }
    assert!(failures.is_empty(), "{} operations\n{}", failures.len(), failures.join("\n\n"));
}
