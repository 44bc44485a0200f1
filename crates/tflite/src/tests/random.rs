//! Generators of random numbers; LiteRT judges the numbers.

use super::draft::Draft;
use super::mapping::{import, reasons};
use crate::schema::{BuiltinOperator, BuiltinOptions, RandomOptions, TensorType};

fn draft(seeds: Option<[i64; 2]>) -> Draft {
    let mut draft = Draft::new();
    let shape = draft.integers(&[2], &[3, 4]);
    let output = draft.tensor(TensorType::Float32, &[3, 4]);
    let options = seeds.map(|[seed, seed2]| {
        BuiltinOptions::RandomOptions(Box::new(RandomOptions { seed, seed2 }))
    });
    draft.operator(BuiltinOperator::RandomUniform, &[shape], &[output], options);
    draft.ends(0, &[], &[output]);
    draft
}

#[test]
fn a_generator_is_a_state_that_its_seeds_decide() {
    let found = import(&draft(Some([7, -2])));
    let [state] = &found.states[..] else { panic!("{:?}", found.states) };
    let words = [0, 0, -2, -1, 7, 0];
    let bytes: Vec<u8> = words.iter().flat_map(|word: &i32| word.to_le_bytes()).collect();
    assert_eq!(state.initial.as_ref(), Some(&bytes));
    let [input, output] = [&found.inputs[state.input], &found.outputs[state.output]];
    assert_eq!(input.name, "generator of operator 0, RandomUniform");
    assert_eq!(input, output);
    assert_eq!((&input.example_shape[..], &*input.type_name), (&[6][..], "INT32"));
    // Without seeds, others each time.
    let initial = || import(&draft(Some([0, 0]))).states[0].initial.clone().unwrap();
    let (first, second) = (initial(), initial());
    assert_eq!(first[..8], [0; 8]);
    assert_ne!(first, second);
}

#[test]
fn without_options_or_in_a_subgraph_there_is_no_generator() {
    assert_eq!(reasons(&draft(None)), ["it has no options"]);
    let mut draft = Draft::new();
    let condition = draft.tensor(TensorType::Bool, &[1]);
    let output = draft.tensor(TensorType::Float32, &[2]);
    let options = Some(BuiltinOptions::IfOptions(Box::new(crate::schema::IfOptions {
        then_subgraph_index: 1,
        else_subgraph_index: 1,
    })));
    draft.operator(BuiltinOperator::If, &[condition], &[output], options);
    draft.ends(0, &[condition], &[output]);
    let shape = draft.tensor_in(1, TensorType::Int32, &[1]);
    let drawn = draft.tensor_in(1, TensorType::Float32, &[2]);
    let options = RandomOptions { seed: 1, seed2: 2 };
    let options = Some(BuiltinOptions::RandomOptions(Box::new(options)));
    draft.operator_in(1, BuiltinOperator::RandomUniform, &[shape], &[drawn], options);
    draft.ends(1, &[], &[drawn]);
    let expected = "its generator cannot go on in a subgraph other than the main one";
    assert!(reasons(&draft).contains(&expected.to_owned()), "{:?}", reasons(&draft));
}
