//! [`Packed`]: depthwise convolution by blocks of channels.
#![allow(unsafe_code)]

use super::super::requantize::{ChannelGroup, ChannelLanes, Form, LANES};
use super::super::{Activations, Requantization, Signedness, Weights};
use super::columns::Columns;
use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::packing::PackedValues;
use crate::parts::even_tasks;
use crate::{Image, ImageMut, InstructionSet, Preparation, Team};
use bytemuck::{Pod, Zeroable};

/// Products that are worth a task of their own, and those that are worth sharing at all.
const PRODUCTS_PER_TASK: usize = 150_000;
const PRODUCTS_TO_SHARE: usize = 60_000;

/// Tasks for each thread, so that all end at about the same time.
const TASKS_PER_THREAD: usize = 4;

/// Which kernel it is packed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// Four taps at a time, in 64 lanes.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// Two taps at a time as 16-bit numbers, in 16 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// A tap at a time as 16-bit numbers, in 16 lanes.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Four taps at a time, in 16 lanes.
    #[cfg(target_arch = "aarch64")]
    Sdot,
}

impl Variant {
    pub(super) fn of(set: InstructionSet) -> Option<Self> {
        assert!(set.is_available(), "this processor does not have {set}");
        match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Vnni => Some(Self::Vnni),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 | InstructionSet::Avx2 => Some(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => Some(Self::Neon),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::NeonDotprod => Some(Self::Sdot),
            _ => None,
        }
    }

    /// Bytes or 16-bit numbers that a block's vectors hold.
    fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => 64,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 16,
            #[cfg(target_arch = "aarch64")]
            Self::Neon | Self::Sdot => 16,
        }
    }

    /// Whether sums can be requantised in floats.
    fn has_floats(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => true,
            _ => false,
        }
    }

    /// Taps that are packed, and mostly multiplied, together.
    fn taps(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => 4,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => 2,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => 2,
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => 4,
        }
    }

    /// Whether weights are bytes, or sums of two.
    fn takes_bytes(self) -> bool {
        self.taps() == 4
    }

    /// What is added to inputs when they are loaded.
    fn input_offset(self, signedness: Signedness) -> i32 {
        match self {
            // They are made unsigned.
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx2 => signedness.offset(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                let _ = signedness;
                0
            }
            // They are made signed.
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => signedness.offset() - 128,
        }
    }

    /// What is added to all sums.
    fn sum_offset(self) -> i32 {
        match self {
            // So that they can be requantised as unsigned numbers.
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx2 => i32::MIN,
            #[cfg(target_arch = "aarch64")]
            Self::Neon | Self::Sdot => 0,
        }
    }

    /// In which order taps are multiplied.
    fn order(self, shape: &Shape) -> Order {
        match (self, shape.filter, shape.stride[1], shape.dilation[1]) {
            #[cfg(target_arch = "x86_64")]
            (Self::Vnni, [3, 3], 1 | 2, 1) => Order::Columns3,
            #[cfg(target_arch = "x86_64")]
            (Self::Vnni, [5, 5], 1 | 2, 1) => Order::Columns5,
            #[cfg(target_arch = "aarch64")]
            (Self::Sdot, [3, 3], 1 | 2, 1) => Order::Columns3,
            _ => Order::Rows,
        }
    }

    /// Enters the weight of a tap at its place in its step; `start` tells where a step's 64 bytes of
    /// the channel's vector lie, and behind all steps those of second parts.
    fn put(
        self,
        out: &mut [u8],
        (start, lane): (impl Fn(usize) -> usize, usize),
        [step, place]: [usize; 2],
        steps: usize,
        weight: i32,
    ) {
        if self.takes_bytes() {
            let part = weight.clamp(-128, 127);
            for (step, part) in [(step, part), (steps + step, weight - part)] {
                // Nothing is left in a second part that there is not.
                if part != 0 {
                    out[start(step) + lane * 4 + place] = Signedness::Signed.byte(part);
                }
            }
            return;
        }
        let at = if self.has_pairs() { lane * 2 + place } else { place * LANES + lane };
        #[allow(clippy::cast_possible_truncation)] // 9 bits.
        let bytes = (weight as i16).to_le_bytes();
        out[start(step) + at * 2..][..2].copy_from_slice(&bytes);
    }

    /// Whether the two 16-bit numbers of a channel lie side by side.
    fn has_pairs(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx2 => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon | Self::Sdot => false,
        }
    }

    /// The vector of 16 sums and the lane in it that a block's lane is summed in: interleaving bytes
    /// of four taps takes four channels of each 128 bits in turn, interleaving 16-bit numbers of two
    /// taps does so as well.
    fn place(self, lane: usize) -> (usize, usize) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => (lane % 16 / 4, lane / 16 * 4 + lane % 4),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => (0, [0, 8, 4, 12][lane / 4] + lane % 4),
            #[cfg(target_arch = "aarch64")]
            Self::Neon | Self::Sdot => (0, lane),
        }
    }
}

