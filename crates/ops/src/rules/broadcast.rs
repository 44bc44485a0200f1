//! Broadcasting: aligning shapes at their last axes and repeating along axes of length 1.

use crate::call::{Argument, Call};
use crate::error::Fault;
use crate::shape::Shape;

/// The common shape of two arguments, as far as it is known.
///
/// # Errors
/// Two lengths along an axis differ and neither is 1.
pub fn shape(call: &Call<'_>, a: &Argument<'_>, b: &Argument<'_>) -> Result<Shape, Fault> {
    let (Some(of_a), Some(of_b)) = (a.shape.lengths(), b.shape.lengths()) else {
        return Ok(Shape::UNKNOWN);
    };
    let rank = of_a.len().max(of_b.len());
    let padded = |lengths: &[Option<u32>]| {
        let mut all = vec![Some(1); rank - lengths.len()];
        all.extend_from_slice(lengths);
        all
    };
    let mut common = Vec::with_capacity(rank);
    for pair in padded(of_a).into_iter().zip(padded(of_b)) {
        common.push(match pair {
            (Some(1), other) | (other, Some(1)) => other,
            (Some(one), Some(other)) if one == other => Some(one),
            (Some(_), Some(_)) => {
                return Err(call.wrong(
                    "shapes",
                    format!("{} and {}", a.shape, b.shape),
                    "shapes that broadcast",
                ));
            }
            // An unknown length beside a known one that is not 1 must turn out to be that or 1.
            (Some(known), None) | (None, Some(known)) => Some(known),
            (None, None) => None,
        });
    }
    Ok(Shape::new(common))
}

/// The common dimensions of two arguments of which everything is known, and for each element of
/// the result, in order, the positions of the elements that are combined.
///
/// # Errors
/// As [`shape`], or [`Fault::NotKnown`].
pub fn pairs(
    call: &Call<'_>,
    a: &Argument<'_>,
    b: &Argument<'_>,
) -> Result<(Vec<u32>, impl Iterator<Item = (usize, usize)> + use<>), Fault> {
    let known = shape(call, a, b)?.to_known();
    let dimensions = known.ok_or_else(|| call.not_known("dimensions"))?;
    let common: Vec<usize> = dimensions.iter().map(|length| *length as usize).collect();
    let of_a = positions(&a.lengths()?, &common);
    Ok((dimensions, of_a.zip(positions(&b.lengths()?, &common))))
}

/// For each element of a tensor of shape `common`, in order, the position of the element of a
/// tensor of shape `lengths` that broadcasting pairs it with.
pub fn positions(lengths: &[usize], common: &[usize]) -> impl Iterator<Item = usize> + use<> {
    let missing = common.len() - lengths.len();
    let mut strides = vec![0; common.len()];
    let mut stride: usize = 1;
    for (axis, length) in lengths.iter().enumerate().rev() {
        if *length != 1 {
            strides[axis + missing] = stride;
        }
        // Overflows only where a length is 0, and then there are no positions.
        stride = stride.wrapping_mul(*length);
    }
    let mut index = vec![0; common.len()];
    let mut next = (!common.contains(&0)).then_some(0);
    let common = common.to_vec();
    std::iter::from_fn(move || {
        let position = next?;
        let mut following = position;
        next = None;
        for axis in (0..common.len()).rev() {
            index[axis] += 1;
            following += strides[axis];
            if index[axis] < common[axis] {
                next = Some(following);
                break;
            }
            following -= strides[axis] * common[axis];
            index[axis] = 0;
        }
        Some(position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(lengths: &[usize], common: &[usize]) -> Vec<usize> {
        positions(lengths, common).collect()
    }

    #[test]
    fn positions_by_hand() {
        assert_eq!(all(&[2, 1], &[2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(all(&[3], &[2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(all(&[1, 2, 1, 2], &[2, 2, 2, 2])[..8], [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(all(&[], &[2]), [0, 0]);
        assert_eq!(all(&[], &[]), [0]);
    }

    #[test]
    fn an_axis_of_length_0_leaves_nothing_however_long_the_others_are() {
        let huge = u32::MAX as usize;
        assert_eq!(all(&[1, 0], &[2, 0]), [0; 0]);
        assert_eq!(all(&[huge, huge, huge, 0], &[huge, huge, huge, 0]), [0; 0]);
    }

    proptest! {
        /// The position is the one that the index has after axes of length 1 are set to 0.
        #[test]
        fn positions_are_those_of_the_index(
            axes in prop::collection::vec((1..4_usize, any::<bool>()), 0..5),
            missing in 0..3_usize,
        ) {
            let common: Vec<usize> = axes.iter().map(|(length, _)| *length).collect();
            let own: Vec<usize> = axes
                .iter()
                .skip(missing)
                .map(|(length, repeated)| if *repeated { 1 } else { *length })
                .collect();
            let missing = common.len() - own.len();
            for (flat, position) in positions(&own, &common).enumerate() {
                let mut rest = flat;
                let mut index: Vec<usize> =
                    common.iter().rev().map(|length| { let at = rest % length; rest /= length; at }).collect();
                index.reverse();
                let expected = own.iter().zip(&index[missing..]).fold(0, |at, (length, index)| {
                    at * length + if *length == 1 { 0 } else { *index }
                });
                prop_assert_eq!(position, expected);
            }
            prop_assert_eq!(positions(&own, &common).count(), common.iter().product::<usize>());
        }
    }
}
