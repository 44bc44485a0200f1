//! IF and WHILE, and above all loops over operands of unknown size, which no device is given.

use crate::support::{bytes, int32, operation, tensor};
use nnhal_hal::OperationType::{Add, Concatenation, If, Less, ReduceSum, While};
use nnhal_hal::{OperandType, OperationType};
use nnhal_runtime::{
    CompilationBuilder, Devices, Execution, Model, ModelBuilder, OperandDescription, OutputBuffer,
    ResultCode,
};
use std::sync::Arc;

fn describe(operand_type: OperandType, dimensions: &[u32]) -> OperandDescription {
    OperandDescription::tensor(operand_type, dimensions)
}

/// Whether the sum of a list is below 10.
fn condition(devices: &Devices) -> Model {
    let mut builder = ModelBuilder::new(devices);
    let list = tensor(&mut builder, &[0]);
    let axis = builder.add_operand(&describe(OperandType::TensorInt32, &[1])).unwrap();
    builder.set_operand_value(axis, &0_i32.to_le_bytes()).unwrap();
    let keep = builder.add_operand(&OperandDescription::scalar(OperandType::Bool)).unwrap();
    builder.set_operand_value(keep, &[1]).unwrap();
    let sum = tensor(&mut builder, &[1]);
    let limit = tensor(&mut builder, &[1]);
    builder.set_operand_value(limit, &10.0_f32.to_le_bytes()).unwrap();
    let below = builder.add_operand(&describe(OperandType::TensorBool8, &[1])).unwrap();
    operation(&mut builder, ReduceSum, &[list, axis, keep], &[sum]).unwrap();
    operation(&mut builder, Less, &[sum, limit], &[below]).unwrap();
    builder.identify_inputs_and_outputs(&[list], &[below]).unwrap();
    builder.finish().unwrap()
}

/// The list with a 1 appended.
fn body(devices: &Devices) -> Model {
    let mut builder = ModelBuilder::new(devices);
    let list = tensor(&mut builder, &[0]);
    let one = tensor(&mut builder, &[1]);
    builder.set_operand_value(one, &1.0_f32.to_le_bytes()).unwrap();
    let axis = int32(&mut builder, 0);
    let longer = tensor(&mut builder, &[0]);
    operation(&mut builder, Concatenation, &[list, one, axis], &[longer]).unwrap();
    builder.identify_inputs_and_outputs(&[list], &[longer]).unwrap();
    builder.finish().unwrap()
}

fn subgraph(builder: &mut ModelBuilder, model: &Model) -> u32 {
    let operand = builder.add_operand(&OperandDescription::scalar(OperandType::Subgraph)).unwrap();
    builder.set_operand_value_from_model(operand, model).unwrap();
    operand
}

/// Appends ones to a list until its sum is 10 or more, and then adds the result to itself.
fn growing(devices: &Devices, body: &Model) -> Model {
    let mut builder = ModelBuilder::new(devices);
    let [condition, body] = [&condition(devices), body].map(|model| subgraph(&mut builder, model));
    let list = tensor(&mut builder, &[0]);
    let grown = tensor(&mut builder, &[0]);
    let none = int32(&mut builder, 0);
    let doubled = tensor(&mut builder, &[0]);
    operation(&mut builder, While, &[condition, body, list], &[grown]).unwrap();
    operation(&mut builder, Add, &[grown, grown, none], &[doubled]).unwrap();
    builder.identify_inputs_and_outputs(&[list], &[grown, doubled]).unwrap();
    builder.finish().unwrap()
}

#[test]
fn a_loop_over_a_list_that_grows_runs() {
    let devices = Devices::new([nnhal_reference::device()]);
    let model = growing(&devices, &body(&devices));
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let steps = compilation.steps();
    assert_eq!(steps.len(), 2);
    assert!(steps[0].0.is_none(), "the runtime runs the loop itself");
    assert_eq!(model.supported_operations(devices.list()).unwrap(), [true, true]);
    for (given, expected) in [
        (&[4.0, 3.0][..], &[4.0, 3.0, 1.0, 1.0, 1.0][..]),
        (&[9.5], &[9.5, 1.0]),
        (&[20.0, 1.0], &[20.0, 1.0]),
    ] {
        let execution = Execution::new(&compilation);
        let described =
            describe(OperandType::TensorFloat32, &[u32::try_from(given.len()).unwrap()]);
        execution.set_input(0, Some(&described), Some(bytes(given))).unwrap();
        let outputs = [(); 2].map(|()| OutputBuffer::new(64));
        for (index, output) in (0..).zip(&outputs) {
            execution.set_output(index, None, Some(Arc::new(output.clone()))).unwrap();
        }
        execution.compute().unwrap();
        let count = expected.len();
        let length = u32::try_from(count).unwrap();
        assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [length]);
        assert_eq!(outputs[0].to_f32()[..count], *expected);
        let doubled: Vec<f32> = expected.iter().map(|value| value * 2.0).collect();
        assert_eq!(outputs[1].to_f32()[..count], doubled);
    }
}

