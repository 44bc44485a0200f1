//! Short ways to prepare and run a model.
#![allow(dead_code)] // Every test crate uses a part.

pub mod rounds;

use nnhal_hal::{
    ErrorStatus, ExecutionError, ExecutionOptions, HalVersion, Model, OperandSpec, OperationType,
    PrepareOptions, PreparedModel, Request, RequestBuilder, SubgraphBuilder,
};
use std::sync::Arc;

/// Dimensions and bytes.
pub type Tensor = (Vec<u32>, Vec<u8>);

/// The model, prepared by the reference device.
pub fn prepare(model: &Model) -> Arc<dyn PreparedModel> {
    nnhal_reference::device()
        .prepare_model(model, HalVersion::LATEST, PrepareOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A request of inputs with these dimensions (empty: the model's), and room for outputs.
pub fn request(inputs: &[(&[u32], &[u8])], output_lengths: &[usize]) -> Request {
    let mut request = RequestBuilder::new();
    for (dimensions, bytes) in inputs {
        request.input_shaped(bytes, dimensions);
    }
    for length in output_lengths {
        request.output(*length);
    }
    request.build().unwrap()
}

/// Runs a request; gives dimensions and bytes of each output.
pub fn run(prepared: &dyn PreparedModel, request: &Request) -> Result<Vec<Tensor>, ExecutionError> {
    run_with(prepared, request, &ExecutionOptions::default())
}

/// The same with options.
pub fn run_with(
    prepared: &dyn PreparedModel,
    request: &Request,
    options: &ExecutionOptions,
) -> Result<Vec<Tensor>, ExecutionError> {
    let execution = prepared.execute(request, options)?;
    let outputs = execution.output_shapes.into_iter().enumerate();
    outputs
        .map(|(index, shape)| {
            let bytes: u32 = shape.dimensions.iter().product::<u32>() * 4;
            let mut whole = RequestBuilder::read_output(request, index)?;
            whole.truncate(bytes as usize);
            Ok((shape.dimensions, whole))
        })
        .collect()
}

/// Status and text of a failure that comes without shapes (GEN-3).
pub fn failure(result: Result<Vec<Tensor>, ExecutionError>) -> (ErrorStatus, String) {
    let failed = result.expect_err("a failure");
    assert_eq!(failed.output_shapes, []);
    (failed.error.status(), failed.error.to_string())
}

/// The bytes of floats.
pub fn f32s(elements: &[f32]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}

/// The bytes of integers.
pub fn i32s(elements: &[i32]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}

/// A float vector of this length; 0 is unknown.
pub fn vector(length: u32) -> OperandSpec {
    OperandSpec::tensor_float32([length])
}

/// One integer in a tensor, as loops count with.
pub fn counter() -> OperandSpec {
    OperandSpec::tensor_int32([1])
}

/// One truth value in a tensor.
pub fn truth() -> OperandSpec {
    OperandSpec::tensor_bool8([1])
}

/// A subgraph of one binary operation on two inputs of a kind.
pub fn binary(
    operation: OperationType,
    input: &OperandSpec,
    output: OperandSpec,
) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let a = graph.input("a", input.clone());
    let b = graph.input("b", input.clone());
    let result = if matches!(operation, OperationType::Less) {
        graph.operation(operation, [a, b], output)
    } else {
        let none = graph.scalar_i32(0);
        graph.operation(operation, [a, b, none], output)
    };
    graph.output(result);
    graph
}
