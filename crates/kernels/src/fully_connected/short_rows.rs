//! Layers of so few inputs and units that a vector has the outputs of several rows.

use super::Sizes;
use crate::gemm::float::{Epilogue, Layer};
use crate::packing::PackedValues;
use crate::parts::{Cut, for_each_rows};
use crate::team::Pace;
use crate::vector::{Isa, Kernel, Simd};
use crate::{InstructionSet, Preparation, Team, TooLarge};

/// The most lanes of a vector.
const MOST_LANES: usize = 16;

/// A task should take a few microseconds at least; a thread does some eight multiplications in a nanosecond here.
const LEAST_PRODUCTS: usize = 40_000;

/// A layer with its weights packed.
#[derive(Debug)]
pub(super) struct ShortRows {
    isa: Isa,
    sizes: Sizes,
    /// Rows of a vector.
    together: usize,
    /// A vector of biases, and one of weights for each input: the units of a row, as often as there are rows.
    packed: PackedValues<f32>,
    /// By input: in which lane of some rows of the input it is, for each lane of the output.
    lanes: Vec<[i32; MOST_LANES]>,
    epilogue: Epilogue,
}

impl ShortRows {
    /// How many rows a vector has: of fewer than two it has no more than products of matrices have in theirs.
    fn together(sizes: Sizes, set: InstructionSet) -> usize {
        let widest = sizes.inputs.max(sizes.units);
        Isa::of(set).lanes().checked_div(widest).unwrap_or(0)
    }

    /// Whether it takes less time than products of matrices.
    pub(super) fn suits(sizes: Sizes, set: InstructionSet) -> bool {
        let together = Self::together(sizes, set);
        sizes.units > 0 && together > 1 && sizes.rows > together
    }

    /// # Errors
    /// If it takes more memory than it may.
    pub(super) fn new(
        sizes: Sizes,
        Layer { filter, bias, epilogue }: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let Sizes { inputs, units, .. } = sizes;
        let isa = Isa::of(preparation.set());
        let together = Self::together(sizes, preparation.set());
        let packed = preparation.pack((1 + inputs) * isa.lanes(), |packed: &mut [f32], _| {
            let (biases, weights) = packed.split_at_mut(isa.lanes());
            for lane in 0..together * units {
                biases[lane] = bias[lane % units];
                for (input, weights) in weights.chunks_exact_mut(isa.lanes()).enumerate() {
                    weights[lane] = filter[lane % units * inputs + input];
                }
            }
        })?;
        let lane_of = |input: usize, lane: usize| {
            let row = lane / units;
            // Behind the last row nothing is wanted.
            let lane = if row < together { row * inputs + input } else { 0 };
            i32::try_from(lane).expect("a lane of a vector")
        };
        let lanes = (0..inputs).map(|input| std::array::from_fn(|lane| lane_of(input, lane)));
        Ok(Self { isa, sizes, together, packed, lanes: lanes.collect(), epilogue })
    }

    pub(super) fn run(
        &self,
        team: &mut Team,
        input: &[f32],
        residual: Option<&[f32]>,
        output: &mut [f32],
    ) {
        let Sizes { rows, inputs, units } = self.sizes;
        let (input, output) = (&input[..rows * inputs], &mut output[..rows * units]);
        let residual = residual.map(|residual| &residual[..rows * units]);
        let cut = Cut { each: inputs * units, least: LEAST_PRODUCTS, multiple: self.together };
        for_each_rows(team, (output, units), cut, |part, output, pace| {
            self.isa.run(Rows {
                layer: self,
                input: &input[part.start * inputs..part.end * inputs],
                residual: residual.map(|it| &it[part.start * units..part.end * units]),
                output,
                pace,
            });
        });
    }
}

/// Some rows.
struct Rows<'a> {
    layer: &'a ShortRows,
    input: &'a [f32],
    residual: Option<&'a [f32]>,
    output: &'a mut [f32],
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

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layer, input, residual, output, mut pace } = self;
        let ShortRows { sizes: Sizes { inputs, units, .. }, together, lanes, epilogue, .. } = layer;
        let (biases, weights) = layer.packed.values().split_at(S::LANES);
        let of_vector = [together * inputs, together * units];
        let vectors = output.len().div_ceil(of_vector[1]);
        for block in pace.blocks(vectors, inputs * S::LANES) {
            for vector in block {
                let values = load_from(simd, &input[vector * of_vector[0]..]);
                let mut sums = simd.load(biases);
                for (lanes, weights) in lanes.iter().zip(weights.chunks_exact(S::LANES)) {
                    let value = simd.lookup(values, simd.iload(lanes));
                    sums = simd.fma(value, simd.load(weights), sums);
                }
                let place = vector * of_vector[1];
                if let Some(residual) = residual {
                    sums = simd.add(sums, load_from(simd, &residual[place..]));
                }
                let sums = epilogue.apply(simd, sums);
                let to = &mut output[place..];
                // What is behind these rows is written by the next vector.
                match to.len() >= S::LANES {
                    true => simd.store(sums, to),
                    false => {
                        let count = to.len().min(of_vector[1]);
                        simd.store_partial(sums, &mut to[..count]);
                    }
                }
            }
        }
    }
}
