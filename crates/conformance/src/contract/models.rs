//! The small models and requests that checks use.

use super::Violation;
use nnhal_hal::{
    DataLocation, Device, Execution, ExecutionError, ExecutionOptions, HalVersion, Memory, Model,
    ModelBuilder, OperandSpec, OperandType, OperationType, PrepareOptions, PreparedModel, Request,
    RequestArgument, RequestBuilder, RequestMemoryPool, SubgraphBuilder, Support,
};
use std::sync::Arc;

/// `sum = a + b` of floats; a dimension of 0 is unknown.
pub(super) fn addition(dimensions: [u32; 2]) -> Model {
    let spec = || OperandSpec::tensor_float32(dimensions);
    let mut graph = SubgraphBuilder::new();
    let (a, b) = (graph.input("a", spec()), graph.input("b", spec()));
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [a, b, none], spec());
    graph.output(sum);
    whole(graph)
}

/// `sum = x + 10 + 10` of 2 by 2 floats, with a constant for each 10.
pub(super) fn constant_addition() -> Model {
    let spec = || OperandSpec::tensor_float32([2, 2]);
    let mut graph = SubgraphBuilder::new();
    let mut sum = graph.input("x", spec());
    let none = graph.scalar_i32(0);
    for _ in 0..2 {
        let ten = graph.constant_bytes(spec(), &bytes(&[10.0; 4]));
        sum = graph.operation(OperationType::Add, [sum, ten, none], spec());
    }
    graph.output(sum);
    whole(graph)
}

/// `sum = a + b` of 2 by 2 floats, the activation being the third input.
pub(super) fn activated_addition() -> Model {
    let spec = || OperandSpec::tensor_float32([2, 2]);
    let mut graph = SubgraphBuilder::new();
    let (a, b) = (graph.input("a", spec()), graph.input("b", spec()));
    let activation = graph.input("activation", OperandSpec::scalar(OperandType::Int32));
    let sum = graph.operation(OperationType::Add, [a, b, activation], spec());
    graph.output(sum);
    whole(graph)
}

/// `a + b` of 2 by 2 floats and `c + c` of 3, two outputs of different shapes, which the model leaves open or not.
pub(super) fn two_sums(is_open: bool) -> Model {
    let known = |length| if is_open { 0 } else { length };
    let (square, row) =
        (|| OperandSpec::tensor_float32([known(2), 2]), || OperandSpec::tensor_float32([known(3)]));
    let mut graph = SubgraphBuilder::new();
    let (a, b) = (graph.input("a", square()), graph.input("b", square()));
    let c = graph.input("c", row());
    let none = graph.scalar_i32(0);
    let first = graph.operation(OperationType::Add, [a, b, none], square());
    let second = graph.operation(OperationType::Add, [c, c, none], row());
    graph.output(first);
    graph.output(second);
    whole(graph)
}

/// For [`two_sums`]: `[1, 2, 3, 4] + 10`, and twice `[5, 6, 7]`.
pub(super) fn two_sums_request() -> Result<Request, Violation> {
    let mut request = RequestBuilder::new();
    request.input_shaped(&bytes(&[1.0, 2.0, 3.0, 4.0]), &[2, 2]);
    request.input_shaped(&bytes(&[10.0; 4]), &[2, 2]);
    request.input_shaped(&bytes(&[5.0, 6.0, 7.0]), &[3]);
    Ok(request.output(16).output(12).build()?)
}

/// `sum = a + b` of 2 by 2 floats, and an input that nothing reads.
pub(super) fn addition_beside(unread: OperandSpec) -> Model {
    let spec = || OperandSpec::tensor_float32([2, 2]);
    let mut graph = SubgraphBuilder::new();
    let (a, b) = (graph.input("a", spec()), graph.input("b", spec()));
    graph.input("unread", unread);
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [a, b, none], spec());
    graph.output(sum);
    whole(graph)
}

/// One RELU of operands like this.
pub(super) fn rectifier(spec: &OperandSpec) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec.clone());
    let y = graph.operation(OperationType::Relu, [x], spec.clone());
    graph.output(y);
    whole(graph)
}

/// `sum = x + 10` of 2 by 2 floats, where the 10 are in a pool.
pub(super) fn pool_addition() -> Result<Model, Violation> {
    let spec = || OperandSpec::tensor_float32([2, 2]);
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(memory(&bytes(&[10.0; 4]))?);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec());
    let ten = graph.constant_in_pool(spec(), pool, 0, 16);
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [x, ten, none], spec());
    graph.output(sum);
    Ok(builder.build(graph).unwrap_or_else(|error| unreachable!("a model of ours: {error}")))
}

