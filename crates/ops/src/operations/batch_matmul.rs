//! BATCH_MATMUL: the matrix product of each pair of slices, `output[...] = x[...] * y[...]`.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | x | `[..., rows, inner]`; `[..., inner, rows]` if transposed | float32, float16, signed quantized, int32 |
//! | input 1 | y | `[..., inner, columns]`; `[..., columns, inner]` if transposed | as x |
//! | input 2, 3 | transpose x, y | scalar | BOOL; left out: false |
//! | output 0 | output | `[..., rows, columns]` | as x |
//!
//! All have the same rank from 2 to 4 and agree in the axes before the last two, of which any may be
//! 0. Rows, inner and columns may not. Integers wrap. The interface speaks of adjoints, which are
//! transposes for real numbers.
//!
//! Source: `OperationType.aidl` of version 2 (feature level 6).

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::convolution::{Requantizer, centred};
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperandType, OperationType};

/// BATCH_MATMUL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchMatmul {
    /// Whether the slices of x are transposed.
    pub transpose_x: bool,
    /// Whether the slices of y are transposed.
    pub transpose_y: bool,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::BatchMatmul,
    rows: &[
        Row::new(HalVersion::FeatureLevel6, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::FeatureLevel6, &[OperandType::TensorFloat16]),
        Row::new(HalVersion::FeatureLevel6, &[OperandType::TensorQuant8AsymmSigned]),
        Row::new(HalVersion::FeatureLevel6, &[OperandType::TensorInt32]),
    ],
    forms: &[Form::new(
        HalVersion::FeatureLevel6,
        &[
            Parameter::column("x", 0),
            Parameter::column("y", 0),
            Parameter::bool("transpose x").omittable(),
            Parameter::bool("transpose y").omittable(),
        ],
        &[Parameter::column("output", 0)],
    )],
};

/// Lengths of the matrices.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    rows: usize,
    inner: usize,
    columns: usize,
}

impl Operation for BatchMatmul {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        expect_ranks(call)
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { transpose_x: call.optional_bool(2)?, transpose_y: call.optional_bool(3)? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        expect_ranks(call)?;
        let (x, y) = (call.input(0), call.input(1));
        let Some(rank) = x.shape.rank().or(y.shape.rank()) else {
            return Ok(vec![Shape::UNKNOWN]);
        };
        let matrix = |shape: &Shape, is_transposed| {
            let (upper, lower) = (shape.length(rank - 2), shape.length(rank - 1));
            if is_transposed { (lower, upper) } else { (upper, lower) }
        };
        let (rows, inner) = matrix(&x.shape, self.transpose_x);
        let (inner_of_y, columns) = matrix(&y.shape, self.transpose_y);
        for (argument, lengths) in [(x, [rows, inner]), (y, [inner_of_y, columns])] {
            if lengths.contains(&Some(0)) {
                return Err(argument.wrong(
                    "shape",
                    &argument.shape,
                    "matrices that are not empty",
                ));
            }
        }
        let mut lengths = Vec::with_capacity(rank);
        for axis in 0..rank - 2 {
            y.expect_length(axis, x.shape.length(axis))?;
            lengths.push(x.shape.length(axis).or(y.shape.length(axis)));
        }
        if let (Some(inner), Some(of_y)) = (inner, inner_of_y)
            && inner != of_y
        {
            return Err(call.wrong(
                "shapes",
                format!("{} and {}", x.shape, y.shape),
                format!("matrices that can be multiplied, not {inner} columns by {of_y} rows"),
            ));
        }
        lengths.extend([rows, columns]);
        Ok(vec![Shape::new(lengths)])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (x, y, output) = (call.input(0), call.input(1), call.output(0));
        let shape = self.output_shapes(call)?.swap_remove(0);
        let dimensions = shape.to_known().ok_or_else(|| call.not_known("dimensions"))?;
        let lengths = x.lengths()?;
        let [.., upper, lower] = lengths[..] else { return Err(x.wrong("rank", &x.shape, 2)) };
        let columns = dimensions.last().map_or(0, |length| *length as usize);
        let (rows, inner) = if self.transpose_x { (lower, upper) } else { (upper, lower) };
        let sizes = Sizes { rows, inner, columns };
        Ok(vec![if output.is_float() {
            let (x, y) = (x.f32s()?, y.f32s()?);
            let elements =
                self.multiply(sizes, &x, &y, output.allocate(&dimensions)?, |products| {
                    // Summed in double precision and rounded once.
                    let mut sum = -0.0;
                    call.each(products, |(x, y)| sum += f64::from(x) * f64::from(y))?;
                    Ok(real::round(sum))
                })?;
            output.with_f32s(dimensions, &elements)?
        } else {
            let requantizer = output
                .is_quantized()
                .then(|| Requantizer::new(x, y, output, FusedActivation::None));
            let (x, y) = (centred(x)?, centred(y)?);
            let elements =
                self.multiply(sizes, &x, &y, output.allocate(&dimensions)?, |products| {
                    let mut sum = 0_i32;
                    call.each(products, |(x, y)| sum = sum.wrapping_add(x.wrapping_mul(y)))?;
                    let stored = requantizer.as_ref().map(|requantizer| requantizer.stored(sum, 0));
                    Ok(stored.unwrap_or(sum))
                })?;
            output.with_integers(dimensions, &elements)?
        }])
    }
}

