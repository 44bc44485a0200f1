//! GATHER_SLICES: blocks of a tensor, which begin where rows of indexes say.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any but a scalar | any |
//! | input 1 | indexes | `[..., depth]` | TENSOR_INT32 |
//! | input 2 | axes | `[depth]`, different axes of the input | TENSOR_INT32 |
//! | input 3 | sizes | `[rank of the input]`, 0 to the length of the axis | TENSOR_INT32 |
//! | output 0 | output | `...` of the indexes, then the sizes | as the input; same scale, zero point |
//!
//! A block begins at 0 along axes that are not listed. One that would leave the input begins as near to its
//! index as it fits.

use super::reduce_window::for_each_index;
use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::{Elements, strides};
use crate::shape::Shape;

/// GATHER_SLICES.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GatherSlices {
    /// Which axis of the input each index of a row is of.
    pub axes: Vec<usize>,
    /// A block's length along each axis.
    pub sizes: Vec<u32>,
}

impl Operation for GatherSlices {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, sizes) = (call.input(0), call.input(3));
        validate_axes(input, call.input(1), call.input(2))?;
        sizes.expect_rank(1)?;
        sizes.expect_length(0, input.shape.rank().and_then(|rank| u32::try_from(rank).ok()))?;
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let axes = axes(call.input(2), call.input(0))?;
        Ok(Self { axes, sizes: call.input(3).shape_given()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, indexes, sizes) = (call.input(0), call.input(1), call.input(3));
        if let Some(lengths) = input.shape.lengths() {
            sizes.expect_length(0, u32::try_from(lengths.len()).ok())?;
            for (size, length) in self.sizes.iter().zip(lengths) {
                if let Some(length) = length.filter(|length| size > length) {
                    return Err(sizes.wrong("value", size, format!("at most {length}")));
                }
            }
        }
        let Some(outer) = rows_of(indexes, self.axes.len())? else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        let sizes = self.sizes.iter().copied().map(Some);
        Ok(vec![Shape::new(outer.iter().copied().chain(sizes).collect::<Vec<_>>())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, indexes, output) = (call.input(0), call.input(1), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        let strides = strides(&lengths);
        let mut elements = Elements::to(output, &dimensions)?;
        if let (Some((run, outer)), false) = (self.sizes.split_last(), dimensions.contains(&0)) {
            let bytes = input.bytes()?;
            for row in indexes.i32s()?.chunks_exact(self.axes.len()) {
                let starts = row.iter().zip(&self.axes).map(|(index, axis)| {
                    let last = lengths[*axis] - self.sizes[*axis] as usize;
                    usize::try_from(*index).unwrap_or(0).min(last) * strides[*axis]
                });
                let first: usize = starts.sum();
                for_each_index(call, outer, &strides[..outer.len()], |place, _| {
                    elements.append_run(bytes, first + place, *run as usize)
                })?;
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}

/// What tensors of blocks, rows of indexes and the axes that these are of have in common.
pub(super) fn validate_axes(
    tensor: &Argument<'_>,
    indexes: &Argument<'_>,
    axes: &Argument<'_>,
) -> Result<(), Fault> {
    tensor.expect_rank_in(1..=usize::MAX)?;
    indexes.expect_rank_in(1..=usize::MAX)?;
    axes.expect_rank(1)?;
    let rows = indexes.shape.lengths().and_then(<[Option<u32>]>::last);
    axes.expect_length(0, rows.copied().flatten())
}

/// The different axes of a tensor that are listed.
pub(super) fn axes(given: &Argument<'_>, tensor: &Argument<'_>) -> Result<Vec<usize>, Fault> {
    let mut axes = Vec::new();
    for axis in given.i32_per_axis()? {
        let axis = given.axis_of(axis, tensor)?;
        if axes.contains(&axis) {
            return Err(given.wrong("value", axis, "each axis once"));
        }
        axes.push(axis);
    }
    match axes.is_empty() {
        true => Err(given.wrong("shape", &given.shape, "1 axis or more")),
        false => Ok(axes),
    }
}

/// The lengths of `indexes` except the last one, which must be `depth`.
pub(super) fn rows_of<'a>(
    indexes: &'a Argument<'_>,
    depth: usize,
) -> Result<Option<&'a [Option<u32>]>, Fault> {
    let Some((last, outer)) = indexes.shape.lengths().and_then(<[Option<u32>]>::split_last) else {
        return Ok(None);
    };
    match last {
        Some(last) if *last as usize != depth => {
            Err(indexes.wrong("shape", &indexes.shape, format!("{depth} along the last axis")))
        }
        _ => Ok(Some(outer)),
    }
}
