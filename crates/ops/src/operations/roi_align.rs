//! ROI_ALIGN: regions of a feature map brought to one size. Each bin of a region is the average of
//! points that are evenly in it, interpolated between the four cells around.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]`, or NCHW | float32, float16, quantized |
//! | input 1 | regions | `[regions, 4]`: x1, y1, x2, y2 in the image | as the input; quant16 of scale 1/8 if quantized |
//! | input 2 | batch indexes | `[regions]` | int32 |
//! | inputs 3, 4 | output height, width | scalar | INT32, above 0 |
//! | inputs 5, 6 | height, width stride | scalar, above 0: the image's size by the feature map's | FLOAT32; FLOAT16 if the input is |
//! | inputs 7, 8 | height, width samples | scalar, points of a bin; 0: the bin's size, rounded up | INT32 |
//! | input 9 | NCHW? | scalar | BOOL |
//! | output 0 | output | `[regions, output height, output width, depth]`, or NCHW | as the input, any scale |
//!
//! A region is at least one cell wide and high. Cell `(y, x)` has its value at the point `(y, x)`;
//! beyond the last cells their values go on. There may be no regions.
//!
//! The result is exact but for rounding to the output's type. Implementations in fixed-point
//! arithmetic may be one step away.
//!
//! Source: `types.hal` 1.2, 1.3 (signed).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::regions::{self, Region, RegionGrid};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    TensorQuant16Asymm,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// ROI_ALIGN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoiAlign {
    /// Bins, strides and layout.
    pub grid: RegionGrid,
    /// Points of a bin down and across; 0 stands for the bin's size in cells, rounded up.
    pub samples: [u32; 2],
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::RoiAlign,
    rows: &[
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat32, Float32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16, Float16]),
        Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, TensorQuant16Asymm, Float32]),
        Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, TensorQuant16Asymm, Float32]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("input", 0),
            Parameter::column("regions", 1),
            Parameter::tensor_int32("batch indexes"),
            Parameter::int32("output height"),
            Parameter::int32("output width"),
            Parameter::column("height stride", 2),
            Parameter::column("width stride", 2),
            Parameter::int32("height samples"),
            Parameter::int32("width samples"),
            Parameter::bool("NCHW"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for RoiAlign {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        regions::validate(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self {
            grid: RegionGrid::decode(call, 9)?,
            samples: [call.input(7).non_negative()?, call.input(8).non_negative()?],
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![self.grid.output_shape(call)?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let layout = self.grid.layout;
        let dimensions = self.output_dimensions(call)?;
        let mut averages: Vec<f32> = output.allocate(&dimensions)?;
        let lengths = layout.to_nhwc(input.lengths_of()?);
        let [_, height, width, depth] = lengths;
        let elements = layout.elements_to_nhwc(call, input.reals()?, lengths)?;
        let mut sums = call.collect(depth, std::iter::repeat(0.0))?;
        // What there can be of rows and columns.
        call.reserve::<f64>(2 * (height + width))?;
        for region in self.grid.regions(call)? {
            let map = &elements[region.batch * height * width * depth..];
            for y in 0..self.grid.bins[0] {
                let rows = self.weights(call, &region, 0, y, height)?;
                for x in 0..self.grid.bins[1] {
                    let columns = self.weights(call, &region, 1, x, width)?;
                    sums.fill(0.0);
                    for (row, row_weight) in rows.cells() {
                        for (column, column_weight) in columns.cells() {
                            let cell = &map[(row * width + column) * depth..][..depth];
                            call.each(sums.iter_mut().zip(cell), |(sum, value)| {
                                *sum += row_weight * column_weight * f64::from(*value);
                            })?;
                        }
                    }
                    call.each(&sums, |sum| averages.push(real::round(*sum)))?;
                }
            }
        }
        let out_lengths = layout.to_nhwc([0, 1, 2, 3].map(|axis| dimensions[axis] as usize));
        let averages = layout.elements_from_nhwc(call, averages, out_lengths)?;
        Ok(vec![real::store(output, dimensions, averages)?])
    }
}

/// How much the cells along one axis count in the average of a bin; all together 1.
struct Weights {
    first: usize,
    weights: Vec<f64>,
}

impl Weights {
    fn cells(&self) -> impl Iterator<Item = (usize, f64)> {
        self.weights.iter().enumerate().map(|(index, weight)| (self.first + index, *weight))
    }
}

impl RoiAlign {
    /// Interpolation is linear along each axis, so the average over a bin's grid of points is one
    /// of rows by one of columns, and points that are between the same two cells count as much as
    /// the same number in their middle. That makes the work independent of the number of points.
    // Lengths and counts are below 2^32, and cells within the map: the conversions are exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn weights(
        &self,
        call: &Call<'_>,
        region: &Region,
        axis: usize,
        bin: u32,
        length: usize,
    ) -> Result<Weights, Fault> {
        let size = region.extent[axis].max(1.0) / f64::from(self.grid.bins[axis]);
        let samples = match self.samples[axis] {
            0 => size.ceil(),
            samples => f64::from(samples),
        };
        let start = region.start[axis] + f64::from(bin) * size;
        let distance = size / samples;
        // Point `i` is at `start + (i + 1/2) * distance`.
        let points_before = |at: f64| ((at - start) / distance - 0.5).ceil().clamp(0.0, samples);
        let last = length - 1;
        let first = (start as usize).min(last);
        let mut weights = Vec::new();
        for cell in first..last {
            call.work(4)?;
            let (from, to) = (points_before(cell as f64), points_before((cell + 1) as f64));
            let fraction = match start + f64::midpoint(from, to) * distance - cell as f64 {
                _ if from == to => 0.0,
                middle => middle.clamp(0.0, 1.0),
            };
            weights.resize(cell - first + 2, 0.0);
            weights[cell - first] += (to - from) / samples * (1.0 - fraction);
            weights[cell - first + 1] += (to - from) / samples * fraction;
            if to == samples {
                return Ok(Weights { first, weights });
            }
        }
        weights.resize(last - first + 1, 0.0);
        weights[last - first] += (samples - points_before(last as f64)) / samples;
        Ok(Weights { first, weights })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::{Bool, Int32, TensorInt32};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// The types of map, regions and strides.
    const TYPES: [[OperandType; 3]; 4] = [
        [TensorFloat32, TensorFloat32, Float32],
        [TensorFloat16, TensorFloat16, Float16],
        [TensorQuant8Asymm, TensorQuant16Asymm, Float32],
        [TensorQuant8AsymmSigned, TensorQuant16Asymm, Float32],
    ];

    fn regions(operand_type: OperandType, count: u32) -> OperandSpec {
        match operand_type {
            TensorQuant16Asymm => OperandSpec::new(operand_type, [count, 4]).quantized(0.125, 0),
            _ => tensor(operand_type, [count, 4]),
        }
    }

    /// The map under one region, both as they are stored.
    fn example(
        [map, region, stride]: [OperandType; 3],
        (lengths, elements): ([u32; 4], &[f64]),
        edges: [f64; 4],
        bins: [i32; 2],
        strides: [f64; 2],
        samples: [i32; 2],
    ) -> Example {
        Example::new(OperationType::RoiAlign)
            .input(tensor(map, lengths), elements)
            .input(regions(region, 1), &edges)
            .input(OperandSpec::tensor_int32([1]), &[0.0])
            .int32s(bins)
            .input(OperandSpec::scalar(stride), &strides[..1])
            .input(OperandSpec::scalar(stride), &strides[1..])
            .int32s(samples)
            .bool(false)
            .output(tensor(map, [0; 4]))
    }

    /// 1 2
    /// 3 4
    const SQUARE: ([u32; 4], &[f64]) = ([1, 2, 2, 1], &[1.0, 2.0, 3.0, 4.0]);

    fn square(edges: [f64; 4], bins: [i32; 2], samples: [i32; 2]) -> Example {
        example(TYPES[0], SQUARE, edges, bins, [1.0; 2], samples)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        for (types, since) in TYPES.into_iter().zip([
            HalVersion::V1_2,
            HalVersion::V1_2,
            HalVersion::V1_2,
            HalVersion::V1_3,
        ]) {
            let accepted = example(types, SQUARE, [0.0; 4], [1, 1], [1.0; 2], [0, 0]);
            assert_eq!(accepted.since(), Ok(since), "{types:?}");
            assert!(accepted.run().is_ok(), "{types:?}");
        }
        for types in [
            [TensorFloat32, TensorQuant16Asymm, Float32],
            [TensorFloat16, TensorFloat16, Float32],
            [TensorQuant8Asymm, TensorFloat32, Float32],
            [TensorInt32, TensorFloat32, Float32],
        ] {
            let refused = example(types, SQUARE, [0.0; 4], [1, 1], [1.0; 2], [0, 0]);
            assert!(refused.since().is_err(), "{types:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = square([0.0, 0.0, 2.0, 2.0], [1, 1], [0, 0]);
        assert!(good.run().is_ok());
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let edges = |edges: [f64; 4]| good.clone().with_input(1, float(&[1, 4]), &edges);
        let stride =
            |stride: f64| good.clone().with_input(5, OperandSpec::scalar(Float32), &[stride]);
        for (refused, message) in [
            (
                good.clone().with_input(0, float(&[1, 2, 2]), &[0.0; 4]),
                "rank of input 0 (input) is 3, expected 4",
            ),
            (
                good.clone().with_input(1, float(&[4]), &[0.0; 4]),
                "rank of input 1 (regions) is 1, expected 2",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([1, 1]), &[0.0]),
                "rank of input 2 (batch indexes) is 2, expected 1",
            ),
            (
                good.clone().with_input(0, float(&[1, 0, 2, 1]), &[]),
                "shape of input 0 (input) is [1, 0, 2, 1], expected no length of 0 but the batch's",
            ),
            (
                good.clone().with_input(1, float(&[1, 5]), &[0.0; 5]),
                "shape of input 1 (regions) is [1, 5], expected length 4 along axis 1",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([2]), &[0.0; 2]),
                "shape of input 2 (batch indexes) is [2], expected length 1 along axis 0",
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
                good.clone().with_int32(3, 0),
                "value of input 3 (output height) is 0, expected above 0",
            ),
            (
                good.clone().with_int32(4, -1),
                "value of input 4 (output width) is -1, expected 0 or more",
            ),
            (stride(0.0), "value of input 5 (height stride) is 0, expected above 0"),
            (stride(f64::NAN), "value of input 5 (height stride) is NaN, expected above 0"),
            (
                good.clone().with_int32(8, -1),
                "value of input 8 (width samples) is -1, expected 0 or more",
            ),
            (
                edges([1.0, 0.0, 0.0, 2.0]),
                "value of input 1 (regions) is [1.0, 0.0, 0.0, 2.0], expected boxes \
                 [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2",
            ),
            (
                edges([0.0, 0.0, 2.0, 2.1]),
                "value of input 1 (regions) is [0.0, 0.0, 2.0, 2.1], expected a region of an \
                 image that 2 by 2 cells of 1 by 1 make",
            ),
            (
                edges([-0.5, 0.0, 2.0, 2.0]),
                "value of input 1 (regions) is [-0.5, 0.0, 2.0, 2.0], expected a region of an \
                 image that 2 by 2 cells of 1 by 1 make",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("ROI_ALIGN: {message}"));
        }
        let spec = OperandSpec::new(TensorQuant16Asymm, [1, 4]);
        let quantized = example(TYPES[2], SQUARE, [0.0; 4], [1, 1], [1.0; 2], [0, 0]);
        assert_eq!(
            quantized.clone().with_input(1, spec.clone().quantized(0.25, 0), &[0.0; 4]).refusal(),
            "ROI_ALIGN: scale of input 1 (regions) is 0.25, expected 0.125"
        );
        assert_eq!(
            quantized.with_input(1, spec.quantized(0.125, 1), &[0.0; 4]).refusal(),
            "ROI_ALIGN: zero point of input 1 (regions) is 1, expected 0"
        );
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let shapes = |is_nchw: bool, map: &[u32], regions: &[u32], indexes: &[u32]| {
            Example::new(OperationType::RoiAlign)
                .input_to_come(tensor(TensorFloat32, map))
                .input_to_come(tensor(TensorFloat32, regions))
                .input_to_come(OperandSpec::tensor_int32(indexes))
                .int32s([5, 6])
                .input(OperandSpec::scalar(Float32), &[1.0])
                .input(OperandSpec::scalar(Float32), &[1.0])
                .int32s([0, 0])
                .bool(is_nchw)
                .output(tensor(TensorFloat32, [0; 4]))
                .shapes()
                .map(|mut shapes| shapes.swap_remove(0))
        };
        let nhwc = |count, depth| Ok(Shape::new([count, Some(5), Some(6), depth]));
        assert_eq!(shapes(false, &[1, 2, 3, 7], &[9, 4], &[9]), nhwc(Some(9), Some(7)));
        assert_eq!(shapes(false, &[0, 0, 0, 7], &[0, 4], &[9]), nhwc(Some(9), Some(7)));
        assert_eq!(shapes(false, &[], &[], &[]), nhwc(None, None));
        let nchw = Shape::new([Some(9), Some(7), Some(5), Some(6)]);
        assert_eq!(shapes(true, &[1, 7, 2, 3], &[9, 4], &[0]), Ok(nchw));
        let none = square([0.0; 4], [2, 3], [0, 0])
            .with_input(1, tensor(TensorFloat32, [0, 4]), &[])
            .with_input(2, OperandSpec::tensor_int32([0]), &[]);
        assert_eq!(none.result(), (vec![0, 2, 3, 1], vec![]));
    }

    #[test]
    fn values_by_hand() {
        let whole = |bins, samples| square([0.0, 0.0, 2.0, 2.0], bins, samples).result().1;
        // The middle is at the last cell.
        assert_close(&whole([1, 1], [1, 1]), &[4.0], 1e-6);
        // Along each axis the points 1/2 and 3/2: cells count 1/4 and 3/4.
        assert_close(&whole([1, 1], [2, 2]), &[3.25], 1e-6);
        assert_close(&whole([1, 1], [0, 0]), &[3.25], 1e-6);
        // 1/4 and 3/4 of the rows 1 2 and 3 4, of which the last column counts.
        assert_close(&whole([1, 1], [2, 1]), &[3.5], 1e-6);
        assert_close(&whole([2, 2], [1, 1]), &[2.5, 3.0, 3.5, 4.0], 1e-6);
        // Without extent still one cell: from 1/2 on, the middle is at 1.
        assert_close(&square([0.5; 4], [1, 1], [1, 1]).result().1, &[4.0], 1e-6);
        assert_close(&square([0.0; 4], [1, 1], [1, 1]).result().1, &[2.5], 1e-6);
    }

    #[test]
    fn strides_layouts_and_batches() {
        let twice = example(TYPES[0], SQUARE, [0.0, 0.0, 8.0, 4.0], [2, 2], [2.0, 4.0], [1, 1]);
        assert_close(&twice.result().1, &[2.5, 3.0, 3.5, 4.0], 1e-6);
        let two_images = [1.0, 2.0, 3.0, 4.0, 10.0, 20.0, 30.0, 40.0];
        let one_channel = Example::new(OperationType::RoiAlign)
            .input(tensor(TensorFloat32, [2, 2, 2, 1]), &two_images)
            .input(tensor(TensorFloat32, [2, 4]), &[0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 1.0, 1.0])
            .input(OperandSpec::tensor_int32([2]), &[1.0, 0.0])
            .int32s([1, 1])
            .input(OperandSpec::scalar(Float32), &[1.0])
            .input(OperandSpec::scalar(Float32), &[1.0])
            .int32s([1, 1])
            .bool(false)
            .output(tensor(TensorFloat32, [0; 4]));
        assert_eq!(one_channel.result(), (vec![2, 1, 1, 1], vec![40.0, 2.5]));
        // Two channels of one image, that is the same numbers in the same order.
        let two_channels = one_channel
            .with_input(0, tensor(TensorFloat32, [1, 2, 2, 2]), &two_images)
            .with_input(2, OperandSpec::tensor_int32([2]), &[0.0, 0.0])
            .with_input(9, OperandSpec::scalar(Bool), &[1.0]);
        assert_eq!(two_channels.result(), (vec![2, 2, 1, 1], vec![4.0, 40.0, 2.5, 25.0]));
    }

    #[test]
    fn quantized_values_by_hand() {
        // Steps of 1/2 from the zero point; the region in eighths. The output steps by 1/4 from 10.
        for (types, zero_point) in [(TYPES[2], 128.0), (TYPES[3], 0.0)] {
            let elements = [2.0, 4.0, 6.0, 8.0].map(|steps| steps + zero_point);
            let map = (SQUARE.0, &elements[..]);
            let example = example(types, map, [0.0, 0.0, 16.0, 16.0], [2, 2], [1.0; 2], [1, 1])
                .with_output(OperandSpec::new(types[0], [0; 4]).quantized(0.25, 10));
            assert_eq!(example.result().1, [20.0, 22.0, 24.0, 26.0]);
        }
    }

    #[test]
    fn half_precision_is_rounded_once() {
        // The average of 2048 and 2050 and twice 2 is 1025.5, which float16 does not hold.
        let map: ([u32; 4], &[f64]) = ([1, 2, 2, 1], &[2048.0, 2050.0, 2.0, 2.0]);
        let example = example(TYPES[1], map, [0.0, 0.0, 1.0, 1.0], [1, 1], [1.0; 2], [1, 1]);
        assert_eq!(example.result().1, [1026.0]);
    }

    #[test]
    fn a_region_that_ends_with_the_image_is_not_refused_for_the_stride_s_rounding() {
        for length in 1..200_u32 {
            let elements = vec![1.0; length as usize];
            let map = ([1, length, 1, 1], &elements[..]);
            for (types, image) in [(TYPES[0], 1000.0), (TYPES[1], 1000.0)] {
                let stride = image / f64::from(length);
                let edges = [0.0, 0.0, 1.0, image];
                let example = example(types, map, edges, [1, 1], [stride, 1.0], [1, 1]);
                assert_eq!(example.result().1, [1.0], "{length}");
            }
        }
    }

    #[test]
    fn most_points_take_no_more_time_than_few() {
        let most = square([0.0, 0.0, 2.0, 2.0], [1, 1], [i32::MAX, i32::MAX]);
        // Columns and rows: the integral of the line up to 1, and then the last cell: 1/4 and 3/4.
        assert_close(&most.result().1, &[3.25], 1e-6);
        let far = example(TYPES[0], SQUARE, [0.0; 4], [1, 1], [f64::from(f32::MAX); 2], [0, 0]);
        assert_close(&far.result().1, &[2.5], 1e-6);
        assert!(example(TYPES[0], SQUARE, [0.0; 4], [1, 1], [1e-40; 2], [0, 0]).run().is_ok());
    }

    /// The definition, point by point.
    fn by_points(
        map: &[f64],
        width: usize,
        [start, end]: [f64; 2],
        bins: u32,
        samples: u32,
    ) -> Vec<f64> {
        let size = (end - start).max(1.0) / f64::from(bins);
        let samples = if samples == 0 { size.ceil() } else { f64::from(samples) };
        let value = |at: f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let cell = at.floor() as usize;
            match cell {
                cell if cell >= width - 1 => map[width - 1],
                cell => map[cell] * (1.0 - at.fract()) + map[cell + 1] * at.fract(),
            }
        };
        let bin = |bin: u32| {
            let mut sum = 0.0;
            let mut sample = 0.0;
            while sample < samples {
                sum += value(start + f64::from(bin) * size + (sample + 0.5) * size / samples);
                sample += 1.0;
            }
            sum / samples
        };
        (0..bins).map(bin).collect()
    }

    proptest! {
        #[test]
        fn the_average_is_that_of_the_points(
            map in prop::collection::vec(-4.0..4.0_f64, 1..9),
            edges in (0.0..1.0_f64, 0.0..1.0_f64),
            bins in 1..6_u32,
            samples in 0..9_u32,
            is_upright: bool,
        ) {
            let width = u32::try_from(map.len()).unwrap();
            let edge = |fraction: f64| f64::from(real::round(fraction * f64::from(width)));
            let (start, end) = (edge(edges.0.min(edges.1)), edge(edges.0.max(edges.1)));
            let elements: Vec<f64> = map.iter().map(|it| f64::from(real::round(*it))).collect();
            let expected = by_points(&elements, map.len(), [start, end], bins, samples);
            let (bins, samples) = (bins.cast_signed(), samples.cast_signed());
            let found = if is_upright {
                let edges = [0.0, start, 0.0, end];
                let map = ([1, width, 1, 1], &elements[..]);
                example(TYPES[0], map, edges, [bins, 1], [1.0; 2], [samples, 1])
            } else {
                let edges = [start, 0.0, end, 0.0];
                let map = ([1, 1, width, 1], &elements[..]);
                example(TYPES[0], map, edges, [1, bins], [1.0; 2], [1, samples])
            };
            assert_close(&found.result().1, &expected, 1e-5);
        }
    }

    #[test]
    fn scalars_are_of_the_types_that_the_definition_names() {
        let good = square([0.0; 4], [1, 1], [0, 0]);
        let wrong = good.with_input(9, OperandSpec::scalar(Int32), &[0.0]);
        assert!(wrong.since().is_err());
    }
}
