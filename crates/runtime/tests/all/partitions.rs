//! Models divided among devices: who does what, and what happens when a device fails.

use crate::support::scripted::{Faults, Scripted, count};
use crate::support::{bytes, int32, operation, tensor};
use nnhal_hal::OperationType::{Add, Mul, Tanh};
use nnhal_hal::{Device as HalDevice, HalVersion, OperandType, OperationType};
use nnhal_runtime::{
    Burst, Compilation, CompilationBuilder, Device, Devices, Execution, Model, ModelBuilder,
    OperandDescription, OutputBuffer, Partitioning, Result, ResultCode,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A device for one operation, and the reference device.
fn adder_and_reference() -> (Devices, Arc<Faults>) {
    let adder = Scripted::new("test-adder", |_, operation| operation == Add);
    let faults = adder.faults();
    (Devices::new([Arc::new(adder) as Arc<dyn HalDevice>, nnhal_reference::device()]), faults)
}

/// y = (x + x) * x + x, of pairs; the dimensions of what passes between may be left open.
fn polynomial(devices: &Devices, between: &[u32]) -> Result<Model> {
    let mut builder = ModelBuilder::new(devices);
    let x = tensor(&mut builder, &[2]);
    let double = tensor(&mut builder, between);
    let product = tensor(&mut builder, between);
    let y = tensor(&mut builder, &[2]);
    let none = int32(&mut builder, 0);
    operation(&mut builder, Add, &[x, x, none], &[double])?;
    operation(&mut builder, Mul, &[double, x, none], &[product])?;
    operation(&mut builder, Add, &[product, x, none], &[y])?;
    builder.identify_inputs_and_outputs(&[x], &[y])?;
    builder.finish()
}

fn compute(compilation: &Compilation) -> Result<Vec<f32>> {
    compute_with(compilation, Execution::compute)
}

fn compute_with(
    compilation: &Compilation,
    how: impl FnOnce(&Execution) -> Result<()>,
) -> Result<Vec<f32>> {
    let execution = Execution::new(compilation);
    execution.set_input(0, None, Some(bytes(&[1.0, 3.0])))?;
    let output = OutputBuffer::new(8);
    execution.set_output(0, None, Some(Arc::new(output.clone())))?;
    how(&execution)?;
    Ok(output.to_f32())
}

const EXPECTED: [f32; 2] = [3.0, 21.0];

fn names(compilation: &Compilation) -> Vec<(&str, Vec<usize>)> {
    let steps = compilation.steps().into_iter();
    let name = |device: &Device| -> &'static str {
        if device.name() == "test-adder" { "adder" } else { "other" }
    };
    steps.map(|(device, operations)| (device.map_or("runtime", name), operations)).collect()
}

#[test]
fn each_operation_goes_to_the_device_that_is_best_at_it() {
    let (devices, faults) = adder_and_reference();
    for between in [&[2][..], &[0], &[]] {
        let model = polynomial(&devices, between).unwrap();
        let compilation = CompilationBuilder::new(&model).finish().unwrap();
        let steps = names(&compilation);
        assert_eq!(steps, [("adder", vec![0]), ("other", vec![1]), ("adder", vec![2])]);
        assert_eq!(compute(&compilation).unwrap(), EXPECTED, "{between:?}");
    }
    assert_eq!(count(&faults.executions), 6);
}

#[test]
fn a_device_that_is_slower_than_the_fallback_device_gets_nothing() {
    let slow = Scripted::new("test-slow", |_, _| true).with_cost(1e6);
    let devices = Devices::new([Arc::new(slow) as Arc<dyn HalDevice>, nnhal_reference::device()]);
    let model = polynomial(&devices, &[2]).unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    assert_eq!(compilation.steps()[0].0.unwrap().name(), "nnhal-reference");
    assert_eq!(compilation.steps().len(), 1);
}

#[test]
fn who_prefers_low_power_gets_another_device() {
    let devices = Devices::new([
        Arc::new(Scripted::new("test-fast", |_, _| true).with_power(50.0)) as Arc<dyn HalDevice>,
        Arc::new(Scripted::new("test-frugal", |_, _| true).with_cost(50.0)),
        nnhal_reference::device(),
    ]);
    let model = polynomial(&devices, &[2]).unwrap();
    for (preference, name) in [(0, "test-frugal"), (1, "test-fast"), (2, "test-fast")] {
        let mut builder = CompilationBuilder::new(&model);
        builder.set_preference(preference).unwrap();
        let compilation = builder.finish().unwrap();
        assert_eq!(compilation.steps()[0].0.unwrap().name(), name);
    }
}

