//! What profiles call kernels: operation, filter, algorithm, type and instruction set, in words.

#[path = "../../reference/tests/calls/mod.rs"]
mod calls;
mod support;

use calls::model::{Constants, Shapes, alone};
use calls::random::Random;
use calls::samples;
use nnhal_hal::{Model, OperandSpec, OperationType, SubgraphBuilder};
use std::collections::BTreeSet;
use support::steps;

/// Those that only move elements, and the one that is slow.
const WITHOUT_TYPE: [&str; 9] = [
    "copy",
    "gather",
    "gather nd",
    "hashtable lookup",
    "reference",
    "requantizing copy",
    "select",
    "update slice",
    "update slice in place",
];
const TYPES: [&str; 13] =
    ["f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "bool", "8-bit"];
const INSTRUCTION_SETS: [&str; 9] = [
    "portable",
    "avx2",
    "avx-vnni",
    "avx512",
    "avx512-vnni",
    "avx512-amx",
    "neon",
    "neon-dotprod",
    "neon-i8mm",
];

fn kernels(model: &Model) -> Vec<String> {
    let steps = steps(model);
    for step in &steps {
        let is_reference = step.kernel == "reference";
        let says_why = step.why_reference.as_ref().is_some_and(|why| !why.is_empty());
        assert_eq!(is_reference, says_why, "{step:?}");
    }
    steps.into_iter().map(|step| step.kernel).collect()
}

/// Whether a name ends in a type, and perhaps an instruction set behind it.
fn has_form(name: &str) -> bool {
    let mut words: Vec<&str> = name.split(' ').collect();
    if words.last().is_some_and(|last| INSTRUCTION_SETS.contains(last)) {
        words.pop();
    }
    let is_plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    words.len() >= 2
        && words.iter().all(|word| !word.is_empty() && word.chars().all(is_plain))
        && words.last().is_some_and(|last| TYPES.contains(last))
}

#[test]
fn kernels_of_all_operations_are_named_in_one_form() {
    let mut names = BTreeSet::new();
    for operation in samples::operations() {
        for seed in 0..4 {
            let mut random = Random::new(seed);
            let sample = samples::draw(operation, &mut random).expect("a sample");
            for row in sample.rows() {
                for constants in [Constants::AllButFirst, Constants::None] {
                    let call = sample.typed(row);
                    let (model, _) =
                        alone(&call, Shapes::OfInputs, constants, &mut random).unwrap();
                    names.extend(kernels(&model));
                }
            }
        }
    }
    let strange: Vec<&String> = names
        .iter()
        .filter(|name| !WITHOUT_TYPE.contains(&name.as_str()) && !has_form(name))
        .collect();
    assert!(strange.is_empty(), "{strange:?} of {names:?}");
    assert!(names.len() > 40, "{names:?}");
}

#[test]
fn a_convolution_is_named_by_filter_algorithm_and_type() {
    let image = || OperandSpec::tensor_float32([1, 32, 32, 32]);
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", image());
    let filter =
        graph.constant(OperandSpec::tensor_float32([32, 3, 3, 32]), &vec![0.5_f32; 32 * 9 * 32]);
    let bias = graph.constant(OperandSpec::tensor_float32([32]), &[0.0_f32; 32]);
    let mut inputs = vec![x, filter, bias];
    inputs.extend([1, 1, 1, 0].map(|number| graph.scalar_i32(number)));
    let y = graph.operation(OperationType::Conv2d, inputs, image());
    graph.output(y);
    let names = kernels(&graph.into_model().unwrap());
    assert!(names[0].starts_with("conv2d 3x3 winograd f32 "), "{names:?}");
}

#[test]
fn a_grouped_convolution_with_one_channel_in_each_group_is_depthwise() {
    let image = |channels| OperandSpec::tensor_float32([1, 8, 8, channels]);
    for (groups, units, kernel) in [
        (16, 16, "depthwise conv2d 3x3 "),
        (16, 32, "depthwise conv2d 3x3 "),
        (8, 16, "grouped conv2d 3x3 "),
    ] {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", image(16));
        let each = 16 / groups;
        let filter = OperandSpec::tensor_float32([units, 3, 3, each]);
        let filter = graph.constant(filter, &vec![0.5_f32; (units * 9 * each) as usize]);
        let bias = OperandSpec::tensor_float32([units]);
        let bias = graph.constant(bias, &vec![0.0_f32; units as usize]);
        let mut inputs = vec![x, filter, bias];
        inputs.extend([1, 1, 1, groups.cast_signed(), 0].map(|number| graph.scalar_i32(number)));
        inputs.push(graph.scalar_bool(false));
        let y = graph.operation(OperationType::GroupedConv2d, inputs, image(units));
        graph.output(y);
        let names = kernels(&graph.into_model().unwrap());
        assert!(names.len() == 1 && names[0].starts_with(kernel), "{groups}: {names:?}");
    }
}
