//! `GENERATE_PROPOSALS`: boxes that may show something, from a network's scores and deltas for
//! boxes of a few shapes (anchors) at every cell of a feature map.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | scores | `[batch, height, width, anchors]`, or NCHW | float32, float16, quantised |
//! | input 1 | deltas | `[batch, height, width, anchors * 4]`: dx, dy, dw, dh, or NCHW | as the scores |
//! | input 2 | anchors | `[anchors, 4]`: x1, y1, x2, y2 | as the scores; signed quant16 of scale 1/8 if quantised |
//! | input 3 | images | `[batch, 2]`: height, width | as the scores; quant16 of scale 1/8 if quantised |
//! | inputs 4, 5 | height, width stride | scalar: the image's size by the feature map's | FLOAT32; FLOAT16 if the scores are |
//! | input 6 | limit before suppression | scalar, boxes of an image; below 1: no limit | INT32 |
//! | input 7 | limit | scalar, boxes of an image; below 1: no limit | INT32 |
//! | input 8 | overlap threshold | scalar | as input 4 |
//! | input 9 | least size | scalar | as input 4 |
//! | input 10 | NCHW? | scalar | BOOL |
//! | output 0 | scores | `[proposals]` | as the scores; same scale, zero point |
//! | output 1 | boxes | `[proposals, 4]`: x1, y1, x2, y2 | as the images |
//! | output 2 | batch indexes | `[proposals]` | int32 |
//!
//! For each image:
//!
//! 1. each anchor is shifted to each cell, transformed as by `AXIS_ALIGNED_BBOX_TRANSFORM` and
//!    clipped to the image;
//! 2. those with the highest scores are taken, as many as the limit before suppression says;
//! 3. of these, boxes that are not wider and higher than the least size, or whose centre is not
//!    within the image, are dropped;
//! 4. then the one with the highest score is proposed, and those are dropped whose overlap with it
//!    (intersection over union) reaches the threshold; and so on, up to the limit.
//!
//! The result is in order of images, then descending scores.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::bounding_box::{self, BoundingBox};
use crate::rules::layout::Layout;
use crate::rules::real;
use crate::rules::suppression::{self, Candidate};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant16Asymm, TensorQuant16Symm,
};
use hal::{HalVersion, OperandType, OperationType};

/// `GENERATE_PROPOSALS`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GenerateProposals {
    /// The image's size divided by the feature map's: height, width.
    pub strides: [f32; 2],
    /// Most boxes of an image that compete, if there is a limit.
    pub limit_before: Option<u32>,
    /// Most boxes of an image that are proposed, if there is a limit.
    pub limit: Option<u32>,
    /// From this overlap on a box is dropped.
    pub overlap_threshold: f32,
    /// Boxes must be wider and higher.
    pub least_size: f32,
    /// Of scores and deltas.
    pub layout: Layout,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::GenerateProposals,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat32, TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16, TensorFloat16, Float16]),
        Row::new(
            HalVersion::V1_2,
            &[TensorQuant8Asymm, TensorQuant16Symm, TensorQuant16Asymm, Float32],
        ),
        Row::new(
            HalVersion::V1_3,
            &[TensorQuant8AsymmSigned, TensorQuant16Symm, TensorQuant16Asymm, Float32],
        ),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("scores", 0),
            Parameter::column("deltas", 0),
            Parameter::column("anchors", 1),
            Parameter::column("images", 2),
            Parameter::column("height stride", 3),
            Parameter::column("width stride", 3),
            Parameter::int32("limit before suppression"),
            Parameter::int32("limit"),
            Parameter::column("overlap threshold", 3),
            Parameter::column("least size", 3),
            Parameter::bool("NCHW"),
        ],
        &[
            Parameter::column("scores", 0),
            Parameter::column("boxes", 2),
            Parameter::tensor_int32("batch indexes"),
        ],
    )],
};

