//! Laws: what holds for every operation, whatever its arguments are.
//!
//! [`specimens`] draws calls of every operation in real numbers; a [`specimen::Specimen`] writes
//! itself down in the types of any row of the operation's signature. A law takes such calls to the
//! reference device, each as a model of its own, and compares two ways to the same result:
//!
//! | law | file |
//! |---|---|
//! | a quantised operation is within a step of the float one | [`quantized`] |
//! | NCHW is NHWC transposed | [`layout`] |
//! | float16 is float32, rounded | [`half_precision`] |
//! | what a model leaves open changes nothing | [`dynamic`] |
//! | what is not given is as the default | [`defaults`] |
//! | IF is its branch, WHILE is its rounds | [`control_flow`] |
//!
//! `NNHAL_TEST_OPERATION` names a single operation to test, `NNHAL_TEST_CASES` says how often.

mod control_flow;
mod defaults;
mod dice;
mod dynamic;
mod half_precision;
mod layout;
mod quantized;
mod run;
mod specimen;
mod specimens;

use dice::Dice;
use hal::OperationType;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use specimen::Specimen;

/// So many cases, unless the environment says how many. A smaller seed makes no smaller case, so
/// nothing is shrunk.
fn config(cases: u32) -> Config {
    let wanted = std::env::var("NNHAL_TEST_CASES").ok().and_then(|it| it.parse().ok());
    let cases = wanted.unwrap_or(cases);
    Config { max_shrink_iters: 0, failure_persistence: None, ..Config::with_cases(cases) }
}

/// Holds a law against `cases` specimens of each operation. All operations that break it are named,
/// each with one specimen.
fn each_specimen(
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
