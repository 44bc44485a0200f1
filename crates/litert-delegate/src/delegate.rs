//! What the interpreter asks of the delegate and its kernels, behind the border.

use crate::abi;
use crate::error::{Error, Result};
use crate::host::{Host, Partition};
use crate::kernel::Kernel;
use crate::select::worthwhile;
use crate::subgraph::bodies_looked_at;
use nnhal_litert_common::{Registry, Shared, select};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Delegates, by the address of the structure that the host has.
static DELEGATES: Registry<Delegate> = Registry::new();
/// Kernels, by the number that the host holds as `user_data`.
static KERNELS: Registry<Mutex<Kernel>> = Registry::new();
static LAST_KERNEL: AtomicUsize = AtomicUsize::new(0);

/// A delegate that a host has made.
pub(crate) struct Delegate {
    shared: Arc<Shared>,
    /// Kernels that `Prepare` has made, until the host asks for them: it does so while it replaces the nodes.
    ready: Mutex<Vec<Ready>>,
    /// Subgraphs that run within kernels, as long as those are there.
    within: Mutex<Vec<Weak<[usize]>>>,
    /// Subgraphs that interpreters look into, without running them.
    looked_at: Mutex<LookedAt>,
}

/// Subgraphs that interpreters look into, by a subgraph that leads to them: the main one comes first. Nothing tells
/// when an interpreter is deleted. What is kept of one means nothing, but for another that has its subgraphs at the same
/// addresses; there at most one is left to it that need not be.
#[derive(Default)]
struct LookedAt(Vec<(usize, Vec<usize>)>);

/// Subgraphs whose bodies are remembered.
const MOST_REMEMBERED: usize = 256;

impl LookedAt {
    /// Takes down what a subgraph leads to; true: it is such a body itself.
    fn replace(&mut self, subgraph: usize, bodies: Vec<usize>) -> bool {
        self.0.retain(|it| it.0 != subgraph);
        let is_one = self.0.iter().any(|it| it.1.contains(&subgraph));
        if !bodies.is_empty() {
            if self.0.len() == MOST_REMEMBERED {
                self.0.remove(0);
            }
            self.0.push((subgraph, bodies));
        }
        is_one
    }
}

struct Ready {
    /// Address of the subgraph's context.
    subgraph: usize,
    nodes: Vec<i32>,
    kernel: Kernel,
}

impl Delegate {
    pub(crate) fn register(address: usize, shared: Shared) {
        let delegate = Self {
            shared: Arc::new(shared),
            ready: Mutex::default(),
            within: Mutex::default(),
            looked_at: Mutex::default(),
        };
        DELEGATES.insert(address, Arc::new(delegate));
    }

    /// Forgets a delegate; false: there was none. Kernels of it go on until their interpreters free them.
    pub(crate) fn forget(address: usize) -> bool {
        let Some(delegate) = DELEGATES.remove(address) else { return false };
        // The parent of a process that was forked writes its own.
        if delegate.shared.check_process().is_ok() {
            delegate.shared.save_trace();
        }
        true
    }

    fn find(address: usize) -> Result<Arc<Self>> {
        DELEGATES.get(address).ok_or(Error::Deleted { what: "delegate" })
    }

    /// Chooses nodes of a subgraph, prepares them, and tells the host to hand them over.
    pub(crate) fn prepare(
        host: &Host<'_>,
        address: usize,
        registration: abi::Registration,
        itself: *mut abi::Delegate,
    ) -> Result<()> {
        let delegate = Self::find(address)?;
        let shared = Arc::clone(&delegate.shared);
        shared.check_process()?;
        shared.observed(|| {
            if delegate.is_within(host.address()) {
                tracing::info!(
                    "a subgraph is left to the interpreter: it runs within a partition already"
                );
                return Ok(());
            }
            if delegate.is_looked_at(host)? {
                tracing::info!(
                    "a subgraph is left to the interpreter, which looks which operator it has"
                );
                return Ok(());
            }
            let nodes = delegate.choose(host)?;
            if nodes.is_empty() {
                return Ok(());
            }
            let outcome = host.replace(&nodes, registration, itself);
            // What the host has not asked for would never be.
            delegate.ready().retain(|ready| ready.subgraph != host.address());
            outcome
        })
    }

    /// A kernel of a partition, whose subgraphs are not prepared once more by themselves.
    fn kernel(&self, host: &Host<'_>, partition: &Partition) -> Result<Kernel> {
        let kernel = Kernel::new(host, partition, &self.shared)?;
        if !kernel.subgraphs.is_empty() {
            let mut within = self.within.lock().unwrap_or_else(PoisonError::into_inner);
            within.retain(|it| it.strong_count() > 0);
            within.push(Arc::downgrade(&kernel.subgraphs));
        }
        Ok(kernel)
    }

