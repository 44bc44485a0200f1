//! Judges an output: element by element, in double precision.

use crate::instance::Instance;
use crate::vectors::{Case, Tolerance};
use half::f16;
use nnhal_hal::{Execution, OperandType, Request, RequestBuilder};

/// How an output differs from what was expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The first element that differs beyond tolerance, counted in memory order.
    pub index: usize,
    /// Its expected value.
    pub expected: f64,
    /// Its value in the output.
    pub found: f64,
    /// How many elements differ beyond tolerance.
    pub count: usize,
    /// How many elements the output has.
    pub total: usize,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            formatter,
            "element {} is {}, expected {} ({} of {} elements differ)",
            self.index, self.found, self.expected, self.count, self.total
        )
    }
}

/// The elements of an output as real numbers; quantized ones as they are stored, truth values as
/// 0 or 1.
pub fn elements(operand_type: OperandType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], read: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks().0.iter().map(|chunk| read(*chunk)).collect()
    }
    match operand_type {
        OperandType::TensorFloat32 | OperandType::Float32 => {
            each(bytes, |it| f32::from_le_bytes(it).into())
        }
        OperandType::TensorFloat16 | OperandType::Float16 => {
            each(bytes, |it| f16::from_le_bytes(it).into())
        }
        OperandType::TensorInt32 | OperandType::Int32 => {
            each(bytes, |it| i32::from_le_bytes(it).into())
        }
        OperandType::Uint32 => each(bytes, |it| u32::from_le_bytes(it).into()),
        OperandType::TensorQuant16Asymm => each(bytes, |it| u16::from_le_bytes(it).into()),
        OperandType::TensorQuant16Symm => each(bytes, |it| i16::from_le_bytes(it).into()),
        OperandType::TensorBool8 | OperandType::Bool => {
            each(bytes, |[byte]| f64::from(u8::from(byte != 0)))
        }
        OperandType::TensorQuant8AsymmSigned
        | OperandType::TensorQuant8Symm
        | OperandType::TensorQuant8SymmPerChannel => each(bytes, |it| i8::from_le_bytes(it).into()),
        _ => each(bytes, |[byte]| byte.into()),
    }
}

/// `None` if every element is within tolerance. A NaN never is, and in place of an infinity only the same
/// one.
pub fn difference(
    operand_type: OperandType,
    expected: &[u8],
    found: &[u8],
    tolerance: Tolerance,
) -> Option<Difference> {
    let (expected, found) = (elements(operand_type, expected), elements(operand_type, found));
    let total = expected.len();
    let mut beyond = expected.iter().zip(&found).enumerate().filter(|(_, (expected, found))| {
        if expected.is_infinite() {
            // No share of it allows anything.
            return found != expected;
        }
        let allowed = tolerance.atol + tolerance.rtol * expected.abs();
        !is_within((*found - *expected).abs(), allowed)
    });
    let (index, (expected_here, found_here)) = beyond.next()?;
    let count = 1 + beyond.count();
    Some(Difference { index, expected: *expected_here, found: *found_here, count, total })
}

/// False for a NaN, which the opposite comparison would let pass.
fn is_within(distance: f64, allowed: f64) -> bool {
    distance <= allowed
}

/// Compares class numbers with the distribution that logits ask for: each class's share of the
/// samples must be within `tolerance` of its softmax.
///
/// # Errors
/// A sentence that says which class is off.
pub fn distribution(logits: &[f64], samples: &[f64], tolerance: f64) -> Result<(), String> {
    let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
    #[allow(clippy::cast_precision_loss)] // Class numbers and counts of a test are small.
    for (class, logit) in logits.iter().enumerate() {
        let drawn = samples.iter().filter(|sample| **sample == class as f64).count();
        let (share, wanted) = (drawn as f64 / samples.len() as f64, logit.exp() / total);
        if !is_within((share - wanted).abs(), tolerance) {
            return Err(format!("class {class} has a share of {share}, expected {wanted}"));
        }
    }
    #[allow(clippy::cast_precision_loss)]
    match samples.iter().find(|sample| !(0.0..logits.len() as f64).contains(*sample)) {
        Some(outside) => Err(format!("class {outside} does not exist")),
        None => Ok(()),
    }
}

