//! RNG_BIT_GENERATOR: random bits, and the generator's state after them.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | state | `[2]`, of Philox also `[3]` | TENSOR_UINT64 |
//! | input 1 | shape | `[rank]` | TENSOR_INT32 |
//! | input 2 | algorithm | scalar: 0 Philox, 1 Threefry | INT32 |
//! | output 0 | state | as input 0 | TENSOR_UINT64 |
//! | output 1 | output | as `shape` says | int32, int64, uint32, uint64 |
//!
//! A state is the key, then the counter. Of two words Philox takes the key as the upper half of its counter too.
//! Each counter makes four words, of Threefry two, and then grows by 1: modulo 2^64, its upper half stays.

use super::counter_based::{joined, philox, split, threefry};
use crate::call::{Call, Output};
use crate::error::Fault;
use crate::extension::element_size;
use crate::operation::Operation;
use crate::rules::wide::stored;
use crate::shape::Shape;

/// RNG_BIT_GENERATOR.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RngBitGenerator {
    /// Which function of key and counter it is.
    pub algorithm: Algorithm,
    /// The result's lengths.
    pub shape: Vec<u32>,
}

/// A function of a key and a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Philox 4x32 with 10 rounds.
    Philox,
    /// Threefry 2x32 with 20 rounds.
    Threefry,
}

impl Operation for RngBitGenerator {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(1)?;
        call.input(1).expect_rank(1)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let given = call.input(2);
        let algorithm = match given.i32()? {
            0 => Algorithm::Philox,
            1 => Algorithm::Threefry,
            other => return Err(given.wrong("value", other, "0 or 1")),
        };
        Ok(Self { algorithm, shape: call.input(1).shape_given()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let state = call.input(0);
        let most = if self.algorithm == Algorithm::Philox { 3 } else { 2 };
        if let Some(length) = state.shape.length(0).filter(|it| !(2..=most).contains(it)) {
            return Err(state.wrong("length", length, format!("2 to {most}")));
        }
        Ok(vec![state.shape.clone(), Shape::known(self.shape.iter().copied())])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        self.output_shapes(call)?;
        let (state, after, output) = (call.input(0), call.output(0), call.output(1));
        let (numbers, _) = state.bytes()?.as_chunks();
        let mut numbers: Vec<u64> = numbers.iter().map(|it| u64::from_le_bytes(*it)).collect();
        let (key, [mut low, high]) = match numbers[..] {
            [key, low, high] => (key, [low, high]),
            [key, low] => (key, [low, key]),
            _ => return Err(state.wrong("shape", &state.shape, "2 or 3 elements")),
        };
        // Elements are of one word or of two.
        let is_wide = element_size(output.operand_type) == Some(8);
        let mut words = Vec::new().into_iter();
        let mut word = || {
            words.next().unwrap_or_else(|| {
                let ([first, second], [third, fourth]) = (split(low), split(high));
                words = match self.algorithm {
                    Algorithm::Philox => {
                        philox(split(key), [first, second, third, fourth]).to_vec()
                    }
                    Algorithm::Threefry => threefry(split(key), [first, second]).to_vec(),
                }
                .into_iter();
                low = low.wrapping_add(1);
                words.next().unwrap_or_default()
            })
        };
        let elements = std::iter::repeat_with(|| match is_wide {
            true => joined(word(), word()).cast_signed(),
            false => word().into(),
        });
        let elements = output.collect(&self.shape, elements)?;
        numbers[1] = low;
        let state = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Ok(vec![
            after.with_bytes(vec![u32::try_from(numbers.len()).unwrap_or(u32::MAX)], state),
            stored(output, self.shape.clone(), &elements)?,
        ])
    }
}
