//! Running a plan, step by step.

use super::state::Failure;
use crate::error::{Error, Result, ResultCode};
use crate::memory::memory_error;
use crate::operand::byte_size;
use crate::partition::plan::{ControlStep, DeviceStep, Plan, Slot, SlotRole, Source, Step};
use crate::partition::value::{Place, Pool, Target, Value};
use hal::{
    DataLocation, Deadline, Execution, ExecutionError, ExecutionOptions, OutputShape,
    PreparedModel, Request, RequestArgument, RequestMemoryPool, Timing,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Room that is tried first for a value of unknown size, in bytes.
const FIRST_ROOM: u32 = 4096;
/// How often an output is given more room before the device is believed to be wrong.
const ATTEMPTS: usize = 34;

/// How to run a plan.
#[derive(Clone, Copy)]
pub(super) struct RunOptions<'a> {
    pub(super) measure: bool,
    pub(super) deadline: Option<Deadline>,
    pub(super) loop_timeout: Option<Duration>,
    /// Channels for executions in close succession, by step.
    pub(super) channels: &'a [Option<Box<dyn hal::Burst>>],
}

/// An output after a run.
#[derive(Clone)]
pub(super) struct Produced {
    /// Where it lies; left out if nobody wanted it.
    pub(super) value: Value,
    /// Its exact dimensions, as far as the device tells.
    pub(super) shape: OutputShape,
}

/// What a run has come to.
pub(super) struct Ran {
    /// By position.
    pub(super) outputs: Vec<Produced>,
    pub(super) timing: Timing,
}

impl Ran {
    pub(super) fn shapes(&self) -> Vec<OutputShape> {
        self.outputs.iter().map(|output| output.shape.clone()).collect()
    }
}

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
    if let Some(step) = plan.single() {
        let work = DeviceWork { plan, step, channel: options.channels.first(), is_only: true };
        return work.run(inputs.iter().collect(), targets.to_vec(), options);
    }
    let scratch = plan.take_scratch()?;
    let frame = Frame::new(plan, scratch.as_ref(), inputs, targets);
    let ran = frame.run(options);
    plan.give_back_scratch(scratch);
    ran
}

