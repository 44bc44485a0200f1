//! What an execution costs beyond its computation: the same request on the device itself and through
//! the runtime.
//!
//!     cargo bench -p nnhal-runtime

use divan::Bencher;
use nnhal_hal::{
    ExecutionOptions, HalVersion, OperationType, PrepareOptions, PreparedModel, Request,
    RequestBuilder,
};
use nnhal_runtime::{
    Burst, Compilation, CompilationBuilder, Devices, Execution, Memory, ModelBuilder,
    OperandDescription, OutputBuffer,
};
use std::sync::Arc;

fn main() {
    divan::main();
}

/// y = relu(x), of `length` numbers.
fn compile(length: u32) -> Compilation {
    let devices = Devices::new([nnhal_reference::device()]);
    let mut builder = ModelBuilder::new(&devices);
    let description = OperandDescription::tensor_float32([length]);
    let [x, y] = [(); 2].map(|()| builder.add_operand(&description).expect("an operand"));
    let code = OperationType::Relu.code().cast_signed();
    builder.add_operation(code, &[x], &[y]).expect("an operation");
    builder.identify_inputs_and_outputs(&[x], &[y]).expect("arguments");
    let model = builder.finish().expect("a valid model");
    let devices = model.devices().list().to_vec();
    let mut builder = CompilationBuilder::for_devices(&model, &devices).expect("devices");
    builder.finish().expect("a compilation")
}

fn prepare(length: u32) -> (Arc<dyn PreparedModel>, Request) {
    let model = compile(length).model().hal().clone();
    let device = nnhal_reference::device();
    let prepared = device.prepare_model(&model, HalVersion::LATEST, PrepareOptions::default());
    let bytes = length as usize * 4;
    let request = RequestBuilder::new().input(&vec![0; bytes]).output(bytes).build();
    (prepared.expect("a prepared model"), request.expect("a request"))
}

fn set(execution: &Execution, bytes: usize) {
    execution.set_input(0, None, Some(Arc::new(vec![0; bytes]))).expect("an input");
    execution.set_output(0, None, Some(Arc::new(OutputBuffer::new(bytes)))).expect("an output");
}

const LENGTHS: [u32; 2] = [1, 1024];

/// The computation itself: a request whose memory is there.
#[divan::bench(args = LENGTHS)]
fn device_alone(bencher: Bencher<'_, '_>, length: u32) {
    let (prepared, request) = prepare(length);
    let options = ExecutionOptions::default();
    bencher.bench(|| prepared.execute(&request, &options).expect("an execution"));
}

#[divan::bench(args = LENGTHS)]
fn reusable_execution(bencher: Bencher<'_, '_>, length: u32) {
    let execution = Execution::new(&compile(length));
    execution.set_reusable(true).expect("a state");
    set(&execution, length as usize * 4);
    bencher.bench(|| execution.compute().expect("an execution"));
}

/// With making it and giving it its arguments.
#[divan::bench(args = LENGTHS)]
fn new_execution(bencher: Bencher<'_, '_>, length: u32) {
    let compilation = compile(length);
    bencher.bench(|| {
        let execution = Execution::new(&compilation);
        set(&execution, length as usize * 4);
        execution.compute().expect("an execution");
    });
}

#[divan::bench(args = LENGTHS)]
fn in_memory(bencher: Bencher<'_, '_>, length: u32) {
    let bytes = length as usize * 4;
    let memory =
        Memory::from_shared(nnhal_hal::Memory::allocate(2 * bytes as u64).expect("memory"));
    let execution = Execution::new(&compile(length));
    execution.set_reusable(true).expect("a state");
    execution.set_input_from_memory(0, None, &memory, 0, bytes).expect("an input");
    execution.set_output_from_memory(0, None, &memory, bytes, bytes).expect("an output");
    bencher.bench(|| execution.compute().expect("an execution"));
}

#[divan::bench(args = LENGTHS)]
fn burst(bencher: Bencher<'_, '_>, length: u32) {
    let compilation = compile(length);
    let burst = Burst::new(&compilation);
    let execution = Execution::new(&compilation);
    execution.set_reusable(true).expect("a state");
    set(&execution, length as usize * 4);
    bencher.bench(|| execution.burst_compute(&burst).expect("an execution"));
}

#[divan::bench(args = LENGTHS)]
fn asynchronous(bencher: Bencher<'_, '_>, length: u32) {
    let execution = Execution::new(&compile(length));
    execution.set_reusable(true).expect("a state");
    set(&execution, length as usize * 4);
    bencher.bench(|| execution.start_compute().and_then(|event| event.wait()));
}
