use super::*;
use crate::validate::{
    CheckedModel, OperandError, ValidModel, ValidationError, check, check_for_application,
    oldest_version, validate,
};
use nnhal_hal::{
    ErrorStatus, ExtensionType, Memory, Model, ModelBuilder, Operand, OperandLifeTime, OperandSpec,
    SubgraphBuilder,
};

fn float(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

/// One operation of which the last two of `operands` are taken as activation and result.
fn add(inputs: [OperandSpec; 2], output: OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let [a, b] = inputs.map(|spec| graph.input("input", spec));
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [a, b, none], output);
    graph.output(sum);
    graph.into_model().unwrap()
}

/// `x -> RELU -> y`, as `operation` says.
fn unary(operation: OperationType, input: OperandSpec, output: OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", input);
    let y = graph.operation(operation, [x], output);
    graph.output(y);
    graph.into_model().unwrap()
}

/// CONV_2D of a `[1, 5, 5, 1]` image with a `[1, 3, 3, 1]` filter, SAME padding, stride 2, whose
/// result is declared with these dimensions.
fn convolution(output: impl Into<Vec<u32>>) -> Model {
    let mut graph = SubgraphBuilder::new();
    let image = graph.input("image", float([1, 5, 5, 1]));
    let filter = graph.constant(float([1, 3, 3, 1]), &[1.0_f32; 9]);
    let bias = graph.constant(float([1]), &[0.0_f32]);
    let [scheme, stride, activation] = [1, 2, 0].map(|value| graph.scalar_i32(value));
    let inputs = [image, filter, bias, scheme, stride, stride, activation];
    let y = graph.operation(OperationType::Conv2d, inputs, float(output));
    graph.output(y);
    graph.into_model().unwrap()
}

fn mistake(model: &Model, version: HalVersion) -> (usize, OperationMistake, &'static str) {
    let error = validate(model, version).expect_err("a mistake");
    let rule = error.rule();
    match error {
        ValidationError::Operation { operation, error, .. } => (operation, *error, rule),
        other => panic!("{other}"),
    }
}

fn latest(model: &Model) -> Result<ValidModel, ValidationError> {
    validate(model, HalVersion::LATEST)
}

fn shape_of_output(model: &ValidModel) -> Shape {
    model.shape(SubgraphName::Main, model.main().outputs[0]).clone()
}

#[test]
fn model_25_types_are_those_of_the_definition() {
    let model = add([float([2]), OperandSpec::tensor_int32([2])], float([2]));
    let (operation, error, rule) = mistake(&model, HalVersion::V1_3);
    assert_eq!((operation, rule), (0, "MODEL-25"));
    assert_eq!(
        error.to_string(),
        "ADD: type of input 1 (input1) is TENSOR_INT32, expected TENSOR_FLOAT32"
    );
}

#[test]
fn model_25_missing_and_additional_arguments_are_refused() {
    for (inputs, outputs) in [(2, 1), (4, 1), (3, 0), (3, 2)] {
        let mut model = add([float([2]), float([2])], float([2]));
        let main = &mut model.main;
        let operation = &mut main.operations[0];
        operation.inputs.resize(inputs, 0);
        if outputs == 2 {
            let mut more = main.operands[3].clone();
            more.lifetime = OperandLifeTime::TemporaryVariable;
            main.operands.push(more);
            operation.outputs.push(4);
        } else if outputs == 0 {
            operation.outputs.clear();
            main.operands.pop();
            main.outputs.clear();
        }
        for operand in &mut main.operands {
            operand.number_of_consumers = 0;
        }
        for index in &operation.inputs {
            main.operands[*index as usize].number_of_consumers += 1;
        }
        let (_, error, rule) = mistake(&model, HalVersion::V1_3);
        assert_eq!(rule, "MODEL-25", "{inputs} {outputs}: {error}");
    }
}

