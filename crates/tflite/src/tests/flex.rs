//! What becomes of TensorFlow's own operations: what they give is computed here by their definition.

use super::draft::Draft;
use super::mapping::{import, operations, reasons};
use super::split::{bytes_of, floats_of, run};
use crate::node_def::tests::{Value, written};
use crate::schema::{BuiltinOperator as B, BuiltinOptions, TensorType as T, WhileOptions};
use nnhal_hal::OperationType as O;
use nnhal_ops::extension::ExtensionOperation as E;

/// A function of one number.
type Exact = fn(f64) -> f64;

/// What becomes of an element and an update.
type Combined = fn(f32, f32) -> f32;

/// The options of a Flex operator: its name, and the message.
fn options(operation: &str, attributes: &[(&str, Value<'_>)]) -> Vec<u8> {
    let word = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let mut bytes = Vec::new();
    let places = [operation.as_bytes(), &written(operation, attributes)].map(|text| {
        bytes.extend(word(text.len()));
        let place = bytes.len();
        bytes.extend(text);
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        place
    });
    bytes.extend(word(2));
    let values = bytes.len();
    for place in places {
        bytes.extend(word(bytes.len() - place));
    }
    bytes.extend([5 << 2 | 2; 2]);
    bytes.push(u8::try_from(bytes.len() - values).unwrap());
    bytes.extend([10 << 2 | 2, 1]);
    bytes
}

impl Draft {
    fn flex(
        &mut self,
        graph: usize,
        operation: &str,
        inputs: &[i32],
        output: i32,
        attributes: &[(&str, Value<'_>)],
    ) {
        let name = format!("Flex{operation}");
        self.custom_in(graph, &name, inputs, &[output], &options(operation, attributes));
    }
}

/// What an operation makes of a tensor of floats, and of constants behind it, as floats of this shape.
fn computed(
    operation: &str,
    attributes: &[(&str, Value<'_>)],
    (shape, floats): (&[i32], &[f32]),
    constants: impl FnOnce(&mut Draft) -> Vec<i32>,
    result: &[i32],
) -> Vec<f32> {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, shape);
    let output = draft.tensor(T::Float32, result);
    let mut inputs = vec![input];
    inputs.extend(constants(&mut draft));
    draft.flex(0, operation, &inputs, output, attributes);
    draft.ends(0, &[input], &[output]);
    let count = result.iter().product::<i32>();
    let import = import(&draft);
    let found = import.outputs[0].shape.iter().map(|it| it.unwrap().cast_signed());
    assert_eq!(found.collect::<Vec<_>>(), result, "{operation}");
    floats_of(&run(&import, &[&bytes_of(floats)], usize::try_from(count).unwrap() * 4))
}

/// The same without constants, for the same shape.
fn function(operation: &str, floats: &[f32]) -> Vec<f32> {
    let shape = [i32::try_from(floats.len()).unwrap()];
    computed(operation, &[], (&shape, floats), |_| Vec::new(), &shape)
}

/// Numbers that are all different.
fn ramp(count: usize) -> Vec<f32> {
    (0_u16..).take(count).map(|it| f32::from(it * 37 % 101) / 8.0 - 5.0).collect()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let is_near = (found - expected).abs() <= tolerance * (1.0 + expected.abs());
        assert!(is_near || found == expected, "{found} is not {expected}");
    }
}

#[test]
fn functions_of_one_number_are_as_they_are_defined() {
    let floats = [-3.0_f32, -0.75, -1e-4, 0.0, 1e-4, 0.5, 1.25, 4.0];
    let functions: [(&str, Exact); 10] = [
        ("Softplus", |x| (1.0 + x.exp()).ln()),
        ("Softsign", |x| x / (1.0 + x.abs())),
        ("Tan", f64::tan),
        ("Atan", f64::atan),
        ("Sinh", f64::sinh),
        ("Cosh", f64::cosh),
        ("Sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("Square", |x| x * x),
        ("Reciprocal", |x| 1.0 / x),
        ("Selu", |x| {
            let scale = 1.050_700_987_355_480_5;
            scale * if x > 0.0 { x } else { 1.673_263_242_354_377_2 * x.exp_m1() }
        }),
    ];
    for (name, exact) in functions {
        #[allow(clippy::cast_possible_truncation)]
        let expected = floats.map(|x| exact(x.into()) as f32);
        assert_close(&function(name, &floats), &expected, 1e-6);
    }
    // Near 0 the sine is the number itself.
    assert_eq!(function("Sinh", &[1e-6]), [1e-6]);
    let [large, small] = function("Softplus", &[200.0, -200.0])[..] else { panic!() };
    assert_eq!((large, small), (200.0, 0.0), "nothing overflows");
    let errors = function("Erf", &[0.5, -1.0, 3.0]);
    assert_close(&errors, &[0.520_499_9, -0.842_700_8, 0.999_977_9], 1e-6);
}

#[test]
fn elements_are_rolled_along_axes() {
    let shape = [2, 3, 4];
    let floats = ramp(24);
    let constants =
        |draft: &mut Draft| vec![draft.integers(&[2], &[1, -6]), draft.integers(&[2], &[2, -2])];
    let found = computed("Roll", &[], (&shape, &floats), constants, &shape);
    let at = |i: usize, j: usize, k: usize| floats[(i * 3 + j) * 4 + k];
    for (place, found) in found.iter().enumerate() {
        let (i, j, k) = (place / 12, place / 4 % 3, place % 4);
        // -6 of 3 rows leaves them where they are.
        assert_eq!(*found, at(i, j, (k + 3) % 4), "{place}");
    }
}

#[test]
fn numbers_between_two_limits_stay() {
    let limits = |draft: &mut Draft| vec![draft.floats(&[], &[-1.0]), draft.floats(&[], &[2.0])];
    let found = computed("ClipByValue", &[], (&[4], &[-3.0, -0.5, 1.5, 9.0]), limits, &[4]);
    assert_eq!(found, [-1.0, -0.5, 1.5, 2.0]);
}

#[test]
fn matrices_keep_a_band_or_give_their_diagonal() {
    let floats = ramp(24);
    for (below, above) in [(0, -1), (1, 0), (-1, -1), (0, 0), (5, 1)] {
        let limits =
            |draft: &mut Draft| vec![draft.integers(&[], &[below]), draft.integers(&[], &[above])];
        let found = computed("MatrixBandPart", &[], (&[2, 3, 4], &floats), limits, &[2, 3, 4]);
        let expected = (0..24).map(|place| {
            let (row, column) = (place / 4 % 3, place % 4);
            let is_below = below < 0 || row - column <= below;
            let is_kept = is_below && (above < 0 || column - row <= above);
            if is_kept { floats[usize::try_from(place).unwrap()] } else { 0.0 }
        });
        assert_eq!(found, expected.collect::<Vec<f32>>(), "{below} {above}");
    }
    let main = |draft: &mut Draft| vec![draft.integers(&[], &[0]), draft.floats(&[], &[0.0])];
    let diagonal = computed("MatrixDiagPartV3", &[], (&[2, 3, 4], &floats), main, &[2, 3]);
    assert_eq!(diagonal, [0, 5, 10, 12, 17, 22].map(|place| floats[place]));
}

#[test]
fn windows_of_three_axes_are_pooled() {
    let shape = [1, 3, 4, 5, 2];
    let floats = ramp(120);
    let (window, stride) = ([2, 3, 2], [2, 1, 2]);
    for (padding, lengths, before) in
        [("SAME", [2, 4, 3], [0, 1, 0]), ("VALID", [1, 2, 2], [0, 0, 0])]
    {
        for is_greatest in [true, false] {
            let of_all = |inner: [i64; 3]| [1, inner[0], inner[1], inner[2], 1];
            let (ksize, strides) = (of_all(window), of_all(stride));
            let attributes = [
                ("ksize", Value::Integers(&ksize)),
                ("strides", Value::Integers(&strides)),
                ("padding", Value::Text(padding)),
                ("data_format", Value::Text("NDHWC")),
            ];
            let name = if is_greatest { "MaxPool3D" } else { "AvgPool3D" };
            let result = [1, lengths[0], lengths[1], lengths[2], 2];
            let found = computed(name, &attributes, (&shape, &floats), |_| Vec::new(), &result);
            let mut expected = Vec::new();
            for place in 0..lengths.iter().product::<i32>() * 2 {
                let at = [
                    place / (lengths[1] * lengths[2] * 2),
                    place / (lengths[2] * 2) % lengths[1],
                    place / 2 % lengths[2],
                ];
                let mut seen = Vec::new();
                for tap in 0..12 {
                    let tap: [i64; 3] = [tap / 6, tap / 2 % 3, tap % 2];
                    let axis = |axis: usize| {
                        let begin = i64::from(at[axis]) * stride[axis] - before[axis];
                        usize::try_from(begin + tap[axis]).ok().filter(|it| *it < [3, 4, 5][axis])
                    };
                    let (Some(a), Some(b), Some(c)) = (axis(0), axis(1), axis(2)) else { continue };
                    seen.push(floats[((a * 4 + b) * 5 + c) * 2 + usize::from(place % 2 == 1)]);
                }
                #[allow(clippy::cast_precision_loss)]
                let mean = seen.iter().sum::<f32>() / seen.len() as f32;
                let greatest = seen.iter().copied().fold(f32::MIN, f32::max);
                expected.push(if is_greatest { greatest } else { mean });
            }
            assert_close(&found, &expected, 1e-6);
        }
    }
    let attributes = [("padding", Value::Text("SAME")), ("data_format", Value::Text("NCDHW"))];
    assert_eq!(
        refused("MaxPool3D", &attributes),
        "its data_format is \"NCDHW\", expected NHWC or NDHWC"
    );
}

/// The greatest elements of windows of 2 by 3 at strides of 2 and 2, and their places.
fn greatest_and_places(floats: &[f32], is_same: bool, counts_images: bool) -> (Vec<f32>, Vec<i64>) {
    let (lengths, before) = if is_same { ([3, 2], [0, 0]) } else { ([2, 1], [0, 0]) };
    let (mut greatest, mut places) = (Vec::new(), Vec::new());
    for place in 0..2 * lengths[0] * lengths[1] * 2 {
        let (image, channel) = (place / (lengths[0] * lengths[1] * 2), place % 2);
        let (row, column) = (place / (lengths[1] * 2) % lengths[0], place / 2 % lengths[1]);
        let (mut best, mut at) = (f32::MIN, 0);
        for tap in 0..6 {
            let (y, x) = (row * 2 - before[0] + tap / 3, column * 2 - before[1] + tap % 3);
            if !(0..5).contains(&y) || !(0..4).contains(&x) {
                continue;
            }
            let of_image = (y * 4 + x) * 2 + channel;
            let found = floats[usize::try_from(image * 40 + of_image).unwrap()];
            if found > best {
                (best, at) = (found, if counts_images { image * 40 + of_image } else { of_image });
            }
        }
        greatest.push(best);
        places.push(i64::from(at));
    }
    (greatest, places)
}

#[test]
fn the_greatest_of_windows_have_places_and_go_back_to_them() {
    let floats = ramp(80);
    for (is_same, counts_images) in [(true, false), (true, true), (false, false)] {
        let mut draft = Draft::new();
        let image = draft.tensor(T::Float32, &[2, 5, 4, 2]);
        let lengths = if is_same { [3, 2] } else { [2, 1] };
        let shape = [2, lengths[0], lengths[1], 2];
        let values = draft.tensor(T::Float32, &shape);
        let places = draft.tensor(T::Int64, &shape);
        let attributes = [
            ("ksize", Value::Integers(&[1, 2, 3, 1])),
            ("strides", Value::Integers(&[1, 2, 2, 1])),
            ("padding", Value::Text(if is_same { "SAME" } else { "VALID" })),
            ("include_batch_in_index", Value::Truth(counts_images)),
        ];
        let written = options("MaxPoolWithArgmax", &attributes);
        draft.custom("FlexMaxPoolWithArgmax", &[image], &[values, places], &written);
        let (greatest, at) = greatest_and_places(&floats, is_same, counts_images);
        draft.ends(0, &[image], &[values]);
        let given = bytes_of(&floats);
        assert_eq!(floats_of(&run(&import(&draft), &[&given], greatest.len() * 4)), greatest);
        draft.ends(0, &[image], &[places]);
        let found = run(&import(&draft), &[&given], at.len() * 8);
        let found: Vec<i64> =
            found.as_chunks().0.iter().map(|it| i64::from_le_bytes(*it)).collect();
        assert_eq!(found, at, "{is_same} {counts_images}");
    }
    // LiteRT's operator of MediaPipe's name puts them where places of 32 bits say.
    let mut draft = Draft::new();
    let values = draft.tensor(T::Float32, &[2, 1, 2, 2]);
    let places = draft.tensor(T::Int32, &[2, 1, 2, 2]);
    let output = draft.tensor(T::Float32, &[2, 2, 5, 2]);
    // VALID, strides of 3 and 2 (across, down), a filter of 2 by 2, no activation.
    let pool: Vec<u8> = [2, 3, 2, 2, 2, 0].into_iter().flat_map(i32::to_le_bytes).collect();
    draft.custom("MaxUnpooling2D", &[values, places], &[output], &pool);
    draft.ends(0, &[values, places], &[output]);
    let at = [0_i32, 3, 18, 19, 2, 1, 8, 9];
    let given = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let places = at.map(i32::to_le_bytes).concat();
    let found = floats_of(&run(&import(&draft), &[&bytes_of(&given), &places], 160));
    let mut expected = [0.0; 40];
    for (number, (at, value)) in at.into_iter().zip(given).enumerate() {
        expected[usize::try_from(at).unwrap() + number / 4 * 20] = value;
    }
    assert_eq!(found, expected);
}

#[test]
fn patches_are_what_windows_see() {
    let floats = ramp(60);
    for (padding, lengths, before) in [("SAME", [3, 5], [1, 1]), ("VALID", [2, 3], [0, 0])] {
        let attributes = [
            ("ksizes", Value::Integers(&[1, 2, 2, 1])),
            ("strides", Value::Integers(&[1, 2, 1, 1])),
            ("rates", Value::Integers(&[1, 3, 2, 1])),
            ("padding", Value::Text(padding)),
        ];
        let result = [1, lengths[0], lengths[1], 8];
        let found = computed(
            "ExtractImagePatches",
            &attributes,
            (&[1, 6, 5, 2], &floats),
            |_| Vec::new(),
            &result,
        );
        let at = |place: i32| {
            let (row, column) = (place / (lengths[1] * 8), place / 8 % lengths[1]);
            let tap = place % 8 / 2;
            let row = row * 2 - before[0] + tap / 2 * 3;
            let column = column - before[1] + tap % 2 * 2;
            let is_inside = (0..6).contains(&row) && (0..5).contains(&column);
            let place = usize::try_from((row * 5 + column) * 2 + place % 2).unwrap_or_default();
            if is_inside { floats[place] } else { 0.0 }
        };
        let expected: Vec<f32> = (0..lengths[0] * lengths[1] * 8).map(at).collect();
        assert_eq!(found, expected, "{padding}");
    }
}

#[test]
fn updates_go_where_indexes_say() {
    let floats = ramp(12);
    let constants = |draft: &mut Draft| {
        let indexes = draft.integers(&[3, 1], &[2, 0, 2]);
        vec![indexes, draft.floats(&[3, 3], &[1.0, -2.0, 3.0, 4.0, 5.0, -6.0, 7.0, 8.0, 9.0])]
    };
    let updates = [(2, [1.0, -2.0, 3.0]), (0, [4.0, 5.0, -6.0]), (2, [7.0, 8.0, 9.0])];
    let functions: [(&str, Combined); 5] = [
        ("TensorScatterUpdate", |_, new| new),
        ("TensorScatterAdd", |old, new| old + new),
        ("TensorScatterSub", |old, new| old - new),
        ("TensorScatterMin", f32::min),
        ("TensorScatterMax", f32::max),
    ];
    for (name, function) in functions {
        let found = computed(name, &[], (&[4, 3], &floats), constants, &[4, 3]);
        let mut expected = floats.clone();
        for (row, update) in updates {
            for (column, new) in update.into_iter().enumerate() {
                let place = row * 3 + column;
                expected[place] = function(expected[place], new);
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn operations_that_the_format_has_become_its_operators() {
    let kept = [("keep_dims", Value::Truth(true))];
    let axes = |draft: &mut Draft| vec![draft.integers(&[1], &[1])];
    let sums = computed("Sum", &kept, (&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), axes, &[2, 1]);
    assert_eq!(sums, [6.0, 15.0]);
    let matrix = |draft: &mut Draft| vec![draft.floats(&[2, 3], &[1.0, 0.0, 2.0, 0.0, 1.0, 1.0])];
    let adjoint = [("adj_y", Value::Truth(true))];
    let input = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let product = computed("BatchMatMulV2", &adjoint, (&[2, 3], &input), matrix, &[2, 2]);
    assert_eq!(product, [7.0, 5.0, 16.0, 11.0]);
    let indexes =
        |draft: &mut Draft| vec![draft.integers(&[2], &[2, 0]), draft.integers(&[], &[1])];
    let gathered = computed("GatherV2", &[], (&[2, 3], &input), indexes, &[2, 2]);
    assert_eq!(gathered, [3.0, 1.0, 6.0, 4.0]);
    let steep = [("alpha", Value::Float(0.25))];
    let leaky = computed("LeakyRelu", &steep, (&[2], &[-2.0, 2.0]), |_| Vec::new(), &[2]);
    assert_eq!(leaky, [-0.5, 2.0]);
}

/// An operation of one input of this shape.
fn of_shape(operation: &str, attributes: &[(&str, Value<'_>)], shape: &[i32]) -> Draft {
    let mut draft = Draft::new();
    let [input, output] = [0; 2].map(|_| draft.tensor(T::Float32, shape));
    draft.flex(0, operation, &[input], output, attributes);
    draft.ends(0, &[input], &[output]);
    draft
}

/// Why an operation of one input is refused.
fn refused(operation: &str, attributes: &[(&str, Value<'_>)]) -> String {
    reasons(&of_shape(operation, attributes, &[1, 3, 4, 5, 2])).swap_remove(0)
}

/// Lengths that a file only declares take neither memory nor more bits than there are.
#[test]
fn lengths_that_are_too_large_are_refused() {
    let ones: &[i64] = &[1; 5];
    let attributes = [
        ("ksize", Value::Integers(ones)),
        ("strides", Value::Integers(ones)),
        ("padding", Value::Text("VALID")),
        ("data_format", Value::Text("NDHWC")),
    ];
    let long = of_shape("AvgPool3D", &attributes, &[1, i32::MAX, 1, 1, 1]);
    assert_eq!(reasons(&long).len(), 1);
    let diagonal = |shape: [i32; 2]| reasons(&of_shape("MatrixDiagPart", &[], &shape));
    assert_eq!(diagonal([70_000, 60_000]), ["a length exceeds 31 bits"]);
    assert_eq!(diagonal([1, i32::MAX]).len(), 1, "the output has another shape");
}

#[test]
fn what_has_no_counterpart_is_named() {
    assert_eq!(refused("Lgamma", &[]), "the HAL has no such operation");
    let mut draft = Draft::new();
    let (input, output) = (draft.tensor(T::Float32, &[2]), draft.tensor(T::Float32, &[2]));
    draft.custom("FlexErf", &[input], &[output], &[1, 2, 3]);
    draft.ends(0, &[input], &[output]);
    assert_eq!(reasons(&draft), ["its options hold no TensorFlow operation"]);
    let [windows, lists] = ["AvgPool3D", "TensorListPushBack"].map(|name| refused(name, &[]));
    assert_eq!(windows, "its ksize are [], expected 1, 3 numbers above 0, 1");
    assert_eq!(lists, "lists whose number of elements changes have no counterpart");
    assert_eq!(refused("TensorListStack", &[]), "its list comes from no operation on lists");
}

/// A loop that puts twice each row of its input into a list, the last row first.
fn loop_over_lists(of_element: &[i32]) -> Draft {
    let of_float = [("element_dtype", Value::Type(1))];
    let mut draft = Draft::new();
    let rows = draft.tensor(T::Float32, &[4, 3]);
    let rank = i32::try_from(of_element.len()).unwrap();
    let shape = draft.integers(&[rank], of_element);
    let (count, first) = (draft.integers(&[], &[4]), draft.integers(&[], &[0]));
    let [given, made, given_after, made_after] = [0; 4].map(|_| draft.tensor(T::Variant, &[]));
    let (index_after, result) = (draft.tensor(T::Int32, &[]), draft.tensor(T::Float32, &[4, 3]));
    draft.flex(0, "TensorListFromTensor", &[rows, shape], given, &of_float);
    draft.flex(0, "TensorListReserve", &[shape, count], made, &of_float);
    let options = WhileOptions { cond_subgraph_index: 1, body_subgraph_index: 2 };
    let options = Some(BuiltinOptions::WhileOptions(Box::new(options)));
    let (inputs, outputs) = ([first, made, given], [index_after, made_after, given_after]);
    draft.operator(B::While, &inputs, &outputs, options);
    draft.flex(0, "TensorListStack", &[made_after, shape], result, &of_float);
    draft.ends(0, &[rows], &[result]);
    for graph in [1, 2] {
        let index = draft.tensor_in(graph, T::Int32, &[]);
        let lists = [0; 2].map(|_| draft.tensor_in(graph, T::Variant, &[]));
        let limit = draft.tensor_in(graph, T::Int32, &[]);
        if graph == 1 {
            // The list says how often.
            draft.flex(graph, "TensorListLength", &[lists[1]], limit, &[]);
            let less = draft.tensor_in(graph, T::Bool, &[]);
            draft.operator_in(graph, B::Less, &[index, limit], &[less], None);
            draft.ends(graph, &[index, lists[0], lists[1]], &[less]);
            continue;
        }
        let constant = |draft: &mut Draft, number: i32| {
            let constant = draft.integers(&[], &[number]);
            let buffer = draft.tensor_mut(constant).buffer;
            let here = draft.tensor_in(graph, T::Int32, &[]);
            let tensors = draft.graph(graph).tensors.as_mut().unwrap();
            tensors[usize::try_from(here).unwrap()].buffer = buffer;
            here
        };
        let (one, last) = (constant(&mut draft, 1), constant(&mut draft, 3));
        let (next, back) = (draft.tensor_in(graph, T::Int32, &[]), limit);
        let [row, double] = [0; 2].map(|_| draft.tensor_in(graph, T::Float32, &[3]));
        let set = draft.tensor_in(graph, T::Variant, &[]);
        draft.flex(graph, "TensorListGetItem", &[lists[1], index, one], row, &of_float);
        draft.operator_in(graph, B::Add, &[row, row], &[double], None);
        draft.operator_in(graph, B::Sub, &[last, index], &[back], None);
        draft.flex(graph, "TensorListSetItem", &[lists[0], back, double], set, &of_float);
        draft.operator_in(graph, B::Add, &[index, one], &[next], None);
        draft.ends(graph, &[index, lists[0], lists[1]], &[next, set, lists[1]]);
    }
    draft
}

#[test]
fn a_loop_reads_a_list_and_writes_another() {
    // The shape of an element is known at first, in part, or not at all.
    for of_element in [&[3][..], &[-1], &[]] {
        let mut draft = loop_over_lists(of_element);
        if of_element.is_empty() {
            // A scalar of -1, and not the shape of a scalar.
            let unknown = draft.integers(&[], &[-1]);
            for operator in draft.graph(0).operators.as_mut().unwrap() {
                operator
                    .inputs
                    .as_mut()
                    .unwrap()
                    .iter_mut()
                    .for_each(|it| *it = if *it == 1 { unknown } else { *it });
            }
        }
        let import = import(&draft);
        let filled = E::Fill.operation_type();
        assert_eq!(operations(&import)[..2], [filled, O::While], "{of_element:?}");
        let floats = ramp(12);
        let expected: Vec<f32> =
            floats.chunks(3).rev().flatten().map(|number| number * 2.0).collect();
        assert_eq!(floats_of(&run(&import, &[&bytes_of(&floats)], 48)), expected);
    }
}
