//! What goes through, goes through without loss; what a version does not have is refused.

use super::{ConversionError, Convert};
use crate::handle::Handle;
use crate::memory::HidlMemory;
use crate::{v1_0, v1_1, v1_2, v1_3};
use nnhal_hal::{
    Capabilities, ErrorStatus, HalVersion, Memory, Model, Obstacle, OperandType, OperationType,
    PerformanceInfo, Timing,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::sync::Arc;
use std::time::Duration;

fn operand_types(version: HalVersion) -> impl Strategy<Value = OperandType> {
    let mut types: Vec<_> =
        OperandType::FUNDAMENTAL.iter().copied().filter(|row| row.since() <= version).collect();
    if version >= HalVersion::V1_2 {
        types.push(OperandType::from_code(0x0007_0003).unwrap());
    }
    select(types)
}

fn operation_types(version: HalVersion) -> impl Strategy<Value = OperationType> {
    let mut types: Vec<_> =
        OperationType::FUNDAMENTAL.iter().copied().filter(|row| row.since() <= version).collect();
    if version >= HalVersion::V1_2 {
        types.push(OperationType::from_code(0xFFFF_FFFF).unwrap());
    }
    select(types)
}

fn extra_params(version: HalVersion) -> BoxedStrategy<nnhal_hal::ExtraParams> {
    let none = Just(nnhal_hal::ExtraParams::None);
    if version < HalVersion::V1_2 {
        return none.boxed();
    }
    prop_oneof![
        none,
        (vec(any::<f32>(), 0..3), any::<u32>()).prop_map(|(scales, channel_dim)| {
            nnhal_hal::ExtraParams::ChannelQuant(nnhal_hal::ChannelQuant {
                scales: scales.into(),
                channel_dim,
            })
        }),
        vec(any::<u8>(), 0..4).prop_map(|bytes| nnhal_hal::ExtraParams::Extension(bytes.into())),
    ]
    .boxed()
}

fn operand(version: HalVersion) -> impl Strategy<Value = nnhal_hal::Operand> {
    let lifetimes: Vec<_> = nnhal_hal::OperandLifeTime::ALL
        .iter()
        .copied()
        .filter(|lifetime| lifetime.since() <= version)
        .collect();
    // A tensor without dimensions has words from 1.2 on.
    let least = usize::from(version < HalVersion::V1_2);
    (
        operand_types(version),
        vec(any::<u32>(), least..4),
        any::<(u32, f32, i32)>(),
        select(lifetimes),
        any::<(u32, u32, u32)>(),
        extra_params(version),
    )
        .prop_map(
            |(operand_type, dimensions, (consumers, scale, zero_point), lifetime, at, extra)| {
                nnhal_hal::Operand {
                    operand_type,
                    dimensions,
                    number_of_consumers: consumers,
                    scale,
                    zero_point,
                    lifetime,
                    location: nnhal_hal::DataLocation {
                        pool_index: at.0,
                        offset: at.1,
                        length: at.2,
                    },
                    extra_params: extra,
                }
            },
        )
}

fn subgraph(version: HalVersion) -> impl Strategy<Value = nnhal_hal::Subgraph> {
    let operation = (operation_types(version), vec(any::<u32>(), 0..3), vec(any::<u32>(), 0..3))
        .prop_map(|(operation_type, inputs, outputs)| nnhal_hal::Operation {
            operation_type,
            inputs,
            outputs,
        });
    (
        vec(operand(version), 0..4),
        vec(operation, 0..3),
        vec(any::<u32>(), 0..3),
        vec(any::<u32>(), 0..3),
    )
        .prop_map(|(operands, operations, inputs, outputs)| nnhal_hal::Subgraph {
            operands,
            operations,
            inputs,
            outputs,
        })
}

fn model(version: HalVersion) -> impl Strategy<Value = Model> {
    let subgraphs = if version >= HalVersion::V1_3 { 0..3 } else { 0..1 };
    let names = if version >= HalVersion::V1_2 { 0..3 } else { 0..1 };
    (
        subgraph(version),
        vec(subgraph(version), subgraphs),
        vec(any::<u8>(), 0..9),
        vec(1..5_u8, 0..2),
        any::<bool>(),
        vec(("[a-z.]{0,6}", any::<u16>()), names),
    )
        .prop_map(move |(main, referenced, values, pools, relaxed, names)| Model {
            main,
            referenced,
            operand_values: values.into(),
            pools: pools.iter().map(|size| Memory::allocate(u64::from(*size)).unwrap()).collect(),
            relax_computation_float32_to_float16: relaxed && version >= HalVersion::V1_1,
            extension_name_to_prefix: names
                .into_iter()
                .map(|(name, prefix)| nnhal_hal::ExtensionNameAndPrefix { name, prefix })
                .collect(),
        })
}

/// Whether two memories are the same memory, by writing to one and reading from the other.
fn assert_shared(one: &Memory, other: &Memory) {
    assert_eq!((one.name(), one.size()), (other.name(), other.size()));
    assert_eq!(one.parts().1, other.parts().1);
    one.view().unwrap().write(0, &[0xA5]).unwrap();
    assert_eq!(other.view().unwrap().read_to_vec(0, 1).unwrap(), [0xA5]);
}

fn assert_same(one: &Model, other: &Model) {
    assert_eq!(one.main, other.main);
    assert_eq!(one.referenced, other.referenced);
    assert_eq!(one.operand_values, other.operand_values);
    assert_eq!(one.pools.len(), other.pools.len());
    for (one, other) in one.pools.iter().zip(&other.pools) {
        assert_shared(one, other);
    }
    assert_eq!(
        one.relax_computation_float32_to_float16,
        other.relax_computation_float32_to_float16
    );
    assert_eq!(one.extension_name_to_prefix, other.extension_name_to_prefix);
}

fn goes_through<M: Convert<Canonical = Model>>(model: &Model) {
    let there = M::from_canonical(model).unwrap();
    assert_same(&there.to_canonical().unwrap(), model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn models_of_1_0_go_through_every_version(model in model(HalVersion::V1_0)) {
        goes_through::<v1_0::Model>(&model);
        goes_through::<v1_1::Model>(&model);
        goes_through::<v1_2::Model>(&model);
        goes_through::<v1_3::Model>(&model);
    }

    #[test]
    fn models_of_1_1_go_through(model in model(HalVersion::V1_1)) {
        goes_through::<v1_1::Model>(&model);
        goes_through::<v1_2::Model>(&model);
    }

    #[test]
    fn models_of_1_2_go_through(model in model(HalVersion::V1_2)) {
        goes_through::<v1_2::Model>(&model);
        goes_through::<v1_3::Model>(&model);
    }

    #[test]
    fn models_of_1_3_go_through(model in model(HalVersion::V1_3)) {
        goes_through::<v1_3::Model>(&model);
    }

    #[test]
    fn gen_6_a_version_accepts_exactly_what_it_can_express(
        model in model(HalVersion::V1_3), relaxed in any::<bool>()
    ) {
        let model = Model { relax_computation_float32_to_float16: relaxed, ..model };
        let oldest = model.oldest_expressible();
        prop_assert_eq!(v1_0::Model::from_canonical(&model).is_ok(), oldest <= HalVersion::V1_0);
        prop_assert_eq!(v1_1::Model::from_canonical(&model).is_ok(), oldest <= HalVersion::V1_1);
        prop_assert_eq!(v1_2::Model::from_canonical(&model).is_ok(), oldest <= HalVersion::V1_2);
        prop_assert!(v1_3::Model::from_canonical(&model).is_ok());
    }

    #[test]
    fn requests_go_through(
        arguments in vec((any::<bool>(), any::<(u32, u32, u32)>(), vec(any::<u32>(), 0..3)), 0..5),
        inputs in 0..5_usize, size in 1..9_u64, token in any::<u32>(),
    ) {
        let mut arguments: Vec<_> = arguments.into_iter().map(|(has_no_value, at, dimensions)| {
            let location = nnhal_hal::DataLocation { pool_index: at.0, offset: at.1, length: at.2 };
            nnhal_hal::RequestArgument { has_no_value, location, dimensions }
        }).collect();
        let outputs = arguments.split_off(inputs.min(arguments.len()));
        let memory = Memory::allocate(size).unwrap();
        let mut request = nnhal_hal::Request {
            inputs: arguments,
            outputs,
            pools: vec![nnhal_hal::RequestMemoryPool::Memory(memory.clone())],
        };
        let back = v1_0::Request::from_canonical(&request).unwrap().to_canonical().unwrap();
        prop_assert_eq!((&back.inputs, &back.outputs), (&request.inputs, &request.outputs));
        match &back.pools[..] {
            [nnhal_hal::RequestMemoryPool::Memory(found)] => assert_shared(found, &memory),
            other => panic!("{other:?}"),
        }

        request.pools.push(nnhal_hal::RequestMemoryPool::Token(token));
        let back = v1_3::Request::from_canonical(&request).unwrap().to_canonical().unwrap();
        prop_assert_eq!((&back.inputs, &back.outputs), (&request.inputs, &request.outputs));
        match &back.pools[..] {
            [nnhal_hal::RequestMemoryPool::Memory(found), nnhal_hal::RequestMemoryPool::Token(same)] => {
                assert_shared(found, &memory);
                prop_assert_eq!(*same, token);
            }
            other => panic!("{other:?}"),
        }
        let refused = v1_0::Request::from_canonical(&request).unwrap_err();
        prop_assert_eq!(refused, ConversionError::Inexpressible {
            version: HalVersion::V1_2,
            obstacles: vec![Obstacle::Token { pool: 1 }],
        });
    }

    #[test]
    fn gen_7_every_number_that_is_no_code_is_refused(code in any::<i32>()) {
        let mut model = one_relu();
        model.operands[0].operand_type = code;
        let known = (0..=5).contains(&code) || (10_000..=10_001).contains(&code);
        prop_assert_eq!(model.to_canonical().is_ok(), known);

        let mut model = one_relu();
        model.operations[0].operation_type = code;
        let known = (0..=28).contains(&code) || code == 10_000;
        prop_assert_eq!(model.to_canonical().is_ok(), known);

        let mut model = one_relu();
        model.operands[0].lifetime = code;
        prop_assert_eq!(model.to_canonical().is_ok(), (0..=5).contains(&code));
    }

    #[test]
    fn capabilities_of_1_3_go_through(
        prices in vec((select(OperandType::FUNDAMENTAL.to_vec()), 0.0..9.0_f32), 0..9)
    ) {
        let mut capabilities = Capabilities::uniform(PerformanceInfo::AS_CPU);
        for (operand_type, price) in prices {
            for row in &mut capabilities.operand_performance {
                if row.operand_type == operand_type {
                    row.info.exec_time = price;
                }
            }
        }
        let there = v1_3::Capabilities::from_canonical(&capabilities).unwrap();
        prop_assert_eq!(there.to_canonical().unwrap(), capabilities);
    }

    #[test]
    fn times_go_through(
        nanoseconds in proptest::option::of(any::<u64>()), times in any::<(u64, u64)>()
    ) {
        let deadline = nanoseconds.map(nnhal_hal::Deadline::from_nanoseconds_since_epoch);
        let there = v1_3::OptionalTimePoint::from_canonical(&deadline).unwrap();
        prop_assert_eq!(there.to_canonical().unwrap(), deadline);
        let duration = nanoseconds.map(Duration::from_nanos);
        let there = v1_3::OptionalTimeoutDuration::from_canonical(&duration).unwrap();
        prop_assert_eq!(there.to_canonical().unwrap(), duration);
        let timing = v1_2::Timing { time_on_device: times.0, time_in_driver: times.1 };
        let back = v1_2::Timing::from_canonical(&timing.to_canonical().unwrap()).unwrap();
        prop_assert_eq!(back, timing);
    }
}

/// `y = RELU(x)` of one float, in the words of 1.0.
fn one_relu() -> v1_0::Model {
    let mut graph = nnhal_hal::SubgraphBuilder::new();
    let spec = nnhal_hal::OperandSpec::tensor_float32([1]);
    let x = graph.input("x", spec.clone());
    let y = graph.operation(OperationType::Relu, [x], spec);
    graph.output(y);
    Convert::from_canonical(&graph.into_model().unwrap()).unwrap()
}

#[test]
fn gen_7_unknown_tags_are_refused() {
    let statuses = [
        v1_3::OptionalTimePoint::Unknown { tag: 2 }.to_canonical().map(drop),
        v1_3::OptionalTimeoutDuration::Unknown { tag: 255 }.to_canonical().map(drop),
        v1_3::MemoryPool::Unknown { tag: 3 }.to_canonical().map(drop),
        v1_2::ExtraParams::Unknown { tag: 9 }.to_canonical().map(drop),
    ];
    for refused in statuses {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, ConversionError::UnknownTag { .. }), "{refused}");
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    }
}

