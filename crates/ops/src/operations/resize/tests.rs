//! Tests of RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR.

use super::*;
use crate::operations::testing::{Example, assert_close, tensor};
use OperationType::{ResizeBilinear, ResizeNearestNeighbor};
use nnhal_hal::OperandSpec;
use proptest::prelude::*;

const BOTH: [OperationType; 2] = [ResizeBilinear, ResizeNearestNeighbor];

/// To a height and a width, with the flags NCHW, align corners, half pixel centers.
fn example(
    operation: OperationType,
    input: OperandSpec,
    elements: &[f64],
    [height, width]: [i32; 2],
    flags: &[bool],
) -> Example {
    let output = OperandSpec { dimensions: vec![], ..input.clone() };
    let call = Example::new(operation).input(input, elements).int32s([width, height]);
    flags.iter().fold(call, |call, flag| call.bool(*flag)).output(output)
}

fn by_scale(
    operation: OperationType,
    input: OperandSpec,
    elements: &[f64],
    [height, width]: [f64; 2],
) -> Example {
    let float16 = input.operand_type == TensorFloat16;
    let scalar = OperandSpec::scalar(if float16 { Float16 } else { Float32 });
    let output = OperandSpec { dimensions: vec![], ..input.clone() };
    let call = Example::new(operation).input(input, elements);
    call.input(scalar.clone(), &[width]).input(scalar, &[height]).bool(false).output(output)
}

/// A row of pixels, resized to a width.
fn row(operation: OperationType, pixels: &[f64], width: i32, flags: &[bool]) -> Vec<f64> {
    let input = tensor(TensorFloat32, [1, 1, u32::try_from(pixels.len()).unwrap(), 1]);
    example(operation, input, pixels, [1, width], flags).result().1
}

#[test]
fn model_25_types_forms_and_flags_decide_the_version() {
    use HalVersion::{V1_0, V1_2, V1_3};
    let call = |operation, operand_type, flags: &[bool]| {
        example(operation, tensor(operand_type, [1; 4]), &[0.0], [1, 1], flags)
    };
    for (operand_type, since) in [
        (TensorFloat32, V1_0),
        (TensorFloat16, V1_2),
        (TensorQuant8Asymm, V1_2),
        (TensorQuant8AsymmSigned, V1_3),
    ] {
        let expect = |operation, flags: &[bool], version: HalVersion| {
            let call = call(operation, operand_type, flags);
            assert_eq!(call.since(), Ok(since.max(version)), "{operation} {operand_type}");
            assert!(call.run().is_ok());
        };
        expect(ResizeBilinear, &[], V1_0);
        expect(ResizeNearestNeighbor, &[false], V1_2);
        for operation in BOTH {
            expect(operation, &[true], V1_2);
            expect(operation, &[false, true], V1_3);
            expect(operation, &[false, false, true], V1_3);
            let scaled = by_scale(operation, tensor(operand_type, [1; 4]), &[0.0], [1.0, 1.0]);
            assert_eq!(scaled.since(), Ok(since.max(V1_2)), "{operation} {operand_type}");
            assert!(scaled.run().is_ok());
        }
    }
    assert_eq!(
        call(ResizeNearestNeighbor, TensorFloat32, &[]).refusal(),
        "RESIZE_NEAREST_NEIGHBOR: number of arguments of the operation is 3 inputs and 1 outputs, \
         expected 4 or 5 or 6 inputs and 1 outputs"
    );
    assert!(call(ResizeBilinear, OperandType::TensorInt32, &[]).since().is_err());
}

#[test]
fn wrong_arguments_are_refused() {
    let image = tensor(TensorFloat32, [1, 2, 2, 1]);
    let good = example(ResizeBilinear, image.clone(), &[0.0; 4], [3, 3], &[false; 3]);
    assert!(good.run().is_ok());
    assert_eq!(
        good.clone().with_input(0, tensor(TensorFloat32, [2, 2, 1]), &[0.0; 4]).refusal(),
        "RESIZE_BILINEAR: rank of input 0 (input) is 3, expected 4"
    );
    assert_eq!(
        good.clone().with_input(0, tensor(TensorFloat32, [1, 0, 2, 1]), &[]).refusal(),
        "RESIZE_BILINEAR: shape of input 0 (input) is [1, 0, 2, 1], expected no length of 0 but \
         the batch's"
    );
    assert_eq!(
        good.clone().with_int32(1, 0).refusal(),
        "RESIZE_BILINEAR: value of input 1 (width) is 0, expected above 0"
    );
    assert_eq!(
        good.with_int32(2, -7).refusal(),
        "RESIZE_BILINEAR: value of input 2 (height) is -7, expected 0 or more"
    );
    assert_eq!(
        example(ResizeBilinear, image.clone(), &[0.0; 4], [3, 3], &[false, true, true]).refusal(),
        "RESIZE_BILINEAR: value of input 5 (half pixel centers) is true, expected false where \
         corners are aligned"
    );
    let scaled = |scale| by_scale(ResizeBilinear, image.clone(), &[0.0; 4], [scale, 1.0]);
    for (scale, found) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN")] {
        assert_eq!(
            scaled(scale).refusal(),
            format!(
                "RESIZE_BILINEAR: value of input 2 (height scale) is {found}, expected above 0"
            )
        );
    }
    for (scale, found) in [(0.49, "0.49"), (f64::INFINITY, "inf")] {
        assert_eq!(
            scaled(scale).refusal(),
            format!(
                "RESIZE_BILINEAR: value of input 2 (height scale) is {found} for a length of 2, \
                 expected a product from 1 to 2147483647"
            )
        );
    }
    let quantized = example(ResizeBilinear, tensor(TensorQuant8Asymm, [1; 4]), &[0.0], [1, 1], &[]);
    assert_eq!(
        quantized.with_output(OperandSpec::tensor_quant8_asymm([], 0.5, 0)).refusal(),
        "RESIZE_BILINEAR: zero point of output 0 (output) is 0, expected 128 as input 0 (input)"
    );
}

