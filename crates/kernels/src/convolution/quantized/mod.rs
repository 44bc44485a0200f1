//! [`Convolution`] of images of quantized values.
#![allow(unsafe_code)]

pub(crate) mod definition;
mod in_place;
mod layer;
mod packed;
mod stage;
mod sums;
pub(crate) mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod winograd;

use crate::convolution::Shape;
use crate::disjoint::DisjointOutput;
use crate::gemm::quantized::Variant;
use crate::image::{Places, values_needed};
use crate::image_kernel::{ImageKernel, Images};
use crate::quantization::{Signedness, Weights};
use crate::sharing::for_each_task;
use crate::team::Stop;
use crate::{Image, LINE_BYTES, Line, Preparation, Team, TooLarge};
use definition::Portable;
use in_place::InPlace;
pub use layer::Layer;
use packed::Packed;
use std::fmt;
use std::ops::Range;
pub(crate) use sums::{Block, FromSums, SumConvolution};
use winograd::Winograd;

/// A convolution with constant weights, prepared for an instruction set. Also the product of a matrix
/// with constant weights, of the shape [`Shape::matrix_product`].
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

/// What a convolution computes.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// Requantized outputs.
    Outputs(&'a Layer<'a>),
    /// The sums of the products of unsigned images with these weights, which are signed and have no zero point.
    Sums(Weights<'a>),
}

impl<'a> Wanted<'a> {
    fn weights(self) -> Weights<'a> {
        match self {
            Self::Outputs(layer) => layer.weights,
            Self::Sums(weights) => weights,
        }
    }

    /// Of images.
    fn signedness(self) -> Signedness {
        match self {
            Self::Outputs(layer) => layer.activations.signedness,
            Self::Sums(_) => Signedness::Unsigned,
        }
    }
}

/// A way to compute a convolution, cut into tasks.
trait Method: fmt::Debug + Send + Sync {
    /// The instruction set.
    fn name(&self) -> &'static str;

    /// How many tasks there are.
    fn tasks(&self) -> usize;

    /// Lines of scratch memory that a task wants.
    fn task_lines(&self) -> usize;

    /// Computes the part of a task.
    ///
    /// # Safety
    /// The shape is that which it was made for, the images were checked to have all of its pixels, each
    /// task is run once, and no one else touches the pixels of the output.
    unsafe fn task(&self, pass: &Pass<'_>, task: usize, scratch: &mut [Line]);
}

/// A convolution that is being computed.
#[derive(Clone, Copy)]
struct Pass<'a> {
    shape: &'a Shape,
    input: Image<'a, u8>,
    output: Output<'a>,
    stop: &'a Stop,
}

/// What becomes of what is computed.
#[derive(Clone, Copy)]
enum Output<'a> {
    /// Requantized sums are stored.
    Bytes(&'a Target<'a>),
    /// Sums are given to whoever makes something of them.
    Sums(&'a dyn FromSums),
}

impl Output<'_> {
    /// How many pixels are at equal distances from a pixel on.
    fn in_line(&self, pixel: usize) -> usize {
        match self {
            Self::Bytes(target) => target.in_line(pixel),
            Self::Sums(_) => usize::MAX,
        }
    }
}

impl<'a> Pass<'a> {
    /// Where outputs are stored, of a method that does not compute sums alone.
    fn target(&self) -> &'a Target<'a> {
        match self.output {
            Output::Bytes(target) => target,
            Output::Sums(_) => unreachable!("a convolution that was prepared for outputs"),
        }
    }
}

impl Kernel {
    /// The fastest one there is.
    fn new(
        shape: &Shape,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        if preparation.allows_winograd()
            && let Some(winograd) = Winograd::new(shape, &layer, preparation)?
        {
            return Ok(Self::Winograd(Box::new(winograd)));
        }
        let products = shape.taps().saturating_mul(shape.group_input_channels());
        let variant = Variant::of_rows(preparation.set(), products, shape.output_pixels());
        if variant.is_some_and(Variant::copies_rows)
            && let Some(in_place) = InPlace::new(shape, &layer, preparation)?
        {
            return Ok(Self::InPlace(Box::new(in_place)));
        }
        Self::of_rows(shape, Wanted::Outputs(&layer), variant, preparation)
    }

