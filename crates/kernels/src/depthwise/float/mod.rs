//! [`DepthwiseConvolution`] of float32 images.
#![allow(unsafe_code)]

mod microkernel;
mod prepared;
mod sliding;
#[cfg(test)]
mod tests;
mod wide;
mod window;

use crate::convolution::Shape;
use crate::convolution::float::Convolution;
use crate::disjoint::DisjointOutput;
use crate::gemm::float::{Blocking, Epilogue, Panels};
use crate::packing::PackedValues;
use crate::parts::shared_tasks;
use crate::team::Pace;
use crate::team::part;
use crate::vector::Isa;
use crate::{Image, ImageMut, InstructionSet, Line, Preparation, Team, TooLarge};
use microkernel::{MOST_PIXELS, Taps, Tile, run_tile};
pub(crate) use sliding::Sliding;
use std::ops::Range;
pub(crate) use wide::{Weights, Wide};

/// Filters of more taps are left to [`Wide`], so that the addresses of a tile's taps fit on the stack.
const MOST_TAPS: usize = 64;

/// A depthwise convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub struct DepthwiseConvolution {
    shape: Shape,
    set: InstructionSet,
    input_pixel_stride: usize,
    method: Method,
}

#[derive(Debug)]
enum Method {
    Sliding(Sliding),
    Direct(Direct),
    Wide {
        wide: Wide,
        weights: PackedValues<f32>,
        bias: Vec<f32>,
    },
    /// As a convolution of as many groups as the input has channels.
    Grouped(Convolution),
}

/// Vector by vector of channels.
#[derive(Debug)]
pub(crate) struct Direct {
    shape: Shape,
    isa: Isa,
    blocking: Blocking,
    panels: Panels,
    epilogue: Epilogue,
    input_pixel_stride: usize,
    /// For each tap, how far what it sees is behind the first tap's.
    distances: Vec<isize>,
    zeros: Vec<f32>,
    /// The tasks: parts of the output's lines times parts of the panels.
    line_parts: usize,
    panel_parts: usize,
}

impl DepthwiseConvolution {
    /// Packs the filter, `[1, filter height, filter width, output_channels]`, and the bias, one for
    /// each output channel, and cuts the work for this number of threads. The shape has as many groups as
    /// input channels. The input's pixels have a stride of `input_pixel_stride` values.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not [valid](Shape::is_valid) or not depthwise, or the filter or the bias is not
    /// as large as it says.
    pub fn prepare(
        shape: &Shape,
        input_pixel_stride: usize,
        filter: &[f32],
        bias: &[f32],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        let (channels, taps) = (shape.output_channels, shape.taps());
        assert_eq!(shape.groups, shape.input_channels.max(1), "groups of a depthwise convolution");
        preparation.check_count(filter.len(), taps * channels, "values of the filter");
        assert_eq!(bias.len(), channels, "values of the bias");
        let weight = |c, tap| filter[tap * channels + c];
        let panels = |preparation: &mut _, blocking| {
            Panels::pack(preparation, blocking, taps, [1, channels], |c| bias[c], weight)
        };
        let method = if Sliding::suits(shape) {
            let panels = panels(preparation, Sliding::blocking(preparation.set()))?;
            let stride = input_pixel_stride;
            let threads = preparation.threads();
            Method::Sliding(Sliding::new(shape, stride, panels, epilogue, threads, preparation)?)
        } else if Direct::suits(shape) {
            Method::Direct(Direct::new(shape, input_pixel_stride, panels, epilogue, preparation)?)
        } else if Wide::suits(shape) {
            let weights = preparation.pack(shape.filter_values(), |to: &mut [f32], pace| {
                for block in pace.blocks(to.len(), 1) {
                    to[block.clone()].copy_from_slice(&filter[block]);
                }
            })?;
            let wide = Wide::new(shape, epilogue, preparation);
            Method::Wide { wide, weights, bias: preparation.copied(bias, "a bias")? }
        } else {
            let values = shape.filter_values();
            let mut transposed = preparation.filled(0.0, values, "weights by channel")?;
            if !preparation.is_restoring() {
                for at in preparation.pace().blocks(values, 4).flatten() {
                    transposed[at] = filter[at % taps * channels + at / taps];
                }
            }
            Method::Grouped(Convolution::prepare(
                shape,
                input_pixel_stride,
                &transposed,
                bias,
                epilogue,
                preparation,
            )?)
        };
        Ok(Self { shape: *shape, set: preparation.set(), input_pixel_stride, method })
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        match &self.method {
            Method::Sliding(_) => format!("sliding window f32 {}", self.set),
            Method::Direct(_) => format!("direct f32 {}", self.set),
            Method::Wide { .. } => Wide::kernel(self.set),
            Method::Grouped(convolution) => convolution.kernel(),
        }
    }

