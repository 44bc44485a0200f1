//! [`Matrix`]: the right side of a product, packed for an instruction set.
#![allow(unsafe_code)]

use super::block::Block;
use super::problem::{Common, Inputs, Problem, SUM_OFFSET};
use super::tiles::{Target, Work};
use super::variant::Variant;
use super::{Ahead, DEPTH, Grid, Tile};
#[cfg(target_arch = "x86_64")]
use crate::gemm::float::turn_avx512::{SIDE, turn};
use crate::preparation::PackedValues;
use crate::quantization::{Activations, Signedness, Sums, Weights};
use crate::requantize::{
    ChannelGroup, ChannelLanes, Form, LANES, Requantization, SumRange, derived_lanes,
};
use crate::team::Pace;
use crate::vector::Isa;
use crate::{LINE_BYTES, Preparation, TooLarge};

/// Steps that are packed together, for all channels of a block: few enough that they stay in the
/// nearest cache.
const PIECE_STEPS: usize = 64;
/// Weights of a channel in those steps.
const PIECE_BYTES: usize = PIECE_STEPS * DEPTH;

/// Steps with a block of channels that are worth copying a row, so that none of them has to make its inputs unsigned.
const STEPS_TO_COPY: usize = 64;

/// Weights that [`Matrix::of_words`] asks for at a time, at most.
pub(crate) const WORD_PIECE: usize = 64;

/// A packed matrix with what turns sums into outputs.
#[derive(Debug)]
pub(crate) struct Matrix {
    pub variant: &'static Variant,
    problem: Problem,
    blocks: Vec<Block>,
    /// By block, run, four steps of a run, vector, lane: the four weights. For AVX2 (but for few rows) and AVX-512 without VNNI
    /// they have 16 bits: first the first two of all lanes of all vectors, then the others.
    weights: Option<PackedValues<u8>>,
    /// Of the signed weights.
    weight_zero_point: i32,
    /// Of the inputs as the kernel sees them.
    input_zero_point: i32,
    /// Whether a signed weight may be -128.
    has_least_weight: bool,
}

/// What a matrix is packed from: of each channel `runs` times `run_bytes` weights, one behind the other.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub weights: Weights<'a>,
    pub channels: usize,
    pub runs: usize,
    pub run_bytes: usize,
    pub bias: &'a [i32],
}

impl<'a> Source<'a> {
    /// The weights of a run of a channel.
    pub(super) fn run(&self, channel: usize, run: usize) -> &'a [u8] {
        &self.weights.values[(channel * self.runs + run) * self.run_bytes..][..self.run_bytes]
    }

    /// Enters the weights of a piece of a run of a block that fills all lanes, square by square, where the processor can do
    /// so in registers. Says of how many steps it did.
    #[cfg(target_arch = "x86_64")]
    fn turn(
        &self,
        variant: &Variant,
        block: &Block,
        (run, piece): (usize, usize),
        out: &mut [u8],
        pace: &mut Pace<'_>,
    ) -> usize {
        let is_possible = variant.has_lanes_of_fours()
            && self.weights.signedness == Signedness::Signed
            && block.channels == block.vectors * LANES
            && matches!(Isa::of(variant.set()), Isa::Avx512(_));
        let (out, _) = out.as_chunks_mut();
        let stride = block.vectors * LANES;
        let steps = (self.run_bytes / DEPTH - piece * PIECE_STEPS).min(PIECE_STEPS) / SIDE * SIDE;
        if !is_possible || pace.is_over(steps * DEPTH * stride) {
            return 0;
        }
        for vector in 0..block.vectors {
            let rows: [&[[u8; DEPTH]]; LANES] = std::array::from_fn(|lane| {
                let channel = block.channel + block.index(vector, lane);
                self.run(channel, run)[piece * PIECE_BYTES..].as_chunks().0
            });
            for step in (0..steps).step_by(SIDE) {
                let to = &mut out[step * stride + vector * LANES..][..(SIDE - 1) * stride + SIDE];
                // SAFETY: the processor has AVX-512, as the value of `Isa` proves.
                unsafe { turn(&rows, step, stride, to) };
            }
        }
        steps
    }

    /// The sums of each channel's weights.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(super) fn sums(&self, preparation: &mut Preparation) -> Result<Vec<Sums>, TooLarge> {
        let isa = Isa::of(preparation.set());
        preparation.derive(self.channels, |all: &mut [Sums], pace| {
            for (channel, sums) in all.iter_mut().enumerate() {
                for bytes in (0..self.runs).map(|run| self.run(channel, run)) {
                    for block in pace.blocks(bytes.len(), 1) {
                        sums.add(isa, self.weights, &bytes[block]);
                    }
                }
            }
        })
    }

    /// What the sums of products with a channel are, from the sums of the channel's weights and the zero point of inputs.
    pub(super) fn sum_range(
        &self,
        channel: usize,
        sums: &Sums,
        activations: Activations,
        zero_point: i32,
    ) -> SumRange {
        let bias = self.bias[channel];
        let count = i32::try_from(self.runs * self.run_bytes % (1 << 31)).unwrap_or(0);
        let constant = self.weights.signed_zero_point().wrapping_mul(count);
        let first =
            bias.wrapping_add(zero_point.wrapping_mul(constant.wrapping_sub(sums.wrapped())));
        SumRange::new(activations, first, sums.magnitude, bias)
    }
}

