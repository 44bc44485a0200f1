//! IF and WHILE: operations that run other subgraphs of the model.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | IF, input 0 | condition | `[1]` | TENSOR_BOOL8 |
//! | IF, input 1, 2 | then, else | | SUBGRAPH |
//! | IF, input 3 and on | arguments of both subgraphs | any | any |
//! | WHILE, input 0, 1 | condition, body | | SUBGRAPH |
//! | WHILE, input 2 and on | initial arguments of both subgraphs | any, known | any |
//! | output 0 and on | results | any; of WHILE known | any |
//!
//! IF runs `then` if the byte of the condition is not 0, else `else`. WHILE runs the condition, and
//! as long as its result is not 0 the body, whose results take the place of the first arguments
//! of the next round (contract: CF-9). How operands and subgraphs must go together is checked by
//! [`validate`](crate::validate()) (contract: CF-1 to CF-5): a call alone does not show the
//! subgraphs. Running them is up to engines.
//!
//! Source: `types.hal` 1.3.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::shape::Shape;
use crate::signature::{Form, Parameter, Row, Signature};
use nnhal_hal::{HalVersion, OperandType, OperationType};

/// IF or WHILE, with the indexes of the referenced subgraphs that it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ControlFlow {
    /// IF
    If {
        /// Run if the condition holds.
        then: usize,
        /// Run if it does not.
        otherwise: usize,
    },
    /// WHILE
    While {
        /// Says whether there is another round.
        condition: usize,
        /// A round.
        body: usize,
    },
}

const SUBGRAPH: OperandType = OperandType::Subgraph;
const NO_COLUMNS: &[Row] = &[Row::new(HalVersion::V1_3, &[])];
const RESULTS: &[Parameter] = &[Parameter::any("output").repeated(1)];

static IF: Signature = Signature {
    operation: OperationType::If,
    rows: NO_COLUMNS,
    forms: &[Form::new(
        HalVersion::V1_3,
        &[
            Parameter::fixed("condition", OperandType::TensorBool8),
            Parameter::fixed("then", SUBGRAPH),
            Parameter::fixed("else", SUBGRAPH),
            Parameter::any("input").repeated(0),
        ],
        RESULTS,
    )],
};

static WHILE: Signature = Signature {
    operation: OperationType::While,
    rows: NO_COLUMNS,
    forms: &[Form::new(
        HalVersion::V1_3,
        &[
            Parameter::fixed("condition", SUBGRAPH),
            Parameter::fixed("body", SUBGRAPH),
            Parameter::any("input").repeated(1),
        ],
        RESULTS,
    )],
};

impl ControlFlow {
    /// The place of the first input that is an argument of the subgraphs.
    pub fn first_argument(&self) -> usize {
        match self {
            Self::If { .. } => 3,
            Self::While { .. } => 2,
        }
    }
}

/// The index of the subgraph that an argument refers to.
fn subgraph(argument: &Argument<'_>) -> Result<usize, Fault> {
    let bytes = argument.bytes()?;
    let index = bytes.try_into().map_err(|_| argument.wrong("length in bytes", bytes.len(), 4))?;
    Ok(u32::from_le_bytes(index) as usize)
}

