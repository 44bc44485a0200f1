//! The contract's requirements and what is said of them: each is checked, or there is a reason why
//! it cannot be.

use nnhal_conformance::contract::{self, NOT_CHECKED};
use std::collections::BTreeSet;

const CONTRACT: &str = include_str!("../../../../docs/contract.md");

/// The bold ids at the beginning of list items.
fn requirements() -> BTreeSet<&'static str> {
    let item = |line: &'static str| line.trim_start().strip_prefix("- **")?.split("**").next();
    let is_id = |id: &&str| id.rsplit('-').next().is_some_and(|it| it.parse::<u32>().is_ok());
    CONTRACT.lines().filter_map(item).filter(is_id).collect()
}

#[test]
fn every_requirement_is_checked_or_has_a_reason() {
    let checked: BTreeSet<&str> = contract::checked().into_keys().collect();
    let reasons: BTreeSet<&str> = NOT_CHECKED.iter().map(|(id, _)| *id).collect();
    assert_eq!(reasons.len(), NOT_CHECKED.len(), "a reason twice");
    let both: Vec<_> = checked.intersection(&reasons).collect();
    assert!(both.is_empty(), "checked, and said not to be: {both:?}");
    let said: BTreeSet<&str> = checked.union(&reasons).copied().collect();
    let all = requirements();
    let missing: Vec<_> = all.difference(&said).collect();
    assert!(missing.is_empty(), "neither checked nor in NOT_CHECKED: {missing:?}");
    let unknown: Vec<_> = said.difference(&all).collect();
    assert!(unknown.is_empty(), "no requirements of the contract: {unknown:?}");
    let sum = checked.len() + reasons.len();
    assert_eq!((checked.len(), reasons.len(), sum), (216, 31, all.len()), "docs name the numbers");
}

#[test]
fn a_reason_is_a_sentence() {
    for (id, reason) in NOT_CHECKED {
        let sentence = reason.starts_with(char::is_uppercase) && reason.ends_with('.');
        assert!(sentence, "{id}: {reason}");
    }
}
