//! DEPTH_TO_SPACE, SPACE_TO_DEPTH: channels as blocks of space, and back.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, channels]`, or in NCHW | float32, float16, quantized |
//! | input 1 | block size | scalar, 1 or more | INT32 |
//! | input 2 | NCHW? (1.2) | scalar | BOOL, true for NCHW |
//! | output 0 | output | see below, in the input's layout | as the input; same scale, zero point |
//!
//! | operation | output | must divide |
//! |---|---|---|
//! | DEPTH_TO_SPACE | `[batch, height * size, width * size, channels / size^2]` | `size^2` the channels |
//! | SPACE_TO_DEPTH | `[batch, height / size, width / size, channels * size^2]` | `size` height and width |
//!
//! The order of the channels is that of [`crate::rules::blocks`].
//!
//! Source: `types.hal` 1.0, 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::blocks::{Blocks, Stacking};
use crate::rules::layout::Layout;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// DEPTH_TO_SPACE
    DepthToSpace,
    /// SPACE_TO_DEPTH
    SpaceToDepth,
}

/// DEPTH_TO_SPACE or SPACE_TO_DEPTH.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DepthSpace {
    /// Which of the two.
    pub direction: Direction,
    /// How the space is cut.
    pub blocks: Blocks,
}

const ROWS: &[Row] = &[
    Row::new(HalVersion::V1_0, &[TensorFloat32]),
    Row::new(HalVersion::V1_0, &[TensorQuant8Asymm]),
    Row::new(HalVersion::V1_2, &[TensorFloat16]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned]),
];
pub(crate) const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[
        Parameter::column("input", 0),
        Parameter::int32("block size"),
        Parameter::bool("NCHW").trailing(HalVersion::V1_2),
    ],
    &[Parameter::column("output", 0)],
)];

static DEPTH_TO_SPACE: Signature =
    Signature { operation: OperationType::DepthToSpace, rows: ROWS, forms: FORMS };
static SPACE_TO_DEPTH: Signature =
    Signature { operation: OperationType::SpaceToDepth, rows: ROWS, forms: FORMS };

