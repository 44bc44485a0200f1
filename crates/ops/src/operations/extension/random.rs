//! RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL: random numbers, and the generator's state after them.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | shape | `[rank]` | TENSOR_INT32 |
//! | input 0 of MULTINOMIAL | logits | `[batch, classes]` | TENSOR_FLOAT32 |
//! | input 1 of MULTINOMIAL | count | `[1]`, 0 or more | TENSOR_INT32 |
//! | last input | state | `[6]` | TENSOR_INT32 |
//! | output 0 | output | as `shape` says; of MULTINOMIAL `[batch, count]` | TENSOR_FLOAT32; of MULTINOMIAL int32, int64 |
//! | output 1 | state | `[6]` | TENSOR_INT32 |
//!
//! The state is a counter of four words, the lowest first, and a key of two. Each counter makes four words by
//! Philox (Salmon and others, 2011); the numbers are made of these words as TensorFlow makes them. Uniform numbers
//! are in `0..1`. Classes have probabilities in proportion to the exponentials of their logits; one that is not
//! finite has none.

use super::counter_based::{joined, philox, split};
use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::extension::ExtensionOperation as E;
use crate::operation::Operation;
use crate::rules::real;
use crate::rules::wide::stored;
use crate::shape::Shape;

/// RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Random {
    /// RANDOM_UNIFORM of these lengths.
    Uniform(Vec<u32>),
    /// RANDOM_STANDARD_NORMAL of these lengths.
    StandardNormal(Vec<u32>),
    /// MULTINOMIAL with this number of classes in each row of logits.
    Multinomial(u32),
}

/// The words of a state.
pub const STATE_WORDS: u32 = 6;

/// What MULTINOMIAL moves on by, for each word that it takes.
const SKIPPED_FOR_WORD: u64 = 2 * 256;

