//! From a [`Model`] that a client hands over to a [`ValidModel`] (contract: section 8), through a
//! [`CheckedModel`], in which operations may break what their definitions say of values.
//!
//! Validation first looks at what needs no meaning: words of newer versions, the table of
//! extensions, each operand by itself, the lists of indexes, circles of subgraphs. Only then, when
//! every index is in range, it asks the operations for their definitions.
//!
//! Time and memory are linear in the size of the model, whatever it says of itself (contract:
//! SEC-3): nothing recurses, subgraphs are checked once however often they are referred to, and
//! the values that definitions look at are bounded ([`PARAMETER_BYTES`]), as are shapes
//! ([`MAX_RANK`](crate::shape::MAX_RANK)).

mod constant;
mod control_flow;
mod defect;
mod error;
mod extension;
mod graph;
mod mistake;
mod operand;
mod operation;
mod pass;
mod valid_model;

pub use constant::{Constant, PARAMETER_BYTES};
pub use control_flow::{ControlFlowError, Party, Role, check_control_flow};
pub use defect::{CheckedModel, Defect, RunnablePart};
pub use error::ValidationError;
pub use extension::ExtensionError;
pub use graph::{GraphError, Side};
pub use mistake::{OperationMistake, refused_at_once};
pub use operand::{OperandError, check_channel_quant, check_type};

pub use pass::{FREE_ENTRIES, FREE_OPERATIONS, PassTooLong, REPEATED};
pub use valid_model::ValidModel;

use control_flow::Subgraphs;
use extension::Prefixes;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{HalVersion, Model, Subgraph};
use pass::Pass;
use std::borrow::Cow;
use valid_model::Knowledge;

/// By whose rules a model is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// Those of the interface of devices.
    Interface,
    /// Those of Android's C API: see [`check_for_application`].
    Application,
}

/// Checks a model by the rules of a version of the interface, and demands that every operation
/// keeps to its definition: what engines rely on.
///
/// Operations of a vendor, and operations that this build does not define, keep a model valid:
/// that a device lacks them is said in another place (contract: DEV-SUP-5, MODEL-28).
///
/// # Errors
/// The first rule that the model breaks; otherwise the first [`Defect`].
pub fn validate(model: &Model, version: HalVersion) -> Result<ValidModel, ValidationError> {
    check(model, version)?.expect_valid()
}

/// Checks a model by the rules of a version of the interface: what a driver must refuse with
/// `INVALID_ARGUMENT`. What definitions say of values and lengths is no reason to (contract:
/// MODEL-29); operations that break it are the model's [`CheckedModel::defects`].
///
/// # Errors
/// The first rule that the model breaks.
pub fn check(model: &Model, version: HalVersion) -> Result<CheckedModel, ValidationError> {
    check_by(model, version, Rules::Interface)
}

/// Checks a model as an application may build it: like [`check`], except that operands of a WHILE
/// may be of unknown size, and that scales which a definition forbids, needed arguments that are left out
/// and outputs that are too large are defects. Android's C API accepts all of these, the interface of
/// devices does not (contract: CF-4, MODEL-26), so whoever takes such a model runs its loops itself.
///
/// # Errors
/// The first rule that the model breaks.
pub fn check_for_application(
    model: &Model,
    version: HalVersion,
) -> Result<CheckedModel, ValidationError> {
    check_by(model, version, Rules::Application)
}

fn check_by(
    model: &Model,
    version: HalVersion,
    rules: Rules,
) -> Result<CheckedModel, ValidationError> {
    let operations = model.main.operations.len();
    let _span = tracing::debug_span!("validate", ?version, operations).entered();
    if let Some(obstacle) = model.obstacles_in(version).into_iter().next() {
        return Err(ValidationError::Newer { version, obstacle });
    }
    let prefixes = |model: &Model| {
        Prefixes::read(&model.extension_name_to_prefix)
            .map_err(|(row, error)| ValidationError::Extension { row, error })
    };
    let own = prefixes(model)?;
    let resolved = crate::extension::resolved(model).map_err(|_| ValidationError::Extension {
        row: 0,
        error: ExtensionError::TooMany { found: model.extension_name_to_prefix.len() },
    })?;
    // The prefixes of the table may have been exchanged, but each row has one as before.
    let (model, prefixes) = match &resolved {
        Cow::Borrowed(model) => (*model, own),
        Cow::Owned(model) => (model, prefixes(model)?),
    };
    for (subgraph, graph) in model.subgraphs() {
        check_operands(model, &prefixes, subgraph, graph)?;
    }
    for (subgraph, graph) in model.subgraphs() {
        graph::check(graph).map_err(|error| ValidationError::Graph { subgraph, error })?;
    }
    let order = control_flow::order(model)
        .map_err(|index| ValidationError::Cycle { subgraph: SubgraphName::Referenced(index) })?;
    let pass = Pass::of(model, &order).check(model);
    let subgraphs = Subgraphs::new(model, rules);
    let mut oldest = model.oldest_expressible();
    let mut knowledge = Vec::with_capacity(model.subgraph_count());
    let mut defects = Vec::new();
    for (subgraph, graph) in model.subgraphs() {
        let mut known = Knowledge::of(model, graph).map_err(|(operand, error)| {
            let operand_type = graph.operands[operand].operand_type;
            ValidationError::Operand { subgraph, operand, operand_type, error }
        })?;
        let needed = operation::check_all(
            &subgraphs,
            &prefixes,
            subgraph,
            &mut known,
            version,
            &mut defects,
        )?;
        oldest = oldest.max(needed);
        knowledge.push(known);
    }
    let model = ValidModel::new(resolved.into_owned(), version, oldest, knowledge, pass);
    Ok(CheckedModel::new(model, defects))
}

/// The oldest version whose rules the model keeps. Later versions allow all that earlier ones do,
/// so it keeps those of every later one as well. Its operations may have defects.
///
/// # Errors
/// It keeps the rules of no version: the first that it breaks of the latest.
pub fn oldest_version(model: &Model) -> Result<HalVersion, ValidationError> {
    Ok(check(model, HalVersion::LATEST)?.oldest_version())
}

fn check_operands(
    model: &Model,
    prefixes: &Prefixes,
    subgraph: SubgraphName,
    graph: &Subgraph,
) -> Result<(), ValidationError> {
    let empty = |what| Err(ValidationError::Empty { subgraph, what });
    if graph.operands.is_empty() {
        return empty("operands");
    }
    if graph.operations.is_empty() {
        return empty("operations");
    }
    for (operand, it) in graph.operands.iter().enumerate() {
        let operand_type = it.operand_type;
        operand::check(model, prefixes, it).map_err(|error| ValidationError::Operand {
            subgraph,
            operand,
            operand_type,
            error,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
