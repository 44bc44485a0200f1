//! [`Teams`]: threads that executions share.

use crate::lock::lock;
use nnhal_driver::Budget;
use nnhal_kernels::Team;
use std::sync::Mutex;

/// Teams of threads, to be lent to executions.
#[derive(Debug)]
pub(crate) struct Teams {
    threads: usize,
    idle: Mutex<Vec<Team>>,
}

impl Teams {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, idle: Mutex::default() }
    }

    /// Lends a team that no one else uses.
    pub(crate) fn lend<T>(&self, work: impl FnOnce(&mut Team) -> T) -> T {
        let idle = lock(&self.idle).pop();
        let mut team = idle.unwrap_or_else(|| Team::new(self.threads));
        let result = work(&mut team);
        lock(&self.idle).push(team);
        result
    }

    /// Lends one for planning. While a model is prepared that is a new one: its threads inherit the lower
    /// priority of the thread that starts them, with which nothing is to be executed.
    pub(crate) fn lend_for<T>(&self, budget: &Budget, work: impl FnOnce(&mut Team) -> T) -> T {
        if budget.is_preparing() { work(&mut Team::new(self.threads)) } else { self.lend(work) }
    }
}
