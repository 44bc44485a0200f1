//! [`Constants`]: a model's constants, read out of the client's memory once.

use crate::error::{EngineError, MemoryUse};
use crate::memory::{Charge, Ledger};
use nnhal_hal::DataLocation;
use nnhal_hal::memory::MemoryView;
use nnhal_hal::model::SubgraphName;
use nnhal_ops::ValidModel;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// A model's constants in memory that no one else can write.
///
/// Constants may overlap each other. What several of them share is read once, so a small model
/// cannot make us copy one pool a thousand times (contract: SEC-3).
#[derive(Debug, Clone)]
pub struct Constants {
    places: HashMap<Key, Place>,
    /// Counts what was copied out of pools.
    charge: Arc<Charge>,
}

/// Subgraph, and index of the operand there.
type Key = (SubgraphName, u32);

#[derive(Debug, Clone)]
enum Place {
    /// Private already: part of the model, or copied by the validator, whose copy is the one that
    /// was checked.
    Private(nnhal_ops::validate::Constant),
    /// Part of what was copied out of a pool.
    Block { block: Arc<Vec<u8>>, range: Range<usize> },
}

/// A constant that still is in a pool.
#[derive(Debug, Clone, Copy)]
struct InPool {
    key: Key,
    location: DataLocation,
}

impl Constants {
    /// Reads all constants, of all subgraphs.
    ///
    /// # Errors
    /// Memory cannot be read, or the constants take more than the ledger has room for.
    pub fn read(model: &ValidModel, ledger: &Ledger) -> Result<Self, EngineError> {
        let mut places = HashMap::new();
        let mut charge = ledger.charge(0, MemoryUse::Constants)?;
        let mut by_pool = BTreeMap::<u32, Vec<InPool>>::new();
        for (subgraph, graph) in model.model().subgraphs() {
            for operand in 0..u32::try_from(graph.operands.len()).unwrap_or(u32::MAX) {
                let Some(constant) = model.constant(subgraph, operand) else { continue };
                let key = (subgraph, operand);
                if constant.known().is_some() {
                    places.insert(key, Place::Private(constant.clone()));
                } else {
                    let location = graph.operands[operand as usize].location;
                    by_pool.entry(location.pool_index).or_default().push(InPool { key, location });
                }
            }
        }
        for (pool, mut of_pool) in by_pool {
            let view = model.model().pools[pool as usize].view()?;
            of_pool.sort_by_key(|constant| constant.location.offset);
            for together in Runs(&of_pool) {
                read_block(&view, together, &mut places, &mut charge)?;
            }
        }
        Ok(Self { places, charge: Arc::new(charge) })
    }

    /// The bytes of a constant; `None` if the operand is none.
    pub fn bytes(&self, subgraph: SubgraphName, operand: u32) -> Option<&[u8]> {
        match self.places.get(&(subgraph, operand))? {
            Place::Private(constant) => constant.known(),
            Place::Block { block, range } => block.get(range.clone()),
        }
    }

    /// Bytes that were copied out of pools.
    pub fn size(&self) -> u64 {
        self.charge.bytes()
    }
}

/// Reads constants that are close together.
fn read_block(
    view: &MemoryView,
    together: &[InPool],
    places: &mut HashMap<Key, Place>,
    charge: &mut Charge,
) -> Result<(), EngineError> {
    let start = together.iter().map(|it| u64::from(it.location.offset)).min().unwrap_or(0);
    let end = together.iter().map(|it| it.location.end()).max().unwrap_or(start);
    charge.grow(end - start, MemoryUse::Constants)?;
    let block = Arc::new(view.read_to_vec(start, end - start)?);
    for InPool { key, location } in together {
        // What does not fit the address space could not have been read.
        let first = usize::try_from(u64::from(location.offset) - start).unwrap_or(usize::MAX);
        let range = first..first.saturating_add(location.length as usize);
        places.insert(*key, Place::Block { block: Arc::clone(&block), range });
    }
    Ok(())
}

/// Splits constants of one pool, sorted by offset, into runs without gaps between.
struct Runs<'a>(&'a [InPool]);

impl<'a> Iterator for Runs<'a> {
    type Item = &'a [InPool];

    fn next(&mut self) -> Option<Self::Item> {
        let mut end = self.0.first()?.location.end();
        let count = self.0.iter().take_while(|constant| {
            let joins = u64::from(constant.location.offset) <= end;
            if joins {
                end = end.max(constant.location.end());
            }
            joins
        });
        let (together, rest) = self.0.split_at(count.count());
        self.0 = rest;
        Some(together)
    }
}