/// What is packed of weights, whatever becomes of sums.
struct Parts {
    blocks: Vec<Block>,
    packed: PackedValues<u8>,
    /// Vectors of all blocks.
    lanes: usize,
    has_least_weight: bool,
}

impl Parts {
    fn new(
        variant: &'static Variant,
        source: &Source<'_>,
        form: Form,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Source { weights, channels, runs, run_bytes, .. } = *source;
        let run_steps = variant.run_steps(run_bytes);
        let steps = runs.checked_mul(run_steps);
        let steps = steps.ok_or(TooLarge::beyond_addresses("packed weights"))?;
        let (mut blocks, bytes, lanes) = variant.blocks(channels, steps, preparation)?;
        blocks.iter_mut().for_each(|block| block.form = form);
        let packed = preparation.pack(bytes, |out: &mut [u8], pace| {
            let flip = weights.signedness.flip();
            let flips = u32::from_ne_bytes([flip; DEPTH]);
            for block in &blocks {
                let step_bytes = block.vectors * variant.bytes_per_vector();
                let out = &mut out[block.weights..][..runs * run_steps * step_bytes];
                for (run, out) in out.chunks_exact_mut(run_steps * step_bytes).enumerate() {
                    for (piece, out) in out.chunks_mut(PIECE_STEPS * step_bytes).enumerate() {
                        #[cfg(target_arch = "x86_64")]
                        let done = source.turn(variant, block, (run, piece), out, pace);
                        #[cfg(not(target_arch = "x86_64"))]
                        let done = 0;
                        let (_, left) = out.split_at_mut(done * step_bytes);
                        if left.is_empty() {
                            continue;
                        }
                        for index in 0..block.channels {
                            if pace.is_over(PIECE_BYTES) {
                                return;
                            }
                            let bytes =
                                &source.run(block.channel + index, run)[piece * PIECE_BYTES..];
                            let (vector, lane) = block.place(index);
                            let place = [block.vectors, vector, lane];
                            let (fours, rest) = bytes.as_chunks();
                            let mut steps = left.chunks_exact_mut(step_bytes);
                            for (four, out) in fours[done..].iter().zip(&mut steps) {
                                let flipped = u32::from_ne_bytes(*four) ^ flips;
                                variant.put(out, place, flipped.to_ne_bytes());
                            }
                            if let (false, Some(out)) = (rest.is_empty(), steps.next()) {
                                // Behind the last weight of a run zero, whatever stands for zero.
                                let mut four = [0; DEPTH];
                                for (to, byte) in four.iter_mut().zip(rest) {
                                    *to = byte ^ flip;
                                }
                                variant.put(out, place, four);
                            }
                        }
                    }
                    variant.arrange(out);
                }
            }
        })?;
        let has_least_weight = variant.asks_for_least_weight()
            && preparation.derive(1, |found: &mut [u8], pace| {
                let least = weights.signedness.byte(weights.signedness.range().0);
                let mut runs = (0..channels * runs).map(|at| source.run(at / runs, at % runs));
                let contains_least =
                    |run: &[u8]| pace.blocks(run.len(), 1).any(|block| run[block].contains(&least));
                found[0] = runs.any(contains_least).into();
            })? != [0];
        Ok(Self { blocks, packed, lanes, has_least_weight })
    }
}

