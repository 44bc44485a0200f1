//! DEQUANTIZE: `scale * (input - zero point)`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | rank 4 at most | quant8 asymm, signed, symm, per channel |
//! | output 0 | output | as the input | float32, float16 |
//!
//! Per channel, the scale is the one of the element's index along the channel dimension, and the
//! zero point is 0.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, symm, per channel, zero-sized), 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant8Symm,
    TensorQuant8SymmPerChannel,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// DEQUANTIZE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dequantize;

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Dequantize,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorQuant8Asymm, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Symm, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Symm, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8SymmPerChannel, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorQuant8SymmPerChannel, TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorFloat32]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[Parameter::column("input", 0)],
        &[Parameter::column("output", 1)],
    )],
};

impl Operation for Dequantize {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let input = call.input(0);
        input.expect_rank_in(1..=input.most_axes(4))?;
        let Some(quant) = input.channel_quant() else { return Ok(()) };
        let axis = usize::try_from(quant.channel_dim).unwrap_or(usize::MAX);
        if input.shape.rank().is_some_and(|rank| axis >= rank) {
            return Err(input.wrong("channel dimension", axis, "one of the tensor's axes"));
        }
        input.expect_length(axis, Some(u32::try_from(quant.scales.len()).unwrap_or(u32::MAX)))
    }

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let Some(quant) = input.channel_quant() else {
            return Ok(vec![real::map(input, output, |x| x)?]);
        };
        let dimensions = input.dimensions()?;
        let stored = input.integers()?;
        let axis = usize::try_from(quant.channel_dim).unwrap_or(usize::MAX);
        // How many elements of a channel follow each other.
        let run: usize = input.lengths()?.iter().skip(axis.saturating_add(1)).product();
        let runs = stored.chunks(run.max(1)).zip(quant.scales.iter().cycle());
        // Stored values have 8 bits.
        #[allow(clippy::cast_precision_loss)]
        let elements = runs.flat_map(|(run, scale)| run.iter().map(move |it| *it as f32 * scale));
        let elements: Vec<f32> = output.collect(&dimensions, elements)?;
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    fn example(input: OperandSpec, elements: &[f64], output_type: OperandType) -> Example {
        let output = tensor(output_type, []);
        Example::new(OperationType::Dequantize).input(input, elements).output(output)
    }

    fn per_channel(dimensions: &[u32], scales: &[f32], channel_dim: u32) -> OperandSpec {
        OperandSpec::tensor_quant8_symm_per_channel(dimensions, scales, channel_dim)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        use HalVersion::{V1_0, V1_2, V1_3};
        for (input, since) in [
            (tensor(TensorQuant8Asymm, [1]), V1_0),
            (tensor(TensorQuant8Symm, [1]), V1_2),
            (per_channel(&[1], &[0.5], 0), V1_2),
            (tensor(TensorQuant8AsymmSigned, [1]), V1_3),
        ] {
            for (output_type, needed) in [(TensorFloat32, V1_0), (TensorFloat16, V1_2)] {
                let call = example(input.clone(), &[0.0], output_type);
                assert_eq!(call.since(), Ok(since.max(needed)), "{}", input.operand_type);
                assert!(call.run().is_ok());
            }
            assert!(example(input, &[0.0], OperandType::TensorInt32).since().is_err());
        }
        let float = example(tensor(TensorFloat32, [1]), &[0.0], TensorFloat32);
        assert!(float.since().is_err());
        let wide = example(tensor(OperandType::TensorQuant16Symm, [1]), &[0.0], TensorFloat32);
        assert!(wide.since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert_eq!(
            example(tensor(TensorQuant8Asymm, [1; 5]), &[0.0], TensorFloat32).refusal(),
            "DEQUANTIZE: rank of input 0 (input) is 5, expected 1 to 4"
        );
        assert_eq!(
            example(per_channel(&[1, 2], &[0.5], 1), &[0.0; 2], TensorFloat32).refusal(),
            "DEQUANTIZE: shape of input 0 (input) is [1, 2], expected length 1 along axis 1"
        );
        assert_eq!(
            example(per_channel(&[1], &[0.5], u32::MAX), &[0.0], TensorFloat32).refusal(),
            "DEQUANTIZE: channel dimension of input 0 (input) is 4294967295, expected one of the \
             tensor's axes"
        );
    }

    #[test]
    fn values_by_hand() {
        for output_type in [TensorFloat32, TensorFloat16] {
            let result = |input, elements: &[f64]| example(input, elements, output_type).result().1;
            let unsigned = OperandSpec::tensor_quant8_asymm([3], 0.5, 10);
            assert_eq!(result(unsigned, &[0.0, 10.0, 255.0]), [-5.0, 0.0, 122.5]);
            let signed = OperandSpec::tensor_quant8_asymm_signed([3], 0.5, -10);
            assert_eq!(result(signed, &[-128.0, -10.0, 127.0]), [-59.0, 0.0, 68.5]);
            let symmetric = tensor(TensorQuant8Symm, [2]);
            assert_eq!(result(symmetric, &[-128.0, 127.0]), [-64.0, 63.5]);
        }
    }

    #[test]
    fn each_channel_has_its_scale() {
        let elements = [1.0, 2.0, 3.0, -1.0, -2.0, -3.0];
        let result = |scales: &[f32], axis| {
            example(per_channel(&[2, 3], scales, axis), &elements, TensorFloat32).result()
        };
        let along_rows = vec![2.0, 4.0, 6.0, -0.5, -1.0, -1.5];
        assert_eq!(result(&[2.0, 0.5], 0), (vec![2, 3], along_rows));
        assert_eq!(result(&[2.0, 0.5, 1.0], 1).1, [2.0, 1.0, 3.0, -2.0, -1.0, -3.0]);
    }

    #[test]
    fn shapes_are_those_of_the_input_even_of_nothing() {
        let call = example(tensor(TensorQuant8Asymm, [2, 0]), &[], TensorFloat32);
        assert_eq!(call.result(), (vec![2, 0], vec![]));
        let empty = example(per_channel(&[0, 1], &[0.5], 1), &[], TensorFloat32);
        assert_eq!(empty.result(), (vec![0, 1], vec![]));
        let open = call.with_input_to_come(0, tensor(TensorQuant8Asymm, [0, 3]));
        assert_eq!(open.shapes(), Ok(vec![Shape::new([None, Some(3)])]));
        let open = open.with_input_to_come(0, per_channel(&[], &[0.5], 7));
        assert_eq!(open.shapes(), Ok(vec![Shape::UNKNOWN]));
    }
}
