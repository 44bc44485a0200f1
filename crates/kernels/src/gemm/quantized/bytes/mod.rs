//! [`ByteMatrix`]: a matrix whose products are those of bytes, on processors that only have an instruction for them
//! that saturates: `vpmaddubsw` adds two products of an unsigned and a signed byte in 16 bits.
//!
//! Preparing cuts the products of each channel into chunks of which it proves that their sums fit in 16 bits
//! ([`chunks`]); how they are cut differs from channel to channel. So lanes are not channels here, but rows:
//! these are turned, so that the same four inputs of 8 rows are a vector, and four weights of one channel are
//! repeated in all lanes. A chunk takes a multiplication and an addition for each step and vector, and one of each more to
//! add its sums to those of 32 bits.
#![allow(unsafe_code)]

mod avx2;
mod chunks;

use super::problem::Common;
use super::variant::LEAST_ROWS;
use super::{DEPTH, Matrix, Source, Variant};
use crate::preparation::PackedValues;
use crate::quantization::{Activations, Weights};
use crate::requantize::{Form, LANES, Requantization};
use crate::team::Pace;
use crate::{InstructionSet, LINE_BYTES, Line, Preparation, TooLarge};
use bytemuck::{Pod, Zeroable};
use chunks::{Chunks, MOST_READ, MOST_STEPS};
use std::ops::Range;

/// Rows of a vector.
const VECTOR_ROWS: usize = 8;
/// Vectors of a panel: their sums of 16 and of 32 bits are in registers.
const VECTORS: usize = 7;
/// Rows that are turned into a panel, at most.
const PANEL_ROWS: usize = VECTORS * VECTOR_ROWS;
/// From four inputs of a panel's rows to the next four.
const STEP_BYTES: usize = PANEL_ROWS * DEPTH;
/// Panels that are computed with the same weights, at most.
const PANELS: usize = 2;
/// Rows that are computed together, at most.
const MOST_ROWS: usize = PANELS * PANEL_ROWS;
/// Steps of a panel that are multiplied by all channels of a block before the next ones are, so that they stay in the
/// first cache.
const PIECE_STEPS: usize = 112;
const _: () = assert!(PIECE_STEPS <= MOST_READ && PIECE_STEPS * STEP_BYTES <= u16::MAX as usize);
/// Channels that are computed together.
const BLOCK: usize = 32;
/// Weights that are packed so, at most: the search for chunks takes some time.
const MOST_WEIGHTS: usize = 16 << 20;
/// Bytes of a step in memory: four weights and where their inputs are.
const PACKED_STEP: usize = DEPTH + size_of::<u16>();
/// Channels that are looked at to choose the size of chunks.
const SAMPLES: usize = 8;

/// Where a channel's chunks are, of one piece.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Entry {
    /// In bytes.
    start: u32,
    chunks: u16,
    /// Of its block.
    channel: u16,
}

/// How a channel is requantized, see [`ChannelLanes`](crate::requantize::ChannelLanes).
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Lane {
    rounding: u64,
    doubled: u32,
    shift: u32,
    /// The product's upper half with the rounding is greater than this where it is not negative itself.
    negative: i32,
    bias: i32,
}

/// A packed matrix with what turns sums into outputs.
#[derive(Debug)]
pub(crate) struct ByteMatrix {
    pub common: Common,
    channels: usize,
    /// Of a row.
    steps: usize,
    /// Steps of a chunk.
    size: usize,
    /// In the order of entries, which is that of reading them: the weights of all steps of a chunk, and behind them where
    /// each finds its inputs in the piece of a panel, in bytes.
    packed: PackedValues<u8>,
    /// By block, piece and the number of chunks.
    entries: Vec<Entry>,
    /// Of each channel, of whole groups of 16.
    lanes: Vec<Lane>,
    /// For the requantization of sums, unless they are given as they are.
    outputs: Option<Matrix>,
}

/// What becomes of sums.
pub(crate) enum ByteOutputs<'a> {
    /// They are requantized. The outputs of the first row begin at an address, and those of the next one a number of bytes behind.
    Bytes(*mut u8, usize),
    /// They are given to a function.
    Sums(&'a mut dyn FnMut(SumsOfRows<'_>)),
}

