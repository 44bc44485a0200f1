//! Misuse: every wrong call has its result code.

use crate::support::{bytes, int32, operation, tensor};
use nnhal_hal::OperationType::{Add, Relu};
use nnhal_hal::{OperandType, OperationType};
use nnhal_runtime::{
    Burst, Compilation, CompilationBuilder, Devices, DurationCode, Execution, Model, ModelBuilder,
    OperandDescription, OutputBuffer, Result, ResultCode,
};
use std::sync::Arc;

fn code<T: std::fmt::Debug>(result: Result<T>) -> ResultCode {
    result.unwrap_err().code()
}

fn devices() -> Devices {
    Devices::new([nnhal_reference::device()])
}

/// y = relu(x), whose length may be open.
fn relu(devices: &Devices, length: u32) -> Model {
    let mut builder = ModelBuilder::new(devices);
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[length]));
    operation(&mut builder, Relu, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    builder.finish().unwrap()
}

fn compile(model: &Model) -> Compilation {
    let devices = model.devices().list();
    CompilationBuilder::for_devices(model, devices).unwrap().finish().unwrap()
}

fn output(size: usize) -> Option<Arc<dyn nnhal_runtime::WriteBytes>> {
    Some(Arc::new(OutputBuffer::new(size)))
}

#[test]
fn operands_must_be_there_and_values_must_fit() {
    let mut builder = ModelBuilder::new(&devices());
    let x = tensor(&mut builder, &[2]);
    let open = tensor(&mut builder, &[0]);
    assert_eq!(code(builder.set_operand_value(9, &[0])), ResultCode::BadData);
    assert_eq!(code(builder.set_operand_value(x, &[0; 7])), ResultCode::BadData);
    assert_eq!(code(builder.set_operand_value(open, &[0; 4])), ResultCode::BadData);
    assert_eq!(code(builder.omit_operand_value(9)), ResultCode::BadData);
    assert_eq!(code(builder.set_operand_channel_quant(x, 0, &[1.0, 1.0])), ResultCode::BadData);
    assert_eq!(code(builder.set_operand_extension_data(x, Some(&[1]))), ResultCode::BadData);
    let filter = OperandDescription::tensor(OperandType::TensorQuant8SymmPerChannel, [2, 3]);
    let filter = builder.add_operand(&filter).unwrap();
    assert_eq!(code(builder.set_operand_channel_quant(filter, 2, &[1.0])), ResultCode::BadData);
    assert_eq!(code(builder.set_operand_channel_quant(filter, 0, &[1.0])), ResultCode::BadData);
    let negative = builder.set_operand_channel_quant(filter, 0, &[1.0, -1.0]);
    assert_eq!(code(negative), ResultCode::BadData);
    builder.set_operand_channel_quant(filter, 0, &[1.0, 2.0]).unwrap();
    builder.set_operand_value(filter, &[0; 6]).unwrap();
}

#[test]
fn operations_must_be_known_and_their_operands_fit() {
    let mut builder = ModelBuilder::new(&devices());
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[2]));
    assert_eq!(code(builder.add_operation(106, &[x], &[y])), ResultCode::BadData);
    assert_eq!(code(builder.add_operation(-1, &[x], &[y])), ResultCode::BadData);
    assert_eq!(code(builder.add_operation(0x1_0000, &[x], &[y])), ResultCode::BadData);
    assert_eq!(code(operation(&mut builder, Relu, &[7], &[y])), ResultCode::BadData);
    assert_eq!(code(operation(&mut builder, Relu, &[x], &[7])), ResultCode::BadData);
    assert_eq!(code(operation(&mut builder, Relu, &[x, x], &[y])), ResultCode::BadData);
    assert_eq!(code(operation(&mut builder, Add, &[x, x, x], &[y])), ResultCode::BadData);
    assert_eq!(code(operation(&mut builder, Relu, &[], &[])), ResultCode::BadData);
}

#[test]
fn model_8_9_the_quantization_of_integers_is_looked_at_when_the_model_is_finished() {
    for (scale, zero_point, is_valid) in
        [(0.5, 0, true), (0.0, 5, false), (-1.0, 0, false), (f32::NAN, 0, false)]
    {
        let mut builder = ModelBuilder::new(&devices());
        let integers =
            OperandDescription::quantized(OperandType::TensorInt32, [2], scale, zero_point);
        let [x, y] = [(); 2].map(|()| builder.add_operand(&integers).unwrap());
        operation(&mut builder, OperationType::Abs, &[x], &[y]).unwrap();
        builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
        let finished = builder.finish().map(drop).map_err(|error| error.code());
        let expected = if is_valid { Ok(()) } else { Err(ResultCode::BadData) };
        assert_eq!(finished, expected, "scale {scale}, zero point {zero_point}");
    }
}