#[test]
fn results_too_large_for_any_memory_are_refused() {
    let image = tensor(TensorFloat32, [1, 1, 1, 1]);
    for operation in BOTH {
        let call = example(operation, image.clone(), &[0.0], [i32::MAX, i32::MAX], &[false]);
        assert_eq!(
            call.refusal(),
            format!(
                "{operation}: shape of output 0 (output) is [1, 2147483647, 2147483647, 1], \
                 expected at most 2^32 - 1 bytes"
            )
        );
    }
}

#[test]
fn shapes_are_inferred_as_far_as_they_are_known() {
    let shapes = |call: Example, dimensions: &[u32]| {
        call.with_input_to_come(0, tensor(TensorFloat32, dimensions)).shapes()
    };
    let one = || tensor(TensorFloat32, [1; 4]);
    let by_size = || example(ResizeBilinear, one(), &[0.0], [3, 5], &[false]);
    let expected = Shape::new([None, Some(3), Some(5), Some(2)]);
    assert_eq!(shapes(by_size(), &[0, 7, 0, 2]), Ok(vec![expected]));
    let expected = Shape::new([None, Some(3), Some(5), None]);
    assert_eq!(shapes(by_size(), &[]), Ok(vec![expected]));
    let nchw = example(ResizeBilinear, one(), &[0.0], [3, 5], &[true]);
    assert_eq!(shapes(nchw, &[1, 2, 7, 7]), Ok(vec![Shape::known([1, 2, 3, 5])]));
    let scaled = || by_scale(ResizeNearestNeighbor, one(), &[0.0], [1.5, 0.5]);
    let expected = Shape::new([Some(1), Some(4), None, Some(2)]);
    assert_eq!(shapes(scaled(), &[1, 3, 0, 2]), Ok(vec![expected]));
}

#[test]
fn scaled_lengths_are_rounded_as_float32() {
    // 0.7 as a float32 is below 7/10, but 10 times that rounds to 7.
    let input = tensor(TensorFloat32, [1, 10, 1, 1]);
    let call = by_scale(ResizeNearestNeighbor, input, &[0.0; 10], [f64::from(0.7_f32), 2.9]);
    assert_eq!(call.result().0, [1, 7, 2, 1]);
}

#[test]
fn no_batches_stay_none() {
    for operation in BOTH {
        let call = example(operation, tensor(TensorFloat32, [0, 2, 2, 1]), &[], [3, 1], &[false]);
        assert_eq!(call.result(), (vec![0, 3, 1, 1], vec![]));
    }
}

#[test]
fn bilinear_rows_by_hand() {
    // Positions 0, 1/2, 1, 3/2: behind the last pixel there is nothing to mix with.
    assert_eq!(row(ResizeBilinear, &[1.0, 3.0], 4, &[]), [1.0, 2.0, 3.0, 3.0]);
    // Positions 0, 1/3, 2/3, 1.
    let aligned = row(ResizeBilinear, &[1.0, 4.0], 4, &[false, true]);
    assert_close(&aligned, &[1.0, 2.0, 3.0, 4.0], 1e-6);
    // Positions -1/4, 1/4, 3/4, 5/4.
    let centered = row(ResizeBilinear, &[1.0, 5.0], 4, &[false, false, true]);
    assert_eq!(centered, [1.0, 2.0, 4.0, 5.0]);
    // Positions 0, 2; 0, 3; 1/2, 5/2.
    let four = [1.0, 2.0, 4.0, 8.0];
    assert_eq!(row(ResizeBilinear, &four, 2, &[]), [1.0, 4.0]);
    assert_eq!(row(ResizeBilinear, &four, 2, &[false, true]), [1.0, 8.0]);
    assert_eq!(row(ResizeBilinear, &four, 2, &[false, false, true]), [1.5, 6.0]);
    // A single output has no second corner to align: position 0.
    assert_eq!(row(ResizeBilinear, &four, 1, &[false, true]), [1.0]);
}

