use super::*;
use nnhal_hal::{ExtensionNameAndPrefix, ExtensionType, Memory, Subgraph};
use std::sync::Arc;

const TENSORS: [OperandType; 10] = [
    OperandType::TensorFloat32,
    OperandType::TensorInt32,
    OperandType::TensorQuant8Asymm,
    OperandType::TensorQuant16Symm,
    OperandType::TensorFloat16,
    OperandType::TensorBool8,
    OperandType::TensorQuant8SymmPerChannel,
    OperandType::TensorQuant16Asymm,
    OperandType::TensorQuant8Symm,
    OperandType::TensorQuant8AsymmSigned,
];

const SCALARS: [OperandType; 5] = [
    OperandType::Float32,
    OperandType::Int32,
    OperandType::Uint32,
    OperandType::Bool,
    OperandType::Float16,
];

const EXTENSION: OperandType = match ExtensionType::new(3, 1) {
    Some(extension) => OperandType::Extension(extension),
    None => OperandType::Oem,
};

/// 64 bytes of values, one pool of 64 bytes, one referenced subgraph, one extension.
fn model() -> Model {
    Model {
        referenced: vec![Subgraph::default()],
        operand_values: Arc::from([0_u8; 64]),
        pools: vec![Memory::allocate(64).unwrap()],
        extension_name_to_prefix: vec![ExtensionNameAndPrefix { name: "a.b".into(), prefix: 3 }],
        ..Model::default()
    }
}

fn check_in(model: &Model, operand: &Operand) -> Result<(), OperandError> {
    let prefixes = Prefixes::read(&model.extension_name_to_prefix).unwrap();
    check(model, &prefixes, operand)
}

fn check_one(operand: &Operand) -> Result<(), OperandError> {
    check_in(&model(), operand)
}

/// An operand of the type, as valid as can be: `[2, 3]` if it is a tensor.
fn valid(operand_type: OperandType) -> Operand {
    let is_tensor = operand_type.is_tensor() == Some(true);
    let per_channel = operand_type == OperandType::TensorQuant8SymmPerChannel;
    Operand {
        operand_type,
        dimensions: if is_tensor { vec![2, 3] } else { vec![] },
        number_of_consumers: 0,
        scale: if operand_type.quantized_range().is_some() && !per_channel { 0.5 } else { 0.0 },
        zero_point: 0,
        lifetime: if operand_type == OperandType::Subgraph {
            OperandLifeTime::Subgraph
        } else {
            OperandLifeTime::TemporaryVariable
        },
        location: DataLocation::default(),
        extra_params: if per_channel { channels(&[0.5, 1.0, 2.0], 1) } else { ExtraParams::None },
    }
}

fn channels(scales: &[f32], channel_dim: u32) -> ExtraParams {
    ExtraParams::ChannelQuant(ChannelQuant { scales: scales.into(), channel_dim })
}

fn constant(operand_type: OperandType, lifetime: OperandLifeTime) -> Operand {
    let mut operand = valid(operand_type);
    operand.lifetime = lifetime;
    let elements = operand.dimensions.iter().product::<u32>();
    operand.location.length = elements * operand_type.element_size().unwrap();
    operand
}

fn change(mut operand: Operand, change: impl FnOnce(&mut Operand)) -> Operand {
    change(&mut operand);
    operand
}

#[test]
fn operands_of_all_types_are_accepted() {
    let all = OperandType::FUNDAMENTAL.iter().copied().chain([EXTENSION]);
    for operand_type in all {
        assert_eq!(check_one(&valid(operand_type)), Ok(()), "{operand_type}");
    }
    for operand_type in TENSORS.into_iter().chain(SCALARS) {
        for lifetime in [OperandLifeTime::ConstantCopy, OperandLifeTime::ConstantReference] {
            assert_eq!(check_one(&constant(operand_type, lifetime)), Ok(()), "{operand_type}");
        }
    }
}

#[test]
fn model_5_scalars_have_no_dimensions() {
    for operand_type in SCALARS.into_iter().chain([OperandType::Oem, OperandType::Subgraph]) {
        for dimensions in [vec![1], vec![0]] {
            let operand =
                change(valid(operand_type), |operand| operand.dimensions = dimensions.clone());
            let expected = OperandError::ScalarDimensions { found: dimensions };
            assert_eq!(check_one(&operand), Err(expected), "{operand_type}");
        }
    }
}

#[test]
fn model_6_unknown_dimensions_and_ranks_are_accepted() {
    for dimensions in [vec![], vec![0], vec![0, 0], vec![2, 0]] {
        let operand = change(valid(OperandType::TensorFloat32), |it| it.dimensions = dimensions);
        assert_eq!(check_one(&operand), Ok(()));
    }
}

