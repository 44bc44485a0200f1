//! Requests, refused and accepted, by the rules of section 9 of the contract.

use super::*;
use crate::delivery_error::DeliveryError;
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    ErrorStatus, Extension, ExtensionOperandType, ExtensionType, Memory, RequestMemoryPool,
};
use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};
use std::os::fd::OwnedFd;

/// An interface of one input and one output, by the rules of a version.
fn interface(input: OperandSpec, output: OperandSpec, version: HalVersion) -> Interface {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", input);
    let y = graph.operation(OperationType::Relu, [x], output);
    graph.output(y);
    Interface::of(&nnhal_ops::validate(&graph.into_model().unwrap(), version).unwrap())
}

/// Input of shape `[2, ?]`, output of unknown shape.
fn open_interface() -> Interface {
    let output = OperandSpec::tensor_float32([]);
    interface(OperandSpec::tensor_float32([2, 0]), output, HalVersion::V1_3)
}

/// Input and output of shape `[2]`.
fn closed_interface() -> Interface {
    let vector = OperandSpec::tensor_float32([2]);
    interface(vector.clone(), vector, HalVersion::V1_3)
}

fn memory(size: u64) -> RequestMemoryPool {
    RequestMemoryPool::Memory(Memory::allocate(size).unwrap())
}

fn argument(pool_index: u32, offset: u32, length: u32, dimensions: &[u32]) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index, offset, length },
        dimensions: dimensions.to_vec(),
    }
}

/// A request that [`open_interface`] takes.
fn open_request() -> Request {
    Request {
        inputs: vec![argument(0, 1, 24, &[2, 3])],
        outputs: vec![argument(0, 25, 24, &[])],
        pools: vec![memory(49)],
    }
}

/// A request that [`closed_interface`] takes.
fn closed_request() -> Request {
    Request {
        inputs: vec![argument(0, 0, 8, &[])],
        outputs: vec![argument(0, 8, 8, &[])],
        pools: vec![memory(16)],
    }
}

/// The error of binding a request after one change.
fn refused(
    interface: &Interface,
    mut request: Request,
    change: impl FnOnce(&mut Request),
) -> RequestError {
    interface.bind(&request, UsedFor::Execution).expect("taken without the change");
    change(&mut request);
    let error = interface.bind(&request, UsedFor::Execution).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::InvalidArgument, "{error}");
    error
}

fn refused_open(change: impl FnOnce(&mut Request)) -> RequestError {
    refused(&open_interface(), open_request(), change)
}

#[test]
fn req_13_any_offset_is_taken_and_shapes_are_combined() {
    let bindings = open_interface().bind(&open_request(), UsedFor::Execution).unwrap();
    let input = &bindings.inputs()[0];
    assert_eq!(input.shape(), &Shape::known([2, 3]));
    let region = input.value().unwrap();
    assert_eq!((region.offset(), region.length()), (1, 24));
    assert_eq!(bindings.outputs()[0].shape(), &Shape::UNKNOWN);
}

#[test]
fn req_1_the_number_of_arguments_is_the_model_s() {
    type Change = fn(&mut Request);
    let changes: [(Change, &str, usize); 4] = [
        (|request| request.inputs.clear(), "inputs", 0),
        (|request| request.inputs.push(RequestArgument::omitted()), "inputs", 2),
        (|request| request.outputs.clear(), "outputs", 0),
        (|request| request.outputs.push(RequestArgument::omitted()), "outputs", 2),
    ];
    for (change, kind, count) in changes {
        let error = refused_open(change);
        assert!(
            matches!(error, RequestError::Count { what, found, expected: 1 }
                if what == kind && found == count),
            "{error}"
        );
    }
}

#[test]
fn req_2_what_is_left_out_has_nothing_else() {
    let left_out = |request: &mut Request| request.inputs[0] = RequestArgument::omitted();
    let mut request = open_request();
    left_out(&mut request);
    let bindings = open_interface().bind(&request, UsedFor::Execution).unwrap();
    assert!(bindings.inputs()[0].value().is_none());
    assert_eq!(bindings.inputs()[0].shape(), &Shape::new([Some(2), None]));

    let error = refused_open(|request| {
        left_out(request);
        request.inputs[0].location.offset = 1;
    });
    assert!(matches!(error, RequestError::LeftOutWith { found: "a location", .. }), "{error}");
    let error = refused_open(|request| {
        left_out(request);
        request.inputs[0].dimensions = vec![2, 3];
    });
    assert!(matches!(error, RequestError::LeftOutWith { found: "dimensions", .. }), "{error}");
}

