//! `BOX_WITH_NMS_LIMIT`: of the boxes that a network found for each class, those with the highest
//! scores that do not overlap too much.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | scores | `[boxes, classes]`, two classes or more | float32, float16, quantised |
//! | input 1 | boxes | `[boxes, classes * 4]`: x1, y1, x2, y2 | as the scores; quant16 of scale 1/8 if quantised |
//! | input 2 | batch indexes | `[boxes]`, equal ones in a row | int32, 0 or more |
//! | input 3 | score threshold | scalar | FLOAT32; FLOAT16 if the scores are |
//! | input 4 | limit | scalar, boxes of an image; negative: no limit | INT32 |
//! | input 5 | kernel | scalar: 0 hard, 1 linear, 2 Gaussian | INT32 |
//! | input 6 | overlap threshold | scalar, for hard and linear | as input 3 |
//! | input 7 | sigma | scalar, for Gaussian | as input 3 |
//! | input 8 | lowered score threshold | scalar | as input 3 |
//! | output 0 | scores | `[selected]` | as the scores; same scale, zero point |
//! | output 1 | boxes | `[selected, 4]` | as the boxes |
//! | output 2 | classes | `[selected]` | int32 |
//! | output 3 | batch indexes | `[selected]` | int32 |
//!
//! Class 0 is the background and takes no part. Only scores above the score threshold do. In each
//! image and class, the box with the highest score is selected, and the scores of the others are
//! multiplied by what the kernel says of their overlap with it (intersection over union):
//!
//! | kernel | factor |
//! |---|---|
//! | hard | 1 below the overlap threshold, else 0 |
//! | linear | 1 below the overlap threshold, else `1 - overlap` |
//! | Gaussian | `exp(-overlap^2 / sigma)` |
//!
//! Those below the lowered score threshold are dropped, and the next is selected. The limit holds
//! for each class and then for all together. The result is in order of images, then classes, then
//! descending scores.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::suppression::{Candidate, MultiClass};
use crate::rules::{bounding_box, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant16Asymm,
};
use hal::{HalVersion, OperandType, OperationType};

/// By how much overlap lowers a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kernel {
    /// From this overlap on, to 0.
    Hard(f32),
    /// From this overlap on, in proportion to what is not covered.
    Linear(f32),
    /// By a bell curve of this sigma.
    Gaussian(f32),
}

/// `BOX_WITH_NMS_LIMIT`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxWithNmsLimit {
    /// Only scores above it take part.
    pub score_threshold: f32,
    /// Most boxes of an image, if there is a limit.
    pub limit: Option<u32>,
    /// By how much overlap lowers a score.
    pub kernel: Kernel,
    /// Lowered scores below it are dropped.
    pub lowered_score_threshold: f32,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::BoxWithNmsLimit,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16, Float16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorQuant16Asymm, Float32]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant16Asymm, Float32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("scores", 0),
            Parameter::column("boxes", 1),
            Parameter::tensor_int32("batch indexes"),
            Parameter::column("score threshold", 2),
            Parameter::int32("limit"),
            Parameter::int32("kernel"),
            Parameter::column("overlap threshold", 2),
            Parameter::column("sigma", 2),
            Parameter::column("lowered score threshold", 2),
        ],
        &[
            Parameter::column("scores", 0),
            Parameter::column("boxes", 1),
            Parameter::tensor_int32("classes"),
            Parameter::tensor_int32("batch indexes"),
        ],
    )],
};

impl Kernel {
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        match call.input(5).i32()? {
            0 => call.input(6).f32().map(Self::Hard),
            1 => call.input(6).f32().map(Self::Linear),
            2 => call.input(7).f32().map(Self::Gaussian),
            other => {
                let expected = "0 (hard), 1 (linear) or 2 (Gaussian)";
                Err(call.input(5).wrong("value", other, expected))
            }
        }
    }

    /// What a score is multiplied by.
    fn factor(self, overlap: f32) -> f32 {
        match self {
            Self::Hard(threshold) | Self::Linear(threshold) if overlap < threshold => 1.0,
            Self::Hard(_) => 0.0,
            Self::Linear(_) => 1.0 - overlap,
            Self::Gaussian(sigma) => (-overlap * overlap / sigma).exp(),
        }
    }
}