impl Operation for Random {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let state = if E::of(call.operation()) == Some(E::Multinomial) {
            call.input(0).expect_rank(2)?;
            call.input(1).expect_rank(1)?;
            call.input(1).expect_length(0, Some(1))?;
            call.input(2)
        } else {
            call.input(0).expect_rank(1)?;
            call.input(1)
        };
        state.expect_rank(1)?;
        state.expect_length(0, Some(STATE_WORDS))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match E::of(call.operation()) {
            Some(E::Multinomial) => {
                let given = call.input(1);
                match given.i32s()?[..] {
                    [count] => Self::Multinomial(
                        u32::try_from(count)
                            .map_err(|_| given.wrong("value", count, "0 or more"))?,
                    ),
                    _ => return Err(given.wrong("shape", &given.shape, "one element")),
                }
            }
            Some(E::RandomStandardNormal) => Self::StandardNormal(call.input(0).shape_given()?),
            _ => Self::Uniform(call.input(0).shape_given()?),
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let numbers = match self {
            Self::Uniform(shape) | Self::StandardNormal(shape) => {
                Shape::known(shape.iter().copied())
            }
            Self::Multinomial(count) => {
                Shape::new(vec![call.input(0).shape.length(0), Some(*count)])
            }
        };
        Ok(vec![numbers, Shape::known([STATE_WORDS])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let dimensions = self.output_dimensions(call)?;
        let (output, after) = (call.output(0), call.output(1));
        let mut generator =
            Generator::of(call.input(if matches!(self, Self::Multinomial(_)) { 2 } else { 1 }))?;
        let numbers = match self {
            Self::Uniform(_) => {
                let mut words = generator.words();
                let numbers = std::iter::repeat_with(|| uniform(words()));
                output.with_f32s(dimensions.clone(), &output.collect(&dimensions, numbers)?)?
            }
            Self::StandardNormal(_) => {
                let mut words = generator.words();
                let mut second = None;
                let numbers = std::iter::repeat_with(|| match second.take() {
                    Some(second) => second,
                    None => {
                        let pair = standard_normal([words(), words()]);
                        second = Some(pair[1]);
                        pair[0]
                    }
                });
                output.with_f32s(dimensions.clone(), &output.collect(&dimensions, numbers)?)?
            }
            Self::Multinomial(count) => {
                let [batch, classes] = call.input(0).lengths_of()?;
                let mut copy = generator;
                let mut words = copy.words();
                let mut found: Vec<i64> = output.allocate(&dimensions)?;
                let logits = call.input(0).f32s()?;
                for row in 0..batch {
                    let logits = &logits[row * classes..(row + 1) * classes];
                    let sums = cumulative(call, logits)?;
                    let total = sums.last().copied().unwrap_or(0.0);
                    for _ in 0..*count {
                        // A search all over the memory.
                        call.work(128)?;
                        let place = unit(words(), words()) * total;
                        let class = sums.partition_point(|sum| *sum <= place);
                        found.push(i64::try_from(class).unwrap_or(i64::MAX));
                    }
                }
                // As far for any number of words that a row may take.
                let taken = (batch as u64).wrapping_mul(u64::from(*count).next_multiple_of(4));
                generator.skip(taken.wrapping_mul(SKIPPED_FOR_WORD));
                let numbers = stored(output, dimensions, &found)?;
                return Ok(vec![numbers, generator.state(after)]);
            }
        };
        let elements = dimensions.iter().map(|length| u64::from(*length)).product::<u64>();
        let mut moved = Generator::of(call.input(1))?;
        moved.skip(elements.div_ceil(4));
        Ok(vec![numbers, moved.state(after)])
    }
}

/// The sums of probabilities up to each class, in any unit.
fn cumulative(call: &Call<'_>, logits: &[f32]) -> Result<Vec<f64>, Fault> {
    let finite = logits.iter().copied().filter(|logit| logit.is_finite());
    let greatest = f64::from(finite.fold(f32::MIN, f32::max));
    let mut sum = 0.0;
    let mut sums = call.room(logits.len())?;
    call.each(logits, |logit| {
        if logit.is_finite() {
            sum += (f64::from(*logit) - greatest).exp();
        }
        sums.push(sum);
    })?;
    Ok(sums)
}

/// A generator at one place of its sequence.
#[derive(Debug, Clone, Copy)]
struct Generator {
    counter: [u32; 4],
    key: [u32; 2],
}

impl Generator {
    fn of(state: &Argument<'_>) -> Result<Self, Fault> {
        match state.i32s()?[..] {
            [a, b, c, d, e, f] => Ok(Self {
                counter: [a, b, c, d].map(i32::cast_unsigned),
                key: [e, f].map(i32::cast_unsigned),
            }),
            _ => Err(state.wrong("shape", &state.shape, "6 elements")),
        }
    }

    /// Its words one by one.
    fn words(&mut self) -> impl FnMut() -> u32 {
        let mut generator = *self;
        let mut left = [0; 4];
        let mut used = 4;
        move || {
            if used == 4 {
                left = philox(generator.key, generator.counter);
                generator.skip(1);
                used = 0;
            }
            used += 1;
            left[used - 1]
        }
    }

    fn skip(&mut self, count: u64) {
        let [a, b, c, d] = self.counter;
        let (low, carries) = joined(a, b).overflowing_add(count);
        let high = joined(c, d).wrapping_add(u64::from(carries));
        let ([a, b], [c, d]) = (split(low), split(high));
        self.counter = [a, b, c, d];
    }

    fn state(self, output: &Argument<'_>) -> Output {
        let words = self.counter.iter().chain(&self.key);
        output.with_bytes(vec![STATE_WORDS], words.flat_map(|word| word.to_le_bytes()).collect())
    }
}

/// In `0..1`, of 23 bits.
fn uniform(word: u32) -> f32 {
    f32::from_bits(127 << 23 | word & 0x7F_FFFF) - 1.0
}

/// In `0..1`, of 52 bits.
fn unit(high: u32, low: u32) -> f64 {
    f64::from_bits(1023 << 52 | joined(low, high & 0xF_FFFF)) - 1.0
}

/// The transform of Box and Muller.
fn standard_normal([radius, angle]: [u32; 2]) -> [f32; 2] {
    let radius = f64::from(uniform(radius).max(1e-7));
    let angle = real::round(std::f64::consts::TAU * f64::from(uniform(angle)));
    let radius = real::round((-2.0 * radius.ln()).sqrt());
    let (sin, cos) = f64::from(angle).sin_cos();
    [real::round(sin) * radius, real::round(cos) * radius]
}
