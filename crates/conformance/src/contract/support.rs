//! What a device says of models before it prepares them (contract: section 4).

use super::models::{addition, is_supported, prepare, rectifier};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::InvalidArgument;
use nnhal_hal::{Device, HalVersion, Model, OperandSpec, OperationType, PrepareOptions, Support};
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check { ids: &["DEV-SUP-1"], name: "an invalid model is refused", run: Run::Device(invalid) },
    Check {
        ids: &["DEV-SUP-2", "DEV-SUP-3"],
        name: "one answer per operation, and what is supported can be prepared",
        run: Run::Device(answers),
    },
    Check {
        ids: &["DEV-SUP-5", "EXT-6", "PREP-5"],
        name: "a valid model that no device supports is valid, and fails to prepare",
        run: Run::Device(foreign),
    },
    Check {
        ids: &["DEV-SUP-6"],
        name: "the same model in unsigned and in signed 8 bits is supported in both or in neither",
        run: Run::Device(signedness),
    },
    Check {
        ids: &["GEN-6"],
        name: "a model through an older interface keeps to its rules",
        run: Run::Device(older),
    },
];

/// An addition whose result no one writes.
fn broken() -> Model {
    let mut model = addition([2, 2]);
    model.main.operations[0].outputs.clear();
    model
}

fn invalid(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let version = device.version();
    let asked = device.supported_operations(&broken(), version);
    demand_refusal("supported_operations of an invalid model", asked, &[InvalidArgument])?;
    let prepared = device.prepare_model(&broken(), version, PrepareOptions::default());
    demand_refusal("prepare_model of an invalid model", prepared, &[InvalidArgument])?;
    Ok(Verdict::Kept)
}

fn answers(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let mut models = vec![addition([2, 2]), addition([0, 2])];
    if device.version() >= HalVersion::V1_3 {
        // Operations of other subgraphs have no answers of their own.
        models.extend([super::control_flow::accumulation(), super::control_flow::choice(None)]);
    }
    for model in models {
        let answers = device.supported_operations(&model, device.version())?;
        let (found, expected) = (answers.len(), model.main.operations.len());
        demand!(found == expected, "{found} answers for {expected} operations");
        if answers.iter().all(Support::is_yes) {
            prepare(&**device, &model)?;
        }
    }
    Ok(Verdict::Kept)
}

fn foreign(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("extensions, which are of 1.2".into()));
    }
    let mut model = rectifier(&OperandSpec::tensor_float32([2]));
    let name = "com.example.unknown".to_owned();
    model.extension_name_to_prefix.push(nnhal_hal::ExtensionNameAndPrefix { name, prefix: 1 });
    let Some(number) = nnhal_hal::ExtensionType::new(1, 0) else { return Ok(Verdict::Kept) };
    model.main.operations[0].operation_type = OperationType::Extension(number);
    let answers = device.supported_operations(&model, device.version())?;
    demand!(!answers.iter().any(Support::is_yes), "an unknown extension is supported");
    let prepared = device.prepare_model(&model, device.version(), PrepareOptions::default());
    demand!(prepared.is_err(), "an unknown extension is prepared");
    Ok(Verdict::Kept)
}

fn signedness(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_3 {
        return Ok(Verdict::NotOffered("signed 8-bit tensors, which are of 1.3".into()));
    }
    let unsigned = rectifier(&OperandSpec::tensor_quant8_asymm([2], 0.5, 128));
    let signed = rectifier(&OperandSpec::tensor_quant8_asymm_signed([2], 0.5, 0));
    let [unsigned, signed] =
        [is_supported(&**device, &unsigned)?, is_supported(&**device, &signed)?];
    demand!(unsigned == signed, "unsigned: {unsigned}, signed: {signed}");
    Ok(Verdict::Kept)
}

fn older(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let signed = rectifier(&OperandSpec::tensor_quant8_asymm_signed([2], 0.5, 0));
    for version in [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2] {
        let asked = device.supported_operations(&signed, version);
        demand_refusal(&format!("a type of 1.3 through {version}"), asked, &[InvalidArgument])?;
        device.prepare_model(&addition([2, 2]), version, PrepareOptions::default())?;
    }
    Ok(Verdict::Kept)
}
