//! [`Convolution`] of images of quantized values.
#![allow(unsafe_code)]

mod in_place;
mod packed;
mod portable;
mod prepared;
mod stage;
pub(crate) mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod winograd;

use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::gemm::quantized::Variant;
use crate::image::{Places, values_needed};
use crate::quantization::{Activations, Signedness, Weights};
use crate::requantize::Requantization;
use crate::team::Stop;
use crate::{Image, ImageMut, LINE_BYTES, Line, Preparation, Team, TooLarge};
use in_place::InPlace;
use packed::Packed;
use portable::Portable;
use winograd::Winograd;

/// A convolution with constant weights, prepared for an instruction set. Also the product of a matrix
/// with constant weights: see [`Convolution::fully_connected`].
#[derive(Debug)]
pub struct Convolution {
    shape: Shape,
    signedness: Signedness,
    kernel: Kernel,
}

#[derive(Debug)]
enum Kernel {
    Portable(Portable),
    InPlace(Box<InPlace>),
    Packed(Box<Packed>),
    Winograd(Box<Winograd>),
}

impl Convolution {
    /// Packs the weights `[output_channels, filter[0], filter[1], input_channels / groups]` and cuts
    /// the work. Input pixels in the padding are the zero point.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid; if there are not as many weights and biases as it says; if a number
    /// is out of its type's range; if this processor does not have the instruction set.
    pub fn prepare(
        shape: &Shape,
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        weights.check(shape.filter_values(), preparation);
        assert_eq!(bias.len(), shape.output_channels, "biases");
        activations.check();
        let signedness = activations.signedness;
        requantization.check(shape.output_channels, signedness);
        if preparation.allows_winograd() {
            let winograd =
                Winograd::new(shape, weights, bias, activations, &requantization, preparation)?;
            if let Some(winograd) = winograd {
                let kernel = Kernel::Winograd(Box::new(winograd));
                return Ok(Self { shape: *shape, signedness, kernel });
            }
        }
        let products = shape.taps().saturating_mul(shape.group_input_channels());
        let variant = Variant::of_rows(preparation.set(), products, shape.output_pixels());
        if variant.is_some_and(Variant::copies_rows) {
            let in_place =
                InPlace::new(shape, weights, bias, activations, &requantization, preparation)?;
            if let Some(in_place) = in_place {
                let kernel = Kernel::InPlace(Box::new(in_place));
                return Ok(Self { shape: *shape, signedness, kernel });
            }
        }
        let packed = match variant {
            Some(variant) => Packed::new(
                shape,
                weights,
                bias,
                activations,
                &requantization,
                variant,
                preparation,
            )?,
            None => None,
        };
        let kernel = match packed {
            Some(packed) => Kernel::Packed(Box::new(packed)),
            None => Kernel::Portable(Portable::new(
                shape,
                weights,
                bias,
                activations,
                requantization,
                preparation,
            )?),
        };
        Ok(Self { shape: *shape, signedness, kernel })
    }

    /// The product of `rows` rows of `inputs` numbers with weights `[units, inputs]`, for
    /// FULLY_CONNECTED: a row is a pixel of the input and of the output.
    ///
    /// # Errors
    /// As of [`Self::prepare`].
    ///
    /// # Panics
    /// As of [`Self::prepare`].
    pub fn fully_connected(
        [rows, inputs, units]: [usize; 3],
        weights: Weights<'_>,
        bias: &[i32],
        activations: Activations,
        requantization: Requantization,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        let shape = Shape {
            batch: 1,
            input: [rows, 1],
            input_channels: inputs,
            output: [rows, 1],
            output_channels: units,
            filter: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding_before: [0, 0],
            groups: 1,
        };
        Self::prepare(&shape, weights, bias, activations, requantization, preparation)
    }

    /// The sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the numbers of the images are signed.
    fn signedness(&self) -> Signedness {
        self.signedness
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        match &self.kernel {
            Kernel::Portable(_) => "portable",
            Kernel::InPlace(in_place) => in_place.name(),
            Kernel::Packed(packed) => packed.name(),
            Kernel::Winograd(winograd) => winograd.name(),
        }
    }

