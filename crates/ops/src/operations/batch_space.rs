//! BATCH_TO_SPACE_ND, SPACE_TO_BATCH_ND: batches as blocks of space, and back.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, channels]`, or in NCHW | float32, float16, quantized |
//! | input 1 | block size | `[2]` | TENSOR_INT32: rows and columns, 1 or more |
//! | input 2 (SPACE_TO_BATCH_ND) | paddings | `[2, 2]` | TENSOR_INT32: before and behind, of height and width |
//! | last input | NCHW? (1.2) | scalar | BOOL, true for NCHW |
//! | output 0 | output | see below, in the input's layout | as the input; same scale, zero point |
//!
//! | operation | output | must divide |
//! |---|---|---|
//! | BATCH_TO_SPACE_ND | `[batch / (rows * columns), height * rows, width * columns, channels]` | `rows * columns` the batch |
//! | SPACE_TO_BATCH_ND | `[batch * rows * columns, padded height / rows, padded width / columns, channels]` | rows and columns the padded height and width |
//!
//! The order of the batch is that of [`crate::rules::blocks`]. SPACE_TO_BATCH_ND pads with zeros: 0,
//! or the zero point. Until 1.2 that was not defined for `TENSOR_QUANT8_ASYMM`, so that one with a
//! zero point other than 0 needs 1.2.
//!
//! Source: `types.hal` 1.1, 1.2, 1.3 (signed).

use crate::call::{Argument, Call, Output, Since};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::blocks::{Blocks, Stacking};
use crate::rules::border::{self, Border};
use crate::rules::layout::Layout;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::{Form, NUMBERS_SINCE_1_1, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperationType};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// BATCH_TO_SPACE_ND
    BatchToSpace,
    /// SPACE_TO_BATCH_ND
    SpaceToBatch,
}

/// BATCH_TO_SPACE_ND or SPACE_TO_BATCH_ND.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchSpace {
    /// Which of the two.
    pub direction: Direction,
    /// How the space is cut.
    pub blocks: Blocks,
    /// What is laid around height and width before they are cut; BATCH_TO_SPACE_ND has no such.
    pub borders: [Border; 2],
}

const ROWS: &[Row] = NUMBERS_SINCE_1_1;

pub(crate) static BATCH_TO_SPACE: Signature = Signature {
    operation: OperationType::BatchToSpaceNd,
    rows: ROWS,
    forms: &[Form::new(
        HalVersion::V1_1,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("block size"),
            Parameter::bool("NCHW").trailing(HalVersion::V1_2),
        ],
        &[Parameter::column("output", 0)],
    )],
};

pub(crate) static SPACE_TO_BATCH: Signature = Signature {
    operation: OperationType::SpaceToBatchNd,
    rows: ROWS,
    forms: &[Form::new(
        HalVersion::V1_1,
        &[
            Parameter::column("input", 0),
            Parameter::tensor_int32("block size"),
            Parameter::tensor_int32("paddings"),
            Parameter::bool("NCHW").trailing(HalVersion::V1_2),
        ],
        &[Parameter::column("output", 0)],
    )],
};

fn is_space_to_batch(call: &Call<'_>) -> bool {
    call.definition() == OperationType::SpaceToBatchNd
}

