//! Subgraphs whose operators are imported in the place of the operator that runs them: composites, and choices that are
//! made at import.

use super::draft::Draft;
use super::mapping::{import, int8_convolution, operations, reasons};
use super::split::{bytes_of, floats_of, run};
use super::variables::{initialized, running_total};
use crate::import_bytes;
use crate::schema::{
    Buffer, BuiltinOperator as B, BuiltinOptions, BuiltinOptions2, IfOptions,
    QuantizationParameters, StableHloCompositeOptions, StablehloCaseOptions, TensorType as T,
};
use nnhal_hal::{ExecutionOptions, HalVersion, OperationType as O, PrepareOptions, RequestBuilder};

fn set_options(draft: &mut Draft, graph: usize, options: BuiltinOptions2) {
    let operator = draft.graph(graph).operators.as_mut().and_then(|all| all.last_mut()).unwrap();
    operator.builtin_options_2 = Some(options);
}

fn composite(draft: &mut Draft, graph: usize, body: usize, inputs: &[i32], outputs: &[i32]) {
    draft.operator_in(graph, B::StablehloComposite, inputs, outputs, None);
    let options = StableHloCompositeOptions {
        decomposition_subgraph_index: i32::try_from(body).unwrap(),
        ..StableHloCompositeOptions::default()
    };
    set_options(draft, graph, BuiltinOptions2::StableHloCompositeOptions(Box::new(options)));
}

fn case(draft: &mut Draft, branches: Vec<i32>, inputs: &[i32], outputs: &[i32]) {
    draft.operator(B::StablehloCase, inputs, outputs, None);
    let options = StablehloCaseOptions { branch_subgraph_indices: Some(branches) };
    set_options(draft, 0, BuiltinOptions2::StablehloCaseOptions(Box::new(options)));
}

fn if_operator(draft: &mut Draft, branches: [i32; 2], inputs: &[i32], outputs: &[i32]) {
    let [then_subgraph_index, else_subgraph_index] = branches;
    let options = IfOptions { then_subgraph_index, else_subgraph_index };
    draft.operator(B::If, inputs, outputs, Some(BuiltinOptions::IfOptions(Box::new(options))));
}

/// A constant of any subgraph.
pub(super) fn constant_in(
    draft: &mut Draft,
    graph: usize,
    element: T,
    shape: &[i32],
    bytes: Vec<u8>,
) -> i32 {
    let buffers = draft.model.buffers.get_or_insert_default();
    buffers.push(Buffer { data: Some(bytes), ..Buffer::default() });
    let buffer = u32::try_from(buffers.len() - 1).unwrap();
    let tensor = draft.tensor_in(graph, element, shape);
    let tensors = draft.graph(graph).tensors.as_mut().unwrap();
    tensors[usize::try_from(tensor).unwrap()].buffer = buffer;
    tensor
}

/// `x * x + 1`, of two elements by the file.
fn square_plus_one(draft: &mut Draft, graph: usize) {
    let [x, square, y] = [0; 3].map(|_| draft.tensor_in(graph, T::Float32, &[2]));
    let one = constant_in(draft, graph, T::Float32, &[1], bytes_of(&[1.0]));
    draft.operator_in(graph, B::Mul, &[x, x], &[square], None);
    draft.operator_in(graph, B::Add, &[square, one], &[y], None);
    draft.ends(graph, &[x], &[y]);
}

/// The operations, of a model that has no subgraph beside its main one.
fn inlined(draft: &Draft) -> Vec<O> {
    let import = import(draft);
    assert_eq!(import.model.referenced.len(), 0);
    operations(&import)
}

fn errors(draft: &Draft) -> String {
    import_bytes(&draft.bytes()).unwrap_err().to_string()
}