/// Sums of rows in some channels.
pub(crate) struct SumsOfRows<'a> {
    pub(crate) rows: Range<usize>,
    pub(crate) channels: Range<usize>,
    /// Those of the first row's channels, and more up to whole vectors.
    pub(crate) sums: &'a [i32],
    /// From one row's to those of the next.
    pub(crate) step: usize,
}

/// Reads the weights of some fours of inputs of a channel, less their zero point; the last four of a run may have
/// zeros at its end.
fn read(source: &Source<'_>, channel: usize, steps: Range<usize>, to: &mut Vec<[i16; DEPTH]>) {
    let run_steps = source.run_bytes.div_ceil(DEPTH);
    let Weights { signedness, .. } = source.weights;
    #[allow(clippy::cast_possible_truncation)] // It has 9 bits.
    let zero_point = source.weights.signed_zero_point() as i16;
    // In vectors, as compilers make them of this.
    let centre = |to: &mut [i16], bytes: &[u8]| {
        for (to, byte) in to.iter_mut().zip(bytes) {
            *to = i16::from((byte ^ signedness.flip()).cast_signed()).wrapping_sub(zero_point);
        }
    };
    to.clear();
    to.resize(steps.len(), [0; DEPTH]);
    let mut to = &mut to[..];
    let (mut run, mut at) = (steps.start / run_steps, steps.start % run_steps);
    while !to.is_empty() {
        let count = (run_steps - at).min(to.len());
        let bytes = at * DEPTH..source.run_bytes.min((at + count) * DEPTH);
        let (of_run, rest) = to.split_at_mut(count);
        centre(of_run.as_flattened_mut(), &source.run(channel, run)[bytes]);
        (to, run, at) = (rest, run + 1, 0);
    }
}

/// Pieces of a row of this many steps.
fn pieces(steps: usize) -> impl Iterator<Item = Range<usize>> {
    let count = steps.div_ceil(PIECE_STEPS).max(1);
    let each = steps.div_ceil(count);
    (0..count).map(move |piece| piece * each..steps.min((piece + 1) * each))
}

/// Blocks of this many channels: the first one of each, and how many it has.
fn blocks(channels: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..channels).step_by(BLOCK).map(move |first| (first, BLOCK.min(channels - first)))
}

/// What a chunk of each number of steps takes, in tenths of what one of a single step does: between the numbers of instructions,
/// which are as 10 to 17 and 23, and what was measured on Zen 4, where loads count too: 10, 19 and 26.
const COSTS: [usize; MOST_STEPS] = [10, 18, 25];

/// What four inputs take with products of 16-bit numbers.
const COST_OF_WORDS: usize = 13;

impl ByteMatrix {
    /// Rows that are worth a task of their own.
    pub(crate) const TASK_ROWS: usize = PANEL_ROWS;

    /// Rows of a vector, see [`VECTOR_ROWS`].
    pub(crate) const VECTOR_ROWS: usize = VECTOR_ROWS;

