//! IF and WHILE that do not go with their subgraphs, and references between these: CF-1 to CF-6.

use super::{Mutants, give_zeros, graph, graph_mut, index_of, is_constant, recount};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    DataLocation, ExtraParams, Model, Operand, OperandLifeTime, OperandType, Operation,
    OperationType,
};

/// An operand: of which subgraph, and which.
type Place = (SubgraphName, u32);

/// An IF or WHILE of a model, by the positions that CF-1 and CF-2 name.
struct Controller {
    /// Where it is.
    name: SubgraphName,
    index: usize,
    operation: Operation,
    /// The rule on how it goes with its subgraphs.
    rule: &'static str,
    /// The subgraphs that it runs.
    subgraphs: [usize; 2],
    /// Operands that decide: TENSOR_BOOL8 `[1]`.
    conditions: Vec<Place>,
    /// Pairs that stand for each other: outside and inside, or result of a round and argument of the
    /// next.
    pairs: Vec<(Place, Place)>,
}

impl Controller {
    fn of(model: &Model, name: SubgraphName, index: usize, operation: Operation) -> Option<Self> {
        let is_if = match operation.operation_type {
            OperationType::If => true,
            OperationType::While => false,
            _ => return None,
        };
        let first = if is_if { 3 } else { 2 };
        let subgraph = |position: usize| {
            let operand = *operation.inputs.get(position)? as usize;
            Some(graph(model, name).operands.get(operand)?.location.offset as usize)
        };
        let subgraphs = [subgraph(first - 2)?, subgraph(first - 1)?];
        let arguments = operation.inputs.get(first..)?;
        let mut conditions = Vec::new();
        let mut pairs = Vec::new();
        for (at, inner) in subgraphs.into_iter().enumerate() {
            let inner_name = SubgraphName::Referenced(inner);
            let inner = model.referenced.get(inner)?;
            let mut pair = |outer: &[u32], inner: &[u32]| {
                pairs.extend(outer.iter().zip(inner).map(|(a, b)| ((name, *a), (inner_name, *b))));
            };
            pair(arguments, &inner.inputs);
            if is_if || at == 1 {
                pair(&operation.outputs, &inner.outputs);
            } else {
                conditions.extend(inner.outputs.iter().map(|output| (inner_name, *output)));
            }
            if !is_if && at == 1 {
                let rounds = inner.outputs.iter().zip(&inner.inputs);
                pairs.extend(rounds.map(|(a, b)| ((inner_name, *a), (inner_name, *b))));
            }
        }
        if is_if {
            conditions.extend(operation.inputs.first().map(|input| (name, *input)));
        }
        let rule = if is_if { "CF-1" } else { "CF-2" };
        Some(Self { name, index, operation, rule, subgraphs, conditions, pairs })
    }

    fn place(&self) -> String {
        format!("{} {} of the {}", self.operation.operation_type, self.index, self.name)
    }
}

fn operand_mut(model: &mut Model, (name, index): Place) -> &mut Operand {
    &mut graph_mut(model, name).operands[index as usize]
}

/// A subgraph as a value.
fn reference(subgraph: usize) -> Operand {
    Operand {
        operand_type: OperandType::Subgraph,
        dimensions: vec![],
        number_of_consumers: 0,
        scale: 0.0,
        zero_point: 0,
        lifetime: OperandLifeTime::Subgraph,
        location: DataLocation { offset: index_of(subgraph), ..DataLocation::default() },
        extra_params: ExtraParams::None,
    }
}