    /// Bytes of scratch memory that [`Self::run`] needs.
    pub fn scratch_bytes(&self) -> usize {
        match &self.method {
            Method::Sliding(_) | Method::Direct(_) | Method::Wide { .. } => 0,
            Method::Grouped(convolution) => convolution.scratch_bytes(),
        }
    }

    /// Computes the output. The residual operand, of the output's shape, is added before the
    /// epilogue.
    ///
    /// # Panics
    /// If the input, the residual operand, the output or the scratch memory is smaller than the
    /// shape says, or the input's pixels are not at the stride that was prepared for.
    pub fn run(
        &self,
        team: &mut Team,
        input: Image<'_, f32>,
        residual: Option<Image<'_, f32>>,
        output: ImageMut<'_, f32>,
        scratch: &mut [Line],
    ) {
        let shape = &self.shape;
        match &self.method {
            Method::Sliding(sliding) => sliding.run(shape, team, input, residual, output),
            Method::Direct(direct) => {
                let weights = direct.panels.all_values();
                direct.run(shape, team, weights, input, residual, output);
            }
            Method::Wide { wide, weights, bias } => {
                if check(shape, self.input_pixel_stride, &input, residual.as_ref(), &output) {
                    let weights = Weights { weights: weights.values(), bias };
                    wide.run(shape, team, weights, input, residual, output);
                }
            }
            Method::Grouped(convolution) => {
                convolution.run(team, input, residual, output, scratch);
            }
        }
    }
}

/// Whether there is anything to compute.
///
/// # Panics
/// If an image is smaller than the shape says, or the input's pixels have another stride.
pub(crate) fn check(
    shape: &Shape,
    input_pixel_stride: usize,
    input: &Image<'_, f32>,
    residual: Option<&Image<'_, f32>>,
    output: &ImageMut<'_, f32>,
) -> bool {
    let channels = shape.output_channels;
    input.check("input", shape.input_pixels(), shape.input_channels);
    assert_eq!(input.pixel_stride, input_pixel_stride, "values from pixel to pixel");
    let needed = output.check("output", shape.output_pixels(), channels);
    if let Some(residual) = residual {
        residual.check("residual operand", shape.output_pixels(), channels);
    }
    needed > 0
}

/// A task should take a few microseconds at least; a thread does some 30 multiplications in a
/// nanosecond here.
const LEAST_PRODUCTS: usize = 100_000;

impl Direct {
    /// Whether it can be done so.
    pub(crate) fn suits(shape: &Shape) -> bool {
        shape.input_channels == shape.output_channels && (1..=MOST_TAPS).contains(&shape.taps())
    }

    pub(crate) fn panels(&self) -> &Panels {
        &self.panels
    }

