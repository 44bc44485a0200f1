//! Models that want more memory than a process has addresses for (`ulimit -v`): an error, and the process
//! goes on.

use nnhal_cpu::Settings;
use nnhal_driver::DriverDevice;
use nnhal_hal::memory::Protection;
use nnhal_hal::{
    Device, ErrorStatus, ExecutionOptions, HalVersion, Memory, Model, ModelBuilder, OperandSpec,
    OperationType as Op, PrepareOptions, Request, RequestBuilder, SubgraphBuilder,
};
use nnhal_reference::ReferenceEngine;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::Command;
use std::sync::Arc;

/// Set in the process whose addresses are limited.
const LIMITED: &str = "NNHAL_TEST_LIMITED_ADDRESSES";

/// Bytes that are left to it.
const LEFT: u64 = 256 << 20;

/// Bytes that models want for a value.
const WANTED: u32 = 1 << 30;

/// A model and a request with this many bytes of output.
type Network = (&'static str, Model, usize);

/// Constants of many bytes, in a file that takes no room.
fn holes() -> Memory {
    let file = tempfile::tempfile().unwrap();
    file.set_len(WANTED.into()).unwrap();
    Memory::from_file(file.into(), Protection::READ, 0, WANTED.into()).unwrap()
}

/// A vector of floats as long as is wanted.
fn long() -> OperandSpec {
    OperandSpec::tensor_float32([WANTED / 4])
}

/// An operation on a float and a constant that is in a file.
fn on_constant(
    operation: Op,
    input: OperandSpec,
    constant: OperandSpec,
    finish: impl FnOnce(&mut SubgraphBuilder) -> Vec<nnhal_hal::OperandId>,
    output: OperandSpec,
) -> Model {
    let mut builder = ModelBuilder::new();
    let pool = builder.pool(holes());
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", input);
    let constant = graph.constant_in_pool(constant, pool, 0, WANTED);
    let inputs: Vec<_> = [x, constant].into_iter().chain(finish(&mut graph)).collect();
    let y = graph.operation(operation, inputs, output);
    graph.output(y);
    builder.build(graph).unwrap()
}

fn networks() -> Vec<Network> {
    let float = || OperandSpec::tensor_float32([1]);
    let tile = {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", float());
        let times = [(WANTED / 4).cast_signed()];
        let times = graph.constant(OperandSpec::tensor_int32([1]), &times);
        let y = graph.operation(Op::Tile, [x, times], long());
        let axes = graph.constant(OperandSpec::tensor_int32([1]), &[0]);
        let keeps_axes = graph.scalar_i32(1);
        let z = graph.operation(Op::Mean, [y, axes, keeps_axes], float());
        graph.output(z);
        graph.into_model().unwrap()
    };
    let none = |graph: &mut SubgraphBuilder| vec![graph.scalar_i32(0)];
    let maximum = |constant, output| {
        on_constant(Op::Maximum, OperandSpec::tensor_float16([1]), constant, |_| vec![], output)
    };
    let half = WANTED / 2;
    let bytes = |lengths: [u32; 2]| OperandSpec::tensor_quant8_asymm(lengths, 0.5, 3);
    let layer = on_constant(
        Op::FullyConnected,
        bytes([1, 1 << 15]),
        bytes([1 << 15, 1 << 15]),
        |graph| {
            let bias = OperandSpec::tensor_int32([1 << 15]).quantized(0.25, 0);
            let bias = graph.constant(bias, &vec![1; 1 << 15]);
            vec![bias, graph.scalar_i32(0)]
        },
        bytes([1, 1 << 15]),
    );
    vec![
        ("a value", tile, 4),
        ("a constant", on_constant(Op::Add, float(), long(), none, long()), 4),
        (
            "a constant of 16 bits",
            maximum(OperandSpec::tensor_float16([half]), OperandSpec::tensor_float16([half])),
            2,
        ),
        ("weights", layer, 1 << 15),
    ]
}

fn devices() -> [Arc<dyn Device>; 2] {
    let settings = Settings { memory_limit: u64::MAX, ..Settings::default() };
    let reference = ReferenceEngine::with_memory_limit(u64::MAX);
    [nnhal_cpu::device(settings), Arc::new(DriverDevice::new(reference).without_cache())]
}

fn request(model: &Model, output: usize) -> Request {
    let mut request = RequestBuilder::new();
    let input = &model.main.operands[model.main.inputs[0] as usize];
    let elements: u32 = input.dimensions.iter().product();
    let size = input.operand_type.element_size().expect("a tensor");
    request.input(&vec![1; (elements * size) as usize]).output(output);
    request.build().unwrap()
}

/// Prepares and runs a model.
fn run(device: &dyn Device, model: &Model, output: usize) -> Result<(), nnhal_hal::Error> {
    let prepared = device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default())?;
    let executed = prepared.execute(&request(model, output), &ExecutionOptions::default());
    executed.map(|_| ()).map_err(|failed| failed.error)
}

/// Bytes of addresses that this process has taken.
fn taken() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = pages.split(' ').next().unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

#[test]
fn what_there_are_no_addresses_for_is_an_error() {
    if std::env::var_os(LIMITED).is_none() {
        let this = std::env::current_exe().unwrap();
        let mut limited = Command::new(this);
        limited.args(["what_there_are_no_addresses_for_is_an_error", "--exact", "--nocapture"]);
        let output = limited.env(LIMITED, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", output.status);
        assert!(!said.contains("panicked"), "{said}");
        return;
    }
    let (devices, networks) = (devices(), networks());
    let small = || {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", OperandSpec::tensor_float32([1]));
        let y = graph.operation(Op::Tanh, [x], OperandSpec::tensor_float32([1]));
        graph.output(y);
        graph.into_model().unwrap()
    };
    // Threads are there before addresses are few.
    for device in &devices {
        run(&**device, &small(), 4).unwrap();
    }
    let limit = Rlimit { current: Some(taken() + LEFT), ..getrlimit(Resource::As) };
    setrlimit(Resource::As, limit).unwrap();
    for (what, model, output) in &networks {
        for device in &devices {
            let error = run(&**device, model, *output).expect_err(what);
            let status = error.status();
            assert!(
                matches!(
                    status,
                    ErrorStatus::ResourceExhaustedTransient
                        | ErrorStatus::ResourceExhaustedPersistent
                ),
                "{what}, {}: {error}",
                device.name()
            );
            run(&**device, &small(), 4).unwrap();
        }
    }
}
