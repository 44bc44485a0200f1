//! ADD, SUB, MUL, DIV: element by element, with broadcasting and a fused activation.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, 1 | input | any two of rank 4 at most that broadcast | float32, float16, quantized, int32 |
//! | input 2 | activation | scalar | INT32, see [`nnhal_hal::FusedActivation`] |
//! | output 0 | output | the common shape | as the inputs |
//!
//! Quantized (not DIV): `output = requantize(input0 op input1)`. For MUL the output's scale must be
//! above the product of the inputs' scales.
//!
//! Integers take no activation. Sums and products that 32 bits cannot hold wrap. Dividing rounds
//! towards minus infinity; dividing by 0, which the definition leaves open, gives 0 as in the
//! reference implementation, so that a quotient which a SELECT throws away does no harm.
//!
//! Source: `types.hal` 1.0 (ADD, MUL), 1.1 (SUB, DIV), 1.2 and 1.3 (further types).

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::extension::type_name;
use crate::operation::Operation;
use crate::rules::double::{doubles, is_double, with_doubles};
use crate::rules::requantize::Multiplier;
use crate::rules::wide::{is_wide, stored, wide};
use crate::rules::{activation_range, broadcast};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{FusedActivation, HalVersion, OperandType, OperationType};
use std::cmp::Ordering;

/// Which of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// ADD
    Add,
    /// SUB
    Sub,
    /// MUL
    Mul,
    /// DIV
    Div,
}

/// ADD, SUB, MUL or DIV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arithmetic {
    /// Which of the four.
    pub operator: Operator,
    /// What the result is clamped to.
    pub activation: FusedActivation,
}

pub(crate) const FORMS: &[Form] = &[Form::new(
    HalVersion::V1_0,
    &[
        Parameter::column("input0", 0),
        Parameter::column("input1", 0),
        Parameter::int32("activation"),
    ],
    &[Parameter::column("output", 0)],
)];

const FLOAT32: Row = Row::new(HalVersion::V1_0, &[OperandType::TensorFloat32]);
const FLOAT16: Row = Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]);
const QUANT8_SIGNED: Row = Row::new(HalVersion::V1_3, &[OperandType::TensorQuant8AsymmSigned]);
const INT32: Row = Row::new(HalVersion::V1_3, &[OperandType::TensorInt32]);

const fn quant8_since(version: HalVersion) -> Row {
    Row::new(version, &[OperandType::TensorQuant8Asymm])
}

const ADD_OR_MUL_ROWS: &[Row] =
    &[FLOAT32, quant8_since(HalVersion::V1_0), FLOAT16, QUANT8_SIGNED, INT32];

static ADD: Signature =
    Signature { operation: OperationType::Add, rows: ADD_OR_MUL_ROWS, forms: FORMS };
static MUL: Signature =
    Signature { operation: OperationType::Mul, rows: ADD_OR_MUL_ROWS, forms: FORMS };
static SUB: Signature = Signature {
    operation: OperationType::Sub,
    rows: &[FLOAT32, quant8_since(HalVersion::V1_2), FLOAT16, QUANT8_SIGNED, INT32],
    forms: FORMS,
};
static DIV: Signature =
    Signature { operation: OperationType::Div, rows: &[FLOAT32, FLOAT16, INT32], forms: FORMS };

impl Operation for Arithmetic {
    const SIGNATURES: &'static [&'static Signature] = &[&ADD, &MUL, &SUB, &DIV];

    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        a.expect_rank_in(0..=a.most_axes(4))?;
        b.expect_rank_in(0..=b.most_axes(4))?;
        let product = a.scale * b.scale;
        let is_above = output.scale.partial_cmp(&product) == Some(Ordering::Greater);
        if call.definition() == OperationType::Mul && output.is_quantized() && !is_above {
            return Err(output.wrong("scale", output.scale, format!("above {product}")));
        }
        Ok(())
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let operator = match call.definition() {
            OperationType::Mul => Operator::Mul,
            OperationType::Sub => Operator::Sub,
            OperationType::Div => Operator::Div,
            _ => Operator::Add,
        };
        let activation = activation_range::decode(call.input(2))?;
        let (first, is_int32) =
            (call.input(0), call.input(0).operand_type == OperandType::TensorInt32);
        if (is_int32 || is_wide(first) || is_double(first)) && activation != FusedActivation::None {
            let expected = format!("NONE with {}", type_name(first.operand_type));
            return Err(call.input(2).wrong("value", activation, expected));
        }
        Ok(Self { operator, activation })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        Ok(vec![if output.is_float() {
            let (of_a, of_b) = (a.f32s()?, b.f32s()?);
            let range = activation_range::real(self.activation);
            let elements = output.collect(
                &dimensions,
                pairs.map(|(i, j)| activation_range::clamp(self.reals(of_a[i], of_b[j]), range)),
            )?;
            output.with_f32s(dimensions, &elements)?
        } else if is_double(output) {
            let (of_a, of_b) = (doubles(a)?, doubles(b)?);
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| self.doubles(of_a[i], of_b[j])))?;
            with_doubles(output, dimensions, &elements)?
        } else if is_wide(output) {
            let (of_a, of_b) = (wide(a)?, wide(b)?);
            let combine = self.wide_integers();
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| combine(of_a[i], of_b[j])))?;
            stored(output, dimensions, &elements)?
        } else {
            let (of_a, of_b) = (a.integers()?, b.integers()?);
            let combine = self.integers(call);
            let elements =
                output.collect(&dimensions, pairs.map(|(i, j)| combine(of_a[i], of_b[j])))?;
            output.with_integers(dimensions, &elements)?
        }])
    }
}

