//! Which operations an engine can run, control flow included (contract: DEV-SUP).

use crate::engine::Engine;
use crate::error::OperationPlace;
use crate::extension_types::{ExtensionObstacle, ExtensionTypes};
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{Memory, OperandLifeTime, OperationType, Subgraph, Support};
use nnhal_ops::{CheckedModel, Defect, ValidModel};
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
    let types = ExtensionTypes::of(model.model(), &engine.extensions());
    let unreadable: Vec<_> = model.model().pools.iter().map(why_unreadable).collect();
    let ask = |place| -> Result<(), String> {
        check_extensions(&types, model, place).map_err(|obstacle| obstacle.to_string())?;
        check_pools(&unreadable, model, place)?;
        match engine.supports(model, place) {
            Support::Yes => Ok(()),
            Support::No(reason) => Err(reason),
        }
    };
    let verdicts = verdicts(&ask, model);
    (0..model.main().operations.len())
        .map(|index| {
            let place = place(model, SubgraphName::Main, index);
            match operation_verdict(&ask, model, place, &verdicts) {
                Ok(()) => Support::Yes,
                Err(Obstacle { place: culprit, reason }) if culprit == place => Support::No(reason),
                Err(Obstacle { place: culprit, reason }) => {
                    Support::No(format!("{culprit}: {reason}"))
                }
            }
        })
        .collect()
}

/// The same for a model whose operations may have defects: those are not supported, and the engine
/// is only asked about the others (contract: MODEL-29).
pub(crate) fn supported_of_checked<E: Engine>(engine: &E, model: CheckedModel) -> Vec<Support> {
    let model = match model.into_valid() {
        Ok(model) => return supported_operations(engine, &model),
        Err(model) => model,
    };
    let no = |defect: Option<&Defect>| {
        Support::No(defect.map_or_else(|| "the rest is not valid".to_owned(), Defect::to_string))
    };
    let mut answers: Vec<Support> = model.obstacles().into_iter().map(no).collect();
    if let Some(part) = model.runnable_part() {
        let supported = supported_operations(engine, &part.model);
        for (index, support) in part.operations.into_iter().zip(supported) {
            answers[index] = support;
        }
    }
    answers
}

/// The model for an engine, if none of its operations has a defect.
pub(crate) fn expect_whole(model: CheckedModel) -> Result<ValidModel, UnsupportedOperations> {
    let place = |defect: &Defect| {
        let Defect { subgraph, operation: index, operation_type, .. } = *defect;
        (OperationPlace { subgraph, index, operation_type }, defect.mistake.to_string())
    };
    model.into_valid().map_err(|model| UnsupportedOperations {
        operations: model.defects().iter().map(place).collect(),
    })
}

/// [`supported_operations`] as an error that names what is missing.
pub(crate) fn expect_supported<E: Engine>(
    engine: &E,
    model: &ValidModel,
) -> Result<(), UnsupportedOperations> {
    let operations: Vec<_> = supported_operations(engine, model)
        .into_iter()
        .enumerate()
        .filter_map(|(index, support)| match support {
            Support::Yes => None,
            Support::No(reason) => Some((place(model, SubgraphName::Main, index), reason)),
        })
        .collect();
    if operations.is_empty() { Ok(()) } else { Err(UnsupportedOperations { operations }) }
}

/// What can be said of an operation without asking the engine (contract: EXT-5, EXT-6).
fn check_extensions(
    types: &ExtensionTypes,
    model: &ValidModel,
    place: OperationPlace,
) -> Result<(), ExtensionObstacle> {
    types.check_operation(model.model(), place.operation_type)?;
    let graph = model.subgraph(place.subgraph);
    let operation = &graph.operations[place.index];
    operation.inputs.iter().chain(&operation.outputs).try_for_each(|&index| {
        types.check_operand(model.model(), index, &graph.operands[index as usize])
    })
}

/// Why a pool's constants cannot be read here; `None` if they can.
fn why_unreadable(pool: &Memory) -> Option<String> {
    match pool.view() {
        Ok(_) if pool.protection().read => None,
        Ok(_) => Some("it may not be read".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}

/// Whether an operation's constants can be read (contract: DEV-SUP-3).
fn check_pools(
    unreadable: &[Option<String>],
    model: &ValidModel,
    place: OperationPlace,
) -> Result<(), String> {
    let graph = model.subgraph(place.subgraph);
    let inputs = graph.operations[place.index].inputs.iter();
    let operands = inputs.map(|&index| (index, &graph.operands[index as usize]));
    for (index, operand) in operands {
        let pool = operand.location.pool_index;
        let is_in_pool = operand.lifetime == OperandLifeTime::ConstantReference;
        if let Some(Some(why)) = unreadable.get(pool as usize).filter(|_| is_in_pool) {
            return Err(format!("operand {index} is in pool {pool}: {why}"));
        }
    }
    Ok(())
}

fn place(model: &ValidModel, subgraph: SubgraphName, index: usize) -> OperationPlace {
    let operation_type = model.subgraph(subgraph).operations[index].operation_type;
    OperationPlace { subgraph, index, operation_type }
}

/// The operation that keeps another, or a subgraph, from being supported: itself, or one inside.
#[derive(Debug, Clone)]
struct Obstacle {
    place: OperationPlace,
    reason: String,
}

/// Whether an operation by itself is supported, or the reason why not.
type Ask<'a> = &'a dyn Fn(OperationPlace) -> Result<(), String>;

/// Whether a referenced subgraph is supported; `None` while that is not known.
type Verdict = Option<Result<(), Obstacle>>;

/// Whether each referenced subgraph that can be reached is supported, with all that it refers to.
///
/// Goes without recursion, innermost subgraphs first, and visits each once, so the work is linear
/// in the model however deep it is. Validation has refused cycles (contract: CF-5).
fn verdicts(ask: Ask<'_>, model: &ValidModel) -> Vec<Verdict> {
    let referenced = &model.model().referenced;
    let mut verdicts: Vec<Verdict> = vec![None; referenced.len()];
    let mut entered = vec![false; referenced.len()];
    let mut pending: Vec<usize> = all_references(model.main()).collect();
    while let Some(&index) = pending.last() {
        if verdicts[index].is_some() {
            pending.pop();
        } else if entered[index] {
            verdicts[index] = Some(subgraph_verdict(ask, model, index, &verdicts));
            pending.pop();
        } else {
            entered[index] = true;
            pending.extend(all_references(&referenced[index]).filter(|inner| !entered[*inner]));
        }
    }
    verdicts
}

fn subgraph_verdict(
    ask: Ask<'_>,
    model: &ValidModel,
    index: usize,
    verdicts: &[Verdict],
) -> Result<(), Obstacle> {
    let name = SubgraphName::Referenced(index);
    (0..model.subgraph(name).operations.len()).try_for_each(|operation| {
        operation_verdict(ask, model, place(model, name, operation), verdicts)
    })
}

fn operation_verdict(
    ask: Ask<'_>,
    model: &ValidModel,
    place: OperationPlace,
    verdicts: &[Verdict],
) -> Result<(), Obstacle> {
    ask(place).map_err(|reason| Obstacle { place, reason })?;
    references(model.subgraph(place.subgraph), place.index)
        .filter_map(|referenced| verdicts[referenced].clone())
        .collect()
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