impl Operation for BoxWithNmsLimit {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        for (index, rank) in [(0, 2), (1, 2), (2, 1)] {
            call.input(index).expect_rank(rank)?;
        }
        bounding_box::expect_quantization(call.input(1))?;
        bounding_box::expect_quantization(call.output(1))?;
        let scores = call.output(0);
        if scores.is_quantized() { scores.expect_quantized_as(call.input(0)) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self {
            score_threshold: call.input(3).f32()?,
            limit: u32::try_from(call.input(4).i32()?).ok(),
            kernel: Kernel::decode(call)?,
            lowered_score_threshold: call.input(8).f32()?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (scores, boxes, batch_indexes) = (call.input(0), call.input(1), call.input(2));
        let [count, classes] = scores.known_lengths_of()?;
        if classes.is_some_and(|classes| classes < 2) {
            return Err(scores.wrong("shape", &scores.shape, "two classes or more along axis 1"));
        }
        let count = count.or(boxes.shape.length(0));
        boxes.expect_length(0, count)?;
        batch_indexes.expect_length(0, count)?;
        bounding_box::expect_four_each(boxes, 1, classes)?;
        let list = Shape::of_rank(1);
        Ok(vec![list.clone(), Shape::new([None, Some(4)]), list.clone(), list])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.output_shapes(call)?;
        let (scores, boxes, batch_indexes) = (call.input(0), call.input(1), call.input(2));
        let [_, classes] = scores.lengths_of()?;
        let (scores, boxes) = (scores.reals()?, bounding_box::read(boxes)?);
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        let rule = MultiClass {
            classes,
            score_threshold: self.score_threshold,
            class_limit: limit,
            limit,
        };
        let mut selection = Selection::default();
        let mut first = 0;
        for image in batch_indexes.i32s()?.chunk_by(|a, b| a == b) {
            if image[0] < 0 {
                return Err(batch_indexes.wrong("value", image[0], "0 or more"));
            }
            let range = first * classes..(first + image.len()) * classes;
            first += image.len();
            let (scores, boxes) = (&scores[range.clone()], &boxes[range]);
            let box_of = |it: &Candidate| boxes[it.index * classes + it.class];
            let mut selected =
                rule.select(scores, box_of, |score, overlap| self.lower(score, overlap));
            selected.sort_by_key(|candidate| candidate.class);
            for candidate in selected {
                selection.scores.push(candidate.score);
                selection.edges.extend(box_of(&candidate).to_array());
                selection.classes.push(i32::try_from(candidate.class).unwrap_or(i32::MAX));
                selection.batch_indexes.push(image[0]);
            }
        }
        selection.store(call)
    }
}

impl BoxWithNmsLimit {
    /// The score after a box with so much overlap was selected, unless that drops it.
    fn lower(&self, score: f32, overlap: f32) -> Option<f32> {
        let lowered = score * self.kernel.factor(overlap);
        (lowered >= self.lowered_score_threshold).then_some(lowered)
    }
}

/// What is selected so far, output by output.
#[derive(Default)]
struct Selection {
    scores: Vec<f32>,
    edges: Vec<f32>,
    classes: Vec<i32>,
    batch_indexes: Vec<i32>,
}

impl Selection {
    fn store(self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let scores = call.output(0);
        let count = u32::try_from(self.scores.len())
            .map_err(|_| scores.wrong("length", self.scores.len(), "at most 2^32 - 1"))?;
        Ok(vec![
            real::store(scores, vec![count], self.scores)?,
            real::store(call.output(1), vec![count, 4], self.edges)?,
            call.output(2).with_integers(vec![count], &self.classes),
            call.output(3).with_integers(vec![count], &self.batch_indexes),
        ])
    }
}
