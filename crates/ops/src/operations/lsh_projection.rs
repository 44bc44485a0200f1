//! LSH_PROJECTION: bits that are alike for inputs that are alike (locality-sensitive hashing).
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | seeds | `[functions, bits]` | float32, float16 |
//! | input 1 | input | any; the first axis counts items | float32, float16, int32, TENSOR_QUANT8_ASYMM |
//! | input 2 | weights, optional | `[items]` | as the seeds; 1 where left out |
//! | input 3 | projection | scalar | INT32: 1 sparse without offsets, 2 dense, 3 sparse |
//! | output 0 | output | `[functions]` sparse, `[functions * bits]` dense | int32 |
//!
//! Each seed makes a bit: 1 if the sum of `weight * hash` over the items is above 0. The hash is the
//! [fingerprint](crate::rules::fingerprint) of the seed as a float32 followed by the item's bytes,
//! as a signed number; sums are in double precision.
//!
//! Dense, the output is the bits. Sparse, it is a number for each function, made of its bits, the
//! first one highest; and function `i` adds `i * 2^bits`, so that no two give the same number. An
//! input without elements makes no bit 1.
//!
//! Source: `types.hal` 1.0, 1.2 (float16, offsets).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::fingerprint::fingerprint64;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// What becomes of the bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Projection {
    /// A number for each function, without offsets: what "sparse" meant before 1.2.
    SparseDeprecated,
    /// All bits, one an element.
    Dense,
    /// A number for each function, with offsets.
    Sparse,
}

/// LSH_PROJECTION.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LshProjection {
    /// What becomes of the bits.
    pub projection: Projection,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::LshProjection,
    rows: &[
        Row::new(HalVersion::V1_0, &[TensorFloat32, TensorFloat32]),
        Row::new(HalVersion::V1_0, &[TensorFloat32, TensorInt32]),
        Row::new(HalVersion::V1_0, &[TensorFloat32, TensorQuant8Asymm]),
        Row::new(HalVersion::V1_2, &[TensorFloat32, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat16]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorFloat32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorInt32]),
        Row::new(HalVersion::V1_2, &[TensorFloat16, TensorQuant8Asymm]),
    ],
    forms: &[Form::new(
        HalVersion::V1_0,
        &[
            Parameter::column("seeds", 0),
            Parameter::column("input", 1),
            Parameter::column("weights", 0).omittable(),
            Parameter::int32("projection"),
        ],
        &[Parameter::tensor_int32("output")],
    )],
};

/// Bits that an output element has.
const MOST_BITS: u32 = i32::BITS;

impl Operation for LshProjection {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (seeds, input) = (call.input(0), call.input(1));
        seeds.expect_rank(2)?;
        input.expect_rank_in(1..=usize::MAX)?;
        if let Some(weights) = call.optional(2) {
            weights.expect_rank(1)?;
            weights.expect_length(0, input.shape.length(0))?;
        }
        Ok(())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let projection = match call.input(3).i32()? {
            1 => Projection::SparseDeprecated,
            2 => Projection::Dense,
            3 => Projection::Sparse,
            other => {
                let expected = "1 (sparse without offsets), 2 (dense) or 3 (sparse)";
                return Err(call.input(3).wrong("value", other, expected));
            }
        };
        Ok(Self { projection })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let seeds = call.input(0);
        let [functions, bits] = seeds.known_lengths_of()?;
        if self.projection == Projection::Dense {
            let (Some(functions), Some(bits)) = (functions, bits) else {
                return Ok(vec![Shape::of_rank(1)]);
            };
            let length = functions
                .checked_mul(bits)
                .ok_or_else(|| seeds.wrong("shape", &seeds.shape, "less than 2^32 bits in all"))?;
            return Ok(vec![Shape::known([length])]);
        }
        // Bits that distinguish the functions, which only the offsets need.
        let for_functions = match (self.projection, functions) {
            (Projection::Sparse, Some(functions @ 1..)) => {
                u32::BITS - (functions - 1).leading_zeros()
            }
            _ => 0,
        };
        let room = MOST_BITS - for_functions;
        if bits.is_some_and(|bits| bits > room) {
            let expected = format!("at most {room} bits of each function");
            return Err(seeds.wrong("shape", &seeds.shape, expected));
        }
        Ok(vec![Shape::new([functions])])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (seeds, output) = (call.input(0), call.output(0));
        let dimensions = self.output_dimensions(call)?;
        let [_, bits_of_each] = seeds.known_lengths_of()?;
        let bits_of_each = bits_of_each.ok_or_else(|| seeds.not_known("dimensions"))?;
        let weights = call.optional(2).map(Argument::f32s).transpose()?;
        let bits = seeds.f32s()?.into_iter();
        let mut bit = Bits::of(call, call.input(1), weights.as_deref())?;
        let bits = bits.map(|seed| bit.of_seed(seed));
        let mut elements: Vec<i32> = output.allocate(&dimensions)?;
        if self.projection == Projection::Dense {
            for bit in bits {
                elements.push(i32::from(bit?));
            }
            return Ok(vec![output.with_integers(dimensions, &elements)?]);
        }
        let mut made = call.room(bits.len())?;
        for bit in bits {
            made.push(bit?);
        }
        let bits: Vec<bool> = made;
        for function in 0..dimensions[0] {
            let first = function as usize * bits_of_each as usize;
            let of_function = &bits[first..first + bits_of_each as usize];
            let number =
                of_function.iter().fold(0_u32, |number, bit| (number << 1) | u32::from(*bit));
            let offset = match self.projection {
                // Shifted out altogether, it is the 0 of the only function.
                Projection::Sparse => function.checked_shl(bits_of_each).unwrap_or(0),
                _ => 0,
            };
            elements.push((offset | number).cast_signed());
        }
        Ok(vec![output.with_integers(dimensions, &elements)?])
    }
}

