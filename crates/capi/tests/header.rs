//! The headers say what the library is: the same constants, functions and structures.

use neuralnetworks::{model, support_library};
use nnhal_hal::{
    DeviceType, ExecutionPreference, FusedActivation, HalVersion, OperandType, OperationType,
};
use nnhal_runtime::ResultCode;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

fn include(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    without_comments(&text)
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    kept + rest
}

/// The constants between `enum {` and the name of the enumeration (or its end), without prefix.
fn enumeration(header: &str, name: &str) -> BTreeMap<String, i64> {
    let end = header.find(&format!("}} {name};")).unwrap_or_else(|| panic!("there is no {name}"));
    let start = header[..end].rfind("enum {").unwrap();
    constants(&header[start + "enum {".len()..end])
}

fn constants(text: &str) -> BTreeMap<String, i64> {
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    for (name, value) in text.split(',').filter_map(|row| row.split_once('=')) {
        let name = name.trim().strip_prefix("ANEURALNETWORKS_").unwrap().to_owned();
        let value = value.trim().trim_end_matches(['}', ';', ' ']);
        let known = || found[value.strip_prefix("ANEURALNETWORKS_").unwrap()];
        let value = value.parse().unwrap_or_else(|_| known());
        assert!(found.insert(name, value).is_none(), "twice");
    }
    found
}

fn types() -> String {
    include("android/NeuralNetworksTypes.h")
}

fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, i64)>) -> BTreeMap<String, i64> {
    pairs.into_iter().map(|(name, code)| (name.to_owned(), code)).collect()
}

#[test]
fn operations_are_those_of_the_hal() {
    let fundamental = OperationType::FUNDAMENTAL.iter();
    let operations = fundamental.filter(|operation| **operation != OperationType::OemOperation);
    let expected = pairs(operations.map(|it| (it.name().unwrap(), i64::from(it.code()))));
    assert_eq!(enumeration(&types(), "OperationCode"), expected);
    assert_eq!(expected.len(), 106);
}

#[test]
fn operand_types_are_those_of_the_hal() {
    let fundamental = OperandType::FUNDAMENTAL.iter();
    let vendors = [OperandType::Oem, OperandType::TensorOemByte];
    let operands = fundamental.filter(|operand| !vendors.contains(operand));
    let name = |operand: &OperandType| match operand {
        OperandType::Subgraph => "MODEL",
        other => other.name().unwrap(),
    };
    let expected = pairs(operands.map(|it| (name(it), i64::from(it.code()))));
    assert_eq!(enumeration(&types(), "OperandCode"), expected);
}

/// contract: CAPI-1
#[test]
fn capi_1_result_codes_and_priorities_are_those_of_the_runtime() {
    let failures = ResultCode::ALL.iter().map(|it| (it.name(), i64::from(it.code())));
    let expected = pairs(failures.chain([("NO_ERROR", 0)]));
    assert_eq!(enumeration(&types(), "ResultCode"), expected);
    let priorities = pairs([
        ("PRIORITY_LOW", 90),
        ("PRIORITY_MEDIUM", 100),
        ("PRIORITY_HIGH", 110),
        ("PRIORITY_DEFAULT", 100),
    ]);
    assert_eq!(enumeration(&types(), "PriorityCode"), priorities);
    use nnhal_hal::ErrorStatus as Status;
    for (status, code) in [
        (Status::DeviceUnavailable, 9),
        (Status::GeneralFailure, 5),
        (Status::OutputInsufficientSize, 8),
        (Status::InvalidArgument, 4),
        (Status::MissedDeadlineTransient, 10),
        (Status::MissedDeadlinePersistent, 11),
        (Status::ResourceExhaustedTransient, 12),
        (Status::ResourceExhaustedPersistent, 13),
    ] {
        assert_eq!(ResultCode::from(status).code(), code, "{status}");
    }
}

#[test]
fn small_enumerations_are_those_of_the_hal() {
    let header = types();
    let prefixed = |prefix: &str, names: Vec<(&str, i32)>| -> BTreeMap<String, i64> {
        names.into_iter().map(|(name, code)| (format!("{prefix}{name}"), code.into())).collect()
    };
    let fused = FusedActivation::ALL.iter().map(|it| (it.name(), it.code())).collect();
    assert_eq!(enumeration(&header, "FuseCode"), prefixed("FUSED_", fused));
    let preferences = ExecutionPreference::ALL.iter();
    let preferences = preferences.map(|it| (it.name(), it.code())).collect();
    assert_eq!(enumeration(&header, "PreferenceCode"), prefixed("PREFER_", preferences));
    let mut devices: Vec<_> = DeviceType::ALL.iter().map(|it| (it.name(), it.code())).collect();
    devices.push(("UNKNOWN", 0));
    assert_eq!(enumeration(&header, "DeviceTypeCode"), prefixed("DEVICE_", devices));
    let levels = enumeration(&header, "FeatureLevelCode");
    for (version, name) in [
        (HalVersion::V1_0, "FEATURE_LEVEL_1"),
        (HalVersion::V1_1, "FEATURE_LEVEL_2"),
        (HalVersion::V1_2, "FEATURE_LEVEL_3"),
        (HalVersion::V1_3, "FEATURE_LEVEL_4"),
        (HalVersion::FeatureLevel6, "FEATURE_LEVEL_6"),
        (HalVersion::FeatureLevel7, "FEATURE_LEVEL_7"),
    ] {
        assert_eq!(levels[name], nnhal_runtime::feature_level(version));
    }
    assert_eq!(levels["FEATURE_LEVEL_8"], nnhal_runtime::RUNTIME_FEATURE_LEVEL);
    let copied = format!("IMMEDIATELY_COPIED_VALUES = {} ", model::COPIED_AT_ONCE);
    assert!(header.contains(&copied), "{copied}");
    let token = format!("BYTE_SIZE_OF_CACHE_TOKEN = {} ", nnhal_hal::BYTE_SIZE_OF_CACHE_TOKEN);
    assert!(header.contains(&token), "{token}");
}

/// Names before a bracket that begin like functions of the library.
fn functions(header: &str) -> BTreeSet<String> {
    let before_brackets = header.split('(').filter_map(|text| text.split_whitespace().last());
    let names = before_brackets.map(|name| name.trim_start_matches('*'));
    names
        .filter(|name| name.starts_with("ANeuralNetworks") || name.starts_with("nnhal_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_exported_function_is_declared_and_no_other() {
    let mut declared = BTreeSet::new();
    for header in ["android/NeuralNetworks.h", "android/NeuralNetworksExtensions.h", "nnhal.h"] {
        declared.extend(functions(&include(header)));
    }
    let library = include("android/NeuralNetworksSupportLibraryImpl.h");
    let (_, last) = library.split_once("} NnApiSLDriverImplFL8;").unwrap();
    declared.extend(functions(last));
    let map = include_str!("../neuralnetworks.map");
    let exported = map.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(';'));
    let exported: BTreeSet<String> = exported.map(str::to_owned).collect();
    assert_eq!(declared, exported);
}

#[test]
fn the_support_library_has_its_functions_in_the_order_of_the_header() {
    let header = include("android/NeuralNetworksSupportLibraryImpl.h");
    let start = header.find("typedef struct NnApiSLDriverImplFL5 {").unwrap();
    let members = header[start..].split("(*").skip(1).filter_map(|text| text.split(')').next());
    let members: Vec<&str> = members.filter(|name| *name != "callback").collect();
    assert_eq!(members, support_library::NAMES);
}
