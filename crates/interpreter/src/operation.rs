//! [`compute`]: one operation, by the reference kernel of its definition.

use crate::value::{Tensor, Value, merge};
use nnhal_driver::{EngineError, Ledger, MemoryUse, OperationPlace, RunContext};
use nnhal_hal::Operand;
use nnhal_ops::extension::element_size;
use nnhal_ops::{AnyOperation, ArgumentSource, Call, Fault, Shape, Signature};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// An input of an operation.
pub(crate) struct Input<'run> {
    pub(crate) operand: &'run Operand,
    /// What is known of it, also where there is no value.
    pub(crate) shape: Shape,
    pub(crate) value: Value<'run>,
}

/// An output that an operation is to compute.
pub(crate) struct Output<'run> {
    /// Of the operand in the subgraph.
    pub(crate) index: u32,
    pub(crate) operand: &'run Operand,
    /// What is declared of it.
    pub(crate) shape: Shape,
}

/// Computes the outputs of an operation, charged to the ledger.
pub(crate) fn compute<'run>(
    place: OperationPlace,
    inputs: &[Input<'_>],
    outputs: &[Output<'_>],
    ledger: &Ledger,
    context: &RunContext<'_>,
) -> Result<Vec<Value<'run>>, EngineError> {
    let is_over = || context.budget.check_inside().is_err();
    // What the kernel takes, its results included, until there is nothing left but those.
    let user = MemoryUse::Operation(place);
    let scratch = RefCell::new(ledger.charge(0, user)?);
    let refusal = Cell::new(None);
    let take = |bytes| {
        let taken = scratch.borrow_mut().grow(bytes, user);
        taken.map_err(|error| refusal.set(Some(error))).is_ok()
    };
    let call = Call::new(
        place.operation_type,
        inputs.iter().map(|input| ArgumentSource {
            operand: input.operand,
            shape: input.shape.clone(),
            value: input.value.for_call(),
        }),
        outputs.iter().map(|output| ArgumentSource {
            operand: output.operand,
            shape: output.shape.clone(),
            value: nnhal_ops::Value::NotKnown,
        }),
    )
    .with_interrupt(nnhal_ops::Interrupt(&is_over))
    .with_allowance(nnhal_ops::Allowance(&take));
    let failed = |fault| match fault {
        Fault::Interrupted { .. } => match context.budget.check_inside() {
            Err(interruption) => EngineError::from(interruption),
            Ok(()) => EngineError::operation(place, fault),
        },
        Fault::OutOfMemory { .. } => {
            refusal.take().unwrap_or_else(|| EngineError::operation(place, fault))
        }
        fault => EngineError::operation(place, fault),
    };
    if inputs.iter().any(|input| matches!(input.value, Value::Omitted)) {
        // Which arguments a request leaves out is new here (contract: REQ-2).
        signature(&call).and_then(|signature| signature.since(&call)).map_err(failed)?;
    }
    nnhal_ops::operations::validate(&call).map_err(failed)?;
    let operation = AnyOperation::decode(&call).map_err(failed)?;
    let shapes = operation.output_shapes(&call).map_err(failed)?;
    for (output, shape) in outputs.iter().zip(shapes) {
        let shape = merge(place, output.index, &shape, &output.shape)?;
        let element = u64::from(element_size(output.operand.operand_type).unwrap_or(0));
        let bytes = shape.element_count().map_or(0, |count| count.saturating_mul(element));
        ledger.expect_room(bytes, user)?;
    }
    let computed = operation.reference(&call).map_err(failed)?;
    scratch.borrow_mut().shrink_to(0);
    let results = outputs.iter().zip(computed).map(|(output, computed)| {
        let found = Shape::known(computed.dimensions.iter().copied());
        merge(place, output.index, &found, &output.shape)?;
        let _charge = ledger.charge(computed.bytes.len() as u64, user)?;
        let nnhal_ops::Output { dimensions, bytes, .. } = computed;
        Ok(Value::Tensor(Rc::new(Tensor { dimensions, bytes, _charge })))
    });
    results.collect()
}

fn signature(call: &Call<'_>) -> Result<&'static Signature, Fault> {
    Signature::of(call.operation())
        .ok_or_else(|| Fault::NotImplemented { operation: call.operation() })
}
