//! SEGMENT_SUM, UNSORTED_SEGMENT_MAX, UNSORTED_SEGMENT_MIN, UNSORTED_SEGMENT_PROD, UNSORTED_SEGMENT_SUM:
//! one part of all that have the same number.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, int32, int64 |
//! | input 1 | segments | the first axes of the input; SEGMENT_SUM: one | TENSOR_INT32 |
//! | input 2 | number of segments | `[1]`; SEGMENT_SUM: none | TENSOR_INT32 |
//! | output 0 | output | `[number of segments]`, then the other axes of the input | as the input |
//!
//! SEGMENT_SUM has numbers that begin at 0 and go up by 0 or 1 from one to the next; there are as many
//! segments as the last one says. Of the others, parts with a negative number are left out, and one that
//! is not below the number of segments is an error. A segment without parts is 0, for MAX the least and
//! for MIN the greatest number of the type, for PROD 1. Integers wrap.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation as E;
use crate::operation::Operation;
use crate::rules::wide::{integer_range, stored, wide};
use crate::shape::Shape;

/// What becomes of the parts of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Combination {
    /// Their greatest elements.
    Max,
    /// Their least elements.
    Min,
    /// Their products.
    Prod,
    /// Their sums.
    Sum,
}

/// One of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Segments {
    /// What becomes of the parts of a segment.
    pub combination: Combination,
    /// How many segments there are; `None`: as many as the last number says.
    pub count: Option<u32>,
}

impl Operation for Segments {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=usize::MAX)?;
        match E::of(call.operation()) {
            Some(E::SegmentSum) => call.input(1).expect_rank(1),
            _ => call.input(1).expect_rank_in(1..=usize::MAX),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let combination = match E::of(call.operation()) {
            Some(E::UnsortedSegmentMax) => Combination::Max,
            Some(E::UnsortedSegmentMin) => Combination::Min,
            Some(E::UnsortedSegmentProd) => Combination::Prod,
            _ => Combination::Sum,
        };
        let Some(given) = call.optional(2) else { return Ok(Self { combination, count: None }) };
        let [count] = given.i32s()?[..] else {
            return Err(given.wrong("shape", &given.shape, "one element"));
        };
        let count = u32::try_from(count).map_err(|_| given.wrong("value", count, "0 or more"))?;
        Ok(Self { combination, count: Some(count) })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, segments) = (call.input(0), call.input(1));
        let (Some(lengths), Some(of_segments)) = (input.shape.lengths(), segments.shape.lengths())
        else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        let Some(rest) = lengths.get(of_segments.len()..) else {
            let expected = format!("at most rank {}", lengths.len());
            return Err(segments.wrong("shape", &segments.shape, expected));
        };
        for (axis, length) in lengths[..of_segments.len()].iter().enumerate() {
            segments.expect_length(axis, *length)?;
        }
        Ok(vec![Shape::new([&[self.count], rest].concat())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, segments, output) = (call.input(0), call.input(1), call.output(0));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let numbers = segments.i32s()?;
        let count = match self.count {
            Some(count) => count,
            None => ascending(call, &numbers)?,
        };
        let mut dimensions = vec![count];
        let others = shape.lengths().unwrap_or_default().iter().skip(1);
        dimensions.extend(others.map(|length| length.unwrap_or(0)));
        let size = dimensions[1..].iter().map(|length| *length as usize).product();
        let parts = Parts { numbers: &numbers, count, size };
        Ok(vec![if output.is_float() {
            let (first, combine): (f32, fn(f32, f32) -> f32) = match self.combination {
                Combination::Max => (f32::MIN, |a, b| if a < b { b } else { a }),
                Combination::Min => (f32::MAX, |a, b| if b < a { b } else { a }),
                Combination::Prod => (1.0, |a, b| a * b),
                Combination::Sum => (0.0, |a, b| a + b),
            };
            let mut results = output.collect(&dimensions, std::iter::repeat(first))?;
            parts.combine(call, &input.f32s()?, &mut results, combine)?;
            output.with_f32s(dimensions, &results)?
        } else {
            let (least, greatest) = integer_range(output.operand_type);
            let (first, combine): (i64, fn(i64, i64) -> i64) = match self.combination {
                Combination::Max => (least, i64::max),
                Combination::Min => (greatest, i64::min),
                Combination::Prod => (1, i64::wrapping_mul),
                Combination::Sum => (0, i64::wrapping_add),
            };
            let mut results = output.collect(&dimensions, std::iter::repeat(first))?;
            parts.combine(call, &wide(input)?, &mut results, combine)?;
            stored(output, dimensions, &results)?
        }])
    }
}

/// How many segments there are: numbers begin at 0 and go up by 1 at most.
fn ascending(call: &Call<'_>, numbers: &[i32]) -> Result<u32, Fault> {
    let segments = call.input(1);
    let mut next = 0_i32;
    for number in numbers {
        call.work(1)?;
        if *number == next {
            next = next.saturating_add(1);
        } else if next == 0 || *number != next - 1 {
            let expected = format!("{next}, or the number before");
            return Err(segments.wrong("value", number, expected));
        }
    }
    Ok(next.unsigned_abs())
}

/// Parts of the input, each with the number of a segment.
struct Parts<'a> {
    numbers: &'a [i32],
    count: u32,
    /// Elements of a part.
    size: usize,
}

impl Parts<'_> {
    fn combine<T: Copy>(
        &self,
        call: &Call<'_>,
        elements: &[T],
        results: &mut [T],
        combine: impl Fn(T, T) -> T,
    ) -> Result<(), Fault> {
        for (at, number) in self.numbers.iter().enumerate() {
            call.work(1)?;
            let Ok(segment) = u32::try_from(*number) else { continue };
            if segment >= self.count {
                let expected = format!("below {}", self.count);
                return Err(call.input(1).wrong("value", number, expected));
            }
            let place = |index: usize| index * self.size..(index + 1) * self.size;
            let part = elements.get(place(at)).unwrap_or_default();
            let result = results.get_mut(place(segment as usize)).unwrap_or_default();
            call.each(result.iter_mut().zip(part), |(result, element)| {
                *result = combine(*result, *element);
            })?;
        }
        Ok(())
    }
}
