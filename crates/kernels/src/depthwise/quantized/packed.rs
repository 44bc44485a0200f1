//! [`Packed`]: depthwise convolution by blocks of channels.
#![allow(unsafe_code)]

use super::columns::{Columns, ENTRIES};
use super::problem::{Block, Problem, Run};
use super::variant::Variant;
use crate::convolution::Shape;
use crate::convolution::quantized::Layer;
use crate::disjoint::DisjointOutput;
use crate::preparation::PackedValues;
use crate::quantization::Weights;
use crate::requantize::{ChannelGroup, ChannelLanes, Form, LANES, SumRange, derived_lanes};
use crate::sharing::tasks_worth;
use crate::team::{Pace, part};
use crate::{Images, InstructionSet, Preparation, Team, TooLarge};
use bytemuck::{Pod, Zeroable};

/// Products that are worth a task of their own, and those that are worth sharing at all.
const PRODUCTS_PER_TASK: usize = 150_000;
const PRODUCTS_TO_SHARE: usize = 60_000;

/// A depthwise convolution for one of the fast kernels.
#[derive(Debug)]
pub(super) struct Packed {
    shape: Shape,
    variant: &'static Variant,
    problem: Problem,
    blocks: Vec<Block>,
    /// By block and step, as [`Packing::put`](super::packing::Packing::put) enters them.
    weights: PackedValues<u8>,
    lanes: Vec<ChannelLanes>,
    /// A pixel in the padding.
    padding: Vec<u8>,
    pieces: usize,
    block_pieces: usize,
}

/// What is needed of the weights of a channel less their zero point.
#[derive(Debug, Clone, Copy, Zeroable, Pod)]
#[repr(C)]
struct Facts {
    magnitude: i64,
    sum: i64,
    least: i32,
    greatest: i32,
}

impl Facts {
    /// Of weights `[taps, channels]`, by channel.
    fn gather(facts: &mut [Self], weights: Weights<'_>, pace: &mut Pace<'_>) {
        let channels = facts.len();
        for at in pace.blocks(weights.values.len(), 4).flatten() {
            let (weight, facts) = (weights.centred(at), &mut facts[at % channels]);
            facts.sum += i64::from(weight);
            facts.magnitude += i64::from(weight.abs());
            facts.least = facts.least.min(weight);
            facts.greatest = facts.greatest.max(weight);
        }
    }
}

impl Packed {
    /// None if there is no fast kernel for the shape.
    ///
    /// # Errors
    /// If the packed weights are more than may be taken.
    pub(super) fn new(
        shape: &Shape,
        layer: &Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let Layer { weights, bias, activations, ref requantization } = *layer;
        let (channels, taps) = (shape.output_channels, shape.taps());
        let is_plain = shape.group_output_channels() == 1 && channels > 1;
        let set = preparation.set();
        if set == InstructionSet::Portable || !is_plain || taps == 0 || !Columns::suit(shape) {
            return Ok(None);
        }
        let facts = preparation.derive(channels, |facts, pace| {
            Facts::gather(facts, weights, pace);
        })?;
        let fits = |facts: &Facts| facts.least >= -128 && facts.greatest <= 127;
        let are_bytes = facts.iter().all(fits);
        let Some(variant) = Variant::of(set, are_bytes, shape.filter) else { return Ok(None) };
        let packing = variant.packing;
        // The one weight that is not the sum of two signed bytes; only zero point 0 can make it.
        if packing.takes_bytes() && facts.iter().any(|facts| facts.greatest == 255) {
            return Ok(None);
        }
        let order = packing.order(shape);
        let steps = taps.div_ceil(packing.taps());
        let vectors = packing.lanes / LANES;
        let mut blocks = preparation.room(channels.div_ceil(LANES), "blocks of channels")?;
        let (mut channel, mut bytes, mut lanes) = (0, 0, 0);
        while channel < channels {
            let left = channels - channel;
            let pixels = packing.pixels(left);
            let channels = left.min(packing.lanes / pixels);
            let has_two_parts =
                packing.takes_bytes() && !facts[channel..channel + channels].iter().all(fits);
            blocks.push(Block {
                channel,
                channels,
                pixels,
                has_two_parts,
                weights: bytes,
                lanes,
                form: Form::Scalar,
            });
            let of_step = packing.step_bytes() * if has_two_parts { 2 } else { 1 };
            let of_block = steps.checked_mul(of_step).and_then(|all| all.checked_add(bytes));
            bytes = of_block.ok_or(TooLarge::beyond_addresses("packed weights"))?;
            lanes += vectors;
            channel += channels;
        }
        let packed = preparation.pack(bytes, |out: &mut [u8], pace| {
            for block in &blocks {
                for (index, pixel) in (0..block.channels * block.pixels)
                    .map(|at| (at / block.pixels, at % block.pixels))
                {
                    if pace.is_over(4 * taps) {
                        return;
                    }
                    let sum = packing.sum_of_lane(index + pixel * packing.lanes / block.pixels);
                    for tap in 0..taps {
                        let weight = weights.centred(tap * channels + block.channel + index);
                        let place = order.place(tap, shape, packing.taps());
                        packing.put(&mut out[block.weights..], place, steps, sum, weight);
                    }
                }
            }
        })?;
        let zero_point = activations.zero_point + variant.input_offset(activations.signedness);
        let mut pack = |index: usize, all: &mut [ChannelLanes]| {
            let block = &blocks[index];
            let sum = |(facts, bias): (&Facts, &i32)| {
                #[allow(clippy::cast_possible_truncation)] // Modulo 2^32, as all sums.
                let of_weights = facts.sum as i32;
                let first = bias.wrapping_sub(zero_point.wrapping_mul(of_weights));
                SumRange::new(activations, first, facts.magnitude, *bias)
            };
            let of_block = block.channel..block.channel + block.channels;
            let sums: Vec<SumRange> =
                facts[of_block.clone()].iter().zip(&bias[of_block]).map(sum).collect();
            let mut form = Form::Scalar;
            for pixel in 0..block.pixels {
                let first = pixel * packing.lanes / block.pixels;
                let group = ChannelGroup {
                    requantization,
                    first: block.channel,
                    channels: block.channels,
                    vectors,
                    sum_offset: variant.sum_offset(),
                    with_floats: variant.has_floats,
                };
                let place = |index: usize| {
                    let sum = packing.sum_of_lane(first + index);
                    (sum / LANES, sum % LANES)
                };
                let lanes;
                (form, lanes) = group.pack(&place, &|index| sums[index]);
                for (all, lanes) in all[block.lanes..].iter_mut().zip(&lanes) {
                    all.merge(lanes);
                }
            }
            form
        };
        let of_block = |index: usize| blocks[index].channels;
        let (lanes, forms) = derived_lanes(preparation, lanes, blocks.len(), &of_block, &mut pack)?;
        blocks.iter_mut().zip(forms).for_each(|(block, form)| block.form = form);
        let (pieces, block_pieces) = cut(shape, blocks.len(), preparation.threads());
        Ok(Some(Self {
            shape: *shape,
            variant,
            problem: Problem {
                packing,
                order,
                filter: shape.filter,
                stride: shape.stride[1],
                dilation: shape.dilation[1],
                signedness: activations.signedness,
                flip: variant.flip(activations.signedness),
                requantization: requantization.repeated(1, preparation)?,
                sum_offset: variant.sum_offset(),
            },
            blocks,
            weights: packed,
            lanes,
            padding: preparation.filled(layer.padding(), channels, "a pixel of padding")?,
            pieces,
            block_pieces,
        }))
    }

