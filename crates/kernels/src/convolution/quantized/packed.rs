//! [`Packed`]: convolution as a product of the pixels' windows with packed weights, without copying
//! the windows.
#![allow(unsafe_code)]

use super::stage::Stage;
use super::sums::Block;
use super::table::{ENTRIES, FEW_ENTRIES, FEW_PIXELS, PIXELS, PixelLines, Table};
use super::tasks::Tasks;
use super::{Layer, Method, Output, Pass, Wanted};
use crate::convolution::{Pixels, Shape};
#[cfg(target_arch = "x86_64")]
use crate::gemm::quantized::{ByteMatrix, ByteOutputs, SumsOfRows};
use crate::gemm::quantized::{Matrix, Source, TILE_ROWS, Tile, Variant};
use crate::quantization::Signedness;
use crate::requantize::{LANES, Requantization};
use crate::team::{Pace, part};
use crate::{LINE_BYTES, Line, Preparation, TooLarge};
use std::ops::Range;

/// Pixels whose rows are read in place together, at most.
const ROW_PIXELS: usize = 96;

/// Pixels and channels whose sums are given to be made something of together, at most: whole tiles, and vectors, of all kernels.
const SUM_PIXELS: usize = 48;
const SUM_CHANNELS: usize = 4 * LANES;

/// Groups that are prepared from one question whether to go on to the next.
const GROUPS_BETWEEN: usize = 256;

/// A copy of rows of the input should stay in the first cache.
const STAGE_BYTES: usize = 24 << 10;

/// Fewer channels than this are read a row of the window at a time.
const SHALLOW: usize = 16;
/// As [`SHALLOW`], where rows are copied anyway, and rows of the output have at least [`LEAST_WIDTH_TO_STAGE`] pixels: only those
/// of one row are computed together then.
const SHALLOW_TO_COPY: usize = 33;
const LEAST_WIDTH_TO_STAGE: usize = 24;
/// As [`SHALLOW`], where inputs are made unsigned: that is done once for each of a copied image, and not for each tap. With any
/// number of channels convolutions of 128 to 512 of them took longer than with copies of rows: resnet50 with VNNI 1.10 of its time.
const SHALLOW_TO_FLIP: usize = 65;

/// Few enough rows that the weights, which all of them share, are better cut than the rows.
const FEW_ROWS: usize = 96;

/// Blocks of channels that are worth a task which copies rows: each task copies them again.
const BLOCKS_TO_COPY: usize = 4;

/// Bytes of rows that are copied together for kernels that want that: many, since all weights are read
/// again for each table, but they should stay in the second cache, together with those of a block.
const COPIED_BYTES: usize = 256 << 10;

/// A convolution for one of the fast kernels.
#[derive(Debug)]
pub(super) struct Packed {
    /// That of the convolution; of a matrix product whose rows are copied, pixels below each other in one image.
    shape: Shape,
    products: Products,
    /// If windows are read from copies.
    stage: Option<Stage>,
    /// Offsets of the runs of a window in a copy.
    run_offsets: Vec<usize>,
    /// A pixel in the padding, if it is always the same one.
    padding: Vec<u8>,
    /// Lines for a pixel in the padding if each image has its own.
    padding_lines: usize,
    /// Of the output's pixels, or lines if there are copies, and the blocks of all groups.
    tasks: Tasks,
    /// Blocks of a group's channels.
    blocks: usize,
    /// Bytes of a run.
    run_bytes: usize,
    /// Rows that are computed together: fewer take as long.
    rows_at_once: usize,
    /// The bits of copied inputs that are inverted.
    input_flip: u8,
    /// Pixels of a table, at most.
    table_pixels: usize,
    /// Lines for rows as the products want them, and for sums.
    row_lines: usize,
}

/// How windows are multiplied by weights.
#[derive(Debug)]
enum Products {
    /// By group.
    Rows(Vec<Matrix>),
    /// Without groups.
    #[cfg(target_arch = "x86_64")]
    Bytes(Box<ByteMatrix>),
}

