//! SOFTMAX and LOG_SOFTMAX along an axis.
#![allow(unsafe_code)]

mod quantized;
#[cfg(test)]
mod tests;

use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::parts::for_each_part;
use crate::team::Team;
use crate::vector::{Isa, Kernel, Simd, functions};
pub use quantized::QuantizedSoftmax;

/// Elements that are worth a second thread's while; an exponential takes about half a nanosecond.
const ELEMENTS_OF_TASK: usize = 4096;

/// Prepared SOFTMAX or LOG_SOFTMAX of float32.
#[derive(Debug, Clone)]
pub struct Softmax {
    isa: Isa,
    /// Slices, elements of a slice, elements from one of these to the next.
    sizes: [usize; 3],
    beta: f32,
    is_logarithm: bool,
}

impl Softmax {
    /// Of a tensor `[outer, length, inner]` along its second axis:
    /// `exp(beta * (x - max)) / sum(exp(beta * (x - max)))`, or the logarithm of that.
    pub fn prepare(set: InstructionSet, sizes: [usize; 3], beta: f32, is_logarithm: bool) -> Self {
        Self { isa: Isa::of(set), sizes, beta, is_logarithm }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, input: &[f32], output: &mut [f32]) {
        let [outer, length, inner] = self.sizes;
        let image = length.saturating_mul(inner);
        assert_eq!(input.len(), outer.saturating_mul(image), "an input of another size");
        assert_eq!(output.len(), input.len(), "an output of another size");
        if output.is_empty() {
            return;
        }
        let output = DisjointOutput::new(output);
        for_each_part(team, outer, (ELEMENTS_OF_TASK.div_ceil(image), 1), |part| {
            for index in part {
                let input = &input[index * image..(index + 1) * image];
                // SAFETY: every index has its own elements, and every part its own indexes.
                let output = unsafe { output.slice(index * image, image) };
                self.isa.run(Slice { softmax: self, input, output });
            }
        });
    }
}

/// `[length, inner]` elements.
struct Slice<'a> {
    softmax: &'a Softmax,
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Kernel for Slice<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if self.softmax.sizes[2] == 1 { self.along_row(simd) } else { self.across_rows(simd) }
    }
}

impl Slice<'_> {
    #[inline(always)]
    fn along_row<S: Simd>(self, simd: S) {
        let Self { softmax, input, output } = self;
        let least = simd.splat(f32::NEG_INFINITY);
        let mut greatest = [least; 4];
        let mut groups = input.chunks_exact(4 * S::LANES);
        for group in groups.by_ref() {
            for (index, greatest) in greatest.iter_mut().enumerate() {
                *greatest = simd.max(simd.load(&group[index * S::LANES..]), *greatest);
            }
        }
        for rest in groups.remainder().chunks(S::LANES) {
            greatest[0] = simd.max(simd.load_partial(rest, f32::NEG_INFINITY), greatest[0]);
        }
        let [a, b, c, d] = greatest;
        let greatest = simd.splat(simd.greatest(simd.max(simd.max(a, b), simd.max(c, d))));
        let beta = simd.splat(softmax.beta);
        let zero = simd.splat(0.0);
        let mut sum = zero;
        let whole = input.len() - input.len() % S::LANES;
        let (outputs, last) = output.split_at_mut(whole);
        for (input, output) in input.chunks_exact(S::LANES).zip(outputs.chunks_exact_mut(S::LANES))
        {
            let below = simd.mul(simd.sub(simd.load(input), greatest), beta);
            let power = functions::exp_of_negative(simd, below);
            sum = simd.add(sum, power);
            simd.store(if softmax.is_logarithm { below } else { power }, output);
        }
        if !last.is_empty() {
            // Lanes without an element add e^-infinity, which is 0.
            let input = simd.load_partial(&input[whole..], f32::NEG_INFINITY);
            let below = simd.mul(simd.sub(input, greatest), beta);
            let power = functions::exp_of_negative(simd, below);
            let mut powers = [0.0; 16];
            simd.store(power, &mut powers);
            // Of an infinite greatest element not even that is sure: only those count that are there.
            powers[last.len()..].fill(0.0);
            sum = simd.add(sum, simd.load(&powers));
            simd.store_partial(if softmax.is_logarithm { below } else { power }, last);
        }
        let sum = simd.splat(simd.sum(sum));
        let (factor, offset) = softmax.last_step(simd, sum);
        for output in outputs.chunks_exact_mut(S::LANES) {
            simd.store(simd.fma(simd.load(output), factor, offset), output);
        }
        let rest = simd.fma(simd.load_partial(last, 0.0), factor, offset);
        simd.store_partial(rest, last);
    }

    #[inline(always)]
    fn across_rows<S: Simd>(self, simd: S) {
        let Self { softmax, input, output } = self;
        let [_, length, inner] = softmax.sizes;
        let beta = simd.splat(softmax.beta);
        for first in (0..inner).step_by(S::LANES) {
            let count = (inner - first).min(S::LANES);
            let place = |row: usize| row * inner + first..row * inner + first + count;
            let mut greatest = simd.splat(f32::NEG_INFINITY);
            for row in 0..length {
                greatest = simd.max(simd.load_partial(&input[place(row)], 0.0), greatest);
            }
            let mut sum = simd.splat(0.0);
            for row in 0..length {
                let x = simd.load_partial(&input[place(row)], 0.0);
                let below = simd.mul(simd.sub(x, greatest), beta);
                let power = functions::exp_of_negative(simd, below);
                sum = simd.add(sum, power);
                let kept = if softmax.is_logarithm { below } else { power };
                simd.store_partial(kept, &mut output[place(row)]);
            }
            let (factor, offset) = softmax.last_step(simd, sum);
            for row in 0..length {
                let output = &mut output[place(row)];
                let value = simd.fma(simd.load_partial(output, 0.0), factor, offset);
                simd.store_partial(value, output);
            }
        }
    }
}

impl Softmax {
    /// What the kept numbers are multiplied with, and what is added.
    #[inline(always)]
    fn last_step<S: Simd>(&self, simd: S, sum: S::F) -> (S::F, S::F) {
        if self.is_logarithm {
            (simd.splat(1.0), simd.sub(simd.splat(0.0), functions::log(simd, sum)))
        } else {
            (simd.div(simd.splat(1.0), sum), simd.splat(0.0))
        }
    }
}
