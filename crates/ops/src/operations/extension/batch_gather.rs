//! GATHER: parts of length 1 along an axis, in the order that indexes give, for each batch by itself.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | any |
//! | input 1 | axis | scalar, negative from the end | INT32 |
//! | input 2 | indexes | the batch dimensions of the input, then any | TENSOR_INT32, from 0 to the length of the axis |
//! | input 3 | batch dims | scalar, at most the axis | INT32; left out: 0 |
//! | output 0 | output | the input's, with the shape of the indexes behind the batch dimensions in place of the axis | as the input; same scale, zero point |

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::Elements;
use crate::shape::Shape;

/// GATHER, by batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchGather {
    /// The axis that the indexes are of.
    pub axis: usize,
    /// The first axes, that input and indexes have in common.
    pub batch: usize,
}

impl Operation for BatchGather {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (input, axis) = (call.input(0), call.input(1));
        let axis = axis.axis_of(axis.i32()?, input)?;
        let batch = match call.optional(3) {
            None => 0,
            Some(given) => {
                let batch = given.non_negative()? as usize;
                let rank = call.input(2).shape.rank();
                if batch > axis || rank.is_some_and(|rank| batch > rank) {
                    let expected = format!("at most the axis {axis} and the rank of the indexes");
                    return Err(given.wrong("value", batch, expected));
                }
                batch
            }
        };
        Ok(Self { axis, batch })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, indexes) = (call.input(0), call.input(2));
        let lengths = input.shape.lengths().ok_or_else(|| input.not_known("rank"))?;
        let Some(of_indexes) = indexes.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        let Some(inserted) = of_indexes.get(self.batch..) else {
            let expected = format!("rank {} or more", self.batch);
            return Err(indexes.wrong("shape", &indexes.shape, expected));
        };
        let mut gathered = lengths.to_vec();
        for axis in 0..self.batch {
            indexes.expect_length(axis, lengths[axis])?;
            gathered[axis] = lengths[axis].or(of_indexes[axis]);
        }
        gathered.splice(self.axis..=self.axis, inserted.iter().copied());
        Ok(vec![Shape::new(gathered)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, indexes, output) = (call.input(0), call.input(2), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        let length = lengths[self.axis];
        let wanted = indexes.i32s()?;
        let mut elements = Elements::to(output, &dimensions)?;
        if !dimensions.contains(&0) {
            let product = |lengths: &[usize]| lengths.iter().product::<usize>();
            let batches = product(&lengths[..self.batch]);
            let outer = product(&lengths[self.batch..self.axis]);
            let inner = product(&lengths[self.axis + 1..]);
            let of_batch = wanted.len() / batches.max(1);
            for batch in 0..batches {
                for row in batch * outer..(batch + 1) * outer {
                    for index in &wanted[batch * of_batch..(batch + 1) * of_batch] {
                        let place = usize::try_from(*index).ok().filter(|index| *index < length);
                        let place = place.ok_or_else(|| {
                            indexes.wrong("value", index, format!("0 or more, below {length}"))
                        })?;
                        let first = (row * length + place) * inner;
                        elements.append_run(input.bytes()?, first, inner)?;
                    }
                }
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}
