//! Short ways to prepare and run a model.

use hal::{
    ExecutionError, ExecutionOptions, HalVersion, Model, PrepareOptions, PreparedModel,
    RequestBuilder,
};
use std::sync::Arc;

/// The model, prepared by the reference device.
pub fn prepare(model: &Model) -> Arc<dyn PreparedModel> {
    reference::device()
        .prepare_model(model, HalVersion::LATEST, PrepareOptions::default())
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Runs inputs of the model's own shapes; gives dimensions and bytes of each output.
pub fn run(
    prepared: &dyn PreparedModel,
    inputs: &[&[u8]],
    output_lengths: &[usize],
) -> Result<Vec<(Vec<u32>, Vec<u8>)>, ExecutionError> {
    let mut request = RequestBuilder::new();
    for input in inputs {
        request.input(input);
    }
    for length in output_lengths {
        request.output(*length);
    }
    run_request(prepared, &request.build()?, &ExecutionOptions::default())
}

/// Runs a request; gives dimensions and bytes of each output.
pub fn run_request(
    prepared: &dyn PreparedModel,
    request: &hal::Request,
    options: &ExecutionOptions,
) -> Result<Vec<(Vec<u32>, Vec<u8>)>, ExecutionError> {
    let execution = prepared.execute(request, options)?;
    let outputs = execution.output_shapes.into_iter().enumerate();
    outputs
        .map(|(index, shape)| Ok((shape.dimensions, RequestBuilder::read_output(request, index)?)))
        .collect()
}

/// The bytes of floats.
pub fn f32s(elements: &[f32]) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes()).collect()
}
