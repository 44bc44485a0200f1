//! Operations give the values that NumPy computed, in the scripts here; calls.py says how their
//! files are to be read.

use half::f16;
use nnhal_hal::{DataLocation, ExtraParams, Operand, OperandLifeTime, OperandType, OperationType};
use nnhal_ops::{AnyOperation, ArgumentSource, Call, Output, Shape, Signature, Value};
use std::collections::BTreeSet;

/// A call as a file has it.
struct Case<'a> {
    operation: OperationType,
    about: &'a str,
    /// How far results may be away from what is expected, absolute and relative.
    tolerance: f64,
    inputs: Vec<Argument>,
    outputs: Vec<Argument>,
}

/// Operations that only computing tells how long the outputs are.
const LENGTHS_OF_VALUES: [OperationType; 2] =
    [OperationType::BoxWithNmsLimit, OperationType::GenerateProposals];

/// How much of a call is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knowledge {
    /// It is about to run.
    Everything,
    /// A model that leaves out arguments, and whose tensors are yet to come.
    Presence,
    /// A model whose requests leave out arguments.
    Scalars,
}

struct Argument {
    operand: Operand,
    dimensions: Vec<u32>,
    /// `None`: left out.
    numbers: Option<Vec<f64>>,
    bytes: Vec<u8>,
}

impl Argument {
    /// From type, scale, zero point, dimensions, and numbers.
    fn parse(line: &str) -> Option<Self> {
        let (kind, line) = line.split_once(' ')?;
        let mut words = line.split_whitespace();
        let operand_type = OperandType::from_name(words.next()?)?;
        let scale = words.next()?.parse().ok()?;
        let zero_point = words.next()?.parse().ok()?;
        let dimensions: Vec<u32> = match words.next()? {
            "-" => Vec::new(),
            lengths => lengths.split('x').map(|it| it.parse().ok()).collect::<Option<_>>()?,
        };
        let numbers: Vec<f64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let operand = Operand {
            operand_type,
            dimensions: dimensions.clone(),
            number_of_consumers: 1,
            scale,
            zero_point,
            lifetime: OperandLifeTime::SubgraphInput,
            location: DataLocation::default(),
            extra_params: ExtraParams::None,
        };
        let bytes = numbers.iter().flat_map(|number| to_bytes(operand_type, *number)).collect();
        let numbers = (kind != "none").then_some(numbers);
        Some(Self { operand, dimensions, numbers, bytes })
    }

    fn source(&self, knowledge: Knowledge) -> ArgumentSource<'_> {
        let is_scalar = self.operand.operand_type.is_scalar();
        let value = match (&self.numbers, knowledge) {
            (Some(_), Knowledge::Everything) => Value::Known(&self.bytes),
            (Some(_), _) if is_scalar => Value::Known(&self.bytes),
            (None, Knowledge::Everything | Knowledge::Presence) => Value::Omitted,
            _ => Value::NotKnown,
        };
        let shape = match value {
            Value::Known(_) => Shape::known(self.dimensions.iter().copied()),
            _ => Shape::of_model(&self.dimensions),
        };
        ArgumentSource { operand: &self.operand, shape, value }
    }
}

/// A number as it is stored.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Files hold what fits.
fn to_bytes(operand_type: OperandType, number: f64) -> Vec<u8> {
    match operand_type {
        OperandType::Float32 | OperandType::TensorFloat32 => (number as f32).to_le_bytes().to_vec(),
        OperandType::Float16 | OperandType::TensorFloat16 => {
            f16::from_f64(number).to_le_bytes().to_vec()
        }
        _ => {
            let size = operand_type.element_size().unwrap_or(0) as usize;
            (number as i64).to_le_bytes()[..size].to_vec()
        }
    }
}

/// The numbers that an output holds.
fn from_bytes(operand_type: OperandType, bytes: &[u8]) -> Vec<f64> {
    let size = operand_type.element_size().unwrap_or(1) as usize;
    let number = |bytes: &[u8]| match (operand_type, bytes) {
        (OperandType::TensorFloat32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
        (OperandType::TensorFloat16, &[a, b]) => f16::from_le_bytes([a, b]).into(),
        (OperandType::TensorQuant8Asymm, &[byte]) => byte.into(),
        (OperandType::TensorQuant16Asymm, &[a, b]) => u16::from_le_bytes([a, b]).into(),
        (OperandType::TensorInt32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]).into(),
        (_, &[byte]) => byte.cast_signed().into(),
        (_, &[a, b]) => i16::from_le_bytes([a, b]).into(),
        _ => panic!("no output here is {operand_type}"),
    };
    bytes.chunks(size).map(number).collect()
}

