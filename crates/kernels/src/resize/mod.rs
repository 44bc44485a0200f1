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
        let pixels = self.batch * self.input[0] * self.input[1];
        let needed = values_needed(pixels, self.channels, input.pixel_stride);
        assert!(input.values.len() >= needed, "an input smaller than prepared for");
        let needed = values_needed(self.batch * rows * columns, self.channels, output.pixel_stride);
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

/// The pixels around a place: upper left, upper right, lower left, lower right.
type Corners<'a, T> = [&'a [T]; 4];

impl<'a, T> Row<'a, T> {
    /// Calls `work` with the four pixels around, the weights of the lower and the right ones, and
    /// the output pixel.
    #[inline(always)]
    fn for_each_pixel(&self, mut work: impl FnMut(Corners<'a, T>, [f32; 2], &mut [T])) {
        let Resize { input: [height, width], channels, places, .. } = self.resize;
        let vertical = places[0][self.y];
        let rows = [vertical.lower, vertical.upper].map(|y| (self.image * height + y) * width);
        for (x, horizontal) in places[1].iter().enumerate() {
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
            // SAFETY: this row's pixels are nobody else's, and there is one at a time.
            let output = unsafe { self.output.slice((self.first + x) * self.stride, *channels) };
            work(corners, [vertical.weight, horizontal.weight], output);
        }
    }
}

struct FloatRow<'a>(Row<'a, f32>);

impl Kernel for FloatRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.0.for_each_pixel(|[a, b, c, d], [vertical, horizontal], output| {
            // A weight of 0 must not let an infinity on the other side through.
            if vertical == 0.0 && horizontal == 0.0 {
                output.copy_from_slice(a);
            } else if vertical == 0.0 {
                mix_two(simd, [a, b], horizontal, output);
            } else if horizontal == 0.0 {
                mix_two(simd, [a, c], vertical, output);
            } else {
                let [down, right] = [vertical, horizontal].map(|weight| simd.splat(weight));
                let [up, left] = [vertical, horizontal].map(|weight| simd.splat(1.0 - weight));
                for (index, output) in output.chunks_mut(S::LANES).enumerate() {
                    let first = index * S::LANES;
                    let part = |corner: &[f32]| {
                        simd.load_partial(&corner[first..first + output.len()], 0.0)
                    };
                    let upper = simd.fma(part(b), right, simd.mul(part(a), left));
                    let lower = simd.fma(part(d), right, simd.mul(part(c), left));
                    simd.store_partial(simd.fma(lower, down, simd.mul(upper, up)), output);
                }
            }
        });
    }
}

#[inline(always)]
fn mix_two<S: Simd>(simd: S, [a, b]: [&[f32]; 2], weight: f32, output: &mut [f32]) {
    let (rest, weight) = (simd.splat(1.0 - weight), simd.splat(weight));
    for (index, output) in output.chunks_mut(S::LANES).enumerate() {
        let first = index * S::LANES;
        let part = |corner: &[f32]| simd.load_partial(&corner[first..first + output.len()], 0.0);
        simd.store_partial(simd.fma(part(b), weight, simd.mul(part(a), rest)), output);
    }
}

struct ByteRow<'a, T>(Row<'a, T>);

impl<T: Byte> Kernel for ByteRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if !self.0.resize.is_dyadic {
            self.0.for_each_pixel(|corners, weights, output| mix_exactly(corners, weights, output));
            return;
        }
        #[allow(clippy::cast_possible_truncation)] // At most 2^11, and integers.
        let steps = |weight: f32| simd.isplat((weight * f32::from(1_u16 << WEIGHT_BITS)) as i32);
        let half = simd.isplat(1 << (2 * WEIGHT_BITS - 1));
        self.0.for_each_pixel(|[a, b, c, d], [vertical, horizontal], output| {
            if vertical == 0.0 && horizontal == 0.0 {
                output.copy_from_slice(a);
                return;
            }
            let (down, right) = (steps(vertical), steps(horizontal));
            for (index, output) in output.chunks_mut(S::LANES).enumerate() {
                let first = index * S::LANES;
                let part = |corner: &[T]| {
                    let corner = &corner[first..first + output.len()];
                    if corner.len() == S::LANES {
                        T::load(simd, corner)
                    } else {
                        load_bytes_partial(simd, corner)
                    }
                };
                // Exact: 8 bits and twice the weights' bits are less than 31.
                let mix = |from: S::I, to: S::I, steps: S::I| {
                    let difference = simd.imul(simd.isub(to, from), steps);
                    simd.iadd(simd.shift_left(from, WEIGHT_BITS), difference)
                };
                let (upper, lower) = (mix(part(a), part(b), right), mix(part(c), part(d), right));
                let sum = simd.iadd(mix(upper, lower, down), half);
                let stored = simd.shift_right(sum, 2 * WEIGHT_BITS);
                if output.len() == S::LANES {
                    T::store(simd, stored, output);
                } else {
                    store_bytes_partial(simd, stored, output);
                }
            }
        });
    }
}

/// In double precision, which is exact for 8 bits and a weight of 24.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // A mean of bytes.
fn mix_exactly<T: Byte>([a, b, c, d]: Corners<'_, T>, weights: [f32; 2], output: &mut [T]) {
    let [down, right] = weights.map(f64::from);
    let (up, left) = (1.0 - down, 1.0 - right);
    let real = |element: &T| f64::from(element.wide());
    for (channel, output) in output.iter_mut().enumerate() {
        let upper = real(&a[channel]) * left + real(&b[channel]) * right;
        let lower = real(&c[channel]) * left + real(&d[channel]) * right;
        *output = T::nearest((upper * up + lower * down + 0.5).floor() as i32);
    }
}
