//! A row of the output: two rows of the input are mixed into one, and that is mixed along itself.

use super::{Place, Resize, WEIGHT_BITS};
use crate::team::Pace;
use crate::vector::{Byte, Kernel, Portable, Simd, load_bytes_partial, store_bytes_partial};
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// Pixels of an output row that are between the same two columns of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pixels: Range<usize>,
    /// The columns; the same ones if no pixel has anything of the upper one.
    lower: usize,
    upper: usize,
}

/// The most pixels of a span: within one it is not asked whether to go on.
const MOST_PIXELS: usize = 4096;

/// The spans of a row's places, into a vector with room for one span per place.
pub(super) fn find_spans(places: &[Place], spans: &mut Vec<Span>, pace: &mut Pace<'_>) {
    // Whether no pixel of the last span has anything of an upper column.
    let mut is_open = false;
    for index in pace.blocks(places.len(), 4).flatten() {
        let place = places[index];
        let upper = (place.weight != 0.0).then_some(place.upper);
        let goes_on =
            |last: &&mut Span| last.lower == place.lower && last.pixels.len() < MOST_PIXELS;
        match spans.last_mut().filter(goes_on) {
            Some(last) if is_open || upper.is_none_or(|upper| upper == last.upper) => {
                last.pixels.end = index + 1;
                last.upper = upper.unwrap_or(last.upper);
                is_open &= upper.is_none();
            }
            _ => {
                let (lower, upper_column) = (place.lower, upper.unwrap_or(place.lower));
                spans.push(Span { pixels: index..index + 1, lower, upper: upper_column });
                is_open = upper.is_none();
            }
        }
    }
}

/// A row of the output.
pub struct Row<'a, T> {
    pub(super) resize: &'a Resize<T>,
    pub(super) input: &'a [T],
    pub(super) image: usize,
    pub(super) y: usize,
    pub(super) output: &'a mut [T],
    pub(super) pace: Pace<'a>,
}

/// What images are of.
pub trait Element: Pod + fmt::Debug + Send + Sync {
    /// In names of kernels.
    const NAME: &'static str;

    /// Computes a row.
    fn resize(row: Row<'_, Self>);
}

impl Element for f32 {
    const NAME: &'static str = "f32";

    fn resize(row: Row<'_, Self>) {
        row.resize.isa.run(Mix::<Floats>(row));
    }
}

impl<T: Byte> Element for T {
    const NAME: &'static str = T::NAME;

    fn resize(row: Row<'_, Self>) {
        let Resize { isa, is_dyadic, .. } = *row.resize;
        if is_dyadic {
            isa.run(Mix::<Steps<T>>(row));
        } else {
            isa.run(Mix::<Rounded<T>>(row));
        }
    }
}

/// How elements are mixed.
trait Mixing {
    type Element: Copy;
    /// A vector of elements of which some are mixed already.
    type Mixed<S: Simd>: Copy;

    /// Mixes two rows, of which the second one counts so much. There are at most as many elements
    /// as a vector has.
    fn down<S: Simd>(simd: S, rows: [&[Self::Element]; 2], weight: f32) -> Self::Mixed<S>;

    /// Mixes two columns, of which the second one counts so much, into an output. Gives false if the
    /// output might be another one, and has to be computed [`Self::exactly`].
    fn across<S: Simd>(
        simd: S,
        columns: [Self::Mixed<S>; 2],
        weight: f32,
        output: &mut [Self::Element],
    ) -> bool;

    /// Mixes upper left, upper right, lower left and lower right elements. Nothing where [`Self::across`] always does.
    fn exactly(_: [&[Self::Element]; 4], _: [f32; 2], _: &mut [Self::Element]) {}
}

/// Mixes a row.
struct Mix<'a, M: Mixing>(Row<'a, M::Element>);

impl<M: Mixing> Kernel for Mix<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let channels = self.0.resize.channels;
        // Floats of longer vectors are mostly in two cache lines.
        let is_long = size_of::<M::Element>() * S::LANES > 16;
        if channels <= Portable::LANES && is_long {
            return self.of_few_channels(Portable);
        }
        if channels <= S::LANES {
            return self.of_few_channels(simd);
        }
        let Self(mut row) = self;
        let Resize { input: [height, width], channels, places, spans, .. } = row.resize;
        let channels = *channels;
        let (vertical, places) = (places[0][row.y], &places[1]);
        let upper_row = if vertical.weight == 0.0 { vertical.lower } else { vertical.upper };
        let rows = [vertical.lower, upper_row].map(|y| (row.image * height + y) * width);
        for span in spans {
            if row.pace.is_over(1) {
                return;
            }
            let corner = |first: usize, column: usize| {
                let start = (first + column) * channels;
                &row.input[start..start + channels]
            };
            let [lower, upper] = [span.lower, span.upper];
            let corners = [
                corner(rows[0], lower),
                corner(rows[0], upper),
                corner(rows[1], lower),
                corner(rows[1], upper),
            ];
            if vertical.weight == 0.0 && lower == upper {
                for block in row.pace.blocks(channels, span.pixels.len()) {
                    for x in span.pixels.clone() {
                        let output = &mut row.output[x * channels..][block.clone()];
                        output.copy_from_slice(&corners[0][block.clone()]);
                    }
                }
                continue;
            }
            let size = channels.min(S::LANES);
            for block in row.pace.blocks(channels, span.pixels.len()) {
                // The last vector overlaps the one before: cheaper than a part of one.
                for first in block.step_by(S::LANES) {
                    let first = first.min(channels - size);
                    // No closures, which would be compiled without the vectors' instructions.
                    let [a, b, c, d] = corners;
                    let end = first + size;
                    let [a, b, c, d] =
                        [&a[first..end], &b[first..end], &c[first..end], &d[first..end]];
                    let left = M::down(simd, [a, c], vertical.weight);
                    let right = M::down(simd, [b, d], vertical.weight);
                    for x in span.pixels.clone() {
                        let weight = places[x].weight;
                        let output = &mut row.output[x * channels + first..][..size];
                        if !M::across(simd, [left, right], weight, output) {
                            M::exactly([a, b, c, d], [vertical.weight, weight], output);
                        }
                    }
                }
            }
        }
    }
}