#[test]
fn model_7_constants_have_known_dimensions() {
    for operand_type in [OperandType::TensorFloat32, OperandType::TensorOemByte] {
        for lifetime in [OperandLifeTime::ConstantCopy, OperandLifeTime::ConstantReference] {
            for dimensions in [vec![], vec![0], vec![2, 0]] {
                let operand = change(constant(operand_type, lifetime), |operand| {
                    operand.dimensions = dimensions.clone();
                    operand.location.length = 0;
                });
                let expected = OperandError::ConstantDimensions { found: dimensions };
                assert_eq!(check_one(&operand), Err(expected));
            }
        }
    }
}

#[test]
fn model_8_types_without_scale_refuse_one() {
    let none = SCALARS.into_iter().chain([
        OperandType::TensorFloat32,
        OperandType::TensorFloat16,
        OperandType::TensorBool8,
        OperandType::TensorQuant8SymmPerChannel,
        OperandType::Subgraph,
    ]);
    for operand_type in none {
        for found in [0.5, -0.5, f32::MIN_POSITIVE, f32::NAN, f32::INFINITY] {
            let error = check_one(&change(valid(operand_type), |it| it.scale = found));
            let error = error.expect_err("a scale");
            assert!(matches!(error, OperandError::Scale { expected: "0", .. }), "{operand_type}");
            assert_eq!(error.rule(operand_type), "MODEL-8");
        }
    }
}

#[test]
fn model_8_quantized_types_have_a_scale_above_zero() {
    for operand_type in TENSORS.into_iter().filter(|it| it.quantized_range().is_some()) {
        if operand_type == OperandType::TensorQuant8SymmPerChannel {
            continue;
        }
        for found in [0.0, -0.0, -1.0, f32::NAN, f32::NEG_INFINITY] {
            let error = check_one(&change(valid(operand_type), |it| it.scale = found));
            assert!(matches!(error, Err(OperandError::Scale { .. })), "{operand_type} {found}");
        }
        for scale in [f32::MIN_POSITIVE, f32::INFINITY] {
            assert_eq!(check_one(&change(valid(operand_type), |it| it.scale = scale)), Ok(()));
        }
    }
}

#[test]
fn model_8_integers_may_have_a_scale_but_no_negative_one() {
    for (scale, is_valid) in
        [(0.0, true), (0.25, true), (-0.25, false), (f32::NAN, false), (f32::INFINITY, true)]
    {
        let operand = change(valid(OperandType::TensorInt32), |it| it.scale = scale);
        assert_eq!(check_one(&operand).is_ok(), is_valid, "{scale}");
    }
}

#[test]
fn model_9_zero_points_are_within_the_types_range() {
    let ranges = |operand_type| match operand_type {
        OperandType::TensorQuant8Asymm => (0, 255),
        OperandType::TensorQuant16Asymm => (0, 65535),
        OperandType::TensorQuant8AsymmSigned => (-128, 127),
        _ => (0, 0),
    };
    for operand_type in TENSORS.into_iter().chain(SCALARS).chain([OperandType::Subgraph]) {
        let (least, greatest) = ranges(operand_type);
        for zero_point in [least, greatest] {
            let operand = change(valid(operand_type), |it| it.zero_point = zero_point);
            assert_eq!(check_one(&operand), Ok(()), "{operand_type} {zero_point}");
        }
        for found in [least - 1, greatest + 1, i32::MIN, i32::MAX] {
            let operand = change(valid(operand_type), |it| it.zero_point = found);
            let expected = OperandError::ZeroPoint { found, least, greatest };
            assert_eq!(check_one(&operand), Err(expected), "{operand_type} {found}");
        }
    }
}

#[test]
fn model_10_channel_scales_are_for_one_type_only() {
    for operand_type in TENSORS.into_iter().chain(SCALARS).chain([OperandType::Subgraph]) {
        let per_channel = operand_type == OperandType::TensorQuant8SymmPerChannel;
        let params = [
            (ExtraParams::None, !per_channel),
            (channels(&[0.5, 1.0, 2.0], 1), per_channel),
            (ExtraParams::Extension([1, 2].as_slice().into()), false),
        ];
        for (extra_params, is_valid) in params {
            let operand = change(valid(operand_type), |it| it.extra_params = extra_params);
            match check_one(&operand) {
                Ok(()) => assert!(is_valid, "{operand_type}"),
                Err(error) => {
                    assert!(!is_valid, "{operand_type}");
                    assert_eq!(error.rule(operand_type), "MODEL-10");
                }
            }
        }
    }
}

