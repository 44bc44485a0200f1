//! [`Variant`]: which kernel a matrix is packed for, and how.

use super::super::requantize::{Form, LANES};
use super::tiles::{self, Arithmetic};
use super::{Ahead, Block, DEPTH, Matrix, Tile};
use crate::packing::product;
use crate::{InstructionSet, Preparation, TooLarge};

/// Cutting a block of channels takes as long as this many products.
const WORK_OF_BLOCK: usize = 64;

/// Which kernel a matrix is packed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::quantized) enum Variant {
    /// Products of unsigned and signed bytes by four, in 512 bits.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// Products of 16-bit numbers by two, in 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Products of unsigned and signed bytes by four, in 256 bits.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// Products of 16-bit numbers by two, in 256 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Products of 16-bit numbers by two, in 512 bits, with VNNI: only of rows that are such numbers.
    #[cfg(target_arch = "x86_64")]
    VnniWords,
    /// Products of signed bytes by four, in 128 bits.
    #[cfg(target_arch = "aarch64")]
    Sdot,
    /// Products of signed bytes by two, in 128 bits.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Products of a sum, at most: a tile of 64 channels and eight rows then has 2^30 of them, some tens of
/// milliseconds, and reads 128 or 256 MiB of weights.
pub(in crate::quantized) const MOST_PRODUCTS: usize = 1 << 21;

