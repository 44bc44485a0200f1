//! Vectors of an instruction set: the operations that kernels are written in, once for all sets.
//!
//! A kernel implements [`Kernel`] over any [`Simd`]; [`Isa::run`] compiles it for each instruction
//! set. Everything that works on vectors is `#[inline(always)]`, so that it ends up inside of the
//! one function that has the instructions enabled.
//!
//! The values of [`Isa`] are proofs: one that holds the token of an instruction set exists only
//! where the processor has it.

mod abreast;
// Elsewhere for tests only.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(crate) mod arrays;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub(crate) mod functions;
#[cfg(target_arch = "aarch64")]
mod neon;
pub(crate) mod pointers;
mod registers;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
pub(crate) mod tests;

use crate::InstructionSet;
pub(crate) use abreast::Abreast;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use arrays::Arrays as Portable;
#[cfg(target_arch = "x86_64")]
pub(crate) use sse2::Sse2 as Portable;

/// Adding it to a number from 0 to itself leaves no bits for a fraction.
const ROUNDER: f32 = 8_388_608.0;

/// The most numbers of 32 bits that a vector has.
pub(crate) const MOST_LANES: usize = 16;

/// Numbers of a vector [`Simd::W`].
pub const WORDS: usize = 16;

/// Vectors of [`Self::LANES`] 32-bit numbers, and of [`WORDS`] 16-bit numbers.
///
/// Slices that are loaded or stored have [`Self::LANES`] elements at least, or the call panics;
/// those of the `partial` ones have any number, and only what there is is touched.
pub trait Simd: Copy + Send + Sync + 'static {
    /// Numbers of type f32.
    type F: Copy;
    /// Numbers of type i32.
    type I: Copy;
    /// A truth value for each lane.
    type M: Copy;
    /// [`WORDS`] numbers of type i16, whatever the lanes.
    type W: Copy;
    /// How many numbers a vector has.
    const LANES: usize;
    /// How many vectors fit in registers.
    const REGISTERS: usize;
    /// Whether [`Self::fma`] rounds once.
    const FUSED: bool;

    fn splat(self, value: f32) -> Self::F;
    fn load(self, from: &[f32]) -> Self::F;
    /// Lanes without an element are `fill`.
    fn load_partial(self, from: &[f32], fill: f32) -> Self::F;
    fn store(self, value: Self::F, to: &mut [f32]);
    /// The first `to.len()` lanes.
    fn store_partial(self, value: Self::F, to: &mut [f32]);
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a < b ? a : b`: `b` if one is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a > b ? a : b`: `b` if one is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`, rounded once where the instruction set can.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    fn floor(self, a: Self::F) -> Self::F;
    /// To the nearest integer, halves to the even one.
    fn round(self, a: Self::F) -> Self::F;
    fn abs(self, a: Self::F) -> Self::F;
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    fn eq(self, a: Self::F, b: Self::F) -> Self::M;
    fn select(self, condition: Self::M, yes: Self::F, no: Self::F) -> Self::F;
    /// Whether the condition is true of a lane.
    #[inline(always)]
    fn any(self, condition: Self::M) -> bool {
        self.greatest(self.select(condition, self.splat(1.0), self.splat(0.0))) > 0.0
    }
    /// For each lane the value of the lane that is given for it, a number below [`Self::LANES`].
    #[inline(always)]
    fn lookup(self, a: Self::F, lanes: Self::I) -> Self::F {
        let (mut values, mut numbers) = ([0.0; 16], [0; 16]);
        self.store(a, &mut values);
        self.istore(lanes, &mut numbers);
        self.load(&numbers.map(|number| values[number.cast_unsigned() as usize % Self::LANES]))
    }
    fn bits(self, a: Self::F) -> Self::I;
    fn of_bits(self, a: Self::I) -> Self::F;
    /// The nearest integer, halves to the even one; anything for what 32 bits cannot hold.
    fn to_i32(self, a: Self::F) -> Self::I;
    fn to_f32(self, a: Self::I) -> Self::F;
    fn sum(self, a: Self::F) -> f32;
    /// Not defined if there is a NaN.
    fn greatest(self, a: Self::F) -> f32;
    fn load_f16(self, from: &[u16]) -> Self::F;
    fn store_f16(self, value: Self::F, to: &mut [u16]);

    fn isplat(self, value: i32) -> Self::I;
    fn iload(self, from: &[i32]) -> Self::I;
    fn istore(self, value: Self::I, to: &mut [i32]);
    fn iadd(self, a: Self::I, b: Self::I) -> Self::I;
    fn isub(self, a: Self::I, b: Self::I) -> Self::I;
    /// The lower half of the product.
    fn imul(self, a: Self::I, b: Self::I) -> Self::I;
    fn iand(self, a: Self::I, b: Self::I) -> Self::I;
    fn ior(self, a: Self::I, b: Self::I) -> Self::I;
    fn ixor(self, a: Self::I, b: Self::I) -> Self::I;
    fn imin(self, a: Self::I, b: Self::I) -> Self::I;
    fn imax(self, a: Self::I, b: Self::I) -> Self::I;
    /// `count` from 0 to 31.
    fn shift_left(self, a: Self::I, count: u32) -> Self::I;
    /// Of signed numbers; `count` from 0 to 31.
    fn shift_right(self, a: Self::I, count: u32) -> Self::I;
    /// The lower half of `(a * b + 2^30) >> 31`, computed in 64 bits.
    fn doubling_high(self, a: Self::I, b: Self::I) -> Self::I;
    fn load_u8(self, from: &[u8]) -> Self::I;
    fn load_i8(self, from: &[i8]) -> Self::I;
    /// Numbers that are from 0 to 255; of others the result is not defined.
    fn store_u8(self, value: Self::I, to: &mut [u8]);
    /// Numbers that are from -128 to 127; of others the result is not defined.
    fn store_i8(self, value: Self::I, to: &mut [i8]);
    /// Any numbers of four vectors, one behind the other, clamped to a range: most sets narrow and clamp these together.
    #[inline(always)]
    fn store_four_u8(self, values: [Self::I; 4], (low, high): (u8, u8), to: &mut [u8]) {
        assert!(to.len() >= 4 * Self::LANES);
        let (low, high) = (self.isplat(low.into()), self.isplat(high.into()));
        for (value, to) in values.into_iter().zip(to.chunks_exact_mut(Self::LANES)) {
            self.store_u8(self.imax(low, self.imin(high, value)), to);
        }
    }
    /// As [`Self::store_four_u8`].
    #[inline(always)]
    fn store_four_i8(self, values: [Self::I; 4], (low, high): (i8, i8), to: &mut [i8]) {
        assert!(to.len() >= 4 * Self::LANES);
        let (low, high) = (self.isplat(low.into()), self.isplat(high.into()));
        for (value, to) in values.into_iter().zip(to.chunks_exact_mut(Self::LANES)) {
            self.store_i8(self.imax(low, self.imin(high, value)), to);
        }
    }

    fn wsplat(self, value: i16) -> Self::W;
    fn wload_u8(self, from: &[u8; WORDS]) -> Self::W;
    fn wload_i8(self, from: &[i8; WORDS]) -> Self::W;
    fn wstore(self, value: Self::W, to: &mut [i16; WORDS]);
    /// Wraps, as the next ones.
    fn wadd(self, a: Self::W, b: Self::W) -> Self::W;
    fn wsub(self, a: Self::W, b: Self::W) -> Self::W;
    /// `count` from 0 to 15.
    fn wshift_left(self, a: Self::W, count: u32) -> Self::W;
}

/// What is computed in vectors.
pub(crate) trait Kernel {
    /// What comes out.
    type Output;

    /// To be marked `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this processor has been seen to have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Isa {
    Portable(Portable),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl Isa {
    /// The vectors of an instruction set, or portable ones if this processor does not have it.
    pub(crate) fn of(set: InstructionSet) -> Self {
        match set {
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 | InstructionSet::AvxVnni => avx2::Avx2::new().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 | InstructionSet::Avx512Vnni | InstructionSet::Avx512Amx => {
                avx512::Avx512::new().map(Self::Avx512)
            }
            #[cfg(target_arch = "aarch64")]
            InstructionSet::Neon | InstructionSet::NeonDotprod | InstructionSet::NeonI8mm => {
                Some(Self::Neon(neon::Neon::new()))
            }
            _ => None,
        }
        .unwrap_or(Self::Portable(Portable))
    }

    /// See [`Simd::LANES`].
    pub(crate) fn lanes(self) -> usize {
        self.run(Sizes).0
    }

    /// See [`Simd::REGISTERS`].
    pub(crate) fn registers(self) -> usize {
        self.run(Sizes).1
    }

    /// Runs a kernel with these vectors.
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable(simd) => kernel.run(simd),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(kernel),
            #[cfg(all(target_arch = "x86_64", not(nnhal_only_avx2)))]
            Self::Avx512(simd) => simd.run(kernel),
            #[cfg(all(target_arch = "x86_64", nnhal_only_avx2))]
            Self::Avx512(_) => unreachable!("not compiled"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => simd.run(kernel),
        }
    }
}

