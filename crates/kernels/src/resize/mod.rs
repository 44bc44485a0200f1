//! RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: images of another size.
//!
//! Where an output pixel is in the input is the caller's to say, as a [`Place`] for each row and
//! each column; the nearest neighbour is a place whose weight is 0.
#![allow(unsafe_code)]

mod row;
#[cfg(test)]
mod tests;

use crate::disjoint::DisjointOutput;
use crate::image::{Image, ImageMut};
use crate::preparation::product;
use crate::prepared::{ElementType, Operands, PreparedKernel, WrongValue};
use crate::sharing::{Cut, ELEMENTS_OF_TASK, for_each_part};
use crate::team::Team;
use crate::vector::{Byte, Isa};
use crate::{Preparation, TooLarge};
use row::{Floats, Mix, Rounded, Row, Span, Steps, find_spans};

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

/// Prepared resizing of images with any number of channels.
#[derive(Debug, Clone)]
pub struct Resize {
    isa: Isa,
    batch: usize,
    input: [usize; 2],
    channels: usize,
    places: [Vec<Place>; 2],
    /// Of the columns of the output.
    spans: Vec<Span>,
    /// Whether all weights are multiples of 2 to the power of -[`WEIGHT_BITS`].
    is_dyadic: bool,
}

impl Resize {
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
        let isa = Isa::of(preparation.set());
        Ok(Self { isa, batch, input, channels, places, spans, is_dyadic })
    }

    /// Computes the output of float32 images.
    ///
    /// # Panics
    /// If an image is smaller than what was prepared for.
    pub fn run_f32(&self, team: &mut Team, input: Image<'_, f32>, output: ImageMut<'_, f32>) {
        self.run(team, input, output, |row| self.isa.run(Mix::<Floats>(row)));
    }

    /// Computes the output of 8-bit images: the nearest stored values, halves up.
    ///
    /// # Panics
    /// If an image is smaller than what was prepared for.
    pub fn run_8bit<T: Byte>(&self, team: &mut Team, input: Image<'_, T>, output: ImageMut<'_, T>) {
        if self.is_dyadic {
            self.run(team, input, output, |row| self.isa.run(Mix::<Steps<T>>(row)));
        } else {
            self.run(team, input, output, |row| self.isa.run(Mix::<Rounded<T>>(row)));
        }
    }

    fn run<T: Copy + Send + Sync>(
        &self,
        team: &mut Team,
        input: Image<'_, T>,
        output: ImageMut<'_, T>,
        work: impl Fn(Row<'_, T>) + Sync,
    ) {
        let [rows, columns] = [0, 1].map(|axis: usize| self.places[axis].len());
        let pixels = |[rows, columns]: [usize; 2]| {
            product(&[self.batch, rows, columns]).expect("images beyond memory")
        };
        input.check("input", pixels(self.input), self.channels);
        output.check("output", pixels([rows, columns]), self.channels);
        let stride = output.pixel_stride;
        let values = DisjointOutput::new(output.values);
        let size = columns * self.channels;
        if size == 0 {
            return;
        }
        let length = (columns - 1) * stride + self.channels;
        let cut = Cut { each: size, least: ELEMENTS_OF_TASK, multiple: 1 };
        for_each_part(team, self.batch * rows, cut, |part, pace| {
            for row in part {
                let (image, y) = (row / rows, row % rows);
                // SAFETY: rows begin at distances of `columns * stride` elements, which is no less than this
                // one's length, and each is one task's alone.
                let output = unsafe { values.slice(row * columns * stride, length) };
                work(Row { resize: self, input, image, y, output, stride, pace: pace.clone() });
            }
        });
    }
}

/// Resizing of contiguous images.
#[derive(Debug)]
pub struct ResizeImages {
    /// Any numbers.
    pub resize: Resize,
    /// What they are: floats, or bytes.
    pub elements: ElementType,
}

impl PreparedKernel for ResizeImages {
    fn name(&self) -> String {
        format!("resize {}", self.elements.name())
    }

    fn run_on(&self, team: &mut Team, operands: Operands<'_>) -> Result<(), WrongValue> {
        let (inputs, [output], _) = operands.split();
        let (resize, channels) = (&self.resize, self.resize.channels);
        /// Both images, as numbers of the type that is wanted.
        macro_rules! resized {
            ($run:ident::<$T:ty>) => {
                resize.$run(
                    team,
                    Image::<$T>::contiguous(inputs.of(0), channels),
                    ImageMut::<$T>::contiguous(bytemuck::cast_slice_mut(output), channels),
                )
            };
        }
        match self.elements {
            ElementType::F32 => resized!(run_f32::<f32>),
            ElementType::U8 => resized!(run_8bit::<u8>),
            ElementType::I8 => resized!(run_8bit::<i8>),
            other => panic!("elements of {}, which are not resized", other.name()),
        }
        Ok(())
    }
}
