//! [`CpuProgram`]

use crate::graph::{ControlFlowKind, Graph, NoGraph, Sources};
use crate::kept::{Planned, find, keep, with_memory};
use crate::lock::lock;
use crate::plan::{Origins, Plan};
use crate::saved::{self, Saved};
use crate::settings::Settings;
use crate::static_subgraphs::StaticSubgraphs;
use crate::teams::Teams;
use bytes::Bytes;
use nnhal_driver::memory::Idle;
use nnhal_driver::{Bindings, Budget, EngineError, Ledger, PlannedStep, Program, RunContext};
use nnhal_hal::Subgraph;
use nnhal_interpreter::InterpretedProgram;
use nnhal_kernels::Team;
use nnhal_ops::{Form, Presence, Shape, Signature, ValidModel};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

/// Plans kept for inputs of different dimensions.
const MOST_PLANS: usize = 8;

/// A compiled model.
#[derive(Debug)]
pub struct CpuProgram {
    settings: Settings,
    /// Counts what the model and its executions hold.
    ledger: Ledger,
    teams: Arc<Teams>,
    /// What further plans are made of; `None` if there can be no others.
    sources: Option<Sources>,
    /// What the only plan there can be was made of; `None` if it has control flow.
    origins: Option<(Subgraph, Origins)>,
    /// Freed where there is no room for something else, if there are sources to make them again.
    plans: Arc<Plans>,
    /// For what cannot be planned as a whole; `None` if there is a plan for every request.
    interpreted: Option<Interpreted>,
}

#[derive(Debug)]
struct Interpreted {
    program: InterpretedProgram,
    /// What it leaves to us.
    static_subgraphs: Arc<StaticSubgraphs>,
}

/// Plans for inputs of different dimensions.
#[derive(Debug)]
struct Plans(Mutex<Kept>);

#[derive(Debug)]
struct Kept {
    /// The most recently used one last.
    plans: Vec<Arc<Specialized>>,
    used: Instant,
}

impl Default for Plans {
    fn default() -> Self {
        Self(Mutex::new(Kept { plans: Vec::new(), used: Instant::now() }))
    }
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.0)
    }

    fn is_empty(&self) -> bool {
        self.lock().plans.is_empty()
    }
}

impl Idle for Plans {
    fn let_go(&self) {
        let mut kept = self.lock();
        // What an execution uses would stay all the same.
        let is_idle = |plan: &mut Arc<Specialized>| Arc::strong_count(plan) == 1;
        let freed: Vec<_> = kept.plans.extract_if(.., is_idle).collect();
        drop(kept);
        drop(freed);
    }

    fn last_used(&self) -> Option<Instant> {
        Some(self.lock().used)
    }
}

/// A plan for inputs of certain dimensions.
#[derive(Debug)]
struct Specialized {
    inputs: Vec<Vec<u32>>,
    /// By input; one that is not read may be left out.
    are_read: Vec<bool>,
    planned: Planned,
}

impl CpuProgram {
    pub(crate) fn new(
        model: &ValidModel,
        settings: Settings,
        teams: &Arc<Teams>,
        budget: &Budget,
    ) -> Result<Self, EngineError> {
        let Subgraph { operands, inputs, .. } = model.main();
        let lengths = |operand: &u32| Shape::declared(&operands[*operand as usize]).to_known();
        let dimensions: Option<Vec<Vec<u32>>> = inputs.iter().map(lengths).collect();
        let mut program = Self::without_plans(settings, teams, budget);
        let is_open = dimensions.is_none();
        if let Some(dimensions) = dimensions {
            let sources = Sources::of_model(model, &program.ledger)?;
            match program.plan_once(sources, dimensions, budget, None) {
                // Operation by operation, and round by round, control flow takes less.
                Err(EngineError::MemoryLimit { .. }) if model.model().subgraph_count() > 1 => {}
                planned => planned?,
            }
        }
        let is_planned = !program.plans.is_empty();
        if !is_planned || inputs_may_be_left_out(model.main()) {
            let interpreted = InterpretedProgram::new(model, &program.ledger, budget)?;
            let constants = interpreted.constants();
            if is_open {
                program.sources = Some(Sources::read(model, constants));
                let plans: Weak<Plans> = Arc::downgrade(&program.plans);
                program.ledger.keep_idle(plans);
            }
            let static_subgraphs =
                StaticSubgraphs::new(model, constants, settings, &program.ledger, teams);
            let program_with = interpreted.with_accelerator(Arc::clone(&static_subgraphs) as _);
            program.interpreted = Some(Interpreted { program: program_with, static_subgraphs });
        }
        Ok(program)
    }

