//! [`QuantizedSoftmax`].

use crate::InstructionSet;
use crate::movement::transpose;
use crate::prepared::OneInput;
use crate::sharing::{Cut, ELEMENTS_OF_TASK, for_each_rows};
use crate::short_rows::{MOST, ROWS, is_short};
use crate::team::{Pace, Team};
use crate::vector::{
    Byte, Isa, Kernel, Simd, functions, load_bytes_or, load_bytes_partial, store_bytes_partial,
};
use std::marker::PhantomData;

/// Prepared SOFTMAX of `u8` or `i8` tensors; the output has scale 1/256 and the type's least number
/// as zero point.
#[derive(Debug, Clone)]
pub struct QuantizedSoftmax<T> {
    isa: Isa,
    sizes: [usize; 3],
    /// The exponent of one step.
    step: f32,
    stored: PhantomData<T>,
}

impl<T: Byte> OneInput for QuantizedSoftmax<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("softmax {}", T::NAME)
    }

    fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let [outer, length, inner] = self.sizes;
        let image = length.saturating_mul(inner);
        assert_eq!(input.len(), outer.saturating_mul(image), "an input of another size");
        assert_eq!(output.len(), input.len(), "an output of another size");
        let cut = Cut { each: image, least: ELEMENTS_OF_TASK, multiple: 1 };
        for_each_rows(team, (output, image), cut, |part, output, pace| {
            let input = &input[part.start * image..part.end * image];
            self.isa.run(Slices { step: self.step, sizes: [length, inner], input, output, pace });
        });
    }
}

impl<T: Byte> QuantizedSoftmax<T> {
    /// Of a tensor `[outer, length, inner]` of some scale, along its second axis. The result is the
    /// nearest stored number, or a step beside it where halves are concerned.
    #[allow(clippy::cast_possible_truncation)] // Rounded once.
    pub fn prepare(set: InstructionSet, sizes: [usize; 3], scale: f32, beta: f32) -> Self {
        let step = (f64::from(scale) * f64::from(beta)) as f32;
        Self { isa: Isa::of(set), sizes, step, stored: PhantomData }
    }
}

/// Some slices, `[slices, length, inner]`.
struct Slices<'a, T> {
    /// The exponent of one step.
    step: f32,
    sizes: [usize; 2],
    input: &'a [T],
    output: &'a mut [T],
    pace: Pace<'a>,
}

impl<T: Byte> Kernel for Slices<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { step, sizes: [length, inner], mut input, mut output, mut pace } = self;
        let pace = &mut pace;
        if inner != 1 {
            let images = input.chunks_exact(length * inner);
            for (input, output) in images.zip(output.chunks_exact_mut(length * inner)) {
                Columns { step, inner, input, output, pace }.run(simd);
            }
            return;
        }
        // A row that is a vector is computed once.
        if is_short(simd, length) && length != S::LANES {
            let whole = input.len() - input.len() % (ROWS * length);
            let mut columns = [[T::zeroed(); ROWS * MOST]; 2];
            let [inputs, outputs] = columns.each_mut().map(|it| &mut it[..ROWS * length]);
            let (groups, rest) = output.split_at_mut(whole);
            let groups = groups.chunks_exact_mut(ROWS * length);
            for (input, output) in input[..whole].chunks_exact(ROWS * length).zip(groups) {
                transpose(input, [ROWS, length], inputs);
                Columns { step, inner: ROWS, input: inputs, output: outputs, pace }.run(simd);
                transpose(outputs, [length, ROWS], output);
            }
            (input, output) = (&input[whole..], rest);
        }
        for (input, output) in input.chunks_exact(length).zip(output.chunks_exact_mut(length)) {
            Row { step, input, output, pace }.run(simd);
            if pace.is_over(1) {
                return;
            }
        }
    }
}

/// A matrix, along its columns: `inner` of them.
struct Columns<'a, 'p, T> {
    /// The exponent of one step.
    step: f32,
    inner: usize,
    input: &'a [T],
    output: &'a mut [T],
    pace: &'a mut Pace<'p>,
}

impl<T: Byte> Kernel for Columns<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { step, inner, input, output, pace } = self;
        for first in (0..inner).step_by(S::LANES) {
            let count = (inner - first).min(S::LANES);
            let (mut greatest, mut sum) = (simd.isplat(T::RANGE.0), simd.splat(0.0));
            for row in input.chunks_exact(inner) {
                if pace.is_over(S::LANES) {
                    return;
                }
                greatest = simd.imax(greatest, load(simd, &row[first..first + count]));
            }
            let powers = Powers::<S> { greatest, step: simd.splat(step) };
            for row in input.chunks_exact(inner) {
                if pace.is_over(S::LANES) {
                    return;
                }
                sum = simd.add(sum, powers.of(simd, load(simd, &row[first..first + count])));
            }
            let factor = simd.div(simd.splat(256.0), sum);
            for (input, output) in input.chunks_exact(inner).zip(output.chunks_exact_mut(inner)) {
                if pace.is_over(S::LANES) {
                    return;
                }
                let power = powers.of(simd, load(simd, &input[first..first + count]));
                let steps = stored::<S, T>(simd, power, factor);
                if count == S::LANES {
                    T::store(simd, steps, &mut output[first..first + count]);
                } else {
                    store_bytes_partial(simd, steps, &mut output[first..first + count]);
                }
            }
        }
    }
}

