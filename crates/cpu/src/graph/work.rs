//! What nodes do, beyond the operations that models have.

use hal::FusedActivation;
use kernels::convolution::Shape;
use kernels::elementwise::Step;
use ops::AnyOperation;

/// What a node does.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// An operation as the model has it.
    Operation(AnyOperation),
    /// Nothing: the output's bytes are the input's, under other lengths.
    View,
    /// CONV_2D, GROUPED_CONV_2D or DEPTHWISE_CONV_2D of NHWC images, or FULLY_CONNECTED, with a
    /// constant filter and bias, and what could be merged into it. Inputs: image, filter, bias, and
    /// the summand, if it has one. To FULLY_CONNECTED every row of the input is a pixel.
    Convolution(Convolution),
    /// Functions of floats, element by element, one after the other. The first input is the value
    /// that they begin with, the others are operands of steps.
    Chain(Vec<Step>),
    /// A function of 8 bits, element by element: by the stored input's bits the stored output's.
    Table(Box<[u8; 256]>),
}

/// See [`Work::Convolution`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Convolution {
    pub(crate) shape: Shape,
    /// How the filter lies: `[1, height, width, depth_out]`, or `[depth_out, height, width, depth]`.
    pub(crate) is_depthwise: bool,
    /// Whether a tensor of the output's shape is added to the result, before the activation. Floats
    /// only.
    pub(crate) has_summand: bool,
    pub(crate) finish: Finish,
}

/// What a result goes through at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It is clamped.
    Clamp(FusedActivation),
    /// `x * clamp(x + 3, 0, 6) / 6`, of floats only.
    HardSwish,
}

impl Finish {
    pub(crate) const NONE: Self = Self::Clamp(FusedActivation::None);
}