#[test]
fn model_25_what_is_newer_than_the_version_is_refused() {
    let spec = OperandSpec::tensor_float16([2]);
    let model = unary(OperationType::Relu, spec.clone(), spec);
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_2));
    assert!(validate(&model, HalVersion::V1_2).is_ok());

    // The types are as old as the interface, their combination is not.
    let spec = OperandSpec::tensor_quant8_asymm([2], 0.5, 0);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec.clone());
    let none = graph.scalar_i32(0);
    let difference = graph.operation(OperationType::Sub, [x, x, none], spec);
    graph.output(difference);
    let model = graph.into_model().unwrap();
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_2));
    let (operation, error, rule) = mistake(&model, HalVersion::V1_1);
    assert_eq!((operation, rule), (0, "MODEL-25"));
    let since = HalVersion::V1_2;
    let version = HalVersion::V1_1;
    assert!(
        matches!(error, OperationMistake::Newer { since: a, version: b, .. } if a == since && b == version),
        "{error}"
    );
}

#[test]
fn model_26_only_optional_arguments_are_left_out() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    let nothing = graph.omitted(float([2]));
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, nothing, none], float([2]));
    graph.output(sum);
    let (_, error, rule) = mistake(&graph.into_model().unwrap(), HalVersion::V1_0);
    assert_eq!(rule, "MODEL-26");
    assert_eq!(error.to_string(), "ADD: value of input 1 (input1) is left out, expected a value");
}

#[test]
fn model_26_applications_learn_of_what_is_left_out_when_they_compute() {
    let model = |[first, second, output]: [OperandSpec; 3]| {
        let mut graph = SubgraphBuilder::new();
        let nothing = graph.omitted(first);
        let [x, y] = [second, float([2])].map(|spec| graph.input("x", spec));
        let none = graph.scalar_i32(0);
        let sum = graph.operation(OperationType::Add, [nothing, x, none], output);
        let product = graph.operation(OperationType::Mul, [y, y, none], float([2]));
        graph.output(sum);
        graph.output(product);
        graph.into_model().unwrap()
    };
    let integers = || OperandSpec::tensor_int32([2]);
    for spec in [float([2]), OperandSpec::tensor_quant8_asymm([2], 0.5, 0), integers()] {
        let whole = model([(); 3].map(|()| spec.clone()));
        assert_eq!(check(&whole, HalVersion::V1_3).expect_err("a value").rule(), "MODEL-26");
        let checked = check_for_application(&whole, HalVersion::V1_3).expect("a valid model");
        let [defect] = checked.defects() else { panic!("{:?}", checked.defects()) };
        assert_eq!((defect.operation, defect.operation_type), (0, OperationType::Add));
        assert!(defect.to_string().contains("is left out"), "{defect}");
        assert_eq!(checked.runnable_part().expect("the other one").operations, [1]);
    }
    // The other arguments' types are looked at all the same.
    let wrong = model([float([2]), integers(), float([2])]);
    let error = check_for_application(&wrong, HalVersion::V1_3).expect_err("a wrong type");
    assert_eq!(error.rule(), "MODEL-25");
}

#[test]
fn model_28_vendors_operations_may_take_anything() {
    for version in HalVersion::ALL {
        let oem = OperandSpec::new(OperandType::TensorOemByte, [2]);
        let model = unary(OperationType::OemOperation, oem.clone(), oem);
        let valid = validate(&model, *version).expect("a valid model");
        assert_eq!(valid.oldest_version(), HalVersion::V1_0);
    }
}

/// The only defect of a model that is valid for every version, and which no engine may be given.
fn only_defect(model: &Model) -> (CheckedModel, Defect) {
    for version in HalVersion::ALL {
        assert!(check(model, *version).is_ok(), "{version}");
    }
    let checked = check(model, HalVersion::LATEST).expect("a valid model");
    let [defect] = checked.defects() else { panic!("{:?}", checked.defects()) };
    let defect = defect.clone();
    let error = latest(model).expect_err("a defect");
    assert_eq!(error.rule(), "MODEL-29");
    assert_eq!(error.status(), ErrorStatus::GeneralFailure);
    assert_eq!(error, defect.clone().into());
    (checked, defect)
}

