//! Quantized values of 8 bits, and what matrix products and convolutions of them compute.
//!
//! A stored number `q` stands for `scale * (q - zero_point)`. Inputs and outputs have 8 bits, signed
//! or not, with any zero point; so have weights ([`Weights`]), which mostly are signed with zero point
//! 0. Everywhere an output is
//!
//! ```text
//! clamp(multiplier * (bias + sum of (input - zero point) * (weight - zero point)) + zero point)
//! ```
//!
//! where the sum has 32 bits and wraps, and the product with the multiplier is rounded as
//! [`Multiplier::apply`](crate::Multiplier::apply) says. All variants for all instruction sets give the same to the bit: sums
//! that wrap do not depend on an order.
//!
//! Slices hold signed numbers as their bytes.

use crate::Preparation;
use crate::vector::{Isa, Kernel, Simd};
use bytemuck::{Pod, Zeroable};

/// How a tensor of 8 bits stands for real numbers: `scale * (stored - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantization {
    /// What a step stands for.
    pub scale: f32,
    /// The stored number that stands for 0, within the type's range.
    pub zero_point: i32,
}

/// Whether 8-bit numbers are signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Signedness {
    /// From 0 to 255.
    Unsigned,
    /// From -128 to 127.
    Signed,
}

impl Signedness {
    /// The least and the greatest number.
    pub fn range(self) -> (i32, i32) {
        match self {
            Self::Unsigned => (0, 255),
            Self::Signed => (-128, 127),
        }
    }

    /// The type's name, for profiles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unsigned => "u8",
            Self::Signed => "i8",
        }
    }

    /// The number that a byte stands for.
    pub fn value(self, byte: u8) -> i32 {
        match self {
            Self::Unsigned => i32::from(byte),
            Self::Signed => i32::from(byte.cast_signed()),
        }
    }

    /// That number less a zero point within the range.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // Differences of 8-bit numbers.
    pub(crate) fn centred(self, zero_point: i32, byte: u8) -> i16 {
        // Without a branch: the byte of a signed number and its sign's bit turned are 128 more than it.
        let (flip, offset) = match self {
            Self::Unsigned => (0, 0),
            Self::Signed => (0x80, 128),
        };
        // Nor does it wrap, which a check in each step of a loop would tell.
        i16::from(byte ^ flip).wrapping_sub((zero_point as i16).wrapping_add(offset))
    }

    /// The byte of a number within the range.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The lower 8 bits.
    pub(crate) fn byte(self, value: i32) -> u8 {
        debug_assert!((self.range().0..=self.range().1).contains(&value));
        value as u8
    }

    /// The bits that differ between a number's byte and that of a signed number: the same one, or 128
    /// less.
    pub(crate) fn flip(self) -> u8 {
        match self {
            Self::Unsigned => 0x80,
            Self::Signed => 0,
        }
    }

    /// What is added to a number to make it unsigned.
    pub(crate) fn offset(self) -> i32 {
        -self.range().0
    }
}

/// Weights as they are given to be packed.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'a> {
    /// The stored numbers.
    pub values: &'a [u8],
    /// Whether they are signed.
    pub signedness: Signedness,
    /// The stored number that stands for 0, within the range.
    pub zero_point: i32,
}

/// The inputs of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Activations {
    /// Of inputs and outputs.
    pub signedness: Signedness,
    /// The stored input that stands for 0, within the range.
    pub zero_point: i32,
}

impl Activations {
    /// # Panics
    /// If the zero point is out of range.
    pub(crate) fn check(self) {
        let (min, max) = self.signedness.range();
        assert!((min..=max).contains(&self.zero_point), "the zero point is out of range: {self:?}");
    }

    /// The greatest magnitude of an input less its zero point.
    pub(crate) fn greatest(self) -> i64 {
        let (min, max) = self.signedness.range();
        i64::from((self.zero_point - min).max(max - self.zero_point))
    }
}

impl Weights<'_> {
    /// # Panics
    /// If there are fewer, or the zero point is out of range.
    pub(crate) fn check(&self, values: usize, preparation: &Preparation) {
        preparation.check_count(self.values.len(), values, "weights");
        let (min, max) = self.signedness.range();
        assert!((min..=max).contains(&self.zero_point), "a zero point of {}", self.zero_point);
    }

    /// Those behind this many; none where weights are not looked at.
    pub(crate) fn behind(self, count: usize) -> Self {
        Self { values: self.values.get(count..).unwrap_or_default(), ..self }
    }

    /// A weight less the zero point.
    pub(crate) fn centred(&self, index: usize) -> i32 {
        self.signedness.value(self.values[index]) - self.zero_point
    }

    /// The zero point of weights that are made signed.
    pub(crate) fn signed_zero_point(&self) -> i32 {
        self.zero_point + self.signedness.offset() - 128
    }
}

/// What is needed of all weights of an output channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Zeroable, Pod)]
#[repr(C)]
pub(crate) struct Sums {
    /// Of the weights made signed.
    pub(crate) sum: i64,
    /// Of the magnitudes of the weights less their zero point.
    pub(crate) magnitude: i64,
}

impl Sums {
    /// Adds weights.
    pub(crate) fn add(&mut self, isa: Isa, weights: Weights<'_>, values: &[u8]) {
        isa.run(Adding { sums: self, weights, values });
    }

    /// The sum as kernels take it: 32 bits, which wrap.
    #[allow(clippy::cast_possible_truncation)] // So it is meant.
    pub(crate) fn wrapped(&self) -> i32 {
        self.sum as i32
    }
}

/// [`Sums::add`] in vectors.
struct Adding<'a> {
    sums: &'a mut Sums,
    weights: Weights<'a>,
    values: &'a [u8],
}

impl Kernel for Adding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { sums, weights, values } = self;
        let flip = weights.signedness.flip();
        #[allow(clippy::cast_possible_truncation)] // It has 8 bits.
        let zero_point = weights.signed_zero_point() as i16;
        // So few that sums of 16 bits hold them, without checks, which would keep compilers from adding
        // many side by side.
        for values in values.chunks(128) {
            let (mut sum, mut magnitude) = (0_i16, 0_u16);
            for byte in values {
                let weight = i16::from((byte ^ flip).cast_signed());
                sum = sum.wrapping_add(weight);
                magnitude = magnitude.wrapping_add(weight.wrapping_sub(zero_point).unsigned_abs());
            }
            sums.sum += i64::from(sum);
            sums.magnitude += i64::from(magnitude);
        }
    }
}
