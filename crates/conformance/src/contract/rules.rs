//! What makes a model valid: models broken in one place, and what is valid though it may look wrong
//! (contract: section 8).

use super::models::{addition, foreign, rectifier};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use crate::mutation::{self, Mutant};
use nnhal_hal::ErrorStatus::{GeneralFailure, InvalidArgument};
use nnhal_hal::{
    Device, ExtensionNameAndPrefix, ExtensionType, ExtraParams, HalVersion, Model, OperandSpec,
    OperandType, OperationType, PrepareOptions, SubgraphBuilder,
};
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["MODEL-1"],
        name: "a graph has operands and operations",
        run: Run::Rule("MODEL-1"),
    },
    Check {
        ids: &["MODEL-3"],
        name: "operand types are of the version",
        run: Run::Rule("MODEL-3"),
    },
    Check {
        ids: &["MODEL-4"],
        name: "operation types are of the version",
        run: Run::Rule("MODEL-4"),
    },
    Check { ids: &["MODEL-5"], name: "scalars have no dimensions", run: Run::Rule("MODEL-5") },
    Check {
        ids: &["MODEL-6"],
        name: "tensors of old versions and constants have a rank",
        run: Run::Rule("MODEL-6"),
    },
    Check {
        ids: &["MODEL-6"],
        name: "ranks and lengths may be unknown from 1.2 on",
        run: Run::Device(unknown_shapes),
    },
    Check { ids: &["MODEL-7"], name: "constants have known dimensions", run: Run::Rule("MODEL-7") },
    Check { ids: &["MODEL-8"], name: "scales are those of the type", run: Run::Rule("MODEL-8") },
    Check {
        ids: &["MODEL-9"],
        name: "zero points are those of the type",
        run: Run::Rule("MODEL-9"),
    },
    Check {
        ids: &["MODEL-10"],
        name: "extra parameters are those of the type",
        run: Run::Rule("MODEL-10"),
    },
    Check {
        ids: &["MODEL-11"],
        name: "scales of channels are as many as channels",
        run: Run::Rule("MODEL-11"),
    },
    Check {
        ids: &["MODEL-12"],
        name: "lifetimes are of the version and fit the type",
        run: Run::Rule("MODEL-12"),
    },
    Check {
        ids: &["MODEL-13"],
        name: "what has no value has no location",
        run: Run::Rule("MODEL-13"),
    },
    Check {
        ids: &["MODEL-14"],
        name: "constants are within their bytes",
        run: Run::Rule("MODEL-14"),
    },
    Check {
        ids: &["MODEL-15"],
        name: "constants are as long as their dimensions say",
        run: Run::Rule("MODEL-15"),
    },
    Check {
        ids: &["MODEL-16"],
        name: "references to subgraphs have an index alone",
        run: Run::Rule("MODEL-16"),
    },
    Check { ids: &["MODEL-17"], name: "sizes have 32 bits", run: Run::Rule("MODEL-17") },
    Check {
        ids: &["MODEL-19"],
        name: "lists of arguments and lifetimes agree",
        run: Run::Rule("MODEL-19"),
    },
    Check {
        ids: &["MODEL-20"],
        name: "operations name operands that are there",
        run: Run::Rule("MODEL-20"),
    },
    Check {
        ids: &["MODEL-21"],
        name: "operations write what may be written",
        run: Run::Rule("MODEL-21"),
    },
    Check { ids: &["MODEL-22"], name: "every result has one writer", run: Run::Rule("MODEL-22") },
    Check {
        ids: &["MODEL-23"],
        name: "operations come in the order of execution",
        run: Run::Rule("MODEL-23"),
    },
    Check { ids: &["MODEL-24"], name: "consumers are counted", run: Run::Rule("MODEL-24") },
    Check {
        ids: &["MODEL-25"],
        name: "operations have the operands of their definition",
        run: Run::Rule("MODEL-25"),
    },
    Check {
        ids: &["MODEL-26"],
        name: "only optional arguments are left out",
        run: Run::Rule("MODEL-26"),
    },
    Check { ids: &["EXT-1"], name: "old versions have no extensions", run: Run::Rule("EXT-1") },
    Check { ids: &["EXT-2"], name: "extensions have good names, once", run: Run::Rule("EXT-2") },
    Check {
        ids: &["CF-1"],
        name: "branches take and give what their IF says",
        run: Run::Rule("CF-1"),
    },
    Check {
        ids: &["CF-2"],
        name: "condition and body take and give what their WHILE says",
        run: Run::Rule("CF-2"),
    },
    Check { ids: &["CF-3"], name: "values of subgraphs are compatible", run: Run::Rule("CF-3") },
    Check { ids: &["CF-4"], name: "values of a WHILE have known sizes", run: Run::Rule("CF-4") },
    Check { ids: &["CF-5"], name: "subgraphs do not refer in a circle", run: Run::Rule("CF-5") },
    Check {
        ids: &["CF-6"],
        name: "subgraphs' lists are looked at before they are followed",
        run: Run::Rule("CF-6"),
    },
    Check {
        ids: &["MODEL-28"],
        name: "what is of an OEM is valid in every version",
        run: Run::Device(oem),
    },
    Check {
        ids: &["MODEL-29"],
        name: "a wrong value is no reason to call a model invalid",
        run: Run::Device(wrong_value),
    },
    Check {
        ids: &["EXT-3", "EXT-4"],
        name: "types of extensions have a name, and no scale of their own",
        run: Run::Device(extensions),
    },
];

