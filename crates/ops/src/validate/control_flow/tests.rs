use super::*;
use crate::validate::{OperationMistake, ValidationError, check_for_application, validate};
use nnhal_hal::{HalVersion, ModelBuilder, OperandId, OperandSpec, SubgraphBuilder};

fn float(dimensions: impl Into<Vec<u32>>) -> OperandSpec {
    OperandSpec::tensor_float32(dimensions)
}

fn truth() -> OperandSpec {
    OperandSpec::tensor_bool8([1])
}

/// `x -> RELU -> y` for each of the specs.
fn subgraph(specs: &[OperandSpec]) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    let inputs: Vec<_> = specs.iter().map(|spec| graph.input("x", spec.clone())).collect();
    for (x, spec) in inputs.into_iter().zip(specs) {
        let y = graph.operation(OperationType::Relu, [x], spec.clone());
        graph.output(y);
    }
    graph
}

/// Takes these and gives a truth value.
fn condition(specs: &[OperandSpec]) -> SubgraphBuilder {
    let mut graph = SubgraphBuilder::new();
    for spec in specs {
        graph.input("x", spec.clone());
    }
    let constant = graph.constant(truth(), &[true]);
    let y = graph.operation(OperationType::LogicalNot, [constant], truth());
    graph.output(y);
    graph
}

/// IF of `[2]` floats whose branches have one input and one output. In the main subgraph: 0
/// condition, 1 then, 2 else, 3 x, 4 y; in the branches: 0 x, 1 y.
fn if_model() -> Model {
    let mut builder = ModelBuilder::new();
    let then = builder.reference(subgraph(&[float([2])]));
    let otherwise = builder.reference(subgraph(&[float([2])]));
    let mut main = SubgraphBuilder::new();
    let condition = main.input("condition", truth());
    let (then, otherwise) = (main.subgraph(then), main.subgraph(otherwise));
    let x = main.input("x", float([2]));
    let y = main.operation(OperationType::If, [condition, then, otherwise, x], float([2]));
    main.output(y);
    builder.build(main).unwrap()
}

/// WHILE over two `[2]` floats, of which `results` come out. In the main subgraph: 0 condition, 1
/// body, 2 and 3 initial values, 4 and on results; condition is subgraph 0, body subgraph 1, in
/// which 0 and 1 are the inputs, 2 and 3 the outputs.
fn while_model(results: usize) -> Model {
    let specs = [float([2]), float([2])];
    let mut builder = ModelBuilder::new();
    let condition = builder.reference(condition(&specs));
    let body = builder.reference(subgraph(&specs));
    let mut main = SubgraphBuilder::new();
    let mut inputs = vec![main.subgraph(condition), main.subgraph(body)];
    inputs.extend(specs.map(|spec| main.input("x", spec)));
    let outputs: Vec<OperandId> = (0..results).map(|_| main.temporary(float([2]))).collect();
    main.operation_into(OperationType::While, &inputs, &outputs);
    outputs.into_iter().for_each(|output| main.output(output));
    builder.build(main).unwrap()
}

#[track_caller]
fn error_of(model: &Model) -> (ControlFlowError, &'static str) {
    let error = validate(model, HalVersion::V1_3).expect_err("a mistake");
    let rule = error.rule();
    let ValidationError::Operation { error, operation: 0, subgraph: SubgraphName::Main, .. } =
        error
    else {
        panic!("{error}");
    };
    match *error {
        OperationMistake::ControlFlow(error) => (error, rule),
        other => panic!("{other}"),
    }
}

#[track_caller]
fn incompatible(model: &Model) -> (Party, Party, &'static str) {
    match error_of(model) {
        (ControlFlowError::Incompatible { party, other, what, .. }, "CF-3") => (party, other, what),
        (error, rule) => panic!("{rule}: {error}"),
    }
}

fn operand(model: &mut Model, subgraph: usize, operand: usize) -> &mut Operand {
    &mut model.referenced[subgraph].operands[operand]
}

