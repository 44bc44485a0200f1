//! ROI_POOLING: regions of a feature map brought to one size. Each bin of a region is the greatest
//! of the cells that it touches.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]`, or NCHW | float32, float16, quantized |
//! | input 1 | regions | `[regions, 4]`: x1, y1, x2, y2 in the image | as the input; quant16 of scale 1/8 if quantized |
//! | input 2 | batch indexes | `[regions]` | int32 |
//! | inputs 3, 4 | output height, width | scalar | INT32, above 0 |
//! | inputs 5, 6 | height, width stride | scalar, above 0: the image's size by the feature map's | FLOAT32; FLOAT16 if the input is |
//! | input 7 | NCHW? | scalar | BOOL |
//! | output 0 | output | `[regions, output height, output width, depth]`, or NCHW | as the input; same scale, zero point |
//!
//! The first and the last cell of a region are those whose numbers are nearest to its edges, halves
//! going up; both belong to it. Bins of `n` cells in `m` bins begin at `floor(bin * n / m)` and end
//! at `ceil((bin + 1) * n / m)`. What is beyond the feature map does not count; a bin of nothing
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
use nnhal_hal::{HalVersion, OperandType, OperationType};
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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
        let dimensions = self.output_dimensions(call)?;
        let regions = self.grid.regions(call)?;
        let lengths = self.grid.layout.to_nhwc(input.lengths_of()?);
        let out_lengths = [0, 1, 2, 3].map(|axis| dimensions[axis] as usize);
        let out_lengths = self.grid.layout.to_nhwc(out_lengths);
        Ok(vec![if input.is_float() {
            let map = self.grid.layout.elements_to_nhwc(call, input.f32s()?, lengths)?;
            let room = output.allocate(&dimensions)?;
            let pooled = self.pool(call, &map, lengths, &regions, (0.0, real::maximum), room)?;
            let pooled = self.grid.layout.elements_from_nhwc(call, pooled, out_lengths)?;
            output.with_f32s(dimensions, &pooled)?
        } else {
            let map = self.grid.layout.elements_to_nhwc(call, input.integers()?, lengths)?;
            let room = output.allocate(&dimensions)?;
            let nothing = input.zero_point;
            let pooled = self.pool(call, &map, lengths, &regions, (nothing, i32::max), room)?;
            let pooled = self.grid.layout.elements_from_nhwc(call, pooled, out_lengths)?;
            output.with_integers(dimensions, &pooled)?
        }])
    }
}

