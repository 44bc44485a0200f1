//! Whatever a valid model computes, computing it does no harm: no kernel panics, hangs or takes
//! memory without bound (contract: GEN-8, SEC-3), and whether output shapes were known beforehand
//! changes no bit. With `--features cpu` the fast engine is held against the reference: the same
//! shapes, and the same integers.
//!
//! The first byte chooses an operation, whose arguments the other bytes make, or one of the samples,
//! which they damage.

#![no_main]

#[path = "../../crates/ops/tests/arguments/mod.rs"]
mod arguments;
#[allow(dead_code)] // Nothing wild is needed here.
#[path = "../../crates/ops/tests/garbage/mod.rs"]
mod garbage;
#[path = "../../crates/ops/tests/samples/mod.rs"]
mod samples;

use arguments::{Invocation, MOST_ELEMENTS, Made, Source, signatures};
use nnhal_driver::DriverDevice;
use nnhal_hal::{
    DataLocation, Deadline, Device, ErrorStatus, ExecutionOptions, HalVersion, Model, Operand,
    OperandLifeTime, OperandType, Operation, OperationType, PrepareOptions, RequestBuilder,
    Subgraph,
};
use libfuzzer_sys::fuzz_target;
use nnhal_ops::Signature;
use nnhal_reference::ReferenceEngine;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Bytes of a model's constants, and of the values alive at once. A convolution of this many
/// by this many elements takes far less than a second.
const MEMORY_LIMIT: u64 = 64 << 10;

/// For an execution.
const DEADLINE: Duration = Duration::from_secs(1);

/// How much later than that it may end. A sanitizer, and a busy machine, cost several times as much as
/// the kernels themselves.
const LATE: Duration = Duration::from_secs(2);

fn device() -> &'static dyn Device {
    static DEVICE: OnceLock<DriverDevice<ReferenceEngine>> = OnceLock::new();
    DEVICE.get_or_init(|| DriverDevice::new(ReferenceEngine::with_memory_limit(MEMORY_LIMIT)))
}

#[cfg(not(feature = "cpu"))]
fn fast_devices() -> &'static [Arc<dyn Device>] {
    &[]
}

/// The fast device with each instruction set of this processor.
#[cfg(feature = "cpu")]
fn fast_devices() -> &'static [Arc<dyn Device>] {
    use nnhal_cpu::{InstructionSet, Settings};
    static DEVICES: OnceLock<Vec<Arc<dyn Device>>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let device = |instruction_set| {
            let memory_limit = MEMORY_LIMIT;
            nnhal_cpu::device(Settings { instruction_set, memory_limit, ..Settings::default() })
        };
        InstructionSet::available().map(device).collect()
    })
}

fn samples() -> &'static [Model] {
    static SAMPLES: OnceLock<Vec<Model>> = OnceLock::new();
    SAMPLES.get_or_init(|| samples::all().into_iter().map(|sample| sample.model).collect())
}

fn operations() -> &'static [&'static Signature] {
    static SIGNATURES: OnceLock<Vec<&'static Signature>> = OnceLock::new();
    SIGNATURES.get_or_init(|| signatures().collect())
}

/// An argument of a request; `None`: left out.
type Input = Option<(Vec<u8>, Vec<u32>)>;

fuzz_target!(|bytes: &[u8]| {
    let [first, second, rest @ ..] = bytes else { return };
    if let Some(signature) = operations().get(usize::from(*first)) {
        let mut source = Source::new(rest);
        let invocation = Invocation::of(signature, &mut source);
        match second % 4 {
            // Only so are there inputs without elements.
            0 => drop(invocation.compute().expect("answers that go together")),
            _ => {
                let (model, inputs) = model_of(&invocation, &mut source);
                run(&model, inputs.as_deref());
            }
        }
        return;
    }
    let all = samples();
    let mut model = all[usize::from(*first) % all.len()].clone();
    let (damage, values) = rest.split_at(rest.len().min(usize::from(*second)));
    garbage::damage(&mut model, &mut garbage::Source::new(damage));
    let inputs = inputs_of(&model, values);
    run(&model, inputs.as_deref());
});

