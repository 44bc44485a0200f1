//! What single operators give, computed by the reference engine.

use super::draft::Draft;
use super::mapping::{import, reasons};
use super::split::{bytes_of, floats_of};
use crate::schema::{
    BuiltinOperator as B, BuiltinOptions, FakeQuantOptions, StridedSliceOptions, TensorType as T,
};
use crate::{Import, ImportOptions, import_memory};
use nnhal_hal::{ExecutionOptions, HalVersion, PrepareOptions, RequestBuilder};
use nnhal_ops::extension::element_size;

/// Bytes that an output may have.
const ROOM: usize = 1 << 12;

/// The bytes of all outputs for inputs of these shapes.
fn run_shaped(import: &Import, inputs: &[(&[u8], &[u32])]) -> Vec<Vec<u8>> {
    let device = nnhal_reference::device();
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    for (bytes, shape) in inputs {
        request.input_shaped(bytes, shape);
    }
    for _ in &import.outputs {
        request.output(ROOM);
    }
    let request = request.build().unwrap();
    let execution = prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    let main = &import.model.main;
    let outputs = main.outputs.iter().zip(&execution.output_shapes).enumerate();
    let outputs = outputs.map(|(at, (operand, shape))| {
        let mut bytes = RequestBuilder::read_output(&request, at).unwrap();
        let operand = &main.operands[*operand as usize];
        let count: u32 = shape.dimensions.iter().product();
        bytes.truncate((count * element_size(operand.operand_type).unwrap()) as usize);
        bytes
    });
    outputs.collect()
}

/// The same, of inputs with the shapes that the model has.
pub(super) fn run_all(import: &Import, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
    let main = &import.model.main;
    let shapes = main.inputs.iter().map(|input| &main.operands[*input as usize].dimensions[..]);
    let inputs: Vec<_> = inputs.iter().copied().zip(shapes).collect();
    run_shaped(import, &inputs)
}

/// The floats of the first output.
fn floats(draft: &Draft, inputs: &[&[u8]]) -> Vec<f32> {
    floats_of(&run_all(&import(draft), inputs)[0])
}

fn integers(integers: &[i32]) -> Vec<u8> {
    integers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

#[test]
fn a_select_by_row_chooses_rows_also_where_lengths_are_open() {
    for rows in [2, 3] {
        let mut draft = Draft::new();
        let condition = draft.tensor(T::Bool, &[1]);
        let [a, b, chosen] = [0; 3].map(|_| draft.tensor(T::Float32, &[1, 3]));
        draft.tensor_mut(condition).shape_signature = Some(vec![-1]);
        for tensor in [a, b, chosen] {
            draft.tensor_mut(tensor).shape_signature = Some(vec![-1, 3]);
        }
        draft.operator(B::Select, &[condition, a, b], &[chosen], None);
        draft.ends(0, &[condition, a, b], &[chosen]);
        let import = import(&draft);
        assert!(!import.has_example_shapes);
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let values = &values[..3 * rows];
        let [a, b] = [1.0, -1.0].map(|sign| values.iter().map(|it| sign * it).collect::<Vec<_>>());
        let shape = [u32::try_from(rows).unwrap(), 3];
        let inputs = [
            (&[1, 0, 1][..rows], &shape[..1]),
            (&bytes_of(&a)[..], &shape[..]),
            (&bytes_of(&b)[..], &shape[..]),
        ];
        let expected = [1.0, 2.0, 3.0, -4.0, -5.0, -6.0, 7.0, 8.0, 9.0];
        assert_eq!(floats_of(&run_shaped(&import, &inputs)[0]), expected[..3 * rows]);
    }
}

#[test]
fn a_select_by_a_scalar_takes_one_of_both() {
    let mut draft = Draft::new();
    let condition = draft.tensor(T::Bool, &[]);
    let [a, b, chosen] = [0; 3].map(|_| draft.tensor(T::Float32, &[2, 2]));
    draft.operator(B::Select, &[condition, a, b], &[chosen], None);
    draft.ends(0, &[condition, a, b], &[chosen]);
    let values = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]];
    let [a, b] = values.map(|it| bytes_of(&it));
    for (condition, expected) in [(1, values[0]), (0, values[1])] {
        assert_eq!(floats(&draft, &[&[condition], &a, &b]), expected);
    }
}

