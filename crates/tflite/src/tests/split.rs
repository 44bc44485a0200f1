//! What the HAL has no single operation for, run: choices among many branches, groups with dilation, clamps of integers,
//! upper halves of floats that callers give and get.

use super::custom::numbers;
use super::draft::Draft;
use super::inline::constant_in;
use super::mapping::{import, operations, reasons};
use crate::Import;
use crate::schema::{
    ActivationFunctionType as A, AddOptions, BatchMatMulOptions, BuiltinOperator as B,
    BuiltinOptions, BuiltinOptions2, Conv2DOptions, DivOptions, MulOptions, Padding,
    StablehloCaseOptions, SubOptions, TensorType as T,
};
use nnhal_hal::{ExecutionOptions, HalVersion, OperationType as O, PrepareOptions, RequestBuilder};

/// The bytes of the only output, computed by the reference engine.
pub(super) fn run(import: &Import, inputs: &[&[u8]], length: usize) -> Vec<u8> {
    let device = nnhal_reference::device();
    let prepared =
        device.prepare_model(&import.model, HalVersion::LATEST, PrepareOptions::default()).unwrap();
    let mut request = RequestBuilder::new();
    for input in inputs {
        request.input(input);
    }
    request.output(length);
    let request = request.build().unwrap();
    prepared.execute(&request, &ExecutionOptions::default()).unwrap();
    RequestBuilder::read_output(&request, 0).unwrap()
}

pub(super) fn bytes_of(floats: &[f32]) -> Vec<u8> {
    floats.iter().flat_map(|it| it.to_le_bytes()).collect()
}

pub(super) fn floats_of(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect()
}

/// STABLEHLO_CASE of branches that add 10, 20, 30, ... to a number.
fn choice(branches: usize) -> Draft {
    let mut draft = Draft::new();
    let index = draft.tensor(T::Int32, &[1]);
    let input = draft.tensor(T::Float32, &[1]);
    let output = draft.tensor(T::Float32, &[1]);
    draft.operator(B::StablehloCase, &[index, input], &[output], None);
    let operator = draft.graph(0).operators.as_mut().and_then(|all| all.last_mut()).unwrap();
    let indices = (1..).take(branches).collect();
    let options = StablehloCaseOptions { branch_subgraph_indices: Some(indices) };
    operator.builtin_options_2 = Some(BuiltinOptions2::StablehloCaseOptions(Box::new(options)));
    draft.ends(0, &[index, input], &[output]);
    for branch in 1..=branches {
        let [input, ten, output] = [0; 3].map(|_| draft.tensor_in(branch, T::Float32, &[1]));
        let buffers = draft.model.buffers.get_or_insert_default();
        #[allow(clippy::cast_precision_loss)]
        let data = Some(bytes_of(&[branch as f32 * 10.0]));
        buffers.push(crate::schema::Buffer { data, ..crate::schema::Buffer::default() });
        let buffer = u32::try_from(buffers.len() - 1).unwrap();
        let tensors = draft.graph(branch).tensors.as_mut().unwrap();
        tensors[usize::try_from(ten).unwrap()].buffer = buffer;
        draft.operator_in(branch, B::Add, &[input, ten], &[output], None);
        draft.ends(branch, &[input], &[output]);
    }
    draft
}

#[test]
fn each_of_many_branches_is_chosen_by_its_index_and_the_last_one_by_any_other() {
    for count in [1, 2, 3, 4, 5, 9] {
        let import = import(&choice(usize::try_from(count).unwrap()));
        for index in [i32::MIN, -1, 0, 1, 2, 3, 4, 5, 8, 9, i32::MAX] {
            let chosen = if (0..count).contains(&index) { index } else { count - 1 };
            let bytes = run(&import, &[&index.to_le_bytes(), &bytes_of(&[0.5])], 4);
            let expected = f32::from(i16::try_from(chosen + 1).unwrap()) * 10.0 + 0.5;
            assert_eq!(floats_of(&bytes), [expected], "branch {index} of {count}");
        }
    }
}

