//! [`Activation`]: what a cell does to its sums.

use crate::vector::{Kernel, Simd, functions};

/// The activation of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The number itself.
    None,
    /// `max(0, x)`
    Relu,
    /// `min(1, max(-1, x))`
    Relu1,
    /// `min(6, max(0, x))`
    Relu6,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
}

impl Activation {
    /// Of a vector. NaN stays NaN.
    #[inline(always)]
    pub(super) fn apply<S: Simd>(self, simd: S, x: S::F) -> S::F {
        let clamped =
            |least, greatest| functions::clamp(simd, x, simd.splat(least), simd.splat(greatest));
        match self {
            Self::None => x,
            Self::Relu => simd.max(simd.splat(0.0), x),
            Self::Relu1 => clamped(-1.0, 1.0),
            Self::Relu6 => clamped(0.0, 6.0),
            Self::Tanh => functions::tanh(simd, x),
            Self::Sigmoid => functions::logistic(simd, x),
        }
    }
}

/// Applies an activation to numbers.
pub(super) struct Activate<'a>(pub Activation, pub &'a mut [f32]);

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(activation, values) = self;
        for values in values.chunks_mut(S::LANES) {
            let activated = activation.apply(simd, simd.load_partial(values, 0.0));
            simd.store_partial(activated, values);
        }
    }
}
