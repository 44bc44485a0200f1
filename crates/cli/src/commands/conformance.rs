//! `nnhal conformance`

use super::{print, print_json};
use crate::error::{CliError, Result};
use indicatif::ProgressBar;
use nnhal::devices;
use nnhal_conformance::contract::{self, CheckOutcome, ContractReport, Verdict};
use nnhal_conformance::report::{Judgement, Tally};
use nnhal_conformance::{Path, Report, Selection, Suite, VectorError, Vectors};
use nnhal_hal::{Device, HalVersion};
use nnhal_hidl::client::Options;
use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The arguments of `nnhal conformance`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  nnhal conformance ../shared/conformance --device nnhal-reference --filter conv2d
  nnhal conformance ../shared/conformance --paths all
  nnhal conformance ../shared/conformance --through 1.1 --suite generated
  nnhal conformance --contract --device nnhal-reference
  nnhal conformance --contract --list")]
pub struct Arguments {
    /// Check the contract's requirements instead of running vectors; --filter takes an id, a section
    /// or a part of a check's name
    #[arg(long, conflicts_with_all = ["folder", "suites"])]
    contract: bool,
    /// With --contract: list the requirements that are checked on any device, with their checks, and
    /// those that cannot be, with the reason; no device is used
    #[arg(long, requires = "contract", conflicts_with = "junit")]
    list: bool,
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
    /// How vectors are executed: synchronous, asynchronous, burst, fenced, chained, device_memory,
    /// cached, or all; each twice, the second time measured. What a vector must do by a path follows
    /// from its suite and its labels; compliance and mutation execute nothing and are run once
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "synchronous",
        conflicts_with = "contract"
    )]
    paths: Vec<String>,
    /// Use the device through the HAL interfaces of this version: 1.0, 1.1, 1.2 or 1.3. Vectors
    /// that need a newer one are skipped and counted, requirements of a newer one are not offered
    /// [default: without the interfaces]
    #[arg(long, value_name = "VERSION", value_parser = interface)]
    through: Option<HalVersion>,
    /// With --through: execute by the methods that answer by a callback, which 1.0 and 1.1 always do
    #[arg(long, requires = "through", conflicts_with = "contract")]
    asynchronous: bool,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Also write the outcomes there, in JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// Runs vectors, or checks of the contract.
pub fn run(arguments: &Arguments) -> Result<()> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counter, report) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        counter.fetch_add(1, Ordering::Relaxed);
        report(info);
    }));
    let outcome =
        if arguments.contract { check_contract(arguments) } else { run_vectors(arguments) };
    // A panic is a defect also where it was caught and the answer is one that the suites accept.
    match panics.load(Ordering::Relaxed) {
        0 => outcome,
        count => Err(CliError::Negative(format!("{count} panics in this process"))),
    }
}

/// The requirements and what looks at them.
fn list_contract(arguments: &Arguments) -> Result<()> {
    let matches = |id: &str| id.contains(&arguments.filter);
    let checked: Vec<_> = contract::checked().into_iter().filter(|(id, _)| matches(id)).collect();
    let reasons: Vec<_> = contract::NOT_CHECKED.iter().filter(|(id, _)| matches(id)).collect();
    if arguments.json {
        let object = |pairs: Vec<(&str, serde_json::Value)>| {
            let pairs = pairs.into_iter().map(|(id, it)| (id.to_owned(), it));
            serde_json::Value::Object(pairs.collect())
        };
        let checked = checked.into_iter().map(|(id, names)| (id, names.into())).collect();
        let reasons = reasons.into_iter().map(|(id, why)| (*id, (*why).into())).collect();
        return print_json(&serde_json::json!({
            "checked": object(checked),
            "not_checked": object(reasons),
        }));
    }
    let mut text = String::new();
    let mut line = |line: String| text.extend([line.as_str(), "\n"]);
    for (id, names) in &checked {
        line((*id).to_owned());
        names.iter().for_each(|name| line(format!("    {name}")));
    }
    for (id, why) in &reasons {
        line(format!("not checked: {id}: {why}"));
    }
    line(format!("{} requirements checked on any device, {} not", checked.len(), reasons.len()));
    print(&text)
}

fn check_contract(arguments: &Arguments) -> Result<()> {
    if arguments.list {
        return list_contract(arguments);
    }
    let device = devices::open(&arguments.device, NonZeroUsize::new(1))?;
    let bar = ProgressBar::new(contract::checks().count() as u64);
    let report = match arguments.through {
        Some(version) => contract::run_through(&device, version, &arguments.filter, |_| bar.inc(1))
            .map_err(CliError::device(&arguments.device))?,
        None => contract::run(&device, &arguments.filter, |_| bar.inc(1)),
    };
    bar.finish_and_clear();
    write_junit(arguments, || contract_junit(&report))?;
    if arguments.json {
        print_json(&contract_json(&report))?;
    } else {
        print(&report.to_string())?;
    }
    match (report.outcomes.len(), report.violations().count()) {
        (0, _) => Err(CliError::Negative("no check was selected".into())),
        (_, 0) => Ok(()),
        (_, violated) => Err(CliError::Negative(format!("{violated} checks found violations"))),
    }
}

