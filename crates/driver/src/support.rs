//! Which operations an engine can run, control flow included (contract: DEV-SUP).

use crate::engine::Engine;
use crate::error::OperationPlace;
use hal::model::SubgraphName;
use hal::{OperandLifeTime, OperationType, Subgraph, Support};
use ops::ValidModel;
use std::fmt;

/// The operations of a model's main subgraph that an engine cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedOperations {
    /// Each with the reason.
    pub operations: Vec<(OperationPlace, String)>,
}

impl fmt::Display for UnsupportedOperations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} operations are not supported", self.operations.len())?;
        for (index, (place, reason)) in self.operations.iter().enumerate() {
            let separator = if index == 0 { ":" } else { ";" };
            write!(formatter, "{separator} {place}: {reason}")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnsupportedOperations {}

/// For each operation of the main subgraph whether the engine can run it.
pub(crate) fn supported_operations<E: Engine>(engine: &E, model: &ValidModel) -> Vec<Support> {
    let unsupported = first_unsupported_by_subgraph(engine, model);
    let main = model.main();
    (0..main.operations.len())
        .map(|index| operation_support(engine, model, SubgraphName::Main, index, &unsupported))
        .collect()
}

/// [`supported_operations`] as an error that names what is missing.
pub(crate) fn expect_supported<E: Engine>(
    engine: &E,
    model: &ValidModel,
) -> Result<(), UnsupportedOperations> {
    let main = model.main();
    let operations: Vec<_> = supported_operations(engine, model)
        .into_iter()
        .enumerate()
        .filter_map(|(index, support)| match support {
            Support::Yes => None,
            Support::No(reason) => Some((place(SubgraphName::Main, main, index), reason)),
        })
        .collect();
    if operations.is_empty() { Ok(()) } else { Err(UnsupportedOperations { operations }) }
}

fn place(name: SubgraphName, subgraph: &Subgraph, index: usize) -> OperationPlace {
    OperationPlace {
        subgraph: name,
        index,
        operation_type: subgraph.operations[index].operation_type,
    }
}

/// What is known of a referenced subgraph: not looked at yet, all supported, or the first that is
/// not.
type Verdict = Option<Result<(), String>>;

fn operation_support<E: Engine>(
    engine: &E,
    model: &ValidModel,
    name: SubgraphName,
    index: usize,
    verdicts: &[Verdict],
) -> Support {
    let subgraph = model.subgraph(name);
    let support = engine.supports(model, place(name, subgraph, index));
    if !support.is_yes() {
        return support;
    }
    for referenced in references(subgraph, index) {
        if let Some(Some(Err(reason))) = verdicts.get(referenced) {
            return Support::No(reason.clone());
        }
    }
    Support::Yes
}

/// For each referenced subgraph that can be reached whether all its operations, transitively, are
/// supported. Goes without recursion, innermost subgraphs first, and visits each once, so the work
/// is linear in the model however deep it is. Validation has refused cycles (contract: CF-5).
fn first_unsupported_by_subgraph<E: Engine>(engine: &E, model: &ValidModel) -> Vec<Verdict> {
    let referenced = &model.model().referenced;
    let mut verdicts: Vec<Verdict> = vec![None; referenced.len()];
    let mut entered = vec![false; referenced.len()];
    let mut pending: Vec<usize> = all_references(model.main()).collect();
    while let Some(&index) = pending.last() {
        if verdicts[index].is_some() {
            pending.pop();
        } else if entered[index] {
            verdicts[index] = Some(subgraph_verdict(engine, model, index, &verdicts));
            pending.pop();
        } else {
            entered[index] = true;
            let inner = all_references(&referenced[index]);
            pending.extend(inner.filter(|inner| verdicts[*inner].is_none()));
        }
    }
    verdicts
}

fn subgraph_verdict<E: Engine>(
    engine: &E,
    model: &ValidModel,
    index: usize,
    verdicts: &[Verdict],
) -> Result<(), String> {
    let name = SubgraphName::Referenced(index);
    let subgraph = &model.model().referenced[index];
    for operation in 0..subgraph.operations.len() {
        if let Support::No(reason) = operation_support(engine, model, name, operation, verdicts) {
            // A reason from further inside names its operation already.
            let inner = references(subgraph, operation).next().is_some();
            let place = place(name, subgraph, operation);
            return Err(if inner { reason } else { format!("{place}: {reason}") });
        }
    }
    Ok(())
}

fn all_references(subgraph: &Subgraph) -> impl Iterator<Item = usize> {
    (0..subgraph.operations.len()).flat_map(|index| references(subgraph, index))
}

/// Indexes of the subgraphs that an operation runs.
fn references(subgraph: &Subgraph, operation: usize) -> impl Iterator<Item = usize> {
    let operation = &subgraph.operations[operation];
    let controls = matches!(operation.operation_type, OperationType::If | OperationType::While);
    operation
        .inputs
        .iter()
        .filter(move |_| controls)
        .map(|index| &subgraph.operands[*index as usize])
        .filter(|operand| operand.lifetime == OperandLifeTime::Subgraph)
        .map(|operand| operand.location.offset as usize)
}