#[test]
fn a_composite_becomes_the_operators_of_its_subgraph() {
    let mut draft = Draft::new();
    let [x, y, z] = [0; 3].map(|_| draft.tensor(T::Float32, &[2]));
    square_plus_one(&mut draft, 1);
    draft.operator(B::Relu, &[x], &[y], None);
    composite(&mut draft, 0, 1, &[y], &[z]);
    draft.ends(0, &[x], &[z]);
    assert_eq!(inlined(&draft), [O::Relu, O::Mul, O::Add]);
    let import = import(&draft);
    let origins: Vec<_> = import.operator_origin.iter().map(ToString::to_string).collect();
    assert_eq!(origins, ["RELU 0", "STABLEHLO_COMPOSITE 1", "STABLEHLO_COMPOSITE 1"]);
    let result = import.operands[usize::try_from(z).unwrap()];
    assert_eq!(result, Some(import.model.main.outputs[0]));
    let found = run(&import, &[&bytes_of(&[-3.0, 2.0])], 8);
    assert_eq!(floats_of(&found), [1.0, 5.0]);
}

#[test]
fn composites_within_composites_are_inlined_and_each_place_has_its_own_shapes() {
    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
    let [wide, result] = [0; 2].map(|_| draft.tensor(T::Float32, &[2, 3]));
    composite(&mut draft, 0, 1, &[x], &[y]);
    composite(&mut draft, 0, 2, &[wide], &[result]);
    draft.ends(0, &[x, wide], &[y, result]);
    let [given, middle, end] = [0; 3].map(|_| draft.tensor_in(1, T::Float32, &[2]));
    composite(&mut draft, 1, 2, &[given], &[middle]);
    composite(&mut draft, 1, 2, &[middle], &[end]);
    draft.ends(1, &[given], &[end]);
    square_plus_one(&mut draft, 2);
    assert_eq!(inlined(&draft), [O::Mul, O::Add].repeat(3));
    let import = import(&draft);
    assert_eq!(import.outputs[1].shape, [Some(2), Some(3)]);
    let shapes: Vec<_> = import.model.main.operations.iter().map(|it| it.outputs[0]).collect();
    let shapes = shapes.iter().map(|it| &import.model.main.operands[*it as usize].dimensions[..]);
    let expected: [&[u32]; 6] = [&[2], &[2], &[2], &[2], &[2, 3], &[2, 3]];
    assert!(shapes.eq(expected));
}

#[test]
fn lengths_that_are_open_stay_open() {
    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[1]));
    draft.tensor_mut(x).shape_signature = Some(vec![-1]);
    composite(&mut draft, 0, 1, &[x], &[y]);
    draft.ends(0, &[x], &[y]);
    // By the file its tensors have two elements.
    square_plus_one(&mut draft, 1);
    let import = import(&draft);
    assert_eq!(import.model.referenced.len(), 0);
    assert!(!import.has_example_shapes);
    let output = import.model.main.outputs[0] as usize;
    assert_eq!(import.model.main.operands[output].dimensions, [0]);
    let device = nnhal_reference::device();
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    request.input_shaped(&bytes_of(&[1.0, 2.0, 3.0]), &[3]);
    request.output(12);
    let request = request.build().unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let found = RequestBuilder::read_output(&request, 0).unwrap();
    assert_eq!(floats_of(&found), [2.0, 5.0, 10.0]);
}

#[test]
fn composites_in_a_branch_are_inlined_there() {
    let mut draft = initialized("total", [1.5, -2.0]);
    let condition = draft.tensor(T::Bool, &[1]);
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
    if_operator(&mut draft, [2, 3], &[condition, x], &[y]);
    draft.ends(0, &[condition, x], &[y]);
    for (graph, body) in [(2, 4), (3, 5)] {
        let [given, result] = [0; 2].map(|_| draft.tensor_in(graph, T::Float32, &[2]));
        composite(&mut draft, graph, body, &[given], &[result]);
        draft.ends(graph, &[given], &[result]);
    }
    square_plus_one(&mut draft, 4);
    let given = draft.tensor_in(5, T::Float32, &[2]);
    let result = running_total(&mut draft, 5, "total", given);
    draft.ends(5, &[given], &[result]);
    let import = import(&draft);
    assert_eq!(operations(&import), [O::If]);
    let [then, otherwise] = &import.model.referenced[..] else { panic!() };
    let types = |of: &nnhal_hal::Subgraph| -> Vec<O> {
        of.operations.iter().map(|it| it.operation_type).collect()
    };
    // Beside them a copy of the variable, which one branch leaves as it is and the other gives twice.
    assert_eq!(types(then), [O::Mul, O::Add, O::Cast]);
    assert_eq!(types(otherwise), [O::Add, O::Cast]);
}