    /// A program that was saved.
    pub(crate) fn restored(
        bytes: &Bytes,
        settings: Settings,
        teams: &Arc<Teams>,
        budget: &Budget,
    ) -> Result<Self, EngineError> {
        let Saved { subgraph, inputs, constants, packed } = saved::read(bytes, &settings)?;
        let mut program = Self::without_plans(settings, teams, budget);
        let sources = Sources::restored(subgraph, constants);
        program.plan_once(sources, inputs, budget, Some(&packed))?;
        if program.plans.is_empty() {
            return Err(nnhal_hal::Error::failure("a saved program cannot be planned").into());
        }
        Ok(program)
    }

    fn without_plans(settings: Settings, teams: &Arc<Teams>, budget: &Budget) -> Self {
        Self {
            settings,
            ledger: budget.memory().model(settings.memory_limit),
            teams: Arc::clone(teams),
            sources: None,
            origins: None,
            plans: Arc::default(),
            interpreted: None,
        }
    }

    /// Makes the plan for the only dimensions that inputs can have, if there can be one.
    fn plan_once(
        &mut self,
        sources: Sources,
        inputs: Vec<Vec<u32>>,
        budget: &Budget,
        packed: Option<&[Bytes]>,
    ) -> Result<(), EngineError> {
        if let Some((specialized, origins)) = self.specialize(&sources, inputs, budget, packed)? {
            let main = sources.into_main().filter(|_| !specialized.planned.plan.has_control_flow());
            self.origins = main.map(|main| (main, origins));
            self.plans.lock().plans = vec![Arc::new(specialized)];
        }
        Ok(())
    }

    /// A plan for inputs of these dimensions, and what it was made of; `None` if there can be none.
    fn specialize(
        &self,
        sources: &Sources,
        inputs: Vec<Vec<u32>>,
        budget: &Budget,
        packed: Option<&[Bytes]>,
    ) -> Result<Option<(Specialized, Origins)>, EngineError> {
        match Graph::build(sources, &inputs, &self.ledger, budget) {
            Ok(graph) => {
                let are_helpers_wanted = packed.is_none() && Plan::shares_lowering(&graph);
                let plan = |team: &mut Team| {
                    Plan::new(graph, &self.settings, &self.ledger, team, budget, packed)
                };
                let (plan, origins) = if are_helpers_wanted {
                    self.teams.lend_for(budget, plan)?
                } else {
                    plan(&mut Team::alone())?
                };
                let main = sources.get(0).map(|main| read_inputs(&main.subgraph));
                let are_read = main.unwrap_or_default();
                let planned = Planned::new(plan);
                Ok(Some((Specialized { inputs, are_read, planned }, origins)))
            }
            Err(NoGraph::NotStatic) => Ok(None),
            Err(NoGraph::Error(error)) => Err(error),
        }
    }

    /// Frees idle workspaces, and plans that could be made again.
    fn let_go(&self) {
        let mut kept = self.plans.lock();
        for plan in &kept.plans {
            plan.planned.let_go();
        }
        if self.sources.is_some() {
            kept.plans.clear();
        }
        drop(kept);
        if let Some(interpreted) = &self.interpreted {
            interpreted.static_subgraphs.free_workspaces();
        }
    }

    /// The plan for a request; `None` if there can be none.
    fn plan(
        &self,
        bindings: &Bindings,
        budget: &Budget,
    ) -> Result<Option<Arc<Specialized>>, EngineError> {
        let mut kept = self.plans.lock();
        if let Some(plan) = find(&mut kept.plans, |plan| plan.fits(bindings)) {
            if self.sources.is_some() {
                kept.used = Instant::now();
            }
            return Ok(Some(plan));
        }
        drop(kept);
        let Some(sources) = &self.sources else { return Ok(None) };
        if bindings.inputs().iter().any(|input| input.value().is_none()) {
            return Ok(None);
        }
        let dimensions: Option<Vec<_>> =
            bindings.inputs().iter().map(|input| input.shape().to_known()).collect();
        let Some(dimensions) = dimensions else { return Ok(None) };
        let specialize = || self.specialize(sources, dimensions.clone(), budget, None);
        let specialized = with_memory(|| self.let_go(), specialize)?;
        Ok(specialized.map(|(plan, _)| {
            let mut kept = self.plans.lock();
            kept.used = Instant::now();
            keep(&mut kept.plans, MOST_PLANS, plan)
        }))
    }
}

/// By input of a subgraph, whether an operation reads it or it is an output.
fn read_inputs(subgraph: &Subgraph) -> Vec<bool> {
    let mut is_read = vec![false; subgraph.operands.len()];
    let arguments = subgraph.operations.iter().flat_map(|operation| &operation.inputs);
    for operand in arguments.chain(&subgraph.outputs) {
        is_read[*operand as usize] = true;
    }
    subgraph.inputs.iter().map(|input| is_read[*input as usize]).collect()
}

