//! SHAPE: the lengths of a tensor.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | any |
//! | output 0 | output | `[rank]` | int32, int64 |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::wide::stored;
use crate::shape::Shape;

/// SHAPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShapeOf;

impl Operation for ShapeOf {
    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let rank = call.input(0).shape.rank().and_then(|rank| u32::try_from(rank).ok());
        Ok(vec![Shape::new(vec![rank])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let lengths = call.input(0).dimensions()?;
        let dimensions = vec![u32::try_from(lengths.len()).unwrap_or(u32::MAX)];
        let lengths: Vec<i64> = lengths.into_iter().map(i64::from).collect();
        Ok(vec![stored(call.output(0), dimensions, &lengths)?])
    }
}
