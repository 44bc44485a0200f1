//! Running a [`Call`] as a model of its own on the reference device.

pub use crate::calls::model::{Arguments, Constants, ROOM, Shapes, Tensor, declared};

use crate::calls::model::{self, alone};
use crate::random::Random;
use crate::sample::Call;
use nnhal_hal::{Model, OperandId, OperationType, Request, RequestBuilder, SubgraphBuilder};
use nnhal_ops::Signature;

/// Prepares a model, runs a request, and gives all outputs.
pub fn execute(model: &Model, request: &Request) -> Result<Vec<Tensor>, String> {
    model::execute(&*nnhal_reference::device(), model, request)
}

/// Runs a call as a model of one operation.
pub fn run(
    call: &Call,
    shapes: Shapes<'_>,
    constants: Constants,
    random: &mut Random,
) -> Result<Vec<Tensor>, String> {
    let (model, request) = alone(call, shapes, constants, random)?;
    execute(&model, &request)
}

/// Runs a call whose first result is a temporary without a shape, which gets another axis then and
/// is the model's only output. `None` if no operation can do that for its type.
pub fn run_before_another(call: &Call, random: &mut Random) -> Result<Option<Tensor>, String> {
    let result = &call.outputs[0];
    let rows = Signature::of(OperationType::ExpandDims).expect("an operation").rows;
    if !rows.iter().any(|row| row.types == [result.operand_type]) {
        return Ok(None);
    }
    let mut graph = SubgraphBuilder::new();
    let mut request = RequestBuilder::new();
    let mut arguments = Arguments { random, constants: Constants::Some };
    let inputs: Vec<OperandId> = call
        .inputs
        .iter()
        .enumerate()
        .map(|(at, input)| arguments.place(&mut graph, &mut request, at, input, Shapes::Unknown))
        .collect();
    let outputs: Vec<OperandId> =
        call.outputs.iter().map(|output| graph.temporary(output.clone())).collect();
    graph.operation_into(call.operation, inputs, &outputs);
    let axis = graph.scalar_i32(0);
    let deeper = graph.operation(OperationType::ExpandDims, [outputs[0], axis], result.clone());
    graph.output(deeper);
    request.output(ROOM);
    let model = model::with_extension(graph)?;
    let mut outputs = execute(&model, &request.build().map_err(|error| error.to_string())?)?;
    Ok(Some(outputs.swap_remove(0)))
}