impl Arithmetic {
    fn reals(&self, a: f32, b: f32) -> f32 {
        match self.operator {
            Operator::Add => a + b,
            Operator::Sub => a - b,
            Operator::Mul => a * b,
            Operator::Div => a / b,
        }
    }

    /// The operation on floats of 64 bits.
    fn doubles(&self, a: f64, b: f64) -> f64 {
        match self.operator {
            Operator::Sub => a - b,
            Operator::Mul => a * b,
            // The extension's DIV is another operation.
            Operator::Add | Operator::Div => a + b,
        }
    }

    /// The operation on integers of the extension's types.
    fn wide_integers(&self) -> fn(i64, i64) -> i64 {
        match self.operator {
            Operator::Sub => i64::wrapping_sub,
            Operator::Mul => i64::wrapping_mul,
            // The extension's DIV is another operation.
            Operator::Add | Operator::Div => i64::wrapping_add,
        }
    }

    /// The operation on stored integers.
    fn integers<'a>(&self, call: &'a Call<'_>) -> Box<dyn Fn(i32, i32) -> i32 + 'a> {
        let (a, b, output) = (call.input(0), call.input(1), call.output(0));
        let range = activation_range::stored(self.activation, output);
        let is_quantized = output.is_quantized();
        match self.operator {
            Operator::Add if !is_quantized => Box::new(i32::wrapping_add),
            Operator::Sub if !is_quantized => Box::new(i32::wrapping_sub),
            Operator::Mul if !is_quantized => Box::new(i32::wrapping_mul),
            Operator::Div => Box::new(floor_div),
            Operator::Mul => {
                let real = f64::from(a.scale * b.scale) / f64::from(output.scale);
                let multiplier = Multiplier::from_real(real);
                Box::new(move |x, y| {
                    let product = (x - a.zero_point) * (y - b.zero_point);
                    let stored = output.zero_point.saturating_add(multiplier.apply(product));
                    stored.clamp(range.0, range.1)
                })
            }
            Operator::Add | Operator::Sub => {
                let sum = QuantizedSum::new(a, b, output);
                let sign = if self.operator == Operator::Sub { -1 } else { 1 };
                Box::new(move |x, y| sum.stored(x, y, sign).clamp(range.0, range.1))
            }
        }
    }
}

/// Rounded towards minus infinity; 0 for a divisor of 0. The one quotient that 32 bits cannot hold
/// wraps.
fn floor_div(x: i32, y: i32) -> i32 {
    if y == 0 {
        return 0;
    }
    let quotient = x.wrapping_div(y);
    let inexact = x.wrapping_rem(y) != 0;
    if inexact && (x < 0) != (y < 0) { quotient - 1 } else { quotient }
}

/// Sums of stored values of different scales: both are brought to twice the greater scale, with 20
/// more bits to round in, and the sum to the output's.
struct QuantizedSum {
    offsets: [i32; 3],
    multipliers: [Multiplier; 3],
}

impl QuantizedSum {
    const EXTRA_BITS: i32 = 20;

    fn new(a: &Argument<'_>, b: &Argument<'_>, output: &Argument<'_>) -> Self {
        let common = 2.0 * f64::from(a.scale.max(b.scale));
        let extra = f64::from(1 << Self::EXTRA_BITS);
        Self {
            offsets: [a.zero_point, b.zero_point, output.zero_point],
            multipliers: [
                Multiplier::from_real(f64::from(a.scale) / common),
                Multiplier::from_real(f64::from(b.scale) / common),
                Multiplier::from_real(common / (extra * f64::from(output.scale))),
            ],
        }
    }

