//! [`Plan`]: what an execution does, step by step.

pub(crate) mod buffers;
mod when_wanted;

use super::PlanOptions;
use super::assign::{Doer, assign};
use super::cache::Caching;
use super::divide::divide;
use super::extract::extract;
use super::value::{Place, Pool, Value};
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::memory::{Direction, IdleMemory, memory_error};
use crate::model::Model;
use crate::operand::{byte_size, is_fully_specified, is_tensor};
use buffers::DeviceBuffers;
use nnhal_hal::model::SubgraphName;
use nnhal_hal::{
    HalVersion, Hints, Operand, OperandLifeTime, OperationType, PrepareOptions, PreparedModel,
};
use nnhal_ops::ValidModel;
use std::collections::HashMap;
use std::sync::Arc;
use when_wanted::WhenWanted;

/// What an execution of a model does. Values that pass between steps, or in or out, have slots:
/// first those of the inputs, then of the outputs, then others.
pub(crate) struct Plan {
    pub(crate) model: Model,
    /// Why it cannot be run: an operation breaks its definition. Then there are no steps.
    pub(crate) failure: Option<Error>,
    pub(crate) steps: Vec<Step>,
    pub(crate) slots: Vec<Slot>,
    /// For the values of known size between steps, if there are any.
    scratch: Option<Scratch>,
    /// Buffers for values that never leave their device.
    pub(crate) buffers: DeviceBuffers,
    /// What takes over where a device fails.
    fallback: Option<Fallback>,
    /// The device that does all of it, if there is one.
    only_device: Option<Device>,
}

/// Memory for the values of known size between steps.
struct Scratch {
    /// Bytes that all of them take together.
    size: u64,
    idle: IdleMemory,
}

/// A value that passes between steps, or in or out.
pub(crate) struct Slot {
    pub(crate) operand: Operand,
    /// As far as they are known; 0 and empty where not.
    pub(crate) dimensions: Vec<u32>,
    pub(crate) role: SlotRole,
    /// Offset and length in the scratch memory, if the size is known.
    pub(crate) scratch: Option<(u32, u32)>,
    /// Whether any step reads it.
    pub(crate) is_read: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlotRole {
    Input,
    /// At this position.
    Output(usize),
    Temporary,
}

/// A part of a plan.
pub(crate) enum Step {
    /// Operations that a device does.
    Device(Box<DeviceStep>),
    /// An IF that the runtime does itself.
    If(Box<ControlStep>),
    /// A WHILE that the runtime does itself.
    While(Box<ControlStep>),
}

/// Where a step gets a value from.
pub(crate) enum Source {
    Slot(usize),
    Constant(Value),
}

pub(crate) struct DeviceStep {
    pub(crate) device: Device,
    /// In running order.
    operations: Vec<usize>,
    /// The part of the model; `None`: all of it.
    part: Option<nnhal_hal::Model>,
    /// Slots, by position.
    pub(crate) inputs: Vec<usize>,
    /// Slots, by position.
    pub(crate) outputs: Vec<usize>,
    pub(crate) prepared: Arc<dyn PreparedModel>,
    /// The same on the fallback device, once needed.
    fallback: WhenWanted<Arc<dyn PreparedModel>>,
    /// The same for running it in the process, once needed.
    in_process: WhenWanted<ValidModel>,
}

pub(crate) struct ControlStep {
    pub(crate) operation: usize,
    /// Of an IF.
    pub(crate) condition: Source,
    /// Then and else, or condition and body.
    pub(crate) plans: [Arc<Plan>; 2],
    pub(crate) inputs: Vec<Source>,
    /// Slots, by position.
    pub(crate) outputs: Vec<usize>,
}

/// A use of an argument by a step of a compilation.
#[derive(Clone)]
pub(crate) struct StepRole {
    pub(crate) device: Device,
    pub(crate) prepared: Arc<dyn PreparedModel>,
    pub(crate) direction: Direction,
    /// Position among the step's inputs or outputs.
    pub(crate) index: u32,
}

struct Fallback {
    device: Device,
    options: PlanOptions,
    /// The whole model on that device, once needed.
    plan: WhenWanted<Box<Plan>>,
}

impl Plan {
    /// Divides a model among devices and prepares each part. `fallback` is the device that takes
    /// over where another fails, if any may. Of a model with an operation that breaks its definition
    /// nothing is prepared: as with Android's runtime, running it fails.
    ///
    /// # Errors
    /// `BAD_DATA` if no device can do an operation; what devices answer.
    pub(super) fn new(
        model: &Model,
        devices: &[Device],
        fallback: Option<&Device>,
        options: &PlanOptions,
    ) -> Result<Self> {
        Self::with_known(model, devices, fallback, options, &mut HashMap::new())
    }

