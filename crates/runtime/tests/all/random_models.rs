//! Whatever a model is and however it is divided, it computes the same.

use crate::support::scripted::Scripted;
use crate::support::{int32, operation};
use nnhal_hal::OperationType::{
    self, Abs, Add, Concatenation, Floor, Logistic, Maximum, Mul, Neg, Relu, Sub, Tanh,
};
use nnhal_runtime::{
    CompilationBuilder, Devices, Execution, Model, ModelBuilder, OperandDescription, OutputBuffer,
};
use proptest::prelude::*;
use std::sync::Arc;

/// An operation: which, on which of the tensors so far, whether its shape is left open.
#[derive(Debug, Clone)]
struct Step {
    operation: usize,
    first: prop::sample::Index,
    second: prop::sample::Index,
    is_open: bool,
}

/// A model of tensors of 3 columns, and how it is divided and run.
#[derive(Debug, Clone)]
struct Plan {
    inputs: Vec<u32>,
    steps: Vec<Step>,
    /// Who does the operation at this place.
    doers: Vec<u8>,
    /// Which results, besides the last, are outputs.
    outputs: Vec<prop::sample::Index>,
    /// Rotates the order in which operations are added.
    rotation: usize,
    values: Vec<f32>,
}

const UNARY: [OperationType; 6] = [Abs, Floor, Logistic, Neg, Relu, Tanh];
const BINARY: [OperationType; 4] = [Add, Maximum, Mul, Sub];

fn plans() -> impl Strategy<Value = Plan> {
    let step =
        (0..11_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(operation, first, second, is_open)| Step {
                operation,
                first,
                second,
                is_open,
            });
    (
        prop::collection::vec(1_u32..4, 1..4),
        prop::collection::vec(step, 1..24),
        prop::collection::vec(0_u8..3, 24),
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        any::<usize>(),
        prop::collection::vec(-4.0_f32..4.0, 48),
    )
        .prop_map(|(inputs, steps, doers, outputs, rotation, values)| Plan {
            inputs,
            steps,
            doers,
            outputs,
            rotation,
            values,
        })
}

/// The model, and the rows of each output.
fn build(devices: &Devices, plan: &Plan) -> (Model, Vec<u32>) {
    let mut builder = ModelBuilder::new(devices);
    let none = int32(&mut builder, 0);
    let rows_axis = int32(&mut builder, 0);
    let mut tensors: Vec<(u32, u32)> = Vec::new();
    let tensor = |builder: &mut ModelBuilder, rows: u32, is_open: bool| {
        let dimensions = if is_open { vec![0, 3] } else { vec![rows, 3] };
        builder.add_operand(&OperandDescription::tensor_float32(dimensions)).unwrap()
    };
    for rows in &plan.inputs {
        tensors.push((tensor(&mut builder, *rows, false), *rows));
    }
    let inputs: Vec<u32> = tensors.iter().map(|(operand, _)| *operand).collect();
    let mut operations = Vec::new();
    for step in &plan.steps {
        let (first, rows) = tensors[step.first.index(tensors.len())];
        let of_same_size: Vec<u32> =
            tensors.iter().filter(|(_, it)| *it == rows).map(|(operand, _)| *operand).collect();
        let (second, second_rows) = tensors[step.second.index(tensors.len())];
        let (operation, inputs, rows) = match step.operation {
            unary @ 0..6 => (UNARY[unary], vec![first], rows),
            // One that does not grow without end.
            10 if rows + second_rows < 12 => {
                (Concatenation, vec![first, second, rows_axis], rows + second_rows)
            }
            other => {
                let binary = BINARY[other % BINARY.len()];
                let second = of_same_size[step.second.index(of_same_size.len())];
                let inputs = match binary {
                    Maximum => vec![first, second],
                    _ => vec![first, second, none],
                };
                (binary, inputs, rows)
            }
        };
        let output = tensor(&mut builder, rows, step.is_open);
        tensors.push((output, rows));
        operations.push((operation, inputs, output));
    }
    let count = operations.len();
    for index in 0..count {
        let (operation_type, inputs, output) = &operations[(index + plan.rotation % count) % count];
        operation(&mut builder, *operation_type, inputs, &[*output]).unwrap();
    }
    let results = &tensors[plan.inputs.len()..];
    let mut outputs = vec![results[results.len() - 1]];
    for index in &plan.outputs {
        let result = results[index.index(results.len())];
        if !outputs.contains(&result) {
            outputs.push(result);
        }
    }
    let names: Vec<u32> = outputs.iter().map(|(operand, _)| *operand).collect();
    builder.identify_inputs_and_outputs(&inputs, &names).unwrap();
    let rows = outputs.into_iter().map(|(_, rows)| rows).collect();
    (builder.finish().unwrap(), rows)
}

fn compute(devices: &Devices, plan: &Plan) -> (usize, Vec<Vec<u8>>) {
    let (model, rows) = build(devices, plan);
    let compilation = CompilationBuilder::new(&model).finish().unwrap();
    let execution = Execution::new(&compilation);
    execution.set_reusable(true).unwrap();
    for (index, rows) in (0..).zip(&plan.inputs) {
        let count = *rows as usize * 3;
        let from = index as usize * 7;
        let values = &plan.values[from..from + count];
        execution.set_input(index, None, Some(crate::support::bytes(values))).unwrap();
    }
    let mut outputs = Vec::new();
    for (index, rows) in (0..).zip(&rows) {
        let output = OutputBuffer::new(*rows as usize * 12);
        execution.set_output(index, None, Some(Arc::new(output.clone()))).unwrap();
        outputs.push(output);
    }
    execution.compute().unwrap();
    let first: Vec<_> = outputs.iter().map(OutputBuffer::to_vec).collect();
    execution.start_compute().unwrap().wait().unwrap();
    let second: Vec<_> = outputs.iter().map(OutputBuffer::to_vec).collect();
    assert_eq!(first, second, "the second time");
    for (index, rows) in (0..).zip(&rows) {
        assert_eq!(execution.output_dimensions(index).unwrap().dimensions, [*rows, 3]);
    }
    (compilation.steps().len(), first)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_model_divided_among_three_devices_computes_what_one_computes(plan in plans()) {
        let one = Devices::new([nnhal_reference::device()]);
        let doer = |wanted: u8| {
            let doers = plan.doers.clone();
            move |index: usize, _: OperationType| doers[index % doers.len()] == wanted
        };
        let three = Devices::new([
            Arc::new(Scripted::new("test-first", doer(0))) as Arc<dyn nnhal_hal::Device>,
            Arc::new(Scripted::new("test-second", doer(1)).with_cost(3.0)),
            nnhal_reference::device(),
        ]);
        let (steps, expected) = compute(&one, &plan);
        prop_assert_eq!(steps, 1);
        let (_, found) = compute(&three, &plan);
        prop_assert_eq!(found, expected);
    }
}
