//! What becomes of resource variables.

use super::draft::Draft;
use super::mapping::{import, operations, reasons};
use crate::schema::{
    BuiltinOperator as B, BuiltinOptions, CallOnceOptions, IfOptions, TensorType as T,
    VarHandleOptions,
};
use nnhal_hal::OperationType as O;

const SETUP: usize = 1;

/// A main subgraph without operators yet, and one that sets it up.
fn draft() -> Draft {
    let mut draft = Draft::new();
    draft.ends(SETUP, &[], &[]);
    draft
}

fn handle(draft: &mut Draft, graph: usize, name: &str) -> i32 {
    let handle = draft.tensor_in(graph, T::Resource, &[]);
    let options = VarHandleOptions { container: None, shared_name: Some(name.into()) };
    let options = Some(BuiltinOptions::VarHandleOptions(Box::new(options)));
    draft.operator_in(graph, B::VarHandle, &[], &[handle], options);
    handle
}

fn call_once(draft: &mut Draft, graph: usize, setup: usize) {
    let options = CallOnceOptions { init_subgraph_index: i32::try_from(setup).unwrap() };
    let options = Some(BuiltinOptions::CallOnceOptions(Box::new(options)));
    draft.operator_in(graph, B::CallOnce, &[], &[], options);
}

/// In the subgraph that sets up: a variable of two floats.
fn initialize(draft: &mut Draft, name: &str, values: [f32; 2]) {
    let variable = handle(draft, SETUP, name);
    let value = draft.floats(&[2], &values);
    // The constant is made in subgraph 0; this one has the same tensor.
    let buffer = draft.tensor_mut(value).buffer;
    let value = draft.tensor_in(SETUP, T::Float32, &[2]);
    let tensors = draft.graph(SETUP).tensors.as_mut().unwrap();
    tensors[usize::try_from(value).unwrap()].buffer = buffer;
    draft.operator_in(SETUP, B::AssignVariable, &[variable, value], &[], None);
}

/// `y = v + x; v = y`, in a subgraph.
fn add(draft: &mut Draft, graph: usize, variable: i32, x: i32) -> i32 {
    let [old, new] = [0; 2].map(|_| draft.tensor_in(graph, T::Float32, &[2]));
    draft.operator_in(graph, B::ReadVariable, &[variable], &[old], None);
    draft.operator_in(graph, B::Add, &[old, x], &[new], None);
    draft.operator_in(graph, B::AssignVariable, &[variable, new], &[], None);
    new
}

/// A file whose main subgraph only gives a variable its first value.
pub(super) fn initialized(name: &str, values: [f32; 2]) -> Draft {
    let mut draft = draft();
    initialize(&mut draft, name, values);
    call_once(&mut draft, 0, SETUP);
    draft
}

/// `y = v + x; v = y` of a variable's name, in a subgraph.
pub(super) fn running_total(draft: &mut Draft, graph: usize, name: &str, x: i32) -> i32 {
    let variable = handle(draft, graph, name);
    add(draft, graph, variable, x)
}

#[test]
fn a_variable_is_an_input_and_an_output_with_its_first_value() {
    let mut draft = draft();
    initialize(&mut draft, "total", [1.5, -2.0]);
    let x = draft.tensor(T::Float32, &[2]);
    call_once(&mut draft, 0, SETUP);
    let variable = handle(&mut draft, 0, "total");
    let y = add(&mut draft, 0, variable, x);
    draft.ends(0, &[x], &[y]);
    let import = import(&draft);
    // The new value is an output twice: of the file, and as state.
    assert_eq!(operations(&import), [O::Add, O::Cast]);
    let [state] = &import.states[..] else { panic!("{:?}", import.states) };
    assert_eq!((state.input, state.output), (1, 1));
    assert_eq!(state.name.as_deref(), Some("total"));
    let bytes: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|it| it.to_le_bytes()).collect();
    assert_eq!(state.initial, Some(bytes));
    assert_eq!(import.inputs[1].name, "total");
    assert_eq!(import.outputs[1].shape, [Some(2)]);
}

