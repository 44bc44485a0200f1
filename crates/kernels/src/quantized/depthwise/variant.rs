//! [`Variant`]: which kernel a depthwise convolution is packed for, and how.

use super::super::Signedness;
use super::super::requantize::LANES;
use super::packed::{Packed, Run};
use crate::InstructionSet;
use crate::convolution::Shape;

/// Which kernel it is packed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// Four taps at a time, in 64 lanes.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    /// Four taps at a time, by two as 16-bit numbers, in 64 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Four taps at a time, in 32 lanes.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// Four taps at a time, by two as 16-bit numbers, in 32 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Two taps at a time of filters of 3x3, by weights that are sums of 16 times a part and another, in 32 lanes.
    #[cfg(target_arch = "x86_64")]
    Avx2Nibbles,
    /// A tap at a time as 16-bit numbers, in 16 lanes.
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// Four taps at a time, in 16 lanes.
    #[cfg(target_arch = "aarch64")]
    Sdot,
}

/// How the weights of a step are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// By sum: the bytes of four taps. Behind all steps those of second parts.
    Bytes,
    /// By vector of sums: 16-bit numbers, by sum those of the even two of four taps, then those of the
    /// odd two.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Pairs,
    /// As [`nibbles::put`](super::avx2::nibbles::put) enters them.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    Nibbles,
    /// By tap, of which a step has two: 16-bit numbers.
    #[cfg_attr(not(target_arch = "aarch64"), allow(dead_code))]
    Taps,
}

