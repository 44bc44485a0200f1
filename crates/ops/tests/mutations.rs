//! Valid models broken in one place, by every rule of the contract's section 8: each must be
//! refused, and for the right reason.

mod samples;

use hal::model::SubgraphName;
use hal::{
    ChannelQuant, DataLocation, ExtensionNameAndPrefix, ExtensionType, ExtraParams, HalVersion,
    Model, Operand, OperandLifeTime, OperandType, Operation, OperationType, Subgraph,
};
use samples::Sample;

/// A model that must be refused.
struct Mutant {
    what: String,
    model: Model,
    /// The rules of which one must be named; empty for any.
    rules: &'static [&'static str],
}

/// A way to break models: gives every mutant that it can make of a sample.
type Breakage = fn(&Sample, &mut Mutants<'_>);

/// Collects the mutants of a sample.
struct Mutants<'a> {
    sample: &'a Sample,
    all: Vec<Mutant>,
}

impl Mutants<'_> {
    /// The sample with one change.
    fn add(
        &mut self,
        rules: &'static [&'static str],
        what: String,
        change: impl FnOnce(&mut Model),
    ) {
        let mut model = self.sample.model.clone();
        change(&mut model);
        self.all.push(Mutant { what, model, rules });
    }

    /// The sample with a change to one operand, for each operand that it applies to.
    fn add_for_operands(
        &mut self,
        rules: &'static [&'static str],
        what: &str,
        applies: impl Fn(&Operand) -> bool,
        change: impl Fn(&mut Operand),
    ) {
        for (name, graph) in self.sample.model.subgraphs() {
            for (index, operand) in graph.operands.iter().enumerate() {
                if applies(operand) {
                    self.add(rules, format!("operand {index} of the {name}: {what}"), |model| {
                        change(&mut graph_mut(model, name).operands[index]);
                    });
                }
            }
        }
    }

    /// The sample with a change to one operation, for each operation.
    fn add_for_operations(
        &mut self,
        rules: &'static [&'static str],
        what: &str,
        change: impl Fn(&mut Operation),
    ) {
        for (name, graph) in self.sample.model.subgraphs() {
            for index in 0..graph.operations.len() {
                self.add(rules, format!("operation {index} of the {name}: {what}"), |model| {
                    change(&mut graph_mut(model, name).operations[index]);
                });
            }
        }
    }
}

fn graph_mut(model: &mut Model, name: SubgraphName) -> &mut Subgraph {
    match name {
        SubgraphName::Main => &mut model.main,
        SubgraphName::Referenced(index) => &mut model.referenced[index],
    }
}

/// Brings the numbers of consumers in line with the operations.
fn recount(graph: &mut Subgraph) {
    for operand in &mut graph.operands {
        operand.number_of_consumers = 0;
    }
    for index in graph.operations.iter().flat_map(|operation| &operation.inputs) {
        graph.operands[*index as usize].number_of_consumers += 1;
    }
}

fn is_tensor(operand: &Operand) -> bool {
    operand.operand_type.is_tensor() == Some(true)
}

fn is_constant(operand: &Operand) -> bool {
    operand.lifetime.is_constant()
}

fn is_result(operand: &Operand) -> bool {
    matches!(
        operand.lifetime,
        OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput
    )
}

fn is_extension(operand: &Operand) -> bool {
    matches!(operand.operand_type, OperandType::Extension(_))
}

fn is_fundamental(operand: &Operand) -> bool {
    !is_extension(operand)
}

fn channels(count: u32) -> ExtraParams {
    let scales = vec![1.0; count as usize].into();
    ExtraParams::ChannelQuant(ChannelQuant { scales, channel_dim: 0 })
}

