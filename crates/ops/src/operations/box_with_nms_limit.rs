//! `BOX_WITH_NMS_LIMIT`: of the boxes that a network found for each class, those with the highest
//! scores that do not overlap too much.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | scores | `[boxes, classes]`, two classes or more | float32, float16, quantized |
//! | input 1 | boxes | `[boxes, classes * 4]`: x1, y1, x2, y2 | as the scores; quant16 of scale 1/8 if quantized |
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
use crate::rules::sorting::sort;
use crate::rules::suppression::{Candidate, MultiClass};
use crate::rules::{bounding_box, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant16Asymm,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
            let lower = |score, overlap| self.lower(score, overlap);
            let mut selected = rule.select(call, scores, box_of, lower)?;
            sort(call, &mut selected, |a, b| a.class.cmp(&b.class))?;
            for candidate in selected {
                call.work(1)?;
                let class = i32::try_from(candidate.class).unwrap_or(i32::MAX);
                call.push(&mut selection.scores, candidate.score)?;
                for edge in box_of(&candidate).to_array() {
                    call.push(&mut selection.edges, edge)?;
                }
                call.push(&mut selection.classes, class)?;
                call.push(&mut selection.batch_indexes, image[0])?;
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
            call.output(2).with_integers(vec![count], &self.classes)?,
            call.output(3).with_integers(vec![count], &self.batch_indexes)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// The types of scores, boxes and scalars.
    const TYPES: [[OperandType; 3]; 4] = [
        [TensorFloat32, TensorFloat32, Float32],
        [TensorFloat16, TensorFloat16, Float16],
        [TensorQuant8Asymm, TensorQuant16Asymm, Float32],
        [TensorQuant8AsymmSigned, TensorQuant16Asymm, Float32],
    ];

    fn coordinates(operand_type: OperandType, dimensions: impl Into<Vec<u32>>) -> OperandSpec {
        match operand_type {
            TensorQuant16Asymm => OperandSpec::new(operand_type, dimensions).quantized(0.125, 0),
            _ => tensor(operand_type, dimensions),
        }
    }

    /// Boxes of width 4 and height 1 that begin at these places (in the unit they are stored in),
    /// the same for every class.
    fn example(
        [score, place, scalar]: [OperandType; 3],
        classes: u32,
        scores: &[f64],
        places: &[f64],
        indexes: &[f64],
    ) -> Example {
        let count = u32::try_from(places.len()).unwrap();
        let boxes: Vec<f64> = places
            .iter()
            .flat_map(|x| (0..classes).flat_map(move |_| [*x, 0.0, *x + 4.0, 1.0]))
            .collect();
        Example::new(OperationType::BoxWithNmsLimit)
            .input(tensor(score, [count, classes]), scores)
            .input(coordinates(place, [count, 4 * classes]), &boxes)
            .input(OperandSpec::tensor_int32([count]), indexes)
            .input(OperandSpec::scalar(scalar), &[0.25])
            .int32s([-1, 0])
            .input(OperandSpec::scalar(scalar), &[0.5])
            .input(OperandSpec::scalar(scalar), &[0.5])
            .input(OperandSpec::scalar(scalar), &[0.25])
            .output(tensor(score, [0]))
            .output(coordinates(place, [0, 4]))
            .output(OperandSpec::tensor_int32([0]))
            .output(OperandSpec::tensor_int32([0]))
    }

    /// Three boxes, of which the first two overlap by 3/5. The background has the highest scores.
    fn three(types: [OperandType; 3]) -> Example {
        let scores = [1.0, 0.875, 1.0, 0.75, 1.0, 0.5];
        example(types, 2, &scores, &[0.0, 1.0, 10.0], &[0.0; 3])
    }

    fn with_scalar(example: Example, index: usize, value: f64) -> Example {
        example.with_input(index, OperandSpec::scalar(Float32), &[value])
    }

    fn scores(example: &Example) -> Vec<f64> {
        example.result().1
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let v1_2 = HalVersion::V1_2;
        for (types, since) in TYPES.into_iter().zip([v1_2, v1_2, v1_2, HalVersion::V1_3]) {
            assert_eq!(three(types).since(), Ok(since), "{types:?}");
            assert!(three(types).run().is_ok(), "{types:?}");
        }
        for types in [
            [TensorFloat16, TensorFloat16, Float32],
            [TensorFloat32, TensorQuant16Asymm, Float32],
            [TensorQuant8Asymm, TensorFloat32, Float32],
        ] {
            assert!(three(types).since().is_err(), "{types:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = three(TYPES[0]);
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let quantized = three(TYPES[2]);
        let mut crossed = [0.0; 24];
        crossed[4] = 1.0;
        for (refused, message) in [
            (
                good.clone().with_input(0, float(&[6]), &[0.0; 6]),
                "rank of input 0 (scores) is 1, expected 2",
            ),
            (
                good.clone().with_input(0, float(&[3, 1]), &[0.0; 3]),
                "shape of input 0 (scores) is [3, 1], expected two classes or more along axis 1",
            ),
            (
                good.clone().with_input(1, float(&[2, 8]), &[0.0; 16]),
                "shape of input 1 (boxes) is [2, 8], expected length 3 along axis 0",
            ),
            (
                good.clone().with_input(1, float(&[3, 4]), &[0.0; 12]),
                "shape of input 1 (boxes) is [3, 4], expected length 8 along axis 1",
            ),
            (
                good.clone().with_input(1, float(&[3, 8]), &crossed),
                "value of input 1 (boxes) is [1.0, 0.0, 0.0, 0.0], expected boxes \
                 [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([2]), &[0.0; 2]),
                "shape of input 2 (batch indexes) is [2], expected length 3 along axis 0",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([3]), &[-1.0; 3]),
                "value of input 2 (batch indexes) is -1, expected 0 or more",
            ),
            (
                good.clone().with_int32(5, 3),
                "value of input 5 (kernel) is 3, expected 0 (hard), 1 (linear) or 2 (Gaussian)",
            ),
            (
                quantized.clone().with_input(
                    1,
                    OperandSpec::new(TensorQuant16Asymm, [3, 8]).quantized(1.0, 0),
                    &[0.0; 24],
                ),
                "scale of input 1 (boxes) is 1, expected 0.125",
            ),
            (
                quantized.with_output(OperandSpec::new(TensorQuant8Asymm, [0]).quantized(0.5, 1)),
                "zero point of output 0 (scores) is 1, expected 128 as input 0 (scores)",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("BOX_WITH_NMS_LIMIT: {message}"));
        }
    }

    #[test]
    fn the_number_selected_is_not_known_before() {
        let list = Shape::of_rank(1);
        let expected = vec![list.clone(), Shape::new([None, Some(4)]), list.clone(), list];
        assert_eq!(three(TYPES[0]).shapes(), Ok(expected.clone()));
        let unknown = three(TYPES[0])
            .with_input_to_come(0, tensor(TensorFloat32, []))
            .with_input_to_come(1, tensor(TensorFloat32, []));
        assert_eq!(unknown.shapes(), Ok(expected));
        let none = [(vec![0], vec![]), (vec![0, 4], vec![]), (vec![0], vec![]), (vec![0], vec![])];
        assert_eq!(example(TYPES[0], 2, &[], &[], &[]).results(), none);
        assert_eq!(with_scalar(three(TYPES[0]), 3, 0.875).results(), none);
        assert_eq!(three(TYPES[0]).with_int32(4, 0).results(), none);
    }

    #[test]
    fn each_kernel_by_hand() {
        let kernel = |kernel| scores(&three(TYPES[0]).with_int32(5, kernel));
        assert_close(&kernel(0), &[0.875, 0.5], 1e-6);
        // 0.75 * (1 - 0.6), now the last.
        assert_close(&kernel(1), &[0.875, 0.5, 0.3], 1e-6);
        // 0.75 * exp(-0.36 / 0.5) = 0.75 * 0.486752.
        assert_close(&kernel(2), &[0.875, 0.5, 0.365_064], 1e-5);
        // Without overlap enough, the linear kernel leaves all as it is; the Gaussian one does not
        // ask.
        let far = |kernel| scores(&with_scalar(three(TYPES[0]), 6, 0.61).with_int32(5, kernel));
        assert_close(&far(0), &[0.875, 0.75, 0.5], 1e-6);
        assert_close(&far(1), &[0.875, 0.75, 0.5], 1e-6);
        assert_close(&far(2), &[0.875, 0.5, 0.365_064], 1e-5);
    }

    #[test]
    fn thresholds_and_limits() {
        let three = three(TYPES[0]);
        // A score at the threshold takes no part; a lowered one at its threshold stays.
        assert_close(&scores(&with_scalar(three.clone(), 3, 0.5)), &[0.875], 1e-6);
        let kept = |least| scores(&with_scalar(three.clone(), 8, least).with_int32(5, 1));
        assert_close(&kept(0.29), &[0.875, 0.5, 0.3], 1e-6);
        assert_close(&kept(0.31), &[0.875, 0.5], 1e-6);
        // What the hard kernel brings to 0 stays if 0 is enough.
        assert_close(&scores(&with_scalar(three.clone(), 8, 0.0)), &[0.875, 0.5, 0.0], 0.0);
        assert_close(&scores(&three.clone().with_int32(4, 1)), &[0.875], 0.0);
        assert_close(&scores(&three.with_int32(4, i32::MIN)), &[0.875, 0.5], 0.0);
    }

    #[test]
    fn results_are_in_order_of_images_then_classes_then_scores() {
        let scores = [
            [0.0, 0.5, 0.875], // image 3
            [0.0, 0.75, 0.375],
            [0.0, 0.5, 1.0], // image 1
        ]
        .concat();
        let all = example(TYPES[0], 3, &scores, &[0.0, 10.0, 20.0], &[3.0, 3.0, 1.0]);
        let expected = [
            (vec![6], vec![0.75, 0.5, 0.875, 0.375, 0.5, 1.0]),
            (
                vec![6, 4],
                [10.0, 0.0, 0.0, 10.0, 20.0, 20.0]
                    .into_iter()
                    .flat_map(|x| [x, 0.0, x + 4.0, 1.0])
                    .collect(),
            ),
            (vec![6], vec![1.0, 1.0, 2.0, 2.0, 1.0, 2.0]),
            (vec![6], vec![3.0, 3.0, 3.0, 3.0, 1.0, 1.0]),
        ];
        assert_eq!(all.results(), expected);
        // The two highest scores of each image.
        let limited = all.with_int32(4, 2).results();
        assert_eq!(limited[0].1, [0.75, 0.875, 0.5, 1.0]);
        assert_eq!(limited[2].1, [1.0, 2.0, 1.0, 2.0]);
        assert_eq!(limited[3].1, [3.0, 3.0, 1.0, 1.0]);
    }

    #[test]
    fn boxes_are_those_of_the_class() {
        let boxes = [
            [0.0, 0.0, 1.0, 1.0],
            [2.0, 2.0, 3.0, 3.0],
            [4.0, 4.0, 5.0, 5.0],
            [6.0, 6.0, 7.0, 7.0],
        ]
        .concat();
        let found = example(TYPES[0], 2, &[0.0, 0.5, 0.0, 0.75], &[0.0, 0.0], &[0.0; 2])
            .with_input(1, tensor(TensorFloat32, [2, 8]), &boxes)
            .results();
        assert_eq!(found[1].1, [6.0, 6.0, 7.0, 7.0, 2.0, 2.0, 3.0, 3.0]);
    }

    #[test]
    fn halves_and_quantized_values_by_hand() {
        let half = three(TYPES[1]).with_int32(5, 1).results();
        assert_close(&half[0].1, &[0.875, 0.5, 0.3], 1e-3);
        assert_eq!(half[1].1[8..], [1.0, 0.0, 5.0, 1.0]);
        // Scores of 10, 8 and 4 in steps of 1/2; 8 becomes 3.2, six steps and a bit.
        for (types, zero_point) in [(TYPES[2], 128.0), (TYPES[3], 0.0)] {
            let scores = [40.0, 20.0, 40.0, 16.0, 40.0, 8.0].map(|steps| steps + zero_point);
            let found =
                example(types, 2, &scores, &[0.0, 1.0, 10.0], &[0.0; 3]).with_int32(5, 1).results();
            let expected = [20.0, 8.0, 6.0].map(|steps| steps + zero_point);
            assert_eq!(found[0].1, expected);
            assert_eq!(found[1].1[4..], [10.0, 0.0, 14.0, 1.0, 1.0, 0.0, 5.0, 1.0]);
        }
    }

    #[test]
    fn of_equal_scores_the_first_box_and_the_first_class_win() {
        let equal = example(TYPES[0], 3, &[0.5; 9], &[0.0, 10.0, 20.0], &[0.0; 3]);
        let found = |limit| equal.clone().with_int32(4, limit).results();
        let places = |results: &[(Vec<u32>, Vec<f64>)]| -> Vec<f64> {
            results[1].1.chunks(4).map(|edges| edges[0]).collect()
        };
        assert_eq!(places(&found(-1)), [0.0, 10.0, 20.0, 0.0, 10.0, 20.0]);
        assert_eq!(places(&found(2)), [0.0, 10.0]);
        assert_eq!(found(2)[2].1, [1.0, 1.0]);
        // Boxes without area have nothing in common, not even with each other.
        let points = example(TYPES[0], 2, &[0.5; 4], &[0.0; 2], &[0.0; 2]);
        let points = points.with_input(1, tensor(TensorFloat32, [2, 8]), &[3.0; 16]);
        assert_eq!(points.result().1, [0.5, 0.5]);
    }

    proptest! {
        #[test]
        fn hard_results_are_a_choice_of_the_input_without_overlap(
            boxes in prop::collection::vec((0.0..20.0_f64, 0.3..1.0_f64), 1..15),
        ) {
            let exact = |value: f64| (value * 64.0).round() / 64.0;
            let places: Vec<f64> = boxes.iter().map(|it| exact(it.0)).collect();
            let given: Vec<f64> = boxes.iter().flat_map(|it| [1.0, exact(it.1)]).collect();
            let indexes = vec![0.0; boxes.len()];
            let found = example(TYPES[0], 2, &given, &places, &indexes).results();
            prop_assert!(found[0].1.is_sorted_by(|a, b| a >= b));
            let selected: Vec<f64> = found[1].1.chunks(4).map(|it| it[0]).collect();
            for (position, (x, score)) in selected.iter().zip(&found[0].1).enumerate() {
                let mut pairs = places.iter().zip(given.chunks(2));
                prop_assert!(pairs.any(|(place, scores)| place == x && scores[1] == *score));
                for other in &selected[..position] {
                    let common = (4.0 - (x - other).abs()).max(0.0);
                    prop_assert!(common / (8.0 - common) < 0.5 + 1e-6);
                }
            }
        }
    }
}
