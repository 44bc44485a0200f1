//! [`Shape`]: the sizes of a convolution.

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
    /// How many convolutions, each of its own channels, lie beside each other; at least 1.
    pub groups: usize,
}

/// The largest size in any dimension, so that positions can be computed in `isize`.
const LARGEST: usize = 1 << 31;

impl Shape {
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
        let product = |sizes: &[usize]| {
            let product =
                sizes.iter().try_fold(1_usize, |product, &size| product.checked_mul(size));
            product.is_some_and(|product| isize::try_from(product).is_ok())
        };
        pairs.iter().flatten().all(|&size| size < LARGEST)
            && self.stride.iter().chain(&self.dilation).all(|&step| step > 0)
            && self.groups > 0
            && self.input_channels.is_multiple_of(self.groups)
            && self.output_channels.is_multiple_of(self.groups)
            && product(&[self.batch, self.input[0], self.input[1], self.input_channels.max(1), 8])
            && product(&[
                self.batch,
                self.output[0],
                self.output[1],
                self.output_channels.max(1),
                8,
            ])
            && product(&[self.filter[0], self.filter[1], self.input_channels.max(1), 8])
            && product(&[
                self.filter[0],
                self.filter[1],
                self.input_channels.max(1) / self.groups.min(self.input_channels.max(1)),
                self.output_channels.max(1),
                8,
            ])
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

    /// Multiplications and additions, padding counted as if it were multiplied.
    pub fn operations(&self) -> u64 {
        let products = self.output_pixels() as u128 * self.filter_values() as u128;
        u64::try_from(2 * products).unwrap_or(u64::MAX)
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
    /// none if it lies in the padding.
    pub fn input_position(&self, axis: usize, output: usize, tap: usize) -> Option<usize> {
        let position = output * self.stride[axis] + tap * self.dilation[axis];
        position.checked_sub(self.padding_before[axis]).filter(|&p| p < self.input[axis])
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(input: usize, filter: usize) -> Shape {
        Shape {
            batch: 1,
            input: [input; 2],
            input_channels: 4,
            output: [input; 2],
            output_channels: 6,
            filter: [filter; 2],
            stride: [1; 2],
            dilation: [1; 2],
            padding_before: [filter / 2; 2],
            groups: 1,
        }
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

    proptest! {
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
