//! [`InPlace`]: convolution as a product of tiles of pixels, whose windows are read where they are: in the image, or in a
//! copy of some of its rows with the padding around them. Windows of pixels side by side begin at equal distances, and so
//! do those of a line's last pixels and the next line's first ones, if what is between them is computed too.
#![allow(unsafe_code)]

use super::stage::Stage;
use super::table::MOST_BYTES;
use super::tasks::Tasks;
use super::{Layer, Method, Pass};
use crate::convolution::Shape;
use crate::gemm::quantized::{Grid, Matrix, Source, Variant};
use crate::requantize::LANES;
use crate::team::{Pace, part};
use crate::{Image, LINE_BYTES, Line, Preparation, TooLarge};
use std::ops::Range;

/// Bytes of inputs that are multiplied by all weights, one block of channels after the other: they should stay in the
/// second cache.
const INPUT_BYTES: usize = 128 << 10;

/// Pixels that are worth a task: two tiles.
const LEAST_PIXELS: usize = 32;

/// If there are more than this many times as many weights as inputs, each thread reads only a part of the weights: inputs
/// that another thread has written take longer to read than weights that were fetched ahead.
const MOST_OF_INPUTS: usize = 3;

/// Blocks of channels that are worth a task, where each thread reads a part of the weights: the first one's come from memory
/// while they are multiplied.
const LEAST_BLOCKS: usize = 2;

/// Runs of a window, at most, so that their offsets fit on the stack.
const MOST_RUNS: usize = 64;

/// Copying windows takes as long as multiplying them by this many vectors of channels: of pixels, and of several pixels, most of
/// which are seen by the next windows too, and in the nearest cache if they are not copied.
const VECTORS_TO_COPY: [u128; 2] = [5, 8];

/// A convolution for kernels of tiles.
#[derive(Debug)]
pub(super) struct InPlace {
    matrix: Matrix,
    windows: Windows,
    /// Of the output's lines and the blocks of channels.
    tasks: Tasks,
}

/// Where windows are.
#[derive(Debug)]
enum Windows {
    /// In the image, all of them; a run is a pixel.
    InImage,
    /// In copies of some rows.
    InCopies {
        stage: Stage,
        /// Bytes of a copy, with what may be read behind it.
        bytes: usize,
        /// From a window's beginning to its runs, which are its rows unless there are gaps between pixels.
        runs: Vec<usize>,
        padding: u8,
    },
}

impl InPlace {
    /// None if the kernels want other rows, or copying windows for them is faster.
    ///
    /// # Errors
    /// If the packed weights are more than may be taken.
    pub(super) fn new(
        shape: &Shape,
        layer: &Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let Layer { weights, bias, activations, ref requantization } = *layer;
        let is_suited = shape.groups == 1
            && shape.filter_values() > 0
            && shape.output_pixels() > 0
            && weights.signed_zero_point() == 0;
        let products = shape.taps().saturating_mul(shape.input_channels);
        let variant = Variant::of_grids(preparation.set(), activations.signedness, products);
        let Some(variant) = variant.filter(|_| is_suited) else { return Ok(None) };
        let Some(cut) = Cut::new(shape, variant) else { return Ok(None) };
        let Cut { runs, run_bytes, copy } = cut;
        let source = Source { weights, channels: shape.output_channels, runs, run_bytes, bias };
        let requantization = requantization.repeated(1, preparation)?;
        let matrix = Matrix::new(variant, &source, activations, requantization, preparation)?;
        let windows = match copy {
            None => Windows::InImage,
            Some((stage, bytes)) => Windows::InCopies {
                stage,
                bytes,
                runs: (0..runs).map(|run| cut.offset(shape, &stage, run)).collect(),
                padding: layer.padding(),
            },
        };
        let tasks = tasks(shape, matrix.blocks().len(), preparation.threads());
        let in_place = Self { matrix, windows, tasks };
        preparation.check_scratch::<Line>(&[tasks.count(), in_place.task_lines()])?;
        Ok(Some(in_place))
    }