/// The elements that there are, at most as many as a vector has.
#[inline(always)]
fn load<S: Simd, T: Byte>(simd: S, from: &[T]) -> S::I {
    if from.len() == S::LANES { T::load(simd, from) } else { load_bytes_partial(simd, from) }
}

/// Elements side by side.
struct Row<'a, 'p, T> {
    /// The exponent of one step.
    step: f32,
    input: &'a [T],
    output: &'a mut [T],
    pace: &'a mut Pace<'p>,
}

impl<T: Byte> Kernel for Row<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if self.input.len() <= S::LANES {
            return self.one_vector(simd);
        }
        let Self { step, input, output, pace } = self;
        let whole = input.len() - input.len() % S::LANES;
        let ((input, last), (output, last_output)) =
            (input.split_at(whole), output.split_at_mut(whole));
        let mut greatest = simd.isplat(T::RANGE.0);
        for block in pace.blocks(whole, 1) {
            for input in input[block].chunks_exact(S::LANES) {
                greatest = simd.imax(greatest, T::load(simd, input));
            }
        }
        let mut lanes = [T::RANGE.0; 16];
        simd.istore(greatest, &mut lanes);
        let of_last = last.iter().map(|it| it.wide());
        let greatest = of_last.chain(lanes).fold(T::RANGE.0, i32::max);
        let powers = Powers::<S> { greatest: simd.isplat(greatest), step: simd.splat(step) };
        // Two sums, so that additions need not wait for each other.
        let mut sums = [simd.splat(0.0); 2];
        for block in pace.blocks(whole, 1) {
            let mut pairs = input[block].chunks_exact(2 * S::LANES);
            for pair in pairs.by_ref() {
                sums[0] = simd.add(sums[0], powers.of(simd, T::load(simd, pair)));
                sums[1] = simd.add(sums[1], powers.of(simd, T::load(simd, &pair[S::LANES..])));
            }
            for single in pairs.remainder().chunks_exact(S::LANES) {
                sums[0] = simd.add(sums[0], powers.of(simd, T::load(simd, single)));
            }
        }
        let mut sums = simd.add(sums[0], sums[1]);
        let mut of_last = None;
        if !last.is_empty() {
            let power = powers.of(simd, load_bytes_partial(simd, last));
            sums = simd.add(sums, first(simd, power, last.len()));
            of_last = Some(power);
        }
        let factor = simd.splat(256.0 / simd.sum(sums));
        for block in pace.blocks(whole, 1) {
            let outputs = output[block.clone()].chunks_exact_mut(S::LANES);
            for (input, output) in input[block].chunks_exact(S::LANES).zip(outputs) {
                let power = powers.of(simd, T::load(simd, input));
                T::store(simd, stored::<S, T>(simd, power, factor), output);
            }
        }
        if let Some(power) = of_last {
            store_bytes_partial(simd, stored::<S, T>(simd, power, factor), last_output);
        }
    }
}

impl<T: Byte> Row<'_, '_, T> {
    /// Elements that fit into a vector, whose powers are computed once.
    #[inline(always)]
    fn one_vector<S: Simd>(self, simd: S) {
        let Self { step, input, output, .. } = self;
        let is_whole = input.len() == S::LANES;
        let elements = if is_whole {
            T::load(simd, input)
        } else {
            load_bytes_or(simd, input, T::nearest(T::RANGE.0))
        };
        let mut lanes = [T::RANGE.0; 16];
        simd.istore(elements, &mut lanes);
        let mut greatest = T::RANGE.0;
        for lane in lanes {
            greatest = greatest.max(lane);
        }
        let powers = Powers::<S> { greatest: simd.isplat(greatest), step: simd.splat(step) };
        let mut power = powers.of(simd, elements);
        if !is_whole {
            power = first(simd, power, input.len());
        }
        let factor = simd.splat(256.0 / simd.sum(power));
        let steps = stored::<S, T>(simd, power, factor);
        if is_whole {
            T::store(simd, steps, output);
        } else {
            store_bytes_partial(simd, steps, output);
        }
    }
}

/// The first powers, and 0 for lanes that stand for no element.
#[inline(always)]
fn first<S: Simd>(simd: S, powers: S::F, count: usize) -> S::F {
    let mut lanes = [0.0; 16];
    simd.store(powers, &mut lanes);
    simd.load_partial(&lanes[..count], 0.0)
}

/// What powers are of.
struct Powers<S: Simd> {
    greatest: S::I,
    /// The exponent of one step.
    step: S::F,
}

impl<S: Simd> Powers<S> {
    #[inline(always)]
    fn of(&self, simd: S, elements: S::I) -> S::F {
        let below = simd.to_f32(simd.isub(elements, self.greatest));
        functions::exp_of_negative(simd, simd.mul(below, self.step))
    }
}

/// The nearest stored numbers of powers, halves going up.
#[inline(always)]
fn stored<S: Simd, T: Byte>(simd: S, powers: S::F, factor: S::F) -> S::I {
    let steps = simd.floor(simd.fma(powers, factor, simd.splat(0.5)));
    simd.iadd(simd.imin(simd.to_i32(steps), simd.isplat(255)), simd.isplat(T::RANGE.0))
}