/// STRIDED_SLICE of `0, 1, 2, ...` in this shape with begins and ends, at run time or as constants, strides of 1, and masks:
/// of begins, of ends, and of axes that shrink.
fn slice(
    shape: &[i32],
    of_result: &[i32],
    entries: [&[i32]; 2],
    masks: [i32; 3],
    is_constant: bool,
) -> Vec<f32> {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, shape);
    let length = [i32::try_from(entries[0].len()).unwrap()];
    let [begins, ends] = entries.map(|entries| match is_constant {
        true => draft.integers(&length, entries),
        false => draft.tensor(T::Int32, &length),
    });
    let strides = draft.integers(&length, &vec![1; entries[0].len()]);
    let part = draft.tensor(T::Float32, of_result);
    let [begin_mask, end_mask, shrink_axis_mask] = masks;
    let options = StridedSliceOptions {
        begin_mask,
        end_mask,
        shrink_axis_mask,
        ..StridedSliceOptions::default()
    };
    let options = Some(BuiltinOptions::StridedSliceOptions(Box::new(options)));
    draft.operator(B::StridedSlice, &[x, begins, ends, strides], &[part], options);
    let inputs = if is_constant { vec![x] } else { vec![x, begins, ends] };
    draft.ends(0, &inputs, &[part]);
    #[allow(clippy::cast_precision_loss)]
    let elements: Vec<f32> = (0..shape.iter().product()).map(|it| it as f32).collect();
    let [begins, ends] = entries.map(integers);
    let elements = bytes_of(&elements);
    let inputs = [&elements[..], &begins, &ends];
    floats(&draft, if is_constant { &inputs[..1] } else { &inputs })
}

#[test]
fn an_axis_that_shrinks_has_the_element_of_its_begin_whatever_its_end_is() {
    for is_constant in [false, true] {
        let row = |begin: i32, end: i32, begin_mask: i32| {
            slice(&[5], &[], [&[begin], &[end]], [begin_mask, 0, 1], is_constant)
        };
        assert_eq!(row(-1, 0, 0), [4.0], "x[-1]");
        assert_eq!(row(-2, -1, 0), [3.0]);
        assert_eq!(row(1, 5, 0), [1.0]);
        assert_eq!(row(3, 0, 0), [3.0]);
        assert_eq!(row(1, 3, 1), [0.0], "a begin that does not count");
        let of_matrix = |begins: [i32; 2], ends: [i32; 2], masks, of_result: &[i32]| {
            slice(&[4, 3], of_result, [&begins, &ends], masks, is_constant)
        };
        assert_eq!(of_matrix([-1, 0], [0, 3], [0, 2, 1], &[3]), [9.0, 10.0, 11.0]);
        assert_eq!(of_matrix([0, -1], [0, 0], [1, 1, 2], &[4]), [2.0, 5.0, 8.0, 11.0]);
        assert_eq!(of_matrix([1, 1], [4, 3], [0, 0, 1], &[2]), [4.0, 5.0]);
        assert_eq!(of_matrix([2, 0], [0, 2], [1, 1, 1], &[2]), [0.0, 1.0]);
        assert_eq!(of_matrix([1, -1], [2, 0], [0, 0, 3], &[]), [5.0]);
        let fewer = slice(&[4, 3], &[3], [&[-1], &[0]], [0, 0, 1], is_constant);
        assert_eq!(fewer, [9.0, 10.0, 11.0], "a row of a matrix");
    }
}

