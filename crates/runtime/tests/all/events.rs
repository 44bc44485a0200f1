//! Executions behind dependencies, and what waits for them.

use crate::support::scripted::{Scripted, count};
use crate::support::{bytes, int32, operation, tensor};
use nnhal_hal::OperationType::{Add, Equal, Relu, Tanh, While};
use nnhal_hal::{OperandType, SyncFence};
use nnhal_runtime::{
    Compilation, CompilationBuilder, Devices, DurationCode, Event, Execution, Memory, Model,
    ModelBuilder, OperandDescription, OutputBuffer, Result, ResultCode,
};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

fn code<T: std::fmt::Debug>(result: Result<T>) -> ResultCode {
    result.unwrap_err().code()
}

/// y = relu(x), of `length` numbers; z = tanh(y), unless there is only one operation.
fn model(devices: &Devices, length: u32, operations: usize) -> Model {
    let mut builder = ModelBuilder::new(devices);
    let [x, y, z] = [(); 3].map(|()| tensor(&mut builder, &[length]));
    operation(&mut builder, Relu, &[x], &[y]).unwrap();
    operation(&mut builder, Tanh, &[y], &[z]).unwrap();
    let outputs = if operations == 1 { [y, z] } else { [z, y] };
    builder.identify_inputs_and_outputs(&[x], &outputs).unwrap();
    builder.finish().unwrap()
}

fn one_device(length: u32) -> Compilation {
    let devices = Devices::new([nnhal_reference::device()]);
    let model = model(&devices, length, 1);
    CompilationBuilder::for_devices(&model, devices.list()).unwrap().finish().unwrap()
}

fn execution(compilation: &Compilation) -> (Execution, OutputBuffer) {
    let execution = Execution::new(compilation);
    execution.set_input(0, None, Some(bytes(&[-1.0, 2.0]))).unwrap();
    let output = OutputBuffer::new(8);
    execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
    execution.set_output(1, None, Some(Arc::new(OutputBuffer::new(8)))).unwrap();
    (execution, output)
}

/// The same in memory, so that the device itself waits for fences.
fn execution_in_memory(compilation: &Compilation) -> (Execution, nnhal_hal::Memory) {
    let execution = Execution::new(compilation);
    let memory = nnhal_hal::Memory::from_bytes(&bytes(&[-1.0, 2.0, 7.0, 7.0, 7.0, 7.0])).unwrap();
    let shared = Memory::from_shared(memory.clone());
    execution.set_input_from_memory(0, None, &shared, 0, 8).unwrap();
    execution.set_output_from_memory(0, None, &shared, 8, 8).unwrap();
    execution.set_output_from_memory(1, None, &shared, 16, 8).unwrap();
    (execution, memory)
}

#[test]
fn an_execution_waits_for_its_dependencies() {
    let compilation = one_device(2);
    for in_memory in [false, true] {
        let (signal, fence) = SyncFence::pair().unwrap();
        let dependency = Event::from_sync_fence_fd(fence.as_fd().try_clone_to_owned().unwrap());
        let execution =
            if in_memory { execution_in_memory(&compilation).0 } else { execution(&compilation).0 };
        execution.set_measure_timing(true).unwrap();
        let event = execution.start_compute_with_dependencies(&[dependency.unwrap()], 0).unwrap();
        let fence = SyncFence::from_fd(event.sync_fence_fd().unwrap()).unwrap();
        let waited = fence.wait(Some(Duration::from_millis(20))).unwrap();
        assert_eq!(waited, nnhal_hal::FenceState::Unsignalled);
        assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState, "it goes on");
        signal.signal();
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let event = event.clone();
                std::thread::spawn(move || event.wait())
            })
            .collect();
        waiting.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        event.wait().unwrap();
        assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [2]);
        let [whole, fenced] = [DurationCode::InDriver, DurationCode::FencedInDriver]
            .map(|code| execution.duration(code).unwrap().unwrap());
        assert!(fenced + Duration::from_millis(15) < whole, "{fenced:?} of {whole:?}");
    }
}