impl Packed {
    /// None if the window is so large that the table of its taps would not fit, or copies of rows would be so
    /// large that it is not worth it; or once it is too late.
    ///
    /// # Errors
    /// If the packed weights are more than may be taken.
    pub(super) fn new(
        shape: &Shape,
        wanted: Wanted<'_>,
        variant: &'static Variant,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let depth = shape.group_input_channels();
        let is_product = shape.is_matrix_product();
        // Behind images whose sums are wanted there is more to be read.
        let are_runs_whole =
            depth.is_multiple_of(4) || is_product && matches!(wanted, Wanted::Sums(_));
        let shape = &if is_product && !are_runs_whole {
            let sizes = [shape.output_pixels(), shape.input_channels, shape.output_channels];
            Shape { groups: shape.groups, ..Shape::matrix_product(sizes) }
        } else {
            *shape
        };
        let [height, width] = shape.filter;
        if shape.filter_values() == 0 {
            return Ok(None);
        }
        let is_mergeable = shape.groups == 1 && shape.dilation[1] == 1;
        let is_table_full = shape.taps() > ENTRIES / TILE_ROWS;
        // Where rows are copied, a run of a whole row of the window takes as long as one of a tap.
        let is_copied = variant.copies_rows() && shape.output[1] >= LEAST_WIDTH_TO_STAGE;
        let is_flipped = wanted.signedness() == Signedness::Signed && variant.takes_unsigned();
        let shallow = match (is_copied, is_flipped) {
            (true, _) => SHALLOW_TO_COPY,
            (_, true) => SHALLOW_TO_FLIP,
            _ => SHALLOW,
        };
        let is_shallow = width > 1 && depth < shallow && is_mergeable;
        let is_staged = !are_runs_whole || is_shallow || (is_table_full && is_mergeable);
        let is_merged = is_staged && is_mergeable;
        let (runs, run_bytes) =
            if is_merged { (height, width * depth) } else { (height * width, depth) };
        if runs > ENTRIES {
            return Ok(None);
        }
        let stage = if is_staged { Stage::new(shape, STAGE_BYTES) } else { None };
        let run_offsets = stage.map_or(Some(Vec::new()), |stage| {
            let offset = |run: usize| {
                let (i, j) = if is_merged { (run, 0) } else { (run / width, run % width) };
                let row = i.checked_mul(shape.dilation[0])?.checked_mul(stage.row_bytes)?;
                let pixel = j.checked_mul(shape.dilation[1])?.checked_mul(shape.input_channels)?;
                row.checked_add(pixel)
            };
            (0..runs).map(offset).collect()
        });
        let Some(run_offsets) = run_offsets.filter(|_| stage.is_some() == is_staged) else {
            return Ok(None);
        };
        let group_channels = shape.group_output_channels();
        let source = |group: usize| Source {
            weights: wanted.weights().behind(group * group_channels * runs * run_bytes),
            channels: group_channels,
            runs,
            run_bytes,
            bias: match wanted {
                Wanted::Outputs(layer) => &layer.bias[group * group_channels..][..group_channels],
                Wanted::Sums(_) => &[],
            },
        };
        #[cfg(target_arch = "x86_64")]
        let bytes = if shape.groups == 1 {
            let (source, rows) = (source(0), shape.output_pixels());
            let results = match wanted {
                Wanted::Outputs(layer) => Some((layer.activations, &layer.requantization)),
                Wanted::Sums(_) => None,
            };
            ByteMatrix::new(&source, rows, results, preparation)?
                .map(|matrix| Products::Bytes(Box::new(matrix)))
        } else {
            None
        };
        #[cfg(not(target_arch = "x86_64"))]
        let bytes = None;
        let products = if let Some(products) = bytes {
            products
        } else {
            let mut matrices = preparation.room(shape.groups, "groups")?;
            for group in 0..shape.groups {
                // Of few channels a matrix is made without a question.
                if group.is_multiple_of(GROUPS_BETWEEN) && preparation.is_over() {
                    return Ok(None);
                }
                let source = source(group);
                let mut matrix = match wanted {
                    Wanted::Outputs(&Layer { activations, ref requantization, .. }) => {
                        // Not all of them for each group: there may be one group for each channel.
                        let multipliers = match &requantization.multipliers[..] {
                            one @ [_] => one,
                            each => &each[group * group_channels..][..group_channels],
                        };
                        let multipliers =
                            preparation.copied(multipliers, "multipliers of channels")?;
                        let requantization = Requantization { multipliers, ..*requantization };
                        Matrix::new(variant, &source, activations, requantization, preparation)?
                    }
                    Wanted::Sums(_) => Matrix::of_sums(variant, &source, preparation)?,
                };
                if is_staged {
                    matrix.take_unsigned();
                }
                matrices.push(matrix);
            }
            if matrices.is_empty() {
                return Ok(None);
            }
            Products::Rows(matrices)
        };
        let (blocks, least_rows, rows_at_once) = match &products {
            Products::Rows(matrices) => (matrices[0].blocks().len(), 2 * TILE_ROWS, 1),
            #[cfg(target_arch = "x86_64")]
            Products::Bytes(matrix) => {
                (matrix.blocks(), ByteMatrix::TASK_ROWS, ByteMatrix::VECTOR_ROWS)
            }
        };
        let (input_flip, least_blocks) = match &products {
            Products::Rows(matrices) if matrices[0].copied_row_bytes().is_some() => {
                (matrices[0].input_flip(), BLOCKS_TO_COPY)
            }
            Products::Rows(matrices) => (matrices[0].input_flip(), 1),
            #[cfg(target_arch = "x86_64")]
            Products::Bytes(_) => (0, 1),
        };
        let rows = if is_staged { shape.batch * shape.output[0] } else { shape.output_pixels() };
        let row_pieces = if is_staged { rows } else { rows.div_ceil(least_rows) };
        let by_blocks = (!is_staged && rows <= FEW_ROWS).then_some(least_blocks);
        let all_blocks = shape.groups * blocks;
        let tasks = Tasks::new(shape, [row_pieces, all_blocks], by_blocks, preparation.threads());
        let (padding, padding_lines) = match wanted {
            Wanted::Outputs(layer) => {
                let pixel = shape.input_channels.max(1);
                (preparation.filled(layer.padding(), pixel, "a pixel of padding")?, 0)
            }
            Wanted::Sums(_) if is_staged || is_product => (Vec::new(), 0),
            Wanted::Sums(_) => (Vec::new(), shape.input_channels.div_ceil(LINE_BYTES)),
        };
        let together = if let Some(stage) = stage {
            stage.pixels_in_turn(shape, stage.output_rows)
        } else {
            rows.div_ceil(rows_at_once).div_ceil(tasks.pieces.max(1)) * rows_at_once
        };
        let (table_pixels, row_lines) = row_lines(shape, &products, [runs, run_bytes], together);
        let packed = Self {
            shape: *shape,
            products,
            stage,
            run_offsets,
            padding,
            padding_lines,
            tasks,
            blocks,
            run_bytes,
            rows_at_once,
            input_flip,
            table_pixels,
            row_lines,
        };
        preparation.check_scratch::<Line>(&[tasks.count(), packed.task_lines()])?;
        Ok(Some(packed))
    }

