//! TOPK_V2: the `k` greatest elements of every slice along the last axis, and their indexes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, int32, quantised |
//! | input 1 | k | scalar, from 1 to the length of the last axis | INT32 |
//! | output 0 | values | the input's with `k` as last length | as the input; same scale, zero point |
//! | output 1 | indexes | as output 0 | int32 |
//!
//! Values descend; of equal ones the one with the greater index comes first. NaN counts as greater
//! than everything.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use hal::{HalVersion, OperandType, OperationType};
use std::cmp::Ordering;

/// TOPK_V2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopKV2 {
    /// How many elements of each slice; above 0.
    pub k: u32,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::TopkV2,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::int32("k")],
        &[Parameter::column("values", 0), Parameter::tensor_int32("indexes")],
    )],
};

impl Operation for TopKV2 {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, values) = (call.input(0), call.output(0));
        input.expect_rank_in(1..=usize::MAX)?;
        if values.is_quantized() { values.expect_quantized_as(input) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { k: call.input(1).positive()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let Some(lengths) = call.input(0).shape.lengths() else {
            return Ok(vec![Shape::UNKNOWN; 2]);
        };
        let mut lengths = lengths.to_vec();
        if let Some(last) = lengths.last_mut() {
            if last.is_some_and(|length| self.k > length) {
                let expected = format!("at most the last length of {}", call.input(0).shape);
                return Err(call.input(1).wrong("value", self.k, expected));
            }
            *last = Some(self.k);
        }
        Ok(vec![Shape::new(lengths); 2])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, values, indexes) = (call.input(0), call.output(0), call.output(1));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| input.not_known("dimensions"))?;
        let lengths = input.lengths()?;
        let slices = Slices::new(&lengths, lengths.len().saturating_sub(1));
        let mut chosen: Vec<i32> = indexes.allocate(&dimensions)?;
        let values = if input.is_float() {
            let elements = input.f32s()?;
            let room = values.allocate(&dimensions)?;
            let greatest = self.choose(&slices, &elements, compare_floats, room, &mut chosen);
            values.with_f32s(dimensions.clone(), &greatest)
        } else {
            let elements = input.integers()?;
            let room = values.allocate(&dimensions)?;
            let greatest = self.choose(&slices, &elements, Ord::cmp, room, &mut chosen);
            values.with_integers(dimensions.clone(), &greatest)
        };
        Ok(vec![values, indexes.with_integers(dimensions, &chosen)])
    }
}

/// A total order: zeros are equal whatever their sign, and NaN is above everything.
fn compare_floats(a: &f32, b: &f32) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

impl TopKV2 {
    /// Appends the chosen elements to `values`, and their indexes to `indexes`.
    fn choose<T: Copy>(
        &self,
        slices: &Slices,
        elements: &[T],
        compare: impl Fn(&T, &T) -> Ordering,
        mut values: Vec<T>,
        indexes: &mut Vec<i32>,
    ) -> Vec<T> {
        let mut slice: Vec<(T, i32)> = Vec::new();
        for positions in slices.positions() {
            slice.clear();
            slice.extend(positions.map(|position| elements[position]).zip(0..));
            slice.sort_unstable_by(|(a, index_of_a), (b, index_of_b)| {
                compare(b, a).then(index_of_b.cmp(index_of_a))
            });
            slice.truncate(self.k as usize);
            values.extend(slice.iter().map(|(element, _)| *element));
            indexes.extend(slice.iter().map(|(_, index)| *index));
        }
        values
    }
}