    /// The same, given the plans so far of models that others run: a model that is run in several
    /// places has one plan.
    fn with_known(
        model: &Model,
        devices: &[Device],
        fallback: Option<&Device>,
        options: &PlanOptions,
        known: &mut Known,
    ) -> Result<Self> {
        let failure = model.defect();
        let doers = match failure {
            Some(_) => Vec::new(),
            None => assign(model, devices, options.preference)?,
        };
        let fallback = fallback.filter(|_| failure.is_none());
        let mut plan = Self {
            model: model.clone(),
            failure,
            steps: Vec::new(),
            slots: Vec::new(),
            scratch: None,
            buffers: DeviceBuffers::default(),
            fallback: fallback.map(|device| Fallback {
                device: device.clone(),
                options: PlanOptions { deadline: None, ..options.without_caching() },
                plan: WhenWanted::default(),
            }),
            only_device: None,
        };
        let mut numbers = plan.add_arguments();
        if plan.failure.is_some() {
            return Ok(plan);
        }
        let groups = divide(&model.hal().main, &doers);
        let is_single = groups.len() == 1;
        for (number, (doer, operations)) in groups.into_iter().enumerate() {
            let step = match doer {
                Doer::Device(device) => {
                    let device = &devices[device];
                    let part = Part { device, operations, number, is_whole: is_single };
                    Step::Device(Box::new(plan.device_step(part, &mut numbers, options)?))
                }
                Doer::Runtime => {
                    let operation = operations[0];
                    let inner = model.controlled(operation).iter();
                    let plans = inner.map(|inner| match known.get(&inner.address()) {
                        Some(plan) => Ok(Arc::clone(plan)),
                        None => {
                            let options = options.without_caching();
                            let plan = Self::with_known(inner, devices, fallback, &options, known)?;
                            let plan = Arc::new(plan);
                            known.insert(inner.address(), Arc::clone(&plan));
                            Ok(plan)
                        }
                    });
                    let plans = plans.collect::<Result<Vec<_>>>()?;
                    plan.control_step(operation, &mut numbers, plans)?
                }
            };
            plan.steps.push(step);
        }
        plan.only_device = plan.find_only_device();
        plan.mark_read();
        plan.place_temporaries();
        plan.buffers = DeviceBuffers::new(&plan.steps, &plan.slots);
        Ok(plan)
    }

    /// Gives inputs and outputs their slots.
    fn add_arguments(&mut self) -> HashMap<u32, usize> {
        let mut numbers = HashMap::new();
        let model = self.model.clone();
        let main = &model.hal().main;
        let inputs = main.inputs.iter().map(|operand| (*operand, SlotRole::Input));
        let outputs = main.outputs.iter().enumerate();
        let outputs = outputs.map(|(position, operand)| (*operand, SlotRole::Output(position)));
        for (operand, role) in inputs.chain(outputs) {
            // What the client sees is what the model declares.
            let dimensions = main.operands[operand as usize].dimensions.clone();
            numbers.insert(operand, self.slots.len());
            self.add_slot(operand, dimensions, role);
        }
        numbers
    }

    fn add_slot(&mut self, operand: u32, dimensions: Vec<u32>, role: SlotRole) {
        let operand = self.model.hal().main.operands[operand as usize].clone();
        self.slots.push(Slot { operand, dimensions, role, scratch: None, is_read: false });
    }

