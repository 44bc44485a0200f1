//! Valid models broken in one place, by every rule of the contract's section 8: each must be
//! refused, and for the right reason.

mod control_flow;
mod graphs;
mod operands;
mod operations;
#[path = "../samples/mod.rs"]
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
    matches!(operand.lifetime, OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput)
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

const BREAKAGES: &[(&str, Breakage)] = &[
    ("model_1_emptiness", graphs::model_1_emptiness),
    ("model_3_and_4_foreign_types", operands::model_3_and_4_foreign_types),
    ("model_5_to_7_dimensions", operands::model_5_to_7_dimensions),
    ("model_8_scales", operands::model_8_scales),
    ("model_9_zero_points", operands::model_9_zero_points),
    ("model_10_and_11_extra_params", operands::model_10_and_11_extra_params),
    ("model_12_and_13_lifetimes", operands::model_12_and_13_lifetimes),
    ("model_14_to_16_locations", operands::model_14_to_16_locations),
    ("model_17_sizes", operands::model_17_sizes),
    ("model_19_arguments", graphs::model_19_arguments),
    ("model_20_to_22_operation_lists", graphs::model_20_to_22_operation_lists),
    ("model_23_order", graphs::model_23_order),
    ("model_24_consumers", graphs::model_24_consumers),
    ("model_25_arguments", operations::model_25_arguments),
    ("model_25_types", operations::model_25_types),
    ("model_26_left_out", operations::model_26_left_out),
    ("ext_2_and_3_names", operations::ext_2_and_3_names),
    ("cf_1_to_6_control_flow", control_flow::cf_1_to_6_control_flow),
    ("cf_4_unknown_sizes", control_flow::cf_4_unknown_sizes),
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
            operations::retype(&mut model.main.operands[*index], *operand_type);
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
                        failures.push(format!(
                            "{place}: {}, expected {rules:?}: {error}",
                            error.rule()
                        ));
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
