//! MEAN, REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_SUM: one element of
//! all that are along some axes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | rank 4 at most | see below |
//! | input 1 | axes | `[number of axes]` | TENSOR_INT32, negative from the end, repetitions count once |
//! | input 2 | keep dims | scalar | MEAN: INT32, true above 0; others: BOOL |
//! | output 0 | output | the input's without the axes, or with length 1 there; `[1]` if nothing is left | as the input |
//!
//! | operation | types | of no elements |
//! |---|---|---|
//! | MEAN | float32, float16, quantized | NaN; quantized 0 |
//! | REDUCE_ALL, REDUCE_ANY | bool8 | true, false |
//! | REDUCE_MAX, REDUCE_MIN | float32, float16, quantized | the least, the greatest |
//! | REDUCE_PROD, REDUCE_SUM | float32, float16 | 1, 0 |
//!
//! Quantized inputs and outputs have the same scale and zero point. The mean is the stored value
//! nearest to the real one, halves away from the zero point. Floats are summed and multiplied in
//! double precision; a product with a zero factor is 0, whatever the other factors are. The greatest
//! and the least of anything with a NaN is NaN.
//!
//! Source: `types.hal` 1.1 (MEAN), 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::TENSOR_INT64;
use crate::operation::Operation;
use crate::rules::wide::{is_wide, stored, wide};
use crate::rules::{broadcast, real};
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_1, Parameter, Row, Signature};
use OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// What becomes of the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// MEAN
    Mean,
    /// REDUCE_ALL: their conjunction.
    All,
    /// REDUCE_ANY: their disjunction.
    Any,
    /// REDUCE_MAX
    Max,
    /// REDUCE_MIN
    Min,
    /// REDUCE_PROD: their product.
    Prod,
    /// REDUCE_SUM
    Sum,
}

/// MEAN or a REDUCE operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// What becomes of the elements.
    pub reduction: Reduction,
    /// The axes they are along, from the front, ascending.
    pub axes: Vec<usize>,
    /// Whether the axes stay, with length 1.
    pub keep_dims: bool,
}

pub(crate) const MEAN_FORM: &[Form] = &[Form::new(
    HalVersion::V1_1,
    &[
        Parameter::column("input", 0),
        Parameter::tensor_int32("axes"),
        Parameter::int32("keep dims"),
    ],
    &[Parameter::column("output", 0)],
)];
pub(crate) const FORM: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input", 0), Parameter::tensor_int32("axes"), Parameter::bool("keep dims")],
    &[Parameter::column("output", 0)],
)];

const BOOL_ROWS: &[Row] = &[Row::new(HalVersion::V1_2, &[TensorBool8])];
const FLOAT_ROWS: &[Row] =
    &[Row::new(HalVersion::V1_2, &[TensorFloat32]), Row::new(HalVersion::V1_2, &[TensorFloat16])];
