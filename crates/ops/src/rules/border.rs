//! Borders: elements laid before and behind each axis of a tensor, as a tensor of paddings says.

use crate::call::{Argument, Output, Since};
use crate::error::Fault;
use crate::rules::movement;
use crate::shape::Shape;
use nnhal_hal::{HalVersion, OperandType};

/// What is laid around one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Border {
    /// Elements before the first.
    pub before: u32,
    /// Elements behind the last.
    pub after: u32,
}

/// Demands that paddings have the shape `[axes, 2]`.
///
/// # Errors
/// They have another. What is not known passes.
pub fn validate(paddings: &Argument<'_>, axes: Option<usize>) -> Result<(), Fault> {
    paddings.expect_rank(2)?;
    paddings.expect_length(0, axes.and_then(|axes| u32::try_from(axes).ok()))?;
    paddings.expect_length(1, Some(2))
}

/// Reads the borders of all axes, two numbers each.
///
/// # Errors
/// [`Fault::NotKnown`], or a number is negative.
pub fn decode(paddings: &Argument<'_>) -> Result<Vec<Border>, Fault> {
    let length = |padding: i32| {
        u32::try_from(padding).map_err(|_| paddings.wrong("value", padding, "0 or more"))
    };
    let values = paddings.i32s()?;
    let (pairs, _) = values.as_chunks();
    let border = |[before, after]: &[i32; 2]| {
        Ok(Border { before: length(*before)?, after: length(*after)? })
    };
    pairs.iter().map(border).collect()
}

/// The shape of a tensor with borders around all axes, as far as it is known.
///
/// # Errors
/// There are not as many borders as axes, or a length leaves 32 bits.
pub fn shape(
    input: &Argument<'_>,
    paddings: &Argument<'_>,
    borders: &[Border],
) -> Result<Shape, Fault> {
    let Some(lengths) = input.shape.lengths() else {
        return Ok(Shape::of_rank(borders.len()));
    };
    if lengths.len() != borders.len() {
        return Err(paddings.wrong("shape", &paddings.shape, format!("[{}, 2]", lengths.len())));
    }
    let bordered = lengths.iter().zip(borders).map(|(length, border)| match length {
        Some(length) => border.around(paddings, *length).map(Some),
        None => Ok(None),
    });
    Ok(Shape::new(bordered.collect::<Result<Vec<_>, _>>()?))
}

/// A need for 1.2 of a `TENSOR_QUANT8_ASYMM` whose zero is not stored as 0: what is around it was
/// not defined before.
pub fn since(input: &Argument<'_>) -> Since {
    let is_new = input.operand_type == OperandType::TensorQuant8Asymm && input.zero_point != 0;
    Since::ALWAYS.and(HalVersion::V1_2, "a border around a zero point other than 0", is_new)
}

/// A tensor with borders that consist of one element; `dimensions` are those with the borders.
///
/// # Errors
/// As [`movement::copied`], or [`Fault::NotKnown`].
pub fn laid(
    input: &Argument<'_>,
    borders: &[Border],
    element: &[u8],
    output: &Argument<'_>,
    dimensions: Vec<u32>,
) -> Result<Output, Fault> {
    let lengths = input.lengths()?;
    let strides = movement::strides(&lengths);
    movement::moved_or_filled(input.bytes()?, output, dimensions, element, |axis, index| {
        Some(borders[axis].inside(index, lengths[axis])? * strides[axis])
    })
}

impl Border {
    /// The length of an axis with this border.
    ///
    /// # Errors
    /// It leaves 32 bits; the error is about `paddings`.
    pub fn around(self, paddings: &Argument<'_>, length: u32) -> Result<u32, Fault> {
        let sum = u64::from(self.before) + u64::from(length) + u64::from(self.after);
        u32::try_from(sum).map_err(|_| {
            let found = format!("{} and {}", self.before, self.after);
            paddings.wrong("value", found, format!("at most 2^32 - 1 with the {length} between"))
        })
    }

    /// The index on an axis of `length` elements of what is at `index` of the axis with this
    /// border; `None` on the border.
    pub fn inside(self, index: usize, length: usize) -> Option<usize> {
        index.checked_sub(self.before as usize).filter(|index| *index < length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_by_hand() {
        let border = Border { before: 2, after: 1 };
        let inside = |index| border.inside(index, 3);
        let expected = [None, None, Some(0), Some(1), Some(2), None];
        assert_eq!([0, 1, 2, 3, 4, 5].map(inside), expected);
        assert_eq!(border.inside(2, 0), None);
    }
}
