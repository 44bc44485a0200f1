//! SCATTER_ND: a tensor of zeros, to which parts are added at indexes of the first axes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | indexes | `[..., depth]`, depth at most the rank of the result | TENSOR_INT32 |
//! | input 1 | updates | `...` of the indexes, then the result's axes behind the first `depth` | floats, integers, bool8; quantized as stored |
//! | input 2 | shape | `[rank]` | TENSOR_INT32 |
//! | output 0 | output | as `shape` says | as the updates |
//!
//! What is scattered to the same place is added: integers wrap, truth values are true if any is. An index
//! outside of its axis is an error. Quantized zeros are stored as 0.

use super::gather_nd::Places;
use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;
use nnhal_hal::OperandType;

/// SCATTER_ND.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScatterNd {
    /// The result's lengths.
    pub shape: Vec<u32>,
}

impl Operation for ScatterNd {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        call.input(2).expect_rank(1)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let given = call.input(2);
        let shape = given.shape_given()?;
        if shape.is_empty() || shape.len() > crate::shape::MAX_RANK {
            let expected = format!("1 to {} lengths", crate::shape::MAX_RANK);
            return Err(given.wrong("shape", &given.shape, expected));
        }
        Ok(Self { shape })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (indexes, updates) = (call.input(0), call.input(1));
        if let Some((Some(depth), outer)) =
            indexes.shape.lengths().and_then(<[Option<u32>]>::split_last)
        {
            let Some(rest) = self.shape.get(*depth as usize..) else {
                let expected = format!("at most {} along the last axis", self.shape.len());
                return Err(indexes.wrong("shape", &indexes.shape, expected));
            };
            let expected: Vec<_> =
                outer.iter().copied().chain(rest.iter().copied().map(Some)).collect();
            // Of a single part the shape may be left out.
            let expected = Shape::new(if expected.is_empty() { vec![Some(1)] } else { expected });
            if updates.shape.merge(&expected).is_none() {
                return Err(updates.wrong("shape", &updates.shape, expected));
            }
        }
        Ok(vec![Shape::known(self.shape.iter().copied())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.output_shapes(call)?;
        let (indexes, updates, output) = (call.input(0), call.input(1), call.output(0));
        let lengths: Vec<usize> = self.shape.iter().map(|length| *length as usize).collect();
        let places = Places::of(indexes, &lengths)?;
        let shape = self.shape.clone();
        let zeros = |zero: f32| output.collect(&shape, std::iter::repeat(zero));
        Ok(vec![match output.operand_type {
            OperandType::TensorFloat32 | OperandType::TensorFloat16 => {
                let mut sums = zeros(0.0)?;
                add(call, &places, &updates.f32s()?, &mut sums, |a, b| a + b)?;
                output.with_f32s(shape, &sums)?
            }
            operand_type => {
                let mut sums: Vec<i64> = output.collect(&shape, std::iter::repeat(0))?;
                let sum = |a: i64, b: i64| match operand_type {
                    OperandType::TensorBool8 => a | i64::from(b != 0),
                    _ => a.wrapping_add(b),
                };
                add(call, &places, &wide(updates)?, &mut sums, sum)?;
                stored(output, shape, &sums)?
            }
        }])
    }
}

fn add<T: Copy>(
    call: &Call<'_>,
    places: &Places<'_>,
    updates: &[T],
    sums: &mut [T],
    sum: impl Fn(T, T) -> T,
) -> Result<(), Fault> {
    if places.size == 0 {
        return Ok(());
    }
    for (part, update) in updates.chunks_exact(places.size).enumerate() {
        let first = places.first(part)?;
        let sums = sums.get_mut(first..first + places.size).unwrap_or_default();
        call.each(sums.iter_mut().zip(update), |(to, from)| *to = sum(*to, *from))?;
    }
    Ok(())
}