/// Looks at one rule: every model that breaks it must be refused.
pub(super) fn rule(device: &Arc<dyn Device>, rule: &'static str) -> Result<Verdict, Violation> {
    let (newest, mut shown, mut outcome) = (device.version(), 0, Ok(()));
    for model in models() {
        if model.oldest_expressible() > newest {
            continue;
        }
        let oldest = nnhal_ops::validate::oldest_version(&model).ok();
        for seed in 0..2 {
            mutation::mutants(&model, newest, oldest, seed, |mutant| {
                if mutant.rule != rule || outcome.is_err() {
                    return;
                }
                shown += 1;
                let Mutant { what, version, .. } = &mutant;
                outcome = mutation::expect_refusal(&**device, &mutant)
                    .map_err(|found| Violation(format!("{what}: {found} (by {version})")));
            });
        }
    }
    outcome?;
    Ok(match shown {
        0 => Verdict::NotOffered("what the rule is about, which is of a newer version".into()),
        _ => Verdict::Kept,
    })
}

/// Models with something for every rule to be broken in.
fn models() -> Vec<Model> {
    let ours = |model: Result<Model, nnhal_hal::builder::BuildError>| {
        model.unwrap_or_else(|error| unreachable!("a model of ours: {error}"))
    };
    let mut models = vec![
        addition([2, 3]),
        super::models::constant_addition(),
        rectifier(&OperandSpec::tensor_quant8_asymm([2, 2], 0.5, 128)),
        super::control_flow::accumulation(),
        super::control_flow::choice(None),
    ];
    models.extend(super::models::pool_addition());
    // Types that no operation here has.
    let (tensor, scalar) = (OperandSpec::new, OperandSpec::scalar);
    models.extend(
        [
            OperandSpec::tensor_quant8_asymm_signed([2, 2], 0.5, -3),
            tensor(OperandType::TensorQuant16Asymm, [2]).quantized(0.5, 300),
            tensor(OperandType::TensorQuant16Symm, [2]).quantized(0.5, 0),
            tensor(OperandType::TensorQuant8Symm, [2]).quantized(0.5, 0),
            OperandSpec::tensor_float16([2, 2]),
            OperandSpec::tensor_bool8([2]),
            scalar(OperandType::Float32),
            scalar(OperandType::Uint32),
            scalar(OperandType::Bool),
            scalar(OperandType::Float16),
            scalar(OperandType::Oem),
        ]
        .map(super::models::addition_beside),
    );

    // Channels with a scale each.
    let mut graph = SubgraphBuilder::new();
    let spec = OperandSpec::tensor_quant8_symm_per_channel([2, 3], &[0.25, 0.5], 0);
    let x = graph.constant_bytes(spec, &[3; 6]);
    let y = graph.operation(OperationType::Dequantize, [x], OperandSpec::tensor_float32([2, 3]));
    let z = graph.input("z", OperandSpec::tensor_float32([2, 3]));
    let none = graph.scalar_i32(0);
    let sum =
        graph.operation(OperationType::Add, [y, z, none], OperandSpec::tensor_float32([2, 3]));
    graph.output(sum);
    models.push(ours(graph.into_model()));

    // An argument that is left out.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2, 3]));
    let nothing = graph.omitted(OperandSpec::tensor_int32([2]));
    let spec = OperandSpec::tensor_float32([3, 2]);
    let y = graph.operation(OperationType::Transpose, [x, nothing], spec);
    graph.output(y);
    models.push(ours(graph.into_model()));
    models
}

/// Whoever cannot run such a model says so, but not that it is none.
fn unknown_shapes(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("unknown ranks, which are of 1.2".into()));
    }
    for version in HalVersion::ALL.iter().filter(|version| **version <= device.version()) {
        if *version < HalVersion::V1_2 {
            continue;
        }
        for dimensions in [&[][..], &[0], &[0, 2], &[0, 0]] {
            let model = rectifier(&OperandSpec::tensor_float32(dimensions));
            let asked = device.supported_operations(&model, *version);
            let refused =
                |error| Violation(format!("{dimensions:?} is refused for {version}: {error}"));
            let answers = asked.map_err(refused)?;
            let prepared = device.prepare_model(&model, *version, PrepareOptions::default());
            let promised = answers.iter().all(nnhal_hal::Support::is_yes);
            if promised {
                prepared?;
            } else if prepared.is_err() {
                let what = format!("{dimensions:?}, which is not supported");
                demand_refusal(&what, prepared, &[GeneralFailure])?;
            }
        }
    }
    Ok(Verdict::Kept)
}

