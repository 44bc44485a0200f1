//! What the contract asks of extensions, held against this driver through [`nnhal_hal::Device`] alone.
//! Each test begins with the number of the requirement.

use fibonacci_extension::{EXTENSION_NAME, FibonacciEngine, Vocabulary, extension};
use nnhal_driver::{DriverDevice, RequestError, UnsupportedOperations};
use nnhal_hal::extension::{check_offered, is_extension_name};
use nnhal_hal::{
    Device, ErrorStatus, Execution, ExecutionError, ExecutionOptions, ExtensionNameAndPrefix,
    ExtraParams, FusedActivation, HalVersion, Model, ModelBuilder, Operand, OperandId, OperandSpec,
    OperandType, OperationType, PrepareOptions, PreparedModel, Request, RequestBuilder,
    SubgraphBuilder, Support,
};
use std::sync::Arc;

const PREFIX: u16 = 0x8001;

fn words() -> Vocabulary {
    Vocabulary::with_prefix(PREFIX).unwrap()
}

fn device() -> impl Device {
    DriverDevice::new(FibonacciEngine::default())
}

fn numbers(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::new(words().tensor_uint64(), dimensions)
}

fn build(graph: SubgraphBuilder) -> Model {
    let mut model = ModelBuilder::new();
    model.extension(EXTENSION_NAME, PREFIX);
    model.build(graph).unwrap()
}

/// `count, modulus -> FIBONACCI`, both given by the request.
fn remainders() -> Model {
    let mut graph = SubgraphBuilder::new();
    let count = graph.input("count", OperandSpec::scalar(OperandType::Int32));
    let modulus = graph.input("modulus", OperandSpec::scalar(words().uint64()));
    let output = graph.operation(words().fibonacci(), [count, modulus], numbers(&[0]));
    graph.output(output);
    build(graph)
}

/// `x -> TO_FLOAT32`, of a shape that the request says.
fn floats() -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", numbers(&[0]));
    let y = graph.operation(words().to_float32(), [x], OperandSpec::tensor_float32([0]));
    graph.output(y);
    build(graph)
}

/// FIBONACCI of constants.
fn of_constants(count: i32, modulus: Option<&[u8]>, output: OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let mut arguments: Vec<OperandId> = vec![graph.scalar_i32(count)];
    if let Some(modulus) = modulus {
        arguments.push(graph.constant_bytes(OperandSpec::scalar(words().uint64()), modulus));
    }
    let output = graph.operation(words().fibonacci(), arguments, output);
    graph.output(output);
    build(graph)
}

fn support(model: &Model) -> Vec<Support> {
    device().supported_operations(model, HalVersion::V1_3).unwrap()
}

fn prepare(model: &Model) -> Arc<dyn PreparedModel> {
    device().prepare_model(model, HalVersion::V1_3, PrepareOptions::default()).unwrap()
}

fn execute(model: &Model, request: &Request) -> Result<Execution, ExecutionError> {
    prepare(model).execute(request, &ExecutionOptions::default())
}

