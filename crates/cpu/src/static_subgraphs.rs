//! [`StaticSubgraphs`]: plans for parts of a model that cannot be planned as a whole.
//!
//! The interpreter runs WHILE with variables that grow, IF with branches whose results differ in length, and operations whose
//! shapes data decide. What is between has shapes that are known when it is reached, and a plan for those is kept for the
//! next time: for the next round of a loop, or the next request.

use crate::graph::{self, Graph, NoGraph, Sources};
use crate::kept::{Planned, find, keep};
use crate::lock::lock;
use crate::plan::{ELEMENTS_BY_THREAD, Endpoints, OutputBytes, Plan};
use crate::settings::Settings;
use crate::teams::Teams;
use nnhal_driver::memory::Idle;
use nnhal_driver::{Budget, Constants, EngineError, Ledger, MemoryHolder, PlannedStep, RunContext};
use nnhal_hal::memory::BorrowedBytes;
use nnhal_interpreter::{Accelerator, Computed, ComputedOutput, Remaining};
use nnhal_kernels::{Team, for_each_slice};
use nnhal_ops::ValidModel;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

/// Plans that are kept of a static subgraph, for values of different dimensions.
const MOST_PLANS: usize = 4;

/// Static subgraphs of a subgraph that are looked at.
const MOST_SUBGRAPHS: usize = 64;

/// Static subgraphs of all subgraphs that are looked at: there may be very many of those.
const MOST_SUBGRAPHS_IN_ALL: usize = 1024;

/// Plans for the static subgraphs of a model.
#[derive(Debug)]
pub(crate) struct StaticSubgraphs {
    settings: Settings,
    ledger: Ledger,
    teams: Arc<Teams>,
    /// Static subgraphs that were looked at.
    made: AtomicUsize,
    sources: Sources,
    /// The main subgraph, then the referenced ones.
    subgraphs: Vec<OfSubgraph>,
    in_use: Mutex<InUse>,
}

/// Whether plans are used.
#[derive(Debug)]
struct InUse {
    /// Executions that are going on.
    executions: usize,
    last: Instant,
}

/// An execution that is going on until this is dropped.
pub(crate) struct Use<'a>(&'a Mutex<InUse>);

impl Drop for Use<'_> {
    fn drop(&mut self) {
        lock(self.0).executions -= 1;
    }
}

/// Plans are made again by the next execution.
impl Idle for StaticSubgraphs {
    fn let_go(&self) {
        // A loop would make them anew in each round.
        if lock(&self.in_use).executions > 0 {
            return;
        }
        for subgraph in &self.subgraphs {
            let mut freed = Vec::new();
            for found in lock(&subgraph.static_subgraphs).values_mut() {
                if let Found::Plans(plans) = found {
                    freed.append(plans);
                }
            }
            drop(freed);
        }
    }

    fn last_used(&self) -> Option<Instant> {
        Some(lock(&self.in_use).last)
    }
}

#[derive(Debug)]
struct OfSubgraph {
    /// See [`graph::last_reads`].
    last_reads: Vec<usize>,
    /// Static subgraphs that were looked at.
    made: AtomicUsize,
    /// By the first operation.
    static_subgraphs: Mutex<BTreeMap<usize, Found>>,
}

/// What was found out about a static subgraph.
#[derive(Debug)]
enum Found {
    /// Data decide about the first operation's shapes, or the model may not take the memory of a plan
    /// for the operations up to this one.
    Interpreted { end: usize },
    /// The most recently used plan last.
    Plans(Vec<Arc<PlannedSubgraph>>),
}

#[derive(Debug)]
struct PlannedSubgraph {
    /// By input of the plan: the operand and its dimensions.
    inputs: Vec<(u32, Vec<u32>)>,
    /// By output of the plan: the operand.
    outputs: Vec<u32>,
    operations: usize,
    planned: Planned,
}

impl StaticSubgraphs {
    /// For a model whose constants have been read.
    pub(crate) fn new(
        model: &ValidModel,
        constants: &Arc<Constants>,
        settings: Settings,
        ledger: &Ledger,
        teams: &Arc<Teams>,
    ) -> Arc<Self> {
        let sources = Sources::read(model, constants);
        let subgraphs = sources.iter().map(|source| OfSubgraph {
            last_reads: graph::last_reads(&source.subgraph),
            made: AtomicUsize::new(0),
            static_subgraphs: Mutex::default(),
        });
        let subgraphs = subgraphs.collect();
        let (ledger, teams) = (ledger.clone(), Arc::clone(teams));
        let in_use = Mutex::new(InUse { executions: 0, last: Instant::now() });
        let made = AtomicUsize::new(0);
        let new = Arc::new(Self { settings, ledger, teams, made, sources, subgraphs, in_use });
        let idle: Weak<Self> = Arc::downgrade(&new);
        new.ledger.keep_idle(idle);
        new
    }