#[test]
fn model_29_a_value_that_is_forbidden_leaves_the_model_valid() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    let activation = graph.scalar_i32(7);
    let sum = graph.operation(OperationType::Add, [x, x, activation], float([2]));
    graph.output(sum);
    let (_, defect) = only_defect(&graph.into_model().unwrap());
    assert!(matches!(*defect.mistake, OperationMistake::Definition(_)), "{defect}");
}

#[test]
fn model_29_lengths_that_are_forbidden_leave_the_model_valid() {
    let mut model = convolution([0, 0, 0, 0]);
    // Another number of channels than the image has.
    model.main.operands[1].dimensions = vec![1, 3, 1, 3];
    let (_, defect) = only_defect(&model);
    assert!(matches!(*defect.mistake, OperationMistake::Definition(_)), "{defect}");
}

#[test]
fn model_29_ranks_and_scales_are_refused() {
    let mut model = convolution([0, 0, 0, 0]);
    model.main.operands[1].dimensions = vec![3, 3, 1];
    let (_, error, _) = mistake(&model, HalVersion::V1_0);
    assert!(error.to_string().contains("rank"), "{error}");
    assert!(check(&model, HalVersion::V1_0).is_err());

    let spec = |scale| OperandSpec::tensor_quant8_asymm([2], scale, 0);
    let model = unary(OperationType::Logistic, spec(0.5), spec(0.5));
    let error = check(&model, HalVersion::V1_0).expect_err("a wrong scale");
    assert_eq!(error.status(), ErrorStatus::InvalidArgument);
    assert!(error.to_string().contains("scale"), "{error}");
    // Applications learn of it when they compute.
    let checked = check_for_application(&model, HalVersion::V1_0).expect("a valid model");
    assert_eq!(checked.defects().len(), 1);
}

/// MODEL-8: the interface wants scales above 0, which an infinite one is.
#[test]
fn model_29_what_has_an_infinite_scale_is_not_computed() {
    let infinite = || OperandSpec::tensor_quant8_asymm([2], f32::INFINITY, 0);
    for (model, expected) in [
        (unary(OperationType::Dequantize, infinite(), float([2])), "input 0"),
        (unary(OperationType::Quantize, float([2]), infinite()), "output 0"),
    ] {
        for check in [check, check_for_application] {
            let checked = check(&model, HalVersion::LATEST).expect("a valid model");
            let [defect] = checked.defects() else { panic!("{:?}", checked.defects()) };
            assert!(defect.to_string().contains(expected), "{defect}");
            assert!(checked.into_valid().is_err());
        }
    }
    // One scale of a channel.
    let mut graph = SubgraphBuilder::new();
    let channels = OperandSpec::tensor_quant8_symm_per_channel([2], &[0.5, f32::INFINITY], 0);
    let x = graph.input("x", channels);
    let y = graph.operation(OperationType::Dequantize, [x], float([2]));
    graph.output(y);
    let checked = check(&graph.into_model().unwrap(), HalVersion::LATEST).expect("a valid model");
    let [defect] = checked.defects() else { panic!("{:?}", checked.defects()) };
    assert!(defect.to_string().contains("input 0"), "{defect}");
}

#[test]
fn model_29_values_that_come_later_are_not() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    let activation = graph.input("activation", OperandSpec::scalar(OperandType::Int32));
    let sum = graph.operation(OperationType::Add, [x, x, activation], float([2]));
    graph.output(sum);
    assert!(latest(&graph.into_model().unwrap()).is_ok());
}

