//! Winograd's convolution F(4x4, 3x3): a tile of 4 by 4 output pixels is computed from 36 products of
//! each pair of channels instead of 144.
//!
//! The input is cut into tiles of 6 by 6 pixels that overlap by two, which are transformed; for each
//! of the 36 points there is a matrix product over the channels, of all tiles with the transformed
//! filter; its results are transformed back. The error is about twice that of the plain sum, and
//! below 3e-7 of the greatest sum of magnitudes among the pixels of a tile (S. Winograd 1980; A. Lavin,
//! S. Gray 2015, "Fast algorithms for convolutional neural networks"). The points are those with the least
//! mean square error among twelve pairs that were tried.
#![allow(unsafe_code)]

mod transform;

use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::gemm::float::{Blocking, Epilogue, Panels, Tile, ahead, run_tile};
use crate::image::values_needed;
use crate::packing::product;
use crate::team::part;
use crate::vector::Isa;
use crate::{Image, ImageMut, InstructionSet, Line, Lines, Preparation, Team, TooLarge};
use std::ops::Range;
use transform::{Backward, Forward, INPUT, OUTPUT, POINTS};

/// A convolution of a 3x3 filter, packed.
#[derive(Debug)]
pub(super) struct Winograd {
    shape: Shape,
    isa: Isa,
    panels: Panels,
    bias: Vec<f32>,
    epilogue: Epilogue,
    /// Tiles in a column and in a row.
    grid: [usize; 2],
    /// Tiles of all images.
    tiles: usize,
    /// Tiles that are computed together, so that what is between the transforms stays in caches.
    block: usize,
    zeros: Vec<f32>,
    threads: usize,
}

/// Fewer channels, and the transforms take longer than what they save.
const LEAST_CHANNELS: usize = 32;
/// Fewer tiles, and reading the filter, which has grown fourfold, takes longer than multiplying.
const LEAST_TILES: usize = 12;
/// What is between the transforms may take so much room.
const BETWEEN_BYTES: usize = 1536 << 10;
/// A larger filter would not stay in any cache.
const MOST_FILTER_BYTES: usize = 16 << 20;

/// The filter, `[points, outputs, inputs]`.
fn transform(weights: &[f32], shape: &Shape) -> Result<Lines, TooLarge> {
    let (inputs, outputs) = (shape.input_channels, shape.output_channels);
    // `Winograd::suits` has limited them.
    let mut lines = Lines::try_with_bytes(POINTS * inputs * outputs * size_of::<f32>())?;
    let transformed = lines.elements_mut::<f32>();
    for output in 0..outputs {
        for input in 0..inputs {
            let tap = |i, j| weights[((output * 3 + i) * 3 + j) * inputs + input];
            let taps = std::array::from_fn(|i| std::array::from_fn(|j| tap(i, j)));
            for (point, value) in transform::filter(taps).into_iter().enumerate() {
                transformed[(point * outputs + output) * inputs + input] = value;
            }
        }
    }
    Ok(lines)
}

impl Winograd {
    /// Whether it is likely to be faster than the plain product.
    pub(super) fn suits(shape: &Shape, set: InstructionSet) -> bool {
        let lanes = Blocking::of(set).lanes;
        let channels = [shape.input_channels, shape.output_channels];
        let [height, width] = shape.output.map(|size| size.div_ceil(OUTPUT));
        let tiles = shape.batch.saturating_mul(height).saturating_mul(width);
        set != InstructionSet::Portable
            && shape.filter == [3, 3]
            && shape.stride == [1, 1]
            && shape.dilation == [1, 1]
            && shape.groups == 1
            && channels.iter().all(|&c| c >= LEAST_CHANNELS && c.is_multiple_of(lanes))
            && tiles >= LEAST_TILES
            && product(&[POINTS, channels[0], channels[1], size_of::<f32>()])
                .is_some_and(|bytes| bytes <= MOST_FILTER_BYTES)
            // Half of the multiplications at most, those of pixels beyond the output counted.
            && tiles.saturating_mul(POINTS * 2) <= shape.output_pixels().saturating_mul(shape.taps())
    }

