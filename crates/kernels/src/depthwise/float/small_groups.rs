//! [`SmallGroups`]: grouped convolutions with so few channels in a group that vectors have those of several.
//!
//! Each input channel of a group is copied to the places of all output channels of that group. Then an output channel sees of each
//! pixel as many values as a group has input channels, all of them at its own place in a vector: that is a depthwise
//! convolution with that many times more taps. Copies are made for some columns and channels, row by row, as far as they are
//! seen: so they stay in the first cache.
#![allow(unsafe_code)]

use super::{Direct, MOST_PIXELS, Taps, Tile, run_tile};
use crate::convolution::Shape;
use crate::convolution::float::{Layer, Pass};
use crate::gemm::float::{Epilogue, Panels, Run};
use crate::preparation::product;
use crate::sharing::{for_each_task, shared_tasks};
use crate::team::{Pace, part};
use crate::unrolled::unrolled;
use crate::vector::pointers::store;
use crate::vector::{Isa, Kernel, MOST_LANES, Simd};
use crate::{Images, InstructionSet, LINE_BYTES, Line, Preparation, Team, TooLarge};
use std::ops::Range;

/// Filters of more products for an output value are left to products of matrices, which read each weight for more pixels.
const MOST_PRODUCTS: usize = 256;

/// Copies of more bytes would not stay near.
const MOST_COPY_BYTES: usize = 128 << 10;

/// Tasks of fewer rows make too many copies that the one before has made too.
const LEAST_ROWS: usize = 6;

/// A task should take a few microseconds at least; a thread does some 30 multiplications in a
/// nanosecond here.
const LEAST_PRODUCTS: usize = 100_000;

/// A grouped convolution with its filter packed and its work cut into tasks.
#[derive(Debug)]
pub(crate) struct SmallGroups {
    shape: Shape,
    isa: Isa,
    /// A row for each tap and input channel of a group.
    panels: Panels,
    epilogue: Epilogue,
    pixel_stride: usize,
    /// By input channel of a group: in which lane of a vector of the input it is, for each lane of the output.
    lanes: Vec<[i32; MOST_LANES]>,
    /// By row of the copies in which what the first tap sees is: for each tap and input channel, how far from the beginning of
    /// the copies what the first pixel sees is.
    distances: Vec<Vec<isize>>,
    /// The tasks: parts of the rows of each image times panels.
    row_parts: usize,
    tasks: usize,
}

/// Rows and columns of the copies, for a row of some output pixels.
fn copied(shape: &Shape) -> [usize; 2] {
    [shape.reach(0, 1), shape.reach(1, MOST_PIXELS.min(shape.output[1]))]
}

/// Bytes of the copies for a panel of this width.
fn copy_bytes(shape: &Shape, width: usize) -> usize {
    let of_pixel = [shape.group_input_channels(), width, size_of::<f32>()];
    let pixels = product(&copied(shape));
    pixels.and_then(|it| it.checked_mul(product(&of_pixel)?)).unwrap_or(usize::MAX)
}

impl SmallGroups {
    /// Whether it takes less time than products of matrices.
    pub(crate) fn suits(shape: &Shape, set: InstructionSet) -> bool {
        let [inputs, outputs] = [shape.group_input_channels(), shape.group_output_channels()];
        let lanes = Isa::of(set).lanes();
        let width = Direct::blocking(set).columns();
        shape.groups > 1
            && (1..=outputs).contains(&inputs)
            // Otherwise most of a vector is used as it is.
            && outputs <= lanes / 2
            && lanes.is_multiple_of(outputs)
            && (1..=MOST_PRODUCTS).contains(&shape.taps().saturating_mul(inputs))
            && shape.output_pixels() > 1
            && copy_bytes(shape, width) <= MOST_COPY_BYTES
    }

