//! Runs in the caller's memory.

use nnhal::graph::{BuiltinOperator, Constant, Graph, Operator, Tensor, TensorType};
use nnhal::hal::Memory;
use nnhal::{Model, RunOptions, SessionOptions};

fn vector(length: i32) -> Tensor {
    Tensor {
        shape: Some(vec![length]),
        type_: TensorType::Float32 as i8,
        has_rank: true,
        ..Tensor::default()
    }
}

fn bytes(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|it| it.to_ne_bytes()).collect()
}

/// x + constant, where the constant is in memory of its own.
fn sum(constant: &Memory) -> Model {
    let mut graph = Graph::new();
    let length = i32::try_from(constant.size() / 4).unwrap();
    let (x, y) = (graph.tensor(vector(length)), graph.tensor(vector(length)));
    let constant = graph.constant(vector(length), Constant::Outside(constant.clone()));
    let add =
        Operator { inputs: Some(vec![x, constant]), outputs: Some(vec![y]), ..Operator::default() };
    graph.operator(BuiltinOperator::Add as i32, None, 1, add);
    graph.ends(vec![x], vec![y]);
    Model::from_graph(graph, None).unwrap()
}

#[test]
fn constants_outside_and_arguments_of_the_caller_are_used() {
    let ramp: Vec<f32> = (0_u8..64).map(f32::from).collect();
    let session = sum(&Memory::from_bytes(&bytes(&ramp)).unwrap())
        .session(SessionOptions::new().threads(1))
        .unwrap();
    let mut runner = session.runner().unwrap();
    let input = Memory::from_bytes(&bytes(&[1000.0; 64])).unwrap();
    let output = Memory::allocate(256).unwrap();
    let options = RunOptions::default();
    runner.run_in(&options, &[Some(input)], &[Some(output.clone())], None).unwrap();
    let expected: Vec<f32> = ramp.iter().map(|it| it + 1000.0).collect();
    assert_eq!(output.view().unwrap().read_to_vec(0, 256).unwrap(), bytes(&expected));
    // Afterwards its own memory counts again.
    runner.set_input(0, &[1.0_f32; 64]).unwrap();
    runner.run().unwrap();
    let own = runner.output(0).unwrap().to_f32();
    assert_eq!((own[0], own[63]), (1.0, 64.0));
}

#[test]
fn memory_of_another_size_is_refused() {
    let session = sum(&Memory::from_bytes(&bytes(&[1.0; 64])).unwrap())
        .session(SessionOptions::new().threads(1))
        .unwrap();
    let mut runner = session.runner().unwrap();
    let options = RunOptions::default();
    let (long, short) = (Memory::allocate(256).unwrap(), Memory::allocate(128).unwrap());
    for (input, output) in [(&short, &long), (&long, &short)] {
        let lent = [Some(input.clone())];
        assert!(runner.run_in(&options, &lent, &[Some(output.clone())], None).is_err());
    }
    runner.run_in(&options, &[Some(long.clone())], &[Some(long)], None).unwrap();
}

#[test]
fn a_graph_that_makes_no_sense_is_refused() {
    let constant = Memory::from_bytes(&bytes(&[1.0; 64])).unwrap();
    let mut graph = Graph::new();
    let x = graph.tensor(vector(64));
    let constant = graph.constant(vector(65), Constant::Outside(constant));
    let add = Operator {
        inputs: Some(vec![x, constant, 70]),
        outputs: Some(vec![x]),
        ..Operator::default()
    };
    graph.operator(BuiltinOperator::Add as i32, None, 1, add);
    graph.ends(vec![x], vec![x]);
    assert!(Model::from_graph(graph, None).is_err());
}