/// Which taps are multiplied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The next ones of a row, going on in the next row.
    Rows,
    /// The three of a column of a 3x3 filter, which neighbouring output pixels share.
    Columns3,
    /// The upper four of a column of a 5x5 filter; then the first four of the last row; then the last
    /// tap as part of the four input pixels that the next output pixel sees first, where it is the
    /// last of them, or the first if the stride is 2.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Columns5,
}

impl Order {
    /// The step that a tap belongs to, and its place among those that are multiplied together.
    fn place(self, tap: usize, shape: &Shape, together: usize) -> [usize; 2] {
        let (i, j) = (tap / shape.filter[1], tap % shape.filter[1]);
        match self {
            Self::Rows => [tap / together, tap % together],
            Self::Columns3 => [j, i],
            Self::Columns5 if i < 4 => [j, i],
            Self::Columns5 if j < 4 => [5, j],
            Self::Columns5 => [6, if shape.stride[1] == 1 { 3 } else { 0 }],
        }
    }
}

/// Channels that are computed together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// The first channel.
    pub channel: usize,
    /// How many there are.
    pub channels: usize,
    /// Pixels that share the lanes, each having as many as the channels of one.
    pub pixels: usize,
    /// Whether the weights are the sums of two bytes.
    pub has_two_parts: bool,
    /// Where its weights begin, in bytes.
    weights: usize,
    /// The first of its channels' constants.
    lanes: usize,
    /// How sums become outputs.
    pub form: Form,
}

/// A depthwise convolution for one of the fast kernels.
#[derive(Debug)]
pub(super) struct Packed {
    pub variant: Variant,
    pub order: Order,
    pub filter: [usize; 2],
    /// From one output pixel to the next, in columns of the input.
    pub stride: usize,
    /// From one tap to the next, in columns of the input.
    pub dilation: usize,
    pub signedness: Signedness,
    pub requantization: Requantization,
    blocks: Vec<Block>,
    /// VNNI, SDOT: by block, part, four taps, vector, lane: four bytes. AVX2: by block, two taps, half
    /// vector, lane: two 16-bit numbers. NEON: by block, tap, lane: a 16-bit number.
    weights: PackedValues<u8>,
    lanes: Vec<ChannelLanes>,
    /// A pixel in the padding.
    padding: Vec<u8>,
    pieces: usize,
    block_pieces: usize,
}

/// Output pixels of a row, of a block, to be computed.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    /// The address of the first tap of the first pixel, in a [`Columns`]. Of what lies at each address
    /// the block's channels are read.
    pub table: *const *const u8,
    /// Addresses of a row of the filter.
    pub columns: usize,
    /// Output pixels; if two share the lanes, of each half.
    pub count: usize,
    /// How many pixels farther on those of the upper half are, 0 if they are the same.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub partner: usize,
    /// The first pixel's outputs of the block.
    pub output: *mut u8,
    /// From one pixel's outputs to the next.
    pub output_step: usize,
    pub block: &'a Block,
    /// Of the block.
    pub weights: *const u8,
    /// Of the block.
    pub lanes: &'a [ChannelLanes],
}

impl Run<'_> {
    /// The run without its first pixels.
    pub(super) fn after(&self, pixels: usize, stride: usize) -> Self {
        Self {
            table: self.table.wrapping_add(pixels * stride),
            count: self.count - pixels,
            output: self.output.wrapping_add(pixels * self.output_step),
            ..*self
        }
    }
}

/// What is needed of the weights of a channel less their zero point.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Facts {
    magnitude: i64,
    sum: i32,
    least: i32,
    greatest: i32,
    unused: i32,
}

