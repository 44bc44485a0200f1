//! Operands and operations that do not fit together: MODEL-1, MODEL-19 to MODEL-24.

use crate::*;

pub fn model_1_emptiness(sample: &Sample, mutants: &mut Mutants<'_>) {
    for (name, _) in sample.model.subgraphs() {
        mutants.add(&["MODEL-1"], format!("{name} without operands"), |model| {
            graph_mut(model, name).operands.clear();
        });
        mutants.add(&["MODEL-1"], format!("{name} without operations"), |model| {
            graph_mut(model, name).operations.clear();
        });
    }
    if sample.version >= HalVersion::V1_3 {
        mutants.add(&["MODEL-1"], "an empty subgraph".into(), |model| {
            model.referenced.push(Subgraph::default());
        });
    }
}

pub fn model_19_arguments(sample: &Sample, mutants: &mut Mutants<'_>) {
    const RULE: &[&str] = &["MODEL-19"];
    for (name, graph) in sample.model.subgraphs() {
        type List = fn(&mut Subgraph) -> &mut Vec<u32>;
        let lists: [(&str, usize, List); 2] = [
            ("input", graph.inputs.len(), |graph| &mut graph.inputs),
            ("output", graph.outputs.len(), |graph| &mut graph.outputs),
        ];
        for (side, count, list) in lists {
            for position in 0..count {
                let what = |what| format!("{side} {position} of the {name} {what}");
                mutants.add(RULE, what("removed"), |model| {
                    list(graph_mut(model, name)).remove(position);
                });
                mutants.add(RULE, what("twice"), |model| {
                    let list = list(graph_mut(model, name));
                    list.push(list[position]);
                });
            }
            for index in [u32::try_from(graph.operands.len()).unwrap(), u32::MAX] {
                mutants.add(RULE, format!("another {side} of the {name}, {index}"), |model| {
                    list(graph_mut(model, name)).push(index);
                });
            }
            for (index, operand) in graph.operands.iter().enumerate() {
                let listed = match side {
                    "input" => OperandLifeTime::SubgraphInput,
                    _ => OperandLifeTime::SubgraphOutput,
                };
                if operand.lifetime != listed {
                    mutants.add(
                        RULE,
                        format!("operand {index} as {side} of the {name}"),
                        |model| {
                            list(graph_mut(model, name)).push(u32::try_from(index).unwrap());
                        },
                    );
                }
            }
        }
    }
    for lifetime in [
        OperandLifeTime::TemporaryVariable,
        OperandLifeTime::SubgraphInput,
        OperandLifeTime::SubgraphOutput,
        OperandLifeTime::NoValue,
    ] {
        let what = format!("lifetime {lifetime}");
        let is_argument = |operand: &Operand| {
            let ours = operand.lifetime;
            let is_argument = |lifetime| {
                matches!(lifetime, OperandLifeTime::SubgraphInput | OperandLifeTime::SubgraphOutput)
            };
            ours != lifetime
                && operand.operand_type != OperandType::Subgraph
                && (is_argument(ours) || is_argument(lifetime))
        };
        // A constant keeps its location.
        mutants.add_for_operands(&["MODEL-19", "MODEL-13"], &what, is_argument, |operand| {
            operand.lifetime = lifetime;
        });
    }
}

pub fn model_20_to_22_operation_lists(sample: &Sample, mutants: &mut Mutants<'_>) {
    for (name, graph) in sample.model.subgraphs() {
        let operands = u32::try_from(graph.operands.len()).unwrap();
        for (index, operation) in graph.operations.iter().enumerate() {
            for found in [operands, u32::MAX] {
                for position in 0..operation.inputs.len() {
                    let what = format!("input {position} of operation {index} of the {name}");
                    mutants.add(&["MODEL-20"], format!("{what}: {found}"), |model| {
                        graph_mut(model, name).operations[index].inputs[position] = found;
                    });
                }
                for position in 0..operation.outputs.len() {
                    let what = format!("output {position} of operation {index} of the {name}");
                    mutants.add(&["MODEL-20"], format!("{what}: {found}"), |model| {
                        graph_mut(model, name).operations[index].outputs[position] = found;
                    });
                }
            }
            for position in 0..operation.outputs.len() {
                for (target, operand) in graph.operands.iter().enumerate() {
                    let target = u32::try_from(target).unwrap();
                    if operation.outputs[position] == target {
                        continue;
                    }
                    // Another result then has two writers, and the old one none.
                    let rules: &[&str] =
                        if is_result(operand) { &["MODEL-22"] } else { &["MODEL-21"] };
                    let what = format!("operation {index} of the {name} writes {target}");
                    mutants.add(rules, what, |model| {
                        graph_mut(model, name).operations[index].outputs[position] = target;
                    });
                }
            }
        }
        mutants.add(
            &["MODEL-22"],
            format!("a temporary of the {name} that nobody writes"),
            |model| {
                let graph = graph_mut(model, name);
                let result = graph.operands.iter().find(|operand| is_result(operand)).unwrap();
                graph.operands.push(Operand {
                    lifetime: OperandLifeTime::TemporaryVariable,
                    number_of_consumers: 0,
                    ..result.clone()
                });
            },
        );
    }
}

pub fn model_23_order(sample: &Sample, mutants: &mut Mutants<'_>) {
    for (name, graph) in sample.model.subgraphs() {
        for (later, reader) in graph.operations.iter().enumerate() {
            for (earlier, writer) in graph.operations[..later].iter().enumerate() {
                if !reader.inputs.iter().any(|index| writer.outputs.contains(index)) {
                    continue;
                }
                let what = format!("operations {earlier} and {later} of the {name} change places");
                mutants.add(&["MODEL-23"], what, |model| {
                    graph_mut(model, name).operations.swap(earlier, later);
                });
            }
            for position in 0..reader.inputs.len() {
                for output in reader.outputs.clone() {
                    let what = format!("operation {later} of the {name} reads its output {output}");
                    mutants.add(&["MODEL-23"], what, |model| {
                        let graph = graph_mut(model, name);
                        graph.operations[later].inputs[position] = output;
                        recount(graph);
                    });
                }
            }
        }
    }
}

pub fn model_24_consumers(_: &Sample, mutants: &mut Mutants<'_>) {
    for delta in [1, u32::MAX] {
        mutants.add_for_operands(
            &["MODEL-24"],
            "other consumers",
            |_| true,
            |operand| {
                operand.number_of_consumers = operand.number_of_consumers.wrapping_add(delta);
            },
        );
    }
}
