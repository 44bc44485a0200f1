//! [`RealFourier`]: the discrete Fourier transforms of rows of real numbers; [`Magnitudes`] of what they give.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::elementwise::map;
use crate::prepared::{OneInput, Operands, PreparedKernel, WrongValue};
use crate::sharing::{even_tasks, for_each_task};
use crate::team::{Pace, Team, part};
use crate::vector::{Isa, Kernel, Simd};
use std::f64::consts::PI;
use std::ops::Range;

/// Rows that are transformed together: each is a lane of all vectors.
const ROWS: usize = 8;

/// Multiplications and additions that are worth a task.
const WORTH: usize = 200_000;

/// A number of each of the rows.
type Lanes = [f64; ROWS];

/// Prepared RFFT2D of images of one row. Input: rows of floats. Output: of each row `length / 2 + 1` complex numbers of
/// 32 bits, `output[v] = sum input[x] exp(-2 pi i v x / length)`, of which the half is computed that the other follows from.
/// Computed in double precision and rounded once.
#[derive(Debug, Clone)]
pub struct RealFourier {
    set: InstructionSet,
    rows: Rows,
    length: usize,
    tasks: usize,
    /// `exp(-2 pi i k / length)` for the first half of the circle.
    turns: Vec<[f64; 2]>,
}

/// Where rows are in the input.
#[derive(Debug, Clone, Copy)]
pub struct Rows {
    /// How many there are.
    pub count: usize,
    /// Elements from the beginning of one to that of the next.
    pub distance: usize,
    /// Elements of each that are transformed; those that are missing to the length are 0.
    pub elements: usize,
}

impl RealFourier {
    /// The greatest length of a transform: more is not read from near caches, which is what makes it fast.
    pub const MOST: usize = 1 << 15;

    /// Of a length that is a power of two from 2 to [`Self::MOST`]; rows have no more elements.
    ///
    /// # Panics
    /// If it is another one, or rows have more elements than that, or than there are to the next.
    pub fn prepare(set: InstructionSet, rows: Rows, length: usize, threads: usize) -> Self {
        assert!(length.is_power_of_two() && (2..=Self::MOST).contains(&length), "length {length}");
        assert!(rows.elements <= length.min(rows.distance), "rows that overlap, or are too long");
        // Lengths are small.
        #[allow(clippy::cast_precision_loss)]
        let turn = |k: usize| {
            let (sin, cos) = (-2.0 * PI * k as f64 / length as f64).sin_cos();
            [cos, sin]
        };
        let groups = rows.count.div_ceil(ROWS);
        let worth = rows.count.saturating_mul(work_of_a_row(length)) / WORTH;
        let tasks = even_tasks(worth, threads, 1).clamp(1, groups.max(1));
        Self { set, rows, length, tasks, turns: (0..length / 2).map(turn).collect() }
    }

    /// Complex numbers of a row that are transformed: pairs of real ones.
    fn pairs(&self) -> usize {
        self.length / 2
    }
}

/// Prepared COMPLEX_ABS: of complex numbers of 32 bits the magnitudes. Computed in double precision and rounded once.
#[derive(Debug, Clone, Copy)]
pub struct Magnitudes {
    /// With which instructions.
    pub set: InstructionSet,
}

impl OneInput for Magnitudes {
    type Input = [f32; 2];
    type Output = f32;

    fn name(&self) -> String {
        "complex magnitude f32".to_owned()
    }

    fn run(&self, team: &mut Team, input: &[[f32; 2]], output: &mut [f32]) {
        map(self.set, team, input, output, magnitude);
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // Rounded to the nearest.
fn magnitude([re, im]: [f32; 2]) -> f32 {
    let magnitude = (f64::from(re) * f64::from(re) + f64::from(im) * f64::from(im)).sqrt();
    // Also beside what is not a number.
    let is_infinite = re.is_infinite() || im.is_infinite();
    if is_infinite { f32::INFINITY } else { magnitude as f32 }
}

/// Multiplications and additions of a row, about.
fn work_of_a_row(length: usize) -> usize {
    let halvings = length.trailing_zeros() as usize;
    5 * length * halvings.max(1) / 2 + 8 * length
}

impl PreparedKernel for RealFourier {
    fn name(&self) -> String {
        "real fourier transform f32".to_owned()
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], scratch) = operands.split();
        let input: &[f32] = inputs.of(0);
        let row = 2 * (self.pairs() + 1);
        let output: &mut [f32] = bytemuck::cast_slice_mut(output);
        assert_eq!(output.len(), self.rows.count * row, "an output of another size");
        let groups = self.rows.count.div_ceil(ROWS);
        let output = DisjointOutput::new(output);
        let each = 2 * self.pairs();
        let scratch: &mut [Lanes] = bytemuck::cast_slice_mut(scratch);
        for_each_task(team, self.tasks, (scratch, each), |task, scratch, stop| {
            let mut pace = Pace::new(stop);
            for group in part(groups, self.tasks, task) {
                if pace.is_over(ROWS * work_of_a_row(self.length)) {
                    return;
                }
                let rows = group * ROWS..self.rows.count.min((group + 1) * ROWS);
                // SAFETY: every row has its own elements, and every group its own rows.
                let output = unsafe { output.slice(rows.start * row, rows.len() * row) };
                Isa::of(self.set).run(Group { fourier: self, rows, input, output, scratch });
            }
        });
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.tasks * 2 * self.pairs() * size_of::<Lanes>()
    }

