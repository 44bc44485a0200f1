//! Valid calls with one argument changed, on the fast device beside the reference device.
//!
//! `NNHAL_TEST_OPERATION` names a single operation to test, `NNHAL_TEST_CASES` says how often.

#[path = "../../reference/tests/calls/mod.rs"]
mod calls;

use calls::perturbed::{MEMORY_LIMIT, each_is_computed_or_refused};
use nnhal_cpu::Settings;
use nnhal_driver::DriverDevice;
use nnhal_reference::ReferenceEngine;
use std::sync::Arc;

#[test]
fn gen_8_calls_with_one_argument_changed_are_computed_or_refused() {
    let reference = DriverDevice::new(ReferenceEngine::with_memory_limit(MEMORY_LIMIT));
    let fast = nnhal_cpu::device(Settings { memory_limit: MEMORY_LIMIT, ..Settings::default() });
    each_is_computed_or_refused(&[("reference", Arc::new(reference)), ("cpu", fast)], 12);
}