impl<'a> Case<'a> {
    fn parse_all(text: &'a str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let parsed = match (line.strip_prefix("call "), cases.last_mut()) {
                (Some(call), _) => Self::parse(call).map(|case| cases.push(case)),
                (None, None) => None,
                (None, Some(case)) => Argument::parse(line).map(|argument| {
                    let is_output = line.starts_with("out ");
                    if is_output { &mut case.outputs } else { &mut case.inputs }.push(argument);
                }),
            };
            parsed.unwrap_or_else(|| panic!("cannot read: {line}"));
        }
        cases
    }

    fn parse(call: &'a str) -> Option<Self> {
        let mut words = call.splitn(3, ' ');
        Some(Self {
            operation: OperationType::from_name(words.next()?)?,
            tolerance: words.next()?.parse().ok()?,
            about: words.next()?,
            inputs: Vec::new(),
            outputs: Vec::new(),
        })
    }

    /// The call. Nothing is known of its outputs.
    fn call(&self, knowledge: Knowledge) -> Call<'_> {
        let inputs = self.inputs.iter().map(|argument| argument.source(knowledge));
        let outputs = self.outputs.iter().map(|argument| ArgumentSource {
            operand: &argument.operand,
            shape: Shape::UNKNOWN,
            value: Value::NotKnown,
        });
        Call::new(self.operation, inputs, outputs)
    }

    /// The shapes that are foretold, and the results.
    fn run(&self, call: &Call<'_>) -> Result<(Vec<Shape>, Vec<Output>), nnhal_ops::Fault> {
        let signature = Signature::of(self.operation).expect("an operation that is defined");
        signature.since(call)?;
        nnhal_ops::operations::validate(call)?;
        let operation = AnyOperation::decode(call)?;
        Ok((operation.output_shapes(call)?, operation.reference(call)?))
    }

    /// What is wrong, if anything is.
    fn check(&self) -> Result<(), String> {
        let (shapes, results) =
            self.run(&self.call(Knowledge::Everything)).map_err(|fault| fault.to_string())?;
        if results.len() != self.outputs.len() || shapes.len() != self.outputs.len() {
            return Err(format!("{} results of {} shapes", results.len(), shapes.len()));
        }
        for (index, (expected, found)) in self.outputs.iter().zip(results).enumerate() {
            let exact = Shape::known(expected.dimensions.iter().copied());
            let is_foretold = if LENGTHS_OF_VALUES.contains(&self.operation) {
                shapes[index].merge(&exact) == Some(exact)
            } else {
                shapes[index] == exact
            };
            if !is_foretold {
                return Err(format!("the shape foretold of output {index} is {}", shapes[index]));
            }
            if found.dimensions != expected.dimensions {
                return Err(format!("output {index} has dimensions {:?}", found.dimensions));
            }
            let found = from_bytes(expected.operand.operand_type, &found.bytes);
            let expected = expected.numbers.as_deref().unwrap_or(&[]);
            let is_close =
                |(x, y): (&f64, &f64)| (x - y).abs() <= self.tolerance * y.abs().max(1.0);
            if !found.iter().zip(expected).all(is_close) || found.len() != expected.len() {
                return Err(format!("output {index} is {found:?}\nexpected {expected:?}"));
            }
        }
        Ok(())
    }

    /// A model knows the same of the outputs before it has the tensors, as far as it says anything.
    fn check_before(&self, knowledge: Knowledge) -> Result<(), String> {
        let call = self.call(knowledge);
        nnhal_ops::operations::validate(&call).map_err(|fault| fault.to_string())?;
        let shapes = AnyOperation::decode(&call).and_then(|it| it.output_shapes(&call));
        let shapes = shapes.map_err(|fault| fault.to_string())?;
        for (expected, shape) in self.outputs.iter().zip(shapes) {
            let exact = Shape::known(expected.dimensions.iter().copied());
            if shape.merge(&exact) != Some(exact) {
                return Err(format!("before values are known, a shape is {shape}"));
            }
        }
        Ok(())
    }
}

fn check_all(text: &str, operations: &[OperationType]) {
    let cases = Case::parse_all(text);
    let seen: BTreeSet<String> = cases.iter().map(|case| case.operation.to_string()).collect();
    let expected: BTreeSet<String> = operations.iter().map(ToString::to_string).collect();
    assert_eq!(seen, expected);
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let wrong = case
                .check()
                .and_then(|()| case.check_before(Knowledge::Presence))
                .and_then(|()| case.check_before(Knowledge::Scalars))
                .err()?;
            Some(format!("{} ({}): {wrong}", case.operation, case.about))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn recurrent_operations_give_the_values_of_numpy() {
    let operations = [
        OperationType::Lstm,
        OperationType::UnidirectionalSequenceLstm,
        OperationType::BidirectionalSequenceLstm,
        OperationType::Rnn,
        OperationType::UnidirectionalSequenceRnn,
        OperationType::BidirectionalSequenceRnn,
        OperationType::Svdf,
        OperationType::Quantized16bitLstm,
        OperationType::QuantizedLstm,
    ];
    check_all(include_str!("recurrent.txt"), &operations);
}

#[test]
fn detection_operations_give_the_values_of_numpy() {
    let operations = [
        OperationType::AxisAlignedBboxTransform,
        OperationType::BoxWithNmsLimit,
        OperationType::DetectionPostprocessing,
        OperationType::GenerateProposals,
        OperationType::HeatmapMaxKeypoint,
        OperationType::RoiAlign,
        OperationType::RoiPooling,
    ];
    check_all(include_str!("detection.txt"), &operations);
}
