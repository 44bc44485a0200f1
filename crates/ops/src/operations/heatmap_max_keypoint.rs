//! `HEATMAP_MAX_KEYPOINT`: where in its box, and with which score, a network sees each keypoint.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | heatmaps | `[boxes, size, size, keypoints]`, or NCHW; the size is 2 or more | float32, float16, quantized |
//! | input 1 | boxes | `[boxes, 4]`: x1, y1, x2, y2 | as the heatmaps; quant16 of scale 1/8 if quantized |
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
use nnhal_hal::{HalVersion, OperandType, OperationType};

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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
        let elements = self.layout.elements_to_nhwc(call, heatmaps.reals()?, lengths)?;
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
                let (score, place) = heatmap.peak(call, singular)?;
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
    fn greatest(&self, call: &Call<'_>) -> Result<[usize; 2], Fault> {
        let (mut greatest, mut value) = ([0, 0], f64::NEG_INFINITY);
        for y in 0..self.size {
            call.each(0..self.size, |x| {
                if self.at(y, x) > value {
                    (greatest, value) = ([x, y], self.at(y, x));
                }
            })?;
        }
        Ok(greatest)
    }

    /// The highest score, and where it is: x and y from 0 to 1.
    // Sizes are below 2^32.
    #[allow(clippy::cast_precision_loss)]
    fn peak(&self, call: &Call<'_>, singular: f64) -> Result<(f64, [f64; 2]), Fault> {
        let [x, y] = self.greatest(call)?;
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
        Ok((score, [(x as f64 + d_x + 0.5) / size, (y as f64 + d_y + 0.5) / size]))
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

    /// One keypoint in one box, as they are stored.
    fn example(
        [heatmap, place]: [OperandType; 2],
        size: u32,
        elements: &[f64],
        edges: [f64; 4],
    ) -> Example {
        Example::new(OperationType::HeatmapMaxKeypoint)
            .input(tensor(heatmap, [1, size, size, 1]), elements)
            .input(coordinates(place, [1, 4]), &edges)
            .bool(false)
            .output(tensor(heatmap, [0, 0]))
            .output(coordinates(place, [0, 0, 0]))
    }

    const FLOAT: [OperandType; 2] = [TensorFloat32, TensorFloat32];
    const UNIT: [f64; 4] = [0.0, 0.0, 1.0, 1.0];

    /// Score, x and y.
    fn peak(example: &Example) -> [f64; 3] {
        let results = example.results();
        [results[0].1[0], results[1].1[0], results[1].1[1]]
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for (types, since) in [
            (FLOAT, Some(HalVersion::V1_2)),
            ([TensorFloat16, TensorFloat16], Some(HalVersion::V1_2)),
            ([TensorQuant8Asymm, TensorQuant16Asymm], Some(HalVersion::V1_2)),
            ([TensorQuant8AsymmSigned, TensorQuant16Asymm], Some(HalVersion::V1_3)),
            ([TensorQuant8Asymm, TensorFloat32], None),
            ([TensorFloat32, TensorQuant16Asymm], None),
        ] {
            let found = example(types, 2, &[0.0; 4], UNIT);
            assert_eq!(found.since().ok(), since, "{types:?}");
            assert_eq!(found.run().is_ok(), since.is_some(), "{types:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(FLOAT, 2, &[0.0; 4], UNIT);
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let quantized = example([TensorQuant8Asymm, TensorQuant16Asymm], 2, &[0.0; 4], UNIT);
        let coarse = OperandSpec::new(TensorQuant16Asymm, [1, 4]).quantized(0.125, 1);
        for (refused, message) in [
            (
                good.clone().with_input(0, float(&[2, 2]), &[0.0; 4]),
                "rank of input 0 (heatmaps) is 2, expected 4",
            ),
            (
                good.clone().with_input(0, float(&[1, 2, 3, 1]), &[0.0; 6]),
                "shape of input 0 (heatmaps) is [1, 2, 3, 1], expected height and width equal, \
                 above 1",
            ),
            (
                good.clone().with_input(0, float(&[1, 1, 1, 1]), &[0.0]),
                "shape of input 0 (heatmaps) is [1, 1, 1, 1], expected height and width equal, \
                 above 1",
            ),
            (
                good.clone().with_input(1, float(&[2, 4]), &[0.0; 8]),
                "shape of input 1 (boxes) is [2, 4], expected length 1 along axis 0",
            ),
            (
                good.clone().with_input(1, float(&[1, 5]), &[0.0; 5]),
                "shape of input 1 (boxes) is [1, 5], expected length 4 along axis 1",
            ),
            (
                good.clone().with_input(1, float(&[1, 4]), &[0.0, 1.0, 0.0, 0.0]),
                "value of input 1 (boxes) is [0.0, 1.0, 0.0, 0.0], expected boxes \
                 [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2",
            ),
            (
                quantized.with_input(1, coarse, &[0.0; 4]),
                "zero point of input 1 (boxes) is 1, expected 0",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("HEATMAP_MAX_KEYPOINT: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |heatmaps: &[u32], boxes: &[u32]| {
            Example::new(OperationType::HeatmapMaxKeypoint)
                .input_to_come(tensor(TensorFloat32, heatmaps))
                .input_to_come(tensor(TensorFloat32, boxes))
                .bool(true)
                .output(tensor(TensorFloat32, [0, 0]))
                .output(tensor(TensorFloat32, [0, 0, 0]))
                .shapes()
        };
        let expected = |count, keypoints| {
            let places = Shape::new([count, keypoints, Some(2)]);
            Ok(vec![Shape::new([count, keypoints]), places])
        };
        assert_eq!(shapes(&[5, 7, 3, 3], &[]), expected(Some(5), Some(7)));
        assert_eq!(shapes(&[0, 7, 0, 3], &[5, 4]), expected(Some(5), Some(7)));
        assert_eq!(shapes(&[], &[]), expected(None, None));
        let none = example(FLOAT, 2, &[0.0; 4], UNIT)
            .with_input(0, tensor(TensorFloat32, [0, 2, 2, 3]), &[])
            .with_input(1, tensor(TensorFloat32, [0, 4]), &[]);
        assert_eq!(none.results(), [(vec![0, 3], vec![]), (vec![0, 3, 2], vec![])]);
    }

    #[test]
    fn values_by_hand() {
        // 10 - (x - 5/4)^2 - 2 (y - 3/4)^2, of which central differences are exact.
        let elements = [
            [0.0, 0.0],
            [1.0, 0.0],
            [2.0, 0.0],
            [0.0, 1.0],
            [1.0, 1.0],
            [2.0, 1.0],
            [0.0, 2.0],
            [1.0, 2.0],
            [2.0, 2.0],
        ]
        .map(|[x, y]: [f64; 2]| 10.0 - (x - 1.25).powi(2) - 2.0 * (y - 0.75).powi(2));
        let found = peak(&example(FLOAT, 3, &elements, [6.0, 2.0, 9.0, 8.0]));
        // Middles of cells are at 1/2: 6 + (1.25 + 0.5), 2 + 2 (0.75 + 0.5).
        assert_close(&found, &[10.0, 7.75, 4.5], 1e-6);
    }

    #[test]
    fn borders_are_mirrored() {
        let found = peak(&example(FLOAT, 2, &[1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 4.0, 8.0]));
        assert_close(&found, &[4.0, 3.0, 6.0], 1e-6);
        let found = peak(&example(FLOAT, 2, &[4.0, 2.0, 3.0, 1.0], [0.0, 0.0, 4.0, 8.0]));
        assert_close(&found, &[4.0, 1.0, 2.0], 1e-6);
    }

    #[test]
    fn a_singular_surface_has_its_peak_at_the_first_greatest_cell() {
        let flat = example(FLOAT, 2, &[7.0; 4], UNIT);
        assert_close(&peak(&flat), &[7.0, 0.25, 0.25], 1e-6);
        // Constant along x: a_xx is 0 and so is the determinant.
        let ridge = example(FLOAT, 3, &[0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0], UNIT);
        assert_close(&peak(&ridge), &[2.0, 0.5 / 3.0, 0.5], 1e-6);
        // a_xx = a_yy = -0.02 and the determinant 4e-4: regular for float32, not for float16.
        let gentle = [-0.02, -0.01, -0.02, -0.005, 0.0, -0.015, -0.02, -0.01, -0.02];
        // b_x = 0.005, so d_x = 0.005 / -0.02.
        assert_close(&peak(&example(FLOAT, 3, &gentle, UNIT))[1..], &[1.25 / 3.0, 0.5], 1e-5);
        let half = example([TensorFloat16, TensorFloat16], 3, &gentle, UNIT);
        assert_close(&peak(&half), &[0.0, 0.5, 0.5], 1e-3);
    }

    #[test]
    fn a_peak_far_from_the_cell_is_brought_nearer() {
        // a_xx = -1.5, a_yy = -2, a_xy = 1.7, b = (-0.25, 0): d = (50, 42.5) / 11, which becomes
        // (1.5, 1.275). The score is 0.375 + (-3.375 + 6.5025 - 3.25125) / 2.
        // The corners all but equal the centre, which must be the greatest.
        let elements = [-1e-6, -1.0, -3.4, -1.0, 0.0, -0.5, -3.4, -1.0, -1e-6];
        let found = peak(&example(FLOAT, 3, &elements, [0.0, 0.0, 3.0, 3.0]));
        assert_close(&found, &[0.313_125, 3.0, 2.775], 1e-4);
    }

    #[test]
    fn quantized_values_by_hand() {
        // Steps of 1/2: 4 2 3 1 from the zero point. The box in eighths, the place as well.
        for (heatmap, zero_point) in [(TensorQuant8Asymm, 128.0), (TensorQuant8AsymmSigned, 0.0)] {
            let elements = [8.0, 4.0, 6.0, 2.0].map(|steps| steps + zero_point);
            let edges = [8.0, 16.0, 40.0, 80.0];
            let found = example([heatmap, TensorQuant16Asymm], 2, &elements, edges)
                .with_output(OperandSpec::new(heatmap, [1, 1]).quantized(0.25, 5));
            assert_close(&peak(&found), &[21.0, 16.0, 32.0], 0.0);
        }
    }

    #[test]
    fn layouts_keypoints_and_boxes() {
        let heatmaps = [[4.0, 2.0, 3.0, 1.0], [1.0, 2.0, 3.0, 4.0]].concat();
        let edges = [0.0, 0.0, 4.0, 8.0];
        let nchw = example(FLOAT, 2, &[0.0; 4], edges)
            .with_input(0, tensor(TensorFloat32, [1, 2, 2, 2]), &heatmaps)
            .with_input(2, OperandSpec::scalar(OperandType::Bool), &[1.0]);
        let expected = [(vec![1, 2], vec![4.0, 4.0]), (vec![1, 2, 2], vec![1.0, 2.0, 3.0, 6.0])];
        assert_eq!(nchw.results(), expected);
        let interleaved = [4.0, 1.0, 2.0, 2.0, 3.0, 3.0, 1.0, 4.0];
        let nhwc = nchw
            .with_input(0, tensor(TensorFloat32, [1, 2, 2, 2]), &interleaved)
            .with_input(2, OperandSpec::scalar(OperandType::Bool), &[0.0]);
        assert_eq!(nhwc.results(), expected);
        let two_boxes = example(FLOAT, 2, &[0.0; 4], UNIT)
            .with_input(0, tensor(TensorFloat32, [2, 2, 2, 1]), &heatmaps)
            .with_input(
                1,
                tensor(TensorFloat32, [2, 4]),
                &[edges, [0.0, 0.0, 40.0, 80.0]].concat(),
            );
        assert_eq!(two_boxes.results()[1], (vec![2, 1, 2], vec![1.0, 2.0, 30.0, 60.0]));
    }

    #[test]
    fn no_number_makes_it_panic() {
        for filling in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::from(f32::MAX)] {
            let found = example(FLOAT, 3, &[filling; 9], UNIT).results();
            assert_close(&found[1].1, &[0.5 / 3.0; 2], 1e-6);
        }
        let mut one_is_not_a_number = [1.0; 9];
        one_is_not_a_number[4] = f64::NAN;
        example(FLOAT, 3, &one_is_not_a_number, UNIT).results();
    }

    /// The elements of 5 by 5 cells, and the place of the greatest, x first.
    fn sampled(surface: impl Fn(f64, f64) -> f64) -> (Vec<f64>, [usize; 2]) {
        let cells = (0..5).flat_map(|y| (0..5).map(move |x| (f64::from(x), f64::from(y))));
        let elements: Vec<f64> = cells.map(|(x, y)| surface(x, y)).collect();
        let greatest = (0..25).fold(0, |a, b| if elements[b] > elements[a] { b } else { a });
        (elements, [greatest % 5, greatest / 5])
    }

    proptest! {
        #[test]
        fn the_peak_of_a_surface_of_second_degree_is_found(
            place in (0.6..3.4_f64, 0.6..3.4_f64),
            bend in (0.5..2.0_f64, 0.5..2.0_f64, -0.4..0.4_f64),
            height in -5.0..5.0_f64,
        ) {
            let (elements, greatest) = sampled(|x, y| {
                let (x, y) = (x - place.0, y - place.1);
                height - bend.0 * x * x - bend.1 * y * y - bend.2 * x * y
            });
            // On the border cells are missing that the surface would be known from.
            prop_assume!(greatest.iter().all(|cell| (1..4).contains(cell)));
            let found = peak(&example(FLOAT, 5, &elements, [0.0, 0.0, 5.0, 5.0]));
            assert_close(&found, &[height, place.0 + 0.5, place.1 + 0.5], 1e-4);
        }

        /// What is beyond is taken as the mirror image, so that surfaces are known that are their own.
        #[test]
        fn the_peak_of_a_surface_that_is_symmetric_about_the_border_is_found(
            is_last: bool, is_vertical: bool, place in 0.6..3.4_f64,
            bend in (0.5..2.0_f64, 0.5..2.0_f64), height in -5.0..5.0_f64,
        ) {
            let border = if is_last { 4.0 } else { 0.0 };
            let place = if is_vertical { [place, border] } else { [border, place] };
            let (elements, greatest) = sampled(|x, y| {
                height - bend.0 * (x - place[0]).powi(2) - bend.1 * (y - place[1]).powi(2)
            });
            prop_assume!((1..4).contains(&greatest[usize::from(!is_vertical)]));
            let found = peak(&example(FLOAT, 5, &elements, [0.0, 0.0, 5.0, 5.0]));
            assert_close(&found, &[height, place[0] + 0.5, place[1] + 0.5], 1e-4);
        }
    }
}