/// A model of one operation, and inputs to run it with if all are small enough.
fn model_of(invocation: &Invocation, source: &mut Source<'_>) -> (Model, Option<Vec<Input>>) {
    let mut model = Model::default();
    let mut values = Vec::new();
    let mut inputs = Some(Vec::new());
    let mut step = Operation {
        operation_type: invocation.signature.operation,
        inputs: Vec::new(),
        outputs: Vec::new(),
    };
    let graph: &mut Subgraph = &mut model.main;
    for made in &invocation.inputs {
        let mut operand = Operand { number_of_consumers: 1, ..declared(made) };
        let is_fed = source.byte() > 127;
        let index = u32::try_from(graph.operands.len()).expect("few operands");
        match &made.value {
            _ if made.is_omitted && !is_fed => operand.lifetime = OperandLifeTime::NoValue,
            Some(bytes) if !made.is_omitted && !is_fed => {
                operand.lifetime = OperandLifeTime::ConstantCopy;
                operand.location = DataLocation {
                    pool_index: 0,
                    offset: u32::try_from(values.len()).expect("few values"),
                    length: u32::try_from(bytes.len()).expect("few values"),
                };
                values.extend_from_slice(bytes);
            }
            value => {
                operand.lifetime = OperandLifeTime::SubgraphInput;
                graph.inputs.push(index);
                let input = match value {
                    _ if made.is_omitted => Some(None),
                    Some(bytes) => Some(Some((bytes.clone(), made.shape.to_model()))),
                    None => filled(&operand, &[]).map(Some),
                };
                // Half of what has a value is declared as of any shape.
                if source.byte() > 127 {
                    operand.dimensions.fill(0);
                }
                inputs = inputs.zip(input).map(|(mut inputs, input)| {
                    inputs.push(input);
                    inputs
                });
            }
        }
        step.inputs.push(index);
        graph.operands.push(operand);
    }
    for made in &invocation.outputs {
        let index = u32::try_from(graph.operands.len()).expect("few operands");
        step.outputs.push(index);
        graph.outputs.push(index);
        let lifetime = OperandLifeTime::SubgraphOutput;
        graph.operands.push(Operand { number_of_consumers: 0, lifetime, ..declared(made) });
    }
    graph.operations.push(step);
    model.operand_values = values.into();
    (model, inputs)
}

fn declared(made: &Made) -> Operand {
    Operand { dimensions: made.shape.to_model(), ..made.operand.clone() }
}

/// For each input of the model bytes of `values`, over and over, if all are small enough.
fn inputs_of(model: &Model, values: &[u8]) -> Option<Vec<Input>> {
    let operand = |index: &u32| model.main.operands.get(*index as usize);
    model.main.inputs.iter().map(|index| Some(filled(operand(index)?, values))).collect()
}

/// A value for an operand, lengths that are not known taken as 2.
fn filled(operand: &Operand, values: &[u8]) -> Input {
    let dimensions: Vec<u32> =
        operand.dimensions.iter().map(|length| if *length == 0 { 2 } else { *length }).collect();
    let count = dimensions.iter().try_fold(1_u32, |count, length| count.checked_mul(*length))?;
    let size = count.checked_mul(operand.operand_type.element_size()?)?;
    let is_small = u64::from(size) <= 4 * MOST_ELEMENTS;
    let bytes = values.iter().copied().cycle().chain(std::iter::repeat(0));
    is_small.then(|| (bytes.take(size as usize).collect(), dimensions))
}

/// Prepares the model, if it is one, runs it, and runs it again with the output shapes that it then
/// had.
fn run(model: &Model, inputs: Option<&[Input]>) {
    let supported = device().supported_operations(model, HalVersion::LATEST);
    let prepared = device().prepare_model(model, HalVersion::LATEST, PrepareOptions::default());
    supported.as_ref().map_or_else(expect_no_panic, drop);
    prepared.as_ref().map_or_else(expect_no_panic, drop);
    let is_invalid = |status| status == ErrorStatus::InvalidArgument;
    let refused = supported.as_ref().is_err_and(|error| is_invalid(error.status()));
    let supports_all = supported.is_ok_and(|all| all.iter().all(nnhal_hal::Support::is_yes));
    let prepared = match prepared {
        Ok(prepared) => prepared,
        Err(error) if refused => return assert!(is_invalid(error.status()), "{error}"),
        Err(error) => {
            let too_large = error.status() == ErrorStatus::ResourceExhaustedPersistent;
            return assert!(!supports_all || too_large, "{error}");
        }
    };
    assert!(!refused, "prepared, but said to be invalid");
    let Some(inputs) = inputs else { return };
    let expected = execute(&*prepared, model, inputs);
    for device in fast_devices() {
        match device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()) {
            Ok(prepared) => agree(model, &expected, &execute(&*prepared, model, inputs)),
            Err(error) => {
                expect_no_panic(&error);
                assert!(is_exhausted(error.status()), "{error}");
            }
        }
    }
    let Ok((shapes, outputs)) = expected else { return };
    // In a model, 0 is no length.
    if shapes.iter().flatten().any(|length| *length == 0) {
        return;
    }
    let mut known = model.clone();
    for (index, shape) in model.main.outputs.iter().zip(&shapes) {
        known.main.operands[*index as usize].dimensions.clone_from(shape);
    }
    // With seeds of 0 no one can foretell what it draws.
    let is_random = model
        .subgraphs()
        .flat_map(|(_, graph)| &graph.operations)
        .any(|step| step.operation_type == OperationType::RandomMultinomial);
    let again = device()
        .prepare_model(&known, HalVersion::LATEST, PrepareOptions::default())
        .map(|prepared| execute(&*prepared, &known, inputs));
    match again {
        Ok(Ok(again)) if is_random => assert_eq!(again.0, shapes),
        Ok(Ok(again)) => assert_eq!(again, (shapes, outputs)),
        Ok(Err(status)) => panic!("fails once its output shapes are known: {status}"),
        Err(error) => panic!("refused once its output shapes are known: {error}"),
    }
}

