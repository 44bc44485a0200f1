//! Memory: parts of files, buffers of devices, copies between them.

use crate::support::scripted::Scripted;
use crate::support::{bytes, int32, operation, tensor};
use nnhal_hal::OperationType::{Add, Relu};
use nnhal_hal::memory::Protection;
use nnhal_runtime::{
    Burst, Compilation, CompilationBuilder, Devices, Execution, Memory, MemoryDescription, Model,
    ModelBuilder, OperandDescription, OutputBuffer, Result, ResultCode,
};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

fn code<T: std::fmt::Debug>(result: Result<T>) -> ResultCode {
    result.unwrap_err().code()
}

fn file(content: &[u8]) -> OwnedFd {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file.into()
}

/// y = relu(x), whose length may be open.
fn relu(devices: &Devices, length: u32) -> Model {
    let mut builder = ModelBuilder::new(devices);
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[length]));
    operation(&mut builder, Relu, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    builder.finish().unwrap()
}

fn reference_only() -> Devices {
    Devices::new([nnhal_reference::device()])
}

fn compile(model: &Model) -> Compilation {
    let devices = model.devices().list();
    CompilationBuilder::for_devices(model, devices).unwrap().finish().unwrap()
}

/// Memory for input 0 and for output 0 of a compilation.
fn allocate(compilation: &Compilation, dimensions: &[u32]) -> Result<Memory> {
    let mut description = MemoryDescription::new();
    description.add_input_role(compilation, 0, 1.0)?;
    description.add_output_role(compilation, 0, 0.5)?;
    description.set_dimensions(dimensions)?;
    description.finish()?;
    description.allocate()
}

fn shared(values: &[f32]) -> Memory {
    Memory::from_shared(nnhal_hal::Memory::from_bytes(&bytes(values)).unwrap())
}

