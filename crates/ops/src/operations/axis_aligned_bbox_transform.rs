//! `AXIS_ALIGNED_BBOX_TRANSFORM`: boxes moved and scaled by a network's deltas, one result for each
//! class, and clipped to their image.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | regions | `[regions, 4]`: x1, y1, x2, y2 | float32, float16, quant16 of scale 1/8 |
//! | input 1 | deltas | `[regions, classes * 4]`: dx, dy, dw, dh | as the regions; quant8 if quantised |
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
use hal::{HalVersion, OperandType, OperationType};

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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

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
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| output.not_known("dimensions"))?;
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
            for delta in deltas {
                edges.extend(region.transformed(*delta).clipped(*image_size).to_array());
            }
        }
        Ok(vec![real::store(output, dimensions, edges)?])
    }
}
