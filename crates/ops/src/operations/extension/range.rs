//! RANGE: numbers at equal distances.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | start | `[1]` | float32, int32, int64 |
//! | input 1 | limit | `[1]`: the numbers stay before it | as the start |
//! | input 2 | step | `[1]`, not 0, towards the limit | as the start |
//! | output 0 | output | `[ceil((limit - start) / step)]` | as the start |
//!
//! Each float is the start plus the steps, added one by one.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;

/// RANGE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Range {
    /// Of integers: start, step, and how many.
    Integers(i64, i64, u32),
    /// Of floats: start, step, and how many.
    Floats(f32, f32, u32),
}

fn one<T: Copy>(argument: &Argument<'_>, elements: &[T]) -> Result<T, Fault> {
    match elements {
        [one] => Ok(*one),
        _ => Err(argument.wrong("shape", &argument.shape, "one element")),
    }
}

impl Operation for Range {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let step = call.input(2);
        let wrong = |found: String| Err(step.wrong("value", found, "a step from start to limit"));
        if call.input(0).is_float() {
            let number = |at: usize| one(call.input(at), &call.input(at).f32s()?);
            let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
            let count = ((f64::from(limit) - f64::from(start)) / f64::from(step)).ceil();
            // Also false for NaN.
            if !(0.0..=f64::from(u32::MAX)).contains(&count) {
                return wrong(step.to_string());
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It is in range.
            return Ok(Self::Floats(start, step, count as u32));
        }
        let number = |at: usize| one(call.input(at), &wide(call.input(at))?);
        let (start, limit, step) = (number(0)?, number(1)?, number(2)?);
        let distance = i128::from(limit) - i128::from(start);
        if step == 0 || distance != 0 && (distance > 0) != (step > 0) {
            return wrong(step.to_string());
        }
        let count = distance.unsigned_abs().div_ceil(i128::from(step).unsigned_abs());
        match u32::try_from(count) {
            Ok(count) => Ok(Self::Integers(start, step, count)),
            Err(_) => wrong(format!("{step}, which makes {count} numbers,")),
        }
    }

    fn output_shapes(&self, _: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (Self::Integers(.., count) | Self::Floats(.., count)) = self;
        Ok(vec![Shape::known([*count])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let output = call.output(0);
        Ok(vec![match *self {
            Self::Integers(start, step, count) => {
                let value = |at: u32| start.wrapping_add(step.wrapping_mul(at.into()));
                let elements = output.collect(&[count], (0..count).map(value))?;
                stored(output, vec![count], &elements)?
            }
            Self::Floats(start, step, count) => {
                let values = std::iter::successors(Some(start), |before| Some(before + step));
                let elements = output.collect(&[count], values)?;
                output.with_f32s(vec![count], &elements)?
            }
        }])
    }
}
