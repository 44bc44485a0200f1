//! POW: `base ^ exponent`, element by element, with broadcasting.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | base | any two that broadcast | float32, float16 |
//! | input 1 | exponent | | as the base |
//! | output 0 | output | the common shape | as the base |
//!
//! A negative base with an exponent that is no integer gives NaN.
//!
//! Source: `types.hal` 1.2.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::{broadcast, real};
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// POW.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pow;

pub(crate) static SIGNATURE: Signature = Signature {
    operation: OperationType::Pow,
    rows: &[
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat32]),
        Row::new(HalVersion::V1_2, &[OperandType::TensorFloat16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_2,
        &[Parameter::column("base", 0), Parameter::column("exponent", 0)],
        &[Parameter::column("output", 0)],
    )],
};

impl Pow {
    /// The function on real numbers.
    pub fn real(self, base: f32, exponent: f32) -> f32 {
        real::round(f64::from(base).powf(exponent.into()))
    }
}

impl Operation for Pow {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(_call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self)
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![broadcast::shape(call, call.input(0), call.input(1))?])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (base, exponent, output) = (call.input(0), call.input(1), call.output(0));
        let (dimensions, pairs) = broadcast::pairs(call, base, exponent)?;
        let (bases, exponents) = (base.f32s()?, exponent.f32s()?);
        let elements =
            output.collect(&dimensions, pairs.map(|(i, j)| self.real(bases[i], exponents[j])))?;
        Ok(vec![output.with_f32s(dimensions, &elements)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, assert_since, tensor};
    use OperandType::{TensorFloat16, TensorFloat32};
    use nnhal_hal::OperandSpec;
    use proptest::prelude::*;

    fn example(base: (OperandSpec, &[f64]), exponent: (OperandSpec, &[f64])) -> Example {
        let output = OperandSpec { dimensions: vec![], ..base.0.clone() };
        Example::new(OperationType::Pow)
            .input(base.0, base.1)
            .input(exponent.0, exponent.1)
            .output(output)
    }

    #[test]
    fn model_25_both_types_came_with_1_2() {
        assert_since(
            [
                (TensorFloat32, Some(HalVersion::V1_2)),
                (TensorFloat16, Some(HalVersion::V1_2)),
                (OperandType::TensorInt32, None),
                (OperandType::TensorQuant8Asymm, None),
            ],
            |operand_type| {
                let five = tensor(operand_type, [1; 5]);
                example((five.clone(), &[1.0]), (five, &[1.0]))
            },
        );
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let two = (tensor(TensorFloat32, [2]), &[0.0; 2][..]);
        assert_eq!(
            example(two.clone(), (tensor(TensorFloat32, [3]), &[0.0; 3])).refusal(),
            "POW: shapes of the operation is [2] and [3], expected shapes that broadcast"
        );
        assert_eq!(
            example(two, (tensor(TensorFloat16, [2]), &[0.0; 2])).refusal(),
            "POW: type of input 1 (exponent) is TENSOR_FLOAT16, expected TENSOR_FLOAT32"
        );
    }

    #[test]
    fn values_by_hand() {
        for (operand_type, tolerance) in [(TensorFloat32, 1e-7), (TensorFloat16, 1e-3)] {
            let base = (tensor(operand_type, [2, 3]), &[2.0, 4.0, -2.0, 0.5, 9.0, 0.0][..]);
            let exponent = (tensor(operand_type, [3]), &[3.0, 0.5, -1.0][..]);
            let (dimensions, found) = example(base, exponent).result();
            assert_eq!(dimensions, [2, 3]);
            assert_close(&found[..5], &[8.0, 2.0, -0.5, 0.125, 3.0], tolerance);
            assert_eq!(found[5], f64::INFINITY);
        }
    }

    #[test]
    fn corners_are_those_of_ieee_754() {
        assert_eq!(Pow.real(0.0, 0.0), 1.0);
        assert_eq!(Pow.real(f32::NAN, 0.0), 1.0);
        assert_eq!(Pow.real(-8.0, 3.0), -512.0);
        assert!(Pow.real(-8.0, 1.0 / 3.0).is_nan());
        assert_eq!(Pow.real(1e30, 2.0), f32::INFINITY);
    }

    #[test]
    fn shapes_are_broadcast_even_over_nothing() {
        let open = Example::new(OperationType::Pow)
            .input_to_come(tensor(TensorFloat32, [4, 1, 2]))
            .input_to_come(tensor(TensorFloat32, [0, 4, 3, 1]))
            .output(tensor(TensorFloat32, []));
        let expected = Shape::new([None, Some(4), Some(3), Some(2)]);
        assert_eq!(open.shapes(), Ok(vec![expected]));
        let empty = (tensor(TensorFloat32, [0]), &[][..]);
        let one = (tensor(TensorFloat32, [1, 1]), &[1.0][..]);
        assert_eq!(example(empty, one).result(), (vec![1, 0], vec![]));
    }

    proptest! {
        #[test]
        fn exponents_add_up(base in 0.1_f32..4.0, a in -3.0_f32..3.0, b in -3.0_f32..3.0) {
            let product = f64::from(Pow.real(base, a)) * f64::from(Pow.real(base, b));
            let exponent = f64::from(a) + f64::from(b);
            let expected = f64::from(base).powf(exponent);
            prop_assert!((product / expected - 1.0).abs() < 3e-7);
        }
    }
}
