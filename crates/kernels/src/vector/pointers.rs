//! Vectors at addresses, for kernels whose callers promise the memory.
#![allow(unsafe_code)]

use super::Simd;

/// A vector of values.
///
/// # Safety
/// They are there.
#[inline(always)]
pub(crate) unsafe fn load<S: Simd>(simd: S, from: *const f32) -> S::F {
    // SAFETY: as the caller promises.
    simd.load(unsafe { std::slice::from_raw_parts(from, S::LANES) })
}

/// The first `wanted` values of a vector, at most all; the other lanes are 0. If `FULL`, all are wanted.
///
/// # Safety
/// They are there.
#[inline(always)]
pub(crate) unsafe fn load_some<S: Simd, const FULL: bool>(
    simd: S,
    from: *const f32,
    wanted: usize,
) -> S::F {
    // SAFETY: as the caller promises.
    unsafe {
        match FULL {
            true => load(simd, from),
            false => simd.load_partial(std::slice::from_raw_parts(from, wanted), 0.0),
        }
    }
}

/// Stores a vector.
///
/// # Safety
/// There is room for it, which no one else touches.
#[inline(always)]
pub(crate) unsafe fn store<S: Simd>(simd: S, value: S::F, to: *mut f32) {
    // SAFETY: as the caller promises.
    simd.store(value, unsafe { std::slice::from_raw_parts_mut(to, S::LANES) });
}

/// Stores the first `wanted` lanes, at most all. If `FULL`, all are wanted.
///
/// # Safety
/// There is room for them, which no one else touches.
#[inline(always)]
pub(crate) unsafe fn store_some<S: Simd, const FULL: bool>(
    simd: S,
    value: S::F,
    to: *mut f32,
    wanted: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match FULL {
            true => store(simd, value, to),
            false => simd.store_partial(value, std::slice::from_raw_parts_mut(to, wanted)),
        }
    }
}
