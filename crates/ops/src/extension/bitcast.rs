//! BITCAST: the same bytes as elements of another type.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[...]`, or `[..., n]` where an element of the output is as large as n of the input | any |
//! | output 0 | output | `[...]`, or `[..., n]` where an element of the input is as large as n of the output | any |

use super::element_size;
use super::table::ExtensionOperation as E;
use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement;
use crate::shape::Shape;
use crate::signature::Signature;
use nnhal_hal::OperationType;

/// BITCAST.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bitcast;

impl Operation for Bitcast {
    fn signature(_: OperationType) -> &'static Signature {
        E::Bitcast.signature()
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let (input, output) = (call.input(0), call.output(0));
        let size = |it: &crate::Argument<'_>| element_size(it.operand_type).unwrap_or(1).max(1);
        let (from, to) = (size(input), size(output));
        let Some(lengths) = input.shape.lengths() else { return Ok(vec![Shape::UNKNOWN]) };
        let mut lengths = lengths.to_vec();
        if from > to {
            lengths.push(Some(from / to));
        } else if from < to {
            let last = lengths.pop();
            if !matches!(last, Some(None)) && last != Some(Some(to / from)) {
                let expected = format!("{} along the last axis", to / from);
                return Err(input.wrong("shape", &input.shape, expected));
            }
            if lengths.is_empty() {
                lengths.push(Some(1));
            }
        }
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        Ok(vec![movement::copied(call.input(0).bytes()?, call.output(0), dimensions)?])
    }
}
