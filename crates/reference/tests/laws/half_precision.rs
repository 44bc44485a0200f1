//! float16 is float32, rounded: on inputs that float16 has, an operation in float16 gives what it
//! gives in float32, rounded once. Kernels compute in float32 or better and round when they store.

use crate::run::{Constants, Shapes, run};
use crate::sample::{Call, reals};
use crate::{each_sample, samples};
use half::f16;
use nnhal_hal::{OperandType, OperationType};
use nnhal_ops::{Row, Signature};

/// The type that a float32 row has where a float16 row has this one.
fn widened(operand_type: OperandType) -> OperandType {
    match operand_type {
        OperandType::TensorFloat16 => OperandType::TensorFloat32,
        OperandType::Float16 => OperandType::Float32,
        other => other,
    }
}

fn has_half(operation: &OperationType) -> bool {
    Signature::of(*operation).is_some_and(|signature| {
        signature.rows.iter().any(|row| row.types.contains(&OperandType::TensorFloat16))
    })
}

/// LSH_PROJECTION hashes the bytes of its input, so another type is another input.
fn is_exception(operation: OperationType, row: &Row) -> bool {
    operation == OperationType::LshProjection && row.types[1] == OperandType::TensorFloat16
}

/// Distance in float16 numbers: 0 equal, 1 neighbours.
fn steps(a: f16, b: f16) -> u32 {
    if a.is_nan() && b.is_nan() {
        return 0;
    }
    let ordinal = |number: f16| {
        let bits = i32::from(number.to_bits() & 0x7FFF);
        if number.is_sign_negative() { -bits } else { bits }
    };
    ordinal(a).abs_diff(ordinal(b))
}

/// The first element that is not what it is in float32, rounded.
fn compare(
    narrow: &Call,
    found: &[crate::run::Tensor],
    wide: &Call,
    expected: &[crate::run::Tensor],
) -> Result<(), String> {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        if found.0 != expected.0 {
            return Err(format!(
                "output {index} has shape {:?} instead of {:?}",
                found.0, expected.0
            ));
        }
        let spec = &narrow.outputs[index];
        if spec.operand_type != OperandType::TensorFloat16 {
            if found.1 != expected.1 {
                return Err(format!("output {index} is {:?} instead of {:?}", found.1, expected.1));
            }
            continue;
        }
        let (found, expected) = (reals(spec, &found.1), reals(&wide.outputs[index], &expected.1));
        for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
            if steps(f16::from_f64(*found), f16::from_f64(*expected)) > 0 {
                return Err(format!(
                    "element {at} of output {index} is {found} instead of {expected}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn float16_is_float32_rounded() {
    let operations = samples::operations().filter(has_half);
    each_sample(48, operations, |sample, random| {
        for row in sample.rows() {
            let wide: Vec<_> = row.types.iter().copied().map(widened).collect();
            if wide == row.types || is_exception(sample.operation, row) {
                continue;
            }
            let about = |error: String| format!("{:?}: {error}", row.types);
            let wide = sample.rows().iter().find(|it| it.types == wide);
            let wide = wide.ok_or_else(|| about("no float32 row".to_owned()))?;
            let narrow = sample.typed(row);
            let wide = sample.retyped(&narrow, wide);
            let expected = run(&wide, Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            let found = run(&narrow, Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            compare(&narrow, &found, &wide, &expected).map_err(about)?;
        }
        Ok(())
    });
}
