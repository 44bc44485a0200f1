//! Winograd's convolution F(4x4, 3x3) in whole numbers, exact to the bit: a tile of output pixels takes 36 products
//! of each pair of channels instead of 144.
//!
//! The input is cut into tiles that overlap by two pixels, which are transformed to 16-bit numbers; for each point
//! there is a matrix product over the channels, of all tiles with the transformed filter, by the instructions that
//! multiply 16-bit numbers where there are none for bytes, so that it takes no more for each product; sums are
//! transformed back, and requantized as all others.
//!
//! Nothing is rounded. With `c` the greatest sums of factors of one sign that an input has in a point
//! ([`INPUT_FACTORS`](transform::INPUT_FACTORS)), transformed inputs are between `-255 c` and `255 c`, at most 17340; and
//! transformed weights are at most 49 times a weight, 12495. So they fit in 16 bits, and two of their products in
//! 31. Sums wrap modulo 2^32, and so does the transform back. It gives a multiple of what is wanted: 9 is undone by
//! its inverse modulo 2^32, and up to 64 by a shift, if the wanted sum is between -2^25 and 2^25. That is proved for the weights at hand, or
//! the convolution is computed otherwise.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;
mod transform;

use super::tasks::{OPERATIONS_PER_TASK, Tasks};
use super::{Layer, Method, Pass};
use crate::convolution::Shape;
use crate::convolution::tiles::Tiles;
use crate::gemm::quantized::{Block, Matrix, Tile, Variant, WORD_PIECE};
use crate::preparation::product;
use crate::quantization::{Signedness, Sums, Weights};
use crate::requantize::{LANES, SumRange};
use crate::sharing::{TASKS_BY_THREAD, even_tasks};
use crate::team::{Pace, part};
use crate::vector::{Isa, WORDS};
use crate::{InstructionSet, LINE_BYTES, Line, Preparation, TooLarge};
use std::ops::Range;
use transform::{Backward, EXCESS, Forward, OUTPUT, OutputTile, POINTS, Promised, filters};

/// Transformed inputs that meet all weights before the next ones do should stay in the second cache, together with
/// the weights of a block of channels.
const INPUT_BYTES: usize = 256 << 10;
/// Tiles whose inputs are transformed together, at most and, where there are that many, at least.
const MOST_TILES: usize = 96;
const LEAST_TILES: usize = 12;
/// About how many times fewer multiplications there are.
const OPERATIONS_SAVED: u64 = 3;
/// Packed weights that stay in the second cache.
const NEAR_WEIGHT_BYTES: usize = 512 << 10;
/// Larger packed weights would often be read from memory, and take longer than what they save.
const MOST_WEIGHT_BYTES: usize = 12 << 20;

/// A convolution of a 3x3 filter, packed.
#[derive(Debug)]
pub(super) struct Winograd {
    tiles: Tiles,
    isa: Isa,
    /// By block of channels and point.
    products: Matrix,
    outputs: Matrix,
    /// A pixel in the padding.
    padding: Vec<u8>,
    signedness: Signedness,
    /// Tiles whose inputs are transformed together, at most.
    together: usize,
    tasks: Tasks,
}

/// Tiles whose inputs are transformed together: about the same number each time, if there are enough.
fn together(inputs: usize, tiles: usize) -> usize {
    let fitting = INPUT_BYTES / (POINTS * inputs * size_of::<i16>()).max(1);
    let most = fitting.clamp(LEAST_TILES, MOST_TILES);
    tiles.div_ceil(tiles.div_ceil(most).max(1)).max(1)
}

/// Into which tasks tiles and blocks of channels of a convolution are cut that has this number of operations if it is computed
/// as it is defined.
fn tasks(operations: u64, tiles: usize, blocks: usize, threads: usize) -> Tasks {
    let left = usize::try_from(operations / OPERATIONS_SAVED).unwrap_or(usize::MAX);
    let tasks = even_tasks(left / OPERATIONS_PER_TASK, threads, TASKS_BY_THREAD);
    let (pieces, block_pieces) = if tasks <= 1 {
        (1, 1)
    } else if tiles >= threads * LEAST_TILES || blocks < threads {
        // Weights are read for each piece.
        let by_thread = (tiles / (2 * LEAST_TILES * threads)).clamp(1, tasks.div_ceil(threads));
        ((by_thread * threads).min(tasks).min(tiles), 1)
    } else {
        // Inputs are transformed for each piece.
        (1, tasks.min(threads))
    };
    Tasks::by_rows(pieces, blocks, block_pieces)
}

