//! [`Loop`]: the step of a WHILE whose variables keep their lengths.

use super::arena::StepMemory;
use super::{Input, Kernel, Location, Plan, Run};
use nnhal_driver::{EngineError, InRounds, OperationPlace, Round};
use nnhal_kernels::LINE_BYTES;
use std::ops::Range;
use std::sync::Arc;

/// A WHILE: plans of its condition and of its body, which run in the step's scratch memory, the body's arena first,
/// then the condition's. The variables are the inputs of the body, where they stay.
#[derive(Debug)]
pub(crate) struct Loop {
    /// The condition, and the body.
    plans: [Plan; 2],
    variables: Vec<Variable>,
    /// Where the condition's arena is, and where variables are on their way.
    condition_arena: Range<usize>,
    moved: Range<usize>,
}

/// A variable; ranges are of the body's arena.
#[derive(Debug)]
struct Variable {
    place: Range<usize>,
    /// Where the condition reads it, in its own arena; `None` if it does not.
    read: Option<Range<usize>>,
    renewed: Renewed,
}

/// What the body makes of a variable.
#[derive(Debug)]
enum Renewed {
    /// Nothing else.
    Kept,
    /// This constant of the body.
    Constant(usize),
    /// What is here.
    Computed(Range<usize>),
    /// What is here, where other variables are: it is copied to this place of what is moved before they change.
    Moved(Range<usize>, Range<usize>),
}

impl Loop {
    /// Of plans for variables of the same lengths. The inputs of the body stay.
    pub(super) fn new(condition: Plan, body: Plan) -> Self {
        let condition_start = body.arena_bytes.next_multiple_of(LINE_BYTES);
        let moved_start = condition_start + condition.arena_bytes.next_multiple_of(LINE_BYTES);
        let places: Vec<Range<usize>> = body.inputs.iter().map(Input::range).collect();
        let mut moved = 0;
        let variables = places.iter().enumerate().map(|(index, place)| {
            let read = condition.inputs.get(index).map(Input::range);
            let renewed = match body.outputs.get(index).map(|output| &output.location) {
                None | Some(Location::Nowhere) => Renewed::Kept,
                Some(Location::Constant(constant, _)) => Renewed::Constant(*constant),
                Some(Location::Arena(range)) if range == place => Renewed::Kept,
                Some(Location::Arena(range)) if places.iter().any(|it| overlap(it, range)) => {
                    let through = moved..moved + range.len();
                    moved = through.end;
                    Renewed::Moved(range.clone(), through)
                }
                Some(Location::Arena(range)) => Renewed::Computed(range.clone()),
            };
            let read = read.filter(|range| condition.reads(range));
            Variable { place: place.clone(), read, renewed }
        });
        let variables = variables.collect();
        let condition_arena = condition_start..moved_start;
        let moved = moved_start..moved_start + moved;
        Self { plans: [condition, body], variables, condition_arena, moved }
    }

    fn run_rounds(
        &self,
        scratch: &mut [u8],
        place: OperationPlace,
        run: &mut Run<'_>,
    ) -> Result<(), EngineError> {
        let (arenas, moved) = scratch.split_at_mut(self.moved.start);
        let (body, condition) = arenas.split_at_mut(self.condition_arena.start);
        let [condition_plan, body_plan] = &self.plans;
        let clock = run.budget.loop_clock();
        for round in 0.. {
            // Conditions and bodies may have no steps, which ask.
            run.budget.check()?;
            for variable in &self.variables {
                if let Some(read) = &variable.read {
                    condition[read.clone()].copy_from_slice(&body[variable.place.clone()]);
                }
            }
            let is_true = Round { place, subgraph_input: 0, round };
            run_inner(condition_plan, condition, is_true, run)?;
            if !condition_plan.is_true(condition) {
                break;
            }
            // Only now, so that a loop that ends is never late (contract: QOS-9).
            clock.check()?;
            run_inner(body_plan, body, Round { place, subgraph_input: 1, round }, run)?;
            self.renew(body, moved);
        }
        Ok(())
    }