const ORDERED_ROWS: &[Row] = &[
    Row::new(HalVersion::V1_2, &[TensorFloat32]),
    Row::new(HalVersion::V1_2, &[TensorFloat16]),
    Row::new(HalVersion::V1_2, &[TensorQuant8Asymm]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
];

static MEAN: Signature =
    Signature { operation: OperationType::Mean, rows: NUMBERS_SINCE_1_1, forms: MEAN_FORM };

const fn signature(operation: OperationType, rows: &'static [Row]) -> Signature {
    Signature { operation, rows, forms: FORM }
}

static ALL: Signature = signature(OperationType::ReduceAll, BOOL_ROWS);
static ANY: Signature = signature(OperationType::ReduceAny, BOOL_ROWS);
static MAX: Signature = signature(OperationType::ReduceMax, ORDERED_ROWS);
static MIN: Signature = signature(OperationType::ReduceMin, ORDERED_ROWS);
static PROD: Signature = signature(OperationType::ReduceProd, FLOAT_ROWS);
static SUM: Signature = signature(OperationType::ReduceSum, FLOAT_ROWS);

impl Operation for Reduce {
    const SIGNATURES: &'static [&'static Signature] = &[&MEAN, &ALL, &ANY, &MAX, &MIN, &PROD, &SUM];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        input.expect_rank_in(1..=input.most_axes(4))?;
        call.input(1).expect_rank(1)?;
        if output.is_quantized() { output.expect_quantized_as(input) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (input, given, keep_dims) = (call.input(0), call.input(1), call.input(2));
        let reduction = match call.definition() {
            OperationType::ReduceAll => Reduction::All,
            OperationType::ReduceAny => Reduction::Any,
            OperationType::ReduceMax => Reduction::Max,
            OperationType::ReduceMin => Reduction::Min,
            OperationType::ReduceProd => Reduction::Prod,
            OperationType::ReduceSum => Reduction::Sum,
            _ => Reduction::Mean,
        };
        let keep_dims = match reduction {
            Reduction::Mean => keep_dims.i32()? > 0,
            _ => keep_dims.bool()?,
        };
        let axes = given.i32s()?.into_iter().map(|axis| given.axis_of(axis, input));
        let mut axes: Vec<usize> = axes.collect::<Result<_, _>>()?;
        axes.sort_unstable();
        axes.dedup();
        Ok(Self { reduction, axes, keep_dims })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let Some(lengths) = call.input(0).shape.lengths() else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        if self.keep_dims {
            return Ok(vec![Shape::new(self.with_axes_of_length_1(lengths, Some(1)))]);
        }
        let left = lengths.iter().enumerate().filter(|(axis, _)| !self.axes.contains(axis));
        let left: Vec<_> = left.map(|(_, length)| *length).collect();
        Ok(vec![Shape::new(if left.is_empty() { vec![Some(1)] } else { left })])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let lengths = input.lengths()?;
        // Every input element belongs to the output element that it would be broadcast from.
        let kept = self.with_axes_of_length_1(&lengths, 1);
        let places = broadcast::positions(&kept, &lengths);
        Ok(vec![if output.operand_type == TensorBool8 {
            let fold = |all: bool, element| match self.reduction {
                Reduction::All => all && element,
                _ => all || element,
            };
            let first = self.reduction == Reduction::All;
            let elements = gather(call, &dimensions, places.zip(input.bools()?), first, fold)?;
            output.with_bools(dimensions, &elements)?
        } else if is_wide(output) || output.operand_type == OperandType::TensorInt32 {
            let elements = self.integers(call, &dimensions, places.zip(wide(input)?), &lengths)?;
            stored(output, dimensions, &elements)?
        } else if let Some((least, greatest)) = output.operand_type.quantized_range() {
            let steps = places.zip(input.integers()?);
            let elements = match self.reduction {
                Reduction::Max => gather(call, &dimensions, steps, least, i32::max)?,
                Reduction::Min => gather(call, &dimensions, steps, greatest, i32::min)?,
                _ => {
                    let offsets = steps.map(|(place, it)| (place, it - input.zero_point));
                    let add = |sum: i64, offset| sum + i64::from(offset);
                    let sums = gather(call, &dimensions, offsets, 0, add)?;
                    let count = self.count(&lengths);
                    let mean = |sum| input.zero_point + rounded(sum, count);
                    output.collect(&dimensions, sums.into_iter().map(mean))?
                }
            };
            output.with_integers(dimensions, &elements)?
        } else {
            let floats = places.zip(input.f32s()?);
            let elements: Vec<f32> = match self.reduction {
                Reduction::Max => {
                    gather(call, &dimensions, floats, f32::NEG_INFINITY, real::maximum)?
                }
                Reduction::Min => gather(call, &dimensions, floats, f32::INFINITY, real::minimum)?,
                Reduction::Prod => {
                    let products = gather(call, &dimensions, floats, 1.0, product)?;
                    output.collect(&dimensions, products.into_iter().map(real::round))?
                }
                _ => {
                    let add = |sum: f64, element| sum + f64::from(element);
                    let sums = gather(call, &dimensions, floats, 0.0, add)?;
                    // Exact: a tensor has less than 2^32 elements.
                    #[allow(clippy::cast_precision_loss)]
                    let divisor = match self.reduction {
                        Reduction::Mean => self.count(&lengths) as f64,
                        _ => 1.0,
                    };
                    let quotients = sums.into_iter().map(|sum| real::round(sum / divisor));
                    output.collect(&dimensions, quotients)?
                }
            };
            output.with_f32s(dimensions, &elements)?
        }])
    }
}

