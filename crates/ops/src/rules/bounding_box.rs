//! Axis-aligned bounding boxes: how they overlap, and how a network's deltas move and scale them.

use crate::call::Argument;
use crate::error::Fault;
use crate::rules::real;
use nnhal_hal::OperandType;

/// Scale of boxes, image sizes and anchors that are quantized to 16 bits. Zero points are 0.
pub const QUANTIZED_SCALE: f32 = 0.125;

/// A box by two opposite corners, in whatever unit its coordinates have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundingBox {
    /// Left edge.
    pub x1: f32,
    /// Upper edge.
    pub y1: f32,
    /// Right edge.
    pub x2: f32,
    /// Lower edge.
    pub y2: f32,
}

impl BoundingBox {
    /// From left, upper, right and lower edge.
    pub fn new([x1, y1, x2, y2]: [f32; 4]) -> Self {
        Self { x1, y1, x2, y2 }
    }

    /// Left, upper, right and lower edge.
    pub fn to_array(self) -> [f32; 4] {
        [self.x1, self.y1, self.x2, self.y2]
    }

    /// Whether the corners are in order. NaN is in no order.
    pub fn is_valid(self) -> bool {
        self.x1 <= self.x2 && self.y1 <= self.y2
    }

    /// The right edge's distance from the left one.
    pub fn width(self) -> f32 {
        self.x2 - self.x1
    }

    /// The lower edge's distance from the upper one.
    pub fn height(self) -> f32 {
        self.y2 - self.y1
    }

    /// The common area divided by the area of both together. It is 0 where both together have no
    /// area, so that empty boxes never compete with each other.
    pub fn intersection_over_union(self, other: Self) -> f32 {
        let width = self.x2.min(other.x2) - self.x1.max(other.x1);
        let height = self.y2.min(other.y2) - self.y1.max(other.y1);
        let common = width.max(0.0) * height.max(0.0);
        let together = self.width() * self.height() + other.width() * other.height() - common;
        if together > 0.0 { common / together } else { 0.0 }
    }

    /// The box moved and scaled: `dx` and `dy` move the centre by this many widths and heights, `dw`
    /// and `dh` are natural logarithms of the factors for width and height.
    #[must_use]
    pub fn transformed(self, [dx, dy, dw, dh]: [f32; 4]) -> Self {
        let half_width = dw.exp() * self.width() / 2.0;
        let half_height = dh.exp() * self.height() / 2.0;
        let x = f32::midpoint(self.x1, self.x2) + dx * self.width();
        let y = f32::midpoint(self.y1, self.y2) + dy * self.height();
        Self { x1: x - half_width, y1: y - half_height, x2: x + half_width, y2: y + half_height }
    }

    /// The box with its corners brought into an image. NaN stays NaN.
    #[must_use]
    pub fn clipped(self, [height, width]: [f32; 2]) -> Self {
        let clip = |x, limit| real::minimum(real::maximum(x, 0.0), limit);
        Self {
            x1: clip(self.x1, width),
            y1: clip(self.y1, height),
            x2: clip(self.x2, width),
            y2: clip(self.y2, height),
        }
    }
}

/// The boxes of a tensor of which the last length is 4, or a multiple of it, in the order
/// `[x1, y1, x2, y2]`.
///
/// # Errors
/// [`Fault::NotKnown`], or the corners of a box are not in order.
pub fn read(argument: &Argument<'_>) -> Result<Vec<BoundingBox>, Fault> {
    let elements = argument.reals()?;
    let (boxes, _) = elements.as_chunks();
    let mut valid_boxes = argument.room(boxes.len())?;
    for piece in boxes.chunks(1 << 12) {
        argument.check_interrupt()?;
        for edges in piece {
            valid_boxes.push(valid(argument, BoundingBox::new(*edges))?);
        }
    }
    Ok(valid_boxes)
}

/// The box itself, if its corners are in order.
fn valid(argument: &Argument<'_>, bounding_box: BoundingBox) -> Result<BoundingBox, Fault> {
    if bounding_box.is_valid() {
        return Ok(bounding_box);
    }
    let found = format!("{:?}", bounding_box.to_array());
    Err(argument.wrong("value", found, "boxes [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2"))
}

