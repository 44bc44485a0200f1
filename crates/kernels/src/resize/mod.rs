//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: images of another size.
//!
//! Where an output pixel lies in the input is the caller's to say, as a [`Place`] for each row and
//! each column; the nearest neighbour is a place whose weight is 0.
#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use crate::InstructionSet;
use crate::disjoint::DisjointOutput;
use crate::image::{Image, ImageMut, values_needed};
use crate::parts::for_each_part;
use crate::team::Team;
use crate::vector::{Byte, Isa, Kernel, Simd, load_bytes_partial, store_bytes_partial};

/// Output elements that are worth a second thread's while.
const ELEMENTS_OF_TASK: usize = 8192;

/// Bits of weights that are exact in the integer arithmetic of 8-bit images.
const WEIGHT_BITS: u32 = 11;

/// Where an index of the output lies on an axis of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// The index before, or there.
    pub lower: usize,
    /// The index behind, or there.
    pub upper: usize,
    /// How much the upper one counts, 0 to 1; the lower one counts the rest. If it is 0, the upper
    /// one is not looked at.
    pub weight: f32,
}

/// Prepared resizing of images with any number of channels.
#[derive(Debug, Clone)]
pub struct Resize {
    isa: Isa,
    batch: usize,
    input: [usize; 2],
    channels: usize,
    places: [Vec<Place>; 2],
    /// Whether all weights are multiples of 2 to the power of -[`WEIGHT_BITS`].
    is_dyadic: bool,
}

impl Resize {
    /// Of images `[batch, input[0], input[1], channels]`, with a place for every row and every column
    /// of the output.
    ///
    /// # Panics
    /// If a place lies outside of the input, or a weight is not from 0 to 1.
    pub fn prepare(
        set: InstructionSet,
        batch: usize,
        input: [usize; 2],
        channels: usize,
        places: [Vec<Place>; 2],
    ) -> Self {
        for (places, length) in places.iter().zip(input) {
            for place in places {
                let is_inside = place.lower < length && place.upper < length;
                assert!(is_inside, "{place:?} outside of {length}");
                assert!((0.0..=1.0).contains(&place.weight), "no weight: {place:?}");
            }
        }
        let steps = f32::from(1_u16 << WEIGHT_BITS);
        let is_dyadic = places.iter().flatten().all(|place| (place.weight * steps).fract() == 0.0);
        Self { isa: Isa::of(set), batch, input, channels, places, is_dyadic }
    }

    /// Computes the output of float32 images.
    ///
    /// # Panics
    /// If an image is smaller than what was prepared for.
    pub fn run_f32(&self, team: &mut Team, input: Image<'_, f32>, output: ImageMut<'_, f32>) {
        self.run(team, input, output, |row| self.isa.run(FloatRow(row)));
    }

    /// Computes the output of 8-bit images: the nearest stored values, halves up.
    ///
    /// # Panics
    /// If an image is smaller than what was prepared for.
    pub fn run_8bit<T: Byte>(&self, team: &mut Team, input: Image<'_, T>, output: ImageMut<'_, T>) {
        self.run(team, input, output, |row| self.isa.run(ByteRow(row)));
    }

    fn run<T: Send + Sync>(
        &self,
        team: &mut Team,
        input: Image<'_, T>,
        output: ImageMut<'_, T>,
        work: impl Fn(Row<'_, T>) + Sync,
    ) {
        let [rows, columns] = [0, 1].map(|axis: usize| self.places[axis].len());
        let product = |lengths: [usize; 3]| {
            let product = lengths.into_iter().try_fold(1, usize::checked_mul);
            product.expect("images beyond memory")
        };
        let pixels = product([self.batch, self.input[0], self.input[1]]);
        let needed = values_needed(pixels, self.channels, input.pixel_stride);
        assert!(input.values.len() >= needed, "an input smaller than prepared for");
        let pixels = product([self.batch, rows, columns]);
        let needed = values_needed(pixels, self.channels, output.pixel_stride);
        assert!(output.values.len() >= needed, "an output smaller than prepared for");
        let (input, input_stride) = (input.values, input.pixel_stride);
        let stride = output.pixel_stride;
        let values = DisjointOutput::new(output.values);
        let size = columns * self.channels;
        if size == 0 {
            return;
        }
        for_each_part(team, self.batch * rows, (ELEMENTS_OF_TASK.div_ceil(size), 1), |part| {
            for row in part {
                let (image, y) = (row / rows, row % rows);
                let first = row * columns;
                let input = Image { values: input, pixel_stride: input_stride };
                work(Row { resize: self, input, image, y, output: &values, first, stride });
            }
        });
    }
}

/// A row of the output.
struct Row<'a, T> {
    resize: &'a Resize,
    input: Image<'a, T>,
    image: usize,
    y: usize,
    /// Of which this row's pixels are nobody else's.
    output: &'a DisjointOutput<'a, T>,
    /// Number of the first output pixel.
    first: usize,
    stride: usize,
}

