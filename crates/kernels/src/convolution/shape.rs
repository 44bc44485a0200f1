//! [`Shape`]: the sizes of a convolution.

use crate::preparation::product;
use crate::prepared::multiply_adds;
use crate::team::part;
use std::ops::Range;

/// The sizes of a convolution of images `[batch, height, width, channels]`; pairs are height, width.
///
/// An output pixel `(y, x)` sees the input pixels
/// `(y * stride[0] + i * dilation[0] - padding_before[0],
///   x * stride[1] + j * dilation[1] - padding_before[1])`
/// for `i`, `j` below `filter`. Those outside of the input count as zero, on all sides, so the
/// padding behind needs no number. The channels of input and output are cut into `groups`; an output
/// channel sees the input channels of its own group. Depthwise convolution is the case where a group
/// is one input channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// How many images.
    pub batch: usize,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Channels of the input, a multiple of `groups`.
    pub input_channels: usize,
    /// Height and width of the output.
    pub output: [usize; 2],
    /// Channels of the output, a multiple of `groups`.
    pub output_channels: usize,
    /// Height and width of the filter.
    pub filter: [usize; 2],
    /// From one output pixel to the next, in input pixels; at least 1.
    pub stride: [usize; 2],
    /// From one filter tap to the next, in input pixels; at least 1.
    pub dilation: [usize; 2],
    /// Rows above and columns left of the input that count as zero.
    pub padding_before: [usize; 2],
    /// How many convolutions, each of its own channels, are beside each other; at least 1.
    pub groups: usize,
}

/// The largest size in any dimension, so that positions can be computed in `isize`.
const LARGEST: usize = 1 << 31;

/// Taps that see padding, for each that does not, of a shape that [is not mostly
/// padding](Shape::is_mostly_padding).
const MOST_PADDING: f64 = 32.0;

/// Positions that are looked at to estimate how many see the input.
const MOST_SAMPLES: usize = 4096;

/// Values of a copy that is small in any case, and for each value of the operands those of one that is
/// small beside them.
const SMALL_COPY: usize = 64 << 10;
const MOST_COPIES: usize = 8;

#[allow(clippy::cast_precision_loss)] // Of shares.
impl Shape {
    /// The product of `rows` rows of `inputs` values with weights `[units, inputs]`: every row is a pixel.
    pub fn matrix_product([rows, inputs, units]: [usize; 3]) -> Self {
        Self::same([rows, 1], [inputs, units], [1; 2], 1)
    }

    /// A convolution of one image with the padding that is called SAME: the least with which there is an output pixel
    /// for every step of the input, and no more of it before than behind.
    pub const fn same(
        input: [usize; 2],
        [input_channels, output_channels]: [usize; 2],
        filter: [usize; 2],
        stride: usize,
    ) -> Self {
        let output = [input[0].div_ceil(stride), input[1].div_ceil(stride)];
        let mut padding_before = [0; 2];
        let mut axis = 0;
        while axis < 2 {
            let seen = output[axis].saturating_sub(1) * stride + filter[axis];
            padding_before[axis] = seen.saturating_sub(input[axis]) / 2;
            axis += 1;
        }
        Self {
            batch: 1,
            input,
            input_channels,
            output,
            output_channels,
            filter,
            stride: [stride; 2],
            dilation: [1; 2],
            padding_before,
            groups: 1,
        }
    }

    /// The operation and the filter, for names of kernels: `conv2d 3x3`.
    pub(crate) fn name(&self, is_depthwise: bool) -> String {
        let [height, width] = self.filter;
        let is_column = self.batch == 1 && self.input[1] == 1 && self.output == self.input;
        let operation = match self.groups {
            _ if is_depthwise => "depthwise conv2d",
            1 if is_column && self.is_matrix_product() => return "fully connected".to_owned(),
            1 => "conv2d",
            _ => "grouped conv2d",
        };
        format!("{operation} {height}x{width}")
    }

