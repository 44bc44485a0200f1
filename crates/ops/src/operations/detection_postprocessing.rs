//! `DETECTION_POSTPROCESSING`: what a network detected, from its scores and deltas for boxes whose
//! place and shape are given (anchors).
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | scores | `[batch, anchors, classes]`, two classes or more | float32, float16 |
//! | input 1 | deltas | `[batch, anchors, 4 or more]`: dy, dx, dh, dw; the rest is ignored | as the scores |
//! | input 2 | anchors | `[anchors, 4]`: centre y, centre x, height, width | as the scores |
//! | inputs 3 to 6 | scales of dy, dx, dh, dw | scalar, above 0 | FLOAT32; FLOAT16 if the scores are |
//! | input 7 | regular? | scalar | BOOL |
//! | input 8 | limit | scalar, boxes of an image; above 0 | INT32 |
//! | input 9 | classes of a box | scalar, at most; above 0 unless regular | INT32 |
//! | input 10 | limit of a class | scalar, boxes of an image; above 0 if regular | INT32 |
//! | input 11 | score threshold | scalar, 0 or more | as input 3 |
//! | input 12 | overlap threshold | scalar, 0 or more | as input 3 |
//! | input 13 | background has a label? | scalar | BOOL |
//! | output 0 | scores | `[batch, detections]` | as the scores |
//! | output 1 | boxes | `[batch, detections, 4]`: y1, x1, y2, x2 | as the scores |
//! | output 2 | classes | `[batch, detections]` | int32 |
//! | output 3 | numbers of detections | `[batch]` | int32 |
//!
//! A box has its centre at `centre + size * d / scale` and the size `size * exp(d / scale)`. Class 0
//! is the background and takes no part; if it has no label, labels count from class 1. Only scores
//! above the score threshold take part. The one with the highest is kept, and those are dropped
//! whose overlap with it (intersection over union) reaches the threshold; and so on.
//!
//! - Regular: for each class on its own, up to the limit of a class; then the highest scores of all
//!   classes. There is room for as many detections as the limit says.
//! - Fast: once for all classes, each box with the highest of its scores; then each box is detected
//!   with the allowed number of its classes, highest scores first. There is room for the limit
//!   times the classes of a box.
//!
//! Detections descend by score (fast: boxes do, then the scores of a box); what is beyond their
//! number is 0.
//!
//! Source: `types.hal` 1.2.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::bounding_box::BoundingBox;
use crate::rules::suppression::{self, Candidate, MultiClass};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// How boxes with several classes compete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Suppression {
    /// For each class on its own.
    Regular {
        /// Most boxes of a class.
        class_limit: u32,
    },
    /// Once for all classes.
    Fast {
        /// Most classes of a box.
        classes_of_box: u32,
    },
}

/// `DETECTION_POSTPROCESSING`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetectionPostprocessing {
    /// What dy, dx, dh and dw are divided by.
    pub scales: [f32; 4],
    /// How boxes compete.
    pub suppression: Suppression,
    /// Most boxes of an image.
    pub limit: u32,
    /// Only scores above it take part.
    pub score_threshold: f32,
    /// From this overlap on a box is dropped.
    pub overlap_threshold: f32,
    /// Whether labels count from the background.
    pub background_has_label: bool,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::DetectionPostprocessing,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("scores", 0),
            Parameter::column("deltas", 0),
            Parameter::column("anchors", 0),
            Parameter::column("scale of dy", 1),
            Parameter::column("scale of dx", 1),
            Parameter::column("scale of dh", 1),
            Parameter::column("scale of dw", 1),
            Parameter::bool("regular"),
            Parameter::int32("limit"),
            Parameter::int32("classes of a box"),
            Parameter::int32("limit of a class"),
            Parameter::column("score threshold", 1),
            Parameter::column("overlap threshold", 1),
            Parameter::bool("background has a label"),
        ],
        &[
            Parameter::column("scores", 0),
            Parameter::column("boxes", 0),
            Parameter::tensor_int32("classes"),
            Parameter::tensor_int32("numbers of detections"),
        ],
    )],
};

/// A float above 0.
fn scale(argument: &Argument<'_>) -> Result<f32, Fault> {
    let value = argument.f32()?;
    if value > 0.0 { Ok(value) } else { Err(argument.wrong("value", value, "above 0")) }
}