    /// The slot of an operand that passes between steps.
    fn slot(&mut self, numbers: &mut HashMap<u32, usize>, operand: u32) -> usize {
        if let Some(known) = numbers.get(&operand) {
            return *known;
        }
        let slot = self.slots.len();
        let dimensions = self.model.known_dimensions(operand);
        self.add_slot(operand, dimensions, SlotRole::Temporary);
        numbers.insert(operand, slot);
        slot
    }

    fn device_step(
        &mut self,
        part: Part<'_>,
        numbers: &mut HashMap<u32, usize>,
        options: &PlanOptions,
    ) -> Result<DeviceStep> {
        let Part { device, operations, number, is_whole } = part;
        let model = self.model.clone();
        let main = &model.hal().main;
        let (part, inputs, outputs) = if is_whole {
            (None, main.inputs.clone(), main.outputs.clone())
        } else {
            let part = extract(model.hal(), &operations, |operand| model.known_dimensions(operand));
            (Some(part.model), part.inputs, part.outputs)
        };
        let prepared = {
            let part = part.as_ref().unwrap_or(model.hal());
            let caching = options.caching.as_ref();
            let key = Caching::step_key(caching, device, options, number, &operations);
            prepare(device, part, options, key.as_ref()).map_err(|error| {
                let code = error.code();
                // What a device says is never the client's fault: the model is valid.
                Error::new(code, format!("{}: {}", device.name(), error.reason()))
            })?
        };
        let mut slots = |operands: Vec<u32>| -> Vec<usize> {
            operands.into_iter().map(|operand| self.slot(numbers, operand)).collect()
        };
        let (inputs, outputs) = (slots(inputs), slots(outputs));
        let device = device.clone();
        Ok(DeviceStep {
            device,
            operations,
            part,
            inputs,
            outputs,
            prepared,
            fallback: WhenWanted::default(),
            in_process: WhenWanted::default(),
        })
    }

    fn control_step(
        &mut self,
        operation: usize,
        numbers: &mut HashMap<u32, usize>,
        plans: Vec<Arc<Self>>,
    ) -> Result<Step> {
        let model = self.model.clone();
        let step = &model.hal().main.operations[operation];
        let Ok(plans) = <[Arc<Self>; 2]>::try_from(plans) else {
            return Err(Error::failed(format!("{} without two models", step.operation_type)));
        };
        let is_if = step.operation_type == OperationType::If;
        let arguments = if is_if { 3 } else { 2 };
        let mut inputs = Vec::new();
        for operand in step.inputs.get(arguments..).unwrap_or_default() {
            inputs.push(self.source(numbers, *operand)?);
        }
        let condition = match step.inputs.first() {
            Some(operand) if is_if => self.source(numbers, *operand)?,
            _ => Source::Constant(Value::Omitted),
        };
        let outputs = step.outputs.iter().map(|operand| self.slot(numbers, *operand)).collect();
        let step = Box::new(ControlStep { operation, condition, plans, inputs, outputs });
        Ok(if is_if { Step::If(step) } else { Step::While(step) })
    }

    /// Where an operand's value comes from; constants are copied to where devices can read them.
    fn source(&mut self, numbers: &mut HashMap<u32, usize>, operand: u32) -> Result<Source> {
        let it = &self.model.hal().main.operands[operand as usize];
        if it.lifetime == OperandLifeTime::NoValue {
            return Ok(Source::Constant(Value::Omitted));
        }
        if !it.lifetime.is_constant() {
            return Ok(Source::Slot(self.slot(numbers, operand)));
        }
        let constant = self.model.checked().constant(SubgraphName::Main, operand);
        let constant = constant.ok_or_else(|| Error::failed("a constant has no value"))?;
        let bytes = constant.read().map_err(memory_error)?;
        let memory = crate::memory::copy_of(&bytes)?;
        let place = Place { pool: Pool::Shared(memory), offset: 0, length: it.location.length };
        let dimensions = it.dimensions.clone();
        Ok(Source::Constant(Value::At { place, dimensions }))
    }

    fn mark_read(&mut self) {
        let Self { steps, slots, .. } = self;
        for step in steps {
            let mut mark = |slot: usize| slots[slot].is_read = true;
            match step {
                Step::Device(step) => step.inputs.iter().for_each(|slot| mark(*slot)),
                Step::If(step) | Step::While(step) => {
                    for source in step.inputs.iter().chain([&step.condition]) {
                        if let Source::Slot(slot) = source {
                            mark(*slot);
                        }
                    }
                }
            }
        }
    }

