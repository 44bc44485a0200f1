//! Tensors with a part replaced: DYNAMIC_UPDATE_SLICE, and what converters write for a row of a list of tensors. They are
//! changed in place where no one sees it, and give what the reference device gives.

use nnhal_cpu::Settings;
use nnhal_driver::Prepared;
use nnhal_hal::{
    Device, HalVersion, Model, ModelBuilder, OperandId, OperandSpec, OperationType as O,
    PrepareOptions, PreparedModel, RequestBuilder, SubgraphBuilder,
};
use nnhal_ops::extension::{self, ExtensionOperation};
use std::sync::Arc;

const ROWS: u32 = 5;
const WIDTH: u32 = 3;

fn integers(dimensions: &[u32]) -> OperandSpec {
    OperandSpec::tensor_int32(dimensions)
}

fn prepare(device: &dyn Device, model: &Model) -> Arc<dyn PreparedModel> {
    device.prepare_model(model, HalVersion::LATEST, PrepareOptions::default()).unwrap()
}

fn devices() -> [Arc<dyn Device>; 2] {
    [nnhal_cpu::device(Settings::default()), nnhal_reference::device()]
}

/// Outputs of these numbers of integers, or what went wrong.
fn run(
    prepared: &dyn PreparedModel,
    inputs: &[Vec<i32>],
    outputs: &[usize],
) -> Result<Vec<Vec<i32>>, String> {
    let mut request = RequestBuilder::new();
    for input in inputs {
        request.input(&input.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>());
    }
    for output in outputs {
        request.output(4 * output);
    }
    let request = request.build().unwrap();
    prepared.execute(&request, &Default::default()).map_err(|it| it.error.to_string())?;
    let output = |index| {
        let bytes = RequestBuilder::read_output(&request, index).unwrap();
        let (integers, _) = bytes.as_chunks();
        integers.iter().copied().map(i32::from_le_bytes).collect()
    };
    Ok((0..outputs.len()).map(output).collect())
}

fn kernels(prepared: &dyn PreparedModel) -> Vec<String> {
    Prepared::of(prepared).unwrap().plan().into_iter().map(|step| step.kernel).collect()
}

/// How a row is put into a list of tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Converted,
    /// The place of what is behind is not the row's and 1, but the row's and 2: another operation.
    Skipping,
    /// What is before the row is read by others too.
    Shared,
}

/// `list` with row `index`, of one integer, replaced, as TensorFlow's converter writes it.
fn set_row(
    graph: &mut SubgraphBuilder,
    form: Form,
    [list, row, index]: [OperandId; 3],
) -> (OperandId, OperandId) {
    let none = graph.scalar_i32(0);
    let axis = graph.scalar_i32(0);
    let step = graph.constant(integers(&[1]), &[if form == Form::Skipping { 2 } else { 1 }]);
    let next = graph.operation(O::Add, [index, step, none], integers(&[1]));
    let [all, zeros] = [-1, 0].map(|it| graph.constant(integers(&[1]), &[it]));
    let [whole, start] = [-1, 0].map(|it| graph.constant(integers(&[2]), &[it; 2]));
    // Of integers, which NNAPI's own does not join.
    let join = ExtensionOperation::Concatenation.operation_type();
    let same = graph.operation(O::Cast, [index], integers(&[1]));
    let sizes = graph.operation(join, [same, all, axis], integers(&[2]));
    let before = graph.operation(O::Slice, [list, start, sizes], integers(&[0, 0]));
    let begins = graph.operation(join, [next, zeros, axis], integers(&[2]));
    let behind = graph.operation(O::Slice, [list, begins, whole], integers(&[0, 0]));
    let shape = graph.constant(integers(&[2]), &[1, WIDTH.cast_signed()]);
    let row = graph.operation(O::Reshape, [row, shape], integers(&[1, WIDTH]));
    let parts = [before, row, behind, axis];
    (graph.operation(join, parts, integers(&[ROWS, WIDTH])), before)
}