#[test]
fn outputs_of_a_subgraph_may_be_its_inputs_its_constants_and_the_same_twice() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2]);
    let outputs = [0; 5].map(|_| draft.tensor(T::Float32, &[2]));
    let given = draft.floats(&[2], &[5.0, 6.0]);
    composite(&mut draft, 0, 1, &[x, x, given], &outputs);
    let sum = draft.tensor(T::Float32, &[2]);
    draft.operator(B::Add, &[outputs[2], outputs[3]], &[sum], None);
    // Of a composite that nothing needs nothing is missed.
    let unused = [0; 5].map(|_| draft.tensor(T::Float32, &[2]));
    composite(&mut draft, 0, 1, &[x, x, x], &unused);
    draft.ends(0, &[x], &[&outputs[..], &[sum]].concat());
    let [a, b, c, double] = [0; 4].map(|_| draft.tensor_in(1, T::Float32, &[2]));
    let constant = constant_in(&mut draft, 1, T::Float32, &[2], bytes_of(&[3.0, 4.0]));
    draft.operator_in(1, B::Add, &[a, b], &[double], None);
    draft.ends(1, &[a, b, c], &[a, double, double, constant, c]);
    let import = import(&draft);
    assert_eq!(import.model.referenced.len(), 0);
    assert_eq!(import.model.main.outputs.len(), 6);
    let main = &import.model.main;
    let name = |tensor: i32| import.operands[usize::try_from(tensor).unwrap()];
    assert_eq!(name(outputs[0]), Some(main.inputs[0]));
    assert_eq!(name(outputs[1]), name(outputs[2]));
    let sum = run_last(&import, &bytes_of(&[1.0, 10.0]), 6);
    assert_eq!(sum, [[1.0, 10.0], [2.0, 20.0], [2.0, 20.0], [3.0, 4.0], [5.0, 6.0], [5.0, 24.0]]);
}

/// The outputs, of two floats each.
fn run_last(import: &crate::Import, input: &[u8], count: usize) -> Vec<[f32; 2]> {
    let device = nnhal_reference::device();
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    request.input(input);
    for _ in 0..count {
        request.output(8);
    }
    let request = request.build().unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let output = |at| RequestBuilder::read_output(&request, at).unwrap();
    (0..count).map(|at| floats_of(&output(at)).try_into().unwrap()).collect()
}

#[test]
fn what_is_known_at_import_is_known_in_the_subgraph_and_behind_it() {
    // The subgraph doubles a number; what it gives is the shape of a tensor, which the HAL wants constant for a
    // BROADCAST_TO.
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[1]);
    let three = draft.integers(&[1], &[3]);
    let lengths = draft.tensor(T::Int32, &[1]);
    let y = draft.tensor(T::Float32, &[6]);
    composite(&mut draft, 0, 1, &[three], &[lengths]);
    draft.operator(B::BroadcastTo, &[x, lengths], &[y], None);
    draft.ends(0, &[x], &[y]);
    let [given, twice] = [0; 2].map(|_| draft.tensor_in(1, T::Int32, &[1]));
    draft.operator_in(1, B::Add, &[given, given], &[twice], None);
    draft.ends(1, &[given], &[twice]);
    let import = import(&draft);
    assert_eq!(operations(&import).len(), 1);
    assert_eq!(floats_of(&run(&import, &[&bytes_of(&[7.0])], 24)), [7.0; 6]);
    assert_eq!(import.outputs[0].shape, [Some(6)]);
}

