//! Lowering all nodes of a graph, several at a time.

use super::{Builder, Draft, lower};
use crate::graph::Node;
use crate::lock::lock;
use bytes::Bytes;
use nnhal_driver::{Budget, Charge, EngineError, Ledger, MemoryUse};
use nnhal_hal::memory::WeightPool;
use nnhal_kernels::{KeptQuestion, MemoryLimit, Packed, Preparation, SavedWeights, Team, TooLarge};
use std::sync::{Arc, Mutex, PoisonError};

/// Steps without places, and by node what their kernels packed.
#[derive(Default)]
pub(super) struct Lowered {
    pub(super) drafts: Vec<Draft>,
    /// By draft: bytes of packed weights.
    pub(super) weight_bytes: Vec<usize>,
    pub(super) packed: Vec<Vec<Packed>>,
    /// Of what kernels keep.
    pub(super) charges: Vec<Charge>,
}

/// Constants below this are packed sooner by one thread than helpers are awake.
pub(super) const MANY_BYTES: usize = 1 << 20;

/// Most memory for packed weights that is taken at a time.
const MOST_ROOM: usize = 64 << 20;

/// Packed weights of a node that are fewer bytes than this are not shared: there would be little to save.
const LEAST_SHARED: usize = 16 << 10;

/// Lowers all nodes. `saved` are the weights that they packed another time, by node.
pub(super) fn lower_all(
    builder: &Builder<'_, '_>,
    ledger: &Ledger,
    team: &mut Team,
    budget: &Budget,
    saved: Option<&[Bytes]>,
) -> Result<Lowered, EngineError> {
    let nodes = &builder.graph.nodes;
    let bytes = builder.graph.constant_bytes(false);
    let mut alone = Team::alone();
    let team = if bytes < MANY_BYTES || saved.is_some() { &mut alone } else { team };
    let settings = builder.settings;
    let (set, threads) = (settings.instruction_set, settings.threads.get());
    // A little more than there is: panels end with zeros.
    let room = (bytes + bytes / 8).min(MOST_ROOM) / team.threads();
    let idle = Mutex::new(Vec::new());
    let pool = budget.weights();
    // One for all threads.
    let memory = Arc::new(KernelMemory {
        ledger: ledger.clone(),
        held: Mutex::new(ledger.charge(0, MemoryUse::Weights)?),
    });
    let asked = budget.clone();
    let is_over: KeptQuestion = Arc::new(move || asked.check_inside().is_err());
    let settled = |preparation: Preparation| {
        let preparation =
            preparation.limited_by(Arc::clone(&memory) as _).until(Arc::clone(&is_over));
        if settings.winograd { preparation } else { preparation.without_winograd() }
    };
    let lowering = tracing::debug_span!("lower", operations = nodes.len());
    // What a kernel was refused, and not what became of its node without it.
    let lower_node = |node: &Node, preparation: &mut Preparation| {
        let drafts = lower::lower(builder, node, preparation);
        let Some(TooLarge { wanted, .. }) = preparation.take_refusal() else { return drafts };
        let (user, wanted) =
            (MemoryUse::Operation(node.place), wanted.map_or(u64::MAX, |it| it as u64));
        ledger.expect_room(wanted, user)?;
        Err(EngineError::Allocation { user, wanted })
    };
    let lower_one = |index: usize, node: &Node| -> Result<_, EngineError> {
        budget.check_inside()?;
        let _step =
            tracing::trace_span!(parent: &lowering, "lower step", of = %node.place).entered();
        let restore = |weights: Bytes| -> Result<_, EngineError> {
            let weights = SavedWeights::new(weights);
            let mut preparation = settled(Preparation::restore(set, threads, weights));
            let drafts = lower_node(node, &mut preparation)?;
            budget.check_inside()?;
            let packed = preparation.take_packed();
            preparation.finish().map_err(nnhal_hal::Error::failure)?;
            Ok((drafts, packed))
        };
        let keep = |pool: &WeightPool, parts: &[&[u8]]| -> Result<Bytes, EngineError> {
            let wanted = length(parts) as u64;
            let kept = pool.keep(parts);
            let user = MemoryUse::Operation(node.place);
            kept.map(Bytes::from_owner).map_err(|_| EngineError::Allocation { user, wanted })
        };
        if let Some(saved) = saved {
            let mut weights = saved.get(index).cloned().unwrap_or_default();
            if let Some(pool) = pool
                && weights.len() >= LEAST_SHARED
            {
                weights = keep(pool, &[&weights])?;
            }
            let (drafts, packed) = restore(weights)?;
            let saved = packed.iter().map(|it| it.length() as u64).sum();
            lock(&memory.held).grow(saved, MemoryUse::Operation(node.place))?;
            return Ok((drafts, packed));
        }
        if let Some(pool) = pool {
            // In memory of its own, so that it can be let go of by itself.
            let mut preparation = settled(Preparation::new(set, threads));
            let drafts = lower_node(node, &mut preparation)?;
            budget.check_inside()?;
            let packed = preparation.take_packed();
            drop(preparation);
            let parts: Vec<&[u8]> = packed.iter().map(Packed::bytes).collect();
            if length(&parts) < LEAST_SHARED {
                return Ok((drafts, packed));
            }
            drop(drafts);
            // They were charged when they were packed.
            return restore(keep(pool, &parts)?);
        }
        let preparation = lock(&idle).pop();
        let mut preparation =
            preparation.unwrap_or_else(|| settled(Preparation::new(set, threads).with_room(room)));
        let drafts = lower_node(node, &mut preparation)?;
        // Kernels whose weights are packed in part must not be run.
        budget.check_inside()?;
        let packed = preparation.take_packed();
        lock(&idle).push(preparation);
        Ok((drafts, packed))
    };
    let results: Vec<_> = nodes.iter().map(|_| Mutex::new(None)).collect();
    lowering.in_scope(|| {
        team.run(nodes.len(), &|index| {
            *lock(&results[index]) = Some(lower_one(index, &nodes[index]));
        });
    });
    let mut lowered = Lowered::default();
    for result in results {
        let result = result.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = result {
            let (drafts, packed) = result?;
            lowered.drafts.extend(drafts);
            lowered.weight_bytes.resize(lowered.drafts.len(), 0);
            if let Some(last) = lowered.weight_bytes.last_mut() {
                *last += packed.iter().map(Packed::length).sum::<usize>();
            }
            lowered.packed.push(packed);
        }
    }
    let nothing = ledger.charge(0, MemoryUse::Weights)?;
    lowered.charges.push(std::mem::replace(&mut lock(&memory.held), nothing));
    Ok(lowered)
}

/// What kernels take and keep, charged before it is there.
#[derive(Debug)]
struct KernelMemory {
    ledger: Ledger,
    held: Mutex<Charge>,
}

impl MemoryLimit for KernelMemory {
    fn left(&self) -> usize {
        usize::try_from(self.ledger.remaining()).unwrap_or(usize::MAX)
    }

    fn take(&self, bytes: usize) -> Result<(), usize> {
        let taken = lock(&self.held).grow(bytes as u64, MemoryUse::Weights);
        taken.map_err(|_| self.left())
    }
}

fn length(parts: &[&[u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}