#[test]
fn gen_6_types_of_1_2_and_1_3_are_refused_in_older_models() {
    let mut model = one_relu();
    model.operands[0].operand_type = OperandType::TensorFloat16.code().cast_signed();
    let refused = model.to_canonical().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "1.0 cannot express it: operand 0 of main subgraph is TENSOR_FLOAT16, which came with 1.2"
    );
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn model_6_a_tensor_of_no_dimensions_in_1_0_is_left_to_the_validator() {
    let mut model = one_relu();
    model.operands[0].dimensions.clear();
    assert!(model.to_canonical().is_ok());
}

/// MODEL-27: also in a pool of a model that no operand uses.
#[test]
fn mem_1_memory_of_unknown_kind_or_without_handle_is_refused() {
    let good = HidlMemory::from_canonical(&Memory::allocate(4).unwrap()).unwrap();
    assert!(good.to_canonical().is_ok());
    let bad = [
        HidlMemory { name: "ion".to_owned(), ..good.clone() },
        HidlMemory { handle: Handle::NULL, ..good.clone() },
        HidlMemory { size: 0, ..good.clone() },
        HidlMemory { size: 5, ..good },
    ];
    for memory in bad {
        let refused = memory.to_canonical().unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{refused}");
        let mut model = one_relu();
        model.pools = vec![memory];
        let refused = model.to_canonical().unwrap_err();
        assert!(matches!(refused, ConversionError::Pool { pool: 0, .. }), "{refused}");
    }
}

