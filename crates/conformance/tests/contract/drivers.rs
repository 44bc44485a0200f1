//! The checks of the interfaces: each breach by a driver is found.

use crate::broken::{Breach, broken};
use nnhal_conformance::contract::{self, Verdict};
use nnhal_hal::HalVersion;
use std::collections::BTreeSet;

/// What each breach must be found as.
const BREACHES: &[(Breach, &[&str])] = &[
    (Breach::TellsOfModelsTwice, &["PREP-3", "CB-1"]),
    (Breach::NeverTellsOfModels, &["PREP-3", "CB-1"]),
    (Breach::NeverTellsOfWrongModels, &["PREP-1", "CB-5"]),
    (Breach::TellsOfWrongModelsOnly, &["PREP-1", "CB-5"]),
    (Breach::NoModelWithNone, &["PREP-3"]),
    (Breach::OldModels, &["CB-4"]),
    (Breach::NoCallbackIsFine, &["PREP-2"]),
    (Breach::UnsupportedIsReturned, &["PREP-5"]),
    (Breach::PreparesLateIsReturned, &["PREP-6", "GEN-4"]),
    (Breach::AnyPreferenceIsFine, &["GEN-7"]),
    (Breach::OneInterfaceForAll, &["GEN-6"]),
    (Breach::CacheIsReported, &["CACHE-5"]),
    (Breach::AnswersWithErrors, &["DEV-SUP-1", "GEN-3"]),
    (Breach::ForgetsPools, &["PREP-11"]),
    (Breach::TellsOfExecutionsTwice, &["EXEC-3", "CB-1", "CONC-1"]),
    (Breach::NeverTellsOfWrongRequests, &["EXEC-1", "CB-5"]),
    (Breach::TellsOfWrongRequestsOnly, &["EXEC-1", "CB-5"]),
    (Breach::TellsTooEarly, &["CB-2", "EXEC-9"]),
    (Breach::TellsTimesUnasked, &["TIME-1"]),
    (Breach::TellsShapesWithErrors, &["SHAPE-1", "EXEC-1"]),
    (Breach::ExecutesWithoutCallback, &["EXEC-2"]),
    (Breach::AnyMeasureIsFine, &["GEN-7"]),
    (Breach::LateIsReturned, &["EXEC-5", "QOS-7"]),
    (Breach::NewStatusesInOldMethods, &["GEN-2", "CB-6"]),
    (Breach::ForgetsShapes, &["CB-7", "SHAPE-4"]),
    (Breach::ForgetsLaunchesOfLostModels, &["CONC-3"]),
    (Breach::DifferentWhenSynchronous, &["SYNC-2", "SYNC-4"]),
    (Breach::ContextWithErrors, &["BURST-1"]),
    (Breach::AsksForEachSlot, &["BURST-7"]),
    (Breach::AsksTwice, &["BURST-9"]),
    (Breach::KeepsFreedMemory, &["BURST-10"]),
    (Breach::MakesUpMemory, &["BURST-7", "GEN-3"]),
    (Breach::AnyPacketIsFine, &["BURST-5", "BURST-11"]),
    (Breach::AnyPacketIsInvalid, &["BURST-12"]),
    (Breach::FenceWithErrors, &["FENCE-1", "FENCE-3", "GEN-7"]),
    (Breach::NoCallbackWithFence, &["FENCE-4"]),
    (Breach::AnotherInfoEachTime, &["FENCE-10"]),
    (Breach::OlderCostsDiffer, &["DEV-CAP-7"]),
    (Breach::TypeIsSeveral, &["DEV-INFO-2"]),
    (Breach::LoadsFromPosition, &["CACHE-2"]),
    (Breach::StumblesOverHandles, &["PREP-7", "CACHE-4"]),
    (Breach::CacheIsReported, &["CACHE-7"]),
    (Breach::OpensFilesAgain, &["CACHE-14", "CACHE-8", "SEC-5"]),
    (Breach::RemembersModels, &["CACHE-9", "CACHE-11", "SEC-5"]),
    (Breach::IgnoresTokens, &["CACHE-10"]),
    (Breach::LoadsAnotherModel, &["CACHE-13", "CACHE-15", "PREP-11"]),
    (Breach::TokenOfZerosIsWrong, &["PREP-9"]),
    (Breach::SwapsFields, &["BURST-3", "IPC-3"]),
    (Breach::DirtyPadding, &["BURST-13", "IPC-4", "BURST-4"]),
    (Breach::SplitsResults, &["BURST-2"]),
    (Breach::NewStatusesInBursts, &["BURST-14", "GEN-2"]),
    (Breach::OneBurstAtATime, &["BURST-16"]),
    (Breach::AnyMemoryIsFine, &["MEM-1", "MEM-2", "REQ-10", "MODEL-27", "MEM-5", "BUF-6"]),
    (Breach::CutsSizes, &["MEM-6"]),
    (Breach::ForgetsPools, &["PREP-12", "MODEL-27"]),
    (Breach::OneTokenForAll, &["ALLOC-1", "ALLOC-8"]),
    (Breach::TokenWithErrors, &["ALLOC-2", "GEN-3"]),
    (Breach::AllocatesAnything, &["ALLOC-2", "ALLOC-3", "ALLOC-4", "ALLOC-5", "IPC-6"]),
    (Breach::KeepsItsDimensions, &["ALLOC-7", "BUF-4"]),
    (Breach::KeepsItsSize, &["BUF-2"]),
    (Breach::AnySizeIsFine, &["BUF-3", "BUF-4", "BUF-5"]),
    (Breach::KeepsAfterFailures, &["BUF-1"]),
    (Breach::EmptyIsInvalid, &["BUF-5"]),
    (Breach::AnyTokenIsFine, &["DBUF-2", "DBUF-3", "DBUF-4", "DBUF-5", "DBUF-6", "DBUF-7"]),
    (Breach::AnyTokenIsFine, &["ALLOC-9", "EXEC-4"]),
    (Breach::DimensionsFirst, &["DBUF-8"]),
    (Breach::WrongIsFailureBehindFences, &["REQ-1", "REQ-3", "REQ-6", "REQ-9", "GEN-7"]),
    (Breach::FenceAndCallbackWithErrors, &["FENCE-1", "GEN-3"]),
    (Breach::TimesOfFailures, &["FENCE-10", "TIME-1"]),
    (Breach::AnyTagBehindFences, &["GEN-7"]),
    (Breach::NoShapesForCallbacks, &["SHAPE-2"]),
    (Breach::ShortIsFailureOfOld, &["EXEC-10"]),
    (Breach::LateBeforeWrong, &["GEN-4"]),
    (Breach::AnyLengthIsFine, &["REQ-9", "EXEC-1"]),
    (Breach::OlderCostsTwice, &["DEV-CAP-4"]),
    (Breach::AnyTypeIsFine, &["MODEL-3", "MODEL-4", "GEN-7"]),
    (Breach::NewTypesInOldMethods, &["GEN-6", "MODEL-3"]),
    (Breach::LoadsByAnyTag, &["GEN-7", "CACHE-5"]),
    (Breach::LateLoadsFirst, &["GEN-4", "CACHE-5"]),
    (Breach::LooksForBuffersLate, &["CONC-3", "ALLOC-8"]),
    (Breach::LoadedHaveNoBursts, &["CACHE-15", "BURST-17"]),
    (Breach::LoadedFailBehindFences, &["CACHE-15"]),
];

