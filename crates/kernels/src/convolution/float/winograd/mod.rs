//! Winograd's convolutions F(4x4, 3x3) and F(2x2, 3x3): a tile of 4 by 4 output pixels is computed from 36 products of
//! each pair of channels instead of 144, one of 2 by 2 from 16 instead of 36.
//!
//! The input is cut into tiles of 6 by 6, or 4 by 4, pixels that overlap by two, which are transformed; for each
//! of their points there is a matrix product over the channels, of all tiles with the transformed
//! filter; its results are transformed back. The error of the larger is about twice that of the plain sum, and
//! below 5e-7 (4.4e-7 was found) of the greatest sum of magnitudes among the pixels of a tile (S. Winograd 1980; A. Lavin,
//! S. Gray 2015, "Fast algorithms for convolutional neural networks"). Its points are those with the least
//! mean square error among twelve pairs that were tried.
#![allow(unsafe_code)]

mod filter;
mod tile_size;
mod transform;

use super::{Layer, Pass};
use crate::convolution::Shape;
use crate::convolution::tiles::Tiles;
use crate::disjoint::DisjointOutput;
use crate::gemm::float::matrix::Matrix;
use crate::gemm::float::pack::turned_until;
use crate::gemm::float::{
    Below, Blocking, Epilogue, Panels, Target, Tile, TileRows, ahead, run_tile,
};
use crate::preparation::product;
use crate::sharing::for_each_task;
use crate::team::part;
use crate::vector::Isa;
use crate::{Images, InstructionSet, Line, Lines, Preparation, Team, TooLarge};
use filter::Filter;
use std::marker::PhantomData;
use std::ops::Range;
pub(super) use tile_size::TileSize;
use tile_size::with_transforms;
use transform::{Backward, Forward, Four, Promised, Transforms, Two};

/// A convolution of a 3x3 filter, packed.
#[derive(Debug)]
pub(super) struct Winograd {
    shape: Shape,
    isa: Isa,
    panels: Panels,
    bias: Vec<f32>,
    epilogue: Epilogue,
    size: TileSize,
    tiles: Tiles,
    /// Tiles that are computed together, so that what is between the transforms stays in caches.
    block: usize,
    /// Blocks that are computed at the same time, each by one thread with scratch memory of its own: what other threads have
    /// transformed would have to come from their caches. 1 if the threads share each block instead.
    areas: usize,
    zeros: Vec<f32>,
    threads: usize,
}

/// A task, by its number.
type Work<'a> = &'a (dyn Fn(usize) + Sync);

/// Fewer channels, and the products are too short.
const LEAST_CHANNELS: usize = 16;
/// What the two transforms of a channel take, in multiplications and additions.
const TRANSFORM_COST: f64 = 16.0;
/// Values of a filter that caches are taken to keep from one run to the next.
const CACHED_VALUES: f64 = (1 << 19) as f64;
/// Vectors that are multiplied while memory gives one value.
const MEMORY_COST: f64 = 1.5;
/// The share of the plain product's time beyond which the transforms are not worth while.
const MOST_OF_PLAIN: f64 = 0.85;
/// Fewer tiles are not computed together, though they may not stay in caches.
const LEAST_BLOCK: usize = 12;
/// What is between the transforms may take so much room. (With less the filter, which is read once for all tiles
/// that are computed together, is read twice in images of 14x14 and 28x28.)
const BETWEEN_BYTES: usize = 2 << 20;
/// A larger filter is read by all threads together.
const MOST_FILTER_BYTES_BY_BLOCK: usize = 3 << 20;
/// Multiplications that the transforms of a pair of channels take, about.
const FILTER_WORK: usize = 200;
/// A larger filter takes too much memory.
const MOST_FILTER_BYTES: usize = 12 << 20;

/// How long a number of products of each pair of channels, with a number of rows, tiles or pixels, takes, in
/// multiplications and additions with vectors of this many lanes: those themselves, others for each row, and waiting for
/// the part of the filter that no cache keeps. (An estimate from what one thread of a Xeon takes for resnet50 and
/// squeezenet.)
#[allow(clippy::cast_precision_loss)]
fn cost(shape: &Shape, [products, rows]: [usize; 2], lanes: usize, others: f64) -> f64 {
    let pairs = shape.input_channels as f64 * shape.output_channels as f64;
    let (products, rows, lanes) = (products as f64, rows as f64, lanes as f64);
    products * rows * (pairs + others)
        + MEMORY_COST * lanes * (products * pairs - CACHED_VALUES).max(0.0)
}

