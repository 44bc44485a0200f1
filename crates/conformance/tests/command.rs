//! The command with a device of one's own: vectors that it declines, and what is printed.

use clap::Parser;
use nnhal_conformance::command::{self, Arguments, CommandError};
use nnhal_driver::{Budget, CompileOptions, DriverDevice, Engine, EngineError, OperationPlace};
use nnhal_hal::{Capabilities, Device, DeviceType, OperationType, PerformanceInfo, Support};
use nnhal_ops::ValidModel;
use nnhal_reference::{InterpretedProgram, ReferenceEngine};
use std::path::Path;
use std::sync::Arc;

/// The reference engine, with some operations only.
struct Few(ReferenceEngine, &'static [OperationType]);

impl Engine for Few {
    type Program = InterpretedProgram;

    fn name(&self) -> &str {
        "test-some"
    }

    fn version_string(&self) -> String {
        "1".to_owned()
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Other
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::uniform(PerformanceInfo::AS_CPU)
    }

    fn supports(&self, model: &ValidModel, place: OperationPlace) -> Support {
        match self.1.contains(&place.operation_type) {
            true => self.0.supports(model, place),
            false => Support::No("not among those".to_owned()),
        }
    }

    fn compile(
        &self,
        model: &ValidModel,
        options: &CompileOptions,
        budget: &Budget,
    ) -> Result<InterpretedProgram, EngineError> {
        self.0.compile(model, options, budget)
    }
}

fn some(operations: &'static [OperationType]) -> Arc<dyn Device> {
    Arc::new(DriverDevice::new(Few(ReferenceEngine::new(), operations)))
}

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    arguments: Arguments,
}

fn run(device: &Arc<dyn Device>, arguments: &[&str]) -> Result<(), CommandError> {
    let all = ["program"].iter().chain(arguments);
    command::run(&Program::parse_from(all).arguments, Some(device))
}

/// A vector of an operation of two floats and no other argument, in the format that the documentation
/// describes.
fn vector(name: &str, operation: &str, expected: &str) -> String {
    let operand = |name: &str, lifetime: &str, data: &str| {
        serde_json::json!({
            "name": name, "type": "TENSOR_FLOAT32", "dimensions": [2], "scale": 0.0,
            "zero_point": 0, "lifetime": lifetime, "channel_quant": null, "ignored": false,
            "data": data,
        })
    };
    let vector = serde_json::json!({
        "name": name, "spec": format!("V1_0/{name}"), "min_hal": "1.0", "hal_floor": "1.0",
        "ops": [operation], "variations": [],
        "suites": ["generated", "dynamic_output_shape", "compliance"],
        "is_relaxed": false, "expect_failure": false, "multinomial_tolerance": null,
        "tolerances": [{ "atol": 1e-5, "rtol": 0.0 }],
        "main": {
            // -1.5 and 2.5
            "operands": [
                operand("x", "SUBGRAPH_INPUT", "AADAvwAAIEA="),
                operand("y", "SUBGRAPH_OUTPUT", expected),
            ],
            "operations": [{ "type": operation, "inputs": [0], "outputs": [1] }],
            "inputs": [0], "outputs": [1],
        },
        "referenced": [],
    });
    format!("{vector}\n")
}

/// RELU and RELU6, which have the same result here; and FLOOR, whose expected one is wrong.
fn write_vectors(folder: &Path) {
    let cases = [
        ("relu", "RELU", "AAAAAAAAIEA="),
        ("relu6", "RELU6", "AAAAAAAAIEA="),
        ("floor", "FLOOR", "AAAAAAAAIEA="),
    ];
    let mut files = Vec::new();
    std::fs::create_dir(folder.join("V1_0")).unwrap();
    for (name, operation, expected) in cases {
        let text = vector(name, operation, expected);
        let path = format!("V1_0/{name}.jsonl.zst");
        let level = ruzstd::encoding::CompressionLevel::Fastest;
        let packed = ruzstd::encoding::compress_to_vec(text.as_bytes(), level);
        std::fs::write(folder.join(&path), packed).unwrap();
        files.push(serde_json::json!({ "path": path, "cases": 1, "ops": [operation] }));
    }
    let manifest = serde_json::json!({ "format": 1, "files": files });
    std::fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
}

/// Counts by judgement: passed, failed, declined.
fn counts(folder: &Path, device: &Arc<dyn Device>) -> [usize; 3] {
    let vectors = nnhal_conformance::Vectors::open(folder).unwrap();
    let suites = ["generated", "dynamic_output_shape", "short_output"];
    let suites = suites.map(|it| nnhal_conformance::Suite::from_name(it).unwrap()).to_vec();
    let selection = nnhal_conformance::Selection { suites, ..Default::default() };
    let report = nnhal_conformance::run(&**device, &vectors, &selection, |_| ()).unwrap();
    assert_eq!(report.to_string().contains(" declined"), report.total().declined > 0);
    let total = report.total();
    [total.passed, total.failed, total.declined]
}

#[test]
fn what_a_device_does_not_support_is_declined_and_not_failed() {
    let folder = tempfile::tempdir().unwrap();
    write_vectors(folder.path());
    // Three suites of each vector; FLOOR is wrong in the two that look at values.
    assert_eq!(counts(folder.path(), &nnhal_reference::device()), [7, 2, 0]);
    let relu = some(&[OperationType::Relu]);
    assert_eq!(counts(folder.path(), &relu), [3, 0, 6]);
    let folder = folder.path().to_str().unwrap();
    run(&relu, &[folder, "--suite", "generated"]).unwrap();
    run(&relu, &[folder, "--paths", "all", "--suite", "generated,short_output"]).unwrap();
    let none = run(&some(&[]), &[folder, "--suite", "generated"]).unwrap_err();
    assert_eq!(none.to_string(), "the device declined all that was selected: 3 vectors");
    assert_eq!(none.exit_code(), 1);
    let floor = some(&[OperationType::Floor]);
    let failed = run(&floor, &[folder, "--suite", "generated"]).unwrap_err();
    assert_eq!(failed.to_string(), "1 vectors failed");
}

#[test]
fn a_device_that_supports_nothing_is_checked_by_the_contract() {
    let outcome = run(&some(&[]), &["--contract", "--filter", "DEV-SUP"]);
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[test]
fn a_folder_without_vectors_is_an_input_error() {
    let error = run(&nnhal_reference::device(), &["/no/such/folder"]).unwrap_err();
    assert_eq!(error.exit_code(), 3);
}