    fn arithmetic(&self) -> u64 {
        (self.rows.count as u64).saturating_mul(work_of_a_row(self.length) as u64)
    }
}

/// Some rows, transformed together: the elements of even and of odd number are the real and imaginary parts of complex
/// numbers, whose transform is that of the row with one more step (decimation in time, Cooley and Tukey).
struct Group<'run> {
    fourier: &'run RealFourier,
    rows: Range<usize>,
    input: &'run [f32],
    output: &'run mut [f32],
    scratch: &'run mut [Lanes],
}

impl Kernel for Group<'_> {
    type Output = ();

    // Of numbers of 64 bits, of which the compiler makes vectors of the instruction set.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { fourier, rows, input, output, scratch } = self;
        let pairs = fourier.pairs();
        let (re, im) = scratch[..2 * pairs].split_at_mut(pairs);
        fourier.read(rows, input, re, im);
        let mut size = 1;
        while size < pairs {
            // In a circle of the whole length, of which the pairs take each second step.
            let step = fourier.length / (2 * size);
            for first in (0..pairs).step_by(2 * size) {
                let (re_lower, re_upper) = re[first..first + 2 * size].split_at_mut(size);
                let (im_lower, im_upper) = im[first..first + 2 * size].split_at_mut(size);
                for at in 0..size {
                    let turn = fourier.turns[at * step];
                    let (a, b) = (re_lower[at], im_lower[at]);
                    let (c, d) = (re_upper[at], im_upper[at]);
                    for lane in 0..ROWS {
                        let turned_re = c[lane] * turn[0] - d[lane] * turn[1];
                        let turned_im = c[lane] * turn[1] + d[lane] * turn[0];
                        re_lower[at][lane] = a[lane] + turned_re;
                        im_lower[at][lane] = b[lane] + turned_im;
                        re_upper[at][lane] = a[lane] - turned_re;
                        im_upper[at][lane] = b[lane] - turned_im;
                    }
                }
            }
            size *= 2;
        }
        fourier.write(re, im, output);
    }
}

impl RealFourier {
    /// The pairs of some rows, in the order in which they are combined: that of their numbers with the bits reversed.
    #[inline(always)]
    fn read(&self, rows: Range<usize>, input: &[f32], re: &mut [Lanes], im: &mut [Lanes]) {
        let pairs = re.len();
        let bits = pairs.trailing_zeros();
        let Rows { distance, elements, .. } = self.rows;
        let mut sources = [&[][..]; ROWS];
        for (source, row) in sources.iter_mut().zip(rows) {
            *source = &input[row * distance..row * distance + elements];
        }
        for pair in 0..pairs {
            let place = pair.reverse_bits().checked_shr(usize::BITS - bits).unwrap_or(0);
            for lane in 0..ROWS {
                let element = |at: usize| sources[lane].get(at).map_or(0.0, |it| f64::from(*it));
                re[place][lane] = element(2 * pair);
                im[place][lane] = element(2 * pair + 1);
            }
        }
    }

    /// The last step, and rounding.
    #[inline(always)]
    fn write(&self, re: &[Lanes], im: &[Lanes], output: &mut [f32]) {
        let pairs = re.len();
        let row = 2 * (pairs + 1);
        for at in 0..=pairs {
            let (one, other) = (at % pairs, (pairs - at) % pairs);
            // Half of a circle is turned at the end.
            let turn = if at == pairs { [-1.0, 0.0] } else { self.turns[at] };
            let (a, b, c, d) = (re[one], im[one], re[other], im[other]);
            let (mut re, mut im) = ([0.0; ROWS], [0.0; ROWS]);
            for lane in 0..ROWS {
                // Of even and of odd numbers.
                let even = [(a[lane] + c[lane]) * 0.5, (b[lane] - d[lane]) * 0.5];
                let odd = [(b[lane] + d[lane]) * 0.5, (c[lane] - a[lane]) * 0.5];
                re[lane] = even[0] + odd[0] * turn[0] - odd[1] * turn[1];
                im[lane] = even[1] + odd[0] * turn[1] + odd[1] * turn[0];
            }
            for (output, (re, im)) in output.chunks_exact_mut(row).zip(re.iter().zip(&im)) {
                // Rounded to the nearest.
                #[allow(clippy::cast_possible_truncation)]
                let rounded = [*re as f32, *im as f32];
                output[2 * at..2 * at + 2].copy_from_slice(&rounded);
            }
        }
    }
}
