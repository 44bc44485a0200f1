//! MEAN, REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_SUM: one element of
//! all that lie along some axes.
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
//! | MEAN | float32, float16, quantised | NaN; quantised 0 |
//! | REDUCE_ALL, REDUCE_ANY | bool8 | true, false |
//! | REDUCE_MAX, REDUCE_MIN | float32, float16, quantised | the least, the greatest |
//! | REDUCE_PROD, REDUCE_SUM | float32, float16 | 1, 0 |
//!
//! Quantised inputs and outputs have the same scale and zero point. The mean is the stored value
//! nearest to the real one, halves away from the zero point. Floats are summed and multiplied in
//! double precision; a product with a zero factor is 0, whatever the other factors are. The greatest
//! and the least of anything with a NaN is NaN.
//!
//! Source: `types.hal` 1.1 (MEAN), 1.2, 1.3 (signed).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{broadcast, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use hal::{HalVersion, OperandType, OperationType};

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
    /// The axes they lie along, from the front, ascending.
    pub axes: Vec<usize>,
    /// Whether the axes stay, with length 1.
    pub keep_dims: bool,
}

const MEAN_FORM: &[Form] = &[Form::new(
    HalVersion::V1_1,
    &[
        Parameter::column("input", 0),
        Parameter::tensor_int32("axes"),
        Parameter::int32("keep dims"),
    ],
    &[Parameter::column("output", 0)],
)];
const FORM: &[Form] = &[Form::new(
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

static MEAN: Signature = Signature {
    operation: OperationType::Mean,
    rows: &[
        Row::new(HalVersion::V1_1, &[TensorFloat32]),
        Row::new(HalVersion::V1_1, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
    ],
    forms: MEAN_FORM,
};

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
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::ReduceAll => &ALL,
            OperationType::ReduceAny => &ANY,
            OperationType::ReduceMax => &MAX,
            OperationType::ReduceMin => &MIN,
            OperationType::ReduceProd => &PROD,
            OperationType::ReduceSum => &SUM,
            _ => &MEAN,
        }
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        input.expect_rank_in(1..=4)?;
        call.input(1).expect_rank(1)?;
        if output.is_quantized() { output.expect_quantized_as(input) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let (input, given, keep_dims) = (call.input(0), call.input(1), call.input(2));
        let reduction = match call.operation() {
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
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| input.not_known("dimensions"))?;
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
            let elements = gather(output, &dimensions, places.zip(input.bools()?), first, fold)?;
            output.with_bools(dimensions, &elements)
        } else if let Some((least, greatest)) = output.operand_type.quantized_range() {
            let steps = places.zip(input.integers()?);
            let elements = match self.reduction {
                Reduction::Max => gather(output, &dimensions, steps, least, i32::max)?,
                Reduction::Min => gather(output, &dimensions, steps, greatest, i32::min)?,
                _ => {
                    let offsets = steps.map(|(place, it)| (place, it - input.zero_point));
                    let add = |sum: i64, offset| sum + i64::from(offset);
                    let sums = gather(output, &dimensions, offsets, 0, add)?;
                    let count = self.count(&lengths);
                    sums.into_iter().map(|sum| input.zero_point + rounded(sum, count)).collect()
                }
            };
            output.with_integers(dimensions, &elements)
        } else {
            let floats = places.zip(input.f32s()?);
            let elements: Vec<f32> = match self.reduction {
                Reduction::Max => {
                    gather(output, &dimensions, floats, f32::NEG_INFINITY, real::maximum)?
                }
                Reduction::Min => {
                    gather(output, &dimensions, floats, f32::INFINITY, real::minimum)?
                }
                Reduction::Prod => {
                    let products = gather(output, &dimensions, floats, 1.0, product)?;
                    products.into_iter().map(real::round).collect()
                }
                _ => {
                    let add = |sum: f64, element| sum + f64::from(element);
                    let sums = gather(output, &dimensions, floats, 0.0, add)?;
                    // Exact: a tensor has less than 2^32 elements.
                    #[allow(clippy::cast_precision_loss)]
                    let divisor = match self.reduction {
                        Reduction::Mean => self.count(&lengths) as f64,
                        _ => 1.0,
                    };
                    sums.into_iter().map(|sum| real::round(sum / divisor)).collect()
                }
            };
            output.with_f32s(dimensions, &elements)
        }])
    }
}

impl Reduce {
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
    output: &Argument<'_>,
    dimensions: &[u32],
    elements: impl Iterator<Item = (usize, E)>,
    first: T,
    mut take_in: impl FnMut(T, E) -> T,
) -> Result<Vec<T>, Fault> {
    let mut gathered = output.allocate(dimensions)?;
    gathered.resize(dimensions.iter().map(|length| *length as usize).product(), first);
    for (place, element) in elements {
        gathered[place] = take_in(gathered[place], element);
    }
    Ok(gathered)
}

/// Zero times infinity, which may be an overflow of the other factors, is 0 here.
fn product(product: f64, element: f32) -> f64 {
    if product == 0.0 || element == 0.0 { 0.0 } else { product * f64::from(element) }
}

/// `sum / count`, rounded to nearest, halves away from 0; 0 of nothing. A mean of stored values is
/// as small as they are.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn rounded(sum: i64, count: usize) -> i32 {
    if count == 0 { 0 } else { (sum as f64 / count as f64).round() as i32 }
}
