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

pub use round::Rounding;
pub use rounded::RoundedConvolution;

use crate::convolution::Shape;
use crate::convolution::quantized::{Block, FromSums, SumConvolution};
use crate::disjoint::DisjointOutput;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::quantization::{Signedness, Sums, Weights};
use crate::requantize::LANES;
use crate::vector::{Isa, Kernel, Simd};
use crate::{Epilogue, LINE_BYTES, Line, Preparation, Team, TooLarge};
use images::{Images, Meaning};

/// A convolution with its weights packed and its work cut into tasks.
#[derive(Debug)]
pub struct Convolution {
    shape: Shape,
    images: Images,
    products: SumConvolution,
    scaling: Scaling,
}

/// What becomes of sums, by output channel.
#[derive(Debug)]
struct Scaling {
    isa: Isa,
    scales: Vec<f32>,
    bias: Vec<f32>,
    weight_sums: Vec<i32>,
    epilogue: Epilogue,
}

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
        let channels = shape.output_channels;
        assert_eq!(bias.len(), channels, "values of the bias");
        assert!([1, channels].contains(&scales.len()), "{} scales", scales.len());
        let isa = Isa::of(preparation.set());
        let scales = match scales {
            [one] => preparation.filled(*one, channels, "scales of weights")?,
            each => preparation.copied(each, "scales of weights")?,
        };
        let bias = preparation.copied(bias, "a bias")?;
        let products = SumConvolution::prepare(shape, weights, preparation)?;
        let of_channel = shape.taps() * shape.group_input_channels();
        let weights = Weights { values: weights, signedness: Signedness::Signed, zero_point: 0 };
        let sums = preparation.derive(channels, |all: &mut [Sums], pace| {
            for (channel, sums) in all.iter_mut().enumerate() {
                for part in pace.blocks(of_channel, 1) {
                    sums.add(isa, weights, &weights.values[channel * of_channel..][part]);
                }
            }
        })?;
        let weight_sums =
            preparation.collected(sums.iter().map(Sums::wrapped), "sums of weights")?;
        let elements = shape.input[0] * shape.input[1] * shape.input_channels;
        let images = Images::new(isa, [shape.batch, elements], preparation.threads());
        let scaling = Scaling { isa, scales, bias, weight_sums, epilogue };
        let layer = Self { shape: *shape, images, products, scaling };
        let [of_bytes, of_meanings] = layer.image_lines();
        let lines = of_bytes.checked_add(of_meanings);
        let lines = lines.and_then(|it| it.checked_add(layer.products.scratch_lines()));
        let lines = lines.ok_or(TooLarge::beyond_addresses("scratch memory"))?;
        preparation.check_scratch::<Line>(&[lines])?;
        Ok(layer)
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        self.products.kernel()
    }

    /// Lines of memory for images as 8-bit numbers, and for what these stand for.
    fn image_lines(&self) -> [usize; 2] {
        [self.images.bytes().div_ceil(LINE_BYTES), self.images.meaning_lines()]
    }

    /// Computes the output of contiguous images.
    ///
    /// # Panics
    /// If the input, the output or the scratch memory is too small.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32], scratch: &mut [Line]) {
        let (pixels, channels) = (self.shape.output_pixels(), self.shape.output_channels);
        assert!(output.len() >= pixels * channels, "the output is too small");
        if pixels * channels == 0 {
            return;
        }
        let [of_bytes, of_meanings] = self.image_lines();
        let (bytes, scratch) = scratch.split_at_mut(of_bytes);
        let (meanings, scratch) = scratch.split_at_mut(of_meanings);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(bytes);
        let meanings = self.images.round(team, input, bytes, meanings);
        let scaled = Scaled {
            scaling: &self.scaling,
            meanings,
            image_pixels: self.shape.output[0] * self.shape.output[1],
            output: &DisjointOutput::new(&mut output[..pixels * channels]),
        };
        self.products.run(team, bytes, &scaled, scratch);
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
        (self.image_lines().iter().sum::<usize>() + self.products.scratch_lines()) * LINE_BYTES
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }

    fn is_8_bit(&self) -> bool {
        true
    }
}