/// A convolution of 3 by 3 with dilation 2 over an image of 5 by 5: groups of 2 channels, 3 filters each.
fn groups(element: T, with_filter_computed: bool) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(element, &[1, 5, 5, 4]);
    let values: Vec<i8> = (0_i16..108).map(|it| i8::try_from(it * 7 % 19 - 9).unwrap()).collect();
    let filter = if with_filter_computed {
        draft.tensor(T::Float32, &[6, 3, 3, 2])
    } else if element == T::Float32 {
        draft.floats(&[6, 3, 3, 2], &values.iter().copied().map(f32::from).collect::<Vec<_>>())
    } else {
        let bytes: Vec<u8> = values.iter().map(|it| it.cast_unsigned()).collect();
        draft.constant(element, &[6, 3, 3, 2], &bytes)
    };
    let bias = if element == T::Float32 {
        draft.floats(&[6], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    } else {
        draft.integers(&[6], &[1, 2, 3, 4, 5, 6])
    };
    let output = draft.tensor(element, &[1, 5, 5, 6]);
    if element == T::Int8 {
        draft.quantize(input, &[1.0], 0, 0);
        draft.quantize(filter, &[1.0, 1.0, 1.0, 1.0, 1.0, 0.5], 0, 0);
        draft.quantize(output, &[1.0], 0, 0);
    }
    let options = Conv2DOptions {
        padding: Padding::Same,
        stride_w: 1,
        stride_h: 1,
        dilation_w_factor: 2,
        dilation_h_factor: 2,
        ..Conv2DOptions::default()
    };
    let options = Some(BuiltinOptions::Conv2DOptions(Box::new(options)));
    draft.operator(B::Conv2d, &[input, filter, bias], &[output], options);
    let inputs = [input, filter];
    draft.ends(0, if with_filter_computed { &inputs } else { &inputs[..1] }, &[output]);
    draft
}

/// The definition: the sums over a group's channels alone.
fn sums(image: &[f32], filter: &[f32]) -> Vec<f32> {
    let mut sums = Vec::new();
    for (y, x, channel) in
        (0..5).flat_map(|y| (0..5).flat_map(move |x| (0..6).map(move |it| (y, x, it))))
    {
        #[allow(clippy::cast_precision_loss)]
        let mut sum = (channel + 1) as f32;
        for (dy, dx, depth) in
            (0..3).flat_map(|y| (0..3).flat_map(move |x| (0..2).map(move |it| (y, x, it))))
        {
            let (row, column) = (y + 2 * dy, x + 2 * dx);
            if (2..7).contains(&row) && (2..7).contains(&column) {
                let at = ((row - 2) * 5 + column - 2) * 4 + channel / 3 * 2 + depth;
                sum += image[at] * filter[((channel * 3 + dy) * 3 + dx) * 2 + depth];
            }
        }
        sums.push(sum);
    }
    sums
}

#[test]
fn groups_with_dilation_are_convolutions_of_their_own() {
    let image: Vec<f32> = (0_i16..100).map(|it| f32::from(it * 5 % 7 - 3)).collect();
    let filter: Vec<f32> = (0_i16..108).map(|it| f32::from(it * 7 % 19 - 9)).collect();
    let expected = sums(&image, &filter);

    let constant = import(&groups(T::Float32, false));
    assert_eq!(operations(&constant), [O::Split, O::Conv2d, O::Conv2d, O::Concatenation]);
    assert_eq!(floats_of(&run(&constant, &[&bytes_of(&image)], 600)), expected);
    let computed = import(&groups(T::Float32, true));
    let inputs = [bytes_of(&image), bytes_of(&filter)];
    let found = run(&computed, &[&inputs[0], &inputs[1]], 600);
    assert_eq!(floats_of(&found), expected);

    #[allow(clippy::cast_possible_truncation)]
    let bytes: Vec<u8> = image.iter().map(|it| (*it as i8).cast_unsigned()).collect();
    let found = run(&import(&groups(T::Int8, false)), &[&bytes], 150);
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let scale = if at % 6 == 5 { 0.5 } else { 1.0 };
        let expected = (expected * scale).clamp(-128.0, 127.0);
        let distance = (f32::from(found.cast_signed()) - expected).abs();
        assert!(distance <= 0.5, "element {at}: {found}, expected {expected}");
    }
}

/// An operator of two integers each with this activation behind it.
fn clamped(builtin: B, element: T, activation: A) -> Draft {
    let mut draft = Draft::new();
    let [a, b, output] = [0; 3].map(|_| draft.tensor(element, &[4]));
    let options = match builtin {
        B::Add => BuiltinOptions::AddOptions(Box::new(AddOptions {
            fused_activation_function: activation,
            ..AddOptions::default()
        })),
        B::Sub => BuiltinOptions::SubOptions(Box::new(SubOptions {
            fused_activation_function: activation,
            ..SubOptions::default()
        })),
        B::Mul => BuiltinOptions::MulOptions(Box::new(MulOptions {
            fused_activation_function: activation,
        })),
        _ => BuiltinOptions::DivOptions(Box::new(DivOptions {
            fused_activation_function: activation,
        })),
    };
    draft.operator(builtin, &[a, b], &[output], Some(options));
    draft.ends(0, &[a, b], &[output]);
    draft
}

