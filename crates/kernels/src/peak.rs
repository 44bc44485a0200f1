//! The most that a thread can compute and move, to hold kernels against.
#![allow(unsafe_code)]

use crate::InstructionSet;
use crate::lines::LINE_BYTES;
use crate::vector::{Isa, Kernel, Simd};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The numbers that are multiplied and added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbers {
    /// Floats of 32 bits.
    Float32,
    /// Of 8 bits, with sums of 32.
    Bits8,
}

/// Sums that are in flight at the same time: more than it takes for one to be done.
const SUMS: usize = 12;
/// Products of each sum in a turn, which takes some microseconds.
const PRODUCTS: u32 = 5_000;
/// The fastest of this many turns counts.
const TURNS: u32 = 60;

/// Multiplications and additions that a thread does in a nanosecond with this instruction set when
/// nothing has to be loaded, measured in less than a millisecond. `None` where there is no
/// instruction for it, or this processor does not have it.
#[allow(clippy::cast_precision_loss)] // Counts and times.
pub fn operations_per_nanosecond(set: InstructionSet, numbers: Numbers) -> Option<f64> {
    if !set.is_available() {
        return None;
    }
    let mut best = None;
    for _ in 0..TURNS {
        let start = Instant::now();
        let lanes = match numbers {
            Numbers::Float32 => Isa::of(set).run(Floats),
            Numbers::Bits8 => bytes(set)?,
        };
        let nanoseconds = start.elapsed().as_nanos().max(1) as f64;
        let operations = 2.0 * (lanes * SUMS) as f64 * f64::from(PRODUCTS);
        best = Some((operations / nanoseconds).max(best.unwrap_or(0.0)));
    }
    best
}

/// Bytes that are read or written in a nanosecond when this many bytes are copied again and again, half of
/// them to the other half: how fast that is depends on the caches that hold them. Measured in about as
/// long as two of these copies take, a tenth of a millisecond at least.
#[allow(clippy::cast_precision_loss)] // Counts and times.
pub fn bytes_per_nanosecond(bytes: usize) -> f64 {
    let half = (bytes / 2).max(LINE_BYTES);
    let from = vec![1_u8; half];
    let mut to = vec![0_u8; half];
    let mut best: f64 = 0.0;
    let begun = Instant::now();
    // The first turn brings them into the caches.
    for turn in 0.. {
        let repeats = (COPIED_AT_LEAST / half).max(1);
        let start = Instant::now();
        for _ in 0..repeats {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
        let nanoseconds = start.elapsed().as_nanos().max(1) as f64;
        best = best.max(2.0 * (repeats * half) as f64 / nanoseconds);
        if turn > 0 && begun.elapsed() > COPYING_AT_LEAST {
            break;
        }
    }
    best
}

/// Bytes that are copied between two looks at the clock.
const COPIED_AT_LEAST: usize = 64 << 10;
const COPYING_AT_LEAST: Duration = Duration::from_micros(100);

/// Multiplies and adds; gives the products of an instruction.
struct Floats;

impl Kernel for Floats {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> usize {
        let factor = black_box(simd.splat(0.5));
        repeated(simd.splat(1.0), |sum| simd.fma(sum, factor, factor));
        S::LANES
    }
}

/// Goes from sums to the next ones, [`PRODUCTS`] times.
#[inline(always)]
fn repeated<V: Copy>(first: V, next: impl Fn(V) -> V) {
    let mut sums = black_box([first; SUMS]);
    for _ in 0..PRODUCTS {
        for sum in &mut sums {
            *sum = next(*sum);
        }
    }
    black_box(sums);
}

#[cfg(target_arch = "x86_64")]
use x86::bytes;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{InstructionSet, PRODUCTS, SUMS, black_box, repeated};
    use crate::amx;
    use std::arch::x86_64::*;

    /// The same for numbers of 8 bits.
    pub(super) fn bytes(set: InstructionSet) -> Option<usize> {
        set.expect_available();
        let (multiply, products): (unsafe fn(), usize) = match set {
            InstructionSet::Avx512Amx => (multiply_tiles, PRODUCTS_OF_TILES),
            InstructionSet::Avx512Vnni => (multiply_vnni, 64),
            InstructionSet::Avx512 => (multiply_512, 32),
            InstructionSet::AvxVnni => (multiply_vnni_256, 32),
            InstructionSet::Avx2 => (multiply_256, 16),
            _ => return None,
        };
        // SAFETY: as was just seen.
        unsafe { multiply() };
        Some(products)
    }

    /// Products of tiles for each one of others.
    const PRODUCTS_OF_TILES: usize = 1024;

    #[allow(clippy::cast_possible_truncation)] // Small numbers.
    fn multiply_tiles() {
        const OF_TILE: u32 = (amx::TILE_ROWS * amx::TILE_ROWS * amx::ROW_BYTES) as u32;
        const OF_ALL: u32 = SUMS as u32 * PRODUCTS * PRODUCTS_OF_TILES as u32;
        const { assert!(OF_ALL.is_multiple_of(OF_TILE * amx::SUMS)) };
        amx::TileRegisters::set_up().multiply(OF_ALL / OF_TILE / amx::SUMS);
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    fn multiply_vnni() {
        let factor = black_box(_mm512_set1_epi8(3));
        repeated(_mm512_set1_epi32(1), |sum| _mm512_dpbusd_epi32(sum, factor, factor));
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn multiply_512() {
        let factor = black_box(_mm512_set1_epi16(3));
        // Of the sum itself, or the product would be taken out of the loop.
        repeated(_mm512_set1_epi32(1), |sum| _mm512_add_epi32(sum, _mm512_madd_epi16(sum, factor)));
    }

    #[target_feature(enable = "avx2,avxvnni")]
    fn multiply_vnni_256() {
        let factor = black_box(_mm256_set1_epi8(3));
        repeated(_mm256_set1_epi32(1), |sum| _mm256_dpbusd_avx_epi32(sum, factor, factor));
    }

    #[target_feature(enable = "avx2")]
    fn multiply_256() {
        let factor = black_box(_mm256_set1_epi16(3));
        // Of the sum itself, or the product would be taken out of the loop.
        repeated(_mm256_set1_epi32(1), |sum| _mm256_add_epi32(sum, _mm256_madd_epi16(sum, factor)));
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn bytes(_: InstructionSet) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_computes_something() {
        for set in InstructionSet::available() {
            let rate = operations_per_nanosecond(set, Numbers::Float32);
            assert!(rate.is_some_and(|rate| rate > 0.0 && rate.is_finite()), "{set} {rate:?}");
        }
    }

    #[test]
    fn any_number_of_bytes_can_be_copied() {
        for bytes in [0, 1, 5000, 3 << 20] {
            let rate = bytes_per_nanosecond(bytes);
            assert!(rate > 0.0 && rate.is_finite(), "{bytes} {rate}");
        }
    }

    #[test]
    fn nothing_is_measured_that_is_not_there() {
        for set in InstructionSet::ALL.into_iter().filter(|set| !set.is_available()) {
            assert_eq!(operations_per_nanosecond(set, Numbers::Float32), None);
            assert_eq!(operations_per_nanosecond(set, Numbers::Bits8), None);
        }
    }
}