impl Mutants<'_> {
    pub(super) fn control_flow(&mut self) {
        for (name, index, operation) in self.some_operations() {
            let Some(controller) = Controller::of(self.model, name, index, operation) else {
                continue;
            };
            self.cf_1_and_2_conditions(&controller);
            self.cf_1_and_2_operation_lists(&controller);
            self.cf_1_and_2_subgraph_lists(&controller);
            self.cf_3_pairs(&controller);
            if controller.rule == "CF-2" {
                self.cf_4_unknown_sizes(&controller);
            }
        }
        self.cf_5_circles();
        self.cf_6_indexes();
    }

    fn cf_1_and_2_conditions(&mut self, controller: &Controller) {
        for place in controller.conditions.iter().copied() {
            let what = format!("condition of {}", controller.place());
            let operand = &graph(self.model, place.0).operands[place.1 as usize];
            for dimensions in [vec![], vec![0], vec![2], vec![1, 1]] {
                // A constant of no known size breaks other rules, and one of [1, 1] only this.
                self.add(controller.rule, format!("{what} of {dimensions:?}"), |model| {
                    operand_mut(model, place).dimensions = dimensions;
                });
            }
            if !is_constant(operand) {
                self.add(controller.rule, format!("{what} is a TENSOR_INT32"), |model| {
                    operand_mut(model, place).operand_type = OperandType::TensorInt32;
                });
            }
        }
    }

    /// The operation takes or gives another number than before, its subgraphs do not.
    fn cf_1_and_2_operation_lists(&mut self, controller: &Controller) {
        let Controller { name, index, rule, .. } = *controller;
        for position in 0..controller.operation.inputs.len() {
            let what = format!("{} without input {position}", controller.place());
            self.add(rule, what, |model| {
                let graph = graph_mut(model, name);
                graph.operations[index].inputs.remove(position);
                recount(graph);
            });
        }
        self.add(rule, format!("{} with one input more", controller.place()), |model| {
            let graph = graph_mut(model, name);
            let inputs = &mut graph.operations[index].inputs;
            inputs.extend(controller.operation.inputs.last());
            recount(graph);
        });
        let subgraph = controller.operation.inputs.iter().position(|input| {
            graph(self.model, name).operands[*input as usize].lifetime == OperandLifeTime::Subgraph
        });
        let subgraphs = subgraph.map_or(0..0, |first| first..first + 2);
        for position in subgraphs {
            let what = format!("{} with its subgraph {position} left out", controller.place());
            self.add(rule, what, |model| {
                let operand = controller.operation.inputs[position];
                let operand = operand_mut(model, (name, operand));
                operand.operand_type = OperandType::TensorInt32;
                operand.lifetime = OperandLifeTime::NoValue;
                operand.location = DataLocation::default();
            });
        }
        // An IF gives as much as its branches, a WHILE at most as much as its body.
        let body = controller.subgraphs[1];
        let is_full = rule == "CF-1"
            || controller.operation.outputs.len() == self.model.referenced[body].outputs.len();
        if let Some(like) = controller.operation.outputs.first().copied().filter(|_| is_full) {
            self.add(rule, format!("{} with one output more", controller.place()), |model| {
                let graph = graph_mut(model, name);
                let next = index_of(graph.operands.len());
                graph.operands.push(Operand {
                    lifetime: OperandLifeTime::TemporaryVariable,
                    number_of_consumers: 0,
                    ..graph.operands[like as usize].clone()
                });
                graph.operations[index].outputs.push(next);
            });
        }
    }

    /// A subgraph takes or gives another number than before, the operation does not.
    fn cf_1_and_2_subgraph_lists(&mut self, controller: &Controller) {
        let rule = controller.rule;
        for (at, subgraph) in controller.subgraphs.into_iter().enumerate() {
            let inner = &self.model.referenced[subgraph];
            let what = format!("subgraph {subgraph} of {}", controller.place());
            if let Some(like) = inner.inputs.first().copied() {
                self.add(rule, format!("{what} takes one more"), |model| {
                    let inner = &mut model.referenced[subgraph];
                    inner.inputs.push(index_of(inner.operands.len()));
                    let like = inner.operands[like as usize].clone();
                    inner.operands.push(Operand { number_of_consumers: 0, ..like });
                });
            }
            if let Some(last) = inner.inputs.last().copied() {
                self.add(rule, format!("{what} takes one less"), |model| {
                    model.referenced[subgraph].inputs.pop();
                    // What was an argument becomes a constant.
                    give_zeros(model, SubgraphName::Referenced(subgraph), last as usize);
                });
            }
            // A body may give more than its WHILE, but not less.
            let is_body = rule == "CF-2" && at == 1;
            if is_body && inner.outputs.len() > controller.operation.outputs.len() {
                continue;
            }
            if let Some(last) = inner.outputs.last().copied() {
                self.add(rule, format!("{what} gives one less"), |model| {
                    let inner = &mut model.referenced[subgraph];
                    inner.outputs.pop();
                    inner.operands[last as usize].lifetime = OperandLifeTime::TemporaryVariable;
                });
            }
        }
    }

    fn cf_3_pairs(&mut self, controller: &Controller) {
        for at in self.places(controller.pairs.len()) {
            let (outer, inner) = controller.pairs[at];
            let [a, b] = [outer, inner]
                .map(|(name, index)| &graph(self.model, name).operands[index as usize]);
            let what =
                format!("operand {} of the {}, beside {}", inner.1, inner.0, controller.place());
            let mut add = |how: &str, change: &dyn Fn(&mut Operand)| {
                self.add("CF-3", format!("{what}: {how}"), |model| {
                    change(operand_mut(model, inner));
                });
            };
            let other = match b.operand_type {
                OperandType::TensorFloat32 => OperandType::TensorFloat16,
                _ => OperandType::TensorFloat32,
            };
            add("another type", &|operand| {
                operand.operand_type = other;
                operand.scale = 0.0;
                operand.zero_point = 0;
                operand.extra_params = ExtraParams::None;
            });
            if b.operand_type == OperandType::TensorInt32 || b.scale != 0.0 {
                add("another scale", &|operand| operand.scale += 0.5);
            }
            if b.operand_type == OperandType::TensorQuant8Asymm {
                add("another zero point", &|operand| operand.zero_point ^= 1);
            }
            if let ExtraParams::ChannelQuant(quant) = &b.extra_params {
                add("other scales of channels", &|operand| {
                    let mut quant = quant.clone();
                    quant.scales = quant.scales.iter().map(|scale| scale * 2.0).collect();
                    operand.extra_params = ExtraParams::ChannelQuant(quant);
                });
            }
            if !a.dimensions.is_empty() && !b.dimensions.is_empty() {
                add("another rank", &|operand| operand.dimensions.push(1));
            }
            let known = |(a, b): (&u32, &u32)| *a != 0 && *b != 0;
            if let Some(axis) = a.dimensions.iter().zip(&b.dimensions).position(known) {
                add("longer", &|operand| operand.dimensions[axis] += 1);
            }
        }
    }

    fn cf_4_unknown_sizes(&mut self, controller: &Controller) {
        let members = controller.pairs.iter().flat_map(|(outer, inner)| [*outer, *inner]);
        let members: Vec<Place> = members
            .filter(|(name, index)| {
                let operand = &graph(self.model, *name).operands[*index as usize];
                operand.operand_type.is_tensor() == Some(true) && !is_constant(operand)
            })
            .collect();
        for at in self.places(members.len()) {
            let member = members[at];
            let what =
                format!("operand {} of the {}, used by {}", member.1, member.0, controller.place());
            self.add("CF-4", format!("{what}: of unknown rank"), |model| {
                operand_mut(model, member).dimensions.clear();
            });
            self.add("CF-4", format!("{what}: of unknown length"), |model| {
                operand_mut(model, member).dimensions.fill(0);
            });
        }
    }

    /// References that nothing reads count as well.
    fn cf_5_circles(&mut self) {
        let count = self.model.referenced.len();
        for subgraph in self.places(count) {
            self.add("CF-5", format!("subgraph {subgraph} refers to itself"), |model| {
                model.referenced[subgraph].operands.push(reference(subgraph));
            });
            let next = (subgraph + 1) % count;
            if next != subgraph {
                let what = format!("subgraphs {subgraph} and {next} refer to each other");
                self.add("CF-5", what, |model| {
                    model.referenced[subgraph].operands.push(reference(next));
                    model.referenced[next].operands.push(reference(subgraph));
                });
            }
        }
    }

    /// Subgraphs whose own lists cannot be followed.
    fn cf_6_indexes(&mut self) {
        for subgraph in self.places(self.model.referenced.len()) {
            let inner = &self.model.referenced[subgraph];
            let (inputs, outputs) = (inner.inputs.len(), inner.outputs.len());
            for found in [index_of(inner.operands.len()), u32::MAX] {
                for position in self.places(inputs) {
                    let what = format!("input {position} of subgraph {subgraph} is {found}");
                    self.add("CF-6", what, |model| {
                        model.referenced[subgraph].inputs[position] = found;
                    });
                }
                for position in self.places(outputs) {
                    let what = format!("output {position} of subgraph {subgraph} is {found}");
                    self.add("CF-6", what, |model| {
                        model.referenced[subgraph].outputs[position] = found;
                    });
                }
            }
        }
    }
}
