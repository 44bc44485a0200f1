//! Copies against indexes worked out one by one.

use super::*;
use proptest::prelude::*;

fn numbers(count: usize) -> Vec<u32> {
    (0..u32::try_from(count).unwrap()).collect()
}

/// Elements that `number` makes of their places, transposed.
fn is_transposed<T: NoUninit + Send + Sync + PartialEq + std::fmt::Debug>(
    lengths: &[usize],
    permutation: &[usize],
    number: impl Fn(usize) -> T,
) {
    let copy = StridedCopy::transpose(lengths, permutation);
    let input: Vec<T> = (0..lengths.iter().product()).map(&number).collect();
    let mut output: Vec<T> = input.iter().map(|_| number(usize::MAX)).collect();
    copy.run(&mut Team::new(2), &input, &mut output);
    for (place, found) in output.into_iter().enumerate() {
        let (mut left, mut index) = (place, vec![0; lengths.len()]);
        for axis in permutation.iter().rev() {
            index[*axis] = left % lengths[*axis];
            left /= lengths[*axis];
        }
        let from = index.iter().zip(lengths).fold(0, |at, (index, length)| at * length + index);
        assert_eq!(found, input[from], "{lengths:?} {permutation:?}, element {place}");
    }
}

#[test]
#[allow(clippy::cast_possible_truncation)] // Neighbours differ all the same.
fn transpositions_by_their_definition() {
    for (lengths, permutation) in [
        (vec![3, 5], vec![1, 0]),
        (vec![40, 33], vec![1, 0]),
        (vec![16, 64], vec![1, 0]),
        (vec![130, 67], vec![1, 0]),
        (vec![3, 2, 37], vec![0, 2, 1]),
        (vec![3, 37, 2], vec![0, 2, 1]),
        (vec![67, 130], vec![1, 0]),
        (vec![2, 17, 19, 3], vec![0, 3, 1, 2]),
        (vec![2, 3, 17, 19], vec![0, 2, 3, 1]),
        (vec![2, 12, 4, 8], vec![0, 2, 1, 3]),
        (vec![4, 5, 6], vec![2, 1, 0]),
        (vec![4, 5, 6], vec![0, 1, 2]),
        (vec![4, 0, 6], vec![0, 2, 1]),
        (vec![], vec![]),
    ] {
        is_transposed(&lengths, &permutation, |place| (place % 251) as u8);
        is_transposed(&lengths, &permutation, |place| place as u16);
        is_transposed(&lengths, &permutation, |place| place as u32);
        is_transposed(&lengths, &permutation, |place| place as u64);
        is_transposed(&lengths, &permutation, |place| [place as u16; 3]);
    }
}

#[test]
#[allow(clippy::cast_possible_truncation)] // As above.
#[cfg_attr(miri, ignore = "too long")]
fn planes_of_any_length_become_pixels() {
    for pixels in (1..70).chain([40_000, 50_003, 140_000]) {
        for (lengths, permutation) in [([2, 3, pixels], [0, 2, 1]), ([1, pixels, 3], [0, 2, 1])] {
            is_transposed(&lengths, &permutation, |place| (place % 251) as u8);
            is_transposed(&lengths, &permutation, |place| place as u16);
            is_transposed(&lengths, &permutation, |place| place as u32);
        }
        // Pixels of four, of which one is left as it is.
        let axis =
            |length, input_stride, output_stride| Axis { length, input_stride, output_stride };
        let input = numbers(3 * pixels);
        let mut output = vec![u32::MAX; 4 * pixels];
        let copy =
            StridedCopy::prepare(&[axis(pixels, 1, 4), axis(3, pixels.cast_signed(), 1)], 0, 0);
        copy.run(&mut Team::new(2), &input, &mut output[..4 * pixels - 1]);
        for (pixel, found) in output.chunks(4).enumerate() {
            let expected = [0, 1, 2].map(|plane| input[plane * pixels + pixel]);
            assert_eq!((&found[..3], found[3]), (&expected[..], u32::MAX), "{pixels}");
        }
    }
}