    /// An execution begins.
    pub(crate) fn begin_use(&self) -> Use<'_> {
        let mut in_use = lock(&self.in_use);
        in_use.executions += 1;
        in_use.last = Instant::now();
        Use(&self.in_use)
    }

    /// The steps of the plans that there are.
    pub(crate) fn describe(&self) -> Vec<PlannedStep> {
        let mut steps: Vec<PlannedStep> = Vec::new();
        let mut number = 0;
        for subgraph in &self.subgraphs {
            for found in lock(&subgraph.static_subgraphs).values() {
                let Found::Plans(plans) = found else { continue };
                let Some(last) = plans.last() else { continue };
                steps.extend(last.planned.plan.describe(&mut number));
            }
        }
        steps
    }

    /// Frees idle workspaces.
    pub(crate) fn free_workspaces(&self) {
        for subgraph in &self.subgraphs {
            for found in lock(&subgraph.static_subgraphs).values() {
                let Found::Plans(plans) = found else { continue };
                for plan in plans {
                    plan.planned.let_go();
                }
            }
        }
    }

    /// The plan for a static subgraph; `None` if its first operation has to be interpreted.
    fn plan(
        &self,
        index: usize,
        subgraph: &OfSubgraph,
        remaining: &Remaining<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<Arc<PlannedSubgraph>>, EngineError> {
        let first = remaining.first;
        let is_new = {
            let mut static_subgraphs = lock(&subgraph.static_subgraphs);
            // Also in the middle of what takes too much memory as a whole: otherwise as many plans
            // would be made in vain as it has operations.
            if let Some((_, Found::Interpreted { end })) =
                static_subgraphs.range(..=first).next_back()
                && first < *end
            {
                return Ok(None);
            }
            match static_subgraphs.get_mut(&first) {
                Some(Found::Plans(plans)) => {
                    if let Some(plan) = find(plans, |plan| plan.fits(remaining)) {
                        return Ok(Some(plan));
                    }
                    false
                }
                _ => true,
            }
        };
        if is_new {
            let of_subgraph = subgraph.made.fetch_add(1, Ordering::Relaxed);
            let in_all = self.made.fetch_add(1, Ordering::Relaxed);
            if of_subgraph >= MOST_SUBGRAPHS || in_all >= MOST_SUBGRAPHS_IN_ALL {
                return Ok(None);
            }
        }
        let interpreted = |end| {
            lock(&subgraph.static_subgraphs).insert(first, Found::Interpreted { end });
            Ok(None)
        };
        let dimensions = |operand| remaining.value(operand).map(|(dimensions, _)| dimensions);
        let found = Graph::static_subgraph(
            &self.sources,
            index,
            first,
            dimensions,
            &subgraph.last_reads,
            &self.ledger,
            context.budget,
        );
        let found = match found {
            Ok(found) => found,
            Err(NoGraph::NotStatic) => return interpreted(first + 1),
            Err(NoGraph::Error(EngineError::Interrupted(interruption))) => {
                return Err(interruption.into());
            }
            // The interpreter says so, if it is one.
            Err(NoGraph::Error(_)) => return Ok(None),
        };
        let graph::StaticSubgraph { graph, inputs, outputs, operations } = found;
        let plan = self.teams.lend(|team| {
            Plan::new(graph, &self.settings, &self.ledger, team, context.budget, None)
        });
        let plan = match plan {
            Ok((plan, _)) => plan,
            // One operation after the other takes less.
            Err(EngineError::MemoryLimit { holder: MemoryHolder::Model, .. }) => {
                return interpreted(first + operations);
            }
            // Other models may give back what they hold.
            Err(EngineError::MemoryLimit { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let planned = PlannedSubgraph { inputs, outputs, operations, planned: Planned::new(plan) };
        let mut static_subgraphs = lock(&subgraph.static_subgraphs);
        let found = static_subgraphs.entry(first).or_insert_with(|| Found::Plans(Vec::new()));
        Ok(Some(match found {
            Found::Plans(plans) => keep(plans, MOST_PLANS, planned),
            Found::Interpreted { .. } => Arc::new(planned),
        }))
    }
}

impl Accelerator for StaticSubgraphs {
    fn compute(
        &self,
        remaining: &Remaining<'_>,
        context: &RunContext<'_>,
    ) -> Result<Option<Computed>, EngineError> {
        let index = remaining.subgraph.position();
        let Some(subgraph) = self.subgraphs.get(index) else { return Ok(None) };
        let Some(part) = self.plan(index, subgraph, remaining, context)? else {
            return Ok(None);
        };
        let mut outputs = Vec::with_capacity(part.outputs.len());
        let endpoints = Values { planned: &part, remaining, outputs: &mut outputs };
        let result = part.planned.run(endpoints, context, &self.teams, || self.free_workspaces());
        // One operation after the other takes less memory.
        let Ok(result) = result else { return Ok(None) };
        result?;
        Ok(Some(Computed { operations: part.operations, outputs }))
    }
}

impl PlannedSubgraph {
    fn fits(&self, remaining: &Remaining<'_>) -> bool {
        self.inputs.iter().all(|(operand, dimensions)| {
            remaining.value(*operand).is_some_and(|(found, _)| found == dimensions)
        })
    }
}

/// The values of the interpreter.
struct Values<'run> {
    planned: &'run PlannedSubgraph,
    remaining: &'run Remaining<'run>,
    outputs: &'run mut Vec<ComputedOutput>,
}

impl Endpoints for Values<'_> {
    fn read(&self, input: usize, bytes: &mut [u8], team: &mut Team) -> Result<(), EngineError> {
        let (operand, _) = self.planned.inputs[input];
        // The plan fits, so it is there, and as long.
        if let Some((_, value)) = self.remaining.value(operand) {
            assert_eq!(bytes.len(), value.len(), "length of a value");
            for_each_slice(team, bytes, ELEMENTS_BY_THREAD, |start, part| {
                part.copy_from_slice(&value[start..start + part.len()]);
            });
        }
        Ok(())
    }

    fn borrow(&self, _: usize, _: usize) -> Option<BorrowedBytes> {
        None
    }

    fn deliver(
        &mut self,
        output: usize,
        dimensions: &[u32],
        bytes: OutputBytes<'_>,
        _: &mut Team,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        self.outputs.push(ComputedOutput {
            operand: self.planned.outputs[output],
            dimensions: dimensions.to_vec(),
            bytes: bytes.into_vec(budget)?,
        });
        Ok(())
    }
}
