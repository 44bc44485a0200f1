use super::*;
use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};

/// `x -> RELU -> t -> ADD(t, t, none) -> y`; operands: x, t, none, y.
fn graph() -> Subgraph {
    let spec = || OperandSpec::tensor_float32([2]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", spec());
    let t = graph.operation(OperationType::Relu, [x], spec());
    let none = graph.scalar_i32(0);
    let y = graph.operation(OperationType::Add, [t, t, none], spec());
    graph.output(y);
    graph.into_model().unwrap().main
}

const X: u32 = 0;
const T: u32 = 1;
const NONE: u32 = 2;
const Y: u32 = 3;

#[track_caller]
fn expect(error: GraphError, change: impl FnOnce(&mut Subgraph)) {
    let mut graph = graph();
    assert_eq!(check(&graph), Ok(()));
    change(&mut graph);
    assert_eq!(check(&graph), Err(error));
}

#[test]
fn model_19_arguments_out_of_range_are_refused() {
    for found in [4, u32::MAX] {
        let (position, operands) = (0, 4);
        let side = Side::Input;
        expect(GraphError::NoSuchArgument { side, position, found, operands }, |graph| {
            graph.inputs[0] = found;
        });
        let side = Side::Output;
        expect(GraphError::NoSuchArgument { side, position, found, operands }, |graph| {
            graph.outputs[0] = found;
        });
    }
}

#[test]
fn model_19_lists_and_lifetimes_agree() {
    let expected = OperandLifeTime::SubgraphInput;
    let found = OperandLifeTime::ConstantCopy;
    let (side, position) = (Side::Input, 1);
    expect(
        GraphError::ArgumentLifeTime { side, position, operand: NONE, found, expected },
        |graph| graph.inputs.push(NONE),
    );
    expect(GraphError::ArgumentNotListed { side, operand: 0, lifetime: expected }, |graph| {
        graph.inputs.clear();
    });
    let expected = OperandLifeTime::SubgraphOutput;
    let found = OperandLifeTime::TemporaryVariable;
    let side = Side::Output;
    expect(GraphError::ArgumentLifeTime { side, position, operand: T, found, expected }, |graph| {
        graph.outputs.push(T);
    });
    expect(GraphError::ArgumentNotListed { side, operand: 3, lifetime: expected }, |graph| {
        graph.outputs.clear();
    });
}

#[test]
fn model_19_nothing_is_both_input_and_output() {
    let (found, expected) = (OperandLifeTime::SubgraphInput, OperandLifeTime::SubgraphOutput);
    let (side, position) = (Side::Output, 1);
    expect(GraphError::ArgumentLifeTime { side, position, operand: X, found, expected }, |graph| {
        graph.outputs.push(X);
    });
}

#[test]
fn model_19_arguments_are_listed_once() {
    expect(GraphError::ArgumentTwice { side: Side::Input, position: 1, operand: X }, |graph| {
        graph.inputs.push(X);
    });
    expect(GraphError::ArgumentTwice { side: Side::Output, position: 1, operand: Y }, |graph| {
        graph.outputs.push(Y);
    });
}

#[test]
fn model_20_operation_indexes_out_of_range_are_refused() {
    for found in [4, u32::MAX] {
        let (operation, operands) = (1, 4);
        let (side, position) = (Side::Input, 1);
        expect(GraphError::NoSuchOperand { operation, side, position, found, operands }, |graph| {
            graph.operations[1].inputs[1] = found;
        });
        let (side, position) = (Side::Output, 0);
        expect(GraphError::NoSuchOperand { operation, side, position, found, operands }, |graph| {
            graph.operations[1].outputs[0] = found;
        });
    }
}

#[test]
fn model_21_inputs_and_constants_are_not_written() {
    for (operand, found) in
        [(X, OperandLifeTime::SubgraphInput), (NONE, OperandLifeTime::ConstantCopy)]
    {
        expect(GraphError::Written { operation: 1, operand, found }, |graph| {
            graph.operations[1].outputs[0] = operand;
        });
    }
}

#[test]
fn model_22_results_are_written_once() {
    expect(GraphError::Writers { operand: 1, found: 2 }, |graph| {
        graph.operations[1].outputs[0] = T;
    });
    expect(GraphError::Writers { operand: 3, found: 2 }, |graph| {
        graph.operations[1].outputs.push(Y);
    });
    expect(GraphError::Writers { operand: 4, found: 0 }, |graph| {
        let mut lonely = graph.operands[T as usize].clone();
        lonely.number_of_consumers = 0;
        graph.operands.push(lonely);
    });
    expect(GraphError::Writers { operand: 1, found: 0 }, |graph| {
        graph.operations.remove(0);
    });
}

#[test]
fn model_23_nothing_is_read_before_it_is_written() {
    expect(GraphError::ReadBeforeWritten { operation: 0, operand: T }, |graph| {
        graph.operations.rotate_left(1);
    });
    // An operation that reads its own result is the shortest cycle.
    expect(GraphError::ReadBeforeWritten { operation: 0, operand: T }, |graph| {
        graph.operations[0].inputs[0] = T;
    });
}

#[test]
fn model_24_wrong_number_of_consumers_is_refused() {
    for (operand, expected) in [(0, 1), (1, 2), (2, 1), (3, 0)] {
        for found in [expected + 1, u32::MAX, expected.wrapping_sub(1)] {
            expect(GraphError::Consumers { operand, found, expected }, |graph| {
                graph.operands[operand].number_of_consumers = found;
            });
        }
    }
}

#[test]
fn sec_3_a_hundred_thousand_operations_take_no_time() {
    let mut graph = graph();
    let count = 100_000_u32;
    let (relu, t) = (graph.operations[0].clone(), graph.operands[T as usize].clone());
    graph.operations.clear();
    graph.operands.truncate(1);
    for index in 0..count {
        let mut operand = t.clone();
        operand.number_of_consumers = 1;
        graph.operands.push(operand);
        graph.operations.push(nnhal_hal::Operation {
            inputs: vec![index],
            outputs: vec![index + 1],
            ..relu.clone()
        });
    }
    let last = &mut graph.operands[count as usize];
    last.number_of_consumers = 0;
    last.lifetime = OperandLifeTime::SubgraphOutput;
    graph.outputs = vec![count];
    assert_eq!(check(&graph), Ok(()));
}