/// Compares the outputs of an execution, and their shapes, with what a vector expects.
pub(crate) fn execution(
    case: &Case,
    instance: &Instance,
    request: &Request,
    execution: &Execution,
) -> Result<(), String> {
    if execution.output_shapes.len() != instance.expected.len() {
        return Err(format!(
            "{} output shapes, expected {}",
            execution.output_shapes.len(),
            instance.expected.len()
        ));
    }
    for (index, shape) in execution.output_shapes.iter().enumerate() {
        let operand = &case.main.operands[case.main.outputs[index] as usize];
        let found = RequestBuilder::read_output(request, index).map_err(|it| it.to_string())?;
        if let Some(tolerance) = case.multinomial_tolerance {
            let logits = &case.main.operands[case.main.inputs[0] as usize];
            let logits = elements(logits.operand_type, logits.data.as_deref().unwrap_or_default());
            distribution(&logits, &elements(operand.operand_type, &found), tolerance)?;
            continue;
        }
        if operand.ignored {
            continue;
        }
        let said = |what: String| format!("output {index} ({}): {what}", operand.name);
        if !shape.is_sufficient {
            return Err(said("the buffer is called too short".into()));
        }
        if shape.dimensions != instance.dimensions[index] {
            let (found, expected) = (&shape.dimensions, &instance.dimensions[index]);
            return Err(said(format!("shape {found:?}, expected {expected:?}")));
        }
        let Some(tolerance) = case.tolerances.get(index).copied().flatten() else { continue };
        let expected = &instance.expected[index];
        let found = &found[..expected.len()];
        if let Some(difference) = difference(operand.operand_type, expected, found, tolerance) {
            return Err(said(difference.to_string()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Tolerance = Tolerance { atol: 0.0, rtol: 0.0 };

    #[test]
    fn an_infinity_is_only_the_same_infinity() {
        let wide = Tolerance { atol: 1.0, rtol: 1.0 };
        let is_same = |expected: f32, found: f32| {
            let bytes = [expected, found].map(f32::to_le_bytes);
            difference(OperandType::TensorFloat32, &bytes[0], &bytes[1], wide).is_none()
        };
        assert!(is_same(f32::INFINITY, f32::INFINITY));
        assert!(is_same(f32::NEG_INFINITY, f32::NEG_INFINITY));
        for found in [f32::NEG_INFINITY, 0.0, f32::MAX, f32::NAN] {
            assert!(!is_same(f32::INFINITY, found), "{found}");
            assert!(found == f32::NEG_INFINITY || !is_same(found, f32::INFINITY), "{found}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        let found =
            difference(OperandType::TensorQuant8AsymmSigned, &[1, 2, 0xFF], &[1, 4, 1], EXACT);
        assert_eq!(
            found.unwrap().to_string(),
            "element 1 is 4, expected 2 (2 of 3 elements differ)"
        );
    }

    #[test]
    fn nan_never_passes() {
        let wide = Tolerance { atol: f64::MAX, rtol: 0.0 };
        let nan = f32::NAN.to_le_bytes();
        assert!(difference(OperandType::TensorFloat32, &[0; 4], &nan, wide).is_some());
        assert!(difference(OperandType::TensorFloat32, &[0; 4], &[0; 4], EXACT).is_none());
    }

    #[test]
    fn of_truth_values_only_zero_or_not_counts() {
        assert!(difference(OperandType::TensorBool8, &[1, 0], &[7, 0], EXACT).is_none());
        assert!(difference(OperandType::TensorBool8, &[1], &[0], EXACT).is_some());
    }

    #[test]
    fn distributions_are_judged_by_share() {
        let even = [0.0, 0.0];
        assert!(distribution(&even, &[0.0, 1.0, 1.0, 0.0], 0.01).is_ok());
        assert!(distribution(&even, &[0.0, 0.0, 0.0, 1.0], 0.01).is_err());
        assert!(distribution(&[0.0], &[0.0, 2.0], 1.0).is_err());
    }
}
