//! RESIZE_TO: images of a size that is computed.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[batch, height, width, depth]` | float32, float16, quantized |
//! | input 1 | size | `[2]`: height and width of the output, above 0 | TENSOR_INT32 |
//! | input 2 | method | scalar: 0 bilinear, 1 nearest neighbor | INT32 |
//! | input 3 | align corners? | scalar | BOOL |
//! | input 4 | half pixel centers? | scalar; not with aligned corners | BOOL |
//! | output 0 | output | `[batch, height, width, depth]` | as the input |
//!
//! All else is as RESIZE_BILINEAR's and RESIZE_NEAREST_NEIGHBOR's, whose sizes are scalars.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::operations::resize::{Alignment, Method, Resize, Size};
use crate::rules::layout::Layout;
use crate::shape::Shape;

/// RESIZE_TO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizeTo(Resize);

impl Operation for ResizeTo {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        Resize::validate(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let [size, method] = [1, 2].map(|at| call.input(at));
        let lengths = size.i32s()?;
        let [height, width] = lengths[..] else {
            return Err(size.wrong("shape", &size.shape, "two elements, height and width"));
        };
        let above_0 = |length: i32| {
            let length = u32::try_from(length).ok().filter(|length| *length > 0);
            length.ok_or_else(|| size.wrong("value", format!("{lengths:?}"), "above 0"))
        };
        let method = match method.i32()? {
            0 => Method::Bilinear,
            1 => Method::NearestNeighbor,
            other => return Err(method.wrong("value", other, "0 or 1")),
        };
        Ok(Self(Resize {
            method,
            size: Size::Lengths { height: above_0(height)?, width: above_0(width)? },
            alignment: Alignment::from_flags(call, [3, 4])?,
            layout: Layout::Nhwc,
        }))
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        self.0.output_shapes(call)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.0.reference(call)
    }
}
