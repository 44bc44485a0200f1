//! Operands and operations that do not fit together: MODEL-1, MODEL-19 to MODEL-24.

use super::{Mutants, graph_mut, index_of, is_result, recount};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{DataLocation, Operand, OperandLifeTime, OperandType, Subgraph};

/// One of the lists of indexes of a subgraph.
type List = fn(&mut Subgraph) -> &mut Vec<u32>;

const LISTS: [(&str, OperandLifeTime, List); 2] = [
    ("input", OperandLifeTime::SubgraphInput, |graph| &mut graph.inputs),
    ("output", OperandLifeTime::SubgraphOutput, |graph| &mut graph.outputs),
];

fn is_argument(lifetime: OperandLifeTime) -> bool {
    matches!(lifetime, OperandLifeTime::SubgraphInput | OperandLifeTime::SubgraphOutput)
}

impl Mutants<'_> {
    pub(super) fn graphs(&mut self) {
        self.model_1_emptiness();
        let model = self.model;
        for (name, graph) in model.subgraphs() {
            for (side, lifetime, list) in LISTS {
                self.model_19_lists(name, graph, side, lifetime, list);
            }
            self.model_20_to_22_operation_lists(name, graph);
            self.model_23_order(name, graph);
        }
        self.model_19_lifetimes();
        self.model_24_consumers();
    }

    fn model_1_emptiness(&mut self) {
        let model = self.model;
        for (name, _) in model.subgraphs() {
            self.add("MODEL-1", format!("{name} without operands"), |model| {
                graph_mut(model, name).operands.clear();
            });
            self.add("MODEL-1", format!("{name} without operations"), |model| {
                let graph = graph_mut(model, name);
                graph.operations.clear();
                // Nothing else may be wrong with it.
                recount(graph);
                graph.outputs.clear();
                for operand in graph.operands.iter_mut().filter(|operand| is_result(operand)) {
                    operand.lifetime = OperandLifeTime::NoValue;
                }
            });
        }
        self.add("MODEL-1", "another subgraph, empty".into(), |model| {
            model.referenced.push(Subgraph::default());
        });
    }

    fn model_19_lists(
        &mut self,
        name: SubgraphName,
        graph: &Subgraph,
        side: &str,
        lifetime: OperandLifeTime,
        list: List,
    ) {
        const RULE: &str = "MODEL-19";
        let count = match side {
            "input" => graph.inputs.len(),
            _ => graph.outputs.len(),
        };
        for position in self.places(count) {
            let what = |what| format!("{side} {position} of the {name} {what}");
            self.add(RULE, what("removed"), |model| {
                list(graph_mut(model, name)).remove(position);
            });
            self.add(RULE, what("twice"), |model| {
                let list = list(graph_mut(model, name));
                list.push(list[position]);
            });
        }
        for index in [index_of(graph.operands.len()), u32::MAX] {
            self.add(RULE, format!("another {side} of the {name}, {index}"), |model| {
                list(graph_mut(model, name)).push(index);
            });
        }
        let others: Vec<usize> = graph
            .operands
            .iter()
            .enumerate()
            .filter(|(_, operand)| operand.lifetime != lifetime)
            .map(|(index, _)| index)
            .collect();
        for place in self.places(others.len()) {
            let index = others[place];
            self.add(RULE, format!("operand {index} as {side} of the {name}"), |model| {
                list(graph_mut(model, name)).push(index_of(index));
            });
        }
    }

    /// A constant keeps no location, so that nothing else is wrong.
    fn model_19_lifetimes(&mut self) {
        for lifetime in [
            OperandLifeTime::TemporaryVariable,
            OperandLifeTime::SubgraphInput,
            OperandLifeTime::SubgraphOutput,
            OperandLifeTime::NoValue,
        ] {
            let what = format!("lifetime {lifetime}");
            let applies = |operand: &Operand| {
                let ours = operand.lifetime;
                ours != lifetime
                    && operand.operand_type != OperandType::Subgraph
                    && (is_argument(ours) || is_argument(lifetime))
            };
            self.add_for_operands("MODEL-19", &what, applies, |operand| {
                operand.lifetime = lifetime;
                operand.location = DataLocation::default();
            });
        }
    }

    fn model_20_to_22_operation_lists(&mut self, name: SubgraphName, graph: &Subgraph) {
        let operands = index_of(graph.operands.len());
        for index in self.places(graph.operations.len()) {
            let operation = &graph.operations[index];
            for found in [operands, u32::MAX] {
                for position in self.places(operation.inputs.len()) {
                    let what = format!("input {position} of operation {index} of the {name}");
                    self.add("MODEL-20", format!("{what}: {found}"), |model| {
                        graph_mut(model, name).operations[index].inputs[position] = found;
                    });
                }
                for position in self.places(operation.outputs.len()) {
                    let what = format!("output {position} of operation {index} of the {name}");
                    self.add("MODEL-20", format!("{what}: {found}"), |model| {
                        graph_mut(model, name).operations[index].outputs[position] = found;
                    });
                }
            }
            for position in self.places(operation.outputs.len()) {
                for target in self.places(graph.operands.len()) {
                    if operation.outputs[position] == index_of(target) {
                        continue;
                    }
                    // What is no result must not be written; of another result there are then two
                    // writers. The old one has none, unless there is nothing any more to write.
                    let is_result = is_result(&graph.operands[target]);
                    let rule = if is_result { "MODEL-22" } else { "MODEL-21" };
                    let what = format!("operation {index} of the {name} writes operand {target}");
                    self.add(rule, what, |model| {
                        let graph = graph_mut(model, name);
                        let before = operation.outputs[position];
                        graph.operations[index].outputs[position] = index_of(target);
                        if !is_result {
                            leave_unwritten(graph, before);
                        }
                    });
                }
            }
        }
        let Some(result) = graph.operands.iter().find(|operand| is_result(operand)) else { return };
        let what = format!("a temporary of the {name} that nothing writes");
        self.add("MODEL-22", what, |model| {
            graph_mut(model, name).operands.push(Operand {
                lifetime: OperandLifeTime::TemporaryVariable,
                number_of_consumers: 0,
                ..result.clone()
            });
        });
    }

    fn model_23_order(&mut self, name: SubgraphName, graph: &Subgraph) {
        for later in self.places(graph.operations.len()) {
            let reader = &graph.operations[later];
            let is_writer = |earlier: &usize| {
                let outputs = &graph.operations[*earlier].outputs;
                reader.inputs.iter().any(|index| outputs.contains(index))
            };
            for earlier in (0..later).filter(is_writer).take(2) {
                let what = format!("operations {earlier} and {later} of the {name} change places");
                self.add("MODEL-23", what, |model| {
                    graph_mut(model, name).operations.swap(earlier, later);
                });
            }
            for position in self.places(reader.inputs.len()) {
                let Some(output) = self.choose(position, &reader.outputs).copied() else { break };
                let what = format!("operation {later} of the {name} reads its output {output}");
                self.add("MODEL-23", what, |model| {
                    let graph = graph_mut(model, name);
                    graph.operations[later].inputs[position] = output;
                    recount(graph);
                });
            }
        }
    }

    fn model_24_consumers(&mut self) {
        for (what, delta) in [("a consumer more", 1), ("a consumer less", u32::MAX)] {
            self.add_for_operands(
                "MODEL-24",
                what,
                |_| true,
                |operand| {
                    operand.number_of_consumers = operand.number_of_consumers.wrapping_add(delta);
                },
            );
        }
    }
}

/// Makes an operand, which no operation writes any more, one that none has to write.
pub(super) fn leave_unwritten(graph: &mut Subgraph, operand: u32) {
    graph.outputs.retain(|output| *output != operand);
    graph.operands[operand as usize].lifetime = OperandLifeTime::NoValue;
}