#[test]
fn if_and_while_are_accepted() {
    for model in [if_model(), while_model(1), while_model(2)] {
        let valid = validate(&model, HalVersion::V1_3).expect("a valid model");
        assert_eq!(valid.oldest_version(), HalVersion::V1_3);
    }
    assert!(validate(&if_model(), HalVersion::V1_2).is_err());
}

#[test]
fn cf_1_the_condition_is_one_truth_value() {
    for spec in [
        OperandSpec::tensor_bool8([2]),
        OperandSpec::tensor_bool8([0]),
        OperandSpec::tensor_bool8([]),
        OperandSpec::tensor_bool8([1, 1]),
    ] {
        let mut model = if_model();
        model.main.operands[0].dimensions = spec.dimensions;
        let (error, rule) = error_of(&model);
        assert!(matches!(error, ControlFlowError::Condition { .. }), "{error}");
        assert_eq!(rule, "CF-1");
    }
}

#[test]
fn cf_1_branches_take_and_give_what_the_operation_does() {
    for (branch, role) in [(0, Role::Then), (1, Role::Else)] {
        for specs in [&[][..], &[float([2]), float([2])]] {
            let mut model = if_model();
            let mut other = subgraph(specs);
            // Never empty, so that the rest of the rules hold.
            let constant = other.constant(float([1]), &[0.0_f32]);
            other.operation(OperationType::Relu, [constant], float([1]));
            let other = other.into_model().unwrap();
            model.referenced[branch] = other.main;
            model.operand_values = other.operand_values;
            let (error, rule) = error_of(&model);
            let (side, found) = (Side::Input, specs.len());
            assert_eq!(error, ControlFlowError::Count { role, side, found, least: 1, most: 1 });
            assert_eq!(rule, "CF-1");
        }
    }
}

#[test]
fn cf_1_branches_give_the_same_number_of_results() {
    let mut model = if_model();
    let output = operand(&mut model, 1, 1);
    output.lifetime = OperandLifeTime::TemporaryVariable;
    model.referenced[1].outputs.clear();
    let (error, rule) = error_of(&model);
    let (role, side) = (Role::Else, Side::Output);
    assert_eq!(error, ControlFlowError::Count { role, side, found: 0, least: 1, most: 1 });
    assert_eq!(rule, "CF-1");
}

#[test]
fn cf_3_operands_that_stand_for_each_other_are_alike() {
    type Change = fn(&mut Operand);
    let changes: [(&str, Change); 3] = [
        ("type", |it| it.operand_type = OperandType::TensorFloat16),
        ("shape", |it| it.dimensions = vec![3]),
        ("shape", |it| it.dimensions = vec![2, 1]),
    ];
    for (branch, role) in [(0, Role::Then), (1, Role::Else)] {
        for (what, change) in changes {
            // Input and output, so that the branch in itself is right.
            let mut model = if_model();
            change(operand(&mut model, branch, 0));
            change(operand(&mut model, branch, 1));
            let inner = Party::Subgraph(role, Side::Input, 0);
            let outer = Party::Operation(Side::Input, 3);
            assert_eq!(incompatible(&model), (inner, outer, what));
        }
    }
}

#[test]
fn cf_3_scale_zero_point_and_channels_are_alike() {
    let signed = OperandSpec::tensor_quant8_asymm_signed([2], 0.5, 1);
    let per_channel = |scales: &[f32], channel_dim| {
        OperandSpec::tensor_quant8_symm_per_channel([2, 2], scales, channel_dim)
    };
    let cases = [
        (signed.clone(), signed.clone().quantized(0.25, 1), "scale"),
        (signed.clone(), signed.quantized(0.5, 0), "zero point"),
        (per_channel(&[1.0, 2.0], 0), per_channel(&[1.0, 3.0], 0), "extra parameters"),
        (per_channel(&[1.0, 2.0], 0), per_channel(&[1.0, 2.0], 1), "extra parameters"),
    ];
    for (outer, inner, what) in cases {
        for is_same in [true, false] {
            let inner = if is_same { outer.clone() } else { inner.clone() };
            let mut builder = ModelBuilder::new();
            let branch = builder.reference(condition(&[inner]));
            let mut main = SubgraphBuilder::new();
            let decides = main.input("condition", truth());
            let branch = main.subgraph(branch);
            let x = main.input("x", outer.clone());
            let inputs = [decides, branch, branch, x];
            let y = main.operation(OperationType::If, inputs, truth());
            main.output(y);
            let model = builder.build(main).unwrap();
            if is_same {
                assert!(validate(&model, HalVersion::V1_3).is_ok(), "{what}");
            } else {
                assert_eq!(incompatible(&model).2, what);
            }
        }
    }
}