    /// Whether a subgraph runs within a kernel.
    fn is_within(&self, subgraph: usize) -> bool {
        let within = self.within.lock().unwrap_or_else(PoisonError::into_inner);
        within.iter().filter_map(Weak::upgrade).any(|it| it.contains(&subgraph))
    }

    /// Whether the interpreter looks into this subgraph instead of running it: what it then finds must be its own operator.
    fn is_looked_at(&self, host: &Host<'_>) -> Result<bool> {
        let bodies = bodies_looked_at(host)?;
        let mut all = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(all.replace(host.address(), bodies))
    }

    fn ready(&self) -> std::sync::MutexGuard<'_, Vec<Ready>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes to hand over, with a kernel ready for each of their partitions.
    fn choose(&self, host: &Host<'_>) -> Result<Vec<i32>> {
        let shared = &self.shared;
        let plan = host.execution_plan()?;
        let device = shared.device(shared.threads(host.recommended_threads()))?;
        host.copy_constants(shared.is_elsewhere());
        let (supported, refused) = select(host, &plan, &*device)?;
        for (node, why) in &refused {
            tracing::info!("node {node} is left to the interpreter: {why}");
        }
        if supported.is_empty() {
            return Ok(Vec::new());
        }
        let options = &shared.options;
        let partitions = host.partitions(&supported)?;
        let found = partitions.len();
        let (least, most) = (options.min_nodes_per_partition, options.max_partitions);
        let mut taken = HashSet::new();
        let mut count = 0;
        for partition in worthwhile(partitions, least, most) {
            match self.kernel(host, &partition) {
                Ok(kernel) => {
                    count += 1;
                    taken.extend(partition.nodes.iter().copied());
                    let (subgraph, nodes) = (host.address(), partition.nodes);
                    self.ready().push(Ready { subgraph, nodes, kernel });
                }
                Err(error) => {
                    let nodes = partition.nodes.len();
                    tracing::warn!("{nodes} nodes are left to the interpreter: {error}");
                }
            }
        }
        tracing::info!(
            "{} of {} nodes are taken, in {count} of {found} partitions",
            taken.len(),
            plan.len()
        );
        Ok(plan.into_iter().filter(|node| taken.contains(node)).collect())
    }
}

/// Makes the kernel of a partition, and gives the number that the host keeps.
pub(crate) fn init(host: &Host<'_>, address: usize, partition: &Partition) -> Result<usize> {
    let delegate = Delegate::find(address)?;
    let shared = Arc::clone(&delegate.shared);
    shared.check_process()?;
    shared.observed(|| {
        let mut ready = delegate.ready();
        let found = ready
            .iter()
            .position(|it| it.subgraph == host.address() && it.nodes == partition.nodes);
        let made = found.map(|at| ready.swap_remove(at).kernel);
        drop(ready);
        let kernel = match made {
            Some(kernel) if kernel.fits(partition) => kernel,
            // The host cuts otherwise than it has said.
            _ => delegate.kernel(host, partition)?,
        };
        // Multiples of 16 from 16 on: not null, and nothing that a host could take for a small code.
        let number = 16 * (1 + LAST_KERNEL.fetch_add(1, Ordering::Relaxed));
        KERNELS.insert(number, Arc::new(Mutex::new(kernel)));
        Ok(number)
    })
}

/// Calls with a kernel that the host holds.
pub(crate) fn with_kernel(
    number: usize,
    call: impl FnOnce(&mut Kernel) -> Result<()>,
) -> Result<()> {
    let kernel = KERNELS.get(number).ok_or(Error::Deleted { what: "delegate's kernel" })?;
    let mut kernel = kernel.lock().unwrap_or_else(PoisonError::into_inner);
    let shared = Arc::clone(&kernel.shared);
    shared.observed(|| call(&mut kernel))
}

/// Forgets a kernel; one that is not there is nothing to complain about, no one could be notified.
pub(crate) fn free(number: usize) {
    if let Some(kernel) = KERNELS.remove(number) {
        let shared = Arc::clone(&kernel.lock().unwrap_or_else(PoisonError::into_inner).shared);
        if shared.check_process().is_err() {
            // In a process that was forked there are no threads to be waited for, which is what dropping it does.
            std::mem::forget(kernel);
            return;
        }
        drop(kernel);
        shared.save_trace();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_are_looked_at_are_known_by_who_leads_to_them() {
        let mut all = LookedAt::default();
        assert!(!all.replace(1, vec![10, 11]));
        assert!(!all.replace(2, vec![12]));
        assert!(all.replace(10, Vec::new()) && all.replace(12, Vec::new()));
        assert!(!all.replace(1, vec![11]), "another interpreter, at the same address");
        assert!(!all.replace(10, Vec::new()) && all.replace(11, Vec::new()));
        for other in 0..2 * MOST_REMEMBERED {
            all.replace(1000 + other, vec![9]);
        }
        assert_eq!(all.0.len(), MOST_REMEMBERED);
    }
}
