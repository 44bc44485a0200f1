//! How filters move over images, and in which order the axes of images are.

use super::builder::GraphBuilder;
use nnhal_hal::OperandId;

/// The paddings that have names.
pub const SAME: i32 = 1;
pub const VALID: i32 = 2;

/// A length as operations take it.
pub fn int(length: u32) -> i32 {
    i32::try_from(length).expect("a small number")
}

/// How a filter moves along one axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    taps: u32,
    stride: u32,
    dilation: u32,
    before: u32,
    after: u32,
}

impl Axis {
    fn reach(self) -> u32 {
        (self.taps - 1) * self.dilation + 1
    }

    /// The output's length; `None` if there is no room for the filter.
    fn output(self, length: u32, scheme: Option<i32>) -> Option<u32> {
        let padded = match scheme {
            Some(SAME) => return Some(length.div_ceil(self.stride)),
            Some(_) => length,
            None => length + self.before + self.after,
        };
        Some(padded.checked_sub(self.reach())? / self.stride + 1)
    }
}

/// How a filter moves: height, width.
pub struct Window {
    axes: [Axis; 2],
    /// A padding by name, or by numbers.
    scheme: Option<i32>,
    /// Height and width of the output.
    pub output: [u32; 2],
}

impl Window {
    /// For an image of this height and width. With a scheme that is given, or any.
    pub fn draw(
        builder: &mut GraphBuilder<'_>,
        image: [u32; 2],
        scheme: Option<i32>,
        dilated: bool,
    ) -> Self {
        let random = &mut builder.random;
        loop {
            let drawn = random.pick(&[Some(SAME), Some(SAME), Some(VALID), None]);
            let scheme = scheme.or(drawn);
            let taps =
                random.pick(&[[1, 1], [1, 1], [3, 3], [3, 3], [3, 3], [5, 5], [1, 3], [2, 4]]);
            let stride = random.pick(&[[1, 1], [1, 1], [2, 2], [1, 2]]);
            let dilation = if dilated { random.pick(&[1, 1, 1, 2]) } else { 1 };
            let axes = [0, 1].map(|axis: usize| {
                let alone =
                    Axis { taps: taps[axis], stride: stride[axis], dilation, before: 0, after: 0 };
                let most = alone.reach() - 1;
                Axis { before: random.length(0, most), after: random.length(0, most), ..alone }
            });
            let output = [0, 1].map(|axis: usize| axes[axis].output(image[axis], scheme));
            if let [Some(height), Some(width)] = output {
                return Self { axes, scheme, output: [height, width] };
            }
        }
    }

    pub fn taps(&self) -> [u32; 2] {
        self.axes.map(|axis| axis.taps)
    }

    pub fn padding(&self) -> Vec<i32> {
        let [height, width] = self.axes;
        match self.scheme {
            Some(scheme) => vec![scheme],
            None => [width.before, width.after, height.before, height.after].map(int).to_vec(),
        }
    }

    pub fn strides(&self) -> [i32; 2] {
        let [height, width] = self.axes;
        [width.stride, height.stride].map(int)
    }

    /// What follows the activation, if anything needs to.
    pub fn dilations(&self, builder: &mut GraphBuilder<'_>, order: Order) -> Vec<OperandId> {
        let [height, width] = self.axes;
        let is_dilated = height.dilation > 1 || width.dilation > 1;
        if !is_dilated && order == Order::Nhwc {
            return vec![];
        }
        let mut operands = vec![builder.bool(order == Order::Nchw)];
        if is_dilated {
            operands.extend(self.dilation_factors(builder));
        }
        operands
    }

    fn dilation_factors(&self, builder: &mut GraphBuilder<'_>) -> Vec<OperandId> {
        let [height, width] = self.axes;
        builder.ints(&[width.dilation, height.dilation].map(int))
    }
}

/// How an operation takes the axes of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Nhwc,
    Nchw,
}

impl Order {
    /// Mostly that of NHWC.
    pub fn draw(builder: &mut GraphBuilder<'_>) -> Self {
        if builder.random.one_in(4) { Self::Nchw } else { Self::Nhwc }
    }

    /// Batch, height, width and channels of a value's dimensions.
    pub fn image(self, dimensions: &[u32]) -> [u32; 4] {
        let [a, b, c, d] = dimensions[..] else { panic!("no image: {dimensions:?}") };
        if self == Self::Nchw { [a, c, d, b] } else { [a, b, c, d] }
    }

    /// The dimensions of a value with this batch, height, width and channels.
    pub fn dimensions(self, [batch, height, width, channels]: [u32; 4]) -> [u32; 4] {
        match self {
            Self::Nhwc => [batch, height, width, channels],
            Self::Nchw => [batch, channels, height, width],
        }
    }
}