    pub(crate) fn new(
        shape: &Shape,
        pixel_stride: usize,
        panels: impl FnOnce(&mut Preparation, Blocking) -> Result<Panels, TooLarge>,
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (set, threads) = (preparation.set(), preparation.threads());
        let vectors = microkernel::most_vectors(Isa::of(set).registers());
        let blocking = Blocking { vectors, ..Blocking::of(set) };
        let panels = panels(preparation, blocking)?;
        panels.check(blocking, shape.taps(), [1, shape.output_channels]);
        let lines = shape.batch * shape.output[0];
        let products = shape.output_pixels().saturating_mul(shape.taps() * shape.output_channels);
        let parts = shared_tasks(products, LEAST_PRODUCTS, threads);
        // By lines, if they can be shared evenly: each thread then reads what it has written itself.
        let (line_parts, panel_parts) = if lines >= 4 * threads || panels.count() < parts {
            (parts.min(lines).max(1), 1)
        } else {
            // Each of them locates all taps anew.
            (1, parts.min(threads))
        };
        let distances = (0..shape.taps())
            .map(|tap| {
                let (i, j) = (tap / shape.filter[1], tap % shape.filter[1]);
                // Not used if it is outside of the input, where the products may not fit.
                let rows = (i * shape.dilation[0]).wrapping_mul(shape.input[1]);
                let pixels = rows.wrapping_add(j * shape.dilation[1]);
                pixels.wrapping_mul(pixel_stride).cast_signed()
            })
            .collect();
        Ok(Self {
            shape: *shape,
            isa: Isa::of(set),
            blocking,
            panels,
            input_pixel_stride: pixel_stride,
            epilogue,
            distances,
            zeros: preparation.filled(0.0, shape.input_channels, "zeros")?,
            line_parts,
            panel_parts,
        })
    }

    /// # Panics
    /// If an image is smaller than the shape says, or the shape or the stride of the input's pixels is
    /// another than was prepared for.
    pub(crate) fn run(
        &self,
        shape: &Shape,
        team: &mut Team,
        weights: &[f32],
        input: Image<'_, f32>,
        residual: Option<Image<'_, f32>>,
        output: ImageMut<'_, f32>,
    ) {
        assert_eq!(*shape, self.shape, "another shape");
        if !check(shape, self.input_pixel_stride, &input, residual.as_ref(), &output) {
            return;
        }
        let lines = shape.batch * shape.output[0];
        let output_stride = output.pixel_stride;
        let output = DisjointOutput::new(output.values);
        let pass = Pass { direct: self, weights, shape, input, residual, output_stride, output };
        team.run_long(self.line_parts * self.panel_parts, &|task, stop| {
            let mut pace = Pace::new(stop);
            let panels = part(self.panels.count(), self.panel_parts, task % self.panel_parts);
            for line in part(lines, self.line_parts, task / self.panel_parts) {
                // Mostly all of them.
                for first in panels.clone().step_by(MOST_PANELS) {
                    let panels = first..panels.end.min(first + MOST_PANELS);
                    pass.line(line, panels, &mut pace);
                }
            }
        });
    }
}

/// Panels of a line that are computed without a question whether to go on.
const MOST_PANELS: usize = 1024;

/// A convolution that is being computed.
struct Pass<'a> {
    direct: &'a Direct,
    /// The values of all panels.
    weights: &'a [f32],
    shape: &'a Shape,
    input: Image<'a, f32>,
    residual: Option<Image<'a, f32>>,
    output_stride: usize,
    output: DisjointOutput<'a, f32>,
}

