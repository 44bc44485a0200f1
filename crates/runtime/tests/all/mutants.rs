//! Models that are broken in one place: the builder refuses what it cannot express.
#![allow(clippy::print_stderr)] // What was left out.

use crate::support::through::rebuild;
use nnhal_conformance::instance::Instance;
use nnhal_conformance::{Vectors, mutation};
use nnhal_hal::{HalVersion, Model, OperandLifeTime};
use nnhal_runtime::{Devices, ResultCode};
use std::collections::BTreeMap;
use std::path::Path;

/// Rules that the builder keeps by itself, because the C API has no words for breaking them: places
/// of operands that are no constants, indexes of pools and subgraphs, some lifetimes, the order of
/// operations, numbers of consumers, the table of extensions. And CF-4, which holds for devices only.
const KEPT: [&str; 8] =
    ["CF-4", "EXT-2", "MODEL-13", "MODEL-14", "MODEL-16", "MODEL-19", "MODEL-23", "MODEL-24"];

/// The rule that holds for devices only: an operation without an argument that it needs fails when it is
/// computed.
const FAILS_WHEN_COMPUTED: &str = "MODEL-26";

/// Rules that it can be made to break.
const REFUSED: [&str; 21] = [
    "CF-1", "CF-2", "CF-3", "CF-5", "CF-6", "MODEL-1", "MODEL-10", "MODEL-11", "MODEL-12",
    "MODEL-15", "MODEL-17", "MODEL-20", "MODEL-21", "MODEL-22", "MODEL-25", "MODEL-3", "MODEL-5",
    "MODEL-6", "MODEL-7", "MODEL-8", "MODEL-9",
];

/// Whether the builder can express the model: what it names is there.
fn can_be_expressed(model: &Model) -> bool {
    model.subgraphs().all(|(_, graph)| {
        graph.operands.iter().all(|operand| {
            let location = operand.location;
            let is_within = |size: u64| location.end() <= size;
            match operand.lifetime {
                OperandLifeTime::ConstantCopy => is_within(model.operand_values.len() as u64),
                OperandLifeTime::ConstantReference => model
                    .pools
                    .get(location.pool_index as usize)
                    .is_some_and(|pool| is_within(pool.size())),
                OperandLifeTime::Subgraph => (location.offset as usize) < model.referenced.len(),
                _ => true,
            }
        })
    })
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance");
    let Ok(vectors) = Vectors::open(&folder) else {
        eprintln!("skipped: no vectors beside the repository");
        return;
    };
    let devices = Devices::new([nnhal_reference::device()]);
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    // Most are alike: some are enough.
    let step = if cfg!(debug_assertions) { 100 } else { 20 };
    for (number, file) in vectors.files().iter().enumerate() {
        for case in vectors.cases(file).unwrap().step_by(step) {
            let case = case.unwrap();
            if case.expect_failure {
                continue;
            }
            let instance = Instance::new(&case).unwrap();
            mutation::mutants(&instance.model, HalVersion::LATEST, None, number, |mutant| {
                if !can_be_expressed(&mutant.model) || KEPT.contains(&mutant.rule) {
                    return;
                }
                let what = format!("{} ({}): {}", case.name, mutant.rule, mutant.what);
                match rebuild(&devices, &mutant.model) {
                    Ok(model) if mutant.rule == FAILS_WHEN_COMPUTED => {
                        let supported = model.supported_operations(devices.list()).unwrap();
                        assert!(supported.contains(&false), "{what} is supported");
                    }
                    Ok(_) => panic!("{what} was accepted"),
                    Err(error) => assert_eq!(error.code(), ResultCode::BadData, "{what}: {error}"),
                }
                *refused.entry(mutant.rule).or_default() += 1;
            });
        }
    }
    for rule in REFUSED.into_iter().chain([FAILS_WHEN_COMPUTED]) {
        assert!(refused.get(rule).is_some_and(|count| *count > 10), "{rule}: {refused:?}");
    }
}
