//! [`Convolution`]: layers of floats whose weights have 8 bits, and whose inputs get 8 bits while
//! they run. A fully connected layer is the case of images of one pixel, one for each row
//! ([`Convolution::fully_connected`]).
//!
//! Each image of the batch has a scale and a zero point of its own, by the range of its elements and 0:
//!
//! ```text
//! factor = 255 / (greatest - least), or 1 if that is infinite
//! zero   = round(clamp(z)),  z = -128 - least * factor    if least * factor + greatest * factor > 1
//!                                 127 - greatest * factor  otherwise
//! q      = round(clamp(x * factor, -128 - zero, 127 - zero)) + zero
//! output = clamp(sum of (q - zero) * weight / factor * scale + bias)
//! ```
//!
//! Numbers are rounded to the nearest, halves to even ones. Sums have 32 bits and wrap. If an element is
//! infinite or NaN, or `greatest - least` is infinite, all outputs of the image are NaN. So instruction sets
//! differ by the rounding of the last line only. [`Rounding`] stops at `(q - zero) / factor`.
#![allow(unsafe_code)]

mod images;
mod round;
mod rounded;
#[cfg(test)]
mod tests;
mod windows;

pub use round::Rounding;
pub use rounded::RoundedConvolution;

use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::gemm::quantized::{Block, Matrix, Source, Tile, Variant};
use crate::packing::PackedValues;
use crate::parts::{TASKS_BY_THREAD, for_each_task};
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::quantization::{Signedness, Weights};
use crate::requantize::LANES;
use crate::team::{Pace, part};
use crate::vector::{Isa, Kernel, Simd};
use crate::{Epilogue, LINE_BYTES, Line, Preparation, Team, TooLarge};
use images::{Images, Meaning};
use std::ops::Range;
use windows::copy_window;

/// Operations that are worth a task of their own.
const OPERATIONS_PER_TASK: u64 = 1_000_000;
/// Few enough rows that the weights, which all of them share, are better cut than the rows.
const FEW_ROWS: usize = 96;
/// Bytes of rows that meet all weights before the next rows do, to stay in the second cache.
const ROWS_BYTES: usize = 256 << 10;
/// Bytes of rows that are copied together, where single ones are that large.
const MOST_ROWS_BYTES: usize = 8 << 20;
/// Rows whose sums are in memory at the same time: whole tiles of all kernels.
const SUM_ROWS: usize = 48;
/// Groups that are prepared from one question whether to go on to the next.
const GROUPS_BETWEEN: usize = 256;
/// Units of a block, at most.
const MOST_UNITS: usize = 4 * LANES;

/// A convolution with its weights packed and its work cut into tasks. A row is what an output pixel sees, a unit is an
/// output channel.
#[derive(Debug)]
pub struct Convolution {
    shape: Shape,
    isa: Isa,
    weights: Packed,
    /// By unit, as the bias and the sums of weights are.
    scales: Vec<f32>,
    bias: Vec<f32>,
    weight_sums: Vec<i32>,
    epilogue: Epilogue,
    images: Images,
    /// Rows that meet all weights before the next rows do.
    together: usize,
    lines: Lines,
    /// Parts of the rows and of the blocks of units that are tasks.
    parts: [usize; 2],
}

#[derive(Debug)]
enum Packed {
    /// As they were given.
    Plain(PackedValues<u8>),
    /// By group; there is one at least.
    Matrices(Vec<Matrix>),
}

/// Lines of scratch memory, in this order.
#[derive(Debug, Clone, Copy)]
struct Lines {
    /// Images of 8-bit numbers.
    images: usize,
    /// What they stand for, and what was found of their parts.
    meanings: usize,
    /// Rows that a task has copied, and rows that it has widened, if the kernel wants them.
    task: [usize; 2],
}

/// Units of a group that are computed together, and where they are in a matrix.
#[derive(Clone, Copy)]
struct Units<'a> {
    first: usize,
    count: usize,
    block: Option<(&'a Matrix, &'a Block)>,
}

/// Rows that are multiplied.
#[derive(Clone, Copy)]
struct Rows<'a> {
    bytes: &'a [u8],
    /// From one row to the next.
    row_bytes: usize,
    /// What the kernel may read of one, from its beginning.
    read_bytes: usize,
}