#[test]
fn handles_of_one_name_are_one_variable_and_other_names_are_others() {
    let mut draft = draft();
    initialize(&mut draft, "a", [1.0, 2.0]);
    initialize(&mut draft, "b", [3.0, 4.0]);
    let x = draft.tensor(T::Float32, &[2]);
    call_once(&mut draft, 0, SETUP);
    let mut outputs = Vec::new();
    for name in ["a", "b", "a"] {
        let variable = handle(&mut draft, 0, name);
        outputs.push(add(&mut draft, 0, variable, x));
    }
    draft.ends(0, &[x], &outputs);
    let import = import(&draft);
    let names: Vec<_> = import.states.iter().map(|state| state.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["a", "b"]);
    // The last addition takes the result of the first.
    let main = &import.model.main;
    assert!(main.operations[2].inputs.contains(&main.operations[0].outputs[0]));
}

/// IF, of whose branches one changes a variable.
pub(super) fn variable_in_a_branch() -> Draft {
    let mut draft = draft();
    initialize(&mut draft, "used", [1.0, 2.0]);
    initialize(&mut draft, "unused", [3.0, 4.0]);
    let condition = draft.tensor(T::Bool, &[]);
    let (x, y) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[2]));
    call_once(&mut draft, 0, SETUP);
    let options = IfOptions { then_subgraph_index: 2, else_subgraph_index: 3 };
    let options = Some(BuiltinOptions::IfOptions(Box::new(options)));
    draft.operator(B::If, &[condition, x], &[y], options);
    draft.ends(0, &[condition, x], &[y]);
    for graph in [2, 3] {
        let given = draft.tensor_in(graph, T::Float32, &[2]);
        let mut result = given;
        if graph == 2 {
            let variable = handle(&mut draft, graph, "used");
            result = add(&mut draft, graph, variable, given);
        }
        draft.ends(graph, &[given], &[result]);
    }
    draft
}

#[test]
fn branches_take_the_variables_that_they_use_and_give_them_back() {
    let import = import(&variable_in_a_branch());
    assert_eq!(import.states.len(), 1);
    for branch in &import.model.referenced {
        assert_eq!((branch.inputs.len(), branch.outputs.len()), (2, 2));
    }
    let operation = &import.model.main.operations[0];
    assert_eq!((operation.inputs.len(), operation.outputs.len()), (5, 2));
}

#[test]
fn variables_of_upper_halves_are_refused() {
    let mut draft = draft();
    initialize(&mut draft, "v", [1.0, 2.0]);
    let value = draft.graph(SETUP).tensors.as_mut().and_then(|all| all.last_mut()).unwrap();
    value.type_ = T::Bfloat16 as i8;
    call_once(&mut draft, 0, SETUP);
    let (variable, old) = (handle(&mut draft, 0, "v"), draft.tensor(T::Bfloat16, &[2]));
    draft.operator(B::ReadVariable, &[variable], &[old], None);
    draft.ends(0, &[], &[old]);
    let expected = "the first value of variable \"v\": BFLOAT16 is no type of variables here";
    assert_eq!(reasons(&draft), [expected]);
}

