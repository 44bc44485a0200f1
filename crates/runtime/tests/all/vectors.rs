//! All test vectors through the runtime, by every path of execution, on one device and
//! divided between two.
#![allow(clippy::print_stderr)] // What was left out.

use crate::support::scripted::Scripted;
use crate::support::through::{Path, ThroughRuntime};
use nnhal_conformance::{Selection, Suite, Vectors};
use nnhal_runtime::Devices;
use std::sync::Arc;

/// Those that speak of what a client of the runtime sees.
const SUITES: [Suite; 6] = [
    Suite::Generated,
    Suite::DynamicOutputShape,
    Suite::ShortOutput,
    Suite::QuantizationCoupling,
    Suite::Validation,
    Suite::Timeout,
];

/// Every vector where this is optimized, otherwise some specifications.
fn judge(device: &ThroughRuntime) -> Option<usize> {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let Ok(vectors) = Vectors::open(&folder) else {
        eprintln!("skipped: no vectors beside the repository");
        return None;
    };
    let filters: &[&str] = if cfg!(debug_assertions) {
        eprintln!("not optimized: some specifications only");
        &["lstm_float", "conv2d_v1_2", "while_", "if_", "add_v1_2", "box_with_nms", "split_u8"]
    } else {
        &[""]
    };
    let mut count = 0;
    for filter in filters {
        let selection = Selection {
            filter: (*filter).to_owned(),
            suites: SUITES.to_vec(),
            is_c_library: true,
            ..Selection::default()
        };
        let report = nnhal_conformance::run(device, &vectors, &selection, |_| {}).unwrap();
        count += report.outcomes.len();
        let failures: Vec<String> = report
            .failures()
            .filter(|(_, why)| !is_refused_as_by_android(why))
            .map(|(outcome, why)| format!("{} ({}): {why}", outcome.case, outcome.suite))
            .collect();
        assert!(
            failures.is_empty(),
            "{} of {count} fail\n{}",
            failures.len(),
            failures[..failures.len().min(25)].join("\n")
        );
    }
    Some(count)
}

/// Vectors that expect a failure are models that a device takes and cannot run. Android's runtime
/// refuses some of them when the operation is added, for lengths that do not go together.
fn is_refused_as_by_android(why: &str) -> bool {
    let reason = why.strip_prefix("refused by supported_operations: INVALID_ARGUMENT: BAD_DATA: ");
    let of_operation = reason.and_then(|reason| reason.split_once(": "));
    let operations = ["CAST", "FULLY_CONNECTED", "MIRROR_PAD", "REVERSE"];
    of_operation.is_some_and(|(place, what)| {
        let names = |name: &&str| what.starts_with(&format!("{name}: shape of "));
        place.starts_with("operation ") && operations.iter().any(names)
    })
}

#[test]
fn all_vectors_pass_on_one_device() {
    let device = ThroughRuntime::new(Devices::new([nnhal_reference::device()]), Path::ALL);
    if let Some(count) = judge(&device) {
        assert!(count > 100, "{count}");
    }
}

/// Operations go to two devices in turn, so that values pass between them everywhere.
#[test]
fn all_vectors_pass_divided_between_two_devices() {
    let devices = Devices::new([
        Arc::new(Scripted::new("test-even", |index, _| index % 2 == 0))
            as Arc<dyn nnhal_hal::Device>,
        Arc::new(Scripted::new("test-odd", |index, _| index % 2 == 1)),
        nnhal_reference::device(),
    ]);
    let device = ThroughRuntime::new(devices, Path::ALL);
    if let Some(count) = judge(&device) {
        assert!(device.steps() > count / 2, "{} steps for {count}", device.steps());
    }
}
