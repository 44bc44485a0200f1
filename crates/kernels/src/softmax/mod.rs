//! SOFTMAX and LOG_SOFTMAX along an axis.

mod quantized;
#[cfg(test)]
mod tests;

use crate::InstructionSet;
use crate::broadcast::offset_along;
use crate::movement::transpose;
use crate::prepared::{Operands, PreparedKernel, WrongValue};
use crate::sharing::{Cut, for_each_rows};
use crate::short_rows::{MOST, ROWS, is_short};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, MOST_LANES, Simd, functions};
pub use quantized::QuantizedSoftmax;

/// Elements from which on a second thread is worth waking; an exponential takes about half a nanosecond.
const ELEMENTS_OF_TASK: usize = 4096;

/// Prepared SOFTMAX or LOG_SOFTMAX of float32.
#[derive(Debug, Clone)]
pub struct Softmax {
    isa: Isa,
    /// Slices, elements of a slice, elements from one of these to the next.
    sizes: [usize; 3],
    beta: f32,
    is_logarithm: bool,
    adjustment: Option<Adjustment>,
}

/// What becomes of the elements before, as in an attention: `x * factor + mask`.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjustment {
    /// What every element is multiplied with.
    pub factor: f32,
    /// Where the rows of the mask are, which is as long as a slice, for each of them: lengths of the
    /// axes before the last one, and by how many elements of the mask each goes on. `None` if there
    /// is no mask.
    pub mask: Option<Vec<(usize, usize)>>,
}

impl Adjustment {
    /// Where the mask of a row begins.
    pub(crate) fn start_of(axes: &[(usize, usize)], row: usize) -> usize {
        offset_along(axes.iter().copied(), row)
    }
}

impl Softmax {
    /// Of a tensor `[outer, length, inner]` along its second axis:
    /// `exp(beta * (x - max)) / sum(exp(beta * (x - max)))`, or the logarithm of that.
    pub fn prepare(set: InstructionSet, sizes: [usize; 3], beta: f32, is_logarithm: bool) -> Self {
        Self { isa: Isa::of(set), sizes, beta, is_logarithm, adjustment: None }
    }

    /// The same of elements that are adjusted first.
    ///
    /// # Panics
    /// If slices are not along the last axis, or the axes before it have not as many elements as
    /// there are slices.
    #[must_use]
    pub fn adjusted(self, adjustment: Adjustment) -> Self {
        let [outer, _, inner] = self.sizes;
        assert_eq!(inner, 1, "not along the last axis");
        if let Some(axes) = &adjustment.mask {
            let rows = axes.iter().try_fold(1, |rows: usize, axis| rows.checked_mul(axis.0));
            assert_eq!(rows, Some(outer), "other rows");
        }
        Self { adjustment: Some(adjustment), ..self }
    }

    /// Computes the output. The mask is not looked at, if none was prepared for.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(&self, team: &mut Team, input: &[f32], mask: &[f32], output: &mut [f32]) {
        let [outer, length, inner] = self.sizes;
        let image = length.saturating_mul(inner);
        assert_eq!(input.len(), outer.saturating_mul(image), "an input of another size");
        assert_eq!(output.len(), input.len(), "an output of another size");
        let cut = Cut { each: image, least: ELEMENTS_OF_TASK, multiple: 1 };
        for_each_rows(team, (output, image), cut, |part, output, pace| {
            let input = &input[part.start * image..part.end * image];
            self.isa.run(Slices { softmax: self, first: part.start, input, mask, output, pace });
        });
    }
}

impl PreparedKernel for Softmax {
    fn name(&self) -> String {
        let function = if self.is_logarithm { "log softmax" } else { "softmax" };
        format!("{function} f32")
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        self.run(team, inputs.of(0), inputs.of(1), bytemuck::cast_slice_mut(output));
        Ok(())
    }
}

/// Some slices, `[slices, length, inner]`, from the one of number `first` on.
struct Slices<'a> {
    softmax: &'a Softmax,
    first: usize,
    input: &'a [f32],
    mask: &'a [f32],
    output: &'a mut [f32],
    pace: Pace<'a>,
}

impl Kernel for Slices<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { softmax, first, input, mask, output, mut pace } = self;
        let [_, length, inner] = softmax.sizes;
        let image = length * inner;
        let mut done = 0;
        if inner == 1 && is_short(simd, length) && softmax.adjustment.is_none() {
            let whole = input.len() - input.len() % (ROWS * length);
            let groups = input[..whole].chunks_exact(ROWS * length);
            let mut columns = [[0.0; ROWS * MOST]; 2];
            let [inputs, outputs] = columns.each_mut().map(|it| &mut it[..ROWS * length]);
            for (input, output) in groups.zip(output[..whole].chunks_exact_mut(ROWS * length)) {
                transpose(input, [ROWS, length], inputs);
                let slice = Slice { softmax, input: inputs, output: outputs };
                slice.across_rows(simd, ROWS, &mut pace);
                transpose(outputs, [length, ROWS], output);
            }
            done = whole / length;
        }
        let slices = input[done * image..]
            .chunks_exact(image)
            .zip(output[done * image..].chunks_exact_mut(image));
        for (index, (input, output)) in (first + done..).zip(slices) {
            let slice = Slice { softmax, input, output };
            if S::LANES.is_multiple_of(inner) {
                slice.along_row(simd, index, mask, &mut pace);
            } else {
                slice.across_rows(simd, inner, &mut pace);
            }
        }
    }
}

