//! RANDOM_MULTINOMIAL: classes drawn with probabilities `exp(x[i]) / sum(exp(x[k]))`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | logits | `[batch, classes]` | float32, float16 |
//! | input 1 | samples of each batch | scalar, 0 or more | INT32 |
//! | input 2 | seeds | `[2]` | int32 |
//! | output 0 | output | `[batch, samples]` | int32 |
//!
//! The same seeds draw the same samples, on every machine and in every build: bits come from the
//! stream cipher ChaCha20 (RFC 8439) with the two seeds, little endian, as the first 8 bytes of an
//! otherwise zero key, and the batch's index as nonce. A sample takes the next 64 bits, of which the
//! upper 53 make a number in `[0, 1)`. The interface does not say which generator to use. If both
//! seeds are 0, every execution uses others that nobody can foretell.
//!
//! A class whose logit is not finite is never drawn.
//!
//! Source: `types.hal` 1.2.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use hal::{HalVersion, OperandType, OperationType};
use std::hash::{BuildHasher, RandomState};

/// RANDOM_MULTINOMIAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RandomMultinomial {
    /// How many samples are drawn for each batch.
    pub sample_count: u32,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::RandomMultinomial,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[
            Parameter::column("logits", 0),
            Parameter::int32("samples"),
            Parameter::tensor_int32("seeds"),
        ],
        &[Parameter::tensor_int32("output")],
    )],
};

impl Operation for RandomMultinomial {
    fn signature(_: OperationType) -> &'static Signature {
        &SIGNATURE
    }

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        call.input(0).expect_rank(2)?;
        call.input(2).expect_rank(1)?;
        call.input(2).expect_length(0, Some(2))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { sample_count: call.input(1).non_negative()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let [batch, _] = call.input(0).known_lengths_of()?;
        Ok(vec![Shape::new([batch, Some(self.sample_count)])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (logits, output) = (call.input(0), call.output(0));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| logits.not_known("dimensions"))?;
        let key = key(call.input(2))?;
        let [batches, classes] = logits.lengths_of()?;
        let elements = logits.f32s()?;
        let mut samples = output.allocate(&dimensions)?;
        for (stream, batch) in (0..).zip(0..batches).take_while(|_| self.sample_count > 0) {
            let shares = cumulative_shares(&elements[batch * classes..][..classes]);
            let total = shares.last().copied().unwrap_or(0.0);
            if total == 0.0 {
                let found = format!("none of {classes} in batch {batch}");
                return Err(logits.wrong("value", found, "a finite number in each batch"));
            }
            let mut generator = ChaCha20Rng::from_seed(key);
            generator.set_stream(stream);
            samples.extend((0..self.sample_count).map(|_| {
                let target = unit_interval(generator.next_u64()) * total;
                let class = shares.partition_point(|share| *share <= target);
                i32::try_from(class).unwrap_or(i32::MAX)
            }));
        }
        Ok(vec![output.with_integers(dimensions, &samples)])
    }
}

/// The generator's key.
fn key(seeds: &Argument<'_>) -> Result<[u8; 32], Fault> {
    let first = match seeds.i32s()?[..] {
        // The standard library draws the keys of each new hasher at random.
        [0, 0] => RandomState::new().hash_one(0_u8).to_le_bytes(),
        [low, high] => {
            let ([a, b, c, d], [e, f, g, h]) = (low.to_le_bytes(), high.to_le_bytes());
            [a, b, c, d, e, f, g, h]
        }
        _ => return Err(seeds.wrong("shape", &seeds.shape, "[2]")),
    };
    let mut key = [0; 32];
    key[..first.len()].copy_from_slice(&first);
    Ok(key)
}

/// The number in `[0, 1)` that the upper 53 bits stand for.
#[allow(clippy::cast_precision_loss)] // A double has 53 bits.
fn unit_interval(bits: u64) -> f64 {
    (bits >> 11) as f64 * f64::EPSILON / 2.0
}

/// For each class the share of all classes up to it, multiplied by a number that keeps the greatest
/// within range.
fn cumulative_shares(logits: &[f32]) -> Vec<f64> {
    let finite = logits.iter().copied().filter(|logit| logit.is_finite());
    let greatest = f64::from(finite.fold(f32::NEG_INFINITY, f32::max));
    let mut total = 0.0;
    let share = |logit: &f32| {
        if logit.is_finite() {
            total += (f64::from(*logit) - greatest).exp();
        }
        total
    };
    logits.iter().map(share).collect()
}
