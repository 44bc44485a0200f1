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
//! seeds are 0, every execution uses others that no one can foretell.
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
use nnhal_hal::{HalVersion, OperandType, OperationType};
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
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

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
        let dimensions = self.output_dimensions(call)?;
        let key = key(call.input(2))?;
        let [batches, classes] = logits.lengths_of()?;
        let elements = logits.f32s()?;
        let mut samples = output.allocate(&dimensions)?;
        let mut shares = call.room(classes)?;
        for (stream, batch) in (0..).zip(0..batches).take_while(|_| self.sample_count > 0) {
            cumulative_shares(call, &elements[batch * classes..][..classes], &mut shares)?;
            let total = shares.last().copied().unwrap_or(0.0);
            if total == 0.0 {
                let found = format!("none of {classes} in batch {batch}");
                return Err(logits.wrong("value", found, "a finite number in each batch"));
            }
            let mut generator = ChaCha20Rng::from_seed(key);
            generator.set_stream(stream);
            for _ in 0..self.sample_count {
                // A search among as many as there are, all over the memory, which others may be using as well.
                call.work(128)?;
                let target = unit_interval(generator.next_u64()) * total;
                let class = shares.partition_point(|share| *share <= target);
                samples.push(i32::try_from(class).unwrap_or(i32::MAX));
            }
        }
        Ok(vec![output.with_integers(dimensions, &samples)?])
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
fn cumulative_shares(call: &Call<'_>, logits: &[f32], shares: &mut Vec<f64>) -> Result<(), Fault> {
    let mut greatest = f32::NEG_INFINITY;
    call.each(logits.iter().filter(|logit| logit.is_finite()), |it| greatest = greatest.max(*it))?;
    let greatest = f64::from(greatest);
    let mut total = 0.0;
    shares.clear();
    call.each(logits, |logit| {
        if logit.is_finite() {
            total += (f64::from(*logit) - greatest).exp();
        }
        shares.push(total);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32};
    use nnhal_hal::OperandSpec;

    fn example(logits: OperandSpec, elements: &[f64], samples: i32, seeds: [f64; 2]) -> Example {
        Example::new(OperationType::RandomMultinomial)
            .input(logits, elements)
            .int32s([samples])
            .input(tensor(TensorInt32, [2]), &seeds)
            .output(tensor(TensorInt32, []))
    }

    #[test]
    fn model_25_both_types_came_with_1_2() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let call = example(tensor(operand_type, [1, 1]), &[0.0], 2, [1.0, 2.0]);
            assert_eq!(call.since(), Ok(HalVersion::V1_2));
            assert_eq!(call.result(), (vec![1, 2], vec![0.0, 0.0]));
        }
        let quantized = tensor(OperandType::TensorQuant8Asymm, [1, 1]);
        assert!(example(quantized, &[0.0], 2, [1.0, 2.0]).since().is_err());
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = example(tensor(TensorFloat32, [1, 2]), &[0.0; 2], 2, [1.0, 2.0]);
        assert!(good.run().is_ok());
        assert_eq!(
            good.clone().with_int32(1, -1).refusal(),
            "RANDOM_MULTINOMIAL: value of input 1 (samples) is -1, expected 0 or more"
        );
        assert_eq!(
            good.clone().with_input(0, tensor(TensorFloat32, [2]), &[0.0; 2]).refusal(),
            "RANDOM_MULTINOMIAL: rank of input 0 (logits) is 1, expected 2"
        );
        assert_eq!(
            good.clone().with_input(2, tensor(TensorInt32, [3]), &[0.0; 3]).refusal(),
            "RANDOM_MULTINOMIAL: shape of input 2 (seeds) is [3], expected length 2 along axis 0"
        );
        let nowhere = [f64::NEG_INFINITY, f64::NAN];
        assert_eq!(
            good.clone().with_input(0, tensor(TensorFloat32, [1, 2]), &nowhere).refusal(),
            "RANDOM_MULTINOMIAL: value of input 0 (logits) is none of 2 in batch 0, expected a \
             finite number in each batch"
        );
        assert!(good.with_input(0, tensor(TensorFloat32, [1, 0]), &[]).run().is_err());
    }

    #[test]
    fn the_generator_is_that_of_rfc_8439() {
        // Appendix A.1, test vector 1: key and nonce of zeros, first block.
        let mut generator = ChaCha20Rng::from_seed([0; 32]);
        assert_eq!(
            generator.next_u64().to_le_bytes(),
            [0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]
        );
        assert_eq!(
            generator.next_u64().to_le_bytes(),
            [0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28]
        );
        assert_eq!(unit_interval(1 << 63), 0.5);
        assert_eq!(unit_interval(u64::MAX), 1.0 - f64::EPSILON / 2.0);
        assert_eq!(unit_interval(2047), 0.0);
    }

    #[test]
    fn the_same_seeds_draw_the_same_samples() {
        let draw =
            |seeds| example(tensor(TensorFloat32, [2, 4]), &[0.0; 8], 1000, seeds).result().1;
        let first = draw([7.0, -1.0]);
        assert_eq!(draw([7.0, -1.0]), first);
        assert_ne!(draw([-1.0, 7.0]), first);
        assert_ne!(draw([7.0, 0.0]), first);
        assert_ne!(first[..1000], first[1000..]);
        // Seeds of 0 are other ones each time: alike with a chance of 4^-2000.
        assert_ne!(draw([0.0, 0.0]), draw([0.0, 0.0]));
    }

    #[test]
    fn shares_are_those_of_softmax() {
        let probabilities = [0.5, 0.0, 0.2, 0.3];
        let logits = probabilities.map(|share: f64| share.ln() + 300.0);
        for operand_type in [TensorFloat32, TensorFloat16] {
            // Float16 rounds the logits to quarters: the shares are those of the rounded ones.
            let rounded = match operand_type {
                TensorFloat16 => logits.map(|logit| (logit * 4.0).round() / 4.0),
                _ => logits,
            };
            let weights = rounded.map(|logit| (logit - 300.0).exp());
            let total: f64 = weights.iter().sum();
            let count = 20_000;
            let drawn =
                example(tensor(operand_type, [1, 4]), &logits, count, [3.0, 4.0]).result().1;
            for (class, weight) in (0..).map(f64::from).zip(weights) {
                let (expected, count) = (weight / total, f64::from(count));
                let share = drawn.iter().filter(|it| **it == class).count() as f64 / count;
                // Six standard deviations.
                let bound = 6.0 * (expected * (1.0 - expected) / count).sqrt();
                assert!((share - expected).abs() <= bound, "{class}: {share} for {expected}");
            }
        }
    }

    #[test]
    fn classes_that_are_not_finite_are_never_drawn() {
        let logits = [f64::NEG_INFINITY, f64::NAN, 0.0, f64::INFINITY];
        let drawn = example(tensor(TensorFloat32, [1, 4]), &logits, 100, [1.0, 1.0]).result().1;
        assert_eq!(drawn, [2.0; 100]);
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let good = || example(tensor(TensorFloat32, [1, 2]), &[0.0; 2], 5, [1.0, 2.0]);
        let open = good().with_input_to_come(2, tensor(TensorInt32, [2]));
        assert_eq!(open.shapes(), Ok(vec![Shape::known([1, 5])]));
        let open = good().with_input_to_come(0, tensor(TensorFloat32, [0, 2]));
        assert_eq!(open.shapes(), Ok(vec![Shape::new([None, Some(5)])]));
        let open = good().with_input_to_come(0, tensor(TensorFloat32, []));
        assert_eq!(open.shapes(), Ok(vec![Shape::new([None, Some(5)])]));
        assert_eq!(good().with_int32(1, 0).result(), (vec![1, 0], vec![]));
        let none = good().with_input(0, tensor(TensorFloat32, [0, 2]), &[]);
        assert_eq!(none.result(), (vec![0, 5], vec![]));
    }
}
