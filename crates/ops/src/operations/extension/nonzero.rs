//! WHERE: the indexes of the elements that are not 0.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | condition | any | bool8, float32, integers; quantized as stored |
//! | output 0 | output | `[number of elements that are not 0, rank]` | TENSOR_INT64 |
//!
//! In the order that the elements have in memory. How many there are only the values say.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::wide::wide;
use crate::shape::Shape;

/// WHERE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonzero;

impl Operation for Nonzero {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let rank = call.input(0).shape.rank().and_then(|rank| u32::try_from(rank).ok());
        Ok(vec![Shape::new(vec![None, rank])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let lengths = input.lengths()?;
        let is_set: Vec<bool> = if input.is_float() {
            collected(call, input.f32s()?.into_iter().map(|it| it != 0.0))
        } else {
            collected(call, wide(input)?.into_iter().map(|it| it != 0))
        }?;
        let mut count = 0_u32;
        call.each(&is_set, |is_set| count += u32::from(*is_set))?;
        let rank = u32::try_from(lengths.len()).unwrap_or(u32::MAX);
        let dimensions = vec![count, rank];
        let mut indexes: Vec<i64> = output.allocate(&dimensions)?;
        let mut index = vec![0_i64; lengths.len()];
        call.each(&is_set, |is_set| {
            if *is_set {
                indexes.extend_from_slice(&index);
            }
            for (at, length) in index.iter_mut().zip(&lengths).rev() {
                *at += 1;
                if (*at).cast_unsigned() < *length as u64 {
                    break;
                }
                *at = 0;
            }
        })?;
        Ok(vec![crate::rules::wide::stored(output, dimensions, &indexes)?])
    }
}

fn collected(
    call: &Call<'_>,
    truths: impl ExactSizeIterator<Item = bool>,
) -> Result<Vec<bool>, Fault> {
    call.collect(truths.len(), truths)
}