/// How long it takes with tiles of a size, see [`cost`].
#[allow(clippy::cast_precision_loss)]
fn cost_of(size: TileSize, shape: &Shape, lanes: usize) -> f64 {
    let transforms = (shape.input_channels + shape.output_channels) as f64 * TRANSFORM_COST;
    cost(shape, [size.points(), Tiles::new(size.output(), shape).count], lanes, transforms)
}

/// The transformed filter: for each point a product over the input channels. The output channels of a panel are transformed
/// together, for all points.
fn pack<A: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>(
    _: A,
    shape: &Shape,
    filter: &[f32],
    preparation: &mut Preparation,
) -> Result<Panels, TooLarge> {
    let (points, blocking) = (INPUT * INPUT, Blocking::of(preparation.set()));
    let (inputs, outputs) = (shape.input_channels, shape.output_channels);
    let most = blocking.columns().min(outputs);
    let bytes =
        if preparation.is_restoring() { 0 } else { points * most * inputs * size_of::<f32>() };
    // `Winograd::tile_size` has limited them.
    let mut transformed = Lines::try_with_bytes(bytes)?;
    let isa = Isa::of(preparation.set());
    let columns = [points, outputs];
    Panels::pack_by(
        preparation,
        blocking,
        inputs,
        columns,
        |_| 0.0,
        |panel, width, to, pace| {
            let point = panel.group;
            let first = panel.columns.start - point * outputs;
            let count = panel.columns.len();
            let transformed = transformed.elements_mut::<f32>();
            if point == 0 && !pace.is_over(FILTER_WORK * count * inputs) {
                let weights = &filter[first * 9 * inputs..][..count * 9 * inputs];
                let filter =
                    Filter { weights, inputs, to: transformed, transforms: PhantomData::<A> };
                isa.run::<Filter<'_, A, INPUT, OUTPUT>>(filter);
            }
            let matrix =
                Matrix { values: transformed, start: point * count * inputs, stride: inputs };
            turned_until(pace, isa, &matrix, 0..count, inputs, [width; 2], to);
        },
    )
}

impl Winograd {
    /// The tiles with which it takes the least time, if that is less than the plain product takes.
    pub(super) fn tile_size(shape: &Shape, set: InstructionSet) -> Option<TileSize> {
        let lanes = Blocking::of(set).lanes;
        let channels = [shape.input_channels, shape.output_channels];
        let is_possible = set != InstructionSet::Portable
            && Tiles::suit(shape)
            && channels.iter().all(|&c| c >= LEAST_CHANNELS && c.is_multiple_of(lanes));
        if !is_possible {
            return None;
        }
        let fits = |size: &TileSize| {
            product(&[size.points(), channels[0], channels[1], size_of::<f32>()])
                .is_some_and(|bytes| bytes <= MOST_FILTER_BYTES)
        };
        let plain = cost(shape, [shape.taps(), shape.output_pixels()], lanes, 0.0);
        let costs = TileSize::ALL.into_iter().filter(fits);
        let costs = costs.map(|size| (size, cost_of(size, shape, lanes)));
        let least = costs.min_by(|one, other| one.1.total_cmp(&other.1));
        least.filter(|least| least.1 <= MOST_OF_PLAIN * plain).map(|(size, _)| size)
    }