fn run_vectors(arguments: &Arguments) -> Result<()> {
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
        paths: paths(&arguments.paths)?,
        ..Selection::default()
    };
    let device = open_device(arguments)?;
    let asynchronous = match selection.paths.contains(&Path::Asynchronous) {
        true => Some(open_asynchronous(arguments)?),
        false => None,
    };
    let selection = Selection { asynchronous, ..selection };
    let bad_vectors = |error: VectorError| CliError::Input(error.to_string());
    let vectors = Vectors::open(&folder(arguments)?).map_err(bad_vectors)?;
    let bar = ProgressBar::new(vectors.files().len() as u64);
    let report = nnhal_conformance::run(&*device, &vectors, &selection, |done| {
        bar.set_position(done as u64);
    })
    .map_err(bad_vectors)?;
    bar.finish_and_clear();
    write_junit(arguments, || junit(&report))?;
    if arguments.json {
        print_json(&json(&report))?;
    } else {
        print(&report.to_string())?;
    }
    match report.total() {
        Tally { failed: 0, passed: 0, skipped: 0, for_c_library: 0, not_offered: 0 } => {
            Err(CliError::Negative("no vector was selected".into()))
        }
        Tally { failed: 0, passed: 0, skipped, for_c_library: 0, not_offered: 0 } => {
            Err(CliError::Negative(format!("all that was selected was skipped: {skipped} vectors")))
        }
        Tally { failed: 0, .. } => Ok(()),
        Tally { failed, .. } => Err(CliError::Negative(format!("{failed} vectors failed"))),
    }
}

fn paths(names: &[String]) -> Result<Vec<Path>> {
    if names == ["all"] {
        return Ok(Path::ALL.to_vec());
    }
    let path = |name: &String| {
        Path::from_name(name).ok_or_else(|| CliError::Input(format!("there is no path {name:?}")))
    };
    names.iter().map(path).collect()
}

/// The device by the methods with callbacks, which only the interfaces have.
fn open_asynchronous(arguments: &Arguments) -> Result<Arc<dyn Device>> {
    let device = devices::open(&arguments.device, NonZeroUsize::new(1))?;
    let newest = device.version().min(HalVersion::V1_3);
    let version = arguments.through.unwrap_or(newest);
    let options = Options { asynchronous: true, ..Options::default() };
    nnhal_hidl::client::through(device, version, options)
        .map_err(CliError::device(&arguments.device))
}

/// The device, through the interfaces if that is wished.
fn open_device(arguments: &Arguments) -> Result<Arc<dyn Device>> {
    let device = devices::open(&arguments.device, NonZeroUsize::new(1))?;
    let Some(version) = arguments.through else { return Ok(device) };
    let options = Options { asynchronous: arguments.asynchronous, ..Options::default() };
    nnhal_hidl::client::through(device, version, options)
        .map_err(CliError::device(&arguments.device))
}

/// A version that the interface files have.
fn interface(name: &str) -> std::result::Result<HalVersion, String> {
    let version = HalVersion::from_name(name).filter(|version| *version <= HalVersion::V1_3);
    version.ok_or_else(|| "the interfaces have the versions 1.0, 1.1, 1.2 and 1.3".into())
}

/// Where vectors are looked for if no one says where they are: beside the repository.
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

fn write_junit(arguments: &Arguments, report: impl FnOnce() -> quick_junit::Report) -> Result<()> {
    let Some(path) = &arguments.junit else { return Ok(()) };
    let xml = report().to_string().map_err(|error| CliError::Input(error.to_string()))?;
    std::fs::write(path, xml).map_err(CliError::file(path))
}

/// A test suite for each section of the contract.
fn contract_junit(report: &ContractReport) -> quick_junit::Report {
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

fn contract_json(report: &ContractReport) -> serde_json::Value {
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

/// A test suite for each suite of vectors.
fn junit(report: &Report) -> quick_junit::Report {
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

fn json(report: &Report) -> serde_json::Value {
    let tally = |Tally { passed, failed, skipped, for_c_library, not_offered }: Tally| {
        serde_json::json!({
            "passed": passed,
            "failed": failed,
            "skipped": skipped,
            "for_c_library": for_c_library,
            "not_offered": not_offered,
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