impl Operation for BatchSpace {
    const SIGNATURES: &'static [&'static Signature] = &[&BATCH_TO_SPACE, &SPACE_TO_BATCH];

    fn since(call: &Call<'_>) -> Since {
        if is_space_to_batch(call) { border::since(call.input(0)) } else { Since::ALWAYS }
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(4)?;
        call.input(1).expect_rank(1)?;
        call.input(1).expect_length(0, Some(2))?;
        if is_space_to_batch(call) {
            border::validate(call.input(2), Some(2))?;
        }
        call.output(0).expect_quantized_as(call.input(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let size = two(call.input(1), call.input(1).i32s()?)?;
        let above_0 = |length: i32| {
            let length = u32::try_from(length).ok().filter(|length| *length > 0);
            length.ok_or_else(|| call.input(1).wrong("value", format!("{size:?}"), "above 0"))
        };
        let (direction, borders, layout) = if is_space_to_batch(call) {
            let borders = two(call.input(2), border::decode(call.input(2))?)?;
            (Direction::SpaceToBatch, borders, call.optional_bool(3)?)
        } else {
            (Direction::BatchToSpace, [Border::default(); 2], call.optional_bool(2)?)
        };
        let blocks = Blocks {
            size: [above_0(size[0])?, above_0(size[1])?],
            stacking: Stacking::Batch,
            layout: Layout::from_flag(layout),
        };
        Ok(Self { direction, blocks, borders })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (layout, size) = (self.blocks.layout, call.input(1));
        let lengths = match self.direction {
            Direction::BatchToSpace => {
                self.blocks.widened(size, layout.to_nhwc(call.input(0).known_lengths_of()?))?
            }
            Direction::SpaceToBatch => {
                self.blocks.stacked(size, layout.to_nhwc(self.padded(call)?))?
            }
        };
        Ok(vec![Shape::new(layout.from_nhwc(lengths))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        Ok(vec![match self.direction {
            Direction::BatchToSpace => {
                self.blocks.widen((input.bytes()?, input.lengths_of()?), output, dimensions)?
            }
            Direction::SpaceToBatch => {
                let wide = Shape::new(self.padded(call)?).to_known();
                let wide = wide.ok_or_else(|| call.not_known("dimensions"))?;
                let lengths = [0, 1, 2, 3].map(|axis: usize| wide[axis] as usize);
                let zero = movement::zero(output)?;
                let wide = border::laid(input, &self.all_borders(), &zero, output, wide)?;
                self.blocks.stack((&wide.bytes, lengths), output, dimensions)?
            }
        }])
    }
}

impl BatchSpace {
    /// The borders of all axes, in the layout's order.
    fn all_borders(&self) -> [Border; 4] {
        let [height, width] = self.borders;
        self.blocks.layout.from_nhwc([Border::default(), height, width, Border::default()])
    }

    /// The lengths of the input with its borders, in the layout's order.
    fn padded(&self, call: &Call<'_>) -> Result<[Option<u32>; 4], Fault> {
        let mut lengths = call.input(0).known_lengths_of()?;
        for (length, border) in lengths.iter_mut().zip(self.all_borders()) {
            if let Some(length) = length {
                *length = border.around(call.input(2), *length)?;
            }
        }
        Ok(lengths)
    }
}

/// What must be two.
fn two<T>(argument: &Argument<'_>, elements: Vec<T>) -> Result<[T; 2], Fault> {
    let found = elements.len();
    elements.try_into().map_err(|_| argument.wrong("number of elements", found, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperandType::TensorInt32;
    use OperandType::{TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned};
    use OperationType::{BatchToSpaceNd, SpaceToBatchNd};
    use nnhal_hal::OperandSpec;
    use nnhal_hal::OperandType;
    use proptest::prelude::*;

    fn on(
        operation: OperationType,
        operand_type: OperandType,
        dimensions: &[u32],
        size: [i32; 2],
    ) -> Example {
        let count: u32 = dimensions.iter().product();
        let elements: Vec<f64> = (1..=count).map(f64::from).collect();
        Example::new(operation)
            .input(tensor(operand_type, dimensions), &elements)
            .input(tensor(TensorInt32, [2]), &size.map(f64::from))
            .output(tensor(operand_type, []))
    }

    /// BATCH_TO_SPACE_ND on elements 1, 2, 3 and so on, in NHWC without saying so.
    fn to_space(operand_type: OperandType, dimensions: &[u32], size: [i32; 2]) -> Example {
        on(BatchToSpaceNd, operand_type, dimensions, size)
    }

    /// SPACE_TO_BATCH_ND, likewise.
    fn to_batch(
        operand_type: OperandType,
        dimensions: &[u32],
        size: [i32; 2],
        paddings: [i32; 4],
    ) -> Example {
        on(SpaceToBatchNd, operand_type, dimensions, size)
            .input(tensor(TensorInt32, [2, 2]), &paddings.map(f64::from))
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let expected = [
            (TensorFloat32, Some(HalVersion::V1_1)),
            (TensorFloat16, Some(HalVersion::V1_2)),
            (TensorQuant8AsymmSigned, Some(HalVersion::V1_3)),
            (TensorInt32, None),
        ];
        for (operand_type, since) in expected {
            for call in [
                to_space(operand_type, &[1; 4], [1, 1]),
                to_batch(operand_type, &[1; 4], [1, 1], [0; 4]),
            ] {
                assert_eq!(call.since().ok(), since, "{operand_type}");
                let newer = since.map(|since| since.max(HalVersion::V1_2));
                assert_eq!(call.bool(false).since().ok(), newer, "{operand_type} and layout");
            }
        }
    }

    #[test]
    fn model_25_borders_of_zeros_other_than_0_came_with_1_2() {
        for (zero_point, since) in [(0, HalVersion::V1_1), (1, HalVersion::V1_2)] {
            let input = OperandSpec::tensor_quant8_asymm([1; 4], 0.5, zero_point);
            let call = to_batch(TensorQuant8Asymm, &[1; 4], [1, 1], [0; 4]);
            assert_eq!(call.with_input(0, input.clone(), &[0.0]).since(), Ok(since));
            let call = to_space(TensorQuant8Asymm, &[1; 4], [1, 1]);
            assert_eq!(call.with_input(0, input, &[0.0]).since(), Ok(HalVersion::V1_1));
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        assert_eq!(
            to_space(TensorFloat32, &[1; 3], [1, 1]).refusal(),
            "BATCH_TO_SPACE_ND: rank of input 0 (input) is 3, expected 4"
        );
        let good = to_space(TensorFloat32, &[1; 4], [1, 1]);
        assert_eq!(
            good.with_input(1, tensor(TensorInt32, [3]), &[1.0; 3]).refusal(),
            "BATCH_TO_SPACE_ND: shape of input 1 (block size) is [3], \
             expected length 2 along axis 0"
        );
        for size in [[0, 1], [1, -1]] {
            assert_eq!(
                to_space(TensorFloat32, &[1; 4], size).refusal(),
                format!(
                    "BATCH_TO_SPACE_ND: value of input 1 (block size) is {size:?}, expected above 0"
                )
            );
        }
        assert_eq!(
            to_space(TensorFloat32, &[4, 1, 1, 1], [2, 3]).refusal(),
            "BATCH_TO_SPACE_ND: value of input 1 (block size) is 2 by 3, \
             expected blocks that divide a length of 4 into parts of 6"
        );
        assert_eq!(
            to_batch(TensorFloat32, &[1, 2, 2, 1], [2, 2], [0, 0, 1, 0]).refusal(),
            "SPACE_TO_BATCH_ND: value of input 1 (block size) is 2 by 2, \
             expected blocks that divide a length of 3 into parts of 2"
        );
        assert_eq!(
            to_batch(TensorFloat32, &[1, 2, 2, 1], [2, 2], [0, 0, -1, 0]).refusal(),
            "SPACE_TO_BATCH_ND: value of input 2 (paddings) is -1, expected 0 or more"
        );
        let most = i32::MAX;
        assert!(to_space(TensorFloat32, &[1; 4], [most, most]).refusal().contains("a length of 1"));
        assert!(
            to_batch(TensorFloat32, &[1, 2, 1, 1], [1, 1], [most, most, 0, 0])
                .refusal()
                .contains("at most 2^32 - 1")
        );
        assert!(
            to_batch(TensorFloat32, &[1; 4], [1, 1], [most, 0, most, 0])
                .refusal()
                .contains("at most 2^32 - 1 bytes")
        );
        let output = tensor(TensorQuant8Asymm, []).quantized(0.25, 128);
        let other = to_space(TensorQuant8Asymm, &[1; 4], [1, 1]).with_output(output);
        assert!(other.refusal().contains("scale of output 0"));
    }

    #[test]
    fn blocks_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorQuant8AsymmSigned] {
            let found = to_space(operand_type, &[4, 1, 1, 1], [2, 2]).result();
            assert_eq!(found, (vec![1, 2, 2, 1], vec![1.0, 2.0, 3.0, 4.0]));
            let found = to_space(operand_type, &[2, 1, 2, 1], [1, 2]).result();
            assert_eq!(found, (vec![1, 1, 4, 1], vec![1.0, 3.0, 2.0, 4.0]));
            let found = to_batch(operand_type, &[1, 2, 4, 1], [2, 2], [0; 4]).result();
            let expected = vec![1.0, 3.0, 2.0, 4.0, 5.0, 7.0, 6.0, 8.0];
            assert_eq!(found, (vec![4, 1, 2, 1], expected));
            // Two batches: those of a place of the block stay together.
            let found = to_batch(operand_type, &[2, 1, 2, 1], [1, 2], [0; 4]).result();
            assert_eq!(found, (vec![4, 1, 1, 1], vec![1.0, 3.0, 2.0, 4.0]));
        }
    }

    #[test]
    fn borders_are_zeros() {
        for (operand_type, zero) in
            [(TensorFloat32, 0.0), (TensorFloat16, 0.0), (TensorQuant8Asymm, 128.0)]
        {
            // The padded image: 0 0 0, 0 1 2.
            let found = to_batch(operand_type, &[1, 1, 2, 1], [2, 1], [1, 0, 1, 0]).result();
            let expected = vec![zero, zero, zero, zero, 1.0, 2.0];
            assert_eq!(found, (vec![2, 1, 3, 1], expected));
        }
    }

    #[test]
    fn nothing_has_blocks_too() {
        let found = to_batch(TensorFloat32, &[1, 0, 2, 1], [1, 2], [0; 4]).result();
        assert_eq!(found, (vec![2, 0, 1, 1], vec![]));
        let found = to_batch(TensorFloat32, &[1, 0, 1, 1], [1, 1], [1, 0, 0, 0]).result();
        assert_eq!(found, (vec![1, 1, 1, 1], vec![0.0]));
        let found = to_space(TensorFloat32, &[0, 1, 1, 1], [2, 2]).result();
        assert_eq!(found, (vec![0, 2, 2, 1], vec![]));
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |call: Example, dimensions: &[u32]| {
            let input = tensor(TensorFloat32, dimensions);
            call.with_input_to_come(0, input).shape()
        };
        let wide = to_space(TensorFloat32, &[6, 1, 1, 1], [2, 3]);
        assert_eq!(
            shape(wide.clone(), &[6, 0, 5, 7]),
            Shape::new([Some(1), None, Some(15), Some(7)])
        );
        assert_eq!(shape(wide, &[]), Shape::of_rank(4));
        let stacked = to_batch(TensorFloat32, &[1; 4], [2, 3], [1, 0, 1, 1]).bool(true);
        assert_eq!(shape(stacked, &[0, 4, 5, 7]), Shape::new([None, Some(4), Some(3), Some(3)]));
    }

    proptest! {
        #[test]
        fn there_and_back_in_both_layouts(
            lengths in prop::array::uniform4(1..4_u32),
            size in prop::array::uniform2(1..4_u32),
            is_nchw: bool,
        ) {
            let [batch, height, width, channels] = lengths;
            let nhwc = [batch, height * size[0], width * size[1], channels];
            let wide = Layout::from_flag(is_nchw).from_nhwc(nhwc);
            let size = size.map(|length| i32::try_from(length).unwrap());
            let stacked = to_batch(TensorFloat32, &wide, size, [0; 4]).bool(is_nchw).result();
            let back = to_space(TensorFloat32, &stacked.0, size)
                .with_input(0, tensor(TensorFloat32, stacked.0), &stacked.1)
                .bool(is_nchw)
                .result();
            let count: u32 = wide.iter().product();
            prop_assert_eq!(back, (wide.to_vec(), (1..=count).map(f64::from).collect()));
        }
    }
}