#[test]
fn model_29_declared_shapes_that_do_not_follow_leave_the_model_valid() {
    assert!(latest(&convolution([1, 3, 3, 1])).is_ok());
    for output in [vec![1, 2, 3, 1], vec![1, 3, 3, 2], vec![1, 3, 3]] {
        let (checked, defect) = only_defect(&convolution(output.clone()));
        let OperationMistake::OutputShape { found, expected, .. } = *defect.mistake else {
            panic!("{defect}")
        };
        assert_eq!(found, Shape::of_model(&output));
        assert_eq!(expected, Shape::known([1, 3, 3, 1]));
        // What is declared stays.
        let declared = checked.shape(SubgraphName::Main, checked.model().main.outputs[0]);
        assert_eq!(*declared, found);
    }
}

#[test]
fn shapes_follow_from_what_is_known() {
    for output in [vec![], vec![0, 0, 0, 0], vec![0, 3, 0, 1]] {
        let valid = latest(&convolution(output)).expect("a valid model");
        assert_eq!(shape_of_output(&valid), Shape::known([1, 3, 3, 1]));
    }
}

#[test]
fn shapes_go_on_from_operation_to_operation() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([4, 1]));
    let y = graph.input("y", float([0, 3]));
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, y, none], float([]));
    let result = graph.operation(OperationType::Relu, [sum], float([]));
    graph.output(result);
    let valid = latest(&graph.into_model().unwrap()).expect("a valid model");
    assert_eq!(shape_of_output(&valid), Shape::known([4, 3]).merge(&Shape::UNKNOWN).unwrap());
}

#[test]
fn model_29_a_mistake_far_from_its_cause_is_found() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    let y = graph.operation(OperationType::Relu, [x], float([0]));
    let z = graph.operation(OperationType::Relu, [y], float([3]));
    graph.output(z);
    let (_, defect) = only_defect(&graph.into_model().unwrap());
    assert_eq!(defect.operation, 1);
    assert_eq!(defect.mistake.to_string(), "output 0 has shape [3], expected [2]");
    assert_eq!(
        defect.to_string(),
        "operation 1 of the main subgraph: RELU: output 0 has shape [3], expected [2]"
    );
}

#[test]
fn model_17_shapes_that_follow_fit_32_bits() {
    // Each input has 2^17 bytes, their sum 2^32.
    let model = add([float([0x8000, 1]), float([1, 0x8000])], float([0, 0]));
    let (_, error, rule) = mistake(&model, HalVersion::V1_0);
    assert!(matches!(error, OperationMistake::OutputTooLarge { output: 0, .. }), "{error}");
    assert_eq!(rule, "MODEL-17");
    let checked = check_for_application(&model, HalVersion::V1_0).expect("a valid model");
    assert_eq!(checked.defects().len(), 1);
    let model = add([float([0x8000, 1]), float([1, 0x7FFF])], float([0, 0]));
    assert!(latest(&model).is_ok());
}

#[test]
fn model_17_a_length_of_zero_is_ordinary_where_none_is_declared() {
    let declared = Shape::new([None, Some(u32::MAX)]);
    let inferred = Shape::new([Some(0), None]);
    let merged =
        |declared: &Shape| merged(0, OperandType::TensorFloat32, declared, inferred.clone());
    assert_eq!(merged(&declared), Ok(Shape::known([0, u32::MAX])));
    assert!(matches!(merged(&Shape::known([1, 1])), Err(OperationMistake::OutputShape { .. })));

    let float = OperandType::TensorFloat32;
    assert!(fits_32_bits(float, &Shape::known([u32::MAX, u32::MAX, 0])));
    assert!(fits_32_bits(float, &Shape::new([Some(u32::MAX), None])));
    assert!(fits_32_bits(float, &Shape::known([0x3FFF_FFFF])));
    assert!(!fits_32_bits(float, &Shape::known([0x4000_0000])));
    assert!(!fits_32_bits(float, &Shape::known([u32::MAX; 5])));
}

#[test]
fn dev_sup_5_operations_without_definition_keep_a_model_valid() {
    let missing = OperationType::FUNDAMENTAL
        .iter()
        .copied()
        .find(|operation| Signature::of(*operation).is_none() && !operation.is_oem());
    if let Some(operation) = missing {
        assert!(latest(&unary(operation, float([2]), float([3]))).is_ok());
    }
}

