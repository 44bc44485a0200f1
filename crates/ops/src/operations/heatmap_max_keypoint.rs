//! `HEATMAP_MAX_KEYPOINT`: where in its box, and with which score, a network sees each keypoint.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | heatmaps | `[boxes, size, size, keypoints]`, or NCHW; the size is 2 or more | float32, float16, quantised |
//! | input 1 | boxes | `[boxes, 4]`: x1, y1, x2, y2 | as the heatmaps; quant16 of scale 1/8 if quantised |
//! | input 2 | NCHW? | scalar | BOOL |
//! | output 0 | scores | `[boxes, keypoints]` | as the heatmaps, any scale |
//! | output 1 | keypoints | `[boxes, keypoints, 2]`: x, y | as the boxes |
//!
//! The greatest cell of a heatmap (the first of equal ones) and its eight neighbours, mirrored at
//! the border, are taken for a surface of second degree around the cell. With `b` the negative
//! gradient and `A` the second derivatives, both by central differences, its extremum is at
//! `d = A^-1 b`, made shorter where a coordinate is beyond 3/2; the score there is
//! `value - b.d + d.A.d / 2`. Where `A` is all but singular, the cell itself is the answer. The
//! cell's middle plus `d`, relative to the heatmap's size, is the place in the box.
//!
//! Source: `types.hal` 1.2, 1.3 (signed); the bound for "all but singular" is that of Android's own
//! implementation.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::layout::Layout;
use crate::rules::{bounding_box, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned, TensorQuant16Asymm,
};
use hal::{HalVersion, OperandType, OperationType};

/// How far a keypoint may be from the greatest cell, in cells, along each axis.
const FURTHEST: f64 = 1.5;

/// `HEATMAP_MAX_KEYPOINT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeatmapMaxKeypoint {
    /// Of the heatmaps.
    pub layout: Layout,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::HeatmapMaxKeypoint,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorQuant16Asymm]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant16Asymm]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("heatmaps", 0), Parameter::column("boxes", 1), Parameter::bool("NCHW")],
        &[Parameter::column("scores", 0), Parameter::column("keypoints", 1)],
    )],
};

impl Operation for HeatmapMaxKeypoint {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(4)?;
        call.input(1).expect_rank(2)?;
        bounding_box::expect_quantization(call.input(1))?;
        bounding_box::expect_quantization(call.output(1))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { layout: Layout::from_flag(call.input(2).bool()?) })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (heatmaps, boxes) = (call.input(0), call.input(1));
        let [count, height, width, keypoints] = self.layout.image_lengths(heatmaps)?;
        let is_square = height.is_none() || width.is_none() || height == width;
        if !is_square || height == Some(1) || width == Some(1) {
            return Err(heatmaps.wrong(
                "shape",
                &heatmaps.shape,
                "height and width equal, above 1",
            ));
        }
        boxes.expect_rank(2)?;
        boxes.expect_length(0, count)?;
        boxes.expect_length(1, Some(4))?;
        let count = count.or(boxes.shape.length(0));
        Ok(vec![Shape::new([count, keypoints]), Shape::new([count, keypoints, Some(2)])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (heatmaps, boxes) = (call.input(0), call.input(1));
        let shapes = self.output_shapes(call)?;
        let dimensions =
            |shape: &Shape| shape.to_known().ok_or_else(|| heatmaps.not_known("dimensions"));
        let (score_dimensions, place_dimensions) =
            (dimensions(&shapes[0])?, dimensions(&shapes[1])?);
        let mut scores: Vec<f32> = call.output(0).allocate(&score_dimensions)?;
        let mut places: Vec<f32> = call.output(1).allocate(&place_dimensions)?;
        let lengths = self.layout.to_nhwc(heatmaps.lengths_of()?);
        let [_, size, _, keypoints] = lengths;
        let elements = self.layout.elements_to_nhwc(heatmaps.reals()?, lengths);
        // Below it the determinant counts as 0, relative to 1 and to the product of its diagonal.
        let singular = if heatmaps.operand_type == TensorFloat16 { 1e-3 } else { 1e-5 };
        for (index, bounding_box) in bounding_box::read(boxes)?.into_iter().enumerate() {
            let origin = [bounding_box.x1, bounding_box.y1].map(f64::from);
            let end = [bounding_box.x2, bounding_box.y2].map(f64::from);
            for keypoint in 0..keypoints {
                let heatmap = Heatmap {
                    elements: &elements[index * size * size * keypoints..],
                    size,
                    keypoints,
                    keypoint,
                };
                let (score, place) = heatmap.peak(singular);
                scores.push(real::round(score));
                places.extend([0, 1].map(|axis| {
                    real::round(origin[axis] + place[axis] * (end[axis] - origin[axis]))
                }));
            }
        }
        Ok(vec![
            real::store(call.output(0), score_dimensions, scores)?,
            real::store(call.output(1), place_dimensions, places)?,
        ])
    }
}

