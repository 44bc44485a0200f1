//! [`RoundedConvolution`]: a convolution of groups whose inputs are rounded to 8 bits, and multiplied as floats.
//!
//! Products of bytes fill vectors with the output channels of one group. Where these are few, floats of several groups take less
//! time.

use super::Rounding;
use crate::convolution::Shape;
use crate::convolution::float::Layer;
use crate::gemm::quantized::Variant;
use crate::grouped_convolution::float::GroupedConvolution;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::{
    Epilogue, Image, ImageKernel, ImageMut, Images, InstructionSet, LINE_BYTES, Line, Preparation,
    Team, TooLarge,
};

/// Filters with more taps are multiplied as bytes.
const MOST_TAPS: usize = 64;

/// Input channels of a group from which on bytes are multiplied, where processors have an instruction for that, and where these are
/// made numbers of 16 bits. Measured with avx512-vnni (8 channels: 0.85 to 0.9 of the networks' time) and avx2.
const LEAST_OF_BYTES: usize = 8;
const LEAST_OF_WORDS: usize = 32;

/// With more rows or columns of outputs it is not looked what each of them sees.
const MOST_OUTPUTS: usize = 1 << 16;

/// A convolution with its weights packed and its work cut into tasks.
#[derive(Debug)]
pub struct RoundedConvolution {
    shape: Shape,
    rounding: Rounding,
    convolution: GroupedConvolution,
}

impl RoundedConvolution {
    /// Whether it takes less time than [`Convolution`](super::Convolution), and gives the same.
    pub fn suits(shape: &Shape, set: InstructionSet) -> bool {
        let products = shape.taps().saturating_mul(shape.group_input_channels());
        let least_of_bytes = match Variant::of(set, products) {
            Some(variant) if variant.multiplies_bytes() => LEAST_OF_BYTES,
            _ => LEAST_OF_WORDS,
        };
        // An output that sees nothing of an image that is not finite would be a number.
        let sees = |axis: usize| {
            let mut outputs = 0..shape.output[axis];
            outputs.all(|output| !shape.seen_taps(axis, output).is_empty())
        };
        shape.groups > 1
            && shape.group_input_channels() < least_of_bytes
            && (1..=MOST_TAPS).contains(&shape.taps())
            && shape.output.iter().all(|outputs| *outputs <= MOST_OUTPUTS)
            && sees(0)
            && sees(1)
    }

    /// As [`Convolution::prepare`](super::Convolution::prepare).
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape does not [suit](Self::suits), or weights, scales or bias are not as many as it says.
    pub fn prepare(
        shape: &Shape,
        weights: &[u8],
        scales: &[f32],
        bias: &[f32],
        epilogue: Epilogue,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        assert!(Self::suits(shape, preparation.set()), "another kernel's shape: {shape:?}");
        let units = shape.output_channels;
        assert!([1, units].contains(&scales.len()), "{} scales", scales.len());
        let of_unit = shape.taps() * shape.group_input_channels();
        let mut filter = preparation.room(weights.len(), "weights")?;
        for (unit, weights) in weights.chunks(of_unit.max(1)).enumerate() {
            let scale = scales[if scales.len() == 1 { 0 } else { unit }];
            filter.extend(weights.iter().map(|it| f32::from(it.cast_signed()) * scale));
        }
        let layer = Layer { filter: &filter, bias, epilogue };
        let channels = shape.input_channels;
        let convolution = GroupedConvolution::prepare(shape, channels, layer, preparation)?;
        let sizes = [shape.batch, shape.input[0] * shape.input[1] * channels];
        let rounding = Rounding::prepare(sizes, preparation)?;
        let this = Self { shape: *shape, rounding, convolution };
        preparation.check_scratch::<u8>(&[this.scratch_bytes()])?;
        Ok(this)
    }

    /// The instruction set of its kernel, and how it is done.
    pub fn kernel(&self) -> String {
        self.convolution.kernel()
    }

    /// Lines of the rounded images.
    fn image_lines(&self) -> usize {
        let values = self.shape.input_pixels() * self.shape.input_channels;
        (values * size_of::<f32>()).div_ceil(LINE_BYTES)
    }

    /// Computes the output of contiguous images.
    ///
    /// # Panics
    /// If the input, the output or the scratch memory is too small.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32], scratch: &mut [Line]) {
        let (rounded, scratch) = scratch.split_at_mut(self.image_lines());
        let rounded: &mut [f32] = bytemuck::cast_slice_mut(rounded);
        let (of_rounding, scratch) =
            scratch.split_at_mut(self.rounding.scratch_bytes() / LINE_BYTES);
        self.rounding.run(team, input, rounded, of_rounding);
        let images = Images::new(
            Image::contiguous(rounded, self.shape.input_channels),
            ImageMut::contiguous(output, self.shape.output_channels),
        );
        self.convolution.run(team, images, scratch);
    }
}

/// Input: the floats.
impl PreparedKernel for RoundedConvolution {
    fn name(&self) -> String {
        format!("dynamic {} {}", self.shape.name(false), self.kernel())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let output = bytemuck::cast_slice_mut(output);
        self.run(team, inputs.of(0), output, bytemuck::cast_slice_mut(scratch));
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        let lines = self.image_lines().saturating_mul(LINE_BYTES);
        let others = self.rounding.scratch_bytes() + self.convolution.scratch_bytes();
        lines.saturating_add(others)
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}