    /// Whether bytes are multiplied, and not 16-bit numbers, where products of bytes saturate.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn multiplies_bytes(&self) -> bool {
        matches!(self.products, Products::Bytes(_))
    }

    /// Whether the kernel never sees signed inputs, though they are.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn makes_inputs_unsigned(&self) -> bool {
        let Products::Rows(matrices) = &self.products else { return false };
        let matrix = &matrices[0];
        matrix.common().is_signed
            && (matrix.input_flip() != 0 || matrix.copied_row_bytes().is_some())
    }

    /// Whether there are never many addresses in a table.
    fn is_table_small(&self) -> bool {
        let runs = if self.stage.is_some() { self.run_offsets.len() } else { self.shape.taps() };
        self.table_pixels <= FEW_PIXELS && self.table_pixels * runs <= FEW_ENTRIES
    }

    /// Lines of a copy of rows of the input.
    fn stage_lines(&self) -> usize {
        self.stage.map_or(0, |stage| stage.bytes.div_ceil(LINE_BYTES))
    }
}

impl Method for Packed {
    fn name(&self) -> &'static str {
        match &self.products {
            Products::Rows(matrices) => matrices[0].variant.name(),
            #[cfg(target_arch = "x86_64")]
            Products::Bytes(matrix) => matrix.name(),
        }
    }

    fn tasks(&self) -> usize {
        self.tasks.count()
    }

    fn task_lines(&self) -> usize {
        self.stage_lines() + self.padding_lines + self.row_lines
    }

    unsafe fn task(&self, pass: &Pass<'_>, task: usize, scratch: &mut [Line]) {
        let shape = &self.shape;
        let pass = &Pass { shape, ..*pass };
        let (copy, rows) = scratch.split_at_mut(self.stage_lines());
        let (padding, rows) = rows.split_at_mut(self.padding_lines);
        let _tiles = match &self.products {
            Products::Rows(matrices) => Some(matrices[0].set_up_tiles()),
            #[cfg(target_arch = "x86_64")]
            Products::Bytes(_) => None,
        };
        let (pixels, at_once) = (shape.output_pixels(), self.rows_at_once);
        let pieces = self.tasks.pieces;
        for (piece, blocks) in self.tasks.parts(task) {
            match &self.stage {
                None => {
                    // The pixels fit in memory, and so do some more.
                    let all = part(pixels.div_ceil(at_once), pieces, piece);
                    let (first, end) = (all.start * at_once, (all.end * at_once).min(pixels));
                    let work = Work { convolution: self, pass, blocks, first };
                    let padding = bytemuck::cast_slice_mut(padding);
                    if self.is_table_small() {
                        work.run_direct::<FEW_ENTRIES, FEW_PIXELS>(end, padding, rows);
                    } else {
                        work.run_direct::<ENTRIES, PIXELS>(end, padding, rows);
                    }
                }
                Some(stage) => {
                    let lines = part(shape.batch * shape.output[0], pieces, piece);
                    let first = lines.start * shape.output[1];
                    let work = Work { convolution: self, pass, blocks, first };
                    let copy = bytemuck::cast_slice_mut(copy);
                    if self.is_table_small() {
                        work.run_staged::<FEW_ENTRIES, FEW_PIXELS>(stage, lines, copy, rows);
                    } else {
                        work.run_staged::<ENTRIES, PIXELS>(stage, lines, copy, rows);
                    }
                }
            }
        }
    }
}

