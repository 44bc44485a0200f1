//! Normalizations of float32.
#![allow(unsafe_code)]

use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::sharing::{Cut, ELEMENTS_OF_TASK, for_each_rows};
use crate::team::{Pace, Team};
use crate::vector::{Isa, Kernel, Simd};

/// What a row is divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Normalization {
    /// Layer normalization: `(x - mean) / sqrt(variance + epsilon)`.
    Layer {
        /// What is added to the variance.
        epsilon: f32,
    },
    /// L2_NORMALIZATION: `x / max(sqrt(sum of squares), least)`.
    L2 {
        /// The least divisor.
        least: f32,
    },
}

/// A prepared normalization of rows.
#[derive(Debug, Clone)]
pub struct RowNormalization {
    isa: Isa,
    normalization: Normalization,
    rows: usize,
    length: usize,
}

impl RowNormalization {
    /// Of a contiguous tensor `[rows, length]`.
    pub fn prepare(
        set: InstructionSet,
        normalization: Normalization,
        rows: usize,
        length: usize,
    ) -> Self {
        Self { isa: Isa::of(set), normalization, rows, length }
    }

    /// Normalizes rows; then multiplies with `scale` and adds `offset`, an element for each column,
    /// if they are given.
    ///
    /// # Panics
    /// If a slice has not the size that was prepared for.
    pub fn run(
        &self,
        team: &mut Team,
        input: &[f32],
        scale: Option<&[f32]>,
        offset: Option<&[f32]>,
        output: &mut [f32],
    ) {
        let length = self.length;
        assert_eq!(Some(input.len()), self.rows.checked_mul(length), "an input of another size");
        assert_eq!(output.len(), input.len(), "an output of another size");
        for factors in [scale, offset].into_iter().flatten() {
            assert_eq!(factors.len(), length, "not a factor for each column");
        }
        let cut = Cut { each: length, least: ELEMENTS_OF_TASK, multiple: 1 };
        for_each_rows(team, (output, length), cut, |part, output, pace| {
            let input = &input[part.start * length..part.end * length];
            let normalization = self.normalization;
            self.isa.run(Rows { normalization, length, input, scale, offset, output, pace });
        });
    }
}

struct Rows<'a> {
    normalization: Normalization,
    length: usize,
    input: &'a [f32],
    scale: Option<&'a [f32]>,
    offset: Option<&'a [f32]>,
    output: &'a mut [f32],
    pace: Pace<'a>,
}

/// Adds `x - center`, or its square, to a sum.
#[inline(always)]
fn add_deviation<S: Simd, const IS_SQUARED: bool>(
    simd: S,
    sum: S::F,
    x: S::F,
    center: S::F,
) -> S::F {
    let deviation = simd.sub(x, center);
    if IS_SQUARED { simd.fma(deviation, deviation, sum) } else { simd.add(sum, deviation) }
}

/// `sum(x - center)`, or `sum((x - center)^2)`.
#[inline(always)]
fn sum_of<S: Simd, const IS_SQUARED: bool>(
    simd: S,
    row: &[f32],
    center: f32,
    pace: &mut Pace<'_>,
) -> f32 {
    let of_all = simd.splat(center);
    let mut sums = [simd.splat(0.0); 4];
    for block in pace.blocks(row.len(), 1) {
        let mut groups = row[block].chunks_exact(4 * S::LANES);
        for group in groups.by_ref() {
            for (index, sum) in sums.iter_mut().enumerate() {
                let x = simd.load(&group[index * S::LANES..]);
                *sum = add_deviation::<S, IS_SQUARED>(simd, *sum, x, of_all);
            }
        }
        for rest in groups.remainder().chunks(S::LANES) {
            // Lanes without an element add nothing.
            let x = simd.load_partial(rest, center);
            sums[1] = add_deviation::<S, IS_SQUARED>(simd, sums[1], x, of_all);
        }
    }
    let [a, b, c, d] = sums;
    simd.sum(simd.add(simd.add(a, b), simd.add(c, d)))
}

