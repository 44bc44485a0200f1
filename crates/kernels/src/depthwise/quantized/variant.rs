//! [`Variant`]: the kernels of one instruction set, and how they want weights and inputs. [`VARIANTS`] lists them.

use super::packing::Packing;
use super::pixels::{self, Arithmetic, Vectors};
use super::problem::{Problem, Run};
use crate::InstructionSet;
use crate::quantization::Signedness;

/// Computes the pixels of a run, as [`pixels::compute`].
type Compute = unsafe fn(&Problem, &Run<'_>);

/// Which weights a kernel takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // No architecture has kernels for all.
enum Takes {
    /// Any.
    All,
    /// Only bytes.
    Bytes,
    /// Only bytes, of filters of 3x3.
    Bytes3x3,
}

/// A kernel.
#[derive(Debug)]
pub(super) struct Variant {
    /// The instructions that it is made of.
    set: InstructionSet,
    takes: Takes,
    pub(super) packing: Packing,
    /// Whether inputs are made signed (or else unsigned) when they are loaded, if they are made anything.
    input_sign: Option<Signedness>,
    /// Whether sums can be requantized in floats.
    pub(super) has_floats: bool,
    pub(super) compute: Compute,
}

impl Variant {
    const fn new<A: Arithmetic>(set: InstructionSet, takes: Takes) -> Self {
        Self {
            set,
            takes,
            packing: Packing { layout: A::LAYOUT, lanes: A::Vectors::LANES },
            input_sign: Some(A::Vectors::INPUT_SIGN),
            has_floats: A::Vectors::HAS_FLOATS,
            compute: pixels::compute::<A>,
        }
    }
}

/// The first one of an instruction set that takes the weights is used, or else one of a lesser set. 256 bits have no kernels
/// for sums of two bytes: those for 16-bit numbers are not much slower.
static VARIANTS: &[Variant] = &[
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::new::<super::avx512::Vnni>(InstructionSet::Avx512Vnni, Takes::All),
    #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
    Variant::new::<super::avx2::Vnni>(InstructionSet::AvxVnni, Takes::Bytes),
    #[cfg(target_arch = "x86_64")]
    Variant {
        packing: super::avx2::nibbles::PACKING,
        compute: super::avx2::nibbles::compute,
        ..Variant::new::<super::avx2::Pairs>(InstructionSet::Avx2, Takes::Bytes3x3)
    },
    #[cfg(target_arch = "x86_64")]
    Variant::new::<super::avx2::Pairs>(InstructionSet::Avx2, Takes::All),
    #[cfg(target_arch = "aarch64")]
    Variant::new::<super::sdot::Sdot>(InstructionSet::NeonDotprod, Takes::All),
    #[cfg(target_arch = "aarch64")]
    Variant {
        set: InstructionSet::Neon,
        takes: Takes::All,
        packing: super::neon::PACKING,
        input_sign: None,
        has_floats: false,
        compute: super::neon::compute,
    },
];

impl Variant {
    /// That of an instruction set, for such a filter of weights all of which are bytes, or not.
    ///
    /// # Panics
    /// If this processor does not have the instructions.
    pub(super) fn of(
        set: InstructionSet,
        are_bytes: bool,
        filter: [usize; 2],
    ) -> Option<&'static Self> {
        set.expect_available();
        let suits = |variant: &Self| match variant.takes {
            Takes::All => true,
            Takes::Bytes => are_bytes,
            Takes::Bytes3x3 => are_bytes && filter == [3, 3],
        };
        set.and_lesser()
            .find_map(|set| VARIANTS.iter().find(|variant| variant.set == set && suits(variant)))
    }

    /// Its name in reports.
    pub(super) fn name(&self) -> &'static str {
        self.set.name()
    }

    /// What is added to inputs when they are loaded.
    pub(super) fn input_offset(&self, signedness: Signedness) -> i32 {
        match self.input_sign {
            None => 0,
            Some(Signedness::Unsigned) => signedness.offset(),
            Some(Signedness::Signed) => signedness.offset() - 128,
        }
    }

    /// The bits of inputs that are flipped when they are loaded.
    pub(super) fn flip(&self, signedness: Signedness) -> i8 {
        if self.input_sign.is_none_or(|sign| sign == signedness) { 0 } else { i8::MIN }
    }

    /// What is added to all sums; on x86, so that they can be requantized as unsigned numbers.
    pub(super) fn sum_offset(&self) -> i32 {
        if self.input_sign == Some(Signedness::Unsigned) { i32::MIN } else { 0 }
    }
}
