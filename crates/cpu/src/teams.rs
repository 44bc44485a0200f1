//! [`Teams`]: threads that executions share.

use nnhal_driver::Budget;
use nnhal_kernels::Team;
use std::sync::{Mutex, PoisonError};

/// Teams of threads, for executions to borrow.
#[derive(Debug)]
pub(crate) struct Teams {
    threads: usize,
    idle: Mutex<Vec<Team>>,
}

impl Teams {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, idle: Mutex::default() }
    }

    /// A team that no one else uses.
    pub(crate) fn borrow(&self) -> Team {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.unwrap_or_else(|| Team::new(self.threads))
    }

    /// Takes a team back.
    pub(crate) fn give_back(&self, team: Team) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(team);
    }

    /// A team for planning. While a model is prepared that is a new one: its threads inherit the lower
    /// priority of the thread that starts them, with which nothing is to be executed.
    pub(crate) fn borrow_for(&self, budget: &Budget) -> Team {
        if budget.is_preparing() { Team::new(self.threads) } else { self.borrow() }
    }

    /// Takes it back, if others may have it.
    pub(crate) fn give_back_after(&self, budget: &Budget, team: Team) {
        if !budget.is_preparing() {
            self.give_back(team);
        }
    }
}
