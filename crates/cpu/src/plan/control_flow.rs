//! [`ControlFlow`]: the step of an IF or a WHILE, which runs plans of the subgraphs that it refers to.

use super::arena::StepMemory;
use super::rounds::{Rounds, overlap};
use super::{Input, Kernel, Location, Plan, Run};
use crate::graph::{ControlFlowKind, Counted};
use nnhal_driver::{EngineError, InRounds, Round};
use nnhal_kernels::Lines;
use std::ops::Range;
use std::sync::Arc;

/// An IF or a WHILE. Its plans run in the step's scratch memory.
#[derive(Debug)]
pub(crate) struct ControlFlow {
    /// Of an IF the branch for true and the one for false, or one that is both; of a WHILE condition and body.
    plans: Vec<Plan>,
    /// Of a WHILE.
    rounds: Option<Rounds>,
}

impl ControlFlow {
    /// Of plans of the graphs that [`graph::ControlFlow`](crate::graph::ControlFlow) has. The inputs of a body stay.
    pub(super) fn new(
        kind: ControlFlowKind,
        mut plans: Vec<Plan>,
        counted: Option<Counted>,
    ) -> Self {
        let rounds = match (kind, &mut *plans) {
            (ControlFlowKind::While, [condition, body]) => {
                condition.forget_unread_inputs();
                Some(Rounds::new(condition, body, counted))
            }
            (_, branches) => {
                branches.iter_mut().for_each(Plan::forget_unread_inputs);
                None
            }
        };
        Self { plans, rounds }
    }

    /// The step's inputs are the condition and what the inputs of branches are, the outputs what those of a branch are.
    fn run_branch(
        &self,
        StepMemory { arena, constants, step, .. }: StepMemory<'_>,
        run: &mut Run<'_>,
    ) -> Result<(), EngineError> {
        let is_true = step.inputs.first().is_some_and(|it| it.is_true(arena, constants));
        let branch = if is_true { self.plans.first() } else { self.plans.last() };
        let (Some(branch), Some(arguments)) = (branch, step.inputs.get(1..)) else { return Ok(()) };
        let scratch = step.scratch.clone();
        for (argument, input) in arguments.iter().zip(&branch.inputs) {
            let Some(place) = &input.range else { continue };
            argument.copy_to(arena, constants, scratch.start + place.start, place.len());
        }
        let subgraph_input = if is_true { 1 } else { 2 };
        let round = Round { place: step.place, subgraph_input, round: 0 };
        branch.run_within(&mut arena[scratch.clone()], round, run)?;
        for (result, output) in branch.outputs.iter().zip(&step.outputs) {
            let result = result.location.behind(scratch.start);
            result.copy_to(arena, &branch.constants, output.start, output.len());
        }
        Ok(())
    }
}

impl Kernel for Arc<ControlFlow> {
    fn run(&self, memory: StepMemory<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        match &self.rounds {
            Some(rounds) => rounds.run(&self.plans, memory, run),
            None => self.run_branch(memory, run),
        }
    }

    fn name(&self) -> String {
        match &self.rounds {
            Some(rounds) => rounds.name(),
            None => "if".to_owned(),
        }
    }

    fn scratch_bytes(&self) -> usize {
        match &self.rounds {
            Some(rounds) => rounds.scratch_bytes(),
            None => self.plans.iter().map(|plan| plan.arena_bytes).max().unwrap_or_default(),
        }
    }

    /// Of the branch that has more, or of one round.
    fn arithmetic(&self) -> u64 {
        let arithmetic =
            |plan: &Plan| plan.steps.iter().map(|step| step.kernel.arithmetic()).sum::<u64>();
        let of_plans = self.plans.iter().map(arithmetic);
        match &self.rounds {
            Some(_) => of_plans.sum(),
            None => of_plans.max().unwrap_or_default(),
        }
    }

    fn plans(&self) -> &[Plan] {
        &self.plans
    }
}

impl Location {
    /// The same, of an arena that begins at this byte of another one.
    fn behind(&self, start: usize) -> Self {
        match self {
            Self::Arena(range) => Self::Arena(start + range.start..start + range.end),
            other => other.clone(),
        }
    }

    /// Copies bytes, of which there are this many, to where they do not overlap.
    pub(super) fn copy_to(&self, arena: &mut [u8], constants: &[Lines], to: usize, length: usize) {
        match self {
            Self::Nowhere => {}
            Self::Constant(constant, _) => {
                let bytes = &constants[*constant].elements::<u8>()[..length];
                arena[to..to + length].copy_from_slice(bytes);
            }
            Self::Arena(range) => arena.copy_within(range.start..range.start + length, to),
        }
    }

    /// Whether it is a truth value, and true (contract: CF-9).
    pub(super) fn is_true(&self, arena: &[u8], constants: &[Lines]) -> bool {
        let bytes = match self {
            Self::Nowhere => &[],
            Self::Constant(constant, _) => constants[*constant].elements::<u8>(),
            Self::Arena(range) => &arena[range.clone()],
        };
        bytes.first().is_some_and(|byte| *byte != 0)
    }
}

impl Plan {
    /// Runs the steps as part of another plan's step, with what observers are to know of it.
    pub(super) fn run_within(
        &self,
        arena: &mut [u8],
        round: Round,
        run: &mut Run<'_>,
    ) -> Result<(), EngineError> {
        let Some(observer) = run.observer else { return self.run_steps(arena, &mut [], run) };
        let observer = InRounds { observer, rounds: &[round] };
        let Run { team, budget, ledger, .. } = run;
        self.run_steps(arena, &mut [], &mut Run { team, budget, ledger, observer: Some(&observer) })
    }

    /// What no step reads, and is not given out, need not be copied in.
    fn forget_unread_inputs(&mut self) {
        let mut inputs = std::mem::take(&mut self.inputs);
        for Input { range, .. } in &mut inputs {
            *range = range.take().filter(|range| self.reads(range));
        }
        self.inputs = inputs;
    }

    /// Whether steps read these bytes of the arena, or they are given out.
    fn reads(&self, range: &Range<usize>) -> bool {
        let inputs = self.steps.iter().flat_map(|step| &step.inputs);
        let outputs = self.outputs.iter().map(|output| &output.location);
        inputs.chain(outputs).any(|location| match location {
            Location::Arena(read) => overlap(read, range),
            Location::Nowhere | Location::Constant(..) => false,
        })
    }
}
