//! [`ShortRows`]: convolutions of 1x1 with so few channels that a vector has the outputs of several pixels, as the layers have that
//! mix the heads of an attention.
#![allow(unsafe_code)]

use super::{Layer, Pass};
use crate::convolution::Shape;
use crate::gemm::float::Epilogue;
use crate::preparation::PackedValues;
use crate::sharing::{Cut, for_each_part};
use crate::team::Pace;
use crate::vector::{Isa, Kernel, MOST_LANES, Simd};
use crate::{Images, InstructionSet, Preparation, Team, TooLarge};

/// A task should take a few microseconds at least; a thread does some eight multiplications in a nanosecond here.
const LEAST_PRODUCTS: usize = 40_000;

/// A convolution with its filter packed.
#[derive(Debug)]
pub(super) struct ShortRows {
    shape: Shape,
    isa: Isa,
    /// Pixels of a vector.
    together: usize,
    /// A vector of biases, and one of weights for each input channel: those of all output channels, as often as there are pixels.
    packed: PackedValues<f32>,
    /// By input channel: in which lane of some pixels of the input it is, for each lane of the output.
    lanes: Vec<[i32; MOST_LANES]>,
    epilogue: Epilogue,
}

impl ShortRows {
    /// How many pixels a vector has.
    fn together(shape: &Shape, set: InstructionSet) -> usize {
        let widest = shape.input_channels.max(shape.output_channels);
        Isa::of(set).lanes().checked_div(widest).unwrap_or(0)
    }

    /// Whether it takes less time than a product of matrices, of an input without gaps.
    pub(super) fn suits(shape: &Shape, set: InstructionSet) -> bool {
        let together = Self::together(shape, set);
        shape.is_matrix_product()
            && shape.groups == 1
            && shape.output_channels > 0
            // A single one has no more than a row of such a product.
            && together > 1
            && shape.output_pixels() > together
    }

    /// # Errors
    /// If it takes more memory than it may.
    pub(super) fn new(
        shape: &Shape,
        Layer { filter, bias, epilogue }: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let isa = Isa::of(preparation.set());
        let together = Self::together(shape, preparation.set());
        let packed = preparation.pack((1 + inputs) * isa.lanes(), |packed: &mut [f32], _| {
            let (biases, weights) = packed.split_at_mut(isa.lanes());
            for lane in 0..together * outputs {
                biases[lane] = bias[lane % outputs];
                for (input, weights) in weights.chunks_exact_mut(isa.lanes()).enumerate() {
                    weights[lane] = filter[lane % outputs * inputs + input];
                }
            }
        })?;
        let lane_of = |input: usize, lane: usize| {
            let pixel = lane / outputs;
            // Behind the last pixel nothing is wanted.
            let lane = if pixel < together { pixel * inputs + input } else { 0 };
            i32::try_from(lane).expect("a lane of a vector")
        };
        let lanes = (0..inputs).map(|input| std::array::from_fn(|lane| lane_of(input, lane)));
        Ok(Self { shape: *shape, isa, together, packed, lanes: lanes.collect(), epilogue })
    }

    /// # Panics
    /// If an image is too small, or the input has gaps.
    pub(super) fn run(&self, team: &mut Team, images: Images<'_, f32>) {
        let (inputs, outputs) = (self.shape.input_channels, self.shape.output_channels);
        let Some(pass) = Pass::new(&self.shape, inputs, images) else { return };
        let cut = Cut { each: inputs * outputs, least: LEAST_PRODUCTS, multiple: self.together };
        for_each_part(team, self.shape.output_pixels(), cut, |part, pace| {
            let of = |stride: usize| part.start * stride..(part.end - 1) * stride + outputs;
            let stride = pass.output_stride;
            let residual =
                pass.residual.map(|it| (&it.values[of(it.pixel_stride)], it.pixel_stride));
            // SAFETY: from the first to the last pixel of a part, and parts do not overlap.
            let output = unsafe { pass.output.slice(of(stride).start, of(stride).len()) };
            self.isa.run(Pixels {
                layer: self,
                input: &pass.input.values[part.start * inputs..part.end * inputs],
                residual,
                output: (output, stride),
                pace,
            });
        });
    }
}

/// Some pixels; of the output and what is added to it with the distance from one to the next.
struct Pixels<'a> {
    layer: &'a ShortRows,
    input: &'a [f32],
    residual: Option<(&'a [f32], usize)>,
    output: (&'a mut [f32], usize),
    pace: Pace<'a>,
}

/// As many values as a vector has, or what there is.
#[inline(always)]
fn load_from<S: Simd>(simd: S, values: &[f32]) -> S::F {
    match values.len() >= S::LANES {
        true => simd.load(values),
        false => simd.load_partial(values, 0.0),
    }
}

/// This many channels of pixels at a distance, one behind the other.
#[inline(always)]
fn gather<S: Simd>(simd: S, values: &[f32], stride: usize, channels: usize) -> S::F {
    let mut together = [0.0; MOST_LANES];
    let pixels = values.chunks(stride).zip(together.chunks_exact_mut(channels));
    for (values, to) in pixels {
        to.copy_from_slice(&values[..channels]);
    }
    simd.load(&together)
}

impl Kernel for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layer, input, residual, output: (output, stride), mut pace } = self;
        let ShortRows { shape, together, lanes, epilogue, .. } = layer;
        let (inputs, outputs) = (shape.input_channels, shape.output_channels);
        let (biases, weights) = layer.packed.values().split_at(S::LANES);
        let vectors = output.len().div_ceil(together * stride);
        for block in pace.blocks(vectors, inputs * S::LANES) {
            for vector in block {
                let first = vector * together;
                let values = load_from(simd, &input[first * inputs..]);
                let mut sums = simd.load(biases);
                for (lanes, weights) in lanes.iter().zip(weights.chunks_exact(S::LANES)) {
                    let value = simd.lookup(values, simd.iload(lanes));
                    sums = simd.fma(value, simd.load(weights), sums);
                }
                if let Some((residual, stride)) = residual {
                    let residual = &residual[first * stride..];
                    let added = match stride == outputs {
                        true => load_from(simd, residual),
                        false => gather(simd, residual, stride, outputs),
                    };
                    sums = simd.add(sums, added);
                }
                let sums = epilogue.apply(simd, sums);
                let to = &mut output[first * stride..];
                if stride == outputs && to.len() >= S::LANES {
                    // What is behind these pixels is written by the next vector.
                    simd.store(sums, to);
                    continue;
                }
                let mut values = [0.0; MOST_LANES];
                simd.store(sums, &mut values);
                let pixels = values.chunks_exact(outputs).take(*together);
                for (values, to) in pixels.zip(to.chunks_mut(stride)) {
                    to[..outputs].copy_from_slice(values);
                }
            }
        }
    }
}