fn u64s(request: &Request, output: usize) -> Vec<u64> {
    let bytes = RequestBuilder::read_output(request, output).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

/// The model is refused as such, wherever it is handed over.
fn expect_invalid(model: &Model, version: HalVersion) -> String {
    let asked = device().supported_operations(model, version).unwrap_err();
    assert_eq!(asked.status(), ErrorStatus::InvalidArgument, "{asked}");
    let prepared = device().prepare_model(model, version, PrepareOptions::default());
    let error = prepared.err().unwrap();
    assert_eq!(error.status(), ErrorStatus::InvalidArgument, "{error}");
    error.to_string()
}

/// The model is valid, but operation 0 is not supported and so the model cannot be prepared.
fn expect_unsupported(model: &Model) -> String {
    let Support::No(reason) = support(model)[0].clone() else { panic!("supported") };
    let prepared = device().prepare_model(model, HalVersion::V1_3, PrepareOptions::default());
    let error = prepared.err().unwrap();
    assert_eq!(error.status(), ErrorStatus::GeneralFailure, "{error}");
    let unsupported = error.reason::<UnsupportedOperations>().unwrap();
    assert_eq!(unsupported.operations[0].1, reason);
    reason
}

fn change(mut model: Model, change: impl FnOnce(&mut Model)) -> Model {
    change(&mut model);
    model
}

fn first_of(model: &mut Model, operand_type: OperandType) -> &mut Operand {
    let mut operands = model.main.operands.iter_mut();
    operands.find(|operand| operand.operand_type == operand_type).unwrap()
}

#[test]
fn dev_ext_1_all_of_the_extension_that_is_listed_is_supported() {
    assert_eq!(device().supported_extensions(), [extension()]);
    // Both types, both operations, constants and what a request gives.
    for model in [
        remainders(),
        floats(),
        of_constants(94, None, numbers(&[94])),
        of_constants(1000, Some(&10_u64.to_le_bytes()), numbers(&[0])),
    ] {
        assert!(support(&model).iter().all(Support::is_yes));
        prepare(&model);
    }
}

#[test]
fn dev_ext_2_the_name_is_one() {
    assert!(is_extension_name(EXTENSION_NAME));
    assert_eq!(check_offered(&device().supported_extensions()), Ok(()));
}

#[test]
fn dev_ext_3_types_are_declared_as_they_are() {
    assert_eq!(check_offered(&device().supported_extensions()), Ok(()));
    let extensions = device().supported_extensions();
    let declared = |operand_type: OperandType| match operand_type {
        OperandType::Extension(it) => *extensions[0].operand_type(it.number()).unwrap(),
        other => panic!("{other}"),
    };
    let (tensor, scalar) = (declared(words().tensor_uint64()), declared(words().uint64()));
    assert_eq!((tensor.is_tensor, tensor.byte_size), (true, 8));
    assert_eq!((scalar.is_tensor, scalar.byte_size), (false, 8));
    // A value of the scalar's size is taken, and elements of the tensor's are given.
    let mut request = RequestBuilder::new();
    request.input(&20_i32.to_le_bytes()).input(&7_u64.to_le_bytes()).output(20 * 8);
    let request = request.build().unwrap();
    execute(&remainders(), &request).unwrap();
    let expected = [0, 1, 1, 2, 3, 5, 1, 6, 0, 6, 6, 5, 4, 2, 6, 1, 0, 1, 1, 2];
    assert_eq!(u64s(&request, 0), expected);
}

#[test]
fn ext_1_the_high_bits_are_the_prefix_and_came_with_1_2() {
    assert_eq!(words().tensor_uint64().code(), 0x8001_0000);
    assert_eq!(words().to_float32().code(), 0x8001_0001);
    for version in [HalVersion::V1_0, HalVersion::V1_1] {
        expect_invalid(&floats(), version);
    }
    let prepared = device().prepare_model(&floats(), HalVersion::V1_2, PrepareOptions::default());
    assert!(prepared.is_ok());
    // Whatever prefix the model chooses.
    for prefix in [1, 2, 0x7FFF, 0xFFFF] {
        let words = Vocabulary::with_prefix(prefix).unwrap();
        let mut graph = SubgraphBuilder::new();
        let count = graph.scalar_i32(3);
        let spec = OperandSpec::new(words.tensor_uint64(), [3]);
        let output = graph.operation(words.fibonacci(), [count], spec);
        graph.output(output);
        let mut model = ModelBuilder::new();
        // The prefix that other models use stands for something else here.
        if prefix != 1 {
            model.extension("com.example.other", 1);
        }
        model.extension(EXTENSION_NAME, prefix);
        let mut request = RequestBuilder::new();
        let request = request.output(24).build().unwrap();
        execute(&model.build(graph).unwrap(), &request).unwrap();
        assert_eq!(u64s(&request, 0), [0, 1, 1]);
    }
}

#[test]
fn ext_2_names_and_prefixes_stand_for_one_thing() {
    let row = |name: &str, prefix| ExtensionNameAndPrefix { name: name.to_owned(), prefix };
    let wrong = [
        row("com.example.other", PREFIX),
        row(EXTENSION_NAME, PREFIX + 1),
        row("fibonacci", PREFIX + 1),
        row("com.example.other", 0),
    ];
    for row in wrong {
        let with_row = change(floats(), |model| model.extension_name_to_prefix.push(row));
        expect_invalid(&with_row, HalVersion::V1_3);
    }
    let other = row("com.example.other", PREFIX + 1);
    let unused = change(floats(), |model| model.extension_name_to_prefix.push(other));
    assert!(support(&unused)[0].is_yes());
}

#[test]
fn ext_3_a_prefix_needs_a_name() {
    let nameless = change(floats(), |model| model.extension_name_to_prefix.clear());
    expect_invalid(&nameless, HalVersion::V1_3);
    let everything = OperandType::from_code(u32::MAX).unwrap();
    for operand in 0..floats().main.operands.len() {
        let operand_type =
            change(floats(), |model| model.main.operands[operand].operand_type = everything);
        expect_invalid(&operand_type, HalVersion::V1_3);
    }
    let other = OperationType::from_code(0x7001_0001).unwrap();
    let operation = change(floats(), |model| model.main.operations[0].operation_type = other);
    expect_invalid(&operation, HalVersion::V1_3);
}

#[test]
fn ext_4_operands_of_the_extension_are_not_quantized() {
    let tensor = words().tensor_uint64();
    let invalid: [fn(&mut Operand); 3] = [
        |operand| operand.scale = 0.5,
        |operand| operand.zero_point = 1,
        |operand| {
            let scales = [1.0].as_slice().into();
            let quant = nnhal_hal::ChannelQuant { scales, channel_dim: 0 };
            operand.extra_params = ExtraParams::ChannelQuant(quant);
        },
    ];
    for invalid in invalid {
        expect_invalid(
            &change(floats(), |model| invalid(first_of(model, tensor))),
            HalVersion::V1_3,
        );
    }
    // The interface allows parameters of the extension's own. This one has none, so a driver that
    // is asked for some says that it does not support them.
    let blob = ExtraParams::Extension([1, 2, 3].as_slice().into());
    let model = change(floats(), |model| first_of(model, tensor).extra_params = blob);
    let reason = expect_unsupported(&model);
    assert!(reason.contains("blob of extension parameters"), "{reason}");
}

#[test]
fn ext_5_the_model_s_operands_have_the_declared_sizes() {
    for bytes in [&[1; 7][..], &[1; 9], &[1; 4]] {
        let reason = expect_unsupported(&of_constants(5, Some(bytes), numbers(&[5])));
        assert!(reason.contains("expected 8"), "{reason}");
    }
    let scalar = words().uint64();
    let with_axis = change(remainders(), |model| first_of(model, scalar).dimensions = vec![1]);
    expect_unsupported(&with_axis);
    // 2^29 elements of 8 bytes.
    let huge = change(floats(), |model| {
        first_of(model, words().tensor_uint64()).dimensions = vec![1 << 29]
    });
    expect_unsupported(&huge);

    let constant = |bytes: &[u8], dimensions: &[u32]| {
        let mut graph = SubgraphBuilder::new();
        let x = graph.constant_bytes(numbers(dimensions), bytes);
        let y = graph.operation(words().to_float32(), [x], OperandSpec::tensor_float32([0]));
        graph.output(y);
        build(graph)
    };
    assert!(support(&constant(&[0; 24], &[3]))[0].is_yes());
    for dimensions in [&[2][..], &[4], &[0], &[]] {
        expect_unsupported(&constant(&[0; 24], dimensions));
    }
}

#[test]
fn ext_5_arguments_that_only_the_extension_knows_are_looked_at_before_preparing() {
    let spec = || numbers(&[0]);
    let refused = [
        // Values and shapes.
        of_constants(-1, None, spec()),
        of_constants(95, None, spec()),
        of_constants(5, Some(&0_u64.to_le_bytes()), spec()),
        of_constants(5, None, numbers(&[6])),
        of_constants(5, None, numbers(&[5, 1])),
        // Types.
        of_constants(5, None, OperandSpec::scalar(words().uint64())),
        of_constants(5, None, OperandSpec::tensor_int32([5])),
    ];
    for model in refused {
        expect_unsupported(&model);
    }
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", numbers(&[3]));
    let y = graph.operation(words().to_float32(), [x, x], OperandSpec::tensor_float32([3]));
    graph.output(y);
    expect_unsupported(&build(graph));
    let unknown = |model: &mut Model| {
        model.main.operations[0].operation_type =
            OperationType::from_code(u32::from(PREFIX) << 16 | 2).unwrap();
    };
    expect_unsupported(&change(floats(), unknown));
    // An ordinary operation makes nothing of the extension's types.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", numbers(&[3]));
    let y = graph.operation(OperationType::ExpandDims, [x, x], numbers(&[3]));
    graph.output(y);
    let unusable = device().supported_operations(&build(graph), HalVersion::V1_3);
    assert!(unusable.is_err() || !unusable.unwrap()[0].is_yes());
}

#[test]
fn ext_5_the_request_s_arguments_have_the_declared_sizes() {
    let reason = |request: &Request| {
        let error = execute(&floats(), request).unwrap_err().error;
        assert_eq!(error.status(), ErrorStatus::InvalidArgument, "{error}");
        error.reason::<RequestError>().unwrap().clone()
    };
    for length in [23, 25, 12] {
        let mut request = RequestBuilder::new();
        let request = request.input_shaped(&vec![0; length], &[3]).output(12).build().unwrap();
        assert!(matches!(reason(&request), RequestError::Length { expected: 24, .. }));
    }
    let mut request = RequestBuilder::new();
    let request = request.input(&[0; 24]).output(12).build().unwrap();
    assert!(matches!(reason(&request), RequestError::UnknownDimensions { .. }));

    let mut request = RequestBuilder::new();
    request.input(&3_i32.to_le_bytes()).input(&[1; 4]).output(24);
    let error = execute(&remainders(), &request.build().unwrap()).unwrap_err().error;
    assert!(matches!(error.reason(), Some(RequestError::Length { expected: 8, .. })), "{error}");
}

#[test]
fn shape_4_and_ext_5_too_short_a_buffer_is_notified_the_extension_s_shape() {
    let mut request = RequestBuilder::new();
    request.input(&12_i32.to_le_bytes()).input(&1000_u64.to_le_bytes()).output(12 * 8 - 1);
    let failed = execute(&remainders(), &request.build().unwrap()).unwrap_err();
    assert_eq!(failed.error.status(), ErrorStatus::OutputInsufficientSize);
    assert_eq!(failed.output_shapes[0].dimensions, [12]);
    assert!(!failed.output_shapes[0].is_sufficient);
}

#[test]
fn ext_6_the_same_numbers_of_an_extension_that_the_device_lacks() {
    let lacking = change(floats(), |model| {
        "com.example.other".clone_into(&mut model.extension_name_to_prefix[0].name);
    });
    let reason = expect_unsupported(&lacking);
    assert!(reason.contains("com.example.other"), "{reason}");
    // The other operations of the model are the device's all the same.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2]));
    let foreign = nnhal_hal::ExtensionType::new(3, 0).unwrap();
    let y =
        graph.operation(OperationType::Extension(foreign), [x], OperandSpec::tensor_float32([2]));
    let z = graph.operation(OperationType::Relu, [y], OperandSpec::tensor_float32([2]));
    graph.output(z);
    let mut model = ModelBuilder::new();
    model.extension("com.example.other", 3);
    let model = model.build(graph).unwrap();
    let found = support(&model);
    assert!(!found[0].is_yes() && found[1].is_yes(), "{found:?}");
    expect_unsupported(&model);
}

#[test]
fn exec_7_and_sec_3_what_a_request_says_is_looked_at_before_it_is_used() {
    let run = |count: i32, modulus: u64| {
        let mut request = RequestBuilder::new();
        request.input(&count.to_le_bytes()).input(&modulus.to_le_bytes()).output(8);
        execute(&remainders(), &request.build().unwrap()).unwrap_err().error.status()
    };
    assert_eq!(run(-1, 10), ErrorStatus::GeneralFailure);
    assert_eq!(run(5, 0), ErrorStatus::GeneralFailure);
    // 16 GiB, which no one asked for memory for.
    assert_eq!(run(i32::MAX, 10), ErrorStatus::ResourceExhaustedPersistent);

    // The modulus may be left out, and then the numbers must fit.
    let run = |count: i32| {
        let mut request = RequestBuilder::new();
        request.input(&count.to_le_bytes()).omitted_input().output(94 * 8);
        let request = request.build().unwrap();
        execute(&remainders(), &request).map(|_| u64s(&request, 0))
    };
    assert_eq!(run(94).unwrap()[93], 12_200_160_415_121_876_738);
    assert_eq!(run(95).unwrap_err().error.status(), ErrorStatus::GeneralFailure);
}

#[test]
fn ordinary_operations_go_on_with_what_the_extension_computed() {
    let mut graph = SubgraphBuilder::new();
    let count = graph.scalar_i32(6);
    let fibonacci = graph.operation(words().fibonacci(), [count], numbers(&[6]));
    let floats =
        graph.operation(words().to_float32(), [fibonacci], OperandSpec::tensor_float32([6]));
    let factor = graph.constant(OperandSpec::tensor_float32([1]), &[0.5_f32]);
    let none = graph.scalar_i32(FusedActivation::None.code());
    let halves = graph.operation(
        OperationType::Mul,
        [floats, factor, none],
        OperandSpec::tensor_float32([6]),
    );
    graph.output(halves);
    graph.output(fibonacci);
    let mut request = RequestBuilder::new();
    let request = request.output(24).output(48).build().unwrap();
    execute(&build(graph), &request).unwrap();
    let halves = RequestBuilder::read_output(&request, 0).unwrap();
    let halves: Vec<f32> =
        halves.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    assert_eq!(halves, [0.0, 0.5, 0.5, 1.0, 1.5, 2.5]);
    assert_eq!(u64s(&request, 1), [0, 1, 1, 2, 3, 5]);
}

/// `x -> if true { x + x } else { x + x }`, in a model that may also have a FIBONACCI.
fn with_control_flow(with_extension: bool) -> Model {
    let vector = || OperandSpec::tensor_float32([2]);
    let mut branch = SubgraphBuilder::new();
    let x = branch.input("x", vector());
    let none = branch.scalar_i32(FusedActivation::None.code());
    let y = branch.operation(OperationType::Add, [x, x, none], vector());
    branch.output(y);
    let mut model = ModelBuilder::new();
    let branch = model.reference(branch);
    let mut main = SubgraphBuilder::new();
    let condition = main.constant(OperandSpec::tensor_bool8([1]), &[true]);
    let (then, otherwise) = (main.subgraph(branch), main.subgraph(branch));
    let x = main.input("x", vector());
    let y = main.operation(OperationType::If, [condition, then, otherwise, x], vector());
    main.output(y);
    if with_extension {
        let count = main.scalar_i32(2);
        let z = main.operation(words().fibonacci(), [count], numbers(&[2]));
        main.output(z);
        model.extension(EXTENSION_NAME, PREFIX);
    }
    model.build(main).unwrap()
}

#[test]
fn dev_sup_3_control_flow_is_the_reference_engine_s_and_declined_beside_the_extension() {
    let ordinary = with_control_flow(false);
    assert_eq!(support(&ordinary), [Support::Yes]);
    let mut request = RequestBuilder::new();
    let x = [1.5_f32.to_le_bytes(), 4.0_f32.to_le_bytes()].concat();
    let request = request.input(&x).output(8).build().unwrap();
    execute(&ordinary, &request).unwrap();
    let doubled = [3.0_f32.to_le_bytes(), 8.0_f32.to_le_bytes()].concat();
    assert_eq!(RequestBuilder::read_output(&request, 0).unwrap(), doubled);

    let reason = expect_unsupported(&with_control_flow(true));
    assert!(reason.contains("control flow"), "{reason}");
    assert!(support(&with_control_flow(true))[1].is_yes());
}
