//! What the extension's operations mean, a file each: argument types, decoding, output shape,
//! kernel, in the order in which they are asked for, as `ops` has it for the interface's own.

mod fibonacci;
mod to_float32;

pub use fibonacci::Fibonacci;
pub use to_float32::ToFloat32;

use crate::vocabulary::Vocabulary;
use nnhal_driver::{Budget, Interruption};
use nnhal_hal::{ExtraParams, OperandType};
use nnhal_ops::{Call, Fault, Output, Shape};

/// An operation of the extension with its arguments decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtensionOperation {
    /// FIBONACCI
    Fibonacci(Fibonacci),
    /// TO_FLOAT32
    ToFloat32(ToFloat32),
}

impl ExtensionOperation {
    /// Whether an operation can be done, as far as its arguments are known. Everything that can be
    /// wrong with it and does not depend on a request must be found here: what is called supported
    /// has to be prepared (contract: DEV-SUP-3).
    ///
    /// The driver has looked at the sizes of the extension's operands before it asks (contract:
    /// EXT-5).
    ///
    /// # Errors
    /// What is wrong, or that the extension has no such operation.
    pub fn validate(call: &Call<'_>, vocabulary: Vocabulary) -> Result<(), Fault> {
        for argument in call.inputs().iter().chain(call.outputs()) {
            if let ExtraParams::Extension(bytes) = argument.extra_params {
                let found = format!("{} bytes", bytes.len());
                return Err(argument.wrong("blob of extension parameters", found, "none"));
            }
        }
        let operation = call.operation();
        if operation == vocabulary.fibonacci() {
            Fibonacci::expect_types(call, vocabulary)?;
        } else if operation == vocabulary.to_float32() {
            ToFloat32::expect_types(call, vocabulary)?;
        } else {
            return Err(Fault::NotImplemented { operation });
        }
        let (output, shape) =
            (call.output(0), Self::decode(call, vocabulary).map(|it| it.output_shape(call)));
        match Fault::pass_over_unknown(shape)? {
            Some(shape) if output.shape.merge(&shape).is_none() => {
                Err(output.wrong("shape", &output.shape, shape))
            }
            _ => Ok(()),
        }
    }

    /// The arguments of an operation whose types were found right.
    ///
    /// # Errors
    /// [`Fault::NotKnown`], or a value that the definition excludes.
    pub fn decode(call: &Call<'_>, vocabulary: Vocabulary) -> Result<Self, Fault> {
        if call.operation() == vocabulary.fibonacci() {
            Fibonacci::decode(call).map(Self::Fibonacci)
        } else {
            Ok(Self::ToFloat32(ToFloat32))
        }
    }

    /// The shape of the one output, as far as it is known.
    pub fn output_shape(&self, call: &Call<'_>) -> Shape {
        match self {
            Self::Fibonacci(fibonacci) => fibonacci.output_shape(),
            Self::ToFloat32(_) => ToFloat32::output_shape(call),
        }
    }

    /// The value of the one output. Asks the budget now and then whether to go on.
    ///
    /// # Errors
    /// What the budget says, or what is wrong with the arguments.
    pub fn compute(&self, call: &Call<'_>, budget: &Budget) -> Result<Output, Stop> {
        match self {
            Self::Fibonacci(fibonacci) => Ok(fibonacci.compute(budget)?),
            Self::ToFloat32(_) => Ok(ToFloat32::compute(call)?),
        }
    }
}

/// Why a kernel came to no end.
#[derive(Debug)]
pub enum Stop {
    /// It was notified to stop.
    Interrupted(Interruption),
    /// Something is wrong with its arguments.
    Fault(Fault),
}

impl From<Interruption> for Stop {
    fn from(interruption: Interruption) -> Self {
        Self::Interrupted(interruption)
    }
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Demands one of several lists of input types, and one output.
fn expect_types(
    call: &Call<'_>,
    allowed: &[&[OperandType]],
    output: OperandType,
) -> Result<(), Fault> {
    let types = |arguments: &[nnhal_ops::Argument<'_>]| -> Vec<OperandType> {
        arguments.iter().map(|argument| argument.operand_type).collect()
    };
    let (inputs, outputs) = (types(call.inputs()), types(call.outputs()));
    if allowed.contains(&&inputs[..]) && outputs == [output] {
        return Ok(());
    }
    let shown = |inputs: &[OperandType], outputs: &[OperandType]| {
        let list = |types: &[OperandType]| {
            types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        format!("({}) -> ({})", list(inputs), list(outputs))
    };
    let expected: Vec<_> = allowed.iter().map(|inputs| shown(inputs, &[output])).collect();
    Err(call.wrong("signature", shown(&inputs, &outputs), expected.join(" or ")))
}