    /// Whether the sizes make a convolution that can be computed: strides, dilations and groups are
    /// not zero, the groups divide the channels, and no number of values is beyond memory.
    pub fn is_valid(&self) -> bool {
        let pairs = [
            self.input,
            self.output,
            self.filter,
            self.stride,
            self.dilation,
            self.padding_before,
            [self.input_channels, self.output_channels],
            [self.batch, self.groups],
        ];
        let fits = |sizes: &[usize]| {
            product(sizes).is_some_and(|product| isize::try_from(product).is_ok())
        };
        let [inputs, outputs] =
            [self.input_channels, self.output_channels].map(|channels| channels.max(1));
        let [height, width] = self.filter;
        pairs.iter().flatten().all(|&size| size < LARGEST)
            && self.stride.iter().chain(&self.dilation).all(|&step| step > 0)
            && self.groups > 0
            && self.input_channels.is_multiple_of(self.groups)
            && self.output_channels.is_multiple_of(self.groups)
            && fits(&[self.batch, self.input[0], self.input[1], inputs, 8])
            && fits(&[self.batch, self.output[0], self.output[1], outputs, 8])
            && fits(&[height, width, inputs, 8])
            && fits(&[height, width, inputs / self.groups.min(inputs), outputs, 8])
            && [0, 1].into_iter().all(|axis| {
                // The farthest row that is looked at.
                let steps = self.output[axis].checked_mul(self.stride[axis]);
                let taps = self.filter[axis].checked_mul(self.dilation[axis]);
                let far = steps.zip(taps).and_then(|(steps, taps)| steps.checked_add(taps));
                far.is_some_and(|far| far < isize::MAX.unsigned_abs() / 2)
            })
    }

    /// # Panics
    /// If the sizes are not [valid](Self::is_valid).
    pub(crate) fn check(&self) {
        assert!(self.is_valid(), "not the shape of a convolution: {self:?}");
    }

    /// Convolutions along images of one column as along images of one row: the pixels are where they were, and kernels, which
    /// compute pixels side by side, find more of them. All other shapes as they are.
    #[must_use]
    pub fn along_rows(self) -> Self {
        let is_column = [self.input, self.output, self.filter].iter().all(|it| it[1] == 1);
        if !is_column || self.filter[0] == 1 || self.padding_before[1] > 0 {
            return self;
        }
        let row = |[height, width]: [usize; 2]| [width, height];
        Self {
            input: row(self.input),
            output: row(self.output),
            filter: row(self.filter),
            stride: row(self.stride),
            dilation: row(self.dilation),
            padding_before: row(self.padding_before),
            ..self
        }
    }

    /// Pixels of the input.
    pub fn input_pixels(&self) -> usize {
        self.batch * self.input[0] * self.input[1]
    }

    /// Pixels of the output.
    pub fn output_pixels(&self) -> usize {
        self.batch * self.output[0] * self.output[1]
    }

    /// Input channels that an output channel sees.
    pub fn group_input_channels(&self) -> usize {
        self.input_channels / self.groups
    }

    /// Output channels of a group.
    pub fn group_output_channels(&self) -> usize {
        self.output_channels / self.groups
    }

    /// Height times width of the filter.
    pub fn taps(&self) -> usize {
        self.filter[0] * self.filter[1]
    }

    /// Values of the filter: `[output_channels, filter[0], filter[1], group_input_channels]`, or for
    /// a depthwise convolution `[1, filter[0], filter[1], output_channels]`.
    pub fn filter_values(&self) -> usize {
        self.output_channels * self.taps() * self.group_input_channels()
    }

    /// Whether taps see so much more of the padding than of the input that a kernel which multiplies
    /// both takes far longer than one that passes over the padding: filters that are larger than the
    /// image, or whose taps or output pixels are farther from each other than it is wide.
    pub fn is_mostly_padding(&self) -> bool {
        let pairs = [0, 1].map(|axis| self.output[axis] as f64 * self.filter[axis] as f64);
        let seen = [0, 1].map(|axis| self.seen_share(axis));
        pairs[0] * pairs[1] > 0.0 && seen[0] * seen[1] * MOST_PADDING < 1.0
    }

    /// Of all pairs of an output position and a tap along an axis, how many see the input, from 0 to 1.
    fn seen_share(&self, axis: usize) -> f64 {
        let steps =
            [(self.output[axis], self.stride[axis]), (self.filter[axis], self.dilation[axis])];
        let [fewer, more] = if steps[0].0 < steps[1].0 { steps } else { [steps[1], steps[0]] };
        let [padding, input] = [self.padding_before[axis], self.input[axis]];
        // Of the fewer all, or enough to know.
        let samples = fewer.0.min(MOST_SAMPLES);
        let seen: usize = (0..samples)
            .map(|sample| {
                let at = part(fewer.0, samples, sample).start * fewer.1;
                let steps = |end: usize| end.saturating_sub(at).div_ceil(more.1).min(more.0);
                steps(padding + input) - steps(padding)
            })
            .sum();
        seen as f64 / (samples as f64 * more.0 as f64)
    }