#[test]
fn arithmetic_of_integers_is_clamped_as_its_activation_says() {
    let (a, b) = ([7_i32, -7, 1, 100], [2_i32, 3, -1, 50]);
    let results = [
        (B::Add, [9, -4, 0, 150]),
        (B::Sub, [5, -10, 2, 50]),
        (B::Mul, [14, -21, -1, 5000]),
        (B::Div, [3, -2, -1, 2]),
    ];
    let limits = [(A::Relu, 0, i32::MAX), (A::Relu6, 0, 6), (A::ReluN1To1, -1, 1)];
    for ((builtin, results), (activation, least, greatest)) in
        results.iter().flat_map(|it| limits.map(|limit| (*it, limit)))
    {
        let expected = results.map(|it: i32| it.clamp(least, greatest));
        let narrow = [a, b].map(|it| it.map(i32::to_le_bytes).concat());
        let narrow_import = import(&clamped(builtin, T::Int32, activation));
        let found = run(&narrow_import, &[&narrow[0], &narrow[1]], 16);
        assert_eq!(found, expected.map(i32::to_le_bytes).concat(), "{builtin:?} {activation:?}");
        let wide = [a, b].map(|it| it.map(|it| i64::from(it).to_le_bytes()).concat());
        let wide_import = import(&clamped(builtin, T::Int64, activation));
        let found = run(&wide_import, &[&wide[0], &wide[1]], 32);
        let expected = expected.map(|it| i64::from(it).to_le_bytes()).concat();
        assert_eq!(found, expected, "{builtin:?} {activation:?} of 64 bits");
    }
}

#[test]
fn callers_give_and_get_the_bits_of_upper_halves() {
    let mut draft = Draft::new();
    let [x, y, moved, negative, curved] = [0; 5].map(|_| draft.tensor(T::Bfloat16, &[2, 3]));
    draft.operator(B::Maximum, &[x, y], &[moved], None);
    draft.operator(B::Neg, &[moved], &[negative], None);
    draft.operator(B::Tanh, &[negative], &[curved], None);
    draft.ends(0, &[x, y], &[curved]);
    let import_of = import(&draft);
    assert_eq!(import_of.inputs[0].type_code, T::Bfloat16 as i8);
    let halves = |floats: &[f32]| -> Vec<u8> {
        floats.iter().flat_map(|it| half::bf16::from_f32(*it).to_le_bytes()).collect()
    };
    let x = [1.5, -0.25, f32::NEG_INFINITY, 3.0e38, -0.0, 1.0e-40];
    let y = [-2.0, -0.5, -1.0, f32::INFINITY, -1.0, -2.0];
    let found = run(&import_of, &[&halves(&x), &halves(&y)], 12);
    let greater: Vec<f32> =
        x.iter().zip(y).map(|(x, y)| half::bf16::from_f32(x.max(y)).to_f32()).collect();
    let expected: Vec<f32> = greater.iter().map(|it| (-it).tanh()).collect();
    assert_eq!(found, halves(&expected));

    // What goes through is the same to the bit, signs and numbers that are none included.
    let bits: [u16; 6] = [0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC1, 0x0001];
    let bytes: Vec<u8> = bits.iter().flat_map(|it| it.to_le_bytes()).collect();
    assert_eq!(run(&through(), &[&bytes], 12), bytes);
}

/// Butterflies in place, as the definition has them.
fn rotated(row: &mut [f32]) {
    let mut step = 1;
    while step < row.len() {
        for begin in (0..row.len()).step_by(2 * step) {
            for at in begin..begin + step {
                (row[at], row[at + step]) = (row[at] + row[at + step], row[at] - row[at + step]);
            }
        }
        step *= 2;
    }
    #[allow(clippy::cast_precision_loss)]
    let scale = 1.0 / (row.len() as f32).sqrt();
    row.iter_mut().for_each(|it| *it *= scale);
}