    fn stored(&self, x: i32, y: i32, sign_of_y: i32) -> i32 {
        let x = self.multipliers[0].apply((x - self.offsets[0]) << Self::EXTRA_BITS);
        let y = self.multipliers[1].apply((y - self.offsets[1]) << Self::EXTRA_BITS);
        let sum = self.multipliers[2].apply(x + sign_of_y * y);
        sum.saturating_add(self.offsets[2])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperandType::{
        TensorFloat16, TensorFloat32, TensorInt32, TensorQuant8Asymm, TensorQuant8AsymmSigned,
    };
    use OperationType::{Add, Div, Mul, Sub};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    /// A call on two vectors of their own types, without an activation.
    fn example(
        operation: OperationType,
        a: (OperandSpec, &[f64]),
        b: (OperandSpec, &[f64]),
    ) -> Example {
        let output = OperandSpec { dimensions: vec![], ..a.0.clone() };
        let output = if output.scale == 0.0 { output } else { output.quantized(10.0, 0) };
        Example::new(operation).input(a.0, a.1).input(b.0, b.1).int32s([0]).output(output)
    }

    #[test]
    fn model_25_each_type_came_with_its_version() {
        use HalVersion::{V1_0, V1_1, V1_2, V1_3};
        let expected = [
            (Add, TensorFloat32, Some(V1_0)),
            (Add, TensorFloat16, Some(V1_2)),
            (Add, TensorQuant8Asymm, Some(V1_0)),
            (Add, TensorQuant8AsymmSigned, Some(V1_3)),
            (Add, TensorInt32, Some(V1_3)),
            (Add, OperandType::TensorBool8, None),
            (Mul, TensorFloat32, Some(V1_0)),
            (Mul, TensorFloat16, Some(V1_2)),
            (Mul, TensorQuant8Asymm, Some(V1_0)),
            (Mul, TensorQuant8AsymmSigned, Some(V1_3)),
            (Mul, TensorInt32, Some(V1_3)),
            (Sub, TensorFloat32, Some(V1_1)),
            (Sub, TensorFloat16, Some(V1_2)),
            (Sub, TensorQuant8Asymm, Some(V1_2)),
            (Sub, TensorQuant8AsymmSigned, Some(V1_3)),
            (Sub, TensorInt32, Some(V1_3)),
            (Div, TensorFloat32, Some(V1_1)),
            (Div, TensorFloat16, Some(V1_2)),
            (Div, TensorInt32, Some(V1_3)),
            (Div, TensorQuant8Asymm, None),
            (Div, TensorQuant8AsymmSigned, None),
        ];
        for (operation, operand_type, since) in expected {
            let vector = tensor(operand_type, [1]);
            let found = example(operation, (vector.clone(), &[0.0]), (vector, &[0.0])).since();
            assert_eq!(found.ok(), since, "{operation} {operand_type}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let float = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
        let good = example(Add, (float(&[2]), &[1.0, 2.0]), (float(&[2]), &[3.0, 4.0]));
        assert_eq!(good.result(), (vec![2], vec![4.0, 6.0]));
        assert_eq!(
            good.clone().with_input(1, float(&[1, 1, 1, 1, 1]), &[0.0]).refusal(),
            "ADD: rank of input 1 (input1) is 5, expected 0 to 4"
        );
        assert_eq!(
            good.clone().with_input(0, float(&[3]), &[0.0; 3]).refusal(),
            "ADD: shapes of the operation is [3] and [2], expected shapes that broadcast"
        );
        assert_eq!(
            good.clone().with_input(1, tensor(TensorInt32, [2]), &[0.0; 2]).refusal(),
            "ADD: type of input 1 (input1) is TENSOR_INT32, expected TENSOR_FLOAT32"
        );
        assert_eq!(
            good.with_int32(2, 4).refusal(),
            "ADD: value of input 2 (activation) is 4, expected 0 to 3"
        );
        let integers = tensor(TensorInt32, [1]);
        assert_eq!(
            example(Mul, (integers.clone(), &[1.0]), (integers, &[1.0])).with_int32(2, 1).refusal(),
            "MUL: value of input 2 (activation) is RELU, expected NONE with TENSOR_INT32"
        );
    }

    #[test]
    fn the_scale_of_a_product_must_be_above_that_of_the_factors() {
        for operand_type in [TensorQuant8Asymm, TensorQuant8AsymmSigned] {
            let factor = tensor(operand_type, [1]);
            let product = |operation, scale| {
                example(operation, (factor.clone(), &[0.0]), (factor.clone(), &[0.0]))
                    .with_output(OperandSpec::new(operand_type, []).quantized(scale, 0))
            };
            assert_eq!(
                product(Mul, 0.25).refusal(),
                "MUL: scale of output 0 (output) is 0.25, expected above 0.25"
            );
            assert!(product(Mul, f32::NAN).run().is_err());
            assert!(product(Mul, 0.250_001).run().is_ok());
            assert!(product(Add, 0.25).run().is_ok());
        }
    }

    #[test]
    fn shapes_are_inferred_as_far_as_they_are_known() {
        let shapes = |a: &[u32], b: &[u32]| {
            let argument = |dimensions: &[u32]| tensor(TensorFloat32, dimensions);
            let call = Example::new(Add).input_to_come(argument(a)).input_to_come(argument(b));
            call.int32s([0]).output(argument(&[])).shapes().map(|mut shapes| shapes.swap_remove(0))
        };
        // A 0 in a model stands for an unknown length.
        assert_eq!(shapes(&[4, 1, 2], &[5, 4, 3, 1]), Ok(Shape::known([5, 4, 3, 2])));
        assert_eq!(shapes(&[0, 2], &[3, 1]), Ok(Shape::known([3, 2])));
        assert_eq!(shapes(&[0], &[1]), Ok(Shape::new([None])));
        assert_eq!(shapes(&[], &[2]), Ok(Shape::UNKNOWN));
        assert!(shapes(&[2], &[3]).is_err());
    }

    #[test]
    fn nothing_combined_with_one_is_nothing() {
        let found = example(
            Mul,
            (tensor(TensorFloat32, [0, 2]), &[]),
            (tensor(TensorFloat32, [1, 1]), &[7.0]),
        );
        assert_eq!(found.result(), (vec![0, 2], vec![]));
    }

    #[test]
    fn floats_of_both_widths_by_hand() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let result = |operation, activation| {
                let a = (tensor(operand_type, [2, 2]), &[-3.0, 1.0, 6.0, 0.5][..]);
                let b = (tensor(operand_type, [2]), &[2.0, 4.0][..]);
                example(operation, a, b).with_int32(2, activation).result().1
            };
            assert_eq!(result(Add, 0), [-1.0, 5.0, 8.0, 4.5]);
            assert_eq!(result(Sub, 0), [-5.0, -3.0, 4.0, -3.5]);
            assert_eq!(result(Mul, 0), [-6.0, 4.0, 12.0, 2.0]);
            assert_eq!(result(Div, 0), [-1.5, 0.25, 3.0, 0.125]);
            assert_eq!(result(Add, 1), [0.0, 5.0, 8.0, 4.5]);
            assert_eq!(result(Sub, 2), [-1.0, -1.0, 1.0, -1.0]);
            assert_eq!(result(Mul, 3), [0.0, 4.0, 6.0, 2.0]);
        }
    }

    #[test]
    fn float16_is_rounded_once() {
        // 1 + 2^-11 is half-way between 1 and the next float16: to the even one.
        let vector = tensor(TensorFloat16, [2]);
        let found = example(
            Add,
            (vector.clone(), &[1.0, 1.0]),
            (vector, &[2_f64.powi(-11), 3.0 * 2_f64.powi(-11)]),
        );
        assert_eq!(found.result().1, [1.0, 1.0 + 2_f64.powi(-9)]);
    }

    #[test]
    fn integers_wrap_and_divide_downwards() {
        let result = |operation, a: &[f64], b: &[f64]| {
            let length = u32::try_from(a.len()).unwrap();
            let vector = tensor(TensorInt32, [length]);
            example(operation, (vector.clone(), a), (vector, b)).result().1
        };
        let (least, greatest) = (f64::from(i32::MIN), f64::from(i32::MAX));
        assert_eq!(result(Add, &[greatest, 2.0], &[1.0, 3.0]), [least, 5.0]);
        assert_eq!(result(Sub, &[least, 2.0], &[1.0, 3.0]), [greatest, -1.0]);
        assert_eq!(result(Mul, &[65536.0, -2.0], &[65536.0, 3.0]), [0.0, -6.0]);
        let quotients = result(Div, &[5.0, -5.0, 5.0, -5.0, -6.0], &[2.0, 2.0, -2.0, -2.0, 2.0]);
        assert_eq!(quotients, [2.0, -3.0, -3.0, 2.0, -3.0]);
        assert_eq!(result(Div, &[7.0, least], &[0.0, -1.0]), [0.0, least]);
    }

    #[test]
    fn quantized_values_by_hand() {
        // Inputs: 0.5 * (140 - 128) = 6 and 0.25 * (10 - 2) = 2; outputs in steps of 0.2 from 20.
        let result = |operation, activation| {
            let a = OperandSpec::tensor_quant8_asymm([1], 0.5, 128);
            let b = OperandSpec::tensor_quant8_asymm([1], 0.25, 2);
            example(operation, (a, &[140.0]), (b, &[10.0]))
                .with_int32(2, activation)
                .with_output(OperandSpec::tensor_quant8_asymm([], 0.2, 20))
                .result()
                .1[0]
        };
        assert_eq!(result(Add, 0), 60.0);
        assert_eq!(result(Sub, 0), 40.0);
        assert_eq!(result(Mul, 0), 80.0);
        // At most 6, which is 30 steps; at most 1, which is 5 steps.
        assert_eq!(result(Add, 3), 50.0);
        assert_eq!(result(Mul, 2), 25.0);
    }

    #[test]
    fn quantized_results_saturate() {
        let extreme = |operation, x: f64, y: f64| {
            let vector = tensor(TensorQuant8AsymmSigned, [1]);
            example(operation, (vector.clone(), &[x]), (vector, &[y]))
                .with_output(OperandSpec::tensor_quant8_asymm_signed([], 0.3, 0))
                .result()
                .1[0]
        };
        assert_eq!(extreme(Add, 127.0, 127.0), 127.0);
        assert_eq!(extreme(Add, -128.0, -128.0), -128.0);
        assert_eq!(extreme(Sub, -128.0, 127.0), -128.0);
        assert_eq!(extreme(Mul, -128.0, -128.0), 127.0);
    }

    fn quantization() -> impl Strategy<Value = (f32, i32)> {
        (0.01_f32..4.0, 0..256_i32)
    }

    proptest! {
        /// Requantizing rounds twice.
        #[test]
        fn a_quantized_result_is_within_three_quarters_of_a_step(
            operation in prop::sample::select(vec![Add, Sub, Mul]),
            a in quantization(),
            b in quantization(),
            output in (16.5_f32..40.0, 0..256_i32),
            x in 0..256_i32,
            y in 0..256_i32,
        ) {
            let operand = |(scale, zero_point)| OperandSpec::tensor_quant8_asymm([1], scale, zero_point);
            let found = example(operation, (operand(a), &[x.into()]), (operand(b), &[y.into()]))
                .with_output(operand(output))
                .result()
                .1[0];
            let real = |(scale, zero_point): (f32, i32), stored: i32| {
                f64::from(scale) * f64::from(stored - zero_point)
            };
            let value = match operation {
                Add => real(a, x) + real(b, y),
                Sub => real(a, x) - real(b, y),
                _ => real(a, x) * real(b, y),
            };
            let exact = (value / f64::from(output.0) + f64::from(output.1)).clamp(0.0, 255.0);
            prop_assert!((found - exact).abs() < 0.76, "{found} for {exact}");
        }

        /// Subtracting 128 from stored values and zero points changes no real number.
        #[test]
        fn signed_quantization_means_the_same(
            operation in prop::sample::select(vec![Add, Sub, Mul]),
            a in quantization(),
            b in quantization(),
            output in (16.5_f32..40.0, 0..256_i32),
            x in 0..256_i32,
            y in 0..256_i32,
            activation in 0..4,
        ) {
            let result = |operand_type, shift: i32| {
                let operand = |(scale, zero_point): (f32, i32)| {
                    OperandSpec::new(operand_type, [1]).quantized(scale, zero_point - shift)
                };
                let (x, y) = (f64::from(x - shift), f64::from(y - shift));
                let call = example(operation, (operand(a), &[x]), (operand(b), &[y]));
                call.with_int32(2, activation).with_output(operand(output)).result().1[0]
            };
            let signed = result(TensorQuant8AsymmSigned, 128);
            prop_assert_eq!(signed + 128.0, result(TensorQuant8Asymm, 0));
        }

        #[test]
        fn integers_divide_as_in_python(x: i32, y in prop_oneof![-9..9, any::<i32>()]) {
            prop_assume!(y != 0 && (x, y) != (i32::MIN, -1));
            let (quotient, x, y) = (i64::from(floor_div(x, y)), i64::from(x), i64::from(y));
            let rest = x - quotient * y;
            prop_assert!(rest == 0 || (rest.abs() < y.abs() && (rest < 0) == (y < 0)));
        }
    }

    #[test]
    fn dividing_floats_by_zero_is_ieee() {
        let vector = tensor(TensorFloat32, [2]);
        let found = example(Div, (vector.clone(), &[1.0, -1.0]), (vector, &[0.0, 0.0]));
        assert_eq!(found.result().1, [f64::INFINITY, f64::NEG_INFINITY]);
    }
}
