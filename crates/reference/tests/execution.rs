//! Models that run on the reference device, through [`hal::Device`] alone.

mod support;

use hal::{OperandSpec, OperationType, SubgraphBuilder};
use support::{f32s, prepare, run};

#[test]
fn exec_6_an_addition_gives_the_sum() {
    let mut graph = SubgraphBuilder::new();
    let a = graph.input("a", OperandSpec::tensor_float32([2]));
    let b = graph.input("b", OperandSpec::tensor_float32([2]));
    let none = graph.scalar_i32(0);
    let sum = graph.operation(OperationType::Add, [a, b, none], OperandSpec::tensor_float32([2]));
    graph.output(sum);
    let prepared = prepare(&graph.into_model().unwrap());
    let outputs = run(&*prepared, &[&f32s(&[1.0, 2.0]), &f32s(&[10.0, -5.0])], &[8]).unwrap();
    assert_eq!(outputs, [(vec![2], f32s(&[11.0, -3.0]))]);
}
