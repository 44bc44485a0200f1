//! REVERSE_SEQUENCE: the first elements along one axis in reverse, as many as a length for each index of
//! another axis says.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | rank 2 or more | any |
//! | input 1 | lengths | `[length of the batch axis]`, each from 0 to the length of the sequence axis | TENSOR_INT32 |
//! | input 2 | sequence axis | scalar, negative from the end | INT32 |
//! | input 3 | batch axis | scalar, negative from the end, another one | INT32 |
//! | output 0 | output | as the input | as the input; same scale, zero point |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::Elements;
use crate::shape::Shape;

/// REVERSE_SEQUENCE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReverseSequence {
    /// Along which elements change places.
    pub sequence: usize,
    /// The axis whose indexes have a length each.
    pub batch: usize,
}

impl Operation for ReverseSequence {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(2..=usize::MAX)?;
        call.input(1).expect_rank(1)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let input = call.input(0);
        let axis = |at: usize| call.input(at).axis_of(call.input(at).i32()?, input);
        let (sequence, batch) = (axis(2)?, axis(3)?);
        if sequence == batch {
            return Err(call.input(3).wrong("value", batch, "another axis than the sequence's"));
        }
        Ok(Self { sequence, batch })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        call.input(1).expect_length(0, input.shape.length(self.batch))?;
        Ok(vec![input.shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output, given) = (call.input(0), call.output(0), call.input(1));
        self.output_shapes(call)?;
        let dimensions = input.dimensions()?;
        let lengths = input.lengths()?;
        let most = lengths[self.sequence];
        let given_lengths = given.i32s()?;
        let mut reversed: Vec<usize> = call.room(given_lengths.len())?;
        let mut wrong = None;
        call.each(given_lengths, |length| match usize::try_from(length) {
            Ok(count) if count <= most => reversed.push(count),
            _ => wrong = wrong.or(Some(length)),
        })?;
        if let Some(length) = wrong {
            return Err(given.wrong("value", length, format!("0 to {most}")));
        }
        let mut elements = Elements::to(output, &dimensions)?;
        if !dimensions.contains(&0) {
            // The axes behind both stay together.
            let last = self.sequence.max(self.batch);
            let run: usize = lengths[last + 1..].iter().product();
            let outer = &lengths[..=last];
            let strides = crate::rules::movement::strides(outer);
            let mut index = vec![0; outer.len()];
            let rows: usize = outer.iter().product();
            for _ in 0..rows {
                let (at, count) = (index[self.sequence], reversed[index[self.batch]]);
                let from = if at < count { count - 1 - at } else { at };
                let place = |axis: usize| if axis == self.sequence { from } else { index[axis] };
                let row: usize = (0..=last).map(|axis| place(axis) * strides[axis]).sum();
                elements.append_run(input.bytes()?, row * run, run)?;
                for (at, length) in index.iter_mut().zip(outer).rev() {
                    *at += 1;
                    if *at < *length {
                        break;
                    }
                    *at = 0;
                }
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}
