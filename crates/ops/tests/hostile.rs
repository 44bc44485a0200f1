//! Whatever a client sends, validation answers: it never panics, and its answers for the versions
//! fit together.

mod garbage;
mod samples;

use garbage::Source;
use nnhal_hal::{HalVersion, Model};
use nnhal_ops::validate::{CheckedModel, oldest_version};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// What is left of a model without the operations that cannot be run is valid, and nothing is only
/// if all of them cannot.
fn check_part(checked: &CheckedModel) -> Result<(), TestCaseError> {
    let obstacles = checked.obstacles();
    let left: Vec<_> = (0..obstacles.len()).filter(|index| obstacles[*index].is_none()).collect();
    let part = checked.runnable_part();
    prop_assert_eq!(part.map_or(Vec::new(), |part| part.operations), left);
    Ok(())
}

/// Later versions allow all that earlier ones do, and [`oldest_version`] tells from which on.
fn check_versions(model: &Model) -> Result<(), TestCaseError> {
    let oldest = oldest_version(model).ok();
    for version in HalVersion::ALL.iter().copied() {
        let result = nnhal_ops::validate::check(model, version);
        let expected = oldest.is_some_and(|oldest| version >= oldest);
        prop_assert_eq!(result.is_ok(), expected, "{}: {:?}", version, result);
        let valid = nnhal_ops::validate(model, version);
        let is_whole = result.as_ref().is_ok_and(|checked| checked.defects().is_empty());
        prop_assert_eq!(valid.is_ok(), is_whole, "{}: {:?}", version, valid);
        if let Ok(checked) = &result {
            check_part(checked)?;
        }
        if let Err(error) = result {
            prop_assert!(!error.to_string().is_empty());
            prop_assert!(!error.rule().is_empty());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn gen_8_wild_models_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_versions(&garbage::wild(&mut Source::new(&bytes)))?;
    }

    #[test]
    fn gen_8_damaged_models_do_no_harm(
        sample in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut samples = samples::all();
        let mut model = samples.swap_remove(sample.index(samples.len())).model;
        garbage::damage(&mut model, &mut Source::new(&bytes));
        check_versions(&model)?;
    }
}

/// Fails if validating takes more than `limit`. Linear work stays far below, work that grows with
/// the square of the model does not.
fn expect_fast(model: &Model, limit: Duration) {
    let start = Instant::now();
    let result = nnhal_ops::validate(model, HalVersion::LATEST);
    assert!(start.elapsed() < limit, "{:?}: {:?}", start.elapsed(), result.err());
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn sec_3_large_models_take_time_in_proportion() {
    use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};
    let count = 100_000;
    let spec = || OperandSpec::tensor_float32([]);
    let mut graph = SubgraphBuilder::new();
    let first = graph.input("x", OperandSpec::tensor_float32([2, 1, 3]));
    let last = (0..count).fold(first, |x, _| graph.operation(OperationType::Relu, [x], spec()));
    graph.output(last);
    expect_fast(&graph.into_model().unwrap(), Duration::from_secs(20));
}

#[test]
fn sec_3_many_operations_that_read_one_large_constant_take_time_in_proportion() {
    use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};
    let mut graph = SubgraphBuilder::new();
    let x = graph.input("x", OperandSpec::tensor_float32([2, 2]));
    let axes = vec![0_i32; 1 << 20];
    let axes = graph.constant(OperandSpec::tensor_int32([1 << 20]), &axes);
    let keep = graph.scalar_i32(1);
    for _ in 0..10_000 {
        graph.operation(OperationType::Mean, [x, axes, keep], OperandSpec::tensor_float32([]));
    }
    expect_fast(&graph.into_model().unwrap(), Duration::from_secs(20));
}

#[test]
fn sec_3_long_lists_of_scales_are_compared_once() {
    use nnhal_hal::{ModelBuilder, OperandSpec, OperationType, SubgraphBuilder};
    let channels = 1 << 20;
    let scales = vec![1.0_f32; channels as usize];
    // Not shared: each operand has a list of its own, as models from other processes have.
    let spec = || OperandSpec::tensor_quant8_symm_per_channel([channels], &scales, 0);
    let truth = || OperandSpec::tensor_bool8([1]);
    let mut branch = SubgraphBuilder::new();
    branch.input("x", spec());
    let constant = branch.constant(truth(), &[true]);
    let y = branch.operation(OperationType::LogicalNot, [constant], truth());
    branch.output(y);
    let mut builder = ModelBuilder::new();
    let branch = builder.reference(branch);
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", truth());
    let x = main.input("x", spec());
    let branch = main.subgraph(branch);
    for _ in 0..10_000 {
        main.operation(OperationType::If, [condition, branch, branch, x], truth());
    }
    expect_fast(&builder.build(main).unwrap(), Duration::from_secs(20));
}

#[test]
fn sec_3_many_subgraphs_beside_and_within_each_other_take_time_in_proportion() {
    use nnhal_hal::{ModelBuilder, OperandSpec, OperationType, SubgraphBuilder};
    let truth = || OperandSpec::tensor_bool8([1]);
    for is_deep in [false, true] {
        let mut builder = ModelBuilder::new();
        let mut leaf = SubgraphBuilder::new();
        let x = leaf.input("x", truth());
        let y = leaf.operation(OperationType::LogicalNot, [x], truth());
        leaf.output(y);
        let leaf = builder.reference(leaf);
        let (mut inner, mut all) = (leaf, Vec::new());
        for _ in 0..10_000 {
            let mut graph = SubgraphBuilder::new();
            let x = graph.input("x", truth());
            let branch = graph.subgraph(if is_deep { inner } else { leaf });
            let y = graph.operation(OperationType::If, [x, branch, branch, x], truth());
            graph.output(y);
            inner = builder.reference(graph);
            all.push(inner);
        }
        let mut main = SubgraphBuilder::new();
        let mut x = main.input("x", truth());
        for inner in all {
            let branch = main.subgraph(inner);
            x = main.operation(OperationType::If, [x, branch, branch, x], truth());
        }
        main.output(x);
        expect_fast(&builder.build(main).unwrap(), Duration::from_secs(5));
    }
}

#[test]
fn sec_3_many_operands_and_long_lists_take_time_in_proportion() {
    use nnhal_hal::{OperandSpec, OperationType, SubgraphBuilder};
    let mut graph = SubgraphBuilder::new();
    let spec = || OperandSpec::tensor_float32([1]);
    let parts: Vec<_> = (0..100_000).map(|_| graph.input("x", spec())).collect();
    let axis = graph.scalar_i32(0);
    let whole = OperandSpec::tensor_float32([]);
    let inputs: Vec<_> = parts.into_iter().chain([axis]).collect();
    let y = graph.operation(OperationType::Concatenation, inputs, whole);
    graph.output(y);
    expect_fast(&graph.into_model().unwrap(), Duration::from_secs(5));
}