fn model_1_emptiness(sample: &Sample, mutants: &mut Mutants<'_>) {
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

/// 0xFFFFFFFF is the greatest type number that a client can write: of an extension that no sample
/// names.
fn model_3_and_4_foreign_types(sample: &Sample, mutants: &mut Mutants<'_>) {
    let foreign = ExtensionType::from_code(0xFFFF_FFFF).unwrap();
    let rules: &[&str] =
        if sample.version < HalVersion::V1_2 { &["EXT-1"] } else { &["EXT-3", "MODEL-12"] };
    mutants.add_for_operands(rules, "type 0xFFFFFFFF", |_| true, |operand| {
        operand.operand_type = OperandType::Extension(foreign);
    });
    mutants.add_for_operations(rules, "type 0xFFFFFFFF", |operation| {
        operation.operation_type = OperationType::Extension(foreign);
    });
    if sample.version < HalVersion::V1_3 {
        mutants.add_for_operands(&["MODEL-3"], "a newer type", |_| true, |operand| {
            operand.operand_type = OperandType::TensorQuant8AsymmSigned;
        });
    }
    mutants.add_for_operations(&["MODEL-4"], "a newer operation", |operation| {
        operation.operation_type = OperationType::Pack;
    });
}

fn model_5_to_7_dimensions(sample: &Sample, mutants: &mut Mutants<'_>) {
    let is_scalar = |operand: &Operand| operand.operand_type.is_scalar();
    for dimensions in [vec![1], vec![0], vec![2, 3]] {
        mutants.add_for_operands(&["MODEL-5"], "a scalar with dimensions", is_scalar, |operand| {
            operand.dimensions.clone_from(&dimensions);
        });
    }
    if sample.version < HalVersion::V1_2 {
        mutants.add_for_operands(&["MODEL-6"], "unknown rank", is_tensor, |operand| {
            operand.dimensions.clear();
        });
    }
    let is_constant_tensor = |operand: &Operand| is_tensor(operand) && is_constant(operand);
    mutants.add_for_operands(
        &["MODEL-6", "MODEL-7"],
        "a constant of unknown rank",
        is_constant_tensor,
        |operand| operand.dimensions.clear(),
    );
    mutants.add_for_operands(
        &["MODEL-7"],
        "a constant with an unknown dimension",
        is_constant_tensor,
        |operand| {
            operand.dimensions[0] = 0;
            operand.location.length = 0;
        },
    );
}

fn model_8_scales(_: &Sample, mutants: &mut Mutants<'_>) {
    let per_channel = OperandType::TensorQuant8SymmPerChannel;
    for scale in [-1.0, f32::NAN, f32::NEG_INFINITY] {
        let what = format!("scale {scale}");
        mutants.add_for_operands(&["MODEL-8"], &what, is_fundamental, |it| it.scale = scale);
        mutants.add_for_operands(&["EXT-4"], &what, is_extension, |it| it.scale = scale);
    }
    let has_scale = |operand: &Operand| {
        let ty = operand.operand_type;
        ty.quantized_range().is_some() && ty != per_channel
    };
    mutants.add_for_operands(&["MODEL-8"], "scale 0", has_scale, |it| it.scale = 0.0);
    let has_none = |operand: &Operand| {
        is_fundamental(operand)
            && !has_scale(operand)
            && operand.operand_type != OperandType::TensorInt32
    };
    mutants.add_for_operands(&["MODEL-8"], "a scale", has_none, |it| it.scale = 1.0);
}

fn model_9_zero_points(_: &Sample, mutants: &mut Mutants<'_>) {
    for zero_point in [i32::MIN, -129, -1, 256, 65536, i32::MAX] {
        let what = format!("zero point {zero_point}");
        mutants.add_for_operands(&["MODEL-9"], &what, is_fundamental, |it| {
            it.zero_point = zero_point;
        });
        mutants.add_for_operands(&["EXT-4"], &what, is_extension, |it| it.zero_point = zero_point);
    }
}

fn model_10_and_11_extra_params(_: &Sample, mutants: &mut Mutants<'_>) {
    let per_channel =
        |operand: &Operand| operand.operand_type == OperandType::TensorQuant8SymmPerChannel;
    let plain = |operand: &Operand| is_fundamental(operand) && !per_channel(operand);
    mutants.add_for_operands(&["MODEL-10"], "channel scales", plain, |operand| {
        operand.extra_params = channels(operand.dimensions.first().copied().unwrap_or(1));
    });
    mutants.add_for_operands(&["EXT-4"], "channel scales", is_extension, |operand| {
        operand.extra_params = channels(1);
    });
    mutants.add_for_operands(&["MODEL-10"], "an extension's blob", is_fundamental, |operand| {
        operand.extra_params = ExtraParams::Extension([1].as_slice().into());
    });
    mutants.add_for_operands(&["MODEL-10"], "no channel scales", per_channel, |operand| {
        operand.extra_params = ExtraParams::None;
    });
    type Change = fn(&mut ChannelQuant);
    let changes: [(&str, Change); 8] = [
        ("axis behind the last", |it| it.channel_dim = 4),
        ("axis 2^32 - 1", |it| it.channel_dim = u32::MAX),
        ("another axis", |it| it.channel_dim = 1),
        ("no scales", |it| it.scales = [].as_slice().into()),
        ("a scale too many", |it| it.scales = [0.25, 0.5, 0.5].as_slice().into()),
        ("a scale of 0", |it| it.scales = [0.25, 0.0].as_slice().into()),
        ("a negative scale", |it| it.scales = [-0.25, 0.5].as_slice().into()),
        ("a scale that is NaN", |it| it.scales = [f32::NAN, 0.5].as_slice().into()),
    ];
    for (what, change) in changes {
        mutants.add_for_operands(&["MODEL-11"], what, per_channel, |operand| {
            if let ExtraParams::ChannelQuant(quant) = &mut operand.extra_params {
                change(quant);
            }
        });
    }
}

fn model_12_and_13_lifetimes(_: &Sample, mutants: &mut Mutants<'_>) {
    let is_subgraph = |operand: &Operand| operand.operand_type == OperandType::Subgraph;
    mutants.add_for_operands(
        &["MODEL-12"],
        "lifetime SUBGRAPH",
        |operand| !is_subgraph(operand),
        |operand| operand.lifetime = OperandLifeTime::Subgraph,
    );
    mutants.add_for_operands(&["MODEL-12"], "lifetime NO_VALUE", is_subgraph, |operand| {
        operand.lifetime = OperandLifeTime::NoValue;
    });
    let has_no_location = |operand: &Operand| !is_constant(operand) && !is_subgraph(operand);
    let zero = DataLocation::default();
    for location in [
        DataLocation { pool_index: 1, ..zero },
        DataLocation { offset: 1, ..zero },
        DataLocation { length: 1, ..zero },
    ] {
        let what = format!("{location:?}");
        mutants.add_for_operands(&["MODEL-13"], &what, has_no_location, |operand| {
            operand.location = location;
        });
    }
}

fn model_14_to_16_locations(sample: &Sample, mutants: &mut Mutants<'_>) {
    let pools = u32::try_from(sample.model.pools.len()).unwrap();
    for offset in [u32::MAX, u32::MAX - 3, 1 << 20] {
        let what = format!("offset {offset}");
        mutants.add_for_operands(&["MODEL-14"], &what, is_constant, |operand| {
            operand.location.offset = offset;
        });
    }
    for pool_index in [pools.max(1), u32::MAX] {
        let what = format!("pool {pool_index}");
        mutants.add_for_operands(&["MODEL-14"], &what, is_constant, |operand| {
            operand.location.pool_index = pool_index;
        });
    }
    let is_measured = |operand: &Operand| is_constant(operand) && is_fundamental(operand);
    type Change = fn(&mut Operand);
    let changes: [(&str, Change); 3] = [
        ("a byte less", |it| it.location.length -= 1),
        ("no bytes", |it| it.location.length = 0),
        ("a byte more", |it| {
            it.location.length += 1;
            it.location.offset = it.location.offset.saturating_sub(1);
        }),
    ];
    for (what, change) in changes {
        // A byte more may reach beyond the pool as well.
        mutants.add_for_operands(&["MODEL-15", "MODEL-14"], what, is_measured, change);
    }
    let is_subgraph = |operand: &Operand| operand.lifetime == OperandLifeTime::Subgraph;
    let subgraphs = u32::try_from(sample.model.referenced.len()).unwrap();
    for location in [
        DataLocation { offset: subgraphs, ..DataLocation::default() },
        DataLocation { offset: u32::MAX, ..DataLocation::default() },
        DataLocation { pool_index: 1, ..DataLocation::default() },
        DataLocation { length: 4, ..DataLocation::default() },
    ] {
        let what = format!("{location:?}");
        mutants.add_for_operands(&["MODEL-16"], &what, is_subgraph, |operand| {
            operand.location = location;
        });
    }
}

fn model_17_sizes(_: &Sample, mutants: &mut Mutants<'_>) {
    for dimensions in [vec![u32::MAX; 4], vec![1 << 16, 1 << 16], vec![1 << 31, 0, 2]] {
        let what = format!("dimensions {dimensions:?}");
        // Constants must not have unknown dimensions either; channel scales not fit.
        let rules = &["MODEL-17", "MODEL-7"];
        mutants.add_for_operands(rules, &what, is_tensor, |operand| {
            operand.dimensions.clone_from(&dimensions);
        });
    }
}

fn model_19_arguments(sample: &Sample, mutants: &mut Mutants<'_>) {
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
                    mutants.add(RULE, format!("operand {index} as {side} of the {name}"), |model| {
                        list(graph_mut(model, name)).push(u32::try_from(index).unwrap());
                    });
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

fn model_20_to_22_operation_lists(sample: &Sample, mutants: &mut Mutants<'_>) {
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
        mutants.add(&["MODEL-22"], format!("a temporary of the {name} that nobody writes"), |model| {
            let graph = graph_mut(model, name);
            let result = graph.operands.iter().find(|operand| is_result(operand)).unwrap();
            graph.operands.push(Operand {
                lifetime: OperandLifeTime::TemporaryVariable,
                number_of_consumers: 0,
                ..result.clone()
            });
        });
    }
}

fn model_23_order(sample: &Sample, mutants: &mut Mutants<'_>) {
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

fn model_24_consumers(_: &Sample, mutants: &mut Mutants<'_>) {
    for delta in [1, u32::MAX] {
        mutants.add_for_operands(&["MODEL-24"], "other consumers", |_| true, |operand| {
            operand.number_of_consumers = operand.number_of_consumers.wrapping_add(delta);
        });
    }
}

/// Whether a definition stands behind an operation of a sample.
fn is_defined(operation: &Operation) -> bool {
    ops::Signature::of(operation.operation_type).is_some()
}

fn model_25_arguments(sample: &Sample, mutants: &mut Mutants<'_>) {
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
fn retype(operand: &mut Operand, operand_type: OperandType) {
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

fn model_25_types(sample: &Sample, mutants: &mut Mutants<'_>) {
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

fn model_26_left_out(sample: &Sample, mutants: &mut Mutants<'_>) {
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

fn ext_2_and_3_names(sample: &Sample, mutants: &mut Mutants<'_>) {
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

fn cf_1_to_6_control_flow(sample: &Sample, mutants: &mut Mutants<'_>) {
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
                        let operand = &mut graph_mut(model, name).operands
                            [step.inputs[position] as usize];
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

fn cf_4_unknown_sizes(sample: &Sample, mutants: &mut Mutants<'_>) {
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

const BREAKAGES: &[(&str, Breakage)] = &[
    ("model_1_emptiness", model_1_emptiness),
    ("model_3_and_4_foreign_types", model_3_and_4_foreign_types),
    ("model_5_to_7_dimensions", model_5_to_7_dimensions),
    ("model_8_scales", model_8_scales),
    ("model_9_zero_points", model_9_zero_points),
    ("model_10_and_11_extra_params", model_10_and_11_extra_params),
    ("model_12_and_13_lifetimes", model_12_and_13_lifetimes),
    ("model_14_to_16_locations", model_14_to_16_locations),
    ("model_17_sizes", model_17_sizes),
    ("model_19_arguments", model_19_arguments),
    ("model_20_to_22_operation_lists", model_20_to_22_operation_lists),
    ("model_23_order", model_23_order),
    ("model_24_consumers", model_24_consumers),
    ("model_25_arguments", model_25_arguments),
    ("model_25_types", model_25_types),
    ("model_26_left_out", model_26_left_out),
    ("ext_2_and_3_names", ext_2_and_3_names),
    ("cf_1_to_6_control_flow", cf_1_to_6_control_flow),
    ("cf_4_unknown_sizes", cf_4_unknown_sizes),
];

#[test]
fn samples_are_valid_from_their_version_on() {
    for sample in samples::all() {
        for version in HalVersion::ALL.iter().copied() {
            let result = ops::validate(&sample.model, version);
            match result {
                Ok(_) => assert!(version >= sample.version, "{}: {version}", sample.name),
                Err(error) => assert!(version < sample.version, "{}: {error}", sample.name),
            }
        }
        assert_eq!(ops::validate::oldest_version(&sample.model), Ok(sample.version));
    }
}

#[test]
fn alternative_types_are_accepted() {
    for sample in samples::all() {
        for (index, operand_type) in &sample.alternatives {
            let mut model = sample.model.clone();
            retype(&mut model.main.operands[*index], *operand_type);
            let result = ops::validate(&model, sample.version);
            assert!(result.is_ok(), "{}: {operand_type}: {result:?}", sample.name);
        }
    }
}

#[test]
fn every_mutant_is_refused_for_the_right_reason() {
    let mut failures = Vec::new();
    for (name, breakage) in BREAKAGES {
        let mut count = 0;
        for sample in samples::all() {
            let mut mutants = Mutants { sample: &sample, all: Vec::new() };
            breakage(&sample, &mut mutants);
            count += mutants.all.len();
            for Mutant { what, model, rules } in mutants.all {
                let place = format!("{name}, {}: {what}", sample.name);
                match ops::validate(&model, sample.version) {
                    Ok(_) => failures.push(format!("{place}: accepted")),
                    Err(error) if !rules.is_empty() && !rules.contains(&error.rule()) => {
                        failures.push(format!("{place}: {}, expected {rules:?}: {error}", error.rule()));
                    }
                    Err(_) => {}
                }
            }
        }
        assert!(count > 0, "{name} breaks nothing");
        println!("{name}: {count} mutants");
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
