//! Fused activations: the range that an operation's result is clamped to.

use crate::call::Argument;
use crate::error::Fault;
use crate::rules::requantize::quantize;
use nnhal_hal::FusedActivation;

/// Reads an activation argument.
///
/// # Errors
/// [`Fault::NotKnown`], or the number is no activation.
pub fn decode(argument: &Argument<'_>) -> Result<FusedActivation, Fault> {
    let code = argument.i32()?;
    FusedActivation::from_code(code).map_err(|_| argument.wrong("value", code, "0 to 3"))
}

/// The real numbers that an activation clamps to.
pub fn real(activation: FusedActivation) -> (f32, f32) {
    match activation {
        FusedActivation::None => (f32::NEG_INFINITY, f32::INFINITY),
        FusedActivation::Relu => (0.0, f32::INFINITY),
        FusedActivation::Relu1 => (-1.0, 1.0),
        FusedActivation::Relu6 => (0.0, 6.0),
    }
}

/// The stored numbers that an activation clamps a quantized output to.
pub fn stored(activation: FusedActivation, output: &Argument<'_>) -> (i32, i32) {
    let range = output.operand_type.quantized_range().unwrap_or((i32::MIN, i32::MAX));
    let (least, greatest) = real(activation);
    let nearest = |bound: f32| quantize(bound, output.scale, output.zero_point, range);
    (
        if least.is_finite() { nearest(least) } else { range.0 },
        if greatest.is_finite() { nearest(greatest) } else { range.1 },
    )
}

/// `value` within the range. Unlike [`f32::clamp`] it keeps NaN and never panics.
pub fn clamp(value: f32, (least, greatest): (f32, f32)) -> f32 {
    if value < least {
        least
    } else if value > greatest {
        greatest
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use nnhal_hal::{OperandSpec, OperandType, OperationType};

    fn stored_in(output: OperandSpec, activation: FusedActivation) -> (i32, i32) {
        let call = Example::new(OperationType::Relu).output(output);
        stored(activation, call.call().output(0))
    }

    #[test]
    fn stored_ranges_by_hand() {
        use FusedActivation::{None, Relu, Relu1, Relu6};
        let unsigned = || OperandSpec::tensor_quant8_asymm([1], 0.5, 100);
        assert_eq!(stored_in(unsigned(), None), (0, 255));
        assert_eq!(stored_in(unsigned(), Relu), (100, 255));
        assert_eq!(stored_in(unsigned(), Relu1), (98, 102));
        assert_eq!(stored_in(unsigned(), Relu6), (100, 112));
        // The range of the type ends before that of the activation.
        let signed = || OperandSpec::tensor_quant8_asymm_signed([1], 0.01, 120);
        assert_eq!(stored_in(signed(), Relu6), (120, 127));
        assert_eq!(stored_in(signed(), Relu1), (20, 127));
        assert_eq!(stored_in(tensor(OperandType::TensorInt32, [1]), None), (i32::MIN, i32::MAX));
    }

    #[test]
    fn clamping_keeps_what_is_no_number() {
        let within = |value| clamp(value, real(FusedActivation::Relu6));
        assert!(within(f32::NAN).is_nan());
        assert_eq!([-1.0, 2.0, 7.0, f32::INFINITY].map(within), [0.0, 2.0, 6.0, 6.0]);
    }
}
