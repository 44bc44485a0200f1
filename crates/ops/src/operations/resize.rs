//! RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR: images of another size.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]`, or NCHW; only the batch may be 0 | float32, float16, quantized |
//! | by size 1, 2 | width, height of the output | scalar, above 0 | INT32 |
//! | by scale 1, 2, from 1.2 | scale of width, height | scalar, above 0 | FLOAT32; FLOAT16 with float16 |
//! | 3, from 1.2 | NCHW? | scalar | BOOL; RESIZE_BILINEAR: default false |
//! | 4, from 1.3 | align corners? | scalar | BOOL, default false |
//! | 5, from 1.3 | half pixel centers? | scalar | BOOL, default false; not with aligned corners |
//! | output 0 | output | `[batch, height, width, depth]`, or NCHW | as the input |
//!
//! By scale, a length is `floor(length * scale)`. Index `i` of the output is at `i * ratio` of the
//! input, or at `(i + 0.5) * ratio - 0.5` with half pixel centers. The ratio is `in / out`, or
//! `(in - 1) / (out - 1)` with aligned corners and more than one output. All this is float32
//! arithmetic as in the reference implementation: where a position falls on an edge between two
//! pixels, its rounding decides which one is the nearest.
//!
//! Source: `types.hal` 1.0, 1.2 (RESIZE_NEAREST_NEIGHBOR, by scale, layout, float16, quantized, zero
//! batch), 1.3 (corners, centers, signed).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::layout::Layout;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{
    Float16, Float32, TensorFloat16, TensorFloat32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// How an output pixel follows from the input's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// RESIZE_BILINEAR: the mean of the four pixels around its position, weighted by distance.
    Bilinear,
    /// RESIZE_NEAREST_NEIGHBOR: the pixel at its position.
    NearestNeighbor,
}

/// What the output's height and width are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// In pixels, above 0.
    Lengths {
        /// Pixels from top to bottom.
        height: u32,
        /// Pixels from left to right.
        width: u32,
    },
    /// As multiples of the input's, above 0.
    Scales {
        /// Factor of the height.
        height: f32,
        /// Factor of the width.
        width: f32,
    },
}

/// How positions of the output are related to positions of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Alignment {
    /// The upper left corners of the first pixels coincide, and so do the lower right corners of
    /// the last ones.
    Edges,
    /// The centers of the first pixels coincide, and so do those of the last ones.
    Corners,
    /// As `Edges`, where a pixel's position is its center and not its upper left corner.
    HalfPixelCenters,
}

impl Alignment {
    /// What the arguments at two places say: whether corners are aligned, and whether pixels' centers are.
    pub(crate) fn from_flags(
        call: &Call<'_>,
        [corners, centers]: [usize; 2],
    ) -> Result<Self, Fault> {
        Ok(match (call.optional_bool(corners)?, call.optional_bool(centers)?) {
            (false, false) => Self::Edges,
            (true, false) => Self::Corners,
            (false, true) => Self::HalfPixelCenters,
            (true, true) => {
                let expected = "false where corners are aligned";
                return Err(call.input(centers).wrong("value", true, expected));
            }
        })
    }
}

/// RESIZE_BILINEAR or RESIZE_NEAREST_NEIGHBOR.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resize {
    /// How an output pixel follows from the input's.
    pub method: Method,
    /// What the output's height and width are.
    pub size: Size,
    /// Where the input's pixels are.
    pub alignment: Alignment,
    /// Of input and output.
    pub layout: Layout,
}

/// Columns: input and output, scale.
const ROWS: &[Row] = &[
    Row::new(HalVersion::V1_0, &[TensorFloat32, Float32]),
    Row::new(HalVersion::V1_2, &[TensorFloat16, Float16]),
    Row::new(HalVersion::V1_2, &[TensorQuant8Asymm, Float32]),
    Row::new(HalVersion::V1_3, &[TensorQuant8AsymmSigned, Float32]),
];

const fn inputs(width: Parameter, height: Parameter, layout: Parameter) -> [Parameter; 6] {
    [
        Parameter::column("input", 0),
        width,
        height,
        layout,
        Parameter::bool("align corners").trailing(HalVersion::V1_3),
        Parameter::bool("half pixel centers").trailing(HalVersion::V1_3),
    ]
}

const WIDTH: Parameter = Parameter::int32("width");
const HEIGHT: Parameter = Parameter::int32("height");
const WIDTH_SCALE: Parameter = Parameter::column("width scale", 1);
const HEIGHT_SCALE: Parameter = Parameter::column("height scale", 1);
const LAYOUT: Parameter = Parameter::bool("NCHW");
const OPTIONAL_LAYOUT: Parameter = LAYOUT.trailing(HalVersion::V1_2);