#[test]
fn dev_cap_5_and_6_no_version_states_what_it_does_not_know() {
    let mut capabilities = Capabilities::uniform(PerformanceInfo::AS_CPU);
    let strange = [OperandType::Subgraph, OperandType::from_code(0x0001_0000).unwrap()];
    for operand_type in strange {
        let info = PerformanceInfo::AS_CPU;
        capabilities.operand_performance.push(nnhal_hal::OperandPerformance { operand_type, info });
    }
    let twice = capabilities.operand_performance[0];
    capabilities.operand_performance.push(twice);
    let codes = |rows: &[v1_2::OperandPerformance]| -> Vec<i32> {
        rows.iter().map(|row| row.operand_type).collect()
    };
    let stated = v1_3::Capabilities::from_canonical(&capabilities).unwrap();
    let expected: Vec<_> = (0..=14).chain([10_000, 10_001]).collect();
    assert_eq!(codes(&stated.operand_performance), expected);
    let stated = v1_2::Capabilities::from_canonical(&capabilities).unwrap();
    let expected: Vec<_> = (0..=13).chain([10_000, 10_001]).collect();
    assert_eq!(codes(&stated.operand_performance), expected);
}

#[test]
fn dev_cap_7_older_answers_derive_from_the_newest() {
    let mut capabilities = Capabilities::uniform(PerformanceInfo::AS_CPU);
    let price = |exec_time| PerformanceInfo { exec_time, power_usage: 1.0 };
    for row in &mut capabilities.operand_performance {
        row.info = match row.operand_type {
            OperandType::TensorFloat32 => price(2.0),
            OperandType::TensorQuant8Asymm => price(3.0),
            _ => price(9.0),
        };
    }
    capabilities.relaxed_float32_to_float16_tensor = price(4.0);
    capabilities.relaxed_float32_to_float16_scalar = price(5.0);
    let stated = v1_1::Capabilities::from_canonical(&capabilities).unwrap();
    assert_eq!(stated.float32_performance.exec_time, 2.0);
    assert_eq!(stated.quantized8_performance.exec_time, 3.0);
    assert_eq!(stated.relaxed_float32to_float16_performance.exec_time, 4.0);
    let oldest = v1_0::Capabilities::from_canonical(&capabilities).unwrap();
    assert_eq!(oldest.float32_performance, stated.float32_performance);

    // And back: the prices of the kinds are found again.
    let read = stated.to_canonical().unwrap();
    assert_eq!(v1_1::Capabilities::from_canonical(&read).unwrap(), stated);
    assert_eq!(read.of(OperandType::TensorInt32).exec_time, 3.0);
    assert_eq!(read.of(OperandType::TensorFloat16), PerformanceInfo::UNLISTED);
    assert_eq!(read.if_performance, PerformanceInfo::UNLISTED);
    assert!(read.operand_performance.is_sorted_by_key(|row| row.operand_type.code()));
}

