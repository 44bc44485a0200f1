//! ARGMAX, ARGMIN: the index of the greatest or the least element of every slice along an axis.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any; the axis not empty | float32, float16, int32, quantized |
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
use crate::rules::wide::{is_wide, wide};
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_2, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperationType};

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

const ROWS: &[Row] = NUMBERS_SINCE_1_2;
pub(crate) const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input", 0), Parameter::int32("axis")],
    &[Parameter::tensor_int32("output")],
)];

static ARGMAX: Signature = Signature { operation: OperationType::Argmax, rows: ROWS, forms: FORMS };
static ARGMIN: Signature = Signature { operation: OperationType::Argmin, rows: ROWS, forms: FORMS };

impl Operation for ArgMinMax {
    const SIGNATURES: &'static [&'static Signature] = &[&ARGMAX, &ARGMIN];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let extreme = match call.definition() {
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
        let dimensions = self.output_dimensions(call)?;
        let slices = Slices::new(&input.lengths()?, self.axis);
        let room = output.allocate(&dimensions)?;
        let indexes = if input.is_float() {
            self.search(call, room, &slices, &input.f32s()?)?
        } else if is_wide(input) {
            self.search(call, room, &slices, &wide(input)?)?
        } else {
            self.search(call, room, &slices, &input.integers()?)?
        };
        Ok(vec![output.with_integers(dimensions, &indexes)?])
    }
}

impl ArgMinMax {
    fn search<T: PartialOrd>(
        &self,
        call: &Call<'_>,
        mut indexes: Vec<i32>,
        slices: &Slices,
        elements: &[T],
    ) -> Result<Vec<i32>, Fault> {
        for mut positions in slices.positions() {
            let Some(first) = positions.next() else { continue };
            let (mut best, mut index_of_best) = (&elements[first], 0);
            call.each((1..).zip(positions), |(index, position)| {
                let element = &elements[position];
                let is_better = match self.extreme {
                    Extreme::Max => element > best,
                    Extreme::Min => element < best,
                };
                if is_better {
                    (best, index_of_best) = (element, index);
                }
            })?;
            indexes.push(index_of_best);
        }
        Ok(indexes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, SINCE_1_2, assert_since, tensor};
    use OperandType::{
        TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    };
    use OperationType::{Argmax, Argmin};
    use nnhal_hal::OperandSpec;
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    fn example(
        operation: OperationType,
        input: OperandSpec,
        elements: &[f64],
        axis: i32,
    ) -> Example {
        let call = Example::new(operation).input(input, elements).int32s([axis]);
        call.output(tensor(TensorInt32, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for operation in [Argmax, Argmin] {
            assert_since(SINCE_1_2, |operand_type| {
                example(operation, tensor(operand_type, [1; 5]), &[1.0], 4)
            });
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        for axis in [2, -3] {
            assert_eq!(
                example(Argmin, tensor(TensorFloat32, [1, 2]), &[0.0; 2], axis).refusal(),
                format!(
                    "ARGMIN: value of input 1 (axis) is {axis}, expected an axis of a tensor of rank 2"
                )
            );
        }
        assert_eq!(
            example(Argmax, tensor(TensorFloat32, [2, 0]), &[], 1).refusal(),
            "ARGMAX: shape of input 0 (input) is [2, 0], expected at least one element along axis 1"
        );
    }

    #[test]
    fn values_by_hand() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            let result = |operation, axis| {
                let elements = [3.0, 9.0, 1.0, 7.0, 2.0, 8.0];
                example(operation, tensor(operand_type, [2, 3]), &elements, axis).result()
            };
            assert_eq!(result(Argmax, 1), (vec![2], vec![1.0, 2.0]));
            assert_eq!(result(Argmin, -1), (vec![2], vec![2.0, 1.0]));
            assert_eq!(result(Argmax, 0), (vec![3], vec![1.0, 0.0, 1.0]));
            assert_eq!(result(Argmin, -2), (vec![3], vec![0.0, 1.0, 0.0]));
        }
    }

    #[test]
    fn of_equal_elements_the_first_one_counts() {
        let result = |operation, elements: &[f64]| {
            let input = tensor(TensorFloat32, [u32::try_from(elements.len()).unwrap()]);
            example(operation, input, elements, 0).result()
        };
        assert_eq!(result(Argmax, &[1.0, 5.0, 5.0]), (vec![1], vec![1.0]));
        assert_eq!(result(Argmin, &[0.0, -0.0, 5.0]).1, [0.0]);
        assert_eq!(result(Argmax, &[1.0, f64::NAN, 2.0]).1, [2.0]);
        assert_eq!(result(Argmin, &[f64::NAN, 1.0, 2.0]).1, [0.0]);
    }

    #[test]
    fn the_axis_vanishes_as_far_as_shapes_are_known() {
        let shapes = |dimensions: &[u32]| {
            example(Argmax, tensor(TensorFloat32, [1, 1]), &[0.0], -1)
                .with_input_to_come(0, tensor(TensorFloat32, dimensions))
                .shapes()
        };
        assert_eq!(shapes(&[2, 0, 0]), Ok(vec![Shape::new([Some(2), None])]));
        assert_eq!(shapes(&[0]), Ok(vec![Shape::known([1])]));
        assert_eq!(shapes(&[]), Ok(vec![Shape::UNKNOWN]));
        let none = example(Argmax, tensor(TensorFloat32, [0, 2]), &[], 1);
        assert_eq!(none.result(), (vec![0], vec![]));
    }

    proptest! {
        #[test]
        fn nothing_before_is_as_good_and_nothing_behind_is_better(
            elements in prop::collection::vec(-4..5_i32, 1..9),
        ) {
            let as_floats: Vec<f64> = elements.iter().copied().map(f64::from).collect();
            let input = tensor(TensorInt32, [u32::try_from(elements.len()).unwrap()]);
            let found = example(Argmax, input.clone(), &as_floats, 0).result().1[0];
            let index = (0..elements.len()).find(|index| *index as f64 == found).unwrap();
            prop_assert!(elements[..index].iter().all(|other| *other < elements[index]));
            prop_assert!(elements[index..].iter().all(|other| *other <= elements[index]));
            let negated: Vec<f64> = as_floats.iter().map(|element| -element).collect();
            prop_assert_eq!(example(Argmin, input, &negated, 0).result().1[0], found);
        }
    }
}