/// `for i from `first` while i < limit { list[i] = x = x + list_of_inputs[i] }` gives list and x.
fn collecting(form: Form, list_is_read: bool) -> Model {
    let mut builder = ModelBuilder::new();
    builder.extension(extension::NAME, extension::PREFIX);
    let types = || [integers(&[1]), integers(&[ROWS, WIDTH]), integers(&[WIDTH]), integers(&[1])];
    let mut condition = SubgraphBuilder::new();
    let variables = types().map(|spec| condition.input("", spec));
    let bounds = [variables[0], variables[3]];
    let goes_on = condition.operation(O::Less, bounds, OperandSpec::tensor_bool8([1]));
    condition.output(goes_on);
    let condition = builder.reference(condition);
    let mut body = SubgraphBuilder::new();
    let [i, list, x, _] = types().map(|spec| body.input("", spec));
    let none = body.scalar_i32(0);
    let greatest = ExtensionOperation::ReduceMax.operation_type();
    let x = body.operation(O::Add, [x, i, none], integers(&[WIDTH]));
    let (updated, before) = set_row(&mut body, form, [list, x, i]);
    let x = if list_is_read {
        // The rows as they were before this one came: the sum of one column, behind the update.
        let (axes, keep) = (body.constant(integers(&[1]), &[0]), body.scalar_bool(false));
        let of_columns = body.operation(greatest, [list, axes, keep], integers(&[WIDTH]));
        body.operation(O::Add, [x, of_columns, none], integers(&[WIDTH]))
    } else if form == Form::Shared {
        let (axes, keep) = (body.constant(integers(&[1]), &[1]), body.scalar_bool(false));
        // Nothing is added: the pieces are longer from round to round.
        let lengths = body.operation(greatest, [before, axes, keep], integers(&[0]));
        let (axes, keep) = (body.constant(integers(&[1]), &[0]), body.scalar_bool(true));
        let most = body.operation(greatest, [lengths, axes, keep], integers(&[1]));
        body.operation(O::Add, [x, most, none], integers(&[WIDTH]))
    } else {
        x
    };
    let one = body.constant(integers(&[1]), &[1]);
    let next = body.operation(O::Add, [i, one, none], integers(&[1]));
    for output in [next, updated, x] {
        body.output(output);
    }
    let body = builder.reference(body);
    let mut main = SubgraphBuilder::new();
    let (condition, body) = (main.subgraph(condition), main.subgraph(body));
    let [i, limit] = [0, 1].map(|_| main.input("", integers(&[1])));
    let list: Vec<i32> = (0..(ROWS * WIDTH).cast_signed()).map(|it| 100 + it).collect();
    let list = main.constant(integers(&[ROWS, WIDTH]), &list);
    let x = main.constant(integers(&[WIDTH]), &[1, 2, 3]);
    let results: Vec<_> = types()[..3].iter().map(|it| main.temporary(it.clone())).collect();
    main.operation_into(O::While, [condition, body, i, list, x, limit], &results);
    main.output(results[1]);
    main.output(results[2]);
    builder.build(main).unwrap()
}

#[test]
fn a_loop_fills_a_list_of_tensors() {
    for (form, list_is_read, step) in [
        (Form::Converted, false, "update row in place"),
        (Form::Converted, true, "update row"),
        (Form::Skipping, false, ""),
        (Form::Shared, false, ""),
    ] {
        let model = collecting(form, list_is_read);
        let prepared = devices().map(|device| prepare(&*device, &model));
        let found = kernels(&*prepared[0]);
        if step.is_empty() {
            assert!(found.is_empty(), "{form:?} is interpreted: {found:?}");
        } else {
            assert!(found.iter().any(|it| it == step), "{form:?}: {found:?}");
            assert!(found.iter().all(|it| !it.contains("slice") && it != "copy"), "{found:?}");
        }
        for (first, limit) in [(0, 0), (0, 1), (0, 5), (2, 4), (4, 5), (3, 3)] {
            let inputs = [vec![first], vec![limit]];
            let [fast, reference] = prepared.each_ref().map(|it| run(&**it, &inputs, &[15, 3]));
            if form == Form::Converted || first == limit {
                assert!(reference.is_ok(), "{form:?}, {first} to {limit}: {reference:?}");
            }
            assert_eq!(fast.is_ok(), reference.is_ok(), "{form:?}, {first} to {limit}");
            assert_eq!(fast.ok(), reference.ok(), "{form:?}, {first} to {limit}");
        }
        // Rows that are not there: after some that are, or at once.
        for (first, limit) in [(0, 6), (5, 6), (-2, 0)] {
            let inputs = [vec![first], vec![limit]];
            for prepared in &prepared {
                run(&**prepared, &inputs, &[15, 3]).unwrap_err();
            }
        }
        // What a loop that failed left behind is no one's.
        let inputs = [vec![0], vec![5]];
        if form == Form::Converted {
            let [fast, reference] = prepared.each_ref().map(|it| run(&**it, &inputs, &[15, 3]));
            assert_eq!(fast.unwrap(), reference.unwrap());
        }
    }
}