const BY_SIZE: &[Parameter] = &inputs(WIDTH, HEIGHT, LAYOUT);
const BY_SCALE: &[Parameter] = &inputs(WIDTH_SCALE, HEIGHT_SCALE, LAYOUT);
const BILINEAR_BY_SIZE: &[Parameter] = &inputs(WIDTH, HEIGHT, OPTIONAL_LAYOUT);
const BILINEAR_BY_SCALE: &[Parameter] = &inputs(WIDTH_SCALE, HEIGHT_SCALE, OPTIONAL_LAYOUT);
const OUTPUTS: &[Parameter] = &[Parameter::column("output", 0)];

static BILINEAR: Signature = Signature {
    operation: OperationType::ResizeBilinear,
    rows: ROWS,
    forms: &[
        Form::new(HalVersion::V1_2, BILINEAR_BY_SCALE, OUTPUTS),
        Form::new(HalVersion::V1_0, BILINEAR_BY_SIZE, OUTPUTS),
    ],
};

static NEAREST_NEIGHBOR: Signature = Signature {
    operation: OperationType::ResizeNearestNeighbor,
    rows: ROWS,
    forms: &[
        Form::new(HalVersion::V1_2, BY_SCALE, OUTPUTS),
        Form::new(HalVersion::V1_2, BY_SIZE, OUTPUTS),
    ],
};

/// Reads the two arguments that say how large the output is, width first.
fn decode_size(width: &Argument<'_>, height: &Argument<'_>) -> Result<Size, Fault> {
    if width.operand_type == OperandType::Int32 {
        return Ok(Size::Lengths { width: width.positive()?, height: height.positive()? });
    }
    let scale = |argument: &Argument<'_>| {
        let scale = argument.f32()?;
        if scale > 0.0 { Ok(scale) } else { Err(argument.wrong("value", scale, "above 0")) }
    };
    Ok(Size::Scales { width: scale(width)?, height: scale(height)? })
}

impl Operation for Resize {
    const SIGNATURES: &'static [&'static Signature] = &[&BILINEAR, &NEAREST_NEIGHBOR];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (input, output) = (call.input(0), call.output(0));
        input.expect_rank(4)?;
        if output.is_quantized() { output.expect_quantized_as(input) } else { Ok(()) }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let method = match call.operation() {
            OperationType::ResizeNearestNeighbor => Method::NearestNeighbor,
            _ => Method::Bilinear,
        };
        Ok(Self {
            method,
            size: decode_size(call.input(1), call.input(2))?,
            alignment: Alignment::from_flags(call, [4, 5])?,
            layout: Layout::from_flag(call.optional_bool(3)?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let [batch, height, width, depth] = self.layout.image_lengths(call.input(0))?;
        let (height, width) = match self.size {
            Size::Lengths { height, width } => (Some(height), Some(width)),
            Size::Scales { height: of_height, width: of_width } => (
                scaled_length(call.input(2), height, of_height)?,
                scaled_length(call.input(1), width, of_width)?,
            ),
        };
        Ok(vec![Shape::new(self.layout.from_nhwc([batch, height, width, depth]))])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let sizes = Sizes {
            input: self.layout.to_nhwc(input.lengths_of()?),
            output: self.layout.to_nhwc([0, 1, 2, 3].map(|axis: usize| dimensions[axis] as usize)),
        };
        if output.is_float() {
            let elements = self.layout.elements_to_nhwc(call, input.f32s()?, sizes.input)?;
            let mut resized = output.allocate(&dimensions)?;
            self.for_each_output(call, &sizes, |neighbors| {
                resized.push(real::round(neighbors.mean(|at| f64::from(elements[at]))));
            })?;
            let resized = self.layout.elements_from_nhwc(call, resized, sizes.output)?;
            return Ok(vec![output.with_f32s(dimensions, &resized)?]);
        }
        let elements = self.layout.elements_to_nhwc(call, input.integers()?, sizes.input)?;
        let mut resized = output.allocate(&dimensions)?;
        self.for_each_output(call, &sizes, |neighbors| {
            // The scale is the input's, so stored values are interpolated. Halves go up: to the
            // same real number whether stored values are signed or not. A mean of stored values
            // is as small as they are.
            let mean = (neighbors.mean(|at| f64::from(elements[at])) + 0.5).floor();
            #[allow(clippy::cast_possible_truncation)]
            resized.push(mean as i32);
        })?;
        let resized = self.layout.elements_from_nhwc(call, resized, sizes.output)?;
        Ok(vec![output.with_integers(dimensions, &resized)?])
    }
}

/// `floor(length * scale)`, at least 1 and at most what an `INT32` could say.
fn scaled_length(
    argument: &Argument<'_>,
    length: Option<u32>,
    scale: f32,
) -> Result<Option<u32>, Fault> {
    let Some(length) = length else { return Ok(None) };
    let product = real::round(length.into()) * scale;
    // The bounds make the conversion exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    if (1.0..2_147_483_648.0).contains(&product) {
        Ok(Some(product as u32))
    } else {
        let found = format!("{scale} for a length of {length}");
        Err(argument.wrong("value", found, "a product from 1 to 2147483647"))
    }
}