    /// Computes lines.
    ///
    /// # Safety
    /// As of [`Method::task`], for the blocks of these lines. This thread's tiles are set up.
    unsafe fn compute(&self, mut work: Work<'_>, lines: Range<usize>, scratch: &mut [Line]) {
        let (Pass { shape, input, .. }, output) = (*work.pass, work.pass.target());
        let [height, width] = shape.output;
        // Pixels that are computed together: of a line, or of some lines.
        let most_pixels = (MOST_BYTES / (shape.taps() * shape.input_channels)).max(1);
        let pixels = (INPUT_BYTES / shape.input_channels).max(LEAST_PIXELS).min(most_pixels);
        let Range { start: mut line, end } = lines;
        while line < end {
            let (image, y) = (line / height, line % height);
            // Lines may be anywhere in the output.
            let even = (output.in_line(line * width) / width).max(1);
            let most = match &self.windows {
                Windows::InImage => (pixels / width).max(1),
                Windows::InCopies { stage, .. } => {
                    stage.output_rows.min((most_pixels / width).max(1))
                }
            };
            let lines = most.min(even).min(end - line).min(height - y);
            let rows = match &self.windows {
                Windows::InImage => Rows::of_image(shape, input, [image, y]),
                Windows::InCopies { stage, bytes, runs, padding } => {
                    let copy = &mut bytemuck::cast_slice_mut(scratch)[..*bytes];
                    let (padding, rows) = ((*padding, 0), [image, y, lines]);
                    stage.copy(shape, input, padding, rows, copy, &mut work.pace);
                    if work.pace.is_over(0) {
                        return;
                    }
                    Rows::of_copy(shape, stage, copy, runs)
                }
            };
            let some = if lines == 1 { pixels } else { width };
            for x in (0..width).step_by(some) {
                let wanted = some.min(width - x);
                // SAFETY: the caller's promises; these are pixels of the task.
                let is_done = unsafe { work.compute(&rows, line * width + x, x, [lines, wanted]) };
                if !is_done {
                    return;
                }
            }
            line += lines;
        }
    }
}

impl Method for InPlace {
    fn name(&self) -> &'static str {
        self.matrix.variant.name()
    }

    fn tasks(&self) -> usize {
        self.tasks.count()
    }

    fn task_lines(&self) -> usize {
        match &self.windows {
            Windows::InImage => 0,
            Windows::InCopies { bytes, .. } => bytes.div_ceil(LINE_BYTES),
        }
    }

    unsafe fn task(&self, pass: &Pass<'_>, task: usize, scratch: &mut [Line]) {
        let _tiles = self.matrix.set_up_tiles();
        let all = pass.shape.batch * pass.shape.output[0];
        for (piece, blocks) in self.tasks.parts(task) {
            let pace = Pace::new(pass.stop);
            let work = Work { matrix: &self.matrix, pass, blocks, is_first: true, pace };
            let lines = part(all, self.tasks.pieces, piece);
            // SAFETY: the caller's promises; this thread's tiles are set up.
            unsafe { self.compute(work, lines, scratch) };
        }
    }
}

/// How windows are cut into runs.
struct Cut {
    runs: usize,
    run_bytes: usize,
    /// Copies that windows are read from, and the bytes of each with what may be read behind it.
    copy: Option<(Stage, usize)>,
}

impl Cut {
    /// None if windows are not at equal distances, or copying them for tiles of this variant is faster.
    fn new(shape: &Shape, variant: &Variant) -> Option<Self> {
        let [height, width] = shape.filter;
        let together = variant.bytes_together();
        let tile = variant.tile_rows(1);
        let is_in_image = shape.input_channels.is_multiple_of(together)
            && [0, 1].into_iter().all(|axis| is_inside(shape, axis))
            && has_tiles_in_images(shape, tile);
        if is_in_image {
            let cut = Self { runs: height * width, run_bytes: shape.input_channels, copy: None };
            let line = line_rows(shape, shape.input[1])?;
            return cut.is_faster(shape, variant, line).then_some(cut);
        }
        let (runs, run_bytes) = match shape.dilation[1] {
            1 => (height, width.checked_mul(shape.input_channels)?),
            _ => (height.checked_mul(width)?, shape.input_channels),
        };
        let stage = Stage::new(shape, INPUT_BYTES).filter(|_| runs <= MOST_RUNS)?;
        let line = line_rows(shape, stage.row_bytes / shape.input_channels)?;
        // Of a tile at the end all rows can be read, though fewer may be wanted.
        let rows = ((stage.output_rows - 1).checked_mul(line)?).checked_add(shape.output[1])?;
        let step = shape.stride[1].checked_mul(shape.input_channels)?;
        let last = (rows.max(tile) - 1).checked_mul(step)?;
        let cut = Self { runs, run_bytes, copy: None };
        let offset = cut.offset(shape, &stage, runs - 1);
        let read = last.checked_add(offset)?.checked_add(run_bytes.next_multiple_of(together))?;
        let bytes = stage.bytes.max(read);
        let all = shape.output[0].div_ceil(stage.output_rows).checked_mul(shape.batch)?;
        let is_small = shape.is_copy_small(all.checked_mul(bytes)?);
        let is_suited = is_small && cut.is_faster(shape, variant, line);
        is_suited.then_some(Self { copy: Some((stage, bytes)), ..cut })
    }