/// An operation of a vendor, valid with whatever arguments.
pub(super) fn foreign() -> Model {
    let spec = || OperandSpec::tensor_float32([1]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec());
    let y = graph.operation(OperationType::OemOperation, [x], spec());
    graph.output(y);
    whole(graph)
}

/// A WHILE whose condition stays true.
pub(super) fn endless() -> Model {
    let counter = || OperandSpec::tensor_int32([1]);
    let mut condition = SubgraphBuilder::new();
    let x = condition.input("x", counter());
    let same = condition.operation(OperationType::Equal, [x, x], OperandSpec::tensor_bool8([1]));
    condition.output(same);
    let mut body = SubgraphBuilder::new();
    let x = body.input("x", counter());
    let none = body.scalar_i32(0);
    let next = body.operation(OperationType::Add, [x, x, none], counter());
    body.output(next);
    let mut builder = ModelBuilder::new();
    let (condition, body) = (builder.reference(condition), builder.reference(body));
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", counter());
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let y = main.operation(OperationType::While, [condition, body, x], counter());
    main.output(y);
    builder.build(main).unwrap_or_else(|error| unreachable!("a model of ours: {error}"))
}

fn whole(graph: SubgraphBuilder) -> Model {
    graph.into_model().unwrap_or_else(|error| unreachable!("a model of ours: {error}"))
}

/// Whether the device can run all of a model.
pub(super) fn is_supported(device: &dyn Device, model: &Model) -> Result<bool, Violation> {
    let supported = device.supported_operations(model, device.version())?;
    Ok(supported.iter().all(Support::is_yes))
}

/// Prepares without any wish.
pub(super) fn prepare(
    device: &dyn Device,
    model: &Model,
) -> Result<Arc<dyn PreparedModel>, Violation> {
    Ok(device.prepare_model(model, device.version(), PrepareOptions::default())?)
}

/// A prepared [`addition`] of 2 by 2, which every device that computes can run.
pub(super) fn adder(device: &dyn Device) -> Result<Arc<dyn PreparedModel>, Violation> {
    prepare(device, &addition([2, 2]))
}

pub(super) fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|float| float.to_le_bytes()).collect()
}

/// For [`adder`]: `[1, 2, 3, 4] + 10`.
pub(super) fn sum_request() -> Result<Request, Violation> {
    let mut request = RequestBuilder::new();
    request.input(&bytes(&[1.0, 2.0, 3.0, 4.0])).input(&bytes(&[10.0; 4])).output(16);
    Ok(request.build()?)
}

/// What [`sum_request`] must give.
pub(super) fn sum() -> Vec<u8> {
    bytes(&[11.0, 12.0, 13.0, 14.0])
}

/// A request with an argument in a buffer of the driver's, the last of its pools.
pub(super) fn in_buffer(
    mut request: Request,
    token: u32,
    choose: fn(&mut Request) -> &mut RequestArgument,
) -> Request {
    let pool_index = u32::try_from(request.pools.len()).unwrap_or(u32::MAX);
    request.pools.push(RequestMemoryPool::Token(token));
    choose(&mut request).location = DataLocation { pool_index, offset: 0, length: 0 };
    request
}

/// Executes without any wish.
pub(super) fn execute(
    prepared: &dyn PreparedModel,
    request: &Request,
) -> Result<Execution, ExecutionError> {
    prepared.execute(request, &ExecutionOptions::default())
}

/// What an execution makes of the request for the sum.
pub(super) fn execute_sum_of(
    execute: impl FnOnce(&Request) -> Result<(), Violation>,
) -> Result<Vec<u8>, Violation> {
    let request = sum_request()?;
    execute(&request)?;
    Ok(RequestBuilder::read_output(&request, 0)?)
}

/// The bytes of a pool of shared memory.
pub(super) fn pool_bytes(request: &Request, pool: usize) -> Result<Vec<u8>, Violation> {
    match &request.pools[pool] {
        RequestMemoryPool::Memory(memory) => memory_bytes(memory),
        RequestMemoryPool::Token(_) => Err(Violation("the check looks into a buffer".into())),
    }
}

pub(super) fn memory_bytes(memory: &Memory) -> Result<Vec<u8>, Violation> {
    let read = memory.view().and_then(|view| view.read_to_vec(0, view.size()));
    read.map_err(|error| Violation(format!("the check's own memory: {error}")))
}

pub(super) fn memory(bytes: &[u8]) -> Result<Memory, Violation> {
    Memory::from_bytes(bytes).map_err(|error| Violation(format!("the check's own memory: {error}")))
}

/// Whether the device offers the newest interface, which tokens, loops and fences are of.
pub(super) fn is_newest(device: &dyn Device) -> bool {
    device.version() >= HalVersion::V1_3
}
