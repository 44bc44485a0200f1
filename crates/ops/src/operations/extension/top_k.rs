//! TOP_K: the `k` greatest elements of every slice along the last axis, and their indexes, where `k` is computed.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16, integers, quantized |
//! | input 1 | k | one element, at most the length of the last axis | TENSOR_INT32 |
//! | output 0 | values | the input's with `k` as last length, 0 for a `k` below | as the input; same scale, zero point |
//! | output 1 | indexes | as output 0 | int32 |
//!
//! All else is as TOPK_V2's of the extension, whose `k` is a scalar.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::operations::top_k_v2::TopKV2;
use crate::shape::Shape;

/// TOP_K.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopK(TopKV2);

impl Operation for TopK {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        TopKV2::validate(call)?;
        let k = call.input(1);
        match k.shape.element_count() {
            Some(count) if count != 1 => Err(k.wrong("shape", &k.shape, "one element")),
            _ => Ok(()),
        }
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let k = call.input(1);
        let counts = k.i32s()?;
        let [count] = counts[..] else {
            return Err(k.wrong("shape", &k.shape, "one element"));
        };
        Ok(Self(TopKV2 { k: u32::try_from(count).unwrap_or(0), first_before_last: true }))
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        self.0.output_shapes(call)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.0.reference(call)
    }
}