    /// # Errors
    /// If it takes more memory than it may.
    pub(crate) fn new(
        shape: &Shape,
        pixel_stride: usize,
        Layer { filter, bias, epilogue }: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (set, threads) = (preparation.set(), preparation.threads());
        let isa = Isa::of(set);
        let [inputs, outputs] = [shape.group_input_channels(), shape.group_output_channels()];
        let (taps, blocking) = (shape.taps(), Direct::blocking(set));
        let weight = |column: usize, row: usize| {
            filter[(column * taps + row / inputs) * inputs + row % inputs]
        };
        let columns = [1, shape.output_channels];
        let panels =
            Panels::pack(preparation, blocking, taps * inputs, columns, |n| bias[n], weight)?;
        let lane = |input: usize, lane: usize| {
            i32::try_from(lane / outputs * inputs + input).expect("a lane of a vector")
        };
        let lanes = (0..inputs).map(|input| std::array::from_fn(|it| lane(input, it))).collect();
        let [height, width] = copied(shape);
        let of_pixel = inputs * blocking.columns();
        preparation.take::<isize>(height * taps * inputs, "distances of taps")?;
        let distances = (0..height).map(|first| {
            let distance = |index: usize| {
                let (tap, input) = (index / inputs, index % inputs);
                let (i, j) = (tap / shape.filter[1], tap % shape.filter[1]);
                let row = (first + i * shape.dilation[0]) % height;
                let pixel = row * width + j * shape.dilation[1];
                (pixel * of_pixel + input * blocking.columns()).cast_signed()
            };
            (0..taps * inputs).map(distance).collect()
        });
        let products = shape.output_pixels().saturating_mul(shape.filter_values());
        let wanted = shared_tasks(products, LEAST_PRODUCTS, threads);
        let others = shape.batch * panels.count();
        let row_parts = wanted.div_ceil(others).min(shape.output[0] / LEAST_ROWS).max(1);
        let small = Self {
            shape: *shape,
            isa,
            panels,
            epilogue,
            pixel_stride,
            lanes,
            distances: distances.collect(),
            row_parts,
            tasks: wanted.min(others * row_parts).max(1),
        };
        preparation.check_scratch::<u8>(&[small.tasks, small.copy_bytes()])?;
        Ok(small)
    }

    /// Bytes of the copies of a task.
    fn copy_bytes(&self) -> usize {
        let width = self.panels.blocking().columns();
        copy_bytes(&self.shape, width).next_multiple_of(LINE_BYTES)
    }

    pub(crate) fn scratch_bytes(&self) -> usize {
        self.tasks * self.copy_bytes()
    }

    /// # Panics
    /// If an image or the scratch memory is too small, or the input's pixels have another stride.
    pub(crate) fn run(&self, team: &mut Team, images: Images<'_, f32>, scratch: &mut [Line]) {
        let shape = &self.shape;
        let Some(pass) = Pass::new(shape, self.pixel_stride, images) else { return };
        let (panels, row_parts) = (self.panels.count(), self.row_parts);
        let scratch = (bytemuck::cast_slice_mut(scratch), self.copy_bytes() / size_of::<f32>());
        for_each_task(team, self.tasks, scratch, |task, copies, stop| {
            let mut pace = Pace::new(stop);
            for item in part(shape.batch * row_parts * panels, self.tasks, task) {
                let (of_image, panel) = (item / panels, item % panels);
                let rows = part(shape.output[0], row_parts, of_image % row_parts);
                self.rows(&pass, [of_image / row_parts, panel], rows, copies, &mut pace);
            }
        });
    }

