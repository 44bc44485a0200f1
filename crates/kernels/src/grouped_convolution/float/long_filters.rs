//! [`LongFilters`]: grouped convolutions by filters of very many taps, as transformers for speech have them.
//!
//! The image is copied group by group, with its padding. There all that a row of the filter sees of a group are values one behind
//! the other, and so the rows of a product of matrices are read where they are, although they overlap.
#![allow(unsafe_code)]

use crate::convolution::Shape;
use crate::convolution::float::Layer;
use crate::gemm::float::{Arguments, Blocking, MOST_SEGMENTS, PackedProduct, Rows, RowsPlan};
use crate::preparation::product;
use crate::sharing::{Cut, ELEMENTS_OF_COPY, for_each_rows};
use crate::{Image, Images, LINE_BYTES, Line, Preparation, Team, TooLarge};
use std::ops::Range;

/// A grouped convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub(super) struct LongFilters {
    shape: Shape,
    product: PackedProduct,
}

/// Rows and columns of an image with the padding that is seen.
fn padded(shape: &Shape) -> [usize; 2] {
    [0, 1].map(|axis: usize| shape.reach(axis, shape.output[axis]))
}

/// Values of a group, of all images; none if they are beyond memory.
fn group_values(shape: &Shape) -> Option<usize> {
    let [height, width] = padded(shape);
    product(&[shape.batch, height, width, shape.group_input_channels()])
}

/// Values of the copy, in whole cache lines.
fn copied(shape: &Shape) -> Option<usize> {
    let values = group_values(shape)?.checked_mul(shape.groups)?;
    values.checked_next_multiple_of(LINE_BYTES / size_of::<f32>())
}

impl LongFilters {
    /// Whether it takes less time than copies of what each output pixel sees.
    pub(super) fn suits(shape: &Shape) -> bool {
        shape.groups > 1
            && shape.group_input_channels() > 0
            && shape.taps() > MOST_SEGMENTS
            && shape.filter[0] <= MOST_SEGMENTS
            && shape.dilation[1] == 1
            && copied(shape).is_some_and(|values| shape.is_copy_small(values))
    }

    /// # Errors
    /// If it takes more memory than it may.
    pub(super) fn new(
        shape: &Shape,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let beyond = || TooLarge::beyond_addresses("the copy of an image");
        let bytes = copied(shape).and_then(|values| values.checked_mul(size_of::<f32>()));
        let row = shape.stride[1].saturating_mul(shape.group_input_channels());
        let rows = RowsPlan {
            count: shape.output_pixels(),
            line: shape.output_pixels(),
            bytes: bytes.ok_or_else(beyond)?,
            row_bytes: row.saturating_mul(size_of::<f32>()),
            scratch_values: 0,
        };
        let depth = shape.taps() * shape.group_input_channels();
        let columns = [shape.groups, shape.group_output_channels()];
        let blocking = Blocking::for_columns(preparation.set(), shape.group_output_channels());
        let rows = (rows, shape.output[0] * shape.output[1]);
        let product = PackedProduct::new(rows, blocking, (depth, columns), layer, preparation)?;
        let this = Self { shape: *shape, product };
        preparation.check_scratch::<u8>(&[this.scratch_bytes()])?;
        Ok(this)
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        let copied = copied(&self.shape).unwrap_or(usize::MAX).saturating_mul(size_of::<f32>());
        copied.saturating_add(self.product.scratch_bytes())
    }

    /// # Panics
    /// If an image or the scratch memory is too small.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let shape = &self.shape;
        let Images { input, residual, output, .. } = images;
        input.check("input", shape.input_pixels(), shape.input_channels);
        let (values, of_group) = (copied(shape), group_values(shape));
        let (Some(values), Some(of_group)) = (values, of_group) else {
            unreachable!("`new` has found room for them");
        };
        let (copy, scratch) = scratch.split_at_mut(values * size_of::<f32>() / LINE_BYTES);
        let copy = &mut bytemuck::cast_slice_mut(copy)[..of_group * shape.groups];
        self.copy(team, input, copy);
        let rows = Located { shape, values: copy, of_group };
        self.product.run(team, Arguments { rows: &rows, residual, output, scratch });
    }

    /// Copies the image: `[groups, images, rows, columns, channels of a group]`.
    fn copy(&self, team: &mut Team, input: Image<'_, f32>, to: &mut [f32]) {
        let shape = &self.shape;
        let channels = shape.group_input_channels();
        let ([height, width], [above, left]) = (padded(shape), shape.padding_before);
        let row = width * channels;
        let cut = Cut { each: row, least: ELEMENTS_OF_COPY, multiple: 1 };
        for_each_rows(team, (to, row), cut, |part, to, mut pace| {
            for (index, to) in part.zip(to.chunks_exact_mut(row)) {
                if pace.is_over(row) {
                    return;
                }
                to.fill(0.0);
                let (image, y) = (index / height % shape.batch, index % height);
                let Some(y) = y.checked_sub(above).filter(|y| *y < shape.input[0]) else {
                    continue;
                };
                let first = index / height / shape.batch * channels;
                let to = to.chunks_exact_mut(channels).skip(left).take(shape.input[1]);
                for (x, to) in to.enumerate() {
                    let pixel = shape.input_pixel([image, y, x]) * input.pixel_stride;
                    to.copy_from_slice(&input.values[pixel + first..][..channels]);
                }
            }
        });
    }
}

/// The copy of an image, as [`LongFilters::copy`] makes it.
struct Located<'a> {
    shape: &'a Shape,
    values: &'a [f32],
    /// From one group to the next.
    of_group: usize,
}

// SAFETY: an address is that of an output pixel's first tap of a row of the filter in the first group, in an image of as many rows and
// columns as all output pixels see, as `padded` counts them; with `filter[1]` pixels from there on, without gaps. The
// other groups are copies of the same size, one behind the other.
unsafe impl Rows for Located<'_> {
    fn segments(&self) -> usize {
        self.shape.filter[0]
    }

    fn segment_depth(&self) -> usize {
        self.shape.filter[1] * self.shape.group_input_channels()
    }

    fn groups(&self) -> usize {
        self.shape.groups
    }

    fn group_distance(&self) -> usize {
        self.of_group
    }

    fn locate(&self, rows: Range<usize>, _: &mut [f32], to: &mut [*const f32]) {
        let Shape { output, stride, dilation, filter, .. } = *self.shape;
        assert!(rows.end <= self.shape.output_pixels(), "pixels that are not there");
        let [height, width] = padded(self.shape);
        let count = rows.len();
        for (index, pixel) in rows.enumerate() {
            let (line, x) = (pixel / output[1], pixel % output[1]);
            let (image, y) = (line / output[0], line % output[0]);
            for i in 0..filter[0] {
                let row = image * height + y * stride[0] + i * dilation[0];
                let first = (row * width + x * stride[1]) * self.shape.group_input_channels();
                to[i * count + index] = self.values[first..][..self.segment_depth()].as_ptr();
            }
        }
    }
}
