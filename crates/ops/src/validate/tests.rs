use super::*;
use crate::shape::Shape;
use nnhal_hal::{
    ErrorStatus, ExtensionNameAndPrefix, Memory, ModelBuilder, OperandSpec, OperandType,
    OperationType, SubgraphBuilder,
};

fn relu(spec: OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec.clone());
    let y = graph.operation(OperationType::Relu, [x], spec);
    graph.output(y);
    graph.into_model().unwrap()
}

#[test]
fn a_valid_model_is_kept_with_what_is_known_of_it() {
    let valid = validate(&relu(OperandSpec::tensor_float32([0, 2])), HalVersion::V1_1).unwrap();
    assert_eq!(valid.version(), HalVersion::V1_1);
    assert_eq!(valid.oldest_version(), HalVersion::V1_0);
    assert_eq!(valid.main().operations.len(), 1);
    let clone = valid.clone();
    assert_eq!(*clone.shape(SubgraphName::Main, 1), Shape::new([None, Some(2)]));
    assert_eq!(clone.operand(SubgraphName::Main, 1).dimensions, [0, 2]);
    assert_eq!(clone.call(SubgraphName::Main, 0).operation(), OperationType::Relu);
}

#[test]
fn model_1_a_graph_has_operands_and_operations() {
    let error = validate(&Model::default(), HalVersion::V1_0).unwrap_err();
    assert_eq!(error, ValidationError::Empty { subgraph: SubgraphName::Main, what: "operands" });
    assert_eq!(error.rule(), "MODEL-1");

    let mut model = relu(OperandSpec::tensor_float32([2]));
    model.main.operations.clear();
    let error = validate(&model, HalVersion::V1_0).unwrap_err();
    assert_eq!(error, ValidationError::Empty { subgraph: SubgraphName::Main, what: "operations" });

    let mut model = relu(OperandSpec::tensor_float32([2]));
    model.referenced.push(Subgraph::default());
    let error = validate(&model, HalVersion::V1_3).unwrap_err();
    let subgraph = SubgraphName::Referenced(0);
    assert_eq!(error, ValidationError::Empty { subgraph, what: "operands" });
}

#[test]
fn model_2_graphs_without_inputs_or_outputs_are_accepted() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.constant(OperandSpec::tensor_float32([1]), &[1.0_f32]);
    graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([1]));
    assert!(validate(&graph.into_model().unwrap(), HalVersion::V1_0).is_ok());
}

#[test]
fn model_3_types_of_newer_versions_are_refused() {
    let model = relu(OperandSpec::tensor_quant8_asymm_signed([2], 0.5, 0));
    let error = validate(&model, HalVersion::V1_2).unwrap_err();
    assert_eq!(error.rule(), "MODEL-3");
    assert_eq!(
        error.to_string(),
        "operand 0 of main subgraph is TENSOR_QUANT8_ASYMM_SIGNED, which came with 1.3, \
         but the model is checked for 1.2"
    );
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_3));
}

#[test]
fn model_6_unknown_rank_is_refused_before_1_2() {
    let model = relu(OperandSpec::tensor_float32([]));
    for version in HalVersion::ALL.iter().copied() {
        match validate(&model, version) {
            Ok(_) => assert!(version >= HalVersion::V1_2),
            Err(error) => {
                assert!(version < HalVersion::V1_2);
                assert_eq!(error.rule(), "MODEL-6");
            }
        }
    }
}

#[test]
fn prep_13_relaxed_computation_needs_1_1() {
    let mut model = relu(OperandSpec::tensor_float32([2]));
    model.relax_computation_float32_to_float16 = true;
    assert!(validate(&model, HalVersion::V1_0).is_err());
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_1));
}