#[test]
#[allow(clippy::cast_possible_truncation)] // Neighbours differ all the same.
fn runs_of_any_length_leave_what_is_beside_them() {
    for length in (1..70).chain(1020..1030).chain([9000]) {
        let input: Vec<u8> = (0..3 * (length + 2)).map(|place| (place % 251) as u8).collect();
        let mut output = vec![255; 3 * (length + 5)];
        let axis =
            |length, input_stride, output_stride| Axis { length, input_stride, output_stride };
        let axes = [axis(3, (length + 2).cast_signed(), length + 5), axis(length, 1, 1)];
        StridedCopy::prepare(&axes, 1, 2).run(&mut Team::new(2), &input, &mut output);
        for (run, found) in output.chunks(length + 5).enumerate() {
            let expected = &input[run * (length + 2) + 1..][..length];
            assert_eq!(found[..2], [255; 2], "before run {run} of {length}");
            assert_eq!(&found[2..2 + length], expected, "run {run} of {length}");
            assert_eq!(found[2 + length..], [255; 3], "behind run {run} of {length}");
        }
    }
}

#[test]
fn slices_forwards_and_backwards() {
    let input = numbers(4 * 5);
    let mut output = [0; 6];
    let copy = StridedCopy::slice(&[4, 5], &[3, 1], &[-2, 1], &[2, 3]);
    copy.run(&mut Team::alone(), &input, &mut output);
    assert_eq!(output, [16, 17, 18, 6, 7, 8]);
    // Backwards by single elements.
    let copy = StridedCopy::slice(&[20], &[19], &[-3], &[6]);
    copy.run(&mut Team::alone(), &input, &mut output);
    assert_eq!(output, [19, 16, 13, 10, 7, 4]);
}

#[test]
fn pieces_leave_the_rest() {
    let mut output = [9_u8; 12];
    let copy = StridedCopy::piece(&[2, 2], &[3, 4], &[1, 1]);
    copy.run(&mut Team::alone(), &[1, 2, 3, 4], &mut output);
    assert_eq!(output, [9, 9, 9, 9, 9, 1, 2, 9, 9, 3, 4, 9]);
}