    /// Packs weights, whose sums become outputs of these inputs, or are given as they are. None if this takes no less than products of 16-bit numbers, or the instruction set has none of
    /// these.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(crate) fn new(
        source: &Source<'_>,
        rows: usize,
        outputs: Option<(Activations, &Requantization)>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let Source { channels, runs, run_bytes, .. } = *source;
        let steps = runs * run_bytes.div_ceil(DEPTH);
        let weights = steps.checked_mul(DEPTH * channels);
        let is_possible = preparation.set() == InstructionSet::Avx2
            // Few rows do not fill vectors, and their weights are read once, wherever they are.
            && rows >= LEAST_ROWS
            && weights.is_some_and(|weights| (1..=MOST_WEIGHTS).contains(&weights));
        if !is_possible {
            return Ok(None);
        }
        // Both are found in one go, and kept.
        let mut packed = Vec::new();
        let mut counts: Vec<u16> = Vec::new();
        let sizes = preparation.derive(2, |sizes: &mut [u64], pace| {
            // SAFETY: the processor has AVX2, as the instruction set says.
            let size = unsafe { choose_size(source, steps) };
            let most = COST_OF_WORDS * steps * channels;
            let to = (&mut packed, &mut counts);
            // SAFETY: as above.
            if size > 0 && unsafe { pack(source, steps, size, most, to, pace) } {
                sizes.copy_from_slice(&[size as u64, packed.len() as u64]);
            }
        })?;
        // The steps of a chunk, 0 if the weights are not packed so, and the bytes of all.
        let [size, bytes] = [sizes[0], sizes[1]].map(|it| usize::try_from(it).unwrap_or(0));
        if !(1..=MOST_STEPS).contains(&size) {
            return Ok(None);
        }
        let piece_count = pieces(steps).count();
        let counts = preparation.derive(piece_count * channels, |to: &mut [u16], _| {
            to.iter_mut().zip(&counts).for_each(|(to, count)| *to = *count);
        })?;
        let packed = preparation.pack(bytes, |to: &mut [u8], _| {
            let length = to.len().min(packed.len());
            to[..length].copy_from_slice(&packed[..length]);
        })?;
        let entries = entries(&counts, channels, size, bytes, preparation)?;
        let sizes = [runs, run_bytes];
        let (lanes, outputs, common) = match outputs {
            Some((activations, requantization)) => {
                let (lanes, outputs) = lanes(source, activations, requantization, preparation)?;
                let common = Common::new(sizes, activations.signedness, requantization);
                (lanes, Some(outputs), common)
            }
            None => {
                let count = channels.next_multiple_of(LANES);
                (preparation.zeros(count, "constants of channels")?, None, Common::of_sums(sizes))
            }
        };
        Ok(Some(Self { common, channels, steps, size, packed, entries, lanes, outputs }))
    }

    pub(crate) fn name(&self) -> &'static str {
        InstructionSet::Avx2.name()
    }

    /// Blocks of channels.
    pub(crate) fn blocks(&self) -> usize {
        self.channels.div_ceil(BLOCK)
    }

    /// Rows to compute together, at most as many as given, of this many: about the same number each time, in whole
    /// vectors if that is possible.
    pub(crate) fn rows_together(rows: usize, most: usize) -> usize {
        let most = most.min(MOST_ROWS);
        let each = rows.div_ceil(rows.div_ceil(most).max(1)).max(1);
        each.next_multiple_of(VECTOR_ROWS).min(most)
    }

    /// Lines of scratch memory that computing this many rows takes.
    pub(crate) fn scratch_lines(&self, rows: usize) -> usize {
        let panels = rows.div_ceil(PANEL_ROWS);
        let used = self.sums_start(panels) + panels * BLOCK * PANEL_ROWS * size_of::<i32>();
        // Wherever a step says that its inputs are, they can be read: so nothing of it needs to be checked.
        let last_panel = panels.saturating_sub(1) * self.panel_bytes();
        let last_piece = pieces(self.steps).last().map_or(0, |piece| piece.start * STEP_BYTES);
        let reached = last_panel + last_piece + usize::from(u16::MAX) + STEP_BYTES;
        used.max(reached).div_ceil(LINE_BYTES)
    }

    fn panel_bytes(&self) -> usize {
        self.steps * STEP_BYTES
    }

    /// Where sums begin, behind all panels.
    fn sums_start(&self, panels: usize) -> usize {
        panels * self.panel_bytes()
    }

    /// Computes the outputs of up to [`MOST_ROWS`] rows in the channels of some blocks, `blocks.0` to before
    /// `blocks.1`.
    ///
    /// # Safety
    /// The table holds the addresses of all runs of all rows, `runs * rows` of them, and behind each as many bytes as a run has,
    /// rounded up to a multiple of four, can be read. Stored outputs of all channels of these blocks can be written, and no
    /// one else accesses them.
    ///
    /// # Panics
    /// If it was made for other outputs; if there are too many rows, or the scratch memory is smaller than [`Self::scratch_lines`].
    pub(crate) unsafe fn compute(
        &self,
        table: *const *const u8,
        rows: usize,
        blocks: (usize, usize),
        mut output: ByteOutputs<'_>,
        scratch: &mut [Line],
        pace: &mut Pace<'_>,
    ) {
        assert!(rows <= MOST_ROWS && scratch.len() >= self.scratch_lines(rows), "scratch memory");
        let vectors = rows.div_ceil(VECTOR_ROWS);
        let panels = vectors.div_ceil(VECTORS);
        if panels == 0 || pace.is_over(rows * self.steps) {
            return;
        }
        let panel_vectors = vectors.div_ceil(panels);
        let panel_rows = panel_vectors * VECTOR_ROWS;
        let scratch: *mut u8 = scratch.as_mut_ptr().cast();
        let sums: *mut i32 = scratch.wrapping_add(self.sums_start(panels)).cast();
        let Common { runs, run_bytes, is_signed, .. } = self.common;
        let padded = run_bytes.next_multiple_of(DEPTH);
        // From row and panel.
        let of_panels = || {
            (0..panels).map(move |panel| {
                let first = panel * panel_rows;
                (panel, first, panel_rows.min(rows - first))
            })
        };
        for (panel, first, count) in of_panels() {
            let to = scratch.wrapping_add(panel * self.panel_bytes());
            for run in 0..runs {
                for vector in 0..count.div_ceil(VECTOR_ROWS) {
                    let row = |index: usize| (vector * VECTOR_ROWS + index).min(count - 1);
                    // SAFETY: of the table, which has an address for each run and row.
                    let from = std::array::from_fn(|index| unsafe {
                        *table.add(run * rows + first + row(index))
                    });
                    let step = run * (padded / DEPTH);
                    let to = to.wrapping_add(step * STEP_BYTES + vector * VECTOR_ROWS * DEPTH);
                    // SAFETY: the processor has AVX2, as the instruction set says that this was made for. Behind each address
                    // these bytes can be read. The steps of the run are of the panel, which is in the scratch memory.
                    unsafe { avx2::turn(from, padded, is_signed, to) };
                }
            }
        }
        let piece_count = pieces(self.steps).count();
        for block in blocks.0..blocks.1 {
            let first_channel = block * BLOCK;
            let channels = BLOCK.min(self.channels - first_channel);
            if pace.is_over(rows * self.steps * DEPTH * channels) {
                return;
            }
            let lanes = &self.lanes[first_channel..][..channels.next_multiple_of(LANES)];
            let of_panel = |panel: usize| sums.wrapping_add(panel * BLOCK * PANEL_ROWS);
            for (index, piece) in pieces(self.steps).enumerate() {
                let first = first_channel * piece_count + index * channels;
                let entries = &self.entries[first..][..channels];
                for (panel, _, count) in of_panels() {
                    let from = panel * self.panel_bytes() + piece.start * STEP_BYTES;
                    let work = avx2::Work {
                        panel: scratch.wrapping_add(from),
                        packed: self.packed.values().as_ptr(),
                        entries,
                        lanes: if index == 0 { Some(lanes) } else { None },
                        sums: of_panel(panel),
                    };
                    // SAFETY: the processor has AVX2. Entries have been compared with the packed weights; wherever a step
                    // finds its inputs is in the scratch memory, as `scratch_lines` says; there are sums for
                    // all channels of a block of each panel.
                    unsafe { avx2::multiply(count.div_ceil(VECTOR_ROWS), self.size, &work) };
                }
            }
            for (panel, first, count) in of_panels() {
                let sums = of_panel(panel);
                match (&mut output, &self.outputs) {
                    (ByteOutputs::Bytes(output, step), Some(matrix)) => {
                        for group in 0..channels.div_ceil(LANES) {
                            let channel = first_channel + group * LANES;
                            let sums = sums.wrapping_add(group * LANES * PANEL_ROWS);
                            let to = (output.wrapping_add(first * *step + channel), *step);
                            // SAFETY: the caller's promise for the outputs; sums of all channels were written.
                            unsafe { self.finish(matrix, channel / LANES, sums, count, to) };
                        }
                    }
                    (ByteOutputs::Sums(give), None) => {
                        let mut rows = [[0; BLOCK]; PANEL_ROWS];
                        // SAFETY: the processor has AVX2; there are sums of as many channels as a block has, and rows.
                        unsafe { avx2::rows_of_sums(sums, count, &mut rows) };
                        give(SumsOfRows {
                            rows: first..first + count,
                            channels: first_channel..first_channel + channels,
                            sums: rows.as_flattened(),
                            step: BLOCK,
                        });
                    }
                    _ => unreachable!("a matrix for other outputs"),
                }
            }
        }
    }

    /// Requantizes the sums of up to 16 channels and stores the outputs of this many rows.
    ///
    /// # Safety
    /// There are sums of all channels; the outputs can be written, and no one else accesses them.
    unsafe fn finish(
        &self,
        outputs: &Matrix,
        group: usize,
        sums: *const i32,
        rows: usize,
        (output, step): (*mut u8, usize),
    ) {
        let block = &outputs.blocks()[group];
        if block.form == Form::Scalar {
            for channel in 0..block.channels {
                for row in 0..rows {
                    // SAFETY: the caller's promises.
                    unsafe {
                        let sum = *sums.add(channel * PANEL_ROWS + row);
                        *output.add(row * step + channel) = outputs.output(block, channel, sum);
                    }
                }
            }
            return;
        }
        let work = avx2::Outputs {
            sums,
            rows,
            channels: block.channels,
            lanes: self.lanes[block.channel..][..LANES].try_into().expect("16 channels"),
            limits: self.common.limits,
            output,
            step,
        };
        // SAFETY: the processor has AVX2; the caller's promises.
        unsafe {
            match block.form {
                Form::Nudged => avx2::finish::<true>(&work),
                _ => avx2::finish::<false>(&work),
            }
        }
    }
}

