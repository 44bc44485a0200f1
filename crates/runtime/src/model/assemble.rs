//! Making one [`nnhal_hal::Model`] out of a model and those that it refers to.

use super::{Model, Own};
use crate::devices::Devices;
use nnhal_hal::{OperandLifeTime, OperandType, OperationType, Subgraph};
use std::collections::{BTreeSet, HashMap};

/// A model for devices: the main graph with everything that it refers to, directly or not. A model
/// that is referred to several times becomes one subgraph.
pub(super) fn assemble(main: &Own, relaxed: bool, devices: &Devices) -> nnhal_hal::Model {
    let mut whole = Whole::default();
    let mut subgraphs = vec![whole.place(main)];
    // Grows while it is gone through.
    let mut next = 0;
    while let Some(model) = whole.order.get(next).cloned() {
        subgraphs.push(whole.place(model.own()));
        next += 1;
    }
    let extension_name_to_prefix = devices.extensions().table(&prefixes(subgraphs.iter()));
    let mut subgraphs = subgraphs.into_iter();
    let mut model = nnhal_hal::Model {
        main: subgraphs.next().unwrap_or_default(),
        referenced: subgraphs.collect(),
        operand_values: whole.values.into(),
        pools: whole.pools,
        relax_computation_float32_to_float16: relaxed,
        extension_name_to_prefix,
    };
    count_consumers(&mut model.main);
    model.referenced.iter_mut().for_each(count_consumers);
    model
}

#[derive(Default)]
struct Whole {
    values: Vec<u8>,
    pools: Vec<nnhal_hal::Memory>,
    /// The models that are referred to, by index of their subgraph.
    order: Vec<Model>,
    indexes: HashMap<usize, u32>,
}

impl Whole {
    /// A graph with its locations as they are in the whole.
    fn place(&mut self, own: &Own) -> Subgraph {
        let base = self.values.len().next_multiple_of(super::VALUE_ALIGNMENT);
        self.values.resize(base, 0);
        self.values.extend_from_slice(&own.values);
        let base = u32::try_from(base).unwrap_or(u32::MAX);
        let pools: Vec<u32> = own.pools.iter().map(|pool| self.pool(pool)).collect();
        let mut subgraph = own.graph.clone();
        for operand in &mut subgraph.operands {
            let location = &mut operand.location;
            match operand.lifetime {
                OperandLifeTime::ConstantCopy => {
                    location.offset = location.offset.saturating_add(base);
                }
                OperandLifeTime::ConstantReference => {
                    location.pool_index = pools[location.pool_index as usize];
                }
                OperandLifeTime::Subgraph => {
                    location.offset = self.subgraph(&own.references[location.offset as usize]);
                }
                _ => {}
            }
        }
        subgraph
    }

    fn pool(&mut self, pool: &nnhal_hal::Memory) -> u32 {
        let position = self.pools.iter().position(|known| known.is_same(pool));
        let position = position.unwrap_or_else(|| {
            self.pools.push(pool.clone());
            self.pools.len() - 1
        });
        u32::try_from(position).unwrap_or(u32::MAX)
    }

    fn subgraph(&mut self, model: &Model) -> u32 {
        let next = u32::try_from(self.order.len()).unwrap_or(u32::MAX);
        let index = *self.indexes.entry(model.address()).or_insert(next);
        if index == next {
            self.order.push(model.clone());
        }
        index
    }
}

/// Counts how often each operand is an input of an operation.
pub(crate) fn count_consumers(subgraph: &mut Subgraph) {
    let mut counts = vec![0_u32; subgraph.operands.len()];
    for input in subgraph.operations.iter().flat_map(|operation| &operation.inputs) {
        if let Some(count) = counts.get_mut(*input as usize) {
            *count += 1;
        }
    }
    for (operand, count) in subgraph.operands.iter_mut().zip(counts) {
        operand.number_of_consumers = count;
    }
}

/// The prefixes of all types and operations of extensions.
pub(crate) fn prefixes<'a>(subgraphs: impl Iterator<Item = &'a Subgraph>) -> BTreeSet<u16> {
    let mut prefixes = BTreeSet::new();
    for graph in subgraphs {
        for operand in &graph.operands {
            if let OperandType::Extension(extension) = operand.operand_type {
                prefixes.insert(extension.prefix());
            }
        }
        for operation in &graph.operations {
            if let OperationType::Extension(extension) = operation.operation_type {
                prefixes.insert(extension.prefix());
            }
        }
    }
    prefixes
}
