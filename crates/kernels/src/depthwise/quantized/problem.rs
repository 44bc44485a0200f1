//! [`Problem`] and [`Run`]: what kernels have to know of a depthwise convolution, and what they compute at once.

#![allow(unsafe_code)]

use super::packing::{Order, Packing};
use crate::quantization::Signedness;
use crate::requantize::{ChannelLanes, Form, Requantization};

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
    pub weights: usize,
    /// The first of its channels' constants.
    pub lanes: usize,
    /// How sums become outputs.
    pub form: Form,
}

/// What kernels have to know of a depthwise convolution.
#[derive(Debug)]
pub(super) struct Problem {
    pub packing: Packing,
    pub order: Order,
    pub filter: [usize; 2],
    /// From one output pixel to the next, in columns of the input.
    pub stride: usize,
    /// From one tap to the next, in columns of the input.
    pub dilation: usize,
    pub signedness: Signedness,
    /// What gives inputs the sign that kernels want.
    pub flip: i8,
    pub requantization: Requantization,
    /// What is added to all sums.
    pub sum_offset: i32,
}

impl Problem {
    /// The output of one sum, by the definition.
    pub(super) fn output(&self, channel: usize, sum: i32) -> u8 {
        let sum = sum.wrapping_sub(self.sum_offset);
        let output = self.requantization.apply(sum, channel);
        self.signedness.byte(output)
    }
}

/// Output pixels of a row, of a block, to be computed.
#[derive(Clone, Copy)]
pub(super) struct Run<'a> {
    /// The address of the first tap of the first pixel, in a [`Columns`]. Of what is at each address
    /// the block's channels are read.
    pub table: *const *const u8,
    /// Addresses of a row of the filter.
    pub columns: usize,
    /// Output pixels; if two share the lanes, of each half.
    pub count: usize,
    /// How many pixels farther on those of the upper half are, 0 if they are the same.
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
    /// Where the block's channels are of the pixel of an entry.
    ///
    /// # Safety
    /// The table has the entry.
    #[inline(always)]
    #[allow(clippy::inline_always)] // It is a part of loads.
    pub(super) unsafe fn pixel(&self, entry: usize) -> *const u8 {
        // SAFETY: the caller's promise.
        unsafe { *self.table.add(entry) }.wrapping_add(self.block.channel)
    }

    /// Requantizes one by one and stores: for each of the first pixels, and its partner, the sums of all lanes.
    ///
    /// # Safety
    /// The block's channels of these pixels may be written.
    #[cold]
    pub(super) unsafe fn store_scalar<const LANES: usize>(
        &self,
        problem: &Problem,
        sums: &[[i32; LANES]],
    ) {
        let Block { channel, channels, pixels, .. } = *self.block;
        for (pixel, sums) in sums.iter().enumerate() {
            for (part, index) in
                (0..pixels).flat_map(|part| (0..channels).map(move |it| (part, it)))
            {
                let lane = part * (LANES / pixels) + index;
                let output =
                    problem.output(channel + index, sums[problem.packing.sum_of_lane(lane)]);
                let at = (pixel + part * self.partner) * self.output_step + index;
                // SAFETY: a channel of one of the pixels.
                unsafe { self.output.add(at).write(output) };
            }
        }
    }

    /// The run without its first pixels.
    pub(super) fn after(&self, pixels: usize, stride: usize) -> Self {
        Self {
            // Within the table and the output, so that nothing wraps.
            table: self.table.wrapping_add(pixels.wrapping_mul(stride)),
            count: self.count - pixels,
            output: self.output.wrapping_add(pixels.wrapping_mul(self.output_step)),
            ..*self
        }
    }
}