#[test]
fn inputs_and_outputs_are_named_once_and_have_no_value() {
    let mut builder = ModelBuilder::new(&devices());
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[2]));
    let constant = int32(&mut builder, 0);
    assert_eq!(code(builder.identify_inputs_and_outputs(&[9], &[y])), ResultCode::BadData);
    assert_eq!(code(builder.identify_inputs_and_outputs(&[constant], &[y])), ResultCode::BadData);
    let mut builder = ModelBuilder::new(&devices());
    let x_again = tensor(&mut builder, &[2]);
    let twice = builder.identify_inputs_and_outputs(&[x_again, x_again], &[]);
    assert_eq!(code(twice), ResultCode::BadData);
    assert_eq!((x, y), (0, 1));
}

#[test]
fn a_model_whose_inputs_and_outputs_were_named_wrongly_cannot_be_finished() {
    for is_corrected in [false, true] {
        let mut builder = ModelBuilder::new(&devices());
        let x = tensor(&mut builder, &[2]);
        let y = tensor(&mut builder, &[2]);
        builder.set_operand_value(x, &[0; 8]).unwrap();
        operation(&mut builder, Relu, &[x], &[y]).unwrap();
        assert_eq!(code(builder.identify_inputs_and_outputs(&[x], &[y])), ResultCode::BadData);
        if is_corrected {
            builder.identify_inputs_and_outputs(&[], &[y]).unwrap();
            builder.finish().unwrap();
        } else {
            assert_eq!(code(builder.finish()), ResultCode::BadData);
            assert_eq!(code(builder.finish()), ResultCode::BadState);
        }
    }
    // Naming the same ones again fails, and changes nothing.
    let mut builder = ModelBuilder::new(&devices());
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[2]));
    operation(&mut builder, Relu, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    assert_eq!(code(builder.identify_inputs_and_outputs(&[x], &[y])), ResultCode::BadData);
    builder.finish().unwrap();
}

#[test]
fn a_model_is_finished_once_and_then_never_changes() {
    let devices = devices();
    let mut builder = ModelBuilder::new(&devices);
    assert_eq!(code(builder.model().cloned()), ResultCode::BadState);
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[2]));
    operation(&mut builder, Relu, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let model = builder.finish().unwrap();
    assert_eq!(code(builder.finish()), ResultCode::BadState);
    let description = OperandDescription::tensor_float32([1]);
    assert_eq!(code(builder.add_operand(&description)), ResultCode::BadState);
    assert_eq!(code(builder.set_operand_value(x, &[0; 8])), ResultCode::BadState);
    assert_eq!(code(builder.omit_operand_value(x)), ResultCode::BadState);
    assert_eq!(code(builder.set_operand_value_from_model(x, &model)), ResultCode::BadState);
    assert_eq!(code(operation(&mut builder, Relu, &[x], &[y])), ResultCode::BadState);
    assert_eq!(code(builder.identify_inputs_and_outputs(&[x], &[y])), ResultCode::BadState);
    assert_eq!(code(builder.relax_computation_float32_to_float16(true)), ResultCode::BadState);
}

#[test]
fn a_model_that_is_not_valid_stays_so() {
    for cyclic in [true, false] {
        let mut builder = ModelBuilder::new(&devices());
        let [x, a, b] = [(); 3].map(|()| tensor(&mut builder, &[2]));
        let none = int32(&mut builder, 0);
        let second = if cyclic { b } else { x };
        operation(&mut builder, Add, &[x, second, none], &[a]).unwrap();
        operation(&mut builder, Relu, &[a], &[if cyclic { b } else { a }]).unwrap();
        builder.identify_inputs_and_outputs(&[x], &[if cyclic { b } else { a }]).unwrap();
        assert_eq!(code(builder.finish()), ResultCode::BadData);
        assert_eq!(code(builder.finish()), ResultCode::BadState);
        assert_eq!(code(builder.model().cloned()), ResultCode::BadState);
        let description = OperandDescription::tensor_float32([1]);
        assert_eq!(code(builder.add_operand(&description)), ResultCode::BadState);
    }
    let mut empty = ModelBuilder::new(&devices());
    assert_eq!(code(empty.finish()), ResultCode::BadData);
}

