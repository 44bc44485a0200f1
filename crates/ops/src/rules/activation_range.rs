//! Fused activations: the range that an operation's result is clamped to.

use crate::call::Argument;
use crate::error::Fault;
use crate::rules::requantize::quantize;
use hal::FusedActivation;

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

/// The stored numbers that an activation clamps a quantised output to.
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
