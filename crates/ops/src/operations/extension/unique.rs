//! UNIQUE: the different elements of a vector, and which of them each element is.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | `[length]` | float32, integers; quantized as stored |
//! | output 0 | values | `[number of different elements]`, as they first appear | as the input |
//! | output 1 | indexes | `[length]`: the position among the values | int32, int64 |
//!
//! Zeros are equal whatever their sign; so are all NaNs. How many values there are only the input says.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::movement::Elements;
use crate::rules::wide::{stored, wide};
use crate::shape::Shape;
use std::collections::HashMap;

/// UNIQUE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Unique;

impl Operation for Unique {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(1)
    }

    fn decode(_: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::new(vec![None]), Shape::new(vec![call.input(0).shape.length(0)])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (input, values, indexes) = (call.input(0), call.output(0), call.output(1));
        let dimensions = input.dimensions()?;
        // What is equal has the same key.
        let keys: Vec<i64> = if input.is_float() {
            let key = |it: f32| {
                let it = if it.is_nan() { f32::NAN } else { it + 0.0 };
                i64::from(if it == 0.0 { 0 } else { it.to_bits() })
            };
            let floats = input.f32s()?;
            call.collect(floats.len(), floats.into_iter().map(key))?
        } else {
            wide(input)?
        };
        // An entry of the map takes more than the two numbers in it.
        call.reserve::<[u64; 4]>(keys.len())?;
        let mut seen: HashMap<i64, i64> = HashMap::new();
        seen.try_reserve(keys.len()).map_err(|_| Fault::OutOfMemory {
            operation: call.operation(),
            bytes: size_of_val(&keys[..]) as u64,
        })?;
        let mut places: Vec<i64> = indexes.allocate(&dimensions)?;
        let mut firsts: Vec<usize> = call.room(keys.len())?;
        for (at, key) in keys.into_iter().enumerate() {
            call.work(8)?;
            let next = i64::try_from(firsts.len()).unwrap_or(i64::MAX);
            let place = *seen.entry(key).or_insert(next);
            if place == next {
                firsts.push(at);
            }
            places.push(place);
        }
        let count = vec![u32::try_from(firsts.len()).unwrap_or(u32::MAX)];
        let mut elements = Elements::to(values, &count)?;
        for first in firsts {
            elements.append(input.bytes()?, first)?;
        }
        Ok(vec![elements.finish(count), stored(indexes, dimensions, &places)?])
    }
}
