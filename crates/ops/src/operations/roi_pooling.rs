//! ROI_POOLING: regions of a feature map brought to one size. Each bin of a region is the greatest
//! of the cells that it touches.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]`, or NCHW | float32, float16, quantised |
//! | input 1 | regions | `[regions, 4]`: x1, y1, x2, y2 in the image | as the input; quant16 of scale 1/8 if quantised |
//! | input 2 | batch indexes | `[regions]` | int32 |
//! | inputs 3, 4 | output height, width | scalar | INT32, above 0 |
//! | inputs 5, 6 | height, width stride | scalar, above 0: the image's size by the feature map's | FLOAT32; FLOAT16 if the input is |
//! | input 7 | NCHW? | scalar | BOOL |
//! | output 0 | output | `[regions, output height, output width, depth]`, or NCHW | as the input; same scale, zero point |
//!
//! The first and the last cell of a region are those whose numbers are nearest to its edges, halves
//! going up; both belong to it. Bins of `n` cells in `m` bins begin at `floor(bin * n / m)` and end
//! at `ceil((bin + 1) * n / m)`. What lies beyond the feature map does not count; a bin of nothing
//! else is 0. There may be no regions.
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
use std::ops::Range;

/// ROI_POOLING.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoiPooling {
    /// Bins, strides and layout.
    pub grid: RegionGrid,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::RoiPooling,
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
            Parameter::bool("NCHW"),
        ],
        &[Parameter::column("output", 0)],
    )],
};

impl Operation for RoiPooling {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        regions::validate(call)?;
        let output = call.output(0);
        if output.is_quantized() { output.expect_quantized_as(call.input(0)) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { grid: RegionGrid::decode(call, 7)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![self.grid.output_shape(call)?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| input.not_known("dimensions"))?;
        let regions = self.grid.regions(call)?;
        let lengths = self.grid.layout.to_nhwc(input.lengths_of()?);
        let out_lengths = [0, 1, 2, 3].map(|axis| dimensions[axis] as usize);
        let out_lengths = self.grid.layout.to_nhwc(out_lengths);
        Ok(vec![if input.is_float() {
            let map = self.grid.layout.elements_to_nhwc(input.f32s()?, lengths);
            let room = output.allocate(&dimensions)?;
            let pooled = self.pool(&map, lengths, &regions, 0.0, real::maximum, room);
            output.with_f32s(dimensions, &self.grid.layout.elements_from_nhwc(pooled, out_lengths))
        } else {
            let map = self.grid.layout.elements_to_nhwc(input.integers()?, lengths);
            let room = output.allocate(&dimensions)?;
            let pooled = self.pool(&map, lengths, &regions, input.zero_point, i32::max, room);
            let pooled = self.grid.layout.elements_from_nhwc(pooled, out_lengths);
            output.with_integers(dimensions, &pooled)
        }])
    }
}

impl RoiPooling {
    /// Appends the greatest elements of all bins to `pooled`, in NHWC order.
    fn pool<T: Copy>(
        &self,
        map: &[T],
        [_, height, width, depth]: [usize; 4],
        regions: &[Region],
        nothing: T,
        greater: impl Fn(T, T) -> T,
        mut pooled: Vec<T>,
    ) -> Vec<T> {
        for region in regions {
            let map = &map[region.batch * height * width * depth..];
            for y in 0..self.grid.bins[0] {
                let rows = self.cells(region, 0, y, height);
                for x in 0..self.grid.bins[1] {
                    let columns = self.cells(region, 1, x, width);
                    for channel in 0..depth {
                        let cells = rows.clone().flat_map(|row| {
                            let row = row * width;
                            columns.clone().map(move |column| (row + column) * depth + channel)
                        });
                        let greatest = cells.map(|cell| map[cell]).reduce(&greater);
                        pooled.push(greatest.unwrap_or(nothing));
                    }
                }
            }
        }
        pooled
    }

    /// The cells along one axis that a bin touches.
    // Positions were found to be within the map, so they are below 2^33; 31 bits more is room enough
    // for the products with bins.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn cells(&self, region: &Region, axis: usize, bin: u32, length: usize) -> Range<usize> {
        let first = region.start[axis].round() as u128;
        let last = region.end[axis].round() as u128;
        let count = last.saturating_sub(first) + 1;
        let (bin, bins) = (u128::from(bin), u128::from(self.grid.bins[axis]));
        let within = |cell: u128| usize::try_from(cell).map_or(length, |cell| cell.min(length));
        within(first + bin * count / bins)..within(first + ((bin + 1) * count).div_ceil(bins))
    }
}