#[test]
fn compilations_are_for_devices_of_the_model() {
    let (ours, others) = (devices(), devices());
    let model = relu(&ours, 2);
    let device = &ours.list()[0];
    let refused: [&[nnhal_runtime::Device]; 3] =
        [&[], &[device.clone(), device.clone()], &[others.list()[0].clone()]];
    for list in refused {
        assert_eq!(code(CompilationBuilder::for_devices(&model, list)), ResultCode::BadData);
    }
    let mut builder = CompilationBuilder::for_devices(&model, ours.list()).unwrap();
    assert_eq!(code(builder.compilation().cloned()), ResultCode::BadState);
    assert_eq!(code(builder.set_preference(3)), ResultCode::BadData);
    assert_eq!(code(builder.set_priority(91)), ResultCode::BadData);
    for priority in [90, 100, 110] {
        builder.set_priority(priority).unwrap();
    }
    builder.set_timeout(1_000_000_000_000).unwrap();
    let compilation = builder.finish().unwrap();
    assert_eq!(code(builder.set_preference(0)), ResultCode::BadState);
    assert_eq!(code(builder.set_priority(90)), ResultCode::BadState);
    assert_eq!(code(builder.set_timeout(1)), ResultCode::BadState);
    let caching = builder.set_caching(std::path::Path::new("."), &[0; 32]);
    assert_eq!(code(caching), ResultCode::BadState);
    assert_eq!(code(compilation.preferred_memory_padding_for_input(1)), ResultCode::BadData);
    assert!(compilation.preferred_memory_alignment_for_output(0).unwrap().is_power_of_two());

    let mut for_all = CompilationBuilder::new(&model);
    assert_eq!(code(for_all.set_timeout(1)), ResultCode::BadData);
    let for_all = Execution::new(&for_all.finish().unwrap());
    assert_eq!(code(for_all.set_timeout(1)), ResultCode::BadData);
    assert_eq!(code(for_all.set_measure_timing(true)), ResultCode::BadData);
}

#[test]
fn a_deadline_that_has_passed_is_missed() {
    let devices = devices();
    let model = relu(&devices, 2);
    let mut builder = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
    builder.set_timeout(1).unwrap();
    assert!(code(builder.finish()).is_missed_deadline());
    let execution = Execution::new(&compile(&model));
    execution.set_input(0, None, Some(bytes(&[1.0, 2.0]))).unwrap();
    execution.set_output(0, None, output(8)).unwrap();
    execution.set_timeout(1).unwrap();
    assert!(code(execution.compute()).is_missed_deadline());
    assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState);
}

#[test]
fn arguments_must_be_there_and_fit() {
    let model = relu(&devices(), 0);
    let execution = Execution::new(&compile(&model));
    let pair = OperandDescription::tensor_float32([2]);
    let value = || -> Option<Arc<dyn nnhal_runtime::ReadBytes>> { Some(bytes(&[1.0, 2.0])) };
    assert_eq!(code(execution.set_input(1, Some(&pair), value())), ResultCode::BadData);
    assert_eq!(code(execution.set_input(0, None, value())), ResultCode::BadData, "open");
    let rank = OperandDescription::tensor_float32([1, 2]);
    assert_eq!(code(execution.set_input(0, Some(&rank), value())), ResultCode::BadData);
    let three = OperandDescription::tensor_float32([3]);
    assert_eq!(code(execution.set_input(0, Some(&three), value())), ResultCode::BadData);
    let one = OperandDescription::tensor_float32([1]);
    assert_eq!(code(execution.set_input(0, Some(&one), value())), ResultCode::BadData, "padding");
    let wrong = OperandDescription { code: 99, ..pair.clone() };
    assert_eq!(code(execution.set_input(0, Some(&wrong), value())), ResultCode::BadData);
    execution.set_input(0, Some(&pair), value()).unwrap();
    assert_eq!(code(execution.set_input(0, Some(&pair), value())), ResultCode::BadState, "twice");
    assert_eq!(code(execution.set_output(1, None, output(8))), ResultCode::BadData);
    assert_eq!(code(execution.set_output(0, Some(&pair), output(4))), ResultCode::BadData);
    let late = execution.enable_input_and_output_padding(true);
    assert_eq!(code(late), ResultCode::BadState);
    assert_eq!(code(execution.compute()), ResultCode::BadData, "no output");
}

#[test]
fn padding_is_allowed_once_enabled() {
    let model = relu(&devices(), 2);
    let execution = Execution::new(&compile(&model));
    execution.enable_input_and_output_padding(true).unwrap();
    execution.set_input(0, None, Some(bytes(&[-1.0, 2.0, 7.0]))).unwrap();
    let buffer = OutputBuffer::new(20);
    execution.set_output(0, None, Some(Arc::new(buffer.clone()))).unwrap();
    execution.compute().unwrap();
    assert_eq!(buffer.to_f32(), [0.0, 2.0, 0.0, 0.0, 0.0]);
}