/// `[length, inner]` elements.
struct Slice<'a> {
    softmax: &'a Softmax,
    input: &'a [f32],
    output: &'a mut [f32],
}

/// Writes `$value` for each vector `$x` of the input and `$y` of another slice to the output, but for a last one that is not
/// whole, and gives the greatest one of each lane, and that last one, which is minus infinity beyond the input.
macro_rules! greatest_of {
    ($simd:ident, $pace:ident, $input:ident, $other:expr, $output:ident,
     |$x:ident, $y:ident| $value:expr) => {{
        let least = $simd.splat(f32::NEG_INFINITY);
        let (mut greatest, mut last) = (least, least);
        let other: &[f32] = $other;
        for block in $pace.blocks($input.len(), 1) {
            let mut inputs = $input[block.clone()].chunks_exact(S::LANES);
            let mut others = other[block.clone()].chunks_exact(S::LANES);
            let mut outputs = $output[block].chunks_exact_mut(S::LANES);
            let pairs = inputs.by_ref().zip(others.by_ref());
            for ((input, other), output) in pairs.zip(outputs.by_ref()) {
                let ($x, $y) = ($simd.load(input), $simd.load(other));
                let value = $value;
                $simd.store(value, output);
                greatest = $simd.max(value, greatest);
            }
            let rest = inputs.remainder();
            if !rest.is_empty() {
                let $x = $simd.load_partial(rest, f32::NEG_INFINITY);
                let $y = $simd.load_partial(others.remainder(), 0.0);
                last = $simd.select(first_lanes($simd, rest.len()), $value, least);
                greatest = $simd.max(last, greatest);
            }
        }
        (greatest, last)
    }};
}

/// The first lanes of a vector, this many.
#[inline(always)]
fn first_lanes<S: Simd>(simd: S, count: usize) -> S::M {
    const ONES_AND_ZEROS: [f32; 2 * MOST_LANES] = {
        let mut values = [0.0; 2 * MOST_LANES];
        let mut lane = 0;
        while lane < MOST_LANES {
            values[lane] = 1.0;
            lane += 1;
        }
        values
    };
    simd.lt(simd.splat(0.0), simd.load(&ONES_AND_ZEROS[MOST_LANES - count..]))
}

/// In each lane what is combined of all lanes that are multiples of `inner` before or behind it: those of the same place in a row.
#[inline(always)]
fn folded<S: Simd>(simd: S, lanes: S::F, inner: usize, combine: impl Fn(f32, f32) -> f32) -> S::F {
    let mut values = [0.0; 16];
    simd.store(lanes, &mut values);
    for lane in inner..S::LANES {
        values[lane % inner] = combine(values[lane % inner], values[lane]);
    }
    for lane in inner..S::LANES {
        values[lane] = values[lane % inner];
    }
    simd.load(&values)
}

/// The exponent `beta * (x * factor - greatest)` and its power. The numbers are the factor, the greatest one of all
/// `x * factor`, and beta.
#[inline(always)]
fn power<S: Simd>(simd: S, x: S::F, [factor, greatest, beta]: [S::F; 3]) -> [S::F; 2] {
    let below = simd.mul(simd.sub(simd.mul(x, factor), greatest), beta);
    [below, functions::exp_of_negative(simd, below)]
}

