//! IF and WHILE that do not go with their subgraphs: CF-1 to CF-6.

use crate::*;

pub fn cf_1_to_6_control_flow(sample: &Sample, mutants: &mut Mutants<'_>) {
    const CONDITION: &[&str] = &["CF-1", "MODEL-7", "MODEL-15"];
    for (name, graph) in sample.model.subgraphs() {
        for (index, step) in graph.operations.iter().enumerate() {
            if step.operation_type == OperationType::If {
                for dimensions in [vec![], vec![0], vec![2], vec![1, 1]] {
                    let condition = step.inputs[0] as usize;
                    let what = format!("condition of operation {index} of the {name}");
                    // A constant of that shape breaks other rules before.
                    mutants.add(CONDITION, format!("{what} of {dimensions:?}"), |model| {
                        graph_mut(model, name).operands[condition].dimensions = dimensions;
                    });
                }
            }
            for position in 0..step.inputs.len() {
                let operand = &graph.operands[step.inputs[position] as usize];
                if operand.lifetime != OperandLifeTime::Subgraph {
                    continue;
                }
                for target in 0..sample.model.referenced.len() {
                    if target == operand.location.offset as usize {
                        continue;
                    }
                    // Branches of one IF may be exchanged; nothing else fits anything else.
                    if sample.name == "branches" && name == SubgraphName::Main {
                        continue;
                    }
                    let what = format!(
                        "input {position} of operation {index} of the {name} as subgraph {target}"
                    );
                    mutants.add(&["CF-1", "CF-2", "CF-3", "CF-5"], what, |model| {
                        let operand =
                            &mut graph_mut(model, name).operands[step.inputs[position] as usize];
                        operand.location.offset = u32::try_from(target).unwrap();
                    });
                }
            }
        }
    }
    for (index, graph) in sample.model.referenced.iter().enumerate() {
        let name = SubgraphName::Referenced(index);
        let what = format!("{name} refers to itself");
        mutants.add(&["CF-5"], what, |model| {
            let operand = Operand {
                operand_type: OperandType::Subgraph,
                dimensions: vec![],
                number_of_consumers: 0,
                scale: 0.0,
                zero_point: 0,
                lifetime: OperandLifeTime::Subgraph,
                location: DataLocation {
                    offset: u32::try_from(index).unwrap(),
                    ..DataLocation::default()
                },
                extra_params: ExtraParams::None,
            };
            graph_mut(model, name).operands.push(operand);
        });
        for (position, operand) in graph.inputs.iter().enumerate() {
            // Of one shape with whatever it stands for.
            let what = format!("input {position} of the {name} is longer");
            mutants.add(&["CF-3", "MODEL-29"], what, |model| {
                let operand = &mut graph_mut(model, name).operands[*operand as usize];
                operand.dimensions = vec![7];
            });
        }
        for list in ["inputs", "outputs"] {
            // The body of the loop may give less: it gives more than the operation.
            let gives_more = sample.name == "loop" && index == 2;
            if gives_more && list == "outputs" {
                continue;
            }
            let what = format!("the {name} has one of its {list} less");
            mutants.add(&["CF-1", "CF-2"], what, |model| {
                let graph = graph_mut(model, name);
                if list == "inputs" {
                    // What was an input becomes a constant.
                    let operand = graph.inputs.pop().unwrap() as usize;
                    let operand = &mut graph.operands[operand];
                    operand.lifetime = OperandLifeTime::ConstantCopy;
                    operand.location.length = operand.dimensions.iter().product::<u32>()
                        * operand.operand_type.element_size().unwrap();
                } else {
                    let operand = graph.outputs.pop().unwrap() as usize;
                    graph.operands[operand].lifetime = OperandLifeTime::TemporaryVariable;
                }
            });
        }
    }
}

pub fn cf_4_unknown_sizes(sample: &Sample, mutants: &mut Mutants<'_>) {
    if sample.name != "loop" {
        return;
    }
    let is_argument = |operand: &Operand| {
        matches!(operand.lifetime, OperandLifeTime::SubgraphInput | OperandLifeTime::SubgraphOutput)
            && operand.operand_type == OperandType::TensorFloat32
    };
    for dimensions in [vec![], vec![0]] {
        let what = format!("dimensions {dimensions:?}");
        mutants.add_for_operands(&["CF-4"], &what, is_argument, |operand| {
            operand.dimensions.clone_from(&dimensions);
        });
    }
}