/// From sums to the outputs of images.
struct Scaled<'a> {
    scaling: &'a Scaling,
    meanings: &'a [Meaning],
    /// Pixels of the output of an image.
    image_pixels: usize,
    output: &'a DisjointOutput<'a, f32>,
}

impl FromSums for Scaled<'_> {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It has 8 bits, unless the image is no longer wanted.
    fn zero_point(&self, image: usize) -> u8 {
        self.meanings[image].zero_point as u8
    }

    unsafe fn store(&self, block: Block<'_>) {
        self.scaling.isa.run(ScaleBlock { all: self, block });
    }
}

/// The outputs of a block of sums, which no one else has.
struct ScaleBlock<'a> {
    all: &'a Scaled<'a>,
    block: Block<'a>,
}

impl Kernel for ScaleBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut first = 0;
        while first < self.block.channels.len() {
            let left = self.block.channels.len() - first;
            if left >= 4 * S::LANES {
                self.channels::<S, 4>(simd, first, 4 * S::LANES);
                first += 4 * S::LANES;
            } else {
                self.channels::<S, 1>(simd, first, left.min(S::LANES));
                first += S::LANES;
            }
        }
    }
}

impl ScaleBlock<'_> {
    /// The outputs of `count` channels from a first one on, which take `V` vectors.
    #[inline(always)]
    fn channels<S: Simd, const V: usize>(&self, simd: S, first: usize, count: usize) {
        let Block { pixels, channels, sums, step, offset } = &self.block;
        let Scaled { scaling, meanings, image_pixels, output } = *self.all;
        let Scaling { scales, bias, weight_sums, epilogue, .. } = scaling;
        let first_channel = channels.start + first;
        let part = |vector: usize| {
            let begin = first_channel + vector * S::LANES;
            begin..(first_channel + count).min(begin + S::LANES)
        };
        let mut of_channels = [(simd.splat(0.0), simd.splat(0.0), simd.isplat(0)); V];
        for (vector, all) in of_channels.iter_mut().enumerate() {
            let mut sums = [0; LANES];
            sums[..part(vector).len()].copy_from_slice(&weight_sums[part(vector)]);
            *all = (
                simd.load_partial(&scales[part(vector)], 0.0),
                simd.load_partial(&bias[part(vector)], 0.0),
                simd.iload(&sums),
            );
        }
        // Those of each image.
        let (mut next, mut image) = (pixels.start, pixels.start / image_pixels);
        while next < pixels.end {
            let Meaning { step: of_image, zero_point } = meanings[image];
            // Images that were no longer wanted have any.
            let zero_point = offset.map_or(0, |offset| zero_point.wrapping_sub(offset));
            let (of_image, zero_point) = (simd.splat(of_image), simd.isplat(zero_point));
            let mut terms = of_channels;
            for (scale, _, weight_sum) in &mut terms {
                // In this order nothing overflows that the output does not.
                *scale = simd.mul(of_image, *scale);
                *weight_sum = simd.imul(*weight_sum, zero_point);
            }
            image += 1;
            let of_image = next..pixels.end.min(image * image_pixels);
            next = of_image.end;
            for pixel in of_image {
                let sums = &sums[(pixel - pixels.start) * step + first..][..V * S::LANES];
                // SAFETY: no one else has these outputs, as `FromSums::store` says, and there is no other slice of them.
                let output = unsafe { output.slice(pixel * bias.len() + first_channel, count) };
                for (vector, (scale, bias, offset)) in terms.into_iter().enumerate() {
                    let sums = simd.isub(simd.iload(&sums[vector * S::LANES..]), offset);
                    let value = simd.fma(simd.to_f32(sums), scale, bias);
                    let value = epilogue.apply(simd, value);
                    let output = &mut output[vector * S::LANES..];
                    if V == 1 {
                        simd.store_partial(value, output);
                    } else {
                        simd.store(value, output);
                    }
                }
            }
        }
    }
}