/// Whether an operation could do without one of the subgraph's inputs. Of those that IF and WHILE take, that depends on what runs.
fn inputs_may_be_left_out(subgraph: &Subgraph) -> bool {
    let mut is_input = vec![false; subgraph.operands.len()];
    for input in &subgraph.inputs {
        is_input[*input as usize] = true;
    }
    subgraph.operations.iter().any(|operation| {
        let forms = Signature::of(operation.operation_type).map_or(&[][..], |it| it.forms);
        let first_argument =
            ControlFlowKind::of(operation.operation_type).map(|kind| kind.first_reference() + 2);
        let inputs = operation.inputs.iter().enumerate();
        inputs.filter(|(_, operand)| is_input[**operand as usize]).any(|(position, _)| {
            if let Some(first) = first_argument {
                return position >= first;
            }
            let is_omittable = |form: &Form| {
                let parameter = form.inputs.get(position);
                parameter.is_some_and(|parameter| {
                    matches!(
                        parameter.presence,
                        Presence::Omittable | Presence::TrailingOmittable(_)
                    )
                })
            };
            forms.iter().any(is_omittable)
        })
    })
}

impl Specialized {
    fn fits(&self, bindings: &Bindings) -> bool {
        let inputs = self.inputs.iter().zip(&self.are_read).zip(bindings.inputs());
        inputs.into_iter().all(|((dimensions, is_read), input)| match input.value() {
            Some(_) => is(input.shape(), dimensions),
            None => !is_read,
        })
    }
}

/// Whether a shape is known to be this one.
fn is(shape: &Shape, dimensions: &[u32]) -> bool {
    shape.lengths().is_some_and(|lengths| {
        lengths.len() == dimensions.len()
            && lengths.iter().zip(dimensions).all(|(length, known)| *length == Some(*known))
    })
}

impl Program for CpuProgram {
    fn run(&self, bindings: &Bindings, context: &RunContext<'_>) -> Result<(), EngineError> {
        let Some(specialized) = self.plan(bindings, context.budget)? else {
            return match &self.interpreted {
                Some(Interpreted { program, static_subgraphs }) => {
                    let _use = static_subgraphs.begin_use();
                    program.run(bindings, context)
                }
                None => Err(nnhal_hal::Error::failure(
                    "an input is left out that no operation can do without",
                )
                .into()),
            };
        };
        specialized.planned.run(bindings, context, &self.teams, || self.let_go())?
    }

    /// There is something to save if there is one plan for every request.
    fn save(&self) -> Option<Vec<u8>> {
        let (subgraph, origins) = self.origins.as_ref().filter(|_| self.interpreted.is_none())?;
        let kept = self.plans.lock();
        let only = kept.plans.first()?;
        saved::write(subgraph, &only.inputs, &only.planned.plan, origins, &self.settings)
    }

    /// The steps of the most recently used plan, or of those for parts of the model.
    fn plan(&self) -> Vec<PlannedStep> {
        let kept = self.plans.lock();
        match (kept.plans.last(), &self.interpreted) {
            (Some(specialized), _) => specialized.planned.plan.describe(&mut 0),
            (None, Some(interpreted)) => interpreted.static_subgraphs.describe(),
            (None, None) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nnhal_hal::{HalVersion, Model, OperandSpec, OperationType, SubgraphBuilder};

    /// A product with weights of this many rows of 1 KiB.
    fn product(rows: u32) -> Model {
        let mut graph = SubgraphBuilder::new();
        let x = graph.input("x", OperandSpec::tensor_float32([1, 256]));
        let weights = vec![0.5_f32; 256 * rows as usize];
        let weights = graph.constant(OperandSpec::tensor_float32([rows, 256]), &weights);
        let bias =
            graph.constant(OperandSpec::tensor_float32([rows]), &vec![0.0_f32; rows as usize]);
        let none = graph.scalar_i32(0);
        let output = OperandSpec::tensor_float32([1, rows]);
        let inputs = [x, weights, bias, none];
        let y = graph.operation(OperationType::FullyConnected, inputs, output);
        graph.output(y);
        graph.into_model().unwrap()
    }

    #[test]
    fn threads_are_only_started_to_pack_many_weights() {
        let shares = |rows| {
            let model = nnhal_ops::validate(&product(rows), HalVersion::LATEST).unwrap();
            let budget = Budget::unlimited();
            let ledger = budget.memory().model(u64::MAX);
            let sources = Sources::of_model(&model, &ledger).unwrap();
            let graph = Graph::build(&sources, &[vec![1, 256]], &ledger, &budget).unwrap();
            Plan::shares_lowering(&graph)
        };
        assert!(!shares(16));
        assert!(shares(1024));
    }
}