/// Makes bits of seeds.
struct Bits<'a> {
    call: &'a Call<'a>,
    /// Of the input, by item.
    bytes: &'a [u8],
    items: usize,
    weights: Option<&'a [f32]>,
    /// A seed and behind it an item.
    key: Vec<u8>,
}

impl<'a> Bits<'a> {
    fn of(
        call: &'a Call<'a>,
        input: &Argument<'a>,
        weights: Option<&'a [f32]>,
    ) -> Result<Self, Fault> {
        let items = input.lengths()?.first().copied().unwrap_or(0);
        let bytes = input.bytes()?;
        let length = bytes.len().checked_div(items).unwrap_or(0);
        Ok(Self { call, bytes, items, weights, key: call.room(size_of::<f32>() + length)? })
    }

    /// The bit that a seed makes.
    fn of_seed(&mut self, seed: f32) -> Result<bool, Fault> {
        let Self { call, bytes, items, weights, key } = self;
        call.work(1)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let mut score = 0.0_f64;
        let length = bytes.len().checked_div(*items).unwrap_or(0);
        for item in 0..*items {
            call.work(1 + length)?;
            key.clear();
            key.extend_from_slice(&seed.to_le_bytes());
            key.extend_from_slice(&bytes[item * length..(item + 1) * length]);
            let hash = fingerprint64(call, key)?.cast_signed();
            #[allow(clippy::cast_precision_loss)] // The rounding is part of the definition.
            let hash = hash as f64;
            score += weights.map_or(1.0, |weights| f64::from(weights[item])) * hash;
        }
        Ok(score > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};

    const SPARSE_DEPRECATED: i32 = 1;
    const DENSE: i32 = 2;
    const SPARSE: i32 = 3;
    /// Two functions of three bits.
    const SEEDS: [f64; 6] = [0.125, -0.5, 1.0, 2.5, -3.0, 7.25];
    const WEIGHTS: [f64; 3] = [0.25, -1.0, 2.0];

    fn example(
        of_seeds: OperandType,
        (of_input, dimensions, elements): (OperandType, &[u32], &[f64]),
        is_weighted: bool,
        projection: i32,
    ) -> Example {
        let call = Example::new(OperationType::LshProjection)
            .input(tensor(of_seeds, [2, 3]), &SEEDS)
            .input(tensor(of_input, dimensions), elements);
        let call = if is_weighted {
            call.input(tensor(of_seeds, [3]), &WEIGHTS)
        } else {
            call.omitted(tensor(of_seeds, [0]))
        };
        call.int32s([projection]).output(tensor(TensorInt32, []))
    }

    fn integers(projection: i32) -> Example {
        let input = (TensorInt32, &[3][..], &[12345.0, -54321.0, 67890.0][..]);
        example(TensorFloat32, input, false, projection)
    }

    #[test]
    fn model_25_each_pair_of_types_came_with_its_version() {
        for (of_seeds, of_input, expected) in [
            (TensorFloat32, TensorFloat32, Some(HalVersion::V1_0)),
            (TensorFloat32, TensorInt32, Some(HalVersion::V1_0)),
            (TensorFloat32, TensorQuant8Asymm, Some(HalVersion::V1_0)),
            (TensorFloat32, TensorFloat16, Some(HalVersion::V1_2)),
            (TensorFloat16, TensorFloat16, Some(HalVersion::V1_2)),
            (TensorFloat16, TensorFloat32, Some(HalVersion::V1_2)),
            (TensorFloat16, TensorInt32, Some(HalVersion::V1_2)),
            (TensorFloat16, TensorQuant8Asymm, Some(HalVersion::V1_2)),
            (TensorInt32, TensorInt32, None),
            (TensorFloat32, OperandType::TensorBool8, None),
        ] {
            for is_weighted in [false, true] {
                let input = (of_input, &[3][..], &[0.0; 3][..]);
                let since = example(of_seeds, input, is_weighted, DENSE).since();
                assert_eq!(since.ok(), expected, "{of_seeds} {of_input}");
            }
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let good = integers(SPARSE);
        assert_eq!(
            good.clone().with_input(0, tensor(TensorFloat32, [6]), &SEEDS).refusal(),
            "LSH_PROJECTION: rank of input 0 (seeds) is 1, expected 2"
        );
        assert_eq!(
            good.clone().with_input(2, tensor(TensorFloat32, [2]), &[1.0, 1.0]).refusal(),
            "LSH_PROJECTION: shape of input 2 (weights) is [2], expected length 3 along axis 0"
        );
        for projection in [0, 4, -1] {
            assert_eq!(
                good.clone().with_int32(3, projection).refusal(),
                format!(
                    "LSH_PROJECTION: value of input 3 (projection) is {projection}, \
                     expected 1 (sparse without offsets), 2 (dense) or 3 (sparse)"
                )
            );
        }
    }

    #[test]
    fn numbers_have_32_bits() {
        let with_seeds = |functions: u32, bits: u32, projection| {
            let seeds = vec![1.0; (functions * bits) as usize];
            integers(projection).with_input(0, tensor(TensorFloat32, [functions, bits]), &seeds)
        };
        assert_eq!(
            with_seeds(3, 31, SPARSE).refusal(),
            "LSH_PROJECTION: shape of input 0 (seeds) is [3, 31], \
             expected at most 30 bits of each function"
        );
        assert!(with_seeds(1, 33, SPARSE_DEPRECATED).refusal().contains("at most 32 bits"));
        // Of equal seeds all bits are the same; this one's is 1.
        assert_eq!(with_seeds(1, 32, SPARSE).result().1, [-1.0]);
        assert_eq!(with_seeds(2, 32, SPARSE_DEPRECATED).result().1, [-1.0, -1.0]);
        assert_eq!(with_seeds(2, 31, SPARSE).result().1, [f64::from(i32::MAX), -1.0]);
        assert_eq!(with_seeds(1, 33, DENSE).result(), (vec![33], vec![1.0; 33]));
        assert_eq!(with_seeds(0, 9, SPARSE).result(), (vec![0], vec![]));
        assert_eq!(with_seeds(2, 0, SPARSE).result(), (vec![2], vec![0.0, 1.0]));
    }

    #[test]
    fn every_type_as_tensorflow_hashes_it() {
        // The bits by the formula above, with hashes of TensorFlow's `Fingerprint`; without and
        // with weights.
        let cases = [
            (
                TensorInt32,
                &[3][..],
                &[12345.0, -54321.0, 67890.0][..],
                [1, 1, 1, 1, 0, 0],
                [0, 1, 0, 1, 1, 0],
            ),
            (
                TensorInt32,
                &[3, 2],
                &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
                [0, 1, 0, 0, 0, 1],
                [1, 1, 1, 1, 1, 0],
            ),
            (TensorFloat32, &[3], &[1.5, -2.0, 8.0], [0, 1, 1, 1, 1, 0], [1, 0, 1, 0, 1, 1]),
            (TensorFloat16, &[3], &[1.5, -2.0, 8.0], [0, 0, 1, 1, 0, 1], [0, 1, 1, 1, 1, 0]),
            (TensorQuant8Asymm, &[3], &[1.0, 2.0, 3.0], [1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 0, 1]),
        ];
        for (operand_type, dimensions, elements, plain, weighted) in cases {
            for of_seeds in [TensorFloat32, TensorFloat16] {
                for (is_weighted, bits) in [(false, plain), (true, weighted)] {
                    let input = (operand_type, dimensions, elements);
                    let found = example(of_seeds, input, is_weighted, DENSE).result();
                    assert_eq!(found, (vec![6], bits.map(f64::from).to_vec()), "{operand_type}");
                }
            }
        }
    }

    #[test]
    fn sparse_numbers_are_made_of_the_bits() {
        // 111 and 100; the second function adds 1000.
        assert_eq!(integers(SPARSE_DEPRECATED).result(), (vec![2], vec![7.0, 4.0]));
        assert_eq!(integers(SPARSE).result(), (vec![2], vec![7.0, 12.0]));
    }

    #[test]
    fn an_input_without_elements_makes_no_bit() {
        for dimensions in [&[0, 2][..], &[3, 0]] {
            let call = example(TensorFloat32, (TensorInt32, dimensions, &[]), false, DENSE);
            assert_eq!(call.result(), (vec![6], vec![0.0; 6]));
        }
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shape = |dimensions: &[u32], projection| {
            let seeds = tensor(TensorFloat32, dimensions);
            let call = integers(projection).with_input_to_come(0, seeds);
            call.shapes().map(|mut shapes| shapes.swap_remove(0))
        };
        assert_eq!(shape(&[5, 7], DENSE), Ok(Shape::known([35])));
        assert_eq!(shape(&[5, 0], DENSE), Ok(Shape::of_rank(1)));
        assert_eq!(shape(&[], DENSE), Ok(Shape::of_rank(1)));
        assert_eq!(shape(&[5, 0], SPARSE), Ok(Shape::known([5])));
        assert_eq!(shape(&[0, 9], SPARSE), Ok(Shape::of_rank(1)));
        assert!(shape(&[65536, 65536], DENSE).is_err());
        assert!(shape(&[0, 40], SPARSE).is_err());
    }
}