impl Pass<'_> {
    /// Some channels of one output line.
    fn line(&self, line: usize, panels: Range<usize>, pace: &mut Pace<'_>) {
        let shape = self.shape;
        let products = panels.len() * self.direct.blocking.columns() * shape.taps();
        let [height, width] = shape.output;
        let (n, y) = (line / height, line % height);
        let [filter_height, filter_width] = shape.filter;
        // Rows of the filter that see the input at all are side by side.
        let sees = |i: &usize| shape.input_position(0, y, *i).is_some();
        let first = (0..filter_height).find(sees).unwrap_or(0);
        let count = (first..filter_height).take_while(sees).count();
        let taps = first * filter_width..(first + count) * filter_width;
        let interior = shape.interior(1);
        let tiles = width.div_ceil(MOST_PIXELS);
        let mut table = [std::ptr::null(); MOST_TAPS * MOST_PIXELS];
        for tile in 0..tiles {
            let xs = part(width, tiles, tile);
            if pace.is_over(xs.len() * products) {
                return;
            }
            let taps_of_tile = if count == 0 {
                Taps::Table(&[])
            } else if interior.0 <= xs.start && xs.end <= interior.1 {
                let x = xs.start * shape.stride[1] - shape.padding_before[1];
                let y = shape.input_position(0, y, first).unwrap_or(0);
                let distances = &self.direct.distances[taps.clone()];
                // From the first tap that is not skipped on.
                let origin = self.pixel([n, y, x]).wrapping_offset(distances[0].wrapping_neg());
                let step = shape.stride[1] * self.input.pixel_stride;
                Taps::Regular { origin, distances, step }
            } else {
                Taps::Table(self.locate(&mut table, [n, y], taps.clone(), xs.clone()))
            };
            self.tile(taps_of_tile, taps.start, line * width + xs.start, xs.len(), panels.clone());
        }
    }

    /// The address of an input pixel.
    fn pixel(&self, [n, y, x]: [usize; 3]) -> *const f32 {
        let [height, width] = self.shape.input;
        debug_assert!(n < self.shape.batch && y < height && x < width);
        let pixel = (n * height + y) * width + x;
        self.input.values.as_ptr().wrapping_add(pixel * self.input.pixel_stride)
    }

    /// The addresses of what some pixels of a line see through some taps.
    fn locate<'t>(
        &self,
        table: &'t mut [*const f32],
        [n, y]: [usize; 2],
        taps: Range<usize>,
        xs: Range<usize>,
    ) -> &'t [*const f32] {
        let table = &mut table[..taps.len() * xs.len()];
        for (tap, table) in taps.zip(table.chunks_exact_mut(xs.len())) {
            let (i, j) = (tap / self.shape.filter[1], tap % self.shape.filter[1]);
            let input_y = self.shape.input_position(0, y, i);
            for (x, address) in xs.clone().zip(table) {
                *address = match input_y.zip(self.shape.input_position(1, x, j)) {
                    Some((y, x)) => self.pixel([n, y, x]),
                    None => self.direct.zeros.as_ptr(),
                };
            }
        }
        table
    }

    /// Some channels of some pixels from `pixel` on.
    fn tile(
        &self,
        taps: Taps<'_>,
        skipped: usize,
        pixel: usize,
        pixels: usize,
        panels: Range<usize>,
    ) {
        let Direct { isa, panels: all, epilogue, blocking, .. } = self.direct;
        // All that are as wide as they can be, and then the last one.
        let full = panels.start
            ..panels.end
                - usize::from(
                    !panels.is_empty() && all.panel(panels.end - 1).vectors < blocking.vectors,
                );
        for run in [full.clone(), full.end..panels.end] {
            if run.is_empty() {
                continue;
            }
            let (first, last) = (all.panel(run.start), all.panel(run.end - 1));
            let channel = first.columns.start;
            let start = |stride: usize| pixel * stride + channel;
            let tile = Tile {
                taps,
                channel,
                channels: last.columns.end - channel,
                panel: all.values_from_to(self.weights, &first, &last).as_ptr(),
                panel_stride: all.values_of(self.weights, &first).len(),
                skipped,
                output: self.output.pointer(start(self.output_stride)),
                output_stride: self.output_stride,
                residual: self
                    .residual
                    .map(|residual| residual.values[start(residual.pixel_stride)..].as_ptr()),
                residual_stride: self.residual.map_or(0, |residual| residual.pixel_stride),
                epilogue,
            };
            // SAFETY: addresses are of pixels within the input, of which `Direct::run` has seen that
            // all channels are there, or of zeros. Tiles of the interior see nothing but the
            // input: their rows were found to be in it, their columns by `Shape::interior`; and the
            // distances were computed for this pixel stride, which `Direct::run` has compared. Panels of
            // one width are contiguous, and `values_from_to` has checked that all of them exist.
            // Output and residual have all pixels and channels, and each is one tile's only.
            unsafe { run_tile(*isa, pixels, first.vectors, &tile) };
        }
    }
}