#[test]
fn a_list_that_grows_beyond_its_buffer_is_reported() {
    let devices = Devices::new([nnhal_reference::device()]);
    let model = growing(&devices, &body(&devices));
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let execution = Execution::new(&compilation);
    let described = describe(OperandType::TensorFloat32, &[1]);
    execution.set_input(0, Some(&described), Some(bytes(&[7.0]))).unwrap();
    execution.set_output(0, None, Some(Arc::new(OutputBuffer::new(4)))).unwrap();
    execution.set_output(1, None, Some(Arc::new(OutputBuffer::new(16)))).unwrap();
    let error = execution.compute().unwrap_err();
    assert_eq!(error.code(), ResultCode::OutputInsufficientSize, "{error}");
    let [grown, doubled] = [0, 1].map(|index| execution.output_dimensions(index).unwrap());
    assert_eq!((grown.dimensions, grown.is_sufficient), (vec![4], false));
    assert_eq!((doubled.dimensions, doubled.is_sufficient), (vec![4], true));
}

#[test]
fn a_loop_that_never_ends_is_broken_off() {
    let devices = Devices::new([nnhal_reference::device()]);
    // The list stays as it is.
    let mut builder = ModelBuilder::new(&devices);
    let list = tensor(&mut builder, &[0]);
    let same = tensor(&mut builder, &[0]);
    operation(&mut builder, OperationType::Relu, &[list], &[same]).unwrap();
    builder.identify_inputs_and_outputs(&[list], &[same]).unwrap();
    let model = growing(&devices, &builder.finish().unwrap());
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let execution = Execution::new(&compilation);
    execution.set_loop_timeout(20_000_000).unwrap();
    let described = describe(OperandType::TensorFloat32, &[1]);
    execution.set_input(0, Some(&described), Some(bytes(&[1.0]))).unwrap();
    for index in 0..2 {
        execution.set_output(index, None, Some(Arc::new(OutputBuffer::new(64)))).unwrap();
    }
    let error = execution.compute().unwrap_err();
    assert!(error.code().is_missed_deadline(), "{error}");
}

#[test]
fn a_loop_inside_a_branch_runs_too() {
    let devices = Devices::new([nnhal_reference::device()]);
    let branch = |inner: &Model| {
        let mut builder = ModelBuilder::new(&devices);
        let [condition, body] =
            [&condition(&devices), inner].map(|model| subgraph(&mut builder, model));
        let list = tensor(&mut builder, &[0]);
        let grown = tensor(&mut builder, &[0]);
        operation(&mut builder, While, &[condition, body, list], &[grown]).unwrap();
        builder.identify_inputs_and_outputs(&[list], &[grown]).unwrap();
        builder.finish().unwrap()
    };
    let (then, otherwise) = (branch(&body(&devices)), body(&devices));
    let mut builder = ModelBuilder::new(&devices);
    let flag = builder.add_operand(&describe(OperandType::TensorBool8, &[1])).unwrap();
    let [then, otherwise] = [&then, &otherwise].map(|model| subgraph(&mut builder, model));
    let list = tensor(&mut builder, &[2]);
    let result = tensor(&mut builder, &[0]);
    operation(&mut builder, If, &[flag, then, otherwise, list], &[result]).unwrap();
    builder.identify_inputs_and_outputs(&[flag, list], &[result]).unwrap();
    let model = builder.finish().unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    for (flag, expected) in [(1, &[4.0, 4.0, 1.0, 1.0][..]), (0, &[4.0, 4.0, 1.0])] {
        let execution = Execution::new(&compilation);
        execution.set_input(0, None, Some(Arc::new(vec![flag]))).unwrap();
        execution.set_input(1, None, Some(bytes(&[4.0, 4.0]))).unwrap();
        let output = OutputBuffer::new(64);
        execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
        execution.start_compute().unwrap().wait().unwrap();
        assert_eq!(output.to_f32()[..expected.len()], *expected);
    }
}

/// A loop of unknown size is at the bottom, so that the runtime runs every branch itself.
#[test]
fn models_are_not_nested_without_end() {
    // What musl's and Android's threads have, and are left with by their callers.
    let stack = if cfg!(debug_assertions) { 512 << 10 } else { 128 << 10 };
    let thread = std::thread::Builder::new().stack_size(stack).spawn(nest_without_end);
    thread.unwrap().join().unwrap();
}