/// Computes tiles, as [`tiles::compute`].
type Compute = unsafe fn(&Matrix, &Block, &Tile<'_>, usize, &mut Ahead);

/// Requantizes rows of sums, as [`tiles::requantize`].
type Requantize = unsafe fn(&Matrix, &Block, &[[i32; LANES]], (*mut u8, usize));

impl Variant {
    /// That of an instruction set, for sums of this many products; none if there is only the portable
    /// kernel, or a tile of such sums would take too long without a question whether to go on.
    ///
    /// # Panics
    /// If this processor does not have the instructions.
    pub(in crate::quantized) fn of(set: InstructionSet, products: usize) -> Option<Self> {
        assert!(set.is_available(), "this processor does not have {set}");
        match set {
            _ if products > MOST_PRODUCTS => None,
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Vnni => Some(Self::Vnni),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => Some(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::AvxVnni => Some(Self::AvxVnni),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => Some(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::NeonDotprod => Some(Self::Sdot),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => Some(Self::Neon),
            _ => None,
        }
    }

    /// The kernel of an instruction set for products of rows of 16-bit numbers, see [`Matrix::of_words`];
    /// none where bytes are multiplied so much faster that such products are no use.
    ///
    /// # Panics
    /// If this processor does not have the instructions.
    pub(in crate::quantized) fn of_words(set: InstructionSet) -> Option<Self> {
        assert!(set.is_available(), "this processor does not have {set}");
        match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Vnni => Some(Self::VnniWords),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => Some(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 | InstructionSet::AvxVnni => Some(Self::Avx2),
            _ => None,
        }
    }

    /// Its name in reports.
    pub(in crate::quantized) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::VnniWords => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => "neon-dotprod",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }

    /// Computes tiles of a matrix; `has_least_weight` is whether a signed weight may be -128.
    #[cfg_attr(not(target_arch = "aarch64"), allow(unused_variables))] // Only NEON asks for it.
    pub(super) fn compute(self, has_least_weight: bool) -> Compute {
        match self {
            #[cfg(nnhal_only_avx2)]
            Self::Vnni | Self::Avx512 | Self::AvxVnni | Self::VnniWords => {
                unreachable!("not compiled")
            }
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Vnni => tiles::compute::<super::avx512::Vnni>,
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Avx512 => tiles::compute::<super::avx512::Words<false>>,
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::AvxVnni => tiles::compute::<super::avx2::Vnni>,
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::VnniWords => tiles::compute::<super::avx512::Words<true>>,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => tiles::compute::<super::avx2::Pairs>,
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => tiles::compute::<super::sdot::Sdot>,
            #[cfg(target_arch = "aarch64")]
            Self::Neon if has_least_weight => tiles::compute::<super::neon::Neon<true>>,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => tiles::compute::<super::neon::Neon<false>>,
        }
    }

    /// Requantizes rows of sums that are in memory.
    pub(super) fn requantize(self) -> Requantize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => tiles::requantize::<super::avx2::Pairs>,
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Avx512 | Self::VnniWords => tiles::requantize::<super::avx512::Words<false>>,
            _ => unreachable!("not of words"),
        }
    }

    /// Rows of a tile, at most, by the number of its block's vectors.
    fn rows(self) -> [usize; 5] {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => super::avx512::Vnni::ROWS,
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => super::avx2::Vnni::ROWS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::VnniWords => super::avx512::Words::<false>::ROWS,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => super::avx2::Pairs::ROWS,
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => super::sdot::Sdot::ROWS,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => super::neon::Neon::<true>::ROWS,
        }
    }

    /// Bytes of an input in a row; 2 if [`Matrix::copy_rows`] widens rows before they are multiplied.
    pub(super) fn input_bytes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => super::avx2::Pairs::INPUT_BYTES,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::VnniWords => super::avx512::Words::<false>::INPUT_BYTES,
            _ => 1,
        }
    }

    /// Whether it makes signed inputs unsigned in each step, if nothing did it before.
    pub(super) fn flips_inputs(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::AvxVnni => true,
            _ => false,
        }
    }

    /// Rows of a tile, at most, of a block of this many vectors.
    pub(super) fn tile_rows(self, vectors: usize) -> usize {
        self.rows()[vectors]
    }

    /// Vectors of the next block if this many channels are left: the most that are not half empty.
    fn block_vectors(self, channels: usize) -> usize {
        let rows = self.rows();
        let fits = |vectors: &usize| rows[*vectors] > 0 && channels > (*vectors - 1) * LANES;
        [4, 2].into_iter().find(|vectors| fits(vectors)).unwrap_or(1)
    }

    /// Bytes of four weights of each of 16 channels.
    pub(super) fn bytes_per_vector(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx2 | Self::VnniWords => 2 * DEPTH * LANES,
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::AvxVnni => DEPTH * LANES,
            #[cfg(target_arch = "aarch64")]
            Self::Sdot | Self::Neon => DEPTH * LANES,
        }
    }

    /// Cuts channels into blocks of this many steps. Also the bytes of packed weights and the vectors of
    /// all of them. Once it is too late, blocks are missing.
    ///
    /// # Errors
    /// If the blocks are more than may be taken, or the weights beyond what can be addressed.
    pub(super) fn blocks(
        self,
        channels: usize,
        steps: usize,
        preparation: &mut Preparation,
    ) -> Result<(Vec<Block>, usize, usize), TooLarge> {
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
            bytes = all.ok_or(TooLarge::beyond_addresses("packed weights"))?;
            lanes += vectors;
            channel += channels;
        }
        Ok((blocks, bytes, lanes))
    }

    /// Enters the signed weights of a step and a lane of one of this many vectors.
    #[inline(always)]
    pub(super) fn put(
        self,
        step: &mut [u8],
        [vectors, vector, lane]: [usize; 3],
        weights: [u8; DEPTH],
    ) {
        #[cfg(not(target_arch = "x86_64"))]
        let _ = vectors; // Only 16-bit weights are ordered by halves first.
        let of_vector = vector * DEPTH * LANES;
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx2 | Self::VnniWords => {
                for (half, pair) in weights.map(u8::cast_signed).chunks_exact(2).enumerate() {
                    let pair = [i16::from(pair[0]), i16::from(pair[1])];
                    let place = ((half * vectors + vector) * LANES + lane) * DEPTH;
                    step[place..][..2].copy_from_slice(&pair[0].to_le_bytes());
                    step[place + 2..][..2].copy_from_slice(&pair[1].to_le_bytes());
                }
            }
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::AvxVnni => {
                step[of_vector + lane * DEPTH..][..DEPTH].copy_from_slice(&weights);
            }
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => {
                step[of_vector + lane * DEPTH..][..DEPTH].copy_from_slice(&weights);
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                for (half, pair) in weights.chunks_exact(2).enumerate() {
                    let place = of_vector + (half * LANES + lane) * 2;
                    step[place..][..2].copy_from_slice(pair);
                }
            }
        }
    }

    /// Whether inputs are made signed (or else unsigned) when they are loaded.
    pub(super) fn has_signed_inputs(self) -> bool {
        cfg!(target_arch = "aarch64")
    }

    /// What unsigned inputs are less when the kernel sees them.
    pub(in crate::quantized) fn input_offset(self) -> i32 {
        if self.has_signed_inputs() { 128 } else { 0 }
    }

    /// What is added to all sums that are requantized in integers, which on x86 are unsigned.
    pub(super) fn sum_offset(self) -> i32 {
        if self.has_signed_inputs() { 0 } else { i32::MIN }
    }

    /// Whether its kernel is another one where no signed weight is -128.
    pub(super) fn asks_for_least_weight(self) -> bool {
        match self {
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            _ => false,
        }
    }

    /// Whether sums can be requantized in floats.
    pub(super) fn has_floats(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx512 | Self::VnniWords => true,
            _ => false,
        }
    }
}
