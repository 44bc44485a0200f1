//! Which operations of a model devices can do.

use super::extract::extract;
use crate::devices::Device;
use crate::error::{Error, Result};
use crate::model::Model;
use nnhal_hal::{HalVersion, OperandLifeTime, OperationType, Subgraph};
use std::collections::HashMap;

impl Model {
    /// For each operation, in the order in which they were added, whether any of the devices can do
    /// it, with the runtime's help where that is an IF or WHILE.
    ///
    /// # Errors
    /// `BAD_DATA` without devices, or with the same one twice.
    pub fn supported_operations(&self, devices: &[Device]) -> Result<Vec<bool>> {
        if devices.is_empty() {
            return Err(Error::bad_data("no device is named"));
        }
        let mut answer = vec![false; self.operation_count()];
        for (index, device) in devices.iter().enumerate() {
            if devices[..index].iter().any(|other| other.is_same(device)) {
                return Err(Error::bad_data(format!("{} is named twice", device.name())));
            }
            for (added_as, able) in
                self.added_as().iter().zip(self.runnable(device, &mut HashMap::new()))
            {
                answer[*added_as] |= able;
            }
        }
        Ok(answer)
    }

    /// For each operation, in running order, whether it can be run with this device alone: an IF or
    /// WHILE also if the device can do all that it runs, and the runtime does the rest. `known` says
    /// of which models, by address, all operations can be run.
    fn runnable(&self, device: &Device, known: &mut HashMap<usize, bool>) -> Vec<bool> {
        let mut able = supported(self, device);
        for (index, able) in able.iter_mut().enumerate() {
            let inner = self.controlled(index);
            if *able || inner.is_empty() {
                continue;
            }
            *able = inner.iter().all(|model| match known.get(&model.address()) {
                Some(able) => *able,
                None => {
                    let able = !model.runnable(device, known).contains(&false);
                    known.insert(model.address(), able);
                    able
                }
            });
        }
        able
    }
}

/// For each operation of the main graph, in running order, whether the device can do it.
///
/// A device is asked about the whole model where its interface can express that, otherwise about
/// the part that it can. An IF or WHILE that runs a loop with operands of unknown size no device
/// can do: their interface excludes it. Nor can they do what an operation's definition forbids, and
/// none is asked about it.
pub(crate) fn supported(model: &Model, device: &Device) -> Vec<bool> {
    let hal = model.hal();
    let count = model.operation_count();
    let version = device.version();
    let mut excluded = open_loops(hal);
    for (excluded, obstacle) in excluded.iter_mut().zip(model.checked().obstacles()) {
        *excluded |= obstacle.is_some();
    }
    let is_old = model.checked().oldest_version() <= version;
    let is_whole = is_old && !excluded.contains(&true);
    let can_ask =
        |index: usize| !excluded[index] && (is_old || is_expressible(model, index, version));
    let asked: Vec<usize> = (0..count).filter(|index| is_whole || can_ask(*index)).collect();
    let answer = if is_whole {
        device.hal().supported_operations(hal, version)
    } else if asked.is_empty() {
        Ok(Vec::new())
    } else {
        let part = extract(hal, &asked, |operand| model.known_dimensions(operand));
        device.hal().supported_operations(&part.model, version)
    };
    let mut supported = vec![false; count];
    match answer {
        Ok(answer) => {
            for (index, support) in asked.into_iter().zip(answer) {
                supported[index] = support.is_yes();
            }
        }
        Err(error) => {
            tracing::warn!(device = device.name(), %error, "the device does not say what it can do");
        }
    }
    supported
}

/// Whether an operation by itself is valid in this version.
fn is_expressible(model: &Model, index: usize, version: HalVersion) -> bool {
    let part = extract(model.hal(), &[index], |operand| model.known_dimensions(operand));
    nnhal_ops::validate::oldest_version(&part.model).is_ok_and(|oldest| oldest <= version)
}

/// For each operation of the main graph, whether it is, or runs, a WHILE with operands of unknown
/// size.
pub(crate) fn open_loops(model: &nnhal_hal::Model) -> Vec<bool> {
    // Of each subgraph, whether it has such a loop; settled from those that refer to none up.
    let mut settled: Vec<Option<bool>> = vec![None; model.referenced.len()];
    let mut progress = true;
    while progress {
        progress = false;
        for index in 0..settled.len() {
            if settled[index].is_some() {
                continue;
            }
            let graph = &model.referenced[index];
            let inner = subgraphs(graph).map(|inner| settled.get(inner).copied().flatten());
            let Some(inner) = inner.collect::<Option<Vec<bool>>>() else { continue };
            let own = (0..graph.operations.len()).any(|at| is_open_loop(model, graph, at));
            settled[index] = Some(own || inner.contains(&true));
            progress = true;
        }
    }
    let main = &model.main;
    let is_open = |index: usize| {
        let operation = &main.operations[index];
        let mut inner = operation.inputs.iter().filter_map(|input| referred(main, *input));
        is_open_loop(model, main, index)
            || inner.any(|inner| settled.get(inner).copied().flatten() == Some(true))
    };
    (0..main.operations.len()).map(is_open).collect()
}

/// The subgraph that an operand stands for.
pub(crate) fn referred(graph: &Subgraph, operand: u32) -> Option<usize> {
    let operand = graph.operands.get(operand as usize)?;
    (operand.lifetime == OperandLifeTime::Subgraph).then_some(operand.location.offset as usize)
}

/// All subgraphs that a graph refers to.
fn subgraphs(graph: &Subgraph) -> impl Iterator<Item = usize> {
    (0_u32..).take(graph.operands.len()).filter_map(|operand| referred(graph, operand))
}

/// Whether an operation is a WHILE with operands of unknown size.
fn is_open_loop(model: &nnhal_hal::Model, graph: &Subgraph, index: usize) -> bool {
    let operation = &graph.operations[index];
    if operation.operation_type != OperationType::While {
        return false;
    }
    let is_open = |graph: &Subgraph, inputs: &[u32], outputs: &[u32]| {
        inputs.iter().chain(outputs).any(|index| {
            let operand = &graph.operands[*index as usize];
            let is_extension = matches!(operand.operand_type, nnhal_hal::OperandType::Extension(_));
            operand.lifetime != OperandLifeTime::Subgraph
                && !is_extension
                && !operand.has_known_dimensions()
        })
    };
    let inner = operation.inputs.iter().filter_map(|input| referred(graph, *input));
    let mut inner = inner.filter_map(|index| model.referenced.get(index));
    is_open(graph, &operation.inputs, &operation.outputs)
        || inner.any(|graph| is_open(graph, &graph.inputs, &graph.outputs))
}