    /// Whether a copy of this many values, of the input with padding, is small beside what is read and written anyway.
    pub(crate) fn is_copy_small(&self, copied: usize) -> bool {
        let values = |pixels: usize, channels: usize| pixels.saturating_mul(channels);
        let operands = values(self.input_pixels(), self.input_channels)
            .saturating_add(values(self.output_pixels(), self.output_channels))
            .saturating_add(self.filter_values());
        Self::is_small_beside(copied, operands)
    }

    /// Whether a copy of this many values is small beside operands of this many.
    pub(crate) fn is_small_beside(copied: usize, operands: usize) -> bool {
        copied <= SMALL_COPY.max(operands.saturating_mul(MOST_COPIES))
    }

    /// Multiplications and additions, padding counted as if it were multiplied.
    pub fn operations(&self) -> u64 {
        multiply_adds(&[self.output_pixels(), self.filter_values()])
    }

    /// Whether output pixel `p` depends on input pixel `p` alone: a matrix product of the pixels
    /// with the filter.
    pub fn is_matrix_product(&self) -> bool {
        self.filter == [1, 1]
            && self.stride == [1, 1]
            && self.padding_before == [0, 0]
            && self.input == self.output
    }

    /// The input row (`axis` 0) or column (`axis` 1) that an output position sees through a tap, or
    /// none if it is in the padding.
    pub fn input_position(&self, axis: usize, output: usize, tap: usize) -> Option<usize> {
        let position = output * self.stride[axis] + tap * self.dilation[axis];
        position.checked_sub(self.padding_before[axis]).filter(|&p| p < self.input[axis])
    }

    /// How many rows (`axis` 0) or columns (`axis` 1) of the input and its padding some outputs side by side see, from the first tap of
    /// the first one to the last tap of the last one.
    pub(crate) fn reach(&self, axis: usize, outputs: usize) -> usize {
        let last = outputs.saturating_sub(1).saturating_mul(self.stride[axis]);
        let taps = self.filter[axis].saturating_sub(1).saturating_mul(self.dilation[axis]);
        last.saturating_add(taps).saturating_add(1)
    }

    /// The taps of an axis through which an output position sees the input.
    pub(crate) fn seen_taps(&self, axis: usize, output: usize) -> Range<usize> {
        let first = output * self.stride[axis];
        let taps = |end: usize| {
            end.saturating_sub(first).div_ceil(self.dilation[axis]).min(self.filter[axis])
        };
        let padding = self.padding_before[axis];
        taps(padding)..taps(padding + self.input[axis])
    }

    /// The number of an input pixel, counted through all images.
    #[inline(always)]
    pub(crate) fn input_pixel(&self, [image, y, x]: [usize; 3]) -> usize {
        (image * self.input[0] + y) * self.input[1] + x
    }

    /// The output positions from the first to before the second see nothing but the input through
    /// all taps of an axis; those before and behind see padding.
    pub fn interior(&self, axis: usize) -> (usize, usize) {
        let [stride, padding] = [self.stride[axis], self.padding_before[axis]];
        let reach = self.filter[axis].saturating_sub(1) * self.dilation[axis];
        let end = match (self.input[axis] + padding).checked_sub(reach + 1) {
            Some(last) => (last / stride + 1).min(self.output[axis]),
            None => 0,
        };
        (padding.div_ceil(stride).min(end), end)
    }
}

