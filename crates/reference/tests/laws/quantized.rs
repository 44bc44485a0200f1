//! Quantized is float, rounded: an operation on quantized tensors gives what the float32 operation
//! gives on the reals that they stand for, to within a step of the output.
//!
//! Most keep closer to it, and [`Closeness`] says how close and why.

use crate::each_sample;
use crate::run::{Constants, Shapes, run};
use crate::sample::{reals, stored};
use nnhal_hal::{OperandSpec, OperandType, OperationType};
use nnhal_ops::{Row, Signature};
use std::collections::BTreeSet;

/// Operations with quantized types of which the law says nothing, and why.
const EXCEPTIONS: [(OperationType, &str); 5] = [
    (OperationType::Dequantize, "is what the law is stated with"),
    (
        OperationType::LshProjection,
        "hashes the bytes of its input, so another type is another input",
    ),
    (OperationType::Quantize, "is what the law is stated with"),
    (OperationType::Quantized16bitLstm, "its float form, LSTM, rounds nothing on the way"),
    (OperationType::QuantizedLstm, "its float form, LSTM, rounds nothing on the way"),
];

/// How close the result of a quantized operation is to the real one.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Closeness {
    /// Elements are moved or distinguished, not computed.
    Equal,
    /// Computed and rounded once, or rounded again in steps much finer than the output's.
    RoundedOnce,
    /// Multiplied by a factor in gemmlowp's fixed-point arithmetic, which rounds when it multiplies
    /// and again when it shifts: half a step, and a quarter if it shifts by one bit. (L2
    /// normalization takes an inverse root in such arithmetic.)
    RoundedTwice,
}

impl Closeness {
    /// In steps of the output. A float32 result has an error of its own of some hundredths.
    fn steps(self) -> f64 {
        match self {
            Self::Equal => 0.001,
            Self::RoundedOnce => 0.51,
            Self::RoundedTwice => 0.76,
        }
    }

    fn of(operation: OperationType) -> Self {
        use OperationType as Op;
        match operation {
            Op::BatchMatmul
            | Op::Conv2d
            | Op::DepthwiseConv2d
            | Op::FullyConnected
            | Op::GroupedConv2d
            | Op::L2Normalization
            | Op::Mul
            | Op::Prelu
            | Op::TransposeConv2d => Self::RoundedTwice,
            Op::Add
            | Op::AveragePool2d
            | Op::AxisAlignedBboxTransform
            | Op::BoxWithNmsLimit
            | Op::Concatenation
            | Op::GenerateProposals
            | Op::HardSwish
            | Op::HeatmapMaxKeypoint
            | Op::Logistic
            | Op::MaxPool2d
            | Op::Maximum
            | Op::Mean
            | Op::Minimum
            | Op::Relu1
            | Op::Relu6
            | Op::ResizeBilinear
            | Op::RoiAlign
            | Op::Rsqrt
            | Op::Select
            | Op::Softmax
            | Op::Sub
            | Op::Tanh => Self::RoundedOnce,
            _ => Self::Equal,
        }
    }
}

fn is_float(operand_type: &OperandType) -> bool {
    matches!(operand_type, OperandType::TensorFloat32 | OperandType::TensorFloat16)
}

fn is_quantized(row: &Row) -> bool {
    row.types.iter().any(|it| it.quantized_range().is_some()) && !row.types.iter().any(is_float)
}

fn is_float32(row: &Row) -> bool {
    row.types.iter().all(|it| matches!(it, OperandType::TensorFloat32 | OperandType::Float32))
}

/// Operations with a row of a kind.
fn operations(is_kind: impl Fn(&Row) -> bool) -> BTreeSet<OperationType> {
    let has_kind = |operation: &OperationType| {
        Signature::of(*operation).is_some_and(|it| it.rows.iter().any(&is_kind))
    };
    OperationType::FUNDAMENTAL.iter().copied().filter(has_kind).collect()
}

/// Operations that have a quantized row and a float32 one.
fn with_both() -> BTreeSet<OperationType> {
    &operations(is_quantized) & &operations(is_float32)
}

#[test]
fn every_quantized_operation_is_compared_or_excused() {
    let quantized = operations(|row| row.types.iter().any(|it| it.quantized_range().is_some()));
    let excused = EXCEPTIONS.iter().map(|(operation, _)| *operation).collect();
    assert_eq!(&quantized - &with_both(), excused);
}

#[test]
fn quantized_is_float_rounded() {
    each_sample(64, with_both().into_iter(), |sample, random| {
        let float32 = sample.rows().iter().find(|row| is_float32(row)).ok_or("no float32 row")?;
        let closeness = Closeness::of(sample.operation);
        for row in sample.rows().iter().filter(|row| is_quantized(row)) {
            let about = |error: String| format!("{:?}: {error}", row.types);
            let mut call = sample.typed(row);
            let float32 = sample.retyped(&call, float32);
            let expected =
                run(&float32, Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            let numbers: Vec<Vec<f64>> = expected
                .iter()
                .zip(&float32.outputs)
                .map(|((_, bytes), spec)| reals(spec, bytes))
                .collect();
            call.fit(sample, &numbers);
            let found = run(&call, Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
                if found.0 != expected.0 {
                    let error = format!("output {index}: {:?}, not {:?}", found.0, expected.0);
                    return Err(about(error));
                }
                let away = furthest(&call.outputs[index], &found.1, &numbers[index]);
                if let Some((at, steps)) = away.filter(|(_, steps)| *steps > closeness.steps()) {
                    let error = format!(
                        "element {at} of output {index} is {steps} steps away from {}; {:?}",
                        numbers[index][at], call.outputs[index],
                    );
                    return Err(about(error));
                }
            }
        }
        Ok(())
    });
}

/// The element that is furthest from the real one as far as the type reaches, and by how many steps.
fn furthest(spec: &OperandSpec, bytes: &[u8], numbers: &[f64]) -> Option<(usize, f64)> {
    let size = spec.operand_type.element_size()? as usize;
    let away = |(bytes, number): (&[u8], &f64)| {
        let found = f64::from(stored(spec.operand_type, bytes));
        match spec.operand_type.quantized_range() {
            Some((least, most)) => {
                let exact = number / f64::from(spec.scale) + f64::from(spec.zero_point);
                (found - exact.clamp(f64::from(least), f64::from(most))).abs()
            }
            // An index, a truth value.
            None => (found - number).abs(),
        }
    };
    let distances = bytes.chunks(size).zip(numbers).map(away);
    distances.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
}