    /// # Panics
    /// If it does not [suit](Self::suits).
    pub(super) fn new(
        shape: &Shape,
        weights: &[f32],
        bias: &[f32],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let set = preparation.set();
        assert!(Self::suits(shape, set), "not a shape for Winograd's convolution: {shape:?}");
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let transformed =
            if preparation.is_restoring() { Lines::default() } else { transform(weights, shape)? };
        let panels = Panels::pack_columns(
            preparation,
            Blocking::of(set),
            inputs,
            [POINTS, outputs],
            |_| 0.0,
            transformed.elements(),
        )?;
        let grid = shape.output.map(|size| size.div_ceil(OUTPUT));
        let tiles = shape.batch * grid[0] * grid[1];
        let by_tile = POINTS * (inputs + outputs) * size_of::<f32>();
        let blocks = tiles.div_ceil((BETWEEN_BYTES / by_tile).max(LEAST_TILES)).max(1);
        let prepared = Self {
            shape: *shape,
            isa: Isa::of(set),
            panels,
            bias: preparation.copied(bias, "a bias")?,
            epilogue,
            grid,
            tiles,
            block: tiles.div_ceil(blocks),
            zeros: preparation.filled(0.0, inputs, "a pixel of zeros")?,
            threads: preparation.threads(),
        };
        preparation.check_scratch::<u8>(&[prepared.scratch_bytes(shape)])?;
        Ok(prepared)
    }

    /// From one point's tiles to the next one's, in values. A line more than they take, so that not
    /// all points of a tile fall into the same set of a cache.
    fn point_stride(&self, channels: usize) -> usize {
        (self.block * channels).next_multiple_of(16) + 16
    }

    pub(super) fn scratch_bytes(&self, shape: &Shape) -> usize {
        let strides =
            self.point_stride(shape.input_channels) + self.point_stride(shape.output_channels);
        POINTS * strides * size_of::<f32>()
    }

    /// # Panics
    /// If the input, the residual operand, the output or the scratch memory is too small, or the shape
    /// is another.
    pub(super) fn run(
        &self,
        shape: &Shape,
        team: &mut Team,
        input: Image<'_, f32>,
        residual: Option<Image<'_, f32>>,
        output: ImageMut<'_, f32>,
        scratch: &mut [Line],
    ) {
        assert_eq!(*shape, self.shape, "another shape");
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let needed = values_needed(shape.input_pixels(), inputs, input.pixel_stride);
        assert!(input.values.len() >= needed, "the input is too small");
        let needed = values_needed(shape.output_pixels(), outputs, output.pixel_stride);
        assert!(output.values.len() >= needed, "the output is too small");
        if let Some(residual) = residual {
            let needed = values_needed(shape.output_pixels(), outputs, residual.pixel_stride);
            assert!(residual.values.len() >= needed, "the residual operand is too small");
        }
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        assert!(size_of_val(scratch) >= self.scratch_bytes(shape), "too little scratch memory");
        let (before, after) = scratch.split_at_mut(POINTS * self.point_stride(inputs));
        let output_stride = output.pixel_stride;
        let output = DisjointOutput::new(output.values);
        let mut start = 0;
        while start < self.tiles {
            let tiles = start..self.tiles.min(start + self.block);
            let parts = (4 * self.threads).min(tiles.len());
            let to = DisjointOutput::new(before);
            team.run(parts, &|task| {
                for index in part(tiles.len(), parts, task) {
                    self.forward(shape, input, tiles.start + index, index, &to);
                }
            });
            let to = DisjointOutput::new(after);
            let panels = self.panels.count();
            let tasks = POINTS.min(panels);
            team.run(tasks, &|task| {
                for panel in part(panels, tasks, task) {
                    self.multiply(shape, panel, tiles.len(), before, &to);
                }
            });
            team.run(parts, &|task| {
                for index in part(tiles.len(), parts, task) {
                    let tile = tiles.start + index;
                    self.backward(shape, tile, index, after, residual, &output, output_stride);
                }
            });
            start = tiles.end;
        }
    }

    /// The image and the first output row and column of a tile.
    fn place(&self, tile: usize) -> [usize; 3] {
        let [height, width] = self.grid;
        let (line, x) = (tile / width, tile % width);
        [line / height, line % height * OUTPUT, x * OUTPUT]
    }