fn nest_without_end() {
    let devices = Devices::new([nnhal_reference::device()]);
    let mut builder = ModelBuilder::new(&devices);
    let [condition, longer] =
        [condition(&devices), body(&devices)].map(|model| subgraph(&mut builder, &model));
    let [list, grown] = [(); 2].map(|()| tensor(&mut builder, &[0]));
    operation(&mut builder, While, &[condition, longer, list], &[grown]).unwrap();
    builder.identify_inputs_and_outputs(&[list], &[grown]).unwrap();
    let mut inner = builder.finish().unwrap();
    let mut depth = 2;
    let refused = loop {
        let mut builder = ModelBuilder::new(&devices);
        let flag = builder.add_operand(&describe(OperandType::TensorBool8, &[1])).unwrap();
        builder.set_operand_value(flag, &[1]).unwrap();
        let [then, otherwise] = [(); 2].map(|()| subgraph(&mut builder, &inner));
        let [list, result] = [(); 2].map(|()| tensor(&mut builder, &[0]));
        operation(&mut builder, If, &[flag, then, otherwise, list], &[result]).unwrap();
        builder.identify_inputs_and_outputs(&[list], &[result]).unwrap();
        match builder.finish() {
            Ok(model) => inner = model,
            Err(error) => break error,
        }
        depth += 1;
    };
    assert_eq!((refused.code(), depth), (ResultCode::BadData, 32));
    // The deepest that there can be runs.
    assert_eq!(inner.supported_operations(devices.list()).unwrap(), [true]);
    let compilation = CompilationBuilder::new(&inner).finish().unwrap();
    let execution = Execution::new(&compilation);
    let described = describe(OperandType::TensorFloat32, &[1]);
    execution.set_input(0, Some(&described), Some(bytes(&[7.0]))).unwrap();
    let output = OutputBuffer::new(16);
    execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
    execution.compute().unwrap();
    assert_eq!(output.to_f32(), [7.0, 1.0, 1.0, 1.0]);
}

/// y = WHILE(limit > sum) that appends to a list of two numbers; what is declared of the result is as given.
fn run_growing(
    declared: &[u32],
    asked: Option<&[u32]>,
    bytes_of_output: usize,
) -> (nnhal_runtime::Result<()>, Execution, OutputBuffer) {
    let devices = Devices::new([nnhal_reference::device()]);
    let mut builder = ModelBuilder::new(&devices);
    let [condition, body] =
        [&condition(&devices), &body(&devices)].map(|model| subgraph(&mut builder, model));
    let list = tensor(&mut builder, &[0]);
    let grown = tensor(&mut builder, declared);
    operation(&mut builder, While, &[condition, body, list], &[grown]).unwrap();
    builder.identify_inputs_and_outputs(&[list], &[grown]).unwrap();
    let compilation = CompilationBuilder::new(&builder.finish().unwrap()).finish().unwrap();
    let execution = Execution::new(&compilation);
    let described = describe(OperandType::TensorFloat32, &[1]);
    execution.set_input(0, Some(&described), Some(bytes(&[9.5]))).unwrap();
    let output = OutputBuffer::new(bytes_of_output);
    let asked = asked.map(|dimensions| describe(OperandType::TensorFloat32, dimensions));
    execution.set_output(0, asked.as_ref(), Some(Arc::new(output.clone()))).unwrap();
    (execution.compute(), execution, output)
}

#[test]
fn a_loop_gives_what_is_declared_or_fails() {
    // It gives two numbers.
    for (declared, asked, size) in [
        (&[0][..], None, 8),
        (&[2], None, 8),
        (&[0], Some(&[2][..]), 8),
        (&[0], Some(&[0]), 64),
        (&[], None, 64),
    ] {
        let (result, execution, output) = run_growing(declared, asked, size);
        result.unwrap();
        assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [2]);
        assert_eq!(output.to_f32()[..2], [9.5, 1.0]);
    }
    for (declared, asked, size) in [
        (&[3][..], None, 12),
        (&[1], None, 4),
        (&[0], Some(&[3][..]), 12),
        (&[0], Some(&[1]), 4),
        (&[], Some(&[0, 2]), 64),
    ] {
        let (result, execution, _) = run_growing(declared, asked, size);
        let error = result.unwrap_err();
        assert_eq!(error.code(), ResultCode::OpFailed, "{declared:?} {asked:?}: {error}");
        assert!(error.reason().contains("dimensions [2]"), "{error}");
        let code = execution.output_dimensions(0).unwrap_err().code();
        assert_eq!(code, ResultCode::BadState, "nothing is known of what failed");
    }
}

