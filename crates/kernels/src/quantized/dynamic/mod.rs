//! [`FullyConnected`]: layers of floats whose weights have 8 bits, and whose inputs get 8 bits while
//! they run.
//!
//! Each row of the input has a scale and a zero point of its own, by the range of its elements and 0:
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
//! infinite or NaN, or `greatest - least` is infinite, all outputs of the row are NaN. So instruction sets
//! differ by the rounding of the last line only.
#![allow(unsafe_code)]

mod rows;
#[cfg(test)]
mod tests;

use super::gemm::{Block, Matrix, Source, Tile, Variant};
use super::requantize::LANES;
use super::{Signedness, Weights};
use crate::disjoint::DisjointOutput;
use crate::fully_connected::Sizes;
use crate::packing::PackedValues;
use crate::team::Pace;
use crate::vector::{Isa, Kernel, Simd};
use crate::{Epilogue, LINE_BYTES, Line, Preparation, Team, TooLarge};
use rows::Row;
use std::ops::Range;

/// Operations that are worth a task of their own.
const OPERATIONS_PER_TASK: u64 = 1_000_000;
/// Elements of rows that are worth a task of their own.
const ELEMENTS_PER_TASK: usize = 16 << 10;
/// Tasks for each thread, so that all end at about the same time.
const TASKS_PER_THREAD: usize = 4;
/// Few enough rows that the weights, which all of them share, are better cut than the rows.
const FEW_ROWS: usize = 96;
/// Bytes of rows that meet all weights before the next rows do, to stay in the second cache.
const ROWS_BYTES: usize = 256 << 10;
/// Rows whose sums are in memory at the same time: whole tiles of all kernels.
const SUM_ROWS: usize = 24;
/// Units of a block, at most.
const MOST_UNITS: usize = 4 * LANES;

/// A fully connected layer with its weights packed and its work cut into tasks.
#[derive(Debug)]
pub struct FullyConnected {
    sizes: Sizes,
    isa: Isa,
    weights: Packed,
    /// By unit, as the bias and the sums of weights are.
    scales: Vec<f32>,
    bias: Vec<f32>,
    weight_sums: Vec<i32>,
    epilogue: Epilogue,
    lines: Lines,
    /// Tasks that rows are quantized in.
    row_tasks: usize,
    /// Parts of the rows and of the blocks of units that are tasks.
    parts: [usize; 2],
}

#[derive(Debug)]
enum Packed {
    /// As they were given.
    Plain(PackedValues<u8>),
    Matrix(Box<Matrix>),
}

/// Lines of scratch memory, in this order.
#[derive(Debug, Clone, Copy)]
struct Lines {
    /// Rows of 8-bit numbers.
    rows: usize,
    /// What they stand for.
    meanings: usize,
    /// Widened rows, if the kernel wants them.
    wide: usize,
}

/// Units that are computed together, and where they are in a matrix.
#[derive(Clone, Copy)]
struct Units<'a> {
    first: usize,
    count: usize,
    block: Option<(&'a Matrix, &'a Block)>,
}

/// Rows that are multiplied, and what they stand for.
#[derive(Clone, Copy)]
struct Rows<'a> {
    bytes: &'a [u8],
    /// From one row to the next.
    row_bytes: usize,
    meanings: &'a [Row],
}

/// Sums of some rows, each of one block's units.
type SumRows = [[i32; MOST_UNITS]; SUM_ROWS];