#[test]
fn an_execution_behind_dependencies_has_ended_once_its_event_was_waited_for() {
    let compilation = one_device(2);
    for in_memory in [false, true] {
        let execution =
            if in_memory { execution_in_memory(&compilation).0 } else { execution(&compilation).0 };
        execution.set_reusable(true).unwrap();
        execution.set_measure_timing(true).unwrap();
        let event = execution.start_compute_with_dependencies(&[], 0).unwrap();
        let fence = SyncFence::from_fd(event.sync_fence_fd().unwrap()).unwrap();
        let signalled = fence.wait(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(signalled, nnhal_hal::FenceState::Signalled, "it has computed");
        assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState);
        assert_eq!(code(execution.duration(DurationCode::InDriver)), ResultCode::BadState);
        assert_eq!(code(execution.compute()), ResultCode::BadState);
        assert!(execution.is_computing());
        event.wait().unwrap();
        assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [2]);
        execution.duration(DurationCode::InDriver).unwrap();
        execution.compute().unwrap();
        event.wait().unwrap();
    }
}

#[test]
fn values_pass_from_event_to_event() {
    let compilation = one_device(2);
    let (first, output) = execution(&compilation);
    let event = first.start_compute_with_dependencies(&[], 0).unwrap();
    let plain = execution(&compilation).0.start_compute().unwrap();
    assert_eq!(code(plain.sync_fence_fd()), ResultCode::BadData);
    let (second, memory) = execution_in_memory(&compilation);
    let event = second.start_compute_with_dependencies(&[event, plain], 0).unwrap();
    event.wait().unwrap();
    assert_eq!(output.to_f32(), [0.0, 2.0]);
    let found = memory.view().unwrap().read_to_vec(8, 8).unwrap();
    assert_eq!(found, *bytes(&[0.0, 2.0]));
}

#[test]
fn a_dependency_that_fails_fails_the_execution() {
    let compilation = one_device(2);
    let (signal, fence) = SyncFence::pair().unwrap();
    let dependency = Event::from_sync_fence_fd(fence.as_fd().try_clone_to_owned().unwrap());
    let (execution, _) = execution(&compilation);
    let event = execution.start_compute_with_dependencies(&[dependency.unwrap()], 0).unwrap();
    drop(signal);
    assert_eq!(code(event.wait()), ResultCode::OpFailed);
    assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState);
}

#[test]
fn a_dependency_that_has_failed_fails_the_call() {
    let compilation = one_device(2);
    for in_memory in [false, true] {
        let (signal, fence) = SyncFence::pair().unwrap();
        let dependency = Event::from_sync_fence_fd(fence.as_fd().try_clone_to_owned().unwrap());
        drop(signal);
        let execution =
            if in_memory { execution_in_memory(&compilation).0 } else { execution(&compilation).0 };
        let refused = execution.start_compute_with_dependencies(&[dependency.unwrap()], 0);
        assert_eq!(code(refused), ResultCode::OpFailed);
        assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState);
        assert_eq!(code(execution.compute()), ResultCode::BadState, "it has ended");
    }
}

/// A loop over one number that ends by its timeout.
fn endless_loop() -> Compilation {
    let devices = Devices::new([nnhal_reference::device()]);
    let part = |result: &dyn Fn(&mut ModelBuilder, u32) -> u32| {
        let mut builder = ModelBuilder::new(&devices);
        let x = tensor(&mut builder, &[1]);
        let result = result(&mut builder, x);
        builder.identify_inputs_and_outputs(&[x], &[result]).unwrap();
        builder.finish().unwrap()
    };
    let condition = part(&|builder, x| {
        let described = OperandDescription::tensor(OperandType::TensorBool8, [1]);
        let same = builder.add_operand(&described).unwrap();
        operation(builder, Equal, &[x, x], &[same]).unwrap();
        same
    });
    let body = part(&|builder, x| {
        let (none, sum) = (int32(builder, 0), tensor(builder, &[1]));
        operation(builder, Add, &[x, x, none], &[sum]).unwrap();
        sum
    });
    let model = part(&|builder, x| {
        let subgraph = OperandDescription::scalar(OperandType::Subgraph);
        let parts = [&condition, &body].map(|part| {
            let operand = builder.add_operand(&subgraph).unwrap();
            builder.set_operand_value_from_model(operand, part).unwrap();
            operand
        });
        let end = tensor(builder, &[1]);
        operation(builder, While, &[parts[0], parts[1], x], &[end]).unwrap();
        end
    });
    CompilationBuilder::for_devices(&model, devices.list()).unwrap().finish().unwrap()
}

/// The loop, in memory.
fn looping(compilation: &Compilation) -> Execution {
    let execution = Execution::new(compilation);
    let memory = nnhal_hal::Memory::from_bytes(&bytes(&[0.0, 7.0])).unwrap();
    let shared = Memory::from_shared(memory);
    execution.set_input_from_memory(0, None, &shared, 0, 4).unwrap();
    execution.set_output_from_memory(0, None, &shared, 4, 4).unwrap();
    execution.set_loop_timeout(20_000_000).unwrap();
    execution
}

