//! [`Teams`]: threads that executions share.

use crate::lock::lock;
use nnhal_driver::Budget;
use nnhal_kernels::Team;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Teams of threads, to be lent to executions.
#[derive(Debug)]
pub(crate) struct Teams {
    threads: usize,
    idle: Mutex<Vec<Team>>,
    /// Whether a team was lent to a small execution.
    has_lent_for_small: AtomicBool,
}

impl Teams {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, idle: Mutex::default(), has_lent_for_small: AtomicBool::new(false) }
    }

    /// Lends a team that no one else uses.
    pub(crate) fn lend<T>(&self, work: impl FnOnce(&mut Team) -> T) -> T {
        let idle = lock(&self.idle).pop();
        let mut team = idle.unwrap_or_else(|| Team::new(self.threads));
        let result = work(&mut team);
        lock(&self.idle).push(team);
        result
    }

    /// The same for an execution that takes no longer than waking a thread does. The first one has no helpers, which would be started
    /// for it and come too late.
    pub(crate) fn lend_for_small<T>(&self, work: impl FnOnce(&mut Team) -> T) -> T {
        let is_first = !self.has_lent_for_small.swap(true, Ordering::Relaxed);
        if is_first && self.threads > 1 && lock(&self.idle).is_empty() {
            return work(&mut Team::alone());
        }
        self.lend(work)
    }

    /// Lends one for planning. While a model is prepared that is a new one: its threads inherit the lower
    /// priority of the thread that starts them, with which nothing is to be executed.
    pub(crate) fn lend_for<T>(&self, budget: &Budget, work: impl FnOnce(&mut Team) -> T) -> T {
        if budget.is_preparing() { work(&mut Team::new(self.threads)) } else { self.lend(work) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_is_started_for_the_first_small_execution() {
        let teams = Teams::new(3);
        let threads = [0; 3].map(|_| teams.lend_for_small(|team| team.threads()));
        assert_eq!(threads, [1, 3, 3]);
        let teams = Teams::new(3);
        assert_eq!(teams.lend(|team| team.threads()), 3);
        assert_eq!(teams.lend_for_small(|team| team.threads()), 3, "they are there");
        assert_eq!(Teams::new(1).lend_for_small(|team| team.threads()), 1);
    }
}
