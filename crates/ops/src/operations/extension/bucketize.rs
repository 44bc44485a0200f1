//! BUCKETIZE: how many boundaries each element has reached.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float64, int32, int64 |
//! | input 1 | boundaries | `[number]`, in rising order | TENSOR_FLOAT32 |
//! | output 0 | output | as the input | TENSOR_INT32 |
//!
//! A NaN has reached all of them. Numbers of 64 bits are compared as such.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::TENSOR_FLOAT64;
use crate::operation::Operation;
use crate::rules::wide::wide;
use crate::shape::Shape;

/// BUCKETIZE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bucketize;

impl Operation for Bucketize {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(1).expect_rank(1)
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, given, output) = (call.input(0), call.input(1), call.output(0));
        let dimensions = input.dimensions()?;
        let boundaries = given.f32s()?;
        if !boundaries.is_sorted() {
            return Err(given.wrong("value", "no rising order", "a rising order"));
        }
        let reached = |element: f64| {
            let count = boundaries
                .partition_point(|boundary| element.is_nan() || element >= f64::from(*boundary));
            i32::try_from(count).unwrap_or(i32::MAX)
        };
        // Of boundaries with 24 significant bits none is between an integer and the nearest float.
        #[allow(clippy::cast_precision_loss)]
        let buckets = if input.operand_type == TENSOR_FLOAT64 {
            let elements = input.elements(f64::from_le_bytes)?;
            output.collect(&dimensions, elements.into_iter().map(reached))?
        } else if input.is_float() {
            output.collect(&dimensions, input.f32s()?.into_iter().map(|it| reached(it.into())))?
        } else {
            output.collect(&dimensions, wide(input)?.into_iter().map(|it| reached(it as f64)))?
        };
        Ok(vec![output.with_integers(dimensions, &buckets)?])
    }
}