    /// Some rows of the output of an image, of the channels of a panel.
    fn rows(
        &self,
        pass: &Pass<'_>,
        [image, panel]: [usize; 2],
        rows: Range<usize>,
        copies: &mut [f32],
        pace: &mut Pace<'_>,
    ) {
        let Self { shape, isa, panels, epilogue, distances, .. } = self;
        let inputs = shape.group_input_channels();
        let run = Run { first: panels.panel(panel), count: 1 };
        let channels = run.first.columns.clone();
        let weights = panels.values_of_run(panels.all_values(), &run);
        let [height, width] = copied(shape);
        let of_pixel = inputs * panels.blocking().columns();
        let of_row = width * of_pixel;
        let [output_height, output_width] = shape.output;
        let tiles = output_width.div_ceil(MOST_PIXELS);
        for tile in 0..tiles {
            let xs = part(output_width, tiles, tile);
            // Rows of the input, counted from the first one of the padding.
            let mut copied = rows.start * shape.stride[0];
            for y in rows.clone() {
                let first = y * shape.stride[0];
                if pace.is_over(xs.len() * of_pixel * shape.taps()) {
                    return;
                }
                copied = copied.max(first);
                while copied < first + height {
                    isa.run(Spread {
                        groups: self,
                        pass,
                        image,
                        row: copied,
                        first: xs.start * shape.stride[1],
                        channels: channels.clone(),
                        vectors: run.first.vectors,
                        to: &mut copies[copied % height * of_row..][..of_row],
                    });
                    copied += 1;
                }
                let pixel = (image * output_height + y) * output_width + xs.start;
                let tile = Tile {
                    taps: Taps::Regular {
                        origin: copies.as_ptr(),
                        distances: &distances[first % height],
                        step: shape.stride[1] * of_pixel,
                    },
                    channel: 0,
                    multiplier: 1,
                    panel: weights.as_ptr(),
                    panel_stride: weights.len(),
                    skipped: 0,
                    target: pass.target(pixel, channels.clone()),
                    epilogue,
                };
                // SAFETY: the copies have whole vectors of all channels of the panel for each pixel that a tap sees: rows and
                // columns as `copied` counts them for the pixels of a tile, to which the distances lead. `values_of_run` has
                // given the biases and weights of the panel. Output and residual have all pixels and channels, as
                // `Pass::new` has seen, and each is one tile's only.
                unsafe { run_tile(*isa, xs.len(), run.first.vectors, &tile) };
            }
        }
    }
}

/// Copies the input channels of each group to the places of the group's output channels, of a row of the input: `[columns, input
/// channels of a group, width of a panel]`, with the padding.
struct Spread<'a> {
    groups: &'a SmallGroups,
    pass: &'a Pass<'a>,
    image: usize,
    /// Row and first column, counted from the first ones of the padding.
    row: usize,
    first: usize,
    /// Of the output.
    channels: Range<usize>,
    vectors: usize,
    to: &'a mut [f32],
}

impl Kernel for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match self.vectors {
            1 => self.spread::<S, 1>(simd),
            2 => self.spread::<S, 2>(simd),
            vectors => unreachable!("no panel of {vectors} vectors"),
        }
    }
}

impl Spread<'_> {
    #[inline(always)]
    fn spread<S: Simd, const VECTORS: usize>(self, simd: S) {
        let Self { groups, pass, image, row, first, channels, to, .. } = self;
        let SmallGroups { shape, lanes, panels, .. } = groups;
        let [inputs, outputs] = [shape.group_input_channels(), shape.group_output_channels()];
        let width = panels.blocking().columns();
        assert!(VECTORS * S::LANES <= width && lanes.len() == inputs, "another panel");
        let [above, left] = shape.padding_before;
        let Some(y) = row.checked_sub(above).filter(|y| *y < shape.input[0]) else {
            return to.fill(0.0);
        };
        // What a vector of outputs sees begins at the first channel of its first group.
        let of_vector = S::LANES / outputs * inputs;
        let first_input = channels.start / outputs * inputs;
        for (column, to) in (first..).zip(to.chunks_exact_mut(inputs * width)) {
            let Some(x) = column.checked_sub(left).filter(|x| *x < shape.input[1]) else {
                to.fill(0.0);
                continue;
            };
            let pixel = shape.input_pixel([image, y, x]) * pass.input.pixel_stride;
            let values = &pass.input.values[pixel..][..shape.input_channels];
            let mut seen = [simd.splat(0.0); VECTORS];
            for (vector, seen) in seen.iter_mut().enumerate() {
                let values = values.get(first_input + vector * of_vector..).unwrap_or_default();
                *seen = match values.len() >= S::LANES {
                    true => simd.load(values),
                    false => simd.load_partial(values, 0.0),
                };
            }
            let mut to = to.as_mut_ptr();
            for lanes in lanes {
                let lanes = simd.iload(lanes);
                unrolled! { VECTOR < VECTORS, 0 1 => {
                    // SAFETY: a pixel has `width` values for each of the group's input channels, of which there are as many
                    // as `lanes`, and `VECTORS` vectors are no more than that, as was asserted.
                    unsafe {
                        let to = to.wrapping_add(VECTOR * S::LANES);
                        store(simd, simd.lookup(seen[VECTOR], lanes), to);
                    }
                }}
                to = to.wrapping_add(width);
            }
        }
    }
}
