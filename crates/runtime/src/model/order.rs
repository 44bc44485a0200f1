//! Putting operations into an order in which they can run.

use nnhal_hal::{Operand, OperandLifeTime, Operation};

/// An order in which the operations can run, as indexes; `None` if there is none, because they wait
/// for each other or for an operand that no one writes. Operations that can run in the order given
/// stay in it. Indexes of operands are in range.
pub(super) fn run_order(operands: &[Operand], operations: &[Operation]) -> Option<Vec<usize>> {
    // For each operand, the operations that wait for it.
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); operands.len()];
    let mut missing = vec![0_usize; operations.len()];
    for (index, operation) in operations.iter().enumerate() {
        for input in &operation.inputs {
            let lifetime = operands[*input as usize].lifetime;
            if matches!(
                lifetime,
                OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput
            ) {
                missing[index] += 1;
                readers[*input as usize].push(index);
            }
        }
    }
    // The smallest first: what was in order stays so.
    let ready = (0..operations.len()).filter(|index| missing[*index] == 0);
    let mut ready: std::collections::BinaryHeap<_> = ready.map(std::cmp::Reverse).collect();
    let mut order = Vec::with_capacity(operations.len());
    let mut written = vec![false; operands.len()];
    while let Some(std::cmp::Reverse(index)) = ready.pop() {
        order.push(index);
        for output in &operations[index].outputs {
            // What is written twice is found by validation; here it must not count twice.
            if std::mem::replace(&mut written[*output as usize], true) {
                continue;
            }
            for reader in &readers[*output as usize] {
                missing[*reader] -= 1;
                if missing[*reader] == 0 {
                    ready.push(std::cmp::Reverse(*reader));
                }
            }
        }
    }
    (order.len() == operations.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{DataLocation, ExtraParams, OperandType, OperationType};

    fn operands(lifetimes: &[OperandLifeTime]) -> Vec<Operand> {
        let operand = |lifetime: &OperandLifeTime| Operand {
            operand_type: OperandType::TensorFloat32,
            dimensions: vec![1],
            number_of_consumers: 0,
            scale: 0.0,
            zero_point: 0,
            lifetime: *lifetime,
            location: DataLocation::default(),
            extra_params: ExtraParams::None,
        };
        lifetimes.iter().map(operand).collect()
    }

    fn operation(input: u32, output: u32) -> Operation {
        Operation {
            operation_type: OperationType::Relu,
            inputs: vec![input],
            outputs: vec![output],
        }
    }

    #[test]
    fn operations_wait_for_their_inputs() {
        use OperandLifeTime::{SubgraphInput, SubgraphOutput, TemporaryVariable};
        let operands = operands(&[SubgraphInput, TemporaryVariable, SubgraphOutput]);
        let order = |operations: &[Operation]| run_order(&operands, operations);
        assert_eq!(order(&[operation(0, 1), operation(1, 2)]), Some(vec![0, 1]));
        assert_eq!(order(&[operation(1, 2), operation(0, 1)]), Some(vec![1, 0]));
        assert_eq!(order(&[operation(1, 1)]), None, "waits for itself");
        assert_eq!(order(&[operation(1, 2)]), None, "no operation writes operand 1");
        assert_eq!(
            order(&[operation(0, 1), operation(0, 1), operation(1, 2)]),
            Some(vec![0, 1, 2])
        );
    }
}
