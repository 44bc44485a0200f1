//! [`FibonacciProgram`]: a model that is ready to run.

use crate::operations::{ExtensionOperation, Stop};
use crate::vocabulary::Vocabulary;
use nnhal_driver::{
    Bindings, Budget, Charge, Constants, EngineError, Ledger, MemoryUse, OperationPlace, Program,
    RunContext,
};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{OperandLifeTime, Operation, OperationType, Subgraph};
use nnhal_ops::{
    AnyOperation, ArgumentSource, Call, Fault, Output, Shape, Signature, ValidModel, Value,
};
use nnhal_reference::InterpretedProgram;

/// A model that is ready to run.
#[derive(Debug)]
pub enum FibonacciProgram {
    /// Nothing in it is the extension's: the reference engine's program is ours.
    Delegated(InterpretedProgram),
    /// One operation after the other, the extension's by its kernels, the interface's by their
    /// reference kernels.
    Interpreted(Interpreted),
}

impl Program for FibonacciProgram {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        match self {
            Self::Delegated(program) => program.run(bindings, context),
            Self::Interpreted(program) => program.run(bindings, context.budget),
        }
    }
}

/// The main subgraph of a model, without control flow. The model itself is the client's, so what
/// is needed of it is kept here.
#[derive(Debug)]
pub struct Interpreted {
    main: Subgraph,
    /// For each operand what the model says of its shape.
    shapes: Vec<Shape>,
    constants: Constants,
    vocabulary: Option<Vocabulary>,
    ledger: Ledger,
}

/// What an operand holds during an execution.
type Slot = Option<Output>;

impl Interpreted {
    pub(crate) fn new(model: &ValidModel, memory_limit: u64) -> Result<Self, EngineError> {
        let main = model.main().clone();
        let shapes = (0..main.operands.len())
            .filter_map(|operand| u32::try_from(operand).ok())
            .map(|operand| model.shape(SubgraphName::Main, operand).clone())
            .collect();
        let ledger = Ledger::of_model(memory_limit);
        let constants = Constants::read(model, &ledger)?;
        let vocabulary = Vocabulary::of(model.model());
        Ok(Self { main, shapes, constants, vocabulary, ledger })
    }

    fn run(&self, bindings: &Bindings, budget: &Budget) -> Result<(), EngineError> {
        // What the execution makes: all of it is kept until the end.
        let mut memory = self.ledger.charge(0, MemoryUse::Inputs)?;
        let mut slots: Vec<Slot> = vec![None; self.main.operands.len()];
        for (operand, input) in self.main.inputs.iter().zip(bindings.inputs()) {
            // An input without region is left out by the request.
            let Some(region) = input.value() else { continue };
            memory.grow(region.length(), MemoryUse::Inputs)?;
            let dimensions = input.shape().to_known().unwrap_or_default();
            slots[*operand as usize] = Some(Output { dimensions, bytes: region.read_to_vec()? });
        }
        for (index, operation) in self.main.operations.iter().enumerate() {
            budget.check()?;
            let operation_type = operation.operation_type;
            let place = OperationPlace { subgraph: SubgraphName::Main, index, operation_type };
            let results = self.compute(place, operation, &slots, budget, &mut memory)?;
            for (operand, result) in operation.outputs.iter().zip(results) {
                let found = Shape::known(result.dimensions.iter().copied());
                let expected = &self.shapes[*operand as usize];
                if expected.merge(&found).is_none() {
                    let (operand, expected) = (*operand, expected.clone());
                    return Err(EngineError::Shape { place, operand, found, expected });
                }
                slots[*operand as usize] = Some(result);
            }
        }
        for (operand, output) in self.main.outputs.iter().zip(bindings.outputs()) {
            if let Some(result) = &slots[*operand as usize] {
                output.deliver(&result.dimensions, &result.bytes)?;
            }
        }
        Ok(())
    }

    fn compute(
        &self,
        place: OperationPlace,
        operation: &Operation,
        slots: &[Slot],
        budget: &Budget,
        memory: &mut Charge,
    ) -> Result<Vec<Output>, EngineError> {
        let inputs = operation.inputs.iter().map(|operand| self.argument(*operand, slots));
        let outputs = operation.outputs.iter().map(|operand| self.argument(*operand, slots));
        let call = Call::new(place.operation_type, inputs, outputs);
        let wrong = |fault| EngineError::operation(place, fault);
        match (place.operation_type, self.vocabulary) {
            (OperationType::Extension(_), Some(vocabulary)) => {
                let operation = ExtensionOperation::decode(&call, vocabulary).map_err(wrong)?;
                charge_results(memory, place, &call, &[operation.output_shape(&call)])?;
                let computed = operation.compute(&call, budget);
                let output = computed.map_err(|stop| match stop {
                    Stop::Interrupted(interruption) => interruption.into(),
                    Stop::Fault(fault) => EngineError::operation(place, fault),
                })?;
                Ok(vec![output])
            }
            _ => {
                // Which arguments a request leaves out is only known now (contract: REQ-2).
                let operation = place.operation_type;
                let signature = Signature::of(operation)
                    .ok_or(Fault::NotImplemented { operation })
                    .map_err(wrong)?;
                signature.since(&call).map_err(wrong)?;
                nnhal_ops::operations::validate(&call).map_err(wrong)?;
                let operation = AnyOperation::decode(&call).map_err(wrong)?;
                charge_results(
                    memory,
                    place,
                    &call,
                    &operation.output_shapes(&call).map_err(wrong)?,
                )?;
                operation.reference(&call).map_err(wrong)
            }
        }
    }

    /// An operand as operations see it.
    fn argument<'a>(&'a self, index: u32, slots: &'a [Slot]) -> ArgumentSource<'a> {
        let operand = &self.main.operands[index as usize];
        let declared = || self.shapes[index as usize].clone();
        match (operand.lifetime, &slots[index as usize]) {
            (OperandLifeTime::ConstantCopy | OperandLifeTime::ConstantReference, _) => {
                let bytes = self.constants.bytes(SubgraphName::Main, index);
                let value = bytes.map_or(Value::Omitted, Value::Known);
                ArgumentSource { operand, shape: declared(), value }
            }
            (_, Some(Output { dimensions, bytes })) => {
                let shape = Shape::known(dimensions.iter().copied());
                ArgumentSource { operand, shape, value: Value::Known(bytes) }
            }
            (OperandLifeTime::TemporaryVariable | OperandLifeTime::SubgraphOutput, None) => {
                ArgumentSource { operand, shape: declared(), value: Value::NotKnown }
            }
            // Left out by the model or by the request.
            (_, None) => ArgumentSource { operand, shape: declared(), value: Value::Omitted },
        }
    }
}

/// Room for an operation's results, before they are computed: how many there are may be a number
/// in a stranger's request (contract: SEC-3).
fn charge_results(
    memory: &mut Charge,
    place: OperationPlace,
    call: &Call<'_>,
    shapes: &[Shape],
) -> Result<(), EngineError> {
    for (argument, shape) in call.outputs().iter().zip(shapes) {
        // All types of the extension take 8 bytes.
        let element = u64::from(argument.operand_type.element_size().unwrap_or(8));
        let wanted = shape.element_count().unwrap_or(0).saturating_mul(element);
        memory.grow(wanted, MemoryUse::Operation(place))?;
    }
    Ok(())
}