/// What becomes an output pixel.
struct Pixel<'a, T> {
    /// The pixels around: upper left, upper right, lower left, lower right.
    corners: [&'a [T]; 4],
    /// How much the lower ones and the right ones count.
    weights: [f32; 2],
    output: &'a mut [T],
}

impl<T> Row<'_, T> {
    /// The output pixel of that number and what it is made of.
    ///
    /// # Safety
    /// It is held by nobody else.
    #[inline(always)]
    unsafe fn pixel(&self, x: usize) -> Pixel<'_, T> {
        let Resize { input: [height, width], channels, places, .. } = self.resize;
        let (vertical, horizontal) = (places[0][self.y], places[1][x]);
        let rows = [vertical.lower, vertical.upper].map(|y| (self.image * height + y) * width);
        let corner = |row: usize, column: usize| {
            let start = (row + column) * self.input.pixel_stride;
            &self.input.values[start..start + channels]
        };
        let corners = [
            corner(rows[0], horizontal.lower),
            corner(rows[0], horizontal.upper),
            corner(rows[1], horizontal.lower),
            corner(rows[1], horizontal.upper),
        ];
        // SAFETY: this row's pixels are nobody else's, nor is this one, as the caller promises.
        let output = unsafe { self.output.slice((self.first + x) * self.stride, *channels) };
        Pixel { corners, weights: [vertical.weight, horizontal.weight], output }
    }

    /// How many output pixels there are.
    fn pixels(&self) -> usize {
        self.resize.places[1].len()
    }
}

struct FloatRow<'a>(Row<'a, f32>);

impl Kernel for FloatRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for x in 0..self.0.pixels() {
            // SAFETY: one at a time.
            let Pixel { corners: [a, b, c, d], weights, output } = unsafe { self.0.pixel(x) };
            let [vertical, horizontal] = weights;
            // A weight of 0 must not let an infinity on the other side through.
            if vertical == 0.0 && horizontal == 0.0 {
                output.copy_from_slice(a);
            } else if vertical == 0.0 {
                mix_two(simd, [a, b], horizontal, output);
            } else if horizontal == 0.0 {
                mix_two(simd, [a, c], vertical, output);
            } else {
                let weights = [simd.splat(vertical), simd.splat(horizontal)];
                let rests = [simd.splat(1.0 - vertical), simd.splat(1.0 - horizontal)];
                let length = output.len();
                let whole = length - length % S::LANES;
                if whole > 0 && whole < length {
                    // The last vector overlaps the one before: cheaper than a part of one.
                    let first = length - S::LANES;
                    let upper = [simd.load(&a[first..]), simd.load(&b[first..])];
                    let lower = [simd.load(&c[first..]), simd.load(&d[first..])];
                    simd.store(mix_four(simd, upper, lower, weights, rests), &mut output[first..]);
                }
                let (outputs, last) = output.split_at_mut(whole);
                for (index, output) in outputs.chunks_exact_mut(S::LANES).enumerate() {
                    let first = index * S::LANES;
                    let upper = [simd.load(&a[first..]), simd.load(&b[first..])];
                    let lower = [simd.load(&c[first..]), simd.load(&d[first..])];
                    simd.store(mix_four(simd, upper, lower, weights, rests), output);
                }
                if whole == 0 {
                    let [a, b, c, d] = [&a[whole..], &b[whole..], &c[whole..], &d[whole..]];
                    let upper = [simd.load_partial(a, 0.0), simd.load_partial(b, 0.0)];
                    let lower = [simd.load_partial(c, 0.0), simd.load_partial(d, 0.0)];
                    simd.store_partial(mix_four(simd, upper, lower, weights, rests), last);
                }
            }
        }
    }
}

#[inline(always)]
fn mix_four<S: Simd>(
    simd: S,
    [a, b]: [S::F; 2],
    [c, d]: [S::F; 2],
    [down, right]: [S::F; 2],
    [up, left]: [S::F; 2],
) -> S::F {
    let upper = simd.fma(b, right, simd.mul(a, left));
    let lower = simd.fma(d, right, simd.mul(c, left));
    simd.fma(lower, down, simd.mul(upper, up))
}