/// An operation of extension 5 between operands of an extension's type.
fn with_extension(prefixes: &[u16], operation: u16) -> Model {
    let ty = OperandType::Extension(ExtensionType::new(5, 1).unwrap());
    let operation = OperationType::Extension(ExtensionType::new(operation, 2).unwrap());
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::new(ty, [2]));
    let y = graph.operation(operation, [x, x], OperandSpec::new(ty, []));
    graph.output(y);
    let mut builder = ModelBuilder::new();
    for prefix in prefixes {
        builder.extension(format!("com.example.n{prefix}"), *prefix);
    }
    builder.build(graph).unwrap()
}

#[test]
fn ext_5_extension_operations_may_take_anything() {
    let model = with_extension(&[5], 5);
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_2));
    let error = validate(&model, HalVersion::V1_1).expect_err("too old");
    assert_eq!(error.rule(), "EXT-1");
}

#[test]
fn ext_3_operations_need_a_named_prefix() {
    let (_, error, rule) = mistake(&with_extension(&[5], 6), HalVersion::V1_2);
    assert_eq!(error, OperationMistake::UnmappedPrefix { prefix: 6 });
    assert_eq!(rule, "EXT-3");
    assert!(latest(&with_extension(&[5, 6], 6)).is_ok());
    let error = latest(&with_extension(&[6], 6)).expect_err("an unknown operand type");
    assert!(matches!(
        error,
        ValidationError::Operand { error: OperandError::UnmappedPrefix { prefix: 5 }, .. }
    ));
}

#[test]
fn sec_1_parameters_in_a_pool_are_read_once() {
    let memory = Memory::from_bytes(&[0; 8]).unwrap();
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(memory.clone());
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    let activation = graph.constant_in_pool(OperandSpec::scalar(OperandType::Int32), pool, 4, 4);
    let sum = graph.operation(OperationType::Add, [x, x, activation], float([2]));
    graph.output(sum);
    let model = builder.build(graph).unwrap();
    let valid = latest(&model).expect("a valid model");

    memory.view().unwrap().write(4, &[7]).unwrap();
    let constant = valid.constant(SubgraphName::Main, activation.index()).unwrap();
    assert_eq!(constant.known(), Some(&[0, 0, 0, 0][..]));
    let call = valid.call(SubgraphName::Main, 0);
    assert!(AnyOperation::decode(&call).is_ok());
    assert!(latest(&model).is_err(), "the value is now 7");
}

#[test]
fn sec_1_large_constants_stay_where_they_are() {
    let memory = Memory::from_bytes(&[1; 16]).unwrap();
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(memory.clone());
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    let weights = graph.constant_in_pool(float([2]), pool, 4, 8);
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, weights, none], float([2]));
    graph.output(sum);
    let valid = latest(&builder.build(graph).unwrap()).expect("a valid model");
    let constant = valid.constant(SubgraphName::Main, weights.index()).unwrap();
    assert_eq!((constant.length(), constant.known()), (8, None));
    assert_eq!(constant.read().unwrap()[..], [1; 8]);
    memory.view().unwrap().write(11, &[9, 9]).unwrap();
    assert_eq!(constant.read().unwrap()[..], [1, 1, 1, 1, 1, 1, 1, 9]);
    let (view, offset) = constant.in_pool().unwrap().unwrap();
    assert_eq!((view.size(), offset), (16, 4));
    assert!(valid.constant(SubgraphName::Main, x.index()).is_none());
}

#[test]
fn hostile_numbers_never_panic() {
    let extremes = [0, 1, 2, 3, 0x7FFF_FFFF, 0x8000_0000, u32::MAX];
    for height in extremes {
        for width in extremes {
            let mut model = convolution([0, 0, 0, 0]);
            let image: &mut Operand = &mut model.main.operands[0];
            image.dimensions = vec![height, width, height, 0];
            let _ = latest(&model);
        }
    }
}