/// Demands the scale and zero point of 16-bit coordinates. Floats pass.
///
/// # Errors
/// They are others.
pub fn expect_quantization(argument: &Argument<'_>) -> Result<(), Fault> {
    match argument.operand_type {
        OperandType::TensorQuant16Asymm | OperandType::TensorQuant16Symm => {
            argument.expect_quantization(QUANTIZED_SCALE, 0)
        }
        _ => Ok(()),
    }
}

/// Demands four times a length along an axis: four numbers for each of `count` things. What is not
/// known passes.
///
/// # Errors
/// The length is another.
pub fn expect_four_each(
    argument: &Argument<'_>,
    axis: usize,
    count: Option<u32>,
) -> Result<(), Fault> {
    match (argument.shape.length(axis), count) {
        (Some(found), Some(count)) if u64::from(found) != 4 * u64::from(count) => {
            let expected = format!("length {} along axis {axis}", 4 * u64::from(count));
            Err(argument.wrong("shape", &argument.shape, expected))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn boxes(x1: f32, y1: f32, x2: f32, y2: f32) -> BoundingBox {
        BoundingBox { x1, y1, x2, y2 }
    }

    #[test]
    fn overlaps_by_hand() {
        // 2 by 2 of 4 by 4 and 4 by 4: 4 / (16 + 16 - 4).
        let (a, b) = (boxes(0.0, 0.0, 4.0, 4.0), boxes(2.0, 2.0, 6.0, 6.0));
        assert!((a.intersection_over_union(b) - 1.0 / 7.0).abs() < 1e-7);
        // Edges that touch have no area; distances in both directions are not one either.
        assert_eq!(a.intersection_over_union(boxes(4.0, 0.0, 8.0, 4.0)), 0.0);
        assert_eq!(a.intersection_over_union(boxes(5.0, 5.0, 8.0, 8.0)), 0.0);
        let empty = boxes(1.0, 1.0, 1.0, 1.0);
        assert_eq!(empty.intersection_over_union(empty), 0.0);
    }

    #[test]
    fn moving_scaling_and_clipping_by_hand() {
        // Centre (4, 3), width 4, height 2. Half a width to the right, one height up; twice as wide.
        let moved = boxes(2.0, 2.0, 6.0, 4.0).transformed([0.5, -1.0, 2.0_f32.ln(), 0.0]);
        for (found, expected) in moved.to_array().into_iter().zip([2.0, 0.0, 10.0, 2.0]) {
            assert!((found - expected).abs() < 1e-5, "{moved:?}");
        }
        let clipped = boxes(-1.0, 2.0, 9.0, f32::NAN).clipped([3.0, 8.0]);
        assert_eq!((clipped.x1, clipped.y1, clipped.x2), (0.0, 2.0, 8.0));
        assert!(clipped.y2.is_nan());
    }

    #[test]
    fn corners_out_of_order_are_not_valid() {
        assert!(boxes(1.0, 1.0, 1.0, 1.0).is_valid());
        assert!(!boxes(1.0, 1.0, 0.0, 1.0).is_valid());
        assert!(!boxes(1.0, 1.0, 1.0, 0.0).is_valid());
        assert!(!boxes(1.0, 1.0, f32::NAN, 1.0).is_valid());
    }

    prop_compose! {
        fn any_box()(
            x in -8.0..8.0_f32, y in -8.0..8.0_f32, width in 0.0..9.0_f32, height in 0.0..9.0_f32,
        ) -> BoundingBox {
            boxes(x, y, x + width, y + height)
        }
    }

    proptest! {
        #[test]
        fn overlap_is_mutual_and_between_0_and_1(a in any_box(), b in any_box()) {
            let overlap = a.intersection_over_union(b);
            prop_assert!((0.0..=1.0 + 1e-6).contains(&overlap));
            prop_assert_eq!(overlap, b.intersection_over_union(a));
        }

        #[test]
        fn a_box_covers_itself_and_no_delta_leaves_it(a in any_box()) {
            prop_assume!(a.width() > 0.1 && a.height() > 0.1);
            prop_assert!((a.intersection_over_union(a) - 1.0).abs() < 1e-5);
            let same = a.transformed([0.0; 4]);
            for (found, expected) in same.to_array().into_iter().zip(a.to_array()) {
                prop_assert!((found - expected).abs() < 1e-5);
            }
        }
    }
}