impl Kernel for Rows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { normalization, length, input, scale, offset, output, mut pace } = self;
        let rows = input.chunks_exact(length).zip(output.chunks_exact_mut(length));
        for (input, output) in rows {
            #[allow(clippy::cast_precision_loss)] // The rounding does not matter.
            let count = length as f32;
            let (mean, factor) = match normalization {
                Normalization::Layer { epsilon } => {
                    let mean = sum_of::<S, false>(simd, input, 0.0, &mut pace) / count;
                    // The rounding of the mean is corrected where it would matter.
                    let mean = mean + sum_of::<S, false>(simd, input, mean, &mut pace) / count;
                    let variance = sum_of::<S, true>(simd, input, mean, &mut pace) / count;
                    (mean, 1.0 / (variance + epsilon).sqrt())
                }
                Normalization::L2 { least } => {
                    let squares = sum_of::<S, true>(simd, input, 0.0, &mut pace);
                    // Not `max`, which would lose a NaN.
                    let length = squares.sqrt();
                    (0.0, 1.0 / if length < least { least } else { length })
                }
            };
            let (mean, factor) = (simd.splat(mean), simd.splat(factor));
            let whole = output.len() - output.len() % S::LANES;
            for block in pace.blocks(whole, 1) {
                for first in block.step_by(S::LANES) {
                    let x = simd.load(&input[first..]);
                    let mut value = simd.mul(simd.sub(x, mean), factor);
                    if let Some(scale) = scale {
                        value = simd.mul(value, simd.load(&scale[first..]));
                    }
                    if let Some(offset) = offset {
                        value = simd.add(value, simd.load(&offset[first..]));
                    }
                    simd.store(value, &mut output[first..]);
                }
            }
            let x = simd.load_partial(&input[whole..], 0.0);
            let mut value = simd.mul(simd.sub(x, mean), factor);
            if let Some(scale) = scale {
                value = simd.mul(value, simd.load_partial(&scale[whole..], 0.0));
            }
            if let Some(offset) = offset {
                value = simd.add(value, simd.load_partial(&offset[whole..], 0.0));
            }
            simd.store_partial(value, &mut output[whole..]);
        }
    }
}

/// INSTANCE_NORMALIZATION of `[batch, pixels, channels]`: every channel of every image is brought to
/// mean 0 and variance 1, times `gamma`, plus `beta`. In double precision, one image a task.
///
/// # Panics
/// If the slices are not of these sizes.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Counts; one rounding.
pub fn instance_normalization(
    team: &mut Team,
    [batch, pixels, channels]: [usize; 3],
    [gamma, beta, epsilon]: [f32; 3],
    input: &[f32],
    output: &mut [f32],
) {
    let image = pixels.checked_mul(channels).expect("an image larger than memory");
    assert_eq!(Some(input.len()), image.checked_mul(batch), "an input of another size");
    assert_eq!(output.len(), input.len(), "an output of another size");
    if output.is_empty() {
        return;
    }
    let output = DisjointOutput::new(output);
    // Channels of a cache line go together.
    const GROUP: usize = 16;
    let groups = channels.div_ceil(GROUP);
    team.run_long(batch * groups, &|task, stop| {
        let mut pace = Pace::new(stop);
        let (start, first) = (task / groups * image, task % groups * GROUP);
        let count = (channels - first).min(GROUP);
        // In double precision an element takes as long as some multiplications do.
        let each = 4 * count;
        let place = |pixel: usize| start + pixel * channels + first;
        let (mut means, mut variances) = ([0.0_f64; GROUP], [0.0_f64; GROUP]);
        for block in pace.blocks(pixels, each) {
            for at in block.map(place) {
                for (mean, x) in means.iter_mut().zip(&input[at..at + count]) {
                    *mean += f64::from(*x) / pixels as f64;
                }
            }
        }
        for block in pace.blocks(pixels, each) {
            for at in block.map(place) {
                let elements = input[at..at + count].iter().zip(&means);
                for (variance, (x, mean)) in variances.iter_mut().zip(elements) {
                    *variance += (f64::from(*x) - mean).powi(2) / pixels as f64;
                }
            }
        }
        let factors =
            variances.map(|variance| f64::from(gamma) / (variance + f64::from(epsilon)).sqrt());
        for block in pace.blocks(pixels, each) {
            for at in block.map(place) {
                // SAFETY: these pixels' channels are this task's alone.
                let output = unsafe { output.slice(at, count) };
                let statistics = means.iter().zip(&factors);
                for ((output, x), (mean, factor)) in
                    output.iter_mut().zip(&input[at..at + count]).zip(statistics)
                {
                    *output = ((f64::from(*x) - mean) * factor + f64::from(beta)) as f32;
                }
            }
        }
    });
}