/// Sums of some rows, each of one block's units.
type SumRows = [[i32; MOST_UNITS]; SUM_ROWS];

impl Convolution {
    /// The product of `rows` rows of `inputs` numbers with weights `[units, inputs]`; each row has a range of its own.
    pub fn fully_connected([rows, inputs, units]: [usize; 3]) -> Shape {
        Shape { batch: rows, ..Shape::matrix_product([1, inputs, units]) }
    }

    /// Packs the signed weights, `[output_channels, filter[0], filter[1], input_channels / groups]`, and cuts the work. There
    /// is one scale, or one for each output channel, as the bias has.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid; if weights, scales or bias are not as many as it says; if this processor does
    /// not have the instruction set.
    pub fn prepare(
        shape: &Shape,
        weights: &[u8],
        scales: &[f32],
        bias: &[f32],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        let (rows, units) = (shape.output_pixels(), shape.output_channels);
        let inputs = shape.taps() * shape.group_input_channels();
        let too_large = TooLarge::beyond_addresses("weights");
        let values = units.checked_mul(inputs).ok_or(too_large)?;
        preparation.check_count(weights.len(), values, "weights");
        assert_eq!(bias.len(), units, "values of the bias");
        assert!([1, units].contains(&scales.len()), "{} scales", scales.len());
        let (set, threads) = (preparation.set(), preparation.threads());
        let scales = match scales {
            [one] => preparation.filled(*one, units, "scales of weights")?,
            each => preparation.copied(each, "scales of weights")?,
        };
        let bias = preparation.copied(bias, "a bias")?;
        let variant =
            Variant::of_rows(set, inputs, rows).filter(|_| ![rows, inputs, units].contains(&0));
        let matrices = match variant {
            Some(variant) => matrices(variant, shape, weights, preparation)?,
            None => None,
        };
        let (packed, weight_sums) = match matrices {
            Some((matrices, sums)) => (Packed::Matrices(matrices), sums),
            None => {
                let plain = preparation.pack(values, |all: &mut [u8], pace| {
                    for part in pace.blocks(values, 1) {
                        all[part.clone()].copy_from_slice(&weights[part]);
                    }
                })?;
                let sums = preparation.derive(units, |sums: &mut [i32], pace| {
                    for (unit, sum) in sums.iter_mut().enumerate() {
                        let weights = &weights[unit * inputs..][..inputs];
                        for part in pace.blocks(inputs, 1) {
                            let each = weights[part].iter().map(|it| i32::from(it.cast_signed()));
                            *sum = each.fold(*sum, i32::wrapping_add);
                        }
                    }
                })?;
                (Packed::Plain(plain), sums)
            }
        };
        let isa = Isa::of(set);
        let wide_bytes = match &packed {
            Packed::Matrices(matrices) => matrices[0].copied_row_bytes().unwrap_or(0),
            Packed::Plain(_) => 0,
        };
        let row_bytes = inputs.checked_next_multiple_of(4).ok_or(too_large)?;
        let copied_bytes = if shape.is_matrix_product() { 0 } else { row_bytes };
        let together =
            together(row_bytes.max(wide_bytes), copied_bytes.max(wide_bytes)).min(rows).max(1);
        let in_lines = |bytes: usize| {
            together.checked_mul(bytes).map(|bytes| bytes.div_ceil(LINE_BYTES)).ok_or(too_large)
        };
        let elements = shape.input[0] * shape.input[1] * shape.input_channels;
        let images = Images::new(isa, [shape.batch, elements], threads);
        let lines = Lines {
            images: images.bytes().div_ceil(LINE_BYTES),
            meanings: images.meaning_lines(),
            task: [in_lines(copied_bytes)?, in_lines(wide_bytes)?],
        };
        let mut layer = Self {
            shape: *shape,
            isa,
            weights: packed,
            scales,
            bias,
            weight_sums,
            epilogue,
            images,
            together,
            lines,
            parts: [1, 1],
        };
        if threads > 1 {
            let most = threads.saturating_mul(TASKS_BY_THREAD);
            let worth = usize::try_from(shape.operations() / OPERATIONS_PER_TASK);
            let tasks = worth.unwrap_or(usize::MAX).clamp(1, most);
            let (groups, blocks) = (rows.div_ceil(SUM_ROWS).max(1), layer.blocks().max(1));
            layer.parts = if rows <= FEW_ROWS {
                let of_blocks = tasks.min(blocks);
                [(tasks / of_blocks).clamp(1, groups), of_blocks]
            } else {
                let of_rows = tasks.min(groups);
                [of_rows, (tasks / of_rows).clamp(1, blocks)]
            };
        }
        let tasks = layer.parts[0] * layer.parts[1];
        let of_tasks = layer.task_lines().checked_mul(tasks).ok_or(too_large)?;
        let all = lines.images.checked_add(lines.meanings).and_then(|it| it.checked_add(of_tasks));
        preparation.check_scratch::<Line>(&[all.ok_or(too_large)?])?;
        Ok(layer)
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        match &self.weights {
            Packed::Plain(_) => "portable",
            Packed::Matrices(matrices) => matrices[0].variant.name(),
        }
    }

