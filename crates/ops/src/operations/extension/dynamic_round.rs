//! DYNAMIC_ROUND: floats rounded to what 8 bits can hold of their range.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, ...]` | TENSOR_FLOAT32 |
//! | input 1 | symmetric | scalar | BOOL; left out: false |
//! | output 0 | output | as the input | TENSOR_FLOAT32 |
//!
//! Each element of the batch is rounded to integers by the range of its elements and 0
//! ([`dynamic_range::rounded`]), or if it is symmetric by the greatest magnitude of them
//! ([`dynamic_range::rounded_by_magnitude`]), and the output is `q / factor`. If one of them is infinite or NaN, or the
//! range is infinite, all of them are NaN.
//!
//! Before a convolution of floats it gives what TensorFlow Lite computes of layers with weights of 8 bits and no other
//! quantization.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{dynamic_range, real};
use crate::shape::Shape;

/// DYNAMIC_ROUND.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicRound {
    /// Whether 0 is in the middle of the range.
    pub is_symmetric: bool,
}

impl Operation for DynamicRound {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=8)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { is_symmetric: call.optional_bool(1)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        let elements = input.f32s()?;
        let mut rounded = output.allocate(&dimensions)?;
        let length = elements.len() / (dimensions[0] as usize).max(1);
        let mut integers: Vec<i32> = call.room(length)?;
        for part in elements.chunks_exact(length.max(1)) {
            let factor = if self.is_symmetric {
                dynamic_range::rounded_by_magnitude(call, part, &mut integers)?
            } else {
                dynamic_range::rounded(call, part, &mut integers)?
            };
            // Rounded once.
            call.each(&integers, |q| rounded.push(real::round(f64::from(*q) / factor)))?;
        }
        Ok(vec![output.with_f32s(dimensions, &rounded)?])
    }
}