impl Matrix {
    /// Packs weights.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(crate) fn new(
        variant: &'static Variant,
        source: &Source<'_>,
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Source { weights, runs, run_bytes, .. } = *source;
        let Parts { mut blocks, packed, lanes, has_least_weight } =
            Parts::new(variant, source, Form::Scalar, preparation)?;
        let sums = source.sums(preparation)?;
        // Of inputs as the kernel sees them.
        let zero_point =
            activations.zero_point + activations.signedness.offset() - variant.input_offset();
        let sum =
            |channel: usize| source.sum_range(channel, &sums[channel], activations, zero_point);
        let all_lanes =
            channel_lanes(variant, &mut blocks, lanes, &requantization, &sum, preparation)?;
        let common = Common::new([runs, run_bytes], activations.signedness, &requantization);
        Ok(Self {
            weights: Some(packed),
            weight_zero_point: weights.signed_zero_point(),
            input_zero_point: zero_point,
            has_least_weight,
            ..Self::without_weights(variant, blocks, common, all_lanes, requantization)
        })
    }

    /// Packs signed weights of products whose outputs are the sums themselves, of unsigned inputs less
    /// [`Variant::input_offset`].
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(crate) fn of_sums(
        variant: &'static Variant,
        source: &Source<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Parts { blocks, packed, has_least_weight, .. } =
            Parts::new(variant, source, Form::Sums, preparation)?;
        let sizes = [source.runs, source.run_bytes];
        let matrix = Self::with_sums(variant, sizes, blocks, packed, preparation)?;
        Ok(Self { has_least_weight, ..matrix })
    }

    /// Of weights that have no zero point, which are not here.
    fn without_weights(
        variant: &'static Variant,
        blocks: Vec<Block>,
        common: Common,
        lanes: Vec<ChannelLanes>,
        requantization: Requantization,
    ) -> Self {
        let Common { runs, run_bytes, is_signed, .. } = common;
        // No more than the bytes of the packed weights.
        let steps = runs * run_bytes.div_ceil(DEPTH) * blocks.len();
        let is_flipped = is_signed && variant.flips_inputs;
        let are_copied = variant.input_bytes > 1 || variant.copies_rows();
        let are_copied = are_copied || is_flipped && steps >= STEPS_TO_COPY;
        let inputs = if are_copied { Inputs::Copied } else { Inputs::Stored };
        Self {
            variant,
            problem: Problem { common, inputs, lanes, requantization },
            blocks,
            weights: None,
            weight_zero_point: 0,
            input_zero_point: 0,
            has_least_weight: false,
        }
    }

    /// As [`Self::of_sums`], of weights that are packed.
    fn with_sums(
        variant: &'static Variant,
        sizes: [usize; 2],
        mut blocks: Vec<Block>,
        packed: PackedValues<u8>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        // All begin with the same zeros.
        blocks.iter_mut().for_each(|block| block.lanes = 0);
        let vectors = blocks.iter().map(|block| block.vectors).max().unwrap_or(0);
        let lanes = preparation.zeros(vectors, "constants of channels")?;
        let none = Requantization { multipliers: Vec::new(), zero_point: 0, min: 0, max: 0 };
        let common = Common::of_sums(sizes);
        let matrix = Self::without_weights(variant, blocks, common, lanes, none);
        Ok(Self { weights: Some(packed), ..matrix })
    }

    /// Packs several matrices of 16-bit weights, whose rows are 16-bit numbers too: in place of bytes that were
    /// [widened](Self::copy_rows), so that [`Self::compute_rows`] takes the addresses of rows of `depth` numbers, a
    /// multiple of four. Outputs are the sums, as of [`Self::of_sums`]. [`Self::blocks`] has for each block of
    /// channels one of each matrix.
    ///
    /// `weights` gives a channel's weights from a depth on, of all matrices. No sum of two products may exceed
    /// 31 bits.
    ///
    /// # Errors
    /// If they are more than may be taken.
    pub(crate) fn of_words(
        variant: &'static Variant,
        [matrices, channels, depth]: [usize; 3],
        weights: impl Fn(usize, usize, &mut [[i16; WORD_PIECE]]),
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        const WHAT: &str = "packed weights";
        assert!(depth.is_multiple_of(DEPTH), "rows of {depth} numbers");
        let too_large = || TooLarge::beyond_addresses(WHAT);
        let (each, bytes, _) = variant.blocks(channels, depth / DEPTH, preparation)?;
        let bytes = bytes.checked_mul(matrices).ok_or_else(too_large)?;
        let count = each.len().checked_mul(matrices).ok_or_else(too_large)?;
        let mut blocks = preparation.room(count, "blocks of channels")?;
        for block in &each {
            let size = depth / DEPTH * block.vectors * variant.bytes_per_vector();
            blocks.extend((0..matrices).map(|matrix| Block {
                weights: block.weights * matrices + matrix * size,
                form: Form::Sums,
                ..*block
            }));
        }
        let mut piece = preparation.filled([0; WORD_PIECE], matrices, "pieces of weights")?;
        let packed = preparation.pack(bytes, |out: &mut [u8], pace| {
            for blocks in blocks.chunks_exact(matrices) {
                let Block { channel, channels, vectors, .. } = blocks[0];
                let step_bytes = vectors * LANES * DEPTH;
                for (index, from) in (0..channels)
                    .flat_map(|index| (0..depth).step_by(WORD_PIECE).map(move |from| (index, from)))
                {
                    let numbers = WORD_PIECE.min(depth - from);
                    if pace.is_over(matrices * numbers) {
                        return;
                    }
                    weights(channel + index, from, &mut piece);
                    let (vector, lane) = blocks[0].place(index);
                    let lane = (vector * LANES + lane) * DEPTH;
                    for (block, piece) in blocks.iter().zip(&piece) {
                        let start = block.weights + from / 2 * step_bytes;
                        let steps = out[start..].chunks_exact_mut(step_bytes);
                        for (pair, step) in piece[..numbers].as_chunks::<2>().0.iter().zip(steps) {
                            step[lane..lane + DEPTH].copy_from_slice(bytemuck::bytes_of(pair));
                        }
                    }
                }
            }
        })?;
        Self::with_sums(variant, [1, depth], blocks, packed, preparation)
    }

    /// What turns the sums of products by [`Self::of_words`] into outputs, see [`Self::requantize`]: from what
    /// is added to each of the channels' sums, and what these are then.
    ///
    /// # Errors
    /// If it is more than may be taken.
    pub(crate) fn of_outputs(
        variant: &'static Variant,
        sums: &[SumRange],
        signedness: Signedness,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let vectors = sums.len().div_ceil(LANES);
        let mut blocks = preparation.room(vectors, "blocks of channels")?;
        blocks.extend((0..vectors).map(|index| Block {
            channel: index * LANES,
            channels: LANES.min(sums.len() - index * LANES),
            vectors: 1,
            weights: 0,
            lanes: index,
            form: Form::Scalar,
        }));
        let sum = |channel: usize| sums[channel];
        let lanes =
            channel_lanes(variant, &mut blocks, vectors, &requantization, &sum, preparation)?;
        let common = Common::new([1, 0], signedness, &requantization);
        Ok(Self::without_weights(variant, blocks, common, lanes, requantization))
    }

    /// Requantizes sums of a block of [`Self::of_outputs`], a row each, to which [`ChannelLanes::bias`] was
    /// added: from 1 to 4 rows, whose outputs begin at an address and have a distance in bytes.
    ///
    /// # Safety
    /// The outputs of the block's channels of the rows can be written, and no one else accesses them.
    pub(crate) unsafe fn requantize(
        &self,
        block: &Block,
        sums: &[[i32; LANES]],
        output: (*mut u8, usize),
    ) {
        let requantize = self.variant.requantize.expect("a kernel of words");
        let lanes = self.block_lanes(block).try_into().expect("one vector");
        let (output, step) = output;
        let target = Target { problem: &self.problem, block, lanes, output, step };
        // SAFETY: the processor has the instructions, as `Variant::of_words` made sure; the block has one
        // vector, as all of `of_outputs`; the rest is the caller's promise.
        unsafe { requantize(target, sums) }
    }

    /// A matrix `[inner, columns]` that is packed when it is known, by [`Self::pack_at_run_time`]: the
    /// right side of products of two activations, which have one multiplier, and a bias that is then known and not beyond a
    /// magnitude.
    pub(crate) fn at_run_time(
        variant: &'static Variant,
        [inner, columns]: [usize; 2],
        [left, right]: [Activations; 2],
        requantization: &Requantization,
        greatest_bias: u32,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (mut blocks, _, _) = variant.blocks(columns, inner.div_ceil(DEPTH), preparation)?;
        let bound = i64::try_from(inner).unwrap_or(i64::MAX);
        let bound = bound.saturating_mul(left.greatest() * right.greatest());
        let bound = bound.saturating_add(greatest_bias.into());
        // What is the same for all columns; the bias is not.
        let group = ChannelGroup {
            requantization,
            first: 0,
            channels: LANES,
            vectors: 1,
            sum_offset: SUM_OFFSET,
            with_floats: variant.has_floats,
        };
        let sums = SumRange { first: 0, bound, is_constant: false };
        let (form, lanes) = group.pack(&|lane| (0, lane), &|_| sums);
        blocks.iter_mut().for_each(|block| block.form = form);
        let common = Common::new([1, inner], left.signedness, requantization);
        let requantization = requantization.repeated(1, preparation)?;
        Ok(Self {
            weight_zero_point: right.zero_point + right.signedness.offset() - 128,
            input_zero_point: left.zero_point + left.signedness.offset() - variant.input_offset(),
            has_least_weight: true,
            ..Self::without_weights(variant, blocks, common, lanes, requantization)
        })
    }

    /// Bytes of packed weights.
    pub(crate) fn weight_bytes(&self) -> usize {
        let vectors: usize = self.blocks.iter().map(|block| block.vectors).sum();
        let steps = self.problem.row_bytes() / DEPTH;
        steps.next_multiple_of(self.variant.steps_together)
            * vectors
            * self.variant.bytes_per_vector()
    }

    /// Bytes of the channels' constants.
    pub(crate) fn lane_bytes(&self) -> usize {
        let vectors: usize = self.blocks.iter().map(|block| block.vectors).sum();
        vectors * size_of::<ChannelLanes>()
    }

    /// Packs a matrix `[inner, columns]`, or if it is transposed `[columns, inner]`, and what is
    /// wanted of its columns, to which a bias may be added.
    pub(crate) fn pack_at_run_time(
        &self,
        values: &[u8],
        is_transposed: bool,
        bias: Option<&[i32]>,
        weights: &mut [u8],
        lanes: &mut [ChannelLanes],
        pace: &mut Pace<'_>,
    ) {
        let inner = self.problem.common.run_bytes;
        let columns = self.blocks.last().map_or(0, |block| block.channel + block.channels);
        let flip = if self.problem.common.is_signed { 0 } else { 0x80 };
        let steps = inner.div_ceil(DEPTH);
        let count = i32::try_from(inner % (1 << 31)).unwrap_or(0);
        lanes.fill(self.problem.lanes[0]);
        for block in &self.blocks {
            let lanes = &mut lanes[block.lanes..][..block.vectors];
            // First the sums of columns.
            lanes.iter_mut().for_each(|lanes| lanes.bias.fill(0));
            let step_bytes = block.vectors * self.variant.bytes_per_vector();
            for some in pace.blocks(steps, DEPTH * block.channels) {
                for step in some {
                    let first = DEPTH * step;
                    let out = &mut weights[block.weights + step * step_bytes..][..step_bytes];
                    // Rows of the block's columns, if they are side by side; behind the last row none.
                    let rows: [&[u8]; DEPTH] = std::array::from_fn(|k| {
                        let is_there = !is_transposed && first + k < inner;
                        let row = if is_there { &values[(first + k) * columns..] } else { &[] };
                        row.get(block.channel..block.channel + block.channels).unwrap_or(&[])
                    });
                    let mut done = 0;
                    if rows.iter().all(|row| row.len() == block.channels) {
                        // Four columns side by side are in lanes side by side.
                        while done + 4 <= block.channels {
                            let mut fours = [[0; DEPTH]; 4];
                            for (k, row) in rows.iter().enumerate() {
                                for (four, value) in fours.iter_mut().zip(&row[done..done + 4]) {
                                    four[k] = value ^ flip;
                                }
                            }
                            let (vector, lane) = block.place(done);
                            let sums = &mut lanes[vector].bias[lane..lane + 4];
                            for (sum, four) in sums.iter_mut().zip(&fours) {
                                for byte in four {
                                    *sum = sum.wrapping_add(byte.cast_signed().into());
                                }
                            }
                            self.variant.put_four(out, [block.vectors, vector, lane], fours);
                            done += 4;
                        }
                    }
                    for index in done..block.channels {
                        let mut four = [0; DEPTH];
                        if is_transposed {
                            let column = &values[(block.channel + index) * inner..][..inner];
                            for (to, value) in four.iter_mut().zip(&column[first..]) {
                                *to = value ^ flip;
                            }
                        } else {
                            for (to, row) in four.iter_mut().zip(rows) {
                                *to = row.get(index).map_or(0, |value| value ^ flip);
                            }
                        }
                        let sum = four.iter().map(|byte| i32::from(byte.cast_signed())).sum();
                        let (vector, lane) = block.place(index);
                        let sums = &mut lanes[vector].bias[lane];
                        *sums = sums.wrapping_add(sum);
                        self.variant.put(out, [block.vectors, vector, lane], four);
                    }
                }
            }
            let filled = steps.next_multiple_of(self.variant.steps_together);
            let weights = &mut weights[block.weights..][..filled * step_bytes];
            let (weights, behind) = weights.split_at_mut(steps * step_bytes);
            behind.fill(0);
            self.variant.arrange(weights);
            for index in 0..block.channels {
                let (vector, lane) = block.place(index);
                let sum = &mut lanes[vector].bias[lane];
                let constant = self
                    .input_zero_point
                    .wrapping_mul(self.weight_zero_point.wrapping_mul(count).wrapping_sub(*sum));
                let bias = bias.map_or(0, |bias| bias[block.channel + index]);
                *sum = constant.wrapping_add(bias).wrapping_add(block.form.sum_offset(SUM_OFFSET));
            }
        }
    }

    /// The packed weights of a block, on a line: they begin on one, and so do all blocks, whose steps
    /// have whole lines for each vector.
    pub(crate) fn block_weights(&self, block: &Block) -> *const u8 {
        let weights = self.weights.as_ref().map_or(&[][..], PackedValues::values);
        weights[block.weights..].as_ptr()
    }

    /// The constants of a block's channels.
    pub(crate) fn block_lanes(&self, block: &Block) -> &[ChannelLanes] {
        self.problem.block_lanes(block)
    }

    /// The output of one sum, by the definition.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn output(&self, block: &Block, index: usize, sum: i32) -> u8 {
        self.problem.output(block, index, sum)
    }

    /// What is the same for all tiles.
    pub(crate) fn common(&self) -> &Common {
        &self.problem.common
    }

    /// Computes any number of rows; meanwhile those weights are fetched that are needed `next`, unless that is null.
    ///
    /// # Safety
    /// The block is one of this matrix. The table holds the addresses of all runs of all rows,
    /// `(runs - 1) * table_step + rows` of them, and behind each as many bytes as a run has, rounded up
    /// to a multiple of four, can be read. If [`Self::copied_row_bytes`] gives something, it holds instead
    /// the addresses of copied rows, one for each. The weights are the block's, on a line:
    /// [`Self::block_weights`] with all that follow, or what [`Self::pack_at_run_time`] has packed from
    /// `Block::weights` on. The outputs of the block's channels of the rows can be written, or of
    /// [`Self::of_sums`] four bytes for each of 16 lanes of its vectors, and no one else accesses them.
    /// (Lanes and row terms are slices, whose lengths are compared.) What [`Self::set_up_tiles`] gave is not dropped before.
    pub(crate) unsafe fn compute_rows(&self, block: &Block, all: &Tile<'_>, next: *const u8) {
        // Kernels of 16-bit numbers take two of them in a step.
        let input_bytes = self.variant.input_bytes;
        let step_bytes = block.vectors * self.variant.bytes_per_vector() / input_bytes;
        let steps = self.problem.row_bytes() / DEPTH * input_bytes;
        let most = if self.variant.copies_rows() { usize::MAX } else { self.tile_rows(block) };
        let is_one_tile = all.rows <= most;
        let mut ahead = if next.is_null() {
            Ahead { next: all.weights, left: 0, step_bytes: 0 }
        } else {
            let tiles = if is_one_tile { 1 } else { all.rows.div_ceil(most) };
            let each = if tiles == 1 { step_bytes } else { step_bytes.div_ceil(tiles) };
            Ahead { next, left: steps * step_bytes, step_bytes: each.min(LINE_BYTES) }
        };
        let compute = self.variant.compute(self.has_least_weight);
        if is_one_tile {
            if all.rows > 0 {
                let ahead = &mut ahead;
                let work = Work { problem: &self.problem, block, tile: all, tiles: 1, ahead };
                // SAFETY: as below.
                unsafe { compute(work) };
            }
            return;
        }
        for (tile, tiles) in all.parts(most) {
            let ahead = &mut ahead;
            let work = Work { problem: &self.problem, block, tile: &tile, tiles, ahead };
            // SAFETY: the processor has the instructions, as `Variant::of` made sure, which is where all variants come
            // from; the weights are packed for this one; the rest is the caller's promise, for a part of the rows.
            unsafe { compute(work) };
        }
    }

    /// Bytes of a run that are read of rows of a [`Grid`](super::Grid).
    pub(crate) fn run_bytes_of_grids(&self) -> usize {
        self.variant.run_steps(self.problem.common.run_bytes) * DEPTH
    }

    /// Computes rows at equal distances; `next` as of [`Self::compute_rows`].
    ///
    /// # Safety
    /// The block is one of this matrix, which is [for grids](Variant::of_grids). The grid has its weights and constants, and
    /// as many runs as the matrix, [this long](Self::run_bytes_of_grids), which can be read of all readable rows. The outputs
    /// of the block's channels of all wanted rows can be written, and no one else accesses them. What
    /// [`Self::set_up_tiles`] gave is not dropped before.
    pub(crate) unsafe fn compute_grid(&self, block: &Block, grid: &Grid<'_>, next: *const u8) {
        let weights = grid.runs.len() * grid.run_bytes / DEPTH * block.vectors * LINE_BYTES;
        let left = if next.is_null() { 0 } else { weights };
        let mut ahead = Ahead { next, left, step_bytes: 0 };
        let compute = self.variant.compute_grid.expect("a kernel of grids");
        // SAFETY: the processor has the instructions, as `Variant::of_grids` made sure; the rest is the caller's promise.
        unsafe { compute(&self.problem, block, grid, &mut ahead) };
    }

    /// The blocks of channels, in the order of channels.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Rows of a tile of a block, at most.
    pub(crate) fn tile_rows(&self, block: &Block) -> usize {
        self.variant.tile_rows(block.vectors)
    }

    /// Has whoever calls make signed inputs unsigned where they are, as [`Self::input_flip`] says, if that spares
    /// a copy or work in the kernel.
    pub(crate) fn take_unsigned(&mut self) {
        if self.problem.common.is_signed && self.variant.takes_unsigned() {
            self.problem.inputs = Inputs::Unsigned;
        }
    }

    /// The bits of inputs that are inverted before the kernel sees them.
    pub(crate) fn input_flip(&self) -> u8 {
        if self.problem.inputs == Inputs::Unsigned { 0x80 } else { 0 }
    }

    /// Bytes of a row as [`Self::copy_rows`] writes it; none if rows are read where they are.
    pub(crate) fn copied_row_bytes(&self) -> Option<usize> {
        let bytes = self.problem.row_bytes() * self.variant.input_bytes;
        let bytes = bytes.next_multiple_of(self.variant.steps_together * DEPTH);
        (self.problem.inputs == Inputs::Copied).then_some(bytes)
    }

    /// Copies rows as the kernel wants them, for all blocks at once: widened to 16 bits, or as unsigned bytes. Their table
    /// then has the addresses of the copies, one for each row, which are entered here.
    ///
    /// # Safety
    /// As of [`Self::compute_rows`], for the table, of as many rows as there are addresses.
    ///
    /// # Panics
    /// If there is not enough memory for the rows.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub(crate) unsafe fn copy_rows(
        &self,
        table: *const *const u8,
        table_step: usize,
        copies: &mut [u16],
        addresses: &mut [*const u8],
    ) {
        let Common { runs, run_bytes, is_signed, .. } = self.problem.common;
        let padded = run_bytes.next_multiple_of(DEPTH);
        let flip = if is_signed { 0x80 } else { 0 };
        let row_bytes = self.copied_row_bytes().expect("rows that are copied");
        let copies = &mut copies[..addresses.len() * row_bytes / 2];
        let (table, row) = ((table, table_step), (runs, padded));
        // SAFETY: the caller's promise; the processor has the variant's instructions, and so AVX2, with tiles AVX-512.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            if self.variant.input_bytes > 1 {
                return super::avx2::widen(table, row, flip, copies, addresses);
            }
            let copies = bytemuck::cast_slice_mut(copies);
            #[cfg(not(nnhal_only_avx2))]
            if self.variant.copies_rows() {
                return super::amx::copy(table, row, flip, (copies, row_bytes), addresses);
            }
            super::avx2::copy(table, row, flip, copies, addresses);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("rows are read as they are");
    }

    /// Sets up what [`Self::compute_rows`] needs of this thread, until the value is dropped.
    pub(crate) fn set_up_tiles(&self) -> impl Sized {
        #[cfg(target_arch = "x86_64")]
        return self.variant.uses_tiles().then(crate::amx::TileRegisters::set_up);
    }

    /// What the sums of rows get in addition, one of `terms` each: the sum of a row's inputs, as the kernel sees them, times
    /// what the weights' zero point is short of 0. Nothing if that is 0.
    ///
    /// # Safety
    /// As of [`Self::compute_rows`], for the table.
    pub(crate) unsafe fn row_terms<'t>(
        &self,
        table: *const *const u8,
        table_step: usize,
        terms: &'t mut [i32],
    ) -> Option<&'t [i32]> {
        if self.weight_zero_point == 0 {
            return None;
        }
        let Common { runs, run_bytes, .. } = self.problem.common;
        let is_flipped = self.problem.common.is_signed && self.problem.inputs != Inputs::Unsigned;
        let flip = if is_flipped { 0x80 } else { 0 };
        for (row, term) in terms.iter_mut().enumerate() {
            let mut total = 0_i32;
            for run in 0..runs {
                // SAFETY: the caller's promise; the processor has the variant's instructions.
                total = total.wrapping_add(unsafe {
                    let run = *table.add(run * table_step + row);
                    (self.variant.sum)(std::slice::from_raw_parts(run, run_bytes), flip)
                });
            }
            if self.variant.has_signed_inputs {
                // As signed numbers each is 128 less.
                let count = i32::try_from(runs * run_bytes).unwrap_or(0);
                total = total.wrapping_sub(count.wrapping_mul(128));
            }
            *term = total.wrapping_mul(self.weight_zero_point).wrapping_neg();
        }
        Some(terms)
    }
}

