//! SCATTER_SLICES: a tensor, into which blocks are combined that begin where rows of indexes say.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any but a scalar | floats, integers, bool8; quantized as stored |
//! | input 1 | indexes | `[..., depth]` | TENSOR_INT32 |
//! | input 2 | updates | `...` of the indexes, then a block's lengths along each axis of the input | as the input |
//! | input 3 | axes | `[depth]`, different axes of the input | TENSOR_INT32 |
//! | input 4 | function | scalar, see [`ScatterSlices::function`] | INT32 |
//! | output 0 | output | as the input | as the input; same scale, zero point |
//!
//! A block begins at 0 along axes that are not listed. Elements of a block that are outside of the input are left
//! out. Blocks are combined in their order; integers wrap.

use super::gather_slices::{axes, rows_of, validate_axes};
use super::reduce_window::{Function, for_each_index};
use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::strides as strides_of;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// SCATTER_SLICES.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScatterSlices {
    /// Which axis of the input each index of a row is of.
    pub axes: Vec<usize>,
    /// What an element and its update are combined by; nothing, operand 4 being 0, if the update replaces it.
    /// Else operand 4 is 1 more than the function's number in [`Function::ALL`].
    pub function: Option<Function>,
}

impl Operation for ScatterSlices {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        validate_axes(input, call.input(1), call.input(3))?;
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let function = call.input(4);
        let number = function.i32()?;
        let wrong = || function.wrong("value", number, "0 to 6");
        let at = usize::try_from(number).map_err(|_| wrong())?;
        let function = match at.checked_sub(1) {
            None => None,
            Some(at) => Some(*Function::ALL.get(at).ok_or_else(wrong)?),
        };
        Ok(Self { axes: axes(call.input(3), call.input(0))?, function })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, indexes, updates) = (call.input(0), call.input(1), call.input(2));
        if let (Some(lengths), Some(outer)) =
            (input.shape.lengths(), rows_of(indexes, self.axes.len())?)
        {
            let blocks = lengths.iter().map(|_| None);
            let expected = Shape::new(outer.iter().copied().chain(blocks).collect::<Vec<_>>());
            if updates.shape.merge(&expected).is_none() {
                return Err(updates.wrong("shape", &updates.shape, expected));
            }
        }
        Ok(vec![input.shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.output_shapes(call)?;
        let (input, updates, output) = (call.input(0), call.input(2), call.output(0));
        let dimensions = input.shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        if output.is_float() {
            let mut elements = input.f32s()?;
            let function = self.function.map_or((|_, b| b) as fn(_, _) -> _, Function::of_floats);
            self.scatter(call, &updates.f32s()?, &mut elements, function)?;
            return Ok(vec![output.with_f32s(dimensions, &elements)?]);
        }
        let mut elements = wide(input)?;
        let function = self.function.map_or((|_, b| b) as fn(_, _) -> _, Function::of_integers);
        self.scatter(call, &wide(updates)?, &mut elements, function)?;
        Ok(vec![stored(output, dimensions, &elements)?])
    }
}

impl ScatterSlices {
    fn scatter<T: Copy>(
        &self,
        call: &Call<'_>,
        updates: &[T],
        elements: &mut [T],
        function: fn(T, T) -> T,
    ) -> Result<(), Fault> {
        let lengths = call.input(0).lengths()?;
        let strides = strides_of(&lengths);
        let of_updates = call.input(2).shape.to_known().unwrap_or_default();
        if of_updates.contains(&0) || lengths.contains(&0) {
            return Ok(());
        }
        let block = &of_updates[of_updates.len() - lengths.len()..];
        let of_block: Vec<usize> = block.iter().map(|length| *length as usize).collect();
        let (size, of_block) = (of_block.iter().product(), strides_of(&of_block));
        let rows = call.input(1).i32s()?;
        for (row, updates) in rows.chunks_exact(self.axes.len()).zip(updates.chunks_exact(size)) {
            let mut starts = vec![0_i64; lengths.len()];
            row.iter().zip(&self.axes).for_each(|(index, axis)| starts[*axis] = i64::from(*index));
            for_each_index(call, block, &of_block, |from, index| {
                let places =
                    starts.iter().zip(index).map(|(start, index)| start + i64::from(*index));
                let mut to = 0;
                for ((place, length), stride) in places.zip(&lengths).zip(&strides) {
                    match usize::try_from(place).ok().filter(|place| place < length) {
                        Some(place) => to += place * stride,
                        None => return Ok(()),
                    }
                }
                elements[to] = function(elements[to], updates[from]);
                Ok(())
            })?;
        }
        Ok(())
    }
}
