//! What nodes do, beyond the operations that models have.

use hal::FusedActivation;
use kernels::convolution::Shape;
use ops::AnyOperation;

/// What a node does.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// An operation as the model has it.
    Operation(AnyOperation),
    /// Nothing: the output's bytes are the input's, under other lengths.
    View,
    /// CONV_2D, GROUPED_CONV_2D or DEPTHWISE_CONV_2D of NHWC images with a constant filter and bias,
    /// and what could be merged into it. Inputs: image, filter, bias, and the summand, if it has one.
    Convolution(Convolution),
    /// FULLY_CONNECTED with constant weights and bias. Inputs: input, weights, bias.
    FullyConnected(Finish),
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
