//! How much one pass through a model's control flow runs.
//!
//! An IF that runs the same subgraph as the next one, which runs another twice, and so on, makes a
//! small model run for ever, without any loop: 30 levels are 2^30 subgraphs. A WHILE has a clock of
//! its own (contract: QOS-7), but that is asked only when a condition is true once more (QOS-9), so
//! WHILEs of a single round each nest to the same effect.
//!
//! So what runs when every WHILE makes a single round is counted beforehand, exactly, and limited:
//! to this many times what the model writes down, and to some number that no model comes near by
//! accident. A model that runs each of its subgraphs from few places, as all that converters
//! write do, stays below whatever its size; rounds of loops do not count, however many they are.
//! With this limit, the clock of each WHILE, and the deadline, if there is one, the time of an
//! execution grows no faster than the model.

use nnhal_hal::{Model, Operation, OperationType, Subgraph};

/// Subgraphs that one pass may enter besides [`REPEATED`] times those that operations refer to.
pub const FREE_ENTRIES: u64 = 4096;

/// Operations of subgraphs that one pass may run besides [`REPEATED`] times those that there are.
pub const FREE_OPERATIONS: u64 = 1 << 20;

/// How often one pass may run, on average, what the model says once.
pub const REPEATED: u64 = 4;

/// One pass through a model's control flow runs too much (contract: SEC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("one pass through IF and WHILE runs {found} {what}, and may run {limit}: see FREE_{name}")]
pub struct PassTooLong {
    what: &'static str,
    name: &'static str,
    /// How many it runs; more than that if it is `u64::MAX`.
    pub found: u64,
    /// How many it may run.
    pub limit: u64,
}

/// What one pass through a subgraph runs, in those that it refers to; of two branches the longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pass {
    /// Subgraphs entered.
    entries: u64,
    /// Operations in them.
    operations: u64,
}

impl Pass {
    fn then(self, other: Self) -> Self {
        Self {
            entries: self.entries.saturating_add(other.entries),
            operations: self.operations.saturating_add(other.operations),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            entries: self.entries.max(other.entries),
            operations: self.operations.max(other.operations),
        }
    }

    /// Of an operation, given what the referenced subgraphs run.
    fn of_operation(model: &Model, graph: &Subgraph, step: &Operation, known: &[Self]) -> Self {
        let enter = |input: usize| {
            let operand = step.inputs.get(input).and_then(|it| graph.operands.get(*it as usize));
            let index = operand.map_or(usize::MAX, |it| it.location.offset as usize);
            match (model.referenced.get(index), known.get(index)) {
                (Some(graph), Some(inner)) => {
                    inner.then(Self { entries: 1, operations: graph.operations.len() as u64 })
                }
                _ => Self::default(),
            }
        };
        match step.operation_type {
            OperationType::If => enter(1).or(enter(2)),
            // The condition is asked once more than the body runs.
            OperationType::While => enter(0).then(enter(0)).then(enter(1)),
            _ => Self::default(),
        }
    }

    fn of_graph(model: &Model, graph: &Subgraph, known: &[Self]) -> Self {
        let steps = graph.operations.iter();
        steps
            .map(|step| Self::of_operation(model, graph, step, known))
            .fold(Self::default(), Self::then)
    }

    /// Of the whole model. `order` names the referenced subgraphs, each behind all that it refers
    /// to. Time is linear in the size of the model.
    pub(super) fn of(model: &Model, order: &[usize]) -> Self {
        let mut known = vec![Self::default(); model.referenced.len()];
        for &index in order {
            known[index] = Self::of_graph(model, &model.referenced[index], &known);
        }
        Self::of_graph(model, &model.main, &known)
    }