/// The heatmap of one keypoint in one box.
struct Heatmap<'a> {
    /// From the box's first on, `[y, x, keypoint]`.
    elements: &'a [f32],
    size: usize,
    keypoints: usize,
    keypoint: usize,
}

impl Heatmap<'_> {
    fn at(&self, y: usize, x: usize) -> f64 {
        f64::from(self.elements[(y * self.size + x) * self.keypoints + self.keypoint])
    }

    /// Column and row of the greatest cell. NaN is never greater.
    fn greatest(&self) -> [usize; 2] {
        let (mut greatest, mut value) = ([0, 0], f64::NEG_INFINITY);
        for y in 0..self.size {
            for x in 0..self.size {
                if self.at(y, x) > value {
                    (greatest, value) = ([x, y], self.at(y, x));
                }
            }
        }
        greatest
    }

    /// The highest score, and where it is: x and y from 0 to 1.
    // Sizes are below 2^32.
    #[allow(clippy::cast_precision_loss)]
    fn peak(&self, singular: f64) -> (f64, [f64; 2]) {
        let [x, y] = self.greatest();
        // Mirrored at the border, where the cell beside is the neighbour on both sides.
        let before = |cell: usize| if cell == 0 { 1 } else { cell - 1 };
        let after = |cell: usize| if cell + 1 == self.size { self.size - 2 } else { cell + 1 };
        let (left, right, above, below) = (before(x), after(x), before(y), after(y));
        let center = self.at(y, x);
        let b_x = -(self.at(y, right) - self.at(y, left)) / 2.0;
        let b_y = -(self.at(below, x) - self.at(above, x)) / 2.0;
        let a_xx = self.at(y, left) - 2.0 * center + self.at(y, right);
        let a_yy = self.at(above, x) - 2.0 * center + self.at(below, x);
        let falling = self.at(above, left) + self.at(below, right);
        let rising = self.at(above, right) + self.at(below, left);
        let a_xy = (falling - rising) / 4.0;

        let diagonal = a_xx * a_yy;
        let determinant = diagonal - a_xy * a_xy;
        let is_regular = determinant.abs() >= singular + singular * diagonal;
        let (score, [d_x, d_y]) = if is_regular {
            let d_x = (a_yy * b_x - a_xy * b_y) / determinant;
            let d_y = (a_xx * b_y - a_xy * b_x) / determinant;
            let shorter = (FURTHEST / d_x.abs().max(d_y.abs())).min(1.0);
            let (d_x, d_y) = (d_x * shorter, d_y * shorter);
            let slope = b_x * d_x + b_y * d_y;
            let bend = a_xx * d_x * d_x + 2.0 * a_xy * d_x * d_y + a_yy * d_y * d_y;
            (center - slope + bend / 2.0, [d_x, d_y])
        } else {
            (center, [0.0, 0.0])
        };
        let size = self.size as f64;
        (score, [(x as f64 + d_x + 0.5) / size, (y as f64 + d_y + 0.5) / size])
    }
}
