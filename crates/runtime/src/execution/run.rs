//! Running a plan, step by step.

use super::device_step::DeviceWork;
use super::ran::{Produced, Ran, RunOptions};
use super::state::Failure;
use super::values::{copy_into, copy_out, in_shared_memory, shape_of, truth};
use crate::error::{Error, Result, ResultCode};
use crate::partition::plan::buffers::BufferSet;
use crate::partition::plan::{ControlStep, DeviceStep, Plan, Slot, SlotRole, Source, Step};
use crate::partition::value::{Place, Pool, Target, Value};
use nnhal_hal::{Deadline, OutputShape, Timing};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Runs a plan. Where a device fails and others may take over, the fallback device does.
///
/// # Errors
/// What the devices answer. Outputs that do not fit are no error: their shapes say so.
pub(super) fn run(
    plan: &Plan,
    inputs: &[Value],
    targets: &[Target],
    options: &RunOptions<'_>,
) -> Result<Ran, Failure> {
    let failure = match run_plan(plan, inputs, targets, options) {
        Ok(ran) => return Ok(ran),
        Err(failure) => failure,
    };
    // Less time is left now than before.
    if failure.error.code().is_missed_deadline() {
        return Err(failure);
    }
    match plan.on_fallback() {
        None => Err(failure),
        Some(Err(_)) => Err(failure),
        Some(Ok(whole)) => {
            tracing::warn!(error = %failure.error, "the execution goes to the fallback device");
            run_plan(whole, inputs, targets, &RunOptions { channels: &[], ..*options })
                .map_err(|_| failure)
        }
    }
}

fn run_plan(
    plan: &Plan,
    inputs: &[Value],
    targets: &[Target],
    options: &RunOptions<'_>,
) -> Result<Ran, Failure> {
    if let Some(failure) = &plan.failure {
        return Err(failure.clone().into());
    }
    if let Some(step) = plan.single() {
        let work = DeviceWork { plan, step, channel: options.channels.first(), is_only: true };
        return work.run(&inputs.iter().collect::<Vec<_>>(), targets, options);
    }
    let scratch = plan.take_scratch()?;
    // Channels of bursts do not carry buffers.
    let buffers = match options.channels {
        [] => plan.buffers.take(),
        _ => BufferSet::new(),
    };
    let frame = Frame::new(plan, scratch.as_ref(), &buffers, inputs, targets);
    let ran = frame.run(options);
    plan.give_back_scratch(scratch);
    plan.buffers.give_back(buffers);
    ran
}

/// A run of a plan with several steps.
struct Frame<'a> {
    plan: &'a Plan,
    scratch: Option<&'a nnhal_hal::Memory>,
    buffers: &'a BufferSet,
    targets: &'a [Target],
    /// By slot, once known.
    values: Vec<Option<Value>>,
    /// Of outputs, by position, once known.
    shapes: Vec<Option<OutputShape>>,
    timing: Timing,
}

impl<'a> Frame<'a> {
    fn new(
        plan: &'a Plan,
        scratch: Option<&'a nnhal_hal::Memory>,
        buffers: &'a BufferSet,
        inputs: &[Value],
        targets: &'a [Target],
    ) -> Self {
        let mut values: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        values.resize(plan.slots.len(), None);
        let shapes = vec![None; targets.len()];
        Self { plan, scratch, buffers, targets, values, shapes, timing: Timing::NONE }
    }

    fn run(mut self, options: &RunOptions<'_>) -> Result<Ran, Failure> {
        for (number, step) in self.plan.steps.iter().enumerate() {
            match step {
                Step::Device(step) => {
                    let channel = options.channels.get(number);
                    let work = DeviceWork { plan: self.plan, step, channel, is_only: false };
                    let inputs = self.inputs(step)?;
                    let ran = work.run(&inputs, &self.targets_of(step), options)?;
                    self.timing = sum(self.timing, ran.timing);
                    for (slot, output) in step.outputs.iter().zip(ran.outputs) {
                        self.keep(*slot, output);
                    }
                }
                Step::If(step) => {
                    let outputs = self.run_if(step, options)?;
                    self.deliver(step, outputs)?;
                }
                Step::While(step) => {
                    let outputs = self.run_while(step, options)?;
                    self.deliver(step, outputs)?;
                }
            }
        }
        self.finish()
    }

