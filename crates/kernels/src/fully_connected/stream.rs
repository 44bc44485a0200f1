//! The product of one row with a matrix, which takes as long as reading the matrix does.
#![allow(unsafe_code)]
#![allow(clippy::needless_range_loop)] // The index of a vector is used for more than one array.

use crate::gemm::float::Epilogue;
use crate::team::Pace;
use crate::vector::{Isa, Kernel, Simd};

/// The most vectors of a panel.
pub(super) const MOST_VECTORS: usize = 8;

/// The weights of a panel: for each input, a row of as many values as the panel is wide.
#[derive(Clone, Copy)]
pub(super) enum Weights<'a> {
    Full(&'a [f32]),
    /// Numbers of 16 bits.
    Half(&'a [u16]),
}

/// One panel of outputs.
pub(super) struct Stream<'a> {
    pub(super) inputs: &'a [f32],
    pub(super) weights: Weights<'a>,
    /// As many as the panel is wide.
    pub(super) bias: &'a [f32],
    pub(super) residual: Option<&'a [f32]>,
    /// At most as many as the panel is wide, and more than all vectors but the last hold.
    pub(super) output: &'a mut [f32],
    pub(super) epilogue: &'a Epilogue,
    pub(super) pace: Pace<'a>,
}

struct Panel<'a, const VECTORS: usize>(Stream<'a>);

impl<const VECTORS: usize> Kernel for Panel<'_, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Stream { inputs, weights, bias, residual, output, epilogue, mut pace } = self.0;
        // Products with even and with odd inputs have sums of their own: twice as many sums in flight.
        let mut sums = [[simd.splat(0.0); VECTORS]; 2];
        match weights {
            Weights::Full(weights) => add_all(simd, inputs, weights, &mut pace, &mut sums),
            Weights::Half(weights) => add_all(simd, inputs, weights, &mut pace, &mut sums),
        }
        for vector in 0..VECTORS {
            let columns = vector * S::LANES..(vector + 1) * S::LANES;
            let mut value = simd.add(sums[0][vector], sums[1][vector]);
            value = simd.add(value, simd.load(&bias[columns.clone()]));
            let end = columns.end.min(output.len());
            let columns = columns.start.min(end)..end;
            if let Some(residual) = residual {
                value = simd.add(value, simd.load_partial(&residual[columns.clone()], 0.0));
            }
            simd.store_partial(epilogue.apply(simd, value), &mut output[columns]);
        }
    }
}

/// How a weight is stored.
trait Weight: Copy {
    /// A vector of them.
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F;
}

impl Weight for f32 {
    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F {
        simd.load(from)
    }
}

impl Weight for u16 {
    #[inline(always)]
    fn load<S: Simd>(simd: S, from: &[Self]) -> S::F {
        simd.load_f16(from)
    }
}

/// Adds the products of all inputs, as long as they are wanted.
///
/// # Panics
/// If there are fewer than `VECTORS` vectors of weights for each input.
#[inline(always)]
fn add_all<S: Simd, W: Weight, const VECTORS: usize>(
    simd: S,
    inputs: &[f32],
    weights: &[W],
    pace: &mut Pace<'_>,
    sums: &mut [[S::F; VECTORS]; 2],
) {
    let width = VECTORS * S::LANES;
    // As many inputs as there are in memory, times 128 at most: that does not wrap.
    assert!(weights.len() >= inputs.len() * width, "weights of a panel");
    // Blocks have an even number of inputs.
    for block in pace.blocks(inputs.len(), width) {
        let weights = weights[block.start * width..].as_ptr();
        // SAFETY: as was just seen, of the inputs from the block's first one on.
        unsafe { add(simd, &inputs[block], weights, sums) };
    }
}

/// Adds the products of some inputs.
///
/// # Safety
/// There are `VECTORS` vectors of weights for each input.
#[inline(always)]
unsafe fn add<S: Simd, W: Weight, const VECTORS: usize>(
    simd: S,
    inputs: &[f32],
    weights: *const W,
    sums: &mut [[S::F; VECTORS]; 2],
) {
    let [mut even, mut odd] = *sums;
    for (index, pair) in inputs.chunks(2).enumerate() {
        // SAFETY: as the caller promises.
        let row = unsafe { weights.add(2 * index * VECTORS * S::LANES) };
        let input = simd.splat(pair[0]);
        for vector in 0..VECTORS {
            // SAFETY: as the caller promises.
            let row = unsafe { std::slice::from_raw_parts(row.add(vector * S::LANES), S::LANES) };
            even[vector] = simd.fma(input, W::load(simd, row), even[vector]);
        }
        let Some(&input) = pair.get(1) else { break };
        let input = simd.splat(input);
        for vector in 0..VECTORS {
            // SAFETY: as the caller promises.
            let row = unsafe {
                std::slice::from_raw_parts(row.add((VECTORS + vector) * S::LANES), S::LANES)
            };
            odd[vector] = simd.fma(input, W::load(simd, row), odd[vector]);
        }
    }
    *sums = [even, odd];
}

/// Computes the outputs of a panel of this many vectors.
///
/// # Panics
/// If there are too few weights or biases, or `vectors` is 0 or more than [`MOST_VECTORS`].
pub(super) fn run(isa: Isa, vectors: usize, stream: Stream<'_>) {
    match vectors {
        1 => isa.run(Panel::<1>(stream)),
        2 => isa.run(Panel::<2>(stream)),
        3 => isa.run(Panel::<3>(stream)),
        4 => isa.run(Panel::<4>(stream)),
        5 => isa.run(Panel::<5>(stream)),
        6 => isa.run(Panel::<6>(stream)),
        7 => isa.run(Panel::<7>(stream)),
        8 => isa.run(Panel::<8>(stream)),
        _ => unreachable!("no panel of {vectors} vectors"),
    }
}