#[test]
fn req_3_arguments_are_in_their_pools() {
    let error = refused_open(|request| request.inputs[0].location.pool_index = 1);
    assert!(matches!(error, RequestError::NoSuchPool { found: 1, pools: 1, .. }), "{error}");
    let error = refused_open(|request| request.outputs[0].location.length = 25);
    assert!(matches!(error, RequestError::OutsidePool { end: 50, size: 49, .. }), "{error}");
    // 32 bits would wrap to 23.
    let error = refused_open(|request| request.inputs[0].location.offset = u32::MAX);
    assert!(matches!(error, RequestError::OutsidePool { end: 0x1_0000_0017, .. }), "{error}");
}

#[test]
fn req_4_a_value_has_bytes() {
    let error = refused_open(|request| request.inputs[0].location.length = 0);
    assert!(matches!(error, RequestError::NoBytes { subject: Subject::Input(0) }), "{error}");
    let error = refused_open(|request| request.outputs[0].location.length = 0);
    assert!(matches!(error, RequestError::NoBytes { subject: Subject::Output(0) }), "{error}");
}

#[test]
fn req_6_dimensions_repeat_the_model_s() {
    for dimensions in [&[3, 2][..], &[2], &[2, 3, 1], &[0, 3]] {
        let error = refused_open(|request| request.inputs[0].dimensions = dimensions.to_vec());
        assert!(matches!(error, RequestError::Dimensions { .. }), "{dimensions:?}: {error}");
    }
    let closed = |change: fn(&mut Request)| refused(&closed_interface(), closed_request(), change);
    let error = closed(|request| request.outputs[0].dimensions = vec![0]);
    assert!(matches!(error, RequestError::Dimensions { .. }), "{error}");
}

#[test]
fn req_6_a_scalar_takes_no_dimensions() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2]));
    let activation = graph.input("activation", OperandSpec::scalar(OperandType::Int32));
    let y =
        graph.operation(OperationType::Add, [x, x, activation], OperandSpec::tensor_float32([2]));
    graph.output(y);
    let model = graph.into_model().unwrap();
    let interface = Interface::of(&nnhal_ops::validate(&model, HalVersion::V1_3).unwrap());
    let request = Request {
        inputs: vec![argument(0, 0, 8, &[]), argument(0, 8, 4, &[])],
        outputs: vec![argument(0, 0, 8, &[])],
        pools: vec![memory(12)],
    };
    let error = refused(&interface, request, |request| request.inputs[1].dimensions = vec![1]);
    assert!(matches!(error, RequestError::Dimensions { .. }), "{error}");
}

#[test]
fn req_7_inputs_leave_nothing_unknown() {
    for dimensions in [&[][..], &[2, 0]] {
        let error = refused_open(|request| request.inputs[0].dimensions = dimensions.to_vec());
        assert!(matches!(error, RequestError::UnknownDimensions { .. }), "{dimensions:?}: {error}");
    }
}

#[test]
fn req_8_outputs_may_stay_unknown_from_1_2_on() {
    let error_in = |version| {
        let interface =
            interface(OperandSpec::tensor_float32([2]), OperandSpec::tensor_float32([0]), version);
        interface.bind(&closed_request(), UsedFor::Execution).err()
    };
    for version in [HalVersion::V1_0, HalVersion::V1_1] {
        let error = error_in(version).expect("refused");
        assert!(matches!(error, RequestError::UnknownDimensions { .. }), "{version}: {error}");
    }
    for version in [HalVersion::V1_2, HalVersion::V1_3] {
        assert!(error_in(version).is_none(), "{version}");
    }
}

#[test]
fn req_8_and_fence_2_outputs_behind_fences_are_known_and_fit() {
    let unknown = open_interface().bind(&open_request(), UsedFor::FencedExecution).unwrap_err();
    assert!(matches!(unknown, RequestError::UnknownDimensions { .. }), "{unknown}");

    let mut request = closed_request();
    closed_interface().bind(&request, UsedFor::FencedExecution).unwrap();
    request.outputs[0].location.length = 7;
    let short = closed_interface().bind(&request, UsedFor::FencedExecution).unwrap_err();
    assert!(matches!(short, RequestError::Length { found: 7, expected: 8, .. }), "{short}");
    closed_interface().bind(&request, UsedFor::Execution).unwrap();
}