/// What it takes beside products by the kernel of 16-bit numbers, in units of one of them. From measurements of
/// convolutions of 16 to 512 channels.
struct Costs {
    /// To transform an input tile, and a tile of sums back, for each channel.
    of_tile: [usize; 2],
    /// To read a weight that is in no near cache.
    of_weight: usize,
    /// A product by the kernel that computes the convolution otherwise, in hundredths.
    of_direct: u128,
}

impl Costs {
    fn of(set: InstructionSet) -> Self {
        match set {
            InstructionSet::Avx512Vnni => {
                Self { of_tile: [100, 1250], of_weight: 14, of_direct: 57 }
            }
            InstructionSet::Avx512 => Self { of_tile: [60, 670], of_weight: 8, of_direct: 100 },
            // Products of bytes are faster: all of them with VNNI, those of most weights without.
            InstructionSet::AvxVnni => Self { of_tile: [180, 800], of_weight: 6, of_direct: 49 },
            _ => Self { of_tile: [180, 800], of_weight: 6, of_direct: 68 },
        }
    }

    /// What a convolution takes, in the same units; none if it is not possible.
    fn all(&self, shape: &Shape) -> Option<u128> {
        let [inputs, outputs] = [shape.input_channels, shape.output_channels];
        let weights = product(&[POINTS, inputs, outputs])?;
        if weights.checked_mul(2)? > MOST_WEIGHT_BYTES {
            return None;
        }
        let tiles = Tiles::new(OUTPUT, shape).count;
        let reading = match 2 * weights {
            ..=NEAR_WEIGHT_BYTES => 0,
            _ => product(&[weights, tiles.div_ceil(together(inputs, tiles)), self.of_weight])?,
        };
        let [forward, backward] = self.of_tile;
        let by_tile = product(&[forward, inputs])?.checked_add(product(&[backward, outputs])?)?;
        let by_tile = by_tile.checked_add(weights)?;
        Some(product(&[by_tile, tiles])?.checked_add(reading)? as u128)
    }
}

/// Sums of a channel's weights less their zero point.
struct CentredSums {
    /// Of the positive ones.
    positive: i64,
    /// Of the magnitudes of the negative ones.
    negative: i64,
}

impl CentredSums {
    /// From those of this many weights.
    fn new(sums: &Sums, weights: Weights<'_>, count: usize) -> Self {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let sum = sums.sum - i64::from(weights.signed_zero_point()).saturating_mul(count);
        let negative = (sums.magnitude - sum) / 2;
        Self { positive: sums.magnitude - negative, negative }
    }

    /// Whether sums come out exact, of inputs as they are stored, up to this least and greatest one.
    fn are_exact(&self, (least, greatest): (i32, i32)) -> bool {
        let product = |a: i64, b: i32| a.saturating_mul(b.into());
        let most = product(self.positive, greatest).saturating_sub(product(self.negative, least));
        let fewest = product(self.positive, least).saturating_sub(product(self.negative, greatest));
        let limit = 1_i64 << (31 - 2 * EXCESS[0]);
        fewest >= -limit && most < limit
    }
}

/// Whether tiles can be cut from such images, and are likely to be faster than the plain product.
fn suits(shape: &Shape, set: InstructionSet) -> bool {
    let products = shape.output_pixels() as u128 * shape.filter_values() as u128;
    let costs = Costs::of(set);
    let direct = products.saturating_mul(costs.of_direct) / 100;
    Tiles::suit(shape)
        && shape.input_channels > 0
        && shape.input_channels.is_multiple_of(WORDS)
        && shape.output_channels > 0
        && !shape.is_mostly_padding()
        && costs.all(shape).is_some_and(|cost| cost < direct)
}

impl Winograd {
    /// None if another way is likely to be faster, or sums could be inexact.
    ///
    /// # Errors
    /// If the packed weights are more than may be taken.
    pub(super) fn new(
        shape: &Shape,
        layer: &Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        match Variant::of_words(preparation.set()) {
            Some(variant) if suits(shape, preparation.set()) => {
                Self::of_variant(variant, shape, layer, preparation)
            }
            _ => Ok(None),
        }
    }

