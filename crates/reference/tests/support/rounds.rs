//! The life of a client, from preparing to dropping.

use super::{binary, f32s, request, vector};
use nnhal_hal::{
    BufferDescription, BufferRole, Device, Execution, ExecutionError, ExecutionOptions, HalVersion,
    Memory, OperationType, PrepareOptions, PreparedModel, Request, RequestMemoryPool,
};
use std::sync::Arc;

/// A device, and a model of one ADD for it.
pub fn sum_device() -> (Arc<dyn Device>, nnhal_hal::Model) {
    let graph = binary(OperationType::Add, &vector(4), vector(4));
    (nnhal_reference::device(), graph.into_model().unwrap())
}

/// 1 and 2, four times.
pub fn sum_request() -> Request {
    request(&[(&[], &f32s(&[1.0; 4])), (&[], &f32s(&[2.0; 4]))], &[16])
}

/// Executes without any wish.
pub fn execute(
    prepared: &dyn PreparedModel,
    request: &Request,
) -> Result<Execution, ExecutionError> {
    prepared.execute(request, &ExecutionOptions::default())
}

/// One client's life: prepare, execute in every way, drop.
pub fn one_round(device: &dyn Device, model: &nnhal_hal::Model) {
    let options = PrepareOptions::default();
    let prepared = device.prepare_model(model, HalVersion::V1_3, options).unwrap();
    let mut request = sum_request();
    execute(&*prepared, &request).unwrap();
    execute(&*prepared, &Request::default()).unwrap_err();
    prepared.configure_burst().unwrap().execute(&request, false).unwrap();
    let no_wish = ExecutionOptions::default();
    let fenced = prepared.execute_fenced(&request, &[], &no_wish, None).unwrap();
    let role = BufferRole { model_index: 0, io_index: 0, frequency: 1.0 };
    let buffer = device
        .allocate(&BufferDescription {
            prepared_models: vec![Arc::clone(&prepared)],
            output_roles: vec![role],
            ..BufferDescription::default()
        })
        .unwrap();
    request.pools.push(RequestMemoryPool::Token(buffer.token()));
    request.outputs[0].location = nnhal_hal::DataLocation { pool_index: 1, offset: 0, length: 0 };
    execute(&*prepared, &request).unwrap();
    buffer.copy_to(&Memory::allocate(16).unwrap()).unwrap();
    fenced.sync_fence.unwrap().wait(None).unwrap();
}
