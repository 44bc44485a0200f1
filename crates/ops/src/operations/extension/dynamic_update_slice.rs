//! DYNAMIC_UPDATE_SLICE: a tensor with a block replaced.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | any |
//! | input 1 | update | the same rank, no axis longer | as the input |
//! | input 2 | begins | `[rank]`: where the block begins, moved so that it is inside | TENSOR_INT32 |
//! | output 0 | output | as the input | as the input; same scale, zero point |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::{Elements, strides};
use crate::shape::Shape;

/// DYNAMIC_UPDATE_SLICE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicUpdateSlice;

impl Operation for DynamicUpdateSlice {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        if let Some(rank) = input.shape.rank() {
            call.input(1).expect_rank(rank)?;
            call.input(2).expect_length(0, u32::try_from(rank).ok())?;
        }
        call.input(2).expect_rank(1)?;
        call.output(0).expect_quantized_as(input)
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, update) = (call.input(0), call.input(1));
        for axis in 0..input.shape.rank().unwrap_or(0) {
            if let (Some(whole), Some(part)) = (input.shape.length(axis), update.shape.length(axis))
                && part > whole
            {
                let expected = format!("at most {whole} along axis {axis}");
                return Err(update.wrong("shape", &update.shape, expected));
            }
        }
        Ok(vec![input.shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, update, output) = (call.input(0), call.input(1), call.output(0));
        Self::validate(call)?;
        self.output_shapes(call)?;
        let dimensions = input.dimensions()?;
        let (whole, part) = (input.lengths()?, update.lengths()?);
        let mut begins = Vec::with_capacity(whole.len());
        for ((begin, whole), part) in call.input(2).i32s()?.into_iter().zip(&whole).zip(&part) {
            begins.push(usize::try_from(begin).unwrap_or(0).min(whole - part));
        }
        let strides = strides(&part);
        let mut elements = Elements::to(output, &dimensions)?;
        let count: usize = if whole.contains(&0) { 0 } else { whole.iter().product() };
        let mut index = vec![0_usize; whole.len()];
        for at in 0..count {
            // The position within the block, if it is in there.
            let inside = index.iter().zip(&begins).zip(&part).zip(&strides).try_fold(
                0_usize,
                |sum, (((index, begin), length), stride)| {
                    let place = index.checked_sub(*begin).filter(|place| place < length)?;
                    Some(sum + place * stride)
                },
            );
            match inside {
                Some(place) => elements.append(update.bytes()?, place)?,
                None => elements.append(input.bytes()?, at)?,
            }
            for (at, length) in index.iter_mut().zip(&whole).rev() {
                *at += 1;
                if *at < *length {
                    break;
                }
                *at = 0;
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}
