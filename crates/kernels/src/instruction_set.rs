//! [`InstructionSet`]: which instructions a kernel may use.

use std::fmt;
use std::str::FromStr;

/// A set of vector instructions that kernels are written for. Later ones of one architecture are
/// faster.
///
/// The names are those that `NNHAL_INSTRUCTION_SET` takes. A kernel without a variant for a set uses
/// that of a lesser one, and all have a portable one. Most kernels of float32 are written once, for
/// the vectors of each set; matrix products and convolutions of 8-bit numbers have a variant for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionSet {
    /// What every processor has: vectors of SSE2 on x86-64 and of whatever compilers find elsewhere, and plain Rust.
    Portable,
    /// x86-64: AVX2, FMA and F16C.
    Avx2,
    /// x86-64: as [`Avx2`](Self::Avx2), and AVX-VNNI, dot products of 8-bit numbers in 256 bits, which
    /// processors without AVX-512 have since Alder Lake.
    AvxVnni,
    /// x86-64: AVX-512 F, BW, DQ and VL, without dot products of 8-bit numbers.
    Avx512,
    /// x86-64: as [`Avx512`](Self::Avx512), and VNNI.
    Avx512Vnni,
    /// x86-64: as [`Avx512Vnni`](Self::Avx512Vnni), and AMX, products of tiles of 8-bit numbers, which server
    /// processors have since Sapphire Rapids, where the system lets the process use them.
    Avx512Amx,
    /// 64-bit ARM: NEON, which every such processor has. Products of 8-bit numbers are computed in 16
    /// bits.
    Neon,
    /// 64-bit ARM: NEON and the dot products of 8-bit numbers, which processors have since ARMv8.4 and
    /// many before.
    NeonDotprod,
    /// 64-bit ARM: as [`NeonDotprod`](Self::NeonDotprod), and products of 8-bit matrices (`i8mm`), which processors
    /// have since ARMv8.6 and some before.
    NeonI8mm,
}

impl InstructionSet {
    /// All there are, on whatever processor.
    pub const ALL: [Self; 9] = [
        Self::Portable,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Avx512Vnni,
        Self::Avx512Amx,
        Self::Neon,
        Self::NeonDotprod,
        Self::NeonI8mm,
    ];

    /// Whether this processor has it.
    ///
    /// Built with `--cfg nnhal_only_avx2`, it has none beyond AVX2: what is compiled for them takes most
    /// of the time that building takes, and many times as much with a sanitizer.
    pub fn is_available(self) -> bool {
        self.lesser().is_none_or(Self::is_available) && self.is_added()
    }

    /// # Panics
    /// If this processor does not have it.
    pub(crate) fn expect_available(self) {
        assert!(self.is_available(), "this processor does not have {self}");
    }

    /// Whether this processor has what the set has beyond the lesser one.
    fn is_added(self) -> bool {
        match self {
            Self::Portable => true,
            Self::AvxVnni | Self::Avx512 if cfg!(nnhal_only_avx2) => false,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => is_x86_feature_detected!("avx512vnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Amx => crate::amx::is_available(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => true,
            #[cfg(target_arch = "aarch64")]
            Self::NeonDotprod => std::arch::is_aarch64_feature_detected!("dotprod"),
            #[cfg(target_arch = "aarch64")]
            Self::NeonI8mm => std::arch::is_aarch64_feature_detected!("i8mm"),
            #[allow(unreachable_patterns)] // On an architecture that has all of the rest.
            _ => false,
        }
    }

    /// Those that this processor has, slowest first.
    pub fn available() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.into_iter().filter(|set| set.is_available())
    }

    /// The set whose kernels are used where there are none for this one; none for that which all others are
    /// compared with.
    pub(crate) fn lesser(self) -> Option<Self> {
        match self {
            Self::Portable => None,
            Self::Avx2 | Self::Neon => Some(Self::Portable),
            Self::AvxVnni | Self::Avx512 => Some(Self::Avx2),
            Self::Avx512Vnni => Some(Self::Avx512),
            Self::Avx512Amx => Some(Self::Avx512Vnni),
            Self::NeonDotprod => Some(Self::Neon),
            Self::NeonI8mm => Some(Self::NeonDotprod),
        }
    }

    /// This one and the lesser ones, fastest first.
    pub(crate) fn and_lesser(self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |set| set.lesser())
    }

    /// The fastest one that this processor has.
    pub fn best() -> Self {
        Self::available().next_back().unwrap_or(Self::Portable)
    }

    /// Its name in settings and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avx-vnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "avx512-vnni",
            Self::Avx512Amx => "avx512-amx",
            Self::Neon => "neon",
            Self::NeonDotprod => "neon-dotprod",
            Self::NeonI8mm => "neon-i8mm",
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for InstructionSet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|set| set.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no instruction set {name:?}; there are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for set in InstructionSet::ALL {
            assert_eq!(set.name().parse(), Ok(set));
        }
        assert!("sse9".parse::<InstructionSet>().unwrap_err().contains("avx2"));
    }

    #[test]
    fn the_best_is_available_and_so_are_all_before_it() {
        assert!(InstructionSet::best().is_available());
        assert_eq!(InstructionSet::available().next(), Some(InstructionSet::Portable));
        if InstructionSet::Avx512Vnni.is_available() {
            let some = [InstructionSet::AvxVnni, InstructionSet::Avx512Amx];
            let others = InstructionSet::available().filter(|set| !some.contains(set));
            assert_eq!(others.count(), 4);
        }
        if InstructionSet::NeonDotprod.is_available() {
            assert!((3..=4).contains(&InstructionSet::available().count()));
        }
        assert_eq!(InstructionSet::Neon.is_available(), cfg!(target_arch = "aarch64"));
        for set in InstructionSet::available() {
            assert!(set.and_lesser().all(InstructionSet::is_available), "{set}");
            assert_eq!(set.and_lesser().last(), Some(InstructionSet::Portable));
        }
    }
}