#[test]
fn extensions_and_shapes_go_through() {
    let extension = nnhal_hal::Extension {
        name: "com.example.x".to_owned(),
        operand_types: vec![nnhal_hal::ExtensionOperandType {
            number: 7,
            is_tensor: true,
            byte_size: 3,
        }],
    };
    let there = v1_2::Extension::from_canonical(&extension).unwrap();
    assert_eq!(there.to_canonical().unwrap(), extension);
    let shape = nnhal_hal::OutputShape { dimensions: vec![0, 7], is_sufficient: false };
    let there = v1_2::OutputShape::from_canonical(&shape).unwrap();
    assert_eq!(there.to_canonical().unwrap(), shape);
    let role = nnhal_hal::BufferRole { model_index: 1, io_index: 2, frequency: 0.5 };
    let there = v1_3::BufferRole::from_canonical(&role).unwrap();
    assert_eq!(there.to_canonical().unwrap(), role);
}

#[test]
fn time_2_and_qos_4_what_does_not_fit_is_rounded_or_saturates() {
    let timing = Timing { time_on_device: Some(Duration::from_nanos(1)), time_in_driver: None };
    let there = v1_2::Timing::from_canonical(&timing).unwrap();
    assert_eq!(there, v1_2::Timing { time_on_device: 1, time_in_driver: u64::MAX });
    let endless = v1_3::OptionalTimeoutDuration::from_canonical(&Some(Duration::MAX)).unwrap();
    assert_eq!(endless, v1_3::OptionalTimeoutDuration::Nanoseconds(u64::MAX));
}

#[test]
fn constants_are_shared_not_copied() {
    let model = one_relu();
    let canonical = model.to_canonical().unwrap();
    assert!(Arc::ptr_eq(&model.operand_values, &canonical.operand_values));
}
