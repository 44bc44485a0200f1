//! [`Image`] and [`ImageMut`]: pixels with channels, at a distance from each other.

/// Values of `[batch, height, width, channels]`, where a pixel begins `pixel_stride` values after the
/// one before it: channel `c` of pixel `p = (n * height + y) * width + x` is at
/// `p * pixel_stride + c`. With a stride larger than the channels it is a part of a deeper image.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a, T> {
    /// From the first pixel's first channel on; at least to the last pixel's last channel.
    pub values: &'a [T],
    /// From one pixel to the next, in values; at least the number of channels.
    pub pixel_stride: usize,
}

/// As [`Image`], to be written. What is between one pixel's channels and the next pixel is left
/// as it is.
#[derive(Debug)]
pub struct ImageMut<'a, T> {
    /// From the first pixel's first channel on; at least to the last pixel's last channel.
    pub values: &'a mut [T],
    /// From one pixel to the next, in values; at least the number of channels.
    pub pixel_stride: usize,
}

impl<'a, T> Image<'a, T> {
    /// Pixels of this many channels without gaps.
    pub fn contiguous(values: &'a [T], channels: usize) -> Self {
        Self { values, pixel_stride: channels }
    }
}

impl<'a, T> ImageMut<'a, T> {
    /// Pixels of this many channels without gaps.
    pub fn contiguous(values: &'a mut [T], channels: usize) -> Self {
        Self { values, pixel_stride: channels }
    }
}

impl<T> Image<'_, T> {
    /// How many values there must be, as [`values_needed`].
    ///
    /// # Panics
    /// If there are fewer; `name` is what the image is called then.
    pub(crate) fn check(&self, name: &str, pixels: usize, channels: usize) -> usize {
        let needed = values_needed(pixels, channels, self.pixel_stride);
        assert!(self.values.len() >= needed, "the {name} is too small");
        needed
    }
}

impl<T> ImageMut<'_, T> {
    /// As [`Image::check`].
    pub(crate) fn check(&self, name: &str, pixels: usize, channels: usize) -> usize {
        Image { values: self.values, pixel_stride: self.pixel_stride }.check(name, pixels, channels)
    }
}

/// Where pixels are that are some of those of a larger image, in rows and columns at equal distances.
/// Distances are in values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// Height and width, in pixels that are meant.
    pub(crate) size: [usize; 2],
    /// The first value of the first pixel.
    pub(crate) first: usize,
    /// From a pixel to the next one of its row.
    pub(crate) pixel_stride: usize,
    /// From a row to the next one of its image.
    pub(crate) row_stride: usize,
    /// From an image to the next one.
    pub(crate) image_stride: usize,
}

impl Placement {
    /// The first value of a pixel, counted through all images.
    pub(crate) fn at(&self, pixel: usize) -> usize {
        let [height, width] = self.size;
        let (row, x) = (pixel / width, pixel % width);
        let (image, y) = (row / height, row % height);
        self.first + image * self.image_stride + y * self.row_stride + x * self.pixel_stride
    }

    /// How many values there must be for this many images, from the first one of all to the last one of
    /// the last pixel.
    pub(crate) fn values_needed(&self, images: usize, channels: usize) -> usize {
        let pixels = images * self.size[0] * self.size[1];
        if pixels == 0 || channels == 0 { 0 } else { self.at(pixels - 1) + channels }
    }
}

/// Where the pixels of an output are, or the rows of a matrix.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Places {
    /// This many values from one to the next.
    Even(usize),
    /// In lines, whose pixels are at equal distances.
    Lines(Placement),
}

impl Places {
    /// Where a pixel begins, counted through all images.
    pub(crate) fn start(&self, pixel: usize) -> usize {
        match self {
            Self::Even(stride) => pixel * stride,
            Self::Lines(placement) => placement.at(pixel),
        }
    }

    /// From a pixel to the next one of its line.
    pub(crate) fn stride(&self) -> usize {
        match self {
            Self::Even(stride) => *stride,
            Self::Lines(placement) => placement.pixel_stride,
        }
    }
}

/// How many values there must be, from the first pixel's first channel to the last pixel's last.
///
/// # Panics
/// If the stride is smaller than the channels, or the number is beyond what memory can hold.
pub(crate) fn values_needed(pixels: usize, channels: usize, pixel_stride: usize) -> usize {
    assert!(
        pixel_stride >= channels,
        "pixels of {channels} channels cannot have a stride of {pixel_stride} values"
    );
    if pixels == 0 || channels == 0 {
        return 0;
    }
    let last = (pixels - 1).checked_mul(pixel_stride).and_then(|last| last.checked_add(channels));
    last.filter(|&needed| isize::try_from(needed).is_ok()).expect("an image larger than memory")
}