impl Operation for ControlFlow {
    const SIGNATURES: &'static [&'static Signature] = &[&IF, &WHILE];

    /// The value of a `SUBGRAPH` argument is the subgraph's index, as 4 bytes, little endian.
    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        Ok(match call.operation() {
            OperationType::While => {
                Self::While { condition: subgraph(call.input(0))?, body: subgraph(call.input(1))? }
            }
            _ => Self::If { then: subgraph(call.input(1))?, otherwise: subgraph(call.input(2))? },
        })
    }

    /// All unknown: they are what the subgraphs make them.
    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        Ok(vec![Shape::UNKNOWN; call.outputs().len()])
    }

    /// Not for this one: engines run subgraphs.
    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Err(call.wrong("runner", "a kernel", "an engine, which can run subgraphs"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{ArgumentSource, Value};
    use nnhal_hal::{Operand, OperandLifeTime};

    fn operand(operand_type: OperandType) -> Operand {
        Operand {
            operand_type,
            dimensions: vec![],
            number_of_consumers: 1,
            scale: 0.0,
            zero_point: 0,
            lifetime: OperandLifeTime::TemporaryVariable,
            location: nnhal_hal::DataLocation::default(),
            extra_params: nnhal_hal::ExtraParams::None,
        }
    }

    /// Calls an operation with inputs of these types; each value is a byte string.
    fn with_call<T>(
        operation: OperationType,
        inputs: &[(OperandType, &[u8])],
        outputs: usize,
        look: impl FnOnce(&Call<'_>) -> T,
    ) -> T {
        let operands: Vec<_> = inputs.iter().map(|(ty, _)| operand(*ty)).collect();
        let output = operand(OperandType::TensorFloat32);
        let inputs = operands.iter().zip(inputs).map(|(operand, (_, value))| ArgumentSource {
            operand,
            shape: Shape::UNKNOWN,
            value: Value::Known(value),
        });
        let outputs = std::iter::repeat_n(&output, outputs).map(|operand| ArgumentSource {
            operand,
            shape: Shape::UNKNOWN,
            value: Value::NotKnown,
        });
        look(&Call::new(operation, inputs, outputs))
    }

    const CONDITION: (OperandType, &[u8]) = (OperandType::TensorBool8, &[1]);
    const X: (OperandType, &[u8]) = (OperandType::TensorFloat32, &[]);
    const FIRST: (OperandType, &[u8]) = (SUBGRAPH, &[1, 0, 0, 0]);
    const SECOND: (OperandType, &[u8]) = (SUBGRAPH, &[0, 2, 0, 0]);

    #[test]
    fn cf_1_if_takes_a_condition_and_two_subgraphs() {
        let since = |inputs: &[_], outputs| {
            with_call(OperationType::If, inputs, outputs, |call| IF.since(call))
        };
        assert_eq!(since(&[CONDITION, FIRST, SECOND], 1), Ok(HalVersion::V1_3));
        assert_eq!(since(&[CONDITION, FIRST, SECOND, X, CONDITION], 2), Ok(HalVersion::V1_3));
        assert!(since(&[CONDITION, FIRST], 1).is_err());
        assert!(since(&[CONDITION, FIRST, SECOND], 0).is_err());
        assert!(since(&[CONDITION, FIRST, X], 1).is_err());
        assert!(since(&[X, FIRST, SECOND], 1).is_err());
    }

    #[test]
    fn cf_2_while_takes_two_subgraphs_and_an_argument() {
        let since = |inputs: &[_], outputs| {
            with_call(OperationType::While, inputs, outputs, |call| WHILE.since(call))
        };
        assert_eq!(since(&[FIRST, SECOND, X], 1), Ok(HalVersion::V1_3));
        assert!(since(&[FIRST, SECOND], 1).is_err());
        assert!(since(&[FIRST, SECOND, X], 0).is_err());
        assert!(since(&[FIRST, X, X], 1).is_err());
    }

    #[test]
    fn subgraphs_are_decoded() {
        let decoded =
            |operation, inputs: &[_]| with_call(operation, inputs, 1, ControlFlow::decode).unwrap();
        let branches = decoded(OperationType::If, &[CONDITION, FIRST, SECOND]);
        assert_eq!(branches, ControlFlow::If { then: 1, otherwise: 512 });
        assert_eq!(branches.first_argument(), 3);
        let rounds = decoded(OperationType::While, &[SECOND, FIRST, X]);
        assert_eq!(rounds, ControlFlow::While { condition: 512, body: 1 });
        assert_eq!(rounds.first_argument(), 2);
    }

    #[test]
    fn running_is_left_to_engines() {
        let fault = with_call(OperationType::If, &[CONDITION, FIRST, SECOND], 2, |call| {
            let operation = ControlFlow::decode(call).unwrap();
            assert_eq!(operation.output_shapes(call), Ok(vec![Shape::UNKNOWN; 2]));
            operation.reference(call).unwrap_err()
        });
        assert!(matches!(fault, Fault::Invalid(_)), "{fault}");
    }
}