#[test]
fn space_and_depth() {
    // Each pixel of 2 by 4 with its number; blocks of 2 by 2.
    let mut output = [0_u16; 8];
    let copy = StridedCopy::transpose(&[1, 1, 2, 2, 2, 1], &[0, 1, 3, 2, 4, 5]);
    copy.run(&mut Team::alone(), &[0, 1, 2, 3, 4, 5, 6, 7], &mut output);
    assert_eq!(output, [0, 1, 4, 5, 2, 3, 6, 7]);
    let mut again = [0; 8];
    let copy = StridedCopy::transpose(&[1, 1, 2, 2, 2, 1], &[0, 1, 3, 2, 4, 5]);
    copy.run(&mut Team::alone(), &output, &mut again);
    assert_eq!(again, [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn repeating_and_shuffling() {
    let axis = |length, input_stride, output_stride| Axis { length, input_stride, output_stride };
    let mut output = [0_u64; 6];
    let tile = StridedCopy::prepare(&[axis(3, 0, 2), axis(2, 1, 1)], 0, 0);
    tile.run(&mut Team::alone(), &[7, 8], &mut output);
    assert_eq!(output, [7, 8, 7, 8, 7, 8]);
    // Two groups of three channels become three of two.
    let shuffle = StridedCopy::prepare(&[axis(3, 1, 2), axis(2, 3, 1)], 0, 0);
    shuffle.run(&mut Team::alone(), &[0, 1, 2, 3, 4, 5], &mut output);
    assert_eq!(output, [0, 3, 1, 4, 2, 5]);
}

#[test]
fn what_would_be_unsafe_is_refused() {
    let axis = |length, input_stride, output_stride| Axis { length, input_stride, output_stride };
    for (axes, start) in [
        (vec![axis(2, 1, 0)], 0),
        (vec![axis(3, 1, 1), axis(2, 3, 2)], 0),
        (vec![axis(3, -1, 1)], 1),
        (vec![axis(usize::MAX, 1, 1)], 0),
        (vec![axis(1 << 40, 1 << 40, 1)], 0),
    ] {
        let refused = std::panic::catch_unwind(|| StridedCopy::prepare(&axes, start, 0));
        assert!(refused.is_err(), "{axes:?}");
    }
    let copy = StridedCopy::transpose(&[2, 3], &[1, 0]);
    let short = || copy.run(&mut Team::alone(), &[1_u8; 5], &mut [0; 6]);
    assert!(std::panic::catch_unwind(short).is_err());
}

#[test]
fn mirrors_stand_at_or_behind_the_last_elements() {
    let input = [1, 2, 3, 4, 5, 6];
    let padded = |borders: &[[usize; 2]], skipped| {
        let [rows, columns] = [(borders[0], 2), (borders[1], 3)]
            .map(|([before, behind], length): ([usize; 2], usize)| before + length + behind);
        let mut output = vec![0; rows * columns];
        for copy in StridedCopy::mirror_pad(&[2, 3], borders, skipped) {
            copy.run(&mut Team::alone(), &input, &mut output);
        }
        output
    };
    assert_eq!(
        padded(&[[1, 0], [2, 1]], 1),
        [6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5]
    );
    assert_eq!(
        padded(&[[0, 2], [1, 3]], 0),
        [1, 1, 2, 3, 3, 2, 1, 4, 4, 5, 6, 6, 5, 4, 4, 4, 5, 6, 6, 5, 4, 1, 1, 2, 3, 3, 2, 1]
    );
    assert_eq!(padded(&[[0, 0], [0, 0]], 1), input);
    assert!(StridedCopy::mirror_pad(&[2, 0], &[[1, 1], [0, 0]], 1).is_empty());
}

#[test]
fn rows_by_number() {
    let mut team = Team::new(2);
    let input = numbers(2 * 3 * 2);
    let mut output = [0; 8];
    assert_eq!(gather(&mut team, [2, 3, 2], &input, &[2, 0], &mut output), Ok(()));
    assert_eq!(output, [4, 5, 0, 1, 10, 11, 6, 7]);
    for number in [-1, 3, i32::MIN] {
        let found = gather(&mut team, [2, 3, 2], &input, &[0, number], &mut output);
        assert_eq!(found.unwrap_err().found, number.to_string());
    }
    assert_eq!(gather(&mut team, [2, 0, 2], &[0_u8; 0], &[], &mut []), Ok(()));
}

proptest! {
    #[test]
    fn any_strides(
        lengths in prop::collection::vec(prop_oneof![0..4_usize, 15..20_usize], 0..4),
        orders in (any::<u64>(), any::<u64>()),
        backwards: u8,
        gap in 0..3_usize,
    ) {
        let rank = lengths.len();
        let strides = |order: u64, gap: usize| {
            let mut axes: Vec<usize> = (0..rank).collect();
            fastrand::Rng::with_seed(order).shuffle(&mut axes);
            let (mut stride, mut strides) = (1, vec![0; rank]);
            for axis in axes {
                strides[axis] = stride;
                stride = stride * lengths[axis].max(1) + gap;
            }
            (strides, stride)
        };
        let ((of_input, input_size), (of_output, size)) = (strides(orders.0, 0), strides(orders.1, gap));
        let is_backwards = |axis: usize| backwards >> axis & 1 == 1;
        let start: usize = (0..rank).filter(|axis| is_backwards(*axis))
            .map(|axis| lengths[axis].saturating_sub(1) * of_input[axis]).sum();
        let axes: Vec<Axis> = (0..rank).map(|axis| Axis {
            length: lengths[axis],
            input_stride: of_input[axis].cast_signed() * if is_backwards(axis) { -1 } else { 1 },
            output_stride: of_output[axis],
        }).collect();
        let input = numbers(input_size);
        let mut expected = vec![u32::MAX; size + 3];
        for place in 0..lengths.iter().product() {
            let (mut left, mut from, mut to) = (place, start.cast_signed(), 3);
            for (axis, length) in axes.iter().zip(&lengths) {
                from += (left % length).cast_signed() * axis.input_stride;
                to += left % length * axis.output_stride;
                left /= length;
            }
            expected[to] = input[from.cast_unsigned()];
        }
        let mut output = vec![u32::MAX; size + 3];
        StridedCopy::prepare(&axes, start, 3).run(&mut Team::new(2), &input, &mut output);
        prop_assert_eq!(output, expected);
    }
}
