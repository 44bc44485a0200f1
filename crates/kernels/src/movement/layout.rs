//! The axes of the operations that only move elements.

use super::{Axis, StridedCopy};

/// The strides of a contiguous tensor.
fn contiguous(lengths: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; lengths.len()];
    for axis in (1..lengths.len()).rev() {
        // Overflows only where a length is 0 or the tensor is beyond memory.
        strides[axis - 1] = lengths[axis].wrapping_mul(strides[axis]);
    }
    strides
}

/// Axes of these lengths and strides.
fn axes(
    lengths: &[usize],
    input_strides: impl IntoIterator<Item = isize>,
    output_strides: &[usize],
) -> Vec<Axis> {
    let all = lengths.iter().zip(input_strides).zip(output_strides);
    all.map(|((length, input_stride), output_stride)| Axis {
        length: *length,
        input_stride,
        output_stride: *output_stride,
    })
    .collect()
}

/// Where the element with these indexes is.
fn place(indexes: &[usize], strides: &[usize]) -> usize {
    let all = indexes.iter().zip(strides);
    all.fold(0, |place, (index, stride)| place.wrapping_add(index.wrapping_mul(*stride)))
}

impl StridedCopy {
    /// TRANSPOSE: axis `k` of the output is axis `permutation[k]` of a contiguous input.
    ///
    /// # Panics
    /// If it is no permutation of the axes.
    pub fn transpose(lengths: &[usize], permutation: &[usize]) -> Self {
        let mut sorted = permutation.to_vec();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..lengths.len()), "{permutation:?} is no permutation");
        let of_input = contiguous(lengths);
        let output: Vec<usize> = permutation.iter().map(|axis| lengths[*axis]).collect();
        let input_strides = permutation.iter().map(|axis| of_input[*axis].cast_signed());
        Self::prepare(&axes(&output, input_strides, &contiguous(&output)), 0, 0)
    }

    /// SLICE and STRIDED_SLICE: for each axis of a contiguous input the first index, the step to the next
    /// one, and how many there are. The output is contiguous.
    ///
    /// # Panics
    /// If an index is outside of the input.
    pub fn slice(lengths: &[usize], begin: &[usize], steps: &[isize], counts: &[usize]) -> Self {
        let rank = lengths.len();
        assert!(
            [begin.len(), steps.len(), counts.len()] == [rank; 3],
            "a begin, a step and a count for each of {rank} axes"
        );
        let (of_input, of_output) = (contiguous(lengths), contiguous(counts));
        if !counts.contains(&0) {
            for axis in 0..rank {
                let [last, begin, length] =
                    [counts[axis] - 1, begin[axis], lengths[axis]].map(|it| it as i128);
                let end = begin + last * steps[axis] as i128;
                let inside = 0..length;
                assert!(inside.contains(&begin) && inside.contains(&end), "a slice of the outside");
            }
        }
        let all = steps.iter().zip(&of_input);
        let input_strides = all.map(|(step, stride)| step.wrapping_mul(stride.cast_signed()));
        Self::prepare(&axes(counts, input_strides, &of_output), place(begin, &of_input), 0)
    }

    /// A contiguous tensor's place inside of a contiguous larger one of the same rank: an input of
    /// CONCATENATION, or what PAD surrounds.
    ///
    /// # Panics
    /// If it does not fit in there.
    pub fn piece(lengths: &[usize], output: &[usize], at: &[usize]) -> Self {
        let rank = lengths.len();
        assert!([output.len(), at.len()] == [rank; 2], "tensors of different ranks");
        for axis in 0..rank {
            let room = output[axis].checked_sub(at[axis]);
            assert!(
                room.is_some_and(|room| lengths[axis] <= room),
                "a piece outside of the output"
            );
        }
        let (of_input, of_output) = (contiguous(lengths), contiguous(output));
        let input_strides = of_input.into_iter().map(usize::cast_signed);
        Self::prepare(&axes(lengths, input_strides, &of_output), 0, place(at, &of_output))
    }

    /// Axes of what [`Self::mirror_pad`] is meant for, at most: each may be cut into three spans, and every
    /// combination of them is a copy.
    pub const MOST_MIRRORED_AXES: usize = 6;

    /// MIRROR_PAD of a contiguous tensor: by axis how many elements go before and behind it, and how many
    /// of those at its ends are not repeated. Copies that together write the output once.
    ///
    /// # Panics
    /// If a border is longer than what is mirrored.
    pub fn mirror_pad(lengths: &[usize], borders: &[[usize; 2]], skipped: usize) -> Vec<Self> {
        assert_eq!(lengths.len(), borders.len(), "a border for each axis");
        if lengths.contains(&0) {
            return Vec::new();
        }
        let all = lengths.iter().zip(borders);
        let padded: Vec<usize> =
            all.clone().map(|(length, [before, behind])| before + length + behind).collect();
        let (of_input, of_output) = (contiguous(lengths), contiguous(&padded));
        // By axis, what is before, in and behind the tensor: where it begins in the input and in
        // the output, how many elements, and in which direction.
        let spans: Vec<[(usize, usize, usize, isize); 3]> = all
            .map(|(length, [before, behind])| {
                assert!(before.max(behind) + skipped <= *length, "more than there is to mirror");
                let first = (before + skipped).saturating_sub(1);
                let last = length - usize::from(*behind > 0) * (1 + skipped);
                [
                    (first, 0, *before, -1),
                    (0, *before, *length, 1),
                    (last.min(length - 1), before + length, *behind, -1),
                ]
            })
            .collect();
        let combinations = 3_usize.pow(u32::try_from(lengths.len()).unwrap_or(u32::MAX));
        (0..combinations)
            .filter_map(|mut number| {
                let (mut from, mut to, mut axes) = (0, 0, Vec::with_capacity(lengths.len()));
                for (axis, spans) in spans.iter().enumerate() {
                    let (input, output, length, direction) = spans[number % 3];
                    number /= 3;
                    if length == 0 {
                        return None;
                    }
                    from += input * of_input[axis];
                    to += output * of_output[axis];
                    axes.push(Axis {
                        length,
                        input_stride: direction * of_input[axis].cast_signed(),
                        output_stride: of_output[axis],
                    });
                }
                Some(Self::prepare(&axes, from, to))
            })
            .collect()
    }
}