    fn task_lines(&self) -> usize {
        self.lines.task[0] + self.lines.task[1]
    }

    /// Elements of a row: what an output pixel sees of a group.
    fn inputs(&self) -> usize {
        self.shape.taps() * self.shape.group_input_channels()
    }

    /// How many blocks of units a group has.
    fn group_blocks(&self) -> usize {
        match &self.weights {
            Packed::Plain(_) => self.shape.group_output_channels().div_ceil(MOST_UNITS),
            Packed::Matrices(matrices) => matrices[0].blocks().len(),
        }
    }

    /// How many all groups have.
    fn blocks(&self) -> usize {
        self.shape.groups * self.group_blocks()
    }

    fn block(&self, index: usize) -> Units<'_> {
        let (group, index) = (index / self.group_blocks(), index % self.group_blocks());
        let units = self.shape.group_output_channels();
        match &self.weights {
            Packed::Plain(_) => {
                let first = index * MOST_UNITS;
                let count = MOST_UNITS.min(units - first);
                Units { first: group * units + first, count, block: None }
            }
            Packed::Matrices(matrices) => {
                let block = &matrices[group].blocks()[index];
                let (first, count) = (group * units + block.channel, block.channels);
                Units { first, count, block: Some((&matrices[group], block)) }
            }
        }
    }

    /// Computes the output of contiguous images.
    ///
    /// # Panics
    /// If the input, the output or the scratch memory is too small.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32], scratch: &mut [Line]) {
        let (rows, units) = (self.shape.output_pixels(), self.shape.output_channels);
        assert!(output.len() >= rows * units, "the output is too small");
        if rows * units == 0 {
            return;
        }
        let (bytes, scratch) = scratch.split_at_mut(self.lines.images);
        let (meanings, scratch) = scratch.split_at_mut(self.lines.meanings);
        let bytes = bytes_of(bytes);
        let meanings = self.images.round(team, input, bytes, meanings);
        let output = DisjointOutput::new(&mut output[..rows * units]);
        let [row_parts, block_parts] = self.parts;
        let groups = rows.div_ceil(SUM_ROWS);
        let scratch = (scratch, self.task_lines());
        for_each_task(team, row_parts * block_parts, scratch, |task, scratch, stop| {
            let (of_rows, of_blocks) = (task / block_parts, task % block_parts);
            let of_rows = part(groups, row_parts, of_rows);
            let of_blocks = part(self.blocks(), block_parts, of_blocks);
            let rows = of_rows.start * SUM_ROWS..rows.min(of_rows.end * SUM_ROWS);
            let images = (&*bytes, meanings);
            self.multiply(images, scratch, rows, of_blocks, &output, &mut Pace::new(stop));
        });
    }

    /// Computes rows of units of some blocks, for which no one else writes outputs.
    fn multiply(
        &self,
        (bytes, meanings): (&[u8], &[Meaning]),
        scratch: &mut [Line],
        rows: Range<usize>,
        blocks: Range<usize>,
        output: &DisjointOutput<'_, f32>,
        pace: &mut Pace<'_>,
    ) {
        let (inputs, units) = (self.inputs(), self.shape.output_channels);
        let pixels = self.shape.output[0] * self.shape.output[1];
        let mut sums = [[0; MOST_UNITS]; SUM_ROWS];
        let _tiles = match &self.weights {
            Packed::Matrices(matrices) => Some(matrices[0].set_up_tiles()),
            Packed::Plain(_) => None,
        };
        let (copies, wide) = scratch.split_at_mut(self.lines.task[0]);
        let (copies, wide) = (bytes_of(copies), bytes_of(wide));
        let by_group = self.group_blocks().max(1);
        let of_groups = blocks.start / by_group..blocks.end.div_ceil(by_group);
        let chunks = rows.clone().step_by(self.together);
        for (start, number) in chunks.flat_map(|it| of_groups.clone().map(move |of| (it, of))) {
            let end = rows.end.min(start.saturating_add(self.together));
            let memory = (&mut *copies, &mut *wide);
            let Some(all) = self.rows((bytes, meanings), number, start..end, memory, pace) else {
                return;
            };
            let of_group =
                blocks.start.max(number * by_group)..blocks.end.min((number + 1) * by_group);
            for index in of_group {
                let block = self.block(index);
                let next = if index + 1 < blocks.end { index + 1 } else { blocks.start };
                for first in (start..end).step_by(SUM_ROWS) {
                    let group = first..end.min(first + SUM_ROWS);
                    // Vectors multiply many at a time.
                    let work = group.len().saturating_mul(block.count).saturating_mul(inputs);
                    if pace.is_over(work / 16) {
                        return;
                    }
                    let of_all = group.start - start..group.end - start;
                    self.sum(all, of_all, block, next, &mut sums, pace);
                    let mut of_rows = [Meaning { step: 0.0, zero_point: 0 }; SUM_ROWS];
                    for (row, of_row) in group.clone().zip(&mut of_rows) {
                        let Meaning { step, zero_point } = meanings[row / pixels];
                        // Images that were no longer wanted have any.
                        let zero_point = zero_point.wrapping_sub(self.input_offset());
                        *of_row = Meaning { step, zero_point };
                    }
                    let range = block.first..block.first + block.count;
                    self.isa.run(Scaled {
                        sums: &sums[..group.len()],
                        meanings: &of_rows[..group.len()],
                        is_one_image: first / pixels == (group.end - 1) / pixels,
                        weight_sums: &self.weight_sums[range.clone()],
                        scales: &self.scales[range.clone()],
                        bias: &self.bias[range],
                        epilogue: &self.epilogue,
                        output,
                        start: first * units + block.first,
                        row_step: units,
                    });
                }
            }
        }
    }

    /// Rows of a group as the kernel wants them: pixels of the images, copies of what the pixels see, or these widened. None
    /// if they are no longer wanted.
    fn rows<'a>(
        &self,
        (bytes, meanings): (&'a [u8], &[Meaning]),
        number: usize,
        rows: Range<usize>,
        (copies, wide): (&'a mut [u8], &'a mut [u8]),
        pace: &mut Pace<'_>,
    ) -> Option<Rows<'a>> {
        let inputs = self.inputs();
        let read_bytes = inputs.next_multiple_of(4);
        let narrow = if self.shape.is_matrix_product() {
            let pixel = self.shape.input_channels;
            let first = rows.start * pixel + number * inputs;
            Rows { bytes: &bytes[first..], row_bytes: pixel, read_bytes }
        } else {
            for (row, to) in rows.clone().zip(copies.chunks_exact_mut(read_bytes.max(1))) {
                let to = &mut to[..inputs];
                copy_window(&self.shape, (bytes, meanings), [number, row], to, pace)?;
            }
            Rows { bytes: copies, row_bytes: read_bytes, read_bytes }
        };
        let Packed::Matrices(matrices) = &self.weights else { return Some(narrow) };
        let matrix = &matrices[number];
        let Some(wide_bytes) = matrix.copied_row_bytes() else { return Some(narrow) };
        let all = wide.chunks_exact_mut(wide_bytes.max(1));
        for (row, wide) in (0..rows.len()).zip(all) {
            if pace.is_over(inputs / 16) {
                return None;
            }
            let from = &narrow.bytes[row * narrow.row_bytes..][..read_bytes];
            let mut widened = [std::ptr::null()];
            let wide = bytemuck::cast_slice_mut(wide);
            // SAFETY: the table has the address of one row, whose only run has as many bytes as inputs, and which
            // goes on to a multiple of four, as was checked when it was cut out.
            unsafe { matrix.copy_rows(&from.as_ptr(), 1, wide, &mut widened) };
        }
        Some(Rows { bytes: wide, row_bytes: wide_bytes, read_bytes: wide_bytes })
    }

    /// What stored inputs are less when the kernel sees them.
    fn input_offset(&self) -> i32 {
        match &self.weights {
            Packed::Plain(_) => 0,
            Packed::Matrices(matrices) => matrices[0].variant.input_offset(),
        }
    }

    /// Sums of products of rows, [`SUM_ROWS`] at most, with the weights of a block's units. What
    /// [`Matrix::set_up_tiles`] gave is not dropped before.
    fn sum(
        &self,
        all: Rows<'_>,
        rows: Range<usize>,
        units: Units<'_>,
        next: usize,
        sums: &mut SumRows,
        pace: &mut Pace<'_>,
    ) {
        assert!(rows.len() <= SUM_ROWS, "{} rows", rows.len());
        let inputs = self.inputs();
        let row = |row: usize| &all.bytes[row * all.row_bytes..][..all.read_bytes];
        let (matrix, block) = match (&self.weights, units.block) {
            (Packed::Matrices(_), Some(block)) => block,
            (Packed::Plain(weights), _) => {
                let weights = weights.values();
                for (row, sums) in rows.map(row).zip(sums) {
                    for (unit, sum) in (units.first..).zip(&mut sums[..units.count]) {
                        let weights = &weights[unit * inputs..][..inputs];
                        *sum = 0;
                        for part in pace.blocks(inputs, 1) {
                            let pairs = row[part.clone()].iter().zip(&weights[part]);
                            let products =
                                pairs.map(|(q, w)| i32::from(*q) * i32::from(w.cast_signed()));
                            *sum = products.fold(*sum, i32::wrapping_add);
                        }
                    }
                }
                return;
            }
            (Packed::Matrices(_), None) => unreachable!("a block of no matrix"),
        };
        let mut table = [std::ptr::null(); SUM_ROWS];
        let count = rows.len();
        for (address, index) in table.iter_mut().zip(rows) {
            *address = row(index).as_ptr();
        }
        let output: &mut [u8] = bytemuck::cast_slice_mut(&mut sums[..count]);
        assert!(block.vectors * LANES <= MOST_UNITS, "{} vectors", block.vectors);
        let tile = Tile {
            table: table.as_ptr(),
            table_step: count,
            rows: count,
            row_terms: None,
            weights: matrix.block_weights(block),
            lanes: matrix.block_lanes(block),
            output: output.as_mut_ptr(),
            output_step: size_of::<[i32; MOST_UNITS]>(),
        };
        let next = match self.block(next).block {
            Some((matrix, block)) => matrix.block_weights(block),
            None => unreachable!("a block of no matrix"),
        };
        // SAFETY: the block is the matrix's. The table has the addresses of `count` rows of a single run,
        // each of `read_bytes` bytes, which was checked when it was cut out: of widened rows as many as the
        // matrix says, of others the inputs rounded up to a multiple of four. The weights are the block's.
        // There is room for the sums of 64 lanes in each of `count` rows, which is enough for the block's
        // vectors, as was checked, and it is borrowed exclusively.
        unsafe { matrix.compute_rows(block, &tile, next) };
    }
}

