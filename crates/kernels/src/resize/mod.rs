//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: images of another size.
//!
//! Where an output pixel is in the input is the caller's to say, as a [`Place`] for each row and
//! each column; the nearest neighbour is a place whose weight is 0.

mod row;
#[cfg(test)]
mod tests;

use crate::preparation::product;
use crate::prepared::OneInput;
use crate::sharing::{Cut, ELEMENTS_OF_TASK, for_each_rows};
use crate::team::Team;
use crate::vector::Isa;
use crate::{Preparation, TooLarge};
pub use row::Element;
use row::{Row, Span, find_spans};
use std::marker::PhantomData;

/// What finding a place takes, in multiplications.
const WORK_OF_PLACE: usize = 16;

/// Bits of weights that are exact in the integer arithmetic of 8-bit images.
const WEIGHT_BITS: u32 = 11;

/// Where an index of the output is on an axis of the input.
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

/// Prepared resizing of images with any number of channels, of floats or of bytes: these become the nearest stored values,
/// halves up.
#[derive(Debug, Clone)]
pub struct Resize<T> {
    isa: Isa,
    batch: usize,
    input: [usize; 2],
    channels: usize,
    /// Of the rows of the output; and of its columns, where these places are counted in elements, both the lower one's if the upper one
    /// does not count.
    places: [Vec<Place>; 2],
    /// Of the columns of the output.
    spans: Vec<Span>,
    /// Whether all weights are multiples of 2 to the power of -[`WEIGHT_BITS`].
    is_dyadic: bool,
    elements: PhantomData<T>,
}

impl<T: Element> Resize<T> {
    /// Of images `[batch, input[0], input[1], channels]`; `place` says where an index of an axis (0: rows,
    /// 1: columns) of the output is.
    ///
    /// # Errors
    /// If there are more places than memory may be taken for.
    ///
    /// # Panics
    /// If a place is outside of the input, or a weight is not from 0 to 1.
    pub fn prepare(
        preparation: &mut Preparation,
        batch: usize,
        [input, output]: [[usize; 2]; 2],
        channels: usize,
        place: impl Fn(usize, usize) -> Place,
    ) -> Result<Self, TooLarge> {
        const WHAT: &str = "where an image's rows and columns are taken from";
        let steps = f32::from(1_u16 << WEIGHT_BITS);
        let mut is_dyadic = true;
        let mut places = [Vec::new(), Vec::new()];
        for (axis, places) in places.iter_mut().enumerate() {
            *places = preparation.room(output[axis], WHAT)?;
            for index in preparation.pace().blocks(output[axis], WORK_OF_PLACE).flatten() {
                let place = place(axis, index);
                let is_inside = place.lower < input[axis] && place.upper < input[axis];
                assert!(is_inside, "{place:?} outside of {}", input[axis]);
                assert!((0.0..=1.0).contains(&place.weight), "no weight: {place:?}");
                is_dyadic &= (place.weight * steps).fract() == 0.0;
                places.push(place);
            }
        }
        let mut spans = preparation.room(places[1].len(), WHAT)?;
        find_spans(&places[1], &mut spans, &mut preparation.pace());
        for place in &mut places[1] {
            let upper = if place.weight == 0.0 { place.lower } else { place.upper };
            [place.lower, place.upper] = [place.lower, upper].map(|column| column * channels);
        }
        let isa = Isa::of(preparation.set());
        let elements = PhantomData;
        Ok(Self { isa, batch, input, channels, places, spans, is_dyadic, elements })
    }
}

impl<T: Element> OneInput for Resize<T> {
    type Input = T;
    type Output = T;

    fn name(&self) -> String {
        format!("resize {}", T::NAME)
    }

    fn run(&self, team: &mut Team, input: &[T], output: &mut [T]) {
        let [rows, columns] = [0, 1].map(|axis: usize| self.places[axis].len());
        let values = |[rows, columns]: [usize; 2]| {
            product(&[self.batch, rows, columns, self.channels]).expect("images beyond memory")
        };
        assert_eq!(input.len(), values(self.input), "an input of another size");
        assert_eq!(output.len(), values([rows, columns]), "an output of another size");
        let size = columns * self.channels;
        let cut = Cut { each: size, least: ELEMENTS_OF_TASK, multiple: 1 };
        for_each_rows(team, (output, size), cut, |part, output, pace| {
            for (row, output) in part.zip(output.chunks_exact_mut(size)) {
                let (image, y) = (row / rows, row % rows);
                T::resize(Row { resize: self, input, image, y, output, pace: pace.clone() });
            }
        });
    }
}
