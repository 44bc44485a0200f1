//! [`DepthwiseConvolution`] of float32 images.
#![allow(unsafe_code)]

mod microkernel;
mod pixels_microkernel;
mod sliding;
mod sliding_microkernel;
mod small_groups;
#[cfg(test)]
mod tests;
mod wide;

use crate::convolution::float::{Convolution, Layer, Pass};
use crate::convolution::{Pixels, Shape};
use crate::depthwise::by_channel;
use crate::gemm::float::{Blocking, Epilogue, Panels};
use crate::image_kernel::{ImageKernel, Images};
use crate::preparation::PackedValues;
use crate::sharing::shared_tasks;
use crate::team::{Pace, part};
use crate::vector::Isa;
use crate::{Image, InstructionSet, Line, Preparation, Team, TooLarge};
use microkernel::{MOST_PIXELS, Taps, Tile, run_tile};
pub(crate) use sliding::Sliding;
pub(crate) use small_groups::SmallGroups;
use std::ops::Range;
pub(crate) use wide::Wide;

/// Filters of more taps are left to others, so that the addresses of a tile's taps fit on the stack.
const MOST_TAPS: usize = 64;

/// A depthwise convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub struct DepthwiseConvolution {
    shape: Shape,
    set: InstructionSet,
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
    /// Several output channels of a group side by side in a vector.
    Small(SmallGroups),
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
    /// each output channel, and cuts the work. The shape has as many groups as
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
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        let stride = input_pixel_stride;
        let Layer { filter, bias, epilogue } = layer;
        assert_eq!(shape.groups, shape.input_channels.max(1), "groups of a depthwise convolution");
        layer.check(shape.taps() * shape.output_channels, shape.output_channels, preparation);
        let method = if Sliding::suits(shape) {
            let panels = panels(shape, layer, Sliding::blocking(preparation.set()), preparation)?;
            let threads = preparation.threads();
            Method::Sliding(Sliding::new(shape, stride, panels, epilogue, threads, preparation)?)
        } else if Direct::suits(shape, preparation.set()) {
            let panels = panels(shape, layer, Direct::blocking(preparation.set()), preparation)?;
            Method::Direct(Direct::new(shape, stride, panels, epilogue, preparation)?)
        } else if Wide::suits(shape) && shape.groups > 1 {
            let weights = preparation.pack(shape.filter_values(), |to: &mut [f32], pace| {
                for block in pace.blocks(to.len(), 1) {
                    to[block.clone()].copy_from_slice(&filter[block]);
                }
            })?;
            let wide = Wide::new(shape, stride, epilogue, preparation);
            Method::Wide { wide, weights, bias: preparation.copied(bias, "a bias")? }
        } else {
            let filter = by_channel(filter, shape, preparation)?;
            let layer = Layer { filter: &filter, ..layer };
            if SmallGroups::suits(shape, preparation.set()) {
                Method::Small(SmallGroups::new(shape, stride, layer, preparation)?)
            } else {
                Method::Grouped(Convolution::prepare(shape, stride, layer, preparation)?)
            }
        };
        Ok(Self { shape: *shape, set: preparation.set(), method })
    }

    /// Algorithm, type and instruction set, for profiles.
    pub fn kernel(&self) -> String {
        match &self.method {
            Method::Sliding(_) => format!("sliding window f32 {}", self.set),
            Method::Direct(_) | Method::Small(_) => format!("direct f32 {}", self.set),
            Method::Wide { .. } => Wide::kernel(self.set),
            Method::Grouped(convolution) => convolution.kernel(),
        }
    }
}

/// Inputs: the image, and the residual operand if there is one.
impl ImageKernel for DepthwiseConvolution {
    type Element = f32;
    const RESIDUAL: Option<usize> = Some(1);

