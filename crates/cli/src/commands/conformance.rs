//! `nnhal conformance`

use super::{print, print_json};
use crate::devices;
use crate::error::{CliError, Result};
use conformance::{Report, Selection, Suite, VectorError, Vectors};
use indicatif::ProgressBar;
use std::path::PathBuf;

/// The arguments of `nnhal conformance`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal conformance ../shared/conformance --device nnhal-reference --filter conv2d")]
pub struct Arguments {
    /// Folder with the vectors [default: ../shared/conformance, if it is there]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Device to judge
    #[arg(long, default_value = devices::DEFAULT, value_name = "NAME")]
    device: String,
    /// Only vectors whose name or file contains this
    #[arg(long, default_value = "", value_name = "TEXT")]
    filter: String,
    /// Only these suites: generated, dynamic_output_shape, short_output, quantization_coupling,
    /// compliance, validation, timeout, mutation [default: all]
    #[arg(long = "suite", value_name = "NAME", value_delimiter = ',')]
    suites: Vec<String>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Also write the outcomes there, in JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Runs vectors.
pub fn run(arguments: &Arguments) -> Result<()> {
    let suites = arguments
        .suites
        .iter()
        .map(|name| {
            Suite::from_name(name)
                .ok_or_else(|| CliError::Input(format!("there is no suite {name:?}")))
        })
        .collect::<Result<Vec<_>>>()?;
    let selection = Selection {
        filter: arguments.filter.clone(),
        suites: if suites.is_empty() { Suite::ALL.to_vec() } else { suites },
    };
    let device = devices::open(&arguments.device, 1)?;
    let bad_vectors = |error: VectorError| CliError::Input(error.to_string());
    let vectors = Vectors::open(&folder(arguments)?).map_err(bad_vectors)?;
    let bar = ProgressBar::new(vectors.files().len() as u64);
    let report = conformance::run(&*device, &vectors, &selection, |done| {
        bar.set_position(done as u64);
    })
    .map_err(bad_vectors)?;
    bar.finish_and_clear();
    if let Some(path) = &arguments.junit {
        let xml = junit(&report).to_string().map_err(|error| CliError::Input(error.to_string()))?;
        std::fs::write(path, xml).map_err(CliError::file(path))?;
    }
    if arguments.json {
        print_json(&json(&report))?;
    } else {
        print(&report.to_string())?;
    }
    match (report.total().failed, report.total().passed) {
        (0, 0) => Err(CliError::Negative("no vector was selected".into())),
        (0, _) => Ok(()),
        (failed, _) => Err(CliError::Negative(format!("{failed} vectors failed"))),
    }
}

/// Where vectors are looked for if nobody says where they are: beside the repository.
const USUAL_FOLDER: &str = "../shared/conformance";

fn folder(arguments: &Arguments) -> Result<PathBuf> {
    if let Some(folder) = &arguments.folder {
        return Ok(folder.clone());
    }
    let usual = PathBuf::from(USUAL_FOLDER);
    if usual.join("manifest.json").is_file() {
        return Ok(usual);
    }
    Err(CliError::Input(format!(
        "there are no vectors in {USUAL_FOLDER}; say where they are: nnhal conformance DIR"
    )))
}

/// A test suite for each suite of vectors.
fn junit(report: &Report) -> quick_junit::Report {
    use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
    let mut xml = quick_junit::Report::new("conformance");
    for suite in report.by_suite().into_keys() {
        let mut test_suite = TestSuite::new(suite.name());
        for outcome in report.outcomes.iter().filter(|outcome| outcome.suite == suite) {
            let status = match &outcome.failure {
                None => TestCaseStatus::success(),
                Some(failure) => {
                    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                    status.set_message(failure);
                    status
                }
            };
            let name = match outcome.rule {
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

fn json(report: &Report) -> serde_json::Value {
    let tally = |tally: conformance::report::Tally| serde_json::json!({ "passed": tally.passed, "failed": tally.failed });
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
    let failures: Vec<_> = report
        .failures()
        .map(|(outcome, failure)| {
            serde_json::json!({
                "case": &*outcome.case,
                "spec": &*outcome.spec,
                "suite": outcome.suite.name(),
                "rule": outcome.rule,
                "failure": failure,
            })
        })
        .collect();
    serde_json::json!({
        "total": tally(report.total()),
        "suites": suites,
        "operations": operations,
        "rules": rules,
        "failures": failures,
    })
}