impl FullyConnected {
    /// Packs the signed weights, `[units, inputs]`, and cuts the work. There is one scale, or one for each
    /// unit, as the bias has.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If weights, scales or bias are not as many as the sizes say, or this processor does not have the
    /// instruction set.
    pub fn prepare(
        sizes: Sizes,
        weights: &[u8],
        scales: &[f32],
        bias: &[f32],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Sizes { rows, inputs, units } = sizes;
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
        let variant = Variant::of(set, inputs).filter(|_| ![rows, inputs, units].contains(&0));
        let (packed, weight_sums) = match variant {
            Some(variant) => {
                let weights =
                    Weights { values: weights, signedness: Signedness::Signed, zero_point: 0 };
                let source = Source {
                    weights,
                    channels: units,
                    runs: 1,
                    run_bytes: inputs,
                    first: |unit| unit * inputs,
                    run_offset: |_| 0,
                    bias: &[],
                };
                let (matrix, sums) = Matrix::of_sums(variant, &source, preparation)?;
                (Packed::Matrix(Box::new(matrix)), sums)
            }
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
        let row_bytes = inputs.checked_next_multiple_of(4).ok_or(too_large)?;
        let wide_bytes = match &packed {
            Packed::Matrix(matrix) => matrix.wide_row_bytes().unwrap_or(0),
            Packed::Plain(_) => 0,
        };
        let in_lines = |bytes: usize| {
            rows.checked_mul(bytes).map(|bytes| bytes.div_ceil(LINE_BYTES)).ok_or(too_large)
        };
        let lines = Lines {
            rows: in_lines(row_bytes)?,
            meanings: in_lines(size_of::<Row>())?,
            wide: in_lines(wide_bytes)?,
        };
        let all =
            lines.rows.checked_add(lines.meanings).and_then(|all| all.checked_add(lines.wide));
        preparation.check_scratch::<Line>(&[all.ok_or(too_large)?])?;
        let mut layer = Self {
            sizes,
            isa: Isa::of(set),
            weights: packed,
            scales,
            bias,
            weight_sums,
            epilogue,
            lines,
            row_tasks: 1,
            parts: [1, 1],
        };
        if threads > 1 {
            let most = threads.saturating_mul(TASKS_PER_THREAD);
            layer.row_tasks =
                (rows.saturating_mul(inputs) / ELEMENTS_PER_TASK).min(most).clamp(1, rows.max(1));
            let worth = usize::try_from(layer.operations() / OPERATIONS_PER_TASK);
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
        Ok(layer)
    }

    /// The sizes.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Multiplications and additions.
    pub fn operations(&self) -> u64 {
        let Sizes { rows, inputs, units } = self.sizes;
        u64::try_from(2 * rows as u128 * inputs as u128 * units as u128).unwrap_or(u64::MAX)
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        match &self.weights {
            Packed::Plain(_) => "portable",
            Packed::Matrix(matrix) => matrix.variant.name(),
        }
    }

    /// Bytes of scratch memory that a run wants.
    pub fn scratch_bytes(&self) -> usize {
        let Lines { rows, meanings, wide } = self.lines;
        (rows + meanings + wide) * LINE_BYTES
    }

    /// How many blocks of units there are.
    fn blocks(&self) -> usize {
        match &self.weights {
            Packed::Plain(_) => self.sizes.units.div_ceil(MOST_UNITS),
            Packed::Matrix(matrix) => matrix.blocks().len(),
        }
    }

    fn block(&self, index: usize) -> Units<'_> {
        match &self.weights {
            Packed::Plain(_) => {
                let first = index * MOST_UNITS;
                Units { first, count: MOST_UNITS.min(self.sizes.units - first), block: None }
            }
            Packed::Matrix(matrix) => {
                let block = &matrix.blocks()[index];
                Units {
                    first: block.channel,
                    count: block.channels,
                    block: Some((&**matrix, block)),
                }
            }
        }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If the input, the output or the scratch memory is too small.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32], scratch: &mut [Line]) {
        let Sizes { rows, inputs, units } = self.sizes;
        assert!(input.len() >= rows * inputs, "the input is too small");
        assert!(output.len() >= rows * units, "the output is too small");
        if rows * units == 0 {
            return;
        }
        let (bytes, scratch) = scratch.split_at_mut(self.lines.rows);
        let (meanings, scratch) = scratch.split_at_mut(self.lines.meanings);
        let (bytes, wide) = (bytes_of(bytes), bytes_of(&mut scratch[..self.lines.wide]));
        let meanings: &mut [Row] = &mut bytemuck::cast_slice_mut(meanings)[..rows];
        self.quantize(team, input, (&mut *bytes, &mut *meanings), wide);
        let is_wide = self.lines.wide > 0;
        let all = Rows {
            bytes: if is_wide { wide } else { bytes },
            row_bytes: if is_wide { self.wide_row_bytes() } else { self.row_bytes() },
            meanings,
        };
        let output = DisjointOutput::new(&mut output[..rows * units]);
        let [row_parts, block_parts] = self.parts;
        let groups = rows.div_ceil(SUM_ROWS);
        team.run_long(row_parts * block_parts, &|task, stop| {
            let (of_rows, of_blocks) = (task / block_parts, task % block_parts);
            let of_rows = part(groups, row_parts, of_rows);
            let of_blocks = part(self.blocks(), block_parts, of_blocks);
            let rows = of_rows.start * SUM_ROWS..rows.min(of_rows.end * SUM_ROWS);
            self.multiply(all, rows, of_blocks, &output, &mut Pace::new(stop));
        });
    }