    /// From a window's beginning to one of its runs in a copy, in bytes.
    fn offset(&self, shape: &Shape, stage: &Stage, run: usize) -> usize {
        let in_row = self.runs / shape.filter[0];
        let (i, j) = (run / in_row, run % in_row);
        i * shape.dilation[0] * stage.row_bytes + j * shape.dilation[1] * shape.input_channels
    }

    /// Whether it is faster to compute what is between lines, and zeros behind each run, than to copy windows.
    fn is_faster(&self, shape: &Shape, variant: &Variant, line: usize) -> bool {
        let [height, width] = shape.output;
        let (together, tile) = (variant.bytes_together(), variant.tile_rows(1));
        let up = |number: u128, multiple: usize| number.next_multiple_of(multiple as u128);
        let vectors = shape.output_channels.div_ceil(LANES) as u128;
        let lines = shape.batch as u128 * height as u128;
        let run_bytes = self.run_bytes as u128;
        // A tile that begins in a line reaches into the next one, or ends behind it.
        let rows = up(lines * up(width as u128, tile).min(line as u128), tile);
        let in_place = rows * vectors * self.runs as u128 * up(run_bytes, together);
        let copied = up(lines * width as u128, tile) * up(self.runs as u128 * run_bytes, together);
        in_place <= copied * (vectors + VECTORS_TO_COPY[usize::from(shape.taps() > 1)])
    }
}

/// Whether no window sees padding along an axis.
fn is_inside(shape: &Shape, axis: usize) -> bool {
    let reach = shape.reach(axis, shape.output[axis]);
    shape.padding_before[axis] == 0 && reach <= shape.input[axis]
}

/// Whether all rows of a tile are inside of the images, at whatever pixel one of them begins, and windows have few runs.
fn has_tiles_in_images(shape: &Shape, tile: usize) -> bool {
    let rows_before = shape.reach(0, 1) - 1;
    let seen = rows_before.saturating_mul(shape.input[1]).saturating_add(shape.reach(1, 1));
    shape.taps() <= MOST_RUNS && shape.input_pixels().saturating_sub(seen) / shape.stride[1] > tile
}

/// From a line of the output to the next one, in distances of pixels, if what is read has this many pixels in a row; none
/// if that is no whole number.
fn line_rows(shape: &Shape, row_pixels: usize) -> Option<usize> {
    let line = shape.stride[0].checked_mul(row_pixels)?;
    let rows = line / shape.stride[1];
    (line.is_multiple_of(shape.stride[1]) && rows >= shape.output[1]).then_some(rows)
}

/// Into which tasks lines of the output and blocks of channels are cut.
fn tasks(shape: &Shape, blocks: usize, threads: usize) -> Tasks {
    let lines = shape.batch * shape.output[0];
    let most = (shape.output_pixels() / LEAST_PIXELS).clamp(1, lines);
    let inputs = shape.input_pixels().saturating_mul(shape.input_channels);
    let is_by_blocks = shape.filter_values() > inputs.saturating_mul(MOST_OF_INPUTS);
    let by_blocks = is_by_blocks.then_some(LEAST_BLOCKS);
    Tasks::new(shape, [most, blocks], by_blocks, threads)
}

/// Windows at equal distances.
struct Rows<'a> {
    /// What they are in, and where in it that of the first pixel begins.
    values: &'a [u8],
    first: usize,
    /// From a pixel to the next one, in bytes.
    step: usize,
    /// From a line to the next one, in pixels.
    line: usize,
    /// From a window's beginning to its runs.
    runs: [usize; MOST_RUNS],
    run_count: usize,
}

