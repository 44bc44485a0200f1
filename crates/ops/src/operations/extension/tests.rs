//! Values by hand of the extension's operations.

use crate::extension::{
    ExtensionOperation as E, TENSOR_COMPLEX64, TENSOR_INT64, TENSOR_UINT16, TENSOR_UINT32,
    TENSOR_UINT64,
};
use crate::operations::testing::{Example, assert_close, tensor};
use OperandType::{
    TensorBool8, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{OperandSpec, OperandType};

fn on(operation: E) -> Example {
    Example::new(operation.operation_type())
}

fn vector(call: Example, operand_type: OperandType, elements: &[f64]) -> Example {
    let length = u32::try_from(elements.len()).unwrap();
    call.input(tensor(operand_type, [length]), elements)
}

fn integers(call: Example, elements: &[i32]) -> Example {
    let elements: Vec<f64> = elements.iter().copied().map(f64::from).collect();
    vector(call, TensorInt32, &elements)
}

/// What becomes of two vectors of a type.
fn of_two(operation: E, operand_type: OperandType, a: &[f64], b: &[f64]) -> Vec<f64> {
    let call = vector(vector(on(operation), operand_type, a), operand_type, b);
    call.output(tensor(operand_type, [])).result().1
}

#[test]
fn integers_of_64_bits_have_all_of_them() {
    let far = f64::from(1 << 30) * 1024.0;
    let call = vector(vector(on(E::Add), TENSOR_INT64, &[far, -far]), TENSOR_INT64, &[1.0, -1.0]);
    let sum = call.int32s([0]).output(tensor(TENSOR_INT64, []));
    assert_eq!(sum.result().1, [far + 1.0, -far - 1.0]);
    assert_eq!(of_two(E::Maximum, TENSOR_INT64, &[far], &[far - 1.0]), [far]);
    let less = vector(vector(on(E::Less), TENSOR_INT64, &[far]), TENSOR_INT64, &[1.0]);
    assert_eq!(less.output(tensor(TensorBool8, [])).result().1, [0.0]);
    let sum = on(E::ReduceSum).input(tensor(TENSOR_INT64, [3]), &[far, far, -1.0]);
    let sum = integers(sum, &[0]).bool(false).output(tensor(TENSOR_INT64, []));
    assert_eq!(sum.result(), (vec![1], vec![2.0 * far - 1.0]));
}

#[test]
fn sums_of_32_bits_wrap_at_32_bits() {
    let most = f64::from(u32::MAX);
    let call = vector(vector(on(E::Add), TENSOR_UINT32, &[most]), TENSOR_UINT32, &[2.0]);
    assert_eq!(call.int32s([0]).output(tensor(TENSOR_UINT32, [])).result().1, [1.0]);
}

#[test]
fn quotients_by_hand() {
    let (a, b) = ([-7.0, 7.0, -7.0, 7.0, 5.0], [2.0, 2.0, -2.0, -2.0, 0.0]);
    for operand_type in [TensorInt32, TENSOR_INT64, TensorQuant8AsymmSigned] {
        assert_eq!(of_two(E::Div, operand_type, &a, &b), [-3.0, 3.0, 3.0, -3.0, 0.0]);
        assert_eq!(of_two(E::FloorDiv, operand_type, &a, &b), [-4.0, 3.0, 3.0, -4.0, 0.0]);
        assert_eq!(of_two(E::FloorMod, operand_type, &a, &b), [1.0, 1.0, -1.0, -1.0, 0.0]);
    }
    assert_eq!(of_two(E::FloorMod, TensorFloat32, &[-7.5, 7.5], &[2.0, -2.0]), [0.5, -0.5]);
    // The one quotient that the type does not hold.
    let least = f64::from(i32::MIN);
    assert_eq!(of_two(E::Div, TensorInt32, &[least], &[-1.0]), [least]);
    assert_eq!(of_two(E::Div, TENSOR_INT64, &[i64::MIN as f64], &[-1.0]), [i64::MIN as f64]);
}

#[test]
fn powers_and_bits_by_hand() {
    let (bases, exponents) = ([2.0, -3.0, 5.0, -1.0, 0.0], [10.0, 3.0, 0.0, -3.0, -1.0]);
    assert_eq!(of_two(E::Pow, TensorInt32, &bases, &exponents), [1024.0, -27.0, 1.0, -1.0, 0.0]);
    assert_eq!(of_two(E::Pow, TensorInt32, &[2.0], &[40.0]), [0.0]);
    assert_eq!(of_two(E::Pow, TENSOR_INT64, &[2.0], &[40.0]), [f64::from(1 << 30) * 1024.0]);
    assert_eq!(of_two(E::BitwiseXor, TensorInt32, &[5.0, -1.0], &[3.0, 1.0]), [6.0, -2.0]);
    let (numbers, by) = ([-8.0, 8.0, 8.0, -8.0], [1.0, 2.0, -5.0, 100.0]);
    assert_eq!(of_two(E::RightShift, TensorInt32, &numbers, &by), [-4.0, 2.0, 8.0, -1.0]);
    assert_eq!(of_two(E::RightShift, TensorQuant8Asymm, &[200.0], &[3.0]), [25.0]);
    assert_eq!(
        of_two(E::LeftShift, TensorInt32, &[-3.0, 3.0], &[2.0, 31.0]),
        [-12.0, -2f64.powi(31)]
    );
    assert_eq!(of_two(E::LeftShift, TensorInt32, &[1.0, 1.0], &[32.0, -1.0]), [0.0, 0.0]);
    assert_eq!(of_two(E::LeftShift, TensorQuant8Asymm, &[200.0], &[1.0]), [144.0]);
    assert_eq!(of_two(E::BitwiseAnd, TensorInt32, &[6.0, -4.0], &[3.0, 7.0]), [2.0, 4.0]);
}

#[test]
fn functions_of_one_number_by_hand() {
    let of = |operation, numbers: &[f64]| {
        let call = vector(on(operation), TensorFloat32, numbers);
        call.output(tensor(TensorFloat32, [])).result().1
    };
    assert_eq!(of(E::Ceil, &[-1.5, 1.2, 3.0]), [-1.0, 2.0, 3.0]);
    assert_eq!(of(E::Round, &[0.5, 1.5, 2.5, -0.5, 1.4]), [0.0, 2.0, 2.0, -0.0, 1.0]);
    assert_eq!(of(E::Sign, &[-3.0, 0.0, 9.0]), [-1.0, 0.0, 1.0]);
    assert_close(&of(E::Cos, &[0.0, std::f64::consts::PI]), &[1.0, -1.0], 1e-7);
    // erf(1 / sqrt(2)) = 0.68268949...
    assert_close(&of(E::Gelu, &[0.0, 1.0, -1.0]), &[0.0, 0.841_344_75, -0.158_655_25], 1e-7);
    assert_close(
        &of(E::Erf, &[0.5, -1.0, 1e-6]),
        &[0.520_499_9, -0.842_700_8, 1.128_379_2e-6],
        1e-7,
    );
    assert_eq!(of(E::Erf, &[f64::NEG_INFINITY, f64::INFINITY, 0.0]), [-1.0, 1.0, 0.0]);
    assert_eq!(of(E::Gelu, &[f64::NEG_INFINITY, f64::INFINITY]), [0.0, f64::INFINITY]);
    assert_close(
        &of_two(E::Atan2, TensorFloat32, &[1.0, -1.0], &[0.0, -1.0]),
        &[1.570_796_4, -2.356_194_5],
        1e-6,
    );
}

#[test]
fn casts_wrap_or_saturate() {
    let cast = |from, elements: &[f64], to, saturates| {
        let call = vector(on(E::Cast), from, elements).bool(saturates);
        call.output(tensor(to, [])).result().1
    };
    let far = f64::from(1 << 30) * 16.0 + 5.0;
    assert_eq!(cast(TENSOR_INT64, &[far, -far], TensorInt32, false), [5.0, -5.0]);
    let limits = [f64::from(i32::MAX), f64::from(i32::MIN)];
    assert_eq!(cast(TENSOR_INT64, &[far, -far], TensorInt32, true), limits);
    assert_eq!(cast(TensorInt32, &[300.0, -1.0], TensorQuant8Asymm, false), [44.0, 255.0]);
    assert_eq!(cast(TensorInt32, &[300.0, -1.0], TENSOR_UINT16, true), [300.0, 0.0]);
    assert_eq!(
        cast(TensorFloat32, &[-1.9, 1e30, f64::NAN], TensorInt32, false),
        [-1.0, limits[0], 0.0]
    );
    assert_eq!(cast(TensorFloat32, &[0.0, -0.5], TensorBool8, false), [0.0, 1.0]);
    assert_eq!(cast(TENSOR_COMPLEX64, &[2.5], TensorFloat32, false), [2.5]);
}

#[test]
fn cumulative_sums_by_hand() {
    let sums = |exclusive, reverse| {
        let call =
            on(E::Cumsum).input(tensor(TensorInt32, [2, 3]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let call = call.int32s([-1]).bool(exclusive).bool(reverse);
        call.output(tensor(TensorInt32, [])).result().1
    };
    assert_eq!(sums(false, false), [1.0, 3.0, 6.0, 4.0, 9.0, 15.0]);
    assert_eq!(sums(true, false), [0.0, 1.0, 3.0, 0.0, 4.0, 9.0]);
    assert_eq!(sums(false, true), [6.0, 5.0, 3.0, 15.0, 11.0, 6.0]);
    assert_eq!(sums(true, true), [5.0, 3.0, 0.0, 11.0, 6.0, 0.0]);
}

#[test]
fn parts_are_found_by_their_indexes() {
    let gathered = |indexes: &[f64], of: [u32; 2]| {
        let call = on(E::GatherNd).input(tensor(TensorFloat32, [2, 2]), &[1.0, 2.0, 3.0, 4.0]);
        call.input(tensor(TensorInt32, of), indexes).output(tensor(TensorFloat32, []))
    };
    assert_eq!(gathered(&[1.0, 0.0], [2, 1]).result(), (vec![2, 2], vec![3.0, 4.0, 1.0, 2.0]));
    assert_eq!(gathered(&[1.0, 0.0], [1, 2]).result(), (vec![1], vec![3.0]));
    for index in [2.0, -1.0] {
        assert!(gathered(&[index, 0.0], [2, 1]).run().is_err());
    }
    assert!(gathered(&[0.0; 3], [1, 3]).run().is_err(), "three axes of two");
}

#[test]
fn what_is_scattered_to_a_place_is_added() {
    let scattered = |indexes: &[f64], shape: &[i32]| {
        let call = on(E::ScatterNd).input(tensor(TensorInt32, [3, 1]), indexes);
        let call = call.input(tensor(TensorFloat32, [3]), &[1.0, 2.0, 4.0]);
        integers(call, shape).output(tensor(TensorFloat32, []))
    };
    assert_eq!(scattered(&[3.0, 0.0, 3.0], &[4]).result(), (vec![4], vec![2.0, 0.0, 0.0, 5.0]));
    assert!(scattered(&[4.0, 0.0, 3.0], &[4]).run().is_err());
    assert!(scattered(&[-1.0, 0.0, 3.0], &[4]).run().is_err());
    assert!(scattered(&[0.0; 3], &[-4]).run().is_err());
    assert!(scattered(&[0.0; 3], &[4, 2]).run().is_err(), "rows of two elements");
    // As many bytes as no tensor may have.
    assert!(scattered(&[0.0; 3], &[i32::MAX]).run().is_err());
}

#[test]
fn windows_see_their_elements_in_order() {
    let reduced = |function, window: [i32; 2], strides: [i32; 2], dilations: [i32; 2]| {
        let numbers: Vec<f64> = (1..=12).map(f64::from).collect();
        let call = on(E::ReduceWindow).input(tensor(TensorInt32, [3, 4]), &numbers);
        let call = call.input(tensor(TensorInt32, [1]), &[2.0]);
        let call = integers(integers(integers(call, &window), &strides), &dilations);
        call.int32s([function]).output(tensor(TensorInt32, []))
    };
    let plain = |function| reduced(function, [2, 2], [1, 2], [1, 1]).result();
    assert_eq!(plain(0), (vec![2, 2], vec![16.0, 24.0, 32.0, 40.0]));
    assert_eq!(plain(1), (vec![2, 2], vec![120.0, 1344.0, 5400.0, 14784.0]));
    assert_eq!(plain(2), (vec![2, 2], vec![1.0, 2.0, 2.0, 2.0]));
    assert_eq!(plain(3), (vec![2, 2], vec![6.0, 8.0, 10.0, 12.0]));
    assert_eq!(plain(4), (vec![2, 2], vec![1.0; 4]));
    // Elements 1, 4 of rows 1 and 3.
    let dilated = reduced(0, [2, 2], [1, 1], [2, 3]).result();
    assert_eq!(dilated, (vec![1, 1], vec![2.0 + 1.0 + 4.0 + 9.0 + 12.0]));
    assert_eq!(reduced(0, [4, 1], [1, 1], [1, 1]).result(), (vec![0, 4], vec![]));
    assert_eq!(reduced(5, [1, 1], [i32::MAX, i32::MAX], [i32::MAX, 7]).result().0, [1, 1]);
    assert!(reduced(6, [1, 1], [1, 1], [1, 1]).run().is_err());
    for zero in [[0, 1], [1, -1]] {
        assert!(reduced(0, zero, [1, 1], [1, 1]).run().is_err());
        assert!(reduced(0, [1, 1], zero, [1, 1]).run().is_err());
        assert!(reduced(0, [1, 1], [1, 1], zero).run().is_err());
    }
}

#[test]
fn sums_of_floats_in_windows_are_in_order() {
    let call = on(E::ReduceWindow).input(tensor(TensorFloat32, [3]), &[1e8, 1.0, -1e8]);
    let call = call.input(tensor(TensorFloat32, [1]), &[0.0]);
    let call = integers(integers(integers(call, &[3]), &[1]), &[1]).int32s([0]);
    assert_eq!(call.output(tensor(TensorFloat32, [])).result(), (vec![1], vec![0.0]));
}

#[test]
fn what_is_dense_has_the_values_at_their_indexes() {
    let dense = |indexes: &[f64], values: &[f64]| {
        let call = on(E::SparseToDense).input(tensor(TensorInt32, [2, 2]), indexes);
        let count = u32::try_from(values.len()).unwrap();
        let call = integers(call, &[2, 3]).input(tensor(TensorFloat32, [count]), values);
        call.input(tensor(TensorFloat32, [1]), &[-1.0]).output(tensor(TensorFloat32, []))
    };
    let places = [0.0, 2.0, 1.0, 0.0];
    let expected = vec![-1.0, -1.0, 5.0, 7.0, -1.0, -1.0];
    assert_eq!(dense(&places, &[5.0, 7.0]).result(), (vec![2, 3], expected));
    assert_eq!(dense(&places, &[5.0]).result().1, [-1.0, -1.0, 5.0, 5.0, -1.0, -1.0]);
    assert_eq!(dense(&[1.0; 4], &[5.0, 7.0]).result().1[4], 7.0, "the last one stays");
    assert!(dense(&[0.0, 3.0, 1.0, 0.0], &[5.0, 7.0]).run().is_err());
    assert!(dense(&[0.0, -1.0, 1.0, 0.0], &[5.0, 7.0]).run().is_err());
    assert!(dense(&places, &[5.0, 7.0, 9.0]).run().is_err());
}

#[test]
fn shapes_that_broadcast() {
    let broadcast = |a: &[f64], b: &[f64]| {
        let shape = |it: &[f64]| tensor(TENSOR_INT64, [u32::try_from(it.len()).unwrap()]);
        let call = on(E::BroadcastArgs).input(shape(a), a).input(shape(b), b);
        call.output(tensor(TENSOR_INT64, []))
    };
    assert_eq!(broadcast(&[2.0, 1.0], &[7.0, 1.0, 5.0]).result().1, [7.0, 2.0, 5.0]);
    assert_eq!(broadcast(&[0.0], &[1.0]).result().1, [0.0]);
    assert!(broadcast(&[2.0], &[3.0]).run().is_err());
}

#[test]
fn gathering_by_batch() {
    let call = on(E::Gather).input(tensor(TensorInt32, [2, 3]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let call = call.int32s([1]);
    let by_batch = call.input(tensor(TensorInt32, [2, 2]), &[2.0, 0.0, 1.0, 1.0]).int32s([1]);
    let by_batch = by_batch.output(tensor(TensorInt32, []));
    assert_eq!(by_batch.result(), (vec![2, 2], vec![3.0, 1.0, 5.0, 5.0]));
    assert!(by_batch.with_int32(3, 2).run().is_err(), "more batch axes than the axis");
}

#[test]
fn where_lists_what_is_not_0() {
    let call = on(E::Where).input(tensor(TensorBool8, [2, 2]), &[0.0, 1.0, 1.0, 0.0]);
    let call = call.output(tensor(TENSOR_INT64, []));
    assert_eq!(call.result(), (vec![2, 2], vec![0.0, 1.0, 1.0, 0.0]));
    let none = on(E::Where).input(tensor(TensorInt32, [3]), &[0.0; 3]);
    assert_eq!(none.output(tensor(TENSOR_INT64, [])).result(), (vec![0, 1], vec![]));
}

#[test]
fn images_become_as_large_as_a_tensor_says() {
    let call = |size: &[i32], method, [corners, centers]: [bool; 2]| {
        let image = on(E::ResizeTo).input(tensor(TensorFloat32, [1, 1, 2, 1]), &[1.0, 3.0]);
        let call = integers(image, size).int32s([method]).bool(corners).bool(centers);
        call.output(tensor(TensorFloat32, []))
    };
    let edges = [false, false];
    assert_eq!(
        call(&[1, 4], 0, edges).result(),
        (vec![1, 1, 4, 1], vec![1.0, 2.0, 3.0, 3.0]),
        "bilinear"
    );
    assert_eq!(call(&[1, 4], 1, edges).result().1, [1.0, 1.0, 3.0, 3.0], "nearest");
    assert_eq!(call(&[2, 3], 0, [true, false]).result().1, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(call(&[1, 4], 0, [false, true]).result().1, [1.0, 1.5, 2.5, 3.0]);
    for size in [&[0, 4][..], &[-1, 4], &[4], &[1, 2, 3]] {
        assert!(call(size, 0, edges).run().is_err(), "{size:?}");
    }
    assert!(call(&[1, 4], 2, edges).run().is_err(), "there is no third method");
    assert!(call(&[1, 4], 0, [true, true]).run().is_err(), "both");
}

#[test]
fn one_hot_vectors_by_hand() {
    let call = |axis| {
        let call = integers(integers(on(E::OneHot), &[1, -1]), &[2]);
        let call = vector(vector(call, TensorFloat32, &[5.0]), TensorFloat32, &[-1.0]);
        call.int32s([axis]).output(tensor(TensorFloat32, []))
    };
    assert_eq!(call(-1).result(), (vec![2, 2], vec![-1.0, 5.0, -1.0, -1.0]));
    assert_eq!(call(0).result(), (vec![2, 2], vec![-1.0, -1.0, 5.0, -1.0]));
    assert!(call(2).run().is_err());
}

#[test]
fn sequences_are_reversed_as_far_as_they_go() {
    let call =
        on(E::ReverseSequence).input(tensor(TensorInt32, [2, 3]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let reversed = integers(call.clone(), &[2, 3]).int32s([1, 0]).output(tensor(TensorInt32, []));
    assert_eq!(reversed.result().1, [2.0, 1.0, 3.0, 6.0, 5.0, 4.0]);
    for lengths in [[4, 0], [-1, 0]] {
        let wrong = integers(call.clone(), &lengths).int32s([1, 0]);
        assert!(wrong.output(tensor(TensorInt32, [])).run().is_err(), "{lengths:?}");
    }
}

#[test]
fn diagonals_by_hand() {
    let new = on(E::MatrixDiag).input(tensor(TensorInt32, [2]), &[7.0, 8.0]);
    assert_eq!(
        new.output(tensor(TensorInt32, [])).result(),
        (vec![2, 2], vec![7.0, 0.0, 0.0, 8.0])
    );
    let set = on(E::MatrixSetDiag).input(tensor(TensorInt32, [2, 3]), &[1.0; 6]);
    let set = set.input(tensor(TensorInt32, [2]), &[7.0, 8.0]).output(tensor(TensorInt32, []));
    assert_eq!(set.result().1, [7.0, 1.0, 1.0, 1.0, 8.0, 1.0]);
    assert!(set.with_input(1, tensor(TensorInt32, [3]), &[0.0; 3]).run().is_err());
}

#[test]
fn different_values_by_hand() {
    let call = vector(on(E::Unique), TensorFloat32, &[3.0, 0.0, 3.0, -0.0, f64::NAN, f64::NAN]);
    let call = call.output(tensor(TensorFloat32, [])).output(tensor(TENSOR_INT64, []));
    let outputs = call.run().unwrap();
    assert_eq!((&outputs[0].dimensions[..], &outputs[1].dimensions[..]), (&[3][..], &[6][..]));
    let indexes: Vec<u8> = outputs[1].bytes.iter().step_by(8).copied().collect();
    assert_eq!(indexes, [0, 1, 0, 1, 2, 2]);
}

#[test]
fn segments_by_hand() {
    let sum = |numbers: &[i32]| {
        let call = vector(on(E::SegmentSum), TensorInt32, &[1.0, 2.0, 4.0]);
        integers(call, numbers).output(tensor(TensorInt32, []))
    };
    assert_eq!(sum(&[0, 0, 1]).result(), (vec![2], vec![3.0, 4.0]));
    for wrong in [[1, 1, 2], [0, 2, 2], [0, 1, 0], [0, -1, 0]] {
        assert!(sum(&wrong).run().is_err(), "{wrong:?}");
    }
    let unsorted = |operation, numbers: &[i32]| {
        let call = vector(on(operation), TensorInt32, &[3.0, 2.0, 4.0]);
        let call = integers(integers(call, numbers), &[3]);
        call.output(tensor(TensorInt32, []))
    };
    let (least, greatest) = (f64::from(i32::MIN), f64::from(i32::MAX));
    let numbers = [2, -1, 2];
    assert_eq!(unsorted(E::UnsortedSegmentSum, &numbers).result().1, [0.0, 0.0, 7.0]);
    assert_eq!(unsorted(E::UnsortedSegmentProd, &numbers).result().1, [1.0, 1.0, 12.0]);
    assert_eq!(unsorted(E::UnsortedSegmentMax, &numbers).result().1, [least, least, 4.0]);
    assert_eq!(unsorted(E::UnsortedSegmentMin, &numbers).result().1, [greatest, greatest, 3.0]);
    assert!(unsorted(E::UnsortedSegmentSum, &[3, 0, 0]).run().is_err());
}

#[test]
fn buckets_begin_with_their_boundary() {
    let call = vector(on(E::Bucketize), TensorFloat32, &[-1.0, 0.0, 0.5, 9.0, f64::NAN]);
    let call = vector(call, TensorFloat32, &[0.0, 1.0]).output(tensor(TensorInt32, []));
    assert_eq!(call.result().1, [0.0, 1.0, 1.0, 2.0, 2.0]);
    assert!(call.with_input(1, tensor(TensorFloat32, [2]), &[1.0, 0.0]).run().is_err());
}

#[test]
fn transforms_by_hand() {
    let transform = |elements: &[f64], of: [u32; 2], lengths: [i32; 2]| {
        let call = on(E::Rfft2d).input(tensor(TensorFloat32, of), elements);
        integers(call, &lengths).output(tensor(TENSOR_COMPLEX64, []))
    };
    // Magnitudes with the sign of the real part: 10, -2 + 2i, -2.
    let (shape, found) = transform(&[1.0, 2.0, 3.0, 4.0], [1, 4], [1, 4]).result();
    assert_eq!(shape, [1, 3]);
    assert_close(&found, &[10.0, -(8_f64.sqrt()), -2.0], 1e-6);
    // [[1, 2], [3, 4]], whose rows are summed and subtracted.
    let (shape, found) = transform(&[1.0, 2.0, 3.0, 4.0], [2, 2], [2, 2]).result();
    assert_eq!(shape, [2, 2]);
    assert_close(&found, &[10.0, -2.0, -4.0, 0.0], 1e-6);
    // Cut to one column, and filled to two rows.
    assert_close(&transform(&[5.0, 9.0], [1, 2], [2, 1]).result().1, &[5.0, 5.0], 1e-6);
    for lengths in [[3, 4], [0, 4], [-4, 4]] {
        assert!(transform(&[1.0; 4], [1, 4], lengths).run().is_err(), "{lengths:?}");
    }
    // As many bytes as no tensor may have.
    assert!(transform(&[1.0; 4], [1, 4], [1 << 30, 4]).run().is_err());
}

#[test]
fn a_transform_is_the_sum_that_defines_it() {
    let elements: Vec<f64> = (0..24).map(|at| f64::from(at * at % 7) - 2.5).collect();
    let call = on(E::Rfft2d).input(tensor(TensorFloat32, [3, 8]), &elements);
    let outputs = integers(call, &[4, 8]).output(tensor(TENSOR_COMPLEX64, [])).run().unwrap();
    let (parts, _) = outputs[0].bytes.as_chunks::<4>();
    for (at, part) in parts.iter().enumerate() {
        let (u, v) = (at / 2 / 5, at / 2 % 5);
        let term = |index: usize| {
            let angle = (u * (index / 8)) as f64 / 4.0 + (v * (index % 8)) as f64 / 8.0;
            let (sin, cos) = (-2.0 * std::f64::consts::PI * angle).sin_cos();
            elements[index] * if at % 2 == 0 { cos } else { sin }
        };
        let expected: f64 = (0..24).map(term).sum();
        let found = f64::from(f32::from_le_bytes(*part));
        assert!((found - expected).abs() < 1e-5, "{u} {v}: {found} {expected}");
    }
}

#[test]
fn convolutions_of_volumes_by_hand() {
    let convolved = |operation, image: &[f64], length: u32, stride, dilation| {
        let call = on(operation).input(tensor(TensorFloat32, [1, 1, 1, length, 1]), image);
        let call = call.input(tensor(TensorFloat32, [1, 1, 2, 1, 1]), &[1.0, 10.0]);
        let call = call.input(tensor(TensorFloat32, [1]), &[100.0]);
        call.int32s([2, 1, 1, stride, 1, 1, dilation, 0]).output(tensor(TensorFloat32, []))
    };
    let image = [1.0, 2.0, 3.0, 4.0];
    let plain = convolved(E::Conv3d, &image, 4, 2, 1);
    assert_eq!(plain.result(), (vec![1, 1, 1, 2, 1], vec![121.0, 143.0]));
    let dilated = convolved(E::Conv3d, &image, 4, 1, 3);
    assert_eq!(dilated.result().1, [141.0]);
    let back = |length| {
        let call = convolved(E::Conv3dTranspose, &image[..2], 2, 2, 1);
        integers(call, &[1, 1, 1, length, 1])
    };
    assert_eq!(back(4).result().1, [101.0, 110.0, 102.0, 120.0]);
    assert!(back(7).run().is_err(), "a window takes that to 3 places");
}

#[test]
fn a_block_is_replaced_where_it_fits() {
    let call = on(E::DynamicUpdateSlice).input(tensor(TensorInt32, [2, 3]), &[0.0; 6]);
    let call = call.input(tensor(TensorInt32, [1, 2]), &[7.0, 8.0]);
    let at =
        |begins: &[i32]| integers(call.clone(), begins).output(tensor(TensorInt32, [])).result().1;
    assert_eq!(at(&[1, 0]), [0.0, 0.0, 0.0, 7.0, 8.0, 0.0]);
    assert_eq!(at(&[-5, 9]), [0.0, 7.0, 8.0, 0.0, 0.0, 0.0]);
}

#[test]
fn boxes_that_overlap_better_ones_are_dropped() {
    let call = |operation| {
        let boxes =
            [0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 2.0, 1.9, 5.0, 5.0, 6.0, 6.0, 0.0, 0.0, 0.0, 0.0];
        let call = on(operation).input(tensor(TensorFloat32, [4, 4]), &boxes);
        let call = integers(vector(call, TensorFloat32, &[0.8, 0.9, 0.7, 0.1]), &[3]);
        vector(vector(call, TensorFloat32, &[0.5]), TensorFloat32, &[0.2])
    };
    let hard = call(E::NonMaxSuppressionV4);
    let hard = hard.output(tensor(TensorInt32, [])).output(tensor(TensorInt32, []));
    let outputs = hard.run().unwrap();
    assert_eq!(outputs[0].bytes, [1_i32, 2, 0].map(i32::to_le_bytes).concat());
    assert_eq!(outputs[1].bytes, 2_i32.to_le_bytes());
}

#[test]
fn ranges_by_hand() {
    let range = |start: i32, limit: i32, step: i32| {
        let call = integers(integers(integers(on(E::Range), &[start]), &[limit]), &[step]);
        call.output(tensor(TensorInt32, []))
    };
    assert_eq!(range(1, 8, 3).result().1, [1.0, 4.0, 7.0]);
    assert_eq!(range(3, 0, -2).result().1, [3.0, 1.0]);
    assert_eq!(range(3, 3, 1).result(), (vec![0], vec![]));
    for (start, limit, step) in [(0, 1, 0), (0, 1, -1), (i32::MIN, i32::MAX, 1)] {
        assert!(range(start, limit, step).run().is_err(), "{start} {limit} {step}");
    }
}

#[test]
fn a_choice_broadcasts_all_three() {
    let call = on(E::Select).input(tensor(TensorBool8, [2, 1]), &[1.0, 0.0]);
    let call = call.input(tensor(TENSOR_INT64, [1]), &[7.0]);
    let call = call.input(tensor(TENSOR_INT64, [3]), &[1.0, 2.0, 3.0]);
    let chosen = call.output(tensor(TENSOR_INT64, []));
    assert_eq!(chosen.result(), (vec![2, 3], vec![7.0, 7.0, 7.0, 1.0, 2.0, 3.0]));
}

#[test]
fn of_equal_elements_the_first_come_first() {
    let call = vector(on(E::TopkV2), TensorInt32, &[1.0, 9.0, 9.0, 1.0]).int32s([3]);
    let call = call.output(tensor(TensorInt32, [])).output(tensor(TensorInt32, []));
    assert_eq!(call.run().unwrap()[1].bytes, [1_i32, 2, 0].map(i32::to_le_bytes).concat());
}

#[test]
fn a_tensor_says_how_many_of_the_greatest_there_are() {
    let call = |counts: &[i32]| {
        let rows =
            on(E::TopK).input(tensor(TensorFloat32, [2, 3]), &[5.0, 7.0, 5.0, 1.0, 2.0, 3.0]);
        let call = integers(rows, counts);
        call.output(tensor(TensorFloat32, [])).output(tensor(TensorInt32, []))
    };
    let two = call(&[2]).run().unwrap();
    assert_eq!(call(&[2]).result(), (vec![2, 2], vec![7.0, 5.0, 3.0, 2.0]));
    assert_eq!(two[1].bytes, [1_i32, 0, 2, 1].map(i32::to_le_bytes).concat());
    assert_eq!(call(&[3]).result().1, [7.0, 5.0, 5.0, 3.0, 2.0, 1.0]);
    for none in [0, -1, i32::MIN] {
        assert_eq!(call(&[none]).result(), (vec![2, 0], vec![]), "{none}");
    }
    for wrong in [&[4][..], &[i32::MAX], &[1, 1], &[]] {
        assert!(call(wrong).run().is_err(), "{wrong:?}");
    }
    let wide = on(E::TopK).input(tensor(TENSOR_INT64, [3]), &[-9.0, 4.0, 4.0]);
    let wide = integers(wide, &[2]);
    let wide = wide.output(tensor(TENSOR_INT64, [])).output(tensor(TensorInt32, []));
    assert_eq!(wide.result(), (vec![2], vec![4.0, 4.0]));
}

#[test]
fn operations_like_the_interfaces_take_more_axes() {
    let wide =
        on(E::Transpose).input(tensor(TensorFloat32, [1, 1, 1, 2, 2]), &[1.0, 2.0, 3.0, 4.0]);
    let wide = integers(wide, &[0, 1, 2, 4, 3]).output(tensor(TensorFloat32, []));
    assert_eq!(wide.result(), (vec![1, 1, 1, 2, 2], vec![1.0, 3.0, 2.0, 4.0]));
    let standard = Example::new(nnhal_hal::OperationType::Transpose);
    let standard = standard.input(tensor(TensorFloat32, [1, 1, 1, 2, 2]), &[0.0; 4]);
    assert!(integers(standard, &[0, 1, 2, 4, 3]).output(tensor(TensorFloat32, [])).run().is_err());
}

#[test]
fn a_value_of_many_elements_is_no_border() {
    let pad = |count: u32| {
        let call = on(E::PadV2).input(tensor(TENSOR_INT64, [1]), &[5.0]);
        let call = call.input(tensor(TensorInt32, [1, 2]), &[1.0, 0.0]);
        let values = vec![-3.0; count as usize];
        call.input(tensor(TENSOR_INT64, [count]), &values).output(tensor(TENSOR_INT64, []))
    };
    assert_eq!(pad(1).result(), (vec![2], vec![-3.0, 5.0]));
    assert!(pad(2).run().is_err());
    let fill = |count: u32| {
        let call = integers(on(E::Fill), &[2]);
        let values = vec![4.0; count as usize];
        call.input(tensor(TENSOR_INT64, [count]), &values).output(tensor(TENSOR_INT64, []))
    };
    assert_eq!(fill(1).result(), (vec![2], vec![4.0, 4.0]));
    assert!(fill(2).run().is_err());
}

#[test]
fn blocks_are_gathered_where_they_fit() {
    let input: Vec<f64> = (0..12).map(f64::from).collect();
    let call = |indexes: &[f64], axes: &[i32], sizes: &[i32]| {
        let rows = u32::try_from(indexes.len() / axes.len()).unwrap();
        let depth = u32::try_from(axes.len()).unwrap();
        let call = on(E::GatherSlices).input(tensor(TensorInt32, [3, 4]), &input);
        let call = call.input(tensor(TensorInt32, [rows, depth]), indexes);
        integers(integers(call, axes), sizes).output(tensor(TensorInt32, []))
    };
    // The second and third block begin at the last and at the first place where they fit.
    let found = call(&[1.0, 9.0, -9.0], &[1], &[1, 2]).result();
    assert_eq!(found, (vec![3, 1, 2], vec![1.0, 2.0, 2.0, 3.0, 0.0, 1.0]));
    let found = call(&[2.0, 1.0], &[1, 0], &[2, 1]).result();
    assert_eq!(found, (vec![1, 2, 1], vec![6.0, 10.0]));
    assert_eq!(call(&[0.0], &[0], &[0, 4]).result(), (vec![1, 0, 4], vec![]));
    assert!(call(&[0.0], &[0], &[4, 4]).run().is_err(), "longer than the axis");
    assert!(call(&[0.0, 0.0], &[0, 0], &[1, 1]).run().is_err(), "an axis twice");
    assert!(call(&[0.0], &[2], &[1, 1]).run().is_err(), "no such axis");
    assert!(call(&[0.0], &[0], &[1]).run().is_err(), "a size for each axis");
}

#[test]
fn blocks_are_scattered_as_far_as_they_are_inside() {
    let call = |function: i32| {
        let call = on(E::ScatterSlices)
            .input(tensor(TensorInt32, [2, 3]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let call = call.input(tensor(TensorInt32, [3, 1]), &[0.0, 2.0, -1.0]);
        let updates = [7.0, 8.0, 9.0, -1.0, 2.0, 3.0];
        let call = call.input(tensor(TensorInt32, [3, 1, 2]), &updates);
        integers(call, &[1]).int32s([function]).output(tensor(TensorInt32, []))
    };
    let scattered = |function: i32| call(function).result().1;
    // Along the second axis, 9 is in the last column and 3 in the first; the other axis begins at 0.
    assert_eq!(scattered(0), [3.0, 8.0, 9.0, 4.0, 5.0, 6.0]);
    assert_eq!(scattered(1), [11.0, 10.0, 12.0, 4.0, 5.0, 6.0]);
    assert_eq!(scattered(2), [21.0, 16.0, 27.0, 4.0, 5.0, 6.0]);
    assert_eq!(scattered(3), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(scattered(4), [7.0, 8.0, 9.0, 4.0, 5.0, 6.0]);
    assert!(call(7).run().is_err(), "no such function");
    assert!(call(-1).run().is_err(), "no such function");
}

#[test]
fn random_numbers_go_on_from_the_state() {
    let numbers = |operation, lengths: &[i32], state: &[f64]| {
        let call = integers(on(operation), lengths).input(tensor(TensorInt32, [6]), state);
        let outputs =
            call.output(tensor(TensorFloat32, [])).output(tensor(TensorInt32, [])).results();
        let [(_, numbers), (_, state)] = &outputs[..] else { panic!("{outputs:?}") };
        (numbers.clone(), state.clone())
    };
    // The lower half of the counter is at its end.
    let state = [-2.0, -1.0, 5.0, 6.0, 7.0, 8.0];
    for operation in [E::RandomUniform, E::RandomStandardNormal] {
        let (all, last) = numbers(operation, &[3, 4], &state);
        let (first, between) = numbers(operation, &[2, 4], &state);
        assert_eq!(between, [0.0, 0.0, 6.0, 6.0, 7.0, 8.0], "with a carry");
        let (rest, after) = numbers(operation, &[4], &between);
        assert_eq!(([first, rest].concat(), after), (all, last));
        // Of a word more than a whole counter the rest is not used.
        assert_eq!(numbers(operation, &[5], &state).1, between);
        assert_eq!(numbers(operation, &[0], &state), (vec![], state.to_vec()));
    }
    let (uniform, _) = numbers(E::RandomUniform, &[10_000], &state);
    assert!(uniform.iter().all(|it| (0.0..1.0).contains(it)));
    let mean = uniform.iter().sum::<f64>() / 1e4;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
    let (normal, _) = numbers(E::RandomStandardNormal, &[10_000], &state);
    let (mean, square) =
        (normal.iter().sum::<f64>() / 1e4, normal.iter().map(|it| it * it).sum::<f64>() / 1e4);
    assert!(mean.abs() < 0.05 && (square - 1.0).abs() < 0.05, "{mean} {square}");
}

#[test]
fn classes_are_drawn_as_their_logits_say() {
    let call = |count: i32| {
        let logits = [0.0, f64::from(3_f32.ln()), f64::NEG_INFINITY, 0.0, f64::NAN, 2000.0];
        let call = on(E::Multinomial).input(tensor(TensorFloat32, [2, 3]), &logits);
        let call = integers(call, &[count])
            .input(tensor(TensorInt32, [6]), &[0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        call.output(tensor(TENSOR_INT64, [])).output(tensor(TensorInt32, []))
    };
    let outputs = call(4000).results();
    let (shape, classes) = &outputs[0];
    assert_eq!(*shape, [2, 4000]);
    let second = classes[..4000].iter().filter(|it| **it == 1.0).count();
    assert!(
        (2900..3100).contains(&second) && classes[..4000].iter().all(|it| *it < 2.0),
        "{second}"
    );
    assert!(
        classes[4000..].iter().all(|it| *it == 2.0),
        "the others have no probability beside it"
    );
    // 2 rows of 4000 words, times 512.
    assert_eq!(outputs[1].1, [4_096_000.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(call(0).results()[0].0, [2, 0]);
    assert!(call(-1).run().is_err());
}

#[test]
fn bits_of_both_algorithms() {
    let bits = |algorithm: i32, state: &[f64], output| {
        let length = u32::try_from(state.len()).unwrap();
        let call = on(E::RngBitGenerator).input(tensor(TENSOR_UINT64, [length]), state);
        integers(call, &[3])
            .int32s([algorithm])
            .output(tensor(TENSOR_UINT64, []))
            .output(tensor(output, []))
    };
    // Random123's answer for the key and counter 0.
    let outputs = bits(0, &[0.0, 0.0], TENSOR_UINT32).results();
    assert_eq!(outputs[0].1, [0.0, 1.0]);
    let expected = [0x6627_e8d5_u32, 0xe169_c58d, 0xbc57_ac4c].map(f64::from);
    assert_eq!(outputs[1].1, expected);
    let outputs = bits(1, &[0.0, 0.0], TENSOR_UINT32).results();
    assert_eq!((&outputs[0].1[..], outputs[1].1[0]), (&[0.0, 2.0][..], f64::from(0x6b20_0159)));
    let wide = bits(1, &[0.0, 0.0], TENSOR_UINT64).results();
    assert_eq!(wide[0].1, [0.0, 3.0], "two words each");
    assert_eq!(bits(0, &[1.0, 2.0, 3.0], TensorInt32).results()[0].1, [1.0, 3.0, 3.0]);
    assert!(bits(1, &[1.0, 2.0, 3.0], TensorInt32).run().is_err(), "Threefry has no third word");
    assert!(bits(2, &[1.0, 2.0], TensorInt32).run().is_err(), "no such algorithm");
}

/// One unit of `weights` with the scale 1/2 and the bias 10.
fn of_floats(input: &[f64], weights: &[f64], activation: i32) -> Example {
    let length = u32::try_from(weights.len()).unwrap();
    let rows = u32::try_from(input.len() / weights.len()).unwrap();
    on(E::DynamicFullyConnected)
        .input(tensor(TensorFloat32, [rows, length]), input)
        .input(tensor(TensorQuant8AsymmSigned, [1, length]).quantized(0.5, 0), weights)
        .input(tensor(TensorFloat32, [1]), &[10.0])
        .int32s([activation])
        .output(tensor(TensorFloat32, []))
}

#[test]
fn rows_of_floats_are_rounded_by_their_own_ranges() {
    // Steps of 1; 1.5 becomes 2.
    let first = of_floats(&[0.0, 255.0, 1.5], &[1.0, -1.0, 100.0], 0);
    assert_eq!(first.result(), (vec![1, 1], vec![-255.0 / 2.0 + 100.0 + 10.0]));
    // Steps of 1/10 and of 1/100.
    let rows = [25.5, 0.14, 2.55, 0.014];
    let both = of_floats(&rows, &[0.0, 100.0], 0).result().1;
    assert_close(&both, &[15.0, 10.5], 1e-6);
    // From -1.5 to 1: the zero is at 25, where -1.5 is -153, and 1 is 102.
    let mixed = of_floats(&[-1.5, 1.0, 0.0049], &[2.0, 3.0, 100.0], 0).result().1;
    assert_close(&mixed, &[10.0 + (-306.0 + 306.0 + 0.0) / 102.0 / 2.0], 1e-6);
    assert_eq!(of_floats(&[255.0], &[-100.0], 1).result().1, [0.0], "activated");
    assert_eq!(of_floats(&[0.0, 0.0], &[7.0, 7.0], 0).result().1, [10.0]);
    assert_eq!(of_floats(&[1e-40, 0.0], &[7.0, 7.0], 0).result().1, [10.0], "as good as zero");
}

#[test]
fn what_is_not_finite_makes_no_number_of_its_row() {
    let far = f64::from(f32::MAX);
    for strange in [[f64::NAN, 0.0], [f64::INFINITY, 0.0], [0.0, f64::NEG_INFINITY], [far, -far]] {
        let rows = [&strange[..], &[1.0, 1.0]].concat();
        let found = of_floats(&rows, &[1.0, 1.0], 0).result().1;
        assert!(found[0].is_nan(), "{strange:?} gives {found:?}");
        assert_close(&found[1..], &[11.0], 1e-6);
    }
}

#[test]
fn weights_beside_rounded_rows_have_no_zero_point() {
    let weights = tensor(TensorQuant8AsymmSigned, [1, 1]).quantized(0.5, 3);
    let refusal = of_floats(&[1.0], &[1.0], 0).with_input(1, weights, &[1.0]).refusal();
    assert!(refusal.contains("zero point of input 1 (weights) is 3, expected 0"), "{refusal}");
}

/// Two filters of 2 by 1 over one channel, with the scales 1/2 and 1/4 and the biases 10 and 0.
fn convolved_floats(
    image: &[f64],
    shape: [u32; 4],
    [padding, stride, dilation]: [i32; 3],
) -> Example {
    let filter = OperandSpec::tensor_quant8_symm_per_channel([2, 2, 1, 1], &[0.5, 0.25], 0);
    on(E::DynamicConv2d)
        .input(tensor(TensorFloat32, shape), image)
        .input(filter, &[1.0, 2.0, 100.0, -1.0])
        .input(tensor(TensorFloat32, [2]), &[10.0, 0.0])
        .int32s([padding, stride, 1, dilation, 1, 0])
        .output(tensor(TensorFloat32, []))
}

#[test]
fn images_of_floats_are_rounded_by_their_own_ranges() {
    // Steps of 1 in the first image, where 1.5 becomes 2, and of 1/10 in the second.
    let images = [0.0, 255.0, 1.5, 25.5, 0.14, 0.0];
    let (shape, found) = convolved_floats(&images, [2, 3, 1, 1], [2, 1, 1]).result();
    assert_eq!(shape, [2, 2, 1, 2]);
    let first = [510.0 / 2.0 + 10.0, -255.0 / 4.0, 259.0 / 2.0 + 10.0, (25_500.0 - 2.0) / 4.0];
    let second = [25.7 / 2.0 + 10.0, (2550.0 - 0.1) / 4.0, 0.1 / 2.0 + 10.0, 10.0 / 4.0];
    assert_close(&found, &[first, second].concat(), 1e-5);
    // Padding is 0, below the image.
    let (shape, found) = convolved_floats(&images[..3], [1, 3, 1, 1], [1, 2, 1]).result();
    assert_eq!(shape, [1, 2, 1, 2]);
    assert_close(&found, &[265.0, -63.75, 2.0 / 2.0 + 10.0, 200.0 / 4.0], 1e-5);
    let (shape, found) = convolved_floats(&images[..3], [1, 3, 1, 1], [2, 1, 2]).result();
    assert_eq!(shape, [1, 1, 1, 2]);
    assert_close(&found, &[4.0 / 2.0 + 10.0, -2.0 / 4.0], 1e-5);
}

#[test]
fn groups_are_where_a_filter_has_fewer_channels_than_the_image() {
    let grouped = |channels: u32, filters: u32| {
        let filter = tensor(TensorQuant8AsymmSigned, [filters, 1, 1, 2]).quantized(0.5, 0);
        let weights: Vec<f64> = (0..2 * filters).map(|it| f64::from(it % 3)).collect();
        let image: Vec<f64> = (0..channels).map(|it| f64::from(it) * 51.0).collect();
        on(E::DynamicConv2d)
            .input(tensor(TensorFloat32, [1, 1, 1, channels]), &image)
            .input(filter, &weights)
            .input(tensor(TensorFloat32, [filters]), &vec![0.0; filters as usize])
            .int32s([2, 1, 1, 1, 1, 0])
            .output(tensor(TensorFloat32, []))
    };
    // Weights 0 1, 2 0, 1 2, 0 1, halved: the first two see the channels 0 and 51, the others 102 and 153.
    let (shape, found) = grouped(4, 4).result();
    assert_eq!(shape, [1, 1, 1, 4]);
    assert_close(&found, &[25.5, 0.0, 51.0 + 153.0, 76.5], 1e-4);
    for (channels, filters) in [(5, 4), (4, 3), (1, 2)] {
        let refusal = grouped(channels, filters).refusal();
        let expected =
            format!("one that divides the {channels} channels of input 0, and {filters}");
        assert!(refusal.contains(&expected), "{refusal}");
    }
}

#[test]
fn an_image_that_is_not_finite_makes_no_number() {
    let images = [f64::INFINITY, 1.0, 255.0, 0.0];
    let found = convolved_floats(&images, [2, 2, 1, 1], [2, 1, 1]).result().1;
    assert!(found[..2].iter().all(|it| it.is_nan()), "{found:?}");
    assert_close(&found[2..], &[255.0 / 2.0 + 10.0, 25_500.0 / 4.0], 1e-5);
}

#[test]
fn filters_beside_rounded_images_fit_them() {
    let fits = || convolved_floats(&[1.0; 3], [1, 3, 1, 1], [2, 1, 1]);
    let small = convolved_floats(&[1.0], [1, 1, 1, 1], [2, 1, 1]).refusal();
    assert!(small.contains("2 or more along axis 1"), "{small}");
    let deep = tensor(TensorQuant8AsymmSigned, [2, 2, 1, 3]).quantized(0.5, 0);
    assert!(fits().with_input(1, deep, &[0.0; 12]).run().is_err());
    let shifted = tensor(TensorQuant8AsymmSigned, [2, 2, 1, 1]).quantized(0.5, 3);
    let refusal = fits().with_input(1, shifted, &[0.0; 4]).refusal();
    assert!(refusal.contains("zero point of input 1 (filter) is 3, expected 0"), "{refusal}");
    let across = OperandSpec::tensor_quant8_symm_per_channel([2, 2, 1, 1], &[0.5], 3);
    let refusal = fits().with_input(1, across, &[0.0; 4]).refusal();
    assert!(refusal.contains("channel dimension"), "{refusal}");
}

#[test]
fn parts_of_floats_are_rounded_by_their_own_ranges() {
    let elements = [0.0, 255.0, 1.5, 25.5, 0.14, 0.0];
    let spec = tensor(TensorFloat32, [2, 3]);
    let found =
        on(E::DynamicRound).input(spec, &elements).output(tensor(TensorFloat32, [])).result();
    assert_eq!(found.0, [2, 3]);
    assert_close(&found.1, &[0.0, 255.0, 2.0, 25.5, 0.1, 0.0], 1e-6);
    // The greatest magnitude is 127 steps, of 1 and of 2; a half goes away from 0.
    let symmetric = |elements: &[f64]| {
        let call = on(E::DynamicRound).input(tensor(TensorFloat32, [2, 3]), elements).bool(true);
        call.output(tensor(TensorFloat32, [])).result().1
    };
    assert_eq!(
        symmetric(&[127.0, 2.5, -2.5, -254.0, 1.0, 0.9]),
        [127.0, 3.0, -3.0, -254.0, 2.0, 0.0]
    );
    assert_eq!(symmetric(&[0.0; 6]), [0.0; 6]);
    let infinite = symmetric(&[f64::INFINITY, 1.0, 2.0, -127.0, 0.2, 0.5]);
    assert!(infinite[..3].iter().all(|it| it.is_nan()), "{infinite:?}");
    assert_eq!(infinite[3..], [-127.0, 0.0, 1.0]);
    let strange = on(E::DynamicRound)
        .input(tensor(TensorFloat32, [2, 1]), &[f64::NAN, 7.0])
        .output(tensor(TensorFloat32, []))
        .result()
        .1;
    assert!(strange[0].is_nan(), "{strange:?}");
    assert_close(&strange[1..], &[7.0], 1e-6);
}