/// Pixels of a table, at most, and lines that their rows take as the products want them; this many pixels
/// are computed one after the other.
#[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))] // Only products of bytes ask how many.
fn row_lines(
    shape: &Shape,
    products: &Products,
    [runs, run_bytes]: [usize; 2],
    together: usize,
) -> (usize, usize) {
    let pixels = Table::pixels(runs, run_bytes);
    let matrix = match products {
        Products::Rows(matrices) => &matrices[0],
        #[cfg(target_arch = "x86_64")]
        Products::Bytes(matrix) => {
            let pixels = ByteMatrix::rows_together(together, pixels);
            return (pixels, matrix.scratch_lines(pixels));
        }
    };
    let Some(block) = matrix.blocks().first() else { return (pixels, 0) };
    // Whole tiles, and about the same number each time.
    let tile_rows = matrix.tile_rows(block);
    let row_bytes = matrix.copied_row_bytes();
    let fitting = row_bytes.map_or(ROW_PIXELS, |bytes| COPIED_BYTES / bytes.max(1));
    let most = pixels.min(ROW_PIXELS).min((fitting / tile_rows).max(1) * tile_rows);
    let even = together.div_ceil(together.div_ceil(most).max(1)).next_multiple_of(tile_rows);
    let pixels = even.min(most).min(shape.output_pixels().max(1));
    // Row and tile are shorter than the packed weights.
    (pixels, row_bytes.map_or(0, |bytes| (pixels * bytes).div_ceil(LINE_BYTES)))
}

/// A task on its way.
struct Work<'a> {
    convolution: &'a Packed,
    pass: &'a Pass<'a>,
    /// Of all groups.
    blocks: Range<usize>,
    /// The first pixel that it computes.
    first: usize,
}

