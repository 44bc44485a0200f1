//! [`Builder`]: a subgraph being built, of operations of the interface where it has them, and otherwise of
//! our extension's.
//!
//! Whoever translates an operator writes the interface's operation. If that does not take the arguments as
//! they are, for their type or their rank, and the extension has an operation with the same rules that does,
//! it is written in its place. Indexes of 64 bits become indexes of 32 bits, which operations of both take:
//! one that 32 bits do not hold is out of range of everything, and stays so.

use nnhal_hal::{
    Operand, OperandId, OperandLifeTime, OperandSpec, OperandType, OperationType, SubgraphBuilder,
};
use nnhal_ops::extension::{ExtensionOperation, TENSOR_INT64};
use nnhal_ops::{ArgumentSource, Call, ParameterType, Shape, Signature, Value};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// A subgraph being built.
#[derive(Debug)]
pub(super) struct Builder {
    subgraph: SubgraphBuilder,
    /// By operand of 64 bits its [`Builder::narrowed`].
    narrow: HashMap<u32, OperandId>,
}

impl Deref for Builder {
    type Target = SubgraphBuilder;

    fn deref(&self) -> &SubgraphBuilder {
        &self.subgraph
    }
}

impl DerefMut for Builder {
    fn deref_mut(&mut self) -> &mut SubgraphBuilder {
        &mut self.subgraph
    }
}

impl Builder {
    pub(super) fn new() -> Self {
        Self { subgraph: SubgraphBuilder::new(), narrow: HashMap::new() }
    }

    pub(super) fn into_inner(self) -> SubgraphBuilder {
        self.subgraph
    }

    /// Whether an operand's value is known before anything runs.
    pub(super) fn is_constant(&self, operand: OperandId) -> bool {
        let operand = self.subgraph.subgraph_so_far().operands.get(operand.index() as usize);
        operand.is_some_and(|it| it.lifetime.is_constant())
    }

    /// As [`SubgraphBuilder::operation`].
    pub(super) fn operation(
        &mut self,
        operation: OperationType,
        inputs: impl AsRef<[OperandId]>,
        output: OperandSpec,
    ) -> OperandId {
        let output = self.subgraph.temporary(output);
        self.operation_into(operation, inputs, [output]);
        output
    }

    /// An operation of the extension with one result.
    pub(super) fn extended(
        &mut self,
        operation: ExtensionOperation,
        inputs: impl AsRef<[OperandId]>,
        output: OperandSpec,
    ) -> OperandId {
        self.operation(operation.operation_type(), inputs, output)
    }

    /// As [`SubgraphBuilder::operation_with_outputs`].
    pub(super) fn operation_with_outputs<const N: usize>(
        &mut self,
        operation: OperationType,
        inputs: impl AsRef<[OperandId]>,
        outputs: [OperandSpec; N],
    ) -> [OperandId; N] {
        let outputs = outputs.map(|output| self.subgraph.temporary(output));
        self.operation_into(operation, inputs, outputs);
        outputs
    }

    /// As [`SubgraphBuilder::operation_into`].
    pub(super) fn operation_into(
        &mut self,
        operation: OperationType,
        inputs: impl AsRef<[OperandId]>,
        outputs: impl AsRef<[OperandId]>,
    ) {
        let outputs = outputs.as_ref();
        let inputs = self.with_narrow_indexes(operation, inputs.as_ref());
        if let [a, b, activation] = inputs[..]
            && operation == OperationType::Div
            && !self.takes(operation, &inputs, outputs)
            && self.subgraph.constant_value(activation.index()) == Some(&[0; 4])
        {
            // The extension's DIV fuses nothing, and of integers is another one than the interface's.
            let division = ExtensionOperation::Div.operation_type();
            return self.subgraph.operation_into(division, [a, b], outputs);
        }
        let chosen = match ExtensionOperation::extending(operation) {
            Some(extended) if !self.takes(operation, &inputs, outputs) => {
                let extended = extended.operation_type();
                // An operation that neither takes is reported as the interface's.
                let is_taken = self.takes(extended, &inputs, outputs);
                if is_taken { extended } else { operation }
            }
            _ => operation,
        };
        self.subgraph.operation_into(chosen, inputs, outputs);
    }

    /// Whether an operation takes arguments of these types, ranks and quantizations.
    fn takes(&self, operation: OperationType, inputs: &[OperandId], outputs: &[OperandId]) -> bool {
        let Some(signature) = Signature::of(operation) else { return false };
        let operands = &self.subgraph.subgraph_so_far().operands;
        let argument = |id: &OperandId| operands.get(id.index() as usize).map(argument);
        let call = Call::new(
            operation,
            inputs.iter().filter_map(argument),
            outputs.iter().filter_map(argument),
        );
        signature.since(&call).is_ok() && nnhal_ops::operations::validate(&call).is_ok()
    }

    /// The inputs with integers of 32 bits where the operation has indexes.
    fn with_narrow_indexes(
        &mut self,
        operation: OperationType,
        inputs: &[OperandId],
    ) -> Vec<OperandId> {
        let mut inputs = inputs.to_vec();
        let Some(signature) = Signature::of(operation) else { return inputs };
        for (position, input) in inputs.iter_mut().enumerate() {
            let takes_indexes = signature.forms.iter().any(|form| {
                let fixed = ParameterType::Fixed(OperandType::TensorInt32);
                form.inputs.get(position).is_some_and(|it| it.parameter_type == fixed)
            });
            if takes_indexes && self.subgraph.spec(*input).operand_type == TENSOR_INT64 {
                *input = self.narrowed(*input);
            }
        }
        inputs
    }

    /// Integers of 64 bits as integers of 32 bits, the nearest where they do not hold them.
    pub(super) fn narrowed(&mut self, operand: OperandId) -> OperandId {
        if let Some(narrow) = self.narrow.get(&operand.index()) {
            return *narrow;
        }
        let narrow = self.newly_narrowed(operand);
        self.narrow.insert(operand.index(), narrow);
        narrow
    }

    fn newly_narrowed(&mut self, operand: OperandId) -> OperandId {
        let spec = OperandSpec::tensor_int32(self.subgraph.spec(operand).dimensions);
        if let Some(bytes) = self.subgraph.constant_value(operand.index()) {
            let (integers, _) = bytes.as_chunks();
            let narrow = |bytes: &[u8; 8]| {
                let integer = i64::from_le_bytes(*bytes);
                i32::try_from(integer).unwrap_or(if integer < 0 { i32::MIN } else { i32::MAX })
            };
            let narrow: Vec<i32> = integers.iter().map(narrow).collect();
            return self.subgraph.constant(spec, &narrow);
        }
        let saturates = self.subgraph.scalar_bool(true);
        self.extended(ExtensionOperation::Cast, [operand, saturates], spec)
    }
}

/// An operand as an argument of which no value is known.
fn argument(operand: &Operand) -> ArgumentSource<'_> {
    let is_omitted = operand.lifetime == OperandLifeTime::NoValue;
    ArgumentSource {
        operand,
        shape: Shape::of_model(&operand.dimensions),
        value: if is_omitted { Value::Omitted } else { Value::NotKnown },
    }
}
