//! DYNAMIC_FULLY_CONNECTED: FULLY_CONNECTED of floats that are multiplied as integers of 8 bits.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 2 to 4 with a multiple of `input_size` elements | TENSOR_FLOAT32 |
//! | input 1 | weights | `[num_units, input_size]`, none 0 | TENSOR_QUANT8_ASYMM_SIGNED with zero point 0, TENSOR_QUANT8_SYMM_PER_CHANNEL with channel dimension 0 |
//! | input 2 | bias | `[num_units]` | TENSOR_FLOAT32 |
//! | input 3 | activation | scalar | INT32, see [`nnhal_hal::FusedActivation`] |
//! | output 0 | output | `[batch, num_units]` | TENSOR_FLOAT32 |
//!
//! The input's elements are read in order, `input_size` for each row of the batch. While it runs, each row is rounded
//! to integers by the range of its elements and 0 ([`dynamic_range::rounded`]), and the output is
//! `activation(sum(q * weight) / factor * scale + bias)`, where the sum has 32 bits and wraps, and the scale is the
//! weights' or that of the unit. Of a row with an element that is infinite or NaN, or whose range is infinite, all
//! outputs are NaN.
//!
//! It is what TensorFlow Lite computes of models with weights of 8 bits and no other quantization.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::operations::fully_connected::rows_and_units;
use crate::rules::{activation_range, dynamic_range, real};
use crate::shape::Shape;
use nnhal_hal::FusedActivation;

/// DYNAMIC_FULLY_CONNECTED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicFullyConnected {
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

impl Operation for DynamicFullyConnected {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let weights = call.input(1);
        call.input(0).expect_rank_in(2..=4)?;
        weights.expect_rank(2)?;
        call.input(2).expect_rank(1)?;
        dynamic_range::validate_weights(weights)?;
        rows_and_units(call).map(drop)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { activation: activation_range::decode(call.input(3))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::new(rows_and_units(call)?)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, weights, output) = (call.input(0).f32s()?, call.input(1), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let [_, input_size] = weights.lengths_of()?;
        let (stored, bias) = (weights.integers()?, call.input(2).f32s()?);
        let range = activation_range::real(self.activation);
        let mut elements = output.allocate(&dimensions)?;
        let mut row: Vec<i32> = call.room(input_size)?;
        for of_row in input.chunks_exact(input_size) {
            let factor = dynamic_range::rounded(call, of_row, &mut row)?;
            for (unit, of_unit) in stored.chunks_exact(input_size).enumerate() {
                let mut sum = 0_i32;
                call.each(row.iter().zip(of_unit), |(q, weight)| {
                    sum = sum.wrapping_add(q.wrapping_mul(*weight));
                })?;
                // Rounded once.
                let scale = f64::from(dynamic_range::scale(weights, unit));
                let product = f64::from(sum) / factor * scale;
                let sum = real::round(product + f64::from(bias[unit]));
                elements.push(activation_range::clamp(sum, range));
            }
        }
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}
