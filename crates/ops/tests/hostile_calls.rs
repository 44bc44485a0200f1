//! Whatever arguments an operation gets, as long as their types fit its signature: it answers, and
//! what it computes has the shape that it foretold.

mod arguments;

use arguments::{Invocation, Source, signatures};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::cell::Cell;

/// `NNHAL_TEST_OPERATION` names a single operation to test, `NNHAL_TEST_CASES` says how often.
#[test]
fn gen_8_wild_arguments_do_no_harm() {
    let only = std::env::var("NNHAL_TEST_OPERATION").ok();
    let cases = std::env::var("NNHAL_TEST_CASES").ok().and_then(|it| it.parse().ok());
    let cases = cases.unwrap_or(500);
    let (mut failures, mut tried) = (Vec::new(), 0);
    let computed = Cell::new(0_u32);
    for signature in signatures() {
        let name = nnhal_ops::extension::operation_name(signature.operation);
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
        let bytes = prop::collection::vec(any::<u8>(), 0..400);
        let result = TestRunner::new(config).run(&bytes, |bytes| {
            let invocation = Invocation::of(signature, &mut Source::new(&bytes));
            let has_computed = invocation.compute().map_err(TestCaseError::fail)?;
            computed.set(computed.get() + u32::from(has_computed));
            Ok(())
        });
        if let Err(failure) = result {
            failures.push(format!("{name}: {failure}"));
        }
        tried += cases;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // Otherwise the arguments have become so wild that nothing is tested.
    let computed = computed.get();
    assert!(only.is_some() || computed > tried / 10, "{computed} of {tried} calls were computed");
}