#[test]
fn operators_without_options_have_those_that_are_0() {
    let mut draft = Draft::new();
    let indices = draft.tensor(T::Int32, &[2]);
    let (depth, on, off) =
        (draft.integers(&[], &[3]), draft.floats(&[], &[1.0]), draft.floats(&[], &[0.0]));
    let hot = draft.tensor(T::Float32, &[3, 2]);
    draft.operator(B::OneHot, &[indices, depth, on, off], &[hot], None);
    draft.ends(0, &[indices], &[hot]);
    assert_eq!(floats(&draft, &[&integers(&[2, 0])]), [0.0, 1.0, 0.0, 0.0, 1.0, 0.0], "axis 0");

    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[1, 4]));
    draft.operator(B::Softmax, &[x], &[y], None);
    draft.ends(0, &[x], &[y]);
    assert_eq!(floats(&draft, &[&bytes_of(&[1.0, 5.0, -3.0, 0.0])]), [0.25; 4], "beta 0");

    let mut draft = Draft::new();
    let x = draft.tensor(T::Float32, &[4]);
    let [begins, ends, strides] = [1, 4, 2].map(|entry| draft.integers(&[1], &[entry]));
    let part = draft.tensor(T::Float32, &[2]);
    draft.operator(B::StridedSlice, &[x, begins, ends, strides], &[part], None);
    draft.ends(0, &[x], &[part]);
    assert_eq!(floats(&draft, &[&bytes_of(&[1.0, 2.0, 3.0, 4.0])]), [2.0, 4.0], "no masks");

    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[4]));
    draft.operator(B::FakeQuant, &[x], &[y], None);
    draft.ends(0, &[x], &[y]);
    assert_eq!(reasons(&draft), ["it has no options"]);
}

#[test]
fn what_is_padded_with_may_be_computed() {
    let paddings = |draft: &mut Draft| draft.integers(&[1, 2], &[1, 2]);
    let mut draft = Draft::new();
    let (x, value) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[]));
    let (paddings_of_floats, y) = (paddings(&mut draft), draft.tensor(T::Float32, &[5]));
    draft.operator(B::Padv2, &[x, paddings_of_floats, value], &[y], None);
    draft.ends(0, &[x, value], &[y]);
    let found = floats(&draft, &[&bytes_of(&[1.0, 2.0]), &bytes_of(&[7.0])]);
    assert_eq!(found, [7.0, 1.0, 2.0, 7.0, 7.0]);

    let mut draft = Draft::new();
    let (x, value) = (draft.tensor(T::Int8, &[2]), draft.tensor(T::Int8, &[1]));
    let (paddings_of_bytes, y) = (paddings(&mut draft), draft.tensor(T::Int8, &[5]));
    for tensor in [x, value, y] {
        draft.quantize(tensor, &[0.5], -3, 0);
    }
    draft.operator(B::Padv2, &[x, paddings_of_bytes, value], &[y], None);
    draft.ends(0, &[x, value], &[y]);
    assert_eq!(run_all(&import(&draft), &[&[1, 2], &[7]])[0], [7, 1, 2, 7, 7]);
}

#[test]
fn scalars_are_transposed_and_filled() {
    let mut draft = Draft::new();
    let (x, y) = (draft.tensor(T::Float32, &[]), draft.tensor(T::Float32, &[]));
    let order = draft.constant(T::Int32, &[0], &[]);
    draft.operator(B::Transpose, &[x, order], &[y], None);
    draft.ends(0, &[x], &[y]);
    assert_eq!(floats(&draft, &[&bytes_of(&[3.0])]), [3.0]);

    let mut draft = Draft::new();
    let (value, y) = (draft.tensor(T::Float32, &[]), draft.tensor(T::Float32, &[]));
    let lengths = draft.constant(T::Int32, &[0], &[]);
    draft.operator(B::Fill, &[lengths, value], &[y], None);
    draft.ends(0, &[value], &[y]);
    assert_eq!(floats(&draft, &[&bytes_of(&[3.0])]), [3.0]);
    // The value is known too.
    let mut draft = Draft::new();
    let (x, filled, y) = {
        let mut scalar = || draft.tensor(T::Float32, &[]);
        (scalar(), scalar(), scalar())
    };
    let (lengths, value) = (draft.constant(T::Int32, &[0], &[]), draft.floats(&[], &[5.0]));
    draft.operator(B::Fill, &[lengths, value], &[filled], None);
    draft.operator(B::Maximum, &[x, filled], &[y], None);
    draft.ends(0, &[x], &[y]);
    assert_eq!(floats(&draft, &[&bytes_of(&[3.0])]), [5.0]);
}

