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
use hal::{HalVersion, OperandType, OperationType};

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
    fn signature(operation: OperationType) -> &'static Signature {
        match operation {
            OperationType::LogicalOr => &OR,
            OperationType::LogicalNot => &NOT,
            _ => &AND,
        }
    }

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
        let mut elements = output.allocate(&dimensions)?;
        elements.extend(pairs.map(|(i, j)| match self {
            Self::And => of_a[i] && of_b[j],
            Self::Or => of_a[i] || of_b[j],
            Self::Not => !of_a[i],
        }));
        Ok(vec![output.with_bools(dimensions, &elements)])
    }
}