impl Facts {
    /// Of weights `[taps, channels]`, by channel.
    fn gather(facts: &mut [Self], weights: Weights<'_>) {
        let channels = facts.len();
        for at in 0..weights.values.len() {
            let (weight, facts) = (weights.centred(at), &mut facts[at % channels]);
            facts.sum = facts.sum.wrapping_add(weight);
            facts.magnitude += i64::from(weight.abs());
            facts.least = facts.least.min(weight);
            facts.greatest = facts.greatest.max(weight);
        }
    }
}

impl Packed {
    /// None if there is no fast kernel for the shape.
    pub(super) fn new(
        shape: &Shape,
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: &Requantization,
        variant: Variant,
        preparation: &mut Preparation,
    ) -> Option<Self> {
        let (channels, taps) = (shape.output_channels, shape.taps());
        let is_plain = shape.group_output_channels() == 1 && channels > 1;
        if !is_plain || taps == 0 || Columns::pixels(shape) == 0 {
            return None;
        }
        let facts = preparation.derive(channels, |facts| Facts::gather(facts, weights));
        // The one weight that is not the sum of two signed bytes; only zero point 0 can make it.
        if variant.takes_bytes() && facts.iter().any(|facts| facts.greatest == 255) {
            return None;
        }
        let order = variant.order(shape);
        let steps = taps.div_ceil(variant.taps());
        let vectors = variant.lanes() / LANES;
        let mut blocks = Vec::new();
        let (mut channel, mut bytes, mut lanes) = (0, 0, 0);
        while channel < channels {
            let left = channels - channel;
            let pixels = if left <= 32 && variant.lanes() == 64 { 2 } else { 1 };
            let channels = left.min(variant.lanes() / pixels);
            let fits = |facts: &Facts| facts.least >= -128 && facts.greatest <= 127;
            let has_two_parts =
                variant.takes_bytes() && !facts[channel..channel + channels].iter().all(fits);
            blocks.push(Block {
                channel,
                channels,
                pixels,
                has_two_parts,
                weights: bytes,
                lanes,
                form: Form::Scalar,
            });
            // Four bytes or two 16-bit numbers for each lane.
            bytes += steps * variant.lanes() * 4 * if has_two_parts { 2 } else { 1 };
            lanes += vectors;
            channel += channels;
        }
        let packed = preparation.pack(bytes, |out| {
            for block in &blocks {
                for (index, pixel) in (0..block.channels * block.pixels)
                    .map(|at| (at / block.pixels, at % block.pixels))
                {
                    let lane = index + pixel * variant.lanes() / block.pixels;
                    let (vector, lane) = variant.place(lane);
                    let start = |step: usize| block.weights + (step * vectors + vector) * LANES * 4;
                    for tap in 0..taps {
                        let weight = weights.centred(tap * channels + block.channel + index);
                        let place = order.place(tap, shape, variant.taps());
                        variant.put(out, (start, lane), place, steps, weight);
                    }
                }
            }
        });
        let zero_point = activations.zero_point + variant.input_offset(activations.signedness);
        let mut all_lanes = vec![ChannelLanes::default(); lanes];
        for block in &mut blocks {
            let sum = |(facts, bias): (&Facts, &i32)| {
                let first = bias.wrapping_sub(zero_point.wrapping_mul(facts.sum));
                let bound = facts
                    .magnitude
                    .saturating_mul(activations.greatest())
                    .saturating_add(i64::from(*bias).abs());
                (first, bound)
            };
            let of_block = block.channel..block.channel + block.channels;
            let sums: Vec<(i32, i64)> =
                facts[of_block.clone()].iter().zip(&bias[of_block]).map(sum).collect();
            for pixel in 0..block.pixels {
                let first = pixel * variant.lanes() / block.pixels;
                let group = ChannelGroup {
                    requantization,
                    first: block.channel,
                    channels: block.channels,
                    vectors,
                    sum_offset: variant.sum_offset(),
                    with_floats: variant.has_floats(),
                };
                let (form, lanes) =
                    group.pack(|index| variant.place(first + index), |index| sums[index]);
                block.form = form;
                for (all, lanes) in all_lanes[block.lanes..].iter_mut().zip(&lanes) {
                    all.merge(lanes);
                }
            }
        }
        let (pieces, block_pieces) = cut(shape, blocks.len(), preparation.threads());
        let zero_point = activations.signedness.byte(activations.zero_point);
        Some(Self {
            variant,
            order,
            filter: shape.filter,
            stride: shape.stride[1],
            dilation: shape.dilation[1],
            signedness: activations.signedness,
            requantization: requantization.clone(),
            blocks,
            weights: packed,
            lanes: all_lanes,
            padding: vec![zero_point; channels],
            pieces,
            block_pieces,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        match self.variant {
            #[cfg(target_arch = "x86_64")]
            Variant::Vnni => "vnni",
            #[cfg(target_arch = "x86_64")]
            Variant::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Variant::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Variant::Sdot => "sdot",
        }
    }

    /// The output of one sum, by the definition.
    pub(super) fn output(&self, channel: usize, sum: i32) -> u8 {
        let sum = sum.wrapping_sub(self.variant.sum_offset());
        let output = self.requantization.apply(sum, channel);
        self.signedness.byte(output)
    }

    pub(super) fn run(
        &self,
        shape: &Shape,
        team: &mut Team,
        input: Image<'_, u8>,
        output: ImageMut<'_, u8>,
    ) {
        let output_step = output.pixel_stride;
        let output = DisjointOutput::new(output.values);
        team.run(self.pieces * self.block_pieces, &|task| {
            let (piece, block_piece) = (task / self.block_pieces, task % self.block_pieces);
            let [height, width] = shape.output;
            let rows = shape.batch * height;
            let begin = |piece: usize| rows * piece / self.pieces;
            let rows = begin(piece)..begin(piece + 1);
            let begin = |piece: usize| self.blocks.len() * piece / self.block_pieces;
            let blocks = &self.blocks[begin(block_piece)..begin(block_piece + 1)];
            let mut table = Columns::new();
            let most = Columns::pixels(shape);
            for row in rows {
                for x in (0..width).step_by(most) {
                    let count = most.min(width - x);
                    let columns = Columns::needed(shape, count);
                    let place = [row / height, row % height, x];
                    table.fill(shape, input, &self.padding, place, columns);
                    for block in blocks {
                        let at = (row * width + x) * output_step + block.channel;
                        let run = Run {
                            table: table.start(),
                            columns,
                            count: count / block.pixels,
                            partner: count / block.pixels * (block.pixels - 1),
                            output: output.pointer(at),
                            output_step,
                            block,
                            weights: self.weights.values()[block.weights..].as_ptr(),
                            lanes: &self.lanes[block.lanes..][..self.variant.lanes() / LANES],
                        };
                        // SAFETY: the table has the addresses of pixels of the image, whose size was
                        // checked, or of the padding, and all have the block's channels. So has the
                        // output, and tasks have different rows or blocks.
                        unsafe {
                            self.compute(&run);
                            if block.pixels * run.count < count {
                                // Of an odd number the last, in both halves.
                                let last = Run { count, ..run }.after(count - 1, self.stride);
                                self.compute(&Run { partner: 0, ..last });
                            }
                        }
                    }
                }
            }
        });
    }

    /// Computes the pixels of a run.
    ///
    /// # Safety
    /// The table has the addresses of all taps of all pixels, and behind each the block's channels can
    /// be read; the block's channels of all pixels' outputs can be written.
    unsafe fn compute(&self, run: &Run<'_>) {
        // SAFETY: the processor has the variant's instructions, as `Variant::of` made sure; the rest is
        // the caller's promise.
        unsafe {
            match self.variant {
                #[cfg(target_arch = "x86_64")]
                Variant::Vnni => super::vnni::compute(self, run),
                #[cfg(target_arch = "x86_64")]
                Variant::Avx2 => super::avx2::compute(self, run),
                #[cfg(target_arch = "aarch64")]
                Variant::Neon => super::neon::compute(self, run),
                #[cfg(target_arch = "aarch64")]
                Variant::Sdot => super::sdot::compute(self, run),
            }
        }
    }
}

/// Into how many pieces rows and blocks are cut.
fn cut(shape: &Shape, blocks: usize, threads: usize) -> (usize, usize) {
    let pixels = shape.output_pixels();
    if threads <= 1 || pixels == 0 {
        return (usize::from(pixels > 0), 1);
    }
    let products = pixels.saturating_mul(shape.filter_values());
    let least = if products < PRODUCTS_TO_SHARE { 1 } else { threads };
    let worth = (products / PRODUCTS_PER_TASK).max(least);
    let tasks = even_tasks(worth, threads, TASKS_PER_THREAD);
    let rows = shape.batch * shape.output[0];
    if rows >= 4 * threads || blocks < threads {
        let pieces = tasks.min(rows);
        (pieces, tasks.div_ceil(pieces).min(blocks))
    } else {
        // So few rows are not shared evenly.
        (1, tasks.min(threads))
    }
}
