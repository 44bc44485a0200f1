//! [`QuantizedSoftmax`].

use crate::InstructionSet;
use crate::prepared::OneInput;
use crate::sharing::{ELEMENTS_OF_TASK, for_each_slice_along};
use crate::team::{Pace, Team};
use crate::vector::{
    Byte, Isa, Kernel, Simd, functions, load_bytes_or, load_bytes_partial, store_bytes_partial,
};
use std::marker::PhantomData;
use std::ops::Range;

/// Rows of no more elements take less time one by one than as a part of two vectors, and of one.
const SHORT_ROW: usize = 12;
const SHORTEST_ROW: usize = 5;

/// Prepared SOFTMAX of `u8` or `i8` tensors; the output has scale 1/256 and the type's least number
/// as zero point.
#[derive(Debug, Clone)]
pub struct QuantizedSoftmax<T> {
    isa: Isa,
    sizes: [usize; 3],
    /// The exponent of one step.
    step: f32,
    /// The exponentials of this many steps below the greatest element.
    powers: Box<[f32; 256]>,
    stored: PhantomData<T>,
}

impl<T: Byte> OneInput for QuantizedSoftmax<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("softmax {}", T::NAME)
    }

    fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let [_, length, inner] = self.sizes;
        let is_one_vector = length > SHORTEST_ROW && length <= self.isa.lanes();
        let is_row = inner == 1 && (length > SHORT_ROW || is_one_vector);
        let work = |input: &[T], output: &mut [T], pace: &mut Pace<'_>| match is_row {
            true => self.isa.run(Row { step: self.step, input, output, pace }),
            false => self.slice(input, output, pace),
        };
        for_each_slice_along(team, self.sizes, ELEMENTS_OF_TASK, (input, output), work);
    }
}

impl<T: Byte> QuantizedSoftmax<T> {
    /// Of a tensor `[outer, length, inner]` of some scale, along its second axis. The result is the
    /// nearest stored number, or a step beside it where halves are concerned.
    #[allow(clippy::cast_possible_truncation)] // Rounded once.
    pub fn prepare(set: InstructionSet, sizes: [usize; 3], scale: f32, beta: f32) -> Self {
        let step = f64::from(scale) * f64::from(beta);
        let mut powers = Box::new([0.0; 256]);
        for (steps, power) in (0_u8..=255).zip(powers.iter_mut()) {
            *power = (-step * f64::from(steps)).exp() as f32;
        }
        Self { isa: Isa::of(set), sizes, step: step as f32, powers, stored: PhantomData }
    }

    /// One slice, whose elements have the inner size as their stride.
    #[allow(clippy::cast_possible_truncation)] // 256 at most.
    fn slice(&self, input: &[T], output: &mut [T], pace: &mut Pace<'_>) {
        let [_, length, inner] = self.sizes;
        let elements = |of: Range<usize>| {
            input[of.start * inner..].iter().step_by(inner).take(of.len()).map(|it| it.wide())
        };
        let mut greatest = T::RANGE.0;
        for block in pace.blocks(length, 1) {
            greatest = elements(block).fold(greatest, i32::max);
        }
        // Differences of bytes are from 0 to 255.
        let steps_below = |element: i32| usize::from((greatest - element).to_le_bytes()[0]);
        let power = |element: i32| self.powers[steps_below(element)];
        // Four sums, so that additions need not wait for each other.
        let mut sums = [0.0_f32; 4];
        for block in pace.blocks(length, 1) {
            for (index, element) in elements(block).enumerate() {
                sums[index % 4] += power(element);
            }
        }
        let factor = 256.0 / ((sums[0] + sums[1]) + (sums[2] + sums[3]));
        for block in pace.blocks(length, 1) {
            let outputs = output[block.start * inner..].iter_mut().step_by(inner);
            for (element, output) in elements(block).zip(outputs) {
                let steps = (power(element) * factor + 0.5) as i32;
                *output = T::nearest(steps + T::RANGE.0);
            }
        }
    }
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