/// How many numbers a vector has, and how many vectors fit in registers.
struct Sizes;

impl Kernel for Sizes {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (usize, usize) {
        (S::LANES, S::REGISTERS)
    }
}

/// Integers of 8 or 16 bits that stand for real numbers.
pub trait Stored: bytemuck::Pod + Send + Sync + std::fmt::Debug {
    /// The least and the greatest one.
    const RANGE: (i32, i32);
    /// What the type is called in names of kernels.
    const NAME: &'static str;

    /// A vector's first elements.
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::I;
    /// Numbers within [`Self::RANGE`].
    fn store<S: Simd>(simd: S, value: S::I, to: &mut [Self]);
}

/// A stored number of 8 bits.
pub trait Byte: Stored + Ord + Into<i32> + Into<i16> {
    /// Any numbers of four vectors, one behind the other, clamped to a range.
    fn store_four<S: Simd>(simd: S, values: [S::I; 4], range: (Self, Self), to: &mut [Self]);
    #[inline(always)]
    fn wide(self) -> i32 {
        self.into()
    }
    /// The nearest one.
    fn nearest(value: i32) -> Self;
}

/// [`Byte`] of a type by its methods of [`Simd`].
macro_rules! byte {
    ($T:ident, $load:ident, $store:ident, $store_four:ident) => {
        impl Stored for $T {
            const RANGE: (i32, i32) = ($T::MIN as i32, $T::MAX as i32);
            const NAME: &'static str = stringify!($T);

            #[inline(always)]
            fn load<S: Simd>(simd: S, from: &[Self]) -> S::I {
                simd.$load(from)
            }

            #[inline(always)]
            fn store<S: Simd>(simd: S, value: S::I, to: &mut [Self]) {
                simd.$store(value, to)
            }
        }

        impl Byte for $T {
            #[inline(always)]
            fn store_four<S: Simd>(
                simd: S,
                values: [S::I; 4],
                range: (Self, Self),
                to: &mut [Self],
            ) {
                simd.$store_four(values, range, to)
            }

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped.
            fn nearest(value: i32) -> Self {
                value.clamp(Self::RANGE.0, Self::RANGE.1) as Self
            }
        }
    };
}

