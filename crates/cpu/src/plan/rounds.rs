//! [`Rounds`]: how a WHILE runs its condition and its body.

use super::arena::StepMemory;
use super::{Input, Location, Plan, Run};
use crate::graph::Counted;
use nnhal_driver::{EngineError, OperationPlace, Round};
use nnhal_kernels::LINE_BYTES;
use std::ops::Range;

/// Where things are in the scratch memory of a WHILE whose variables keep their lengths: the body's arena first,
/// then the condition's. The variables are the inputs of the body, where they stay.
#[derive(Debug)]
pub(super) struct Rounds {
    variables: Vec<Variable>,
    /// Where the condition's arena is, and where variables are on their way.
    condition_arena: Range<usize>,
    moved: Range<usize>,
    /// How many rounds there are, if that is known: no condition is computed.
    counted: Option<Counted>,
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

impl Rounds {
    /// Of plans for variables of the same lengths. The inputs of the body stay, those of the condition are wanted.
    pub(super) fn new(condition: &Plan, body: &Plan, counted: Option<Counted>) -> Self {
        let condition_start = body.arena_bytes.next_multiple_of(LINE_BYTES);
        let moved_start = condition_start + condition.arena_bytes.next_multiple_of(LINE_BYTES);
        let places: Vec<Range<usize>> = body.inputs.iter().map(Input::range).collect();
        let mut moved = 0;
        let variables = places.iter().enumerate().map(|(index, place)| {
            let read = condition.inputs.get(index).and_then(|input| input.range.clone());
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
            Variable { place: place.clone(), read, renewed }
        });
        let variables = variables.collect();
        let condition_arena = condition_start..moved_start;
        let moved = moved_start..moved_start + moved;
        Self { variables, condition_arena, moved, counted }
    }

    pub(super) fn scratch_bytes(&self) -> usize {
        self.moved.end
    }

    pub(super) fn name(&self) -> String {
        match &self.counted {
            Some(Counted { rounds, .. }) => format!("while, {rounds} rounds"),
            None => "while".to_owned(),
        }
    }

    /// The step's inputs are what the variables begin with, the outputs what the first of them are in the end. The plans
    /// are those of the condition and the body.
    pub(super) fn run(
        &self,
        plans: &[Plan],
        StepMemory { arena, constants, step, .. }: StepMemory<'_>,
        run: &mut Run<'_>,
    ) -> Result<(), EngineError> {
        let [condition, body] = plans else { return Ok(()) };
        let scratch = step.scratch.clone();
        for (variable, input) in self.variables.iter().zip(&step.inputs) {
            let place = &variable.place;
            input.copy_to(arena, constants, scratch.start + place.start, place.len());
        }
        self.run_rounds([condition, body], &mut arena[scratch.clone()], step.place, run)?;
        for (variable, output) in self.variables.iter().zip(&step.outputs) {
            let Range { start, end } = variable.place;
            arena.copy_within(scratch.start + start..scratch.start + end, output.start);
        }
        Ok(())
    }

    fn run_rounds(
        &self,
        [condition_plan, body_plan]: [&Plan; 2],
        scratch: &mut [u8],
        place: OperationPlace,
        run: &mut Run<'_>,
    ) -> Result<(), EngineError> {
        let (arenas, moved) = scratch.split_at_mut(self.moved.start);
        let (body, condition) = arenas.split_at_mut(self.condition_arena.start);
        let decision = condition_plan.outputs.first().map(|output| &output.location);
        let clock = run.budget.loop_clock();
        for round in 0.. {
            // Conditions and bodies may have no steps, which ask.
            run.budget.check()?;
            let is_over = if let Some(counted) = &self.counted {
                self.count(counted, round, body);
                round == counted.rounds
            } else {
                for variable in &self.variables {
                    if let Some(read) = &variable.read {
                        condition[read.clone()].copy_from_slice(&body[variable.place.clone()]);
                    }
                }
                let is_true = Round { place, subgraph_input: 0, round };
                condition_plan.run_within(condition, is_true, run)?;
                !decision.is_some_and(|it| it.is_true(condition, &condition_plan.constants))
            };
            if is_over {
                break;
            }
            // Only now, so that a loop that ends is never late (contract: QOS-9).
            clock.check()?;
            body_plan.run_within(body, Round { place, subgraph_input: 1, round }, run)?;
            self.renew(body_plan, body, moved);
        }
        Ok(())
    }

    /// Gives counters the values that they have after this number of rounds.
    fn count(&self, counted: &Counted, rounds: u64, body: &mut [u8]) {
        for counter in &counted.counters {
            let place = self.variables[counter.variable].place.clone();
            let length = place.len();
            body[place].copy_from_slice(&counter.value(rounds).to_le_bytes()[..length]);
        }
    }

    /// What the body has made of the variables takes their places.
    fn renew(&self, plan: &Plan, body: &mut [u8], moved: &mut [u8]) {
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
                    let bytes = plan.constants[*constant].elements::<u8>();
                    body[place.clone()].copy_from_slice(&bytes[..place.len()]);
                }
                Renewed::Computed(from) => body.copy_within(from.clone(), place.start),
                Renewed::Moved(_, through) => body[place].copy_from_slice(&moved[through.clone()]),
            }
        }
    }
}

pub(super) fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}
