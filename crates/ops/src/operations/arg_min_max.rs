//! ARGMAX, ARGMIN: the index of the greatest or the least element of every slice along an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any; the axis not empty | float32, float16, int32, quantised |
//! | input 1 | axis | scalar | INT32, negative from the end |
//! | output 0 | output | the input's without the axis; `[1]` if nothing is left | int32 |
//!
//! Of equal elements the first one counts. A NaN is passed over unless it is the first element.
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

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extreme {
    /// ARGMAX
    Max,
    /// ARGMIN
    Min,
}

/// ARGMAX or ARGMIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArgMinMax {
    /// What is looked for.
    pub extreme: Extreme,
    /// The axis of the slices, from the front.
    pub axis: usize,
}

const ROWS: &[Row] = &[
    Row::new(HalVersion::V1_2, &[TensorFloat32]),
    Row::new(HalVersion::V1_2, &[TensorFloat16]),
    Row::new(HalVersion::V1_2, &[TensorInt32]),
    Row::new(HalVersion::V1_2, &[TensorQuant8Asymm]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
];
const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input", 0), Parameter::int32("axis")],
    &[Parameter::tensor_int32("output")],
)];

static ARGMAX: Signature = Signature { operation: OperationType::Argmax, rows: ROWS, forms: FORMS };
static ARGMIN: Signature = Signature { operation: OperationType::Argmin, rows: ROWS, forms: FORMS };

impl Operation for ArgMinMax {
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::Argmin => &ARGMIN,
            _ => &ARGMAX,
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let extreme = match call.operation() {
            OperationType::Argmin => Extreme::Min,
            _ => Extreme::Max,
        };
        let axis = call.input(1);
        Ok(Self { extreme, axis: axis.axis_of(axis.i32()?, call.input(0))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let input = call.input(0);
        if input.shape.length(self.axis) == Some(0) {
            let expected = format!("at least one element along axis {}", self.axis);
            return Err(input.wrong("shape", &input.shape, expected));
        }
        let Some(lengths) = input.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        let mut left = lengths.to_vec();
        left.remove(self.axis);
        Ok(vec![Shape::new(if left.is_empty() { vec![Some(1)] } else { left })])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| input.not_known("dimensions"))?;
        let slices = Slices::new(&input.lengths()?, self.axis);
        let room = output.allocate(&dimensions)?;
        let indexes = if input.is_float() {
            self.search(room, &slices, &input.f32s()?)
        } else {
            self.search(room, &slices, &input.integers()?)
        };
        Ok(vec![output.with_integers(dimensions, &indexes)])
    }
}

impl ArgMinMax {
    fn search<T: PartialOrd>(
        &self,
        mut indexes: Vec<i32>,
        slices: &Slices,
        elements: &[T],
    ) -> Vec<i32> {
        for mut positions in slices.positions() {
            let Some(first) = positions.next() else { continue };
            let (mut best, mut index_of_best) = (&elements[first], 0);
            for (index, position) in (1..).zip(positions) {
                let element = &elements[position];
                let is_better = match self.extreme {
                    Extreme::Max => element > best,
                    Extreme::Min => element < best,
                };
                if is_better {
                    (best, index_of_best) = (element, index);
                }
            }
            indexes.push(index_of_best);
        }
        indexes
    }
}