#[cfg(test)]
#[allow(clippy::cast_precision_loss)] // Of small numbers.
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(input: usize, filter: usize) -> Shape {
        Shape::same([input; 2], [4, 6], [filter; 2], 1)
    }

    #[test]
    fn sizes_follow_from_each_other() {
        let shape = Shape { groups: 2, ..plain(5, 3) };
        assert!(shape.is_valid() && !shape.is_matrix_product());
        assert_eq!((shape.input_pixels(), shape.output_pixels(), shape.taps()), (25, 25, 9));
        assert_eq!((shape.filter_values(), shape.operations()), (6 * 9 * 2, 2 * 25 * 6 * 9 * 2));
        assert!(plain(5, 1).is_matrix_product());
    }

    #[test]
    fn what_cannot_be_computed_is_not_valid() {
        let good = plain(5, 3);
        for bad in [
            Shape { stride: [0, 1], ..good },
            Shape { dilation: [1, 0], ..good },
            Shape { groups: 0, ..good },
            Shape { groups: 4, ..good },
            Shape { batch: 1 << 30, output: [1 << 30, 1 << 30], ..good },
            Shape { input: [1 << 40, 1], ..good },
        ] {
            assert!(!bad.is_valid(), "{bad:?}");
        }
        assert!(Shape { batch: 0, ..good }.is_valid());
        assert!(Shape { input_channels: 0, ..good }.is_valid());
    }

    #[test]
    fn padding_that_outweighs_the_input_is_recognized() {
        let good = plain(9, 3);
        assert!(!good.is_mostly_padding());
        assert!(!plain(1, 3).is_mostly_padding());
        let far = 1 << 30;
        for bad in [
            plain(1, 7),
            plain(4, 99),
            Shape { stride: [far, 1], output: [90, 9], padding_before: [far, 1], ..good },
            Shape { dilation: [far, far], filter: [30, 30], ..good },
            Shape { filter: [1 << 20, 1], padding_before: [1 << 19, 0], ..good },
            Shape { output: [1 << 20, 1 << 20], ..good },
        ] {
            assert!(bad.is_mostly_padding(), "{bad:?}");
        }
        assert!(!Shape { output: [0, 9], ..good }.is_mostly_padding());
        assert!(!Shape { filter: [0, 0], ..good }.is_mostly_padding());
    }

    proptest! {
        #[test]
        fn the_share_that_is_seen_is_counted(
            input in 0_usize..12, output in 1_usize..12, filter in 1_usize..12,
            stride in 1_usize..20, dilation in 1_usize..20, padding in 0_usize..20,
        ) {
            let shape = Shape {
                input: [1, input], output: [1, output], filter: [1, filter],
                stride: [1, stride], dilation: [1, dilation], padding_before: [0, padding],
                ..plain(1, 1)
            };
            let sees = |(x, tap): (usize, usize)| shape.input_position(1, x, tap).is_some();
            let pairs = (0..output).flat_map(|x| (0..filter).map(move |tap| (x, tap)));
            let seen = pairs.filter(|pair| sees(*pair)).count();
            for x in 0..output {
                let taps = (0..filter).filter(|tap| sees((x, *tap)));
                prop_assert!(taps.eq(shape.seen_taps(1, x)));
            }
            let found = shape.seen_share(1) * output as f64 * filter as f64;
            prop_assert!((found - seen as f64).abs() < 1e-6, "{} and not {}", found, seen);
        }

        #[test]
        fn a_column_sees_along_rows_what_it_saw(
            batch in 1_usize..3, input in 1_usize..12, output in 1_usize..12, filter in 1_usize..6,
            strides in [1_usize..4, 1..4], dilation in 1_usize..4, padding in 0_usize..8, wide in 1_usize..3,
        ) {
            let shape = Shape {
                batch, input: [input, wide], output: [output, wide], filter: [filter, 1],
                stride: strides, dilation: [dilation, 3], padding_before: [padding, 0],
                ..plain(1, 1)
            };
            let row = shape.along_rows();
            if wide > 1 || filter == 1 {
                prop_assert_eq!(row, shape);
            } else {
                prop_assert!(row.is_valid() && row.output == [1, output]);
                for (at, tap) in (0..output).flat_map(|at| (0..filter).map(move |tap| (at, tap))) {
                    let of_column = shape.input_position(0, at, tap);
                    prop_assert_eq!(of_column, row.input_position(1, at, tap));
                    prop_assert_eq!(Some(0), row.input_position(0, 0, 0));
                    let pixels = of_column.map(|y| [shape.input_pixel([batch - 1, y, 0]), row.input_pixel([batch - 1, 0, y])]);
                    prop_assert!(pixels.is_none_or(|[a, b]| a == b));
                }
            }
        }

        #[test]
        fn the_interior_is_where_every_tap_sees_the_input(
            input in 0_usize..12, output in 0_usize..12, filter in 1_usize..6,
            stride in 1_usize..4, dilation in 1_usize..4, padding in 0_usize..8,
        ) {
            let shape = Shape {
                input: [1, input], output: [1, output], filter: [1, filter],
                stride: [1, stride], dilation: [1, dilation], padding_before: [0, padding],
                ..plain(1, 1)
            };
            let (start, end) = shape.interior(1);
            prop_assert!(start <= end && end <= output);
            for x in 0..output {
                let inside = (0..filter).all(|tap| shape.input_position(1, x, tap).is_some());
                prop_assert_eq!(inside, (start..end).contains(&x));
            }
        }
    }
}
