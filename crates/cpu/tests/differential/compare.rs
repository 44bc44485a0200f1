//! How far results may be from each other.

use crate::calls::model::Tensor;
use crate::calls::sample::{reals, stored};
use nnhal_hal::{OperandSpec, OperandType};

/// How far results may be from those of the reference engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of float32, relative to the greatest magnitude in the tensor.
    pub float32: f64,
    /// Of float16, likewise.
    pub float16: f64,
    /// What counts as the magnitude where the tensor's is less: of 32 bits, of 16 bits.
    pub least_magnitude: [f64; 2],
    /// Of quantized numbers, in stored steps.
    pub steps: u32,
}

impl Tolerance {
    /// Sums of floats may be taken in any order, and float16 may be kept wider between operations.
    /// Quantized numbers are equal.
    pub const STRICT: Self =
        Self { float32: 1e-5, float16: 5e-3, least_magnitude: [1.0, 1.0], steps: 0 };

    /// The same, but for one step of quantized numbers.
    pub const ONE_STEP: Self = Self { steps: 1, ..Self::STRICT };

    /// The same for graphs, in which the reference engine rounds to float16 between operations,
    /// numbers that may be larger than what comes out in the end.
    pub const OF_GRAPHS: Self = Self { least_magnitude: [1.0, 16.0], ..Self::STRICT };
}

/// The first output that is too far from what is expected, and its worst element.
pub fn compare(
    specs: &[OperandSpec],
    expected: &[Tensor],
    found: &[Tensor],
    tolerances: &[Tolerance],
) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("{} outputs, not {}", found.len(), expected.len()));
    }
    for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
        tensor(&specs[index], expected, found, tolerances[index])
            .map_err(|error| format!("output {index}: {error}"))?;
    }
    Ok(())
}

fn tensor(
    spec: &OperandSpec,
    expected: &Tensor,
    found: &Tensor,
    tolerance: Tolerance,
) -> Result<(), String> {
    if expected.0 != found.0 {
        return Err(format!("shape {:?}, not {:?}", found.0, expected.0));
    }
    if expected.1 == found.1 {
        return Ok(());
    }
    let [least, least_of_16_bits] = tolerance.least_magnitude;
    let (relative, least) = match spec.operand_type {
        OperandType::TensorFloat32 | OperandType::Float32 => (tolerance.float32, least),
        OperandType::TensorFloat16 | OperandType::Float16 => (tolerance.float16, least_of_16_bits),
        _ => return steps(spec, expected, found, tolerance.steps),
    };
    let (numbers, results) = (reals(spec, &expected.1), reals(spec, &found.1));
    let finite = numbers.iter().copied().filter(|it| it.is_finite());
    let magnitude = finite.map(f64::abs).fold(least, f64::max);
    let distance = |(expected, found): (&f64, &f64)| {
        let is_same = expected == found || (expected.is_nan() && found.is_nan());
        if is_same { 0.0 } else { (expected - found).abs() / magnitude }
    };
    // Not a number is further than any.
    let distances = numbers.iter().zip(&results).map(distance);
    let far = |distance: f64| if distance.is_nan() { f64::INFINITY } else { distance };
    let distances = distances.map(far).enumerate();
    let worst = distances.max_by(|a, b| a.1.total_cmp(&b.1));
    match worst.filter(|(_, distance)| *distance > relative) {
        Some((at, distance)) => Err(format!(
            "element {at} of {:?} is {}, not {}: {distance:.1e} of {magnitude}",
            found.0, results[at], numbers[at],
        )),
        None => Ok(()),
    }
}

fn steps(spec: &OperandSpec, expected: &Tensor, found: &Tensor, most: u32) -> Result<(), String> {
    let size = spec.operand_type.element_size().ok_or("an element size")? as usize;
    // Indexes, counts and truth values have no steps.
    let most = if spec.operand_type.quantized_range().is_some() { most } else { 0 };
    for (at, (expected, result)) in expected.1.chunks(size).zip(found.1.chunks(size)).enumerate() {
        let [expected, result] = [expected, result].map(|it| stored(spec.operand_type, it));
        if expected.abs_diff(result) > most {
            return Err(format!("element {at} of {:?} is {result}, not {expected}", found.0));
        }
    }
    Ok(())
}
