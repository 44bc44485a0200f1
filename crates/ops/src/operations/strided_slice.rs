//! STRIDED_SLICE: every so-manieth element between two places, along each axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any, of rank n, 4 at most | float32, float16, quantized |
//! | input 1 | begins | `[n]` | TENSOR_INT32: the first element, negative from the end |
//! | input 2 | ends | `[n]` | TENSOR_INT32: what is no longer taken, negative from the end |
//! | input 3 | strides | `[n]` | TENSOR_INT32: other than 0; negative ones go backwards |
//! | input 4 | begin mask | scalar | INT32: axes (bit i for axis i) that begin at their end |
//! | input 5 | end mask | scalar | INT32: axes that go to their other end |
//! | input 6 | shrink mask | scalar | INT32: axes with exactly one element, which go |
//! | output 0 | output | `ceil((end - begin) / stride)`, not below 0, along each axis that stays; `[1]` if none does | as the input; same scale, zero point |
//!
//! Begins and ends beyond the axis mean its end. An axis that goes must have a positive stride.
//!
//! Source: `types.hal` 1.1, 1.2, 1.3 (signed).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_1, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// STRIDED_SLICE.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StridedSlice {
    /// What is taken along each axis of the input.
    pub axes: Vec<Span>,
}

/// What is taken along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first element, negative from the end; `None` for the axis's own.
    pub begin: Option<i32>,
    /// The element before which it ends, negative from the end; `None` for the axis's own end.
    pub end: Option<i32>,
    /// From one element to the next; not 0.
    pub stride: i32,
    /// Whether the axis goes.
    pub shrinks: bool,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::StridedSlice,
    rows: NUMBERS_SINCE_1_1,
    forms: &[Form::new(
        HalVersion::V1_1,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("begins"),
            Parameter::tensor_int32("ends"),
            Parameter::tensor_int32("strides"),
            Parameter::int32("begin mask"),
            Parameter::int32("end mask"),
            Parameter::int32("shrink mask"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for StridedSlice {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=input.most_axes(4))?;
        let rank = input.shape.rank().and_then(|rank| u32::try_from(rank).ok());
        for numbers in &call.inputs()[1..4] {
            numbers.expect_rank(1)?;
            numbers.expect_length(0, rank)?;
        }
        call.output(0).expect_quantized_as(input)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let begins = call.input(1).i32_per_axis()?;
        let (ends, strides) =
            (of_length(call.input(2), begins.len())?, of_length(call.input(3), begins.len())?);
        let (begin_mask, end_mask) = (call.input(4).i32()?, call.input(5).i32()?);
        let shrink_mask = call.input(6).i32()?;
        let mut axes = Vec::with_capacity(begins.len());
        for (axis, (begin, (end, stride))) in
            begins.into_iter().zip(ends.into_iter().zip(strides)).enumerate()
        {
            let is_in = |mask: i32| axis < 32 && (mask >> axis) & 1 == 1;
            let shrinks = is_in(shrink_mask);
            if stride == 0 || (shrinks && stride < 0) {
                let expected = if shrinks { "above 0 where an axis shrinks" } else { "not 0" };
                return Err(call.input(3).wrong("value", stride, expected));
            }
            axes.push(Span {
                begin: (!is_in(begin_mask)).then_some(begin),
                end: (!is_in(end_mask)).then_some(end),
                stride,
                shrinks,
            });
        }
        Ok(Self { axes })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        if input.shape.rank().is_some_and(|rank| rank != self.axes.len()) {
            return Err(input.wrong("shape", &input.shape, format!("rank {}", self.axes.len())));
        }
        let mut lengths = Vec::with_capacity(self.axes.len());
        for (axis, span) in self.axes.iter().enumerate() {
            let count = input.shape.length(axis).map(|length| span.on(length).1);
            if !span.shrinks {
                lengths.push(count);
            } else if count.is_some_and(|count| count != 1) {
                let found = format!("{} elements of axis {axis}", count.unwrap_or_default());
                return Err(call.input(6).wrong("value", found, "1 where an axis shrinks"));
            }
        }
        Ok(vec![Shape::new(if lengths.is_empty() { vec![Some(1)] } else { lengths })])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.dimensions()?;
        // First with all axes, then without those that go: they have one element each.
        let (mut counts, mut firsts) = (Vec::new(), Vec::new());
        for (span, length) in self.axes.iter().zip(&lengths) {
            let (first, count) = span.on(*length);
            firsts.push(first);
            counts.push(count);
        }
        let distances = movement::strides(&input.lengths()?);
        let offset = |axis: usize, index: usize| {
            let steps = i64::try_from(index).unwrap_or(i64::MAX);
            let place = firsts[axis] + steps * i64::from(self.axes[axis].stride);
            usize::try_from(place).unwrap_or(usize::MAX).saturating_mul(distances[axis])
        };
        let taken = movement::moved(input.bytes()?, output, counts, offset)?;
        Ok(vec![Output { dimensions, ..taken }])
    }
}

impl Span {
    /// The first element that is taken on an axis of a length, and how many are.
    pub fn on(&self, length: u32) -> (i64, u32) {
        let (length, stride) = (i64::from(length), i64::from(self.stride));
        // Where a span can begin and end; going backwards it ends before the first element.
        let (least, most) = if stride > 0 { (0, length) } else { (-1, length - 1) };
        let place = |given: i32| {
            let from_front = if given < 0 { i64::from(given) + length } else { given.into() };
            from_front.clamp(least, most)
        };
        let (own_begin, own_end) = if stride > 0 { (least, most) } else { (most, least) };
        let begin = self.begin.map_or(own_begin, place);
        let end = self.end.map_or(own_end, place);
        let span = (end - begin) * stride.signum();
        // Both are positive where the quotient counts, and it is at most the length.
        let count = (span + stride.abs() - 1).max(0) / stride.abs();
        (begin, u32::try_from(count).unwrap_or(u32::MAX))
    }
}

/// The numbers of an argument that has as many as the one before.
fn of_length(argument: &Argument<'_>, count: usize) -> Result<Vec<i32>, Fault> {
    let numbers = argument.i32_per_axis()?;
    if numbers.len() != count {
        return Err(argument.wrong("shape", &argument.shape, format!("[{count}] as begins")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_1, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    /// A call on elements 0, 1, 2 and so on, without masks.
    fn example(
        operand_type: OperandType,
        dimensions: &[u32],
        begins: &[i32],
        ends: &[i32],
        strides: &[i32],
    ) -> Example {
        Example::new(OperationType::StridedSlice)
            .counted(tensor(operand_type, dimensions))
            .list(begins)
            .list(ends)
            .list(strides)
            .int32s([0, 0, 0])
            .output(tensor(operand_type, []))
    }

    /// What is taken of the elements 0 to 4.
    fn of_five(begin: i32, end: i32, stride: i32) -> Vec<f64> {
        example(TensorFloat32, &[5], &[begin], &[end], &[stride]).result().1
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_1, |operand_type| example(operand_type, &[1], &[0], &[1], &[1]));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |dimensions: &[u32], begins: &[i32], ends: &[i32], strides: &[i32]| {
            example(TensorFloat32, dimensions, begins, ends, strides).refusal()
        };
        assert_eq!(
            refusal(&[1; 5], &[0; 5], &[1; 5], &[1; 5]),
            "STRIDED_SLICE: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            refusal(&[1, 1], &[0, 0], &[1], &[1, 1]),
            "STRIDED_SLICE: shape of input 2 (ends) is [1], expected length 2 along axis 0"
        );
        assert_eq!(
            refusal(&[1], &[0], &[1], &[0]),
            "STRIDED_SLICE: value of input 3 (strides) is 0, expected not 0"
        );
        let unknown_rank = example(TensorFloat32, &[1], &[0, 0], &[1], &[1, 1])
            .with_input_to_come(0, tensor(TensorFloat32, []));
        assert_eq!(
            unknown_rank.shapes().unwrap_err().to_string(),
            "STRIDED_SLICE: shape of input 2 (ends) is [1], expected [2] as begins"
        );
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(TensorQuant8Asymm, &[1], &[0], &[1], &[1]).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn an_axis_that_shrinks_has_one_element_and_goes_forwards() {
        let good = example(TensorFloat32, &[2, 3], &[1, 0], &[2, 3], &[1, 2]).with_int32(6, 1);
        assert_eq!(good.result(), (vec![2], vec![3.0, 5.0]));
        assert_eq!(
            good.clone().with_int32(6, 2).refusal(),
            "STRIDED_SLICE: value of input 6 (shrink mask) is 2 elements of axis 1, \
             expected 1 where an axis shrinks"
        );
        let backwards = example(TensorFloat32, &[2], &[1], &[0], &[-1]).with_int32(6, 1);
        assert_eq!(
            backwards.refusal(),
            "STRIDED_SLICE: value of input 3 (strides) is -1, \
             expected above 0 where an axis shrinks"
        );
        let all = example(TensorFloat32, &[2, 3], &[1, 2], &[2, 3], &[1, 1]).with_int32(6, 3);
        assert_eq!(all.result(), (vec![1], vec![5.0]));
    }

    #[test]
    fn spans_by_hand() {
        assert_eq!(of_five(1, 4, 1), [1.0, 2.0, 3.0]);
        assert_eq!(of_five(0, 5, 2), [0.0, 2.0, 4.0]);
        assert_eq!(of_five(0, 4, 3), [0.0, 3.0]);
        assert_eq!(of_five(-2, 5, 1), [3.0, 4.0]);
        assert_eq!(of_five(1, -1, 1), [1.0, 2.0, 3.0]);
        assert_eq!(of_five(3, 1, 1), [0.0; 0]);
        assert_eq!(of_five(-100, 100, 1), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(of_five(4, 1, -1), [4.0, 3.0, 2.0]);
        assert_eq!(of_five(100, -100, -2), [4.0, 2.0, 0.0]);
        assert_eq!(of_five(-1, -4, -2), [4.0, 2.0]);
        assert_eq!(of_five(1, 3, -1), [0.0; 0]);
        assert_eq!(of_five(i32::MIN, i32::MAX, i32::MAX), [0.0]);
        assert_eq!(of_five(i32::MAX, i32::MIN, i32::MIN), [4.0]);
    }

    #[test]
    fn masked_axes_are_taken_from_end_to_end() {
        let masked = |stride, begin_mask, end_mask| {
            let call = example(TensorFloat32, &[5], &[2], &[3], &[stride]);
            call.with_int32(4, begin_mask).with_int32(5, end_mask).result().1
        };
        assert_eq!(masked(1, 1, 0), [0.0, 1.0, 2.0]);
        assert_eq!(masked(1, 0, 1), [2.0, 3.0, 4.0]);
        assert_eq!(masked(-1, 1, 0), [4.0]);
        assert_eq!(masked(-1, 0, 1), [2.0, 1.0, 0.0]);
        assert_eq!(masked(-3, 1, 1), [4.0, 1.0]);
        // Bits of other axes mean nothing.
        assert_eq!(masked(1, !1, !1), [2.0]);
    }

    #[test]
    fn several_axes_and_every_type_by_hand() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let call = example(operand_type, &[2, 3, 2], &[1, 2, 0], &[-9, -9, 1], &[-1, -2, 1]);
            assert_eq!(call.result(), (vec![2, 2, 1], vec![10.0, 6.0, 4.0, 0.0]));
        }
    }

    #[test]
    fn of_nothing_nothing_is_taken() {
        for stride in [1, -1, 7] {
            let call = example(TensorFloat32, &[0, 2], &[0, 0], &[5, 2], &[stride, 1]);
            assert_eq!(call.result(), (vec![0, 2], vec![]));
        }
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32], shrink_mask| {
            example(TensorFloat32, &[1, 1], &[0, 1], &[9, 2], &[2, 1])
                .with_int32(6, shrink_mask)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shape(&[7, 0], 0), Shape::new([Some(4), None]));
        assert_eq!(shape(&[7, 0], 2), Shape::known([4]));
        assert_eq!(shape(&[], 2), Shape::new([None]));
    }

    proptest! {
        /// Against a walk from the begin, element by element.
        #[test]
        fn a_span_is_what_a_walk_finds(
            length in 0..9_u32,
            begin in prop::option::of(-12..12_i32),
            end in prop::option::of(-12..12_i32),
            stride in (-4..5_i32).prop_filter("not 0", |stride| *stride != 0),
        ) {
            let (first, count) = Span { begin, end, stride, shrinks: false }.on(length);
            let length = length.cast_signed();
            let wrap = |given: i32| if given < 0 { given + length } else { given };
            let end = end.map(wrap);
            let mut place = match begin.map(wrap) {
                None if stride > 0 => 0,
                None => length - 1,
                Some(begin) if stride > 0 => begin.max(0),
                Some(begin) => begin.min(length - 1),
            };
            let mut found = Vec::new();
            while (0..length).contains(&place)
                && end.is_none_or(|end| if stride > 0 { place < end } else { place > end })
            {
                found.push(i64::from(place));
                place += stride;
            }
            let taken: Vec<i64> =
                (0..i64::from(count)).map(|index| first + index * i64::from(stride)).collect();
            prop_assert_eq!(taken, found);
        }
    }
}