#[test]
fn a_hadamard_rotation_is_its_definition() {
    let rotation = |shape: &[i32], size: i32| {
        let mut draft = Draft::new();
        let input = draft.tensor(T::Float32, shape);
        let output = draft.tensor(T::Float32, shape);
        draft.custom(
            "aeq.hadamard_rotation",
            &[input],
            &[output],
            &numbers(&[("hadamard_size", size)]),
        );
        draft.ends(0, &[input], &[output]);
        draft
    };
    // One factor and several, of which the last is smaller; pieces of a row.
    for (shape, size) in [
        (&[2, 1][..], 1),
        (&[1, 2], 2),
        (&[2, 3, 16], 8),
        (&[3, 64], 64),
        (&[2, 128], 128),
        (&[1, 2, 8192], 8192),
    ] {
        let count = shape.iter().product::<i32>();
        let values: Vec<f32> =
            (0..count).map(|it| f32::from(i16::try_from(it * 7 % 23).unwrap()) - 11.0).collect();
        let found = run(&import(&rotation(shape, size)), &[&bytes_of(&values)], 4 * values.len());
        let mut expected = values;
        expected.chunks_exact_mut(usize::try_from(size).unwrap()).for_each(rotated);
        for (found, expected) in floats_of(&found).iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-3, "{size}: {found}, expected {expected}");
        }
    }
    let expected = "its option \"hadamard_size\" is 12, expected a power of 2 up to 1048576";
    assert_eq!(reasons(&rotation(&[1, 12], 12)), [expected]);
    let expected = "its input is [1, 12], expected 2 or 3 axes, the last one in pieces of 8";
    assert_eq!(reasons(&rotation(&[1, 12], 8)), [expected]);
}

/// A graph whose input is its output.
fn through() -> Import {
    let mut draft = Draft::new();
    let x = draft.tensor(T::Bfloat16, &[6]);
    draft.ends(0, &[x], &[x]);
    import(&draft)
}

/// QUANTIZE of `[2, 2]` floats with a scale for each column, then this operator.
fn by_channel(zero_point: i64, then: B) -> Draft {
    let mut draft = Draft::new();
    let input = draft.tensor(T::Float32, &[2, 2]);
    let stored = draft.tensor(T::Int8, &[2, 2]);
    draft.quantize(stored, &[0.5, 2.0], zero_point, 1);
    let output = draft.tensor(if then == B::Dequantize { T::Float32 } else { T::Int8 }, &[2, 2]);
    draft.operator(B::Quantize, &[input], &[stored], None);
    draft.operator(then, &[stored], &[output], None);
    draft.ends(0, &[input], &[output]);
    draft
}

#[test]
fn computed_tensors_have_a_scale_for_each_channel() {
    // Of halves the one away from 0, before the zero point is added; beyond the type the last one.
    let values = bytes_of(&[0.25, -1.0, -0.25, 900.0]);
    let found = run(&import(&by_channel(3, B::Dequantize)), &[&values], 16);
    assert_eq!(floats_of(&found), [0.5, -2.0, -0.5, 2.0 * (127.0 - 3.0)]);
    let found = run(&import(&by_channel(0, B::Dequantize)), &[&values], 16);
    assert_eq!(floats_of(&found), [0.5, -2.0, -0.5, 254.0]);
    let expected =
        "\"tensor 1\" is computed with a scale for each channel, which this operator does not know";
    assert_eq!(reasons(&by_channel(0, B::Relu)), [expected]);
}

/// `-128, ..., 127` in another order.
fn bytes_in_disorder(count: usize) -> Vec<i8> {
    (0..count).map(|it| (it * 151 + it / 7 * 29).to_le_bytes()[0].cast_signed()).collect()
}