    /// What the body has made of the variables takes their places.
    fn renew(&self, body: &mut [u8], moved: &mut [u8]) {
        for variable in &self.variables {
            if let Renewed::Moved(from, through) = &variable.renewed {
                moved[through.clone()].copy_from_slice(&body[from.clone()]);
            }
        }
        for variable in &self.variables {
            let place = variable.place.clone();
            match &variable.renewed {
                Renewed::Kept => {}
                Renewed::Constant(constant) => {
                    let bytes = self.plans[1].constants[*constant].elements::<u8>();
                    body[place.clone()].copy_from_slice(&bytes[..place.len()]);
                }
                Renewed::Computed(from) => body.copy_within(from.clone(), place.start),
                Renewed::Moved(_, through) => body[place].copy_from_slice(&moved[through.clone()]),
            }
        }
    }
}

/// The step's inputs are what the variables begin with, the outputs what the first of them are in the end.
impl Kernel for Arc<Loop> {
    fn run(&self, memory: StepMemory<'_>, run: &mut Run<'_>) -> Result<(), EngineError> {
        let StepMemory { arena, constants, step } = memory;
        let scratch = step.scratch.start;
        let in_arena = |range: &Range<usize>| scratch + range.start..scratch + range.end;
        for (variable, input) in self.variables.iter().zip(&step.inputs) {
            let place = in_arena(&variable.place);
            match input {
                Location::Nowhere => {}
                Location::Constant(constant, length) => {
                    let bytes = &constants[*constant].elements::<u8>()[..*length];
                    arena[place].copy_from_slice(bytes);
                }
                Location::Arena(range) => arena.copy_within(range.clone(), place.start),
            }
        }
        self.run_rounds(&mut arena[step.scratch.clone()], step.place, run)?;
        for (variable, output) in self.variables.iter().zip(&step.outputs) {
            arena.copy_within(in_arena(&variable.place), output.start);
        }
        Ok(())
    }

    fn name(&self) -> String {
        "while".to_owned()
    }

    fn scratch_bytes(&self) -> usize {
        self.moved.end
    }

    /// Of one round.
    fn arithmetic(&self) -> u64 {
        let steps = self.plans.iter().flat_map(|plan| &plan.steps);
        steps.map(|step| step.kernel.arithmetic()).sum()
    }

    fn plans(&self) -> &[Plan] {
        &self.plans
    }
}

/// Runs the steps of a condition or body, with what observers are to know of the round.
fn run_inner(
    plan: &Plan,
    arena: &mut [u8],
    round: Round,
    run: &mut Run<'_>,
) -> Result<(), EngineError> {
    let Some(observer) = run.observer else { return plan.run_steps(arena, run) };
    let observer = InRounds { observer, rounds: &[round] };
    let Run { team, budget, ledger, .. } = run;
    plan.run_steps(arena, &mut Run { team, budget, ledger, observer: Some(&observer) })
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Plan {
    /// Whether steps read these bytes of the arena, or they are given out.
    fn reads(&self, range: &Range<usize>) -> bool {
        let inputs = self.steps.iter().flat_map(|step| &step.inputs);
        let outputs = self.outputs.iter().map(|output| &output.location);
        inputs.chain(outputs).any(|location| match location {
            Location::Arena(read) => overlap(read, range),
            Location::Nowhere | Location::Constant(..) => false,
        })
    }

    /// The truth that a condition has computed (contract: CF-9).
    fn is_true(&self, arena: &[u8]) -> bool {
        let bytes = match self.outputs.first().map(|output| &output.location) {
            Some(Location::Constant(constant, _)) => self.constants[*constant].elements::<u8>(),
            Some(Location::Arena(range)) => &arena[range.clone()],
            Some(Location::Nowhere) | None => &[],
        };
        bytes.first().is_some_and(|byte| *byte != 0)
    }
}