impl Operation for GenerateProposals {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        for (index, rank) in [(0, 4), (1, 4), (2, 2), (3, 2)] {
            call.input(index).expect_rank(rank)?;
        }
        bounding_box::expect_quantization(call.input(2))?;
        bounding_box::expect_quantization(call.input(3))?;
        bounding_box::expect_quantization(call.output(1))?;
        let scores = call.output(0);
        if scores.is_quantized() { scores.expect_quantized_as(call.input(0)) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let limit = |index: usize| -> Result<Option<u32>, Fault> {
            Ok(u32::try_from(call.input(index).i32()?).ok().filter(|limit| *limit > 0))
        };
        Ok(Self {
            strides: [call.input(4).f32()?, call.input(5).f32()?],
            limit_before: limit(6)?,
            limit: limit(7)?,
            overlap_threshold: call.input(8).f32()?,
            least_size: call.input(9).f32()?,
            layout: Layout::from_flag(call.input(10).bool()?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (scores, deltas, anchors, images) =
            (call.input(0), call.input(1), call.input(2), call.input(3));
        let [batch, height, width, count] = self.layout.to_nhwc(scores.known_lengths_of()?);
        let axes = self.layout.from_nhwc([0, 1, 2, 3]);
        for (axis, role) in axes.into_iter().enumerate() {
            match role {
                3 => bounding_box::expect_four_each(deltas, axis, count)?,
                role => deltas.expect_length(axis, [batch, height, width][role])?,
            }
        }
        anchors.expect_length(0, count)?;
        anchors.expect_length(1, Some(4))?;
        images.expect_length(0, batch)?;
        images.expect_length(1, Some(2))?;
        let list = Shape::of_rank(1);
        Ok(vec![list.clone(), Shape::new([None, Some(4)]), list])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.output_shapes(call)?;
        let (scores, deltas) = (call.input(0), call.input(1));
        let [batch, height, width, count] = self.layout.to_nhwc(scores.lengths_of()?);
        let delta_lengths = self.layout.to_nhwc(deltas.lengths_of()?);
        let scores = self.layout.elements_to_nhwc(scores.reals()?, [batch, height, width, count]);
        let deltas = self.layout.elements_to_nhwc(deltas.reals()?, delta_lengths);
        let anchors = bounding_box::read(call.input(2))?;
        let image_sizes = call.input(3).reals()?;
        let (image_sizes, _) = image_sizes.as_chunks::<2>();
        let (mut out_scores, mut out_edges, mut batch_indexes) = (vec![], vec![], vec![]);
        // Without scores the lengths may be such that counting to them takes forever.
        if !scores.is_empty() {
            let boxes_of_image = height * width * count;
            let images = scores
                .chunks_exact(boxes_of_image)
                .zip(deltas.chunks_exact(4 * boxes_of_image))
                .zip(image_sizes);
            for (((scores, deltas), image_size), batch_index) in images.zip(0..) {
                let boxes = self.boxes(&anchors, [height, width], deltas, *image_size);
                for proposal in self.propose(scores, &boxes, *image_size) {
                    out_scores.push(proposal.score);
                    out_edges.extend(boxes[proposal.index].to_array());
                    batch_indexes.push(batch_index);
                }
            }
        }
        let proposals = u32::try_from(out_scores.len())
            .map_err(|_| call.wrong("number of proposals", out_scores.len(), "below 2^32"))?;
        Ok(vec![
            real::store(call.output(0), vec![proposals], out_scores)?,
            real::store(call.output(1), vec![proposals, 4], out_edges)?,
            call.output(2).with_integers(vec![proposals], &batch_indexes),
        ])
    }
}

impl GenerateProposals {
    /// All boxes of an image, `[height, width, anchor]`.
    // Numbers of cells are below 2^32; coordinates are as coarse as `f32` is anyway.
    #[allow(clippy::cast_precision_loss)]
    fn boxes(
        &self,
        anchors: &[BoundingBox],
        [height, width]: [usize; 2],
        deltas: &[f32],
        image_size: [f32; 2],
    ) -> Vec<BoundingBox> {
        let cells = (0..height).flat_map(|y| (0..width).map(move |x| [y as f32, x as f32]));
        let shifted = cells.flat_map(|[y, x]| {
            let (down, across) = (y * self.strides[0], x * self.strides[1]);
            anchors.iter().map(move |anchor| BoundingBox {
                x1: anchor.x1 + across,
                y1: anchor.y1 + down,
                x2: anchor.x2 + across,
                y2: anchor.y2 + down,
            })
        });
        let (deltas, _) = deltas.as_chunks();
        let pairs = shifted.zip(deltas);
        pairs.map(|(anchor, delta)| anchor.transformed(*delta).clipped(image_size)).collect()
    }

    /// The boxes of an image that are proposed.
    fn propose(
        &self,
        scores: &[f32],
        boxes: &[BoundingBox],
        image_size: [f32; 2],
    ) -> Vec<Candidate> {
        let candidate =
            |(index, score): (usize, &f32)| Candidate { index, class: 0, score: *score };
        let mut candidates: Vec<Candidate> = scores.iter().enumerate().map(candidate).collect();
        if let Some(limit) = self.limit_before {
            suppression::sort_by_score(&mut candidates);
            candidates.truncate(limit as usize);
        }
        candidates.retain(|candidate| self.is_sound(boxes[candidate.index], image_size));
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        let hard = suppression::hard(self.overlap_threshold);
        suppression::suppress(candidates, limit, |candidate| boxes[candidate.index], hard)
    }

    /// Whether a box is large enough and has its centre within the image.
    fn is_sound(&self, bounding_box: BoundingBox, [height, width]: [f32; 2]) -> bool {
        bounding_box.width() > self.least_size
            && bounding_box.height() > self.least_size
            && f32::midpoint(bounding_box.x1, bounding_box.x2) < width
            && f32::midpoint(bounding_box.y1, bounding_box.y2) < height
    }
}