#[test]
fn model_11_channel_scales_fit_the_dimensions() {
    let per_channel = |dimensions: &[u32], scales: &[f32], channel_dim| {
        check_one(&change(valid(OperandType::TensorQuant8SymmPerChannel), |it| {
            it.dimensions = dimensions.to_vec();
            it.extra_params = channels(scales, channel_dim);
        }))
    };
    assert_eq!(per_channel(&[2, 3], &[1.0, 2.0], 0), Ok(()));
    assert_eq!(per_channel(&[0, 3], &[1.0, 2.0, 3.0], 1), Ok(()));
    for (dimensions, channel_dim) in [(&[2_u32, 3][..], 2), (&[2, 3], u32::MAX), (&[], 0)] {
        let rank = dimensions.len();
        assert_eq!(
            per_channel(dimensions, &[1.0, 2.0], channel_dim),
            Err(OperandError::ChannelDim { found: channel_dim, rank })
        );
    }
    for (dimensions, scales) in
        [(&[2_u32, 3][..], &[1.0, 2.0, 3.0][..]), (&[2, 3], &[1.0]), (&[2, 3], &[]), (&[0, 3], &[])]
    {
        assert_eq!(
            per_channel(dimensions, scales, 0),
            Err(OperandError::ChannelCount { found: scales.len(), expected: dimensions[0] })
        );
    }
    assert_eq!(per_channel(&[2, 3], &[1.0, f32::INFINITY], 0), Ok(()));
    for scale in [0.0, -0.0, -1.0, f32::NAN] {
        let error = per_channel(&[2, 3], &[1.0, scale], 0);
        assert!(matches!(error, Err(OperandError::ChannelScale { channel: 1, .. })), "{scale}");
    }
}

#[test]
fn model_12_type_and_lifetime_subgraph_go_together() {
    for lifetime in OperandLifeTime::ALL.iter().copied() {
        let is_subgraph = lifetime == OperandLifeTime::Subgraph;
        for operand_type in [OperandType::Subgraph, OperandType::TensorFloat32] {
            if is_subgraph == (operand_type == OperandType::Subgraph) {
                continue;
            }
            let operand = change(valid(operand_type), |it| it.lifetime = lifetime);
            let expected = OperandError::SubgraphLifeTime { found: lifetime };
            assert_eq!(check_one(&operand), Err(expected), "{lifetime}");
        }
    }
}

#[test]
fn model_13_only_constants_and_subgraphs_have_a_location() {
    let zero = DataLocation::default();
    let locations = [
        DataLocation { pool_index: 1, ..zero },
        DataLocation { offset: 1, ..zero },
        DataLocation { length: 1, ..zero },
    ];
    for lifetime in [
        OperandLifeTime::TemporaryVariable,
        OperandLifeTime::SubgraphInput,
        OperandLifeTime::SubgraphOutput,
        OperandLifeTime::NoValue,
    ] {
        for location in locations {
            let operand = change(valid(OperandType::TensorFloat32), |it| {
                it.lifetime = lifetime;
                it.location = location;
            });
            let error = check_one(&operand).expect_err("a location");
            assert!(matches!(error, OperandError::Location { .. }), "{lifetime} {location:?}");
            assert_eq!(error.rule(operand.operand_type), "MODEL-13");
        }
    }
}

#[test]
fn model_14_constants_are_within_their_pool() {
    // 24 bytes in 64.
    let at = |lifetime, location| {
        check_one(&change(constant(OperandType::TensorFloat32, lifetime), |it| {
            it.location = location;
        }))
    };
    let copy = OperandLifeTime::ConstantCopy;
    let reference = OperandLifeTime::ConstantReference;
    for lifetime in [copy, reference] {
        for offset in [0, 1, 40] {
            let location = DataLocation { pool_index: 0, offset, length: 24 };
            assert_eq!(at(lifetime, location), Ok(()), "{offset}");
        }
        for offset in [41, 64, u32::MAX - 23, u32::MAX] {
            let location = DataLocation { pool_index: 0, offset, length: 24 };
            assert_eq!(
                at(lifetime, location),
                Err(OperandError::OutsidePool { end: u64::from(offset) + 24, size: 64 })
            );
        }
    }
    let other_pool = DataLocation { pool_index: 1, offset: 0, length: 24 };
    assert!(matches!(at(copy, other_pool), Err(OperandError::Location { .. })));
    assert_eq!(at(reference, other_pool), Err(OperandError::NoSuchPool { found: 1, pools: 1 }));
}

#[test]
fn model_15_constants_are_as_long_as_their_type_and_dimensions() {
    for operand_type in TENSORS.into_iter().chain(SCALARS) {
        for lifetime in [OperandLifeTime::ConstantCopy, OperandLifeTime::ConstantReference] {
            let right = constant(operand_type, lifetime);
            let expected = right.location.length;
            for found in [0, expected - 1, expected + 1] {
                if found == expected {
                    continue;
                }
                let operand = change(right.clone(), |it| it.location.length = found);
                let error = OperandError::Length { found, expected };
                assert_eq!(check_one(&operand), Err(error), "{operand_type}");
            }
        }
    }
}

