//! SPARSE_TO_DENSE: a tensor of one value, of which some elements are others.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | indexes | `[count, rank]` | TENSOR_INT32 |
//! | input 1 | shape | `[rank]` | TENSOR_INT32 |
//! | input 2 | values | `[count]`, or one element for all | any |
//! | input 3 | default value | one element | as the values |
//! | output 0 | output | as `shape` says | as the values; same scale, zero point |
//!
//! Of values for the same place the last one stays. An index outside of its axis is an error.

use super::gather_nd::Places;
use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::element_size;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;

/// SPARSE_TO_DENSE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SparseToDense {
    /// The result's lengths.
    pub shape: Vec<u32>,
}

impl Operation for SparseToDense {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (indexes, shape) = (call.input(0), call.input(1));
        indexes.expect_rank(2)?;
        shape.expect_rank(1)?;
        shape.expect_length(0, indexes.shape.length(1))?;
        call.output(0).expect_quantized_as(call.input(2))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let given = call.input(1);
        let shape = given.shape_given()?;
        if shape.is_empty() {
            return Err(given.wrong("shape", &given.shape, "1 length or more"));
        }
        Ok(Self { shape })
    }

    fn output_shapes(&self, _: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::known(self.shape.iter().copied())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (indexes, values, output) = (call.input(0), call.input(2), call.output(0));
        let default = movement::element(call.input(3), output)?;
        let [count, depth] = indexes.lengths_of()?;
        if depth != self.shape.len() {
            let expected = format!("{} along axis 1, as the shape", self.shape.len());
            return Err(indexes.wrong("shape", &indexes.shape, expected));
        }
        let size = element_size(output.operand_type).unwrap_or(1) as usize;
        let bytes = values.bytes()?;
        if bytes.len() != size && bytes.len() != count * size {
            let expected = format!("one element, or {count}");
            return Err(values.wrong("shape", &values.shape, expected));
        }
        let mut dense = movement::repeated(&default, output, self.shape.clone())?;
        let lengths: Vec<usize> = self.shape.iter().map(|length| *length as usize).collect();
        let places = Places::of(indexes, &lengths)?;
        let is_one = bytes.len() == size;
        for part in 0..count {
            call.work(depth)?;
            let from = if is_one { 0 } else { part * size };
            let first = places.first(part)? * size;
            dense.bytes[first..first + size].copy_from_slice(&bytes[from..from + size]);
        }
        Ok(vec![dense])
    }
}
