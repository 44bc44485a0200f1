//! FULLY_CONNECTED: `output[b, u] = activation(bias[u] + sum(input[b, i] * weights[u, i]))`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any of rank 2 to 4 with a multiple of `input_size` elements | float32, float16, quantized |
//! | input 1 | weights | `[num_units, input_size]`, none 0 | as the input |
//! | input 2 | bias | `[num_units]` | as the input; int32 if quantized |
//! | input 3 | activation | scalar | INT32 |
//! | output 0 | output | `[batch, num_units]` | as the input |
//!
//! The input's elements are read in order, `input_size` for each row of the batch, whatever its
//! rank: `batch` is their number divided by `input_size`, and may be 0. Up to 1.1 the output's
//! scale must be above input scale times weights scale.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, zero batch, output scale), 1.3 (signed).

use crate::call::{Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::convolution::{self, centred, filter_lengths, output_channels};
use crate::rules::{activation_range, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// FULLY_CONNECTED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FullyConnected {
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::FullyConnected,
    // Columns: input, weights and output; bias.
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, TensorFloat32]),
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorInt32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("input", 0),
            Parameter::column("weights", 0),
            Parameter::column("bias", 1),
            Parameter::int32("activation"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for FullyConnected {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn since(call: &Call<'_>) -> Since {
        convolution::since(call)
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank_in(2..=4)?;
        call.input(1).expect_rank(2)?;
        // No type that a row allows has channel scales, so the axis is of no account.
        convolution::validate_quantization(call, 0)?;
        rows_and_units(call).map(drop)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { activation: activation_range::decode(call.input(3))? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::new(rows_and_units(call)?)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, weights, bias, output) =
            (call.input(0), call.input(1), call.input(2), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let [_, input_size] = weights.lengths_of()?;
        if output.is_float() {
            let (input, weights, bias) = (input.f32s()?, weights.f32s()?, bias.f32s()?);
            let range = activation_range::real(self.activation);
            let mut elements = output.allocate(&dimensions)?;
            for row in input.chunks_exact(input_size) {
                for (weights, bias) in weights.chunks_exact(input_size).zip(&bias) {
                    // Summed in double precision and rounded once.
                    let mut products = -0.0;
                    call.each(row.iter().zip(weights), |(x, w)| {
                        products += f64::from(*x) * f64::from(*w);
                    })?;
                    let sum = f64::from(*bias) + products;
                    elements.push(activation_range::clamp(real::round(sum), range));
                }
            }
            return Ok(vec![output.with_f32s(dimensions, &elements)?]);
        }
        let requantizer = convolution::Requantizer::new(input, weights, output, self.activation);
        let (input, weights, bias) = (centred(input)?, centred(weights)?, bias.i32s()?);
        let mut elements = output.allocate(&dimensions)?;
        for row in input.chunks_exact(input_size) {
            for (unit, weights) in weights.chunks_exact(input_size).enumerate() {
                let mut sum = bias[unit];
                call.each(row.iter().zip(weights), |(x, w)| {
                    sum = sum.wrapping_add(x.wrapping_mul(*w));
                })?;
                elements.push(requantizer.stored(sum, unit));
            }
        }
        Ok(vec![output.with_integers(dimensions, &elements)?])
    }
}

/// The lengths of the output's two axes, as far as they are known.
pub(crate) fn rows_and_units(call: &Call<'_>) -> Result<[Option<u32>; 2], Fault> {
    let (input, weights, bias) = (call.input(0), call.input(1), call.input(2));
    input.expect_rank_in(2..=4)?;
    let [units, input_size] = filter_lengths(weights)?;
    let units = output_channels(weights, bias, units)?;
    let Some(input_size) = input_size.filter(|_| input.shape.to_known().is_some()) else {
        return Ok([None, units]);
    };
    let whole_rows = |count: u64| {
        let input_size = u64::from(input_size);
        count.is_multiple_of(input_size).then_some(count / input_size)
    };
    let rows = input.shape.element_count().and_then(whole_rows);
    let rows = rows.and_then(|rows| u32::try_from(rows).ok()).ok_or_else(|| {
        let expected = format!("rows of {input_size} elements, below 2^32 of them");
        input.wrong("shape", &input.shape, expected)
    })?;
    Ok([Some(rows), units])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_refused, float, tensor};
    use HalVersion::{V1_0, V1_2, V1_3};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// Two rows of three under two units: `1 x + 2 y + 3 z + 10` and `x - y + 20`.
    fn example() -> Example {
        Example::new(OperationType::FullyConnected)
            .input(float([2, 3]), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
            .input(float([2, 3]), &[1.0, 2.0, 3.0, 1.0, -1.0, 0.0])
            .input(float([2]), &[10.0, 20.0])
            .int32s([0])
            .output(float([0, 0]))
    }

    #[test]
    fn values_by_hand() {
        assert_eq!(example().result(), (vec![2, 2], vec![24.0, 19.0, 42.0, 19.0]));
        let clamped = example().with_int32(3, 3);
        assert_eq!(clamped.result().1, [6.0; 4]);
    }

    #[test]
    fn the_input_is_flattened() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        for dimensions in [vec![3, 2], vec![1, 6], vec![1, 2, 3], vec![1, 3, 1, 2]] {
            let other = example().with_input(0, float(dimensions), &values);
            assert_eq!(other.result(), example().result());
        }
    }

    #[test]
    fn quantized_values_by_hand() {
        let run = |operand_type, zero: f64, output_scale| {
            Example::new(OperationType::FullyConnected)
                .input(tensor(operand_type, [1, 2]), &[zero + 2.0, zero + 4.0])
                .input(tensor(operand_type, [1, 2]), &[zero + 3.0, zero - 5.0])
                .input(OperandSpec::tensor_int32([1]).quantized(0.25, 0), &[4.0])
                .int32s([0])
                .output(tensor(operand_type, [0, 0]).quantized(output_scale, 1))
                .result()
                .1
        };
        // 2 * 3 - 4 * 5 + 4 = -10 steps of 1/4.
        assert_eq!(run(TensorQuant8AsymmSigned, 0.0, 0.25), [-9.0]);
        assert_eq!(run(TensorQuant8AsymmSigned, 0.0, 0.5), [-4.0]);
        assert_eq!(run(TensorQuant8Asymm, 128.0, 0.25), [0.0]); // saturated
    }

    #[test]
    fn half_precision_is_rounded_once() {
        let sum = Example::new(OperationType::FullyConnected)
            .input(tensor(TensorFloat16, [1, 3]), &[2048.0, 1.0, 1.0])
            .input(tensor(TensorFloat16, [1, 3]), &[1.0; 3])
            .input(tensor(TensorFloat16, [1]), &[0.0])
            .int32s([0])
            .output(tensor(TensorFloat16, [0, 0]));
        assert_eq!(sum.result().1, [2050.0]);
    }

    #[test]
    fn an_empty_batch_gives_an_empty_batch() {
        let empty = example().with_input(0, float([0, 3]), &[]);
        assert_eq!(empty.result(), (vec![0, 2], vec![]));
        let empty = example().with_input(0, float([0, 1, 5]), &[]);
        assert_eq!(empty.result(), (vec![0, 2], vec![]));
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let shape = |example: Example| example.shape();
        let input = |dimensions: &[u32]| example().with_input_to_come(0, float(dimensions));
        assert_eq!(shape(input(&[0, 3])), Shape::new([None, Some(2)]));
        assert_eq!(shape(input(&[])), Shape::new([None, Some(2)]));
        let weights = |dimensions: &[u32]| example().with_input_to_come(1, float(dimensions));
        assert_eq!(shape(weights(&[0, 3])), Shape::known([2, 2]));
        assert_eq!(shape(weights(&[2, 0])), Shape::new([None, Some(2)]));
        assert_eq!(shape(weights(&[]).with_input_to_come(2, float([0]))), Shape::new([None, None]));
        assert_eq!(shape(example().with_input_to_come(0, float([4, 6]))), Shape::known([8, 2]),);
    }

    #[test]
    fn each_row_has_its_version() {
        let rows = [
            (TensorFloat32, TensorFloat32, V1_0),
            (TensorQuant8Asymm, TensorInt32, V1_0),
            (TensorFloat16, TensorFloat16, V1_2),
            (TensorQuant8AsymmSigned, TensorInt32, V1_3),
        ];
        for (operand_type, bias, version) in rows {
            let scale = if bias == TensorInt32 { 0.25 } else { 0.0 };
            let example = Example::new(OperationType::FullyConnected)
                .input_to_come(tensor(operand_type, [1, 3]))
                .input_to_come(tensor(operand_type, [2, 3]))
                .input_to_come(OperandSpec::new(bias, [2]).quantized(scale, 0))
                .int32s([0])
                .output(tensor(operand_type, [1, 2]));
            assert_eq!(example.since(), Ok(version));
            assert_eq!(example.shapes().unwrap(), [Shape::known([1, 2])]);
            if operand_type == TensorQuant8Asymm {
                let narrow = tensor(operand_type, [1, 2]).quantized(0.25, 0);
                assert_eq!(example.with_output(narrow).since(), Ok(V1_2));
            }
        }
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let quantized = |bias: OperandSpec| {
            Example::new(OperationType::FullyConnected)
                .input(tensor(TensorQuant8Asymm, [1, 1]), &[0.0])
                .input(tensor(TensorQuant8Asymm, [1, 1]), &[0.0])
                .input(bias, &[0.0])
                .int32s([0])
                .output(tensor(TensorQuant8Asymm, [0, 0]))
        };
        let int32 = |scale, zero| OperandSpec::tensor_int32([1]).quantized(scale, zero);
        quantized(int32(0.25, 0)).run().unwrap();
        let symmetric = OperandSpec::tensor_quant8_symm_per_channel([1, 1], &[0.5], 0);
        let table = [
            (example().with_int32(3, 4), "value of input 3 (activation) is 4"),
            (
                example().with_input(0, float([6]), &[0.0; 6]),
                "rank of input 0 (input) is 1, expected 2 to 4",
            ),
            (
                example().with_input(0, float([1, 1, 1, 2, 3]), &[0.0; 6]),
                "rank of input 0 (input) is 5, expected 2 to 4",
            ),
            (
                example().with_input(0, float([2, 2]), &[0.0; 4]),
                "shape of input 0 (input) is [2, 2], expected rows of 3 elements",
            ),
            (
                example().with_input(1, float([6]), &[0.0; 6]),
                "rank of input 1 (weights) is 1, expected 2",
            ),
            (
                example().with_input(1, float([2, 0]), &[]),
                "shape of input 1 (weights) is [2, 0], expected no length of 0",
            ),
            (
                example().with_input(2, float([3]), &[0.0; 3]),
                "shape of input 2 (bias) is [3], expected length 2 along axis 0",
            ),
            (
                example().with_input(2, float([2, 1]), &[0.0; 2]),
                "rank of input 2 (bias) is 2, expected 1",
            ),
            (quantized(int32(0.2, 0)), "scale of input 2 (bias) is 0.2, expected 0.25"),
            (quantized(int32(0.25, 3)), "zero point of input 2 (bias) is 3, expected 0"),
            (
                quantized(int32(0.25, 0)).with_input(1, symmetric, &[0.0]),
                "type of input 1 (weights) is TENSOR_QUANT8_SYMM_PER_CHANNEL",
            ),
            (
                example().with_input_to_come(0, float([u32::MAX, u32::MAX])),
                "expected rows of 3 elements, below 2^32 of them",
            ),
            (
                example().with_input_to_come(0, float([u32::MAX, u32::MAX, 3])),
                "expected rows of 3 elements, below 2^32 of them",
            ),
        ];
        assert_refused(&table);
    }

    proptest! {
        /// A unit matrix of weights gives back the input.
        #[test]
        fn a_unit_matrix_changes_nothing(values in prop::collection::vec(-1e6..1e6_f64, 6)) {
            let unit = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
            let same = Example::new(OperationType::FullyConnected)
                .input(float([2, 3]), &values)
                .input(float([3, 3]), &unit)
                .input(float([3]), &[0.0; 3])
                .int32s([0])
                .output(float([0, 0]));
            assert_close(&same.result().1, &values, 1e-7);
        }
    }
}
