//! What the text of the interface excludes and our devices run all the same (decision 40).

use nnhal_hal::{
    Device, ExecutionOptions, HalVersion, Model, ModelBuilder, OperandSpec, OperationType,
    PrepareOptions, RequestBuilder, SubgraphBuilder, Support,
};
use std::sync::Arc;

/// By the trait, and behind the interfaces.
fn devices() -> [Arc<dyn Device>; 2] {
    let through = nnhal_hidl::client::through(
        nnhal_reference::device(),
        HalVersion::V1_3,
        nnhal_hidl::client::Options::default(),
    );
    [nnhal_reference::device(), through.unwrap()]
}

fn float(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// What a model that all devices must run gives, if it has an output of two floats.
fn result(model: &Model, input: Option<&[f32]>, outputs: usize) -> Vec<f32> {
    let mut all = Vec::new();
    for device in devices() {
        let supported = device.supported_operations(model, device.version()).unwrap();
        assert!(supported.iter().all(Support::is_yes), "{supported:?}");
        let prepared =
            device.prepare_model(model, device.version(), PrepareOptions::default()).unwrap();
        let mut request = RequestBuilder::new();
        if let Some(values) = input {
            request.input_shaped(&bytes(values), &[u32::try_from(values.len()).unwrap()]);
        }
        for _ in 0..outputs {
            request.output(8);
        }
        let request = request.build().unwrap();
        let execution = prepared.execute(&request, &ExecutionOptions::default()).unwrap();
        assert_eq!(execution.output_shapes.len(), outputs);
        let mut found = Vec::new();
        for index in 0..outputs {
            let bytes = RequestBuilder::read_output(&request, index).unwrap();
            let (floats, _) = bytes.as_chunks::<4>();
            found.extend(floats.iter().map(|it| f32::from_le_bytes(*it)));
        }
        all.push(found);
    }
    assert_eq!(all[0], all[1]);
    all.swap_remove(0)
}

#[test]
fn model_2_a_graph_without_inputs_computes_from_constants() {
    let mut graph = SubgraphBuilder::new();
    let constant = graph.constant(float([2]), &[-1.0_f32, 3.0]);
    let y = graph.operation(OperationType::Relu, [constant], float([2]));
    graph.output(y);
    assert_eq!(result(&graph.into_model().unwrap(), None, 1), [0.0, 3.0]);
}

#[test]
fn model_2_a_graph_without_outputs_computes_nothing_that_is_seen() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float([2]));
    graph.operation(OperationType::Relu, [x], float([2]));
    assert!(result(&graph.into_model().unwrap(), Some(&[1.0, 2.0]), 0).is_empty());
}

fn branch(operation: OperationType, dimensions: &[u32]) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float(dimensions));
    let y = graph.operation(operation, [x], float(dimensions));
    graph.output(y);
    graph
}

#[test]
fn cf_4_an_if_of_unknown_size_runs_with_the_size_that_it_gets() {
    for dimensions in [&[0][..], &[]] {
        for (truth, expected) in [(true, [0.0, 2.0]), (false, [-1.0, 2.0])] {
            let mut builder = ModelBuilder::new();
            let then = builder.reference(branch(OperationType::Relu, dimensions));
            let otherwise = builder.reference(branch(OperationType::Floor, dimensions));
            let mut main = SubgraphBuilder::new();
            let condition = main.constant(OperandSpec::tensor_bool8([1]), &[truth]);
            let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
            let x = main.input("x", float(dimensions));
            let arguments = [condition, then, otherwise, x];
            let y = main.operation(OperationType::If, arguments, float(dimensions));
            main.output(y);
            let model = builder.build(main).unwrap();
            assert_eq!(result(&model, Some(&[-1.0, 2.0]), 1), expected);
        }
    }
}

#[test]
fn cf_8_subgraphs_that_nothing_reads_or_reaches_change_nothing() {
    let mut builder = ModelBuilder::new();
    let unread = builder.reference(branch(OperationType::Floor, &[2]));
    builder.reference(branch(OperationType::Tanh, &[2]));
    let mut main = SubgraphBuilder::new();
    main.subgraph(unread);
    let x = main.input("x", float([2]));
    let y = main.operation(OperationType::Relu, [x], float([2]));
    main.output(y);
    assert_eq!(result(&builder.build(main).unwrap(), Some(&[-1.0, 2.0]), 1), [0.0, 2.0]);
}