/// Puts the [`power`] of each value in its place, or the exponent if that is to be kept, and gives the sums of the powers by lane.
#[inline(always)]
pub(crate) fn powers<S: Simd>(
    simd: S,
    values: &mut [f32],
    numbers: [S::F; 3],
    keeps_exponents: bool,
    pace: &mut Pace<'_>,
) -> S::F {
    // Of two vectors in turn: constants fill the registers of some instruction sets, and a sum in memory takes long to come back.
    let mut sums = [simd.splat(0.0); 2];
    let whole = values.len() - values.len() % S::LANES;
    let (values, last) = values.split_at_mut(whole);
    for block in pace.blocks(whole, 1) {
        let mut pairs = values[block].chunks_exact_mut(2 * S::LANES);
        for pair in &mut pairs {
            let (first, second) = pair.split_at_mut(S::LANES);
            let one = power(simd, simd.load(first), numbers);
            let other = power(simd, simd.load(second), numbers);
            sums = [simd.add(sums[0], one[1]), simd.add(sums[1], other[1])];
            let kept = usize::from(!keeps_exponents);
            simd.store(one[kept], first);
            simd.store(other[kept], second);
        }
        for value in pairs.into_remainder().chunks_exact_mut(S::LANES) {
            let [below, power] = power(simd, simd.load(value), numbers);
            sums[0] = simd.add(sums[0], power);
            simd.store(if keeps_exponents { below } else { power }, value);
        }
    }
    let mut sum = simd.add(sums[0], sums[1]);
    if let Some(first) = last.first() {
        let [below, power] = power(simd, simd.load_partial(last, *first), numbers);
        let there = first_lanes(simd, last.len());
        sum = simd.add(sum, simd.select(there, power, simd.splat(0.0)));
        simd.store_partial(if keeps_exponents { below } else { power }, last);
    }
    sum
}

impl Slice<'_> {
    /// The row of this number; or rows of a few elements, each of which is the same element of each vector.
    #[inline(always)]
    fn along_row<S: Simd>(self, simd: S, row: usize, mask: &[f32], pace: &mut Pace<'_>) {
        let Self { softmax, input, output } = self;
        let (greatest, mut last) = match &softmax.adjustment {
            None => greatest_of!(simd, pace, input, input, output, |x, _y| x),
            Some(Adjustment { factor, mask: None }) => {
                let factor = simd.splat(*factor);
                greatest_of!(simd, pace, input, input, output, |x, _y| simd.mul(x, factor))
            }
            Some(Adjustment { factor, mask: Some(axes) }) => {
                let factor = simd.splat(*factor);
                let mask = &mask[Adjustment::start_of(axes, row)..][..input.len()];
                greatest_of!(simd, pace, input, mask, output, |x, y| simd
                    .add(simd.mul(x, factor), y))
            }
        };
        let inner = softmax.sizes[2];
        let greatest = match inner {
            1 => simd.splat(simd.greatest(greatest)),
            _ => folded(simd, greatest, inner, |a, b| if b > a { b } else { a }),
        };
        let numbers = [simd.splat(1.0), greatest, simd.splat(softmax.beta)];
        let (outputs, rest) = output.split_at_mut(output.len() - output.len() % S::LANES);
        let mut sums = powers(simd, outputs, numbers, softmax.is_logarithm, pace);
        // The last ones stay in a register: what was stored a moment ago as a part of a vector is slow to load.
        if !rest.is_empty() {
            let [below, power] = power(simd, last, numbers);
            let there = first_lanes(simd, rest.len());
            sums = simd.add(sums, simd.select(there, power, simd.splat(0.0)));
            last = if softmax.is_logarithm { below } else { power };
        }
        let sums = match inner {
            1 => simd.splat(simd.sum(sums)),
            _ => folded(simd, sums, inner, |a, b| a + b),
        };
        let (factor, offset) = softmax.last_step(simd, sums);
        for block in pace.blocks(outputs.len(), 1) {
            for output in outputs[block].chunks_exact_mut(S::LANES) {
                simd.store(simd.fma(simd.load(output), factor, offset), output);
            }
        }
        if !rest.is_empty() {
            simd.store_partial(simd.fma(last, factor, offset), rest);
        }
    }

    #[inline(always)]
    fn across_rows<S: Simd>(self, simd: S, inner: usize, pace: &mut Pace<'_>) {
        let Self { softmax, input, output } = self;
        let length = softmax.sizes[1];
        let beta = simd.splat(softmax.beta);
        for first in (0..inner).step_by(S::LANES) {
            if pace.is_over(1) {
                return;
            }
            let count = (inner - first).min(S::LANES);
            let place = |row: usize| row * inner + first..row * inner + first + count;
            let mut greatest = simd.splat(f32::NEG_INFINITY);
            for block in pace.blocks(length, S::LANES) {
                for row in block {
                    greatest = simd.max(simd.load_partial(&input[place(row)], 0.0), greatest);
                }
            }
            let mut sum = simd.splat(0.0);
            for block in pace.blocks(length, S::LANES) {
                for row in block {
                    let x = simd.load_partial(&input[place(row)], 0.0);
                    let below = simd.mul(simd.sub(x, greatest), beta);
                    let power = functions::exp_of_negative(simd, below);
                    sum = simd.add(sum, power);
                    let kept = if softmax.is_logarithm { below } else { power };
                    simd.store_partial(kept, &mut output[place(row)]);
                }
            }
            let (factor, offset) = softmax.last_step(simd, sum);
            for block in pace.blocks(length, S::LANES) {
                for row in block {
                    let output = &mut output[place(row)];
                    let value = simd.fma(simd.load_partial(output, 0.0), factor, offset);
                    simd.store_partial(value, output);
                }
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