#[test]
fn req_9_an_input_is_as_long_as_its_shape_says() {
    for length in [4, 7, 9] {
        let error = refused(&closed_interface(), closed_request(), |request| {
            request.inputs[0].location.length = length;
        });
        assert!(
            matches!(error, RequestError::Length { found, expected: 8, .. }
                if found == u64::from(length)),
            "{error}"
        );
    }
}

/// An operation of an extension from a scalar of 3 bytes and a tensor `[?]` with elements of 12
/// bytes to such a tensor, on a device that offers the extension or does not.
fn extension_interface(offered: bool) -> Interface {
    let prefixed = ExtensionType::new(7, 0).unwrap();
    let spec = |number, dimensions: &[u32]| {
        OperandSpec::new(OperandType::Extension(prefixed.with_number(number)), dimensions)
    };
    let mut graph = SubgraphBuilder::new();
    let (x, y) = (graph.input("x", spec(1, &[])), graph.input("y", spec(2, &[0])));
    let z = graph.operation(OperationType::Extension(prefixed), [x, y], spec(2, &[0]));
    graph.output(z);
    let mut builder = nnhal_hal::ModelBuilder::new();
    builder.extension("a.b", 7);
    let model = builder.build(graph).unwrap();
    let operand_type =
        |number, is_tensor, byte_size| ExtensionOperandType { number, is_tensor, byte_size };
    let operand_types = vec![operand_type(1, false, 3), operand_type(2, true, 12)];
    let extension = Extension { name: "a.b".to_owned(), operand_types };
    let types =
        ExtensionTypes::of(&model, if offered { std::slice::from_ref(&extension) } else { &[] });
    Interface::of(&nnhal_ops::validate(&model, HalVersion::V1_2).unwrap())
        .with_extension_types(types)
}

/// A request that [`extension_interface`] takes.
fn extension_request() -> Request {
    Request {
        inputs: vec![argument(0, 1, 3, &[]), argument(0, 4, 24, &[2])],
        outputs: vec![argument(0, 28, 36, &[])],
        pools: vec![memory(64)],
    }
}

#[test]
fn ext_5_sizes_of_an_extensions_types_are_what_the_device_says() {
    let interface = extension_interface(true);
    let bindings = interface.bind(&extension_request(), UsedFor::Execution).unwrap();
    assert_eq!(bindings.inputs()[0].shape(), &Shape::known([]));
    assert_eq!(bindings.inputs()[1].shape(), &Shape::known([2]));

    let error = |change: fn(&mut Request)| refused(&interface, extension_request(), change);
    let longer_scalar = error(|request| request.inputs[0].location.length = 4);
    assert!(matches!(longer_scalar, RequestError::Length { found: 4, expected: 3, .. }));
    let shorter = error(|request| request.inputs[1].location.length = 23);
    assert!(matches!(shorter, RequestError::Length { found: 23, expected: 24, .. }));
    let scalar_with_axis = error(|request| request.inputs[0].dimensions = vec![1]);
    assert!(matches!(scalar_with_axis, RequestError::Dimensions { .. }), "{scalar_with_axis}");
    let unknown = error(|request| request.inputs[1].dimensions.clear());
    assert!(matches!(unknown, RequestError::UnknownDimensions { .. }), "{unknown}");
    let huge = error(|request| request.inputs[1].dimensions = vec![u32::MAX]);
    assert!(matches!(huge, RequestError::TooLarge { .. }), "{huge}");

    let mut behind_fences = extension_request();
    behind_fences.outputs[0].dimensions = vec![3];
    assert!(interface.bind(&behind_fences, UsedFor::FencedExecution).is_ok());
    behind_fences.outputs[0].dimensions = vec![4];
    let short = interface.bind(&behind_fences, UsedFor::FencedExecution).unwrap_err();
    assert!(matches!(short, RequestError::Length { found: 36, expected: 48, .. }), "{short}");
}

#[test]
fn ext_5_an_engine_cannot_deliver_another_size_either() {
    let interface = extension_interface(true);
    let bindings = interface.bind(&extension_request(), UsedFor::Execution).unwrap();
    let refused = bindings.outputs()[0].deliver(&[2], &[0; 23]).unwrap_err();
    assert!(matches!(refused, DeliveryError::Size { found: 23, .. }), "{refused}");
    bindings.outputs()[0].deliver(&[2], &[0; 24]).unwrap();
}

#[test]
fn ext_5_of_types_that_no_one_offers_no_size_is_known() {
    let mut request = extension_request();
    request.inputs[0].location.length = 9;
    assert!(extension_interface(false).bind(&request, UsedFor::Execution).is_ok());
}

