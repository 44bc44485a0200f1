//! CUMSUM: the sums of all elements up to each one along an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, int32, int64 |
//! | input 1 | axis | scalar, negative from the end | INT32 |
//! | input 2 | exclusive | scalar: without the element itself | BOOL |
//! | input 3 | reverse | scalar: from the end | BOOL |
//! | output 0 | output | as the input | as the input |
//!
//! Floats are summed in double precision; sums of integers wrap.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::slices::Slices;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// CUMSUM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CumulativeSum {
    /// Along which the sums are.
    pub axis: usize,
    /// Whether an element is left out of its own sum.
    pub exclusive: bool,
    /// Whether the last element comes first.
    pub reverse: bool,
}

impl Operation for CumulativeSum {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let axis = call.input(1);
        Ok(Self {
            axis: axis.axis_of(axis.i32()?, call.input(0))?,
            exclusive: call.input(2).bool()?,
            reverse: call.input(3).bool()?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        Ok(vec![if output.is_float() {
            let mut elements = input.f32s()?;
            self.sum(call, &mut elements, 0.0, |sum: f64, x| sum + f64::from(x), real::round)?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let mut elements = wide(input)?;
            self.sum(call, &mut elements, 0, i64::wrapping_add, |sum| sum)?;
            stored(output, dimensions, &elements)?
        }])
    }
}

impl CumulativeSum {
    fn sum<T: Copy, S: Copy>(
        &self,
        call: &Call<'_>,
        elements: &mut [T],
        zero: S,
        add: impl Fn(S, T) -> S,
        rounded: impl Fn(S) -> T,
    ) -> Result<(), Fault> {
        let slices = Slices::new(&call.input(0).lengths()?, self.axis);
        let last = slices.length().saturating_sub(1);
        for positions in slices.positions() {
            let mut positions = positions;
            let Some(first) = positions.next() else { continue };
            let step = positions.next().map_or(0, |second| second - first);
            let mut sum = zero;
            call.each(0..slices.length(), |index| {
                let at = first + step * if self.reverse { last - index } else { index };
                let before = sum;
                sum = add(sum, elements[at]);
                elements[at] = rounded(if self.exclusive { before } else { sum });
            })?;
        }
        Ok(())
    }
}