/// A float of 0 or more.
fn threshold(argument: &Argument<'_>) -> Result<f32, Fault> {
    let value = argument.f32()?;
    if value >= 0.0 { Ok(value) } else { Err(argument.wrong("value", value, "0 or more")) }
}

impl Operation for DetectionPostprocessing {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        for (index, rank) in [(0, 3), (1, 3), (2, 2)] {
            call.input(index).expect_rank(rank)?;
        }
        Ok(())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self {
            scales: [
                scale(call.input(3))?,
                scale(call.input(4))?,
                scale(call.input(5))?,
                scale(call.input(6))?,
            ],
            suppression: if call.input(7).bool()? {
                Suppression::Regular { class_limit: call.input(10).positive()? }
            } else {
                Suppression::Fast { classes_of_box: call.input(9).positive()? }
            },
            limit: call.input(8).positive()?,
            score_threshold: threshold(call.input(11))?,
            overlap_threshold: threshold(call.input(12))?,
            background_has_label: call.input(13).bool()?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (scores, deltas, anchors) = (call.input(0), call.input(1), call.input(2));
        let [batch, count, classes] = scores.known_lengths_of()?;
        let [delta_batch, delta_count, numbers] = deltas.known_lengths_of()?;
        let (batch, count) = (batch.or(delta_batch), count.or(delta_count));
        if classes.is_some_and(|classes| classes < 2) {
            return Err(scores.wrong("shape", &scores.shape, "two classes or more along axis 2"));
        }
        if numbers.is_some_and(|numbers| numbers < 4) {
            return Err(deltas.wrong("shape", &deltas.shape, "four or more along axis 2"));
        }
        deltas.expect_length(0, batch)?;
        deltas.expect_length(1, count)?;
        anchors.expect_length(0, count)?;
        anchors.expect_length(1, Some(4))?;
        let detections = match self.suppression {
            Suppression::Regular { .. } => self.limit,
            Suppression::Fast { classes_of_box } => {
                self.limit.checked_mul(classes_of_box).ok_or_else(|| {
                    let expected = format!("below 2^32 with {classes_of_box} classes of each box");
                    call.input(8).wrong("value", self.limit, expected)
                })?
            }
        };
        let list = Shape::new([batch, Some(detections)]);
        let boxes = Shape::new([batch, Some(detections), Some(4)]);
        Ok(vec![list.clone(), boxes, list, Shape::new([batch])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (scores, deltas) = (call.input(0), call.input(1));
        let mut dimensions = Vec::new();
        for shape in self.output_shapes(call)? {
            dimensions.push(shape.to_known().ok_or_else(|| scores.not_known("dimensions"))?);
        }
        let [_, count, classes] = scores.lengths_of()?;
        let [_, _, numbers] = deltas.lengths_of()?;
        let detections = dimensions[0][1] as usize;
        let mut out_scores: Vec<f32> = call.output(0).allocate(&dimensions[0])?;
        let mut out_edges: Vec<f32> = call.output(1).allocate(&dimensions[1])?;
        let mut out_classes: Vec<i32> = call.output(2).allocate(&dimensions[2])?;
        let mut out_numbers: Vec<i32> = call.output(3).allocate(&dimensions[3])?;
        let (scores, deltas) = (scores.f32s()?, deltas.f32s()?);
        let anchors = call.input(2).f32s()?;
        let (anchors, _) = anchors.as_chunks();
        let label_of_first = usize::from(self.background_has_label);
        for image in 0..dimensions[0][0] as usize {
            let scores = &scores[image * count * classes..][..count * classes];
            let deltas = &deltas[image * count * numbers..][..count * numbers];
            let pairs = anchors.iter().zip(deltas.chunks_exact(numbers));
            let decoded = pairs.map(|(anchor, delta)| self.decoded(*anchor, delta));
            let boxes = call.collect(anchors.len(), decoded)?;
            let detected = match self.suppression {
                Suppression::Regular { class_limit } => {
                    self.regular(call, scores, &boxes, classes, class_limit)?
                }
                Suppression::Fast { classes_of_box } => {
                    self.fast(call, scores, &boxes, classes, classes_of_box)?
                }
            };
            call.work(8 * detections)?;
            for Candidate { index, class, score } in &detected {
                let BoundingBox { x1, y1, x2, y2 } = boxes[*index];
                out_scores.push(*score);
                out_edges.extend([y1, x1, y2, x2]);
                out_classes.push(i32::try_from(class - 1 + label_of_first).unwrap_or(i32::MAX));
            }
            out_numbers.push(i32::try_from(detected.len()).unwrap_or(i32::MAX));
            out_scores.resize((image + 1) * detections, 0.0);
            out_edges.resize((image + 1) * detections * 4, 0.0);
            out_classes.resize((image + 1) * detections, 0);
        }
        let [score_dimensions, box_dimensions, class_dimensions, number_dimensions] =
            <[_; 4]>::try_from(dimensions)
                .map_err(|it| call.wrong("number of outputs", it.len(), 4))?;
        Ok(vec![
            call.output(0).with_f32s(score_dimensions, &out_scores)?,
            call.output(1).with_f32s(box_dimensions, &out_edges)?,
            call.output(2).with_integers(class_dimensions, &out_classes)?,
            call.output(3).with_integers(number_dimensions, &out_numbers)?,
        ])
    }
}

impl DetectionPostprocessing {
    /// The box of an anchor.
    fn decoded(&self, [y, x, height, width]: [f32; 4], deltas: &[f32]) -> BoundingBox {
        let delta = |index: usize| deltas[index] / self.scales[index];
        let (y, x) = (y + height * delta(0), x + width * delta(1));
        let half_height = height * delta(2).exp() / 2.0;
        let half_width = width * delta(3).exp() / 2.0;
        BoundingBox {
            x1: x - half_width,
            y1: y - half_height,
            x2: x + half_width,
            y2: y + half_height,
        }
    }

    fn regular(
        &self,
        call: &Call<'_>,
        scores: &[f32],
        boxes: &[BoundingBox],
        classes: usize,
        class_limit: u32,
    ) -> Result<Vec<Candidate>, Fault> {
        let rule = MultiClass {
            classes,
            score_threshold: self.score_threshold,
            class_limit: class_limit as usize,
            limit: self.limit as usize,
        };
        let hard = suppression::hard(self.overlap_threshold);
        rule.select(call, scores, |it| boxes[it.index], hard)
    }

    fn fast(
        &self,
        call: &Call<'_>,
        scores: &[f32],
        boxes: &[BoundingBox],
        classes: usize,
        classes_of_box: u32,
    ) -> Result<Vec<Candidate>, Fault> {
        // The candidates of a box, the highest score first.
        let mut room = call.room(classes)?;
        let mut of_box = |index: usize| {
            room.clear();
            let scores = scores[index * classes..][..classes].iter().enumerate().skip(1);
            let candidates = scores.map(|(class, score)| Candidate { index, class, score: *score });
            call.each(candidates, |candidate| room.push(candidate))?;
            suppression::sort_by_score(call, &mut room)?;
            Ok::<_, Fault>(room.clone())
        };
        let mut competing = Vec::new();
        for index in 0..boxes.len() {
            match of_box(index)?.first() {
                Some(best) if best.score > self.score_threshold => {
                    call.push(&mut competing, *best)?;
                }
                _ => {}
            }
        }
        let hard = suppression::hard(self.overlap_threshold);
        let box_of = |it: &Candidate| boxes[it.index];
        let mut found = Vec::new();
        for kept in suppression::suppress(call, competing, self.limit as usize, box_of, hard)? {
            for candidate in of_box(kept.index)?.into_iter().take(classes_of_box as usize) {
                call.push(&mut found, candidate)?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::Bool;
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    const FLOAT: [OperandType; 2] = [TensorFloat32, Float32];
    const HALF: [OperandType; 2] = [TensorFloat16, Float16];

    /// Three boxes of 10 by 10, of which the first two overlap by 90 / 110, with two classes beside
    /// the background, and what the limits and thresholds are unless said otherwise.
    fn three([operand_type, scalar]: [OperandType; 2], is_regular: bool) -> Example {
        let scores = [[9.0, 0.9, 0.2], [9.0, 0.8, 0.7], [9.0, 0.3, 0.6]].concat();
        let anchors =
            [[5.0, 5.0, 10.0, 10.0], [5.0, 6.0, 10.0, 10.0], [25.0, 25.0, 10.0, 10.0]].concat();
        Example::new(OperationType::DetectionPostprocessing)
            .input(tensor(operand_type, [1, 3, 3]), &scores)
            .input(tensor(operand_type, [1, 3, 4]), &[0.0; 12])
            .input(tensor(operand_type, [3, 4]), &anchors)
            .input(OperandSpec::scalar(scalar), &[10.0])
            .input(OperandSpec::scalar(scalar), &[10.0])
            .input(OperandSpec::scalar(scalar), &[5.0])
            .input(OperandSpec::scalar(scalar), &[5.0])
            .bool(is_regular)
            .int32s([4, 1, 2])
            .input(OperandSpec::scalar(scalar), &[0.1])
            .input(OperandSpec::scalar(scalar), &[0.5])
            .bool(false)
            .output(tensor(operand_type, [0, 0]))
            .output(tensor(operand_type, [0, 0, 0]))
            .output(OperandSpec::tensor_int32([0, 0]))
            .output(OperandSpec::tensor_int32([0]))
    }

    const FIRST: [f64; 4] = [0.0, 0.0, 10.0, 10.0];
    const SECOND: [f64; 4] = [0.0, 1.0, 10.0, 11.0];
    const THIRD: [f64; 4] = [20.0, 20.0, 30.0, 30.0];
    const NONE: [f64; 4] = [0.0; 4];

    #[track_caller]
    fn assert_detected(
        example: &Example,
        scores: &[f64],
        boxes: &[[f64; 4]],
        classes: &[f64],
        count: f64,
    ) {
        let found = example.results();
        assert_close(&found[0].1, scores, 1e-6);
        assert_close(&found[1].1, &boxes.concat(), 1e-6);
        assert_eq!(found[2].1, classes);
        assert_eq!(found[3].1, [count]);
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for types in [FLOAT, HALF] {
            assert_eq!(three(types, true).since(), Ok(HalVersion::V1_2));
            assert!(three(types, true).run().is_ok());
        }
        for types in [[TensorFloat16, Float32], [OperandType::TensorQuant8Asymm, Float32]] {
            assert!(three(types, true).since().is_err());
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let scalar = |index: usize, value: f64| {
            three(FLOAT, true).with_input(index, OperandSpec::scalar(Float32), &[value])
        };
        let (regular, fast) = (three(FLOAT, true), three(FLOAT, false));
        for (refused, message) in [
            (
                regular.clone().with_input(0, float(&[9]), &[0.0; 9]),
                "rank of input 0 (scores) is 1, expected 3",
            ),
            (
                regular.clone().with_input(0, float(&[1, 3, 1]), &[0.0; 3]),
                "shape of input 0 (scores) is [1, 3, 1], expected two classes or more along axis 2",
            ),
            (
                regular.clone().with_input(1, float(&[1, 3, 3]), &[0.0; 9]),
                "shape of input 1 (deltas) is [1, 3, 3], expected four or more along axis 2",
            ),
            (
                regular.clone().with_input(1, float(&[3, 1, 4]), &[0.0; 12]),
                "shape of input 1 (deltas) is [3, 1, 4], expected length 1 along axis 0",
            ),
            (
                regular.clone().with_input(2, float(&[1, 4]), &[0.0; 4]),
                "shape of input 2 (anchors) is [1, 4], expected length 3 along axis 0",
            ),
            (
                regular.clone().with_input(2, float(&[3, 5]), &[0.0; 15]),
                "shape of input 2 (anchors) is [3, 5], expected length 4 along axis 1",
            ),
            (scalar(3, 0.0), "value of input 3 (scale of dy) is 0, expected above 0"),
            (scalar(6, f64::NAN), "value of input 6 (scale of dw) is NaN, expected above 0"),
            (scalar(11, -0.5), "value of input 11 (score threshold) is -0.5, expected 0 or more"),
            (scalar(12, -1.0), "value of input 12 (overlap threshold) is -1, expected 0 or more"),
            (regular.clone().with_int32(8, 0), "value of input 8 (limit) is 0, expected above 0"),
            (
                regular.with_int32(10, 0),
                "value of input 10 (limit of a class) is 0, expected above 0",
            ),
            (
                fast.clone().with_int32(9, -1),
                "value of input 9 (classes of a box) is -1, expected 0 or more",
            ),
            (
                fast.with_int32(8, i32::MAX).with_int32(9, 3),
                "value of input 8 (limit) is 2147483647, expected below 2^32 with 3 classes of \
                 each box",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("DETECTION_POSTPROCESSING: {message}"));
        }
        // What the other kind of suppression needs does not matter.
        assert!(three(FLOAT, true).with_int32(9, 0).run().is_ok());
        assert!(three(FLOAT, false).with_int32(10, 0).run().is_ok());
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let expected = |batch, detections| {
            let list = Shape::new([batch, Some(detections)]);
            let boxes = Shape::new([batch, Some(detections), Some(4)]);
            Ok(vec![list.clone(), boxes, list, Shape::new([batch])])
        };
        assert_eq!(three(FLOAT, true).shapes(), expected(Some(1), 4));
        assert_eq!(three(FLOAT, false).with_int32(9, 3).shapes(), expected(Some(1), 12));
        let unknown = (0..3).fold(three(FLOAT, true), |example, index| {
            example.with_input_to_come(index, tensor(TensorFloat32, []))
        });
        assert_eq!(unknown.shapes(), expected(None, 4));
        let by_deltas = unknown.with_input_to_come(1, tensor(TensorFloat32, [2, 0, 0]));
        assert_eq!(by_deltas.shapes(), expected(Some(2), 4));
        let without_images = three(FLOAT, true)
            .with_input(0, tensor(TensorFloat32, [0, 3, 3]), &[])
            .with_input(1, tensor(TensorFloat32, [0, 3, 4]), &[]);
        assert_eq!(without_images.results()[1], (vec![0, 4, 4], vec![]));
        let without_anchors = three(FLOAT, false)
            .with_input(0, tensor(TensorFloat32, [1, 0, 3]), &[])
            .with_input(1, tensor(TensorFloat32, [1, 0, 4]), &[])
            .with_input(2, tensor(TensorFloat32, [0, 4]), &[]);
        assert_detected(&without_anchors, &[0.0; 4], &[NONE; 4], &[0.0; 4], 0.0);
    }

    #[test]
    fn regular_suppression_by_hand() {
        // Class 1: the first box drops the second, the third stays. Class 2: the second drops the
        // first.
        assert_detected(
            &three(FLOAT, true),
            &[0.9, 0.7, 0.6, 0.3],
            &[FIRST, SECOND, THIRD, THIRD],
            &[0.0, 1.0, 1.0, 0.0],
            4.0,
        );
        assert_detected(
            &three(FLOAT, true).with_int32(8, 3),
            &[0.9, 0.7, 0.6],
            &[FIRST, SECOND, THIRD],
            &[0.0, 1.0, 1.0],
            3.0,
        );
        assert_detected(
            &three(FLOAT, true).with_int32(10, 1),
            &[0.9, 0.7, 0.0, 0.0],
            &[FIRST, SECOND, NONE, NONE],
            &[0.0, 1.0, 0.0, 0.0],
            2.0,
        );
    }

    #[test]
    fn fast_suppression_by_hand() {
        assert_detected(
            &three(FLOAT, false),
            &[0.9, 0.6, 0.0, 0.0],
            &[FIRST, THIRD, NONE, NONE],
            &[0.0, 1.0, 0.0, 0.0],
            2.0,
        );
        // There are only two classes for the three that each box may have.
        assert_detected(
            &three(FLOAT, false).with_int32(9, 3).with_int32(8, 2),
            &[0.9, 0.2, 0.6, 0.3, 0.0, 0.0],
            &[FIRST, FIRST, THIRD, THIRD, NONE, NONE],
            &[0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
            4.0,
        );
        assert_detected(&three(FLOAT, false).with_int32(8, 1), &[0.9], &[FIRST], &[0.0], 1.0);
    }

    #[test]
    fn thresholds_and_labels() {
        let float = |example: Example, index: usize, value: f64| {
            example.with_input(index, OperandSpec::scalar(Float32), &[value])
        };
        // 0.6 itself is not above the threshold.
        let above = float(three(FLOAT, false), 11, f64::from(0.6_f32));
        assert_eq!(above.results()[3].1, [1.0]);
        let lenient = float(three(FLOAT, false), 12, 0.82);
        assert_close(&lenient.result().1, &[0.9, 0.8, 0.6, 0.0], 1e-6);
        for is_regular in [true, false] {
            let labelled =
                three(FLOAT, is_regular).with_input(13, OperandSpec::scalar(Bool), &[1.0]);
            assert_eq!(labelled.results()[2].1[0], 1.0);
        }
    }

    #[test]
    fn anchors_and_deltas_by_hand() {
        // y = 5 + 10 * 5/10, x = 5 - 20 * 5/10, twice as high; what follows four deltas is ignored.
        for (types, tolerance) in [(FLOAT, 1e-6), (HALF, 2e-3)] {
            let operand_type = types[0];
            let deltas = [5.0, -5.0, 5.0 * 2.0_f64.ln(), 0.0, 99.0];
            let found = three(types, true)
                .with_input(0, tensor(operand_type, [1, 1, 2]), &[0.0, 0.5])
                .with_input(1, tensor(operand_type, [1, 1, 5]), &deltas)
                .with_input(2, tensor(operand_type, [1, 4]), &[5.0, 5.0, 10.0, 20.0])
                .with_int32(8, 1)
                .results();
            assert_close(&found[1].1, &[0.0, -15.0, 20.0, 5.0], tolerance);
        }
    }

    #[test]
    fn images_do_not_mix() {
        let scores = [[0.0, 0.5, 0.0, 0.25], [0.0, 0.75, 0.0, 1.0]].concat();
        let found = three(FLOAT, true)
            .with_input(0, tensor(TensorFloat32, [2, 2, 2]), &scores)
            .with_input(1, tensor(TensorFloat32, [2, 2, 4]), &[0.0; 16])
            .with_input(
                2,
                tensor(TensorFloat32, [2, 4]),
                &[5.0, 5.0, 10.0, 10.0, 25.0, 25.0, 10.0, 10.0],
            )
            .results();
        assert_eq!(found[0], (vec![2, 4], vec![0.5, 0.25, 0.0, 0.0, 1.0, 0.75, 0.0, 0.0]));
        assert_eq!(found[1].1[16..24], [THIRD, FIRST].concat());
        assert_eq!(found[3], (vec![2], vec![2.0, 2.0]));
    }

    #[test]
    fn of_equal_scores_the_first_class_and_the_first_anchor_win() {
        let equal = |is_regular| {
            three(FLOAT, is_regular).with_input(0, tensor(TensorFloat32, [1, 3, 3]), &[0.5; 9])
        };
        // Both classes keep the first and the third box.
        assert_detected(
            &equal(true),
            &[0.5; 4],
            &[FIRST, THIRD, FIRST, THIRD],
            &[0.0, 0.0, 1.0, 1.0],
            4.0,
        );
        assert_detected(&equal(true).with_int32(8, 1), &[0.5], &[FIRST], &[0.0], 1.0);
        assert_detected(
            &equal(false).with_int32(8, 2),
            &[0.5; 2],
            &[FIRST, THIRD],
            &[0.0, 0.0],
            2.0,
        );
    }

    proptest! {
        #[test]
        fn with_one_class_both_kinds_of_suppression_agree(
            scores in prop::collection::vec(0.0..1.0_f64, 1..8),
            places in prop::collection::vec((0.0..30.0_f64, 0.0..30.0_f64), 8),
        ) {
            let count = u32::try_from(scores.len()).unwrap();
            let scores: Vec<f64> = scores.into_iter().flat_map(|score| [0.0, score]).collect();
            let anchors: Vec<f64> = places[..count as usize]
                .iter()
                .flat_map(|(y, x)| [*y, *x, 10.0, 10.0])
                .collect();
            let results = |is_regular| {
                three(FLOAT, is_regular)
                    .with_input(0, tensor(TensorFloat32, [1, count, 2]), &scores)
                    .with_input(1, tensor(TensorFloat32, [1, count, 4]), &vec![0.0; anchors.len()])
                    .with_input(2, tensor(TensorFloat32, [count, 4]), &anchors)
                    .with_int32(10, 9)
                    .results()
            };
            prop_assert_eq!(results(true), results(false));
        }
    }
}