impl<'a> Rows<'a> {
    /// Of an image's lines from `y` on.
    fn of_image(shape: &Shape, input: Image<'a, u8>, [image, y]: [usize; 2]) -> Self {
        let [height, width] = shape.input;
        let stride = input.pixel_stride;
        let mut runs = [0; MOST_RUNS];
        let taps = (0..shape.taps()).map(|tap| (tap / shape.filter[1], tap % shape.filter[1]));
        for (run, (i, j)) in runs.iter_mut().zip(taps) {
            *run = (i * shape.dilation[0] * width + j * shape.dilation[1]) * stride;
        }
        Self {
            values: input.values,
            first: (image * height + y * shape.stride[0]) * width * stride,
            step: shape.stride[1] * stride,
            line: line_rows(shape, width).expect("as was asked before"),
            runs,
            run_count: shape.taps(),
        }
    }

    /// Of a copy.
    fn of_copy(shape: &Shape, stage: &Stage, values: &'a [u8], offsets: &[usize]) -> Self {
        let mut runs = [0; MOST_RUNS];
        runs[..offsets.len()].copy_from_slice(offsets);
        let row_pixels = stage.row_bytes / shape.input_channels;
        Self {
            values,
            first: 0,
            step: shape.stride[1] * shape.input_channels,
            line: line_rows(shape, row_pixels).expect("as was asked before"),
            runs,
            run_count: offsets.len(),
        }
    }
}

/// A task on its way.
struct Work<'a> {
    matrix: &'a Matrix,
    pass: &'a Pass<'a>,
    blocks: Range<usize>,
    /// Whether nothing was computed yet.
    is_first: bool,
    pace: Pace<'a>,
}

impl Work<'_> {
    /// Computes lines of this number of pixels, from `x` of the first one on, which is the pixel `first` of the output. Returns
    /// whether that was done: not if it is too late.
    ///
    /// # Safety
    /// No one else touches these pixels of the output; they are at equal distances. This thread's tiles are set up.
    unsafe fn compute(
        &mut self,
        rows: &Rows<'_>,
        first: usize,
        x: usize,
        [lines, wanted]: [usize; 2],
    ) -> bool {
        let Self { matrix, pass, blocks, .. } = self;
        let (shape, output) = (pass.shape, pass.target());
        let runs = &rows.runs[..rows.run_count];
        let run_bytes = matrix.run_bytes_of_grids();
        let begin = rows.first + x * rows.step;
        // What there is behind the first window that can be read.
        let window = runs.iter().max().unwrap_or(&0) + run_bytes;
        let behind = (rows.values.len() - begin).checked_sub(window).expect("a window");
        let pixels = lines * wanted;
        let inputs = shape.taps() * shape.input_channels * pixels;
        let (start, output_step) = (output.places.start(first), output.places.stride());
        // Also the one that the next task begins with, which the same thread is likely to take.
        let nexts = matrix.blocks().iter().cycle().skip(blocks.start + 1);
        for (block, next) in matrix.blocks()[blocks.clone()].iter().zip(nexts) {
            if self.pace.is_over(inputs.saturating_mul(block.channels)) {
                return false;
            }
            let channels = block.channel..block.channel + block.channels;
            let grid = Grid {
                inputs: rows.values[begin..].as_ptr(),
                are_inputs_signed: matrix.common().is_signed,
                row_step: rows.step,
                runs,
                run_bytes,
                readable_before: begin / rows.step,
                readable: behind / rows.step + 1,
                wanted,
                line: rows.line,
                lines,
                row_terms: None,
                weights: matrix.block_weights(block),
                lanes: matrix.block_lanes(block),
                output: output.pixels(start, pixels, channels),
                output_step,
            };
            // What later rows need has been fetched for the first ones.
            let next = if self.is_first { matrix.block_weights(next) } else { std::ptr::null() };
            // SAFETY: the block is one of the matrix, which is for grids. Windows that are said to be readable, before the
            // first one and from it on, are inside of the values, with all that is read of their runs. Outputs were just seen
            // to be there; the rest is the caller's promise.
            unsafe { matrix.compute_grid(block, &grid, next) };
        }
        self.is_first = false;
        true
    }
}