#[test]
fn what_is_wrong_with_a_variable_is_said() {
    type Build = fn(&mut Draft) -> Vec<i32>;
    let cases: [(&str, Build); 8] = [
        (
            "variable \"v\" is used, and no CALL_ONCE of the main subgraph gives it a first value",
            |draft| {
                let (variable, old) = (handle(draft, 0, "v"), draft.tensor(T::Float32, &[2]));
                draft.operator(B::ReadVariable, &[variable], &[old], None);
                vec![old]
            },
        ),
        ("which variable it is about is not known before it runs", |draft| {
            let (variable, old) = (draft.tensor(T::Int32, &[1]), draft.tensor(T::Float32, &[2]));
            draft.operator(B::ReadVariable, &[variable], &[old], None);
            vec![old]
        }),
        ("variable \"v\" is assigned as TENSOR_FLOAT32 [3], it is TENSOR_FLOAT32 [2]", |draft| {
            initialize(draft, "v", [0.0; 2]);
            call_once(draft, 0, SETUP);
            let variable = handle(draft, 0, "v");
            let longer = draft.floats(&[3], &[0.0; 3]);
            draft.operator(B::AssignVariable, &[variable, longer], &[], None);
            vec![]
        }),
        (
            "variable \"v\" is read as TENSOR_INT32, and TENSOR_FLOAT32 is assigned at first",
            |draft| {
                initialize(draft, "v", [0.0; 2]);
                call_once(draft, 0, SETUP);
                let (variable, old) = (handle(draft, 0, "v"), draft.tensor(T::Int32, &[2]));
                draft.operator(B::ReadVariable, &[variable], &[old], None);
                vec![old]
            },
        ),
        ("variable \"v\", which it initializes, is used before", |draft| {
            initialize(draft, "v", [0.0; 2]);
            let (variable, old) = (handle(draft, 0, "v"), draft.tensor(T::Float32, &[2]));
            draft.operator(B::ReadVariable, &[variable], &[old], None);
            call_once(draft, 0, SETUP);
            vec![old]
        }),
        ("it calls the subgraph that it is in", |draft| {
            call_once(draft, 0, 0);
            vec![]
        }),
        ("there is no subgraph 9", |draft| {
            call_once(draft, 0, 9);
            vec![]
        }),
        ("subgraph 1 has 1 inputs and 0 outputs, expected none", |draft| {
            let input = draft.tensor_in(SETUP, T::Float32, &[1]);
            draft.ends(SETUP, &[input], &[]);
            call_once(draft, 0, SETUP);
            vec![]
        }),
    ];
    for (reason, build) in cases {
        let mut draft = draft();
        let x = draft.floats(&[1], &[0.0]);
        let mut outputs = build(&mut draft);
        outputs.push(x);
        draft.ends(0, &[], &outputs);
        assert_eq!(reasons(&draft), [reason]);
    }
}

#[test]
fn a_first_value_that_floats_compute_is_refused_where_it_is_used() {
    let mut draft = draft();
    let variable = handle(&mut draft, SETUP, "v");
    let [zero, sum] = [0; 2].map(|_| draft.tensor_in(SETUP, T::Float32, &[2]));
    draft.operator_in(SETUP, B::Add, &[zero, zero], &[sum], None);
    draft.operator_in(SETUP, B::AssignVariable, &[variable, sum], &[], None);
    call_once(&mut draft, 0, SETUP);
    let (variable, old) = (handle(&mut draft, 0, "v"), draft.tensor(T::Float32, &[2]));
    draft.operator(B::ReadVariable, &[variable], &[old], None);
    draft.ends(0, &[], &[old]);
    let [reason] = &reasons(&draft)[..] else { panic!() };
    assert!(reason.starts_with("the first value of variable \"v\": "), "{reason}");
    assert!(reason.ends_with("is computed by floats, expected a constant"), "{reason}");
}

#[test]
fn a_branch_does_not_change_a_variable_unseen() {
    // The main subgraph and a branch assign it, and no CALL_ONCE does.
    let mut draft = variable_in_a_branch();
    draft.graph(SETUP).operators = None;
    let (variable, value) = (handle(&mut draft, 0, "used"), draft.floats(&[2], &[0.0; 2]));
    draft.operator(B::AssignVariable, &[variable, value], &[], None);
    // Of the branch's operators the one that reads it goes; a constant takes its place.
    let operators = draft.graph(2).operators.as_mut().unwrap();
    let read = operators.remove(1).outputs.unwrap()[0];
    let buffer = draft.tensor_mut(value).buffer;
    draft.graph(2).tensors.as_mut().unwrap()[usize::try_from(read).unwrap()].buffer = buffer;
    let all = reasons(&draft).join("; ");
    assert!(all.contains("variable \"used\" is used, and no CALL_ONCE"), "{all}");
}

#[test]
fn a_first_value_beside_branches_is_refused() {
    let mut draft = draft();
    initialize(&mut draft, "v", [1.0, 2.0]);
    let options = Some(BuiltinOptions::IfOptions(Box::default()));
    draft.operator_in(SETUP, B::If, &[], &[], options);
    call_once(&mut draft, 0, SETUP);
    let (variable, old) = (handle(&mut draft, 0, "v"), draft.tensor(T::Float32, &[2]));
    draft.operator(B::ReadVariable, &[variable], &[old], None);
    draft.ends(0, &[], &[old]);
    let reason = "the first value of variable \"v\": the subgraph that assigns it runs others";
    assert_eq!(reasons(&draft), [reason]);
}