/// SOFTMAX of 4 values from 8 bits to 16, whose results are read by a caller, or by another operator.
fn wide_softmax(is_read: bool) -> Draft {
    let mut draft = Draft::new();
    let (x, y) = (draft.tensor(T::Int8, &[2, 4]), draft.tensor(T::Int16, &[2, 4]));
    draft.quantize(x, &[0.25], 3, 0);
    draft.quantize(y, &[1.0 / 65536.0], -32768, 0);
    let options = crate::schema::SoftmaxOptions { beta: 1.0 };
    let options = Some(BuiltinOptions::SoftmaxOptions(Box::new(options)));
    draft.operator(B::Softmax, &[x], &[y], options);
    draft.ends(0, &[x], &[y]);
    if is_read {
        let real = draft.tensor(T::Float32, &[2, 4]);
        draft.operator(B::Dequantize, &[y], &[real], None);
        draft.ends(0, &[x], &[real]);
    }
    draft
}

#[test]
fn a_softmax_from_8_to_16_bits_has_its_zero_point_as_an_output() {
    let x: [i8; 8] = [3, 3, 3, 3, 127, -128, 7, 3];
    let found = run_all(&import(&wide_softmax(false)), &[&x.map(i8::cast_unsigned)]).remove(0);
    let found: Vec<i16> = found.as_chunks().0.iter().map(|it| i16::from_le_bytes(*it)).collect();
    // A quarter is 16384 of 65536; 1 is one more than there is.
    assert_eq!(found, [-16384, -16384, -16384, -16384, 32767, -32768, -32768, -32768]);
    let reason = "its result is INT16 with zero point -32768, which the HAL has as an output only";
    assert_eq!(reasons(&wide_softmax(true))[0], reason);
}

#[test]
fn a_narrow_range_has_one_step_less() {
    let found = |narrow_range: bool| {
        let mut draft = Draft::new();
        let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[5]));
        let options = FakeQuantOptions { min: -1.0, max: 1.0, num_bits: 3, narrow_range };
        let options = Some(BuiltinOptions::FakeQuantOptions(Box::new(options)));
        draft.operator(B::FakeQuant, &[x], &[y], options);
        draft.ends(0, &[x], &[y]);
        floats(&draft, &[&bytes_of(&[-2.0, -0.4, 0.1, 0.51, 2.0])])
    };
    let is_near = |found: &[f32], expected: &[f32]| {
        let pairs = found.iter().zip(expected);
        assert!(pairs.clone().all(|(x, y)| (x - y).abs() < 1e-6), "{found:?}, not {expected:?}");
    };
    // Steps of a third, and of two sevenths, of which the fourth is 0: 3.5 is a little less in float32.
    is_near(&found(true), &[-1.0, -1.0 / 3.0, 0.0, 2.0 / 3.0, 1.0]);
    is_near(&found(false), &[-6.0 / 7.0, -2.0 / 7.0, 0.0, 4.0 / 7.0, 8.0 / 7.0]);
}

#[test]
fn what_follows_from_a_scalar_has_an_axis_where_that_was_given_one() {
    let mut draft = Draft::new();
    let (x, v) = (draft.tensor(T::Float32, &[]), draft.tensor(T::Float32, &[3]));
    let (one, axis) = (draft.floats(&[], &[1.0]), draft.integers(&[1], &[0]));
    let no_lengths = draft.constant(T::Int32, &[0], &[]);
    let [sum, negative, mean, scalar] = [0; 4].map(|_| draft.tensor(T::Float32, &[]));
    draft.operator(B::Add, &[x, one], &[sum], None);
    draft.operator(B::Neg, &[sum], &[negative], None);
    draft.operator(B::Mean, &[v, axis], &[mean], None);
    draft.operator(B::Reshape, &[negative, no_lengths], &[scalar], None);
    draft.ends(0, &[x, v], &[sum, negative, mean, scalar]);
    let shapes = |of_x: Option<Vec<u32>>| -> Vec<Vec<Option<u32>>> {
        let options =
            ImportOptions { shapes: &[of_x], may_contradict: true, ..ImportOptions::default() };
        let memory = nnhal_hal::Memory::from_bytes(&draft.bytes()).unwrap();
        let import = import_memory(memory, &options).unwrap();
        import.outputs.into_iter().map(|it| it.shape).collect()
    };
    let (none, one) = (Vec::new(), vec![Some(1)]);
    assert_eq!(shapes(None), [none.clone(), none.clone(), none.clone(), none.clone()]);
    assert_eq!(shapes(Some(vec![1])), [one.clone(), one, none.clone(), none]);
}