/// Steps of a chunk that take least, from some channels; 0 if that is no less than with products of 16-bit numbers, or there is no
/// memory for some.
///
/// # Safety
/// The processor has AVX2.
unsafe fn choose_size(source: &Source<'_>, steps: usize) -> usize {
    let (mut chunks, mut weights, mut packed) = (Chunks::default(), Vec::new(), Vec::new());
    let Some(piece) = pieces(steps).next() else { return 0 };
    let (mut words, mut costs) = (0, [0; MOST_STEPS]);
    for channel in (0..source.channels).step_by(source.channels.div_ceil(SAMPLES)) {
        read(source, channel, piece.clone(), &mut weights);
        words += COST_OF_WORDS * piece.len();
        // SAFETY: the caller's promise.
        let count = unsafe { chunks.read(&weights) };
        // Chunks of one step need no search.
        costs[0] += count * COSTS[0];
        for size in 2..=MOST_STEPS {
            packed.clear();
            // SAFETY: the caller's promise.
            let Ok(count) = (unsafe { chunks.fill(size, &mut packed) }) else { return 0 };
            costs[size - 1] += count * COSTS[size - 1];
        }
    }
    let least = costs.into_iter().zip(1..).min();
    least.filter(|(cost, _)| *cost < words).map_or(0, |(_, size)| size)
}