/// `NeuralNetworks.h`: if a dependency does not complete normally, the execution fails.
#[test]
fn what_depends_on_a_loop_that_takes_too_long_fails() {
    let (compilation, endless) = (one_device(2), endless_loop());
    for in_memory in [false, true] {
        let dependency = looping(&endless).start_compute_with_dependencies(&[], 0).unwrap();
        let execution =
            if in_memory { execution_in_memory(&compilation).0 } else { execution(&compilation).0 };
        let event = execution.start_compute_with_dependencies(std::slice::from_ref(&dependency), 0);
        event.unwrap().wait().unwrap_err();
        assert!(code(dependency.wait()).is_missed_deadline());
    }
}

#[test]
fn a_dependency_without_a_fence_that_fails_fails_the_call_and_ends_the_execution() {
    let (compilation, endless) = (one_device(2), endless_loop());
    let dependency = looping(&endless).start_compute().unwrap();
    let (execution, _) = execution(&compilation);
    let refused = execution.start_compute_with_dependencies(&[dependency], 0);
    assert!(code(refused).is_missed_deadline());
    assert_eq!(code(execution.compute()), ResultCode::BadState, "it has ended");
}

#[test]
fn a_timeout_after_dependencies_is_kept() {
    let compilation = one_device(2);
    let (execution, _) = execution(&compilation);
    let event = execution.start_compute_with_dependencies(&[], 1).unwrap();
    assert!(code(event.wait()).is_missed_deadline());
    let for_all = CompilationBuilder::new(compilation.model()).finish().unwrap();
    let (execution, _) = self::execution(&for_all);
    let refused = execution.start_compute_with_dependencies(&[], 1);
    assert_eq!(code(refused), ResultCode::BadData);
    assert_eq!(code(execution.compute()), ResultCode::BadState, "it has started, and failed");
}

#[test]
fn outputs_behind_dependencies_have_known_dimensions() {
    let devices = Devices::new([nnhal_reference::device()]);
    let compilation = CompilationBuilder::new(&model(&devices, 0, 1)).finish().unwrap();
    let pair = OperandDescription::tensor_float32([2]);
    let execution = Execution::new(&compilation);
    execution.set_input(0, Some(&pair), Some(bytes(&[-1.0, 2.0]))).unwrap();
    execution.set_output(0, Some(&pair), Some(Arc::new(OutputBuffer::new(8)))).unwrap();
    execution.set_output(1, None, Some(Arc::new(OutputBuffer::new(8)))).unwrap();
    let refused = execution.start_compute_with_dependencies(&[], 0);
    assert_eq!(code(refused), ResultCode::BadData);
}

#[test]
fn several_devices_compute_behind_dependencies() {
    let device = Scripted::new("test-tanh", |_, operation| operation == Tanh);
    let faults = device.faults();
    let devices =
        Devices::new([Arc::new(device) as Arc<dyn nnhal_hal::Device>, nnhal_reference::device()]);
    let compilation = CompilationBuilder::new(&model(&devices, 2, 2)).finish().unwrap();
    assert_eq!(compilation.steps().len(), 2);
    let (execution, output) = execution(&compilation);
    execution.start_compute_with_dependencies(&[], 0).unwrap().wait().unwrap();
    assert_eq!(output.to_f32()[0], 0.0);
    assert!((output.to_f32()[1] - 2.0_f32.tanh()).abs() < 1e-6);
    assert_eq!(count(&faults.executions), 1);
    assert_eq!(count(&faults.fenced), 0);
}

#[test]
fn a_device_that_fails_to_launch_is_replaced() {
    let device = Scripted::new("test-all", |_, _| true);
    let faults = device.faults();
    let devices =
        Devices::new([Arc::new(device) as Arc<dyn nnhal_hal::Device>, nnhal_reference::device()]);
    let compilation = CompilationBuilder::new(&model(&devices, 2, 1)).finish().unwrap();
    let (execution, memory) = execution_in_memory(&compilation);
    faults.failing_executions.store(2, std::sync::atomic::Ordering::Relaxed);
    execution.start_compute_with_dependencies(&[], 0).unwrap().wait().unwrap();
    assert_eq!(count(&faults.fenced), 1);
    let found = memory.view().unwrap().read_to_vec(8, 8).unwrap();
    assert_eq!(found, *bytes(&[0.0, 2.0]));
}
