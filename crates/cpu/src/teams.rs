//! [`Teams`]: threads that executions share.

use crate::lock::lock;
use nnhal_driver::Budget;
use nnhal_kernels::Team;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A small execution that begins so soon behind another one follows it closely: helpers would be awake still.
const CLOSE: Duration = Duration::from_micros(100);

/// Teams of threads, to be lent to executions.
#[derive(Debug)]
pub(crate) struct Teams {
    threads: usize,
    idle: Mutex<Vec<Team>>,
    /// For small executions as long as there is no team with helpers.
    alone: Mutex<Alone>,
}

#[derive(Debug, Default)]
struct Alone {
    idle: Vec<Team>,
    /// When the last execution ended that had one.
    ended: Option<Instant>,
}

impl Teams {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, idle: Mutex::default(), alone: Mutex::default() }
    }

    /// Lends a team that no one else uses.
    pub(crate) fn lend<T>(&self, work: impl FnOnce(&mut Team) -> T) -> T {
        let idle = lock(&self.idle).pop();
        let mut team = idle.unwrap_or_else(|| Team::new(self.threads));
        let result = work(&mut team);
        lock(&self.idle).push(team);
        result
    }

    /// The same for an execution that takes no longer than waking a thread does: no thread is started for it, unless it follows
    /// another one closely.
    pub(crate) fn lend_for_small<T>(&self, work: impl FnOnce(&mut Team) -> T) -> T {
        if self.threads == 1 || !lock(&self.idle).is_empty() {
            return self.lend(work);
        }
        let alone = {
            let mut alone = lock(&self.alone);
            if alone.ended.is_some_and(|ended| ended.elapsed() < CLOSE) {
                drop(alone);
                return self.lend(work);
            }
            alone.idle.pop()
        };
        let mut team = alone.unwrap_or_else(Team::alone);
        let result = work(&mut team);
        let mut alone = lock(&self.alone);
        alone.idle.push(team);
        alone.ended = Some(Instant::now());
        result
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
    fn small_executions_start_threads_only_where_they_follow_each_other_closely() {
        let teams = Teams::new(3);
        for _ in 0..3 {
            assert_eq!(teams.lend_for_small(|team| team.threads()), 1);
            std::thread::sleep(2 * CLOSE);
        }
        // A busy machine may keep us from being so quick.
        assert!((0..1000).any(|_| teams.lend_for_small(|team| team.threads()) == 3));
        std::thread::sleep(2 * CLOSE);
        assert_eq!(teams.lend_for_small(|team| team.threads()), 3, "they are there now");
        assert_eq!(Teams::new(3).lend(|team| team.threads()), 3);
        assert_eq!(Teams::new(1).lend_for_small(|team| team.threads()), 1);
    }
}
