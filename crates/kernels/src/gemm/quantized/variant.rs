//! [`Variant`]: the kernels of one instruction set, and how they want weights and inputs. [`BYTES`], [`BYTES_OF_LITTLE`] and
//! [`WORDS`] list them all.

use super::block::Block;
use super::problem::Problem;
use super::tiles::{self, Arithmetic, Compute, Packing, Sums, Target, pair_steps};
use super::{Ahead, DEPTH, Grid};
use crate::preparation::product;
use crate::quantization::Signedness;
use crate::requantize::{Form, LANES};
use crate::{InstructionSet, Preparation, TooLarge};

/// Cutting a block of channels takes as long as this many products.
const WORK_OF_BLOCK: usize = 64;

/// Products of a sum, at most: a tile of 64 channels and eight rows then has 2^30 of them, some tens of
/// milliseconds, and reads 128 or 256 MiB of weights.
pub(crate) const MOST_PRODUCTS: usize = 1 << 21;

/// Requantizes rows of sums, as [`tiles::requantize`].
type Requantize = unsafe fn(Target<'_, 1>, &[[i32; LANES]]);

/// Computes the rows of a grid.
type ComputeGrid = unsafe fn(&Problem, &Block, &Grid<'_>, &mut Ahead);

/// The kernels of an instruction set.
#[derive(Debug)]
pub(crate) struct Variant {
    set: InstructionSet,
    packing: Packing,
    /// See [`Arithmetic::ROWS`].
    rows: [usize; 5],
    /// Bytes of an input in a row; 2 if rows are widened before they are multiplied.
    pub(super) input_bytes: usize,
    /// Whether signed inputs are made unsigned in each step, if nothing did it before.
    pub(super) flips_inputs: bool,
    /// Steps that are multiplied together. If they are several, all rows are given together, for which this thread's
    /// tiles are set up.
    pub(super) steps_together: usize,
    /// Whether inputs are made signed (or else unsigned) when they are loaded.
    pub(super) has_signed_inputs: bool,
    /// Whether sums can be requantized in floats.
    pub(super) has_floats: bool,
    /// Adds bytes, each with the bits of a mask inverted.
    pub(super) sum: unsafe fn(&[u8], u8) -> i32,
    /// Of weights that may be -128.
    compute: Compute,
    /// Of others, where that is another kernel.
    compute_without_least_weight: Option<Compute>,
    /// Of words only.
    pub(super) requantize: Option<Requantize>,
    /// If rows are those of a [`Grid`], read where they are: the weights of each run are filled up to steps that are
    /// multiplied together.
    pub(super) compute_grid: Option<ComputeGrid>,
}

impl Variant {
    const fn new<A: Arithmetic>(set: InstructionSet) -> Self {
        Self {
            set,
            packing: A::PACKING,
            rows: A::ROWS,
            input_bytes: A::INPUT_BYTES,
            flips_inputs: A::FLIPS_INPUTS,
            steps_together: 1,
            has_signed_inputs: A::HAS_SIGNED_INPUTS,
            has_floats: A::Sums::HAS_FLOATS,
            sum: A::SUM,
            compute: tiles::compute::<A>,
            compute_without_least_weight: None,
            requantize: None,
            compute_grid: None,
        }
    }

    #[cfg(target_arch = "x86_64")]
    const fn of_word_rows<A: Arithmetic>(set: InstructionSet) -> Self {
        Self { requantize: Some(tiles::requantize::<A>), ..Self::new::<A>(set) }
    }
}

/// For rows of bytes.
static BYTES: &[Variant] = &[
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant { compute: super::amx::compute, ..OF_TILES },
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::new::<super::avx512::Vnni>(InstructionSet::Avx512Vnni),
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::new::<super::avx512::Words>(InstructionSet::Avx512),
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::new::<super::avx2::Vnni>(InstructionSet::AvxVnni),
    #[cfg(target_arch = "x86_64")]
    Variant::new::<super::avx2::Pairs>(InstructionSet::Avx2),
    #[cfg(target_arch = "aarch64")]
    Variant::new::<super::smmla::Smmla>(InstructionSet::NeonI8mm),
    #[cfg(target_arch = "aarch64")]
    Variant::new::<super::sdot::Sdot>(InstructionSet::NeonDotprod),
    #[cfg(target_arch = "aarch64")]
    Variant {
        compute_without_least_weight: Some(tiles::compute::<super::neon::Neon<false>>),
        ..Variant::new::<super::neon::Neon<true>>(InstructionSet::Neon)
    },
];

/// For rows of bytes at equal distances, unsigned ones and signed ones.
static BYTES_OF_GRIDS: &[Variant] = &[
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant { flips_inputs: false, compute_grid: Some(super::amx::compute_grid), ..OF_TILES },
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant {
        flips_inputs: false,
        compute_grid: Some(super::amx::compute_grid),
        has_signed_inputs: true,
        ..OF_TILES
    },
];

/// What those of AMX have in common.
#[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
const OF_TILES: Variant = Variant {
    rows: super::amx::ROWS_OF_TILES,
    steps_together: super::amx::STEPS,
    ..Variant::new::<super::avx512::Vnni>(InstructionSet::Avx512Amx)
};

/// Products with fewer rows, or shorter sums, are computed by another kernel.
#[derive(Debug, Clone, Copy)]
struct Least {
    rows: usize,
    /// Products of a sum.
    products: usize,
}

/// Of fewer rows, reading the weights takes longer than multiplying.
#[cfg(target_arch = "x86_64")]
pub(crate) const LEAST_ROWS: usize = 12;

/// In place of [`BYTES`] for what is little.
static BYTES_OF_LITTLE: &[(InstructionSet, Least, Variant)] = &[
    // Tiles would be filled with more zeros than numbers, and their sums go through memory.
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    (
        InstructionSet::Avx512Amx,
        Least { rows: crate::amx::TILE_ROWS, products: 40 },
        Variant::new::<super::avx512::Vnni>(InstructionSet::Avx512Vnni),
    ),
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    (
        InstructionSet::Avx512,
        Least { rows: LEAST_ROWS, products: 0 },
        Variant::new::<super::avx512::WordsOfBytes>(InstructionSet::Avx512),
    ),
    #[cfg(target_arch = "x86_64")]
    (
        InstructionSet::Avx2,
        Least { rows: LEAST_ROWS, products: 0 },
        Variant::new::<super::avx2::PairsOfBytes>(InstructionSet::Avx2),
    ),
];

/// For rows of 16-bit numbers, see [`Matrix::of_words`](super::Matrix::of_words); none where bytes are multiplied so much
/// faster that such products are no use.
static WORDS: &[Variant] = &[
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::of_word_rows::<super::avx512::VnniWords>(InstructionSet::Avx512Vnni),
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::of_word_rows::<super::avx512::Words>(InstructionSet::Avx512),
    #[cfg(target_arch = "x86_64")]
    Variant::of_word_rows::<super::avx2::Pairs>(InstructionSet::Avx2),
];

impl Variant {
    /// That of an instruction set, for sums of this many products; none if there is only the portable
    /// kernel, or a tile of such sums would take too long without a question whether to go on.
    ///
    /// # Panics
    /// If this processor does not have the instructions.
    pub(crate) fn of(set: InstructionSet, products: usize) -> Option<&'static Self> {
        set.expect_available();
        BYTES.iter().find(|variant| variant.set == set).filter(|_| products <= MOST_PRODUCTS)
    }

    /// As [`Self::of`], for a number of rows that is known when weights are packed.
    ///
    /// # Panics
    /// As of [`Self::of`].
    pub(crate) fn of_rows(
        set: InstructionSet,
        products: usize,
        rows: usize,
    ) -> Option<&'static Self> {
        let general = Self::of(set, products)?;
        let is_little = |least: &Least| rows < least.rows || products < least.products;
        let mut of_little =
            BYTES_OF_LITTLE.iter().filter(|(of, least, _)| *of == set && is_little(least));
        Some(of_little.next().map_or(general, |(.., variant)| variant))
    }

    /// That of an instruction set for rows at equal distances, signed ones or unsigned ones, and sums of this many products;
    /// none if it reads such rows as all others.
    ///
    /// # Panics
    /// As of [`Self::of`].
    pub(crate) fn of_grids(
        set: InstructionSet,
        signedness: Signedness,
        products: usize,
    ) -> Option<&'static Self> {
        set.expect_available();
        let are_signed = signedness == Signedness::Signed;
        let suits = |variant: &&Self| variant.set == set && variant.has_signed_inputs == are_signed;
        BYTES_OF_GRIDS.iter().find(suits).filter(|_| products <= MOST_PRODUCTS)
    }

    /// That of an instruction set for products of rows of 16-bit numbers, if there is one.
    ///
    /// # Panics
    /// If this processor does not have the instructions.
    pub(crate) fn of_words(set: InstructionSet) -> Option<&'static Self> {
        set.expect_available();
        // AVX-VNNI has none of its own.
        let set = if set == InstructionSet::AvxVnni { InstructionSet::Avx2 } else { set };
        WORDS.iter().find(|variant| variant.set == set)
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn set(&self) -> InstructionSet {
        self.set
    }

    /// Its name in reports.
    pub(crate) fn name(&self) -> &'static str {
        self.set.name()
    }

    /// Computes tiles of a matrix; `has_least_weight` is whether a signed weight may be -128.
    pub(super) fn compute(&self, has_least_weight: bool) -> Compute {
        let without = self.compute_without_least_weight.filter(|_| !has_least_weight);
        without.unwrap_or(self.compute)
    }

    /// Whether its kernel is another one where no signed weight is -128.
    pub(super) fn asks_for_least_weight(&self) -> bool {
        self.compute_without_least_weight.is_some()
    }

    /// Whether this thread's tiles are set up for its products.
    pub(super) fn uses_tiles(&self) -> bool {
        self.steps_together > 1
    }

    /// Whether rows are always copied and given together.
    pub(crate) fn copies_rows(&self) -> bool {
        self.uses_tiles() && self.compute_grid.is_none()
    }

    /// Whether inputs are multiplied as the bytes that they are.
    pub(crate) fn multiplies_bytes(&self) -> bool {
        self.input_bytes == 1
    }

    /// Whether signed inputs that whoever calls makes unsigned spare work.
    pub(crate) fn takes_unsigned(&self) -> bool {
        self.flips_inputs && !self.copies_rows()
    }

    /// Bytes that are multiplied together of a row.
    pub(crate) fn bytes_together(&self) -> usize {
        self.steps_together * DEPTH
    }

    /// Steps of a run of this many bytes.
    pub(super) fn run_steps(&self, run_bytes: usize) -> usize {
        let steps = run_bytes.div_ceil(DEPTH);
        if self.compute_grid.is_some() {
            steps.next_multiple_of(self.steps_together)
        } else {
            steps
        }
    }

    /// Rows of a tile, at most, of a block of this many vectors.
    pub(crate) fn tile_rows(&self, vectors: usize) -> usize {
        self.rows[vectors]
    }

    /// Vectors of the next block if this many channels are left: the most that are not half empty.
    fn block_vectors(&self, channels: usize) -> usize {
        let fits = |vectors: &usize| self.rows[*vectors] > 0 && channels > (*vectors - 1) * LANES;
        [4, 2].into_iter().find(|vectors| fits(vectors)).unwrap_or(1)
    }

    /// Bytes of four weights of each of 16 channels.
    pub(super) fn bytes_per_vector(&self) -> usize {
        match self.packing {
            Packing::Words => 2 * DEPTH * LANES,
            Packing::Bytes | Packing::BytesOfTwoSteps | Packing::BytesByTwo => DEPTH * LANES,
        }
    }

    /// Cuts channels into blocks of this many steps. Also the bytes of packed weights and the vectors of
    /// all of them. Once it is too late, blocks are missing.
    ///
    /// # Errors
    /// If the blocks are more than may be taken, or the weights beyond what can be addressed.
    pub(super) fn blocks(
        &self,
        channels: usize,
        steps: usize,
        preparation: &mut Preparation,
    ) -> Result<(Vec<Block>, usize, usize), TooLarge> {
        let too_large = || TooLarge::beyond_addresses("packed weights");
        let steps = steps.checked_next_multiple_of(self.steps_together).ok_or_else(too_large)?;
        let mut blocks = preparation.room(channels.div_ceil(LANES), "blocks of channels")?;
        let (mut bytes, mut lanes, mut channel) = (0_usize, 0, 0);
        let mut pace = preparation.pace();
        while channel < channels && !pace.is_over(WORK_OF_BLOCK) {
            let vectors = self.block_vectors(channels - channel);
            let channels = (channels - channel).min(vectors * LANES);
            let form = Form::Scalar;
            blocks.push(Block { channel, channels, vectors, weights: bytes, lanes, form });
            let of_block = product(&[steps, vectors, self.bytes_per_vector()]);
            let all = of_block.and_then(|of_block| of_block.checked_add(bytes));
            bytes = all.ok_or_else(too_large)?;
            lanes += vectors;
            channel += channels;
        }
        Ok((blocks, bytes, lanes))
    }

    /// Whether a lane's four weights of a step are side by side, and those of the next lane behind them.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn has_lanes_of_fours(&self) -> bool {
        self.packing == Packing::Bytes
    }

    /// Enters the signed weights of a step and a lane of one of this many vectors.
    #[inline(always)]
    pub(super) fn put(
        &self,
        step: &mut [u8],
        [vectors, vector, lane]: [usize; 3],
        weights: [u8; DEPTH],
    ) {
        let of_vector = vector * DEPTH * LANES;
        match self.packing {
            Packing::Bytes | Packing::BytesOfTwoSteps => {
                step[of_vector + lane * DEPTH..][..DEPTH].copy_from_slice(&weights);
            }
            Packing::BytesByTwo => {
                for (half, pair) in weights.chunks_exact(2).enumerate() {
                    let place = of_vector + (half * LANES + lane) * 2;
                    step[place..][..2].copy_from_slice(pair);
                }
            }
            Packing::Words => {
                for (half, pair) in weights.map(u8::cast_signed).chunks_exact(2).enumerate() {
                    let pair = [i16::from(pair[0]), i16::from(pair[1])];
                    let place = ((half * vectors + vector) * LANES + lane) * DEPTH;
                    step[place..][..2].copy_from_slice(&pair[0].to_le_bytes());
                    step[place + 2..][..2].copy_from_slice(&pair[1].to_le_bytes());
                }
            }
        }
    }

    /// As [`Self::put`], of four lanes side by side.
    #[inline(always)]
    pub(super) fn put_four(
        &self,
        step: &mut [u8],
        [vectors, vector, lane]: [usize; 3],
        weights: [[u8; DEPTH]; 4],
    ) {
        match self.packing {
            Packing::Bytes | Packing::BytesOfTwoSteps => {
                let place = (vector * LANES + lane) * DEPTH;
                step[place..][..4 * DEPTH].copy_from_slice(weights.as_flattened());
            }
            Packing::Words => {
                for half in 0..2 {
                    let pair = |lane: usize| {
                        let word =
                            |at: usize| i16::from(weights[lane][2 * half + at].cast_signed());
                        [word(0).to_le(), word(1).to_le()]
                    };
                    let pairs = [pair(0), pair(1), pair(2), pair(3)];
                    let place = ((half * vectors + vector) * LANES + lane) * DEPTH;
                    step[place..][..4 * DEPTH].copy_from_slice(bytemuck::cast_slice(&pairs));
                }
            }
            Packing::BytesByTwo => {
                for (index, weights) in weights.into_iter().enumerate() {
                    self.put(step, [vectors, vector, lane + index], weights);
                }
            }
        }
    }

    /// Brings the weights of a run of a block, all of which have been [put](Self::put), into the order of the kernel.
    pub(super) fn arrange(&self, run: &mut [u8]) {
        if self.packing == Packing::BytesOfTwoSteps {
            pair_steps(run);
        }
    }

    /// What is subtracted from unsigned inputs before the kernel sees them.
    pub(crate) fn input_offset(&self) -> i32 {
        if self.has_signed_inputs { 128 } else { 0 }
    }
}