byte!(u8, load_u8, store_u8, store_four_u8);
byte!(i8, load_i8, store_i8, store_four_i8);

/// [`Stored::load`] of as many elements as there are; the other lanes are 0.
#[inline(always)]
pub(crate) fn load_bytes_partial<S: Simd, T: Byte>(simd: S, from: &[T]) -> S::I {
    load_bytes_or(simd, from, T::zeroed())
}

/// [`Stored::load`] of as many elements as there are, at most 16; the other lanes are `fill`.
#[inline(always)]
pub(crate) fn load_bytes_or<S: Simd, T: Byte>(simd: S, from: &[T], fill: T) -> S::I {
    let bytes: &[u8] = bytemuck::cast_slice(from);
    let mut all = few_bytes(bytes);
    if let (0..16, [fill]) = (bytes.len(), bytemuck::cast_slice(&[fill])) {
        all |= u128::from_le_bytes([*fill; 16]) << (8 * bytes.len());
    }
    T::load(simd, bytemuck::cast_slice(&all.to_le_bytes()))
}

/// [`Stored::store`] to as many elements as there are.
#[inline(always)]
pub(crate) fn store_bytes_partial<S: Simd, T: Byte>(simd: S, value: S::I, to: &mut [T]) {
    let mut all = [T::zeroed(); 16];
    T::store(simd, value, &mut all);
    let [bytes] = bytemuck::cast([all]);
    put_few_bytes(u128::from_le_bytes(bytes), bytemuck::cast_slice_mut(to));
}

/// At most 16 bytes as a number, the first one lowest: calling a function that copies any number of them takes as long as
/// all that is done with them.
///
/// # Panics
/// If there are more.
#[inline(always)]
fn few_bytes(from: &[u8]) -> u128 {
    let count = from.len();
    assert!(count <= 16, "{count} bytes");
    if let (Some(first), Some(last)) = (from.first_chunk(), from.last_chunk()) {
        // What both have is the same.
        let last = u128::from(u64::from_le_bytes(*last)) << (8 * (count - 8));
        return u128::from(u64::from_le_bytes(*first)) | last;
    }
    if let (Some(first), Some(last)) = (from.first_chunk(), from.last_chunk()) {
        let last = u64::from(u32::from_le_bytes(*last)) << (8 * (count - 4));
        return (u64::from(u32::from_le_bytes(*first)) | last).into();
    }
    let mut all = 0;
    for (index, byte) in from.iter().enumerate() {
        all |= u32::from(*byte) << (8 * index);
    }
    all.into()
}

/// The first bytes of a number that [`few_bytes`] gives.
///
/// # Panics
/// If there are more than 16.
#[allow(clippy::cast_possible_truncation)] // Bytes of a number.
#[inline(always)]
fn put_few_bytes(bytes: u128, to: &mut [u8]) {
    let count = to.len();
    assert!(count <= 16, "{count} bytes");
    if let Some(first) = to.first_chunk_mut() {
        *first = (bytes as u64).to_le_bytes();
        if let Some(last) = to.last_chunk_mut() {
            *last = ((bytes >> (8 * (count - 8))) as u64).to_le_bytes();
        }
        return;
    }
    if let Some(first) = to.first_chunk_mut() {
        *first = (bytes as u32).to_le_bytes();
        if let Some(last) = to.last_chunk_mut() {
            *last = ((bytes >> (8 * (count - 4))) as u32).to_le_bytes();
        }
        return;
    }
    for (index, byte) in to.iter_mut().enumerate() {
        *byte = (bytes >> (8 * index)) as u8;
    }
}