    /// The algorithm, for profiles.
    pub fn algorithm(&self) -> &'static str {
        match &self.kernel {
            Kernel::Portable(_) | Kernel::InPlace(_) | Kernel::Packed(_) => "gemm",
            Kernel::Winograd(_) => "winograd",
        }
    }

    /// Bytes of scratch memory that a run wants.
    pub fn scratch_bytes(&self) -> usize {
        self.tasks() * self.task_lines() * LINE_BYTES
    }

    /// How many tasks there are.
    pub(crate) fn tasks(&self) -> usize {
        match &self.kernel {
            Kernel::Portable(_) => Portable::tasks(&self.shape),
            Kernel::InPlace(in_place) => in_place.tasks(),
            Kernel::Packed(packed) => packed.tasks(),
            Kernel::Winograd(winograd) => winograd.tasks(),
        }
    }

    /// Lines of scratch memory that a task wants.
    pub(crate) fn task_lines(&self) -> usize {
        match &self.kernel {
            Kernel::Portable(_) => 0,
            Kernel::InPlace(in_place) => in_place.task_lines(),
            Kernel::Packed(packed) => packed.task_lines(),
            Kernel::Winograd(winograd) => winograd.task_lines(),
        }
    }

    /// Computes the output.
    ///
    /// # Panics
    /// If an image or the scratch memory is too small.
    pub fn run(
        &self,
        team: &mut Team,
        input: Image<'_, u8>,
        output: ImageMut<'_, u8>,
        scratch: &mut [Line],
    ) {
        let values = DisjointOutput::new(output.values);
        let output = Target { values: &values, places: Places::Even(output.pixel_stride) };
        self.check(&input, &output);
        let lines = self.task_lines();
        let scratch = DisjointOutput::new(scratch);
        team.run_long(self.tasks(), &|task, stop| {
            // SAFETY: each task has its own lines.
            let scratch = unsafe { scratch.slice(task * lines, lines) };
            // SAFETY: the images were checked, each task is run once, and there are no other ones.
            unsafe { self.task(input, &output, task, scratch, stop) };
        });
    }

    /// # Panics
    /// If an image is too small.
    pub(crate) fn check(&self, input: &Image<'_, u8>, output: &Target<'_>) {
        let shape = &self.shape;
        input.check("input", shape.input_pixels(), shape.input_channels);
        let needed = match &output.places {
            Places::Even(stride) => {
                values_needed(shape.output_pixels(), shape.output_channels, *stride)
            }
            Places::Lines(placement) => {
                assert_eq!(placement.size, shape.output, "size of the output");
                placement.values_needed(shape.batch, shape.output_channels)
            }
        };
        assert!(output.values.len() >= needed, "the output is too small");
    }

    /// Computes the part of a task.
    ///
    /// # Safety
    /// The images were [checked](Self::check), each task is run once, and no one else touches the
    /// pixels of the output.
    pub(crate) unsafe fn task(
        &self,
        input: Image<'_, u8>,
        output: &Target<'_>,
        task: usize,
        scratch: &mut [Line],
        stop: &Stop,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.kernel {
                Kernel::Portable(portable) => portable.task(&self.shape, input, output, task, stop),
                Kernel::InPlace(in_place) => {
                    in_place.task(&self.shape, input, output, task, scratch, stop);
                }
                Kernel::Packed(packed) => {
                    packed.task(&self.shape, input, output, task, scratch, stop);
                }
                Kernel::Winograd(winograd) => {
                    winograd.task(&self.shape, input, output, task, scratch, stop);
                }
            }
        }
    }
}

/// An output, and where its pixels are.
pub(crate) struct Target<'a> {
    pub(crate) values: &'a DisjointOutput<'a, u8>,
    pub(crate) places: Places,
}

impl Target<'_> {
    /// Where a pixel begins.
    fn start(&self, pixel: usize) -> usize {
        self.places.start(pixel)
    }

    /// From a pixel to the next one of its line.
    fn stride(&self) -> usize {
        self.places.stride()
    }

    /// How many pixels are at equal distances from a pixel on.
    fn in_line(&self, pixel: usize) -> usize {
        match &self.places {
            Places::Even(_) => usize::MAX,
            Places::Lines(placement) => placement.size[1] - pixel % placement.size[1],
        }
    }
}