impl Variant {
    pub(super) fn of(set: InstructionSet) -> Option<Self> {
        assert!(set.is_available(), "this processor does not have {set}");
        match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512Vnni => Some(Self::Vnni),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => Some(Self::Avx512),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::AvxVnni => Some(Self::AvxVnni),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => Some(Self::Avx2),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon => Some(Self::Neon),
            #[cfg(target_arch = "aarch64")]
            InstructionSet::NeonDotprod => Some(Self::Sdot),
            _ => None,
        }
    }

    /// What is used instead for such a filter, or if not all weights are bytes. 256 bits have no kernels for sums of
    /// two bytes: those for 16-bit numbers are not much slower.
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))]
    pub(super) fn for_all(self, are_bytes: bool, filter: [usize; 2]) -> Self {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni if !are_bytes => Self::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 if are_bytes && filter == [3, 3] => Self::Avx2Nibbles,
            _ => self,
        }
    }

    /// Its name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Avx2Nibbles => "avx2",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => "neon-dotprod",
        }
    }

    /// Computes the pixels of a run.
    ///
    /// # Safety
    /// As of [`pixels::compute`](super::pixels::compute).
    #[allow(unsafe_code)]
    pub(super) unsafe fn compute(self, packed: &Packed, run: &Run<'_>) {
        // SAFETY: the caller's promises.
        unsafe {
            match self {
                #[cfg(nnhal_only_avx2)]
                Self::Vnni | Self::Avx512 | Self::AvxVnni => unreachable!("not compiled"),
                #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
                Self::Vnni => super::pixels::compute::<super::avx512::Vnni>(packed, run),
                #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
                Self::Avx512 => super::pixels::compute::<super::avx512::Pairs>(packed, run),
                #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
                Self::AvxVnni => super::pixels::compute::<super::avx2::Vnni>(packed, run),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2 => super::pixels::compute::<super::avx2::Pairs>(packed, run),
                #[cfg(target_arch = "x86_64")]
                Self::Avx2Nibbles => super::avx2::nibbles::compute(packed, run),
                #[cfg(target_arch = "aarch64")]
                Self::Neon => super::neon::compute(packed, run),
                #[cfg(target_arch = "aarch64")]
                Self::Sdot => super::pixels::compute::<super::sdot::Sdot>(packed, run),
            }
        }
    }

    /// Channels of a block, at most.
    pub(super) fn lanes(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx512 => 64,
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni | Self::Avx2 | Self::Avx2Nibbles => 32,
            #[cfg(target_arch = "aarch64")]
            Self::Neon | Self::Sdot => 16,
        }
    }

    /// How many pixels of a block share the lanes if it has this many channels.
    pub(super) fn pixels(self, channels: usize) -> usize {
        if self.lanes() > LANES && channels <= self.lanes() / 2 { 2 } else { 1 }
    }

    /// Whether sums can be requantized in floats.
    pub(super) fn has_floats(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx512 => true,
            _ => false,
        }
    }

    fn layout(self) -> Layout {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::AvxVnni => Layout::Bytes,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 | Self::Avx2 => Layout::Pairs,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2Nibbles => Layout::Nibbles,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => Layout::Taps,
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => Layout::Bytes,
        }
    }

    /// Taps that are packed, and mostly multiplied, together.
    pub(super) fn taps(self) -> usize {
        match self.layout() {
            Layout::Bytes | Layout::Pairs => 4,
            Layout::Taps | Layout::Nibbles => 2,
        }
    }

    /// Whether weights are bytes, or sums of two.
    pub(super) fn takes_bytes(self) -> bool {
        self.layout() == Layout::Bytes
    }

    /// Bytes of the weights of a step, without second parts.
    pub(super) fn step_bytes(self) -> usize {
        let bytes = match self.layout() {
            Layout::Bytes | Layout::Taps | Layout::Nibbles => 4,
            Layout::Pairs => 8,
        };
        self.lanes() * bytes
    }

    /// Enters the weight of a tap, which is number `place` of a step, into a block's weights at the sum
    /// that it is for.
    pub(super) fn put(
        self,
        block: &mut [u8],
        [step, place]: [usize; 2],
        steps: usize,
        sum: usize,
        weight: i32,
    ) {
        let first = step * self.step_bytes();
        #[allow(clippy::cast_possible_truncation)] // 9 bits.
        let bytes = (weight as i16).to_le_bytes();
        match self.layout() {
            Layout::Bytes => {
                let part = weight.clamp(-128, 127);
                let parts = [(first, part), (first + steps * self.step_bytes(), weight - part)];
                for (first, part) in parts {
                    // Nothing is left in a second part that there is not.
                    if part != 0 {
                        block[first + sum * 4 + place] = Signedness::Signed.byte(part);
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            Layout::Nibbles => super::avx2::nibbles::put(block, [step, place], sum, weight),
            #[cfg(not(target_arch = "x86_64"))]
            Layout::Nibbles => unreachable!("no such variant"),
            Layout::Pairs => {
                let sums = self.lanes() / 4;
                let vector = first + sum / sums * sums * 8;
                let at = vector + (place % 2 * sums + sum % sums) * 4 + place / 2 * 2;
                block[at..][..2].copy_from_slice(&bytes);
            }
            Layout::Taps => {
                let at = first + (place * self.lanes() + sum) * 2;
                block[at..][..2].copy_from_slice(&bytes);
            }
        }
    }

    /// Which of a block's sums a lane has: interleaving bytes of four taps takes four channels of each
    /// 128 bits in turn.
    pub(super) fn sum_of_lane(self, lane: usize) -> usize {
        lane % 16 / 4 * (self.lanes() / 4) + lane / 16 * 4 + lane % 4
    }

    /// What is added to inputs when they are loaded.
    pub(super) fn input_offset(self, signedness: Signedness) -> i32 {
        match self {
            // They are made unsigned.
            #[cfg(target_arch = "x86_64")]
            Self::Vnni | Self::Avx512 | Self::AvxVnni | Self::Avx2 | Self::Avx2Nibbles => {
                signedness.offset()
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => {
                let _ = signedness;
                0
            }
            // They are made signed.
            #[cfg(target_arch = "aarch64")]
            Self::Sdot => signedness.offset() - 128,
        }
    }

    /// What is added to all sums; on x86, so that they can be requantized as unsigned numbers.
    pub(super) fn sum_offset(self) -> i32 {
        if cfg!(target_arch = "x86_64") { i32::MIN } else { 0 }
    }

    /// In which order taps are multiplied. Weights that are sums of two bytes are rare where inputs
    /// are signed; for those there are kernels of one order only, which keeps this crate small.
    pub(super) fn order(self, shape: &Shape, signedness: Signedness, are_bytes: bool) -> Order {
        if signedness == Signedness::Signed && !are_bytes && self.takes_bytes() {
            return Order::Rows;
        }
        match (self.layout(), shape.filter, shape.stride[1], shape.dilation[1]) {
            (Layout::Nibbles, ..) => Order::Pairs3,
            (Layout::Bytes | Layout::Pairs, [3, 3], 1 | 2, 1) => Order::Columns3,
            (Layout::Bytes | Layout::Pairs, [5, 5], 1 | 2, 1) => Order::Columns5,
            _ => Order::Rows,
        }
    }
}

/// Which taps are multiplied together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The next ones of a row, going on in the next row.
    Rows,
    /// The three of a column of a 3x3 filter, which neighbouring output pixels share.
    Columns3,
    /// Two of a 3x3 filter, see [`nibbles`](super::avx2::nibbles).
    Pairs3,
    /// The upper four of a column of a 5x5 filter; then the first four of the last row; then the last
    /// tap as part of the four input pixels that the next output pixel sees first, where it is the
    /// last of them, or the first if the stride is 2.
    Columns5,
}

impl Order {
    /// The step that a tap belongs to, and its place among those that are multiplied together.
    pub(super) fn place(self, tap: usize, shape: &Shape, together: usize) -> [usize; 2] {
        let (i, j) = (tap / shape.filter[1], tap % shape.filter[1]);
        match self {
            Self::Rows => [tap / together, tap % together],
            Self::Columns3 => [j, i],
            #[cfg(target_arch = "x86_64")]
            Self::Pairs3 => super::avx2::nibbles::place(i, j),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Pairs3 => unreachable!("no such variant"),
            Self::Columns5 if i < 4 => [j, i],
            Self::Columns5 if j < 4 => [5, j],
            Self::Columns5 => [6, if shape.stride[1] == 1 { 3 } else { 0 }],
        }
    }
}