#[test]
fn cf_4_operands_of_if_may_be_of_unknown_size() {
    for dimensions in [vec![], vec![0]] {
        let mut model = if_model();
        for index in 0..2 {
            operand(&mut model, index, 0).dimensions = dimensions.clone();
            operand(&mut model, index, 1).dimensions = dimensions.clone();
        }
        assert!(validate(&model, HalVersion::V1_3).is_ok());
        model.main.operands[3].dimensions = dimensions.clone();
        model.main.operands[4].dimensions = dimensions;
        assert!(validate(&model, HalVersion::V1_3).is_ok());
    }
}

#[test]
fn cf_4_operands_of_while_are_of_known_size() {
    // Of the main subgraph (None) or a referenced one, and the place in it.
    let parties = [
        (None, 2, Party::Operation(Side::Input, 2)),
        (None, 3, Party::Operation(Side::Input, 3)),
        (None, 4, Party::Operation(Side::Output, 0)),
        (Some(0), 0, Party::Subgraph(Role::Condition, Side::Input, 0)),
        (Some(1), 1, Party::Subgraph(Role::Body, Side::Input, 1)),
        (Some(1), 2, Party::Subgraph(Role::Body, Side::Output, 0)),
        (Some(1), 3, Party::Subgraph(Role::Body, Side::Output, 1)),
    ];
    for (subgraph, index, party) in parties {
        for found in [vec![], vec![0]] {
            let mut model = while_model(1);
            let operand = match subgraph {
                None => &mut model.main.operands[index],
                Some(subgraph) => operand(&mut model, subgraph, index),
            };
            operand.dimensions = found.clone();
            let expected = ControlFlowError::UnknownSize { party, found };
            assert_eq!(error_of(&model), (expected, "CF-4"));
            // An application may build it, and runs the loop itself.
            assert!(check_for_application(&model, HalVersion::LATEST).is_ok());
        }
    }
}

#[test]
fn cf_2_the_condition_gives_one_truth_value() {
    let output = |model: &mut Model| model.referenced[0].outputs[0] as usize;
    let mut model = while_model(1);
    let index = output(&mut model);
    operand(&mut model, 0, index).dimensions = vec![];
    let (error, rule) = error_of(&model);
    let party = Party::Subgraph(Role::Condition, Side::Output, 0);
    let operand_type = OperandType::TensorBool8;
    assert_eq!(error, ControlFlowError::Condition { party, operand_type, dimensions: vec![] });
    assert_eq!(rule, "CF-2");

    let mut model = while_model(1);
    let index = output(&mut model);
    operand(&mut model, 0, index).lifetime = OperandLifeTime::TemporaryVariable;
    model.referenced[0].outputs.clear();
    let (error, rule) = error_of(&model);
    let (role, side) = (Role::Condition, Side::Output);
    assert_eq!(error, ControlFlowError::Count { role, side, found: 0, least: 1, most: 1 });
    assert_eq!(rule, "CF-2");
}