/// A run of a plan with several steps.
struct Frame<'a> {
    plan: &'a Plan,
    scratch: Option<&'a hal::Memory>,
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
        scratch: Option<&'a hal::Memory>,
        inputs: &[Value],
        targets: &'a [Target],
    ) -> Self {
        let mut values: Vec<Option<Value>> = inputs.iter().cloned().map(Some).collect();
        values.resize(plan.slots.len(), None);
        let shapes = vec![None; targets.len()];
        Self { plan, scratch, targets, values, shapes, timing: Timing::NONE }
    }

    fn run(mut self, options: &RunOptions<'_>) -> Result<Ran, Failure> {
        for (number, step) in self.plan.steps.iter().enumerate() {
            match step {
                Step::Device(step) => {
                    let channel = options.channels.get(number);
                    let work = DeviceWork { plan: self.plan, step, channel, is_only: false };
                    let inputs = self.inputs(step)?;
                    let ran = work.run(inputs, self.targets_of(step), options)?;
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
        let target = |slot: &usize| {
            let slot = &self.plan.slots[*slot];
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
        let plan = &step.plans[branch];
        let targets = vec![Target::Free; plan.model.outputs().len()];
        let options = RunOptions { channels: &[], ..*options };
        Ok(run(plan, &arguments, &targets, &options)?.outputs)
    }

    fn run_while(
        &self,
        step: &ControlStep,
        options: &RunOptions<'_>,
    ) -> Result<Vec<Produced>, Failure> {
        let [condition, body] = &step.plans;
        let options = RunOptions { channels: &[], ..*options };
        let started = Instant::now();
        let timeout = hal::time::loop_timeout(options.loop_timeout);
        let mut variables = self.arguments(step)?;
        let targets = vec![Target::Free; body.model.outputs().len()];
        loop {
            let decided = run(condition, &variables, &[Target::Free], &options)?;
            let Some(decided) = decided.outputs.first() else {
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
            let round = run(body, &variables, &targets, &options)?;
            for (variable, output) in variables.iter_mut().zip(round.outputs) {
                *variable = output.value;
            }
        }
        let results = variables.into_iter().take(step.outputs.len());
        Ok(results.map(|value| Produced { shape: shape_of(&value), value }).collect())
    }

    /// Brings what an IF or WHILE has come to where it is wanted.
    fn deliver(&mut self, step: &ControlStep, outputs: Vec<Produced>) -> Result<(), Failure> {
        for (slot, mut output) in step.outputs.iter().zip(outputs) {
            if let SlotRole::Output(position) = self.plan.slots[*slot].role {
                match &self.targets[position] {
                    Target::Omitted => {}
                    Target::At { place, .. } => {
                        output.shape.is_sufficient = copy_into(&output.value, place)?;
                    }
                    // The value may lie in the scratch memory of this run.
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

/// A device's step, to be run.
#[derive(Clone, Copy)]
struct DeviceWork<'a> {
    plan: &'a Plan,
    step: &'a DeviceStep,
    channel: Option<&'a Option<Box<dyn hal::Burst>>>,
    /// Whether nothing comes after it.
    is_only: bool,
}

impl DeviceWork<'_> {
    fn run(
        self,
        inputs: Vec<&Value>,
        targets: Vec<Target>,
        options: &RunOptions<'_>,
    ) -> Result<Ran, Failure> {
        self.expect_no_empty_inputs(&inputs)?;
        // A channel carries no deadline.
        let channel = self.channel.and_then(Option::as_ref).filter(|_| options.deadline.is_none());
        let execute = |request: &Request| match channel {
            Some(burst) => burst.execute(request, options.measure),
            None => execute(&*self.step.prepared, request, options),
        };
        let failure = match self.attempt(&inputs, targets.clone(), execute) {
            Ok(ran) => return Ok(ran),
            Err(failure) => failure,
        };
        if failure.error.code().is_missed_deadline() {
            return Err(failure);
        }
        match self.plan.step_on_fallback(self.step) {
            Some(Ok(prepared)) => {
                tracing::warn!(
                    device = self.step.device.name(),
                    error = %failure.error,
                    "the step goes to the fallback device"
                );
                self.on_fallback(prepared, &inputs, &targets, options).map_err(|_| failure)
            }
            _ => Err(failure),
        }
    }

    /// Requests cannot say that a value has no elements: lengths of 0 are unknown in them.
    fn expect_no_empty_inputs(&self, inputs: &[&Value]) -> Result<()> {
        for (position, value) in inputs.iter().enumerate() {
            if let Value::At { dimensions, .. } = value
                && dimensions.contains(&0)
            {
                let name = self.step.device.name();
                return Err(Error::failed(format!(
                    "input {position} of a step on {name} has no elements, which devices cannot be \
                     told: {dimensions:?}"
                )));
            }
        }
        Ok(())
    }

    fn slot(&self, output: usize) -> &Slot {
        &self.plan.slots[self.step.outputs[output]]
    }

    /// Runs the step, again and again where outputs turn out to need more room than they were
    /// given.
    fn attempt(
        &self,
        inputs: &[&Value],
        mut targets: Vec<Target>,
        execute: impl Fn(&Request) -> Result<Execution, ExecutionError>,
    ) -> Result<Ran, Failure> {
        let mut too_short = vec![false; targets.len()];
        let mut rooms = vec![None; targets.len()];
        for _ in 0..ATTEMPTS {
            let places = self.places(inputs, &targets, &mut rooms)?;
            let request = self.request(inputs, &targets, &places)?;
            let failed = match execute(&request) {
                Ok(execution) => {
                    return self.conclude(places, execution, &too_short);
                }
                Err(failed) => failed,
            };
            let shapes = &failed.output_shapes;
            let is_short = failed.error.status() == hal::ErrorStatus::OutputInsufficientSize
                && shapes.len() == targets.len();
            if !is_short {
                return Err(Error::from(failed.error).into());
            }
            // With nothing to come the shapes are all that is wanted, and all are known.
            let only_given = |(target, shape): (&Target, &OutputShape)| {
                shape.is_sufficient || matches!(target, Target::At { .. })
            };
            if self.is_only && targets.iter().zip(shapes).all(only_given) {
                return Ok(self.short(places, shapes, &too_short));
            }
            for (output, shape) in shapes.iter().enumerate() {
                if shape.is_sufficient {
                    continue;
                }
                if let Target::At { .. } = targets[output] {
                    // It goes elsewhere for those who read it.
                    too_short[output] = true;
                    targets[output] = Target::Free;
                }
                rooms[output] = Some(self.more_room(output, shape, rooms[output])?);
            }
        }
        Err(Error::failed("the device calls every buffer too short").into())
    }

    /// More room for an output, in bytes.
    fn more_room(&self, output: usize, shape: &OutputShape, before: Option<u32>) -> Result<u32> {
        let devices = self.plan.model.devices();
        let operand_type = self.slot(output).operand.operand_type;
        let told = byte_size(devices, operand_type, &shape.dimensions);
        if let Some(told) = told
            && Some(told) != before
        {
            return Ok(told);
        }
        let before = before.unwrap_or(FIRST_ROOM);
        before.checked_mul(2).ok_or_else(|| {
            Error::failed(format!("output {output} of a step takes more than 2^32 bytes"))
        })
    }

    /// Where the outputs go; `None` for those that nobody wants.
    fn places(
        &self,
        inputs: &[&Value],
        targets: &[Target],
        rooms: &mut [Option<u32>],
    ) -> Result<Vec<Option<Place>>> {
        let mut places = Vec::with_capacity(targets.len());
        for (output, target) in targets.iter().enumerate() {
            places.push(match target {
                Target::Omitted => None,
                Target::At { place, .. } => Some(place.clone()),
                Target::Free => {
                    let room = rooms[output].unwrap_or_else(|| self.first_room(output, inputs));
                    rooms[output] = Some(room);
                    Some(new_place(room)?)
                }
            });
        }
        Ok(places)
    }

    fn first_room(&self, output: usize, inputs: &[&Value]) -> u32 {
        let slot = self.slot(output);
        let devices = self.plan.model.devices();
        byte_size(devices, slot.operand.operand_type, &slot.dimensions).unwrap_or_else(|| {
            let length = |value: &&Value| match value {
                Value::At { place, .. } => place.length,
                Value::Omitted => 0,
            };
            inputs.iter().map(length).fold(FIRST_ROOM, u32::max)
        })
    }

    fn request(
        &self,
        inputs: &[&Value],
        targets: &[Target],
        places: &[Option<Place>],
    ) -> Result<Request> {
        let mut request = Request {
            inputs: Vec::with_capacity(inputs.len()),
            outputs: Vec::with_capacity(targets.len()),
            pools: Vec::with_capacity(2),
        };
        for (value, slot) in inputs.iter().zip(&self.step.inputs) {
            let argument = match value {
                Value::Omitted => RequestArgument::omitted(),
                Value::At { place, dimensions } => {
                    let declared = &self.plan.slots[*slot].dimensions;
                    let location = locate(&mut request.pools, place);
                    argument(location, declared, dimensions)
                }
            };
            request.inputs.push(argument);
        }
        for (output, (place, target)) in places.iter().zip(targets).enumerate() {
            let argument = match (place, target) {
                (None, _) => RequestArgument::omitted(),
                (Some(place), Target::At { dimensions, .. }) => {
                    let location = locate(&mut request.pools, place);
                    argument(location, &self.slot(output).dimensions, dimensions)
                }
                (Some(place), _) => RequestArgument::at(locate(&mut request.pools, place)),
            };
            request.outputs.push(argument);
        }
        Ok(request)
    }

    fn conclude(
        &self,
        places: Vec<Option<Place>>,
        execution: Execution,
        too_short: &[bool],
    ) -> Result<Ran, Failure> {
        let Execution { output_shapes, timing } = execution;
        if output_shapes.len() != places.len() {
            let (found, expected) = (output_shapes.len(), places.len());
            return Err(Error::failed(format!("{found} output shapes, expected {expected}")).into());
        }
        let devices = self.plan.model.devices();
        let mut outputs = Vec::with_capacity(places.len());
        for (output, (place, mut shape)) in places.into_iter().zip(output_shapes).enumerate() {
            let value = match place {
                None => Value::Omitted,
                Some(mut place) => {
                    let operand_type = self.slot(output).operand.operand_type;
                    let is_shared = matches!(place.pool, Pool::Shared(_));
                    match byte_size(devices, operand_type, &shape.dimensions) {
                        Some(size) if is_shared => place.length = size,
                        _ => {}
                    }
                    Value::At { place, dimensions: shape.dimensions.clone() }
                }
            };
            shape.is_sufficient &= !too_short[output];
            outputs.push(Produced { value, shape });
        }
        Ok(Ran { outputs, timing })
    }

    /// Outputs that did not all fit.
    fn short(&self, places: Vec<Option<Place>>, shapes: &[OutputShape], too_short: &[bool]) -> Ran {
        let output = |((place, shape), too_short): ((Option<Place>, &OutputShape), &bool)| {
            let mut shape = shape.clone();
            shape.is_sufficient &= !too_short;
            let value = match place {
                None => Value::Omitted,
                Some(place) => Value::At { place, dimensions: shape.dimensions.clone() },
            };
            Produced { value, shape }
        };
        let outputs = places.into_iter().zip(shapes).zip(too_short).map(output).collect();
        Ran { outputs, timing: Timing::NONE }
    }

    /// The step on another device than it is meant for, which cannot reach the buffers of that.
    fn on_fallback(
        &self,
        prepared: &Arc<dyn PreparedModel>,
        inputs: &[&Value],
        targets: &[Target],
        options: &RunOptions<'_>,
    ) -> Result<Ran, Failure> {
        let mut reachable = Vec::with_capacity(inputs.len());
        for (value, slot) in inputs.iter().zip(&self.step.inputs) {
            reachable.push(in_shared_memory(self.plan, &self.plan.slots[*slot], value)?);
        }
        let is_buffer = |target: &Target| {
            matches!(target, Target::At { place: Place { pool: Pool::Buffer(_), .. }, .. })
        };
        let to_memory = targets.iter().map(|target| match target {
            target if is_buffer(target) => Target::Free,
            target => target.clone(),
        });
        let mut ran =
            self.attempt(&reachable.iter().collect::<Vec<_>>(), to_memory.collect(), |request| {
                execute(&**prepared, request, options)
            })?;
        for (output, target) in ran.outputs.iter_mut().zip(targets) {
            if let Target::At { place, .. } = target
                && is_buffer(target)
            {
                output.shape.is_sufficient = copy_into(&output.value, place)?;
                let dimensions = output.shape.dimensions.clone();
                output.value = Value::At { place: place.clone(), dimensions };
            }
        }
        Ok(ran)
    }
}

fn execute(
    prepared: &dyn PreparedModel,
    request: &Request,
    options: &RunOptions<'_>,
) -> Result<Execution, ExecutionError> {
    let options = ExecutionOptions {
        measure: options.measure,
        deadline: options.deadline,
        loop_timeout: options.loop_timeout,
        cancellation: None,
    };
    prepared.execute(request, &options)
}

/// A place's location in a request, whose pools get the place's where they do not have it.
pub(super) fn locate(pools: &mut Vec<RequestMemoryPool>, place: &Place) -> DataLocation {
    let is_same = |known: &RequestMemoryPool| match (known, &place.pool) {
        (RequestMemoryPool::Memory(known), Pool::Shared(memory)) => known.is_same(memory),
        (RequestMemoryPool::Token(known), Pool::Buffer(buffer)) => *known == buffer.token(),
        _ => false,
    };
    let pool = pools.iter().position(is_same).unwrap_or_else(|| {
        pools.push(match &place.pool {
            Pool::Shared(memory) => RequestMemoryPool::Memory(memory.clone()),
            Pool::Buffer(buffer) => RequestMemoryPool::Token(buffer.token()),
        });
        pools.len() - 1
    });
    DataLocation {
        pool_index: u32::try_from(pool).unwrap_or(u32::MAX),
        offset: place.offset,
        length: place.length,
    }
}

/// An argument with its dimensions, where the model does not know them all.
pub(super) fn argument(
    location: DataLocation,
    declared: &[u32],
    dimensions: &[u32],
) -> RequestArgument {
    let mut argument = RequestArgument::at(location);
    if declared.is_empty() || declared.contains(&0) {
        argument.dimensions = dimensions.to_vec();
    }
    argument
}

/// New memory with so much room; a value without elements gets a byte, as requests demand.
fn new_place(room: u32) -> Result<Place> {
    let length = room.max(1);
    let memory = hal::Memory::allocate(u64::from(length)).map_err(memory_error)?;
    Ok(Place { pool: Pool::Shared(memory), offset: 0, length })
}

fn shape_of(value: &Value) -> OutputShape {
    let dimensions = match value {
        Value::Omitted => Vec::new(),
        Value::At { dimensions, .. } => dimensions.clone(),
    };
    OutputShape { dimensions, is_sufficient: true }
}

/// What a condition says.
fn truth(condition: &Value) -> Result<bool> {
    let Value::At { place: Place { pool: Pool::Shared(memory), offset, .. }, .. } = condition
    else {
        return Err(Error::failed("a condition is left out"));
    };
    let mut byte = [0];
    let view = memory.view().map_err(memory_error)?;
    view.read(u64::from(*offset), &mut byte).map_err(memory_error)?;
    Ok(byte != [0])
}

/// The value in memory that all devices can reach: itself, or a copy of what a buffer holds.
fn in_shared_memory(plan: &Plan, slot: &Slot, value: &Value) -> Result<Value> {
    let Value::At { place: Place { pool: Pool::Buffer(buffer), .. }, dimensions } = value else {
        return Ok(value.clone());
    };
    let size = byte_size(plan.model.devices(), slot.operand.operand_type, dimensions);
    let size = size.ok_or_else(|| Error::failed("a buffer's value is of unknown size"))?;
    let place = new_place(size)?;
    if let Pool::Shared(memory) = &place.pool {
        buffer.copy_to(memory)?;
    }
    Ok(Value::At { place, dimensions: dimensions.clone() })
}

/// The bytes of a value in shared memory.
fn bytes_of(value: &Value) -> Result<Vec<u8>> {
    let Value::At { place, dimensions } = value else { return Ok(Vec::new()) };
    let Pool::Shared(memory) = &place.pool else {
        return Err(Error::failed("a value lies in a device's buffer"));
    };
    if dimensions.contains(&0) {
        return Ok(Vec::new());
    }
    let view = memory.view().map_err(memory_error)?;
    view.read_to_vec(u64::from(place.offset), u64::from(place.length)).map_err(memory_error)
}

/// The value in memory of its own.
fn copy_out(value: &Value) -> Result<Value> {
    let Value::At { dimensions, .. } = value else { return Ok(Value::Omitted) };
    let bytes = bytes_of(value)?;
    let mut place = new_place(u32::try_from(bytes.len()).unwrap_or(u32::MAX))?;
    if let Pool::Shared(memory) = &place.pool {
        memory.view().and_then(|view| view.write(0, &bytes)).map_err(memory_error)?;
    }
    place.length = u32::try_from(bytes.len().max(1)).unwrap_or(u32::MAX);
    Ok(Value::At { place, dimensions: dimensions.clone() })
}

/// Copies a value to a place, if there is room enough.
fn copy_into(value: &Value, place: &Place) -> Result<bool> {
    let bytes = bytes_of(value)?;
    match &place.pool {
        Pool::Shared(memory) => {
            if bytes.len() as u64 > u64::from(place.length) {
                return Ok(false);
            }
            let view = memory.view().map_err(memory_error)?;
            view.write(u64::from(place.offset), &bytes).map_err(memory_error)?;
        }
        Pool::Buffer(buffer) => {
            let Value::At { dimensions, .. } = value else { return Ok(true) };
            let memory = hal::Memory::from_bytes(&bytes).map_err(memory_error)?;
            buffer.copy_from(&memory, dimensions)?;
        }
    }
    Ok(true)
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
