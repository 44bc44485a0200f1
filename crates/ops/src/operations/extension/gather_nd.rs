//! GATHER_ND: parts of a tensor by the indexes of their first axes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | any |
//! | input 1 | indexes | `[..., depth]`, depth at most the rank of the input | TENSOR_INT32 |
//! | output 0 | output | `...` of the indexes, then the input's axes behind the first `depth`; `[1]` if nothing is left | as the input; same scale, zero point |
//!
//! An index outside of its axis is an error.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::{Elements, strides};
use crate::shape::Shape;

/// GATHER_ND.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GatherNd;

impl Operation for GatherNd {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        call.input(1).expect_rank_in(1..=usize::MAX)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, indexes) = (call.input(0), call.input(1));
        let (Some(lengths), Some(of_indexes)) = (input.shape.lengths(), indexes.shape.lengths())
        else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        let Some((Some(depth), outer)) = of_indexes.split_last() else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        let rest = lengths.get(*depth as usize..).ok_or_else(|| {
            let expected = format!("at most {} along the last axis", lengths.len());
            indexes.wrong("shape", &indexes.shape, expected)
        })?;
        let gathered = [outer, rest].concat();
        Ok(vec![Shape::new(if gathered.is_empty() { vec![Some(1)] } else { gathered })])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, indexes, output) = (call.input(0), call.input(1), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let places = Places::of(indexes, &input.lengths()?)?;
        let mut elements = Elements::to(output, &dimensions)?;
        if !dimensions.contains(&0) {
            for part in 0..places.rows {
                let first = places.first(part)?;
                elements.append_run(input.bytes()?, first, places.size)?;
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}

/// Where the parts are that rows of indexes name, in a tensor.
pub(super) struct Places<'a> {
    indexes: &'a Argument<'a>,
    values: Vec<i32>,
    /// Of the indexed axes.
    lengths: Vec<usize>,
    strides: Vec<usize>,
    /// Elements of a part.
    pub(super) size: usize,
    /// The number of parts.
    rows: usize,
}

impl<'a> Places<'a> {
    /// `lengths` are those of the tensor.
    pub(super) fn of(indexes: &'a Argument<'a>, lengths: &[usize]) -> Result<Self, Fault> {
        let of_indexes = indexes.lengths()?;
        let depth = of_indexes.last().copied().unwrap_or(0);
        let (Some(indexed), Some(rest)) = (lengths.get(..depth), lengths.get(depth..)) else {
            let expected = format!("at most {} along the last axis", lengths.len());
            return Err(indexes.wrong("shape", &indexes.shape, expected));
        };
        let strides = strides(lengths);
        let outer = &of_indexes[..of_indexes.len().saturating_sub(1)];
        let product = |lengths: &[usize]| {
            let empty = lengths.contains(&0);
            lengths.iter().fold(usize::from(!empty), |all, length| all.saturating_mul(*length))
        };
        Ok(Self {
            indexes,
            values: indexes.i32s()?,
            lengths: indexed.to_vec(),
            strides: strides[..depth].to_vec(),
            size: product(rest),
            rows: product(outer),
        })
    }

    /// The position of a part's first element.
    pub(super) fn first(&self, part: usize) -> Result<usize, Fault> {
        let depth = self.lengths.len();
        let row = &self.values[part * depth..(part + 1) * depth];
        row.iter().zip(&self.lengths).zip(&self.strides).try_fold(
            0_usize,
            |first, ((index, length), stride)| {
                let place = usize::try_from(*index).ok().filter(|index| index < length);
                let place = place.ok_or_else(|| {
                    self.indexes.wrong("value", index, format!("0 or more, below {length}"))
                })?;
                Ok(first.saturating_add(place.saturating_mul(*stride)))
            },
        )
    }
}