impl RoiPooling {
    /// Appends the greatest elements of all bins to `pooled`, in NHWC order.
    fn pool<T: Copy>(
        &self,
        call: &Call<'_>,
        map: &[T],
        [_, height, width, depth]: [usize; 4],
        regions: &[Region],
        (nothing, greater): (T, impl Fn(T, T) -> T),
        mut pooled: Vec<T>,
    ) -> Result<Vec<T>, Fault> {
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
                        let mut greatest = None;
                        call.each(cells, |cell| {
                            let element = map[cell];
                            greatest = Some(greatest.map_or(element, |it| greater(it, element)));
                        })?;
                        call.work(1)?;
                        pooled.push(greatest.unwrap_or(nothing));
                    }
                }
            }
        }
        Ok(pooled)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperandType::TensorInt32;
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

    /// The numbers 1 to 12 in 3 rows under one region, as it is stored.
    fn twelve(
        [map, region, stride]: [OperandType; 3],
        edges: [f64; 4],
        bins: [i32; 2],
        strides: [f64; 2],
    ) -> Example {
        let numbers: Vec<f64> = (1..=12).map(f64::from).collect();
        Example::new(OperationType::RoiPooling)
            .input(tensor(map, [1, 3, 4, 1]), &numbers)
            .input(regions(region, 1), &edges)
            .input(OperandSpec::tensor_int32([1]), &[0.0])
            .int32s(bins)
            .input(OperandSpec::scalar(stride), &strides[..1])
            .input(OperandSpec::scalar(stride), &strides[1..])
            .bool(false)
            .output(tensor(map, [0; 4]))
    }

    fn pooled(edges: [f64; 4], bins: [i32; 2]) -> Vec<f64> {
        twelve(TYPES[0], edges, bins, [1.0; 2]).result().1
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        let v1_2 = HalVersion::V1_2;
        for (types, since) in TYPES.into_iter().zip([v1_2, v1_2, v1_2, HalVersion::V1_3]) {
            let accepted = twelve(types, [0.0; 4], [1, 1], [1.0; 2]);
            assert_eq!(accepted.since(), Ok(since), "{types:?}");
            assert!(accepted.run().is_ok(), "{types:?}");
        }
        for types in [
            [TensorFloat32, TensorQuant16Asymm, Float32],
            [TensorFloat16, TensorFloat16, Float32],
            [TensorQuant8Asymm, TensorFloat32, Float32],
            [TensorInt32, TensorFloat32, Float32],
        ] {
            assert!(twelve(types, [0.0; 4], [1, 1], [1.0; 2]).since().is_err(), "{types:?}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = twelve(TYPES[0], [0.0; 4], [1, 1], [1.0; 2]);
        let quantized = twelve(TYPES[2], [0.0; 4], [1, 1], [1.0; 2]);
        let with_edges =
            |edges: [f64; 4]| good.clone().with_input(1, tensor(TensorFloat32, [1, 4]), &edges);
        for (refused, message) in [
            (
                good.clone().with_input(0, tensor(TensorFloat32, [1]), &[0.0]),
                "rank of input 0 (input) is 1, expected 4",
            ),
            (
                quantized
                    .clone()
                    .with_output(OperandSpec::new(TensorQuant8Asymm, [0; 4]).quantized(0.25, 128)),
                "scale of output 0 (output) is 0.25, expected 0.5 as input 0 (input)",
            ),
            (
                quantized.with_input(
                    1,
                    OperandSpec::new(TensorQuant16Asymm, [1, 4]).quantized(0.5, 0),
                    &[0.0; 4],
                ),
                "scale of input 1 (regions) is 0.5, expected 0.125",
            ),
            (
                good.clone().with_input(2, OperandSpec::tensor_int32([1]), &[1.0]),
                "value of input 2 (batch indexes) is 1, expected 0 to 1, exclusive",
            ),
            (
                good.clone().with_int32(3, 0),
                "value of input 3 (output height) is 0, expected above 0",
            ),
            (
                good.clone().with_input(6, OperandSpec::scalar(Float32), &[-1.0]),
                "value of input 6 (width stride) is -1, expected above 0",
            ),
            (
                with_edges([0.0, 2.0, 0.0, 1.0]),
                "value of input 1 (regions) is [0.0, 2.0, 0.0, 1.0], expected boxes \
                 [x1, y1, x2, y2] with x1 <= x2 and y1 <= y2",
            ),
            (
                with_edges([0.0, 0.0, 4.5, 1.0]),
                "value of input 1 (regions) is [0.0, 0.0, 4.5, 1.0], expected a region of an \
                 image that 3 by 4 cells of 1 by 1 make",
            ),
        ] {
            assert_eq!(refused.refusal(), format!("ROI_POOLING: {message}"));
        }
    }

    #[test]
    fn shapes_with_unknown_and_zero_lengths() {
        let unknown = Example::new(OperationType::RoiPooling)
            .input_to_come(tensor(TensorFloat32, [1, 7, 0, 0]))
            .input_to_come(tensor(TensorFloat32, [0, 4]))
            .input_to_come(OperandSpec::tensor_int32([0]))
            .int32s([5, 6])
            .input(OperandSpec::scalar(Float32), &[1.0])
            .input(OperandSpec::scalar(Float32), &[1.0])
            .bool(true)
            .output(tensor(TensorFloat32, [0; 4]));
        let expected = Shape::new([None, Some(7), Some(5), Some(6)]);
        assert_eq!(unknown.shapes(), Ok(vec![expected]));
        let none = twelve(TYPES[0], [0.0; 4], [2, 3], [1.0; 2])
            .with_input(1, tensor(TensorFloat32, [0, 4]), &[])
            .with_input(2, OperandSpec::tensor_int32([0]), &[]);
        assert_eq!(none.result(), (vec![0, 2, 3, 1], vec![]));
    }

    #[test]
    fn values_by_hand() {
        // Three rows and the last three columns: bins of 3/2 cells overlap in the middle ones.
        assert_eq!(pooled([1.0, 0.0, 3.0, 2.0], [2, 2]), [7.0, 8.0, 11.0, 12.0]);
        assert_eq!(pooled([1.0, 0.0, 3.0, 2.0], [1, 1]), [12.0]);
        // One cell fills all bins.
        assert_eq!(pooled([1.0; 4], [2, 2]), [6.0; 4]);
        // Halves go up, to 1 and 2.
        assert_eq!(pooled([0.5, 0.49, 1.5, 0.49], [1, 2]), [2.0, 3.0]);
        // The edge of the map is the number of the cell beyond its last one.
        assert_eq!(pooled([3.0, 0.0, 4.0, 0.0], [1, 2]), [4.0, 0.0]);
        let strided = twelve(TYPES[0], [4.0, 0.0, 12.0, 4.0], [2, 2], [2.0, 4.0]);
        assert_eq!(strided.result().1, [7.0, 8.0, 11.0, 12.0]);
    }

    #[test]
    fn bins_have_exact_bounds() {
        // Seven cells in seven bins of one each, which the float 7/7 * bin has as well; 7 in 3 need
        // ceil(3 * 7 / 3) = 7 exactly.
        let elements: Vec<f64> = (0..8).map(f64::from).collect();
        for (bins, expected) in
            [(7, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (3, vec![2.0, 4.0, 6.0])]
        {
            let example = twelve(TYPES[0], [0.0, 0.0, 6.0, 0.0], [1, bins], [1.0; 2]).with_input(
                0,
                tensor(TensorFloat32, [1, 1, 8, 1]),
                &elements,
            );
            assert_eq!(example.result().1, expected);
        }
    }

    #[test]
    fn quantized_values_by_hand() {
        for types in [TYPES[2], TYPES[3]] {
            let example = twelve(types, [8.0, 0.0, 24.0, 16.0], [2, 2], [1.0; 2]);
            assert_eq!(example.result().1, [7.0, 8.0, 11.0, 12.0]);
        }
        // A bin of nothing is 0, that is the zero point.
        let beyond = twelve(TYPES[2], [32.0, 24.0, 32.0, 24.0], [1, 1], [1.0; 2]);
        assert_eq!(beyond.result().1, [128.0]);
    }

    #[test]
    fn layouts_and_batches() {
        let numbers: Vec<f64> = (1..=8).map(f64::from).collect();
        let example = |is_nchw: bool, lengths: [u32; 4], indexes: [f64; 2]| {
            Example::new(OperationType::RoiPooling)
                .input(tensor(TensorFloat32, lengths), &numbers)
                .input(tensor(TensorFloat32, [2, 4]), &[0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0])
                .input(OperandSpec::tensor_int32([2]), &indexes)
                .int32s([1, 1])
                .input(OperandSpec::scalar(Float32), &[1.0])
                .input(OperandSpec::scalar(Float32), &[1.0])
                .bool(is_nchw)
                .output(tensor(TensorFloat32, [0; 4]))
                .result()
        };
        assert_eq!(example(false, [2, 2, 2, 1], [1.0, 0.0]), (vec![2, 1, 1, 1], vec![8.0, 2.0]));
        let nchw = example(true, [1, 2, 2, 2], [0.0, 0.0]);
        assert_eq!(nchw, (vec![2, 2, 1, 1], vec![4.0, 8.0, 2.0, 6.0]));
    }

    proptest! {
        #[test]
        fn no_cell_of_a_region_is_lost(
            map in prop::collection::vec(-9.0..9.0_f64, 2..9),
            edges in (0.0..1.0_f64, 0.0..1.0_f64),
            bins in 1..9_i32,
        ) {
            let map: Vec<f64> = map.into_iter().map(f64::round).collect();
            let width = u32::try_from(map.len()).unwrap();
            let edge = |fraction: f64| (fraction * f64::from(width - 1)).round();
            let (start, end) = (edge(edges.0.min(edges.1)), edge(edges.0.max(edges.1)));
            let pooled = |bins| {
                twelve(TYPES[0], [start, 0.0, end, 0.0], [1, bins], [1.0; 2])
                    .with_input(0, tensor(TensorFloat32, [1, 1, width, 1]), &map)
                    .result()
                    .1
            };
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let cells = &map[start as usize..=end as usize];
            let greatest = cells.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(pooled(bins).into_iter().fold(f64::NEG_INFINITY, f64::max), greatest);
            prop_assert_eq!(pooled(1), [greatest]);
        }
    }
}