#[test]
fn tensors_that_are_kept_in_fewer_axes_go_through() {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2, 3]);
    let axes: [i32; 9] = [1, 1, 1, 1, 1, 1, 1, 2, 3];
    let shape = draft.integers(&[9], &axes);
    let flat = draft.integers(&[1], &[6]);
    let (many, back) = (draft.tensor(T::Float32, &axes), draft.tensor(T::Float32, &axes));
    let y = draft.tensor(T::Float32, &[6]);
    draft.operator(B::Reshape, &[x, shape], &[many], None);
    composite(&mut draft, 0, 1, &[many], &[back]);
    draft.operator(B::Reshape, &[back, flat], &[y], None);
    draft.ends(0, &[x], &[y]);
    let given = draft.tensor_in(1, T::Float32, &axes);
    draft.ends(1, &[given], &[given]);
    assert_eq!(inlined(&draft), [O::Reshape]);
}

#[test]
fn sec_composites_that_go_round_or_multiply_are_refused() {
    let of = |bodies: &[&[usize]]| {
        let mut draft = Draft::new();
        for (graph, calls) in bodies.iter().enumerate() {
            let mut x = draft.tensor_in(graph, T::Float32, &[2]);
            let given = x;
            for body in *calls {
                let y = draft.tensor_in(graph, T::Float32, &[2]);
                composite(&mut draft, graph, *body, &[x], &[y]);
                x = y;
            }
            draft.ends(graph, &[given], &[x]);
        }
        draft
    };
    let round = errors(&of(&[&[1], &[2], &[1]]));
    assert!(round.contains("operator 0 of subgraph 2, STABLEHLO_COMPOSITE"), "{round}");
    assert!(round.contains("subgraphs refer to each other"), "{round}");
    assert!(errors(&of(&[&[0]])).contains("subgraphs refer to each other"));
    let one_after_the_other: Vec<[usize; 1]> = (1..40).map(|next| [next]).collect();
    let mut deep: Vec<&[usize]> = one_after_the_other.iter().map(|it| &it[..]).collect();
    deep.push(&[]);
    assert!(errors(&of(&deep)).ends_with("subgraphs are nested too deep"));
    // Each calls the next one four times.
    let many: Vec<[usize; 4]> = (1..30).map(|next| [next; 4]).collect();
    let mut many: Vec<&[usize]> = many.iter().map(|it| &it[..]).collect();
    many.push(&[]);
    assert!(errors(&of(&many)).contains("out of all proportion to the size of its file"));
}

#[test]
fn what_does_not_fit_a_subgraph_is_said() {
    let of = |inputs: usize, types: [T; 2]| {
        let mut draft = Draft::new();
        let [x, y] = types.map(|element| draft.tensor(element, &[2]));
        composite(&mut draft, 0, 1, &vec![x; inputs], &[y]);
        draft.ends(0, &[x], &[y]);
        square_plus_one(&mut draft, 1);
        reasons(&draft).remove(0)
    };
    let float = "TENSOR_FLOAT32 [2]";
    assert_eq!(
        of(1, [T::Int32, T::Float32]),
        format!("argument 0 is TENSOR_INT32 [2], input 0 of subgraph 1 is {float}")
    );
    assert_eq!(
        of(1, [T::Float32, T::Int32]),
        format!("output 0 of subgraph 1 is {float}, result 0 is TENSOR_INT32 [2]")
    );
    assert_eq!(
        of(2, [T::Float32; 2]),
        "it gives 2 arguments and wants 1 results, subgraph 1 takes 1 and gives 1"
    );
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[2]);
    composite(&mut draft, 0, 9, &[x], &[x]);
    draft.ends(0, &[x], &[]);
    assert!(errors(&draft).contains("written twice"), "{}", errors(&draft));
}

#[test]
fn an_argument_is_not_written() {
    // It is known at import, and becomes an operand only where one is needed.
    let mut draft = Draft::new();
    let (three, y) = (draft.integers(&[1], &[3]), draft.tensor(T::Int32, &[1]));
    composite(&mut draft, 0, 1, &[three], &[y]);
    draft.ends(0, &[], &[y]);
    let given = draft.tensor_in(1, T::Int32, &[1]);
    draft.operator_in(1, B::Add, &[given, given], &[given], None);
    draft.ends(1, &[given], &[given]);
    assert_eq!(reasons(&draft), ["tensor 0 is written twice"]);
}

