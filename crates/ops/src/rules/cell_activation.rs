//! Activations of recurrent cells.
//!
//! Source: `types.hal` 1.3, LSTM, for the numbers of TANH and SIGMOID. The definitions of RNN and SVDF name only the numbers of
//! fused activations; that they may be these too is how the reference implementation computes them. All are the numbers that
//! TensorFlow Lite has.

use crate::call::Argument;
use crate::error::Fault;
use crate::rules::recurrence::clip;

/// What a cell does to its sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Reads the activation of RNN, SVDF, or sequences of RNN.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or the number is no activation.
    pub fn decode(argument: &Argument<'_>) -> Result<Self, Fault> {
        let code = argument.i32()?;
        Self::of_code(code).ok_or_else(|| argument.wrong("value", code, "0 to 4 or 6"))
    }

    /// Reads the activation of an LSTM, which has no RELU1.
    ///
    /// # Errors
    /// As of [`Self::decode`].
    pub fn decode_of_lstm(argument: &Argument<'_>) -> Result<Self, Fault> {
        let code = argument.i32()?;
        let known = Self::of_code(code).filter(|known| *known != Self::Relu1);
        known.ok_or_else(|| argument.wrong("value", code, "0, 1, 3, 4 or 6"))
    }

    fn of_code(code: i32) -> Option<Self> {
        Some(match code {
            0 => Self::None,
            1 => Self::Relu,
            2 => Self::Relu1,
            3 => Self::Relu6,
            4 => Self::Tanh,
            6 => Self::Sigmoid,
            _ => return None,
        })
    }

    /// Of a sum. NaN stays NaN.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::None => x,
            Self::Relu => clip(x, 0.0, f64::INFINITY),
            Self::Relu1 => clip(x, -1.0, 1.0),
            Self::Relu6 => clip(x, 0.0, 6.0),
            Self::Tanh => x.tanh(),
            Self::Sigmoid => sigmoid(x),
        }
    }
}

/// `1 / (1 + exp(-x))`
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