    /// From a row of 8-bit numbers to the next.
    fn row_bytes(&self) -> usize {
        self.sizes.inputs.next_multiple_of(4)
    }

    fn wide_row_bytes(&self) -> usize {
        match &self.weights {
            Packed::Matrix(matrix) => matrix.wide_row_bytes().unwrap_or(0),
            Packed::Plain(_) => 0,
        }
    }

    /// Quantizes all rows, and widens them if the kernel wants that.
    fn quantize(
        &self,
        team: &mut Team,
        input: &[f32],
        (bytes, meanings): (&mut [u8], &mut [Row]),
        wide: &mut [u8],
    ) {
        let Sizes { rows, inputs, .. } = self.sizes;
        let (row_bytes, wide_bytes) = (self.row_bytes(), self.wide_row_bytes());
        let bytes = DisjointOutput::new(bytes);
        let meanings = DisjointOutput::new(meanings);
        let wide = DisjointOutput::new(wide);
        team.run_long(self.row_tasks, &|task, stop| {
            let mut pace = Pace::new(stop);
            for row in part(rows, self.row_tasks, task) {
                if pace.is_over(inputs) {
                    return;
                }
                // SAFETY: each row is one task's, which has one of them at a time.
                let (to, meaning, wide) = unsafe {
                    (
                        bytes.slice(row * row_bytes, row_bytes),
                        meanings.slice(row, 1),
                        wide.slice(row * wide_bytes, wide_bytes),
                    )
                };
                let from = &input[row * inputs..][..inputs];
                meaning[0] = rows::quantize(self.isa, from, &mut to[..inputs], &mut pace);
                if let Packed::Matrix(matrix) = &self.weights
                    && wide_bytes > 0
                {
                    let mut widened = [std::ptr::null()];
                    let wide = bytemuck::cast_slice_mut(wide);
                    // SAFETY: the table has the address of one row, whose only run has as many bytes as
                    // inputs, behind which there are those of `to` up to a multiple of four.
                    unsafe { matrix.widen(&to.as_ptr(), 1, wide, &mut widened) };
                }
            }
        });
    }

    /// Computes rows of units of some blocks, for which no one else writes outputs.
    fn multiply(
        &self,
        all: Rows<'_>,
        rows: Range<usize>,
        blocks: Range<usize>,
        output: &DisjointOutput<'_, f32>,
        pace: &mut Pace<'_>,
    ) {
        let Sizes { inputs, units, .. } = self.sizes;
        let mut sums = [[0; MOST_UNITS]; SUM_ROWS];
        let together = (ROWS_BYTES / all.row_bytes.max(1)).max(1).next_multiple_of(SUM_ROWS);
        for first in rows.clone().step_by(together) {
            let end = rows.end.min(first.saturating_add(together));
            for index in blocks.clone() {
                let block = self.block(index);
                let next = if index + 1 < blocks.end { index + 1 } else { blocks.start };
                for first in (first..end).step_by(SUM_ROWS) {
                    let group = first..end.min(first + SUM_ROWS);
                    // Vectors multiply many at a time.
                    let work = group.len().saturating_mul(block.count).saturating_mul(inputs);
                    if pace.is_over(work / 16) {
                        return;
                    }
                    self.sum(all, group.clone(), block, next, &mut sums, pace);
                    for (row, sums) in group.zip(&sums) {
                        let meaning = all.meanings[row];
                        let range = block.first..block.first + block.count;
                        self.isa.run(Scaled {
                            sums: &sums[..block.count],
                            step: meaning.step,
                            // Rows that were no longer wanted have any.
                            zero_point: meaning.zero_point.wrapping_sub(self.input_offset()),
                            weight_sums: &self.weight_sums[range.clone()],
                            scales: &self.scales[range.clone()],
                            bias: &self.bias[range],
                            epilogue: &self.epilogue,
                            // SAFETY: these units of these rows are one task's, which writes them once.
                            output: unsafe { output.slice(row * units + block.first, block.count) },
                        });
                    }
                }
            }
        }
    }

