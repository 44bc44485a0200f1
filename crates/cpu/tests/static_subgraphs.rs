//! Models that cannot be planned as a whole: what is between control flow and shapes that data
//! decide runs by plans, and gives what the reference device gives.

use nnhal_cpu::Settings;
use nnhal_driver::Prepared;
use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, Model, ModelBuilder, OperandSpec, OperationType as O,
    PrepareOptions, PreparedModel, RequestBuilder, SubgraphBuilder,
};
use std::sync::Arc;

fn floats(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn counter() -> OperandSpec {
    OperandSpec::tensor_int32([1])
}

/// Weights that are not all alike.
fn weights(count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 37 % 101) as f32 - 50.0) / 200.0).collect()
}

/// A fully connected layer of 64 units.
fn layer(
    graph: &mut SubgraphBuilder,
    x: nnhal_hal::OperandId,
    output: OperandSpec,
) -> nnhal_hal::OperandId {
    let filter = graph.constant(floats(&[64, 64]), &weights(64 * 64));
    let bias = graph.constant(floats(&[64]), &weights(64));
    let none = graph.scalar_i32(0);
    graph.operation(O::FullyConnected, [x, filter, bias, none], output)
}

/// `while i < limit: x = tanh(layer(x)), i = i + 1`, between two layers.
fn recurrent() -> Model {
    let mut builder = ModelBuilder::new();
    let variables = |graph: &mut SubgraphBuilder| {
        [floats(&[2, 64]), counter(), counter()].map(|spec| graph.input("", spec))
    };

    let mut condition = SubgraphBuilder::new();
    let [_, i, limit] = variables(&mut condition);
    let is_less = condition.operation(O::Less, [i, limit], OperandSpec::tensor_bool8([1]));
    condition.output(is_less);
    let condition = builder.reference(condition);

    let mut body = SubgraphBuilder::new();
    let [x, i, _] = variables(&mut body);
    let sums = layer(&mut body, x, floats(&[2, 64]));
    let next = body.operation(O::Tanh, [sums], floats(&[2, 64]));
    let (one, none) = (body.constant(counter(), &[1]), body.scalar_i32(0));
    let i = body.operation(O::Add, [i, one, none], counter());
    body.output(next);
    body.output(i);
    let body = builder.reference(body);

    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let x = main.input("x", floats(&[2, 64]));
    let limit = main.input("limit", counter());
    let zero = main.constant(counter(), &[0]);
    let x = layer(&mut main, x, floats(&[2, 64]));
    let x = main.operation(O::While, [condition, body, x, zero, limit], floats(&[2, 64]));
    let x = layer(&mut main, x, floats(&[2, 64]));
    main.output(x);
    builder.build(main).unwrap()
}

/// A layer, a reshape by a request's shape, and another layer.
fn reshaping() -> Model {
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", floats(&[2, 64]));
    let shape = main.input("shape", OperandSpec::tensor_int32([2]));
    let x = layer(&mut main, x, floats(&[2, 64]));
    let x = main.operation(O::Reshape, [x, shape], floats(&[0, 64]));
    let x = layer(&mut main, x, floats(&[0, 64]));
    let x = main.operation(O::Relu, [x], floats(&[0, 64]));
    main.output(x);
    main.into_model().unwrap()
}

fn prepare(device: &dyn Device, model: &Model) -> Arc<dyn PreparedModel> {
    device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()).unwrap()
}

fn fast() -> Arc<dyn Device> {
    nnhal_cpu::device(Settings::default())
}

/// The output of two rows for an input and an argument of integers.
fn run(prepared: &dyn PreparedModel, integers: &[i32]) -> Vec<f32> {
    let mut request = RequestBuilder::new();
    let input: Vec<u8> = weights(128).iter().flat_map(|it| it.to_le_bytes()).collect();
    let integers: Vec<u8> = integers.iter().flat_map(|it| it.to_le_bytes()).collect();
    request.input(&input).input(&integers).output(2 * 64 * 4);
    let request = request.build().unwrap();
    let execution = prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    assert_eq!(execution.dimensions(0), Some(&[2, 64][..]));
    let bytes = RequestBuilder::read_output(&request, 0).unwrap();
    let (elements, _) = bytes.as_chunks();
    elements.iter().map(|element| f32::from_le_bytes(*element)).collect()
}

fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} and not {expected}");
    }
    assert!(expected.iter().any(|it| it.abs() > 0.01), "nothing is compared");
}

/// The kernels of the plans that executions have made, by type of operation.
fn kernels(prepared: &dyn PreparedModel, operation: O) -> Vec<String> {
    let plan = Prepared::of(prepared).expect("one of ours").plan();
    let steps = plan.into_iter().filter(|step| step.place.operation_type == operation);
    steps.map(|step| step.kernel).collect()
}

#[test]
fn loops_run_by_plans() {
    let (model, reference) = (recurrent(), nnhal_reference::device());
    let (expected, fast) = (prepare(&*reference, &model), prepare(&*fast(), &model));
    for limit in [0, 1, 5, 3] {
        assert_close(&run(&*fast, &[limit]), &run(&*expected, &[limit]));
    }
    // Before the loop, in it, and behind it.
    let layers = kernels(&*fast, O::FullyConnected);
    assert_eq!(layers.len(), 3);
    assert!(layers.iter().all(|kernel| kernel != "reference"), "{layers:?}");
}

#[test]
fn what_follows_data_that_decides_shapes_runs_by_plans() {
    let (model, reference) = (reshaping(), nnhal_reference::device());
    let (expected, fast) = (prepare(&*reference, &model), prepare(&*fast(), &model));
    for _ in 0..2 {
        assert_close(&run(&*fast, &[2, 64]), &run(&*expected, &[2, 64]));
        assert_close(&run(&*fast, &[-1, 64]), &run(&*expected, &[-1, 64]));
    }
    assert_eq!(kernels(&*fast, O::FullyConnected).len() + kernels(&*fast, O::Relu).len(), 2);
    // What the interpreter has to say of the shape it still says.
    let mut request = RequestBuilder::new();
    request.input(&[0; 512]).input(&[3, 0, 0, 0, 64, 0, 0, 0]).output(512);
    let request = request.build().unwrap();
    let failed = fast.execute(&request, &ExecutionOptions::default()).unwrap_err();
    assert!(failed.error.to_string().contains("RESHAPE"), "{}", failed.error);
}

#[test]
fn values_of_other_lengths_get_plans_of_their_own() {
    // A hundred lengths, of which plans for a few are kept.
    let mut main = SubgraphBuilder::new();
    let x = main.input("x", OperandSpec::tensor_float32([0]));
    let shape = main.input("shape", OperandSpec::tensor_int32([1]));
    let x = main.operation(O::Reshape, [x, shape], floats(&[0]));
    let x = main.operation(O::Relu, [x], floats(&[0]));
    main.output(x);
    let model = main.into_model().unwrap();
    let fast = prepare(&*fast(), &model);
    for length in (1..100_u32).chain(1..5) {
        let input: Vec<u8> = (0..length)
            .flat_map(|index| {
                (index as f32 * if index % 2 == 0 { 1.0 } else { -1.0 }).to_le_bytes()
            })
            .collect();
        let mut request = RequestBuilder::new();
        request.input_shaped(&input, &[length]).input(&(-1_i32).to_le_bytes());
        request.output(4 * length as usize);
        let request = request.build().unwrap();
        let execution = fast.execute(&request, &ExecutionOptions::default()).unwrap();
        assert_eq!(execution.dimensions(0), Some(&[length][..]));
        let output = RequestBuilder::read_output(&request, 0).unwrap();
        for (index, element) in output.as_chunks().0.iter().enumerate() {
            let expected = if index % 2 == 0 { index as f32 } else { 0.0 };
            assert_eq!(f32::from_le_bytes(*element), expected, "{index} of {length}");
        }
    }
    assert_eq!(kernels(&*fast, O::Relu).len(), 1);
}