    /// One that takes all rows.
    fn of_rows(
        shape: &Shape,
        wanted: Wanted<'_>,
        variant: Option<&'static Variant>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        if let Some(variant) = variant
            && let Some(packed) = Packed::new(shape, wanted, variant, preparation)?
        {
            return Ok(Self::Packed(Box::new(packed)));
        }
        Portable::new(shape, wanted, preparation).map(Self::Portable)
    }

    fn method(&self) -> &dyn Method {
        match self {
            Self::Portable(portable) => portable,
            Self::InPlace(in_place) => &**in_place,
            Self::Packed(packed) => &**packed,
            Self::Winograd(winograd) => &**winograd,
        }
    }
}

impl Convolution {
    /// Packs the weights `[output_channels, filter[0], filter[1], input_channels / groups]` and cuts
    /// the work.
    ///
    /// # Errors
    /// If it takes more memory than it may.
    ///
    /// # Panics
    /// If the shape is not valid; if there are not as many weights and biases as it says; if a number
    /// is out of its type's range; if this processor does not have the instruction set.
    pub fn prepare(
        shape: &Shape,
        layer: Layer<'_>,
        preparation: &mut Preparation,
    ) -> Result<Self, TooLarge> {
        shape.check();
        layer.check(shape.filter_values(), shape.output_channels, preparation);
        let signedness = layer.activations.signedness;
        let kernel = Kernel::new(shape, layer, preparation)?;
        Ok(Self { shape: *shape, signedness, kernel })
    }

    /// The instruction set of its kernel.
    pub fn kernel(&self) -> &'static str {
        self.kernel.method().name()
    }

    /// The algorithm, for profiles.
    pub fn algorithm(&self) -> &'static str {
        match &self.kernel {
            Kernel::Portable(_) | Kernel::InPlace(_) | Kernel::Packed(_) => "gemm",
            Kernel::Winograd(_) => "winograd",
        }
    }

    /// How many tasks there are.
    pub(crate) fn tasks(&self) -> usize {
        self.kernel.method().tasks()
    }

    /// Lines of scratch memory that a task wants.
    pub(crate) fn task_lines(&self) -> usize {
        self.kernel.method().task_lines()
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
        let pass = Pass { shape: &self.shape, input, output: Output::Bytes(output), stop };
        // SAFETY: the caller's promise.
        unsafe { self.kernel.method().task(&pass, task, scratch) };
    }
}

/// Input: the image.
impl ImageKernel for Convolution {
    type Element = u8;

    fn name(&self) -> String {
        let (operation, algorithm) = (self.shape.name(false), self.algorithm());
        format!("{operation} {algorithm} {} {}", self.signedness.name(), self.kernel())
    }

    fn run(&self, team: &mut Team, images: Images<'_, u8>, scratch: &mut [Line]) {
        let Images { input, output, .. } = images;
        let values = DisjointOutput::new(output.values);
        let output = Target { values: &values, places: Places::Even(output.pixel_stride) };
        self.check(&input, &output);
        let scratch = (scratch, self.task_lines());
        for_each_task(team, self.tasks(), scratch, |task, scratch, stop| {
            // SAFETY: the images were checked, each task is run once, and there are no other ones.
            unsafe { self.task(input, &output, task, scratch, stop) };
        });
    }

    fn scratch_bytes(&self) -> usize {
        self.tasks() * self.task_lines() * LINE_BYTES
    }

    fn arithmetic(&self) -> u64 {
        self.shape.operations()
    }
}

/// An output, and where its pixels are.
pub(crate) struct Target<'a> {
    pub(crate) values: &'a DisjointOutput<'a, u8>,
    pub(crate) places: Places,
}

impl Target<'_> {
    /// The address of the first of these channels, in pixels at equal distances of which the first one begins at `start`.
    ///
    /// # Panics
    /// If the last channel of the last pixel is not in the output.
    fn pixels(&self, start: usize, count: usize, channels: Range<usize>) -> *mut u8 {
        let last = start + (count - 1) * self.places.stride() + channels.end;
        assert!(last <= self.values.len(), "the output is too small");
        self.values.pointer(start + channels.start)
    }

    /// How many pixels are at equal distances from a pixel on.
    fn in_line(&self, pixel: usize) -> usize {
        match &self.places {
            Places::Even(_) => usize::MAX,
            Places::Lines(placement) => placement.size[1] - pixel % placement.size[1],
        }
    }
}