    fn name(&self) -> String {
        format!("{} {}", self.shape.name(true), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        match &self.method {
            Method::Sliding(sliding) => sliding.run(team, images),
            Method::Direct(direct) => {
                direct.run(team, direct.panels.all_values(), images);
            }
            Method::Wide { wide, weights, bias } => {
                let filter: [&[f32]; 2] = [weights.values(), bias];
                wide.run(team, filter, images);
            }
            Method::Small(small) => small.run(team, images, scratch),
            Method::Grouped(convolution) => convolution.run(team, images, scratch),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.method {
            Method::Sliding(_) | Method::Direct(_) | Method::Wide { .. } => 0,
            Method::Small(small) => small.scratch_bytes(),
            Method::Grouped(convolution) => convolution.scratch_bytes(),
        }
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}

/// The packed filter of a depthwise convolution: a row for each tap.
pub(crate) fn panels(
    shape: &Shape,
    Layer { filter, bias, .. }: Layer<'_>,
    blocking: Blocking,
    preparation: &mut Preparation,
) -> Result<Panels, TooLarge> {
    let channels = shape.output_channels;
    let weight = |c, tap| filter[tap * channels + c];
    Panels::pack(preparation, blocking, shape.taps(), [1, channels], |c| bias[c], weight)
}

/// Panels of a line that are computed without a question whether to go on.
const MOST_PANELS: usize = 1024;

/// A task should take a few microseconds at least; a thread does some 30 multiplications in a
/// nanosecond here.
const LEAST_PRODUCTS: usize = 100_000;

impl Direct {
    /// Whether it can be done so.
    pub(crate) fn suits(shape: &Shape, set: InstructionSet) -> bool {
        let multiplier = shape.group_output_channels();
        shape.group_input_channels() == 1
            && (multiplier == 1
                || shape.groups > 1
                    && multiplier > 0
                    && multiplier.is_multiple_of(Isa::of(set).lanes()))
            && (1..=MOST_TAPS).contains(&shape.taps())
    }

    /// How filters are packed for it.
    pub(crate) fn blocking(set: InstructionSet) -> Blocking {
        let vectors = microkernel::most_vectors(Isa::of(set).registers());
        Blocking { vectors, ..Blocking::of(set) }
    }

    pub(crate) fn panels(&self) -> &Panels {
        &self.panels
    }

    pub(crate) fn new(
        shape: &Shape,
        pixel_stride: usize,
        panels: Panels,
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (set, threads) = (preparation.set(), preparation.threads());
        let blocking = Self::blocking(set);
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
    /// If an image is smaller than the shape says, or the stride of the input's pixels is another than was prepared for.
    pub(crate) fn run(&self, team: &mut Team, weights: &[f32], images: Images<'_, f32>) {
        let shape = &self.shape;
        let pass = Pass::new(shape, self.input_pixel_stride, images);
        let Some(pass) = pass else { return };
        let lines = shape.batch * shape.output[0];
        team.run_long(self.line_parts * self.panel_parts, &|task, stop| {
            let mut pace = Pace::new(stop);
            let panels = part(self.panels.count(), self.panel_parts, task % self.panel_parts);
            for line in part(lines, self.line_parts, task / self.panel_parts) {
                // Mostly all of them.
                for first in panels.clone().step_by(MOST_PANELS) {
                    let panels = first..panels.end.min(first + MOST_PANELS);
                    self.line(&pass, weights, line, panels, &mut pace);
                }
            }
        });
    }

    /// Some channels of one output line.
    fn line(
        &self,
        pass: &Pass<'_>,
        weights: &[f32],
        line: usize,
        panels: Range<usize>,
        pace: &mut Pace<'_>,
    ) {
        let shape = &self.shape;
        let products = panels.len() * self.blocking.columns() * shape.taps();
        let [height, width] = shape.output;
        let (n, y) = (line / height, line % height);
        let Range { start: first, end } = shape.seen_taps(0, y);
        let taps = first * shape.filter[1]..end * shape.filter[1];
        let interior = shape.interior(1);
        let tiles = width.div_ceil(MOST_PIXELS);
        let mut table = [std::ptr::null(); MOST_TAPS * MOST_PIXELS];
        for tile in 0..tiles {
            let xs = part(width, tiles, tile);
            if pace.is_over(xs.len() * products) {
                return;
            }
            let pixels = line * width + xs.start..line * width + xs.end;
            let taps_of_tile = if taps.is_empty() {
                Taps::Table(&[])
            } else if interior.0 <= xs.start && xs.end <= interior.1 {
                let x = xs.start * shape.stride[1] - shape.padding_before[1];
                let y = shape.input_position(0, y, first).unwrap_or(0);
                let distances = &self.distances[taps.clone()];
                // From the first tap that is not skipped on.
                let origin = pass.input([n, y, x]).wrapping_offset(distances[0].wrapping_neg());
                let step = shape.stride[1] * pass.input.pixel_stride;
                Taps::Regular { origin, distances, step }
            } else {
                let Image { values, pixel_stride } = pass.input;
                let input = Pixels { values, pixel_stride, channel: 0, padding: &self.zeros };
                input.locate(shape, pixels.clone(), taps.clone(), &mut table);
                Taps::Table(&table[..taps.len() * xs.len()])
            };
            self.tile(pass, weights, taps_of_tile, taps.start, pixels, panels.clone());
        }
    }

    /// Some channels of some pixels.
    fn tile(
        &self,
        pass: &Pass<'_>,
        weights: &[f32],
        taps: Taps<'_>,
        skipped: usize,
        pixels: Range<usize>,
        panels: Range<usize>,
    ) {
        let Self { isa, panels: all, epilogue, blocking, .. } = self;
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
            let tile = Tile {
                taps,
                panel: all.values_from_to(weights, &first, &last).as_ptr(),
                panel_stride: all.values_of(weights, &first).len(),
                skipped,
                channel,
                multiplier: self.shape.group_output_channels(),
                target: pass.target(pixels.start, channel..last.columns.end),
                epilogue,
            };
            // SAFETY: addresses are of pixels within the input, of which `Pass::new` has seen that
            // all channels are there, or of zeros. Tiles of the interior see nothing but the
            // input: their rows were found to be in it, their columns by `Shape::interior`; and the
            // distances were computed for this pixel stride, which `Pass::new` has compared. Panels of
            // one width are contiguous, and `values_from_to` has checked that all of them exist.
            // Output and residual have all pixels and channels, and each is one tile's only.
            unsafe { run_tile(*isa, pixels.len(), first.vectors, &tile) };
        }
    }
}
