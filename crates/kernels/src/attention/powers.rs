//! What becomes of a row of scores, and of results that are to be put together.

use crate::softmax::powers;
use crate::team::Pace;
use crate::vector::{Kernel, Simd};

/// Puts `exp(beta * (x * factor + mask - greatest))` in the place of each score `x` of a row, where the greatest is that of all
/// `x * factor + mask`; gives that and the sum of all.
///
/// Of scores that are all minus infinity, each becomes 0: whether that is a row's whole sum shows when its parts are put
/// together.
pub(super) struct Powers<'a, 'p> {
    pub(super) scores: &'a mut [f32],
    pub(super) factor: f32,
    /// As long as the row.
    pub(super) mask: Option<&'a [f32]>,
    pub(super) beta: f32,
    pub(super) pace: &'a mut Pace<'p>,
}

impl Kernel for Powers<'_, '_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> (f32, f32) {
        let Self { scores, mut factor, mask, beta, pace } = self;
        let greatest = match mask {
            Some(mask) => {
                let greatest = add_mask(simd, scores, simd.splat(factor), mask, pace);
                factor = 1.0;
                greatest
            }
            None => greatest(simd, scores, simd.splat(factor), pace),
        };
        if greatest == f32::NEG_INFINITY {
            let mut sum = 0.0;
            for block in pace.blocks(scores.len(), 1) {
                for score in &mut scores[block] {
                    *score = if score.is_nan() { *score } else { 0.0 };
                    sum += *score;
                }
            }
            return (greatest, sum);
        }
        let [factor, least, beta] = [factor, greatest, beta].map(|it| simd.splat(it));
        let sums = powers(simd, scores, [factor, least, beta], false, pace);
        (greatest, simd.sum(sums))
    }
}

/// Adds the mask to the scores times the factor; gives the greatest sum.
#[inline(always)]
fn add_mask<S: Simd>(
    simd: S,
    scores: &mut [f32],
    factor: S::F,
    mask: &[f32],
    pace: &mut Pace<'_>,
) -> f32 {
    let mut greatest = simd.splat(f32::NEG_INFINITY);
    for block in pace.blocks(scores.len(), 1) {
        let mut scores = scores[block.clone()].chunks_exact_mut(S::LANES);
        let mut masks = mask[block].chunks_exact(S::LANES);
        for (score, mask) in scores.by_ref().zip(masks.by_ref()) {
            let sum = simd.add(simd.mul(simd.load(score), factor), simd.load(mask));
            simd.store(sum, score);
            greatest = simd.max(sum, greatest);
        }
        let (score, mask) = (scores.into_remainder(), masks.remainder());
        if !score.is_empty() {
            let product = simd.mul(simd.load_partial(score, 0.0), factor);
            simd.store_partial(simd.add(product, simd.load_partial(mask, 0.0)), score);
            greatest = simd.max(simd.load_partial(score, f32::NEG_INFINITY), greatest);
        }
    }
    simd.greatest(greatest)
}

/// The greatest score times the factor.
#[inline(always)]
fn greatest<S: Simd>(simd: S, scores: &[f32], factor: S::F, pace: &mut Pace<'_>) -> f32 {
    let mut greatest = simd.splat(f32::NEG_INFINITY);
    for block in pace.blocks(scores.len(), 1) {
        let mut scores = scores[block].chunks_exact(S::LANES);
        for score in scores.by_ref() {
            greatest = simd.max(simd.mul(simd.load(score), factor), greatest);
        }
        let rest = scores.remainder();
        if let Some(first) = rest.first() {
            // Any score that is there may stand for those that are not.
            let rest = simd.load_partial(rest, *first);
            greatest = simd.max(simd.mul(rest, factor), greatest);
        }
    }
    simd.greatest(greatest)
}

/// Writes values times a factor, or adds that.
pub(super) struct Scaled<'a> {
    pub(super) values: &'a [f32],
    pub(super) factor: f32,
    /// As long as the values.
    pub(super) to: &'a mut [f32],
    pub(super) is_added: bool,
}

impl Kernel for Scaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { values, factor, to, is_added } = self;
        let factor = simd.splat(factor);
        let mut outputs = to.chunks_exact_mut(S::LANES);
        let mut inputs = values.chunks_exact(S::LANES);
        for (input, output) in inputs.by_ref().zip(outputs.by_ref()) {
            let scaled = simd.mul(simd.load(input), factor);
            let value = if is_added { simd.add(simd.load(output), scaled) } else { scaled };
            simd.store(value, output);
        }
        let rest = outputs.into_remainder();
        if !rest.is_empty() {
            let scaled = simd.mul(simd.load_partial(inputs.remainder(), 0.0), factor);
            let value =
                if is_added { simd.add(simd.load_partial(rest, 0.0), scaled) } else { scaled };
            simd.store_partial(value, rest);
        }
    }
}