impl Work<'_> {
    /// Groups with the blocks of each that the task computes.
    fn groups(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let each = self.convolution.blocks;
        let Range { start, end } = self.blocks;
        (start / each..end.div_ceil(each)).map(move |group| {
            let begin = group * each;
            (group, start.max(begin) - begin..end.min(begin + each) - begin)
        })
    }

    /// Output pixels to before `end`, read in place. An image's own padding is entered where there is memory for it.
    fn run_direct<const E: usize, const P: usize>(
        &self,
        end: usize,
        own_padding: &mut [u8],
        rows: &mut [Line],
    ) {
        let Pass { shape, input, output, stop } = *self.pass;
        let mut table = Table::<E>::new();
        let depth = shape.group_input_channels();
        let image_pixels = shape.output[0] * shape.output[1];
        let mut padded = None;
        let mut next = self.first;
        let mut pace = Pace::new(stop);
        while next < end {
            let first = next;
            let mut count =
                self.convolution.table_pixels.min(end - first).min(output.in_line(first));
            let padding = match output {
                Output::Sums(sums) if !own_padding.is_empty() => {
                    let image = first / image_pixels;
                    count = count.min((image + 1) * image_pixels - first);
                    if padded.replace(image) != Some(image) {
                        own_padding.fill(sums.zero_point(image));
                    }
                    &*own_padding
                }
                _ => &self.convolution.padding[..],
            };
            next += count;
            for (index, (group, blocks)) in self.groups().enumerate() {
                if index == 0 {
                    let (values, pixel_stride) = (input.values, input.pixel_stride);
                    let image = Pixels { values, pixel_stride, channel: 0, padding };
                    table.fill(shape, &image, first..next);
                    table.advance(count * shape.taps(), group * depth);
                } else {
                    table.advance(count * shape.taps(), depth);
                }
                // SAFETY: the table has the addresses of the group's channels of all taps: inside of the image, whose size
                // was checked, or of the padding, which is as long as a pixel. Their number is a multiple of four, or
                // behind the image there are more bytes, as `SumConvolution::run` checks.
                unsafe {
                    let pixels = (first, count);
                    self.compute::<P>(table.start(), group, blocks, pixels, rows, &mut pace);
                }
            }
        }
    }

    /// Output rows of all images, read from copies.
    fn run_staged<const E: usize, const P: usize>(
        &self,
        stage: &Stage,
        lines: Range<usize>,
        copy: &mut [u8],
        memory: &mut [Line],
    ) {
        let Pass { shape, input, output, stop } = *self.pass;
        let Packed { table_pixels, input_flip, run_bytes, .. } = *self.convolution;
        let run_offsets = &self.convolution.run_offsets;
        let mut table = Table::<E>::new();
        let padding = |image: usize| match output {
            Output::Bytes(_) => (self.convolution.padding[0], input_flip),
            Output::Sums(sums) => (sums.zero_point(image), input_flip),
        };
        let [height, width] = shape.output;
        let Range { start: mut row, end } = lines;
        let mut pace = Pace::new(stop);
        while row < end {
            let (batch, y) = (row / height, row % height);
            let rows = stage.output_rows.min(end - row).min(height - y);
            stage.copy(shape, input, padding(batch), [batch, y, rows], copy, &mut pace);
            if pace.is_over(0) {
                return;
            }
            let read = stage.end(shape, rows, run_offsets, run_bytes);
            assert!(read <= copy.len() as u128, "runs end {read} bytes into a copy");
            let together = stage.pixels_together(shape, rows);
            let in_turn = stage.pixels_in_turn(shape, rows);
            let lines = PixelLines {
                pixels: together,
                step: shape.stride[0] * stage.row_bytes,
                pixel_step: shape.stride[1] * shape.input_channels,
            };
            let (mut pixel, mut left) = (0, in_turn);
            while pixel < rows * width {
                let first = row * width + pixel;
                let count = table_pixels.min(left).min(output.in_line(first));
                for (group, blocks) in self.groups() {
                    let start = &copy[group * shape.group_input_channels()..];
                    table.fill_lines(start, lines, (pixel, count), run_offsets);
                    // SAFETY: runs are inside of the copy: `Stage::end` is where the last of
                    // these rows' ends, and was compared with the copy. There are as many
                    // addresses as `fill_lines` entered, one for each run of each pixel.
                    unsafe {
                        let pixels = (first, count);
                        self.compute::<P>(table.start(), group, blocks, pixels, memory, &mut pace);
                    }
                }
                (pixel, left) = (pixel + count, left - count);
                if left == 0 {
                    left = in_turn;
                }
            }
            row += rows;
        }
    }

    /// Computes the pixels of a table, at most `P` of them.
    ///
    /// # Safety
    /// The table holds the addresses of all runs of `count` pixels, at least one, as [`Matrix::compute_rows`]
    /// wants them. They are side by side in a line of the output, where only this task touches these
    /// blocks' channels. What [`Matrix::set_up_tiles`] gave is not dropped before.
    unsafe fn compute<const P: usize>(
        &self,
        table: *const *const u8,
        group: usize,
        blocks: Range<usize>,
        (first, count): (usize, usize),
        memory: &mut [Line],
        pace: &mut Pace<'_>,
    ) {
        let Pass { shape, output, .. } = *self.pass;
        let matrix = match &self.convolution.products {
            Products::Rows(matrices) => &matrices[group],
            #[cfg(target_arch = "x86_64")]
            Products::Bytes(matrix) => {
                let blocks = (blocks.start, blocks.end);
                let mut give;
                let to = match output {
                    Output::Bytes(to) => {
                        let (start, step) = (to.places.start(first), to.places.stride());
                        ByteOutputs::Bytes(to.pixels(start, count, 0..shape.output_channels), step)
                    }
                    Output::Sums(to) => {
                        give = |SumsOfRows { rows, channels, sums, step }: SumsOfRows<'_>| {
                            let pixels = first + rows.start..first + rows.end;
                            let offset = Some(0);
                            // SAFETY: the caller's promise.
                            unsafe { to.store(Block { pixels, channels, sums, step, offset }) };
                        };
                        ByteOutputs::Sums(&mut give)
                    }
                };
                // SAFETY: the caller's promise for the table and that no one else touches the outputs.
                unsafe { matrix.compute(table, count, blocks, to, memory, pace) };
                return;
            }
        };
        let mut terms = [0_i32; P];
        // SAFETY: the caller's promise.
        let row_terms = unsafe { matrix.row_terms(table, count, &mut terms[..count]) };
        // Also the one that the next task begins with, which the same thread is likely to take.
        let nexts = matrix.blocks().iter().cycle().skip(blocks.start + 1);
        let inputs = matrix.common().runs * matrix.common().run_bytes * count;
        let (mut start_of_rows, mut table_step) = (table, count);
        let mut copied_rows = [std::ptr::null(); P];
        if matrix.copied_row_bytes().is_some() {
            if pace.is_over(inputs) {
                return;
            }
            let copies = bytemuck::cast_slice_mut(memory);
            // SAFETY: the caller's promise.
            unsafe { matrix.copy_rows(table, count, copies, &mut copied_rows[..count]) };
            (start_of_rows, table_step) = (copied_rows.as_ptr(), 0);
        }
        let mut sums = None;
        for (block, next) in matrix.blocks()[blocks].iter().zip(nexts) {
            if pace.is_over(inputs.saturating_mul(block.channels)) {
                return;
            }
            let channel = group * shape.group_output_channels() + block.channel;
            let channels = channel..channel + block.channels;
            // Where multiplying takes less than fetching, what later rows need has been fetched for the first ones.
            let is_in_cache = matrix.variant.copies_rows() && first > self.first;
            let next = if is_in_cache { std::ptr::null() } else { matrix.block_weights(next) };
            let tile = |rows: Range<usize>, output: *mut u8, output_step: usize| Tile {
                table: start_of_rows.wrapping_add(rows.start),
                table_step,
                rows: rows.len(),
                row_terms: row_terms.map(|terms| &terms[rows]),
                weights: matrix.block_weights(block),
                lanes: matrix.block_lanes(block),
                output,
                output_step,
            };
            match output {
                Output::Bytes(to) => {
                    let (start, step) = (to.places.start(first), to.places.stride());
                    let tile = tile(0..count, to.pixels(start, count, channels), step);
                    // SAFETY: the caller's promise for the table and that no one else touches the outputs, which
                    // were just checked to exist; weights and constants are the block's.
                    unsafe { matrix.compute_rows(block, &tile, next) };
                }
                Output::Sums(to) => {
                    assert!(block.vectors * LANES <= SUM_CHANNELS, "{} vectors", block.vectors);
                    let sums = sums.get_or_insert([[0; SUM_CHANNELS]; SUM_PIXELS]);
                    let offset = Some(matrix.variant.input_offset());
                    for start in (0..count).step_by(SUM_PIXELS) {
                        let rows = start..count.min(start + SUM_PIXELS);
                        let output = sums[..rows.len()].as_mut_ptr().cast();
                        let tile = tile(rows.clone(), output, size_of_val(&sums[0]));
                        // Once is enough.
                        let next = if rows.end == count { next } else { std::ptr::null() };
                        // SAFETY: the caller's promise for the table; weights and constants are the block's. There is room
                        // for the sums of 64 lanes in each row, which is enough for the block's vectors.
                        unsafe { matrix.compute_rows(block, &tile, next) };
                        let block = Block {
                            pixels: first + rows.start..first + rows.end,
                            channels: channels.clone(),
                            sums: sums.as_flattened(),
                            step: SUM_CHANNELS,
                            offset,
                        };
                        // SAFETY: the caller's promise.
                        unsafe { to.store(block) };
                    }
                }
            }
        }
    }
}