    /// Gives values of known size between steps their places in one memory.
    fn place_temporaries(&mut self) {
        let devices = self.model.devices();
        let mut end = 0_u64;
        for slot in &mut self.slots {
            let size = byte_size(devices, slot.operand.operand_type, &slot.dimensions);
            let (SlotRole::Temporary, Some(size)) = (slot.role, size) else { continue };
            let offset = end.next_multiple_of(64);
            if let Ok(offset) = u32::try_from(offset)
                && offset.checked_add(size).is_some()
            {
                slot.scratch = Some((offset, size));
                end = u64::from(offset) + u64::from(size);
            }
        }
        // One of any length: plans with long values are not to make it anew each time.
        self.scratch = (end > 0).then(|| Scratch { size: end, idle: IdleMemory::new(1) });
    }

    /// Memory for the values between steps, if there are any of known size.
    pub(crate) fn take_scratch(&self) -> Result<Option<nnhal_hal::Memory>> {
        let take = |Scratch { size, idle }: &Scratch| {
            idle.take(*size).map_or_else(|| crate::memory::allocate(*size), Ok)
        };
        self.scratch.as_ref().map(take).transpose()
    }

    /// Keeps the memory for the next execution.
    pub(crate) fn give_back_scratch(&self, memory: Option<nnhal_hal::Memory>) {
        if let (Some(scratch), Some(memory)) = (&self.scratch, memory) {
            scratch.idle.give_back(memory);
        }
    }

    /// The only step, if it is a device's.
    pub(crate) fn single(&self) -> Option<&DeviceStep> {
        match &*self.steps {
            [Step::Device(step)] => Some(step),
            _ => None,
        }
    }

    /// Whether the model has a loop, which may take too long.
    pub(crate) fn has_loops(&self) -> bool {
        has_loops(self.model.hal())
    }

    /// The whole model on the fallback device, prepared when first asked for; `None` if nothing may
    /// or can go there.
    pub(crate) fn on_fallback(&self) -> Option<Result<&Self>> {
        let fallback = self.fallback.as_ref()?;
        let is_there = self.only_device.as_ref().is_some_and(|it| it.is_same(&fallback.device));
        if is_there || self.model.has_foreign_operations() {
            return None;
        }
        let plan = fallback.plan.get_or_make(|| {
            let devices = std::slice::from_ref(&fallback.device);
            Self::new(&self.model, devices, None, &fallback.options).map(Box::new)
        });
        Some(plan.map(|plan| &**plan))
    }

    fn find_only_device(&self) -> Option<Device> {
        let mut only: Option<&Device> = None;
        let devices = self.steps.iter().flat_map(|step| match step {
            Step::Device(step) => vec![Some(&step.device)],
            Step::If(step) | Step::While(step) => {
                step.plans.iter().map(|plan| plan.only_device.as_ref()).collect()
            }
        });
        for device in devices {
            let device = device?;
            if only.is_some_and(|only| !only.is_same(device)) {
                return None;
            }
            only = Some(device);
        }
        only.cloned()
    }

