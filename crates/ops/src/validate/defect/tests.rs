use super::*;
use crate::validate::check;
use nnhal_hal::builder::SubgraphId;
use nnhal_hal::{ModelBuilder, OperandSpec, SubgraphBuilder};

fn float(length: u32) -> OperandSpec {
    OperandSpec::tensor_float32([length])
}

fn unary(output: u32) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float(2));
    let y = graph.operation(OperationType::Relu, [x], float(output));
    graph.output(y);
    graph
}

/// An IF of two subgraphs on the first input, as another output.
fn choose(graph: &mut SubgraphBuilder, branches: [SubgraphId; 2]) {
    let condition = graph.constant(OperandSpec::tensor_bool8([1]), &[true]);
    let x = graph.input("x", float(2));
    let [then, otherwise] = branches.map(|branch| graph.subgraph(branch));
    let y = graph.operation(OperationType::If, [condition, then, otherwise, x], float(0));
    graph.output(y);
}

fn checked(model: &Model) -> CheckedModel {
    check(model, HalVersion::LATEST).expect("a valid model")
}

#[test]
fn model_29_what_is_left_is_valid_and_names_its_operations() {
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", float(2));
    let a = graph.operation(OperationType::Relu, [x], float(2));
    let bad = graph.operation(OperationType::Relu, [a], float(3));
    let other = graph.operation(OperationType::Relu, [x], float(5));
    let c = graph.operation(OperationType::Relu, [bad], float(0));
    graph.output(c);
    graph.output(other);
    let checked = checked(&graph.into_model().unwrap());
    assert_eq!(checked.defects().iter().map(|it| it.operation).collect::<Vec<_>>(), [1, 2]);
    let part = checked.runnable_part().expect("two operations");
    assert_eq!(part.operations, [0, 3]);
    let main = part.model.main();
    assert_eq!(main.operations.len(), 2);
    // What operations with a defect would have written comes from outside.
    assert_eq!((main.inputs.len(), main.outputs.len()), (3, 1));
    assert!(checked.own_defect(1).is_some() && checked.own_defect(3).is_none());
}

#[test]
fn nothing_is_left_of_a_model_whose_operations_all_have_defects() {
    let checked = checked(&unary(3).into_model().unwrap());
    assert!(checked.runnable_part().is_none());
    assert!(checked.into_valid().is_err());
}

#[test]
fn a_defect_in_a_subgraph_is_an_obstacle_for_all_that_run_it() {
    let mut builder = ModelBuilder::new();
    let good = builder.reference(unary(2));
    let bad = builder.reference(unary(3));
    let mut middle = SubgraphBuilder::new();
    choose(&mut middle, [bad, good]);
    let middle = builder.reference(middle);
    let mut main = SubgraphBuilder::new();
    choose(&mut main, [good, good]);
    choose(&mut main, [good, middle]);
    choose(&mut main, [bad, good]);
    let checked = checked(&builder.build(main).unwrap());
    let [defect] = checked.defects() else { panic!("{:?}", checked.defects()) };
    assert_eq!(defect.subgraph, SubgraphName::Referenced(1));
    assert_eq!(checked.obstacles(), [None, Some(defect), Some(defect)]);
    assert!((0..3).all(|index| checked.own_defect(index).is_none()));
    let part = checked.runnable_part().expect("an operation");
    assert_eq!(part.operations, [0]);
    assert_eq!(part.model.main().operations.len(), 1);
}

#[test]
fn a_model_without_defects_is_left_whole() {
    let model = unary(2).into_model().unwrap();
    let checked = checked(&model);
    assert_eq!(checked.obstacles(), [None]);
    assert_eq!(checked.runnable_part().unwrap().operations, [0]);
    assert_eq!(checked.into_valid().unwrap().model().main, model.main);
}