/// Input: the floats.
impl PreparedKernel for Convolution {
    fn name(&self) -> String {
        let layer = if self.shape.input == [1, 1] && self.shape.filter == [1, 1] {
            "fully connected".to_owned()
        } else {
            self.shape.name(false)
        };
        format!("dynamic {layer} gemm i8 {}", self.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        self.run(team, inputs.of(0), output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let Lines { images, meanings, .. } = self.lines;
        (images + meanings + self.parts[0] * self.parts[1] * self.task_lines()) * LINE_BYTES
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

/// The matrix of each group, and the sums of all units' weights.
type WithSums = (Vec<Matrix>, Vec<i32>);

/// The weights of each group in the order in which a kernel reads them, with their sums; none if there is no time for many
/// groups.
///
/// # Errors
/// If they take more memory than they may.
fn matrices(
    variant: &'static Variant,
    shape: &Shape,
    weights: &[u8],
    preparation: &mut Preparation,
) -> Result<Option<WithSums>, TooLarge> {
    let (units, run_bytes) =
        (shape.group_output_channels(), shape.taps() * shape.group_input_channels());
    let mut matrices = preparation.room(shape.groups, "groups")?;
    let mut sums = preparation.room(shape.output_channels, "sums of weights")?;
    let weights = Weights { values: weights, signedness: Signedness::Signed, zero_point: 0 };
    for group in 0..shape.groups {
        // Of few channels a matrix is made without a question.
        if group.is_multiple_of(GROUPS_BETWEEN) && group > 0 && preparation.is_over() {
            return Ok(None);
        }
        let weights = weights.behind(group * units * run_bytes);
        let source = Source { weights, channels: units, runs: 1, run_bytes, bias: &[] };
        let (matrix, of_group) = Matrix::of_sums(variant, &source, preparation)?;
        matrices.push(matrix);
        sums.extend_from_slice(&of_group);
    }
    Ok(Some((matrices, sums)))
}

/// Memory of whole lines.
fn bytes_of(lines: &mut [Line]) -> &mut [u8] {
    bytemuck::cast_slice_mut(lines)
}

/// Rows that meet all weights before the next rows do, by the bytes of a row and those of it that are copied.
fn together(row_bytes: usize, copied_bytes: usize) -> usize {
    let fitting = ROWS_BYTES / row_bytes.max(1);
    if fitting >= SUM_ROWS {
        fitting - fitting % SUM_ROWS
    } else {
        (MOST_ROWS_BYTES / copied_bytes.max(1)).clamp(1, SUM_ROWS)
    }
}

/// From the sums of rows to outputs, which are one task's.
struct Scaled<'a> {
    sums: &'a [[i32; MOST_UNITS]],
    /// Of the images that rows are of, with zero points as the sums have them.
    meanings: &'a [Meaning],
    is_one_image: bool,
    weight_sums: &'a [i32],
    scales: &'a [f32],
    bias: &'a [f32],
    epilogue: &'a Epilogue,
    output: &'a DisjointOutput<'a, f32>,
    /// The first output of the first row.
    start: usize,
    /// From the outputs of one row to those of the next.
    row_step: usize,
}

impl Kernel for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let units = self.bias.len();
        for first in (0..units).step_by(S::LANES) {
            let range = first..units.min(first + S::LANES);
            let mut of_weights = [0; LANES];
            of_weights[..range.len()].copy_from_slice(&self.weight_sums[range.clone()]);
            let of_weights = simd.iload(&of_weights);
            let scale = simd.load_partial(&self.scales[range.clone()], 0.0);
            let bias = simd.load_partial(&self.bias[range.clone()], 0.0);
            let of_image = |meaning: Meaning| {
                let offset = simd.imul(of_weights, simd.isplat(meaning.zero_point));
                // In this order nothing overflows that the output does not.
                (offset, simd.mul(simd.splat(meaning.step), scale))
            };
            let of_all = of_image(self.meanings[0]);
            for (row, (sums, meaning)) in self.sums.iter().zip(self.meanings).enumerate() {
                let (offset, scale) = if self.is_one_image { of_all } else { of_image(*meaning) };
                let sums = simd.isub(simd.iload(&sums[first..]), offset);
                let value = simd.fma(simd.to_f32(sums), scale, bias);
                let value = self.epilogue.apply(simd, value);
                let at = self.start + row * self.row_step + first;
                // SAFETY: outputs of one task, which has no other slice of them.
                let output = unsafe { self.output.slice(at, range.len()) };
                if range.len() == S::LANES {
                    simd.store(value, output);
                } else {
                    simd.store_partial(value, output);
                }
            }
        }
    }
}
