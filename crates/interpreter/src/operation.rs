//! [`compute`]: one operation, by the reference kernel of its definition.

use crate::value::{Tensor, Value, merge};
use nnhal_driver::{Budget, EngineError, Ledger, MemoryUse, OperationPlace, RunContext};
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

/// Gives `work` the call of an operation whose functions end with the budget; what they take is charged to the ledger until `work` is
/// done. It is also given what makes an error of their faults.
///
/// # Errors
/// Those of `work`.
pub fn call_within<T>(
    place: OperationPlace,
    call: Call<'_>,
    ledger: &Ledger,
    budget: &Budget,
    work: impl FnOnce(&Call<'_>, &dyn Fn(Fault) -> EngineError) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let user = MemoryUse::Operation(place);
    let is_over = || budget.check_inside().is_err();
    let taken = RefCell::new(ledger.charge(0, user)?);
    let refusal = Cell::new(None);
    let take = |bytes| {
        let result = taken.borrow_mut().grow(bytes, user);
        result.map_err(|error| refusal.set(Some(error))).is_ok()
    };
    let call = call
        .with_interrupt(nnhal_ops::Interrupt(&is_over))
        .with_allowance(nnhal_ops::Allowance(&take));
    work(&call, &|fault| {
        let reason = match &fault {
            Fault::Interrupted { .. } => budget.check_inside().err().map(EngineError::from),
            Fault::OutOfMemory { .. } => refusal.take(),
            _ => None,
        };
        reason.unwrap_or_else(|| EngineError::operation(place, fault))
    })
}

/// Computes the outputs of an operation, charged to the ledger.
pub(crate) fn compute<'run>(
    place: OperationPlace,
    inputs: &[Input<'_>],
    outputs: &[Output<'_>],
    ledger: &Ledger,
    context: &RunContext<'_>,
) -> Result<Vec<Value<'run>>, EngineError> {
    let user = MemoryUse::Operation(place);
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
    );
    let compute = |call: &Call<'_>, failed: &dyn Fn(Fault) -> EngineError| {
        if inputs.iter().any(|input| matches!(input.value, Value::Omitted)) {
            // Which arguments a request leaves out is new here (contract: REQ-2).
            signature(call).and_then(|signature| signature.since(call)).map_err(failed)?;
        }
        nnhal_ops::operations::validate(call).map_err(failed)?;
        let operation = AnyOperation::decode(call).map_err(failed)?;
        let shapes = operation.output_shapes(call).map_err(failed)?;
        for (output, shape) in outputs.iter().zip(shapes) {
            let shape = merge(place, output.index, &shape, &output.shape)?;
            let element = u64::from(element_size(output.operand.operand_type).unwrap_or(0));
            let bytes = shape.element_count().map_or(0, |count| count.saturating_mul(element));
            ledger.expect_room(bytes, user)?;
        }
        operation.reference(call).map_err(failed)
    };
    // Of what the kernel takes, nothing is left then but the results.
    let computed = call_within(place, call, ledger, context.budget, compute)?;
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