/// Packs the chunks of all blocks and pieces, and counts those of each channel; false if they take more than `most`.
///
/// # Safety
/// The processor has AVX2.
unsafe fn pack(
    source: &Source<'_>,
    steps: usize,
    size: usize,
    most: usize,
    (packed, counts): (&mut Vec<u8>, &mut Vec<u16>),
    pace: &mut Pace<'_>,
) -> bool {
    let (mut chunks, mut weights) = (Chunks::default(), Vec::new());
    let mut all = 0;
    // Of a block and a piece: the bytes of all channels, and which of them are each channel's.
    let (mut block_bytes, mut ranges) = (Vec::new(), Vec::new());
    for (first_channel, count) in blocks(source.channels) {
        for piece in pieces(steps) {
            block_bytes.clear();
            ranges.clear();
            for channel in first_channel..first_channel + count {
                // The search takes longer than a multiplication of each weight.
                if pace.is_over(16 * piece.len() * DEPTH) {
                    return false;
                }
                read(source, channel, piece.clone(), &mut weights);
                let start = block_bytes.len();
                // SAFETY: the caller's promise.
                let filled = unsafe {
                    chunks.read(&weights);
                    chunks.fill(size, &mut block_bytes)
                };
                if filled.is_err() {
                    return false;
                }
                ranges.push(start..block_bytes.len());
            }
            // Without memory for a second copy they are multiplied as numbers of 16 bits.
            let has_room = packed.try_reserve(block_bytes.len()).is_ok()
                && counts.try_reserve(ranges.len()).is_ok();
            if !has_room {
                return false;
            }
            for range in &ranges {
                let chunks = range.len() / (size * PACKED_STEP);
                counts.push(u16::try_from(chunks).unwrap_or(u16::MAX));
                all += chunks * COSTS[size - 1];
            }
            if all > most {
                return false;
            }
            // As `entries` orders them; of the same number in their own order.
            ranges.sort_by_key(ExactSizeIterator::len);
            for range in ranges.drain(..) {
                packed.extend_from_slice(&block_bytes[range]);
            }
        }
    }
    true
}

