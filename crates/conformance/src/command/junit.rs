//! Outcomes in JUnit's XML, for build servers.

use crate::contract::{CheckOutcome, ContractReport, Verdict};
use crate::report::Judgement;
use crate::{Path, Report};
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

/// A test suite for each section of the contract.
pub(super) fn of_contract(report: &ContractReport) -> quick_junit::Report {
    let mut suites: Vec<TestSuite> = Vec::new();
    for CheckOutcome { section, check, result } in &report.outcomes {
        let status = match result {
            Ok(Verdict::Kept) => TestCaseStatus::success(),
            Ok(Verdict::NotOffered(what)) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(format!("not offered: {what}"));
                status
            }
            Err(violation) => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_message(violation.to_string());
                status
            }
        };
        let mut case = TestCase::new(check.name, status);
        case.set_classname(check.ids.join(" "));
        if suites.last().is_none_or(|suite| suite.name.as_str() != *section) {
            suites.push(TestSuite::new(*section));
        }
        if let Some(suite) = suites.last_mut() {
            suite.add_test_case(case);
        }
    }
    let mut xml = quick_junit::Report::new("contract");
    xml.add_test_suites(suites);
    xml
}

/// A test suite for each suite of vectors.
pub(super) fn of_vectors(report: &Report) -> quick_junit::Report {
    let mut xml = quick_junit::Report::new("conformance");
    for suite in report.by_suite().into_keys() {
        let mut test_suite = TestSuite::new(suite.name());
        for outcome in report.outcomes.iter().filter(|outcome| outcome.suite == suite) {
            let status = match &outcome.judgement {
                Judgement::Passed => TestCaseStatus::success(),
                Judgement::Failed(failure) => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(failure);
                    status
                }
                Judgement::Skipped(needed) => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(format!("needs {needed}"));
                    status
                }
                Judgement::NotOffered(what) => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(format!("not offered: {what}"));
                    status
                }
                Judgement::Declined(why) => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message(format!("declined: {why}"));
                    status
                }
                Judgement::ForCLibrary => {
                    let mut status = TestCaseStatus::skipped();
                    status.set_message("for the C library, and refused as it must be");
                    status
                }
            };
            let name = match outcome.rule {
                None if outcome.path != Path::Synchronous => {
                    format!("{}/{}", outcome.case, outcome.path)
                }
                None => outcome.case.to_string(),
                Some(rule) => format!("{}/{rule}", outcome.case),
            };
            let mut case = TestCase::new(name, status);
            case.set_classname(&*outcome.spec);
            test_suite.add_test_case(case);
        }
        xml.add_test_suite(test_suite);
    }
    xml
}