/// Lengths in the order batch, height, width, channels.
struct Sizes {
    input: [usize; 4],
    output: [usize; 4],
}

/// Where an index of the output is on an axis of the input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// The index before, or there.
    pub lower: usize,
    /// The index behind, or there.
    pub upper: usize,
    /// How much the upper one counts, 0 to 1; the lower one counts the rest.
    pub weight: f32,
}

/// The four pixels around the position of an output element, and how much the lower and the right
/// ones count.
struct Neighbors {
    positions: [[usize; 2]; 2],
    weights: [f64; 2],
}

impl Neighbors {
    fn mean(&self, element: impl Fn(usize) -> f64) -> f64 {
        let between = |first: f64, second: f64, weight: f64| {
            // A weight of 0 must not let an infinity on the other side through.
            if weight == 0.0 { first } else { first * (1.0 - weight) + second * weight }
        };
        let [vertical, horizontal] = self.weights;
        let [upper, lower] =
            self.positions.map(|[left, right]| between(element(left), element(right), horizontal));
        between(upper, lower, vertical)
    }
}

impl Resize {
    /// Where index `index` of `output` many is on an axis of `input` elements, above 0.
    /// For nearest neighbours both indexes are the one, and the weight is 0.
    // Float32 arithmetic on lengths is what the module's documentation promises; positions are not
    // negative where they become indexes, and cut off at the last one.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn place(&self, index: usize, input: usize, output: usize) -> Place {
        let last = input - 1;
        let ratio = match self.alignment {
            Alignment::Corners if output > 1 => last as f32 / (output - 1) as f32,
            _ => input as f32 / output as f32,
        };
        let position = match self.alignment {
            Alignment::HalfPixelCenters => (index as f32 + 0.5) * ratio,
            _ => index as f32 * ratio,
        };
        match (self.method, self.alignment) {
            (Method::NearestNeighbor, alignment) => {
                let nearest = match alignment {
                    Alignment::Corners => position.round(),
                    _ => position.floor(),
                };
                let nearest = (nearest as usize).min(last);
                Place { lower: nearest, upper: nearest, weight: 0.0 }
            }
            (Method::Bilinear, alignment) => {
                let position = match alignment {
                    Alignment::HalfPixelCenters => position - 0.5,
                    _ => position,
                };
                // Before the first center there is nothing to mix with.
                let lower = (position.max(0.0).floor() as usize).min(last);
                let upper = (position.max(0.0).ceil() as usize).min(last);
                Place { lower, upper, weight: (position - lower as f32).clamp(0.0, 1.0) }
            }
        }
    }

    /// Every output element in NHWC order.
    fn for_each_output(
        &self,
        call: &Call<'_>,
        sizes: &Sizes,
        mut visit: impl FnMut(&Neighbors),
    ) -> Result<(), Fault> {
        let [_, in_height, in_width, depth] = sizes.input;
        let [batches, height, width, _] = sizes.output;
        for batch in 0..batches {
            for vertical in (0..height).map(|y| self.place(y, in_height, height)) {
                for horizontal in (0..width).map(|x| self.place(x, in_width, width)) {
                    let position = |y, x| ((batch * in_height + y) * in_width + x) * depth;
                    let pixels = [vertical.lower, vertical.upper]
                        .map(|y| [position(y, horizontal.lower), position(y, horizontal.upper)]);
                    let weights = [vertical.weight.into(), horizontal.weight.into()];
                    call.each(0..depth, |channel| {
                        let positions = pixels.map(|row| row.map(|pixel| pixel + channel));
                        visit(&Neighbors { positions, weights });
                    })?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