#[test]
fn executions_of_one_compilation_run_at_the_same_time() {
    let (devices, _) = adder_and_reference();
    let mut builder = ModelBuilder::new(&devices);
    let [x, first, second, other, y] = [(); 5].map(|()| tensor(&mut builder, &[2]));
    let none = int32(&mut builder, 0);
    // One value stays on its device, one passes in shared memory.
    operation(&mut builder, Add, &[x, x, none], &[first]).unwrap();
    operation(&mut builder, Add, &[first, x, none], &[second]).unwrap();
    operation(&mut builder, Mul, &[first, first, none], &[other]).unwrap();
    operation(&mut builder, Add, &[second, other, none], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let compilation = CompilationBuilder::new(&builder.finish().unwrap()).finish().unwrap();
    std::thread::scope(|scope| {
        for thread in 0_u8..4 {
            let compilation = &compilation;
            scope.spawn(move || {
                for round in 0_u8..100 {
                    let values = [f32::from(thread) + 1.0, f32::from(round)];
                    let execution = Execution::new(compilation);
                    execution.set_input(0, None, Some(bytes(&values))).unwrap();
                    let output = OutputBuffer::new(8);
                    execution.set_output(0, None, Some(Arc::new(output.clone()))).unwrap();
                    execution.compute().unwrap();
                    assert_eq!(output.to_f32(), values.map(|x| 3.0 * x + 4.0 * x * x));
                }
            });
        }
    });
}

#[test]
fn one_device_that_does_all_gets_one_step() {
    let devices = Devices::new([
        Arc::new(Scripted::new("test-all", |_, _| true)) as Arc<dyn HalDevice>,
        nnhal_reference::device(),
    ]);
    let model = polynomial(&devices, &[2]).unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    assert_eq!(compilation.steps().len(), 1);
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
}

#[test]
fn a_device_that_fails_to_prepare_is_replaced() {
    let (devices, faults) = adder_and_reference();
    let model = polynomial(&devices, &[2]).unwrap();
    faults.failing_preparations.store(1, Ordering::Relaxed);
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    assert_eq!(names(&compilation), [("other", vec![0, 1, 2])]);
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
}

#[test]
fn devices_that_the_client_chose_are_not_replaced() {
    let (devices, faults) = adder_and_reference();
    let model = polynomial(&devices, &[2]).unwrap();
    faults.failing_preparations.store(1, Ordering::Relaxed);
    let mut builder = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
    assert_eq!(builder.finish().unwrap_err().code(), ResultCode::OpFailed);
    assert_eq!(builder.finish().unwrap_err().code(), ResultCode::BadState);
    assert_eq!(builder.compilation().unwrap_err().code(), ResultCode::BadState);

    let mut builder = CompilationBuilder::for_devices(&model, devices.list()).unwrap();
    let compilation = builder.finish().unwrap();
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
    faults.failing_executions.store(1, Ordering::Relaxed);
    assert_eq!(compute(&compilation).unwrap_err().code(), ResultCode::OpFailed);
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
}

#[test]
fn a_device_that_cannot_do_all_alone_is_refused() {
    let (devices, _) = adder_and_reference();
    let model = polynomial(&devices, &[2]).unwrap();
    let adder = devices.named("test-adder").cloned().unwrap();
    let mut builder = CompilationBuilder::for_devices(&model, &[adder]).unwrap();
    let error = builder.finish().unwrap_err();
    assert_eq!(error.code(), ResultCode::BadData);
    assert!(error.reason().contains("operation 1 (MUL)"), "{error}");
}

#[test]
fn a_step_that_fails_goes_to_the_fallback_device() {
    let (devices, faults) = adder_and_reference();
    let model = polynomial(&devices, &[0]).unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    for failing in 1..=3 {
        faults.failing_executions.store(failing, Ordering::Relaxed);
        assert_eq!(compute(&compilation).unwrap(), EXPECTED, "{failing}");
        faults.failing_executions.store(0, Ordering::Relaxed);
    }
}

#[test]
fn a_fallback_device_that_could_not_prepare_is_asked_again() {
    let adder = Scripted::new("test-adder", |_, operation| operation == Add);
    let other = Scripted::new("test-other", |_, _| true).with_cost(1000.0);
    let (faults, of_other) = (adder.faults(), other.faults());
    let devices = Devices::new([Arc::new(adder) as Arc<dyn HalDevice>, Arc::new(other)]);
    // One plan of which a step goes there, and one that goes there as a whole.
    let model = polynomial(&devices, &[2]).unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    assert_eq!(names(&compilation), [("adder", vec![0]), ("other", vec![1]), ("adder", vec![2])]);
    faults.failing_executions.store(1, Ordering::Relaxed);
    // The step's preparation fails, and that of the whole.
    of_other.failing_preparations.store(2, Ordering::Relaxed);
    assert_eq!(compute(&compilation).unwrap_err().code(), ResultCode::OpFailed);
    assert_eq!(count(&of_other.failing_preparations), 0);
    faults.failing_executions.store(1, Ordering::Relaxed);
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
    // What is prepared now stays so.
    let prepared = count(&of_other.preparations);
    faults.failing_executions.store(1, Ordering::Relaxed);
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
    assert_eq!(count(&of_other.preparations), prepared);
}

#[test]
fn a_device_that_panics_has_failed() {
    let (devices, faults) = adder_and_reference();
    let model = polynomial(&devices, &[2]).unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    faults.panics.store(true, Ordering::Relaxed);
    let error = compute(&compilation).unwrap_err();
    assert_eq!(error.code(), ResultCode::OpFailed);
    let event = compute_with(&compilation, |execution| execution.start_compute()?.wait());
    assert_eq!(event.unwrap_err().code(), ResultCode::OpFailed);
}

#[test]
fn without_partitioning_all_goes_to_the_fallback_device() {
    let (devices, _) = adder_and_reference();
    let model = polynomial(&devices, &[2]).unwrap();
    let mut builder = CompilationBuilder::new(&model);
    builder.set_partitioning(Partitioning::Off).unwrap();
    let compilation = builder.finish().unwrap();
    assert_eq!(names(&compilation), [("other", vec![0, 1, 2])]);
    assert_eq!(compute(&compilation).unwrap(), EXPECTED);
}

#[test]
fn a_device_of_an_older_interface_gets_what_that_can_express() {
    let old = Scripted::new("test-adder", |_, _| true).with_version(HalVersion::V1_0);
    let devices = Devices::new([Arc::new(old) as Arc<dyn HalDevice>, nnhal_reference::device()]);
    let mut builder = ModelBuilder::new(&devices);
    let x = tensor(&mut builder, &[2]);
    let sine = tensor(&mut builder, &[2]);
    let y = tensor(&mut builder, &[2]);
    operation(&mut builder, OperationType::Sin, &[x], &[sine]).unwrap();
    operation(&mut builder, Tanh, &[sine], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let model = builder.finish().unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    assert_eq!(names(&compilation), [("other", vec![0]), ("adder", vec![1])]);
    let [a, b] = [1.0_f32, 3.0].map(|x| x.sin().tanh());
    let found = compute(&compilation).unwrap();
    assert!((found[0] - a).abs() < 1e-6 && (found[1] - b).abs() < 1e-6, "{found:?}");
    assert_eq!(devices.list()[0].feature_level(), 27);
    let supported = model.supported_operations(&devices.list()[..1]).unwrap();
    assert_eq!(supported, [false, true]);
}

#[test]
fn a_value_that_never_leaves_its_device_stays_in_its_memory() {
    let (devices, faults) = adder_and_reference();
    let mut builder = ModelBuilder::new(&devices);
    let [x, first, second, other, y] = [(); 5].map(|()| tensor(&mut builder, &[2]));
    let none = int32(&mut builder, 0);
    operation(&mut builder, Add, &[x, x, none], &[first]).unwrap();
    operation(&mut builder, Add, &[first, x, none], &[second]).unwrap();
    operation(&mut builder, Mul, &[first, first, none], &[other]).unwrap();
    operation(&mut builder, Add, &[second, other, none], &[y]).unwrap();
    builder.identify_inputs_and_outputs(&[x], &[y]).unwrap();
    let model = builder.finish().unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let steps = names(&compilation);
    assert_eq!(steps, [("adder", vec![0, 1]), ("other", vec![2]), ("adder", vec![3])]);
    let expected = [1.0, 3.0].map(|x: f32| 3.0 * x + 4.0 * x * x);
    for _ in 0..3 {
        assert_eq!(compute(&compilation).unwrap(), expected);
    }
    assert_eq!(count(&faults.allocations), 1, "one, and for all executions");
    // Whoever takes over cannot reach the device's memory.
    for failing in 1..=2 {
        faults.failing_executions.store(failing, Ordering::Relaxed);
        assert_eq!(compute(&compilation).unwrap(), expected, "{failing}");
        assert_eq!(count(&faults.failing_executions), 0);
    }
    let burst = Burst::new(&compilation);
    let found = compute_with(&compilation, |execution| execution.burst_compute(&burst));
    assert_eq!(found.unwrap(), expected);
}

#[test]
fn steps_of_several_devices_use_bursts() {
    let (devices, faults) = adder_and_reference();
    let model = polynomial(&devices, &[0]).unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let burst = Burst::new(&compilation);
    for _ in 0..3 {
        let found = compute_with(&compilation, |execution| execution.burst_compute(&burst));
        assert_eq!(found.unwrap(), EXPECTED);
    }
    assert_eq!(count(&faults.bursts), 6);
}

#[test]
fn a_value_without_elements_passes_between_devices() {
    let (devices, _) = adder_and_reference();
    // Boxes that all score too low: none is left for the addition.
    let mut builder = ModelBuilder::new(&devices);
    let scores = tensor(&mut builder, &[1, 2]);
    let boxes = tensor(&mut builder, &[1, 8]);
    let batches =
        builder.add_operand(&OperandDescription::tensor(OperandType::TensorInt32, [1])).unwrap();
    let float = OperandDescription::scalar(OperandType::Float32);
    let mut parameters = vec![scores, boxes, batches];
    let add_float = |builder: &mut ModelBuilder, value: f32| {
        let operand = builder.add_operand(&float).unwrap();
        builder.set_operand_value(operand, &value.to_le_bytes()).unwrap();
        operand
    };
    parameters.push(add_float(&mut builder, 0.5));
    parameters.push(int32(&mut builder, -1));
    parameters.push(int32(&mut builder, 0));
    for value in [0.3, 1.0, 0.1] {
        parameters.push(add_float(&mut builder, value));
    }
    let kept = tensor(&mut builder, &[0]);
    let regions = tensor(&mut builder, &[0, 4]);
    let open = OperandDescription::tensor(OperandType::TensorInt32, [0]);
    let [classes, splits] = [(); 2].map(|()| builder.add_operand(&open).unwrap());
    let none = int32(&mut builder, 0);
    let sum = tensor(&mut builder, &[0]);
    let outputs = [kept, regions, classes, splits];
    operation(&mut builder, OperationType::BoxWithNmsLimit, &parameters, &outputs).unwrap();
    operation(&mut builder, Add, &[kept, kept, none], &[sum]).unwrap();
    builder
        .identify_inputs_and_outputs(&[scores, boxes, batches], &[sum, regions, classes, splits])
        .unwrap();
    let model = builder.finish().unwrap();
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    assert_eq!(compilation.steps().len(), 2);
    let execution = Execution::new(&compilation);
    execution.set_input(0, None, Some(bytes(&[0.1, 0.1]))).unwrap();
    execution.set_input(1, None, Some(bytes(&[0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]))).unwrap();
    execution.set_input(2, None, Some(Arc::new(vec![0; 4]))).unwrap();
    for output in 0..4 {
        execution.set_output(output, None, Some(Arc::new(OutputBuffer::new(64)))).unwrap();
    }
    execution.compute().unwrap();
    assert_eq!(execution.output_dimensions(0).unwrap().dimensions, [0]);
}

#[test]
fn attributes_of_extensions_reach_the_device() {
    let device = Scripted::new("test-all", |_, _| true);
    let faults = device.faults();
    let devices = Devices::new([Arc::new(device) as Arc<dyn HalDevice>]);
    let model = polynomial(&devices, &[2]).unwrap();
    let mut builder = CompilationBuilder::for_devices(&model, &devices.list()[..1]).unwrap();
    builder.add_extension_attribute("com.example.a", 7, &[1, 2]).unwrap();
    builder.add_extension_attribute("com.example.b", 7, &[]).unwrap();
    builder.add_extension_attribute("com.example.a", 0xFFFF, &[3]).unwrap();
    let compilation = builder.finish().unwrap();
    let with_attribute = |execution: &Execution, value: u8| {
        execution.add_extension_attribute("com.example.a", 1, &[value]).unwrap();
    };
    compute_with(&compilation, |execution| {
        with_attribute(execution, 4);
        execution.compute()
    })
    .unwrap();
    let burst = Burst::new(&compilation);
    compute_with(&compilation, |execution| {
        with_attribute(execution, 5);
        execution.burst_compute(&burst)
    })
    .unwrap();
    compute_with(&compilation, |execution| {
        with_attribute(execution, 6);
        execution.start_compute()?.wait()
    })
    .unwrap();
    compute_with(&compilation, |execution| execution.burst_compute(&burst)).unwrap();
    assert_eq!(count(&faults.bursts), 1, "a burst has no place for attributes");

    let seen = faults.hints.lock().unwrap();
    let [of_compilation, of_executions @ ..] = &seen[..] else { panic!("nothing was prepared") };
    let value = |name, number| of_compilation.get(name, number);
    assert_eq!(value("com.example.a", 7), Some(&[1, 2][..]));
    assert_eq!(value("com.example.a", 0xFFFF), Some(&[3][..]));
    assert_eq!(value("com.example.b", 7), Some(&[][..]));
    assert_eq!(of_compilation.values.len(), 3);
    let values: Vec<_> = of_executions.iter().map(|it| it.get("com.example.a", 1)).collect();
    assert_eq!(values, [Some(&[4][..]), Some(&[5]), Some(&[6])]);
}