/// Multiplications that take about as long as a power in double precision.
const OF_POWER: usize = 64;

/// Elements of a row that are computed side by side.
const SIDE_BY_SIDE: usize = 128;

/// LOCAL_RESPONSE_NORMALIZATION of rows along their elements: `x / (bias + alpha * s)^beta`, where s
/// is the sum of the squares of the elements up to `radius` away. In double precision.
///
/// # Panics
/// If there are not as many outputs as inputs, or the rows' length does not divide them.
pub fn local_response_normalization(
    team: &mut Team,
    length: usize,
    radius: usize,
    [bias, alpha, beta]: [f32; 3],
    input: &[f32],
    output: &mut [f32],
) {
    assert_eq!(output.len(), input.len(), "an output of another size");
    if output.is_empty() {
        return;
    }
    assert!(length > 0 && input.len().is_multiple_of(length), "no rows of {length}");
    let cut = Cut { each: length, least: 512, multiple: 1 };
    for_each_rows(team, (output, length), cut, |part, output, mut pace| {
        let input = input[part.start * length..].chunks_exact(length);
        for (row, output) in input.zip(output.chunks_exact_mut(length)) {
            for (index, output) in output.chunks_mut(SIDE_BY_SIDE).enumerate() {
                let first = index * SIDE_BY_SIDE;
                let mut squares = [0.0; SIDE_BY_SIDE];
                let squares = &mut squares[..output.len()];
                sums_of_squares(row, first, radius, squares, &mut pace);
                if pace.is_over(OF_POWER * output.len()) {
                    return;
                }
                for square in squares.iter_mut() {
                    *square = f64::from(bias) + f64::from(alpha) * *square;
                }
                powers(squares, beta);
                for ((output, x), divisor) in output.iter_mut().zip(&row[first..]).zip(squares) {
                    #[allow(clippy::cast_possible_truncation)] // One rounding.
                    {
                        *output = (f64::from(*x) / *divisor) as f32;
                    }
                }
            }
        }
    });
}

/// The sums of the squares of the elements of a row up to `radius` away from those from `first` on.
fn sums_of_squares(
    row: &[f32],
    first: usize,
    radius: usize,
    sums: &mut [f64],
    pace: &mut Pace<'_>,
) {
    // No element is farther away.
    let radius = radius.min(row.len());
    // By how far what is added is from the first element that can be: that of each sum is one further than that of the sum before.
    let steps = 2 * radius + 1;
    // What is more than that away from all of them is not in the row.
    let before = radius.min(first + sums.len() - 1);
    for step in radius - before..steps {
        if pace.is_over(sums.len()) {
            return;
        }
        // Sum `i` takes element `first + i + step - radius`, if there is one.
        let skipped = radius.saturating_sub(first + step).min(sums.len());
        let from = (first + skipped + step).saturating_sub(radius).min(row.len());
        for (sum, x) in sums[skipped..].iter_mut().zip(&row[from..]) {
            let x = f64::from(*x);
            *sum += x * x;
        }
    }
}

/// Numbers to a power, of which the usual ones are roots.
fn powers(numbers: &mut [f64], exponent: f32) {
    match exponent {
        0.5 => numbers.iter_mut().for_each(|x| *x = x.sqrt()),
        0.75 => numbers.iter_mut().for_each(|x| {
            let root = x.sqrt();
            *x = root * root.sqrt();
        }),
        1.0 => {}
        _ => numbers.iter_mut().for_each(|x| *x = x.powf(exponent.into())),
    }
}