    /// Transforms an input tile into the place `index` of each point.
    fn forward(
        &self,
        shape: &Shape,
        input: Image<'_, f32>,
        tile: usize,
        index: usize,
        to: &DisjointOutput<'_, f32>,
    ) {
        let [n, y, x] = self.place(tile);
        let [height, width] = shape.input;
        let channels = shape.input_channels;
        // Of the output pixel this number of rows and columns on, the first tap.
        let ys: [_; INPUT] = std::array::from_fn(|row| {
            shape.input_position(0, y + row, 0).map(|y| (n * height + y) * width)
        });
        let xs: [_; INPUT] = std::array::from_fn(|column| shape.input_position(1, x + column, 0));
        let pixels = std::array::from_fn(|point| match ys[point / INPUT].zip(xs[point % INPUT]) {
            Some((line, x)) => {
                let start = (line + x) * input.pixel_stride;
                input.values[start..start + channels].as_ptr()
            }
            None => self.zeros.as_ptr(),
        });
        let stride = self.point_stride(channels);
        assert!((POINTS - 1) * stride + (index + 1) * channels <= to.len());
        let to = to.pointer(index * channels);
        // SAFETY: each pixel was taken as a slice of its channels, and there is a zero for each channel;
        // the last point's place was checked to be within the scratch memory; only this tile uses these
        // places; and `new` has checked that channels fill the vectors.
        unsafe { Forward { pixels: &pixels, channels, to, stride }.run(self.isa) };
    }

    /// The products of all tiles of a block with one panel.
    fn multiply(
        &self,
        shape: &Shape,
        panel: usize,
        tiles: usize,
        from: &[f32],
        to: &DisjointOutput<'_, f32>,
    ) {
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let panel = self.panels.panel(panel);
        let most_rows = self.panels.blocking().rows;
        let values = self.panels.values(&panel);
        let from = &from[panel.group * self.point_stride(inputs)..][..tiles * inputs];
        let first = panel.columns.start - panel.group * outputs;
        let to_start = panel.group * self.point_stride(outputs) + first;
        let runs = tiles.div_ceil(most_rows);
        for run in 0..runs {
            let rows: Range<usize> = part(tiles, runs, run);
            let mut segments = [std::ptr::null(); Blocking::MOST_ROWS];
            let segments = &mut segments[..rows.len()];
            for (row, segment) in rows.clone().zip(segments.iter_mut()) {
                *segment = from[row * inputs..][..inputs].as_ptr();
            }
            let start = to_start + rows.start * outputs;
            assert!(start + (rows.len() - 1) * outputs + panel.columns.len() <= to.len());
            let tile = Tile {
                segments,
                offset: 0,
                segment_depth: inputs,
                panel: values.as_ptr(),
                panels: 1,
                ahead: ahead(run, runs, values.len(), self.panels.width(&panel)),
                output: to.pointer(start),
                output_stride: outputs,
                residual: None,
                residual_stride: 0,
                columns: panel.columns.len(),
                epilogue: &Epilogue::NONE,
            };
            // SAFETY: the segments were taken as slices of `inputs` values, which is the depth of the
            // panels, which `new` made for this shape and the vectors of `isa`; the output was seen to be within the
            // scratch memory, and is this panel's and these rows' alone.
            unsafe { run_tile(self.isa, rows.len(), panel.vectors, &tile) };
        }
    }

    /// Transforms the products of a tile back into the output.
    #[allow(clippy::too_many_arguments)] // The operands of a convolution, and which tile.
    fn backward(
        &self,
        shape: &Shape,
        tile: usize,
        index: usize,
        from: &[f32],
        residual: Option<Image<'_, f32>>,
        output: &DisjointOutput<'_, f32>,
        output_stride: usize,
    ) {
        let [n, y, x] = self.place(tile);
        let [height, width] = shape.output;
        let channels = shape.output_channels;
        let stride = self.point_stride(channels);
        let pixel = (n * height + y) * width + x;
        let from = &from[index * channels..];
        assert!(from.len() >= (POINTS - 1) * stride + channels && self.bias.len() == channels);
        let backward = Backward {
            from: from.as_ptr(),
            stride,
            channels,
            bias: &self.bias,
            epilogue: &self.epilogue,
            rows: height - y,
            columns: width - x,
            output: output.pointer(pixel * output_stride),
            output_strides: [output_stride, width * output_stride],
            residual: residual
                .map(|residual| residual.values[pixel * residual.pixel_stride..].as_ptr()),
            residual_strides: residual
                .map_or([0; 2], |residual| [residual.pixel_stride, width * residual.pixel_stride]),
        };
        // SAFETY: the last point was checked above; `run` has checked that output and residual have all
        // pixels, and rows and columns end with the image; tiles do not overlap; and `new` has checked
        // that channels fill the vectors.
        unsafe { backward.run(self.isa) };
    }
}