#[test]
fn scales_are_compared_and_kept() {
    let of = |scale: f32| {
        let mut draft = Draft::new();
        let [x, y] = [0; 2].map(|_| draft.tensor(T::Int8, &[2]));
        draft.quantize(x, &[0.5], 3, 0);
        draft.quantize(y, &[0.5], 3, 0);
        composite(&mut draft, 0, 1, &[x], &[y]);
        draft.ends(0, &[x], &[y]);
        let [given, result] = [0; 2].map(|_| draft.tensor_in(1, T::Int8, &[2]));
        for tensor in draft.graph(1).tensors.as_mut().unwrap() {
            tensor.quantization = Some(Box::new(QuantizationParameters {
                scale: Some(vec![scale]),
                zero_point: Some(vec![3]),
                ..QuantizationParameters::default()
            }));
        }
        draft.operator_in(1, B::Relu, &[given], &[result], None);
        draft.ends(1, &[given], &[result]);
        draft
    };
    assert_eq!(inlined(&of(0.5)), [O::Relu]);
    let expected = "argument 0 is TENSOR_QUANT8_ASYMM_SIGNED [2], scale 0.5, zero point 3, \
                    input 0 of subgraph 1 is TENSOR_QUANT8_ASYMM_SIGNED [2], scale 0.25, zero point 3";
    assert_eq!(reasons(&of(0.25)), [expected]);
}

#[test]
fn weights_with_a_scale_for_each_channel_are_arguments_like_others() {
    let plain = int8_convolution();
    let mut draft = plain.clone();
    let mut body = draft.graph(0).clone();
    body.inputs = Some(vec![0, 1, 2]);
    body.tensors.iter_mut().flatten().for_each(|tensor| tensor.buffer = 0);
    draft.graph(0).operators = None;
    composite(&mut draft, 0, 1, &[0, 1, 2], &[3]);
    *draft.graph(1) = body;
    assert_eq!(inlined(&draft), [O::Conv2d]);
    let input: Vec<u8> = (0..100).collect();
    let found = run(&import(&draft), &[&input], 100);
    assert_eq!(found, run(&import(&plain), &[&input], 100));
}

#[test]
fn an_operator_that_is_refused_is_named_in_its_subgraph_once() {
    let mut draft = Draft::new();
    let [x, y, z] = [0; 3].map(|_| draft.tensor(T::Float32, &[2]));
    composite(&mut draft, 0, 1, &[x], &[y]);
    composite(&mut draft, 0, 1, &[y], &[z]);
    draft.ends(0, &[x], &[z]);
    let [given, middle, end] = [0; 3].map(|_| draft.tensor_in(1, T::Float32, &[2]));
    draft.operator_in(1, B::Relu, &[given], &[middle], None);
    draft.operator_in(1, B::SkipGram, &[middle], &[end], None);
    draft.ends(1, &[given], &[end]);
    let text = errors(&draft);
    assert!(text.starts_with("1 operator has no counterpart"), "{text}");
    assert!(text.contains("operator 1 of subgraph 1, SKIP_GRAM version 1"), "{text}");
}

#[test]
fn a_choice_that_is_known_imports_the_branch_that_is_taken() {
    let of = |truth: u8, branches: [i32; 2]| {
        let mut draft = Draft::new();
        let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
        let condition = draft.constant(T::Bool, &[1], &[truth]);
        if_operator(&mut draft, branches, &[condition, x], &[y]);
        draft.ends(0, &[x], &[y]);
        square_plus_one(&mut draft, 1);
        let [given, result] = [0; 2].map(|_| draft.tensor_in(2, T::Float32, &[2]));
        draft.operator_in(2, B::SkipGram, &[given], &[result], None);
        draft.ends(2, &[given], &[result]);
        draft
    };
    assert_eq!(inlined(&of(1, [1, 2])), [O::Mul, O::Add]);
    assert_eq!(inlined(&of(0, [2, 1])), [O::Mul, O::Add]);
    assert_eq!(reasons(&of(0, [1, 2])), ["the HAL has no such operation"]);
    assert_eq!(reasons(&of(1, [1, 7])), ["there is no subgraph 7"]);
    // A subgraph that runs itself only if it is never run.
    assert_eq!(inlined(&of(1, [1, 0])), [O::Mul, O::Add]);
}

