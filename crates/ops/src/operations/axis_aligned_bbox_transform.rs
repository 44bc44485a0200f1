//! `AXIS_ALIGNED_BBOX_TRANSFORM`: boxes moved and scaled by a network's deltas, one result for each
//! class, and clipped to their image.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | regions | `[regions, 4]`: x1, y1, x2, y2 | float32, float16, quant16 of scale 1/8 |
//! | input 1 | deltas | `[regions, classes * 4]`: dx, dy, dw, dh | as the regions; quant8 if quantized |
//! | input 2 | batch indexes | `[regions]` | int32 |
//! | input 3 | images | `[batches, 2]`: height, width | as the regions |
//! | output 0 | output | as the deltas: x1, y1, x2, y2 | as the regions |
//!
//! The centre moves by `dx` widths and `dy` heights; width and height grow by the factors `exp(dw)`
//! and `exp(dh)`. Only the regions may be none.
//!
//! Source: `types.hal` 1.2, 1.3 (signed deltas).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{bounding_box, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant16Asymm,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// `AXIS_ALIGNED_BBOX_TRANSFORM`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AxisAlignedBboxTransform;

static SIGNATURE: Signature = Signature {
    operation: OperationType::AxisAlignedBboxTransform,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant16Asymm, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant16Asymm, TensorQuant8AsymmSigned]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("regions", 0),
            Parameter::column("deltas", 1),
            Parameter::tensor_int32("batch indexes"),
            Parameter::column("images", 0),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for AxisAlignedBboxTransform {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        for (index, rank) in [(0, 2), (1, 2), (2, 1), (3, 2)] {
            call.input(index).expect_rank(rank)?;
        }
        bounding_box::expect_quantization(call.input(0))?;
        bounding_box::expect_quantization(call.input(3))?;
        bounding_box::expect_quantization(call.output(0))
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (regions, deltas, batch_indexes, images) =
            (call.input(0), call.input(1), call.input(2), call.input(3));
        let [count, _] = regions.known_lengths_of()?;
        let [delta_count, numbers] = deltas.known_lengths_of()?;
        let count = count.or(delta_count).or(batch_indexes.shape.length(0));
        regions.expect_length(1, Some(4))?;
        deltas.expect_length(0, count)?;
        batch_indexes.expect_length(0, count)?;
        images.expect_length(1, Some(2))?;
        if numbers.is_some_and(|numbers| numbers == 0 || numbers % 4 != 0) {
            let expected = "four numbers along axis 1 for each of one or more classes";
            return Err(deltas.wrong("shape", &deltas.shape, expected));
        }
        if images.shape.length(0) == Some(0) {
            return Err(images.wrong("shape", &images.shape, "one or more along axis 0"));
        }
        Ok(vec![Shape::new([count, numbers])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (batch_indexes, images, output) = (call.input(2), call.input(3), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let mut edges: Vec<f32> = output.allocate(&dimensions)?;
        let regions = bounding_box::read(call.input(0))?;
        let image_sizes = images.reals()?;
        let (image_sizes, _) = image_sizes.as_chunks::<2>();
        let deltas = call.input(1).reals()?;
        let deltas = deltas.chunks_exact(dimensions[1] as usize);
        for ((region, index), deltas) in regions.into_iter().zip(batch_indexes.i32s()?).zip(deltas)
        {
            let image_size = usize::try_from(index)
                .ok()
                .and_then(|index| image_sizes.get(index))
                .ok_or_else(|| {
                let expected = format!("0 to {}, exclusive", image_sizes.len());
                batch_indexes.wrong("value", index, expected)
            })?;
            let (deltas, _) = deltas.as_chunks();
            call.each(deltas, |delta| {
                edges.extend(region.transformed(*delta).clipped(*image_size).to_array());
            })?;
        }
        Ok(vec![real::store(output, dimensions, edges)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn coordinates(operand_type: OperandType, dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        match operand_type {
            TensorQuant16Asymm => OperandSpec::new(operand_type, dimensions).quantized(0.125, 0),
            _ => tensor(operand_type, dimensions),
        }
    }

    /// One region in an image of 20 by 10 (height by width), as they are stored.
    fn example([region, delta]: [OperandType; 2], edges: [f64; 4], deltas: &[f64]) -> Example {
        let unit = if region == TensorQuant16Asymm { 8.0 } else { 1.0 };
        let numbers = u32::try_from(deltas.len()).unwrap();
        Example::new(OperationType::AxisAlignedBboxTransform)
            .input(coordinates(region, [1, 4]), &edges.map(|edge| edge * unit))
            .input(tensor(delta, [1, numbers]), deltas)
            .input(OperandSpec::tensor_int32([1]), &[0.0])
            .input(coordinates(region, [1, 2]), &[20.0 * unit, 10.0 * unit])
            .output(coordinates(region, [0, 0]))
    }

    const FLOAT: [OperandType; 2] = [TensorFloat32, TensorFloat32];

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for (types, since) in [
            (FLOAT, Some(HalVersion::V1_2)),
            ([TensorFloat16, TensorFloat16], Some(HalVersion::V1_2)),
            ([TensorQuant16Asymm, TensorQuant8Asymm], Some(HalVersion::V1_2)),
            ([TensorQuant16Asymm, TensorQuant8AsymmSigned], Some(HalVersion::V1_3)),
            ([TensorQuant16Asymm, TensorFloat32], None),
            ([TensorFloat32, TensorFloat16], None),
        ] {
            let found = example(types, [0.0; 4], &[0.0; 4]);
            assert_eq!(found.since().ok(), since, "{types:?}");
            assert_eq!(found.run().is_ok(), since.is_some(), "{types:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(FLOAT, [0.0; 4], &[0.0; 8]);
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let quantized = example([TensorQuant16Asymm, TensorQuant8Asymm], [0.0; 4], &[0.0; 4]);
        let coarse = |dimensions: [u32; 2]| {
            OperandSpec::new(TensorQuant16Asymm, dimensions).quantized(0.25, 0)
        };
        for (refused, message) in [
            (
                good.clone().with_input(0, float(&[4]), &[0.0; 4]),
                "rank of input 0 (regions) is 1, expected 2",
            ),
            (
                good.clone().with_input(0, float(&[1, 3]), &[0.0; 3]),
                "shape of input 0 (regions) is [1, 3], expected length 4 along axis 1",
            ),
            (
                good.clone().with_input(1, float(&[2, 4]), &[0.0; 8]),
                "shape of input 1 (deltas) is [2, 4], expected length 1 along axis 0",
            ),
            (
                good.clone().with_input(1, float(&[1, 6]), &[0.0; 6]),
                "shape of input 1 (deltas) is [1, 6], expected four numbers along axis 1 for \
                 each of one or more classes",
            ),
            (
                good.clone().with_input(1, float(&[1, 0]), &[]),
                "shape of input 1 (deltas) is [1, 0], expected four numbers along axis 1 for \
                 each of one or more classes",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([2]), &[0.0; 2]),
                "shape of input 2 (batch indexes) is [2], expected length 1 along axis 0",
            ),
            (
                good.clone().with_input(3, float(&[1, 3]), &[9.0; 3]),
                "shape of input 3 (images) is [1, 3], expected length 2 along axis 1",
            ),
            (
                good.clone().with_input(3, float(&[0, 2]), &[]),
                "shape of input 3 (images) is [0, 2], expected one or more along axis 0",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([1]), &[1.0]),
                "value of input 2 (batch indexes) is 1, expected 0 to 1, exclusive",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([1]), &[-1.0]),
                "value of input 2 (batch indexes) is -1, expected 0 to 1, exclusive",
            ),
            (
                example(FLOAT, [1.0, 0.0, 0.0, 0.0], &[0.0; 4]),
                "value of input 0 (regions) is [1.0, 0.0, 0.0, 0.0], expected boxes \
                 [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2",
            ),
            (
                quantized.clone().with_input(0, coarse([1, 4]), &[0.0; 4]),
                "scale of input 0 (regions) is 0.25, expected 0.125",
            ),
            (
                quantized.clone().with_input(3, coarse([1, 2]), &[0.0; 2]),
                "scale of input 3 (images) is 0.25, expected 0.125",
            ),
            (
                quantized.with_output(coarse([1, 4])),
                "scale of output 0 (output) is 0.25, expected 0.125",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("AXIS_ALIGNED_BBOX_TRANSFORM: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |regions: &[u32], deltas: &[u32], indexes: &[u32]| {
            Example::new(OperationType::AxisAlignedBboxTransform)
                .input_to_come(tensor(TensorFloat32, regions))
                .input_to_come(tensor(TensorFloat32, deltas))
                .input_to_come(OperandSpec::tensor_int32(indexes))
                .input_to_come(tensor(TensorFloat32, []))
                .output(tensor(TensorFloat32, []))
                .shapes()
        };
        assert_eq!(shapes(&[3, 4], &[0, 8], &[0]), Ok(vec![Shape::known([3, 8])]));
        assert_eq!(shapes(&[], &[], &[3]), Ok(vec![Shape::new([Some(3), None])]));
        assert_eq!(shapes(&[], &[], &[]), Ok(vec![Shape::of_rank(2)]));
        let none = example(FLOAT, [0.0; 4], &[0.0; 4])
            .with_input(0, tensor(TensorFloat32, [0, 4]), &[])
            .with_input(1, tensor(TensorFloat32, [0, 8]), &[])
            .with_input(2, OperandSpec::tensor_int32([0]), &[]);
        assert_eq!(none.result(), (vec![0, 8], vec![]));
    }

    #[test]
    fn values_by_hand() {
        // Centre (4, 3), width 4, height 2; the image ends at x = 10 and y = 20.
        let ln_2 = 2.0_f64.ln();
        let deltas = [0.5, -1.0, 0.0, 0.0, 0.0, 0.0, ln_2, ln_2, 1.0, 10.0, 0.0, 0.0];
        let expected = [4.0, 0.0, 8.0, 2.0, 0.0, 1.0, 8.0, 5.0, 6.0, 20.0, 10.0, 20.0];
        for (types, tolerance) in [(FLOAT, 1e-6), ([TensorFloat16, TensorFloat16], 1e-3)] {
            let found = example(types, [2.0, 2.0, 6.0, 4.0], &deltas).result();
            assert_eq!(found.0, [1, 12]);
            assert_close(&found.1, &expected, tolerance);
        }
    }

    #[test]
    fn quantized_values_by_hand() {
        // Deltas step by 1/2: dx 1/2, dy -1. Eighths in the output.
        for (delta, zero_point) in [(TensorQuant8Asymm, 128.0), (TensorQuant8AsymmSigned, 0.0)] {
            let deltas = [1.0, -2.0, 0.0, 0.0].map(|steps| steps + zero_point);
            let found = example([TensorQuant16Asymm, delta], [2.0, 2.0, 6.0, 4.0], &deltas);
            assert_eq!(found.result().1, [32.0, 0.0, 64.0, 16.0]);
        }
    }

    #[test]
    fn each_region_is_clipped_to_its_own_image() {
        let found = example(FLOAT, [0.0; 4], &[0.0; 4])
            .with_input(0, tensor(TensorFloat32, [2, 4]), &[0.0, 0.0, 9.0, 9.0, 0.0, 0.0, 9.0, 9.0])
            .with_input(1, tensor(TensorFloat32, [2, 4]), &[0.0; 8])
            .with_input(2, OperandSpec::tensor_int32([2]), &[1.0, 0.0])
            .with_input(3, tensor(TensorFloat32, [2, 2]), &[1.0, 2.0, 3.0, 4.0]);
        assert_close(&found.result().1, &[0.0, 0.0, 4.0, 3.0, 0.0, 0.0, 2.0, 1.0], 1e-6);
    }

    proptest! {
        #[test]
        fn results_are_valid_boxes_within_the_image(
            corner in (0.0..9.0_f64, 0.0..9.0_f64),
            size in (0.0..9.0_f64, 0.0..9.0_f64),
            deltas in prop::collection::vec(-5.0..5.0_f64, 4),
        ) {
            let edges = [corner.0, corner.1, corner.0 + size.0, corner.1 + size.1];
            let found = example(FLOAT, edges, &deltas).result().1;
            prop_assert!(0.0 <= found[0] && found[0] <= found[2] && found[2] <= 10.0);
            prop_assert!(0.0 <= found[1] && found[1] <= found[3] && found[3] <= 20.0);
        }
    }
}
