//! The mutants of the samples: each breaks the rule that it says, and a device that does not know
//! the rule is found out.

#[path = "../../ops/tests/samples/mod.rs"]
mod samples;

use nnhal_conformance::mutation::{self, Mutant, RULES};
use nnhal_hal::{
    Capabilities, Device, DeviceType, ErrorStatus, HalVersion, Model, PerformanceInfo,
    PrepareOptions, PreparedModel, Support,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What our validator may call a rule that a mutant breaks.
fn reasons(rule: &'static str) -> &'static [&'static str] {
    match rule {
        // 0xFFFFFFFF is of an extension that has no name.
        "MODEL-3" => &["MODEL-3", "EXT-3"],
        "MODEL-4" => &["MODEL-4", "EXT-3"],
        "MODEL-6" => &["MODEL-6", "MODEL-7"],
        // A byte more may reach beyond the pool.
        "MODEL-15" => &["MODEL-15", "MODEL-14"],
        // Channels of a number that is not known; arguments that a subgraph has as well.
        "MODEL-25" => &["MODEL-25", "MODEL-11", "CF-1", "CF-3"],
        "MODEL-26" => &["MODEL-26", "MODEL-25", "CF-1", "CF-2"],
        // A constant condition of another shape.
        "CF-1" => &["CF-1", "MODEL-7", "MODEL-15"],
        // An operation of the subgraph that does not take it either.
        "CF-3" => &["CF-3", "MODEL-25", "MODEL-29"],
        "CF-6" => &["MODEL-19"],
        _ => RULES.iter().find(|it| **it == rule).map_or(&[], std::slice::from_ref),
    }
}

/// All mutants of all samples, for several choices of places.
fn all_mutants(mut each: impl FnMut(&'static str, Mutant)) {
    for sample in samples::all() {
        for seed in 0..2 {
            let name = sample.name;
            let (newest, oldest) = (HalVersion::LATEST, Some(sample.version));
            mutation::mutants(&sample.model, newest, oldest, seed, |it| each(name, it));
        }
    }
}

#[test]
fn every_mutant_is_refused_for_the_right_reason() {
    let mut failures = BTreeSet::new();
    let mut counts = BTreeMap::<_, usize>::new();
    all_mutants(|sample, Mutant { rule, what, model, version }| {
        *counts.entry(rule).or_default() += 1;
        let place = format!("{rule}, {sample}: {what}, by version {version}");
        match nnhal_ops::validate::check(&model, version) {
            Ok(_) => drop(failures.insert(format!("{place}: accepted"))),
            Err(error) if !reasons(rule).contains(&error.rule()) => {
                failures.insert(format!("{place}: {}: {error}", error.rule()));
            }
            Err(error) => assert_eq!(error.status(), ErrorStatus::InvalidArgument),
        }
    });
    assert!(RULES.iter().all(|rule| counts.contains_key(rule)), "{counts:?}");
    let failures: Vec<_> = failures.into_iter().collect();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

/// A device whose validation answers as it is configured.
struct Judge<F>(F);

impl<F: Fn(&Model, HalVersion) -> nnhal_hal::Result<()> + Send + Sync> Device for Judge<F> {
    fn name(&self) -> &str {
        "test-judge"
    }

    fn version_string(&self) -> String {
        "1".into()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo { exec_time: 1.0, power_usage: 1.0 })
    }

    fn supported_operations(
        &self,
        model: &Model,
        version: HalVersion,
    ) -> nnhal_hal::Result<Vec<Support>> {
        self.0(model, version).map(|()| vec![Support::Yes; model.main.operations.len()])
    }

    fn prepare_model(
        &self,
        model: &Model,
        version: HalVersion,
        _options: PrepareOptions,
    ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
        self.0(model, version)?;
        Err(nnhal_hal::Error::failure("nothing is ever prepared here"))
    }
}

/// Rules with a mutant that the device did not refuse as it must, and how many those are; asserts
/// that `failure` is said of the first.
fn found_out(device: &dyn Device, failure: &str) -> BTreeMap<&'static str, usize> {
    let mut found = BTreeMap::new();
    for sample in samples::all() {
        for seed in 0..2 {
            let verdicts = mutation::judge(device, &sample.model, Some(sample.version), seed);
            for (rule, verdict) in verdicts {
                assert_eq!(verdict.failed > 0, verdict.failure.is_some());
                if let Some(what) = verdict.failure {
                    assert!(what.contains(failure), "{what}");
                    *found.entry(rule).or_default() += verdict.failed;
                }
            }
        }
    }
    found
}

#[test]
fn a_device_that_accepts_everything_fails_by_every_rule() {
    let mut all = BTreeMap::<_, usize>::new();
    all_mutants(|_, mutant| *all.entry(mutant.rule).or_default() += 1);
    let device = Judge(|_: &Model, _| Ok(()));
    assert_eq!(found_out(&device, "supported_operations accepted it"), all);
}

/// Otherwise a rule's mutants would break other rules as well, and not show whether it is kept.
#[test]
fn a_device_that_lacks_one_rule_is_found_out_by_its_mutants() {
    for rule in RULES.iter().copied() {
        let own = match rule {
            "MODEL-6" => "MODEL-7",
            "CF-6" => "MODEL-19",
            rule => rule,
        };
        let device =
            Judge(move |model: &Model, version| match nnhal_ops::validate::check(model, version) {
                Err(error) if error.rule() != own => Err(error.into()),
                _ => Ok(()),
            });
        let found = found_out(&device, "supported_operations accepted it");
        assert!(found.contains_key(rule), "{rule}: {found:?}");
    }
}

#[test]
fn the_wrong_status_and_a_panic_are_failures() {
    let fails = Judge(|_: &Model, _| Err(nnhal_hal::Error::failure("no")));
    assert!(found_out(&fails, "answered GENERAL_FAILURE").contains_key("MODEL-1"));
    let panics = Judge(|_: &Model, _| panic!("out of range"));
    assert!(found_out(&panics, "supported_operations panicked").contains_key("MODEL-20"));
}

#[test]
fn both_methods_must_refuse() {
    struct Forgetful;
    impl Device for Forgetful {
        fn name(&self) -> &str {
            "test-forgetful"
        }

        fn version_string(&self) -> String {
            "1".into()
        }

        fn device_type(&self) -> DeviceType {
            DeviceType::Other
        }

        fn capabilities(&self) -> Capabilities {
            Capabilities::uniform(PerformanceInfo { exec_time: 1.0, power_usage: 1.0 })
        }

        fn supported_operations(
            &self,
            _: &Model,
            _: HalVersion,
        ) -> nnhal_hal::Result<Vec<Support>> {
            Err(nnhal_hal::Error::invalid("no"))
        }

        fn prepare_model(
            &self,
            _: &Model,
            _: HalVersion,
            _: PrepareOptions,
        ) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
            Err(nnhal_hal::Error::failure("no"))
        }
    }
    assert!(found_out(&Forgetful, "prepare_model answered GENERAL_FAILURE").len() == RULES.len());
}
