//! `GENERATE_PROPOSALS`: boxes that may show something, from a network's scores and deltas for
//! boxes of a few shapes (anchors) at every cell of a feature map.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | scores | `[batch, height, width, anchors]`, or NCHW | float32, float16, quantized |
//! | input 1 | deltas | `[batch, height, width, anchors * 4]`: dx, dy, dw, dh, or NCHW | as the scores |
//! | input 2 | anchors | `[anchors, 4]`: x1, y1, x2, y2 | as the scores; signed quant16 of scale 1/8 if quantized |
//! | input 3 | images | `[batch, 2]`: height, width | as the scores; quant16 of scale 1/8 if quantized |
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
use nnhal_hal::{HalVersion, OperandType, OperationType};

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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
        let lengths = [batch, height, width, count];
        let scores = self.layout.elements_to_nhwc(call, scores.reals()?, lengths)?;
        let deltas = self.layout.elements_to_nhwc(call, deltas.reals()?, delta_lengths)?;
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
                let boxes = self.boxes(call, &anchors, [height, width], deltas, *image_size)?;
                for proposal in self.propose(call, scores, &boxes, *image_size)? {
                    call.push(&mut out_scores, proposal.score)?;
                    for edge in boxes[proposal.index].to_array() {
                        call.push(&mut out_edges, edge)?;
                    }
                    call.push(&mut batch_indexes, batch_index)?;
                }
            }
        }
        let proposals = u32::try_from(out_scores.len())
            .map_err(|_| call.wrong("number of proposals", out_scores.len(), "below 2^32"))?;
        Ok(vec![
            real::store(call.output(0), vec![proposals], out_scores)?,
            real::store(call.output(1), vec![proposals, 4], out_edges)?,
            call.output(2).with_integers(vec![proposals], &batch_indexes)?,
        ])
    }
}

impl GenerateProposals {
    /// All boxes of an image, `[height, width, anchor]`.
    // Numbers of cells are below 2^32; coordinates are as coarse as `f32` is anyway.
    #[allow(clippy::cast_precision_loss)]
    fn boxes(
        &self,
        call: &Call<'_>,
        anchors: &[BoundingBox],
        [height, width]: [usize; 2],
        deltas: &[f32],
        image_size: [f32; 2],
    ) -> Result<Vec<BoundingBox>, Fault> {
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
        let moved = shifted
            .zip(deltas)
            .map(|(anchor, delta)| anchor.transformed(*delta).clipped(image_size));
        call.collect(deltas.len(), moved)
    }

    /// The boxes of an image that are proposed.
    fn propose(
        &self,
        call: &Call<'_>,
        scores: &[f32],
        boxes: &[BoundingBox],
        image_size: [f32; 2],
    ) -> Result<Vec<Candidate>, Fault> {
        let candidate =
            |(index, score): (usize, &f32)| Candidate { index, class: 0, score: *score };
        let mut candidates =
            call.collect(scores.len(), scores.iter().enumerate().map(candidate))?;
        if let Some(limit) = self.limit_before {
            suppression::sort_by_score(call, &mut candidates)?;
            candidates.truncate(limit as usize);
        }
        call.work(candidates.len())?;
        candidates.retain(|candidate| self.is_sound(boxes[candidate.index], image_size));
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        let hard = suppression::hard(self.overlap_threshold);
        let box_of = |candidate: &Candidate| boxes[candidate.index];
        suppression::suppress(call, candidates, limit, box_of, hard)
    }