    /// None if the plain product is likely to be faster.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    pub(super) fn new(
        shape: &Shape,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let Layer { filter, bias, epilogue } = layer;
        let set = preparation.set();
        let Some(size) = Self::tile_size(shape, set) else { return Ok(None) };
        let points = size.points();
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let panels =
            with_transforms!(size, transforms => pack(transforms, shape, filter, preparation)?);
        let tiles = Tiles::new(size.output(), shape);
        let by_tile = points * (inputs + outputs) * size_of::<f32>();
        let blocks = tiles.count.div_ceil((BETWEEN_BYTES / by_tile).max(LEAST_BLOCK)).max(1);
        let threads = preparation.threads();
        let filter_bytes = points * inputs * outputs * size_of::<f32>();
        let is_by_block = filter_bytes <= MOST_FILTER_BYTES_BY_BLOCK
            && tiles.count / blocks.next_multiple_of(threads) >= LEAST_BLOCK;
        let areas = if is_by_block { threads } else { 1 };
        let blocks = blocks.next_multiple_of(areas);
        let prepared = Self {
            shape: *shape,
            isa: Isa::of(set),
            panels,
            bias: preparation.copied(bias, "a bias")?,
            epilogue,
            size,
            tiles,
            block: tiles.count.div_ceil(blocks),
            areas,
            zeros: preparation.filled(0.0, inputs, "a pixel of zeros")?,
            threads,
        };
        preparation.check_scratch::<u8>(&[prepared.scratch_bytes()])?;
        Ok(Some(prepared))
    }

    /// From one point's tiles to the next one's, in values. A line more than they take, so that not
    /// all points of a tile fall into the same set of a cache.
    fn point_stride(&self, channels: usize) -> usize {
        (self.block * channels).next_multiple_of(16) + 16
    }

    /// Values of scratch memory for a block.
    fn area(&self) -> usize {
        let channels = [self.shape.input_channels, self.shape.output_channels];
        self.size.points() * channels.map(|it| self.point_stride(it)).iter().sum::<usize>()
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        self.areas * self.area() * size_of::<f32>()
    }

    /// # Panics
    /// If the input, the residual operand, the output or the scratch memory is too small.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let pass = Pass::new(&self.shape, images.input.pixel_stride, images);
        let Some(pass) = pass else { return };
        let scratch: &mut [f32] = bytemuck::cast_slice_mut(scratch);
        assert!(size_of_val(scratch) >= self.scratch_bytes(), "too little scratch memory");
        let blocks = self.tiles.count.div_ceil(self.block);
        let tiles = |block| block * self.block..self.tiles.count.min((block + 1) * self.block);
        if self.areas == 1 {
            for block in 0..blocks {
                let share = &mut |tasks, work: Work<'_>| team.run(tasks, work);
                self.block(&pass, share, tiles(block), scratch);
            }
            return;
        }
        let area = self.area();
        for first in (0..blocks).step_by(self.areas) {
            let tasks = self.areas.min(blocks - first);
            for_each_task(team, tasks, (&mut *scratch, area), |task, scratch, _| {
                let alone = &mut |tasks, work: Work<'_>| (0..tasks).for_each(work);
                self.block(&pass, alone, tiles(first + task), scratch);
            });
        }
    }

    /// Computes the tiles of a block. `share` runs a number of tasks.
    fn block(
        &self,
        pass: &Pass<'_>,
        share: &mut dyn FnMut(usize, Work<'_>),
        tiles: Range<usize>,
        scratch: &mut [f32],
    ) {
        let size = self.size;
        let before = size.points() * self.point_stride(self.shape.input_channels);
        let (before, after) = scratch.split_at_mut(before);
        let parts = (4 * self.threads).min(tiles.len());
        let to = DisjointOutput::new(before);
        share(parts, &|task| {
            for index in part(tiles.len(), parts, task) {
                let tile = [tiles.start + index, index];
                with_transforms!(size, transforms => self.forward(transforms, pass, tile, &to));
            }
        });
        let to = DisjointOutput::new(after);
        let panels = self.panels.count();
        let tasks = size.points().min(panels);
        share(tasks, &|task| {
            for panel in part(panels, tasks, task) {
                self.multiply(panel, tiles.len(), before, &to);
            }
        });
        share(parts, &|task| {
            for index in part(tiles.len(), parts, task) {
                let tile = [tiles.start + index, index];
                with_transforms!(size, transforms => self.backward(transforms, pass, tile, after));
            }
        });
    }

    /// Transforms an input tile into the place `index` of each point.
    fn forward<A: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>(
        &self,
        transforms: A,
        pass: &Pass<'_>,
        [tile, index]: [usize; 2],
        to: &DisjointOutput<'_, f32>,
    ) {
        let channels = self.zeros.len();
        let mut pixels = [[std::ptr::null(); INPUT]; INPUT];
        let from = (pass.input, &self.zeros[..]);
        self.tiles.locate(&self.shape, tile, from, pixels.as_flattened_mut());
        let stride = self.point_stride(channels);
        assert!((INPUT * INPUT - 1) * stride + (index + 1) * channels <= to.len());
        let to = to.pointer(index * channels);
        let forward = Forward { pixels: &pixels, channels, to, stride };
        // SAFETY: each pixel was taken as a slice of its channels, and there is a zero for each channel;
        // the last point's place was checked to be within the scratch memory; only this tile uses these
        // places; and `new` has checked that channels fill the vectors.
        let promised = unsafe { Promised::new(forward, transforms) };
        self.isa.run::<Promised<_, A, INPUT, OUTPUT>>(promised);
    }

    /// The products of all tiles of a block with one panel.
    fn multiply(&self, panel: usize, tiles: usize, from: &[f32], to: &DisjointOutput<'_, f32>) {
        let (inputs, outputs) = (self.shape.input_channels, self.shape.output_channels);
        let panel = self.panels.panel(panel);
        let most_rows = self.panels.blocking().rows;
        let values = self.panels.values(&panel);
        let from = &from[panel.group * self.point_stride(inputs)..][..tiles * inputs];
        let first = panel.columns.start - panel.group * outputs;
        let to_start = panel.group * self.point_stride(outputs) + first;
        let runs = tiles.div_ceil(most_rows);
        let (mut all, mut index) = (TileRows::new(tiles, runs.max(1), 0..runs), 0);
        loop {
            // Those that ask for the next panel's lines are computed one by one.
            let ahead = ahead(index, runs, values.len(), self.panels.width(&panel));
            let most = if ahead == [0; 2] { usize::MAX } else { 1 };
            let Some(Below { rows, tiles: below }) = all.next(most) else { return };
            let mut segments = [std::ptr::null(); Blocking::MOST_ROWS];
            let segments = &mut segments[..rows.len()];
            let end = rows.start + below * rows.len();
            let from = &from[rows.start * inputs..end * inputs];
            for (row, segment) in from.chunks_exact(inputs).zip(&mut *segments) {
                *segment = row.as_ptr();
            }
            let start = to_start + rows.start * outputs;
            let last = to_start + (end - 1) * outputs;
            assert!(last + panel.columns.len() <= to.len());
            let tile = Tile {
                segments,
                offset: 0,
                tiles: below,
                tile_distance: rows.len() * inputs,
                segment_depth: inputs,
                panel: values.as_ptr(),
                panels: 1,
                ahead,
                target: Target {
                    output: to.pointer(start),
                    output_stride: outputs,
                    residual: None,
                    residual_stride: 0,
                    columns: panel.columns.len(),
                },
                epilogue: &Epilogue::NONE,
            };
            // SAFETY: the rows of all tiles were taken as one slice of `inputs` values each, which is the depth of the
            // panels, which `new` made for this shape and the vectors of `isa`; the output was seen to be within the
            // scratch memory, and is this panel's and these rows' alone.
            unsafe { run_tile(self.isa, rows.len(), panel.vectors, &tile, None) };
            index += below;
        }
    }

    /// Transforms the products of a tile, at the place `index` of each point, back into the output.
    fn backward<A: Transforms<INPUT, OUTPUT>, const INPUT: usize, const OUTPUT: usize>(
        &self,
        transforms: A,
        pass: &Pass<'_>,
        [tile, index]: [usize; 2],
        from: &[f32],
    ) {
        let (pixel, [rows, columns]) = self.tiles.output(&self.shape, tile);
        let channels = self.shape.output_channels;
        let stride = self.point_stride(channels);
        let from = &from[index * channels..];
        assert!(from.len() >= (INPUT * INPUT - 1) * stride + channels);
        assert_eq!(self.bias.len(), channels);
        let backward = Backward {
            from: from.as_ptr(),
            stride,
            bias: &self.bias,
            epilogue: &self.epilogue,
            rows,
            columns,
            width: self.shape.output[1],
            target: pass.target(pixel, 0..channels),
        };
        // SAFETY: the last point was checked above; `run` has checked that output and residual have all
        // pixels, and rows and columns end with the image; tiles do not overlap; and `new` has checked
        // that channels fill the vectors.
        let promised = unsafe { Promised::new(backward, transforms) };
        self.isa.run::<Promised<_, A, INPUT, OUTPUT>>(promised);
    }
}