    /// None if sums could be inexact.
    fn of_variant(
        variant: &'static Variant,
        shape: &Shape,
        layer: &Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Option<Self>, TooLarge> {
        let Layer { weights, bias, activations, ref requantization } = *layer;
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        // Forward transforms rely on it.
        assert!(inputs > 0 && inputs.is_multiple_of(WORDS), "{inputs} input channels");
        let count = shape.taps() * inputs;
        let isa = Isa::of(preparation.set());
        let of_channels = preparation.derive(outputs, |all: &mut [Sums], pace| {
            for (sums, values) in all.iter_mut().zip(weights.values.chunks_exact(count)) {
                for block in pace.blocks(count, 1) {
                    sums.add(isa, weights, &values[block]);
                }
            }
        })?;
        let centred = |sums: &Sums| CentredSums::new(sums, weights, count);
        let range = activations.signedness.range();
        if !of_channels.iter().all(|sums| centred(sums).are_exact(range)) {
            return Ok(None);
        }
        #[allow(clippy::cast_possible_truncation)] // Differences of 8-bit numbers.
        let centred_weights = |channel: usize, from: usize, points: &mut [[i16; WORD_PIECE]]| {
            let mut taps = [[0; WORD_PIECE]; 9];
            for (tap, taps) in taps.iter_mut().enumerate() {
                let first = (channel * 9 + tap) * inputs + from;
                let values = &weights.values[first..][..WORD_PIECE.min(inputs - from)];
                for (to, byte) in taps.iter_mut().zip(values) {
                    *to = (weights.signedness.value(*byte) - weights.zero_point) as i16;
                }
            }
            filters(&taps, points);
        };
        let sizes = [POINTS, outputs, inputs];
        let products = Matrix::of_words(variant, sizes, centred_weights, preparation)?;
        let sums = of_channels.iter().zip(bias).map(|(sums, bias)| {
            let sum = centred(sums);
            #[allow(clippy::cast_possible_truncation)] // Modulo 2^32, as all sums.
            let of_weights = (sum.positive - sum.negative) as i32;
            let first = bias.wrapping_sub(activations.zero_point.wrapping_mul(of_weights));
            SumRange::new(activations, first, sums.magnitude, *bias)
        });
        let sums = preparation.collected(sums, "sums of weights")?;
        let requantization = requantization.repeated(1, preparation)?;
        let signedness = activations.signedness;
        let outputs = Matrix::of_outputs(variant, &sums, signedness, requantization, preparation)?;
        let tiles = Tiles::new(OUTPUT, shape);
        let blocks = products.blocks().len() / POINTS;
        let tasks = tasks(shape.operations(), tiles.count, blocks, preparation.threads());
        let winograd = Self {
            tiles,
            isa: Isa::of(preparation.set()),
            products,
            outputs,
            padding: preparation.filled(layer.padding(), inputs, "a pixel of padding")?,
            signedness,
            together: together(inputs, tiles.count.div_ceil(tasks.pieces.max(1))),
            tasks,
        };
        preparation.check_scratch::<Line>(&[winograd.tasks(), winograd.task_lines()])?;
        Ok(Some(winograd))
    }

    /// Of the transformed inputs.
    fn input_lines(&self) -> usize {
        (POINTS * self.input_stride() * size_of::<i16>()).div_ceil(LINE_BYTES)
    }

    /// Of the sums of a block of channels.
    fn sum_lines(&self) -> usize {
        let vectors = self.products.blocks().iter().map(|block| block.vectors).max().unwrap_or(0);
        (POINTS * self.sum_stride(vectors) * size_of::<i32>()).div_ceil(LINE_BYTES)
    }

    /// From one point's transformed inputs to the next one's, in numbers. A line more than they take, so that not
    /// all points of a tile fall into the same set of a cache.
    fn input_stride(&self) -> usize {
        let values = self.together * self.padding.len();
        values.next_multiple_of(2 * WORDS) + 2 * WORDS
    }

    /// From one point's sums to the next one's, in numbers.
    fn sum_stride(&self, vectors: usize) -> usize {
        (self.together * vectors + 1) * LANES
    }

    /// Transforms an input tile to where its first point's numbers begin.
    fn forward(&self, pass: &Pass<'_>, tile: usize, to: &mut [i16]) {
        let channels = self.padding.len();
        let mut pixels = [std::ptr::null(); POINTS];
        self.tiles.locate(pass.shape, tile, (pass.input, &self.padding), &mut pixels);
        let stride = self.input_stride();
        assert!((POINTS - 1) * stride + channels <= to.len(), "transformed inputs");
        let forward = Forward {
            pixels: &pixels,
            channels,
            is_signed: self.signedness == Signedness::Signed,
            to: to.as_mut_ptr(),
            stride,
        };
        // SAFETY: each pixel was taken as a slice of its channels, and the padding has a byte for each channel; the last
        // point's numbers were seen to be within the slice; `of_variant` has checked that vectors divide channels.
        self.isa.run(unsafe { Promised::new(forward) });
    }

    /// The products of some tiles with a point's weights.
    fn multiply(
        &self,
        [block, next]: [&Block; 2],
        point: usize,
        tiles: usize,
        wide: &[i16],
        sums: &mut [i32],
    ) {
        let inputs = self.padding.len();
        let rows = &wide[point * self.input_stride()..][..tiles * inputs];
        let mut table = [std::ptr::null(); MOST_TILES];
        for (address, row) in table.iter_mut().zip(rows.chunks_exact(inputs)) {
            *address = row.as_ptr().cast();
        }
        let row = block.vectors * LANES;
        let sums = &mut sums[point * self.sum_stride(block.vectors)..][..tiles * row];
        let tile = Tile {
            table: table[..tiles].as_ptr(),
            table_step: 0,
            rows: tiles,
            row_terms: None,
            weights: self.products.block_weights(block),
            lanes: self.products.block_lanes(block),
            output: sums.as_mut_ptr().cast(),
            output_step: row * size_of::<i32>(),
        };
        // SAFETY: the block is one of the products'; the table has an address for each row, of as many numbers as
        // the products are deep; the sums of all rows are in the slice.
        unsafe { self.products.compute_rows(block, &tile, self.products.block_weights(next)) };
    }

    /// Transforms the sums of a tile back into the output.
    ///
    /// # Safety
    /// No one else touches the tile's outputs of the block's channels.
    unsafe fn backward(
        &self,
        pass: &Pass<'_>,
        block: &Block,
        [tile, index]: [usize; 2],
        sums: &[i32],
    ) {
        let (shape, output) = (pass.shape, pass.target());
        let (first, there) = self.tiles.output(shape, tile);
        let stride = self.sum_stride(block.vectors);
        let [rows, columns] = there.map(|size| size.min(OUTPUT));
        let first_vector = block.channel / LANES;
        let of_channels = &self.outputs.blocks()[first_vector..][..block.vectors];
        for (vector, out) in of_channels.iter().enumerate() {
            let from = &sums[(index * block.vectors + vector) * LANES..];
            assert!((POINTS - 1) * stride + LANES <= from.len(), "sums");
            let mut values: OutputTile = [[[0; LANES]; OUTPUT]; OUTPUT];
            let bias = &self.outputs.block_lanes(out)[0].bias;
            let backward = Backward { from: from.as_ptr(), stride, bias, to: &mut values };
            // SAFETY: the last point's sums were seen to be there.
            self.isa.run(unsafe { Promised::new(backward) });
            for (row, values) in values[..rows].iter().enumerate() {
                let start = output.places.start(first + row * shape.output[1]);
                let channels = out.channel..out.channel + out.channels;
                let to = (output.pixels(start, columns, channels), output.places.stride());
                // SAFETY: the outputs were seen to exist; that no one else touches them is the caller's promise.
                unsafe { self.outputs.requantize(out, &values[..columns], to) };
            }
        }
    }
}

impl Method for Winograd {
    fn name(&self) -> &'static str {
        self.outputs.variant.name()
    }

