//! RANK: the number of axes.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | every tensor type |
//! | output 0 | rank | scalar | INT32 |
//!
//! Source: `types.hal` 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorBool8, TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm,
    TensorQuant8AsymmSigned, TensorQuant8Symm, TensorQuant8SymmPerChannel, TensorQuant16Asymm,
    TensorQuant16Symm,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// RANK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rank;

static SIGNATURE: Signature = Signature {
    operation: OperationType::Rank,
    rows: &[
        Row::new(HalVersion::V1_3, &[TensorFloat32]),
        Row::new(HalVersion::V1_3, &[TensorFloat16]),
        Row::new(HalVersion::V1_3, &[TensorInt32]),
        Row::new(HalVersion::V1_3, &[TensorBool8]),
        Row::new(HalVersion::V1_3, &[TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
        Row::new(HalVersion::V1_3, &[TensorQuant8Symm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8SymmPerChannel]),
        Row::new(HalVersion::V1_3, &[TensorQuant16Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant16Symm]),
    ],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[Parameter::column("input", 0)],
        &[Parameter::int32("rank")],
    )],
};

impl Operation for Rank {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, _call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::known([])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let input = call.input(0);
        let rank = input.shape.rank().ok_or_else(|| input.not_known("rank"))?;
        let rank = i32::try_from(rank).map_err(|_| input.wrong("rank", rank, "below 2^31"))?;
        Ok(vec![call.output(0).with_integers(vec![], &[rank])?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::OperandSpec;

    fn example(operand_type: OperandType, dimensions: &[u32]) -> Example {
        let count: u32 = dimensions.iter().product();
        Example::new(OperationType::Rank)
            .input(tensor(operand_type, dimensions), &vec![0.0; count as usize])
            .output(OperandSpec::scalar(OperandType::Int32))
    }

    #[test]
    fn axes_of_every_type_are_counted() {
        for operand_type in OperandType::FUNDAMENTAL.iter().copied() {
            if operand_type.is_scalar() || operand_type.is_oem() {
                continue;
            }
            for dimensions in [&[1][..], &[2, 0], &[1; 7]] {
                let call = example(operand_type, dimensions);
                assert_eq!(call.since(), Ok(HalVersion::V1_3), "{operand_type}");
                let output = call.run().unwrap().swap_remove(0);
                let rank = i32::try_from(dimensions.len()).unwrap();
                assert_eq!(output.bytes, rank.to_le_bytes());
                assert!(output.dimensions.is_empty());
            }
        }
    }

    #[test]
    fn the_rank_is_a_scalar() {
        let call = example(TensorFloat32, &[1]);
        assert_eq!(
            call.with_output(tensor(TensorInt32, [])).refusal(),
            "RANK: type of output 0 (rank) is TENSOR_INT32, expected INT32"
        );
    }

    #[test]
    fn lengths_need_not_be_known() {
        let input = tensor(TensorFloat32, [0, 3]);
        let call = example(TensorFloat32, &[1]).with_input_to_come(0, input);
        assert_eq!(call.run().unwrap()[0].bytes, 2_i32.to_le_bytes());
        let unknown = example(TensorFloat32, &[1]).with_input_to_come(0, tensor(TensorFloat32, []));
        assert_eq!(unknown.shapes(), Ok(vec![Shape::known([])]));
        assert!(matches!(unknown.run(), Err(Fault::NotKnown { .. })));
    }
}
