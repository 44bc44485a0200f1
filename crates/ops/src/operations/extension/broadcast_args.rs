//! BROADCAST_ARGS: the shape of two tensors that are broadcast together, of their shapes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | shape 1 | `[rank 1]` | TENSOR_INT32, TENSOR_INT64 |
//! | input 1 | shape 2 | `[rank 2]` | as shape 1 |
//! | output 0 | output | the longer of both | as shape 1 |
//!
//! Shapes are compared from their last length on, the missing ones being 1. Of two lengths one is 1, or
//! they are the same.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// BROADCAST_ARGS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BroadcastArgs;

impl Operation for BroadcastArgs {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(1)?;
        call.input(1).expect_rank(1)
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let [a, b] = [0, 1].map(|at| call.input(at).shape.length(0));
        Ok(vec![Shape::new(vec![a.zip(b).map(|(a, b)| a.max(b))])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b) = (wide(call.input(0))?, wide(call.input(1))?);
        let rank = a.len().max(b.len());
        let mut lengths = call.room(rank)?;
        for from_end in (0..rank).rev() {
            call.work(1)?;
            let [a, b] = [&a, &b]
                .map(|shape| shape.len().checked_sub(from_end + 1).map_or(1, |axis| shape[axis]));
            lengths.push(match (a, b) {
                (1, length) | (length, 1) => length,
                (a, b) if a == b => a,
                (a, b) => {
                    let expected = format!("1 or {a}, as in shape 1 {from_end} before the end");
                    return Err(call.input(1).wrong("value", b, expected));
                }
            });
        }
        let rank = u32::try_from(rank).map_err(|_| call.wrong("rank", rank, "32 bits"))?;
        Ok(vec![stored(call.output(0), vec![rank], &lengths)?])
    }
}