    fn tasks(&self) -> usize {
        self.tasks.count()
    }

    fn task_lines(&self) -> usize {
        self.input_lines() + self.sum_lines()
    }

    unsafe fn task(&self, pass: &Pass<'_>, task: usize, scratch: &mut [Line]) {
        let part_of_task = self.tasks.parts(task).next();
        let Some((piece, of_channels)) = part_of_task else { return };
        let Range { start: mut next, end } = part(self.tiles.count, self.tasks.pieces, piece);
        let (wide, sums) = scratch.split_at_mut(self.input_lines());
        let wide: &mut [i16] = bytemuck::cast_slice_mut(wide);
        let sums: &mut [i32] = bytemuck::cast_slice_mut(sums);
        let mut pace = Pace::new(pass.stop);
        let inputs = pass.shape.input_channels;
        while next < end {
            let tiles = next..end.min(next + self.together);
            next = tiles.end;
            for (index, tile) in tiles.clone().enumerate() {
                if pace.is_over(POINTS * inputs) {
                    return;
                }
                self.forward(pass, tile, &mut wide[index * inputs..]);
            }
            for first in of_channels.clone().map(|block| block * POINTS) {
                let blocks = &self.products.blocks()[first..][..POINTS];
                for (point, block) in blocks.iter().enumerate() {
                    if pace.is_over(tiles.len() * inputs * block.channels) {
                        return;
                    }
                    let next = self.products.blocks().get(first + point + 1).unwrap_or(block);
                    self.multiply([block, next], point, tiles.len(), wide, sums);
                }
                for (index, tile) in tiles.clone().enumerate() {
                    if pace.is_over(POINTS * blocks[0].channels) {
                        return;
                    }
                    // SAFETY: the caller's promise for the output.
                    unsafe { self.backward(pass, &blocks[0], [tile, index], sums) };
                }
            }
        }
    }
}
