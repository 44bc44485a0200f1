//! LOGICAL_AND, LOGICAL_OR, LOGICAL_NOT: element by element.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0, and 1 but for LOGICAL_NOT | input | any that broadcast | bool8 |
//! | output 0 | output | the common shape | bool8 |
//!
//! Any byte but 0 is true; results are 0 or 1.
//!
//! Source: `types.hal` 1.2.

use crate::call::{Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::rules::broadcast;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// LOGICAL_AND, LOGICAL_OR or LOGICAL_NOT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Logical {
    /// LOGICAL_AND
    And,
    /// LOGICAL_OR
    Or,
    /// LOGICAL_NOT
    Not,
}

const ROWS: &[Row] = &[Row::new(HalVersion::V1_2, &[OperandType::TensorBool8])];
const BINARY: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input0", 0), Parameter::column("input1", 0)],
    &[Parameter::column("output", 0)],
)];
const UNARY: &[Form] = &[Form::new(
    HalVersion::V1_2,
    &[Parameter::column("input", 0)],
    &[Parameter::column("output", 0)],
)];

static AND: Signature =
    Signature { operation: OperationType::LogicalAnd, rows: ROWS, forms: BINARY };
static OR: Signature = Signature { operation: OperationType::LogicalOr, rows: ROWS, forms: BINARY };
static NOT: Signature =
    Signature { operation: OperationType::LogicalNot, rows: ROWS, forms: UNARY };

impl Operation for Logical {
    const SIGNATURES: &'static [&'static Signature] = &[&AND, &OR, &NOT];

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.operation() {
            OperationType::LogicalOr => Self::Or,
            OperationType::LogicalNot => Self::Not,
            _ => Self::And,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![match self {
            Self::Not => call.input(0).shape.clone(),
            _ => broadcast::shape(call, call.input(0), call.input(1))?,
        }])
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        let (a, output) = (call.input(0), call.output(0));
        // LOGICAL_NOT looks at the same element twice.
        let b = if *self == Self::Not { a } else { call.input(1) };
        let (dimensions, pairs) = broadcast::pairs(call, a, b)?;
        let (of_a, of_b) = (a.bools()?, b.bools()?);
        let elements = output.collect(
            &dimensions,
            pairs.map(|(i, j)| match self {
                Self::And => of_a[i] && of_b[j],
                Self::Or => of_a[i] || of_b[j],
                Self::Not => !of_a[i],
            }),
        )?;
        Ok(vec![output.with_bools(dimensions, &elements)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::testing::{Example, tensor};
    use OperandType::TensorBool8;
    use OperationType::{LogicalAnd, LogicalNot, LogicalOr};

    fn example(operation: OperationType, inputs: &[(&[u32], &[f64])]) -> Example {
        let call = inputs.iter().fold(Example::new(operation), |call, (dimensions, elements)| {
            call.input(tensor(TensorBool8, *dimensions), elements)
        });
        call.output(tensor(TensorBool8, []))
    }

    #[test]
    fn model_25_truth_values_came_with_1_2() {
        let five: (&[u32], &[f64]) = (&[1; 5], &[1.0]);
        for (operation, inputs) in
            [(LogicalAnd, &[five; 2][..]), (LogicalOr, &[five; 2]), (LogicalNot, &[five])]
        {
            assert_eq!(example(operation, inputs).since(), Ok(HalVersion::V1_2));
            assert!(example(operation, inputs).run().is_ok());
            let floats = tensor(OperandType::TensorFloat32, [1]);
            assert_eq!(
                example(operation, inputs).with_input(0, floats, &[1.0]).refusal(),
                format!(
                    "{operation}: type of input 0 ({}) is TENSOR_FLOAT32, expected TENSOR_BOOL8",
                    if operation == LogicalNot { "input" } else { "input0" }
                )
            );
        }
        assert_eq!(
            example(LogicalNot, &[five; 2]).refusal(),
            "LOGICAL_NOT: number of arguments of the operation is 2 inputs and 1 outputs, expected \
             1 inputs and 1 outputs"
        );
    }

    #[test]
    fn truth_tables() {
        // Any byte but 0 is true.
        let a: (&[u32], &[f64]) = (&[2, 2], &[0.0, 0.0, 1.0, 2.0]);
        let b: (&[u32], &[f64]) = (&[2], &[0.0, 4.0]);
        assert_eq!(example(LogicalAnd, &[a, b]).result(), (vec![2, 2], vec![0.0, 0.0, 0.0, 1.0]));
        assert_eq!(example(LogicalOr, &[b, a]).result(), (vec![2, 2], vec![0.0, 1.0, 1.0, 1.0]));
        assert_eq!(example(LogicalNot, &[a]).result(), (vec![2, 2], vec![1.0, 1.0, 0.0, 0.0]));
    }

    #[test]
    fn shapes_must_broadcast() {
        assert_eq!(
            example(LogicalOr, &[(&[2], &[0.0; 2]), (&[3], &[0.0; 3])]).refusal(),
            "LOGICAL_OR: shapes of the operation is [2] and [3], expected shapes that broadcast"
        );
        assert_eq!(example(LogicalAnd, &[(&[0], &[]), (&[1], &[1.0])]).result(), (vec![0], vec![]));
        assert_eq!(example(LogicalNot, &[(&[0, 2], &[])]).result(), (vec![0, 2], vec![]));
        let open = |operation| {
            let call = Example::new(operation).input_to_come(tensor(TensorBool8, [0, 1]));
            call.output(tensor(TensorBool8, []))
        };
        assert_eq!(open(LogicalNot).shapes(), Ok(vec![Shape::new([None, Some(1)])]));
        let both = Example::new(LogicalAnd)
            .input_to_come(tensor(TensorBool8, [0, 1]))
            .input_to_come(tensor(TensorBool8, [2, 3]))
            .output(tensor(TensorBool8, []));
        assert_eq!(both.shapes(), Ok(vec![Shape::known([2, 3])]));
    }
}
