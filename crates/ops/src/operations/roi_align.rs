//! ROI_ALIGN: regions of a feature map brought to one size. Each bin of a region is the average of
//! points that lie evenly in it, interpolated between the four cells around.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]`, or NCHW | float32, float16, quantised |
//! | input 1 | regions | `[regions, 4]`: x1, y1, x2, y2 in the image | as the input; quant16 of scale 1/8 if quantised |
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
use hal::{HalVersion, OperandType, OperationType};

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
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

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
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| input.not_known("dimensions"))?;
        let mut averages: Vec<f32> = output.allocate(&dimensions)?;
        let lengths = layout.to_nhwc(input.lengths_of()?);
        let [_, height, width, depth] = lengths;
        let elements = layout.elements_to_nhwc(input.reals()?, lengths);
        for region in self.grid.regions(call)? {
            let map = &elements[region.batch * height * width * depth..];
            for y in 0..self.grid.bins[0] {
                let rows = self.weights(&region, 0, y, height);
                for x in 0..self.grid.bins[1] {
                    let columns = self.weights(&region, 1, x, width);
                    let mut sums = vec![0.0; depth];
                    for (row, row_weight) in rows.cells() {
                        for (column, column_weight) in columns.cells() {
                            let cell = &map[(row * width + column) * depth..][..depth];
                            for (sum, value) in sums.iter_mut().zip(cell) {
                                *sum += row_weight * column_weight * f64::from(*value);
                            }
                        }
                    }
                    averages.extend(sums.into_iter().map(real::round));
                }
            }
        }
        let out_lengths = layout.to_nhwc([0, 1, 2, 3].map(|axis| dimensions[axis] as usize));
        let averages = layout.elements_from_nhwc(averages, out_lengths);
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
    /// of rows by one of columns, and points that lie between the same two cells count as much as
    /// so many in their middle. That makes the work independent of the number of points.
    // Lengths and counts are below 2^32, and cells within the map: the conversions are exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn weights(&self, region: &Region, axis: usize, bin: u32, length: usize) -> Weights {
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
            let (from, to) = (points_before(cell as f64), points_before((cell + 1) as f64));
            let fraction = match start + f64::midpoint(from, to) * distance - cell as f64 {
                _ if from == to => 0.0,
                middle => middle.clamp(0.0, 1.0),
            };
            weights.resize(cell - first + 2, 0.0);
            weights[cell - first] += (to - from) / samples * (1.0 - fraction);
            weights[cell - first + 1] += (to - from) / samples * fraction;
            if to == samples {
                return Weights { first, weights };
            }
        }
        weights.resize(last - first + 1, 0.0);
        weights[last - first] += (samples - points_before(last as f64)) / samples;
        Weights { first, weights }
    }
}