impl<M: Mixing> Mix<'_, M> {
    /// Of pixels that fit into a vector each. Whole vectors are read and written wherever there is as much: what is behind a pixel
    /// belongs to the next ones, whose turn comes later.
    #[inline(always)]
    fn of_few_channels<S: Simd>(self, simd: S) {
        let Self(Row { resize, input, image, y, output, mut pace }) = self;
        let Resize { input: [height, width], channels, places, .. } = resize;
        let (channels, length) = (*channels, width * channels);
        let (vertical, places) = (places[0][y], &places[1]);
        let upper_row = if vertical.weight == 0.0 { vertical.lower } else { vertical.upper };
        let [above, below] =
            [vertical.lower, upper_row].map(|y| &input[(image * height + y) * length..][..length]);
        let mut output = output;
        for block in pace.blocks(places.len(), S::LANES) {
            for place in &places[block] {
                let (weights, [lower, upper]) =
                    ([vertical.weight, place.weight], [place.lower, place.upper]);
                let corners = [&above[lower..], &above[upper..], &below[lower..], &below[upper..]];
                let is_whole = corners[0].len().min(corners[1].len()) >= S::LANES;
                if is_whole && output.len() >= S::LANES {
                    mix_pixel::<S, M>(simd, corners, weights, (S::LANES, channels), output);
                } else {
                    mix_pixel::<S, M>(simd, corners, weights, (channels, channels), output);
                }
                output = &mut output[channels..];
            }
        }
    }
}

/// Mixes the first `size` elements, of which the first `channels` count.
#[inline(always)]
fn mix_pixel<S: Simd, M: Mixing>(
    simd: S,
    [a, b, c, d]: [&[M::Element]; 4],
    weights: [f32; 2],
    (size, channels): (usize, usize),
    output: &mut [M::Element],
) {
    let [a, b, c, d] = [&a[..size], &b[..size], &c[..size], &d[..size]];
    if weights == [0.0; 2] {
        return output[..size].copy_from_slice(a);
    }
    let left = M::down(simd, [a, c], weights[0]);
    let right = M::down(simd, [b, d], weights[0]);
    if !M::across(simd, [left, right], weights[1], &mut output[..size]) {
        let corners = [&a[..channels], &b[..channels], &c[..channels], &d[..channels]];
        M::exactly(corners, weights, &mut output[..channels]);
    }
}

/// `a + (b - a) * weight`.
#[inline(always)]
fn two<S: Simd>(simd: S, [a, b]: [S::F; 2], weight: f32) -> S::F {
    let (rest, weight) = (simd.splat(1.0 - weight), simd.splat(weight));
    simd.fma(b, weight, simd.mul(a, rest))
}

/// Floats.
struct Floats;

impl Floats {
    #[inline(always)]
    fn two<S: Simd>(simd: S, [a, b]: [S::F; 2], weight: f32) -> S::F {
        // A weight of 0 must not let an infinity on the other side through.
        if weight == 0.0 { a } else { two(simd, [a, b], weight) }
    }
}

impl Mixing for Floats {
    type Element = f32;
    type Mixed<S: Simd> = S::F;

    #[inline(always)]
    fn down<S: Simd>(simd: S, [a, b]: [&[f32]; 2], weight: f32) -> S::F {
        if a.len() < S::LANES {
            Self::two(simd, [simd.load_partial(a, 0.0), simd.load_partial(b, 0.0)], weight)
        } else {
            Self::two(simd, [simd.load(a), simd.load(b)], weight)
        }
    }

    #[inline(always)]
    fn across<S: Simd>(simd: S, columns: [S::F; 2], weight: f32, output: &mut [f32]) -> bool {
        let mixed = Self::two(simd, columns, weight);
        if output.len() < S::LANES {
            simd.store_partial(mixed, output);
        } else {
            simd.store(mixed, output);
        }
        true
    }
}

