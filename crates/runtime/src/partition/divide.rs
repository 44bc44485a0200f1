//! Dividing operations into steps.

use super::assign::Doer;
use nnhal_hal::Subgraph;
use std::collections::{BTreeMap, VecDeque};

/// Operations that are done together, by whom, in an order in which they can run.
pub(super) type Group = (Doer, Vec<usize>);

/// Puts operations with the same doer together, as far as they do not wait for others: takes all
/// that one doer can do by now, then all that the next can. What the runtime does itself is a step
/// for each operation. The graph's operations are in an order in which they can run.
pub(super) fn divide(graph: &Subgraph, doers: &[Doer]) -> Vec<Group> {
    let mut writers: Vec<Option<usize>> = vec![None; graph.operands.len()];
    for (index, operation) in graph.operations.iter().enumerate() {
        operation.outputs.iter().for_each(|output| writers[*output as usize] = Some(index));
    }
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); graph.operations.len()];
    let mut missing = vec![0_usize; graph.operations.len()];
    for (index, operation) in graph.operations.iter().enumerate() {
        for input in &operation.inputs {
            if let Some(writer) = writers[*input as usize] {
                readers[writer].push(index);
                missing[index] += 1;
            }
        }
    }
    let mut ready: BTreeMap<Doer, VecDeque<usize>> = BTreeMap::new();
    for (index, missing) in missing.iter().enumerate() {
        if *missing == 0 {
            ready.entry(doers[index]).or_default().push_back(index);
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    while let Some((doer, mut queue)) = ready.pop_first() {
        let mut group = Vec::new();
        while let Some(index) = queue.pop_front() {
            group.push(index);
            for reader in &readers[index] {
                missing[*reader] -= 1;
                if missing[*reader] > 0 {
                    continue;
                }
                if doers[*reader] == doer {
                    queue.push_back(*reader);
                } else {
                    ready.entry(doers[*reader]).or_default().push_back(*reader);
                }
            }
        }
        match doer {
            Doer::Device(_) => groups.push((doer, group)),
            Doer::Runtime => groups.extend(group.into_iter().map(|index| (doer, vec![index]))),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};

    const A: Doer = Doer::Device(0);
    const B: Doer = Doer::Device(1);

    /// Two chains of three operations, the second begins with the first's second.
    fn chains() -> Subgraph {
        let mut graph = SubgraphBuilder::new();
        let spec = || OperandSpec::tensor_float32([1]);
        let x = graph.input("x", spec());
        let a = graph.operation(OperationType::Relu, [x], spec());
        let b = graph.operation(OperationType::Relu, [a], spec());
        let c = graph.operation(OperationType::Relu, [b], spec());
        let d = graph.operation(OperationType::Tanh, [a], spec());
        graph.output(c);
        graph.output(d);
        graph.into_model().unwrap().main
    }

    #[test]
    fn operations_of_one_device_stay_together() {
        assert_eq!(divide(&chains(), &[A, A, A, A]).len(), 1);
        let groups = divide(&chains(), &[A, B, A, A]);
        assert_eq!(groups, [(A, vec![0, 3]), (B, vec![1]), (A, vec![2])]);
    }

    #[test]
    fn what_the_runtime_does_is_a_step_each() {
        let groups = divide(&chains(), &[A, Doer::Runtime, Doer::Runtime, Doer::Runtime]);
        assert_eq!(groups[0], (A, vec![0]));
        assert_eq!(groups.len(), 4);
    }
}
