//! Operations with other arguments than their definitions have: MODEL-25, MODEL-26.

use super::definition::allows;
use super::graphs::leave_unwritten;
use super::{Mutants, channels, give_zeros, graph, graph_mut, index_of, is_constant, recount};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    DataLocation, ExtraParams, Model, Operand, OperandLifeTime, OperandType, Operation, Subgraph,
};
use nnhal_ops::Signature;

/// Whether signatures decide what arguments an operation has.
fn is_defined(operation: &Operation) -> bool {
    !operation.operation_type.is_control_flow() && Signature::of(operation.operation_type).is_some()
}

fn touches(operation: &Operation, operand: usize) -> bool {
    let operand = index_of(operand);
    operation.inputs.contains(&operand) || operation.outputs.contains(&operand)
}

/// Gives an operand another type, all that goes with the type included. A constant moves to the end
/// of the model's values.
fn retype(model: &mut Model, name: SubgraphName, index: usize, operand_type: OperandType) {
    let operand = &mut graph_mut(model, name).operands[index];
    operand.operand_type = operand_type;
    operand.scale = 0.0;
    operand.zero_point = 0;
    operand.extra_params = match operand_type {
        OperandType::TensorQuant8SymmPerChannel => {
            channels(operand.dimensions.first().copied().unwrap_or(0))
        }
        _ => ExtraParams::None,
    };
    if operand_type.quantized_range().is_some()
        && operand_type != OperandType::TensorQuant8SymmPerChannel
    {
        operand.scale = 0.25;
    }
    match operand_type.is_tensor() {
        Some(false) => operand.dimensions.clear(),
        // Otherwise of unknown rank, which a constant must not be.
        _ if operand.dimensions.is_empty() && is_constant(operand) => operand.dimensions.push(1),
        _ => {}
    }
    if is_constant(operand) {
        give_zeros(model, name, index);
    }
}

impl Mutants<'_> {
    pub(super) fn operations(&mut self) {
        for (name, index, operation) in self.some_operations() {
            if is_defined(&operation) {
                self.model_25_inputs(name, index, &operation);
                self.model_25_outputs(name, index, &operation);
            }
        }
        self.model_25_types();
        self.model_26_left_out();
    }

    /// A mutant, unless the definitions of all operations that look at `touched` allow it.
    fn add_unless_allowed(
        &mut self,
        rule: &'static str,
        what: String,
        name: SubgraphName,
        looks: impl Fn(&Operation) -> bool,
        change: impl FnOnce(&mut Model),
    ) {
        let version = self.version;
        let mut model = self.model.clone();
        change(&mut model);
        let changed: &Subgraph = graph(&model, name);
        let is_wrong = |operation: &Operation| {
            is_defined(operation) && looks(operation) && !allows(changed, operation, version)
        };
        if changed.operations.iter().any(is_wrong) {
            self.add(rule, what, |mutant| *mutant = model);
        }
    }

    fn model_25_inputs(&mut self, name: SubgraphName, index: usize, operation: &Operation) {
        let is_it = |it: &Operation| it.outputs == operation.outputs;
        for position in self.places(operation.inputs.len()) {
            let what = format!(
                "operation {index} of the {name} ({}) without input {position}",
                operation.operation_type
            );
            self.add_unless_allowed("MODEL-25", what, name, is_it, |model| {
                let graph = graph_mut(model, name);
                graph.operations[index].inputs.remove(position);
                recount(graph);
            });
            let what = format!(
                "operation {index} of the {name} ({}) with input {position} twice",
                operation.operation_type
            );
            self.add_unless_allowed("MODEL-25", what, name, is_it, |model| {
                let graph = graph_mut(model, name);
                let inputs = &mut graph.operations[index].inputs;
                inputs.insert(position, inputs[position]);
                recount(graph);
            });
        }
        let what = format!(
            "operation {index} of the {name} ({}) with one input more",
            operation.operation_type
        );
        self.add_unless_allowed("MODEL-25", what, name, is_it, |model| {
            let graph = graph_mut(model, name);
            let inputs = &mut graph.operations[index].inputs;
            inputs.extend(operation.inputs.first());
            recount(graph);
        });
    }

    fn model_25_outputs(&mut self, name: SubgraphName, index: usize, operation: &Operation) {
        let is_it = |it: &Operation| it.inputs == operation.inputs;
        for position in self.places(operation.outputs.len()) {
            let output = operation.outputs[position];
            // What is read after it would be left without a value.
            let is_read = graph(self.model, name).operands[output as usize].number_of_consumers > 0;
            if !is_read {
                let what = format!(
                    "operation {index} of the {name} ({}) without output {position}",
                    operation.operation_type
                );
                self.add_unless_allowed("MODEL-25", what, name, is_it, |model| {
                    let graph = graph_mut(model, name);
                    graph.operations[index].outputs.remove(position);
                    leave_unwritten(graph, output);
                });
            }
            let what = format!(
                "operation {index} of the {name} ({}) with another output",
                operation.operation_type
            );
            self.add_unless_allowed("MODEL-25", what, name, is_it, |model| {
                let graph = graph_mut(model, name);
                let next = index_of(graph.operands.len());
                graph.operands.push(Operand {
                    lifetime: OperandLifeTime::TemporaryVariable,
                    number_of_consumers: 0,
                    ..graph.operands[output as usize].clone()
                });
                graph.operations[index].outputs.insert(position, next);
            });
        }
    }

    /// Of the types some for each operand, others in the next model.
    pub(super) fn model_25_types(&mut self) {
        let version = self.version;
        let is_other = |operand: &Operand| operand.operand_type != OperandType::Subgraph;
        for (name, index, operand) in self.operands_where(is_other) {
            let others: Vec<OperandType> = OperandType::FUNDAMENTAL
                .iter()
                .copied()
                .filter(|it| *it != operand.operand_type && *it != OperandType::Subgraph)
                .filter(|it| it.since() <= version)
                .collect();
            for place in self.places(others.len()) {
                let operand_type = others[place];
                let what = format!("operand {index} of the {name} as {operand_type}");
                let looks = |operation: &Operation| touches(operation, index);
                self.add_unless_allowed("MODEL-25", what, name, looks, |model| {
                    retype(model, name, index, operand_type);
                });
            }
        }
    }

    /// Constants and inputs, all of whose readers then lack them.
    fn model_26_left_out(&mut self) {
        let may_be = |operand: &Operand| {
            is_constant(operand) || operand.lifetime == OperandLifeTime::SubgraphInput
        };
        for (name, index, _) in self.operands_where(may_be) {
            let what = format!("operand {index} of the {name} left out");
            let looks = |operation: &Operation| touches(operation, index);
            self.add_unless_allowed("MODEL-26", what, name, looks, |model| {
                let graph = graph_mut(model, name);
                graph.inputs.retain(|input| *input != index_of(index));
                let operand = &mut graph.operands[index];
                operand.lifetime = OperandLifeTime::NoValue;
                operand.location = DataLocation::default();
            });
        }
    }
}
