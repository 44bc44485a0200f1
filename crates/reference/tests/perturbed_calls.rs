//! Valid calls with one argument changed, on the reference device.
//!
//! `NNHAL_TEST_OPERATION` names a single operation to test, `NNHAL_TEST_CASES` says how often.

mod calls;

use calls::perturbed::{MEMORY_LIMIT, each_is_computed_or_refused};
use nnhal_driver::DriverDevice;
use nnhal_reference::ReferenceEngine;
use std::sync::Arc;

#[test]
fn gen_8_calls_with_one_argument_changed_are_computed_or_refused() {
    let reference = DriverDevice::new(ReferenceEngine::with_memory_limit(MEMORY_LIMIT));
    // The same test of `nnhal-cpu` tries more, on this device too.
    each_is_computed_or_refused(&[("reference", Arc::new(reference))], 2);
}
