//! ELU: `max(0, x) + min(0, alpha * (exp(x) - 1))`, element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | input | any | float32, float16 |
//! | input 1 | alpha | scalar | FLOAT32; FLOAT16 with float16 |
//! | output 0 | output | as the input | as the input |
//!
//! Source: `types.hal` 1.3.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::real;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// ELU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Elu {
    /// Minus the limit at minus infinity, where it is above 0.
    pub alpha: f32,
}

static SIGNATURE: Signature = Signature {
    operation: OperationType::Elu,
    rows: &[
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat32, OperandType::Float32]),
        Row::new(HalVersion::V1_3, &[OperandType::TensorFloat16, OperandType::Float16]),
    ],
    forms: &[Form::new(
        HalVersion::V1_3,
        &[Parameter::column("input", 0), Parameter::column("alpha", 1)],
        &[Parameter::column("output", 0)],
    )],
};

impl Elu {
    /// The function on a real number.
    pub fn real(self, x: f32) -> f32 {
        let x = f64::from(x);
        if x.is_nan() {
            return f32::NAN;
        }
        // `min` passes over the NaN of an alpha of 0 and an infinite exponential.
        real::round(x.max(0.0) + (f64::from(self.alpha) * x.exp_m1()).min(0.0))
    }
}

impl Operation for Elu {
    const SIGNATURES: &'static [&'static Signature] = &[&SIGNATURE];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(Self { alpha: call.input(1).f32()? })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![call.input(0).shape.clone()])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Ok(vec![real::map(call.input(0), call.output(0), |x| self.real(x))?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, assert_close, tensor};
    use OperandType::{Float16, Float32, TensorFloat16, TensorFloat32};
    use nnhal_hal::OperandSpec;

    fn example(operand_type: OperandType, elements: &[f64], alpha: f64) -> Example {
        let length = u32::try_from(elements.len()).unwrap();
        let scalar = if operand_type == TensorFloat16 { Float16 } else { Float32 };
        Example::new(OperationType::Elu)
            .input(tensor(operand_type, [length]), elements)
            .input(OperandSpec::scalar(scalar), &[alpha])
            .output(tensor(operand_type, [length]))
    }

    #[test]
    fn model_25_both_types_came_with_1_3() {
        for operand_type in [TensorFloat32, TensorFloat16] {
            let call = example(operand_type, &[0.0], 1.0);
            assert_eq!(call.since(), Ok(HalVersion::V1_3));
            assert_eq!(call.result(), (vec![1], vec![0.0]));
        }
        let call = example(TensorFloat16, &[0.0], 1.0);
        assert_eq!(
            call.with_input(1, OperandSpec::scalar(Float32), &[1.0]).refusal(),
            "ELU: type of input 1 (alpha) is FLOAT32, expected FLOAT16"
        );
        let quantized = example(OperandType::TensorQuant8Asymm, &[0.0], 1.0);
        assert!(quantized.since().is_err());
    }

    #[test]
    fn values_by_hand() {
        for (operand_type, tolerance) in [(TensorFloat32, 1e-7), (TensorFloat16, 5e-4)] {
            // exp(-1) - 1 = -0.6321205588, and exp(-ln 2) - 1 = -1/2.
            let found = example(operand_type, &[2.5, 0.0, -1.0, -(2_f64.ln())], 2.0).result().1;
            assert_close(&found, &[2.5, 0.0, -1.264_241_117_7, -1.0], tolerance);
        }
    }

    #[test]
    fn a_negative_alpha_counts_above_0() {
        // max(0, 1) + min(0, -(e - 1)) and max(0, -1) + min(0, 0.632).
        let found = example(TensorFloat32, &[1.0, -1.0], -1.0).result().1;
        assert_close(&found, &[1.0 - 1.718_281_828_5, 0.0], 1e-7);
    }

    #[test]
    fn extremes_have_their_limits() {
        let extremes = [f64::NEG_INFINITY, -1e-30, 1000.0, f64::INFINITY];
        let found = example(TensorFloat32, &extremes, 3.0).result().1;
        assert_eq!((found[0], found[2], found[3]), (-3.0, 1000.0, f64::INFINITY));
        // Where exp(x) rounds to 1, exp(x) - 1 does not round to 0.
        assert!((found[1] / -3e-30 - 1.0).abs() < 1e-6);
        let none = example(TensorFloat32, &extremes, 0.0).result().1;
        assert_eq!(none, [0.0, 0.0, 1000.0, f64::INFINITY]);
        assert!(example(TensorFloat32, &[f64::NAN], 1.0).result().1[0].is_nan());
    }

    #[test]
    fn shapes_are_those_of_the_input_even_of_nothing() {
        assert_eq!(example(TensorFloat32, &[], 1.0).result(), (vec![0], vec![]));
        let open = Example::new(OperationType::Elu)
            .input_to_come(tensor(TensorFloat32, [0, 2]))
            .input(OperandSpec::scalar(Float32), &[1.0])
            .output(tensor(TensorFloat32, []));
        assert_eq!(open.shapes(), Ok(vec![Shape::new([None, Some(2)])]));
    }
}