fn oem(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let mut typed = foreign();
    for operand in &mut typed.main.operands {
        operand.operand_type = OperandType::TensorOemByte;
    }
    for model in [foreign(), typed] {
        for version in HalVersion::ALL.iter().filter(|version| **version <= device.version()) {
            let answers = device.supported_operations(&model, *version);
            let answers =
                answers.map_err(|error| Violation(format!("refused for {version}: {error}")))?;
            demand!(answers.len() == 1, "{} answers for one operation", answers.len());
        }
    }
    Ok(Verdict::Kept)
}

/// An addition with an activation that there is not.
pub(super) fn wrong_activation() -> Model {
    let spec = || OperandSpec::tensor_float32([2, 2]);
    let mut graph = SubgraphBuilder::new();
    let (a, b) = (graph.input("a", spec()), graph.input("b", spec()));
    let activation = graph.scalar_i32(999);
    let sum = graph.operation(OperationType::Add, [a, b, activation], spec());
    graph.output(sum);
    graph.into_model().unwrap_or_else(|error| unreachable!("a model of ours: {error}"))
}

fn wrong_value(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    for version in HalVersion::ALL.iter().filter(|version| **version <= device.version()) {
        let answers = device.supported_operations(&wrong_activation(), *version);
        let answers = answers.map_err(|error| {
            Violation(format!("activation 999 is refused for {version}: {error}"))
        })?;
        let options = PrepareOptions::default();
        let prepared = device.prepare_model(&wrong_activation(), *version, options);
        let promised = answers.iter().all(nnhal_hal::Support::is_yes);
        demand!(!promised || prepared.is_ok(), "it is supported, but cannot be prepared");
        if let Ok(prepared) = prepared {
            let result = super::models::execute(&*prepared, &super::models::sum_request()?);
            let shapes = result.as_ref().err().map(|failed| &failed.output_shapes);
            let right = shapes.is_some_and(Vec::is_empty);
            demand!(right, "EXEC-7: activation 999 gives {result:?}");
        }
    }
    Ok(Verdict::Kept)
}

fn extensions(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("extensions, which are of 1.2".into()));
    }
    const PREFIX: u16 = 0x77;
    let Some(number) = ExtensionType::new(PREFIX, 3) else {
        return Err(Violation("the check's own extension has no number".into()));
    };
    let named = |prefix| {
        let mut model = rectifier(&OperandSpec::tensor_float32([2]));
        let name = "com.example.unknown".to_owned();
        model.extension_name_to_prefix.push(ExtensionNameAndPrefix { name, prefix });
        model.main.operations[0].operation_type = OperationType::Extension(number);
        for operand in &mut model.main.operands {
            operand.operand_type = OperandType::Extension(number);
        }
        model
    };
    let good = named(PREFIX);
    device.supported_operations(&good, device.version())?;
    let mut broken = vec![("a prefix without a name", named(PREFIX + 1))];
    let mut break_operand = |what, change: fn(&mut nnhal_hal::Operand)| {
        let mut model = good.clone();
        model.main.operands.iter_mut().for_each(change);
        broken.push((what, model));
    };
    break_operand("a scale", |it| it.scale = 1.0);
    break_operand("a zero point", |it| it.zero_point = 1);
    break_operand("scales of channels", |it| {
        let scales = vec![1.0; 2].into();
        let quant = nnhal_hal::ChannelQuant { scales, channel_dim: 0 };
        it.extra_params = ExtraParams::ChannelQuant(quant);
    });
    let mut operand_alone = rectifier(&OperandSpec::tensor_float32([2]));
    operand_alone.main.operands[0].operand_type = OperandType::Extension(number);
    broken.push(("an operand's prefix without a name", operand_alone));
    let mut last = rectifier(&OperandSpec::tensor_float32([2]));
    if let Some(last_type) = ExtensionType::new(u16::MAX, u16::MAX) {
        last.main.operands[0].operand_type = OperandType::Extension(last_type);
        broken.push(("operand type 0xFFFFFFFF", last));
    }
    for (what, model) in broken {
        let asked = device.supported_operations(&model, device.version());
        demand_refusal(what, asked, &[InvalidArgument])?;
        let options = PrepareOptions::default();
        let prepared = device.prepare_model(&model, device.version(), options);
        demand_refusal(what, prepared, &[InvalidArgument])?;
    }
    Ok(Verdict::Kept)
}
