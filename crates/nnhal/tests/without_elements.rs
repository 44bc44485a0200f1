//! Inputs without elements beside outputs that have some.

#![allow(clippy::unwrap_used, reason = "a test that fails says where")]

use nnhal::graph::{
    self, BuiltinOperator, BuiltinOptions, ConcatenationOptions, Graph, Operator, TensorType,
};
use nnhal::hal::Memory;
use nnhal::{Error, Model, RunOptions, Session, SessionOptions, Tensor};

const DEVICES: [&str; 2] = ["nnhal-reference", "nnhal-cpu"];

fn tensor(shape: &[i32]) -> graph::Tensor {
    let of_example = shape.iter().map(|length| if *length < 0 { 1 } else { *length });
    graph::Tensor {
        shape: Some(of_example.collect()),
        shape_signature: shape.contains(&-1).then(|| shape.to_vec()),
        type_: TensorType::Float32 as i8,
        has_rank: true,
        ..graph::Tensor::default()
    }
}

/// Rows that there are already, of which there need not be any, and two more.
fn cache() -> Model {
    let mut graph = Graph::new();
    let (past, x) = (graph.tensor(tensor(&[-1, 3])), graph.tensor(tensor(&[2, 3])));
    let y = graph.tensor(tensor(&[-1, 3]));
    let join = Operator {
        inputs: Some(vec![past, x]),
        outputs: Some(vec![y]),
        builtin_options: Some(BuiltinOptions::ConcatenationOptions(Box::new(
            ConcatenationOptions { axis: 0, ..ConcatenationOptions::default() },
        ))),
        ..Operator::default()
    };
    graph.operator(BuiltinOperator::Concatenation as i32, None, 1, join);
    graph.ends(vec![past, x], vec![y]);
    Model::from_graph(graph, None).unwrap()
}

/// RELU of one input, and another one that nothing reads, of which the file says that it has no elements.
fn like() -> Model {
    let mut graph = Graph::new();
    let (x, like) = (graph.tensor(tensor(&[2])), graph.tensor(tensor(&[0])));
    let y = graph.tensor(tensor(&[2]));
    let relu = Operator { inputs: Some(vec![x]), outputs: Some(vec![y]), ..Operator::default() };
    graph.operator(BuiltinOperator::Relu as i32, None, 1, relu);
    graph.ends(vec![x, like], vec![y]);
    Model::from_graph(graph, None).unwrap()
}

fn rows(count: usize) -> Tensor {
    let values: Vec<f32> = (0..3 * count).map(|at| at as f32).collect();
    Tensor::new([count, 3], &values).unwrap()
}

fn session(model: &Model, device: &str) -> Session {
    model.session(SessionOptions::new().device(device)).unwrap()
}

#[test]
fn a_part_without_elements_is_joined() {
    for device in DEVICES {
        let session = session(&cache(), device);
        for count in [0, 2, 0, 0, 5, 0] {
            let more = Tensor::new([2, 3], &[9.0_f32, 8.0, 7.0, 6.0, 5.0, count as f32]).unwrap();
            let outputs = session.run([&rows(count), &more]).unwrap();
            assert_eq!(outputs[0].shape(), [count + 2, 3], "{device}");
            let expected = [rows(count).to_f32(), more.to_f32()].concat();
            assert_eq!(outputs[0].to_f32(), expected, "{device}");
        }
    }
}

#[test]
fn an_input_that_the_file_has_without_elements_may_be_there() {
    for device in DEVICES {
        let session = session(&like(), device);
        let empty = Tensor::new([0], &[0.0_f32; 0]).unwrap();
        for x in [[1.0_f32, -1.0], [-2.0, 2.0]] {
            let outputs = session.run([&Tensor::new([2], &x).unwrap(), &empty]).unwrap();
            assert_eq!(outputs[0].to_f32(), x.map(|it| it.max(0.0)), "{device}");
        }
    }
}

#[test]
fn values_are_in_memory_of_the_caller() {
    let mut runner = session(&cache(), "nnhal-cpu").runner().unwrap();
    runner.resize_input(0, &[0, 3]).unwrap();
    for first in [1.0_f32, 11.0] {
        let bytes: Vec<u8> =
            [first, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().flat_map(f32::to_ne_bytes).collect();
        let [input, output] = [&bytes, &vec![0; 24]].map(|it| Memory::from_bytes(it).unwrap());
        let options = RunOptions::default();
        runner.run_in(&options, &[None, Some(input)], &[Some(output.clone())], None).unwrap();
        assert_eq!(output.view().unwrap().read_to_vec(0, 24).unwrap(), bytes);
        assert_eq!(runner.output_shape(0).unwrap(), Some(&[2, 3][..]));
    }
}

#[test]
fn a_model_can_be_made_for_it() {
    let model = cache().with_input_shapes(&[Some(vec![0, 3]), None], true).unwrap();
    assert_eq!(model.inputs()[0].known_shape(), Some(vec![0, 3]));
    assert_eq!(model.outputs()[0].known_shape(), Some(vec![2, 3]));
    for device in DEVICES {
        let mut runner = session(&model, device).runner().unwrap();
        assert_eq!(runner.input_shape(0).unwrap(), Some(vec![0, 3]));
        assert_eq!(runner.input(0).unwrap().shape(), [0, 3]);
        let wrong = runner.set_input(0, &rows(1)).unwrap_err();
        assert!(matches!(wrong, Error::Input { .. }), "{wrong}");
        assert!(runner.set_input(0, &[1.0_f32][..]).is_err(), "too many elements");
        runner.set_input(0, &rows(0)).unwrap();
        runner.set_input(1, &rows(2)).unwrap();
        runner.run().unwrap();
        assert_eq!(runner.output(0).unwrap().to_f32(), rows(2).to_f32(), "{device}");
    }
}

#[test]
fn what_nothing_can_be_computed_of_is_an_error() {
    let session = session(&like(), "nnhal-cpu");
    let empty = Tensor::new([0, 1], &[0.0_f32; 0]).unwrap();
    let error = session.run([&Tensor::new([2], &[1.0_f32, 2.0]).unwrap(), &empty]).unwrap_err();
    assert!(matches!(error, Error::Input { .. } | Error::Import { .. }), "{error}");
}
