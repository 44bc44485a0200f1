//! [`DeviceBuffers`]: values between steps that never leave their device.

use super::{Slot, SlotRole, Source, Step};
use crate::devices::Device;
use crate::memory::{LONGEST_KEPT, MOST_KEPT};
use nnhal_hal::{Buffer, BufferDescription, BufferRole, PreparedModel};
use std::sync::{Arc, Mutex, PoisonError};

/// Buffers for values of known size that only steps of one device write and read. A device that
/// keeps them may keep them wherever it likes.
#[derive(Default)]
pub(crate) struct DeviceBuffers {
    wanted: Vec<Wanted>,
    /// Bytes of a set.
    size: u64,
    /// Sets that no execution uses just now.
    free: Mutex<Vec<BufferSet>>,
}

/// A buffer for each such value, by slot.
pub(crate) type BufferSet = Vec<(usize, Arc<dyn Buffer>)>;

struct Wanted {
    slot: usize,
    device: Device,
    description: BufferDescription,
}

impl DeviceBuffers {
    /// Finds the values, and asks their devices for buffers; values whose device gives none go by
    /// shared memory.
    pub(super) fn new(steps: &[Step], slots: &[Slot]) -> Self {
        let mut wanted = Vec::new();
        for (slot, it) in slots.iter().enumerate() {
            if it.role == SlotRole::Temporary
                && it.scratch.is_some()
                && let Some(found) = wanted_for(slot, it, steps)
            {
                wanted.push(found);
            }
        }
        let mut buffers = Self { wanted, size: 0, free: Mutex::default() };
        let first = buffers.allocate();
        buffers.wanted.retain(|wanted| first.iter().any(|(slot, _)| *slot == wanted.slot));
        let length =
            |wanted: &Wanted| slots[wanted.slot].scratch.map_or(0, |(_, it)| u64::from(it));
        buffers.size = buffers.wanted.iter().map(length).sum();
        buffers.give_back(first);
        buffers
    }

    fn allocate(&self) -> BufferSet {
        let allocate = |wanted: &Wanted| {
            let buffer = wanted.device.hal().allocate(&wanted.description);
            let buffer = buffer.inspect_err(|error| tracing::debug!(%error, "no buffer"));
            Some((wanted.slot, buffer.ok()?))
        };
        self.wanted.iter().filter_map(allocate).collect()
    }

    /// Buffers for one execution.
    pub(crate) fn take(&self) -> BufferSet {
        if self.wanted.is_empty() {
            return BufferSet::new();
        }
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| self.allocate())
    }

    /// Keeps them for the next execution.
    pub(crate) fn give_back(&self, set: BufferSet) {
        if set.is_empty() {
            return;
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        // One however long it is.
        let most = if self.size <= LONGEST_KEPT { MOST_KEPT } else { 1 };
        if free.len() < most {
            free.push(set);
        }
    }
}

/// What to ask for, if only steps of one device use the value.
fn wanted_for(slot: usize, it: &Slot, steps: &[Step]) -> Option<Wanted> {
    let mut device: Option<&Device> = None;
    let mut description =
        BufferDescription { dimensions: it.dimensions.clone(), ..BufferDescription::default() };
    for step in steps {
        let step = match step {
            Step::Device(step) => step,
            Step::If(step) | Step::While(step) => {
                let is_slot = |source: &Source| matches!(source, Source::Slot(it) if *it == slot);
                let mut sources = step.inputs.iter().chain([&step.condition]);
                if sources.any(is_slot) || step.outputs.contains(&slot) {
                    return None;
                }
                continue;
            }
        };
        let is_used = step.inputs.contains(&slot) || step.outputs.contains(&slot);
        if !is_used {
            continue;
        }
        if device.is_some_and(|device| !device.is_same(&step.device)) {
            return None;
        }
        device = Some(&step.device);
        let model_index = add(&mut description.prepared_models, &step.prepared);
        let roles = |slots: &[usize]| -> Vec<BufferRole> {
            let uses = slots.iter().enumerate().filter(|(_, used)| **used == slot);
            uses.map(|(position, _)| BufferRole {
                model_index,
                io_index: u32::try_from(position).unwrap_or(u32::MAX),
                frequency: 1.0,
            })
            .collect()
        };
        description.input_roles.extend(roles(&step.inputs));
        description.output_roles.extend(roles(&step.outputs));
    }
    let device = device?.clone();
    Some(Wanted { slot, device, description })
}

/// The index of a model in the list.
fn add(models: &mut Vec<Arc<dyn PreparedModel>>, prepared: &Arc<dyn PreparedModel>) -> u32 {
    models.push(Arc::clone(prepared));
    u32::try_from(models.len() - 1).unwrap_or(u32::MAX)
}