/// Where the chunks of each channel are: the channels of a block ordered by how many they have, which is easier to
/// foresee.
fn entries(
    counts: &[u16],
    channels: usize,
    size: usize,
    bytes: usize,
    preparation: &mut Preparation,
) -> Result<Vec<Entry>, TooLarge> {
    let unordered = counts.iter().map(|&chunks| Entry { start: 0, chunks, channel: 0 });
    let mut entries = preparation.collected(unordered, "where weights are")?;
    let (mut rest, mut start) = (&mut entries[..], 0_u64);
    let piece_count = counts.len().checked_div(channels).unwrap_or(0);
    for (_, count) in blocks(channels) {
        for _ in 0..piece_count {
            let (of_piece, others) = rest.split_at_mut(count);
            rest = others;
            for (entry, channel) in of_piece.iter_mut().zip(0..) {
                entry.channel = channel;
            }
            of_piece.sort_unstable_by_key(|entry| (entry.chunks, entry.channel));
            for entry in of_piece {
                entry.start = u32::try_from(start).unwrap_or(u32::MAX);
                start += (usize::from(entry.chunks) * size * PACKED_STEP) as u64;
            }
        }
    }
    assert!(start <= bytes as u64, "chunks of {start} bytes in {bytes}");
    Ok(entries)
}

/// The constants of all channels.
fn lanes(
    source: &Source<'_>,
    activations: Activations,
    requantization: &Requantization,
    preparation: &mut Preparation,
) -> Result<(Vec<Lane>, Matrix), TooLarge> {
    let sums = source.sums(preparation)?;
    let zero_point = activations.zero_point + activations.signedness.offset();
    let sums = sums
        .iter()
        .enumerate()
        .map(|(channel, sums)| source.sum_range(channel, sums, activations, zero_point));
    let sums = preparation.collected(sums, "sums of weights")?;
    let requantization = requantization.repeated(1, preparation)?;
    let Some(variant) = Variant::of_words(preparation.set()) else {
        unreachable!("an instruction set with products of 16-bit numbers")
    };
    let outputs =
        Matrix::of_outputs(variant, &sums, activations.signedness, requantization, preparation)?;
    let lanes = (0..source.channels.next_multiple_of(LANES)).map(|channel| {
        let block = &outputs.blocks()[channel / LANES];
        let (lanes, lane) = (&outputs.block_lanes(block)[0], channel % LANES);
        let of_parity = if lane % 2 == 0 { &lanes.rounding_even } else { &lanes.rounding_odd };
        let (rounding, doubled) = (of_parity[lane / 2], lanes.doubled[lane]);
        #[allow(clippy::cast_possible_truncation)] // The upper half.
        let upper = (rounding >> 32) as u32;
        Lane {
            rounding,
            doubled,
            shift: lanes.shift[lane],
            negative: upper.wrapping_add(doubled / 2).wrapping_sub(1).cast_signed(),
            bias: lanes.bias[lane],
        }
    });
    let lanes = preparation.collected(lanes, "constants of channels")?;
    Ok((lanes, outputs))
}
