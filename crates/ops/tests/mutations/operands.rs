//! Operands broken in themselves: MODEL-3 to MODEL-17, EXT-3, EXT-4.

use crate::*;

/// 0xFFFFFFFF is the greatest type number that a client can write: of an extension that no sample
/// names.
pub fn model_3_and_4_foreign_types(sample: &Sample, mutants: &mut Mutants<'_>) {
    let foreign = ExtensionType::from_code(0xFFFF_FFFF).unwrap();
    let rules: &[&str] =
        if sample.version < HalVersion::V1_2 { &["EXT-1"] } else { &["EXT-3", "MODEL-12"] };
    mutants.add_for_operands(
        rules,
        "type 0xFFFFFFFF",
        |_| true,
        |operand| {
            operand.operand_type = OperandType::Extension(foreign);
        },
    );
    mutants.add_for_operations(rules, "type 0xFFFFFFFF", |operation| {
        operation.operation_type = OperationType::Extension(foreign);
    });
    if sample.version < HalVersion::V1_3 {
        mutants.add_for_operands(
            &["MODEL-3"],
            "a newer type",
            |_| true,
            |operand| {
                operand.operand_type = OperandType::TensorQuant8AsymmSigned;
            },
        );
    }
    mutants.add_for_operations(&["MODEL-4"], "a newer operation", |operation| {
        operation.operation_type = OperationType::Pack;
    });
}

pub fn model_5_to_7_dimensions(sample: &Sample, mutants: &mut Mutants<'_>) {
    let is_scalar = |operand: &Operand| operand.operand_type.is_scalar();
    for dimensions in [vec![1], vec![0], vec![2, 3]] {
        mutants.add_for_operands(&["MODEL-5"], "a scalar with dimensions", is_scalar, |operand| {
            operand.dimensions.clone_from(&dimensions);
        });
    }
    if sample.version < HalVersion::V1_2 {
        mutants.add_for_operands(&["MODEL-6"], "unknown rank", is_tensor, |operand| {
            operand.dimensions.clear();
        });
    }
    let is_constant_tensor = |operand: &Operand| is_tensor(operand) && is_constant(operand);
    mutants.add_for_operands(
        &["MODEL-6", "MODEL-7"],
        "a constant of unknown rank",
        is_constant_tensor,
        |operand| operand.dimensions.clear(),
    );
    mutants.add_for_operands(
        &["MODEL-7"],
        "a constant with an unknown dimension",
        is_constant_tensor,
        |operand| {
            operand.dimensions[0] = 0;
            operand.location.length = 0;
        },
    );
}

pub fn model_8_scales(_: &Sample, mutants: &mut Mutants<'_>) {
    let per_channel = OperandType::TensorQuant8SymmPerChannel;
    for scale in [-1.0, f32::NAN, f32::NEG_INFINITY] {
        let what = format!("scale {scale}");
        mutants.add_for_operands(&["MODEL-8"], &what, is_fundamental, |it| it.scale = scale);
        mutants.add_for_operands(&["EXT-4"], &what, is_extension, |it| it.scale = scale);
    }
    let has_scale = |operand: &Operand| {
        let ty = operand.operand_type;
        ty.quantized_range().is_some() && ty != per_channel
    };
    mutants.add_for_operands(&["MODEL-8"], "scale 0", has_scale, |it| it.scale = 0.0);
    let has_none = |operand: &Operand| {
        is_fundamental(operand)
            && !has_scale(operand)
            && operand.operand_type != OperandType::TensorInt32
    };
    mutants.add_for_operands(&["MODEL-8"], "a scale", has_none, |it| it.scale = 1.0);
}

pub fn model_9_zero_points(_: &Sample, mutants: &mut Mutants<'_>) {
    for zero_point in [i32::MIN, -129, -1, 256, 65536, i32::MAX] {
        let what = format!("zero point {zero_point}");
        mutants.add_for_operands(&["MODEL-9"], &what, is_fundamental, |it| {
            it.zero_point = zero_point;
        });
        mutants.add_for_operands(&["EXT-4"], &what, is_extension, |it| it.zero_point = zero_point);
    }
}

