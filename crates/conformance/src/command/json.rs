//! Outcomes as JSON.

use crate::Report;
use crate::contract::{CheckOutcome, ContractReport, Verdict};
use crate::report::Tally;

pub(super) fn of_contract(report: &ContractReport) -> serde_json::Value {
    let checks: Vec<_> = report
        .outcomes
        .iter()
        .map(|CheckOutcome { section, check, result }| {
            let (outcome, reason) = match result {
                Ok(Verdict::Kept) => ("kept", None),
                Ok(Verdict::NotOffered(what)) => ("not_offered", Some(what.clone())),
                Err(violation) => ("violated", Some(violation.to_string())),
            };
            serde_json::json!({
                "section": section,
                "name": check.name,
                "requirements": check.ids,
                "outcome": outcome,
                "reason": reason,
            })
        })
        .collect();
    serde_json::json!({ "violations": report.violations().count(), "checks": checks })
}

pub(super) fn of_vectors(report: &Report) -> serde_json::Value {
    let tally = |Tally { passed, failed, skipped, for_c_library, not_offered, declined }: Tally| {
        serde_json::json!({
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
            "for_c_library": for_c_library,
            "not_offered": not_offered,
            "declined": declined,
        })
    };
    let suites: serde_json::Map<String, serde_json::Value> = report
        .by_suite()
        .into_iter()
        .map(|(suite, it)| (suite.name().to_owned(), tally(it)))
        .collect();
    let operations: serde_json::Map<String, serde_json::Value> = report
        .by_operation()
        .into_iter()
        .map(|(operation, it)| (operation.to_owned(), tally(it)))
        .collect();
    let rules: serde_json::Map<String, serde_json::Value> =
        report.by_rule().into_iter().map(|(rule, it)| (rule.to_owned(), tally(it))).collect();
    let paths: serde_json::Map<String, serde_json::Value> = report
        .by_path()
        .into_iter()
        .map(|(path, it)| (path.name().to_owned(), tally(it)))
        .collect();
    let mut suites_and_paths = serde_json::Map::new();
    for ((suite, path), it) in report.by_suite_and_path() {
        let paths = suites_and_paths.entry(suite.name()).or_insert_with(|| serde_json::json!({}));
        paths[path.name()] = tally(it);
    }
    let failures: Vec<_> = report
        .failures()
        .map(|(outcome, failure)| {
            serde_json::json!({
                "case": &*outcome.case,
                "spec": &*outcome.spec,
                "suite": outcome.suite.name(),
                "path": outcome.path.name(),
                "rule": outcome.rule,
                "failure": failure,
            })
        })
        .collect();
    let skipped: Vec<_> = report
        .skipped()
        .map(|(outcome, needed)| {
            serde_json::json!({
                "case": &*outcome.case,
                "spec": &*outcome.spec,
                "suite": outcome.suite.name(),
                "needs": needed.name(),
            })
        })
        .collect();
    serde_json::json!({
        "total": tally(report.total()),
        "suites": suites,
        "operations": operations,
        "rules": rules,
        "paths": paths,
        "suites_and_paths": suites_and_paths,
        "failures": failures,
        "skipped": skipped,
    })
}