/// The driver makes an error of a panic, which is none of a model's outcomes.
fn expect_no_panic(error: &nnhal_hal::Error) {
    let error = error.to_string();
    assert!(!error.contains("panicked"), "{error}");
}

/// The memory limit is not reached at the same place by all, nor are deadlines.
fn is_exhausted(status: ErrorStatus) -> bool {
    matches!(
        status,
        ErrorStatus::ResourceExhaustedPersistent
            | ErrorStatus::ResourceExhaustedTransient
            | ErrorStatus::MissedDeadlinePersistent
            | ErrorStatus::MissedDeadlineTransient
    )
}

/// What the fast engine found must be what the reference expects. Floats may be rounded otherwise, so
/// that of several operations only the shapes are compared, and of one all that is no float.
fn agree(model: &Model, expected: &Outcome, found: &Outcome) {
    let ((shapes, outputs), (found_shapes, found_outputs)) = match (expected, found) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(status), _) | (_, Err(status)) if is_exhausted(*status) => return,
        (expected, found) => return assert_eq!(expected.is_ok(), found.is_ok(), "{found:?}"),
    };
    let [operation] = &*model.main.operations else { return };
    assert_eq!(found_shapes, shapes);
    use OperationType as O;
    let steps = match operation.operation_type {
        O::If | O::While | O::RandomMultinomial => return,
        O::LogSoftmax | O::Logistic | O::Softmax | O::Tanh => 1,
        _ => 0,
    };
    for (position, (found, expected)) in found_outputs.iter().zip(outputs).enumerate() {
        let operand = &model.main.operands[model.main.outputs[position] as usize];
        let is_signed = match operand.operand_type {
            OperandType::TensorFloat32 | OperandType::TensorFloat16 => continue,
            OperandType::TensorQuant8AsymmSigned => true,
            _ => false,
        };
        for (found, expected) in found.iter().zip(expected) {
            let distance = match is_signed {
                true => found.cast_signed().abs_diff(expected.cast_signed()),
                false => found.abs_diff(*expected),
            };
            assert!(distance <= steps, "{found} and not {expected} of {operation:?}");
        }
    }
}

/// Shapes and bytes of the outputs.
type Outcome = Result<(Vec<Vec<u32>>, Vec<Vec<u8>>), ErrorStatus>;

/// Executes a prepared model.
fn execute(prepared: &dyn nnhal_hal::PreparedModel, model: &Model, inputs: &[Input]) -> Outcome {
    let mut builder = RequestBuilder::new();
    for input in inputs {
        match input {
            Some((bytes, dimensions)) => builder.input_shaped(bytes, dimensions),
            None => builder.omitted_input(),
        };
    }
    for _ in &model.main.outputs {
        builder.output(usize::try_from(MEMORY_LIMIT).expect("small"));
    }
    let request = builder.build().expect("memory");
    let options = ExecutionOptions {
        deadline: Some(Deadline::after(DEADLINE)),
        loop_timeout: Some(Duration::from_millis(5)),
        ..ExecutionOptions::default()
    };
    let started = Instant::now();
    let executed = prepared.execute(&request, &options);
    assert!(started.elapsed() < DEADLINE + LATE, "{:?}", started.elapsed());
    let execution = executed.map_err(|failed| {
        expect_no_panic(&failed.error);
        failed.error.status()
    })?;
    assert_eq!(execution.output_shapes.len(), model.main.outputs.len());
    let mut outputs = Vec::new();
    for (position, shape) in execution.output_shapes.iter().enumerate() {
        assert!(shape.is_sufficient);
        let operand = &model.main.operands[model.main.outputs[position] as usize];
        let size = operand.operand_type.element_size().unwrap_or(0);
        let is_empty = shape.dimensions.contains(&0);
        let size =
            if is_empty { 0 } else { shape.dimensions.iter().fold(size, |size, it| size * it) };
        let mut bytes = RequestBuilder::read_output(&request, position).expect("written");
        bytes.truncate(size as usize);
        outputs.push(bytes);
    }
    Ok((execution.output_shapes.into_iter().map(|shape| shape.dimensions).collect(), outputs))
}
