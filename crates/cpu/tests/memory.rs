//! What a model, its plans and its executions take counts against a limit, before it is taken.

#[path = "support/long.rs"]
mod long;

use nnhal_cpu::{CpuEngine, Settings};
use nnhal_driver::{DriverDevice, EngineError};
use nnhal_hal::client::Holding;
use nnhal_hal::{
    Client, ClientLimits, Device, ErrorStatus, ExecutionOptions, HalVersion, Model, OperandSpec,
    OperationType as O, PrepareOptions, PreparedModel, RequestBuilder, SubgraphBuilder,
};
use std::sync::Arc;

const MB: u64 = 1 << 20;

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn prepare(model: &Model, memory_limit: u64) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
    let settings = Settings { memory_limit, ..Settings::default() };
    let device = DriverDevice::new(CpuEngine::new(settings)).without_cache();
    device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default())
}

/// As many copies of one number as wanted, `times` over, all of them outputs.
fn tiles(length: i32, times: usize) -> Model {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[1]));
    let count = graph.constant(OperandSpec::tensor_int32([1]), &[length]);
    for _ in 0..times {
        let y = graph.operation(O::Tile, [x, count], floats(&[0]));
        graph.output(y);
    }
    graph.into_model().unwrap()
}

#[test]
fn values_that_exceed_the_limit_together_are_refused_when_the_model_is_prepared() {
    // 8 values of 40 MB: each would fit.
    let model = tiles(10 << 20, 8);
    let error = prepare(&model, 100 * MB).err().expect("too much");
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent, "{error}");
    let reason = error.reason::<EngineError>().expect("an engine's");
    let EngineError::MemoryLimit { wanted, limit, .. } = reason else { panic!("{reason}") };
    assert!(*wanted >= 320 * MB && *limit == 100 * MB, "{reason}");
    assert!(prepare(&model, 400 * MB).is_ok());
}

#[test]
fn values_beyond_all_addresses_are_refused() {
    // 2^31 numbers, 2^31 times over.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[1, 1]));
    let count = graph.constant(OperandSpec::tensor_int32([2]), &[i32::MAX, i32::MAX]);
    let y = graph.operation(O::Tile, [x, count], floats(&[0, 0]));
    graph.output(y);
    let error = prepare(&graph.into_model().unwrap(), u64::MAX).err().expect("too much");
    let status = error.status();
    assert!(
        matches!(
            status,
            ErrorStatus::ResourceExhaustedPersistent
                | ErrorStatus::InvalidArgument
                | ErrorStatus::GeneralFailure
        ),
        "{error}"
    );
    assert!(!error.to_string().contains("panicked"), "{error}");
}

#[test]
fn weights_that_are_packed_again_and_again_are_counted_each_time() {
    // 4 MB that are weights of 100 operations.
    let mut builder = nnhal_hal::ModelBuilder::new();
    let pool = builder.pool(nnhal_hal::Memory::allocate(4 << 20).unwrap());
    let mut graph = SubgraphBuilder::new();
    let mut x = graph.input("x", floats(&[2, 1024]));
    let none = graph.scalar_i32(0);
    let bias = graph.constant_in_pool(floats(&[1024]), pool, 0, 4096);
    for _ in 0..100 {
        let filter = graph.constant_in_pool(floats(&[1024, 1024]), pool, 0, 4 << 20);
        x = graph.operation(O::FullyConnected, [x, filter, bias, none], floats(&[2, 1024]));
    }
    graph.output(x);
    let model = builder.build(graph).unwrap();
    let error = prepare(&model, 100 * MB).err().expect("too much");
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent, "{error}");
}

#[test]
fn scales_of_channels_are_counted() {
    // A byte, a scale and a float for each of many channels, ten times over.
    const CHANNELS: u32 = 1 << 18;
    let mut graph = SubgraphBuilder::new();
    for _ in 0..10 {
        let scales = vec![0.5; CHANNELS as usize];
        let spec = OperandSpec::tensor_quant8_symm_per_channel([CHANNELS], &scales, 0);
        let x = graph.input("x", spec);
        let y = graph.operation(O::Dequantize, [x], floats(&[CHANNELS]));
        graph.output(y);
    }
    let model = graph.into_model().unwrap();
    let each = 10 * u64::from(CHANNELS);
    prepare(&model, 11 * each).unwrap_or_else(|error| panic!("{error}"));
    let error = prepare(&model, 7 * each).err().expect("too much");
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent, "{error}");
}