/// The constants of all channels, which take this many vectors, from what each channel's sums begin with and the greatest
/// magnitude that they can have; and how the blocks are requantized.
///
/// # Errors
/// If they are more than may be taken.
fn channel_lanes(
    variant: &'static Variant,
    blocks: &mut [Block],
    vectors: usize,
    requantization: &Requantization,
    sum: &dyn Fn(usize) -> SumRange,
    preparation: &mut Preparation,
) -> Result<Vec<ChannelLanes>, TooLarge> {
    let shapes = blocks.to_vec();
    let mut pack = |index: usize, all: &mut [ChannelLanes]| {
        let shape = &shapes[index];
        let group = ChannelGroup {
            requantization,
            first: shape.channel,
            channels: shape.channels,
            vectors: shape.vectors,
            sum_offset: SUM_OFFSET,
            with_floats: variant.has_floats,
        };
        let (form, lanes) =
            group.pack(&|index| shape.place(index), &|index| sum(shape.channel + index));
        all[shape.lanes..][..shape.vectors].copy_from_slice(&lanes);
        form
    };
    let channels = |index: usize| shapes[index].channels;
    let (all_lanes, forms) =
        derived_lanes(preparation, vectors, shapes.len(), &channels, &mut pack)?;
    blocks.iter_mut().zip(forms).for_each(|(block, form)| block.form = form);
    Ok(all_lanes)
}