#[inline(always)]
fn mix_two<S: Simd>(simd: S, [a, b]: [&[f32]; 2], weight: f32, output: &mut [f32]) {
    let (rest, weight) = (simd.splat(1.0 - weight), simd.splat(weight));
    let whole = output.len() - output.len() % S::LANES;
    let (outputs, last) = output.split_at_mut(whole);
    for (index, output) in outputs.chunks_exact_mut(S::LANES).enumerate() {
        let first = index * S::LANES;
        let (a, b) = (simd.load(&a[first..]), simd.load(&b[first..]));
        simd.store(simd.fma(b, weight, simd.mul(a, rest)), output);
    }
    let (a, b) = (simd.load_partial(&a[whole..], 0.0), simd.load_partial(&b[whole..], 0.0));
    simd.store_partial(simd.fma(b, weight, simd.mul(a, rest)), last);
}

struct ByteRow<'a, T>(Row<'a, T>);

impl<T: Byte> Kernel for ByteRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let steps = f32::from(1_u16 << WEIGHT_BITS);
        for x in 0..self.0.pixels() {
            // SAFETY: one at a time.
            let Pixel { corners, weights, output } = unsafe { self.0.pixel(x) };
            let [a, b, c, d] = corners;
            if weights == [0.0, 0.0] {
                output.copy_from_slice(a);
                continue;
            }
            if !self.0.resize.is_dyadic {
                mix_exactly(corners, weights, output);
                continue;
            }
            #[allow(clippy::cast_possible_truncation)] // At most 2^11, and integers.
            let weights = weights.map(|weight| (weight * steps) as i32);
            let weights = [simd.isplat(weights[0]), simd.isplat(weights[1])];
            let length = output.len();
            let whole = length - length % S::LANES;
            if whole > 0 && whole < length {
                // The last vector overlaps the one before: cheaper than a part of one.
                let first = length - S::LANES;
                let upper = [T::load(simd, &a[first..]), T::load(simd, &b[first..])];
                let lower = [T::load(simd, &c[first..]), T::load(simd, &d[first..])];
                T::store(simd, mix_steps(simd, upper, lower, weights), &mut output[first..]);
            }
            let (outputs, last) = output.split_at_mut(whole);
            for (index, output) in outputs.chunks_exact_mut(S::LANES).enumerate() {
                let first = index * S::LANES;
                let upper = [T::load(simd, &a[first..]), T::load(simd, &b[first..])];
                let lower = [T::load(simd, &c[first..]), T::load(simd, &d[first..])];
                T::store(simd, mix_steps(simd, upper, lower, weights), output);
            }
            if whole == 0 {
                let [a, b, c, d] = [&a[whole..], &b[whole..], &c[whole..], &d[whole..]];
                let upper = [load_bytes_partial(simd, a), load_bytes_partial(simd, b)];
                let lower = [load_bytes_partial(simd, c), load_bytes_partial(simd, d)];
                store_bytes_partial(simd, mix_steps(simd, upper, lower, weights), last);
            }
        }
    }
}

/// Exact means, halves up: 8 bits and twice the weights' bits are less than 31.
#[inline(always)]
fn mix_steps<S: Simd>(
    simd: S,
    [a, b]: [S::I; 2],
    [c, d]: [S::I; 2],
    [down, right]: [S::I; 2],
) -> S::I {
    let upper = mix_pair(simd, a, b, right);
    let lower = mix_pair(simd, c, d, right);
    let half = simd.isplat(1 << (2 * WEIGHT_BITS - 1));
    let sum = simd.iadd(mix_pair(simd, upper, lower, down), half);
    simd.shift_right(sum, 2 * WEIGHT_BITS)
}

/// `from + (to - from) * steps / 2^11`, times 2^11.
#[inline(always)]
fn mix_pair<S: Simd>(simd: S, from: S::I, to: S::I, steps: S::I) -> S::I {
    let difference = simd.imul(simd.isub(to, from), steps);
    simd.iadd(simd.shift_left(from, WEIGHT_BITS), difference)
}

/// In double precision, which is exact for 8 bits and a weight of 24.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // A mean of bytes.
fn mix_exactly<T: Byte>([a, b, c, d]: [&[T]; 4], weights: [f32; 2], output: &mut [T]) {
    let [down, right] = weights.map(f64::from);
    let (up, left) = (1.0 - down, 1.0 - right);
    let pixels = a.iter().zip(b).zip(c.iter().zip(d));
    for (output, ((a, b), (c, d))) in output.iter_mut().zip(pixels) {
        let [a, b, c, d] = [a, b, c, d].map(|element| f64::from(element.wide()));
        let mean = (a * left + b * right) * up + (c * left + d * right) * down;
        *output = T::nearest((mean + 0.5).floor() as i32);
    }
}
