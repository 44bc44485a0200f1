//! Floats that become integers of 8 bits while an operation runs, by the range that they have, as layers of
//! dynamic-range quantization want it.

use crate::call::{Argument, Call};
use crate::error::Fault;

/// The weights that are multiplied with them: signed, with zero point 0, and a scale for all or for each along axis 0.
///
/// # Errors
/// They have another zero point, or scales along another axis.
pub fn validate_weights(weights: &Argument<'_>) -> Result<(), Fault> {
    if weights.zero_point != 0 {
        return Err(weights.wrong("zero point", weights.zero_point, 0));
    }
    if let Some(quant) = weights.channel_quant()
        && quant.channel_dim != 0
    {
        return Err(weights.wrong("channel dimension", quant.channel_dim, 0));
    }
    Ok(())
}

/// The scale of a unit's weights.
pub fn scale(weights: &Argument<'_>, unit: usize) -> f32 {
    weights.channel_quant().map_or(weights.scale, |quant| quant.scales[unit])
}

/// Makes integers of elements, less their zero point, by the range of these and 0, in float32; numbers are rounded to
/// the nearest, halves to the even one:
///
/// ```text
/// factor = 255 / (greatest - least), or 1 if that is infinite
/// z      = -128 - least * factor     if (-128 + least * factor) + (127 + greatest * factor) > 0
///           127 - greatest * factor  otherwise
/// zero   = round(clamp(z, -128, 127))
/// q      = round(clamp(x * factor, -128 - zero, 127 - zero))
/// ```
///
/// Gives the factor, how many steps are 1: NaN if an element is infinite or NaN, or the range is.
///
/// # Errors
/// [`Fault::Interrupted`]
pub fn rounded(call: &Call<'_>, elements: &[f32], integers: &mut Vec<i32>) -> Result<f64, Fault> {
    let (mut least, mut greatest, mut is_finite) = (0.0_f32, 0.0_f32, true);
    call.each(elements, |x| {
        least = least.min(*x);
        greatest = greatest.max(*x);
        is_finite &= x.is_finite();
    })?;
    integers.clear();
    let range = greatest - least;
    if !is_finite || !range.is_finite() {
        integers.resize(elements.len(), 0);
        return Ok(f64::NAN);
    }
    let mut factor = 255.0 / range;
    if !factor.is_finite() {
        factor = 1.0;
    }
    let (low, high) = (least * factor, greatest * factor);
    let z = if (-128.0 + low) + (127.0 + high) > 0.0 { -128.0 - low } else { 127.0 - high };
    let zero = z.clamp(-128.0, 127.0).round_ties_even();
    call.each(elements, |x| {
        let steps = (x * factor).clamp(-128.0 - zero, 127.0 - zero).round_ties_even();
        #[allow(clippy::cast_possible_truncation)] // It has 9 bits.
        integers.push(steps as i32);
    })?;
    Ok(f64::from(factor))
}

/// The same by the greatest magnitude of the elements, in float32; halves are rounded away from 0:
///
/// ```text
/// factor = 127 / greatest magnitude, or 1 if that is infinite
/// q      = round(clamp(x * factor, -127, 127))
/// ```
///
/// # Errors
/// [`Fault::Interrupted`]
pub fn rounded_by_magnitude(
    call: &Call<'_>,
    elements: &[f32],
    integers: &mut Vec<i32>,
) -> Result<f64, Fault> {
    let (mut greatest, mut is_finite) = (0.0_f32, true);
    call.each(elements, |x| {
        greatest = greatest.max(x.abs());
        is_finite &= x.is_finite();
    })?;
    integers.clear();
    if !is_finite {
        integers.resize(elements.len(), 0);
        return Ok(f64::NAN);
    }
    let mut factor = 127.0 / greatest;
    if !factor.is_finite() {
        factor = 1.0;
    }
    call.each(elements, |x| {
        #[allow(clippy::cast_possible_truncation)] // It has 8 bits.
        integers.push((x * factor).clamp(-127.0, 127.0).round() as i32);
    })?;
    Ok(f64::from(factor))
}