fn floats(memory: &Memory) -> Vec<f32> {
    let memory = memory.shared().unwrap();
    let bytes = memory.view().unwrap().read_to_vec(0, memory.size()).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

#[test]
fn parts_of_files_are_inputs_constants_and_outputs() {
    let read = Protection::READ.bits();
    let both = Protection::READ_WRITE.bits();
    let devices = reference_only();
    let content = bytes(&[9.0, 1.0, 2.0, 3.0, 4.0]);
    let memory = Memory::from_fd(file(&content), read, 4, 16).unwrap();
    let mut builder = ModelBuilder::new(&devices);
    let [x, constant, y] = [(); 3].map(|()| tensor(&mut builder, &[2]));
    let none = int32(&mut builder, 0);
    assert_eq!(
        code(builder.set_operand_value_from_memory(constant, &memory, 12, 8)),
        ResultCode::BadData
    );
    assert_eq!(
        code(builder.set_operand_value_from_memory(constant, &memory, 0, 4)),
        ResultCode::BadData
    );
    builder.set_operand_value_from_memory(constant, &memory, 8, 8).unwrap();
    operation(&mut builder, Add, &[x, constant, none], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let compilation = compile(&builder.finish().unwrap());
    let execution = Execution::new(&compilation);
    assert_eq!(code(execution.set_input_from_memory(0, None, &memory, 0, 0)), ResultCode::BadData);
    assert_eq!(code(execution.set_input_from_memory(0, None, &memory, 12, 8)), ResultCode::BadData);
    execution.set_input_from_memory(0, None, &memory, 0, 8).unwrap();
    let result = file(&[0; 12]);
    let output = Memory::from_fd(result.try_clone().unwrap(), both, 0, 12).unwrap();
    execution.set_output_from_memory(0, None, &output, 4, 8).unwrap();
    execution.compute().unwrap();
    assert_eq!(floats(&output), [0.0, 4.0, 6.0]);
}

#[test]
fn files_must_be_long_enough_and_allow_what_is_asked() {
    let both = Protection::READ_WRITE.bits();
    // That a file is long enough is looked at when the memory is used, as Android's runtime does it.
    let devices = reference_only();
    let compilation = compile(&relu(&devices, 2));
    for (offset, size) in [(0, 9), (1, 8), (8, 1), (100, 8)] {
        let short = Memory::from_fd(file(&[0; 8]), both, offset, size).unwrap();
        let length = size.min(8);
        if length == 8 {
            // No device can do what it is a constant of.
            let mut builder = ModelBuilder::new(&devices);
            let [x, constant, y] = [(); 3].map(|()| tensor(&mut builder, &[2]));
            let none = int32(&mut builder, 0);
            builder.set_operand_value_from_memory(constant, &short, 0, 8).unwrap();
            operation(&mut builder, Add, &[x, constant, none], &[y]).unwrap();
            builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
            let model = builder.finish().unwrap();
            let mut chosen = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
            assert_eq!(code(chosen.finish()), ResultCode::BadData, "{size} at {offset}");
            for is_input in [true, false] {
                let execution = Execution::new(&compilation);
                let other = shared(&[1.0, 2.0]);
                let [from, to] = if is_input { [&short, &other] } else { [&other, &short] };
                execution.set_input_from_memory(0, None, from, 0, 8).unwrap();
                execution.set_output_from_memory(0, None, to, 0, 8).unwrap();
                assert_eq!(code(execution.compute()), ResultCode::BadData, "{size} at {offset}");
            }
        }
        let whole = Memory::from_fd(file(&[0; 9]), both, 0, size).unwrap();
        assert_eq!(code(Memory::copy(&short, &whole)), ResultCode::BadData);
        assert_eq!(code(Memory::copy(&whole, &short)), ResultCode::BadData);
    }
    // No file is as long as this.
    let endless = Memory::from_fd(file(&[0; 4]), both, usize::MAX, 1);
    assert_eq!(code(endless), ResultCode::BadData);
    assert_eq!(code(Memory::from_fd(file(&[0; 4]), both, 0, 0)), ResultCode::BadData);
    assert_eq!(code(Memory::from_fd(file(&[0; 4]), 8, 0, 4)), ResultCode::BadData);
    let read_only = std::fs::File::open("/proc/self/exe").unwrap();
    assert_eq!(code(Memory::from_fd(read_only.into(), both, 0, 4)), ResultCode::BadData);
}

#[test]
fn a_device_keeps_values_between_executions() {
    let devices = reference_only();
    let model = relu(&devices, 2);
    let compilation = compile(&model);
    let [first, second] = [(); 2].map(|()| allocate(&compilation, &[]).unwrap());
    assert!(first.is_device_memory());
    let run = |from: &Memory, to: &Memory| {
        let execution = Execution::new(&compilation);
        execution.set_input_from_memory(0, None, from, 0, 0)?;
        execution.set_output_from_memory(0, None, to, 0, 0)?;
        execution.compute()
    };
    assert_eq!(code(run(&first, &second)), ResultCode::OpFailed, "it holds nothing yet");
    Memory::copy(&shared(&[-1.0, 2.0]), &first).unwrap();
    run(&first, &second).unwrap();
    let out = shared(&[7.0, 7.0]);
    Memory::copy(&second, &out).unwrap();
    assert_eq!(floats(&out), [0.0, 2.0]);
    // Fenced, and with values that come only with the dependency.
    let third = allocate(&compilation, &[]).unwrap();
    let start = |from: &Memory, to: &Memory, after: &[nnhal_runtime::Event]| {
        let execution = Execution::new(&compilation);
        execution.set_input_from_memory(0, None, from, 0, 0).unwrap();
        execution.set_output_from_memory(0, None, to, 0, 0).unwrap();
        execution.start_compute_with_dependencies(after, 0)
    };
    let one = start(&first, &second, &[]).unwrap();
    let two = start(&second, &third, &[one]).unwrap();
    two.wait().unwrap();
    Memory::copy(&third, &out).unwrap();
    assert_eq!(floats(&out), [0.0, 2.0]);
    // The same with bytes of the caller behind it, while no one has waited for the first.
    let fourth = allocate(&compilation, &[]).unwrap();
    let one = start(&third, &fourth, &[]).unwrap();
    let execution = Execution::new(&compilation);
    execution.set_input_from_memory(0, None, &fourth, 0, 0).unwrap();
    let output = OutputBuffer::new(8);
    execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
    execution.start_compute_with_dependencies(&[one], 0).unwrap().wait().unwrap();
    assert_eq!(output.to_f32(), [0.0, 2.0]);
    // In a burst, whose channel does not know buffers.
    let execution = Execution::new(&compilation);
    execution.set_input_from_memory(0, None, &third, 0, 0).unwrap();
    execution.set_output_from_memory(0, None, &second, 0, 0).unwrap();
    execution.burst_compute(&Burst::new(&compilation)).unwrap();
    Memory::copy(&second, &out).unwrap();
    assert_eq!(floats(&out), [0.0, 2.0]);
}

#[test]
fn device_memory_learns_its_dimensions() {
    let devices = reference_only();
    let compilation = compile(&relu(&devices, 0));
    let memory = allocate(&compilation, &[]).unwrap();
    let pair = OperandDescription::tensor_float32([2]);
    let execution = Execution::new(&compilation);
    execution.set_input(0, Some(&pair), Some(bytes(&[-1.0, 2.0]))).unwrap();
    execution.set_output_from_memory(0, None, &memory, 0, 0).unwrap();
    execution.compute().unwrap();
    assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [2]);
    let read = |description: &OperandDescription, size| {
        let execution = Execution::new(&compilation);
        execution.set_input_from_memory(0, Some(description), &memory, 0, 0)?;
        let output = OutputBuffer::new(size);
        execution.set_output(0, None, Some(Arc::new(output.clone())))?;
        execution.compute()?;
        Ok(output.to_f32())
    };
    assert_eq!(read(&pair, 8).unwrap(), [0.0, 2.0]);
    let three = OperandDescription::tensor_float32([3]);
    assert_eq!(code(read(&three, 12)), ResultCode::OpFailed);
}

#[test]
fn descriptions_are_checked() {
    let devices = reference_only();
    let compilation = compile(&relu(&devices, 2));
    let mut description = MemoryDescription::new();
    assert_eq!(code(description.allocate()), ResultCode::BadState);
    assert_eq!(code(description.finish()), ResultCode::BadData, "no role");
    assert_eq!(code(description.add_input_role(&compilation, 1, 1.0)), ResultCode::BadData);
    for frequency in [0.0, -1.0, 1.5, f32::NAN] {
        let refused = description.add_input_role(&compilation, 0, frequency);
        assert_eq!(code(refused), ResultCode::BadData, "{frequency}");
    }
    description.add_input_role(&compilation, 0, 1.0).unwrap();
    assert_eq!(code(description.add_input_role(&compilation, 0, 1.0)), ResultCode::BadData);
    assert_eq!(code(description.set_dimensions(&[3])), ResultCode::BadData);
    assert_eq!(code(description.set_dimensions(&[2, 1])), ResultCode::BadData);
    let other = compile(&relu(&devices, 3));
    assert_eq!(code(description.add_output_role(&other, 0, 1.0)), ResultCode::BadData);
    description.finish().unwrap();
    assert_eq!(code(description.finish()), ResultCode::BadState);
    assert_eq!(code(description.set_dimensions(&[2])), ResultCode::BadState);
    assert_eq!(code(description.add_output_role(&compilation, 0, 1.0)), ResultCode::BadState);
    let memory = description.allocate().unwrap();
    let execution = Execution::new(&compilation);
    assert_eq!(
        code(execution.set_output_from_memory(0, None, &memory, 0, 0)),
        ResultCode::BadData,
        "made for an input"
    );
    assert_eq!(
        code(execution.set_input_from_memory(0, None, &memory, 0, 8)),
        ResultCode::BadData,
        "not as a whole"
    );
    let mut builder = ModelBuilder::new(&devices);
    let x = tensor(&mut builder, &[2]);
    assert_eq!(code(builder.set_operand_value_from_memory(x, &memory, 0, 8)), ResultCode::BadData);
}

#[test]
fn copies_are_checked() {
    let devices = reference_only();
    let compilation = compile(&relu(&devices, 2));
    let memory = allocate(&compilation, &[]).unwrap();
    let [pair, three] = [&[1.0, 2.0][..], &[1.0, 2.0, 3.0]].map(shared);
    assert_eq!(code(Memory::copy(&memory, &pair)), ResultCode::BadData, "holds nothing");
    assert_eq!(code(Memory::copy(&three, &pair)), ResultCode::BadData);
    assert_eq!(code(Memory::copy(&three, &memory)), ResultCode::BadData);
    Memory::copy(&pair, &memory).unwrap();
    Memory::copy(&memory, &memory).unwrap();
    let second = allocate(&compilation, &[]).unwrap();
    Memory::copy(&memory, &second).unwrap();
    assert_eq!(code(Memory::copy(&second, &three)), ResultCode::BadData);
    let out = shared(&[0.0, 0.0]);
    Memory::copy(&second, &out).unwrap();
    assert_eq!(floats(&out), [1.0, 2.0]);
    // What could not be copied into holds nothing any more.
    assert_eq!(code(Memory::copy(&three, &second)), ResultCode::BadData);
    assert_eq!(code(Memory::copy(&second, &out)), ResultCode::BadData);
}

#[test]
fn memory_for_several_devices_is_shared() {
    let devices = Devices::new([
        Arc::new(Scripted::new("test-adder", |_, operation| operation == Add))
            as Arc<dyn nnhal_hal::Device>,
        nnhal_reference::device(),
    ]);
    let mut builder = ModelBuilder::new(&devices);
    let [x, a, y] = [(); 3].map(|()| tensor(&mut builder, &[2]));
    let none = int32(&mut builder, 0);
    operation(&mut builder, Add, &[x, x, none], &[a]).unwrap();
    operation(&mut builder, nnhal_hal::OperationType::Mul, &[a, x, none], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let model = builder.finish().unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let mut description = MemoryDescription::new();
    description.add_input_role(&compilation, 0, 1.0).unwrap();
    description.finish().unwrap();
    let input = description.allocate().unwrap();
    assert!(!input.is_device_memory(), "both devices read it");
    Memory::copy(&shared(&[3.0, 5.0]), &input).unwrap();
    let mut description = MemoryDescription::new();
    description.add_output_role(&compilation, 0, 1.0).unwrap();
    description.finish().unwrap();
    let output = description.allocate().unwrap();
    assert!(output.is_device_memory(), "only the last device writes it");
    let execution = Execution::new(&compilation);
    execution.set_input_from_memory(0, None, &input, 0, 0).unwrap();
    execution.set_output_from_memory(0, None, &output, 0, 0).unwrap();
    execution.compute().unwrap();
    let out = shared(&[0.0, 0.0]);
    Memory::copy(&output, &out).unwrap();
    assert_eq!(floats(&out), [18.0, 50.0]);

    let mut chosen = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
    let chosen = chosen.finish().unwrap();
    let mut description = MemoryDescription::new();
    description.add_input_role(&chosen, 0, 1.0).unwrap();
    description.finish().unwrap();
    assert_eq!(code(description.allocate()), ResultCode::OpFailed, "no fallback for chosen ones");
}

#[test]
fn a_buffer_is_copied_when_its_device_fails() {
    let device = Scripted::new("test-all", |_, _| true);
    let faults = device.faults();
    let devices =
        Devices::new([Arc::new(device) as Arc<dyn nnhal_hal::Device>, nnhal_reference::device()]);
    let model = relu(&devices, 2);
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let [input, output] = [(); 2].map(|()| allocate(&compilation, &[]).unwrap());
    assert!(input.is_device_memory());
    Memory::copy(&shared(&[-1.0, 2.0]), &input).unwrap();
    faults.failing_executions.store(1, std::sync::atomic::Ordering::Relaxed);
    let execution = Execution::new(&compilation);
    execution.set_input_from_memory(0, None, &input, 0, 0).unwrap();
    execution.set_output_from_memory(0, None, &output, 0, 0).unwrap();
    execution.compute().unwrap();
    let out = shared(&[0.0, 0.0]);
    Memory::copy(&output, &out).unwrap();
    assert_eq!(floats(&out), [0.0, 2.0]);
}
