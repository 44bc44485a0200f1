//! [`extract`]: a part of a model as a model.

use crate::model::assemble::{count_consumers, prefixes};
use nnhal_hal::{Model, Operand, OperandLifeTime, Operation, Subgraph};
use std::collections::HashMap;

/// Some operations of a model's main graph as a model of their own.
#[derive(Debug, Clone)]
pub(crate) struct Extract {
    /// The part. Values and pools are shared with the whole.
    pub(crate) model: Model,
    /// For each of its inputs, the operand of the whole that it is.
    pub(crate) inputs: Vec<u32>,
    /// For each of its outputs, the operand of the whole that it is.
    pub(crate) outputs: Vec<u32>,
}

/// The part of a model that consists of these operations of the main graph, given in an order in
/// which they can run. What they read of others becomes an input, what others read of them an
/// output; `dimensions` says what is known of those operands.
pub(crate) fn extract(
    whole: &Model,
    operations: &[usize],
    dimensions: impl Fn(u32) -> Vec<u32>,
) -> Extract {
    let main = &whole.main;
    let mut is_inside = vec![false; main.operations.len()];
    operations.iter().for_each(|index| is_inside[*index] = true);
    let mut read_outside = vec![false; main.operands.len()];
    main.outputs.iter().for_each(|operand| read_outside[*operand as usize] = true);
    for (index, operation) in main.operations.iter().enumerate() {
        if !is_inside[index] {
            operation.inputs.iter().for_each(|operand| read_outside[*operand as usize] = true);
        }
    }
    let mut part = Part {
        whole,
        renumbered: HashMap::new(),
        written: vec![false; main.operands.len()],
        graph: Subgraph::default(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        referenced: Vec::new(),
        subgraphs: HashMap::new(),
    };
    for index in operations {
        part.take(&main.operations[*index], &read_outside, &dimensions);
    }
    part.finish()
}

struct Part<'a> {
    whole: &'a Model,
    renumbered: HashMap<u32, u32>,
    written: Vec<bool>,
    graph: Subgraph,
    inputs: Vec<u32>,
    outputs: Vec<u32>,
    /// Indexes of referenced subgraphs of the whole, by index in the part.
    referenced: Vec<u32>,
    subgraphs: HashMap<u32, u32>,
}

impl Part<'_> {
    fn take(
        &mut self,
        operation: &Operation,
        read_outside: &[bool],
        dimensions: &impl Fn(u32) -> Vec<u32>,
    ) {
        let mut inputs = Vec::with_capacity(operation.inputs.len());
        for operand in &operation.inputs {
            inputs.push(self.operand(*operand, |part, mut copy| {
                let from_elsewhere = matches!(
                    copy.lifetime,
                    OperandLifeTime::TemporaryVariable
                        | OperandLifeTime::SubgraphInput
                        | OperandLifeTime::SubgraphOutput
                );
                if from_elsewhere && !part.written[*operand as usize] {
                    copy.dimensions = dimensions(*operand);
                    copy.lifetime = OperandLifeTime::SubgraphInput;
                    part.inputs.push(*operand);
                }
                copy
            }));
        }
        let mut outputs = Vec::with_capacity(operation.outputs.len());
        for operand in &operation.outputs {
            self.written[*operand as usize] = true;
            outputs.push(self.operand(*operand, |part, mut copy| {
                if read_outside[*operand as usize] {
                    if copy.lifetime == OperandLifeTime::TemporaryVariable {
                        copy.dimensions = dimensions(*operand);
                    }
                    copy.lifetime = OperandLifeTime::SubgraphOutput;
                    part.outputs.push(*operand);
                } else {
                    copy.lifetime = OperandLifeTime::TemporaryVariable;
                }
                copy
            }));
        }
        self.graph.operations.push(Operation {
            operation_type: operation.operation_type,
            inputs,
            outputs,
        });
    }

    /// The number of an operand in the part; `adapt` makes it what it is there when it first comes.
    fn operand(&mut self, operand: u32, adapt: impl FnOnce(&mut Self, Operand) -> Operand) -> u32 {
        if let Some(known) = self.renumbered.get(&operand) {
            return *known;
        }
        let mut copy = self.whole.main.operands[operand as usize].clone();
        if copy.lifetime == OperandLifeTime::Subgraph {
            copy.location.offset = self.subgraph(copy.location.offset);
        }
        let copy = adapt(self, copy);
        let number = u32::try_from(self.graph.operands.len()).unwrap_or(u32::MAX);
        self.graph.operands.push(copy);
        self.renumbered.insert(operand, number);
        number
    }

    fn subgraph(&mut self, index: u32) -> u32 {
        let next = u32::try_from(self.referenced.len()).unwrap_or(u32::MAX);
        let number = *self.subgraphs.entry(index).or_insert(next);
        if number == next {
            self.referenced.push(index);
        }
        number
    }

    fn finish(mut self) -> Extract {
        let mut referenced = Vec::new();
        // Grows while it is gone through.
        let mut next = 0;
        while let Some(index) = self.referenced.get(next).copied() {
            let mut graph = self.whole.referenced[index as usize].clone();
            for operand in &mut graph.operands {
                if operand.lifetime == OperandLifeTime::Subgraph {
                    operand.location.offset = self.subgraph(operand.location.offset);
                }
            }
            referenced.push(graph);
            next += 1;
        }
        let number = |operand: &u32| self.renumbered[operand];
        let mut main = self.graph;
        main.inputs = self.inputs.iter().map(number).collect();
        main.outputs = self.outputs.iter().map(number).collect();
        count_consumers(&mut main);
        let mut model = Model { main, referenced, ..without_graphs(self.whole) };
        let used = prefixes(model.subgraphs().map(|(_, graph)| graph));
        model.extension_name_to_prefix.retain(|row| used.contains(&row.prefix));
        Extract { model, inputs: self.inputs, outputs: self.outputs }
    }
}