impl Reduce {
    /// Of integers, which the extension's operations take. Sums and products wrap; a mean is rounded
    /// towards 0, and 0 of nothing.
    fn integers(
        &self,
        call: &Call<'_>,
        dimensions: &[u32],
        elements: impl Iterator<Item = (usize, i64)>,
        lengths: &[usize],
    ) -> Result<Vec<i64>, Fault> {
        let (least, greatest) = match call.output(0).operand_type {
            OperandType::TensorInt32 => (i32::MIN.into(), i32::MAX.into()),
            TENSOR_INT64 => (i64::MIN, i64::MAX),
            _ => (0, u32::MAX.into()),
        };
        let (first, take_in): (i64, fn(i64, i64) -> i64) = match self.reduction {
            Reduction::Max => (least, i64::max),
            Reduction::Min => (greatest, i64::min),
            Reduction::Prod => (1, i64::wrapping_mul),
            _ => (0, i64::wrapping_add),
        };
        let mut gathered = gather(call, dimensions, elements, first, take_in)?;
        if self.reduction == Reduction::Mean {
            let count = i64::try_from(self.count(lengths)).unwrap_or(i64::MAX);
            call.each(&mut gathered, |sum| *sum = sum.checked_div(count).unwrap_or(0))?;
        }
        Ok(gathered)
    }

    fn with_axes_of_length_1<T: Copy>(&self, lengths: &[T], one: T) -> Vec<T> {
        let axes = lengths.iter().enumerate();
        axes.map(|(axis, length)| if self.axes.contains(&axis) { one } else { *length }).collect()
    }

    /// Number of elements that become one; meaningless if there are no output elements.
    fn count(&self, lengths: &[usize]) -> usize {
        self.axes.iter().fold(1, |count, axis| count.saturating_mul(lengths[*axis]))
    }
}

/// Output elements that start as `first` and take in, one after the other, the elements that
/// belong to their place.
fn gather<T: Copy, E>(
    call: &Call<'_>,
    dimensions: &[u32],
    elements: impl Iterator<Item = (usize, E)>,
    first: T,
    mut take_in: impl FnMut(T, E) -> T,
) -> Result<Vec<T>, Fault> {
    let mut gathered = call.output(0).collect(dimensions, std::iter::repeat(first))?;
    call.each(elements, |(place, element)| {
        gathered[place] = take_in(gathered[place], element);
    })?;
    Ok(gathered)
}

/// The product so far with one element more. Where finite elements exceed the range of double precision, it stays at its
/// end, so that a zero among them makes it 0; a zero times an infinite element is NaN.
fn product(product: f64, element: f32) -> f64 {
    let next = product * f64::from(element);
    if !element.is_finite() || !product.is_finite() {
        return next;
    }
    let is_beyond = next.is_infinite() || (product.abs() == f64::MAX && element != 0.0);
    if is_beyond { f64::MAX.copysign(next) } else { next }
}