pub fn model_10_and_11_extra_params(_: &Sample, mutants: &mut Mutants<'_>) {
    let per_channel =
        |operand: &Operand| operand.operand_type == OperandType::TensorQuant8SymmPerChannel;
    let plain = |operand: &Operand| is_fundamental(operand) && !per_channel(operand);
    mutants.add_for_operands(&["MODEL-10"], "channel scales", plain, |operand| {
        operand.extra_params = channels(operand.dimensions.first().copied().unwrap_or(1));
    });
    mutants.add_for_operands(&["EXT-4"], "channel scales", is_extension, |operand| {
        operand.extra_params = channels(1);
    });
    mutants.add_for_operands(&["MODEL-10"], "an extension's blob", is_fundamental, |operand| {
        operand.extra_params = ExtraParams::Extension([1].as_slice().into());
    });
    mutants.add_for_operands(&["MODEL-10"], "no channel scales", per_channel, |operand| {
        operand.extra_params = ExtraParams::None;
    });
    type Change = fn(&mut ChannelQuant);
    let changes: [(&str, Change); 8] = [
        ("axis behind the last", |it| it.channel_dim = 4),
        ("axis 2^32 - 1", |it| it.channel_dim = u32::MAX),
        ("another axis", |it| it.channel_dim = 1),
        ("no scales", |it| it.scales = [].as_slice().into()),
        ("a scale too many", |it| it.scales = [0.25, 0.5, 0.5].as_slice().into()),
        ("a scale of 0", |it| it.scales = [0.25, 0.0].as_slice().into()),
        ("a negative scale", |it| it.scales = [-0.25, 0.5].as_slice().into()),
        ("a scale that is NaN", |it| it.scales = [f32::NAN, 0.5].as_slice().into()),
    ];
    for (what, change) in changes {
        mutants.add_for_operands(&["MODEL-11"], what, per_channel, |operand| {
            if let ExtraParams::ChannelQuant(quant) = &mut operand.extra_params {
                change(quant);
            }
        });
    }
}

pub fn model_12_and_13_lifetimes(_: &Sample, mutants: &mut Mutants<'_>) {
    let is_subgraph = |operand: &Operand| operand.operand_type == OperandType::Subgraph;
    mutants.add_for_operands(
        &["MODEL-12"],
        "lifetime SUBGRAPH",
        |operand| !is_subgraph(operand),
        |operand| operand.lifetime = OperandLifeTime::Subgraph,
    );
    mutants.add_for_operands(&["MODEL-12"], "lifetime NO_VALUE", is_subgraph, |operand| {
        operand.lifetime = OperandLifeTime::NoValue;
    });
    let has_no_location = |operand: &Operand| !is_constant(operand) && !is_subgraph(operand);
    let zero = DataLocation::default();
    for location in [
        DataLocation { pool_index: 1, ..zero },
        DataLocation { offset: 1, ..zero },
        DataLocation { length: 1, ..zero },
    ] {
        let what = format!("{location:?}");
        mutants.add_for_operands(&["MODEL-13"], &what, has_no_location, |operand| {
            operand.location = location;
        });
    }
}

pub fn model_14_to_16_locations(sample: &Sample, mutants: &mut Mutants<'_>) {
    let pools = u32::try_from(sample.model.pools.len()).unwrap();
    for offset in [u32::MAX, u32::MAX - 3, 1 << 20] {
        let what = format!("offset {offset}");
        mutants.add_for_operands(&["MODEL-14"], &what, is_constant, |operand| {
            operand.location.offset = offset;
        });
    }
    for pool_index in [pools.max(1), u32::MAX] {
        let what = format!("pool {pool_index}");
        mutants.add_for_operands(&["MODEL-14"], &what, is_constant, |operand| {
            operand.location.pool_index = pool_index;
        });
    }
    let is_measured = |operand: &Operand| is_constant(operand) && is_fundamental(operand);
    type Change = fn(&mut Operand);
    let changes: [(&str, Change); 3] = [
        ("a byte less", |it| it.location.length -= 1),
        ("no bytes", |it| it.location.length = 0),
        ("a byte more", |it| {
            it.location.length += 1;
            it.location.offset = it.location.offset.saturating_sub(1);
        }),
    ];
    for (what, change) in changes {
        // A byte more may reach beyond the pool as well.
        mutants.add_for_operands(&["MODEL-15", "MODEL-14"], what, is_measured, change);
    }
    let is_subgraph = |operand: &Operand| operand.lifetime == OperandLifeTime::Subgraph;
    let subgraphs = u32::try_from(sample.model.referenced.len()).unwrap();
    for location in [
        DataLocation { offset: subgraphs, ..DataLocation::default() },
        DataLocation { offset: u32::MAX, ..DataLocation::default() },
        DataLocation { pool_index: 1, ..DataLocation::default() },
        DataLocation { length: 4, ..DataLocation::default() },
    ] {
        let what = format!("{location:?}");
        mutants.add_for_operands(&["MODEL-16"], &what, is_subgraph, |operand| {
            operand.location = location;
        });
    }
}

pub fn model_17_sizes(_: &Sample, mutants: &mut Mutants<'_>) {
    for dimensions in [vec![u32::MAX; 4], vec![1 << 16, 1 << 16], vec![1 << 31, 0, 2]] {
        let what = format!("dimensions {dimensions:?}");
        // Constants must not have unknown dimensions either; channel scales not fit.
        let rules = &["MODEL-17", "MODEL-7"];
        mutants.add_for_operands(rules, &what, is_tensor, |operand| {
            operand.dimensions.clone_from(&dimensions);
        });
    }
}
