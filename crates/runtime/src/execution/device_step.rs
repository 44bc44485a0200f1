//! [`DeviceWork`]: a step that a device does.

use super::ran::{Produced, Ran, RunOptions};
use super::state::Failure;
use super::values::{copy_into, in_shared_memory, new_place};
use crate::error::{Error, Result};
use crate::operand::byte_size;
use crate::partition::plan::{DeviceStep, Plan, Slot};
use crate::partition::value::{Place, Pool, Target, Value};
use nnhal_hal::{
    DataLocation, ErrorStatus, Execution, ExecutionError, ExecutionOptions, OutputShape,
    PreparedModel, Request, RequestArgument, RequestMemoryPool, Timing,
};
use nnhal_interpreter::execute_once;
use std::borrow::Cow;

/// Room that is tried first for a value of unknown size, in bytes.
const FIRST_CAPACITY: u32 = 4096;
/// How often an output is given a greater capacity before the device is believed to be wrong.
const ATTEMPTS: usize = 34;

/// A device's step, to be run.
#[derive(Clone, Copy)]
pub(super) struct DeviceWork<'a> {
    pub(super) plan: &'a Plan,
    pub(super) step: &'a DeviceStep,
    pub(super) channel: Option<&'a Option<Box<dyn nnhal_hal::Burst>>>,
    /// Whether nothing comes after it.
    pub(super) is_only: bool,
}