impl Operation for DepthSpace {
    const SIGNATURES: &'static [&'static Signature] = &[&DEPTH_TO_SPACE, &SPACE_TO_DEPTH];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(4)?;
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let direction = match call.definition() {
            OperationType::SpaceToDepth => Direction::SpaceToDepth,
            _ => Direction::DepthToSpace,
        };
        let blocks = Blocks {
            size: [call.input(1).positive()?; 2],
            stacking: Stacking::Channels,
            layout: Layout::from_flag(call.optional_bool(2)?),
        };
        Ok(Self { direction, blocks })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let layout = self.blocks.layout;
        let lengths = layout.to_nhwc(call.input(0).known_lengths_of()?);
        let lengths = match self.direction {
            Direction::DepthToSpace => self.blocks.widened(call.input(1), lengths)?,
            Direction::SpaceToDepth => self.blocks.stacked(call.input(1), lengths)?,
        };
        Ok(vec![Shape::new(layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let source = (input.bytes()?, input.lengths_of()?);
        Ok(vec![match self.direction {
            Direction::DepthToSpace => self.blocks.widen(source, output, dimensions)?,
            Direction::SpaceToDepth => self.blocks.stack(source, output, dimensions)?,
        }])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperationType::{DepthToSpace, SpaceToDepth};
    use proptest::prelude::*;

    /// A call on elements 0, 1, 2 and so on, in NHWC without saying so.
    fn example(
        operation: OperationType,
        operand_type: OperandType,
        dimensions: &[u32],
        block_size: i32,
    ) -> Example {
        Example::new(operation)
            .counted(tensor(operand_type, dimensions))
            .int32s([block_size])
            .output(tensor(operand_type, []))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let expected = [
            (TensorFloat32, Some(HalVersion::V1_0)),
            (TensorQuant8Asymm, Some(HalVersion::V1_0)),
            (TensorFloat16, Some(HalVersion::V1_2)),
            (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
            (OperandType::TensorInt32, None),
        ];
        for operation in [DepthToSpace, SpaceToDepth] {
            for (operand_type, since) in expected {
                let call = example(operation, operand_type, &[1; 4], 1);
                assert_eq!(call.since().ok(), since, "{operation} {operand_type}");
            }
            let with_layout = example(operation, TensorFloat32, &[1; 4], 1).bool(false);
            assert_eq!(with_layout.since(), Ok(HalVersion::V1_2));
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let refusal = |operation, dimensions: &[u32], block_size| {
            example(operation, TensorFloat32, dimensions, block_size).refusal()
        };
        assert_eq!(
            refusal(DepthToSpace, &[1; 3], 1),
            "DEPTH_TO_SPACE: rank of input 0 (input) is 3, expected 4"
        );
        assert!(refusal(DepthToSpace, &[1; 4], 0).contains("expected above 0"));
        assert!(refusal(SpaceToDepth, &[1; 4], -2).contains("expected 0 or more"));
        assert_eq!(
            refusal(DepthToSpace, &[1, 1, 1, 6], 2),
            "DEPTH_TO_SPACE: value of input 1 (block size) is 2 by 2, \
             expected blocks that divide a length of 6 into parts of 4"
        );
        for dimensions in [[1, 4, 3, 1], [1, 3, 4, 1]] {
            assert_eq!(
                refusal(SpaceToDepth, &dimensions, 2),
                "SPACE_TO_DEPTH: value of input 1 (block size) is 2 by 2, \
                 expected blocks that divide a length of 3 into parts of 2"
            );
        }
        assert!(refusal(DepthToSpace, &[1, 3, 1, 1], i32::MAX).contains("a length of 3"));
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = example(DepthToSpace, TensorQuant8Asymm, &[1; 4], 1).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn blocks_by_hand() {
        for operand_type in
            [TensorFloat32, TensorFloat16, TensorQuant8Asymm, TensorQuant8AsymmSigned]
        {
            // Of each block of 2 by 2, first the upper row; of each place, both channels.
            let wide = example(DepthToSpace, operand_type, &[1, 1, 2, 8], 2).result();
            let expected = [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15].map(f64::from);
            assert_eq!(wide, (vec![1, 2, 4, 2], expected.to_vec()));
            let deep = example(SpaceToDepth, operand_type, &[1, 2, 4, 1], 2).result();
            let expected = [0, 1, 4, 5, 2, 3, 6, 7].map(f64::from);
            assert_eq!(deep, (vec![1, 1, 2, 4], expected.to_vec()));
        }
    }

    #[test]
    fn nothing_has_blocks_too() {
        let call = example(SpaceToDepth, TensorFloat32, &[0, 2, 2, 1], 2);
        assert_eq!(call.result(), (vec![0, 1, 1, 4], vec![]));
        let call = example(DepthToSpace, TensorFloat32, &[1, 2, 2, 0], 2);
        assert_eq!(call.result(), (vec![1, 4, 4, 0], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |operation, dimensions: &[u32], is_nchw| {
            let input = tensor(TensorFloat32, dimensions);
            let call = example(operation, TensorFloat32, &[1; 4], 2).bool(is_nchw);
            call.with_input_to_come(0, input).shape()
        };
        let expected = Shape::new([Some(3), Some(10), None, Some(2)]);
        assert_eq!(shape(DepthToSpace, &[3, 5, 0, 8], false), expected);
        let expected = Shape::new([None, Some(8), Some(3), None]);
        assert_eq!(shape(SpaceToDepth, &[0, 2, 6, 0], true), expected);
        assert_eq!(shape(SpaceToDepth, &[], true), Shape::of_rank(4));
    }

    proptest! {
        #[test]
        fn there_and_back_in_both_layouts(
            lengths in prop::array::uniform4(1..4_u32),
            block_size in 1..4_u32,
            is_nchw: bool,
        ) {
            let [batch, height, width, channels] = lengths;
            let nhwc = [batch, height * block_size, width * block_size, channels];
            let wide = Layout::from_flag(is_nchw).from_nhwc(nhwc);
            let size = i32::try_from(block_size).unwrap();
            let deep = example(SpaceToDepth, TensorFloat32, &wide, size).bool(is_nchw).result();
            let back = example(DepthToSpace, TensorFloat32, &deep.0, size)
                .with_input(0, tensor(TensorFloat32, deep.0), &deep.1)
                .bool(is_nchw)
                .result();
            let count: u32 = wide.iter().product();
            prop_assert_eq!(back, (wide.to_vec(), (0..count).map(f64::from).collect()));
        }

        #[test]
        fn nchw_is_nhwc_in_another_order(lengths in prop::array::uniform4(1..3_u32)) {
            let [batch, height, width, channels] = lengths;
            let lengths = [batch, height, width, channels * 4];
            let count: u32 = lengths.iter().product();
            let elements: Vec<f64> = (0..count).map(f64::from).collect();
            let nhwc = example(DepthToSpace, TensorFloat32, &lengths, 2).result();
            let call = Call::new(SpaceToDepth, [], []);
            let exchanged = Layout::Nchw
                .elements_from_nhwc(&call, elements, lengths.map(|it| it as usize))
                .unwrap();
            let nchw_lengths = Layout::Nchw.from_nhwc(lengths);
            let nchw = example(DepthToSpace, TensorFloat32, &nchw_lengths, 2)
                .with_input(0, tensor(TensorFloat32, nchw_lengths), &exchanged)
                .bool(true)
                .result();
            let wide = [batch, height * 2, width * 2, channels].map(|it| it as usize);
            prop_assert_eq!(Ok(nchw.1), Layout::Nchw.elements_from_nhwc(&call, nhwc.1, wide));
        }
    }
}