#[test]
fn every_breach_of_a_driver_is_found_and_every_check_finds_one() {
    let (mut of_use, mut not_found) = (BTreeSet::new(), Vec::new());
    for (breach, expected) in BREACHES {
        let driver = broken(HalVersion::V1_3, *breach);
        for id in *expected {
            let report = contract::run_driver("test-broken", &driver, *id, |_| ()).unwrap();
            let by_interfaces = report.violations().filter(|(outcome, _)| {
                outcome.section.starts_with("interfaces") && outcome.check.ids.contains(id)
            });
            let found: Vec<_> = by_interfaces.map(|(outcome, _)| outcome.check.name).collect();
            if found.is_empty() {
                not_found.push(format!("{breach:?} is not found as {id}\n{report}"));
            }
            of_use.extend(found);
        }
    }
    assert!(not_found.is_empty(), "{}", not_found.join("\n"));
    let all = contract::checks().filter(|(section, _)| section.starts_with("interfaces"));
    let of_no_use: Vec<_> =
        all.map(|(_, check)| check.name).filter(|name| !of_use.contains(name)).collect();
    assert!(of_no_use.is_empty(), "no breach is found by {of_no_use:?}");
}

/// Contract: BURST-5. Who waits for an answer does not wait for ever.
#[test]
fn a_burst_that_does_not_answer_is_reported() {
    let driver = broken(HalVersion::V1_3, Breach::SwallowsErrors);
    let check = "each number of a packet that is wrong";
    let report = contract::run_driver("test-broken", &driver, check, |_| ()).unwrap();
    let (outcome, violation) = report.violations().next().expect("a violation");
    assert!(outcome.check.ids.contains(&"BURST-5"), "{report}");
    assert!(violation.0.contains("there is no result"), "{violation}");
}

/// What an older version lacks is not offered, and nothing of it is a violation.
#[test]
fn a_driver_of_any_version_keeps_the_contract_from_both_sides() {
    for version in [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3] {
        let driver = broken(version, Breach::None);
        let report = contract::run_driver("test-driver", &driver, "", |_| ()).unwrap();
        assert_eq!(report.violations().count(), 0, "{version}\n{report}");
        let left_out = |outcome: &&contract::CheckOutcome| {
            matches!(outcome.result, Ok(Verdict::NotOffered(_)))
        };
        let count = report.outcomes.iter().filter(left_out).count();
        assert_eq!(count > 5, version < HalVersion::V1_3, "{version}\n{report}");
    }
}

#[test]
fn a_device_keeps_the_contract_through_the_interfaces_of_any_version() {
    let mut kept = 0;
    for version in [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3] {
        let device: std::sync::Arc<dyn nnhal_hal::Device> = nnhal_reference::device();
        let report = contract::run_through(&device, version, "", |_| ()).unwrap();
        assert_eq!(report.violations().count(), 0, "{version}\n{report}");
        let of_this = report.outcomes.iter().filter(|it| it.result == Ok(Verdict::Kept)).count();
        assert!(of_this > kept, "{version} has no more than the one before\n{report}");
        kept = of_this;
    }
}