#[test]
fn what_goes_through_a_loop_has_the_shapes_that_its_models_declare() {
    let devices = Devices::new([nnhal_reference::device()]);
    // Appends a number and doubles all; what is declared of its argument and its result is as given.
    let short = |declared_in: &[u32], declared_out: &[u32]| {
        let mut builder = ModelBuilder::new(&devices);
        let list = tensor(&mut builder, declared_in);
        let one = tensor(&mut builder, &[1]);
        builder.set_operand_value(one, &1.0_f32.to_le_bytes()).unwrap();
        let axis = int32(&mut builder, 0);
        let none = int32(&mut builder, 0);
        let between = tensor(&mut builder, &[0]);
        let longer = tensor(&mut builder, declared_out);
        operation(&mut builder, Concatenation, &[list, one, axis], &[between]).unwrap();
        operation(&mut builder, Add, &[between, between, none], &[longer]).unwrap();
        builder.identify_inputs_and_outputs(&[list], &[longer]).unwrap();
        builder.finish().unwrap()
    };
    let run = |body: &Model, given: &[f32]| {
        let compilation = CompilationBuilder::new(&growing(&devices, body)).finish().unwrap();
        let execution = Execution::new(&compilation);
        let length = u32::try_from(given.len()).unwrap();
        let described = describe(OperandType::TensorFloat32, &[length]);
        execution.set_input(0, Some(&described), Some(bytes(given))).unwrap();
        for index in 0..2 {
            execution.set_output(index, None, Some(Arc::new(OutputBuffer::new(64)))).unwrap();
        }
        execution.compute()
    };
    // One round is enough. A second one has another shape.
    run(&short(&[1], &[0]), &[5.0]).unwrap();
    for (body, given) in [
        (short(&[1], &[0]), &[5.0, 1.0][..]),
        (short(&[1], &[0]), &[1.0]),
        (short(&[2], &[0]), &[5.0]),
    ] {
        let error = run(&body, given).unwrap_err();
        assert_eq!(error.code(), ResultCode::OpFailed, "{error}");
    }
}

#[test]
fn a_loop_begins_with_a_list_without_elements() {
    // Boxes that all score too low: none is left, and the loop begins with their scores.
    let devices = Devices::new([nnhal_reference::device()]);
    let mut builder = ModelBuilder::new(&devices);
    let scores = tensor(&mut builder, &[1, 2]);
    let boxes = tensor(&mut builder, &[1, 8]);
    let batches = builder.add_operand(&describe(OperandType::TensorInt32, &[1])).unwrap();
    let float = |builder: &mut ModelBuilder, value: f32| {
        let scalar = OperandDescription::scalar(OperandType::Float32);
        let operand = builder.add_operand(&scalar).unwrap();
        builder.set_operand_value(operand, &value.to_le_bytes()).unwrap();
        operand
    };
    let mut parameters = vec![scores, boxes, batches, float(&mut builder, 0.5)];
    parameters.extend([-1, 0].map(|value| int32(&mut builder, value)));
    parameters.extend([0.3, 1.0, 0.1].map(|value| float(&mut builder, value)));
    let kept = tensor(&mut builder, &[0]);
    let regions = tensor(&mut builder, &[0, 4]);
    let open = describe(OperandType::TensorInt32, &[0]);
    let [classes, splits] = [(); 2].map(|()| builder.add_operand(&open).unwrap());
    let outputs = [kept, regions, classes, splits];
    operation(&mut builder, OperationType::BoxWithNmsLimit, &parameters, &outputs).unwrap();
    let [condition, body] =
        [&condition(&devices), &body(&devices)].map(|model| subgraph(&mut builder, model));
    let grown = tensor(&mut builder, &[0]);
    operation(&mut builder, While, &[condition, body, kept], &[grown]).unwrap();
    let arguments = ([scores, boxes, batches], [grown, regions, classes, splits]);
    builder.identify_inputs_and_outputs(&arguments.0, &arguments.1).unwrap();
    let model = builder.finish().unwrap();
    let mut compilation = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
    let execution = Execution::new(&compilation.finish().unwrap());
    execution.set_input(0, None, Some(bytes(&[0.1, 0.1]))).unwrap();
    execution.set_input(1, None, Some(bytes(&[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]))).unwrap();
    execution.set_input(2, None, Some(Arc::new(vec![0; 4]))).unwrap();
    let buffers = [(); 4].map(|()| OutputBuffer::new(64));
    for (index, buffer) in (0..).zip(&buffers) {
        execution.set_output(index, None, Some(Arc::new(buffer.clone()))).unwrap();
    }
    execution.compute().unwrap();
    assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [10]);
    assert_eq!(buffers[0].to_f32()[..10], [1.0; 10]);
}