    pub(super) fn name(&self) -> &'static str {
        self.variant.name()
    }

    /// # Panics
    /// If an image is smaller than the shape says.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, u8>) {
        let Images { input, output, .. } = images;
        let shape = &self.shape;
        let channels = shape.input_channels;
        input.check("input", shape.input_pixels(), channels);
        output.check("output", shape.output_pixels(), channels);
        let output_step = output.pixel_stride;
        let output = DisjointOutput::new(output.values);
        team.run_long(self.pieces * self.block_pieces, &|task, stop| {
            let mut pace = Pace::new(stop);
            let (piece, block_piece) = (task / self.block_pieces, task % self.block_pieces);
            let [height, width] = shape.output;
            let rows = part(shape.batch * height, self.pieces, piece);
            let blocks = &self.blocks[part(self.blocks.len(), self.block_pieces, block_piece)];
            let mut table = Columns::new();
            let most = Columns::pixels(shape);
            for row in rows {
                for x in (0..width).step_by(most) {
                    let count = most.min(width - x);
                    let columns = shape.reach(1, count);
                    assert!(columns * shape.filter[0] <= ENTRIES, "{columns} columns of addresses");
                    let place = [row / height, row % height, x];
                    table.fill(shape, input, &self.padding, place, columns);
                    for block in blocks {
                        if pace.is_over(count * block.channels * shape.taps()) {
                            return;
                        }
                        let at = (row * width + x) * output_step + block.channel;
                        let end = at + (count - 1) * output_step + block.channels;
                        assert!(end <= output.len(), "pixels end {end} bytes into the output");
                        // Of an odd number the halves have one in common.
                        let of_half = count.div_ceil(block.pixels);
                        let run = Run {
                            table: table.start(),
                            columns,
                            count: of_half,
                            partner: count - of_half,
                            output: output.pointer(at),
                            output_step,
                            block,
                            weights: self.weights.values()[block.weights..].as_ptr(),
                            lanes: &self.lanes[block.lanes..][..self.problem.packing.lanes / LANES],
                        };
                        // SAFETY: the processor has the instructions, as `Variant::of` made sure. The
                        // table has the addresses of pixels of the image, whose size was checked above,
                        // or of the padding, and all have the block's channels; it has all columns that
                        // the taps of these pixels see, `Shape::reach`. The weights are packed for
                        // the variant, the order and the filter, and begin on a line. The output has
                        // the block's channels of the pixels, and tasks have different rows or blocks.
                        unsafe { (self.variant.compute)(&self.problem, &run) };
                    }
                }
            }
        });
    }
}

/// Into how many pieces rows and blocks are cut.
fn cut(shape: &Shape, blocks: usize, threads: usize) -> (usize, usize) {
    let pixels = shape.output_pixels();
    if threads <= 1 || pixels == 0 {
        return (usize::from(pixels > 0), 1);
    }
    let products = pixels.saturating_mul(shape.filter_values());
    let tasks = tasks_worth(products, [PRODUCTS_PER_TASK, PRODUCTS_TO_SHARE], threads);
    let rows = shape.batch * shape.output[0];
    if rows >= 4 * threads || blocks < threads {
        let pieces = tasks.min(rows);
        (pieces, tasks.div_ceil(pieces).min(blocks))
    } else {
        // So few rows are not shared evenly.
        (1, tasks.min(threads))
    }
}