#[inline(always)]
fn load<S: Simd, T: Byte>(simd: S, from: &[T]) -> S::I {
    if from.len() < S::LANES { load_bytes_partial(simd, from) } else { T::load(simd, from) }
}

#[inline(always)]
fn store<S: Simd, T: Byte>(simd: S, value: S::I, to: &mut [T]) {
    if to.len() < S::LANES {
        store_bytes_partial(simd, value, to);
    } else {
        T::store(simd, value, to);
    }
}

/// Bytes whose weights are multiples of 2 to the power of -[`WEIGHT_BITS`]: exact means, halves up, for 8 bits and twice the
/// weights' bits are less than 31.
struct Steps<T>(PhantomData<T>);

impl<T: Byte> Steps<T> {
    /// `a + (b - a) * weight`, times 2^11.
    #[inline(always)]
    fn two<S: Simd>(simd: S, [a, b]: [S::I; 2], weight: f32) -> S::I {
        #[allow(clippy::cast_possible_truncation)] // At most 2^11, and an integer.
        let steps = simd.isplat((weight * f32::from(1_u16 << WEIGHT_BITS)) as i32);
        simd.iadd(simd.shift_left(a, WEIGHT_BITS), simd.imul(simd.isub(b, a), steps))
    }
}

impl<T: Byte> Mixing for Steps<T> {
    type Element = T;
    type Mixed<S: Simd> = S::I;

    #[inline(always)]
    fn down<S: Simd>(simd: S, [a, b]: [&[T]; 2], weight: f32) -> S::I {
        Self::two(simd, [load(simd, a), load(simd, b)], weight)
    }

    #[inline(always)]
    fn across<S: Simd>(simd: S, columns: [S::I; 2], weight: f32, output: &mut [T]) -> bool {
        let half = simd.isplat(1 << (2 * WEIGHT_BITS - 1));
        let sum = simd.iadd(Self::two(simd, columns, weight), half);
        store(simd, simd.shift_right(sum, 2 * WEIGHT_BITS), output);
        true
    }
}

/// Bytes with any weights.
struct Rounded<T>(PhantomData<T>);

/// Means that are closer than this to the middle between two integers are computed exactly. Of floats of at most 256 a rounding errs by
/// 2^-17 at most, and there are fewer than sixteen: of weights, products and sums, along columns and rows.
const UNCERTAIN: f32 = 1.0 / 8192.0;

impl<T: Byte> Mixing for Rounded<T> {
    type Element = T;
    type Mixed<S: Simd> = S::F;

    #[inline(always)]
    fn down<S: Simd>(simd: S, [a, b]: [&[T]; 2], weight: f32) -> S::F {
        two(simd, [simd.to_f32(load(simd, a)), simd.to_f32(load(simd, b))], weight)
    }

    #[inline(always)]
    fn across<S: Simd>(simd: S, columns: [S::F; 2], weight: f32, output: &mut [T]) -> bool {
        let raised = simd.add(two(simd, columns, weight), simd.splat(0.5));
        let below = simd.floor(raised);
        let above = simd.sub(raised, below);
        let distance = simd.min(above, simd.sub(simd.splat(1.0), above));
        if simd.any(simd.lt(distance, simd.splat(UNCERTAIN))) {
            return false;
        }
        store(simd, simd.to_i32(below), output);
        true
    }

    /// In double precision, which is exact for 8 bits and a weight of 24.
    #[allow(clippy::cast_possible_truncation)] // A mean of bytes.
    fn exactly([a, b, c, d]: [&[T]; 4], weights: [f32; 2], output: &mut [T]) {
        let [down, right] = weights.map(f64::from);
        let (up, left) = (1.0 - down, 1.0 - right);
        let pixels = a.iter().zip(b).zip(c.iter().zip(d));
        for (output, ((a, b), (c, d))) in output.iter_mut().zip(pixels) {
            let [a, b, c, d] = [a, b, c, d].map(|element| f64::from(element.wide()));
            let mean = (a * left + b * right) * up + (c * left + d * right) * down;
            *output = T::nearest((mean + 0.5).floor() as i32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Team;

    #[test]
    fn pixels_between_the_same_columns_are_a_span() {
        let place = |lower, upper, weight| Place { lower, upper, weight };
        let places = [
            place(0, 0, 0.0),
            place(0, 1, 0.5),
            place(0, 0, 0.0),
            place(1, 2, 0.0),
            place(1, 1, 0.0),
            place(2, 3, 0.1),
            place(2, 1, 0.1),
            place(3, 3, 0.2),
            place(3, 4, 0.2),
        ];
        let span = |pixels, lower, upper| Span { pixels, lower, upper };
        let spans = |places: &[Place]| {
            let mut spans = Vec::new();
            find_spans(places, &mut spans, &mut Team::alone().pace());
            spans
        };
        let first = [span(0..3, 0, 1), span(3..5, 1, 1), span(5..6, 2, 3), span(6..7, 2, 1)];
        assert_eq!(spans(&places)[..4], first);
        assert_eq!(spans(&places)[4..], [span(7..8, 3, 3), span(8..9, 3, 4)]);
        assert_eq!(spans(&[]), []);
    }
}
