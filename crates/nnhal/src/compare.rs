//! Where two devices, or two ways of setting one, first compute something else.

use crate::data_type::DataType;
use crate::error::Result;
use crate::options::RunOptions;
use crate::prepared::origin;
use crate::session::{Input, Session};
use crate::tensor::stored;
use nnhal_driver::{ObservedOutput, Observer, OperationPlace, Round};
use nnhal_hal::model::SubgraphName;
use nnhal_tflite::OperatorOrigin;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// How far results may be from each other: by `absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// In the unit of the values.
    pub absolute: f64,
    /// As a share of the expected value.
    pub relative: f64,
}

/// How results are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Of floats, in the unit of the values; `None`: 1e-5, with float16 in the model 5e-3.
    pub absolute: Option<f64>,
    /// Of floats, as a share of the expected value; `None`: likewise.
    pub relative: Option<f64>,
    /// The largest difference of stored integers.
    pub steps: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { absolute: None, relative: None, steps: 1 }
    }
}

/// What comparing two devices found.
#[derive(Debug, Clone, PartialEq)]
pub enum Comparison {
    /// All results that both have agree.
    Agree {
        /// The number of tensors that both devices reported.
        compared: usize,
    },
    /// A result differs: the first one in the order in which the judged device computes them.
    Differ(Box<Finding>),
}

/// The first result that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The operation that computes it.
    pub place: OperationPlace,
    /// The operator of the file that the operation comes from.
    pub origin: Option<OperatorOrigin>,
    /// Index among the operation's outputs.
    pub output: usize,
    /// Of what type; `None` for an extension's.
    pub data_type: Option<DataType>,
    /// Lengths of its dimensions.
    pub shape: Vec<usize>,
    /// In what way.
    pub what: Differs,
}

/// In what way a result differs.
#[derive(Debug, Clone, PartialEq)]
pub enum Differs {
    /// Only the judged device computes it: the two took different paths.
    OnlyThere,
    /// In its shape.
    Shape {
        /// The shape that is right.
        expected: Vec<usize>,
    },
    /// In elements.
    Elements(Difference),
}

/// How elements differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The first element that differs beyond tolerance, counted in memory order.
    pub index: usize,
    /// Its value on the first device.
    pub expected: f64,
    /// Its value on the second device.
    pub found: f64,
    /// How many elements differ beyond tolerance.
    pub count: usize,
    /// How many elements the tensor has.
    pub total: usize,
}

impl fmt::Display for Differs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnlyThere => formatter.write_str("computed by one only"),
            Self::Shape { expected } => write!(formatter, "another shape, expected {expected:?}"),
            Self::Elements(difference) => difference.fmt(formatter),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, expected, found, count, total } = self;
        write!(formatter, "element {index} is {found}, expected {expected}")?;
        write!(formatter, " ({count} of {total} elements differ)")
    }
}

/// Names one value of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    place: OperationPlace,
    output: usize,
    rounds: Vec<Round>,
}