#[test]
fn the_error_of_a_row_that_is_not_there_says_which() {
    let prepared =
        prepare(&*nnhal_cpu::device(Settings::default()), &collecting(Form::Converted, false));
    let error = run(&*prepared, &[vec![5], vec![6]], &[15, 3]).unwrap_err();
    assert!(error.contains("the row that is replaced") && error.contains("0 to 4"), "{error}");
}

/// Blocks that are put into a tensor, one after the other, of which some may be read by others too.
fn chain(given_out: &[bool], is_constant: bool, also_read: bool) -> Model {
    let mut builder = ModelBuilder::new();
    let mut graph = SubgraphBuilder::new();
    builder.extension(extension::NAME, extension::PREFIX);
    let update = ExtensionOperation::DynamicUpdateSlice.operation_type();
    let spec = || integers(&[ROWS, WIDTH]);
    let first: Vec<i32> = (0..(ROWS * WIDTH).cast_signed()).collect();
    let given = graph.input("tensor", spec());
    let mut tensor = if is_constant { graph.constant(spec(), &first) } else { given };
    let mut outputs = Vec::new();
    for (value, is_given_out) in (90..).zip(given_out) {
        let block = graph.constant(integers(&[2, 2]), &[value; 4]);
        let begin = graph.input("", integers(&[2]));
        tensor = graph.operation(update, [tensor, block, begin], spec());
        if *is_given_out {
            outputs.push(tensor);
        }
    }
    if also_read || is_constant {
        let none = graph.scalar_i32(0);
        outputs.push(graph.operation(O::Add, [given, given, none], spec()));
    }
    for output in outputs {
        graph.output(output);
    }
    builder.build(graph).unwrap()
}

#[test]
fn what_others_read_is_not_changed() {
    for (given_out, is_constant, also_read, in_place) in [
        (&[true][..], false, false, 1),
        (&[false, false, true], false, false, 3),
        // What is given out is not changed.
        (&[true, false, true], false, false, 2),
        (&[true, true, true], false, false, 1),
        (&[false, true], true, false, 1),
        (&[false, true], false, true, 1),
    ] {
        let model = chain(given_out, is_constant, also_read);
        let prepared = devices().map(|device| prepare(&*device, &model));
        let found = kernels(&*prepared[0]);
        let count = |kernel| found.iter().filter(|it| *it == kernel).count();
        assert_eq!(count("update slice in place"), in_place, "{given_out:?}: {found:?}");
        assert_eq!(count("update slice"), given_out.len() - in_place, "{given_out:?}: {found:?}");
        for places in [[[0, 0], [1, 1], [3, 1]], [[7, -3], [0, 0], [2, 0]]] {
            let mut inputs = vec![(0..(ROWS * WIDTH).cast_signed()).map(|it| it * 7).collect()];
            inputs.extend(places.iter().take(given_out.len()).map(|place| place.to_vec()));
            let outputs =
                given_out.iter().filter(|it| **it).count() + usize::from(is_constant || also_read);
            let outputs = vec![(ROWS * WIDTH) as usize; outputs];
            // Twice: what one run leaves in the arena is not there for the next.
            for _ in 0..2 {
                let [fast, reference] =
                    prepared.each_ref().map(|it| run(&**it, &inputs, &outputs).unwrap());
                assert_eq!(fast, reference, "{given_out:?}, {places:?}");
            }
        }
    }
}