    fn inputs(&self, step: &DeviceStep) -> Result<Vec<&Value>> {
        step.inputs.iter().map(|slot| self.value(*slot)).collect()
    }

    fn value(&self, slot: usize) -> Result<&Value> {
        let value = self.values.get(slot).and_then(Option::as_ref);
        value.ok_or_else(|| Error::failed("a step reads what no step before it has written"))
    }

    /// Where a step's outputs go.
    fn targets_of(&self, step: &DeviceStep) -> Vec<Target> {
        let target = |number: &usize| {
            let slot = &self.plan.slots[*number];
            if let Some((_, buffer)) = self.buffers.iter().find(|(slot, _)| slot == number) {
                let pool = Pool::Buffer(Arc::clone(buffer));
                let place = Place { pool, offset: 0, length: 0 };
                return Target::At { place, dimensions: slot.dimensions.clone() };
            }
            match (slot.role, slot.scratch, self.scratch) {
                (SlotRole::Output(position), ..) => match &self.targets[position] {
                    Target::Omitted if slot.is_read => Target::Free,
                    target => target.clone(),
                },
                (_, Some((offset, length)), Some(scratch)) => {
                    let pool = Pool::Shared(scratch.clone());
                    let place = Place { pool, offset, length };
                    Target::At { place, dimensions: slot.dimensions.clone() }
                }
                _ => Target::Free,
            }
        };
        step.outputs.iter().map(target).collect()
    }

    fn keep(&mut self, slot: usize, output: Produced) {
        if let SlotRole::Output(position) = self.plan.slots[slot].role {
            self.shapes[position] = Some(output.shape);
        }
        self.values[slot] = Some(output.value);
    }

    fn source(&self, source: &Source) -> Result<Value, Failure> {
        let value = match source {
            Source::Constant(value) => value.clone(),
            Source::Slot(slot) => self.value(*slot)?.clone(),
        };
        Ok(value)
    }

    /// The arguments of what an IF or WHILE runs, in memory that all devices can reach.
    fn arguments(&self, step: &ControlStep) -> Result<Vec<Value>, Failure> {
        let argument = |source| {
            let value = self.source(source)?;
            Ok(match source {
                Source::Slot(slot) => in_shared_memory(self.plan, &self.plan.slots[*slot], &value)?,
                Source::Constant(_) => value,
            })
        };
        step.inputs.iter().map(argument).collect()
    }

    fn run_if(
        &self,
        step: &ControlStep,
        options: &RunOptions<'_>,
    ) -> Result<Vec<Produced>, Failure> {
        let mut condition = self.source(&step.condition)?;
        if let Source::Slot(slot) = &step.condition {
            condition = in_shared_memory(self.plan, &self.plan.slots[*slot], &condition)?;
        }
        let branch = usize::from(!truth(&condition)?);
        let arguments = self.arguments(step)?;
        let options = RunOptions { channels: &[], ..*options };
        run_inner(&step.plans[branch], "the branch of an IF", &arguments, &options)
    }

    fn run_while(
        &self,
        step: &ControlStep,
        options: &RunOptions<'_>,
    ) -> Result<Vec<Produced>, Failure> {
        let [condition, body] = &step.plans;
        let options = RunOptions { channels: &[], ..*options };
        let started = Instant::now();
        let timeout = nnhal_hal::time::loop_timeout(options.loop_timeout);
        let mut variables = self.arguments(step)?;
        loop {
            let decided = run_inner(condition, "the condition of a WHILE", &variables, &options)?;
            let Some(decided) = decided.first() else {
                return Err(Error::failed("the condition of a WHILE has no output").into());
            };
            if !truth(&decided.value)? {
                break;
            }
            if started.elapsed() > timeout || options.deadline.is_some_and(Deadline::has_passed) {
                return Err(Error::new(
                    ResultCode::MissedDeadlineTransient,
                    format!("a WHILE was broken off after {:?}", started.elapsed()),
                )
                .into());
            }
            let round = run_inner(body, "the body of a WHILE", &variables, &options)?;
            for (variable, output) in variables.iter_mut().zip(round) {
                *variable = output.value;
            }
        }
        let results = variables.into_iter().take(step.outputs.len());
        Ok(results.map(|value| Produced { shape: shape_of(&value), value }).collect())
    }

