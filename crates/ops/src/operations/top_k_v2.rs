//! TOPK_V2: the `k` greatest elements of every slice along the last axis, and their indexes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, int32, quantized |
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
use crate::rules::sorting::sort;
use crate::rules::wide::{is_wide, stored, wide};
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Signature};
use nnhal_hal::{HalVersion, OperationType};
use std::cmp::Ordering;

/// TOPK_V2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopKV2 {
    /// How many elements of each slice; in the interface's operation above 0.
    pub k: u32,
    /// Whether of equal elements the first comes first: in the extension's operation. In the
    /// interface's the last does.
    pub first_before_last: bool,
}

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::TopkV2,
    rows: NUMBERS_SINCE_1_2,
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("input", 0), Parameter::int32("k")],
        &[Parameter::column("values", 0), Parameter::tensor_int32("indexes")],
    )],
};

impl Operation for TopKV2 {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, values) = (call.input(0), call.output(0));
        input.expect_rank_in(1..=usize::MAX)?;
        if values.is_quantized() { values.expect_quantized_as(input) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let first_before_last = matches!(call.operation(), OperationType::Extension(_));
        Ok(Self { k: call.input(1).positive()?, first_before_last })
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
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        let slices = Slices::new(&lengths, lengths.len().saturating_sub(1));
        let mut chosen: Vec<i32> = indexes.allocate(&dimensions)?;
        let values = if input.is_float() {
            let elements = input.f32s()?;
            let room = values.allocate(&dimensions)?;
            let greatest =
                self.choose(call, &slices, &elements, compare_floats, room, &mut chosen)?;
            values.with_f32s(dimensions.clone(), &greatest)?
        } else if is_wide(input) {
            let elements = wide(input)?;
            let room = values.allocate(&dimensions)?;
            let greatest = self.choose(call, &slices, &elements, Ord::cmp, room, &mut chosen)?;
            stored(values, dimensions.clone(), &greatest)?
        } else {
            let elements = input.integers()?;
            let room = values.allocate(&dimensions)?;
            let greatest = self.choose(call, &slices, &elements, Ord::cmp, room, &mut chosen)?;
            values.with_integers(dimensions.clone(), &greatest)?
        };
        Ok(vec![values, indexes.with_integers(dimensions, &chosen)?])
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
        call: &Call<'_>,
        slices: &Slices,
        elements: &[T],
        compare: impl Fn(&T, &T) -> Ordering,
        mut values: Vec<T>,
        indexes: &mut Vec<i32>,
    ) -> Result<Vec<T>, Fault> {
        let mut slice: Vec<(T, i32)> = call.room(slices.length())?;
        for positions in slices.positions() {
            slice.clear();
            call.each(positions.zip(0..), |(at, index)| slice.push((elements[at], index)))?;
            sort(call, &mut slice, |(a, index_of_a), (b, index_of_b)| {
                let by_index = index_of_b.cmp(index_of_a);
                compare(b, a).then(if self.first_before_last {
                    by_index.reverse()
                } else {
                    by_index
                })
            })?;
            call.each(slice.iter().take(self.k as usize), |(element, index)| {
                values.push(*element);
                indexes.push(*index);
            })?;
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{
        TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    };
    use nnhal_hal::OperandSpec;
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    fn example(input: OperandSpec, elements: &[f64], k: i32) -> Example {
        let values = OperandSpec { dimensions: vec![], ..input.clone() };
        Example::new(OperationType::TopkV2)
            .input(input, elements)
            .int32s([k])
            .output(values)
            .output(tensor(TensorInt32, []))
    }

    /// Values and indexes.
    fn result(input: OperandSpec, elements: &[f64], k: i32) -> (Vec<f64>, Vec<i32>) {
        let call = example(input, elements, k);
        let indexes = call.run().unwrap().swap_remove(1).bytes;
        let (indexes, _) = indexes.as_chunks();
        (call.result().1, indexes.iter().map(|index| i32::from_le_bytes(*index)).collect())
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        assert_since(SINCE_1_2, |operand_type| example(tensor(operand_type, [1; 5]), &[1.0], 1));
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |k| example(tensor(TensorFloat32, [2, 3]), &[0.0; 6], k).refusal();
        assert_eq!(refusal(0), "TOPK_V2: value of input 1 (k) is 0, expected above 0");
        assert_eq!(refusal(-1), "TOPK_V2: value of input 1 (k) is -1, expected 0 or more");
        assert_eq!(
            refusal(4),
            "TOPK_V2: value of input 1 (k) is 4, expected at most the last length of [2, 3]"
        );
        let input = OperandSpec::tensor_quant8_asymm([1], 0.5, 3);
        let other = OperandSpec::tensor_quant8_asymm([1], 0.5, 4);
        assert_eq!(
            example(input, &[0.0], 1).with_output(other).refusal(),
            "TOPK_V2: zero point of output 0 (values) is 4, expected 3 as input 0 (input)"
        );
    }

    #[test]
    fn values_and_indexes_by_hand() {
        let elements = [3.0, 9.0, 1.0, 7.0, 2.0, 8.0];
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let (values, indexes) = result(tensor(operand_type, [2, 3]), &elements, 2);
            assert_eq!((values, indexes), (vec![9.0, 3.0, 8.0, 7.0], vec![1, 0, 2, 0]));
        }
        let dimensions = example(tensor(TensorFloat32, [2, 3]), &elements, 2).run().unwrap();
        assert_eq!([&dimensions[0].dimensions, &dimensions[1].dimensions], [&[2, 2], &[2, 2]]);
    }

    #[test]
    fn of_equal_elements_the_last_one_comes_first() {
        let four = tensor(TensorFloat32, [4]);
        assert_eq!(result(four.clone(), &[5.0, 1.0, 5.0, 5.0], 3).1, [3, 2, 0]);
        assert_eq!(result(four.clone(), &[0.0, -0.0, -1.0, 0.0], 3).1, [3, 1, 0]);
        let (values, indexes) = result(four, &[f64::INFINITY, f64::NAN, 1.0, -f64::NAN], 4);
        assert_eq!(indexes, [3, 1, 0, 2]);
        assert!(values[0].is_nan() && values[1].is_nan());
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shapes = |dimensions: &[u32]| {
            example(tensor(TensorFloat32, [2]), &[0.0; 2], 2)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shapes()
        };
        assert_eq!(shapes(&[0, 7, 0]), Ok(vec![Shape::new([None, Some(7), Some(2)]); 2]));
        assert_eq!(shapes(&[]), Ok(vec![Shape::UNKNOWN; 2]));
        assert!(shapes(&[0, 1]).is_err());
        let none = example(tensor(TensorFloat32, [0, 3]), &[], 2);
        assert_eq!(none.result(), (vec![0, 2], vec![]));
    }

    proptest! {
        #[test]
        fn the_chosen_descend_and_no_other_is_greater(
            elements in prop::collection::vec(-4..5_i32, 1..9),
            k in 1..9_usize,
        ) {
            let k = k.min(elements.len());
            let as_floats: Vec<f64> = elements.iter().copied().map(f64::from).collect();
            let input = tensor(TensorFloat32, [u32::try_from(elements.len()).unwrap()]);
            let (values, indexes) = result(input, &as_floats, i32::try_from(k).unwrap());
            for (value, index) in values.iter().zip(&indexes) {
                prop_assert_eq!(*value, as_floats[usize::try_from(*index).unwrap()]);
            }
            let order: Vec<_> = values.iter().zip(&indexes).collect();
            prop_assert!(order.windows(2).all(|pair| pair[0].partial_cmp(&pair[1]).unwrap().is_gt()));
            let greater = as_floats.iter().filter(|element| **element > values[k - 1]).count();
            prop_assert!(greater < k);
        }
    }
}