#[test]
fn a_condition_that_follows_from_shapes_is_known() {
    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
    let (shape, two) = (draft.tensor(T::Int32, &[1]), draft.integers(&[1], &[2]));
    let is_two = draft.tensor(T::Bool, &[1]);
    draft.operator(B::Shape, &[x], &[shape], None);
    draft.operator(B::Equal, &[shape, two], &[is_two], None);
    if_operator(&mut draft, [1, 2], &[is_two, x], &[y]);
    draft.ends(0, &[x], &[y]);
    square_plus_one(&mut draft, 1);
    square_plus_one(&mut draft, 2);
    assert_eq!(inlined(&draft), [O::Mul, O::Add]);
}

#[test]
fn a_case_of_one_branch_or_of_a_known_index_is_that_branch() {
    let of = |index: Option<i32>, branches: Vec<i32>| {
        let mut draft = Draft::new();
        let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
        let (at, mut given) = match index {
            Some(index) => (draft.integers(&[1], &[index]), vec![x]),
            None => (draft.tensor(T::Int32, &[1]), vec![x]),
        };
        given.extend(index.is_none().then_some(at));
        case(&mut draft, branches, &[at, x], &[y]);
        draft.ends(0, &given, &[y]);
        square_plus_one(&mut draft, 1);
        for (graph, builtin) in [(2, B::Relu), (3, B::Tanh)] {
            let [given, result] = [0; 2].map(|_| draft.tensor_in(graph, T::Float32, &[2]));
            draft.operator_in(graph, builtin, &[given], &[result], None);
            draft.ends(graph, &[given], &[result]);
        }
        draft
    };
    assert_eq!(inlined(&of(None, vec![1])), [O::Mul, O::Add]);
    assert_eq!(inlined(&of(Some(1), vec![1, 2, 3])), [O::Relu]);
    for other in [-1, 3, i32::MAX, i32::MIN] {
        assert_eq!(inlined(&of(Some(other), vec![1, 2, 3])), [O::Tanh]);
    }
    assert_eq!(import(&of(None, vec![1, 2, 3])).model.referenced.len(), 4);
}

#[test]
fn variables_are_followed_through_a_composite() {
    // The composite adds its argument to a variable, which nothing beside it uses.
    let mut draft = initialized("total", [1.5, -2.0]);
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
    for _ in 0..2 {
        let result = draft.tensor(T::Float32, &[2]);
        composite(&mut draft, 0, 2, &[x], &[result]);
    }
    composite(&mut draft, 0, 2, &[x], &[y]);
    draft.ends(0, &[x], &[y]);
    let given = draft.tensor_in(2, T::Float32, &[2]);
    let result = running_total(&mut draft, 2, "total", given);
    draft.ends(2, &[given], &[result]);
    let import = import(&draft);
    assert_eq!(import.model.referenced.len(), 0);
    assert_eq!(operations(&import), [O::Add, O::Add, O::Add, O::Cast]);
    assert_eq!(import.states.len(), 1);
    let main = &import.model.main;
    assert!(main.operations[2].inputs.contains(&main.operations[1].outputs[0]));
}

#[test]
fn state_in_a_decomposition_is_refused() {
    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
    composite(&mut draft, 0, 1, &[x], &[y]);
    draft.ends(0, &[x], &[y]);
    square_plus_one(&mut draft, 1);
    let kept = draft.tensor_in(1, T::Float32, &[2]);
    let graph = draft.graph(1);
    graph.tensors.as_mut().unwrap()[usize::try_from(kept).unwrap()].is_variable = true;
    graph.operators.as_mut().unwrap()[0].inputs = Some(vec![0, kept]);
    let expected = "subgraph 1: variable tensors in a subgraph other than the main one";
    assert_eq!(errors(&draft), expected);
}