    /// Whether a box is large enough and has its centre within the image.
    fn is_sound(&self, bounding_box: BoundingBox, [height, width]: [f32; 2]) -> bool {
        bounding_box.width() > self.least_size
            && bounding_box.height() > self.least_size
            && f32::midpoint(bounding_box.x1, bounding_box.x2) < width
            && f32::midpoint(bounding_box.y1, bounding_box.y2) < height
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::Bool;
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// The types of scores and deltas, anchors, images, scalars.
    const TYPES: [[OperandType; 4]; 4] = [
        [TensorFloat32, TensorFloat32, TensorFloat32, Float32],
        [TensorFloat16, TensorFloat16, TensorFloat16, Float16],
        [TensorQuant8Asymm, TensorQuant16Symm, TensorQuant16Asymm, Float32],
        [TensorQuant8AsymmSigned, TensorQuant16Symm, TensorQuant16Asymm, Float32],
    ];

    fn coordinates(operand_type: OperandType, dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        match operand_type {
            TensorQuant16Asymm | TensorQuant16Symm => {
                OperandSpec::new(operand_type, dimensions).quantized(0.125, 0)
            }
            _ => tensor(operand_type, dimensions),
        }
    }

    /// One anchor of 4 by 4 at two cells side by side, in an image of 8 by 8; scores and deltas as
    /// they are stored.
    fn two(
        [score, anchor, image, scalar]: [OperandType; 4],
        scores: [f64; 2],
        deltas: [f64; 8],
    ) -> Example {
        let unit = if score == TensorFloat32 || score == TensorFloat16 { 1.0 } else { 8.0 };
        Example::new(OperationType::GenerateProposals)
            .input(tensor(score, [1, 1, 2, 1]), &scores)
            .input(tensor(score, [1, 1, 2, 4]), &deltas)
            .input(coordinates(anchor, [1, 4]), &[0.0, 0.0, 4.0, 4.0].map(|it| it * unit))
            .input(coordinates(image, [1, 2]), &[8.0 * unit; 2])
            .input(OperandSpec::scalar(scalar), &[4.0])
            .input(OperandSpec::scalar(scalar), &[4.0])
            .int32s([0, 0])
            .input(OperandSpec::scalar(scalar), &[0.5])
            .input(OperandSpec::scalar(scalar), &[1.0])
            .bool(false)
            .output(tensor(score, [0]))
            .output(coordinates(image, [0, 4]))
            .output(OperandSpec::tensor_int32([0]))
    }

    fn float(scores: [f64; 2], deltas: [f64; 8]) -> Example {
        two(TYPES[0], scores, deltas)
    }

    /// The second anchor three quarters to the left: 12 of 20 in common with the first.
    const OVERLAPPING: [f64; 8] = [0.0, 0.0, 0.0, 0.0, -0.75, 0.0, 0.0, 0.0];

    fn with_scalar(example: Example, index: usize, value: f64) -> Example {
        example.with_input(index, OperandSpec::scalar(Float32), &[value])
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let v1_2 = HalVersion::V1_2;
        for (types, since) in TYPES.into_iter().zip([v1_2, v1_2, v1_2, HalVersion::V1_3]) {
            assert_eq!(two(types, [0.0; 2], [0.0; 8]).since(), Ok(since), "{types:?}");
            assert!(two(types, [0.0; 2], [0.0; 8]).run().is_ok(), "{types:?}");
        }
        for types in [
            [TensorFloat16, TensorFloat16, TensorFloat16, Float32],
            [TensorQuant8Asymm, TensorQuant16Asymm, TensorQuant16Asymm, Float32],
            [TensorQuant8Asymm, TensorQuant16Symm, TensorQuant16Symm, Float32],
        ] {
            assert!(two(types, [0.0; 2], [0.0; 8]).since().is_err(), "{types:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = float([0.0; 2], [0.0; 8]);
        let quantized = two(TYPES[2], [0.0; 2], [0.0; 8]);
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        for (refused, message) in [
            (
                good.clone().with_input(0, float(&[2]), &[0.0; 2]),
                "rank of input 0 (scores) is 1, expected 4",
            ),
            (
                good.clone().with_input(1, float(&[1, 2, 1, 4]), &[0.0; 8]),
                "shape of input 1 (deltas) is [1, 2, 1, 4], expected length 1 along axis 1",
            ),
            (
                good.clone().with_input(1, float(&[1, 1, 2, 1]), &[0.0; 2]),
                "shape of input 1 (deltas) is [1, 1, 2, 1], expected length 4 along axis 3",
            ),
            (
                good.clone().with_input(10, OperandSpec::scalar(Bool), &[1.0]),
                "shape of input 1 (deltas) is [1, 1, 2, 4], expected length 4 along axis 1",
            ),
            (
                good.clone().with_input(2, float(&[2, 4]), &[0.0; 8]),
                "shape of input 2 (anchors) is [2, 4], expected length 1 along axis 0",
            ),
            (
                good.clone().with_input(2, float(&[1, 5]), &[0.0; 5]),
                "shape of input 2 (anchors) is [1, 5], expected length 4 along axis 1",
            ),
            (
                good.clone().with_input(3, float(&[2, 2]), &[8.0; 4]),
                "shape of input 3 (images) is [2, 2], expected length 1 along axis 0",
            ),
            (
                good.clone().with_input(3, float(&[1, 3]), &[8.0; 3]),
                "shape of input 3 (images) is [1, 3], expected length 2 along axis 1",
            ),
            (
                good.clone().with_input(2, float(&[1, 4]), &[0.0, 4.0, 4.0, 0.0]),
                "value of input 2 (anchors) is [0.0, 4.0, 4.0, 0.0], expected boxes \
                 [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2",
            ),
            (
                quantized.clone().with_input(
                    2,
                    OperandSpec::new(TensorQuant16Symm, [1, 4]).quantized(0.5, 0),
                    &[0.0; 4],
                ),
                "scale of input 2 (anchors) is 0.5, expected 0.125",
            ),
            (
                quantized.clone().with_input(
                    3,
                    OperandSpec::new(TensorQuant16Asymm, [1, 2]).quantized(0.125, 9),
                    &[0.0; 2],
                ),
                "zero point of input 3 (images) is 9, expected 0",
            ),
            (
                quantized
                    .with_output(OperandSpec::new(TensorQuant8Asymm, [0]).quantized(0.25, 128)),
                "scale of output 0 (scores) is 0.25, expected 0.5 as input 0 (scores)",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("GENERATE_PROPOSALS: {message}"));
        }
    }

    #[test]
    fn the_number_proposed_is_not_known_before() {
        let list = Shape::of_rank(1);
        let expected = vec![list.clone(), Shape::new([None, Some(4)]), list];
        let good = float([0.0; 2], [0.0; 8]);
        assert_eq!(good.shapes(), Ok(expected.clone()));
        let unknown = (0..4).fold(good.clone(), |example, index| {
            example.with_input_to_come(index, tensor(TensorFloat32, []))
        });
        assert_eq!(unknown.shapes(), Ok(expected));
        let none = [(vec![0], vec![]), (vec![0, 4], vec![]), (vec![0], vec![])];
        let longest = u32::MAX;
        let without_anchors = good
            .with_input(0, tensor(TensorFloat32, [1, longest, longest, 0]), &[])
            .with_input(1, tensor(TensorFloat32, [1, longest, longest, 0]), &[])
            .with_input(2, tensor(TensorFloat32, [0, 4]), &[]);
        assert_eq!(without_anchors.results(), none);
    }

    #[test]
    fn anchors_are_shifted_transformed_and_clipped() {
        let found = float([0.5, 0.75], [0.0; 8]).results();
        assert_eq!(found[0], (vec![2], vec![0.75, 0.5]));
        let boxes = vec![4.0, 0.0, 8.0, 4.0, 0.0, 0.0, 4.0, 4.0];
        assert_eq!(found[1], (vec![2, 4], boxes));
        assert_eq!(found[2], (vec![2], vec![0.0; 2]));
        // The first twice as high: from -2 to 6. The second one down and to the right.
        let ln_2 = 2.0_f64.ln();
        let deltas = [0.0, 0.0, 0.0, ln_2, 0.25, 0.5, 0.0, 0.0];
        let found = float([0.75, 0.5], deltas).results();
        assert_close(&found[1].1, &[0.0, 0.0, 4.0, 6.0, 5.0, 2.0, 8.0, 6.0], 1e-6);
    }

    #[test]
    fn each_filter_by_hand() {
        let scores = |example: Example| example.result().1;
        let both = float([0.5, 0.75], OVERLAPPING);
        assert_eq!(scores(both.clone()), [0.75]);
        assert_eq!(scores(with_scalar(both.clone(), 8, 0.7)), [0.75, 0.5]);
        // Exactly the overlap is too much.
        let half = float([0.5, 0.75], [0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0]);
        assert_eq!(scores(with_scalar(half, 8, 1.0)), [0.75]);

        let disjoint = float([0.5, 0.75], [0.0; 8]);
        assert_eq!(scores(disjoint.clone().with_int32(7, 1)), [0.75]);
        assert_eq!(scores(disjoint.clone().with_int32(7, -1)), [0.75, 0.5]);
        assert_eq!(scores(disjoint.clone().with_int32(6, 1)), [0.75]);
        assert_eq!(scores(disjoint.clone().with_int32(6, -1)), [0.75, 0.5]);
        // The limit before suppression counts boxes that are dropped afterwards.
        assert_eq!(scores(both.with_int32(6, 1)), [0.75]);
        let flat = float([0.5, 0.75], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -9.0]);
        assert_eq!(scores(flat.clone().with_int32(6, 1)), [0.0; 0]);
        assert_eq!(scores(flat), [0.5]);
        // A box of exactly the least size is too small.
        assert_eq!(scores(with_scalar(disjoint.clone(), 9, 4.0)), [0.0; 0]);
        assert_eq!(scores(with_scalar(disjoint.clone(), 9, 3.75)), [0.75, 0.5]);
        // Width and height each have to be greater: the first box is 6 wide, 6 high, or both.
        let ln_2 = 2.0_f64.ln();
        for ([dw, dh], proposed) in
            [([ln_2, 0.0], vec![]), ([0.0, ln_2], vec![]), ([ln_2, ln_2], vec![0.5])]
        {
            let grown = float([0.5, 0.75], [0.0, 0.0, dw, dh, 0.0, 0.0, 0.0, 0.0]);
            assert_eq!(scores(with_scalar(grown, 9, 4.0)), proposed, "{dw} {dh}");
        }
        // Two heights down, the first one's centre is at the lower edge and not within.
        let below = float([0.5, 0.75], [0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(scores(with_scalar(below, 9, -1.0)), [0.75]);
        // In an image that ends where the second box begins it has no centre within.
        let narrow = disjoint.with_input(3, tensor(TensorFloat32, [1, 2]), &[8.0, 4.0]);
        assert_eq!(scores(with_scalar(narrow, 9, -1.0)), [0.5]);
    }

    #[test]
    fn layouts_and_batches() {
        // Two images of one cell with two anchors.
        let nhwc = float([0.0; 2], [0.0; 8])
            .with_input(
                0,
                tensor(TensorFloat32, [2, 1, 2, 2]),
                &[0.5, 0.25, 1.0, 0.75, 1.0, 2.0, 3.0, 4.0],
            )
            .with_input(1, tensor(TensorFloat32, [2, 1, 2, 8]), &[0.0; 32])
            .with_input(2, tensor(TensorFloat32, [2, 4]), &[0.0, 0.0, 4.0, 4.0, 0.0, 4.0, 4.0, 8.0])
            .with_input(3, tensor(TensorFloat32, [2, 2]), &[8.0, 8.0, 6.0, 8.0]);
        let found = nhwc.results();
        assert_eq!(found[0].1, [1.0, 0.75, 0.5, 0.25, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!(found[1].1[..8], [4.0, 0.0, 8.0, 4.0, 4.0, 4.0, 8.0, 8.0]);
        assert_eq!(found[1].1[16..24], [4.0, 4.0, 8.0, 6.0, 4.0, 0.0, 8.0, 4.0]);
        assert_eq!(found[2].1, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let nchw = nhwc
            .with_input(
                0,
                tensor(TensorFloat32, [2, 2, 1, 2]),
                &[0.5, 1.0, 0.25, 0.75, 1.0, 3.0, 2.0, 4.0],
            )
            .with_input(1, tensor(TensorFloat32, [2, 8, 1, 2]), &[0.0; 32])
            .with_input(10, OperandSpec::scalar(Bool), &[1.0]);
        assert_eq!(nchw.results(), found);
    }

    #[test]
    fn halves_and_quantized_values_by_hand() {
        let half = two(TYPES[1], [0.5, 0.75], [0.0; 8]).results();
        assert_eq!(half[0].1, [0.75, 0.5]);
        assert_eq!(half[1].1, [4.0, 0.0, 8.0, 4.0, 0.0, 0.0, 4.0, 4.0]);
        // Deltas step by 1/2: the second box half a width to the left, half a height down. 8 of 24
        // in common.
        for (types, zero_point) in [(TYPES[2], 128.0), (TYPES[3], 0.0)] {
            let scores = [3.0, 7.0].map(|steps| steps + zero_point);
            let deltas = [0.0, 0.0, 0.0, 0.0, -1.0, 1.0, 0.0, 0.0].map(|it| it + zero_point);
            let found = two(types, scores, deltas).results();
            assert_eq!(found[0].1, [7.0, 3.0].map(|steps| steps + zero_point));
            assert_eq!(found[1].1, [16.0, 16.0, 48.0, 48.0, 0.0, 0.0, 32.0, 32.0]);
        }
    }

    #[test]
    fn what_is_not_a_number_is_not_proposed() {
        let mut deltas = [0.0; 8];
        deltas[0] = f64::NAN;
        assert_eq!(float([0.75, 0.5], deltas).result().1, [0.5]);
        let found = float([f64::NAN, 0.5], [0.0; 8]).result().1;
        assert_eq!(found[0], 0.5);
    }

    #[test]
    fn of_equal_scores_the_first_cell_wins() {
        let equal = float([0.5, 0.5], [0.0; 8]);
        for limited in [equal.clone().with_int32(6, 1), equal.clone().with_int32(7, 1)] {
            assert_eq!(limited.results()[1].1, [0.0, 0.0, 4.0, 4.0]);
        }
        assert_eq!(equal.results()[1].1, [0.0, 0.0, 4.0, 4.0, 4.0, 0.0, 8.0, 4.0]);
        let overlapping = float([0.5, 0.5], OVERLAPPING);
        assert_eq!(overlapping.results()[1].1, [0.0, 0.0, 4.0, 4.0]);
    }

    proptest! {
        #[test]
        fn proposals_are_within_the_image_in_descending_order(
            scores in prop::array::uniform2(0.0..1.0_f64),
            deltas in prop::array::uniform8(-1.0..1.0_f64),
        ) {
            let found = float(scores, deltas).results();
            prop_assert!(found[0].1.is_sorted_by(|a, b| a >= b));
            for edges in found[1].1.chunks(4) {
                prop_assert!(edges[0] >= 0.0 && edges[2] <= 8.0 && edges[2] - edges[0] > 1.0);
                prop_assert!(edges[1] >= 0.0 && edges[3] <= 8.0 && edges[3] - edges[1] > 1.0);
            }
        }
    }
}