#[test]
fn model_15_vendors_constants_may_have_any_length() {
    for operand_type in [OperandType::Oem, OperandType::TensorOemByte, EXTENSION] {
        let operand = change(valid(operand_type), |it| {
            it.lifetime = OperandLifeTime::ConstantCopy;
            it.location.length = 5;
        });
        assert_eq!(check_one(&operand), Ok(()), "{operand_type}");
        let operand = change(operand, |it| it.location.length = 65);
        assert_eq!(
            check_one(&operand),
            Err(OperandError::OutsidePool { end: 65, size: 64 }),
            "{operand_type}"
        );
    }
}

#[test]
fn model_16_subgraph_operands_name_a_subgraph_and_nothing_else() {
    let at = |pool_index, offset, length| {
        let location = DataLocation { pool_index, offset, length };
        check_one(&change(valid(OperandType::Subgraph), |it| it.location = location))
    };
    assert_eq!(at(0, 0, 0), Ok(()));
    for found in [1, u32::MAX] {
        assert_eq!(at(0, found, 0), Err(OperandError::NoSuchSubgraph { found, subgraphs: 1 }));
    }
    for error in [at(1, 0, 0), at(0, 0, 4)] {
        let error = error.expect_err("a location");
        assert_eq!(error.rule(OperandType::Subgraph), "MODEL-16");
    }
}

#[test]
fn model_17_sizes_beyond_32_bits_are_refused() {
    for (dimensions, is_valid) in [
        (vec![0x3FFF_FFFF], true),
        (vec![0x4000_0000], false),
        (vec![u32::MAX], false),
        (vec![u32::MAX; 8], false),
        (vec![0x1_0000, 0, 0x1_0000], false),
        (vec![1; MAX_RANK], true),
    ] {
        let operand =
            change(valid(OperandType::TensorFloat32), |it| it.dimensions = dimensions.clone());
        let expected =
            if is_valid { Ok(()) } else { Err(OperandError::TooLarge { found: dimensions }) };
        assert_eq!(check_one(&operand), expected);
    }
}

#[test]
fn model_17_a_constant_of_wrapping_size_is_refused() {
    // 4 * 2^30 bytes are 0 modulo 2^32.
    let operand = change(constant(OperandType::TensorInt32, OperandLifeTime::ConstantCopy), |it| {
        it.dimensions = vec![0x8000, 0x8000];
        it.location.length = 0;
    });
    assert!(matches!(check_one(&operand), Err(OperandError::TooLarge { .. })));
}

#[test]
fn sec_3_ranks_are_bounded() {
    for operand_type in [OperandType::TensorFloat32, EXTENSION] {
        let operand = change(valid(operand_type), |it| it.dimensions = vec![1; MAX_RANK + 1]);
        let expected = OperandError::TooManyAxes { found: MAX_RANK + 1, most: MAX_RANK };
        assert_eq!(check_one(&operand), Err(expected));
    }
}

#[test]
fn model_28_vendors_operands_may_be_quantized_in_any_way() {
    for operand_type in [OperandType::Oem, OperandType::TensorOemByte] {
        let operand = change(valid(operand_type), |it| {
            it.scale = f32::NAN;
            it.zero_point = -7;
            it.extra_params = channels(&[], 9);
        });
        assert_eq!(check_one(&operand), Ok(()), "{operand_type}");
    }
}

#[test]
fn ext_3_prefixes_need_a_name() {
    for prefix in [1, 4, 0xFFFF] {
        let extension = ExtensionType::new(prefix, 1).unwrap();
        let operand = valid(OperandType::Extension(extension));
        assert_eq!(check_one(&operand), Err(OperandError::UnmappedPrefix { prefix }));
    }
}

#[test]
fn ext_4_extension_operands_have_no_quantization_of_the_interfaces_kind() {
    let blob = ExtraParams::Extension([1, 2].as_slice().into());
    assert_eq!(check_one(&change(valid(EXTENSION), |it| it.extra_params = blob)), Ok(()));
    let broken = [
        change(valid(EXTENSION), |it| it.scale = 0.5),
        change(valid(EXTENSION), |it| it.scale = f32::NAN),
        change(valid(EXTENSION), |it| it.zero_point = 1),
        change(valid(EXTENSION), |it| it.extra_params = channels(&[1.0], 0)),
    ];
    for operand in broken {
        let error = check_one(&operand).expect_err("quantized");
        assert_eq!(error.rule(EXTENSION), "EXT-4", "{error}");
    }
}

#[test]
fn ext_5_extension_operands_may_have_any_dimensions() {
    for dimensions in [vec![], vec![0], vec![u32::MAX, u32::MAX]] {
        let operand = change(valid(EXTENSION), |it| it.dimensions = dimensions);
        assert_eq!(check_one(&operand), Ok(()));
    }
}