#[test]
fn sums_of_integers_of_8_bits_are_exact_however_many_there_are() {
    for (columns, zeros) in [(4, [0, 0]), (1024, [0, 0]), (1025, [0, 0]), (700, [-128, 127])] {
        for adjoint in [[false, false], [true, true]] {
            let (rows, units) = (2, 3);
            let mut draft = Draft::new();
            let [length, rows_, units_] =
                [columns, rows, units].map(|it| i32::try_from(it).unwrap());
            let of_x = if adjoint[0] { [1, length, rows_] } else { [1, rows_, length] };
            let of_y = if adjoint[1] { [1, units_, length] } else { [1, length, units_] };
            let factors = [of_x, of_y].map(|shape| draft.tensor(T::Int8, &shape));
            for (factor, zero) in factors.into_iter().zip(zeros) {
                if zero != 0 {
                    draft.quantize(factor, &[0.5], zero, 0);
                }
            }
            let output = draft.tensor(T::Int32, &[1, rows_, units_]);
            let options =
                BatchMatMulOptions { adj_x: adjoint[0], adj_y: adjoint[1], ..Default::default() };
            let options = Some(BuiltinOptions::BatchMatMulOptions(Box::new(options)));
            draft.operator(B::BatchMatmul, &factors, &[output], options);
            draft.ends(0, &factors, &[output]);

            // One row and one column are as far from zero as they can be.
            let mut x = bytes_in_disorder(rows * columns);
            let mut y = bytes_in_disorder(columns * units);
            let at_x = |row: usize, at: usize| {
                if adjoint[0] { at * rows + row } else { row * columns + at }
            };
            let at_y = |at: usize, unit: usize| {
                if adjoint[1] { unit * columns + at } else { at * units + unit }
            };
            for at in 0..columns {
                x[at_x(0, at)] = if zeros[0] < 0 { 127 } else { -128 };
                y[at_y(at, 0)] = -128;
            }
            let mut expected = Vec::new();
            for row in 0..rows {
                for unit in 0..units {
                    let products = (0..columns).map(|at| {
                        (i64::from(x[at_x(row, at)]) - zeros[0])
                            * (i64::from(y[at_y(at, unit)]) - zeros[1])
                    });
                    expected.push(i32::try_from(products.sum::<i64>()).unwrap());
                }
            }
            let [x, y] =
                [x, y].map(|all| all.iter().map(|it| it.to_le_bytes()[0]).collect::<Vec<u8>>());
            let bytes = run(&import(&draft), &[&x, &y], rows * units * 4);
            let found: Vec<i32> =
                bytes.as_chunks().0.iter().map(|it| i32::from_le_bytes(*it)).collect();
            assert_eq!(found, expected, "{columns} columns, {zeros:?}, {adjoint:?}");
        }
    }
}

/// IF of a truth value and floats: the first ones of them, or all, as an output of which the file says no rank.
fn first_ones_or_all(then: &[i32], otherwise: &[i32]) -> Draft {
    let mut draft = Draft::new();
    let condition = draft.tensor(T::Bool, &[1]);
    let input = draft.tensor(T::Float32, &[6]);
    let output = draft.tensor(T::Float32, &[]);
    draft.tensor_mut(output).has_rank = false;
    let options = crate::schema::IfOptions { then_subgraph_index: 1, else_subgraph_index: 2 };
    let options = Some(BuiltinOptions::IfOptions(Box::new(options)));
    draft.operator(B::If, &[condition, input], &[output], options);
    draft.ends(0, &[condition, input], &[output]);
    for (branch, shape) in [(1, then), (2, otherwise)] {
        let input = draft.tensor_in(branch, T::Float32, &[6]);
        let begin = constant_in(&mut draft, branch, T::Int32, &[1], bytes_of_integers(&[0]));
        let count: i32 = shape.iter().product();
        let size = constant_in(&mut draft, branch, T::Int32, &[1], bytes_of_integers(&[count]));
        let cut = draft.tensor_in(branch, T::Float32, &[count]);
        draft.operator_in(branch, B::Slice, &[input, begin, size], &[cut], None);
        let lengths = [i32::try_from(shape.len()).unwrap()];
        let lengths = constant_in(&mut draft, branch, T::Int32, &lengths, bytes_of_integers(shape));
        let shaped = draft.tensor_in(branch, T::Float32, shape);
        draft.operator_in(branch, B::Reshape, &[cut, lengths], &[shaped], None);
        draft.ends(branch, &[input], &[shaped]);
    }
    draft
}

fn bytes_of_integers(integers: &[i32]) -> Vec<u8> {
    integers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

#[test]
fn branches_may_give_results_of_different_shapes() {
    let floats = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    for (then, otherwise, expected) in
        [(&[2, 2][..], &[3, 2][..], &[0, 2][..]), (&[1, 3], &[5], &[])]
    {
        let import = import(&first_ones_or_all(then, otherwise));
        let main = &import.model.main;
        assert_eq!(main.operands[main.outputs[0] as usize].dimensions, expected);
        for (truth, shape) in [(1, then), (0, otherwise)] {
            let count = usize::try_from(shape.iter().product::<i32>()).unwrap();
            let bytes = run(&import, &[&[truth], &bytes_of(&floats)], count * 4);
            assert_eq!(floats_of(&bytes), floats[..count], "{then:?}, {otherwise:?}");
        }
    }
}