impl BatchMatmul {
    /// Appends every element of the output, each made by `sum` from the pairs that it is the sum of
    /// the products of.
    fn multiply<T: Copy>(
        &self,
        Sizes { rows, inner, columns }: Sizes,
        x: &[T],
        y: &[T],
        mut elements: Vec<T>,
        sum: impl Fn(&mut dyn Iterator<Item = (T, T)>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let slices = x.chunks_exact(rows * inner).zip(y.chunks_exact(inner * columns));
        for (x, y) in slices {
            for row in 0..rows {
                for column in 0..columns {
                    let mut pairs = (0..inner).map(|k| {
                        let of_x = if self.transpose_x { k * rows + row } else { row * inner + k };
                        let of_y = if self.transpose_y {
                            column * inner + k
                        } else {
                            k * columns + column
                        };
                        (x[of_x], y[of_y])
                    });
                    elements.push(sum(&mut pairs)?);
                }
            }
        }
        Ok(elements)
    }
}

/// Checks that both inputs have the same rank from 2 to 4, as far as it is known.
fn expect_ranks(call: &Call<'_>) -> Result<(), Fault> {
    let (x, y) = (call.input(0), call.input(1));
    x.expect_rank_in(2..=4)?;
    y.expect_rank_in(2..=4)?;
    match x.shape.rank() {
        Some(rank) => y.expect_rank(rank),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_refused, tensor};
    use OperandType::{TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8AsymmSigned};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// [[1, 2, 3], [4, 5, 6]] times [[1, 0], [2, 1], [0, 10]], which is [[5, 32], [14, 65]].
    const X: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const X_TRANSPOSED: [f64; 6] = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    const Y: [f64; 6] = [1.0, 0.0, 2.0, 1.0, 0.0, 10.0];
    const Y_TRANSPOSED: [f64; 6] = [1.0, 2.0, 0.0, 0.0, 1.0, 10.0];
    const PRODUCT: [f64; 4] = [5.0, 32.0, 14.0, 65.0];

    fn example(operand_type: OperandType, x: (&[u32], &[f64]), y: (&[u32], &[f64])) -> Example {
        Example::new(OperationType::BatchMatmul)
            .input(tensor(operand_type, x.0), x.1)
            .input(tensor(operand_type, y.0), y.1)
            .output(tensor(operand_type, []))
    }

    fn plain(operand_type: OperandType) -> Example {
        example(operand_type, (&[2, 3], &X), (&[3, 2], &Y))
    }

    #[test]
    fn values_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16, TensorInt32] {
            let plain = plain(operand_type).bool(false).bool(false);
            assert_eq!(plain.result(), (vec![2, 2], PRODUCT.to_vec()));
        }
        let x = example(TensorFloat32, (&[3, 2], &X_TRANSPOSED), (&[3, 2], &Y));
        assert_eq!(x.bool(true).bool(false).result(), (vec![2, 2], PRODUCT.to_vec()));
        let y = example(TensorFloat32, (&[2, 3], &X), (&[2, 3], &Y_TRANSPOSED));
        assert_eq!(y.bool(false).bool(true).result(), (vec![2, 2], PRODUCT.to_vec()));
        let both = example(TensorInt32, (&[3, 2], &X_TRANSPOSED), (&[2, 3], &Y_TRANSPOSED));
        assert_eq!(both.bool(true).bool(true).result(), (vec![2, 2], PRODUCT.to_vec()));
        let bool = || OperandSpec::scalar(OperandType::Bool);
        let left_out = plain(TensorFloat32).omitted(bool()).omitted(bool());
        assert_eq!(left_out.result().1, PRODUCT);
    }

    #[test]
    fn slices_are_multiplied_in_pairs() {
        let twice = example(
            TensorFloat32,
            (&[2, 1, 1, 2], &[1.0, 2.0, 3.0, 4.0]),
            (&[2, 1, 2, 1], &[10.0, 1.0, 100.0, 1.0]),
        );
        assert_eq!(twice.bool(false).bool(false).result(), (vec![2, 1, 1, 1], vec![12.0, 304.0]));
        let none = example(TensorFloat32, (&[0, 1, 2], &[]), (&[0, 2, 3], &[]));
        assert_eq!(none.bool(false).bool(false).result(), (vec![0, 1, 3], vec![]));
    }

    #[test]
    fn integers_wrap() {
        let wrapped = example(TensorInt32, (&[1, 1], &[65536.0]), (&[1, 1], &[65537.0]));
        assert_eq!(wrapped.bool(false).bool(false).result().1, [65536.0]);
    }

    #[test]
    fn quantized_values_by_hand() {
        let signed = |dimensions: [u32; 2], scale, zero| {
            OperandSpec::tensor_quant8_asymm_signed(dimensions, scale, zero)
        };
        let run = |scale| {
            Example::new(OperationType::BatchMatmul)
                .input(signed([1, 2], 0.5, 1), &[3.0, 5.0])
                .input(signed([2, 1], 0.25, -1), &[3.0, -4.0])
                .bool(false)
                .bool(false)
                .output(signed([0, 0], scale, 10))
                .result()
                .1
        };
        // 2 * 4 - 4 * 3 = -4 steps of 1/8.
        assert_eq!(run(0.125), [6.0]);
        assert_eq!(run(0.25), [8.0]);
        assert_eq!(run(0.001), [-128.0]);
    }

    #[test]
    fn what_is_known_of_the_shape_is_inferred() {
        let shape = |x: &[u32], y: &[u32]| {
            plain(TensorFloat32)
                .bool(false)
                .bool(true)
                .with_input_to_come(0, tensor(TensorFloat32, x))
                .with_input_to_come(1, tensor(TensorFloat32, y))
                .shape()
        };
        assert_eq!(shape(&[0, 2, 3], &[5, 4, 3]), Shape::known([5, 2, 4]));
        assert_eq!(shape(&[2, 0], &[0, 3]), Shape::new([Some(2), None]));
        assert_eq!(shape(&[], &[7, 4, 3]), Shape::new([Some(7), None, Some(4)]));
        assert_eq!(shape(&[7, 4, 3], &[]), Shape::new([Some(7), Some(4), None]));
        assert_eq!(shape(&[], &[]), Shape::UNKNOWN);
    }

    #[test]
    fn every_row_came_with_feature_level_6() {
        let types = [TensorFloat32, TensorFloat16, TensorInt32, TensorQuant8AsymmSigned];
        for operand_type in types {
            let example = plain(operand_type).bool(false).bool(false);
            assert_eq!(example.since(), Ok(HalVersion::FeatureLevel6));
        }
    }

    #[test]
    fn what_the_definition_excludes_is_refused() {
        let plain = || plain(TensorFloat32).bool(false).bool(false);
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let table = [
            (
                plain().with_input(0, float(&[3, 2]), &X),
                "shapes of the operation is [3, 2] and [3, 2], expected matrices that can be",
            ),
            (plain().with_input(0, float(&[1, 2, 3]), &X), "rank of input 1 (y) is 2, expected 3"),
            (plain().with_input(0, float(&[6]), &X), "rank of input 0 (x) is 1, expected 2 to 4"),
            (
                plain().with_input_to_come(0, float(&[])).with_input(1, float(&[1; 5]), &[1.0]),
                "rank of input 1 (y) is 5, expected 2 to 4",
            ),
            (
                plain().with_input(0, float(&[0, 3]), &[]),
                "shape of input 0 (x) is [0, 3], expected matrices that are not empty",
            ),
            (plain().with_input(1, float(&[3, 0]), &[]), "shape of input 1 (y) is [3, 0]"),
            (
                plain().with_input(0, float(&[2, 1, 3]), &X).with_input(1, float(&[1, 3, 2]), &Y),
                "shape of input 1 (y) is [1, 3, 2], expected length 2 along axis 0",
            ),
            (
                plain().with_input(1, tensor(TensorInt32, [3, 2]), &Y),
                "type of input 1 (y) is TENSOR_INT32, expected TENSOR_FLOAT32",
            ),
            (
                plain().with_input(0, OperandSpec::tensor_quant8_asymm([2, 3], 0.5, 0), &X),
                "type of input 0 (x) is TENSOR_QUANT8_ASYMM",
            ),
        ];
        assert_refused(&table);
    }

    proptest! {
        /// The transpose of a product is the product of the transposes the other way round.
        #[test]
        fn transposed_products(
            x in prop::collection::vec(-1000..1000_i32, 6),
            y in prop::collection::vec(-1000..1000_i32, 12),
        ) {
            let floats = |values: &[i32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
            let (x, y) = (floats(&x), floats(&y));
            let product = example(TensorInt32, (&[2, 3], &x), (&[3, 4], &y));
            let (_, product) = product.bool(false).bool(false).result();
            let reverse = example(TensorInt32, (&[3, 4], &y), (&[2, 3], &x));
            let (dimensions, reverse) = reverse.bool(true).bool(true).result();
            prop_assert_eq!(dimensions, [4, 2]);
            for (index, element) in product.iter().enumerate() {
                prop_assert_eq!(*element, reverse[(index % 4) * 2 + index / 4]);
            }
        }
    }
}