#[test]
fn products_of_tiny_matrices_take_memory_in_proportion() {
    // Each product of a batch of 60,000 would have a place of its own in the plan.
    let model = long::products(300, 60_000);
    prepare(&model, 32 * MB).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn executions_let_go_of_what_other_models_kept() {
    // 8 MB for an execution of each of these models, of which the client may have 20 MB.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[1 << 20]));
    let beta = graph.scalar_f32(1.0);
    let between = graph.operation(O::Softmax, [x, beta], floats(&[1 << 20]));
    let y = graph.operation(O::Softmax, [between, beta], floats(&[1 << 20]));
    graph.output(y);
    let model = graph.into_model().unwrap();
    let client = |memory| Client::new("test", ClientLimits { memory, ..ClientLimits::default() });
    let one = client(20 * MB);
    let device = nnhal_cpu::device(Settings::default());
    let prepare = |client: &Client| {
        let options = PrepareOptions { client: client.clone(), ..PrepareOptions::default() };
        device.prepare_model(&model, HalVersion::LATEST, options).unwrap()
    };
    let prepared: Vec<_> = (0..5).map(|_| prepare(&one)).collect();
    let bytes = vec![0; 4 << 20];
    let mut request = RequestBuilder::new();
    request.input(&bytes).output(bytes.len());
    let request = request.build().unwrap();
    let execute = |prepared: &Arc<dyn PreparedModel>| {
        let executed = prepared.execute(&request, &ExecutionOptions::default());
        executed.unwrap_or_else(|failed| panic!("{}", failed.error));
    };
    let other = client(20 * MB);
    let of_other = prepare(&other);
    execute(&of_other);
    let kept = other.held(Holding::Memory);
    prepared.iter().chain(&prepared).for_each(execute);
    assert_eq!(other.held(Holding::Memory), kept, "what another client has is its own");
}

/// A model with weights of 4 MB that are packed for each length of its inputs.
fn weighty() -> Model {
    let mut builder = nnhal_hal::ModelBuilder::new();
    let pool = builder.pool(nnhal_hal::Memory::allocate(4 << 20).unwrap());
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[0, 1024]));
    let none = graph.scalar_i32(0);
    let bias = graph.constant(floats(&[1024]), &[0.0_f32; 1024]);
    let filter = graph.constant_in_pool(floats(&[1024, 1024]), pool, 0, 4 << 20);
    let y = graph.operation(O::FullyConnected, [x, filter, bias, none], floats(&[0, 1024]));
    graph.output(y);
    builder.build(graph).unwrap()
}

#[test]
fn plans_of_open_shapes_make_room_for_other_models() {
    let rows = |count: u32| {
        let bytes = vec![0; 4096 * count as usize];
        let mut request = RequestBuilder::new();
        request.input_shaped(&bytes, &[count, 1024]).output(bytes.len());
        request.build().unwrap()
    };
    let model = weighty();
    let client = |memory| Client::new("test", ClientLimits { memory, ..ClientLimits::default() });
    let device = nnhal_cpu::device(Settings::default());
    let prepare = |client: &Client| {
        let options = PrepareOptions { client: client.clone(), ..PrepareOptions::default() };
        device.prepare_model(&model, HalVersion::LATEST, options)
    };
    let execute = |prepared: &Arc<dyn PreparedModel>, count| {
        let executed = prepared.execute(&rows(count), &ExecutionOptions::default());
        executed.unwrap_or_else(|failed| panic!("{}", failed.error));
    };
    // What one model takes before it has a plan, and with one.
    let alone = client(u64::MAX);
    let prepared = prepare(&alone).unwrap();
    let without = alone.held(Holding::Memory);
    execute(&prepared, 4);
    let with = alone.held(Holding::Memory);
    assert!(with > without, "{without} {with}: a plan takes memory");
    drop(prepared);

    // Four models, of which two can have a plan at a time.
    let together = client(4 * without + (with - without) * 5 / 2);
    let models: Vec<_> = (0..4).map(|_| prepare(&together).unwrap()).collect();
    for count in [4, 4, 3] {
        models.iter().for_each(|prepared| execute(prepared, count));
    }
    // What was used last is there still.
    let before = together.held(Holding::Memory);
    execute(&models[3], 3);
    assert_eq!(together.held(Holding::Memory), before);
}

#[test]
fn executions_let_go_of_what_earlier_ones_kept() {
    // A plan for each length, whose values take 8 MB.
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", floats(&[0]));
    let beta = graph.scalar_f32(1.0);
    let y = graph.operation(O::Softmax, [x, beta], floats(&[0]));
    graph.output(y);
    let prepared = prepare(&graph.into_model().unwrap(), 20 * MB).unwrap();
    for length in (0..20_u32).map(|index| (1 << 20) + index) {
        let mut request = RequestBuilder::new();
        let bytes = vec![0; 4 * length as usize];
        request.input_shaped(&bytes, &[length]).output(bytes.len());
        let request = request.build().unwrap();
        let executed = prepared.execute(&request, &ExecutionOptions::default());
        executed.unwrap_or_else(|failed| panic!("{length}: {}", failed.error));
    }
}