    /// A step's part on the fallback device, prepared when first asked for; `None` if it may not go
    /// there, or is there already.
    pub(crate) fn step_on_fallback<'a>(
        &self,
        step: &'a DeviceStep,
    ) -> Option<Result<&'a Arc<dyn PreparedModel>>> {
        let fallback = self.fallback.as_ref()?;
        if step.device.is_same(&fallback.device) {
            return None;
        }
        Some(step.fallback.get_or_make(|| {
            let part = step.part.as_ref().unwrap_or(self.model.hal());
            prepare(&fallback.device, part, &fallback.options, None)
        }))
    }

    /// A step's part for running it in the process, validated when first asked for.
    pub(crate) fn step_in_process<'a>(&self, step: &'a DeviceStep) -> Result<&'a ValidModel> {
        step.in_process.get_or_make(|| {
            let part = step.part.as_ref().unwrap_or(self.model.hal());
            let valid = nnhal_ops::validate(part, HalVersion::LATEST);
            valid.map_err(|error| Error::failed(error.to_string()))
        })
    }

    /// Channels for executions in close succession, by step. None where the step has loops: a channel
    /// carries neither their time limit nor that they have missed it.
    pub(crate) fn open_bursts(&self) -> Vec<Option<Box<dyn nnhal_hal::Burst>>> {
        let open = |step: &Step| match step {
            Step::Device(step) if !has_loops(step.part.as_ref().unwrap_or(self.model.hal())) => {
                step.prepared.configure_burst().ok()
            }
            _ => None,
        };
        self.steps.iter().map(open).collect()
    }

    /// See [`Compilation::has_dynamic_temporaries`](crate::Compilation::has_dynamic_temporaries).
    pub(crate) fn has_dynamic_temporaries(&self) -> bool {
        let devices = self.model.devices();
        let is_open = |slot: &Slot| {
            slot.role == SlotRole::Temporary
                && is_tensor(devices, slot.operand.operand_type)
                && !is_fully_specified(&slot.dimensions)
        };
        self.slots.iter().any(is_open)
    }

    /// See [`Compilation::steps`](crate::Compilation::steps).
    pub(crate) fn describe(&self) -> Vec<(Option<&Device>, Vec<usize>)> {
        let added_as = |index: &usize| self.model.added_as()[*index];
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            steps.push(match step {
                Step::Device(step) => {
                    (Some(&step.device), step.operations.iter().map(added_as).collect())
                }
                Step::If(step) | Step::While(step) => (None, vec![added_as(&step.operation)]),
            });
        }
        steps
    }

    /// All uses of an argument by devices. None where the runtime uses it itself.
    pub(crate) fn step_roles(&self, direction: Direction, index: u32) -> Vec<StepRole> {
        let wanted = match direction {
            Direction::Input => index as usize,
            Direction::Output => self.model.inputs().len() + index as usize,
        };
        let mut roles = Vec::new();
        for step in &self.steps {
            let Step::Device(step) = step else { continue };
            for (slots, direction) in
                [(&step.inputs, Direction::Input), (&step.outputs, Direction::Output)]
            {
                let uses = slots.iter().enumerate().filter(|(_, slot)| **slot == wanted);
                roles.extend(uses.map(|(position, _)| StepRole {
                    device: step.device.clone(),
                    prepared: Arc::clone(&step.prepared),
                    direction,
                    index: u32::try_from(position).unwrap_or(u32::MAX),
                }));
            }
        }
        roles
    }
}

fn has_loops(model: &nnhal_hal::Model) -> bool {
    let is_loop =
        |operation: &nnhal_hal::Operation| operation.operation_type == OperationType::While;
    model.subgraphs().any(|(_, graph)| graph.operations.iter().any(is_loop))
}

/// Plans by the address of their model.
type Known = HashMap<usize, Arc<Plan>>;

/// What becomes a device's step.
struct Part<'a> {
    device: &'a Device,
    operations: Vec<usize>,
    /// Position among the steps.
    number: usize,
    /// Whether it is all of the model.
    is_whole: bool,
}

/// Prepares a model on a device, from the cache if that has it. What it needs of the stack is not to be that of each model
/// in another.
#[inline(never)]
fn prepare(
    device: &Device,
    model: &nnhal_hal::Model,
    options: &PlanOptions,
    key: Option<&super::cache::StepKey>,
) -> Result<Arc<dyn PreparedModel>> {
    if let Some(prepared) = key.and_then(|key| key.load(device, options.deadline)) {
        return Ok(prepared);
    }
    let mut prepare = PrepareOptions {
        preference: options.preference,
        priority: options.priority,
        deadline: options.deadline,
        hints: Hints::clone(&options.hints),
        ..PrepareOptions::default()
    };
    let drafts = key.map(|key| key.save_to(device, &mut prepare));
    let prepared = device.hal().prepare_model(model, device.version(), prepare)?;
    if let Some(drafts) = drafts {
        drafts.publish();
    }
    Ok(prepared)
}