#[test]
fn cf_2_the_body_gives_no_less_than_the_operation_and_no_more_than_it_takes() {
    // Of two results of the operation the body gives one.
    let mut model = while_model(2);
    operand(&mut model, 1, 3).lifetime = OperandLifeTime::TemporaryVariable;
    model.referenced[1].outputs.pop();
    let (role, side) = (Role::Body, Side::Output);
    let expected = ControlFlowError::Count { role, side, found: 1, least: 2, most: 2 };
    assert_eq!(error_of(&model), (expected, "CF-2"));
    // The same body suits an operation with one result: the other is taken in only.
    let mut model = while_model(1);
    operand(&mut model, 1, 3).lifetime = OperandLifeTime::TemporaryVariable;
    model.referenced[1].outputs.pop();
    assert!(validate(&model, HalVersion::V1_3).is_ok());
    // Three results of two inputs.
    let mut model = while_model(1);
    let body = &mut model.referenced[1];
    body.operands.push(body.operands[3].clone());
    body.operations.push(Operation { outputs: vec![4], ..body.operations[1].clone() });
    body.operands[1].number_of_consumers += 1;
    body.outputs.push(4);
    let expected = ControlFlowError::Count { role, side, found: 3, least: 1, most: 2 };
    assert_eq!(error_of(&model), (expected, "CF-2"));
}

#[test]
fn cf_2_condition_and_body_take_what_the_operation_does() {
    for (index, role) in [(0, Role::Condition), (1, Role::Body)] {
        let mut model = while_model(1);
        model.main.operations[0].inputs.pop();
        model.main.operands[3].number_of_consumers -= 1;
        // Condition and body of the original take two, the operation gives one.
        let one = [float([2])];
        let fitting = if index == 0 { subgraph(&one) } else { condition(&one) };
        let fitting = fitting.into_model().unwrap();
        model.referenced[1 - index] = fitting.main;
        if index == 1 {
            model.operand_values = fitting.operand_values;
        }
        let expected =
            ControlFlowError::Count { role, side: Side::Input, found: 2, least: 1, most: 1 };
        assert_eq!(error_of(&model), (expected, "CF-2"));
    }
}

#[test]
fn cf_3_what_a_round_gives_the_next_takes() {
    let mut model = while_model(1);
    operand(&mut model, 1, 3).dimensions = vec![3];
    operand(&mut model, 1, 1).dimensions = vec![3];
    operand(&mut model, 0, 1).dimensions = vec![3];
    model.main.operands[3].dimensions = vec![3];
    assert!(validate(&model, HalVersion::V1_3).is_ok(), "another shape altogether");

    // A cast between the two lets the body in itself be right.
    let mut model = while_model(1);
    operand(&mut model, 1, 3).operand_type = OperandType::TensorFloat16;
    model.referenced[1].operations[1].operation_type = OperationType::Cast;
    let output = Party::Subgraph(Role::Body, Side::Output, 1);
    let input = Party::Subgraph(Role::Body, Side::Input, 1);
    assert_eq!(incompatible(&model), (output, input, "type"));
}

#[test]
fn cf_3_results_are_as_the_body_gives_them() {
    let mut model = while_model(1);
    model.main.operands[4].dimensions = vec![3];
    let body = Party::Subgraph(Role::Body, Side::Output, 0);
    let outer = Party::Operation(Side::Output, 0);
    assert_eq!(incompatible(&model), (body, outer, "shape"));
}

/// IF in each subgraph: subgraph `i` refers to those in `references[i]`, the main one to 0.
fn nested(references: &[&[u32]]) -> Model {
    let level = |graph: &mut SubgraphBuilder, targets: &[nnhal_hal::builder::SubgraphId]| {
        let decides = graph.input("condition", truth());
        let x = graph.input("x", float([2]));
        let mut y = graph.operation(OperationType::Relu, [x], float([2]));
        for target in targets {
            let target = graph.subgraph(*target);
            y = graph.operation(
                OperationType::If,
                [decides, target, target, decides, y],
                float([2]),
            );
        }
        graph.output(y);
    };
    // Identifiers of subgraphs that a builder will give out.
    let mut numbers = ModelBuilder::new();
    let ids: Vec<_> =
        references.iter().map(|_| numbers.reference(SubgraphBuilder::new())).collect();
    let mut builder = ModelBuilder::new();
    for targets in references {
        let targets: Vec<_> = targets.iter().map(|target| ids[*target as usize]).collect();
        let mut graph = SubgraphBuilder::new();
        level(&mut graph, &targets);
        builder.reference(graph);
    }
    let mut main = SubgraphBuilder::new();
    level(&mut main, &ids[..1]);
    builder.build(main).unwrap()
}