    /// What stored inputs are less when the kernel sees them.
    fn input_offset(&self) -> i32 {
        match &self.weights {
            Packed::Plain(_) => 0,
            Packed::Matrix(matrix) => matrix.variant.input_offset(),
        }
    }

    /// Sums of products of rows, [`SUM_ROWS`] at most, with the weights of a block's units.
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
        let inputs = self.sizes.inputs;
        let row = |row: usize| &all.bytes[row * all.row_bytes..][..all.row_bytes];
        let (matrix, block) = match (&self.weights, units.block) {
            (Packed::Matrix(_), Some(block)) => block,
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
            (Packed::Matrix(_), None) => unreachable!("a block of no matrix"),
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
        let next = matrix.block_weights(&matrix.blocks()[next]);
        // SAFETY: the block is the matrix's. The table has the addresses of `count` rows of a single run,
        // each of `row_bytes` bytes, which was checked when it was cut out: of widened rows as many as the
        // matrix says, of others the inputs rounded up to a multiple of four. The weights are the block's.
        // There is room for the sums of 64 lanes in each of `count` rows, which is enough for the block's
        // vectors, as was checked, and it is borrowed exclusively.
        unsafe { matrix.compute_rows(block, &tile, next) };
    }
}

/// Memory of whole lines.
fn bytes_of(lines: &mut [Line]) -> &mut [u8] {
    bytemuck::cast_slice_mut(lines)
}

/// The number `index` of `parts` nearly equal parts of `0..total`.
fn part(total: usize, parts: usize, index: usize) -> Range<usize> {
    let (whole, rest) = (total / parts, total % parts);
    let begin = |index: usize| whole * index + rest.min(index);
    begin(index)..begin(index + 1)
}

/// From the sums of a row to outputs.
struct Scaled<'a> {
    sums: &'a [i32],
    step: f32,
    /// As the sums have it.
    zero_point: i32,
    weight_sums: &'a [i32],
    scales: &'a [f32],
    bias: &'a [f32],
    epilogue: &'a Epilogue,
    output: &'a mut [f32],
}

impl Kernel for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let count = self.output.len();
        let whole = count - count % S::LANES;
        for at in (0..whole).step_by(S::LANES) {
            let sums = [simd.iload(&self.sums[at..]), simd.iload(&self.weight_sums[at..])];
            let scale = simd.load(&self.scales[at..]);
            let outputs = self.outputs(simd, sums, scale, simd.load(&self.bias[at..]));
            simd.store(outputs, &mut self.output[at..]);
        }
        if whole < count {
            let mut sums = [[0; LANES]; 2];
            sums[0][..count - whole].copy_from_slice(&self.sums[whole..count]);
            sums[1][..count - whole].copy_from_slice(&self.weight_sums[whole..count]);
            let sums = [simd.iload(&sums[0]), simd.iload(&sums[1])];
            let scale = simd.load_partial(&self.scales[whole..count], 0.0);
            let bias = simd.load_partial(&self.bias[whole..count], 0.0);
            let outputs = self.outputs(simd, sums, scale, bias);
            simd.store_partial(outputs, &mut self.output[whole..]);
        }
    }
}

impl Scaled<'_> {
    #[inline(always)]
    fn outputs<S: Simd>(
        &self,
        simd: S,
        [sums, of_weights]: [S::I; 2],
        scale: S::F,
        bias: S::F,
    ) -> S::F {
        let sums = simd.isub(sums, simd.imul(of_weights, simd.isplat(self.zero_point)));
        // In this order nothing overflows that the output does not.
        let scale = simd.mul(simd.splat(self.step), scale);
        self.epilogue.apply(simd, simd.fma(simd.to_f32(sums), scale, bias))
    }
}