impl DeviceWork<'_> {
    /// Runs the step; where its device fails and another may take over, there.
    pub(super) fn run(
        self,
        inputs: &[&Value],
        targets: &[Target],
        options: &RunOptions<'_>,
    ) -> Result<Ran, Failure> {
        if inputs.iter().any(|value| is_empty(value)) {
            return self.in_process(inputs, targets, options);
        }
        // A channel carries no deadline and no hints.
        let may_use_channel = options.deadline.is_none() && options.hints.is_empty();
        let channel = self.channel.and_then(Option::as_ref).filter(|_| may_use_channel);
        let on_device = |request: &Request| match channel {
            Some(burst) if request.pools.iter().all(is_memory) => {
                match burst.execute(request, options.measure) {
                    // What the channel does not carry is no failure of the device.
                    Err(failed) if failed.error.status() != ErrorStatus::OutputInsufficientSize => {
                        execute(&*self.step.prepared, request, options)
                    }
                    result => result,
                }
            }
            _ => execute(&*self.step.prepared, request, options),
        };
        let failure = match self.attempt(inputs, targets, on_device) {
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
                let on_fallback = |request: &Request| execute(&**prepared, request, options);
                self.elsewhere(inputs, targets, on_fallback).map_err(|_| failure)
            }
            _ => Err(failure),
        }
    }

    /// The step without its device: requests cannot say that a value has no elements, lengths of 0 are unknown in them.
    fn in_process(
        &self,
        inputs: &[&Value],
        targets: &[Target],
        options: &RunOptions<'_>,
    ) -> Result<Ran, Failure> {
        let name = self.step.device.name();
        tracing::debug!(device = name, "a step with a value without elements runs in the process");
        let model = self.plan.step_in_process(self.step)?;
        let options = execution_options(options);
        let execute = |request: &Request| execute_once(model, request, &options);
        self.elsewhere(inputs, targets, execute).map_err(|Failure { error, output_shapes }| {
            let reason = format!(
                "a step on {name} has an input without elements, which a request cannot express; in \
                 the process: {}",
                error.reason()
            );
            Failure { error: Error::new(error.code(), reason), output_shapes }
        })
    }

    fn slot(&self, output: usize) -> &Slot {
        &self.plan.slots[self.step.outputs[output]]
    }

    /// Runs the step, again and again where outputs turn out to be longer than the capacity that
    /// they were given.
    fn attempt(
        &self,
        inputs: &[&Value],
        targets: &[Target],
        execute: impl Fn(&Request) -> Result<Execution, ExecutionError>,
    ) -> Result<Ran, Failure> {
        let mut targets = Cow::Borrowed(targets);
        let mut too_short = vec![false; targets.len()];
        let mut capacities = vec![None; targets.len()];
        for _ in 0..ATTEMPTS {
            let places = self.places(inputs, &targets, &mut capacities)?;
            let request = self.request(inputs, &targets, &places)?;
            let failed = match execute(&request) {
                Ok(execution) => {
                    return self.conclude(places, execution, &too_short);
                }
                Err(failed) => failed,
            };
            let shapes = &failed.output_shapes;
            let is_short = failed.error.status() == ErrorStatus::OutputInsufficientSize
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
                    targets.to_mut()[output] = Target::Free;
                }
                capacities[output] = Some(self.more_capacity(output, shape, capacities[output])?);
            }
        }
        Err(Error::failed("the device calls every buffer too short").into())
    }

    /// A greater capacity for an output, in bytes.
    fn more_capacity(
        &self,
        output: usize,
        shape: &OutputShape,
        before: Option<u32>,
    ) -> Result<u32> {
        let devices = self.plan.model.devices();
        let operand_type = self.slot(output).operand.operand_type;
        let reported = byte_size(devices, operand_type, &shape.dimensions);
        if let Some(reported) = reported
            && Some(reported) != before
        {
            return Ok(reported);
        }
        let before = before.unwrap_or(FIRST_CAPACITY);
        before.checked_mul(2).ok_or_else(|| {
            Error::failed(format!("output {output} of a step takes more than 2^32 bytes"))
        })
    }

    /// Where the outputs go; `None` for those that no one wants.
    fn places(
        &self,
        inputs: &[&Value],
        targets: &[Target],
        capacities: &mut [Option<u32>],
    ) -> Result<Vec<Option<Place>>> {
        let mut places = Vec::with_capacity(targets.len());
        for (output, target) in targets.iter().enumerate() {
            places.push(match target {
                Target::Omitted => None,
                Target::At { place, .. } => Some(place.clone()),
                Target::Free => {
                    let capacity =
                        capacities[output].unwrap_or_else(|| self.first_capacity(output, inputs));
                    capacities[output] = Some(capacity);
                    Some(new_place(capacity)?)
                }
            });
        }
        Ok(places)
    }

    fn first_capacity(&self, output: usize, inputs: &[&Value]) -> u32 {
        let slot = self.slot(output);
        let devices = self.plan.model.devices();
        byte_size(devices, slot.operand.operand_type, &slot.dimensions).unwrap_or_else(|| {
            let length = |value: &&Value| match value {
                Value::At { place, .. } => place.length,
                Value::Omitted => 0,
            };
            inputs.iter().map(length).fold(FIRST_CAPACITY, u32::max)
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

    /// The step elsewhere than on its device, where that one's buffers cannot be reached.
    fn elsewhere(
        &self,
        inputs: &[&Value],
        targets: &[Target],
        execute: impl Fn(&Request) -> Result<Execution, ExecutionError>,
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
        let to_memory: Vec<Target> = to_memory.collect();
        let mut ran = self.attempt(&reachable.iter().collect::<Vec<_>>(), &to_memory, execute)?;
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

/// Buffers of devices have no place in the channels of bursts.
fn is_memory(pool: &RequestMemoryPool) -> bool {
    matches!(pool, RequestMemoryPool::Memory(_))
}

fn execute(
    prepared: &dyn PreparedModel,
    request: &Request,
    options: &RunOptions<'_>,
) -> Result<Execution, ExecutionError> {
    prepared.execute(request, &execution_options(options))
}

fn execution_options(options: &RunOptions<'_>) -> ExecutionOptions {
    ExecutionOptions {
        measure: options.measure,
        deadline: options.deadline,
        loop_timeout: options.loop_timeout,
        cancellation: None,
        hints: options.hints.clone(),
    }
}

/// Whether a value has no elements.
fn is_empty(value: &Value) -> bool {
    matches!(value, Value::At { dimensions, .. } if dimensions.contains(&0))
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
