//! Operations with wrong arguments, and extensions without names: MODEL-25, MODEL-26, EXT-2, EXT-3.

use crate::*;

/// Whether a definition stands behind an operation of a sample.
fn is_defined(operation: &Operation) -> bool {
    ops::Signature::of(operation.operation_type).is_some()
}

pub fn model_25_arguments(sample: &Sample, mutants: &mut Mutants<'_>) {
    const RULES: &[&str] = &["MODEL-25", "CF-1", "CF-2", "CF-3"];
    for (name, graph) in sample.model.subgraphs() {
        for (index, operation) in graph.operations.iter().enumerate() {
            if !is_defined(operation) {
                continue;
            }
            for position in 0..operation.inputs.len() {
                let what = format!("operation {index} of the {name} without input {position}");
                mutants.add(RULES, what, |model| {
                    let graph = graph_mut(model, name);
                    graph.operations[index].inputs.remove(position);
                    recount(graph);
                });
                let what = format!("operation {index} of the {name} with input {position} twice");
                mutants.add(RULES, what, |model| {
                    let graph = graph_mut(model, name);
                    let inputs = &mut graph.operations[index].inputs;
                    inputs.insert(position, inputs[position]);
                    recount(graph);
                });
            }
            for position in 0..operation.outputs.len() {
                let what = format!("operation {index} of the {name} without output {position}");
                // The operand then has no writer.
                mutants.add(&["MODEL-22"], what, |model| {
                    graph_mut(model, name).operations[index].outputs.remove(position);
                });
                if operation.operation_type == OperationType::While {
                    // It may give one more of what its body gives.
                    continue;
                }
                let what = format!("operation {index} of the {name} with another output");
                mutants.add(RULES, what, |model| {
                    let graph = graph_mut(model, name);
                    let like = operation.outputs[position] as usize;
                    let next = u32::try_from(graph.operands.len()).unwrap();
                    graph.operands.push(Operand {
                        lifetime: OperandLifeTime::TemporaryVariable,
                        number_of_consumers: 0,
                        ..graph.operands[like].clone()
                    });
                    graph.operations[index].outputs.insert(position, next);
                });
            }
        }
    }
}

/// Gives an operand another type, all that goes with the type included.
pub fn retype(operand: &mut Operand, operand_type: OperandType) {
    let elements: u32 = operand.dimensions.iter().product();
    operand.operand_type = operand_type;
    operand.scale = 0.0;
    operand.zero_point = 0;
    operand.extra_params = ExtraParams::None;
    match operand_type {
        OperandType::TensorQuant8SymmPerChannel => {
            operand.extra_params = channels(operand.dimensions.first().copied().unwrap_or(0));
        }
        _ if operand_type.quantized_range().is_some() => operand.scale = 0.25,
        _ => {}
    }
    if operand_type.is_scalar() {
        operand.dimensions.clear();
    }
    if operand.lifetime.is_constant() {
        let size = operand_type.element_size().unwrap_or(1);
        operand.location.length = size * elements;
        // Nothing else may be wrong with it, so it starts where there are bytes.
        operand.location.offset = 0;
    }
}

pub fn model_25_types(sample: &Sample, mutants: &mut Mutants<'_>) {
    for (name, graph) in sample.model.subgraphs() {
        for (index, operand) in graph.operands.iter().enumerate() {
            let place = u32::try_from(index).unwrap();
            let touched = |operation: &Operation| {
                is_defined(operation)
                    && (operation.inputs.contains(&place) || operation.outputs.contains(&place))
            };
            if !graph.operations.iter().any(touched) {
                continue;
            }
            for operand_type in OperandType::FUNDAMENTAL.iter().copied() {
                let is_alternative = name == SubgraphName::Main
                    && sample.alternatives.contains(&(index, operand_type));
                if operand_type == operand.operand_type || is_alternative {
                    continue;
                }
                let what = format!("operand {index} of the {name} as {operand_type}");
                mutants.add(&[], what, |model| {
                    retype(&mut graph_mut(model, name).operands[index], operand_type);
                });
            }
        }
    }
}

pub fn model_26_left_out(sample: &Sample, mutants: &mut Mutants<'_>) {
    for (name, graph) in sample.model.subgraphs() {
        for (index, operand) in graph.operands.iter().enumerate() {
            let place = u32::try_from(index).unwrap();
            let is_read = graph
                .operations
                .iter()
                .any(|operation| is_defined(operation) && operation.inputs.contains(&place));
            if !is_constant(operand) || !is_read {
                continue;
            }
            // Of a type that several lists of types differ in, the difference may be named.
            let rules = &["MODEL-26", "MODEL-25"];
            mutants.add(rules, format!("operand {index} of the {name} left out"), |model| {
                let operand = &mut graph_mut(model, name).operands[index];
                operand.lifetime = OperandLifeTime::NoValue;
                operand.location = DataLocation::default();
            });
        }
    }
}

pub fn ext_2_and_3_names(sample: &Sample, mutants: &mut Mutants<'_>) {
    let row = |name: &str, prefix| ExtensionNameAndPrefix { name: name.into(), prefix };
    let rules: &[&str] = if sample.version < HalVersion::V1_2 { &["EXT-1"] } else { &["EXT-2"] };
    for name in ["", "nodot", "Com.example.upper", "com.example.umläut"] {
        mutants.add(rules, format!("an extension called {name:?}"), |model| {
            model.extension_name_to_prefix.push(row(name, 0x77));
        });
    }
    for (first, second) in [(("a.b", 0x77), ("a.b", 0x78)), (("a.b", 0x77), ("a.c", 0x77))] {
        mutants.add(rules, format!("extensions {first:?} and {second:?}"), |model| {
            model.extension_name_to_prefix.push(row(first.0, first.1));
            model.extension_name_to_prefix.push(row(second.0, second.1));
        });
    }
    for index in 0..sample.model.extension_name_to_prefix.len() {
        mutants.add(&["EXT-3"], format!("extension {index} without a name"), |model| {
            model.extension_name_to_prefix.remove(index);
        });
    }
}