#[test]
fn model_17_a_shape_beyond_32_bits_is_refused_without_overflow() {
    let unknown = OperandSpec::tensor_float32([0, 0, 0]);
    let interface = interface(unknown.clone(), unknown, HalVersion::V1_3);
    for dimensions in [[u32::MAX; 3], [1 << 30, 1, 1]] {
        let request = Request {
            inputs: vec![argument(0, 0, 8, &dimensions)],
            outputs: vec![argument(0, 0, 8, &[])],
            pools: vec![memory(8)],
        };
        let error = interface.bind(&request, UsedFor::Execution).unwrap_err();
        assert!(matches!(error, RequestError::TooLarge { .. }), "{error}");
    }
}

#[test]
fn req_10_and_dbuf_1_tokens_are_unknown_used_or_not() {
    for token in [0, 1] {
        let error = refused_open(|request| request.pools.push(RequestMemoryPool::Token(token)));
        assert!(
            matches!(error, RequestError::UnknownToken { pool: 1, token: found }
                if found == token),
            "{error}"
        );
    }
}

/// A descriptor that stands for a hardware buffer: never touched.
fn descriptor() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

#[test]
fn req_10_and_mem_1_memory_is_of_a_kind_that_the_version_knows() {
    let vector = OperandSpec::tensor_float32([2]);
    let pool = || {
        let name = "hardware_buffer_blob";
        let memory = Memory::from_parts(name, vec![descriptor()], &[], 8).unwrap();
        RequestMemoryPool::Memory(memory)
    };
    let older = interface(vector.clone(), vector, HalVersion::V1_1);
    let error = refused(&older, closed_request(), |request| request.pools.push(pool()));
    assert!(matches!(error, RequestError::PoolKind { pool: 1, .. }), "{error}");

    let mut request = closed_request();
    request.pools.push(pool());
    closed_interface().bind(&request, UsedFor::Execution).expect("not used, not mapped");
    request.inputs[0].location.pool_index = 1;
    let error = closed_interface().bind(&request, UsedFor::Execution).unwrap_err();
    assert!(matches!(error, RequestError::Memory { pool: 1, .. }), "{error}");
    assert_eq!(error.status(), ErrorStatus::InvalidArgument);
}

#[test]
fn req_12_an_output_in_read_only_memory_is_refused() {
    let read_only = || {
        let whole = Memory::allocate(16).unwrap();
        let fd = whole.parts().0[0].try_clone().unwrap();
        RequestMemoryPool::Memory(Memory::from_file(fd, Protection::READ, 0, 16).unwrap())
    };
    let error = refused(&closed_interface(), closed_request(), |request| {
        request.pools[0] = read_only();
    });
    assert!(
        matches!(error, RequestError::ReadOnly { subject: Subject::Output(0), pool: 0 }),
        "{error}"
    );
    let mut request = closed_request();
    request.pools.push(read_only());
    request.inputs[0].location.pool_index = 1;
    closed_interface().bind(&request, UsedFor::Execution).expect("inputs are only read");
}

mod laws {
    use super::*;
    use proptest::prelude::*;

    fn any_argument() -> impl Strategy<Value = RequestArgument> {
        let number = prop_oneof![0..20_u32, Just(u32::MAX), any::<u32>()];
        let dimensions = prop::collection::vec(number.clone(), 0..4);
        (any::<bool>(), 0..3_u32, number.clone(), number, dimensions).prop_map(
            |(has_no_value, pool_index, offset, length, dimensions)| RequestArgument {
                has_no_value,
                location: DataLocation { pool_index, offset, length },
                dimensions,
            },
        )
    }

    proptest! {
        /// Whatever is taken is in its pool, and is as long as it should be (contract: GEN-8).
        #[test]
        fn req_3_and_9_hold_for_all_that_is_taken(
            inputs in prop::collection::vec(any_argument(), 1..2),
            outputs in prop::collection::vec(any_argument(), 1..2),
        ) {
            let request = Request { inputs, outputs, pools: vec![memory(8), memory(64)] };
            let Ok(bindings) = open_interface().bind(&request, UsedFor::Execution) else {
                return Ok(());
            };
            if let Some(region) = bindings.inputs()[0].value() {
                let count = bindings.inputs()[0].shape().element_count().unwrap();
                prop_assert_eq!(region.length(), 4 * count);
                prop_assert_eq!(region.read_to_vec().unwrap().len() as u64, region.length());
            }
        }
    }
}