#[test]
fn an_execution_goes_through_its_states() {
    let model = relu(&devices(), 2);
    let compilation = compile(&model);
    for reusable in [false, true] {
        let execution = Execution::new(&compilation);
        assert_eq!(code(execution.output_dimensions(0)), ResultCode::BadState);
        assert_eq!(code(execution.duration(DurationCode::InDriver)), ResultCode::BadState);
        execution.set_measure_timing(true).unwrap();
        execution.set_reusable(reusable).unwrap();
        execution.set_input(0, None, Some(bytes(&[-1.0, 2.0]))).unwrap();
        execution.set_output(0, None, output(8)).unwrap();
        execution.compute().unwrap();
        assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [2]);
        assert_eq!(code(execution.output_dimensions(1)), ResultCode::BadData);
        let [hardware, driver] = [DurationCode::OnHardware, DurationCode::InDriver]
            .map(|code| execution.duration(code).unwrap().unwrap());
        assert!(hardware <= driver);
        assert_eq!(code(execution.set_reusable(true)), ResultCode::BadState);
        assert_eq!(code(execution.set_loop_timeout(1)), ResultCode::BadState);
        assert_eq!(code(execution.set_measure_timing(false)), ResultCode::BadState);
        let again = execution.compute();
        let burst = execution.burst_compute(&Burst::new(&compilation));
        let event = execution.start_compute();
        if reusable {
            again.unwrap();
            burst.unwrap();
            event.unwrap().wait().unwrap();
        } else {
            assert_eq!(code(again), ResultCode::BadState);
            assert_eq!(code(burst), ResultCode::BadState);
            assert_eq!(code(event), ResultCode::BadState);
        }
    }
}

#[test]
fn durations_are_known_only_when_measured() {
    let execution = Execution::new(&compile(&relu(&devices(), 2)));
    execution.set_input(0, None, Some(bytes(&[-1.0, 2.0]))).unwrap();
    execution.set_output(0, None, output(8)).unwrap();
    execution.compute().unwrap();
    assert_eq!(code(execution.duration(DurationCode::InDriver)), ResultCode::BadState);
    assert_eq!(code(DurationCode::from_code(4)), ResultCode::BadData);
}

#[test]
fn an_output_that_is_too_short_is_reported() {
    let execution = Execution::new(&compile(&relu(&devices(), 0)));
    let three = OperandDescription::tensor_float32([3]);
    execution.set_input(0, Some(&three), Some(bytes(&[-1.0, 2.0, 3.0]))).unwrap();
    execution.set_output(0, None, output(8)).unwrap();
    assert_eq!(code(execution.compute()), ResultCode::OutputInsufficientSize);
    let found = execution.output_dimensions(0).unwrap();
    assert_eq!((found.dimensions, found.is_sufficient), (vec![3], false));
    assert_eq!(code(execution.compute()), ResultCode::BadState, "it is used up all the same");
}

#[test]
fn bursts_are_for_their_compilation() {
    let model = relu(&devices(), 2);
    let (compilation, other) = (compile(&model), compile(&model));
    let execution = Execution::new(&compilation);
    execution.set_input(0, None, Some(bytes(&[-1.0, 2.0]))).unwrap();
    execution.set_output(0, None, output(8)).unwrap();
    assert_eq!(code(execution.burst_compute(&Burst::new(&other))), ResultCode::BadData);
    execution.burst_compute(&Burst::new(&compilation)).unwrap();
}

#[test]
fn extensions_have_numbers_but_devices_must_describe_them() {
    let devices = devices();
    let operand_type = devices.extension_operand_type("com.example.things", 5).unwrap();
    let mut builder = ModelBuilder::new(&devices);
    let description = OperandDescription { code: operand_type, ..OperandDescription::default() };
    assert_eq!(code(builder.add_operand(&description)), ResultCode::BadData);
    assert!(!devices.list()[0].supports_extension("com.example.things"));
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[2]));
    let operation_type = devices.extension_operation_type("com.example.things", 1).unwrap();
    builder.add_operation(operation_type, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    assert_eq!(code(builder.finish()), ResultCode::BadData, "no device offers it");
}

#[test]
fn an_operation_that_an_offered_extension_lacks_is_supported_by_no_device() {
    let devices = devices();
    let offered = devices.list()[0].extensions()[0].name.clone();
    let operation_type = devices.extension_operation_type(&offered, 0xFFFF).unwrap();
    let mut builder = ModelBuilder::new(&devices);
    let [x, y] = [(); 2].map(|()| tensor(&mut builder, &[2]));
    builder.add_operation(operation_type, &[x], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let model = builder.finish().unwrap();
    assert_eq!(model.supported_operations(devices.list()).unwrap(), [false]);
    assert_eq!(code(CompilationBuilder::new(&model).finish()), ResultCode::BadData);
    assert!(matches!(model.hal().main.operations[0].operation_type, OperationType::Extension(_)));
}