/// A model's values, pools and flags, without its graphs.
fn without_graphs(model: &Model) -> Model {
    Model {
        main: Subgraph::default(),
        referenced: Vec::new(),
        operand_values: model.operand_values.clone(),
        pools: model.pools.clone(),
        relax_computation_float32_to_float16: model.relax_computation_float32_to_float16,
        extension_name_to_prefix: model.extension_name_to_prefix.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{HalVersion, OperandSpec, OperationType, SubgraphBuilder};

    /// d = (a + b) + a, e = tanh(a + b), of two numbers each, where the sum's shape is open.
    fn whole() -> Model {
        let mut graph = SubgraphBuilder::new();
        let spec = || OperandSpec::tensor_float32([2]);
        let a = graph.input("a", spec());
        let b = graph.input("b", spec());
        let none = graph.scalar_i32(0);
        let open = OperandSpec::tensor_float32([0]);
        let sum = graph.operation(OperationType::Add, [a, b, none], open);
        let d = graph.operation(OperationType::Add, [sum, a, none], spec());
        let e = graph.operation(OperationType::Tanh, [sum], spec());
        graph.output(d);
        graph.output(e);
        graph.into_model().unwrap()
    }

    #[test]
    fn what_crosses_the_border_becomes_an_argument() {
        let whole = whole();
        let [a, b] = whole.main.inputs[..] else { panic!("two inputs") };
        let [d, e] = whole.main.outputs[..] else { panic!("two outputs") };
        let sum = whole.main.operations[0].outputs[0];
        for (operations, inputs, outputs) in [
            (&[0][..], &[a, b][..], &[sum][..]),
            (&[1], &[sum, a], &[d]),
            (&[2], &[sum], &[e]),
            (&[0, 2], &[a, b], &[sum, e]),
            (&[1, 2], &[sum, a], &[d, e]),
        ] {
            let part = extract(&whole, operations, |_| vec![2]);
            assert_eq!((&*part.inputs, &*part.outputs), (inputs, outputs), "{operations:?}");
            assert_eq!(part.model.main.operations.len(), operations.len());
            nnhal_ops::validate(&part.model, HalVersion::V1_0).unwrap();
        }
    }

    #[test]
    fn all_operations_together_keep_what_is_between_them() {
        let part = extract(&whole(), &[0, 1, 2], |_| vec![2]);
        let main = &part.model.main;
        assert_eq!((main.inputs.len(), main.outputs.len()), (2, 2));
        let sum = &main.operands[main.operations[0].outputs[0] as usize];
        assert_eq!(sum.lifetime, OperandLifeTime::TemporaryVariable);
        assert_eq!(sum.number_of_consumers, 2);
    }
}