#[test]
fn cf_5_subgraphs_that_refer_to_themselves_are_refused() {
    let chain: &[&[u32]] = &[&[1], &[2], &[]];
    assert!(validate(&nested(chain), HalVersion::V1_3).is_ok());
    let cyclic: [&[&[u32]]; 4] = [&[&[0]], &[&[1], &[0]], &[&[], &[2], &[1]], &[&[1], &[2], &[1]]];
    for references in cyclic {
        let error = validate(&nested(references), HalVersion::V1_3).expect_err("a cycle");
        assert!(matches!(error, ValidationError::Cycle { .. }), "{error}");
        assert_eq!(error.rule(), "CF-5");
    }
}

#[test]
fn cf_5_references_that_nothing_reads_count_as_well() {
    let mut model = nested(&[&[]]);
    let mut unread = model.main.operands.iter().find(|it| it.operand_type == OperandType::Subgraph);
    let mut unread = unread.take().unwrap().clone();
    unread.number_of_consumers = 0;
    model.referenced[0].operands.push(unread);
    assert_eq!(
        validate(&model, HalVersion::V1_3).expect_err("a cycle"),
        ValidationError::Cycle { subgraph: SubgraphName::Referenced(0) }
    );
}

#[test]
fn cf_5_a_tall_tower_of_diamonds_costs_nothing() {
    // Each refers to the next twice: 2^20_000 ways, and a depth that recursion would not survive.
    let height = 20_000_u32;
    let levels: Vec<Vec<u32>> = (1..height).map(|next| vec![next, next]).collect();
    let mut references: Vec<&[u32]> = levels.iter().map(Vec::as_slice).collect();
    references.push(&[]);
    assert!(validate(&nested(&references), HalVersion::V1_3).is_ok());
}

#[test]
fn cf_6_wrong_indexes_of_subgraphs_are_found_before_they_are_followed() {
    for index in [2, u32::MAX] {
        for side in [Side::Input, Side::Output] {
            let mut model = if_model();
            let branch = &mut model.referenced[1];
            match side {
                Side::Input => branch.inputs[0] = index,
                Side::Output => branch.outputs[0] = index,
            }
            let error = validate(&model, HalVersion::V1_3).expect_err("a wrong index");
            assert_eq!(error.rule(), "MODEL-19");
        }
    }
}

#[test]
fn cf_7_rules_hold_in_every_subgraph() {
    let mut model = if_model();
    operand(&mut model, 1, 0).number_of_consumers = 5;
    let error = validate(&model, HalVersion::V1_3).expect_err("wrong consumers");
    assert!(
        matches!(error, ValidationError::Graph { subgraph: SubgraphName::Referenced(1), .. }),
        "{error}"
    );
}

#[test]
fn cf_8_unused_subgraphs_and_references_are_accepted() {
    let mut model = if_model();
    let mut unread = model.main.operands[1].clone();
    unread.number_of_consumers = 0;
    model.main.operands.push(unread);
    model.referenced.push(model.referenced[0].clone());
    assert!(validate(&model, HalVersion::V1_3).is_ok());
}

#[test]
fn model_26_arguments_of_control_flow_are_not_left_out() {
    let mut model = if_model();
    model.main.inputs.pop();
    model.main.operands[3].lifetime = OperandLifeTime::NoValue;
    let error = validate(&model, HalVersion::V1_3).expect_err("a missing argument");
    assert_eq!(error.rule(), "MODEL-26");
}

#[test]
fn the_value_of_a_subgraph_operand_is_its_index() {
    let valid = validate(&if_model(), HalVersion::V1_3).unwrap();
    let constant = valid.constant(SubgraphName::Main, 2).expect("a value");
    assert_eq!(constant.known(), Some(&1_u32.to_le_bytes()[..]));
}