struct Value {
    key: Key,
    data_type: Option<DataType>,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Keeps every result, in the order in which they come.
#[derive(Default)]
struct Recorder(Mutex<Vec<Value>>);

impl Observer for Recorder {
    fn output(&self, output: &ObservedOutput<'_>) {
        let value = Value {
            key: Key { place: output.place, output: output.output, rounds: output.rounds.to_vec() },
            data_type: DataType::of_operand(output.operand_type),
            shape: output.dimensions.iter().map(|length| *length as usize).collect(),
            bytes: output.bytes.to_vec(),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value);
    }
}

/// Runs a model once in two sessions with the same inputs, and looks for the first result that
/// differs, in the order in which the second session computes them. The first one is right. Quantized
/// results are compared as they are stored. What is within operations that one device computes as
/// one is not compared.
///
/// # Errors
/// As [`Session::run_observed`].
pub fn run(
    judge: &Session,
    judged: &Session,
    inputs: &[Input<'_>],
    limits: Limits,
) -> Result<Comparison> {
    let record = |session: &Session| -> Result<Vec<Value>> {
        let recorder = Recorder::default();
        session.run_observed(&RunOptions::default(), inputs.iter().cloned(), &recorder)?;
        Ok(recorder.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let (expected, found) = (record(judge)?, record(judged)?);
    Ok(match first_difference(limits, expected, found) {
        Ok(compared) => Comparison::Agree { compared },
        Err(differs) => {
            let (value, what) = *differs;
            Comparison::Differ(Box::new(Finding {
                origin: origin(judged.model(), value.key.place),
                place: value.key.place,
                output: value.key.output,
                data_type: value.data_type,
                shape: value.shape,
                what,
            }))
        }
    })
}

/// How many results agree, if all that both have do.
fn first_difference(
    limits: Limits,
    expected: Vec<Value>,
    found: Vec<Value>,
) -> Result<usize, Box<(Value, Differs)>> {
    let has_float16 = expected.iter().any(|it| it.data_type == Some(DataType::Float16));
    let usual = if has_float16 { 5e-3 } else { 1e-5 };
    let floats = Tolerance {
        absolute: limits.absolute.unwrap_or(usual),
        relative: limits.relative.unwrap_or(usual),
    };
    let integers = Tolerance { absolute: limits.steps.into(), relative: 0.0 };
    let mut expected: HashMap<Key, Value> =
        expected.into_iter().map(|value| (value.key.clone(), value)).collect();
    let mut compared = 0;
    for value in found {
        let Some(right) = expected.remove(&value.key) else {
            // A device that fuses operations reports fewer results of the main subgraph. Elsewhere
            // a result that only one has means that the two took different paths.
            if value.key.place.subgraph == SubgraphName::Main {
                continue;
            }
            return Err(Box::new((value, Differs::OnlyThere)));
        };
        compared += 1;
        if right.shape != value.shape {
            return Err(Box::new((value, Differs::Shape { expected: right.shape })));
        }
        if right.bytes == value.bytes {
            continue;
        }
        let data_type = value.data_type.unwrap_or(DataType::Uint8);
        let tolerance = if data_type.is_float() { floats } else { integers };
        if let Some(difference) = difference(data_type, &right.bytes, &value.bytes, tolerance) {
            return Err(Box::new((value, Differs::Elements(difference))));
        }
    }
    Ok(compared)
}

/// `None` if every element is within tolerance. A NaN is where the other is one too.
pub fn difference(
    data_type: DataType,
    expected: &[u8],
    found: &[u8],
    tolerance: Tolerance,
) -> Option<Difference> {
    let (expected, found) = (stored(data_type, expected), stored(data_type, found));
    let total = expected.len();
    let mut beyond = expected.iter().zip(&found).enumerate().filter(|(_, (expected, found))| {
        let allowed = tolerance.absolute + tolerance.relative * expected.abs();
        // The same infinity, and what is no number on both sides: the question is whether they differ.
        let is_same = found == expected || (found.is_nan() && expected.is_nan());
        // No share of infinity allows anything; and the comparison is false for a NaN.
        let is_within = expected.is_finite() && (*found - *expected).abs() <= allowed;
        !is_same && !is_within
    });
    let (index, (expected, found)) = beyond.next()?;
    let (expected, found) = (*expected, *found);
    Some(Difference { index, expected, found, count: 1 + beyond.count(), total })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };

    #[test]
    fn the_first_difference_is_named() {
        let found = difference(DataType::Int8, &[1, 2, 0xFF], &[1, 4, 1], EXACT).unwrap();
        assert_eq!(found.to_string(), "element 1 is 4, expected 2 (2 of 3 elements differ)");
    }

    #[test]
    fn nan_and_infinity_agree_with_themselves_alone() {
        let wide = Tolerance { absolute: f64::MAX, relative: 0.0 };
        let nan = f32::NAN.to_ne_bytes();
        assert!(difference(DataType::Float32, &[0; 4], &nan, wide).is_some());
        assert!(difference(DataType::Float32, &nan, &[0; 4], wide).is_some());
        assert!(difference(DataType::Float32, &nan, &(-f32::NAN).to_ne_bytes(), EXACT).is_none());
        let infinite = f32::INFINITY.to_ne_bytes();
        assert!(difference(DataType::Float32, &infinite, &infinite, EXACT).is_none());
        assert!(difference(DataType::Float32, &infinite, &[0; 4], wide).is_some());
        let share = Tolerance { absolute: 0.0, relative: 1e-5 };
        assert!(difference(DataType::Float32, &infinite, &[0; 4], share).is_some());
        assert!(difference(DataType::Float32, &[0; 4], &infinite, wide).is_some());
        assert!(difference(DataType::Float32, &[0; 4], &[0; 4], EXACT).is_none());
    }

    #[test]
    fn a_step_is_allowed_between_integers() {
        let one = Tolerance { absolute: 1.0, relative: 0.0 };
        assert!(difference(DataType::Uint8, &[7], &[8], one).is_none());
        assert!(difference(DataType::Uint8, &[7], &[9], one).is_some());
    }
}