#[test]
fn ext_1_extensions_are_refused_before_1_2() {
    let mut model = relu(OperandSpec::tensor_float32([2]));
    model.extension_name_to_prefix.push(ExtensionNameAndPrefix { name: "a.b".into(), prefix: 1 });
    assert_eq!(validate(&model, HalVersion::V1_1).unwrap_err().rule(), "EXT-1");
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_2));
}

#[test]
fn ext_2_the_table_is_checked_even_if_unused() {
    let mut builder = ModelBuilder::new();
    builder.extension("Not.A.Name", 1);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([1]));
    let y = graph.operation(OperationType::Relu, [x], OperandSpec::tensor_float32([1]));
    graph.output(y);
    let error = validate(&builder.build(graph).unwrap(), HalVersion::V1_2).unwrap_err();
    assert_eq!(error.rule(), "EXT-2");
}

#[test]
fn an_error_is_an_invalid_argument_that_keeps_its_reason() {
    let error = validate(&Model::default(), HalVersion::V1_0).unwrap_err();
    let hal_error = nnhal_hal::Error::from(error.clone());
    assert_eq!(hal_error.status(), ErrorStatus::InvalidArgument);
    assert_eq!(hal_error.reason::<ValidationError>(), Some(&error));
    assert_eq!(hal_error.to_string(), "INVALID_ARGUMENT: the main subgraph has no operands");
}

/// ADD of `x` and a constant in a pool that cannot be mapped here.
fn constants_in_a_hardware_buffer(activation_too: bool) -> Model {
    let fd = || Memory::allocate(8).unwrap().parts().0[0].try_clone().unwrap();
    let memory = Memory::from_parts("hardware_buffer_blob", vec![fd(), fd()], &[], 8).unwrap();
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(memory);
    let spec = || OperandSpec::tensor_float32([1]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec());
    let constant = graph.constant_in_pool(spec(), pool, 0, 4);
    let activation = if activation_too {
        graph.constant_in_pool(OperandSpec::scalar(OperandType::Int32), pool, 4, 4)
    } else {
        graph.scalar_i32(0)
    };
    let y = graph.operation(OperationType::Add, [x, constant, activation], spec());
    graph.output(y);
    builder.build(graph).unwrap()
}

#[test]
fn prep_12_pools_that_cannot_be_mapped_matter_only_where_values_are_needed() {
    let model = constants_in_a_hardware_buffer(false);
    assert_eq!(oldest_version(&model), Ok(HalVersion::V1_2));
    assert_eq!(validate(&model, HalVersion::V1_1).unwrap_err().rule(), "MEM-1");

    let model = constants_in_a_hardware_buffer(true);
    let error = validate(&model, HalVersion::V1_2).unwrap_err();
    assert_eq!((error.rule(), error.status()), ("PREP-12", ErrorStatus::InvalidArgument));
    assert!(matches!(
        error,
        ValidationError::Operand { error: OperandError::Unreadable { pool: 0, .. }, .. }
    ));
}

#[test]
fn errors_read_well() {
    let text = |model: &Model| validate(model, HalVersion::V1_3).unwrap_err().to_string();
    let mut model = relu(OperandSpec::tensor_float32([2]));
    model.main.operands[1].dimensions = vec![3];
    assert_eq!(
        text(&model),
        "operation 0 of the main subgraph: RELU: output 0 has shape [3], expected [2]"
    );
    model.main.operands[1].operand_type = OperandType::TensorInt32;
    assert_eq!(
        text(&model),
        "operation 0 of the main subgraph: RELU: type of output 0 (output) is TENSOR_INT32, \
         expected TENSOR_FLOAT32"
    );
    model.main.operands[0].scale = f32::NAN;
    assert_eq!(
        text(&model),
        "operand 0 of the main subgraph (TENSOR_FLOAT32): the scale is NaN, expected 0"
    );
    model.main.operations[0].inputs = vec![9];
    model.main.operands[0].scale = 0.0;
    assert_eq!(text(&model), "main subgraph: input 0 of operation 0 is operand 9 of 2");
}