    /// Brings what an IF or WHILE has come to where it is wanted.
    fn deliver(&mut self, step: &ControlStep, outputs: Vec<Produced>) -> Result<(), Failure> {
        for (number, (slot, mut output)) in step.outputs.iter().zip(outputs).enumerate() {
            let Slot { dimensions, role, .. } = &self.plan.slots[*slot];
            let operation = self.plan.model.hal().main.operations[step.operation].operation_type;
            let what = || format!("output {number} of an operation {operation}");
            expect_shape(what, &output.value, dimensions, "the model")?;
            if let SlotRole::Output(position) = *role {
                match &self.targets[position] {
                    Target::Omitted => {}
                    Target::At { place, dimensions } => {
                        expect_shape(what, &output.value, dimensions, "the execution")?;
                        output.shape.is_sufficient = copy_into(&output.value, place)?;
                    }
                    // The value may be in the scratch memory of this run.
                    Target::Free => output.value = copy_out(&output.value)?,
                }
            }
            self.keep(*slot, output);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Ran, Failure> {
        let inputs = self.plan.model.inputs().len();
        let mut outputs = Vec::with_capacity(self.targets.len());
        for position in 0..self.targets.len() {
            let value = self.values.get_mut(inputs + position).and_then(Option::take);
            let (Some(value), Some(shape)) = (value, self.shapes[position].take()) else {
                return Err(Error::failed(format!("no step has written output {position}")).into());
            };
            outputs.push(Produced { value, shape });
        }
        Ok(Ran { outputs, timing: self.timing })
    }
}

/// Runs what an IF or WHILE refers to. What goes in and comes out has the shapes that its model declares, as far as it does.
fn run_inner(
    plan: &Plan,
    name: &str,
    arguments: &[Value],
    options: &RunOptions<'_>,
) -> Result<Vec<Produced>, Failure> {
    let (inputs, outputs) = plan.slots.split_at(plan.model.inputs().len().min(plan.slots.len()));
    for (number, (slot, value)) in inputs.iter().zip(arguments).enumerate() {
        let what = || format!("input {number} of {name}");
        expect_shape(what, value, &slot.dimensions, "its model")?;
    }
    let targets = vec![Target::Free; plan.model.outputs().len()];
    let ran = run(plan, arguments, &targets, options)?;
    for (number, (slot, output)) in outputs.iter().zip(&ran.outputs).enumerate() {
        let what = || format!("output {number} of {name}");
        expect_shape(what, &output.value, &slot.dimensions, "its model")?;
    }
    Ok(ran.outputs)
}

/// Whether a value has the shape that is declared, as far as one is. Of what is declared 0 stands for a length that is not known;
/// a value may have axes of length 0.
fn expect_shape(
    what: impl Fn() -> String,
    value: &Value,
    declared: &[u32],
    by: &str,
) -> Result<()> {
    let Value::At { dimensions: found, .. } = value else { return Ok(()) };
    let agrees = |(declared, found): (&u32, &u32)| *declared == 0 || declared == found;
    let is_same_rank = declared.len() == found.len();
    if declared.is_empty() || (is_same_rank && declared.iter().zip(found).all(agrees)) {
        return Ok(());
    }
    let what = what();
    Err(Error::failed(format!("{what} has dimensions {found:?}, {by} declares {declared:?}")))
}

fn sum(one: Timing, other: Timing) -> Timing {
    let add = |one: Option<Duration>, other: Option<Duration>| match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    };
    Timing {
        time_on_device: add(one.time_on_device, other.time_on_device),
        time_in_driver: add(one.time_in_driver, other.time_in_driver),
    }
}
