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

/// For each element of a tensor of shape `common`, in order, the position of the element of a
/// tensor of shape `lengths` that broadcasting pairs it with.
pub fn positions(lengths: &[usize], common: &[usize]) -> Vec<usize> {
    let count = common.iter().product();
    let mut strides = vec![0; common.len()];
    let mut stride = 1;
    for (axis, length) in lengths.iter().enumerate().rev() {
        if *length != 1 {
            strides[axis + common.len() - lengths.len()] = stride;
        }
        stride *= length;
    }
    let mut index = vec![0; common.len()];
    let mut positions = Vec::with_capacity(count);
    let mut position = 0;
    for _ in 0..count {
        positions.push(position);
        for axis in (0..common.len()).rev() {
            index[axis] += 1;
            position += strides[axis];
            if index[axis] < common[axis] {
                break;
            }
            position -= strides[axis] * common[axis];
            index[axis] = 0;
        }
    }
    positions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_by_hand() {
        assert_eq!(positions(&[2, 1], &[2, 3]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(positions(&[3], &[2, 3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(positions(&[1, 2, 1, 2], &[2, 2, 2, 2])[..8], [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(positions(&[1, 0], &[2, 0]), [0; 0]);
        assert_eq!(positions(&[], &[2]), [0, 0]);
    }
}
