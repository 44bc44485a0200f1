//! What output pixels see of images of 8-bit numbers, as contiguous rows.

use super::images::Meaning;
use crate::convolution::Shape;
use crate::team::Pace;

/// Copies what an output pixel sees of a group; what it sees of the padding is the image's zero point. None if it is no longer
/// wanted.
///
/// # Panics
/// If the images or the row are smaller than the shape says.
pub(super) fn copy_window(
    shape: &Shape,
    (images, meanings): (&[u8], &[Meaning]),
    [group, row]: [usize; 2],
    to: &mut [u8],
    pace: &mut Pace<'_>,
) -> Option<()> {
    let [height, width] = shape.output;
    let (x, y, batch) = (row % width, row / width % height, row / width / height);
    let [in_height, in_width] = shape.input;
    let (pixel, channels) = (shape.input_channels, shape.group_input_channels());
    // It has 8 bits, unless it was no longer wanted.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let zero_point = meanings[batch].zero_point as u8;
    let seen = shape.seen_taps(1, x);
    // Whether the taps of a filter's row see pixels that are side by side.
    let is_plain = shape.dilation[1] == 1 && shape.groups == 1;
    let run = shape.filter[1] * channels;
    for (i, to) in to.chunks_exact_mut(run.max(1)).enumerate() {
        if pace.is_over(run / 16) {
            return None;
        }
        let Some(in_y) = shape.input_position(0, y, i) else {
            to.fill(zero_point);
            continue;
        };
        let line = &images[(batch * in_height + in_y) * in_width * pixel + group * channels..];
        let (before, rest) = to.split_at_mut(seen.start * channels);
        let (inside, behind) = rest.split_at_mut((seen.end - seen.start) * channels);
        // Mostly there is neither, and a call would take as long as the copy.
        for padding in [before, behind] {
            if !padding.is_empty() {
                padding.fill(zero_point);
            }
        }
        if is_plain {
            if let Some(first) = shape.input_position(1, x, seen.start)
                && !seen.is_empty()
            {
                copy_run(&line[first * channels..][..inside.len()], inside);
            }
            continue;
        }
        for (j, to) in seen.clone().zip(inside.chunks_exact_mut(channels.max(1))) {
            if let Some(in_x) = shape.input_position(1, x, j) {
                copy_run(&line[in_x * pixel..][..channels], to);
            }
        }
    }
    Some(())
}

/// Copies bytes: of some tens, as images of colours have them and small groups, without a call.
#[inline(always)]
fn copy_run(from: &[u8], to: &mut [u8]) {
    match to.len() {
        4..=7 => copy_ends::<4>(from, to),
        8..=15 => copy_ends::<8>(from, to),
        16..=32 => copy_ends::<16>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies the first `N` bytes and the last ones, which are all where there are no more than twice that.
#[inline(always)]
fn copy_ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
}
