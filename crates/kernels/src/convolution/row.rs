//! [`copy_row`]: rows of images with the padding around them.

use super::Shape;
use crate::Image;
use crate::team::Pace;

/// Copies a row of an image, counted from the padding above it on, behind the padding in front of it, as much of it as there is
/// room for; the rest is padding.
pub(super) fn copy_row<T: Copy>(
    shape: &Shape,
    input: Image<'_, T>,
    padding: T,
    [image, row]: [usize; 2],
    to: &mut [T],
    pace: &mut Pace<'_>,
) {
    let (channels, [height, width]) = (shape.input_channels, shape.input);
    let row = row.checked_sub(shape.padding_before[0]).filter(|&row| row < height);
    let mut fill = |to: &mut [T]| {
        for block in pace.blocks(to.len(), 1) {
            to[block].fill(padding);
        }
    };
    let Some(row) = row else { return fill(to) };
    let before = shape.padding_before[1].saturating_mul(channels).min(to.len());
    let (left, to) = to.split_at_mut(before);
    fill(left);
    let (to, right) = to.split_at_mut((width * channels).min(to.len()));
    fill(right);
    let from = &input.values[(image * height + row) * width * input.pixel_stride..];
    if input.pixel_stride == channels {
        for block in pace.blocks(to.len(), 1) {
            to[block.clone()].copy_from_slice(&from[block]);
        }
    } else {
        let pixels = from.chunks(input.pixel_stride);
        for (to, from) in to.chunks_exact_mut(channels).zip(pixels) {
            if pace.is_over(channels) {
                return;
            }
            to.copy_from_slice(&from[..channels]);
        }
    }
}