/// `sum / count`, rounded to nearest, halves away from 0; 0 of nothing. A mean of stored values is
/// as small as they are.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn rounded(sum: i64, count: usize) -> i32 {
    if count == 0 { 0 } else { (sum as f64 / count as f64).round() as i32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperationType::{Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    const ALL: [OperationType; 7] =
        [Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, ReduceSum];

    fn example(
        operation: OperationType,
        input: OperandSpec,
        elements: &[f64],
        axes: &[i32],
        keep_dims: bool,
    ) -> Example {
        let output = OperandSpec { dimensions: vec![], ..input.clone() };
        let call = Example::new(operation).input(input, elements).list(axes);
        let call = match operation {
            Mean => call.int32s([i32::from(keep_dims)]),
            _ => call.bool(keep_dims),
        };
        call.output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        use HalVersion::{V1_1, V1_2, V1_3};
        let floats = [(TensorFloat32, V1_2), (TensorFloat16, V1_2)];
        let quantized = [(TensorQuant8Asymm, V1_2), (TensorQuant8AsymmSigned, V1_3)];
        for operation in ALL {
            let expected = match operation {
                Mean => vec![
                    (TensorFloat32, V1_1),
                    (TensorQuant8Asymm, V1_1),
                    (TensorFloat16, V1_2),
                    (TensorQuant8AsymmSigned, V1_3),
                ],
                ReduceAll | ReduceAny => vec![(TensorBool8, V1_2)],
                ReduceMax | ReduceMin => [floats, quantized].concat(),
                _ => floats.to_vec(),
            };
            for operand_type in [
                TensorFloat32,
                TensorFloat16,
                TensorQuant8Asymm,
                TensorQuant8AsymmSigned,
                TensorBool8,
            ] {
                let since = expected.iter().find(|row| row.0 == operand_type).map(|row| row.1);
                let call = example(operation, tensor(operand_type, [1]), &[0.0], &[0], false);
                assert_eq!(call.since().ok(), since, "{operation} {operand_type}");
                assert_eq!(call.run().is_ok(), since.is_some(), "{operation} {operand_type}");
            }
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let matrix = tensor(TensorFloat32, [1, 2]);
        for axis in [2, -3, i32::MIN] {
            assert_eq!(
                example(Mean, matrix.clone(), &[0.0; 2], &[axis], false).refusal(),
                format!(
                    "MEAN: value of input 1 (axes) is {axis}, expected an axis of a tensor of rank 2"
                )
            );
        }
        let good = example(ReduceSum, matrix, &[0.0; 2], &[1], true);
        assert_eq!(
            good.clone().with_input(0, tensor(TensorFloat32, [1; 5]), &[0.0]).refusal(),
            "REDUCE_SUM: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            good.clone().with_input(1, tensor(OperandType::TensorInt32, [1, 1]), &[0.0]).refusal(),
            "REDUCE_SUM: rank of input 1 (axes) is 2, expected 1"
        );
        assert_eq!(
            good.with_int32(2, 1).refusal(),
            "REDUCE_SUM: type of input 2 (keep dims) is INT32, expected BOOL"
        );
        for operation in [Mean, ReduceMax, ReduceMin] {
            let input = OperandSpec::tensor_quant8_asymm([1], 0.5, 3);
            let call = example(operation, input, &[0.0], &[0], true);
            assert_eq!(
                call.with_output(OperandSpec::tensor_quant8_asymm([1], 0.25, 3)).refusal(),
                format!(
                    "{operation}: scale of output 0 (output) is 0.25, expected 0.5 as input 0 (input)"
                )
            );
        }
    }

    #[test]
    fn axes_vanish_or_become_1() {
        let dimensions = |axes: &[i32], keep_dims| {
            example(ReduceSum, tensor(TensorFloat32, [2, 3, 4]), &[0.0; 24], axes, keep_dims)
                .result()
                .0
        };
        assert_eq!(dimensions(&[1], false), [2, 4]);
        assert_eq!(dimensions(&[1], true), [2, 1, 4]);
        assert_eq!(dimensions(&[-1, 0], false), [3]);
        assert_eq!(dimensions(&[0, -3, 0], true), [1, 3, 4]);
        assert_eq!(dimensions(&[0, 1, 2], false), [1]);
        assert_eq!(dimensions(&[2, 1, 0], true), [1, 1, 1]);
        assert_eq!(dimensions(&[], false), [2, 3, 4]);
        // For MEAN, keep dims is a number.
        for (number, expected) in [(-1, vec![2]), (0, vec![2]), (7, vec![2, 1])] {
            let call = example(Mean, tensor(TensorFloat32, [2, 2]), &[0.0; 4], &[1], true);
            assert_eq!(call.with_int32(2, number).result().0, expected);
        }
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shapes = |dimensions: &[u32], keep_dims| {
            example(ReduceSum, tensor(TensorFloat32, [1, 1, 1]), &[0.0], &[-1], keep_dims)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shape()
        };
        assert_eq!(shapes(&[2, 0, 0], true), Shape::new([Some(2), None, Some(1)]));
        assert_eq!(shapes(&[2, 0, 0], false), Shape::new([Some(2), None]));
        assert_eq!(shapes(&[], true), Shape::UNKNOWN);
        let axes_to_come = example(ReduceSum, tensor(TensorFloat32, [1]), &[0.0], &[0], true)
            .with_input_to_come(1, tensor(OperandType::TensorInt32, [1]));
        assert_eq!(axes_to_come.shapes(), Ok(vec![Shape::UNKNOWN]));
    }

    #[test]
    fn floats_of_both_widths_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let result = |operation, axes: &[i32]| {
                let input = tensor(operand_type, [2, 3]);
                let elements = [1.0, -2.0, 4.0, 0.5, 8.0, -3.0];
                example(operation, input, &elements, axes, false).result().1
            };
            assert_eq!(result(Mean, &[0]), [0.75, 3.0, 0.5]);
            assert_eq!(result(ReduceSum, &[0]), [1.5, 6.0, 1.0]);
            assert_eq!(result(ReduceSum, &[1]), [3.0, 5.5]);
            assert_eq!(result(ReduceProd, &[1]), [-8.0, -12.0]);
            assert_eq!(result(ReduceMax, &[1]), [4.0, 8.0]);
            assert_eq!(result(ReduceMin, &[1]), [-2.0, -3.0]);
            assert_eq!(result(ReduceMin, &[0, 1]), [-3.0]);
            assert_eq!(result(ReduceMax, &[]), [1.0, -2.0, 4.0, 0.5, 8.0, -3.0]);
        }
    }

    #[test]
    fn sums_do_not_lose_small_terms() {
        let elements = [1e8, 1.0, 1.0, 1.0, -1e8, 1.0];
        let input = tensor(TensorFloat32, [6]);
        let sum = |operation| example(operation, input.clone(), &elements, &[0], false).result().1;
        assert_eq!(sum(ReduceSum), [4.0]);
        assert_close(&sum(Mean), &[4.0 / 6.0], 1e-7);
    }

    #[test]
    fn special_numbers_of_floats() {
        let result = |operation, elements: &[f64]| {
            let input = tensor(TensorFloat32, [u32::try_from(elements.len()).unwrap()]);
            example(operation, input, elements, &[0], false).result().1[0]
        };
        assert!(result(ReduceProd, &[f64::INFINITY, 0.0, 2.0]).is_nan());
        assert!(result(ReduceProd, &[0.0, f64::NEG_INFINITY]).is_nan());
        assert!(result(ReduceProd, &[0.0, f64::NAN]).is_nan());
        // What exceeds the range on the way is finite all the same, and a zero makes it 0.
        let greatest = f64::from(f32::MAX);
        assert_eq!(result(ReduceProd, &[greatest; 9]), f64::INFINITY);
        let with_zero = [&[greatest; 9][..], &[0.0, 2.0]].concat();
        assert_eq!(result(ReduceProd, &with_zero), 0.0);
        assert_eq!(result(ReduceMax, &[f64::NEG_INFINITY]), f64::NEG_INFINITY);
        assert!(result(ReduceMax, &[1.0, f64::NAN, 2.0]).is_nan());
        assert!(result(ReduceMin, &[1.0, f64::NAN, 2.0]).is_nan());
        assert!(result(ReduceSum, &[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
    }

    #[test]
    fn nothing_has_a_neutral_element() {
        let result = |operation, operand_type| {
            example(operation, tensor(operand_type, [1, 0]), &[], &[1], true).result()
        };
        assert!(result(Mean, TensorFloat32).1[0].is_nan());
        assert_eq!(result(Mean, TensorQuant8Asymm), (vec![1, 1], vec![128.0]));
        assert_eq!(result(ReduceSum, TensorFloat32).1, [0.0]);
        assert_eq!(result(ReduceProd, TensorFloat16).1, [1.0]);
        assert_eq!(result(ReduceMax, TensorFloat32).1, [f64::NEG_INFINITY]);
        assert_eq!(result(ReduceMin, TensorQuant8AsymmSigned).1, [127.0]);
        assert_eq!(result(ReduceAll, TensorBool8).1, [1.0]);
        assert_eq!(result(ReduceAny, TensorBool8).1, [0.0]);
        let along_the_other = example(ReduceSum, tensor(TensorFloat32, [3, 0]), &[], &[0], false);
        assert_eq!(along_the_other.result(), (vec![0], vec![]));
    }

    #[test]
    fn truth_values_by_hand() {
        let elements = [1.0, 2.0, 1.0, 0.0, 0.0, 0.0];
        let result = |operation, axis| {
            example(operation, tensor(TensorBool8, [3, 2]), &elements, &[axis], false).result().1
        };
        assert_eq!(result(ReduceAll, 1), [1.0, 0.0, 0.0]);
        assert_eq!(result(ReduceAny, 1), [1.0, 1.0, 0.0]);
        assert_eq!(result(ReduceAny, 0), [1.0, 1.0]);
    }

    #[test]
    fn quantized_means_round_halves_away_from_the_zero_point() {
        let mean = |elements: &[f64]| {
            let length = u32::try_from(elements.len()).unwrap();
            let input = OperandSpec::tensor_quant8_asymm([length], 0.5, 100);
            example(Mean, input, elements, &[0], false).result().1[0]
        };
        assert_eq!(mean(&[100.0, 101.0]), 101.0);
        assert_eq!(mean(&[100.0, 99.0]), 99.0);
        assert_eq!(mean(&[100.0, 100.0, 101.0]), 100.0);
        assert_eq!(mean(&[255.0; 7]), 255.0);
    }

    proptest! {
        /// Over all axes but one it is the same as one axis after the other.
        #[test]
        fn axes_can_be_reduced_one_after_the_other(
            elements in prop::collection::vec(-9..10_i32, 24),
            operation in prop::sample::select(vec![ReduceMax, ReduceMin, ReduceSum]),
            kept in 0..3_i32,
        ) {
            let lengths = [2, 3, 4];
            let elements: Vec<f64> = elements.into_iter().map(f64::from).collect();
            let axes: Vec<i32> = [0, 1, 2].into_iter().filter(|axis| *axis != kept).collect();
            let both = example(operation, tensor(TensorFloat32, lengths), &elements, &axes, true);
            let mut partial = (lengths.to_vec(), elements);
            for axis in axes {
                let input = tensor(TensorFloat32, partial.0);
                partial = example(operation, input, &partial.1, &[axis], true).result();
            }
            prop_assert_eq!(both.result(), partial);
        }

        #[test]
        fn a_quantized_mean_is_the_step_nearest_to_the_real_one(
            stored in prop::collection::vec(-128..128_i32, 1..20),
            zero_point in -128..128_i32,
        ) {
            let length = u32::try_from(stored.len()).unwrap();
            let elements: Vec<f64> = stored.iter().copied().map(f64::from).collect();
            let input = OperandSpec::tensor_quant8_asymm_signed([length], 0.1, zero_point);
            let found = example(Mean, input, &elements, &[0], false).result().1[0];
            let exact = elements.iter().sum::<f64>() / f64::from(length);
            prop_assert!((found - exact).abs() <= 0.5);
        }
    }
}