#[test]
fn nearest_rows_by_hand() {
    let nearest =
        |pixels: &[f64], width, flags: &[bool]| row(ResizeNearestNeighbor, pixels, width, flags);
    let three = [1.0, 2.0, 3.0];
    // Positions 0, 3/5, 6/5, 9/5, 12/5, cut off.
    assert_eq!(nearest(&three, 5, &[false]), [1.0, 1.0, 2.0, 2.0, 3.0]);
    // Positions 0, 1/2, 1, 3/2, 2, rounded, halves up.
    assert_eq!(nearest(&three, 5, &[false, true]), [1.0, 2.0, 2.0, 3.0, 3.0]);
    // Positions 3/4, 9/4, cut off.
    assert_eq!(nearest(&three, 2, &[false, false, true]), [1.0, 3.0]);
    assert_eq!(nearest(&three, 2, &[false]), [1.0, 2.0]);
}

#[test]
fn height_and_width_are_distinguished_and_channels_kept() {
    let input = tensor(TensorFloat16, [1, 1, 2, 2]);
    let elements = [1.0, 10.0, 3.0, 30.0];
    let call = example(ResizeBilinear, input, &elements, [2, 4], &[]);
    let row = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0, 3.0, 30.0];
    assert_eq!(call.result(), (vec![1, 2, 4, 2], [row, row].concat()));
}

#[test]
fn an_infinite_pixel_does_not_touch_those_it_has_no_weight_in() {
    let found = row(ResizeBilinear, &[1.0, f64::INFINITY], 2, &[]);
    assert_eq!(found, [1.0, f64::INFINITY]);
}

#[test]
fn stored_halves_go_up_whether_signed_or_not() {
    for (operand_type, pixels, expected) in [
        (TensorQuant8Asymm, [125.0, 128.0], [125.0, 127.0, 128.0, 128.0]),
        (TensorQuant8AsymmSigned, [-3.0, 0.0], [-3.0, -1.0, 0.0, 0.0]),
    ] {
        let input = tensor(operand_type, [1, 1, 2, 1]);
        let found = example(ResizeBilinear, input, &pixels, [1, 4], &[]).result().1;
        assert_eq!(found, expected);
    }
}

fn images() -> impl Strategy<Value = ([u32; 4], Vec<i32>, [i32; 2], Vec<bool>)> {
    let lengths = [1..3_u32, 1..5, 1..5, 1..3];
    let flags =
        prop::sample::select(vec![vec![false, false], vec![true, false], vec![false, true]]);
    (lengths, flags, [1..8_i32, 1..8]).prop_flat_map(|(lengths, flags, size)| {
        let count = lengths.iter().product::<u32>() as usize;
        let elements = prop::collection::vec(-100..100_i32, count);
        (Just(lengths), elements, Just(size), Just(flags))
    })
}

proptest! {
    #[test]
    fn nchw_is_nhwc_transposed(
        (lengths, elements, size, flags) in images(),
        operation in prop::sample::select(BOTH.to_vec()),
    ) {
        let elements: Vec<f64> = elements.into_iter().map(f64::from).collect();
        let transposed = |elements: Vec<f64>, lengths: [u32; 4]| {
            let lengths = lengths.map(|length| length as usize);
            let call = Call::new(ResizeBilinear, [], []);
            Layout::Nchw.elements_from_nhwc(&call, elements, lengths).unwrap()
        };
        let flags = |is_nchw| [vec![is_nchw], flags.clone()].concat();
        let input = tensor(TensorFloat32, lengths);
        let nhwc = example(operation, input, &elements, size, &flags(false)).result();
        let input = tensor(TensorFloat32, Layout::Nchw.from_nhwc(lengths));
        let elements = transposed(elements, lengths);
        let nchw = example(operation, input, &elements, size, &flags(true)).result();
        let [a, b, c, d] = nhwc.0[..] else { panic!() };
        prop_assert_eq!(nchw.0, Layout::Nchw.from_nhwc([a, b, c, d]));
        prop_assert_eq!(nchw.1, transposed(nhwc.1, [a, b, c, d]));
    }

    #[test]
    fn stored_values_are_the_steps_nearest_to_the_real_ones(
        (lengths, elements, size, flags) in images(),
    ) {
        let elements: Vec<f64> = elements.into_iter().map(f64::from).collect();
        let flags = [vec![false], flags].concat();
        let result = |operand_type| {
            example(ResizeBilinear, tensor(operand_type, lengths), &elements, size, &flags).result().1
        };
        for (found, exact) in result(TensorQuant8AsymmSigned).iter().zip(result(TensorFloat32)) {
            prop_assert!((found - exact).abs() < 0.501, "{found} for {exact}");
        }
    }

    #[test]
    fn the_same_size_changes_nothing(
        (lengths, elements, _, flags) in images(),
        operation in prop::sample::select(BOTH.to_vec()),
    ) {
        let elements: Vec<f64> = elements.into_iter().map(f64::from).collect();
        let size = [lengths[1], lengths[2]].map(|length| i32::try_from(length).unwrap());
        let flags = [vec![false], flags].concat();
        let found = example(operation, tensor(TensorFloat32, lengths), &elements, size, &flags);
        prop_assert_eq!(found.result(), (lengths.to_vec(), elements));
    }
}
