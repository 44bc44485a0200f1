//! LOCAL_RESPONSE_NORMALIZATION: each element divided by a power of its neighbours' squares along an
//! axis, `x / (bias + alpha * sum(x[d - radius ..= d + radius] ^ 2)) ^ beta`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 4 at most; before 1.2 only of rank 4 | float32, float16 |
//! | input 1 | radius | scalar | INT32, 0 or more |
//! | input 2 | bias | scalar | FLOAT32; FLOAT16 with float16 |
//! | input 3, 4 | alpha, beta | scalar | as the bias |
//! | input 5, from 1.2 | axis | scalar | INT32, from -rank to rank - 1, default -1 |
//! | output 0 | output | as the input | as the input |
//!
//! Neighbours beyond the ends of the axis do not exist.
//!
//! Source: `types.hal` 1.0, 1.2 (axis, ranks, float16).

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::slices::Slices;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// LOCAL_RESPONSE_NORMALIZATION.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LocalResponseNormalization {
    /// Number of neighbours on each side.
    pub radius: u32,
    /// Added to the squares; not 0.
    pub bias: f32,
    /// What the squares are multiplied by.
    pub alpha: f32,
    /// The exponent.
    pub beta: f32,
    /// The axis that neighbours are along.
    pub axis: usize,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::LocalResponseNormalization,
    // Columns: input and output; bias, alpha and beta.
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::int32("radius"),
            Parameter::column("bias", 1),
            Parameter::column("alpha", 1),
            Parameter::column("beta", 1),
            Parameter::int32("axis").trailing(HalVersion::V1_2).defaults_to(-1),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for LocalResponseNormalization {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn since(call: &Call<'_>) -> Since {
        Since::ALWAYS.and(
            HalVersion::V1_2,
            "a rank other than 4",
            call.input(0).shape.rank().is_some_and(|rank| rank != 4),
        )
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(1..=4)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=4)?;
        let axis = call.optional(5).unwrap_or(input);
        Ok(Self {
            radius: call.input(1).non_negative()?,
            bias: call.input(2).f32()?,
            alpha: call.input(3).f32()?,
            beta: call.input(4).f32()?,
            axis: axis.axis_of(call.optional_i32(5, -1)?, input)?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = input.dimensions()?;
        let (radius, bias) = (self.radius as usize, f64::from(self.bias));
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        let mut elements = input.f32s()?;
        let slices = Slices::new(&input.lengths()?, self.axis);
        let mut values: Vec<f64> = call.room(slices.length())?;
        for slice in slices.positions() {
            values.clear();
            call.each(slice.clone(), |at| values.push(f64::from(elements[at])))?;
            for (index, at) in slice.enumerate() {
                let first = index.saturating_sub(radius);
                let end = index.saturating_add(radius).saturating_add(1).min(values.len());
                let mut squares = -0.0;
                call.each(&values[first..end], |value| squares += value * value)?;
                elements[at] = real::round(values[index] / (bias + alpha * squares).powf(beta));
            }
        }
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_refused, tensor};
    use HalVersion::{V1_0, V1_2};
    use nnhal_hal::OperandSpec;

    fn example(dimensions: &[u32], values: &[f64], radius: i32, numbers: [f64; 3]) -> Example {
        let example = Example::new(OperationType::LocalResponseNormalization)
            .input(tensor(TensorFloat32, dimensions), values)
            .int32s([radius]);
        numbers
            .into_iter()
            .fold(example, |example, number| example.input(OperandSpec::scalar(Float32), &[number]))
            .output(tensor(TensorFloat32, []))
    }

    #[test]
    fn values_by_hand() {
        let values = [1.0, 2.0, 3.0];
        // Squares 1, 4, 9; over each element and one to either side: 5, 14, 13.
        let near = example(&[1, 1, 1, 3], &values, 1, [2.0, 1.0, 1.0]);
        assert_close(&near.result().1, &[1.0 / 7.0, 2.0 / 16.0, 3.0 / 15.0], 1e-7);
        let own = example(&[3], &values, 0, [2.0, 1.0, 1.0]);
        assert_close(&own.result().1, &[1.0 / 3.0, 2.0 / 6.0, 3.0 / 11.0], 1e-7);
        let all = example(&[3], &values, i32::MAX, [2.0, 1.0, 1.0]);
        assert_close(&all.result().1, &[1.0 / 16.0, 2.0 / 16.0, 3.0 / 16.0], 1e-7);
        let powers = example(&[3], &values, i32::MAX, [2.0, 0.5, -2.0]);
        assert_close(&powers.result().1, &[81.0, 162.0, 243.0], 1e-7);
        let no_power = example(&[3], &values, 1, [2.0, 1.0, 0.0]);
        assert_eq!(no_power.result().1, values);
    }

    #[test]
    fn neighbours_are_along_the_axis() {
        let square = example(&[2, 2], &[1.0, 2.0, 3.0, 4.0], 5, [1.0, 1.0, 1.0]);
        let rows = [1.0 / 6.0, 2.0 / 6.0, 3.0 / 26.0, 4.0 / 26.0];
        let columns = [1.0 / 11.0, 2.0 / 21.0, 3.0 / 11.0, 4.0 / 21.0];
        assert_close(&square.result().1, &rows, 1e-7);
        for (axis, expected) in [(-1, rows), (1, rows), (0, columns), (-2, columns)] {
            assert_close(&square.clone().int32s([axis]).result().1, &expected, 1e-7);
        }
        let empty = example(&[2, 0], &[], 5, [1.0, 1.0, 1.0]);
        assert_eq!(empty.result(), (vec![2, 0], vec![]));
    }

    #[test]
    fn each_row_has_its_version() {
        let float = example(&[1, 1, 1, 1], &[3.0], 0, [1.0, 1.0, 0.5]);
        assert_eq!(float.since(), Ok(V1_0));
        assert_eq!(float.clone().int32s([3]).since(), Ok(V1_2));
        let later = tensor(TensorFloat32, [0, 1, 1, 1]);
        assert_eq!(float.with_input_to_come(0, later).since(), Ok(V1_0));
        assert_eq!(example(&[1], &[3.0], 0, [1.0; 3]).since(), Ok(V1_2));
        let half = OperandSpec::scalar(Float16);
        let half = Example::new(OperationType::LocalResponseNormalization)
            .input(tensor(TensorFloat16, [1, 1, 1, 2]), &[300.0, 400.0])
            .int32s([1])
            .input(half.clone(), &[1.0])
            .input(half.clone(), &[1.0])
            .input(half, &[0.5])
            .output(tensor(TensorFloat16, []));
        assert_eq!(half.since(), Ok(V1_2));
        // The squares are beyond float16, the result is not.
        assert_close(&half.result().1, &[0.6, 0.8], 5e-4);
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let two = || example(&[2], &[1.0, 2.0], 1, [1.0; 3]);
        let scalar = |operand_type| OperandSpec::scalar(operand_type);
        let table = [
            (two().with_int32(1, -1), "value of input 1 (radius) is -1, expected 0 or more"),
            (two().int32s([1]), "value of input 5 (axis) is 1"),
            (two().int32s([-2]), "value of input 5 (axis) is -2"),
            (
                two().with_input(3, scalar(Float16), &[1.0]),
                "type of input 3 (alpha) is FLOAT16, expected FLOAT32",
            ),
            (
                two().with_input(0, tensor(TensorFloat32, [1; 5]), &[1.0]),
                "rank of input 0 (input) is 5, expected 1 to 4",
            ),
            (
                two().with_input(0, OperandSpec::tensor_quant8_asymm([1], 1.0, 0), &[1.0]),
                "type of input 0 (input) is TENSOR_QUANT8_ASYMM",
            ),
        ];
        assert_refused(&table);
    }
}