    /// Compares it with what the model may run.
    pub(super) fn check(self, model: &Model) -> Result<(), PassTooLong> {
        let graphs = || model.subgraphs().map(|(_, graph)| graph);
        let is_control = |step: &&Operation| {
            matches!(step.operation_type, OperationType::If | OperationType::While)
        };
        let written = graphs().flat_map(|graph| &graph.operations).filter(is_control).count();
        let operations: usize = graphs().map(|graph| graph.operations.len()).sum();
        let check = |what, name, found, free: u64, written: usize| {
            let limit = free.saturating_add((written as u64).saturating_mul(REPEATED));
            if found <= limit { Ok(()) } else { Err(PassTooLong { what, name, found, limit }) }
        };
        check("subgraphs", "ENTRIES", self.entries, FREE_ENTRIES, written)?;
        check("operations", "OPERATIONS", self.operations, FREE_OPERATIONS, operations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate;
    use nnhal_hal::builder::SubgraphId;
    use nnhal_hal::{HalVersion, ModelBuilder, OperandSpec, SubgraphBuilder};

    fn truth() -> OperandSpec {
        OperandSpec::tensor_bool8([1])
    }

    fn leaf(builder: &mut ModelBuilder, operations: usize) -> SubgraphId {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", truth());
        let y = (0..operations)
            .fold(x, |x, _| graph.operation(OperationType::LogicalNot, [x], truth()));
        graph.output(y);
        builder.reference(graph)
    }

    /// Runs `inner` this many times in a row.
    fn level(operation: OperationType, inner: SubgraphId, times: usize) -> SubgraphBuilder {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", truth());
        let subgraph = graph.subgraph(inner);
        let y = (0..times).fold(x, |x, _| {
            let inputs = match operation {
                OperationType::If => vec![x, subgraph, subgraph, x],
                _ => vec![subgraph, subgraph, x],
            };
            graph.operation(operation, inputs, truth())
        });
        graph.output(y);
        graph
    }

    fn nested(operation: OperationType, levels: usize, times: usize) -> Model {
        let mut builder = ModelBuilder::new();
        let mut inner = leaf(&mut builder, 3);
        for _ in 1..levels {
            inner = builder.reference(level(operation, inner, times));
        }
        builder.build(level(operation, inner, times)).unwrap()
    }

    fn outcome(model: &Model) -> Result<(), String> {
        let valid = validate(model, HalVersion::LATEST).unwrap();
        valid.expect_bounded_pass().map_err(|error| error.to_string())
    }

    #[test]
    fn sec_3_what_runs_the_next_level_twice_is_refused_from_some_depth_on() {
        // 2 + 4 + ... + 2^10 subgraphs.
        assert_eq!(outcome(&nested(OperationType::If, 10, 2)), Ok(()));
        let message = "one pass through IF and WHILE runs 2147483646 subgraphs, and may run 4336: \
                       see FREE_ENTRIES";
        assert_eq!(outcome(&nested(OperationType::If, 30, 2)), Err(message.to_owned()));
        // Far more than can be counted.
        assert!(outcome(&nested(OperationType::While, 200, 2)).unwrap_err().contains("551615"));
    }

    #[test]
    fn sec_3_a_while_enters_its_condition_twice() {
        assert!(outcome(&nested(OperationType::While, 7, 1)).is_ok()); // 3^7 and less
        assert!(outcome(&nested(OperationType::While, 9, 1)).is_err());
    }

    #[test]
    fn long_and_deep_models_are_not_refused() {
        assert_eq!(outcome(&nested(OperationType::If, 20_000, 1)), Ok(()));
        assert_eq!(outcome(&nested(OperationType::If, 1, 20_000)), Ok(()));
    }

    #[test]
    fn sec_3_large_branches_that_many_run_are_refused() {
        let shared = |operations, times| {
            let mut builder = ModelBuilder::new();
            let inner = leaf(&mut builder, operations);
            builder.build(level(OperationType::If, inner, times)).unwrap()
        };
        assert_eq!(outcome(&shared(1000, 1000)), Ok(()));
        assert!(outcome(&shared(2000, 1000)).unwrap_err().contains("2000000 operations"));
    }
}
