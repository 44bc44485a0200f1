//! ONE_HOT: for each index a vector that holds one value there and another elsewhere.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | indexes | any | int32, int64 |
//! | input 1 | depth | `[1]` | TENSOR_INT32, 0 or more |
//! | input 2 | on value | `[1]` | any |
//! | input 3 | off value | `[1]` | as the on value |
//! | input 4 | axis | scalar: where the vectors' axis goes; -1 is the end | INT32 |
//! | output 0 | output | the indexes' with the depth inserted at the axis | as the on value |
//!
//! An index outside of `0..depth` has a vector of off values.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::{self, Elements};
use crate::rules::wide::wide;
use crate::shape::Shape;

/// ONE_HOT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OneHot {
    /// The axis of the result that the vectors are along.
    pub axis: usize,
    /// How long the vectors are.
    pub depth: u32,
}

impl Operation for OneHot {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (indexes, depth, axis) = (call.input(0), call.input(1), call.input(4));
        let rank = indexes.shape.rank().ok_or_else(|| indexes.not_known("rank"))?;
        let given = axis.i32()?;
        let place = if given == -1 { Some(rank) } else { usize::try_from(given).ok() };
        let Some(axis) = place.filter(|place| *place <= rank) else {
            return Err(axis.wrong("value", given, format!("-1 to {rank}")));
        };
        let [depth] = depth.i32s()?[..] else {
            return Err(depth.wrong("shape", &depth.shape, "one element"));
        };
        let depth =
            u32::try_from(depth).map_err(|_| call.input(1).wrong("value", depth, "0 or more"))?;
        Ok(Self { axis, depth })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let indexes = call.input(0);
        let lengths = indexes.shape.lengths().ok_or_else(|| indexes.not_known("rank"))?;
        let mut lengths = lengths.to_vec();
        lengths.insert(self.axis.min(lengths.len()), Some(self.depth));
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let output = call.output(0);
        let dimensions = self.output_dimensions(call)?;
        let [on, off] = [2, 3].map(|value| movement::element(call.input(value), output));
        let values = [off?, on?].concat();
        let indexes = wide(call.input(0))?;
        let mut elements = Elements::to(output, &dimensions)?;
        if !dimensions.contains(&0) {
            let behind: usize =
                dimensions[self.axis + 1..].iter().map(|length| *length as usize).product();
            for outer in indexes.chunks_exact(behind) {
                for place in 0..i64::from(self.depth) {
                    for index in outer {
                        elements.append(&values, usize::from(*index == place))?;
                    }
                }
            }
        }
        Ok(vec![elements.finish(dimensions)])
    }
}
