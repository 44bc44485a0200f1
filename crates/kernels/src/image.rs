//! [`Image`] and [`ImageMut`]: pixels with channels, at a distance from each other.

/// Values of `[batch, height, width, channels]`, where a pixel begins `pixel_stride` values after the
/// one before it: channel `c` of pixel `p = (n * height + y) * width + x` lies at
/// `p * pixel_stride + c`. With a stride larger than the channels it is a part of a deeper image.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a, T> {
    /// From the first pixel's first channel on; at least to the last pixel's last channel.
    pub values: &'a [T],
    /// From one pixel to the next, in values; at least the number of channels.
    pub pixel_stride: usize,
}

/// As [`Image`], to be written. What lies between one pixel's channels and the next pixel is left
/// as it is.
#[derive(Debug)]
pub struct ImageMut<'a, T> {
    /// From the first pixel's first channel on; at least to the last pixel's last channel.
    pub values: &'a mut [T],
    /// From one pixel to the next, in values; at least the number of channels.
    pub pixel_stride: usize,
}

impl<'a, T> Image<'a, T> {
    /// Pixels of so many channels without gaps.
    pub fn dense(values: &'a [T], channels: usize) -> Self {
        Self { values, pixel_stride: channels }
    }
}

impl<'a, T> ImageMut<'a, T> {
    /// Pixels of so many channels without gaps.
    pub fn dense(values: &'a mut [T], channels: usize) -> Self {
        Self { values, pixel_stride: channels }
    }
}

/// How many values there must be, from the first pixel's first channel to the last pixel's last.
///
/// # Panics
/// If the stride is smaller than the channels, or the number is beyond what memory can hold.
pub(crate) fn values_needed(pixels: usize, channels: usize, pixel_stride: usize) -> usize {
    assert!(
        pixel_stride >= channels,
        "pixels of {channels} channels cannot be {pixel_stride} values apart"
    );
    if pixels == 0 || channels == 0 {
        return 0;
    }
    let last = (pixels - 1).checked_mul(pixel_stride).and_then(|last| last.checked_add(channels));
    last.filter(|&needed| isize::try_from(needed).is_ok()).expect("an image larger than memory")
}
